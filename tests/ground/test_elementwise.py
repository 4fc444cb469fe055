"""Questions about one number, asked of scalars and arrays: shapes, empty ones, what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from exactdp.elementwise import DIGITS, each, each_decimal, each_rounded, read_digits
from exactdp.errors import InvalidInputError
from exactdp.numbers import read_delta


def around(x: Fraction) -> tuple[float, float]:
    return float(x) - 1, float(x) + 1


def with_digits(x: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    return Decimal(digits), Decimal(digits) + Decimal(x.numerator) / x.denominator


@pytest.mark.parametrize("value", ["1/4", 0.25, Decimal("0.25"), Fraction(1, 4), np.float64(0.25), np.array("0.25")])
def test_a_scalar_of_any_kind_gives_scalars(value: object) -> None:
    assert each(value, around, read_delta) == (-0.75, 1.25)
    assert type(each(value, around, read_delta).lower) is float
    assert each_decimal(value, with_digits, read_delta, 7) == (Decimal(7), Decimal("7.25"))


@pytest.mark.parametrize("shape", [(1,), (6,), (2, 3), (3, 1, 2), (0,), (2, 0)])
def test_an_array_keeps_its_shape_and_order(shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape)).reshape(shape) / 8
    lower, upper = each(values, around, read_delta)
    assert lower.dtype == upper.dtype == float
    np.testing.assert_array_equal(lower, values - 1)
    np.testing.assert_array_equal(upper, values + 1)
    decimals = each_decimal(values, with_digits, read_delta, "5")
    assert decimals.lower.dtype == object
    assert decimals.upper.shape == shape
    assert [x - 5 for x in decimals.upper.ravel()] == [Decimal(float(x)) for x in values.ravel()]


def test_a_list_may_mix_kinds_and_is_asked_once() -> None:
    asked: list[list[Fraction]] = []

    def doubled(values: list[Fraction]) -> list[float]:
        asked.append(values)
        return [2 * float(x) for x in values]

    assert each_rounded(["1/8", 0.5, Fraction(1)], read_delta, doubled).tolist() == [0.25, 1.0, 2.0]
    assert asked == [[Fraction(1, 8), Fraction(1, 2), Fraction(1)]]


@pytest.mark.parametrize(
    "ask", [lambda v: each(v, around, read_delta), lambda v: each_decimal(v, with_digits, read_delta, 5)]
)
@pytest.mark.parametrize(
    ("value", "told"),
    [([0.1, 2], "between 0 and 1. Found 2"), ([[0.1], [0.1, 0.2]], "delta|rectangular"), (None, "delta")],
)
def test_what_is_no_array_of_numbers_is_refused(ask: Any, value: object, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        ask(value)


def test_digits_have_two_limits_and_the_name_that_the_user_gave_them() -> None:
    fewest, most = DIGITS
    assert [read_digits(n) for n in (fewest, str(most), float(fewest))] == [fewest, most, fewest]
    for value in (fewest - 1, most + 1, 7.5, True, "many", None):
        with pytest.raises(InvalidInputError, match="--digits must be"):
            read_digits(value, "--digits")
        with pytest.raises(InvalidInputError, match=r"^digits must be"):
            each_decimal([], with_digits, read_delta, value)
