"""The grid method: the loss split between grid points is an upper bound, a threshold test on the points a lower bound.

Both are wrong by terms of second order in the step only, whatever the values of the loss (docs/theory/grid.md).
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import FFT_SLACK, POWER_SLACK, REMAINDER_SLACK, UNIT, Floats
from exactdp.engine.grid.convolution import LossGrid, Transform, product
from exactdp.engine.grid.lists import listed_copies
from exactdp.engine.grid.window import Wrapping, needed_length
from exactdp.engine.line.protocol import OneByOne, Used
from exactdp.engine.line.suffix_sums import block_sum
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from exactdp.numerals import about, at_most

FEWEST_POINTS, MOST_POINTS = 1 << 14, 1 << 20
AIM = 1e-9
"""The relative width at which a finer grid is not worth its time."""

_SUMMING = (
    2200  # units of rounding of a sum over blocks of at most 1024 points, and of those sums, each a few hundred more
)
_SMALL = 1e-4  # what may wrap around, relative to the width that is aimed at
_MOST_SLIP = 0.1  # of the length of the grid: how far all splittings together may move a loss


class GridFFT(OneByOne):
    """A total loss on a circle of grid points under one tilt, ready for any number of thresholds."""

    def __init__(self, total: TotalLoss, rung: LineRung, transform: Transform) -> None:
        if not transform.relative <= REMAINDER_SLACK:
            raise AccuracyError("The grid does not apply: the weights of so many values are too uncertain.")
        self._total, self._payoff, self._transform = total, rung.payoff, transform
        self.grid, self._lam = transform.grid, transform.grid.lam
        with precision(BITS):
            self._log_moment = total.log_moment(rung.tilt)
        points = self.grid.points
        self._p, self._q = (np.fft.irfft(v, points) for v in (transform.p, transform.q))
        self._wrong = [
            (1 + FFT_SLACK) * (w + self.grid.fft_error * n)
            for w, n in zip(transform.wrong, transform.norms, strict=True)
        ]
        self._squares = transform.splits * self.grid.step**2

    @classmethod
    def plan(cls, total: TotalLoss, rung: LineRung, most: int = MOST_POINTS) -> GridFFT | None:
        """The grid of a loss: as fine as `AIM` asks for, of at most so many points; None if some part cannot be listed."""
        lists = listed_copies(total, rung.tilt)
        if lists is None:
            return None
        grid = fitting_grid(total, rung, sum(copies.count for copies in lists), most)
        return cls(total, rung, product([Transform.of_list(grid, copies) for copies in lists]))

    @cached_property
    def _block(self) -> int:
        """Points of one block: sums over blocks are made once, a threshold asks for those above it."""
        return 1 << (self.grid.points.bit_length() - 1) // 2

    @cached_property
    def _above(self) -> _Blocks:
        return _Blocks(np.stack([self._p, self._q]), self._block, self._lam, self.grid.step)

    @cached_property
    def _below(self) -> _Blocks:
        """The points in the other direction, for 1 - delta: e^{-tilt u} falls with the distance from y."""
        return _Blocks(self._p[None, ::-1], self._block, -self._lam, self.grid.step)

    @cached_property
    def _norms(self) -> tuple[float, float]:
        """Norms of e^{-|tilt| u} and e^{-(tilt + 1) u} over all points at and above the threshold."""
        h = self.grid.step
        return 1 / math.sqrt(-math.expm1(-2 * abs(self._lam) * h)), 1 / math.sqrt(-math.expm1(-2 * (self._lam + 1) * h))

    @cached_property
    def _wrapping(self) -> Wrapping:
        return Wrapping(self._total, self.grid.tilt)

    def used(self, y: arb) -> Used:
        """The grid, and what is outside of it."""
        grid = self.grid
        rows = (
            ("grid", f"{grid.points:,} points, {about(grid.step)} apart"),
            ("splittings", f"{self._transform.splits:,}"),
            ("outside", at_most(sum(self._outside(float(y.mid()))), 2)),
        )
        return Used("losses split on a grid", self._payoff, grid.points, rows)

    def _outside(self, y: float) -> tuple[float, float]:
        """Bounds of what is on the half circles next to y and does not belong there, and of what belongs there and is missing."""
        grid, moved = self.grid, self._transform.moved
        length = (
            (grid.points - 2 * self._block - 4) * grid.step
            - 2 * moved
            - POWER_SLACK * (abs(y) + grid.points * grid.step)
        )
        if self._payoff is Payoff.DELTA:
            wrapped, missing = self._wrapping.delta(y, length, self._squares)
            return (1 + FFT_SLACK) * wrapped, (1 + FFT_SLACK) * missing
        steps = self._transform.splits * grid.step, self._squares
        p, q = (
            (1 + FFT_SLACK)
            * sum(self._wrapping.mass(sign, y + sign * length / 2, self._lam + s, steps) for sign in (-1, 1))
            for s in (0.0, 1.0)
        )
        return p, p + q

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """Bounds by splitting and by a threshold test (Theorems G1, G2 and G4)."""
        t, h, lam = self._transform, self.grid.step, self._lam
        with precision(BITS):
            exact = self._log_moment - ball(self.grid.tilt) * y
            log_scale = float(exact.mid())
            factor = math.exp(float((exact - arb(log_scale)).mid()))
            away = float((t.anchor - y).mid()) + t.start * h  # of the first point from the threshold
        first = math.floor(-away / h) + 1  # the first point above y, counted from there
        gap = min(max(away + first * h, 0.0), h)
        (above, discounted, gains), (_, tested, _) = self._above.sums(first)
        near, nearer = math.exp(-lam * gap), math.exp(-(lam + 1) * gap)
        if self._payoff is Payoff.DELTA:
            upper = near * gains - math.expm1(-gap) * near * discounted
            lower = near * above - nearer * tested
            sizes, most = near * (above + discounted) + nearer * tested, 1 / (1 + lam)
        else:
            ((below, _, _),) = self._below.sums(self.grid.points - first)
            below *= math.exp(lam * (h - gap))
            lower, upper = below + nearer * discounted, below + nearer * tested
            sizes, most = below + nearer * (discounted + tested), 1.0
        wrong = self._wrong[0] * (self._norms[0] + self._norms[1]) + self._wrong[1] * self._norms[1]
        wrong += (abs(sizes) + wrong) * (_SUMMING * UNIT + t.relative) * (1 + FFT_SLACK)
        wrong += t.absolute * most + t.moved + 8 * UNIT * (abs(away) + abs(first) * h)
        wrapped, outside = self._outside(float(y.mid()))
        more, less = wrong + t.missing * most + outside, wrong + wrapped
        low, high = max(lower - less, 0.0) * (1 - POWER_SLACK), (upper + more) * (1 + POWER_SLACK)
        return log_scale, low * factor, high * factor, max(nearer * discounted * factor, 0.0)


class _Blocks:
    """Rows of points round a circle with sums over blocks of v e^{-c d}, v e^{-(c + 1) d} and v e^{-c d} (1 - e^{-d}), d the
    distance from the block's first point. All terms have the sign of v."""

    def __init__(self, rows: Floats, size: int, c: float, step: float) -> None:
        self._rows, self._size, self._c, self._step = rows, size, c, step
        self._inner = self._weights(step * np.arange(size, dtype=np.float64))
        self._sums = rows.reshape(len(rows), -1, size) @ self._inner
        self._outer = self._weights(step * size * np.arange(rows.shape[1] // size // 2, dtype=np.float64))

    def _weights(self, distances: Floats) -> Floats:
        slow, fast = np.exp(-self._c * distances), np.exp(-(self._c + 1) * distances)
        return np.stack([slow, fast, slow * -np.expm1(-distances)], axis=1)

    def sums(self, first: int) -> list[tuple[float, float, float]]:
        """The three sums of each row from a point on, for at least half a circle but one block."""
        points, size = self._rows.shape[1], self._size
        start = first % points
        head = -start % size  # points before the next block
        block = (start + head) // size
        count = len(self._outer) - 1
        shift = self._weights(np.array([head * self._step]))[0]
        found = []
        for row, sums in zip(self._rows, self._sums, strict=True):
            near = row[start : start + head] @ self._inner[:head]
            far = sums[np.arange(block, block + count) % len(sums)]
            outer = self._outer[:count]
            # 1 - e^{-(a + b)} = (1 - e^{-a}) + e^{-a} (1 - e^{-b})
            slow = block_sum(outer[:, 0] * far[:, 0])
            fast = block_sum(outer[:, 1] * far[:, 1])
            drop = block_sum(outer[:, 0] * far[:, 2] + outer[:, 2] * far[:, 1])
            found.append(
                (
                    float(near[0] + shift[0] * slow),
                    float(near[1] + shift[1] * fast),
                    float(near[2] + shift[0] * drop + shift[2] * fast),
                )
            )
        return found


def fitting_grid(total: TotalLoss, rung: LineRung, splits: int, most: int, aim: float = AIM) -> LossGrid:
    """A grid for a loss that is split so often: as fine as the aim asks for, of at most so many points."""
    length = needed_length(total, rung, _SMALL * aim)
    points = FEWEST_POINTS
    while points < most and expected_width(length / points, splits, float(rung.tilt)) > aim:
        points *= 2
    if splits > _MOST_SLIP * points:
        raise AccuracyError("The grid does not apply: there are too many mechanisms for its points.")
    return LossGrid.covering(length * (1 + (2 * splits + 8) / points), rung.tilt, points)


def expected_width(step: float, splits: int, tilt: float) -> float:
    """How far apart the bounds will be: by splits step^2 / 6 times the density, about |tilt| (1 + tilt) times the answer.

    Heuristic: affects speed and accuracy only.
    """
    return splits * step * step / 6 * abs(tilt) * (1 + tilt)
