"""What a page cites in backticks, and whether it is there.

    `engine/lattice/plan.py`      a file, from src/exactdp or from the root of the repository (`tests/oracle.py`, `docs/site.css`)
    `engine/lattice/`             a folder, in the same way
    `log_aliasing` in `engine/lattice/plan.py`      a name that this file defines, several joined by commas or `and` too; for
                                  files that are not Python, a word that stands in it
    `engine.lattice.plan.trimmed`, `plan.trimmed`   a name in a module, whose path may be cut at the left
    `Overall.epsilon`             a member of a class
    `test_aliasing_identity`, `test_mixture_*`      a test, or several
    `theta_left_out`, `EpsilonSearch`, `explain()`  a name with an underscore, with capitals like a class, or called: defined
                                  somewhere in the package, its tests or benchmarks; `_simple` may be the ending of one;
                                  or a name of another library (`ZCDpEvent`) that interop/ uses

Everything else in backticks is code to read, not a citation: plain words (`delta`), expressions, commands, and what begins with
a name that the page's own python blocks define (`full.tradeoff()`) or with a library (`math.pi`). Blocks of code are not read.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import examples

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "exactdp"
LIBRARIES = {"dp_accounting", "flint", "joblib", "math", "np", "numpy", "scipy"}
_FILE = re.compile(r"[\w./-]+\.(?:py|pyi|js|css|md|csv)|[\w.-]+/|[\w.-]+(?:/[\w.-]+)+/")
_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(\([^()]*\))?")
_CLASS = re.compile(r"_?[A-Z]\w*[a-z]\w*")


class Index:
    """Every definition of the repository's Python files: by file, by class, and all together with what JavaScript exports."""

    def __init__(self) -> None:
        self.files: dict[str, set[str]] = {}
        self.members: dict[str, set[str]] = defaultdict(set)
        self.everything: set[str] = set()
        for folder in ("src", "tests", "benchmarks", "docs"):
            for path in (ROOT / folder).rglob("*.py"):
                self._read(path)
        for path in PACKAGE.rglob("*.js"):
            self.everything |= set(
                re.findall(r"^export (?:async )?(?:class|const|function\*?) (\w+)", path.read_text(), re.M)
            )

    def _read(self, path: Path) -> None:
        names = self.files[path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).as_posix()] = set[str]()
        facade = path.name == "__init__.py" or path.parent == PACKAGE
        for node in ast.walk(ast.parse(path.read_text())):
            names |= _defined(node) if facade or not isinstance(node, ast.ImportFrom) else set()
            if isinstance(node, ast.ClassDef):
                own = set().union(*map(_defined, ast.walk(node)))
                self.members[node.name] |= own | {f"<{b.id}" for b in node.bases if isinstance(b, ast.Name)}
        self.everything |= names | {path.stem}
        if path.parent == PACKAGE / "interop":
            self.everything |= set().union(*map(_used, ast.walk(ast.parse(path.read_text()))))

    def has_member(self, owner: str, name: str) -> bool:
        """Whether the class or one that it is derived from has the member."""
        known = self.members.get(owner, set())
        return name in known or any(self.has_member(base[1:], name) for base in known if base[0] == "<")

    def has_dotted(self, name: str) -> bool:
        """Whether `a.b.c` is a name in a module, a member of a class, or both in a row."""
        parts = name.removeprefix("exactdp.").split(".")
        if len(parts) == 1:
            return name != parts[0] and (parts[0] in self.files["__init__.pyi"] or self._module(parts) is not None)
        if all(owner in self.members and self.has_member(owner, member) for owner, member in pairwise(parts)):
            return True
        if self._module(parts) is not None:
            return True
        for cut in range(1, len(parts)):
            module = self._module(parts[:cut])
            if module and parts[cut] in module and all(self.has_member(*both) for both in pairwise(parts[cut:])):
                return True
        return False

    def _module(self, parts: list[str]) -> set[str] | None:
        path = "/".join(parts)
        ends = (f"/{path}.py", f"/{path}/__init__.py")
        found = [names for file, names in self.files.items() if f"/{file}".endswith(ends)]
        return set().union(*found) if found else None


def _defined(node: ast.AST) -> set[str]:
    """The names that this piece of code defines: functions, classes, arguments, variables, attributes, imports."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
            return {name}
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return {name}
        case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
            return {alias.asname or alias.name for alias in aliases}
    return set()


def _used(node: ast.AST) -> set[str]:
    """The names of other libraries that this piece of code uses: imports, attributes, classes that not every version has."""
    match node:
        case ast.ImportFrom(names=aliases):
            return {alias.name for alias in aliases}
        case ast.Attribute(attr=name):
            return {name}
        case ast.Constant(value=str(name)) if _CLASS.fullmatch(name):
            return {name}
    return set()


@cache
def index() -> Index:
    found = Index()
    found.files["__init__.pyi"] = set().union(
        *map(_defined, ast.walk(ast.parse((PACKAGE / "__init__.pyi").read_text())))
    )
    return found


def cited(page: Path) -> tuple[int, list[str]]:
    """How many citations the page makes, and those that lead nowhere."""
    local = set(LIBRARIES)
    for _, block in examples.blocks(page, "python"):
        local |= set().union(*map(_defined, ast.walk(ast.parse(block))))
    prose = re.sub(r"^```.*?^```$|^ {4}\S.*?$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    checked = {text: _is_there(text, local) for text in re.findall(r"`([^`\n]+)`", prose)}
    for names, file in re.findall(r"((?:`\w+`(?:,|\sand)\s)*`\w+`)\sin\s`([\w./-]+\.\w+)`", prose):
        checked |= {f"{name} in {file}": _is_in(name, file) for name in re.findall(r"`(\w+)`", names)}
    return sum(there is not None for there in checked.values()), [
        text for text, there in checked.items() if there is False
    ]


def _is_there(text: str, local: set[str]) -> bool | None:
    """Whether what is cited is there; None where nothing is cited."""
    if _FILE.fullmatch(text):
        return any((base / text).exists() for base in (PACKAGE, ROOT, ROOT / "docs"))
    if re.fullmatch(r"test_\w+\*?", text):
        return any(re.fullmatch(text.replace("*", r"\w+"), name) for name in index().everything)
    named = _NAME.fullmatch(text)
    if named is None or named[1].split(".")[0] in local:
        return None
    name = named[1]
    if "." in name:
        return index().has_dotted(name)
    if name.startswith("_") and any(other.endswith(name) for other in index().everything):
        return True
    return name in index().everything if "_" in name or named[2] or _CLASS.fullmatch(name) else None


def _is_in(name: str, file: str) -> bool:
    known = index().files.get(file)
    if known is not None:
        return name in known
    found = [base / file for base in (PACKAGE, ROOT) if (base / file).is_file()]
    return bool(found) and re.search(rf"\b{name}\b", found[0].read_text()) is not None
