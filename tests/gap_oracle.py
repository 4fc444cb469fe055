"""Random compositions of Gaussian noise, and the true gap to the Gaussian formula from certified values."""

from __future__ import annotations

import math
import random
import warnings
from fractions import Fraction

from flint import arb

from exactdp import AccuracyWarning, Composition, DiscreteGaussian, Gaussian
from exactdp.balls import precision
from exactdp.theory.gaussian_gap.gap import shifted_ball


def some_composition(rng: random.Random) -> Composition:
    """Equal noise, few or many different fractions, doubles, continuous parts, sensitivities; from coarse to fine."""

    def sigma2() -> float:
        low, high = rng.choice([(0.05, 0.3), (0.3, 1.5), (1, 5), (5, 100), (100, 1e4)])
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    def rounded(most: int) -> Fraction:
        return max(Fraction(sigma2()).limit_denominator(most), Fraction(1, 20))

    kind = rng.randrange(6)
    if kind == 0:
        return Composition({DiscreteGaussian(rounded(20)): rng.choice([1, 2, 3, 5, 10, 50, 400])})
    if kind == 1:
        return Composition({DiscreteGaussian(rounded(8)): rng.randint(1, 20) for _ in range(rng.randint(2, 4))})
    if kind == 2:
        weights = [Fraction(1 / sigma2()).limit_denominator(60) or Fraction(1, 59) for _ in range(rng.randint(2, 8))]
        return Composition({DiscreteGaussian(1 / w): rng.randint(1, 20) for w in weights})
    if kind == 3:
        noises = [DiscreteGaussian(sigma=math.sqrt(sigma2())) for _ in range(rng.randint(1, 4))]
        return Composition({m: rng.randint(1, 9) for m in noises})
    if kind == 4:
        return Composition({DiscreteGaussian(rounded(20)): rng.randint(1, 9), Gaussian(10 * rounded(10)): 1})
    noises = [DiscreteGaussian(10 * rounded(4), sensitivity=rng.randint(1, 5)) for _ in range(rng.randint(1, 3))]
    return Composition({m: rng.randint(1, 9) for m in noises})


def truth(c: Composition, epsilon: Fraction) -> tuple[float, float]:
    """Bounds of delta / delta_Gaussian - 1 from the certified delta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        delta = c.within(max_seconds=1).point([epsilon]).delta
    with precision(220):
        gaussian = shifted_ball(2 * Fraction(c.rho), epsilon)
        low, high = (arb(float(x[0])).exp() / gaussian - 1 for x in (delta.log_lower(), delta.log_upper()))
        return float(low.lower()), float(high.upper())
