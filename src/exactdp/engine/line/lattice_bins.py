"""A lattice and a long list: the values of the list are counted by cells of the lattice, once for many thresholds.

For one threshold all values of a cell ask for the tail from the same point; those beyond the threshold's place in its cell have
one more point above it. So a sum over the list is a sum over cells (docs/theory/any-composition.md, Theorem 13, "A lattice and a
list").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from flint import arb
from numpy.typing import NDArray

from exactdp.balls import BITS, ball, precision
from exactdp.brackets import Bracket
from exactdp.doubles import ACCOUNT_SLACK, REMAINDER_SLACK, UNDERFLOW, UNIT, Floats, Ints
from exactdp.engine.line.enumeration import ListedValues, used_lists
from exactdp.engine.line.light_values import LightValues, cells_of, split_error
from exactdp.engine.line.protocol import Used
from exactdp.engine.line.suffix_sums import BLOCK, SUFFIX_UNITS, block_dot, block_sum, even_suffix_sums
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError

SLICES = 24
"""Parts of a cell at most, so that a threshold has to look at the values of one of them only; below 256."""

_SLICED = 8_000  # values for each of them
_SPARE = 4  # points more than needed, for rounding
_BIN_UNITS = 64  # units of rounding of exponentials within a cell, and of products


def even_step(lattice: ListedValues) -> float:
    """The distance of the points of a lattice; infinite if there is but one."""
    n = len(lattice.values)
    return float((lattice.values[-1] - lattice.values[0]) / (n - 1)) if n > 1 else math.inf


def heaviest(lattice: ListedValues) -> float:
    """A bound of the probability of every point."""
    return float(lattice.weights.max()) * (1 + lattice.relative) + lattice.absolute + lattice.missing


@dataclass(frozen=True)
class ListCells:
    """A list by the cells of a lattice: for each value the cell, from 0 on, how far it is into its cell, and its weight.

    Values come in the order of the slices of a cell that they lie in: slice i from begins[i] on. Light values are all at the
    beginning of their cells.
    """

    cell: Ints
    inside: Floats
    risen: Floats
    """1 - e^-f of how far they are into their cells."""
    weights: Floats
    begins: Ints
    low: int
    light: Floats
    split: LightValues
    crowd: int
    """The most values of one cell."""
    largest: float

    @classmethod
    def of(cls, rest: ListedValues, step: float, light: LightValues | None = None) -> ListCells:
        """The cells of a list and of light values, each one step long."""
        light = LightValues() if light is None else light
        cell, inside = cells_of(rest.values, step)
        low = min(int(cell.min()), light.low)
        count = max(int(cell.max()) + 1, light.low + len(light.weights)) - low
        cell -= low
        weights, slices = rest.weights, max(1, min(SLICES, len(cell) // _SLICED))
        begins = np.array([0, len(cell)])
        if slices > 1:
            which = slices_of(inside, step, slices)
            order = np.argsort(which, kind="stable")
            begins = np.append(0, np.cumsum(np.bincount(which, minlength=slices)))
            cell, inside, weights = cell[order], inside[order], weights[order]
        points = np.zeros(count)
        points[light.low - low : light.low - low + len(light.weights)] = light.weights
        largest = max(abs(low), abs(low + count)) * step
        crowd = int(np.bincount(cell).max())
        risen = np.negative(inside)
        np.expm1(risen, out=risen)
        np.negative(risen, out=risen)
        return cls(cell, inside, risen, weights, begins, low, points, light, crowd, largest)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.light)

    @property
    def slices(self) -> int:
        """In how many parts each is divided."""
        return len(self.begins) - 1

    def slice(self, i: int) -> slice:
        """Where the values of a slice are."""
        return slice(int(self.begins[i]), int(self.begins[i + 1]))


def slices_of(inside: Floats, step: float, slices: int) -> NDArray[np.uint8]:
    """The slice of a cell in which a value lies: any rule that does not fall with `inside` will do."""
    place = inside * (slices / step)
    np.minimum(place, slices - 1, out=place)
    return place.astype(np.uint8)


class LatticeBins:
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
        """w e^{-tilt f} of the values of a slice, f how far they are into their cells, and the same times 1 - e^-f."""
        slow = np.multiply(self._cells.inside[which], -self._lam)
        np.exp(slow, out=slow)
        slow *= self._cells.weights[which]
        return slow, slow * self._cells.risen[which]

    @cached_property
    def _points(self) -> _Points:
        """The points that thresholds of the rung ask for."""
        with precision(BITS):
            first = float((arb(self._rung.low) - self._anchor).mid()) - float(self._lattice.values[0])
        low = math.floor(first / self._step) - self._cells.low - self._cells.count - _SPARE
        high = low + self._cells.count + math.ceil((self._rung.high - self._rung.low) / self._step) + 3 * _SPARE
        return _Points(self._lattice.weights, (self._step, self._lam), low, high)

    def evaluate(self, thresholds: list[arb]) -> tuple[Bracket, Floats]:
        """The sums over all cells, and over what lies beyond each threshold's place in its cell (Theorem 13)."""
        asked = [self._threshold(y) for y in thresholds]
        beyond, rows = self._beyond(asked)
        found = [self._bounds(threshold, more, rows) for threshold, more in zip(asked, beyond, strict=True)]
        low, high, slope = np.array(found).reshape(-1, 3).T * np.array([t.slip for t in asked])
        return Bracket(np.array([t.log_scale for t in asked]), low, high), slope

    def _threshold(self, y: arb) -> _Threshold:
        with precision(BITS):
            exact = self._log_moment - ball(self._tilt) * y
            log_scale = float(exact.mid())
            slip = math.exp(float((exact - arb(log_scale)).mid()))
            # u = value of the list + value of the lattice - start, the lattice's first point taken as 0
            start = float((y - self._anchor).mid()) - float(self._lattice.values[0])
        whole = math.floor(start / self._step)
        into = min(max(start - whole * self._step, 0.0), self._step)
        first = whole - self._cells.low
        if not self._points.has(first - self._cells.count, first + 2):
            raise AccuracyError("The lists do not apply: another tilt is meant for this threshold.")
        here = int(slices_of(np.array([into]), self._step, self._cells.slices)[0])
        return _Threshold(first, into, here, abs(start), log_scale, slip)

    def _beyond(self, asked: list[_Threshold]) -> tuple[list[_Beyond], Floats]:
        """What the values beyond each threshold's place in their cells have of the point before the one that all ask for; and the
        sums of both kinds over all values in each cell: slice after slice from the last one, value after value, so that what is
        asked together does not matter."""
        cells, weights_at, found = self._cells, self._points.weights, dict[int, _Beyond]()
        rows = np.zeros((2, cells.count))
        for i in reversed(range(cells.slices)):
            which = cells.slice(i)
            cell, weights = cells.cell[which], self._weights(which)
            for n, threshold in enumerate(asked):
                if threshold.slice == i:
                    at = self._points.place(threshold.first)
                    # a list of places is quicker than a mask
                    mine = np.flatnonzero(cells.inside[which] > threshold.into)
                    there = weights_at[cell[mine] + at]
                    sums = [block_sum(part[mine] * there) for part in weights]
                    if i < cells.slices - 1:  # else no value is in the rows yet
                        own = weights_at[at : at + cells.count]
                        sums = [one + block_dot(row, own) for one, row in zip(sums, rows, strict=True)]
                    found[n] = _Beyond(*sums)
            for row, part in zip(rows, weights, strict=True):
                np.add.at(row, cell, part)
        rows[0] += cells.light
        return [found[n] for n in range(len(asked))], rows

    def _bounds(self, asked: _Threshold, beyond: _Beyond, rows: Floats) -> tuple[float, float, float]:
        """Lower and upper bounds and the slope in units of exp(log_scale)."""
        points, cells, lam, h, rest, lattice = (
            *(self._points, self._cells),
            *(self._lam, self._step, self._rest, self._lattice),
        )
        at = points.place(asked.first + 1)
        discounted, rise = (block_dot(row, points.discounted[at : at + cells.count]) for row in rows)
        # e^{-tilt d}, d = f - away: all ask for the point at d = f - into + h
        away, into = asked.into - h, asked.into
        # 1 - e^{-d} = (1 - e^into) + e^into (1 - e^-f) at the point before, a difference of the size of a step
        more = math.exp(lam * into) * (math.exp(into) * beyond.rise - math.expm1(into) * beyond.slow)
        slope = math.exp((lam + 1) * away) * (discounted - rise)
        error = rest.value_error + lattice.value_error
        error += 8 * UNIT * (asked.size + 2 * cells.largest + 2 * points.length)
        steps = 2 * BLOCK + 4 * points.count / BLOCK + cells.crowd
        steps += SUFFIX_UNITS + _BIN_UNITS + 4 * abs(lam)
        relative = rest.relative + lattice.relative + steps * UNIT + (abs(lam) + 1) * 2 * error
        lowest = points.place(asked.first - 1)
        if self._payoff is Payoff.DELTA:
            gains = block_dot(rows[0], points.gains[at : at + cells.count])
            value = math.exp(lam * away) * (gains - math.expm1(away) * discounted + math.exp(away) * rise) + more
            tails = block_dot(rows[0], points.above[lowest : lowest + cells.count])
            over = math.exp((lam + 1) * 3 * h) * tails
            wrong = 2 * error * over + (value + 4 * h * over) * math.expm1(min(2 * relative, 700.0))
            largest = 1 / (1 + lam)
        else:
            # the points before the one that is asked for, a step less away; beyond, the last of them counts as one above
            below = block_dot(rows[0], points.below[at + 1 : at + 1 + cells.count])
            value = slope + math.exp(lam * into) * below - more
            wrong = value * math.expm1(min(2 * relative + 2 * error, 700.0))
            largest = 1.0
        wrong += (rest.absolute + lattice.absolute) * (1 + ACCOUNT_SLACK) * largest
        wrong += cells.split.split * split_error(h, lam, cells.split.tilt, heaviest(lattice))
        wrong *= 1 + REMAINDER_SLACK
        missing = (rest.missing + lattice.missing) * largest * (1 + REMAINDER_SLACK)
        lower = max(value - wrong, 0.0) * (1 - 8 * UNIT)
        slope += math.exp((lam + 1) * into) * (beyond.slow - beyond.rise)
        return lower, (value + wrong + missing) * (1 + 16 * UNIT) + UNDERFLOW, slope


