"""A lattice and a list: all values of coarse noise with decimal budgets, against every value in fixed point."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import ModuleType

import mpmath
import numpy as np
import pytest
from flint import arb

from any_oracle import listed
from exactdp import Composition, DiscreteGaussian, DiscreteLaplace
from exactdp.balls import BITS, precision
from exactdp.brackets import Bounds, Bracket
from exactdp.engine.effort import Effort
from exactdp.engine.line import lattice_bins, lattice_list, light_values
from exactdp.engine.line.common_lattice import divided
from exactdp.engine.line.enumeration import Enumeration, ListedValues
from exactdp.engine.line.lattice_bins import LatticeBins, ListCells, even_step, heaviest
from exactdp.engine.line.lattice_list import (
    TILT,
    HalfTilts,
    LatticeLists,
    is_even,
    lattice_values,
    listed_values,
    lists_suit,
    values_of_each,
)
from exactdp.engine.line.light_values import (
    LightValues,
    heavy_and_light,
    joined_but_for,
    points_within,
    shares,
    split_error,
)
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.suffix_sums import BLOCK, even_suffix_sums, suffix_sums
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.mechanisms.loss import Atoms

Counts = dict[DiscreteGaussian, int]
DECIMAL = {DiscreteGaussian(1 / Fraction(budget)): n for budget, n in (("0.61", 2), ("0.87", 1))}
SMALL = {DiscreteGaussian("0.3"): 3}
"""On a lattice; each with something that is not."""
OTHERS = {DiscreteGaussian("7/9", 2): 1}
SEVERAL = {DiscreteGaussian(1 / Fraction("1.4505")): 1, DiscreteGaussian(1 / Fraction("0.8015")): 2}
EPSILONS = [Fraction(x) for x in ("0", "0.4", "1.9999", "2", "3.17", "6.5", "11.3", "17", "24.96")]


def _lists(on: Counts, off: Counts, step: Fraction = Fraction(1, 100)) -> LatticeLists:
    """The lists of a composition, divided as told."""
    parts = TotalLoss.of(on).parts
    each = values_of_each(list(TotalLoss.of(off).parts)) or pytest.fail("no values")
    rest = listed_values(each, 1_000_000, 1e-15)
    lattice = lattice_values([(p, int((p.loss.step or 0) / step)) for p in parts], step)
    assert rest is not None
    assert lattice is not None
    return LatticeLists(TotalLoss.of({**on, **off}), rest, lattice)


def _by(method: type, lists: LatticeLists, e: Fraction) -> tuple[Bracket, Payoff]:
    """The answer at one epsilon by lists, asked one value at a time or counted by cells."""
    rung = lists.tilts.rung_of(float(e))
    found = lists.under(rung)
    if not isinstance(found, method):  # too short to be counted
        anchor = replace(lists.rest, anchor=lists.rest.anchor + rung.index * _apart(lists.total))
        found = LatticeBins(lists.total, rung, anchor, lists.lattice, lists._cells)
    assert isinstance(found, method)
    return found.evaluate([threshold(e)])[0], rung.payoff


def _apart(total: TotalLoss) -> arb:
    with precision(BITS):
        moved = sum((p.count * p.loss.per_tilt for p in total.parts), Fraction(0))
        return arb(moved.numerator) / moved.denominator


@pytest.mark.parametrize("on", [DECIMAL, SMALL])
@pytest.mark.parametrize("method", [Enumeration, LatticeBins])
def test_lists_hold_the_exact_value(on: Counts, method: type) -> None:
    step = Fraction(1, 100) if on is DECIMAL else Fraction(1, 300)
    lists, truth = _lists(on, OTHERS, step), listed({**on, **OTHERS})
    for e in EPSILONS:
        bracket, payoff = _by(method, lists, e)
        with mpmath.workdps(80):
            exact = truth.worst(e) if payoff is Payoff.DELTA else 1 - truth.worst(e)
            log, error = mpmath.log(exact), truth.error(e) / exact
            low, high = float(bracket.log_lower()[0]), float(bracket.log_upper()[0])
            assert low <= log + error
            assert log - error <= high
            assert high - low < 1e-10


@cache
def _in_balls() -> dict[Fraction, Bounds]:
    balls = Composition({**DECIMAL, **SEVERAL})
    return {e: balls.delta_bounds(e, digits=20) for e in EPSILONS}


@pytest.mark.parametrize("method", [Enumeration, LatticeBins])
def test_lists_hold_what_balls_find(method: type) -> None:
    """More mechanisms than brute force can list, against the Fourier sum in balls."""
    lists = _lists(DECIMAL, SEVERAL)
    for e in EPSILONS:
        bracket, payoff = _by(method, lists, e)
        low, high = _in_balls()[e]
        exact = [low, high] if payoff is Payoff.DELTA else [1 - high, 1 - low]
        assert float(bracket.log_lower()[0]) <= math.log(exact[1]) + 1e-15
        assert math.log(exact[0]) - 1e-15 <= float(bracket.log_upper()[0])
        assert bracket.width()[0] < 1e-10


@pytest.mark.parametrize("method", [Enumeration, LatticeBins])
def test_a_threshold_on_a_value_of_the_loss(method: type) -> None:
    """Where the loss has an atom on the threshold, to the last digit: what asks for either point next to it finds the same."""
    lists, truth = _lists(DECIMAL, SMALL), listed({**DECIMAL, **SMALL})
    centre = sum((p.count * (p.loss.per_tilt or 0) / 2 for p in lists.total.parts), Fraction(0))
    for value in (
        centre + Fraction("0.61"),
        centre + Fraction("0.87") * 3,
        centre + Fraction(10, 3) - Fraction("0.61"),
    ):
        bracket, payoff = _by(method, lists, value)
        assert payoff is Payoff.DELTA
        with mpmath.workdps(80):
            exact = mpmath.log(truth.worst(value))
            assert float(bracket.log_lower()[0]) <= exact + truth.error(value)
            assert exact - truth.error(value) <= float(bracket.log_upper()[0])
        assert bracket.width()[0] < 1e-10


@pytest.mark.parametrize("sigma2", ["0.07", "0.8", "13/7"])
@pytest.mark.parametrize("sensitivity", [1, 2, 3])
def test_one_more_unit_of_tilt_moves_a_discrete_gaussian(sigma2: str, sensitivity: int) -> None:
    """What lets one pair of lists serve every threshold."""
    loss = DiscreteGaussian(sigma2, sensitivity).loss()
    base = loss.tilted(TILT)
    for k in range(1, 5):
        moved = loss.tilted(TILT + k)
        one, two = base.atoms(1e-20), moved.atoms(1e-20)
        assert one is not None
        assert two is not None
        assert np.array_equal(one.positions, two.positions)
        assert np.array_equal(one.weights, two.weights)
        with precision(BITS):
            apart = k * loss.per_tilt
            assert (moved.anchor - base.anchor).overlaps(arb(apart.numerator) / apart.denominator)
    assert DiscreteLaplace(2).loss().per_tilt is None


def test_tilts_are_those_of_the_nearest_mean() -> None:
    tilts = HalfTilts(4.0)
    assert [tilts.rung_of(y).index for y in (0.0, 1.9, 2.1, 5.9, 6.1, 41.0)] == [0, 0, 1, 1, 2, 10]
    assert [tilts.rung_of(y).payoff for y in (1.9, 2.1)] == [Payoff.COMPLEMENT, Payoff.DELTA]
    assert tilts.rung_of(6.1).tilt == Fraction(3, 2)
    for y in (0.0, 1.9, 2.0, 7.3):
        assert tilts.rung_of(y).low <= y <= tilts.rung_of(y).high


@pytest.mark.parametrize("part", ["rest", "lattice"])
@pytest.mark.parametrize("kind", ["values", "probabilities", "missing", "absolute"])
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("e", ["0.4", "3.17", "11.3"])
def test_lists_may_be_as_wrong_as_they_say(part: str, kind: str, sign: int, e: str) -> None:
    """Theorem 13, counted by cells: errors of the stated size stay inside the bounds, which are not much wider than that."""
    lists, size = _lists(DECIMAL, SEVERAL), 1e-6
    right: ListedValues = getattr(lists, part)
    changed = {
        "values": {"values": right.values + sign * size, "value_error": right.value_error + size},
        "probabilities": {"weights": right.weights * (1 + sign * size), "relative": right.relative + size},
        "missing": {"weights": right.weights * (1 - size), "missing": right.missing + size},
        "absolute": {
            "weights": np.maximum(right.weights + sign * size / len(right.weights), 0.0),
            "absolute": right.absolute + size,
        },
    }[kind]
    wrong = replace(lists, **{part: replace(right, **changed)})
    exact, _ = _by(LatticeBins, lists, Fraction(e))
    found, _ = _by(LatticeBins, wrong, Fraction(e))
    assert found.lower[0] <= exact.upper[0]
    assert exact.lower[0] <= found.upper[0]
    assert found.upper[0] - found.lower[0] <= 60 * size


@pytest.mark.parametrize("sign", [-1, 1])
def test_errors_of_values_count_where_the_mass_above_is_far_larger_than_delta(sign: int) -> None:
    """A threshold just below the one value of a loss: what moves the value by a tenth of that moves delta by a tenth."""
    lists, gap, size = _lists(DECIMAL, OTHERS), 1e-5, 1e-6
    rung = lists.tilts.rung_of(7.0)
    middle = len(lists.lattice.values) // 2
    lattice = replace(lists.lattice, weights=np.eye(1, len(lists.lattice.values), middle)[0])
    with precision(BITS):
        anchor = lists.rest.anchor + rung.index * _apart(lists.total)
        y = anchor + lattice.anchor + arb(float(lattice.values[middle])) - arb(gap)
    found = []
    for move in (0.0, sign * size):
        rest = ListedValues(anchor, np.array([move]), np.ones(1), abs(move), 0.0, 0.0)
        found.append(
            LatticeBins(lists.total, rung, rest, lattice, ListCells.of(rest, even_step(lattice))).evaluate([y])[0]
        )
    assert found[0].width()[0] < 1e-6
    assert found[1].lower[0] <= found[0].upper[0]
    assert found[0].lower[0] <= found[1].upper[0]
    assert found[1].upper[0] <= 1.5 * found[0].upper[0]


@pytest.mark.parametrize("index", [0, 1, 3])
def test_values_are_counted_on_the_right_side_of_every_threshold(monkeypatch: pytest.MonkeyPatch, index: int) -> None:
    """Slices of a cell before the threshold's own, after it, and its own value by value: against every value with every point."""
    monkeypatch.setattr(lattice_bins, "_SLICED", 30)
    lists = _lists(DECIMAL, OTHERS)
    step, points = even_step(lists.lattice), lists.lattice
    values = np.sort(np.random.default_rng(3).uniform(-1, 1, 450))
    rest = ListedValues(arb(0), values, np.full(450, 1 / 450), 0.0, 0.0, 0.0)
    light = LightValues(0.5, -70, np.random.default_rng(5).uniform(0, 1e-3, 90))
    cells = ListCells.of(rest, step, light)
    assert cells.slices == 15
    assert (np.diff(cells.begins) > 0).all()
    rung = lists.tilts.rung_of(index * lists.tilts.apart)
    bins = LatticeBins(lists.total, rung, rest, points, cells)
    lam, every = float(rung.tilt), np.append(values, (np.arange(90) - 70) * step)
    weights = np.append(rest.weights, light.weights)
    for into in (0.0, step / 3, step / 15, *np.random.default_rng(4).uniform(0, step, 4)):
        with precision(BITS):
            y = points.anchor + arb(index * lists.tilts.apart + into)
        found, _ = bins.evaluate([y])
        u = np.add.outer(every, points.values) - float((y - points.anchor).mid())
        gain = np.exp(-lam * u) * np.where(u > 0, -np.expm1(-u), 0.0)
        if index == 0:
            gain = np.exp(-lam * u) * np.minimum(1.0, np.exp(-u))
        truth = float(weights @ gain @ points.weights)
        assert found.upper[0] == pytest.approx(truth, rel=1e-10)
        assert found.lower[0] == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("tilt", [0.0, 0.5, 2.5])
