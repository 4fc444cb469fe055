"""Designs as JSON: what a TOML budget file says, with the same names, and a header that tells what it is.

    {"format": "exactdp design", "version": 1, "unit_of_privacy": "person", "levels": {"US": {"sex": {"sigma2": 10, "cells": 2}}}}

The built-in releases are written so (products/).
"""

from __future__ import annotations

import json
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.census.budget_cells import touched
from exactdp.census.budget_design import checked, contents, total_budget
from exactdp.census.budget_record import FORMAT, VERSION, WrittenNumber, record_draft
from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import REPLACE
from exactdp.numbers import shown
from exactdp.strict_json import load

_LONGEST_INTEGER = 25  # digits, as in other JSON: every whole number within the limits has fewer


def json_record(text: str) -> dict[str, object]:
    """The record of a JSON text that says that it is a design; decimals are taken down as they were written."""
    record = load(text, "The file is not the JSON of a budget", _LONGEST_INTEGER, doubles=True, written=WrittenNumber)
    if not isinstance(record, dict) or "format" not in record or "version" not in record:
        raise InvalidInputError(
            f'A budget file in JSON is an object with "format": "{FORMAT}" and "version": {VERSION}. Found another one.'
        )
    return record


def is_json_design(text: str) -> bool:
    """Whether a text is JSON that says that it is a design, of whatever version; other JSON has other readers."""
    try:
        return isinstance(record := json.loads(text), dict) and record.get("format") == FORMAT
    except (ValueError, RecursionError):
        return False


@steady
def budget_json(release: Release) -> str:
    """The text of a JSON budget file, every number exact; queries with other noise than usual are told by `sigma2` or `rho`.

    Guarantee: reading the text gives table, bypassed sets, neighbours, noise and unit of privacy again, in the same order; what
    cannot be written so is refused.

    >>> from exactdp.census.built_in import release
    >>> json.loads(budget_json(release("ddhc-b-us")))["levels"]["level 2, usa"]["T3"]
    {'sigma2': '5625/2401', 'cells': 9}
    """
    record: dict[str, object] = {"format": FORMAT, "version": VERSION, "title": release.title, "source": release.source}
    if release.unit_of_privacy:
        record["unit_of_privacy"] = release.unit_of_privacy
    if release.relation != REPLACE:
        record["relation"] = release.relation
    record["total_rho"] = str(total_budget(release.table))
    record["zcdp_rho"] = str(release.rho)
    if () not in release.bypassed.values():
        record["full_path"] = False
    record["levels"] = {
        level: {query: _written(rho, release.noise.get((level, query), USUAL)) for query, rho in queries.items()}
        for level, queries in release.table.items()
    }
    record["bypassed"] = {str(number): list(levels) for number, levels in release.bypassed.items()}
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    if contents(checked(record_draft(json_record(text)), release.name, release.source)) != contents(release):
        raise InvalidInputError(
            "A release can be written if its names are printable, without white space at the ends or twice in a row. "
            f"Found others in {shown(release.name)}."
        )
    return text


def _written(rho: Fraction, noise: CellNoise) -> str | dict[str, str | int]:
    if noise == USUAL:
        return str(rho)
    told: dict[str, str | int] = dict(touched(noise))
    if noise.kind != USUAL.kind:
        return {"rho": str(rho), **told, "noise": noise.kind}
    return {"sigma2": str(1 / rho), **told}
