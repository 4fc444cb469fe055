"""The ladder of tilts.

Any tilt inside the payoff's range is valid; only speed and digits depend on it. The ladder's rungs depend on the
composition alone, so the same question gets the same contour, and the same answer bit for bit, alone or in an array.
Rung j serves the thresholds x whose saddle point K'(tilt) = x lies nearest to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.payoff import Payoff

FIRST = 1.5
"""The lowest rung, in standard deviations of S: below it the pole at 0 would need a longer period."""

SPACING = 2.0
"""Between rungs, in standard deviations: at most a factor exp(1/2) of conditioning is lost half-way."""

_BITS = 24  # tilts are dyadic with this many bits, so that sensitivity * tilt is exact in float64


@dataclass(frozen=True, slots=True)
class Positions:
    """Where the rungs of a ladder stand, in standard deviations of S. Heuristic: affects speed and accuracy only."""

    spacing: float = SPACING
    first: float = FIRST
    """The lowest rung, but for 1 - delta."""
    complement_from: float = FIRST
    """From here on, below the mean, 1 - delta is summed instead of delta."""

    def at(self, payoff: Payoff, index: float) -> float:
        """The position of rung `index`; half-way between two rungs is the boundary between what they serve."""
        return (FIRST if payoff is Payoff.COMPLEMENT else self.first) + self.spacing * index


ALONE = Positions()
"""The ladder of one composition on a lattice."""

FAMILY = Positions(4.2, 2.7, 0.3)
"""The ladder of a family, on a lattice or on the line: wide apart, because planning a rung costs more than a digit is worth,
and the lowest far enough from the pole at 0 for a period not much longer than the next ones'."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One tilt and the interval of thresholds x that it is meant for."""

    payoff: Payoff
    index: int
    tilt: Fraction
    x_low: float
    x_high: float


def short(value: float) -> Fraction:
    """A dyadic number of few bits next to value, so that integer multiples of it are exact in float64."""
    return Fraction(short_double(value))


def short_double(value: float, bits: int = _BITS) -> float:
    """`short` as a double, which it is exactly."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 2**bits), exponent - bits)


def _deviation(lattice: Lattice) -> float:
    return math.sqrt(lattice.widest)


def delta_payoff(lattice: Lattice, epsilon: Fraction, positions: Positions = ALONE) -> Payoff:
    """Whether delta or 1 - delta is summed at epsilon >= 0: the latter below R/2, where delta is nearer to 1.

    Heuristic: affects accuracy only.
    """
    below = epsilon.numerator / epsilon.denominator < complement_below(lattice, positions)
    return Payoff.COMPLEMENT if below else Payoff.DELTA


def complement_below(lattice: Lattice, positions: Positions) -> float:
    """The epsilon below which `delta_payoff` says 1 - delta."""
    return lattice.r / 2 - _complement_from(lattice, positions)


def _complement_from(lattice: Lattice, positions: Positions) -> float:
    return positions.complement_from * math.sqrt(lattice.r)


def rung(lattice: Lattice, payoff: Payoff, index: int, positions: Positions = ALONE) -> Rung:
    """Rung `index` (from 0) of the payoff's ladder."""
    deviation = _deviation(lattice)
    before, own, after = (positions.at(payoff, index + i) / deviation for i in (-0.5, 0, 0.5))
    low = lattice.mean_variance(before)[0] if index > 0 else -math.inf
    high = lattice.mean_variance(after)[0]
    tilt = short(own)
    if payoff is not Payoff.COMPLEMENT:
        floor = 0.0 if payoff is Payoff.TAIL else -_complement_from(lattice, positions)
        return Rung(payoff, index, tilt, max(low, floor), high)
    if tilt > Fraction(1, 2):
        return Rung(payoff, index, Fraction(-1, 2), -lattice.r / 2, min(-low, 0.0))
    return Rung(payoff, index, -tilt, max(-high, -lattice.r / 2), min(-low, -_complement_from(lattice, positions)))


def shared_rung(index: int) -> int:
    """The rung whose contour serves rung `index` in balls: the lowest stands alone, then three neighbours share the middle one.

    What conditioning loses costs balls two digits, of which they have more; the lowest needs a longer period than the others.
    """
    return index and 3 * ((index - 1) // 3) + 2


def wide_rung(lattice: Lattice, payoff: Payoff, index: int) -> Rung:
    """Rung `index`, one that `shared_rung` gives, with the interval of all that share it."""
    own = rung(lattice, payoff, index)
    served = [rung(lattice, payoff, i) for i in (index - 1, index + 1)] if index else [own]
    return replace(own, x_low=min(r.x_low for r in served), x_high=max(r.x_high for r in served))


def rung_index(lattice: Lattice, payoff: Payoff, x: float, positions: Positions = ALONE) -> int:
    """The rung that serves threshold x."""
    target, deviation = -x if payoff is Payoff.COMPLEMENT else x, _deviation(lattice)

    def above(index: int) -> bool:  # does the boundary over this rung lie above the target?
        return lattice.mean_variance(positions.at(payoff, index + 0.5) / deviation)[0] > target

    guess = max(0, round((target / lattice.r * deviation - positions.at(payoff, 0)) / positions.spacing))
    if above(guess) and not (guess and above(guess - 1)):  # most often
        return guess if payoff is not Payoff.COMPLEMENT else min(guess, last_complement_rung(lattice, positions))
    reach = 1
    while not above(guess + reach):
        reach *= 2
    high = guess + reach
    reach = 1
    while guess - reach >= 0 and above(guess - reach):
        reach *= 2
    low = max(guess - reach, -1)  # below the answer, or -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if above(middle) else (middle, high)
    if payoff is Payoff.COMPLEMENT:  # every rung past tilt 1/2 is the same contour: keep the first of them
        high = min(high, last_complement_rung(lattice, positions))
    return high


def last_complement_rung(lattice: Lattice, positions: Positions = ALONE) -> int:
    """The first rung past tilt 1/2 for 1 - delta, which serves all the rest."""
    return max(0, math.ceil((0.5 * _deviation(lattice) - FIRST) / positions.spacing))
