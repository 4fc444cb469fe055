"""The house rules: the rooms and who may import whom, the public names, names and lengths, the README's commands."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import exactdp
import examples
from exactdp.apps import cli
from exactdp.interop.json_objects import object_schema

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "exactdp"
PATHS = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
TREES = {name.removesuffix(".__init__"): ast.parse(path.read_text()) for name, path in PATHS.items()}

ROOMS = [
    "errors",
    "ground",
    "mechanisms",
    "engine",
    "accounting",
    "theory",
    "guarantees",
    "census",
    "optimize",
    "interop",
    "apps",
]
"""A room imports from itself and from those before it. The ground floor is the loose files that are no facades."""
GROUND = {
    "arithmetic_state",
    "balls",
    "brackets",
    "cache",
    "csv_cells",
    "csv_text",
    "doubles",
    "elementwise",
    "files",
    "notebooks",
    "numbers",
    "numerals",
    "strict_json",
    "threads",
    "version",
    "widths",
}
FACADES = {"audit", "conversions", "noise", "plots", "reference", "report", "theory_plots"}
UPWARD = {  # inside functions, because a public method gives what another room makes
    ("mechanisms.mechanism", "accounting.composition"),  # a mechanism makes compositions with +
    ("accounting.composition", "guarantees.comparison"),
    ("accounting.composition", "guarantees.risk"),
    ("notebooks", "interop.frames"),
    ("census.releases", "census.study"),  # Release.account gives a Study, and Study.release is the Release
}


def room(module: str) -> str:
    if module == "__main__":  # `python -m exactdp`, the door to the command line
        return "apps"
    return module.split(".")[0] if module.split(".")[0] in ROOMS else "ground"


def imports() -> set[tuple[str, str]]:
    """Which module of the package imports which, inside functions too; `import exactdp` is not among them."""
    lines = [(m, n) for m, tree in TREES.items() for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    named = [
        (m, n.module, f"{n.module}.{a.name}") for m, n in lines for a in n.names if n.module.split(".")[0] == "exactdp"
    ]
    return {(m, (inner if inner.removeprefix("exactdp.") in TREES else base)[8:]) for m, base, inner in named}


def test_rooms_import_from_those_before_them() -> None:
    for module, imported in imports() - UPWARD:
        downward = ROOMS.index(room(imported)) <= ROOMS.index(room(module)) and imported not in FACADES
        assert module in FACADES or downward, f"{module} imports {imported}, a later room or a facade"


def test_no_module_imports_itself_through_others() -> None:
    graph: dict[str, set[str]] = {}
    for module, imported in imports() - UPWARD:
        graph.setdefault(module, set()).add(imported)
    assert list(TopologicalSorter(graph).static_order())


def test_every_exception_is_needed() -> None:
    assert imports() >= UPWARD


def escapes(tree: ast.AST) -> set[str]:
    """Ways around `imports`: `exactdp` under another name or for more than its version; imports relative, dotted, by text."""
    nodes, dynamic = list(ast.walk(tree)), {"import_module", "__import__"}
    versions = [n.value for n in nodes if isinstance(n, ast.Attribute) and n.attr == "__version__"]
    found: list[ast.AST] = [n for n in nodes if isinstance(n, ast.Name) and n.id == "exactdp" and n not in versions]
    found += [n for n in nodes if isinstance(n, ast.ImportFrom) and n.level]
    for node in (n for n in nodes if isinstance(n, ast.Import)):
        found += [a for a in node.names if a.name.startswith("exactdp.") or (a.name == "exactdp" and a.asname)]
    found += [n for n in nodes if dynamic & {getattr(n, field, None) for field in ("id", "attr", "name")}]
    return {ast.unparse(node) for node in found}


def test_no_import_escapes_the_rule() -> None:
    """Public names load their rooms when first used, so in a room `exactdp` is asked for its version only."""
    assert {module: found for module, tree in TREES.items() if (found := escapes(tree))} == {
        "__init__": {"import_module"},  # of the public names
        "apps.cli": {"import_module"},  # of its own commands
        "interop.frames": {"import_module"},  # of other people's libraries
    }
    assert "" not in {imported for _, imported in imports()}, "from exactdp import a name: import it from its home"


@pytest.mark.parametrize(
    "line",
    [
        "import exactdp as x; x.census",
        "import exactdp.census",
        "import exactdp; x = exactdp; x.census",
        "import exactdp; getattr(exactdp, 'census')",
        "from .census import study",
        "import importlib as i; i.import_module('exactdp.census')",
        "from importlib import import_module as load; load('exactdp.census')",
        "__import__('exactdp.census')",
    ],
)
def test_every_way_around_the_rule_is_seen_inside_functions_too(line: str) -> None:
    assert escapes(ast.parse(f"def f(): {line}"))
    assert not escapes(ast.parse("def f(): import exactdp; return exactdp.__version__"))


def test_at_the_root_are_the_ground_floor_and_facades_only() -> None:
    loose = {path.stem: path for path in PACKAGE.glob("*.py")}
    assert loose.keys() == {"__init__", "__main__", "errors"} | GROUND | FACADES
    told = next(
        line for line in (ROOT / "docs" / "architecture.md").read_text().splitlines() if "| ground floor" in line
    )
    assert set(re.findall(r"`(\w+)\.py`", told)) == GROUND
    for name in FACADES:
        code = len(loose[name].read_text().splitlines()) - (TREES[name].body[0].end_lineno or 0)
        assert code <= 26, f"{name} is more than a facade"
        assert {type(node) for node in TREES[name].body} == {ast.Expr, ast.ImportFrom, ast.Assign}
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(ROOMS) - {
        "errors",
        "ground",
    }


def test_no_two_classes_have_one_name() -> None:
    names = Counter(n.name for tree in TREES.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    assert not {name for name, count in names.items() if count > 1}


@pytest.mark.parametrize(("folder", "most"), [("src", 420), ("tests", 520), ("benchmarks", 420)])
def test_no_file_is_long(folder: str, most: int) -> None:
    lines = {p.relative_to(ROOT).as_posix(): len(p.read_text().splitlines()) for p in (ROOT / folder).rglob("*.py")}
    assert not {path: count for path, count in lines.items() if count > most}


def test_no_function_is_long() -> None:
    """A screen of code: about 60 lines."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [(m, n) for m, tree in TREES.items() for n in ast.walk(tree) if isinstance(n, functions)]
    assert not {f"{m}.{n.name}" for m, n in found if (n.end_lineno or 0) - n.lineno >= 60}


