"""The lattice on which the privacy loss lives.

A composition of discrete Gaussians has loss S -/+ R/2 with S = sum_i w_i X_i, w_i = D_i / s_i, R = sum_i D_i^2 / s_i. For
rational w_i the support of S is exactly `step * Z` with step = gcd(w_i) (Bezout), and R is a multiple of the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import fraction, precision
from exactdp.doubles import SUM_SLACK, Floats
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.theta import log_theta_ratio, log_theta_ratio_ball, theta_ratio_error, tilted_mean_variance


@dataclass(frozen=True)
class Group:
    """`count` mechanisms with the same noise parameter and sensitivity."""

    sigma2: Fraction
    sensitivity: int
    count: int

    @classmethod
    def of_each(cls, mechanisms: Mapping[DiscreteGaussian, int]) -> tuple[Group, ...]:
        """Mechanisms and how often each occurs, as groups."""
        return tuple(cls(m.sigma2, m.sensitivity, count) for m, count in mechanisms.items())

    @property
    def mechanism(self) -> DiscreteGaussian:
        """One of them."""
        return DiscreteGaussian(self.sigma2, self.sensitivity)

    @cached_property
    def weight(self) -> Fraction:
        """Loss per unit of noise, D / s."""
        return Fraction(self.sensitivity * self.sigma2.denominator, self.sigma2.numerator)


def common_step(lengths: Iterable[Fraction]) -> Fraction:
    """The greatest common divisor of positive fractions."""
    parts = [(x.numerator, x.denominator) for x in lengths]
    return Fraction(math.gcd(*(top for top, _ in parts)), math.lcm(*(bottom for _, bottom in parts)))


@dataclass(frozen=True)
class Lattice:
    """The groups of a composition with everything about them that does not depend on the question asked."""

    groups: tuple[Group, ...]
    unit: Fraction | None = None
    """A divisor of the step to be used in its place: S lives on every finer lattice as well."""

    @cached_property
    def _weights(self) -> list[tuple[int, int]]:
        """Numerators and denominators of D / s by group, without a common factor."""
        raw = [(g.sensitivity * g.sigma2.denominator, g.sigma2.numerator) for g in self.groups]
        return [(top // (common := math.gcd(top, bottom)), bottom // common) for top, bottom in raw]

    @cached_property
    def step(self) -> Fraction:
        """h, the greatest common divisor of the weights, unless a unit is given."""
        if self.unit is not None:
            return self.unit
        tops, bottoms = zip(*self._weights, strict=True)
        return Fraction(math.gcd(*tops), math.lcm(*bottoms))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """a_i = w_i / h: how many lattice steps one unit of noise moves the loss, by group."""
        top, bottom = self.step.numerator, self.step.denominator
        return tuple((w // top) * (bottom // v) for w, v in self._weights)

    @cached_property
    def spread_steps(self) -> int:
        """R / h, an integer."""
        return sum(g.count * g.sensitivity * a for g, a in zip(self.groups, self.strides, strict=True))

    @cached_property
    def spread(self) -> Fraction:
        """R = sum D^2 / s, the sub-Gaussian variance of S and twice zCDP's rho."""
        return self.spread_steps * self.step

    @cached_property
    def half_spread(self) -> Fraction:
        """R / 2 = rho."""
        return self.spread / 2

    @cached_property
    def h(self) -> float:
        """The step as a double."""
        return float(self.step)

    @cached_property
    def r(self) -> float:
        """R as a double."""
        return float(self.spread)

    @cached_property
    def sigma2(self) -> Floats:
        """Noise parameters by group, as doubles."""
        return np.array([g.sigma2.numerator / g.sigma2.denominator for g in self.groups])

    @cached_property
    def counts(self) -> Floats:
        """Multiplicities by group, as doubles."""
        return np.array([float(g.count) for g in self.groups])

    @cached_property
    def sensitivities(self) -> Floats:
        """Sensitivities by group, as doubles."""
        return np.array([float(g.sensitivity) for g in self.groups])

    @cached_property
    def is_smooth(self) -> bool:
        """Whether every noise parameter is at least 1/2, so that the moment function is Gaussian to about 2e-4."""
        return bool(self.sigma2.min() >= 0.5)

    @cached_property
    def widest(self) -> float:
        """An upper estimate of the variance of S under any tilt. Heuristic: affects speed only."""
        if self.is_smooth:
            return self.r
        w = np.array([float(g.weight) for g in self.groups])
        return float(np.sum(self.counts * w * w * np.where(self.sigma2 < 0.5, self.sigma2 + 0.25, self.sigma2)))

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """K'(tilt) and K''(tilt), the mean and variance of S under the tilt. Heuristic: affects speed only."""
        if self.is_smooth:
            return self.r * tilt, self.r
        mean = variance = 0.0
        for g in self.groups:
            w, s = float(g.weight), float(g.sigma2)
            m, v = tilted_mean_variance(g.sensitivity * tilt, s)
            mean += g.count * w * m
            variance += g.count * w * w * v
        return mean, variance

    def log_theta(self, tilt: Fraction) -> tuple[Fraction, float]:
        """Theta(z) = K(z) - R z^2 / 2 = sum of counts times log(theta(D z) / theta(0)), at most 0, and its error bound.

        `tilt` must be short enough for D * tilt to be exact in float64 (see tilts.py).
        float64 where that is good to 3e-14, balls of 192 bits (coarse noise in large numbers) where it is not.
        """
        total = error = 0.0
        lam = float(tilt)
        columns = (column.tolist() for column in (self.sigma2, self.counts, self.sensitivities * lam))
        for s, count, shift in zip(*columns, strict=True):
            term = count * log_theta_ratio(shift, s)
            total += term
            error += theta_ratio_error(s, term, count)
        return (Fraction(total), error) if error < 3e-14 else self._log_theta_ball(tilt)

    def _log_theta_ball(self, tilt: Fraction) -> tuple[Fraction, float]:
        with precision(192):
            total = sum((g.count * log_theta_ratio_ball(g.sensitivity * tilt, g.sigma2) for g in self.groups), arb(0))
            return fraction(total.mid()), float(total.rad()) * (1 + SUM_SLACK)
