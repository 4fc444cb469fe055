"""What is printed is a claim: every number is on the safe side of what it stands for, and within one unit of its last digit."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from exactdp import numerals
from exactdp.doubles import Floats
from exactdp.numerals import DOWN, NEAREST, UP

DIGITS = st.integers(1, 20)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
FRACTIONS = st.builds(Fraction, st.integers(-(10**30), 10**30), st.integers(1, 10**30))
NEAR = st.builds(lambda n, k: Fraction(n, 10**3) + Fraction(1, 10**k), st.integers(-5000, 5000), st.integers(50, 90))
"""Just above a short decimal, where a number that was rounded before would be written on its wrong side."""


@given(DOUBLES | FRACTIONS | NEAR, DIGITS)
def test_bounds_are_rounded_outward_and_no_further_than_a_digit(value: float | Fraction, digits: int) -> None:
    low, high = (Fraction(Decimal(f(value, digits))) for f in (numerals.at_least, numerals.at_most))
    exact = Fraction(value)
    assert low <= exact <= high
    assert high - low <= abs(exact) * Fraction(10) ** (1 - digits) * (1 + Fraction(10) ** (1 - digits))


@given(DOUBLES | FRACTIONS | NEAR, st.integers(0, 15))
def test_decimal_places_round_in_their_direction(value: float | Fraction, places: int) -> None:
    low, middle, high = (Fraction(numerals.with_places(value, places, way)) for way in (DOWN, NEAREST, UP))
    assert low <= Fraction(value) <= high
    assert high - low <= Fraction(1, 10**places)
    assert abs(middle - Fraction(value)) <= Fraction(1, 2 * 10**places)


@given(DOUBLES)
def test_what_programs_read_is_the_same_double_and_a_safe_decimal(value: float) -> None:
    up, down = numerals.for_file(value, UP), numerals.for_file(value, DOWN)
    assert float(up) == value == float(down)
    assert Fraction(Decimal(down)) <= Fraction(value) <= Fraction(Decimal(up))


def _many() -> Floats:
    """Doubles of all sizes, short decimals, sums of few powers of two, and what lies around powers of ten."""
    rng = np.random.default_rng(18)
    tens = [10.0**k for k in range(-300, 20)]
    return np.concatenate(
        [
            rng.integers(0, 2**63 - 2**52, 20_000).view(np.float64),
            rng.random(20_000) * 10.0 ** -rng.integers(0, 300, 20_000),
            np.round(rng.random(5_000), 4) * 10.0 ** -rng.integers(0, 30, 5_000),
            np.ldexp(rng.integers(1, 1000, 5_000).astype(float), rng.integers(-900, 60, 5_000)),
            [y for x in tens for y in (np.nextafter(x, 0), x, np.nextafter(x, 1e300))],
            [0.0, -0.0, -1.5, math.inf, -math.inf, 5e-324],
        ]
    )


def test_many_doubles_at_once_are_written_as_one_by_one() -> None:
    many = _many()
    for rounding in (UP, DOWN):
        found = numerals.all_for_file(many, rounding)
        assert found == [numerals.for_file(x, rounding) for x in many.tolist()]
    assert numerals.all_for_file(np.empty((0, 3)), UP) == []


@given(FRACTIONS)
def test_exact_numbers_are_whole_or_marked(value: Fraction) -> None:
    text = numerals.exact(value)
    assert text.startswith("~") or Fraction(text) == value
    assert Fraction(numerals.whole_text(value)) == value


def test_the_ends_of_the_line() -> None:
    assert [numerals.at_most(x) for x in (math.inf, -math.inf, 0.0, 5e-324)] == ["inf", "-inf", "0", "4.94066e-324"]
    assert [numerals.about(x) for x in (math.inf, 1.0)] == ["inf", "~1"]
    assert numerals.for_file(math.inf, UP) == "inf"
    assert numerals.exact(Fraction(1, 100_000_000)) == "1e-8"


def test_numbers_beyond_the_doubles() -> None:
    long = np.longdouble(1) + np.longdouble(2) ** -60
    assert Fraction(Decimal(numerals.at_most(long))) > 1 or long == 1
    assert numerals.at_least(-long) == numerals.at_least(Fraction(-1) - Fraction(1, 2**60)) or long == 1
    assert numerals.at_most(Decimal("1e1000000")) == "1e1000000"
    assert numerals.with_places(Fraction(10**400, 3), 0, DOWN) == str(10**400 // 3)
    assert Fraction(numerals.for_file(Fraction(1, 3), UP)) >= Fraction(1, 3)