def test_public_names() -> None:
    """The stub is the list; a name that is new, renamed or gone shows in the changelog too."""
    assert len(exactdp.__all__) == len(set(exactdp.__all__))
    for node in ast.parse((PACKAGE / "__init__.pyi").read_text()).body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else []:
            found = getattr(exactdp, alias.name)
            assert alias.name in dir(exactdp)
            home = getattr(found, "__module__", node.module)  # a text, the version, has none
            assert node.module in ("exactdp", home), f"the home of {alias.name} is another"


def test_rooms_with_public_names_list_what_they_have() -> None:
    for module in ("census", "guarantees", "optimize", "theory", *FACADES):
        listed = importlib.import_module(f"exactdp.{module}").__all__
        assert sorted(listed) == sorted(
            a.name for n in TREES[module].body if isinstance(n, ast.ImportFrom) for a in n.names
        )


def test_importing_the_package_loads_no_room() -> None:
    code = "import sys, exactdp; print([m for m in sys.modules if m.startswith('exactdp.') or m in ('numpy', 'flint')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_modules_are_attributes_and_other_names_are_refused() -> None:
    assert exactdp.errors.ExactDPError is exactdp.ExactDPError
    for name in ("no_such_name", "_private", "__wrapped__"):
        with pytest.raises(AttributeError, match=name):
            getattr(exactdp, name)


def test_it_can_be_imported_from_a_zip(tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "package"), "zip", PACKAGE.parent)
    code = "import exactdp; print(exactdp.__file__, exactdp.DiscreteGaussian(1), exactdp.__version__)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": archive},
    )
    path = str(Path(archive) / "exactdp" / "__init__.py")
    assert told.stdout.split() == [path, "DiscreteGaussian(1)", exactdp.__version__]


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


def test_the_readme_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples.write_files(ROOT / "README.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert examples.run_python(ROOT / "README.md") > 20
    assert examples.run_commands(ROOT / "README.md") == 6


def test_every_mechanism_is_public_and_tested() -> None:
    made = [
        (node.name, module)
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Mechanism" in [b.id for b in node.bases if isinstance(b, ast.Name)]
    ]
    tested = "".join((ROOT / "tests" / name).read_text() for name in ("mechanisms/test_mechanisms.py", "strategies.py"))
    for name, module in made:
        assert module.startswith("mechanisms."), f"{name} is a mechanism and lives in {module}"
        assert name in exactdp.__all__, f"{name} is not in __init__.pyi"
        assert f"{name}(" in tested, f"{name} has no case in tests/mechanisms"
        assert name in object_schema()["$defs"], f"{name} is not in interop/json_objects.py"
        assert (ROOT / "docs" / "reference" / "mechanisms.md").read_text().count(f"[{name}]") == 1


def test_every_command_is_registered_and_documented() -> None:
    others = {
        f"apps.cli.{name}"
        for name in (
            "commands",
            "designs",
            "joint",
            "mechanism_option",
            "memory",
            "shell",
            "streams",
            "tables",
            "unused_parts",
        )
    }
    files = {module for module in TREES if module.startswith("apps.cli.")} - others
    assert files == {module for one, module in imports() if one == "apps.cli.commands"} - others
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    missing = [command.name for command in cli.app.registered_commands if f"exactdp {command.name}" not in pages]
    assert not missing
