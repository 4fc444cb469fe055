"""Certified numbers of any size: mantissa bounds with a common exponent, rounded outward when they become doubles."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from exactdp.balls import ball, precision
from exactdp.doubles import EXP_SLACK, LOG_SLACK, TINY, UNDERFLOW, Bools, Floats
from exactdp.notebooks import repr_html
from exactdp.numerals import DIGITS, at_least, at_most

_MOST_LINES = 20  # of bounds that are printed
_FAR = 1e-290  # a mantissa above this has all its digits
_SMALLEST_NORMAL = sys.float_info.min


@dataclass(frozen=True)
class Bracket:
    """lower * exp(log_scale) <= exact <= upper * exp(log_scale), elementwise, all bounds non-negative.

    A certified quantity. Estimates are plain floats; only the engine's evaluation makes Brackets.
    """

    log_scale: Floats
    lower: Floats
    upper: Floats

    def lower_floats(self) -> Floats:
        """The lower bound as doubles, rounded down, never below 0."""
        half = np.exp(0.5 * self.log_scale)
        result: Floats = np.maximum(np.nextafter(self.lower * half * half * (1 - EXP_SLACK), -np.inf), 0.0)
        return result

    def upper_floats(self) -> Floats:
        """The upper bound as doubles, rounded up: at least the smallest positive double, unless the number is known to be 0."""
        half = np.exp(0.5 * self.log_scale)
        with np.errstate(over="ignore"):
            rounded = np.nextafter(self.upper * half * half * (1 + EXP_SLACK), np.inf)
        result: Floats = np.where(self.upper == 0, 0.0, rounded)
        return result

    def log_lower(self) -> Floats:
        """A lower bound of the logarithm (-inf where the lower bound is 0)."""
        with np.errstate(divide="ignore"):
            log = np.log(self.lower)
        result: Floats = self.log_scale + log - LOG_SLACK * (np.abs(self.log_scale) + 1 + _finite(log))
        return result

    def log_upper(self) -> Floats:
        """An upper bound of the logarithm (-inf where the number is known to be 0)."""
        with np.errstate(divide="ignore"):
            log = np.log(self.upper)
        result: Floats = self.log_scale + log + LOG_SLACK * (np.abs(self.log_scale) + 1 + _finite(log))
        return result

    def rows(self) -> tuple[Floats, Floats, Floats]:
        """log_scale, lower and upper."""
        return self.log_scale, self.lower, self.upper

    def is_wide(self, width: float) -> Bools:
        """Where the bounds are further apart than `width`, relative to the upper one."""
        result: Bools = ~((self.upper > 0) & (self.upper - self.lower <= width * self.upper))
        return result

    def one_minus(self) -> Bracket:
        """1 - x for x known to lie in [0, 1]."""
        lower = np.minimum(np.maximum((1 - self.upper_floats()) * (1 - EXP_SLACK), 0.0), 1.0)
        upper = np.minimum(np.maximum((1 - self.lower_floats()) * (1 + EXP_SLACK), _SMALLEST_NORMAL), 1.0)
        return Bracket(np.zeros_like(lower), lower, upper)

    def width(self) -> Floats:
        """upper / lower - 1, elementwise: infinite where the lower bound is 0, 0 where the number is known to be 0."""
        with np.errstate(all="ignore"):
            apart = (self.upper - self.lower) / self.lower
        result: Floats = np.where(self.upper == 0, 0.0, np.where(self.lower > 0, apart, np.inf))
        return result

    def within(self, other: Bracket) -> Bracket:
        """What both say, elementwise: the narrower of the two, its ends moved inward where the other one's are further in."""
        own = ~(self.width() > other.width())  # also where the other one's is NaN
        scale, lower, upper = (np.where(own, a, b) for a, b in zip(self.rows(), other.rows(), strict=True))
        wider = [np.where(own, b, a) for a, b in zip(self.rows(), other.rows(), strict=True)]
        slack = EXP_SLACK * (2 + np.abs(scale) + np.abs(wider[0]))
        with np.errstate(all="ignore"):
            factor = np.exp(wider[0] - scale)
            low, high = wider[1] * factor * (1 - slack), wider[2] * factor * (1 + slack)
        # what underflows says nothing; the ends of one are kept where two roundings would cross
        usable = [np.isfinite(end) & (factor > _FAR) & (end > _FAR) for end in (low, high)]
        better = usable[0] & (low > lower) & (low <= upper), usable[1] & (high < upper) & (high >= lower)
        return Bracket(scale, np.where(better[0], low, lower), np.where(better[1], high, upper))


def _finite(log: Floats) -> Floats:
    return np.where(np.isfinite(log), np.abs(log), 0.0)


def bracket_of_balls(value: arb) -> tuple[float, float, float]:
    """log_scale, lower and upper of a positive ball, rounded outward."""
    with precision(128):
        log_scale = float(value.mid().log().mid())
        mantissa = value / arb(log_scale).exp()
        lower, upper = float(mantissa.lower()), float(mantissa.upper())
    return log_scale, max(0.0, math.nextafter(lower, -math.inf)), math.nextafter(upper, math.inf)


