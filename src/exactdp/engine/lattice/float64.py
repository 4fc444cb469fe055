"""Evaluating a plan in float64, with a bound on everything that float64 does to it.

Assumptions (docs/theory/engine.md, section "What float64 assumes"): IEEE 754 double arithmetic, and exp, expm1, log, log1p,
sin, cos, sinh of the C library and of NumPy within 4 units in the last place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactdp.doubles import ACCOUNT_SLACK, SUM_SLACK, UNIT, Complexes, Floats, Ints
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.lattice.moments import log_moments, whole_centres
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.payoff import Payoff, Threshold, transform_at_tilt, transform_factors
from exactdp.engine.sieve.phases import angles, phases

TERM_UNITS = 160
"""Rounding of one summand beyond that of its exponent: weight, exp, cos, sin, transform (engine.md, F5)."""

PHASE_UNITS = 32
"""Rounding of a threshold's phase factor and of its product with the summand (F6)."""

VALUE_UNITS = 48
"""Rounding of the coefficients, their products, the scale and the final differences (F7)."""

BLOCK = 512  # nodes summed in one go; blocks are then added, so the error grows with n / BLOCK + BLOCK
_MATRIX = 1 << 19  # angles held in memory at once
_NEIGHBOURS, _ROWS = 32, 64  # thresholds that share a phase; thresholds whose products fit into a cache


@dataclass(frozen=True)
class Sums:
    """Certified values of a payoff at several thresholds: value = mantissa * exp(log_scale), with the account of errors.

    lower <= exact mantissa <= upper. `aliased` can only have raised the computed value; `dropped` and `rounding` work both ways.
    """

    log_scale: Floats
    value: Floats
    aliased: Floats
    dropped: Floats
    rounding: Floats
    slope: Floats
    """Estimate of d(value)/dx in the same units, positive; it steers searches and enters no bound."""

    @property
    def lower(self) -> Floats:
        """Certified lower bound of the mantissa, never negative."""
        result: Floats = np.maximum(self.value - self.aliased - self.dropped - self.rounding, 0.0)
        return result

    @property
    def upper(self) -> Floats:
        """Certified upper bound of the mantissa."""
        return self.value + self.dropped + self.rounding


@dataclass(frozen=True)
class Summands:
    """What A and B multiply at each node, without the thresholds' phases, and bounds on the absolute errors."""

    for_a: Complexes
    for_b: Complexes
    error_a: Floats
    error_b: Floats

    @cached_property
    def totals(self) -> tuple[float, float, float, float]:
        """The sums of |for_a|, |for_b| and of both errors."""
        parts = np.abs(self.for_a), np.abs(self.for_b), self.error_a, self.error_b
        return tuple(float(part.sum()) for part in parts)  # type: ignore[return-value]


def summands(
    payoff: Payoff, lam: float, h: float, turns: Floats, weights: Floats, log_moment: tuple[Floats, Floats, Floats]
) -> Summands:
    """The terms of the Fourier sum at angles omega h, from the real and imaginary part and the error of log M (F5)."""
    real, imag, error = log_moment
    moments = weights * np.exp(real) * (np.cos(imag) + 1j * np.sin(imag))
    first, second = transform_factors(payoff, lam, h, turns)
    for_a, for_b = moments * first, moments * second
    relative = np.expm1(np.minimum(error, 600.0)) + (TERM_UNITS + 4 * abs(lam) * h) * UNIT
    return Summands(for_a, for_b, np.abs(for_a) * relative, np.abs(for_b) * relative)


@dataclass(frozen=True)
class Totals:
    """Sums over the nodes of a contour: of the terms with the thresholds' phases, of their sizes, and of their errors.

    Scalars or arrays, one element for each threshold.
    """

    sum_a: Floats
    sum_b: Floats
    size_a: Floats | float
    size_b: Floats | float
    error_a: Floats | float
    error_b: Floats | float
    nodes: Floats | int
    phases: int = 1
    """Of how many factors a threshold's phase is the product."""

    @property
    def radius_a(self) -> Floats | float:
        """What float64 can have done to `sum_a` (F5, F6), itself added up in doubles."""
        return self.error_a + self.size_a * self._summing

    @property
    def radius_b(self) -> Floats | float:
        """The same for `sum_b`."""
        return self.error_b + self.size_b * self._summing

    @property
    def _summing(self) -> Floats:
        return (summing_units(self.nodes) + (self.phases - 1) * PHASE_UNITS) * UNIT

    def settle(
        self,
        plan: Plan,
        coefficients: tuple[Floats, Floats],
        scale: tuple[Floats, Floats],
        theta_error: Floats | float,
        log_dropped: Floats | float,
        log_aliased: Floats,
    ) -> Sums:
        """Values and the account of their errors (Theorem 4 of docs/theory/engine.md)."""
        (a, b), (high, low) = coefficients, scale
        value = a * self.sum_a + b * self.sum_b
        difference = np.abs(self.sum_a - self.sum_b)
        slope = difference / plan.lattice.h if plan.payoff is Payoff.TAIL else (1 - a) * difference
        rounding = (
            a * self.radius_a + b * self.radius_b + np.abs(value) * (np.expm1(theta_error) + VALUE_UNITS * UNIT)
        ) * (1 + ACCOUNT_SLACK)
        at_tilt = transform_at_tilt(plan.payoff, plan.lam, plan.lattice.h, a, b)
        dropped = np.exp(log_dropped) * at_tilt * (1 + SUM_SLACK)
        factor = np.exp(low)
        with np.errstate(over="ignore"):
            aliased = np.exp(log_aliased)
        return Sums(high, value * factor, aliased * factor, dropped * factor, rounding * factor, slope * factor)


