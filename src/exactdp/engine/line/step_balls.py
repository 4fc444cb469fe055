"""A Fourier sum for steps cut off, in balls: terms may cancel to any number of digits, and no sum is limited by its rounding.

The characteristic function at equally spaced nodes is a product of matrices, which costs about as much in balls as in doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from flint import acb, acb_mat, arb

from exactdp.balls import BITS, ball, precision
from exactdp.brackets import bracket_of_balls
from exactdp.engine.line.ball import enclosed
from exactdp.engine.line.plan import LinePlan
from exactdp.engine.line.protocol import OneByOne, Used
from exactdp.errors import AccuracyError
from exactdp.mechanisms.cut_mixture_loss import CutMixtureLoss
from exactdp.numerals import about


@dataclass(frozen=True)
class StepBalls(OneByOne):
    """So many steps with the same loss, cut off, by a plan for delta. All nodes up to the last one are summed."""

    loss: CutMixtureLoss
    count: int
    plan: LinePlan
    most: int
    """Nodes times points that may be evaluated."""

    @cached_property
    def _step(self) -> arb:
        with precision(BITS):
            return 2 * arb.pi() / ball(self.plan.view.period)

    @cached_property
    def nodes(self) -> int:
        """How many nodes are summed."""
        return int(self.plan.kept[-1]) + 1

    @cached_property
    def _kinds(self) -> acb_mat:
        """The terms whose sums are the value, its slope and the density, without the thresholds' phases."""
        plan = self.plan
        means = self.loss.tilted(plan.view.tilt).even_cf(self._step, self.nodes, self.most)
        with precision(BITS):
            tilt, half, weight = ball(plan.view.tilt), ball(plan.smoothing) / 2, 1 / ball(plan.view.period)
            rows: list[list[acb]] = [[], [], []]
            for k, mean in enumerate(means):
                omega = k * self._step
                z = acb(tilt, omega)
                density = mean**self.count * (weight * (2 if k else 1) * (-half * omega * omega).exp())
                slope = density / (1 + z)
                for row, term in zip(rows, (slope / z, slope, density), strict=True):
                    row.append(term)
            return acb_mat(rows)

    def sums(self, y: arb) -> tuple[arb, arb, arb]:
        """A lower and an upper bound of delta(y) (Theorem 12 of docs/theory/any-composition.md), and its slope."""
        plan = self.plan
        with precision(BITS):
            angle = self._step * (plan.anchor - y)
            phases = [[acb(0, k * angle).exp()] for k in range(self.nodes)]
            value, slope, density = (x.real for x in (self._kinds * acb_mat(phases)).entries())
            scale = (plan.log_moment - ball(plan.view.tilt) * y).exp()
            lower, upper = enclosed(plan, float(y.mid()), value, density)
            return scale * lower, scale * upper, scale * slope

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """The bounds of `sums` and the slope."""
        with precision(BITS):
            lower, upper, slope = self.sums(y)
            if not upper.mid() > 0:
                raise AccuracyError("The Fourier sum of a sampled mechanism cancels beyond the digits of its balls.")
            scale, _, high = bracket_of_balls(upper)
            unit = arb(-scale).exp()
            low = math.nextafter(float((lower * unit).lower()), -math.inf)
            return scale, max(low, 0.0), high, float((slope * unit).mid())

    def used(self, y: arb) -> Used:
        """Period and nodes."""
        plan = self.plan
        rows = (
            ("period T", about(plan.view.period)),
            ("nodes", f"{self.nodes:,} (one of each conjugate pair)"),
            ("smoothing", f"R = {about(plan.smoothing, 2)}"),
        )
        return Used(
            "Fourier sum in balls", plan.payoff, self.nodes, rows, f"the sum in balls of {BITS} bits, else float64"
        )
