"""All pairs of any design at once: the contours of a family whose losses share no lattice.

On the line, too, the moment function of a pair is the product of its members'. One tilt, one period and one smoothing serve all
pairs of a class; every mechanism is evaluated once at the nodes that matter to some pair, members and pairs are sums of
logarithms, and a threshold then costs a product and a sum over each pair's nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from exactdp import doubles
from exactdp.brackets import Bracket
from exactdp.cache import Recent
from exactdp.doubles import ACCOUNT_SLACK, SUM_SLACK, UNIT, Floats, Ints
from exactdp.engine.family.line_members import LineMembers, TiltedMembers
from exactdp.engine.family.line_nodes import LineSkeleton, class_aliasing
from exactdp.engine.family.line_terms import FamilyTerms, evaluated
from exactdp.engine.family.pair_terms import segment_sums
from exactdp.engine.lattice.contours import Values
from exactdp.engine.lattice.float64 import BLOCK, PHASE_UNITS, VALUE_UNITS
from exactdp.engine.lattice.tilts import FAMILY, Positions
from exactdp.engine.line.float64 import LineSums
from exactdp.engine.line.plan import Aliasing
from exactdp.engine.line.tilts import Ladder, LineRung
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.fixed_point import phases_of_bits, turn_bits
from exactdp.engine.sieve.windows import distinct, ranges
from exactdp.errors import AccuracyError, LatticeTooFineError

Width = tuple[float, float]
"""What smoothing may cost, relative to delta, and the number of nodes of a pair beyond which it is not taken."""

Widths = tuple[Width, Width]
"""For most pairs, and for those of more nodes."""

WIDTHS: Widths = ((5e-12, 30_000.0), (2e-11, 100_000.0))
"""Where nodes are still more than that, a grid takes less time (line_grid.py)."""

ROUGH: tuple[Widths, ...] = (((1e-4, 3_000.0), (1e-3, 30_000.0)), ((1e-6, 3_000.0), (1e-5, 30_000.0)))
"""The same where bounds about 1e-4 or 1e-6 wide will do, in a fraction of the time."""

TOGETHER = 2
"""Rungs that share a skeleton; rough contours do not, which is quicker where there is one question only."""

ALONE, FINE = (2e-11, 400_000.0), (1e-12, 400_000.0)
"""For one pair by itself, and where that is wide: next to an atom of its loss smoothing costs more."""

DROPPED = 3
"""Nodes are dropped by their bands, by sharper penalties and by their actual sizes: each time at most as much."""

_CONTOURS_HELD = 32
_HIGHEST_RUNG = 20  # 80 deviations; what is beyond is left to the pairs' own contours
_SKELETONS_HELD = 24
_TABLE = 1 << 22  # doubles held at once
_LIGHT = 4.0  # times the nodes of most pairs
_FEW = 256  # terms at one threshold for which sharing its phases is not worth while
Place = tuple[int, Payoff, int]
"""Class, payoff and index of a rung."""

_SECOND_DOUBLE = 1e-18  # more than the rounding of the second of two doubles that add up to a logarithm below 1e13


@dataclass(frozen=True)
class LineFamily(LineMembers):
    """The members with the contours of all their pairs, built when first needed."""

    widths: Widths = WIDTHS
    together: int = TOGETHER
    positions: Positions = FAMILY
    _contours: Recent[tuple[Place, Widths | None], tuple[LineFamilyContour, ...]] = field(
        default_factory=lambda: Recent(_CONTOURS_HELD), init=False, repr=False, compare=False
    )
    _own_contours: Recent[tuple[Place, int, Width], tuple[LineFamilyContour, ...]] = field(
        default_factory=lambda: Recent(_CONTOURS_HELD), init=False, repr=False, compare=False
    )
    _some_contours: Recent[tuple[Place, bytes], tuple[LineFamilyContour, ...]] = field(
        default_factory=lambda: Recent(_CONTOURS_HELD), init=False, repr=False, compare=False
    )
    _skeletons: Recent[tuple[int, Payoff, int, int, Width], tuple[tuple[LineSkeleton, ...], Ints]] = field(
        default_factory=lambda: Recent(_SKELETONS_HELD), init=False, repr=False, compare=False
    )

    @cached_property
    def ladders(self) -> tuple[Ladder, ...]:
        """The tilts of each class: those of its widest pair."""
        typical = (pairs[int(np.argmax(self.widest[pairs]))] for pairs in self.classes)
        return tuple(Ladder(self.total(int(p)), self.positions) for p in typical)

    def contours(self, place: Place, rough: Widths | None = None) -> tuple[LineFamilyContour, ...]:
        """The contours of one rung of a class, each for some of its pairs; none for pairs that cannot share.

        With `rough`, of these widths in place of the family's own.
        """
        if place[2] > _HIGHEST_RUNG:
            return ()
        where = self.ladders[place[0]].rung(*place[1:])
        plan, skeletons = LineFamilyContour.plan, self._skeletons_of
        return self._contours.get((place, rough), lambda: tuple(plan(s, where) for s in skeletons(place, rough)))

    def own_contours(self, place: Place, pair: int, width: Width) -> tuple[LineFamilyContour, ...]:
        """A contour of one rung for one pair by itself; none where that takes too many nodes."""

        build = partial(self._contours_of, place, np.array([pair]), (width,))
        return self._own_contours.get((place, pair, width), build) if place[2] <= _HIGHEST_RUNG else ()

    def some_contours(self, place: Place, some: Ints) -> tuple[LineFamilyContour, ...]:
        """The contours of one rung for some of its pairs, which take less time where these have fewer nodes than the others."""
        build = partial(self._contours_of, place, some, self.widths)
        return self._some_contours.get((place, some.tobytes()), build) if place[2] <= _HIGHEST_RUNG else ()

    def _contours_of(self, place: Place, some: Ints, widths: tuple[Width, ...]) -> tuple[LineFamilyContour, ...]:
        """The contours of some pairs of a rung: what one width leaves out has the next."""
        where, left = self.ladders[place[0]].rung(*place[1:]), some
        found: list[LineSkeleton] = []
        for width in widths:
            if len(left):
                with suppress(LatticeTooFineError, AccuracyError):
                    skeletons, left = LineSkeleton.build(self, left, [where], *width)
                    found += skeletons
        return tuple(LineFamilyContour.plan(skeleton, where) for skeleton in found)

    def light(self, place: Place, rough: Widths) -> Ints:
        """The pairs of a rung that have few nodes: not many times those of most pairs. Heuristic: affects speed only."""
        nodes = np.full(len(self.pairs), np.inf)
        for contour in self.contours(place, rough):
            nodes[contour.skeleton.pairs] = contour.count
        mine = self.classes[place[0]]
        light: Ints = mine[nodes[mine] <= _LIGHT * np.median(nodes[mine])]
        return light

    def _skeletons_of(self, place: Place, rough: Widths | None) -> tuple[LineSkeleton, ...]:
        """The skeletons of a rung: those of most pairs, which neighbouring rungs share (the lowest has a period of its own); for
        pairs of very many nodes some of this rung alone, with more smoothing."""
        kind, payoff, index = place
        widths, together = (self.widths, self.together) if rough is None else (rough, 1)
        share = payoff is not Payoff.COMPLEMENT and index > 0
        first, count = (index - (index - 1) % together, together) if share else (index, 1)
        found, left = self._skeleton((kind, payoff, first, count, widths[0]), self.classes[kind])
        return found + (self._skeleton((kind, payoff, index, 0, widths[1]), left)[0] if len(left) else ())

    def _skeleton(
        self, rungs: tuple[int, Payoff, int, int, Width], pairs: Ints
    ) -> tuple[tuple[LineSkeleton, ...], Ints]:
        """The skeletons of some rungs (class, payoff, first, how many, width) for some pairs, and those that were left out."""
        kind, payoff, first, count, width = rungs

        def build() -> tuple[tuple[LineSkeleton, ...], Ints]:
            ladder = self.ladders[kind]
            try:
                some = [ladder.rung(payoff, i) for i in range(first, first + max(count, 1))]
                return LineSkeleton.build(self, pairs, some, *width)
            except (LatticeTooFineError, AccuracyError):  # the pairs are then asked one by one
                return (), pairs

        return self._skeletons.get(rungs, build)

    def places(self, pairs: Ints, thresholds: list[Fraction], index: Ints) -> Iterator[tuple[Place, Ints]]:
        """The rungs of questions (pairs, and which of the thresholds from 0 on), each with the questions that it serves."""
        found: dict[Place, list[int]] = {}
        combined, inverse = np.unique(self.class_of[pairs] * len(thresholds) + index, return_inverse=True)
        for place, i in enumerate(combined.tolist()):
            kind, y = i // len(thresholds), float(thresholds[i % len(thresholds)])
            found.setdefault((kind, *self.ladders[kind].place_of(y)), []).append(place)
        for rung, places in found.items():
            yield rung, np.flatnonzero(np.isin(inverse, places))

    def evaluate(
        self,
        place: Place,
        pairs: Ints,
        thresholds: list[Fraction],
        index: Ints,
        alone: Width | None = None,
        among: Ints | None = None,
        rough: Widths | None = None,
    ) -> Values:
        """Certified values, one for each pair and threshold (by its index) given, all on one rung.

        On shared contours, on `rough` ones, on those of each pair `alone`, or on those of the pairs `among` which they are.
        Results do not depend on what is asked together. Where there is no contour the bounds are 0 and 1.
        """
        if among is not None:
            contours = self.some_contours(place, among)
        elif alone is None:
            contours = self.contours(place, rough)
        else:
            contours = tuple(c for pair in distinct(pairs).tolist() for c in self.own_contours(place, pair, alone))
        rows = np.repeat([[0.0], [0.0], [1.0], [0.0]], len(pairs), axis=1)
        for contour in contours:
            mine = np.flatnonzero(contour.position[pairs] >= 0)
            if len(mine):
                try:
                    sums = contour.sums(pairs[mine], thresholds, index[mine])
                except AccuracyError:
                    continue
                bracket = sums.bracket
                sound = (bracket.lower <= bracket.upper) & np.isfinite(bracket.log_scale) & np.isfinite(bracket.upper)
                with np.errstate(divide="ignore", invalid="ignore"):
                    found = np.array([*bracket.rows(), np.nan_to_num(sums.slope / sums.value, posinf=0.0)])
                rows[:, mine[sound]] = found[:, sound]
        return Values(Bracket(rows[0], rows[1], rows[2]), rows[3])


@dataclass(frozen=True)
class LineFamilyContour:
    """One tilt, period and smoothing for pairs of a class, evaluated at the nodes that each pair keeps."""

    skeleton: LineSkeleton
    where: LineRung
    count: Ints
    """How many nodes each pair has, by the pair's position in the skeleton."""
    terms: FamilyTerms

    @property
    def lam(self) -> float:
        """The tilt as a double, exactly."""
        return float(self.where.tilt)

    @classmethod
    def plan(cls, skeleton: LineSkeleton, where: LineRung) -> LineFamilyContour:
        """The contour of a rung on its skeleton, without the nodes whose actual size is negligible: together at most what was
        dropped before."""
        return cls(skeleton, where, *evaluated(skeleton, where))

    @cached_property
    def _first(self) -> Ints:
        """Where each pair's nodes begin."""
        return np.concatenate(([0], np.cumsum(self.count)[:-1]))

    @cached_property
    def _totals(self) -> Floats:
        """For each pair the sums of the sizes of the value's terms and of the density's, and of the errors of both."""
        sizes = np.hypot(self.terms.parts[[0, 2]], self.terms.parts[[1, 3]])
        return segment_sums(np.concatenate([sizes, sizes * self.terms.relative]), self.count)

    @cached_property
    def _nodes(self) -> tuple[Ints, Ints]:
        """The different nodes of all pairs, and the place among them of each term's node."""
        nodes = distinct(self.terms.node)
        return nodes, np.searchsorted(nodes, self.terms.node)

    @cached_property
    def position(self) -> Ints:
        """The position in the skeleton of every pair of the family, -1 for those that are not on it."""
        result = np.full(len(self.skeleton.members.pairs), -1, dtype=np.int64)
        result[self.skeleton.pairs] = np.arange(len(self.skeleton.pairs))
        return result

    @cached_property
    def _tilted(self) -> TiltedMembers:
        return self.skeleton.members.under(self.where.tilt)

    def sums(self, pairs: Ints, thresholds: list[Fraction], index: Ints) -> LineSums:
        """The payoff's value for each pair and threshold with its certified bounds (Theorem 17)."""
        skeleton, lam = self.skeleton, self.lam
        asked, which = np.unique(index, return_inverse=True)
        distinct_ys = [thresholds[i] for i in asked.tolist()]
        mine = self.position[pairs]
        value, density, slope = self._sums(mine, which, distinct_ys)
        size, plain, rounding, rounding_density = self._totals[:, mine]
        n = self.count[mine].astype(float)
        summing = (np.minimum(n, BLOCK) + n / BLOCK + PHASE_UNITS) * UNIT
        high, low, scale_error = self._scales(pairs, which, distinct_ys)
        at_tilt = 1 / abs(lam * (1 + lam))
        smoothing = float(skeleton.smoothing)
        tau = math.sqrt(smoothing)
        most = np.abs(density) + rounding_density + plain * summing + DROPPED * math.exp(skeleton.log_dropped_density)
        smoothed = (1 + tau) * smoothing * most * (1 + SUM_SLACK)
        dropped = DROPPED * math.exp(skeleton.bands.log_dropped) * at_tilt * (1 + SUM_SLACK)
        own = rounding + size * summing + np.abs(value) * (np.expm1(scale_error) + VALUE_UNITS * UNIT)
        with np.errstate(over="ignore"):
            aliased = np.exp(self._log_aliasing(distinct_ys))[which]
        f = np.exp(low)
        rows = (value, aliased, np.full_like(value, dropped), own * (1 + ACCOUNT_SLACK), smoothed, np.abs(slope))
        return LineSums(self.where.payoff, high, *(row * f for row in rows))

    def _log_aliasing(self, thresholds: list[Fraction]) -> Floats:
        enough = self.skeleton.bands.log_dropped - math.log(abs(self.lam) * (1 + self.lam))
        period = float(self.skeleton.period)
        return np.array([self._aliasing.log_bound(period, float(y), enough) for y in thresholds])

    @cached_property
    def _aliasing(self) -> Aliasing:
        skeleton = self.skeleton
        return class_aliasing(self._tilted, skeleton.pairs, self.where.payoff, skeleton.smoothing)

    def _scales(self, pairs: Ints, which: Ints, thresholds: list[Fraction]) -> tuple[Floats, Floats, Floats]:
        """log_moment - tilt y of each question as sums of two doubles, and bounds of their errors."""
        tilt, smoothing = self.where.tilt, self.skeleton.smoothing
        shift = smoothing * tilt * (tilt + 1) / 2
        moves = np.array([doubles.two_doubles(shift - tilt * y) for y in thresholds]).T[:, which]
        highs, lows, errors = self._tilted.log_moments
        one, two = self.skeleton.members.both[pairs].T
        total, first = doubles.two_sum(highs[one], highs[two])
        total, second = doubles.two_sum(total, moves[0])
        low = first + second + lows[one] + lows[two] + moves[1]
        if not (np.abs(low) <= 1).all():
            raise AccuracyError("The Fourier sum does not apply: two doubles do not hold so large a logarithm.")
        size = np.abs(first) + np.abs(second) + np.abs(lows[one]) + np.abs(lows[two]) + np.abs(moves[1])
        return total, low, errors[one] + errors[two] + _SECOND_DOUBLE + 8 * UNIT * size

    def _sums(self, mine: Ints, which: Ints, thresholds: list[Fraction]) -> Floats:
        """Re sum_k terms_k exp(-i om_k y) for each question and each kind of terms.

        Where many pairs are asked at one threshold its phases are computed once; the results are the same bit for bit.
        """
        bits = np.array([turn_bits(-y / self.skeleton.period) for y in thresholds], dtype=np.uint64)
        result = np.empty((3, len(mine)))
        counts = self.count[mine]
        work = np.bincount(which, counts, minlength=len(thresholds))  # terms asked at each threshold
        (nodes, column), last = self._nodes, self.skeleton.last
        for t in np.flatnonzero(work >= max(len(nodes), _FEW)).tolist():
            asked = np.flatnonzero(which == t)
            phase = phases_of_bits(nodes, bits[t], last)
            cosine, sine = np.cos(phase), np.sin(phase)
            for part in _batches(counts[asked]):
                some = asked[part]
                place = self._places(mine[some])
                at = column[place]
                result[:, some] = self._products(place, cosine[at], sine[at], counts[some])
        rest = np.flatnonzero((work < max(len(nodes), _FEW))[which])
        for part in _batches(counts[rest]):
            some = rest[part]
            place = self._places(mine[some])
            turns = np.repeat(bits[which[some]], counts[some], axis=0)
            phase = phases_of_bits(self.terms.node[place], turns, last)
            result[:, some] = self._products(place, np.cos(phase), np.sin(phase), counts[some])
        return result

    def _places(self, positions: Ints) -> Ints | slice:
        """The places of the terms of some pairs, one pair after the other."""
        if len(positions) == len(self.count) and (np.diff(positions) == 1).all():
            return slice(None)
        return ranges(self._first[positions], self._first[positions] + self.count[positions] - 1)

    def _products(self, place: Ints | slice, cosine: Floats, sine: Floats, counts: Ints) -> Floats:
        parts = self.terms.parts[:, place]
        return segment_sums(parts[0::2] * cosine - parts[1::2] * sine, counts)


def _batches(counts: Ints) -> Iterator[slice]:
    """Consecutive questions of which the terms fit into memory."""
    ends = np.cumsum(counts)
    start = 0
    while start < len(counts):
        base = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + _TABLE, side="right")))
        yield slice(start, stop)
        start = stop
