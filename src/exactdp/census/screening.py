"""Proved bounds of delta for every pair of a family in a second, whatever its lattice: which pairs can be the worst?

Where contours cannot be shared, asking 946 pairs one by one takes a minute. The theorem on the Gaussian gap
(docs/theory/edgeworth.md, Theorem 22) bounds the delta of a pair in a tenth of a millisecond once its far peaks are known; and
these need to be listed for the members only: the characteristic function of a pair is the product of its members', so by Cauchy
and Schwarz its far peaks are at most the geometric mean of those of each member with itself (Lemma 23).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from exactdp.census.overall import Overall
from exactdp.composition import Composition
from exactdp.dual import beta_from_profile
from exactdp.engine.bracket import Bracket, Point
from exactdp.engine.family import Family
from exactdp.engine.lattice import Group
from exactdp.engine.sieve import Ints
from exactdp.engine.total import Part, TotalLoss
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.gaussian import gaussian_logs
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.theta import Floats
from exactdp.numbers import log_rational
from exactdp.profile import both_readings, gaussian_start
from exactdp.theory.central_zone import Grid, Terms, Zone
from exactdp.theory.central_zone import Group as DoubleGroup
from exactdp.theory.far_peaks import Noise, far_peaks
from exactdp.theory.gaussian_gap import (
    COARSEST_NOISE,
    Gap,
    GaussianGap,
    shifted_delta,
    smooth_part,
    smooth_sizes,
    tilt_and_scale,
)

_AIMS = (1e-11, 1e-8, 1e-5)
_SLACK = 1e-12
_TOLERANCE = (
    1e-5  # in log delta: pairs that exceed the worst by less count with what is proved of them, the others are asked
)
_SHARPENED = 60  # suspects whose own far peaks are listed
_STEPS = 60
_DEEPEST = 30.0  # deviations from the middle; beyond, only what is certain of a probability is given


@dataclass(frozen=True)
class Screen:
    """The Gaussian gaps of all pairs of a family, all at once; no lattice is used."""

    family: Family
    _own: dict[int, GaussianGap] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _cut(self) -> float:
        return math.pi / max(float(g.weight) for member in self.family.members for g in member)

    @cached_property
    def _far(self) -> Floats:
        """The far peaks of each member with itself, from the common cut on."""
        known: dict[tuple[Group, ...], float] = {}
        for member in self.family.members:
            if member not in known:
                known[member] = self._far_of(member)
        return np.array([known[member] for member in self.family.members])

    def _far_of(self, member: Sequence[Group]) -> float:
        noise = [Noise(2 * g.count, float(g.sigma2), float(g.weight)) for g in member]
        total = TotalLoss(tuple(Part(DiscreteGaussian(g.sigma2, g.sensitivity).loss(), 2 * g.count) for g in member))
        spread = sum(2 * g.count * g.sensitivity * float(g.weight) for g in member)
        trivial = 1 / (math.pi * self._cut)
        for aim in _AIMS:
            try:
                return min(far_peaks(total, noise, spread, self._cut, 0.0, aim).total, trivial)
            except LatticeTooFineError:
                continue
        return trivial

    @cached_property
    def _members(self) -> list[list[DoubleGroup]]:
        return [[DoubleGroup(float(g.sigma2), g.sensitivity, g.count) for g in m] for m in self.family.members]

    @cached_property
    def exact_spreads(self) -> list[Fraction]:
        """R of every pair."""
        own = [sum((g.count * g.sensitivity * g.weight for g in m), Fraction(0)) for m in self.family.members]
        return [own[i] + own[j] for i, j in self.family.pairs]

    @cached_property
    def _parts(self) -> list[_SameSpread]:
        """The pairs by their R, usually one for all."""
        by_spread: dict[Fraction, list[int]] = {}
        for p, spread in enumerate(self.exact_spreads):
            by_spread.setdefault(spread, []).append(p)
        both = np.array(self.family.pairs, dtype=np.int64)
        far = np.sqrt(self._far[both[:, 0]] * self._far[both[:, 1]]) * (1 + _SLACK)
        return [
            _SameSpread.of(spread, np.array(pairs), both[pairs], far[pairs], self._members, self._cut)
            for spread, pairs in by_spread.items()
        ]

    def point(self, epsilon: Fraction) -> Point:
        """delta and 1 - delta of every pair, as far as the gaps tell."""
        columns = np.empty((4, len(self.family.pairs)))
        for part in self._parts:
            columns[:, part.pairs] = part.at(epsilon)
        slack = _SLACK * (1 + np.abs(columns[0]))
        lower, upper = np.maximum(1 + columns[1] - slack, 0.0), 1 + columns[2] + slack
        delta = Bracket(columns[0], lower, upper)
        return Point(delta, delta.one_minus(), columns[3])

    def sharpened(self, pair: int, epsilon: Fraction) -> Gap:
        """The gap of one pair with its own far peaks and its own lattice."""
        if pair not in self._own:
            groups = self.family.groups(pair)
            own = Composition({DiscreteGaussian(g.sigma2, g.sensitivity): g.count for g in groups})
            self._own[pair] = GaussianGap(own)
        return self._own[pair].at(epsilon)

    def same(self, pair: int) -> list[int]:
        """All pairs with the same groups."""
        groups = sorted(self.family.groups(pair), key=repr)
        first = self.exact_spreads[pair]
        near = [p for p, spread in enumerate(self.exact_spreads) if spread == first]
        return [p for p in near if sorted(self.family.groups(p), key=repr) == groups]


@dataclass(frozen=True)
class _SameSpread:
    """Pairs with the same R, in one array: the theorem without a lattice, row by row."""

    spread: Fraction
    pairs: Ints
    far: Floats
    grid: Grid
    sensitivities: list[int]
    sizes: list[Floats]
    is_hopeless: bool

    @staticmethod
    def of(
        spread: Fraction, pairs: Ints, both: Ints, far: Floats, members: list[list[DoubleGroup]], cut: float
    ) -> _SameSpread:
        """`both` are the members of each pair, `far` the bounds of their far peaks."""
        r = float(spread)
        each = [dict(smooth_sizes(m, r, cut)) for m in members]
        smooth = sorted({d for sizes in each for d in sizes})
        matter = max((g.sensitivity for m in members for g in m if g.first > 1e-250), default=0)
        zone = Zone.of(r, cut, matter)
        terms = Terms.stacked([Terms.of(m, smooth, zone) for m in members])
        first, second = both[:, 0], both[:, 1]
        sizes = [np.array([s.get(d, 0.0) for s in each]) for d in smooth]
        grid = Grid(zone, terms.at(first) + terms.at(second))
        hopeless = any(g.sigma2 < COARSEST_NOISE for m in members for g in m)
        return _SameSpread(spread, pairs, far, grid, smooth, [s[first] + s[second] for s in sizes], hopeless)

    def at(self, epsilon: Fraction) -> Floats:
        """Rows: log of the Gaussian delta, bounds of the gap, log of the Gaussian density."""
        r, y = float(self.spread), float(epsilon - self.spread / 2)
        root = math.sqrt(r)
        log_gaussian = gaussian_logs(root, float(epsilon))[0]
        log_density = float(epsilon) + float(log_ndtr(-float(epsilon) / root - root / 2))
        result = np.empty((4, len(self.pairs)))
        result[0], result[3] = log_gaussian, log_density
        most = math.expm1(min(-log_gaussian, 700.0)) * (1 + 1e-9) + 1e-9
        result[1], result[2] = -1.0, most
        if abs(y) > _DEEPEST * root or self.is_hopeless:
            return result
        deltas = [shifted_delta(r, y, d) for d in (0, *self.sensitivities)]
        base, base_error = deltas[0]
        if not base > 1e3 * base_error:
            return result
        lam, scale = tilt_and_scale(r, y)
        smooth, error = smooth_part(self.sizes, deltas)
        rest = self.grid.second(lam, 0.0) + self.far + self.grid.tail_far
        remainder = (error + scale * rest) * (1 + _SLACK)
        for row, sign in ((1, -1), (2, 1)):
            end = smooth + sign * remainder
            result[row] = end / (base - sign * np.copysign(base_error, end)) + sign * _SLACK
        result[1] = np.maximum(np.nan_to_num(result[1], nan=-1.0), -1.0)
        result[2] = np.minimum(np.nan_to_num(result[2], nan=most), most)
        return result


@dataclass(frozen=True)
class ScreenedOverall(Overall):
    """The worst over all pairs where they cannot share contours: proved bounds of all of them, exact answers of a few suspects.

    The bounds of delta and epsilon are nearly as narrow as one pair's; those of beta, and of 1 - delta, as wide as the screen's.
    """

    @cached_property
    def _screen(self) -> Screen:
        return Screen(self.pairs.family)

    def point(self, epsilon: Fraction) -> Point:
        """delta(epsilon) and 1 - delta(epsilon) of every pair, by the screen."""
        return self._screen.point(epsilon)

    def _log_bounds(self, epsilon: Fraction) -> tuple[Floats, Floats]:
        """Bounds of log delta of every pair: the screen's, sharpened for those that could be the largest."""
        point = self.point(epsilon)
        lower, upper = point.delta.log_lower(), point.delta.log_upper()
        best = float(lower.max())
        suspects = np.flatnonzero(upper >= best)
        if float(upper.max()) - best <= _TOLERANCE:  # nothing to gain
            return lower, upper
        for p in suspects[np.argsort(-upper[suspects])][:_SHARPENED].tolist():
            gap = self._screen.sharpened(p, epsilon)
            slack = _SLACK * (1 + abs(gap.log_gaussian))
            lower[p] = max(lower[p], gap.log_gaussian + _log1p(gap.lower) - slack)
            upper[p] = min(upper[p], gap.log_gaussian + _log1p(gap.upper) + slack)
        return lower, upper

    def _exact(self, pair: int, epsilon: Fraction) -> tuple[float, float]:
        delta = self.pairs.answers(pair).point([epsilon]).delta
        return float(delta.log_lower()[0]), float(delta.log_upper()[0])

    def _largest(self, epsilon: Fraction) -> tuple[float, float, int]:
        """Bounds of the largest log delta(epsilon), and the pair that is worst as far as is known."""
        lower, upper = self._log_bounds(epsilon)
        left = np.ones(len(upper), dtype=bool)
        while left.any():
            worst = int(np.argmax(np.where(left, upper, -math.inf)))
            # one is always asked; the others where what is proved of them matters
            if not left.all() and upper[worst] - float(lower.max()) <= _TOLERANCE:
                break
            exact = self._exact(worst, epsilon)
            for p in self._screen.same(worst):
                (lower[p], upper[p]), left[p] = exact, False
        return float(lower.max()), float(upper.max()), int(np.argmax(upper))

    def delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the largest delta(epsilon)."""
        low, high, _ = self._largest(epsilon)
        return math.exp(low) * (1 - _SLACK), min(math.exp(high) * (1 + _SLACK), 1.0)

    def log_delta(self, epsilon: Fraction) -> float:
        """Upper bound of the logarithm of the largest delta(epsilon)."""
        return min(self._largest(epsilon)[1] + _SLACK, 0.0)

    def epsilon(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of the largest epsilon(delta), 0 < delta < 1: exact for a few suspects, then up as the screen asks."""
        if delta > Fraction(1, 2):  # log delta is next to 0: by 1 - delta, and every suspect exactly
            return super().epsilon(delta)
        target = log_rational(delta)
        spread = float(max(self._screen.exact_spreads))
        at, lower, upper = gaussian_start(spread, delta), -math.inf, -math.inf
        asked: set[int] = set()
        while len(asked) < len(self.pairs.family.pairs):
            bounds = self._log_bounds(min(both_readings(at)))[1]
            worst = max((p for p in range(len(bounds)) if p not in asked), key=lambda p: bounds[p])
            if asked and bounds[worst] <= target + _TOLERANCE:
                return lower, self._raised(upper, target, asked)
            low, high = self.pairs.answers(worst).epsilon_bracket(delta)
            asked.update(self._screen.same(worst))
            lower, upper = max(lower, low), max(upper, high)
            at = upper
        return lower, upper

    def _raised(self, upper: float, target: float, asked: Collection[int]) -> float:
        """The end moved up until delta is proved to be small enough for all pairs that were not asked."""
        move = 1e-12 * (1 + abs(upper))
        for _ in range(_STEPS):
            point = min(both_readings(upper))
            bounds = self._log_bounds(point)[1]
            if all(b <= target - _SLACK * (1 + abs(target)) for p, b in enumerate(bounds) if p not in asked):
                return upper
            upper, move = upper + move, 2 * move
        raise AccuracyError("The overall epsilon is out of the reach of the screen; account for the pairs one by one.")

    def beta(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of the lower convex envelope of all trade-off curves at alpha, 0 < alpha < 1."""
        spread = float(max(self._screen.exact_spreads))
        quantile = -float(ndtri_exp(log_rational(alpha)))
        return beta_from_profile(self.worst, alpha, quantile * math.sqrt(spread) - spread / 2, math.sqrt(spread))


def _log1p(x: float) -> float:
    return math.log1p(x) if x > -1 else -math.inf
