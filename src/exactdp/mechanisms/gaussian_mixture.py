"""A mixture of Gaussians against one of them: noise N(0, sigma2) on a number that moves by a random amount."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.loss import Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.trapezoidal_rule import Mixture
from exactdp.numbers import Number, exact_text, positive, rational, shown

SMALLEST_RATIO = Fraction(1, 10**12)
LARGEST_RATIO = Fraction(10**4)
MOST_COMPONENTS = 1000
SMALLEST_WEIGHT = Fraction(1, 10**200)


@steady
@dataclass(frozen=True, init=False, repr=False)
class GaussianMixture(Mechanism):
    """Real noise N(0, sigma2) on a number that moves by sensitivities[i] with probability probabilities[i].

    The output is sum_i p_i N(c_i, sigma2) on one data set and N(0, sigma2) on its neighbour, 0 <= c_0 < c_1 < ...: sampling, and
    what dp_accounting calls MixtureOfGaussiansDpEvent.

    >>> GaussianMixture(1, [0, 1], ["0.99", "0.01"]) * 100
    Composition(100 x GaussianMixture('1', ['0', '1'], ['99/100', '1/100']))
    """

    sigma2: Fraction
    sensitivities: tuple[Fraction, ...]
    probabilities: tuple[Fraction, ...]

    def __init__(self, sigma2: Number, sensitivities: Iterable[Number], probabilities: Iterable[Number]) -> None:
        object.__setattr__(self, "sigma2", positive(sigma2, "sigma2"))
        moves = _listed(sensitivities, "sensitivities")
        weights = _listed(probabilities, "probabilities")
        if len(moves) != len(weights):
            raise InvalidInputError(
                "sensitivities and probabilities must have the same length. "
                f"Found {len(moves)} and {len(weights)} of them."
            )
        if sum(weights) != 1:
            raise InvalidInputError(f"probabilities must add up to exactly 1. Found the sum {shown(sum(weights))}.")
        merged: dict[Fraction, Fraction] = {}
        for move, weight in zip(moves, weights, strict=True):
            if weight:
                merged[move] = merged.get(move, Fraction(0)) + weight
        object.__setattr__(self, "sensitivities", tuple(sorted(merged)))
        object.__setattr__(self, "probabilities", tuple(merged[c] for c in sorted(merged)))
        largest = self.sensitivities[-1]
        if not SMALLEST_RATIO <= largest**2 / self.sigma2 <= LARGEST_RATIO:
            raise InvalidInputError(
                f"The square of the largest sensitivity, divided by sigma2, must be between {float(SMALLEST_RATIO):.0e} and "
                f"{float(LARGEST_RATIO):.0e} (above it the noise protects nothing). "
                f"Found {shown(largest)} with sigma2 {shown(self.sigma2)}."
            )
        if min(merged.values()) < SMALLEST_WEIGHT:
            raise InvalidInputError(
                f"A probability must be 0 or at least {float(SMALLEST_WEIGHT):.0e} (round it up, and another one down). "
                f"Found {shown(min(merged.values()))}."
            )

    @property
    def rho(self) -> Fraction:
        """A zCDP parameter: that of the largest sensitivity (docs/theory/smooth.md)."""
        return self.sensitivities[-1] ** 2 / (2 * self.sigma2)

    def loss(self) -> Loss:
        """log f of an output under the mixture; its `reversed` is -log f under the single Gaussian."""
        return MixtureLoss(Mixture(self.probabilities, tuple(c**2 / self.sigma2 for c in self.sensitivities)))

    def _scaled(self, by: Fraction) -> GaussianMixture:
        return GaussianMixture(self.sigma2 * by, self.sensitivities, self.probabilities)

    def __str__(self) -> str:
        moves, weights = ([exact_text(x) for x in xs] for xs in (self.sensitivities, self.probabilities))
        return f"GaussianMixture({exact_text(self.sigma2)!r}, {moves!r}, {weights!r})"


def _listed(values: Iterable[Number], name: str) -> list[Fraction]:
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise InvalidInputError(f"{name} must be a list of numbers. Found {shown(values)}.")
    result = [rational(value, f"{name}[{i}]") for i, value in enumerate(values)]
    if not 1 <= len(result) <= MOST_COMPONENTS:
        raise InvalidInputError(f"{name} must have from 1 to {MOST_COMPONENTS} numbers. Found {len(result)} of them.")
    for i, value in enumerate(result):
        if value < 0:
            raise InvalidInputError(f"{name}[{i}] must not be negative. Found {shown(value)}.")
    return result
