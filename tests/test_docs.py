"""The documentation: its examples run and print what they say, links and citations lead somewhere, the site builds strictly."""

from __future__ import annotations

import contextlib
import html
import importlib.util
import io
import os
import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest

import citations
import exactdp
import examples
from exactdp import census, conversions, guarantees, optimize, theory
from exactdp.apps.figures.captions import captions
from exactdp.census.worst_pair import Candidates

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WRITTEN = [page for page in PAGES if page.parent != DOCS / "reference"]
"""Pages of the reference are made from docstrings, whose examples are doctests."""
CITING = [
    *sorted((DOCS / "theory").glob("*.md")),
    *(DOCS / f"{page}.md" for page in ("architecture", "guarantees", "interop", "which-method")),
]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


LONG = {"docs/paper.md": pytest.mark.soak}
"""Pages with examples that take most of a minute; `make paper` runs them as well."""


def _with_examples(*languages: str) -> list[Any]:
    pages = [page for page in WRITTEN if any(examples.blocks(page, language) for language in languages)]
    return [pytest.param(page, marks=LONG.get(_name(page), ())) for page in pages]


@pytest.mark.parametrize("page", _with_examples("python"), ids=_name)
def test_python_examples_print_what_they_say(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples.write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        assert examples.run_python(page) > 0


@pytest.mark.parametrize("page", _with_examples("console"), ids=_name)
def test_commands_print_what_they_say(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples.write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert examples.run_commands(page) > 0


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```python\n1 + 1  # -> 3\n```\n", "1 \\+ 1"),
        ("```python\n(1 +\n 1)  # -> 3\n```\n", "# -> 3"),
        ("```console\n$ exactdp convert --rho 1 --delta 1e-6\nnothing\n```\n", "convert"),
        ("```console\n$ exactdp convert --rho -1 --delta 1e-6\n```\n", "rho"),
    ],
)
def test_a_wrong_example_is_found(text: str, fault: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match=fault):
        assert examples.run_python(page) + examples.run_commands(page) == 0


def _targets(page: Path) -> list[str]:
    """Relative links and images of a page, those in code left out, without their anchors."""
    prose = re.sub(r"^```.*?^```$|^ {4}.*?$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"\]\(([^)\s]+)[^)]*\)", prose)
    return [unquote(link.partition("#")[0]) for link in found if not re.match(r"[a-z]+:|#", link)]


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *PAGES], ids=_name)
def test_links_and_images_exist(page: Path) -> None:
    missing = [link for link in _targets(page) if not (page.parent / link).is_file()]
    assert not missing, f"{_name(page)} links to what is not there"


def test_links_are_found() -> None:
    assert {"designs.md", "images/report-light.png"} <= set(_targets(DOCS / "report.md"))


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^ +- [^\n]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


