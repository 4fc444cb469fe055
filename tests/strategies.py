"""Random compositions: hypothesis strategies, biased to corners, and a seeded generator for long runs."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import strategies as st

import exactdp

Key = tuple[Fraction, int]

CORNERS = [Fraction(1, 10), Fraction(1, 4), Fraction(2, 5), Fraction(1, 2), Fraction(1), Fraction(500)]


def seeds(judged: int, soaked: int) -> list[object]:
    """Seeds of random cases: the first judge every change, all of them a soak."""
    return [pytest.param(seed, marks=pytest.mark.soak if seed >= judged else ()) for seed in range(soaked)]


def composition_of(mechanisms: dict[Key, int]) -> exactdp.Composition:
    return exactdp.Composition({exactdp.DiscreteGaussian(s, d): n for (s, d), n in mechanisms.items()})


def random_small(rng: random.Random) -> dict[Key, int]:
    """One to eight mechanisms, sigma2 in [1/10, 500], sensitivity 1 to 4, on a lattice small enough for brute force.

    Half of them come from a lattice (weights are small multiples of a step), half from rationals of small denominator.
    """
    size = rng.randint(1, 8)
    distinct = rng.randint(1, min(size, 3))
    keys: list[Key] = []
    while len(keys) < distinct:
        d = rng.choice([1, 1, 1, 2, 3, 4])
        kind = rng.random()
        if kind < 0.1:
            s = rng.choice(CORNERS)
        elif kind < 0.6:
            s = Fraction(d, rng.randint(1, 12)) * Fraction(rng.choice([1, 2, 3, 5, 7, 10, 40, 100]), rng.randint(1, 4))
        else:
            s = Fraction(round(10 ** rng.uniform(-1, 2.7) * 20), 20)
        if Fraction(1, 10) <= s <= 500:
            keys.append((s, d))
    counts: dict[Key, int] = {}
    for i in range(size):
        key = keys[i] if i < distinct else rng.choice(keys)
        counts[key] = counts.get(key, 0) + 1
    return counts


@st.composite
def rationals(draw: st.DrawFn, low: Fraction, high: Fraction, denominators: int = 12) -> Fraction:
    denominator = draw(st.integers(1 if low < high - 1 else math.ceil(1 / (high - low)), denominators))
    numerator = draw(st.integers(-(-low * denominator // 1), high * denominator // 1))
    return Fraction(numerator, denominator)


@st.composite
def compositions(draw: st.DrawFn, most: int = 6) -> exactdp.Composition:
    """A few groups of noise between 1/10 and 60, corners among them, sometimes many copies."""
    sigma2 = st.one_of(st.sampled_from(CORNERS), rationals(Fraction(1, 5), Fraction(60), 6))
    keys = draw(st.lists(st.tuples(sigma2, st.integers(1, 3)), min_size=1, max_size=3, unique=True))
    counts = draw(st.lists(st.sampled_from([1, 1, 2, 3, most, 50]), min_size=len(keys), max_size=len(keys)))
    return composition_of(dict(zip(keys, counts, strict=True)))


epsilons = st.one_of(
    rationals(Fraction(-5), Fraction(30), 20), st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(100)])
)
"""Including lattice points of many compositions (halves of integers) and a deep tail."""
