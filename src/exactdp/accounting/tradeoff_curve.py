"""Points of a trade-off curve, and the convex hull that makes them one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr

from exactdp.arithmetic_state import steady
from exactdp.doubles import EXP_SLACK, TINY, Floats
from exactdp.notebooks import repr_html
from exactdp.numerals import at_least, counted

MOST_POINTS = 100_000
"""Of a curve for plotting."""
FARTHEST = 7.1
"""Deviations from the mean loss at which a drawn curve ends: beyond are the last 1e-12 of alpha and of beta."""
_PRINTED = 7  # points
_FINE_GRID = 801
_EVERYWHERE = 0.15  # so that where a curve is straight there are still some points to be read


@steady
@dataclass(frozen=True)
class TradeOffCurve:
    """Points of a trade-off curve, alpha ascending from 0 to 1, beta descending from 1 to 0, convex.

    For plotting: the points are on or below the exact curve, but a line between two of them may lie above it where the curve
    bends. `beta_bounds` is certified at every alpha.
    """

    _repr_html_ = repr_html

    alpha: Floats
    beta: Floats

    def __str__(self) -> str:
        last = len(self.alpha) - 1
        chosen = sorted({round(i * last / (_PRINTED - 1)) for i in range(_PRINTED)}) if last >= 0 else []
        lines = [f"Trade-off curve: {counted(last + 1, 'point')} on or below the exact one"]
        # rounded down both: the exact curve falls, so it is above the smaller beta at the smaller alpha
        lines += [f"  alpha {at_least(self.alpha[i])}: beta at least {at_least(self.beta[i])}" for i in chosen]
        return "\n".join(lines)


def bending_quantiles(deviation: float, num: int) -> Floats:
    """`num` ascending normal quantiles z, each with its mirror image `deviation` - z, between which a trade-off curve bends alike
    on logarithmic axes, were it the continuous Gaussian's: alpha = Phi(-z), beta = Phi(z - deviation).

    Between points whose log slopes differ by d the lines below the curve fall short of it by about hazard * d^2 / 8 in log alpha
    and in log beta, with the hazard of each; what is seen is the smaller. Heuristic: affects what is drawn only.
    """
    z = np.linspace(-FARTHEST, deviation + FARTHEST, _FINE_GRID)
    log_hazards = [-x * x / 2 - log_ndtr(-x) for x in (z, deviation - z)]
    weights = np.exp(np.minimum(*log_hazards) / 2) + _EVERYWHERE
    weights = weights + weights[::-1]
    shares = np.concatenate([[0.0], np.cumsum(weights[1:] + weights[:-1])])
    found = np.interp(np.linspace(0.0, shares[-1], num), shares, z)
    result: Floats = (found + (deviation - found[::-1])) / 2
    return result


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
    """Whether c lies to the left of the line from a to b, exactly: in doubles where their rounding cannot matter.

    Of products of differences each is within 4 units of its size; what underflows loses less than `TINY`.
    """
    left, right = (b[0] - a[0]) * (c[1] - b[1]), (b[1] - a[1]) * (c[0] - b[0])
    if abs(left - right) > EXP_SLACK * (abs(left) + abs(right)) + TINY:
        return left > right
    ax, ay, bx, by, cx, cy = map(Fraction, (*a, *b, *c))
    return (bx - ax) * (cy - by) > (by - ay) * (cx - bx)
