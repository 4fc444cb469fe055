"""The grammar of requirements and objectives, and what contradicts, is empty or cannot be."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

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
