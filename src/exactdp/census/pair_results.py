"""Certified bounds of every pair of a release on grids, in float64 or in balls, in parts on any workers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, overload

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.composition import Composition
from exactdp.accounting.epsilon_search import gaussian_start
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.pairs import Pairs, PairsOnOwnLattices
from exactdp.accounting.planner import SIEVED_STEPS
from exactdp.accounting.separate_pairs import Question, SeparatePairs
from exactdp.accounting.shared_pairs import FEW, SharedPairs
from exactdp.arithmetic_state import steady
from exactdp.brackets import Point
from exactdp.census.cell_noise import DISCRETE_GAUSSIAN
from exactdp.census.grids import Grids
from exactdp.census.overall import Overall, QuickOverall, SeparateOverall, sides
from exactdp.census.releases import Release
from exactdp.census.runners import Runner
from exactdp.doubles import Floats
from exactdp.engine.family.contours import Family
from exactdp.engine.family.line_contours import ROUGH, LineFamily
from exactdp.engine.lattice.lattice import Group
from exactdp.errors import AccuracyError
from exactdp.guarantees.neighbours import REPLACE
from exactdp.numbers import log_rational

Interval = tuple[float, float] | tuple[Decimal, Decimal]

_CHUNK = 24  # pairs for each task where each is asked by itself in float64
_WEIGHTS = {"beta": 1 / 4, "epsilon": 1 / 6, "delta": 1 / 30}
"""About how long an argument of each kind takes beside those of the others."""
_NARROW = 1e-4  # of log delta: what rough contours are good for
_LONG = 300  # parts times paths, for each of which nodes are searched: some seconds
_QUESTIONS = 1 << 15  # for each part where contours are shared and finished parts are kept on disk
_QUESTIONS_AT_ONCE = 1 << 19  # held in memory


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
        if family is not None and family.can_share and (len(family.pairs) > FEW or not _is_fine(family)):
            return Overall(Pairs(family))
        own = PairsOnOwnLattices(family) if family is not None and len(family.pairs) <= FEW else None
        if own is not None and own.are_coarse:
            return Overall(own)
        if (len(release.pairs) > FEW or _is_gaussian(release)) and (line := _line_family(release)).can_share:
            return Overall(LinePairs(line))
        if own is not None and own.can_answer:
            return Overall(own)
    return SeparateOverall(SeparatePairs(tuple(release.pair(*pair).mechanisms for pair in release.pairs)))


def _is_fine(family: Family) -> bool:
    """Whether the lattice is so fine that coarse noise may keep most of its nodes. Heuristic: affects speed and accuracy only."""
    return any(math.sqrt(lattice.r) > SIEVED_STEPS * lattice.h for lattice in family.typical)


def stated_side(release: Release, epsilon: Fraction, delta: Fraction) -> int:
    """Whether a release satisfies (epsilon, delta): -1 if every pair is proved to, 1 if one is proved not to, 0 if neither.

    Contours that take little time and leave bounds 1e-4 or 1e-6 wide decide nearly always, else the engine of the release.
    """
    line = LinePairs(_line_family(release))
    for widths in ROUGH if line.count > FEW and line.family.can_share else ():
        found = int(sides(next(line.screen([epsilon], widths)), delta).max())
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
    if release.relation != REPLACE or not _is_gaussian(release):
        return None
    paths = [Composition(path) for _, path in sorted(release.mechanisms.items())]
    return Family(tuple(Group.of_each(path.discrete_gaussians) for path in paths))


def _is_gaussian(release: Release) -> bool:
    return all(noise.kind == DISCRETE_GAUSSIAN for noise in release.noise.values())


def _line_family(release: Release) -> LineFamily:
    """The paths as members of a family on the line, each pair of neighbours with the places of its paths."""
    numbers = tuple(sorted(release.mechanisms))
    return LineFamily(tuple(release.mechanisms[n] for n in numbers), _places(numbers, release.pairs))


@lru_cache(maxsize=4)
def _places(numbers: tuple[int, ...], pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...]:
    """For each pair of neighbours the places of its paths among these."""
    place = {number: i for i, number in enumerate(numbers)}
    return tuple(tuple(place[n] for n in pair if n in place) for pair in pairs)


overall_of = lru_cache(maxsize=2)(make_overall)
"""`make_overall`, kept for the next question about the same release."""


@lru_cache(maxsize=2)
def quick_overall_of(release: Release) -> Overall:
    """The engine for someone who waits for a few numbers and curves of a release: where its pairs are many and share no coarse
    lattice, rough contours on the line and finer ones for the worst pairs, else `overall_of`."""
    if len(release.pairs) > FEW:
        lattice = _lattice_family(release)
        if lattice is None or not lattice.can_share or _is_fine(lattice):
            line = _line_family(release)
            if line.can_share:
                return QuickOverall(LinePairs(line))
    return overall_of(release)


def shares_lattice(release: Release) -> bool:
    """Whether all pairs share a lattice, on which balls tell the worst of them apart."""
    family = _lattice_family(release)
    return len(release.pairs) > 1 and family is not None and family.can_share


@dataclass(frozen=True, eq=False, repr=False)
class PairTable(Sequence[PairResult]):
    """The results of pairs as arrays, which workers send home and a study keeps in a fraction of the time of as many Python
    numbers; each result is made when one is first asked for."""

    pairs: tuple[tuple[int, int], ...]
    bounds: dict[str, tuple[Any, Any]]
    """Lower and upper ends by quantity, one row for each pair."""

    @classmethod
    def of(cls, results: Collection[PairResult], grids: Grids) -> PairTable:
        """Results that came pair by pair."""
        kind = float if grids.digits is None else object
        bounds = {
            name: np.array([getattr(r, name) for r in results], dtype=kind).reshape(len(results), len(grid), 2)
            for name, grid in grids.by_quantity.items()
        }
        return cls(tuple(r.pair for r in results), {n: (both[:, :, 0], both[:, :, 1]) for n, both in bounds.items()})

    @cached_property
    def _results(self) -> tuple[PairResult, ...]:
        columns = [
            [tuple(zip(low, high, strict=True)) for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]
            for lower, upper in self.bounds.values()
        ]
        return tuple(PairResult(pair, *each) for pair, *each in zip(self.pairs, *columns, strict=True))

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, index: int) -> PairResult: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[PairResult, ...]: ...

    def __getitem__(self, index: int | slice) -> PairResult | tuple[PairResult, ...]:
        return self._results[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._results == tuple(other)

    def __hash__(self) -> int:
        return hash(self._results)

    def __repr__(self) -> str:
        return repr(self._results)

    def as_json(self) -> Iterator[str]:
        """Each result for the journal: of doubles the bytes, lower and upper ends in turn, as hexadecimal digits; decimals as
        texts."""
        ends = {name: np.stack(both, axis=2) for name, both in self.bounds.items()}
        for i, pair in enumerate(self.pairs):
            own = {
                name: rows[i].astype("<f8").tobytes().hex() if rows.dtype == float else rows[i].astype(str).tolist()
                for name, rows in ends.items()
            }
            yield json.dumps({"pair": pair, **own})

    def sound(self, grids: Grids) -> PairTable:
        """The table, if `sound` lets each of its results pass."""
        if not all(self._are_sound(name, len(grid)) for name, grid in grids.by_quantity.items()):
            for result in self:
                sound(result, grids)
        return self

    def _are_sound(self, name: str, size: int) -> bool:
        """Whether doubles are bounds; what is no double is looked at one by one."""
        low, high = self.bounds[name]
        shape = len(self.pairs), size
        if not (low.dtype == high.dtype == float and low.shape == high.shape == shape):
            return False
        inside = (low != math.inf) & (high != -math.inf) if name == "epsilon" else (low >= 0) & (high <= 1)
        return bool(((low <= high) & inside).all())


@steady
def account_pairs(release: Release, pairs: list[tuple[int, int]], grids: Grids) -> list[PairResult]:
    """The given pairs on the grids. A pair's result does not depend on which others are asked for."""
    return list(_table(release, pairs, grids))


