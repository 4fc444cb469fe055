"""Families on the line, piece by piece: which nodes are found, and that every term of the error account is needed and enough."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest

from any_oracle import listed as any_listed
from exactdp import DiscreteGaussian, DiscreteLaplace, Gaussian
from exactdp.balls import BITS, precision
from exactdp.engine.family import line_nodes, line_penalties
from exactdp.engine.family.line_contours import LineFamily, LineFamilyContour
from exactdp.engine.family.line_nodes import LineSkeleton, ListedNodes, _Frame, _NodeSearch, _weakest
from exactdp.engine.family.line_penalties import Teeth
from exactdp.engine.lattice import tilts
from exactdp.engine.line.float64 import LineSums
from exactdp.engine.line.tilts import Ladder, LineRung
from exactdp.engine.payoff import Payoff
from exactdp.errors import LatticeTooFineError
from exactdp.mechanisms.loss import Peak
from exactdp.mechanisms.theta import untilted_penalty
from release_oracle import Listed, listed

MEMBERS = (
    {DiscreteGaussian("31/9"): 2},
    {DiscreteGaussian("29/13"): 1, DiscreteGaussian("12/5", 2): 1},
    {DiscreteGaussian("0.3"): 1, DiscreteGaussian("7/3"): 1, DiscreteLaplace("7/3", 2): 1},
)
PAIRS = ((0, 0), (0, 1), (1, 2), (2, 2), (1,))
FAMILY = LineFamily(MEMBERS, PAIRS)
ALL = np.arange(len(PAIRS))
WIDEST = int(np.argmax(FAMILY.widest))
EPSILON = Fraction(3)
AT_ONE = np.zeros(len(PAIRS), dtype=np.int64)  # all pairs are asked at the first threshold


@cache
def truth_of(pair: int) -> Listed:
    found = []
    for m, n in FAMILY.composition(pair).items():
        laplace = isinstance(m, DiscreteLaplace)
        found.append(("laplace" if laplace else "gaussian", m.scale if laplace else m.sigma2, m.sensitivity, n))
    return listed(tuple(found), 40_000)


def rungs_at(y: float, count: int = 1) -> list[LineRung]:
    """The rung of the widest pair that serves y, and those after it."""
    ladder = Ladder(FAMILY.total(WIDEST), tilts.FAMILY)
    payoff, index = ladder.place_of(y)
    return [ladder.rung(payoff, index + i) for i in range(count)]


def contour_at(y: float, width: float, tilt: Fraction | None = None) -> LineFamilyContour:
    rung = rungs_at(y)[0]
    rung = rung if tilt is None else replace(rung, tilt=tilt)
    (skeleton,), left = LineSkeleton.build(FAMILY, ALL, [rung], width, math.inf)
    assert not len(left)
    return LineFamilyContour.plan(skeleton, rung)


def excesses(sums: LineSums, e: Fraction = EPSILON) -> np.ndarray:
    """The computed value of every pair less the exact one, in the units of the sums."""
    found = []
    with mpmath.workdps(60):
        for p in range(len(PAIRS)):
            delta = truth_of(p).delta(e)
            exact = delta if sums.payoff is Payoff.DELTA else 1 - delta
            scale = mpmath.exp(mpmath.mpf(float(sums.log_scale[p])))
            found.append(float(mpmath.mpf(float(sums.value[p])) - exact / scale))
    return np.array(found)


# --- nodes ------------------------------------------------------------------------------------------------------------------


def exact_penalties(frame: _Frame) -> np.ndarray:
    """The penalty of every node up to the last for every pair, from exact rational turns: the better of Lemma 5's bounds."""
    k = range(frame.last + 1)
    result = np.zeros((len(PAIRS), frame.last + 1))
    for i, (loss_unit, peak) in enumerate(zip(frame.tilted, frame.peaks, strict=True)):
        if peak is None:
            continue
        mechanism = FAMILY.mechanisms[i]
        laplace = isinstance(mechanism, DiscreteLaplace)
        unit = 2 / mechanism.scale if laplace else mechanism.sensitivity / mechanism.sigma2
        assert abs(float(loss_unit.units[0].mid()) - float(unit)) <= 1e-15 * float(unit)
        turn = unit * peak.step / frame.period
        # from the nearest multiple of a turn, without rounding until the last step
        num, den = turn.numerator, turn.denominator
        v = 2 * math.pi * np.array([min(n * num % den, -n * num % den) / den for n in k])
        each = peak.strength * v**2
        if peak.noise:
            s = float(mechanism.sigma2)
            each = np.maximum(each, s * v**2 / 2 - np.exp(-2 * math.pi * s * (math.pi - v)))
        for p in range(len(PAIRS)):
            result[p] += FAMILY.composition(p).get(mechanism, 0) * each
    return result


