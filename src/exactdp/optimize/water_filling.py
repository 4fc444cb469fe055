"""Spreading budget over cells: the convex problem behind an optimal design, solved by its multipliers.

Minimise the sum of w_c e(x_c) over cells with the unknowns between their bounds and some linear costs within their limits. At
given multipliers every unknown is found by itself (where its bucket is full); one multiplier is found by bisection, several by
ascent of the dual. Heuristic: what is found here is searched, and proved elsewhere; but for `level`, on which bounds stand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactdp.doubles import UNDERFLOW, Floats, root
from exactdp.optimize.accuracy import errors
from exactdp.optimize.problem import BudgetProblem

_HALVINGS = 46  # of the logarithm of an unknown, 160 at most: to 1e-12 of itself
_SETTLED = 2e-12  # of the logarithm of an unknown
_LARGEST_LOG = 300.0
_CLOSE = 1e-11  # of the logarithm of a cost


@dataclass(frozen=True)
class SummedErrors:
    """A weighted sum of errors over the cells of a problem."""

    problem: BudgetProblem
    measure: str
    weights: Floats

    def at(self, unknowns: Floats) -> float:
        """The sum."""
        return float(self.weights @ errors(self.measure, self.problem.budgets(unknowns), self.problem.kinds)[0])

    def slopes(self, unknowns: Floats) -> Floats:
        """Its derivatives by the unknowns."""
        return self.problem.by_group(
            self.weights * errors(self.measure, self.problem.budgets(unknowns), self.problem.kinds)[1]
        )

    def level(self, height: float) -> Floats:
        """The least unknowns, within their bounds, with which no weighted error is above `height`, or more by 2e-12 of themselves
        at most.

        Newton's method for the logarithm of the error by that of the unknown, between ends that close in; every fourth step
        halves.
        """
        low, high = np.log(self.problem.low), np.log(self.problem.high)
        least = self._over(low, height)[0] <= 0
        high = np.where(least, low, high)
        low = np.where(self._over(high, height)[0] > 0, high, low)
        at = (low + high) / 2
        for step in range(4 * _HALVINGS):  # enough for proofs (dual_bound.py) whatever Newton's steps do
            over, slope = self._over(at, height)
            going = high - low > _SETTLED
            low, high = np.where(going & (over > 0), at, low), np.where(going & (over <= 0), at, high)
            if (high - low <= _SETTLED).all():
                break
            # an end that is close closes in from the other side
            nearer = np.clip(at - over / slope, low + _SETTLED / 2, high - _SETTLED / 2)
            at = nearer if step % 4 < 3 else (low + high) / 2
        return np.exp(high)

    def _over(self, logs: Floats, height: float) -> tuple[Floats, Floats]:
        """For unknowns by their logarithms: how far the logarithm of the largest error of each is above that of the height, and
        its derivative."""
        problem, counted = self.problem, np.flatnonzero(self.weights > 0)
        budgets, group = problem.budgets(np.exp(logs)), problem.group[counted]
        found, slopes = (part[counted] for part in errors(self.measure, budgets, problem.kinds))
        found = np.maximum(found, UNDERFLOW)
        each, steep = (
            np.log(found) + np.log(self.weights[counted]) - math.log(max(height, UNDERFLOW)),
            slopes * budgets[counted] / found,
        )
        over, slope = np.full(problem.count, -np.inf), np.full(problem.count, -1.0)
        np.maximum.at(over, group, each)
        largest = (each == over[group]) & (steep < 0)
        slope[group[largest]] = steep[largest]
        return over, slope

    def worst(self, unknowns: Floats) -> float:
        """The largest weighted error."""
        found = errors(self.measure, self.problem.budgets(unknowns), self.problem.kinds)[0] * self.weights
        return float(found.max())


@dataclass(frozen=True)
class WaterFilling:
    """min first(y) subject to costs @ y <= limits and others(y) <= their caps, low <= y <= high."""

    first: SummedErrors
    costs: Floats
    limits: Floats
    others: Sequence[tuple[SummedErrors, float]] = ()
    low: Floats | None = None
    high: Floats | None = None
    """Bounds of the unknowns other than the problem's."""

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        problem = self.first.problem
        high = problem.high if self.high is None else np.clip(self.high, problem.low, problem.high)
        low = problem.low if self.low is None else np.clip(self.low, problem.low, high)
        return np.log(low), np.log(high)

    def given(self, prices: Floats, shares: Floats) -> Floats:
        """The unknowns at given multipliers of the costs and of the other sums: where the slope is 0, or at a bound."""
        low, high = self._ends
        price = prices @ self.costs
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            at = np.exp(middle)
            slope = self.first.slopes(at) + price
            for share, (other, _) in zip(shares, self.others, strict=True):
                slope = slope + share * other.slopes(at)
            low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
        return np.exp((low + high) / 2)

    def solved(self) -> tuple[Floats, Floats]:
        """The unknowns, and the multipliers of the costs."""
        if len(self.limits) == 1 and not self.others:
            return self._by_bisection()
        return self._by_dual()

    def _by_bisection(self) -> tuple[Floats, Floats]:
        row, limit = self.costs[0], float(self.limits[0])
        none = np.empty(0)
        known: dict[float, Floats] = {}

        def over(log_price: float) -> float:
            known[log_price] = self.given(np.array([np.exp(log_price)]), none)
            return float(np.log(row @ known[log_price] / limit))

        low_end, high_end = (np.exp(end) for end in self._ends)
        if row @ high_end <= limit:
            return high_end, np.zeros(1)
        if row @ low_end >= limit:
            return low_end, np.array([np.inf])
        start = float(np.log(-(self.first.slopes(low_end)).min() / row.max() + 1e-300))
        low, high = start - 1.0, start
        while over(high) > 0 and high < _LARGEST_LOG:
            high += 4.0
        step = 4.0
        while over(low) < 0 and low > -_LARGEST_LOG:
            high, low, step = low, low - step, 2 * step
        at = root(over, low, high, enough=_CLOSE) if over(low) > 0 > over(high) else high
        return self.given(np.array([np.exp(at)]), none), np.array([np.exp(at)])

    def cheapest(self, cap: float) -> tuple[Floats, float]:
        """The unknowns of the least cost (there is one) with which the sum is at most `cap`, and the price of the cost."""
        none = np.empty(0)

        def over(log_price: float) -> float:
            return float(np.log(self.first.at(self.given(np.array([np.exp(log_price)]), none)) / cap))

        low, high = -_LARGEST_LOG, _LARGEST_LOG
        while high - low > 1e-11 * _LARGEST_LOG:
            middle = (low + high) / 2
            low, high = (low, middle) if over(middle) > 0 else (middle, high)
        return self.given(np.array([np.exp(low)]), none), float(np.exp(low))

    def _by_dual(self) -> tuple[Floats, Floats]:
        """By ascent of the concave dual in the multipliers, each in units of what it costs."""
        from scipy.optimize import minimize

        several = len(self.limits)
        alone = [
            WaterFilling(self.first, self.costs[k : k + 1], self.limits[k : k + 1], low=self.low).solved()
            for k in range(several)
        ]
        tightest = max(range(several), key=lambda k: float(np.max(self.costs @ alone[k][0] / self.limits)) * -1)
        start = np.full(several + len(self.others), 1e-3)
        finite = alone[tightest][1][0]
        unit = finite * float(self.limits[tightest]) if np.isfinite(finite) and finite > 0 else 1.0
        start[tightest] = 1.0
        scales = np.concatenate([unit / self.limits, [unit / cap for _, cap in self.others]])

        def dual(multipliers: Floats) -> tuple[float, Floats]:
            true = multipliers * scales
            y = self.given(true[:several], true[several:])
            over = np.concatenate([self.costs @ y - self.limits, [o.at(y) - cap for o, cap in self.others]])
            return -(self.first.at(y) + float(true @ over)) / unit, -over * scales / unit

        found = minimize(
            dual,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(start),
            options={"maxiter": 200, "ftol": 1e-14, "gtol": 1e-10},
        )
        true = found.x * scales
        return self.given(true[:several], true[several:]), true[:several]
