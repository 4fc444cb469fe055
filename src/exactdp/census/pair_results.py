"""Certified bounds of every pair of a release on grids, in float64 or in balls, in parts on any workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.composition import Composition
from exactdp.accounting.epsilon_search import gaussian_start
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.pairs import Pairs, PairsOnOwnLattices
from exactdp.accounting.separate_pairs import Question, SeparatePairs
from exactdp.accounting.shared_pairs import SharedPairs
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds, Point
from exactdp.census.cell_noise import DISCRETE_GAUSSIAN
from exactdp.census.grids import Grids
from exactdp.census.overall import Overall, SeparateOverall, sides
from exactdp.census.releases import Release
from exactdp.census.workers import Runner
from exactdp.doubles import Floats
from exactdp.engine.family.contours import Family
from exactdp.engine.family.line_contours import ROUGH, LineFamily
from exactdp.engine.lattice.lattice import Group
from exactdp.errors import AccuracyError
from exactdp.guarantees.neighbours import REPLACE
from exactdp.numbers import log_rational

Interval = tuple[float, float] | tuple[Decimal, Decimal]

_FEW = 12  # pairs that are asked one by one without a second thought
_CHUNK = 24  # pairs for each task where each is asked by itself in float64
_SLICES = {"beta": 4, "epsilon": 6, "delta": 30}
"""Arguments of each kind that take about as long as those of the others: as many are asked together."""
_NARROW = 1e-4  # of log delta: what rough contours are good for
_MOST_SLICES = 8  # each may plan its contours anew
_QUESTIONS = 1 << 15  # for each task where contours are shared, in one process
_QUESTIONS_OF_A_WORKER = 1 << 19  # for each task of several processes: each plans the contours of what it is asked anew


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
    """The engine behind a release: contours that all pairs share, on a lattice or on the line; answers pair by pair otherwise."""
    if len(release.pairs) > 1:
        family = _lattice_family(release)
        if family is not None and family.can_share:
            return Overall(Pairs(family))
        if family is not None and len(family.pairs) <= _FEW and (own := PairsOnOwnLattices(family)).can_answer:
            return Overall(own)
        if len(release.pairs) > _FEW and (line := _line_family(release)).can_share:
            return Overall(LinePairs(line))
    return SeparateOverall(SeparatePairs(tuple(release.pair(*pair).mechanisms for pair in release.pairs)))


def stated_side(release: Release, epsilon: Fraction, delta: Fraction) -> int:
    """Whether a release satisfies (epsilon, delta): -1 if every pair is proved to, 1 if one is proved not to, 0 if neither.

    Contours that take little time and leave bounds 1e-4 or 1e-6 wide decide nearly always, else the engine of the release.
    """
    line = _line_family(release)
    for widths in ROUGH if len(release.pairs) > _FEW and line.can_share else ():
        found = int(sides(next(LinePairs(line).screen([epsilon], widths)), delta).max())
        if found:
            return found
    return make_overall(release).side(epsilon, delta)


def rough_points(release: Release, epsilons: Sequence[Fraction]) -> list[Point]:
    """Certified delta of every pair at each epsilon, about 1e-6 wide: on rough contours, or, where these are wide for the worst
    pair, by the engine of the release."""
    line = _line_family(release)
    found = list(LinePairs(line).screen(epsilons)) if line.can_share else [None] * len(epsilons)
    return [
        point if point is not None and _is_narrow(point) else overall_of(release).point(epsilon)
        for epsilon, point in zip(epsilons, found, strict=True)
    ]


def _is_narrow(point: Point) -> bool:
    low, high = point.delta.log_lower().max(), point.delta.log_upper().max()
    return bool(high - low <= _NARROW)


def _lattice_family(release: Release) -> Family | None:
    """The paths as members of a family on a lattice, if all noise is discrete Gaussian and pairs are pairs of them."""
    if release.relation != REPLACE or any(noise.kind != DISCRETE_GAUSSIAN for noise in release.noise.values()):
        return None
    paths = [Composition(allocation.mechanisms) for _, allocation in sorted(release.allocations.items())]
    return Family(tuple(Group.of_each(path.discrete_gaussians) for path in paths))


def _line_family(release: Release) -> LineFamily:
    """The paths as members of a family on the line, each pair of neighbours with the places of its paths."""
    place = {number: i for i, number in enumerate(sorted(release.allocations))}
    members = tuple(release.allocations[number].mechanisms for number in place)
    return LineFamily(members, tuple(tuple(place[n] for n in pair if n in place) for pair in release.pairs))


overall_of = lru_cache(maxsize=2)(make_overall)
"""`make_overall`, kept for the next question about the same release."""


@steady
def account_pairs(release: Release, pairs: list[tuple[int, int]], grids: Grids) -> list[PairResult]:
    """The given pairs on the grids. A pair's result does not depend on which others are asked for."""
    if grids.digits is not None:
        return [_in_balls(release.pair(*pair), pair, grids, grids.digits) for pair in pairs]
    engine = overall_of(release).pairs
    place = {pair: i for i, pair in enumerate(release.pairs)}
    numbers = [place[pair] for pair in pairs]

    def questions(grid: Sequence[Fraction]) -> list[Question]:
        return [Question(number, x) for number in numbers for x in grid]

    ask: dict[str, Callable[[Sequence[Fraction]], tuple[Floats, Floats]]] = {
        "delta": lambda grid: _floats(engine.table(numbers, list(grid)).delta),
        "epsilon": lambda grid: engine.epsilons(questions(grid)),
        "beta": lambda grid: engine.betas(questions(grid)),
    }
    columns: dict[str, list[tuple[Interval, ...]]] = {}
    for name, grid in grids.by_quantity.items():
        lower, upper = ask[name](grid) if grid and pairs else (np.empty(0), np.empty(0))
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


