"""A lattice and a long list: the values of the list are counted by cells of the lattice, once for many thresholds.

For one threshold all values of a cell ask for one of two neighbouring points, depending on which side of the threshold's place in
its cell they lie. So a sum over the list is a sum over cells (docs/theory/any-composition.md, Theorem 13, "A lattice and a
list").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import ACCOUNT_SLACK, REMAINDER_SLACK, UNDERFLOW, UNIT, Floats, Ints
from exactdp.engine.line.enumeration import ListedValues, used_lists
from exactdp.engine.line.protocol import OneByOne, Used
from exactdp.engine.line.suffix_sums import BLOCK, SUFFIX_UNITS, block_sum, even_suffix_sums
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError

SLICES = 16
"""Parts of a cell, so that a threshold has to look at the values of one of them only."""

_SPARE = 4  # points more than needed, for rounding
_BIN_UNITS = 64  # units of rounding of exponentials within a cell, and of products


def even_step(lattice: ListedValues) -> float:
    """The distance of the points of a lattice; infinite if there is but one."""
    n = len(lattice.values)
    return float((lattice.values[-1] - lattice.values[0]) / (n - 1)) if n > 1 else math.inf


@dataclass(frozen=True)
class ListCells:
    """A list by the cells of a lattice: for each value the cell, from 0 on, how far it is into its cell, and its weight.

    Values come in the order of the slices of a cell that they lie in: slice i from begins[i] on.
    """

    cell: Ints
    inside: Floats
    weights: Floats
    begins: Ints
    low: int
    count: int
    crowd: int
    """The most values of one cell."""
    largest: float

    @classmethod
    def of(cls, rest: ListedValues, step: float) -> ListCells:
        """The cells of a list, each one step long."""
        cell = np.floor(rest.values / step)
        inside = rest.values - cell * step
        np.clip(inside, 0.0, step, out=inside)
        low = int(cell.min())
        number = cell.astype(np.int64) - low
        which = slices_of(inside, step).astype(np.uint8)
        order = np.argsort(which, kind="stable")
        begins = np.searchsorted(which[order], np.arange(SLICES + 1))
        largest = max(abs(float(rest.values.min())), abs(float(rest.values.max())))
        crowd = int(np.bincount(number).max())
        return cls(
            number[order], inside[order], rest.weights[order], begins, low, int(number.max()) + 1, crowd, largest
        )

    def slice(self, i: int) -> slice:
        """Where the values of a slice are."""
        return slice(int(self.begins[i]), int(self.begins[i + 1]))


def slices_of(inside: Floats, step: float) -> Ints:
    """The slice of a cell in which a value lies: any rule that does not fall with `inside` will do."""
    result: Ints = np.minimum(inside * (SLICES / step), SLICES - 1).astype(np.int64)
    return result


class LatticeBins(OneByOne):
    """A total loss under one tilt: points of a lattice, ascending and evenly apart, and a list of everything else."""

    def __init__(
        self, total: TotalLoss, rung: LineRung, rest: ListedValues, lattice: ListedValues, cells: ListCells
    ) -> None:
        self._payoff, self._tilt, self._lam, self._rung = rung.payoff, rung.tilt, float(rung.tilt), rung
        self._rest, self._lattice, self._cells = rest, lattice, cells
        self._step = even_step(lattice)
        with precision(BITS):
            self._anchor = rest.anchor + lattice.anchor
            self._log_moment = total.log_moment(rung.tilt)

    def used(self, y: arb) -> Used:
        """How many values were listed; the same for every threshold."""
        return used_lists(self._payoff, (len(self._rest.values), len(self._lattice.values)))

    def _weights(self, which: slice) -> tuple[Floats, Floats]:
        """w e^{-s f} of some values, f how far they are into their cells, for s = tilt and tilt + 1."""
        inside = self._cells.inside[which]
        slow = self._cells.weights[which] * np.exp(-self._lam * inside)
        return slow, slow * np.exp(-inside)

    @cached_property
    def _table(self) -> Floats:
        """Sums of these over the values of each cell: of both kinds, in each slice. All numbers added are non-negative."""
        result = np.empty((2, SLICES, self._cells.count))
        for i in range(SLICES):
            which = self._cells.slice(i)
            for kind, weights in enumerate(self._weights(which)):
                result[kind, i] = np.bincount(self._cells.cell[which], weights, minlength=self._cells.count)
        return result

    def _sides(self, into: float) -> tuple[Floats, Floats]:
        """The sums of both kinds over the values of each cell that are not beyond `into`, and over those that are."""
        cells = self._cells
        here = int(slices_of(np.array([into]), self._step)[0])
        which = cells.slice(here)
        beyond, cell = cells.inside[which] > into, cells.cell[which]
        near, far = self._table[:, :here].sum(axis=1), self._table[:, here + 1 :].sum(axis=1)
        for kind, weights in enumerate(self._weights(which)):
            near[kind] += np.bincount(cell[~beyond], weights[~beyond], minlength=cells.count)
            far[kind] += np.bincount(cell[beyond], weights[beyond], minlength=cells.count)
        return near, far

    @cached_property
    def _points(self) -> _Points:
        """The points that thresholds of the rung ask for."""
        with precision(BITS):
            first = float((arb(self._rung.low) - self._anchor).mid()) - float(self._lattice.values[0])
        low = math.floor(first / self._step) - self._cells.low - self._cells.count - _SPARE
        high = low + self._cells.count + math.ceil((self._rung.high - self._rung.low) / self._step) + 3 * _SPARE
        return _Points(self._lattice.weights, (self._step, self._lam), low, high)

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """The sums over both sides of every cell (Theorem 13)."""
        with precision(BITS):
            exact = self._log_moment - ball(self._tilt) * y
            log_scale = float(exact.mid())
            slip = math.exp(float((exact - arb(log_scale)).mid()))
            # u = value of the list + value of the lattice - start, the lattice's first point taken as 0
            start = float((y - self._anchor).mid()) - float(self._lattice.values[0])
        whole = math.floor(start / self._step)
        into = min(max(start - whole * self._step, 0.0), self._step)
        # the point that values of cell 0 ask for first if they are beyond; the others ask for the next one
        first = whole - self._cells.low
        if not self._points.has(first - self._cells.count, first + 2):
            raise AccuracyError("The lists do not apply: another tilt is meant for this threshold.")
        low, high, slope = self._bounds(first, into, abs(start))
        return log_scale, low * slip, high * slip, slope * slip

    def _bounds(self, first: int, into: float, shift: float) -> tuple[float, float, float]:
        """Lower and upper bounds and the slope in units of exp(log_scale)."""
        points, sides = self._points, self._sides(into)
        lam, h, rest, lattice = self._lam, self._step, self._rest, self._lattice
        # e^{-s d}, d = f - into for values beyond, f - into + h for the others
        (near, near_fast), (beyond, beyond_fast) = (
            (math.exp(lam * away) * side[0], math.exp((lam + 1) * away) * side[1])
            for away, side in zip((into - h, into), sides, strict=True)
        )
        here, after = points.of(first, len(near)), points.of(first + 1, len(near))
        discounted = block_sum(beyond_fast * here.discounted + near_fast * after.discounted)
        error = rest.value_error + lattice.value_error
        error += 8 * UNIT * (shift + 2 * self._cells.largest + 2 * points.length)
        crowd = self._cells.crowd + SLICES
        steps = 2 * BLOCK + 4 * points.count / BLOCK + crowd + SUFFIX_UNITS + _BIN_UNITS + 4 * abs(lam)
        relative = rest.relative + lattice.relative + steps * UNIT + (abs(lam) + 1) * 2 * error
        if self._payoff is Payoff.DELTA:
            before = points.of(first - 1, len(near))
            over = math.exp((lam + 1) * 2 * h) * block_sum(beyond * before.above + near * here.above)
            gains = block_sum(beyond * here.gains + near * after.gains)
            # 1 - e^{-d} is a difference of two sums, which costs as many units of them as they lose
            value = gains + block_sum((beyond - beyond_fast) * here.discounted + (near - near_fast) * after.discounted)
            wrong = over * (2 * error + 2 * (_BIN_UNITS + crowd) * UNIT)
            wrong += (value + over * h) * math.expm1(min(2 * relative, 700.0))
            largest = 1 / (1 + lam)
        else:
            before = points.of(first - 1, len(near))
            below = math.exp(lam * h) * block_sum(beyond * before.below + near * here.below)
            value = discounted + below
            wrong = value * math.expm1(min(relative + 2 * error, 700.0))
            largest = 1.0
        wrong += (rest.absolute + lattice.absolute) * (1 + ACCOUNT_SLACK) * largest
        wrong *= 1 + REMAINDER_SLACK
        missing = (rest.missing + lattice.missing) * largest * (1 + REMAINDER_SLACK)
        lower = max(value - wrong, 0.0) * (1 - 8 * UNIT)
        return lower, (value + wrong + missing) * (1 + 16 * UNIT) + UNDERFLOW, discounted


class _Sums:
    """The sums of a lattice at the points that the cells of a list ask for, cell 0 first."""

    def __init__(self, points: _Points, which: slice) -> None:
        self._points, self._which = points, which

    @property
    def above(self) -> Floats:
        """Of w e^{-tilt (x - x_j)} over the points from x_j on."""
        return self._points.above[self._which][::-1]

    @property
    def discounted(self) -> Floats:
        """Of w e^{-(tilt + 1) (x - x_j)}."""
        return self._points.discounted[self._which][::-1]

    @property
    def gains(self) -> Floats:
        """Of w e^{-tilt (x - x_j)} (1 - e^{-(x - x_j)})."""
        return self._points.gains[self._which][::-1]

    @property
    def below(self) -> Floats:
        """Of w e^{tilt (x_j - x)} over the points up to x_j, tilt < 0."""
        return self._points.below[self._which][::-1]


class _Points:
    """The lattice from point `low` to `high`, with no weight outside of its own points, and the sums over its ends."""

    def __init__(self, weights: Floats, step_and_tilt: tuple[float, float], low: int, high: int) -> None:
        self._step, self._lam = step_and_tilt
        self._low = min(low, 0)
        self.count = max(high + 1, len(weights)) - self._low
        self.length = self.count * self._step
        self._weights = np.zeros(self.count)
        self._weights[-self._low : len(weights) - self._low] = weights

    def has(self, low: int, high: int) -> bool:
        """Whether all of these are there."""
        return self._low <= low and high < self._low + self.count

    def of(self, first: int, cells: int) -> _Sums:
        """Those for cells whose cell 0 asks for the point `first`, the next ones for those before it."""
        start = first - cells + 1 - self._low
        return _Sums(self, slice(start, start + cells))

    @cached_property
    def above(self) -> Floats:
        """Sums over the points from each on, discounted by the tilt."""
        return even_suffix_sums(self._weights, self._step, self._lam)

    @cached_property
    def discounted(self) -> Floats:
        """Discounted by tilt + 1."""
        return even_suffix_sums(self._weights, self._step, self._lam + 1)

    @cached_property
    def gains(self) -> Floats:
        """As in `Enumeration`: a telescoping sum over the gaps between neighbours."""
        c = np.append(self.above[1:], 0.0) * (-math.expm1(-self._step) * math.exp(-self._lam * self._step))
        return even_suffix_sums(c, self._step, self._lam + 1)

    @cached_property
    def below(self) -> Floats:
        """Sums over the points up to each, tilt < 0."""
        return even_suffix_sums(self._weights[::-1], self._step, -self._lam)[::-1]
