"""The Supplemental DHC (PHSafe): persons joined with units, rows that come and go, and the cells that move.

A small copy of the program's tables: at most tau persons of an address are kept, in a fixed order; an address with two unit rows
has none. Iterations: the race of the householder (of the child in PH3), Hispanic or White and not Hispanic, all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from random import Random
from typing import NamedTuple

import pytest

from exactdp import census
from exactdp.census.changes import CHANGES

TAU = {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}
SMALL = {"PH1_num": 2, "PH2": 2, "PH3": 1, "PH4": 2, "PH6": 1, "PH7": 2}
RELATIVES = ("householder", "own child", "grandchild")


class Person(NamedTuple):
    order: int
    address: int
    age: int
    relation: str
    race: str
    hispanic: bool


class Unit(NamedTuple):
    address: int
    state: str
    race: str
    hispanic: bool
    family: bool
    type: str
    tenure: str
    """Empty where it is vacant."""


Data = tuple[list[Person], list[Unit]]
Moves = dict[tuple[str, str], list[int]]
"""(geography, query) -> by how much its cells move, the largest first."""


def iterations(race: str, hispanic: bool) -> Iterator[tuple[str, str]]:
    yield "A-G", race
    if hispanic or race == "White":
        yield "H,I", "H" if hispanic else "I"
    yield "*", ""


def cells(data: Data, tau: dict[str, int]) -> Counter[tuple[str, str, object]]:
    persons, units = data
    seen = Counter(unit.address for unit in units)
    single = [unit for unit in units if seen[unit.address] == 1]
    found: Counter[tuple[str, str, object]] = Counter()

    def count(table: str, unit: Unit, cell: object, race: str, hispanic: bool) -> None:
        for name, code in iterations(race, hispanic):
            if name == "*" or table not in ("PH2", "PH6"):
                found["usa", f"{table}, {name}", (code, cell)] += 1
                found["state", f"{table}, {name}", (unit.state, code, cell)] += 1

    def join(table: str, chosen: list[Person], homes: list[Unit]) -> Iterator[tuple[Person, Unit]]:
        at = {unit.address: unit for unit in homes}
        for address, group in groupby(sorted(chosen, key=lambda p: (p.address, p.order)), lambda p: p.address):
            if address in at:
                yield from ((person, at[address]) for person in list(group)[: tau[table]])

    children = [person for person in persons if person.age < 18]
    for person, unit in join("PH1_num", persons, single):
        count("PH1_num", unit, person.age < 18, unit.race, unit.hispanic)
    for _, unit in join("PH2", persons, single):
        count("PH2", unit, unit.type, unit.race, unit.hispanic)
    for person, unit in join("PH3", children, single):
        cell = (person.relation, unit.type if person.relation == "own child" else "")
        count("PH3", unit, cell, person.race, person.hispanic)
    relatives = [person for person in persons if person.relation in RELATIVES]
    for person, unit in join("PH4", relatives, [unit for unit in single if unit.family]):
        count("PH4", unit, person.age < 18, unit.race, unit.hispanic)
    for person, unit in join("PH6", [child for child in children if child.relation == "own child"], single):
        count("PH6", unit, (unit.type, person.age // 6), unit.race, unit.hispanic)
    for _, unit in join("PH7", persons, single):
        count("PH7", unit, unit.tenure, unit.race, unit.hispanic)
    for unit in units:
        if unit.tenure:
            count("PH1_denom", unit, 1, unit.race, unit.hispanic)
            count("PH8_denom", unit, unit.tenure == "rented", unit.race, unit.hispanic)
        if unit.tenure and unit.family:
            count("PH5_denom", unit, 1, unit.race, unit.hispanic)
    return found


def moves(before: Data, after: Data, tau: dict[str, int]) -> Moves:
    one, two = cells(before, tau), cells(after, tau)
    result: Moves = {}
    for key in {*one, *two}:
        if one[key] != two[key]:
            result.setdefault(key[:2], []).append(abs(one[key] - two[key]))
    return {key: sorted(shifts, reverse=True) for key, shifts in result.items()}


def stated(name: str) -> Moves:
    """What a release accounts for, query by query; a cell of its own has the name of its query, a colon and more."""
    release = census.release(name)
    result: Moves = {}
    for level, queries in release.table.items():
        for query in queries:
            noise = release.noise.get((level, query), census.CellNoise())
            result.setdefault((level, query.partition(":")[0]), []).extend([noise.sensitivity] * noise.cells)
    return result


def squares(shifts: list[int]) -> int:
    return sum(shift**2 for shift in shifts)


def family(address: int, **change: object) -> Unit:
    return Unit(address, "WA", "White", False, True, "married couple", "owned")._replace(**change)


def child(order: int, address: int, **change: object) -> Person:
    return Person(order, address, 5, "own child", "White", False)._replace(**change)


def test_the_formal_worst_case_is_attained() -> None:
    """Two units whose kept members are ten children go, and a child of a third: seven children and a grandchild, ten persons."""
    full = [child(order, address) for address in (1, 2) for order in range(10)]
    full += [child(order, address, age=40, relation="householder") for address in (1, 2) for order in (10, 11)]
    third = [child(order, 3, age=40, relation="householder") for order in (0, 1)] + [child(n, 3) for n in range(2, 8)]
    third += [child(8, 3, relation="grandchild", race="Black", hispanic=True), child(9, 3, age=15)]
    before = [*full, *third], [family(1), family(2), family(3)]
    after = [person for person in before[0] if person != child(2, 3)], [family(3)]
    found = moves(before, after, TAU)
    assert found == stated("s-dhc-formal-us")
    assert {key: shifts for key, shifts in found.items() if key[0] == "state"} == stated("s-dhc-formal-pr")


def random_data(random: Random) -> Data:
    units = [
        family(
            *[address],
            race=random.choice(["White", "Black"]),
            hispanic=random.random() < 0.5,
            family=random.random() < 0.7,
            type=random.choice(["married couple", "cohabiting couple"]),
            tenure=random.choice(["owned", "rented"]),
        )
        for address in range(3)
    ]
    persons = [
        child(
            *[order, random.randrange(3)],
            age=random.choice([5, 15, 40]),
            relation=random.choice(["own child", "grandchild", "nonrelative"]),
            race=random.choice(["White", "Black"]),
            hispanic=random.random() < 0.5,
        )
        for order in range(random.randrange(10))
    ]
    return persons, units


def without_one(random: Random, persons: list[Person]) -> list[Person]:
    gone = random.choice([*persons, None])
    return [person for person in persons if person != gone]


def test_no_change_of_the_relation_is_beyond_what_is_certified_or_formal() -> None:
    """One person row and two unit rows, each coming or going, at random: no query moves by more than 2 tau + 2, or 2, in all, and
    no change has a larger rho than the formal one (with the small tau in its place)."""
    random, largest = Random(1), Counter[str]()
    table = census.release("s-dhc-us").table
    small = {2 * TAU[name] + 1: 2 * SMALL[name] + 1 for name in TAU}
    rho = sum(
        table[a][b] * squares([small.get(n, n) for n in shifts]) for (a, b), shifts in stated("s-dhc-formal-us").items()
    )
    for _ in range(1500):
        persons, units = random_data(random)
        gone = random.sample(units, random.randint(0, 2))
        more = [family(random.randrange(4), tenure="rented") for _ in range(random.randint(0, 2 - len(gone)))]
        after = without_one(random, persons), [*(unit for unit in units if unit not in gone), *more]
        found = moves((persons, units), after, SMALL)
        assert sum(table[level][query] * squares(shifts) for (level, query), shifts in found.items()) <= rho
        for (_, query), shifts in found.items():
            largest[query.partition(",")[0]] = max(largest[query.partition(",")[0]], sum(shifts))
    assert all(most <= (2 * SMALL[name] + 2 if name in SMALL else 2) for name, most in largest.items())
    assert all(largest[name] >= 2 * tau for name, tau in SMALL.items())
    certified = {query.partition(",")[0]: shifts for (_, query), shifts in stated("s-dhc-us").items()}
    assert certified == {name: [2 * TAU[name] + 2] if name in TAU else [2] for name in certified}


HOUSEHOLD = [child(order, 1) for order in range(12)]
IN_PLACE: list[tuple[Data, Data]] = [
    (
        (HOUSEHOLD, [family(1)]),
        (HOUSEHOLD[1:], [family(1, race="Black", hispanic=True, type="cohabiting couple", tenure="rented")]),
    ),
    ((HOUSEHOLD[:10], [family(1)]), (HOUSEHOLD[:9], [family(1, family=False)])),
    (([*HOUSEHOLD[:10], child(12, 1, age=40)], [family(1)]), ([*HOUSEHOLD[1:10], child(12, 1, age=40)], [family(1)])),
    (([child(0, 1, age=40)], [family(1)]), ([], [family(1, tenure="")])),
]
"""A person leaves, and the unit's record changes in place: everything in it; no family any more; a member of another age is kept
instead; it becomes vacant."""


def test_the_household_vector_has_the_most_of_each_query() -> None:
    most: Moves = {}
    for before, after in IN_PLACE:
        for key, shifts in moves(before, after, TAU).items():
            most[key] = max(most.get(key, []), shifts, key=squares)
    assert most == stated("s-dhc-household-us")
    assert {key: shifts for key, shifts in most.items() if key[0] == "state"} == stated("s-dhc-household-pr")


@pytest.mark.parametrize("seed", [1, 2])
def test_no_household_changed_in_place_is_beyond_its_vector(seed: int) -> None:
    """At random, with the small tau in the place of the large one in what the release states."""
    small = {TAU[table]: SMALL[table] for table in TAU}
    allowed = {key: squares([small.get(n, n) for n in shifts]) for key, shifts in stated("s-dhc-household-us").items()}
    random = Random(seed)
    for _ in range(1000):
        persons, units = random_data(random)
        at = random.choice(units)
        gone = random.choice([person for person in persons if person.address == at.address] or [None])
        left = [person for person in persons if person != gone]
        changed = random_data(random)[1][0]._replace(address=at.address)
        if not any(person.address == at.address for person in left):
            changed = random.choice([changed, changed._replace(tenure="")])
        after = left, [changed if unit == at else unit for unit in units]
        for key, shifts in moves((persons, units), after, SMALL).items():
            assert squares(shifts) <= allowed[key], (key, shifts)


# --- answers that change in place, of the householder or of another member


def fits(shifts: list[int], room: list[int]) -> bool:
    """Whether cells that move by these shifts can be gathered in cells that move by as much as `room` says (Theorem A2)."""
    if not shifts:
        return True
    first, *rest = shifts
    tried = {place: i for i, place in enumerate(room) if place >= first}
    return any(fits(rest, [*room[:i], place - first, *room[i + 1 :]]) for place, i in tried.items())


def vector_of(change: str, tau: dict[str, int]) -> Moves:
    """What the account of a change takes for each query of the Supplemental DHC, with these tau."""
    result: Moves = {}
    for half in CHANGES[change].follows["s-dhc"].halves:
        for query, (shift, cells_moved) in (half.vector or {}).items():
            size = tau[query.partition(",")[0]] if shift > 1 else shift
            assert shift in (1, TAU.get(query.partition(",")[0]))
            for level in ("usa", "state"):
                result.setdefault((level, query), []).extend([size] * cells_moved)
    return result


CHILDREN = [child(order, 1) for order in range(12)]
HEAD = child(20, 1, age=40, relation="householder")
ATTAINED = {
    "answers of a householder": [
        (
            ([*CHILDREN, HEAD], [family(1)]),
            (CHILDREN, [family(1, race="Black", hispanic=True, type="single")]),
            "Black",
        ),
        (([*CHILDREN, HEAD], [family(1)]), (CHILDREN, [family(1, family=False)]), "White"),
        (([HEAD], [family(1)]), ([], [family(1)]), "White"),
    ],
    "answers of another member": [
        (([*CHILDREN, HEAD], [family(1)]), ([*CHILDREN, HEAD], [family(1, type="single")]), None),
        (([*CHILDREN, HEAD], [family(1)]), ([*CHILDREN, HEAD], [family(1, family=False)]), None),
        (([*CHILDREN[:3], HEAD], [family(1)]), ([*CHILDREN[:2], child(2, 1, age=40), HEAD], [family(1)]), None),
    ],
}
"""Before, after, and the race of a householder whose answers have changed, who is put back with them (as a child by age)."""


@pytest.mark.parametrize("change", ATTAINED)
def test_the_vectors_in_place_are_attained_query_by_query(change: str) -> None:
    most: Moves = {}
    for before, (persons, units), race in ATTAINED[change]:
        back = [] if race is None else [HEAD._replace(race=race, age=15, hispanic=units[0].hispanic)]
        for key, shifts in moves(before, ([*persons, *back], units), TAU).items():
            most[key] = max(most.get(key, []), shifts, key=squares)
    assert most == vector_of(change, TAU)


@pytest.mark.parametrize("change", ATTAINED)
def test_no_answers_in_place_are_beyond_their_vector(change: str) -> None:
    """At random, with a small tau: the person's record may also be kept or left out in the place of another, since the order in
    which members are kept may depend on their answers."""
    random, allowed = Random(7), vector_of(change, SMALL)
    for _ in range(1500):
        persons, units = random_data(random)
        heads = [child(20 + u.address, u.address, age=40, race=u.race, hispanic=u.hispanic) for u in units]
        heads = [head._replace(relation="householder") for head in heads]
        at = random.choice(units)
        own = heads if change == "answers of a householder" else persons
        mine = [person for person in own if person.address == at.address]
        if not mine:
            continue
        gone, new = random.choice(mine), random_data(random)
        other = new[1][0]
        changed = gone._replace(
            order=random.randrange(40) * 2 + 101,
            age=random.choice([5, 15, 40]),
            race=other.race,
            hispanic=other.hispanic,
        )
        unit = at._replace(type=other.type, family=other.family)
        if gone.relation == "householder":
            unit = unit._replace(race=changed.race, hispanic=changed.hispanic)
        else:
            changed = changed._replace(relation=random.choice(["own child", "grandchild", "nonrelative"]))
        everyone = [*persons, *heads]
        after = [changed if person == gone else person for person in everyone]
        found = moves((everyone, units), (after, [unit if u == at else u for u in units]), SMALL)
        for key, shifts in found.items():
            assert fits(shifts, allowed.get(key, [])), (key, shifts, allowed.get(key))
