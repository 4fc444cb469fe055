"""Totals at which no composition meets a target: what the difference to the continuous Gaussian, at most so much, leaves.

R is 2 rho. Theorem 2 of docs/theory/optimization.md bounds delta from below by the Gaussian's less an excess, Theorem 6 so bounds
the trade-off curve from above, and of mu-GDP the divergence of order 2, which is R, is mu^2 at most. Evaluated in balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from exactdp.balls import ball, precision
from exactdp.guarantees.calibration import MeetsEpsilonDelta, MeetsMu, MeetsTradeOff, Target

BITS = 160
_LEAST_TILT = 0.05
_INTERVALS = 600
_FINEST_SHARE, COARSEST_SHARE = 1e-11, 4.0
"""Of R above the Gaussian's: the shares between which a limit is looked for."""
_TILTS = (Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))

Excess = Callable[[Fraction, Fraction, Fraction], arb]
"""Of R between two numbers, and at a tilt: at least the integral of |difference of the moment functions| / |z (z + 1)|, in units
of the Gaussian's at 0."""


def misses(one: Target, low: Fraction, high: Fraction, excess: Excess) -> bool:
    """Proved: no composition with R between `low` and `high` to which the excess applies meets the target."""
    low, high = Fraction(math.nextafter(float(low), 0.0)), Fraction(math.nextafter(float(high), math.inf))
    with precision(BITS):
        if isinstance(one, MeetsMu):
            return low > one.mu**2
        if isinstance(one, MeetsTradeOff):
            return bool(most_beta(low, high, one.alpha, excess) < ball(one.beta))
        return isinstance(one, MeetsEpsilonDelta) and bool(
            least_delta_within(low, high, one.epsilon, excess) > ball(one.delta)
        )


def least_delta_within(low: Fraction, high: Fraction, epsilon: Fraction, excess: Excess) -> arb:
    """At most delta(epsilon), epsilon >= 0 (Theorem 2). Any tilt is valid; only how tight the bound is depends on it."""
    with precision(BITS):
        e = ball(epsilon)
        smooth = gaussian_delta_ball(ball(low).sqrt().lower(), e)
        best = arb(-1)
        saddle = float(epsilon / low) - 0.5
        for tilt in {Fraction(max(saddle, _LEAST_TILT)).limit_denominator(1000), Fraction(max(round(saddle), 1))}:
            t = ball(tilt)
            size = (ball(high) * t * (t + 1) / 2 - e * t).exp()
            best = best.max((smooth - size * excess(low, high, tilt) / (2 * arb.pi())).lower())
        return best.lower()


def most_beta(low: Fraction, high: Fraction, alpha: Fraction, excess: Excess) -> arb:
    """At least the trade-off curve at alpha: the Gaussian's and the excess at epsilon = 0, the best of some tilts (Theorem 6)."""
    with precision(BITS):
        mu, a = ball(low).sqrt().lower(), ball(alpha)
        added = arb(1)
        for tilt in _TILTS:
            t = ball(tilt)
            added = added.min((ball(high) * t * (t + 1) / 2).exp() * excess(low, high, tilt) / (2 * arb.pi()))
        root = arb(2).sqrt()
        quantile = (1 - 2 * a).erfinv() * root  # Phi^-1(1 - alpha)
        return (((mu - quantile) / root).erfc() / 2 + added).upper()


def gaussian_delta_ball(mu: arb, epsilon: arb) -> arb:
    """delta of the continuous Gaussian."""
    root = arb(2).sqrt()
    below, above = ((epsilon / mu - mu / 2) / root).erfc() / 2, ((epsilon / mu + mu / 2) / root).erfc() / 2
    return below - epsilon.exp() * above


def misses_on(one: Target, start: Fraction, end: Fraction, step: Fraction, excess: Excess) -> bool:
    """Proved: no composition with R from `start` to `end` meets the target. In intervals, longer ones where there is room."""
    at, least = start, step / 32
    for _ in range(_INTERVALS):
        if at >= end:
            return True
        following = min(at + step, end)
        if misses(one, at, following, excess):
            at, step = following, step * 3 / 2
        elif step < least:
            return False
        else:
            step /= 2
    return at >= end


def smooth_spread(one: Target) -> Fraction:
    """An R at which the continuous Gaussian is proved not to meet the target, next to the least one; larger ones fail, too."""
    if isinstance(one, MeetsMu):
        return one.mu**2
    low, high = 1e-12, 1.0

    def fails(spread: float) -> bool:
        return misses(one, Fraction(spread), Fraction(spread), lambda *_: arb(0))

    while not fails(high):
        low, high = high, 2 * high
    while high > low * (1 + 1e-13):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fails(middle) else (middle, high)
    return Fraction(high)


def likely_share(one: Target, smooth: Fraction, excess: Excess) -> float:
    """About the least share above the Gaussian's R at which a point fails. Heuristic: affects tightness and speed only."""
    low, high = _FINEST_SHARE, COARSEST_SHARE
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        at = smooth * (1 + Fraction(middle))
        low, high = (low, middle) if misses(one, at, at, excess) else (middle, high)
    return high


def is_out_of_reach(one: Target) -> bool:
    """Whether nothing is proved about such a target: a negative epsilon, or a beta that nothing has."""
    if isinstance(one, MeetsEpsilonDelta):
        return one.epsilon < 0
    return isinstance(one, MeetsTradeOff) and one.beta >= 1 - one.alpha
