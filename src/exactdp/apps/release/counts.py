"""Tables of counts, read strictly from CSV. The file is confidential: errors name lines and columns and never show what is there.

Not even a level or a header is shown: where a column is missing or shifted, a count stands in its place. What an error may name
are facts of the design, such as a level that a path bypasses.
"""

from __future__ import annotations

import csv
import io
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exactdp.arithmetic_state import steady
from exactdp.census.releases import Allocation, Release
from exactdp.csv_cells import from_cell
from exactdp.csv_text import decoded, refuse_spreadsheet, separator
from exactdp.errors import InvalidInputError
from exactdp.interop.opendp import LARGEST_COUNT
from exactdp.numbers import shown

_WHOLE = re.compile(r"\s*(\+?[0-9]{1,19})\s*", re.ASCII)
_PATHS = re.compile(r"\s*([0-9]{1,6}([\s;]+[0-9]{1,6})*)?\s*", re.ASCII)
_COLUMNS = ("level", "query", "count")
_PATH = "path"
_SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}
_WHAT = "A table of counts"

Paths = tuple[int, ...]
"""The numbers of the allocations whose records a cell counts, in ascending order."""


@steady
@dataclass(frozen=True)
class CountTable:
    """A table of counts as it was read: the header, the rows as texts, and what each row counts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    places: tuple[tuple[str, str], ...]
    """The level and the query of each row."""
    counts: tuple[int, ...]
    paths: tuple[Paths, ...] | None = None
    """The paths whose records each row counts; None if the table has no column for them."""


@steady
def read_counts(
    path: str | os.PathLike[str], design: Release | Allocation, allocation: int | None = None
) -> CountTable:
    """The table of a CSV file with the columns level, query, count, path and any further ones.

    The further ones tell the cells of a query apart. `path` may be left out; it names the allocations whose records a row
    counts: 1, or 1;2, or nothing for all that have the level. Without it all records are on one path: `allocation`, the full one
    unless told.

    Guarantee: each row names a level and a query of each of its paths, each path that occurs has rows for each of its queries,
    no cell is there twice, whatever its paths, and every count is a whole number from 0 on; anything else is refused in one
    sentence.
    """
    refuse_spreadsheet(Path(path).name, _WHAT)
    return parse_counts(decoded(Path(path).read_bytes(), _WHAT), design, allocation)


@steady
def parse_counts(text: str, design: Release | Allocation, allocation: int | None = None) -> CountTable:
    """`read_counts` for a text that is already in memory."""
    _check_encodable(text)
    lines = _lines(text)
    header = tuple(next(lines, (0, [""]))[1])
    at = _columns(header)
    reader = _Places(_allocations(design, allocation, _PATH in at), at)
    rows, places, counts, paths = [], [], [], []
    known: dict[tuple[str, ...], int] = {}
    labels = [i for i in range(len(header)) if i not in at.values()]
    for number, row in lines:
        if len(row) != len(header):
            name = _SEPARATOR_NAMES[_separator(text)]
            raise InvalidInputError(
                f"Line {number} must have {len(header)} columns, as the header has. Found {len(row)}; "
                f"put a text with a {name} in quotation marks."
            )
        place, numbers = reader.read(row, number)
        cell = (*place, *(single_label(row[i]) for i in labels))
        if cell in known:
            raise InvalidInputError(_twice(known[cell], number, _PATH in at))
        known[cell] = number
        rows.append(tuple(row))
        places.append(place)
        paths.append(numbers)
        counts.append(_written_count(row[at["count"]], number, at["count"] + 1))
    reader.check_complete()
    return CountTable(header, tuple(rows), tuple(places), tuple(counts), tuple(paths) if _PATH in at else None)


@steady
def is_table_of_counts(path: str | os.PathLike[str]) -> bool:
    """Whether a file is there whose first line names the columns of a table of counts."""
    try:
        if not Path(path).is_file():  # a pipe can be read once only
            return False
        text = decoded(Path(path).read_bytes(), _WHAT)
        header = next(_lines(text), (0, [""]))[1]
    except (OSError, ValueError):  # which hold what was read: they go no further
        return False
    return set(_COLUMNS) <= {_plain(name) for name in header}


@steady
def column(header: Sequence[str], name: str) -> int:
    """The place of a column by its name, which may be written in capitals."""
    return [_plain(other) for other in header].index(name)


@steady
def chosen_allocation(design: Release, number: int | None) -> Allocation:
    """The allocation of that number, the full path if there is none given."""
    wanted = design.full_path if number is None else number
    if wanted not in design.allocations:
        design.pair(wanted, wanted)  # its error says which allocations there are
    return design.allocations[wanted]


def _allocations(design: Release | Allocation, number: int | None, has_paths: bool) -> Mapping[int, Allocation]:
    """The allocations whose records the table may count."""
    if isinstance(design, Allocation):
        return {design.number: design}
    if not has_paths:
        chosen = chosen_allocation(design, number)
        return {chosen.number: chosen}
    refuse_number_beside_paths(number)
    return design.allocations


def refuse_number_beside_paths(number: int | None) -> None:
    """Refuse one allocation for a table that names the paths itself."""
    if number is not None:
        raise InvalidInputError(
            "An allocation is given for tables without a column path. "
            f"Found {shown(number)} and such a column; leave one of them out."
        )


def _twice(first: int, again: int, has_paths: bool) -> str:
    if not has_paths:
        return (
            f"Each cell must be there once. Found that of line {first} again in line {again}; "
            "remove it, or add a column that tells the cells apart."
        )
    return (
        "Each cell must be there once: one cell has one noise, and two rows would spend its node twice. Found that of line "
        f"{first} again in line {again}; list it once with all its paths, such as 1;2, or add a column that tells cells apart."
    )


def single_label(text: str) -> str:
    """A label as it is compared: two that look the same are the same."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _check_encodable(text: str) -> None:
    """Refuse, before anything is drawn, what could not be written after it."""
    place = -1
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = error.start
    if place >= 0:
        line = text.count("\n", 0, place) + 1
        raise InvalidInputError(f"Counts must be Unicode. Found half a character in line {line}; read it as UTF-8.")


