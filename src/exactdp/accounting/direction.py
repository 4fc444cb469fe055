"""One direction of a composition, a data set against its neighbour: the whole loss, its infinite part included.

delta(e) = lost + kept delta_finite(e),      1 - delta(e) = kept (1 - delta_finite(e)),      kept = 1 - lost
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.accounting.epsilon_search import EpsilonSearch
from exactdp.balls import BITS, ball, ends_of, fraction, precision
from exactdp.brackets import Bracket, Point, bracket_of_balls
from exactdp.doubles import Floats
from exactdp.engine.effort import Effort
from exactdp.engine.line.methods import Answering, threshold
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.numbers import log_rational

_SLACK = 2.0**-47
_ZERO = (0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -math.inf)  # the rows of a point with delta = 0


@dataclass(frozen=True)
class Direction:
    """Certified answers about one direction."""

    total: TotalLoss
    effort: Effort

    @cached_property
    def answering(self) -> Answering:
        """The finite part."""
        return Answering(self.total, self.effort)

    def finite(self, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
        """The profile of the finite part, given that the loss is finite; delta is 0 from the greatest loss on."""
        end = self.total.greatest
        point = self.answering.points([threshold(e) for e in epsilons])
        beyond = [i for i, e in enumerate(epsilons) if end is not None and e >= end]
        if beyond:
            for row, value in zip(point.rows(), _ZERO, strict=True):
                row[beyond] = value
        return point

    def point(self, epsilons: list[Fraction]) -> Point:
        """The profile of the whole loss."""
        finite = self.finite(epsilons)
        if self.total.lost == 0:
            return finite
        kept, lost = (_factor(x) for x in (self.total.kept, self.total.lost))
        rest = _times(finite.rest, kept)
        return Point(_plus(_times(finite.delta, kept), lost), rest, finite.log_density + kept[0])

    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest finite loss; infinite if there is none."""
        end = self.total.ends[1]
        return (math.inf, math.inf) if end is None else ends_of(end)

    def epsilon(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of the least e with delta(e) <= delta, 0 < delta < 1.

        Infinite if the loss is infinite with more probability than delta, the greatest finite loss if with exactly that.
        """
        exact = self.total.lost_exactly
        if exact is not None:
            return self._with_lost(delta, exact)
        with precision(BITS):
            low, high = (fraction(end) for end in (self.total.lost.lower(), self.total.lost.upper()))
        if delta <= low:
            return math.inf, math.inf
        if delta <= high:
            return self._with_lost(delta, low)[0], math.inf
        return self._with_lost(delta, low)[0], self._with_lost(delta, high)[1]

    def _with_lost(self, delta: Fraction, lost: Fraction) -> tuple[float, float]:
        if lost > delta:
            return math.inf, math.inf
        if lost == delta and lost:
            return self.greatest_loss()
        return self._finite_epsilon((delta - lost) / (1 - lost))

    def _finite_epsilon(self, delta: Fraction) -> tuple[float, float]:
        """The same for the finite part. At every e, delta(e) is at least 1 - e^e E e^{-L} and, by Markov, at most e^{K(nu) - nu
        e}."""
        constant = self.total.constant
        with precision(BITS):
            log_rest = ball(1 - delta).log()
            if constant is not None:
                return ends_of(constant + log_rest)
            lowest = float((log_rest - self.total.log_moment(Fraction(-1))).mid())
        highest = self._markov_epsilon(log_rational(delta))
        start = min(estimate(self.total, log_rational(delta)), highest)
        return EpsilonSearch(self.finite, delta, start, highest, lowest - 1e-9 * (1e-300 + abs(lowest))).bracket()

    def _markov_epsilon(self, log_delta: float) -> float:
        """An e at which delta(e) <= delta is proved for the finite part: the best of several nu, and the greatest loss."""
        best = self.greatest_loss()[1]
        for nu in _orders(self.total):
            upper = self.total.log_moment_upper(nu)
            best = min(best, (upper - log_delta) / nu + 1e-12 * (1 + abs(upper) + abs(log_delta)) / nu)
        return best


def _orders(total: TotalLoss) -> list[float]:
    unit = 1 / math.sqrt(total.widest)
    return [unit * 1.4**i for i in range(-12, 24)]


def estimate(total: TotalLoss, log_delta: float) -> float:
    """epsilon at which delta is about exp(log_delta), by Chernoff's bound. Heuristic: a starting point only."""
    # max over u of e^{-nu u} (1 - e^{-u}) is below 1 / (1 + nu)
    found = [(total.log_moment_upper(nu) - log_delta - math.log1p(nu) - 1.5) / nu for nu in _orders(total)]
    return max(min(found), 0.0)


_Factor = tuple[float, float, float]  # log_scale, lower, upper


def _factor(value: arb) -> _Factor:
    """A positive ball of any size."""
    with precision(BITS):
        return bracket_of_balls(value)


def _times(bracket: Bracket, factor: _Factor) -> Bracket:
    scale = bracket.log_scale + factor[0]
    slack = _SLACK * (1 + np.abs(scale) + np.abs(bracket.log_scale) + abs(factor[0]))
    return Bracket(scale, bracket.lower * factor[1] * (1 - slack), bracket.upper * factor[2] * (1 + slack))


def _plus(bracket: Bracket, term: _Factor) -> Bracket:
    """The sum, on the larger of the two scales; what underflows there adds at most the smallest double."""
    scale: Floats = np.where(bracket.upper == 0, term[0], np.maximum(bracket.log_scale, term[0]))
    slack = _SLACK * (1 + np.abs(scale) + np.abs(bracket.log_scale) + abs(term[0]))
    own, other = np.exp(np.minimum(bracket.log_scale - scale, 0.0)), np.exp(term[0] - scale)
    lower = (bracket.lower * own + term[1] * other) * (1 - slack)
    upper = (bracket.upper * own + term[2] * other) * (1 + slack)
    return Bracket(scale, lower, np.maximum(upper, 1e-300))
