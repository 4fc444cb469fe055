"""Non-negative vectors convolved by FFT in blocks, every pair of blocks under a tilt of its own, so that small numbers keep their
digits next to large ones.

Within a block the logarithm of a vector is nearly a line. Under the tilt that makes the longer one of two flat an FFT
is wrong by little more than a unit of rounding of what the pair adds, and where the pair adds less than other pairs do its error
is smaller still. What it is wrong by is bounded for every pair and added up: any blocks and any tilts are valid, only accuracy
and speed depend on them (docs/theory/smooth.md, Theorem S15).

Assumption (F9 of docs/theory/any-composition.md): an FFT of n points changes a vector by at most 8 log2(n) units of rounding of
its Euclidean norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactdp.doubles import FFT_SLACK, UNIT, Floats

_LONGEST = 1 << 16  # of a block
_SHORT = 64  # of a block that is not divided and is summed term by term
_BEND = 1.5  # how far the logarithm of a block may be from a line
_STEEPEST = 500.0  # of a tilt over all of a pair: e to this power is a double
_UNDERFLOWS = (
    1e-80  # of the largest product of a pair: more than all that is too small for doubles, which is e^500 times 1e-308
)
_FEW_ROUNDINGS = 128.0  # units: three exponentials of 8 each, a sum of 64 products, and a dozen operations


@dataclass(frozen=True)
class _Block:
    """Indices from `start` on, without the zeros at both ends, and the slope of the logarithm."""

    start: int
    values: Floats
    slope: float


def convolved(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Bounds of the first len(a) entries of the convolution of two non-negative vectors of one length, from below and above, but
    for products below the smallest doubles.

    >>> low, high = convolved(np.array([1.0, 1e-200, 0.0]), np.array([0.5, 0.0, 1e-300]))
    >>> bool((low <= [0.5, 5e-201, 1e-300]).all() and (high >= [0.5, 5e-201, 1e-300]).all())
    True
    """
    rows = _blocks(a)
    columns = rows if a is b else _blocks(b)
    found, wrong, pairs = np.zeros(len(a)), np.zeros(len(a)), 0
    for i, row in enumerate(rows):
        for column in columns[: i + 1] if a is b else columns:
            at = row.start + column.start
            if at >= len(a):
                break
            values, error, back = _pair(row, column)
            twice = 2.0 if a is b and column is not row else 1.0
            here = slice(at, min(at + len(values), len(a)))
            back = back[: here.stop - at] * twice
            found[here] += values[: len(back)] * back
            wrong[here] += error * back
            pairs += 1
    rounding = (pairs + _FEW_ROUNDINGS) * UNIT
    wrong = wrong * (1 + FFT_SLACK) + rounding * (np.abs(found) + wrong)
    return np.maximum(found - wrong, 0.0), np.maximum(found + wrong, 0.0)


def _pair(row: _Block, column: _Block) -> tuple[Floats, float, Floats]:
    """Two blocks convolved under a tilt and scaled, a bound of what is wrong with each entry, and what takes tilt and scale back.

    A tilt of 24 bits times an index has no rounding.
    """
    lengths = len(row.values), len(column.values)
    size = sum(lengths) - 1
    is_short = min(lengths) <= _SHORT
    slope = _slope(row, column)
    tilt = float(np.float32(min(max(-slope, -_STEEPEST / size), _STEEPEST / size)))
    (x, first), (y, second) = (_scaled(block.values, tilt) for block in (row, column))
    back: Floats = np.ldexp(np.exp(-tilt * np.arange(size)), first + second)
    if is_short:
        return np.convolve(x, y), _UNDERFLOWS, back
    points = _fast_length(size)
    values: Floats = np.fft.irfft(np.fft.rfft(x, points) * np.fft.rfft(y, points), points)[:size]
    one_fft = 8 * math.log2(points) * UNIT
    sizes = [float(np.linalg.norm(v)) * float(w.sum()) for v, w in ((x, y), (y, x))]
    return values, one_fft * sum(sizes) + (one_fft + 4 * UNIT) * min(sizes) + _UNDERFLOWS, back


def _slope(row: _Block, column: _Block) -> float:
    """That of the longer block, or of the one that falls: the left edge of a vector, which rises, matters less.

    Two short blocks may be far from lines and are left as they are. Heuristic: affects accuracy only.
    """
    longer = row if len(row.values) >= len(column.values) else column
    if min(len(row.values), len(column.values)) <= _SHORT:
        return min(longer.slope, 0.0) if len(longer.values) > _SHORT else 0.0
    return longer.slope if max(row.slope, column.slope) < 0 else min(row.slope, column.slope)


def _scaled(values: Floats, tilt: float) -> tuple[Floats, int]:
    """Under a tilt, times a power of two so that the largest is about 1; and the exponent of what takes that back."""
    scale = math.frexp(float(values.max()))[1]
    tilted = np.ldexp(values, -scale) * np.exp(tilt * np.arange(len(values)))
    again = math.frexp(float(tilted.max()))[1]
    return np.ldexp(tilted, -again), scale + again


def _blocks(a: Floats) -> list[_Block]:
    """Halves of halves, until the logarithm of each is nearly a line."""
    positive = a > 0
    logs = np.log(np.where(positive, a, 1.0))
    found, waiting = [], [(0, len(a))]
    while waiting:
        low, high = waiting.pop()
        some = np.flatnonzero(positive[low:high])
        if not len(some):
            continue
        low, high = low + int(some[0]), low + int(some[-1]) + 1
        length = high - low
        slope = float(logs[high - 1] - logs[low]) / max(length - 1, 1)
        if length > _SHORT:
            off = np.abs(logs[low:high] - logs[low] - slope * np.arange(length))
            if length > _LONGEST or float(off[positive[low:high]].max()) > _BEND:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
                continue
        found.append(_Block(low, a[low:high], slope))
    return found


def _fast_length(n: int) -> int:
    """A length from n on that is a power of two, or 5, 3 or 27 times one."""
    power = max(1 << (n - 1).bit_length(), 32)
    return next(size for size in (power * 5 // 8, power * 3 // 4, power * 27 // 32, power) if size >= n)
