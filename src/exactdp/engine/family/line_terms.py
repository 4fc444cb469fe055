"""The terms of a contour's Fourier sums for all pairs of a family on the line: every mechanism is evaluated once at each node,
members and pairs are sums of logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import PHASE_ERROR, SUM_SLACK, UNIT, Bools, Complexes, Floats, Ints
from exactdp.engine.family.line_nodes import LineSkeleton
from exactdp.engine.lattice.float64 import TERM_UNITS
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.fixed_point import Turn
from exactdp.engine.sieve.windows import distinct, ranges

_HEAVY = 4096  # nodes of a pair from which it is evaluated by itself
_NODES_AT_ONCE = 1 << 13


@dataclass(frozen=True)
class FamilyTerms:
    """The nodes of pairs one pair after the other, and what the thresholds' phases multiply there.

    Rows of `parts`: real and imaginary part of the value's terms, of the density's and of the slope's.
    """

    node: Ints
    parts: Floats
    relative: Floats


def evaluated(skeleton: LineSkeleton, where: LineRung) -> tuple[Ints, FamilyTerms]:
    """How many nodes each pair of a skeleton keeps on a rung, and their terms.

    Nodes whose actual size is negligible are left: together at most what was dropped before.
    """
    evaluation = _Evaluation(skeleton, where)
    blocks = [evaluation.terms(places) for places in _blocks(skeleton.counts)]
    order = np.concatenate([places for places, _ in blocks])
    back = np.argsort(order, kind="stable")
    count = np.bincount(skeleton.pair_of[order], minlength=len(skeleton.pairs))
    node = np.concatenate([terms.node for _, terms in blocks])[back]
    parts = np.concatenate([terms.parts for _, terms in blocks], axis=1)[:, back]
    return count, FamilyTerms(node, parts, np.concatenate([terms.relative for _, terms in blocks])[back])


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
        members = self._skeleton.members
        counts = members.counts[rows]
        used = np.flatnonzero(counts.any(axis=0))
        counts = counts[:, used]
        parts = np.zeros((4, len(used), len(k)))
        spreads = np.zeros(len(used))
        for row, i in enumerate(used.tolist()):
            one = self._tilted.tilted[i]
            spreads[row] = one.spread
            here = np.flatnonzero(needed[counts[:, row] > 0].any(axis=0))
            if (one.units or one.by_frequency) and len(here):
                phases = np.array([turn.phases(k[here]) for turn in self._turns[i]]).reshape(-1, len(here))
                logs, relative = one.log_cf(phases, self._omega(k[here]))
                parts[0, row, here], parts[1, row, here] = logs.real, logs.imag
                parts[2, row, here] = np.abs(logs.real) + np.abs(logs.imag)
                parts[3, row, here] = np.log1p(relative)
        fall = np.outer(counts @ spreads, 0.5 * self._omega(k) ** 2)
        turn = np.stack([self._anchors[m].phases(k) for m in rows.tolist()])
        sums = [members.sums(rows, used, part) for part in parts]
        real, imag = sums[0] - fall, sums[1] + turn
        size = sums[2] + fall + np.abs(turn)
        terms = members.terms(rows) + 6  # of a sum in any order; zeros are added exactly
        error = sums[3] + 12 * UNIT * (fall + np.abs(turn)) + PHASE_ERROR + terms * UNIT * size
        return real, imag, error * (1 + SUM_SLACK)

    def _omega(self, k: Ints) -> Floats:
        return k.astype(np.float64) * (2 * math.pi / float(self._skeleton.period))

    def terms(self, places: Ints) -> tuple[Ints, FamilyTerms]:
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
        return places[keep], FamilyTerms(node, parts, np.expm1(np.minimum(errors, 600.0)) + TERM_UNITS * UNIT)
