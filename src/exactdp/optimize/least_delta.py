"""The least delta that Gaussian noise of a given total can have, whatever its shape, and the largest total that a
guarantee allows.

R is 2 rho of a composition. Noise that is nowhere coarser than some sigma2 has a delta that differs from the continuous
Gaussian's by
at most an explicit amount, however R is spread over the mechanisms (docs/theory/optimization.md, Theorem 2): by the inequality of
arithmetic and geometric means the worst spread is an even one. So a guarantee bounds R (Theorem 3), and that bounds the
accuracy of every design (Theorem 4). Everything is evaluated in balls and rounded outward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from exactdp.balls import ball, precision
from exactdp.doubles import SUM_SLACK
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

_BITS = 160
_LEAST_TILT = 0.05
_INTERVALS = 600
_FINEST, _COARSEST = 1e-11, 4.0  # of the share by which R is tried above the Gaussian's
_LEAST_SIGMA2 = Fraction(3, 20)  # from which on the bounds fall in sigma2
_MOST_EPSILON, _MOST_SENSITIVITY = 60, 8
_RATIO, _GRID, _COUNTS = 1.004, 1400, 400
_VARIANCE_SLACK = Fraction(10**12 - 1, 10**12)  # the variance in doubles is good to far more


@dataclass(frozen=True)
class Coarsest:
    """The coarsest noise that a cell may have: the least sigma2, its sensitivity, and how many copies of it a composition has."""

    sigma2: Fraction
    sensitivity: int = 1
    copies: int = 1

    @property
    def spread(self) -> Fraction:
        """The most that such a cell adds to R."""
        return Fraction(self.copies * self.sensitivity**2) / self.sigma2

    def within(self, spread: Fraction) -> Coarsest:
        """The same where R is at most `spread`, of which no cell can have more than all."""
        least = max(self.sigma2, Fraction(self.copies * self.sensitivity**2) / spread)
        return Coarsest(least, self.sensitivity, self.copies)


def excess(coarsest: Sequence[Coarsest], low: Fraction, high: Fraction, tilt: Fraction) -> arb:
    """At least the integral of |difference of the moment functions| / |z (z + 1)| on Re z = tilt, in units of the Gaussian's at
    omega = 0, for every composition with R between `low` and `high` of noise that is nowhere coarser (Theorem 2)."""
    at, least, most = ball(tilt), ball(low), ball(high)
    top = 1 / (at * (at + 1))
    width = (2 * arb.pi() / most).sqrt()
    found = arb(0)
    for one in {cell.within(high) for cell in coarsest}:
        s, d = ball(one.sigma2), arb(one.sensitivity)
        p = (-(arb.pi() ** 2) * s).exp()
        q = p * p
        centre = (most * s * p / (1 - q)).expm1() * top * width
        off_integers = arb(0) if tilt.denominator == 1 else 4 * most * s * q / (1 - q**3) * top * width
        a = s * least * ball(Fraction(DiscreteGaussian(one.sigma2).variance) * _VARIANCE_SLACK) / (d * d)
        reach = top.sqrt()
        shoulder = (4 * d / (arb.pi() * s)).min(reach) * (-a).exp()
        even, odd = ((-a).exp() * a.bessel_i(order) for order in (0, 1))
        near_axis = d / s * (even / 12 + (arb(1) / 6 - 1 / arb.pi() ** 2) * (even - odd) / 2)
        off_axis = reach / 2 * (d / (2 * s * reach)).tanh() * even
        far = 2 * arb.pi() * near_axis.min(off_axis)
        found = found.max(centre + off_integers + shoulder + far)
    return found.upper()


def least_delta(coarsest: Sequence[Coarsest], low: Fraction, high: Fraction, epsilon: Fraction) -> arb:
    """At most delta(epsilon) of every composition with R between `low` and `high` of noise that is nowhere coarser, epsilon >= 0.

    Any tilt is valid; only how tight the bound is depends on it. May be negative, where it says nothing.
    """
    with precision(_BITS):
        root = ball(low).sqrt().lower()
        e = ball(epsilon)
        smooth = _gaussian(root, e)
        best = arb(-1)
        saddle = float(epsilon / low) - 0.5
        for tilt in {Fraction(max(saddle, _LEAST_TILT)).limit_denominator(1000), Fraction(max(round(saddle), 1))}:
            t = ball(tilt)
            size = (ball(high) * t * (t + 1) / 2 - e * t).exp()
            found = (smooth - size * excess(coarsest, low, high, tilt) / (2 * arb.pi())).lower()
            best = best.max(found)
        return best.lower()


def _gaussian(mu: arb, epsilon: arb) -> arb:
    """delta of the continuous Gaussian."""
    root = arb(2).sqrt()
    below, above = ((epsilon / mu - mu / 2) / root).erfc() / 2, ((epsilon / mu + mu / 2) / root).erfc() / 2
    return below - epsilon.exp() * above


def largest_spread(coarsest: Sequence[Coarsest], epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """An R above which no composition of noise that is nowhere coarser is (epsilon, delta)-DP; None where none could be proved.

    Proved on (R, R + the most that one cell adds]: from a larger total cells can be left out until it is there, and that only
    lowers delta (Theorem 3).
    """
    if epsilon < 0 or any(one.sigma2 < _LEAST_SIGMA2 for one in coarsest):
        return None
    smooth = _gaussian_spread(epsilon, delta)
    if not coarsest:
        return smooth
    window, share = max(one.spread for one in coarsest), _likely_share(coarsest, smooth, epsilon, delta)
    while share < _COARSEST:
        start = smooth * (1 + Fraction(share))
        if _fails_on(coarsest, start, start + window, smooth, epsilon, delta):
            return start
        share *= 1.15
    return None


def fails_from(coarsest: Sequence[Coarsest], spread: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Proved: no composition of noise that is nowhere coarser with an R of at least `spread` is (epsilon, delta)-DP
    (Theorem 3)."""
    if epsilon < 0 or any(one.sigma2 < _LEAST_SIGMA2 for one in coarsest):
        return False
    smooth = _gaussian_spread(epsilon, delta)
    window = max((one.spread for one in coarsest), default=Fraction(0))
    return spread > smooth and _fails_on(coarsest, spread, spread + window, smooth, epsilon, delta)


