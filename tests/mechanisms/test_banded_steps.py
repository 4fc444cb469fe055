"""Steps told apart in bands (docs/theory/smooth.md, section 6): every inequality, and answers against integrals that use
neither a transform, a tilt nor a label."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from flint import acb, arb

import steps_oracle
from exactdp import Gaussian, PoissonSampled
from exactdp.balls import BITS, precision
from exactdp.engine.effort import Effort
from exactdp.engine.line import banded_steps as method
from exactdp.engine.line.banded_steps import BandedMethod, BandedSteps, Counts, banded_steps
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.mechanisms import gauss_panels
from exactdp.mechanisms.cut_mixture_loss import CutMixtureLoss, TiltedCut
from exactdp.mechanisms.gauss_panels import CutMixture
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.step_labels import Band
from exactdp.mechanisms.trapezoidal_rule import Mixture

by_integrals = cache(steps_oracle.few_steps)
ORACLE = 3e-11  # relative error of the integrals
SHIFT, RATE, CUT = 0.5, 2.0**-6, 9.0
LOWEST, MIDDLE, HIGH = Band(None, 2.5, 0.125), Band(2.5, 4.0, 0.125), Band(4.0, 5.5, 0.125)
BANDS = [LOWEST, MIDDLE, HIGH]


def _mixture(m: float = SHIFT, q: float = RATE) -> Mixture:
    return Mixture((1 - Fraction(q), Fraction(q)), (Fraction(0), Fraction(m) ** 2))


def _share(band: Band, x: mpmath.mpf) -> mpmath.mpf:
    """From the side on which nothing cancels."""
    if band.lower is None:
        return mpmath.ncdf((band.upper - x) / band.width)
    sign = 1 if 2 * x > band.lower + band.upper else -1
    near, far = sorted((sign * (x - band.lower) / band.width, sign * (x - band.upper) / band.width))
    return mpmath.ncdf(-near) - mpmath.ncdf(-far)


@cache
def _moment(band: Band, rho: float, kappa: float = 0.0, ends: tuple[float, float] = (-14.0, CUT)) -> mpmath.mpc:
    """The integral of phi w f^(rho + i kappa), by Gauss-Legendre on short pieces, in 30 digits."""
    with mpmath.workdps(30):

        def integrand(x: mpmath.mpf) -> mpmath.mpc:
            ratio = 1 - RATE + RATE * mpmath.exp(SHIFT * x - mpmath.mpf(SHIFT) ** 2 / 2)
            power = mpmath.mpc(rho, kappa) * mpmath.log(ratio) - x * x / 2
            return _share(band, x) * mpmath.exp(power) / mpmath.sqrt(2 * mpmath.pi)

        first, last = max(ends[0], -14.0 if band.lower is None else band.lower - 4), min(ends[1], band.upper + 4)
        first = ends[0] if first >= last else first  # what is outside is below e^{-500}
        pieces = mpmath.linspace(
            mpmath.mpf(first), mpmath.mpf(ends[1] if last <= first else last), 2 + math.ceil(3 * (ends[1] - first))
        )
        return mpmath.quad(integrand, pieces, method="gauss-legendre", maxdegree=4)


def _log_moment(band: Band, rho: float, ends: tuple[float, float] = (-14.0, CUT)) -> mpmath.mpf:
    with mpmath.workdps(30):
        return mpmath.log(_moment(band, rho, 0.0, ends).real)


@pytest.mark.parametrize("band", BANDS)
def test_the_probability_of_a_band(band: Band) -> None:
    for x in (-30.0, -2.0, 1.5, 2.5, 3.25, 4.0, 5.0, 20.0):
        with mpmath.workdps(40):
            exact = float(mpmath.log(_share(band, mpmath.mpf(x))))
        assert abs(float(band.logs(np.array([x]))[0]) - exact) <= 1e-13 * (1 + abs(exact))
        with precision(BITS):
            assert abs(float((band.ball(arb(x)).log() - arb(exact)).mid())) <= 1e-13 * (1 + abs(exact))
        assert exact <= float(band.log_most(np.array([x - 0.01]), np.array([x + 0.01]))[0]) + 1e-13 * (1 + abs(exact))
    least = band.logs(np.array([3.0, 2.9]))
    assert np.all(least <= band.log_most(np.array([2.9, 2.9]), np.array([3.0, 3.0])))


@pytest.mark.parametrize("band", BANDS)
def test_a_band_off_the_real_line(band: Band) -> None:
    """|w(u + iy)| is at most e^{y^2 / (2 s^2)} w(u), and nearly that at the side of a cut (Lemma S14)."""
    nearest = -math.inf
    with precision(3000):
        for u in (0.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0):
            for y in (0.0625, 0.125, 0.25):
                scale = arb(band.width) * arb(2).sqrt()
                size = ((acb(u, y) - band.upper) / scale).erfc()
                if band.lower is not None:
                    size -= ((acb(u, y) - band.lower) / scale).erfc()
                found = float((abs(size / 2) / band.ball(arb(u))).log().mid())
                bound = float(band.log_growth(np.array([y]))[0])
                assert found <= bound * (1 + 1e-12)
                nearest = max(nearest, found - bound)
    assert nearest > -0.02


@pytest.mark.parametrize("band", BANDS)
def test_how_fast_a_band_rises(band: Band) -> None:
    """At x and from there on; nearly attained far below a band and above it."""
    x = np.linspace(-4.0, 9.0, 53)
    with mpmath.workdps(60):
        slopes = [
            float(mpmath.diff(lambda t: mpmath.log(_share(band, t)), mpmath.mpf(at), h=mpmath.mpf(10) ** -25))
            for at in x
        ]
    later = np.maximum.accumulate(np.array(slopes)[::-1])[::-1]
    bounds = band.rates(x)
    assert np.all(later <= bounds + 1e-9 * np.abs(bounds))
    assert slopes[0] == pytest.approx(bounds[0], rel=1e-3, abs=1e-9)
    assert slopes[-1] == pytest.approx(bounds[-1], rel=0.02)


@pytest.mark.parametrize("rho", [1.0, 7.0, 200.0])
@pytest.mark.parametrize("band", BANDS)
def test_moments_in_a_band(band: Band, rho: float) -> None:
    """Balls that hold the moment and are narrow; bounds of moments that are not divided by the share."""
    loss = CutMixtureLoss(_mixture(), CUT, band)
    found, exact = loss.power(Fraction(rho)).log_total, _log_moment(band, rho)
    with precision(BITS):
        assert found.overlaps(arb(mpmath.nstr(exact, 28), 1e-24 * float(abs(exact))))
        assert float(found.rad()) < 1e-17
    (upper,) = loss.log_powers_upper([rho])
    assert float(exact) <= upper < float(exact) + 1e-9
    normalised = float(exact) - float(_log_moment(band, 1.0))
    assert normalised - 1e-12 <= loss.log_moment_upper(rho - 1) < normalised + 1e-9


def test_bounds_of_many_moments_are_those_of_each() -> None:
    loss, rhos = CutMixtureLoss(_mixture(), CUT, MIDDLE), [1.0, 1.5, 2.0, 9.0, 14.0, 300.0]
    exact = [float(_log_moment(MIDDLE, rho)) for rho in rhos]
    for value, upper in zip(exact, loss.log_powers_upper(rhos), strict=True):
        assert value <= upper < value + 1e-9


@pytest.mark.parametrize("band", BANDS)
def test_what_panels_leave_out(band: Band) -> None:
    """Below the first of them and above the last, at real powers."""
    cut = CutMixture(_mixture(), CUT, band)
    for rho in (1.0, 5.0, 30.0):
        for first in (1.0, 1.75, 2.5):
            exact = float(_log_moment(band, rho, (-14.0, first)))
            assert exact <= cut.log_below(first, rho)
        for last in (5.5, 6.0, 8.0):
            exact = float(_log_moment(band, rho, (last, CUT)))
            assert exact <= cut.log_above(last, rho)
    assert cut.log_above(CUT, 1.0) == -math.inf
    assert HIGH.log_mass_below(3.0) < float(_log_moment(HIGH, 0.0, (-14.0, 3.0))) + 6
    assert HIGH.log_mass_below(5.0) == 0.0


@pytest.mark.parametrize(("rho", "kappa"), [(1.5, 0.0), (30.0, 40.0)])
@pytest.mark.parametrize("band", BANDS)
def test_the_error_of_panels(monkeypatch: pytest.MonkeyPatch, band: Band, rho: float, kappa: float) -> None:
    """A rule with few points is off, and by no more than it says; the bound is not vacuous."""
    monkeypatch.setattr(gauss_panels, "POINTS", 5)
    cut = CutMixture(_mixture(), CUT, band)
    nodes, weights = np.polynomial.legendre.leggauss(5)
    seen = []
    for low, width in [(1.5, 0.5), (2.25, 0.25), (2.5, 0.25), (3.5, 0.25), (4.0, 0.5), (3.0, 1.0)]:
        bound = math.exp(min(float(cut.log_errors(np.array([low, low + width]), rho, kappa)[0]), 700.0))
        with mpmath.workdps(30):
            rule = mpmath.mpf(0)
            for x, w in zip(nodes.tolist(), weights.tolist(), strict=True):
                at = low + mpmath.mpf(width) * (1 + mpmath.mpf(x)) / 2
                ratio = 1 - RATE + RATE * mpmath.exp(SHIFT * at - mpmath.mpf(SHIFT) ** 2 / 2)
                value = mpmath.exp(mpmath.mpc(rho, kappa) * mpmath.log(ratio) - at * at / 2) * _share(band, at)
                rule += w * width / 2 * value / mpmath.sqrt(2 * mpmath.pi)
            exact = _moment(band, rho, kappa, (low, low + width))
            off = float(abs(rule - exact))
        assert off <= bound + 1e-14 * float(abs(exact))
        seen.append(off / bound)
    assert max(seen) > 1e-5


@pytest.mark.parametrize("band", BANDS)
def test_the_characteristic_function_in_a_band_and_its_decay(band: Band) -> None:
    """At single frequencies within the stated error; from a frequency on nothing is above the bound, which is of use."""
    rho, omega = 20.0, np.array([0.0, 8.0, 40.0, 300.0])
    tilted = CutMixtureLoss(_mixture(), CUT, band).tilted(Fraction(rho) - 1)
    assert isinstance(tilted, TiltedCut)
    logs, relative = tilted.log_cf(np.zeros((0, len(omega))), omega)
    sizes = []
    for at, log, error in zip(omega.tolist(), logs.tolist(), relative.tolist(), strict=True):
        with mpmath.workdps(30):
            exact = _moment(band, rho, at) / _moment(band, rho).real
            centred = exact * mpmath.exp(mpmath.mpc(0, -at) * mpmath.mpf(float(tilted.anchor.mid())))
            assert float(abs(mpmath.exp(log) / centred - 1)) <= error
            sizes.append(float(mpmath.log(abs(exact))))
    assert relative[1] < 1e-11
    for at, size in zip(omega.tolist(), sizes, strict=True):
        bound = tilted.log_decay(at)
        assert all(later <= bound for later in sizes[sizes.index(size) :])
    assert tilted.log_decay(300.0) < (0.02 if band.lower is None else 0.3) * sizes[-1]


def test_a_jump_at_the_cut_does_not_decay() -> None:
    """A band that the cut goes through: what is left of it there falls like 1 / omega only, and the bound is near that."""
    band, rho, at = Band(2.5, 4.0, 0.125), 60.0, 4.25
    tilted = CutMixtureLoss(_mixture(), at, band).tilted(Fraction(rho) - 1)
    # by integrals: log of the modulus of the characteristic function
    for omega, exact in ((150.0, -1.1047040131721513), (600.0, -3.762581266340101), (2000.0, -10.219007918553132)):
        assert exact <= tilted.log_decay(omega)
    assert tilted.log_decay(2000.0) < -10.1
    with mpmath.workdps(30):
        found = _moment(band, rho, 150.0, (-14.0, at)) / _moment(band, rho, 0.0, (-14.0, at)).real
        assert math.log(float(abs(found))) == pytest.approx(-1.1047040131721513, abs=1e-9)


def _steps(cuts: tuple[float, ...], count: int, y: float, effort: Effort | None = None) -> BandedSteps:
    return BandedSteps(MixtureLoss(_mixture()), count, cuts, 0.125, (y, y), effort or Effort())


@cache
def _three(count: int = 3) -> BandedSteps:
    return _steps((2.5, 4.0, 6.0), count, 0.25)


def _all_counts(count: int, bands: int) -> list[tuple[int, ...]]:
    """Of all bands but the lowest one, the highest first."""
    return [k for k in itertools.product(range(count + 1), repeat=bands - 1) if sum(k) <= count]


def test_sets_of_counts_are_divided() -> None:
    """Into disjoint ones which are all of them."""
    for bands, count in ((1, 4), (2, 5), (3, 4), (4, 3)):
        waiting, singles = [Counts(bands - 1, ())], list[tuple[int, ...]]()
        while waiting:
            counts = waiting.pop()
            if not counts.open:
                singles.append(counts.above)
                continue
            most = count - sum(counts.above)
            waiting += counts.divided() if counts.least < most else counts.divided()[:1]
        assert sorted(singles) == sorted(_all_counts(count, bands))


def test_probabilities_of_counts_and_of_decisive_steps() -> None:
    """They add up to 1, and those of decisive steps are the integrals of their label."""
    steps = _three(4)
    with precision(BITS):
        total = sum((steps.log_weight(Counts(0, k)).exp() for k in _all_counts(4, 3)), arb(0)) + steps._decisive[0]
        assert total.overlaps(arb(1))
        assert float(total.rad()) < 1e-15
    with mpmath.workdps(40):
        for found, power in zip(steps._decisive, (1, 0), strict=True):
            below = sum(_moment(band.cut.band, float(power), 0.0, (-14.0, band.cut.cut)).real for band in steps.bands)
            exact = -mpmath.expm1(4 * mpmath.log(below))
            assert abs(float(found.mid()) / float(exact) - 1) < 1e-11


def _belongs(k: tuple[int, ...], counts: Counts) -> bool:
    fixed = len(counts.above)
    return k[:fixed] == counts.above and (not counts.open or k[fixed] >= counts.least)


@pytest.mark.parametrize("y", [0.125, 0.25])
def test_bounds_hold_for_whole_sets_of_counts(y: float) -> None:
    """What a set's single counts add together is below its bound, and that of single ones is near what they add."""
    steps = _three()
    terms = {k: steps._term(Counts(0, k), threshold(Fraction(y)), 0.0, math.inf)[0] for k in _all_counts(3, 3)}
    waiting, seen, near = [steps._all], 0, 0
    while waiting:
        counts = waiting.pop()
        members = [value for k, value in terms.items() if _belongs(k, counts)]
        log_bound = steps.log_bound(counts, y)[0]
        assert sum(members) <= math.exp(log_bound)
        seen += 1
        if counts.open:
            waiting += counts.divided() if counts.least < 3 - sum(counts.above) else counts.divided()[:1]
        elif members[0] > 1e-17:
            near += log_bound < math.log(members[0]) + 4
    assert seen > 20
    assert near


