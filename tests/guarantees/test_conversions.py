"""Conversions from zCDP and the continuous Gaussian: published values, the safe side, accuracy, corners."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactdp import Composition, InvalidInputError
from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_delta, gaussian_epsilon, gaussian_log_delta
from exactdp.guarantees.zcdp import (
    zcdp_beta,
    zcdp_delta,
    zcdp_delta_simple,
    zcdp_epsilon,
    zcdp_epsilon_simple,
    zcdp_log_delta,
)
from strategies import compositions, rationals

LAWS = settings(max_examples=40)
FEW = settings(max_examples=12)
NEAR = 1e-12  # relative room for the two roundings and searches of a round trip

rhos = st.floats(-12, 6).map(lambda x: Fraction(str(round(10.0**x, 15 if x < 0 else 3) or 1e-12)))
deltas = st.one_of(
    st.sampled_from(
        [Fraction(1, 10**10), Fraction(1, 10**300), Fraction(1, 10**4000), Fraction(1, 2), Fraction(99, 100)]
    ),
    st.integers(1, 400).map(lambda k: Fraction(1, 10**k)),
    rationals(Fraction(1, 100), Fraction(99, 100), 100),
)
alphas = st.one_of(
    st.sampled_from([Fraction(1, 10**10), Fraction(1, 10**100), 1 - Fraction(1, 10**10), Fraction(1, 2)]),
    rationals(Fraction(1, 1000), Fraction(999, 1000), 1000),
)
real_epsilons = st.one_of(rationals(Fraction(-5), Fraction(60), 20), st.sampled_from([Fraction(0), Fraction(1000)]))


def test_published_values() -> None:
    assert zcdp_epsilon_simple("4.9622", 1e-10) == pytest.approx(26.3406, abs=5e-5)
    assert zcdp_epsilon("4.9622", 1e-10) == pytest.approx(25.4193, abs=5e-5)
    assert zcdp_epsilon("2.556226", 1e-10) == pytest.approx(17.14355, abs=5e-6)
    assert gaussian_epsilon(10**0.5, 1e-10) == pytest.approx(24.570, abs=5e-4)


# zCDP: epsilon and delta


def _least(rho: Fraction, delta: Fraction) -> Any:
    """The infimum over orders of the formula, by ternary search in 60 digits (it has one minimum)."""
    r, d = (mpmath.mpf(x.numerator) / x.denominator for x in (rho, delta))

    def value(u: Any) -> Any:
        t = mpmath.exp(u)
        return (1 + t) * r - mpmath.log((1 + t) * d) / t + mpmath.log(t / (1 + t))

    low, high = mpmath.mpf(-60), mpmath.mpf(60)
    for _ in range(220):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if value(left) < value(right) else (left, high)
    return value(low)


@pytest.mark.parametrize("rho", ["1e-12", "1e-3", "0.5", "4.9622", "200", "1e6"])
@pytest.mark.parametrize("delta", ["0.9", "0.1", "1e-10", "1e-300", "1e-4000"])
def test_epsilon_is_the_infimum_rounded_up(rho: str, delta: str) -> None:
    r, d = Fraction(rho), Fraction(delta)
    with mpmath.workdps(60):
        exact = _least(r, d)
        for reading in (Fraction(zcdp_epsilon(r, d)), Fraction(str(zcdp_epsilon(r, d)))):
            miss = mpmath.mpf(reading.numerator) / reading.denominator - exact
            assert 0 < miss < 1e-15 * abs(exact)
        simple = Fraction(zcdp_epsilon_simple(r, d))
        exact = mpmath.mpf(rho) + 2 * mpmath.sqrt(-mpmath.mpf(rho) * mpmath.log(mpmath.mpf(delta)))
        assert 0 < mpmath.mpf(simple.numerator) / simple.denominator - exact < 1e-15 * exact


@pytest.mark.parametrize(("rho", "epsilon"), [("0.5", "5"), ("1e-6", "0.01"), ("3", "3"), ("3", "2"), ("40", "150")])
def test_simple_delta_is_the_formula_rounded_up(rho: str, epsilon: str) -> None:
    with mpmath.workdps(60):
        excess = max(mpmath.mpf(epsilon) - mpmath.mpf(rho), 0)
        exact = mpmath.exp(-(excess**2) / (4 * mpmath.mpf(rho)))
        assert exact <= zcdp_delta_simple(rho, epsilon) <= min(exact * (1 + 1e-15), 1)


@LAWS
@given(rhos, deltas)
def test_the_optimal_conversion_is_never_worse(rho: Fraction, delta: Fraction) -> None:
    epsilon = zcdp_epsilon(rho, delta)
    assert epsilon <= zcdp_epsilon_simple(rho, delta)
    assert zcdp_delta(rho, epsilon) <= zcdp_delta_simple(rho, epsilon)


@LAWS
@given(rhos, deltas)
def test_delta_and_epsilon_are_inverse(rho: Fraction, delta: Fraction) -> None:
    """Both are rounded up, so the round trip ends on the safe side or within rounding of where it began."""
    epsilon = zcdp_epsilon(rho, delta)
    size = abs(float(mpmath.log(mpmath.mpf(delta.numerator)) - mpmath.log(mpmath.mpf(delta.denominator))))
    slope = math.sqrt(size / float(rho)) + 1 / (
        1 - float(delta)
    )  # at least |d log delta / d epsilon|, the order minus 1
    assert zcdp_log_delta(rho, epsilon) == pytest.approx(-size, abs=1e-14 * slope * abs(epsilon) + 1e-14 * size)
    assert zcdp_delta(rho, epsilon) >= math.exp(zcdp_log_delta(rho, epsilon)) * (1 - 1e-12)


@LAWS
@given(rhos, st.lists(deltas, min_size=2, max_size=5, unique=True), st.lists(real_epsilons, min_size=2, unique=True))
def test_zcdp_is_monotone(rho: Fraction, some: list[Fraction], others: list[Fraction]) -> None:
    for function in (zcdp_epsilon, zcdp_epsilon_simple):
        values = function(rho, sorted(some))
        assert all(b <= a + NEAR * abs(a) for a, b in pairwise(values))
        assert all(function(2 * rho, d) > v - NEAR * abs(v) for d, v in zip(sorted(some), values, strict=True))
    for function in (zcdp_delta, zcdp_delta_simple):
        values = function(rho, sorted(others))
        assert np.all((values > 0) & (values <= 1))
        assert all(b <= a * (1 + NEAR) for a, b in pairwise(values))
        assert np.all(function(2 * rho, sorted(others)) >= values * (1 - NEAR))


@FEW
@given(compositions(), deltas)
def test_the_exact_epsilon_is_below_the_conversion(composition: Composition, delta: Fraction) -> None:
    assert composition.epsilon_bounds(delta).lower <= zcdp_epsilon(composition.rho, delta)


@FEW
@given(compositions(), real_epsilons)
def test_the_exact_delta_is_below_the_conversion(composition: Composition, epsilon: Fraction) -> None:
    assert composition.delta_bounds(epsilon).lower <= zcdp_delta(composition.rho, epsilon)


@LAWS
@given(st.floats(-3, 2), deltas, alphas)
def test_the_continuous_gaussian_is_zcdp(log_mu: float, delta: Fraction, alpha: Fraction) -> None:
    mu = Fraction(str(round(10.0**log_mu, 6)))
    assert gaussian_epsilon(mu, delta) <= zcdp_epsilon(mu**2 / 2, delta)
    assert gaussian_beta(mu, alpha) >= zcdp_beta(mu**2 / 2, alpha)


def test_below_the_double_range() -> None:
    assert zcdp_delta(1, 1000) == zcdp_delta_simple(1, 1000) == 5e-324  # upper bounds, never 0
    t = mpmath.findroot(lambda t: 1 + 2 * t - mpmath.log1p(1 / t) - 1000, 500)
    assert zcdp_log_delta(1, 1000) == pytest.approx(float(-(t**2) - mpmath.log1p(t)), rel=1e-14)
    assert zcdp_epsilon(1, zero_one := Fraction(1, 10**90_000)) < zcdp_epsilon_simple(1, zero_one)
    assert zcdp_epsilon(1, 1 - Fraction(1, 10**4000)) == pytest.approx(1 - 4000 * math.log(10), rel=1e-12)


# zCDP: the trade-off curve


def _needed(alpha: Any, beta: Any) -> Any:
    """The supremum of D_a / a over the orders and both directions: the rho that the two coins need."""
    best = mpmath.mpf(0)
    for coins in ([(alpha, 1 - beta), (1 - alpha, beta)], [(1 - beta, alpha), (beta, 1 - alpha)]):
        losses = [(p, mpmath.log(p / q)) for p, q in coins]

        def per_order(u: Any, losses: Any = losses) -> Any:
            t = mpmath.exp(u)
            return mpmath.log(sum(p * mpmath.exp(t * z) for p, z in losses)) / t / (1 + t)

        middle = max(range(-20, 22), key=per_order)
        low, high = mpmath.mpf(middle - 1), mpmath.mpf(middle + 1)
        for _ in range(60):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if per_order(left) > per_order(right) else (left, high)
        best = max(best, per_order(low), sum(p * z for p, z in losses))
    return best


@pytest.mark.parametrize("rho", ["1e-12", "1e-3", "0.1", "1", "5", "50"])
@pytest.mark.parametrize("alpha", ["1e-10", "0.001", "0.1", "0.5", "0.9", "0.9999999999"])
def test_beta_is_the_supremum_rounded_down(rho: str, alpha: str) -> None:
    """At beta some order is violated (so it is safe), and a little above it none is (so it is the best)."""
    with mpmath.workdps(60):
        r, a, beta = mpmath.mpf(rho), mpmath.mpf(alpha), mpmath.mpf(zcdp_beta(rho, alpha))
        assert _needed(a, beta) >= r
        gap = mpmath.log((1 - a) / beta)
        above = max((1 - a) * mpmath.exp(-gap * (1 - 1e-8)), beta * (1 + 1e-14))
        assert above >= 1 - a or _needed(a, above) < r


@FEW
@given(compositions(), alphas)
def test_the_exact_curve_is_above_the_curve_of_zcdp(c: Composition, alpha: Fraction) -> None:
    assert zcdp_beta(c.rho, alpha) <= c.beta_bounds(alpha).upper


@FEW
@given(rhos, rationals(Fraction(1, 100), Fraction(99, 100), 100))
def test_beta_is_symmetric(rho: Fraction, alpha: Fraction) -> None:
    beta = zcdp_beta(rho, alpha)
    if beta > 1e-12:
        back = zcdp_beta(rho, Fraction(beta))
        assert float(alpha) - 1e-7 <= back <= float(alpha) + 1e-7


@FEW
@given(rhos, alphas, real_epsilons)
def test_beta_is_above_every_line_of_the_profile(rho: Fraction, alpha: Fraction, epsilon: Fraction) -> None:
    """Each order implies its delta by way of the two coins, so the curve of the coins is the stronger statement."""
    line = 1 - zcdp_delta(rho, epsilon) - math.exp(min(epsilon, 700)) * float(alpha)
    assert zcdp_beta(rho, alpha) >= line - 1e-9


@FEW
@given(rhos, st.lists(alphas, min_size=2, max_size=6, unique=True))
def test_beta_is_decreasing(rho: Fraction, some: list[Fraction]) -> None:
    values = zcdp_beta(rho, sorted(some))
    assert np.all((values >= 0) & (values < 1))
    assert all(Fraction(b) < 1 - a for a, b in zip(sorted(some), values, strict=True))
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(values))
    assert np.all(zcdp_beta(2 * rho, sorted(some)) <= values * (1 + 1e-9))


# The continuous Gaussian


def _gaussian(mu: float, epsilon: float) -> Any:
    m, e = (mpmath.mpf(Fraction(str(x)).numerator) / Fraction(str(x)).denominator for x in (mu, epsilon))
    return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.02, 0.3, 0.4999, 0.5, 1.0, 3.0, 12.0, 40.0, 100.0])
def test_gaussian_delta_in_the_deep_tail(mu: float) -> None:
    reach = mu * mu / 2 + 37 * mu  # delta is near 1e-300 there
    shares = [0.0, 1e-8, 1e-4, 0.01, 0.1, 0.25, 0.5, 0.7, 0.9, 1.0]
    points = [reach * x for x in shares] + [mu * mu / 2, 24.9 * mu, 25.1 * mu, -1e-9, -0.5, -20.0]
    with mpmath.workdps(60):
        for epsilon in points:
            exact = _gaussian(mu, epsilon)
            if exact > 1e-300:
                assert abs(gaussian_delta(mu, epsilon) / exact - 1) < 2e-12
                assert abs(gaussian_log_delta(mu, epsilon) - mpmath.log(exact)) < 2e-12


@pytest.mark.parametrize(("mu", "epsilon"), [(0.1, 30.0), (0.1, 10.0**6), (1e-6, 1.0), (2.0, 10.0**6)])
def test_gaussian_delta_beyond_the_double_range(mu: float, epsilon: float) -> None:
    with mpmath.workdps(60):  # m(a) - m(b) = (1/a - 1/b) - (1/a^3 - 1/b^3) + ..., far out
        m = mpmath.mpf(str(mu))
        a, b = epsilon / m - m / 2, epsilon / m + m / 2
        fall = mpmath.nsum(
            lambda k: (-1) ** k * mpmath.fac2(2 * k - 1) * (a ** (-2 * k - 1) - b ** (-2 * k - 1)), [0, 12]
        )
        exact = -(a**2) / 2 - mpmath.log(2 * mpmath.pi) / 2 + mpmath.log(fall)
        assert abs(gaussian_log_delta(mu, epsilon) / exact - 1) < 1e-14
    assert gaussian_delta(mu, epsilon) == 0.0


@pytest.mark.parametrize("mu", [1e-3, 0.1, 0.5, 3.0, 100.0])
@pytest.mark.parametrize("delta", ["0.999", "0.6", "0.5", "0.1", "1e-3", "1e-10", "1e-100", "1e-300"])
def test_gaussian_epsilon_solves_the_formula(mu: float, delta: str) -> None:
    epsilon = gaussian_epsilon(mu, delta)
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        slope = mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        assert abs((_gaussian(mu, epsilon) - mpmath.mpf(delta)) / slope) < 1e-13 * abs(e)


@pytest.mark.parametrize("mu", [1e-3, 1.0, 5.0])
@pytest.mark.parametrize("alpha", ["1e-30", "0.001", "0.3", "0.5", "0.7", "0.999", "0.99999999999"])
def test_gaussian_beta(mu: float, alpha: str) -> None:
    with mpmath.workdps(80):
        quantile = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(alpha))
        assert abs(gaussian_beta(mu, alpha) / mpmath.ncdf(quantile - mpmath.mpf(str(mu))) - 1) < 1e-12


# Inputs


def test_corners() -> None:
    for function in (zcdp_epsilon, zcdp_epsilon_simple, gaussian_epsilon):
        assert function(1, [0, 1]).tolist() == [math.inf, -math.inf]
        with pytest.raises(InvalidInputError, match=r"delta must be between 0 and 1\. Found 2"):
            function(1, [0, 2])
    for function in (zcdp_delta, zcdp_delta_simple, gaussian_delta):
        assert function(1, [math.inf, -math.inf, Decimal("inf")]).tolist() == [0.0, 1.0, 0.0]
    for function in (zcdp_log_delta, gaussian_log_delta):
        assert function(1, [math.inf, -math.inf]).tolist() == [-math.inf, 0.0]
    for function in (zcdp_beta, gaussian_beta):
        assert function(1, [0, 1]).tolist() == [1.0, 0.0]
    assert zcdp_epsilon(1, 0.9) < 0
    assert zcdp_epsilon_simple(1, 0.9) > 0
    assert gaussian_delta(1, -1) == pytest.approx(1 - math.exp(-1) * (1 - gaussian_delta(1, 1)), rel=1e-14)


def test_nothing_released() -> None:
    for function in (zcdp_epsilon, gaussian_epsilon):
        assert function(0, 0) == 0
        assert function(0, "0.25") == pytest.approx(math.log(0.75), rel=1e-15)
    assert zcdp_epsilon_simple(0, "0.25") == zcdp_epsilon_simple(0, 0) == 0
    for function in (zcdp_delta, gaussian_delta):
        assert function(0, [0, 1]).tolist() == [0.0, 0.0]
        assert function(0, -1) == pytest.approx(-math.expm1(-1), rel=1e-15)
    for function in (zcdp_beta, gaussian_beta):
        assert function(0, ["1/4", 0, 1]).tolist() == [0.75, 1.0, 0.0]


def test_scalars_arrays_and_number_types() -> None:
    for function in (zcdp_epsilon, zcdp_delta, zcdp_beta, gaussian_delta, gaussian_epsilon, gaussian_beta):
        value = function(Fraction(1, 2), Fraction(1, 4))
        assert isinstance(value, float)
        assert value == function("1/2", "0.25") == function(0.5, Decimal("0.25")) == function(0.5, np.float64(0.25))
        grid = function(0.5, np.array([[0.25, 0.5], [0.75, 0.25]]))
        assert grid.shape == (2, 2)
        assert grid[0, 0] == grid[1, 1] == value
        assert function(0.5, []).shape == (0,)
    assert zcdp_epsilon(0.1, 1e-10) == zcdp_epsilon("1/10", Fraction(1, 10**10))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: zcdp_epsilon(-1, 0.1), "rho must be 0 or between 1e-100 and 1e+10. Found -1."),
        (lambda: zcdp_beta("1e11", 0.1), "rho must be 0 or between 1e-100 and 1e+10. Found 1e11."),
        (lambda: zcdp_delta(math.inf, 1), "rho must be a finite number. Found inf."),
        (lambda: gaussian_delta(-2, 1), "mu must be 0 or between 1e-100 and 1e+06. Found -2."),
        (lambda: zcdp_epsilon(1, -0.5), "delta must be between 0 and 1. Found -0.5."),
        (lambda: zcdp_beta(1, 1.5), "alpha must be between 0 and 1. Found 1.5."),
        (lambda: zcdp_delta(1, math.nan), "epsilon must be a finite number. Found nan."),
        (lambda: gaussian_beta(1, "x"), "alpha must be a finite number such as"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert text in str(caught.value)


def test_agrees_with_dp_accounting() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    for rho in (0.05, 1.0, 4.9622):
        orders = (1 + np.geomspace(0.02, 500, 3000)).tolist()
        theirs, _ = rdp.compute_epsilon(orders, [rho * a for a in orders], 1e-10)
        assert zcdp_epsilon(rho, 1e-10) == pytest.approx(theirs, rel=1e-5)
        assert zcdp_epsilon(rho, 1e-10) <= theirs
