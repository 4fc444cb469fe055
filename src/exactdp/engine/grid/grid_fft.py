"""The grid method: the loss split between grid points is an upper bound, a threshold test on the points a lower bound.

Both are wrong by terms of second order in the step only, whatever the values of the loss (docs/theory/grid.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import FFT_SLACK, POWER_SLACK, REMAINDER_SLACK, UNIT, Floats
from exactdp.engine.grid.convolution import LossGrid, Transform, product
from exactdp.engine.grid.lists import listed_copies
from exactdp.engine.grid.window import Tails
from exactdp.engine.line.enumeration import block_sum
from exactdp.engine.line.protocol import OneByOne, Used
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from exactdp.numerals import about, at_most

FEWEST_POINTS, MOST_POINTS = 1 << 14, 1 << 20
AIM = 1e-9
"""The relative width at which a finer grid is not worth its time."""

_NEGLIGIBLE = 100.0  # an exponent from which on gains are nothing next to the rounding
_SUMMING = 600  # units of rounding of a sum in blocks of 512 and of the products in it
_MOST_SLIP = 0.1  # of the length of the grid: how far all splittings together may move a loss


class GridFFT(OneByOne):
    """A total loss on a grid under one tilt, ready for any number of thresholds."""

    def __init__(self, total: TotalLoss, payoff: Payoff, transform: Transform, tails: Tails, first: int) -> None:
        self._payoff, self._transform = payoff, transform
        grid = transform.grid
        self.grid, self._lam, self._first = grid, grid.lam, first
        with precision(BITS):
            self._log_moment = total.log_moment(grid.tilt)
            start = float((transform.anchor).mid()) + first * grid.step
        if not transform.relative <= REMAINDER_SLACK:
            raise AccuracyError("The grid does not apply: the weights of so many values are too uncertain.")
        shift = (transform.start - first) % grid.points
        self._p, self._q = (np.roll(np.fft.irfft(v, grid.points), shift) for v in (transform.p, transform.q))
        splits = transform.splits
        steps = splits * grid.step, splits * grid.step**2
        place = transform.moved + POWER_SLACK * (abs(start) + grid.points * grid.step)
        ends = start + place, start + grid.points * grid.step - grid.step - place
        self._outside = [
            (1 + FFT_SLACK)
            * sum(tails.mass(sign, end, self._lam + s, steps) for sign, end in zip((-1, 1), ends, strict=True))
            for s in (0.0, 1.0)
        ]
        self._wrong = [
            (1 + FFT_SLACK) * (w + grid.fft_error * n) for w, n in zip(transform.wrong, transform.norms, strict=True)
        ]

    @classmethod
    def plan(cls, total: TotalLoss, payoff: Payoff, tilt: Fraction, most: int = MOST_POINTS) -> GridFFT | None:
        """The grid of a loss: as fine as `AIM` asks for, of at most so many points; None if some part cannot be listed."""
        lists = listed_copies(total, tilt)
        if lists is None:
            return None
        tails, splits = Tails(total, tilt), sum(c.count for c in lists)
        low, high = tails.end(-1), tails.end(1)
        length = max(high - low, 1e-12 * (1 + abs(low)))
        points = FEWEST_POINTS
        while points < most and expected_width(length / points, splits, float(tilt)) > AIM:
            points *= 2
        if splits > _MOST_SLIP * points:
            raise AccuracyError("The grid does not apply: there are too many mechanisms for its points.")
        grid = LossGrid.covering(length + 2 * (splits + 2) * length / points, tilt, points)
        transform = product([Transform.of_list(grid, copies) for copies in lists])
        return cls(total, payoff, transform, tails, first_point(transform, low, high))

    @cached_property
    def _falling(self) -> tuple[Floats, Floats, Floats]:
        """e^{-c h i} for i = 0, 1, ... down to nothing: c = |tilt|, and c = tilt + 1, and the first times 1 - e^{-h i}."""
        c, h = abs(self._lam), self.grid.step
        distances = h * np.arange(min(self.grid.points, math.ceil(_NEGLIGIBLE / (min(c, 1 + self._lam) * h)) + 1))
        slow = np.exp(-c * distances)
        return slow, np.exp(-(self._lam + 1) * distances), slow * -np.expm1(-distances)

    @cached_property
    def _norms(self) -> tuple[float, float]:
        return float(np.linalg.norm(self._falling[0])), float(np.linalg.norm(self._falling[1]))

    def used(self, y: arb) -> Used:
        """The grid; the same for every threshold."""
        grid, splits = self.grid, self._transform.splits
        rows = (
            ("grid", f"{grid.points:,} points, {about(grid.step)} apart"),
            ("splittings", f"{splits:,}"),
            ("outside", at_most(sum(self._outside), 2)),
        )
        return Used("losses split on a grid", self._payoff, grid.points, rows)

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """Bounds by splitting and by a threshold test (Theorems G1, G2 and G4)."""
        t, h, lam = self._transform, self.grid.step, self._lam
        with precision(BITS):
            exact = self._log_moment - ball(self.grid.tilt) * y
            log_scale = float(exact.mid())
            factor = math.exp(float((exact - arb(log_scale)).mid()))
            away = float((t.anchor - y).mid()) + self._first * h  # of the first point from the threshold
        first = min(max(math.floor(-away / h) + 1, 0), self.grid.points)  # the first point above y
        gap = max(away + first * h, 0.0)
        above, discounted, gains = (_dot(self._p, first, v) for v in self._falling)
        tested = _dot(self._q, first, self._falling[1])
        near, nearer = math.exp(-lam * gap), math.exp(-(lam + 1) * gap)
        if self._payoff is Payoff.DELTA:
            upper = near * gains - math.expm1(-gap) * near * discounted
            lower = near * above - nearer * tested
            sizes, most = near * (above + discounted) + nearer * tested, 1 / (1 + lam)
        else:
            below = self._below(first, away)
            lower, upper = below + nearer * discounted, below + nearer * tested
            sizes, most = below + nearer * (discounted + tested), 1.0
        wrong = self._wrong[0] * (self._norms[0] + self._norms[1]) + self._wrong[1] * self._norms[1]
        rounding = (_SUMMING + 8 * (1 + abs(lam)) * gap) * UNIT + t.relative
        wrong += (abs(sizes) + wrong) * rounding * (1 + FFT_SLACK)
        wrong += t.absolute * most + t.moved + 8 * UNIT * (abs(away) + self.grid.points * h) + math.exp(-_NEGLIGIBLE)
        more, less = wrong + t.missing * most + sum(self._outside), wrong + self._outside[0]
        low, high = max(lower - less, 0.0) * (1 - POWER_SLACK), (upper + more) * (1 + POWER_SLACK)
        return log_scale, low * factor, high * factor, max(nearer * discounted * factor, 0.0)

    def _below(self, first: int, away: float) -> float:
        """The sum of p e^{-tilt u} over the points at or below the threshold, tilt < 0."""
        if not first:
            return 0.0
        gap = away + (first - 1) * self.grid.step  # at most 0
        reach = self._falling[0]
        some = self._p[max(first - len(reach), 0) : first][::-1]
        return math.exp(self._lam * -gap) * block_sum(some * reach[: len(some)])


def _dot(vector: Floats, first: int, weights: Floats) -> float:
    some = vector[first : first + len(weights)]
    return block_sum(some * weights[: len(some)])


def first_point(transform: Transform, low: float, high: float) -> int:
    """The grid's first point: what it covers is centred on what is between two losses."""
    with precision(BITS):
        middle = float(((low + high) / 2 - transform.anchor).mid())
    return math.floor(middle / transform.grid.step) - transform.grid.points // 2


def expected_width(step: float, splits: int, tilt: float) -> float:
    """How far apart the bounds will be: by splits step^2 / 6 times the density, about |tilt| (1 + tilt) times the answer.

    Heuristic: affects speed and accuracy only.
    """
    return splits * step * step / 6 * abs(tilt) * (1 + tilt)
