"""The report: its numbers are the library's, its page is sound, closed and readable, its certificates hold."""

from __future__ import annotations

import base64
import builtins
import dataclasses
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from report_pages import DESIGN, Reader, studied

import exactdp
from command_line import refused, run
from exactdp import conversions
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.apps import report
from exactdp.apps.cli import report as command
from exactdp.apps.report import certificates, numerals
from exactdp.apps.report.content import Content, gather
from exactdp.apps.report.page import POLICY, render, stylesheet
from exactdp.census.budget_files import parse_budget
from exactdp.census.study import Study
from exactdp.census.summary import Summary
from exactdp.guarantees.risk import risk_of
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numerals import DOWN, UP, with_places


@pytest.fixture(scope="module")
def both() -> tuple[Study, Summary]:
    return studied(DESIGN, "survey.toml", ["1e-6", "1e-10"], ["0.05", "0.5"])


@pytest.fixture(scope="module")
def content(both: tuple[Study, Summary]) -> Content:
    return gather(*both)


@pytest.fixture(scope="module")
def page(content: Content) -> str:
    return render(content)


@pytest.fixture(scope="module")
def read(page: str) -> Reader:
    return Reader(page)


def test_the_numbers_are_the_librarys(both: tuple[Study, Summary], read: Reader) -> None:
    study, summary = both
    release = study.release
    row = summary.epsilons[-1]
    exact = {name: value for name, (value, _) in read.numbers.items()}
    assert float(exact["headline-epsilon"]) == row.epsilon[1] == pytest.approx(study.epsilon("1e-10"), rel=1e-12)
    assert float(exact["headline-zcdp-optimal"]) == conversions.zcdp_epsilon(release.rho, "1e-10")
    assert float(exact["headline-zcdp-simple"]) == conversions.zcdp_epsilon_simple(release.rho, "1e-10")
    assert Fraction(exact["headline-saved-simple"]) == row.saved_simple.saved
    assert Fraction(exact["headline-saved-optimal"]) == row.saved_optimal.saved
    risk = risk_of(study, Fraction(1, 20), Fraction(1, 2), Fraction(1, 10**10))
    assert float(exact["headline-power"]) == risk.power[1]
    assert float(exact["headline-bayes-risk"]) == risk.bayes_risk[0]
    assert float(exact["risk-Advantage"]) == study.delta(0)
    assert Fraction(exact["rho"]) == release.rho
    assert (int(exact["paths"]), int(exact["pairs"])) == (2, 3)
    for found in summary.epsilons:
        assert float(exact[f"epsilon-{found.delta}"]) == found.epsilon[1]
    for power in summary.powers:
        assert float(exact[f"beta-{power.alpha}"]) == power.beta[0]


def test_words_and_budget_of_neighbours_with_one_record_more_or_less() -> None:
    design = b'relation = "add/remove"\n[levels.Nation]\nage = "1/5"\nsex = "1/5"\n'
    study, summary = studied(design, "one.toml", ["1e-6"], ["0.05"])
    page = render(gather(study, summary), charts=False)
    assert "a record on the path, and none" in page
    assert "the path with itself" not in page
    assert Fraction(Reader(page).numbers["rho"][0]) == study.release.rho == Fraction(1, 5)
    assert "add up to 0.4" in page


def test_what_is_read_is_rounded_to_the_safe_side(content: Content, read: Reader) -> None:
    for key, (value, shown) in read.numbers.items():
        digits = shown.replace("\u2212", "-").removesuffix("\u202f%")
        if "\u00d7" in digits or "\u2248" in digits or not key.startswith(("headline", "epsilon", "beta")):
            continue
        scale = 100 if shown.endswith("%") else 1
        down = "bayes" in key or "beta" in key or "saved" in key
        gap = (Fraction(digits) / scale - Fraction(value)) * (-1 if down else 1)
        assert 0 <= gap <= Fraction(1, 1000), key
    assert content.study.delta(content.stated) <= content.headline.delta
    assert 0 <= content.stated - Fraction(content.headline.epsilon[1]) <= Fraction(1, 10**4)


