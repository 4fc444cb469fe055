"""Steps of a sampled mechanism added up on a grid of losses without a cancellation: at any depth, at low rates, too.

One large output decides and the others hardly matter, so that no tilt suits the sum and its transform decays slowly. Given the
others, the payoff of one step is a convex function of w = e^{-L}. A chord between two points of a grid is above it and a line
through two points on one side below, so that a measure on the grid takes the place of the step's own: one for an upper bound and
one for a lower. Both are non-negative, and so are all the products of their convolution (docs/theory/smooth.md, section 6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, precision
from exactdp.doubles import UNIT, Floats
from exactdp.engine.effort import Effort
from exactdp.engine.line.block_convolution import convolved
from exactdp.engine.line.protocol import OneByOne, Used
from exactdp.engine.line.step_cells import FAR, SampledStep, StepCells, down, up
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss

USUAL_STEPS, MOST_STEPS = 16, 1024
"""Steps that are added up with the usual effort, a few seconds for each threshold; and with much more, about half a minute. Each
step costs accuracy."""

_MUCH_EFFORT = 25  # times the usual one
_FEWEST_POINTS, _MOST_POINTS = 64, 1 << 19
_MANY, _FEWER_POINTS = 100, 1 << 18  # steps from which on time is saved, and the points of a grid then
_WANTED = 3e-7  # of the answer: how far apart its bounds may be because of the grid
_OFF = 0.1  # of (slope times step of the grid)^2, which is what each step costs
_LONGEST_STEP = 0.1  # of a grid, and
_FARTHEST = 100.0  # from the least loss to the threshold: exponentials are doubles and accurate
_LEAST, _LOST = 1e-270, 1e-290  # an answer, and more than all products that are too small for doubles
_FEW_ROUNDINGS = 16 * UNIT
_TINY = 1e-140


@dataclass(frozen=True)
class Masses:
    """A non-negative measure on points 0, 1, ..., last of a grid, with what is beyond: on the last one and at infinity.

    A partial sum from the last point on decides: the payoff is linear in e^{-L} then, and any point there a mixture of these two.
    """

    finite: Floats
    infinite: float
    step: float
    is_above: bool

    def plus(self, other: Masses) -> Masses:
        """The sum of two independent losses."""
        mine = self.finite[:-1]
        inside = convolved(mine, mine if other is self else other.finite[:-1])[1 if self.is_above else 0]
        finite = np.append(inside, _total(self.finite * other._beyond[1]))
        return Masses(finite, self.payoff(other), self.step, self.is_above)

    def payoff(self, other: Masses) -> float:
        """What the sum has at infinity: delta, if these are all the steps."""
        mine, its = _total(self.finite), _total(other.finite)
        both = self.infinite * (its + other.infinite) + other.infinite * mine
        return both + _total(self.finite * other._beyond[0])

    @cached_property
    def _beyond(self) -> tuple[Floats, Floats]:
        """For every point i of another loss, what passes the last point with it: the mass at infinity and that on the last one.

        With r_s the mass s points below the last, e^{-i h} sum_{s <= i} r_s e^{s h} is on the last one, and
        e^{-i h} (e^h - 1) sum_{t < i} e^{t h} sum_{s <= t} r_s at infinity.
        """
        backwards = self.finite[::-1]
        up = np.exp(np.arange(len(backwards)) * self.step)
        left = _partial_sums(backwards * up) / up
        passed = _partial_sums(up * _partial_sums(backwards)) * math.expm1(self.step)
        gains = np.append(0.0, passed[:-1]) / up
        return gains, left


def _rows(x: Floats) -> Floats:
    """As many rows as columns, nearly, the last one filled with zeros."""
    side = math.isqrt(len(x)) + 1
    return np.pad(x, (0, side * side - len(x))).reshape(side, side)


def _total(x: Floats) -> float:
    """A sum of non-negative numbers, wrong by at most twice the root of their number and 2, in units, in whatever order."""
    return float(_rows(x).sum(axis=1).sum())


def _partial_sums(x: Floats) -> Floats:
    """All partial sums, wrong by as little."""
    rows = np.cumsum(_rows(x), axis=1)
    before = np.append(0.0, np.cumsum(rows[:-1, -1]))
    result: Floats = (rows + before[:, None]).ravel()[: len(x)]
    return result


def chords(cells: StepCells, tail: tuple[arb, arb]) -> Masses:
    """Every loss split between the two points around it, so that P and Q stay what they are: above."""
    h = float(cells.step.mid())
    _, gain, short = cells.high
    finite = np.append(short / math.expm1(h), 0.0)
    finite[1:] += gain / -math.expm1(-h)
    finite[-1] += up(tail[1])
    return Masses(_without_least(finite * (1 + _FEW_ROUNDINGS), 1.0), up(tail[0] - tail[1]), h, is_above=True)


def lines(cells: StepCells, tail: tuple[arb, arb], last: int) -> Masses:
    """Losses merged around every second point, and their mean moved there along a line through the next point on the other side:
    below.

    The measure stays non-negative: less is taken from the left, which is below as well, and losses below a point from which too
    much would be taken from the right are left out.
    """
    h, even, odd = 2 * float(cells.step.mid()), slice(0, 2 * last, 2), slice(1, 2 * last, 2)
    beyond = tail[1] * cells.step.exp()
    if not bool(tail[0] >= beyond):  # too coarse a grid
        return Masses(np.zeros(last + 1), 0.0, h, is_above=False)
    inside = np.append(cells.low[0, even] + cells.low[0, odd], down(beyond))
    right = np.maximum(cells.high[2, even] - cells.low[1, odd], 0.0) / -math.expm1(-h) * (1 + _FEW_ROUNDINGS)
    left = np.maximum(cells.low[1, odd] - cells.high[2, even], 0.0) / math.expm1(h) * (1 - _FEW_ROUNDINGS)
    left[1:] = np.minimum(left[1:], inside[:-2] / 2)
    left[0] = 0.0
    finite = _moved(inside, right, left)
    too_much = finite < 0
    too_much[-1] |= bool(right[-1] > cells.low[0, 2 * last])
    if too_much.any():
        first = int(np.flatnonzero(too_much)[-1])
        inside[:first], right[:first], left[: first + 1] = 0.0, 0.0, 0.0
        finite = _moved(inside, right, left)
    if not (finite >= 0).all():
        return Masses(np.zeros(last + 1), 0.0, h, is_above=False)
    return Masses(_without_least(finite, 0.0), down(tail[0] - beyond), h, is_above=False)


def _moved(inside: Floats, right: Floats, left: Floats) -> Floats:
    finite: Floats = (inside + np.append(right + left, 0.0)) * (1 - _FEW_ROUNDINGS)
    finite[1:] -= right * (1 + _FEW_ROUNDINGS)
    finite[:-2] -= left[1:] * (1 + _FEW_ROUNDINGS)
    return finite


def _without_least(masses: Floats, moved: float) -> Floats:
    """Tiny masses of the least losses moved to the next larger one, or left out: their products are no normal numbers."""
    large = np.flatnonzero(masses > _TINY)
    if len(large):
        first = int(large[0])
        masses[first] += moved * len(masses) * _TINY * (1 + _FEW_ROUNDINGS) if first else 0.0
        masses[:first] = 0.0
    return masses


@dataclass(frozen=True)
class FewSteps(OneByOne):
    """So many steps of one sampled mechanism, each threshold with its own grid."""

    loss: MixtureLoss
    count: int
    most: int
    """Points of a grid."""

    @cached_property
    def _step(self) -> SampledStep:
        return SampledStep(self.loss.mixture)

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """As `OneByOne` says."""
        points = self.points(y)
        if points is None:
            raise AccuracyError("No grid of losses suits this threshold.")
        step, count = self._step, self.count
        with precision(BITS):
            reach = y - count * step.floor
            coarse, fine = reach / points, reach / (2 * points + count)
            if not (bool(step.output(coarse, points) < FAR) and coarse.rel_accuracy_bits() > 60):
                raise AccuracyError("The threshold is too far out, or known to too few digits.")
            above = chords(step.cells(coarse, points), step.tail(coarse, points))
            below = lines(step.cells(fine, 2 * points + 1), step.tail(fine, 2 * points), points)
        upper, lower = (summed(one, count) for one in (above, below))
        slack = 8 * count * (math.sqrt(points) + 32 + float(reach.mid())) * UNIT
        if not upper > _LEAST:
            raise AccuracyError("Too small for doubles.")
        return 0.0, max(lower * (1 - slack) - _LOST, 0.0), upper * (1 + slack) + _LOST, upper * self._slope(y)

    def points(self, y: arb) -> int | None:
        """How many steps of the grid there are up to y; None if a grid cannot be had. Heuristic: affects accuracy and speed
        only, but for the limits."""
        reach = float((y - self.count * self._step.floor).mid())
        wanted = reach * self._slope(y) * math.sqrt(_OFF * self.count / _WANTED)
        if not (0 < reach < _FARTHEST and wanted < 1e9):
            return None
        number = min(max(math.ceil(wanted), _FEWEST_POINTS), self.most)
        return number if reach <= _LONGEST_STEP * number and number > 2 else None

    def _slope(self, y: arb) -> float:
        """How fast delta of one step falls, relative to it. Heuristic: affects accuracy and speed only."""
        found = self.loss.delta(y)
        return 0.0 if found is None else float((found[1] / found[0]).mid())

    def used(self, y: arb) -> Used:
        """The account of one threshold."""
        points = self.points(y) or 0
        return Used(
            "steps added up on a grid of losses", Payoff.DELTA, points, (("points of the grid", f"{points:,}"),)
        )


def few_steps(total: TotalLoss, rung: LineRung, effort: Effort) -> FewSteps | None:
    """Steps added up, if there are few and all of one kind: a Gaussian on a record that is sampled or not."""
    if rung.payoff is not Payoff.DELTA or not rung.low > 0 or len(total.parts) != 1:
        return None
    part = total.parts[0]
    affordable = USUAL_STEPS if effort.terms < _MUCH_EFFORT * Effort.terms else MOST_STEPS
    if not (isinstance(part.loss, MixtureLoss) and part.loss.may_be_labelled and 2 <= part.count <= affordable):
        return None
    squares = part.loss.mixture.squares
    if len(squares) != 2 or squares[0]:
        return None
    most = _MOST_POINTS if part.count < _MANY else _FEWER_POINTS
    return FewSteps(part.loss, part.count, min(most, effort.terms))


def summed(one: Masses, count: int) -> float:
    """What so many steps have at infinity."""

    @cache
    def power(n: int) -> Masses:
        return one if n == 1 else power(n - n // 2).plus(power(n // 2))

    return power(count - count // 2).payoff(power(count // 2))
