"""Numbers of a budget file: read exactly, within their limits, every slip named with its place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction

from exactdp import numerals
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import LARGEST_SIGMA2, SMALLEST_SIGMA2
from exactdp.numbers import LARGEST_RHO, rational, shown, total

NUMBER = re.compile(r"[+-]?([0-9]+/[0-9]+|([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
_MOST_BITS = 6_310  # of a common denominator: 1,900 digits, so that every budget can be written in fewer than 4,000
_ROOTS = (Fraction("0.0317"), Fraction(10**9))  # whose squares are within the limits of sigma2
LIMITS = {
    "rho": (1 / LARGEST_SIGMA2, 1 / SMALLEST_SIGMA2),
    "sigma2": (SMALLEST_SIGMA2, LARGEST_SIGMA2),
    "sigma": _ROOTS,
    "scale": _ROOTS,
    "share": (SMALLEST_SIGMA2 / LARGEST_SIGMA2, Fraction(1)),
    "zcdp_rho": (1 / (2 * LARGEST_SIGMA2), Fraction(LARGEST_RHO)),
}
"""The kinds of numbers that say how much noise a query gets, and zCDP's rho of all, with the least and the most of each."""


def number(value: object, what: str, limits: str, place: str = "") -> Fraction:
    """The exact number that was written, refused if it is none or outside the limits."""
    if isinstance(value, str):
        value = value.strip()
        if _DECIMAL_COMMA.fullmatch(value):
            raise InvalidInputError(
                f"{what} must be written with a decimal point. Found {shown(value)}{place}; write {value.replace(',', '.')}."
            )
    if type(value) is not int and not (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise InvalidInputError(
            f"{what} must be a number such as 0.0073, 73/10000 or 1e-3. Found {shown(value) or 'nothing'}{place}."
        )
    try:
        result = rational(value, what)
    except InvalidInputError as error:
        raise InvalidInputError(f"{str(error).removesuffix('.')}{place}.") from None
    if result <= 0:
        raise InvalidInputError(f"{what} must be positive. Found {shown(value)}{place}.")
    return within(result, value, what, limits, place)


def within(value: Fraction, written: object, what: str, limits: str, place: str) -> Fraction:
    """The number itself, refused outside the limits."""
    low, high = LIMITS[limits]
    if not low <= value <= high:
        raise InvalidInputError(
            f"{what} must be between {float(low):g} and {float(high):g}. Found {shown(written)}{place}."
        )
    return value


def must_be_one(shares: Iterable[Fraction], what: str) -> None:
    """Refuse shares that do not sum to 1."""
    found = exact_sum(shares)
    if found != 1:
        gap = f"{float(abs(found - 1)):.3g} too {'much' if found > 1 else 'little'}"
        raise InvalidInputError(
            f"{what} must sum to exactly 1. Found {about(found)}, which is {gap}; write thirds and the like as 1/3."
        )


def exact_sum(numbers: Iterable[Fraction]) -> Fraction:
    """The sum, refused where the common denominator is too long to work with."""
    terms, common = tuple(numbers), 1
    for term in terms:
        common = math.lcm(common, term.denominator)
        if common.bit_length() > _MOST_BITS:
            raise InvalidInputError(
                "The numbers must have a common denominator of at most 1,900 digits. Found a longer one; round them."
            )
    return total(terms)


def about(value: Fraction) -> str:
    """The fraction and what it is about as a decimal."""
    return f"{shown(value)} ({numerals.about(value)})" if value.denominator > 1 else shown(value)
