"""Which cells of a table a text means: `County`, `total`, `County total`, `County / total`, several of them with `;`, or
`all`."""

from __future__ import annotations

from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown

Cell = tuple[str, str]
"""Level and query."""

ALL = "all"
_MOST_LISTED = 12


def chosen_cells(release: Release, text: str) -> tuple[Cell, ...]:
    """The cells that a text names: a level (all its queries), a query (in all levels), both, several texts joined by `;`, or all.

    >>> from exactdp.census import release
    >>> chosen_cells(release("pl94-units-us"), "County; US detailed")
    (('County', 'detailed'), ('US', 'detailed'))
    """
    found: dict[Cell, None] = {}
    for part in text.split(";"):
        found.update(dict.fromkeys(_part(release, " ".join(part.split()))))
    return tuple(found)


def _part(release: Release, name: str) -> list[Cell]:
    if not name:
        raise InvalidInputError("A requirement or weight names cells, such as County total. Found an empty name.")
    cells = release.cells
    if name == ALL:
        return list(cells)
    ways = {
        "level": [c for c in cells if c[0] == name],
        "query": [c for c in cells if c[1] == name],
        "cell": [c for c in cells if name in (f"{c[0]} {c[1]}", f"{c[0]} / {c[1]}", f"{c[0]}/{c[1]}")],
    }
    told = [found for found in ways.values() if found]
    if not told:
        levels = _listed(list(release.table))
        queries = _listed(list(dict.fromkeys(query for _, query in cells)))
        raise InvalidInputError(
            f"Cells are named by a level ({levels}), a query ({queries}), both ({cells[0][0]} {cells[0][1]}), or all. "
            f"Found {shown(name)}."
        )
    if len(told) > 1 or (ways["cell"] and len(ways["cell"]) > 1):
        raise InvalidInputError(f"{shown(name)} names several things here. Write LEVEL / QUERY, or rename one of them.")
    return told[0]


def _listed(names: list[str]) -> str:
    return ", ".join([shown(name) for name in names[:_MOST_LISTED]] + ([] if len(names) <= _MOST_LISTED else ["..."]))


def cell_name(cell: Cell) -> str:
    """As people say it."""
    return f"{cell[0]} {cell[1]}"
