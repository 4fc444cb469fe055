"""The report on several products together: its numbers are limits, its words name what is not covered."""

from __future__ import annotations

import re
from fractions import Fraction
from html import unescape
from pathlib import Path

import pytest

from command_line import run
from exactdp import census
from exactdp.apps.report.joint_report import JointRow, build_joint
from exactdp.numerals import at_most

UNITS = "pl94-units-pr+dhc-units-pr-no-prim+ddhc-b-pr"
PERSONS = "ddhc-a-pr+s-dhc-pr"


def plain(page: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


def test_every_number_is_the_librarys_rounded_up() -> None:
    joint = census.joint(UNITS, "occupied becomes vacant")
    row, page = JointRow.of(joint), build_joint([joint], charts=False)
    said = plain(page)
    for delta, epsilon in zip(("1e-5", "1e-10", "1e-15"), row.full, strict=True):
        lower = joint.full.epsilon_bounds(delta).lower
        printed = at_most(epsilon)
        assert printed in said
        assert Fraction(lower) <= Fraction(printed) <= Fraction(lower) * (1 + Fraction(1, 10**5))
    assert sum(share for _, share in row.shares) == 1
    assert row.nominal == sum(Fraction(part.release.rho) for part in joint.moved)
    assert row.power[0] >= 1 - Fraction(joint.full.beta_bounds("0.001").upper)
    assert at_most(row.zcdp[0]) in said
    assert "is no guarantee" in said
    assert "not by the Census Bureau" in said
    assert joint.change.words in said
    assert "http" not in page.replace("http-equiv", "")


def test_the_command_takes_every_change_that_is_followed(tmp_path: Path) -> None:
    target = tmp_path / "whole.html"
    result = run("report", f"{PERSONS}+{UNITS}", "-o", str(target), "--no-figures")
    assert result.exit_code == 0, result.output
    said = plain(target.read_text())
    for name in census.change_names():
        assert name in said
    assert "Not followed is not free" in said
    assert "person replaced: pl94-units-pr, dhc-units-pr-no-prim, ddhc-b-pr" in said


def test_one_change_is_asked_for_by_name(tmp_path: Path) -> None:
    target = tmp_path / "one.html"
    result = run("report", PERSONS, "--change", "person replaced", "-o", str(target), "--no-figures")
    assert result.exit_code == 0, result.output
    said = plain(target.read_text())
    assert at_most(census.joint(PERSONS, "person replaced").epsilon("1e-10")) in said
    assert "person added or removed" not in said


def test_the_picture_names_every_product(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = build_joint([census.joint(PERSONS, "person replaced")])
    assert "<svg" in page
    assert all(name in page[page.index("<svg") : page.index("</svg>")] for name in PERSONS.split("+"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dhc-units-us", "--change", "a person moves"], "A change is one of"),
        (["-m", "sigma2=3", "--change", "person replaced"], "products joined by +"),
        ([f"{PERSONS}+nothing-us"], "Found ddhc-a-pr+s-dhc-pr+nothing-us"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], told: str, tmp_path: Path) -> None:
    result = run("report", *arguments, "-o", str(tmp_path / "x.html"), "--no-figures")
    assert result.exit_code == 2
    assert told in re.sub(r"\s+", " ", result.output)
