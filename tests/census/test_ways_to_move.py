"""Theorem A2: noise that is log-concave, one move divided in all ways, by brute force over all outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import mpmath
import pytest

from exactdp import Composition, DiscreteGaussian

REACH = 22


def divisions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum of positive ones, the largest first."""
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in divisions(total - first, first):
            yield first, *rest


def delta_by_sums(sigma2: mpmath.mpf, shifts: tuple[int, ...], epsilon: float) -> mpmath.mpf:
    """From the definition: the sum over all outcomes of (P - e^epsilon Q)_+, at most two counts."""
    weights = {x: mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * sigma2)) for x in range(-REACH, REACH + 1)}
    norm = sum(weights.values())
    pmf = {x: w / norm for x, w in weights.items()}
    growth, total = mpmath.exp(epsilon), mpmath.mpf(0)
    for xs in product(pmf, repeat=len(shifts)):
        p = mpmath.fprod(pmf[x] for x in xs)
        q = mpmath.fprod(pmf.get(x - s, mpmath.mpf(0)) for x, s in zip(xs, shifts, strict=True))
        total += max(p - growth * q, mpmath.mpf(0))
    return total


@pytest.mark.parametrize("sigma2", ["1/3", "2"])
def test_a_move_in_one_cell_costs_most_by_brute_force(sigma2: str) -> None:
    with mpmath.workdps(30):
        s = mpmath.mpf(Fraction(sigma2).numerator) / Fraction(sigma2).denominator
        for epsilon in (0.0, 0.7, 3.0):
            one = delta_by_sums(s, (3,), epsilon)
            for divided in ((2, 1), (1, 1), (2,), (1,)):
                assert delta_by_sums(s, divided, epsilon) <= one + mpmath.mpf(10) ** -20


@pytest.mark.parametrize("sigma2", ["0.2", "1/2", "7/3"])
def test_a_move_in_one_cell_costs_most(sigma2: str) -> None:
    """Every division of moves up to 5, and every smaller move, beside other noise, at many epsilon."""
    beside = DiscreteGaussian("5/2")
    for total in (2, 5):
        whole = Composition({DiscreteGaussian(sigma2, total): 1, beside: 1})
        for divided in divisions(total, total):
            part: dict[DiscreteGaussian, int] = {beside: 1}
            for shift in divided:
                noise = DiscreteGaussian(sigma2, shift)
                part[noise] = part.get(noise, 0) + 1
            for epsilon in (-1, 0, "1/2", 2, 6):
                low = Composition(part).delta_bounds(epsilon).lower
                assert low <= whole.delta_bounds(epsilon).upper


def test_one_cell_is_not_the_same_as_several() -> None:
    """The inequality is strict: nothing else would notice a division that is taken for the whole."""
    several, one = 3 * DiscreteGaussian(2), Composition({DiscreteGaussian(2, 3): 1})
    assert several.delta_bounds(1).upper < one.delta_bounds(1).lower
