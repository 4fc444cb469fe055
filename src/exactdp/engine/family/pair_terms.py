"""The terms of a shared contour, pair by pair, and their sums with the phases of thresholds.

Light pairs have nearly all their nodes in common. Where many of them are asked at the same threshold its phases are computed
once for all; a sum is the same bit for bit either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactdp.doubles import Floats, Ints
from exactdp.engine.lattice.float64 import BLOCK
from exactdp.engine.sieve.phases import angles_at
from exactdp.engine.sieve.windows import ranges

_MATRIX = 1 << 17
_LIGHT = 64  # nodes of a pair that has few
_LARGEST = 1e-9  # of the first term


@dataclass(frozen=True)
class PairTerms:
    """The nodes of all pairs one pair after the other, and what the payoff's coefficients multiply there."""

    nodes: int
    """N on the common lattice."""
    count: Ints
    """How many nodes each pair has."""
    node: Ints
    parts: Floats
    """Real parts for a and for b, imaginary parts for a and for b; of tails for a alone."""
    totals: Floats
    """For each pair: sum of |for_a|, of |for_b|, of the error of for_a and of for_b."""

    @property
    def kinds(self) -> int:
        """1 for tails, whose coefficient b is 0, else 2."""
        return len(self.parts) // 2

    @cached_property
    def _first(self) -> Ints:
        """Where each pair's nodes begin."""
        return np.concatenate(([0], np.cumsum(self.count)[:-1]))

    @cached_property
    def largest(self) -> PairTerms:
        """The same with the largest terms only of pairs that have many. The sizes of the others are errors: bounds hold."""
        sizes = np.hypot(self.parts[: self.kinds], self.parts[self.kinds :])
        many = np.repeat(self.count > _LIGHT, self.count)
        left_out = many & (sizes[0] <= _LARGEST * np.repeat(sizes[0][self._first], self.count))
        keep = ~left_out
        pair_of = np.repeat(np.arange(len(self.count)), self.count)
        others = np.stack([np.bincount(pair_of, size * left_out, len(self.count)) for size in sizes])
        totals = self.totals.copy()
        totals[2 : 2 + self.kinds] += others
        count = np.bincount(pair_of[keep], minlength=len(self.count))
        return PairTerms(self.nodes, count, self.node[keep], self.parts[:, keep], totals)

    def sums(self, pairs: Ints, shifts: Ints) -> tuple[Floats, Floats]:
        """Re sum_k terms_k exp(-2 pi i k shift / N) over each pair's nodes, for both kinds of terms; 0 <= shift < N.

        Of tails there is one kind, which is returned for both: their difference, a slope, is then 0.
        """
        result = np.empty((self.kinds, len(pairs)))
        light = self.count[pairs] <= _LIGHT
        for some, is_light in ((np.flatnonzero(light), True), (np.flatnonzero(~light), False)):
            if len(some):
                result[:, some] = self._sums(pairs[some], shifts[some], is_light)
        return result[0], result[-1]

    def _sums(self, pairs: Ints, shifts: Ints, light: bool) -> Floats:
        count, result = self.count[pairs], np.empty((self.kinds, len(pairs)))
        table = self._phases(shifts, int(count.sum())) if light else None
        for some in _chunks(count):
            n = count[some]
            place = ranges(self._first[pairs[some]], self._first[pairs[some]] + n - 1)
            if table is None:
                turn = angles_at(self.node[place], np.repeat(shifts[some], n), self.nodes)
                cosine, sine = np.cos(turn), np.sin(turn)
            else:
                row, (cosines, sines) = table
                at = np.repeat(row[some], n) + self._shared[1][place]
                cosine, sine = cosines[at], sines[at]
            parts = self.parts.take(place, axis=1)
            parts[: self.kinds] *= cosine
            parts[self.kinds :] *= sine
            parts[: self.kinds] += parts[self.kinds :]
            result[:, some] = segment_sums(parts[: self.kinds], n)
        return result

    @cached_property
    def _shared(self) -> tuple[Ints, Ints]:
        """The different nodes of light pairs, and the place among them of each term's node."""
        nodes = np.unique(self.node[np.repeat(self.count <= _LIGHT, self.count)])
        return nodes, np.searchsorted(nodes, self.node)

    def _phases(self, shifts: Ints, terms: int) -> tuple[Ints, tuple[Floats, Floats]] | None:
        """cos and sin of all different nodes at all different shifts, and where a question's begin; None where that is more work
        than term by term."""
        nodes, _ = self._shared
        asked, row = np.unique(shifts, return_inverse=True)
        if 2 * len(asked) * len(nodes) > terms:
            return None
        turn = angles_at(np.tile(nodes, len(asked)), np.repeat(asked, len(nodes)), self.nodes)
        return row * len(nodes), (np.cos(turn), np.sin(turn))


def _chunks(count: Ints) -> Iterator[slice]:
    """Consecutive questions with about so many terms as are held in memory at once."""
    ends, start = np.cumsum(count), 0
    while start < len(count):
        base = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + _MATRIX, side="right")))
        yield slice(start, stop)
        start = stop


def segment_sums(rows: Floats, count: Ints) -> Floats:
    """Sums over consecutive segments of each row, first in blocks, then over blocks; each depends on its segment alone."""
    first = np.concatenate(([0], np.cumsum(count)[:-1]))
    blocks = -(-count // BLOCK)
    starts = np.repeat(first, blocks) + BLOCK * ranges(np.zeros_like(blocks), blocks - 1)
    inner = np.add.reduceat(rows, starts, axis=1)
    result: Floats = np.add.reduceat(inner, np.concatenate(([0], np.cumsum(blocks)[:-1])), axis=1)
    return result
