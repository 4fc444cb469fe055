"""The skeleton of a few neighbouring contours of a family: one period, and every node that matters to some pair on one of them.

A node within a pair's budget B is within B/2 for one of its two members (their penalties add up), so the nodes of
the members at half the budget, tested against every partner, include every node of every pair
(docs/theory/engine.md, "All pairs at once").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from exactdp.doubles import SUM_SLACK, Floats, Ints, product
from exactdp.engine.family.members import Members
from exactdp.engine.lattice.peaks import PeakBounds, peak_bounds
from exactdp.engine.lattice.plan import TOLERANCE, Plan, choose_nodes, log_expected, typical_transform
from exactdp.engine.lattice.tilts import Rung
from exactdp.engine.payoff import transform_corners
from exactdp.engine.sieve.bands import Bands, make_bands
from exactdp.engine.sieve.phases import phases
from exactdp.engine.sieve.windows import distinct, sieve
from exactdp.errors import LatticeTooFineError

MOST_NODES = 4_000_000
"""Nodes of all pairs together beyond which contours are not shared (about 500 MB)."""

_SQUARES = 1 << 16  # doubles held at once
_HEAVY = 60_000  # nodes of a member over which its pairs are sieved one by one


@dataclass(frozen=True)
class MemberNodes:
    """The nodes at which one member is needed for some pair, and where."""

    places: Ints
    """Of its pairs' nodes in the skeleton."""
    times: Floats
    """How often the pair has the member: with itself twice."""
    nodes: Ints
    """The different nodes among them."""
    column: Ints
    """For each place which of them."""


@dataclass(frozen=True)
class Skeleton:
    """Nodes for all pairs and for several tilts of one payoff."""

    members: Members
    period: Fraction
    nodes: int
    """N on the common lattice; node k is the same frequency 2 pi k / T for every pair."""
    bands: Bands
    pair_of: Ints
    kept: Ints
    """Node kept[i] belongs to pair pair_of[i]; sorted by pair, then by node."""

    @cached_property
    def of_members(self) -> tuple[MemberNodes, ...]:
        """Where each member is needed."""
        first, second = np.array(self.members.pairs, dtype=np.int64)[self.pair_of].T
        place = np.arange(len(self.kept))
        both = np.concatenate([first, second[second != first]])
        order = np.argsort(both, kind="stable")
        places = np.concatenate([place, place[second != first]])[order]
        ends = np.searchsorted(both[order], np.arange(len(self.members.members) + 1))
        found = []
        for low, high in pairwise(ends.tolist()):
            own = places[low:high]
            nodes = distinct(self.kept[own])
            times = np.where(first[own] == second[own], 2.0, 1.0)
            found.append(MemberNodes(own, times, nodes, np.searchsorted(nodes, self.kept[own])))
        return tuple(found)

    @classmethod
    def build(cls, members: Members, rungs: list[Rung]) -> Skeleton:
        """The skeleton of some rungs: the longest of their periods, the most generous of their budgets."""
        typical, payoff = members.typical, rungs[0].payoff
        wanted, relative = Fraction(0), math.inf
        for where in rungs:
            lowest = lowest_theta(members, where)
            for lattice in typical:
                log_aim = log_expected(lattice, where) + math.log(TOLERANCE)
                wanted = max(wanted, choose_nodes(lattice, where, log_aim, lowest) * lattice.step)
                transform = typical_transform(payoff, float(where.tilt), lattice.h)
                relative = min(relative, log_aim - math.log(transform))
        period, nodes = members.common_period(wanted)
        bounds = [weakest([peak_bounds(lattice, float(r.tilt)) for r in rungs]) for lattice in members.lattices]
        corners = max(transform_corners(payoff, float(r.tilt), float(members.unit)) for r in rungs)
        bands = make_bands(nodes, float(period), corners, 2 * max(b.slack for b in bounds), relative)
        return cls(members, period, nodes, bands, *nodes_of_pairs(members, bounds, period, nodes, bands))

    def plans(self, where: Rung) -> tuple[Plan, ...]:
        """For each distinct step a plan without nodes: tilt, N, and a bound on dropped nodes that holds for all its pairs.

        The bound counts the nodes over budget twice, which leaves as much again for trimming.
        """
        lowest = lowest_theta(self.members, where)
        result = []
        for lattice in self.members.typical:
            own = int(self.period / lattice.step)
            corners = transform_corners(where.payoff, float(where.tilt), lattice.h)
            log_dropped = self.bands.log_dropped_on(own, float(self.period), corners) + math.log(2)
            result.append(Plan(lattice, where.payoff, where.tilt, own, np.empty(0, np.int64), log_dropped, lowest))
        return tuple(result)


def lowest_theta(members: Members, where: Rung) -> tuple[Fraction, float]:
    """A value and an error such that Theta(tilt) of every pair is at least their difference."""
    own = [lattice.log_theta(where.tilt) for lattice in members.lattices]
    value, error = min(own, key=lambda t: t[0] - Fraction(t[1]))
    return 2 * value, 2 * error


