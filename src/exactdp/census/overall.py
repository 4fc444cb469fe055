"""The overall guarantee over all pairs: the largest delta and epsilon, the lower convex envelope of the trade-off curves.

Parallel composition: the release as a whole is (epsilon, delta)-DP exactly when every pair is, and f-DP for the lower convex
envelope f of the least of the pairs' curves. Envelopes are computed in the dual: the envelope's conjugate is the largest
of the conjugates, that is, f(alpha) = max over slopes s of min over pairs and vertices of beta + s (alpha_vertex - alpha). So
every slope gives a proven lower bound, and every chord between two vertices a proven upper bound; the search makes them meet
(docs/theory/engine.md, Theorem 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.epsilon_search import both_readings, gaussian_start
from exactdp.accounting.pairs import Pairs
from exactdp.accounting.separate_pairs import PairAnswers, Question
from exactdp.accounting.shared_pairs import FEW_SUSPECTS, USELESS, SharedPairs
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.accounting.tradeoff_dual import beta_from_profile, curve_from_profile, estimated_top, evenly
from exactdp.brackets import Point, PointAt, both, mirrored_point
from exactdp.census.envelope import Extremes, envelope_bounds
from exactdp.doubles import CHAIN_SLACK, EXP_SLACK, Floats, Ints
from exactdp.errors import LatticeTooFineError
from exactdp.numbers import log_rational
from exactdp.widths import REMEDY

_EXTREMES_HELD = 4096  # a dozen numbers each
_FEW = 16  # pairs that are all likely
_PLACES = 25  # slopes at which the likely ones of more are found, which curves ask as well
_SMALL_FROM = 3.0  # deviations above the mean from which delta is too small for its width to matter to 1 - delta
_DRAWN = 1e-5  # bounds further apart than this, relative to the upper one, are seen in a table of five digits
_SHOWN_BETA = 1e-7  # the same for beta, of which a page shows up to eight digits
_QUESTIONS = 1 << 16  # that are asked of the pairs at once

_AskEpsilons = Callable[[list[Question]], tuple[Floats, Floats]]


def sides(point: Point, delta: Fraction) -> Ints:
    """Where certified points are proved to be: -1 at most `delta`, 1 above it, 0 where they do not tell."""
    if delta >= 1:
        return np.full(len(point.log_density), -1, dtype=np.int64)
    small = delta <= Fraction(1, 2)
    target = log_rational(delta if small else 1 - delta)
    error = EXP_SLACK * (1 + abs(target))
    bracket = point.delta if small else point.rest
    above, below = bracket.log_lower() > target + error, bracket.log_upper() <= target - error
    found: Ints = above.astype(np.int64) - below.astype(np.int64)
    return found if small else -found


def _worst_of(extremes: Iterable[Extremes]) -> Point:
    """The largest delta and the smallest 1 - delta at one epsilon after the other."""
    columns = [(0.0, *found.delta, *found.rest, found.log_density) for found in extremes]
    return Point.of_rows(np.array(columns).T)


def _by_epsilon(table: Point, epsilons: int) -> Iterator[Point]:
    """The columns of a table with so many of them."""
    rows = np.array(table.rows()).reshape(7, -1, epsilons)
    return (Point.of_rows(rows[:, :, i]) for i in range(epsilons))


@dataclass(frozen=True)
class Overall:
    """The worst over all pairs of a family, for any argument.

    Questions are asked in lists: what pairs share is planned once for all of them. An answer does not depend on the others.
    """

    pairs: PairAnswers
    _found: dict[Fraction, Extremes] = field(default_factory=dict, repr=False, compare=False, kw_only=True)

    @property
    def _all(self) -> range:
        return range(self.pairs.count)

    def points(self, epsilons: Sequence[Fraction]) -> Iterator[Point]:
        """delta(epsilon) and 1 - delta(epsilon) of every pair, at one epsilon after the other; those that are proved not to be
        the worst may be wider than others."""
        at_once = max(1, _QUESTIONS // self.pairs.count)
        for first in range(0, len(epsilons), at_once):
            asked = epsilons[first : first + at_once]
            yield from _by_epsilon(self.pairs.table_of_worst(asked), len(asked))

    def point(self, epsilon: Fraction) -> Point:
        """delta(epsilon) and 1 - delta(epsilon) of every pair."""
        return self.pairs.table(self._all, [epsilon])

    def extremes(self, epsilons: Sequence[Fraction]) -> list[Extremes]:
        """The worst of all pairs at each epsilon; what was asked before is not asked again, the rest together."""
        if len(self._found) > _EXTREMES_HELD:
            self._found.clear()
        found = {e: self._found[e] for e in epsilons if e in self._found}
        missing: dict[Fraction, list[Fraction]] = {}
        for e in dict.fromkeys(epsilons):
            if e not in found:  # what shares has the same loss in both directions
                missing.setdefault(abs(e) if isinstance(self.pairs, SharedPairs) else e, []).append(e)
        asked = sorted(missing)  # neighbours share contours
        for size, point in zip(asked, self.points(asked), strict=True):
            for e in missing[size]:
                found[e] = self._found[e] = Extremes.of(point if e == size else mirrored_point(point, e))
        return [found[e] for e in epsilons]

    def deltas(self, epsilons: Sequence[Fraction]) -> list[tuple[float, float]]:
        """Bounds of the largest delta(epsilon)."""
        return [found.delta for found in self.extremes(epsilons)]

    def drawn_deltas(self, epsilons: Sequence[Fraction]) -> list[tuple[float, float]]:
        """`deltas` as a drawing needs them: where a quick look at all pairs gives them, they are about a millionth apart."""
        points = self.pairs.screen(epsilons)
        found = [(0.0, 1.0)] * len(epsilons) if points is None else [Extremes.of(point).delta for point in points]
        wide = [i for i, (low, high) in enumerate(found) if not high - low <= _DRAWN * high]
        for i, bounds in zip(wide, self.deltas([epsilons[i] for i in wide]), strict=True):
            found[i] = bounds
        return found

    def delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the largest delta(epsilon)."""
        return self.deltas([epsilon])[0]

    def log_deltas(self, epsilons: Sequence[Fraction]) -> list[tuple[float, float]]:
        """Bounds of the logarithm of the largest delta(epsilon)."""
        return [found.log_delta for found in self.extremes(epsilons)]

    def log_delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the logarithm of the largest delta(epsilon)."""
        return self.log_deltas([epsilon])[0]

    def side(self, epsilon: Fraction, delta: Fraction) -> int:
        """Whether the release satisfies (epsilon, delta): -1 if every pair is proved to, 1 if one is proved not to, 0 if neither.

        The one place where a stated guarantee of all pairs is decided.
        """
        return int(sides(self.point(epsilon), delta).max())

    def epsilons(self, deltas: Sequence[Fraction]) -> list[tuple[float, float]]:
        """Bounds of the largest epsilon(delta), 0 < delta < 1.

        The epsilon of one pair is a lower bound. A pair whose delta there is proved to be at most the given one cannot have
        a larger epsilon; the others are asked themselves.
        """
        searches = [_Suspects(delta, gaussian_start(self.pairs.spread, delta), self.pairs.count) for delta in deltas]
        going = searches
        while going:
            for ask, asked in self._suspects(going):
                lows, highs = ask([Question(pair, search.delta) for search, pair in asked])
                for (search, pair), low, high in zip(asked, lows.tolist(), highs.tolist(), strict=True):
                    search.learn(pair, low, high)
            going = [search for search in going if search.left]
        return [(search.lower, search.upper) for search in searches]

    def _suspects(self, going: list[_Suspects]) -> list[tuple[_AskEpsilons, list[tuple[_Suspects, int]]]]:
        """The pairs to be asked for each search, and how: a few by themselves where a quick look at all of them tells."""
        at = [min(both_readings(search.at)) for search in going]  # delta is largest there
        screened = self.pairs.screen(at)
        few, many = [], going
        if screened is not None:
            looked = [(search, search.suspected(point)) for search, point in zip(going, screened, strict=True)]
            few = [(search, pair) for search, pairs in looked if len(pairs) <= FEW_SUSPECTS for pair in pairs]
            many = [search for search, pairs in looked if len(pairs) > FEW_SUSPECTS]
        points = self.points([e for e, search in zip(at, going, strict=True) if search in many])
        rest = [(search, pair) for search, p in zip(many, points, strict=True) for pair in search.suspected(p)]
        return [(self.pairs.epsilons_of_few, few), (self.pairs.epsilons, rest)]

    def epsilon(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of the largest epsilon(delta), 0 < delta < 1."""
        return self.epsilons([delta])[0]

    def suspects(self, delta: Fraction) -> dict[int, tuple[float, float]]:
        """The pairs that may have the largest epsilon(delta), 0 < delta < 1, with bounds of theirs: all but those whose delta is
        proved to be smaller where the largest epsilon is known to be no smaller."""
        lower, _ = self.epsilon(delta)
        at = [min(both_readings(lower))]
        left = np.flatnonzero(sides(next(self.pairs.screen(at) or self.points(at)), delta) >= 0).tolist()
        ask = self.pairs.epsilons_of_few if len(left) <= FEW_SUSPECTS else self.pairs.epsilons
        lows, highs = ask([Question(pair, delta) for pair in left])
        return dict(zip(left, zip(lows.tolist(), highs.tolist(), strict=True), strict=True))

    def betas(self, alphas: Sequence[Fraction]) -> list[tuple[float, float]]:
        """Bounds of the lower convex envelope of all trade-off curves at each alpha, 0 < alpha < 1."""
        if isinstance(self.pairs, Pairs):
            try:
                return envelope_bounds(self.extremes, self._likely, self.pairs, alphas)
            except LatticeTooFineError:
                pass  # by the dual, which needs no vertices
        return self._betas_by_dual(alphas)

    def _betas_by_dual(self, alphas: Sequence[Fraction]) -> list[tuple[float, float]]:
        """From delta alone: the largest of several concave functions' complements is concave, too (Theorem 15)."""
        if not isinstance(self.pairs, SharedPairs) or not self.pairs.shares:
            return [self.beta_by_dual(alpha) for alpha in alphas]
        return [self._beta_on_shared(alpha) for alpha in alphas]

    def _beta_on_shared(self, alpha: Fraction) -> tuple[float, float]:
        """On shared contours, which next to an atom are wide and mostly good enough all the same, then on the pairs' own; a few
        likely pairs say where to look, unless that leads astray."""
        assert isinstance(self.pairs, SharedPairs)
        start, found = self._start(alpha), (0.0, 1.0)
        attempts: list[tuple[PointAt, float | None]] = [(self.worst, None)]
        if not self._worst_shared([Fraction(abs(start))]).is_wide(USELESS)[0]:
            guide = partial(self._worst_shared, some=self._likely_near(start))
            top = estimated_top(guide, alpha, start, math.sqrt(self.pairs.spread))
            attempts = [(self._worst_shared, top), (self.worst, top), *attempts]
        for worst, top_or_none in attempts:
            if not found[1] - found[0] <= self._width_beta * found[1]:
                found = both(found, self.beta_by_dual(alpha, worst, top_or_none))
        return found

    @property
    def _width_beta(self) -> float:
        """Bounds of beta further apart than this, relative to it, are narrowed by slower ways."""
        assert isinstance(self.pairs, SharedPairs)
        return self.pairs.resort_width_beta

    def _worst_shared(self, epsilons: Sequence[Fraction], some: Sequence[int] | None = None) -> Point:
        """`worst`, of all pairs or of a few, as narrow as contours make it that are planned for several epsilons."""
        assert isinstance(self.pairs, SharedPairs)
        pairs = self.pairs
        table = pairs.table_of_worst(epsilons, False) if some is None else pairs.shared_table_of_few(some, epsilons)
        return _worst_of(map(Extremes.of, _by_epsilon(table, len(epsilons))))

    def beta(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of the lower convex envelope of all trade-off curves at alpha, 0 < alpha < 1."""
        return self.betas([alpha])[0]

    @cached_property
    def _likely(self) -> list[int]:
        """Pairs that are likely to be the worst somewhere on the curve. Heuristic: affects speed only."""
        if self.pairs.count <= _FEW:
            return list(self._all)
        found = self.extremes([Fraction(abs(e)) for e in evenly(self._reach, _PLACES).tolist()])
        return sorted({pair for worst in found for pair in (worst.by_delta, worst.by_rest)})

    def _likely_near(self, epsilon: float) -> list[int]:
        """Pairs that are likely to be the worst within a deviation of an epsilon. Heuristic: affects speed only."""
        half = math.sqrt(self.pairs.spread) / 2
        near = [Fraction(abs(epsilon + i * half)) for i in range(-2, 3)]
        points = self.pairs.screen(near)
        found = self.extremes(near) if points is None else map(Extremes.of, points)
        return sorted({pair for worst in found for pair in (worst.by_delta, worst.by_rest)})

    @property
    def _reach(self) -> float:
        """The logarithms of slopes over which the curve bends."""
        return self.pairs.spread / 2 + 7.1 * math.sqrt(self.pairs.spread)

    def _start(self, alpha: Fraction) -> float:
        """The logarithm of the slope at alpha, were the curve the continuous Gaussian's."""
        return -float(ndtri_exp(log_rational(alpha))) * math.sqrt(self.pairs.spread) - self.pairs.spread / 2

    def beta_by_dual(
        self, alpha: Fraction, worst: PointAt | None = None, top: float | None = None
    ) -> tuple[float, float]:
        """The same from delta alone; `top` says where to look first, if that is known."""
        start, scale = self._start(alpha), math.sqrt(self.pairs.spread)
        if not isinstance(self.pairs, SharedPairs):
            return beta_from_profile(self.worst, alpha, start, scale)
        enough = self._width_beta / 10
        return beta_from_profile(worst or self.worst, alpha, start, scale, enough=enough, top=top)

    @property
    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest loss of all pairs, epsilon at delta = 0: infinite for Gaussian noise."""
        return math.inf, math.inf

    def worst(self, epsilons: Sequence[Fraction]) -> Point:
        """At each epsilon the largest delta and the smallest 1 - delta of all pairs."""
        return _worst_of(self.extremes(epsilons))

    def _worst_by_rest(self, epsilons: Sequence[Fraction]) -> Point:
        """`worst`, of which only 1 - delta need be narrow: where delta is small, a quick look at all pairs is enough.

        1 - delta is then as narrow as elsewhere; of betas far smaller than it a curve may lose a few millionths of their size.
        """
        if not isinstance(self.pairs, SharedPairs):
            return self.worst(epsilons)
        far = self.pairs.spread / 2 + _SMALL_FROM * math.sqrt(self.pairs.spread)
        return self._worst_at_a_look(epsilons, far, self.pairs.resort_width)

    def _worst_at_a_look(self, epsilons: Sequence[Fraction], beyond: float, width: float) -> Point:
        """`worst` by a quick look at all pairs, at epsilons larger than `beyond` at which that leaves 1 - delta no wider than
        `width`."""
        asked = sorted({abs(e) for e in epsilons if abs(e) > beyond})
        quick = {}
        for e, point in zip(asked, self.pairs.screen(asked) or (), strict=False):
            _, low, high = Extremes.of(point).rest
            if high - low <= width * high:
                quick[e] = point
        others = [e for e in epsilons if abs(e) not in quick]
        found = dict(zip(others, self.extremes(others), strict=True))
        for e in epsilons:
            if abs(e) in quick:
                found[e] = Extremes.of(quick[abs(e)] if e >= 0 else mirrored_point(quick[abs(e)], e))
        return _worst_of(found[e] for e in epsilons)

    def curve(self, num: int, remedy: str = REMEDY) -> TradeOffCurve:
        """At most `num` points on or below the envelope, convex, from (0, 1) to (1, 0)."""
        return curve_from_profile(self._worst_by_rest, self._reach, num, remedy=remedy)

    def drawn_curve(self, num: int, remedy: str = REMEDY) -> TradeOffCurve:
        """`curve` as a drawing needs it: its points where it bends on logarithmic axes, and where a quick look at all pairs gives
        that, lower by about a millionth of 1 - delta."""
        if not isinstance(self.pairs, SharedPairs):
            return self.curve(num, remedy)
        look = partial(self._worst_at_a_look, beyond=-1.0, width=_DRAWN)
        deviation = math.sqrt(self.pairs.spread)
        return curve_from_profile(look, self._reach, num, remedy=remedy, enough=_DRAWN, deviation=deviation)


@dataclass(eq=False)
class _Suspects:
    """The search for the largest epsilon at one delta: what is known of it, and the pairs that may have a larger one."""

    delta: Fraction
    at: float
    pairs: int

    def __post_init__(self) -> None:
        self.left = dict.fromkeys(range(self.pairs))
        self.lower = self.upper = -math.inf
        self._small = self.delta <= Fraction(1, 2)
        self._target = log_rational(self.delta if self._small else 1 - self.delta)

    def suspected(self, point: Point) -> list[int]:
        """The pairs to be asked, from delta of all of them at `at`: the worst one first, then all that are not ruled out."""
        error = CHAIN_SLACK * (1 + abs(self._target))
        bounds = point.delta.log_upper() if self._small else -point.rest.log_lower()
        limit = self._target - error if self._small else -(self._target + error)
        if self.upper == -math.inf:
            return [max(self.left, key=lambda p: bounds[p])]
        self.left = {p: None for p in self.left if bounds[p] > limit}
        return list(self.left)

    def learn(self, pair: int, low: float, high: float) -> None:
        """What one pair has been found to have; it is a suspect no more."""
        del self.left[pair]
        self.lower, self.upper = max(self.lower, low), max(self.upper, high)
        self.at = self.upper


class QuickOverall(Overall):
    """The worst over many pairs for someone who waits: beta is about seven digits narrow."""

    @property
    def _width_beta(self) -> float:
        """As a page shows it."""
        return _SHOWN_BETA


class SeparateOverall(Overall):
    """The worst over pairs of any mechanisms, each asked by itself; a single pair's own answers are the overall ones."""

    def betas(self, alphas: Sequence[Fraction]) -> list[tuple[float, float]]:
        """Bounds of the lower convex envelope of all trade-off curves at each alpha, 0 < alpha < 1."""
        one = self.pairs.answers(0).beta_bracket if self.pairs.count == 1 else self.beta_by_dual
        return [one(alpha) for alpha in alphas]

    def curve(self, num: int, remedy: str = REMEDY) -> TradeOffCurve:
        """At most `num` points on or below the envelope, convex, from (0, 1) to (1, 0)."""
        return self.pairs.answers(0).curve(num) if self.pairs.count == 1 else super().curve(num, remedy)

    @property
    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest loss of all pairs: finite where all noise is Laplace."""
        lows, highs = zip(*(self.pairs.answers(p).greatest_loss for p in self._all), strict=True)
        return max(lows), max(highs)
