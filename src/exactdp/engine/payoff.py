"""What is summed: the three payoffs and their transforms.

With q = exp(-z h), a payoff that starts at lattice point t has the transform (x0 = h t)

    TAIL         v = 1 from t on                    V = e^{-z x0} / (1 - q)                                          Re z > 0
    DELTA        v = 1 - e^{y - x} from t on        V = e^{-z x0} (A + B q) / ((1 - q) (1 - q e^{-h}))               Re z > 0
    COMPLEMENT   v = min(1, e^{y - x}), all x       V = e^{-z x0} (A / q + B) / ((1 - 1/q) (1 - q e^{-h}))      -1 < Re z < 0

where y = epsilon - R/2, t = floor(y/h) + 1, g = y - x0 in [-h, 0), A = 1 - e^g >= 0 and B = e^g - e^{-h} >= 0 (TAIL:
A = 1, B = 0). DELTA gives delta(epsilon), COMPLEMENT gives 1 - delta(epsilon), TAIL gives P(S >= x0). In this form
nothing cancels.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np

from exactdp.doubles import Complexes, Floats, Ints
from exactdp.engine.lattice.lattice import Lattice

_FARTHEST = 1 << 62
_Real = TypeVar("_Real", float, Floats)


class Payoff(enum.Enum):
    """Which functional of S is summed."""

    TAIL = "tail"
    DELTA = "delta"
    COMPLEMENT = "complement"

    @property
    def tilt_range(self) -> tuple[float, float]:
        """The open interval of tilts at which the transform converges."""
        return (-1.0, 0.0) if self is Payoff.COMPLEMENT else (0.0, math.inf)


@dataclass(frozen=True, slots=True)
class Threshold:
    """One question to a contour: the lattice point where the payoff starts and the distance g = y - x0 (None for a tail).

    `a` and `b` are the payoff's coefficients in float64, good to a few units in the last place.
    """

    steps: int
    gap: Fraction | None
    a: float
    b: float


def tail_threshold(steps: int) -> Threshold:
    """P(S >= h * steps)."""
    return Threshold(steps, None, 1.0, 0.0)


def delta_threshold(lattice: Lattice, epsilon: Fraction) -> Threshold:
    """delta(epsilon) or its complement; integers and gap are exact."""
    h, half = lattice.step, lattice.half_spread
    # y = epsilon - R/2 = top / bottom, and y / h, without reducing fractions on the way
    top = epsilon.numerator * half.denominator - half.numerator * epsilon.denominator
    bottom = epsilon.denominator * half.denominator
    steps = (top * h.denominator) // (bottom * h.numerator) + 1
    unit, short = bottom * h.denominator, top * h.denominator - steps * h.numerator * bottom
    gap, rest = short / unit, (short + h.numerator * bottom) / unit  # g and g + h, each rounded once
    return Threshold(steps, Fraction(short, unit), -math.expm1(gap), -math.exp(gap) * math.expm1(-rest))


@dataclass(frozen=True)
class Thresholds:
    """Many questions to contours as arrays: lattice points and the payoff's coefficients, as `Threshold` has them."""

    steps: Ints
    a: Floats
    b: Floats

    def __getitem__(self, places: Ints) -> Thresholds:
        return Thresholds(self.steps[places], self.a[places], self.b[places])

    @classmethod
    def joined(cls, parts: Sequence[Thresholds]) -> Thresholds:
        """Several one after the other."""
        columns = zip(*((part.steps, part.a, part.b) for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def tail_thresholds(steps: Ints) -> Thresholds:
    """`tail_threshold` of each."""
    return Thresholds(steps, np.ones(len(steps)), np.zeros(len(steps)))


def delta_thresholds(lattice: Lattice, epsilons: Sequence[Fraction]) -> Thresholds:
    """`delta_threshold` of each: integers are exact and gaps are rounded once, as there.

    Lattice points beyond 2^62, where no contour is, are cut off there.
    """
    h, half = lattice.step, lattice.half_spread
    h_top, h_bottom, half_top, half_bottom = h.numerator, h.denominator, half.numerator, half.denominator
    points, gaps, rests = [], [], []
    for epsilon in epsilons:
        top, bottom = epsilon.as_integer_ratio()
        unit = bottom * half_bottom
        whole, left = divmod((top * half_bottom - half_top * bottom) * h_bottom, unit * h_top)  # y / h
        points.append(min(max(whole + 1, -_FARTHEST), _FARTHEST))
        unit *= h_bottom
        gaps.append((left - bottom * half_bottom * h_top) / unit)
        rests.append(left / unit)
    gap, rest = np.array(gaps, dtype=np.float64), np.array(rests, dtype=np.float64)
    return Thresholds(np.array(points, dtype=np.int64), -np.expm1(gap), -np.exp(gap) * np.expm1(-rest))


def one_minus_q(drift: float, turn: Floats) -> Complexes:
    """1 - exp(-drift - i turn) for drift > 0, without cancellation: real part -expm1(-drift) + 2 e^{-drift} sin^2(turn/2)."""
    shrink = math.exp(-drift)
    half = np.sin(0.5 * turn)
    result = np.empty(turn.shape, dtype=np.complex128)
    result.real = -math.expm1(-drift) + 2 * shrink * half * half
    result.imag = shrink * np.sin(turn)
    return result


def transform_factors(payoff: Payoff, tilt: float, h: float, turn: Floats) -> tuple[Complexes, Complexes]:
    """The factors that A and B multiply in V e^{z x0}, at angles turn = omega h in [-pi, pi].

    Guarantee: within 110 units of rounding of the exact value relative to its modulus, and 4 |tilt h| more for the factor that
    contains q or 1/q (engine.md, F5).
    """
    if payoff is Payoff.COMPLEMENT:
        drift = -tilt * h
        base = 1 / (one_minus_q(drift, -turn) * one_minus_q((1 + tilt) * h, turn))
        inverse_q = math.exp(-drift) * np.exp(1j * turn)
        return base * inverse_q, base
    drift = tilt * h
    base = 1 / one_minus_q(drift, turn)
    if payoff is Payoff.DELTA:
        base = base / one_minus_q((1 + tilt) * h, turn)
    return base, base * (math.exp(-drift) * np.exp(-1j * turn))


def transform_corners(payoff: Payoff, tilt: float, h: float) -> tuple[float, ...]:
    """Frequencies C such that |V(tilt + i omega)| <= V(tilt) * product of min(1, C / |omega|) for |omega| <= pi / h.

    |1 - e^{-d - i x}|^2 = (1 - e^{-d})^2 + 4 e^{-d} sin^2(x/2) and |sin(x/2)| >= |x| / pi give C = pi sinh(d/2) / h
    (engine.md, Lemma 6).
    """
    drifts = [abs(tilt) * h] if payoff is Payoff.TAIL else [abs(tilt) * h, (1 + tilt) * h]
    return tuple(math.pi * math.sinh(min(d / 2, 300.0)) / h for d in drifts)


def transform_at_tilt(payoff: Payoff, tilt: float, h: float, a: _Real, b: _Real) -> _Real:
    """V(tilt) e^{tilt x0}, a sum of positive terms: the largest modulus of the transform on the contour."""
    first, second = factors_at_tilt(payoff, tilt, h)
    return a * first + b * second


def factors_at_tilt(payoff: Payoff, tilt: float, h: float) -> tuple[float, float]:
    """`transform_factors` at angle 0, where they are positive and largest."""
    shrink = math.exp(-abs(tilt) * h)
    base = 1 / -math.expm1(-abs(tilt) * h)
    if payoff is not Payoff.TAIL:
        base /= -math.expm1(-(1 + tilt) * h)
    return (base * shrink, base) if payoff is Payoff.COMPLEMENT else (base, base * shrink)
