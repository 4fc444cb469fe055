"""Labelled steps of sampled mechanisms (docs/theory/smooth.md, section 4): every inequality, and sums over numbers of large steps
against integrals that use no transform."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from flint import acb, arb

import sampled_oracle as oracle
from exactdp import Gaussian, Outcomes, PoissonSampled
from exactdp.balls import BITS, precision
from exactdp.engine.line import large_steps
from exactdp.engine.line.large_steps import Labelled, LargeSteps, label_steps
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.mechanisms import trapezoidal_rule
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.step_labels import StepLabel
from exactdp.mechanisms.trapezoidal_rule import Mixture
from left_out import logs_of_left_out

LABELS = [
    StepLabel(1.5, 0.25, False),
    StepLabel(1.5, 0.25, True),
]


def _mixture(m: float, q: float, label: StepLabel | None = None) -> Mixture:
    return Mixture((1 - Fraction(q), Fraction(q)), (Fraction(0), Fraction(m) ** 2), label=label)


def _share(label: StepLabel, x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.ncdf((x - label.cut) / label.width * (1 if label.is_large else -1))


@cache
def _moment(m: float, q: float, label: StepLabel, rho: float, kappa: float) -> mpmath.mpc:
    """E w f^(rho + i kappa) by Gauss-Legendre, in 40 digits."""
    with mpmath.workdps(40):

        def integrand(x: mpmath.mpf) -> mpmath.mpc:
            ratio = 1 - q + q * mpmath.exp(m * x - mpmath.mpf(m) ** 2 / 2)
            power = mpmath.mpc(rho, kappa) * mpmath.log(ratio) - x * x / 2
            return _share(label, x) * mpmath.exp(power) / mpmath.sqrt(2 * mpmath.pi)

        ends = mpmath.linspace(-14, 14 + max(rho, 0) * m, 40 + int(abs(kappa) * m))
        return mpmath.quad(integrand, ends, maxdegree=4, method="gauss-legendre")


@pytest.mark.parametrize("label", LABELS)
def test_the_probability_of_a_label(label: StepLabel) -> None:
    for x in (-30.0, -2.0, 0.5, 1.125, 1.25, 3.0, 20.0):
        with mpmath.workdps(500):
            exact = mpmath.log(_share(label, mpmath.mpf(x)))
        assert abs(float(label.logs(np.array([x]))[0]) - float(exact)) <= 1e-13 * (1 + abs(float(exact)))
        with precision(BITS):
            assert abs(float((label.ball(arb(x)).log() - arb(float(exact))).mid())) <= 1e-13 * (1 + abs(float(exact)))


@pytest.mark.parametrize("label", LABELS)
def test_a_label_off_the_real_line(label: StepLabel) -> None:
    """|w(u + iy)| is at most e^{y^2 / (2 s^2)} w(u), and nearly that far outside (Lemma S9)."""
    nearest = -math.inf
    with precision(400):
        for u in (-3.0, -1.0, 0.5, 1.0, 1.5, 2.0, 4.0):
            for y in (0.125, 0.25, 0.5):
                size = float((abs(label.ball(acb(u, y))) / label.ball(arb(u))).log().mid())
                bound = float(label.log_growth(np.array([y]))[0])
                assert size <= bound * (1 + 1e-12)
                nearest = max(nearest, size - bound)
    assert nearest > -0.02


@pytest.mark.parametrize("label", LABELS)
def test_how_fast_labels_fall(label: StepLabel) -> None:
    """|d log w / dx| is at least the distance from the cut, divided by the square of the width, and not much more."""
    sign = 1 if label.is_large else -1
    for away in (0.125, 0.5, 2.0, 6.0):
        x = label.cut - sign * away
        slope = sign * float(np.diff(label.logs(np.array([x - 5e-5, x + 5e-5])))[0]) / 1e-4
        assert label.rate(x) <= slope * (1 + 1e-6)
        assert slope <= label.rate(x) + 4 / label.width
        assert label.falls_at(x)
        assert label.rate(label.cut + sign * away) == 0


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    ("rho", "kappa", "shift"), [(3.0, 0.0, 0.0), (3.0, 5.0, 0.0), (1.0, 9.0, 0.25), (-2.0, 1.0, 0.0)]
)
def test_the_error_of_the_rule_with_labels(
    monkeypatch: pytest.MonkeyPatch, label: StepLabel, rho: float, kappa: float, shift: float
) -> None:
    """With a coarse step the error is seen, within its bound, and the bound is not far above it."""
    worst, mixture = 0.0, _mixture(1.0, 0.25, label)
    for digits in (0.5, 1.0, 2.0, 4.0):
        monkeypatch.setattr(trapezoidal_rule, "DIGITS", digits)
        rule = mixture.rule(rho, kappa, shift)
        points = mixture.points(rho, rule)
        x = points.x + 1j * shift
        with precision(BITS):
            shares = np.array([complex(label.ball(acb(arb(float(z.real)), arb(float(z.imag)))).mid()) for z in x])
        terms = shares * np.exp((rho + 1j * kappa) * points.losses - 0.5 * x * x) * rule.step / math.sqrt(2 * math.pi)
        base = float(_moment(1.0, 0.25, label, rho, 0.0).real)
        error = abs(complex(_moment(1.0, 0.25, label, rho, kappa)) - terms.sum()) / base
        assert error <= math.exp(rule.log_error) + 1e-12
        worst = max(worst, error / math.exp(rule.log_error))
        assert np.all(np.abs(terms) <= np.exp(points.log_sizes) * (1 + 1e-9) + 1e-290)
    assert worst > 1e-4 or kappa


@pytest.mark.parametrize("label", LABELS)
def test_moments_of_labelled_steps(label: StepLabel) -> None:
    """Balls, upper bounds and the characteristic function against integrals, relative to the probability of the label."""
    loss = MixtureLoss(_mixture(1.0, 0.25, label))
    base = _moment(1.0, 0.25, label, 1.0, 0.0).real
    for z in (Fraction(5, 2), Fraction(0), Fraction(-1), Fraction(12)):
        with precision(BITS), mpmath.workdps(40):
            exact = mpmath.log(_moment(1.0, 0.25, label, float(z) + 1, 0.0).real / base)
            found = loss.log_moment(z)
            assert abs(mpmath.mpf(found.mid().str(40, radius=False)) - exact) <= float(found.rad()) + 1e-20
            assert float(found.rad()) < 1e-20
        upper = loss.log_moment_upper(float(z))
        assert float(exact) - 1e-15 <= upper <= float(exact) + 1e-10
    tilted = loss.tilted(Fraction(5, 2))
    omega = np.array([0.5, 2.0, 9.0, 30.0])
    logs, relative = tilted.log_cf(np.zeros((0, 4)), omega)
    for i, om in enumerate(omega.tolist()):
        value = _moment(1.0, 0.25, label, 3.5, om) / _moment(1.0, 0.25, label, 3.5, 0.0).real
        value *= mpmath.exp(-1j * om * mpmath.mpf(float(tilted.anchor.mid())))
        assert abs(mpmath.exp(mpmath.mpc(complex(logs[i]))) - value) <= float(relative[i]) * abs(value) + 1e-16
        for before in omega[: i + 1].tolist():
            assert float(abs(value)) <= math.exp(tilted.log_decay(before)) * (1 + 1e-9)
    assert tilted.log_decay(30.0) < -0.4


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("rho", [4.0, -4.0])
def test_what_the_range_of_labelled_steps_leaves_out(
    monkeypatch: pytest.MonkeyPatch, label: StepLabel, rho: float
) -> None:
    left_out, bound = logs_of_left_out(monkeypatch, _mixture(1.0, 0.25, label), rho, 2.0)
    assert -math.inf < left_out <= bound <= left_out + math.log(100)


@pytest.mark.parametrize(("label", "rho"), [(StepLabel(6.0, 0.25, True), 0.0), (StepLabel(1.5, 0.25, False), 30.0)])
def test_what_is_left_out_where_a_label_falls(monkeypatch: pytest.MonkeyPatch, label: StepLabel, rho: float) -> None:
    """Nearly all of it is beyond the end towards which the label falls."""
    left_out, bound = logs_of_left_out(monkeypatch, _mixture(1.0, 0.25, label), rho, 2.0)
    assert left_out <= bound <= left_out + 3


def test_small_and_large_steps_are_all_steps() -> None:
    for spacing2 in (None, Fraction(1, 4)):
        loss = MixtureLoss(replace(_mixture(1.0, 1 / 64), spacing2=spacing2))
        with precision(BITS):
            for rho in (Fraction(1), Fraction(7, 2)):
                whole = loss.log_power(rho).exp()
                total = sum((part.log_power(rho).exp() for part in loss.labelled(2.0, 0.125)), arb(0))
                assert (total - whole).contains(0)
                assert abs(float((total / whole - 1).mid())) < 1e-20


def _labelled(steps: int, cut: float = 2.0) -> Labelled:
    loss = PoissonSampled(Gaussian(1), "1/64").loss()
    assert isinstance(loss, MixtureLoss)
    small, large = loss.labelled(cut, 0.125)
    return Labelled((), small, large, steps, (0.5, 1.0, 2.0, 4.0), 4)


def test_how_many_steps_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probabilities are binomial; all that are not told apart together have at most what is stated for them."""
    labelled = _labelled(12)
    with precision(BITS):
        assert abs(float(sum((w.exp() for w in labelled.log_weights), arb(0)).mid()) - 1) < 1e-20
    monkeypatch.setattr(large_steps, "_MOST_LARGE", 3)
    short = _labelled(12)
    with precision(BITS):
        rest = sum((w.exp() for w in labelled.log_weights[4:]), arb(0))
        assert bool(rest <= short.log_weights[4].exp())
        assert bool(short.log_weights[4].exp() < 2 * rest)


