"""Risk: against brute force, in fractions."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from functools import cache

import mpmath
import pytest
from test_guarantees import TEN, mpf

import any_oracle
import oracle
from exactdp import census
from exactdp.accounting.composition import Composition
from exactdp.guarantees.neighbours import Neighbours, neighbours, relation_of
from exactdp.guarantees.risk import Risk, risk_of
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from small_release import SMALL

PRIORS = [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10), Fraction(1, 10**6), 1 - Fraction(1, 10**6)]


@cache
def _points(count: int, sigma2: Fraction, sensitivity: int) -> list[tuple[Fraction, Fraction]]:
    """The vertices of the trade-off curve, by brute force."""
    b = oracle.brute({(sigma2, sensitivity): count})
    total = int(b.spread / b.step)
    return [(b.tail(t), b.tail(total + 1 - t)) for t in range(-b.offset, b.offset + total + 2)]


@pytest.mark.parametrize(("count", "sigma2", "sensitivity"), [(10, 1, 1), (1, "0.3", 1), (2, 5, 3), (4, 20, 1)])
def test_risk_against_brute_force(count: int, sigma2: object, sensitivity: int) -> None:
    noise = DiscreteGaussian(sigma2, sensitivity)
    c = count * noise
    points = _points(count, noise.sigma2, sensitivity)
    best = max(1 - a - b for a, b in points)
    for prior in PRIORS:
        risk = c.risk(prior=prior, alpha="0.01", delta="1e-6")
        assert risk.advantage == tuple(c.delta_bounds(0))
        assert risk.advantage[0] - 1e-15 <= best <= risk.advantage[1] + 1e-15
        assert risk.advantage[1] - risk.advantage[0] < 1e-9
        exact = min((1 - prior) * a + prior * b for a, b in points)
        assert Fraction(risk.bayes_risk[0]) <= exact + oracle.ERROR
        assert Fraction(risk.bayes_risk[1]) * (1 + Fraction(1, 10**15)) >= exact - oracle.ERROR
        assert risk.bayes_risk[0] == pytest.approx(float(exact), rel=1e-8)
        _check_power_and_posterior(risk, oracle.brute({(noise.sigma2, sensitivity): count}).beta(Fraction(1, 100)))
        low, high = c.epsilon_bounds("1e-6")
        assert risk.odds[0] <= math.exp(low) <= math.exp(high) <= risk.odds[1] <= math.exp(high) * (1 + 1e-12)


def _check_power_and_posterior(risk: Risk, beta: Fraction) -> None:
    power = 1 - beta
    assert Fraction(risk.power[0]) <= power <= Fraction(risk.power[1])
    assert risk.power[1] - risk.power[0] < 1e-11
    yes = risk.prior * power
    posterior = yes / (yes + (1 - risk.prior) * risk.alpha)
    assert Fraction(risk.posterior[0]) <= posterior <= Fraction(risk.posterior[1])
    assert risk.posterior[1] - risk.posterior[0] < 1e-10


@pytest.mark.parametrize(
    "c",
    [
        2 * RandomizedResponse(1) + DiscreteLaplace(2),
        Composition([Outcomes(["0.9", "0.1"], ["0.5", "0.5"])]),
        DiscreteGaussian(1) + ApproximateDP("0.5", "0.01"),
    ],
    ids=str,
)
def test_risk_of_other_mechanisms(c: Composition) -> None:
    listed = any_oracle.listed(c.mechanisms)
    grid = [Fraction(i, 60) for i in range(1, 60)]
    betas = [listed.beta(a) for a in grid]
    best = max(1 - float(a) - float(b) for a, b in zip(grid, betas, strict=True))
    for prior in PRIORS:
        risk = c.risk(prior=prior, alpha="0.05")
        assert best <= risk.advantage[1] + 1e-12
        assert best >= risk.advantage[0] - 0.03
        on_grid = min(float((1 - prior) * a + prior * b) for a, b in _rational(grid, betas))
        ends = min(float(prior), float(1 - prior))
        assert risk.bayes_risk[0] <= min(on_grid, ends) + 1e-15
        if prior in PRIORS[:3]:
            assert risk.bayes_risk[1] >= min(on_grid, ends) - 0.02
        with mpmath.workdps(60):
            odds = mpmath.log(mpf((1 - prior) / prior))
            near = Fraction(str(mpmath.nstr(odds, 50)))
            exact = float(mpf(prior) * (1 - _both(listed, near)))
        assert risk.bayes_risk[0] <= exact * (1 + 1e-12) <= risk.bayes_risk[1] * (1 + 1e-9)
        _check_power_and_posterior(risk, Fraction(str(mpmath.nstr(listed.beta(Fraction(1, 20)), 40))))


def _rational(grid: list[Fraction], betas: list[mpmath.mpf]) -> list[tuple[Fraction, Fraction]]:
    return [(a, Fraction(float(b))) for a, b in zip(grid, betas, strict=True)]


def _both(listed: any_oracle.Listed, epsilon: Fraction) -> mpmath.mpf:
    """The symmetric profile at any epsilon: delta(-e) = 1 - e^-e (1 - delta(e))."""
    if epsilon >= 0:
        return listed.worst(epsilon)
    return 1 - mpmath.exp(any_oracle.number(epsilon)) * (1 - listed.worst(-epsilon))


def test_risk_of_a_whole_release() -> None:
    study = census.release("dhc-persons-us").account()
    risk = risk_of(study, Fraction(1, 20), Fraction(1, 2), Fraction(1, 10**10))
    assert risk.advantage == tuple(study.delta_bounds(0))
    assert risk.power[1] >= 1 - study.beta("0.05")
    assert risk.bayes_risk[0] == pytest.approx((1 - risk.advantage[1]) / 2, rel=1e-9)
    assert risk.odds[1] == pytest.approx(math.exp(study.epsilon("1e-10")), rel=1e-12)


def test_risk_in_words() -> None:
    risk = TEN.risk(prior="1/3", alpha="1/20", delta="1e-10")
    rows = risk.rows()
    assert [row[0] for row in rows] == ["advantage", "power", "Bayes risk", "posterior", "odds multiplier"]
    assert [row[1] for row in rows] == [
        risk.advantage[1],
        risk.power[1],
        risk.bayes_risk[0],
        risk.posterior[1],
        risk.odds[1],
    ]
    assert all(row[2].endswith(".") for row in rows)
    assert "1/3" in rows[2][2]
    assert "0.05" in rows[1][2]
    assert str(risk).count("\n") == 4
    assert str(risk).startswith("advantage")


def test_words_match_the_neighbours() -> None:
    own = TEN.risk()
    assert own.relation is None
    assert "neighbouring" in str(own)
    assert " record" not in str(own)
    study = SMALL.account()
    replaced = risk_of(study, Fraction(1, 20), Fraction(1, 2), Fraction(1, 10**6))
    assert replaced.relation == relation_of(SMALL) == "replace"
    assert "with one record than with another in its place" in str(replaced)
    assert "without" not in str(replaced)
    added = replaced.about("add/remove")
    assert "with the record than without it" in str(added)
    fields = [field.name for field in dataclasses.fields(Neighbours)]
    for relation in (None, "replace", "something new"):
        assert not any("without" in getattr(neighbours(relation), name) for name in fields)


def test_no_event_is_likelier_by_more_than_the_odds_and_delta() -> None:
    risk = Composition([RandomizedResponse(1)]).risk(delta="0.2")
    truth = math.e / (1 + math.e)
    assert truth <= risk.odds[1] * (1 - truth) + 0.2 + 1e-12


def test_posterior_of_a_tiny_prior() -> None:
    risk = Composition([DiscreteGaussian(1)]).risk(alpha="1e-400", prior="1e-400")
    assert risk.posterior[1] >= risk.power[1] / (1 + risk.power[1]) > 0


def test_power_is_at_most_1() -> None:
    assert (1000 * DiscreteGaussian(1)).risk().power[1] <= 1


def test_odds_beyond_the_doubles() -> None:
    assert (2000 * DiscreteGaussian(1)).risk().odds[0] < math.inf


def test_bayes_risk_of_a_prior_near_1() -> None:
    c = 2 * DiscreteGaussian(1)
    near = c.risk(prior=1 - Fraction(1, 10**14)).bayes_risk
    assert near[0] >= 0.9 * c.risk(prior="1e-14").bayes_risk[0]
