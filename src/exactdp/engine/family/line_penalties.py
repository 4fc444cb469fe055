"""The penalties of nodes for the members of a family on the line: how far each phase is from its nearest peak. And how
many nodes are expected to be within budget."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import PHASE_ERROR, SUM_SLACK, Bools, Floats, Ints
from exactdp.engine.family.line_members import LineMembers
from exactdp.engine.line.plan import GOLDEN, SAMPLES
from exactdp.engine.sieve.bands import Bands
from exactdp.engine.sieve.fixed_point import Turn, phases_of_turns
from exactdp.engine.sieve.windows import Comb, distinct, search
from exactdp.mechanisms.loss import Peak, Tilted
from exactdp.mechanisms.theta import untilted_penalty

_LOOKS = 3_000_000  # of the search for the nodes of one composition
_MOST_OF_MEMBER = 30_000.0  # expected nodes of a member with itself over which its pairs are searched one by one
_CLOSER = 32  # times as many samples for what is doubtful
_STAGES = (2, 6, 20)  # mechanisms after which nodes over budget are left
_EXPLICIT = 256  # nodes that are tested in one go
_SQUARES = 1 << 20  # doubles held at once
_PAIRS_AT_ONCE = 256


class Teeth:
    """The peaks of every mechanism on one period: turns per node, spacings, and penalties of nodes."""

    def __init__(
        self, members: LineMembers, tilted: tuple[Tilted, ...], peaks: list[Peak | None], period: Fraction
    ) -> None:
        self.members = members
        self.places = np.array([i for i, p in enumerate(peaks) if p is not None], dtype=np.int64)
        self.turns: list[Turn] = []
        strengths, spacings, noises = [], [], []
        with precision(BITS):
            for one, peak in zip(tilted, peaks, strict=True):
                if peak is not None:
                    turn = one.units[peak.unit] * peak.step / ball(period)
                    self.turns.append(Turn.of(turn))
                    spacings.append(1 / abs(float(turn.mid())))
                    strengths.append(peak.strength)
                    noises.append(peak.noise)
        self._spacings, self._noises, self._each = spacings, np.array(noises), np.array(strengths)
        self._counts = members.counts[:, self.places]
        self.strengths = self._counts * self._each
        """Of each member (the empty one last) in each mechanism that has peaks."""

    def combs(self, strengths: Floats) -> list[Comb]:
        """The peaks of a composition, longest spacing first."""
        found = []
        for i in np.flatnonzero(strengths).tolist():
            spacing, strength = self._spacings[i], float(strengths[i])
            found.append(Comb(spacing, strength * (2 * math.pi / spacing) ** 2, self.turns[i].fraction, strength))
        return sorted(found, key=lambda c: -c.spacing)

    def squares(self, which: Ints, k: Ints) -> Floats:
        """For some mechanisms (rows) the squared distance of each node's phase from the nearest peak, rounded down."""
        v = np.abs(phases_of_turns([self.turns[i] for i in which.tolist()], k))
        v -= 2 * PHASE_ERROR
        np.maximum(v, 0.0, out=v)
        v *= v
        v *= 1 - SUM_SLACK
        return v

    def penalties(self, rows: Ints, k: Ints) -> Floats:
        """The penalty of each node (columns) for some members (rows), rounded down."""
        used = np.flatnonzero(self._counts[rows].any(axis=0))
        result = np.empty((len(rows), len(k)))
        size = max(1, _SQUARES // max(len(used), 1))
        for start in range(0, len(k), size):
            part = slice(start, start + size)
            each = self._each[used][:, None] * self.squares(used, k[part])
            result[:, part] = self.members.sums(rows, self.places[used], each)
        result *= 1 - SUM_SLACK
        return result

    def sharp_penalties(self, rows: Ints, k: Ints) -> Floats:
        """The penalties of nodes for some members (rows) by the noise's own characteristic function where that says more."""
        used = np.flatnonzero(self._counts[rows].any(axis=0))
        result = np.empty((len(rows), len(k)))
        size = max(1, _SQUARES // max(len(used), 1))
        known = self._noises[used] > 0
        for start in range(0, len(k), size):
            part = slice(start, start + size)
            squares = self.squares(used, k[part])
            each = self._each[used][:, None] * squares
            sharper = untilted_penalty(self._noises[used[known]][:, None], np.sqrt(squares[known]))
            each[known] = np.maximum(each[known], sharper)
            result[:, part] = self.members.sums(rows, self.places[used], each)
        result *= 1 - SUM_SLACK
        return result

    def search(self, strengths: Floats, last: int, bands: Bands, looks: int = _LOOKS) -> Ints:
        """The nodes up to the last one whose penalty is within budget, ascending. Guarantee: none is missed.

        Raises LatticeTooFineError where that takes more looks.
        """
        return search(self.combs(strengths), last, bands, lambda k: self.keep(strengths, k, bands), looks)

    def keep(self, strengths: Floats, k: Ints, bands: Bands) -> Ints:
        """The nodes among k whose penalty is within budget, and node 0: the strongest mechanisms decide first."""
        order = np.argsort(-strengths, kind="stable")
        order = order[: int(np.count_nonzero(strengths))]
        budget, penalty = bands.at(k), np.zeros(len(k))
        for stage in np.split(order, _STAGES) if len(k) > _EXPLICIT else [order]:
            if len(stage):
                penalty += strengths[stage] @ self.squares(stage, k) * (1 - SUM_SLACK)
                alive = (penalty <= budget) | (k == 0)
                k, budget, penalty = k[alive], budget[alive], penalty[alive]
        return k


def expected_nodes(teeth: Teeth, bands: Bands, pairs: Ints, most: float) -> tuple[Floats, Bools]:
    """About how many nodes each pair has, and which members too many with themselves to be searched for all partners.

    Where a few samples say that there are too many, many look again: one of a few stands for a hundred thousand nodes in the
    longest bands.
    """
    asked = distinct(teeth.members.both[pairs].ravel())
    first = _Expected(teeth, bands, asked, SAMPLES)
    each, heavy = first.of_pairs(pairs), np.zeros(len(teeth.strengths), dtype=bool)
    heavy[asked] = first.of_members() > _MOST_OF_MEMBER
    left = np.flatnonzero(each > most)
    doubtful = distinct(np.concatenate([teeth.members.both[pairs[left]].ravel(), np.flatnonzero(heavy)]))
    if len(doubtful):
        second = _Expected(teeth, bands, doubtful, _CLOSER * SAMPLES)
        each[left] = second.of_pairs(pairs[left])
        heavy[doubtful] &= second.of_members() > _MOST_OF_MEMBER
    return each, heavy


def sampled_nodes(bands: Bands, samples: int) -> tuple[Ints, Floats]:
    """At most so many nodes of each band, and for how many each of them stands."""
    nodes, weights = [], []
    for low, high in zip(bands.edges[:-1], bands.edges[1:], strict=True):
        first, count = math.floor(max(low, 0.0)) + 1, math.floor(high) - math.floor(max(low, 0.0))
        if count <= samples:
            nodes.append(np.arange(first, first + count))
        else:
            offsets = np.floor((np.arange(samples) * GOLDEN % 1.0) * count).astype(np.int64)
            nodes.append(first + offsets)
        weights.append(np.full(len(nodes[-1]), count / max(len(nodes[-1]), 1)))
    return np.concatenate(nodes), np.concatenate(weights)


class _Expected:
    """How many nodes are within budget for some members, from samples. Heuristic: affects speed and accuracy only."""

    def __init__(self, teeth: Teeth, bands: Bands, rows: Ints, samples: int) -> None:
        self._both = teeth.members.both
        self._row = np.zeros(len(teeth.strengths), dtype=np.int64)
        self._row[rows] = np.arange(len(rows))
        k, self._weights = sampled_nodes(bands, samples)
        self._budgets = bands.at(k).astype(np.float32)
        self._penalties = teeth.penalties(rows, k).astype(np.float32)

    def of_members(self) -> Floats:
        """The nodes of each member with itself."""
        result: Floats = np.einsum("ij,j->i", 2 * self._penalties <= self._budgets, self._weights)
        return result

    def of_pairs(self, pairs: Ints) -> Floats:
        """The nodes of each pair."""
        both = self._row[self._both[pairs]]
        result = np.empty(len(pairs))
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            together = self._penalties[both[part, 0]] + self._penalties[both[part, 1]]
            result[part] = np.einsum("ij,j->i", together <= self._budgets, self._weights)
        return result
