"""Steps cut off where one alone decides: a Fourier sum for a sampled mechanism at few steps and low rates.

    delta(y) = P(E) - e^y Q(E) + P(not E) delta_0(y),      E: some output is at or above the cut,

delta_0 given that none is. The cut is so high that one such output makes the loss exceed y, whatever the others are; so the first
two terms are what E adds, exactly. Below the cut the loss is bounded, and a tilt which suits y is not drawn to outputs far beyond
it (docs/theory/smooth.md, section 5).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from flint import arb

from exactdp.balls import BITS, precision
from exactdp.brackets import Bracket
from exactdp.cache import Recent
from exactdp.doubles import FORMULA_SLACK, UNDERFLOW, UNIT, Floats
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.tilts import short
from exactdp.engine.line.float64 import LineContour
from exactdp.engine.line.plan import FINEST, make_line_plan
from exactdp.engine.line.protocol import Method, Used
from exactdp.engine.line.step_balls import StepBalls
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss, log_largest_gain
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from exactdp.mechanisms.cut_mixture_loss import CutMixtureLoss
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.numerals import at_most

_MUCH_NOISE = 0.6  # the largest square of shift over noise at which steps are cut off before large ones are told apart
_RARELY = 0.3  # the largest mean number of steps with a record at which they are cut off before anything else
_FEWEST = 6  # steps whose Fourier sum below the cut is short
_RATIO = 1.04  # of thresholds that share a plan
_HELD = 8
_SHORT = 40.0  # -log of the probability that one output at the cut is not enough
_LOWERED = (0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3)  # shares by which a tilt is lowered
_ORDERS = 14  # of moments that bound aliases, beyond the tilt
_ALIASED = 35.0  # -log of what aliases may leave
_ENOUGH = 4e-10  # the width of a sum in doubles that is not made again in balls
_TERMS = 8  # in balls for each one of the effort
_NARROW, _FINER, _ATTEMPTS = 1e-11, 0.1, 3  # the width that balls aim at, and how much finer than needed a plan is made
_WORTH = 1.0  # factors of e in size that a factor of e in length is worth
_MOST_LOST = 9.0  # factors of e in size
_P = TypeVar("_P", bound=Method)


@dataclass(frozen=True)
class NearThresholds(ABC, Generic[_P]):
    """A method for so many steps of one sampled mechanism: thresholds within a few percent of each other share a plan."""

    loss: MixtureLoss
    count: int
    effort: Effort
    _held: Recent[int, _P] = field(default_factory=lambda: Recent(_HELD), repr=False, compare=False)

    @abstractmethod
    def plan(self, low: float, high: float, place: int) -> _P:
        """The plan for thresholds from low to high, which `place` stands for."""

    def _near(self, y: float) -> _P:
        place = math.ceil(math.log(y) / math.log(_RATIO))
        low, high = _RATIO ** (place - 1) * (1 - FORMULA_SLACK), _RATIO**place * (1 + FORMULA_SLACK)
        return self._held.get(place, lambda: self.plan(low, high, place))

    def evaluate(self, thresholds: list[arb]) -> tuple[Bracket, Floats]:
        """As `Method` says."""
        found = [self._near(float(y.mid())).evaluate([y]) for y in thresholds]
        rows = zip(*(bracket.rows() for bracket, _ in found), strict=True)
        return Bracket(*(np.concatenate(row) for row in rows)), np.concatenate([slope for _, slope in found])

    def used(self, y: arb) -> Used:
        """As `Method` says."""
        return self._near(float(y.mid())).used(y)


@dataclass(frozen=True)
class CutSteps:
    """So many steps of one sampled mechanism, cut off, with a contour for what is below the cut."""

    loss: CutMixtureLoss
    count: int
    contour: LineContour | StepBalls
    every: MixtureLoss
    """A step that is not cut off."""

    @cached_property
    def _logs(self) -> tuple[arb, arb, arb]:
        """log P(not E), and P(E) and Q(E)."""
        with precision(BITS):
            none = [self.count * (-p).log1p() for p in self.loss.beyond]
            return none[0], -none[0].expm1(), -none[1].expm1()

    def evaluate(self, thresholds: list[arb]) -> tuple[Bracket, Floats]:
        """What outputs above the cut add, exactly, and the Fourier sum for the others."""
        inside, slope = self.contour.evaluate(thresholds)
        lower, upper, slopes = np.empty(len(thresholds)), np.empty(len(thresholds)), np.empty(len(thresholds))
        with precision(BITS):
            log_none, some, other = self._logs
            for i, y in enumerate(thresholds):
                scale = (-arb(float(inside.log_scale[i]))).exp()
                share, growth = log_none.exp(), y.exp()
                added = (some - growth * other) * scale
                low = added + share * arb(max(float(inside.lower[i]), 0.0))
                high = added + share * arb(float(inside.upper[i])) + self._short_of(y) * scale
                lower[i] = max(math.nextafter(float(low.lower()), -math.inf), 0.0)
                upper[i] = math.nextafter(float(high.upper()), math.inf)
                slopes[i] = float((growth * other * scale + share * arb(float(slope[i]))).mid())
        return Bracket(inside.log_scale, lower, upper + UNDERFLOW), slopes

    def doubt(self, y: arb) -> float:
        """How far apart the bounds are, relative to the lower one, at most 1. Heuristic: affects accuracy and speed only."""
        return min(float(self.evaluate([y])[0].width()[0]), 1.0)

    def _short_of(self, y: arb) -> arb:
        """A bound of E (e^{y - L} - 1)_+ on E: n Q(x >= cut) e^y c e^{-t (log f(cut) - y)} G(-t)^{n - 1} (Theorem S10)."""
        with precision(BITS):
            away = float((self.loss.at_cut - y).lower())
            log_least = min(_log_short(self.every, self.count, t, away) for t in _orders(self.every, self.count))
            return self.count * self.loss.beyond[1] * y.exp() * arb(log_least).exp()

    def used(self, y: arb) -> Used:
        """Where steps are cut off, and the account of the Fourier sum for what is below."""
        there = self.contour.used(y)
        with precision(BITS):
            some = float(self._logs[1].upper()) * (1 + 4 * UNIT)
        rows = (
            ("steps are cut off", f"at about {self.loss.cut.cut:.3g} deviations of the noise"),
            ("probability of an output beyond", at_most(some, 2)),
            ("below by", there.method),
            *there.rows,
        )
        return replace(there, method=f"steps cut off, below by {there.method}", rows=rows)


@dataclass(frozen=True)
class CutMethod(NearThresholds[CutSteps]):
    """Cuts for the thresholds of a rung."""

    def plan(self, low: float, high: float, place: int) -> CutSteps:
        """A cut, and a contour for what is below it: in balls where its terms cancel to more digits than doubles have."""
        cut = CutMixtureLoss(self.loss.mixture, self.loss.output_at(high + _room(self.loss, self.count)))
        below = TotalLoss((Part(cut, self.count),))
        rung = LineRung(Payoff.DELTA, place, short(_tilt(below, (low + high) / 2)), low, high)
        plan = make_line_plan(below, rung, self.effort)
        found = CutSteps(cut, self.count, LineContour(plan), self.loss)
        return found if plan.smoothing else self._in_balls(found, rung)

    def _in_balls(self, found: CutSteps, rung: LineRung) -> CutSteps:
        """The same, or a contour in balls where that is narrower, its plan as fine as the digits that are lost ask for."""
        below, middle = TotalLoss((Part(found.loss, self.count),)), arb((rung.low + rung.high) / 2)
        doubt, finest = found.doubt(middle), FINEST
        for _ in range(_ATTEMPTS if doubt > _ENOUGH else 0):
            try:
                plan = make_line_plan(below, rung, self.effort, finest)
                finer = replace(found, contour=StepBalls(found.loss, self.count, plan, _TERMS * self.effort.terms))
                left = finer.doubt(middle)
            except AccuracyError:
                break
            if not left < 0.5 * doubt:
                break
            found, doubt = finer, left
            if doubt <= _NARROW:
                break
            finest *= _FINER * _NARROW / doubt
        return found


def cut_steps(total: TotalLoss, rung: LineRung, effort: Effort) -> CutMethod | None:
    """Steps cut off above the thresholds of a rung; None where there is more than one kind of steps, or these do not suit."""
    loss = only_sampled(total, rung)
    return None if loss is None else CutMethod(loss, total.parts[0].count, effort)


def only_sampled(total: TotalLoss, rung: LineRung) -> MixtureLoss | None:
    """The loss of all steps, if they are of one sampled mechanism, in the direction and at thresholds that suit it."""
    if rung.payoff is not Payoff.DELTA or not rung.low > 0 or len(total.parts) != 1:
        return None
    loss = total.parts[0].loss
    suits = isinstance(loss, MixtureLoss) and loss.may_be_labelled and loss.ends[0] is not None
    return loss if suits and isinstance(loss, MixtureLoss) else None


def has_much_noise(total: TotalLoss, most: float = _MUCH_NOISE) -> bool:
    """Whether the Fourier sum below a cut is short. Heuristic: affects speed only."""
    return max((part.loss.widest for part in total.parts), default=0.0) <= most


def rarely_sampled(total: TotalLoss) -> bool:
    """Whether steps are best cut off at once. Heuristic: affects speed only."""
    part = total.parts[0]
    if not (isinstance(part.loss, MixtureLoss) and has_much_noise(total) and part.count >= _FEWEST):
        return False
    return part.count * (1 - float(part.loss.mixture.weights[0])) <= _RARELY


def _log_short(loss: MixtureLoss, count: int, order: float, away: float) -> float:
    """A double above log of c G(-order)^(n - 1) e^{-order away}, c the largest e^{-order u} (1 - e^{-u})."""
    moment = (count - 1) * loss.log_moment_upper(-1 - order) if count > 1 else 0.0
    gain = float(log_largest_gain(order))
    size = 1 + abs(moment) + abs(order * away) + abs(gain) * (1 + order)
    return moment + gain - order * away + FORMULA_SLACK * size


def _orders(loss: MixtureLoss, count: int) -> list[float]:
    """Orders of moments that bound how far steps fall short, around that of a normal loss. Heuristic: affects accuracy only."""
    deviation = math.sqrt(count * loss.mean_variance(-1.0)[1])
    return [math.sqrt(2 * _SHORT) / deviation * factor for factor in (0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 8.0)]


def _room(loss: MixtureLoss, count: int) -> float:
    """How far above a threshold one output has to be for the others to make up for it hardly ever.

    Heuristic: affects accuracy only.
    """
    return max(min((_log_short(loss, count, t, 0.0) + _SHORT) / t for t in _orders(loss, count)), 0.0)


def _tilt(total: TotalLoss, y: float) -> float:
    """A tilt with a short period that costs few digits: at most the one at which the mean is the threshold.

    Heuristic: affects accuracy and speed only.
    """
    low, high = 1e-3 / y, 1.0 / y
    while total.mean_variance(high)[0] < y and high < 1e9 / y:
        low, high = high, 2 * high
    for _ in range(24):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if total.mean_variance(middle)[0] < y else (low, middle)
    best = high
    orders = [best * (1 + 0.02 * 1.6**i) for i in range(_ORDERS)]
    uppers = {nu: total.log_moment_upper(nu) for nu in orders}
    found = []
    for share in _LOWERED:
        at = best * (1 - share)
        base = total.log_moment_upper(at)
        right = min((k - base - (nu - at) * y + _ALIASED) / (nu - at) for nu, k in uppers.items())
        period = max((max(at * y - base, 0.0) + _ALIASED) / at, right)
        found.append((math.log(period), base - at * y, at))
    least = found[0][1]
    return min((p + (b - least) / _WORTH, at) for p, b, at in found if b - least <= _MOST_LOST)[1]
