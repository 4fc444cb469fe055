"""The best design: feasible by an independent check, not beaten by a slow search, no design of a grid below its bound."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from general_search import Wanted, meets_everywhere, searched
from random_designs import random_case

from exactdp import census, numerals, optimize, target
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import Target
from exactdp.optimize.best_design import is_proved
from exactdp.optimize.guarantee import Guarantee
from exactdp.optimize.least_budgets import refuse_if_least_is_too_much
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import read_requirements
from small_release import SMALL

F = Fraction
BEATEN = 1e-4
"""By how much the slow search may be better, whatever the guarantee."""
LEVELS = {"US": 1, "State": 50, "County": 3000}
THREE = Release("three", "Three levels", "made up", {level: {"total": F(1, 10)} for level in LEVELS}, {1: ()})
GOAL = optimize.Objective("variance", LEVELS)


def _excess(release: Release, epsilon: Fraction, delta: Fraction, size: int = 1 << 18) -> float:
    """log delta of the worst pair by convolution on a grid, less that of the target."""
    return max(Wanted("delta", epsilon, delta).excess(c.mechanisms, size) for c in release.compositions)


def _compare(seed: int, looks: int) -> None:
    case = random_case(random.Random(seed))
    goal = optimize.Objective(case.measure, case.weights, worst=case.worst, typical=case.typical)
    found = optimize.best(case.release, goal, target=case.targets, requirements=case.requirements)
    assert meets_everywhere(case, found.release)
    unknowns = case.unknowns(found.release)
    assert case.objective(unknowns) == pytest.approx(found.value, rel=1e-9)
    assert (unknowns >= np.array(case.low) * (1 - 1e-9)).all()
    assert (unknowns <= np.array(case.high) * (1 + 1e-9)).all()
    assert not case.step or all(x % case.step == 0 for own in found.release.table.values() for x in own.values())
    other = searched(case, unknowns, looks)
    assert found.value <= other * (1 + BEATEN)
    if found.bound is not None:
        assert found.bound.value <= other * (1 + 1e-6)


@pytest.mark.parametrize("seed", [0, 7, 294, 85, 170], ids=["delta", "beta", "ripples", "round budgets", "a bound"])
def test_a_slow_search_finds_nothing_better(seed: int) -> None:
    _compare(seed, 20)


def test_the_check_of_a_mu_begins_at_an_epsilon_of_0() -> None:
    """A design that has 1.6524 by the proof of its tightest mu, because of an epsilon of 0.68: it is not taken for 1.65."""
    table = {"A": {"n": F("1.28981"), "m": F("0.033198")}}
    mechanisms = next(iter(Release("two", "Two", "made up", table, {1: ()}).compositions)).mechanisms
    assert Wanted("mu", F("1.65")).excess(mechanisms, 1 << 14) > 1e-3
    assert Wanted("mu", F("1.6525")).excess(mechanisms, 1 << 14) <= 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(300))
def test_a_slow_search_finds_nothing_better_on_random_designs(seed: int) -> None:
    """Of every kind of objective, target and requirement; sizes are such that all of them take about an hour of one core."""
    _compare(seed, 60)


@pytest.mark.soak
def test_the_three_level_example() -> None:
    """Equal shares by zCDP's simple conversion, equal shares, best shares: 37,292, 30,022, 12,960 of issue 20."""
    simple = (math.sqrt(10 * math.log(10) + 5) - math.sqrt(10 * math.log(10))) ** 2
    assert 3051 * 3 / simple == pytest.approx(37292, rel=1e-4)
    equal = optimize.best(THREE, GOAL, target=target(5, "1e-10"), requirements=["all: equal"])
    # 30,022 is 3051 * 9.84: sigma2 rounded up to hundredths. The boundary is at 9.8344, by the grid, too.
    assert equal.value == pytest.approx(30005, rel=1e-4)
    for sigma2, over in (("9.84", False), ("9.835", False), ("9.834", True)):
        table = {level: {"total": 1 / F(sigma2)} for level in LEVELS}
        assert (_excess(Release("x", "x", "x", table, {1: ()}), F(5), F(1, 10**10)) > 0) == over
    found = optimize.best(THREE, GOAL, target=target(5, "1e-10"))
    assert found.value == pytest.approx(12960, rel=5e-4)
    assert found.gap is not None
    assert found.gap < 0.05
    assert -1e-3 < _excess(found.release, F(5), F(1, 10**10)) <= 2e-6, "met, and nothing is left over"
    shares = sorted(change.budget_after for change in found.before_after)
    assert float(shares[2] / shares[0]) == pytest.approx(3000**0.5, rel=0.02)


