"""The members of a family whose losses share no lattice: any symmetric noise, in pairs or alone.

Everything here is independent of the question asked. A pair's loss is the sum of its members', so a table of how often each
member has each mechanism says all there is to say about every pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, precision
from exactdp.cache import Recent
from exactdp.doubles import POWER_SLACK, UNDERFLOW, UNIT, Floats, Ints, product
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.mechanisms.loss import Loss, Tilted
from exactdp.mechanisms.mechanism import Mechanism

_SAME_CLASS = 1.1  # the largest spread of a class over its smallest: tilts fit all pairs of a class
_MOST_CLASSES = 12
_TILTS_HELD = 8


@dataclass(frozen=True)
class LineMembers:
    """Compositions (`members`), and which of them are released together: one or two for each pair, by position."""

    members: tuple[Mapping[Mechanism, int], ...]
    pairs: tuple[tuple[int, ...], ...]
    bases: tuple[Mapping[Mechanism, int], ...] = ()
    made_of: tuple[tuple[int, ...], ...] = ()
    """Where members are sums of fewer compositions, the `bases`: of which of them each member is made. Affects speed only."""
    _under: Recent[Fraction, TiltedMembers] = field(
        default_factory=lambda: Recent(_TILTS_HELD), init=False, repr=False, compare=False
    )

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The different mechanisms of all members."""
        return tuple(dict.fromkeys(m for member in self.members for m in member))

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """The loss of each of them."""
        return tuple(m.loss() for m in self.mechanisms)

    @cached_property
    def counts(self) -> Floats:
        """How often each member has each mechanism; the last row is a member without any."""
        return self._table(self.members)

    def _table(self, compositions: tuple[Mapping[Mechanism, int], ...]) -> Floats:
        """How often each composition has each mechanism, and a last row for none."""
        place = {m: i for i, m in enumerate(self.mechanisms)}
        result = np.zeros((len(compositions) + 1, len(place)))
        for row, member in zip(result, compositions, strict=False):
            for mechanism, count in member.items():
                row[place[mechanism]] = count
        return result

    @cached_property
    def _base_counts(self) -> Floats:
        return self._table(self.bases)

    @cached_property
    def _base_places(self) -> Ints:
        """For each member, and for the one without any, its bases, filled up with the empty one."""
        most, none = max(map(len, self.made_of)), len(self.bases)
        return np.array([(*found, *[none] * most)[:most] for found in (*self.made_of, ())], dtype=np.int64)

    def sums(self, rows: Ints, used: Ints, each: Floats) -> Floats:
        """For some members (rows) the sums over the mechanisms that are `used` of what `each` of these has at some columns.

        A sum has at most `terms(rows)` terms, all of one sign where `each` is: bases are summed once for all members.
        """
        if not self.made_of:
            return product(self.counts[np.ix_(rows, used)], each)
        own, places = product(self._base_counts[:, used], each), self._base_places[rows]
        result: Floats = own[places[:, 0]]
        for column in places.T[1:]:
            result += own[column]
        return result

    def terms(self, rows: Ints) -> int:
        """The most terms of a sum over the mechanisms of one of some members."""
        if not self.made_of:
            return int((self.counts[rows] != 0).sum(axis=1).max(initial=0))
        own = (self._base_counts != 0).sum(axis=1)
        most = int(own[self._base_places[rows]].sum(axis=1).max(initial=0))
        return most + int(self._base_places.shape[1])

    @cached_property
    def both(self) -> Ints:
        """The two members of each pair; the empty one where there is only one."""
        none = len(self.members)
        return np.array([(*p, none)[:2] for p in self.pairs], dtype=np.int64).reshape(-1, 2)

    def of_pairs(self, each: Floats, chosen: Ints | None = None) -> Floats:
        """The sum over the mechanisms of each pair (or of some pairs) of a number that each mechanism has."""
        own = self.counts @ each
        both = self.both if chosen is None else self.both[chosen]
        result: Floats = own[both[:, 0]] + own[both[:, 1]]
        return result

    def total(self, pair: int) -> TotalLoss:
        """The loss of one pair."""
        counts = self.counts[self.both[pair]].sum(axis=0)
        return TotalLoss(tuple(Part(self.losses[i], int(counts[i])) for i in np.flatnonzero(counts)))

    def composition(self, pair: int) -> dict[Mechanism, int]:
        """The mechanisms of one pair."""
        counts = self.counts[self.both[pair]].sum(axis=0)
        return {self.mechanisms[i]: int(counts[i]) for i in np.flatnonzero(counts)}

    @cached_property
    def widest(self) -> Floats:
        """For each pair an upper estimate of the variance of its loss under any tilt. Heuristic: affects accuracy only."""
        return self.of_pairs(np.array([loss.widest for loss in self.losses]))

    @cached_property
    def classes(self) -> tuple[Ints, ...]:
        """The pairs in classes of about the same spread, each of which has contours of its own."""
        order = np.argsort(self.widest, kind="stable")
        sizes = self.widest[order]
        classes, start = [], 0
        for i in range(1, len(order) + 1):
            if i == len(order) or sizes[i] > _SAME_CLASS * sizes[start]:
                classes.append(np.sort(order[start:i]))
                start = i
        return tuple(classes)

    @cached_property
    def class_of(self) -> Ints:
        """The class of each pair."""
        result = np.empty(len(self.pairs), dtype=np.int64)
        for i, pairs in enumerate(self.classes):
            result[pairs] = i
        return result

    def under(self, tilt: Fraction) -> TiltedMembers:
        """The members under a tilt; those of the last few tilts are held."""
        return self._under.get(tilt, lambda: TiltedMembers(self, tilt))

    @cached_property
    def can_share(self) -> bool:
        """Whether contours can be shared: losses that are symmetric, always finite, without an end for any pair; few classes."""
        if not all(loss.has_transform and loss.reversed() is loss and not loss.lost for loss in self.losses):
            return False
        endless = self.of_pairs(np.array([float(loss.ends[1] is None) for loss in self.losses]))
        return bool((endless > 0).all()) and len(self.classes) <= _MOST_CLASSES


