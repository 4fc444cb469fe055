"""Step 1, the tail bound: cut X = sum a_i L X_i at U, where the tail is below Delta / 8 by its sub-Gaussian bound."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from exactdp.balls import ball, precision
from exactdp.errors import AccuracyError

_MOST_BITS = 1 << 14


def choose_truncation(proxy: Fraction, tolerance: Fraction) -> int:
    """Proposition "Practical choice of truncation U": the smallest integer above sqrt(-2 V log(Delta/8)), V the proxy."""
    return certain_floor(lambda: (2 * ball(proxy) * -ball(tolerance / 8).log()).sqrt()) + 1


def tail_bound(x: int, proxy: Fraction) -> arb:
    """exp(-x^2 / (2V)), at least P(X >= x) for x >= 0 (statement 1 of docs/theory/reference.md)."""
    return (-ball(x * x) / (2 * ball(proxy))).exp()


def certain_floor(value: Callable[[], arb]) -> int:
    """The integer part of a number, at the first precision that decides it.

    A loop of its own and not `balls.raised`: the published method is an independent route, and shares arithmetic only.
    """
    bits = 128
    while bits <= _MOST_BITS:
        with precision(bits):
            found = value().floor().unique_fmpz()
        if found is not None:
            return int(found)
        bits *= 2
    raise AccuracyError(f"U and N are undecided at {_MOST_BITS} bits. Change the tolerance slightly.")
