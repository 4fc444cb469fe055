"""Budget files: a design of one's own, written as TOML, CSV or JSON, read as the same object as a built-in release.

TOML: the settings (`SETTINGS`), then a table `[levels.NAME]` of budgets for each level, top first, then `[level_shares]` and
`[bypassed]`, all but the levels optional. JSON says the same with the same names: see budget_json. CSV: see budget_csv.
"""

from __future__ import annotations

import json
import re
import tomllib
from fractions import Fraction
from pathlib import Path, PurePath

from exactdp.arithmetic_state import steady
from exactdp.census.budget_cells import touched
from exactdp.census.budget_csv import csv_draft
from exactdp.census.budget_design import MOST_BYTES, checked, contents, total_budget
from exactdp.census.budget_json import json_record
from exactdp.census.budget_record import WrittenNumber, record_draft
from exactdp.census.cell_noise import CellNoise
from exactdp.census.releases import Release
from exactdp.csv_text import decoded, refuse_spreadsheet
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import REPLACE
from exactdp.numbers import shown

_MOST_DOTS = 50  # in a line: the time that tomllib takes for a dotted name grows with the square of its parts
_SUFFIXES = (".toml", ".csv", ".json")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@steady
def read_budget(path: Path | str) -> Release:
    """The release that a budget file describes, named after the file; the suffix says whether it is TOML, CSV or JSON.

    A query of budget rho gets discrete Gaussian noise of sigma2 = 1 / rho unless its table says otherwise.
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
    refuse_spreadsheet(file.name, "A budget file")
    kind = file.suffix.lower()
    if kind not in _SUFFIXES:
        raise InvalidInputError(f"A budget file must end in .toml, .csv or .json. Found {shown(file.name)}; rename it.")
    if not file.stem.strip("."):  # the design is named after the file, and folders are named after the design
        raise InvalidInputError(
            f"A budget file must have a name before its ending. Found {shown(file.name)}; rename it."
        )
    if len(content) > MOST_BYTES:
        raise InvalidInputError(
            f"A budget file must have at most {MOST_BYTES} bytes. Found more in {shown(file.name)}."
        )
    text = decoded(content, f"The budget file {shown(file.name)}")
    draft = csv_draft(text) if kind == ".csv" else record_draft(_toml(text) if kind == ".toml" else json_record(text))
    return checked(draft, file.stem, file.name)


@steady
def budget_toml(release: Release) -> str:
    """The text of a TOML budget file, every budget an exact fraction.

    Guarantee: reading the text gives table, bypassed sets, neighbours and noise again, in the same order; what cannot be written
    so is refused.

    >>> from exactdp.census.built_in import release
    >>> print(budget_toml(release("dhc-persons-us")).splitlines()[6:8])
    ['[levels.US]', '"age_18_64_116 * relgq_4_groups" = "73/10000"']
    """
    lines = [
        f"title = {_quoted(release.title)}",
        f"source = {_quoted(release.source)}",
        *([f"unit_of_privacy = {_quoted(release.unit_of_privacy)}"] if release.unit_of_privacy else []),
        *([] if release.relation == REPLACE else [f"relation = {_quoted(release.relation)}"]),
        'unit = "rho"',
        f'total_rho = "{total_budget(release.table)}"',
        *([] if () in release.bypassed.values() else ["full_path = false"]),
    ]
    for level, queries in release.table.items():
        lines += ["", f"[levels.{_key(level)}]"]
        lines += [f"{_key(query)} = {_value(rho, release.noise.get((level, query)))}" for query, rho in queries.items()]
    lines += ["", "[bypassed]"]
    lines += [f"{number} = [{', '.join(map(_quoted, levels))}]" for number, levels in release.bypassed.items()]
    text = "\n".join(lines) + "\n"
    if contents(checked(record_draft(_toml(text)), release.name, release.source)) != contents(release):
        raise InvalidInputError(
            "A release can be written if its names are printable, without white space at the ends or twice in a row. "
            f"Found others in {shown(release.name)}."
        )
    return text


def _value(rho: Fraction, noise: CellNoise | None) -> str:
    """The number of a query, or its table where its noise is not the usual one."""
    if noise is None:
        return f'"{rho}"'
    parts = [f'rho = "{rho}"', *(f"{name} = {n}" for name, n in touched(noise))]
    return f"{{ {', '.join([*parts, f'noise = {_quoted(noise.kind)}'])} }}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # the escapes of JSON are escapes of TOML


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _toml(text: str) -> dict[str, object]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS:
            raise InvalidInputError(
                f"A line must have at most {_MOST_DOTS} dots. Found more in line {number}; write each budget in a line."
            )
    try:
        return tomllib.loads(text, parse_float=lambda number: WrittenNumber(number.replace("_", "")))
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
