"""Who answers for a composition: the sieve on the loss's own lattice where it has a usable one, any other method otherwise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
from flint import arb

from exactdp.certified import beta_floats
from exactdp.cross_check import CrossCheck, cross_check
from exactdp.dual import beta_from_profile, curve_from_profile
from exactdp.engine.answering import Answering, threshold
from exactdp.engine.bracket import Bracket, Point
from exactdp.engine.contours import Contours
from exactdp.engine.lattice import Group, Lattice
from exactdp.engine.sieve import LARGEST_NODES, Effort
from exactdp.engine.total import Part, TotalLoss
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.explain import Explanation, explain_on_lattice, explain_used
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.loss import BITS, Mechanism
from exactdp.mechanisms.theta_ball import precision
from exactdp.numbers import log_rational
from exactdp.profile import EpsilonSearch, epsilon_bracket, mirrored, profile
from exactdp.tradeoff import TradeOffCurve, tradeoff_curve

LARGEST_STRIDE = 2_000_000
"""Windows that the sieve would have to walk for one contour; beyond it other methods are faster."""

_SLACK = 2.0**-48
_T = TypeVar("_T")


class Answers(ABC):
    """Certified answers about one composition."""

    @abstractmethod
    def point(self, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
        """delta and 1 - delta at each epsilon, of either sign."""

    @abstractmethod
    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of epsilon(delta), 0 < delta < 1."""

    @abstractmethod
    def beta_bracket(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of beta(alpha), 0 < alpha < 1."""

    @abstractmethod
    def curve(self, num: int) -> TradeOffCurve:
        """At most `num` points on or below the trade-off curve, convex."""

    @abstractmethod
    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of delta(epsilon)."""

    @property
    @abstractmethod
    def lost(self) -> tuple[float, float]:
        """Bounds of the probability of an infinite loss, in the worse direction: delta at epsilon = infinity."""

    @property
    @abstractmethod
    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest loss in either direction: epsilon at delta = 0."""

    @property
    @abstractmethod
    def beta_at_zero(self) -> tuple[float, float]:
        """Bounds of beta(0)."""

    @abstractmethod
    def cross_check(self, epsilon: Fraction) -> CrossCheck:
        """delta(epsilon) by every method that applies, epsilon at least 0."""

    @abstractmethod
    def contours(self) -> Contours:
        """The contours on the loss's own lattice, for enclosures of any number of digits."""


@dataclass(frozen=True)
class OnLattice(Answers):
    """The sieve; where the lattice turns out to be too fine for it, the other methods."""

    lattice: Lattice
    otherwise: Answers
    effort: Effort

    @cached_property
    def _own(self) -> Contours:
        return Contours(self.lattice, effort=self.effort)

    lost = property(lambda _: (0.0, 0.0))
    greatest_loss = property(lambda _: (math.inf, math.inf))
    beta_at_zero = property(lambda _: (1.0, 1.0))

    def _or_else(self, by_sieve: Callable[[Contours], _T], otherwise: Callable[[Answers], _T]) -> _T:
        try:
            return by_sieve(self._own)
        except LatticeTooFineError:
            return otherwise(self.otherwise)

    def contours(self) -> Contours:
        """The contours of the lattice."""
        return self._own

    def point(self, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
        """delta and 1 - delta at each epsilon."""
        return self._or_else(lambda c: profile(c, epsilons, resort, balls), lambda a: a.point(epsilons))

    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of epsilon(delta)."""
        return self._or_else(lambda c: epsilon_bracket(c, delta), lambda a: a.epsilon_bracket(delta))

    def beta_bracket(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of beta(alpha)."""
        return self._or_else(lambda c: beta_floats(c, alpha), lambda a: a.beta_bracket(alpha))

    def curve(self, num: int) -> TradeOffCurve:
        """Vertices of the trade-off curve."""
        return self._or_else(lambda c: tradeoff_curve(c, num), lambda a: a.curve(num))

    def cross_check(self, epsilon: Fraction) -> CrossCheck:
        """The sieve and all others."""
        return self.otherwise.cross_check(epsilon)

    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of the sieve."""
        return self._or_else(lambda c: explain_on_lattice(c, epsilon), lambda a: a.explain(epsilon))


@dataclass(frozen=True)
class Anyhow(Answers):
    """Any composition of any mechanisms, in both directions."""

    total: TotalLoss
    effort: Effort
    lattice: Lattice | None = None
    """The lattice of the loss, if all mechanisms are discrete Gaussians; too fine for float64's sieve, but not for balls."""

    @cached_property
    def _directions(self) -> tuple[Answering, ...]:
        forward = Answering(self.total, self.effort)
        return (forward,) if self.total.is_symmetric else (forward, Answering(self.total.reversed(), self.effort))

    @property
    def lost(self) -> tuple[float, float]:
        """The larger of the two directions'."""
        ends = [_ends(a.total.lost) for a in self._directions]
        return max(low for low, _ in ends), max(high for _, high in ends)

    @property
    def greatest_loss(self) -> tuple[float, float]:
        """Infinite where a loss can be."""
        if self.lost[1] > 0 or any(a.total.ends[1] is None for a in self._directions):
            return math.inf, math.inf
        ends = [_ends(end) for a in self._directions if (end := a.total.ends[1]) is not None]
        return max(low for low, _ in ends), max(high for _, high in ends)

    @property
    def beta_at_zero(self) -> tuple[float, float]:
        """1 less the probability of an infinite loss."""
        low, high = self.lost
        return max(math.nextafter(1 - high, 0.0), 0.0) if high else 1.0, min(math.nextafter(1 - low, 2.0), 1.0)

    def contours(self) -> Contours:
        """Refused unless all mechanisms are discrete Gaussians on a lattice that is not too fine."""
        if self.lattice is None:
            raise AccuracyError(
                "Enclosures with digits need a composition of discrete Gaussians only. Ask without digits; those bounds are "
                "proved as well."
            )
        return Contours(self.lattice)

    def point(self, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
        """The worse of the two directions at each epsilon: delta is the larger, 1 - delta the smaller."""
        thresholds = [threshold(abs(e)) for e in epsilons]
        points = [with_lost(a.points(thresholds), a.total.lost) for a in self._directions]
        worst = points[0]
        for other in points[1:]:
            worst = _worse(worst, other)
        return mirrored(worst, epsilons)

    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of epsilon(delta): infinite where the loss is infinite with at least that probability."""
        found = [self._where_lost(a.total, delta) for a in self._directions]
        certain = [f for f in found if f is not None]
        if certain:
            return max(low for low, _ in certain), max(high for _, high in certain)
        highest = max(_markov_epsilon(a.total, delta) for a in self._directions)
        start = min(_estimate(self.total, log_rational(delta)), highest)
        return EpsilonSearch(self.point, delta, start, highest).bracket()

    @staticmethod
    def _where_lost(total: TotalLoss, delta: Fraction) -> tuple[float, float] | None:
        """The answer where an infinite loss decides it: infinity if it has more probability than delta, the greatest finite
        loss if it has exactly delta."""
        exact = total.lost_exactly
        with precision(BITS):
            wanted = arb(delta.numerator) / delta.denominator
            if exact is None:  # compare balls
                if bool(total.lost < wanted):
                    return None
                return (math.inf if bool(total.lost > wanted) else -math.inf), math.inf
            if exact < delta:
                return None
            end = total.ends[1]
            if exact > delta or end is None:
                return math.inf, math.inf
            return _ends(end)

    def beta_bracket(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of beta(alpha) from the profile."""
        small = min(alpha, 1 - alpha)
        start = _estimate(self.total, log_rational(small))
        scale = math.sqrt(self.total.widest)
        return beta_from_profile(self.point, alpha, start if alpha == small else -start, scale)

    def curve(self, num: int) -> TradeOffCurve:
        """Lower bounds of the curve from a range of slopes."""
        mean, _ = self.total.mean_variance(0.0)
        return curve_from_profile(self.point, min(abs(mean) + 7.1 * math.sqrt(self.total.widest), 700.0), num)

    def cross_check(self, epsilon: Fraction) -> CrossCheck:
        """Every method, in the direction with the larger delta."""
        return cross_check(self._worse_direction(threshold(epsilon)).total, self.lattice, epsilon, self.effort)

    def _worse_direction(self, y: arb) -> Answering:
        return max(self._directions, key=lambda a: float(a.points([y]).delta.log_upper()[0]))

    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of the direction with the larger delta."""
        y = threshold(abs(epsilon))
        used = self._worse_direction(y).used(y)
        if len(self._directions) > 1:
            used = replace(
                used, rows=(*used.rows, ("directions", "2, the loss is not symmetric; the larger delta counts"))
            )
        bracket = self.point([epsilon]).delta
        counts = sum(p.count for p in self.total.parts), len(self.total.parts)
        return explain_used(used, epsilon, counts, (float(bracket.log_lower()[0]), float(bracket.log_upper()[0])))


def answers_for(mechanisms: Mapping[Mechanism, int], effort: Effort) -> Answers:
    """The planner's first decision: the sieve for discrete Gaussians whose lattice is not too fine, other methods otherwise."""
    total = TotalLoss(tuple(Part(m.loss(), n) for m, n in mechanisms.items()))
    groups = [Group(m.sigma2, m.sensitivity, n) for m, n in mechanisms.items() if isinstance(m, DiscreteGaussian)]
    if len(groups) < len(mechanisms):
        return Anyhow(total, effort)
    lattice = Lattice(tuple(groups))
    otherwise = Anyhow(total, effort, lattice)
    return OnLattice(lattice, otherwise, effort) if sieve_suits(lattice) else otherwise


def sieve_suits(lattice: Lattice) -> bool:
    """Whether the sieve is expected to be the fastest method. Heuristic: affects speed and accuracy only."""
    return min(lattice.strides) <= LARGEST_STRIDE and math.sqrt(lattice.r) <= LARGEST_NODES * lattice.h


def _ends(value: arb) -> tuple[float, float]:
    """The ends of a ball as doubles, rounded outward; an exact 0 stays one."""
    if value == 0:
        return 0.0, 0.0
    with precision(BITS):
        low, high = float(value.lower()), float(value.upper())
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def with_lost(point: Point, lost: arb) -> Point:
    """A point of the finite part of a loss turned into that of the whole: an infinite loss has probability `lost`."""
    if lost == 0:
        return point
    with precision(BITS):
        low, high = float(lost.lower()) * (1 - _SLACK), float(lost.upper()) * (1 + _SLACK)
        kept = float((1 - lost).mid())
    delta = Bracket(
        np.zeros_like(point.log_density),
        (low + kept * point.delta.lower_floats()) * (1 - _SLACK),
        np.minimum((high + kept * point.delta.upper_floats()) * (1 + _SLACK), 1.0),
    )
    rest = Bracket(point.rest.log_scale, point.rest.lower * kept * (1 - _SLACK), point.rest.upper * kept * (1 + _SLACK))
    return Point(delta, rest, point.log_density + math.log(max(kept, 5e-324)))


def _worse(one: Point, two: Point) -> Point:
    """Elementwise: the larger delta, the smaller 1 - delta."""
    which = one.delta.log_upper() >= two.delta.log_upper()
    delta = _extreme(one.delta, two.delta, np.maximum)
    rest = _extreme(one.rest, two.rest, np.minimum)
    return Point(delta, rest, np.where(which, one.log_density, two.log_density))


def _extreme(one: Bracket, two: Bracket, pick: np.ufunc) -> Bracket:
    """The elementwise maximum or minimum of two brackets, on the scale of the one that decides it."""
    first = one.log_upper() >= two.log_upper()
    scale = np.where(first == (pick is np.maximum), one.log_scale, two.log_scale)
    lows, highs = [], []
    for b in (one, two):
        with np.errstate(over="ignore"):
            factor = np.exp(b.log_scale - scale)
        slack = _SLACK * (1 + np.abs(b.log_scale) + np.abs(scale))
        lows.append(np.nan_to_num(b.lower * factor, posinf=1e300) * (1 - slack))
        highs.append(
            np.where(b.upper > 0, np.maximum(np.nan_to_num(b.upper * factor, posinf=1e300), 1e-320), 0.0) * (1 + slack)
        )
    return Bracket(scale, pick(*lows), pick(*highs))


def _markov_epsilon(total: TotalLoss, delta: Fraction) -> float:
    """An epsilon at which delta(epsilon) <= delta is proved by Markov: lost + e^{K(nu) - nu epsilon}, the best of several nu."""
    with precision(BITS):
        room = arb(delta.numerator) / delta.denominator - total.lost
        log_room = float(room.log().lower()) * (1 + 1e-15) - 1e-12
    unit = 1 / math.sqrt(total.widest)
    best = math.inf
    for i in range(-12, 24):
        nu = unit * 1.4**i
        upper = total.log_moment_upper(nu)
        best = min(best, (upper - log_room) / nu + 1e-12 * (abs(upper) + abs(log_room)) / nu)
    end = total.ends[1]
    if end is not None:
        best = min(best, float(end.upper()) * (1 + 1e-12) + 1e-12)
    return best


def _estimate(total: TotalLoss, log_delta: float) -> float:
    """epsilon at which delta is about exp(log_delta), by Chernoff's bound. Heuristic: a starting point only."""
    unit = 1 / math.sqrt(total.widest)
    best = math.inf
    for i in range(-12, 24):
        nu = unit * 1.4**i
        # max over u of e^{-nu u} (1 - e^{-u}) is below 1 / (1 + nu)
        best = min(best, (total.log_moment_upper(nu) - log_delta - math.log1p(nu) - 1.5) / nu)
    return max(best, 0.0)
