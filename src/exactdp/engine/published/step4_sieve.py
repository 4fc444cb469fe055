"""Step 4, the sieve: Algorithm 1 finds the set C of nodes at which no characteristic function is below Delta / (8 U)."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from flint import arb

from exactdp.engine.published.step2_fourier import MOST_VISITS, Series
from exactdp.errors import LatticeTooFineError


def half_width(sigma2: Fraction, copies: int, nodes: int, threshold: arb, bits: int) -> int:
    """Algorithm 1's search for zeta^(i): the largest m <= N/2 for which f(2 pi m / N)^r is not certainly below the threshold.

    f falls on (0, pi) (Lemma "char_property"), so bisection over the integers does it, and an undecided node is kept.
    """
    series = Series(sigma2, bits)
    low, high = 0, nodes // 2 + 1
    while high - low > 1:
        middle = (low + high) // 2
        if series(middle, nodes) ** copies < threshold:
            high = middle
        else:
            low = middle
    return low


def kept_nodes(peaks: Iterable[tuple[int, int]], nodes: int) -> tuple[int, ...]:
    """The set C of Proposition "C": the k in 1..N for which a_i L k is within the half width of a multiple of N, for every pair
    (a_i L, half width), in the order in which they are given."""
    windows = [(0, nodes // 2)]  # N - k is kept with k: every f is even
    visits = 0
    for weight, reach in peaks:
        if 2 * reach + 1 >= nodes:
            continue  # every node is within N/2 of a multiple of N
        narrowed: list[tuple[int, int]] = []
        for low, high in windows:
            visits += min(weight * (high - low) // nodes, high - low) + 1
            if visits > MOST_VISITS:
                raise LatticeTooFineError(
                    f"Algorithm 1 needs over {MOST_VISITS} visits at N = {nodes}. Use the engine."
                )
            narrowed += _narrow(low, high, weight, reach, nodes)
        windows = narrowed
    half = [k for low, high in windows for k in range(low, high + 1)]
    return tuple(sorted({k or nodes for k in half} | {nodes - k for k in half}))


def _narrow(low: int, high: int, weight: int, reach: int, nodes: int) -> list[tuple[int, int]]:
    """The parts of the window low..high near a peak: node by node, or peak by peak where there are fewer peaks."""
    first, last = -((reach - weight * low) // nodes), (weight * high + reach) // nodes
    if high - low < last - first:
        return [(k, k) for k in range(low, high + 1) if (weight * k + reach) % nodes <= 2 * reach]
    ends = ((-((reach - j * nodes) // weight), (j * nodes + reach) // weight) for j in range(first, last + 1))
    clipped = ((max(low, a), min(high, b)) for a, b in ends)
    return [(a, b) for a, b in clipped if a <= b]
