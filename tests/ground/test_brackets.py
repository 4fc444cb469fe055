"""Brackets: what two of them say together, and the mirror for negative epsilon, against balls."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from exactdp.balls import ball, precision
from exactdp.brackets import Bracket, Point, bracket_of_balls, mirrored, mirrored_ball, mirrored_brackets


def _bracket(log_scale: float, lower: float, upper: float) -> Bracket:
    return Bracket(np.array([log_scale]), np.array([lower]), np.array([upper]))


def _holds(bracket: Bracket, exact: arb, width: float) -> bool:
    """Whether a bracket holds the exact value, and is narrow."""
    scale = arb(float(bracket.log_scale[0])).exp()
    low, high = scale * float(bracket.lower[0]), scale * float(bracket.upper[0])
    return bool(low <= exact) and bool(exact <= high) and bool(high - low <= width * exact)


def test_what_two_brackets_say_never_underflows_to_zero() -> None:
    """An upper end of 0 means a number that is known to be 0."""
    assert _bracket(0, 0, 1e-300).within(_bracket(-660, 0, 1e-40)).upper[0] > 0
    assert _bracket(0, 0, 1).within(_bracket(0, 0.5, math.nan)).upper[0] == 1
    for other in ((0.5 + 1e-9, 0.6), (0.4, 0.5 - 1e-9)):  # roundings may cross, the ends of a result never do
        crossed = _bracket(0, 0.5, 0.5).within(_bracket(0, *other))
        assert crossed.lower[0] == crossed.upper[0] == 0.5
    met = _bracket(0, 0.2, 0.9).within(_bracket(-1, 1.0, 2.0))
    assert math.exp(met.log_scale[0]) * met.upper[0] <= 2 / math.e * (1 + 1e-12)


@pytest.mark.parametrize("log_scale", [0.0, -3.5, -700.0, -1e5, 40.0])
def test_a_ball_becomes_a_bracket_that_holds_it(log_scale: float) -> None:
    with precision(256):
        exact = arb(log_scale).exp() / 3
        assert _holds(_bracket(*bracket_of_balls(exact)), exact, 1e-15)


@pytest.mark.parametrize("size", ["1e-330", "1e-20", "1/7", "3", "50"])
def test_the_mirror_holds_what_balls_say_and_is_narrow(size: str) -> None:
    """delta(-e) = 1 - e^{-e} (1 - delta(e)), also where e is 0 as a double; what is not negative stays as it is."""
    epsilon, rng = -Fraction(size), random.Random(3)
    with precision(400):
        for delta in (arb(rng.random()), arb(10) ** -40, arb(1) - arb(10) ** -40):
            point = Point(*(_bracket(*bracket_of_balls(x)) for x in (delta, 1 - delta)), np.array([-50.0]))
            turned = mirrored_brackets(point, [epsilon])
            assert _holds(turned.delta, mirrored_ball(delta, epsilon), 1e-12)
            assert _holds(turned.rest, ball(epsilon).exp() * (1 - delta), 2e-12)
            assert mirrored_brackets(point, [-epsilon]) is point


def test_an_exponent_that_is_not_epsilon() -> None:
    """A loss that may be infinite has another exponent; where it is positive 1 - delta is still right."""
    with precision(200):
        delta = arb(0.75)
        point = Point(*(_bracket(*bracket_of_balls(x)) for x in (delta, 1 - delta)), np.zeros(1))
        for exponent in (-2.0, 0.5):
            turned, rest = mirrored(point, np.array([exponent]))
            assert _holds(rest, arb(exponent).exp() * (1 - delta), 1e-13)
            assert exponent > 0 or _holds(turned, 1 - arb(exponent).exp() * (1 - delta), 1e-13)
