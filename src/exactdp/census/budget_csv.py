"""Budget files as CSV: lines `# setting: value`, then either `level,QUERY,QUERY,...` and a row for each level, or
`level,query,rho` and a row for each budget, with further columns `sensitivity`, `cells` and `noise` if need be.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from exactdp.census.budget_cells import NUMBERS, TRAITS, touched
from exactdp.census.budget_design import MOST_BYTES, SETTINGS, UNITS, Draft, checked, contents, single_spaced
from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.releases import Release
from exactdp.census.tables import as_csv
from exactdp.csv_cells import from_cell
from exactdp.csv_text import separator
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import REPLACE
from exactdp.numbers import shown

_CUT = re.compile(r"[,;]\s*'*[=+\-@]")


def csv_draft(text: str) -> Draft:
    """What the text says, unchecked."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    settings: dict[str, object] = {}
    bypassed: list[tuple[str, list[str]]] = []
    start = 0
    while start < len(lines) and (not lines[start].strip(" \t,;") or _remark(lines[start]) is not None):
        _read_remark(_remark(lines[start]) or "#", start + 1, settings, bypassed)
        start += 1
    rows = _rows(lines, start)
    line, header = next(rows, (start, [""]))
    while len(header) > 1 and not header[-1]:
        header.pop()
    if header[0].lower() != "level":
        raise InvalidInputError(
            "The first line of a CSV budget must be a header such as level,sex,age or level,query,rho. "
            f"Found {f'another line {line}' if any(header) else 'nothing'}."  # not what it says: it may be a table of counts
        )
    if len(header) == 1:
        raise InvalidInputError("The header must name at least one query after level. Found none; add one.")
    if header[1].lower() == "query":
        return Draft(settings, _long(header, rows, settings), bypassed)
    twice = [query for query, count in Counter(header[1:]).items() if count > 1]
    if twice:
        raise InvalidInputError(
            f"Query names must differ. Found {shown(twice[0]) or 'an empty one'} twice in the header."
        )
    levels = [
        (row[0], [(query, value) for query, value in zip(header[1:], row[1:], strict=True) if value])
        for row in _even(rows, len(header))
    ]
    return Draft(settings, levels, bypassed)


