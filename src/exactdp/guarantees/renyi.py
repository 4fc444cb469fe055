"""Renyi DP: the epsilon and the delta that divergences imply, rounded up by balls (docs/theory/conversions.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision, upper_double
from exactdp.errors import InvalidInputError
from exactdp.numbers import Number, rational, read_share, shown


@steady
def rdp_epsilon(divergences: Mapping[Number, Number], delta: Number) -> float:
    """The least epsilon that Renyi divergences imply at delta, rounded up; `divergences` maps orders a > 1 to bounds of D_a.

    min over a of D_a + log((a-1)/a) - (log delta + log a)/(a-1) (Canonne, Kamath and Steinke 2020, Proposition 12).

    >>> round(rdp_epsilon({a: a * 0.5 for a in range(2, 200)}, "1e-6"), 4)
    5.2224
    """
    d = read_share(delta, "delta")
    return _least(divergences, lambda a, r: r + ((a - 1) / a).log() - (ball(d).log() + a.log()) / (a - 1))


@steady
def rdp_epsilon_simple(divergences: Mapping[Number, Number], delta: Number) -> float:
    """min over a of D_a + log(1/delta)/(a-1), rounded up (Mironov 2017, Proposition 3)."""
    d = read_share(delta, "delta")
    return _least(divergences, lambda a, r: r - ball(d).log() / (a - 1))


@steady
def rdp_delta(divergences: Mapping[Number, Number], epsilon: Number) -> float:
    """The least delta that Renyi divergences imply at epsilon, rounded up, at most 1: the inverse of `rdp_epsilon`."""
    e = rational(epsilon, "epsilon")
    found = _least(divergences, lambda a, d: ((a - 1) * (d - ball(e))).exp() / a * ((a - 1) * (1 - 1 / a).log()).exp())
    return min(found, 1.0)


@steady
def rdp_delta_simple(divergences: Mapping[Number, Number], epsilon: Number) -> float:
    """min over a of e^{(a-1)(D_a - epsilon)}, rounded up, at most 1."""
    e = rational(epsilon, "epsilon")
    return min(_least(divergences, lambda a, d: ((a - 1) * (d - ball(e))).exp()), 1.0)


def _least(divergences: Mapping[Number, Number], value: Callable[[arb, arb], arb]) -> float:
    if not isinstance(divergences, Mapping):
        raise InvalidInputError(
            f"Divergences must be given by their orders, as in {{2: 0.5}}. Found {shown(divergences)}."
        )
    if not divergences:
        raise InvalidInputError("At least one Renyi order must be given. Found none.")
    best = math.inf
    for order, divergence in divergences.items():
        a, d = rational(order, "order"), rational(divergence, "divergence")
        if a <= 1 or d < 0:
            raise InvalidInputError(
                f"Orders must be above 1 and divergences at least 0. Found {shown(order)}: {shown(divergence)}."
            )
        with precision(BITS):
            best = min(best, upper_double(value(ball(a), ball(d))))
    return best
