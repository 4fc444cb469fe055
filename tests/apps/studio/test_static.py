"""The files of the studio's page: rooms that import downwards, nothing dead, nothing from elsewhere, colours one can read."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import exactdp

STATIC = Path(exactdp.__file__).parent / "apps" / "studio" / "static"
DOCS = Path(__file__).parents[3] / "docs"
MAY_IMPORT = {"dom.js": "", "state": "state", "ask": "state ask", "charts": "dom.js state charts"}
"""What each room may import; the view and main.js may import all."""


def used(path: Path) -> list[Path]:
    """The files that a page, a style sheet or a module names."""
    named = re.findall(r'(?:from |import ?\(?)"(\..*?)"|(?:src|href)="/static/(.*?)"', path.read_text())
    return [(path.parent / module).resolve() if module else STATIC / file for module, file in named]


def test_rooms_import_from_those_before_them() -> None:
    for path in STATIC.rglob("*.js"):
        room = path.relative_to(STATIC).parts[0]
        for found in used(path):
            allowed = MAY_IMPORT.get(room, "dom.js state ask charts view").split()
            assert found.relative_to(STATIC).parts[0] in allowed, f"{path.name} imports {found.name}, a later room"
    assert list(TopologicalSorter({path: used(path) for path in STATIC.rglob("*.js")}).static_order())  # and no circles


def test_every_file_is_used_by_the_page() -> None:
    seen: set[Path] = set()
    waiting = [STATIC / "index.html"]
    while waiting:
        seen.add(path := waiting.pop())
        waiting += set(used(path)) - seen
    assert seen == {path for path in STATIC.rglob("*") if path.is_file()}


def test_the_documentation_lists_the_keys() -> None:
    script = (STATIC / "state" / "shortcuts.js").read_text()
    keys = re.findall(r'keys: "(.*?)",\s*does: "(.*?)"', script)
    assert len(keys) == script.count("does:") > 5
    rows = [("Keys", "What they do"), ("---", "---"), *keys]
    assert "\n\n" + "\n".join(f"| {key} | {does} |" for key, does in rows) + "\n\n" in (DOCS / "studio.md").read_text()


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_enough_contrast(theme: int) -> None:
    tokens = dict(
        re.findall(r"--([\w-]+): light-dark\((#\w{6}, #\w{6})\)", (STATIC / "style" / "tokens.css").read_text())
    )
    colour = {name: both.split(", ")[theme] for name, both in tokens.items()}
    for text in ("text", "muted", "accent"):
        for surface in ("page", "surface", "sunken", "accent-soft"):
            assert _contrast(colour[text], colour[surface]) >= 4.5, (text, surface)
    for name in ("bad", "warn"):
        for surface in ("surface", f"{name}-soft"):
            assert _contrast(colour[name], colour[surface]) >= 4.5, (name, surface)
    assert _contrast(colour["on-accent"], colour["accent"]) >= 4.5
    for line in ("exact", "optimal", "simple", "gaussian", "pair", "kept", "line-strong"):
        assert _contrast(colour[line], colour["surface"]) >= 3, line


def test_the_page_holds_no_script_or_style_of_its_own_and_no_address() -> None:
    html = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", html)
    for path in filter(Path.is_file, STATIC.rglob("*")):
        addresses = set(re.findall(r"https?://[^\s\"'`<>]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
        assert "innerHTML" not in path.read_text()
