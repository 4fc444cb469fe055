"""Evaluating a plan in ball arithmetic (Arb): the same nodes, rigorous enclosures, any precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from flint import acb, acb_mat, arb, fmpq

from exactdp.balls import ball, precision
from exactdp.engine.lattice.ball_terms import BallTerms, powers
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.payoff import Threshold
from exactdp.mechanisms.theta import log_theta_ratio_ball

_WIDTHS = tuple(2**i for i in range(8))  # nodes in a row of the table of terms
_ROW, _POWER, _ENTRY = 2.5, 0.6, 0.1  # microseconds: a row's phase, a power, a product


@dataclass(frozen=True)
class BallSum:
    """An enclosure of the payoff's exact value, and what the analytic errors contributed to it (both as balls)."""

    value: arb
    aliased: arb
    dropped: arb
    slope: arb
    """-d(value)/dx0, as an enclosure of the truncated sums: steers Newton's method and enters no bound."""


@dataclass(frozen=True)
class _Rows:
    """The terms in rows of neighbouring nodes, filled up with zeros; the rows' first nodes are `starts`."""

    starts: tuple[int, ...]
    width: int
    for_a: acb_mat
    for_b: acb_mat


@dataclass(frozen=True)
class BallContour:
    """A plan evaluated at `bits` of precision, ready for any number of thresholds."""

    plan: Plan
    bits: int

    def evaluate(self, thresholds: list[Threshold], beside: Sequence[tuple[arb, arb]] | None = None) -> list[BallSum]:
        """Enclosures at each threshold; the precision of the process is restored on return.

        `beside` holds, for each threshold, enclosures of the parts of the sums for A and B (divided by N) that nodes make which
        are neither kept nor counted as dropped.
        """
        others = beside or [(arb(0), arb(0))] * len(thresholds)
        logs = self._log_aliased(thresholds)
        with precision(self.bits):
            return [self._one(t, a, other) for t, a, other in zip(thresholds, logs, others, strict=True)]

    def _log_aliased(self, thresholds: list[Threshold]) -> list[float]:
        return [float(a) for a in self.plan.log_aliasing([t.steps for t in thresholds])]

    def _one(self, threshold: Threshold, log_aliased: float, beside: tuple[arb, arb]) -> BallSum:
        plan, (first, second) = self.plan, self._of_nodes.transform_at_tilt
        sum_a, sum_b = (
            part / plan.nodes + other
            for part, other in zip(self._sums(threshold.steps - self._whole_shift), beside, strict=True)
        )
        a, b, density = self._coefficients(threshold)
        scale = (self._log_moment - self._log_per_step * threshold.steps).exp()
        aliased = arb(log_aliased).exp() * scale
        dropped = arb(plan.log_dropped).exp() * (a * first + b * second) * scale
        value = (a * sum_a + b * sum_b) * scale
        enclosure = value - aliased / 2 + arb(0, (aliased / 2 + dropped).upper())
        return BallSum(enclosure, aliased, dropped, abs(density * (sum_a - sum_b)) * scale)

    def _sums(self, shift: int) -> tuple[arb, arb]:
        """Re sum_k terms_k exp(-2 pi i k shift / N) for both kinds of terms.

        The phase of each row's first node is exact.
        """
        rows = self._rows
        column = acb_mat(rows.width, 1, powers(self._of_nodes.turn(shift), rows.width))
        turns = acb_mat(1, len(rows.starts), [self._of_nodes.turn(k * shift) for k in rows.starts])
        return (turns * (rows.for_a * column))[0, 0].real, (turns * (rows.for_b * column))[0, 0].real

    def _coefficients(self, threshold: Threshold) -> tuple[arb, arb, arb]:
        """A, B, and the factor that turns the difference of the two sums into the payoff's slope."""
        if threshold.gap is None:
            return arb(1), arb(0), 1 / ball(self.plan.lattice.step)
        rise = ball(threshold.gap).exp()
        return 1 - rise, rise - self._of_nodes.shrink_one, rise

    @cached_property
    def _of_nodes(self) -> BallTerms:
        return BallTerms(self.plan, self.bits)

    @cached_property
    def _kept(self) -> list[int]:
        return self._of_nodes.kept

    @cached_property
    def _terms(self) -> list[tuple[acb, acb]]:
        """Per kept node the two summands (for A and for B), mirror images included."""
        return self._of_nodes.terms()

    @cached_property
    def _rows(self) -> _Rows:
        options = [(width, _row_starts(self._kept, width)) for width in _WIDTHS]
        width, starts = min(options, key=lambda o: len(o[1]) * (_ROW + _ENTRY * o[0]) + _POWER * o[0])
        tables = [acb(0)] * (len(starts) * width), [acb(0)] * (len(starts) * width)
        row = 0
        for k, terms in zip(self._kept, self._terms, strict=True):
            if k >= starts[row] + width:
                row += 1
            for table, term in zip(tables, terms, strict=True):
                table[row * width + k - starts[row]] = term
        for_a, for_b = (acb_mat(len(starts), width, table) for table in tables)
        return _Rows(tuple(starts), width, for_a, for_b)

    @cached_property
    def _log_moment(self) -> arb:
        """K(tilt)."""
        lattice, tilt = self.plan.lattice, self.plan.tilt
        thetas = sum((g.count * log_theta_ratio_ball(g.sensitivity * tilt, g.sigma2) for g in lattice.groups), arb(0))
        return ball(lattice.spread * tilt * tilt / 2) + thetas

    @cached_property
    def _log_per_step(self) -> fmpq:
        """tilt h, exactly."""
        exact = self.plan.tilt * self.plan.lattice.step
        return fmpq(exact.numerator, exact.denominator)

    @cached_property
    def _whole_shift(self) -> int:
        lattice = self.plan.lattice
        parts = zip(lattice.groups, lattice.strides, self._of_nodes.centres, strict=True)
        return sum(g.count * a * whole for g, a, (whole, _) in parts)


def _row_starts(kept: list[int], width: int) -> list[int]:
    """The first nodes of rows of `width` neighbours that cover all nodes."""
    starts: list[int] = []
    for k in kept:
        if not starts or k >= starts[-1] + width:
            starts.append(k)
    return starts
