"""The tilts at which a total loss is evaluated, and which of them serves a threshold.

Any tilt inside the payoff's range is valid; only accuracy depends on it. (engine/lattice/tilts.py is the same for a
lattice, where the loss is symmetric and its spread is known.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from exactdp.engine.lattice.tilts import Positions, short
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff

ALONE = Positions(spacing=1.5)
"""The ladder of one composition on the line."""

_HIGHEST = 1 << 20  # the last rung: above it the greatest loss is next


@dataclass(frozen=True)
class LineRung:
    """One tilt of the ladder and the thresholds it is meant for."""

    payoff: Payoff
    index: int
    tilt: Fraction
    low: float
    high: float


class Ladder:
    """Tilts for a total loss: positions / deviation, each for the thresholds nearest to its mean. They depend on the
    composition alone, so an answer does not depend on what else is asked. Heuristic: affects accuracy only."""

    def __init__(self, total: TotalLoss, positions: Positions = ALONE) -> None:
        self._total, self._positions = total, positions
        self._deviation = math.sqrt(total.widest)
        self._mean, variance = total.mean_variance(0.0)
        self._start = self._mean - positions.complement_from * math.sqrt(variance)

    def _edge(self, payoff: Payoff, index: int) -> float:
        """The mean loss half-way between rung `index` and the next."""
        sign = -1 if payoff is Payoff.COMPLEMENT else 1
        return self._total.mean_variance(sign * self._positions.at(payoff, index + 0.5) / self._deviation)[0]

    def rung_of(self, y: float) -> LineRung:
        """The rung that serves the threshold y >= 0."""
        return self.rung(*self.place_of(y))

    def place_of(self, y: float) -> tuple[Payoff, int]:
        """The payoff and the index of the rung that serves the threshold y >= 0."""
        payoff = Payoff.COMPLEMENT if y < self._start else Payoff.DELTA
        sign, last = self._sign_and_last(payoff)
        low, high = -1, 0
        while high < last and sign * (self._edge(payoff, high) - y) < 0:
            low, high = high, min(2 * high + 1, last)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if sign * (self._edge(payoff, middle) - y) >= 0 else (middle, high)
        return payoff, high

    def rung(self, payoff: Payoff, index: int) -> LineRung:
        """One rung."""
        sign, last = self._sign_and_last(payoff)
        lam = self._positions.at(payoff, index) / self._deviation
        tilt = short(lam) if sign > 0 else -min(short(lam), Fraction(1, 2))
        near = self._edge(payoff, index - 1) if index else self._start
        far = 0.0 if sign < 0 and index == last else self._edge(payoff, index)  # the last rung serves all the rest
        ends = sorted((near, far))
        return LineRung(payoff, index, tilt, ends[0], ends[1])

    def _sign_and_last(self, payoff: Payoff) -> tuple[int, int]:
        if payoff is not Payoff.COMPLEMENT:
            return 1, _HIGHEST
        return -1, max(0, math.ceil((0.5 * self._deviation - self._positions.at(payoff, 0)) / self._positions.spacing))
