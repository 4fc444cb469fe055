"""All pairs of any design at once: the contours of a family whose losses share no lattice.

On the line, too, the moment function of a pair is the product of its members'. One tilt, one period and one smoothing serve all
pairs of a class; every mechanism is evaluated once at the nodes that matter to some pair, members and pairs are sums of
logarithms, and a threshold then costs a product and a sum over each pair's nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp import doubles
from exactdp.balls import BITS, ball, precision
from exactdp.brackets import Bracket
from exactdp.cache import Recent
from exactdp.doubles import ACCOUNT_SLACK, PHASE_ERROR, SUM_SLACK, UNIT, Bools, Complexes, Floats, Ints, product
from exactdp.engine.family.contours import segment_sums
from exactdp.engine.family.line_members import LineMembers, TiltedMembers
from exactdp.engine.family.line_nodes import LineSkeleton, class_aliasing
from exactdp.engine.lattice.contours import Values
from exactdp.engine.lattice.float64 import BLOCK, PHASE_UNITS, TERM_UNITS, VALUE_UNITS
from exactdp.engine.lattice.tilts import FAMILY
from exactdp.engine.line.float64 import LineSums
from exactdp.engine.line.plan import Aliasing
from exactdp.engine.line.tilts import Ladder, LineRung
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.fixed_point import Turn, phases_of_bits, turn_bits
from exactdp.engine.sieve.windows import distinct, ranges
from exactdp.errors import AccuracyError, LatticeTooFineError

WIDTHS = ((5e-12, 30_000.0), (2e-11, 400_000.0))
"""What smoothing may cost, relative to delta, and the number of nodes of a pair beyond which the next, wider one is taken."""

ROUGH = ((1e-6, 3_000.0), (1e-5, 30_000.0))
"""The same where bounds about 1e-6 wide will do, in a fraction of the time."""

DROPPED = 3
"""Nodes are dropped by their bands, by sharper penalties and by their actual sizes: each time at most as much."""

_CONTOURS_HELD = 16
_HIGHEST_RUNG = 20  # 80 deviations; what is beyond is left to the pairs' own contours
_SKELETONS_HELD = 12
_TOGETHER = 3  # rungs that share a skeleton
_HEAVY = 4096  # nodes of a pair from which it is evaluated by itself
_TABLE = 1 << 22  # doubles held at once
_NODES_AT_ONCE = 1 << 13
_FEW = 256  # terms at one threshold for which sharing its phases is not worth while
_Place = tuple[int, Payoff, int]  # class, payoff and index of a rung
_SECOND_DOUBLE = 1e-18  # more than the rounding of the second of two doubles that add up to a logarithm below 1e13


@dataclass(frozen=True)
class LineFamily(LineMembers):
    """The members with the contours of all their pairs, built when first needed."""

    widths: tuple[tuple[float, float], tuple[float, float]] = WIDTHS
    _contours: Recent[_Place, tuple[LineFamilyContour, ...]] = field(
        default_factory=lambda: Recent(_CONTOURS_HELD), init=False, repr=False, compare=False
    )
    _skeletons: Recent[tuple[int, Payoff, int, int], tuple[LineSkeleton | None, Ints]] = field(
        default_factory=lambda: Recent(_SKELETONS_HELD), init=False, repr=False, compare=False
    )

    @cached_property
    def ladders(self) -> tuple[Ladder, ...]:
        """The tilts of each class: those of its widest pair."""
        typical = (pairs[int(np.argmax(self.widest[pairs]))] for pairs in self.classes)
        return tuple(Ladder(self.total(int(p)), FAMILY) for p in typical)

    def contours(self, place: _Place) -> tuple[LineFamilyContour, ...]:
        """The contours of one rung of a class, each for some of its pairs; none for pairs that cannot share."""
        if place[2] > _HIGHEST_RUNG:
            return ()
        where = self.ladders[place[0]].rung(*place[1:])
        plan = LineFamilyContour.plan
        return self._contours.get(place, lambda: tuple(plan(skeleton, where) for skeleton in self._skeletons_of(place)))

    def _skeletons_of(self, place: _Place) -> tuple[LineSkeleton, ...]:
        """The skeletons of a rung: one for most pairs, which neighbouring rungs share by threes (the lowest has a long period of
        its own); for pairs of very many nodes one of this rung alone, with more smoothing."""
        kind, payoff, index = place
        share = payoff is not Payoff.COMPLEMENT and index > 0
        first, count = (index - (index - 1) % _TOGETHER, _TOGETHER) if share else (index, 1)
        found, left = self._skeleton((kind, payoff, first, count), self.classes[kind], self.widths[0])
        rest = self._skeleton((kind, payoff, index, 0), left, self.widths[1])[0] if len(left) else None
        return tuple(skeleton for skeleton in (found, rest) if skeleton is not None)

    def _skeleton(
        self, rungs: tuple[int, Payoff, int, int], pairs: Ints, width: tuple[float, float]
    ) -> tuple[LineSkeleton | None, Ints]:
        """The skeleton of some rungs (class, payoff, first, how many) for some pairs, and those that were left out."""
        kind, payoff, first, count = rungs

        def build() -> tuple[LineSkeleton | None, Ints]:
            ladder = self.ladders[kind]
            try:
                some = [ladder.rung(payoff, i) for i in range(first, first + max(count, 1))]
                return LineSkeleton.build(self, pairs, some, *width)
            except (LatticeTooFineError, AccuracyError):  # the pairs are then asked one by one
                return None, pairs

        return self._skeletons.get(rungs, build)

    def places(self, pairs: Ints, thresholds: list[Fraction], index: Ints) -> Iterator[tuple[_Place, Ints]]:
        """The rungs of questions (pairs, and which of the thresholds from 0 on), each with the questions that it serves."""
        found: dict[_Place, list[int]] = {}
        combined, inverse = np.unique(self.class_of[pairs] * len(thresholds) + index, return_inverse=True)
        for place, i in enumerate(combined.tolist()):
            kind, y = i // len(thresholds), float(thresholds[i % len(thresholds)])
            found.setdefault((kind, *self.ladders[kind].place_of(y)), []).append(place)
        for rung, places in found.items():
            yield rung, np.flatnonzero(np.isin(inverse, places))

    def evaluate(self, place: _Place, pairs: Ints, thresholds: list[Fraction], index: Ints) -> Values:
        """Certified values, one for each pair and threshold (by its index) given, all on one rung.

        Results do not depend on what is asked together. Where no contour can be shared the bounds are 0 and 1.
        """
        rows = np.repeat([[0.0], [0.0], [1.0], [0.0]], len(pairs), axis=1)
        for contour in self.contours(place):
            mine = np.flatnonzero(contour.position[pairs] >= 0)
            if len(mine):
                try:
                    sums = contour.sums(pairs[mine], thresholds, index[mine])
                except AccuracyError:
                    continue
                bracket = sums.bracket
                fine = (bracket.lower <= bracket.upper) & np.isfinite(bracket.log_scale) & np.isfinite(bracket.upper)
                with np.errstate(divide="ignore", invalid="ignore"):
                    found = np.array([*bracket.rows(), np.nan_to_num(sums.slope / sums.value, posinf=0.0)])
                rows[:, mine[fine]] = found[:, fine]
        return Values(Bracket(rows[0], rows[1], rows[2]), rows[3])


@dataclass(frozen=True)
class _Terms:
    """The nodes of pairs one pair after the other, and what the thresholds' phases multiply there.

    Rows of `parts`: real and imaginary part of the value's terms, of the density's and of the slope's.
    """

    node: Ints
    parts: Floats
    relative: Floats


@dataclass(frozen=True)
class LineFamilyContour:
    """One tilt, period and smoothing for pairs of a class, evaluated at the nodes that each pair keeps."""

    skeleton: LineSkeleton
    where: LineRung
    count: Ints
    """How many nodes each pair has, by the pair's position in the skeleton."""
    terms: _Terms

    @property
    def lam(self) -> float:
        """The tilt as a double, exactly."""
        return float(self.where.tilt)

    @classmethod
    def plan(cls, skeleton: LineSkeleton, where: LineRung) -> LineFamilyContour:
        """The contour of a rung on its skeleton, without the nodes whose actual size is negligible: together at most what was
        dropped before."""
        evaluation = _Evaluation(skeleton, where)
        blocks = [evaluation.terms(places) for places in _blocks(skeleton.counts)]
        order = np.concatenate([places for places, _ in blocks])
        back = np.argsort(order, kind="stable")
        count = np.bincount(skeleton.pair_of[order], minlength=len(skeleton.pairs))
        node = np.concatenate([terms.node for _, terms in blocks])[back]
        parts = np.concatenate([terms.parts for _, terms in blocks], axis=1)[:, back]
        return cls(skeleton, where, count, _Terms(node, parts, np.concatenate([t.relative for _, t in blocks])[back]))

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


