"""A design of one's own: from what a budget file says to a release, every number exact and every slip named."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from exactdp.census.releases import Release
from exactdp.census.spine import Table
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import LARGEST_SIGMA2, SMALLEST_SIGMA2
from exactdp.numbers import rational, shown

SETTINGS = ("title", "source", "unit", "total_rho")
UNITS = ("rho", "sigma2", "share")
MOST_BYTES = 1_000_000
MOST_CELLS = 10_000
MOST_BYPASSED = 1_000
RESERVED = {*SETTINGS, *UNITS, "level", "levels", "level_shares", "query", "bypassed"}
_MOST_BITS = 6_310  # of a common denominator: 1,900 digits, so that every budget can be written in fewer than 4,000
_LIMITS = {
    "rho": (1 / LARGEST_SIGMA2, 1 / SMALLEST_SIGMA2),
    "sigma2": (SMALLEST_SIGMA2, LARGEST_SIGMA2),
    "share": (SMALLEST_SIGMA2 / LARGEST_SIGMA2, Fraction(1)),
}
NUMBER = re.compile(r"[+-]?([0-9]+/[0-9]+|([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)")
BYPASS_NUMBER = re.compile(r"0{0,5}[1-9][0-9]{0,5}")


@dataclass(frozen=True)
class Draft:
    """What a budget file says, unchecked: names and numbers as they were written, in the order of the file."""

    settings: Mapping[str, object]
    levels: Sequence[tuple[str, Sequence[tuple[str, object]]]]
    bypassed: Sequence[tuple[str, Sequence[str]]]
    level_shares: Sequence[tuple[str, object]] | None = None


def checked(draft: Draft, name: str, source: str) -> Release:
    """The release that a draft describes; `name` and `source` stand in for a title and a source that it does not give.

    Guarantee: exact fractions; each budget, also after any of the bypassed sets, is one that DiscreteGaussian accepts.
    """
    unit = str(draft.settings.get("unit", "rho")).strip().lower()
    if unit not in UNITS:
        raise InvalidInputError(f"unit must be one of {', '.join(UNITS)}. Found {shown(unit) or 'nothing'}.")
    cells = _cells(draft)
    total = _number(draft.settings["total_rho"], "total_rho", "rho") if "total_rho" in draft.settings else None
    if unit == "share":
        table = _from_shares(cells, total, draft.level_shares)
    elif draft.level_shares is not None:
        raise InvalidInputError(f'level_shares go with unit = "share". Found the unit {unit}; remove one of the two.')
    else:
        table = _from_budgets(cells, unit)
    found = total_budget(table)
    if total is not None and total != found:
        raise InvalidInputError(
            f"total_rho must equal the sum of the budgets, {_about(found)}. Found {shown(total)}; "
            "correct the budgets, or leave total_rho out."
        )
    title = _text(draft.settings.get("title", ""), "title") or name
    given = _text(draft.settings.get("source", ""), "source") or source
    return Release(name, title, given, table, _bypassed(draft.bypassed, table))


def contents(release: Release) -> tuple[object, ...]:
    """What a budget file says of a release beside its texts: the table and the bypassed sets, in their order."""
    return [(level, list(queries.items())) for level, queries in release.table.items()], list(release.bypassed.items())


def total_budget(table: Table) -> Fraction:
    """The sum of all budgets, refused where it is above what one query may have.

    A bypassed level leaves the total as it is, so that no budget of any path can be above it.
    """
    total = _exact_sum(rho for queries in table.values() for rho in queries.values())
    most = _LIMITS["rho"][1]
    if total > most:
        raise InvalidInputError(f"The budgets must sum to at most {most}, in rho. Found {_about(total)}.")
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
            result[level][_fresh(query, "Query", result[level], f" in level {shown(level)}")] = value
    return result


def _from_budgets(cells: Mapping[str, Mapping[str, object]], unit: str) -> Table:
    def rho(value: object, level: str, query: str) -> Fraction:
        try:
            number = _number(value, unit, unit, _place(level, query))
        except InvalidInputError as error:
            error.where = {"level": level, "query": query}
            raise
        return 1 / number if unit == "sigma2" else number

    return {
        level: {query: rho(value, level, query) for query, value in queries.items()} for level, queries in cells.items()
    }


def _from_shares(
    cells: Mapping[str, Mapping[str, object]], total: Fraction | None, level_shares: Sequence[tuple[str, object]] | None
) -> Table:
    if total is None:
        raise InvalidInputError("Shares need the budget that they are shares of. Found no total_rho; add it.")
    shares = {
        level: {query: _number(value, "share", "share", _place(level, query)) for query, value in queries.items()}
        for level, queries in cells.items()
    }
    if level_shares is None:
        _must_be_one((share for queries in shares.values() for share in queries.values()), "The shares")
        of_level = dict.fromkeys(shares, Fraction(1))
    else:
        of_level = _level_shares(level_shares, shares)
        for level, queries in shares.items():
            _must_be_one(queries.values(), f"The shares within level {shown(level)}")
    table = {
        level: {query: total * of_level[level] * share for query, share in queries.items()}
        for level, queries in shares.items()
    }
    for level, budgets in table.items():
        for query, rho in budgets.items():
            _within(rho, rho, "share times total_rho", "rho", _place(level, query))
    return table


def _level_shares(given: Sequence[tuple[str, object]], levels: Collection[str]) -> dict[str, Fraction]:
    result: dict[str, Fraction] = {}
    for written, value in given:
        level = _fresh(_name(written, "level"), "Level", result, " in level_shares")
        if level not in levels:
            raise InvalidInputError(f"A level in level_shares must be one of {_listed(levels)}. Found {shown(level)}.")
        result[level] = _number(value, "level share", "share", f" in level {shown(level)}")
    missing = [level for level in levels if level not in result]
    if missing:
        raise InvalidInputError(f"level_shares must name every level. Found no share of {shown(missing[0])}; add it.")
    _must_be_one(result.values(), "The level shares")
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
    return result or {1: ()}


def _number(value: object, what: str, limits: str, place: str = "") -> Fraction:
    """The exact number that was written, refused if it is none or outside the limits."""
    if isinstance(value, str):
        value = value.strip()
    if type(value) is not int and not (isinstance(value, str) and NUMBER.fullmatch(value)):
        raise InvalidInputError(
            f"{what} must be a number such as 0.0073, 73/10000 or 1e-3. Found {shown(value) or 'nothing'}{place}."
        )
    try:
        number = rational(value, what)
    except InvalidInputError as error:
        raise InvalidInputError(f"{str(error).removesuffix('.')}{place}.") from None
    if number <= 0:
        raise InvalidInputError(f"{what} must be positive. Found {shown(value)}{place}.")
    return _within(number, value, what, limits, place)


def _within(number: Fraction, written: object, what: str, limits: str, place: str) -> Fraction:
    low, high = _LIMITS[limits]
    if not low <= number <= high:
        raise InvalidInputError(
            f"{what} must be between {float(low):g} and {float(high):g}. Found {shown(written)}{place}."
        )
    return number


def _must_be_one(shares: Iterable[Fraction], what: str) -> None:
    total = _exact_sum(shares)
    if total != 1:
        gap = f"{float(abs(total - 1)):.3g} too {'much' if total > 1 else 'little'}"
        raise InvalidInputError(
            f"{what} must sum to exactly 1. Found {_about(total)}, which is {gap}; write thirds and the like as 1/3."
        )


def _exact_sum(numbers: Iterable[Fraction]) -> Fraction:
    """The sum, refused where the common denominator is too long to work with."""
    terms, common = tuple(numbers), 1
    for term in terms:
        common = math.lcm(common, term.denominator)
        if common.bit_length() > _MOST_BITS:
            raise InvalidInputError(
                "The numbers must have a common denominator of at most 1,900 digits. Found a longer one; round them."
            )
    return Fraction(sum(term.numerator * (common // term.denominator) for term in terms), common)


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
    result = single_spaced(written) if isinstance(written, str) else None
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


def _about(value: Fraction) -> str:
    """The fraction and what it is about as a decimal."""
    return f"{shown(value)} (about {float(value):.6g})" if value.denominator > 1 else shown(value)
