"""The least epsilon for given accuracy: the cheapest design that keeps the requirements, and a bound below which there is
none."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.arithmetic_state import steady
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.design_proof import certify_design
from exactdp.census.releases import Release
from exactdp.doubles import FORMULA_SLACK, Floats
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import MeetsEpsilonDelta
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_repr, positive, rational, read_share, shown, whole
from exactdp.numerals import about, at_least, at_most, exact
from exactdp.optimize.accuracy import in_reach, shortened
from exactdp.optimize.best_design import DIGITS, USUAL_DIGITS, refuse_idle
from exactdp.optimize.cell_changes import CellChange, cell_changes
from exactdp.optimize.dual_bound import least_spread, spread_row
from exactdp.optimize.guarantee import Guarantee
from exactdp.optimize.infeasible import is_infeasible, least_epsilon
from exactdp.optimize.objective import Objective
from exactdp.optimize.prices import Price, requirement_prices
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import Requirement, read_requirements
from exactdp.optimize.rough_epsilon import epsilon_between
from exactdp.optimize.rounding import group_steps
from exactdp.optimize.search import Aim
from exactdp.optimize.water_filling import SummedErrors, WaterFilling


@steady
@dataclass(frozen=True)
class LeastDesign:
    """The design of the least epsilon for given accuracy, as far as is known: `epsilon` is proved, and so is `bound`."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    release: Release
    before: Release
    delta: Fraction
    requirements: tuple[Requirement, ...]
    epsilon: tuple[float, float]
    """Certified bounds of the design's epsilon at `delta`, over all pairs."""
    bound: float | None
    """Proved: no design without noise of a sigma2 below `coarsest` keeps the requirements with a smaller epsilon."""
    coarsest: Fraction
    prices: tuple[Price, ...]

    @property
    def gap(self) -> float | None:
        """By how much another design's epsilon can be smaller at most."""
        return None if self.bound is None else max(self.epsilon[1] - self.bound, 0.0)

    @property
    def before_after(self) -> tuple[CellChange, ...]:
        """Every cell before and after, on a path that bypasses nothing."""
        return cell_changes(self.before, self.release)

    def certificate(self, digits: int | None = None) -> DesignCertificate:
        """A certificate of the design's least epsilon at its delta."""
        return certify_design(self.release, delta=self.delta, digits=digits)

    @property
    def statement(self) -> str:
        """What is proved, in a sentence."""
        costs = f"It costs an epsilon of at most {at_most(self.epsilon[1])} at delta = {exact(self.delta)}"
        if self.bound is None:
            return f"{costs}; that none costs less is not proved."
        among = f"no design whose noise has nowhere a sigma2 below {about(self.coarsest)}"
        return f"{costs}; {among} costs less than {at_least(self.bound)}."

    def __str__(self) -> str:
        return f"{self.release.title}: {self.statement}"


@steady
def least(
    release: Release,
    *,
    delta: Number,
    requirements: Iterable[str | Requirement] = (),
    objective: Objective | None = None,
    at_most: Number | None = None,
    digits: int = USUAL_DIGITS,
) -> LeastDesign:
    """The design that keeps the requirements at the least epsilon; with `objective`, whose value is to be `at_most` so much.

    Guarantee: the release keeps the requirements and has an epsilon between the bounds given, by certified bounds over all pairs.
    """
    share = read_share(delta, "delta")
    if (objective is None) != (at_most is None):
        raise InvalidInputError("An objective goes with the most that it may be, at_most. Found one without the other.")
    problem = BudgetProblem.of(release, read_requirements(release, requirements))
    steps, places = group_steps(problem), whole(digits, "digits", *DIGITS)
    sums = [] if objective is None else [SummedErrors(problem, objective.measure, objective.cell_weights(release))]
    refuse_idle(problem, sums)
    aim, cap = None, 0.0
    unknowns = problem.low
    if objective is not None:
        aim, cap = (
            Aim(sums[0], objective.worst),
            float(in_reach(positive(at_most, "at_most"), "at_most", shown(at_most))),
        )
        unknowns = _cheapest(aim, cap)
    short = tuple(
        min(math.ceil(max(Fraction(y), a) / step) * step if step else max(shortened(Fraction(y), places), a), b)
        for y, a, b, step in zip(unknowns.tolist(), *problem.bounds, steps, strict=True)
    )
    design = problem.design(short)
    design.check_noise()
    bounds = epsilon_between(design, share)
    coarsest = min(1 / rho for queries in design.table.values() for rho in queries.values()) / 2
    guarantee = Guarantee.of(MeetsEpsilonDelta(rational(bounds[1], "epsilon"), share))
    found = _bound(problem, aim, cap, share, coarsest, bounds[1])
    priced = aim or Aim(SummedErrors(problem, "variance", np.zeros(len(problem.cells))))
    prices = requirement_prices(problem, guarantee, priced, design)
    titled = dataclasses.replace(design, title=f"{release.title}, optimized")
    return LeastDesign(titled, release, share, problem.requirements, bounds, found, coarsest, prices)


def _cheapest(aim: Aim, cap: float) -> Floats:
    """The unknowns of the least total with which the objective is at most `cap`."""
    problem = aim.errors.problem
    if aim.at(problem.high) > cap:
        raise InvalidInputError(f"No noise that is allowed has an objective of at most {cap:g}. Allow more.")
    if aim.at(problem.low) <= cap:
        return problem.low
    if aim.worst:
        return np.maximum(aim.errors.level(cap), problem.low)
    return WaterFilling(aim.errors, spread_row(problem)[None, :], np.ones(1)).cheapest(cap)[0]


def _bound(
    problem: BudgetProblem, aim: Aim | None, cap: float, delta: Fraction, coarsest: Fraction, epsilon: float
) -> float | None:
    """An epsilon that is too small for every design that keeps requirements and objective."""
    needed = float(spread_row(problem) @ problem.low) * (1 - FORMULA_SLACK)
    if aim is not None:
        needed = max(needed, least_spread(problem, aim, cap, coarsest))
    start = epsilon / 2
    while start > epsilon / 64 and not is_infeasible(
        problem, MeetsEpsilonDelta(rational(start, "epsilon"), delta), coarsest, needed
    ):
        start /= 2
    one = MeetsEpsilonDelta(rational(start, "epsilon"), delta)
    return least_epsilon(problem, one, coarsest, needed) if is_infeasible(problem, one, coarsest, needed) else None
