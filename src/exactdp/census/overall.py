"""The overall guarantee of a release: the worst of all pairs of directed paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exactdp.census.releases import Release
from exactdp.numbers import Number


@dataclass(frozen=True)
class PairEpsilon:
    """Certified bounds of epsilon(delta) of one pair."""

    pair: tuple[int, int]
    lower: float
    upper: float


def pair_epsilons(release: Release, delta: Number) -> Iterator[PairEpsilon]:
    """epsilon(delta) of every pair, one after the other.

    Parallel composition: the release satisfies (epsilon, delta)-DP exactly for epsilon from the largest of them on.
    """
    for pair in release.pairs:
        lower, upper = release.pair(*pair).epsilon_bounds(delta)
        yield PairEpsilon(pair, lower, upper)
