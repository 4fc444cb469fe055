"""Cumulants and absolute moments of the discrete Gaussian N_Z(0, sigma2), to any relative accuracy.

Jacobi's triple product makes log theta a Lambert series, in the noise's own nome or, after Poisson summation, in the dual one
(docs/theory/edgeworth.md, Lemma 17). For even r

    kappa_r = sum_{k>=1} (-1)^{k+1} k^{r-1} / sinh(k / (2 sigma2))
            = sigma2 [r = 2] + (-1)^{r/2} (2 pi sigma2)^r sum_{k>=1} (-1)^{k+1} k^{r-1} / sinh(2 pi^2 sigma2 k)

and kappa_r = 0 for odd r. The second form shows kappa_4 = 1e-170 without subtracting numbers of size 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from exactdp.arithmetic_state import steady
from exactdp.balls import around_zero, ball, decimals, precision, raised
from exactdp.brackets import Bounds
from exactdp.errors import AccuracyError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, positive, whole

LARGEST_ORDER = 60
_SELF_DUAL = 1 / (2 * math.pi)  # where both series converge alike
_MOST_TERMS = 5_000_000
_MOST_BITS = 1 << 17  # the working precision is doubled up to this


@steady
def cumulant(sigma2: Number, order: int, digits: int = 20) -> Bounds:
    """kappa_order of N_Z(0, sigma2) between two decimals less than 10^-digits apart in relative terms.

    >>> cumulant(2, 4, digits=5).lower
    Decimal('3.569525854131653E-13')
    """
    return _decimals(lambda s: cumulant_ball(s, order), sigma2, digits)


@steady
def absolute_moment(sigma2: Number, order: int, digits: int = 20) -> Bounds:
    """E|X|^order of N_Z(0, sigma2)."""
    return _decimals(lambda s: absolute_moment_ball(s, order), sigma2, digits)


@steady
def standardized_cumulant(sigma2: Number, order: int, digits: int = 20) -> Bounds:
    """lambda_order = kappa_order / kappa_2^{order/2}."""
    return _decimals(lambda s: standardized_cumulant_ball(s, order), sigma2, digits)


@steady
def standardized_moment(sigma2: Number, order: int, digits: int = 20) -> Bounds:
    """K_order = E|X|^order / kappa_2^{order/2}."""
    return _decimals(lambda s: standardized_moment_ball(s, order), sigma2, digits)


def cumulant_ball(sigma2: Fraction, order: int) -> arb:
    """kappa_order at the current precision."""
    r = whole(order, "order", 1, LARGEST_ORDER)
    if r % 2:
        return arb(0)
    if sigma2 < _SELF_DUAL:
        return _lambert(r, 1 / (2 * ball(sigma2)))
    turn = 2 * arb.pi() * ball(sigma2)
    series = turn**r * _lambert(r, arb.pi() * turn)
    return (ball(sigma2) if r == 2 else arb(0)) + (-series if r // 2 % 2 else series)


def _lambert(r: int, rate: arb) -> arb:
    """The sum over k >= 1 of (-1)^{k+1} k^{r-1} / sinh(rate k).

    From k = 2 r / rate on the terms fall at least like e^{-rate k / 2}, so what is left out is at most the next term times
    1 / (1 - e^{-rate/2}).
    """
    total, largest, k = arb(0), arb(0), 1
    while True:
        term = arb(k) ** (r - 1) / (rate * k).sinh()
        largest = largest.max(term)  # not the total, which is 0 where the cumulant changes sign
        if bool(rate * k > 2 * r) and bool(term * arb(2) ** (int(ctx.prec) + 10) < largest):
            return total + around_zero(term / (1 - (-rate / 2).exp()))
        total += term if k % 2 else -term
        k += 1
        if k > _MOST_TERMS:
            raise AccuracyError(
                f"The series of a cumulant did not converge in {_MOST_TERMS:,} terms. Ask for fewer digits."
            )


def absolute_moment_ball(sigma2: Fraction, order: int) -> arb:
    """E|X|^order at the current precision: sums term by term, or for even orders and large sigma2 from the cumulants."""
    r = whole(order, "order", 0, LARGEST_ORDER)
    if sigma2 > 10_000 and r % 2 == 0:
        return _moment_from_cumulants([cumulant_ball(sigma2, k) for k in range(1, r + 1)])
    exponent = (int(ctx.prec) + 20) * math.log(2) + 2 * r * math.log(r + 2 + float(sigma2))
    reach = math.ceil(math.sqrt(2 * float(sigma2) * exponent)) + 2 * r + 4
    if reach > _MOST_TERMS:
        raise AccuracyError(
            f"{reach:,} terms would have to be summed for E|X|^{r} at sigma2 = {float(sigma2):.3g}. Use an even order."
        )
    rate = 1 / (2 * ball(sigma2))
    top, bottom = arb(1 if r == 0 else 0), arb(1)
    weight, ratio, step = arb(1), (-rate).exp(), (-2 * rate).exp()
    for x in range(1, reach + 1):
        weight *= ratio  # e^{-x^2 rate} = e^{-(x-1)^2 rate} e^{-(2x-1) rate}
        ratio *= step
        bottom += 2 * weight
        top += 2 * weight * arb(x) ** r
    # beyond the reach each term is at most `fall` times the one before, since both factors of the quotient fall
    last = 2 * weight * arb(reach) ** r
    fall = (arb(reach + 1) / reach) ** r * ratio
    if not fall < 1:
        raise AccuracyError(f"E|X|^{r} did not converge at sigma2 = {float(sigma2):.3g}. Ask for fewer digits.")
    rest = last * fall / (1 - fall)
    return (top + around_zero(rest)) / (bottom + around_zero(rest))


def _moment_from_cumulants(cumulants: list[arb]) -> arb:
    """mu_n = sum_k C(n-1, k-1) kappa_k mu_{n-k}."""
    moments = [arb(1)]
    for n in range(1, len(cumulants) + 1):
        moments.append(
            sum((math.comb(n - 1, k - 1) * cumulants[k - 1] * moments[n - k] for k in range(1, n + 1)), arb(0))
        )
    return moments[-1]


def standardized_cumulant_ball(sigma2: Fraction, order: int) -> arb:
    """lambda_order at the current precision."""
    return cumulant_ball(sigma2, order) / cumulant_ball(sigma2, 2).sqrt() ** order


def standardized_moment_ball(sigma2: Fraction, order: int) -> arb:
    """K_order at the current precision."""
    return absolute_moment_ball(sigma2, order) / cumulant_ball(sigma2, 2).sqrt() ** order


def read_sigma2(sigma2: Number) -> Fraction:
    """A noise parameter, checked as a mechanism checks it."""
    return DiscreteGaussian(positive(sigma2, "sigma2")).sigma2


def _decimals(compute: Callable[[Fraction], arb], sigma2: Number, digits: int) -> Bounds:
    """Raise the precision until the promise holds; an exact 0 is returned as it is."""
    s, wanted = read_sigma2(sigma2), whole(digits, "digits", 1, 1000)
    start = math.ceil(wanted * math.log2(10)) + 40

    def attempt(bits: int) -> tuple[arb | None, int]:
        with precision(bits):
            value = compute(s)
            enough = value == 0 or int(value.rel_accuracy_bits()) > wanted * math.log2(10) + 4
        return value if enough else None, bits

    return Bounds(*decimals(raised(attempt, wanted, start, (_MOST_BITS // start).bit_length()), wanted))
