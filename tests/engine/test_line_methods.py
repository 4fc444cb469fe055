"""The methods of the line: each on the same question against the exact value, and each term of their error accounts."""

from __future__ import annotations

import math
import random
import warnings
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

from any_cases import (
    CASES,
    FEW_CORNERS,
    NARROW,
    Counts,
    case_of,
    holds,
    total_of,
)
from any_oracle import Listed, listed, number, on_grid, sampled
from exactdp import (
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Outcomes,
    RandomizedResponse,
)
from exactdp.accounting.directions import BothDirections
from exactdp.balls import BITS, ball, precision
from exactdp.brackets import Bracket, Point
from exactdp.doubles import UNIT
from exactdp.engine.effort import Effort
from exactdp.engine.line import plan as line
from exactdp.engine.line.conditioning import Conditioning, list_coarse
from exactdp.engine.line.enumeration import Enumeration, _distinct, halves, list_values
from exactdp.engine.line.float64 import LineContour, LineSums
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.plan import Falloff, make_line_plan
from exactdp.engine.line.tilts import Ladder, LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.fixed_point import Turn
from exactdp.errors import AccuracyWarning
from exactdp.mechanisms.mechanism import Mechanism
from strategies import seeds

LOOKS = Effort().looks


def _finite_truth(truth: Listed, payoff: Payoff, e: Fraction) -> mpmath.mpf:
    """delta or 1 - delta of the forward direction, given that no loss is infinite."""
    with mpmath.workdps(120):
        delta = (truth.delta(e) - number(1 - truth.finite[0])) / number(truth.finite[0])
        return delta if payoff is Payoff.DELTA else 1 - delta


def _by_direct(total: TotalLoss, rung: LineRung, e: Fraction) -> Bracket | None:
    parts = list_values(total, rung.tilt, LOOKS)
    both = halves(parts, LOOKS) if parts is not None else None
    return Enumeration(total, rung.payoff, rung.tilt, *both).evaluate([threshold(e)])[0] if both is not None else None


def _by_hybrid(total: TotalLoss, rung: LineRung, e: Fraction, at: int) -> Bracket | None:
    """The parts before `at` listed, the others by whatever suits them."""
    first, rest = TotalLoss(total.parts[:at]), TotalLoss(total.parts[at:])
    if any(not p.loss.tilted(rung.tilt).units for p in first.parts):
        return None
    coarse = list_coarse(first, rung.tilt)
    if coarse is None:
        return None
    hybrid = Conditioning(total, rest, rung.payoff, rung.tilt, coarse, LineMethods(rest))
    return hybrid.evaluate([threshold(e)])[0]


class _Doubles:
    """The rest's answers as doubles with no scale of their own, down to the smallest ones: certified, too."""

    def __init__(self, rest: TotalLoss) -> None:
        self._answers = LineMethods(rest)

    def points(self, ys: list[arb]) -> Point:
        found = self._answers.points(ys)
        lower, upper = found.delta.lower_floats(), found.delta.upper_floats()
        return replace(found, delta=Bracket(np.zeros(len(ys)), lower, upper))


def test_a_factor_beyond_the_doubles_does_not_shrink_an_upper_bound() -> None:
    """The rest's answer is a subnormal number, and what it is multiplied by is beyond e^700."""
    total, e = total_of({DiscreteGaussian(50): 1, DiscreteGaussian(4): 8}), Fraction(55)
    rung = Ladder(total).rung_of(float(e))
    first, rest = TotalLoss(total.parts[:1]), TotalLoss(total.parts[1:])
    coarse = list_coarse(first, rung.tilt)
    assert coarse is not None
    usual, doubles = (
        Conditioning(total, rest, rung.payoff, rung.tilt, coarse, answers).evaluate([threshold(e)])[0]
        for answers in (LineMethods(rest), _Doubles(rest))
    )
    assert usual.log_upper()[0] - usual.log_lower()[0] < 1e-9
    assert doubles.log_upper()[0] >= usual.log_lower()[0]
    assert doubles.log_lower()[0] <= usual.log_upper()[0]


def _by_line(total: TotalLoss, rung: LineRung, e: Fraction, finest: float = line.FINEST) -> LineSums:
    return LineContour(make_line_plan(total, rung, Effort(), finest)).sums([threshold(e)])


