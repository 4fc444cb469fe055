"""TopDown products (P.L. 94-171, DHC): a small spine of records, one of them replaced, and the cells that move.

The spine has one branch for each set of bypassed levels of a release. The Bureau's rule is applied to it unit by unit, bottom up,
and every measured unit counts its records by every query. What moves must be what the release accounts for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import pytest

from exactdp import DiscreteGaussian, census
from exactdp.census import Release

Unit = tuple[int, ...]
"""A unit of the spine by its path: () is the top, each number a child."""
ALL_UNITS = "tenvacgq"
NEW = ("pl94-persons-us-patterns", "pl94-persons-pr-patterns", "pl94-units-us-patterns", "pl94-units-pr-patterns")
ONE_PATH = ("pl94-units-us", "pl94-units-pr", "dhc-persons-pr-no-prim", "dhc-units-pr-no-prim", "dhc-units-us")


class Spine:
    """Below the top, a branch for each set of bypassed levels: a unit has one child where that level is bypassed, else two."""

    def __init__(self, release: Release) -> None:
        self.release, self.levels = release, list(release.table)
        self.sets = dict(zip(range(len(release.bypassed)), release.bypassed.values(), strict=True))
        self.budget: dict[Unit, Fraction] = {}
        self._grow(())

    def children(self, unit: Unit) -> list[Unit]:
        if len(unit) == len(self.levels) - 1:
            return []
        if not unit:
            return [(branch,) for branch in [*self.sets, len(self.sets)]]  # never an only one: the last has no records
        is_only = self.levels[len(unit) + 1] in self.sets.get(unit[0], ())
        return [(*unit, child) for child in range(1 if is_only else 2)]

    def _grow(self, unit: Unit) -> None:
        """Units below first: one with a single child takes the child's whole budget and leaves it nothing."""
        children = self.children(unit)
        for child in children:
            self._grow(child)
        self.budget[unit] = sum(self.release.table[self.levels[len(unit)]].values(), Fraction(0))
        if len(children) == 1:
            self.budget[unit] += self.budget[children[0]]
            self.budget[children[0]] = Fraction(0)

    def blocks(self, branch: int) -> list[Unit]:
        found = [(branch,)]
        while self.children(found[0]):
            found = [child for unit in found for child in self.children(unit)]
        return found

    def cells(self, records: list[tuple[Unit, int | None]]) -> Counter[tuple[Unit, str, int | None]]:
        """The counts of every measured unit by every query. A record is a block and an answer, which every query tells apart (one
        that does not, such as the total of a unit that both records are in, moves less). None is a vacant unit, which only the
        query about all units counts."""
        return Counter(
            (block[:depth], query, answer)
            for block, answer in records
            for depth, level in enumerate(self.levels)
            if self.budget[block[:depth]]
            for query in self.release.table[level]
            if answer is not None or ALL_UNITS in query
        )

    def noise(self, unit: Unit, query: str) -> DiscreteGaussian:
        """Noise of the unit's budget, split by the shares of its own level."""
        table = self.release.table[self.levels[len(unit)]]
        return DiscreteGaussian(1 / (self.budget[unit] * table[query] / sum(table.values(), Fraction(0))))


def moved(
    spine: Spine, before: list[tuple[Unit, int | None]], after: list[tuple[Unit, int | None]]
) -> Iterator[object]:
    one, two = spine.cells(before), spine.cells(after)
    for unit, query, answer in {*one, *two}:
        shift = abs(one[unit, query, answer] - two[unit, query, answer])
        assert shift <= 1
        if shift:
            yield spine.noise(unit, query)


@pytest.mark.parametrize("name", [*NEW, *ONE_PATH])
def test_a_replaced_record_moves_one_cell_of_each_query_on_both_paths(name: str) -> None:
    release = census.release(name)
    spine, numbers = Spine(release), list(release.bypassed)
    ends = {k: (blocks[0], blocks[-1]) for k, blocks in zip(numbers, map(spine.blocks, spine.sets), strict=True)}
    for k, other in release.pairs:
        here, there = ends[k][0], ends[other][1]
        others: list[tuple[Unit, int | None]] = [(block, answer) for block in (*ends[k], there) for answer in (0, 1)]
        found = Counter(moved(spine, [*others, (here, 0)], [*others, (there, 1)]))
        assert found == Counter(release.pair(k, other).mechanisms)


