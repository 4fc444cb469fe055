"""Skellam noise against Bessel functions summed term by term in 60 digits."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from exactdp import Skellam, calibrate, from_json, target, to_json
from exactdp.balls import BITS, precision
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.comparison import other_accounts
from exactdp.guarantees.tightest_mu import tightest_mu
from exactdp.mechanisms.bessel_table import BesselTable
from halves_oracle import ERROR, halves

DIGITS = 60
NOISES = [Skellam(50), Skellam("1/2"), Skellam("7/3", 4), Skellam(60, 5)]
MOMENTS = [Fraction(x) for x in ("0", "-1", "1/2", "-1/2", "3", "-13/4", "60")]


def _number(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@cache
def _pairs(noise: Skellam, reach: int) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """P(X = x) and P(X + D = x) for x = -reach, ..., D + reach, from the definition."""
    with mpmath.workdps(DIGITS + 20):
        v, D = _number(noise.variance), noise.sensitivity
        p = [mpmath.exp(-v) * mpmath.besseli(n, v) for n in range(reach + D + 1)]
        return [(p[abs(x)], p[abs(x - D)]) for x in range(-reach, D + reach + 1)]


def _moment(noise: Skellam, z: Fraction, reach: int) -> mpmath.mpf:
    at = _number(z)
    return mpmath.fsum(p * mpmath.exp(at * mpmath.log(p / q)) for p, q in _pairs(noise, reach))


def _reach(noise: Skellam) -> int:
    return math.ceil(22 * math.sqrt(noise.variance)) + 60 * noise.sensitivity + 50


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_moments_are_those_of_the_definition(noise: Skellam) -> None:
    loss = noise.loss()
    assert loss.reversed() is loss
    with mpmath.workdps(DIGITS):
        for z in MOMENTS:
            exact = mpmath.log(_moment(noise, z, _reach(noise)))
            with precision(BITS):
                found = loss.log_moment(z)
                assert abs(mpmath.mpf(found.mid().str(55, radius=False)) - exact) <= 1e-44 * (1 + abs(exact))
                assert float(found.rad()) <= 1e-44 * float(1 + abs(exact))
            assert exact <= loss.log_moment_upper(float(z)) <= exact + 1e-11 * (1 + abs(exact))


@pytest.mark.parametrize("z", [-0.5, 0.0, 0.25, 2.0, 6.0])
@pytest.mark.parametrize(
    ("noise", "reach"), [(Skellam(4), 11), (Skellam("1/2", 3), 12), (Skellam(100, 5), 90)], ids=str
)
def test_what_is_beyond_a_table(noise: Skellam, reach: int, z: float) -> None:
    """The bound of Theorem K2 holds, and it is not vacuous: for small z it is the geometric series of the first two terms."""
    table = BesselTable(noise.variance, noise.sensitivity, reach)
    bound = table.log_beyond(z)
    with mpmath.workdps(DIGITS):
        wide = _pairs(noise, reach + 120)
        outside = [*wide[:120], *wide[-120:]]
        exact = mpmath.log(mpmath.fsum(p * (p / q) ** z for p, q in outside))
        assert exact <= bound
        if z <= 0.25:
            assert bound < exact + 0.4


def test_steps_and_bends_of_the_probabilities() -> None:
    """Lemma K1: g rises, asinh(n / V) <= g(n) <= asinh((n + 1) / V), and its growth over D steps is below the bound."""
    for variance, D in ((Fraction(1, 2), 1), (Fraction(30), 1), (Fraction(30), 7)):
        p = [float(b[0].mid()) for b in BesselTable(variance, 1, 80).balls[80:]]
        g = -np.diff(p)
        assert np.all(np.diff(g) > 0)
        n, v = np.arange(len(g)), float(variance)
        assert np.all(np.arcsinh(n / v) < g)
        assert np.all(g < np.arcsinh((n + 1) / v))
        for m in (0, 1, 5, 40):
            table = BesselTable(variance, D, m)
            assert table.step <= g[m] <= table.step * (1 + 1e-9)
            growths = g[m + D : len(g)] - g[m : len(g) - D]
            assert growths.max() <= table.bend <= 2.1 * growths.max()


@pytest.mark.parametrize("noise", [Skellam(1), Skellam("1/2", 3), Skellam(30)], ids=str)
def test_moments_of_high_orders_are_bounded(noise: Skellam) -> None:
    """Theorem K4 at orders that a table serves as well."""
    loss = noise.loss()
    for z in (1.0, 20.0, 300.0):
        exact, bound = loss.log_moment_upper(z), loss._log_moment_far(z)  # type: ignore[attr-defined]
        assert exact <= bound <= 1.6 * exact + 4 * z * noise.sensitivity


def test_one_mechanism_alone() -> None:
    for noise in (Skellam(9), Skellam("1/5"), Skellam(40, 6)):
        with mpmath.workdps(DIGITS):
            pairs = _pairs(noise, 160)
            for e in ("0", "0.1", "0.7", "2", "3.5"):
                factor = mpmath.exp(mpmath.mpf(e))
                exact = mpmath.fsum(p - factor * q for p, q in pairs if p > factor * q)
                bounds = noise.delta_bounds(e)
                assert bounds.lower <= exact <= bounds.upper <= bounds.lower * (1 + 1e-13)


@pytest.mark.parametrize(
    ("noise", "reach", "copies"), [(Skellam(9), 110, 2), (Skellam(4, 3), 85, 2), (Skellam("1/2"), 52, 3)], ids=str
)
def test_copies_against_halves(noise: Skellam, reach: int, copies: int) -> None:
    truth = halves([(_pairs(noise, reach), copies)])
    composition, rng = noise * copies, random.Random(copies)
    top = composition.epsilon(1e-80)
    asked = [Fraction(round(rng.uniform(0, top), 6)) for _ in range(4)]
    for e in asked:
        exact = truth.delta(e)
        assert exact > ERROR * 10**12
        bounds = composition.delta_bounds(e)
        assert bounds.lower <= exact * (1 + mpmath.mpf(10) ** -30)
        assert exact <= bounds.upper * (1 + mpmath.mpf(10) ** -30)
        assert bounds.upper <= bounds.lower * (1 + 1e-7)


def test_fifty_copies() -> None:
    for delta in ("1e-3", "1e-100"):
        epsilon = (50 * Skellam(50)).epsilon_bounds(delta)
        assert epsilon.upper - epsilon.lower < 1e-8 * epsilon.upper
        found = (50 * Skellam(50)).delta_bounds(epsilon.upper)
        assert found.lower <= float(delta) * (1 + 1e-9)
        assert found.upper - found.lower < 1e-6 * found.upper
    assert "losses split on a grid" in str((50 * Skellam(50)).explain(3))


def test_a_larger_difference_is_worse() -> None:
    one, two, three = (Skellam(20, d).delta_bounds("0.8") for d in (1, 2, 3))
    assert one.upper < two.lower
    assert two.upper < three.lower


def test_probabilities_and_tails() -> None:
    noise = Skellam("25/2")
    with mpmath.workdps(40):
        v = mpmath.mpf(25) / 2
        for x in (0, -3, 7, 60):
            assert noise.pmf(x) == pytest.approx(float(mpmath.exp(-v) * mpmath.besseli(x, v)), rel=1e-14)
        for x in (-2, 0, 1, 5, 80):
            exact = mpmath.fsum(mpmath.exp(-v) * mpmath.besseli(n, v) for n in range(x, x + 150))
            assert noise.tail(x) == pytest.approx(float(exact), rel=1e-13)
    assert noise.tail(10**6) == 0


def test_a_tilt_out_of_reach_is_refused_and_its_moment_bounded() -> None:
    loss = Skellam(1).loss()
    with pytest.raises(AccuracyError, match="out of reach at so large a tilt"):
        loss.tilted(Fraction(10**9))
    bounds = Skellam(1).delta_bounds(100)  # beyond every table
    assert 0 <= bounds.lower <= bounds.upper < 1e-300


def test_no_mu_is_claimed() -> None:
    with pytest.raises(AccuracyError, match="No mu is proved for Skellam noise"):
        tightest_mu(2 * Skellam(9))
    assert other_accounts(Skellam(9).rho, "delta", "1e-6") == dict.fromkeys(
        ("zcdp_optimal", "zcdp_simple", "gaussian"), math.inf
    )


def test_calibrated_and_written() -> None:
    found = calibrate(Skellam(1), target(epsilon=1, delta="1e-6"), grid=1).composition
    (noise,) = found.mechanisms
    assert isinstance(noise, Skellam)
    assert found.delta_bounds(1).upper <= 1e-6 < Skellam(noise.variance - 1).delta_bounds(1).lower
    assert from_json(to_json(found)) == found
    assert str(Skellam("5/2", 3)) == "Skellam('5/2', sensitivity=3)"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0,), "variance must be positive. Found 0"),
        (("1e7",), "variance must be between 0.001 and 1e\\+06 for Skellam noise .* Found 1e7"),
        ((1, 5000), "sensitivity must be at most 4096. Found 5000"),
        (("1/100", 11), "sensitivity / variance must be at most 1000 .* Found 11 / 1/100"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        Skellam(*arguments)  # type: ignore[arg-type]
