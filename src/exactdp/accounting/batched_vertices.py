"""Many points of trade-off curves at once, each from the polygon of its own pair: tradeoff_vertices.py in arrays.

alpha lies on edge t where the tail at t is proved to be at least alpha and the one at t + 1 at most alpha. There the curve is the
line through either end of the edge with its slope (docs/theory/engine.md, Theorem 6). Where that is not proved within a few
steps, the caller asks elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.tradeoff_vertices import Side, log_slope, side_of
from exactdp.doubles import TINY, Bools, Floats, Ints
from exactdp.engine.lattice.lattice import Lattice

RowsAt = Callable[[Ints, Ints], Floats]
"""Certified tails: which questions, and the lattice point of each; one row for each field of a `Tail`."""

_EDGE_STEPS, _GUESSES = 40, 4
_NOWHERE = 1 << 50  # farther than any lattice point


class EdgeBetas(NamedTuple):
    """Bounds of beta, 0 and 1 where they could not be found in this way, and the edge that alpha lies on, or is near to."""

    lower: Floats
    upper: Floats
    edge: Ints


def betas_on_edges(
    rows_at: RowsAt, lattices: Sequence[Lattice], which: Ints, alphas: Sequence[Fraction], index: Ints
) -> EdgeBetas:
    """beta of each question, 0 < alpha < 1, on the lattice and at the alpha that `which` and `index` say."""
    small, log, error = np.array([side_of(alpha) for alpha in alphas]).T[:, index]
    side = Side(small > 0, log, error)
    found = _find_edges(rows_at, lattices, which, side)
    edge = np.where(side.small, found.at, -found.at)  # seen from 1 - alpha, the tail at t is that of vertex 1 - t
    lower, upper = np.zeros(len(which)), np.ones(len(which))
    mine = np.flatnonzero(found.is_proved)
    if len(mine):
        own, edges = Side(*(part[mine] for part in side)), edge[mine]
        slope = np.array([log_slope(lattices[i], e) for i, e in zip(which[mine].tolist(), edges.tolist(), strict=True)])
        mirror = np.array([lattice.spread_steps + 1 for lattice in lattices])[which[mine]] - edges
        betas = rows_at(np.concatenate([mine, mine]), np.concatenate([mirror, mirror - 1]))[:2]
        first, second = found.here[:, mine], found.next[:, mine]
        tails = np.where(own.small, [first, second], [second, first])
        lines = [own.line(tuple(b), tuple(t), slope) for b, t in zip(np.split(betas, 2, axis=1), tails, strict=True)]
        lower[mine] = np.maximum(np.maximum(lines[0][0], lines[1][0]) - TINY, 0.0)
        upper[mine] = np.minimum(np.minimum(lines[0][1], lines[1][1]) + TINY, 1.0)
    return EdgeBetas(lower, upper, edge)


class _Edges(NamedTuple):
    """Lattice points `at`, where it is proved that what is wanted lies between the tails there and one step further."""

    at: Ints
    is_proved: Bools
    here: Floats
    next: Floats


def _find_edges(rows_at: RowsAt, lattices: Sequence[Lattice], which: Ints, side: Side) -> _Edges:
    """Newton's method for the logarithm of the tail, then halving: where it looks affects speed only."""
    h, r = (np.array(part)[which] for part in zip(*((lattice.h, lattice.r) for lattice in lattices), strict=True))
    quantile = -ndtri_exp(side.log)
    # the slope of the continuous Gaussian's tail: that of a lumpy tail says little about its neighbourhood
    per_step = np.exp(-(quantile**2) / 2 - side.log) / np.sqrt(2 * math.pi * r) * h
    t = np.maximum(np.floor(quantile * np.sqrt(r) / h), 0.0).astype(np.int64)
    active, n = np.arange(len(t)), len(t)
    ends, rows = np.array([[-_NOWHERE] * n, [_NOWHERE] * n]), np.zeros((2, 2, n))  # the last above, the first below
    for attempt in range(_EDGE_STEPS):
        found, log, error = rows_at(active, t[active])[:2], side.log[active], side.error[active]
        above, below = found[0] >= log + error, found[1] <= log - error
        for end, proved in enumerate((above, below)):
            ends[end, active[proved]], rows[end][:, active[proved]] = t[active[proved]], found[:, proved]
        last, first = ends[:, active]
        going = (above | below) & (first - last > 1)
        reach = 1 << max(attempt - 1, 0)
        guess = np.clip(np.nan_to_num(np.floor((found[1] - log) / per_step[active])), -_NOWHERE, _NOWHERE)
        move = np.where(above, np.maximum(guess, reach), np.minimum(guess, -reach)).astype(np.int64)
        there = t[active] + move
        between = (last > -_NOWHERE) & (first < _NOWHERE)
        halve = between & ((there <= last) | (there >= first) | (attempt >= _GUESSES))
        t[active] = np.where(halve, (last + first) // 2, there)
        active = active[going]
        if not len(active):
            break
    return _Edges(np.where(ends[0] > -_NOWHERE, ends[0], t), ends[1] - ends[0] == 1, rows[0], rows[1])
