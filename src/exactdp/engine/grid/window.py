"""The stretch of the line that a grid covers, and what it leaves outside, by Markov's inequality on both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from exactdp.balls import BITS, ends_of, precision
from exactdp.doubles import FORMULA_SLACK, UNDERFLOW
from exactdp.engine.grid.splitting import log_growth
from exactdp.engine.line.total_loss import TotalLoss

LOG_OUTSIDE = math.log(1e-15)
"""log of the tilted mass that may lie outside."""

_STRETCHES = [2.0**i for i in range(-4, 5)]


@dataclass(frozen=True)
class Tails:
    """Bounds of the tilted mass beyond a loss, on either side."""

    total: TotalLoss
    tilt: Fraction

    @cached_property
    def _moved(self) -> dict[int, list[tuple[float, float, float]]]:
        """For each side orders d with bounds of log E e^{d L} under the tilt, and the sizes that these came from."""
        lam = float(self.tilt)
        deviation = math.sqrt(max(self.total.mean_variance(lam)[1], UNDERFLOW))
        with precision(BITS):
            here = float(self.total.log_moment(self.tilt).mid())
        found: dict[int, list[tuple[float, float, float]]] = {}
        for sign in (-1, 1):
            orders = [sign * stretch * 8 / deviation for stretch in _STRETCHES]
            uppers = [self.total.log_moment_upper(lam + d) for d in orders]
            found[sign] = [(d, u - here, abs(u) + abs(here)) for d, u in zip(orders, uppers, strict=True)]
        return found

    def end(self, sign: int) -> float:
        """Beyond which there is little mass. Heuristic: affects accuracy only."""
        ends = [(log - LOG_OUTSIDE) / d for d, log, _ in self._moved[sign]]
        last = self.total.ends[0 if sign < 0 else 1]
        if last is not None:
            ends.append(float(last.mid()))
        return max(ends) if sign < 0 else min(ends)

    def mass(self, sign: int, end: float, z: float, steps: tuple[float, float]) -> float:
        """A bound of the mass that splitting leaves beyond `end`, weights taken as e^{z (point - loss)} times the tilted ones.

        `steps` are the sum of the steps of all splittings, by which losses move at most, and the sum of their squares (Lemma G3).
        """
        last = self.total.ends[0 if sign < 0 else 1]
        if last is not None:
            low, high = ends_of(last)
            if high + steps[0] < end if sign > 0 else low - steps[0] > end:
                return 0.0
        best = log_growth(z, steps[1])
        for d, log, size in self._moved[sign]:
            growth = log_growth(z + d, steps[1])
            best = min(best, log + growth - d * end + FORMULA_SLACK * (size + growth + abs(d * end)))
        return math.exp(best)
