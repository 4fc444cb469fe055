"""A symmetric table of noise: exact probabilities of whole numbers, and the mechanism that adds it to a count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from exactdp.doubles import Floats
from exactdp.guarantees.best_noise.lower_bound import Cost
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.numbers import exact_repr


@dataclass(frozen=True)
class NoiseTable:
    """P(X = x) = P(X = -x) = half[x], fractions that add up to exactly 1."""

    __repr__ = exact_repr

    half: tuple[Fraction, ...]

    @classmethod
    def rounded(cls, half: Floats, delta: float) -> NoiseTable:
        """Doubles as fractions, with digits enough for this delta; what rounds to 0 at the end is left out."""
        unit = 10 ** (math.ceil(-math.log10(delta)) + 8)
        weights = [round(float(p) * unit) for p in half]
        while len(weights) > 1 and not weights[-1]:
            weights.pop()
        weights[0] = unit - 2 * sum(weights[1:])
        return cls(tuple(Fraction(w, unit) for w in weights))

    @property
    def pmf(self) -> dict[int, Fraction]:
        """The probability of each outcome that there is."""
        reach = len(self.half) - 1
        return {x: self.half[abs(x)] for x in range(-reach, reach + 1) if self.half[abs(x)]}

    def mechanism(self, sensitivity: int = 1) -> Outcomes:
        """The noise on a count that differs by exactly this much between the two data sets."""
        reach = len(self.half) - 1
        nothing = [Fraction(0)] * sensitivity
        listed = [self.half[abs(x)] for x in range(-reach, reach + 1)]
        return Outcomes([*listed, *nothing], [*nothing, *listed])

    def mean(self, cost: Cost) -> Fraction:
        """The mean cost, exactly."""
        return sum((cost.of(x) * p for x, p in self.pmf.items()), Fraction(0))

    def margin(self, outside: Fraction) -> int:
        """The least whole number that the noise exceeds in size with at most this probability."""
        left = 1 - self.half[0]
        size = 0
        while left > outside:
            size += 1
            left -= 2 * self.half[size]
        return size

    @property
    def largest(self) -> int:
        """The largest error that there is."""
        return len(self.half) - 1
