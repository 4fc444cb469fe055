"""Numbers as people read them, the one place that writes them: what is printed is a claim.

A certified number is rounded outward to the digits shown: `at_most` up, `at_least` down. An estimate, or an exact number that is
cut, goes through `about` and looks different: ~24.57. An exact number that is written whole goes through `exact`.
For programs there is `for_file`: all digits of a double, on its safe side also as the decimal that is written.

Guarantee: `Decimal(at_most(x)) >= x` and `Decimal(at_least(x)) <= x` for every finite x, exactly; both are within one unit of
the last digit shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np

from exactdp.doubles import SUM_SLACK, Floats, two_doubles, two_product
from exactdp.numbers import exact_text

Real: TypeAlias = "int | float | Decimal | Fraction | np.floating | np.integer"

UP, DOWN, NEAREST = ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
DIGITS = 6
"""Significant digits unless told."""
SHARE_PLACES = 2
_PLAIN = (-5, 7)  # decimal exponents written without a power of ten, exclusive
_ALL_DIGITS = 18  # of a double: enough to read back the same one whichever way the last digit was rounded
_USUAL = (1e-250, 1e15)  # doubles of which many are written at once
_LONGEST_DECIMAL, _LONGEST_FRACTION = 12, 7  # characters of an exact number


def at_most(value: Real, digits: int = DIGITS) -> str:
    """An upper bound, rounded up.

    >>> at_most(24.45651445733843), at_most(1.7855417e-12, 3), at_most(0.5), at_most(-2.00000001, 3)
    ('24.4566', '1.79e-12', '0.5', '-2.00')
    """
    return _written(rounded(value, digits, UP), value, digits)


def at_least(value: Real, digits: int = DIGITS) -> str:
    """A lower bound, rounded down.

    >>> at_least(24.45651445733843), at_least(-2.00000001, 3)
    ('24.4565', '-2.01')
    """
    return _written(rounded(value, digits, DOWN), value, digits)


def about(value: Real, digits: int = DIGITS) -> str:
    """An estimate, to the nearest: never a bound, and marked.

    >>> about(24.570447), about(5e-324, 3)
    ('~24.5704', '~4.94e-324')
    """
    text = _written(rounded(value, digits, NEAREST), value, digits)
    return text if text in ("inf", "-inf") else f"~{text}"


def exact(value: Fraction | int) -> str:
    """An exact number as it is: 1e-10, 26.34, 1/3; a long one cut to the usual digits, and marked.

    >>> exact(Fraction(1, 10**8)), exact(Fraction(1, 3)), exact(Fraction(24811, 5000)), exact(Fraction(293764, 114921))
    ('1e-8', '1/3', '4.9622', '~2.55623')
    """
    text = whole_text(Fraction(value))
    return text if len(text) <= (_LONGEST_FRACTION if "/" in text else _LONGEST_DECIMAL) else about(Fraction(value))


@lru_cache(maxsize=256)
def whole_text(value: Fraction) -> str:
    """An exact number with all its digits, as a decimal where it is a short one and as a fraction otherwise.

    >>> whole_text(Fraction(1, 10**300)), whole_text(Fraction(-5, 2)), whole_text(Fraction(10**7))
    ('1e-300', '-2.5', '1e7')
    """
    size = len(exact_text(value.denominator)) - 1
    if size > 300 and value.denominator == 10**size:  # below the doubles
        return f"{exact_text(value.numerator)}e-{size}"
    if abs(value) < 10**308 and Fraction(short := repr(float(value))) == value:
        return _shortest(Decimal(short))
    return exact_text(value)


def percent(share: Real, rounding: str, places: int = SHARE_PLACES) -> str:
    """A share in percent, rounded UP, DOWN or to the NEAREST.

    >>> percent(Fraction(1144, 10000), DOWN), percent(0.93314, UP, 1)
    ('11.44%', '93.4%')
    """
    return f"{with_places(as_fraction(share) * 100, places, rounding)}%"


def with_places(value: Real, places: int, rounding: str) -> str:
    """With so many decimals, rounded UP, DOWN or to the NEAREST, exactly.

    >>> with_places(24.45651, 4, UP), with_places(24.45651, 4, DOWN), with_places(-0.5, 0, DOWN)
    ('24.4566', '24.4565', '-1')
    """
    if not _is_finite(value):
        return _endless(value)
    scaled = as_fraction(value) * 10**places
    steps = math.ceil(scaled) if rounding == UP else math.floor(scaled) if rounding == DOWN else round(scaled)
    return f"{Decimal(steps).scaleb(-places, Context(prec=len(str(abs(steps))) + 1)):f}"


def for_file(value: Real, rounding: str) -> str:
    """A bound for programs: a double that reads back as the same double, and whose decimal is on its safe side.

    Python's shortest decimal of a double may lie on either side of it, so that one digit more is written, rounded outward.

    >>> for_file(0.1, UP), for_file(0.1, DOWN), for_file(0.25, UP)
    ('0.100000000000000006', '0.100000000000000005', '0.25')
    """
    if isinstance(value, float) and math.isfinite(value):  # 0 without its sign
        return str(_all_digits(rounding)(value + 0.0)).replace("E", "e")
    if isinstance(value, Decimal):
        return str(value)
    if not _is_finite(value):
        return _endless(value)
    return str(rounded(value, _ALL_DIGITS, rounding)).replace("E", "e")


def all_for_file(values: Floats, rounding: str) -> list[str]:
    """`for_file` of very many doubles, up or down, in half of the time.

    A double times a power of ten, as the exact product of two doubles and a rest: where the rest is no whole number, nor so near
    to one that its error matters, the digits are known. The others, among them 0, are written one by one.

    >>> all_for_file(np.array([0.1, 0.25, 24.5, math.inf, 1e-300, 1e-9]), UP)[::5]
    ['0.100000000000000006', '1.00000000000000007e-9']
    """
    x = np.ravel(values)
    known = (x >= _USUAL[0]) & (x < _USUAL[1])
    safe = np.where(known, x, 1.0)
    exponent = np.floor(np.log10(safe)).astype(np.int64)
    high, low = _powers_of_ten()[:, _ALL_DIGITS - 1 - exponent]
    product, error = two_product(safe, high)
    rest = error + safe * low
    below = product.astype(np.int64) + np.floor(rest).astype(np.int64)
    known &= (np.abs(rest - np.rint(rest)) > SUM_SLACK) & (below >= 10 ** (_ALL_DIGITS - 1))
    known &= below < 10**_ALL_DIGITS - 1
    whole = below + (rounding == UP)
    return [
        _placed(str(digits), place) if is_known else for_file(value, rounding)
        for is_known, value, digits, place in zip(
            known.tolist(), x.tolist(), whole.tolist(), exponent.tolist(), strict=True
        )
    ]


@cache
def _powers_of_ten() -> Floats:
    """Powers of ten from 1 on as sums of two doubles, each within 2^-106 of its size."""
    return np.array([two_doubles(Fraction(10) ** n)[:2] for n in range(_ALL_DIGITS + 251)]).T


def _placed(digits: str, exponent: int) -> str:
    """All digits of a number, the first of them that of 10^exponent, as Python writes a Decimal."""
    if exponent < -6:
        return f"{digits[0]}.{digits[1:]}e{exponent}"
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A count that agrees with its noun.

    >>> counted(1, "pair"), counted(946, "pair"), counted(12345, "query", "queries")
    ('1 pair', '946 pairs', '12,345 queries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def rounded(value: Real, digits: int, rounding: str) -> Decimal:
    """The number with so many significant digits, rounded in the given direction from its exact value."""
    context = _context(digits, rounding)
    if isinstance(value, (int, float, Decimal)) or not _is_finite(value):
        return context.plus(Decimal(value if isinstance(value, (int, Decimal)) else float(value)))
    whole = as_fraction(value)
    return context.divide(Decimal(whole.numerator), Decimal(whole.denominator))


@lru_cache(maxsize=64)
def _context(digits: int, rounding: str) -> Context:
    """The context of a rounding; that flags are raised in it says nothing to anyone."""
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)


@cache
def _all_digits(rounding: str) -> Callable[[float], Decimal]:
    """What makes decimals of doubles for programs: looked up a hundred thousand times."""
    return _context(_ALL_DIGITS, rounding).create_decimal_from_float


def _written(number: Decimal, value: Real, digits: int) -> str:
    """As a decimal or with a power of ten; zeros at the end only where digits were cut."""
    if not number.is_finite():
        return _endless(number)
    if not number:
        return "0"
    if Fraction(number) == as_fraction(value):
        return _shortest(number)
    exponent = number.adjusted()
    if _PLAIN[0] < exponent < max(_PLAIN[1], digits):
        last = Decimal(1).scaleb(min(exponent + 1 - digits, 0))
        return f"{number.quantize(last, context=Context(prec=max(digits, exponent) + 2)):f}"
    return f"{number:.{digits - 1}e}".replace("e+", "e")


def _shortest(number: Decimal) -> str:
    """A decimal without zeros at its end: 0.25, 1e-8, 12500, 1e7."""
    if not number:
        return "0"
    sign, digits, power = number.as_tuple()
    figures = "".join(map(str, digits))
    kept = figures.rstrip("0")
    exponent = int(power) + len(figures) - 1
    if _PLAIN[0] < exponent < _PLAIN[1]:
        return f"{Decimal((sign, tuple(map(int, kept)), int(power) + len(figures) - len(kept))):f}"
    return f"{'-' if sign else ''}{kept[0]}{'.' + kept[1:] if kept[1:] else ''}e{exponent}"


def as_fraction(value: Real) -> Fraction:
    """The number itself, exactly."""
    if isinstance(value, (int, Decimal, Fraction)):
        return Fraction(value)
    return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(*value.as_integer_ratio())


def _is_finite(value: Real) -> bool:
    if isinstance(value, (int, Fraction)):  # also those beyond the doubles
        return True
    return value.is_finite() if isinstance(value, Decimal) else bool(np.isfinite(value))


def _endless(value: Real) -> str:
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
