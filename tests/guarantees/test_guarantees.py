"""Conversions between guarantees: against mpmath and the formulas themselves."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import oracle
from exactdp.accounting.composition import Composition
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.errors import InvalidInputError
from exactdp.guarantees.epsilon_delta import fdp_beta, fdp_delta
from exactdp.guarantees.gaussian_dp import gdp_beta, gdp_delta, gdp_epsilon, gdp_mu
from exactdp.guarantees.gaussian_estimates import gaussian_epsilon
from exactdp.guarantees.renyi import rdp_delta, rdp_delta_simple, rdp_epsilon, rdp_epsilon_simple
from exactdp.guarantees.zcdp import zcdp_delta, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
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
            exact, found = min(max(lines), 1), mpf(fdp_beta(pairs, alpha))
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
