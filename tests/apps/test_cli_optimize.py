"""exactdp optimize and explain: files, figures, JSON, and one sentence for everything that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from command_line import refused, run
from exactdp import optimize, target
from exactdp.apps.figures.frontier import figure_frontier
from exactdp.census import read_budget
from exactdp.optimize.frontier import Frontier

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
    assert [set(one) for one in best["targets"]] == [{"epsilon", "delta"}]
    assert [Fraction(best["targets"][0][name]) for name in ("epsilon", "delta")] == [Fraction(x) for x in STRICT[1::2]]


def test_the_frontier_is_drawn(survey: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "frontier.svg"
    result = run("optimize", survey, "--delta", "1e-8", "--frontier", "1,2", "--figure", str(figure))
    assert result.exit_code == 0, result.output
    assert "2 designs proved" in result.stdout
    assert figure.read_text().lstrip().startswith("<?xml")


def test_a_frontier_says_of_which_designs_its_bounds_are_and_what_is_out_of_reach(
    survey: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = optimize.best(read_budget(survey), target=target(2, "1e-8"), digits=3)
    assert found.bound is not None
    restricted = replace(found, bound=replace(found.bound, coarsest=Fraction(10, 31)))
    whole = Frontier(
        Fraction(1, 10**8), (Fraction(1), Fraction(2)), (None, restricted), ("It needs 1.5.",), (3.0, 20.0)
    )
    monkeypatch.setattr("exactdp.apps.cli.optimize.frontier", lambda *_, **__: whole)
    options = ["optimize", survey, "--delta", "1e-8", "--frontier", "1,2"]
    told = " ".join(run(*options).stdout.split())
    assert "At epsilon = 2: no design whose noise has nowhere a sigma2 below ~0.322581 has less than" in told
    assert "It needs 1.5." in told
    first, second = json.loads(run(*options, "--json").stdout)
    assert first == {
        "epsilon": "1",
        "objective": None,
        "no_design_below": None,
        "among_sigma2_from": None,
        "gap": None,
        "refusal": "It needs 1.5.",
    }
    assert second["no_design_below"] <= second["objective"]
    assert (second["among_sigma2_from"], second["refusal"]) == ("10/31", None)
    pytest.importorskip("matplotlib")
    texts = [text.get_text() for text in figure_frontier(whole).axes[0].get_legend().get_texts()]
    assert "No design below (proved, nowhere a sigma2 below ~0.323)" in texts


def test_explain_sorts_by_gain_and_speaks_json(survey: str) -> None:
    assert "buys about the same in every cell" in run("explain", survey, "--delta", "1e-8", "--by-gain").stdout
    better = Path(survey).with_name("finer.toml")
    better.write_text(TEXT.replace("total = 0.1", "total = 0.2", 1))
    assert "buys most in State total" in " ".join(run("explain", str(better), "--delta", "1e-8").stdout.split())
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
        (["--delta", "1e-8"], "is that of given accuracy. Found none"),
        (["--delta", "1e-8", "--require", "US: margin <= 9"], "in no objective and in no requirement"),
        (["--delta", "1e-8", "--require", "all: margin <= 9", "--minimize", "error"], "say how large it may be"),
        (["--delta", "1e-8", "--at-most", "9", "--minimize", "error", "--minimize", "margin"], "bounds one objective"),
        ([*STRICT, "--at-most", "3"], "--at-most goes with --delta alone"),
        ([*STRICT, "--figure", "x.svg"], "--figure draws a frontier"),
        (["--frontier", "1,2"], "at one --delta"),
        (["--frontier", "1,2", *STRICT], "Found --epsilon for something else"),
        (["--frontier", "1,2", "--delta", "1e-8", "--mu", "1"], "Found --mu for something else"),
        (["--frontier", "1,2", "--delta", "1e-8", "-o", "x.toml"], "Found -o for something else"),
        (["--frontier", "1,2", "--delta", "1e-8", "--figure", "x.txt"], "must end in .png or .pdf or .svg"),
        (["--mu", "1", "--certificate", "x.json"], "A certificate is of --epsilon and --delta"),
        ([*STRICT, "--minimize", "relative"], "needs typical counts"),
        ([*STRICT, "--typical", "US=9"], "Found them for the measure variance"),
        ([*STRICT, "-o", "x.txt"], "must end in .toml or .csv or .json"),
        ([*STRICT, "--weight", "US"], "CELLS=NUMBER"),
        ([*STRICT, "--minimize", "bias"], "Found bias"),
    ],
)
def test_what_is_wrong_gets_one_sentence(survey: str, arguments: list[str], named: str) -> None:
    refused(run("optimize", survey, *arguments), named)
