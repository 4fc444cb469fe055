"""Bounds against brute force: delta, epsilon and beta in float64 and in digits, small compositions of every kind."""

from __future__ import annotations

import random
import warnings
from decimal import Decimal
from fractions import Fraction

import mpmath

import any_oracle
import oracle
from any_cases import case_of, epsilons_of, inside
from campaigns.tally import Tally
from exactdp import Composition
from strategies import composition_of, random_small

_MOST_POINTS = 6000
"""Lattices of more points than this take the brute force too long."""


def noise(seed: int) -> Tally:
    """A composition of discrete Gaussians, at epsilons over the whole support, random alphas and deltas."""
    tally, rng = Tally(), random.Random(seed)
    mechanisms = random_small(rng)
    while oracle.lattice_size(mechanisms) > _MOST_POINTS:
        mechanisms = random_small(rng)
    truth, composition = oracle.brute(mechanisms), composition_of(mechanisms)

    def compare(what: str, bounds: tuple[float | Decimal, float | Decimal], low: Fraction, high: Fraction) -> None:
        holds = Fraction(bounds[0]) <= high + oracle.ERROR and low - oracle.ERROR <= Fraction(bounds[1])
        tally.check(holds, f"seed {seed}: {what} of {composition} is not within {bounds}")

    for _ in range(5):
        epsilon = Fraction(round(1000 * float(truth.spread) * rng.uniform(-1, 4)), 1000)
        value = truth.delta(epsilon)
        compare(f"delta({epsilon})", composition.delta_bounds(epsilon), value, value)
        compare(f"delta({epsilon})", composition.delta_bounds(epsilon, digits=17), value, value)
        alpha = Fraction(10 ** rng.uniform(-30, 0))
        beta = truth.beta(alpha)
        compare(f"beta({alpha})", composition.beta_bounds(alpha), beta, beta)
        delta = Fraction(10 ** rng.uniform(-60, -0.01))
        low, high = composition.epsilon_bounds(delta)
        holds = truth.delta(Fraction(high)) <= delta + oracle.ERROR and delta - oracle.ERROR <= truth.delta(
            Fraction(low)
        )
        tally.check(holds, f"seed {seed}: epsilon({delta}) of {composition} is not within {(low, high)}")
    return tally


def any_mechanisms(seed: int) -> Tally:
    """A composition of any mechanisms whose losses can be listed, at both signs of epsilon, atoms and ends."""
    tally = Tally()
    counts, truth = case_of(seed)
    composition = Composition(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # wide bounds are bounds
        for epsilon in epsilons_of(counts, truth):
            bounds = composition.delta_bounds(epsilon)
            with mpmath.workdps(any_oracle.DIGITS):
                holds = inside(*bounds, truth.worst(epsilon), truth.error(epsilon))
            tally.check(holds, f"seed {seed}: delta({epsilon}) of {composition} is not within {bounds}")
    return tally