def test_the_page_is_well_formed_and_has_what_readers_of_screens_need(read: Reader) -> None:
    ids = read.attributes("id")
    assert len(set(ids)) == len(ids)
    for target in (a.removeprefix("#") for a in read.attributes("href") if a.startswith("#")):
        assert target in ids
    for name in " ".join(read.attributes("aria-labelledby")).split():
        assert name in ids
    counts = Counter(tag for tag, _ in read.tags)
    assert counts["h1"] == counts["main"] == counts["nav"] == 1
    assert counts["table"] == counts["caption"] >= 6
    assert all(found.get("scope") for tag, found in read.tags if tag == "th")
    charts = [found for tag, found in read.tags if tag == "svg"]
    assert len(charts) == counts["figure"] == counts["figcaption"] == 4
    assert all(found["role"] == "img" and found["aria-labelledby"] for found in charts)
    assert counts["title"] == 1 + len(charts)
    assert read.tags[0] == ("html", {"lang": "en"})
    assert next(found for tag, found in read.tags if tag == "a") == {"href": "#memo", "class": "skip"}


def test_nothing_is_asked_of_any_network(page: str, read: Reader) -> None:
    assert "http:" not in page
    assert "https:" not in page
    assert "@import" not in page
    assert not read.attributes("src")
    assert all(a.startswith(("#", "data:")) for a in read.attributes("href") + read.attributes("xlink:href"))
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": POLICY}) in read.tags
    assert "default-src 'none'" in POLICY
    assert "script-src" not in POLICY
    assert all(found.get("type") == "application/json" for found, _ in read.scripts)
    assert not [name for _, found in read.tags for name in found if name.startswith("on")]


def test_names_of_users_stay_text(page: str, read: Reader) -> None:
    assert "<script>" not in page
    assert "<img" not in page
    assert "<b>Nation" not in page
    words = " ".join(read.words)
    for name in ('My <script>alert(1)</script> & "survey" $x^2$', "<b>Nation</b>", "age * 'sex' \" onmouseover=\"x"):
        assert name in words
    assert "</td></table><script>alert(2)</script>" in words
    assert "</title></style><img src=x onerror=alert(1)>" in words


def test_the_certificates_in_the_page_hold(read: Reader, content: Content, tmp_path: Path) -> None:
    embedded = {str(found["id"]): Certificate.from_json(text) for found, text in read.scripts}
    links = {str(found["download"]): str(found["href"]) for tag, found in read.tags if "download" in found}
    pairs = dict.fromkeys([content.headline.worst_pair, (1, 1)])
    assert len(embedded) == len(pairs) == len(links) - 2  # the whole release's, and the design
    for pair in pairs:
        name = f"survey-pair-{pair[0]}-{pair[1]}.json"
        file = tmp_path / name
        file.write_bytes(base64.b64decode(links[name].partition(",")[2]))
        assert exactdp.verify(file).holds
        record = Certificate.load(file)
        assert record == embedded[f"json-{pair[0]}-{pair[1]}"]
        assert record.composition == content.release.pair(*pair)
        assert (record.given, record.value) == ("epsilon", content.stated)
        assert record.upper <= content.headline.delta
    again = parse_budget(base64.b64decode(links["survey.toml"].partition(",")[2]), "survey.toml")
    assert again.fingerprint == content.release.fingerprint


