"""The version names the code: other source, other version; the same source, the same version wherever it lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import exactdp
from exactdp import version

PACKAGE = Path(exactdp.__file__).parent


def told(folder: Path) -> str:
    """The version of the package in a folder, as a fresh process finds it."""
    code = "import exactdp; print(exactdp.__version__)"
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGE, tmp_path / "exactdp", ignore=shutil.ignore_patterns("__pycache__")))


def test_two_trees_never_share_a_version(tree: Path) -> None:
    assert told(tree.parent) == exactdp.__version__
    engine = tree / "engine" / "lattice" / "float64.py"
    engine.write_text(engine.read_text() + "# one line more\n")
    assert told(tree.parent) != exactdp.__version__


def test_every_file_that_decides_something_counts(tree: Path) -> None:
    paths = [p for p in tree.rglob("*") if p.is_file() and p.name != "py.typed"]
    seen = {version.source_digest(tree)}
    for path in (
        p for suffix in sorted({p.suffix for p in paths}) for p in [q for q in paths if q.suffix == suffix][:2]
    ):
        path.write_bytes(path.read_bytes() + b" ")
        seen.add(version.source_digest(tree))
        path.rename(path.with_name(f"other_{path.name}"))
        seen.add(version.source_digest(tree))
    suffixes = {p.suffix for p in paths}
    assert suffixes == {".py", ".pyi", ".json", ".js", ".css", ".html", ".svg"}
    assert len(seen) == 1 + 2 * sum(min(2, sum(p.suffix == s for p in paths)) for s in suffixes)


def test_what_is_left_beside_the_source_does_not_count(tree: Path) -> None:
    before = version.source_digest(tree)
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "errors.cpython-311.pyc").write_bytes(b"compiled")
    (tree / "errors.py~").write_bytes(b"an editor's")
    design = tree / "census" / "products" / "s-dhc-us.json"
    for path in (tree / "errors.py", design):  # as a checkout on another system may have them
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert version.source_digest(tree) == before


def test_content_does_not_move_between_files(tmp_path: Path) -> None:
    digests = set()
    for first, second in (("x = 1\n", ""), ("", "x = 1\n"), ("x = 1\nb.py\n0\n", "")):
        (tmp_path / "a.py").write_text(first)
        (tmp_path / "b.py").write_text(second)
        digests.add(version.source_digest(tmp_path))
    assert len(digests) == 3


def test_a_release_is_built_under_its_own_number_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXACTDP_RELEASE", raising=False)
    assert version.distribution_version() == exactdp.__version__
    monkeypatch.setenv("EXACTDP_RELEASE", "1.0")
    with pytest.raises(ValueError, match=rf"Found 1\.0, and {version.BASE} there"):
        version.distribution_version()
    monkeypatch.setattr(version, "BASE", "1.0")
    assert version.distribution_version() == "1.0"
    monkeypatch.setattr(version, "BASE", "1.0.dev0")
    monkeypatch.setenv("EXACTDP_RELEASE", "1.0.dev0")
    with pytest.raises(ValueError, match=r"without \.dev"):
        version.distribution_version()


def test_the_version_is_one_that_packages_may_have() -> None:
    assert exactdp.__version__ == f"{version.BASE}+src{version.source_digest(PACKAGE)[:12]}"
    assert set(version.computed_with()) == {"exactdp", "python-flint", "flint", "numpy", "scipy"}


def test_a_tree_that_changed_while_it_was_used_is_nobody_elses(tmp_path: Path) -> None:
    """Modules are loaded when first used, so what runs may be newer than the digest."""
    shutil.copytree(PACKAGE, tmp_path / "exactdp", ignore=shutil.ignore_patterns("__pycache__"))
    script = (
        "from exactdp import version\n"
        "from pathlib import Path\n"
        "before = version.computed_with()['exactdp']\n"
        "path = Path(version.__file__).parent / 'accounting' / 'planner.py'\n"
        "path.write_text(path.read_text() + '# changed\\n')\n"
        "after = version.computed_with()['exactdp']\n"
        "print(before == version.__version__, after == version.__version__, after.startswith(before + '.then'))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["True", "False", "True"]
