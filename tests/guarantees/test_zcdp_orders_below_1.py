"""zCDP's trade-off curve with Renyi orders below 1: what AutoDP draws, and why it is no bound for discrete Gaussians."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx, fmpq

from exactdp import Composition, DiscreteGaussian
from exactdp.guarantees.gaussian_estimates import gaussian_beta
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_beta_estimate

DHC = Fraction(24811, 5000)


@pytest.fixture
def two_hundred_bits() -> Any:
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def overlap(sigma2: Fraction, order: Fraction) -> arb:
    """sum p(x)^a p(x - 1)^(1 - a) of a discrete Gaussian, term by term as a ball, with a ball for the terms left out."""
    s, a = (arb(fmpq(x.numerator, x.denominator)) for x in (sigma2, order))
    xs = range(-60, 62)
    weights = {x: (-(arb(x) ** 2) / (2 * s)).exp() for x in range(-61, 62)}
    tail = arb(0, 1e-40)  # beyond 60 each sum is below 4 exp(-60^2 / (2 s)), less than 1e-40 for s <= 15
    total = sum(weights.values(), arb(0)) + tail
    both = sum(((a * weights[x].log() + (1 - a) * weights[x - 1].log()).exp() for x in xs), arb(0)) + tail
    return both / total


def divergence(sigma2: Fraction, order: Fraction) -> arb:
    return overlap(sigma2, order).log() / (arb(fmpq(order.numerator, order.denominator)) - 1)


def closed_form(sigma2: Fraction, order: Fraction) -> arb:
    """a rho + log(theta_0 / theta_a) / (1 - a) by Jacobi's theta function, that is, after Poisson summation."""
    s, a = (arb(fmpq(x.numerator, x.denominator)) for x in (sigma2, order))
    at, zero = (acb(c).modular_theta(acb(0, 2 * arb.pi() * s))[2].real for c in (a, arb(0)))
    return a / (2 * s) + (zero / at).log() / (1 - a)


@pytest.mark.usefixtures("two_hundred_bits")
def test_at_order_one_half_a_discrete_gaussian_exceeds_rho_over_two() -> None:
    """sigma2 = 1/5 with sensitivity 1: rho = 5/2, and D_{1/2} is 1.4044, not at most 1.25. Two ways, in balls."""
    found, known = divergence(Fraction(1, 5), Fraction(1, 2)), closed_form(Fraction(1, 5), Fraction(1, 2))
    assert found > arb("1.40444")
    assert found < arb("1.40445")
    assert found > arb(5) / 4
    assert found.overlaps(known)
    assert known.rad() < arb("1e-40")


@pytest.mark.usefixtures("two_hundred_bits")
@pytest.mark.parametrize("sigma2", ["1/20", "1/5", "1", "3"])
@pytest.mark.parametrize("order", ["1/10", "1/2", "2/3", "19/20"])
def test_below_order_1_every_discrete_gaussian_exceeds_a_rho(sigma2: str, order: str) -> None:
    s, a = Fraction(sigma2), Fraction(order)
    found = divergence(s, a)
    assert found.overlaps(closed_form(s, a))
    excess = found - arb(fmpq(a.numerator, a.denominator)) * arb(fmpq(s.denominator, 2 * s.numerator))
    assert excess > 0


@pytest.mark.usefixtures("two_hundred_bits")
def test_above_order_1_no_discrete_gaussian_exceeds_a_rho() -> None:
    for a in (Fraction(3, 2), Fraction(5, 2)):
        assert divergence(Fraction(1, 5), a) < arb(fmpq(a.numerator, a.denominator)) * arb(5) / 2
    assert divergence(Fraction(1, 5), Fraction(2)).overlaps(arb(5))  # whole orders are exact


def test_the_curve_by_orders_from_one_half_on_is_above_an_exact_one() -> None:
    """The curve itself is no bound, either: the best test of this noise misses less often than it says."""
    noise = Composition([DiscreteGaussian("1/5")])
    exact = noise.beta_bounds("0.07").upper
    assert exact < 0.07716
    assert zcdp_beta_estimate(noise.rho, "0.07") > 0.0859
    assert zcdp_beta(noise.rho, "0.07") <= noise.beta_bounds("0.07").lower


