"""Steps added up on a grid of losses (docs/theory/smooth.md, section 6): every inequality, and answers against integrals that use
no grid of losses."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from flint import arb

import steps_oracle
from exactdp import Gaussian, PoissonSampled
from exactdp.balls import BITS, precision
from exactdp.doubles import UNIT, Floats
from exactdp.engine.effort import Effort
from exactdp.engine.line import block_convolution
from exactdp.engine.line import few_steps as method
from exactdp.engine.line.block_convolution import convolved
from exactdp.engine.line.few_steps import FewSteps, Masses, chords, few_steps, lines, summed
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.step_cells import RULE, SampledStep, StepCells
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.errors import AccuracyError
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.trapezoidal_rule import Mixture

by_integrals = cache(steps_oracle.few_steps)
ORACLE = 3e-11  # relative error of the integrals


def _step(sigma: float, rate: float) -> SampledStep:
    return SampledStep(Mixture((1 - Fraction(rate), Fraction(rate)), (Fraction(0), 1 / Fraction(sigma) ** 2)))


def _method(sigma: float, rate: float, count: int, most: int = 1 << 14) -> FewSteps:
    (part,) = TotalLoss.of({PoissonSampled(Gaussian(sigma=Fraction(sigma)), Fraction(rate)): count}).parts
    assert isinstance(part.loss, MixtureLoss)
    return FewSteps(part.loss, count, most)


def _ends(found: FewSteps, y: float) -> tuple[float, float]:
    bracket, _ = found.evaluate([threshold(Fraction(y))])
    assert bracket.log_scale[0] == 0
    return float(bracket.lower[0]), float(bracket.upper[0])


@cache
def _exact_cell(sigma: float, rate: float, step: float, k: int) -> tuple[arb, arb, arb]:
    """P, and the integrals under Q of f - f_k and f_{k+1} - f, between two points: by normal tails in 1,500 bits."""
    with precision(1500):
        m, q, half = 1 / arb(sigma), arb(rate), arb(2).sqrt()
        ends = [((1 - q) / q * (i * arb(step)).expm1()).log() / m + m / 2 if i else None for i in (k, k + 1)]
        single, shifted = ([arb(1) if x is None else ((x - by) / half).erfc() / 2 for x in ends] for by in (arb(0), m))
        under_q, sampled = single[0] - single[1], shifted[0] - shifted[1]
        both = (1 - q) * under_q + q * sampled
        f = [(1 - q) * (i * arb(step)).exp() for i in (k, k + 1)]
        return both, both - f[0] * under_q, f[1] * under_q - both


@pytest.mark.parametrize(
    ("sigma", "rate", "step", "points"),
    [(4.0, 2.0**-10, 2.0**-20, 60_000), (1.0, 0.125, 2.0**-9, 5000), (0.5, 2.0**-8, 2.0**-10, 20_000)],
)
def test_what_cells_have(sigma: float, rate: float, step: float, points: int) -> None:
    """Bounds that hold in every cell that is looked at, and are narrow; both ways to find them are used."""
    with precision(BITS):
        found = _step(sigma, rate).cells(arb(step), points)
    places = [0, 1, 2, 5, 20, 90, 400, 1500, points // 3, points // 2, points - 2, points - 1]
    for k in places:
        for row, exact in enumerate(_exact_cell(sigma, rate, step, k)):
            with precision(1500):
                assert bool(arb(float(found.low[row, k])) <= exact), (k, row)
                assert bool(arb(float(found.high[row, k])) >= exact), (k, row)
                if float(exact.mid()) > 1e-250:
                    assert float(found.high[row, k] - found.low[row, k]) <= 1e-10 * float(exact.mid()), (k, row)


def test_the_rule_for_a_cell() -> None:
    """Nodes are within 4 units of 1, weights within 128 of themselves; at the longest cells the rule's error is below 1e-17."""
    nodes, weights = np.polynomial.legendre.leggauss(RULE)
    with precision(BITS):
        for i, (node, weight) in enumerate(zip(nodes.tolist(), weights.tolist(), strict=True)):
            exact, its = arb.legendre_p_root(RULE, RULE - 1 - i, weight=True)
            assert abs(float(arb(node) - exact)) <= 4 * UNIT
            assert abs(float(arb(weight) / its - 1)) <= 128 * UNIT
    with precision(BITS), mpmath.workdps(40):
        for x, m in ((0.0, 0.0), (20.0, 0.25), (-3.0, 4.0)):
            length = mpmath.mpf("0.1") / (1 + abs(x) + m + mpmath.mpf("0.1"))
            roots = [mpmath.mpf(str(arb.legendre_p_root(RULE, i).str(40, radius=False))) for i in range(RULE)]

            def gain(s: mpmath.mpf, x: float = x, m: float = m) -> mpmath.mpf:
                return mpmath.exp(-x * s - s * s / 2) * (mpmath.expm1(m * s) if m else s)

            rule = mpmath.fsum(
                gain(length * (1 + r) / 2)
                * length
                / ((1 - r * r) * mpmath.diff(lambda t: mpmath.legendre(RULE, t), r) ** 2)
                for r in roots
            )
            exact = mpmath.quad(gain, [0, length])
            assert abs(rule / exact - 1) < 1e-17