@steady
def _table(release: Release, pairs: list[tuple[int, int]], grids: Grids) -> PairTable:
    if grids.digits is not None:
        return _in_balls(release, pairs, grids, grids.digits)
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
    bounds = {}
    for name, grid in grids.by_quantity.items():
        lower, upper = ask[name](grid) if grid and pairs else (np.empty(0), np.empty(0))
        shape = len(pairs), len(grid)
        bounds[name] = lower.reshape(shape), upper.reshape(shape)
    return PairTable(tuple(pairs), bounds)


def _floats(bracket: Any) -> tuple[Floats, Floats]:
    return bracket.lower_floats(), np.minimum(bracket.upper_floats(), 1.0)


def _in_balls(release: Release, pairs: list[tuple[int, int]], grids: Grids, digits: int) -> PairTable:
    results = []
    for pair in pairs:
        composition = release.pair(*pair)
        ask = (composition.delta_bounds, composition.epsilon_bounds, composition.beta_bounds)
        each = [
            tuple(zip(*function(list(grid), digits), strict=True)) if grid else ()
            for function, grid in zip(ask, grids.by_quantity.values(), strict=True)
        ]
        results.append(PairResult(pair, *each))
    return PairTable.of(results, grids)


@dataclass(frozen=True)
class StudyPart:
    """A part of the work: some pairs on a slice of the grids."""

    grids: Grids
    pairs: tuple[tuple[int, int], ...]


