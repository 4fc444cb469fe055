"""The proxy: how far one pair is from all of them, against enclosures of 16 digits, and how far it can be."""

from __future__ import annotations

from fractions import Fraction

import pytest

from exactdp import census
from exactdp.census.grids import Grids
from exactdp.census.proxy import beta_rows, epsilon_rows, understated
from small_release import COARSE, SMALL

DHC = census.release("dhc-persons-us")
OFF_BY_A_PERCENT = census.Release(
    "two levels",
    "",
    "",
    {"Nation": {"total": Fraction(1)}, "District": {"total": Fraction(1)}},
    {1: (), 2: ("District",)},
)


@pytest.mark.parametrize("release", [SMALL, COARSE, OFF_BY_A_PERCENT], ids=lambda r: str(r.title or r.name))
def test_the_difference_in_epsilon_is_bounded_and_tight(release: census.Release) -> None:
    study = release.account(deltas=["1e-3", "1e-9"])
    for row in epsilon_rows(study):
        ends = [release.pair(*pair).epsilon_bounds(row.at, digits=16) for pair in release.pairs]
        proxy = Fraction(release.proxy.epsilon_bounds(row.at, digits=16).upper)
        true = max(Fraction(end.lower) for end in ends) / proxy - 1
        assert true <= Fraction(row.difference)
        assert row.difference <= true + Fraction(1, 10**8)


@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
def test_the_difference_on_the_trade_off_curve_is_bounded(release: census.Release) -> None:
    study = release.account()
    for row in beta_rows(study, [Fraction(1, 100), Fraction(1, 5)]):
        own = release.proxy.beta_bounds(row.at, digits=16)
        overall = study.beta_bounds(row.at)
        assert Fraction(row.difference) >= 1 - Fraction(overall.lower) / Fraction(own.upper) - Fraction(1, 10**12)
        assert row.difference <= 1 - overall.upper / float(own.lower) + 1e-8
        assert row.proxy[0] >= row.overall[0] - 1e-12


def test_a_proxy_can_be_off_by_a_percent() -> None:
    """Two counts of sigma2 = 1: the certified bounds alone prove that this proxy understates epsilon by more than 1%."""
    (row,) = epsilon_rows(OFF_BY_A_PERCENT.account(deltas=["1e-3"]))
    assert Fraction(row.overall[0]) / Fraction(row.proxy[1]) - 1 > Fraction(128, 10_000)


def test_nothing_is_relative_to_what_may_be_zero() -> None:
    assert understated((-1e-3, 1e-3), (0.1, 0.2)) == float("inf")
    assert understated((-2.0, -1.0), (-1.5, -1.0)) >= 1.0


def test_the_trade_off_curve_of_the_census_and_its_proxy() -> None:
    """The paper says at most 1e-4 of f; the largest found is at alpha = 0.087."""
    study = DHC.account()
    (row,) = beta_rows(study, Grids.read(alphas=["0.087"]).alphas)
    assert 1 - row.overall[1] / row.proxy[0] > 8.159e-5
    assert row.difference < 8.16e-5
