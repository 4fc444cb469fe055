"""Designs as JSON: read exactly, refused in one sentence, written so that they are read again, taken wherever a DESIGN is."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import exactdp
from exactdp import census
from exactdp.apps import cli
from exactdp.census.budget_csv import budget_csv
from exactdp.census.budget_files import budget_toml, parse_budget, read_budget

HEADER = {"format": "exactdp design", "version": 1}
SURVEY = {
    **HEADER,
    "title": "A survey",
    "source": "The office that made it",
    "unit_of_privacy": "household",
    "relation": "add/remove",
    "zcdp_rho": "0.705",
    "levels": {
        "Nation": {"age": {"sigma2": 2}, "languages": {"rho": 0.25, "cells": 3}},
        "Region": {"visits": {"scale": 5, "sensitivity": 2}},
    },
}


def read(record: Any, name: str = "survey.json") -> census.Release:
    return parse_budget(json.dumps(record).encode(), name)


def sentence(text: str) -> str:
    with pytest.raises(exactdp.InvalidInputError) as caught:
        parse_budget(text.encode(), "survey.json")
    return str(caught.value)


def test_a_design_of_ones_own() -> None:
    survey = read(SURVEY)
    assert (survey.name, survey.title, survey.source) == ("survey", "A survey", "The office that made it")
    assert (survey.unit_of_privacy, survey.relation, survey.rho) == ("household", "add/remove", Fraction("0.705"))
    assert survey.noise["Nation", "languages"] == census.CellNoise(cells=3)
    assert survey.bypassed == {1: ()}
    toml = parse_budget(budget_toml(survey).encode(), "survey.toml")
    assert toml == survey
    assert parse_budget(budget_csv(survey).encode(), "survey.csv") == survey


def test_decimals_are_read_as_they_were_written() -> None:
    text = json.dumps({**HEADER, "levels": {"US": {"a": 1}}}).replace('"a": 1', '"a": 0.1000000000000000000000001')
    assert parse_budget(text.encode(), "a.json").table["US"]["a"] == Fraction("0.1000000000000000000000001")


@pytest.mark.parametrize("name", census.release_names())
def test_built_in_releases_are_written_and_read_again(name: str) -> None:
    release = census.release(name)
    again = parse_budget(census.budget_json(release).encode(), f"{name}.json")
    assert again == release
    assert again.fingerprint == release.fingerprint
    assert exactdp.from_json(exactdp.to_json(release)) == release


def test_other_noise_is_written_and_read_again() -> None:
    survey = read(SURVEY)
    assert parse_budget(census.budget_json(survey).encode(), "survey.json") == survey
    odd = census.Release("odd", "Odd", "", {"US": {" a": Fraction(1)}}, {1: ()})
    with pytest.raises(exactdp.InvalidInputError, match="without white space at the ends"):
        census.budget_json(odd)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "exactdp object"}, "The format of a budget file is exactdp design. Found exactdp object."),
        ({"version": 2}, "The version of a budget file is 1. Found 2."),
        ({"version": True}, "The version of a budget file is 1. Found True."),
        ({"zcdp_rho": "0.7"}, "zcdp_rho must be zCDP's rho of the worst neighbours, 141/200 (~0.705). Found 7/10;"),
        ({"zcdp_rho": "0.71"}, "Found 71/100; correct the budgets, sensitivities or cells, or leave zcdp_rho out."),
        ({"total_rho": 1}, "total_rho must equal the sum of the budgets, 79/100"),
        ({"title": 1.5}, "title must be a printable text of at most 1000 characters."),
        ({"unit_of_privacy": ["person"]}, "unit_of_privacy must be a printable text of at most 200 characters."),
        ({"unit_of_privacy": "x" * 201}, "at most 200 characters"),
        ({"relation": "swap"}, "relation must be one of replace, add/remove. Found swap."),
        ({"who": "me"}, "A key of a budget file must be one of format, version, title,"),
        ({"levels": {}}, "at least one level"),
        ({"bypassed": {"1": [2.5]}}, "Bypassed levels must be a list of names"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(change: dict[str, Any], told: str) -> None:
    assert told in sentence(json.dumps({**SURVEY, **change}))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "exactdp design"}', '{"version": 1, "levels": {"US": {"a": 1}}}', "[" * 10_000, "1"],
)
def test_other_json_is_refused(text: str) -> None:
    assert sentence(text).startswith(
        ("The file is not the JSON of a budget:", "A budget file in JSON is an object with")
    )


@pytest.mark.parametrize("cell", ["NaN", "Infinity", "1e999", "-1", "0", "null", '"x"', "1" * 30, "[1]"])
def test_no_number_is_no_budget(cell: str) -> None:
    text = json.dumps({**HEADER, "levels": {"US": {"a": 1}}})
    assert sentence(text.replace('"a": 1', f'"a": {cell}'))
    assert "occurs twice" in sentence(text.replace('"a": 1', '"a": 1, "a": 2'))


def test_commands_take_it_wherever_they_take_a_design(tmp_path: Path) -> None:
    files = {"design": tmp_path / "s-dhc-pr.json", "object": tmp_path / "object.json", "other": tmp_path / "other.json"}
    release = census.release("s-dhc-pr")
    files["design"].write_text(census.budget_json(release))
    files["object"].write_text(exactdp.to_json(release))
    files["other"].write_text("{")
    assert read_budget(files["design"]) == release
    runner = CliRunner()
    told = {
        design: runner.invoke(cli.app, ["account", design, "--epsilon", "3", "--json"]).stdout
        for design in ("s-dhc-pr", str(files["design"]), str(files["object"]))
    }
    assert len(set(told.values())) == 1
    assert json.loads(told["s-dhc-pr"])["accounted_for"]["record"] == release.unit_of_privacy
    refused = runner.invoke(cli.app, ["account", str(files["other"]), "--epsilon", "3"])
    assert refused.exit_code == 2
