"""Evaluating a plan on the line in float64, with a bound on everything that float64 does to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.brackets import Bracket
from exactdp.doubles import ACCOUNT_SLACK, SUM_SLACK, UNIT, Complexes, Floats, Ints
from exactdp.engine.lattice.float64 import BLOCK, PHASE_UNITS, TERM_UNITS, VALUE_UNITS
from exactdp.engine.line.plan import LinePlan
from exactdp.engine.line.protocol import Used
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.fixed_point import Turn
from exactdp.errors import AccuracyError
from exactdp.numerals import about, at_most

_SECOND_DOUBLE = 1e-18  # more than the rounding of the second of two doubles that add up to a logarithm below 1e13
_NODES_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class LineSums:
    """Values of delta or 1 - delta at several thresholds as mantissa * exp(log_scale), with the account of errors.

    `aliased` can only have raised the computed value; `smoothed` can only have raised delta or lowered 1 - delta; `dropped` and
    `rounding` work both ways.
    """

    payoff: Payoff
    log_scale: Floats
    value: Floats
    aliased: Floats
    dropped: Floats
    rounding: Floats
    smoothed: Floats
    slope: Floats
    """Estimate of -d delta / dy in the same units; it steers searches and enters no bound."""

    @property
    def bracket(self) -> Bracket:
        """The certified bounds (Theorem 12 of docs/theory/any-composition.md)."""
        lower = self.value - self.aliased - self.dropped - self.rounding
        upper = self.value + self.dropped + self.rounding
        if self.payoff is Payoff.DELTA:
            lower = lower - self.smoothed
        else:
            upper = upper + self.smoothed
        return Bracket(self.log_scale, np.maximum(lower, 0.0), upper)


@dataclass(frozen=True)
class _LineTerms:
    """M(z)/M(tilt) at the nodes with their weights, the transform, and the relative errors of the products."""

    moments: Complexes
    transform: Complexes
    relative: Floats


@dataclass(frozen=True)
class LineContour:
    """A plan with its moment function evaluated at the kept nodes, ready for any number of thresholds."""

    plan: LinePlan

    @cached_property
    def _terms(self) -> _LineTerms:
        kept = self.plan.kept
        starts = range(0, len(kept), _NODES_AT_ONCE)
        blocks = [self._block(kept[start : start + _NODES_AT_ONCE]) for start in starts]
        return _LineTerms(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _omega(self, k: Ints) -> Floats:
        return k.astype(np.float64) * (2 * math.pi / float(self.plan.view.period))

    def _block(self, k: Ints) -> tuple[Complexes, Complexes, Floats]:
        plan, view = self.plan, self.plan.view
        omega = self._omega(k)
        fall = 0.5 * plan.spread * omega * omega
        real, imag, error, size = -fall, np.zeros(len(k)), 12 * UNIT * fall, fall.copy()
        for (part, count), turns in zip(view.tilted, view.turns, strict=True):
            if not part.units and not part.by_frequency:
                continue
            logs, relative = part.log_cf(np.array([t.phases(k) for t in turns]).reshape(-1, len(k)), omega)
            real += count * logs.real
            imag += count * logs.imag
            own = count * (np.abs(logs.real) + np.abs(logs.imag))
            size += own
            error += count * np.log1p(relative) + 4 * UNIT * own
        error = (error + (len(view.tilted) + 2) * UNIT * size) * (1 + SUM_SLACK)
        weights = np.where(k == 0, 1.0, 2.0) / float(view.period)
        moments = weights * np.exp(real) * (np.cos(imag) + 1j * np.sin(imag))
        z: Complexes = np.empty(len(k), dtype=np.complex128)
        z.real, z.imag = plan.lam, omega
        sign = -1.0 if plan.payoff is Payoff.COMPLEMENT else 1.0
        transform: Complexes = np.divide(sign, z * (1 + z), dtype=np.complex128)
        return moments, transform, np.expm1(np.minimum(error, 600.0)) + TERM_UNITS * UNIT

    def evaluate(self, thresholds: list[arb]) -> tuple[Bracket, Floats]:
        """The bounds of `sums` and the slope."""
        sums = self.sums(thresholds)
        return sums.bracket, sums.slope

    def used(self, y: arb) -> Used:
        """Period, nodes, and each error relative to the value."""
        plan, sums = self.plan, self.sums([y])
        value = max(float(sums.value[0]), 5e-324)
        rows = (
            ("period T", about(plan.view.period)),
            ("nodes kept", f"{len(plan.kept):,} of {plan.last:,} (one of each conjugate pair)"),
            ("aliasing", at_most(float(sums.aliased[0]) / value, 2)),
            ("dropped nodes", at_most(float(sums.dropped[0]) / value, 2)),
            ("rounding", at_most(float(sums.rounding[0]) / value, 2)),
            ("smoothing", f"{at_most(float(sums.smoothed[0]) / value, 2)} (R = {about(plan.smoothing, 2)})"),
        )
        name = "smoothed Fourier sum" if plan.smoothing else "Fourier sum on the line"
        return Used(name, plan.payoff, len(plan.kept), rows)

    @cached_property
    def _kinds(self) -> tuple[Complexes, Complexes, Complexes]:
        """The terms whose sums are the value, the density and the slope, without the thresholds' phases."""
        plan, terms = self.plan, self._terms
        products = terms.moments * terms.transform
        sign = -1.0 if plan.payoff is Payoff.COMPLEMENT else 1.0
        falling: Complexes = np.empty(len(plan.kept), dtype=np.complex128)
        falling.real, falling.imag = plan.lam, self._omega(plan.kept)
        falling *= sign * products
        return products, terms.moments, falling

    @cached_property
    def _rounding(self) -> tuple[float, float]:
        """Bounds of what rounding does to the sums for the value and for the density."""
        n = len(self.plan.kept)
        summing = (min(n, BLOCK) + n / BLOCK + PHASE_UNITS) * UNIT
        sizes, plain = (np.abs(kind) for kind in self._kinds[:2])
        relative = self._terms.relative + summing
        return float(np.sum(sizes * relative)), float(np.sum(plain * relative))

    def sums(self, thresholds: list[arb]) -> LineSums:
        """The payoff's value at each threshold (a ball of at least 140 bits) with its certified bounds."""
        plan, (rounding, rounding_density) = self.plan, self._rounding
        value, density, slope = self._sums(thresholds, self._kinds)
        high, low, scale_error = self._scales(thresholds)
        at_tilt = 1 / abs(plan.lam * (1 + plan.lam))
        tau = math.sqrt(float(plan.smoothing))
        smoothed = np.zeros(len(thresholds))
        if plan.smoothing:
            most = np.abs(density) + rounding_density + math.exp(plan.log_dropped_density)
            smoothed = (1 + tau) * float(plan.smoothing) * most * (1 + SUM_SLACK)
        dropped = math.exp(plan.log_dropped) * at_tilt * (1 + SUM_SLACK)
        own = (rounding + np.abs(value) * (np.expm1(scale_error) + VALUE_UNITS * UNIT)) * (1 + ACCOUNT_SLACK)
        with np.errstate(over="ignore"):
            aliased = np.exp(plan.log_aliasing([float(y.mid()) for y in thresholds]))
        f = np.exp(low)
        return LineSums(
            plan.payoff, high, value * f, aliased * f, dropped * f, own * f, smoothed * f, np.abs(slope) * f
        )

    def _scales(self, thresholds: list[arb]) -> tuple[Floats, Floats, Floats]:
        """log_moment - tilt y as sums of two doubles, and bounds of their errors."""
        rows = []
        with precision(BITS):
            tilt = ball(self.plan.view.tilt)
            for y in thresholds:
                exact = self.plan.log_moment - tilt * y
                high = float(exact.mid())
                rest = exact - arb(high)
                low = float(rest.mid())
                if not abs(low) <= 1:
                    raise AccuracyError("The Fourier sum does not apply: two doubles do not hold so large a logarithm.")
                rows.append((high, low, float(rest.rad()) + _SECOND_DOUBLE + UNIT * abs(low)))
        columns = np.array(rows).reshape(-1, 3).T
        return columns[0], columns[1], columns[2]

    def _sums(self, thresholds: list[arb], kinds: tuple[Complexes, ...]) -> list[Floats]:
        """Re sum_k terms_k exp(i om_k (anchor - y)) for each threshold and each kind of terms, in blocks."""
        kept = self.plan.kept
        with precision(BITS):
            turns = [Turn.of((self.plan.anchor - y) / ball(self.plan.view.period)) for y in thresholds]
        totals = [np.zeros(len(thresholds)) for _ in kinds]
        parts = [(terms.real.copy(), terms.imag.copy()) for terms in kinds]
        for i, turn in enumerate(turns):
            for start in range(0, len(kept), _NODES_AT_ONCE):
                block = slice(start, start + _NODES_AT_ONCE)
                phase = turn.phases(kept[block])
                cosine, sine = np.cos(phase), np.sin(phase)
                for total, (real, imag) in zip(totals, parts, strict=True):
                    total[i] += _blocked(cosine * real[block] - sine * imag[block])
        return totals


def _blocked(products: Floats) -> float:
    """A sum in blocks, in a fixed order."""
    return math.fsum(float(np.sum(products[i : i + BLOCK])) for i in range(0, len(products), BLOCK))
