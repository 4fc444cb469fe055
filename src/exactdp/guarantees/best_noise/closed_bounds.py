"""Bounds of noise whose best multipliers need no solver: one hockey-stick by a recursion, one affinity by an oscillator.

Both searches are free: what they find becomes a `NoiseBound`, which is exact whatever it is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from exactdp.balls import BITS, ball, fraction, precision
from exactdp.guarantees.best_noise.lower_bound import Affinity, Cost, HockeyStick, Multipliers, NoiseBound, multipliers

_STEPS = 75  # of a search for a maximum
_LONGEST = 20_000  # multipliers of one test
_OUT_OF_PROPORTION = 1e200
_GOLDEN = (math.sqrt(5) - 1) / 2


def stick_bound(cost: Cost, shift: int, ratio: Fraction, allowed: Fraction) -> NoiseBound:
    """The best bound from sum (p(x) - ratio p(x - shift))_+ <= allowed alone, for a ratio above 1.

    The test is 0 to the right of 0. For the value nu wanted of every x the least one is y(0) = nu and, for n > 0,
    y(-n) = max(0, 2 (nu - cost(n)) + ratio y(shift - n)); its largest value is the weight, so that the bound is
    nu - weight * allowed, a concave function of nu.
    """
    factor, share = float(ratio), float(allowed)
    highest = min(_geometric(cost, shift, factor), _uniform(cost, shift, share))
    nu = _largest(lambda nu: nu - share * max(_test(cost, shift, factor, nu)), 0.0, highest)
    test = _test(cost, shift, factor, nu)
    weight = max(test)
    steps = multipliers(1 - len(test), [*reversed(test), 0.0], 0.0, weight)
    return NoiseBound(cost, (HockeyStick(shift, ratio, allowed, Fraction(weight), steps),))


def _geometric(cost: Cost, shift: int, ratio: float) -> float:
    """The cost of noise on the multiples of `shift` that falls by the ratio: the best where nothing is allowed."""
    if ratio <= 1:
        return math.inf
    q = 1 / ratio
    return shift**2 * 2 * q / (1 - q) ** 2 if cost is Cost.VARIANCE else shift * 2 * q / (1 - q * q)


def _uniform(cost: Cost, shift: int, allowed: float) -> float:
    """More than the cost of equal probabilities of as many multiples of `shift` as `allowed` takes; they meet every ratio."""
    return cost.of(math.ceil(shift / allowed)) if allowed else math.inf


def _test(cost: Cost, shift: int, ratio: float, nu: float) -> list[float]:
    """y(0), y(-1), ... until it stays 0, or is out of all proportion."""
    values = [nu]
    while len(values) < _LONGEST and values[-1] < _OUT_OF_PROPORTION:
        n = len(values)
        values.append(max(0.0, 2 * (nu - cost.of(n)) + (ratio * values[n - shift] if n >= shift else 0.0)))
        if cost.of(n) > nu and not any(values[-shift:]):
            break
    return values


def affinity_bound(least: Fraction) -> NoiseBound:
    """The best bound of the variance from sum sqrt(p(x) p(x - 1)) >= least alone: the ground state of a discrete oscillator.

    sqrt(p) minimises x^2 - weight times the shift; the slopes s(x) = sqrt(p(x - 1) / p(x)) follow from outside inward by
    s(x) = 2 (x^2 - energy) / weight - 1 / s(x + 1), which is stable, and s(1 - x) = 1 / s(x).
    """
    affinity = float(least)
    rough = 1 / (8 * -math.log(affinity))

    def gain(log_weight: float) -> float:
        weight = math.exp(log_weight)
        return _ground(weight)[0] + weight * affinity

    guess = math.log(8 * rough * rough + 1e-3)
    weight = math.exp(_largest(gain, guess - 4, guess + 4))
    slopes = _ground(weight)[1]
    both = [1 / Fraction(s) for s in reversed(slopes)] + [Fraction(s) for s in slopes]
    return NoiseBound(Cost.VARIANCE, (Affinity(1, least, Fraction(weight), Multipliers(1 - len(slopes), tuple(both))),))


def _ground(weight: float) -> tuple[float, list[float]]:
    """The lowest energy of x^2 - weight (shift + its inverse) / 2, and s(1), ..., s(reach)."""
    from scipy.linalg import eigh_tridiagonal

    width = (weight / 8) ** 0.25  # the deviation of the ground state, nearly
    reach = math.ceil(9 * width) + 12
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    energy = float(
        eigh_tridiagonal(x * x, np.full(2 * reach, -weight / 2), eigvals_only=True, select="i", select_range=(0, 0))[0]
    )
    far = (reach * reach - energy) / weight
    slopes = [far + math.sqrt(far * far - 1)]  # it is as large beyond the reach
    for i in range(reach - 1, 0, -1):
        slopes.append(2 * (i * i - energy) / weight - 1 / slopes[-1])
    return energy, slopes[::-1]


def _largest(gain: Callable[[float], float], low: float, high: float) -> float:
    """About where a concave function is largest, by golden sections."""
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = gain(a), gain(b)
    for _ in range(_STEPS):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = gain(b)
        else:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = gain(a)
    return (low + high) / 2


def gaussian_affinity(mu: Fraction, copies: int) -> Fraction:
    """At most exp(-mu^2 / (8 copies)): the affinity that one of so many releases under mu-GDP has at least (Theorem 4)."""
    with precision(BITS):
        return fraction(ball(-(mu**2) / (8 * copies)).exp().lower())