def test_splitting_a_value_keeps_two_exponential_moments(tilt: float) -> None:
    step, inside = 0.03, np.linspace(0, 0.03, 7)
    lower, upper = shares(inside, step, tilt)
    assert (lower >= 0).all()
    assert (upper >= 0).all()
    for s in (tilt, tilt + 1):
        assert lower + upper * math.exp(-s * step) == pytest.approx(np.exp(-s * inside), rel=1e-14)


@pytest.mark.parametrize("split_tilt", [0.0, 1.5])
@pytest.mark.parametrize("tilt", [-0.5, 0.5, 1.5, 3.5, 9.5])
def test_splitting_a_value_costs_at_most_its_bound(tilt: float, split_tilt: float) -> None:
    """One value against a payoff with its kink anywhere; the bound is not far above the worst of them."""
    step, inside = 0.01, np.linspace(0, 0.01, 41)
    lower, upper = shares(inside, step, split_tilt)

    def payoff(u: np.ndarray) -> np.ndarray:
        if tilt < 0:
            return np.exp(-tilt * u) * np.minimum(1.0, np.exp(-u))
        return np.exp(-tilt * u) * np.where(u > 0, -np.expm1(-np.maximum(u, 0.0)), 0.0)

    def worst(starts: np.ndarray) -> float:
        x, at = inside[:, None], starts[None, :]
        split = lower[:, None] * payoff(0 - at) + upper[:, None] * payoff(step - at)
        return float(np.max(np.abs(split - payoff(x - at))))

    smooth, kink = split_error(step, tilt, split_tilt, 0.0), split_error(step, tilt, split_tilt, 1.0)
    for starts in (np.linspace(-1, 0, 60), np.linspace(step, 1, 60)):  # all of the cell on one side of the kink
        assert worst(starts) <= smooth + 1e-15
    assert max(worst(np.linspace(-1, 0, 60)), worst(np.linspace(step, 1, 60))) >= smooth / 8 - 1e-15
    assert kink / 2 <= worst(np.linspace(0, step, 41)) <= kink


