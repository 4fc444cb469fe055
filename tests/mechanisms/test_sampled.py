"""Sampled Gaussians and mixtures against an oracle that shares no code (sampled_oracle.py), and every inequality of theirs."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

import sampled_oracle as oracle
from exactdp import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianMixture,
    Outcomes,
    PoissonSampled,
    RandomizedResponse,
    from_json,
    to_json,
)
from exactdp.balls import BITS, precision
from exactdp.errors import InvalidInputError
from exactdp.mechanisms import gaussian_mixture_loss, rule_table, trapezoidal_rule
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss, TiltedMixture
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.trapezoidal_rule import Mixture
from halves_oracle import halves
from left_out import logs_of_left_out

NARROW = 1e-9


def _assert_holds(bounds: tuple[float, float], exact: mpmath.mpf, width: float = NARROW) -> None:
    slack = abs(exact) * mpmath.mpf(10) ** -14
    assert bounds[0] <= exact + slack
    assert exact - slack <= bounds[1]
    assert bounds[1] - bounds[0] <= width * bounds[1]


def _one_direction(mechanism: Mechanism, steps: int, epsilon: Fraction, backward: bool) -> tuple[float, float]:
    found = (mechanism * steps)._answers._directions[int(backward)].point([epsilon]).delta
    return float(found.lower_floats()[0]), float(found.upper_floats()[0])


@pytest.mark.parametrize(
    ("sigma", "backward", "expected"),
    [
        (2, False, "3.9918495472522e-10"),
        (2, True, "6.331298510026e-12"),
        (3, False, "1.58208979702e-20"),
        (3, True, "1.729011160e-24"),
    ],
)
def test_a_thousand_steps_of_sgd(sigma: int, backward: bool, expected: str) -> None:
    """Rate 0.01, epsilon 1: digits of a prototype in another arithmetic on another contour."""
    low, high = _one_direction(PoissonSampled(Gaussian(sigma**2), "0.01"), 1000, Fraction(1), backward)
    assert low * (1 - 1e-9) <= float(expected) <= high * (1 + 1e-9)  # of which ten digits are printed
    assert (low + high) / 2 == pytest.approx(float(expected), rel=2e-10)
    assert high - low <= 1e-11 * high
    if not backward:
        bounds = (PoissonSampled(Gaussian(sigma**2), "0.01") * 1000).delta_bounds(1)
        assert low <= bounds.upper
        assert bounds.lower <= high


CASES = [  # sigma2 with a dyadic root, rate, steps, epsilon, direction, delta by `oracle.delta`: see the soak test below
    ("4", "1/64", 1000, "1/2", False, "0.004024156806830229"),
    ("4", "1/64", 1000, "1", False, "1.216076124680231e-5"),
    ("4", "1/64", 1000, "2", False, "4.729656291219501e-14"),
    ("4", "1/64", 1000, "1/2", True, "0.003285422714525295"),
    ("1/4", "1/16", 200, "8", False, "0.2123663919610357"),
    ("1/4", "1/16", 200, "30", False, "9.313057327457737e-6"),
    ("1/4", "1/16", 200, "8", True, "0.0001098032963354777"),
    ("1", "1/256", 3000, "1", False, "4.781017478178772e-5"),
    ("1", "1/256", 3000, "4", False, "5.111155330695558e-18"),
    ("1", "1/256", 3000, "1", True, "6.456827122957924e-6"),
]


@pytest.mark.parametrize(("sigma2", "rate", "steps", "epsilon", "backward", "exact"), CASES)
def test_many_steps_against_the_oracle(
    sigma2: str, rate: str, steps: int, epsilon: str, backward: bool, exact: str
) -> None:
    mechanism = PoissonSampled(Gaussian(sigma2), rate)
    _assert_holds(_one_direction(mechanism, steps, Fraction(epsilon), backward), mpmath.mpf(exact))


@pytest.mark.soak
@pytest.mark.parametrize(("sigma2", "rate", "steps", "epsilon", "backward", "exact"), CASES)
def test_the_oracle_gives_these_values(
    sigma2: str, rate: str, steps: int, epsilon: str, backward: bool, exact: str
) -> None:
    q, m = Fraction(rate), 1 / math.sqrt(Fraction(sigma2))
    mixture = oracle.Mixture((float(1 - q), float(q)), (0.0, m))
    found = oracle.delta(mixture, steps, [float(Fraction(epsilon))], backward)[0]
    assert abs(found / mpmath.mpf(exact) - 1) < 1e-14


def test_one_step_against_normal_tails() -> None:
    rng = random.Random(22)
    for _ in range(12):
        m, q = 2.0 ** rng.uniform(-2, 1), Fraction(rng.randint(1, 500), 1024)
        backward = rng.random() < 0.4
        sigma2 = 1 / Fraction(m) ** 2
        top = -math.log(1 - q) if backward else math.log1p(q * math.expm1(m * 4))
        epsilon = Fraction(rng.uniform(0.05, 0.9) * top)
        exact = oracle.one_step(
            oracle.Mixture((float(1 - q), float(q)), (0.0, m)), mpmath.mpf(float(epsilon)), backward
        )
        bounds = _one_direction(PoissonSampled(Gaussian(sigma2), q), 1, epsilon, backward)
        _assert_holds(bounds, exact, 1e-6)


@pytest.mark.soak
@pytest.mark.parametrize("backward", [False, True])
def test_two_steps_against_an_integral(backward: bool) -> None:
    exact = oracle.two_steps(oracle.Mixture((0.75, 0.25), (0.0, 1.0)), mpmath.mpf("0.25"), backward)
    low, high = _one_direction(PoissonSampled(Gaussian(1), "1/4"), 2, Fraction(1, 4), backward)
    assert abs((low + high) / 2 / exact - 1) < 1e-5


def test_few_steps_of_sampled_discrete_noise_against_all_values() -> None:
    """Three steps of a sampled discrete Gaussian are a table: every value in 160 digits."""
    mechanism = PoissonSampled(DiscreteGaussian(2), "1/10")
    with mpmath.workdps(180):
        weights = {x: mpmath.exp(-mpmath.mpf(x * x) / 4) for x in range(-42, 43)}
        total = mpmath.fsum(weights.values())
        without = [weights[x] / total for x in range(-41, 43)]
        shifted = [weights[x - 1] / total for x in range(-41, 43)]
        pairs = [((9 * b + a) / 10, b) for a, b in zip(shifted, without, strict=True)]
    for backward in (False, True):
        truth = halves([([(q, p) for p, q in pairs] if backward else pairs, 3)])
        for e in ("0.05", "0.2", "0.3") if backward else ("0.05", "1", "6.5"):
            exact = truth.delta(Fraction(e))
            low, high = _one_direction(mechanism, 3, Fraction(e), backward)
            assert low <= exact * (1 + mpmath.mpf(10) ** -30)
            assert exact <= high * (1 + mpmath.mpf(10) ** -30)
            assert high - low <= 1e-7 * high


def test_a_mixture_of_several_gaussians_against_the_oracle() -> None:
    mixture = GaussianMixture(1, [0, "1/2", "3/2"], ["1/2", "3/8", "1/8"])
    exact = mpmath.mpf(
        "0.2865237480290969"
    )  # oracle.delta(Mixture((0.5, 0.375, 0.125), (0.0, 0.5, 1.5)), 60, [6.0], False)
    _assert_holds(_one_direction(mixture, 60, Fraction(6), False), exact)


def test_several_records_are_a_binomial_mixture() -> None:
    several = PoissonSampled(Gaussian(4), "1/10", records=2) * 100
    mixture = GaussianMixture(4, [0, 1, 2], ["81/100", "18/100", "1/100"]) * 100
    assert several.delta_bounds(1) == mixture.delta_bounds(1)
    assert several.delta_bounds(1).lower > (PoissonSampled(Gaussian(4), "1/10") * 100).delta_bounds(1).upper


def test_a_rate_of_one_is_the_mechanism_itself() -> None:
    for base in (
        Gaussian(4),
        DiscreteGaussian(4),
        DiscreteLaplace(2),
        Outcomes(["2/3", "1/3", 0], ["1/3", "1/3", "1/3"]),
    ):
        one, two = ((m * 6).delta_bounds("0.7") for m in (PoissonSampled(base, 1), base))
        assert one.lower <= two.upper
        assert two.lower <= one.upper


@pytest.mark.parametrize("epsilon", [-3, 10, 100, 300])
def test_a_ratio_far_below_a_unit_of_rounding_keeps_its_digits(epsilon: int) -> None:
    """f = e^{8x - 32} is e^{-120} where the loss of two copies is decided; so it is with a vanishing weight at 0."""
    exact = (Gaussian(1, 8) * 2).delta_bounds(epsilon)
    alone, hardly = GaussianMixture(1, [8], [1]), GaussianMixture(1, [0, 8], ["1e-150", 1 - Fraction(1, 10**150)])
    for mechanism in (alone, hardly, PoissonSampled(Gaussian(1, 8), 1)):
        found = (mechanism * 2).delta_bounds(epsilon)
        assert found.lower <= exact.upper * (1 + 1e-100)
        assert exact.lower <= found.upper
        assert found.upper - found.lower <= NARROW * found.upper


def test_moments_of_mixtures_without_a_component_at_zero() -> None:
    weights, squares = (Fraction(1, 2), Fraction(1, 2)), (Fraction(25), Fraction(100))
    mixture = Mixture(weights, squares)
    for rho in (-8.0, -1.0, -0.3, 0.5, 2.0):
        with mpmath.workdps(40):
            terms = [
                mpmath.exp(-x * x / 2) * (mpmath.exp(5 * x - 12.5) / 2 + mpmath.exp(10 * x - 50) / 2) ** rho
                for x in mpmath.arange(-90, 60, mpmath.mpf(1) / 16)
            ]
            exact = mpmath.log(mpmath.fsum(terms) / 16 / mpmath.sqrt(2 * mpmath.pi))
        estimate, upper = mixture.log_moment(rho)
        assert abs(estimate - exact) < 1e-9
        assert exact <= upper <= exact + 1e-9


def test_one_step_with_hardly_any_noise() -> None:
    found = (PoissonSampled(Gaussian("1e-4"), "0.5") * 1).delta_bounds(5)
    assert 0.5 - 1e-12 < found.lower <= found.upper < 0.5 + 1e-12


def test_bounds_are_numbers_where_one_direction_has_ended_and_the_other_underflows() -> None:
    sampled = PoissonSampled(Gaussian(1), "0.01")
    for steps in (1, 2):
        found = (sampled * steps).delta_bounds(60)
        assert found == (0.0, 5e-324)
        low, high = (sampled * steps).log_delta_bounds(60)
        assert -5000 < low <= high < -600


def test_sampled_outcomes_are_outcomes() -> None:
    p, q, r = (
        [Fraction(1, 2), Fraction(3, 8), Fraction(1, 8), Fraction(0)],
        [Fraction(x, 8) for x in (1, 3, 0, 4)],
        Fraction(1, 5),
    )
    mixed = Outcomes([(1 - r) * b + r * a for a, b in zip(p, q, strict=True)], q) * 4
    sampled = PoissonSampled(Outcomes(p, q), r) * 4
    for epsilon in ("0", "0.1", "0.4", "-0.2"):
        one, two = mixed.delta_bounds(epsilon), sampled.delta_bounds(epsilon)
        assert one.upper == pytest.approx(two.upper, rel=1e-10)
        assert one.lower <= two.upper
        assert two.lower <= one.upper


def test_a_sampled_discrete_gaussian_against_its_sum() -> None:
    s, q, reach = Fraction(3), Fraction(1, 8), 60
    with mpmath.workdps(40):
        total = mpmath.fsum(mpmath.exp(-mpmath.mpf(k * k) / 6) for k in range(-reach, reach + 1))
        mass = {k: mpmath.exp(-mpmath.mpf(k * k) / 6) / total for k in range(-reach, reach + 1)}
        pairs = [((1 - mpmath.mpf(1) / 8) * mass[k] + mass.get(k - 1, 0) / 8, mass[k]) for k in mass]
        for backward in (False, True):
            sides = [(b, a) if backward else (a, b) for a, b in pairs]
            epsilon = Fraction(1, 16)
            growth = mpmath.exp(mpmath.mpf(1) / 16)
            exact = mpmath.fsum(
                max(a * c - growth * b * d, 0) for a, b in sides if a > 1e-25 for c, d in sides if c > 1e-25
            )
            bounds = _one_direction(PoissonSampled(DiscreteGaussian(s), q), 2, epsilon, backward)
            _assert_holds(bounds, exact, 1e-4)


def _mixture(m: float, q: float) -> tuple[Mixture, oracle.Mixture]:
    exact = Fraction(q)
    return Mixture((1 - exact, exact), (Fraction(0), Fraction(m) ** 2)), oracle.Mixture((1 - q, q), (0.0, m))


@cache
def _moment(mixture: oracle.Mixture, rho: float, kappa: float) -> mpmath.mpc:
    """E f^(rho + i kappa) by Gauss-Legendre, in 40 digits."""
    with mpmath.workdps(40):
        m, q = mixture.means[1], mixture.weights[1]
        power = mpmath.mpc(rho, kappa)

        def integrand(x: mpmath.mpf) -> mpmath.mpc:
            ratio = 1 - q + q * mpmath.exp(m * x - mpmath.mpf(m) ** 2 / 2)
            return mpmath.exp(power * mpmath.log(ratio) - x * x / 2) / mpmath.sqrt(2 * mpmath.pi)

        ends = mpmath.linspace(-14, 14 + max(rho, 0) * m, 12 + int(abs(kappa) * m))
        return mpmath.quad(integrand, ends, maxdegree=4, method="gauss-legendre")


@pytest.mark.parametrize(
    ("m", "q", "rho", "kappa", "shift"),
    [
        (1.0, 0.25, 3.0, 0.0, 0.0),
        (1.0, 0.25, 3.0, 5.0, 0.0),
        (2.0, 0.5, -6.0, 2.0, 0.0),
        (2.0, 0.5, -60.0, 0.0, 0.0),
        (1.0, 0.25, 3.0, 9.0, 0.75),
    ],
)
def test_the_error_of_the_rule(
    monkeypatch: pytest.MonkeyPatch, m: float, q: float, rho: float, kappa: float, shift: float
) -> None:
    """With a coarse step the error is seen, within its bound, and the bound is not far above it (Theorem S4)."""
    worst = 0.0
    for digits in (1.0, 2.0, 3.0, 4.0, 6.0):
        monkeypatch.setattr(trapezoidal_rule, "DIGITS", digits)
        mixture, other = _mixture(m, q)
        rule = mixture.rule(rho, kappa, shift)
        points = mixture.points(rho, rule)
        x = points.x + 1j * shift
        terms = np.exp((rho + 1j * kappa) * points.losses - 0.5 * x * x) * rule.step / math.sqrt(2 * math.pi)
        error = abs(complex(_moment(other, rho, kappa)) - terms.sum()) / float(_moment(other, rho, 0.0).real)
        assert error <= math.exp(rule.log_error) + 1e-12
        worst = max(worst, error / math.exp(rule.log_error))
    assert worst > (1e-3 if kappa == 0 else 1e-7) or rho < -10  # the zero of f is bounded generously


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("m", "q", "tilt"), [(0.5, 0.25, 3.0), (2.0, 1 / 64, 1.5)])
def test_the_decay_bound_holds_and_is_not_vacuous(m: float, q: float, tilt: float, backward: bool) -> None:
    """|cf| at every frequency from omega on is at most e^log_decay(omega) (Theorem S5)."""
    mixture, other = _mixture(m, q)
    tilted = MixtureLoss(mixture, backward).tilted(Fraction(tilt))
    rho = -tilt if backward else tilt + 1
    base = _moment(other, rho, 0.0).real
    sizes = {k: float(abs(_moment(other, rho, k)) / base) for k in (1.0, 4.0, 16.0, 40.0)}
    for omega in sizes:
        bound = math.exp(tilted.log_decay(omega))
        assert all(later <= bound * (1 + 1e-9) for k, later in sizes.items() if k >= omega)
        assert bound <= 1
    assert math.exp(tilted.log_decay(40.0)) < 0.92


@pytest.mark.parametrize("kind", ["real", "plain", "even"])
@pytest.mark.parametrize("backward", [False, True])
def test_the_characteristic_function_and_its_error(monkeypatch: pytest.MonkeyPatch, kind: str, backward: bool) -> None:
    """Each way of summing, at single frequencies, within the stated relative error, which is small."""
    if kind != "real":
        monkeypatch.setattr(gaussian_mixture_loss, "_LONGEST_REAL", 1)
    if kind == "even":
        monkeypatch.setattr(rule_table, "_MANY", 2)
    mixture, other = _mixture(1.0, 0.25)
    tilted = MixtureLoss(mixture, backward).tilted(Fraction(5, 2))
    assert isinstance(tilted, TiltedMixture)
    omega = np.array([0.0, 0.125, 1.0, 6.0, 12.0, 20.0]) if kind != "even" else 9.0 + np.arange(256) / 16
    logs, relative = tilted.log_cf(np.zeros((0, len(omega))), omega)
    rho = -2.5 if backward else 3.5
    with precision(BITS):
        anchor = float(tilted.anchor.mid())
    for i in range(0, len(omega), 1 if kind != "even" else 85):
        value = _moment(other, rho, float(omega[i])) / _moment(other, rho, 0.0).real
        value = (mpmath.conj(value) if backward else value) * mpmath.exp(-1j * mpmath.mpf(float(omega[i])) * anchor)
        found = mpmath.exp(mpmath.mpc(complex(logs[i])))
        assert abs(found - value) <= float(relative[i]) * abs(value) + 1e-16
        assert relative[i] * abs(value) < 1e-12


def test_the_upper_bound_of_moments() -> None:
    mixture, other = _mixture(1.0, 0.25)
    for rho in (-30.0, -1.5, 0.3, 0.9, 2.0, 25.0):
        exact = float(mpmath.log(_moment(other, rho, 0.0).real))
        for backward in (False, True):
            upper = MixtureLoss(mixture, backward).log_moment_upper(-rho if backward else rho - 1)
            assert exact <= upper <= exact + 1e-10 * (1 + abs(exact))
        assert exact <= mixture.log_moment_convex(rho)
    huge = MixtureLoss(mixture).log_moment_upper(1e7)  # beyond the reach of a rule: convexity
    assert huge >= 1e7 * math.log(0.25) + (1e7 + 1) * 1e7 / 2


def test_the_moment_ball_holds_the_moment() -> None:
    mixture, other = _mixture(1.0, 0.25)
    for backward in (False, True):
        loss = MixtureLoss(mixture, backward)
        for z in (Fraction(5, 2), Fraction(3, 8), Fraction(-1), Fraction(0)):
            rho = float(-z if backward else z + 1)
            with precision(BITS), mpmath.workdps(40):
                found = loss.log_moment(z)
                exact = mpmath.log(_moment(other, rho, 0.0).real)
                assert abs(mpmath.mpf(found.mid().str(40, radius=False)) - exact) <= float(found.rad()) + 1e-20
                assert float(found.rad()) < 1e-22


REFUSED = [
    (lambda: PoissonSampled(Gaussian(1), 0), "rate must be at least 1e-09 .* Found 0"),
    (lambda: PoissonSampled(Gaussian(1), "1.5"), "at most 1. Found 1.5"),
    (lambda: PoissonSampled(RandomizedResponse(1), "0.1"), "PoissonSampled takes .* Found RandomizedResponse"),
    (lambda: PoissonSampled(DiscreteGaussian(1), "0.1", 2), "sampled Gaussian only. Found records=2"),
    (lambda: PoissonSampled(Gaussian("1e-5"), "0.1"), "protects nothing"),
    (lambda: GaussianMixture(1, [0, 1], ["1/2"]), "same length. Found 2 and 1"),
    (lambda: GaussianMixture(1, [0, 1], ["1/2", "1/3"]), "add up to exactly 1. Found the sum 5/6"),
    (lambda: GaussianMixture(1, [0, -1], ["1/2", "1/2"]), r"sensitivities\[1\] must not be negative. Found -1"),
    (lambda: GaussianMixture(1, [0], [1]), "Found 0 with sigma2 1"),
    (lambda: GaussianMixture(1, "01", ["1/2", "1/2"]), "sensitivities must be a list of numbers. Found 01"),
    (lambda: GaussianMixture(0, [1], [1]), "sigma2 must be positive"),
]


@pytest.mark.parametrize(("make", "text"), REFUSED)
def test_bad_input_is_refused(make: object, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    "mechanism",
    [
        PoissonSampled(Gaussian(4), "0.01"),
        PoissonSampled(Gaussian(4), "0.01", records=3),
        PoissonSampled(ApproximateDP(1, "1e-6"), "1/3"),
        GaussianMixture(2, [0, 1, 2], ["1/2", "1/4", "1/4"]),
    ],
    ids=str,
)
def test_mechanisms_survive_writing(mechanism: Mechanism) -> None:
    assert from_json(to_json(mechanism)) == mechanism
    assert from_json(to_json(Composition([mechanism]))) == Composition([mechanism])
    assert eval(str(mechanism)) == mechanism  # what is printed makes the mechanism again


@pytest.mark.parametrize("rho", [4.0, -4.0])
def test_what_the_range_leaves_out(monkeypatch: pytest.MonkeyPatch, rho: float) -> None:
    left_out, bound = logs_of_left_out(monkeypatch, _mixture(1.0, 0.25)[0], rho, 3.0)
    assert -math.inf < left_out <= bound <= left_out + math.log(8)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("omega", [0.5, 1.0, 2.0])
def test_the_decay_of_one_gaussian_alone_is_attained(omega: float, backward: bool) -> None:
    """With one component log f is linear, |cf| = e^{-m^2 om^2 / 2}, and a shift of m om makes Theorem S5 an equality."""
    alone = Mixture((Fraction(1),), (Fraction(1, 4),))
    bound = MixtureLoss(alone, backward).tilted(Fraction(3, 2)).log_decay(omega)
    exact = -(omega**2) / 8
    assert exact * (1 + 1e-9) <= bound <= 0.9 * exact


@pytest.mark.parametrize("rho", [2.5, -1.5])
def test_all_terms_beyond_the_range_are_counted(rho: float) -> None:
    """All terms beyond the range, many of them where the step is short, are within the bound."""
    mixture, _ = _mixture(1.0, 0.25)
    rule = replace(mixture.rule(rho, 0.0), step=1 / 256)
    points = mixture.points(rho, rule)
    far = np.concatenate([points.x[-1] + np.arange(1, 2000) / 256, points.x[0] - np.arange(1, 2000) / 256])
    logs = rho * mixture.losses(far).real - far * far / 2 - math.log(256 * math.sqrt(2 * math.pi))
    left_out = float(np.logaddexp.reduce(logs))
    assert left_out <= points.log_left_out < left_out + 1
