"""Names in CSV files: none starts a formula in a spreadsheet, and all read back as they were."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactdp.apps.release.counts import parse_counts
from exactdp.apps.studio.work import tools
from exactdp.apps.studio.work.designs import chosen_pair, design_of
from exactdp.census.budget_csv import budget_csv
from exactdp.census.budget_files import budget_toml, parse_budget
from exactdp.census.releases import Release
from exactdp.census.tables import as_csv
from exactdp.csv_cells import as_cell, from_cell
from exactdp.interop.frames import write_table

FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1;2)", "=1+1,=2", "'=quoted", "''-twice", "=", "-", "+x"]
STARTS = tuple("=+-@\t\r\n")


def design(name: str, title: str = "T") -> Release:
    return parse_budget(
        f'title = """{title}"""\n[levels.US]\nsex = "1/3"\n[levels."{name}"]\n"{name}" = "1/2"\n[bypassed]\n1 = []\n'
        f'2 = ["{name}"]\n'.encode(),
        "names.toml",
    )


@given(st.text(st.sampled_from("'=+-@\t\r\n1.e/ x"), max_size=6) | st.text(max_size=4))
def test_every_text_reads_back_and_starts_no_formula(text: str) -> None:
    written = as_cell(text)
    assert isinstance(written, str)
    assert from_cell(written) == text
    if written.startswith(STARTS):
        assert written == text
        Fraction(text)  # a number


@pytest.mark.parametrize("number", ["-1.5", "+3", "-1e-10", "-1/3", "-inf", -1.5, 7, None, "1e-10", "-0.5E+3"])
def test_numbers_stay_numbers(number: object) -> None:
    assert as_cell(number) == number


def cells(text: str) -> list[str]:
    """Every cell that a spreadsheet sees, whichever of the two delimiters it takes."""
    return [cell for delimiter in ",;" for row in csv.reader(io.StringIO(text), delimiter=delimiter) for cell in row]


@pytest.mark.parametrize("name", FORMULAS)
def test_a_budget_file_reads_back(name: str) -> None:
    for title in ("plain", f"a,{name}", f"a; {name}"):
        release = design(name.replace(";", ":"), title)
        text = budget_csv(release)
        settings = "\n".join(line for line in text.splitlines() if line.lstrip('"').startswith("#"))
        assert not [cell for cell in cells(settings) if cell.lstrip().startswith(STARTS)]
        again = parse_budget(text.encode(), "names.csv")
        assert again.table == release.table
        assert again.bypassed == release.bypassed
        assert again.title == release.title
        rows = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not [cell for cell in rows if cell.startswith(STARTS)]
        assert (
            parse_budget(budget_toml(release).encode(), "a.toml").table == release.table
        )  # where nothing is a formula


def test_a_wide_budget_file_may_have_such_names_in_its_header() -> None:
    release = parse_budget(b"level,'=a,'-b\n'+US,1/2,1/3\n", "wide.csv")
    assert release.table == {"+US": {"=a": Fraction(1, 2), "-b": Fraction(1, 3)}}


@pytest.mark.parametrize("name", FORMULAS)
def test_tables_with_names(name: str, tmp_path: Path) -> None:
    release = design(name.replace(";", ":"))
    asked = {"design": design_of(release), "pair": None, "what": "noise"}
    chosen_pair(asked["design"], None)
    write_table([{"name": name, "value": -1.5}], tmp_path / "a.csv")
    for text in (
        tools.table(asked)["text"],
        (tmp_path / "a.csv").read_text(),
        as_csv(["design", name], [(name, Fraction(-1, 3))]),
    ):
        found = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not [cell for cell in found if cell.startswith(STARTS) and cell not in ("-1.5", "-1/3")]
        assert any(from_cell(cell) in (name, name.replace(";", ":")) for cell in found)
    assert ",-1.5" in (tmp_path / "a.csv").read_text()


def test_labels_of_counts_read_back() -> None:
    release = parse_budget(b"level,'=q\nUS,1/2\n", "a.csv")
    for written in ("=q", "'=q"):
        table = parse_counts(f"level,query,cell,count\nUS,{written},'@x,5\n", release.allocations[1])
        assert table.places == (("US", "=q"),)
        assert table.rows[0][2] == "@x"
