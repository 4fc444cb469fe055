"""How good a design can be at most: a number below which no design that meets the guarantee and the requirements has its
objective.

The guarantee bounds R = 2 rho of the full path with itself (`largest_spread`); R is linear in the budgets; and the errors are
above convex functions of them. The dual of that convex problem, at any multiplier, is the bound (docs/theory/optimization.md,
Theorem 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.census.cell_noise import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, CellNoise
from exactdp.census.releases import Release
from exactdp.doubles import FORMULA_SLACK, Floats
from exactdp.guarantees.calibration import MeetsEpsilonDelta, MeetsMu, Target
from exactdp.guarantees.neighbours import REPLACE
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr
from exactdp.numerals import about, at_least
from exactdp.optimize.accuracy import ABSOLUTE, MARGIN, QUANTILE, VARIANCE, errors
from exactdp.optimize.guarantee import each_target
from exactdp.optimize.least_delta import Coarsest, coarsest_alone, largest_spread
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.search import Aim
from exactdp.optimize.water_filling import SummedErrors, WaterFilling

_LARGEST_CONVEX = Fraction(1, 8)  # sigma2 from which on the bound of the mean absolute error is convex in the budget
_SHARE = Fraction(
    1, 2
)  # of the coarsest sigma2 of a design, down to which the statement goes where it is about some designs only
_GOOD_ENOUGH = 1e-3
_SLACK = 10 * FORMULA_SLACK


@dataclass(frozen=True)
class ObjectiveBound:
    """Proved: no design that meets guarantee and requirements has an objective below `value`.

    Where `coarsest` is given, that is said of the designs without noise of a smaller sigma2 only.
    """

    _repr_html_ = repr_html
    __repr__ = exact_repr

    value: float
    spread: Fraction
    """R = 2 rho, above which the guarantee does not hold."""
    coarsest: Fraction | None = None

    def __str__(self) -> str:
        among = "" if self.coarsest is None else f" whose noise has nowhere a sigma2 below {about(self.coarsest)}"
        return f"no design{among} has less than {at_least(self.value)}"


def objective_bound(
    problem: BudgetProblem, wanted: Target, aim: Aim, design: Release, value: float
) -> ObjectiveBound | None:
    """The best bound of those that can be proved: of all designs where that is nearly as good, else of those that are not much
    coarser than the given one."""
    found = [_bound(problem, wanted, aim, None)]
    if found[0] is None or found[0].value < value * (1 - _GOOD_ENOUGH):
        noise = [1 / design.table[level][query] for level, query in problem.cells]
        found.append(_bound(problem, wanted, aim, min(noise) * _SHARE))
    proved = [one for one in found if one is not None]
    return max(proved, key=lambda one: one.value) if proved else None


def _bound(problem: BudgetProblem, wanted: Target, aim: Aim, coarsest: Fraction | None) -> ObjectiveBound | None:
    spreads = [found for one in each_target(wanted) if (found := admissible_spread(problem, one, coarsest)) is not None]
    if not spreads:
        return None
    spread, floors = min(spreads, key=lambda found: found[0])
    return ObjectiveBound(_below_all(problem, aim, float(spread), floors), spread, coarsest)


def least_spread(problem: BudgetProblem, aim: Aim, cap: float, coarsest: Fraction) -> float:
    """At most the R of every design whose objective is at most `cap`, with no sigma2 below `coarsest`: the same dual, of
    the total."""
    row = spread_row(problem)
    if aim.worst:  # errors fall in the budget
        return float(row @ aim.errors.level(cap * (1 + _SLACK))) * (1 - _SLACK)
    floors = [
        max(_own_floor(problem, i), coarsest if kind.kind == DISCRETE_GAUSSIAN else Fraction(0))
        for i, kind in enumerate(problem.kinds)
    ]
    high = np.maximum(np.minimum(problem.high, _by_floor(problem, floors)), problem.low)
    unknowns, price = WaterFilling(aim.errors, row[None, :], np.ones(1), high=high).cheapest(cap)
    values, slopes = below(aim.errors.measure, problem.budgets(unknowns), problem.kinds, floors)
    slope = row + problem.by_group(aim.errors.weights * slopes) / price
    least = np.where(slope > 0, slope * (problem.low - unknowns), slope * (high - unknowns))
    total = float(row @ unknowns) + (float(aim.errors.weights @ values) - cap) / price + float(least.sum())
    return total - _SLACK * (abs(total) + cap / price)


def _below_all(problem: BudgetProblem, aim: Aim, spread: float, floors: list[Fraction]) -> float:
    row, limit = spread_row(problem), spread * (1 + _SLACK)
    if aim.worst:
        return _least_height(aim.errors, row, limit)
    high = np.minimum(problem.high, _by_floor(problem, floors))
    return _dual(aim.errors, row, limit, np.maximum(high, problem.low), floors)


def spread_row(problem: BudgetProblem) -> Floats:
    """R of the full path with itself, or alone, as a linear function of the unknowns; Laplace noise is left out, which only
    lowers delta."""
    times = 2.0 if problem.release.relation == REPLACE else 1.0
    gaussian = np.array([0.0 if kind.kind == DISCRETE_LAPLACE else 1.0 for kind in problem.kinds])
    weights = np.array([float(kind.cells * kind.sensitivity**2) for kind in problem.kinds])
    return problem.by_group(times * gaussian * weights)


def admissible_spread(
    problem: BudgetProblem, one: Target, coarsest: Fraction | None
) -> tuple[Fraction, list[Fraction]] | None:
    """An R that the full path may not exceed, and the least sigma2 of each cell for which that is said; None without a proof."""
    release = problem.release
    if () not in release.bypassed.values():
        return None
    if isinstance(one, MeetsMu):  # the divergence of order 2 is R, and at most mu^2
        return one.mu**2, _raised(problem, [_own_floor(problem, i) for i in range(len(problem.cells))], one.mu**2)
    if not isinstance(one, MeetsEpsilonDelta):
        return None
    found = coarsest_cells(problem, one, coarsest)
    if found is None:
        return None
    floors, cells = found
    spread = largest_spread(cells, one.epsilon, one.delta)
    return None if spread is None else (spread, _raised(problem, floors, spread))


def coarsest_cells(
    problem: BudgetProblem, one: MeetsEpsilonDelta, coarsest: Fraction | None
) -> tuple[list[Fraction], list[Coarsest]] | None:
    """The least sigma2 of each cell, and the kinds of cells with the least of theirs; None where there is none that is proved."""
    times = 2 if problem.release.relation == REPLACE else 1
    floors: list[Fraction] = []
    least: dict[tuple[int, int], Fraction] = {}
    for i, kind in enumerate(problem.kinds):
        floor = _own_floor(problem, i)
        if kind.kind == DISCRETE_GAUSSIAN:
            alone = coarsest if coarsest is not None else coarsest_alone(one.epsilon, one.delta, kind.sensitivity)
            if alone is None:
                return None
            floor = max(floor, alone)
            key = kind.sensitivity, times * kind.cells
            least[key] = min(least.get(key, floor), floor)
        floors.append(floor)
    return floors, [Coarsest(floor, *key) for key, floor in sorted(least.items())]


def _raised(problem: BudgetProblem, floors: list[Fraction], spread: Fraction) -> list[Fraction]:
    """The least sigma2 of each cell where R is at most `spread`, of which no cell can have more than all."""
    times = 2 if problem.release.relation == REPLACE else 1
    needed = [
        Fraction(0) if kind.kind == DISCRETE_LAPLACE else Fraction(times * kind.cells * kind.sensitivity**2) / spread
        for kind in problem.kinds
    ]
    return [max(floor, least) for floor, least in zip(floors, needed, strict=True)]


def _own_floor(problem: BudgetProblem, i: int) -> Fraction:
    """The least sigma2 that the requirements allow in a cell."""
    return 1 / problem.upper[i].value


def _by_floor(problem: BudgetProblem, floors: list[Fraction]) -> Floats:
    """The most of each unknown at which no cell is below its least sigma2."""
    most = np.full(problem.count, np.inf)
    np.minimum.at(most, problem.group, np.array([float(1 / f) for f in floors]) / problem.ratio)
    return most


def _dual(summed: SummedErrors, row: Floats, limit: float, high: Floats, floors: list[Fraction]) -> float:
    """The dual at the multiplier of the solution, with tangents to convex functions below the errors: linear in every unknown."""
    problem = summed.problem
    unknowns, prices = WaterFilling(summed, row[None, :], np.array([limit]), high=high).solved()
    price = float(prices[0]) if np.isfinite(prices[0]) else 0.0
    budgets = problem.budgets(unknowns)
    values, slopes = below(summed.measure, budgets, problem.kinds, floors)
    slope = problem.by_group(summed.weights * slopes) + price * row
    least = np.where(slope > 0, slope * (problem.low - unknowns), slope * (high - unknowns))
    total = float(summed.weights @ values) + price * float(row @ unknowns) + float(least.sum()) - price * limit
    return total - _SLACK * abs(total)


def below(measure: str, budgets: Floats, kinds: tuple[CellNoise, ...], floors: list[Fraction]) -> tuple[Floats, Floats]:
    """A convex function of the budget that is nowhere above the error while sigma2 is at least its floor, and its slope
    (Lemma 3).

    Of Laplace noise only the least error, at the largest budget, is taken.
    """
    values, slopes = np.empty_like(budgets), np.zeros_like(budgets)
    for i, kind in enumerate(kinds):
        x, s = float(budgets[i]), float(floors[i])
        if kind.kind == DISCRETE_LAPLACE:
            values[i] = errors(measure, np.array([1 / s]), [kind])[0][0]
            continue
        lost, total = (_lost(s), _theta(s)) if kind.kind == DISCRETE_GAUSSIAN else (0.0, 1.0)
        if measure == VARIANCE:
            values[i], slopes[i] = (1 - lost) / x, -(1 - lost) / x**2
        elif measure == ABSOLUTE and kind.kind == DISCRETE_GAUSSIAN:
            c = math.sqrt(2 / math.pi) / total if floors[i] >= _LARGEST_CONVEX else 0.0
            values[i] = c * (x**-0.5 - x**0.5 / 12 - x**1.5 / 69)
            slopes[i] = c * (-(x**-1.5) / 2 - x**-0.5 / 24 - x**0.5 / 46)
        else:
            c = math.sqrt(2 / math.pi) if measure == ABSOLUTE else QUANTILE if measure == MARGIN else 1.0
            c *= math.sqrt(1 - lost)
            values[i], slopes[i] = c * x**-0.5, -c / 2 * x**-1.5
    return values, slopes


def _lost(s: float) -> float:
    """At least the share of sigma2 by which the variance is below it, for every sigma2 from s on: 8 pi^2 s sum n^2 e^(-2
    pi^2 s n^2)."""
    if s < 0.06:
        return 1.0
    q = math.exp(-2 * math.pi**2 * s)
    return min(8 * math.pi**2 * s * q * (1 + 4 * q**3 / (1 - q)) * (1 + 1e-9), 1.0)


def _theta(s: float) -> float:
    """At least the sum of e^(-2 pi^2 s n^2) over all n, for every sigma2 from s on."""
    q = math.exp(-2 * math.pi**2 * s)
    return 1 + 2 * q / (1 - q**3) * (1 + 1e-9)


def _least_height(summed: SummedErrors, row: Floats, limit: float) -> float:
    """A height that costs more than the limit: errors fall in the budget, so that no design has a smaller one."""
    problem = summed.problem
    low, high = (math.log(summed.worst(end) + 1e-300) for end in (problem.high, problem.low))
    for _ in range(60):
        middle = (low + high) / 2
        costs = float(row @ summed.level(math.exp(middle))) > limit * (1 + _SLACK)
        low, high = (middle, high) if costs else (low, middle)
    return math.exp(low) * (1 - _SLACK)
