"""Every slack has a name and a reason, in doubles.py or beside the one who needs it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from exactdp import doubles

SOURCE = Path(doubles.__file__).parent
ROOMS = ("mechanisms", "engine", "accounting", "theory")
FILES = sorted(
    [p for room in ROOMS for p in (SOURCE / room).rglob("*.py")]
    + [SOURCE / name for name in ("brackets.py", "balls.py", "interop/names.py")]
)
NAMED = {value: name for name, value in vars(doubles).items() if isinstance(value, float) and name.isupper()}


def bare_slacks(source: str) -> Iterator[ast.Constant]:
    """Literals that look like slacks and have no name: a value that doubles.py names, 1 +/- a little, a little more than 1."""
    tree = ast.parse(source)
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):  # a constant of the module is a name
            yield from (leaf for leaf in ast.walk(node) if isinstance(leaf, ast.Constant) and _is_slack(leaf.value))


def _is_slack(value: object) -> bool:
    if not isinstance(value, float):
        return False
    factor = 1 < value < 1.002 or 0.998 < value < 1 or value == 1 + doubles.FFT_SLACK
    return factor or (value in NAMED and value < doubles.REMAINDER_SLACK)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_slack_without_a_name(path: Path) -> None:
    found = [f"{path.name}:{leaf.lineno}: {leaf.value}" for leaf in bare_slacks(path.read_text())]
    assert not found, "Give it a name and a reason, or take one from doubles.py."


@pytest.mark.parametrize("line", ["x * (1 + 1e-9)", "x * 1.001", "x * (1 - 1e-12)", "x + 1e-300", "1.01 * x"])
def test_a_bare_slack_is_noticed(line: str) -> None:
    assert list(bare_slacks(f"def f(x):\n    return {line}\n"))
    assert not list(bare_slacks("SLACK = 1e-9\ndef f(x):\n    return x * (1 + SLACK) + 0.5 * 1e-3\n"))


def test_one_value_one_name_and_a_reason() -> None:
    tree = ast.parse(Path(doubles.__file__).read_text())
    names = [node.targets[0].id for node in tree.body if isinstance(node, ast.Assign) and "SLACK" in ast.unparse(node)]
    reasons = [b for a, b in zip(tree.body, tree.body[1:], strict=False) if isinstance(a, ast.Assign)]
    values = [getattr(doubles, name) for name in names]
    assert len(set(values)) == len(values) >= 12
    assert sum(isinstance(r, ast.Expr) and isinstance(r.value, ast.Constant) for r in reasons) >= len(names)
