"""A mechanism run on a random sample of the records: each record is in it with probability `rate`, independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.gaussian_mixture import GaussianMixture
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.integer_noise import IntegerNoise
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.laplace_tables import merged, split
from exactdp.mechanisms.loss import FiniteLoss, ListedLoss, Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import MOST_RELATED, Outcomes
from exactdp.mechanisms.trapezoidal_rule import Mixture
from exactdp.numbers import Number, exact_text, rational, shown, whole

SMALLEST_RATE = Fraction(1, 10**9)
LARGEST_RATIO = 10**4
MOST_RECORDS = 100

_Normal = (Gaussian, GaussianMixture, DiscreteGaussian)
_Finite = (DiscreteLaplace, ApproximateDP, Outcomes, IntegerNoise)


@steady
@dataclass(frozen=True, init=False, repr=False)
class PoissonSampled(Mechanism):
    """A mechanism on a Poisson sample of the records, for data sets that differ by adding or removing a record.

    `mechanism` describes the output with the record (one data set) and without it (its neighbour): Gaussian noise of both kinds,
    a mixture of Gaussians, Laplace noise of both kinds, a symmetric table of noise, an (epsilon, delta) guarantee, or
    Outcomes(with the record, without it). Real Laplace noise is enclosed between two tables.
    With `records` = k the data sets differ by k records (continuous Gaussian noise only). Replacing a record is another relation:
    no pair of distributions is known that is the worst for it, so it is not offered.

    >>> (PoissonSampled(Gaussian(4), "0.01") * 1000).delta_bounds(1).upper < 3.9918496e-10
    True
    """

    mechanism: Mechanism
    rate: Fraction
    records: int

    def __init__(self, mechanism: Mechanism, rate: Number, records: int = 1) -> None:
        if not isinstance(mechanism, (*_Normal, *_Finite, Laplace)):
            raise InvalidInputError(
                "PoissonSampled takes a Gaussian, GaussianMixture, DiscreteGaussian, Laplace, DiscreteLaplace, IntegerNoise, "
                f"ApproximateDP or Outcomes mechanism. Found {shown(mechanism)}."
            )
        if isinstance(mechanism, IntegerNoise) and mechanism.pmf != mechanism.pmf[::-1]:
            raise InvalidInputError(
                "A table on a sample must be symmetric, or else it matters whether the record adds or takes away: give "
                f"Outcomes(with the record, without it). Found {shown(mechanism)}."
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
        if self.rate == 1:  # no sampling
            return (
                Gaussian(base.sigma2, base.sensitivity * self.records) if isinstance(base, Gaussian) else base
            ).loss()
        if isinstance(base, _Normal):
            return MixtureLoss(self._mixture(base))
        if isinstance(base, Laplace):
            raise AccuracyError(
                "The loss of real Laplace noise on a sample is known between two tables only. Ask for delta_bounds, "
                "epsilon_bounds or beta_bounds, or take DiscreteLaplace."
            )
        return sampled_loss(base.loss(), self.rate)

    @property
    def is_enclosed(self) -> bool:
        """For real Laplace noise, unless all records are in the sample."""
        return isinstance(self.mechanism, Laplace) and self.rate < 1

    def enclosing_loss(self, is_above: bool) -> Loss:
        """For real Laplace noise: its cells split, or merged, on a sample."""
        if not isinstance(self.mechanism, Laplace) or not self.is_enclosed:
            return self.loss()
        return sampled_loss((split if is_above else merged)(self.mechanism.epsilon), self.rate)

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


def sampled_loss(base: Loss, rate: Fraction, backward: bool = False) -> Loss:
    """A loss of finitely many values on a sample, rate < 1: the value l becomes log(1 - rate + rate e^l)."""
    assert isinstance(base, FiniteLoss)
    other = base.reversed()
    with precision(BITS):
        q, rest = ball(rate), ball(1 - rate)
        values: list[arb] = []
        probabilities: list[arb] = []
        finite = ball(1 - base.lost)
        for value, given in base.listed:
            here = given * finite  # P; Q is e^-value as likely
            there = here * (-value).exp()
            # far below 0 a sum of positive terms, near 0 what is left of 1: neither cancels
            loss = (rest + q * value.exp()).log() if bool(value < -1) else (q * value.expm1()).log1p()
            values.append(-loss if backward else loss)
            probabilities.append(there if backward else rest * there + q * here)
        if other.lost:  # outcomes that are possible without the record only
            edge = rest.log()
            values.append(-edge if backward else edge)
            probabilities.append(ball(other.lost) if backward else rest * ball(other.lost))
    lost = Fraction(0) if backward else rate * base.lost
    return (_FewSampled if len(values) <= MOST_RELATED else _ManySampled)(
        _Sampled(base, rate, backward), values, probabilities, lost
    )


@dataclass(frozen=True)
class _Sampled:
    """What a sampled loss was made from."""

    base: Loss
    rate: Fraction
    backward: bool

    def reversed(self) -> Loss:
        return sampled_loss(self.base, self.rate, not self.backward)


class _FewSampled(FiniteLoss):
    """Few values, each with a unit of its own."""

    def __init__(self, source: _Sampled, values: list[arb], probabilities: list[arb], lost: Fraction) -> None:
        self._source = source
        with precision(BITS):
            units = [v - values[0] for v in values[1:]]
        rows = [tuple(int(a == j) for j in range(1, len(values))) for a in range(len(values))]
        super().__init__(values[0], units, rows, probabilities, lost)

    def reversed(self) -> Loss:
        return self._source.reversed()


class _ManySampled(ListedLoss):
    """Very many values."""

    def __init__(self, source: _Sampled, values: list[arb], probabilities: list[arb], lost: Fraction) -> None:
        self._source = source
        super().__init__(values, probabilities, lost)

    def reversed(self) -> Loss:
        return self._source.reversed()
