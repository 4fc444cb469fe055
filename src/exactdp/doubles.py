"""Doubles: the types of their arrays and the units of their rounding."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNIT = 2.0**-53
"""The unit of rounding u: fl(x op y) = (x op y)(1 + d), |d| <= u."""

PHASE_ERROR = 2.0**-60
"""A bound on the absolute error of a phase, beyond 3 units of rounding of itself (engine/sieve/fixed_point.py)."""

LOG_SLACK = 2.0**-49
"""16 units: a call of log (8 of its result) and a sum lose less than 10."""

EXP_SLACK = 2.0**-48
"""32 units: two calls of exp and three products lose less than 20; a logarithm of a rational is within 16 of 1 + its size."""

CHAIN_SLACK = 2.0**-47
"""64 units: two brackets multiplied or added, each converted with EXP_SLACK."""

LINE_SLACK = 2.0**-46
"""128 units: a line through a vertex, or a mixture: a slope, a product and a difference of numbers with EXP_SLACK each."""

FEW_SLACK = 1e-15
"""9 units: a few operations in a row, up to five, relative to the largest number that enters them."""

POWER_SLACK = 1e-14
"""90 units: an exponent of a dozen terms, relative to 1 + the sum of their sizes, or e to its power, relative to itself."""

CLOSE_SLACK = 1e-13
"""900 units: what FORMULA_SLACK covers, ten times as close where it would be seen in the width of answers."""

FORMULA_SLACK = 1e-12
"""9,000 units: a chain of products, roots and calls of libm loses fewer than a hundred."""

SUM_SLACK = 1e-9
"""9 million units: a sum of non-negative doubles loses at most a unit for each term, of which there are at most 4 million."""

ACCOUNT_SLACK = 1e-6
"""A bound of errors that was itself added up in doubles: it has lost far less, and a millionth of an error is nothing."""

REMAINDER_SLACK = 1e-3
"""A remainder that is negligible next to the value: whatever its own rounding is, a thousandth of it is more."""

FFT_SLACK = 1e-2
"""The error of an FFT: Euclidean norms of weights that add up to 1 but for their own errors, all of them far below a percent."""

UNDERFLOW = 1e-300
"""Above all that underflows, and above what doubles below 1e-308 lose; as a floor it keeps divisors and logarithms off 0."""

TINY = 1e-322
"""20 times the smallest double: what a few operations can take away, in absolute terms, where doubles have few digits left."""


_ROOT_STEPS = 400


def product(a: Floats, b: Floats) -> Floats:
    """The matrix product in pieces that BLAS does in one thread: its threads wait for each other in busy loops."""
    size = max(_ONE_THREAD // max(a.shape[0] * a.shape[1], 1), 8)
    if b.shape[1] <= size:
        return a @ b
    result = np.empty((a.shape[0], b.shape[1]))
    for start in range(0, b.shape[1], size):
        np.matmul(a, b[:, start : start + size], out=result[:, start : start + size])
    return result


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b as a double and the exact error of that (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The product of two doubles as a double and its error, exactly (Dekker), unless a part over- or underflows."""
    product = a * b
    (one, one_low), (two, two_low) = _halves(a), _halves(b)
    return product, one_low * two_low - (((product - one * two) - one_low * two) - one * two_low)


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """A double as two of half as many bits (Veltkamp)."""
    moved = x * (2.0**27 + 1)
    high = moved - (moved - x)
    return high, x - high


def two_doubles(x: Fraction) -> tuple[float, float]:
    """An exact number as a double and, nearly, what is missing."""
    high = float(x)
    return high, float(x - Fraction(high))


def exp_below(log: float, slack: float = EXP_SLACK) -> float:
    """A double at most e^log, and at most (1 - slack) e^log where that is far above TINY; at least 0. For lower bounds.

    Guarantee: slack is at least EXP_SLACK (docs/theory/engine.md, section 7). The one way from a logarithm to a lower bound.
    """
    return max(math.exp(min(log, _LARGEST_LOG)) * (1 - slack) - TINY, 0.0)


def exp_above(log: float, slack: float = EXP_SLACK) -> float:
    """A double at least e^log, by a relative slack and by TINY; 0 at -inf only, which means a number known to be 0."""
    if log > _LARGEST_LOG:
        return math.inf
    return math.exp(log) * (1 + slack) + TINY if log > -math.inf else 0.0


_LARGEST_LOG = 709.7  # e^709.7 (1 + slack) is a double


def root(
    function: Callable[[float], float], low: float, high: float, tolerance: float = 0.0, enough: float = 0.0
) -> float:
    """Where a function changes its sign between two doubles, to their last digits or to a relative tolerance, or where its size
    is at most `enough`: regula falsi (the Illinois variant), halved where it stalls.

    >>> root(lambda x: x * x - 2, 0.0, 2.0)
    1.414213562373095
    """
    at_low, at_high = function(low), function(high)
    if at_low == 0 or at_high == 0:
        return low if at_low == 0 else high
    if (at_low > 0) == (at_high > 0):
        raise ValueError(f"A root must lie between values of different signs. Found {at_low} and {at_high}.")
    was_above = None
    for step in range(_ROOT_STEPS):
        middle = (low + high) / 2 if step % 3 == 2 else high - at_high * (high - low) / (at_high - at_low)
        middle = middle if low < middle < high else (low + high) / 2
        if not low < middle < high or high - low <= tolerance * max(abs(low), abs(high)):
            break
        value = function(middle)
        if abs(value) <= enough:
            return middle
        is_above = (value > 0) == (at_high > 0)
        share = 0.5 if is_above is was_above else 1.0  # of an end that stays for the second time
        if is_above:
            high, at_high, at_low = middle, value, at_low * share
        else:
            low, at_low, at_high = middle, value, at_high * share
        was_above = is_above
    return (low + high) / 2


_ONE_THREAD = 200_000  # multiplications below which OpenBLAS uses one thread
