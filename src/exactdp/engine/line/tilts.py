"""The tilts at which a total loss is evaluated, and which of them serves a threshold.

Any tilt inside the payoff's range is valid; only accuracy depends on it. (engine/lattice/tilts.py is the same for a
lattice, where the loss is symmetric and its spread is known.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from exactdp.engine.lattice.tilts import Positions, short
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff

ALONE = Positions(spacing=1.5)
"""The ladder of one composition on the line."""

_MOST_PIECES = 256  # of one rung
_PIECE_LOSS = 3.0  # factors of e lost between the middle of a piece and its ends
_SHARES = (0.0, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6)  # by which a tilt is lowered
_ALIASED = 35.0  # -log of what aliases may leave
_LONG = 1.3  # from this ratio on a shorter period is looked for
_WORTH = 2.0
_FACTOR = 1.3  # between the ends of a part of a rung
_HIGHEST = 1 << 20  # the last rung: above it the greatest loss is next


@dataclass(frozen=True)
class LineRung:
    """One tilt of the ladder and the thresholds it is meant for."""

    payoff: Payoff
    index: int
    tilt: Fraction
    low: float
    high: float
    part: int = 0
    """Which of its parts it is, if it is one of several that share a tilt."""


class Ladder:
    """Tilts for a total loss: positions / deviation, each for the thresholds nearest to its mean. They depend on the
    composition alone, so an answer does not depend on what else is asked. Heuristic: affects accuracy only."""

    def __init__(self, total: TotalLoss, positions: Positions = ALONE) -> None:
        self._total, self._positions = total, positions
        self._deviation = math.sqrt(total.widest)
        self._mean, variance = total.mean_variance(0.0)
        self._moments = cache(total.log_moment_upper)
        self._start = self._mean - positions.complement_from * math.sqrt(variance)

    def _edge(self, payoff: Payoff, index: int) -> float:
        """The mean loss half-way between rung `index` and the next."""
        sign = -1 if payoff is Payoff.COMPLEMENT else 1
        return self._total.mean_variance(sign * self._positions.at(payoff, index + 0.5) / self._deviation)[0]

    def rung_of(self, y: float) -> LineRung:
        """The rung that serves the threshold y >= 0, or the piece of it that does."""
        own = self.rung(*self.place_of(y))
        if not self._total.is_long or own.payoff is not Payoff.DELTA:
            return own
        return _narrowed(self._piece(own, y), y)

    def _piece(self, own: LineRung, y: float) -> LineRung:
        """The rung with a lower tilt where that needs a much shorter period, divided where it would not serve the whole of it.

        Under the tilt whose mean is y a loss that bends (a sampled one: rarely large, mostly next to nothing) can have a tail far
        longer than the answer needs. A tilt that loses a few factors e of conditioning shortens it.
        """
        kept, width = float(own.tilt), own.high - own.low
        moved = min(self._shorter(kept, own.low + share * width) for share in (0.03, 0.5))
        if moved == kept:
            return own
        count = min(max(math.ceil(width * (kept - moved) / _PIECE_LOSS), 1), _MOST_PIECES)
        width /= count
        place = min(max(math.floor((y - own.low) / width), 0), count - 1)
        low = own.low + place * width
        tilt = moved if count == 1 else self._shorter(kept, low + width / 2)
        return LineRung(own.payoff, own.index * _MOST_PIECES + place, short(tilt), low, low + width)

    def _shorter(self, tilt: float, y: float) -> float:
        """The tilt at most this one with the shortest period, a factor of e in length being worth _WORTH factors of e in size.

        To the left aliases need tilt T above the logarithm of the answer, to the right they are bounded by Markov's inequality.
        """
        moment = self._moments
        orders = [tilt * (1 + 0.0025 * 1.8**i) for i in range(15)]
        tilts = [tilt * (1 - share) for share in _SHARES]
        uppers = {nu: moment(nu) for nu in orders}

        def period(at: float) -> float:
            base = moment(at)
            right = min((k - base - (nu - at) * y + _ALIASED) / (nu - at) for nu, k in uppers.items() if nu > at)
            return max((max(at * y - base, 0.0) + _ALIASED) / at, right)

        if period(tilt) < _LONG * (max(tilt * y - moment(tilt), 0.0) + _ALIASED) / tilt:
            return tilt
        return min(
            tilts, key=lambda at: math.log(period(at)) + (moment(at) - at * y - moment(tilt) + tilt * y) / _WORTH
        )

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


def _narrowed(rung: LineRung, y: float) -> LineRung:
    """The part of a long rung whose thresholds are within a factor of each other: what steps are called large depends on them."""
    if not y > 0 or rung.high <= _FACTOR * rung.low:
        return rung
    part = math.floor(math.log(y) / math.log(_FACTOR))
    low, high = _FACTOR**part, _FACTOR ** (part + 1)
    return LineRung(rung.payoff, rung.index, rung.tilt, max(rung.low, low), min(rung.high, high), part)
