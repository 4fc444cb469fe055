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
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from exactdp.engine.lattice import Lattice
from exactdp.engine.reduction import nodes_by_reduction
from exactdp.errors import LatticeTooFineError
from exactdp.mechanisms.theta import Floats, peak_parabola

Ints = NDArray[np.int64]

NODE_LIMIT = 4_000_000
"""Nodes kept before the sieve gives up."""

_EXPLICIT = 512  # below this many candidate nodes, test each instead of walking windows
_QUICK = 300_000  # partial peaks walked before lattice reduction is tried
_RATIO = 16  # between the ends of one range of lattice reduction
_CHUNK = 1 << 14  # windows of the first group walked at once
_BATCH_LIMIT = 4_000_000  # partial peaks held in memory at once
_LARGEST_SQUARE = 3_000_000_000  # k * a fits in 64 bits while both are below this
LARGEST_NODES = 1 << 62
_LARGEST_WORDS = 1 << 61  # k * a mod nodes by Horner's rule in words below this, in Python integers above


@dataclass(frozen=True)
class Effort:
    """What one contour may cost: terms evaluated (nodes times groups), and nodes, windows or partial peaks looked at.

    The defaults are about a second each.
    """

    terms: int = 1_200_000
    looks: int = 8_000_000


@dataclass(frozen=True, slots=True)
class PeakBounds:
    """Per group: |cf(v)|^count <= exp(slack_g - strength_g v^2) on |v| <= pi; `slack` is the sum over groups."""

    strengths: tuple[float, ...]
    slack: float


