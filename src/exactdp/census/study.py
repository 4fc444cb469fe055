"""A study: every pair of a release on the given grids, and the overall guarantee for any argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.accounting.pairs import Pairs, Question
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.brackets import Bounds
from exactdp.census.overall import Overall
from exactdp.census.releases import Release
from exactdp.census.screening import ScreenedOverall
from exactdp.census.workers import Runner, make_runner
from exactdp.doubles import Floats
from exactdp.elementwise import each
from exactdp.engine.family.contours import Family
from exactdp.engine.lattice.lattice import Group
from exactdp.errors import AccuracyError, InvalidInputError, LatticeTooFineError
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, read_alpha, read_delta, read_epsilon, shown, whole

Interval = tuple[float, float] | tuple[Decimal, Decimal]

_TIE_DIGITS = (20, 40, 80)
_TELL_APART = 32  # different compositions that a summary tells apart by balls; beyond, it reports the tie
_FEW = 12  # pairs that are asked one by one without a second thought
_CHUNK = 24  # pairs for each task where float64 does the work


@dataclass(frozen=True)
class Grids:
    """What is asked of every pair: delta at these epsilons, epsilon at these deltas, beta at these alphas."""

    epsilons: tuple[Fraction, ...] = ()
    deltas: tuple[Fraction, ...] = ()
    alphas: tuple[Fraction, ...] = ()
    digits: int | None = None
    """Decimal digits in balls; None for float64."""

    @classmethod
    def read(
        cls,
        epsilons: Iterable[Number] | None = None,
        deltas: Iterable[Number] | None = None,
        alphas: Iterable[Number] | None = None,
        digits: int | None = None,
    ) -> Grids:
        """Grids as a user gives them, checked."""
        return cls(
            tuple(_finite(e) for e in _listed(epsilons, "epsilons")),
            tuple(_inside(read_delta(d), d, "delta") for d in _listed(deltas, "deltas")),
            tuple(_inside(read_alpha(a), a, "alpha") for a in _listed(alphas, "alphas")),
            None if digits is None else whole(digits, "digits", 5, 1000),
        )

    @property
    def by_quantity(self) -> dict[str, tuple[Fraction, ...]]:
        """The grids by the name of what is computed on them."""
        return {"delta": self.epsilons, "epsilon": self.deltas, "beta": self.alphas}


def _listed(values: Iterable[Number] | None, name: str) -> list[Number]:
    if isinstance(values, (str, bytes)) or not (values is None or isinstance(values, Iterable)):
        raise InvalidInputError(f"{name} takes a list of numbers. Found {shown(values)}.")
    return [] if values is None else list(values)


def _finite(value: Number) -> Fraction:
    result = read_epsilon(value)
    if isinstance(result, float):
        raise InvalidInputError(f"A grid of epsilons takes finite numbers. Found {value}.")
    return result


def _inside(result: Fraction, value: Number, name: str) -> Fraction:
    if not 0 < result < 1:
        raise InvalidInputError(f"A grid of {name}s takes numbers between 0 and 1. Found {shown(value)}.")
    return result


@dataclass(frozen=True)
class PairResult:
    """Certified bounds of one pair on the grids."""

    pair: tuple[int, int]
    delta: tuple[Interval, ...]
    epsilon: tuple[Interval, ...]
    beta: tuple[Interval, ...]


def make_overall(release: Release) -> Overall:
    """The engine behind a release."""
    members = []
    for _, allocation in sorted(release.allocations.items()):
        composition = Composition(allocation.mechanisms)
        members.append(tuple(Group(m.sigma2, m.sensitivity, n) for m, n in composition.discrete_gaussians.items()))
    family = Family(tuple(members))
    is_slow = not family.can_share and len(family.pairs) > _FEW
    return (ScreenedOverall if is_slow else Overall)(Pairs(family))


overall_of = lru_cache(maxsize=2)(make_overall)
"""`make_overall`, kept for the next question about the same release."""


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


def make_study(release: Release, grids: Grids, jobs: int = 1) -> Study:
    """All pairs of a release on the grids."""
    with make_runner(jobs) as runner:
        found = {r.pair: r for part in run(release, grids, runner, release.pairs) for r in part}
    return Study(release, grids, tuple(found[pair] for pair in release.pairs))


def run(release: Release, grids: Grids, runner: Runner, pairs: Iterable[tuple[int, int]]) -> Iterator[list[PairResult]]:
    """The results of the pairs, in parts, as they are ready."""
    todo = list(pairs)
    if not any(grids.by_quantity.values()):
        return iter([[PairResult(pair, (), (), ()) for pair in todo]])
    size = 1 if grids.digits is not None else len(todo) if runner.is_serial and not runner.in_small_parts else _CHUNK
    parts = [todo[i : i + max(size, 1)] for i in range(0, len(todo), max(size, 1))]
    return runner.map(_Task(release, grids), parts)


@dataclass(frozen=True)
class _Task:
    """What a worker does with a part of the pairs."""

    release: Release
    grids: Grids

    def __call__(self, pairs: list[tuple[int, int]]) -> list[PairResult]:
        return account_pairs(self.release, pairs, self.grids)


@dataclass(frozen=True)
class Study:
    """All pairs of a release on grids, and the overall guarantee of the release for any argument."""

    _repr_html_ = repr_html

    release: Release
    grids: Grids
    results: tuple[PairResult, ...]

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of allocations, by published numbers."""
        return tuple(r.pair for r in self.results)

    def result(self, pair: tuple[int, int]) -> PairResult:
        """What was found for one pair."""
        return self.results[self.pairs.index(pair)]

    def largest(self, quantity: str) -> list[Interval]:
        """Bounds of the largest 'delta' or 'epsilon' over all pairs, on its grid."""
        columns = zip(*(getattr(r, quantity) for r in self.results), strict=True)
        return [(max(low for low, _ in column), max(high for _, high in column)) for column in columns]

    def table(self, quantity: str) -> Bounds:
        """Bounds of 'delta', 'epsilon' or 'beta' for every pair (rows) on its grid (columns)."""
        if quantity not in self.grids.by_quantity:
            raise InvalidInputError(f"A table is one of delta, epsilon, beta. Found {quantity}.")
        kind = float if self.grids.digits is None else object
        shape = (len(self.results), len(self.grids.by_quantity[quantity]))
        ends = [[[i[end] for i in getattr(r, quantity)] for r in self.results] for end in (0, 1)]
        return Bounds(*(np.array(e, dtype=kind).reshape(shape) for e in ends))

    @cached_property
    def _overall(self) -> Overall:
        return overall_of(self.release)

    def delta(self, epsilon: Any) -> Any:
        """The least delta that the whole release satisfies at this epsilon, rounded up (scalar or array)."""
        return self.delta_bounds(epsilon).upper

    def delta_bounds(self, epsilon: Any) -> Bounds:
        """Certified bounds of the largest delta(epsilon) over all pairs."""

        def one(e: Fraction | float) -> tuple[float, float]:
            if isinstance(e, float):
                return (0.0, 0.0) if e > 0 else (1.0, 1.0)
            return self._overall.delta(e)

        return each(epsilon, one, read_epsilon)

    def log_delta(self, epsilon: Any) -> Any:
        """Natural logarithm of the upper bound of delta(epsilon), also below the double range."""

        def one(e: Fraction | float) -> tuple[float, float]:
            found = self._overall.log_delta(e) if isinstance(e, Fraction) else (-math.inf if e > 0 else 0.0)
            return found, found

        return each(epsilon, one, read_epsilon).upper

    def epsilon(self, delta: Any) -> Any:
        """The least epsilon that the whole release satisfies at this delta, rounded up (scalar or array)."""
        return self.epsilon_bounds(delta).upper

    def epsilon_bounds(self, delta: Any) -> Bounds:
        """Certified bounds of the largest epsilon(delta) over all pairs."""

        def one(d: Fraction) -> tuple[float, float]:
            if d == 0 or d >= 1:
                return (math.inf, math.inf) if d == 0 else (-math.inf, -math.inf)
            return self._overall.epsilon(d)

        return each(delta, one, read_delta)

    def beta(self, alpha: Any) -> Any:
        """The overall trade-off curve, the lower convex envelope of all pairs', rounded down (scalar or array)."""
        return self.beta_bounds(alpha).lower

    def beta_bounds(self, alpha: Any) -> Bounds:
        """Certified bounds of the overall trade-off curve at alpha."""

        def one(a: Fraction) -> tuple[float, float]:
            return (1.0 - float(a),) * 2 if a in (0, 1) else self._overall.beta(a)

        return each(alpha, one, read_alpha)

    def tradeoff(self, num: int = 201) -> TradeOffCurve:
        """Points for plotting on or below the overall curve, convex, from (0, 1) to (1, 0), at most `num`: a TradeOffCurve."""
        return self._overall.curve(whole(num, "num", 5))

    def worst_pair(
        self, *, delta: Number | None = None, epsilon: Number | None = None, alpha: Number | None = None
    ) -> tuple[int, int]:
        """The pair with the largest epsilon at `delta`, the largest delta at `epsilon` or the least beta at `alpha`.

        Where float64 cannot tell, balls of up to 80 digits do (which takes a while where hundreds of pairs agree to 12
        digits); of pairs that are equal even then the first is returned.
        """
        return Contest.of(self.release, delta=delta, epsilon=epsilon, alpha=alpha).winner()


