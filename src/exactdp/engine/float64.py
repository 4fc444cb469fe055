"""Evaluating a plan in float64, with a bound on everything that float64 does to it.

Assumptions (docs/theory/engine.md, section "What float64 assumes"): IEEE 754 double arithmetic, and exp, expm1, log, log1p,
sin, cos, sinh of the C library and of NumPy within 4 units in the last place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactdp.engine.moments import UNIT, log_moments, whole_centres
from exactdp.engine.payoff import Payoff, Threshold, transform_at_tilt, transform_factors
from exactdp.engine.plan import Plan
from exactdp.engine.sieve import angles, phases
from exactdp.mechanisms.theta import Complexes, Floats

TERM_UNITS = 160
"""Rounding of one summand beyond that of its exponent: weight, exp, cos, sin, transform (engine.md, F5)."""

PHASE_UNITS = 32
"""Rounding of a threshold's phase factor and of its product with the summand (F6)."""

VALUE_UNITS = 48
"""Rounding of the coefficients, their products, the scale and the final differences (F7)."""

_BLOCK = 512  # nodes summed in one go; blocks are then added, so the error grows with n / _BLOCK + _BLOCK
_MATRIX = 1 << 19  # angles held in memory at once


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
class Contour:
    """A plan with its moment function evaluated at the kept nodes, ready for any number of thresholds."""

    plan: Plan

    @cached_property
    def _turns(self) -> Floats:
        """omega_k h = 2 pi k / N at the kept nodes."""
        return angles(self.plan.kept, self.plan.nodes)

    @cached_property
    def _weights(self) -> Floats:
        """1/N for nodes that are their own mirror image (0 and N/2), 2/N for the others."""
        kept, nodes = self.plan.kept, self.plan.nodes
        return np.where((kept == 0) | (2 * kept == nodes), 1.0, 2.0) / nodes

    @cached_property
    def _whole_shift(self) -> int:
        """sum of count * stride * round(D tilt): the part of the linear phase that is an exact integer."""
        lattice = self.plan.lattice
        parts = zip(lattice.groups, lattice.strides, whole_centres(lattice, self.plan.lam), strict=True)
        return sum(g.count * a * int(centre) for g, a, centre in parts)

    @cached_property
    def _terms(self) -> tuple[Complexes, Complexes, Floats, Floats]:
        """The summands that A and B multiply (without the thresholds' phases), and their absolute error bounds."""
        lattice = self.plan.lattice
        real, imag, error = log_moments(lattice, self.plan.lam, self.plan.kept, self.plan.nodes)
        moments = self._weights * np.exp(real) * (np.cos(imag) + 1j * np.sin(imag))
        first, second = transform_factors(self.plan.payoff, self.plan.lam, lattice.h, self._turns)
        for_a, for_b = moments * first, moments * second
        relative = np.expm1(np.minimum(error, 600.0)) + (TERM_UNITS + 4 * abs(self.plan.lam) * lattice.h) * UNIT
        return for_a, for_b, np.abs(for_a) * relative, np.abs(for_b) * relative

    def evaluate(self, thresholds: list[Threshold]) -> Sums:
        """The payoff's value at each threshold with its certified bounds (Theorem 4 of docs/theory/engine.md)."""
        plan = self.plan
        for_a, for_b, error_a, error_b = self._terms
        a = np.array([t.a for t in thresholds])
        b = np.array([t.b for t in thresholds])
        sum_a, sum_b = self._sums(thresholds)
        size_a, size_b = float(np.sum(np.abs(for_a))), float(np.sum(np.abs(for_b)))
        value = a * sum_a + b * sum_b
        difference = np.abs(sum_a - sum_b)
        slope = difference / plan.lattice.h if plan.payoff is Payoff.TAIL else (1 - a) * difference
        scales = [plan.log_scale(t.steps) for t in thresholds]
        high, low = (np.array(part) for part in zip(*scales, strict=True))
        nodes = len(plan.kept)
        summing = (min(nodes, _BLOCK) + nodes / _BLOCK + PHASE_UNITS) * UNIT
        theta_error = plan.theta_at_tilt[1]
        rounding = (
            a * (float(np.sum(error_a)) + size_a * summing)
            + b * (float(np.sum(error_b)) + size_b * summing)
            + np.abs(value) * (math.expm1(theta_error) + VALUE_UNITS * UNIT)
        ) * (1 + 1e-6)
        at_tilt = transform_at_tilt(plan.payoff, plan.lam, plan.lattice.h, a, b)
        dropped = math.exp(plan.log_dropped) * at_tilt * (1 + 1e-9)
        factor = np.exp(low)
        with np.errstate(over="ignore"):
            aliased = np.exp(plan.log_aliasing([t.steps for t in thresholds]))
        return Sums(high, value * factor, aliased * factor, dropped * factor, rounding * factor, slope * factor)

    def _sums(self, thresholds: list[Threshold]) -> tuple[Floats, Floats]:
        """Re sum_k terms_k exp(-2 pi i k (t - shift) / N) for each threshold and both kinds of terms, in blocks."""
        plan = self.plan
        totals = [np.zeros(len(thresholds)), np.zeros(len(thresholds))]
        shifts = tuple(t.steps - self._whole_shift for t in thresholds)
        rows = max(1, _MATRIX // min(len(plan.kept), _BLOCK))
        for start in range(0, len(plan.kept), _BLOCK):
            block = slice(start, start + _BLOCK)
            for first in range(0, len(shifts), rows):
                turn = phases(plan.kept[block], shifts[first : first + rows], plan.nodes)
                cosine, sine = np.cos(turn), np.sin(turn)
                for total, terms in zip(totals, self._terms[:2], strict=True):
                    # a plain sum along each row, so that a threshold's result does not depend on its neighbours
                    products = cosine * terms.real[block] + sine * terms.imag[block]
                    total[first : first + rows] += np.sum(products, axis=1)
        return totals[0], totals[1]