def search_of(frame: _Frame, heavy: bool, is_listed: bool = False) -> set[tuple[int, int]]:
    teeth = Teeth(FAMILY, frame.tilted, frame.peaks, frame.period)
    listed = ListedNodes.of(teeth, frame.bands, frame.last, ALL) if is_listed else None
    assert is_listed == (listed is not None)
    search = _NodeSearch(frame, teeth, ALL, listed)
    [(places, pair_of, nodes)] = search.batches(np.full(len(MEMBERS) + 1, heavy), np.ones(len(ALL)))
    assert places.tolist() == ALL.tolist()
    return set(zip(pair_of.tolist(), nodes.tolist(), strict=True))


@pytest.mark.parametrize("y", [0.0, 3.0, 9.0])
def test_every_node_within_budget_of_every_pair_is_found(y: float) -> None:
    """Against all nodes of a small period: none is missed, none is kept in vain, and budgets 1% smaller lose some."""
    frame = _Frame(FAMILY, ALL, rungs_at(y, 1 if y == 0 else 2), 1e-3)
    frame.bands = bands = replace(frame.bands, log_dropped=-math.inf)  # nothing is negligible
    penalties, budgets = exact_penalties(frame), bands.at(np.arange(frame.last + 1))
    within = {(int(p), int(k)) for p, k in np.argwhere(penalties <= budgets)}
    nearly = {(int(p), int(k)) for p, k in np.argwhere(penalties <= budgets * (1 + 1e-7))}
    everything = len(PAIRS) * (frame.last + 1)
    assert len(PAIRS) < len(within) < 0.8 * everything
    zero = {(p, 0) for p in range(len(PAIRS))}
    for heavy, is_listed in product((False, True), repeat=2):
        assert within | zero <= search_of(frame, heavy, is_listed) <= nearly | zero
    frame.bands = replace(bands, budgets=bands.budgets * 0.99)
    for is_listed in (False, True):
        assert not within <= search_of(frame, False, is_listed)


def sizes_around(frame: _Frame, rungs: list[LineRung]) -> tuple[np.ndarray, np.ndarray]:
    """What surrounds |cf| at nodes from 1 on, relative to its value at the tilt, mirror images included: with the transform and
    without it."""
    omega = 2 * math.pi / float(frame.period) * np.arange(1, frame.last + 1)
    plain = 2 / float(frame.period) * np.exp(-float(frame.smoothing) * omega**2 / 2)
    corners = max(abs(r.tilt) for r in rungs), max(1 + r.tilt for r in rungs)
    return plain * math.prod(np.minimum(1, float(c) / omega) for c in corners), plain


def test_nodes_are_weighed_as_they_are() -> None:
    """Not a bit less, and hardly more: each node by itself, a band by its largest and their number."""
    rungs = rungs_at(3.0, 2)
    frame = _Frame(FAMILY, ALL, rungs, 1e-3)
    k = np.arange(1, frame.last + 1)
    edges = [0.0, *(k + 0.5).tolist()]
    for exact, weights, transform in zip(sizes_around(frame, rungs), frame.log_weights(k), (True, False), strict=True):
        assert np.all(np.abs(weights - np.log(exact) - 5e-9) <= 5e-9 + 1e-13)
        single = frame._falloff.log_masses(edges, transform)
        assert np.all(np.abs(single - np.log(exact) - 5e-9) <= 5e-9 + 1e-13)
        band = float(frame._falloff.log_masses([20.0, 30.0], transform)[0])
        assert abs(band - math.log(10 * exact[20]) - 5e-9) <= 5e-9 + 1e-13