@pytest.mark.parametrize("others", [(), (Gaussian(30),)])
def test_cheap_bounds_of_terms_hold(others: tuple[Gaussian, ...]) -> None:
    parts = TotalLoss.of(dict.fromkeys(others, 1)).parts
    labelled = replace(_labelled(4), others=parts)
    for y in (0.25, 1.5):
        uppers = labelled.log_uppers(y)
        for k in range(5):
            point = LineMethods(labelled.given(k), depth=1).points([threshold(Fraction(y))])
            exact = float(point.delta.log_lower()[0]) + float(labelled.log_weights[k].mid())
            assert exact <= uppers[k]
            assert uppers[k] < exact + 5.0 or k == 0 or y > 1


@cache
def _two_steps(m: float, q: float, y: float) -> float:
    """delta of two steps: the mean over the first one's output of the second one's delta, on panels that are graded towards the
    output whose loss is y."""
    with mpmath.workdps(30):
        mixture = oracle.Mixture((1 - q, q), (0.0, m))
        where = (mpmath.log((mpmath.exp(mpmath.mpf(y)) - 1 + q) / q) + mpmath.mpf(m) ** 2 / 2) / m

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            ratio = 1 - q + q * mpmath.exp(m * x - mpmath.mpf(m) ** 2 / 2)
            density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) * ratio
            return density * oracle.one_step(mixture, mpmath.mpf(y) - mpmath.log(ratio), False)

        graded = [where + sign * mpmath.mpf(2) ** -k for k in range(15) for sign in (-1, 1)]
        ends = sorted([*map(mpmath.mpf, range(-13, math.ceil(where) + 8)), where, *graded])
        nodes = [(mpmath.mpf(x), mpmath.mpf(w)) for x, w in zip(*np.polynomial.legendre.leggauss(12), strict=True)]
        total = mpmath.mpf(0)
        for a, b in itertools.pairwise(ends):
            total += (b - a) / 2 * mpmath.fsum(w * integrand((a + b) / 2 + (b - a) / 2 * x) for x, w in nodes)
        return float(total)