def _measure(masses: Masses, positions: Floats, w_payoff: float) -> float:
    """The integral of (1 - w_payoff w)_+ over a measure."""
    return float((masses.finite * np.maximum(1 - w_payoff * np.exp(-positions), 0.0)).sum()) + masses.infinite


@pytest.mark.parametrize(("sigma", "rate", "points"), [(1.0, 0.125, 80), (4.0, 2.0**-5, 120), (2.0, 0.25, 400)])
def test_one_step_is_between_its_measures(sigma: float, rate: float, points: int) -> None:
    """For payoffs (1 - e^{v - L})_+ at all v up to the last point, between points, too: the measures are below and above delta of
    one step, strictly and not by much."""
    step, reach = _step(sigma, rate), 0.6 if sigma < 4 else 0.25
    least = math.log1p(-rate)
    with precision(BITS):
        coarse, fine = arb(reach) / points, arb(reach) / (2 * points + 2)
        above = chords(step.cells(coarse, points), step.tail(coarse, points))
        below = lines(step.cells(fine, 2 * points + 1), step.tail(fine, 2 * points), points)
    h, half = float(coarse.mid()), float(fine.mid())
    assert (above.finite >= 0).all()
    assert (below.finite >= 0).all()
    for v in (least + reach * np.linspace(0.03, 0.98, 31)).tolist():
        exact = by_integrals(sigma, rate, 1, v)
        high = _measure(above, least + h * np.arange(points + 1), math.exp(v))
        low = _measure(below, least + half * (1 + 2 * np.arange(points + 1)), math.exp(v))
        assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12), v
        assert v > 0.5 * reach or high - low < 0.1 * exact


def test_losses_beyond_the_last_point() -> None:
    """What passes it: on it and at infinity, with the same mean of e^{-L} and of 1."""
    rng = np.random.default_rng(5)
    a, b = (Masses(rng.random(40), 0.25, 0.125, is_above=True) for _ in range(2))
    total = a.plus(b)
    i = np.add.outer(np.arange(40), np.arange(40))
    both = np.outer(a.finite, b.finite)
    on_last = np.where(i >= 39, both * np.exp(-0.125 * (i - 39)), 0.0).sum()
    assert total.finite[-1] == pytest.approx(on_last, rel=1e-13)
    assert total.finite[:-1] == pytest.approx(np.convolve(a.finite, b.finite)[:39], rel=1e-11)
    infinite = np.where(i >= 39, both * -np.expm1(-0.125 * (i - 39)), 0.0).sum()
    infinite += 0.25 * (a.finite.sum() + b.finite.sum()) + 0.25**2
    assert total.infinite == pytest.approx(infinite, rel=1e-13)
    assert a.payoff(b) == total.infinite
    less = Masses(a.finite, 0.25, 0.125, is_above=False).plus(Masses(b.finite, 0.25, 0.125, is_above=False))
    exact = [math.fsum((a.finite[: k + 1] * b.finite[k::-1]).tolist()) for k in range(39)]
    assert (less.finite[:-1] < exact).all()
    assert (total.finite[:-1] > exact).all()
    assert summed(a, 5) == pytest.approx(a.plus(a).payoff(a.plus(a).plus(a)), rel=1e-9)


