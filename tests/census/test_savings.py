from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

import oracle
from exactdp import census
from exactdp.census.runners import Serial
from exactdp.census.savings import level_pair
from exactdp.census.summary import _unused, summarize
from exactdp.guarantees.calibration import GRID
from exactdp.guarantees.zcdp import zcdp_epsilon, zcdp_epsilon_simple
from exactdp.numbers import rational
from small_release import COARSE, SMALL

DHC = census.release("dhc-persons-us")


def _deltas(release: census.Release, factor: Fraction, epsilon: Fraction) -> Iterator[Fraction]:
    """delta of every pair by brute force, first that of the full path with itself, which most often decides."""
    scaled = release.scaled(factor)
    for pair in sorted(scaled.pairs, key=lambda pair: pair != scaled.proxy_pair):
        noise = {(m.sigma2, m.sensitivity): n for m, n in scaled.pair(*pair).mechanisms.items()}
        yield oracle.brute(noise).delta(epsilon)


@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-9"])
def test_the_factor_suffices_and_one_step_less_does_not(release: census.Release, delta: str) -> None:
    d = Fraction(delta)
    epsilon = rational(zcdp_epsilon(release.rho, d), "epsilon")
    saving = census.overall_saving(release, epsilon, d)
    assert 0 < saving.saved < 1
    assert all(delta <= d + oracle.ERROR for delta in _deltas(release, saving.factor, epsilon))
    assert any(delta > d - oracle.ERROR for delta in _deltas(release, saving.factor - Fraction(1, GRID), epsilon))


def test_a_guarantee_that_needs_more_noise() -> None:
    saving = census.overall_saving(SMALL, Fraction(1, 2), Fraction(1, 10**6))
    assert saving.factor > 1


def test_the_census_at_the_official_delta() -> None:
    """Against (26.3406, 1e-10), which zCDP states for rho = 4.9622, 11.44% of the noise variance could be saved."""
    d = Fraction(1, 10**10)
    simple = census.overall_saving(DHC, rational(zcdp_epsilon_simple(DHC.rho, d), "epsilon"), d)
    assert simple.saved == Fraction(1144, 10000)
    optimal = census.overall_saving(DHC, rational(zcdp_epsilon(DHC.rho, d), "epsilon"), d)
    assert optimal.saved == Fraction(613, 10000)


def test_levels() -> None:
    d = Fraction(1, 10**11)
    rho = level_pair(DHC, "Block").rho
    assert rho == sum(DHC.table["Block"].values())
    saving = census.level_saving(DHC, "Block", rational(zcdp_epsilon_simple(rho, d), "epsilon"), d)
    assert saving.saved == Fraction(2481, 10000)  # the largest factor on the safe side of 24.82%
    assert DHC.full_path == 13
    assert DHC.proxy == DHC.pair(13, 13)


def test_the_savings_of_2024_are_reproduced() -> None:
    """arXiv:2410.09296: 15.08% to 24.82% of the noise variance, and 8.50% to 13.76% of epsilon, unused."""
    release = census.release("dhc-2022-08")
    assert release.rho == Fraction("3.65")
    summary = summarize(release.account(deltas=["1e-11"]), Serial(), Fraction(1, 10**11))
    saved = {row.level: row.saved_simple.saved * 100 for row in summary.levels}
    assert list(saved.values()) == list(
        map(Fraction, ["20.87", "15.08", "17.57", "16.62", "16.62", "15.33", "16.89", "24.82"])
    )
    unused = {row.level: (row.unused_simple or 0) * 100 for row in summary.levels}
    assert min(unused.values()) == unused["State"] == Fraction("8.50")
    assert max(unused.values()) == unused["Block"] == Fraction("13.75")  # 13.7559, rounded down


def test_what_is_unused_is_proved() -> None:
    summary = summarize(SMALL.account(deltas=["1e-3", "1e-9"]), Serial(), Fraction(1, 10**6))
    for row in (*summary.epsilons, *summary.levels):
        exact = Fraction(row.epsilon[1])
        for share, stated in (
            (row.unused_simple, row.saved_simple.epsilon),
            (row.unused_optimal, row.saved_optimal.epsilon),
        ):
            assert share is not None
            assert exact <= (1 - share) * stated
            assert exact > (1 - share - Fraction(1, GRID)) * stated
    assert _unused((-2.0, -1.0), Fraction(3)) is None
    assert _unused((1.0, 2.0), Fraction(0)) is None
    assert _unused((1.0, 2.0), Fraction(1)) == 0


def test_summary() -> None:
    study = SMALL.account(deltas=["1e-3", "1e-9"], alphas=["0.01", "0.05"])
    summary = summarize(study, Serial(), Fraction(1, 10**6))
    for row in summary.epsilons:
        assert row.epsilon == tuple(
            map(max, zip(*(r.epsilon[study.grids.deltas.index(row.delta)] for r in study.results), strict=True))
        )
        assert row.epsilon[1] < row.zcdp_optimal < row.zcdp_simple
        assert row.proxy[0] <= row.epsilon[1]
        assert row.saved_simple.saved > row.saved_optimal.saved > 0
        assert row.worst_pair == study.worst_pair(delta=row.delta)
    for power in summary.powers:
        assert power.zcdp_beta <= power.beta[0] <= power.beta[1]
    assert [level.level for level in summary.levels] == list(SMALL.table)