@pytest.mark.parametrize("case", [c for c in CASES if c not in FEW_CORNERS[:2] and (isinstance(c, str) or c % 2)])
def test_every_method_holds_the_exact_value(case: str | int) -> None:
    counts, truth = case_of(case)
    total = total_of(counts)
    end = total.ends[1]
    for e, scale, finest in ((Fraction(1, 4), Fraction(1), line.FINEST), (Fraction(5, 2), Fraction(2), 1e-4)):
        if end is not None and bool(threshold(e) >= end):
            continue
        own = Ladder(total).rung_of(float(e))
        rung = replace(own, tilt=own.tilt * (scale if own.payoff is Payoff.DELTA else 1 / scale))  # any tilt is valid
        found = [_by_line(total, rung, e, finest).bracket, _by_direct(total, rung, e)]
        found += [_by_hybrid(total, rung, e, at) for at in range(1, len(total.parts))]
        exact = _finite_truth(truth, rung.payoff, e)
        for i, bracket in enumerate(found):
            assert bracket is None or holds(bracket, exact, 4 * truth.error(e)), (e, i, bracket)


def test_the_methods_that_are_chosen() -> None:
    """The cases cover all of them, and the sieve."""
    found = {Composition(case_of(c)[0]).explain(1).method for c in CASES}
    assert "direct enumeration" in found
    assert "Fourier sum on the line" in found
    assert "sieve on the lattice of the loss" in found
    assert any(m.startswith("sum over coarse mechanisms") for m in found)
    many = {DiscreteGaussian(sigma=math.sqrt(3 + i / 7)): 1 for i in range(12)}
    assert Composition(many).explain(3).method == "smoothed Fourier sum"


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_rational_noise_by_other_methods_agrees_with_the_sieve_and_with_balls(seed: int) -> None:
    rng = random.Random(seed)
    counts: Counts = {}
    for _ in range(rng.randint(2, 3)):
        m = DiscreteGaussian(Fraction(rng.randint(1, 40), rng.choice([1, 2, 3])), rng.choice([1, 1, 2]))
        counts[m] = rng.randint(1, 6)
    composition, other = Composition(counts), BothDirections(counts, Effort())
    rho = float(composition.rho)
    for e in (Fraction(0), Fraction(round(rho)), Fraction(round(rho + 6 * math.sqrt(2 * rho))), Fraction(-2)):
        bracket = other.point([e]).delta
        assert bracket.upper[0] - bracket.lower[0] <= NARROW * bracket.upper[0]
        by_sieve = composition.delta_bounds(e)
        assert bracket.lower_floats()[0] <= by_sieve.upper
        assert by_sieve.lower <= bracket.upper_floats()[0]
        low, high = composition.delta_bounds(e, digits=20)
        with mpmath.workdps(40):
            assert holds(bracket, (mpmath.mpf(str(low)) + mpmath.mpf(str(high))) / 2, mpmath.mpf(str(high - low)))


def _large(seed: int) -> tuple[Counts, Fraction]:
    """Dozens of groups, far beyond listing, and an epsilon some deviations out."""
    rng = random.Random(seed)
    counts: Counts = {}
    for _ in range(12):
        counts[DiscreteGaussian(sigma=math.exp(rng.uniform(0.5, 4)), sensitivity=rng.randint(1, 4))] = rng.randint(1, 9)
    if seed % 2:
        counts[RandomizedResponse(1, 3)] = 7
        counts[Outcomes(["1/2", "1/5", "3/10"], ["1/10", "3/10", "3/5"])] = 4
    total = total_of(counts)
    mean, _ = total.mean_variance(rng.uniform(1, 6) / math.sqrt(total.widest))
    return counts, Fraction(round(mean, 4))


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_large_compositions_are_inside_the_monte_carlo_band(seed: int) -> None:
    counts, e = _large(seed)
    point = LineMethods(total_of(counts)).points([threshold(e)]).delta
    log_low, log_high = float(point.log_lower()[0]), float(point.log_upper()[0])
    assert log_high - log_low <= NARROW
    log_scale, value, error = sampled(counts, e, size=40_000)
    assert error < 0.03 * value
    assert value - 6 * error <= math.exp(log_high - log_scale)
    assert value + 6 * error >= math.exp(log_low - log_scale)
    assert on_grid(counts, e) == pytest.approx(log_high, abs=2e-6)


# --- each term of the error account -----------------------------------------------------------------------------------------


