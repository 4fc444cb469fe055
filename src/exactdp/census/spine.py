"""The geographic spine and its bypass rule.

A directed path runs from the top level to the bottom one. Where a level is bypassed, its whole budget goes to the nearest level
above that is not bypassed and is spread over that level's queries in proportion to what they had.
"""

from __future__ import annotations

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
            received[home] += sum(queries.values(), Fraction(0))
    result = {}
    for level, extra in received.items():
        own = sum(table[level].values(), Fraction(0))
        result[level] = {query: rho + extra * rho / own for query, rho in table[level].items()}
    return result