def _method(sigma: float, rate: float, count: int) -> BandedMethod:
    (part,) = TotalLoss.of({PoissonSampled(Gaussian(sigma=Fraction(sigma)), Fraction(rate)): count}).parts
    assert isinstance(part.loss, MixtureLoss)
    return BandedMethod(part.loss, part.count, Effort())


def _ends(found: BandedMethod | BandedSteps, y: float) -> tuple[float, float]:
    bracket, _ = found.evaluate([threshold(Fraction(y))])
    scale = math.exp(float(bracket.log_scale[0]))
    return float(bracket.lower[0]) * scale, float(bracket.upper[0]) * scale


CASES = [
    (4.0, 2.0**-10, 2, 2.0**-5),
    (4.0, 2.0**-10, 3, 2.0**-5),
    (4.0, 2.0**-10, 5, 2.0**-4),
    (2.0, 2.0**-13, 2, 2.0**-4),
    (2.0, 2.0**-4, 2, 1.5),
    (1.0, 2.0**-9, 2, 6.0),
]


@pytest.mark.parametrize(("sigma", "rate", "count", "y"), CASES)
def test_steps_in_bands_against_integrals(sigma: float, rate: float, count: int, y: float) -> None:
    lower, upper = _ends(_method(sigma, rate, count), y)
    exact = by_integrals(sigma, rate, count, y)
    assert lower * (1 - ORACLE) <= exact <= upper * (1 + ORACLE)
    assert upper - lower < 3e-10 * upper


