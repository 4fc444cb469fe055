"""The trade-off that bounds on Renyi divergences leave to a test.

A test rejects with probability alpha under one data set and 1 - beta under the other: two Bernoulli laws, or coins. If
D_a <= a rho between the outputs, for orders a >= 1 and in both directions, then the same holds between the coins (data
processing). So each order and direction excludes the small values of beta, and the largest bound of any set of orders is safe
(docs/theory/conversions.md).

Orders between 1/2 and 1 are another matter: zCDP says nothing of the kind about them, and for discrete Gaussian noise
D_a <= a rho is false there. `beta_estimate` uses them all the same, as AutoDP does; what it returns is no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import Floats
from exactdp.numbers import log_rational

_ZOOMS, _STEPS_BACK = 12, 30
_BISECTIONS = 16, 24, 30, 56  # of the gap: on the first grid to within a percent, then at better and better orders
_FROM_HALF = tuple((-0.5 * np.geomspace(1.0, 2e-4, 40)).tolist())
_SMALLEST_GAP, _LARGEST_GAP = 1e-300, 800.0  # of log((1 - alpha) / beta): outside, beta rounds to 1 - alpha or to 0


def beta_lower(rho: Fraction, alphas: list[Fraction]) -> list[float]:
    """For each alpha in (0, 1) a double below every beta that rho-zCDP allows, rho > 0. Proved by ball arithmetic.

    >>> round(beta_lower(Fraction(1, 10), [Fraction(1, 10)])[0], 6)
    0.769174
    """
    found = _best_orders(max(float(rho), 1e-32), alphas)
    return [_proved_beta(rho, alpha, *best) for alpha, best in zip(alphas, found, strict=True)]


def beta_estimate(rho: Fraction, alphas: list[Fraction]) -> list[float]:
    """For each alpha in (0, 1) the beta that orders from 1/2 on would exclude, rho > 0. An estimate: no bound for discrete noise.

    The orders from 1/2 to 1 in both directions are those from 0 to 1, as (1 - a) D_a(P || Q) = a D_{1 - a}(Q || P).

    >>> round(beta_estimate(Fraction(1, 10), [Fraction(1, 10)])[0], 6)
    0.769174
    """
    found = _best_orders(max(float(rho), 1e-32), alphas, _FROM_HALF)
    return [beta for _, _, beta in found]


def _best_orders(
    rho: float, alphas: list[Fraction], below_1: tuple[float, ...] = ()
) -> list[tuple[bool, float, float]]:
    """For each alpha a direction, an order minus 1, and the beta that they give. Heuristic: size only (`_proved_beta` proves).

    D_a / a has one peak as a function of the order, so that ever finer grids of orders close in on the best one; where the gap
    is the least at which D_a / a = rho for some order, that order is also the one with the largest D_a / a at this gap, which
    takes no root to find. `below_1` has orders below 1, less 1 and rising, with which the grid begins.
    """
    la, lc = np.array([[log_rational(a), log_rational(1 - a)] for a in alphas]).T
    most = 3 + 3 * np.sqrt((1 - la - lc) / rho)
    found = []
    for swapped in (False, True):
        lower = [np.full_like(la, t) for t in (*below_1, 0.0)]
        grid = np.vstack([*lower, np.geomspace(np.full_like(la, 1e-4), most, 40)])
        divergence = partial(_per_order, la, lc, swapped)
        gap = _gap(rho, partial(divergence, grid), grid, _BISECTIONS[0]).min(axis=0)
        for bisections in _BISECTIONS[1:]:
            t = _largest(partial(divergence, gap=gap), grid)
            gap = _gap(rho, partial(divergence, t), t, bisections)
        found.append((t, gap))
    second = found[1][1] < found[0][1]
    t, gap = np.where(second, found[1], found[0])
    return list(zip(second.tolist(), t.tolist(), np.exp(lc - gap).tolist(), strict=True))


def _largest(values: Callable[[Floats], Floats], grid: Floats) -> Floats:
    """In each column the place where the values are largest, by ever finer grids."""
    columns = np.arange(grid.shape[1])
    for _ in range(_ZOOMS):
        at = np.argmax(values(grid), axis=0)
        best = grid[at, columns]
        low, high = grid[np.maximum(at - 1, 0), columns], grid[np.minimum(at + 1, len(grid) - 1), columns]
        grid = np.linspace(low, high, 9)
    result: Floats = best
    return result


def _gap(rho: float, per_order: Callable[[Floats], Floats], like: Floats, bisections: int) -> Floats:
    """The gap = log((1 - alpha) / beta) at which D_a / a = rho, by bisection of its logarithm."""
    low, high = np.full_like(like, math.log(_SMALLEST_GAP)), np.full_like(like, math.log(_LARGEST_GAP))
    for _ in range(bisections):
        middle = (low + high) / 2
        above = per_order(np.exp(middle)) > rho
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    result: Floats = np.exp(high)
    return result


def _per_order(la: Floats, lc: Floats, swapped: bool, t: Floats, gap: Floats) -> Floats:
    """D_a / a of the two coins at order a = 1 + t > 0: log E e^{t loss} / (t (1 + t)), or E loss at t = 0.

    The loss is `gap` on acceptance and -`other` on rejection, under (alpha, 1 - alpha); `swapped` exchanges the coins.
    """
    other = np.logaddexp(0.0, lc + np.log(-np.expm1(-gap)) - la)  # log((1 - beta) / alpha)
    gain, loss, log_p, log_q = (other, gap, la + other, lc - gap) if swapped else (gap, other, lc, la)
    some = np.where(t == 0, 1.0, t)
    rise, fall = some * gain, some * loss
    less_1 = np.exp(log_p) * np.expm1(np.minimum(rise, 1.0)) + np.exp(log_q) * np.expm1(np.minimum(-fall, 1.0))
    is_near = (np.maximum(rise, -fall) < 1) & ((t > 0) | (less_1 > -0.5))
    near, far = np.log1p(np.where(is_near, less_1, 0.0)), np.logaddexp(log_p + rise, log_q - fall)
    moment = np.where(is_near, near, far) / (some * (1 + some))
    result: Floats = np.where(t == 0, np.exp(log_p) * gain - np.exp(log_q) * loss, moment)
    return result


def _proved_beta(r: Fraction, alpha: Fraction, swapped: bool, t: float, estimate: float) -> float:
    """A double just below the estimate where D_a > a rho is proved, or 0. D_a falls in beta up to 1 - alpha, where it is 0,
    so every beta that zCDP allows is larger; one more step down covers the decimal that the double prints as."""
    for power in range(_STEPS_BACK):
        beta = math.nextafter(estimate * (1 - 4.0**power * 2.0**-52), 0.0)
        exact = Fraction(beta)
        if beta > 0 and exact < 1 - alpha and _exceeds(r, alpha, exact, swapped, t):
            return math.nextafter(beta, 0.0)
    return 0.0


def _exceeds(r: Fraction, alpha: Fraction, beta: Fraction, swapped: bool, t: float) -> bool:
    """Is D_a > a rho certain for the two coins, a = 1 + t?"""
    with precision(BITS):
        coins = [(ball(alpha), ball(1 - beta)), (ball(1 - alpha), ball(beta))]
        losses = [(q, (q / p).log()) if swapped else (p, (p / q).log()) for p, q in coins]
        if t == 0:
            return bool(sum((p * loss for p, loss in losses), arb(0)) > ball(r))
        moment = sum((p * (arb(t) * loss).exp() for p, loss in losses), arb(0))
        return bool(moment.log() > arb(t) * (1 + arb(t)) * ball(r))
