"""The trade-off curve from the privacy profile, for any composition.

    beta(alpha) = max over real epsilon of F(epsilon) = 1 - delta(epsilon) - e^epsilon alpha        (Dong, Roth and Su 2022)

Every epsilon gives a proven lower bound. F is concave in e^epsilon, so values at a few points also bound it from above: between
two points it is below the chords of the neighbouring points, extended (docs/theory/any-composition.md, Theorem 15).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from exactdp.engine.bracket import Point
from exactdp.mechanisms.theta import Floats
from exactdp.numbers import log_rational
from exactdp.tradeoff import TradeOffCurve, lower_hull

_SLACK = 2.0**-46
_TINY = 1e-322
_BISECTIONS = 200
_OFFSETS = (-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0)
_SPACINGS = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_GOOD_ENOUGH = 1e-10

PointAt = Callable[[list[Fraction]], Point]


def beta_from_profile(point_at: PointAt, alpha: Fraction, start: float, scale: float) -> tuple[float, float]:
    """Bounds of the trade-off curve at alpha, 0 < alpha < 1, searched from epsilon = start in steps of `scale`.

    `point_at` gives the profile at one or more epsilons, each a single answer (the worst over directions or pairs).
    """
    line = _Line(point_at, alpha)
    best = line.maximum(start, scale)
    lower, upper = 0.0, 1.0 - float(alpha) * (1 - _SLACK)
    for spacing in _SPACINGS:
        low, high = line.bounds_around(best, spacing * (1 + abs(best)) if spacing > 1e-3 else spacing)
        lower, upper = max(lower, low), min(upper, high)
        if upper - lower <= _GOOD_ENOUGH * upper:
            break
    return max(lower - _TINY, 0.0), min(upper + _TINY, 1.0)


class _Line:
    """F at one alpha."""

    def __init__(self, point_at: PointAt, alpha: Fraction) -> None:
        self._point_at = point_at
        self._log_alpha, self._log_other = log_rational(alpha), log_rational(1 - alpha)
        self._small = alpha <= Fraction(1, 2)

    def maximum(self, start: float, scale: float) -> float:
        """Where F is largest: F' has the sign of log(-d delta / d epsilon) - epsilon - log alpha, which falls. Heuristic: width
        only."""

        def rises(e: float) -> bool:
            density = float(self._point_at([Fraction(e)]).log_density[0])
            return density - e - self._log_alpha > 0

        low, high, step = start, start, scale
        while not rises(low) and step < 1e9:
            low, high, step = low - step, low, 2 * step
        step = scale
        while rises(high) and step < 1e9:
            low, high, step = high, high + step, 2 * step
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if high - low <= 1e-13 * (1 + abs(middle)) or middle in (low, high):
                break
            low, high = (middle, high) if rises(middle) else (low, middle)
        return (low + high) / 2

    def bounds_around(self, centre: float, spacing: float) -> tuple[float, float]:
        """Bounds of the largest value of F from its values near `centre`."""
        epsilons = [Fraction(centre + offset * spacing) for offset in _OFFSETS]
        lows, highs = self._values(epsilons)
        x = np.array([math.expm1(float(e) - centre) for e in epsilons])  # e^epsilon up to a factor and a shift
        return float(lows.max()), _concave_upper(x, lows, highs)

    def _values(self, epsilons: list[Fraction]) -> tuple[Floats, Floats]:
        """Bounds of F; for negative epsilon as e^epsilon (1 - alpha - delta(-epsilon)), so that nothing cancels for alpha near
        1."""
        point = self._point_at([abs(e) for e in epsilons])
        e = np.array([float(x) for x in epsilons])
        alpha, other = math.exp(self._log_alpha), math.exp(self._log_other)
        slack = _SLACK * (2 + np.abs(e) + abs(self._log_alpha) + abs(self._log_other))
        rests = point.rest.lower_floats(), point.rest.upper_floats()
        deltas = point.delta.lower_floats(), point.delta.upper_floats()
        cost = np.exp(np.minimum(e + self._log_alpha, 700.0))
        shrink = np.exp(np.minimum(e, 0.0))
        ends = []
        for sign, rest, delta in ((-1, rests[0], deltas[1]), (1, rests[1], deltas[0])):
            above = rest - cost + sign * slack * (rest + cost)
            first, second = (rest, alpha) if self._small else (other, delta)
            below = shrink * ((first - second) + sign * slack * (first + second))
            ends.append(np.where(e >= 0, above, below) + sign * _TINY)
        return ends[0], ends[1]


def _concave_upper(x: Floats, lows: Floats, highs: Floats) -> float:
    """A bound of a concave function everywhere, from bounds of its values at ascending x; inf if its top may lie outside."""
    if not (lows[1] >= highs[0] and lows[-2] >= highs[-1]):
        return math.inf
    best = max(float(highs[0]), float(highs[-1]))
    n = len(x)
    for i in range(n - 1):
        # each line is given by its values at both ends of the interval
        lines = []
        if i > 0:
            share = (x[i + 1] - x[i]) / (x[i] - x[i - 1])
            lines.append((highs[i], highs[i] + (highs[i] - lows[i - 1]) * share))
        if i + 2 < n:
            share = (x[i + 1] - x[i]) / (x[i + 2] - x[i + 1])
            lines.append((highs[i + 1] + (highs[i + 1] - lows[i + 2]) * share, highs[i + 1]))
        best = max(best, _top_of_least(lines) * (1 + 1e-15))
    return best


def _top_of_least(lines: list[tuple[float, float]]) -> float:
    """The largest value over [0, 1] of the least of one or two linear functions."""
    if len(lines) == 1:
        return max(lines[0])
    (a0, a1), (b0, b1) = lines
    candidates = [min(a0, b0), min(a1, b1)]
    rise = (a1 - a0) - (b1 - b0)
    if rise != 0 and 0 < (t := (b0 - a0) / rise) < 1:
        candidates.append(a0 + (a1 - a0) * t)
    return max(candidates)


def curve_from_profile(point_at: PointAt, reach: float, num: int) -> TradeOffCurve:
    """At most `num` points on or below the trade-off curve, convex, from (0, 1) to (1, 0), from slopes e^-reach to e^reach."""
    losses = np.linspace(-reach, reach, max(num, 41))
    point = point_at([Fraction(e) for e in losses.tolist()])
    # F for each slope, rounded down: exp, product and difference lose less than 1e-15 each
    starts, slopes = point.rest.lower_floats() * (1 - 2e-15), np.exp(losses) * (1 + 1e-14)
    alphas = [float(a) for a in 0.5 * (1 + np.tanh(np.linspace(-12, 12, num - 2)))]
    betas = [float(np.max(starts - slopes * a)) for a in alphas]
    inside = [(a, min(b, 1 - 2.0**-53)) for a, b in zip(alphas, betas, strict=True) if b >= 0 and 0 < a < 1]
    hull = lower_hull([(0.0, 1.0), *inside, (1.0, 0.0)])
    return TradeOffCurve(np.array([p[0] for p in hull]), np.array([p[1] for p in hull]))