def test_the_curve_of_orders_from_1_on_is_below_every_exact_one_that_the_other_exceeds() -> None:
    for sigma2 in ("1/20", "1/10", "1/5"):
        noise = Composition([DiscreteGaussian(sigma2)])
        alphas = np.array([1e-6, 5e-5, 1e-3, 0.01, 0.05, 0.07, 0.2, 0.5])
        exact = noise.beta_bounds(alphas)
        assert np.any(zcdp_beta_estimate(noise.rho, alphas) > exact.upper)
        assert np.all(zcdp_beta(noise.rho, alphas) <= exact.upper)


def test_continuous_gaussian_noise_obeys_orders_below_1() -> None:
    """There D_a = a rho for all orders, so that the estimate is below the exact curve, and above the valid one."""
    alphas = np.array([1e-6, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9])
    for rho in (0.1, 1.0, float(DHC)):
        estimate = zcdp_beta_estimate(rho, alphas)
        assert np.all(estimate <= gaussian_beta((2 * rho) ** 0.5, alphas))
        assert np.all(estimate >= zcdp_beta(rho, alphas))


def needed(alpha: Any, beta: Any, orders: list[Any]) -> Any:
    """The largest D_a / a over the orders and both directions: the rho that two coins need."""
    best = mpmath.mpf(0)
    for p, q in ((alpha, 1 - beta), (1 - beta, alpha)):
        for a in orders:
            if a == 1:
                value = p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q))
            else:
                value = mpmath.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)
            best = max(best, value / a)
    return best


@pytest.mark.parametrize(("first", "known"), [("1", "0.004374"), ("1/2", "0.008450")])
def test_beta_of_the_dhc_at_five_percent_with_and_without_orders_below_1(first: str, known: str) -> None:
    """The least beta that no order of a fine grid excludes, by bisection in 25 digits, against both functions."""
    function = zcdp_beta if first == "1" else zcdp_beta_estimate
    with mpmath.workdps(25):
        alpha, rho, start = mpmath.mpf(1) / 20, mpmath.mpf(24811) / 5000, mpmath.mpf(Fraction(first).numerator)
        start /= Fraction(first).denominator
        orders = [start + mpmath.mpf(k) / 200 for k in range(240)]
        low, high = mpmath.mpf(10) ** -6, mpmath.mpf(1) / 10
        for _ in range(24):
            middle = mpmath.sqrt(low * high)
            low, high = (middle, high) if needed(alpha, middle, orders) > rho else (low, middle)
    assert float(low) == pytest.approx(float(known), abs=1e-6)
    assert function(DHC, "0.05") == pytest.approx(float(low), rel=2e-5)


def test_the_red_curve_of_the_paper_is_the_estimate() -> None:
    """The line in the authors' file of Figure 2, left, read from it vertex by vertex, against both functions."""
    with (Path(__file__).parents[2] / "docs" / "data" / "published_red_curve.csv").open() as file:
        points = [(row["alpha"], float(row["beta"])) for row in csv.DictReader(x for x in file if x[0] != "#")]
    drawn = np.array([beta for _, beta in points])
    assert np.max(np.abs(zcdp_beta_estimate(DHC, [alpha for alpha, _ in points]) - drawn)) < 5e-7
    assert np.max(drawn / zcdp_beta(DHC, [alpha for alpha, _ in points])) > 8


def test_the_estimate_at_the_ends() -> None:
    assert zcdp_beta_estimate(1, [0, 1]).tolist() == [1, 0]
    assert zcdp_beta_estimate(0, "0.3") == 0.7
    assert zcdp_beta_estimate("1e-100", 0.3) == pytest.approx(0.7)
    assert 0 <= zcdp_beta_estimate("1e10", 0.3) < 1e-300
