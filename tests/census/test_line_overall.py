"""Overall guarantees of designs without a common lattice: shared contours on the line against every pair asked by itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import exactdp.accounting.line_pairs
import exactdp.accounting.shared_pairs
import exactdp.census.overall
from exactdp import Composition, DiscreteGaussian
from exactdp.accounting import line_pairs
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.planner import only_lists_answer
from exactdp.accounting.tradeoff_dual import curve_from_profile
from exactdp.balls import ball, precision
from exactdp.brackets import Bracket, Point
from exactdp.census.envelope import Extremes
from exactdp.census.overall import Overall
from exactdp.engine.family.line_contours import LineFamily


def family(kind: str, members: int = 4) -> LineFamily:
    """Members with fractions that share no lattice; with different totals where `kind` says so."""
    found = []
    for i, p in enumerate((1009, 1013, 1019, 1021)[:members]):
        weights = [
            Fraction(300 - 20 * i, p),
            Fraction(251, p + 2),
            *[Fraction(197 + i, 997)] * 4,
            *[Fraction(113, p + 4)] * 6,
        ]
        weights.append(Fraction(5, 2) - sum(weights) if kind == "same" else Fraction(2 + i, 30))
        found.append({DiscreteGaussian(1 / w): weights.count(w) for w in sorted(set(weights))})
    return LineFamily(tuple(found), tuple((i, j) for i in range(members) for j in range(i, members)))


def compositions(f: LineFamily) -> list[Composition]:
    return [Composition(f.composition(p)) for p in range(len(f.pairs))]


@pytest.mark.parametrize("kind", ["same", pytest.param("different", marks=pytest.mark.soak)])
def test_overall_epsilon_delta_beta_and_curve(kind: str) -> None:
    f = family(kind)
    overall, alone = Overall(LinePairs(f)), compositions(f)
    low, high = overall.epsilon(Fraction("1e-10"))
    each = [c.epsilon_bounds("1e-10") for c in alone]
    assert low <= max(b.upper for b in each)
    assert max(b.lower for b in each) <= high
    assert high - low < 1e-10 * high
    low, high = overall.delta(Fraction(3))
    each = [c.delta_bounds(3) for c in alone]
    assert low <= max(b.upper for b in each)
    assert max(b.lower for b in each) <= high <= low * (1 + 1e-10)
    low, high = overall.beta(Fraction(1, 20))
    assert low <= min(c.beta_bounds("0.05").upper for c in alone[::4])
    assert high >= max(1 - max(c.delta(e) for c in alone[::3]) - math.exp(e) / 20 for e in (1, 1.5, 2))
    assert high - low < 1e-9 * high
    curve = overall.curve(21)
    assert curve.beta[0] == 1
    assert (np.diff(curve.beta) <= 0).all()
    narrow = curve_from_profile(overall.worst, overall._reach, 21)  # with delta narrow everywhere
    assert curve.alpha.tolist() == narrow.alpha.tolist()
    np.testing.assert_allclose(curve.beta, narrow.beta, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(curve.beta, narrow.beta, rtol=1e-5, atol=1e-300)
    assert (curve.beta <= narrow.beta * (1 + 1e-9)).all()


def many() -> LineFamily:
    """Six members without a common lattice, the last with coarse noise: 21 pairs, of which six have many nodes."""
    found = []
    for i, p in enumerate((1009, 1013, 1019, 1021, 1031, 1033)):
        weights = [Fraction(40 + i, p), *[Fraction(31, p + 2)] * 6, *[Fraction(23 + i, 997)] * 6]
        weights.append((Fraction(7, 5) if i == 5 else Fraction(1, 2)) - sum(weights))
        found.append({DiscreteGaussian(1 / w): weights.count(w) for w in sorted(set(weights))})
    return LineFamily(tuple(found), tuple((i, j) for i in range(6) for j in range(i, 6)))


@pytest.mark.parametrize("few", [0, 2, 6])
def test_a_look_at_all_pairs_and_another_at_the_worst_is_the_account_of_all(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever contours the second look is on (of few pairs by themselves, of light ones, of all): the worst bounds are narrow,
    as if every pair had been asked narrowly, and every pair's overlap with what it is then."""
    monkeypatch.setattr(exactdp.accounting.line_pairs, "FEW_SUSPECTS", few)
    pairs, epsilons = LinePairs(many()), [Fraction(1, 4), Fraction(1), Fraction(3)]
    assert pairs.count > exactdp.accounting.shared_pairs.FEW
    together = pairs.table_of_worst(epsilons)
    exact = pairs.table(range(pairs.count), epsilons)
    for bracket, narrow in ((together.delta, exact.delta), (together.rest, exact.rest)):
        assert (bracket.log_lower() <= narrow.log_upper()).all()
        assert (narrow.log_lower() <= bracket.log_upper()).all()
    for i, epsilon in enumerate(epsilons):
        alone = pairs.table_of_worst([epsilon])
        rows = np.array(together.rows()).reshape(7, pairs.count, -1)[:, :, i]
        assert np.array_equal(rows, np.array(alone.rows()))  # an answer does not depend on the others
        worst = Extremes.of(alone)
        assert worst.log_delta[1] - worst.log_delta[0] <= 2 * pairs.resort_width
        assert worst.rest[2] - worst.rest[1] <= 2 * pairs.resort_width * worst.rest[2]