def test_where_no_certificate_can_be_made_the_page_says_why(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = parse_budget(
        b"level,a,b\nX,0.31415926535897932384626433832795,0.27182818284590452353602874713526\n", "f.csv"
    )
    claims = certificates.make_claims(fine, (1, 1), Fraction(5), 12)
    assert [c.certificate for c in claims] == [None]
    assert "too fine" in claims[0].reason
    shown = " ".join(Reader(render(dataclasses.replace(content, claims=claims), charts=False)).words)
    assert claims[0].reason in shown
    monkeypatch.setattr(certificates, "MOST_NODES", 1)
    (claim, *_) = certificates.make_claims(content.release, (1, 1), content.stated, 12)
    assert "more than a report waits for" in claim.reason


def variables(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]{6})", block))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_light_dark_and_paper_each_have_readable_colours() -> None:
    style = stylesheet()
    blocks = re.findall(r":root\s*{(.*?)}", style, flags=re.DOTALL)
    light, dark, paper = map(variables, blocks)
    assert light.keys() == dark.keys() == paper.keys()
    assert style.index("prefers-color-scheme: dark") < style.index("@media print")
    assert "size: A4" in style
    assert "break-inside: avoid" in style
    for colours in (light, dark, paper):
        texts = [("ink", "paper"), ("soft", "paper"), ("soft", "panel"), ("accent", "panel"), ("alarm", "alarm-paper")]
        texts += [("ink", "alarm-paper"), ("ink", "calm-paper"), ("button-ink", "button"), ("exact", "paper")]
        for ink, ground in texts:
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
        for line in ("exact", "zcdp", "simple", "gaussian"):
            assert contrast(colours[line], colours["paper"]) >= 3, line


def test_charts_follow_the_page_and_keep_text_as_text(page: str) -> None:
    charts = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    known = set(variables(stylesheet())) | {"sans", "mono"}
    for chart in charts:
        assert not re.findall(r"#[0-9a-f]{6}\b", chart), "a colour that no variable governs"
        assert set(re.findall(r"var\(--([a-z-]+)\)", chart)) <= known
        assert "<text" in chart
        assert "font-family" not in chart
    assert "var(--exact)" in charts[0]
    assert charts[0].count("stroke-dasharray") >= 2


def test_the_same_study_gives_the_same_bytes_in_another_process(
    both: tuple[Study, Summary], page: str, budget: str, tmp_path: Path
) -> None:
    assert report.build(*both) == page
    assert "2026-11-16" not in page
    dated = report.build(*both, date="2026-11-16")
    assert dated.replace("<li>2026-11-16</li>", "") == page
    output = tmp_path / "r.html"
    assert run("report", budget, "-o", str(output)).exit_code == 0
    here = output.read_bytes()
    subprocess.run(
        [sys.executable, "-c", "from exactdp.apps.cli import main; main()", "report", budget, "-o", output],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
        stdout=subprocess.DEVNULL,
    )
    assert output.read_bytes() == here


def test_noise_is_that_of_the_discrete_gaussian(content: Content) -> None:
    for level in content.noise:
        for query in level.queries:
            noise = DiscreteGaussian(query.sigma2)
            within = [math.fsum(noise.pmf(x) for x in range(-m, m + 1)) for m in (query.margin - 1, query.margin)]
            assert within[0] < 0.95 <= within[1]
            assert query.standard_error == math.sqrt(noise.variance)
            assert query.sigma2 == 1 / query.rho == 1 / content.release.table[level.level][query.query]


def test_the_alarm_is_raised_where_the_formula_understates_and_only_there(content: Content, page: str) -> None:
    assert content.alarms
    assert "Alarm: the Gaussian formula understates" in page
    assert page.count("too low") == len(content.alarms)
    rows = tuple(dataclasses.replace(r, gaussian=float(r.epsilon[1]) * 1.01) for r in content.summary.epsilons)
    calm = dataclasses.replace(content, summary=dataclasses.replace(content.summary, epsilons=rows))
    shown = render(calm, charts=False)
    assert "Alarm" not in shown
    assert shown.count("too high") == len(rows)


def test_an_epsilon_below_zero_is_said_in_words() -> None:
    study, summary = studied(b"level,q\nA,1e-12\n", "tiny.csv", ["1e-5"], ["0.05"])
    assert study.epsilon("1e-5") < 0
    words = " ".join(Reader(report.build(study, summary, charts=False)).words)
    assert "is not above zero" in words
    assert "nan" not in words.lower().split()


