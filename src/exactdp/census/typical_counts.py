"""Counts that people look up at a level of the 2020 Census: people by area, on average. A beginning, for the user to edit."""

from __future__ import annotations

from exactdp.census.releases import Release

PEOPLE = 331_449_281
"""Residents of the 50 states and the District of Columbia on 1 April 2020."""
AREAS = {"State": 51, "County": 3_143, "Block": 8_132_968}
"""How many areas there are of the levels that are also published. The other levels of the spine are not; nobody doubts the US."""
SOURCE = (
    "People by area on average: 331,449,281 residents (2020 Census apportionment results) by the number of states, counties and "
    "blocks (2020 Census geographic entity tallies, census.gov)."
)
_OF_PEOPLE = ("dhc-persons-us", "pl94-persons-us")


def typical_counts(release: Release) -> dict[str, int]:
    """A typical count of each level for which there is a source."""
    known = AREAS if release.name in _OF_PEOPLE else {}
    return {level: round(PEOPLE / areas) for level, areas in known.items() if level in release.table}
