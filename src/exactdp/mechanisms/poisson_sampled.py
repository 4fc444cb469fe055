"""A mechanism run on a random sample of the records: each record is in it with probability `rate`, independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.gaussian_mixture import GaussianMixture
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.loss import FiniteLoss, Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.trapezoidal_rule import Mixture
from exactdp.numbers import Number, exact_text, rational, shown, whole

SMALLEST_RATE = Fraction(1, 10**9)
LARGEST_RATIO = 10**4
MOST_RECORDS = 100

_Normal = (Gaussian, GaussianMixture, DiscreteGaussian)
_Finite = (DiscreteLaplace, ApproximateDP, Outcomes)


@steady
@dataclass(frozen=True, init=False, repr=False)
class PoissonSampled(Mechanism):
    """A mechanism on a Poisson sample of the records, for data sets that differ by adding or removing a record.

    `mechanism` describes the output with the record (one data set) and without it (its neighbour): Gaussian noise of both kinds,
    a mixture of Gaussians, discrete Laplace noise, an (epsilon, delta) guarantee, or Outcomes(with the record, without it).
    With `records` = k the data sets differ by k records (continuous Gaussian noise only). Replacing a record is another relation:
    no pair of distributions is known that is the worst for it, so it is not offered.

    >>> (PoissonSampled(Gaussian(4), "0.01") * 1000).delta_bounds(1).upper < 3.9918496e-10
    True
    """

    mechanism: Mechanism
    rate: Fraction
    records: int

    def __init__(self, mechanism: Mechanism, rate: Number, records: int = 1) -> None:
        if not isinstance(mechanism, (*_Normal, *_Finite)):
            raise InvalidInputError(
                "PoissonSampled takes a Gaussian, GaussianMixture, DiscreteGaussian, DiscreteLaplace, ApproximateDP or Outcomes "
                f"mechanism. Found {shown(mechanism)}."
            )
        share = rational(rate, "rate")
        if not SMALLEST_RATE <= share <= 1:
            raise InvalidInputError(
                f"rate must be at least {float(SMALLEST_RATE):.0e} (round a smaller one up) and at most 1. Found {shown(rate)}."
            )
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "rate", share)
        object.__setattr__(self, "records", whole(records, "records", 1, MOST_RECORDS))
        if self.records > 1 and not isinstance(mechanism, Gaussian):
            raise InvalidInputError(
                "Several records at once are exact for a sampled Gaussian only. "
                f"Found records={self.records} with {shown(mechanism)}."
            )
        if isinstance(mechanism, _Normal):
            ratio = 2 * mechanism.rho * self.records**2
            if ratio > LARGEST_RATIO:
                raise InvalidInputError(
                    f"sensitivity^2 / sigma2 must be at most {LARGEST_RATIO:.0e} for a sampled mechanism (above it the noise "
                    f"protects nothing). Found {shown(mechanism)} for {self.records} records."
                )

    @property
    def rho(self) -> Fraction | float:
        """A zCDP parameter: that of the mechanism itself, for all records together."""
        return self.mechanism.rho * self.records**2

    def loss(self) -> Loss:
        """log(1 - rate + rate P/Q) under (1 - rate) Q + rate P; its `reversed` is minus that, under Q."""
        base = self.mechanism
        if isinstance(base, _Normal):
            return MixtureLoss(self._mixture(base))
        return _SampledFiniteLoss(base.loss(), self.rate)

    def _mixture(self, base: Gaussian | GaussianMixture | DiscreteGaussian) -> Mixture:
        if isinstance(base, GaussianMixture):
            moves, weights = list(base.sensitivities), list(base.probabilities)
        else:
            moves, weights = [Fraction(base.sensitivity)], [Fraction(1)]
        k, q = self.records, self.rate
        merged: dict[Fraction, Fraction] = {}
        for n in range(k + 1):
            chance = math.comb(k, n) * q**n * (1 - q) ** (k - n)
            for move, weight in zip(moves, weights, strict=True) if n else [(Fraction(0), Fraction(1))]:
                if chance:
                    merged[n * move] = merged.get(n * move, Fraction(0)) + chance * weight
        spacing2 = 1 / base.sigma2 if isinstance(base, DiscreteGaussian) else None
        ascending = sorted(merged)
        return Mixture(tuple(merged[c] for c in ascending), tuple(c**2 / base.sigma2 for c in ascending), spacing2)

    def __str__(self) -> str:
        extra = "" if self.records == 1 else f", records={self.records}"
        return f"PoissonSampled({self.mechanism}, {exact_text(self.rate)!r}{extra})"


class _SampledFiniteLoss(FiniteLoss):
    """A loss of finitely many values, sampled: the value l becomes log(1 - rate + rate e^l)."""

    def __init__(self, base: Loss, rate: Fraction, backward: bool = False) -> None:
        assert isinstance(base, FiniteLoss)
        self._base, self._rate, self._backward = base, rate, backward
        other = base.reversed()
        with precision(BITS):
            q, rest = ball(rate), ball(1 - rate)
            values: list[arb] = []
            probabilities: list[arb] = []
            finite = ball(1 - base.lost)
            for value, given in base.listed:
                here = given * finite  # P; Q is e^-value as likely
                there = here * (-value).exp()
                loss = (q * value.expm1()).log1p()
                values.append(-loss if backward else loss)
                probabilities.append(there if backward else rest * there + q * here)
            if other.lost and rate < 1:  # outcomes that are possible without the record only
                edge = rest.log()
                values.append(-edge if backward else edge)
                probabilities.append(ball(other.lost) if backward else rest * ball(other.lost))
            lost = (other.lost if rate == 1 else Fraction(0)) if backward else rate * base.lost
            units = [v - values[0] for v in values[1:]]
            rows = [tuple(int(a == j) for j in range(1, len(values))) for a in range(len(values))]
            super().__init__(values[0], units, rows, probabilities, lost)

    def reversed(self) -> Loss:
        return _SampledFiniteLoss(self._base, self._rate, not self._backward)
