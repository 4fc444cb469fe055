"""Tables of integer noise by their names: whole-number weights, so that probabilities are exact fractions that add up to 1.

Where a law has irrational probabilities its weights are rounded to at least BITS bits each. The table is then the mechanism:
noise must be drawn from the table, and what is accounted for is the table, not the law that it came from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from exactdp.balls import ball, precision
from exactdp.doubles import root
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown

BITS = 128
"""Bits of the least weight of a rounded table."""

_MOST_BITS = 20_000  # of the largest weight


def binomial_weights(trials: int, probability: Fraction) -> list[int]:
    """Weights of 0, 1, ..., trials."""
    top, rest = probability.numerator, probability.denominator - probability.numerator
    return [math.comb(trials, k) * top**k * rest ** (trials - k) for k in range(trials + 1)]


def gaussian_weights(sigma2: Fraction, bound: int, clamped: bool) -> list[int]:
    """Weights of -bound, ..., bound proportional to e^{-x^2 / (2 sigma2)}; what is beyond is left out, or counts at the ends."""
    with precision(_needed(float(bound * bound / (2 * sigma2)))):
        side = [(-ball(Fraction(x * x) / (2 * sigma2))).exp() for x in range(bound + 1)]
        if clamped:
            side[bound] += _gaussian_tail(sigma2, bound, side[bound])
        return _whole([*side[:0:-1], *side])


def _gaussian_tail(sigma2: Fraction, bound: int, last: arb) -> arb:
    """The sum of e^{-x^2 / (2 sigma2)} over x > bound, until a term is below 2^-2 BITS of the last weight."""
    total, x = arb(0), bound
    while True:
        x += 1
        term = (-ball(Fraction(x * x) / (2 * sigma2))).exp()
        total += term
        if bool(term < last * arb(2) ** (-2 * BITS)) and (2 * x + 1) > 2 * sigma2:
            return total


def laplace_weights(scale: Fraction, bound: int, clamped: bool) -> list[int]:
    """Weights of -bound, ..., bound proportional to e^{-|x| / scale}; what is beyond is left out, or counts at the ends."""
    with precision(_needed(float(bound / scale))):
        q = (-ball(1 / scale)).exp()
        side = [(-ball(x / scale)).exp() for x in range(bound + 1)]
        if clamped:
            side[bound] = side[bound] / (1 - q)
        return _whole([*side[:0:-1], *side])


def staircase_weights(epsilon: Fraction, width: int, step: int, bound: int) -> list[int]:
    """Weights of -bound, ..., bound: e^{-epsilon j} on the j-th stair; the first is `step` long on each side, others `width`."""
    with precision(_needed(float(epsilon) * (bound / width + 1))):
        side = [(-ball(epsilon * max(0, (x + width - step) // width))).exp() for x in range(bound + 1)]
        return _whole([*side[:0:-1], *side])


def cell_key_weights(bound: int, variance: Fraction) -> list[int]:
    """The table of largest entropy on -bound, ..., bound with this variance: proportional to e^{-c x^2}, c found in doubles."""
    uniform = bound * (bound + 1) / 3
    if not 0 < variance < uniform:
        raise InvalidInputError(
            f"variance must be above 0 and below that of equal probabilities, {uniform:.6g}. Found {shown(variance)}."
        )

    def excess(log_c: float) -> float:
        sizes = [math.exp(-math.exp(log_c) * x * x) for x in range(-bound, bound + 1)]
        return sum(s * x * x for s, x in zip(sizes, range(-bound, bound + 1), strict=True)) / sum(sizes) - float(
            variance
        )

    log_c = root(excess, -60.0, 6.0)
    return gaussian_weights(1 / (2 * Fraction(math.exp(log_c))), bound, clamped=False)


def _needed(exponent: float) -> int:
    """Bits for weights down to e^-exponent."""
    bits = BITS + math.ceil(exponent / math.log(2)) + 64
    if bits > _MOST_BITS:
        raise InvalidInputError(
            f"The least probability of the table must not be below 2^-{_MOST_BITS:,}. Found about e^-{exponent:.0f}; give a "
            "smaller bound."
        )
    return bits


def _whole(sizes: Sequence[arb]) -> list[int]:
    """Whole numbers proportional to the sizes, of which the least has BITS bits."""
    least = min(float(s.log().mid()) for s in sizes)
    factor = arb(2) ** (BITS + math.ceil(-least / math.log(2)))
    return [int((s * factor).mid().floor().unique_fmpz() or 0) for s in sizes]
