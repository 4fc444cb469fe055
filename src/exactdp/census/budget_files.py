"""Budget files: a design of one's own, written by hand as TOML or CSV, read as the same object as a built-in release.

TOML: the settings `title`, `source`, `unit`, `total_rho`, then a table `[levels.NAME]` of budgets for each level, top first,
then `[level_shares]` and `[bypassed]`, all but the levels optional.
CSV: lines `# setting: value`, then either `level,QUERY,QUERY,...` and a row for each level, or `level,query,rho` and a row for
each budget.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from exactdp.census.budget_design import SETTINGS, UNITS, Draft, checked, total_budget
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown

MOST_BYTES = 1_000_000
_MOST_DOTS = 50  # in a line: the time that tomllib takes for a dotted name grows with the square of its parts
_TOML_KEYS = (*SETTINGS, "levels", "level_shares", "bypassed")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SEMICOLONS = re.compile(r'\s*"?level"?\s*;', re.IGNORECASE)


def read_budget(path: Path | str) -> Release:
    """The release that a budget file describes, named after the file; the suffix says whether it is TOML or CSV.

    A query of budget rho gets noise of sigma2 = 1 / rho.
    Guarantee: every decimal and fraction is read exactly; a file that is not understood is refused in one sentence.
    """
    with Path(path).open("rb") as file:
        return parse_budget(file.read(MOST_BYTES + 1), Path(path).name)


def parse_budget(content: bytes, file_name: str) -> Release:
    """`read_budget` for a file that is already in memory.

    >>> design = parse_budget(b"level,sex,age\\nUS,0.1,\\nState,1/3,2e-1\\n", "small.csv")
    >>> design.name, design.table["State"]["sex"], design.allocations[1].rho
    ('small', Fraction(1, 3), Fraction(19, 30))
    """
    file = PurePath(file_name)
    if file.suffix.lower() not in (".toml", ".csv"):
        raise InvalidInputError(f"A budget file must end in .toml or .csv. Found {shown(file.name)}; rename it.")
    if len(content) > MOST_BYTES:
        raise InvalidInputError(
            f"A budget file must have at most {MOST_BYTES} bytes. Found more in {shown(file.name)}."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(
            f"A budget file must be encoded in UTF-8. Found other bytes in line {line} of {shown(file.name)}; "
            "save it as UTF-8."
        ) from None
    draft = _toml_draft(text) if file.suffix.lower() == ".toml" else _csv_draft(text)
    return checked(draft, file.stem, file.name)


def budget_toml(release: Release) -> str:
    """The text of a TOML budget file, every budget an exact fraction.

    Guarantee: reading the text gives the table and the bypassed sets again, in the same order; what cannot be written so is
    refused.

    >>> from exactdp.census.releases import release
    >>> print(budget_toml(release("dhc-persons-us")).splitlines()[5:7])
    ['[levels.US]', '"age_18_64_116 * relgq_4_groups" = "73/10000"']
    """
    lines = [
        f"title = {_quoted(release.title)}",
        f"source = {_quoted(release.source)}",
        'unit = "rho"',
        f'total_rho = "{total_budget(release.table)}"',
    ]
    for level, queries in release.table.items():
        lines += ["", f"[levels.{_key(level)}]", *(f'{_key(query)} = "{rho}"' for query, rho in queries.items())]
    lines += ["", "[bypassed]"]
    lines += [f"{number} = [{', '.join(map(_quoted, levels))}]" for number, levels in release.bypassed.items()]
    text = "\n".join(lines) + "\n"
    if _contents(checked(_toml_draft(text), release.name, release.source)) != _contents(release):
        raise InvalidInputError(
            "A release can be written if its names are printable, without white space at the ends or twice in a row. "
            f"Found others in {shown(release.name)}."
        )
    return text


def _contents(release: Release) -> tuple[object, ...]:
    return [(level, list(queries.items())) for level, queries in release.table.items()], list(release.bypassed.items())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # the escapes of JSON are escapes of TOML


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _toml_draft(text: str) -> Draft:
    record = _toml(text)
    unknown = [key for key in record if key not in _TOML_KEYS]
    if unknown:
        raise InvalidInputError(
            f"A key of a budget file must be one of {', '.join(_TOML_KEYS)}. Found {shown(unknown[0]) or 'an empty one'}."
        )
    levels = []
    for level, queries in _table(record, "levels").items():
        if not isinstance(queries, dict):
            raise InvalidInputError(
                f"A level must be a table of queries, such as [levels.US]. Found {shown(queries)} for {shown(level)}."
            )
        for query, value in queries.items():
            if isinstance(value, dict):
                raise InvalidInputError(
                    f"A query must have one number. Found a table in level {shown(level)}, query {shown(query)}; "
                    "put a name with a dot in quotation marks."
                )
        levels.append((level, list(queries.items())))
    bypassed = []
    for number, names in _table(record, "bypassed").items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InvalidInputError(
                f'Bypassed levels must be a list of names, such as ["County"]. Found {shown(names)} for {shown(number)}.'
            )
        bypassed.append((number, names))
    settings = {key: record[key] for key in SETTINGS if key in record}
    level_shares = list(_table(record, "level_shares").items()) if "level_shares" in record else None
    return Draft(settings, levels, bypassed, level_shares)


def _toml(text: str) -> dict[str, object]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS:
            raise InvalidInputError(
                f"A line must have at most {_MOST_DOTS} dots. Found more in line {number}; write each budget in a line."
            )
    try:
        return tomllib.loads(text, parse_float=lambda number: number.replace("_", ""))
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).rpartition(" (at ")
        raise InvalidInputError(
            f"The file is not valid TOML at {where.removesuffix(')')}: {shown(what)}. "
            'Put fractions and names with spaces in quotation marks, as in "age * sex" = "73/10000".'
        ) from None
    except (ValueError, RecursionError):
        raise InvalidInputError(
            "The file is not the TOML of a budget. Found an impossible date, a number of thousands of digits or lists "
            "within lists; remove it."
        ) from None


def _table(record: Mapping[str, object], name: str) -> dict[str, object]:
    table = record.get(name, {})
    if not isinstance(table, dict):
        raise InvalidInputError(f"{name} must be a table, such as [{name}]. Found {shown(table) or 'an empty text'}.")
    return table


def _csv_draft(text: str) -> Draft:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    settings: dict[str, object] = {}
    bypassed: list[tuple[str, list[str]]] = []
    start = 0
    while start < len(lines) and (not lines[start].strip(" \t,;") or _remark(lines[start]) is not None):
        _read_remark(_remark(lines[start]) or "#", start + 1, settings, bypassed)
        start += 1
    rows = _rows(lines, start)
    header = next(rows, (0, [""]))[1]
    while len(header) > 1 and not header[-1]:
        header.pop()
    if header[0].lower() != "level":
        raise InvalidInputError(
            "The first line of a CSV budget must be a header such as level,sex,age or level,query,rho. "
            f"Found {shown(','.join(header)) or 'nothing'}."
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
    """The levels of a file with one budget in a row; the header's unit is put into the settings."""
    unit = header[2].lower() if len(header) == 3 else ""
    if unit not in UNITS:
        raise InvalidInputError(
            f"The header must be level,query and then one of {', '.join(UNITS)}. Found {shown(','.join(header))}."
        )
    if str(settings.setdefault("unit", unit)).lower() != unit:
        raise InvalidInputError(
            f"The unit must be the same above the header and in it. Found {shown(settings['unit'])} and {unit}."
        )
    levels: dict[str, list[tuple[str, object]]] = {}
    for level, query, value in _even(rows, 3):
        levels.setdefault(" ".join(level.split()), []).append((query, value))
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
    key, _, rest = " ".join(written.split()).partition(" ")
    if colon and key == "bypassed" and rest:
        bypassed.append((rest, [name for name in value.split(";") if name.strip()]))
    elif not colon or key not in SETTINGS or rest:
        raise InvalidInputError(
            f"A line that starts with # must say one of {', '.join(SETTINGS)} or bypassed and a number, then a colon. "
            f"Found {shown(line)} in line {number}; start a remark with ##."
        )
    elif key in settings:
        raise InvalidInputError(f"A setting must be given once. Found {key} again in line {number}.")
    else:
        settings[key] = value.strip()


def _rows(lines: Sequence[str], start: int) -> Iterator[tuple[int, list[str]]]:
    """The rows from line `start` on, each with its line number; empty rows and remarks are left out."""
    delimiter = ";" if start < len(lines) and _SEMICOLONS.match(lines[start]) else ","
    ended = (f"{line}\n" for line in lines[start:])
    reader = csv.reader(ended, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
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
            raise InvalidInputError(
                f"Settings must stand above the header. Found {shown(row[0])} in line {number}; move it up."
            )
        if len(row) < width or any(row[width:]):
            raise InvalidInputError(
                f"Line {number} must have {width} columns, as the header has. Found {len(row)}; "
                "put a name with a comma in quotation marks."
            )
        yield row[:width]
