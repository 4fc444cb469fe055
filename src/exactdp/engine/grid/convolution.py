"""Lists on one grid, convolved by FFT: two vectors, what P and what Q leave on each point, with an account of their errors.

Assumption (F9 of docs/theory/any-composition.md): an FFT or inverse FFT of n points changes a vector by at most 8 log2(n) units
of rounding of its Euclidean norm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from exactdp.balls import BITS, precision
from exactdp.doubles import ACCOUNT_SLACK, FFT_SLACK, UNIT, Complexes
from exactdp.engine.grid.lists import Copies
from exactdp.engine.grid.splitting import log_growth, split
from exactdp.engine.lattice.tilts import short
from exactdp.errors import AccuracyError

_MOST_TILT = 0.5  # of (1 + |tilt|) times the step: beyond it the grid is too coarse to be of use
_LARGEST_LOG = 600.0  # such a transform is refused for its rounding
_TOO_WRONG = "The grid does not apply: the rounding of so many copies is too large."


@dataclass(frozen=True)
class LossGrid:
    """Points and step of a grid, and the tilt of what is put on it. The step has few bits: its multiples are exact doubles."""

    tilt: Fraction
    step: float
    points: int

    @classmethod
    def covering(cls, length: float, tilt: Fraction, points: int) -> LossGrid:
        """A grid of so many points that is at least so long."""
        step = float(short(length / points * (1 + 2.0**-12)))
        return cls(tilt, step, points)

    @property
    def lam(self) -> float:
        """The tilt as a double, exactly."""
        return float(self.tilt)

    @property
    def fft_error(self) -> float:
        """What one FFT does to a vector, relative to its norm."""
        return 8 * math.log2(self.points) * UNIT

    def growths(self, splits: int) -> list[float]:
        """What the two transforms of a loss that is split so often are at most in size, and a percent more (Lemma G3)."""
        logs = (log_growth(self.lam + shift, splits * self.step**2) for shift in (0.0, 1.0))
        return [math.exp(min(log, _LARGEST_LOG)) * (1 + FFT_SLACK) for log in logs]


@dataclass(frozen=True)
class Transform:
    """Some lists on a grid, as FFTs of the two vectors.

    `wrong` bounds, for each, the Euclidean error of the vector; `norms` the norms of the vectors, `splits` counts the lists with
    their copies. `relative`, `missing`, `absolute` and `moved` are errors of the weights and losses, as in `ListedValues`.
    """

    grid: LossGrid
    p: Complexes
    q: Complexes
    start: int
    anchor: arb
    wrong: tuple[float, float]
    norms: tuple[float, float]
    splits: int
    relative: float
    missing: float
    absolute: float
    moved: float

    @classmethod
    def of_list(cls, grid: LossGrid, copies: Copies) -> Transform:
        """All copies of one list: a transform to their number's power."""
        values, count = copies.values, copies.count
        if (1 + abs(grid.lam)) * grid.step > _MOST_TILT:
            raise AccuracyError("The grid does not apply: it is too coarse for so large a tilt.")
        one = split(values, grid.lam, grid.step, grid.points)
        spectra = [_power(np.fft.rfft(v), count) for v in (one.p, one.q)]
        norms = [float(np.linalg.norm(v)) for v in (one.p, one.q)]
        growths = grid.growths(count)
        # |(z + e)^n - z^n| <= n |e| times the other factors, and 3 units for each product
        wrong = [count * (grid.fft_error + 3 * UNIT) * norm * g for norm, g in zip(norms, growths, strict=True)]
        if not max(wrong) * math.sqrt(grid.points) <= FFT_SLACK:
            raise AccuracyError(_TOO_WRONG)
        with precision(BITS):
            anchor = values.anchor * count
        largest = float(np.max(np.abs(values.values)))
        return cls(
            grid,
            spectra[0],
            spectra[1],
            count * one.start,
            anchor,
            (wrong[0], wrong[1]),
            (norms[0] * growths[0], norms[1] * growths[1]),
            count,
            count * (values.relative + one.relative),
            count * values.missing,
            count * values.absolute * (1 + ACCOUNT_SLACK),
            count * (values.value_error + 2 * UNIT * (largest + grid.step)),
        )

    def times(self, other: Transform) -> Transform:
        """Both together."""
        with precision(BITS):
            anchor = self.anchor + other.anchor
        grid, splits = self.grid, self.splits + other.splits
        growths = grid.growths(splits)
        norms = [min(a, b) * g for a, b, g in zip(self.norms, other.norms, growths, strict=True)]
        wrong = [(a + b + 3 * UNIT * n) * g for a, b, n, g in zip(self.wrong, other.wrong, norms, growths, strict=True)]
        if not max(wrong) * math.sqrt(grid.points) <= FFT_SLACK:
            raise AccuracyError(_TOO_WRONG)
        return Transform(
            grid,
            self.p * other.p,
            self.q * other.q,
            self.start + other.start,
            anchor,
            (wrong[0], wrong[1]),
            (norms[0], norms[1]),
            splits,
            self.relative + other.relative,
            self.missing + other.missing,
            self.absolute + other.absolute,
            self.moved + other.moved,
        )


def product(transforms: Sequence[Transform]) -> Transform:
    """All of them together."""
    result = transforms[0]
    for other in transforms[1:]:
        result = result.times(other)
    return result


def _power(z: Complexes, count: int) -> Complexes:
    """z to the power `count` by repeated squaring: fewer than 2 log2(count) products, whose errors add up to those of count."""
    result = z
    for bit in bin(count)[3:]:
        result = result * result
        if bit == "1":
            result = result * z
    return result
