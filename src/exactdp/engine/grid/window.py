"""How long a circle of grid points has to be, and what wraps around it, by Markov's inequality on both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from exactdp.balls import BITS, ends_of, precision
from exactdp.doubles import FORMULA_SLACK, UNDERFLOW
from exactdp.engine.grid.splitting import log_growth
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff

OUTSIDE = 1e-14
"""Tilted mass that may be in the wrong place."""

_STRETCHES = [8 * 2.0 ** (i / 2) for i in range(-8, 9)]  # orders of moments in units of 1 / deviation
_SEARCHES = 40


@dataclass(frozen=True)
class Wrapping:
    """Bounds of what wraps around a circle that reaches from half its length below a threshold to half above it."""

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
            orders = [sign * stretch / deviation for stretch in _STRETCHES]
            if sign * lam < 0:
                orders.append(-lam)
            uppers = [self.total.log_moment_upper(lam + d) for d in orders]
            found[sign] = [(d, u - here, abs(u) + abs(here)) for d, u in zip(orders, uppers, strict=True)]
        return found

    def delta(self, y: float, length: float, squares: float) -> tuple[float, float]:
        """For delta, tilt > 0: what may have been added to the points above y, and what may be missing from them (Theorem G4).

        `squares` is the sum of the squares of the steps of all splittings, here and below (Lemma G3).
        """
        lam, half = float(self.tilt), length / 2

        def side(sign: int) -> float:
            best = math.inf
            for d, log, size in self._moved[sign]:
                nu = lam + d
                # a loss from below lands where its gain is e^{-tilt length} of its own; for nu < 0 it is half a circle down
                away = -d * length if nu >= 0 and sign < 0 else d * length if sign > 0 else lam * length - nu * half
                growth = log_growth(nu, squares)
                exponent = log + growth - d * y - away
                exponent += FORMULA_SLACK * (size + growth + abs(d * y) + away) - math.log(
                    -math.expm1(-abs(d) * length)
                )
                best = min(best, exponent)
            return math.exp(min(best, 700.0))

        missing = math.inf
        for d, log, size in (*self._moved[-1], *self._moved[1]):
            nu = lam + d
            if nu >= 0:
                growth = log_growth(nu, squares)
                exponent = log + growth - d * y - nu * half
                missing = min(missing, exponent + FORMULA_SLACK * (size + growth + abs(d * y) + nu * half))
        return side(-1) + side(1), math.exp(min(missing, 700.0))

    def mass(self, sign: int, end: float, z: float, steps: tuple[float, float]) -> float:
        """A bound of the mass that splitting leaves beyond `end`, weights taken as e^{z (point - loss)} times the tilted ones.

        `steps` are the sum of the steps of all splittings, by which losses move at most, and the sum of their squares.
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

    def end(self, sign: int, outside: float) -> float:
        """The loss beyond which there is so much mass. Heuristic: affects accuracy only."""
        ends = [(log - math.log(outside)) / d for d, log, _ in self._moved[sign] if d * sign > 0]
        last = self.total.ends[0 if sign < 0 else 1]
        if last is not None:
            ends.append(float(last.mid()))
        return max(ends) if sign < 0 else min(ends)


_SHORTEST = 1e-9  # of the deviation: a circle is never of length 0


def needed_length(total: TotalLoss, rung: LineRung, outside: float = OUTSIDE) -> float:
    """How long a circle has to be for the thresholds of a rung. Heuristic: affects accuracy only."""
    wrapping = Wrapping(total, rung.tilt)
    deviation = math.sqrt(max(total.mean_variance(float(rung.tilt))[1], UNDERFLOW))
    low, high = wrapping.end(-1, outside), wrapping.end(1, outside)
    ends = [min(max(y, low), high) for y in (rung.low, rung.high)]
    longest = max(2 * max(ends[1] - low, high - ends[0]), _SHORTEST * deviation, FORMULA_SLACK * (1 + abs(low)))
    if rung.payoff is not Payoff.DELTA:
        return longest
    shortest, enough = 0.0, longest
    for _ in range(_SEARCHES):
        middle = (shortest + enough) / 2
        wrong = max(sum(wrapping.delta(y, middle, 0.0)) for y in ends)
        shortest, enough = (shortest, middle) if wrong <= outside else (middle, enough)
        if enough - shortest <= 0.01 * enough:
            break
    return enough
