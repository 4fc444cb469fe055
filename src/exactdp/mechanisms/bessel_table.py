"""Skellam probabilities e^-V I_n(V) and the losses of a shift by D, in balls, as far out as a question needs.

The recurrence I_{n-1} = I_{n+1} + (2n / V) I_n, run downward, adds positive numbers only, so balls keep their relative accuracy;
it is also where the bounds of all terms that are left out come from (docs/theory/skellam.md, Lemma K1 and Theorem K2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import FORMULA_SLACK, Floats
from exactdp.errors import AccuracyError

LONGEST = 1 << 17
"""The most integers on either side."""

_EXTRA = 96  # bits beyond BITS: V is taken off log I_n, and neighbours are subtracted
_STANDARD = 18.0  # deviations on either side of the shortest table: e^{-18^2 / 2} is below 2^-BITS


@dataclass(frozen=True)
class BesselTable:
    """log p(x) and the losses log(p(x) / p(x - D)) at x = -reach, ..., D + reach."""

    variance: Fraction
    shift: int
    reach: int

    @cached_property
    def _half(self) -> list[arb]:
        """log p(n), n = 0, ..., reach + shift + 1."""
        last = self.reach + self.shift + 1
        with precision(BITS + _EXTRA):
            at = ball(self.variance)
            over, here = _bessel(self.variance, last + 1), _bessel(self.variance, last)
            logs = [here.log() - at]
            for n in range(last, 0, -1):
                over, here = here, over + ball(2 * n / self.variance) * here
                logs.append(here.log() - at)
        return logs[::-1]

    @cached_property
    def balls(self) -> list[tuple[arb, arb]]:
        """log p(x) and the loss at every x."""
        half, D = self._half, self.shift
        with precision(BITS + _EXTRA):
            return [(half[abs(x)], half[abs(x)] - half[abs(x - D)]) for x in range(-self.reach, D + self.reach + 1)]

    @cached_property
    def floats(self) -> tuple[Floats, Floats]:
        """The same in doubles, each within a unit of rounding."""
        found = np.array([(float(a.mid()), float(b.mid())) for a, b in self.balls])
        return found[:, 0], found[:, 1]

    @cached_property
    def step(self) -> float:
        """g(reach) = log(p(reach) / p(reach + 1)), positive and rising with the reach; a little too small."""
        with precision(BITS):
            return float((self._half[self.reach] - self._half[self.reach + 1]).lower()) * (1 - FORMULA_SLACK)

    @cached_property
    def bend(self) -> float:
        """At least g(m + D) - g(m) for every m from the reach on (Lemma K1)."""
        v, d = float(self.variance), self.shift
        growth = math.log1p(2 * d / v * math.exp(-self.step))
        return min(growth, (d + 1) / math.hypot(v, self.reach)) * (1 + FORMULA_SLACK)

    def log_beyond(self, z: float) -> float:
        """log of a bound of the sum of p(x) e^{z loss(x)} over all x outside, z >= -1/2; infinite where there is none."""
        logs, losses = self.floats
        falls = (-self.step + max(z, 0.0) * self.bend, -self.step)  # to the left and to the right
        if not falls[0] < -FORMULA_SLACK:
            return math.inf
        ends = [
            float(logs[i] + z * losses[i]) + fall - math.log(-math.expm1(fall))
            for i, fall in zip((0, -1), falls, strict=True)
        ]
        size = 1 + max(abs(float(logs[i])) + abs(z * float(losses[i])) for i in (0, -1))
        return float(np.logaddexp(ends[0], ends[1])) + FORMULA_SLACK * size


def tables(variance: Fraction, shift: int, last: int = LONGEST) -> list[BesselTable]:
    """Longer and longer tables, each made only when it is asked for something."""
    reach = math.ceil(_STANDARD * math.sqrt(variance)) + 32
    found = []
    while reach <= last:
        found.append(_table(variance, shift, reach))
        reach *= 2
    return found


@lru_cache(maxsize=24)
def _table(variance: Fraction, shift: int, reach: int) -> BesselTable:
    return BesselTable(variance, shift, reach)


def _bessel(variance: Fraction, order: int) -> arb:
    """I_order(variance), nearly as accurate as the working precision."""
    for more in (1, 2, 4):
        with precision((BITS + _EXTRA) * more):
            found = ball(variance).bessel_i(arb(order))
        if int(found.rel_accuracy_bits()) >= BITS + _EXTRA - 16:
            return found
    raise AccuracyError(f"A Bessel function of order {order} was not found to all digits. Give a smaller variance.")
