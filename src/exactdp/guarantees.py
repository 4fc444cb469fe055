"""Conversions between kinds of guarantees, each with its proof on its safe side (docs/theory/conversions.md).

    Renyi DP               rdp_epsilon, rdp_epsilon_simple, rdp_delta, rdp_delta_simple
    Gaussian DP            gdp_delta, gdp_epsilon, gdp_beta, gdp_mu: certified, unlike the estimates gaussian_* of conversions.py
    (epsilon, delta)       fdp_beta: the trade-off curve of a family of pairs;  fdp_delta: back again

Every Renyi order is valid, so the least over the orders given is; balls round the result up. Numbers are read as exact rationals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from flint import arb
from scipy.special import ndtri_exp

from exactdp.errors import InvalidInputError
from exactdp.gdp import bisect, gaussian_ball
from exactdp.mechanisms.theta_ball import ball, precision, upper_double
from exactdp.numbers import Number, log_rational, positive, rational, shown
from exactdp.risk import read_share
from exactdp.tradeoff import TradeOffCurve

_BITS = 192
_SMALLEST_MU = 1e-250
_LARGEST_MU = 10**6


def rdp_epsilon(divergences: Mapping[Number, Number], delta: Number) -> float:
    """The least epsilon that Renyi divergences imply at delta, rounded up; `divergences` maps orders a > 1 to bounds of D_a.

    min over a of D_a + log((a-1)/a) - (log delta + log a)/(a-1) (Canonne, Kamath and Steinke 2020, Proposition 12).

    >>> round(rdp_epsilon({a: a * 0.5 for a in range(2, 200)}, "1e-6"), 4)
    5.2224
    """
    d = read_share(delta, "delta")
    return _least(divergences, lambda a, r: r + ((a - 1) / a).log() - (ball(d).log() + a.log()) / (a - 1))


def rdp_epsilon_simple(divergences: Mapping[Number, Number], delta: Number) -> float:
    """min over a of D_a + log(1/delta)/(a-1), rounded up (Mironov 2017, Proposition 3)."""
    d = read_share(delta, "delta")
    return _least(divergences, lambda a, r: r - ball(d).log() / (a - 1))


def rdp_delta(divergences: Mapping[Number, Number], epsilon: Number) -> float:
    """The least delta that Renyi divergences imply at epsilon, rounded up, at most 1: the inverse of `rdp_epsilon`."""
    e = rational(epsilon, "epsilon")
    found = _least(divergences, lambda a, d: ((a - 1) * (d - ball(e))).exp() / a * ((a - 1) * (1 - 1 / a).log()).exp())
    return min(found, 1.0)


def rdp_delta_simple(divergences: Mapping[Number, Number], epsilon: Number) -> float:
    """min over a of e^{(a-1)(D_a - epsilon)}, rounded up, at most 1."""
    e = rational(epsilon, "epsilon")
    return min(_least(divergences, lambda a, d: ((a - 1) * (d - ball(e))).exp()), 1.0)


def _least(divergences: Mapping[Number, Number], value: Callable[[arb, arb], arb]) -> float:
    if not divergences:
        raise InvalidInputError("At least one Renyi order must be given. Found none.")
    best = math.inf
    for order, divergence in divergences.items():
        a, d = rational(order, "order"), rational(divergence, "divergence")
        if a <= 1 or d < 0:
            raise InvalidInputError(
                f"Orders must be above 1 and divergences at least 0. Found {shown(order)}: {shown(divergence)}."
            )
        with precision(_BITS):
            best = min(best, upper_double(value(ball(a), ball(d))))
    return best


def _bits(mu: Fraction, epsilon: Fraction) -> int:
    """Working precision at which delta_mu(epsilon) keeps its digits: large epsilon and small mu cancel."""
    return (
        _BITS
        + 4 * abs(int(epsilon)).bit_length()
        + 64
        + 4 * max(0, mu.denominator.bit_length() - mu.numerator.bit_length())
    )


def _mu(value: Number) -> Fraction:
    result = positive(value, "mu")
    if result > _LARGEST_MU:
        raise InvalidInputError(f"mu must be at most {_LARGEST_MU} (more protects nothing). Found {shown(value)}.")
    return result


def gdp_delta(mu: Number, epsilon: Number) -> float:
    """delta at epsilon under mu-GDP, rounded up."""
    m, e = _mu(mu), rational(epsilon, "epsilon")
    with precision(_bits(m, e)):
        return min(upper_double(gaussian_ball(m, e)[0]), 1.0)


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


def gdp_beta(mu: Number, alpha: Number) -> float:
    """The trade-off curve of mu-GDP at alpha, rounded down: Phi(x - mu) at an x with 1 - Phi(x) >= alpha, which is proved.

    >>> round(gdp_beta(1, "0.05"), 6)
    0.740489
    """
    m, a = _mu(mu), read_share(alpha, "alpha")
    small = 2 * a < 1
    x = -float(ndtri_exp(log_rational(a))) if small else float(ndtri_exp(log_rational(1 - a)))
    step = 1e-15 * (1 + abs(x))
    with precision(_BITS):
        root = arb(2).sqrt()
        # 1 - Phi(x) >= alpha, or Phi(x) <= 1 - alpha where that is the smaller number
        while not bool((arb(x) / root).erfc() / 2 >= ball(a) if small else (-arb(x) / root).erfc() / 2 <= ball(1 - a)):
            x, step = x - step, 2 * step
        return max(math.nextafter(float((((ball(m) - arb(x)) / root).erfc() / 2).lower()), 0.0), 0.0)


def gdp_mu(epsilon: Number, delta: Number) -> float:
    """The largest mu for which mu-GDP implies (epsilon, delta)-DP, rounded down: noise of sigma = sensitivity / mu suffices.

    >>> round(gdp_mu(1, "1e-5"), 6)
    0.268051
    """
    e, d = rational(epsilon, "epsilon"), read_share(delta, "delta")
    if not _gdp_holds(Fraction(_SMALLEST_MU), e, d):
        raise InvalidInputError(
            f"No mu above {_SMALLEST_MU} gives this guarantee; ask for a larger epsilon or delta. "
            f"Found epsilon = {shown(epsilon)}, delta = {shown(delta)}."
        )
    mu = bisect(lambda m: -1.0 if _gdp_holds(Fraction(m), e, d) else 1.0, _SMALLEST_MU, float(_LARGEST_MU))
    step = 1e-15
    while not _gdp_holds(Fraction(mu), e, d):
        mu, step = mu * (1 - step), min(2 * step, 0.5)
    return mu


def _gdp_holds(mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    with precision(_bits(mu, epsilon)):
        return bool(gaussian_ball(mu, epsilon)[0] <= ball(delta))


def fdp_beta(pairs: Iterable[tuple[Number, Number]], alpha: Number) -> float:
    """The trade-off curve at alpha that a family of (epsilon, delta) guarantees implies, rounded down.

    max over pairs of 0, 1 - delta - e^epsilon alpha and e^-epsilon (1 - delta - alpha) (Wasserman and Zhou 2010; Kairouz et al.
    2015).

    >>> fdp_beta([(0, 0.1)], 0.2)
    0.7
    """
    a = rational(alpha, "alpha")
    if not 0 <= a <= 1:
        raise InvalidInputError(f"alpha must be between 0 and 1. Found {shown(alpha)}.")
    best = 0.0
    for epsilon, delta in pairs:
        e, d = rational(epsilon, "epsilon"), rational(delta, "delta")
        if not 0 <= d <= 1:
            raise InvalidInputError(f"delta must be between 0 and 1. Found {shown(delta)}.")
        with precision(_BITS):
            x = ball(min(max(e, Fraction(-(10**6))), Fraction(10**6)))  # farther out the lines are worth nothing
            lines = [1 - ball(d) - x.exp() * ball(a)] if abs(e) < 10**6 or not a else []
            lines.append((-x).exp() * (1 - ball(d) - ball(a)) if e < 10**6 else arb(0))
            for line in lines:
                if bool(line > 0):
                    best = max(best, _down(line))
    return best


def _down(value: arb) -> float:
    """A double at most the ball's lower end, which is positive; exact where that is a double."""
    below = float(value.lower())
    return below if bool(arb(below) <= value) else math.nextafter(below, 0.0)


def fdp_delta(curve: TradeOffCurve, epsilon: Number) -> float:
    """delta at epsilon of the polygon through the points of `curve`, rounded up: the largest 1 - beta - e^epsilon alpha.

    It is the delta of that polygon. It bounds the delta of another curve from above where the whole polygon lies on or below that
    curve; the points of `tradeoff()` lie on it, so their polygon does not, unless it has every vertex. For a composition use
    `delta`.
    """
    e = rational(epsilon, "epsilon")
    best = 0.0
    with precision(_BITS):
        slope = ball(e).exp()
        for a, b in zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True):
            value = 1 - ball(Fraction(b)) - slope * ball(Fraction(a))
            best = max(best, upper_double(value))
    return min(best, 1.0)
