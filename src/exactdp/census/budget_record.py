"""A budget file as TOML or JSON reads: a record of settings, levels and bypassed sets, checked for its form."""

from __future__ import annotations

from collections.abc import Mapping

from exactdp.census.budget_design import SETTINGS, Draft
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown

FORMAT, VERSION = "exactdp design", 1
"""What a JSON file must carry, and a TOML file may."""
_HEADER = {"format": FORMAT, "version": VERSION}
_KEYS = (*_HEADER, *SETTINGS, "levels", "level_shares", "bypassed")


class WrittenNumber(str):
    """A number with a fraction or an exponent, as it was written: read exactly later, and no text."""

    __slots__ = ()


def record_draft(record: Mapping[str, object]) -> Draft:
    """What the record says, its numbers unchecked."""
    unknown = [key for key in record if key not in _KEYS]
    if unknown:
        raise InvalidInputError(
            f"A key of a budget file must be one of {', '.join(_KEYS)}. Found {shown(unknown[0]) or 'an empty one'}."
        )
    for key, value in _HEADER.items():
        found = record.get(key, value)
        if type(found) is not type(value) or found != value:
            raise InvalidInputError(f"The {key} of a budget file is {value}. Found {shown(found) or 'nothing'}.")
    levels = []
    for level, queries in _table(record, "levels").items():
        if not isinstance(queries, dict):
            raise InvalidInputError(
                f"A level must be a table of queries, such as [levels.US]. Found {shown(queries)} for {shown(level)}."
            )
        levels.append((level, list(queries.items())))
    bypassed = []
    for number, names in _table(record, "bypassed").items():
        if not isinstance(names, list) or not all(type(name) is str for name in names):
            raise InvalidInputError(
                f'Bypassed levels must be a list of names, such as ["County"]. Found {shown(names)} for {shown(number)}.'
            )
        bypassed.append((number, names))
    settings = {key: record[key] for key in SETTINGS if key in record}
    level_shares = list(_table(record, "level_shares").items()) if "level_shares" in record else None
    return Draft(settings, levels, bypassed, level_shares)


def _table(record: Mapping[str, object], name: str) -> dict[str, object]:
    table = record.get(name, {})
    if not isinstance(table, dict):
        raise InvalidInputError(f"{name} must be a table, such as [{name}]. Found {shown(table) or 'an empty text'}.")
    return table
