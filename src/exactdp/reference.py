"""The path by which users know the published method (engine/published)."""

from exactdp.engine.published.plan import ReferenceGroup, ReferencePlan, estimated_cost, make_reference_plan
from exactdp.engine.published.step2_fourier import MOST_VISITS
from exactdp.engine.published.theorem import TailEstimate, delta, quadrature, tail, vertex

__all__ = [
    "MOST_VISITS",
    "ReferenceGroup",
    "ReferencePlan",
    "TailEstimate",
    "delta",
    "estimated_cost",
    "make_reference_plan",
    "quadrature",
    "tail",
    "vertex",
]
