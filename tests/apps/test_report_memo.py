"""The memo of a report compares only what can be compared, takes an optimised design, and certifies what it recommends."""

from __future__ import annotations

import base64
import dataclasses
from fractions import Fraction
from pathlib import Path

import pytest
from report_pages import Reader

from command_line import refused, run
from exactdp import optimize, target
from exactdp.apps.report.content import Content, gather
from exactdp.apps.report.decision import MemoQuestion
from exactdp.apps.report.page import render
from exactdp.census.budget_files import parse_budget
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.releases import Release
from exactdp.census.runners import Serial
from exactdp.census.study import Study
from exactdp.census.summary import Summary, summarize
from small_release import FINE_SURVEY

DELTA = "1e-6"
DESIGN = parse_budget(FINE_SURVEY.encode(), "survey.toml")


@pytest.fixture(scope="module")
def studied() -> tuple[Study, Summary]:
    study = DESIGN.account(deltas=[DELTA], alphas=["0.05"])
    return study, summarize(study, Serial(), study.grids.deltas[-1])


def memo(
    studied: tuple[Study, Summary], others: dict[str, Release | optimize.BestDesign], within: str = "50"
) -> Content:
    return gather(*studied, asked=MemoQuestion(others, within, {"Region": 2, "Nation": 10**6}))


def words(content: Content) -> str:
    return " ".join(" ".join(Reader(render(content, charts=False)).words).split())


def without_query(release: Release) -> Release:
    table = {level: dict(queries) for level, queries in release.table.items()}
    del table["Nation"]["sex"]
    return dataclasses.replace(release, table=table)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            dataclasses.replace(DESIGN, relation="add/remove"),
            "Not compared: its guarantee is about one record added or removed, that of A about one record replaced by any other.",
        ),
        (without_query(DESIGN), "Not compared: it does not publish 1 noisy answer that A does."),
    ],
)
def test_an_option_with_another_promise_is_shown_and_not_recommended(
    studied: tuple[Study, Summary], other: Release, said: str
) -> None:
    """Even if its epsilon is the least and its noise the smallest."""
    content = memo(studied, {"B": other.scaled("9/10")})
    decision = content.decision
    option = decision.options[-1]
    assert option.name == "B"
    assert option.epsilon < decision.options[0].epsilon
    assert option.margins["Region"] <= decision.options[0].margins["Region"]
    assert decision.chosen not in (None, option)
    assert dataclasses.replace(decision, within=None).chosen is decision.options[0]
    assert said in words(content)


def test_whose_record_is_protected_must_be_the_same(studied: tuple[Study, Summary]) -> None:
    content = memo(studied, {"B": dataclasses.replace(DESIGN, unit_of_privacy="household")})
    first, other = content.decision.options[0], content.decision.options[-1]
    assert content.decision.differs(other) == ""  # A says nothing of it
    person = dataclasses.replace(first, release=dataclasses.replace(DESIGN, unit_of_privacy="person"))
    told = dataclasses.replace(content.decision, options=(person, other))
    assert told.differs(other) == "Not compared: its guarantee protects a household, that of A a person."
    assert told.compared == (person,)


def test_what_is_recommended_is_certified_judged_and_saved(studied: tuple[Study, Summary]) -> None:
    found = optimize.best(
        DESIGN, optimize.Objective("margin", {"Region": 100, "Nation": 1}), target=target("1.4", DELTA), digits=3
    )
    content = memo(studied, {"Optimised": found}, "1.4")
    chosen = content.decision.chosen
    assert chosen is not None
    assert chosen.name == "Optimised"
    page = Reader(render(content, charts=False))
    said = " ".join(" ".join(page.words).split())
    assert f"The design with the least weighted sum of the 95% margins that was found. {found.statement}" in said
    assert all(option.release.fingerprint in said for option in content.decision.options)
    saved = {tag["download"]: str(tag["href"]) for name, tag in page.tags if name == "a" and "download" in tag}
    files = {name: base64.b64decode(link.partition(",")[2]) for name, link in saved.items() if name is not None}
    record = DesignCertificate.from_json(files["survey-Optimised-certificate.json"].decode())
    assert record.epsilon <= Fraction("1.4")
    assert parse_budget(files["survey-Optimised.toml"], "found.toml").table == found.release.table
    judged = [option.name for option in content.decision.judged]
    assert judged == ["A, this design", "Optimised"]
    assert "A, this design: " in said
    assert "survey-certificate.json" in files


def test_a_request_makes_an_option_on_the_command_line(tmp_path: Path) -> None:
    survey, request, page = (tmp_path / name for name in ("survey.toml", "request.toml", "r.html"))
    survey.write_text(FINE_SURVEY)
    request.write_text('require = ["Region: margin <= 12"]\ndelta = "1e-6"\n')
    asked = ["report", str(survey), "--request", str(request), "-o", str(page), "--no-figures"]
    assert "compared at its delta. Found delta = 1e-6 in request.toml" in refused(run(*asked))
    result = run(*asked, "--delta", DELTA)
    assert result.exit_code == 0, result.stderr
    text = " ".join(" ".join(Reader(page.read_text()).words).split())
    assert "that was found, keeping \u201cRegion: margin <= 12\u201d. The guarantee is proved" in text
    assert "With the noise of which of these 3 designs" in text