def _long(
    header: list[str], rows: Iterator[tuple[int, list[str]]], settings: dict[str, object]
) -> Sequence[tuple[str, Sequence[tuple[str, object]]]]:
    """The levels of a file with one budget in a row; a unit that is the header's only number is put into the settings."""
    columns = [name.lower() for name in header[2:]]
    numbers = [name for name in columns if name in NUMBERS]
    if not numbers or not {*columns} <= {*NUMBERS, *TRAITS} or len({*columns}) < len(columns):
        raise InvalidInputError(
            f"The header must be level,query and then one of {', '.join(UNITS)}; further columns may be "
            f"{', '.join(name for name in (*NUMBERS, *TRAITS) if name not in UNITS)}. Found {shown(','.join(header))}."
        )
    if len(numbers) == 1 and numbers[0] in UNITS and str(settings.setdefault("unit", *numbers)).lower() != numbers[0]:
        raise InvalidInputError(
            f"The unit must be the same above the header and in it. Found {shown(settings['unit'])} and {numbers[0]}."
        )
    levels: dict[str, list[tuple[str, object]]] = {}
    for level, query, *cells in _even(rows, len(header)):
        value: object = cells[0]
        if len(columns) > 1:
            value = {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
        elif numbers[0] not in UNITS:
            value = {numbers[0]: cells[0]}
        levels.setdefault(single_spaced(level), []).append((query, value))
    return list(levels.items())


def _remark(line: str) -> str | None:
    """The line if it starts with #, without the quotation marks and delimiters that a spreadsheet puts around it."""
    line = line.strip(" \t").rstrip(" \t,;")
    if line.startswith('"#') and line.endswith('"'):
        line = line[1:-1].replace('""', '"')
    return line if line.startswith("#") else None


def _read_remark(line: str, number: int, settings: dict[str, object], bypassed: list[tuple[str, list[str]]]) -> None:
    """Put what a line such as `# unit: sigma2` says into the settings or the bypassed sets; `##` starts a free remark."""
    if line == "#" or line.startswith("##"):
        return
    written, colon, value = line[1:].partition(":")
    key, _, rest = single_spaced(written).partition(" ")
    if colon and key == "bypassed" and rest:
        bypassed.append((rest, [name for name in value.split(";") if name.strip()]))
    elif not colon or key not in SETTINGS or rest:
        raise InvalidInputError(
            f"A line that starts with # must say one of {', '.join(SETTINGS)} or bypassed and a number, then a colon. "
            f"Found something else in line {number}; start a remark with ##."
        )
    elif key in settings:
        raise InvalidInputError(f"A setting must be given once. Found {key} again in line {number}.")
    else:
        settings[key] = value.strip()


def _rows(lines: Sequence[str], start: int) -> Iterator[tuple[int, list[str]]]:
    """The rows from line `start` on, each with its line number; empty rows and remarks are left out."""
    ended = (f"{line}\n" for line in lines[start:])
    delimiter = separator(lines[start]) if start < len(lines) else ","
    reader = csv.reader(ended, delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t")
    try:
        for row in reader:
            cells = [from_cell(cell.strip()) for cell in row]
            if any(cells) and not cells[0].startswith("##"):
                yield start + reader.line_num, cells
    except csv.Error as error:
        raise InvalidInputError(
            f"Line {start + reader.line_num} is not valid CSV: {error}. Put a name that has quotation marks in it in "
            "quotation marks and double those inside."
        ) from None


def _even(rows: Iterator[tuple[int, list[str]]], width: int) -> Iterator[list[str]]:
    """The rows below the header, each cut to its width; empty cells beyond it are dropped."""
    for number, row in rows:
        if row[0].startswith("#"):
            raise InvalidInputError(f"Settings must stand above the header. Found one in line {number}; move it up.")
        if len(row) < width or any(row[width:]):
            raise InvalidInputError(
                f"Line {number} must have {width} columns, as the header has. Found {len(row)}; "
                "put a name with a comma in quotation marks."
            )
        yield row[:width]


def budget_csv(release: Release) -> str:
    """The text of a CSV budget file, one budget in a row, every budget an exact fraction.

    Guarantee: reading the text gives table, bypassed sets, neighbours and noise again, in the same order; what cannot be written
    so is refused.
    """
    relation = "" if release.relation == REPLACE else release.relation
    full_path = "" if () in release.bypassed.values() else "false"
    said = {"title": release.title, "source": release.source, "unit_of_privacy": release.unit_of_privacy}
    said |= {"relation": relation, "full_path": full_path}
    remarks = [f"# {key}: {value}" for key, value in said.items() if value]
    remarks += [f"# bypassed {number}: {'; '.join(levels)}".rstrip() for number, levels in release.bypassed.items()]
    columns = ("level", "query", "rho", *(TRAITS if release.noise else ()))
    rows = [
        (level, query, str(rho), *(_traits(release.noise.get((level, query), USUAL)) if release.noise else ()))
        for level, queries in release.table.items()
        for query, rho in queries.items()
    ]
    text = "\n".join([*map(_one_cell, remarks), as_csv(columns, rows)])
    try:
        again = checked(csv_draft(text), release.name, release.source)
        same = len(text.encode()) <= MOST_BYTES and contents(again) == contents(release)
    except InvalidInputError:
        same = False
    if not same:
        raise InvalidInputError(
            "A design can be written as CSV if no level's name has a semicolon or starts with #. "
            f"Found others in {shown(release.name)}; rename the level."
        )
    return text


def _traits(noise: CellNoise) -> tuple[str, str, str]:
    """The cells of the columns that tell a query's noise; empty where it is the usual one."""
    counts = dict(touched(noise))
    kind = "" if noise.kind == USUAL.kind else noise.kind
    return str(counts.get("sensitivity", "")), str(counts.get("cells", "")), kind


def _one_cell(remark: str) -> str:
    """The remark, in quotation marks where a spreadsheet would cut it into cells of which one starts a formula."""
    return '"{}"'.format(remark.replace('"', '""')) if _CUT.search(remark) else remark
