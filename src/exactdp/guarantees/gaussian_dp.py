"""Gaussian DP: delta, epsilon, beta and mu of mu-GDP, certified (docs/theory/conversions.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb
from scipy.special import ndtri_exp

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision, upper_double
from exactdp.errors import InvalidInputError
from exactdp.numbers import Number, log_rational, positive, rational, read_share, shown

_SMALLEST_MU = 1e-250
_LARGEST_MU = 10**6


def gaussian_ball(mu: Fraction, epsilon: Fraction) -> tuple[arb, arb]:
    """delta_mu(epsilon) and its slope -d delta / d(e^epsilon) = Phi(-epsilon/mu - mu/2), as balls."""
    m, e = ball(mu), ball(epsilon)
    root = arb(2).sqrt()
    below, above = ((e / m - m / 2) / root).erfc() / 2, ((e / m + m / 2) / root).erfc() / 2
    return below - e.exp() * above, above


def bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    """The root of a rising function between two positive numbers, by bisection of the logarithm."""
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
        if high <= low * (1 + 1e-15):
            break
    return low


def _bits(mu: Fraction, epsilon: Fraction) -> int:
    """Working precision at which delta_mu(epsilon) keeps its digits: large epsilon and small mu cancel."""
    small = max(0, mu.denominator.bit_length() - mu.numerator.bit_length())
    return BITS + 64 + 4 * (abs(int(epsilon)).bit_length() + small)


def _mu(value: Number) -> Fraction:
    result = positive(value, "mu")
    if result > _LARGEST_MU:
        raise InvalidInputError(f"mu must be at most {_LARGEST_MU} (more protects nothing). Found {shown(value)}.")
    return result


@steady
def gdp_delta(mu: Number, epsilon: Number) -> float:
    """delta at epsilon under mu-GDP, rounded up."""
    m, e = _mu(mu), rational(epsilon, "epsilon")
    with precision(_bits(m, e)):
        return min(upper_double(gaussian_ball(m, e)[0]), 1.0)


@steady
def gdp_epsilon(mu: Number, delta: Number) -> float:
    """epsilon at delta under mu-GDP, rounded up: proved at the double returned."""
    m, d = _mu(mu), read_share(delta, "delta")
    low, high = -1.0, 1.0
    while not _gdp_holds(m, Fraction(high), d):
        low, high = high, 2 * high + float(m) ** 2
    while low > -1e6 and _gdp_holds(m, Fraction(low), d):
        low, high = 2 * low, low
    while high - low > 1e-12 * (1 + abs(high)):
        middle = (low + high) / 2
        low, high = (low, middle) if _gdp_holds(m, Fraction(middle), d) else (middle, high)
    return high


@steady
def gdp_beta(mu: Number, alpha: Number) -> float:
    """The trade-off curve of mu-GDP at alpha, rounded down: Phi(x - mu) at an x with 1 - Phi(x) >= alpha, which is proved.

    >>> round(gdp_beta(1, "0.05"), 6)
    0.740489
    """
    m, a = _mu(mu), read_share(alpha, "alpha")
    small = 2 * a < 1
    x = -float(ndtri_exp(log_rational(a))) if small else float(ndtri_exp(log_rational(1 - a)))
    step = 1e-15 * (1 + abs(x))
    with precision(BITS):
        root = arb(2).sqrt()
        # 1 - Phi(x) >= alpha, or Phi(x) <= 1 - alpha where that is the smaller number
        while not bool((arb(x) / root).erfc() / 2 >= ball(a) if small else (-arb(x) / root).erfc() / 2 <= ball(1 - a)):
            x, step = x - step, 2 * step
        return max(math.nextafter(float((((ball(m) - arb(x)) / root).erfc() / 2).lower()), 0.0), 0.0)


@steady
def gdp_mu(epsilon: Number, delta: Number) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down: noise of sigma = sensitivity / mu suffices.

    >>> round(gdp_mu(1, "1e-5"), 6)
    0.268051
    """
    e, d = rational(epsilon, "epsilon"), read_share(delta, "delta")
    if not _gdp_holds(Fraction(_SMALLEST_MU), e, d):
        # mu-GDP is weaker the larger mu is, so what fails here fails from here on
        what = "No mu from" if _gdp_fails(Fraction(_SMALLEST_MU), e, d) else "It could not be proved that a mu of"
        raise InvalidInputError(
            f"{what} {_SMALLEST_MU} on gives this guarantee; ask for a larger epsilon or delta. "
            f"Found epsilon = {shown(epsilon)}, delta = {shown(delta)}."
        )
    mu = bisect(lambda m: -1.0 if _gdp_holds(Fraction(m), e, d) else 1.0, _SMALLEST_MU, float(_LARGEST_MU))
    step = 1e-15
    while not _gdp_holds(Fraction(mu), e, d):
        mu, step = mu * (1 - step), min(2 * step, 0.5)
    return mu


def _gdp_fails(mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    with precision(_bits(mu, epsilon)):
        return bool(gaussian_ball(mu, epsilon)[0] > ball(delta))


def _gdp_holds(mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    with precision(_bits(mu, epsilon)):
        return bool(gaussian_ball(mu, epsilon)[0] <= ball(delta))
