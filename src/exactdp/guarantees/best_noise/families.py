"""The families of noise that race against each other: each makes noise of about a given variance, for a given sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.integer_noise import IntegerNoise
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.skellam import Skellam
from exactdp.numbers import root_up

GAUSSIAN, EXPONENTIAL = "Gaussian", "exponential"


@dataclass(frozen=True)
class NoiseFamily:
    """A family of noise, known by its name."""

    name: str
    of_variance: Callable[[Fraction, int], Mechanism]
    """Noise whose variance is about the first number, on a count of this sensitivity; refuses what is out of range."""
    shape: str = GAUSSIAN
    """Families of one shape need about the same variance. Heuristic: affects speed only."""


def _discrete_laplace(variance: Fraction, sensitivity: int) -> Mechanism:
    return DiscreteLaplace(root_up(variance / 2), sensitivity)


def _laplace(variance: Fraction, sensitivity: int) -> Mechanism:
    return Laplace(root_up(variance / 2), sensitivity)


def _binomial(variance: Fraction, sensitivity: int) -> Mechanism:
    """An even number of fair coins, so that the mean is a whole number."""
    return IntegerNoise.binomial(2 * math.ceil(2 * variance), "1/2", sensitivity)


FAMILIES = (
    NoiseFamily("discrete Gaussian", DiscreteGaussian),
    NoiseFamily("Gaussian", Gaussian),
    NoiseFamily("discrete Laplace", _discrete_laplace, EXPONENTIAL),
)
"""In the order in which equals are listed."""

LAPLACE = NoiseFamily("Laplace", _laplace, EXPONENTIAL)
"""Real Laplace noise; it is not among those that race unless asked for, because many copies of it take long to calibrate."""

SKELLAM = NoiseFamily("Skellam", Skellam)
BINOMIAL = NoiseFamily("binomial", _binomial)
