from __future__ import annotations

import cmath
import math
from fractions import Fraction
from functools import cache

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactdp
from exactdp import DiscreteGaussian

NOISES = ["1/100", "1/10", "0.2", "0.2499", "0.25", "0.4", "1/2", "1", "3.7", "60"]


@cache
def _probabilities(sigma2: str) -> dict[int, mpmath.mpf]:
    """By the definition, in 60 digits."""
    s = Fraction(sigma2)
    reach = math.isqrt(math.ceil(300 * s)) + 4 + math.ceil(3 * s)
    with mpmath.workdps(60):
        side = [mpmath.exp(-mpmath.mpf(x * x) * s.denominator / (2 * s.numerator)) for x in range(reach + 1)]
        total = 2 * mpmath.fsum(side) - side[0]
        return {x: side[abs(x)] / total for x in range(-reach, reach + 1)}


def _direct(sigma2: str, function: object) -> mpmath.mpc:
    """E function(X) term by term in 60 digits."""
    with mpmath.workdps(60):
        return mpmath.fsum(p * function(x) for x, p in _probabilities(sigma2).items())  # type: ignore[operator]


@pytest.mark.parametrize("sigma2", NOISES)
def test_pmf_tails_and_characteristic_function(sigma2: str) -> None:
    noise = DiscreteGaussian(sigma2)
    for x in (0, 1, -1, 2, 7):
        exact = _direct(sigma2, lambda y, x=x: 1 if y == x else 0)
        if exact > 1e-280:
            assert noise.pmf(x) == pytest.approx(float(exact), rel=1e-13)
        exact = _direct(sigma2, lambda y, x=x: 1 if y >= x else 0)
        if exact > 1e-280:
            assert noise.tail(x) == pytest.approx(float(exact), rel=1e-13)
            assert math.log(noise.tail(x)) <= noise.log_tail_bound(x) + 1e-15
    for omega in (0.0, 0.3, 1.5, 3.1415, -2.0, 7.0):
        exact = _direct(sigma2, lambda y, o=omega: mpmath.cos(mpmath.mpf(o) * y))
        assert noise.cf(omega) == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("sigma2", NOISES)
def test_log_moment_at_complex_arguments(sigma2: str) -> None:
    noise = DiscreteGaussian(sigma2)
    for z in (0.0, 0.7, -2.5, 0.3 + 1j, 1.7 - 2.9j, 0.1 + 9j):
        exact = complex(_direct(sigma2, lambda y, z=z: mpmath.exp(mpmath.mpmathify(z) * y)))
        assert cmath.exp(noise.log_moment(z)) == pytest.approx(exact, rel=1e-11)
        assert noise.log_moment(complex(z).real).real <= noise.log_mgf_bound(complex(z).real) + 1e-14


@pytest.mark.parametrize("sigma2", NOISES)
def test_cumulants(sigma2: str) -> None:
    noise = DiscreteGaussian(sigma2)
    second = float(_direct(sigma2, lambda y: y * y))
    fourth = float(_direct(sigma2, lambda y: y**4) - 3 * _direct(sigma2, lambda y: y * y) ** 2)
    assert noise.variance == pytest.approx(second, rel=1e-13)
    assert noise.cumulant(4) == pytest.approx(fourth, rel=1e-11)
    assert noise.cumulant(3) == 0.0


def test_published_fourth_cumulants() -> None:
    """lambda_4 = kappa_4 / kappa_2^2 as the paper's Section 6 lists it."""
    for sigma2, expected in [
        ("0.1", 72.21),
        ("0.2", 4.12),
        ("0.4", 0.19),
        ("1", 8.34e-6),
        ("2", 8.92e-14),
        ("4", 2.55e-30),
    ]:
        noise = DiscreteGaussian(sigma2)
        assert noise.cumulant(4) / noise.variance**2 == pytest.approx(expected, rel=6e-3)


@given(st.fractions(min_value=Fraction(1, 20), max_value=100, max_denominator=40))
def test_total_mass_is_one(sigma2: Fraction) -> None:
    noise = DiscreteGaussian(sigma2)
    reach = math.isqrt(math.ceil(80 * sigma2)) + 2
    assert math.fsum(noise.pmf(x) for x in range(-reach, reach + 1)) == pytest.approx(1, abs=1e-14)


def test_bad_mechanisms() -> None:
    with pytest.raises(exactdp.InvalidInputError, match=r"sigma2 must be positive. Found -1/7."):
        DiscreteGaussian("-1/7")
    with pytest.raises(exactdp.InvalidInputError, match=r"sensitivity must be a whole number of at least 1\. Found 0"):
        DiscreteGaussian(1, 0)
    with pytest.raises(exactdp.InvalidInputError, match="sensitivity must be at most"):
        DiscreteGaussian(1, 2**40)
    with pytest.raises(exactdp.InvalidInputError, match=r"sigma2 must be between 0.001"):
        DiscreteGaussian("1e-9")


def test_rho_is_exact() -> None:
    assert DiscreteGaussian("10/3", 2).rho == Fraction(3, 5)