def weakest(bounds: list[PeakBounds]) -> PeakBounds:
    """Bounds that hold wherever one of the given ones does."""
    return PeakBounds(
        tuple(min(s) for s in zip(*(b.strengths for b in bounds), strict=True)), max(b.slack for b in bounds)
    )


def nodes_of_pairs(
    members: Members, bounds: list[PeakBounds], period: Fraction, nodes: int, bands: Bands
) -> tuple[Ints, Ints]:
    """Every node that is within budget for some pair, with its pair, sorted.

    Guarantee: none is missed. A pair's penalty is the sum of its members', so at a node within budget one of the two is at most
    half the budget. A member's penalty has the period of its own lattice, and budgets never increase, so its nodes at
    half the budget are translates of those in its own first period. Where a member has too many of them, its pairs are sieved
    one by one.
    """
    strides, strengths = _distinct_strides(members, bounds)
    numbers = _pair_numbers(members)
    last = np.array([int(period / step) // 2 for step in members.steps])
    found, size = _Found(nodes), max(_SQUARES // max(len(strides), 1), 1)
    for member, (lattice, bound) in enumerate(zip(members.own, bounds, strict=True)):
        own_nodes = int(period / lattice.step)
        own = sieve(lattice.strides, tuple(2 * s for s in bound.strengths), own_nodes, bands)
        found.add(numbers[member, member], own)
        others = np.array([j for j in range(len(bounds)) if j != member], dtype=np.int64)
        if len(own) * (nodes // own_nodes) > _HEAVY:
            for other in others:
                number = int(numbers[member, other])
                found.add(number, _sieve_pair(members, bounds, number, period, bands))
        elif len(others):
            doubled = 2 * np.einsum("s,sk->k", bound.strengths, phases(own, lattice.strides, own_nodes) ** 2)
            k = _translates(own, doubled, own_nodes, nodes, bands)
            ends = last[numbers[member, others]]
            for start in range(0, len(k), size):  # what stays in a processor's own memory takes a fifth of the time
                some = k[start : start + size]
                squares = phases(some, strides, nodes) ** 2
                room = bands.at(some) - (1 - SUM_SLACK) * np.einsum("s,sk->k", strengths[member], squares)  # in order
                first = 0
                for end in np.unique(ends).tolist():  # partners on coarse lattices need few nodes
                    here = slice(first, first := int(np.searchsorted(some, end, side="right")))
                    partners = others[ends >= end]
                    penalty = product(strengths[partners], squares[:, here])
                    partner, place = np.nonzero(penalty * (1 - SUM_SLACK) <= room[here])
                    found.add(numbers[member, partners[partner]], some[here][place])
    return found.sorted()


class _Found:
    """Nodes with their pairs, packed into one integer each."""

    def __init__(self, nodes: int) -> None:
        self._base = nodes + 1
        self._keys: list[Ints] = []
        self._count = 0

    def add(self, pairs: Ints | int, k: Ints) -> None:
        self._count += len(k)
        if self._count > MOST_NODES:
            raise LatticeTooFineError(f"more than {MOST_NODES:,} nodes of the Fourier sums of all pairs matter")
        self._keys.append(pairs * self._base + k)

    def sorted(self) -> tuple[Ints, Ints]:
        key = distinct(np.concatenate(self._keys))
        return key // self._base, key % self._base


def _sieve_pair(members: Members, bounds: list[PeakBounds], pair: int, period: Fraction, bands: Bands) -> Ints:
    """The nodes of one pair by a sieve of its own."""
    step, (i, j) = members.steps[pair], members.pairs[pair]
    ratio = int(step / members.unit)
    strides = tuple(a // ratio for m in (i, j) for a in members.lattices[m].strides)
    return sieve(strides, bounds[i].strengths + bounds[j].strengths, int(period / step), bands)


def _translates(own: Ints, doubled: Floats, own_nodes: int, nodes: int, bands: Bands) -> Ints:
    """All k in [0, nodes / 2] that are congruent to plus or minus a node of the first period and within their own budget."""
    shifts = own_nodes * np.arange(nodes // own_nodes // 2 + 1, dtype=np.int64)[:, None]
    k = np.stack([shifts + own, shifts - own])
    keep = (k >= 0) & (2 * k <= nodes) & (doubled * (1 - SUM_SLACK) <= bands.at(k))
    return distinct(k[keep])


def _distinct_strides(members: Members, bounds: list[PeakBounds]) -> tuple[tuple[int, ...], Floats]:
    """The strides that occur in the family, and the strength with which each member has each of them."""
    strides = sorted({a for lattice in members.lattices for a in lattice.strides})
    place = {a: i for i, a in enumerate(strides)}
    strengths = np.zeros((len(bounds), len(strides)))
    for row, lattice, bound in zip(strengths, members.lattices, bounds, strict=True):
        for a, strength in zip(lattice.strides, bound.strengths, strict=True):
            row[place[a]] += strength
    return tuple(strides), strengths


def _pair_numbers(members: Members) -> Ints:
    """The number of the pair of members i and j, in either order."""
    n = len(members.members)
    numbers = np.empty((n, n), dtype=np.int64)
    for number, (i, j) in enumerate(members.pairs):
        numbers[i, j] = numbers[j, i] = number
    return numbers