def test_what_is_split_is_all_that_is_not_listed() -> None:
    """Every exponential moment that splitting keeps is that of all sums together."""
    each = values_of_each(list(TotalLoss.of({**SEVERAL, **OTHERS}).parts)) or pytest.fail("no values")
    step, tilt = 0.002, 0.0
    for cut in (1e-2, 1e-5):
        heavy, light = heavy_and_light(each, step, tilt, cut, 1_000_000) or pytest.fail("too many values")
        assert 0.1 * cut < light.weights.sum() <= cut * 1.001
        assert light.weights.sum() <= light.split <= 6 * cut
        places = (light.low + np.arange(len(light.weights))) * step
        for s in (tilt, tilt + 1):
            truth = math.prod(math.fsum(v.weights * np.exp(-s * v.values)) for v in each)
            listed_sum = math.fsum(heavy.weights * np.exp(-s * heavy.values))
            found = listed_sum + math.fsum(light.weights * np.exp(-s * places))
            assert found == pytest.approx(truth, rel=1e-8)  # a mass of 1e-18 or so is left out, far away
            assert listed_sum < truth * (1 - cut / 100)
        assert heavy.missing < 1e-15
    assert heavy_and_light(each, step, tilt, 1e-5, 10) is None


@pytest.mark.parametrize("cut", [1e-3, 1e-6])
def test_lists_with_split_values_hold_what_balls_find(cut: float) -> None:
    """Theorem 13, light values: bounds hold, and are as wide as so much mass allows."""
    lists = _lists(DECIMAL, SEVERAL)
    each = values_of_each(list(TotalLoss.of(SEVERAL).parts)) or pytest.fail("no values")
    heavy, light = heavy_and_light(each, even_step(lists.lattice), 0.5, cut, 100_000) or pytest.fail("too many")
    assert len(heavy.values) < len(lists.rest.values) / 2
    split = replace(lists, rest=heavy, light=light, each=tuple(each))
    for e in EPSILONS:
        bracket, payoff = _by(LatticeBins, split, e)
        low, high = _in_balls()[e]
        exact = [low, high] if payoff is Payoff.DELTA else [1 - high, 1 - low]
        assert float(bracket.log_lower()[0]) <= math.log(exact[1]) + 1e-15
        assert math.log(exact[0]) - 1e-15 <= float(bracket.log_upper()[0])
        assert bracket.width()[0] < 10 * cut


