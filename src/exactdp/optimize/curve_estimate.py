"""Estimates of whole privacy profiles of small designs, for a search: losses split between the points of a grid and convolved.

Heuristic: what is found with them is proved elsewhere. Splitting a loss keeps its tilted mean, so an estimate is off by about the
square of the grid's step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from exactdp.census.cell_noise import DISCRETE_GAUSSIAN
from exactdp.census.releases import Release
from exactdp.doubles import Complexes, Floats
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.mechanism import Mechanism

_LENGTH = 26.0  # of a grid, in standard deviations
_WITHIN = 10.0  # of the tilted mean: the part of it that is used
_SIGMAS = 13.5  # to which noise is listed
_LISTED = 1e5  # sigma2 from which on noise is taken as continuous
_MOST_PAIRS, _MOST_CELLS = 40, 24
_LARGEST_EXPONENT = 600.0
_LEAST = 1e-300
_LEAST_STEP = 1e-12  # where next to no noise is left under a tilt


def is_small(release: Release) -> bool:
    """Whether profiles of all pairs can be estimated in little time."""
    discrete = all(noise.kind == DISCRETE_GAUSSIAN for noise in release.noise.values())
    cells = sum(len(queries) for queries in release.table.values())
    return discrete and len(release.pairs) <= _MOST_PAIRS and cells <= _MOST_CELLS


@dataclass(frozen=True)
class TiltedLosses:
    """The loss of one pair on a grid under one tilt: sums from each point on."""

    tilt: float
    middle: float
    log_scale: float
    """log E e^(tilt (L - middle))."""
    losses: Floats
    first: Floats
    second: Floats
    """Sums of tilted masses times e^(-tilt (l - middle)), and e^(-(tilt + 1) (l - middle))."""

    def log_deltas(self, epsilons: Floats) -> Floats:
        """log delta at each epsilon."""
        place = np.searchsorted(self.losses, epsilons, side="right")
        found = self.first[place] - np.exp(np.minimum(epsilons - self.middle, _LARGEST_EXPONENT)) * self.second[place]
        result: Floats = np.log(np.maximum(found, _LEAST)) + self.log_scale
        return result


@dataclass(frozen=True)
class EstimatedProfile:
    """log delta of one pair at any epsilon: of each tilt where it is the one that is closest."""

    tilts: tuple[TiltedLosses, ...]
    switches: tuple[float, ...]
    """Epsilons between one tilt and the next."""

    def log_deltas(self, epsilons: Floats) -> Floats:
        """log delta at each epsilon."""
        found = self.tilts[0].log_deltas(epsilons)
        for switch, tilted in zip(self.switches, self.tilts[1:], strict=True):
            found = np.where(epsilons > switch, tilted.log_deltas(epsilons), found)
        return found


def profiles(
    compositions: Sequence[Mapping[Mechanism, int]], deviations: Sequence[float], size: int
) -> tuple[EstimatedProfile, ...]:
    """The profiles of some pairs, good to a few deviations to both sides of those that are given."""
    spread = max(spread_of(one) for one in compositions)
    tilted = [_tilted(compositions, one / math.sqrt(spread), size) for one in deviations]
    between = [(a + b) / 2 for a, b in pairwise(deviations)]
    switches = tuple(spread / 2 + one * math.sqrt(spread) for one in between)
    return tuple(EstimatedProfile(own, switches) for own in zip(*tilted, strict=True))


def _tilted(compositions: Sequence[Mapping[Mechanism, int]], tilt: float, size: int) -> tuple[TiltedLosses, ...]:
    parts = {m: _Part.of(m, tilt) for one in compositions for m in one}
    variance = max(sum(n * parts[m].variance for m, n in one.items()) for one in compositions)
    step = max(_LENGTH * math.sqrt(variance) / size, _LEAST_STEP)
    spectra = {m: part.spectrum(step, size) for m, part in parts.items()}
    reach = min(_WITHIN * math.sqrt(variance), _LARGEST_EXPONENT / (tilt + 1))
    return tuple(_convolved(one, parts, spectra, (tilt, step, reach), size) for one in compositions)


def spread_of(mechanisms: Mapping[Mechanism, int]) -> float:
    """2 rho: the variance of the loss were it Gaussian."""
    return sum(n * 2 * float(m.rho) for m, n in mechanisms.items())


@dataclass(frozen=True)
class _Part:
    """One noise under a tilt: its losses less their mean, their masses; nothing listed where it is taken as continuous."""

    away: Floats
    masses: Floats
    mean: float
    variance: float
    log_moment: float

    @classmethod
    def of(cls, mechanism: Mechanism, tilt: float) -> _Part:
        assert isinstance(mechanism, DiscreteGaussian)
        s, d = float(mechanism.sigma2), mechanism.sensitivity
        r = d * d / s
        if s > _LISTED:
            return cls(np.empty(0), np.empty(0), r * (tilt + 0.5), r, r * tilt * (tilt + 1) / 2)
        reach = math.ceil(_SIGMAS * math.sqrt(s)) + 14
        x = np.arange(-reach, reach + 1.0)
        shift = round(d * tilt)
        weights = np.exp(-((x + shift - d * tilt) ** 2) / (2 * s))
        total = float(weights.sum())
        losses, masses = (d * (x + shift) + d * d / 2) / s, weights / total
        mean = float(masses @ losses)
        away = losses - mean
        log_moment = r * tilt * (tilt + 1) / 2 + math.log(total / float(np.exp(-x * x / (2 * s)).sum()))
        return cls(away, masses, mean, float(masses @ away**2), log_moment)

    def spectrum(self, step: float, size: int) -> Complexes:
        """The transform of the masses, each split between two points of the grid."""
        if not len(self.away):
            frequencies = 2 * math.pi * np.arange(size // 2 + 1) / (size * step)
            smooth: Complexes = np.exp(-self.variance * frequencies**2 / 2).astype(np.complex128)
            return smooth
        floor = np.floor(self.away / step)
        share, place = self.away / step - floor, floor.astype(np.int64)
        line = np.bincount(place % size, self.masses * (1 - share), size)
        found: Complexes = np.fft.rfft(line + np.bincount((place + 1) % size, self.masses * share, size))
        return found


def _convolved(
    mechanisms: Mapping[Mechanism, int],
    parts: Mapping[Mechanism, _Part],
    spectra: Mapping[Mechanism, Complexes],
    grid: tuple[float, float, float],
    size: int,
) -> TiltedLosses:
    tilt, step, reach = grid
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for mechanism, count in mechanisms.items():
        product *= spectra[mechanism] ** count
    middle = sum(n * parts[m].mean for m, n in mechanisms.items())
    half = min(math.floor(reach / step), size // 2 - 1)
    away: Floats = np.arange(-half, half + 1.0) * step
    masses = np.maximum(np.roll(np.fft.irfft(product, size), half)[: 2 * half + 1], 0.0)
    sums = [np.append(np.cumsum((masses * np.exp(-power * away))[::-1])[::-1], 0.0) for power in (tilt, tilt + 1)]
    log_moment = sum(n * parts[m].log_moment for m, n in mechanisms.items())
    losses: Floats = away + middle
    return TiltedLosses(tilt, middle, log_moment - tilt * middle, losses, sums[0], sums[1])
