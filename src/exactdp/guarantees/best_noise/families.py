"""The families of noise that race against each other: each makes noise of about a given variance, for a given sensitivity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import root_up


@dataclass(frozen=True)
class NoiseFamily:
    """A family of noise, known by its name."""

    name: str
    of_variance: Callable[[Fraction, int], Mechanism]
    """Noise whose variance is about the first number, on a count of this sensitivity; refuses what is out of range."""


def _discrete_laplace(variance: Fraction, sensitivity: int) -> Mechanism:
    return DiscreteLaplace(root_up(variance / 2), sensitivity)


def _laplace(variance: Fraction, sensitivity: int) -> Mechanism:
    return Laplace(root_up(variance / 2), sensitivity)


FAMILIES = (
    NoiseFamily("discrete Gaussian", DiscreteGaussian),
    NoiseFamily("Gaussian", Gaussian),
    NoiseFamily("discrete Laplace", _discrete_laplace),
    NoiseFamily("Laplace", _laplace),
)
"""In the order in which equals are listed."""
