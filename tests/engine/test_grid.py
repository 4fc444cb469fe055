"""The grid method: splitting and testing on a grid, each term of its error account, against exact values."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

from any_cases import CASES, Counts, case_of, holds, total_of
from any_oracle import number
from exactdp import Composition, DiscreteGaussian, Gaussian, Outcomes, RandomizedResponse
from exactdp.brackets import Bracket
from exactdp.engine.grid.convolution import LossGrid, Transform, product
from exactdp.engine.grid.grid_fft import GridFFT, expected_width
from exactdp.engine.grid.lists import Copies, joined, listed_copies
from exactdp.engine.grid.splitting import log_growth, split
from exactdp.engine.grid.window import needed_length
from exactdp.engine.line.enumeration import ListedValues
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.tilts import Ladder, LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from halves_oracle import ERROR, Halves, halves
from strategies import seeds


def _listed(values: list[float], weights: list[float]) -> ListedValues:
    return ListedValues(arb(0), np.array(values), np.array(weights), 0.0, 0.0, 0.0)


def _on(total: TotalLoss, rung: LineRung, points: int, longest: int = 1 << 17, stretch: float = 1.0) -> GridFFT:
    """On a grid of so many points, `stretch` times as long as it should be."""
    lists = listed_copies(total, rung.tilt, longest)
    assert lists is not None
    splits = sum(c.count for c in lists)
    length = stretch * needed_length(total, rung)
    grid = LossGrid.covering(length * (1 + 2 * (splits + 4) / points), rung.tilt, points)
    return GridFFT(total, rung, product([Transform.of_list(grid, copies) for copies in lists]))


# --- splitting --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tilt", [-0.5, -0.01, 0.3, 7.0])
def test_a_split_value_keeps_its_probability_under_both_data_sets(tilt: float) -> None:
    rng = random.Random(round(100 * tilt))
    step = 0.0078125
    for x in [0.0, step, -3 * step, *(rng.uniform(-1, 1) for _ in range(40))]:
        found = split(_listed([x], [1.0]), tilt, step, 8)
        with mpmath.workdps(40):
            places = [mpmath.mpf((found.start + i) * step) - mpmath.mpf(x) for i in range(8)]
            for shift, kept in ((0, 1), (1, 1)):
                # p e^{-tilt (point - x)} is the probability under P; times e^{-(point - x)} that under Q, relative to x's own
                total = mpmath.fsum(
                    mpmath.mpf(p) * mpmath.exp(-(tilt + shift) * u) for p, u in zip(found.p, places, strict=True)
                )
                assert abs(total - kept) <= found.relative
            for p, q, u in zip(found.p, found.q, places, strict=True):  # one kernel: the same shares in both vectors
                assert abs(mpmath.mpf(q) - mpmath.mpf(p) * mpmath.exp(u)) <= found.relative * q
        assert np.count_nonzero(found.p) <= 2
        assert found.p.min() >= 0


def test_a_value_on_the_grid_stays_where_it_is() -> None:
    found = split(_listed([0.25, 0.5], [0.5, 0.5]), 1.0, 0.125, 8)
    assert found.p.tolist() == found.q.tolist() == [0.5, 0, 0.5, 0, 0, 0, 0, 0]
    assert found.start == 2


@pytest.mark.parametrize("z", [-4.0, -1.0, -0.5, 0.0, 0.7, 30.0])
def test_moves_have_moments_below_their_bound(z: float) -> None:
    h = 0.25
    for s in np.linspace(0, h, 33):
        up = math.expm1(-s) / math.expm1(-h)
        moment = up * math.exp(z * (h - s)) + (1 - up) * math.exp(-z * s)
        assert math.log(moment) <= log_growth(z, h * h) + 1e-14
    assert log_growth(z, h * h) <= (abs(z) + z * z) * h * h / 8


# --- enclosures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in CASES if isinstance(c, str) or c % 2 == 0])
def test_grids_of_any_size_hold_the_exact_value(case: str | int) -> None:
    counts, truth = case_of(case)
    if any(isinstance(m, Gaussian) for m in counts):
        assert GridFFT.plan(total_of(counts), LineRung(Payoff.DELTA, 0, Fraction(1), 0.0, 1.0)) is None
        return
    total = total_of(counts)
    end = total.ends[1]
    for e in (Fraction(1, 4), Fraction(1), Fraction(5, 2)):
        if (end is not None and bool(threshold(e) >= end)) or total.constant is not None:
            continue
        own = Ladder(total).rung_of(float(e))
        exact = _finite(truth.delta(e), number(truth.finite[0]), own.payoff)
        for scale, points, longest in ((1, 1 << 14, 1 << 17), (2, 1 << 11, 50), (1, 1 << 8, 2)):
            factor = Fraction(scale) if own.payoff is Payoff.DELTA else Fraction(1, scale)
            rung = replace(own, tilt=own.tilt * factor)  # any tilt is valid
            try:
                bracket = _on(total, rung, points, longest).evaluate([threshold(e)])[0]
            except AccuracyError:
                assert points < 1 << 14
                continue
            assert holds(bracket, exact, 4 * truth.error(e)), (e, scale, points)
            if points == 1 << 14:
                assert bracket.width()[0] < 1e-2


def _finite(delta: mpmath.mpf, finite: mpmath.mpf, payoff: Payoff) -> mpmath.mpf:
    with mpmath.workdps(120):
        given = (delta - 1 + finite) / finite
        return given if payoff is Payoff.DELTA else 1 - given


def _random_tables(rng: random.Random) -> list[tuple[list[tuple[Fraction, Fraction]], int]]:
    """One or two tables of any values, shifted against themselves or not, with several copies."""
    tables = []
    for _ in range(rng.choice([1, 1, 2])):
        size = rng.randint(2, 12)
        p, q = ([Fraction(rng.randint(1, 10 ** rng.choice([1, 4]))) for _ in range(size)] for _ in range(2))
        if rng.random() < 0.5:
            p, q = [*p, Fraction(0)], [Fraction(0), *p]
        pairs = [(a / sum(p), b / sum(q)) for a, b in zip(p, q, strict=True)]
        copies = rng.randint(1, 6)
        while math.comb(copies // 2 + 1 + len(pairs), len(pairs)) > 400:
            copies -= 1
        tables.append((pairs, copies))
    return tables


def _counts(tables: list[tuple[list[tuple[Fraction, Fraction]], int]]) -> Counts:
    counts: Counts = {}
    for pairs, copies in tables:
        mechanism = Outcomes([a for a, _ in pairs], [b for _, b in pairs])
        counts[mechanism] = counts.get(mechanism, 0) + copies
    return counts


def compare_random_tables(seed: int, thresholds: int) -> tuple[int, list[str]]:
    """How many bounds were compared with the exact value, and which do not hold it."""
    rng = random.Random(seed)
    tables = _random_tables(rng)
    truth, total = halves(tables), total_of(_counts(tables))
    low, high = (float(end.mid()) for end in total.ends if end is not None)
    compared, outside = 0, []
    for _ in range(thresholds):
        e = Fraction(round(rng.uniform(max(low, 0.0), high) if rng.random() < 0.8 else rng.expovariate(1), 6))
        if not 0 <= e < Fraction(high) - Fraction(1, 10**9) or total.constant is not None:
            continue
        rung = Ladder(total).rung_of(float(e))
        exact = truth.finite_delta(e)
        exact = exact if rung.payoff is Payoff.DELTA else 1 - exact
        for points, longest in ((1 << rng.randint(8, 13), rng.choice([2, 100, 1 << 17])), (1 << 14, 1 << 17)):
            try:
                bracket = _on(total, rung, points, longest).evaluate([threshold(e)])[0]
            except AccuracyError:
                continue
            compared += 1
            if not holds(bracket, exact, ERROR * mpmath.exp(number(e))):
                outside.append(f"seed {seed}, epsilon {e}, {points} points, lists of {longest}: {bracket} not {exact}")
    return compared, outside


def test_random_tables_against_halves_in_120_digits() -> None:
    found = [compare_random_tables(seed, 4) for seed in range(30)]
    assert [x for _, outside in found for x in outside] == []
    assert sum(compared for compared, _ in found) > 150


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(20))
def test_many_random_tables_against_halves_in_120_digits(batch: int) -> None:
    found = [compare_random_tables(1000 * batch + seed, 12) for seed in range(1, 36)]
    assert [x for _, outside in found for x in outside] == []
    assert sum(compared for compared, _ in found) > 500


def _shifted(weights: list[int]) -> list[tuple[Fraction, Fraction]]:
    total = sum(weights)
    return [(Fraction(a, total), Fraction(b, total)) for a, b in zip([*weights, 0], [0, *weights], strict=True)]


def test_bounds_are_of_second_order_in_the_step() -> None:
    rng = random.Random(5)
    tables = [(_shifted([round(1e5 * math.exp(-x * x / 40)) + rng.randint(1, 500) for x in range(-15, 16)]), 4)]
    truth, total = halves(tables), total_of(_counts(tables))
    e = Fraction("1.37")
    rung = Ladder(total).rung_of(float(e))
    exact = truth.finite_delta(e)
    widths = []
    for points in (1 << 12, 1 << 14, 1 << 16):
        grid = _on(total, rung, points)
        bracket = grid.evaluate([threshold(e)])[0]
        assert holds(bracket, exact, ERROR)
        widths.append(float(bracket.width()[0]))
        assert widths[-1] < 4 * expected_width(grid.grid.step, grid._transform.splits, float(rung.tilt))
        assert widths[-1] > expected_width(grid.grid.step, grid._transform.splits, float(rung.tilt)) / 8
    assert widths[2] < widths[0] / 100  # sixteen times as many points


def test_a_thousand_copies_as_powers_of_one_list() -> None:
    """Binomial numbers: exact, though here each copy is split."""
    n, eps = 1000, Fraction("0.05")
    total = total_of({RandomizedResponse(eps): n})
    with mpmath.workdps(60):
        for e in (Fraction(1), Fraction(6)):
            truth, other = mpmath.exp(number(eps)) / (1 + mpmath.exp(number(eps))), 1 / (1 + mpmath.exp(number(eps)))
            exact = mpmath.fsum(
                mpmath.binomial(n, k) * truth**k * other ** (n - k) * (1 - mpmath.exp(number(e - (2 * k - n) * eps)))
                for k in range(n + 1)
                if (2 * k - n) * eps > e
            )
            rung = Ladder(total).rung_of(float(e))
            grid = _on(total, rung, 1 << 17, longest=1)
            assert grid._transform.splits == n
            found = grid.evaluate([threshold(e)])[0]
            assert holds(found, exact if rung.payoff is Payoff.DELTA else 1 - exact, mpmath.mpf(10) ** -50)
            assert found.width()[0] < 1e-3


def test_delta_of_1e_minus_300() -> None:
    counts: Counts = {DiscreteGaussian("3/2"): 3, DiscreteGaussian("7/5"): 2}
    total = total_of(counts)
    e = Fraction("90.2")
    found = LineMethods(total).grid(Ladder(total).rung_of(90.2))
    assert found is not None
    bracket = found.evaluate([threshold(e)])[0]
    other = LineMethods(total).points([threshold(e)]).delta
    assert float(bracket.log_upper()[0]) < math.log(1e-300)
    assert bracket.width()[0] < 1e-5
    assert other.log_lower()[0] <= bracket.log_upper()[0]
    assert bracket.log_lower()[0] <= other.log_upper()[0]


# --- each term of the error account -----------------------------------------------------------------------------------------

_TABLE = _shifted([1, 5, 9, 13, 7, 3])


def _exact(tables: list[tuple[list[tuple[Fraction, Fraction]], int]]) -> tuple[TotalLoss, Halves]:
    return total_of(_counts(tables)), halves(tables)


@pytest.mark.parametrize("stretch", [0.15, 0.3, 0.5])
@pytest.mark.parametrize("e", [Fraction(0), Fraction("0.4"), Fraction(3)])
def test_a_grid_that_is_too_short_wraps_around_and_says_so(stretch: float, e: Fraction) -> None:
    total, truth = _exact([(_TABLE, 12)])
    own = Ladder(total).rung_of(float(e))
    for payoff, tilt in ((Payoff.DELTA, Fraction(1, 2)), (Payoff.COMPLEMENT, Fraction(-1, 2)), (own.payoff, own.tilt)):
        exact = truth.finite_delta(e)
        exact = exact if payoff is Payoff.DELTA else 1 - exact
        found = _on(total, replace(own, payoff=payoff, tilt=tilt), 1 << 12, stretch=stretch)
        assert holds(found.evaluate([threshold(e)])[0], exact, ERROR)
        assert found._outside(float(e))[0] > 1e-14


@pytest.mark.parametrize("payoff", [Payoff.DELTA, Payoff.COMPLEMENT])
def test_lists_may_be_as_wrong_as_they_say(payoff: Payoff) -> None:
    """Values left out, weights and losses that are off: the bounds hold if the list says so."""
    total, truth = _exact([(_TABLE, 4)])
    e, rung = Fraction("0.3"), Ladder(total).rung_of(0.3)
    tilt = Fraction(1) if payoff is Payoff.DELTA else Fraction(-1, 2)
    rung = replace(rung, payoff=payoff, tilt=tilt)
    exact = truth.finite_delta(e)
    exact = exact if payoff is Payoff.DELTA else 1 - exact
    (copies,) = listed_copies(total, tilt) or ()
    values = copies.values
    order = np.argsort(-values.weights)
    lost = values.weights[order[:3]].sum()

    def at(changed: ListedValues) -> Bracket:
        grid = LossGrid.covering(1.5 * needed_length(total, rung), tilt, 1 << 14)
        return GridFFT(total, rung, Transform.of_list(grid, Copies(changed, 1))).evaluate([threshold(e)])[0]

    few = replace(values, values=values.values[order[3:]], weights=values.weights[order[3:]])
    assert not holds(at(few), exact, ERROR)
    assert holds(at(replace(few, missing=float(lost))), exact, ERROR)
    for sign in (-1, 1):
        off = replace(values, weights=values.weights * (1 + sign * 1e-4))
        assert not holds(at(off), exact, ERROR)
        assert holds(at(replace(off, relative=1.01e-4)), exact, ERROR)
        pushed = replace(values, weights=values.weights + sign * 1e-4 * (np.arange(len(order)) == order[-1]))
        # the one with the largest gain matters; all of it is charged to whatever it is
        assert holds(at(replace(pushed, absolute=1e-4)), exact, ERROR)
        moved = replace(values, values=values.values + sign * 1e-3)
        assert not holds(at(moved), exact, ERROR)
        assert holds(at(replace(moved, value_error=1e-3)), exact, ERROR)


def test_what_transforms_say_of_their_rounding() -> None:
    """The vectors against exact convolutions."""
    rng = random.Random(8)
    values = _listed([rng.uniform(-1, 1) for _ in range(9)], [1 / 9] * 9)
    grid = LossGrid(Fraction(1, 2), 0.03125, 256)
    one = split(values, 0.5, grid.step, grid.points)
    transform = product([Transform.of_list(grid, Copies(values, 3)), Transform.of_list(grid, Copies(values, 2))])
    for v, spectrum, wrong in ((one.p, transform.p, transform.wrong[0]), (one.q, transform.q, transform.wrong[1])):
        exact = [Fraction(0)] * 256
        exact[0] = Fraction(1)
        single = [(i, Fraction(x)) for i, x in enumerate(v.tolist()) if x]
        for _ in range(5):
            longer = [Fraction(0)] * 256
            for k, y in enumerate(exact):
                if y:
                    for i, x in single:
                        longer[(k + i) % 256] += x * y
            exact = longer
        found = np.fft.irfft(spectrum, 256)
        error = math.sqrt(sum(float(Fraction(a) - b) ** 2 for a, b in zip(found.tolist(), exact, strict=True)))
        assert error <= wrong + grid.fft_error * transform.norms[0]
        assert math.sqrt(sum(float(b) ** 2 for b in exact)) <= min(transform.norms)


def test_transforms_against_exact_ones() -> None:
    """Three copies of one list: the cube of its transform, summed term by term in 40 digits."""
    rng = random.Random(9)
    values = _listed([rng.uniform(-1, 1) for _ in range(9)], [1 / 9] * 9)
    grid = LossGrid(Fraction(1, 2), 0.03125, 128)
    one, transform = split(values, 0.5, grid.step, grid.points), Transform.of_list(grid, Copies(values, 3))
    for v, spectrum, wrong in ((one.p, transform.p, transform.wrong[0]), (one.q, transform.q, transform.wrong[1])):
        with mpmath.workdps(40):
            roots = [mpmath.expjpi(-2 * mpmath.mpf(k) / 128) for k in range(128)]
            exact = [mpmath.fdot(v.tolist(), [roots[i * k % 128] for i in range(128)]) ** 3 for k in range(65)]
            error = mpmath.sqrt(
                sum(abs(mpmath.mpc(a) - b) ** 2 for a, b in zip(spectrum.tolist(), exact, strict=True)) / 128
            )
        assert 0 < error <= wrong
        assert wrong < 1e-13


def test_errors_of_lists_add_up() -> None:
    grid = LossGrid(Fraction(1, 2), 0.03125, 128)
    one = replace(_listed([0.0, 0.1], [0.5, 0.5]), relative=1e-6, missing=1e-5, absolute=1e-4, value_error=1e-3)
    alone, cube = (Transform.of_list(grid, Copies(one, n)) for n in (1, 3))
    both = product([alone, cube])
    for name, error in (("relative", 4e-6), ("missing", 4e-5), ("absolute", 4e-4), ("moved", 4e-3)):
        assert getattr(both, name) == pytest.approx(error, rel=1e-5)
    assert both.splits == 4
    assert both.wrong[0] >= alone.wrong[0] + cube.wrong[0]


def test_short_lists_are_joined_and_tables_multiplied() -> None:
    total = total_of({DiscreteGaussian("3/2"): 3, DiscreteGaussian("7/5"): 2, RandomizedResponse(1, 3): 1000})
    lists = listed_copies(total, Fraction(1, 2))
    assert lists is not None
    assert [c.count for c in lists] == [1]  # all copies of each are on a lattice of their own
    table = listed_copies(total_of(_counts([(_TABLE, 100)])), Fraction(1, 2), 200)
    assert table is not None
    assert [(c.count, len(c.values.values)) for c in table] == [(1, 5), (33, 125)]
    one = [_listed([0.0, 1.0], [0.5, 0.5])] * 5
    assert sorted(len(v.values) for v in joined(one, 8)) == [4, 8]


def test_what_the_grid_cannot_do_is_refused() -> None:
    with pytest.raises(AccuracyError, match="too coarse"):
        Transform.of_list(LossGrid(Fraction(10), 0.125, 256), Copies(_listed([0.0], [1.0]), 1))
    with pytest.raises(AccuracyError, match="so many copies"):
        Transform.of_list(LossGrid(Fraction(1), 0.001, 256), Copies(_listed([0.0, 0.1], [0.5, 0.5]), 10**11))
    with pytest.raises(AccuracyError, match="too many mechanisms"):
        GridFFT.plan(total_of(_counts([(_TABLE, 10**7)])), LineRung(Payoff.DELTA, 0, Fraction(1, 2), 0.0, 1.0), 1 << 14)


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_coarse_designs_against_the_sieve(seed: int) -> None:
    """About ten groups of discrete Gaussians: too many values to list, most nodes matter."""
    rng = random.Random(seed)
    counts: Counts = {DiscreteGaussian(f"{rng.uniform(1, 4):.2f}"): rng.randint(1, 2) for _ in range(9)}
    total = total_of(counts)
    mean, variance = total.mean_variance(0.0)
    for deviations in (0.5, 4.0):
        e = Fraction(round(mean + deviations * math.sqrt(variance), 3))
        bracket = LineMethods(total).grid(Ladder(total).rung_of(float(e)))
        assert bracket is not None
        found = bracket.evaluate([threshold(e)])[0]
        exact = Composition(counts).delta_bounds(e)
        assert found.width()[0] < 1e-7
        assert found.lower_floats()[0] <= exact.upper
        assert exact.lower <= found.upper_floats()[0]
