"""All pairs at once: the shared contours against brute force, against balls and against their own definition."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import exactdp.engine.family.nodes as module
import exactdp.engine.family.pair_terms as pair_terms
import oracle
from exactdp.accounting.epsilon_search import both_readings
from exactdp.accounting.pairs import Pairs
from exactdp.accounting.privacy_profile import profile
from exactdp.accounting.separate_pairs import Question
from exactdp.accounting.shared_pairs import both_ends_hold
from exactdp.brackets import Bracket, Point
from exactdp.census.envelope import Extremes
from exactdp.engine.family.contours import Family, FamilyContour
from exactdp.engine.lattice.ball import BallContour
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.float64 import Contour
from exactdp.engine.lattice.lattice import Group, common_step
from exactdp.engine.lattice.moments import log_moments
from exactdp.engine.lattice.peaks import peak_bounds
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.payoff import (
    Payoff,
    Thresholds,
    delta_threshold,
    delta_thresholds,
    tail_threshold,
    tail_thresholds,
    transform_factors,
)
from exactdp.engine.sieve.bands import make_bands
from exactdp.engine.sieve.phases import angles, phases
from exactdp.errors import LatticeTooFineError
from strategies import seeds

ALL = [Payoff.DELTA, Payoff.TAIL, Payoff.COMPLEMENT]


def family(seed: int, members: int = 3) -> Family:
    """Members of one spread on lattices with different steps, noise from 1/2 on."""
    rng = random.Random(seed)
    total = Fraction(rng.choice([2, 3, 5]))
    found = []
    while len(found) < members:
        parts = rng.randint(1, 3)
        cuts = sorted(rng.randint(1, 11) for _ in range(parts - 1))
        shares = [b - a for a, b in zip([0, *cuts], [*cuts, 12], strict=True)]
        weights = [total * Fraction(share, 12) for share in shares if share]
        counts = [max(1, math.ceil(w / 2)) * rng.choice([1, 2]) for w in weights]
        groups = {}
        for weight, count in zip(weights, counts, strict=True):
            groups[count / weight] = groups.get(count / weight, 0) + count
        if min(groups) >= Fraction(1, 2):
            found.append(tuple(Group(s, 1, n) for s, n in sorted(groups.items())))
    return Family(tuple(found))


def brute(f: Family, pair: int) -> oracle.Brute:
    return oracle.brute({(g.sigma2, g.sensitivity): g.count for g in f.groups(pair)})


@pytest.mark.parametrize("seed", seeds(5, 12))
def test_deltas_against_brute_force(seed: int) -> None:
    f = family(seed)
    assert f.can_share
    pairs = Pairs(f)
    questions = [
        Question(p, e) for p in range(len(f.pairs)) for e in map(Fraction, ("-1/2", "0", "1/3", "2", "7", "20"))
    ]
    point = pairs.profile(questions)
    lower, upper = point.delta.lower_floats(), point.delta.upper_floats()
    for question, low, high in zip(questions, lower, upper, strict=True):
        exact = brute(f, question.pair).delta(question.at)
        assert Fraction(low) <= exact + oracle.ERROR
        assert exact - oracle.ERROR <= Fraction(high)
        assert high - low <= 1e-11 * high


@pytest.mark.parametrize("seed", seeds(5, 12))
def test_epsilons_and_betas_against_brute_force(seed: int) -> None:
    f = family(seed, members=2)
    pairs = Pairs(f)
    asked = [Question(p, Fraction(d)) for p in range(len(f.pairs)) for d in ("0.9", "0.3", "1e-4", "1e-12", "1e-40")]
    for question, low, high in zip(asked, *pairs.epsilons(asked), strict=True):
        exact = brute(f, question.pair)
        assert exact.delta(Fraction(high)) <= question.at + oracle.ERROR
        assert exact.delta(Fraction(low)) >= question.at - oracle.ERROR
    asked = [Question(p, Fraction(a)) for p in range(len(f.pairs)) for a in ("1e-9", "0.01", "0.3", "0.5", "0.97")]
    for question, low, high in zip(asked, *pairs.betas(asked), strict=True):
        exact_beta = brute(f, question.pair).beta(question.at)
        assert Fraction(low) <= exact_beta + oracle.ERROR
        assert exact_beta - oracle.ERROR <= Fraction(high)
        assert high - low <= 1e-11 * high


def _plan_of(contour: FamilyContour, pair: int) -> Plan:
    """The contour of one pair as a plan of its own."""
    f = contour.family
    plan = contour.plans[f.step_of[1][pair]]
    lattice = f.lattice(pair)
    return replace(
        plan, lattice=lattice, kept=contour.kept[contour.pair_of == pair], theta_at_tilt=lattice.log_theta(plan.tilt)
    )


@pytest.mark.parametrize("payoff", ALL)
@pytest.mark.parametrize("seed", range(4))
def test_a_shared_contour_is_a_valid_plan_for_every_pair(seed: int, payoff: Payoff) -> None:
    """The same nodes evaluated for one pair, in float64 and in balls: the enclosures overlap and are narrow."""
    f = family(seed)
    contour = f.contour(payoff, 0)
    assert contour is not None
    thresholds, pairs = [], np.arange(len(f.pairs))
    for p in pairs:
        lattice = f.lattice(int(p))
        x = Fraction(-1, 2) if payoff is Payoff.COMPLEMENT else Fraction(1)
        thresholds.append(
            tail_threshold(math.ceil(x / lattice.step))
            if payoff is Payoff.TAIL
            else delta_threshold(lattice, x + lattice.half_spread)
        )
    shared = {}
    together = Thresholds(*(np.array([getattr(t, name) for t in thresholds]) for name in ("steps", "a", "b")))
    for places, sums in contour.evaluate(pairs, together, np.arange(len(thresholds))):
        for i, place in enumerate(places):
            shared[int(place)] = (sums.log_scale[i], sums.lower[i], sums.upper[i])
    for p in range(len(f.pairs)):
        plan = _plan_of(contour, p)
        one = Contour(plan).evaluate([thresholds[p]])
        log_scale, low, high = shared[p]
        shift = math.exp(log_scale - one.log_scale[0])
        assert low * shift <= one.upper[0] * (1 + 1e-14)
        assert one.lower[0] <= high * shift * (1 + 1e-14)
        assert high - low <= 1e-11 * high
        ball = BallContour(plan, 200).evaluate([thresholds[p]])[0].value
        assert float(ball.lower()) <= high * math.exp(log_scale) * (1 + 1e-13)
        assert low * math.exp(log_scale) * (1 - 1e-13) <= float(ball.upper())


def test_many_thresholds_are_those_of_each() -> None:
    """On, just before and just after lattice points, near and far: the same integers, coefficients to a few units."""
    lattice = family(1).lattice(0)
    points = [lattice.step * t + lattice.half_spread for t in (-9, 0, 1, 7, 10**6)]
    near = [x + Fraction(i, 10**k) for x in points for i in (-1, 0, 1) for k in (3, 30)]
    epsilons = [*near, Fraction(1, 3), Fraction(0.1), Fraction(-7), Fraction(10**25), Fraction(-(10**25))]
    found, each = delta_thresholds(lattice, epsilons), [delta_threshold(lattice, e) for e in epsilons]
    far = 1 << 62
    assert found.steps.tolist() == [min(max(t.steps, -far), far) for t in each]
    assert np.allclose(found.a, [t.a for t in each], rtol=2e-15, atol=0)
    assert np.allclose(found.b, [t.b for t in each], rtol=2e-15, atol=0)
    assert (found.a == 0).sum() == sum(t.a == 0 for t in each)
    assert (found.b == 0).sum() == sum(t.b == 0 for t in each) > 0  # on lattice points
    tails = tail_thresholds(np.array([-3, 5]))
    assert list(zip(tails.steps, tails.a, tails.b, strict=True)) == [
        (t.steps, t.a, t.b) for t in map(tail_threshold, (-3, 5))
    ]


@pytest.mark.parametrize("payoff", ALL)
@pytest.mark.parametrize("seed", range(6))
def test_dropped_nodes_of_every_pair(seed: int, payoff: Payoff) -> None:
    """All nodes that a pair does not keep, one by one, add up to no more than its plan says."""
    f = family(seed)
    contour = f.contour(payoff, seed % 2)
    assert contour is not None
    for p in range(len(f.pairs)):
        plan = _plan_of(contour, p)
        k = np.arange(plan.nodes // 2 + 1, dtype=np.int64)
        dropped = np.setdiff1d(k, plan.kept)
        if not len(dropped):
            continue
        real, _, error = log_moments(plan.lattice, plan.lam, dropped, plan.nodes)
        size, at_tilt = (
            np.abs(transform_factors(payoff, plan.lam, plan.lattice.h, turns)[0])
            for turns in (angles(dropped, plan.nodes), np.zeros(1))
        )
        mirrored = np.where(2 * dropped == plan.nodes, 1.0, 2.0)
        total = float(np.sum(mirrored / plan.nodes * np.exp(real - error) * size / at_tilt))
        assert total <= math.exp(plan.log_dropped)


def test_no_node_within_budget_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every node of every pair looked at, for budgets of every size; heavy members included."""
    for seed in range(30):
        f = family(100 + seed)
        rng = random.Random(seed)
        lam, multiple = rng.uniform(0.2, 2), 1 / common_step(1 / s for s in f.steps)
        period = multiple * rng.randint(3, 12)
        nodes = int(period / f.unit)
        bounds = [peak_bounds(lattice, lam) for lattice in f.lattices]
        bands = make_bands(nodes, float(period), (2.0, 3.0), 0.0, rng.uniform(-60, -3))
        with monkeypatch.context() as patch:
            patch.setattr(module, "_HEAVY", rng.choice([0, module._HEAVY]))
            pair_of, kept = module.nodes_of_pairs(f, bounds, period, nodes, bands)
        for p, (i, j) in enumerate(f.pairs):
            k = np.arange(int(period / f.steps[p]) // 2 + 1, dtype=np.int64)
            penalty = sum(np.array(bounds[m].strengths) @ phases(k, f.lattices[m].strides, nodes) ** 2 for m in (i, j))
            needed = k[penalty <= bands.at(k)]
            assert set(needed.tolist()) <= set(kept[pair_of == p].tolist())


def test_the_bands_of_a_coarser_lattice() -> None:
    """log_dropped_on is log_dropped where the lattice is the same, and what Theorem 3 says where it is not."""
    bands = make_bands(4000, 25.0, (2.0, 3.0), 0.7, -30.0)
    assert bands.log_dropped_on(4000, 25.0, (2.0, 3.0)) == pytest.approx(bands.log_dropped, abs=1e-12)
    for nodes in (3, 10, 1001, 2000):
        half = nodes // 2
        k = np.arange(1, half + 1)
        omega = 2 * math.pi * k / 25.0
        size = np.minimum(1, 2.0 / omega) * np.minimum(1, 3.0 / omega)
        mirrored = np.where(2 * k == nodes, 1.0, 2.0)
        exact = float(np.sum(mirrored / nodes * size * np.exp(-(bands.at(k) - 0.7))))
        assert bands.log_dropped_on(nodes, 25.0, (2.0, 3.0)) >= math.log(exact)


def test_an_answer_does_not_depend_on_what_else_is_asked() -> None:
    f = family(3)
    whole = Pairs(f)
    questions = [Question(p, e) for e in map(Fraction, ("1/7", "3", "11")) for p in range(len(f.pairs))]
    together = whole.profile(questions).delta
    for i in (0, 5, 11, len(questions) - 1):
        alone = Pairs(Family(f.members)).profile([questions[i]]).delta
        for name in ("log_scale", "lower", "upper"):
            assert getattr(alone, name)[0] == getattr(together, name)[i]
    for ask, grid in (
        (whole.epsilons, ("0.3", "1e-3", "1e-10", "1e-40", "1e-200")),
        (whole.betas, ("1e-9", "0.3", "0.97")),
    ):
        questions = [Question(p, Fraction(x)) for x in grid for p in range(len(f.pairs))]
        lower, upper = ask(questions)
        for i, question in enumerate(questions):
            assert [x[0] for x in ask([question])] == [lower[i], upper[i]]


def test_theta_of_a_pair_is_charged_for_both_members() -> None:
    """The error of a pair's Theta(tilt) holds those of its two members and the rounding of their sum."""
    f = family(3)
    contour = f.contour(Payoff.DELTA, 1)
    assert contour is not None
    own = [lattice.log_theta(contour.plans[0].tilt) for lattice in f.lattices]
    for (i, j), value, error in zip(f.pairs, *contour._thetas, strict=True):
        rounding = abs(Fraction(float(value)) - own[i][0] - own[j][0])
        assert Fraction(float(error)) >= Fraction(own[i][1]) + Fraction(own[j][1]) + rounding
        assert error <= 3e-13


def test_rough_bounds_hold_and_what_they_leave_out_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the largest terms only: brute force lies inside, and would not without the sizes of what was left out."""
    monkeypatch.setattr(pair_terms, "_LIGHT", 4)
    monkeypatch.setattr(pair_terms, "_LARGEST", 1e-4)
    needed = 0
    for seed in (2, 3):
        f = family(seed)
        everyone = np.arange(len(f.pairs))
        for e in map(Fraction, ("1/3", "2", "7")):
            rough = Pairs(f).rough_at(everyone, [e], np.zeros_like(everyone)).delta
            narrow = Pairs(f).table(range(len(f.pairs)), [e]).delta
            assert np.all(rough.log_lower() <= narrow.log_upper())
            assert np.all(narrow.log_lower() <= rough.log_upper())
            for pair, (low, high) in enumerate(zip(rough.lower_floats(), rough.upper_floats(), strict=True)):
                exact = brute(f, pair).delta(e)
                assert Fraction(low) - oracle.ERROR <= exact <= Fraction(high) + oracle.ERROR
                off = abs(float(exact) - (low + high) / 2)
                needed += off > 1e-9 * high
    assert needed > 6


def test_rough_bounds_do_not_change_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs that they rule out stay wide; what is the worst is the same bit for bit as in the whole table."""
    monkeypatch.setattr(pair_terms, "_LIGHT", 4)
    monkeypatch.setattr(pair_terms, "_LARGEST", 1e-4)
    epsilons = [Fraction(e) for e in ("0", "1/3", "2", "7", "20")]
    for seed in (2, 3, 5):
        pairs = Pairs(family(seed, 4))
        tables = pairs.table_of_worst(epsilons), pairs.table(range(pairs.count), epsilons)
        assert np.count_nonzero(tables[0].is_wide(pairs.resort_width)) > 3
        rows = [np.array(table.rows()).reshape(7, pairs.count, -1) for table in tables]
        for i in range(len(epsilons)):
            found, whole = (Extremes.of(Point.of_rows(part[:, :, i])) for part in rows)
            assert found == whole


def test_narrow_epsilons_on_plateaus() -> None:
    f = Family(((Group(Fraction(6), 1, 1), Group(Fraction(4), 1, 1)), (Group(Fraction(12, 5), 1, 1),)))
    assert f.can_share
    lower, upper = Pairs(f).epsilons([Question(p, Fraction(3, 10**36)) for p in range(3)])
    assert np.all(upper - lower <= 2e-10 * upper)


def test_too_many_nodes_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    f = family(2)
    expected = Pairs(f).profile([Question(p, Fraction(2)) for p in range(len(f.pairs))]).delta
    monkeypatch.setattr(module, "MOST_NODES", 10)
    again = Family(f.members)
    assert again.contour(Payoff.DELTA, 1) is None
    found = Pairs(again).profile([Question(p, Fraction(2)) for p in range(len(f.pairs))]).delta
    assert np.all(found.lower_floats() <= expected.upper_floats())
    assert np.all(expected.lower_floats() <= found.upper_floats())
    assert np.all(found.upper_floats() - found.lower_floats() <= 1e-11 * found.upper_floats())


def test_an_epsilon_is_proved_at_both_ends() -> None:
    def holds(*deltas: float) -> bool:
        bracket = Bracket(np.log(np.array(deltas)), np.ones(2) * (1 - 1e-13), np.ones(2) * (1 + 1e-13))
        return bool(both_ends_hold(bracket, np.array([math.log(1e-6)]), np.array([1e-12]))[0])

    high, low = 1e-6 * (1 + 1e-9), 1e-6 * (1 - 1e-9)
    assert holds(high, low)
    assert not holds(low, low)
    assert not holds(high, high)
    assert not holds(1e-6, low)
    assert not holds(high, 1e-6)


def test_an_epsilon_is_proved_in_both_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The points of the proof are inside of the ends, whether these are read as binary numbers or as decimals."""
    asked: list[np.ndarray] = []
    profile_of = Pairs._profile_at

    def noted(self: Pairs, pairs: np.ndarray, epsilons: np.ndarray) -> Point:
        asked.append(epsilons)
        return profile_of(self, pairs, epsilons)

    monkeypatch.setattr(Pairs, "_profile_at", noted)
    questions = [Question(p, Fraction(d)) for p in range(3) for d in ("1e-3", "1e-6", "1e-9")]
    lower, upper = Pairs(family(1)).epsilons(questions)
    inside = [Fraction(epsilon) for epsilon in asked[-1].tolist()]
    assert len(inside) == 2 * len(questions)
    for low, high, first, second in zip(lower.tolist(), upper.tolist(), inside[::2], inside[1::2], strict=True):
        assert max(both_readings(low)) <= first
        assert second <= min(both_readings(high))


def test_far_tails_are_answered_pair_by_pair_and_some_families_cannot_share() -> None:
    f = family(1)
    pairs = Pairs(f)
    deep = pairs.profile([Question(2, Fraction(400))]).delta
    alone = profile(Contours(f.lattice(2)), [Fraction(400)]).delta
    assert deep.log_upper()[0] == alone.log_upper()[0]
    coarse = Family(((Group(Fraction(1, 5), 1, 1),), (Group(Fraction(2, 5), 1, 2),)))
    assert not coarse.can_share
    uneven = Family(((Group(Fraction(1), 1, 1),), (Group(Fraction(1), 1, 2),)))
    assert not uneven.can_share
    unlike = Family(tuple((Group(Fraction(n), 1, n),) for n in (97, 101, 103, 107, 109)))
    assert not unlike.can_share
    assert "steps" not in vars(unlike)  # a period for all members would be too long, which no pair needs to tell
    with pytest.raises(LatticeTooFineError, match="no common period"):
        unlike.common_period(Fraction(1))