@pytest.mark.parametrize(("more", "more_density"), [(0.0, 0.0), (9.0, 40.0), (40.0, 9.0)])
def test_negligible_nodes_add_up_to_what_was_dropped(more: float, more_density: float) -> None:
    """What is left out of a pair by the bounds of sizes: with the transform and without it at most as much as by bands."""
    rungs = rungs_at(3.0, 2)
    frame = _Frame(FAMILY, ALL, rungs, 1e-3)
    bands = replace(frame.bands, slack=frame.bands.slack + 5, budgets=frame.bands.budgets + 5)
    density = frame.log_dropped_density
    penalties = exact_penalties(frame)[:, 1:]
    frame.bands = replace(bands, log_dropped=-math.inf)
    everything = search_of(frame, heavy=False)
    frame.bands = replace(bands, log_dropped=bands.log_dropped + more)
    frame.log_dropped_density = density + more_density
    lost = everything - search_of(frame, heavy=False)
    assert not {(p, 0) for p in range(len(PAIRS))} & lost
    allowed = bands.log_dropped + more, density + more_density
    for around, most in zip(sizes_around(frame, rungs), allowed, strict=True):
        sizes = around * np.exp(bands.slack - penalties)
        sums = [sum(sizes[p, n - 1] for p, n in lost if p == pair) for pair in range(len(PAIRS))]
        assert max(sums) <= math.exp(most)
    assert len(lost) >= 2 * more


def test_the_budget_has_the_largest_slack_of_all_pairs() -> None:
    """A node over budget is small for the pair with the largest slack, too, under every tilt."""
    rungs = rungs_at(3.0, 3)
    frame = _Frame(FAMILY, ALL, rungs, 1e-3)
    bands = frame.bands
    for rung in rungs:
        each = FAMILY.under(rung.tilt).tilted
        slacks = [
            sum(n * (each[FAMILY.mechanisms.index(m)].peak or Peak(0, 0.0, 0.0)).slack for m, n in pair.items())
            for pair in (FAMILY.composition(p) for p in range(len(PAIRS)))
        ]
        assert max(slacks) > 0
        assert bands.slack >= max(slacks)


def test_a_peak_holds_under_every_tilt() -> None:
    """|cf| <= exp(slack - strength v^2) for the peaks that several tilts share; 1% more strength would be too much for some."""
    tilts = [FAMILY.under(rung.tilt).tilted for rung in rungs_at(3.0, 3)]
    v = np.linspace(-math.pi, math.pi, 2001)
    tight = 0
    for i, peak in enumerate(_weakest(tilts)):
        own = [tilted[i].peak for tilted in tilts]
        if peak is None:
            assert (
                len({p.step for p in own if p is not None}) > 1
            )  # a Laplace loss, whose heaviest atoms depend on the tilt
            continue
        assert peak.strength == min(p.strength for p in own if p is not None)
        assert peak.slack == max(p.slack for p in own if p is not None)
        assert bool(peak.noise) == all(p is not None and p.noise for p in own)
        sharper = untilted_penalty(np.array(peak.noise), np.abs(v)) if peak.noise else np.zeros(len(v))
        for tilted in tilts:
            logs, _ = tilted[i].log_cf(v[None, :] / peak.step, np.zeros(len(v)))
            assert np.all(logs.real <= peak.slack - np.maximum(peak.strength * v**2, sharper) + 1e-9)
        tight += len({p.strength for p in own if p is not None}) > 1
    assert tight > 0  # some strengths do depend on the tilt


def test_peaks_that_differ_are_not_shared() -> None:
    tilts = [FAMILY.under(rung.tilt).tilted for rung in rungs_at(3.0, 2)]
    other = [replace_peak(t, step=t.peak.step + 1) for t in tilts[0]]
    assert _weakest([tilts[0], tuple(other)]) == [None] * len(other)
    assert _weakest([tilts[0], tilts[0]]) == [t.peak for t in tilts[0]]


def replace_peak(tilted: object, **changes: object) -> object:
    class Other:
        peak = replace(tilted.peak, **changes)  # type: ignore[attr-defined]

    return Other()


# --- skeletons of a family ---------------------------------------------------------------------------------------------------