def test_tiny_masses_of_the_least_losses() -> None:
    """Moved up in an upper bound, left out in a lower one."""
    masses = np.array([1e-150, 0.0, 1e-141, 1e-130, 0.5])
    above, below = (method._without_least(masses.copy(), moved) for moved in (1.0, 0.0))
    assert above[:3].tolist() == below[:3].tolist() == [0.0, 0.0, 0.0]
    assert above[3] >= 1e-130 + 1e-141
    assert below[3:].tolist() == [1e-130, 0.5]


def _vectors() -> list[Floats]:
    i = np.arange(1500.0)
    rng = np.random.default_rng(2)
    return [
        np.exp(-0.5 * (np.log((i + 0.5) / 40) / 0.4) ** 2),  # falls ever more slowly
        np.exp(-0.5 * ((i - 300) / 30) ** 2),  # falls ever faster, and rises first
        rng.random(1500) * np.exp(-0.05 * i) * (rng.random(1500) > 0.1),
        np.where(i > 1400, 1e-30, 0.0) + np.where(i < 30, 1.0, 0.0),
    ]


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 1), (2, 0), (2, 2), (3, 0), (3, 1)])
def test_blocks_against_exact_sums(monkeypatch: pytest.MonkeyPatch, first: int, second: int) -> None:
    """Bounds around sums of products that are rounded once, at any depth."""
    a, b = _vectors()[first], _vectors()[second]
    if first == second:
        b = a
    for longest in (1 << 16, 200):
        monkeypatch.setattr(block_convolution, "_LONGEST", longest)
        low, high = convolved(a, b)
        worst = 0.0
        for k in range(0, 1500, 13):
            exact = math.fsum((a[: k + 1] * b[k::-1]).tolist())
            slack = 4 * UNIT * exact + 1e-290
            assert low[k] - slack <= exact <= high[k] + slack
            worst = max(worst, (high[k] - low[k]) / exact) if exact > 1e-200 and k > 300 else worst
        assert worst < (1e-6 if 3 not in (first, second) else 1.0)


def test_an_fft_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transforms changed by as much as is assumed of them, in every entry: the bounds still hold."""
    a = _vectors()[2] + 1e-40
    rng, rfft, irfft = np.random.default_rng(3), np.fft.rfft, np.fft.irfft

    def changed(v: Floats, points: int, size: float) -> Floats:
        noise = rng.standard_normal(len(v))
        return v + noise / np.linalg.norm(noise) * 0.7 * size * 8 * math.log2(points) * UNIT

    monkeypatch.setattr(np.fft, "rfft", lambda x, n: changed(rfft(x, n), n, math.sqrt(n) * float(np.linalg.norm(x))))
    monkeypatch.setattr(np.fft, "irfft", lambda x, n: changed(irfft(x, n), n, float(np.linalg.norm(irfft(x, n)))))
    low, high = convolved(a, a)
    seen = []
    for k in range(0, 1500, 7):
        exact = math.fsum((a[: k + 1] * a[k::-1]).tolist())
        assert low[k] <= exact <= high[k]
        seen.append(abs((low[k] + high[k]) / 2 - exact) / (high[k] - low[k]))
    assert max(seen) > 1e-3  # errors are of the size of their bounds


def test_an_inverse_fft_that_is_wrong_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of what is assumed of it in one entry."""
    i, irfft = np.arange(1500.0), np.fft.irfft
    a, b = np.exp(-0.05 * i), np.where(i < 100, np.exp(-2 * i), 0.0)

    def changed(x: Floats, points: int) -> Floats:
        v = irfft(x, points)
        v[700] += 0.9 * float(np.linalg.norm(v)) * 8 * math.log2(points) * UNIT
        return v

    monkeypatch.setattr(np.fft, "irfft", changed)
    low, high = convolved(a, b)
    exact = math.fsum((a[:701] * b[700::-1]).tolist())
    assert low[700] <= exact <= high[700]


