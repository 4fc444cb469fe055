"""Bounds against brute-force convolution: never outside, and narrow."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import exactdp
import oracle
from strategies import Key, composition_of, random_small, seeds

PER_RUN = 130


def _draw(rng: random.Random, most: int = 25_000) -> dict[Key, int]:
    while True:
        mechanisms = random_small(rng)
        if oracle.lattice_size(mechanisms) < most:
            return mechanisms


def _epsilons(rng: random.Random, brute: oracle.Brute) -> list[Fraction]:
    """Near the bulk, in the tail, negative, and exactly on a lattice point of the loss."""
    deviation = float(brute.spread) ** 0.5
    middle = brute.spread / 2
    free = middle + Fraction(round(deviation * rng.uniform(-3, 12) * 1000), 1000)
    on_lattice = middle + brute.step * rng.randint(-3, max(3, int(6 * deviation / brute.step)))
    return [free, on_lattice, -free / 3]


@pytest.mark.parametrize("seed", seeds(1, 16))
def test_delta_and_beta_are_never_outside(seed: int) -> None:
    rng = random.Random(seed)
    checked = 0
    for run in range(PER_RUN):
        mechanisms = _draw(rng)
        brute = oracle.brute(mechanisms)
        composition = composition_of(mechanisms)
        epsilons = _epsilons(rng, brute)
        exact = [brute.delta(e) for e in epsilons]
        lower, upper = composition.delta_bounds(epsilons)
        for e, value, low, high in zip(epsilons, exact, lower, upper, strict=True):
            assert Fraction(low) <= value + oracle.ERROR, (mechanisms, e)
            assert value - oracle.ERROR <= Fraction(high), (mechanisms, e)
            if value > oracle.ERROR * 10**30:
                assert high - low < 1e-11 * high, (mechanisms, e, low, high)
                checked += 1
        alpha = (
            Fraction(rng.choice([1, 5, 50, 500, 950, 999]), 1000)
            if rng.random() < 0.8
            else brute.tail(rng.randint(0, 9))
        )
        if 0 < alpha < 1 and run % 2:
            low, high = composition.beta_bounds(alpha)
            value = brute.beta(alpha)
            assert Fraction(low) <= value + oracle.ERROR, (mechanisms, alpha)
            assert value - oracle.ERROR <= Fraction(high), (mechanisms, alpha)
            if value > oracle.ERROR * 10**30:
                assert high - low < 1e-11 * high, (mechanisms, alpha, low, high)
    assert checked > 2 * PER_RUN


@pytest.mark.parametrize("seed", range(3))
def test_lumpy_compositions(seed: int) -> None:
    """One coarse mechanism among wide ones: the loss lives in clumps, and float64 alone loses digits between them."""
    rng = random.Random(100 + seed)
    for _ in range(12):
        coarse = rng.choice([Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1)])
        wide = Fraction(rng.choice([20, 40, 100]))
        mechanisms = {(coarse, 1): rng.randint(1, 2), (wide, 1): rng.randint(1, 3)}
        brute = oracle.brute(mechanisms)
        composition = composition_of(mechanisms)
        for _ in range(4):
            e = brute.spread / 2 + Fraction(round(rng.uniform(0, 5 * float(brute.spread)) * 100), 100)
            value = brute.delta(e)
            low, high = composition.delta_bounds(e)
            assert Fraction(low) <= value + oracle.ERROR
            assert value - oracle.ERROR <= Fraction(high)
            if value > oracle.ERROR * 10**30:
                assert high - low < 1e-11 * high, (mechanisms, e, low, high)


def test_small_known_values() -> None:
    """Values confirmed twice before this project existed (brute force and a prototype)."""
    ten = 10 * exactdp.DiscreteGaussian(1)
    for epsilon, text in [
        ("0", "0.8831392305024560655278"),
        ("5.25", "0.3554170136125753224849"),
        ("30", "1.842766666664061730799e-16"),
    ]:
        low, high = ten.delta_bounds(epsilon)
        assert Fraction(low) < Fraction(text) < Fraction(high)
