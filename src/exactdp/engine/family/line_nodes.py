"""The skeleton of a few neighbouring contours of a family on the line: a period, a smoothing, and every node that matters to some
pair on one of them.

A node within a pair's budget B is within B/2 for one of its two members (their penalties add up), so the nodes of each member
with itself, tested against every partner, include every node of every pair (docs/theory/any-composition.md, "All pairs").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import FORMULA_SLACK, PHASE_ERROR, SUM_SLACK, UNDERFLOW, Bools, Floats, Ints, product
from exactdp.engine.family.line_members import LineMembers, TiltedMembers
from exactdp.engine.lattice.tilts import short
from exactdp.engine.line.plan import GOLDEN, SAMPLES, Aliasing, Falloff
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.bands import Bands
from exactdp.engine.sieve.fixed_point import LARGEST_NODE, Turn, phases_of_turns
from exactdp.engine.sieve.windows import Comb, distinct, search
from exactdp.errors import LatticeTooFineError
from exactdp.mechanisms.loss import Peak, Tilted
from exactdp.mechanisms.theta import untilted_penalty

MOST_NODES = 4_000_000
"""Nodes of all pairs together beyond which contours are not shared."""

_LOOKS = 3_000_000  # of the search for one member's nodes
_MOST_OF_MEMBER = 30_000.0  # expected nodes of a member with itself over which its pairs are searched one by one
_CLOSER = 32  # times as many samples for what is doubtful
_STAGES = (2, 6, 20)  # mechanisms after which nodes over budget are left
_EXPLICIT = 256  # nodes that are tested in one go
_SQUARES = 1 << 20  # doubles held at once
_PAIRS_AT_ONCE = 256
_LARGEST_TABLE = 1 << 26  # doubles: half a gigabyte


@dataclass(frozen=True)
class _Worst:
    """What the aliasing of Theorem 10 needs to know of several pairs: bounds of log-moments relative to those at the tilt."""

    tilted: TiltedMembers
    pairs: Ints

    @property
    def widest(self) -> float:
        return float(self.tilted.members.widest[self.pairs].max())

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        return 0.0, float(self.tilted.members.widest[self.pairs].min())

    def log_moment_upper(self, nu: float) -> float:
        return self.tilted.log_moment_upper(nu, self.pairs)


def class_aliasing(tilted: TiltedMembers, pairs: Ints, payoff: Payoff, smoothing: Fraction) -> Aliasing:
    """The bound of the aliased terms of every one of some pairs, each in units of its own exp(log_moment - tilt y)."""
    z = tilted.tilt
    return Aliasing(_Worst(tilted, pairs), (payoff, float(z)), float(smoothing), float(smoothing * z * (z + 1) / 2))


@dataclass(frozen=True)
class LineSkeleton:
    """Nodes for all pairs of a class and for several tilts of one payoff."""

    members: LineMembers
    pairs: Ints
    smoothing: Fraction
    period: Fraction
    last: int
    bands: Bands
    log_dropped_density: float
    pair_of: Ints
    """By position in `pairs`."""
    kept: Ints
    """Node kept[i] belongs to pair pair_of[i]; sorted by pair, then by node."""

    @cached_property
    def counts(self) -> Ints:
        """How many nodes each pair has."""
        return np.bincount(self.pair_of, minlength=len(self.pairs))

    @classmethod
    def build(
        cls, members: LineMembers, pairs: Ints, rungs: list[LineRung], width: float, most: float
    ) -> tuple[LineSkeleton | None, Ints]:
        """The skeleton of some rungs, with smoothing that costs about `width` and everything else a hundred times finer.

        Pairs of which more than about `most` nodes matter are left out, and returned.
        """
        frame = _Frame(members, pairs, rungs, width)
        teeth = _Teeth(members, frame.tilted, frame.peaks, frame.period)
        left, heavy = _too_many(teeth, frame.bands, pairs, most)
        chosen = pairs[~left]
        if not len(chosen):
            return None, pairs
        found = _NodeSearch(frame, teeth, chosen).nodes(heavy)
        what = frame.smoothing, frame.period, frame.last, frame.bands, frame.log_dropped_density
        return cls(members, chosen, *what, *found), pairs[left]


class _Frame:
    """Smoothing, period and bands that serve every pair of a class on some rungs."""

    def __init__(self, members: LineMembers, pairs: Ints, rungs: list[LineRung], width: float) -> None:
        tilted = [members.under(r.tilt) for r in rungs]
        tilts = [float(r.tilt) for r in rungs]
        # the largest corners serve all: |V| / V(tilt) grows with them
        self._corners = max(abs(t) for t in tilts), max(1 + t for t in tilts)
        self.smoothing = short(min(width / (self._corners[0] * self._corners[1]), 1.0))
        own = [float(t.spread) for t in tilted[0].tilted]
        least = float(members.of_pairs(np.array(own), pairs).min())
        if least >= self.smoothing:
            self.smoothing = Fraction(0)
        spread = least * (1 - SUM_SLACK) + float(self.smoothing)
        widest = members.widest[pairs]
        self._typical = members.total(int(pairs[int(np.argmax(widest))]))
        variances = [max(self._typical.mean_variance(t)[1], 1e-30 * self._typical.widest, UNDERFLOW) for t in tilts]
        self._log_aim = math.log(max(1e-16, 1e-3 * width)) - 0.5 * math.log(2 * math.pi * max(variances)) - 1
        self.tilted = tilted[0].tilted  # units are the same under every tilt
        self.peaks = _weakest([t.tilted for t in tilted])
        slacks = np.array([0.0 if p is None else p.slack for p in self.peaks])
        self._slack = float(members.of_pairs(slacks, pairs).max()) * (1 + SUM_SLACK)
        self.period = short(max(self._period(r, v) for r, v in zip(rungs, variances, strict=True)))
        self._falloff = Falloff(self._corners, spread, float(self.period))
        self.last = self._last_node()

    def _period(self, where: LineRung, variance: float) -> float:
        """The period at which aliasing is as small as the aim, by the widest pair. Heuristic: affects accuracy only."""
        with precision(64):
            z = where.tilt
            log_moment = float(self._typical.log_moment(z).mid()) + float(self.smoothing * z * (z + 1) / 2)
        aliasing = Aliasing(self._typical, (where.payoff, float(z)), float(self.smoothing), log_moment)
        corners = abs(float(z)), 1 + float(z)
        log_aim = self._log_aim - math.log(corners[0] * corners[1])
        return aliasing.period([where.low, where.high], log_aim, variance, -min(self._log_aim, -1.0))

    def _last_node(self) -> int:
        last = self._falloff.last_node(self._log_aim)
        if last * len(self._typical.parts) >= LARGEST_NODE:
            raise LatticeTooFineError("The losses of these pairs are out of the reach of a shared Fourier sum.")
        return math.ceil(last) + 1

    @cached_property
    def bands(self) -> Bands:
        """The budgets."""
        return self._falloff.bands(self.last, self._log_aim, self._slack)

    @cached_property
    def log_dropped_density(self) -> float:
        """The logarithm of the bound of dropped nodes for the sum without the transform."""
        return self._falloff.log_dropped_density(self.bands)

    def log_weights(self, k: Ints) -> tuple[Floats, Floats]:
        """log of 2/T times what surrounds |cf| at each node, relative to its value at the tilt: with the transform, without."""
        omega = np.maximum(k, 1) * (2 * math.pi / float(self.period) * (1 - FORMULA_SLACK))
        plain = math.log(2 / float(self.period)) - self._falloff.spread * omega * omega / 2 + SUM_SLACK
        return plain + sum(np.log(np.minimum(1.0, c / omega)) for c in self._corners), plain


def _weakest(tilts: list[tuple[Tilted, ...]]) -> list[Peak | None]:
    """For each mechanism a peak that holds under every one of some tilts; None where there is none in common."""
    result: list[Peak | None] = []
    for same in zip(*(tuple(t.peak for t in tilted) for tilted in tilts), strict=True):
        peaks = [p for p in same if p is not None]
        if len(peaks) < len(same) or len({(p.unit, p.step) for p in peaks}) > 1:
            result.append(None)
        else:
            one = peaks[0]
            strength, slack = min(p.strength for p in peaks), max(p.slack for p in peaks)
            noise = one.noise if all(p.noise for p in peaks) else 0.0
            result.append(Peak(one.unit, strength, slack, one.step, noise))
    return result


class _Teeth:
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

    def penalties(self, strengths: Floats, k: Ints) -> Floats:
        """The penalty of each node (columns) for compositions with these strengths (rows), rounded down."""
        used = np.flatnonzero(strengths.any(axis=0))
        result = np.empty((len(strengths), len(k)))
        size = max(1, _SQUARES // max(len(used), 1))
        for start in range(0, len(k), size):
            part = slice(start, start + size)
            result[:, part] = product(strengths[:, used], self.squares(used, k[part]))
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
            result[:, part] = product(self._counts[np.ix_(rows, used)], each)
        result *= 1 - SUM_SLACK
        return result

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


def _too_many(teeth: _Teeth, bands: Bands, pairs: Ints, most: float) -> tuple[Bools, Bools]:
    """Which pairs have more than about `most` nodes, and which members too many with themselves to be searched for all partners.

    Where a few samples say so, many look again: one of a few stands for a hundred thousand nodes in the longest bands.
    """
    everyone = np.arange(len(teeth.strengths))
    first = _Expected(teeth, bands, everyone, SAMPLES)
    left, heavy = first.of_pairs(pairs) > most, first.of_members() > _MOST_OF_MEMBER
    doubtful = distinct(np.concatenate([teeth.members.both[pairs[left]].ravel(), everyone[heavy]]))
    if len(doubtful):
        second = _Expected(teeth, bands, doubtful, _CLOSER * SAMPLES)
        left[left] = second.of_pairs(pairs[left]) > most
        heavy[doubtful] &= second.of_members() > _MOST_OF_MEMBER
    return left, heavy


class _Expected:
    """How many nodes are within budget for some members, from samples. Heuristic: affects speed and accuracy only."""

    def __init__(self, teeth: _Teeth, bands: Bands, rows: Ints, samples: int) -> None:
        self._both = teeth.members.both
        self._row = np.zeros(len(teeth.strengths), dtype=np.int64)
        self._row[rows] = np.arange(len(rows))
        nodes, weights = [], []
        for low, high in zip(bands.edges[:-1], bands.edges[1:], strict=True):
            first, count = math.floor(max(low, 0.0)) + 1, math.floor(high) - math.floor(max(low, 0.0))
            if count <= samples:
                nodes.append(np.arange(first, first + count))
            else:
                offsets = np.floor((np.arange(samples) * GOLDEN % 1.0) * count).astype(np.int64)
                nodes.append(first + offsets)
            weights.append(np.full(len(nodes[-1]), count / max(len(nodes[-1]), 1)))
        self._weights, k = np.concatenate(weights), np.concatenate(nodes)
        self._budgets = bands.at(k)
        self._penalties = teeth.penalties(teeth.strengths[rows], k)

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


class _NodeSearch:
    """The search for every node that is within budget for some pair. Guarantee: none is missed."""

    def __init__(self, frame: _Frame, teeth: _Teeth, pairs: Ints) -> None:
        if len(pairs) * (frame.last + 1) >= 1 << 62:
            raise LatticeTooFineError("The nodes of all pairs together are too many to be numbered.")
        self._frame, self._teeth, self._last, self._bands = frame, teeth, frame.last, frame.bands
        self._both, self._none = teeth.members.both[pairs], len(teeth.members.members)
        self._parts: list[tuple[Ints, Ints, Floats]] = []
        self._found = 0

    def nodes(self, heavy: Bools) -> tuple[Ints, Ints]:
        """The positions of pairs and their nodes, sorted. A pair with a `heavy` member is searched by itself.

        Nodes are listed by parabolas and judged by sharper penalties. Of those within budget each pair loses the ones that are
        proved to be negligible: together at most what was dropped before (with the transform and without it).
        """
        both, strengths = self._both, self._teeth.strengths
        alone = (both == self._none).any(axis=1) | heavy[both].any(axis=1)
        singles = [(int(p), self._search(strengths[both[p]].sum(axis=0))) for p in np.flatnonzero(alone)]
        light = [(int(m), self._search(2 * strengths[m])) for m in np.unique(both[~alone])]
        union = distinct(np.concatenate([k for _, k in (*singles, *light)]))
        if len(strengths) * len(union) > _LARGEST_TABLE:
            raise LatticeTooFineError(f"{len(union):,} nodes of {len(strengths):,} members are too many to be held")
        rows = np.unique(both)
        penalties = np.zeros((len(strengths), len(union)))
        penalties[rows] = self._teeth.sharp_penalties(rows, union)
        budgets = self._bands.at(union)
        budgets[union == 0] = math.inf  # never dropped
        for pair, k in singles:
            column = np.searchsorted(union, k)
            one, two = both[pair]
            together = penalties[one, column] + penalties[two, column]
            self._add(np.full(len(k), pair), column, together, budgets[column])
        number = np.full((len(strengths), len(strengths)), -1, dtype=np.int64)
        number[both[~alone, 0], both[~alone, 1]] = number[both[~alone, 1], both[~alone, 0]] = np.flatnonzero(~alone)
        for member, k in light:
            self._test(number[member], np.searchsorted(union, k), (penalties, penalties[member]), budgets)
        return self._without_negligible(union)

    def _search(self, strengths: Floats) -> Ints:
        teeth, bands = self._teeth, self._bands
        return search(teeth.combs(strengths), self._last, bands, lambda k: teeth.keep(strengths, k, bands), _LOOKS)

    def _test(self, numbers: Ints, columns: Ints, penalties: tuple[Floats, Floats], budgets: Floats) -> None:
        """A member's nodes with every partner (the numbers of their pairs, -1 for none): those within budget together."""
        partners = np.flatnonzero(numbers >= 0)
        size = max(1, _SQUARES // max(len(partners), 1))
        for start in range(0, len(columns), size):
            part = columns[start : start + size]
            together = penalties[0][np.ix_(partners, part)] + penalties[1][part]
            which, place = np.nonzero(together <= budgets[part])
            column = part[place]
            self._add(numbers[partners[which]], column, together[which, place], budgets[column])

    def _add(self, pair: Ints, column: Ints, together: Floats, budgets: Floats) -> None:
        """Nodes (by their place in the union) with their pairs and penalties, as far as they are within budget."""
        within = together <= budgets
        self._found += int(within.sum())
        if self._found > MOST_NODES:
            raise LatticeTooFineError(f"more than {MOST_NODES:,} nodes of the Fourier sums of all pairs matter")
        self._parts.append((pair[within], column[within], together[within]))

    def _without_negligible(self, union: Ints) -> tuple[Ints, Ints]:
        """All that was found, sorted by pair and node, each once, without the negligible ones."""
        pair, column, together = (np.concatenate(x) for x in zip(*self._parts, strict=True))
        _, first = np.unique(pair * len(union) + column, return_index=True)
        pair, column, together = pair[first], column[first], together[first]
        log_sizes = self._bands.slack - together
        share = np.log(np.bincount(pair, minlength=len(self._both)))[pair]
        with_transform, plain = (weights[column] for weights in self._frame.log_weights(union))
        small = log_sizes + with_transform + share <= self._bands.log_dropped
        small &= log_sizes + plain + share <= self._frame.log_dropped_density
        keep = ~small | (union[column] == 0)
        return pair[keep], union[column[keep]]