CASES = [
    (4.0, 2.0**-10, 2, 2.0**-5),
    (4.0, 2.0**-10, 3, 2.0**-5),
    (2.0, 2.0**-13, 2, 2.0**-4),
    (2.0, 2.0**-4, 3, 1.5),
    (1.0, 2.0**-7, 4, 1.0),
    (1.0, 2.0**-9, 2, 4.0),
    (0.5, 2.0**-4, 3, 18.0),
    (0.5, 2.0**-8, 3, 12.0),
]


@pytest.mark.parametrize(("sigma", "rate", "count", "y"), CASES)
def test_few_steps_against_integrals(sigma: float, rate: float, count: int, y: float) -> None:
    lower, upper = _ends(_method(sigma, rate, count), y)
    exact = by_integrals(sigma, rate, count, y)
    assert lower * (1 - ORACLE) <= exact <= upper * (1 + ORACLE)
    assert upper - lower < 5e-5 * upper


@pytest.mark.parametrize(("sigma", "rate", "count", "y"), [(4.0, 2.0**-8, 24, 0.1), (1.0, 2.0**-5, 24, 4.0)])
def test_more_steps_against_fourier_sums(sigma: float, rate: float, count: int, y: float) -> None:
    """Where another method has narrow bounds."""
    found = _method(sigma, rate, count)
    lower, upper = _ends(found, y)
    bounds = PoissonSampled(Gaussian(sigma=Fraction(sigma)), Fraction(rate)) * count
    low, high = (float(x) for x in bounds.delta_bounds(Fraction(y)))
    assert high - low < 1e-8 * high
    assert lower <= high
    assert low <= upper
    assert upper - lower < 2e-3 * upper


def test_coarse_grids_are_wide_and_hold() -> None:
    """Few points: a step of the grid is longer than most losses; the bounds are apart, and hold."""
    for sigma, rate, count, y in [*CASES[1:6:2], (1.0, 2.0**-11, 3, 1.5), (4.0, 2.0**-7, 6, 0.125)]:
        exact = by_integrals(sigma, rate, count, y) if count < 6 else 1.0
        for most in (150, 700):
            found = _method(sigma, rate, count, most)
            if found.points(threshold(Fraction(y))) is None:
                continue
            lower, upper = _ends(found, y)
            assert 0 <= lower < upper < math.inf
            assert count >= 6 or lower * (1 - ORACLE) <= exact <= upper * (1 + ORACLE)


@pytest.mark.parametrize(
    ("count", "epsilon", "exact"),
    [(3, Fraction(1, 32), 1.49602846899e-48), (2, Fraction(1, 32), 8.9097270475e-49)],
)
def test_cases_that_said_nothing(count: int, epsilon: Fraction, exact: float) -> None:
    """Noise 4, rate 1/1024; asked of a composition."""
    found = PoissonSampled(Gaussian(sigma=4), Fraction(1, 1024)) * count
    lower, upper = (float(x) for x in found.delta_bounds(epsilon))
    assert lower * (1 - 2 * ORACLE) <= exact <= upper * (1 + 2 * ORACLE)
    assert upper - lower < 1e-6 * upper
    assert found.explain(epsilon).method == "steps added up on a grid of losses"


def test_what_steps_are_added_up() -> None:
    """One kind of sampled steps, removal, not one alone; nothing else."""
    step, y = PoissonSampled(Gaussian(sigma=4), "0.001"), threshold(Fraction(1, 100))
    alone = TotalLoss.of({step: 10})
    others = [
        TotalLoss.of({step: 10, Gaussian(sigma=4): 1}),
        alone.reversed(),
        TotalLoss.of({step: 1}),
        TotalLoss.of({step: 9999}),
    ]
    for total, applies in ((alone, True), *((other, False) for other in others)):
        rung = LineMethods(total)._ladder.rung_of(float(y.mid()))
        assert (few_steps(total, rung, Effort()) is not None) is applies


