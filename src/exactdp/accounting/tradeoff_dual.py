"""The trade-off curve from the privacy profile, for any composition.

    beta(alpha) = max over real epsilon of F(epsilon) = 1 - delta(epsilon) - e^epsilon alpha        (Dong, Roth and Su 2022)

Every epsilon gives a proven lower bound. F is concave in e^epsilon, so values at a few points also bound it from above: between
two points it is below the chords of the neighbouring points, extended (docs/theory/any-composition.md, Theorem 15).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from exactdp.accounting.tradeoff_curve import TradeOffCurve, bending_quantiles, lower_hull
from exactdp.brackets import Point, PointAt
from exactdp.doubles import FEW_SLACK, LINE_SLACK, POWER_SLACK, TINY, UNIT, Floats
from exactdp.numbers import log_rational
from exactdp.widths import CURVE, REMEDY, WIDE, relative_widths, warn_if_wide

_SEARCH_STEPS = 200
_STEEP = 700.0  # the largest difference of two logarithms that a search is told of
_CLOSEST, _NEAR = 1e-7, 5  # F is first looked at 1e-7 times 1, 4, ..., 256 away from its estimated top
_FAR, _FARTHEST = (
    150.0,
    700.0,
)  # where the search ends if the bounds are close already, and in any case: e^700 is a double
_ROUNDS = 120
_PATIENCE, _WORTH = (
    6,
    0.01,
)  # rounds in a row that narrow the bounds by less than a percent: the profile's own width is left
_CLOSE = 1e-13  # of a slope, relative to 1 + its size: nearer the top is not looked for
_GOOD_ENOUGH = 1e-11


def beta_from_profile(
    point_at: PointAt,
    alpha: Fraction,
    start: float,
    scale: float,
    at_zero: tuple[float, float] = (1.0, 1.0),
    enough: float = _GOOD_ENOUGH,
    top: float | None = None,
) -> tuple[float, float]:
    """Bounds of the trade-off curve at alpha, 0 < alpha < 1, searched from epsilon = start in steps of `scale`.

    `point_at` gives the profile at one or more epsilons, each a single answer (the worst over directions or pairs); `at_zero` are
    bounds of beta(0). The curve is symmetric, so it is 0 from alpha = beta(0) on. The search ends
    where the bounds are `enough` apart. `top` is where to look, if
    `estimated_top` has found it before.
    """
    if alpha >= Fraction(at_zero[1]):
        return 0.0, 0.0
    line = _Line(point_at, alpha)
    best = line.maximum(start, scale) if top is None else top
    line.scale_at(best)
    near = [_CLOSEST * 4.0**i for i in range(_NEAR)]
    cuts = _Cuts(line, best, sorted({best, *(best + d for d in near), *(best - d for d in near)}))
    # the curve is convex and symmetric: below the line from (0, beta(0)) to (beta(0), 0)
    highest = min(math.nextafter(float(Fraction(at_zero[1]) - alpha) * (1 + LINE_SLACK), 2.0), 1.0)
    distance, lower, upper, in_vain = near[-1], 0.0, math.inf, 0
    for _ in range(_ROUNDS):
        lower, top, where = cuts.bounds()
        in_vain = in_vain + 1 if upper - top <= _WORTH * (upper - lower) < math.inf else 0
        upper = min(upper, top)
        if math.isfinite(upper) and (upper - lower <= enough * upper or in_vain >= _PATIENCE):
            break
        if where is not None:
            if not cuts.add(where):
                break
        elif distance > (_FAR if line.unscaled(lower, up=False) >= highest * (1 - WIDE) else _FARTHEST):
            break
        else:  # the top may lie outside of what was looked at
            distance = 4 * distance if distance < 0.3 else distance + max(1.0, distance / 10)
            cuts.add(best + distance)
            cuts.add(best - distance)
    return line.unscaled(lower, up=False), min(line.unscaled(upper, up=True), highest)


def estimated_top(point_at: PointAt, alpha: Fraction, start: float, scale: float) -> float:
    """Where F is largest, searched from epsilon = start in steps of `scale`. Heuristic: affects width only."""
    return _Line(point_at, alpha).maximum(start, scale)


class _Cuts:
    """Values of F at some epsilons, as a function of x = e^{epsilon - centre} - 1, in which F is concave."""

    def __init__(self, line: _Line, centre: float, epsilons: list[float]) -> None:
        self._line, self._centre = line, centre
        self._epsilons = epsilons
        lows, highs = line.values([Fraction(e) for e in epsilons])
        self._known = dict(zip(epsilons, zip(lows.tolist(), highs.tolist(), strict=True), strict=True))

    def add(self, epsilon: float) -> bool:
        """One more point; False if it is there already."""
        if epsilon in self._known or not math.isfinite(epsilon) or epsilon - self._centre > _FARTHEST:
            return False
        lows, highs = self._line.values([Fraction(epsilon)])
        self._known[epsilon] = float(lows[0]), float(highs[0])
        self._epsilons = sorted(self._known)
        return True

    def bounds(self) -> tuple[float, float, float | None]:
        """The largest lower bound, an upper bound everywhere, and the epsilon at which the upper bound is attained."""
        lows, highs = (np.array([self._known[e][i] for e in self._epsilons]) for i in (0, 1))
        x = np.array([math.expm1(e - self._centre) for e in self._epsilons])
        top, where = concave_upper(self._gaps(x), lows, highs)
        return float(lows.max()), top, None if where is None else self._epsilon(x, *where)

    def _gaps(self, x: Floats) -> Floats:
        """The differences of x; where x is nearly -1 from those of epsilon, so that nothing cancels."""
        e = np.array(self._epsilons)
        with np.errstate(over="ignore"):
            far = np.exp(e[:-1] - self._centre) * np.expm1(np.diff(e))
        result: Floats = np.where(x[:-1] < -0.5, far, np.diff(x))
        return result

    def _epsilon(self, x: Floats, i: int, share: float) -> float | None:
        """The epsilon at a share of the way, in x, from point i to the next."""
        if x[i] < -0.5:
            low, high = self._epsilons[i : i + 2]
            return low + math.log1p(share * math.expm1(high - low)) if high - low < _FARTHEST else (low + high) / 2
        where = float(x[i] + share * (x[i + 1] - x[i]))
        return None if where <= -1 else self._centre + math.log1p(where)


def _finite(rise: float) -> float:
    """A difference of logarithms for a search: within limits; what is not a number counts as falling."""
    return min(max(rise, -_STEEP), _STEEP) if not math.isnan(rise) else -_STEEP


class _Line:
    """F at one alpha."""

    def __init__(self, point_at: PointAt, alpha: Fraction) -> None:
        self._point_at = point_at
        self._log_alpha, self._log_other = log_rational(alpha), log_rational(1 - alpha)
        self._small = alpha <= Fraction(1, 2)
        self._log_unit = 0.0

    def maximum(self, start: float, scale: float) -> float:
        """Where F is largest. Heuristic: affects width only.

        F' has the sign of D(epsilon) - e^epsilon alpha, D = -d delta / d epsilon; at negative epsilon that of 1 - alpha - delta
        - D at -epsilon. Both fall, as do the logarithms of what is compared, whose difference has its root there.
        """

        @cache
        def rise(e: float) -> float:
            point = self._point_at([Fraction(abs(e))])
            density = float(point.log_density[0])
            if e >= 0:
                return _finite(density - e - self._log_alpha)
            if self._small:  # 1 - delta may be far below the roundings of delta
                log_rest = float(point.rest.log_upper()[0])
                if density >= log_rest:
                    return -_STEEP
                return _finite(log_rest + math.log(-math.expm1(density - log_rest)) - self._log_alpha)
            return _finite(self._log_other - float(np.logaddexp(point.delta.log_upper()[0], density)))

        low, high, step = start, start, scale
        while rise(low) <= 0 and step < 1e9:
            low, high, step = low - step, low, 2 * step
        step = scale
        while rise(high) > 0 and step < 1e9:
            low, high, step = high, high + step, 2 * step
        if not (low < high and rise(low) > 0 >= rise(high)):
            return (low + high) / 2
        from scipy.optimize import brentq  # takes as long to import as the rest of this package

        return float(brentq(rise, low, high, xtol=_CLOSE, rtol=_CLOSE, maxiter=_SEARCH_STEPS, disp=False))

    def scale_at(self, epsilon: float) -> None:
        """Measure F from now on in units of 1 - delta at this epsilon, so that nothing underflows."""
        self._log_unit = float(self._point_at([Fraction(epsilon)]).rest.log_upper()[0])

    def values(self, epsilons: list[Fraction]) -> tuple[Floats, Floats]:
        """Bounds of F in units of e^{log_unit}; for negative epsilon as e^epsilon (1 - alpha - delta(-epsilon)), so that nothing
        cancels for alpha near 1."""
        point = self._point_at([abs(e) for e in epsilons])
        e = np.array([float(x) for x in epsilons])
        return dual_values(point, e, (self._log_alpha, self._log_other, self._small), self._log_unit)

    def unscaled(self, value: float, up: bool) -> float:
        """A value in units of e^{log_unit} as a double, rounded up or down."""
        return unscaled(value, self._log_unit, up)


def unscaled(value: float, log_unit: float, up: bool) -> float:
    """value e^{log_unit} as a double, rounded up or down; never negative."""
    if value <= 0:
        return 0.0
    log = math.log(value) + log_unit
    slack = LINE_SLACK * (2 + abs(log) + abs(log_unit))
    exact = math.exp(min(log + (slack if up else -slack), 1.0))
    return math.nextafter(exact, math.inf) if up else max(math.nextafter(exact, 0.0), 0.0)


def dual_values(point: Point, e: Floats, alpha: tuple[Any, Any, Any], unit: Any) -> tuple[Floats, Floats]:
    """Bounds of F(e) = 1 - delta(e) - e^e alpha in units of e^unit, from points at |e|; elementwise.

    `alpha` is log(alpha), log(1 - alpha) and whether alpha is at most 1/2. For negative e, 1 - delta(e) = e^e (1 - delta(-e));
    where alpha is near 1, F is e^e (1 - alpha - delta(-e)), so that nothing cancels. What is cut to stay in the range of
    doubles says nothing on the side on which that would matter.
    """
    log_alpha, log_other, small = alpha
    slack = LINE_SLACK * (2 + np.abs(e) + np.abs(log_alpha) + np.abs(log_other) + np.abs(unit))
    slack = slack + LINE_SLACK * np.abs(point.rest.log_scale)
    turned = np.minimum(e, 0.0) - unit
    log_factor, log_cost = point.rest.log_scale + turned, e + log_alpha - unit
    factor, cost, shrink = (np.exp(np.minimum(log, 690.0)) for log in (log_factor, log_cost, turned))
    with np.errstate(over="ignore"):
        least, most = point.rest.lower * factor, point.rest.upper * factor
    scaled = np.minimum(least, 1e300), np.where((log_factor > 690.0) | (most > 1e300), np.inf, most)
    deltas, other = (point.delta.lower_floats(), point.delta.upper_floats()), np.exp(log_other)
    ends = []
    for sign, i in ((-1, 0), (1, 1)):
        above = scaled[i] - cost + sign * slack * (scaled[i] + cost)
        if sign < 0:
            above = np.where(log_cost > 690.0, -np.inf, above)  # the cost was cut: nothing is known from below
        below = shrink * ((other - deltas[1 - i]) + sign * slack * (other + deltas[1 - i]))
        below = np.where(turned > 690.0, sign * np.inf, below)
        ends.append(np.where((e >= 0) | small, above, below) + sign * TINY)
    return ends[0], ends[1]


def concave_upper(gap: Floats, lows: Floats, highs: Floats) -> tuple[float, tuple[int, float] | None]:
    """A bound of a concave function everywhere and where it is attained, from bounds of its values at points with these gaps.

    Infinite if the top may lie outside. Between two points the function is below the chords of the neighbouring pairs, extended.
    The place is a point and a share of the way to the next.
    """
    # later or earlier values are proved higher
    fallen = [float(lows[i + 1 :].max(initial=-math.inf)) >= highs[i] for i in range(len(lows))]
    rising = [float(lows[:i].max(initial=-math.inf)) >= highs[i] for i in range(len(lows))]
    left = max((i for i in range(len(lows)) if fallen[i]), default=None)
    right = min((i for i in range(len(lows)) if rising[i]), default=None)
    if left is None or right is None or left >= right or not (gap[left:right] > 0).all():
        return math.inf, None
    # the top lies in [x_left, x_right]; chords may use the points outside as well
    best, where = -math.inf, None
    for i in range(left, right):
        lines = []
        if i > 0 and gap[i - 1] > 0:
            share = gap[i] / gap[i - 1]
            lines.append((float(highs[i]), float(highs[i] + (highs[i] - lows[i - 1]) * share)))
        if i + 2 < len(lows) and gap[i + 1] > 0:
            share = gap[i] / gap[i + 1]
            lines.append((float(highs[i + 1] + (highs[i + 1] - lows[i + 2]) * share), float(highs[i + 1])))
        top, t = _top_of_least(lines)
        if top * (1 + FEW_SLACK) > best:
            best, where = top * (1 + FEW_SLACK), (i, t)
    return (best, where) if math.isfinite(best) else (math.inf, None)


def _top_of_least(lines: list[tuple[float, float]]) -> tuple[float, float]:
    """The largest value over [0, 1] of the least of one or two linear functions, and where; infinite if there is none."""
    if not all(math.isfinite(end) for line in lines for end in line) or not lines:
        return math.inf, 0.5
    ends = [(min(line[0] for line in lines), 0.0), (min(line[1] for line in lines), 1.0)]
    if len(lines) == 2:
        (a0, a1), (b0, b1) = lines
        rise = (a1 - a0) - (b1 - b0)
        if rise != 0 and 0 < (t := (b0 - a0) / rise) < 1:
            ends.append((max(a0 + (a1 - a0) * t, b0 + (b1 - b0) * t), t))
    return max(ends)


def curve_from_profile(
    point_at: PointAt,
    reach: float,
    num: int,
    at_zero: float = 1.0,
    remedy: str = REMEDY,
    enough: float = WIDE,
    deviation: float = 0.0,
) -> TradeOffCurve:
    """At most `num` points on or below the trade-off curve, convex, from slopes e^-reach to e^reach.

    It goes from (0, at_zero) to (at_zero, 0) and on to (1, 0); `at_zero` is at most beta(0). A warning tells where 1 - delta is
    wider than `enough`. With the loss's `deviation` the points stand where the curve bends on logarithmic axes, were the loss
    Gaussian.
    """
    if deviation:
        z = bending_quantiles(deviation, num - 2)[::-1]
        losses, alphas = deviation * z - deviation**2 / 2, ndtr(-z).tolist()
    else:
        losses, alphas = evenly(reach, max(num, 41)), (0.5 * (1 + np.tanh(np.linspace(-12, 12, num - 2)))).tolist()
    point = point_at([Fraction(e) for e in losses.tolist()])
    # F for each slope, rounded down
    with np.errstate(over="ignore"):  # an infinite slope gives a point that is left out
        starts, slopes = point.rest.lower_floats() * (1 - 2 * FEW_SLACK), np.exp(losses) * (1 + POWER_SLACK)
    best = [int(np.argmax(starts - slopes * a)) for a in alphas]
    betas = [float(starts[i] - slopes[i] * a) for i, a in zip(best, alphas, strict=True)]
    used = sorted({i for i, b in zip(best, betas, strict=True) if b > 0})
    widths = relative_widths(point.rest.log_lower()[used], point.rest.log_upper()[used])
    warn_if_wide(CURVE, widths[~(widths <= enough)], remedy)
    inside = [(a, min(b, 1 - UNIT)) for a, b in zip(alphas, betas, strict=True) if b >= 0 and 0 < a < 1]
    corner = [(at_zero, 0.0)] if at_zero < 1 else []
    inside = [(a, b) for a, b in inside if a < at_zero]
    hull = lower_hull([(0.0, at_zero), *inside, *corner, (1.0, 0.0)])
    return TradeOffCurve(np.array([p[0] for p in hull]), np.array([p[1] for p in hull]))


def evenly(reach: float, num: int) -> Floats:
    """`num` losses from -reach to reach, each with its negative; a grid has those of every coarser one that divides it."""
    shares = [Fraction(2 * i, num - 1) - 1 for i in range(num)]
    return np.array([reach * share.numerator / share.denominator for share in shares])