def test_pairs_of_many_nodes_have_a_contour_of_their_own() -> None:
    """Each pair is on one contour or, where it would need too many nodes, on none: then nothing is said of it."""
    e = Fraction(8)
    rung = rungs_at(float(e))[0]
    family = replace(FAMILY, widths=((1e-5, 30.0), (1e-3, math.inf)))
    place = family.class_of[WIDEST], *family.ladders[family.class_of[WIDEST]].place_of(float(e))
    mine = family.classes[place[0]]
    _, heavy = LineSkeleton.build(family, mine, [rung], 1e-5, 30.0)
    contours = family.contours(place)
    assert sorted(np.concatenate([c.skeleton.pairs for c in contours]).tolist()) == mine.tolist()
    assert len(heavy) > 0
    assert contours[-1].skeleton.pairs.tolist() == heavy.tolist()
    index = np.zeros(len(mine), dtype=np.int64)
    found = family.evaluate(place, mine, [e], index).bracket
    for i, p in enumerate(mine.tolist()):
        exact = truth_of(p).delta(e)
        assert found.lower_floats()[i] <= exact <= found.upper_floats()[i] <= 1.1 * exact
    nothing = replace(FAMILY, widths=((1e-5, 0.0), (1e-3, 0.0)))
    assert nothing.contours(place) == ()  # what another width has found is not held for this one
    none = nothing.evaluate(place, mine, [e], index).bracket
    assert np.all(none.lower_floats() == 0)
    assert np.all(none.upper_floats() >= 1)


@pytest.mark.parametrize("e", [Fraction(1), Fraction(8)])
def test_contours_of_one_pair_hold_the_truth_and_leave_other_pairs_out(e: Fraction) -> None:
    place = FAMILY.class_of[WIDEST], *FAMILY.ladders[FAMILY.class_of[WIDEST]].place_of(float(e))
    index = np.zeros(1, dtype=np.int64)
    widths = []
    for width in ((1e-4, math.inf), (1e-6, math.inf)):
        for p in FAMILY.classes[place[0]].tolist():
            found = FAMILY.evaluate(place, np.array([p]), [e], index, width).bracket
            delta = truth_of(p).delta(e)
            exact = 1 - delta if place[1] is Payoff.COMPLEMENT else delta
            assert found.lower_floats()[0] <= exact <= found.upper_floats()[0]
            assert [c.skeleton.pairs.tolist() for c in FAMILY.own_contours(place, p, width)] == [[p]]
            widths.append(float((found.upper_floats()[0] - found.lower_floats()[0]) / exact))
    half = len(widths) // 2
    assert max(widths[half:]) < min(0.01, max(widths[:half]))  # the finer ones are narrower
    assert FAMILY.own_contours(place, WIDEST, (1e-6, 0.0)) == ()


def test_pairs_in_batches_have_the_nodes_that_they_have_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rung = rungs_at(3.0)[0]
    (whole,), _ = LineSkeleton.build(FAMILY, ALL, [rung], 1e-5, math.inf)
    monkeypatch.setattr(line_nodes, "_AIMED_AT", float(whole.counts.max()))
    parts, left = LineSkeleton.build(FAMILY, ALL, [rung], 1e-5, math.inf)
    assert len(parts) > 1
    assert not len(left)
    found = {(int(part.pairs[i]), k) for part in parts for i, k in zip(part.pair_of, part.kept.tolist(), strict=True)}
    assert found == set(zip(whole.pair_of.tolist(), whole.kept.tolist(), strict=True))


@pytest.mark.parametrize("heavy", [False, True])
def test_pairs_whose_nodes_cannot_be_listed_do_not_take_others_along(
    monkeypatch: pytest.MonkeyPatch, heavy: bool
) -> None:
    """Here member 2 with itself: pairs that are expected to have fewer nodes have all of them all the same."""
    rung = rungs_at(3.0)[0]
    (whole,), _ = LineSkeleton.build(FAMILY, ALL, [rung], 1e-5, math.inf)
    monkeypatch.setattr(line_penalties, "_MOST_OF_MEMBER", -1.0 if heavy else math.inf)
    search = Teeth.search

    def searched(self: Teeth, strengths: np.ndarray, *where: object) -> np.ndarray:
        if (strengths <= self.strengths[2] * 2).all():  # or a group with this member
            raise LatticeTooFineError("too many windows")
        return search(self, strengths, *where)

    monkeypatch.setattr(Teeth, "search", searched)
    monkeypatch.setattr(line_nodes, "_LISTED", 0)
    (skeleton,), left = LineSkeleton.build(FAMILY, ALL, [rung], 1e-5, math.inf)
    assert {PAIRS.index((2, 2))} <= set(left.tolist()) == set(ALL.tolist()) - set(skeleton.pairs.tolist())
    assert PAIRS.index((1, 2)) in skeleton.pairs
    for i, p in enumerate(skeleton.pairs.tolist()):
        assert skeleton.kept[skeleton.pair_of == i].tolist() == whole.kept[whole.pair_of == p].tolist()


