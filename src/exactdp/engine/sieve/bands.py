"""Budgets by frequency: how small a node of the Fourier sum must be to be left out, and what all of them can add up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from exactdp.doubles import Floats, Ints


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
