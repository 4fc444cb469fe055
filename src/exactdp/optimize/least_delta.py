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
from functools import lru_cache, partial

import numpy as np
from flint import arb

from exactdp.balls import ball
from exactdp.doubles import SUM_SLACK, Floats
from exactdp.guarantees.calibration import MeetsMu, Target
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.optimize.missed_target import (
    COARSEST_SHARE,
    is_out_of_reach,
    least_delta_within,
    likely_share,
    misses_on,
    smooth_spread,
)

_LEAST_SIGMA2 = Fraction(3, 20)  # from which on the bounds fall in sigma2
_MOST_EPSILON, _MOST_SENSITIVITY = 60, 8
_RATIO, _GRID, _COUNTS = 1.004, 1400, 160  # sigma2 is below 62 there: what is beyond the counts is below e^-200
_MOST_COPIES = 2  # of which a sum is taken
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

    May be negative, where it says nothing.
    """
    return least_delta_within(low, high, epsilon, partial(excess, coarsest))


def largest_spread(coarsest: Sequence[Coarsest], one: Target) -> Fraction | None:
    """An R above which no composition of noise that is nowhere coarser meets the target; None where none could be proved.

    Proved on (R, R + the most that one cell adds]: from a larger total cells can be left out until it is there, and that only
    lowers delta and raises beta (Theorem 3).
    """
    if is_out_of_reach(one) or any(cell.sigma2 < _LEAST_SIGMA2 for cell in coarsest):
        return None
    smooth = smooth_spread(one)
    if not coarsest or isinstance(one, MeetsMu):
        return smooth
    of_all = partial(excess, coarsest)
    window, share = max(cell.spread for cell in coarsest), likely_share(one, smooth, of_all)
    while share < COARSEST_SHARE:
        start = smooth * (1 + Fraction(share))
        if misses_on(one, start, start + window, (start - smooth) / 4, of_all):
            return start
        share *= 1.15
    return None


def fails_from(coarsest: Sequence[Coarsest], spread: Fraction, one: Target) -> bool:
    """Proved: no composition of noise that is nowhere coarser with an R of at least `spread` meets the target (Theorem 3)."""
    if is_out_of_reach(one) or any(cell.sigma2 < _LEAST_SIGMA2 for cell in coarsest):
        return False
    smooth = smooth_spread(one)
    window = max((cell.spread for cell in coarsest), default=Fraction(0))
    return spread > smooth and misses_on(one, spread, spread + window, (spread - smooth) / 4, partial(excess, coarsest))


@lru_cache(maxsize=64)
def coarsest_alone(epsilon: Fraction, delta: Fraction, sensitivity: int = 1, copies: int = 1) -> Fraction | None:
    """A sigma2 below which so many copies of one discrete Gaussian alone are not (epsilon, delta)-DP; None where none was proved
    (Lemma 5).

    By events S >= t of the sum of some copies, whose probability rises with sigma2 for t >= 1: on an interval of sigma2 delta is
    at least the probability at its lower end less e^epsilon times that of S >= t + copies D at its upper end.
    """
    if not 0 <= epsilon <= _MOST_EPSILON or delta >= Fraction(1, 8) or sensitivity > _MOST_SENSITIVITY:
        return None
    e, d, times = float(epsilon), float(delta), min(copies, _MOST_COPIES)
    tiny = 1 / (2 * (e + 2.2))  # e^epsilon P(X >= 1) <= e^-2.2 (1 + e^-6), so that delta >= 1/2 - 0.12
    ends = tiny * _RATIO ** np.arange(_GRID)
    counts = np.arange(-_COUNTS, _COUNTS + 1.0)
    weights = np.exp(-(counts**2) / (2 * ends[:, None]))
    one = weights / weights.sum(axis=1)[:, None]
    sums = one if times == 1 else np.array([_sum_of_copies(row, times) for row in one])
    tails = np.cumsum(sums[:, ::-1], axis=1)[:, ::-1][:, times * _COUNTS :]
    shifted = tails[1:, times * sensitivity :] * (1 + SUM_SLACK)
    found = tails[:-1, : shifted.shape[1]] * (1 - SUM_SLACK) - math.exp(e) * shifted * (1 + SUM_SLACK)
    is_proved = found[:, 1:].max(axis=1) > d * (1 + SUM_SLACK)
    proved = int(np.argmin(is_proved)) if not is_proved.all() else len(is_proved)
    return Fraction(float(ends[proved]))


def _sum_of_copies(masses: Floats, copies: int) -> Floats:
    found = masses
    for _ in range(copies - 1):
        found = np.convolve(found, masses)
    return found
