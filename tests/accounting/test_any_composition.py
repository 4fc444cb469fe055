"""Any composition: every answer against independent ones, infinite losses, limits, and what must not matter."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from any_cases import (
    CASES,
    FEW_CORNERS,
    NAMED,
    NARROW,
    SEVERAL_UNITS,
    Counts,
    case_of,
    epsilons_of,
    holds,
    inside,
)
from any_oracle import Listed, listed, number
from exactdp import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Outcomes,
    PoissonSampled,
    RandomizedResponse,
)
from exactdp.accounting.directions import BothDirections, Direction
from exactdp.engine.effort import Effort
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.errors import AccuracyWarning, InvalidInputError
from exactdp.mechanisms.mechanism import Mechanism


def _at_atom(truth: Listed, e: Fraction) -> float:
    """The probability of the atom at epsilon, which may be far above delta: doubles place it within about 1e-14 only."""
    p, q = truth.atoms.get(int(abs(e) * (1 << 300)), (0, 0))
    return float(Fraction(max(p, q), 1 << 520))


@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")  # narrowness is asserted here
@pytest.mark.parametrize("case", CASES)
def test_delta_holds_the_exact_value_and_is_narrow(case: str | int) -> None:
    counts, truth = case_of(case)
    epsilons = epsilons_of(counts, truth)
    bounds = Composition(counts).delta_bounds(epsilons)
    for e, low, high in zip(epsilons, bounds.lower, bounds.upper, strict=True):
        exact = truth.worst(e)
        assert inside(low, high, exact, truth.error(e)), (e, low, high, exact)
        assert high - low <= NARROW * high + 1e-12 * _at_atom(truth, e), (e, low, high)


@pytest.mark.parametrize("case", CASES)
def test_the_rest_holds_the_exact_value_and_is_narrow(case: str | int) -> None:
    counts, truth = case_of(case)
    epsilons = [e for e in epsilons_of(counts, truth) if truth.rest(e) > 1e-60]
    if not epsilons:
        return
    rest = BothDirections(counts, Effort()).point(epsilons).rest
    for i, e in enumerate(epsilons):
        assert holds(rest, truth.rest(e), truth.error(e), i), e
        assert rest.upper[i] - rest.lower[i] <= NARROW * rest.upper[i], e


@pytest.mark.parametrize("case", CASES)
def test_epsilon_has_both_ends_on_their_sides(case: str | int) -> None:
    counts, truth = case_of(case)
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


@pytest.mark.parametrize("case", [c for c in CASES if c not in FEW_CORNERS and (isinstance(c, str) or c < 20)])
def test_beta_holds_the_exact_value_and_is_narrow(case: str | int) -> None:
    counts, truth = case_of(case)
    composition = Composition(counts)
    for alpha in ("0.3",) if truth.spread else ("1e-6", "0.05", "0.4"):
        low, high = composition.beta_bounds(alpha)
        exact = truth.beta(Fraction(alpha))
        error = truth.error(Fraction(40)) + mpmath.mpf(10) ** -30
        assert inside(low, high, exact, error), (alpha, low, high, exact)
        assert high - low <= 1e-7 * high + 1e-300, (alpha, low, high)


@pytest.mark.parametrize("case", SEVERAL_UNITS)
def test_tables_on_no_lattice_hold_the_exact_value(case: str) -> None:
    counts, truth = case_of(case)
    for e in epsilons_of(counts, truth)[3:5]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            low, high = Composition(counts).delta_bounds(e)
        assert inside(low, high, truth.worst(e), truth.error(e)), (e, low, high)


@pytest.mark.parametrize("case", SEVERAL_UNITS)
def test_tables_on_no_lattice_are_narrow(case: str) -> None:
    counts, truth = case_of(case)
    bounds = Composition(counts).delta_bounds(epsilons_of(counts, truth)[3:5])
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
    assert inside(low, high, exact, mpmath.mpf(10) ** -60), (low, high, exact)
    assert high - low <= 1e-7 * high + 1e-300, (low, high)


def test_epsilon_where_delta_is_next_to_1() -> None:
    low, high = (10 * RandomizedResponse(1)).epsilon_bounds(1 - Fraction(1, 2**300))
    assert low <= -300 * math.log(2) <= high < low + 1e-9


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
    counts, _ = case_of(case)
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


def test_the_bound_that_skips_a_direction() -> None:
    """It holds where both directions are summed, it is close enough to skip one, and skipping changes nothing (Theorem S6)."""
    steps = PoissonSampled(Gaussian(4), "0.01") * 1000
    removal, addition = steps._answers._directions
    for epsilon in (Fraction(1, 4), Fraction(1), Fraction(3, 2)):
        exact = addition.point([epsilon]).delta
        upper = addition.log_delta_upper(epsilon, -math.inf)
        assert exact.log_upper()[0] <= upper <= exact.log_lower()[0] + 2.5
        # and it is nowhere below the best that Theorem S6 has, by moments in balls
        orders = [Fraction(round(64 * 1.05**i), 64) for i in range(160)]
        logs = [
            float(addition.total.log_moment(nu).mid()) + float(nu) * (math.log(nu / (1 + nu)) - float(epsilon))
            for nu in orders
        ]
        assert min(log - math.log1p(nu) for log, nu in zip(logs, orders, strict=True)) - 0.02 <= upper
    least = float(removal.point([Fraction(1)]).delta.log_lower()[0])
    assert addition.log_delta_upper(Fraction(1), least) < least
    near = PoissonSampled(Gaussian(1), "0.9") * 3  # addition is not skipped, and may be the larger one
    both = [float(d.point([Fraction(1, 8)]).delta.upper_floats()[0]) for d in near._answers._directions]
    assert near.delta_bounds("1/8").upper >= max(both) * (1 - 1e-12)


def test_a_direction_is_looked_at_until_it_is_proved_not_to_be_the_worse_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Narrow bounds of it take seconds here. Where it may be the worse one it gets them."""
    epsilon, rare = Fraction(1, 100), PoissonSampled(Gaussian(4), "0.001") * 100
    removal, addition = rare._answers._directions
    least = float(removal.point([epsilon]).delta.log_lower()[0])
    assert addition.log_delta_upper(epsilon, -math.inf) > least
    monkeypatch.setattr(LineMethods, "_finer_sum", lambda *_: pytest.fail("much effort for what decides nothing"))
    answer = rare.delta_bounds(epsilon)
    assert answer.upper <= answer.lower * (1 + 1e-11)
    assert addition.is_below(epsilon, least)
    known = addition.answering.points([threshold(epsilon)], np.array([least])).delta
    assert known.log_upper()[0] < least
    # a threshold that has to be narrow beside one that need not be
    both = addition.answering.points([threshold(Fraction(1))] * 2, np.array([-math.inf, 0.0])).delta
    assert both.width()[0] <= 1e-9
    assert both.lower[0] * (1 - 1e-9) <= both.upper[1]


@pytest.mark.parametrize("thoroughly", [False, True])
def test_a_direction_that_is_the_worse_one_by_little_is_not_taken_for_smaller(thoroughly: bool) -> None:
    """Also where bounds of it are wide: as often sampled as not, and with little effort."""
    for sigma2, rate, steps, at in ((1, "0.9", 3, "1/8"), (256, "0.01", 100, "1/100"), (256, "0.001", 100, "1/1000")):
        composition = (PoissonSampled(Gaussian(sigma2), rate) * steps).within(max_nodes=500)
        epsilon = Fraction(at)
        for direction in composition._answers._directions:
            exact = Direction(direction.total, Effort()).point([epsilon]).delta
            least = float(exact.log_lower()[0])
            assert not direction.is_below(epsilon, least - 1e-6, thoroughly)
            assert direction.is_below(epsilon, least + 3.0, thoroughly)
