"""Detailed DHC-A and -B (SafeTab): a record more, and the cells of the population groups that it enters."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import NamedTuple

import pytest

from exactdp import Composition, DiscreteGaussian, census

MOST_RACE_CODES = 8
CODES = tuple(range(1, 13))


class Row(NamedTuple):
    races: tuple[int, ...]
    ethnicity: int
    cell: int
    """What a table tells apart within a group: sex by age, household type, tenure."""


def groups(row: Row, level: int) -> set[tuple[str, int]]:
    """A race code has one group at each level, alone and in combination; an ethnicity has one. Those of level 1 are wider."""

    def wide(code: int) -> int:
        return code if level == 2 else code % 11

    assert len(row.races) <= MOST_RACE_CODES
    alone = set.intersection(*({("alone", wide(code))} for code in row.races))
    combined = {("alone or in combination", wide(code)) for code in row.races}
    return alone | combined | {("ethnicity", row.ethnicity)}


def counts(rows: list[Row], level: int, detail: int) -> Counter[object]:
    """One table: each group by as many cells as were chosen for it, whatever the choice was made from."""
    return Counter((group, row.cell % detail) for row in rows for group in groups(row, level))


def most_moved(level: int, detail: int) -> int:
    """The most cells that one row more moves, by 1 each."""
    others = [Row((1, 2), 1, 0), Row((3,), 2, 5)]
    rows = [
        *(Row(CODES[:n], 1, 3) for n in range(1, MOST_RACE_CODES + 1)),
        Row(CODES[4:12], 2, 2),
        Row((1, 12), 2, 0),
    ]
    found = []
    for row in rows:
        moved = counts([*others, row], level, detail) - counts(others, level, detail)
        assert set(moved.values()) == {1}
        found.append(len(moved))
    return max(found)


@pytest.mark.parametrize("name", ["ddhc-a-us", "ddhc-a-pr", "ddhc-b-us", "ddhc-b-pr"])
def test_a_row_enters_one_cell_of_each_of_nine_groups_whatever_detail_was_chosen(name: str) -> None:
    release = census.release(name)
    assert release.relation == "add/remove"
    for level, queries in release.table.items():
        for query in queries:
            details = (1,) if query == "stage 1" else (1, 2, 3, 4, 5, 8, 18, 46)
            most = {most_moved(int(level[6]), detail) for detail in details}
            noise = release.noise[level, query]
            assert most == {noise.cells} == {9}
            assert noise.sensitivity == 1


def test_groups_that_get_their_total_only_cost_no_more() -> None:
    """A row of theirs is one cell with the budget of both stages. Of usa and state only; at most two of level 1."""
    release = census.release("ddhc-a-us")
    whole = release.pair(1, 0)
    bound = whole.epsilon_bounds("1e-10").upper + 1e-9
    for of_first, of_second in product((0, 1, 2), range(10)):
        mechanisms = Counter(whole.mechanisms)
        for level, count in ((1, of_first), (2, of_second)):
            for region in ("usa", "state"):
                stages = release.table[f"level {level}, {region}"]
                mechanisms.subtract({DiscreteGaussian(1 / rho): count for rho in stages.values()})
                mechanisms[DiscreteGaussian(1 / sum(stages.values()))] += count
        mixed = Composition(+mechanisms)
        assert mixed.rho == release.rho
        assert mixed.epsilon_bounds("1e-10").upper <= bound