@pytest.mark.parametrize("page", CITING, ids=_name)
def test_what_is_cited_exists(page: Path) -> None:
    count, missing = citations.cited(page)
    assert count
    assert not missing, f"{_name(page)} cites what is not there"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`engine/lattice/plan.py`, `log_aliasing` in `engine/lattice/plan.py`, `delta`, `x + 1`, `math.tau`", []),
        ("`engine/lattice/plans.py`", ["engine/lattice/plans.py"]),
        ("`log_aliasing` in `engine/lattice/ball.py`", ["log_aliasing in engine/lattice/ball.py"]),
        ("`peak_bounds` and\n`log_aliasing` in\n`engine/lattice/plan.py`", ["peak_bounds in engine/lattice/plan.py"]),
        ("`profile._Search`, `Composition.deltas`, `Composition.delta`", ["profile._Search", "Composition.deltas"]),
        ("`test_what_is_cited_*`, `test_what_was_cited_*`", ["test_what_was_cited_*"]),
        ("`theta_left_in()`, `explain(5)`, `EpsilonHunt`", ["theta_left_in()", "EpsilonHunt"]),
        ("`exactdp.Composition`, `exactdp.conversions`, `exactdp.composer`", ["exactdp.composer"]),
    ],
)
def test_a_citation_of_nothing_is_found(text: str, missing: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert citations.cited(page)[1] == missing


def _formulas(page: Path) -> int:
    """How many formulas stand in a page, those in code left out."""
    prose = re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    displays = re.findall(r"\$\$.+?\$\$", prose, flags=re.DOTALL)
    return len(displays) + len(re.findall(r"\$[^$\n]+\$", re.sub(r"\$\$.+?\$\$", "", prose, flags=re.DOTALL)))


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _hook() -> ModuleType:
    pytest.importorskip("latex2mathml", reason="formulas are converted where the extra docs is installed")
    return _script("formulas")


def test_the_picture_of_the_rooms_is_up_to_date() -> None:
    drawn = _script("rooms_figure")
    assert drawn.picture() == drawn.TARGET.read_text(), "the imports have changed: make figures"


def test_the_page_of_figures_has_their_captions() -> None:
    dhc = census.release("dhc-persons-us")
    page = (DOCS / "figures.md").read_text()
    for number, text in enumerate(captions(dhc, dhc.full_path, dhc.proxy_pair), start=1):
        assert f"(images/figure{number}.png)\n\n{text}\n" in page
        image = (DOCS / "images" / f"figure{number}.png").read_bytes()
        assert text.encode() in image, "the figures have changed: make figures"
        assert len(image) < 250_000


@pytest.mark.parametrize("where", [pytest.param("us", marks=pytest.mark.soak), "pr"])
def test_the_table_of_all_products_is_up_to_date(where: str) -> None:
    script = _script("whole_census")
    assert script.table(where) in (DOCS / "whole-census.md").read_text(), (
        "python docs/whole_census.py prints the tables"
    )


def test_formulas_are_set_as_tex_does() -> None:
    mathml = _hook().mathml
    assert mathml("2 \\log x", False).count('<mspace width="0.167em" />') == 2
    assert "<mi>~" not in mathml(r"X \sim Y", False)
    assert "mtable" in mathml(r"\begin{aligned} a &= b \\ &\le c \end{aligned}", True)
    assert mathml("x", True).startswith('<div class="formula"><math display="block">')


@pytest.mark.parametrize("latex", [r"\foo", r"\frac{1}", "x^", r"\left( x", "{a", "a & b", r"\text{if $x$}"])
def test_a_formula_that_cannot_be_converted_is_named(latex: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_path="theory/page.md"))
    text = f'<span class="arithmatex">\\({html.escape(latex)}\\)</span>'
    with pytest.raises(Exception, match="theory/page.md: the formula " + re.escape(latex)):
        _hook().on_page_content(text, page)


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("mkdocs", "mkdocstrings", "latex2mathml")),
    reason="the site is built where the extra docs is installed: pip install 'exactdp[docs]'",
)
def test_the_site_builds_strictly_and_asks_no_other_host(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    built = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = [path.read_text() for path in tmp_path.rglob("*.html")]
    assert len(pages) > len(PAGES)
    loaded = [
        url
        for text in pages
        for url in re.findall(
            r"<(?:script|link|img|iframe|object|source|use)[^>]+?(?:src|href|data)=\"?([^\" >]+)", text
        )
    ]
    assert loaded
    assert not [url for url in loaded if re.match(r"(?:https?:)?//", url)]
    assert not [path for path in tmp_path.rglob("*.css") if re.search(r"url\([\"']?(?:https?:)?//", path.read_text())]
    for page in WRITTEN:
        built_page = (tmp_path / page.relative_to(DOCS).with_suffix(".html")).read_text()
        assert built_page.count("<math ") == _formulas(page), f"{_name(page)}: a formula is not shown as one"
        assert "arithmatex" not in built_page
    shown = {name for page in pages for name in re.findall(r'id="exactdp\.(?:\w+\.)*(\w+)"', page)}
    homes = [module.__all__ for module in (exactdp, census, conversions, guarantees, optimize, theory)]
    assert set().union(*homes) - shown == {
        "__version__",
        *("census", "conversions", "guarantees", "optimize", "reference", "theory"),
    }
    reference = (tmp_path / "reference" / "composition.html").read_text()
    for method in ("delta_bounds", "epsilon", "tradeoff", "cross_check"):
        assert f'id="exactdp.accounting.composition.Composition.{method}"' in reference
    assert "&gt;&gt;&gt; " in reference
    assert "<blockquote" not in reference, "a doctest is shown as a quotation"


def _row(page: str, start: str) -> list[str]:
    """The cells of the first indented line of a page that starts so."""
    found = re.search(rf"^    {re.escape(start)}.*$", (DOCS / page).read_text(), flags=re.MULTILINE)
    assert found, f"{page} has no row {start}"
    return found[0].split()


@pytest.mark.parametrize("page", [ROOT / "README.md", *_with_examples("python")], ids=_name)
def test_no_example_rounds_to_the_nearest(page: Path) -> None:
    """Numbers that are shown are claims: at_most and at_least round them to their safe side."""
    assert not [
        line
        for _, block in examples.blocks(page, "python")
        for line in block.splitlines()
        if re.search(r"\bround\(|:\.\d", line)
    ]


def test_epsilon_in_prose_is_proved() -> None:
    claims = re.findall(r"\\varepsilon = ([\d.]+)\$[^$]*\$\\delta = 10\^\{(-\d+)\}\$", (DOCS / "index.md").read_text())
    assert claims
    for epsilon, power in claims:
        assert (10 * exactdp.DiscreteGaussian(1)).delta_bounds(epsilon, digits=30).upper <= Decimal(10) ** int(power)
    results = (DOCS / "results.md").read_text()
    study = census.release("dhc-persons-us").account()
    told = r"overall epsilon at 1e-10 is at most ([\d.]+); conversely, at epsilon = 26.34 the exact delta is at most (\S+),"
    found = re.search(told, results)
    assert found
    assert study.delta_bounds(found[1]).upper <= Fraction("1e-10")
    assert study.delta_bounds("26.34").upper <= Fraction(found[2])
    assert study.delta_bounds(Fraction(found[1]) - Fraction(2, 10**4)).lower > Fraction("1e-10")


def test_tables_of_results_are_proved() -> None:
    release = census.release("dhc-persons-us")
    study = release.account()
    for power in range(5, 16):
        delta, epsilon, simple, optimal, gaussian, *worst = _row("results.md", f"1e-{power} ")
        assert study.delta_bounds(epsilon).upper <= Fraction(delta)
        assert study.delta_bounds(Fraction(epsilon) - Fraction(2, 10**10)).lower > Fraction(delta)
        assert Decimal(simple) >= Decimal(conversions.zcdp_epsilon_simple(release.rho, delta))
        assert Decimal(optimal) >= Decimal(conversions.zcdp_epsilon(release.rho, delta))
        assert gaussian.startswith("~"), "an estimate is marked"
        pair, tied = Candidates.of(release, delta=delta).settled()
        assert " ".join(worst) == (f"{tied} tied" if tied > 1 else str(pair))
    for alpha in ("0.001", "0.05", "0.5"):
        _, beta, power_at, zcdp = _row("results.md", f"{alpha} ")
        assert Decimal(beta) <= Decimal(study.beta_bounds(alpha).lower)
        assert Fraction(power_at) >= 1 - Fraction(study.beta_bounds(alpha).lower)
        assert Fraction(zcdp) >= 1 - Fraction(conversions.zcdp_beta(release.rho, alpha))
    proxies = (DOCS / "results.md").read_text().partition("epsilon of (13, 13)")[2].splitlines()[1:13]
    for at, proxy, overall, off in map(str.split, proxies):
        assert release.proxy.delta_bounds(proxy).upper <= Fraction(at)
        assert study.delta_bounds(overall).upper <= Fraction(at)
        ends = study.epsilon_bounds(at).lower, release.proxy.epsilon_bounds(at).lower
        assert Fraction(off) >= Fraction(ends[0]) / Fraction(ends[1]) - 1


def test_the_readme_explains_a_pair_as_the_library_does() -> None:
    """All lines but those of rounding, which differ from machine to machine."""
    text = (ROOT / "README.md").read_text()
    shown = text[text.index("    delta(1317/50)") :].split("\n\n")[0].splitlines()
    made = str(exactdp.census.release("dhc-persons-us").pair(13, 13).explain("26.34")).splitlines()
    varying = ("aliasing", "dropped", "rounding", "delta at", "relative")
    assert len(shown) == len(made)
    for said, found in zip(shown, made, strict=True):
        if not found.strip().startswith(varying):
            assert said == f"    {found}"
