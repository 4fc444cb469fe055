"""Families of (epsilon, delta): their trade-off curve, and back again (docs/theory/conversions.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision, upper_double
from exactdp.elementwise import each_rounded
from exactdp.errors import InvalidInputError
from exactdp.numbers import Number, rational, read_alpha, read_delta, read_epsilon, shown


@steady
def fdp_beta(pairs: Iterable[tuple[Number, Number]], alpha: Number) -> float:
    """The trade-off curve at alpha that a family of (epsilon, delta) guarantees implies, rounded down.

    max over pairs of 0, 1 - delta - e^epsilon alpha and e^-epsilon (1 - delta - alpha) (Wasserman and Zhou 2010; Kairouz et al.
    2015).

    >>> fdp_beta([(0, 0.1)], 0.2)
    0.7
    """
    a = read_alpha(alpha)
    best = 0.0
    for pair in pairs:
        try:
            epsilon, delta = pair
        except (TypeError, ValueError):
            raise InvalidInputError(f"Pairs of epsilon and delta must be given. Found {shown(pair)}.") from None
        e, d = rational(epsilon, "epsilon"), read_delta(delta)
        with precision(BITS):
            x = ball(min(max(e, Fraction(-(10**6))), Fraction(10**6)))  # farther out the lines are worth nothing
            lines = [1 - ball(d) - x.exp() * ball(a)] if abs(e) < 10**6 or not a else []
            lines.append((-x).exp() * (1 - ball(d) - ball(a)) if e < 10**6 else arb(0))
            for line in lines:
                if bool(line > 0):
                    best = max(best, _down(line))
    return min(best, 1.0)


def _down(value: arb) -> float:
    """A double at most the ball's lower end, which is positive; exact where that is a double."""
    below = float(value.lower())
    return below if bool(arb(below) <= value) else math.nextafter(below, 0.0)


def _points(curve: object) -> list[tuple[Fraction, Fraction]]:
    """The points of a curve, refused unless they are points of the unit square that begin at alpha = 0."""
    if isinstance(curve, TradeOffCurve):
        alpha, beta = np.asarray(curve.alpha, dtype=float), np.asarray(curve.beta, dtype=float)
        inside = all(bool(np.all((x >= 0) & (x <= 1))) for x in (alpha, beta))  # NaN is not
        if alpha.ndim == 1 and alpha.shape == beta.shape and inside and 0 in alpha:
            return [(Fraction(a), Fraction(b)) for a, b in zip(alpha.tolist(), beta.tolist(), strict=True)]
    raise InvalidInputError(
        f"The curve must be a TradeOffCurve with points from alpha = 0 on, between 0 and 1. Found {shown(curve)}."
    )


@steady
def fdp_delta(curve: TradeOffCurve, epsilon: Any) -> Any:
    """delta at epsilon of the polygon through the points of `curve`, rounded up: the largest 1 - beta - e^epsilon alpha.

    It is the delta of that polygon. It bounds the delta of another curve from above where the whole polygon lies on or below that
    curve; the points of `tradeoff()` lie on it, so their polygon does not, unless it has every vertex. For a composition use
    `delta`. epsilon is a number or an array, finite or not.
    """
    points = _points(curve)

    def at(e: Fraction | float) -> float:
        if isinstance(e, float):
            return 1.0 if e < 0 else min(max(upper_double(ball(1 - b)) for a, b in points if a == 0), 1.0)
        slope = ball(e).exp()
        return min(max(0.0, *(upper_double(1 - ball(b) - slope * ball(a)) for a, b in points)), 1.0)

    with precision(BITS):
        return each_rounded(epsilon, read_epsilon, lambda es: [at(e) for e in es])
