"""What no noise can beat: a bound of the error of every symmetric noise of whole numbers that meets some inequalities.

Multipliers for the inequalities are all there is to it: `NoiseBound.value` is a theorem whatever they are (Theorem 1 of
docs/theory/optimal-noise.md), computed in fractions, without rounding. Finding good ones is a solver's work, and free.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from exactdp.errors import InvalidInputError

HALF = Fraction(1, 2)


class Cost(StrEnum):
    """What is to be small."""

    VARIANCE = "variance"
    """The mean square of the noise."""
    ABSOLUTE = "absolute"
    """The mean absolute value of the noise."""

    def of(self, x: int) -> int:
        """What the error x costs: it does not fall in the size of x."""
        return x * x if self is Cost.VARIANCE else abs(x)


@dataclass(frozen=True)
class Multipliers:
    """A number for each whole one from `first` on; before and after them it stays what it is there."""

    first: int
    values: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidInputError("A list of multipliers must have one at least. Found none.")

    def at(self, x: int) -> Fraction:
        """The number that belongs to x."""
        return self.values[min(max(x - self.first, 0), len(self.values) - 1)]

    @property
    def reach(self) -> int:
        """From here on, on both sides, nothing changes any more."""
        return max(abs(self.first), abs(self.first + len(self.values) - 1))


class Inequality(ABC):
    """An inequality that every admissible noise p meets, with its multipliers: sum of price(x) p(x) >= `worth`."""

    shift: int

    @abstractmethod
    def price(self, x: int) -> Fraction:
        """What the multipliers take from the cost of x."""

    @property
    @abstractmethod
    def worth(self) -> Fraction:
        """What they give instead."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """Beyond it, on both sides, `price` is constant."""


@dataclass(frozen=True)
class HockeyStick(Inequality):
    """sum over x of (p(x) - ratio p(x - shift))_+ is at most `allowed`.

    The test y has values from 0 to `weight`: y (p(x) - ratio p(x - shift)) is at most weight times the positive part.
    """

    shift: int
    ratio: Fraction
    allowed: Fraction
    weight: Fraction
    test: Multipliers

    def __post_init__(self) -> None:
        if not all(0 <= y <= self.weight for y in self.test.values):
            raise InvalidInputError("The multipliers of a test must lie between 0 and its weight. Found others.")

    def price(self, x: int) -> Fraction:
        """-(y(x) - ratio y(x + shift))."""
        return self.ratio * self.test.at(x + self.shift) - self.test.at(x)

    @property
    def worth(self) -> Fraction:
        """-weight * allowed."""
        return -self.weight * self.allowed

    @property
    def reach(self) -> int:
        """That of the test, and a shift."""
        return self.test.reach + self.shift


@dataclass(frozen=True)
class Affinity(Inequality):
    """sum over x of sqrt(p(x) p(x - shift)) is at least `least`.

    For s(x) > 0 each root is at most (s(x) p(x) + p(x - shift) / s(x)) / 2: a tangent, with equality where s^2 is the ratio.
    """

    shift: int
    least: Fraction
    weight: Fraction
    slopes: Multipliers

    def __post_init__(self) -> None:
        if self.weight < 0 or not all(s > 0 for s in self.slopes.values):
            raise InvalidInputError(
                "The slopes of tangents must be positive, and their weight not negative. Found others."
            )

    def price(self, x: int) -> Fraction:
        """weight times (s(x) + 1 / s(x + shift)) / 2."""
        return self.weight * (self.slopes.at(x) + 1 / self.slopes.at(x + self.shift)) * HALF

    @property
    def worth(self) -> Fraction:
        """weight * least."""
        return self.weight * self.least

    @property
    def reach(self) -> int:
        """That of the slopes, and a shift."""
        return self.slopes.reach + self.shift


@dataclass(frozen=True)
class NoiseBound:
    """The mean cost of every symmetric noise that meets the inequalities is at least `value`."""

    cost: Cost
    inequalities: tuple[Inequality, ...]

    @cached_property
    def value(self) -> Fraction:
        """min over x >= 0 of [cost(x) - mean of the prices of x and -x] + all that they are worth, exactly; at least 0.

        Beyond the reach of all inequalities the bracket grows with the cost, so that one x beyond it is enough.
        """
        last = 1 + max((one.reach for one in self.inequalities), default=0)
        least = min(self._left(x) for x in range(last + 1))
        return max(Fraction(0), least + sum((one.worth for one in self.inequalities), Fraction(0)))

    def _left(self, x: int) -> Fraction:
        prices = sum((one.price(x) + one.price(-x) for one in self.inequalities), Fraction(0))
        return self.cost.of(x) - prices * HALF


def multipliers(first: int, values: Sequence[float], low: float, high: float) -> Multipliers:
    """Doubles as exact multipliers, moved into a range."""
    return Multipliers(first, tuple(Fraction(min(max(float(v), low), high)) for v in values))
