"""The overall guarantee over all pairs: the largest delta and epsilon, the lower convex envelope of the trade-off curves.

Parallel composition: the release as a whole is (epsilon, delta)-DP exactly when every pair is, and f-DP for the lower convex
envelope f of the least of the pairs' curves. Envelopes are computed in the dual: the envelope's conjugate is the largest
of the conjugates, that is, f(alpha) = max over slopes s of min over pairs and vertices of beta + s (alpha_vertex - alpha). So
every slope gives a proven lower bound, and every chord between two vertices a proven upper bound; the search makes them meet
(docs/theory/engine.md, Theorem 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.epsilon_search import both_readings, gaussian_start
from exactdp.accounting.pairs import Pairs
from exactdp.accounting.separate_pairs import PairAnswers, Question
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.accounting.tradeoff_dual import beta_from_profile, curve_from_profile
from exactdp.brackets import Point
from exactdp.doubles import CHAIN_SLACK, TINY, exp_above, exp_below
from exactdp.engine.lattice.accuracy import ACCURACY
from exactdp.errors import LatticeTooFineError
from exactdp.numbers import log_rational
from exactdp.widths import REMEDY

_SEARCH_STEPS = 100


@dataclass(frozen=True)
class Overall:
    """The worst over all pairs of a family, for any argument."""

    pairs: PairAnswers
    is_screened: ClassVar[bool] = False
    """Whether `point` is faster than the answers of the pairs themselves, with wider bounds."""

    @property
    def _all(self) -> range:
        return range(self.pairs.count)

    def point(self, epsilon: Fraction) -> Point:
        """delta(epsilon) and 1 - delta(epsilon) of every pair."""
        return self.pairs.profile([Question(p, epsilon) for p in self._all])

    def delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the largest delta(epsilon)."""
        delta = self.point(epsilon).delta
        return float(delta.lower_floats().max()), float(min(delta.upper_floats().max(), 1.0))

    def log_delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the logarithm of the largest delta(epsilon)."""
        delta = self.point(epsilon).delta
        return float(delta.log_lower().max()), min(float(delta.log_upper().max()), 0.0)

    def epsilon(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of the largest epsilon(delta), 0 < delta < 1.

        The epsilon of one pair is a lower bound. A pair whose delta there is proved to be at most the given one cannot have
        a larger epsilon; the others are asked themselves, the most suspicious first.
        """
        small = delta <= Fraction(1, 2)
        target = log_rational(delta if small else 1 - delta)
        error = CHAIN_SLACK * (1 + abs(target))
        guess = gaussian_start(self.pairs.spread, delta)
        suspects = dict.fromkeys(self._all, True)
        lower, upper = -math.inf, -math.inf
        at = guess
        while suspects:
            point = self.point(min(both_readings(at)))  # delta is largest at the smaller reading
            bounds = point.delta.log_upper() if small else -point.rest.log_lower()
            limit = target - error if small else -(target + error)
            worst = max(suspects, key=lambda p: bounds[p])
            if upper > -math.inf:
                suspects = {p: True for p in suspects if bounds[p] > limit}
                if worst not in suspects:
                    break
            low, high = self.pairs.answers(worst).epsilon_bracket(delta)
            suspects.pop(worst)
            lower, upper = max(lower, low), max(upper, high)
            at = upper
        return lower, upper

    def beta(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of the lower convex envelope of all trade-off curves at alpha, 0 < alpha < 1."""
        if isinstance(self.pairs, Pairs) and self.pairs.on_lattices:
            try:
                return _Envelope(self, self.pairs, alpha).bounds()
            except LatticeTooFineError:
                pass  # by the dual, which needs no vertices
        return self.beta_by_dual(alpha)

    def beta_by_dual(self, alpha: Fraction) -> tuple[float, float]:
        """The same from delta alone."""
        spread = self.pairs.spread
        quantile = -float(ndtri_exp(log_rational(alpha)))
        return beta_from_profile(self.worst, alpha, quantile * math.sqrt(spread) - spread / 2, math.sqrt(spread))

    @property
    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest loss of all pairs, epsilon at delta = 0: infinite for Gaussian noise."""
        return math.inf, math.inf

    def suspects(self, quantity: str, at: Fraction) -> Sequence[int]:
        """The pairs that can be the worst for one question, by their numbers: all, unless some are proved not to be."""
        return self._all

    def worst(self, epsilons: list[Fraction]) -> Point:
        """At each epsilon the largest delta and the smallest 1 - delta of all pairs."""
        columns = []
        for epsilon in epsilons:
            point = self.point(epsilon)
            at = int(np.argmax(point.delta.log_upper()))
            delta = 0.0, float(point.delta.lower_floats().max()), float(point.delta.upper_floats().max())
            scale = float(point.rest.log_scale[int(np.argmin(point.rest.log_lower()))])
            with np.errstate(over="ignore"):  # far above the least: of no consequence
                moved = np.exp(point.rest.log_scale - scale)
            low, high = float((point.rest.lower * moved).min()), float((point.rest.upper * moved).min())
            columns.append(
                (*delta, scale, low * (1 - CHAIN_SLACK), high * (1 + CHAIN_SLACK), float(point.log_density[at]))
            )
        return Point.of_rows(np.array(columns).T)

    def curve(self, num: int, remedy: str = REMEDY) -> TradeOffCurve:
        """At most `num` points on or below the envelope, convex, from (0, 1) to (1, 0)."""
        spread = self.pairs.spread
        return curve_from_profile(self.worst, spread / 2 + 7.1 * math.sqrt(spread), num, remedy=remedy)


class SeparateOverall(Overall):
    """The worst over pairs of any mechanisms, each asked by itself; a single pair's own answers are the overall ones."""

    def beta(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of the lower convex envelope of all trade-off curves at alpha, 0 < alpha < 1."""
        return self.pairs.answers(0).beta_bracket(alpha) if self.pairs.count == 1 else self.beta_by_dual(alpha)

    def curve(self, num: int, remedy: str = REMEDY) -> TradeOffCurve:
        """At most `num` points on or below the envelope, convex, from (0, 1) to (1, 0)."""
        return self.pairs.answers(0).curve(num) if self.pairs.count == 1 else super().curve(num, remedy)

    @property
    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest loss of all pairs: finite where all noise is Laplace."""
        lows, highs = zip(*(self.pairs.answers(p).greatest_loss for p in self._all), strict=True)
        return max(lows), max(highs)


@dataclass(frozen=True)
class _Vertex:
    """A point on or above the envelope: u stands for alpha, or for 1 - alpha where alpha is above 1/2."""

    u: float
    beta: float
    pair: int
    step: int


class _Envelope:
    """The search for the slope at which lower and upper bound meet."""

    def __init__(self, overall: Overall, pairs: Pairs, alpha: Fraction) -> None:
        self._overall = overall
        self._pairs = pairs
        self._alpha = alpha
        self._small = alpha <= Fraction(1, 2)
        self._u = float(alpha if self._small else 1 - alpha)
        self._log_u = log_rational(alpha if self._small else 1 - alpha)
        self._log_alpha = log_rational(alpha)
        # the last resort in both directions: the corners of the unit square
        self._left = _Vertex(0.0 if self._small else 1.0, 1.0, -1, 0)
        self._right = _Vertex(1.0 if self._small else 0.0, 0.0, -1, 0)
        self._lower = 0.0

    def bounds(self) -> tuple[float, float]:
        lattice = self._pairs.family.typical[0]
        deviation = math.sqrt(lattice.r)
        quantile = -float(ndtri_exp(self._log_u)) * (1 if self._small else -1)
        start = quantile * deviation - lattice.r / 2
        reach = max(4 * lattice.h, 1e-6 * deviation)
        epsilon = Fraction(start)
        for _ in range(_SEARCH_STEPS):
            fresh = self._look(epsilon)
            if self._upper() - self._lower <= ACCURACY / 4 * self._upper():
                break
            if self._left.pair < 0 or self._right.pair < 0:  # one side is still a corner: go there, further each time
                epsilon = Fraction(start + reach if self._left.pair < 0 else start - reach)
                reach = min(8 * reach, 50 * deviation + lattice.r)
            elif fresh:
                epsilon = self._between()
            else:
                break
        return max(self._lower, 0.0), min(self._upper(), 1.0)

    def _look(self, epsilon: Fraction) -> bool:
        """Improve the bounds by the line of slope e^epsilon and the vertex it touches; False if that brings nothing new."""
        pairs = self._pairs
        point = self._overall.point(abs(epsilon))
        by_rest = epsilon >= 0 or self._small
        worst = int(np.argmin(point.rest.log_lower()) if by_rest else np.argmax(point.delta.log_upper()))
        before = self._lower
        self._lower = max(self._lower, self._line(point, epsilon))
        lattice = pairs.family.typical_of(worst)
        step = math.ceil((epsilon + lattice.half_spread) / lattice.step)
        known = {(v.pair, v.step) for v in (self._left, self._right)}
        fresh = False
        for t in {step, step + 1} if (epsilon + lattice.half_spread) / lattice.step == step else {step}:
            if (worst, t) not in known:
                self._take(worst, t, lattice.spread_steps)
                fresh = True
        return fresh or self._lower > before

    def _take(self, pair: int, step: int, total: int) -> None:
        """Put a vertex on its side of alpha, in place of the one there."""
        alpha, beta = self._pairs.tails([(pair, step), (pair, total + 1 - step)])
        # upwards and to the right, both of which stay above the envelope
        log = alpha.high if self._small else alpha.rest_low
        u = (exp_above if self._small else exp_below)(log, CHAIN_SLACK)
        vertex = _Vertex(u, exp_above(beta.high, CHAIN_SLACK), pair, step)
        on_right = u >= self._u if self._small else u <= self._u
        self._left, self._right = (self._left, vertex) if on_right else (vertex, self._right)

    def _line(self, point: Point, epsilon: Fraction) -> float:
        """min over pairs of 1 - delta(epsilon), less e^epsilon alpha: below the envelope (weak duality).

        `point` is taken at |epsilon|; for negative epsilon, 1 - delta(epsilon) = e^epsilon (1 - delta(-epsilon)).
        """
        e = float(epsilon)
        slack = CHAIN_SLACK * (1 + abs(e))
        if epsilon >= 0:
            slack += CHAIN_SLACK * abs(self._log_alpha)
            rest = float(point.rest.lower_floats().min())
            return rest - math.exp(min(e + self._log_alpha, 700.0)) * (1 + slack) - slack * rest - TINY
        # 1 - alpha - delta as a difference of two numbers that are known in relative terms
        if self._small:
            first, second = float(point.rest.lower_floats().min()), self._u
        else:
            first, second = self._u, float(point.delta.upper_floats().max())
        return math.exp(e) * ((first - second) - slack * (first + second)) - TINY

    def _between(self) -> Fraction:
        """The logarithm of the slope of the chord between the two vertices, exact where it is an edge of one pair's curve."""
        left, right = self._left, self._right
        if left.pair == right.pair and left.step == right.step + 1:
            lattice = self._pairs.family.typical_of(left.pair)
            return lattice.step * right.step - lattice.half_spread
        gap = abs(right.u - left.u)
        return Fraction(math.log(max(left.beta - right.beta, 5e-324)) - math.log(max(gap, 5e-324)))

    def _upper(self) -> float:
        """The chord between the two vertices at alpha."""
        left, right = self._left, self._right
        gap = abs(right.u - left.u)
        if gap == 0:
            return max(left.beta, right.beta)
        share = min(max(abs(right.u - self._u) / gap, 0.0), 1.0)
        rise = max(left.beta - right.beta, 0.0)
        # u itself is rounded, which moves the chord by its slope times that
        return (right.beta + rise * share) * (1 + CHAIN_SLACK) + rise / gap * (self._u * CHAIN_SLACK + TINY) + TINY