def _likely_share(coarsest: Sequence[Coarsest], smooth: Fraction, epsilon: Fraction, delta: Fraction) -> float:
    """About the least share above the Gaussian's R at which a point fails. Heuristic: affects tightness and speed only."""
    low, high = _FINEST, _COARSEST
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        at = smooth * (1 + Fraction(middle))
        low, high = (low, middle) if _fails(coarsest, at, at, epsilon, delta) else (middle, high)
    return high


def _gaussian_spread(epsilon: Fraction, delta: Fraction) -> Fraction:
    """An R at which the continuous Gaussian is proved not to be (epsilon, delta)-DP, next to the least one; larger ones
    fail, too."""
    low, high = 1e-12, 1.0
    with precision(_BITS):
        e, d = ball(epsilon), ball(delta)

        def fails(spread: float) -> bool:
            return bool(_gaussian(arb(spread).sqrt(), e) > d)

        while not fails(high):
            low, high = high, 2 * high
        while high > low * (1 + 1e-13):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fails(middle) else (middle, high)
    return Fraction(high)


def _fails_on(
    coarsest: Sequence[Coarsest], start: Fraction, end: Fraction, smooth: Fraction, epsilon: Fraction, delta: Fraction
) -> bool:
    """Proved: no composition with R from `start` to `end` is (epsilon, delta)-DP. In intervals, longer ones where there is
    room."""
    at, step = start, (start - smooth) / 4
    least = step / 32
    for _ in range(_INTERVALS):
        if at >= end:
            return True
        following = min(at + step, end)
        if _fails(coarsest, at, following, epsilon, delta):
            at, step = following, step * 3 / 2
        elif step < least:
            return False
        else:
            step /= 2
    return False


def _fails(coarsest: Sequence[Coarsest], low: Fraction, high: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    low, high = Fraction(math.nextafter(float(low), 0.0)), Fraction(math.nextafter(float(high), math.inf))
    found = least_delta(coarsest, low, high, epsilon)
    with precision(_BITS):
        return bool(found > ball(delta))


def coarsest_alone(epsilon: Fraction, delta: Fraction, sensitivity: int = 1) -> Fraction | None:
    """A sigma2 below which one discrete Gaussian alone is not (epsilon, delta)-DP; None where none was proved (Lemma 5).

    By events X >= t, whose probability rises with sigma2 for t >= 1: on an interval of sigma2 delta is at least the
    probability at its lower end less e^epsilon times that of X >= t + D at its upper end.
    """
    if not 0 <= epsilon <= _MOST_EPSILON or delta >= Fraction(1, 8) or sensitivity > _MOST_SENSITIVITY:
        return None
    e, d = float(epsilon), float(delta)
    tiny = 1 / (2 * (e + 2.2))  # e^epsilon P(X >= 1) <= e^-2.2 (1 + e^-6), so that delta >= 1/2 - 0.12
    ends = tiny * _RATIO ** np.arange(_GRID)
    counts = np.arange(0.0, _COUNTS)
    weights = np.exp(-(counts**2) / (2 * ends[:, None]))
    tails = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1] / (2 * weights.sum(axis=1) - 1)[:, None]
    shifted = tails[1:, sensitivity:] * (1 + SUM_SLACK)
    found = tails[:-1, : shifted.shape[1]] * (1 - SUM_SLACK) - math.exp(e) * shifted * (1 + SUM_SLACK)
    is_proved = found[:, 1:].max(axis=1) > d * (1 + SUM_SLACK)
    proved = int(np.argmin(is_proved)) if not is_proved.all() else len(is_proved)
    return Fraction(float(ends[proved]))