@dataclass(frozen=True)
class Contest:
    """Which pair is worst for one question: those that float64 cannot tell apart, with their bounds (larger is worse)."""

    release: Release
    quantity: str
    at: Fraction
    bounds: dict[tuple[int, int], tuple[Any, Any]]

    @classmethod
    def of(
        cls,
        release: Release,
        *,
        delta: Number | None = None,
        epsilon: Number | None = None,
        alpha: Number | None = None,
    ) -> Contest:
        """The pairs whose certified bounds in float64 reach the worst of the lower ends."""
        given = sum(x is not None for x in (epsilon, delta, alpha))
        if given != 1:
            raise InvalidInputError(f"worst_pair takes one of delta, epsilon and alpha. Found {given} of them.")
        one = [None if x is None else [x] for x in (epsilon, delta, alpha)]
        grids = Grids.read(one[0], one[1], one[2])
        quantity = next(name for name, grid in grids.by_quantity.items() if grid)
        suspects = overall_of(release).suspects(quantity, grids.by_quantity[quantity][0])
        asked = account_pairs(release, [release.pairs[p] for p in suspects], grids)
        return cls.among(release, grids, asked, quantity, 0)

    @classmethod
    def among(cls, release: Release, grids: Grids, results: Iterable[PairResult], quantity: str, place: int) -> Contest:
        """The same from results that are there already: one quantity at one place of its grid."""
        bounds = {r.pair: _larger_is_worse(quantity, getattr(r, quantity)[place]) for r in results}
        return cls(release, quantity, grids.by_quantity[quantity][place], _still_in(bounds))

    @property
    def compositions(self) -> int:
        """How many different compositions are left."""
        return len({self.release.pair(*pair) for pair in self.bounds})

    def settled(self, in_balls: bool = True) -> tuple[tuple[int, int], int]:
        """The worst pair and 1; or, where more compositions tie than are worth telling apart, one pair and their number."""
        if self.compositions <= (_TELL_APART if in_balls else 1):
            try:
                return self.winner(), 1
            except (AccuracyError, LatticeTooFineError):  # no balls for this lattice
                pass
        return min(self.bounds), len(self.bounds)

    def winner(self) -> tuple[int, int]:
        """The worst pair, by balls where need be; of equal ones the first."""
        bounds = self.bounds
        for digits in _TIE_DIGITS:
            compositions = {pair: self.release.pair(*pair) for pair in bounds}
            if len(set(compositions.values())) == 1:
                break
            asked = {
                composition: _larger_is_worse(
                    self.quantity, getattr(composition, f"{self.quantity}_bounds")(self.at, digits)
                )
                for composition in dict.fromkeys(compositions.values())  # equal ones once
            }
            bounds = _still_in({pair: asked[composition] for pair, composition in compositions.items()})
        return min(bounds)


def _larger_is_worse(quantity: str, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    return (-bounds[1], -bounds[0]) if quantity == "beta" else (bounds[0], bounds[1])


def _still_in(bounds: dict[tuple[int, int], tuple[Any, Any]]) -> dict[tuple[int, int], tuple[Any, Any]]:
    best = max(low for low, _ in bounds.values())
    return {pair: ends for pair, ends in bounds.items() if ends[1] >= best}