def test_what_no_finer_contour_takes_keeps_the_bounds_of_the_first_look(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = LinePairs(many())
    rough = next(pairs.screen([Fraction(1)]))
    monkeypatch.setattr(LineFamily, "some_contours", lambda *_: ())
    monkeypatch.setattr(LineFamily, "own_contours", lambda *_: ())
    found = pairs.table_of_worst([Fraction(1)], resorts=False)
    assert np.array_equal(np.array(found.delta.rows()), np.array(rough.delta.rows()))


def test_only_pairs_that_may_be_the_worst_are_narrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every pair is wide, those asked by themselves are few, and the worst of all is as if all had been."""
    f = family("different", 3)
    pairs = LinePairs(f)
    monkeypatch.setattr(LinePairs, "resort_width", 0.0)
    asked: list[int] = []
    own = LinePairs.answers
    monkeypatch.setattr(LinePairs, "answers", lambda self, pair: asked.append(pair) or own(self, pair))
    epsilons = [Fraction(0), Fraction(1, 2), Fraction(3), Fraction(9)]
    found = Overall(pairs).deltas(epsilons)
    assert 0 < len(set(asked)) < pairs.count
    for epsilon, (low, high) in zip(epsilons, found, strict=True):
        all_narrow = pairs.table(range(pairs.count), [epsilon]).delta
        assert low == all_narrow.lower_floats().max()
        assert high == all_narrow.upper_floats().max()


@pytest.mark.parametrize("few", [0, 1, 6])
def test_overall_epsilon_is_the_same_however_many_pairs_are_suspected(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quick look leaves a few pairs, which are asked by themselves, or many, which share contours."""
    f = family("same", 3)
    at = [Fraction("0.3"), Fraction("1e-10")]
    expected = Overall(LinePairs(f)).epsilons(at)
    monkeypatch.setattr(exactdp.census.overall, "FEW_SUSPECTS", few)
    for (low, high), (least, most) in zip(Overall(LinePairs(f)).epsilons(at), expected, strict=True):
        assert max(low, least) <= min(high, most)
        assert high - low < 1e-11 * (1 + abs(high))


def test_a_quick_look_at_all_pairs_holds_every_one_and_is_not_useless() -> None:
    f = family("different", 3)
    pairs = LinePairs(f)
    for epsilon, point in zip([Fraction(1), Fraction(6)], pairs.screen([Fraction(1), Fraction(6)]), strict=True):
        for composition, low, high in zip(
            compositions(f), point.delta.lower_floats(), point.delta.upper_floats(), strict=True
        ):
            exact = composition.delta_bounds(epsilon)
            assert low <= exact.upper
            assert exact.lower <= high <= low * 1.001


@pytest.mark.parametrize("asked_again", [0.0, 1e-5])
def test_deltas_for_a_drawing_hold_the_worst_pair_and_are_narrow_enough(
    asked_again: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On rough contours, or asked again where these are called too wide."""
    monkeypatch.setattr(exactdp.census.overall, "_DRAWN", asked_again)
    f = family("different", 3)
    at = [Fraction(1), Fraction(6), Fraction("11.5")]
    each = [composition.delta_bounds(at) for composition in compositions(f)]
    for i, (low, high) in enumerate(Overall(LinePairs(f)).drawn_deltas(at)):
        assert low <= max(bounds.upper[i] for bounds in each)
        assert max(bounds.lower[i] for bounds in each) <= high <= low * (1 + (asked_again or 1e-9))


def test_a_curve_for_a_drawing_is_below_the_envelope_and_close_to_it() -> None:
    """From a quick look at all pairs: nowhere above what is proved of beta, and lower by less than a line is wide."""
    overall = Overall(LinePairs(family("different", 3)))
    curve = overall.drawn_curve(25)
    assert (curve.alpha[0], curve.beta[0], curve.alpha[-1], curve.beta[-1]) == (0.0, 1.0, 1.0, 0.0)
    inner = [i for i, alpha in enumerate(curve.alpha.tolist()) if 1e-6 < alpha < 0.999][::4]
    for i in inner:
        low, high = overall.beta(Fraction(curve.alpha[i]))
        assert low * (1 - 1e-2) <= curve.beta[i] <= high
    assert len(inner) >= 3


@pytest.mark.parametrize("log_wanted", [pytest.param(-741, marks=pytest.mark.soak), -760])
def test_overall_delta_around_the_end_of_doubles(log_wanted: int) -> None:
    """Where delta is subnormal, and beyond, both ends are outward of what single pairs prove; logarithms keep their digits."""
    f = family("same", 2)
    overall, alone = Overall(LinePairs(f)), compositions(f)
    epsilon = Fraction(round(alone[0].epsilon(Fraction(2) ** round(log_wanted / math.log(2)))))
    each = [c.log_delta_bounds(epsilon) for c in alone]
    least, most = max(b.lower for b in each), max(b.upper for b in each)
    low, high = overall.delta(epsilon)
    with precision(128):
        assert ball(Fraction(low)) <= arb(most).exp()
        assert ball(Fraction(high)) >= arb(least).exp()
    logs = overall.log_delta(epsilon)
    assert logs[0] <= most
    assert logs[1] >= least
    assert logs[1] - logs[0] < 1e-9


def test_tiny_budgets() -> None:
    a, b = 70249434384845, 70249434847671
    f = LineFamily(({DiscreteGaussian(a): 1}, {DiscreteGaussian(b): 1}), ((0, 0), (0, 1), (1, 1)))
    epsilon = Fraction(174986, 873437769457)
    low, high = Overall(LinePairs(f)).delta(epsilon)
    each = [c.delta_bounds(epsilon) for c in compositions(f)]
    assert low <= high
    assert low <= max(x.upper for x in each)
    assert max(x.lower for x in each) <= high


def test_delta_next_to_one() -> None:
    f = family("same", 2)
    low, high = Overall(LinePairs(f)).epsilon(Fraction("0.999999999"))
    each = [c.epsilon_bounds("0.999999999") for c in compositions(f)]
    assert low <= max(b.upper for b in each)
    assert max(b.lower for b in each) <= high
    assert high - low < 1e-6


def test_the_worst_of_pairs_of_which_nothing_is_known_is_a_number() -> None:
    """Two lower bounds of 1 - delta that are 0, on scales so far apart that their quotient is no double."""
    scales, ends, logs = np.array([-1250.0, 0.0]), (np.zeros(2), np.ones(2)), np.zeros(2)
    worst = Extremes.of(Point(Bracket(np.zeros(2), *ends), Bracket(scales, *ends), logs))
    scale, low, high = worst.rest
    assert (scale, low) == (-1250.0, 0.0)
    assert high >= 1


def test_pairs_of_fine_members_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nothing but lists answers has two coarse members: 20,000 pairs of fine ones are not asked."""
    looked: list[object] = []
    real = line_pairs.only_lists_answer
    monkeypatch.setattr(line_pairs, "only_lists_answer", lambda m: looked.append(m) or real(m))  # type: ignore[func-returns-value]
    coarse, fine = {DiscreteGaussian(Fraction(7, 10)): 1}, {DiscreteGaussian(Fraction(n)): 1 for n in (9, 11, 13, 17)}
    pairs = tuple(itertools.combinations_with_replacement(range(3), 2))
    some = LinePairs(LineFamily((coarse, fine, {DiscreteGaussian(Fraction(3, 5)): 1}), pairs))
    found = some.need_no_contours(np.arange(len(pairs)))
    assert [p for p, yes in zip(pairs, found, strict=True) if yes] == [(0, 0), (0, 2), (2, 2)]
    assert len(looked) == 3
    assert [only_lists_answer(some.mechanisms(p)) for p in range(len(pairs))] == found.tolist()