def summing_units(nodes: Floats | int) -> Floats:
    """Rounding of a sum over so many nodes, the thresholds' phases included, relative to the sum of the sizes (F6)."""
    units: Floats = np.minimum(nodes, BLOCK) + nodes / BLOCK + PHASE_UNITS
    return units


def mirror_weights(kept: Ints, nodes: int) -> Floats:
    """1/N for nodes that are their own mirror image (0 and N/2), 2/N for the others."""
    return np.where((kept == 0) | (2 * kept == nodes), 1.0, 2.0) / nodes


def whole_shift(lattice: Lattice, lam: float) -> int:
    """sum of count * stride * round(D tilt): the part of the linear phase that is an exact integer."""
    parts = zip(lattice.groups, lattice.strides, whole_centres(lattice, lam), strict=True)
    return sum(g.count * a * int(centre) for g, a, centre in parts)


@dataclass(frozen=True)
class Contour:
    """A plan with its moment function evaluated at the kept nodes, ready for any number of thresholds."""

    plan: Plan

    @cached_property
    def _whole_shift(self) -> int:
        return whole_shift(self.plan.lattice, self.plan.lam)

    @cached_property
    def _terms(self) -> Summands:
        plan = self.plan
        lattice = plan.lattice
        logs = log_moments(lattice, plan.lam, plan.kept, plan.nodes)
        turns, weights = angles(plan.kept, plan.nodes), mirror_weights(plan.kept, plan.nodes)
        return summands(plan.payoff, plan.lam, lattice.h, turns, weights, logs)

    def evaluate(self, thresholds: list[Threshold], neighbours: bool = False) -> Sums:
        """The payoff's value at each threshold with its certified bounds (Theorem 4 of docs/theory/engine.md).

        `neighbours` is for many thresholds of which most are next to others: in less time, with slightly wider bounds. A result
        does not depend on the other thresholds either way.
        """
        plan, totals = self.plan, self._totals_of_neighbours(thresholds) if neighbours else self.totals(thresholds)
        coefficients = np.array([t.a for t in thresholds]), np.array([t.b for t in thresholds])
        high, low = (np.array(part) for part in zip(*(plan.log_scale(t.steps) for t in thresholds), strict=True))
        log_aliased = plan.log_aliasing([t.steps for t in thresholds])
        return totals.settle(plan, coefficients, (high, low), plan.theta_at_tilt[1], plan.log_dropped, log_aliased)

    def totals(self, thresholds: list[Threshold]) -> Totals:
        """The sums over the kept nodes at each threshold, with bounds on their errors."""
        return Totals(*self._sums(thresholds), *self._terms.totals, nodes=len(self.plan.kept))

    def _totals_of_neighbours(self, thresholds: list[Threshold]) -> Totals:
        """The same with each phase as the product of two, that of the multiple of 32 below the threshold and that of the rest."""
        plan, kinds = self.plan, [self._terms.for_a, self._terms.for_b]
        if plan.payoff is Payoff.TAIL:  # b is 0: the other sum would serve for a slope only, which is then given as 0
            kinds = kinds[:1]
        totals = np.zeros((2, len(thresholds)))
        places = [divmod((t.steps - self._whole_shift) % plan.nodes, _NEIGHBOURS) for t in thresholds]
        multiples = sorted({multiple for multiple, _ in places})
        row_of = {multiple: row for row, multiple in enumerate(multiples)}
        row, rest = np.array([(row_of[multiple], rest) for multiple, rest in places], dtype=np.int64).T
        strides, rests = tuple(_NEIGHBOURS * m for m in multiples), tuple(range(_NEIGHBOURS))
        for start in range(0, len(plan.kept), BLOCK):
            block = slice(start, start + BLOCK)
            turn, fine = (phases(plan.kept[block], part, plan.nodes) for part in (strides, rests))
            whole, cosine, sine = np.cos(turn) - 1j * np.sin(turn), np.cos(fine).T.copy(), np.sin(fine).T.copy()
            for total, terms in zip(totals, kinds, strict=False):
                turned = (whole * terms[block])[:, None]
                # one product for each multiple, all of the same shape, so that a result does not depend on the others
                products = turned.real.copy() @ cosine + turned.imag.copy() @ sine
                total += products[row, 0, rest]
        return Totals(totals[0], totals[len(kinds) - 1], *self._terms.totals, nodes=len(plan.kept), phases=2)

    def sizes_and_errors(self) -> tuple[Floats, Floats]:
        """By node the size of what A multiplies, and a bound on what float64 does to it until it is part of a sum."""
        sizes = np.abs(self._terms.for_a)
        return sizes, self._terms.error_a + sizes * (summing_units(len(self.plan.kept)) * UNIT)

    def _sums(self, thresholds: list[Threshold]) -> tuple[Floats, Floats]:
        """Re sum_k terms_k exp(-2 pi i k (t - shift) / N) for each threshold and both kinds of terms, in blocks."""
        plan = self.plan
        totals = [np.zeros(len(thresholds)), np.zeros(len(thresholds))]
        shifts = tuple(t.steps - self._whole_shift for t in thresholds)
        rows = max(1, _MATRIX // min(len(plan.kept), BLOCK))
        for start in range(0, len(plan.kept), BLOCK):
            block = slice(start, start + BLOCK)
            for first in range(0, len(shifts), rows):
                turn = phases(plan.kept[block], shifts[first : first + rows], plan.nodes)
                cosine, sine = np.cos(turn), np.sin(turn)
                for total, terms in zip(totals, (self._terms.for_a, self._terms.for_b), strict=True):
                    # a plain sum along each row, so that a threshold's result does not depend on its neighbours
                    products = cosine * terms.real[block] + sine * terms.imag[block]
                    total[first : first + rows] += products.sum(axis=1)
        return totals[0], totals[1]
