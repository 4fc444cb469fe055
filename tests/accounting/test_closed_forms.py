"""Any composition: closed forms, another library, and the census's designs."""

from __future__ import annotations

import math
import random
import warnings
from fractions import Fraction

import mpmath
import pytest

import exactdp
from any_cases import (
    NARROW,
    inside,
)
from any_oracle import listed, number, on_grid, sampled
from exactdp import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    RandomizedResponse,
)
from exactdp.widths import WIDE


def _gaussian_delta(mu2: Fraction, e: Fraction) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu, y = mpmath.sqrt(number(mu2)), number(e)
        return mpmath.ncdf(mu / 2 - y / mu) - mpmath.exp(y) * mpmath.ncdf(-mu / 2 - y / mu)


def _check(composition: Composition, e: Fraction, exact: mpmath.mpf, narrow: float = NARROW) -> None:
    low, high = composition.delta_bounds(e)
    assert inside(low, high, exact, mpmath.mpf(10) ** -320), (e, low, high, exact)
    assert high - low <= narrow * high, (e, low, high)


@pytest.mark.parametrize("copies", [1, 7, 1000])
@pytest.mark.parametrize("sigma2", ["1/2", "7.3", "90000"])
def test_copies_of_the_continuous_gaussian(copies: int, sigma2: str) -> None:
    composition = copies * Gaussian(sigma2)
    mu2 = copies / Fraction(sigma2)
    for u in (-1, 0, 2, 8):
        e = Fraction(max(float(mu2) / 2 + u * math.sqrt(mu2), 0)).limit_denominator(1000)
        _check(composition, e, _gaussian_delta(mu2, e))


@pytest.mark.parametrize("copies", [1, 10, 300])
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 50)])
def test_copies_of_randomized_response(copies: int, epsilon: Fraction) -> None:
    composition = copies * RandomizedResponse(epsilon)
    with mpmath.workdps(80):
        growth = mpmath.exp(number(epsilon))
        for share in (Fraction(0), Fraction(1, 10), Fraction(2, 5), Fraction(4, 5)):
            e = share * copies * epsilon  # sometimes exactly at an atom
            exact = mpmath.mpf(0)
            for j in range(copies + 1):
                loss = epsilon * (2 * j - copies)
                if loss > e:
                    mass = math.comb(copies, j) * growth**j / (1 + growth) ** copies
                    exact += mass * -mpmath.expm1(number(e - loss))
            _check(composition, e, exact)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(50)])
def test_the_discrete_laplace_in_closed_form(scale: Fraction) -> None:
    with mpmath.workdps(60):
        a = 1 / scale
        for share in (0, Fraction(1, 3), Fraction(9, 10)):
            e = share * a
            exact = -mpmath.expm1(number(e - a)) / (1 + mpmath.exp(-number(a)))
            _check(Composition([DiscreteLaplace(scale)]), e, exact)
    three = listed({DiscreteLaplace(scale, 4): 3})
    for e in (Fraction(0), 2 / scale, 8 / scale):
        _check(3 * DiscreteLaplace(scale, 4), e, three.worst(e))


