"""Any composition of any mechanisms, by whatever method suits: a data set against its neighbour, and the other way round.

In one direction, the infinite part of the loss included,

    delta(e) = lost + kept delta_finite(e),      1 - delta(e) = kept (1 - delta_finite(e)),      kept = 1 - lost
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.accounting.cross_check import CrossCheck, cross_check
from exactdp.accounting.epsilon_search import EpsilonSearch, moved_down
from exactdp.accounting.explanation import Explanation, explain_used
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.accounting.tradeoff_dual import beta_from_profile, curve_from_profile
from exactdp.balls import BITS, ball, ends_of, fraction, precision
from exactdp.brackets import Bracket, Point, bracket_of_balls, mirrored_brackets, overwrite
from exactdp.doubles import CHAIN_SLACK, EXP_SLACK, FORMULA_SLACK, UNDERFLOW, Floats, root
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.total_loss import Part, TotalLoss, log_largest_gain
from exactdp.errors import AccuracyError
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import log_rational

_ONE_STEP = 0.25  # of the estimate by Chernoff's bound: from here on that for one step counts
_FAR_OFF = 0.125  # of the same: below it that bound is no estimate
_CLOSE = 1e-4
_LESS = 64  # times less effort, for a look at a direction that is likely not to be the worse one
_ZERO = (0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -math.inf)  # the rows of a point with delta = 0


@dataclass(frozen=True)
class Direction:
    """Certified answers about one direction."""

    total: TotalLoss
    effort: Effort

    @cached_property
    def answering(self) -> LineMethods:
        """The finite part."""
        return LineMethods(self.total, self.effort)

    def finite(self, epsilons: list[Fraction], enough: Floats | None = None) -> Point:
        """The profile of the finite part, given that the loss is finite; delta is 0 from the greatest loss on."""
        end = self.total.greatest
        point = self.answering.points([threshold(e) for e in epsilons], enough)
        beyond = [i for i, e in enumerate(epsilons) if end is not None and e >= end]
        if beyond:
            for row, value in zip(point.rows(), _ZERO, strict=True):
                row[beyond] = value
        return point

    def point(self, epsilons: list[Fraction], enough: Floats | None = None) -> Point:
        """The profile of the whole loss; where log delta is proved to be below `enough` no narrower bounds are looked for."""
        if self.total.lost == 0:
            return self.finite(epsilons, enough)
        finite = self.finite(epsilons)
        kept, lost = (_factor(x) for x in (self.total.kept, self.total.lost))
        rest = _times(finite.rest, kept)
        return Point(_plus(_times(finite.delta, kept), lost), rest, finite.log_density + kept[0])

    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest finite loss; infinite if there is none."""
        end = self.total.ends[1]
        return (math.inf, math.inf) if end is None else ends_of(end)

    def epsilon(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of the least e with delta(e) <= delta, 0 < delta < 1.

        Infinite if the loss is infinite with more probability than delta, the greatest finite loss if with exactly that.
        """
        exact = self.total.lost_exactly
        if exact is not None:
            return self._with_lost(delta, exact)
        with precision(BITS):
            low, high = (fraction(end) for end in (self.total.lost.lower(), self.total.lost.upper()))
        if delta <= low:
            return math.inf, math.inf
        if delta <= high:
            return self._with_lost(delta, low)[0], math.inf
        return self._with_lost(delta, low)[0], self._with_lost(delta, high)[1]

    def _with_lost(self, delta: Fraction, lost: Fraction) -> tuple[float, float]:
        if lost > delta:
            return math.inf, math.inf
        if lost == delta and lost:
            return self.greatest_loss()
        return self._finite_epsilon((delta - lost) / (1 - lost))

    def _finite_epsilon(self, delta: Fraction) -> tuple[float, float]:
        """The same for the finite part. At every e, delta(e) is at least 1 - e^e E e^{-L} and, by Markov, at most e^{K(nu) - nu
        e}."""
        constant = self.total.constant
        with precision(BITS):
            log_rest = ball(1 - delta).log()
            if constant is not None:
                return ends_of(constant + log_rest)
            lowest = float((log_rest - self.total.log_moment(Fraction(-1))).mid())
        highest = self._markov_epsilon(log_rational(delta))
        start = min(_estimate(self.total, log_rational(delta)), highest)
        return EpsilonSearch((self.finite,) * 3, delta, start, highest, moved_down(lowest)).bracket()

    def log_delta_upper(self, epsilon: Fraction, enough: float) -> float:
        """An upper bound of log delta(epsilon), epsilon >= 0, that costs little: infinite where there is none, and no better one
        is looked for once it is below `enough`.

        (1 - e^-u)_+ <= c e^{nu u} with c = nu^nu / (1 + nu)^(1 + nu), the largest value of e^{-nu u} (1 - e^-u); so delta(e) <= c
        e^{K(nu) - nu e} (docs/theory/smooth.md, Theorem S6).
        """
        if not self.total.bends or self.total.lost != 0:
            return math.inf
        at, best, end = float(epsilon), math.inf, self.total.ends[1]
        if end is not None and bool(threshold(epsilon) >= end):
            return -math.inf
        if end is not None and float(end.lower()) > at * (1 + FORMULA_SLACK):
            for nu in _orders(self.total, 48):
                upper = self.total.log_moment_upper(nu)
                log_most = float(log_largest_gain(nu))
                size = 1 + abs(upper) + nu * at + abs(log_most)
                best = min(best, upper - nu * at + log_most + FORMULA_SLACK * size)
                if best < enough:
                    break
        return best

    def is_below(self, epsilon: Fraction, enough: float, thoroughly: bool = False) -> bool:
        """Whether log delta(epsilon), epsilon >= 0, is proved to be below `enough`: by what costs little, and `thoroughly` by as
        much as an answer takes."""
        if self.log_delta_upper(epsilon, enough) < enough:
            return True
        if self.total.lost != 0 or enough == -math.inf:
            return False
        # lists take as long with less effort
        looks = (self._quick if self.total.is_long else None, self.answering if thoroughly else None)
        asked = ([threshold(epsilon)], np.array([enough]))
        return any(look is not None and look.points(*asked).delta.log_upper()[0] < enough for look in looks)

    @cached_property
    def _quick(self) -> LineMethods:
        less = Effort(max(self.effort.terms // _LESS, 1), max(self.effort.looks // _LESS, 1))
        return LineMethods(self.total, less)

    def _markov_epsilon(self, log_delta: float) -> float:
        """An e at which delta(e) <= delta is proved for the finite part: the best of several nu, and the greatest loss."""
        best = self.greatest_loss()[1]
        for nu in _orders(self.total):
            upper = self.total.log_moment_upper(nu)
            best = min(best, (upper - log_delta) / nu + FORMULA_SLACK * (1 + abs(upper) + abs(log_delta)) / nu)
        return best


def _orders(total: TotalLoss, last: int = 24) -> list[float]:
    unit = 1 / math.sqrt(total.widest)
    return [unit * 1.4**i for i in range(-12, last)]


def _estimate(total: TotalLoss, log_delta: float) -> float:
    """epsilon at which delta is about exp(log_delta), by Chernoff's bound. Heuristic: a starting point only."""
    # max over u of e^{-nu u} (1 - e^{-u}) is below 1 / (1 + nu)
    found = [(total.log_moment_upper(nu) - log_delta - math.log1p(nu) - 1.5) / nu for nu in _orders(total)]
    most = max(min(found), 0.0)
    least = max((_estimate_of_one(part, log_delta, most) for part in total.parts if part.loss.bends), default=0.0)
    if least > _ONE_STEP * most or not least:
        return least or most
    # where tilts are drawn to outputs far beyond the question the bound is far off: one step, or all of them as if normal
    normal = math.sqrt(max(-2 * log_delta, 1.0) * total.mean_variance(0.0)[1])
    near = max(least, normal)
    return near if near < _FAR_OFF * most else most


def _estimate_of_one(part: Part, log_delta: float, most: float) -> float:
    """The same if only one of the steps had a loss, which is nearly so where losses are rarely large. Heuristic."""

    def miss(epsilon: float) -> float:
        found = part.loss.delta(arb(epsilon))
        return float((part.count * found[0]).log().mid()) - log_delta if found is not None else -1.0

    return root(miss, 0.0, most, _CLOSE) if most > 0 and miss(0.0) > 0 > miss(most) else 0.0


@dataclass(frozen=True)
class BothDirections:
    """Answers about one composition by any method: the worse of the two directions, with the larger delta and epsilon."""

    mechanisms: Mapping[Mechanism, int]
    effort: Effort
    lattice: Lattice | None = None
    """The lattice of the loss, if all mechanisms are discrete Gaussians; too fine for float64's sieve, but not for balls."""

    @cached_property
    def total(self) -> TotalLoss:
        """The loss of all mechanisms together."""
        return TotalLoss.of(self.mechanisms)

    @cached_property
    def _directions(self) -> tuple[Direction, ...]:
        forward = Direction(self.total, self.effort)
        return (forward,) if self.total.is_symmetric else (forward, Direction(self.total.reversed(), self.effort))

    @property
    def lost(self) -> tuple[float, float]:
        """Bounds of the probability of an infinite loss: delta at epsilon = infinity."""
        low, high = _largest([ends_of(d.total.lost) for d in self._directions])
        return max(low, 0.0), high

    @property
    def log_lost(self) -> tuple[float, float]:
        """Bounds of its logarithm, through balls, so that nothing underflows."""
        with precision(BITS):
            logs = [ends_of(d.total.lost.log()) for d in self._directions if d.total.lost != 0]
        return _largest(logs) if logs else (-math.inf, -math.inf)

    @property
    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest loss, infinite where a loss can be: epsilon at delta = 0."""
        if any(d.total.lost != 0 for d in self._directions):
            return math.inf, math.inf
        return _largest([d.greatest_loss() for d in self._directions])

    @property
    def beta_at_zero(self) -> tuple[float, float]:
        """Bounds of beta(0), 1 less the probability of an infinite loss."""
        ends = [ends_of(d.total.kept) for d in self._directions]
        return max(min(low for low, _ in ends), 0.0), min(high for _, high in ends)

    def contours(self) -> Contours:
        """The contours on the loss's own lattice, refused unless all mechanisms are discrete Gaussians and it is not too fine."""
        if self.lattice is None:
            raise AccuracyError(
                "Enclosures with digits need a composition of discrete Gaussians only. Ask without digits; those bounds are "
                "proved as well."
            )
        return Contours(self.lattice)

    def point(self, epsilons: list[Fraction]) -> Point:
        """delta and 1 - delta at each epsilon, of either sign."""
        return self._worst(epsilons)

    def _worst(self, epsilons: list[Fraction]) -> Point:
        """The same; for the answers below, which must not come back to a method that gave up on them."""
        sizes = [abs(e) for e in epsilons]
        worst = self._directions[0].point(sizes)
        for other in self._directions[1:]:
            # what is proved to be smaller need not be summed: the larger delta has the smaller 1 - delta
            least = worst.delta.log_lower()
            asked = [i for i, e in enumerate(sizes) if not other.is_below(e, float(least[i]))]
            if asked:
                own = Point.of_rows(np.array(worst.rows())[:, asked])
                overwrite(worst, asked, _worse(own, other.point([sizes[i] for i in asked], least[asked])))
        return mirrored_brackets(worst, epsilons)

    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of epsilon(delta), 0 < delta < 1; no other direction is searched that has at most delta at the lower end of the
        first one's."""
        first, *others = self._directions
        found, target = [first.epsilon(delta)], log_rational(delta)
        target -= EXP_SLACK * (1 + abs(target))
        low = found[0][0]
        for other in others:
            if not (0 < low < math.inf and other.is_below(Fraction(low), target, thoroughly=True)):
                found.append(other.epsilon(delta))
        return _largest(found)

    def beta_bracket(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of beta(alpha), 0 < alpha < 1, from the profile; 0 from alpha = beta(0) on, the curve being symmetric."""
        lost = [d.total.lost_exactly for d in self._directions]
        if any(p is not None and alpha >= 1 - p for p in lost):
            return 0.0, 0.0
        small = min(alpha, 1 - alpha)
        start = _estimate(self.total, log_rational(small))
        scale = math.sqrt(self.total.widest)
        return beta_from_profile(self._worst, alpha, start if alpha == small else -start, scale, self.beta_at_zero)

    def curve(self, num: int) -> TradeOffCurve:
        """At most `num` points on or below the trade-off curve, convex, from a range of slopes."""
        mean, _ = self.total.mean_variance(0.0)
        reach = min(abs(mean) + 7.1 * math.sqrt(self.total.widest), 700.0)
        return curve_from_profile(self._worst, reach, num, self.beta_at_zero[0])

    def cross_check(self, epsilon: Fraction) -> CrossCheck:
        """delta(epsilon), epsilon >= 0, by every method that applies, in the direction with the larger delta."""
        return cross_check(self._worse_direction(epsilon).total, self.lattice, epsilon, self.effort)

    def _worse_direction(self, epsilon: Fraction) -> Direction:
        first, *others = self._directions
        least = float(first.point([epsilon]).delta.log_lower()[0])
        if all(other.is_below(epsilon, least) for other in others):
            return first
        return max(self._directions, key=lambda d: float(d.point([epsilon]).delta.log_upper()[0]))

    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of the direction with the larger delta."""
        size = abs(epsilon)
        used = self._worse_direction(size).answering.used(threshold(size))
        if len(self._directions) > 1:
            note = ("directions", "2, the loss is not symmetric; the larger delta counts")
            used = replace(used, rows=(*used.rows, note))
        bracket = self._worst([epsilon]).delta
        counts = sum(p.count for p in self.total.parts), len(self.total.parts)
        return explain_used(used, epsilon, counts, (float(bracket.log_lower()[0]), float(bracket.log_upper()[0])))


_Factor = tuple[float, float, float]  # log_scale, lower, upper


def _factor(value: arb) -> _Factor:
    """A positive ball of any size."""
    with precision(BITS):
        return bracket_of_balls(value)


def _times(bracket: Bracket, factor: _Factor) -> Bracket:
    scale = bracket.log_scale + factor[0]
    slack = CHAIN_SLACK * (1 + np.abs(scale) + np.abs(bracket.log_scale) + abs(factor[0]))
    return Bracket(scale, bracket.lower * factor[1] * (1 - slack), bracket.upper * factor[2] * (1 + slack))


def _plus(bracket: Bracket, term: _Factor) -> Bracket:
    """The sum, on the larger of the two scales; what underflows there adds at most the smallest double."""
    scale: Floats = np.where(bracket.upper == 0, term[0], np.maximum(bracket.log_scale, term[0]))
    slack = CHAIN_SLACK * (1 + np.abs(scale) + np.abs(bracket.log_scale) + abs(term[0]))
    own, other = np.exp(np.minimum(bracket.log_scale - scale, 0.0)), np.exp(term[0] - scale)
    lower = (bracket.lower * own + term[1] * other) * (1 - slack)
    upper = (bracket.upper * own + term[2] * other) * (1 + slack)
    return Bracket(scale, lower, np.maximum(upper, UNDERFLOW))


def _largest(ends: list[tuple[float, float]]) -> tuple[float, float]:
    """Bounds of the largest of several numbers from bounds of each."""
    return max(low for low, _ in ends), max(high for _, high in ends)


def _worse(one: Point, two: Point) -> Point:
    """Elementwise: the larger delta, the smaller 1 - delta."""
    which = one.delta.log_upper() >= two.delta.log_upper()
    delta = _extreme(one.delta, two.delta, largest=True)
    rest = _extreme(one.rest, two.rest, largest=False)
    return Point(delta, rest, np.where(which, one.log_density, two.log_density))


def _extreme(one: Bracket, two: Bracket, largest: bool) -> Bracket:
    """The elementwise maximum or minimum of two brackets, on the scale of the one that decides it."""
    first = (one.log_upper() >= two.log_upper()) == largest
    scale = np.where(first, one.log_scale, two.log_scale)
    pick = np.maximum if largest else np.minimum
    lows, highs = [], []
    for b in (one, two):
        slack = EXP_SLACK * (1 + np.abs(b.log_scale) + np.abs(scale))
        with np.errstate(over="ignore", invalid="ignore"):
            factor = np.exp(b.log_scale - scale)
            # a lower bound of 0 stays 0, also next to a delta so small that the factor overflows
            lows.append(np.where(b.lower == 0, 0.0, np.minimum(b.lower * factor * (1 - slack), 1e300)))
            # what underflows is not known to be 0
            most = np.maximum(np.minimum(b.upper * factor, 1e300), 1e-320) * (1 + slack)
            highs.append(np.where(b.upper == 0, 0.0, most))
    return Bracket(scale, pick(*lows), pick(*highs))
