"""Reading numbers as exact rationals, with their limits and their logarithms.

Everything the user types is a rational number: `11/10000`, `"0.1"`, `Decimal("1e-10")`, or the float `0.1`, which is
read as the decimal that it prints as (one tenth, not the binary fraction next to it).
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from exactdp.errors import InvalidInputError

Number: TypeAlias = "int | float | str | Fraction | Decimal | np.integer | np.floating"

_LARGEST_EXPONENT = 100_000
_LONGEST_TEXT = 4_000
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+(?:_[0-9]+)*)$")


def shown(value: object) -> str:
    """A value as it may stand in an error text: one line, not too long. Never raises."""
    try:
        text = " ".join((exact_text(value) if isinstance(value, (int, Fraction)) else str(value)).split())
    except ValueError:  # an integer too long for Python to print, inside of something else
        return "a number of more than 4,300 digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def exact_text(value: Fraction | int) -> str:
    """str(value), of any length: Python itself refuses to print integers of more than 4,300 digits. Never raises.

    >>> exact_text(Fraction(1, 3)), len(exact_text(Fraction(1, 10**5000)))
    ('1/3', 5003)
    """
    try:
        return str(value)
    except ValueError:
        top, bottom = (str(Decimal(part)) for part in (value.numerator, value.denominator))
        return top if bottom == "1" else f"{top}/{bottom}"


def exact_repr(value: Any) -> str:
    """The repr of a dataclass, of any length. A class whose numbers may be long says `__repr__ = exact_repr`."""
    parts = (f"{part.name}={_part(getattr(value, part.name))}" for part in fields(value) if part.repr)
    return f"{type(value).__qualname__}({', '.join(parts)})"


def _part(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:
        if isinstance(value, Fraction):
            return f"Fraction({exact_text(value)!r})"
        if isinstance(value, tuple):
            return f"({', '.join(map(_part, value))},)"
        return exact_repr(value) if is_dataclass(value) else shown(value)


def one_line(text: str) -> str:
    """One line of printable characters, whatever a file, an argument or a request contained."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def rational(value: object, name: str) -> Fraction:
    """The exact rational that `value` stands for.

    Guarantee: no rounding; a float means the decimal it prints as.

    >>> rational(0.1, "x"), rational("11/10000", "x"), rational("1e-3", "x")
    (Fraction(1, 10), Fraction(11, 10000), Fraction(1, 1000))
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (bool, np.bool_)):
        raise InvalidInputError(f"{name} must be a number. Found {value}; write 0 or 1 if that is meant.")
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise InvalidInputError(f"{name} must be a finite number. Found {value}.")
        return Fraction(str(value))
    if isinstance(value, (str, Decimal)):
        return _parse(str(value).strip(), name)
    raise InvalidInputError(
        f"{name} must be an int, float, Fraction, Decimal or a text such as '11/10000'. "
        f"Found {shown(value)} of type {type(value).__name__}."
    )


def _parse(text: str, name: str) -> Fraction:
    if len(text) > _LONGEST_TEXT:
        raise InvalidInputError(f"{name} must have at most {_LONGEST_TEXT} characters. Found {len(text)} of them.")
    if not text.isascii():
        raise InvalidInputError(f"{name} must be written in ASCII characters. Found {shown(text)!r}.")
    exponent = _EXPONENT.search(text)
    if exponent and abs(int(exponent.group(1))) > _LARGEST_EXPONENT:
        raise InvalidInputError(
            f"{name} must have a decimal exponent of at most {_LARGEST_EXPONENT} in size. Found {shown(text)}."
        )
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise InvalidInputError(f"{name} must not have a zero denominator. Found {shown(text)}.") from None
    except ValueError:
        raise InvalidInputError(
            f"{name} must be a finite number such as 3, 0.25, '1e-10' or '11/10000'. Found {shown(text)!r}."
        ) from None


def positive(value: object, name: str) -> Fraction:
    """`rational`, refused unless above zero."""
    result = rational(value, name)
    if result <= 0:
        raise InvalidInputError(f"{name} must be positive. Found {shown(value)}.")
    return result


def exact_double(value: object, name: str) -> Fraction:
    """A positive number; unlike `positive`, a float means exactly that double, the binary number it is.

    >>> exact_double(0.1, "x") == Fraction(1, 10), exact_double("0.1", "x") == Fraction(1, 10)
    (False, True)
    """
    result = positive(value, name)
    return Fraction(float(value)) if isinstance(value, (float, np.floating)) else result


def whole(value: object, name: str, least: int, most: int | None = None) -> int:
    """The integer that `value` stands for, refused below `least` and above `most`."""
    if type(value) is int and least <= value and (most is None or value <= most):
        return value
    result = rational(value, name)
    if result.denominator != 1 or result < least:
        raise InvalidInputError(f"{name} must be a whole number of at least {least}. Found {shown(value)}.")
    if most is not None and result > most:
        raise InvalidInputError(f"{name} must be at most {most}. Found {shown(value)}.")
    return result.numerator


def total(terms: Iterable[Fraction]) -> Fraction:
    """The sum, much faster than `sum` where most denominators have much in common, as those of budgets do."""
    held = list(terms)
    common = math.lcm(*(term.denominator for term in held))
    return Fraction(sum(term.numerator * (common // term.denominator) for term in held), common)


def log_rational(value: Fraction) -> float:
    """The natural logarithm of a positive rational of any size.

    Guarantee: the error is at most 16 units of rounding times (1 + |result|), given the accuracy of libm; near 1 it is relative
    to the result itself.
    """
    top, bottom = value.numerator, value.denominator
    if bottom < 2 * top and top < 2 * bottom:
        return math.log1p((top - bottom) / bottom)
    shift = top.bit_length() - bottom.bit_length()
    scaled = top / (bottom << shift) if shift > 0 else (top << -shift) / bottom  # between 1/2 and 2, rounded once
    return math.log(scaled) + shift * math.log(2)


ROOT_DIGITS = 15


def rounded_up(value: Fraction) -> Fraction:
    """The least decimal of 15 significant digits from a positive number on.

    >>> rounded_up(Fraction(2, 3)), rounded_up(Fraction(5))
    (Fraction(666666666666667, 1000000000000000), Fraction(5, 1))
    """
    return _least_decimal(value, lambda scaled: -(-scaled.numerator // scaled.denominator), power=1)


def root_up(value: Fraction) -> Fraction:
    """The square root of a positive number if it is rational, else the least decimal of 15 significant digits above it.

    Guarantee: `root_up(x)**2 >= x`, by whole numbers alone; above the root by less than one part in 10^14.

    >>> root_up(Fraction(4, 9)), root_up(Fraction(2))
    (Fraction(2, 3), Fraction(14142135623731, 10000000000000))
    """
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    return _least_decimal(value, _least_root, power=2)


def _least_root(value: Fraction) -> int:
    """The least whole number whose square is at least a positive value."""
    return math.isqrt(-(-value.numerator // value.denominator) - 1) + 1


def _least_decimal(value: Fraction, least: Callable[[Fraction], int], power: int) -> Fraction:
    """`least` of the value in units of a power of ten, which is such that the result has 15 digits."""
    exponent = (len(exact_text(value.numerator)) - len(exact_text(value.denominator))) // power - ROOT_DIGITS
    while True:
        unit = Fraction(10) ** exponent
        result = least(value / unit**power)
        if result <= 10**ROOT_DIGITS:
            return result * unit
        exponent += 1


def split(top: int, bottom: int) -> tuple[float, float]:
    """top / bottom as an unevaluated sum of two doubles, the second at most half a unit in the last place of the first."""
    high = top / bottom
    numerator, denominator = high.as_integer_ratio()
    return high, (top * denominator - numerator * bottom) / (bottom * denominator)


LARGEST_COUNT = 10**15
LARGEST_RHO = 10**10
LARGEST_EPSILON = 10**9


def read_epsilon(value: object) -> Fraction | float:
    """epsilon as given by a user: a number within limits, or an infinity."""
    if type(value) is Fraction and abs(value.numerator) <= LARGEST_EPSILON * value.denominator:  # most, and quickly
        return value
    if (isinstance(value, Decimal) and value.is_infinite()) or (
        isinstance(value, (float, np.floating)) and math.isinf(value)
    ):
        return float(value)
    result = rational(value, "epsilon")
    if abs(result) > LARGEST_EPSILON:
        raise InvalidInputError(
            f"epsilon must be between -{LARGEST_EPSILON:.0e} and {LARGEST_EPSILON:.0e}, or infinite. Found {shown(value)}."
        )
    return result


def read_delta(value: object) -> Fraction:
    """delta as given by a user: a number from 0 to 1. Above 1 a minus sign was lost (1e10 for 1e-10), and no answer is right."""
    return _probability(value, "delta")


def read_alpha(value: object) -> Fraction:
    """alpha as given by a user: a number from 0 to 1."""
    return _probability(value, "alpha")


def _probability(value: object, name: str) -> Fraction:
    if type(value) is Fraction and 0 <= value.numerator <= value.denominator:  # most, and quickly
        return value
    result = rational(value, name)
    if not 0 <= result <= 1:
        raise InvalidInputError(f"{name} must be between 0 and 1. Found {shown(value)}.")
    return result


def read_share(value: object, name: str) -> Fraction:
    """A number strictly between 0 and 1."""
    result = rational(value, name)
    if not 0 < result < 1:
        raise InvalidInputError(f"{name} must be between 0 and 1, both excluded. Found {shown(value)}.")
    return result


def zero_or_between(value: object, name: str, least: Fraction, most: Fraction) -> Fraction:
    """A number that is 0 or within limits."""
    result = rational(value, name)
    if result and not least <= result <= most:
        limits = f"0 or between {float(least):.0e} and {float(most):.0e}"
        raise InvalidInputError(f"{name} must be {limits}. Found {shown(value)}.")
    return result