@dataclass(frozen=True)
class Bands:
    """Budgets by frequency: nodes with edges[i] < k <= edges[i+1] may be dropped if their penalty exceeds budgets[i].

    `budgets` never increases; `log_dropped` bounds the logarithm of the sum over all dropped nodes of
    |M V| / (N M(tilt) V(tilt)). Logarithms, because at hundreds of digits the numbers are below the double range.
    """

    edges: Floats
    budgets: Floats
    slack: float
    log_dropped: float

    def at(self, k: Floats | Ints) -> Floats:
        """The budget of node k, or of the first node of an interval that starts at k."""
        index = np.searchsorted(self.edges, k, side="left") - 1
        result: Floats = self.budgets[np.clip(index, 0, len(self.budgets) - 1)]
        return result

    def log_dropped_on(self, nodes: int, period: float, corners: tuple[float, ...]) -> float:
        """`log_dropped` for a coarser lattice of the same period, whose nodes are the first ones of these bands."""
        return _log_dropped(*_clipped(self.edges, self.budgets - self.slack, nodes // 2), nodes, period, corners)


def peak_bounds(lattice: Lattice, tilt: float) -> PeakBounds:
    """Lemma 5's parabolas for every group."""
    strengths, slack = [], 0.0
    for g in lattice.groups:
        strength, own = peak_parabola(float(g.sigma2), g.sensitivity * tilt, 40.0 / g.count)
        strengths.append(g.count * strength)
        slack += g.count * own
    return PeakBounds(tuple(strengths), slack)


def make_bands(nodes: int, period: float, corners: tuple[float, ...], slack: float, log_aim: float) -> Bands:
    """Budgets that keep the dropped sum at about exp(log_aim), spread evenly over octaves of frequency.

    In a band whose first node is at omega the transform is at most product of min(1, C / omega) of its value at the tilt, and
    the band holds 2 (floor(high) - floor(low)) nodes, mirror images included (Theorem 3). Node 0 is never
    dropped and is not counted.
    """
    half = nodes // 2
    edges, edge = [0.0], max(corners) * period / (2 * math.pi)
    while edge < half:
        if math.floor(edge) > math.floor(edges[-1]):  # an octave without nodes is no band
            edges.append(edge)
        edge *= 2
    edges.append(float(half))
    masses = _log_masses(edges, nodes, period, corners)
    share = log_aim - math.log(len(masses))
    budgets = np.maximum.accumulate(masses[::-1] - share)[::-1]
    log_dropped = _log_dropped(edges, budgets, nodes, period, corners)
    edges[0] = -1.0
    return Bands(np.array(edges), budgets + slack, slack, log_dropped)


def _log_masses(edges: list[float], nodes: int, period: float, corners: tuple[float, ...]) -> Floats:
    """log of (number of nodes / N) times the largest relative size of the transform, for each band (from edges[0] = 0)."""
    masses = []
    for low, high in pairwise(edges):
        omega = (math.floor(low) + 1) * 2 * math.pi / period * (1 - 1e-12)  # the first node of the band
        size = math.prod(min(1.0, c / omega) for c in corners)
        count = 2 * (math.floor(high) - math.floor(low))
        if nodes % 2 == 0 and high == nodes // 2:
            count -= 1  # the node N/2 has no mirror image
        masses.append(math.log(count / nodes * size))
    return np.array(masses)


def _log_dropped(edges: list[float], budgets: Floats, nodes: int, period: float, corners: tuple[float, ...]) -> float:
    """Theorem 3: what the nodes over budget can add up to."""
    return float(np.logaddexp.reduce(_log_masses(edges, nodes, period, corners) - budgets)) + 1e-9


def _clipped(edges: Floats, budgets: Floats, half: int) -> tuple[list[float], Floats]:
    """The bands up to node `half`, the last one cut there."""
    inner = [0.0, *(float(e) for e in edges[1:-1] if math.floor(e) < half)]
    return [*inner, float(half)], budgets[: len(inner)]


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
    combs = [Comb(nodes / stride, strength * (2 * math.pi * stride / nodes) ** 2) for stride, strength in groups]
    turns = [Fraction(stride, nodes) for stride, _ in groups]
    reduction = Reduction(turns, [strength for _, strength in groups])
    return search(combs, nodes // 2, bands, lambda k: _filter(k, groups, nodes, bands), looks, reduction)


@dataclass(frozen=True, slots=True)
class Comb:
    """Peaks at every multiple of `spacing` (in nodes); near each the penalty is at least curvature * distance^2."""

    spacing: float
    curvature: float


@dataclass(frozen=True)
class Reduction:
    """What the search by lattice reduction needs: exact turns per node and strengths, one for each comb."""

    turns: list[Fraction]
    strengths: list[float]


def search(
    combs: list[Comb], last: int, bands: Bands, keep: Callable[[Ints], Ints], limit: int, reduction: Reduction
) -> Ints:
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
        lambda: _reduce(reduction, last, bands, keep, limit),
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


def _reduce(reduction: Reduction, last: int, bands: Bands, keep: Callable[[Ints], Ints], limit: int) -> Ints:
    """The nodes within budget by lattice reduction, over ranges in which the budget changes little."""
    found, total, first = [keep(np.arange(_EXPLICIT, dtype=np.int64))], 0, _EXPLICIT
    while first <= last:
        end = min(_RATIO * first, last)
        budget = float(bands.at(np.array([first]))[0]) * (1 + 1e-9) + 1e-9
        nodes = nodes_by_reduction(reduction.turns, reduction.strengths, first, end, budget, max(limit // 30, 1))
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


def phases(k: Ints, strides: tuple[int, ...], nodes: int) -> Floats:
    """2 pi (k a mod nodes) / nodes in (-pi, pi], one row for each stride a, the reduction in exact integers."""
    if nodes < _LARGEST_SQUARE:
        residue = np.array([a % nodes for a in strides], dtype=np.int64)[:, None] * k[None, :] % nodes
    elif nodes < _LARGEST_WORDS:
        residue = np.stack([_times(k, a % nodes, nodes) for a in strides])
    else:
        residue = np.array([[x * a % nodes for x in k.tolist()] for a in strides], dtype=np.int64).reshape(
            len(strides), len(k)
        )
    return centred_angles(residue, nodes)


def centred_angles(residue: Ints, nodes: int) -> Floats:
    """2 pi r / nodes in (-pi, pi] for residues r in [0, nodes), which are shifted in place."""
    residue -= nodes * (residue > nodes // 2)
    return residue.astype(np.float64) * (2 * math.pi / nodes)


def _times(k: Ints, factor: int, nodes: int) -> Ints:
    """k * factor mod nodes without overflow for nodes below 2^61: Horner's rule on pieces of the factor."""
    bits = 62 - nodes.bit_length()
    pieces = [factor >> shift & ((1 << bits) - 1) for shift in range(0, max(factor.bit_length(), 1), bits)]
    result = np.zeros_like(k)
    for piece in reversed(pieces):
        result = ((result << bits) + k * piece) % nodes
    return result


def angles(k: Ints, nodes: int) -> Floats:
    """omega_k h = 2 pi k / nodes for k in [0, nodes / 2]."""
    result: Floats = phases(k, (1,), nodes)[0]
    return result


def _filter(k: Ints, groups: list[tuple[int, float]], nodes: int, bands: Bands) -> Ints:
    """The nodes among k whose exact penalty is within budget."""
    v = phases(k, tuple(stride for stride, _ in groups), nodes)
    penalty = np.array([strength for _, strength in groups]) @ (v * v)
    keep: Ints = k[(penalty * (1 - 1e-9) <= bands.at(k)) | (k == 0)]
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
            bands.at(np.maximum(centre - spacing / 2, 0.0)) * (1 + 1e-9) + 1e-6,
        )
        for comb in combs[1:]:
            if peaks.integers(last)[2] <= max(len(peaks.centre), _EXPLICIT):
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
    result: Ints = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return result


@dataclass(frozen=True, slots=True)
class _Peaks:
    """Partial peaks: penalty(k) >= constant + curvature (k - centre)^2 near each centre."""

    centre: Floats
    curvature: Floats
    constant: Floats
    budget: Floats

    def reach(self) -> Floats:
        """Half the width of each window, widened beyond the rounding of the centres."""
        room = np.maximum(self.budget - self.constant, 0.0)
        return np.sqrt(room / self.curvature) + 1e-6 + 1e-13 * self.centre

    def integers(self, last: int) -> tuple[Ints, Ints, int]:
        reach = self.reach()
        low = np.ceil(np.clip(self.centre - reach, 0, last + 1)).astype(np.int64)
        high = np.floor(np.clip(self.centre + reach, -1, last)).astype(np.int64)
        return low, high, int(np.sum(np.maximum(high - low + 1, 0)))

    def merge(self, comb: Comb, last: int, allowance: int) -> _Peaks:
        """Every combination of a peak here with a peak of the next group that is still within budget.

        Only the peaks nearest to some node in [0, last] are needed.
        """
        spacing, curvature = comb.spacing, comb.curvature
        room = np.maximum(self.budget - self.constant, 0.0)
        reach = np.sqrt(room * (1 / self.curvature + 1 / curvature)) + 1e-6 + 1e-13 * self.centre
        final_peak = math.floor(last / spacing) + 1
        first = np.ceil(np.clip((self.centre - reach) / spacing, 0, final_peak + 1)).astype(np.int64)
        final = np.floor(np.clip((self.centre + reach) / spacing, -1, final_peak)).astype(np.int64)
        total = int(np.sum(np.maximum(final - first + 1, 0)))
        if total > min(allowance, _BATCH_LIMIT):
            raise LatticeTooFineError(f"more than {min(allowance, _BATCH_LIMIT):,} partial peaks at once")
        owner = np.repeat(np.arange(len(first)), np.maximum(final - first + 1, 0))
        peak = ranges(first, final) * spacing
        c1, k1 = self.centre[owner], self.curvature[owner]
        together = k1 + curvature
        gap = np.maximum(np.abs(c1 - peak) - 1e-6 - 1e-13 * c1, 0.0)
        constant = self.constant[owner] + k1 * curvature / together * gap * gap
        keep = constant <= self.budget[owner]
        owner = owner[keep]
        return _Peaks(
            ((k1 * c1 + curvature * peak) / together)[keep], together[keep], constant[keep], self.budget[owner]
        )


def ranges(low: Ints, high: Ints) -> Ints:
    """The integers of all intervals [low, high], one after another (an interval with high < low is empty)."""
    lengths = np.maximum(high - low + 1, 0)
    starts = np.repeat(low - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return starts + np.arange(int(lengths.sum()), dtype=np.int64)
