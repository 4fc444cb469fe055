"""Members of a family on the line that are searched together have the nodes that they have by themselves."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from exactdp import DiscreteGaussian, DiscreteLaplace
from exactdp.engine.family import line_groups
from exactdp.engine.family.line_contours import LineFamily
from exactdp.engine.family.line_groups import GroupSearch
from exactdp.engine.family.line_nodes import _Frame
from exactdp.engine.family.line_penalties import Teeth
from exactdp.engine.lattice import tilts
from exactdp.engine.line.tilts import Ladder
from exactdp.errors import LatticeTooFineError

COMMON = {DiscreteGaussian("40/3"): 4, DiscreteGaussian("31/9"): 1, DiscreteGaussian("53/7"): 2}
MEMBERS = (
    COMMON,
    {**COMMON, DiscreteGaussian("29/13"): 1, DiscreteGaussian("12/5", 2): 1},
    {**COMMON, DiscreteGaussian("40/3"): 6, DiscreteLaplace("7/3", 2): 1},
    {DiscreteGaussian("9/4"): 3, DiscreteGaussian("53/7"): 1},
    COMMON,
)
PAIRS = tuple(combinations_with_replacement(range(len(MEMBERS)), 2))
ROWS = np.arange(len(MEMBERS))


@pytest.fixture(scope="module", params=[0.0, 4.0])
def teeth_of_frame(request: pytest.FixtureRequest) -> tuple[Teeth, _Frame]:
    family = LineFamily(MEMBERS, PAIRS)
    ladder = Ladder(family.total(int(np.argmax(family.widest))), tilts.FAMILY)
    frame = _Frame(family, np.arange(len(PAIRS)), [ladder.rung(*ladder.place_of(request.param))], 1e-6)
    return Teeth(family, frame.tilted, frame.peaks, frame.period), frame


@pytest.fixture(scope="module")
def within(teeth_of_frame: tuple[Teeth, _Frame]) -> list[list[int]]:
    """The nodes of each member by looking at every one, and at the exact distance of each of its phases."""
    teeth, frame = teeth_of_frame
    k, total = range(frame.last + 1), np.zeros((len(MEMBERS), frame.last + 1))
    for i, turn in enumerate(teeth.turns):
        num, den = turn.fraction.numerator, turn.fraction.denominator
        away = np.array([min(n * num % den, -n * num % den) / den for n in k])
        total += np.outer(2 * teeth.strengths[:-1, i], (2 * np.pi * away) ** 2)
    inside = total <= frame.bands.at(np.arange(frame.last + 1))
    inside[:, 0] = True
    return [np.flatnonzero(row).tolist() for row in inside]


@pytest.mark.parametrize("most", [0.0, 2_000.0, 1e9], ids=["each by itself", "in groups", "all together"])
def test_members_searched_together_have_their_own_nodes(
    teeth_of_frame: tuple[Teeth, _Frame], within: list[list[int]], most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However they are grouped, each has every node within its budget and no other."""
    teeth, frame = teeth_of_frame
    monkeypatch.setattr(line_groups, "_MOST_TOGETHER", most)
    monkeypatch.setattr(line_groups, "_MOST_FOUND", 1e9)
    asked: list[np.ndarray] = []
    search = Teeth.search
    monkeypatch.setattr(Teeth, "search", lambda self, s, *where: asked.append(s) or search(self, s, *where))
    found = GroupSearch(teeth, frame.bands, frame.last).nodes(ROWS)
    alone = sum(bool((s == 2 * teeth.strengths[m]).all()) for s in asked for m in (1, 2, 3))
    assert (len(asked), alone) == {0.0: (4, 3), 2_000.0: (2, 1), 1e9: (1, 0)}[most]  # two members are the same
    assert sorted(found) == ROWS.tolist()
    for row, nodes in found.items():
        assert nodes.tolist() == within[row]
    assert len({len(nodes) for nodes in found.values()}) == len(MEMBERS) - 1


def test_members_whose_nodes_cannot_be_listed_are_left_out(
    teeth_of_frame: tuple[Teeth, _Frame], monkeypatch: pytest.MonkeyPatch
) -> None:
    teeth, frame = teeth_of_frame
    alone, search = {m: teeth.search(2 * teeth.strengths[m], frame.last, frame.bands) for m in (1, 2, 3)}, Teeth.search

    def searched(self: Teeth, strengths: np.ndarray, *where: object) -> np.ndarray:
        if (strengths <= self.strengths[0] * 2).all():
            raise LatticeTooFineError("too many windows")
        return search(self, strengths, *where)

    monkeypatch.setattr(Teeth, "search", searched)
    found = GroupSearch(teeth, frame.bands, frame.last).nodes(ROWS)
    assert {m: nodes.tolist() for m, nodes in found.items()} == {m: nodes.tolist() for m, nodes in alone.items()}
    assert GroupSearch(teeth, frame.bands, frame.last).nodes(ROWS[:0]) == {}
