"""Phases of nodes in fixed point: many at once are those of each."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from exactdp.balls import BITS, ball, precision
from exactdp.engine.sieve.fixed_point import Turn, phases_of_bits, phases_of_turns


@pytest.mark.parametrize("size", [2**20, 2**32 - 1, 2**32, 2**45, 2**62])
def test_phases_of_many_turns_are_those_of_each(size: int) -> None:
    rng = random.Random(size)
    k = np.array([0, 1, size, *(rng.randrange(size) for _ in range(500))], dtype=np.int64)
    with precision(BITS):
        turns = [Turn.of(ball(Fraction(rng.randrange(-(10**9), 10**9), rng.randrange(1, 10**12)))) for _ in range(7)]
    expected = np.stack([turn.phases(k) for turn in turns])
    assert np.array_equal(phases_of_turns(turns, k), expected)
    assert phases_of_turns([], k).shape == (0, len(k))
    words = [(t.bits >> 64, t.bits & (1 << 64) - 1) for t in turns]
    for i, own in enumerate(words):
        bits = np.repeat(np.array([own], dtype=np.uint64), len(k), axis=0)
        assert np.array_equal(phases_of_bits(k, bits), expected[i])