def test_split_values_are_moved_by_no_more_than_they_say() -> None:
    """All probability of a list split, at thresholds where the kink is in the middle of the cells: the error is next to the
    bound."""
    lists = _lists(DECIMAL, OTHERS)
    rung, step = lists.tilts.rung_of(7.0), even_step(lists.lattice)
    middle = len(lists.lattice.values) // 2
    lattice = replace(lists.lattice, weights=np.eye(1, len(lists.lattice.values), middle)[0])
    assert heaviest(lattice) >= 1
    rest = ListedValues(arb(0), np.array([step / 2]), np.array([1e-300]), 0.0, 0.0, 0.0)
    lower, upper = shares(np.array([step / 2]), step, 0.5)
    light = LightValues(0.5, 0, np.array([lower[0], upper[0]]), 1.0)
    bins = LatticeBins(lists.total, rung, rest, lattice, ListCells.of(rest, step, light))
    with precision(BITS):
        y = lattice.anchor + arb(float(lattice.values[middle])) + arb(step / 2 - 1e-9)
    bracket, _ = bins.evaluate([y])
    exact = -math.expm1(-1e-9) * math.exp(-float(rung.tilt) * 1e-9)
    assert bracket.lower[0] <= exact <= bracket.upper[0]
    assert bracket.upper[0] - bracket.lower[0] < step


