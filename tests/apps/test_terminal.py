"""What a real terminal shows: nothing wider than it is, no number cut, whatever its width."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import run
from exactdp import census
from exactdp.apps.cli import tables
from small_release import SMALL

on_terminal = pytest.importorskip("terminal", reason="pseudo-terminals are POSIX").on_terminal
pytestmark = pytest.mark.posix
WIDTHS = (60, 80, 100, 140)
NUMBER = re.compile(r"~?-?\d+(?:\.\d+)?(?:e-?\d+)?(?:/\d+)?%?")


@pytest.fixture(scope="module")
def budget(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("terminal") / "small.toml"
    path.write_text(census.budget_toml(SMALL))
    return str(path)


COMMANDS = {
    "account": ["account", "BUDGET", "--delta", "1e-9", "--delta", "1e-300", "--digits", "12"],
    "compare": ["compare", "-m", "1*10", "--delta", "1e-10"],
    "risk": ["risk", "-m", "sigma=2.5*50"],
    "sweep": ["sweep", "BUDGET", "--scale", "1/3,1", "--delta", "1e-6"],
    "calibrate": ["calibrate", "BUDGET", "--epsilon", "5", "--delta", "1e-6", "--grid", "10"],
    "mu": ["mu", "-m", "laplace(2)*3"],
    "convert": ["convert", "--rho", "2.556226", "--delta", "1e-10", "--digits", "15"],
    "proxy": ["census", "BUDGET", "--proxy", "--delta", "1e-6", "-o", "FOLDER"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_number_is_cut_at_any_width(name: str, budget: str, tmp_path: Path) -> None:
    """The numbers of a narrow terminal are those of a pipe, where lines are as long as they are."""
    places = {"BUDGET": budget, "FOLDER": str(tmp_path)}
    arguments = [places.get(word, word) for word in COMMANDS[name]]
    wide = run(*arguments)
    assert wide.exit_code == 0, wide.output
    expected = sorted(set(NUMBER.findall(wide.stdout)))
    widths = WIDTHS if name in ("account", "risk", "sweep") else WIDTHS[:1]
    for columns, (code, lines) in zip(widths, on_terminal(widths, *arguments), strict=True):
        assert code == 0
        assert not [line for line in lines if len(line) > columns]
        assert "\u2026" not in "".join(lines)
        assert sorted(set(NUMBER.findall("\n".join(lines)))) == expected, f"{columns} columns"


def test_the_whole_census_on_a_terminal_of_80_columns(budget: str, tmp_path: Path) -> None:
    ((code, lines),) = on_terminal([80], "census", budget, "--no-figures", "--delta", "1e-15", "-o", str(tmp_path))
    assert code == 0
    kept = [line for line in lines if str(tmp_path) not in line]  # a path is a word, which stays whole
    assert not [line for line in kept if len(line) > 80]
    assert sum(line.startswith("delta  ") for line in lines) == 2, "the wide table is split into two"
    assert any(line.startswith("1e-15") and "%" in line for line in lines)


def test_tables_are_split_where_they_do_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "width", lambda: 20)
    tables.show_table("", ["key", "first", "second", "third"], [["a", "1234567890", "12345678", "1" * 30]])
    assert capsys.readouterr().out.splitlines() == [
        *("key       first", "a    1234567890", ""),
        *("key    second", "a    12345678", ""),
        *(f"key  {'third':>30}", f"a    {'1' * 30}", ""),
    ]
    tables.show_table("", ["key", "why"], [["a", "one two three four five"]], prose="why")
    assert capsys.readouterr().out.splitlines() == ["key  why", "a    one two three four", "     five", ""]


def test_cells_of_a_level_that_read_the_same_are_one_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "width", lambda: 40)
    queries = [*(("US", name, ("1", "2")) for name in "abc"), ("US", "sex * age", ("1", "3"))]
    tables.show_cells("", ["budget", "error"], [*queries, ("State", "a", ("1", "2")), ("State", "b", ("1", "2"))])
    assert capsys.readouterr().out.splitlines() == [
        "budget  error  cell",
        "1           2  US, 3 of 4 queries",
        "1           3  US sex * age",
        "1           2  State a, b",
        "",
    ]
    tables.show_cells("", ["n"], [("US", name * 19, ("7",)) for name in "ab"])
    assert capsys.readouterr().out.splitlines() == ["n  cell", f"7  US {'a' * 19},", f"   {'b' * 19}", ""]


def test_an_explanation_of_the_published_design_fits_a_terminal_of_80_columns() -> None:
    ((code, lines),) = on_terminal([80], "explain", "dhc-persons-us")
    assert code == 0
    assert not [line for line in lines if len(line) > 80]
    assert any(line.endswith("Block, all 10 queries") for line in lines)
    assert len(lines) < 50
