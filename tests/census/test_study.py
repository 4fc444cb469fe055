"""The overall guarantee: laws that hold by definition, brute-force envelopes, ties, and known values of the Census."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactdp
import oracle
from exactdp import census
from exactdp.accounting.pairs import Pairs
from exactdp.census import overall, worst_pair
from exactdp.census.envelope import envelope_bounds
from exactdp.census.pair_results import make_overall, overall_of
from exactdp.census.study import Study
from exactdp.census.worst_pair import Candidates
from small_release import COARSE, SMALL

DHC = census.release("dhc-persons-us")
LESS_TELLING = ("0.0003", "0.123", "0.77", "0.9999999999")


@cache
def study_of(release: census.Release) -> Study:
    return release.account(
        epsilons=["0", "1/2", "3", "9"], deltas=["0.2", "1e-3", "1e-9"], alphas=["0.001", "0.05", "0.5", "0.9"]
    )


@cache
def _brute(release: census.Release, pair: tuple[int, int]) -> oracle.Brute:
    return oracle.brute({(m.sigma2, m.sensitivity): n for m, n in release.pair(*pair).mechanisms.items()})


@cache
def _envelope(release: census.Release) -> list[tuple[Fraction, Fraction]]:
    """The lower convex hull of every vertex of every pair (monotone chain, exact)."""
    points = {(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))}
    for pair in release.pairs:
        b = _brute(release, pair)
        total = b.spread / b.step
        points |= {(b.tail(t), b.tail(int(total) + 1 - t)) for t in range(-b.offset, b.offset + 2)}
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in sorted(points):
        while len(hull) >= 2 and (hull[-1][0] - hull[-2][0]) * (y - hull[-1][1]) <= (hull[-1][1] - hull[-2][1]) * (
            x - hull[-1][0]
        ):
            hull.pop()
        hull.append((x, y))
    return hull


def _on(hull: list[tuple[Fraction, Fraction]], alpha: Fraction) -> Fraction:
    for (x0, y0), (x1, y1) in pairwise(hull):
        if x0 <= alpha <= x1 and x0 < x1:
            return y0 + (y1 - y0) * (alpha - x0) / (x1 - x0)
    raise AssertionError(alpha)


@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
def test_tables_against_brute_force(release: census.Release) -> None:
    study = study_of(release)
    for quantity in ("delta", "beta"):
        lower, upper = study.table(quantity)
        for i, pair in enumerate(study.pairs):
            for j, x in enumerate(study.grids.by_quantity[quantity]):
                exact = getattr(_brute(release, pair), quantity)(x)
                assert Fraction(lower[i, j]) <= exact + oracle.ERROR
                assert exact - oracle.ERROR <= Fraction(upper[i, j])


@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
@pytest.mark.parametrize(
    "alpha",
    ["1e-12", "0.01", "0.5", "0.999", *(pytest.param(a, marks=pytest.mark.soak) for a in LESS_TELLING)],
)
def test_the_envelope_against_brute_force(release: census.Release, alpha: str) -> None:
    low, high = study_of(release).beta_bounds(alpha)
    exact = _on(_envelope(release), Fraction(alpha))
    assert Fraction(low) <= exact + oracle.ERROR
    assert exact - oracle.ERROR <= Fraction(high)
    assert high - low <= 1e-11 * high


def test_the_envelope_whichever_pairs_are_thought_to_be_the_worst() -> None:
    """The likely pairs affect speed only; what they leave is asked of all pairs."""
    release = SMALL
    engine, alphas = overall_of(release), [Fraction(1, 1000), Fraction(1, 20), Fraction(3, 4)]
    assert isinstance(engine.pairs, Pairs)
    exact = [_on(_envelope(release), alpha) for alpha in alphas]
    for pair in range(0, len(release.pairs), 3):
        for (low, high), value in zip(
            envelope_bounds(engine.extremes, [pair], engine.pairs, alphas), exact, strict=True
        ):
            assert Fraction(low) <= value + oracle.ERROR
            assert value - oracle.ERROR <= Fraction(high)
            assert high - low <= 1e-11 * high


@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
def test_a_stated_guarantee_is_decided_for_all_pairs(release: census.Release) -> None:
    for epsilon in (Fraction(0), Fraction(1), Fraction(7, 2)):
        worst = max(_brute(release, pair).delta(epsilon) for pair in release.pairs)
        assert overall_of(release).side(epsilon, worst * (1 + Fraction(1, 10**9))) == -1
        assert overall_of(release).side(epsilon, worst * (1 - Fraction(1, 10**9))) == 1
        assert overall_of(release).side(epsilon, worst) == 0


def test_what_is_asked_together_is_what_is_asked_alone() -> None:
    together, alone = make_overall(SMALL), make_overall(SMALL)
    epsilons = [Fraction(e, 4) for e in (9, -3, 0, 3, 9, 40)]
    deltas, alphas = [Fraction(1, 10**k) for k in (9, 1, 5)], [Fraction(a, 10) for a in (9, 1, 5)]
    assert together.deltas(epsilons) == [alone.delta(e) for e in epsilons]
    assert together.epsilons(deltas) == [alone.epsilon(d) for d in deltas]
    assert together.betas(alphas) == [alone.beta(a) for a in alphas]
    assert [w.tolist() for w in together.worst(epsilons).rows()] == [
        [float(alone.worst([e]).rows()[i][0]) for e in epsilons] for i in range(7)
    ]


@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
def test_the_envelope_at_vertices(release: census.Release) -> None:
    """At and next to the corners of the exact envelope, where left and right are hard to tell."""
    study, hull = study_of(release), _envelope(release)
    inside = [x for x, y in hull if Fraction(1, 10**9) < x < 1 - Fraction(1, 10**9)]
    for x in inside[:: max(1, len(inside) // 6)]:
        alpha = Fraction(float(x))
        low, high = study.beta_bounds(alpha)
        exact = _on(hull, alpha)
        assert Fraction(low) <= exact + oracle.ERROR
        assert exact - oracle.ERROR <= Fraction(high)


def test_overall_is_at_least_every_pair_and_attained() -> None:
    study = study_of(SMALL)
    for quantity, arguments in study.grids.by_quantity.items():
        lower, upper = study.table(quantity)
        ask = getattr(study, f"{quantity}_bounds")
        for j, x in enumerate(arguments):
            low, high = ask(x)
            if quantity == "beta":
                assert low <= upper[:, j].min()
                assert high <= upper[:, j].min() * (1 + 1e-11)
            else:
                assert high >= lower[:, j].max()
                assert low <= upper[:, j].max()
                assert high - low <= 1e-11 * high


@settings(max_examples=15)
@given(
    st.fractions(Fraction(1, 10**6), 1 - Fraction(1, 10**6)), st.fractions(Fraction(1, 10**6), 1 - Fraction(1, 10**6))
)
def test_the_envelope_is_convex_and_below_every_pair(a: Fraction, b: Fraction) -> None:
    study = study_of(SMALL)
    middle = (a + b) / 2
    ends = study.beta_bounds([a, b])
    assert study.beta_bounds(middle).lower <= (ends.upper[0] + ends.upper[1]) / 2 * (1 + 1e-15)
    least = min(SMALL.pair(*pair).beta_bounds(middle).upper for pair in SMALL.pairs)
    assert study.beta_bounds(middle).lower <= least


def test_the_curve_is_below_the_envelope_and_convex() -> None:
    study = study_of(SMALL)
    curve = study.tradeoff(61)
    assert (curve.alpha[0], curve.beta[0]) == (0, 1)
    assert (curve.alpha[-1], curve.beta[-1]) == (1, 0)
    assert np.all(np.diff(curve.alpha) > 0)
    for alpha, beta in list(zip(curve.alpha, curve.beta, strict=True))[1:-1:6]:
        low, high = study.beta_bounds(Fraction(alpha))
        assert beta <= high
        assert beta >= low - 2e-2  # tangents from few slopes
    slopes = np.diff(curve.beta) / np.diff(curve.alpha)
    assert np.all(np.diff(slopes) >= -1e-9 * np.abs(slopes[1:]))


def test_ends_of_the_ranges() -> None:
    study = study_of(SMALL)
    assert study.delta_bounds(float("inf")) == (0, 0)
    assert study.delta_bounds(float("-inf")) == (1, 1)
    assert study.epsilon_bounds(0) == (float("inf"), float("inf"))
    assert study.epsilon_bounds(1) == (float("-inf"), float("-inf"))
    assert study.beta_bounds([0, 1]).lower.tolist() == [1, 0]
    low, high = study.epsilon_bounds("0.95")  # above delta(0): negative
    assert low <= high < 0
    assert study.log_delta(300) < -700
    with pytest.raises(exactdp.InvalidInputError, match=r"between 0 and 1\. Found 0"):
        SMALL.account(deltas=[0])
    with pytest.raises(exactdp.InvalidInputError, match="finite numbers"):
        SMALL.account(epsilons=[float("inf")])
    with pytest.raises(exactdp.InvalidInputError, match="one of delta, epsilon and alpha"):
        study.worst_pair(delta=0.1, epsilon=1)


@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
def test_the_worst_pair(release: census.Release) -> None:
    study = study_of(release)
    for e in ("1/2", "9"):
        exact = {pair: _brute(release, pair).delta(Fraction(e)) for pair in release.pairs}
        assert exact[study.worst_pair(epsilon=e)] >= max(exact.values()) - oracle.ERROR
    exact = {pair: _brute(release, pair).beta(Fraction(1, 20)) for pair in release.pairs}
    assert exact[study.worst_pair(alpha="0.05")] <= min(exact.values()) + oracle.ERROR
    assert study.worst_pair(delta="1e-3") in release.pairs


@pytest.mark.parametrize("delta", ["1e-8", "1e-3", "0.4", "0.8"])
@pytest.mark.parametrize("release", [SMALL, COARSE], ids=["fine", "coarse"])
def test_overall_suspects_are_all_but_those_that_are_not_the_worst(release: census.Release, delta: str) -> None:
    exact = [release.pair(*pair).epsilon_bounds(delta) for pair in release.pairs]
    left = overall_of(release).suspects(Fraction(delta))
    assert all(max(low, exact[i].lower) <= min(high, exact[i].upper) for i, (low, high) in left.items())
    assert max(exact[i].upper for i in left) == max(bounds.upper for bounds in exact)
    others = [bounds for i, bounds in enumerate(exact) if i not in left]
    assert all(bounds.lower < max(other.upper for other in exact) for bounds in others)
    certain = [i for i, bounds in enumerate(exact) if bounds.upper < max(other.lower for other in exact) - 1e-6]
    assert not set(certain) & set(left)


def test_grids_are_any_iterables() -> None:
    grid = np.array([0.5, 3.0])
    assert SMALL.account(epsilons=grid).grids.epsilons == (Fraction(1, 2), Fraction(3))
    assert SMALL.account(epsilons=(e for e in (1, 2))).table("delta").upper.shape == (10, 2)
    for bad in ("12", 5):
        with pytest.raises(exactdp.InvalidInputError, match="epsilons takes a list of numbers"):
            SMALL.account(epsilons=bad)  # type: ignore[arg-type]


def test_equal_pairs_tie_and_the_first_wins() -> None:
    twins = census.Release("twins", "", "", SMALL.table, {4: (), 9: ()})
    candidates = Candidates.of(twins, epsilon=1)
    assert len(candidates.bounds) == 3
    assert candidates.compositions == 1
    assert candidates.worst() == (4, 4)


@pytest.mark.parametrize(("delta", "worst"), [("1e-6", (8, 8)), ("1e-14", (13, 13))])
def test_pairs_that_agree_in_a_hundred_digits_are_told_apart(
    delta: str, worst: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, near = census.release("dhc-persons-us"), [(8, 8), (8, 13), (13, 13)]
    candidates = Candidates(release, "epsilon", Fraction(delta), dict.fromkeys(near, (0.0, 1.0)))
    assert candidates.settled() == (worst, 1)
    # by delta at an epsilon that is the same for all
    epsilon = {"1e-6": "19.3297", "1e-14": "28.5576"}[delta]
    lower, upper = zip(*(release.pair(*pair).delta_bounds(epsilon, 130) for pair in near), strict=True)
    assert all(upper[i] < lower[near.index(worst)] for i, pair in enumerate(near) if pair != worst)
    monkeypatch.setattr(worst_pair, "_TIE_DIGITS", (25,))
    assert candidates.settled() == ((8, 8), 3)


@dataclass(frozen=True)
class _OfEpsilon:
    """A composition whose delta is 1/2 at one epsilon and falls evenly around it; its bounds are as wide as asked."""

    epsilon: Fraction

    def epsilon_bounds(self, delta: Fraction, digits: int) -> tuple[Decimal, Decimal]:
        return tuple(Decimal(str(float(self.epsilon + side * self._width(digits)))) for side in (-1, 1))  # type: ignore[return-value]

    def delta_bounds(self, at: Fraction, digits: int) -> tuple[Fraction, Fraction]:
        delta = Fraction(1, 2) + (self.epsilon - at) / 10
        return delta - self._width(digits) / 100, delta + self._width(digits) / 100

    @staticmethod
    def _width(digits: int) -> Fraction:
        return Fraction(1, 10 ** (digits // 25))


@pytest.mark.parametrize(("digits", "left"), [(25, {2, 3, 4, 5}), (100, {5})])
def test_told_apart_are_epsilons_by_deltas_at_the_ends_of_one(digits: int, left: set[int]) -> None:
    """In whatever order they come: those are left that may be the largest, one at the end of the bounds, and no others."""
    each: dict[Any, int] = {
        _OfEpsilon(Fraction(e)): i for i, e in enumerate(("1", "1.7", "1.895", "1.94", "1.96", "2"))
    }
    some = Candidates(SMALL, "epsilon", Fraction(1, 2), {})
    for order in permutations(each):
        assert {each[c] for c in some._largest_epsilons(list(order), digits)} == left


@pytest.mark.parametrize("name", ["dhc-units-us", "s-dhc-formal-us"])
def test_the_first_pair_of_every_different_composition(name: str) -> None:
    release = census.release(name)
    found: dict[exactdp.Composition, tuple[int, int]] = {}
    for pair in release.pairs:
        found.setdefault(release.pair(*pair), pair)
    assert release.compositions == found
    assert release.different_pairs == tuple(found.values())


@pytest.mark.soak
def test_in_balls() -> None:
    floats, balls = study_of(SMALL), SMALL.account(epsilons=["3"], deltas=["1e-9"], alphas=["0.05"], digits=20)
    for quantity, place in (("delta", 2), ("epsilon", 2), ("beta", 1)):
        low, high = balls.table(quantity)
        for i in range(len(SMALL.pairs)):
            assert Fraction(high[i, 0]) - Fraction(low[i, 0]) <= Fraction(high[i, 0]) * Fraction(1, 10**20)
            assert Fraction(floats.table(quantity).lower[i, place]) <= Fraction(high[i, 0])
            assert Fraction(low[i, 0]) <= Fraction(floats.table(quantity).upper[i, place])


def test_releases_can_be_pickled_hashed_and_scaled() -> None:
    DHC.account()  # fills caches that must not get in the way
    again = pickle.loads(pickle.dumps(DHC))
    assert again == DHC
    assert hash(again) == hash(DHC)
    assert DHC.scaled(2).rho == DHC.rho / 2
    assert DHC.scaled(2).fingerprint != DHC.fingerprint
    study = study_of(SMALL)
    assert pickle.loads(pickle.dumps(study)).results == study.results


def test_the_census() -> None:
    """The overall guarantee over 946 pairs; the worst pair changes with delta."""
    study = DHC.account()
    low, high = study.epsilon_bounds("1e-10")
    assert low <= 24.45651445733738 <= high + 1e-13
    assert high - low < 1e-11
    assert study.worst_pair(delta="1e-10") == (6, 6)
    assert study.worst_pair(delta="1e-9") == (6, 12)
    assert high >= DHC.pair(6, 6).epsilon_bounds("1e-10").lower
    low, high = study.delta_bounds("26.34")
    assert low <= 1.785541805706e-12 <= high * (1 + 1e-12)
    low, high = study.beta_bounds("0.05")
    assert low <= 0.0660995511559 + 5e-14
    assert high >= 0.0660995511559 - 5e-14
    proxy = DHC.pair(13, 13)
    worst = max(study.epsilon(f"1e-{k}") / proxy.epsilon_bounds(f"1e-{k}").lower - 1 for k in (6, 9, 10, 18, 21))
    assert worst < 3e-6


def _many(count: int, rho: str) -> Study:
    queries = {f"q{i}": Fraction(rho) for i in range(count)}
    return census.Release("many", "", "", {"Nation": queries, "State": queries}, {1: (), 2: ("State",)}).account()


@pytest.mark.parametrize(
    ("count", "rho", "alpha"),
    [(30, "1/2", "1e-3"), (30, "1/2", "1e-4"), (80, "1", "1e-10"), (80, "1", "1e-15"), (600, "1", "1e-100")],
)
def test_the_envelope_of_much_budget_is_narrow(count: int, rho: str, alpha: str) -> None:
    """The best slope is below 1 and delta there is near 1."""
    study = _many(count, rho)
    low, high = study.beta_bounds(alpha)
    assert high - low <= 1e-11 * high
    least = min(study.release.pair(*pair).beta_bounds(alpha).upper for pair in study.pairs)
    assert low <= least


@pytest.mark.filterwarnings("ignore::exactdp.AccuracyWarning")  # so deep, it is wider
def test_the_envelope_below_the_double_range() -> None:
    """beta = 4e-350 has a positive upper bound, and alpha below the normal range does not invert the bounds."""
    low, high = _many(400, "1").beta_bounds("0.5")
    assert low == 0 < high
    study = _many(600, "1")
    for alpha in ("1e-316", "1e-318", "1e-321", "1e-400"):
        low, high = study.beta_bounds(alpha)
        least = min(study.release.pair(*pair).beta_bounds(alpha).upper for pair in study.pairs)
        assert 0 <= low <= min(high, least * (1 + 1e-11))


def test_the_overall_epsilon_does_not_depend_on_where_the_search_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a bad guess another pair looks worst first; the true worst one, 1e-6 away, must still be found."""
    exact = DHC.account().epsilon_bounds("1e-10")
    for guess in (5.0, 40.0):
        monkeypatch.setattr(overall, "gaussian_start", lambda *_, start=guess: start)
        low, high = DHC.account().epsilon_bounds("1e-10")
        assert low <= exact.upper
        assert exact.lower <= high
        assert high - low < 1e-11


