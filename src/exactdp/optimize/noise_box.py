"""Designs of a box: every cell's sigma2 between two bounds. How far delta can be from the Gaussian's of the same total at most.

Theorem 5 of docs/theory/optimization.md. Where one coarse cell has most of the budget its peaks are flattened by the finer noise
of the others, which the bound for all shapes (least_delta.py) does not see. In doubles, with a billionth added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from flint import arb
from scipy.special import erfc, ive

from exactdp.doubles import SUM_SLACK, Floats, Ints
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

LEAST_SIGMA2 = 0.15  # from which on the bounds fall in sigma2
_RATIO = 1.012  # of the ends of an interval of frequencies
_MOST_INTERVALS = 2000
_FARTHEST = 4  # times the finest cell's centre, up to which continuous noise is looked at
_KAPPA = 1 / 6 - 1 / math.pi**2


@dataclass(frozen=True)
class CellRange:
    """Copies of a discrete Gaussian whose sigma2 is between `least` and `most`."""

    least: float
    most: float
    sensitivity: int
    copies: int

    @property
    def central(self) -> float:
        """The frequency up to which its characteristic function is near the Gaussian's, whatever its sigma2."""
        return math.pi * self.least / (2 * self.sensitivity)

    @property
    def spread(self) -> tuple[float, float]:
        """The least and the most that it adds to R."""
        square = self.copies * self.sensitivity**2
        return square / self.most, square / self.least


