"""How much noise could have been saved: a factor on the noise variances that just meets a stated (epsilon, delta).

A factor c multiplies every noise parameter sigma2. It is reported on a grid of 1/10000, on the safe side. Guarantee: at c the
release satisfies (epsilon, delta), at one grid step less it does not, both by certified bounds of delta over all pairs
(Theorem 4; docs/theory/engine.md, section 9). That still smaller factors fail as well is not claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.census.releases import Release
from exactdp.census.study import make_overall
from exactdp.composition import Composition
from exactdp.conversions import gaussian_delta
from exactdp.errors import AccuracyError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

GRID = 10_000
LARGEST_FACTOR = 1_000_000


@dataclass(frozen=True)
class Saving:
    """A factor on the grid at which (epsilon, delta) holds while it fails one step below, both certified."""

    epsilon: Fraction
    delta: Fraction
    factor: Fraction

    @property
    def saved(self) -> Fraction:
        """The share of the noise variance that could be saved."""
        return 1 - self.factor


def overall_saving(release: Release, epsilon: Fraction, delta: Fraction) -> Saving:
    """For the whole release, all pairs: the search uses the full path with itself, the proof uses all pairs."""
    proxy = release.proxy

    def holds(factor: Fraction) -> bool:
        if not _meets(proxy.scaled(factor), epsilon, delta):
            return False
        return make_overall(release.scaled(factor)).delta(epsilon)[1] <= delta

    def fails(factor: Fraction) -> bool:
        if _misses(proxy.scaled(factor), epsilon, delta):
            return True
        return make_overall(release.scaled(factor)).delta(epsilon)[0] > delta

    return _least(proxy, epsilon, delta, holds, fails)


def level_saving(release: Release, level: str, epsilon: Fraction, delta: Fraction) -> Saving:
    """For one geographic level of the full path, both paths of a pair, accounted on its own."""
    part = level_pair(release, level)
    return _least(
        part,
        epsilon,
        delta,
        lambda factor: _meets(part.scaled(factor), epsilon, delta),
        lambda factor: _misses(part.scaled(factor), epsilon, delta),
    )


def level_pair(release: Release, level: str) -> Composition:
    """The mechanisms of one level of the full path, twice."""
    counts: Counter[DiscreteGaussian] = Counter()
    for rho in release.table[level].values():
        counts[DiscreteGaussian(1 / rho)] += 2
    return Composition(counts)


def _meets(composition: Composition, epsilon: Fraction, delta: Fraction) -> bool:
    return bool(composition.delta(epsilon) <= delta)


def _misses(composition: Composition, epsilon: Fraction, delta: Fraction) -> bool:
    return bool(composition.delta_bounds(epsilon).lower > delta)


def _least(
    start: Composition,
    epsilon: Fraction,
    delta: Fraction,
    holds: Callable[[Fraction], bool],
    fails: Callable[[Fraction], bool],
) -> Saving:
    """A factor m / GRID at which `holds`, found near the continuous Gaussian's, while one step below `fails`."""
    high, move = _gaussian_guess(start.mu, epsilon, delta), 1
    while not holds(Fraction(high, GRID)):
        high, move = high + move, 2 * move
        if high > LARGEST_FACTOR * GRID:
            raise AccuracyError(
                f"No factor up to {LARGEST_FACTOR} meets epsilon = {float(epsilon):.6g} at delta = {float(delta):.3g}. "
                "Ask for a weaker guarantee."
            )
    low, move = high - 1, 1
    while low > 0 and not fails(Fraction(low, GRID)):
        low, move = max(0, low - move), 2 * move
    while high - low > 1:
        middle = (low + high) // 2
        if holds(Fraction(middle, GRID)):
            high = middle
        elif fails(Fraction(middle, GRID)):
            low = middle
        else:
            raise AccuracyError(f"The bounds are too wide to tell whether the factor {middle}/{GRID} suffices.")
    return Saving(epsilon, delta, Fraction(high, GRID))


def _gaussian_guess(mu: float, epsilon: Fraction, delta: Fraction) -> int:
    """Heuristic: affects speed only."""
    low, high = 0, GRID
    while high < LARGEST_FACTOR * GRID and gaussian_delta(mu * (GRID / high) ** 0.5, epsilon) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gaussian_delta(mu * (GRID / middle) ** 0.5, epsilon) <= delta else (middle, high)
    return high
