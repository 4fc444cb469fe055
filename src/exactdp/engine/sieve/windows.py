"""The sieve: which nodes of the Fourier sum matter.

Node k has phase v_g = 2 pi (k a_g mod N) / N in (-pi, pi] in group g, and |M(tilt + i omega_k)| <= M(tilt) exp(slack -
sum_g strength_g v_g^2) (docs/theory/engine.md, Lemma 5). This inequality is the guarantee: every node whose penalty
sum_g strength_g v_g^2 is within its band's budget is returned, so that a node left out has a known largest size.

The search walks the peaks of the group with the longest period and merges the parabolas of the other groups one after
the other: two parabolas k1 (k - m1)^2 and k2 (k - m2)^2 add up to one parabola plus the constant
k1 k2 / (k1 + k2) (m1 - m2)^2, so a partial peak whose constant exceeds the budget is dropped with everything below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.doubles import CLOSE_SLACK, SUM_SLACK, Floats, Ints
from exactdp.engine.effort import Effort
from exactdp.engine.sieve.bands import Bands
from exactdp.engine.sieve.phases import phases
from exactdp.engine.sieve.reduction import nodes_by_reduction
from exactdp.errors import LatticeTooFineError

NODE_LIMIT = 4_000_000
"""Nodes kept before the sieve gives up."""

_EXPLICIT = 512  # below this many candidate nodes, test each instead of walking windows
_QUICK = 300_000  # partial peaks walked before lattice reduction is tried
_RATIO = 16  # between the ends of one range of lattice reduction
_SPARE = 1e-6  # of a node, and of a budget: more than what rounding moves where it is not relative
_CHUNK = 1 << 14  # windows of the first group walked at once
_BATCH_LIMIT = 4_000_000  # partial peaks held in memory at once


def sieve(
    strides: tuple[int, ...], strengths: tuple[float, ...], nodes: int, bands: Bands, looks: int = Effort.looks
) -> Ints:
    """The node 0 and all k in [1, nodes/2] whose penalty is within their band's budget, ascending.

    Guarantee: none is missed; the windows are widened by more than the rounding of their centres.
    """
    merged: dict[int, float] = {}
    for stride, strength in zip(strides, strengths, strict=True):
        merged[stride] = merged.get(stride, 0.0) + strength
    groups = sorted(merged.items())
    combs = [
        Comb(nodes / stride, strength * (2 * math.pi * stride / nodes) ** 2, Fraction(stride, nodes), strength)
        for stride, strength in groups
    ]
    return search(combs, nodes // 2, bands, lambda k: _filter(k, groups, nodes, bands), looks)


@dataclass(frozen=True, slots=True)
class Comb:
    """Peaks at every multiple of `spacing` (in nodes); near each the penalty is at least curvature * distance^2.

    The same for the search by lattice reduction: the penalty is strength (2 pi dist(k turn, Z))^2, the turn exact.
    """

    spacing: float
    curvature: float
    turn: Fraction
    strength: float


def search(combs: list[Comb], last: int, bands: Bands, keep: Callable[[Ints], Ints], limit: int) -> Ints:
    """The node 0 and all k in [1, last] within budget, ascending; the combs come with the longest spacing first.

    `keep` tells which of some nodes are within budget. Guarantee: none is missed. Raises LatticeTooFineError beyond the limit.
    Windows are walked where they are few; lattice reduction is tried next, then more windows, then every node.
    """
    alive = np.flatnonzero(bands.budgets >= 0)
    if len(alive) == 0:
        return np.zeros(1, dtype=np.int64)
    last = int(min(last, math.floor(bands.edges[alive[-1] + 1])))
    if last < _EXPLICIT or not combs:
        return _keep_all(keep, last)
    attempts: list[Callable[[], Ints]] = [
        lambda: _walk(combs, last, bands, keep, min(_QUICK, limit, 2 * last)),
        lambda: _reduce(combs, last, bands, keep, limit),
        lambda: _walk(combs, last, bands, keep, min(limit, 2 * last)),
    ]
    for attempt in attempts:
        try:
            return attempt()
        except LatticeTooFineError as refused:
            reason = refused
    if last > min(limit, NODE_LIMIT):
        raise reason
    return _keep_all(keep, last)


def _reduce(combs: list[Comb], last: int, bands: Bands, keep: Callable[[Ints], Ints], limit: int) -> Ints:
    """The nodes within budget by lattice reduction, over ranges in which the budget changes little."""
    turns, strengths = [c.turn for c in combs], [c.strength for c in combs]
    found, total, first = [keep(np.arange(_EXPLICIT, dtype=np.int64))], 0, _EXPLICIT
    while first <= last:
        end = min(_RATIO * first, last)
        budget = float(bands.at(np.array([first]))[0]) * (1 + SUM_SLACK) + SUM_SLACK
        nodes = nodes_by_reduction(turns, strengths, first, end, budget, max(limit // 30, 1))
        total += len(nodes)
        if total > NODE_LIMIT:
            raise LatticeTooFineError(f"more than {NODE_LIMIT:,} nodes of the Fourier sum matter")
        found.append(keep(np.array(nodes, dtype=np.int64)))
        first = end + 1
    return np.concatenate(found)


def _keep_all(keep: Callable[[Ints], Ints], last: int) -> Ints:
    """Every node looked at: where most of them matter, windows would cost more than they save."""
    if last > NODE_LIMIT:
        raise LatticeTooFineError(f"{last:,} nodes of the Fourier sum would have to be looked at")
    batches = (np.arange(start, min(start + _CHUNK, last + 1), dtype=np.int64) for start in range(0, last + 1, _CHUNK))
    return np.concatenate([keep(batch) for batch in batches])


def _walk(combs: list[Comb], last: int, bands: Bands, keep: Callable[[Ints], Ints], allowance: int) -> Ints:
    """The nodes within budget, by windows."""
    kept, total = [np.zeros(1, dtype=np.int64)], 0
    for candidates in _candidates(combs, last, bands, allowance):
        found = keep(candidates)
        total += len(found)
        if total > NODE_LIMIT:
            raise LatticeTooFineError(f"more than {NODE_LIMIT:,} nodes of the Fourier sum matter")
        kept.append(found)
    return distinct(np.concatenate(kept))


def _filter(k: Ints, groups: list[tuple[int, float]], nodes: int, bands: Bands) -> Ints:
    """The nodes among k whose exact penalty is within budget."""
    v = phases(k, tuple(stride for stride, _ in groups), nodes)
    penalty = np.array([strength for _, strength in groups]) @ (v * v)
    keep: Ints = k[(penalty * (1 - SUM_SLACK) <= bands.at(k)) | (k == 0)]
    return keep


def _candidates(combs: list[Comb], last: int, bands: Bands, allowance: int) -> Iterator[Ints]:
    """Batches of nodes that include every node within budget."""
    spacing = combs[0].spacing
    windows = math.floor(last / spacing) + 2
    work = 0
    if windows > allowance:
        raise LatticeTooFineError(f"{windows:,} windows would have to be searched (the limit is {allowance:,})")
    for start in range(0, windows, _CHUNK):
        centre = np.arange(start, min(start + _CHUNK, windows), dtype=np.float64) * spacing
        peaks = _Peaks(
            centre,
            np.full(len(centre), combs[0].curvature),
            np.zeros(len(centre)),
            bands.at(np.maximum(centre - spacing / 2, 0.0)) * (1 + SUM_SLACK) + _SPARE,
        )
        low, high, count = peaks.integers(last)
        for comb in combs[1:]:
            if count <= max(len(peaks.centre), _EXPLICIT):
                break
            work += len(peaks.centre)
            peaks = peaks.merge(comb, last, max(allowance - work, 1))
            low, high, count = peaks.integers(last)
        work += count
        if work > allowance:
            raise LatticeTooFineError(f"more than {allowance:,} partial peaks would have to be examined")
        if count:
            yield distinct(ranges(low, high))


def distinct(k: Ints) -> Ints:
    """Sorted, each value once."""
    ordered = np.sort(k)
    is_first = np.ones(len(ordered), dtype=bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    result: Ints = ordered[is_first]
    return result


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Partial peaks: penalty(k) >= constant + curvature (k - centre)^2 near each centre."""

    centre: Floats
    curvature: Floats
    constant: Floats
    budget: Floats

    def reach(self) -> Floats:
        """Half the width of each window, widened beyond the rounding of the centres: by CLOSE_SLACK of them, and by _SPARE."""
        room = np.maximum(self.budget - self.constant, 0.0)
        return np.sqrt(room / self.curvature) + _SPARE + CLOSE_SLACK * self.centre

    def integers(self, last: int) -> tuple[Ints, Ints, int]:
        reach = self.reach()
        low = np.ceil(_between(self.centre - reach, 0.0, last + 1.0)).astype(np.int64)
        high = np.floor(_between(self.centre + reach, -1.0, float(last))).astype(np.int64)
        return low, high, int(np.maximum(high - low + 1, 0).sum())

    def merge(self, comb: Comb, last: int, allowance: int) -> _Peaks:
        """Every combination of a peak here with a peak of the next group that is still within budget.

        Only the peaks nearest to some node in [0, last] are needed.
        """
        spacing, curvature = comb.spacing, comb.curvature
        room = np.maximum(self.budget - self.constant, 0.0)
        reach = np.sqrt(room * (1 / self.curvature + 1 / curvature)) + _SPARE + CLOSE_SLACK * self.centre
        final_peak = math.floor(last / spacing) + 1
        first = np.ceil(_between((self.centre - reach) / spacing, 0.0, final_peak + 1.0)).astype(np.int64)
        final = np.floor(_between((self.centre + reach) / spacing, -1.0, float(final_peak))).astype(np.int64)
        counts = np.maximum(final - first + 1, 0)
        if int(counts.sum()) > min(allowance, _BATCH_LIMIT):
            raise LatticeTooFineError(f"more than {min(allowance, _BATCH_LIMIT):,} partial peaks at once")
        owner = np.arange(len(first)).repeat(counts)
        peak = ranges(first, final) * spacing
        c1, k1 = self.centre[owner], self.curvature[owner]
        together = k1 + curvature
        gap = np.maximum(np.abs(c1 - peak) - _SPARE - CLOSE_SLACK * c1, 0.0)
        constant = self.constant[owner] + k1 * curvature / together * gap * gap
        keep = constant <= self.budget[owner]
        owner = owner[keep]
        return _Peaks(
            ((k1 * c1 + curvature * peak) / together)[keep], together[keep], constant[keep], self.budget[owner]
        )


def _between(values: Floats, least: float, most: float) -> Floats:
    result: Floats = np.minimum(np.maximum(values, least), most)
    return result


def ranges(low: Ints, high: Ints) -> Ints:
    """The integers of all intervals [low, high], one after another (an interval with high < low is empty)."""
    lengths = np.maximum(high - low + 1, 0)
    ends = lengths.cumsum()
    starts: Ints = (low - ends + lengths).repeat(lengths)
    return starts + np.arange(len(starts), dtype=np.int64)
