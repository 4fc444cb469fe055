"""The skeleton of a few neighbouring contours of a family on the line: a period, a smoothing, and every node that matters to some
pair on one of them.

A node within a pair's budget B is within B/2 for one of its two members (their penalties add up), so the nodes of each member
with itself, tested against every partner, include every node of every pair (docs/theory/any-composition.md, "All pairs").
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp.balls import precision
from exactdp.doubles import FORMULA_SLACK, SUM_SLACK, UNDERFLOW, Bools, Floats, Ints
from exactdp.engine.family.line_groups import GroupSearch
from exactdp.engine.family.line_members import LineMembers, TiltedMembers
from exactdp.engine.family.line_penalties import Teeth, expected_nodes
from exactdp.engine.lattice.tilts import short
from exactdp.engine.line.plan import Aliasing, Falloff
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.bands import Bands
from exactdp.engine.sieve.fixed_point import LARGEST_NODE
from exactdp.engine.sieve.windows import distinct
from exactdp.errors import LatticeTooFineError
from exactdp.mechanisms.loss import Peak, Tilted

MOST_NODES = 4_000_000
"""Nodes of the pairs of one skeleton beyond which they do not share contours."""

_AIMED_AT = 1_000_000.0  # expected nodes of the pairs of one skeleton

_LISTED = 1 << 21  # phases of all nodes up to which every one is looked at
_SQUARES = 1 << 20  # doubles held at once
_LARGEST_TABLE = 1 << 26  # doubles: half a gigabyte
_TIE = 1e-9  # penalties of two members that are closer than this are both the smaller one: more than their rounding


@dataclass(frozen=True)
class _Worst:
    """What the aliasing of Theorem 10 needs to know of several pairs: bounds of log-moments relative to those at the tilt."""

    tilted: TiltedMembers
    pairs: Ints
    bends: bool = False

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
    ) -> tuple[tuple[LineSkeleton, ...], Ints]:
        """The skeletons of some rungs, with smoothing that costs about `width` and everything else a hundred times finer: one,
        or several for batches of pairs where these are very many.

        Pairs of which more than about `most` nodes matter, or whose nodes cannot be listed, are left out, and returned.
        """
        frame = _Frame(members, pairs, rungs, width)
        teeth = Teeth(members, frame.tilted, frame.peaks, frame.period)
        listed = ListedNodes.of(teeth, frame.bands, frame.last, pairs)
        each, heavy = listed.expected(pairs) if listed else expected_nodes(teeth, frame.bands, pairs, most)
        chosen, left = pairs[each <= most], np.ones(len(members.pairs), dtype=bool)
        what = frame.smoothing, frame.period, frame.last, frame.bands, frame.log_dropped_density
        found = []
        search = _NodeSearch(frame, teeth, chosen, listed)
        for places, *nodes in search.batches(heavy, each[each <= most]):
            found.append(cls(members, chosen[places], *what, *nodes))
            left[chosen[places]] = False
        return tuple(found), pairs[left[pairs]]


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


@dataclass(frozen=True)
class ListedNodes:
    """The nodes of members by looking at every one: where smoothing leaves few, that is quicker than a search for each member."""

    teeth: Teeth
    budgets: Floats
    rows: Ints
    """Members of the pairs, and last the empty one."""
    k: Ints
    """Nodes that include every node within budget for some pair."""
    penalties: Floats
    """Of these nodes (columns) for each member (rows)."""

    @classmethod
    def of(cls, teeth: Teeth, bands: Bands, last: int, pairs: Ints) -> ListedNodes | None:
        """All nodes up to the last one; None where these are too many.

        What all members have in common is asked first. Guarantee: a pair's penalty is at least that of its member with the
        smaller one twice, or once where the other one is empty, and so at least what all have in common.
        """
        if last * len(teeth.places) > _LISTED:
            return None
        both, none = teeth.members.both[pairs], len(teeth.members.members)
        rows = np.append(distinct(both[both != none]), none)
        times = np.where(np.isin(rows, both[(both == none).any(axis=1)]), 1.0, 2.0)[:-1]
        common = (times[:, None] * teeth.strengths[rows[:-1]]).min(axis=0)
        k = teeth.keep(common, np.arange(last + 1, dtype=np.int64), bands)
        penalties = np.zeros((len(rows), len(k)))
        penalties[:-1] = teeth.penalties(rows[:-1], k)
        near = (times[:, None] * penalties[:-1] <= bands.at(k)).any(axis=0) | (k == 0)
        return cls(teeth, bands.at(k[near]), rows, k[near], penalties[:, near])

    def of_pair(self, both: Ints) -> Ints:
        """The nodes within budget of a pair, ascending."""
        one, two = np.searchsorted(self.rows, both)
        found: Ints = self.k[(self.penalties[one] + self.penalties[two] <= self.budgets) | (self.k == 0)]
        return found

    def expected(self, pairs: Ints) -> tuple[Floats, Bools]:
        """How many nodes each pair has, and which members too many: none. As `expected_nodes`."""
        one, two = np.searchsorted(self.rows, self.teeth.members.both[pairs]).T
        each = (self.penalties[one] + self.penalties[two] <= self.budgets).sum(axis=1).astype(float)
        return each, np.zeros(len(self.teeth.strengths), dtype=bool)


class _NodeSearch:
    """The search for every node that is within budget for some pair. Guarantee: none is missed."""

    def __init__(self, frame: _Frame, teeth: Teeth, pairs: Ints, listed: ListedNodes | None = None) -> None:
        self._frame, self._teeth, self._last, self._bands = frame, teeth, frame.last, frame.bands
        self._listed = listed
        self._both, self._none = teeth.members.both[pairs], len(teeth.members.members)
        self._parts: list[tuple[Ints, Ints, Floats]] = []
        self._found = 0

    def batches(self, heavy: Bools, expected: Floats) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Batches of pairs with about as many nodes as are `expected` of each pair: their positions, and those within the
        batch and the nodes, sorted. A pair with a `heavy` member is searched by itself.

        Nodes are listed by parabolas and judged by sharper penalties. Of those within budget each pair loses the ones that are
        proved to be negligible: together at most what was dropped before (with the transform and without it). A pair whose
        nodes cannot be listed is in no batch.
        """
        both, strengths = self._both, self._teeth.strengths
        alone = (both == self._none).any(axis=1) | heavy[both].any(axis=1)
        light = self._of_members(np.unique(both[~alone]))
        alone |= ~np.isin(both, list(light)).all(axis=1)
        some = np.flatnonzero(alone)
        some = some[np.argsort(expected[some], kind="stable")]
        singles = self._of_pairs(some)
        listed = ~alone
        listed[list(singles)] = True
        places = np.flatnonzero(listed)
        if not len(places):
            return
        union = distinct(np.concatenate([*singles.values(), *light.values()]))
        if len(strengths) * len(union) > _LARGEST_TABLE:
            raise LatticeTooFineError(f"{len(union):,} nodes of {len(strengths):,} members are too many to be held")
        rows = np.unique(both[places])
        penalties = np.zeros((len(strengths), len(union)))
        penalties[rows] = self._teeth.sharp_penalties(rows, union)
        number = (np.cumsum(expected[places]) / _AIMED_AT).astype(np.int64)
        for batch in (places[number == i] for i in np.unique(number)):
            own = {p: singles[p] for p in batch.tolist() if p in singles}
            try:
                yield batch, *self._nodes_of(batch, own, light, (union, penalties))
            except LatticeTooFineError:
                continue

    def _of_members(self, rows: Ints) -> dict[int, Ints]:
        """The nodes of members with themselves, as far as they can be listed."""
        if self._listed is not None:
            return {m: self._listed.of_pair(np.array([m, m])) for m in rows.tolist()}
        return GroupSearch(self._teeth, self._bands, self._last).nodes(rows)

    def _of_pairs(self, places: Ints) -> dict[int, Ints]:
        """The nodes of pairs by themselves, up to the first of which they cannot be listed: those after it are expected to have
        more."""
        found = {}
        for place in places.tolist():
            try:
                found[place] = self._search(self._both[place])
            except LatticeTooFineError:
                break
        return found

    def _nodes_of(
        self, batch: Ints, singles: dict[int, Ints], light: dict[int, Ints], table: tuple[Ints, Floats]
    ) -> tuple[Ints, Ints]:
        """The positions in a batch of pairs and their nodes, sorted, from the nodes of pairs by themselves and of members."""
        (union, penalties), both = table, self._both
        place = np.full(len(both), -1, dtype=np.int64)
        place[batch] = np.arange(len(batch))
        self._parts, self._found = [], 0
        budgets = self._bands.at(union)
        budgets[union == 0] = math.inf  # never dropped
        for pair, k in singles.items():
            column = np.searchsorted(union, k)
            one, two = both[pair]
            together = penalties[one, column] + penalties[two, column]
            self._add(np.full(len(k), place[pair]), column, together, budgets[column])
        shared = batch[~np.isin(batch, list(singles))]
        number = np.full((len(penalties), len(penalties)), -1, dtype=np.int64)
        number[both[shared, 0], both[shared, 1]] = number[both[shared, 1], both[shared, 0]] = place[shared]
        for member in np.unique(both[shared]).tolist():
            columns = np.searchsorted(union, light[member])
            self._test(number[member], columns, (penalties, penalties[member]), budgets)
        return self._without_negligible(union, len(batch))

    def _search(self, both: Ints) -> Ints:
        """The nodes of two members together."""
        if self._listed is not None:
            return self._listed.of_pair(both)
        return self._teeth.search(self._teeth.strengths[both].sum(axis=0), self._last, self._bands)

    def _test(self, numbers: Ints, columns: Ints, penalties: tuple[Floats, Floats], budgets: Floats) -> None:
        """A member's nodes with every partner (the numbers of their pairs, -1 for none): those within budget together."""
        partners = np.flatnonzero(numbers >= 0)
        size = max(1, _SQUARES // max(len(partners), 1))
        for start in range(0, len(columns), size):
            part = columns[start : start + size]
            others = penalties[0][np.ix_(partners, part)]
            together = others + penalties[1][part]
            smaller = penalties[1][part] <= others * (1 + _TIE)  # else the node is one of the partner's, too
            which, place = np.nonzero((together <= budgets[part]) & smaller)
            column = part[place]
            self._add(numbers[partners[which]], column, together[which, place], budgets[column])

    def _add(self, pair: Ints, column: Ints, together: Floats, budgets: Floats) -> None:
        """Nodes (by their place in the union) with their pairs and penalties, as far as they are within budget."""
        within = together <= budgets
        self._found += int(within.sum())
        if self._found > MOST_NODES:
            raise LatticeTooFineError(f"more than {MOST_NODES:,} nodes of the Fourier sums of all pairs matter")
        self._parts.append((pair[within], column[within], together[within]))

    def _without_negligible(self, union: Ints, pairs: int) -> tuple[Ints, Ints]:
        """All that was found, sorted by pair and node, each once, without the negligible ones."""
        pair, column, together = (np.concatenate(x) for x in zip(*self._parts, strict=True))
        _, first = np.unique(pair * len(union) + column, return_index=True)
        pair, column, together = pair[first], column[first], together[first]
        log_sizes = self._bands.slack - together
        share = np.log(np.bincount(pair, minlength=pairs))[pair]
        with_transform, plain = (weights[column] for weights in self._frame.log_weights(union))
        small = log_sizes + with_transform + share <= self._bands.log_dropped
        small &= log_sizes + plain + share <= self._frame.log_dropped_density
        keep = ~small | (union[column] == 0)
        return pair[keep], union[column[keep]]
