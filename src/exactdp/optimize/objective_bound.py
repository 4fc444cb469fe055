"""How good a design can be at most: a number below which no design that meets guarantee and requirements has its objective.

Designs are divided into boxes (Theorem 7 of docs/theory/optimization.md): in each one the guarantee limits the total more closely
(Theorem 5), the dual bounds the objective (Theorem 4), and what could still be better than the design found narrows the box.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from exactdp.census.cell_noise import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE
from exactdp.census.releases import Release
from exactdp.doubles import FORMULA_SLACK, SUM_SLACK, Floats
from exactdp.guarantees.calibration import MeetsMu, Target
from exactdp.guarantees.neighbours import REPLACE
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr
from exactdp.numerals import about, at_least
from exactdp.optimize.dual_bound import below, by_floor, coarsest_cells, dual_point, least_height, spread_row
from exactdp.optimize.guarantee import each_target
from exactdp.optimize.least_delta import largest_spread
from exactdp.optimize.missed_target import COARSEST_SHARE, is_out_of_reach, likely_share, misses_on, smooth_spread
from exactdp.optimize.noise_box import LEAST_SIGMA2, CellRange, NoiseBox
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.search import Aim

_SHARE = Fraction(
    1, 2
)  # of the coarsest sigma2 of a design, where the statement is about designs that are not much coarser
_GOOD_ENOUGH = 1e-3
_POOR = 0.02  # a gap from which on designs that are not much coarser are asked about by themselves
_MOST_BOXES = 60
_PATIENCE, _GAINED = 12, 0.1  # after so many boxes so much of the gap must be closed, else dividing is given up
_NARROWINGS = 3
_MOST_CELLS = 150  # unknowns of a problem whose designs are divided
_NARROW = 1.01  # quotient of a box's ends below which dividing gains nothing
_HALVINGS = 24
_SLACK = 10 * FORMULA_SLACK


@dataclass(frozen=True)
class ObjectiveBound:
    """Proved: no design that meets guarantee and requirements has an objective below `value`.

    Where `coarsest` is given, that is said of the designs without noise of a smaller sigma2 only.
    """

    _repr_html_ = repr_html
    __repr__ = exact_repr

    value: float
    coarsest: Fraction | None = None

    def __str__(self) -> str:
        among = "" if self.coarsest is None else f" whose noise has nowhere a sigma2 below {about(self.coarsest)}"
        return f"no design{among} has less than {at_least(self.value)}"


def objective_bound(
    problem: BudgetProblem, wanted: Target, aim: Aim, design: Release, value: float
) -> ObjectiveBound | None:
    """The best bound of those that can be proved: of all designs where that is nearly as good, else of those that are not much
    coarser than the given one; `value` is the objective of the given one."""
    if () not in problem.release.bypassed.values():
        return None
    found = [_bound(problem, wanted, aim, value, None)]
    if found[0] is None or found[0].value < value * (1 - _POOR):
        noise = [1 / design.table[level][query] for level, query in problem.cells]
        found.append(_bound(problem, wanted, aim, value, min(noise) * _SHARE))
    proved = [one for one in found if one is not None]
    return max(proved, key=lambda one: one.value) if proved else None


def _bound(
    problem: BudgetProblem, wanted: Target, aim: Aim, value: float, coarsest: Fraction | None
) -> ObjectiveBound | None:
    """For all designs, or for those that have nowhere a smaller sigma2."""
    targets = [one for one in each_target(wanted) if not is_out_of_reach(one)]
    classes = [(one, found) for one in targets if (found := coarsest_cells(problem, one, coarsest)) is not None]
    if not classes:
        return None
    high = problem.high
    for _, (floors, _) in classes:
        high = np.minimum(high, by_floor(problem, floors) * (1 + _SLACK))
    if (high < problem.low).any():
        return None
    limits = [most for one, (_, cells) in classes if (most := largest_spread(cells, one)) is not None]
    row = spread_row(problem)
    limit = min([float(row @ high), *(float(one) for one in limits)]) * (1 + _SLACK)
    division = Division(problem, aim, value, tuple(one for one, _ in classes), row)
    return ObjectiveBound(division.bound(DesignBox(problem.low, high, limit, 0.0)), coarsest)


@dataclass(frozen=True, order=False)
class DesignBox:
    """Designs whose unknowns are between two ends; those of them that meet the guarantee have R of at most `limit`, and those
    that are better than the design found an objective of at least `bound`."""

    low: Floats
    high: Floats
    limit: float
    bound: float

    @property
    def is_empty(self) -> bool:
        """Whether no design is in it."""
        return bool((self.low > self.high).any())


@dataclass(frozen=True)
class Division:
    """The search for a bound by dividing boxes, the one with the least bound first."""

    problem: BudgetProblem
    aim: Aim
    value: float
    targets: tuple[Target, ...]
    row: Floats

    def bound(self, root: DesignBox) -> float:
        """At most the objective of every design of the box that meets the guarantee; at most `value`."""
        first = self.narrowed(root)
        if first is None:
            return self.value
        boxes, number = [(first.bound, 0, first)], 0
        most = _MOST_BOXES if self.problem.count <= _MOST_CELLS else 0
        while boxes and number < most and boxes[0][0] < self.value * (1 - _GOOD_ENOUGH):
            parts = self._parts(boxes[0][2])
            closed = (boxes[0][0] - first.bound) / (self.value - first.bound)
            if not parts or (number >= _PATIENCE and closed < _GAINED):
                break
            heapq.heappop(boxes)
            for part in parts:
                number += 1
                if (found := self.narrowed(part)) is not None:
                    heapq.heappush(boxes, (found.bound, number, found))
        return min([self.value, *(bound for bound, _, _ in boxes)])

    def _parts(self, box: DesignBox) -> list[DesignBox]:
        """Two halves in the budget of the coarsest cell whose ends are apart. Heuristic: affects tightness only."""
        discrete = [i for i, kind in enumerate(self.problem.kinds) if kind.kind == DISCRETE_GAUSSIAN]
        most = self.problem.budgets(box.high)
        for i in sorted(discrete, key=lambda i: -float(most[i])):
            g = int(self.problem.group[i])
            if box.high[g] > box.low[g] * _NARROW:
                middle = math.sqrt(box.low[g] * box.high[g])
                lower, upper = box.high.copy(), box.low.copy()
                lower[g], upper[g] = middle, middle
                return [
                    DesignBox(box.low, lower, box.limit, box.bound),
                    DesignBox(upper, box.high, box.limit, box.bound),
                ]
        return []

    def narrowed(self, box: DesignBox) -> DesignBox | None:
        """The box without what is proved to be worse than the design found or to miss the guarantee; None if nothing is left."""
        for _ in range(_NARROWINGS):
            before = box.bound
            for step in (self._within_limit, self._limited, self._within_limit, self._better):
                found = step(box)
                if found is None or found.is_empty:
                    return None
                box = found
            if box.bound - before < _GOOD_ENOUGH / 10 * self.value or box.bound >= self.value * (1 - _GOOD_ENOUGH):
                break
        return box

    def _within_limit(self, box: DesignBox) -> DesignBox | None:
        """No cell has more than what the least of the others leave of R."""
        least = float(self.row @ box.low) * (1 - SUM_SLACK)
        if least > box.limit:
            return None
        costs = self.row > 0
        left = (box.limit - least + self.row[costs] * box.low[costs] * (1 + SUM_SLACK)) / self.row[costs]
        high = box.high.copy()
        high[costs] = np.minimum(high[costs], left * (1 + SUM_SLACK))
        return DesignBox(box.low, high, min(box.limit, float(self.row @ high) * (1 + SUM_SLACK)), box.bound)

    def _limited(self, box: DesignBox) -> DesignBox | None:
        """A limit of R that is closer, by Theorem 5."""
        noise = self._noise(box)
        if noise is None:
            return box
        limit = min(_closer(one, box.limit, noise) for one in self.targets)
        return DesignBox(box.low, box.high, limit, box.bound)

    def _noise(self, box: DesignBox) -> NoiseBox | None:
        times = 2 if self.problem.release.relation == REPLACE else 1
        low, high = (self.problem.budgets(end) for end in (box.low, box.high))
        cells, smooth = [], 0.0
        for i, kind in enumerate(self.problem.kinds):
            if kind.kind == DISCRETE_LAPLACE:
                continue
            if kind.kind != DISCRETE_GAUSSIAN:
                smooth += times * kind.cells * kind.sensitivity**2 * float(low[i]) * (1 - SUM_SLACK)
                continue
            least = (1 - SUM_SLACK) / float(high[i])
            if least < LEAST_SIGMA2:
                return None
            cells.append(CellRange(least, (1 + SUM_SLACK) / float(low[i]), kind.sensitivity, times * kind.cells))
        return NoiseBox(cells, smooth)

    def _better(self, box: DesignBox) -> DesignBox | None:
        """A bound of the objective, and ends beyond which it is above that of the design found."""
        errors = self.aim.errors
        if self.aim.worst:
            height = least_height(errors, self.row, box.limit, box.low)
            low = np.maximum(box.low, errors.level(self.value * (1 + SUM_SLACK)) * (1 - SUM_SLACK))
            return DesignBox(low, box.high, box.limit, max(box.bound, height))
        found = dual_point(errors, self.row, box.limit, box.low, box.high)
        if found.value >= self.value:
            return None
        room = (self.value + found.price * box.limit) * (1 + SUM_SLACK) - found.least.sum() + found.least
        low, high = self._level_set(box, found.price, room)
        return DesignBox(low, high, box.limit, max(box.bound, found.value))

    def _level_set(self, box: DesignBox, price: float, room: Floats) -> tuple[Floats, Floats]:
        """The ends between which each group's part of the sum, with what it costs at the price, is within its room: a convex
        function, whose ends are found by bisection from its least point outward."""
        errors, problem = self.aim.errors, self.problem
        most = problem.budgets(box.high)

        def at(unknowns: Floats) -> tuple[Floats, Floats]:
            values, slopes = below(errors.measure, problem.budgets(unknowns), problem.kinds, most)
            sums = np.bincount(problem.group, errors.weights * values, problem.count) + price * self.row * unknowns
            return sums, problem.by_group(errors.weights * slopes) + price * self.row

        ends = np.log(box.low), np.log(box.high)
        left, right = ends
        for _ in range(_HALVINGS):
            middle = (left + right) / 2
            falls = at(np.exp(middle))[1] < 0
            left, right = np.where(falls, middle, left), np.where(falls, right, middle)
        result = []
        for end in ends:
            inside, outside = (left + right) / 2, end
            for _ in range(_HALVINGS):
                middle = (inside + outside) / 2
                fits = at(np.exp(middle))[0] <= room
                inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
            result.append(np.exp(np.where(at(np.exp(end))[0] <= room, end, outside)))
        return np.maximum(result[0] * (1 - SUM_SLACK), box.low), np.minimum(result[1] * (1 + SUM_SLACK), box.high)


def _closer(one: Target, limit: float, noise: NoiseBox) -> float:
    """An R above which, up to the limit, no composition of the box meets the target; the limit itself where none is proved."""
    smooth = smooth_spread(one)
    if float(smooth) >= limit or isinstance(one, MeetsMu):
        return min(limit, float(smooth) * (1 + _SLACK)) if isinstance(one, MeetsMu) else limit

    def excess(low: Fraction, _: Fraction, tilt: Fraction) -> arb:
        return noise.excess(float(low) * (1 - _SLACK), tilt)

    share, end = likely_share(one, smooth, excess), Fraction(limit)
    while share < COARSEST_SHARE and (start := smooth * (1 + Fraction(share))) < end:
        if misses_on(one, start, end, (start - smooth) / 4, excess):
            return float(start) * (1 + _SLACK)
        share *= 1.3
    return limit
