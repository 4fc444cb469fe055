"""What a target of k releases says about one of them: the test of three outcomes.

Noise p is symmetric; P is its law, Q the law shifted. An event A that is disjoint from its mirror image A' has u = P(A) = Q(A')
and v = Q(A) = P(A'), so whoever sees only "A", "A'" or "neither" of each of k releases faces k copies of the pair
(u, 1 - u - v, v) against (v, 1 - u - v, u). That post-processing must meet the target too. Where it is proved not to, no
admissible noise has such an event (docs/theory/optimal-noise.md, Theorem 3); hence sum (p(x) - ratio p(x - shift))_+, which is
u - ratio v of such an event, is at most `ThreeOutcomes.allowed(ratio)`.
"""

from __future__ import annotations

import heapq
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.balls import BITS, fraction, precision
from exactdp.doubles import Floats
from exactdp.guarantees.calibration import MeetsAll, MeetsEpsilonDelta, MeetsMu, Target
from exactdp.guarantees.gaussian_dp import gaussian_ball
from exactdp.mechanisms.outcomes import Outcomes

MOST_COPIES = 1000
"""More copies are looked at as so many: a target of k releases is met by fewer of them."""

_DIGITS = 10**15  # probabilities are decimals
_MU_STEPS = 12  # epsilons up to 6 mu at which mu-GDP is asked for
_CLOSE = Fraction(1003, 1000)  # cells are split until the bound is this close to what is attained
_MOST_SPLITS = 60
_FIRST = [Fraction(1, 4**i) for i in range(20, -1, -1)]


class ThreeOutcomes:
    """The coverage c = u + v and the difference d = u - v that k releases under a target leave to one of them."""

    def __init__(self, wanted: Target, copies: int) -> None:
        self._copies = min(copies, MOST_COPIES)
        self._points = implied_points(wanted)
        self._known: dict[Fraction, Fraction] = {}

    def refused(self, coverage: Fraction) -> Fraction:
        """A difference d that is proved to fail at coverage c, hence at every smaller one, and d / s at c / s for s < 1;
        c itself, which is the largest difference that there is, if no such d is found."""
        if coverage not in self._known:
            self._known[coverage] = self._find(coverage)
        return self._known[coverage]

    def allowed(self, ratio: Fraction) -> Fraction:
        """At least the supremum of u - ratio v over all (u, v) that are not refused, for a ratio of at least 1.

        The cell of coverages with the largest bound is split until that is close to what is attained. Any cells are valid; only
        the size of the result depends on them.
        """
        cells = [(-self._bound(a, b, ratio), a, b) for a, b in pairwise([Fraction(0), *_FIRST])]
        attained = max(_payoff(c, self.refused(c), ratio) for c in _FIRST)
        heapq.heapify(cells)
        for _ in range(_MOST_SPLITS):
            bound, low, high = cells[0]
            if -bound <= attained * _CLOSE:
                break
            middle = (low + high) / 2 if low else high / 1024
            heapq.heappop(cells)
            attained = max(attained, _payoff(middle, self.refused(middle), ratio))
            for a, b in ((low, middle), (middle, high)):
                heapq.heappush(cells, (-self._bound(a, b, ratio), a, b))
        return min(max(-cells[0][0], Fraction(0)), Fraction(1))

    def _bound(self, low: Fraction, high: Fraction, ratio: Fraction) -> Fraction:
        """For coverages from `low` to `high`: d is at most `top`, and at most `slope` times c. Both meet at `corner`."""
        top = self.refused(high)
        slope = self.refused(low) / low if low else Fraction(1)
        corner = min(max(top / slope, low), high)
        best = corner if (1 + ratio) * slope > ratio - 1 else low
        return _payoff(best, min(top, slope * best), ratio)

    def _find(self, coverage: Fraction) -> Fraction:
        """Searched for in doubles, then proved by the engine, a little further out where that fails."""
        guess = self._guess(float(coverage))
        for margin in (1e-7, 1e-5, 1e-3):
            difference = Fraction(math.ceil(guess * (1 + margin) * _DIGITS), _DIGITS)
            if difference < coverage and self._fails((coverage + difference) / 2, (coverage - difference) / 2):
                return difference
        return coverage

    def _fails(self, u: Fraction, v: Fraction) -> bool:
        rest = 1 - u - v
        released = Composition({Outcomes([u, rest, v], [v, rest, u]): self._copies})
        return any(point.fails(released) for point in self._points)

    def _guess(self, coverage: float) -> float:
        """About the difference from which on a point is not met. Heuristic: affects the size of the bound only."""
        low, high = 0.0, coverage
        for _ in range(45):
            middle = (low + high) / 2
            low, high = (low, middle) if self._misses(coverage, middle) else (middle, high)
        return high

    def _misses(self, coverage: float, difference: float) -> bool:
        u, v = (coverage + difference) / 2, (coverage - difference) / 2
        law = _power(np.array([v, 1 - coverage, u]), self._copies)
        return any(float(np.maximum(law - math.exp(p.epsilon) * law[::-1], 0).sum()) > p.delta for p in self._points)


def _payoff(coverage: Fraction, difference: Fraction, ratio: Fraction) -> Fraction:
    """u - ratio v."""
    return ((1 + ratio) * difference - (ratio - 1) * coverage) / 2


def implied_points(wanted: Target, steps: int = _MU_STEPS) -> list[MeetsEpsilonDelta]:
    """Some (epsilon, delta) that whatever meets the target meets too: itself, or points of the curve of mu-GDP, rounded up."""
    if isinstance(wanted, MeetsEpsilonDelta):
        return [wanted]
    if isinstance(wanted, MeetsAll):
        return [point for one in wanted.targets for point in implied_points(one, steps)]
    if isinstance(wanted, MeetsMu):
        return [_on_curve(wanted.mu, Fraction(6 * i, steps) * wanted.mu) for i in range(steps)]
    return []


def _on_curve(mu: Fraction, epsilon: Fraction) -> MeetsEpsilonDelta:
    with precision(2 * BITS):
        return MeetsEpsilonDelta(epsilon, fraction(gaussian_ball(mu, epsilon)[0].upper()))


def _power(law: Floats, copies: int) -> Floats:
    """The law of a sum of copies, by repeated squaring."""
    result = np.ones(1)
    while copies:
        if copies & 1:
            result = np.convolve(result, law)
        law, copies = np.convolve(law, law), copies >> 1
    return result
