"""The documentation: its examples run and print what they say, its links lead somewhere, its site builds strictly."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import examples

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WRITTEN = [page for page in PAGES if page.parent != DOCS / "reference"]
"""Pages of the reference are made from docstrings, whose examples are doctests."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _with_examples(*languages: str) -> list[Path]:
    return [page for page in WRITTEN if any(examples.blocks(page, language) for language in languages)]


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


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES], ids=_name)
def test_links_and_images_exist(page: Path) -> None:
    missing = [link for link in _targets(page) if not (page.parent / link).is_file()]
    assert not missing, f"{_name(page)} links to what is not there"


def test_links_are_found() -> None:
    assert {"designs.md", "images/report-light.png"} <= set(_targets(DOCS / "report.md"))


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"^ +- [^\n]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None,
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
        for url in re.findall(r"<(?:script|link|img|iframe)[^>]+?(?:src|href)=\"?([^\" >]+)", text)
    ]
    assert loaded
    assert not [url for url in loaded if re.match(r"(?:https?:)?//", url)]
    reference = (tmp_path / "reference" / "composition.html").read_text()
    for method in ("delta_bounds", "epsilon", "tradeoff", "cross_check"):
        assert f'id="exactdp.accounting.composition.Composition.{method}"' in reference
    assert "&gt;&gt;&gt; " in reference
    assert "<blockquote" not in reference, "a doctest is shown as a quotation"