def _separator(text: str) -> str:
    return separator(text.lstrip("\r\n").partition("\n")[0])


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, [from_cell(cell) for cell in row]
    except csv.Error as error:
        raise InvalidInputError(f"Line {reader.line_num} is not valid CSV: {error}.") from None


def _plain(name: str) -> str:
    return name.strip().lower()


def _columns(header: tuple[str, ...]) -> dict[str, int]:
    """Where level, query, count and, if it is there, path stand."""
    own = (*_COLUMNS, _PATH, "noisy")
    names = [_plain(name) if _plain(name) in own else name for name in header]
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise InvalidInputError(
            f"The header must have the columns level, query and count. "
            f"Found {'nothing' if header == ('',) else 'another'}; {missing[0]} is missing."
        )
    for number, name in enumerate(names, 1):
        if names.index(name) + 1 < number or not name.strip():
            found = f"that of column {names.index(name) + 1} again" if name.strip() else "an empty one"
            raise InvalidInputError(f"The columns must have different names. Found {found} in column {number}.")
    if "noisy" in names:
        raise InvalidInputError(
            "A column cannot be called noisy, which is written by this command. Found one; rename it."
        )
    return {name: names.index(name) for name in (*_COLUMNS, _PATH) if name in names}


class _Places:
    """Reads level, query and paths of one row after another; what was understood once is known."""

    def __init__(self, allocations: Mapping[int, Allocation], at: Mapping[str, int]) -> None:
        self._allocations, self._at = allocations, at
        self._known: dict[tuple[str, str, str], tuple[tuple[str, str], Paths]] = {}

    def read(self, row: Sequence[str], line: int) -> tuple[tuple[str, str], Paths]:
        written = row[self._at["level"]], row[self._at["query"]], row[self._at[_PATH]] if _PATH in self._at else ""
        if written not in self._known:
            place = " ".join(written[0].split()), " ".join(written[1].split())
            paths = self._paths(written[2], place[0], line)
            for number in paths or list(self._allocations)[:1]:
                self._check_place(place, self._allocations[number], line)
            self._known[written] = place, paths
        return self._known[written]

    def check_complete(self) -> None:
        """Each path that occurs must have rows for each of its queries."""
        there = {(number, place) for place, numbers in self._known.values() for number in numbers}
        occurring = {number for number, _ in there} if _PATH in self._at else set(self._allocations)
        if not occurring:
            raise InvalidInputError("A table of counts must have rows. Found none.")
        for number in sorted(occurring):
            for level, queries in self._allocations[number].table.items():
                for query in queries:
                    if (number, (level, query)) not in there:
                        path = f" on path {number}" if _PATH in self._at else ""
                        raise InvalidInputError(
                            "Each query of the design must have rows, cells that count nothing included. "
                            f"Found none for level {shown(level)}, query {shown(query)}{path}."
                        )

    def _paths(self, text: str, level: str, line: int) -> Paths:
        """The paths of a row; where none is written, all that have the level."""
        numbers = sorted({int(part) for part in re.findall(r"[0-9]+", text)}) if _PATHS.fullmatch(text) else None
        if numbers is None or not set(numbers) <= set(self._allocations):
            raise InvalidInputError(
                f"A path must be one of the allocations {_listed(self._allocations)}, several such as 1;2, or nothing for all "
                f"that have the level. Found something else in line {line}, column {self._at[_PATH] + 1}; if the column "
                "holds other things, rename it."
            )
        return tuple(numbers or [n for n, allocation in sorted(self._allocations.items()) if level in allocation.table])

    def _check_place(self, place: tuple[str, str], allocation: Allocation, line: int) -> None:
        level, query = place
        if level not in allocation.table:
            bypassed = (
                f"{shown(level)} (allocation {allocation.number} bypasses it)" if level in allocation.bypassed else ""
            )
            raise InvalidInputError(
                f"A level must be one of {_listed(allocation.table)}. "
                f"Found {bypassed or _kind(level)} in line {line}, column {self._at['level'] + 1}."
            )
        if query not in allocation.table[level]:
            raise InvalidInputError(
                f"A query of level {shown(level)} must be one of {_listed(allocation.table[level])}. "
                f"Found {_kind(query)} in line {line}, column {self._at['query'] + 1}."
            )


def _written_count(text: str, line: int, place: int) -> int:
    written = _WHOLE.fullmatch(text)
    if written is None or int(written[1]) > LARGEST_COUNT:
        raise InvalidInputError(
            f"A count must be a whole number from 0 to 2^62. Found {_kind(text)} in line {line}, column {place}."
        )
    return int(written[1])


def _kind(text: str) -> str:
    return "something else" if text.strip() else "nothing"


def _listed(names: Iterable[object]) -> str:
    texts = [shown(name) for name in names]
    return ", ".join(texts if len(texts) <= 20 else [*texts[:19], "..."])
