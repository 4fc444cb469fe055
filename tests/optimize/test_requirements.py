"""The grammar of requirements and objectives, and what contradicts, is empty or cannot be."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from exactdp import census, optimize, target
from exactdp.errors import InvalidInputError
from exactdp.optimize.cells import chosen_cells
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.request_files import Request, objective, pairs_of_texts, read_request
from exactdp.optimize.requirements import read_requirements, requirement
from exactdp.optimize.rounding import group_steps
from small_release import SMALL

F = Fraction
STRICT = target(1, "1e-8")


def test_cells_are_named_by_level_query_or_both() -> None:
    assert chosen_cells(SMALL, "Nation") == (("Nation", "age"), ("Nation", "sex"))
    assert chosen_cells(SMALL, "sex") == (("Nation", "sex"), ("State", "sex"))
    assert chosen_cells(SMALL, " State  sex ; Block/age") == (("State", "sex"), ("Block", "age"))
    assert len(chosen_cells(SMALL, "all")) == 5


@pytest.mark.parametrize(
    ("text", "kind", "bound", "side"),
    [
        ("Block: margin <= 0", "margin", "0", "<="),
        ("Block: variance<=9/4", "variance", "9/4", "<="),
        ("Block age: relative <= 10% of 400", "relative", "1/10", "<="),
        ("Block: budget >= 0.01", "budget", "1/100", ">="),
        ("Block: budget = 1e-2", "budget", "1/100", "="),
        ("Block: multiple of 1/1000", "multiple", "1/1000", "<="),
        ("Block:  fixed", "fixed", "0", "<="),
    ],
)
def test_requirements_are_read(text: str, kind: str, bound: str, side: str) -> None:
    found = requirement(SMALL, text)
    assert (found.kind, found.bound, found.side, found.cells) == (kind, F(bound), side, (("Block", "age"),))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "Found an empty one"),
        ("Block", "CELLS: CONDITION"),
        ("Tract: fixed", "Found Tract"),
        (": fixed", "Found an empty name"),
        ("Block: margin < 3", "Found margin < 3"),
        ("Block: margin <= -3", "a count from 0 on. Found -3"),
        ("Block: margin <= x", "Found x"),
        ("Block: variance <= 0", "must be positive. Found 0"),
        ("Block: relative <= 10%", "Found relative <= 10%"),
    ],
)
def test_what_is_not_understood_gets_a_sentence(text: str, named: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        requirement(SMALL, text)
    assert named in str(refused.value)
    assert str(refused.value).endswith(".")


def test_a_name_of_two_things_is_refused() -> None:
    both = census.Release("x", "x", "x", {"age": {"age": F(1)}, "b": {"c": F(1)}}, {1: ()})
    with pytest.raises(InvalidInputError, match="age names several things here"):
        chosen_cells(both, "age")
    assert chosen_cells(both, "age / age") == (("age", "age"),)


def _problem(*texts: str) -> BudgetProblem:
    return BudgetProblem.of(SMALL, read_requirements(SMALL, texts))


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (("Block: margin <= 3", "Block: budget <= 0.01"), "'Block: margin <= 3' needs a budget of at least"),
        (("Nation: fixed", "Nation age: budget >= 0.9"), "'Nation: fixed' allows at most 0.5 in Nation age"),
        (("Nation: equal", "Nation: tied"), "others tie differently"),
        (("age: equal", "Nation age: fixed", "Block age: budget <= 0.1"), "with which it is tied"),
        (("Block: budget = 0.0015", "Block: multiple of 1/100"), "no multiple of 1/100 lies between"),
        (("Nation: tied", "Nation: multiple of 1/100"), "say equal instead of tied"),
    ],
)
def test_contradictions_are_named(texts: tuple[str, ...], named: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        group_steps(_problem(*texts))
    assert named in str(refused.value)


def test_ties_of_ties_are_ties() -> None:
    problem = _problem("Nation: tied", "Nation age; State age: equal")
    assert problem.count == 3
    assert len(set(problem.group[[0, 1, 2]].tolist())) == 1
    unknown = dict(zip(problem.cells, problem.ratios, strict=True))
    assert unknown["Nation", "age"] == unknown["State", "age"] == 2 * unknown["Nation", "sex"]


@pytest.mark.parametrize(
    ("requirements", "goal", "named"),
    [
        (["all: fixed"], None, "nothing to choose"),
        ([], optimize.Objective("variance", {"Nation": 1}), "State age is in no objective and in no requirement"),
        ("Block: fixed", None, "put it in a list"),
        ([], optimize.Objective("variance", {"Nation": 0}), "a cell with a weight above 0"),
        (
            [],
            optimize.Objective("relative", typical={"Nation": 5}),
            "a typical count of each cell. Found none for State age",
        ),
        ([], [], "at least one"),
        (["Block: margin <= 1", "State age: margin <= 50"], None, "'Block: margin <= 1' needs an epsilon of at least"),
        (["Nation: margin <= 27", "State: margin <= 27"], None, "together need an epsilon of at least"),
    ],
)
def test_empty_and_infeasible_requests_get_one_sentence(
    requirements: list[str], goal: optimize.Objective, named: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        optimize.best(SMALL, goal, target=STRICT, requirements=requirements)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_epsilon_that_requirements_need_is_just_below_what_they_cost() -> None:
    texts = ["all: margin <= 12"]
    with pytest.raises(InvalidInputError, match="needs an epsilon of at least") as refused:
        optimize.best(SMALL, target=STRICT, requirements=texts)
    needed = float(str(refused.value).split("at least ")[1].split()[0])
    least = optimize.least(SMALL, delta="1e-8", requirements=texts)
    assert least.epsilon[1] * 0.99 < needed <= least.epsilon[1]
    assert SMALL.account().epsilon("1e-8") > least.epsilon[1]
    assert least.release.account().epsilon("1e-8") <= least.epsilon[1] * (1 + 1e-9)
    assert least.bound is not None
    assert needed <= least.epsilon[1]
    assert all(change.after.margin == 12 for change in least.before_after)


def test_objectives_are_read() -> None:
    assert objective("worst margin of Block", {}, {}) == optimize.Objective("margin", {"Block": 1}, worst=True)
    assert Request().objectives() == (optimize.Objective(),)
    for text, named in [("worst", "Found worst"), ("", "an empty one"), ("bias", "Found bias")]:
        with pytest.raises(InvalidInputError, match=named):
            objective(text, {}, {})
    with pytest.raises(InvalidInputError, match="either weights or"):
        objective("variance of Block", {"Block": 2}, {})
    assert pairs_of_texts(["County = 3"], "--weight") == {"County": "3"}
    with pytest.raises(InvalidInputError, match="takes CELLS=NUMBER"):
        pairs_of_texts(["County"], "--weight")


def test_requests_are_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "request.toml"
    file.write_text('minimize = "variance"\nrequire = ["Block: fixed"]\ndelta = 1e-8\n[weights]\nBlock = 2.5\n')
    assert read_request(file) == Request(("variance",), ("Block: fixed",), {"Block": "2.5"}, {}, None, "1e-8")
    for text, named in [
        ("x = 1", "Found x"),
        ("require = 3", "a list of texts"),
        ("weights = 3", "a table"),
        ("=", "not valid TOML"),
    ]:
        file.write_text(text)
        with pytest.raises(InvalidInputError, match=named):
            read_request(file)


def test_costs_of_laplace_cells_are_refused_with_a_remedy() -> None:
    noise = {("A", "b"): census.CellNoise("discrete laplace")}
    laplace = census.Release("x", "x", "x", {"A": {"a": F(1), "b": F(1)}}, {1: ()}, "replace", noise)
    with pytest.raises(InvalidInputError, match="discrete Laplace noise in A b; compare designs with exactdp sweep"):
        optimize.explain(laplace, delta="1e-6")


@pytest.mark.soak
def test_a_bound_that_says_nothing_is_not_printed() -> None:
    noise = {("A", "b"): census.CellNoise("discrete laplace")}
    alone = census.Release("x", "x", "x", {"A": {"b": F(1)}}, {1: ()}, "replace", noise)
    assert optimize.best(alone, target=target(3, "1e-6")).statement.endswith("from the best one is not.")


@pytest.mark.parametrize(
    "text",
    ["margin <= 1e400", "variance <= 1e400", "relative <= 10% of 1e400", "relative <= 1e-400 of 9", "budget >= 1e-400"],
)
def test_numbers_that_errors_cannot_be_reckoned_with_are_refused_as_written(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"must be between 1e-300 and 1e300\. Found 1e-?400"):
        requirement(SMALL, f"Block: {text}")


def test_typical_counts_limits_and_steps_beyond_doubles_are_refused() -> None:
    beyond = r"must be between 1e-300 and 1e300\. Found 1e400\."
    with pytest.raises(InvalidInputError, match=r"A typical count must be between 1e-100 and 1e100\. Found 1e400\."):
        optimize.best(SMALL, optimize.Objective("relative", typical={"all": "1e400"}), target=STRICT)
    with pytest.raises(InvalidInputError, match=f"at_most {beyond}"):
        optimize.least(SMALL, delta="1e-8", objective=optimize.Objective(), at_most="1e400")
    with pytest.raises(InvalidInputError, match=r"step is a little budget, at most 10\. Found 1e400"):
        optimize.explain(SMALL, delta="1e-8", step="1e400")


@pytest.mark.parametrize(
    ("epsilon", "requirements", "named", "budgets"),
    [
        (
            "3.9",
            ["Nation age: multiple of 1", "Block: margin <= 40"],
            "'Nation age: multiple of 1' allows, epsilon",
            (1, 1),
        ),
        (
            "8",
            ["Nation: tied", "Nation age: budget = 1", "Block: margin <= 400"],
            "'Nation: tied' and 'Nation age: budget = 1' allow, epsilon",
            (1, 1, 0.5, 0.5),
        ),
    ],
)
def test_least_budgets_that_miss_the_guarantee_are_named_with_their_epsilon(
    epsilon: str, requirements: list[str], named: str, budgets: tuple[float, ...]
) -> None:
    """Only those that matter, with the epsilon of the noise that they leave: here by a sum over all outcomes."""
    with pytest.raises(InvalidInputError, match=f"Found the target {epsilon};") as refused:
        optimize.best(SMALL, target=target(epsilon, "1e-6"), requirements=requirements)
    assert named in str(refused.value)
    told = float(str(refused.value).split("epsilon is at least ")[1].split()[0])
    losses, masses = np.zeros(1), np.ones(1)
    x = np.arange(-40, 41)
    for budget in budgets:
        weights = np.exp(-(x**2) * budget / 2)
        losses = np.add.outer(losses, (x + 0.5) * budget).ravel()
        masses = np.outer(masses, weights / weights.sum()).ravel()
        losses, where = np.unique(losses, return_inverse=True)
        masses = np.bincount(where, masses)
    at_told, just_above = (float(masses @ np.maximum(-np.expm1(e - losses), 0)) for e in (told, told * 1.001))
    assert at_told >= 1e-6 > just_above


def test_guarantees_that_ask_for_no_noise_are_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidInputError, match=r"leave less noise than there is: on path .* at most 1000 can be used"):
        optimize.best(SMALL, target=target("1e5", "1e-6"))


def test_objectives_are_told_apart() -> None:
    told = [str(objective(text, {}, {})) for text in ("variance", "variance of Block", "worst error of Block; sex")]
    assert told == ["sum of the variances", "sum of the variances of Block", "largest standard error of Block; sex"]
    assert str(objective("worst margin", {"Block": 2, "Nation": 1}, {})) == "largest weighted 95% margin"


def test_weights_follow_from_the_numbers_of_areas_and_of_counts() -> None:
    asked = Request(cells={"State": "51", "Block": 8000, "sex": 2}).weighted(SMALL)
    goal = asked.objectives()[0]
    assert goal.cell_weights(SMALL).tolist() == [1, 2, 51, 102, 8000]
    for cells, named in [({"Tract": 3}, "a level or a query. Found Tract"), ({"State": 0}, "must be positive")]:
        with pytest.raises(InvalidInputError, match=named):
            Request(cells=cells).weighted(SMALL)
    with pytest.raises(InvalidInputError, match="Found both; leave one out"):
        Request(cells={"State": 51}, weights={"State": 51}).weighted(SMALL)
    both = census.Release("x", "x", "x", {"age": {"age": F(1)}, "b": {"c": F(1)}}, {1: ()})
    with pytest.raises(InvalidInputError, match=r"and not of both\. Found age"):
        Request(cells={"age": 3}).weighted(both)
