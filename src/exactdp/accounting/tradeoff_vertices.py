"""The trade-off curve: beta(alpha), the type II error of the best test at type I error alpha, certified.

The curve is the polygon through the vertices (alpha_t, beta_t), alpha_t = P(S >= h t), beta_t = P(S >= R + h - h t). Its edge
from vertex t + 1 to vertex t has the slope -e^{h t - R/2} exactly (the likelihood ratio of that lattice point). So for
any t the line of that edge is below the curve, and for alpha between alpha_t and alpha_s, s < t, the curve is below the line
through vertex s with the steepest slope in between, e^{h (t-1) - R/2}, and below the line through vertex t with the flattest,
e^{h s - R/2} (Theorem 6 of docs/theory/engine.md). Where it is not certain which of a few edges alpha lies on, the curve is at
most the largest of their bounds.

Everything near 0 is computed as a tail, never as 1 minus something: alpha near 1 is handled through 1 - alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from flint import arb
from scipy.special import ndtri_exp

from exactdp.accounting.tradeoff_curve import FARTHEST, TradeOffCurve, bending_quantiles, lower_hull
from exactdp.brackets import Bracket
from exactdp.doubles import EXP_SLACK, FORMULA_SLACK, TINY, UNIT, Bools, Floats, exp_below
from exactdp.engine.lattice.accuracy import RESORT_WIDTH, Resort, refine
from exactdp.engine.lattice.conditioning import decisive, mix, support
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.payoff import Payoff, tail_threshold
from exactdp.errors import AccuracyError
from exactdp.numbers import log_rational
from exactdp.widths import CURVE, relative_widths, warn_if_wide

_SEARCH_STEPS = 80
_FARTHEST = 1 << 40  # vertices on either side of the estimate that are searched


class Tail(NamedTuple):
    """P(S >= h t) as logarithmic bounds, and the same for its complement."""

    low: float
    high: float
    rest_low: float
    rest_high: float


def tails_at(contours: Contours, steps: list[int], resort: Resort = Resort.BALLS) -> list[Tail]:
    """Certified tails at lattice points of either sign; at t <= 0 through P(S >= h t) = 1 - P(S >= h (1 - t))."""
    positive = [upper_side(t) for t in steps]

    def summed(points: list[int], balls: bool = False) -> Bracket:
        return contours.evaluate(Payoff.TAIL, [tail_threshold(t) for t in points], balls).bracket

    bracket = summed(positive)
    refine(bracket, resort, lambda i: _conditioned(contours, positive[i]), lambda i: summed([positive[i]], balls=True))
    return tails_of_bracket(steps, bracket)


def upper_side(step: int) -> int:
    """The lattice point at which the tail of `step` is evaluated: P(S >= h t) = 1 - P(S >= h (1 - t)) for t <= 0."""
    return step if step > 0 else 1 - step


def tails_of_bracket(steps: list[int], bracket: Bracket) -> list[Tail]:
    """The tails at lattice points of either sign from the values at their upper sides."""
    return [Tail(*ends) for ends in tail_rows(np.array(steps) > 0, bracket).T.tolist()]


def tail_rows(is_upper: Bools, bracket: Bracket) -> Floats:
    """The same as rows, one for each field of a `Tail`, from whether each point is its own upper side."""
    other = bracket.one_minus()
    rows = np.array([bracket.log_lower(), bracket.log_upper(), other.log_lower(), other.log_upper()])
    result: Floats = np.where(is_upper, rows, rows[[2, 3, 0, 1]])
    return result


def _conditioned(contours: Contours, t: int) -> Bracket | None:
    """P(S >= h t) as a mixture over one coarse mechanism (Theorem 7)."""
    if contours.clumps is None:
        return None
    split, rest = contours.clumps
    y = contours.lattice.step * t
    xs = support(split, float(y), upper_tail=True)
    if not xs:
        return None
    points = [math.ceil((y - split.one.weight * x) / rest.lattice.step) for x in xs]
    inner = tails_at(rest, points, Resort.NONE)
    lows, highs = np.array([i.low for i in inner]), np.array([i.high for i in inner])
    again = decisive(split, xs, lows, highs, RESORT_WIDTH)
    if again:
        better = tails_at(rest, [points[i] for i in again])
        lows[again], highs[again] = [b.low for b in better], [b.high for b in better]
    mixed = mix(split, xs, lows, highs, rising=True)
    return Bracket(*(np.array([value]) for value in mixed)) if math.isfinite(mixed[2]) else None


def beta_bracket(contours: Contours, alpha: Fraction) -> tuple[float, float]:
    """Two doubles with lower <= beta(alpha) <= upper, for 0 < alpha < 1."""
    return beta_at_edge(contours.lattice, alpha, find_edge(contours, alpha), lambda steps: tails_at(contours, steps))


def beta_at_edge(
    lattice: Lattice, alpha: Fraction, near: int, tails_at: Callable[[list[int]], list[Tail]]
) -> tuple[float, float]:
    """The bounds of beta(alpha) from certified tails, searched from edge `near`, which only affects speed."""
    side = side_of(alpha)
    tails = surrounding_vertices(near, tails_at, side.alpha_at_least, side.alpha_at_most)
    betas = dict(zip(tails, tails_at([lattice.spread_steps + 1 - t for t in tails]), strict=True))

    def line(vertex: int, edge: int) -> tuple[float, float]:
        ends = side.line(
            betas[vertex][:2], tails[vertex][:2] if side.small else tails[vertex][2:], log_slope(lattice, edge)
        )
        return float(ends[0]), float(ends[1])

    lower, upper = polygon_bounds(list(tails), line)
    # a few times the smallest double covers the underflow of the parts of `upper`
    return max(lower - TINY, 0.0), min(upper + TINY, 1.0)


_Tails = TypeVar("_Tails")
_End = TypeVar("_End", float, arb)


def surrounding_vertices(
    near: int,
    tails_at: Callable[[list[int]], list[_Tails]],
    at_least: Callable[[_Tails], bool],
    at_most: Callable[[_Tails], bool],
) -> dict[int, _Tails]:
    """Vertices around edge `near`, ascending: alpha is proved to lie between those of the first and of the last.

    The first is the last vertex proved to be at least alpha, the last the first one proved to be at most alpha; their
    neighbours in between, whose alpha cannot be told from the wanted one, are included, so that the long edges count exactly.
    """
    known: dict[int, _Tails] = {}

    def proved(t: int, claim: Callable[[_Tails], bool]) -> bool:
        if t not in known:
            known[t] = tails_at([t])[0]
        return claim(known[t])

    steps = [near - 1, near, near + 1, near + 2]
    known.update(zip(steps, tails_at(steps), strict=True))
    first, last, reach = near - 1, near + 2, 1
    while not (proved(first, at_least) and proved(last, at_most)):
        if reach > _FARTHEST:
            raise AccuracyError(f"No edge of the trade-off curve could be proved around vertex {near}.")
        reach *= 2
        first, last = near - reach, near + 1 + reach
    first = _bisect(first, last, lambda t: proved(t, at_least))
    last = 1 + _bisect(first, last, lambda t: not proved(t, at_most))
    for t in (first + 1, last - 1):
        proved(t, at_least)
    return {t: known[t] for t in sorted({first, first + 1, last - 1, last})}


def _bisect(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last t in [low, high) at which a claim holds that is true from low up to some point and false at high."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def polygon_bounds(vertices: list[int], line: Callable[[int, int], tuple[_End, _End]]) -> tuple[_End, _End]:
    """Bounds of the curve at alpha from lines through vertices; line(v, e) encloses the line through v with the slope of edge e.

    Edge e runs from vertex e + 1 to vertex e. Between vertices s < t the slopes are those of the edges s (flattest) to t - 1.
    """
    lowers, uppers = [], []
    for s, t in pairwise(vertices):
        lowers += [line(s, s)[0], line(t, t - 1)[0]]
        uppers.append(min(line(s, t - 1)[1], line(t, s)[1]))
    return max(lowers), max(uppers)


class Side(NamedTuple):
    """alpha seen from whichever end of [0, 1] it is near to, in logarithms; numbers, or arrays elementwise."""

    small: Any
    log: Any
    error: Any

    def alpha_at_least(self, tail: Tail) -> bool:
        """Proved: alpha_t >= alpha."""
        if self.small:
            return bool(tail.low >= self.log + self.error)
        return bool(tail.rest_high <= self.log - self.error)

    def alpha_at_most(self, tail: Tail) -> bool:
        """Proved: alpha_t <= alpha."""
        if self.small:
            return bool(tail.high <= self.log - self.error)
        return bool(tail.rest_low >= self.log + self.error)

    def line(self, beta: Sequence[Any], near: Sequence[Any], log_slope: Any) -> tuple[Any, Any]:
        """Bounds of beta_t + e^{log_slope} (alpha_t - alpha), the line through vertex t.

        Given are bounds of log beta_t and of log alpha_t, or of log(1 - alpha_t) where alpha is above 1/2.
        """
        sign = np.where(self.small, 1.0, -1.0)
        slack = self.error + EXP_SLACK * (1 + np.abs(log_slope))
        # e^slope (alpha_t - alpha) = sign * (e^{slope + log tail} - e^{slope + log alpha}); the gap is at most a few times beta
        ends = (
            sign * _gap(log_slope, near[0] - slack, self.log + slack),
            sign * _gap(log_slope, near[1] + slack, self.log - slack),
        )
        low, high = np.minimum(*ends), np.maximum(*ends)
        bottom, top = _exp(beta[0]), _exp(beta[1])
        slacks = EXP_SLACK * (bottom + np.abs(low)), EXP_SLACK * (top + np.abs(high))
        return (bottom + low) - slacks[0], (top + high) + slacks[1]


@lru_cache(maxsize=64)
def side_of(alpha: Fraction) -> Side:
    """The side of alpha, kept for the next pair."""
    small = alpha <= Fraction(1, 2)
    log = log_rational(alpha if small else 1 - alpha)
    return Side(small, log, EXP_SLACK * (1 + abs(log)))


def log_slope(lattice: Lattice, edge: int) -> float:
    """h t - R/2, the logarithm of the slope of edge t: the nearest double of a quotient of whole numbers."""
    h, half = lattice.step, lattice.half_spread
    return (h.numerator * edge * half.denominator - half.numerator * h.denominator) / (h.denominator * half.denominator)


def _gap(log_factor: Any, log_x: Any, log_y: Any) -> Any:
    """e^log_factor (e^log_x - e^log_y) without overflow of the parts."""
    size = _exp(log_factor + np.maximum(log_x, log_y)) * np.expm1(-np.abs(log_x - log_y))
    return np.where(log_x >= log_y, -size, size)


def _exp(x: Any) -> Any:
    return np.exp(np.minimum(x, 709.0))


def find_edge(contours: Contours, alpha: Fraction) -> int:
    """The t with alpha_{t+1} <= alpha <= alpha_t, as well as estimates can tell. Heuristic: affects width only.

    Newton's method on the logarithm of the tail, kept inside a bracket: the tail at 0 is above 1/2, and by the sub-Gaussian bound
    the tail at sqrt(2 R log(1/alpha)) is below alpha.
    """
    lattice = contours.lattice
    mirror = alpha > Fraction(1, 2)
    log_wanted = log_rational(1 - alpha if mirror else alpha)
    low, high = 0, math.ceil(math.sqrt(-2 * lattice.r * log_wanted) / lattice.h * (1 + FORMULA_SLACK)) + 1
    t = round(-float(ndtri_exp(log_wanted)) * math.sqrt(lattice.r) / lattice.h)
    for attempt in range(_SEARCH_STEPS):
        if high - low <= 1:
            break
        if not low < t < high or attempt % 6 == 5:
            t = (low + high) // 2
        values = contours.evaluate(Payoff.TAIL, [tail_threshold(t)])
        excess = float(values.bracket.log_upper()[0]) - log_wanted
        low, high = (t, high) if excess >= 0 else (low, t)
        per_step = float(values.log_slope[0]) * lattice.h
        move = excess / per_step if per_step > 0 else 0.0
        t += math.floor(move) if abs(move) < high else 0
        if excess >= 0 and move < 1:  # the next vertex is below: t is the edge, but for curvature and rounding
            t += 1
    # low is the last vertex whose tail is at least the wanted one; for alpha near 1 the tail is 1 - alpha_{1 - t}
    return -low if mirror else low


def bending_vertices(lattice: Lattice, most: int) -> list[int]:
    """At most so many vertices (3 or more), where the curve bends on logarithmic axes, each with its mirror image.

    The vertex in the middle, where alpha and beta are alike, is always there. Heuristic: affects what is drawn only.
    """
    both = lattice.spread_steps + 1  # of a vertex and its mirror image
    middle, deviation = both // 2, math.sqrt(lattice.widest)
    first, count = math.floor(-FARTHEST * deviation / lattice.h), (most + 1 - both % 2) // 2
    if middle - first < count:  # there are no more
        return list(range(first, both - first + 1))
    quantiles = bending_quantiles(lattice.r / deviation, 2 * count - 1)[: count - 1]
    half = {middle, *(min(round(z * deviation / lattice.h), middle) for z in quantiles.tolist())}
    return sorted(half | {both - t for t in half})


def tradeoff_curve(contours: Contours, num: int) -> TradeOffCurve:
    """At most `num` points on or below the curve, made convex: vertices by their certified lower bounds, and the two corners.

    Doubles end at 1 - 2^-53 and at 5e-324; a vertex beyond that is moved downwards onto the last double, or left out.
    """
    tails = tails_at(contours, bending_vertices(contours.lattice, num - 2), Resort.NONE)
    warn_if_wide(
        CURVE, relative_widths(np.array([tail.low for tail in tails]), np.array([tail.high for tail in tails]))
    )
    alphas = [exp_below(tail.low) for tail in tails]
    betas = reversed(alphas)  # beta at a vertex is alpha at its mirror image
    inside = [
        (min(max(a, 5e-324), 1 - UNIT), min(b, 1 - UNIT)) for a, b in zip(alphas, betas, strict=True) if a > 0 or b == 0
    ]
    hull = lower_hull([(0.0, 1.0), *sorted(inside), (1.0, 0.0)])
    return TradeOffCurve(np.array([p[0] for p in hull]), np.array([p[1] for p in hull]))