def slices(release: Release, grids: Grids) -> list[Grids]:
    """The grids in slices, each of which is a question of its own; the same for every number of workers.

    Where all pairs share contours, a slice has the arguments of all kinds that ask contours that are planned together, and pairs
    are not divided: so nothing is planned twice. Elsewhere pairs are. The largest slice comes first.
    """
    if grids.digits is not None or not grids.size or not _shares(release):
        return [grids]
    engine = overall_of(release).pairs
    assert isinstance(engine, SharedPairs)
    found: dict[tuple[str, int], dict[str, list[Fraction]]] = {}
    for name, grid in grids.by_quantity.items():
        for x in grid:
            region = engine.region(Fraction(_asked_at(name, x, engine.spread)))
            found.setdefault(region, {kind: [] for kind in grids.by_quantity})[name].append(x)
    of_size = sorted(found.values(), key=lambda one: -sum(len(xs) * _WEIGHTS[name] for name, xs in one.items()))
    return [Grids(tuple(one["delta"]), tuple(one["epsilon"]), tuple(one["beta"])) for one in of_size]


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
    elif runner.in_small_parts:
        size = _QUESTIONS // grids.size if _shares(release) else _CHUNK
    else:
        size = len(pairs) if runner.is_serial or _shares(release) else _CHUNK
    size = max(size, 1)
    return [StudyPart(grids, tuple(pairs[i : i + size])) for i in range(0, len(pairs), size)]


def _shares(release: Release) -> bool:
    engine = overall_of(release).pairs
    return isinstance(engine, SharedPairs) and engine.shares


def run(release: Release, work: Sequence[tuple[int, StudyPart]], runner: Runner) -> Iterator[tuple[int, PairTable]]:
    """The results of parts, each with its number, as they are ready."""
    is_long = len(work) * len(release.bypassed) >= _LONG
    for number, tables in runner.map(partial(_account, release), work, is_long=is_long):
        for table in tables:
            yield number, table


def _account(release: Release, numbered: tuple[int, StudyPart]) -> tuple[int, list[PairTable]]:
    number, part = numbered
    size = max(1, _QUESTIONS_AT_ONCE // max(part.grids.size, 1))
    each = (part.pairs[i : i + size] for i in range(0, len(part.pairs), size))
    return number, [_table(release, list(pairs), part.grids) for pairs in each]


def joined(release: Release, grids: Grids, asked: Sequence[Grids], found: Sequence[Sequence[PairTable]]) -> PairTable:
    """The tables of all slices put together, in the order of pairs and grids."""
    rows = [_rows(release, tables) for tables in found]
    bounds = {}
    for name, grid in grids.by_quantity.items():
        place = {x: i for i, x in enumerate(x for one in asked for x in one.by_quantity[name])}
        order = [place[x] for x in grid]
        below = ([np.vstack([t.bounds[name][end] for t in tables]) for tables in found] for end in (0, 1))
        lower, upper = (np.hstack([one[row] for one, row in zip(b, rows, strict=True)])[:, order] for b in below)
        bounds[name] = lower, upper
    return PairTable(release.pairs, bounds)


def _rows(release: Release, tables: Sequence[PairTable]) -> list[int]:
    """In which row of tables below each other each pair of a release is."""
    place = {pair: i for i, pair in enumerate(pair for table in tables for pair in table.pairs)}
    return [place[pair] for pair in release.pairs]
