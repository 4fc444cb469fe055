"""What zCDP implies: bounds of epsilon and delta rounded up and of beta rounded down, proved by ball arithmetic. (One estimate is
here, too, and named so.)

Any order of the Renyi divergence gives a valid bound; only its size depends on the order (docs/theory/conversions.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision, upper_double
from exactdp.elementwise import each_rounded
from exactdp.guarantees.zcdp_tradeoff import beta_estimate, beta_lower
from exactdp.numbers import (
    LARGEST_RHO,
    Number,
    log_rational,
    rational,
    read_alpha,
    read_delta,
    read_epsilon,
    zero_or_between,
)


@steady
def zcdp_epsilon_simple(rho: Number, delta: Any) -> Any:
    """The textbook conversion rho + 2 sqrt(rho log(1/delta)), rounded up (Bun & Steinke 2016).

    >>> round(zcdp_epsilon_simple("4.9622", 1e-10), 4)
    26.3406
    """
    r = _rho(rho)
    with precision(BITS):
        return least_epsilon(r, delta, lambda d: upper_double(ball(r) + 2 * (ball(r) * -_log(d)).sqrt()))


@steady
def zcdp_epsilon(rho: Number, delta: Any) -> Any:
    """The least epsilon that the moments of zCDP imply, rounded up (Canonne, Kamath & Steinke 2020).

    The infimum over orders a > 1 of a rho + log(1/(a delta))/(a - 1) + log(1 - 1/a). Guarantee: every order is valid, so the
    search for the best one costs no safety, and the value at that order is rounded up by ball arithmetic.

    >>> round(zcdp_epsilon("4.9622", 1e-10), 4)
    25.4193
    """
    r = _rho(rho)

    def at(d: Fraction) -> float:
        if not r:
            return upper_double(_log(1 - d))
        t = _best_order(r, d)
        return upper_double((1 + t) * ball(r) + (-_log(d) - t.log1p()) / t - (1 / t).log1p())

    with precision(BITS):
        return least_epsilon(r, delta, at)


@steady
def zcdp_delta_simple(rho: Number, epsilon: Any) -> Any:
    """The textbook conversion exp(-(epsilon - rho)^2 / (4 rho)) for epsilon >= rho, else 1; rounded up.

    Values below the double range come back as the smallest positive double.

    >>> f"{zcdp_delta_simple(0.5, 5):.4e}"
    '4.0065e-05'
    """
    return _least_delta(rho, epsilon, _simple_log_delta, lambda x: min(upper_double(x.exp()), 1.0))


@steady
def zcdp_delta(rho: Number, epsilon: Any) -> Any:
    """The least delta that the moments of zCDP imply, rounded up: the inverse of `zcdp_epsilon`.

    The infimum over orders a > 1 of e^{(a-1)(a rho - epsilon)} (1 - 1/a)^{a-1} / a; every order is valid. Values below the double
    range come back as the smallest positive double; `zcdp_log_delta` has their size.

    >>> f"{zcdp_delta(0.5, 5):.4e}"
    '2.8961e-06'
    """
    return _least_delta(rho, epsilon, _best_log_delta, lambda x: min(upper_double(x.exp()), 1.0))


@steady
def zcdp_log_delta(rho: Number, epsilon: Any) -> Any:
    """The natural logarithm of the bound of `zcdp_delta`, rounded up, also where delta is below the double range."""
    return _least_delta(rho, epsilon, _best_log_delta, lambda x: min(upper_double(x), 0.0))


@steady
def zcdp_beta(rho: Number, alpha: Any) -> Any:
    """The trade-off curve that zCDP implies: the least type II error at type I error alpha, rounded down.

    The supremum, over orders a >= 1 and both directions, of the least beta with
    D_a((alpha, 1 - alpha) || (1 - beta, beta)) <= a rho.
    Guarantee: a test turns the outputs into two coins, no Renyi divergence grows by that, so every order is valid; the value
    at the best order found is proved by ball arithmetic. Values below the double range come back as 0.

    >>> round(zcdp_beta(0.1, 0.1), 6)
    0.769174
    """
    return _betas(rho, alpha, beta_lower)


@steady
def zcdp_beta_estimate(rho: Number, alpha: Any) -> Any:
    """The trade-off curve that AutoDP draws for zCDP. An estimate: for discrete Gaussian noise it is no bound; see `zcdp_beta`.

    As `zcdp_beta`, with orders from 1/2 on instead of from 1 on, in plain double precision. That D_a <= a rho for orders below 1
    is true of continuous Gaussian noise, is no part of zCDP, and is false for discrete Gaussian noise: with sigma2 = 1/5,
    rho = 5/2, the divergence of order 1/2 is more than 1.4, not 1.25 (docs/theory/conversions.md).

    >>> round(zcdp_beta("4.9622", 0.05), 6), round(zcdp_beta_estimate("4.9622", 0.05), 6)
    (0.004374, 0.00845)
    """
    return _betas(rho, alpha, beta_estimate)


def _betas(rho: Number, alpha: Any, inside: Callable[[Fraction, list[Fraction]], list[float]]) -> Any:
    """`inside` where 0 < alpha < 1 and rho > 0; 1 - alpha elsewhere."""
    r = _rho(rho)

    def over_list(alphas: list[Fraction]) -> list[float]:
        betas = [_down(1 - a) for a in alphas]
        inner = [i for i, a in enumerate(alphas) if 0 < a < 1 and r]
        if inner:
            for i, found in zip(inner, inside(r, [alphas[i] for i in inner]), strict=True):
                betas[i] = found
        return betas

    return each_rounded(alpha, read_alpha, over_list)


def _best_order(r: Fraction, d: Fraction) -> arb:
    """t of the best order a = 1 + t at delta: the root of rho t^2 + log(1 + t) = log(1/delta). Heuristic: size only.

    Convex and increasing in log t, so that Newton's method descends to the root from a point above it.
    """
    log_r, target = log_rational(r), -log_rational(d)
    if target < 1e-290:  # there t = 1 - delta but for a share of 1e-280
        return arb(log_rational(1 - d)).exp().mid()
    u = min((math.log(target) - log_r) / 2, target + math.log(-math.expm1(-target)))
    for _ in range(100):
        square, log_order = math.exp(log_r + 2 * u), float(np.logaddexp(0.0, u))
        step = (square + log_order - target) / (2 * square - math.expm1(-log_order))
        u -= step
        if step <= 1e-14 * (1 + abs(u)):
            break
    return arb(u).exp().mid()


def _best_log_delta(r: Fraction) -> Callable[[Fraction], arb]:
    """log delta at the best order a = 1 + t, where rho (1 + 2 t) - log(1 + 1/t) = epsilon; the left side rises with t."""
    if not r:
        return lambda e: (-ball(e).expm1()).log()
    rho, log_2r = ball(r), log_rational(2 * r)

    def at(e: Fraction) -> arb:
        shifted = (e.numerator * r.denominator - r.numerator * e.denominator) / (e.denominator * r.denominator)
        t = arb(_log_best_order(log_2r, shifted)).exp().mid()
        return t * ((1 + t) * rho - ball(e)) - t.log1p() - t * (1 / t).log1p()

    return at


def _log_best_order(log_2r: float, shifted: float) -> float:
    """u = log t with e^{log_2r + u} - log(1 + e^-u) = shifted, by Newton's method, halved where it leaves its bounds.

    Heuristic: size only, and of that the square of what is missing.
    """
    low = min(0.0, -log_2r, shifted - 2)
    high = max(0.0, math.log(max(shifted, 0.0) + 1) - log_2r)
    u = high
    for _ in range(100):
        risen, share = math.exp(log_2r + u), math.exp(-abs(u))
        excess = risen - max(-u, 0.0) - math.log1p(share) - shifted
        low, high = (low, u) if excess > 0 else (u, high)
        better = u - excess / (risen + (share if u > 0 else 1.0) / (1 + share))
        better = better if low <= better <= high else (low + high) / 2
        if abs(better - u) <= 1e-12 * (1 + abs(u)):
            return better
        u = better
    return u


def _simple_log_delta(r: Fraction) -> Callable[[Fraction], arb]:
    rho = ball(r)
    return lambda e: -((ball(e) - rho) ** 2) / (4 * rho) if e > r else arb(0)


def _log(d: Fraction) -> arb:
    """log of a rational in (0, 1), accurate in relative terms also near 1."""
    return ball(d - 1).log1p() if 2 * d > 1 else ball(d).log()


def _down(value: Fraction) -> float:
    """The largest double that is at most the rational, in both readings."""
    below = float(value)
    return below if max(Fraction(below), rational(below, "beta")) <= value else math.nextafter(below, 0.0)


def least_epsilon(spread: Fraction | float, delta: Any, inside: Callable[[Fraction], float]) -> Any:
    """`inside` where 0 < delta < 1; -inf at 1; at 0 inf, or 0 if there is no spread."""

    def at(d: Fraction) -> float:
        if 0 < d < 1:
            return inside(d)
        return -math.inf if d else (math.inf if spread else 0.0)

    return each_rounded(delta, read_delta, lambda deltas: [at(d) for d in deltas])


def _least_delta(
    rho: Number,
    epsilon: Any,
    log_delta: Callable[[Fraction], Callable[[Fraction], arb]],
    rounded: Callable[[arb], float],
) -> Any:
    """`log_delta` at finite epsilon; delta = 0 at inf and, if rho = 0, from epsilon = 0 on; delta = 1 at -inf."""
    r = _rho(rho)

    def at(e: Fraction | float) -> float:
        if isinstance(e, Fraction) and (r or e < 0):  # most often
            return rounded(log_at(e))
        return rounded(arb("-inf") if e >= 0 else arb(0))

    with precision(BITS):
        log_at = log_delta(r)
        return each_rounded(epsilon, read_epsilon, lambda es: [at(e) for e in es])


def _rho(value: object) -> Fraction:
    return zero_or_between(value, "rho", Fraction(1, 10**100), Fraction(LARGEST_RHO))
