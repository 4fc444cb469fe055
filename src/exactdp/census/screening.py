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
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr

from exactdp.accounting.composition import Composition
from exactdp.accounting.epsilon_search import both_readings, gaussian_start
from exactdp.accounting.pairs import Pairs
from exactdp.brackets import Bracket, Point
from exactdp.census.overall import Overall
from exactdp.doubles import FORMULA_SLACK, Floats, Ints, exp_above, exp_below
from exactdp.engine.family.contours import Family
from exactdp.engine.lattice.lattice import Group
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.numbers import log_rational
from exactdp.theory.gaussian_gap.central_zone import Grid, NoiseGroup, Terms, Zone
from exactdp.theory.gaussian_gap.far_peaks import far_peaks
from exactdp.theory.gaussian_gap.gap import (
    COARSEST_NOISE,
    FADDEEVA_SLACK,
    Gap,
    GaussianGap,
    is_known,
    quotients,
    shifted_delta,
    smooth_part,
    smooth_sizes,
    tilt_and_scale,
)

_AIMS = (1e-11, 1e-8, 1e-5)
_LARGE_POWER_SLACK = 1e-9  # e to a power of at most 700 has 700 times the rounding of the power
_FIRST_MOVE = 1e-12  # of an end of epsilon, relative to 1 + its size; doubled until it is proved
_TOLERANCE = 1e-5
"""In log delta: pairs that may exceed the worst by less count with what is proved of them, the others are asked."""

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
        for p, (i, j) in enumerate(self.family.pairs):
            if i == j and self.family.members[i] not in known:
                found = far_peaks(self.family.mechanisms(p), self._cut, 0.0, _AIMS)
                known[self.family.members[i]] = found.total
        return np.array([known[member] for member in self.family.members])

    @cached_property
    def _members(self) -> list[list[NoiseGroup]]:
        return [[NoiseGroup(float(g.sigma2), g.sensitivity, g.count) for g in m] for m in self.family.members]

    @cached_property
    def _parts(self) -> list[_SameSpread]:
        """The pairs by their R, usually one for all."""
        by_spread: dict[Fraction, list[int]] = {}
        for p, (i, j) in enumerate(self.family.pairs):
            by_spread.setdefault(self.family.own[i].spread + self.family.own[j].spread, []).append(p)
        both = np.array(self.family.pairs, dtype=np.int64)
        far = np.sqrt(self._far[both[:, 0]] * self._far[both[:, 1]]) * (1 + FADDEEVA_SLACK)
        return [
            _SameSpread.of(spread, np.array(pairs), both[pairs], far[pairs], self._members, self._cut)
            for spread, pairs in by_spread.items()
        ]

    def point(self, epsilon: Fraction) -> Point:
        """delta and 1 - delta of every pair, as far as the gaps tell."""
        columns = np.empty((4, len(self.family.pairs)))
        for part in self._parts:
            columns[:, part.pairs] = part.at(epsilon)
        slack = FADDEEVA_SLACK * (1 + np.abs(columns[0]))
        lower, upper = np.maximum(1 + columns[1] - slack, 0.0), 1 + columns[2] + slack
        delta = Bracket(columns[0], lower, upper)
        return Point(delta, delta.one_minus(), columns[3])

    def sharpened(self, pair: int, epsilon: Fraction) -> Gap:
        """The gap of one pair with its own far peaks and its own lattice."""
        if pair not in self._own:
            self._own[pair] = GaussianGap(Composition(self.family.mechanisms(pair)))
        return self._own[pair].at(epsilon)

    @cached_property
    def _groups(self) -> list[tuple[Group, ...]]:
        return [self.family.groups(p) for p in range(len(self.family.pairs))]

    def same(self, pair: int) -> list[int]:
        """All pairs with the same mechanisms."""
        return [p for p, groups in enumerate(self._groups) if groups == self._groups[pair]]


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
        spread: Fraction, pairs: Ints, both: Ints, far: Floats, members: list[list[NoiseGroup]], cut: float
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
        # delta is at most 1, and from R/2 on at most exp(-y^2 / (2 R)) (Lemma 1): that one where the other is out of range
        log_most = 0.0 if log_gaussian > -700 else -y * y / (2 * r) * (1 - FORMULA_SLACK)
        if log_most - log_gaussian > 700:  # so deep that the logarithms are known to fewer digits than they differ in
            result[0], log_gaussian = log_most, log_most
        most = math.expm1(log_most - log_gaussian) * (1 + _LARGE_POWER_SLACK) + _LARGE_POWER_SLACK
        result[1], result[2] = -1.0, most
        if abs(y) > _DEEPEST * root or self.is_hopeless:
            return result
        deltas = [shifted_delta(r, y, d) for d in (0, *self.sensitivities)]
        if not is_known(deltas[0]):
            return result
        lam, scale = tilt_and_scale(r, y)
        smooth, error = smooth_part(self.sizes, deltas)
        rest = self.grid.second(lam, 0.0) + self.far + self.grid.tail_far
        low, high = quotients(smooth, (error + scale * rest) * (1 + FADDEEVA_SLACK), deltas[0])
        result[1], result[2] = low - FADDEEVA_SLACK, high + FADDEEVA_SLACK
        result[1] = np.maximum(np.nan_to_num(result[1], nan=-1.0), -1.0)
        result[2] = np.minimum(np.nan_to_num(result[2], nan=most), most)
        return result


