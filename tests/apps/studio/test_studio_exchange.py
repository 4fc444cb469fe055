"""Exchange rates, trades at constant epsilon, frontiers and certificates that are checked: the library confirms each number."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

import exactdp
from exactdp import optimize
from exactdp.apps.studio.work.designs import design_of
from exactdp.census.budget_costs import STEP_BLUR, cell_costs
from exactdp.census.budget_files import parse_budget
from exactdp.census.margins import noise_of
from exactdp.census.releases import Release
from small_release import FINE_SURVEY
from studio_server import SMALL, TEXT, Studio

DESIGN = parse_budget(TEXT, "small.toml")


SURVEY_DESIGN = {
    "name": "cells",
    "levels": [
        {"name": "Nation", "queries": [{"name": "age * sex", "rho": "1/2"}, {"name": "sex", "rho": "1/4"}]},
        {"name": "Region", "queries": [{"name": "age * sex", "rho": "1/2"}, {"name": "sex", "rho": "1/4"}]},
    ],
}


def epsilon_of(release: Release) -> float:
    """epsilon(1e-6) of a whole release from its pairs, one by one."""
    return max(composition.epsilon("1e-6") for composition in release.compositions)


def margin(release: Release, level: str) -> int:
    return max(noise_of(rho).margin for rho in release.table[level].values())


def test_costs_are_derivatives_and_gains_are_of_the_noise(studio: Studio) -> None:
    found = studio.post("/exchange", {"design": SMALL, "delta": "1e-6"}).json()
    costs = cell_costs(DESIGN, delta="1e-6", blur=STEP_BLUR)
    explained = optimize.explain(DESIGN, delta="1e-6").cells
    assert [cell["cost"] for cell in found["cells"]] == pytest.approx([cell.cost for cell in explained], rel=1e-12)
    assert tuple(found["pair"]) == costs.pair
    assert {(cell["level"], cell["query"]) for cell in found["cells"]} == {
        (level, query) for level, queries in DESIGN.table.items() for query in queries
    }
    before = epsilon_of(DESIGN)
    for cell in found["cells"]:
        level, query = cell["level"], cell["query"]
        assert cell["cost"] == pytest.approx(costs.epsilon[level][query] / 100)
        after = epsilon_of(DESIGN.with_budget({(level, query): Fraction(1, 100)}))
        assert after - before == pytest.approx(cell["cost"], rel=2e-2)
        own = noise_of(DESIGN.table[level][query])
        assert (cell["standard_error"], cell["margin95"]) == (own.standard_error, own.margin)
        more = noise_of(DESIGN.table[level][query] + Fraction(0.0001 / cell["cost"]))
        assert 1 - more.standard_error / own.standard_error == pytest.approx(cell["gain"], rel=1e-6)


@pytest.mark.parametrize("held", [pytest.param(None, marks=pytest.mark.soak), "9"])
def test_a_trade_keeps_the_epsilon_of_the_release(studio: Studio, held: str | None) -> None:
    take, *_, give = DESIGN.table
    body = {"design": SMALL, "delta": "1e-6", "take": take, "give": give, "share": "1/10", "epsilon": held}
    found = studio.post("/trade", body).json()
    most = Fraction(held) if held else Fraction(epsilon_of(DESIGN))
    moved = DESIGN.scaled("10/9", take).scaled(found["factor"], give)
    for level in found["design"]["levels"]:
        assert {query["name"]: Fraction(query["rho"]) for query in level["queries"]} == moved.table[level["name"]]
    assert found["epsilon"]["upper"] <= most
    assert found["epsilon"]["upper"] == pytest.approx(epsilon_of(moved), rel=1e-11)
    assert found["epsilon"]["upper"] > float(most) - 0.01  # and nearly all of it is used
    for row in found["levels"]:
        assert (row["before"], row["after"]) == (margin(DESIGN, row["level"]), margin(moved, row["level"]))
    assert "proved for every pair" in found["statement"]


def test_a_trade_between_two_cells_leaves_all_others_alone(studio: Studio) -> None:
    cells = {"take": "Nation", "take_query": "sex", "give": "Region", "give_query": "age * sex"}
    body = {"design": SURVEY_DESIGN, "delta": "1e-6", "share": "1/5", "epsilon": "9", **cells}
    found = studio.post("/trade", body).json()
    before = {
        (level["name"], query["name"]): Fraction(query["rho"])
        for level in SURVEY_DESIGN["levels"]
        for query in level["queries"]
    }
    after = {
        (level["name"], query["name"]): Fraction(query["rho"])
        for level in found["design"]["levels"]
        for query in level["queries"]
    }
    taken, given = ("Nation", "sex"), ("Region", "age * sex")
    expected = {**before, taken: before[taken] * Fraction(4, 5), given: before[given] / Fraction(found["factor"])}
    assert after == expected
    release = parse_budget(studio.post("/export", {"design": found["design"]}).json()["toml"].encode(), "cells.toml")
    assert found["epsilon"]["upper"] == pytest.approx(epsilon_of(release), rel=1e-11)
    assert 8.99 < found["epsilon"]["upper"] <= 9
    assert [(cell["level"], cell["query"]) for cell in found["cells"]] == [taken, given]
    for cell in found["cells"]:
        place = cell["level"], cell["query"]
        assert (cell["before"], cell["after"]) == (noise_of(before[place]).margin, noise_of(after[place]).margin)


@pytest.mark.parametrize("level", [None, list(DESIGN.table)[-1]])
@pytest.mark.parametrize("most", ["7", "9.5"])
def test_an_epsilon_is_held_by_one_level_or_by_all(studio: Studio, level: str | None, most: str) -> None:
    found = studio.post("/hold", {"design": SMALL, "delta": "1e-6", "epsilon": most, "level": level}).json()
    if "error" in found:
        assert (level, most) == (list(DESIGN.table)[-1], "7")  # the other levels alone have more
        assert "does not bring the epsilon of the whole release down" in found["error"]
        return
    scaled = DESIGN.scaled(found["factor"], level)
    assert found["epsilon"]["upper"] == pytest.approx(epsilon_of(scaled), rel=1e-11)
    assert float(most) - 0.01 < found["epsilon"]["upper"] <= float(most)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"take": "Nowhere"}, "A level must be one of"),
        ({"give": next(iter(DESIGN.table))}, "from one level or cell to another"),
        ({"take_query": "nothing"}, "must be one of"),
        ({"share": "1"}, "share must be between 0 and 1"),
        ({"share": "some"}, "share"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"delta": "2"}, "delta"),
    ],
)
def test_a_trade_that_makes_no_sense_is_refused(studio: Studio, change: dict[str, str], said: str) -> None:
    levels = list(DESIGN.table)
    body = {"design": SMALL, "delta": "1e-6", "take": levels[0], "give": levels[-1], "share": "1/10"}
    response = studio.post("/trade", {**body, **change})
    assert response.status_code == 422
    assert said in response.json()["error"]


def test_a_frontier_is_the_design_scaled(studio: Studio) -> None:
    found = studio.post("/frontier", {"design": SMALL, "delta": "1e-6", "factors": ["1/2", "1", "2"]}).json()
    for row in found["rows"]:
        scaled = DESIGN.scaled(1 / Fraction(row["factor"]))
        assert row["epsilon"]["upper"] == pytest.approx(epsilon_of(scaled), rel=1e-11)
        assert row["margins"] == {level: margin(scaled, level) for level in scaled.table}
    epsilons = [row["epsilon"]["upper"] for row in found["rows"]]
    assert epsilons == sorted(epsilons)


def test_certificates_are_verified(studio: Studio) -> None:
    for made in (exactdp.certify(DESIGN, delta="1e-6"), exactdp.certify(DESIGN.pair(1, 2), delta="1e-6", digits=12)):
        found = studio.post("/verify", {"text": made.to_json()}).json()
        assert found["holds"] is True
        assert found["reason"].startswith("Holds")
        assert all(check["passed"] is not False for check in found["checks"])
        record = json.loads(made.to_json())
        record["sha256"] = "0" * 64
        assert studio.post("/verify", {"text": json.dumps(record)}).json()["holds"] is False
    response = studio.post("/verify", {"text": '{"format": "something"}'})
    assert response.status_code == 422
    assert response.json()["error"].endswith(".")


def test_a_design_is_optimised_for_a_requirement(studio: Studio) -> None:
    fine = parse_budget(FINE_SURVEY.encode(), "fine.toml")
    level = list(fine.table)[-1]
    body = {"design": design_of(fine), "delta": "1e-6", "epsilon": "2", "requirements": [f"{level}: margin <= 10"]}
    found = studio.post("/optimize", body).json()
    table = {
        one["name"]: {query["name"]: Fraction(query["rho"]) for query in one["queries"]}
        for one in found["design"]["levels"]
    }
    best = replace(fine, table=table)
    assert found["epsilon"]["upper"] == pytest.approx(epsilon_of(best), rel=1e-11)
    assert found["epsilon"]["upper"] <= 2
    assert margin(best, level) <= 10 < margin(fine, level)
    assert {row["level"]: (row["before"], row["after"]) for row in found["levels"]} == {
        name: (margin(fine, name), margin(best, name)) for name in fine.table
    }
    assert "The guarantee is proved" in found["statement"]
    assert [price.partition(":")[0] for price in found["prices"]] == [f"'{level}"]
    refused = studio.post("/optimize", {**body, "requirements": [f"{level}: margin <= 0"]})
    assert refused.status_code == 422
    assert refused.json()["error"].endswith(".")
