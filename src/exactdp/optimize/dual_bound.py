"""How good a design can be at most: the dual of the convex problem that a limit on the total leaves.

The guarantee bounds R = 2 rho of the full path with itself; R is linear in the budgets; and the errors are above convex functions
of them. The dual of that convex problem, at any multiplier, is a bound of the objective (docs/theory/optimization.md, Theorem 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.census.cell_noise import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, CellNoise
from exactdp.doubles import FORMULA_SLACK, Floats
from exactdp.guarantees.calibration import MeetsEpsilonDelta, MeetsMu, MeetsTradeOff, Target
from exactdp.guarantees.neighbours import REPLACE
from exactdp.numbers import rational
from exactdp.optimize.accuracy import ABSOLUTE, MARGIN, QUANTILE, VARIANCE, errors
from exactdp.optimize.least_delta import Coarsest, coarsest_alone
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.search import Aim
from exactdp.optimize.water_filling import SummedErrors, WaterFilling

_LARGEST_LOG, _PRICES = 300.0, 60  # of a price, and halvings of it
_CLOSE = 1e-7  # of the logarithm of a height: what a bound may lose
_FALLS_FROM = 0.06  # sigma2 from which on the loss of variance falls
_LARGEST_CONVEX = 1 / 8  # sigma2 from which on the bound of the mean absolute error is convex in the budget
_SLACK = 10 * FORMULA_SLACK


def least_spread(problem: BudgetProblem, aim: Aim, cap: float, coarsest: Fraction) -> float:
    """At most the R of every design whose objective is at most `cap`, with no sigma2 below `coarsest`: the same dual, of
    the total."""
    row = spread_row(problem)
    if aim.worst:  # errors fall in the budget
        return float(row @ aim.errors.level(cap * (1 + _SLACK))) * (1 - _SLACK)
    floors = [
        max(own_floor(problem, i), coarsest if kind.kind == DISCRETE_GAUSSIAN else Fraction(0))
        for i, kind in enumerate(problem.kinds)
    ]
    high = np.maximum(np.minimum(problem.high, by_floor(problem, floors)), problem.low)
    unknowns, price = WaterFilling(aim.errors, row[None, :], np.ones(1), high=high).cheapest(cap)
    most = problem.budgets(high)
    values, slopes = below(aim.errors.measure, problem.budgets(unknowns), problem.kinds, most)
    slope = row + problem.by_group(aim.errors.weights * slopes) / price
    least = np.where(slope > 0, slope * (problem.low - unknowns), slope * (high - unknowns))
    total = float(row @ unknowns) + (float(aim.errors.weights @ values) - cap) / price + float(least.sum())
    return total - _SLACK * (abs(total) + cap / price)


def spread_row(problem: BudgetProblem) -> Floats:
    """R of the full path with itself, or alone, as a linear function of the unknowns; Laplace noise is left out, which only
    lowers delta."""
    times = 2.0 if problem.release.relation == REPLACE else 1.0
    gaussian = np.array([0.0 if kind.kind == DISCRETE_LAPLACE else 1.0 for kind in problem.kinds])
    weights = np.array([float(kind.cells * kind.sensitivity**2) for kind in problem.kinds])
    return problem.by_group(times * gaussian * weights)


def coarsest_cells(
    problem: BudgetProblem, one: Target, coarsest: Fraction | None
) -> tuple[list[Fraction], list[Coarsest]] | None:
    """The least sigma2 of each cell, and the kinds of cells with the least of theirs; None where there is none that is proved."""
    times = 2 if problem.release.relation == REPLACE else 1
    floors: list[Fraction] = []
    least: dict[tuple[int, int], Fraction] = {}
    for i, kind in enumerate(problem.kinds):
        floor = own_floor(problem, i)
        if kind.kind == DISCRETE_GAUSSIAN:
            alone = _alone(one, kind.sensitivity, times * kind.cells)
            if coarsest is not None:
                alone = max(coarsest, alone or coarsest)
            if alone is None:
                return None
            floor = max(floor, alone)
            key = kind.sensitivity, times * kind.cells
            least[key] = min(least.get(key, floor), floor)
        floors.append(floor)
    return floors, [Coarsest(floor, *key) for key, floor in sorted(least.items())]


def _alone(one: Target, sensitivity: int, copies: int) -> Fraction | None:
    """A sigma2 below which one discrete Gaussian alone misses the target (Lemma 5); of a beta by the epsilon and delta that it
    implies."""
    if isinstance(one, MeetsMu):  # 2 rho is at most mu^2
        return copies * sensitivity**2 / one.mu**2
    if isinstance(one, MeetsTradeOff):
        above = rational(math.log((1 - one.beta) / one.alpha) * (1 + _SLACK), "epsilon")
        return coarsest_alone(max(above, Fraction(0)), 1 - one.beta / (1 - one.alpha), sensitivity, copies)
    assert isinstance(one, MeetsEpsilonDelta)
    return coarsest_alone(one.epsilon, one.delta, sensitivity, copies)


def own_floor(problem: BudgetProblem, i: int) -> Fraction:
    """The least sigma2 that the requirements allow in a cell."""
    return 1 / problem.upper[i].value


def by_floor(problem: BudgetProblem, floors: list[Fraction]) -> Floats:
    """The most of each unknown at which no cell is below its least sigma2."""
    most = np.full(problem.count, np.inf)
    np.minimum.at(most, problem.group, np.array([float(1 / f) for f in floors]) / problem.ratio)
    return most


@dataclass(frozen=True)
class DualPoint:
    """The dual at one multiplier, in a box: linear in every unknown."""

    value: float
    """No design of the box within the limit has a smaller sum of errors (Theorem 4)."""
    price: float
    least: Floats
    """Of each group: the least of its part of the sum and of what it costs at the price."""


def dual_point(summed: SummedErrors, row: Floats, limit: float, low: Floats, high: Floats) -> DualPoint:
    """The dual near the multiplier of the solution, with tangents to convex functions below the errors."""
    problem = summed.problem
    unknowns, price = _filled(summed, row, limit, low, high)
    values, slopes = below(summed.measure, problem.budgets(unknowns), problem.kinds, problem.budgets(high))
    slope = problem.by_group(summed.weights * slopes) + price * row
    away = np.where(slope > 0, slope * (low - unknowns), slope * (high - unknowns))
    least = np.bincount(problem.group, summed.weights * values, problem.count) + price * row * unknowns + away
    total = float(least.sum()) - price * limit
    return DualPoint(total - _SLACK * (abs(total) + price * limit), price, least)


def _filled(summed: SummedErrors, row: Floats, limit: float, low: Floats, high: Floats) -> tuple[Floats, float]:
    """About the unknowns that spend the limit best, and their price: errors as powers of the budget, -1 or -1/2.

    Heuristic: any point and any price are valid.
    """
    problem = summed.problem
    power = 1.0 if summed.measure == VARIANCE else 0.5
    values = below(summed.measure, problem.budgets(high), problem.kinds, problem.budgets(high))[0]
    height = np.bincount(problem.group, summed.weights * np.maximum(values, 0.0), problem.count) * high**power
    costs = row > 0

    def at(log_price: float) -> Floats:
        found = high.copy()
        found[costs] = (power * height[costs] / (math.exp(log_price) * row[costs])) ** (1 / (power + 1))
        inside: Floats = np.clip(found, low, high)
        return inside

    first, last = -_LARGEST_LOG, _LARGEST_LOG
    for _ in range(_PRICES):
        middle = (first + last) / 2
        first, last = (middle, last) if float(row @ at(middle)) > limit else (first, middle)
    return at(last), math.exp(last) if float(row @ high) > limit else 0.0


def below(measure: str, budgets: Floats, kinds: tuple[CellNoise, ...], most: Floats) -> tuple[Floats, Floats]:
    """A convex function of the budget, nowhere above the error while the budget is at most `most`, and its slope (Lemma 3).

    Of Laplace noise only the least error, at the largest budget, is taken.
    """
    x, s = budgets, 1 / most
    names = np.array([kind.kind for kind in kinds])
    discrete, laplace = names == DISCRETE_GAUSSIAN, names == DISCRETE_LAPLACE
    lost = np.where(discrete, _lost(s), 0.0)
    if measure == VARIANCE:
        values, slopes = (1 - lost) / x, -(1 - lost) / x**2
    elif measure == ABSOLUTE:
        c = math.sqrt(2 / math.pi) / np.where(discrete, _theta(s), 1.0) * (~discrete | (s >= _LARGEST_CONVEX))
        values = c * (x**-0.5 - discrete * (x**0.5 / 12 + x**1.5 / 69))
        slopes = c * (-(x**-1.5) / 2 - discrete * (x**-0.5 / 24 + x**0.5 / 46))
    else:
        c = (QUANTILE if measure == MARGIN else 1.0) * np.sqrt(1 - lost)
        values, slopes = c * x**-0.5, -c / 2 * x**-1.5
    if laplace.any():
        values[laplace] = errors(measure, most[laplace], [kinds[i] for i in np.flatnonzero(laplace)])[0]
        slopes[laplace] = 0.0
    return values, slopes


def _lost(s: Floats) -> Floats:
    """At least the share of sigma2 by which the variance is below it, for every sigma2 from s on: 8 pi^2 s sum n^2 e^(-2
    pi^2 s n^2)."""
    q = np.exp(-2 * math.pi**2 * s)
    found = 8 * math.pi**2 * s * q * (1 + 4 * q**3 / (1 - q)) * (1 + 1e-9)
    least: Floats = np.where(s < _FALLS_FROM, 1.0, np.minimum(found, 1.0))
    return least


def _theta(s: Floats) -> Floats:
    """At least the sum of e^(-2 pi^2 s n^2) over all n, for every sigma2 from s on."""
    q = np.exp(-2 * math.pi**2 * s)
    found: Floats = 1 + 2 * q / (1 - q**3) * (1 + 1e-9)
    return found


def least_height(summed: SummedErrors, row: Floats, limit: float, least: Floats) -> float:
    """A height that costs more than the limit: errors fall in the budget, so that no design has a smaller one."""
    problem = summed.problem
    low, high = (math.log(summed.worst(end) + 1e-300) for end in (problem.high, problem.low))
    while high - low > _CLOSE:
        middle = (low + high) / 2
        costs = float(row @ np.maximum(summed.level(math.exp(middle)), least)) > limit * (1 + _SLACK)
        low, high = (middle, high) if costs else (low, middle)
    return math.exp(low) * (1 - _SLACK)
