"""The plan of a contour: lattice, tilt, N, kept nodes and analytic error bounds. It holds exact inputs and no results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np

from exactdp.doubles import FEW_SLACK, FORMULA_SLACK, POWER_SLACK, SUM_SLACK, UNDERFLOW, Floats, Ints
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.lattice.moments import log_moments
from exactdp.engine.lattice.peaks import peak_bounds
from exactdp.engine.lattice.tilts import Rung, short_double
from exactdp.engine.payoff import Payoff, factors_at_tilt, transform_at_tilt, transform_corners, transform_factors
from exactdp.engine.sieve.bands import make_bands
from exactdp.engine.sieve.phases import LARGEST_NODES, angles
from exactdp.engine.sieve.windows import sieve
from exactdp.errors import LatticeTooFineError
from exactdp.numbers import split

_Real = TypeVar("_Real", float, Floats)
_Theta = tuple[Fraction | float, float]

TOLERANCE = 1e-14
"""What aliasing and dropped nodes may each add to a float64 answer, relative to it (a plan's aim, not its bound)."""

_TRIM_FROM = 48  # below this many nodes a second look costs more than it saves


@dataclass(frozen=True)
class Plan:
    """A contour: everything that is decided before anything is evaluated.

    Any `tilt` in the payoff's range and any `nodes` are valid; only accuracy and speed depend on them. `log_dropped`
    bounds the logarithm of the sum of |M V| / (N M(tilt) V(tilt)) over the nodes not in `kept` (Theorem 3 of
    docs/theory/engine.md).
    """

    lattice: Lattice
    payoff: Payoff
    tilt: Fraction
    nodes: int
    kept: Ints
    log_dropped: float
    theta_at_tilt: tuple[Fraction, float]
    """K(tilt) - R tilt^2 / 2 and its error bound."""

    @cached_property
    def lam(self) -> float:
        """The tilt as a double, exactly."""
        return float(self.tilt)

    @cached_property
    def period(self) -> Fraction:
        """T = N h."""
        return self.nodes * self.lattice.step

    @cached_property
    def _quadratic(self) -> Fraction:
        return self.lattice.spread * self.tilt * self.tilt / 2 + self.theta_at_tilt[0]

    @cached_property
    def _per_step(self) -> Fraction:
        return self.tilt * self.lattice.step

    def log_scale(self, steps: int) -> tuple[float, float]:
        """K(tilt) - tilt h steps as a sum of two doubles; its error is that of `theta_at_tilt`."""
        first, second = self._quadratic, self._per_step
        bottom = first.denominator * second.denominator
        return split(first.numerator * second.denominator - steps * second.numerator * first.denominator, bottom)

    def log_aliasing(self, steps: list[int]) -> Floats:
        """Logarithm of an upper bound of the aliased terms, in units of exp(K(tilt) - tilt x0). This inequality is the
        guarantee (Theorem 2)."""
        return _log_both(self._sides, np.array([self.offset(t) for t in steps]))

    @cached_property
    def _sides(self) -> _AliasBounds:
        return _sides(self.lattice, self.payoff, self.lam, float(self.period), self.theta_at_tilt)

    def offset(self, steps: int) -> float:
        """R tilt - h steps, rounded twice."""
        top, bottom = self.lattice.spread_steps * self.tilt.numerator, self.tilt.denominator
        return (top - steps * bottom) / bottom * self.lattice.h


def log_aliasing(lattice: Lattice, payoff: Payoff, lam: float, period: float, offsets: _Real, theta: _Theta) -> _Real:
    """log of the sum over both sides of exp(E) / (1 - exp(-|d| T)) with nu = tilt + d, offset = R tilt - x0 and

    E = offset d + R d^2 / 2 + Theta(nu) - Theta(tilt) - |d| T.

    Any nu on the right side of the tilt and inside the payoff's closed range is valid. Two are tried, tilt +/- T / R (which
    always works) and tilt +/- T / `widest` (better for coarse noise), and the smaller bound counts.
    """
    return _log_both(_sides(lattice, payoff, lam, period, theta), offsets)


@dataclass(frozen=True, slots=True)
class _AliasBound:
    """The bound for the aliases on one side of the tilt, with nu = tilt + d, before the threshold is known."""

    d: float
    constant: float
    """E - offset d."""
    size: float
    log_geometric: float
    """log(1 - exp(-|d| T))."""

    def at(self, offsets: _Real) -> _Real:
        """The logarithm of the bound."""
        shifts = offsets * self.d
        slack = FEW_SLACK * (abs(shifts) + self.size) + POWER_SLACK
        return shifts + self.constant + slack - self.log_geometric


_AliasBounds = tuple[list[_AliasBound], list[_AliasBound]]


def _log_both(sides: _AliasBounds, offsets: _Real) -> _Real:
    """Both sides together, each by the best of what was tried."""
    if isinstance(offsets, float):  # quicker than an array of one, to the same bits
        below, above = (min((t.at(offsets) for t in tries), default=math.inf) for tries in sides)
        return float(np.logaddexp(below, above))
    none: Any = offsets * 0 + math.inf
    below, above = (reduce(np.minimum, (t.at(offsets) for t in tries), none) for tries in sides)
    return np.logaddexp(below, above)  # type: ignore[no-any-return]


def _sides(lattice: Lattice, payoff: Payoff, lam: float, period: float, theta: _Theta) -> _AliasBounds:
    """What is tried below the tilt and above it."""
    variances = {lattice.r, lattice.widest}
    below, above = (
        [t for v in variances if (t := _side(lattice, payoff, lam, sign * period / v, period, theta))]
        for sign in (-1, 1)
    )
    return below, above


def _side(
    lattice: Lattice, payoff: Payoff, lam: float, move: float, period: float, theta: _Theta
) -> _AliasBound | None:
    """The bound with nu the dyadic number next to tilt + move, kept in the range; None if that is not on this side."""
    low, high = payoff.tilt_range
    nu = short_double(min(max(lam + move, low), high))
    d = nu - lam
    if d * move <= 0:
        return None
    theta_nu = 0.0 if lattice.is_smooth or nu in (low, high) else _theta_upper(lattice, nu)
    theta_low = float(theta[0]) - theta[1]
    size = lattice.r * d * d + abs(d) * period + abs(theta_low) + abs(theta_nu)
    constant = lattice.r * d * d / 2 + theta_nu - theta_low - abs(d) * period
    return _AliasBound(d, constant, size, math.log(-math.expm1(-abs(d) * period)))


def _theta_upper(lattice: Lattice, nu: float) -> float:
    """An upper bound of Theta(nu), at most 0."""
    value, error = lattice.log_theta(Fraction(nu))
    return min(0.0, float(value) + error)


def make_plan(lattice: Lattice, where: Rung, log_aim: float | None = None, looks: int = Effort.looks) -> Plan:
    """Plan a contour for the thresholds of a rung.

    `log_aim` is the logarithm of what aliasing and dropped nodes may each add, in units of exp(K(tilt) - tilt x0); by
    default TOLERANCE times the smallest answer expected on the rung.
    """
    lam, h = float(where.tilt), lattice.h
    theta, first = lattice.log_theta(where.tilt), 0.0
    if log_aim is None:  # certificates give one, and their nodes have to be found again as they were
        log_aim = log_expected(lattice, where) + math.log(TOLERANCE)
        first = max(_end_periods(lattice, where, log_aim, theta), default=0.0)
    nodes = choose_nodes(lattice, where, log_aim, theta, first)
    bounds = peak_bounds(lattice, lam)
    corners = transform_corners(where.payoff, lam, h)
    peak = typical_transform(where.payoff, lam, h)
    bands = make_bands(nodes, nodes * h, corners, bounds.slack, log_aim - math.log(peak))
    try:
        kept = sieve(lattice.strides, bounds.strengths, nodes, bands, looks)
    except LatticeTooFineError as error:
        raise too_fine(lattice, nodes, str(error)) from None
    plan = Plan(lattice, where.payoff, where.tilt, nodes, kept, bands.log_dropped, theta)
    return plan if len(kept) <= _TRIM_FROM else trimmed(plan)


def log_expected(lattice: Lattice, where: Rung) -> float:
    """Logarithm of the smallest answer expected on a rung, in units of exp(K(tilt) - tilt x0): the transform's size, the
    width of the peak, the ends of the rung. Heuristic: affects accuracy only."""
    lam, h = float(where.tilt), lattice.h
    mean, variance = lattice.mean_variance(lam)
    off = max(((x - mean) / math.sqrt(2 * lattice.widest)) ** 2 for x in (where.x_low, where.x_high))
    width = h / max(h, math.sqrt(2 * math.pi * variance))
    return math.log(typical_transform(where.payoff, lam, h)) + math.log(width) - off - 0.7


def typical_transform(payoff: Payoff, lam: float, h: float) -> float:
    """V(tilt) e^{tilt x0} for a threshold half-way between lattice points. Heuristic: affects accuracy only."""
    a, b = (1.0, 0.0) if payoff is Payoff.TAIL else (-math.expm1(-0.5 * h), math.exp(-0.5 * h) - math.exp(-h))
    return max(transform_at_tilt(payoff, lam, h, a, b), UNDERFLOW)


def trimmed(plan: Plan) -> Plan:
    """The same plan without the nodes whose actual size (not its bound) is negligible; at most doubles what is dropped.

    Guarantee: |M| is taken with its rounding error, and the transform relative to its value at the tilt.
    """
    lattice, lam, nodes = plan.lattice, plan.lam, plan.nodes
    real, _, error = log_moments(lattice, lam, plan.kept, nodes)
    log_weight = real + error + log_term_size(plan, angles(plan.kept, nodes))
    order = np.argsort(log_weight)
    running = np.logaddexp.accumulate(log_weight[order]) + SUM_SLACK
    count = int(np.searchsorted(running, plan.log_dropped, side="right"))
    total = float(np.logaddexp(plan.log_dropped, running[count - 1])) + FORMULA_SLACK if count else plan.log_dropped
    return replace(plan, kept=np.sort(plan.kept[order[count:]]), log_dropped=total)


def log_term_size(plan: Plan, turns: Floats) -> Floats:
    """log of an upper bound of 2 |V| / (N V(tilt)) at angles omega h: a node and its mirror image, without |M|.

    Both factors of the transform fall alike, since |q| is the same everywhere on the contour; the larger cannot underflow.
    """
    where = plan.payoff, plan.lam, plan.lattice.h
    here = np.maximum(*(np.abs(f) for f in transform_factors(*where, turns)))
    result: Floats = np.log(here / max(factors_at_tilt(*where))) + (math.log(2 / plan.nodes) + SUM_SLACK)
    return result


def choose_nodes(
    lattice: Lattice, where: Rung, log_aim: float, theta: tuple[Fraction, float], first: float = 0.0
) -> int:
    """The number of nodes at which aliasing falls to exp(log_aim), searched from the period `first` on or from where it would
    be without the payoff's pole. Heuristic: affects speed and accuracy only."""
    lam, doubled = float(where.tilt), (float(theta[0]), theta[1])
    offsets = [lattice.r * lam - x for x in (where.x_low, where.x_high)]
    period = max(math.sqrt(2 * lattice.widest * max(1.0, -log_aim)), first)

    def excess_at(period: float) -> float:
        if lattice.is_smooth:  # two numbers are quicker than an array of two, unless Theta is to be found for both
            return max(float(log_aliasing(lattice, where.payoff, lam, period, x, doubled)) for x in offsets) - log_aim
        return float(log_aliasing(lattice, where.payoff, lam, period, np.array(offsets), doubled).max()) - log_aim

    while (excess := excess_at(period)) > 0:
        # the bound falls like exp(-T^2 / (2 R)) or faster than exp(-tilt T): one or two steps do
        period = max(1.02 * period, min(math.sqrt(period**2 + 2 * lattice.widest * excess) * 1.005, 1.3 * period))
    nodes = max(2, math.ceil(period / lattice.h))
    if nodes > LARGEST_NODES:
        raise too_fine(lattice, nodes, f"the limit is {LARGEST_NODES:.3g}")
    return nodes


def _end_periods(lattice: Lattice, where: Rung, log_aim: float, theta: _Theta) -> Iterator[float]:
    """Periods at which `log_aliasing` with nu at either end of the payoff's range is about the aim; 0 where nu stays inside.

    Heuristic: affects speed only.
    """
    lam = float(where.tilt)
    for end, x in zip(where.payoff.tilt_range, (where.x_high, where.x_low), strict=True):
        d = end - lam
        if math.isfinite(d):
            needed = ((lattice.r * lam - x) * d + lattice.r * d * d / 2 - float(theta[0]) - log_aim + 0.7) / abs(d)
            yield needed if needed > abs(d) * lattice.widest else 0.0


def too_fine(lattice: Lattice, nodes: float, reason: str) -> LatticeTooFineError:
    """The error of a composition that the sieve cannot handle, in one sentence: step, groups, what to do."""
    return LatticeTooFineError(
        f"The lattice of this composition is too fine for the sieve (step {float(lattice.step):.3g}, "
        f"{len(lattice.groups)} groups of distinct noise, N = {nodes:.3g}: {reason}); "
        "round the noise parameters to fewer digits, so that their ratios have small denominators, or use fewer distinct values."
    )