def test_tilts_for_which_splitting_is_too_coarse_use_the_whole_list(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _lists(DECIMAL, OTHERS)
    each = values_of_each(list(TotalLoss.of(OTHERS).parts)) or pytest.fail("no values")
    both = heavy_and_light(each, even_step(whole.lattice), 0.5, 1e-3, 1000) or pytest.fail("too many values")
    split = LatticeLists(whole.total, both[0], whole.lattice, both[1], tuple(each))
    rung = whole.tilts.rung_of(7.0)
    assert isinstance(split.under(rung), LatticeBins)
    monkeypatch.setattr(lattice_list, "MOST_STEP", 1e-3)
    again = LatticeLists(whole.total, both[0], whole.lattice, both[1], tuple(each)).under(rung)
    assert isinstance(again, Enumeration)
    one, two = (m.evaluate([threshold(Fraction(7))])[0] for m in (again, whole.under(rung)))
    assert one.lower[0] <= two.upper[0]
    assert two.lower[0] <= one.upper[0]
    assert one.width()[0] < 1e-9


LONGER = {DiscreteGaussian(1 / Fraction(b)): 1 for b in ("1.637", "1.082", "1.367", "1.321")} | {
    DiscreteGaussian(s): 1 for s in ("10/13", "13/19", "17/23", "19/29", "22/31")
}
"""With a list that is longer than its lattice."""


@pytest.mark.parametrize("room", [light_values, lattice_list], ids=["found out", "known before"])
def test_where_light_values_need_too_many_points_all_are_listed(
    room: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lattice_list, "_FEW_LISTED", 100.0)
    split = LineMethods(TotalLoss.of(LONGER))
    assert split._lists is not None
    assert split._lists.light is not None
    monkeypatch.setattr(room, "MOST_POINTS", 10)
    whole = LineMethods(TotalLoss.of(LONGER))
    assert whole._lists is not None
    assert whole._lists.light is None
    one, two = (methods.points([threshold(Fraction(7))]).delta for methods in (split, whole))
    assert one.log_lower()[0] <= two.log_upper()[0]
    assert two.log_lower()[0] <= one.log_upper()[0]
    assert max(one.width()[0], two.width()[0]) < 1e-10


def test_a_tilt_for_which_no_list_is_short_enough_is_left_to_other_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice_list, "_FEW_LISTED", 100.0)
    monkeypatch.setattr(lattice_list, "MOST_LISTED", 10)
    monkeypatch.setattr(lattice_list, "MOST_STEP", lattice_list.MOST_STEP / 16)
    found = LineMethods(TotalLoss.of(LONGER)).points([threshold(Fraction(100))]).delta
    assert -math.inf < found.log_lower()[0] <= found.log_upper()[0] < -300