@dataclass(frozen=True)
class ScreenedOverall(Overall):
    """The worst over all pairs where they cannot share contours: proved bounds of all of them, exact answers of a few suspects.

    The bounds of delta and epsilon are nearly as narrow as one pair's; those of beta, and of 1 - delta, as wide as the screen's.
    """

    pairs: Pairs
    is_screened: ClassVar[bool] = True
    _known: dict[Fraction, tuple[float, float]] = field(default_factory=dict, repr=False, compare=False)

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
            slack = FADDEEVA_SLACK * (1 + abs(gap.log_gaussian))
            lower[p] = max(lower[p], gap.log_gaussian + _log1p(gap.lower) - slack)
            upper[p] = min(upper[p], gap.log_gaussian + _log1p(gap.upper) + slack)
        return lower, upper

    def _exact(self, pair: int, epsilon: Fraction) -> tuple[float, float]:
        delta = self.pairs.answers(pair).point([epsilon]).delta
        return float(delta.log_lower()[0]), float(delta.log_upper()[0])

    def _largest(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the largest log delta(epsilon)."""
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
        return float(lower.max()), float(upper.max())

    def delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the largest delta(epsilon)."""
        low, high = self._largest(epsilon)
        return exp_below(low, FADDEEVA_SLACK), min(exp_above(high, FADDEEVA_SLACK), 1.0)

    def log_delta(self, epsilon: Fraction) -> tuple[float, float]:
        """Bounds of the logarithm of the largest delta(epsilon)."""
        low, high = self._largest(epsilon)
        return low - FADDEEVA_SLACK, min(high + FADDEEVA_SLACK, 0.0)

    def epsilon(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of the largest epsilon(delta), 0 < delta < 1: exact for a few suspects, then up as the screen asks."""
        if delta not in self._known:
            self._known[delta] = self._search(delta)
        return self._known[delta]

    def _search(self, delta: Fraction) -> tuple[float, float]:
        if delta > Fraction(1, 2):  # log delta is next to 0: by 1 - delta, and every suspect exactly
            return super().epsilon(delta)
        target = log_rational(delta)
        at, lower, upper = gaussian_start(self.pairs.spread, delta), -math.inf, -math.inf
        asked: set[int] = set()
        while len(asked) < self.pairs.count:
            bounds = self._log_bounds(min(both_readings(at)))[1]
            worst = max((p for p in range(len(bounds)) if p not in asked), key=lambda p: bounds[p])
            if asked and bounds[worst] <= target + _TOLERANCE:
                raised = self._raised(upper, target, asked)
                return super().epsilon(delta) if raised is None else (lower, raised)
            low, high = self.pairs.answers(worst).epsilon_bracket(delta)
            asked.update(self._screen.same(worst))
            lower, upper = max(lower, low), max(upper, high)
            at = upper
        return lower, upper

    def _raised(self, upper: float, target: float, asked: Collection[int]) -> float | None:
        """The end moved up until delta is proved to be small enough for all pairs that were not asked; None if it never is."""
        move = _FIRST_MOVE * (1 + abs(upper))
        for _ in range(_STEPS):
            bounds = self._log_bounds(min(both_readings(upper)))[1]
            if all(b <= target - FADDEEVA_SLACK * (1 + abs(target)) for p, b in enumerate(bounds) if p not in asked):
                return upper
            upper, move = upper + move, 2 * move
        return None

    def beta(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of the lower convex envelope of all trade-off curves at alpha, 0 < alpha < 1."""
        return self.beta_by_dual(alpha)

    def suspects(self, quantity: str, at: Fraction) -> Sequence[int]:
        """Those that are not proved to be better than another: delta at one epsilon, or epsilon at one delta by delta at a lower
        bound of the overall epsilon, since delta falls as epsilon rises."""
        if quantity == "beta":
            return super().suspects(quantity, at)
        if quantity == "delta":
            lower, upper = self._log_bounds(at)
            least = float(lower.max())
        else:
            upper, least = self._log_bounds(Fraction(self.epsilon(at)[0]))[1], log_rational(at)
        return np.flatnonzero(upper >= least - FADDEEVA_SLACK * (1 + abs(least))).tolist()


def _log1p(x: float) -> float:
    return math.log1p(x) if x > -1 else -math.inf
