"""Logarithms become doubles on the outer side, down to the smallest double and beyond."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from exactdp.balls import ball, precision
from exactdp.doubles import CHAIN_SLACK, EXP_SLACK, exp_above, exp_below, two_product

ENDS = [
    0.0,
    -700.0,
    -708.3,
    -708.4,
    -740.0,
    -744.0,
    -744.5,
    -745.1,
    -745.2,
    -746.0,
    -800.0,
    -1e300,
    600.0,
    709.7,
    710.0,
]


@pytest.mark.parametrize("slack", [EXP_SLACK, CHAIN_SLACK, 1e-12])
def test_both_ends_are_outward_and_narrow(slack: float) -> None:
    rng = random.Random(15)
    logs = ENDS + [rng.uniform(-746, -707) for _ in range(400)] + [rng.uniform(-30, 5) for _ in range(200)]
    with precision(256):
        for log in logs:
            exact = arb(log).exp()
            low, high = exp_below(log, slack), exp_above(log, slack)
            assert low >= 0
            assert ball(Fraction(low)) <= exact
            assert high == math.inf or exact <= ball(Fraction(high))
            if -700 < log < 700:
                assert high - low <= 2.1 * slack * high
            elif log <= -700:
                assert high - low <= 3 * slack * high + 5e-322


def test_what_is_known_to_be_zero_stays_so() -> None:
    assert exp_above(-math.inf) == exp_below(-math.inf) == 0.0
    assert exp_below(math.inf) > 1e308
    assert exp_above(math.inf) == math.inf


def test_a_product_and_its_error_are_exact() -> None:
    rng = np.random.default_rng(3)
    one, two = (rng.random(500) * 10.0 ** rng.integers(-90, 90, 500) for _ in range(2))
    for a, b, high, low in zip(one, two, *two_product(one, two), strict=True):
        assert Fraction(high) + Fraction(low) == Fraction(a) * Fraction(b)
        assert high == a * b
