"""The search for the best unknowns: water-filling on the total first, then steps with exact slopes of the nearly worst pairs.

Heuristic: what is found here is proved elsewhere (docs/theory/optimization.md). One step solves the convex problem in which
log delta of
each nearly worst pair is replaced by its linear part; where noise is fine the first step is the last, for there only the total
counts.
Where noise is coarse delta ripples, steps are halved when they do not help, and a pattern search has the last word.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from exactdp.cache import Recent
from exactdp.census.releases import Release
from exactdp.doubles import Floats
from exactdp.optimize.guarantee import Guarantee, Look, spread_slopes
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.water_filling import SummedErrors, WaterFilling

_STEPS = 10
_FIRST_STEPS, _SETTLED = 4, 1e-5  # by the total alone, and what the last of them may move
_CLOSE = 2e-7  # of log delta, and of the objective: nothing is gained beyond
_DIGITS = 10  # of the budgets that are tried
_SCALINGS = 12
_SHAPED = 3e-3  # differences of slopes from which steps are worth while: the gain is about their square
_COARSE = 16.0  # sigma2 below which delta ripples, and a pattern search is worth while
_TRIALS, _PATIENCE = 160, 30  # of it, and of those that do not help in a row
_LARGEST_PATTERN = 12  # unknowns of it
_VERY_COARSE = 2.0  # sigma2 below which budgets are tried beyond those that miss the guarantee
_FACTORS = np.geomspace(2.0, 1.004, 60)  # of them, along lines of some shapes
_SHAPES, _SPREAD = 10, 0.08
_SEED = 20
"""Of the directions that the pattern search tries: the same search every time."""


@dataclass(frozen=True)
class Aim:
    """What is small: the sum or the largest of errors, and sums that came before and keep their caps."""

    errors: SummedErrors
    worst: bool = False
    before: tuple[tuple[SummedErrors, float], ...] = ()
    low: Floats | None = None
    """Bounds that earlier aims of the largest error leave."""

    def at(self, unknowns: Floats) -> float:
        """The objective."""
        return self.errors.worst(unknowns) if self.worst else self.errors.at(unknowns)

    def solved(self, costs: Floats, limits: Floats) -> Floats:
        """The best unknowns within linear costs."""
        if self.worst:
            return self._level(costs, limits)
        return WaterFilling(self.errors, costs, limits, self.before, self.low).solved()[0]

    def _level(self, costs: Floats, limits: Floats) -> Floats:
        """The least height of all errors that the costs allow; what is left over is not spent."""
        problem = self.errors.problem
        floor = problem.low if self.low is None else self.low

        def unknowns(height: float) -> Floats:
            found = np.maximum(self.errors.level(height), floor)
            for summed, cap in self.before:  # the cheapest way to keep an earlier sum, from there on
                if summed.at(found) > cap:
                    found = WaterFilling(summed, costs.mean(axis=0)[None, :], np.ones(1), low=found).cheapest(cap)[0]
            return found

        low, high = (np.log(self.errors.worst(end) + 1e-300) for end in (problem.high, floor))
        for _ in range(60 if not self.before else 30):
            middle = (low + high) / 2
            fits = bool((costs @ unknowns(np.exp(middle)) <= limits).all())
            low, high = (low, middle) if fits else (middle, high)
        return unknowns(np.exp(high))


@dataclass
class Search:
    """The search for one aim under one guarantee."""

    problem: BudgetProblem
    guarantee: Guarantee
    aim: Aim
    _best: tuple[float, Floats] | None = field(default=None)
    _seen: Recent[Release, Look] = field(default_factory=lambda: Recent(8))

    def found(self, start: Floats | None = None, thorough: bool = True) -> Floats:
        """The best unknowns that were found to meet the guarantee; where none were, the last ones."""
        at = self._first(start)
        # the room is known best near to where it is used: a factor would move what is at its bounds
        for _ in range(_FIRST_STEPS):
            last, at = at, self._first(at)
            if np.abs(np.log(at / last)).max() < _SETTLED:
                break
        return self.improved(at, thorough)

    def improved(self, start: Floats, thorough: bool = True) -> Floats:
        """The same from unknowns that are good already; with a pattern search where noise is coarse, if that is worth while."""
        at = self.scaled(start)
        value = self._note(at)
        shape = self._shape(at)
        for step in range(_STEPS if shape > _SHAPED else 0):
            target = self._solved(at, smooth=step < _STEPS // 2)
            if value - self.aim.at(target) <= _CLOSE * value and np.abs(np.log(target / at)).max() < 1e-3:
                break
            at = self.scaled(target)
            value = self._note(at)
        coarse = thorough and bool(self.problem.budgets(at).max() > 1 / _COARSE)
        if coarse and self._best is not None and self.problem.count <= _LARGEST_PATTERN:
            self._pattern()
        return at if self._best is None else self._best[1]

    def look(self, unknowns: Floats) -> Look:
        """What is known of a design; of the last few it is kept."""
        design = self.design(unknowns)
        return self._seen.get(design, lambda: self.guarantee.look(design))

    def is_very_coarse(self, unknowns: Floats) -> bool:
        """Whether delta may fall where budgets rise."""
        return bool(self.problem.budgets(unknowns).max() > 1 / _VERY_COARSE)

    def beyond(self, start: Floats) -> Floats:
        """The same from unknowns that are good already, where noise is very coarse also beyond budgets that miss the guarantee.

        Delta is not monotone there, and larger budgets may meet the guarantee again.
        """
        if not self.is_very_coarse(start):
            return start
        self._note(start)
        if self._best is None:
            return start
        value, draw = self._best[0], np.random.default_rng(_SEED)
        for k in range(_SHAPES + len(start)):
            at = self._best[1]
            if k < _SHAPES:
                raised = at * np.exp(draw.standard_normal(len(at)) * (_SPREAD if k else 0.0))
                lines = np.outer(_FACTORS, raised)
            else:
                lines = np.where(np.arange(len(at)) == k - _SHAPES, np.outer(_FACTORS, at), at)
            for other in np.clip(lines, self._low, self.problem.high):
                if self.aim.at(other) < self._best[0] * (1 - 1e-6) and self._meets(other):
                    self._best = self.aim.at(other), other
                    break
        if self._best[0] < value and self.problem.count <= _LARGEST_PATTERN:
            self._note(self.scaled(self._best[1]))
            self._pattern()
        return self._best[1]

    def better(self, one: Floats, other: Floats) -> Floats:
        """The second, a little less where it needs be, if it meets the guarantee with a smaller objective than the first."""
        other = np.clip(self.scaled(other), self._low, self.problem.high)
        return other if self._meets(other) and self.aim.at(other) < self.aim.at(one) else one

    def value(self, unknowns: tuple[Fraction, ...]) -> float:
        """The objective of exact unknowns; infinite where an earlier aim has got worse than its cap."""
        at = np.array([float(y) for y in unknowns])
        return np.inf if self._breaks(at) else self.aim.at(at)

    def excess(self, unknowns: tuple[Fraction, ...]) -> float:
        """By how much log delta of exact unknowns is above the target."""
        return self.guarantee.look(self.problem.design(unknowns)).excess

    def _shape(self, at: Floats) -> float:
        """By how much the cost of budget differs from cell to cell, beyond what the total says."""
        free = self.problem.low[self.problem.group] < self.problem.high[self.problem.group]
        cells = self.problem.cells
        quotient = (self.look(at).worst_slopes(cells) / spread_slopes(self.problem.release, cells))[free]
        return float(quotient.max() / quotient.min() - 1) if len(quotient) else 0.0

    def _note(self, at: Floats) -> float:
        value = self.aim.at(at)
        if self._meets(at) and (self._best is None or value < self._best[0]):
            self._best = value, at
        return value

    def _first(self, start: Floats | None) -> Floats:
        """By the total alone."""
        at = self.problem.start() if start is None else np.clip(start, self.problem.low, self.problem.high)
        slopes = self.problem.by_group(spread_slopes(self.problem.release, self.problem.cells))[None, :]
        limits = np.maximum(slopes @ at * self.look(at).room, slopes @ self._low * (1 + 1e-9))
        return self.aim.solved(slopes, limits)

    def _solved(self, at: Floats, smooth: bool) -> Floats:
        found = self.look(at).constraints(self.problem.cells, smooth)
        costs = np.array([self.problem.by_group(one.slopes) for one in found])
        limits = np.array([float(row @ at) * one.room for row, one in zip(costs, found, strict=True)])
        return self.aim.solved(costs / limits[:, None], np.maximum(1.0, costs @ self._low / limits * (1 + 1e-9)))

    def design(self, unknowns: Floats) -> Release:
        """The release with these unknowns, to ten digits."""
        low, high = self.problem.bounds
        exact = (min(max(Fraction(f"{y:.{_DIGITS}g}"), a), b) for y, a, b in zip(unknowns, low, high, strict=True))
        return self.problem.design(tuple(exact))

    @property
    def _low(self) -> Floats:
        return self.problem.low if self.aim.low is None else self.aim.low

    def scaled(self, unknowns: Floats) -> Floats:
        """The unknowns times the factor at which the guarantee is just met, as far as their bounds allow.

        By the Gaussian's slope of log delta in the logarithm of the spread, corrected by what is found.
        """

        def at(log_factor: float) -> Floats:
            found: Floats = np.clip(unknowns * np.exp(log_factor), self._low, self.problem.high)
            return found

        where, inside, outside = 0.0, -np.inf, np.inf
        best = at(where)
        for _ in range(_SCALINGS):
            look = self.look(at(where))
            over = look.excess
            if over <= 0:
                if where > inside:
                    inside, best = where, at(where)
                if over > -_CLOSE * 10:
                    break
            else:
                outside = min(outside, where)
            step = float(np.log(look.room))
            where += step - 1e-9 if abs(step) > 1e-9 else -1e-8
            if not inside < where < outside and np.isfinite(outside - inside):
                where = (inside + outside) / 2
            if outside - inside < 1e-9:
                break
        back = 1e-8
        while inside == -np.inf and back < 1:  # delta is not monotone in the factor
            if self.look(at(where - back)).excess <= 0 or (at(where - back) <= self._low).all():
                return at(where - back)
            back *= 8
        return best

    def _pattern(self) -> None:
        """Directions that leave the total as it is, drawn anew each time; steps grow where they help and shrink where not."""
        draw, size, idle = np.random.default_rng(_SEED), 0.05, 0
        assert self._best is not None
        for _ in range(_TRIALS):
            value, at = self._best
            move = draw.standard_normal(len(at)) * size
            self._try(at * np.exp(move - float(move @ at / at.sum())), value)
            better = self._best[0] < value
            size, idle = (min(size * 1.6, 0.2), 0) if better else (size * 0.9, idle + 1)
            if idle > _PATIENCE:
                break

    def _try(self, at: Floats, value: float) -> None:
        """Note the unknowns, scaled, where a first look says that they may be better."""
        at = np.clip(at, self._low, self.problem.high)
        at = np.clip(at * (self.look(at).room - 1e-9), self._low, self.problem.high)
        if self.aim.at(at) < value * (1 - 1e-8) and not self._breaks(at):
            self._note(at if self.look(at).excess <= 0 else self.scaled(at))

    def _meets(self, at: Floats) -> bool:
        return self.look(at).excess <= 0 and not self._breaks(at)

    def _breaks(self, at: Floats) -> bool:
        """Whether an earlier aim has got worse than its cap."""
        return any(errors.at(at) > cap * (1 + 1e-9) for errors, cap in self.aim.before)