def test_many_steps_are_added_up_where_more_effort_is_allowed() -> None:
    total = TotalLoss.of({PoissonSampled(Gaussian(sigma=4), "0.001"): 100})
    rung = LineMethods(total)._ladder.rung_of(0.1)
    asked = PoissonSampled(Gaussian(sigma=4), "0.001") * 100
    found = [few_steps(total, rung, asked.within(seconds).effort) is not None for seconds in (None, 20, 30)]
    assert found == [False, False, True]


def test_a_transform_is_as_long_as_what_it_holds() -> None:
    """Or the end of a convolution would be added to its beginning."""
    lengths = [block_convolution._fast_length(n) for n in range(1, 5000)]
    assert all(length >= n for n, length in enumerate(lengths, start=1))
    assert all(length < 1.25 * n for n, length in enumerate(lengths, start=1) if n > 32)
    for length in (70, 71):  # 160 points, and one more
        x, y = np.zeros(200), np.zeros(200)
        x[:length] = y[:91] = 0.5
        low, high = convolved(x, y)
        exact = np.convolve(x, y)[:200]
        assert (low <= exact).all()
        assert (exact <= high).all()


def test_a_threshold_of_few_digits_is_refused() -> None:
    with precision(BITS), pytest.raises(AccuracyError, match="too few digits"):
        _method(4.0, 2.0**-10, 3).one(arb(2.0**-5, 2.0**-60))


def test_thresholds_out_of_reach() -> None:
    """Nothing is said beyond outputs of 36 deviations and where a grid would be too coarse, by name."""
    for found, y in ((_method(4.0, 2.0**-10, 3), 5.0), (_method(0.5, 2.0**-4, 3, 100), 18.0)):
        with pytest.raises(AccuracyError):
            _ends(found, y)


def test_a_measure_that_cannot_be_had_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tail falls by more than the step of the grid allows, the lower bound is 0."""
    monkeypatch.setattr(method, "_LONGEST_STEP", math.inf)
    step = _step(2.0, 0.25)
    with precision(BITS):
        coarse = arb(12.0) / 10
        cells: StepCells = step.cells(coarse, 9)
        below = lines(cells, step.tail(coarse, 8), 4)
    assert not below.finite.any()
    assert below.infinite == 0


def test_no_more_is_taken_from_the_tail_than_is_near_the_last_point() -> None:
    step, points = _step(2.0, 0.25), 400
    with precision(BITS):
        fine = arb(0.6) / (2 * points + 2)
        cells = step.cells(fine, 2 * points + 1)
        usual = lines(cells, step.tail(fine, 2 * points), points)
        cells.low[0, 2 * points] = 0.0
        careful = lines(cells, step.tail(fine, 2 * points), points)
    assert usual.finite[:-1].any()
    assert not careful.finite[:-1].any()
    assert careful.finite[-1] >= usual.finite[-1]


@pytest.mark.soak
def test_many_few_steps_against_integrals() -> None:
    rng = random.Random(11)
    asked = 0
    while asked < 150:
        sigma, rate = rng.choice([0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]), 2.0 ** -rng.randint(4, 13)
        count, deep = rng.choice([2, 2, 2, 3, 3, 4, 5, 6]), math.sqrt(4.6 * rng.uniform(3, 100))
        loss = math.log1p(rate * math.expm1(deep / sigma - 0.5 / sigma**2)) * rng.uniform(0.6, 1)
        y = math.ldexp(round(loss * 2**24), -24)
        if not y > 0:
            continue
        asked += 1
        lower, upper = _ends(_method(sigma, rate, count, 1 << rng.randint(9, 15)), y)
        exact = by_integrals(sigma, rate, count, y)
        assert lower * (1 - 1e-10) <= exact <= upper * (1 + 1e-10), (sigma, rate, count, y)