def test_no_design_of_a_grid_is_below_the_bound() -> None:
    """Designs that meet the guarantee, by the oracle, all have objectives above the bound."""
    wanted = target(2, "1e-10")
    found = optimize.best(THREE, GOAL, target=wanted)
    assert found.bound is not None
    best = {change.level: change.budget_after for change in found.before_after}
    below = 0
    for factors in itertools.product((F(9, 10), F(1), F(21, 20)), repeat=3):
        table = {level: {"total": best[level] * factor} for level, factor in zip(best, factors, strict=True)}
        other = Release("grid", "grid", "made up", table, {1: ()})
        value = GOAL.value(other)
        if _excess(other, F(2), F(1, 10**10), 1 << 15) <= 0:
            assert value >= found.bound.value
        below += value < found.value
    assert below > 5, "the grid has designs that would be better, were they allowed"


@pytest.mark.parametrize("wanted", [target(2, "1e-10"), target(mu="0.8"), target(alpha="0.05", beta="0.7")])
def test_what_the_total_budget_proves_needs_no_look(wanted: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """zCDP says yes only where a look at all pairs does, and says it for the least budgets of loose requirements."""
    guarantee = Guarantee.of(wanted)
    said = [guarantee.is_met_by_zcdp(THREE.scaled(factor)) for factor in (1000, F(1), F(1, 20))]
    assert said == sorted(said, reverse=True)
    assert said[0]
    assert not said[-1]
    assert guarantee.look(THREE.scaled(1000)).excess <= 0
    monkeypatch.setattr(Guarantee, "look", lambda *_: pytest.fail("a look was taken"))
    problem = BudgetProblem.of(THREE, read_requirements(THREE, ["all: budget >= 1/100000"]))
    refuse_if_least_is_too_much(problem, wanted, guarantee)


def test_requirements_are_kept_and_priced() -> None:
    texts = ["US: margin <= 40", "State: budget = 0.01", "County: multiple of 1/250"]
    found = optimize.best(THREE, GOAL, target=target(2, "1e-10"), requirements=texts)
    table = {change.level: change for change in found.before_after}
    assert table["US"].after.margin <= 40
    assert table["State"].budget_after == F(1, 100)
    assert table["County"].budget_after % F(1, 250) == 0
    assert is_proved(found.target, found.release)
    prices = {price.requirement.text: price.epsilon for price in found.prices}
    assert prices["US: margin <= 40"] > 0
    looser = optimize.best(THREE, GOAL, target=target(2, "1e-10"), requirements=["US: margin <= 41", *texts[1:]])
    assert looser.value <= found.value * 1.001


def test_priorities_come_in_their_order() -> None:
    first, then = optimize.Objective("margin", {"County": 1, "State": 1}, worst=True), GOAL
    found = optimize.best(
        THREE, [first, then], target=target(2, "1e-10"), requirements=["US: margin <= 90"], slack=0.05
    )
    alone = optimize.best(THREE, first, target=target(2, "1e-10"), requirements=["US: margin <= 90"])
    assert alone.value <= found.values[0] <= alone.value * 1.0501


@pytest.mark.soak
def test_a_sum_comes_before_a_largest_error() -> None:
    first, then = optimize.Objective("margin", {"County": 1, "State": 1}, worst=True), GOAL
    swapped = optimize.best(
        THREE, [then, first], target=target(2, "1e-10"), requirements=["US: margin <= 90"], slack=0.05
    )
    plain = optimize.best(THREE, then, target=target(2, "1e-10"), requirements=["US: margin <= 90"])
    assert swapped.values[0] <= plain.value * 1.0501
    assert swapped.values[1] < first.value(plain.release)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param([target(mu="0.3")], marks=pytest.mark.soak),
        pytest.param([target(alpha="0.05", beta="0.9")], marks=pytest.mark.soak),
        pytest.param([target(2, "1e-10"), target(1, "1e-4")], marks=pytest.mark.soak),
        [target(advantage="0.1")],
    ],
    ids=["mu", "beta", "several", "advantage"],
)
def test_every_guarantee_is_met_and_used_up(wanted: list[object]) -> None:
    found = optimize.best(THREE, GOAL, target=wanted)  # type: ignore[arg-type]
    assert all(is_proved(one, found.release) for one in wanted)  # type: ignore[arg-type]
    less = found.release.scaled(F(99, 100))
    assert not all(is_proved(one, less) for one in wanted)  # type: ignore[arg-type]
    if found.bound is not None:
        assert found.bound.value <= found.value


