"""Releases: a budget table, the allocations that its bypassed levels give, and the pairs of directed paths."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.census.grids import Grids
from exactdp.census.spine import Table, bypass
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_text, positive, shown

if TYPE_CHECKING:
    from exactdp.census.study import Study


@steady
@dataclass(frozen=True)
class Allocation:
    """The budget along one directed path: level -> query -> rho. A query of budget rho gets noise of sigma2 = 1 / rho."""

    _repr_html_ = repr_html

    number: int
    bypassed: tuple[str, ...]
    table: Table

    @property
    def rho(self) -> Fraction:
        """The total budget of the path."""
        return sum((rho for queries in self.table.values() for rho in queries.values()), Fraction(0))

    def mechanism(self, level: str, query: str) -> Mechanism:
        """What a query at a level releases on this path."""
        return DiscreteGaussian(1 / self.table[level][query])

    @cached_property
    def mechanisms(self) -> Mapping[DiscreteGaussian, int]:
        """The path's mechanisms and how often each occurs."""
        counts = Counter(rho for queries in self.table.values() for rho in queries.values())
        return MappingProxyType({DiscreteGaussian(1 / rho): n for rho, n in counts.items()})

    def __reduce__(self) -> tuple[type[Allocation], tuple[object, ...]]:  # without what was computed from it
        return Allocation, (self.number, self.bypassed, self.table)


@steady
@dataclass(frozen=True)
class Release:
    """One published product: its budget table and the numbered sets of levels that its directed paths bypass."""

    _repr_html_ = repr_html

    name: str
    title: str
    source: str
    table: Table
    bypassed: Mapping[int, tuple[str, ...]]

    @cached_property
    def allocations(self) -> Mapping[int, Allocation]:
        """The allocations by their published number; a release without published bypass sets has its full path, number 1."""
        return MappingProxyType(
            {number: Allocation(number, levels, bypass(self.table, levels)) for number, levels in self.bypassed.items()}
        )

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the budget and of the bypassed levels, the same on every machine."""
        rows = [
            [level, query, exact_text(rho)] for level, queries in self.table.items() for query, rho in queries.items()
        ]
        text = json.dumps([rows, [[n, list(levels)] for n, levels in sorted(self.bypassed.items())]])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def rho(self) -> Fraction:
        """The total budget of a path, the same for all of them; also zCDP's rho of a pair."""
        return sum((rho for queries in self.table.values() for rho in queries.values()), Fraction(0))

    @property
    def full_path(self) -> int:
        """The number of the allocation that bypasses nothing (or the fewest levels)."""
        return min(self.allocations, key=lambda n: (len(self.allocations[n].bypassed), n))

    @property
    def proxy(self) -> Composition:
        """The full path with itself: what the paper advises to tune with."""
        return self.pair(self.full_path, self.full_path)

    def scaled(self, factor: Number, level: str | None = None) -> Release:
        """The same design with every noise parameter sigma2, or those of one level, multiplied by `factor`."""
        by = positive(factor, "factor")
        table = {
            name: {query: rho / by if level in (None, name) else rho for query, rho in queries.items()}
            for name, queries in self.table.items()
        }
        for rho in {rho for queries in table.values() for rho in queries.values()}:
            DiscreteGaussian(1 / rho)  # refuses noise that there is not
        return replace(self, table=table)

    def account(
        self,
        epsilons: Iterable[Number] | None = None,
        deltas: Iterable[Number] | None = None,
        alphas: Iterable[Number] | None = None,
        jobs: int = 1,
        digits: int | None = None,
    ) -> Study:
        """Account for all pairs on the given grids; the study answers the overall guarantee for any argument.

        With `digits` (5 to 1000) the pairs' values are enclosed in balls instead of float64.
        """
        from exactdp.census.study import make_study

        return make_study(self, Grids.read(epsilons, deltas, alphas, digits), jobs)

    def __reduce__(self) -> tuple[type[Release], tuple[object, ...]]:
        return Release, (self.name, self.title, self.source, self.table, self.bypassed)

    def __hash__(self) -> int:
        return hash((self.name, self.fingerprint))

    def pair(self, k: int, other: int) -> Composition:
        """Two directed paths, one record replaced: the composition of both paths' mechanisms."""
        first, second = self._allocation(k), self._allocation(other)
        return Composition(Counter(first.mechanisms) + Counter(second.mechanisms))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All unordered pairs of allocations, those with themselves included."""
        numbers = sorted(self.allocations)
        return tuple((k, other) for i, k in enumerate(numbers) for other in numbers[i:])

    def _allocation(self, number: int) -> Allocation:
        if not isinstance(number, Hashable) or number not in self.allocations:
            known = sorted(self.allocations)
            raise InvalidInputError(
                f"{self.name} has the allocations {known[0]} to {known[-1]}. Found {shown(number)}."
                if len(known) > 1
                else f"{self.name} has only the allocation {known[0]}, its full path. Found {shown(number)}."
            )
        return self.allocations[number]


@cache
def _budgets() -> dict[str, Release]:
    text = resources.files("exactdp.census").joinpath("budgets.json").read_text(encoding="utf-8")
    record = json.loads(text)
    releases = {}
    for name, entry in record["releases"].items():
        table = {
            level: {query: Fraction(rho) for query, rho in queries.items()}
            for level, queries in entry["levels"].items()
        }
        bypassed = {int(number): tuple(levels) for number, levels in entry.get("bypassed", {"1": []}).items()}
        releases[name] = Release(name, entry["title"], record["source"], table, bypassed)
    return releases


@steady
def release_names() -> tuple[str, ...]:
    """The names that `release` takes."""
    return tuple(_budgets())


@steady
def release(name: str) -> Release:
    """A release of the 2020 Census by name.

    >>> release("dhc-persons-us").allocations[13].bypassed
    ()
    """
    if not isinstance(name, str) or name not in _budgets():
        raise InvalidInputError(f"A release is one of {', '.join(release_names())}. Found {shown(name)}.")
    return _budgets()[name]
