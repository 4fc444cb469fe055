"""The nodes of members of a family on the line, each with itself: members that have much in common are searched together.

Paths of one design share most of their mechanisms, so that a search by what they share takes as long as the search for one of
them and leaves each little to look through.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from exactdp.doubles import Floats, Ints
from exactdp.engine.family.line_penalties import Teeth, sampled_nodes
from exactdp.engine.line.plan import SAMPLES
from exactdp.engine.sieve.bands import Bands
from exactdp.errors import LatticeTooFineError

_LOOKS_TOGETHER = 300_000  # of the search for a group: what takes longer is left to its halves
_MOST_TOGETHER = 20_000.0  # nodes expected of a group, each of which every member looks at
_MOST_FOUND = 2 * _MOST_TOGETHER


class GroupSearch:
    """The nodes of members with themselves. Guarantee: none within budget is missed.

    What a group has in common, the least of its members' strengths in each mechanism, gives every node a penalty that is at most
    each member's: the nodes within budget for it include every member's, which its own penalty then tells (docs/theory,
    Theorem 17 (a)). How members are grouped affects speed only.
    """

    def __init__(self, teeth: Teeth, bands: Bands, last: int) -> None:
        self._teeth, self._bands, self._last = teeth, bands, last
        k, self._weights = sampled_nodes(bands, SAMPLES)
        self._squares, self._budgets = teeth.squares(np.arange(len(teeth.places)), k), bands.at(k)

    def nodes(self, rows: Ints) -> dict[int, Ints]:
        """The nodes of members by their rows, as far as they can be listed."""
        teeth, found = self._teeth, dict[int, Ints]()
        groups = [rows] if len(rows) else []
        while groups:
            group = groups.pop()
            own = 2 * teeth.strengths[group]
            common = own.min(axis=0)
            more = (own - common).sum(axis=0)
            if not more.any():  # one member, or several that are the same
                with suppress(LatticeTooFineError):
                    found |= dict.fromkeys(group.tolist(), teeth.search(common, self._last, self._bands))
            elif (k := self._together(common)) is not None:
                found |= {m: teeth.keep(each, k, self._bands) for m, each in zip(group.tolist(), own, strict=True)}
            else:  # apart by the mechanism of which most is not in common
                column = int(np.argmax(more))
                has_more = own[:, column] > common[column]
                groups += [group[has_more], group[~has_more]]
        return found

    def _together(self, common: Floats) -> Ints | None:
        """Nodes that include those of every member of a group; None where they are many or take long to find."""
        if self._expected(common) <= _MOST_TOGETHER:
            with suppress(LatticeTooFineError):
                found = self._teeth.search(common, self._last, self._bands, _LOOKS_TOGETHER)
                return found if len(found) <= _MOST_FOUND else None
        return None

    def _expected(self, strengths: Floats) -> float:
        """About how many nodes are within budget. Heuristic: affects speed only."""
        used = np.flatnonzero(strengths)
        penalties = np.einsum("i,ij->j", strengths[used], self._squares[used])
        return float(self._weights[penalties <= self._budgets].sum())
