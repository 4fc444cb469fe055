"""Balls (Arb): numbers with rigorous error bounds at any precision, and their ends as doubles, fractions and decimals."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from flint import arb, ctx, fmpq

from exactdp.errors import AccuracyError

_LOCK = threading.RLock()
_LOG = logging.getLogger(__name__)

BITS = 192
"""Working precision of the constants of a loss (units, anchors, moments) and of conversions between guarantees."""

SPARE = 6
"""Working digits beyond those promised, and the fewest by which they are raised."""

ATTEMPTS = 12
"""How often working digits are raised before a question is given up."""

_Found = TypeVar("_Found")
_Digits = TypeVar("_Digits", int, float)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Arb's working precision inside the block, restored afterwards even when the block fails.

    Precision is process-wide state in python-flint, so threads take turns: one lock covers every block.
    """
    with _LOCK:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(value: Fraction | int) -> arb:
    """The narrowest ball around an exact rational at the current precision."""
    return arb(fmpq(value.numerator, value.denominator))


def fraction(value: arb) -> Fraction:
    """The exact value of a ball of radius 0."""
    mantissa, exponent = value.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def upper_double(value: arb) -> float:
    """A double above the ball, in both readings: as the binary number it is, and as the decimal it prints as.

    Infinity above NaN, which may be anything. An exact 0 stays one, and nothing that is at most 0 becomes positive.
    """
    top = float(value.upper())
    above = math.nextafter(top, math.inf) if math.isfinite(top) else math.inf if math.isnan(top) else top
    return min(above, 0.0) if value <= 0 else above


def around_zero(size: arb) -> arb:
    """The ball that holds [-size, size]."""
    return (-size).union(size)


def bits_of(digits: int) -> int:
    """Working precision for so many decimal digits."""
    return math.ceil(digits * math.log2(10)) + 64


def decimals(value: arb, digits: int) -> tuple[Decimal, Decimal]:
    """The ends of a positive ball as decimals of a few more digits than promised, rounded outward, whatever the exponent."""
    with precision(bits_of(digits + 2 * SPARE)):
        middle, radius, exponent = (int(part) for part in value.mid_rad_10exp(digits + SPARE))
    return Decimal(f"{middle - radius}E{exponent}"), Decimal(f"{middle + radius}E{exponent}")


def ends_of(value: arb) -> tuple[float, float]:
    """The ends of a ball as doubles, rounded outward; an exact double stays one."""
    with precision(BITS):
        low, high = float(value.lower()), float(value.upper())
        exact = bool(value == arb(low))
    return (low, low) if exact else (math.nextafter(low, -math.inf), math.nextafter(high, math.inf))


def correct_digits(value: arb) -> int:
    """Correct decimal digits of a ball, rounded down (0 unless it is positive)."""
    return max(0, math.floor(int(value.rel_accuracy_bits()) / math.log2(10))) if value > 0 else 0


def raised(
    attempt: Callable[[_Digits], tuple[_Found | None, int]],
    digits: int,
    start: _Digits,
    attempts: int = ATTEMPTS,
    failure: str | None = None,
) -> _Found:
    """What `attempt` finds with more and more working digits (or bits), from `start` on, until it proves the promised `digits`.

    An attempt gives None where it does not, and by how many working digits the next one goes higher; `failure` says what is told
    after the last one.
    """
    working = start
    for _ in range(attempts):
        found, missing = attempt(working)
        if found is not None:
            return found
        _LOG.debug("%d digits are not proved with %s working digits; %s more are tried.", digits, working, missing)
        working += missing
    raise AccuracyError(failure or f"{digits} digits were not reached in {attempts} attempts. Ask for fewer digits.")
