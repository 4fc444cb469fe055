"""Upper bounds from moments: where of some events nothing but their Renyi divergences is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb
from scipy.optimize import minimize_scalar

from exactdp.balls import BITS, ball, precision, upper_double
from exactdp.engine.line.total_loss import TotalLoss

_ORDERS = -60.0, 60.0  # logarithms of (order - 1) among which the best is looked for


@dataclass(frozen=True)
class Moments:
    """What E e^{z L} says about delta: L = `total`, plus a loss of which only D_{1+z} <= xi + (1 + z) rho is known.

    Given that L is finite, delta <= e^{M(z) - z epsilon} z^z / (1+z)^{1+z} for every z > 0, M(z) = log E e^{z L} + z xi +
    z (1+z) rho (docs/interop.md, Theorem 3). Every z is valid: the search for the best one is free, and its value is a ball.
    """

    total: TotalLoss
    rho: Fraction
    xi: Fraction

    @property
    def _is_nothing(self) -> bool:
        return not (self.total.parts or self.rho or self.xi)

    def delta(self, epsilon: Fraction | float) -> float:
        """A double above delta(epsilon)."""
        if self._is_nothing and epsilon >= 0:
            return 0.0
        with precision(BITS):
            if isinstance(epsilon, float):
                found = arb(0) if epsilon > 0 else arb(1)
            else:
                e = float(epsilon)
                z = self._best(lambda z: self._size(z) - z * e)
                found = (self._log_bound(z) - ball(z) * ball(epsilon)).exp()
            return min(upper_double(self.total.lost + self.total.kept * found), 1.0)

    def epsilon(self, delta: Fraction) -> float:
        """A double above the least epsilon of at least 0 at this delta."""
        if self._is_nothing or delta >= 1:
            return 0.0
        with precision(BITS):
            room = (ball(delta) - self.total.lost) / self.total.kept
            if not room > 0:
                return math.inf
            log_room = room.log()
            target = float(log_room.mid())
            z = self._best(lambda z: (self._size(z) - target) / z)
            return max(upper_double((self._log_bound(z) - log_room) / ball(z)), 0.0)

    def _size(self, z: float) -> float:
        """M(z) + z log z - (1 + z) log(1 + z). Heuristic: for the search only."""
        moment = self.total.log_moment_upper(z) + z * float(self.xi) + z * (1 + z) * float(self.rho)
        return moment - z * math.log1p(1 / z) - math.log1p(z)

    def _log_bound(self, z: Fraction) -> arb:
        """The same as a ball."""
        at = ball(z)
        moment = self.total.log_moment(z) + ball(z * self.xi + z * (1 + z) * self.rho)
        return moment - at * (1 / at).log1p() - at.log1p()

    def _best(self, size: Callable[[float], float]) -> Fraction:
        """The z > 0 at which a function with one valley is about least. Heuristic: any z is valid."""
        found = minimize_scalar(lambda u: size(math.exp(u)), bounds=_ORDERS, method="bounded", options={"xatol": 1e-9})
        return Fraction(math.exp(float(found.x)))