@pytest.mark.soak
def test_every_pair_of_the_census_contains_its_enclosure() -> None:
    """All 946 pairs: float64 on shared contours against 20 digits in balls on contours of their own."""
    grids = {"epsilons": ["2", "26.34", "40"], "deltas": ["1e-10"], "alphas": ["0.05"]}
    floats, balls = DHC.account(**grids, jobs=2), DHC.account(**grids, jobs=2, digits=20)
    for quantity in ("delta", "epsilon", "beta"):
        for low, high, inner_low, inner_high in zip(
            *(x.ravel() for study in (floats, balls) for x in study.table(quantity)), strict=True
        ):
            assert Fraction(low) <= Fraction(inner_low) <= Fraction(inner_high) <= Fraction(high)


def test_pl94_is_accounted_for_like_any_other_release() -> None:
    study = census.release("pl94-persons-us").account(epsilons=["17.14"], deltas=["1e-10"], alphas=["0.05"])
    low, high = study.delta_bounds("17.14")
    assert low <= 1.410731464021832e-11 <= high < low * (1 + 1e-10)
    low, high = study.epsilon_bounds("1e-10")
    assert low <= high < low + 1e-9
    assert study.result((1, 1)).delta[0][0] < 1.4107314641e-11
    low, high = study.beta_bounds("0.05")
    assert low <= high < low * (1 + 1e-9)
