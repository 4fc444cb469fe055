"""What a release consists of: metadata, placeholders that it fills, the distributions, the citation, the public CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECORD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = RECORD["project"]
PLACEHOLDER = "exactdp.invalid"
"""The top-level domain .invalid leads nowhere (RFC 6761)."""
FILLED_BY_A_RELEASE = ["CITATION.cff", "SECURITY.md", "pyproject.toml"]
PAPER = "A Sieve-Accelerated Quadrature Method for Exact Privacy Accounting in the 2020 U.S. Decennial Census"


def texts() -> dict[str, str]:
    """What is published, but for the description of how to fill it, by its name."""
    paths = [*ROOT.glob("*.*"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    names = {path.relative_to(ROOT).as_posix(): path for path in paths if path.is_file()}
    return {name: path.read_text(encoding="utf-8") for name, path in names.items() if name != "CONTRIBUTING.md"}


def test_placeholders_are_where_a_release_looks_for_them() -> None:
    left = sorted(name for name, text in texts().items() if PLACEHOLDER in text)
    if os.environ.get("EXACTDP_RELEASE"):
        assert not left, f"a release fills in what contains {PLACEHOLDER}"
    assert set(left) <= set(FILLED_BY_A_RELEASE)
    steps = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in steps for name in (*FILLED_BY_A_RELEASE, PLACEHOLDER))


def test_a_release_with_placeholders_is_refused() -> None:
    if not any(PLACEHOLDER in text for text in texts().values()):
        pytest.skip("everything is filled in")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "where_a_release_looks"]
    found = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "EXACTDP_RELEASE": "1"}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert f"a release fills in what contains {PLACEHOLDER}" in found.stdout


def test_metadata() -> None:
    assert PROJECT["maintainers"]
    assert set(PROJECT["urls"]) == {"homepage", "source", "documentation", "changelog", "issues"}
    for wanted in (
        "Python :: 3.11",
        "Python :: 3.12",
        "Python :: 3.13",
        "MacOS",
        "Microsoft :: Windows",
        "POSIX :: Linux",
    ):
        assert any(classifier.endswith(wanted) for classifier in PROJECT["classifiers"])
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    tested = re.findall(r"python: \[(.+)\]", workflow)[0]
    assert re.findall(r"3\.\d+", tested) == re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))


def test_the_workflow_is_yaml_with_pinned_actions() -> None:
    yaml = pytest.importorskip("yaml", reason="mkdocs brings it")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow["jobs"]["tests"]["strategy"]["matrix"]["os"]) == {
        *("ubuntu-latest", "macos-latest", "windows-latest")
    }
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", name) for name in used)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    made = [word for step in steps for word in re.findall(r"make PYTHON=python ([a-z ]+)", step.get("run", ""))]
    assert {word for words in made for word in words.split()} <= set(targets)


def test_install_lines_work_as_written() -> None:
    """Every line of the section is a target of the Makefile, or a command about the checkout and its extras."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## Install")[2].partition("\n## ")[0]
    lines = [line.split("#")[0].split() for line in section.splitlines() if line.startswith("    ")]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {"make", "pip"} <= {line[0] for line in lines}
    for program, *arguments in lines:
        assert program in ("make", "pip", "python", ".venv/bin/python")
        if program == "make":
            assert set(arguments) <= set(targets)
        if program == "pip":
            extras = re.fullmatch(r"'?\.(?:\[([a-z,]+)\])?'?", arguments[1])
            assert extras
            assert set((extras[1] or "test").split(",")) <= PROJECT["optional-dependencies"].keys()
    assert not [name for name, text in texts().items() if "<this repository>" in text]


def test_the_paper_is_cited_everywhere_alike() -> None:
    for name in ("README.md", "CITATION.cff", "docs/index.md", "docs/theory/reference.md"):
        assert PAPER in texts()[name], name
        assert "arxiv.org/abs/2606.29835" in texts()[name], name
    yaml = pytest.importorskip("yaml", reason="mkdocs brings it")
    citation = yaml.safe_load(texts()["CITATION.cff"])
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["license"], citation["abstract"]) == (PROJECT["license"], f"{PROJECT['description']}.")
    assert [author["family-names"] for author in citation["preferred-citation"]["authors"]] == ["Su", "Su", "Wang"]


def build(where: Path, into: Path, what: str) -> Path:
    """A distribution of the project in a folder, by the backend that it names, in a process of its own."""
    backend = RECORD["build-system"]["build-backend"]
    code = f"import sys, {backend} as b; print(b.build_{what}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(into)], cwd=where, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return into / done.stdout.splitlines()[-1]


def test_the_distributions_hold_everything(tmp_path: Path) -> None:
    for requirement in RECORD["build-system"]["requires"]:
        name = re.split(r"[<>=~!\[; ]", requirement)[0]
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{name} builds the distributions: pip install 'exactdp[test]'")
    with tarfile.open(build(ROOT, tmp_path, "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    for name in (
        ".ci/run",
        ".github/workflows/ci.yml",
        "Makefile",
        "CITATION.cff",
        "SECURITY.md",
        "docs/schemas/design-1.json",
    ):
        assert (source / name).is_file(), f"{name} is not in the source distribution"
    folders = ("src", "tests", "docs", "benchmarks")
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*")):
        if path.is_file() and not {"__pycache__", ".hypothesis"} & set(path.parts) and path.suffix != ".pyc":
            assert (source / path.relative_to(ROOT)).is_file(), f"{path.relative_to(ROOT)} is not in it"
    with zipfile.ZipFile(build(source, tmp_path, "wheel")) as wheel:
        packed = set(wheel.namelist())
        (told,) = (name for name in packed if name.endswith(".dist-info/METADATA"))
        headers = HeaderParser().parsestr(wheel.read(told).decode())
    package = source / "src"
    assert {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()} <= packed
    assert {"exactdp/py.typed", "exactdp/__init__.pyi", "exactdp/census/products/s-dhc-us.json"} <= packed
    assert {"exactdp/apps/studio/static/index.html", "exactdp/apps/report/style.css", "exactdp/__main__.py"} <= packed
    assert not [name for name in packed if name.startswith("tests")]
    assert headers["Requires-Python"] == PROJECT["requires-python"]
    assert len(headers.get_all("Project-URL", [])) == len(PROJECT["urls"])
