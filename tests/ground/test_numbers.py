from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import exactdp
from exactdp.numbers import log_rational, positive, rational, split, whole


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
