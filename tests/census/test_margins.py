"""The 95% margin of error: exact below its limit, safe beyond, and the same wherever it is shown."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from exactdp.apps.report.content import level_noise
from exactdp.apps.studio.work.pair import noise_at
from exactdp.census.margins import FINE_NOISE, margin95
from exactdp.census.releases import Release
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian


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
