"""A lattice and a long list: the values of the list are counted by cells of the lattice, once for many thresholds.

For one threshold all values of a cell ask for one of two neighbouring points, depending on which side of the threshold's place in
its cell they lie. So a sum over the list is a sum over cells (docs/theory/any-composition.md, Theorem 13, "A lattice and a
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
        """The sums over both sides of every cell (Theorem 13)."""
        asked = [self._threshold(y) for y in thresholds]
        near, everything = self._asked(asked, beyond=False)
        far, _ = self._asked(asked, beyond=True)
        found = [self._bounds(*of, everything) for of in zip(asked, near, far, strict=True)]
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

    def _asked(self, asked: list[_Threshold], *, beyond: bool) -> tuple[list[_Asked], Floats]:
        """What the values on one side of each threshold's place in their cells find; and the sums of the first kind over all
        slices where the others are asked: value after value, so that what is asked together does not matter."""
        cells, found = self._cells, dict[int, _Asked]()
        rows = np.zeros((2, cells.count))
        if not beyond:
            rows[0] = cells.light
        filled = 0 if beyond else 1  # rows that are not 0
        order = range(cells.slices)
        last = 0 if beyond else cells.slices - 1
        for i in reversed(order) if beyond else order:
            which = cells.slice(i)
            cell, weights = cells.cell[which], self._weights(which)
            for n, threshold in enumerate(asked):
                if threshold.slice == i:
                    # a list of places is quicker than a mask
                    mine = np.flatnonzero((cells.inside[which] > threshold.into) == beyond)
                    side = _Side(rows[:filled], cell[mine], weights[0][mine], weights[1][mine])
                    at = self._points.place(threshold.first + (not beyond))
                    found[n] = side.ask(self._points, at, self._payoff)
            if i != last or not beyond:
                for row, more in zip(rows, weights if i != last else weights[:1], strict=False):
                    np.add.at(row, cell, more)
            filled = 2
        return [found[n] for n in range(len(asked))], rows[0]

    def _bounds(self, asked: _Threshold, near: _Asked, far: _Asked, everything: Floats) -> tuple[float, float, float]:
        """Lower and upper bounds and the slope in units of exp(log_scale)."""
        points, cells, lam, h, rest, lattice = (
            *(self._points, self._cells),
            *(self._lam, self._step, self._rest, self._lattice),
        )
        # e^{-tilt d}, d = f - away: away is `into` for values beyond, and a step less for the others
        sides = ((far, asked.into), (near, asked.into - h))
        discounted = math.fsum(math.exp((lam + 1) * away) * (s.discounted - s.rise) for s, away in sides)
        error = rest.value_error + lattice.value_error
        error += 8 * UNIT * (asked.size + 2 * cells.largest + 2 * points.length)
        steps = 2 * BLOCK + 4 * points.count / BLOCK + cells.crowd
        steps += SUFFIX_UNITS + _BIN_UNITS + 4 * abs(lam)
        relative = rest.relative + lattice.relative + steps * UNIT + (abs(lam) + 1) * 2 * error
        if self._payoff is Payoff.DELTA:
            # 1 - e^{-d} = (1 - e^away) + e^away (1 - e^-f), a difference of the size of a step for values beyond
            value = math.fsum(
                math.exp(lam * away) * (s.other - math.expm1(away) * s.discounted + math.exp(away) * s.rise)
                for s, away in sides
            )
            lowest = points.place(asked.first - 1)
            tails = block_dot(everything, points.above[lowest : lowest + cells.count])
            over = math.exp((lam + 1) * 3 * h) * tails
            wrong = 2 * error * over + (value + 4 * h * over) * math.expm1(min(2 * relative, 700.0))
            largest = 1 / (1 + lam)
        else:
            # the points before those that are asked for, a step less away
            value = discounted + math.fsum(math.exp(lam * (away + h)) * s.other for s, away in sides)
            wrong = value * math.expm1(min(2 * relative + 2 * error, 700.0))
            largest = 1.0
        wrong += (rest.absolute + lattice.absolute) * (1 + ACCOUNT_SLACK) * largest
        wrong += cells.split.split * split_error(h, lam, cells.split.tilt, heaviest(lattice))
        wrong *= 1 + REMAINDER_SLACK
        missing = (rest.missing + lattice.missing) * largest * (1 + REMAINDER_SLACK)
        lower = max(value - wrong, 0.0) * (1 - 8 * UNIT)
        return lower, (value + wrong + missing) * (1 + 16 * UNIT) + UNDERFLOW, discounted


class _Threshold(NamedTuple):
    """The first point that values of cell 0 ask for if they are beyond `into`, how far the threshold is into its cell; the others
    ask for the next point."""

    first: int
    into: float
    slice: int
    size: float
    log_scale: float
    slip: float


class _Asked(NamedTuple):
    """Sums over some values of a list of what each finds at the first point of the lattice above the threshold."""

    other: float
    """The gains of delta; for 1 - delta the sums over the points before."""
    discounted: float
    rise: float
    """That of `discounted` with the second kind of weights."""


class _Side(NamedTuple):
    """Values of a list on one side of the threshold's place in their cells: sums of both kinds for each cell, and some more one
    by one."""

    rows: Floats
    cell: Ints
    slow: Floats
    rise: Floats

    def ask(self, points: _Points, at: int, payoff: Payoff) -> _Asked:
        """What cell 0 finds at place `at`, the next cells at the places after it."""
        count, asked = self.rows.shape[1], self.cell + at
        own, discounted = points.discounted[at : at + count], points.discounted[asked]
        other, move = (points.gains, 0) if payoff is Payoff.DELTA else (points.below, 1)
        sums = [block_sum(self.slow * other[asked + move])]
        sums += [block_sum(weights * discounted) for weights in (self.slow, self.rise)]
        for row, kinds in zip(self.rows, ((0, 1), (2,)), strict=False):
            for kind in kinds:
                sums[kind] += block_dot(row, other[at + move : at + move + count] if kind == 0 else own)
        return _Asked(*sums)


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
