"""The loss of a whole composition: the sum of its mechanisms' losses, whatever their kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import POWER_SLACK, Floats
from exactdp.mechanisms.loss import Loss
from exactdp.numbers import total

_LONGEST_FRACTION = 50_000  # bits


@dataclass(frozen=True)
class Part:
    """`count` mechanisms with the same loss."""

    loss: Loss
    count: int


@dataclass(frozen=True)
class TotalLoss:
    """L = sum of independent losses, given that all are finite, and the probability that one is not."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, mechanisms: Mapping[Any, int]) -> TotalLoss:
        """The total loss of mechanisms, each with how often it occurs."""
        return cls(tuple(Part(mechanism.loss(), count) for mechanism, count in mechanisms.items()))

    @cached_property
    def lost(self) -> arb:
        """P(L = infinity), as a ball with relative accuracy."""
        exact = self.lost_exactly
        with precision(BITS):
            if exact is not None:
                return ball(exact)
            return -sum((p.count * (-ball(p.loss.lost)).log1p() for p in self.parts), arb(0)).expm1()

    @cached_property
    def kept(self) -> arb:
        """P(L < infinity), as a ball with relative accuracy."""
        exact = self.lost_exactly
        with precision(BITS):
            if exact is not None:
                return ball(1 - exact)
            return sum((p.count * (-ball(p.loss.lost)).log1p() for p in self.parts), arb(0)).exp()

    @cached_property
    def greatest(self) -> Fraction | None:
        """The greatest finite value where it is known to be a rational number."""
        known = [(p.count, p.loss.greatest) for p in self.parts]
        exact = [n * g for n, g in known if g is not None]
        return sum(exact, Fraction(0)) if len(exact) == len(known) else None

    @cached_property
    def constant(self) -> arb | None:
        """The value of the loss if it has only one."""
        return self.ends[0] if all(p.loss.is_constant for p in self.parts) else None

    @cached_property
    def lost_exactly(self) -> Fraction | None:
        """P(L = infinity) as a fraction, unless that would be a very long one."""
        losing = [p for p in self.parts if p.loss.lost]
        if sum(p.count * p.loss.lost.denominator.bit_length() for p in losing) > _LONGEST_FRACTION:
            return None
        return 1 - math.prod(((1 - p.loss.lost) ** p.count for p in losing), start=Fraction(1))

    @cached_property
    def ends(self) -> tuple[arb | None, arb | None]:
        """The least and the greatest finite value; None where there is none."""
        with precision(BITS):
            lows, highs = ([p.loss.ends[i] for p in self.parts] for i in (0, 1))
            return self._sum(lows), self._sum(highs)

    def _sum(self, values: list[arb | None]) -> arb | None:
        total = arb(0)
        for part, value in zip(self.parts, values, strict=True):
            if value is None:
                return None
            total += part.count * value
        return total

    def delta(self, y: arb) -> tuple[arb, arb] | None:
        """delta(y) and its slope where the loss is that of one mechanism which has a formula for them."""
        return self.parts[0].loss.delta(y) if len(self.parts) == 1 and self.parts[0].count == 1 else None

    def log_moment(self, z: Fraction) -> arb:
        """log E e^{zL} for real z."""
        with precision(BITS):
            return sum((p.count * p.loss.log_moment(z) for p in self.parts), arb(0))

    def log_moment_upper(self, z: float) -> float:
        """A double above log E e^{zL}."""
        quadratic, others = self._split
        parts = [p.count * p.loss.log_moment_upper(z) for p in others]
        size = sum(map(abs, parts), start=quadratic * abs(z) * (abs(z) + 1) + 1)
        return math.fsum([quadratic * z * (z + 1) / 2, *parts]) + POWER_SLACK * size

    @cached_property
    def _split(self) -> tuple[float, list[Part]]:
        """The sum of R over the parts with a quadratic moment function, and the other parts."""
        known = [(p, p.loss.quadratic) for p in self.parts]
        return math.fsum(p.count * r for p, r in known if r is not None), [p for p, r in known if r is None]

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of L under the tilt. Heuristic: affects speed and accuracy only."""
        quadratic, others = self._split
        found = [(p.count, p.loss.mean_variance(tilt)) for p in others]
        mean = math.fsum([quadratic * (tilt + 0.5), *(n * m for n, (m, _) in found)])
        return mean, math.fsum([quadratic, *(n * v for n, (_, v) in found)])

    @cached_property
    def widest(self) -> float:
        """An upper estimate of the variance under any tilt. Heuristic: affects speed and accuracy only."""
        return sum(p.count * p.loss.widest for p in self.parts)

    @cached_property
    def per_tilt(self) -> Fraction | None:
        """By how much one more unit of tilt moves the whole loss; None where it does more than that."""
        each = [(p.count, p.loss.per_tilt) for p in self.parts]
        found = [n * v for n, v in each if v is not None]
        return total(found) if found and len(found) == len(each) else None

    @cached_property
    def bends(self) -> bool:
        """Whether the variance changes by orders of magnitude with the tilt. Heuristic: affects speed and accuracy only."""
        return any(p.loss.bends for p in self.parts)

    @cached_property
    def is_long(self) -> bool:
        """Whether a loss that bends is not told apart by labels: a tilt can then have a tail far longer than the answer needs.
        Heuristic: affects speed and accuracy only."""
        return any(p.loss.bends and not p.loss.is_labelled for p in self.parts)

    @cached_property
    def steps(self) -> int:
        """The number of mechanisms."""
        return sum(p.count for p in self.parts)

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether exchanging the two data sets changes nothing."""
        return all(p.loss.reversed() is p.loss for p in self.parts)

    def reversed(self) -> TotalLoss:
        """The loss with the two data sets exchanged."""
        return TotalLoss(tuple(Part(p.loss.reversed(), p.count) for p in self.parts))


def log_largest_gain(nu: float | Floats) -> Any:
    """log of the largest e^{-nu u} (1 - e^{-u}), u >= 0, in doubles: delta(y) is at most its exponential times E e^{nu (L - y)}
    (docs/theory/smooth.md, Theorem S6)."""
    return nu * np.log(nu / (1 + nu)) - np.log1p(nu)
