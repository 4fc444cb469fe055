"""Conversions between guarantees, Gaussian DP, comparison and risk: against mpmath, brute force and the formulas themselves."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

import any_oracle
import oracle
from exactdp import census
from exactdp.accounting.composition import Composition
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.balls import ball, precision
from exactdp.errors import InvalidInputError
from exactdp.guarantees import tightest_mu as gdp
from exactdp.guarantees.epsilon_delta import fdp_beta, fdp_delta
from exactdp.guarantees.gaussian_dp import gdp_beta, gdp_delta, gdp_epsilon, gdp_mu
from exactdp.guarantees.gaussian_estimates import gaussian_epsilon
from exactdp.guarantees.renyi import rdp_delta, rdp_delta_simple, rdp_epsilon, rdp_epsilon_simple
from exactdp.guarantees.risk import Risk, risk_of
from exactdp.guarantees.tightest_mu import GaussianDP, tail_holds, tightest_mu, violates
from exactdp.guarantees.zcdp import zcdp_delta, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.numbers import rational

DIGITS = 70
TEN = 10 * DiscreteGaussian(1)


def mpf(value: object) -> mpmath.mpf:
    """The exact rational that is meant, at the current precision; a float is that very double."""
    exact = Fraction(value) if isinstance(value, float) else rational(value, "value")
    return mpmath.mpf(exact.numerator) / exact.denominator


def gaussian(mu: object, epsilon: object) -> mpmath.mpf:
    """delta of mu-GDP at epsilon, to 50 digits."""
    with mpmath.workdps(DIGITS):
        m, e = mpf(mu), mpf(epsilon)
        root = mpmath.sqrt(2)
        return (mpmath.erfc((e / m - m / 2) / root) - mpmath.exp(e) * mpmath.erfc((e / m + m / 2) / root)) / 2


def close_above(found: float, exact: mpmath.mpf, relative: float = 1e-14) -> bool:
    """At or above the exact value, and not by more than roundings."""
    with mpmath.workdps(DIGITS):
        return exact <= mpf(found) <= exact + relative * abs(exact) + mpmath.mpf(2) ** -1070


# --- Renyi DP


def _rdp(kind: str, a: Fraction, d: Fraction, at: Fraction) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        a, d, at = mpf(a), mpf(d), mpf(at)
        if kind == "epsilon":
            return d + mpmath.log((a - 1) / a) - (mpmath.log(at) + mpmath.log(a)) / (a - 1)
        if kind == "epsilon simple":
            return d + mpmath.log(1 / at) / (a - 1)
        plain = mpmath.exp((a - 1) * (d - at))
        return plain if kind == "delta simple" else plain / a * (1 - 1 / a) ** (a - 1)


RDP = {
    "epsilon": rdp_epsilon,
    "epsilon simple": rdp_epsilon_simple,
    "delta": rdp_delta,
    "delta simple": rdp_delta_simple,
}


@pytest.mark.parametrize("kind", RDP)
def test_renyi_against_the_formulas(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(60):
        orders = [
            1 + Fraction(rng.randint(1, 10**6), 10 ** rng.randint(2, 9)) for _ in range(rng.choice([1, 2, 7, 30]))
        ]
        slope = Fraction(rng.randint(1, 10**4), 10 ** rng.randint(2, 7))
        given = {a: slope * a * Fraction(rng.randint(90, 110), 100) for a in orders}
        if kind.startswith("epsilon"):
            at = rng.choice([Fraction(1, 10 ** rng.randint(1, 300)), Fraction(rng.randint(1, 99), 100)])
        else:
            at = Fraction(rng.randint(-20, 400), 10)
        found = RDP[kind](given, at)
        exact = min(_rdp(kind, a, d, at) for a, d in given.items())
        if kind.startswith("delta") and exact >= 1:
            assert found == 1.0
        else:
            assert close_above(found, exact), (given, at)


def test_renyi_takes_numbers_of_every_kind_exactly() -> None:
    assert rdp_epsilon({"3/2": "0.1"}, "1e-3") == rdp_epsilon({1.5: 0.1}, 0.001)
    assert close_above(rdp_epsilon({1.5: 0.1}, 0.001), _rdp("epsilon", Fraction(3, 2), Fraction(1, 10), "1/1000"))


@pytest.mark.parametrize("rho", ["1/1000", "0.1", "1", "2.556226", "4.9622", "40"])
def test_renyi_of_zcdp_with_many_orders(rho: str) -> None:
    r = Fraction(rho)
    given = {a: a * r for a in (1 + Fraction(1.01**i) / 100 for i in range(1200))}
    for delta in ("1e-10", "1e-3", "0.1"):
        best = zcdp_epsilon(rho, delta)
        assert best * (1 - 1e-12) - 1e-12 <= rdp_epsilon(given, delta) <= best * 1.01 + 1e-3
        assert rdp_epsilon(given, delta) <= rdp_epsilon_simple(given, delta)
        simple = zcdp_epsilon_simple(rho, delta)
        assert simple * (1 - 1e-12) <= rdp_epsilon_simple(given, delta) <= simple * 1.01
    for epsilon in (r, 2 * r + 1, 5 * r + 3):
        best = zcdp_delta(rho, epsilon)
        assert best * (1 - 1e-11) <= rdp_delta(given, epsilon) <= best * 1.01
        assert rdp_delta(given, epsilon) <= rdp_delta_simple(given, epsilon)


def test_published_figures() -> None:
    assert zcdp_epsilon("2.556226", "1e-10") == pytest.approx(17.14355, abs=5e-6)
    assert zcdp_epsilon_simple("4.9622", "1e-10") == pytest.approx(26.3406, abs=5e-5)
    assert zcdp_epsilon("4.9622", "1e-10") == pytest.approx(25.4193, abs=5e-5)
    orders = [1 + Fraction(i, 100) for i in range(1, 800)]
    found = rdp_epsilon({a: a * Fraction("2.556226") for a in orders}, "1e-10")
    assert found == pytest.approx(17.14355, abs=1e-5)
    assert found >= 17.143552


def test_renyi_against_dp_accounting() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = [1.5, 2.0, 3.0, 4.5, 8.0, 16.0, 32.0, 64.0]
    for rho in (0.01, 0.5, 3.0):
        values = [a * rho for a in orders]
        given = dict(zip(orders, values, strict=True))
        for delta in (1e-3, 1e-6, 1e-12):
            theirs = rdp.compute_epsilon(orders, values, delta)[0]
            assert max(rdp_epsilon(given, delta), 0.0) == pytest.approx(theirs, rel=1e-12)
        for epsilon in (0.5, 3.0, 10.0):
            theirs = rdp.compute_delta(orders, values, epsilon)[0]  # or by a bound from the KL divergence
            by_kl = min(math.sqrt(-math.expm1(-v)) for v in values)
            assert min(rdp_delta(given, epsilon), by_kl) == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: rdp_epsilon({}, "1e-5"), "none"),
        (lambda: rdp_epsilon({1: 1}, "1e-5"), "1: 1"),
        (lambda: rdp_epsilon({2: -1}, "1e-5"), "-1"),
        (lambda: rdp_epsilon({2: 1}, 0), "0"),
        (lambda: rdp_epsilon({2: 1}, 1), "1"),
        (lambda: rdp_delta({"x": 1}, 1), "'x'"),
        (lambda: rdp_delta({2: 1}, math.inf), "inf"),
        (lambda: gdp_delta(0, 1), "0"),
        (lambda: gdp_delta(1, "x"), "'x'"),
        (lambda: gdp_epsilon(-1, "0.1"), "-1"),
        (lambda: gdp_epsilon(1, 0), "0"),
        (lambda: gdp_mu(1, 1), "1"),
        (lambda: gdp_beta(1, 1), "1"),
        (lambda: fdp_beta([(0, 0)], 2), "2"),
        (lambda: fdp_beta([("y", 0)], "0.5"), "'y'"),
        (lambda: fdp_delta(TEN.tradeoff(11), "z"), "'z'"),
        (lambda: TEN.compare(), "None"),
        (lambda: TEN.compare(delta=1, epsilon=1), "delta = 1"),
        (lambda: TEN.compare(delta=-1), "-1"),
        (lambda: TEN.compare(epsilon="inf"), "inf"),
        (lambda: TEN.risk(alpha=0), "0"),
        (lambda: TEN.risk(prior=1), "1"),
        (lambda: TEN.risk(delta=2), "2"),
    ],
)
def test_wrong_input_in_a_sentence(call: object, named: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert named in str(caught.value).split("Found")[-1]
    assert str(caught.value).endswith(".")


# --- Gaussian DP

MUS = ["1e-6", "1e-3", "0.1", "1", "3", "50"]


@pytest.mark.parametrize("mu", MUS)
def test_gdp_delta_rounded_up(mu: str) -> None:
    m = Fraction(mu)
    for a in (-6, -1, Fraction(-1, 3), 0, Fraction(1, 7), 2, 9, 26, 37, 39):
        epsilon = m * (a + m / 2)
        exact = gaussian(mu, epsilon)
        found = gdp_delta(mu, epsilon)
        assert found == 1.0 if exact > 1 - mpmath.mpf(2) ** -53 else close_above(found, exact), (a, found)
    for epsilon in (-40, -3, "-0.001", 0, "1e-9"):
        assert close_above(gdp_delta(mu, epsilon), gaussian(mu, epsilon))


@pytest.mark.parametrize("mu", MUS)
def test_gdp_epsilon_holds_and_hardly_less_does(mu: str) -> None:
    for delta in ("1e-300", "1e-100", "1e-10", "0.001", "0.3", "0.9", "0.999999999"):
        found = gdp_epsilon(mu, delta)
        with mpmath.workdps(DIGITS):
            assert gaussian(mu, found) <= mpf(delta), delta
            assert gaussian(mu, found - 3e-12 * (1 + abs(found))) > mpf(delta), delta
        assert found == pytest.approx(gaussian_epsilon(mu, delta), rel=1e-9, abs=2e-12)


def test_gdp_epsilon_may_be_negative() -> None:
    assert gdp_epsilon("1e-6", "0.9") == pytest.approx(math.log(0.1), abs=1e-11)
    assert gdp_epsilon(1, "0.9") < 0 < gdp_epsilon(1, "0.3")
    assert gdp_epsilon("1e-6", Fraction(10**40 - 1, 10**40)) == pytest.approx(-40 * math.log(10), rel=1e-10)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0, "0.5"), (0, "1e-8"), (1, "1e-5"), (1, "1e-300"), ("0.001", "0.9"), (25, "1e-10"), (1000, "0.01"), (-1, "0.7")],
)
def test_gdp_mu_rounded_down(epsilon: object, delta: str) -> None:
    found = gdp_mu(epsilon, delta)
    with mpmath.workdps(DIGITS):
        assert gaussian(found, epsilon) <= mpf(delta)
        assert gaussian(found * (1 + 1e-11), epsilon) > mpf(delta)
    assert gdp_epsilon(Fraction(found), delta) <= float(rational(epsilon, "e")) + 1e-9 * (1 + abs(float(epsilon)))


@pytest.mark.parametrize("mu", MUS)
def test_gdp_beta_rounded_down(mu: str) -> None:
    for alpha in ("1e-300", "1e-20", "0.001", "0.05", "0.5", "0.8", "0.999999"):
        with mpmath.workdps(DIGITS):
            a, m = mpf(alpha), mpf(mu)
            start = -mpmath.sqrt(-2 * mpmath.log(a)) if a < 0.4 else mpmath.mpf(0)
            if a > 0.9:
                start = mpmath.mpf(4)
            x = mpmath.findroot(lambda y, a=a: mpmath.log(mpmath.erfc(-y / mpmath.sqrt(2)) / 2 / a), start)
            exact = mpmath.erfc((m + x) / mpmath.sqrt(2)) / 2
            found = mpf(gdp_beta(mu, alpha))
            assert found <= exact
            assert found >= exact * (1 - mpmath.mpf("1e-11") * (1 + m * m)) - mpmath.mpf(2) ** -1070


def test_gdp_mu_of_a_tiny_delta() -> None:
    assert gdp_mu(0, "1e-12") == pytest.approx(1e-12 * math.sqrt(2 * math.pi), rel=1e-6)


def test_gdp_mu_where_none_suffices() -> None:
    with pytest.raises(InvalidInputError):
        gdp_mu(-1, "0.1")  # delta(-1) is at least 1 - 1/e


def test_gdp_beta_next_to_one() -> None:
    assert 0 <= gdp_beta(1, Fraction(10**70 - 1, 10**70)) <= 1e-70


def test_gdp_epsilon_of_an_absurd_mu() -> None:
    with pytest.raises(InvalidInputError):
        gdp_epsilon("1e200", "1e-5")


# --- (epsilon, delta) and trade-off curves


def test_fdp_beta_against_its_formula() -> None:
    rng = random.Random(5)
    for _ in range(150):
        pairs = [
            (Fraction(rng.randint(-20, 80), 10), Fraction(1, 10 ** rng.randint(0, 12)))
            for _ in range(rng.randint(1, 6))
        ]
        alpha = rng.choice([Fraction(0), Fraction(1), Fraction(rng.randint(1, 999), 1000), Fraction(1, 10**9)])
        with mpmath.workdps(DIGITS):
            lines = [mpmath.mpf(0)]
            for e, d in pairs:
                growth = mpmath.exp(mpf(e))
                lines += [1 - mpf(d) - growth * mpf(alpha), (1 - mpf(d) - mpf(alpha)) / growth]
            exact, found = max(lines), mpf(fdp_beta(pairs, alpha))
            assert exact * (1 - mpmath.mpf(2) ** -51) <= found <= exact


def test_fdp_beta_of_an_exact_profile_is_the_curve() -> None:
    b = oracle.brute({(Fraction(1), 1): 10})
    epsilons = [b.spread / 2 + b.step * t for t in range(-40, 41)]  # the kinks of the profile
    pairs = [(e, Fraction(float(TEN.delta(e)))) for e in epsilons]
    for alpha in (Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2)):
        exact = b.beta(alpha)
        assert fdp_beta(pairs, alpha) <= exact + oracle.ERROR
        assert fdp_beta(pairs, alpha) == pytest.approx(float(exact), rel=1e-9)


def test_fdp_delta_of_a_polygon() -> None:
    curve = TradeOffCurve(np.array([0.0, 0.25, 1.0]), np.array([1.0, 0.25, 0.0]))
    assert fdp_delta(curve, 0) == pytest.approx(0.5)
    assert fdp_delta(curve, 0) >= 0.5
    assert fdp_delta(curve, "0.5") >= 0.75 - 0.25 * math.exp(0.5)
    assert fdp_delta(curve, 30) <= 1e-300
    assert fdp_delta(curve, -50) == pytest.approx(1.0)


COMPOSITIONS = {
    "all vertices": TEN,
    "fine": 100 * DiscreteGaussian(100),
    "continuous": Composition([Gaussian(1)]),
    "mixed": DiscreteLaplace(2) + RandomizedResponse(1),
}


@pytest.mark.parametrize("name", ["all vertices", "fine", "continuous"])
def test_fdp_delta_converges(name: str) -> None:
    c = COMPOSITIONS[name]
    for epsilon in (0, 1, 3):
        exact = c.delta(epsilon)
        gaps = [abs(fdp_delta(c.tradeoff(n), epsilon) - exact) for n in (11, 51, 201, 1001)]
        assert gaps[-1] <= 5e-3 * exact
        assert gaps[-1] <= gaps[0] + 1e-12


def test_fdp_delta_is_exact_where_all_vertices_are_there() -> None:
    curve = TEN.tradeoff(201)
    for epsilon in (0, "0.3", 1, "1.2", 5, 12):
        assert fdp_delta(curve, epsilon) >= TEN.delta_bounds(epsilon).lower
        assert fdp_delta(curve, epsilon) == pytest.approx(TEN.delta(epsilon), rel=1e-6)


@pytest.mark.parametrize("name", ["fine", "continuous", "mixed"])
def test_fdp_delta_is_that_of_the_polygon(name: str) -> None:
    """Points on or below a convex curve: the polygon through them is not below it everywhere, so its delta is no bound."""
    c = COMPOSITIONS[name]
    for n in (5, 11, 51, 201):
        curve = c.tradeoff(n)
        for epsilon in (0, "0.3", 1, "1.2", 2):
            slope = math.exp(float(epsilon))
            polygon = max(0.0, *(1 - b - slope * a for a, b in zip(curve.alpha, curve.beta, strict=True)))
            assert fdp_delta(curve, epsilon) == pytest.approx(polygon, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("delta", [-1, 2])
def test_fdp_beta_refuses_a_delta_that_is_none(delta: int) -> None:
    with pytest.raises(InvalidInputError):
        fdp_beta([(0, delta)], "0.5")


def test_fdp_beta_at_a_huge_epsilon() -> None:
    assert fdp_beta([("1e10", 0)], 0) == 1.0


# --- the tightest mu

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


# --- comparison


def test_the_alarm() -> None:
    found = TEN.compare(delta="1e-10")
    assert found.quantity == "epsilon"
    assert found.exact[0] <= found.exact[1] == pytest.approx(24.678, abs=5e-4)
    assert found.gaussian == pytest.approx(24.570, abs=5e-4)
    assert found.shortcut_understates
    assert not found.shortcut_overstates
    assert found.statement.startswith("ALARM: the Gaussian shortcut understates epsilon")
    assert found.exact[1] < found.zcdp_optimal < found.zcdp_simple
    assert found.zcdp_optimal == zcdp_epsilon(5, "1e-10")
    assert [row[0] for row in found.rows()][2] == "Gaussian shortcut"
    text = str(found)
    assert text.splitlines()[0] == "epsilon at delta = 1/10000000000"
    assert text.splitlines()[-1] == found.statement
    assert len(text.splitlines()) == 7


def test_the_shortcut_may_overstate() -> None:
    statements = set()
    for t in range(40):
        found = TEN.compare(epsilon=Fraction(t, 4))
        exact = oracle.brute({(Fraction(1), 1): 10}).delta(Fraction(t, 4))
        assert found.exact[0] <= exact + oracle.ERROR
        assert found.exact[1] >= exact - oracle.ERROR
        shortcut = gaussian(TEN.mu, Fraction(t, 4))
        assert found.shortcut_understates == (shortcut < float(exact))
        assert found.shortcut_overstates == (shortcut > float(exact))
        statements.add(found.statement.split(",")[0])
    assert statements == {
        "ALARM: the Gaussian shortcut understates delta",
        "The Gaussian shortcut overstates delta",
    }
    assert 3 * RandomizedResponse(1) == Composition({RandomizedResponse(1): 3})
    assert (3 * RandomizedResponse(1)).compare(delta="1e-6").shortcut_overstates


def test_the_shortcut_is_right_for_continuous_gaussians() -> None:
    rng = random.Random(7)
    for _ in range(25):
        c = Composition({Gaussian(Fraction(10) ** rng.randint(-3, 6) * rng.randint(1, 9)): rng.choice([1, 5, 1000])})
        epsilon = float(c.rho) + c.mu * rng.uniform(-3, 30)
        for found in (
            c.compare(epsilon=epsilon),
            c.compare(delta=rng.choice(["1e-200", "1e-6", "0.1", "0.5", "0.99"])),
        ):
            assert not found.shortcut_understates, found
            assert not found.shortcut_overstates, found
            assert found.statement.startswith(("The Gaussian shortcut agrees to 1e-09.", "The values are below"))
    at_zero = mpmath.nstr(gaussian(1, 0), 11)  # epsilon is about 0: nothing is relative to it
    assert not Composition([Gaussian(1)]).compare(delta=at_zero).shortcut_understates


def test_comparison_where_zcdp_knows_nothing() -> None:
    c = DiscreteGaussian(1) + ApproximateDP(1, "1e-6")
    found = c.compare(delta="1e-3")
    assert found.exact[1] == c.epsilon("1e-3") < math.inf
    assert found.gaussian == found.zcdp_simple == found.zcdp_optimal == math.inf
    assert not found.shortcut_understates
    at = c.compare(epsilon=1)
    assert at.gaussian == at.zcdp_simple == at.zcdp_optimal == 1.0
    assert c.compare(delta="1e-7").exact == (math.inf, math.inf)
    assert isinstance(str(found), str)


def test_comparison_at_the_ends() -> None:
    assert TEN.compare(delta=0).exact == (math.inf, math.inf)
    assert TEN.compare(delta=1).exact == (-math.inf, -math.inf)
    assert TEN.compare(epsilon=-3).exact[1] < 1
    assert isinstance(str(TEN.compare(delta=0)), str)


# --- risk

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
    assert "1/20" in rows[1][2]
    assert str(risk).count("\n") == 4
    assert str(risk).startswith("advantage")


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


def test_mu_is_not_proved_where_it_is_violated() -> None:
    for mu in ("3.17", "3.1755"):
        assert not gdp._Proof(TEN, Fraction(mu), {}).holds(Fraction(40))
    assert gdp._Proof(TEN, Fraction("3.176"), {}).holds(Fraction(40))
