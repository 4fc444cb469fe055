"""exactdp census: trade-off tables at other alphas, and figures of another path than the full one."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from command_line import refused, run
from exactdp import census
from exactdp.apps.cli import census as command
from exactdp.apps.figures import release as figures
from exactdp.census.grids import ALPHAS, Grids, spaced_alphas
from exactdp.census.pair_results import account_pairs
from exactdp.census.study import Study
from small_release import SMALL


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(census.budget_toml(SMALL))
    return path


def betas(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "small" / name).open() as file:
        return [row for row in csv.DictReader(file) if row["quantity"] == "beta"]


def test_pairs_have_trade_off_tables_at_the_alphas_asked_for(budget: Path, tmp_path: Path) -> None:
    asked = ["--alpha", "0.3", "--alpha", "1/3", "--alpha", "0.3"]
    result = run("census", str(budget), "--delta", "1e-6", *asked, "--no-figures", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    rows = betas(tmp_path, "pairs.csv")
    found = account_pairs(SMALL, list(SMALL.pairs), Grids.read(alphas=["0.3", "1/3"]))
    assert [(int(r["k"]), int(r["l"])) for r in rows] == [pair for pair in SMALL.pairs for _ in range(2)]
    assert [r["at_exact"] for r in rows[:2]] == ["3/10", "1/3"]
    assert [(float(r["lower"]), float(r["upper"])) for r in rows] == [b for result in found for b in result.beta]
    assert len(betas(tmp_path, "overall.csv")) == 2
    assert "1/3" in result.stdout
    assert "Shown are" not in result.stdout


def test_many_alphas_are_in_the_files_and_few_in_the_table(budget: Path, tmp_path: Path) -> None:
    asked = ["--alphas", "51", "--alpha", "0.05"]
    result = run("census", str(budget), "--delta", "1e-6", *asked, "--no-figures", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    alphas = sorted({*spaced_alphas(51), Fraction(1, 20)})
    rows = betas(tmp_path, "pairs.csv")
    assert len(rows) == 10 * 52
    assert [Fraction(r.get("at_exact") or r["at"]) for r in rows[:52]] == alphas
    assert "Shown are 7 of 52 alphas; all are in overall.csv, pair by pair in pairs.csv." in result.stdout
    assert "\n0.05 " in result.stdout.partition("Best test")[2]
    page = (tmp_path / "small" / "report.html").read_text()
    assert page.count('"power-') <= 8


def test_without_alphas_the_usual_ones(budget: Path, tmp_path: Path) -> None:
    result = run("census", str(budget), "--delta", "1e-6", "--no-figures", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert [r["at"] for r in betas(tmp_path, "pairs.csv")[:7]] == list(ALPHAS)
    assert "Shown are" not in result.stdout


def test_901_alphas_cover_both_tails() -> None:
    alphas = spaced_alphas(901)
    assert len(alphas) == 901
    assert alphas == sorted(alphas)
    assert [1 - a for a in reversed(alphas)] == alphas
    assert alphas[450] == Fraction(1, 2)
    assert Fraction(1, 10**12) < alphas[0] < Fraction(13, 10**13)
    assert len(spaced_alphas(10_000)) == 10_000
    assert [float(a) for a in spaced_alphas(2)] == [1.27981e-12, 1 - 1.27981e-12]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--base", "5"], "small has the allocations 1 to 7. Found 5."),
        (["--base", "0"], "Found 0."),
        (["--base", "x"], "--base"),
        (["--base", "1.5"], "--base must be a whole number"),
        (["--base", "2", "--no-figures"], "--base is the path of the figures, and this run draws none."),
        (["--base", "2", "--proxy"], "--base is the path of the figures, and this run draws none."),
        (["--alpha", "901"], "901"),
        (["--alpha", "0"], "A grid of alphas takes numbers between 0 and 1. Found 0."),
        (["--alpha", "0.1", "--alpha", "x"], "'x'"),
        (["--alphas", "1"], "--alphas must be a whole number of at least 2. Found 1."),
        (["--alphas", "10001"], "--alphas must be at most 10000. Found 10001."),
        (["--alphas", "0.05"], "--alphas must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_computed(
    arguments: list[str], named: str, budget: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("something was computed first")

    monkeypatch.setattr(command, "run_study", never)
    refused(run("census", str(budget), *arguments, "-o", str(tmp_path / "out")), named)
    assert not (tmp_path / "out").exists()


def test_figures_of_another_path(budget: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    def one(study: Study, base: int) -> object:
        drawn.append(base)
        return iter([figures.figure_tradeoff_panels(study.release, base)])

    monkeypatch.setattr(figures, "all_figures", one)
    result = run("census", str(budget), "--delta", "1e-6", "--base", "3", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert drawn == [3]
    assert "captions.md" in result.stdout
    said = (tmp_path / "small" / "captions.md").read_text()
    assert "allocation 3 paired with each allocation; the large panel is the pair (3, 3)" in said