DEEP = [  # m, rate, epsilon, delta of two steps by `_two_steps`: see the soak test below
    (1.0, 2.0**-10, 2.0, 1.2011275640418e-20),
    (2.0, 2.0**-13, 9.0, 2.844225887843e-20),
    (0.25, 2.0**-7, 0.125, 5.799816095367e-34),
]


@pytest.mark.parametrize(("m", "q", "y", "exact"), DEEP)
def test_two_steps_at_low_rates(m: float, q: float, y: float, exact: float) -> None:
    mechanism = PoissonSampled(Gaussian(1 / Fraction(m) ** 2), Fraction(q)) * 2
    found = mechanism._answers._directions[0].point([Fraction(y)]).delta
    low, high = float(found.lower_floats()[0]), float(found.upper_floats()[0])
    assert low <= exact * (1 + 1e-11)
    assert exact * (1 - 1e-11) <= high
    assert high - low <= 1e-8 * high
    assert ("steps in bands" if m < 0.5 else "large steps") in str(mechanism.explain(Fraction(y)))


@pytest.mark.soak
@pytest.mark.parametrize(("m", "q", "y", "exact"), DEEP)
def test_the_integral_gives_these_values(m: float, q: float, y: float, exact: float) -> None:
    assert _two_steps(m, q, y) == pytest.approx(exact, rel=1e-11)


