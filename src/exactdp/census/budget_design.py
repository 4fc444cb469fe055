"""A design of one's own: from what a budget file says to a release, every number exact and every slip named."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count

from exactdp.census.budget_cells import WrittenQuery, read_query
from exactdp.census.budget_numbers import LIMITS, NUMBER, about, exact_sum, must_be_one, number, within
from exactdp.census.releases import RELATIONS, Release
from exactdp.census.spine import Table
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown

SETTINGS = ("title", "source", "unit_of_privacy", "relation", "unit", "total_rho", "zcdp_rho", "full_path")
UNITS = ("rho", "sigma2", "share")
MOST_BYTES = 1_000_000
MOST_CELLS = 10_000
MOST_BYPASSED = 1_000
RESERVED = {"title", "source", "unit", "total_rho", *UNITS, "level", "levels", "level_shares", "query", "bypassed"}
BYPASS_NUMBER = re.compile(r"0{0,5}[1-9][0-9]{0,5}")


@dataclass(frozen=True)
class Draft:
    """What a budget file says, unchecked: names and numbers as they were written, in the order of the file.

    A query has a number, or a mapping such as `read_query` takes.
    """

    settings: Mapping[str, object]
    levels: Sequence[tuple[str, Sequence[tuple[str, object]]]]
    bypassed: Sequence[tuple[str, Sequence[str]]]
    level_shares: Sequence[tuple[str, object]] | None = None


def checked(draft: Draft, name: str, source: str) -> Release:
    """The release that a draft describes; `name` and `source` stand in for a title and a source that it does not give.

    Guarantee: exact fractions; each budget, also after any of the bypassed sets, gives noise that there is.
    """
    unit = _word(draft.settings, "unit", UNITS)
    cells = _cells(draft)
    total = number(draft.settings["total_rho"], "total_rho", "rho") if "total_rho" in draft.settings else None
    if unit != "share" and draft.level_shares is not None:
        raise InvalidInputError(f'level_shares go with unit = "share". Found the unit {unit}; remove one of the two.')
    queries = _queries(cells, unit)
    table: Table = {level: {query: found.amount for query, found in own.items()} for level, own in queries.items()}
    if unit == "share":
        table = _from_shares(table, total, draft.level_shares)
    found = total_budget(table)
    if total is not None and total != found:
        raise InvalidInputError(
            f"total_rho must equal the sum of the budgets, {about(found)}. Found {shown(total)}; "
            "correct the budgets, or leave total_rho out."
        )
    title = _text(draft.settings.get("title", ""), "title") or name
    given = _text(draft.settings.get("source", ""), "source") or source
    paths = with_full_path(_bypassed(draft.bypassed, table), _has_full_path(draft.settings))
    noise = {(level, query): found.noise for level, own in queries.items() for query, found in own.items()}
    relation, unit_of_privacy = _word(draft.settings, "relation", RELATIONS), draft.settings.get("unit_of_privacy", "")
    who = _text(unit_of_privacy, "unit_of_privacy", 200)
    result = Release(name, title, given, table, paths, relation, noise, who)
    result.check_noise()
    if "zcdp_rho" in draft.settings:
        _must_be_rho(number(draft.settings["zcdp_rho"], "zcdp_rho", "zcdp_rho"), result.rho)
    return result


def _must_be_rho(stated: Fraction, found: Fraction) -> None:
    if stated != found:
        raise InvalidInputError(
            f"zcdp_rho must be zCDP's rho of the worst neighbours, {about(found)}. Found {shown(stated)}; "
            "correct the budgets, sensitivities or cells, or leave zcdp_rho out."
        )


def _word(settings: Mapping[str, object], key: str, words: Sequence[str]) -> str:
    """One of the words, the first unless the file says otherwise."""
    found = str(settings.get(key, words[0])).strip().lower()
    if found not in words:
        raise InvalidInputError(f"{key} must be one of {', '.join(words)}. Found {shown(found) or 'nothing'}.")
    return found


def _has_full_path(settings: Mapping[str, object]) -> bool:
    given = settings.get("full_path", True)
    written = str(given).strip().lower() if isinstance(given, bool | str) else ""
    if written not in ("true", "false"):
        raise InvalidInputError(
            f"full_path must be true, or false where no record takes the path that bypasses nothing. Found {shown(given)}."
        )
    return written == "true"


def with_full_path(given: Mapping[int, tuple[str, ...]], is_taken: bool) -> Mapping[int, tuple[str, ...]]:
    """The numbered sets, and with them the empty one unless no record takes the full path; it gets the least free number."""
    has_it = () in given.values()
    if is_taken:
        free = next(number for number in count(1) if number not in given)
        return given if has_it else {**given, free: ()}
    if has_it or not given:
        raise InvalidInputError(
            "full_path = false says that no record takes the path that bypasses nothing. "
            f"Found {'that path among the bypassed sets' if has_it else 'no other path'}; remove full_path."
        )
    return given


def contents(release: Release) -> tuple[object, ...]:
    """What a budget file says of a release beside its texts: table, bypassed sets, neighbours and noise, in their order."""
    table = [(level, list(queries.items())) for level, queries in release.table.items()]
    noise = list(release.noise.items())
    return table, list(release.bypassed.items()), release.relation, noise, release.unit_of_privacy


def total_budget(table: Table) -> Fraction:
    """The sum of all budgets, refused where it is above what one query may have.

    A bypassed level leaves the total as it is, so that no budget of any path can be above it.
    """
    total = exact_sum(rho for queries in table.values() for rho in queries.values())
    most = LIMITS["rho"][1]
    if total > most:
        raise InvalidInputError(f"The budgets must sum to at most {most}, in rho. Found {about(total)}.")
    return total


def _cells(draft: Draft) -> dict[str, dict[str, object]]:
    """Level -> query -> the number as written, with the names checked."""
    if not draft.levels:
        raise InvalidInputError(
            "A budget file must have at least one level. Found none; add a table [levels.US] or a row."
        )
    count = sum(len(queries) for _, queries in draft.levels)
    if count > MOST_CELLS:
        raise InvalidInputError(f"A budget file must have at most {MOST_CELLS} budgets. Found {count}.")
    result: dict[str, dict[str, object]] = {}
    for given, queries in draft.levels:
        level = _fresh(_name(given, "level"), "Level", result)
        if not queries:
            raise InvalidInputError(
                f"A level must have at least one query. Found none in level {shown(level)}; give it one, or remove it."
            )
        result[level] = {}
        for written, value in queries:
            query = _name(written, "query")
            if query.lower() in RESERVED:
                raise InvalidInputError(
                    f"A query cannot be called {query}, a word of the format, as in level {shown(level)}. "
                    "Rename it; if it is a setting, put it above the first level."
                )
            if query.lower() in SETTINGS and isinstance(value, bool | str) and not NUMBER.fullmatch(str(value).strip()):
                raise InvalidInputError(
                    f"{query} must stand above the first level. Found it in level {shown(level)}; move it up."
                )
            result[level][_fresh(query, "Query", result[level], f" in level {shown(level)}")] = value
    return result


def _queries(cells: Mapping[str, Mapping[str, object]], unit: str) -> dict[str, dict[str, WrittenQuery]]:
    def read(value: object, level: str, query: str) -> WrittenQuery:
        if type(value) is str:  # most are, and most were read before
            with suppress(InvalidInputError):
                return _plain_query(value, unit)
        try:
            return read_query(value, unit, _place(level, query))
        except InvalidInputError as error:
            error.where = {"level": level, "query": query}
            raise

    return {
        level: {query: read(value, level, query) for query, value in queries.items()}
        for level, queries in cells.items()
    }


@lru_cache(maxsize=10_000)
def _plain_query(written: str, unit: str) -> WrittenQuery:
    """A query of which a number is all that is said, kept for the next design: editing changes few of them."""
    return read_query(written, unit, "")


def _from_shares(shares: Table, total: Fraction | None, level_shares: Sequence[tuple[str, object]] | None) -> Table:
    if total is None:
        raise InvalidInputError("Shares need the budget that they are shares of. Found no total_rho; add it.")
    if level_shares is None:
        must_be_one((share for queries in shares.values() for share in queries.values()), "The shares")
        of_level = dict.fromkeys(shares, Fraction(1))
    else:
        of_level = _level_shares(level_shares, shares)
        for level, queries in shares.items():
            must_be_one(queries.values(), f"The shares within level {shown(level)}")
    table = {
        level: {query: total * of_level[level] * share for query, share in queries.items()}
        for level, queries in shares.items()
    }
    for level, budgets in table.items():
        for query, rho in budgets.items():
            within(rho, rho, "share times total_rho", "rho", _place(level, query))
    return table


def _level_shares(given: Sequence[tuple[str, object]], levels: Collection[str]) -> dict[str, Fraction]:
    result: dict[str, Fraction] = {}
    for written, value in given:
        level = _fresh(_name(written, "level"), "Level", result, " in level_shares")
        if level not in levels:
            raise InvalidInputError(f"A level in level_shares must be one of {_listed(levels)}. Found {shown(level)}.")
        result[level] = number(value, "level share", "share", f" in level {shown(level)}")
    missing = [level for level in levels if level not in result]
    if missing:
        raise InvalidInputError(f"level_shares must name every level. Found no share of {shown(missing[0])}; add it.")
    must_be_one(result.values(), "The level shares")
    return result


def _bypassed(given: Sequence[tuple[str, Sequence[str]]], levels: Collection[str]) -> dict[int, tuple[str, ...]]:
    if len(given) > MOST_BYPASSED:
        raise InvalidInputError(f"There must be at most {MOST_BYPASSED} sets of bypassed levels. Found {len(given)}.")
    result: dict[int, tuple[str, ...]] = {}
    top = next(iter(levels))
    for written, names in given:
        if not BYPASS_NUMBER.fullmatch(written.strip()):
            raise InvalidInputError(
                "The number of a set of bypassed levels must be a whole number from 1 to 999999. "
                f"Found {shown(written) or 'nothing'}."
            )
        number = int(written)
        if number in result:
            raise InvalidInputError(f"A set of bypassed levels must have a number of its own. Found {number} twice.")
        chosen: dict[str, None] = {}
        for level in map(single_spaced, names):
            if level not in levels:
                raise InvalidInputError(
                    f"A bypassed level must be one of {_listed(levels)}. Found {shown(level) or 'nothing'} in set {number}."
                )
            if level == top:
                raise InvalidInputError(
                    f"The top level cannot be bypassed, for no level above could take its budget. "
                    f"Found {shown(top)} in set {number}; remove it."
                )
            chosen[_fresh(level, "Level", chosen, f" in the bypassed set {number}")] = None
        result[number] = tuple(chosen)
    return result


def _name(written: str, kind: str) -> str:
    result = _text(written, f"The name of a {kind}", 200)
    if not result:
        raise InvalidInputError(f"The name of a {kind} must not be empty. Found an empty one; name it.")
    return result


def single_spaced(name: str) -> str:
    """The name with any run of white space as one space, and none at the ends."""
    return " ".join(name.split())


def _text(written: object, what: str, most: int = 1_000) -> str:
    """One line of printable text, single spaced."""
    result = single_spaced(written) if type(written) is str else None
    if result is None or len(result) > most or not result.isprintable():
        raise InvalidInputError(
            f"{what} must be a printable text of at most {most} characters. Found {shown(ascii(written))}."
        )
    return result


def _fresh(name: str, kind: str, known: Collection[str], place: str = "") -> str:
    if name in known:
        raise InvalidInputError(f"{kind} names must differ. Found {shown(name)} twice{place}.")
    return name


def _place(level: str, query: str) -> str:
    return f" in level {shown(level)}, query {shown(query)}"


def _listed(levels: Collection[str]) -> str:
    names = [shown(level) for level in levels]
    return ", ".join(names if len(names) <= 20 else [*names[:19], "..."])
