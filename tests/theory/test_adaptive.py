"""What may adapt and what may not (docs/theory/adaptive.md), by brute force."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from exactdp import Composition, DiscreteGaussian, RandomizedResponse

REACH = 40


def _loss_of_adaptive(sigma2: Fraction, shift: Callable[[int], int], epsilon: float) -> float:
    """delta of two counts of this noise where the shift of the second depends on the first answer."""
    noise = DiscreteGaussian(sigma2)
    total = 0.0
    for y in range(-REACH, REACH + 1):
        first = noise.pmf(y), noise.pmf(y - 1)
        for z in range(-REACH, REACH + 1):
            total += max(0.0, first[0] * noise.pmf(z) - math.exp(epsilon) * first[1] * noise.pmf(z - shift(y)))
    return total


@pytest.mark.parametrize(
    "shift",
    [lambda y: 1 if y % 2 else -1, lambda y: y % 2, lambda y: 1 if y > 0 else 0],
    ids=["sign", "parity", "late"],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_queries_may_adapt(shift: Callable[[int], int], epsilon: float) -> None:
    sigma2 = Fraction(3, 2)
    fixed = Composition({DiscreteGaussian(sigma2): 2}).delta_bounds(epsilon)
    assert _loss_of_adaptive(sigma2, shift, epsilon) <= fixed.upper + 1e-12
    assert _loss_of_adaptive(sigma2, lambda _: 1, epsilon) == pytest.approx(fixed.upper, abs=1e-12)


def test_noise_that_adapts_is_not_covered() -> None:
    first, even, odd = RandomizedResponse(1), RandomizedResponse("1.5"), DiscreteGaussian(1)
    likely = math.e / (1 + math.e)
    at = {+1: Composition([even]).delta_bounds(0).lower, -1: Composition([odd]).delta_bounds(2).lower}
    adaptive = likely * at[+1] + (1 - likely) * at[-1]  # at epsilon = 1: the loss so far is +1 or -1
    for fixed in (first + even, first + odd):
        assert adaptive > fixed.delta_bounds(1).upper + 1e-3