# --- the error account ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [Fraction(0), Fraction(3), Fraction(8)])
def test_every_pair_is_inside_its_bounds_and_they_are_narrow(e: Fraction) -> None:
    sums = contour_at(float(e), 1e-5).sums(ALL, [e], AT_ONE)
    excess = excesses(sums, e)
    both_ways = sums.dropped + sums.rounding
    sign = 1 if sums.payoff is Payoff.DELTA else -1
    above = both_ways + sums.aliased + (sums.smoothed if sign > 0 else 0.0)
    below = both_ways + (sums.smoothed if sign < 0 else 0.0)
    assert np.all((-below <= excess) & (excess <= above))
    assert (above + below)[WIDEST] <= 1e-3 * sums.value[WIDEST]  # the tilt is that pair's


@pytest.mark.parametrize("deviations", [4.0, 6.0])
def test_the_aliasing_term_is_needed_and_enough(monkeypatch: pytest.MonkeyPatch, deviations: float) -> None:
    """A period far too short raises the value of each pair by no more than the bound, and by more than all other terms."""
    monkeypatch.setattr(_Frame, "_period", lambda self, where, variance: deviations * math.sqrt(variance))
    sums = contour_at(3.0, 1e-6).sums(ALL, [EPSILON], AT_ONE)
    excess, others = excesses(sums), sums.dropped + sums.rounding + sums.smoothed
    assert np.all(excess <= sums.aliased + others)
    assert np.any(excess > 3 * others)
    assert np.all(sums.bracket.lower <= sums.value - excess)


def test_moments_are_measured_from_each_pair_s_own() -> None:
    """The bound of all pairs is that of the pair which has most, each relative to its own moment at the tilt."""
    tilted = FAMILY.under(Fraction(3, 4))
    for nu in (0.0, 0.5, 2.0):
        with precision(BITS):
            totals = [FAMILY.total(p) for p in range(len(PAIRS))]
            exact = [float((t.log_moment(Fraction(nu)) - t.log_moment(Fraction(3, 4))).mid()) for t in totals]
        found = [tilted.log_moment_upper(nu, np.array([p])) for p in range(len(PAIRS))]
        assert all(x <= y <= x + 1e-9 for x, y in zip(exact, found, strict=True))
        assert tilted.log_moment_upper(nu, ALL) == max(found)
        assert tilted.log_moment_upper(nu, ALL[1:]) == max(found[1:])


def test_the_aliasing_bound_is_reached_where_the_payoff_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aliases far above the threshold have the payoff 1: a bound 1% less would be too little."""
    family = LineFamily(({Gaussian(2): 3}, {Gaussian(3): 1}), ((0, 0), (1,)))
    monkeypatch.setattr(_Frame, "_period", lambda self, where, variance: 40.0)
    rung = replace(Ladder(family.total(0)).rung_of(1.0), tilt=Fraction(1, 32))
    (skeleton,), _ = LineSkeleton.build(family, np.array([0, 1]), [rung], 1e-12, math.inf)
    sums = LineFamilyContour.plan(skeleton, rung).sums(np.array([1]), [Fraction(1)], np.array([0]))  # sets the bound
    with mpmath.workdps(40):
        y, m = mpmath.mpf(1), mpmath.sqrt(mpmath.mpf(1) / 3)
        exact = mpmath.ncdf(m / 2 - y / m) - mpmath.exp(y) * mpmath.ncdf(-m / 2 - y / m)
        excess = float(float(sums.value[0]) - exact / mpmath.exp(mpmath.mpf(float(sums.log_scale[0]))))
    assert 0.98 * sums.aliased[0] < excess <= sums.aliased[0] + sums.dropped[0] + sums.rounding[0]


def dropping(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Bands whose aim is `factor` times larger."""
    original = _Frame.__init__

    def make(self: _Frame, *arguments: object) -> None:
        original(self, *arguments)  # type: ignore[arg-type]
        self._log_aim += math.log(factor)

    monkeypatch.setattr(_Frame, "__init__", make)