def test_what_is_left_out_of_a_list_is_counted() -> None:
    """Every sum is in the list, or its probability is in `missing`."""
    one, two = (
        ListedValues(arb(0), np.arange(n) * 1.0, weights / weights.sum(), 0.0, 0.0, 0.0)
        for n in (40, 50)
        for weights in (np.exp(-((np.arange(n) - n / 2) ** 2) / 9),)
    )
    for cut in (1e-2, 1e-6, 1e-12):
        found = joined_but_for(one, two, cut, 10_000) or pytest.fail("too many values")
        left = 1 - math.fsum(found.weights)
        assert left <= found.missing * (1 + 1e-6) + 1e-14
        assert found.missing <= cut * (1 + 1e-6)
        assert found.missing > cut / 1000  # not far more than necessary is listed
        assert len(found.values) < 2000
    assert joined_but_for(one, two, 1e-12, 10) is None


def test_the_ends_of_a_lattice_that_are_left_out_are_counted() -> None:
    weights = np.exp(-(np.arange(-300, 301) ** 2) / 3000.0)
    weights /= weights.sum()
    for cut in (1e-3, 1e-9):
        low, high, lost = lattice_list._ends(weights, cut)
        assert math.fsum(weights[:low]) + math.fsum(weights[high:]) <= lost <= 2 * cut * (1 + 1e-6)
        assert 0 < low < high < len(weights)