def test_terms_that_are_left_at_their_cheap_bounds_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """However early the sum is left, the bounds hold the narrow ones."""
    total = TotalLoss.of({PoissonSampled(Gaussian(1), Fraction(1, 1024)): 10})
    methods, y = LineMethods(total), threshold(Fraction(2))
    rung = methods._ladder.rung_of(2.0)
    found = label_steps(total, rung)
    assert found is not None

    def inner(k: int, finest: float) -> LineMethods:
        return LineMethods(found.given(k), depth=1, finest=finest)

    scale, low, high, _ = LargeSteps(found, inner).one(y)
    assert 0 < low <= high <= low * (1 + 1e-9)
    for limit, value in (("_SETTLED", 1e-4), ("_SETTLED", 1e-1), ("_HOPELESS", -1.0), ("_SETTLED", 1e3)):
        monkeypatch.setattr(large_steps, limit, value)
        again = LargeSteps(found, inner).one(y)
        assert again[0] == scale
        assert again[1] <= low * (1 + 1e-12)
        assert again[2] >= high * (1 - 1e-12)
    assert again[2] > high


def test_labels_do_not_change_an_answer() -> None:
    """Where both are narrow, the plain Fourier sum and the sum over numbers of large steps overlap."""
    total, y = TotalLoss.of({PoissonSampled(Gaussian(1), "1/64"): 4}), Fraction(1, 4)
    methods = LineMethods(total)
    rung = methods._ladder.rung_of(float(y))
    found = methods.large_steps(rung, -math.inf)
    assert found is not None
    plain, labelled = (one.evaluate([threshold(y)])[0] for one in (methods.fourier_sum(rung), found))
    assert labelled.log_lower()[0] <= plain.log_upper()[0]
    assert plain.log_lower()[0] <= labelled.log_upper()[0]
    assert labelled.width()[0] < 1e-5


def test_a_direction_with_less_is_not_searched_and_one_with_more_is() -> None:
    """epsilon is the larger one of both directions; here once the first one's, once the second one's."""
    sampled = PoissonSampled(Gaussian(4), "0.1") * 200
    for composition in (sampled, sampled + Outcomes(["0.9", "0.1"], ["0.5", "0.5"])):
        both = [d.epsilon(Fraction(1, 10**5)) for d in composition._answers._directions]
        found = composition.epsilon_bounds("1e-5")
        assert found.lower == max(low for low, _ in both)
        assert found.upper == max(high for _, high in both)
    assert both[1] > both[0]
