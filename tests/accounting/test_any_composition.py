"""Any composition: every method against independent answers, each term of the error account, closed forms, limits."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

import exactdp
from any_oracle import Listed, expected_atoms, listed, number, on_grid, sampled
from exactdp import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Outcomes,
    RandomizedResponse,
)
from exactdp.accounting.directions import BothDirections
from exactdp.balls import BITS, ball, precision
from exactdp.brackets import Bracket
from exactdp.doubles import UNIT
from exactdp.engine.effort import Effort
from exactdp.engine.line import plan as line
from exactdp.engine.line.conditioning import Hybrid, list_coarse
from exactdp.engine.line.enumeration import Direct, halves, list_values
from exactdp.engine.line.float64 import LineContour, LineSums
from exactdp.engine.line.methods import Answering, threshold
from exactdp.engine.line.plan import make_line_plan
from exactdp.engine.line.tilts import Ladder, LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.fixed_point import Turn
from exactdp.errors import AccuracyWarning, InvalidInputError
from exactdp.mechanisms.mechanism import Mechanism

Counts = dict[Mechanism, int]

NARROW = 1e-9


# --- compositions -----------------------------------------------------------------------------------------------------------


def _random_mechanism(rng: random.Random) -> Mechanism:
    kind = rng.choice(
        ["irrational", "irrational", "decimal", "coarse", "laplace", "response", "box", "outcomes", "normal"]
    )
    D = rng.choice([1, 1, 2, 3])
    if kind == "irrational":
        return DiscreteGaussian(sigma=rng.uniform(0.5, 5), sensitivity=D)
    if kind == "decimal":
        return DiscreteGaussian(f"{rng.uniform(0.4, 20):.3g}", D)
    if kind == "coarse":
        return DiscreteGaussian(sigma=rng.uniform(0.25, 0.6), sensitivity=1)
    if kind == "laplace":
        return DiscreteLaplace(Fraction(rng.randint(5, 60), rng.randint(3, 12)), D)
    if kind == "response":
        if rng.random() < 0.5:
            return RandomizedResponse(f"{rng.uniform(0.1, 2):.2f}", rng.choice([2, 3, 10]))
        return RandomizedResponse(noise=Fraction(rng.randint(1, 9), 10), categories=rng.choice([2, 5]))
    if kind == "box":
        return ApproximateDP(f"{rng.uniform(0.1, 1.5):.2f}", rng.choice([0, Fraction(1, 10**6), Fraction(1, 100)]))
    if kind == "outcomes":
        sizes = [[rng.randint(1, 9) for _ in range(2)] for _ in range(2)]
        p, q = ([Fraction(x, sum(xs)) for x in xs] for xs in sizes)
        if rng.random() < 0.4:  # outcomes that only one data set can give
            lost = Fraction(1, rng.choice([20, 10**4, 10**9]))
            p, q = [*(x * (1 - lost) for x in p), lost, Fraction(0)], [*(x * (1 - lost) for x in q), Fraction(0), lost]
        return Outcomes(p, q)
    return Gaussian(Fraction(rng.uniform(0.5, 30)), Fraction(rng.randint(1, 3)))


def _random_counts(seed: int) -> Counts:
    """One to five mechanisms with few enough values to list them all."""
    rng = random.Random(seed)
    while True:
        counts: Counts = {}
        for _ in range(rng.randint(1, 4)):
            m = _random_mechanism(rng)
            counts[m] = counts.get(m, 0) + rng.choice([1, 1, 2, 3])
        smooth = any(isinstance(m, Gaussian) for m in counts)
        if expected_atoms(counts) <= (150 if smooth else 15_000):
            return counts


NAMED: dict[str, Counts] = {
    "one coarse noise": {DiscreteGaussian("1/20"): 1},
    "coarse noise of two kinds": {DiscreteGaussian("1/5"): 4, DiscreteGaussian(sigma=0.37): 2},
    "fine noise": {DiscreteGaussian(sigma=41.7): 5},
    "fine and coarse": {DiscreteGaussian(sigma=6.1, sensitivity=2): 3, DiscreteGaussian("0.11"): 1},
    "bounded": {RandomizedResponse(1): 3, DiscreteLaplace("7/3", 5): 2},
    "bounded, one value": {ApproximateDP(0): 3},
    "lost mass": {ApproximateDP("0.3", "1e-6"): 4, DiscreteGaussian(sigma=1.7): 2},
    "lost mass only": {ApproximateDP(0, "1/7"): 2},
    "asymmetric": {Outcomes(["1/2", "1/2"], ["1/7", "6/7"]): 5},
    "asymmetric and lost": {Outcomes([0.6, 0.3, 0.1, 0], [0.2, 0.5, 0, 0.3]): 3, DiscreteGaussian(3): 2},
    "lost on one side": {Outcomes(["1/2", "1/2"], ["1", "0"]): 2, RandomizedResponse("1/2"): 2},
    "continuous": {Gaussian(2): 3},
    "continuous and coarse": {Gaussian(9): 1, DiscreteGaussian("0.3"): 2},
    "continuous, small": {Gaussian(10**4): 1, RandomizedResponse(1): 3},
    "continuous, asymmetric and lost": {Gaussian(4): 1, Outcomes([0.6, 0.3, 0.1], [0.2, 0.8, 0]): 2},
}

SEVERAL_UNITS: dict[str, Counts] = {
    "three unrelated losses": {Outcomes(["1/2", "1/5", "3/10"], ["1/10", "3/10", "3/5"]): 5},
    "two tables": {
        Outcomes(["5/19", "3/19", "6/19", "5/19"], ["1/9", "1/2", "1/3", "1/18"]): 2,
        Outcomes(["1/2", "5/18", "2/9"], ["2/13", "8/13", "3/13"]): 2,
    },
    "a table and noise": {
        Outcomes(["7/25", "7/25", "8/25", "3/25"], ["1/2", "1/6", "1/12", "1/4"]): 2,
        DiscreteGaussian(sigma=4.01, sensitivity=2): 2,
    },
}
"""Tables whose losses are on no lattice, though there are few of them."""

SEEDS = range(24)


@cache
def _case(case: str | int) -> tuple[Counts, Listed]:
    counts = {**NAMED, **SEVERAL_UNITS}[case] if isinstance(case, str) else _random_counts(case)
    return counts, listed(counts)


CASES: list[str | int] = [*NAMED, *SEEDS]


def _epsilons(counts: Counts, truth: Listed) -> list[Fraction]:
    """Both signs, 0, two atoms, next to the greatest loss and beyond it."""
    at = [truth.losses[int(len(truth.losses) * share)] for share in (0.5, 0.7)]
    atoms = [Fraction(x, 1 << 300) for x in at]
    end = max(Fraction(truth.losses[-1], 1 << 300), Fraction(-truth.losses[0], 1 << 300))
    found = [Fraction(0), Fraction(1, 3), Fraction(-7, 5), Fraction(3), *atoms]
    found = [e for e in found if truth.worst(e) > mpmath.mpf(10) ** -80]
    if not any(isinstance(m, (DiscreteGaussian, Gaussian)) for m in counts):
        found += [end * Fraction(99, 100), end + 1]
    return found


def _inside(lower: float, upper: float, exact: mpmath.mpf, error: mpmath.mpf) -> bool:
    return bool(mpmath.mpf(lower) - error <= exact <= mpmath.mpf(upper) + error)


def _holds(bracket: Bracket, exact: mpmath.mpf, error: mpmath.mpf, i: int = 0) -> bool:
    with mpmath.workdps(50):
        scale = mpmath.exp(mpmath.mpf(float(bracket.log_scale[i])))
        low, high = (scale * mpmath.mpf(float(x[i])) for x in (bracket.lower, bracket.upper))
        slack = scale * mpmath.mpf(float(bracket.upper[i])) * mpmath.mpf(10) ** -40
        return bool(low - error - slack <= exact <= high + error + slack)


def _total(counts: Counts) -> TotalLoss:
    return TotalLoss(tuple(Part(m.loss(), n) for m, n in counts.items()))


# --- every answer against the oracle ----------------------------------------------------------------------------------------


def _at_atom(truth: Listed, e: Fraction) -> float:
    """The probability of the atom at epsilon, which may be far above delta: doubles place it within about 1e-14 only."""
    p, q = truth.atoms.get(int(abs(e) * (1 << 300)), (0, 0))
    return float(Fraction(max(p, q), 1 << 520))


@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")  # narrowness is asserted here
@pytest.mark.parametrize("case", CASES)
def test_delta_holds_the_exact_value_and_is_narrow(case: str | int) -> None:
    counts, truth = _case(case)
    epsilons = _epsilons(counts, truth)
    bounds = Composition(counts).delta_bounds(epsilons)
    for e, low, high in zip(epsilons, bounds.lower, bounds.upper, strict=True):
        exact = truth.worst(e)
        assert _inside(low, high, exact, truth.error(e)), (e, low, high, exact)
        assert high - low <= NARROW * high + 1e-12 * _at_atom(truth, e), (e, low, high)


@pytest.mark.parametrize("case", CASES)
def test_the_rest_holds_the_exact_value_and_is_narrow(case: str | int) -> None:
    counts, truth = _case(case)
    epsilons = [e for e in _epsilons(counts, truth) if truth.rest(e) > 1e-60]
    if not epsilons:
        return
    rest = BothDirections(_total(counts), Effort()).point(epsilons).rest
    for i, e in enumerate(epsilons):
        assert _holds(rest, truth.rest(e), truth.error(e), i), e
        assert rest.upper[i] - rest.lower[i] <= NARROW * rest.upper[i], e


@pytest.mark.parametrize("case", CASES)
def test_epsilon_has_both_ends_on_their_sides(case: str | int) -> None:
    counts, truth = _case(case)
    composition = Composition(counts)
    lost = 1 - min(truth.finite)
    for delta in ("1e-20", "1e-6", "0.02", "0.4", "0.93"):
        wanted = Fraction(delta)
        if (not truth.spread and wanted < truth.worst(Fraction(truth.losses[-1] - 1, 1 << 300))) or wanted < lost:
            continue
        low, high = composition.epsilon_bounds(delta)
        if high == -math.inf or wanted == lost:
            continue
        with mpmath.workdps(120):
            for e, above in ((low, True), (high, False)):
                if not math.isfinite(e):
                    continue
                found, error = truth.worst(Fraction(e)), truth.error(Fraction(e))
                margin = error + number(wanted) * mpmath.mpf(10) ** -100
                assert found >= number(wanted) - margin if above else found <= number(wanted) + margin, (delta, e)
        assert high - low <= 1e-8 * (1 + abs(high)), (delta, low, high)


def test_epsilon_where_a_loss_is_infinite() -> None:
    counts: Counts = {ApproximateDP("0.3", "1e-6"): 4, DiscreteGaussian(sigma=1.7): 2}
    assert Composition(counts).epsilon("1e-6") == math.inf
    assert Composition(counts).epsilon("4e-6") < math.inf
    one = Composition([ApproximateDP("0.3", "1e-6")])
    assert one.epsilon("1e-6") == pytest.approx(0.3, rel=1e-14)
    assert one.epsilon("0.99e-6") == math.inf


FEW_CORNERS = ("bounded, one value", "lost mass only", "lost on one side", "asymmetric and lost")


@pytest.mark.parametrize("case", [c for c in CASES if c not in FEW_CORNERS and (isinstance(c, str) or c < 20)])
def test_beta_holds_the_exact_value_and_is_narrow(case: str | int) -> None:
    counts, truth = _case(case)
    composition = Composition(counts)
    for alpha in ("0.3",) if truth.spread else ("1e-6", "0.05", "0.4"):
        low, high = composition.beta_bounds(alpha)
        exact = truth.beta(Fraction(alpha))
        error = truth.error(Fraction(40)) + mpmath.mpf(10) ** -30
        assert _inside(low, high, exact, error), (alpha, low, high, exact)
        assert high - low <= 1e-7 * high + 1e-300, (alpha, low, high)


@pytest.mark.parametrize("case", SEVERAL_UNITS)
def test_tables_on_no_lattice_hold_the_exact_value(case: str) -> None:
    counts, truth = _case(case)
    for e in _epsilons(counts, truth)[3:5]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            low, high = Composition(counts).delta_bounds(e)
        assert _inside(low, high, truth.worst(e), truth.error(e)), (e, low, high)


@pytest.mark.parametrize("case", SEVERAL_UNITS)
def test_tables_on_no_lattice_are_narrow(case: str) -> None:
    counts, truth = _case(case)
    bounds = Composition(counts).delta_bounds(_epsilons(counts, truth)[3:5])
    assert np.all(bounds.upper - bounds.lower <= NARROW * bounds.upper)


@pytest.mark.parametrize(
    "composition",
    [
        3 * ApproximateDP("0.91"),
        10 * RandomizedResponse("1/50"),
        Composition([DiscreteLaplace(50)]),
        2 * DiscreteLaplace("7/3", 3),
    ],
)
def test_epsilon_at_the_greatest_loss_exactly(composition: Composition) -> None:
    """delta is 0 there; bounds from 0 to next to nothing need no warning."""
    top = sum((n * Fraction(m.epsilon) for m, n in composition.mechanisms.items()), Fraction(0))
    low, high = composition.delta_bounds(top)
    assert low == 0.0
    assert high <= 1e-14


def test_a_tiny_continuous_part_beyond_all_other_losses() -> None:
    low, high = Composition({Gaussian(10**9): 1, RandomizedResponse(1): 3}).delta_bounds(4)
    assert (low, high) == (0.0, 5e-324)


@pytest.mark.parametrize("alpha", ["1e-6", "0.3", "0.97"])
@pytest.mark.parametrize(
    "case", ["bounded, one value", "lost mass only", "lost on one side", "asymmetric and lost", "two outcomes each way"]
)
def test_beta_where_the_curve_has_few_corners(case: str, alpha: str) -> None:
    counts = {
        "two outcomes each way": {Outcomes(["19/80", "57/80", "1/20", "0"], ["19/35", "57/140", "0", "1/20"]): 2},
        **NAMED,
    }[case]
    low, high = Composition(counts).beta_bounds(alpha)
    exact = listed(counts).beta(Fraction(alpha))
    assert _inside(low, high, exact, mpmath.mpf(10) ** -60), (low, high, exact)
    assert high - low <= 1e-7 * high + 1e-300, (low, high)


# --- every method on the same question --------------------------------------------------------------------------------------


def _finite_truth(truth: Listed, payoff: Payoff, e: Fraction) -> mpmath.mpf:
    """delta or 1 - delta of the forward direction, given that no loss is infinite."""
    with mpmath.workdps(120):
        delta = (truth.delta(e) - number(1 - truth.finite[0])) / number(truth.finite[0])
        return delta if payoff is Payoff.DELTA else 1 - delta


def _by_direct(total: TotalLoss, rung: LineRung, e: Fraction) -> Bracket | None:
    parts = list_values(total, rung.tilt)
    both = halves(parts) if parts is not None else None
    return Direct(total, rung.payoff, rung.tilt, *both).evaluate([threshold(e)])[0] if both is not None else None


def _by_hybrid(total: TotalLoss, rung: LineRung, e: Fraction, at: int) -> Bracket | None:
    """The parts before `at` listed, the others by whatever suits them."""
    first, rest = TotalLoss(total.parts[:at]), TotalLoss(total.parts[at:])
    if any(not p.loss.tilted(rung.tilt).units for p in first.parts):
        return None
    coarse = list_coarse(first, rung.tilt)
    if coarse is None:
        return None
    hybrid = Hybrid(total, rest, rung.payoff, rung.tilt, coarse, Answering(rest).points)
    return hybrid.evaluate([threshold(e)])[0]


def _by_line(total: TotalLoss, rung: LineRung, e: Fraction, finest: float = line.FINEST) -> LineSums:
    return LineContour(make_line_plan(total, rung, Effort(), finest)).evaluate([threshold(e)])


@pytest.mark.parametrize("case", [c for c in CASES if c not in FEW_CORNERS[:2] and (isinstance(c, str) or c % 2)])
def test_every_method_holds_the_exact_value(case: str | int) -> None:
    counts, truth = _case(case)
    total = _total(counts)
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
            assert bracket is None or _holds(bracket, exact, 4 * truth.error(e)), (e, i, bracket)


def test_the_methods_that_are_chosen() -> None:
    """The cases cover all of them, and the sieve."""
    found = {Composition(_case(c)[0]).explain(1).method for c in CASES}
    assert "direct enumeration" in found
    assert "Fourier sum on the line" in found
    assert "sieve on the lattice of the loss" in found
    assert any(m.startswith("sum over coarse mechanisms") for m in found)
    many = {DiscreteGaussian(sigma=math.sqrt(3 + i / 7)): 1 for i in range(12)}
    assert Composition(many).explain(3).method == "smoothed Fourier sum"


@pytest.mark.parametrize("seed", range(8))
def test_rational_noise_by_other_methods_agrees_with_the_sieve_and_with_balls(seed: int) -> None:
    rng = random.Random(seed)
    counts: Counts = {}
    for _ in range(rng.randint(2, 3)):
        m = DiscreteGaussian(Fraction(rng.randint(1, 40), rng.choice([1, 2, 3])), rng.choice([1, 1, 2]))
        counts[m] = rng.randint(1, 6)
    composition, other = Composition(counts), BothDirections(_total(counts), Effort())
    rho = float(composition.rho)
    for e in (Fraction(0), Fraction(round(rho)), Fraction(round(rho + 6 * math.sqrt(2 * rho))), Fraction(-2)):
        bracket = other.point([e]).delta
        assert bracket.upper[0] - bracket.lower[0] <= NARROW * bracket.upper[0]
        by_sieve = composition.delta_bounds(e)
        assert bracket.lower_floats()[0] <= by_sieve.upper
        assert by_sieve.lower <= bracket.upper_floats()[0]
        low, high = composition.delta_bounds(e, digits=20)
        with mpmath.workdps(40):
            assert _holds(bracket, (mpmath.mpf(str(low)) + mpmath.mpf(str(high))) / 2, mpmath.mpf(str(high - low)))


def _large(seed: int) -> tuple[Counts, Fraction]:
    """Dozens of groups, far beyond listing, and an epsilon some deviations out."""
    rng = random.Random(seed)
    counts: Counts = {}
    for _ in range(12):
        counts[DiscreteGaussian(sigma=math.exp(rng.uniform(0.5, 4)), sensitivity=rng.randint(1, 4))] = rng.randint(1, 9)
    if seed % 2:
        counts[RandomizedResponse(1, 3)] = 7
        counts[Outcomes(["1/2", "1/5", "3/10"], ["1/10", "3/10", "3/5"])] = 4
    total = _total(counts)
    mean, _ = total.mean_variance(rng.uniform(1, 6) / math.sqrt(total.widest))
    return counts, Fraction(round(mean, 4))


@pytest.mark.parametrize("seed", range(6))
def test_large_compositions_are_inside_the_monte_carlo_band(seed: int) -> None:
    counts, e = _large(seed)
    point = Answering(_total(counts)).points([threshold(e)]).delta
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
    counts, truth = _case(case)
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
    truth, total = listed(counts), _total(counts)
    for e in (Fraction(1, 2), Fraction(3)):
        sums = _terms(total, e, 1e-4)
        excess, smoothed = _excess(sums, truth, e), float(sums.smoothed[0])
        others = float(sums.aliased[0] + sums.dropped[0] + sums.rounding[0])
        sign = 1 if sums.payoff is Payoff.DELTA else -1
        assert -others <= sign * excess <= smoothed + others


def test_the_smoothing_term_is_reached() -> None:
    """Half of it for a smooth loss, all of it with an atom at the threshold."""
    sums = _terms(_total(SMOOTH), Fraction(3), 1e-2)
    assert _excess(sums, listed(SMOOTH), Fraction(3)) > 0.48 * float(sums.smoothed[0])
    counts: Counts = {RandomizedResponse(1): 3}
    sums = _terms(_total(counts), Fraction(1), 1e-6)
    excess, smoothed = _excess(sums, listed(counts), Fraction(1)), float(sums.smoothed[0])
    assert 0.99 * smoothed < excess <= smoothed + float(sums.dropped[0] + sums.rounding[0] + sums.aliased[0])


@pytest.mark.parametrize("deviations", [3.0, 5.0, 8.0])
def test_the_aliasing_term_is_needed_and_enough(monkeypatch: pytest.MonkeyPatch, deviations: float) -> None:
    """A period far too short raises the value by no more than the bound, and by more than all other terms."""
    monkeypatch.setattr(line._Planner, "_choose_period", lambda self, variance: deviations * math.sqrt(variance))
    for counts in (SMOOTH, JUMPY, {Gaussian(2): 3}):
        truth, total = listed(counts), _total(counts)
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
    original = line._Planner._bands

    def bands(self: line._Planner, last: int, period: float) -> object:
        self._log_aim += math.log(factor)
        try:
            return original(self, last, period)
        finally:
            self._log_aim -= math.log(factor)

    monkeypatch.setattr(line._Planner, "_bands", bands)


@pytest.mark.parametrize("e", [Fraction(1, 2), Fraction(4)])
def test_the_dropping_term_is_needed_and_enough(monkeypatch: pytest.MonkeyPatch, e: Fraction) -> None:
    counts: Counts = {Gaussian(50): 1, DiscreteGaussian(sigma=1.3): 2, RandomizedResponse(1): 2}
    truth, total = listed(counts), _total(counts)
    rung = Ladder(total).rung_of(float(e))
    before = make_line_plan(total, rung, Effort())
    _dropping(monkeypatch, 1e12)
    plan = make_line_plan(total, rung, Effort())
    assert len(plan.kept) < len(before.kept)
    sums = LineContour(plan).evaluate([threshold(e)])
    excess = abs(_excess(sums, truth, e))
    others = float(sums.aliased[0] + sums.rounding[0] + sums.smoothed[0])
    assert excess <= float(sums.dropped[0]) + others
    assert excess > 1000 * others


@pytest.mark.parametrize("tilt", [2, 4, 6])
def test_the_rounding_term_is_needed_and_enough(tilt: int) -> None:
    """A tilt that does not suit the threshold: the terms cancel by many digits, and the account says how many."""
    counts: Counts = {Gaussian(1): 1, DiscreteGaussian(sigma=2.3): 2, RandomizedResponse(1): 2}
    truth, e = listed(counts), Fraction(2)
    sums = _terms(_total(counts), e, tilt=Fraction(tilt))
    excess = _excess(sums, truth, e)
    both_ways = float(sums.dropped[0] + sums.rounding[0])
    assert -both_ways <= excess <= both_ways + float(sums.aliased[0])
    if tilt == 6:
        assert abs(excess) > 1e-9 * abs(float(sums.value[0]))  # doubles do lose digits here


def _with_errors(kind: str, size: float) -> tuple[Direct, Direct]:
    """Direct enumeration of a composition, and of the same with values that are wrong by as much as they say they may be."""
    total = _total(JUMPY)
    rung = Ladder(total).rung_of(2.0)
    first, second = halves(list_values(total, rung.tilt) or []) or pytest.fail("too many values")
    wrong = {
        "values": replace(first, values=first.values + size, value_error=first.value_error + size),
        "probabilities": replace(first, weights=first.weights * (1 + size), relative=first.relative + size),
        "missing": replace(first, weights=first.weights * (1 - size), missing=first.missing + size),
        "absolute": replace(first, weights=first.weights + size / len(first.weights), absolute=first.absolute + size),
    }[kind]
    return Direct(total, rung.payoff, rung.tilt, first, second), Direct(total, rung.payoff, rung.tilt, wrong, second)


@pytest.mark.parametrize("kind", ["values", "probabilities", "missing", "absolute"])
def test_listed_values_may_be_as_wrong_as_they_say(kind: str) -> None:
    """Theorem 13: errors of the stated size stay inside the bounds, which are not much wider than they need to be."""
    size, y = 1e-6, threshold(Fraction(2))
    right, wrong = (d.evaluate([y])[0] for d in _with_errors(kind, size))
    assert wrong.lower[0] <= right.upper[0]
    assert right.lower[0] <= wrong.upper[0]
    assert wrong.upper[0] - wrong.lower[0] <= 60 * size


def test_listed_values_that_are_too_small_still_bound_from_above() -> None:
    total = _total(JUMPY)
    rung = Ladder(total).rung_of(2.0)
    first, second = halves(list_values(total, rung.tilt) or []) or pytest.fail("too many values")
    y = threshold(Fraction(2))
    right = Direct(total, rung.payoff, rung.tilt, first, second).evaluate([y])[0]
    for name, change in (
        ("value_error", {"values": first.values - 1e-6}),
        ("relative", {"weights": first.weights * (1 - 1e-6)}),
    ):
        low = replace(first, **change, **{name: getattr(first, name) + 1e-6})
        found = Direct(total, rung.payoff, rung.tilt, low, second).evaluate([y])[0]
        assert right.lower[0] <= found.upper[0]
        assert found.lower[0] <= right.upper[0]


@pytest.mark.parametrize(("mechanism", "copies"), [(DiscreteGaussian(3), 800), (DiscreteGaussian(sigma=0.41), 1500)])
def test_many_copies_whose_errors_add_up(mechanism: Mechanism, copies: int) -> None:
    counts: Counts = {mechanism: copies}
    truth, total = listed(counts), _total(counts)
    mean, variance = total.mean_variance(0.0)
    for u in (-1, 1, 4):
        e = Fraction(round(mean + u * math.sqrt(variance)))
        rung = Ladder(total).rung_of(float(e))
        exact, error = _finite_truth(truth, rung.payoff, e), truth.error(e)
        # one kind of noise alone is a lattice, which smoothing cannot follow closely; listing can
        for bracket, narrow in ((_by_line(total, rung, e).bracket, 1e-5), (_by_direct(total, rung, e), NARROW)):
            assert bracket is not None
            assert _holds(bracket, exact, error)
            assert bracket.upper[0] - bracket.lower[0] <= narrow * bracket.upper[0]


# --- closed forms -----------------------------------------------------------------------------------------------------------


def _gaussian_delta(mu2: Fraction, e: Fraction) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu, y = mpmath.sqrt(number(mu2)), number(e)
        return mpmath.ncdf(mu / 2 - y / mu) - mpmath.exp(y) * mpmath.ncdf(-mu / 2 - y / mu)


def _check(composition: Composition, e: Fraction, exact: mpmath.mpf, narrow: float = NARROW) -> None:
    low, high = composition.delta_bounds(e)
    assert _inside(low, high, exact, mpmath.mpf(10) ** -320), (e, low, high, exact)
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


# --- the census's designs ---------------------------------------------------------------------------------------------------


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


# --- limits, and what must not matter ---------------------------------------------------------------------------------------


@cache
def _expensive() -> Composition:
    """Thirty coarse groups without a common lattice, too many values to list."""
    rng = random.Random(1)
    return Composition([DiscreteGaussian(sigma=math.sqrt(rng.uniform(0.25, 0.4))) for _ in range(30)])


def _wide(composition: Composition, e: int) -> tuple[float, float]:
    with pytest.warns(AccuracyWarning, match="proved but up to"):
        low, high = composition.delta_bounds(e)
    return low, high


@pytest.mark.parametrize("limits", [{"max_nodes": 300}, {"max_seconds": 0.01}, {"max_nodes": 1000, "max_seconds": 5}])
def test_a_work_limit_widens_the_bounds_and_says_so(limits: dict[str, float]) -> None:
    e = 65
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        low, high = _expensive().delta_bounds(e)
    limited = _expensive().within(**limits)
    wide = _wide(limited, e)
    assert wide[0] <= low <= high <= wide[1]
    assert wide[1] - wide[0] > high - low
    account = limited.explain(e)
    assert "wide" in account.statement
    assert "within(" in account.statement
    assert account.relative_width > 1e-6


@pytest.mark.parametrize(
    "limits", [{"max_nodes": 0}, {"max_nodes": -3}, {"max_nodes": 1.5}, {"max_seconds": 0}, {"max_seconds": math.nan}]
)
def test_bad_limits_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match="max_"):
        (2 * DiscreteGaussian(1)).within(**limits)


@pytest.mark.parametrize(
    "case", ["fine and coarse", "asymmetric and lost", "continuous and coarse", "bounded", 3, 11, 17]
)
def test_asked_alone_or_together_gives_the_same_bits(case: str | int) -> None:
    counts, _ = _case(case)
    epsilons = [0, "1/3", -1, 2.5, 4, "0.1", 7, -3]
    together = Composition(counts).delta_bounds(epsilons)
    backwards = Composition(counts).delta_bounds(epsilons[::-1])
    alone = [Composition(counts).delta_bounds(e) for e in epsilons]
    assert [b.lower for b in alone] == list(together.lower) == list(backwards.lower[::-1])
    assert [b.upper for b in alone] == list(together.upper) == list(backwards.upper[::-1])


def test_a_real_sigma_is_the_double_it_is() -> None:
    assert DiscreteGaussian(sigma=math.pi).sigma2 == Fraction(math.pi) ** 2
    assert DiscreteGaussian(sigma="2.7").sigma2 == Fraction(729, 100)
    assert Gaussian(sigma=math.pi).sigma2 == Fraction(math.pi) ** 2
    builders: list[Callable[..., Mechanism]] = [DiscreteGaussian, Gaussian]
    for build in builders:
        with pytest.raises(InvalidInputError, match="sigma"):
            build(2, sigma=3)
        with pytest.raises(InvalidInputError, match="sigma"):
            build()


def test_the_aliasing_bound_is_reached_where_the_payoff_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aliases far above the threshold have the payoff 1, which is what the bound of order 0 says: 1% less would be too little."""
    monkeypatch.setattr(line._Planner, "_choose_period", lambda self, variance: 30.0)
    total, truth, e = _total({Gaussian(2): 3}), listed({Gaussian(2): 3}), Fraction(1)
    sums = _terms(total, e, tilt=Fraction(1, 32))
    others = float(sums.dropped[0] + sums.rounding[0] + sums.smoothed[0])
    excess, aliased = _excess(sums, truth, e), float(sums.aliased[0])
    assert 0.995 * aliased < excess <= aliased + others
    assert others < 1e-9 * aliased


