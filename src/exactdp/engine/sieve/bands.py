"""Budgets by frequency: how small a node of the Fourier sum must be to be left out, and what all of them can add up to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from exactdp.doubles import FORMULA_SLACK, SUM_SLACK, Floats, Ints


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
        index = self.edges.searchsorted(k, side="left") - 1
        result: Floats = self.budgets[np.minimum(np.maximum(index, 0), len(self.budgets) - 1)]
        return result

    @classmethod
    def sharing(
        cls, edges: list[float], log_masses: Floats, log_aim: float, slack: float, log_beyond: float = -math.inf
    ) -> Bands:
        """Budgets that keep the dropped sum at about exp(log_aim), an equal share for each band (see `even_budgets`).

        `log_beyond` bounds what all nodes after the last edge add up to.
        """
        budgets = even_budgets(log_masses, log_aim - math.log(len(log_masses)))
        log_dropped = log_sum_dropped(log_masses, budgets, log_beyond)
        return cls(np.array([-1.0, *edges[1:]]), budgets + slack, slack, log_dropped)

    def log_dropped_on(self, nodes: int, period: float, corners: tuple[float, ...]) -> float:
        """`log_dropped` for a coarser lattice of the same period, whose nodes are the first ones of these bands."""
        edges, budgets = _clipped(self.edges, self.budgets - self.slack, nodes // 2)
        return log_sum_dropped(_log_masses(edges, nodes, period, corners), budgets)


def octaves(first: float, last: int) -> list[float]:
    """The edges of bands over the nodes 1..last: 0, then from `first` on each twice the one before, then last."""
    edges, edge = [0.0], first
    while edge < last:
        if math.floor(edge) > math.floor(edges[-1]):  # an octave without nodes is no band
            edges.append(edge)
        edge *= 2
    return [*edges, float(last)]


def even_budgets(log_masses: Floats, share: float) -> Floats:
    """The least penalties, never increasing from band to band, over which a band's nodes add up to at most exp(share).

    `log_masses` are the logarithms of the number of nodes of each band times the largest size of what surrounds |cf|.
    """
    result: Floats = np.maximum.accumulate((log_masses - share)[::-1])[::-1]
    return result


def log_sum_dropped(log_masses: Floats, budgets: Floats, log_beyond: float = -math.inf) -> float:
    """Theorem 3: what the nodes over budget, and all those beyond the last edge, can add up to."""
    return float(np.logaddexp(np.logaddexp.reduce(log_masses - budgets), log_beyond)) + SUM_SLACK


def make_bands(nodes: int, period: float, corners: tuple[float, ...], slack: float, log_aim: float) -> Bands:
    """The bands of a lattice with N = `nodes`, spread evenly over octaves of frequency.

    In a band whose first node is at omega the transform is at most product of min(1, C / omega) of its value at the tilt, and
    the band holds 2 (floor(high) - floor(low)) nodes, mirror images included (Theorem 3). Node 0 is never
    dropped and is not counted.
    """
    edges = octaves(max(corners) * period / (2 * math.pi), nodes // 2)
    return Bands.sharing(edges, _log_masses(edges, nodes, period, corners), log_aim, slack)


def _log_masses(edges: list[float], nodes: int, period: float, corners: tuple[float, ...]) -> Floats:
    """log of (number of nodes / N) times the largest relative size of the transform, for each band (from edges[0] = 0)."""
    masses = []
    for low, high in pairwise(edges):
        omega = (math.floor(low) + 1) * 2 * math.pi / period * (1 - FORMULA_SLACK)  # the first node of the band
        size = math.prod(min(1.0, c / omega) for c in corners)
        count = 2 * (math.floor(high) - math.floor(low))
        if nodes % 2 == 0 and high == nodes // 2:
            count -= 1  # the node N/2 has no mirror image
        masses.append(math.log(count / nodes * size))
    return np.array(masses)


def _clipped(edges: Floats, budgets: Floats, half: int) -> tuple[list[float], Floats]:
    """The bands up to node `half`, the last one cut there."""
    inner = [0.0, *(float(e) for e in edges[1:-1] if math.floor(e) < half)]
    return [*inner, float(half)], budgets[: len(inner)]