def test_phases_against_exact_rationals() -> None:
    rng = random.Random(3)
    with mpmath.workdps(60):
        for size in (2**20, 2**32 - 1, 2**32, 2**45, 2**62 - 1):
            k = np.array([0, 1, size, *(rng.randrange(size) for _ in range(200))], dtype=np.int64)
            for _ in range(6):
                turn = Fraction(rng.randrange(-(10**9), 10**9), rng.randrange(1, 10**12))
                with precision(BITS):
                    phases = Turn.of(ball(turn)).phases(k)
                for n, phase in zip(k.tolist(), phases.tolist(), strict=True):
                    share = (n * turn + Fraction(1, 2)) % 1 - Fraction(1, 2)
                    exact = 2 * mpmath.pi * number(share)
                    gap = abs(mpmath.mpf(phase) - exact)
                    gap = min(gap, 2 * mpmath.pi - gap)  # both ends of the circle are one point
                    assert gap <= 3 * UNIT * abs(exact) + mpmath.mpf(2) ** -60


def _gap_and_density(counts: Counts, tau2: Fraction, y: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """What one more Gaussian of R = tau2 adds to delta(y), and the density of the smoothed loss at y."""
    plain, smooth = listed(counts), listed({**counts, Gaussian(1 / tau2): 1})
    with mpmath.workdps(60):
        gap = smooth.delta(y) - plain.delta(y)
        tau, at = mpmath.sqrt(number(tau2)), number(y - tau2 / 2)
        density = mpmath.fsum(
            mpmath.ldexp(p, -520) * mpmath.npdf(at - mpmath.ldexp(x, -300), 0, tau) for x, (p, _) in plain.atoms.items()
        )
        return gap, density


@pytest.mark.parametrize("tau2", [Fraction(1, 10**6), Fraction(1, 10**3), Fraction(1, 5)])
@pytest.mark.parametrize("case", ["coarse noise of two kinds", "bounded", "asymmetric", "lost mass"])
def test_smoothing_raises_delta_by_no_more_than_its_bound(case: str, tau2: Fraction) -> None:
    counts, truth = case_of(case)
    if len(truth.atoms) > 400:
        counts = dict.fromkeys(counts, 1)
        truth = listed(counts)
    atom = Fraction(truth.losses[2 * len(truth.losses) // 3], 1 << 300)
    tau = Fraction(math.sqrt(tau2))
    for offset in (-2, Fraction(-1, 2), 0, Fraction(1, 3), 3):
        gap, density = _gap_and_density(counts, tau2, atom + offset * tau)
        assert gap >= 0
        assert gap <= (1 + number(tau)) * number(tau2) * density * (1 + mpmath.mpf(10) ** -30)


def test_the_smoothing_bound_is_not_vacuous() -> None:
    """A smooth loss: the gap is tau^2 / 2 times the density. An atom at the threshold: tau / sqrt(2 pi) times its mass, the whole
    bound."""
    tau2 = Fraction(1, 10**4)
    smooth: Counts = {DiscreteGaussian(400): 1}  # values a quarter of tau apart, and tau a fifth of the deviation
    gap, density = _gap_and_density(smooth, tau2, Fraction(1, 500))
    assert gap > number(tau2) * density * 0.45
    assert gap < number(tau2) * density * 0.55
    coarse = listed({RandomizedResponse(1): 2})
    gap, density = _gap_and_density({RandomizedResponse(1): 2}, tau2, Fraction(2))
    top = mpmath.ldexp(coarse.atoms[coarse.losses[-1]][0], -520)
    tau = mpmath.sqrt(number(tau2))
    assert abs(gap / (tau / mpmath.sqrt(2 * mpmath.pi) * top) - 1) < 0.01
    assert gap > 0.95 * number(tau2) * density


def _terms(total: TotalLoss, e: Fraction, finest: float = line.FINEST, tilt: Fraction | None = None) -> LineSums:
    rung = Ladder(total).rung_of(float(e))
    return _by_line(total, rung if tilt is None else replace(rung, tilt=tilt), e, finest)


def _excess(sums: LineSums, truth: Listed, e: Fraction) -> float:
    """The computed value less the exact one, in the units of the sums."""
    with mpmath.workdps(60):
        exact = _finite_truth(truth, sums.payoff, e)
        return float(mpmath.mpf(float(sums.value[0])) - exact / mpmath.exp(mpmath.mpf(float(sums.log_scale[0]))))


SMOOTH: Counts = {DiscreteGaussian(sigma=5.3): 3, DiscreteGaussian(sigma=4.1, sensitivity=2): 1}
JUMPY: Counts = {DiscreteGaussian(sigma=1.3): 2, DiscreteLaplace("7/3", 3): 1}


@pytest.mark.parametrize("counts", [SMOOTH, JUMPY])
def test_the_smoothing_term_is_needed_and_enough(counts: Counts) -> None:
    truth, total = listed(counts), total_of(counts)
    for e in (Fraction(1, 2), Fraction(3)):
        sums = _terms(total, e, 1e-4)
        excess, smoothed = _excess(sums, truth, e), float(sums.smoothed[0])
        others = float(sums.aliased[0] + sums.dropped[0] + sums.rounding[0])
        sign = 1 if sums.payoff is Payoff.DELTA else -1
        assert -others <= sign * excess <= smoothed + others


def test_the_smoothing_term_is_reached() -> None:
    """Half of it for a smooth loss, all of it with an atom at the threshold."""
    sums = _terms(total_of(SMOOTH), Fraction(3), 1e-2)
    assert _excess(sums, listed(SMOOTH), Fraction(3)) > 0.48 * float(sums.smoothed[0])
    counts: Counts = {RandomizedResponse(1): 3}
    sums = _terms(total_of(counts), Fraction(1), 1e-6)
    excess, smoothed = _excess(sums, listed(counts), Fraction(1)), float(sums.smoothed[0])
    assert 0.99 * smoothed < excess <= smoothed + float(sums.dropped[0] + sums.rounding[0] + sums.aliased[0])


@pytest.mark.parametrize("deviations", [3.0, 5.0, 8.0])
def test_the_aliasing_term_is_needed_and_enough(monkeypatch: pytest.MonkeyPatch, deviations: float) -> None:
    """A period far too short raises the value by no more than the bound, and by more than all other terms."""
    monkeypatch.setattr(line._Planner, "_choose_period", lambda self, variance: deviations * math.sqrt(variance))
    for counts in (SMOOTH, JUMPY, {Gaussian(2): 3}):
        truth, total = listed(counts), total_of(counts)
        for e in (Fraction(1, 10), Fraction(3)):
            sums = _terms(total, e)
            excess = _excess(sums, truth, e)
            others = float(sums.dropped[0] + sums.rounding[0] + sums.smoothed[0])
            assert -others <= excess <= float(sums.aliased[0]) + others
            assert excess > 3 * others
            exact = float(sums.value[0]) - excess
            assert sums.bracket.lower[0] <= exact <= sums.bracket.upper[0]


def _dropping(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Bands whose aim is `factor` times larger."""
    original = line.Falloff.bands

    def bands(self: line.Falloff, last: int, log_aim: float, slack: float) -> object:
        return original(self, last, log_aim + math.log(factor), slack)

    monkeypatch.setattr(line.Falloff, "bands", bands)


@pytest.mark.parametrize("e", [Fraction(1, 2), Fraction(4)])
def test_the_dropping_term_is_needed_and_enough(monkeypatch: pytest.MonkeyPatch, e: Fraction) -> None:
    counts: Counts = {Gaussian(50): 1, DiscreteGaussian(sigma=1.3): 2, RandomizedResponse(1): 2}
    truth, total = listed(counts), total_of(counts)
    rung = Ladder(total).rung_of(float(e))
    before = make_line_plan(total, rung, Effort())
    _dropping(monkeypatch, 1e12)
    plan = make_line_plan(total, rung, Effort())
    assert len(plan.kept) < len(before.kept)
    sums = LineContour(plan).sums([threshold(e)])
    excess = abs(_excess(sums, truth, e))
    others = float(sums.aliased[0] + sums.rounding[0] + sums.smoothed[0])
    assert excess <= float(sums.dropped[0]) + others
    assert excess > 1000 * others


@pytest.mark.parametrize("tilt", [2, 4, 6])
def test_the_rounding_term_is_needed_and_enough(tilt: int) -> None:
    """A tilt that does not suit the threshold: the terms cancel by many digits, and the account says how many."""
    counts: Counts = {Gaussian(1): 1, DiscreteGaussian(sigma=2.3): 2, RandomizedResponse(1): 2}
    truth, e = listed(counts), Fraction(2)
    sums = _terms(total_of(counts), e, tilt=Fraction(tilt))
    excess = _excess(sums, truth, e)
    both_ways = float(sums.dropped[0] + sums.rounding[0])
    assert -both_ways <= excess <= both_ways + float(sums.aliased[0])
    if tilt == 6:
        assert abs(excess) > 1e-9 * abs(float(sums.value[0]))  # doubles do lose digits here


def _with_errors(kind: str, size: float) -> tuple[Enumeration, Enumeration]:
    """Direct enumeration of a composition, and of the same with values that are wrong by as much as they say they may be."""
    total = total_of(JUMPY)
    rung = Ladder(total).rung_of(2.0)
    first, second = halves(list_values(total, rung.tilt, LOOKS) or [], LOOKS) or pytest.fail("too many values")
    wrong = {
        "values": replace(first, values=first.values + size, value_error=first.value_error + size),
        "probabilities": replace(first, weights=first.weights * (1 + size), relative=first.relative + size),
        "missing": replace(first, weights=first.weights * (1 - size), missing=first.missing + size),
        "absolute": replace(first, weights=first.weights + size / len(first.weights), absolute=first.absolute + size),
    }[kind]
    return Enumeration(total, rung.payoff, rung.tilt, first, second), Enumeration(
        total, rung.payoff, rung.tilt, wrong, second
    )


@pytest.mark.parametrize("kind", ["values", "probabilities", "missing", "absolute"])
def test_listed_values_may_be_as_wrong_as_they_say(kind: str) -> None:
    """Theorem 13: errors of the stated size stay inside the bounds, which are not much wider than they need to be."""
    size, y = 1e-6, threshold(Fraction(2))
    right, wrong = (d.evaluate([y])[0] for d in _with_errors(kind, size))
    assert wrong.lower[0] <= right.upper[0]
    assert right.lower[0] <= wrong.upper[0]
    assert wrong.upper[0] - wrong.lower[0] <= 60 * size


def test_listed_values_that_are_too_small_still_bound_from_above() -> None:
    total = total_of(JUMPY)
    rung = Ladder(total).rung_of(2.0)
    first, second = halves(list_values(total, rung.tilt, LOOKS) or [], LOOKS) or pytest.fail("too many values")
    y = threshold(Fraction(2))
    right = Enumeration(total, rung.payoff, rung.tilt, first, second).evaluate([y])[0]
    for name, change in (
        ("value_error", {"values": first.values - 1e-6}),
        ("relative", {"weights": first.weights * (1 - 1e-6)}),
    ):
        low = replace(first, **change, **{name: getattr(first, name) + 1e-6})
        found = Enumeration(total, rung.payoff, rung.tilt, low, second).evaluate([y])[0]
        assert right.lower[0] <= found.upper[0]
        assert found.lower[0] <= right.upper[0]


@pytest.mark.parametrize(("mechanism", "copies"), [(DiscreteGaussian(3), 800), (DiscreteGaussian(sigma=0.41), 1500)])
def test_many_copies_whose_errors_add_up(mechanism: Mechanism, copies: int) -> None:
    counts: Counts = {mechanism: copies}
    truth, total = listed(counts), total_of(counts)
    mean, variance = total.mean_variance(0.0)
    for u in (-1, 1, 4):
        e = Fraction(round(mean + u * math.sqrt(variance)))
        rung = Ladder(total).rung_of(float(e))
        exact, error = _finite_truth(truth, rung.payoff, e), truth.error(e)
        # one kind of noise alone is a lattice, which smoothing cannot follow closely; listing can
        for bracket, narrow in ((_by_line(total, rung, e).bracket, 1e-5), (_by_direct(total, rung, e), NARROW)):
            assert bracket is not None
            assert holds(bracket, exact, error)
            assert bracket.upper[0] - bracket.lower[0] <= narrow * bracket.upper[0]


def test_the_aliasing_bound_is_reached_where_the_payoff_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aliases far above the threshold have the payoff 1, which is what the bound of order 0 says: 1% less would be too little."""
    monkeypatch.setattr(line._Planner, "_choose_period", lambda self, variance: 30.0)
    total, truth, e = total_of({Gaussian(2): 3}), listed({Gaussian(2): 3}), Fraction(1)
    sums = _terms(total, e, tilt=Fraction(1, 32))
    others = float(sums.dropped[0] + sums.rounding[0] + sums.smoothed[0])
    excess, aliased = _excess(sums, truth, e), float(sums.aliased[0])
    assert 0.995 * aliased < excess <= aliased + others
    assert others < 1e-9 * aliased


def _falloff(spread: str, period: float) -> line.Falloff:
    """That of a plan for one Gaussian, on another period."""
    total = total_of({Gaussian(1 / Fraction(spread)): 1})
    return replace(line._Planner(total, Ladder(total).rung_of(1.0), 1.0, 1e-12)._falloff, period=period)


def test_what_is_beyond_the_last_node_is_bounded_tightly() -> None:
    """Both sums over all nodes after the last, against the sums themselves: 1% less would be too little."""
    period, last = 40.0, 2000
    flat = _falloff("1e-12", period)  # next to no Gaussian factor on the way
    c1, c2 = flat.corners
    omegas = 2 * math.pi * np.arange(last + 1, 4_000_000, dtype=float) / period
    exact = 2 / period * float(np.sum(c1 * c2 / omegas**2 * np.exp(-flat.spread * omegas**2 / 2)))
    bound = math.exp(flat.log_beyond(last))
    assert 0.99 * bound < exact <= bound
    steep = _falloff("1e-5", period)
    omegas = 2 * math.pi * np.arange(last + 1, 100_000, dtype=float) / period
    bands = steep.bands(last, -40.0, 0.0)
    bands = replace(bands, budgets=np.full(len(bands.budgets), 1e4))
    exact = 2 / period * float(np.sum(np.exp(-steep.spread * omegas**2 / 2)))
    bound = math.exp(steep.log_dropped_density(bands))
    assert 0.5 * bound < exact <= bound


def test_what_is_dropped_within_is_bounded_by_its_bands() -> None:
    """Bands of one node each: the bound is the sum of the nodes' own bounds, no more and no less."""
    period = 40.0
    falloff = _falloff("1e-2", period)
    edges = [float(k) for k in range(13)]
    omegas = 2 * math.pi * np.arange(1, 13) / period
    gauss = -falloff.spread * omegas**2 / 2
    transform = sum(np.log(np.minimum(1.0, c / omegas)) for c in falloff.corners)
    for with_transform in (True, False):
        expected = math.log(2 / period) + gauss + (transform if with_transform else 0.0)
        found = falloff.log_masses(edges, with_transform)
        assert np.all(found >= expected)
        assert np.all(found <= expected + 1e-9)


def test_rows_are_told_apart_as_numpy_does() -> None:
    rows = np.random.default_rng(1).integers(-2, 3, size=(3000, 5))
    found, place = _distinct(rows)
    exact, exact_place = np.unique(rows, axis=0, return_inverse=True)
    assert np.array_equal(found, exact)
    assert np.array_equal(place, exact_place.ravel())


def _table(size: int) -> Outcomes:
    rng = random.Random(2)
    p = [rng.randint(1, 1000) for _ in range(size)]
    q = [max(1, int(x * rng.uniform(0.8, 1.25))) for x in p]
    return Outcomes([Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q])


@pytest.mark.parametrize("count", [10, 60])
def test_many_copies_of_a_table_keep_to_the_work_limit(count: int) -> None:
    """No step of listing looks at more numbers than the limit allows; what the limit leaves is wide, proved and says so."""
    table = _table(40)
    total = TotalLoss((Part(table.loss(), count),))
    assert list_values(total, Fraction(1), LOOKS) is None
    with pytest.warns(AccuracyWarning):
        limited = (count * table).within(max_seconds=0.01).delta_bounds(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        full = (count * table).delta_bounds(1)
    assert limited.lower <= full.lower <= full.upper <= limited.upper
    assert full.upper <= full.lower * (1 + 1e-6)  # on a grid
    assert limited.upper <= limited.lower * 1.1


def test_a_limit_ends_the_listing_of_values_early() -> None:
    total = TotalLoss((Part(_table(6).loss(), 8),))
    assert list_values(total, Fraction(1), LOOKS) is not None
    assert list_values(total, Fraction(1), 1000) is None
    fine = TotalLoss((Part(DiscreteGaussian(100).loss(), 50), Part(DiscreteGaussian(101).loss(), 50)))
    parts = list_values(fine, Fraction(1), LOOKS) or pytest.fail("too many values")
    assert halves(parts, LOOKS) is not None
    assert halves(parts, 100) is None


def test_the_decay_beyond_the_last_node_counts_once() -> None:
    plain, falling = (Falloff((1.0, 2.0), 0.0, 10.0, lambda omega, by=by: -by * omega) for by in (0.0, 3.0))
    omega = 2 * math.pi * 5 / 10
    assert falling.log_beyond(5) == pytest.approx(plain.log_beyond(5) - 3 * omega)
    assert falling.log_dropped_density(None) == math.inf  # type: ignore[arg-type]