def _planner(spread: str) -> line._Planner:
    total = _total({Gaussian(1 / Fraction(spread)): 1})
    return line._Planner(total, Ladder(total).rung_of(1.0), 1.0, 1e-12)


def test_what_is_beyond_the_last_node_is_bounded_tightly() -> None:
    """Both sums over all nodes after the last, against the sums themselves: 1% less would be too little."""
    period, last = 40.0, 2000
    flat = _planner("1e-12")  # next to no Gaussian factor on the way
    c1, c2 = flat._corners
    omegas = 2 * math.pi * np.arange(last + 1, 4_000_000, dtype=float) / period
    exact = 2 / period * float(np.sum(c1 * c2 / omegas**2 * np.exp(-flat._spread * omegas**2 / 2)))
    bound = math.exp(flat._log_beyond(last, period))
    assert 0.99 * bound < exact <= bound
    steep = _planner("1e-5")
    omegas = 2 * math.pi * np.arange(last + 1, 100_000, dtype=float) / period
    bands = replace(steep._bands(last, period), budgets=np.full(len(steep._bands(last, period).budgets), 1e4))
    exact = 2 / period * float(np.sum(np.exp(-steep._spread * omegas**2 / 2)))
    bound = math.exp(steep._log_dropped_density(bands, period))
    assert 0.5 * bound < exact <= bound


def test_what_is_dropped_within_is_bounded_by_its_bands() -> None:
    """Bands of one node each: the bound is the sum of the nodes' own bounds, no more and no less."""
    planner, period = _planner("1e-2"), 40.0
    edges = [float(k) for k in range(13)]
    omegas = 2 * math.pi * np.arange(1, 13) / period
    gauss = -planner._spread * omegas**2 / 2
    transform = sum(np.log(np.minimum(1.0, c / omegas)) for c in planner._corners)
    for with_transform in (True, False):
        expected = math.log(2 / period) + gauss + (transform if with_transform else 0.0)
        found = planner._log_masses(edges, period, with_transform)
        assert np.all(found >= expected)
        assert np.all(found <= expected + 1e-9)


def test_epsilon_where_delta_is_next_to_1() -> None:
    low, high = (10 * RandomizedResponse(1)).epsilon_bounds(1 - Fraction(1, 2**300))
    assert low <= -300 * math.log(2) <= high < low + 1e-9
