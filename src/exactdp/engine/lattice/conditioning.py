"""Conditioning on one coarse mechanism, where the loss comes in clumps and no single tilt is good.

With X the noise of one mechanism (weight w, half = D^2 / (2 s)) and the rest of the composition,

    delta(epsilon) = sum over x of P(X = x) delta_rest(epsilon - w x - half)
    P(S >= y)      = sum over x of P(X = x) P(S_rest >= y - w x),

sums of non-negative terms: what the rest knows in relative terms, the whole knows too (Theorem 7 of docs/theory/engine.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.doubles import LINE_SLACK, REMAINDER_SLACK, Floats
from exactdp.engine.lattice.lattice import Group, Lattice
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

_CLUMPY = 3.0  # the weight of one unit of noise, in standard deviations of the rest, from which clumps are expected
_REACH = 60.0  # terms beyond exp(-_REACH) of the largest are left to the remainder
_MOST_TERMS = 2000


@dataclass(frozen=True)
class Split:
    """A composition as one mechanism and the rest."""

    one: Group
    rest: Lattice

    @property
    def half(self) -> Fraction:
        """D^2 / (2 s), the mechanism's share of R/2."""
        return self.one.sensitivity * self.one.weight / 2


def split_off_coarsest(lattice: Lattice) -> Split | None:
    """The mechanism with the largest weight and the rest, if the loss comes in clumps. Heuristic: affects accuracy only."""
    if sum(g.count for g in lattice.groups) < 2:
        return None
    coarse = max(lattice.groups, key=lambda g: g.weight)
    groups = [g if g is not coarse else Group(g.sigma2, g.sensitivity, g.count - 1) for g in lattice.groups]
    rest = Lattice(tuple(g for g in groups if g.count))
    if float(coarse.weight) < _CLUMPY * math.sqrt(rest.r):
        return None
    return Split(Group(coarse.sigma2, coarse.sensitivity, 1), rest)


def support(split: Split, y: float, upper_tail: bool) -> list[int]:
    """The x that can matter for P(S >= y) or delta (`upper_tail`) or for their complements; none if they are too many.

    Heuristic: affects accuracy only.

    By the sub-Gaussian bounds the term of x is about exp(-x^2 / (2 s) - max(0, +/-(y - w x))^2 / (2 R_rest)).
    """
    s, w, r = float(split.one.sigma2), float(split.one.weight), split.rest.r

    def inner(x: int) -> float:  # of the rest's share
        return max(0.0, (y - w * x) if upper_tail else (w * x - y)) ** 2 / (2 * r)

    def outer(x: int) -> float:  # of P(X >= x)
        return max(x, 0) ** 2 / (2 * s)

    best = min((0, math.floor(y / w), math.ceil(y / w)), key=lambda x: x * x / (2 * s) + inner(x))
    limit = best * best / (2 * s) + inner(best) + _REACH
    low = high = best
    while outer(1 - low) + (inner(low) if upper_tail else 0.0) < limit and high - low < _MOST_TERMS:
        low -= 1  # until what `mix` charges for x < low is negligible
    while outer(high + 1) + (0.0 if upper_tail else inner(high)) < limit and high - low < _MOST_TERMS:
        high += 1
    return list(range(low, high + 1)) if high - low < _MOST_TERMS else []


def mix(split: Split, xs: list[int], lows: Floats, highs: Floats, rising: bool) -> tuple[float, float, float]:
    """log_scale, lower and upper of sum over all x of P(X = x) f(x), from logarithmic bounds of f at consecutive xs.

    f must be monotone in x with values in [0, 1], increasing if `rising`: beyond the last x it is at most 1 or f there, and
    beyond the first likewise; P(X > b) and P(X < a) are bounded by the sub-Gaussian tail.
    This inequality is the guarantee. The upper bound may be infinite.
    """
    noise = DiscreteGaussian(split.one.sigma2)
    weights = log_weights(split, xs)
    above = noise.log_tail_bound(xs[-1] + 1) + (0.0 if rising else float(highs[-1]))
    below = noise.log_tail_bound(1 - xs[0]) + (float(highs[0]) if rising else 0.0)
    scale = float(np.max(weights + highs))
    slack = LINE_SLACK + 2.0**-51 * (np.abs(weights) + np.abs(highs) + abs(scale))
    lower = float(np.sum(np.exp(weights + lows - scale) * (1 - slack)))
    upper = float(np.sum(np.exp(weights + highs - scale) * (1 + slack)))
    beyond = math.exp(above - scale) + math.exp(below - scale) if max(above, below) - scale < 700 else math.inf
    return scale, max(lower * (1 - LINE_SLACK), 0.0), (upper + beyond * (1 + REMAINDER_SLACK)) * (1 + LINE_SLACK)


def log_weights(split: Split, xs: list[int]) -> Floats:
    """log P(X = x)."""
    noise = DiscreteGaussian(split.one.sigma2)
    return np.array([noise.log_pmf(x) for x in xs])


def decisive(split: Split, xs: list[int], lows: Floats, highs: Floats, width: float) -> list[int]:
    """The positions in xs whose own width matters to a relative `width` of the sum. Heuristic: affects accuracy only."""
    sizes = log_weights(split, xs) + highs
    shares = np.exp(sizes - float(np.max(sizes))) * -np.expm1(np.minimum(lows - highs, 0.0))
    return [int(i) for i in np.flatnonzero(shares > 0.1 * width / len(xs))]
