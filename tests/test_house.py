"""The house rules: the public names, the direction of imports, the README's commands."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import exactdp
import examples

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "exactdp"

ROOMS = ["errors", "ground", "mechanisms", "engine", "accounting", "theory", "guarantees", "census", "interop", "apps"]
"""A room imports from itself and from those before it. The ground floor is the loose files that are no facades."""

UPWARD = {  # inside functions, because a mechanism makes compositions and a composition answers for itself
    ("mechanisms.mechanism", "accounting.composition"),
    ("accounting.composition", "guarantees.comparison"),
    ("accounting.composition", "guarantees.risk"),
    ("notebooks", "interop.frames"),
    ("census.releases", "census.study"),
}
FACADES = ["audit", "conversions", "noise", "plots", "reference", "report", "theory_plots"]


def imports() -> set[tuple[str, str]]:
    """Which module of the package imports which, inside functions too."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("exactdp"):
                base = str(node.module).removeprefix("exactdp").removeprefix(".")
                inner = [f"{base}.{alias.name}".strip(".") for alias in node.names]
                found |= {
                    (module, x if (PACKAGE / x.replace(".", "/")).with_suffix(".py").exists() else base) for x in inner
                }
    return found


def test_rooms_import_from_those_before_them() -> None:
    for module, imported in imports() - UPWARD:
        one, two = (m.split(".")[0] if m.split(".")[0] in ROOMS else "ground" for m in (module, imported))
        assert module in FACADES or imported not in FACADES, f"{module} imports the facade {imported}"
        assert module in FACADES or ROOMS.index(two) <= ROOMS.index(one), f"{module} imports {imported}, a later room"


def test_no_module_imports_itself_through_others() -> None:
    graph: dict[str, set[str]] = {}
    for module, imported in imports() - UPWARD:
        graph.setdefault(module, set()).add(imported)
    assert list(TopologicalSorter(graph).static_order())


def test_public_names() -> None:
    """The stub is the list; a name that is new, renamed or gone shows in the changelog too."""
    assert len(exactdp.__all__) == len(set(exactdp.__all__))
    for name in exactdp.__all__:
        assert hasattr(exactdp, name)
        assert name in dir(exactdp)


def test_importing_the_package_loads_no_room() -> None:
    code = "import sys, exactdp; print([m for m in sys.modules if m.startswith('exactdp.') or m in ('numpy', 'flint')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_two_arithmetics_share_the_plan_and_nothing_else() -> None:
    used = imports()
    assert not {m for m in used if m[0] == "engine.lattice.ball" and m[1].endswith(("float64", "moments"))}
    assert not {m for m in used if m[0] == "engine.lattice.float64" and m[1].endswith(("ball", "balls"))}
    assert not {
        m
        for m in used
        if m[0].startswith("engine.published")
        and m[1].startswith(("engine.", "accounting"))
        and not m[1].startswith("engine.published")
    }


def test_the_readme_runs_and_prints_what_it_says() -> None:
    assert examples.run_python(ROOT / "README.md") > 20
