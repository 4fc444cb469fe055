"""Tables of counts, read strictly from CSV; a count is never echoed."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from exactdp.census.releases import Allocation
from exactdp.csv_cells import from_cell
from exactdp.errors import InvalidInputError
from exactdp.interop.opendp import LARGEST_COUNT
from exactdp.numbers import shown
from exactdp.steady import steady

_WHOLE = re.compile(r"\+?[0-9]{1,19}")
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
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(f"Counts must be encoded in UTF-8. Found other bytes in line {line}.") from None
    return parse_counts(text, allocation)


@steady
def parse_counts(text: str, allocation: Allocation) -> CountTable:
    """`read_counts` for a text that is already in memory."""
    lines = _lines(text)
    header = tuple(next(lines, (0, [""]))[1])
    _check_header(header)
    level, query, count = (header.index(name) for name in _COLUMNS)
    rows, places, counts, known = [], [], [], set()
    for number, row in lines:
        if len(row) != len(header):
            raise InvalidInputError(
                f"Line {number} must have {len(header)} columns, as the header has. Found {len(row)}; "
                "put a text with a comma in quotation marks."
            )
        place = " ".join(row[level].split()), " ".join(row[query].split())
        _check_place(place, allocation, number)
        cell = (*place, *(row[i].strip() for i in range(len(row)) if i not in (level, query, count)))
        if cell in known:
            raise InvalidInputError(
                f"Each cell must be there once. Found {shown(', '.join(cell))} again in line {number}; "
                "remove it, or add a column that tells the cells apart."
            )
        known.add(cell)
        rows.append(tuple(row))
        places.append(place)
        counts.append(_written_count(row[count], number))
    _check_complete(set(places), allocation)
    return CountTable(header, tuple(rows), tuple(places), tuple(counts))


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
            f"The header must have the columns level, query and count. Found {shown(','.join(header)) or 'nothing'}; "
            f"{missing[0]} is missing."
        )
    for name, times in Counter(header).items():
        if times > 1 or not name.strip():
            raise InvalidInputError(f"The columns must have different names. Found {shown(name) or 'an empty one'}.")
    if "noisy" in header:
        raise InvalidInputError(
            "A column cannot be called noisy, which is written by this command. Found one; rename it."
        )


def _check_place(place: tuple[str, str], allocation: Allocation, number: int) -> None:
    level, query = place
    if level not in allocation.table:
        skipped = f" (allocation {allocation.number} bypasses it)" if level in allocation.bypassed else ""
        raise InvalidInputError(
            f"A level must be one of {_listed(allocation.table)}. Found {shown(level) or 'nothing'}{skipped} in line {number}."
        )
    if query not in allocation.table[level]:
        raise InvalidInputError(
            f"A query of level {shown(level)} must be one of {_listed(allocation.table[level])}. "
            f"Found {shown(query) or 'nothing'} in line {number}."
        )


def _check_complete(places: set[tuple[str, str]], allocation: Allocation) -> None:
    for level, queries in allocation.table.items():
        for query in queries:
            if (level, query) not in places:
                raise InvalidInputError(
                    "Each query of the design must have rows, cells that count nothing included. "
                    f"Found none for level {shown(level)}, query {shown(query)}."
                )


def _written_count(text: str, number: int) -> int:
    if not _WHOLE.fullmatch(text.strip()) or int(text) > LARGEST_COUNT:
        raise InvalidInputError(
            f"A count must be a whole number from 0 to 2^62. Found {shown(text) or 'nothing'} in line {number}."
        )
    return int(text)


def _listed(names: Mapping[str, object]) -> str:
    texts = [shown(name) for name in names]
    return ", ".join(texts if len(texts) <= 20 else [*texts[:19], "..."])