@pytest.mark.parametrize("copies", [1, 2, 9, 60])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "0"), ("0.1", "1e-6"), ("2", "0.01")])
def test_copies_of_a_black_box_against_kairouz_oh_viswanath(copies: int, epsilon: str, delta: str) -> None:
    """((k - 2 i) epsilon, 1 - (1 - delta)^k (1 - delta_i)) for every i."""
    composition = copies * ApproximateDP(epsilon, delta)
    with mpmath.workdps(80):
        eps, finite = Fraction(epsilon), number(1 - Fraction(delta)) ** copies
        for i in {0, copies // 4, copies // 2}:
            total = mpmath.fsum(
                math.comb(copies, j)
                * (mpmath.exp(number((copies - j) * eps)) - mpmath.exp(number((copies - 2 * i + j) * eps)))
                for j in range(i)
            )
            own = total / (1 + mpmath.exp(number(eps))) ** copies
            _check(composition, (copies - 2 * i) * eps, 1 - finite * (1 - own))


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "response"])
def test_dp_accounting_within_its_own_error(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("dp_accounting")
        from dp_accounting.pld import privacy_loss_distribution as pld

        step = 1e-4
        theirs, ours = {
            "gaussian": (
                lambda: pld.from_gaussian_mechanism(3.0, value_discretization_interval=step, use_connect_dots=False),
                Gaussian(9),
            ),
            "laplace": (
                lambda: pld.from_discrete_laplace_mechanism(
                    0.5, 2, value_discretization_interval=step, use_connect_dots=False
                ),
                DiscreteLaplace(2, 2),
            ),
            "response": (  # noise over all buckets
                lambda: pld.from_randomized_response(0.4, 4, value_discretization_interval=step),
                RandomizedResponse(noise="0.4", categories=4),
            ),
        }[kind]
        copies = 10
        composed = theirs().self_compose(copies)
        for e in (0.0, 1.0, 2.5):
            peer = float(composed.get_delta_for_epsilon(e))
            low, high = (copies * ours).delta_bounds(e)
            assert low <= peer * (1 + 1e-9)
            # each copy's loss is rounded up by at most one step, and delta falls by at most delta(e) - delta(e + ...)
            shifted = (copies * ours).delta_bounds(Fraction(e) - copies * Fraction(step)).upper
            assert peer <= shifted * (1 + 1e-6) + 1e-12
            assert high <= peer * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize(
    ("name", "epsilon", "value"),
    [
        ("pl94-persons-us", "17.14", 1.410731464021832e-11),
        ("pl94-persons-us", "5", 0.07814194821238378),
        ("pl94-persons-us", "40", 8.072275339923004e-63),
        ("pl94-persons-pr", "17.14", 1.410731454288549e-11),
        ("pl94-persons-pr", "26.34", 6.178440613580467e-27),
    ],
)
def test_the_redistricting_data(name: str, epsilon: str, value: float) -> None:
    low, high = exactdp.census.release(name).pair(1, 1).delta_bounds(epsilon)
    assert low <= value <= high
    assert high - low <= 1e-10 * high


def test_designs_with_noise_given_as_doubles_are_narrow() -> None:
    pair = exactdp.census.release("dhc-persons-us").pair(13, 13)
    rng = random.Random(2020)
    for _ in range(100):
        design = Composition(
            {
                DiscreteGaussian(Fraction(float(m.sigma2) * rng.uniform(0.5, 2)), m.sensitivity): n
                for m, n in pair.discrete_gaussians.items()
            }
        )
        e = round(rng.uniform(1, 40), 3)
        low, high = design.delta_bounds(e)
        assert low > 0
        assert high - low <= 1e-8 * high
    for e in (Fraction(12), Fraction(30)):  # the last one, against estimates that share nothing with it
        log_delta, counts = design.log_delta(e), dict(design.mechanisms)
        assert on_grid(counts, e) == pytest.approx(log_delta, abs=2e-6)
        log_scale, value, error = sampled(counts, e, size=40_000)
        assert abs(math.exp(log_delta - log_scale) - value) <= 6 * error


@pytest.mark.parametrize("epsilon", ["5e-6", "3e-4", "-2e-4", "0.01", "3"])
def test_epsilon_on_a_plateau_of_delta(epsilon: str) -> None:
    """Noise of variance 1/10 at shift 2: near 0 a step of 1e-6 in epsilon moves delta by 3e-15, less than float64 can prove."""
    sigma2, shift, e = Fraction(1, 10), 2, Fraction(epsilon)
    with mpmath.workdps(80):
        mass = {k: mpmath.exp(-number(k * k / (2 * sigma2))) for k in range(-60, 61)}
        total = mpmath.fsum(mass.values())
        loses = [k for k in mass if (shift * shift - 2 * k * shift) / (2 * sigma2) > e and k - shift in mass]
        p = mpmath.fsum(mass[k] for k in loses) / total
        q = mpmath.fsum(mass[k - shift] for k in loses) / total
        delta = Fraction(str(mpmath.nstr(p - mpmath.exp(number(e)) * q, 50)))
        exact = mpmath.log((p - number(delta)) / q)
        low, high = Composition([DiscreteGaussian(sigma2, shift)]).epsilon_bounds(delta)
        assert mpmath.mpf(low) <= exact <= mpmath.mpf(high)
        assert high - low <= WIDE * (abs(exact) + 1e-3)


@pytest.mark.parametrize("quantile", ["-37.5", "-37.9", "-37.94"])
def test_beta_next_to_the_smallest_double(quantile: str) -> None:
    """Where 1 - delta is below e^-700, what scales it stays in the range of doubles, and the bounds hold all the same."""
    mu2 = Fraction(5761)
    with mpmath.workdps(60):
        alpha = Fraction(int(mpmath.ncdf(mpmath.mpf(quantile)) * mpmath.mpf(10) ** 340), 10**340)
        z = mpmath.findroot(lambda x: mpmath.ncdf(x) / number(alpha) - 1, mpmath.mpf(quantile))
        exact = mpmath.ncdf(-z - mpmath.sqrt(number(mu2)))
        low, high = Composition([Gaussian(1 / mu2)]).beta_bounds(alpha)
        assert low <= exact <= high
        assert high - low <= 1e-7 * high + 2e-323
