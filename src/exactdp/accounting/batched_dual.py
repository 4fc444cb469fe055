"""Many points of trade-off curves at once, each from its own privacy profile: the dual of tradeoff_dual.py in arrays.

F(epsilon) = 1 - delta(epsilon) - e^epsilon alpha is concave in x = e^epsilon. With values at x_1 < x_2 < x_3 < x_4 around its
top, F(x_2) >= F(x_1) and F(x_3) >= F(x_4) proved, the top lies between x_1 and x_4, and there F is below the chords of the
neighbouring points, extended (docs/theory/any-composition.md, Theorem 15). Where that is not narrow, the caller asks elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.tradeoff_dual import dual_values, unscaled
from exactdp.brackets import Point
from exactdp.doubles import FEW_SLACK, Floats, Ints
from exactdp.numbers import log_rational

PointsAt = Callable[[Ints, list[Fraction]], Point]
"""Certified points: which questions, and the epsilon of each."""

_STEPS = 12
_CLOSE = 1e-7  # nearer the top is not looked for
_OFFSETS = (-4.0, -1.5, 1.5, 4.0)  # where F is looked at around its top
_FINEST = 1e-15
_NEAREST = 1e-9  # to the top, of the points that are looked at


def betas_from_profiles(
    points_at: PointsAt, alphas: list[Fraction], starts: Floats, deviations: Floats
) -> tuple[Floats, Floats]:
    """Bounds of beta at each question's alpha, 0 < alpha < 1; 0 and 1 where they could not be found in this way."""
    if not alphas:
        return np.empty(0), np.empty(0)
    logs = {a: (log_rational(a), log_rational(1 - a)) for a in dict.fromkeys(alphas)}
    log_alpha, log_other = np.array([logs[a] for a in alphas]).T
    small = np.array([a <= Fraction(1, 2) for a in alphas])
    alpha = log_alpha, log_other, small
    tops = _tops(points_at, log_alpha, starts, deviations)
    n = len(alphas)
    point = points_at(np.arange(n), [Fraction(abs(e)) for e in tops.tolist()])
    unit = point.rest.log_upper()
    low, high = dual_values(point, tops, alpha, unit)
    # F falls by half the curvature times the square of the distance: by some widths at the points that are looked at
    quantile = ndtri_exp(log_alpha)
    log_curvature = tops + log_alpha - unit - quantile**2 / 2 - log_alpha - 0.5 * math.log(2 * math.pi)
    with np.errstate(all="ignore"):
        reach = np.sqrt((np.abs(high - low) + _FINEST * np.abs(high)) / np.exp(log_curvature) * deviations)
    reach = np.clip(np.nan_to_num(reach, nan=1.0), _NEAREST, 0.1 * deviations)
    epsilons = (tops[:, None] + reach[:, None] * np.array(_OFFSETS)).ravel()
    place = np.repeat(np.arange(n), len(_OFFSETS))
    point = points_at(place, [Fraction(abs(e)) for e in epsilons.tolist()])
    each = log_alpha[place], log_other[place], small[place]
    around = [ends.reshape(n, -1) for ends in dual_values(point, epsilons, each, unit[place])]
    best = np.maximum(low, around[0].max(axis=1))
    top = _top_of_chords(epsilons.reshape(n, -1), around[0], around[1])
    found = np.isfinite(top)
    lower, upper = np.zeros(n), np.ones(n)
    for i in np.flatnonzero(found).tolist():
        lower[i] = unscaled(float(best[i]), float(unit[i]), up=False)
        upper[i] = min(unscaled(float(top[i]), float(unit[i]), up=True), 1.0)
    return lower, upper


def _tops(points_at: PointsAt, log_alpha: Floats, starts: Floats, deviations: Floats) -> Floats:
    """Where F is largest: D(e) e^{-e} = alpha, D = -d delta / d epsilon. Heuristic: affects width only.

    For a Gaussian the normal quantile of D(e) e^{-e} is linear in e, so steps along that line converge at once.
    """
    e, wanted = starts.copy(), ndtri_exp(log_alpha)
    active = np.arange(len(e))
    for _ in range(_STEPS):
        at = e[active]
        point = points_at(active, [Fraction(x) for x in at.tolist()])
        share = np.minimum(point.log_density - at, -1e-16)
        move = deviations[active] * (ndtri_exp(share) - wanted[active])
        move = np.clip(np.nan_to_num(move), -4 * deviations[active], 4 * deviations[active])
        e[active] += move
        active = active[np.abs(move) > _CLOSE]
        if not len(active):
            break
    return e


def _top_of_chords(epsilons: Floats, low: Floats, high: Floats) -> Floats:
    """An upper bound of the largest value of F from bounds at four points of each row; infinite where nothing is proved.

    Between x_2 and x_3 the function is below both outer chords extended, between x_1 and x_2 below the middle chord extended to
    the left, between x_3 and x_4 below the same extended to the right.
    """
    # differences of x = e^epsilon, relative to that at the second point
    gaps = np.expm1(np.diff(epsilons, axis=1)) * np.exp(epsilons[:, :-1] - epsilons[:, 1:2])
    with np.errstate(all="ignore"):
        rising, falling = low[:, 1] >= high[:, 0], low[:, 2] >= high[:, 3]
        # both outer lines on [0, 1], from x_2 to x_3
        a0, a1 = high[:, 1], high[:, 1] + (high[:, 1] - low[:, 0]) * gaps[:, 1] / gaps[:, 0]
        b0, b1 = high[:, 2] + (high[:, 2] - low[:, 3]) * gaps[:, 1] / gaps[:, 2], high[:, 2]
        rise = (a1 - a0) - (b1 - b0)
        t = (b0 - a0) / rise
        crossing = np.maximum(a0 + (a1 - a0) * t, b0 + (b1 - b0) * t)
        ends = np.maximum(np.minimum(a0, b0), np.minimum(a1, b1))
        middle = np.where((rise != 0) & (t > 0) & (t < 1), np.maximum(crossing, ends), ends)
        left = a0 + np.maximum(a0 - low[:, 2], 0.0) * gaps[:, 0] / gaps[:, 1]
        right = b1 + np.maximum(b1 - low[:, 1], 0.0) * gaps[:, 2] / gaps[:, 1]
        top = np.maximum(middle, np.maximum(left, right))
        spread = np.abs(a1 - a0) + np.abs(b1 - b0) + np.abs(top)
        result: Floats = np.where(rising & falling & np.isfinite(top), top + FEW_SLACK * 8 * spread, np.inf)
    return result
