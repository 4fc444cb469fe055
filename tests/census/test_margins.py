"""The 95% margin of error: exact below its limit, safe beyond, and the same wherever it is shown."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from exactdp.apps.report.content import level_noise
from exactdp.apps.studio.work.pair import noise_at
from exactdp.census.cell_noise import CellNoise
from exactdp.census.margins import FINE_NOISE, margin95, noise_of
from exactdp.census.releases import Release
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace


def variances(count: int) -> list[Fraction]:
    """Around the limit and beyond it, and small ones."""
    draw = random.Random(14)
    exponents = [draw.uniform(-3, 5) for _ in range(count)] + [draw.uniform(5.9, 6.1) for _ in range(count)]
    return [FINE_NOISE, FINE_NOISE - Fraction(1, 7)] + [Fraction(10**e).limit_denominator(1000) for e in exponents]


@pytest.mark.parametrize("sigma2", [*variances(15), Fraction(10**8), Fraction(10**11, 3)], ids=str)
def test_the_margin_is_safe_and_tight(sigma2: Fraction) -> None:
    noise = DiscreteGaussian(sigma2)
    margin = margin95(noise)
    assert 2 * noise.tail(margin + 1) <= 0.05
    beyond = 0 if sigma2 < FINE_NOISE else 1 + int(margin * 1e-8)
    assert margin == 0 or 2 * noise.tail(margin - beyond) > 0.05


def test_report_and_studio_state_the_same_margin() -> None:
    rest = random.Random(10**6)
    chosen = variances(50) + [Fraction(rest.randrange(10**6, 10**13), rest.randrange(1, 50)) for _ in range(100)]
    budgets = {f"query {i}": 1 / sigma2 for i, sigma2 in enumerate(chosen)}
    release = Release("wide", "Wide", "a test", {"US": budgets}, {1: ()})
    for query in level_noise(release)[0].queries:
        shown = noise_at(query.rho)
        assert (query.margin, query.standard_error) == (shown["margin95"], shown["standard_error"])


@pytest.mark.parametrize("scale", ["1/900", "1/10", "1/2", "1", "2", "7/2", "10", "333.3", "12345", "1000000"])
def test_the_margin_of_laplace_noise_is_safe_and_tight(scale: str) -> None:
    noise = DiscreteLaplace(scale)
    shown = noise_of(1 / noise.scale**2, CellNoise("discrete laplace"))
    assert shown.sigma2 == noise.scale**2
    assert 2 * noise.tail(shown.margin + 1) <= 0.05 * (1 + 1e-9)
    assert shown.margin == 0 or 2 * noise.tail(shown.margin) > 0.05 * (1 - 1e-9)
    if noise.scale < 20:
        assert shown.variance == pytest.approx(sum(2 * x * x * noise.pmf(x) for x in range(1, 2000)), rel=1e-12)
    assert shown.standard_error**2 == pytest.approx(shown.variance)


def test_the_margin_of_continuous_noise_is_safe_and_tight() -> None:
    for sigma2 in (Fraction(1), Fraction(10**4), Fraction(1, 3)):
        margin = noise_of(1 / sigma2, CellNoise("gaussian")).margin
        assert math.erfc(margin / math.sqrt(2 * sigma2)) <= 0.05 < math.erfc((margin - 1) / math.sqrt(2 * sigma2))
