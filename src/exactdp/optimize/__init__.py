"""From accuracy targets to the best design: what to make small, what to keep, and the guarantee to meet.

>>> from exactdp import census, optimize, target
>>> design = census.release("pl94-units-us")
>>> found = optimize.best(design, target=target(5, "1e-10"), requirements=["US: margin <= 30"])
>>> found.gap < 0.1
True
"""

from exactdp.optimize.best_design import BestDesign, best
from exactdp.optimize.cell_changes import CellChange
from exactdp.optimize.explanation import DesignExplanation, explain
from exactdp.optimize.frontier import Frontier, frontier
from exactdp.optimize.least_design import LeastDesign, least
from exactdp.optimize.objective import Objective
from exactdp.optimize.objective_bound import ObjectiveBound
from exactdp.optimize.prices import Price
from exactdp.optimize.requirements import Requirement

__all__ = [
    "BestDesign",
    "CellChange",
    "DesignExplanation",
    "Frontier",
    "LeastDesign",
    "Objective",
    "ObjectiveBound",
    "Price",
    "Requirement",
    "best",
    "explain",
    "frontier",
    "least",
]
