"""Numbers as they stand in a report: the texts of exactdp.numerals, set as markup.

Every number is a `data` element with a key. What is read is rounded outward; its value is a decimal for programs that is on the
safe side too. Estimates, and exact numbers that are cut, have a tilde and a style of their own.
"""

from __future__ import annotations

import math
from fractions import Fraction

from exactdp import numerals
from exactdp.apps.report.markup import Child, Markup, tag, text
from exactdp.numerals import DOWN, NEAREST, UP, Real

_MINUS = "\u2212"
_FEWEST_DIGITS = 3
_VALUE_DIGITS = 18
_AT_END = {UP: numerals.at_most, DOWN: numerals.at_least, NEAREST: numerals.about}


def as_markup(numeral: str) -> Markup:
    """A numeral as it is set: a true minus, powers of ten raised, estimates in their style.

    >>> as_markup("1.24e-9"), as_markup("1e-10")
    ('1.24\u202f\u00d7\u202f10<sup>\u22129</sup>', '10<sup>\u221210</sup>')
    >>> as_markup("~24.57"), as_markup("inf")
    ('<span class="estimate">~24.57</span>', '\u221e')
    """
    if numeral.startswith("~"):
        return tag("span", "~", as_markup(numeral[1:]), cls="estimate")
    mantissa, _, exponent = numeral.replace("inf", "\u221e").replace("-", _MINUS).partition("e")
    if not exponent:
        return text(mantissa)
    before = None if mantissa == "1" else f"{mantissa}\u202f\u00d7\u202f"
    return text(before, "10", tag("sup", exponent))


def significant(value: Real, digits: int, rounding: str) -> Markup:
    """With so many significant digits: a bound rounded UP or DOWN, or an estimate to the NEAREST.

    >>> significant(136.98630136986302, 4, DOWN)
    '136.9'
    """
    return as_markup(_AT_END[rounding](value, digits))


def fine(value: Real, places: int, rounding: str) -> Markup:
    """With so many decimals, or with four significant digits where those would leave fewer than three.

    >>> fine(25.41928, 4, UP), fine(0.00012345, 4, UP)
    ('25.4193', '0.0001235')
    """
    if value and math.isfinite(value):
        exponent = numerals.rounded(value, 1, DOWN if value > 0 else UP).adjusted()
        if exponent + 1 + places < _FEWEST_DIGITS:
            return significant(value, _FEWEST_DIGITS + 1, rounding)
    return as_markup(("~" if rounding == NEAREST else "") + numerals.with_places(value, places, rounding))


def factor(value: Real) -> Markup:
    """A factor rounded up: the closer to 1, the more digits.

    >>> factor(1.0000087), factor(41814727930.0)
    ('1.000009', '4.2\u202f\u00d7\u202f10<sup>10</sup>')
    """
    return significant(value, 7 if value < 2 else 3 if value < 100 else 2, UP)


def exact(value: Fraction) -> Markup:
    """An exact number: 0.05, 10^-10, 1/3; a long one cut and marked.

    >>> exact(Fraction(1, 3)), exact(Fraction(293764, 114921))
    ('1/3', '<span class="estimate">~2.55623</span>')
    """
    return as_markup(numerals.exact(value))


def is_cut(value: Fraction) -> bool:
    """Whether an exact number is too long to be shown whole."""
    return numerals.exact(value).startswith("~")


def equals(value: Fraction) -> Markup:
    """The same behind its sign: = 4.9622, or = ~2.55623 where the number is cut."""
    return text("=\u202f", exact(value))


def percent(share: Real, places: int, rounding: str) -> Markup:
    """A share in percent; to the NEAREST it is marked, unless nothing was rounded."""
    shown = numerals.percent(share, rounding, places).removesuffix("%")
    cut = rounding == NEAREST and math.isfinite(share) and Fraction(shown) != 100 * numerals.as_fraction(share)
    return text(as_markup(f"{'~' * cut}{shown}"), "\u202f%")


def whole(count: int) -> str:
    """An integer with thin spaces between groups of three; four digits stay together."""
    return f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)


def data(value: Real, shown: Child, key: str, rounding: str = NEAREST) -> Markup:
    """What is read, and the number for programs: a decimal that is on the same safe side, or the exact number."""
    return tag("data", shown, value=_value(value, rounding), data_key=key)


def _value(value: Real, rounding: str) -> str:
    if isinstance(value, Fraction):
        whole_text = numerals.whole_text(value)
        cut = "/" in whole_text and rounding != NEAREST
        return str(numerals.rounded(value, _VALUE_DIGITS, rounding)) if cut else whole_text
    return str(value) if rounding == NEAREST or isinstance(value, int) else numerals.for_file(value, rounding)


def relative_width(lower: Real, upper: Real) -> Fraction | float:
    """(upper - lower) / |upper|, exactly; 0 where both are equal."""
    if lower == upper:
        return 0.0
    if not (upper and math.isfinite(lower) and math.isfinite(upper)):
        return math.inf
    low, high = numerals.as_fraction(lower), numerals.as_fraction(upper)
    return (high - low) / abs(high)
