"""A mechanism of which only (epsilon, delta)-DP is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import FiniteLoss, Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_text, rational, shown

SMALLEST_EPSILON = Fraction(1, 10**18)
LARGEST_EPSILON = Fraction(1000)


@steady
@dataclass(frozen=True, init=False, repr=False)
class ApproximateDP(Mechanism):
    """Any (epsilon, delta)-DP mechanism, replaced by the pair that dominates all of them (Kairouz, Oh and Viswanath 2015).

    >>> ApproximateDP("0.5").rho
    Fraction(1, 8)
    >>> ApproximateDP(1, "1e-6")
    ApproximateDP('1', delta='1/1000000')
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number = 0) -> None:
        object.__setattr__(self, "epsilon", rational(epsilon, "epsilon"))
        object.__setattr__(self, "delta", rational(delta, "delta"))
        if self.epsilon != 0 and not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise InvalidInputError(
                f"epsilon must be 0 or between {float(SMALLEST_EPSILON):.0e} (round a smaller one up) and "
                f"{float(LARGEST_EPSILON):.0f}. Found {shown(epsilon)}."
            )
        if not 0 <= self.delta < 1:
            raise InvalidInputError(f"delta must be at least 0 and below 1. Found {shown(delta)}.")

    @property
    def rho(self) -> Fraction | float:
        """epsilon^2 / 2 if delta is 0 (Bun and Steinke 2016, Proposition 1.4), else infinite."""
        return math.inf if self.delta else self.epsilon**2 / 2

    def loss(self) -> Loss:
        """Infinite with probability delta, else epsilon or -epsilon with odds e^epsilon to 1; symmetric."""
        with precision(BITS):
            epsilon, finite = ball(self.epsilon), ball(1 - self.delta)
            if self.epsilon == 0:
                return FiniteLoss(arb(0), [], [()], [finite], self.delta, Fraction(0))
            low, high = finite / (1 + epsilon.exp()), finite / (1 + (-epsilon).exp())
            return FiniteLoss(-epsilon, [2 * epsilon], [(0,), (1,)], [low, high], self.delta, self.epsilon)

    def __str__(self) -> str:
        extra = f", delta={exact_text(self.delta)!r}" if self.delta else ""
        return f"ApproximateDP({exact_text(self.epsilon)!r}{extra})"