def _blocks(counts: Ints) -> Iterator[Ints]:
    """The places of the nodes of all light pairs, and those of each heavy one by itself."""
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    light = np.flatnonzero(counts <= _HEAVY)
    if len(light):
        yield ranges(first[light], first[light] + counts[light] - 1)
    for pair in np.flatnonzero(counts > _HEAVY):
        yield np.arange(first[pair], first[pair] + counts[pair])


class _Evaluation:
    """The terms of a contour's Fourier sums: every mechanism once at each node, members and pairs as sums of logarithms."""

    def __init__(self, skeleton: LineSkeleton, where: LineRung) -> None:
        self._skeleton, self._where = skeleton, where
        self._lam = float(where.tilt)
        self._tilted = tilted = skeleton.members.under(where.tilt)
        members = skeleton.members
        with precision(BITS):
            period = ball(skeleton.period)
            self._turns = [tuple(Turn.of(u / period) for u in t.units) for t in tilted.tilted]
            shift = ball(skeleton.smoothing * (where.tilt + Fraction(1, 2)))
            anchors = [
                sum((int(row[i]) * tilted.tilted[i].anchor for i in np.flatnonzero(row)), ball(0))
                for row in members.counts
            ]
            self._anchors = [Turn.of(anchor / period) for anchor in anchors]
            self._shift = Turn.of(shift / period)

    def _logs(self, rows: Ints, nodes: Ints, needed: Bools) -> tuple[Floats, Floats, Floats]:
        """log cf with the anchor's phase for each of some members (rows) at each node: real part, imaginary part, error.

        Only where a member is `needed`; elsewhere the numbers mean nothing.
        """
        starts = range(0, len(nodes), _NODES_AT_ONCE)
        chunks = [slice(i, i + _NODES_AT_ONCE) for i in starts]
        parts = [self._chunk(rows, nodes[chunk], needed[:, chunk]) for chunk in chunks]
        real, imag, error = (np.concatenate(p, axis=1) for p in zip(*parts, strict=True))
        return real, imag, error

    def _chunk(self, rows: Ints, k: Ints, needed: Bools) -> tuple[Floats, Floats, Floats]:
        counts = self._skeleton.members.counts[rows]
        used = np.flatnonzero(counts.any(axis=0))
        counts = counts[:, used]
        parts = np.zeros((4, len(used), len(k)))
        spreads = np.zeros(len(used))
        for row, i in enumerate(used.tolist()):
            one = self._tilted.tilted[i]
            spreads[row] = one.spread
            here = np.flatnonzero(needed[counts[:, row] > 0].any(axis=0))
            if one.units and len(here):
                logs, relative = one.log_cf(np.stack([turn.phases(k[here]) for turn in self._turns[i]]))
                parts[0, row, here], parts[1, row, here] = logs.real, logs.imag
                parts[2, row, here] = np.abs(logs.real) + np.abs(logs.imag)
                parts[3, row, here] = np.log1p(relative)
        fall = np.outer(counts @ spreads, 0.5 * self._omega(k) ** 2)
        turn = np.stack([self._anchors[m].phases(k) for m in rows.tolist()])
        real, imag = product(counts, parts[0]) - fall, product(counts, parts[1]) + turn
        size = product(counts, parts[2]) + fall + np.abs(turn)
        terms = int((counts != 0).sum(axis=1).max(initial=0)) + 6  # of a sum in any order; zeros are added exactly
        error = product(counts, parts[3]) + 12 * UNIT * (fall + np.abs(turn)) + PHASE_ERROR + terms * UNIT * size
        return real, imag, error * (1 + SUM_SLACK)

    def _omega(self, k: Ints) -> Floats:
        return k.astype(np.float64) * (2 * math.pi / float(self._skeleton.period))

    def terms(self, places: Ints) -> tuple[Ints, _Terms]:
        """The terms at some places of the skeleton, and which of these places are kept."""
        skeleton, lam = self._skeleton, self._lam
        pair, node = skeleton.pair_of[places], skeleton.kept[places]
        nodes = distinct(node)
        column = np.searchsorted(nodes, node)
        both = skeleton.members.both[skeleton.pairs[pair]]
        rows = distinct(both.ravel())
        one, two = (np.searchsorted(rows, both[:, i]) for i in (0, 1))
        needed = np.zeros((len(rows), len(nodes)), dtype=bool)
        needed[one, column] = needed[two, column] = True
        real, imag, error = self._logs(rows, nodes, needed)
        fall = (0.5 * float(skeleton.smoothing) * self._omega(nodes) ** 2)[column]
        turn = self._shift.phases(nodes)[column]
        logs = real[one, column] + real[two, column] - fall
        angle = imag[one, column] + imag[two, column] + turn
        errors = error[one, column] + error[two, column] + 12 * UNIT * (fall + np.abs(turn)) + PHASE_ERROR
        errors += 4 * UNIT * (np.abs(logs) + fall + np.abs(angle) + np.abs(turn))
        z: Complexes = np.empty(len(nodes), dtype=np.complex128)
        z.real, z.imag = lam, self._omega(nodes)
        sign = -1.0 if self._where.payoff is Payoff.COMPLEMENT else 1.0
        transform: Complexes = np.divide(sign, z * (1 + z), dtype=np.complex128)
        size = np.log(np.abs(transform) * (abs(lam) * (1 + lam)))[column] + logs + errors
        # log_dropped counts sums over 1/T: what is left out of a pair here adds up to at most as much again
        cutoff = skeleton.bands.log_dropped + math.log(float(skeleton.period) / 2)
        also = skeleton.log_dropped_density + math.log(float(skeleton.period) / 2)
        share = np.log(skeleton.counts[pair])
        keep = (size > cutoff - share) | (logs + errors > also - share) | (node == 0)
        column, logs, angle, errors, node = (x[keep] for x in (column, logs, angle, errors, node))
        weights = np.where(node == 0, 1.0, 2.0) / float(skeleton.period)
        density = weights * np.exp(logs) * (np.cos(angle) + 1j * np.sin(angle))
        value = density * transform[column]
        slope = value * (sign * z)[column]
        parts = np.stack([part for terms in (value, density, slope) for part in (terms.real, terms.imag)])
        return places[keep], _Terms(node, parts, np.expm1(np.minimum(errors, 600.0)) + TERM_UNITS * UNIT)