class NoiseBox:
    """Compositions of such cells, and of continuous Gaussians that add at least `smooth` to R."""

    def __init__(self, cells: Sequence[CellRange], smooth: float = 0.0) -> None:
        if any(cell.least < LEAST_SIGMA2 for cell in cells):
            raise ValueError(f"sigma2 of a box is at least {LEAST_SIGMA2}")
        self._cells = sorted(_merged(cells), key=lambda cell: cell.central)
        self._smooth = smooth
        self._variances = [DiscreteGaussian(Fraction(cell.least)).variance for cell in self._cells]
        p = [math.exp(-(math.pi**2) * cell.least) for cell in self._cells]
        self._overlap = np.array([c.copies * x / (1 - x * x) for c, x in zip(self._cells, p, strict=True)])
        self._off_integers = sum(4 * c.copies * x**2 / (1 - x**6) for c, x in zip(self._cells, p, strict=True))

    def excess(self, low: float, tilt: Fraction) -> arb:
        """At least the integral of |difference of the moment functions| / |z (z + 1)| on Re z = tilt, in units of the Gaussian's
        at 0, for every composition of the box with R of at least `low` (Theorem 5)."""
        at = float(tilt)
        w = 1 / (at * (at + 1))
        if not self._cells:
            return arb(0)
        width = w * math.sqrt(2 * math.pi / low)
        found = math.expm1(float(self._overlap.sum())) * width
        if tilt.denominator != 1:
            found += self._off_integers * width
        return arb((found + self._outside(low, w)) * (1 + SUM_SLACK))

    def _finer(self, low: float) -> Floats:
        """At most what the cells from each one on, finer ones, add to R together; the last entry is without any."""
        ranges = np.array([cell.spread for cell in self._cells])
        own = np.append(np.cumsum(ranges[::-1, 0])[::-1], 0.0) + self._smooth
        rest = low - np.append(0.0, np.cumsum(ranges[:, 1]))
        found: Floats = np.maximum(np.maximum(own, rest) * (1 - SUM_SLACK), 0.0)
        return found

    def _outside(self, low: float, w: float) -> float:
        """Beyond the centre of the coarsest cell: an integral up to some finer cell's centre, and a bound for what is beyond."""
        finer = self._finer(low)
        starts, ends, damped, zone = self._intervals
        heights = damped - finer[zone + 1] * starts**2 / 2
        parts = 2 * np.exp(np.minimum(heights, 0.0)) * (ends - starts) / (1 / w + starts**2)
        upto, reached = np.append(0.0, np.cumsum(parts)), int(zone[-1]) if len(zone) else -1
        best = math.inf
        for k, cell in enumerate(self._cells):
            if finer[k] > 0 and k - 1 <= reached:
                inside = float(upto[np.searchsorted(zone, k)])
                best = min(best, inside + self._beyond(k, cell.central, float(finer[k]), w))
        if reached == len(self._cells) - 1 and finer[-1] > 0:
            best = min(best, float(upto[-1]) + _normal_tail(float(ends[-1]), float(finer[-1]), w))
        return best

    def _beyond(self, k: int, edge: float, spread: float, w: float) -> float:
        """The integral beyond the centre of cell k, by the cells from k on alone, which add at least `spread` to R."""
        tail = _normal_tail(edge, spread, w)
        found = tail if self._smooth else 0.0
        for cell, variance in zip(self._cells[k:], self._variances[k:], strict=True):
            s, d = cell.least, cell.sensitivity
            p = math.exp(-(math.pi**2) * s)
            centre = math.exp(spread * s * p / (1 - p * p) / d**2) * tail if cell.central > edge else 0.0
            a = s * variance * spread / d**2 * (1 - SUM_SLACK)
            shoulder = math.exp(-a) * min(4 * d / (math.pi * s), math.sqrt(w))
            even, odd = ive(0, a), ive(1, a)
            near_axis = d / s * (even / 12 + _KAPPA * (even - odd) / 2)
            off_axis = math.sqrt(w) / 2 * math.tanh(d / (2 * s * math.sqrt(w))) * even
            found = max(found, centre + shoulder + 2 * math.pi * min(near_axis, off_axis))
        return found

    @cached_property
    def _intervals(self) -> tuple[Floats, Floats, Floats, Ints]:
        """Frequencies from the coarsest cell's centre on: ends of intervals, the logarithm of what the coarser cells leave there
        with the overlap of the finer ones, and the number of the last coarser cell."""
        edges = [cell.central for cell in self._cells]
        if self._smooth:
            edges.append(edges[-1] * _FARTHEST)
        starts: list[float] = []
        ends: list[float] = []
        zones: list[int] = []
        for zone, (low, high) in enumerate(pairwise(edges)):
            count = max(math.ceil(math.log(high / low) / math.log(_RATIO)), 1)
            if len(zones) + count > _MOST_INTERVALS:
                break
            cuts = np.geomspace(low, high, count + 1)
            starts += cuts[:-1].tolist()
            ends += cuts[1:].tolist()
            zones += [zone] * count
        left, right, zone_of = np.array(starts), np.array(ends), np.array(zones, dtype=np.int64)
        damped = np.append(np.cumsum(self._overlap[::-1])[::-1], 0.0)[zone_of + 1]
        for i, (cell, variance) in enumerate(zip(self._cells, self._variances, strict=True)):
            at = zone_of >= i
            phases = left[at] * cell.sensitivity / (2 * cell.most), right[at] * cell.sensitivity / (2 * cell.least)
            crossed = np.floor(phases[1] / math.pi + 1e-9) > np.floor(phases[0] / math.pi - 1e-9)
            least = np.where(crossed, 0.0, np.minimum(np.sin(phases[0]) ** 2, np.sin(phases[1]) ** 2))
            damped[at] -= 2 * cell.copies * variance * least * (1 - SUM_SLACK)
        return left, right, damped, zone_of


def _normal_tail(edge: float, spread: float, w: float) -> float:
    """At least the integral of e^(-spread omega^2 / 2) / (1 / w + omega^2) over |omega| > edge."""
    return math.sqrt(2 * math.pi / spread) * float(erfc(edge * math.sqrt(spread / 2))) / (1 / w + edge**2)


def _merged(cells: Sequence[CellRange]) -> list[CellRange]:
    copies: dict[tuple[float, float, int], int] = {}
    for cell in cells:
        key = cell.least, cell.most, cell.sensitivity
        copies[key] = copies.get(key, 0) + cell.copies
    return [CellRange(*key, count) for key, count in copies.items()]