class _Threshold(NamedTuple):
    """The point before the one that values of cell 0 ask for, which is above the threshold for those that are beyond `into`, how
    far the threshold is into its cell."""

    first: int
    into: float
    slice: int
    size: float
    log_scale: float
    slip: float


class _Beyond(NamedTuple):
    """Sums over the values of a list that are beyond the threshold's place in their cells: of the first point of the lattice that
    is above the threshold for them."""

    slow: float
    rise: float
    """With the second kind of weights."""


class _Points:
    """The lattice from point `low` to `high`, with no weight outside of its own points, and the sums over its ends.

    Points come in descending order, so that the cells of a list ask for one after the other.
    """

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

    def place(self, point: int) -> int:
        """Where the sums of a point are."""
        return self._low + self.count - 1 - point

    @cached_property
    def weights(self) -> Floats:
        """Those of the points."""
        return np.ascontiguousarray(self._weights[::-1])

    @cached_property
    def above(self) -> Floats:
        """Sums of w e^{-tilt (x - x_j)} over the points from x_j on."""
        return even_suffix_sums(self._weights, self._step, self._lam)[::-1]

    @cached_property
    def discounted(self) -> Floats:
        """Of w e^{-(tilt + 1) (x - x_j)}."""
        return even_suffix_sums(self._weights, self._step, self._lam + 1)[::-1]

    @cached_property
    def gains(self) -> Floats:
        """Of w e^{-tilt (x - x_j)} (1 - e^{-(x - x_j)}): as in `Enumeration`, a telescoping sum over gaps between neighbours."""
        c = np.append(self.above[-2::-1], 0.0) * (-math.expm1(-self._step) * math.exp(-self._lam * self._step))
        return even_suffix_sums(c, self._step, self._lam + 1)[::-1]

    @cached_property
    def below(self) -> Floats:
        """Of w e^{tilt (x_j - x)} over the points up to x_j, tilt < 0."""
        return even_suffix_sums(self._weights[::-1], self._step, -self._lam)