@dataclass(frozen=True)
class Point:
    """delta(epsilon) and 1 - delta(epsilon), each certified in relative terms, at one or more epsilons."""

    delta: Bracket
    rest: Bracket
    log_density: Floats
    """Estimate of log(-d delta / d epsilon); steers searches and enters no bound."""

    @staticmethod
    def of_rows(rows: Floats) -> Point:
        """A point from its seven rows."""
        return Point(Bracket(*rows[:3]), Bracket(*rows[3:6]), rows[6])

    def rows(self) -> tuple[Floats, ...]:
        """log_scale, lower and upper of delta and of 1 - delta, and the density."""
        return (*self.delta.rows(), *self.rest.rows(), self.log_density)

    def is_wide(self, width: float) -> Bools:
        """Where the bounds of delta or of 1 - delta are further apart than `width`, relative to the upper one."""
        result: Bools = self.delta.is_wide(width) | self.rest.is_wide(width)
        return result

    def within(self, other: Point) -> Point:
        """What both say."""
        narrower = self.delta.width() <= other.delta.width()
        density = np.where(narrower, self.log_density, other.log_density)
        return Point(self.delta.within(other.delta), self.rest.within(other.rest), density)


PointAt = Callable[[list[Fraction]], Point]
"""A profile: certified points at given epsilons."""


def overwrite(found: Bracket | Point, places: list[int], better: Bracket | Point) -> None:
    """Put the values of `better` into the given places of `found`."""
    for new, old in zip(better.rows(), found.rows(), strict=True):
        old[places] = new


class Bounds(NamedTuple):
    """A certified pair: lower <= exact <= upper. Floats or arrays, or decimals where digits were asked for."""

    lower: Any
    upper: Any

    def __str__(self) -> str:
        ends = [end.ravel().tolist() if isinstance(end, np.ndarray) else [end] for end in self]
        pairs = list(zip(*ends, strict=True))
        lines = [_between(*pair) for pair in pairs[:_MOST_LINES]]
        return "\n".join(lines if len(pairs) <= _MOST_LINES else [*lines, f"... {len(pairs):,} in all"])

    def _repr_html_(self) -> str:
        return repr_html(self)


def _between(lower: Any, upper: Any) -> str:
    """Both ends rounded outward, to the digits in which they agree and two more."""
    size, width = max(abs(lower), abs(upper)), upper - lower
    if not math.isfinite(size) or not math.isfinite(width):
        digits = DIGITS
    else:
        # of a double there are 17; of a decimal all that it has
        most = 17 if isinstance(lower, float) else max(len(Decimal(end).as_tuple().digits) for end in (lower, upper))
        digits = max(DIGITS, min(most, 2 + (Decimal(size).adjusted() - Decimal(width).adjusted() if width else most)))
    return f"at least {at_least(lower, digits)}, at most {at_most(upper, digits)}"


def both(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    """What two pairs of bounds of one number say together."""
    return max(one[0], two[0]), min(one[1], two[1])


def mirrored_ball(delta: arb, epsilon: Fraction) -> arb:
    """delta at |epsilon| turned into delta at epsilon, at the current precision: the mirror in balls.

    delta(-e) = 1 - e^{-e} + e^{-e} delta(e), for a loss that is the same in both directions, or the worse of both.
    """
    return delta if epsilon >= 0 else -ball(epsilon).expm1() + ball(epsilon).exp() * delta


def mirrored(point: Point, exponents: Floats) -> tuple[Bracket, Bracket]:
    """delta and 1 - delta of the reversed loss at -y turned into those at y < 0: the same mirror in brackets.

    1 - delta(y) = e^exponent (1 - delta_reversed(-y)); the exponent is y for a loss that is always finite. Where it is positive
    only the bounds of 1 - delta hold.
    """
    e = np.minimum(exponents, 0.0)
    away, shrink = -np.expm1(e), np.exp(e)
    lower = (away + shrink * point.delta.lower_floats()) * (1 - EXP_SLACK)
    upper = (away + shrink * point.delta.upper_floats()) * (1 + EXP_SLACK)
    upper = np.maximum(upper, TINY)  # delta is at least 1 - e^y: positive, though y may be 0 as a double
    slack = EXP_SLACK * (1 + np.abs(exponents) + np.abs(point.rest.log_scale))
    rest = Bracket(point.rest.log_scale + exponents, point.rest.lower * (1 - slack), point.rest.upper * (1 + slack))
    return Bracket(np.zeros_like(e), np.minimum(lower, 1.0), np.minimum(upper, 1.0)), rest


def mirrored_brackets(point: Point, epsilons: list[Fraction]) -> Point:
    """The point at |epsilon| turned into the point at epsilon where epsilon is negative."""
    if all(e.numerator >= 0 for e in epsilons):
        return point
    turned = _turned(point, np.array([min(float(x), 0.0) for x in epsilons]))
    negative = np.array([x < 0 for x in epsilons])
    return Point.of_rows(np.where(negative, np.array(turned.rows()), np.array(point.rows())))


def mirrored_point(point: Point, epsilon: Fraction) -> Point:
    """Many answers at |epsilon| turned into those at epsilon, which is negative."""
    return _turned(point, np.full(len(point.log_density), float(epsilon)))


def _turned(point: Point, e: Floats) -> Point:
    below = np.maximum(point.rest.upper_floats() - np.exp(point.log_density), UNDERFLOW)
    return Point(*mirrored(point, e), e + np.log(below))