@pytest.mark.parametrize("n", [3, BLOCK, 5 * BLOCK + 77])
def test_how_many_points_add_up_to_a_mass(n: int) -> None:
    weights = np.exp(-np.linspace(40, 0, n))
    for mass in (1e-30, 1e-12, float(weights[: n // 2].sum()), float(weights[:-1].sum()), 2 * n):
        exact = next((i for i in range(n) if math.fsum(weights[: i + 1]) > mass * (1 + 1e-9)), n)
        assert points_within(weights, mass) in (exact, exact - 1)
        assert points_within(weights[::-1].copy()[::-1], mass) == points_within(weights, mass)


@pytest.mark.parametrize("parts", [{"0.61": 2, "0.87": 1}, {"0.61": 3}, {"0.61": 1, "0.87": 1, "1.1": 4}])
def test_a_lattice_of_which_half_is_added_up_is_the_whole_one(
    parts: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    on = TotalLoss.of({DiscreteGaussian(1 / Fraction(budget)): n for budget, n in parts.items()}).parts
    steps = [(p, int((p.loss.step or 0) * 100)) for p in on]
    half = lattice_values(steps, Fraction(1, 100))
    monkeypatch.setattr(lattice_list, "is_even", lambda _: False)
    monkeypatch.setattr(lattice_list, "is_symmetric", lambda _: False)
    whole = lattice_values(steps, Fraction(1, 100))
    assert half is not None
    assert whole is not None
    assert half.weights.tolist() == half.weights[::-1].tolist()
    values = {round(x * 100): w for x, w in zip(whole.values.tolist(), whole.weights.tolist(), strict=True)}
    for x, w in zip(half.values.tolist(), half.weights.tolist(), strict=True):
        assert w == pytest.approx(values.get(round(x * 100), 0.0), rel=1e-13, abs=1e-17)
    assert math.fsum(half.weights) + half.missing >= math.fsum(whole.weights) * (1 - 1e-13)


@pytest.mark.parametrize(
    "weights", [[0.2, 0.5, 0.3], [1e-22, 0.3, 0.4, 0.3], [0.3, 0.4, 0.3, 1e-22], [0.1, 0.3, 0.4, 0.3]]
)
def test_a_value_without_a_counterpart_is_left_out_where_it_is_negligible(weights: list[float]) -> None:
    atoms = Atoms(np.arange(len(weights)), np.array(weights), 0.0, 0.0)
    found = lattice_list._evenly_cut(atoms)
    assert is_even(found) == (1e-22 in weights)
    assert len(weights) - len(found.weights) == (1e-22 in weights)
    assert found.missing == pytest.approx(1e-22 * (1e-22 in weights), rel=1e-6, abs=0)
    apart = replace(atoms, positions=atoms.positions**2)
    assert lattice_list._evenly_cut(apart) is apart


@pytest.mark.parametrize("n", [3, BLOCK, BLOCK + 1, 5 * BLOCK + 77])
@pytest.mark.parametrize("s", [0.5, 3.0])
def test_suffix_sums_are_sums(n: int, s: float) -> None:
    rng = np.random.default_rng(n)
    w = rng.uniform(0, 1, n) ** 8
    for x in (np.arange(n) * 1e-3, np.sort(rng.uniform(0, 9, n)), np.sort(rng.uniform(0, 900, n))):
        found = suffix_sums(x, w, s)
        for i in {0, n // 2, n - 1, max(n - BLOCK, 0), max(n - BLOCK - 1, 0)}:
            assert found[i] == pytest.approx(math.fsum(w[i:] * np.exp(-s * (x[i:] - x[i]))), rel=1e-12)
    found = even_suffix_sums(w, 1e-3, s)
    assert found == pytest.approx(suffix_sums(np.arange(n) * 1e-3, w, s), rel=1e-12)


def test_which_mechanisms_share_a_lattice() -> None:
    budgets = ("0.637", "1.082", "1.367", "1.321", "1.282", "0.577")
    decimal = {DiscreteGaussian(1 / Fraction(b)): 1 + i % 2 for i, b in enumerate(budgets)}
    mixed = {**decimal, **OTHERS}
    division = divided(TotalLoss.of(mixed)) or pytest.fail("no division")
    assert division.step == Fraction(1, 1000)
    assert division.strides == (637, 1082, 1367, 1321, 1282, 577, 0)
    lists = LatticeLists.plan(TotalLoss.of(mixed), division, Effort().looks) or pytest.fail("no lists")
    assert division.points / 2 < len(lists.lattice.values) < 2 * division.points
    assert division.listed / 2 < len(lists.rest.values) < 2 * division.listed
    assert lists.light is None
    assert LatticeLists.plan(TotalLoss.of(mixed), division, 1000) is None  # more than may be looked at
    assert divided(TotalLoss.of({**mixed, DiscreteLaplace(2): 1})) is None
    fine = {DiscreteGaussian(Fraction(10**6 + 7 * i * i, 10**6 + i)): 1 for i in range(14)}
    assert divided(TotalLoss.of(fine)) is None  # fourteen dimensions are too many for a list
    assert lists_suit(TotalLoss.of({DiscreteGaussian("0.01"): 1})) is None  # tilts that are 1 apart are too far apart
    assert lists_suit(TotalLoss.of({m: 100 * n for m, n in decimal.items()})) is None  # few nodes of a sum matter


def test_lists_serve_every_threshold_whatever_was_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice_list, "_FEW_LISTED", 100.0)  # counted by cells
    ys = [threshold(e) for e in EPSILONS]
    methods = LineMethods(TotalLoss.of(LONGER))
    together = methods.points(ys).rows()
    assert "in two halves" in str(methods.used(ys[3]).rows)
    for i in range(0, len(ys), 2):
        alone = LineMethods(TotalLoss.of(LONGER)).points([ys[i]]).rows()
        assert [row[i] for row in together] == [row[0] for row in alone]


def test_a_value_without_probability_is_left_out() -> None:
    each = values_of_each(list(TotalLoss.of(OTHERS).parts)) or pytest.fail("no values")
    listed_one = each[0]
    with_more = replace(
        listed_one, values=np.append(listed_one.values, 40.0), weights=np.append(listed_one.weights, 0.0)
    )
    for one, two in ((listed_one, with_more), (with_more, listed_one)):
        found = joined_but_for(one, two, 1e-15, 10**6)
        plain = joined_but_for(listed_one, listed_one, 1e-15, 10**6)
        assert found is not None
        assert plain is not None
        assert sorted(found.values) == sorted(plain.values)
        assert found.missing == pytest.approx(plain.missing, rel=1e-6)
