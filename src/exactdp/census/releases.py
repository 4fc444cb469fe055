"""Releases: a budget table, the allocations that its bypassed levels give, and the pairs of directed paths."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.grids import Grids
from exactdp.census.spine import Table, bypass, bypass_each
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import ADD_REMOVE, REPLACE
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import LARGEST_RHO, Number, exact_text, positive, rational, shown, total

if TYPE_CHECKING:
    from exactdp.census.study import Study


RELATIONS = (REPLACE, ADD_REMOVE)
NO_RECORD = 0
"""Stands for the other path of a pair where neighbours have one record more or less."""

Noise = Mapping[tuple[str, str], CellNoise]
"""(level, query) -> its noise, for those that differ from `USUAL`."""


@steady
@dataclass(frozen=True)
class Allocation:
    """The budget along one directed path: level -> query -> rho, and the noise of those queries that have another than usual.

    A query of budget rho gets discrete Gaussian noise of sigma2 = 1 / rho unless `noise` says otherwise (see `CellNoise`).
    """

    _repr_html_ = repr_html

    number: int
    bypassed: tuple[str, ...]
    table: Table
    noise: Noise = field(default_factory=dict)

    @property
    def rho(self) -> Fraction:
        """The total budget of the path."""
        return _total(self.table)

    def mechanism(self, level: str, query: str) -> Mechanism:
        """The mechanism of one cell of a query."""
        if level not in self.table or query not in self.table[level]:
            raise InvalidInputError(
                f"Allocation {self.number} has no query {shown(query)} in level {shown(level)}. Take one of its table."
            )
        return self.noise.get((level, query), USUAL).mechanism(self.table[level][query])

    @cached_property
    def mechanisms(self) -> Mapping[Mechanism, int]:
        """The path's mechanisms and how often each occurs: one for each cell that a record touches."""
        counts: Counter[tuple[int, int, CellNoise | None]] = Counter(  # None for the usual noise: quicker to look up
            (*rho.as_integer_ratio(), self.noise.get((level, query)) if self.noise else None)
            for level, queries in self.table.items()
            for query, rho in queries.items()
        )
        result: Counter[Mechanism] = Counter()
        for (top, bottom, other), count in counts.items():
            noise = other or USUAL
            result[_mechanism(top, bottom, noise)] += count * noise.cells
        return MappingProxyType(dict(result))

    def __reduce__(self) -> tuple[type[Allocation], tuple[object, ...]]:  # without what was computed from it
        return Allocation, (self.number, self.bypassed, self.table, self.noise)