def test_all_pairs_count() -> None:
    """With the bypass rule over all pairs, and unusual noise: neighbours by one record, sensitivity, Laplace."""
    found = optimize.best(SMALL, target=target(3, "1e-8"))
    assert _excess(found.release, F(3), F(1, 10**8)) <= 2e-6
    noise = {
        ("US", "total"): census.CellNoise("gaussian"),
        ("State", "total"): census.CellNoise(sensitivity=2, cells=2),
        ("County", "total"): census.CellNoise("discrete laplace"),
    }
    unusual = Release("u", "Unusual", "made up", THREE.table, {1: ()}, "add/remove", noise)
    other = optimize.best(unusual, target=target(3, "1e-8"))
    assert other.release.pair(1, 0).delta(3) <= 1e-8
    assert other.value < other.values_before[0] or other.before.pair(1, 0).delta(3) > 1e-8


def test_the_least_epsilon_for_an_objective() -> None:
    found = optimize.least(THREE, delta="1e-10", objective=GOAL, at_most=80000)
    assert GOAL.value(found.release) <= 80000
    assert found.bound is not None
    assert found.bound <= found.epsilon[1] <= 2
    assert found.release.account().epsilon("1e-10") == pytest.approx(found.epsilon[1], abs=1e-5)
    with pytest.raises(InvalidInputError, match="goes with the most that it may be"):
        optimize.least(THREE, delta="1e-10", objective=GOAL)
    with pytest.raises(InvalidInputError, match="No noise that is allowed has an objective"):
        optimize.least(THREE, delta="1e-10", objective=GOAL, at_most="1e-300")


@pytest.mark.soak
def test_the_frontier_falls_and_names_what_is_out_of_reach() -> None:
    found = optimize.frontier(THREE, GOAL, delta="1e-10", epsilons=[1, 2, 3], requirements=["State: margin <= 10"])
    values = [one.value for _, one in found.points]
    assert values == sorted(values, reverse=True)
    assert len(values) == 2
    assert "needs an epsilon of at least 1.5" in found.refusals[0]
    assert found.given == (pytest.approx(4.9608, abs=1e-3), 30510.0)
    with pytest.raises(InvalidInputError, match="1 to 200 epsilons"):
        optimize.frontier(THREE, GOAL, delta="1e-10", epsilons=[])


def test_explanations_of_the_published_design() -> None:
    """The numbers of issue 20: 0.01 of budget costs about the same everywhere and buys very different things."""
    found = optimize.explain(census.release("dhc-persons-us"), delta="1e-10")
    cells = {(cell.level, cell.query): cell for cell in found.cells}
    costs = [cell.cost for cell in found.cells]
    assert max(costs) / min(costs) < 1.002
    assert costs[0] == pytest.approx(0.029965, rel=2e-3)
    block, state = cells["Block", "detailed"], cells["State", "detailed"]
    assert [round(x.standard_error, 2) for x in (block.now, block.then)] == [30.15, 9.49]
    assert [round(x.standard_error, 3) for x in (state.now, state.then)] == [3.164, 3.016]
    assert found.bargains[0].level == "Block"
    assert found.pair == (6, 6)
    assert "> [County] >" in found.paths()[0]
    paths = [found.release.allocations[number].table.values() for number in (6, found.release.full_path)]
    coarsest = [min(1 / budget for queries in path for budget in queries.values()) for path in paths]
    assert coarsest[0] < coarsest[1]
    said = (
        f"worst one has a sigma2 of {numerals.about(coarsest[0])}, that of the full path {numerals.about(coarsest[1])}."
    )
    assert found.statement.endswith(said)
    totals = {sum(sum(q.values()) for q in one.table.values()) for one in found.release.allocations.values()}
    assert len(totals) == 1
    assert optimize.explain(census.release("dhc-units-us"), delta="1e-10").statement.endswith("There is one path only.")
    assert abs(found.shape) < 0.01
    assert found.epsilon[0] <= found.epsilon[1] < found.epsilon[0] + 1e-6


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"target": 5}, "made by exactdp.target"),
        ({"target": []}, "at least one"),
        ({"target": target(-2, "1e-8")}, "must not be negative. Found -2"),
        ({"target": target(2, "1e-10"), "slack": 2}, "a share from 0 to 1. Found 2"),
        ({"target": target(2, "1e-10"), "digits": 1}, "digits must be"),
        ({"target": target(alpha="0.5", beta="0.6")}, "below 1 - alpha"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        optimize.best(THREE, GOAL, **arguments)  # type: ignore[arg-type]
    assert named in str(refused.value)
