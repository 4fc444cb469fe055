"""Neighbouring changes of the 2020 Census, each followed through the products that it touches: data, for joint.py.

A record of a product sits in cells along one path. A change takes records away or puts records in: each of its halves is a record
that leaves or enters. docs/whole-census.md derives every entry and says what is assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.releases import Allocation
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import shown

Vector = Mapping[str, tuple[int, int]]
"""Query -> by how much its cells move, and how many of them do; a query that is not in it does not move."""


@dataclass(frozen=True)
class Half:
    """One record that leaves or enters: the cells that it moves. By default those that the release says, in every query."""

    still: frozenset[str] = frozenset()
    """Queries whose answer does not change."""
    vector: Vector | None = None
    """Instead of what the release says."""

    def mechanisms(self, path: Allocation) -> Counter[Mechanism]:
        """The noise that hides this record along a path."""
        found: Counter[Mechanism] = Counter()
        for level, queries in path.table.items():
            for query, rho in queries.items():
                noise = self._noise(query, path.noise.get((level, query), USUAL))
                if noise is not None:
                    found[noise.mechanism(rho)] += noise.cells
        return found

    def _noise(self, query: str, own: CellNoise) -> CellNoise | None:
        if query in self.still:
            return None
        if self.vector is None:
            return own
        if query not in self.vector:
            return None
        shift, cells = self.vector[query]
        return replace(own, sensitivity=shift, cells=cells)


@dataclass(frozen=True)
class Follow:
    """What a change does to one product."""

    halves: tuple[Half, ...]
    """Records that leave or enter: none, one or two."""
    is_in_place: bool = False
    """Whether both are in the same block, and so on the same path."""
    said: str = ""
    """What moves, in words."""


@dataclass(frozen=True)
class Change:
    """One neighbouring change, stated once for all products."""

    name: str
    words: str
    """What happens, in one sentence."""
    follows: Mapping[str, Follow] = field(repr=False)
    """Product (without us or pr) -> what moves there. Other products are not accounted for under this change."""
    left_out: str
    """Why other products are not."""
    invariants: str
    """What is published exactly, and what that means for this change."""

    def follow(self, product: str) -> Follow:
        """What the change does to a product; refused where that has not been derived."""
        if product not in self.follows:
            raise InvalidInputError(
                f"The change {shown(self.name)} is followed through {', '.join(self.follows)}. Found {shown(product)}; "
                f"{self.left_out}"
            )
        return self.follows[product]


_ONE, _WHOLE = Half(), (Half(), Half())
_ENTERS_OR_LEAVES = "one cell of every query, along one path"
_TWO_PATHS = "one cell of every query along each of two paths: the record leaves one and enters another"
_TWO_CELLS = "two cells of every query, along one path"
_GROUPS = "9 cells of every query, one for each population group that a record can be in"
_TWICE_GROUPS = "18 cells of every query: the 9 groups that the record leaves and the 9 that it enters"
_NOT_MOVED = Follow((), said="nothing: the unit stays occupied, and only that is counted")
_TOTALS = "State populations are published exactly"
_UNITS = "The numbers of housing units and of group quarters in each block are published exactly"

_IN_PLACE_STILL = frozenset({"total", "hhgq", "hhinstlevels"})
_TENURE = frozenset({"tenvacgq"})
_HOUSEHOLDER = frozenset({"hisp * hhtenshort_2lev", "hisp * hhtenshort_2lev * race"})
_VACANT = Half(vector={"tenvacgq": (1, 1)})
_ITERATIONS = "A-G", "H,I", "*"


def _both(first: Vector, still_in_second: frozenset[str] = frozenset()) -> tuple[Half, Half]:
    """A vector of two cells in each query as two halves; queries of one cell are in the first half only."""
    return Half(vector=first), Half(vector={q: v for q, v in first.items() if q not in still_in_second})


def _iterated(table: str, shift: int, iterations: tuple[str, ...] = _ITERATIONS) -> dict[str, tuple[int, int]]:
    return {f"{table}, {iteration}": (shift, 1) for iteration in iterations}


# the members of a household that are kept: 10, in PH3 and PH6 6; its race and ethnicity are the householder's
_BY_HOUSEHOLDER = _ITERATIONS[:2]
_HOUSEHOLDER_ANSWERS: Vector = {
    **_iterated("PH1_num", 10, _BY_HOUSEHOLDER),
    **_iterated("PH1_num", 1, ("*",)),
    **_iterated("PH1_denom", 1, _BY_HOUSEHOLDER),
    **_iterated("PH2", 10, ("*",)),
    **_iterated("PH3", 6),
    **_iterated("PH4", 10),
    **_iterated("PH5_denom", 1),
    **_iterated("PH6", 6, ("*",)),
    **_iterated("PH7", 10, _BY_HOUSEHOLDER),
    **_iterated("PH8_denom", 1, _BY_HOUSEHOLDER),
}
_MEMBER_ANSWERS: Vector = {
    **_iterated("PH1_num", 1),
    **_iterated("PH2", 10, ("*",)),
    **_iterated("PH3", 6),
    **_iterated("PH4", 10),
    **_iterated("PH5_denom", 1),
    **_iterated("PH6", 6, ("*",)),
}
_FAMILY_ONLY = frozenset({"PH4, *", "PH5_denom, *"})  # a household becomes a family or ceases to be one: one cell
_FAMILY = frozenset(f"{table}, {iteration}" for table in ("PH4", "PH5_denom") for iteration in _ITERATIONS)

_PERSON_IN_PLACE = {
    "pl94-persons": Follow(
        (Half(_IN_PLACE_STILL), Half(_IN_PLACE_STILL)), True, f"{_TWO_CELLS}, but none of total, hhgq, hhinstlevels"
    ),
    "dhc-persons": Follow(_WHOLE, True, _TWO_CELLS),
    "ddhc-a": Follow(_WHOLE, said=_TWICE_GROUPS),
    "pl94-units": _NOT_MOVED,
}
_PERSONS_ONLY = (
    "the record of the household changes with a person, by how much depends on the household: ask for the answers of a person "
    "that change in place."
)
_UNITS_ONLY = "the people of a household are several persons, and a change of all of them at once has not been derived."

_ALL = (
    Change(
        "person added or removed",
        "One person is counted or is not, and nothing else changes in the products about persons.",
        {
            "pl94-persons": Follow((_ONE,), said=_ENTERS_OR_LEAVES),
            "dhc-persons": Follow((_ONE,), said=_ENTERS_OR_LEAVES),
            "ddhc-a": Follow((_ONE,), said=_GROUPS),
            "s-dhc": Follow((_ONE,), said="one cell of every query by the sensitivity that the program certifies"),
            "s-dhc-formal": Follow((_ONE,), said="the worst case of the relation that the program states"),
            "s-dhc-household": Follow(
                (_ONE,), said="the members of the person's household that are kept, from one cell to another"
            ),
        },
        _PERSONS_ONLY,
        f"{_TOTALS}: whoever compares them sees that somebody is missing. This is about the noisy measurements only.",
    ),
    Change(
        "person replaced",
        "One person is counted with other answers, and possibly at another place; at most two households change in place.",
        {
            "pl94-persons": Follow(_WHOLE, said=_TWO_PATHS),
            "dhc-persons": Follow(_WHOLE, said=_TWO_PATHS),
            "ddhc-a": Follow(_WHOLE, said=_TWICE_GROUPS),
            "s-dhc": Follow(_WHOLE, said="two cells of every query by the sensitivity that the program certifies"),
        },
        _PERSONS_ONLY,
        f"{_TOTALS}, so that the two places are in one state where this is to hide anything. Queries that count all persons "
        "still move: a state has a part inside and a part outside of tribal areas.",
    ),
    Change(
        "occupied unit replaced",
        "The record of one occupied housing unit is replaced by that of another household in the same block.",
        {
            "pl94-units": _NOT_MOVED,
            "dhc-units": Follow(_WHOLE, True, _TWO_CELLS),
            "ddhc-b": Follow(_WHOLE, said=_TWICE_GROUPS),
        },
        _UNITS_ONLY,
        f"{_UNITS}, so the unit stays in its block and both records follow the same path.",
    ),
    Change(
        "occupied becomes vacant",
        "One occupied housing unit becomes vacant: its household's record is gone, the unit stays.",
        {
            "pl94-units": Follow(_WHOLE, True, _TWO_CELLS),
            "dhc-units": Follow((_ONE, _VACANT), True, "one cell of the queries about households, two of tenvacgq"),
            "ddhc-b": Follow((_ONE,), said=_GROUPS),
        },
        _UNITS_ONLY,
        f"{_UNITS}, so the unit stays in its block and both records follow the same path.",
    ),
    Change(
        "answers of a householder",
        "The answers of one person, the householder, change; who lives where, and whether the home is owned, stays.",
        {
            **_PERSON_IN_PLACE,
            "dhc-units": Follow((Half(_TENURE), Half(_TENURE)), True, f"{_TWO_CELLS}, but none of tenvacgq"),
            "ddhc-b": Follow(_WHOLE, said=_TWICE_GROUPS),
            "s-dhc": Follow(
                _both(_HOUSEHOLDER_ANSWERS, _FAMILY_ONLY),
                said="the members of the household that are kept, at most 10, or 6 in PH3 and PH6, from one cell to another",
            ),
        },
        "take one of these.",
        f"{_TOTALS}. {_UNITS}. Nothing of that changes here.",
    ),
    Change(
        "answers of another member",
        "The answers of one person who is not the householder change; who lives where, and whether the home is owned, stays.",
        {
            **_PERSON_IN_PLACE,
            "dhc-units": Follow(
                (Half(_TENURE | _HOUSEHOLDER), Half(_TENURE | _HOUSEHOLDER)),
                True,
                f"{_TWO_CELLS}, but none of tenvacgq and of the two about the householder's race or origin and tenure alone",
            ),
            "ddhc-b": Follow(
                (Half(frozenset({"T4"})), Half(frozenset({"T4"}))), said="18 cells of every query of T3, none of T4"
            ),
            "s-dhc": Follow(
                _both(_MEMBER_ANSWERS, _FAMILY),
                said="the members of the household that are kept, where its type changes; one person where an age does",
            ),
        },
        "take one of these.",
        f"{_TOTALS}. {_UNITS}. Nothing of that changes here.",
    ),
)

CHANGES: Mapping[str, Change] = {change.name: change for change in _ALL}
"""The changes by name."""


def change_named(name: object) -> Change:
    """A change by its name."""
    if isinstance(name, Change):
        return name
    if not isinstance(name, str) or name not in CHANGES:
        raise InvalidInputError(f"A change is one of: {', '.join(CHANGES)}. Found {shown(name)}.")
    return CHANGES[name]
