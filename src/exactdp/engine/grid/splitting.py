"""Splitting: each value of a loss is shared between the two grid points next to it, and both data sets keep their probability.

With grid points a = x - s and b = x + t, h = s + t, the value x goes to b with probability (1 - e^{-s}) / (1 - e^{-h}) under P
and to a otherwise; then E e^{-loss} = e^{-x}, so the mass under Q, which is e^{-loss} times that under P, is kept too. Whoever
forgets to which side a value went has the original back: the split losses dominate it (docs/theory/grid.md, Theorem G1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactdp.doubles import UNIT, Floats, Ints
from exactdp.engine.line.enumeration import ListedValues

SPLIT_UNITS = 40
"""Units of rounding of one split weight: two exponentials, two quotients of expm1 and their products."""


@dataclass(frozen=True)
class SplitList:
    """Weights on the points (start + i) * step, i taken modulo their number, relative to the list's anchor.

    `p` holds w e^{tilt (point - x)}, `q` holds w e^{(tilt + 1) (point - x)}, where a share w of the tilted weight of x went to
    the point: what P and Q leave there, each in its own tilted units. `relative` bounds the error of both.
    """

    p: Floats
    q: Floats
    start: int
    relative: float


def split(values: ListedValues, tilt: float, step: float, points: int) -> SplitList:
    """The list on a grid, losses beyond its length wrapped around.

    `step` has few bits, so that its multiples are exact; a loss is moved by less than 2 units of rounding of itself or of the
    step, which `value_error` of the caller covers.
    """
    below = np.floor(values.values / step)
    s = np.clip(values.values - below * step, 0.0, step)
    t = step - s
    whole = math.expm1(-step)
    low = values.weights * np.exp(-(tilt + 1) * s) * (np.expm1(-t) / whole)
    high = values.weights * np.exp(tilt * t) * (np.expm1(-s) / whole)
    start = int(below.min())
    place: Ints = (below.astype(np.int64) - start) % points
    above = (place + 1) % points

    def summed(lower: Floats, upper: Floats) -> Floats:
        result = np.zeros(points)
        result += np.bincount(place, lower, minlength=points)
        result += np.bincount(above, upper, minlength=points)
        return result

    crowd = int(np.bincount(place).max())  # so many are added up at most, from either side
    return SplitList(
        summed(low, high),
        summed(low * np.exp(-s), high * np.exp(t)),
        start,
        (SPLIT_UNITS + crowd + 8 * (abs(tilt) + 1) * step) * UNIT,
    )


def log_growth(z: float, squares: float) -> float:
    """A bound of log E e^{z D}, D the sum of all moves by splitting, `squares` the sum of their steps' squares (Lemma G3)."""
    return 0.0 if -1 <= z <= 0 else abs(z) * (1 + abs(z)) * squares / 8
