"""Nodes of a family on the line by looking at every one of them, beside the search by windows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from exactdp import DiscreteGaussian, DiscreteLaplace
from exactdp.engine.family.line_contours import ROUGH, LineFamily
from exactdp.engine.family.line_nodes import ListedNodes, _Frame, _NodeSearch
from exactdp.engine.family.line_penalties import Teeth
from exactdp.engine.lattice import tilts
from exactdp.engine.line.tilts import Ladder

COMMON = {DiscreteGaussian("40/3"): 2, DiscreteGaussian("31/9"): 1}
MEMBERS = (
    COMMON,
    {**COMMON, DiscreteGaussian("29/13"): 1, DiscreteGaussian("12/5", 2): 1},
    {**COMMON, DiscreteGaussian("7/3"): 1, DiscreteLaplace("7/3", 2): 1},
    {DiscreteGaussian("9/4"): 3},
)


@pytest.mark.parametrize("y", [0.0, 4.0])
@pytest.mark.parametrize(
    "pairs",
    [((0, 0), (0, 1), (1, 2), (2, 2)), ((0, 1), (1,), (2,)), ((0, 3), (3, 3), (1, 2))],
    ids=["with what all have", "alone and together", "with nothing in common"],
)
def test_nodes_that_are_listed_are_those_that_a_search_finds(pairs: tuple[tuple[int, ...], ...], y: float) -> None:
    family, everyone = LineFamily(MEMBERS, pairs), np.arange(len(pairs))
    ladder = Ladder(family.total(int(np.argmax(family.widest))), tilts.FAMILY)
    frame = _Frame(family, everyone, [ladder.rung(*ladder.place_of(y))], 1e-4)
    teeth = Teeth(family, frame.tilted, frame.peaks, frame.period)
    listed, search = ListedNodes.of(teeth, frame.bands, frame.last, everyone), _NodeSearch(frame, teeth, everyone)
    assert listed is not None
    for both, count in zip(family.both, listed.expected(everyone)[0], strict=True):
        found = search._search(both)
        assert listed.of_pair(both).tolist() == found.tolist()
        assert len(found) - 1 <= count <= len(found) < frame.last


def test_a_long_list_is_not_made() -> None:
    family, everyone = LineFamily(MEMBERS, ((0, 1),)), np.arange(1)
    ladder = Ladder(family.total(0), tilts.FAMILY)
    frame = _Frame(family, everyone, [ladder.rung(*ladder.place_of(3.0))], 1e-4)
    teeth = Teeth(family, frame.tilted, frame.peaks, frame.period)
    assert ListedNodes.of(teeth, frame.bands, 1 << 21, everyone) is None


def test_rough_contours_overlap_the_others_and_do_not_stand_in_for_them() -> None:
    members = {DiscreteGaussian("37/3"): 20, DiscreteGaussian("29/3"): 10}, {DiscreteGaussian("41/4"): 27}
    family, epsilon = LineFamily(members, ((0, 1),)), [Fraction(6)]
    everyone, index = np.arange(1), np.zeros(1, dtype=np.int64)
    ((place, _),) = family.places(everyone, epsilon, index)
    rough = family.evaluate(place, everyone, epsilon, index, rough=ROUGH[0]).bracket
    fine = family.evaluate(place, everyone, epsilon, index).bracket
    again = family.evaluate(place, everyone, epsilon, index, rough=ROUGH[0]).bracket
    assert (fine.upper - fine.lower < 1e-10 * fine.upper).all()
    assert (rough.upper - rough.lower > 1e-7 * rough.upper).all()
    assert (rough.log_lower() <= fine.log_upper()).all()
    assert (fine.log_lower() <= rough.log_upper()).all()
    assert (again.lower == rough.lower).all()
