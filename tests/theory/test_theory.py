"""Section 6: moments, local errors and the theorem's bounds, against mpmath and brute-force convolution in high precision."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from flint import arb

from exactdp import DiscreteGaussian, InvalidInputError, theory
from exactdp.accounting.certificates.routes import EngineRoute, lattice_of
from exactdp.apps.figures.theory import figure_edgeworth, fitted_slope
from exactdp.balls import precision
from exactdp.engine.payoff import Payoff, tail_threshold
from exactdp.mechanisms.theta import cf_ball
from exactdp.theory.edgeworth_bound import EdgeworthBound, theta_0
from exactdp.theory.local_error import edgeworth_ball, local_errors, masses_ball
from exactdp.theory.published_inequalities import check_claims

DIGITS = 130
NOISES = ["0.1", "0.2", "0.4", "1", "2", "4", "10"]
FOLDS = [1, 2, 3, 5, 10, 40, 100, 400]


@cache
def pmf(sigma2: str) -> list[mpmath.mpf]:
    """P(X = x) for x = 0, 1, ... by the definition, as far as they matter at 130 digits."""
    with mpmath.workdps(DIGITS + 20):
        s = mpmath.mpf(sigma2)
        last = int(math.sqrt(2 * float(s) * (DIGITS + 20) * math.log(10))) + 2
        weights = [mpmath.exp(-mpmath.mpf(x * x) / (2 * s)) for x in range(last + 1)]
        total = weights[0] + 2 * sum(weights[1:])
        return [w / total for w in weights]


def moment(sigma2: str, order: int) -> mpmath.mpf:
    with mpmath.workdps(DIGITS + 20):
        return 2 * sum((x**order * p for x, p in enumerate(pmf(sigma2)) if x), mpmath.mpf(0))


def holds(bounds: theory.cumulant, exact: mpmath.mpf, digits: int) -> None:
    """The enclosure contains the number, and is narrow: two assertions."""
    with mpmath.workdps(DIGITS):
        low, high = (mpmath.mpf(str(x)) for x in bounds)
        assert low <= exact <= high
        assert high - low <= abs(exact) * mpmath.mpf(10) ** -digits


@pytest.mark.parametrize("noise", ["0.02", *NOISES, "0.159", "0.16", "7/3"])
def test_cumulants_and_moments_contain_the_definition(noise: str) -> None:
    if "/" in noise:
        assert theory.cumulant(noise, 4).lower > 0
        return
    with mpmath.workdps(DIGITS):
        m2, m4, m6 = moment(noise, 2), moment(noise, 4), moment(noise, 6)
        holds(theory.cumulant(noise, 2), m2, 20)
        holds(theory.cumulant(noise, 4), m4 - 3 * m2**2, 20)
        holds(theory.cumulant(noise, 6), m6 - 15 * m4 * m2 + 30 * m2**3, 20)
        holds(theory.standardized_cumulant(noise, 4, digits=25), (m4 - 3 * m2**2) / m2**2, 25)
        for order in (1, 3, 4, 7, 12):
            holds(theory.absolute_moment(noise, order), moment(noise, order), 20)
            holds(theory.standardized_moment(noise, order), moment(noise, order) / m2 ** (mpmath.mpf(order) / 2), 20)
    assert theory.cumulant(noise, 3) == (0, 0)


def test_large_noise_has_no_cancellation() -> None:
    low, high = theory.cumulant(1000, 4)
    assert Decimal("8e-8558") > high > low > Decimal("7e-8558")  # 2 (2 pi s)^4 e^{-2 pi^2 s}
    assert theory.absolute_moment(10**9, 12, digits=15).upper == pytest.approx(Decimal(10395) * Decimal(10) ** 54)
    with mpmath.workdps(40):
        exact = 2 * mpmath.sqrt(2 / mpmath.pi) * mpmath.mpf(20000) ** mpmath.mpf("1.5")
        assert abs(mpmath.mpf(str(theory.absolute_moment(20000, 3).lower)) / exact - 1) < 1e-9


def test_the_papers_values_of_lambda_4_are_right() -> None:
    printed = {"0.1": "72.21", "0.2": "4.12", "0.4": "0.19", "1": "8.34e-6", "2": "8.92e-14", "4": "2.55e-30"}
    for noise, value in printed.items():
        low, high = theory.standardized_cumulant(noise, 4)
        digits = len(value.split("e")[0].replace(".", "").lstrip("0"))
        assert f"{low:.{digits - 1}e}" == f"{high:.{digits - 1}e}" == f"{Decimal(value):.{digits - 1}e}"
    low, high = theory.standardized_cumulant(10, 4)
    assert 0 < low < high < Decimal("1e-50")
    assert f"{low:.4e}" == "5.8540e-81"


def test_the_sixth_cumulant_changes_sign_at_one_over_two_pi() -> None:
    below, above = Fraction("0.159154943091"), Fraction("0.159154943092")
    assert theory.cumulant(below, 6, digits=5).lower > 0 > theory.cumulant(above, 6, digits=5).upper
    near = theory.cumulant(
        1 / (2 * math.pi), 6, digits=5
    )  # 16 digits of it: the series cancels, the precision is raised
    assert 0 < abs(near.lower) < Decimal("1e-15")


def test_the_bound_of_very_coarse_noise_is_a_number() -> None:
    for noise, m, exact in (("0.05", 1, 57668.817), ("0.04", 10, 77543.437), ("1", 100, 0.012690784)):
        total = EdgeworthBound(noise, m).best().total
        assert total.rel_accuracy_bits() > 40
        assert float(total.mid()) == pytest.approx(exact, rel=1e-2)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: theory.cumulant(0, 4), "sigma2"),
    (lambda: theory.cumulant("1e-9", 4), "0.001"),
    (lambda: theory.cumulant(1, 0), "order"),
    (lambda: theory.absolute_moment(1, 61), "order"),
    (lambda: theory.cumulant(1, 4, digits=0), "digits"),
    (lambda: local_errors(1, 0), "m must be"),
    (lambda: EdgeworthBound(1, "x"), "m must be"),
    (lambda: EdgeworthBound(1, 10).printed(arb(10)), "smaller c"),
    (lambda: EdgeworthBound(1, 10).sharp(arb(10)), "and pi B_m"),
    (lambda: EdgeworthBound(1, 10).sharp(arb("1e-300")), "and pi B_m"),
    (lambda: EdgeworthBound(1, 10).corrected(arb(-1)), "at least 0"),
    (lambda: EdgeworthBound(1, 10).corrected(0.5), "A cut is a ball"),
    (lambda: EdgeworthBound(1, 10).cut_of("abc"), "c must be"),
    (lambda: EdgeworthBound("1e12", 10), "sigma2"),
    (lambda: local_errors(700, 1), "at most 300"),
])  # fmt: skip
def test_bad_input(call: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()  # type: ignore[operator]


def convolved(noise: str, m: int) -> list[mpmath.mpf]:
    """P(S_m = n), n = 0 ..., by repeated squaring of integer polynomials: an exact convolution of a rounded pmf."""
    scale = 10 ** (DIGITS + 10)
    with mpmath.workdps(DIGITS + 20):
        half = [int(mpmath.nint(p * scale)) for p in pmf(noise)]
    full = np.array(half[:0:-1] + half, dtype=object)
    result, power, left = None, full, m
    while left:
        if left & 1:
            result = power if result is None else np.convolve(result, power) // scale
        left >>= 1
        if left:
            power = np.convolve(power, power) // scale
    centre = len(result) // 2
    with mpmath.workdps(DIGITS + 20):
        return [mpmath.mpf(int(x)) / scale for x in result[centre:]]


@pytest.mark.parametrize(
    ("noise", "m"), [("0.1", 1), ("0.1", 7), ("0.4", 3), ("0.4", 16), ("1", 5), ("4", 2), ("10", 3)]
)
def test_masses_and_suprema_against_convolution(noise: str, m: int) -> None:
    exact = convolved(noise, m)
    found = local_errors(noise, m, digits=12)
    with precision(420), mpmath.workdps(DIGITS):
        count = min(len(exact), 200)
        masses = masses_ball(Fraction(noise), m, count - 1)
        better, plain = edgeworth_ball(Fraction(noise), m, list(range(count)))
        for p, q in zip(exact, masses, strict=False):
            assert abs(mpmath.mpf(q.mid().str(DIGITS, radius=False)) - p) < mpmath.mpf(10) ** -(DIGITS - 8)
            assert float(q.rad()) < 1e-120
        for approximation, sup in ((better, found.edgeworth), (plain, found.normal)):
            brute = max(
                abs(p - mpmath.mpf(a.mid().str(DIGITS, radius=False)))
                for p, a in zip(exact, approximation, strict=False)
            )
            assert abs(mpmath.mpf(sup.mid().str(40, radius=False)) / brute - 1) < 1e-11


def test_masses_are_those_of_the_engine() -> None:
    c = 100 * DiscreteGaussian(1)
    tails = [c._contours.enclose(Payoff.TAIL, tail_threshold(k), 30).value for k in range(30)]
    with precision(200):
        for n, mass in enumerate(masses_ball(Fraction(1), 100, 28)):
            assert abs(mass - (tails[n] - tails[n + 1])) < 1e-28
    low, high = c.masses(list(range(30)))
    with precision(100):
        for n, mass in enumerate(masses_ball(Fraction(1), 100, 28)):
            assert low[n] <= float(mass.mid()) * (1 + 1e-15)
            assert float(mass.mid()) * (1 - 1e-15) <= high[n]


def test_masses_do_not_depend_on_their_neighbours_and_hold_the_tails() -> None:
    """Phases in two factors: the same bits for a point alone, and bounds that overlap those of the tails themselves."""
    c = 18 * DiscreteGaussian("8/3") + 2 * DiscreteGaussian("2/3")
    points = [-700, -33, *range(-5, 70), 4000]
    low, high = c.masses(points)
    for i in (0, 1, 2, 40, len(points) - 2):
        alone = c.masses(points[i : i + 2])
        assert (alone.lower[0], alone.upper[0]) == (low[i], high[i])
    assert np.all(low <= high)
    with precision(200):
        tails = EngineRoute(lattice_of(c), 25).tails(points)
        for i in range(len(points) - 1):
            exact = tails[i] - tails[i + 1]
            assert exact >= arb(float(low[i])) - arb(10) ** -24
            assert exact <= arb(float(high[i])) + arb(10) ** -24
    assert np.max(high - low) < 1e-11


@pytest.mark.parametrize("noise", NOISES)
def test_every_inequality_of_the_theorem(noise: str) -> None:
    for m in FOLDS[noise in ("1", "4") :: 2]:
        bound, errors = EdgeworthBound(noise, m), local_errors(noise, m)
        with precision(128):
            most = min(bound.largest_cut, float((arb.pi() * bound.spread).mid()))
        for share in (0.3, 0.95) if m in (2, 3, 40) else (0.6,):
            for claim in check_claims(bound, arb(most * share), errors):
                assert claim.holds, (noise, m, share, claim)


def test_a_check_of_a_claim_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, bound = local_errors("0.4", 10), EdgeworthBound("0.4", 10)
    failed = [c.name for c in check_claims(bound, arb(1), replace(errors, edgeworth=arb(10))) if not c.holds]
    assert failed == [f"sup R_m <= {name} bound" for name in ("printed", "corrected", "sharper")]
    quarters = {r: k / 4 for r, k in bound._moments.items()}
    monkeypatch.setattr(EdgeworthBound, "_moments", quarters)
    failed = [c.name for c in check_claims(EdgeworthBound("0.4", 10), arb(1), errors) if not c.holds]
    assert failed[0] == "sum of |U_j,m|^2 <= U_m"


def test_printed_statement_beyond_pi_b() -> None:
    """U^m < 1 does not imply a <= pi B_m, which the proof needs; the corrected form cuts there and has no third term."""
    bound = EdgeworthBound("0.1", 2)
    with precision(128):
        end = arb.pi() * bound.spread
        cut = (end + bound.largest_cut) / 2
        assert cut > end
        corrected, printed = bound.corrected(cut), bound.printed(cut)
        assert corrected.middle == 0 < printed.middle
        assert corrected.outside > printed.outside  # what the printed form leaves out between pi B_m and the cut
        assert corrected.total >= local_errors("0.1", 2).edgeworth


def test_parts_of_the_bound_against_mpmath() -> None:
    """The theorem's formula written down a second time, with quadrature."""
    noise, m, c = "0.4", 50, 1
    bound = EdgeworthBound(noise, m)
    with mpmath.workdps(30):
        k2 = moment(noise, 2)
        k = {r: moment(noise, r) / k2 ** (mpmath.mpf(r) / 2) for r in (3, 4, 6, 8, 10, 12)}
        lam = k[4] - 3
        log = mpmath.log(m)
        u = c**2 * log / (2 * m) + c**4 * k[4] / 24 * (log / m) ** 2 + c**6 * k[6] / 720 * (log / m) ** 3
        a = c * mpmath.sqrt(log)

        def um(z: mpmath.mpf) -> mpmath.mpf:
            first = k[4] * z**4 / (4 * m) + k[6] * z**6 / (24 * m**2) + k[8] * z**8 / (320 * m**3)
            return first + k[10] * z**10 / (8640 * m**4) + k[12] * z**12 / (518400 * m**5)

        def inner(z: mpmath.mpf) -> mpmath.mpf:
            return k[4] / 24 * z**4 / m + k[6] / 720 * z**6 / m**2 + um(z) / (2 * (1 - u) ** 2)

        def lambdas(z: mpmath.mpf) -> mpmath.mpf:
            brace = k[6] * z**6 / (48 * m**2) + k[8] * z**8 / (640 * m**3)
            brace += k[10] * z**10 / (17280 * m**4) + k[12] * z**12 / (1036800 * m**5)
            fifth = z**4 / (8 * m) * (1 / (1 - u) ** 2 + 1) + k[6] / 720 * z**6 / m**2 + brace / (1 - u) ** 2
            return fifth + inner(z) ** 2 / 2 + mpmath.exp(inner(a)) * inner(z) ** 3 / 6

        def gauss(z: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(-z * z / 2)

        front = 1 / (mpmath.pi * mpmath.sqrt(m * k2))
        outside = front * mpmath.quad(lambda z: gauss(z) * (1 + lam * z**4 / (24 * m)), [a, 4, 8, 40])
        inside = front * mpmath.quad(lambda z: gauss(z) * lambdas(z), [0, a])
        root = mpmath.findroot(lambda t: t**2 + 2 * t * mpmath.sin(t) + 6 * (mpmath.cos(t) - 1), 4)
        slope = (mpmath.cos(root) - 1 + root**2 / 2) / (2 * root**3)
        middle = mpmath.exp(-(c**2) / mpmath.mpf(2) * log + slope * 8 * c**3 * k[3] * mpmath.sqrt(log**3 / m))
        parts = bound.printed(bound.cut_of(c))
        for ours, theirs in ((parts.u, u), (parts.outside, outside), (parts.inside, inside), (parts.middle, middle)):
            assert abs(mpmath.mpf(ours.mid().str(25, radius=False)) / theirs - 1) < 1e-18
        assert abs(mpmath.mpf(theta_0().mid().str(25, radius=False)) - root) < 1e-20


def test_the_best_cut_is_admissible_and_no_worse_than_others() -> None:
    for noise, m in (("0.1", 3), ("0.4", 100), ("2", 400)):
        bound = EdgeworthBound(noise, m)
        best = bound.best()
        assert best.u < 1
        for share in (0.2, 0.4, 0.6, 0.8):
            assert float(best.total.mid()) <= 1.02 * float(bound.corrected(arb(bound.largest_cut * share)).total.mid())


def test_slopes() -> None:
    """The error falls like m^(-5/2), not m^(-3/2) as the theorem says; the normal density's falls like m^(-3/2)."""
    folds = [1600, 3200, 6400]
    errors = [local_errors("0.4", m) for m in folds]
    assert fitted_slope(folds, np.array([float(e.edgeworth.mid()) for e in errors])) == pytest.approx(-2.5, abs=0.01)
    assert fitted_slope(folds, np.array([float(e.normal.mid()) for e in errors])) == pytest.approx(-1.5, abs=0.01)
    sharp = [float(EdgeworthBound("0.4", m).sharp().mid()) for m in folds]
    assert fitted_slope(folds, np.array(sharp)) == pytest.approx(-2.5, abs=0.05)
    published = [float(EdgeworthBound("0.4", m).best().total.mid()) for m in (10**5, 3 * 10**5, 10**6)]
    assert fitted_slope([10**5, 3 * 10**5, 10**6], np.array(published)) == pytest.approx(-1.5, abs=0.02)


def test_the_sharper_bound_is_sharp() -> None:
    for noise, m in (("0.4", 100), ("1", 40), ("4", 40)):
        ratio = EdgeworthBound(noise, m).sharp() / local_errors(noise, m).edgeworth
        assert 1 <= float(ratio.mid()) < 1.25


def test_the_sharper_bound_contains_its_parts() -> None:
    """With an early cut most of it is the characteristic function beyond the cut."""
    bound = EdgeworthBound("0.4", 5)
    with precision(128):
        end, cut = arb.pi() * bound.spread, arb.pi() * bound.spread / 8
        steps = [cut + (end - cut) * (i + 0.5) / 500 for i in range(500)]
        far = sum((cf_ball(z / bound.spread, Fraction("0.4")) ** 5 for z in steps), arb(0)) * (end - cut) / 500 / end
        assert bound.sharp(cut) >= far + bound._outside(cut) / end


def test_figure_of_errors() -> None:
    figure = figure_edgeworth(["1"], [1, 40, 64, 100])
    lines = {line.get_label().split(" (")[0]: line.get_ydata() for line in figure.axes[0].lines}
    assert lines["Edgeworth expansion"][-1] == pytest.approx(float(local_errors(1, 100).edgeworth.mid()))
    assert set(lines) == {"Normal density", "Edgeworth expansion", "Sharper bound", "Published bound, corrected"}
    assert "slope -2.5" in next(x.get_label() for x in figure.axes[0].lines if "Edgeworth" in x.get_label())