@steady
@dataclass(frozen=True)
class Release:
    """One published product: its budget table and the numbered sets of levels that its directed paths bypass.

    `relation` says who the neighbours are. "replace": one record is replaced by another, which moves it from one path to another,
    so that neighbours are pairs of paths. "add/remove": one record is there or not, so that they are single paths, written as
    pairs (k, 0). `noise` says which queries have other noise than usual.
    """

    _repr_html_ = repr_html

    name: str
    title: str
    source: str
    table: Table
    bypassed: Mapping[int, tuple[str, ...]]
    relation: str = REPLACE
    noise: Noise = field(default_factory=dict)
    unit_of_privacy: str = ""
    """Whose record it is, such as a person or a household; empty where nothing is said."""

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise InvalidInputError(
                f"The relation must be one of {', '.join(RELATIONS)}. Found {shown(self.relation)}."
            )
        if self.relation == ADD_REMOVE and NO_RECORD in self.bypassed:
            raise InvalidInputError(
                "With add/remove, 0 stands for no record. Found a path of that number; renumber it."
            )
        for level, queries in self.table.items():
            if not queries:
                raise InvalidInputError(f"A level must have at least one query. Found none in level {shown(level)}.")
        for level, query in self.noise:
            if level not in self.table or query not in self.table[level]:
                raise InvalidInputError(
                    f"Noise must belong to a query of the table. Found {shown(query)} in level {shown(level)}."
                )
        kept = {place: self.noise[place] for place in self.cells if self.noise.get(place, USUAL) != USUAL}
        object.__setattr__(self, "noise", kept)

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """Every cell of the table, by level and query, top level first."""
        return tuple((level, query) for level, queries in self.table.items() for query in queries)

    @property
    def is_usual(self) -> bool:
        """Whether neighbours and noise are the usual ones: one record replaced, discrete Gaussian noise on single counts."""
        return self.relation == REPLACE and not self.noise

    @cached_property
    def allocations(self) -> Mapping[int, Allocation]:
        """The allocations by their published number; a release without published bypass sets has its full path, number 1."""
        tables = bypass_each(self.table, self.bypassed.values())
        return MappingProxyType(
            {
                number: Allocation(number, levels, table, self._noise_without(levels))
                for (number, levels), table in zip(self.bypassed.items(), tables, strict=True)
            }
        )

    @cached_property
    def mechanisms(self) -> Mapping[int, Mapping[Mechanism, int]]:
        """The mechanisms along each path, by its number, and how often each occurs there."""
        return MappingProxyType({number: path.mechanisms for number, path in self.allocations.items()})

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the budget and of the bypassed levels, and of neighbours and noise where they are not the usual ones; the
        same on every machine."""
        rows = [
            [level, query, exact_text(rho)] for level, queries in self.table.items() for query, rho in queries.items()
        ]
        said: list[object] = [rows, [[n, list(levels)] for n, levels in sorted(self.bypassed.items())]]
        if not self.is_usual:
            said += [self.relation, [[*place, n.kind, n.sensitivity, n.cells] for place, n in self.noise.items()]]
        text = json.dumps(said)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def budget(self) -> Fraction:
        """The total of the table, the same along every path: the sum of 1 / sigma2 where the noise is the usual one."""
        return _total(self.table)

    @cached_property
    def rho(self) -> Fraction:
        """zCDP's rho of the release: the largest over all pairs of neighbours. By default that is the table's total."""
        times = 2 if self.relation == REPLACE else 1  # the largest of two paths is twice the largest of one
        if not self.noise:
            return self.budget * times / 2
        return times * max(Fraction(Composition(path).rho) for path in self.mechanisms.values())

    @property
    def full_path(self) -> int:
        """The number of the allocation that bypasses nothing (or the fewest levels)."""
        return min(self.bypassed, key=lambda n: (len(self.bypassed[n]), n))

    @property
    def proxy_pair(self) -> tuple[int, int]:
        """The full path with itself; with no record where neighbours have one record more or less."""
        return self.full_path, self.full_path if self.relation == REPLACE else NO_RECORD

    @property
    def proxy(self) -> Composition:
        """The composition of `proxy_pair`: what the paper advises to tune with."""
        return self.pair(*self.proxy_pair)

    def scaled(self, factor: Number, level: str | None = None) -> Release:
        """The same design with every noise variance, or those of one level, multiplied by `factor`: each budget is divided by it.

        For Gaussian noise that is sigma2; a discrete Laplace scale is multiplied by the root of the factor, rounded up.
        """
        by = positive(factor, "factor")
        table = {
            name: {query: rho / by if level in (None, name) else rho for query, rho in queries.items()}
            for name, queries in self.table.items()
        }
        result = self._with_table(table)
        if level is None and not self.noise:  # levels that take over others' budgets are scaled as these are
            each = {m: m._scaled(by) for m in dict.fromkeys(chain.from_iterable(self.mechanisms.values()))}
            paths = {number: {each[m]: count for m, count in path.items()} for number, path in self.mechanisms.items()}
            vars(result)["mechanisms"] = MappingProxyType(paths)
        return result

    def with_budget(self, changes: Mapping[tuple[str, str], Number]) -> Release:
        """The same design with so much more budget, 1 / sigma2, in some cells (level, query); less where it is negative."""
        if not isinstance(changes, Mapping):
            raise InvalidInputError(
                f"Changes of a budget are a mapping from (level, query) to budget. Found {shown(changes)}."
            )
        table = {level: dict(queries) for level, queries in self.table.items()}
        for cell, change in changes.items():
            level, query = cell if isinstance(cell, tuple) and len(cell) == 2 else (cell, None)
            if level not in table or query not in table[level]:
                raise InvalidInputError(f"A cell is (level, query) of the table. Found {shown(cell)}.")
            table[level][query] = positive(table[level][query] + rational(change, "budget"), "The budget of a cell")
        return self._with_table(table)

    def _with_table(self, table: Table) -> Release:
        """The same design with other budgets; noise that there is not is refused."""
        for rho in {rho for queries in table.values() for rho in queries.values()}:
            DiscreteGaussian(1 / rho)
        result = replace(self, table=table)
        result.check_noise()
        return result

    def check_noise(self) -> None:
        """Refuse unusual noise that there is not, on any path; the usual noise is checked where its budgets are."""
        if not self.noise:
            return
        own = {level: sum(queries.values(), Fraction(0)) for level, queries in self.table.items()}
        totals = {level: {"": rho} for level, rho in own.items()}
        most = dict.fromkeys(own, Fraction(1))  # a level's budget on the path where it has most, as a factor on its own
        for levels in set(self.bypassed.values()):
            for level, received in bypass(totals, levels).items():
                most[level] = max(most[level], received[""] / own[level])
        for (level, query), noise in self.noise.items():
            for factor in {Fraction(1), most[level]}:
                try:
                    noise.mechanism(self.table[level][query] * factor)
                except InvalidInputError as error:
                    place = f" in level {shown(level)}, query {shown(query)}"
                    refused = InvalidInputError(f"{str(error).removesuffix('.')}{place}.")
                    refused.where = {"level": level, "query": query}
                    raise refused from None
        if self.rho > LARGEST_RHO:
            raise InvalidInputError(
                f"zCDP's rho of a design must be at most {LARGEST_RHO:.0e} (more protects nothing). Found more; use smaller "
                "sensitivities, fewer cells or more noise."
            )

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
        return Release, (*(getattr(self, part.name) for part in fields(self)),)

    def __hash__(self) -> int:
        return hash((self.name, self.fingerprint))

    def pair(self, k: int, other: int) -> Composition:
        """The composition that tells neighbours apart: of both paths' mechanisms where one record is replaced; of path k's alone,
        with 0 for `other`, where it is added or removed."""
        first = self._path(k)
        if self.relation == ADD_REMOVE:
            if other != NO_RECORD:
                raise InvalidInputError(
                    f"{self.name} has neighbours with one record more or less (add/remove), which are single paths: ask for the "
                    f"pair ({shown(k)}, 0). Found ({shown(k)}, {shown(other)})."
                )
            return Composition(first)
        if k == other:
            return Composition({mechanism: 2 * count for mechanism, count in first.items()})
        return Composition(Counter(first) + Counter(self._path(other)))

    @property
    def compositions(self) -> dict[Composition, tuple[int, int]]:
        """The different compositions among all pairs, each with the first pair that has it."""
        return {self.pair(*pair): pair for pair in self.different_pairs}

    @property
    def different_pairs(self) -> tuple[tuple[int, int], ...]:
        """The first pair of every different composition."""
        pairs, paths = self.pairs, self.mechanisms
        columns = {mechanism: i for i, mechanism in enumerate(dict.fromkeys(chain.from_iterable(paths.values())))}
        row_of = {number: i for i, number in enumerate(paths)}
        counts = np.zeros((len(paths) + 1, len(columns)), dtype=np.int64)  # the last one for no record
        for number, path in paths.items():
            for mechanism, count in path.items():
                counts[row_of[number], columns[mechanism]] = count
        first, second = np.array([(row_of[k], row_of.get(other, len(paths))) for k, other in pairs]).T
        _, places = np.unique(counts[first] + counts[second], axis=0, return_index=True)
        return tuple(pairs[i] for i in np.sort(places).tolist())

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of neighbours: unordered pairs of allocations, those with themselves included; or each one and 0."""
        numbers = sorted(self.bypassed)
        if self.relation == ADD_REMOVE:
            return tuple((k, NO_RECORD) for k in numbers)
        return tuple((k, other) for i, k in enumerate(numbers) for other in numbers[i:])

    def _noise_without(self, levels: Collection[str]) -> Noise:
        return {place: noise for place, noise in self.noise.items() if place[0] not in levels}

    def _path(self, number: int) -> Mapping[Mechanism, int]:
        if not isinstance(number, Hashable) or number not in self.bypassed:
            known = sorted(self.bypassed)
            raise InvalidInputError(
                f"{self.name} has the allocations {known[0]} to {known[-1]}. Found {shown(number)}."
                if len(known) > 1
                else f"{self.name} has only the allocation {known[0]}, its full path. Found {shown(number)}."
            )
        return self.mechanisms[number]


@lru_cache(maxsize=4096)
def _mechanism(top: int, bottom: int, noise: CellNoise) -> Mechanism:
    """The mechanism of a cell of budget top / bottom. The paths of a design have most of theirs in common."""
    return noise.mechanism(Fraction(top, bottom))


def _total(table: Table) -> Fraction:
    return total(rho for queries in table.values() for rho in queries.values())