def test_the_dropping_term_is_needed_and_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    before = contour_at(3.0, 1e-6).count
    dropping(monkeypatch, 1e10)
    contour = contour_at(3.0, 1e-6)
    assert np.all(contour.count <= before)
    sums = contour.sums(ALL, [EPSILON], AT_ONE)
    excess = excesses(sums)
    assert np.all(-sums.dropped - sums.rounding <= excess)  # smoothing and aliases only raise it
    assert np.all(excess <= sums.dropped + sums.rounding + sums.smoothed + sums.aliased)
    assert np.any(excess < -1000 * sums.rounding)


def sizes_of(contour: LineFamilyContour, pair: int) -> dict[int, tuple[float, float]]:
    """For each node of a pair the sizes of its terms for the value and for the density."""
    place = slice(int(contour._first[pair]), int(contour._first[pair] + contour.count[pair]))
    parts = contour.terms.parts[:, place]
    sizes = np.hypot(parts[[0, 2]], parts[[1, 3]])
    return dict(zip(contour.terms.node[place].tolist(), sizes.T.tolist(), strict=True))


def test_what_is_trimmed_is_charged_once_more() -> None:
    """Nodes whose actual size is negligible are left out: all of a pair's together less than what was dropped before."""
    full = contour_at(3.0, 1e-6)
    where, skeleton = full.where, full.skeleton
    for more in (6.0, 12.0):
        bands = replace(skeleton.bands, log_dropped=skeleton.bands.log_dropped + more)
        loose = replace(skeleton, bands=bands, log_dropped_density=skeleton.log_dropped_density + more)
        trimmed = LineFamilyContour.plan(loose, where)
        sums = trimmed.sums(ALL, [EPSILON], AT_ONE)
        assert trimmed.count.sum() < full.count.sum()
        at_tilt = 1 / abs(float(where.tilt * (1 + where.tilt)))
        for p in range(len(PAIRS)):
            all_sizes, kept = sizes_of(full, p), sizes_of(trimmed, p)
            assert kept.keys() <= all_sizes.keys()
            lost = np.sum([all_sizes[k] for k in all_sizes.keys() - kept.keys()], axis=0)
            allowed = math.exp(bands.log_dropped) * at_tilt, math.exp(loose.log_dropped_density)
            assert np.all(lost <= allowed)
            if all_sizes.keys() - kept.keys():
                low = math.exp(float(trimmed._scales(np.array([p]), np.array([0]), [EPSILON])[1][0]))
                # by bands and by bounds of sizes as much as is allowed, and now these
                assert float(sums.dropped[p]) / low >= 2 * allowed[0] + lost[0]


def density_of_all(contour: LineFamilyContour, pair: int, y: Fraction) -> float:
    """(1/T) sum over all nodes of M e^{-z y} of the smoothed loss, in units of its value at the tilt: from the list of losses."""
    period, lam = float(contour.skeleton.period), contour.lam
    tau2 = float(contour.skeleton.smoothing)
    k = np.arange(1, contour.skeleton.last + 1)
    omega = 2 * math.pi * k / period
    total = -tau2 * omega**2 / 2 + 1j * omega * (tau2 * (lam + 0.5) - float(y))
    for m, n in FAMILY.composition(pair).items():
        D = m.sensitivity
        if isinstance(m, DiscreteLaplace):
            a = 1 / float(m.scale)
            q = math.exp(-a)
            losses = np.array([a * (D - 2 * x) for x in range(D + 1)])
            masses = np.array([1.0, *((1 - q) * q**x for x in range(1, D)), q**D]) / (1 + q)
        else:
            s = float(m.sigma2)
            x = np.arange(-60, 61)
            losses, masses = D * D / (2 * s) + D / s * x, np.exp(-x * x / (2 * s))
        tilted = masses * np.exp(lam * losses)
        total = total + n * np.log(np.exp(1j * np.outer(omega, losses)) @ (tilted / tilted.sum()))
    return float(1 + 2 * np.sum(np.exp(total).real)) / period


def smoothed_over_density(contour: LineFamilyContour, ys: list[Fraction]) -> list[float]:
    """What is charged for smoothing, relative to Theorem 11's (1 + tau) tau^2 p(y), for each pair and threshold."""
    tau2 = float(contour.skeleton.smoothing)
    found = []
    for y in ys:
        sums = contour.sums(ALL, [y], AT_ONE)
        for p in range(len(PAIRS)):
            low = math.exp(float(contour._scales(np.array([p]), np.array([0]), [y])[1][0]))
            wanted = (1 + math.sqrt(tau2)) * tau2 * density_of_all(contour, p, y)
            found.append(float(sums.smoothed[p]) / low / wanted)
    return found