@dataclass(frozen=True)
class StudyPart:
    """A part of the work: some pairs on a slice of the grids."""

    grids: Grids
    pairs: tuple[tuple[int, int], ...]


def slices(release: Release, grids: Grids) -> list[Grids]:
    """The grids in slices, each of which is a question of its own; the same for every number of workers.

    Where all pairs share contours, arguments of all kinds that ask at about the same epsilon share them, and pairs should not be
    divided; elsewhere pairs are. Slices end where contours do, and come from both ends in turn, so that two workers hardly plan
    the same contours.
    """
    if grids.digits is not None or not grids.size or not _shares(release):
        return [grids]
    order = sorted(
        (_asked_at(name, x, overall_of(release).pairs.spread), name, i)
        for name, grid in grids.by_quantity.items()
        for i, x in enumerate(grid)
    )
    each = np.array([1 / _SLICES[name] for _, name, _ in order])
    count = min(math.ceil(each.sum()), _MOST_SLICES)
    number = ((np.cumsum(each) - each / 2) * count / each.sum()).astype(np.int64).tolist()
    engine = overall_of(release).pairs
    assert isinstance(engine, SharedPairs)
    regions = [engine.region(Fraction(at)) for at, _, _ in order]
    first_of = {region: n for n, region in reversed(list(zip(number, regions, strict=True)))}
    number = [first_of[region] for region in regions]  # what is planned together is asked of one worker
    found = []
    for one in sorted(set(number)):
        mine = sorted((name, i) for (_, name, i), n in zip(order, number, strict=True) if n == one)
        one_of = {name: tuple(grid[i] for kind, i in mine if kind == name) for name, grid in grids.by_quantity.items()}
        found.append(Grids(one_of["delta"], one_of["epsilon"], one_of["beta"]))
    half = (len(found) + 1) // 2
    return [one for both in zip_longest(found[:half], found[: half - 1 : -1]) for one in both if one is not None]


def _asked_at(name: str, argument: Fraction, spread: float) -> float:
    """About the epsilon at which contours are asked for an argument. Heuristic: affects speed only."""
    if name == "delta":
        return abs(float(argument))
    if name == "epsilon":
        return gaussian_start(spread, min(argument, Fraction(1, 2)))
    return abs(float(ndtri_exp(log_rational(argument))) * math.sqrt(spread) + spread / 2)


def parts(release: Release, grids: Grids, pairs: Sequence[tuple[int, int]], runner: Runner) -> list[StudyPart]:
    """The work on one slice, in parts: a pair's result does not depend on them."""
    if grids.digits is not None:
        size = 1
    elif runner.is_serial and not runner.in_small_parts:
        size = len(pairs)
    else:
        most = _QUESTIONS if runner.is_serial else _QUESTIONS_OF_A_WORKER
        size = most // grids.size if _shares(release) else _CHUNK
    size = max(size, 1)
    return [StudyPart(grids, tuple(pairs[i : i + size])) for i in range(0, len(pairs), size)]


def _shares(release: Release) -> bool:
    engine = overall_of(release).pairs
    return isinstance(engine, SharedPairs) and engine.shares


def run(
    release: Release, work: Sequence[tuple[int, StudyPart]], runner: Runner
) -> Iterator[tuple[int, list[PairResult]]]:
    """The results of parts, each with its number, as they are ready."""
    return runner.map(partial(_account, release), work)


def _account(release: Release, numbered: tuple[int, StudyPart]) -> tuple[int, list[PairResult]]:
    number, part = numbered
    return number, account_pairs(release, list(part.pairs), part.grids)


def joined(
    release: Release, grids: Grids, asked: Sequence[Grids], found: Sequence[Mapping[tuple[int, int], PairResult]]
) -> tuple[PairResult, ...]:
    """The results of all slices put together, in the order of pairs and grids."""
    if len(found) == 1:
        return tuple(found[0][pair] for pair in release.pairs)
    where: dict[str, list[tuple[int, int]]] = {}
    for name, grid in grids.by_quantity.items():
        place = {x: (n, i) for n, one in enumerate(asked) for i, x in enumerate(one.by_quantity[name])}
        where[name] = [place[x] for x in grid]
    return tuple(
        PairResult(pair, *(tuple(getattr(found[n][pair], name)[i] for n, i in where[name]) for name in where))
        for pair in release.pairs
    )
