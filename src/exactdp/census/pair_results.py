"""Certified bounds of every pair of a release on grids, in float64 or in balls, in parts on any workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.accounting.pairs import Pairs
from exactdp.accounting.separate_pairs import HELD, Question, SeparatePairs
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.cell_noise import DISCRETE_GAUSSIAN
from exactdp.census.grids import Grids
from exactdp.census.overall import Overall, SeparateOverall
from exactdp.census.releases import Release
from exactdp.census.screening import ScreenedOverall
from exactdp.census.workers import Runner
from exactdp.doubles import Floats
from exactdp.engine.family.contours import Family
from exactdp.engine.lattice.lattice import Group
from exactdp.errors import AccuracyError
from exactdp.guarantees.neighbours import REPLACE

Interval = tuple[float, float] | tuple[Decimal, Decimal]

_FEW = 12  # pairs that are asked one by one without a second thought
_CHUNK = 24  # pairs for each task where float64 does the work


@steady
@dataclass(frozen=True)
class PairResult:
    """Certified bounds of one pair on the grids."""

    pair: tuple[int, int]
    delta: tuple[Interval, ...]
    epsilon: tuple[Interval, ...]
    beta: tuple[Interval, ...]


def sound(result: PairResult, grids: Grids) -> PairResult:
    """The result, if its bounds are bounds; a value that no computation may leave behind is refused, whoever brings it.

    delta and beta are probabilities. epsilon is finite for 0 < delta < 1, so an infinity can only be a bound that says
    nothing: below if it is the lower end, above if it is the upper.
    """
    for name, grid in grids.by_quantity.items():
        bounds = getattr(result, name)
        for low, high in bounds:  # written so that NaN fails
            inside = low != math.inf and high != -math.inf if name == "epsilon" else low >= 0 and high <= 1
            if not (low <= high and inside):
                raise AccuracyError(
                    f"Pair {result.pair} came with a {name} between {low} and {high}, which is no bound."
                )
        if len(bounds) != len(grid):
            raise AccuracyError(
                f"Pair {result.pair} came with {len(bounds)} bounds of {name} where {len(grid)} were asked."
            )
    return result


def make_overall(release: Release) -> Overall:
    """The engine behind a release: contours that all pairs share where they can be, answers pair by pair otherwise."""
    family = _family(release)
    if family is None:
        return SeparateOverall(SeparatePairs(tuple(release.pair(*pair).mechanisms for pair in release.pairs)))
    is_slow = not family.can_share and len(family.pairs) > _FEW
    return (ScreenedOverall if is_slow else Overall)(Pairs(family))


def _family(release: Release) -> Family | None:
    """The paths as members of a family, if all noise is discrete Gaussian and pairs are pairs of them.

    Sensitivities can give the paths different spreads: then there is nothing to share, and the screen is for many pairs only.
    """
    if release.relation != REPLACE or any(noise.kind != DISCRETE_GAUSSIAN for noise in release.noise.values()):
        return None
    paths = [Composition(allocation.mechanisms) for _, allocation in sorted(release.allocations.items())]
    family = Family(tuple(Group.of_each(path.discrete_gaussians) for path in paths))
    if release.noise and len(family.pairs) <= HELD and len({lattice.spread for lattice in family.own}) > 1:
        return None
    return family


overall_of = lru_cache(maxsize=2)(make_overall)
"""`make_overall`, kept for the next question about the same release."""


@steady
def account_pairs(release: Release, pairs: list[tuple[int, int]], grids: Grids) -> list[PairResult]:
    """The given pairs on the grids. A pair's result does not depend on which others are asked for."""
    if grids.digits is not None:
        return [_in_balls(release.pair(*pair), pair, grids, grids.digits) for pair in pairs]
    engine = overall_of(release).pairs
    place = {pair: i for i, pair in enumerate(release.pairs)}
    ask: dict[str, Callable[[list[Question]], tuple[Floats, Floats]]] = {
        "delta": lambda questions: _floats(engine.profile(questions).delta),
        "epsilon": engine.epsilons,
        "beta": engine.betas,
    }
    columns: dict[str, list[tuple[Interval, ...]]] = {}
    for name, grid in grids.by_quantity.items():
        questions = [Question(place[pair], x) for pair in pairs for x in grid]
        lower, upper = ask[name](questions) if questions else (np.empty(0), np.empty(0))
        both: list[Interval] = list(zip(lower.tolist(), upper.tolist(), strict=True))
        columns[name] = [tuple(both[i * len(grid) : (i + 1) * len(grid)]) for i in range(len(pairs))]
    return [PairResult(pair, *(columns[name][i] for name in columns)) for i, pair in enumerate(pairs)]


def _floats(bracket: Any) -> tuple[Floats, Floats]:
    return bracket.lower_floats(), np.minimum(bracket.upper_floats(), 1.0)


def _in_balls(composition: Composition, pair: tuple[int, int], grids: Grids, digits: int) -> PairResult:
    ask = (composition.delta_bounds, composition.epsilon_bounds, composition.beta_bounds)
    columns = []
    for function, grid in zip(ask, grids.by_quantity.values(), strict=True):
        bounds = function(list(grid), digits) if grid else Bounds([], [])
        columns.append(tuple(zip(bounds.lower, bounds.upper, strict=True)))
    return PairResult(pair, *columns)


def run(release: Release, grids: Grids, runner: Runner, pairs: Iterable[tuple[int, int]]) -> Iterator[list[PairResult]]:
    """The results of the pairs, in parts, as they are ready."""
    todo = list(pairs)
    size = 1 if grids.digits is not None else len(todo) if runner.is_serial and not runner.in_small_parts else _CHUNK
    parts = [todo[i : i + max(size, 1)] for i in range(0, len(todo), max(size, 1))]
    return runner.map(partial(account_pairs, release, grids=grids), parts)
