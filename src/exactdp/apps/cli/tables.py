"""Tables and sentences on a terminal of any width. No number is ever cut: what does not fit side by side is stacked.

On a terminal a table that is too wide is split into several below each other, each with the first column; sentences are broken
between words. Elsewhere (a pipe, a file) lines are as long as they are.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

_ENDLESS = 1_000_000
_NARROWEST = 20  # columns of a terminal, or of a sentence beside other columns, that are worth to be filled
_GAP = "  "
_MOST_NAMED = 2  # queries of a level that are named in one row; more are counted


def width() -> int:
    """Columns that a line may have."""
    columns = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else _ENDLESS
    return columns if columns >= _NARROWEST else _ENDLESS


def say(*lines: str) -> None:
    """Sentences on standard output, broken between words; a word that is longer than a line stays whole."""
    for line in lines:
        print("\n".join(wrapped(line, width())))


def show_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """A title and, indented below it, names and texts; long texts are broken between words, under their beginning."""
    say(title)
    first = max((len(name) for name, _ in facts), default=0) + 4
    for name, text in facts:
        lines = wrapped(text, max(width() - first, _NARROWEST))
        print(f"\n{' ' * first}".join([f"  {name}".ljust(first) + lines[0], *lines[1:]]))
    print()


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], prose: str = "") -> None:
    """A table with its title; the column named by `prose`, the last one, holds sentences, which may be broken between words."""
    if title:
        say(title)
    for chosen in _groups(columns, rows, prose):
        lines = [[columns[i] for i in chosen], *([row[i] for i in chosen] for row in rows)]
        for line in _laid_out(lines, is_prose=columns[chosen[-1]] == prose):
            print(line.rstrip())
        print()


def show_cells(title: str, columns: Sequence[str], cells: Sequence[tuple[str, str, tuple[str, ...]]]) -> None:
    """A table of the cells of a design, each with its level, query and figures; those of a level that read the same are one row,
    in the place of the first of them."""
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for level, query, figures in cells:
        rows.setdefault((level, figures), []).append(query)
    sizes = Counter(level for level, *_ in cells)
    table = [[*figures, _named(level, queries, sizes[level])] for (level, figures), queries in rows.items()]
    show_table(title, [*columns, "cell"], table, prose="cell")


def _named(level: str, queries: Sequence[str], size: int) -> str:
    if len(queries) <= _MOST_NAMED:
        return f"{level} {', '.join(queries)}"
    return f"{level}, all {size} queries" if len(queries) == size else f"{level}, {len(queries)} of {size} queries"


def _groups(columns: Sequence[str], rows: Sequence[Sequence[str]], prose: str) -> Iterator[list[int]]:
    """The columns of each table: the first and as many others as fit beside it."""
    widths = [max(cell_len(line[i]) for line in (columns, *rows)) for i in range(len(columns))]
    needed = [min(w, _NARROWEST) if name == prose else w for w, name in zip(widths, columns, strict=True)]
    taken: list[int] = []
    for i in range(1, len(columns)):
        if taken and sum(needed[j] + len(_GAP) for j in (0, *taken)) + needed[i] > width():
            yield [0, *taken]
            taken = []
        taken.append(i)
    yield [0, *taken]


def _laid_out(lines: Sequence[Sequence[str]], is_prose: bool) -> Iterator[str]:
    """The lines of a table: the first column on the left, numbers on the right, sentences in what is left over."""
    last = len(lines[0]) - 1
    widths = [max(cell_len(line[i]) for line in lines) for i in range(last + 1)]
    before = sum(widths[:last]) + len(_GAP) * last
    for line in lines:
        cells = [_padded(cell, widths[i], on_left=i == 0) for i, cell in enumerate(line)]
        if not is_prose:
            yield _GAP.join(cells)
            continue
        parts = wrapped(line[last], max(width() - before, _NARROWEST))
        yield _GAP.join([*cells[:last], parts[0]])
        yield from (" " * before + part for part in parts[1:])


def _padded(cell: str, size: int, on_left: bool) -> str:
    blanks = " " * (size - cell_len(cell))
    return f"{cell}{blanks}" if on_left else f"{blanks}{cell}"


def wrapped(text: str, columns: int) -> list[str]:
    """The text in lines, broken between words, further ones indented as it is."""
    if cell_len(text) <= columns:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
