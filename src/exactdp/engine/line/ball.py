"""A plan on the line evaluated in ball arithmetic (Arb): the same sum as in float64.py, of discrete Gaussians, at any precision.

For compositions whose lattice is too fine for balls. Phases are exact rationals until the last moment: node k turns the noise
of a mechanism with w = D / s by k w / T, and both are rational. The bounds are those of Theorem 12 of
docs/theory/any-composition.md; what rounding does is inside the balls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import acb, arb, fmpq

from exactdp.balls import ball, precision
from exactdp.engine.lattice.lattice import Group
from exactdp.engine.line.plan import LinePlan
from exactdp.engine.payoff import Payoff
from exactdp.mechanisms.theta import log_theta_ratio_ball


@dataclass(frozen=True)
class LineBalls:
    """A plan for the loss of some discrete Gaussians, evaluated at `bits` of precision."""

    groups: Sequence[Group]
    plan: LinePlan
    bits: int

    def evaluate(self, epsilon: Fraction) -> arb:
        """An enclosure of delta(epsilon), or of 1 - delta(epsilon) where that is the plan's payoff; epsilon is at least 0."""
        plan = self.plan
        with precision(self.bits):
            lower, upper = enclosed(plan, float(epsilon), *self._sums(epsilon))
            scale = (self._log_moment - ball(plan.view.tilt) * ball(epsilon)).exp()
            return (scale * lower).max(arb(0)).union(scale * upper)

    def _sums(self, epsilon: Fraction) -> tuple[arb, arb]:
        """Re sum_k M(z_k) / M(tilt) e^{-i om_k epsilon} with and without the transform, divided by T."""
        plan = self.plan
        tilt, period = plan.view.tilt, plan.view.period
        sign = -1 if plan.payoff is Payoff.COMPLEMENT else 1
        value, density = arb(0), arb(0)
        for k in plan.kept.tolist():
            moment = self._ratio(k, epsilon) * (2 if k else 1)
            z = acb(ball(tilt), 2 * k * arb.pi() / ball(period))
            density += moment.real
            value += (sign * moment / (z * (1 + z))).real
        return value / ball(period), density / ball(period)

    def _ratio(self, k: int, epsilon: Fraction) -> acb:
        """M(z_k) / M(tilt) e^{-i om_k epsilon}, smoothing included."""
        plan, period = self.plan, self.plan.view.period
        omega = 2 * k * arb.pi() / ball(period)
        turn = k * (self._fixed - epsilon) / period
        result = acb((-ball(plan.smoothing) * omega * omega / 2).exp()) * _unit(turn)
        for group, bottom in zip(self.groups, self._bottoms, strict=True):
            result *= self._noise(group, bottom, k * group.sensitivity / group.sigma2 / period) ** group.count
        return result

    def _noise(self, group: Group, bottom: arb, turn: Fraction) -> acb:
        """The characteristic function of one tilted noise at so many turns: E e^{i v X}, X weighted by e^{-(x - c)^2 / (2s)}.

        With v between -pi and pi it is e^{i v c - s v^2 / 2} theta_3(c + i s v | 2 pi i s) / theta_3(c | 2 pi i s).
        """
        centre, s = group.sensitivity * self.plan.view.tilt, ball(group.sigma2)
        turn -= math.floor(turn + Fraction(1, 2))
        v = 2 * arb.pi() * ball(turn)
        whole = math.floor(centre)
        theta = acb(ball(centre - whole), s * v).modular_theta(acb(0, 2 * arb.pi() * s))[2]
        return _unit(turn * centre) * (-s * v * v / 2).exp() * theta / bottom

    @cached_property
    def _bottoms(self) -> list[arb]:
        """theta_3(c | 2 pi i s) of each group."""
        found = []
        for group in self.groups:
            centre = group.sensitivity * self.plan.view.tilt
            tau = acb(0, 2 * arb.pi() * ball(group.sigma2))
            found.append(acb(ball(centre - math.floor(centre))).modular_theta(tau)[2].real)
        return found

    @cached_property
    def _fixed(self) -> Fraction:
        """The part of the loss that is no noise, and the mean of the smoothing."""
        own = sum((g.count * Fraction(g.sensitivity**2, 2) / g.sigma2 for g in self.groups), Fraction(0))
        return own + self.plan.smoothing * (self.plan.view.tilt + Fraction(1, 2))

    @cached_property
    def _log_moment(self) -> arb:
        """log M(tilt), smoothing included."""
        z = self.plan.view.tilt
        square = sum((g.count * g.sensitivity**2 / g.sigma2 for g in self.groups), self.plan.smoothing)
        thetas = (g.count * log_theta_ratio_ball(g.sensitivity * z, g.sigma2) for g in self.groups)
        return ball(square * z * (z + 1) / 2) + sum(thetas, arb(0))


def enclosed(plan: LinePlan, y: float, value: arb, density: arb) -> tuple[arb, arb]:
    """Bounds of the payoff at y in units of M(tilt) e^{-tilt y}, from the sum over the kept nodes and that without the transform,
    at the current precision (Theorem 12)."""
    tilt, smoothing = ball(plan.view.tilt), ball(plan.smoothing)
    dropped = arb(plan.log_dropped).exp() / abs(tilt * (1 + tilt))
    aliased = arb(float(plan.log_aliasing([y])[0])).exp()
    lower, upper = value - aliased - dropped, value + dropped
    if not plan.smoothing:
        return lower, upper
    most = abs(density) + arb(plan.log_dropped_density).exp()
    smoothed = (1 + smoothing.sqrt()) * smoothing * most
    if plan.payoff is Payoff.DELTA:
        lower -= smoothed
    else:
        upper += smoothed
    return lower, upper


def _unit(turn: Fraction) -> acb:
    """e^{2 pi i turn}."""
    rest = turn - math.floor(turn)
    sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * rest.numerator, rest.denominator))
    return acb(cosine, sine)
