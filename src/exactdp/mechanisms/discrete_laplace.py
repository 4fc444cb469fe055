"""The discrete Laplace mechanism: adds X with P(X = x) proportional to exp(-|x| / scale) to an integer count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import FiniteLoss, Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_text, positive, root_up, shown, whole

LARGEST_SENSITIVITY = 4096
LARGEST_SCALE = Fraction(10**18)
LARGEST_EPSILON = 1000


@steady
@dataclass(frozen=True, init=False, repr=False)
class DiscreteLaplace(Mechanism):
    """Two-sided geometric noise on a count of integer sensitivity; pure epsilon-DP with epsilon = sensitivity / scale.

    >>> DiscreteLaplace(2).epsilon
    Fraction(1, 2)
    >>> DiscreteLaplace.from_epsilon("0.1", sensitivity=3)
    DiscreteLaplace('30', sensitivity=3)
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, scale: Number, sensitivity: int = 1) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity", whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY))
        if self.scale > LARGEST_SCALE:
            raise InvalidInputError(f"scale must be at most {float(LARGEST_SCALE):.0e}. Found {shown(scale)}.")
        if self.epsilon > LARGEST_EPSILON:
            raise InvalidInputError(
                f"epsilon = sensitivity / scale must be at most {LARGEST_EPSILON} (such noise protects nothing). "
                f"Found {self.sensitivity} / {shown(self.scale)}."
            )

    @classmethod
    def from_epsilon(cls, epsilon: Number, sensitivity: int = 1) -> DiscreteLaplace:
        """The mechanism of scale sensitivity / epsilon."""
        steps = whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY)
        return cls(steps / positive(epsilon, "epsilon"), steps)

    @property
    def epsilon(self) -> Fraction:
        """The pure-DP parameter sensitivity / scale, the greatest loss."""
        return self.sensitivity / self.scale

    @property
    def rho(self) -> Fraction:
        """epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.epsilon**2 / 2

    def pmf(self, x: int) -> float:
        """P(X = x) = tanh(1 / (2 scale)) e^{-|x| / scale}."""
        return math.tanh(float(1 / (2 * self.scale))) * math.exp(-float(abs(x) / self.scale))

    def tail(self, x: int) -> float:
        """P(X >= x), accurate in relative terms however small."""
        if x <= 0:
            return 1.0 - self.tail(1 - x)
        return math.exp(-float(x / self.scale)) / (1 + math.exp(-float(1 / self.scale)))

    def loss(self) -> Loss:
        """The values a (D - 2x), x = 0 .. D, with a = 1 / scale and D = sensitivity; symmetric.

        With q = e^{-a}: aD where X <= 0, of probability 1 / (1 + q); -aD where X >= D, of probability q^D / (1 + q); and
        a (D - 2x) where X = x between them, of probability q^x (1 - q) / (1 + q).
        """
        D = self.sensitivity
        with precision(BITS):
            a = ball(1 / self.scale)
            q = (-a).exp()
            inner = -(-a).expm1() / (1 + q)
            powers = [(-a * x).exp() for x in range(D + 1)]
            rising = [powers[D] / (1 + q), *(inner * powers[D - j] for j in range(1, D)), 1 / (1 + q)]
            return FiniteLoss(-a * D, [2 * a], [(j,) for j in range(D + 1)], rising, greatest=self.epsilon)

    def _scaled(self, by: Fraction) -> DiscreteLaplace:
        """The scale times the root of `by`, rounded up to 15 digits where it is no fraction: the noise is never less."""
        return DiscreteLaplace(root_up(self.scale**2 * by), self.sensitivity)

    def __str__(self) -> str:
        extra = "" if self.sensitivity == 1 else f", sensitivity={self.sensitivity}"
        return f"DiscreteLaplace({exact_text(self.scale)!r}{extra})"
