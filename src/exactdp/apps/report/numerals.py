"""Numbers as they stand in a report: rounded to the safe side, set with care, and exact for programs.

Every certified number is a `data` element whose value is the number as the library gave it; what is read is rounded up where
the upper end is the safe one and down where the lower end is.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from exactdp.apps.report.markup import Child, Markup, tag, text
from exactdp.numerals import whole_text

UP, DOWN, NEAREST = ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
Real = int | float | Decimal | Fraction

_MINUS = "\u2212"
_PLAIN = (-5, 7)  # decimal exponents written without a power of ten
_WORKING = 60
_LONGEST_FRACTION, _LONGEST_DECIMAL = 7, 12
_FEWEST_DIGITS = 3


def decimals(value: Real, places: int, rounding: str = NEAREST) -> str:
    """With so many decimals, rounded in the given direction.

    >>> decimals(24.45651, 4, UP), decimals(24.45651, 4, DOWN), decimals(-0.5, 0, DOWN)
    ('24.4566', '24.4565', '\u22121')
    """
    exact = as_decimal(value)
    if not exact.is_finite():
        return _endless(exact)
    context = Context(prec=max(_WORKING, exact.adjusted() + places + 5), rounding=rounding)
    return f"{exact.quantize(Decimal(1).scaleb(-places), context=context):f}".replace("-", _MINUS)


def fine(value: Real, places: int, rounding: str = NEAREST) -> Markup:
    """With so many decimals, or with four significant digits where those would leave fewer than three.

    >>> fine(25.41928, 4, UP), fine(0.00012345, 4, UP)
    ('25.4193', '0.0001235')
    """
    exact = as_decimal(value)
    if exact and exact.is_finite() and exact.adjusted() + 1 + places < _FEWEST_DIGITS:
        return significant(value, _FEWEST_DIGITS + 1, rounding)
    return text(decimals(value, places, rounding))


def factor(value: Real) -> Markup:
    """A factor rounded up: the closer to 1, the more digits.

    >>> factor(1.0000087), factor(41814727930.0)
    ('1.000009', '4.2\u202f\u00d7\u202f10<sup>10</sup>')
    """
    return significant(value, 7 if value < 2 else 3 if value < 100 else 2, UP)


def significant(value: Real, digits: int, rounding: str = NEAREST) -> Markup:
    """With so many significant digits, as a decimal or with a power of ten.

    >>> significant(1.2345e-9, 3, UP)
    '1.24\u202f\u00d7\u202f10<sup>\u22129</sup>'
    >>> significant(136.98630136986302, 4)
    '137.0'
    """
    exact = as_decimal(value)
    if not exact.is_finite():
        return text(_endless(exact))
    if not exact:
        return text("0")
    rounded = Context(prec=digits, rounding=rounding).plus(exact)
    exponent = rounded.adjusted()
    if _PLAIN[0] < exponent < _PLAIN[1]:
        return text(f"{rounded.quantize(Decimal(1).scaleb(min(exponent + 1 - digits, 0))):f}".replace("-", _MINUS))
    mantissa = f"{rounded.scaleb(-exponent).quantize(Decimal(1).scaleb(1 - digits)):f}"
    return _power(mantissa, exponent)


def exact(value: Fraction) -> Markup:
    """A rational as it was written: 0.05, 10^-10, 1/3; a long one as a decimal to six digits.

    >>> exact(Fraction(1, 3)), exact(Fraction(293764, 114921))
    ('1/3', '\u2248\u202f2.55623')
    """
    short = whole_text(value)
    if "e" in short:
        mantissa, _, exponent = short.partition("e")
        return _power(mantissa, int(exponent))
    if len(short) > (_LONGEST_FRACTION if "/" in short else _LONGEST_DECIMAL):
        return text("\u2248\u202f", significant(value, 6))
    return text(short.replace("-", _MINUS))


def equals(value: Fraction) -> Markup:
    """The same behind its sign: = 4.9622, or \u2248 2.55623 where the number is rounded."""
    short = exact(value)
    return short if short.startswith("\u2248") else text("=\u202f", short)


def percent(share: Real, places: int, rounding: str = NEAREST) -> str:
    """A share in percent."""
    return f"{decimals(as_decimal(share) * 100, places, rounding)}\u202f%"


def whole(count: int) -> str:
    """An integer with thin spaces between groups of three; four digits stay together."""
    return f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)


def data(value: Real, shown: Child, key: str | None = None) -> Markup:
    """What is read, and the exact number for programs."""
    written = whole_text(value) if isinstance(value, Fraction) else str(value)
    return tag("data", shown, value=written, data_key=key)


def as_decimal(value: Real) -> Decimal:
    """The number itself; a fraction with sixty digits."""
    if isinstance(value, Fraction):
        return Context(prec=_WORKING).divide(Decimal(value.numerator), Decimal(value.denominator))
    return Decimal(value)


def _power(mantissa: str, exponent: int) -> Markup:
    before = None if mantissa == "1" else f"{mantissa.replace('-', _MINUS)}\u202f\u00d7\u202f"
    return text(before, "10", tag("sup", str(exponent).replace("-", _MINUS)))


def _endless(value: Decimal) -> str:
    return "\u2212\u221e" if value < 0 else "\u221e"


def relative_width(lower: Real, upper: Real) -> float:
    """(upper - lower) / |upper|; 0 where both are equal."""
    low, high = as_decimal(lower), as_decimal(upper)
    if low == high:
        return 0.0
    return float((high - low) / abs(high)) if high else math.inf