def test_one_path_and_no_alphas() -> None:
    study, summary = studied(b"level,q\nA,1/3\n", "one.csv", ["1e-6"], [])
    found = Reader(report.build(study, summary, charts=False))
    assert "one directed path" in " ".join(found.words)
    assert found.numbers["pairs"][0] == "1"
    assert len(found.scripts) == 1


def test_the_headline_delta_can_be_chosen_among_those_of_the_study(both: tuple[Study, Summary]) -> None:
    assert gather(*both, delta="1e-6").headline.delta == Fraction(1, 10**6)
    with pytest.raises(exactdp.InvalidInputError, match=r"Found 1e-7; add it there"):
        gather(*both, delta="1e-7")
    study, summary = both
    with pytest.raises(exactdp.InvalidInputError, match="at least one delta"):
        gather(study, dataclasses.replace(summary, epsilons=()))


@pytest.mark.parametrize(
    ("value", "places", "rounding", "wanted"),
    [(0.1, 1, UP, "0.2"), (0.1, 1, DOWN, "0.1"), (-0.05, 1, DOWN, "\u22120.1")],
)
def test_doubles_are_rounded_as_the_binary_numbers_they_are(
    value: float, places: int, rounding: str, wanted: str
) -> None:
    assert numerals.as_markup(with_places(value, places, rounding)) == wanted
    assert numerals.fine(math.inf, 2, rounding) == "\u221e"


@pytest.fixture
def budget(tmp_path: Path) -> str:
    path = tmp_path / "small.csv"
    path.write_text("level,q\nA,1/3\nB,0.5\n")
    return str(path)


def test_bad_input_is_one_sentence_and_exit_code_2(budget: str, tmp_path: Path) -> None:
    out = str(tmp_path / "r.html")
    assert "no-such.toml" in refused(run("report", str(tmp_path / "no-such.toml"), "-o", out))
    assert "must end in .html" in refused(run("report", budget, "-o", str(tmp_path / "r.pdf")))
    assert "does not exist" in refused(run("report", budget, "-o", str(tmp_path / "nowhere" / "r.html")))
    (tmp_path / "folder.html").mkdir()
    assert "is a folder" in refused(run("report", budget, "-o", str(tmp_path / "folder.html")))
    assert "one of dhc-persons-us" in refused(run("report", "dhc-person-us", "-o", out))
    assert "must be between 0 and 1. Found 2" in refused(run("report", budget, "--delta", "2", "-o", out))
    assert "--digits" in refused(run("report", budget, "--digits", "3", "-o", out))
    assert "date must be" in refused(run("report", budget, "--date", "x" * 100, "-o", out))
    assert not Path(out).exists()


def test_a_file_that_cannot_be_written_is_one_sentence(
    budget: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path, text: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(command, "write_text", forbidden)
    assert "Permission denied" in refused(run("report", budget, "-o", str(tmp_path / "r.html"), "--no-figures"))


def test_without_matplotlib_the_sentence_names_the_extra(
    budget: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def blocked(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", blocked)
    out = tmp_path / "r.html"
    assert "exactdp[plots]" in refused(run("report", budget, "-o", str(out)))
    assert run("report", budget, "-o", str(out), "--no-figures").exit_code == 0
    assert "<svg" not in out.read_text()


def test_census_writes_a_report_too(budget: str, tmp_path: Path) -> None:
    arguments = ["census", "--release", budget, "-o", str(tmp_path), "--delta", "1e-6", "--no-figures", "--json"]
    result = run(*arguments, "--level-delta", "1e-6")
    assert result.exit_code == 0, result.stderr
    path = tmp_path / "small" / "report.html"
    assert str(path) in json.loads(result.stdout)["files"]
    found = Reader(path.read_text())
    wanted = json.loads(result.stdout)["epsilons"][0]["epsilon"][1]
    assert float(found.numbers["headline-epsilon"][0]) == wanted
