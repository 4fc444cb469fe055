"""The slopes of delta from a list of all values of the loss, where these are few and on no usable lattice (slopes.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import UNIT, Floats
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.slopes import Slopes
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.tilted_squares import untilted_variance

MOST_VALUES = 1 << 19
_CUT = 45.0  # values less likely than e^-45 under the tilt are left out
_MOST_COPIES = 256
_SAME = 1e-13  # losses this close to epsilon, relative to what they are made of, count as equal to it


@dataclass(frozen=True)
class _Copies:
    """The sum k of the noise of all copies of one mechanism under the tilt: each k, its probability, and E [sum X^2; k]."""

    mechanism: DiscreteGaussian
    count: int
    sums: Floats
    weights: Floats
    squares: Floats


def listed_slopes(mechanisms: Mapping[DiscreteGaussian, int], tilt: Fraction, epsilon: Fraction) -> Slopes | None:
    """The slopes at one epsilon, from a list of losses under the tilt; None where they are too many to list."""
    if math.prod(_size(m, n) for m, n in mechanisms.items()) > MOST_VALUES or max(mechanisms.values()) > _MOST_COPIES:
        return None
    parts = [_copies(m, n, float(tilt)) for m, n in mechanisms.items()]
    with precision(BITS):
        log_scale = float((TotalLoss.of(mechanisms).log_moment(tilt) - ball(tilt * epsilon)).mid())
        bases = [_base(p, epsilon / len(parts)) for p in parts]
    excess = np.zeros((1,) * len(parts))  # L - epsilon
    for axis, (part, base) in enumerate(zip(parts, bases, strict=True)):
        excess = excess + _along(
            base + part.sums * float(part.mechanism.sensitivity / part.mechanism.sigma2), axis, parts
        )
    same = np.abs(excess) <= _SAME * (1 + abs(float(epsilon)) + float(np.max(np.abs(excess))))
    on_atom, side = np.where(same, 1.0, 0.0), np.where(same, 0.0, np.sign(excess))
    with np.errstate(over="ignore"):  # on the side that is not used
        tilted = np.exp(-float(tilt) * excess)
        fallen = np.where(side > 0, np.exp(-(1 + float(tilt)) * excess), 0.0)
    under = np.where(side < 0, tilted, 0.0)
    # E (X^2 - V) = 0, so that 1{L > epsilon} - 1 serves as well, and does not cancel where delta is near 1
    above = np.where(side > 0, tilted, 0.0) if tilt > 0 else -(under + on_atom)
    values = [_slopes_of(i, parts, above, fallen, on_atom) for i in range(len(parts))]
    by_epsilon, atom, below = (float(_marginal(x, parts, 0) @ parts[0].weights) for x in (fallen, on_atom, under))
    rounding = UNIT * (64 + 8 * float(np.max(np.abs(excess))))
    by_rho, sizes, kinks = (np.array(column) for column in zip(*values, strict=True))
    errors = sizes * rounding + kinks / 2
    epsilon_error = by_epsilon * rounding + atom / 2
    return Slopes(log_scale, by_rho, errors, by_epsilon + atom / 2, epsilon_error, below + atom / 2)


def _size(mechanism: DiscreteGaussian, count: int) -> float:
    return 2 * math.sqrt(2 * float(mechanism.sigma2) * _CUT) * count + 3 * count


def _base(part: _Copies, epsilon: Fraction) -> float:
    return float(part.count * part.mechanism.rho - epsilon)


def _copies(mechanism: DiscreteGaussian, count: int, tilt: float) -> _Copies:
    s, centre = float(mechanism.sigma2), mechanism.sensitivity * tilt
    reach = math.ceil(math.sqrt(2 * s * _CUT)) + 1
    start = math.floor(centre + 0.5) - reach
    x = np.arange(start, start + 2 * reach + 1, dtype=np.float64)
    one = np.exp(-((x - centre) ** 2) / (2 * s))
    one /= math.fsum(one)
    others = np.ones(1)
    for _ in range(count - 1):
        others = np.convolve(others, one)
    weights = np.convolve(others, one)
    sums = count * start + np.arange(len(weights), dtype=np.float64)
    return _Copies(mechanism, count, sums, weights, count * np.convolve(others, one * x * x))


def _along(values: Floats, axis: int, parts: list[_Copies]) -> Floats:
    return values.reshape([-1 if i == axis else 1 for i in range(len(parts))])


def _marginal(table: Floats, parts: list[_Copies], axis: int) -> Floats:
    """The sum over all other parts of the table times their probabilities."""
    for other, part in enumerate(parts):
        if other != axis:
            table = table * _along(part.weights, other, parts)
    result: Floats = np.sum(table, axis=tuple(i for i in range(len(parts)) if i != axis))
    return result


def _slopes_of(
    axis: int, parts: list[_Copies], above: Floats, fallen: Floats, on_atom: Floats
) -> tuple[float, float, float]:
    """By rho of one copy: the value, the size of what it is made of, and how far its two sides can be apart."""
    part = parts[axis]
    n, d = part.count, part.mechanism.sensitivity
    variance = n * untilted_variance(float(part.mechanism.sigma2))
    squares = part.squares - variance * part.weights
    growth = (2 * d * part.sums + n * d * d) * part.weights  # sum (X + D)^2 - sum X^2
    first, second, on = (_marginal(table, parts, axis) for table in (above, fallen, on_atom))
    terms = second * (squares + growth) - first * squares + on * growth / 2
    scale = n * d * d
    return float(terms.sum()) / scale, float(np.abs(terms).sum()) / scale, float((on * np.abs(growth)).sum()) / scale