@pytest.mark.parametrize("cut", [3.0, 4.0, 4.75])
def test_steps_that_fall_short_count(monkeypatch: pytest.MonkeyPatch, cut: float) -> None:
    """A decisive cut so low that one output above it is often not enough: the bounds are wide, and hold."""
    steps, y = _steps((1.5, cut), 2, 0.125), 0.125
    exact = by_integrals(1 / SHIFT, RATE, 2, y)
    lower, upper = _ends(steps, y)
    assert lower * (1 - ORACLE) <= exact <= upper
    monkeypatch.setattr(BandedSteps, "log_short_of", lambda self, y: -math.inf)
    without = _ends(steps, y)[1]
    assert without < exact * (1 - 1e-7)
    assert upper - exact < 1e4 * (exact - without)


@pytest.mark.parametrize("below", [12.0, 1.0, -0.45])
def test_how_far_one_decisive_step_falls_short(monkeypatch: pytest.MonkeyPatch, below: float) -> None:
    """E (e^{y - L} - 1)_+ by an integral, wherever the first cell is; with all cells the bound is near."""
    monkeypatch.setattr(method, "_BELOW", below)
    cut, width, y = 4.0, 0.125, 0.08
    with mpmath.workdps(30):

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            ratio = 1 - RATE + RATE * mpmath.exp(SHIFT * x - mpmath.mpf(SHIFT) ** 2 / 2)
            short = max(mpmath.exp(y) - ratio, 0)  # times the density under Q
            return short * mpmath.ncdf((x - cut) / width) * mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)

        exact = float(mpmath.quad(integrand, mpmath.linspace(-4, 6, 81), maxdegree=4))
    bound = math.exp(method._log_short_of(MixtureLoss(_mixture()), 1, (cut, width), y))
    assert exact <= bound
    assert below < 12.0 or bound < 4 * exact


