"""The geographic spine and its bypass rule.

A directed path runs from the top level to the bottom one. Where a level is bypassed, its whole budget goes to the nearest level
above that is not bypassed and is spread over that level's queries in proportion to what they had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.errors import InvalidInputError
from exactdp.numbers import total

Table = Mapping[str, Mapping[str, Fraction]]
"""Level (top first) -> query -> rho."""


@steady
def bypass(table: Table, bypassed: Collection[str]) -> dict[str, dict[str, Fraction]]:
    """The table of a path on which some levels are bypassed; those levels are left out of the result.

    Guarantee: exact fractions, and the total is unchanged.
    """
    return bypass_each(table, [bypassed])[0]


@steady
def bypass_each(table: Table, sets: Iterable[Collection[str]]) -> list[dict[str, dict[str, Fraction]]]:
    """The same for several paths; a level that takes over from the same ones on several of them is there once."""
    totals = {level: total(queries.values()) for level, queries in table.items()}
    known: dict[tuple[str, ...], dict[str, Fraction]] = {}
    result = []
    for bypassed in sets:
        path = {}
        for home, *taken in _homes(table, bypassed):
            if (home, *taken) not in known:
                extra = sum((totals[level] for level in taken), Fraction(0))
                known[home, *taken] = _spread(table[home], 1 + extra / totals[home] if extra else Fraction(1))
            path[home] = known[home, *taken]
        result.append(path)
    return result


def _homes(table: Table, bypassed: Collection[str]) -> list[list[str]]:
    """The levels that are not bypassed, each with those bypassed below it."""
    unknown = [level for level in bypassed if level not in table]
    if unknown:
        raise InvalidInputError(f"A bypassed level must be one of {', '.join(table)}. Found {unknown[0]}.")
    homes: list[list[str]] = []
    for level in table:
        if level not in bypassed:
            homes.append([level])
        elif not homes:
            raise InvalidInputError(f"The top level cannot be bypassed: nothing above {level} could take its budget.")
        else:
            homes[-1].append(level)
    return homes


def _spread(queries: Mapping[str, Fraction], factor: Fraction) -> dict[str, Fraction]:
    if factor == 1:
        return dict(queries)
    times = {rho: rho * factor for rho in set(queries.values())}  # many queries have the same budget
    return {query: times[rho] for query, rho in queries.items()}


@steady
def by_table(
    table: Table, bypassed: Collection[str], slopes: Table, sizes: bool = False
) -> dict[str, dict[str, Fraction]]:
    """Slopes by the budgets of a path turned into slopes by those of the table: the chain rule of `bypass`, in exact fractions.

    A query q of a level that takes over `extra` from those bypassed below has the budget b_q (1 + extra / own) on the path, own
    the level's total. So b_q' moves it by 1 + extra / own if q' is q, less b_q extra / own^2 in any case, and a budget of a level
    bypassed below moves it by b_q / own (docs/theory/derivatives.md, Theorem 3). With `sizes` all of these count as positive, for
    errors.
    """
    totals = {level: sum(queries.values(), Fraction(0)) for level, queries in table.items()}
    home, above, extra = {}, "", dict.fromkeys(bypass(table, bypassed), Fraction(0))
    for level in table:
        if level in extra:
            above = level
        else:
            extra[above] += totals[level]
        home[level] = above
    means = {
        level: sum((rho * slopes[level][query] for query, rho in table[level].items()), Fraction(0)) / totals[level]
        for level in extra
    }
    result = {}
    for level, queries in table.items():
        if home[level] != level:
            result[level] = dict.fromkeys(queries, means[home[level]])
            continue
        share = extra[level] / totals[level]
        lost = share * means[level] * (-1 if sizes else 1)
        result[level] = {query: slopes[level][query] * (1 + share) - lost for query in queries}
    return result
