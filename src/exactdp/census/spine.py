"""The geographic spine and its bypass rule.

A directed path runs from the top level to the bottom one. Where a level is bypassed, its whole budget goes to the nearest level
above that is not bypassed and is spread over that level's queries in proportion to what they had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.errors import InvalidInputError

Table = Mapping[str, Mapping[str, Fraction]]
"""Level (top first) -> query -> rho."""


@steady
def bypass(table: Table, bypassed: Collection[str]) -> dict[str, dict[str, Fraction]]:
    """The table of a path on which some levels are bypassed; those levels are left out of the result.

    Guarantee: exact fractions, and the total is unchanged.
    """
    unknown = [level for level in bypassed if level not in table]
    if unknown:
        raise InvalidInputError(f"A bypassed level must be one of {', '.join(table)}. Found {unknown[0]}.")
    received: dict[str, Fraction] = {}
    home: str | None = None
    for level, queries in table.items():
        if level not in bypassed:
            home = level
            received[home] = Fraction(0)
        elif home is None:
            raise InvalidInputError(f"The top level cannot be bypassed: nothing above {level} could take its budget.")
        else:
            received[home] += _total(queries)
    result = {}
    for level, extra in received.items():
        factor = 1 + extra / _total(table[level]) if extra else Fraction(1)
        times = {rho: rho * factor for rho in set(table[level].values())}  # many queries have the same budget
        result[level] = {query: times[rho] for query, rho in table[level].items()}
    return result


def _total(queries: Mapping[str, Fraction]) -> Fraction:
    """The sum of a level's budgets, many of which are the same."""
    return sum((rho * count for rho, count in Counter(queries.values()).items()), Fraction(0))


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