@pytest.mark.parametrize("name", NEW)
def test_every_set_that_single_children_allow_is_there(name: str) -> None:
    release = census.release(name)
    may = list(release.table)[2:]  # never the top, nor the units right below it, of which there are many
    assert set(release.bypassed.values()) == {c for n in range(len(may) + 1) for c in combinations(may, n)}
    assert release.bypassed[1] == ()


def test_an_occupied_unit_that_becomes_vacant_moves_less() -> None:
    release = census.release("dhc-units-us")
    spine = Spine(release)
    block = spine.blocks(0)[0]
    occupied, vacant = (
        Counter(moved(spine, [(block, 0)], [(block, 1)])),
        Counter(moved(spine, [(block, 0)], [(block, None)])),
    )
    assert occupied == Counter(release.pair(1, 1).mechanisms)
    assert vacant < occupied
    twice = [query for query in release.table["US"] if ALL_UNITS in query]
    assert len(twice) == 1
    assert vacant.total() == sum(len(queries) + 1 for queries in release.table.values())


HOUSEHOLDER_ONLY = {"sex", "hisp", "race", "hhage"}
"""What the householder's own answers say; the other parts of a query are the household's."""
TENURE = {"tenvacgq", "hhtenshort_2lev", "hhtenshort_3lev"}
HOUSEHOLD = {
    "coupled_hh_type",
    "multig",
    "partner_type_detailed_own_child_status",
    "DetailedCoupleTypeMultGenDetOwnChildSize",
}
"""Recodes of the type of household (couples, generations, own children, size), which any member's answers can change."""


def cell_of(query: str, household: dict[str, int]) -> tuple[int, ...]:
    """The cell of one household: the values of all parts of a query; the detailed one has all of them."""
    parts = sorted(household) if query == "detailed" else query.split(" * ")
    return tuple(household[part] for part in parts)


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        ("answers of a householder", HOUSEHOLDER_ONLY | HOUSEHOLD),
        ("answers of another member", HOUSEHOLD),
        ("occupied unit replaced", HOUSEHOLDER_ONLY | HOUSEHOLD | TENURE),
    ],
)
def test_answers_in_place_move_two_cells_of_the_queries_that_ask_for_them(change: str, answers: set[str]) -> None:
    """A household in a block of a small spine: some of its answers change, tenure and place do not."""
    release = census.release("dhc-units-us")
    spine = Spine(release)
    block, before = spine.blocks(0)[0], dict.fromkeys(HOUSEHOLDER_ONLY | HOUSEHOLD | TENURE, 0)
    after = {part: 1 if part in answers else value for part, value in before.items()}
    found: Counter[object] = Counter()
    for depth, level in enumerate(release.table):
        for query in release.table[level]:
            cells = {cell_of(query, before), cell_of(query, after)}
            found[spine.noise(block[:depth], query)] += 2 * (len(cells) - 1)
    assert +found == Counter(census.joint("dhc-units-us", change).full.mechanisms)


def test_every_part_of_a_household_query_is_known() -> None:
    queries = {query for table in census.release("dhc-units-us").table.values() for query in table} - {"detailed"}
    assert {part for query in queries for part in query.split(" * ")} == HOUSEHOLDER_ONLY | HOUSEHOLD | TENURE


@pytest.mark.parametrize("name", ["pl94-persons-us", "pl94-persons-pr"])
def test_answers_in_place_leave_where_people_live(name: str) -> None:
    """Race, origin and age of a person in a household change: total, hhgq and hhinstlevels do not ask for them."""
    release = census.release(name)
    living, asked = {"total", "hhgq", "hhinstlevels"}, {"cenrace", "hispanic", "votingage"}
    for query in {query for table in release.table.values() for query in table} - {"detailed"}:
        assert set(query.split(" * ")) <= living | asked
    full = Counter(release.proxy.mechanisms)
    for rho in (rho for table in release.table.values() for query, rho in table.items() if query in living):
        full[DiscreteGaussian(1 / rho)] -= 2
    assert +full == Counter(census.joint(name, "answers of a householder").full.mechanisms)
