"""How much noise could have been saved: a factor on the noise variances that just meets a stated (epsilon, delta).

A factor c multiplies every noise parameter sigma2. It is reported on a grid of 1/10000, on the safe side. Guarantee: at c the
release satisfies (epsilon, delta), at one grid step less it does not, both by certified bounds of delta over all pairs
(Theorem 4; docs/theory/engine.md, section 9). That still smaller factors fail as well is not claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from exactdp.accounting.composition import Composition
from exactdp.census.pair_results import make_overall
from exactdp.census.releases import Allocation, Release
from exactdp.census.study import Study
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import GRID, LARGEST_FACTOR, MeetsEpsilonDelta, Target, least_on_grid, questions
from exactdp.guarantees.gaussian_estimates import gaussian_delta
from exactdp.notebooks import repr_html
from exactdp.numbers import shown


@dataclass(frozen=True)
class Saving:
    """A factor on the grid at which (epsilon, delta) holds while it fails one step below, both certified."""

    _repr_html_ = repr_html

    epsilon: Fraction
    delta: Fraction
    factor: Fraction

    @property
    def saved(self) -> Fraction:
        """The share of the noise variance that could be saved."""
        return 1 - self.factor


def overall_saving(release: Release, epsilon: Fraction, delta: Fraction) -> Saving:
    """For the whole release, all pairs: the search uses the full path with itself, the proof uses all pairs."""
    proxy, wanted = release.proxy, MeetsEpsilonDelta(epsilon, delta)

    def holds(both: tuple[Composition, Release]) -> bool:
        return wanted.holds(both[0]) and make_overall(both[1]).delta(epsilon)[1] <= delta

    def fails(both: tuple[Composition, Release]) -> bool:
        return wanted.fails(both[0]) or make_overall(both[1]).delta(epsilon)[0] > delta

    asked = questions(lambda factor: (proxy.scaled(factor), release.scaled(factor)), holds, fails)
    return Saving(epsilon, delta, least_on_grid(*asked, GRID, _gaussian_guess(proxy.mu, epsilon, delta)))


def level_saving(release: Release, level: str, epsilon: Fraction, delta: Fraction) -> Saving:
    """For one geographic level of the full path, both paths of a pair, accounted on its own."""
    part, wanted = level_pair(release, level), MeetsEpsilonDelta(epsilon, delta)
    guess = _gaussian_guess(part.mu, epsilon, delta)
    return Saving(epsilon, delta, least_on_grid(*questions(part.scaled, wanted.holds, wanted.fails), GRID, guess))


def level_pair(release: Release, level: str) -> Composition:
    """The mechanisms of one level of the full path, twice."""
    return 2 * Composition(Allocation(release.full_path, (), {level: release.table[level]}).mechanisms)


def calibrate_release(
    release: Release, wanted: Target, level: str | None = None, grid: int = GRID
) -> tuple[Fraction, Release]:
    """The least factor m / grid on all noise variances of a design, or on those of one level, and the design with it.

    Over all pairs: the full path with itself decides first, all pairs prove. One step less is proved not to meet the target.
    """
    if level is not None and level not in release.table:
        raise InvalidInputError(f"A level of this design is one of {', '.join(release.table)}. Found {shown(level)}.")

    def at(factor: Fraction) -> tuple[Composition, Study]:
        design = release.scaled(factor, level)
        return design.proxy, design.account()

    asked = questions(at, lambda both: all(map(wanted.holds, both)), lambda both: any(map(wanted.fails, both)))
    factor = least_on_grid(*asked, grid)
    return factor, release.scaled(factor, level)


def _gaussian_guess(mu: float, epsilon: Fraction, delta: Fraction) -> int:
    """Heuristic: affects speed only."""
    low, high = 0, GRID
    while high < LARGEST_FACTOR * GRID and gaussian_delta(mu * (GRID / high) ** 0.5, epsilon) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gaussian_delta(mu * (GRID / middle) ** 0.5, epsilon) <= delta else (middle, high)
    return high
