"""The noise of one count, and its 95% margin of error, for every report and table."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian

OUTSIDE = 0.05
FINE_NOISE = Fraction(10**6)
"""From this sigma2 on the margin is the continuous Gaussian's, rounded up: more by one count at most, and by 1e-8 of itself."""

_DEVIATIONS = 1.959964  # a little above the quantile 1.95996398...
_NOTHING = Fraction(1, 700)  # a Laplace scale from which down the variance is below the doubles
_ROUNDING = 2.0**-40  # fewer than 3,000 terms of at most 1 each are added up, and each addition is off by 2^-53 at most


class CountNoise(NamedTuple):
    """The noise of one count: parameter (for Laplace noise the square of its scale), variance, standard error and 95% margin."""

    sigma2: Fraction
    variance: float
    standard_error: float
    margin: int


@lru_cache(maxsize=4096)
def noise_of(rho: Fraction, kind: CellNoise = USUAL) -> CountNoise:
    """The noise of one count with this budget."""
    noise = kind.mechanism(rho)
    if isinstance(noise, DiscreteLaplace):
        variance = 0.5 / math.sinh(0.5 / float(noise.scale)) ** 2 if noise.scale > _NOTHING else 0.0
        return CountNoise(noise.scale**2, variance, math.sqrt(variance), laplace_margin95(noise))
    if isinstance(noise, Gaussian):
        variance = float(noise.sigma2)
        return CountNoise(noise.sigma2, variance, math.sqrt(variance), math.ceil(_DEVIATIONS * math.sqrt(variance)))
    assert isinstance(noise, DiscreteGaussian)
    return CountNoise(noise.sigma2, noise.variance, math.sqrt(noise.variance), margin95(noise))


def laplace_margin95(noise: DiscreteLaplace) -> int:
    """The least whole number that the noise exceeds in size with a probability of at most 5%; by one more where doubles cannot
    tell.

    P(|X| > m) = 2 q^(m+1) / (1 + q) with q = e^(-1 / scale).

    >>> [laplace_margin95(DiscreteLaplace(scale)) for scale in ("1/10", 1, 2, 10**6)]
    [0, 3, 6, 2995732]
    """
    scale = float(noise.scale)
    enough = scale * math.log(2 / (OUTSIDE * (1 + math.exp(-1 / scale)))) * (1 + _ROUNDING)
    return max(math.ceil(enough) - 1, 0)


def margin95(noise: DiscreteGaussian) -> int:
    """The least whole number that the noise exceeds in size with a probability of at most 5%; never less.

    >>> [margin95(DiscreteGaussian(sigma2)) for sigma2 in ("1/100", 4, 10**6, 10**12)]
    [0, 4, 1960, 1959964]
    """
    margin = math.ceil(_DEVIATIONS * math.sqrt(noise.variance))
    if noise.sigma2 >= FINE_NOISE:
        return margin
    sizes = np.arange(1, margin + 10, dtype=np.float64)
    outer = 2 * np.cumsum(np.exp(-sizes * sizes / (2 * float(noise.sigma2))))
    inside = noise.pmf(0) * np.concatenate(([1.0], 1 + outer))
    return int(np.searchsorted(inside, 1 - OUTSIDE + _ROUNDING))
