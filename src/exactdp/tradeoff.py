"""The trade-off curve: beta(alpha), the type II error of the best test at type I error alpha, certified.

The curve is the polygon through the vertices (alpha_t, beta_t), alpha_t = P(S >= h t), beta_t = P(S >= R + h - h t). Its edge
from vertex t + 1 to vertex t has the slope -e^{h t - R/2} exactly (the likelihood ratio of that lattice point). So for
any t the line of that edge is below the curve, and between two vertices s < t (alpha_t <= alpha <= alpha_s) the curve is
below beta_s + e^{h (t-1) - R/2} (alpha_s - alpha), the steepest slope in between (Theorem 6 of docs/theory/engine.md).

Everything near 0 is computed as a tail, never as 1 minus something: alpha near 1 is handled through 1 - alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri_exp

from exactdp.engine.contours import Contours
from exactdp.engine.payoff import Payoff, tail_threshold
from exactdp.errors import AccuracyError
from exactdp.mechanisms.theta import Floats
from exactdp.numbers import log_rational

_SLACK = 2.0**-47
_SEARCH_STEPS = 80


@dataclass(frozen=True)
class TradeOffCurve:
    """Points of a trade-off curve, alpha ascending from 0 to 1, beta descending from 1 to 0, convex."""

    alpha: Floats
    beta: Floats


@dataclass(frozen=True)
class _Tail:
    """P(S >= h t) as logarithmic bounds, and the same for its complement."""

    low: float
    high: float
    rest_low: float
    rest_high: float


def _tails(contours: Contours, steps: list[int]) -> list[_Tail]:
    """Certified tails at lattice points of either sign; at t <= 0 through P(S >= h t) = 1 - P(S >= h (1 - t))."""
    bracket = contours.evaluate(Payoff.TAIL, [tail_threshold(t if t > 0 else 1 - t) for t in steps]).bracket
    other = bracket.one_minus()
    lows, highs = bracket.log_lower(), bracket.log_upper()
    rest_lows, rest_highs = other.log_lower(), other.log_upper()
    result = []
    for i, t in enumerate(steps):
        own = (float(lows[i]), float(highs[i]))
        rest = (float(rest_lows[i]), float(rest_highs[i]))
        result.append(_Tail(*own, *rest) if t > 0 else _Tail(*rest, *own))
    return result


def beta_bracket(contours: Contours, alpha: Fraction) -> tuple[float, float]:
    """Two doubles with lower <= beta(alpha) <= upper, for 0 < alpha < 1."""
    near = find_edge(contours, alpha)
    lattice = contours.lattice
    margin = 1
    for _ in range(_SEARCH_STEPS):
        steps = list(range(near - 1, near + 3)) if margin == 1 else [near - margin, near, near + 1, near + margin + 1]
        tails = dict(zip(steps, _tails(contours, steps), strict=True))
        side = _Side(alpha)
        above = [t for t in steps if side.alpha_at_least(tails[t])]
        below = [t for t in steps if side.alpha_at_most(tails[t])]
        if above and below:
            break
        margin *= 2
    else:
        raise AccuracyError(f"No edge of the trade-off curve could be proved around alpha = {float(alpha)}.")
    first, last = max(above), min(below)  # vertices with alpha_last <= alpha <= alpha_first, last > first
    used = [t for t in steps if first <= t <= last]
    betas = dict(zip(used, _tails(contours, [lattice.spread_steps + 1 - t for t in used]), strict=True))
    lower = 0.0
    upper = math.inf
    for t in used:
        slope = float(lattice.step * t - lattice.spread / 2)
        # The edge that starts at t going to smaller alpha (t to t + 1), and the one that ends there (t - 1 to t).
        for edge in (slope, slope - lattice.h):
            lower = max(lower, side.line(betas[t], tails[t], edge)[0])
    steepest = float(lattice.step * (last - 1) - lattice.spread / 2)
    flattest = float(lattice.step * first - lattice.spread / 2)
    upper = min(side.line(betas[first], tails[first], steepest)[1], side.line(betas[last], tails[last], flattest)[1])
    return max(lower, 0.0), min(upper, 1.0)


class _Side:
    """alpha seen from whichever end of [0, 1] it is near to, in logarithms."""

    def __init__(self, alpha: Fraction) -> None:
        self.small = alpha <= Fraction(1, 2)
        self.log = log_rational(alpha if self.small else 1 - alpha)
        self.error = _SLACK * (1 + abs(self.log))

    def alpha_at_least(self, tail: _Tail) -> bool:
        """Proved: alpha_t >= alpha."""
        if self.small:
            return tail.low >= self.log + self.error
        return tail.rest_high <= self.log - self.error

    def alpha_at_most(self, tail: _Tail) -> bool:
        """Proved: alpha_t <= alpha."""
        if self.small:
            return tail.high <= self.log - self.error
        return tail.rest_low >= self.log + self.error

    def line(self, beta: _Tail, tail: _Tail, log_slope: float) -> tuple[float, float]:
        """Bounds of beta_t + e^{log_slope} (alpha_t - alpha), the line through vertex t."""
        low, high = (tail.low, tail.high) if self.small else (tail.rest_low, tail.rest_high)
        sign = 1.0 if self.small else -1.0
        slack = self.error + _SLACK * (1 + abs(log_slope))
        # e^slope (alpha_t - alpha) = sign * (e^{slope + log tail} - e^{slope + log alpha}); the gap is at most a few times beta
        ends = [_gap(log_slope, low - slack, self.log + slack), _gap(log_slope, high + slack, self.log - slack)]
        ends = sorted(sign * e for e in ends)
        bottom, top = _exp(beta.low), _exp(beta.high)
        return (bottom + ends[0]) - _SLACK * (bottom + abs(ends[0])), (top + ends[1]) + _SLACK * (top + abs(ends[1]))


def _gap(log_factor: float, log_x: float, log_y: float) -> float:
    """e^log_factor (e^log_x - e^log_y) without overflow of the parts."""
    if log_x >= log_y:
        return -_exp(log_factor + log_x) * math.expm1(log_y - log_x)
    return _exp(log_factor + log_y) * math.expm1(log_x - log_y)


def _exp(x: float) -> float:
    return math.exp(min(x, 709.0))


def find_edge(contours: Contours, alpha: Fraction) -> int:
    """The t with alpha_{t+1} <= alpha <= alpha_t, as well as estimates can tell. Heuristic: affects width only."""
    lattice = contours.lattice
    h = lattice.h
    mirror = alpha > Fraction(1, 2)
    log_wanted = log_rational(1 - alpha if mirror else alpha)
    t = max(1, round(-float(ndtri_exp(log_wanted)) * math.sqrt(lattice.r) / h))
    low, high = 0, None  # tail(low) is too large (tail(0) > 1/2), tail(high) too small
    for _ in range(_SEARCH_STEPS):
        values = contours.evaluate(Payoff.TAIL, [tail_threshold(t)])
        value = float(values.bracket.log_upper()[0])
        slope = float(values.log_slope[0])
        # steps from here to the vertex just above the wanted tail
        move = math.floor((value - log_wanted) / (slope * h)) if slope > 0 else 1
        if value >= log_wanted:
            low = max(low, t)
            following = math.log1p(-min(slope * h, 1 - 1e-16)) + value
            if following < log_wanted or move == 0:
                break
            move = max(move, 1)
        else:
            high = t if high is None else min(high, t)
            move = min(move, -1)
        t = max(t + move, low + (1 if value >= log_wanted else 0))
        if high is not None and not low <= t < high:
            t = (low + high) // 2
        if high is not None and high - low <= 1:
            t = low
            break
    # t is the last vertex whose tail is at least the wanted one; for alpha near 1 the tail is 1 - alpha_{1 - t}
    return 1 - t - 1 if mirror else t


def tradeoff_curve(contours: Contours, num: int) -> TradeOffCurve:
    """About `num` points of the curve, every one a vertex up to its certified lower bound, made convex.

    The vertices are spread evenly in loss over the range in which alpha and beta are both above 1e-12.
    """
    lattice = contours.lattice
    reach = 7.1 * math.sqrt(lattice.widest)
    low, high = math.floor(-reach / lattice.h), math.ceil((lattice.r + reach) / lattice.h)
    count = min(num - 2, high - low + 1)
    steps = sorted({low + round(i * (high - low) / max(count - 1, 1)) for i in range(count)})
    alphas = [_exp((a.low + a.high) / 2) for a in _tails(contours, steps)]
    betas = [_exp(b.low) for b in _tails(contours, [lattice.spread_steps + 1 - t for t in steps])]
    points = [(0.0, 1.0), *sorted(zip(alphas, betas, strict=True)), (1.0, 0.0)]
    points = [p for p in points if p in ((0.0, 1.0), (1.0, 0.0)) or (0 < p[0] < 1 and 0 < p[1] < 1)]
    hull = lower_hull(points)
    return TradeOffCurve(np.array([p[0] for p in hull]), np.array([p[1] for p in hull]))


def lower_hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lower convex envelope of points sorted by abscissa (monotone chain, exact orientation tests)."""
    hull: list[tuple[float, float]] = []
    for x, y in points:
        while len(hull) >= 2 and not _turns_left(hull[-2], hull[-1], (x, y)):
            hull.pop()
        if hull and hull[-1][0] == x:
            if y < hull[-1][1]:
                hull[-1] = (x, y)
            continue
        hull.append((x, y))
    return hull


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    ax, ay, bx, by, cx, cy = map(Fraction, (*a, *b, *c))
    return (bx - ax) * (cy - by) > (by - ay) * (cx - bx)