def test_smoothing_is_charged_by_the_density() -> None:
    """All of (1 + tau) tau^2 p(y), and where little is dropped hardly more than that."""
    found = smoothed_over_density(contour_at(3.0, 0.02), [Fraction(i, 7) for i in (15, 20, 25)])
    assert min(found) >= 1 - 1e-12
    assert min(found) <= 1.01


def test_the_density_is_raised_by_what_was_dropped_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    dropping(monkeypatch, 1e9)
    contour = contour_at(3.0, 1e-3)
    ys = [Fraction(i, 7) for i in (15, 18, 21, 24, 27)]
    assert min(smoothed_over_density(contour, ys)) >= 1
    only = replace(contour, skeleton=replace(contour.skeleton, log_dropped_density=-math.inf))
    assert min(smoothed_over_density(only, ys)) < 1


def test_the_density_is_raised_by_its_rounding() -> None:
    """Terms that may be wrong by a tenth: value and density are as uncertain as all their terms together."""
    contour = contour_at(3.0, 1e-3)
    rough = replace(contour, terms=replace(contour.terms, relative=contour.terms.relative + 0.1))
    before, after = (c.sums(ALL, [EPSILON], AT_ONE) for c in (contour, rough))
    tau2 = float(contour.skeleton.smoothing)
    for p in range(len(PAIRS)):
        low = math.exp(float(contour._scales(np.array([p]), np.array([0]), [EPSILON])[1][0]))
        sizes = np.array(list(sizes_of(contour, p).values())).sum(axis=0)
        assert (after.rounding[p] - before.rounding[p]) / low >= 0.1 * sizes[0]
        assert (after.smoothed[p] - before.smoothed[p]) / low >= 0.0999 * tau2 * sizes[1]


@pytest.mark.parametrize("tilt", [2, 6, 10])
def test_the_rounding_term_is_needed_and_enough(tilt: int) -> None:
    """A tilt that does not suit the threshold: the terms cancel by many digits, and the account says how many."""
    noise = DiscreteGaussian(sigma=2.3)
    family = LineFamily(({Gaussian(2): 1, noise: 1}, {Gaussian(4): 2, noise: 2}), ((0, 0), (0, 1), (1, 1)))
    rung = replace(Ladder(family.total(2)).rung_of(2.0), tilt=Fraction(tilt))
    (skeleton,), _ = LineSkeleton.build(family, np.arange(3), [rung], 1e-12, math.inf)
    sums = LineFamilyContour.plan(skeleton, rung).sums(np.arange(3), [Fraction(2)], np.zeros(3, dtype=np.int64))
    both_ways = sums.dropped + sums.rounding
    for p in range(3):
        with mpmath.workdps(60):
            exact = any_listed(family.composition(p)).delta(Fraction(2))
            excess = float(float(sums.value[p]) - exact / mpmath.exp(mpmath.mpf(float(sums.log_scale[p]))))
        assert -both_ways[p] <= excess <= both_ways[p] + sums.aliased[p]
        if tilt == 10:
            assert abs(excess) > 1e-9 * abs(sums.value[p])  # doubles do lose digits here


# --- phases -----------------------------------------------------------------------------------------------------------------


def test_a_pair_s_sum_does_not_depend_on_another_pair_s_nodes() -> None:
    """Beyond 2^32 nodes phases are computed with more digits: for all pairs of a contour, or for none."""
    contour = contour_at(3.0, 1e-3)
    rng = np.random.default_rng(5)
    node = np.append(rng.integers(1, 2**32, 30_000), 2**40)  # one node for each pair
    terms = replace(contour.terms, node=node, parts=rng.normal(size=(6, len(node))), relative=np.zeros(len(node)))
    skeleton = replace(contour.skeleton, last=2**41)
    large = replace(contour, skeleton=skeleton, count=np.ones(len(node), dtype=np.int64), terms=terms)
    which, y = np.zeros(len(node), dtype=np.int64), [Fraction(22, 7)]
    without = large._sums(np.arange(len(node) - 1), which[:-1], y)
    assert np.array_equal(without, large._sums(np.arange(len(node)), which, y)[:, :-1])
