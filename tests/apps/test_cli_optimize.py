"""exactdp optimize and explain: files, figures, JSON, and one sentence for everything that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import refused, run
from exactdp.census import read_budget

TEXT = "[levels.US]\ntotal = 0.1\n[levels.State]\ntotal = 0.1\n"
STRICT = ["--epsilon", "2", "--delta", "1e-8"]


@pytest.fixture
def survey(tmp_path: Path) -> str:
    file = tmp_path / "survey.toml"
    file.write_text(TEXT)
    return str(file)


def test_a_design_is_written_certified_and_told(survey: str, tmp_path: Path) -> None:
    better, proof = tmp_path / "better.toml", tmp_path / "proof.json"
    options = ["--weight", "US=1", "--weight", "State=50", "--require", "US: margin <= 30", "--digits", "3"]
    result = run("optimize", survey, *STRICT, *options, "-o", str(better), "--certificate", str(proof))
    assert result.exit_code == 0, result.output
    assert "Before and after" in result.stdout
    assert "The guarantee is proved" in result.stdout
    table = read_budget(better).table
    assert table["State"]["total"] > table["US"]["total"]
    assert run("verify", str(proof)).exit_code == 0


def test_json_and_the_least_epsilon(survey: str) -> None:
    found = json.loads(run("optimize", survey, "--delta", "1e-8", "--require", "all: margin <= 9", "--json").stdout)
    assert found["epsilon_lower"] <= found["epsilon_upper"]
    assert found["no_design_below"] <= found["epsilon_upper"]
    assert [cell["margin"] for cell in found["cells"]] == [9, 9]
    best = json.loads(run("optimize", survey, *STRICT, "--minimize", "worst error", "--json").stdout)
    assert best["no_design_below"] <= best["after"][0]
    assert best["gap"] >= 0


def test_the_frontier_is_drawn(survey: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "frontier.svg"
    result = run("optimize", survey, "--delta", "1e-8", "--frontier", "1,2", "--figure", str(figure))
    assert result.exit_code == 0, result.output
    assert "2 designs proved" in result.stdout
    assert figure.read_text().lstrip().startswith("<?xml")


def test_explain_sorts_by_gain_and_speaks_json(survey: str) -> None:
    assert "A little budget buys most" in run("explain", survey, "--delta", "1e-8", "--by-gain").stdout
    found = json.loads(run("explain", survey, "--json").stdout)
    assert found["epsilon_lower"] <= found["epsilon_upper"]
    assert found["paths"] == ["path 1: US 0.1 > State 0.1"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--require", "US: margin <= 1", *STRICT], "needs an epsilon of at least"),
        (["--require", "US: margin <= 1", "--require", "US: budget <= 0.01", *STRICT], "contradict each other"),
        (["--require", "", *STRICT], "an empty one"),
        (["--epsilon", "2"], "Each --epsilon needs its --delta"),
        ([], "A target is epsilon and delta"),
        (["--delta", "1e-8"], "in no objective and in no requirement"),
        ([*STRICT, "--at-most", "3"], "--at-most goes with --delta alone"),
        ([*STRICT, "--figure", "x.svg"], "--figure draws a frontier"),
        (["--frontier", "1,2"], "at one --delta"),
        ([*STRICT, "-o", "x.txt"], "must end in .toml or .csv or .json"),
        ([*STRICT, "--weight", "US"], "CELLS=NUMBER"),
        ([*STRICT, "--minimize", "bias"], "Found bias"),
    ],
)
def test_what_is_wrong_gets_one_sentence(survey: str, arguments: list[str], named: str) -> None:
    refused(run("optimize", survey, *arguments), named)