@dataclass(frozen=True)
class TiltedMembers:
    """The mechanisms of a family under one tilt."""

    members: LineMembers
    tilt: Fraction

    @cached_property
    def tilted(self) -> tuple[Tilted, ...]:
        """Each mechanism's loss under the tilt."""
        with precision(BITS):
            return tuple(loss.tilted(self.tilt) for loss in self.members.losses)

    @cached_property
    def log_moments(self) -> tuple[Floats, Floats, Floats]:
        """log E e^{tilt L} of each member as a sum of two doubles, and a bound of the error of that sum."""
        rows = np.zeros((3, len(self.members.counts)))
        with precision(BITS):
            each = [loss.log_moment(self.tilt) for loss in self.members.losses]
            for column, counts in zip(rows.T, self.members.counts, strict=True):
                exact = sum((int(counts[i]) * each[i] for i in np.flatnonzero(counts)), arb(0))
                column[0] = float(exact.mid())
                rest = exact - arb(float(column[0]))
                column[1] = float(rest.mid())
                column[2] = float(rest.rad()) + POWER_SLACK * abs(column[1]) + UNDERFLOW
        return rows[0], rows[1], rows[2]

    def log_moment_upper(self, nu: float, pairs: Ints) -> float:
        """A double above log E e^{nu L} - log E e^{tilt L} of every one of some pairs."""
        each = np.array([loss.log_moment_upper(nu) for loss in self.members.losses])
        upper, size = self.members.of_pairs(each, pairs), self.members.of_pairs(np.abs(each), pairs)
        one, two = self.members.both[pairs].T
        own = self.log_moments[0][one] + self.log_moments[0][two]
        slack = POWER_SLACK + UNIT * len(each)  # a sum in any order loses a unit for each of its terms
        return float(np.max(upper - own + slack * (size + np.abs(own) + 1)))
