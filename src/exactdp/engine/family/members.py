"""The members of a family and their pairs: everything that does not depend on the question asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from exactdp.doubles import Ints
from exactdp.engine.lattice.lattice import Group, Lattice, common_step
from exactdp.errors import LatticeTooFineError
from exactdp.mechanisms.mechanism import Mechanism

LARGEST_PERIOD_STEPS = 3_000_000_000
"""Nodes of the common period beyond which products of nodes and strides would leave 64 bits."""


@dataclass(frozen=True)
class Members:
    """Compositions of which any two may be released together."""

    members: tuple[tuple[Group, ...], ...]

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All unordered pairs of members by position, those with themselves included."""
        n = len(self.members)
        return tuple((i, j) for i in range(n) for j in range(i, n))

    @cached_property
    def own(self) -> tuple[Lattice, ...]:
        """The members on lattices of their own."""
        return tuple(Lattice(groups) for groups in self.members)

    @cached_property
    def unit(self) -> Fraction:
        """The step of the lattice that holds all members."""
        return common_step(lattice.step for lattice in self.own)

    @cached_property
    def lattices(self) -> tuple[Lattice, ...]:
        """The members on the common lattice."""
        return tuple(Lattice(groups, self.unit) for groups in self.members)

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The step of each pair."""
        own = [lattice.step for lattice in self.own]
        both = cache(lambda one, two: common_step((one, two)))  # members have few different steps
        return tuple(both(own[i], own[j]) for i, j in self.pairs)

    @cached_property
    def step_of(self) -> tuple[tuple[Fraction, ...], Ints]:
        """The distinct steps, and for each pair which of them is its own."""
        distinct = tuple(sorted(set(self.steps)))
        place = {step: i for i, step in enumerate(distinct)}
        return distinct, np.array([place[step] for step in self.steps], dtype=np.int64)

    @cached_property
    def typical(self) -> tuple[Lattice, ...]:
        """For each distinct step the lattice of one pair that has it: it stands for all where only step and spread matter."""
        distinct, which = self.step_of
        first = [int(np.argmax(which == i)) for i in range(len(distinct))]
        return tuple(self.lattice(p) for p in first)

    @cached_property
    def can_share(self) -> bool:
        """Whether contours can be shared: one spread, smooth noise (so that the tilts fit all pairs), a common period."""
        if len({lattice.spread for lattice in self.own}) > 1 or not all(lattice.is_smooth for lattice in self.own):
            return False
        # pairs of a member with itself have its step, so that a common period is at least this long
        least = _common_multiple(lattice.step for lattice in self.own)
        if least / self.unit > LARGEST_PERIOD_STEPS:
            return False
        try:  # periods are from about 8 to a few hundred standard deviations long
            deviation = math.sqrt(self.lattice(int(np.argmin(self.step_of[1]))).r)
            short, long = (self.common_period(Fraction(n * deviation)) for n in (8, 500))
        except LatticeTooFineError:
            return False
        return short[1] < long[1]

    def typical_of(self, pair: int) -> Lattice:
        """The typical lattice of a pair's step."""
        return self.typical[int(self.step_of[1][pair])]

    def groups(self, pair: int) -> tuple[Group, ...]:
        """The mechanisms of a pair."""
        counts: Counter[tuple[Fraction, int]] = Counter()
        for member in self.pairs[pair]:
            for g in self.members[member]:
                counts[g.sigma2, g.sensitivity] += g.count
        return tuple(Group(*kind, count) for kind, count in sorted(counts.items()))

    def mechanisms(self, pair: int) -> dict[Mechanism, int]:
        """The same as a composition takes them."""
        return {g.mechanism: g.count for g in self.groups(pair)}

    def lattice(self, pair: int) -> Lattice:
        """The lattice of a pair."""
        return Lattice(self.groups(pair))

    def common_period(self, wanted: Fraction) -> tuple[Fraction, int]:
        """The least period from `wanted` on that is a multiple of every pair's step, and its number of common steps."""
        multiple = _common_multiple(self.step_of[0])
        period = math.ceil(wanted / multiple) * multiple
        nodes = period / self.unit
        if period > 2 * wanted or nodes > LARGEST_PERIOD_STEPS:
            raise LatticeTooFineError(
                f"The pairs have no common period of less than {LARGEST_PERIOD_STEPS:.0e} steps of {float(self.unit):.3g}."
            )
        return period, int(nodes)


def _common_multiple(steps: Iterable[Fraction]) -> Fraction:
    """The least common multiple of some steps."""
    return 1 / common_step(1 / step for step in steps)
