"""Balls: their ends as doubles and decimals, and digits that are raised until something is proved."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from exactdp.balls import ATTEMPTS, ball, correct_digits, decimals, ends_of, fraction, precision, raised, upper_double
from exactdp.errors import AccuracyError

NUMBERS = [Fraction(1, 3), Fraction(-2, 7), Fraction(10**30, 9), Fraction(1, 3 * 10**40)]


@pytest.mark.parametrize("value", NUMBERS, ids=str)
def test_ends_are_outward_and_narrow(value: Fraction) -> None:
    with precision(256):
        narrow = ball(value)
    low, high = ends_of(narrow)
    assert Fraction(low) < value < Fraction(high)
    assert high - low <= 4 * math.ulp(high)
    assert Fraction(upper_double(narrow)) >= value


def test_exact_numbers_stay_exact() -> None:
    assert ends_of(arb(0.375)) == (0.375, 0.375)
    assert fraction(arb(-0.375)) == Fraction(-3, 8)
    assert upper_double(arb(0)) == 0
    assert upper_double(-(arb(10) ** -400)) <= 0


@pytest.mark.parametrize("value", [v for v in NUMBERS if v > 0], ids=str)
def test_decimals_hold_the_ball_to_the_digits_promised(value: Fraction) -> None:
    with precision(300):
        low, high = decimals(ball(value), 20)
    assert Fraction(low) <= value <= Fraction(high)
    assert Fraction(high) - Fraction(low) < value / 10**20


def test_correct_digits_are_rounded_down() -> None:
    with precision(200):
        assert correct_digits(arb(1, 1e-10)) in (9, 10)
        assert correct_digits(arb(0, 1)) == correct_digits(arb(-1)) == 0


def test_precision_is_restored() -> None:
    before = ctx.prec
    with pytest.raises(ZeroDivisionError), precision(before + 100):
        raise ZeroDivisionError
    assert ctx.prec == before


def test_digits_are_raised_until_proved() -> None:
    seen: list[int] = []

    def attempt(working: int) -> tuple[str | None, int]:
        seen.append(working)
        return "proved" if working > 40 else None, working

    assert raised(attempt, 5, 10) == "proved"
    assert seen == [10, 20, 40, 80]


def test_what_is_never_proved_is_given_up_in_its_own_words() -> None:
    seen: list[int] = []

    def attempt(working: int) -> tuple[None, int]:
        seen.append(working)
        return None, 1

    with pytest.raises(AccuracyError, match=f"5 digits were not reached in {ATTEMPTS} attempts"):
        raised(attempt, 5, 10)
    assert seen == list(range(10, 10 + ATTEMPTS))
    with pytest.raises(AccuracyError, match=r"^undecided$"):
        raised(attempt, 5, 10, attempts=2, failure="undecided")
