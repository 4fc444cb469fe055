"""The worst over very many pairs: all of them on the same contours, and their largest delta searched as if it were one profile.

Where hundreds of thousands of pairs cost nearly the same, asking the suspects one by one takes minutes. The largest of falling
functions falls, so the search for epsilon and the dual that makes beta may have it in the place of one composition's delta
(Theorems 5 and 15 ask for no more); a table of all pairs at one epsilon takes a tenth of a second once the contour is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from exactdp.accounting.epsilon_search import EpsilonSearch, gaussian_start, moved_down
from exactdp.accounting.line_pairs import LinePairs
from exactdp.brackets import Point
from exactdp.census.overall import Overall
from exactdp.engine.family.line_contours import LineFamily, Width
from exactdp.guarantees.zcdp import zcdp_epsilon_simple
from exactdp.numbers import log_rational

WIDTHS: tuple[Width, Width] = ((1e-10, 30_000.0), (1e-10, 400_000.0))
"""What smoothing may cost: finer than this, pairs whose noise is coarse have very many nodes."""


class ManyPairs(LinePairs):
    """So many pairs that none is asked by itself."""

    resort_width: ClassVar[float] = 1e-8
    resort_width_beta: ClassVar[float] = 1e-7

    def __init__(self, family: LineFamily) -> None:
        super().__init__(replace(family, widths=WIDTHS, together=1))

    def screen(self, epsilons: Sequence[Fraction], widths: tuple[Width, Width] = WIDTHS) -> Iterator[Point]:
        """All pairs on the contours that are there: rougher ones would have to be made."""
        everyone = np.arange(self.count)
        for epsilon in epsilons:
            yield self.shared_at(everyone, [epsilon], np.zeros_like(everyone))


class WorstOfMany(Overall):
    """The worst over so many pairs that only their maximum is asked for."""

    def epsilons(self, deltas: Sequence[Fraction]) -> list[tuple[float, float]]:
        """Bounds of the largest epsilon(delta), 0 < delta < 1: both ends proved for all pairs together (Theorem 5)."""
        return [self._search(delta).bracket() for delta in deltas]

    def point(self, epsilon: Fraction) -> Point:
        """delta(epsilon) and 1 - delta(epsilon) of every pair."""
        assert isinstance(self.pairs, ManyPairs)
        return self.pairs.shared_table(range(self.pairs.count), [epsilon])

    def _search(self, delta: Fraction) -> EpsilonSearch:
        spread = self.pairs.spread
        rho = Fraction(spread) / 2 * (1 + Fraction(1, 10**6))  # the spread is a double
        highest = float(zcdp_epsilon_simple(rho, delta))
        lowest = moved_down(log_rational(1 - delta))  # delta(epsilon) is at least 1 - e^epsilon
        profiles = [self._worst_shared] * 3
        return EpsilonSearch(profiles, delta, gaussian_start(spread, delta), highest, lowest)
