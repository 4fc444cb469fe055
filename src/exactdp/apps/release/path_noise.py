"""The noise of a table whose rows hold records of several paths: one cell has one noise, and the worst pair of paths counts.

A record of path k counts in rows of path k, with the noise of allocation k. When it is replaced by one of path l, these rows and
those of path l change: the pair's composition. Where both count in the same cell it changes less, never more. So the release is
(epsilon, delta)-differentially private for the largest epsilon of all pairs of paths that the table has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from exactdp.accounting.composition import Composition
from exactdp.apps.release.counts import CountTable, Paths, chosen_allocation, refuse_number_beside_paths
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import REPLACE
from exactdp.interop.opendp import drawn_mechanism
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, shown

Pair = tuple[int, int]


@steady
@dataclass(frozen=True)
class DrawnNoise:
    """The cells of one query at one level that hold records of the same paths: how many there are, and their noise."""

    paths: Paths
    level: str
    query: str
    cells: int
    designed: Mechanism
    drawn: DiscreteGaussian | DiscreteLaplace


@steady
def planned_noise(design: Release, table: CountTable, allocation: int | None) -> tuple[DrawnNoise, ...]:
    """What is drawn for a table, in the order of the design.

    Guarantee: each row has one entry, whose noise is that of its level and query on each of its paths; a row whose paths have
    different noise is refused.
    """
    cells = Counter(zip(row_paths(design, table, allocation), table.places, strict=True))
    order = {level: i for i, level in enumerate(design.table)}
    queries = {(level, query): i for level in design.table for i, query in enumerate(design.table[level])}
    return tuple(
        DrawnNoise(paths, level, query, n, noise := _one_noise(design, paths, level, query), drawn_mechanism(noise))
        for (paths, (level, query)), n in sorted(
            cells.items(), key=lambda item: (order.get(item[0][1][0], 0), queries.get(item[0][1], 0), item[0][0])
        )
    )


@steady
def row_paths(design: Release, table: CountTable, allocation: int | None) -> Sequence[Paths]:
    """The paths of each row; without a column for them those of one allocation, the full path unless told."""
    if table.paths is None:
        return [(chosen_allocation(design, allocation).number,)] * len(table.places)
    refuse_number_beside_paths(allocation)
    return table.paths


def _one_noise(design: Release, paths: Paths, level: str, query: str) -> Mechanism:
    for number in paths:
        allocation = design.allocations.get(number)
        if allocation is None or query not in allocation.table.get(level, {}):
            raise InvalidInputError(
                f"A table must have been read for the design whose noise it gets. Found rows that {shown(design.name)} has not."
            )
    noises = {number: design.allocations[number].mechanism(level, query) for number in paths}
    if len(set(noises.values())) > 1:
        raise InvalidInputError(
            f"One cell has one noise. Found {listed(paths)} in one cell of level {shown(level)}, query {shown(query)}, for which "
            "the design has different noise, because a bypassed level's budget moved into this node; give the node's records "
            "one path, or bypass only below nodes that no other path shares."
        )
    return next(iter(noises.values()))


@steady
@dataclass(frozen=True)
class WorstPairs:
    """The largest epsilon of all pairs of the paths that a table has, for the noise drawn."""

    epsilon: Bounds
    covered: tuple[Pair, ...]
    """All pairs of these paths."""
    worst: tuple[Pair, ...]
    """Those that may be the worst: the bounds do not tell them apart."""

    is_replacement: bool
    """Whether a record is replaced by another; otherwise it is added or removed, and a pair is one path."""

    @property
    def noun(self) -> str:
        """What a pair is called."""
        return "pair" if self.is_replacement else "path"

    @property
    def names(self) -> list[str]:
        """The worst ones as people write them: (1, 2), or 1 where it is one path."""
        return [str(pair) if self.is_replacement else str(pair[0]) for pair in self.worst]


@steady
def worst_pairs(
    design: Release, paths: Collection[int], delta: Number, on_progress: Callable[[int], None] | None = None
) -> WorstPairs:
    """Guarantee: for records of these paths epsilon at `delta` is between the bounds, whatever pair of them is replaced.

    `on_progress` is told how many pairs were done since.
    """
    absent = set(design.allocations) - set(paths)
    covered = tuple(pair for pair in design.pairs if not absent & set(pair))
    alike: dict[Composition, list[Pair]] = {}
    for pair in covered:
        alike.setdefault(drawn_composition(design.pair(*pair)), []).append(pair)
    found: dict[Pair, Bounds] = {}
    for composition, pairs in alike.items():
        bounds = composition.epsilon_bounds(delta)
        found.update(dict.fromkeys(pairs, bounds))
        if on_progress is not None:
            on_progress(len(pairs))
    lower, upper = (max(bounds[end] for bounds in found.values()) for end in (0, 1))
    worst = tuple(pair for pair in covered if found[pair].upper >= lower)
    return WorstPairs(Bounds(lower, upper), covered, worst, design.relation == REPLACE)


@steady
def drawn_composition(composition: Composition) -> Composition:
    """What OpenDP draws for a composition: two kinds of noise that differ by less than a double can tell become one."""
    counts: Counter[Mechanism] = Counter()
    for mechanism, count in composition.mechanisms.items():
        counts[drawn_mechanism(mechanism)] += count
    return Composition(counts)


def listed(numbers: Sequence[int]) -> str:
    """Paths in words: path 1, paths 1 and 2, paths 1, 2, 3 and 40 more."""
    if len(numbers) == 1:
        return f"path {numbers[0]}"
    head = [str(number) for number in numbers[:20]]
    last = head.pop() if len(numbers) <= 20 else f"{len(numbers) - 20} more"
    return f"paths {', '.join(head)} and {last}"
