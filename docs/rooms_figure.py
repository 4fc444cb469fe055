"""Draws the rooms and their imports for docs/architecture.md from the code: `make figures` writes docs/images/rooms.svg.

An arrow leads from the room that imports to the one that it imports from, with the number of modules' imports; the exceptions of
tests/test_house.py are dashed. The rooms, the rule and the reading of imports are those of that test.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from test_house import FACADES, ROOMS, TREES, UPWARD, imports, room  # noqa: E402

TARGET = DOCS / "images" / "rooms.svg"
WHAT = {
    "errors": "what can go wrong",
    "ground": "numbers, balls, brackets, files",
    "mechanisms": "noise and its loss",
    "engine": "Section 4: Fourier sums and their bounds",
    "accounting": "Section 3: composition, certificates",
    "theory": "Section 6: Edgeworth, Gaussian gap",
    "guarantees": "what a result means",
    "census": "Section 5: releases, all pairs",
    "optimize": "from accuracy to the best design",
    "interop": "JSON, frames, other libraries",
    "apps": "figures, report, release, studio, command line",
}
_BOX, _WIDE, _ROW, _LEFT, _TOP = 42, 268, 62, 150, 16
_STYLE = """
  text { font: 12px Inter, "Segoe UI", "Helvetica Neue", "Liberation Sans", Arial, sans-serif; fill: #4a5260 }
  .room { font-weight: 600; font-size: 14px; fill: #14171b }
  .box { fill: #f5f7f9; stroke: #c3cad4 }
  .arrow { fill: none; stroke: #0b5cad; stroke-opacity: 0.55 }
  .upward { fill: none; stroke: #b3261e; stroke-dasharray: 5 3 }
  .count { text-anchor: middle; font-size: 11px; fill: #0b3f78; paint-order: stroke; stroke: #fff; stroke-width: 4px }
  .number { text-anchor: end }
"""


def picture() -> str:
    """The SVG."""
    between = Counter((room(a), room(b)) for a, b in imports() - UPWARD if a not in FACADES and room(a) != room(b))
    parts = [_arrow(one, two, count) for (one, two), count in sorted(between.items(), key=_shortest_last)]
    parts += [_exception(one, two) for one, two in sorted({(room(a), room(b)) for a, b in UPWARD}) if one != two]
    parts += [_room(name) for name in ROOMS]
    height = 2 * _TOP + _ROW * len(ROOMS) - (_ROW - _BOX)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {height}" role="img">\n'
        "<title>The rooms of exactdp and how many imports lead from one to another</title>\n"
        f"<style>{_STYLE}</style>\n"
        f"<defs>{_tip('tip', '#0b5cad')}{_tip('up', '#b3261e')}</defs>\n"
        f'<rect width="860" height="{height}" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _tip(name: str, colour: str) -> str:
    size = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse"'
    return f'<marker id="{name}" {size} orient="auto"><path d="M0 0.5 8 4 0 7.5z" fill="{colour}"/></marker>'


def _shortest_last(item: tuple[tuple[str, str], int]) -> tuple[int, int]:
    (one, two), _ = item
    return -_distance(one, two), ROOMS.index(one)


def _distance(one: str, two: str) -> int:
    return ROOMS.index(one) - ROOMS.index(two)


def _middle(name: str) -> int:
    return _TOP + _BOX // 2 + _ROW * (len(ROOMS) - 1 - ROOMS.index(name))


def _room(name: str) -> str:
    y = _middle(name)
    count = sum(room(module) == name for module in TREES if module not in FACADES and not _is_package(module))
    title = "ground floor" if name == "ground" else name
    return (
        f'<rect class="box" x="{_LEFT}" y="{y - _BOX // 2}" width="{_WIDE}" height="{_BOX}" rx="5"/>'
        f'<text class="room" x="{_LEFT + 10}" y="{y - 3}">{title}</text>'
        f'<text x="{_LEFT + 10}" y="{y + 13}">{WHAT[name]}</text>'
        f'<text class="number" x="{_LEFT + _WIDE - 10}" y="{y - 3}">{count} module{"s" if count > 1 else ""}</text>'
    )


def _is_package(module: str) -> bool:
    return module == "__init__" or any(other.startswith(f"{module}.") for other in TREES)


def _arrow(one: str, two: str, count: int) -> str:
    """Longer ways swing out further, so that no two numbers meet."""
    far, x = _distance(one, two), _LEFT + _WIDE
    start, end = _middle(one) + 19 - 2 * far, _middle(two) - 19 + 2 * far
    out = x + 30 + 54 * far
    label = x + (out - x) * 3 // 4
    curve, width = f"M{x} {start}C{out} {start} {out} {end} {x} {end}", 1 + min(count, 60) / 15
    return (
        f'<path class="arrow" marker-end="url(#tip)" stroke-width="{width:.1f}" d="{curve}"/>'
        f'<text class="count" x="{label}" y="{(start + end) // 2 + 4}">{count}</text>'
    )


def _exception(one: str, two: str) -> str:
    far = -_distance(one, two)
    start, end, out = _middle(one), _middle(two) + 6, _LEFT - 30 - 22 * far
    return f'<path class="upward" marker-end="url(#up)" d="M{_LEFT} {start}C{out} {start} {out} {end} {_LEFT} {end}"/>'


if __name__ == "__main__":
    TARGET.write_text(picture())
    print(TARGET)
