"""Steps cut off where one alone decides (docs/theory/smooth.md, section 5): every inequality, and answers against integrals that
use neither a transform nor a cut."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from flint import acb, arb

from exactdp import Gaussian, PoissonSampled
from exactdp.balls import BITS, precision
from exactdp.doubles import Floats
from exactdp.engine.effort import Effort
from exactdp.engine.line import cut_steps as method
from exactdp.engine.line.cut_steps import CutMethod, cut_steps
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.mechanisms import gauss_panels
from exactdp.mechanisms.cut_mixture_loss import CutMixtureLoss, TiltedCut
from exactdp.mechanisms.even_frequencies import even_means
from exactdp.mechanisms.gauss_panels import CutMixture, Panels
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.rule_weights import Weighed
from exactdp.mechanisms.trapezoidal_rule import Mixture
from recursion_oracle import few_steps

SHIFT, RATE, CUT = 0.25, 2.0**-10, 11.5  # noise 4
WIDE_SHIFT, HIGH_RATE, LOW_CUT = 1.0, 0.25, 3.0  # noise 1: f turns fast and is far from 1


def _mixture(m: float, q: float) -> Mixture:
    return Mixture((1 - Fraction(q), Fraction(q)), (Fraction(0), Fraction(m) ** 2))


def _integrand(m: float, q: float, power: mpmath.mpc, x: mpmath.mpf) -> mpmath.mpc:
    ratio = 1 - q + q * mpmath.exp(m * x - mpmath.mpf(m) ** 2 / 2)
    return mpmath.exp(power * mpmath.log(ratio) - x * x / 2) / mpmath.sqrt(2 * mpmath.pi)


@cache
def _moment(m: float, q: float, rho: float, kappa: float, ends: tuple[float, float]) -> mpmath.mpc:
    """The integral of phi f^(rho + i kappa) between two outputs, by Gauss-Legendre on short pieces, in 30 digits."""
    with mpmath.workdps(30):
        power = mpmath.mpc(rho, kappa)
        pieces = mpmath.linspace(*(mpmath.mpf(end) for end in ends), 2 + math.ceil(ends[1] - ends[0]))
        return mpmath.quad(lambda x: _integrand(m, q, power, x), pieces, method="gauss-legendre", maxdegree=4)


@pytest.mark.parametrize("rho", [1.0, 40.0, 4000.0])
def test_moments_below_a_cut(rho: float) -> None:
    """Balls that hold the moment and are narrow."""
    loss = CutMixtureLoss(_mixture(SHIFT, RATE), CUT)
    found = loss.power(Fraction(rho)).log_total
    with mpmath.workdps(30):
        exact = mpmath.nstr(mpmath.log(_moment(SHIFT, RATE, rho, 0.0, (-14.0, CUT)).real), 28)
    with precision(BITS):
        assert found.overlaps(arb(exact, 1e-26))
        assert float(found.rad()) < 1e-17


@pytest.mark.parametrize(("rho", "kappa"), [(1.5, 0.0), (30.0, 0.0), (1.5, 90.0), (30.0, 30.0)])
def test_the_error_of_panels(monkeypatch: pytest.MonkeyPatch, rho: float, kappa: float) -> None:
    """A rule with few points is off, and by no more than it says; the bound is not vacuous."""
    monkeypatch.setattr(gauss_panels, "POINTS", 5)
    cut = CutMixture(_mixture(WIDE_SHIFT, HIGH_RATE), LOW_CUT)
    nodes, weights = np.polynomial.legendre.leggauss(5)
    seen = []
    for low, width in [(-2.0, 1.0), (0.5, 1.0), (2.0, 1.0), (2.0, 0.5), (2.5, 0.5)]:
        edges = np.array([low, low + width])
        bound = math.exp(min(float(cut.log_errors(edges, rho, kappa)[0]), 700.0))
        with mpmath.workdps(30):
            rule = sum(
                w * width / 2 * _integrand(WIDE_SHIFT, HIGH_RATE, mpmath.mpc(rho, kappa), low + width * (1 + x) / 2)
                for x, w in zip(nodes.tolist(), weights.tolist(), strict=True)
            )
            off = float(abs(rule - _moment(WIDE_SHIFT, HIGH_RATE, rho, kappa, (low, low + width))))
        assert off <= bound
        seen.append(off / bound)
    assert max(seen) > 1e-4


def test_panels_for_a_power_bound_the_maximum_on_their_ellipse() -> None:
    """A panel on which the integrand rises by many factors of e, and one on which a narrow peak is inside."""
    cut = CutMixture(_mixture(WIDE_SHIFT, HIGH_RATE), 12.0)
    for rho in (9.0, 60.0):
        for low in (-2.0, 3.0, 7.0):
            edges = np.array([low, low + 4.0])
            x, log_weights = cut.points(Panels(edges, 0.0))
            with np.errstate(over="ignore"):
                rule = float(np.exp(cut.log_sizes(x, rho) + log_weights).sum())
            exact = float(_moment(WIDE_SHIFT, HIGH_RATE, rho, 0.0, (low, low + 4.0)).real)
            assert abs(rule - exact) <= math.exp(min(float(cut.log_errors(edges, rho, 0.0)[0]), 700.0)) + 1e-12 * exact


def test_what_is_below_the_first_panel() -> None:
    cut = CutMixture(_mixture(WIDE_SHIFT, HIGH_RATE), LOW_CUT)
    for rho in (0.5, 3.0, 50.0):
        exact = float(mpmath.log(_moment(WIDE_SHIFT, HIGH_RATE, rho, 0.0, (-14.0, -2.0)).real))
        assert exact <= cut.log_below(-2.0, rho) < exact + 3.0


@pytest.mark.parametrize(("m", "q", "at"), [(SHIFT, RATE, CUT), (WIDE_SHIFT, HIGH_RATE, LOW_CUT)])
def test_upper_moments_below_a_cut(m: float, q: float, at: float) -> None:
    """Given an output below the cut, for all orders."""
    loss = CutMixtureLoss(_mixture(m, q), at)
    share = _moment(m, q, 1.0, 0.0, (-14.0, at)).real
    assert float(loss.log_share.mid()) == pytest.approx(float(mpmath.log(share)), rel=1e-12, abs=1e-20)
    for z in (-3.0, -0.5, 0.5, 7.0, 100.0):
        exact = float(mpmath.log(_moment(m, q, z + 1, 0.0, (-14.0, at)).real / share))
        found = loss.log_moment_upper(z)
        assert exact <= found
        assert z < 0 or found < exact + 1e-9


def _tilted(rho: float = 500.0, at: float = CUT) -> TiltedCut:
    found = CutMixtureLoss(_mixture(SHIFT, RATE), at).tilted(Fraction(rho - 1))
    assert isinstance(found, TiltedCut)
    return found


def _characteristic(rho: float, omega: float, at: float = CUT) -> mpmath.mpc:
    return _moment(SHIFT, RATE, rho, omega, (-14.0, at)) / _moment(SHIFT, RATE, rho, 0.0, (-14.0, at)).real


def test_the_characteristic_function_below_a_cut() -> None:
    """At single frequencies, within the stated relative error, which is small."""
    tilted, omega = _tilted(), np.array([0.0, 40.0, 900.0, 2500.0])
    logs, relative = tilted.log_cf(np.zeros((0, len(omega))), omega)
    for at, log, error in zip(omega.tolist(), logs.tolist(), relative.tolist(), strict=True):
        with mpmath.workdps(30):
            exact = _characteristic(500.0, at)
            centred = exact * mpmath.exp(mpmath.mpc(0, -at) * mpmath.mpf(float(tilted.anchor.mid())))
            assert float(abs(mpmath.exp(log) / centred - 1)) <= error < 1e-10


def _far_off(tilted: TiltedCut, step: Fraction, nodes: list[int]) -> list[tuple[float, float]]:
    """How far the means of `even_cf` are from integrals in 50 digits, and the radii of their balls."""
    with precision(BITS):
        found = tilted.even_cf(arb(float(step)), max(nodes) + 1, 1 << 24)
    result = []
    for k in nodes:
        with mpmath.workdps(50):
            exact = _exactly(float(tilted._rho), float(k * step)) / _exactly(float(tilted._rho), 0.0).real
            exact *= mpmath.exp(mpmath.mpc(0, -float(k * step)) * mpmath.mpf(float(tilted.anchor.mid())))
            parts = [
                (abs(mpmath.mpf(ball.mid().str(45, radius=False)) - part), float(ball.rad()))
                for ball, part in ((found[k].real, exact.real), (found[k].imag, exact.imag))
            ]
        result.append((float(max(off for off, _ in parts)), min(radius for _, radius in parts)))
    return result


@cache
def _exactly(rho: float, kappa: float) -> mpmath.mpc:
    with mpmath.workdps(50):
        pieces = mpmath.linspace(mpmath.mpf(-17), mpmath.mpf(CUT), 58)
        power = mpmath.mpc(rho, kappa)
        return mpmath.quad(lambda x: _integrand(SHIFT, RATE, power, x), pieces, method="gauss-legendre", maxdegree=4)


def test_the_characteristic_function_in_balls() -> None:
    """At equally spaced frequencies, to thirty digits; the balls do not grow with the number of the frequency."""
    for off, radius in _far_off(_tilted(), Fraction(5, 2), [0, 1, 63, 64, 700]):
        assert off <= radius + 1e-44
        assert radius < 1e-29


@pytest.mark.parametrize("what", ["panels", "weigh"])
def test_balls_hold_the_error_of_panels_and_what_they_leave_out(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """One of them at 30 digits less, so that it can be seen."""
    usual = getattr(CutMixture, what)

    def worse(self: CutMixture, rho: Fraction, at: float | Panels, digits: float = 46.0) -> Panels | Weighed:
        found: Panels | Weighed = usual(self, rho, at, 34.0 if at else digits)  # moments by panels for no frequency
        return found

    monkeypatch.setattr(CutMixture, what, worse)
    monkeypatch.setattr(gauss_panels, "_BEGIN", 6)
    seen = _far_off(_tilted(), Fraction(5, 2), [1, 40, 600])
    assert all(off <= radius for off, radius in seen)
    assert max(off for off, _ in seen) > 1e-27


def test_means_at_many_frequencies() -> None:
    """Products of matrices are the sums they stand for, in narrow balls, also where blocks begin and end."""
    with precision(BITS):
        values, weights = [arb(k) / 7 - 1 for k in range(12)], [arb(1) / (k + 2) for k in range(12)]
        step = arb(3) / 11
        found = even_means(values, weights, step, 1000)
        assert len(found) == 1000
        for k in (0, 1, 63, 64, 65, 127, 128, 999):
            exact = sum((w * acb(0, k * step * x).exp() for x, w in zip(values, weights, strict=True)), acb(0))
            assert found[k].overlaps(exact)
            assert float(found[k].real.rad()) < 1e-33
    assert len(even_means(values, weights, step, 5)) == 5


def test_the_decay_below_a_cut() -> None:
    """From a frequency on nothing is above the bound; without the way from the cut to the shifted line much would be."""
    tilted = _tilted(4500.0)
    sizes = {omega: float(abs(_characteristic(4500.0, omega))) for omega in (500.0, 2000.0, 6000.0, 16000.0)}
    for omega in sizes:
        bound = math.exp(tilted.log_decay(omega))
        assert all(size <= bound for at, size in sizes.items() if at >= omega)
        assert bound < 3 * sizes[omega] + 1e-3


def _steps(sigma: int, rate: float, count: int) -> CutMethod:
    total = TotalLoss.of({PoissonSampled(Gaussian(sigma=sigma), Fraction(rate)): count})
    (part,) = total.parts
    assert isinstance(part.loss, MixtureLoss)
    return CutMethod(part.loss, part.count, Effort())


def _ends(found: CutMethod, y: Fraction) -> tuple[float, float]:
    bracket, _ = found.evaluate([threshold(y)])
    scale = math.exp(float(bracket.log_scale[0]))
    return float(bracket.lower[0]) * scale, float(bracket.upper[0]) * scale


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "y"), [(4, 2.0**-10, 6, 2.0**-7), (4, 2.0**-13, 6, 2.0**-10), (2, 2.0**-10, 5, 2.0**-6)]
)
def test_few_steps_against_integrals(sigma: int, rate: float, count: int, y: float) -> None:
    lower, upper = _ends(_steps(sigma, rate, count), Fraction(y))
    exact = few_steps(sigma, rate, count, y)
    assert lower * (1 - 1e-11) <= exact <= upper * (1 + 1e-11)
    assert upper - lower < 1e-9 * upper


def test_steps_that_fall_short_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut so low that one output above it is often not enough: the bounds are wide, and hold."""
    monkeypatch.setattr(method, "_SHORT", 9.0)
    exact = few_steps(4, 2.0**-10, 6, 2.0**-9)
    found = _steps(4, 2.0**-10, 6)
    lower, upper = _ends(found, Fraction(1, 512))
    assert lower <= exact <= upper
    near = found._near(2.0**-9)
    monkeypatch.setattr(type(near), "_short_of", lambda self, y: arb(0))
    without = _ends(found, Fraction(1, 512))[1]
    assert without < exact * (1 - 1e-5)
    assert upper - exact < 3 * (exact - without)