def test_outputs_that_are_cut_off_all_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever that is, at the decisive cut, say: then one output there falls short as often as it is there."""
    usual = method._log_short_of(MixtureLoss(_mixture()), 1, (4.0, 0.5), 0.2)
    monkeypatch.setattr(method, "_BEYOND", -1.0)
    assert method._log_short_of(MixtureLoss(_mixture()), 1, (4.0, 0.5), 0.2) > usual + 0.3


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "epsilon"),
    [("10", "0.001", 2, "0.1"), ("4", "1e-8", 2, "0.1"), ("0.02", "0.5", 2, "3000")],
)
@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")
def test_noise_and_rates_far_out_get_an_answer(sigma: str, rate: str, count: int, epsilon: str) -> None:
    """Deltas below all doubles and the like: whatever is said, it is an answer."""
    lower, upper = (PoissonSampled(Gaussian(sigma=sigma), rate) * count).delta_bounds(epsilon)
    assert 0 <= lower <= upper < 1e-6


@pytest.mark.parametrize(("sigma", "rate", "y"), [(0.03, 0.5, 10.0), (0.3, 2.0**-10, 1.0), (4.0, 2.0**-10, 2.0**-5)])
def test_cuts_are_apart(sigma: float, rate: float, y: float) -> None:
    near = _method(sigma, rate, 2)._near(y)
    assert len(near.cuts) <= 40
    assert all(high - low >= 4 * near.width for low, high in itertools.pairwise(near.cuts))
    assert near.bands[0].cut.cut == near.cuts[-1] + 12 * near.width


@pytest.mark.parametrize("most", [0, 1, 4])
def test_sums_that_are_broken_off_are_wide_and_hold(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(method, "_MOST_SUMS", most)
    for sigma, rate, count, y in CASES[1:5:3]:
        exact = by_integrals(sigma, rate, count, y)
        lower, upper = _ends(_method(sigma, rate, count), y)
        assert 0 <= lower * (1 - ORACLE) <= exact <= upper * (1 + ORACLE)
        assert upper - lower > 1e-9 * upper


def test_counts_without_a_sum_keep_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BandedSteps, "contour", lambda self, counts: None)
    sigma, rate, count, y = CASES[1]
    lower, upper = _ends(_method(sigma, rate, count), y)
    assert lower <= by_integrals(sigma, rate, count, y) <= upper < 1e8 * by_integrals(sigma, rate, count, y)


@pytest.mark.parametrize(
    ("count", "epsilon", "exact"),
    [(3, Fraction(1, 32), 1.49602846899e-48), (2, Fraction(1, 32), 8.9097270475e-49)],
)
def test_cases_that_said_nothing(count: int, epsilon: Fraction, exact: float) -> None:
    """Noise 4, rate 1/1024; asked of a composition."""
    found = PoissonSampled(Gaussian(sigma=4), Fraction(1, 1024)) * count
    lower, upper = (float(x) for x in found.delta_bounds(epsilon))
    assert lower * (1 - 2 * ORACLE) <= exact <= upper * (1 + 2 * ORACLE)
    assert upper - lower < 1e-10 * upper
    assert found.explain(epsilon).method == "sum over numbers of steps in bands"


@pytest.mark.parametrize(("count", "epsilon", "exact"), [(100, "0.1", 6.0553559e-79), (1000, "0.02", 2.8692e-99)])
def test_many_steps_that_were_wide(count: int, epsilon: str, exact: float) -> None:
    """Noise 4, rates 0.001 and 0.0001: values from within the bounds of another method, sums on a grid of losses, which were
    5e-6 and 6e-4 wide."""
    rate = "0.0001" if count == 1000 else "0.001"
    lower, upper = (float(x) for x in (PoissonSampled(Gaussian(sigma=4), rate) * count).delta_bounds(epsilon))
    assert lower <= exact * (1 + 2e-5)
    assert exact * (1 - 2e-5) <= upper
    assert upper - lower < 1e-10 * upper


def test_a_sum_over_large_steps_that_rounding_made_wide() -> None:
    """Noise 2, 1,000 steps at rate 0.0001: 1.2e-9 by large steps, whose bounds these are, and which no other method was asked
    after."""
    found = PoissonSampled(Gaussian(sigma=2), "0.0001") * 1000
    lower, upper = (float(x) for x in found.delta_bounds("1.627"))
    assert 1.0000967763246796e-100 <= lower <= upper <= 1.0000967775744777e-100
    assert upper - lower < 1e-10 * upper


def test_what_steps_are_put_in_bands() -> None:
    """One kind of sampled steps, removal; nothing else."""
    step, y = PoissonSampled(Gaussian(sigma=4), "0.001"), threshold(Fraction(1, 100))
    both, alone = TotalLoss.of({step: 10, Gaussian(sigma=4): 1}), TotalLoss.of({step: 10})
    for total, applies in ((alone, True), (both, False), (alone.reversed(), False)):
        rung = LineMethods(total)._ladder.rung_of(float(y.mid()))
        assert (banded_steps(total, rung, Effort()) is not None) is applies


def test_answers_do_not_depend_on_what_is_asked_together() -> None:
    found, ys = _method(4.0, 2.0**-10, 2), [threshold(Fraction(k, 1000)) for k in (60, 61)]
    together = found.evaluate(ys)[0].upper
    assert together.tolist() == [float(_method(4.0, 2.0**-10, 2).evaluate([y])[0].upper[0]) for y in ys]


@pytest.mark.soak
def test_many_steps_in_bands_against_integrals() -> None:
    rng = random.Random(11)
    asked = 0
    while asked < 150:
        sigma, rate = rng.choice([0.75, 1.0, 1.5, 2.0, 3.0, 4.0]), 2.0 ** -rng.randint(4, 13)
        count, deep = rng.choice([2, 2, 2, 3, 3, 4, 5, 6]), math.sqrt(4.6 * rng.uniform(3, 100))
        loss = math.log1p(rate * math.expm1(deep / sigma - 0.5 / sigma**2)) * rng.uniform(0.6, 1)
        y = math.ldexp(round(loss * 2**24), -24)
        if not y > 0:
            continue
        asked += 1
        lower, upper = _ends(_method(sigma, rate, count), y)
        exact = by_integrals(sigma, rate, count, y)
        assert lower * (1 - 1e-10) <= exact <= upper * (1 + 1e-10), (sigma, rate, count, y)
