"""How much noise could have been saved: a factor on the noise variances that just meets a stated (epsilon, delta).

A factor c multiplies every noise variance: sigma2 of a Gaussian, the square of a Laplace scale. It is reported on a grid of
1/10000, on the safe side. Guarantee: at c the release satisfies (epsilon, delta), at one grid step less it does not, both by
certified bounds of delta over all pairs (Theorem 4; docs/theory/engine.md, section 9), unless that is outside the range of noise
and was not tried. That still smaller factors fail as well is not claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.census.pair_results import stated_side
from exactdp.census.releases import Allocation, Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import (
    GRID,
    LARGEST_FACTOR,
    MeetsAll,
    MeetsEpsilonDelta,
    MeetsMu,
    Target,
    epsilon_delta_target,
    least_on_grid,
    questions,
    refuse_if_rest_fails,
    side_of_all,
)
from exactdp.guarantees.gaussian_estimates import gaussian_delta
from exactdp.guarantees.neighbours import REPLACE
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_repr, shown, whole
from exactdp.numerals import DOWN, at_most, exact, percent


@steady
@dataclass(frozen=True)
class Saving:
    """A factor on the grid at which (epsilon, delta) holds, certified, while it fails or is out of range one step below."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    epsilon: Fraction
    delta: Fraction
    factor: Fraction

    @property
    def saved(self) -> Fraction:
        """The share of the noise variance that could be saved."""
        return 1 - self.factor

    def __str__(self) -> str:
        promise = f"({at_most(self.epsilon)}, {exact(self.delta)}) is all that is promised"
        return f"{percent(self.saved, DOWN)} of every noise variance could be saved if {promise} (factor {exact(self.factor)})"


@steady
def overall_saving(release: Release, epsilon: Number, delta: Number) -> Saving:
    """For the whole release, all pairs: the search uses the full path with itself, the proof uses all pairs."""
    wanted = epsilon_delta_target(epsilon, delta)
    guess = _gaussian_guess(release.proxy.mu, wanted)
    return Saving(wanted.epsilon, wanted.delta, _least_factor(release, wanted, None, GRID, guess))


@steady
def level_saving(release: Release, level: str, epsilon: Number, delta: Number) -> Saving:
    """For one geographic level of the full path, both paths of a pair, accounted on its own."""
    _check_level(release, level)
    part, wanted = level_pair(release, level), epsilon_delta_target(epsilon, delta)
    asked = questions(part.scaled, wanted.side)
    return Saving(wanted.epsilon, wanted.delta, least_on_grid(*asked, GRID, _gaussian_guess(part.mu, wanted)))


def level_pair(release: Release, level: str) -> Composition:
    """The mechanisms of one level of the full path: twice, or once where neighbours have one record more or less."""
    return _part(release, [level])


def _part(release: Release, levels: Iterable[str]) -> Composition:
    """Some levels of the full path, or, where no record takes that, of the path that bypasses the fewest."""
    taken = release.allocations[release.full_path].table
    chosen = {level: taken.get(level, release.table[level]) for level in levels}
    path = Composition(Allocation(release.full_path, (), chosen, release.noise).mechanisms)
    return path * (2 if release.relation == REPLACE else 1)


def calibrate_release(
    release: Release, wanted: Target, level: str | None = None, grid: int = GRID
) -> tuple[Fraction, Release]:
    """The least factor m / grid on all noise variances of a design, or on those of one level, and the design with it.

    Over all pairs: the full path with itself decides first, all pairs prove. One step less is proved not to meet the target
    where `is_in_range`.
    """
    if level is not None:
        _check_level(release, level)
        path = release.allocations[release.full_path]
        others = [name for name in path.table if name != level]
        if others and level in path.table:  # where it is bypassed, its budget moves and the rest is not the same
            refuse_if_rest_fails(wanted, _part(release, others), "the other levels")
    factor = _least_factor(release, wanted, level, grid)
    return factor, release.scaled(factor, level)


def is_in_range(release: Release, factor: Fraction, level: str | None = None) -> bool:
    """Whether the design with its noise times the factor is one that is allowed."""
    try:
        release.scaled(factor, level)
    except InvalidInputError:
        return False
    return True


def design_side(wanted: Target, design: Release) -> int:
    """-1 where every pair of a design is proved to meet the target, 1 where one is proved not to, 0 where neither is proved.

    The proxy, which is one of the pairs, comes first because it is asked faster. mu is asked of every pair: a study has no
    proof of it over all epsilons.
    """
    if isinstance(wanted, MeetsAll):
        return side_of_all(design_side(part, design) for part in wanted.targets)
    return side_of_all(_sides(wanted, design))


def _sides(wanted: Target, design: Release) -> Iterator[int]:
    yield wanted.side(design.proxy)
    if isinstance(wanted, MeetsMu):
        yield from map(wanted.side, design.compositions)
    elif isinstance(wanted, MeetsEpsilonDelta):
        yield stated_side(design, wanted.epsilon, wanted.delta)
    else:
        yield wanted.side(design.account())


def _check_level(release: Release, level: str) -> None:
    if level not in release.table:
        raise InvalidInputError(f"A level of this design is one of {', '.join(release.table)}. Found {shown(level)}.")


def _least_factor(release: Release, wanted: Target, level: str | None, grid: int, guess: int | None = None) -> Fraction:
    asked = questions(partial(release.scaled, level=level), partial(design_side, wanted))
    return least_on_grid(*asked, whole(grid, "grid", 1), guess)


def _gaussian_guess(mu: float, wanted: MeetsEpsilonDelta) -> int:
    """Heuristic: affects speed only."""
    epsilon, delta = wanted.epsilon, wanted.delta
    low, high = 0, GRID
    while high < LARGEST_FACTOR * GRID and gaussian_delta(mu * (GRID / high) ** 0.5, epsilon) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gaussian_delta(mu * (GRID / middle) ** 0.5, epsilon) <= delta else (middle, high)
    return high