@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon", "exact"),
    [
        (4, Fraction(1, 1024), Fraction(1, 32), 1.12216239995e-47),
        (4, Fraction(1, 1024), Fraction(1, 128), 2.7984632444e-17),
    ],
)
def test_cases_that_said_nothing(sigma: int, rate: Fraction, epsilon: Fraction, exact: float) -> None:
    """Ten steps; values of `few_steps`, which take it some seconds (test_the_values_of_ten_steps)."""
    lower, upper = (PoissonSampled(Gaussian(sigma=sigma), rate) * 10).delta_bounds(epsilon)
    assert float(lower) * (1 - 1e-10) <= exact <= float(upper) * (1 + 1e-10)
    assert float(upper) - float(lower) < 1e-9 * float(upper)


@pytest.mark.soak
def test_the_values_of_ten_steps() -> None:
    assert few_steps(4, 2.0**-10, 10, 2.0**-5) == pytest.approx(1.12216239995e-47, rel=2e-11)
    assert few_steps(4, 2.0**-10, 10, 2.0**-7) == pytest.approx(2.7984632444e-17, rel=2e-11)


def test_what_steps_are_cut_off() -> None:
    """One kind of sampled steps, removal; nothing else."""
    step, y = PoissonSampled(Gaussian(sigma=4), "0.001"), threshold(Fraction(1, 100))
    both = TotalLoss.of({step: 10, Gaussian(sigma=4): 1})
    alone = TotalLoss.of({step: 10})
    for total, applies in ((alone, True), (both, False), (alone.reversed(), False)):
        rung = LineMethods(total)._ladder.rung_of(float(y.mid()))
        assert (cut_steps(total, rung, Effort()) is not None) is applies


def test_answers_do_not_depend_on_what_is_asked_together() -> None:
    found, ys = _steps(4, 2.0**-10, 10), [threshold(Fraction(k, 1000)) for k in (5, 8, 13)]
    together: Floats = found.evaluate(ys)[0].upper
    assert together.tolist() == [float(_steps(4, 2.0**-10, 10).evaluate([y])[0].upper[0]) for y in ys]
    assert found.used(ys[0]).method.startswith("steps cut off")
