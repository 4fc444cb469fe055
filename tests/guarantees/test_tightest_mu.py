"""The tightest mu: sound against delta itself, tight, and its tail bound wherever that is claimed."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache

import mpmath
import pytest
from test_guarantees import TEN, gaussian, mpf

from exactdp.accounting.composition import Composition
from exactdp.balls import ball, precision
from exactdp.errors import InvalidInputError
from exactdp.guarantees.tightest_mu import GaussianDP, Proof, tail_holds, tightest_mu, violates
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse

COARSE = {
    "ten": TEN,
    "half": Composition([DiscreteGaussian("1/2")]),
    "coarse": 3 * DiscreteGaussian("0.3"),
    "two": DiscreteGaussian(1) + DiscreteGaussian(2, 2),
    "mixed": DiscreteGaussian(1) + RandomizedResponse(1),
    "laplace": Composition([DiscreteLaplace(2)]),
    "response": Composition([RandomizedResponse(1)]),
}


def _violations(c: Composition, mu: float, epsilons: list[Fraction]) -> list[Fraction]:
    """Where delta is certainly above that of mu-GDP."""
    lows = c.delta_bounds(epsilons).lower
    with mpmath.workdps(40):
        return [e for e, low in zip(epsilons, lows.tolist(), strict=True) if low > 0 and mpf(low) > gaussian(mu, e)]


@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")
@pytest.mark.parametrize("name", COARSE)
def test_tightest_mu(name: str) -> None:
    c = COARSE[name]
    found = tightest_mu(c)
    assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-4)
    assert violates(c, Fraction(found.lower), Fraction(found.epsilon))
    assert not violates(c, Fraction(found.upper), Fraction(found.epsilon))
    grid = {Fraction(i, 20) for i in range(160)} | {Fraction(i, 2) for i in range(16, 121)}
    kinks = [Fraction(k, 2) for k in range(13)] + [Fraction(found.epsilon)]
    grid |= {
        max(k + s, Fraction(0)) for k in kinks for s in (Fraction(-1, 1000), Fraction(1, 1000), Fraction(1, 10**6))
    }
    assert _violations(c, found.upper, sorted(grid)) == []


def test_tightest_mu_of_ten() -> None:
    found = tightest_mu(TEN)
    assert found.lower == pytest.approx(3.17553, abs=6e-6)
    assert found.upper == pytest.approx(3.17557, abs=6e-6)
    assert TEN.mu < found.lower


@pytest.mark.parametrize("mechanisms", [{Gaussian(1): 1}, {Gaussian(3, "1/7"): 9, Gaussian("0.2"): 2}])
def test_tightest_mu_of_continuous_gaussians(mechanisms: dict[Gaussian, int]) -> None:
    c = Composition(mechanisms)
    found = tightest_mu(c)
    assert Fraction(found.lower) ** 2 < 2 * c.rho < Fraction(found.upper) ** 2
    assert found.upper <= found.lower * (1 + 1e-14)


@pytest.mark.parametrize(
    "lost",
    [ApproximateDP(1, "1e-9"), Outcomes(["1/2", "1/2", 0], ["1/2", "1/4", "1/4"]), Outcomes([1, 0], ["1/2"] * 2)],
)
def test_no_mu_where_a_loss_is_infinite(lost: Mechanism) -> None:
    with pytest.raises(InvalidInputError, match="for no mu"):
        tightest_mu(DiscreteGaussian(1) + lost)


@cache
def _mu_of(mechanism: Mechanism) -> GaussianDP:
    return tightest_mu(Composition([mechanism]))


SKEWED = [
    Outcomes(["0.9", "0.1"], ["0.5", "0.5"]),
    RandomizedResponse(1, categories=1000),
]


@pytest.mark.parametrize("mechanism", SKEWED, ids=str)
def test_tightest_mu_of_skewed_outcomes_is_sound(mechanism: Outcomes) -> None:
    c = Composition([mechanism])
    found = _mu_of(mechanism)
    assert violates(c, Fraction(found.lower), Fraction(found.epsilon))
    assert _violations(c, found.upper, [Fraction(i, 50) for i in range(150)]) == []
    # whatever the upper bound claims, nearly the lower bound is the truth: the loss is bounded, nothing happens beyond its end
    assert _violations(c, found.lower * (1 + 1e-3), [Fraction(i, 100) for i in range(200)]) == []


@pytest.mark.parametrize("mechanism", SKEWED, ids=str)
def test_tightest_mu_of_skewed_outcomes_is_tight(mechanism: Outcomes) -> None:
    found = _mu_of(mechanism)
    assert found.upper <= found.lower * (1 + 1e-3)


@pytest.mark.parametrize("c", [Composition([DiscreteGaussian("0.01")]), 400 * DiscreteGaussian(1)])
def test_tightest_mu_where_delta_is_nearly_1(c: Composition) -> None:
    found = tightest_mu(c)
    assert found.lower <= found.upper <= found.lower * 1.01


def test_tightest_mu_of_nothing_learnt() -> None:
    assert tightest_mu(Composition([ApproximateDP(0)])).upper < 1e-6


EVERY_KIND = [
    DiscreteGaussian("0.3"),
    DiscreteGaussian(2, 3),
    Gaussian(2),
    DiscreteLaplace(2),
    DiscreteLaplace(3, 4),
    RandomizedResponse(2),
    RandomizedResponse(1, categories=50),
    RandomizedResponse(noise="1/3", categories=4),
    ApproximateDP("1.5"),
    Outcomes(["0.9", "0.1"], ["0.5", "0.5"]),
    Outcomes(["0.5", "0.49", "0.01"], ["0.5", "0.4999", "0.0001"]),
]


@pytest.mark.parametrize("mechanism", EVERY_KIND, ids=str)
def test_moments_are_at_most_those_of_rho(mechanism: Mechanism) -> None:
    """What the tail bound of tightest_mu rests on: log E e^{zL} <= rho z (z + 1) for z >= 0, in both directions."""
    with precision(192):
        for loss in (mechanism.loss(), mechanism.loss().reversed()):
            for z in [Fraction(i, 10) for i in range(1, 60)] + [Fraction(2) ** i for i in range(3, 12)]:
                excess = loss.log_moment(z) - ball(Fraction(mechanism.rho) * z * (z + 1))
                assert excess.lower() <= 0, z


def test_the_tail_bound_holds_wherever_it_is_claimed() -> None:
    rng = random.Random(3)
    claimed = 0
    for _ in range(300):
        rho = Fraction(rng.randint(1, 3000), 10 ** rng.randint(1, 3))
        mu = Fraction(math.sqrt(2 * rho) * (1 + 10 ** rng.uniform(-4, 0.5)))
        last = Fraction(rng.randint(1, 4000), 10)
        if not tail_holds(rho, mu, last):
            continue
        claimed += 1
        R = 2 * rho
        with mpmath.workdps(40):
            for far in (1, 1.001, 1.1, 2, 10):
                e = last * Fraction(far)
                assert mpmath.exp(-((mpf(e) - mpf(R) / 2) ** 2) / (2 * mpf(R))) <= gaussian(mu, e)
    assert claimed > 50
    assert not tail_holds(Fraction(1), Fraction(1), Fraction(100))  # mu below sqrt(2 rho)


def test_mu_is_not_proved_where_it_is_violated() -> None:
    for mu in ("3.17", "3.1755"):
        assert not Proof(TEN, Fraction(mu), {}).holds(Fraction(40))
    assert Proof(TEN, Fraction("3.176"), {}).holds(Fraction(40))
