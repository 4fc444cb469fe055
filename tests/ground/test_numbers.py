from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactdp
from exactdp.numbers import ROOT_DIGITS, log_rational, positive, rational, root_up, rounded_up, split, whole


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (3, Fraction(3)),
        (0.1, Fraction(1, 10)),
        ("11/10000", Fraction(11, 10000)),
        (" 1e-10 ", Fraction(1, 10**10)),
        (Decimal("26.34"), Fraction(1317, 50)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.int64(7), Fraction(7)),
    ],
)
def test_numbers_are_read_exactly(value: object, exact: Fraction) -> None:
    assert rational(value, "x") == exact


@pytest.mark.parametrize(
    "value", ["abc", "", "1/0", "1e99999999", math.nan, math.inf, True, None, [1], 1j, "nan", Decimal("Infinity")]
)
def test_bad_numbers_get_one_clear_sentence(value: object) -> None:
    with pytest.raises(exactdp.InvalidInputError) as caught:
        rational(value, "epsilon")
    text = str(caught.value)
    assert text.startswith("epsilon must")
    assert "Found" in text
    assert "\n" not in text


def test_ranges() -> None:
    with pytest.raises(exactdp.InvalidInputError, match=r"sigma2 must be positive. Found -1/7."):
        positive(Fraction(-1, 7), "sigma2")
    with pytest.raises(exactdp.InvalidInputError, match=r"count must be a whole number of at least 0. Found 1.5."):
        whole(1.5, "count", 0)


def test_logarithms_and_split() -> None:
    assert log_rational(Fraction(1, 10**4000)) == pytest.approx(-4000 * math.log(10), rel=1e-15)
    assert log_rational(1 + Fraction(1, 10**20)) == pytest.approx(1e-20, rel=1e-15)
    high, low = split(3 * 10**6 + 1, 3)
    assert abs(Fraction(high) + Fraction(low) - Fraction(1, 3) - 10**6) < Fraction(1, 10**26)


POSITIVE = st.fractions(min_value=Fraction(1, 10**30), max_value=10**30) | st.integers(1, 10**60).map(Fraction)


@given(POSITIVE)
def test_roots_are_rounded_up_and_no_further_than_the_last_digit(value: Fraction) -> None:
    root = root_up(value)
    assert root**2 >= value
    assert root**2 == value or (root * (1 - Fraction(10) ** (1 - ROOT_DIGITS))) ** 2 < value
    assert root**2 == value or len(str(Decimal(root.numerator) / Decimal(root.denominator)).strip("0.")) < 40
    assert root_up(value**2) == value  # an exact root stays one


@given(POSITIVE)
def test_numbers_are_rounded_up_to_fifteen_digits(value: Fraction) -> None:
    found = rounded_up(value)
    assert value <= found < value * (1 + Fraction(10) ** (1 - ROOT_DIGITS))
    assert rounded_up(found) == found
    figures = found / Fraction(10) ** 60 * Fraction(10) ** 120  # whole for every number here
    assert figures.denominator == 1
    assert len(str(figures.numerator).rstrip("0")) <= ROOT_DIGITS
