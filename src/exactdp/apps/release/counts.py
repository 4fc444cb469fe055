"""Tables of counts, read strictly from CSV. The file is confidential: errors name lines and columns and never show what is there.

Not even a level or a header is shown: where a column is missing or shifted, a count stands in its place.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from exactdp.arithmetic_state import steady
from exactdp.census.releases import Allocation
from exactdp.csv_cells import from_cell
from exactdp.errors import InvalidInputError
from exactdp.interop.opendp import LARGEST_COUNT
from exactdp.numbers import shown

_WHOLE = re.compile(r"\s*(\+?[0-9]{1,19})\s*", re.ASCII)
_COLUMNS = ("level", "query", "count")


@steady
@dataclass(frozen=True)
class CountTable:
    """A table of counts as it was read: the header, the rows as texts, and what each row counts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    places: tuple[tuple[str, str], ...]
    """The level and the query of each row."""
    counts: tuple[int, ...]


@steady
def read_counts(path: str | os.PathLike[str], allocation: Allocation) -> CountTable:
    """The table of a CSV file with the columns level, query, count and any further ones, which tell the cells of a query apart.

    Guarantee: each row names a level and a query of the allocation, each of these has a row, no cell is there twice, and every
    count is a whole number from 0 on; anything else is refused in one sentence.
    """
    content = Path(path).read_bytes()
    text, line = None, 0
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:  # it holds all of the content and must not be the new error's context
        line = content.count(b"\n", 0, error.start) + 1
    if text is None:
        raise InvalidInputError(f"Counts must be encoded in UTF-8. Found other bytes in line {line}.")
    return parse_counts(text, allocation)


@steady
def parse_counts(text: str, allocation: Allocation) -> CountTable:
    """`read_counts` for a text that is already in memory."""
    _check_encodable(text)
    lines = _lines(text)
    header = tuple(next(lines, (0, [""]))[1])
    _check_header(header)
    level, query, count = (header.index(name) for name in _COLUMNS)
    rows, places, counts = [], [], []
    known: dict[tuple[str, ...], int] = {}
    for number, row in lines:
        if len(row) != len(header):
            raise InvalidInputError(
                f"Line {number} must have {len(header)} columns, as the header has. Found {len(row)}; "
                "put a text with a comma in quotation marks."
            )
        place = " ".join(row[level].split()), " ".join(row[query].split())
        _check_place(place, allocation, (number, level + 1, query + 1))
        cell = (*place, *(row[i].strip() for i in range(len(row)) if i not in (level, query, count)))
        if cell in known:
            raise InvalidInputError(
                f"Each cell must be there once. Found that of line {known[cell]} again in line {number}; "
                "remove it, or add a column that tells the cells apart."
            )
        known[cell] = number
        rows.append(tuple(row))
        places.append(place)
        counts.append(_written_count(row[count], number, count + 1))
    _check_complete(set(places), allocation)
    return CountTable(header, tuple(rows), tuple(places), tuple(counts))


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


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, [from_cell(cell) for cell in row]
    except csv.Error as error:
        raise InvalidInputError(f"Line {reader.line_num} is not valid CSV: {error}.") from None


def _check_header(header: tuple[str, ...]) -> None:
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
        raise InvalidInputError(
            f"The header must have the columns level, query and count. "
            f"Found {'nothing' if header == ('',) else 'another'}; {missing[0]} is missing."
        )
    for number, name in enumerate(header, 1):
        if header.index(name) + 1 < number or not name.strip():
            found = f"that of column {header.index(name) + 1} again" if name.strip() else "an empty one"
            raise InvalidInputError(f"The columns must have different names. Found {found} in column {number}.")
    if "noisy" in header:
        raise InvalidInputError(
            "A column cannot be called noisy, which is written by this command. Found one; rename it."
        )


def _check_place(place: tuple[str, str], allocation: Allocation, at: tuple[int, int, int]) -> None:
    """`at` is the line, and the columns of level and query in it."""
    (level, query), (line, *columns) = place, at
    if level not in allocation.table:
        bypassed = (
            f"{shown(level)} (allocation {allocation.number} bypasses it)" if level in allocation.bypassed else ""
        )
        raise InvalidInputError(
            f"A level must be one of {_listed(allocation.table)}. "
            f"Found {bypassed or _kind(level)} in line {line}, column {columns[0]}."
        )
    if query not in allocation.table[level]:
        raise InvalidInputError(
            f"A query of level {shown(level)} must be one of {_listed(allocation.table[level])}. "
            f"Found {_kind(query)} in line {line}, column {columns[1]}."
        )


def _check_complete(places: set[tuple[str, str]], allocation: Allocation) -> None:
    for level, queries in allocation.table.items():
        for query in queries:
            if (level, query) not in places:
                raise InvalidInputError(
                    "Each query of the design must have rows, cells that count nothing included. "
                    f"Found none for level {shown(level)}, query {shown(query)}."
                )


def _written_count(text: str, line: int, column: int) -> int:
    written = _WHOLE.fullmatch(text)
    if written is None or int(written[1]) > LARGEST_COUNT:
        raise InvalidInputError(
            f"A count must be a whole number from 0 to 2^62. Found {_kind(text)} in line {line}, column {column}."
        )
    return int(written[1])


def _kind(text: str) -> str:
    return "something else" if text.strip() else "nothing"


def _listed(names: Mapping[str, object]) -> str:
    texts = [shown(name) for name in names]
    return ", ".join(texts if len(texts) <= 20 else [*texts[:19], "..."])
