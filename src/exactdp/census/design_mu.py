"""Gaussian DP of a whole release: the tightest mu over all its pairs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.census.releases import Release
from exactdp.guarantees.tightest_mu import GaussianDP, is_near_gaussian, tightest_mu


@steady
def design_mu(release: Release, done: Callable[[int], None] = lambda pairs: None) -> GaussianDP:
    """Bounds of the least mu for which every pair of the release is mu-GDP, so that the release is.

    The largest lower bound of any pair, and the largest upper bound of all: a pair that the theorem near the Gaussian proves to
    be mu-GDP for the largest mu so far needs no search of its own. `done` hears how many pairs were settled.
    """
    best: GaussianDP | None = None
    for composition in dict.fromkeys([release.proxy, *release.compositions]):  # the proxy is close to the worst
        if best is None or not is_near_gaussian(composition, Fraction(best.upper)):
            found = tightest_mu(composition)
            best = found if best is None else _larger(best, found)
        done(1)
    assert best is not None  # a release has a pair
    return best


def _larger(one: GaussianDP, other: GaussianDP) -> GaussianDP:
    where = one.epsilon if one.lower >= other.lower else other.epsilon
    return GaussianDP(max(one.lower, other.lower), max(one.upper, other.upper), where)
