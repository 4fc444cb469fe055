"""A design before and after, cell by cell."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from exactdp.census.cell_noise import USUAL
from exactdp.census.margins import CountNoise, noise_of
from exactdp.census.releases import Release


class CellChange(NamedTuple):
    """One cell before and after."""

    level: str
    query: str
    budget_before: Fraction
    budget_after: Fraction
    before: CountNoise
    after: CountNoise


def cell_changes(before: Release, after: Release) -> tuple[CellChange, ...]:
    """Every cell before and after, on a path that bypasses nothing."""
    result = []
    for level, queries in before.table.items():
        for query, rho in queries.items():
            kind, then = before.noise.get((level, query), USUAL), after.table[level][query]
            result.append(CellChange(level, query, rho, then, noise_of(rho, kind), noise_of(then, kind)))
    return tuple(result)
