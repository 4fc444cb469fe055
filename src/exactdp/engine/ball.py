"""Evaluating a plan in ball arithmetic (Arb): the same nodes, rigorous enclosures, any precision.

The two arithmetics share the plan and nothing else. Phases and exponents are exact rationals until the last moment: node k of
group g has the residue r = k a mod N, so log |M / M(tilt)| is -pi^2 times a rational and the phase is pi times a rational.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from flint import acb, arb, fmpq

from exactdp.engine.payoff import Payoff, Threshold
from exactdp.engine.plan import Plan
from exactdp.mechanisms.theta import POISSON_FROM, TWO_PI_SQUARED
from exactdp.mechanisms.theta_ball import ball, log_theta_ratio_ball, precision


@dataclass(frozen=True)
class BallSum:
    """An enclosure of the payoff's exact value, and what the analytic errors contributed to it (both as balls)."""

    value: arb
    aliased: arb
    dropped: arb
    slope: arb
    """-d(value)/dx0, as an enclosure of the truncated sums: steers Newton's method and enters no bound."""


@dataclass(frozen=True)
class BallContour:
    """A plan evaluated at `bits` of precision, ready for any number of thresholds."""

    plan: Plan
    bits: int

    def evaluate(self, thresholds: list[Threshold]) -> list[BallSum]:
        """Enclosures at each threshold; the precision of the process is restored on return."""
        with precision(self.bits):
            return [self._one(t, float(a)) for t, a in zip(thresholds, self._log_aliased(thresholds), strict=True)]

    def _log_aliased(self, thresholds: list[Threshold]) -> list[float]:
        return [float(a) for a in self.plan.log_aliasing([t.steps for t in thresholds])]

    def _one(self, threshold: Threshold, log_aliased: float) -> BallSum:
        plan, (first, second) = self.plan, self._transform_at_tilt
        shift = threshold.steps - self._whole_shift
        sum_a, sum_b = arb(0), arb(0)
        for k, (real_a, imag_a, real_b, imag_b) in zip(self._kept, self._terms, strict=True):
            sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * (k * shift % plan.nodes), plan.nodes))
            sum_a += real_a * cosine + imag_a * sine
            sum_b += real_b * cosine + imag_b * sine
        a, b, density = self._coefficients(threshold)
        scale = (self._log_moment - ball(plan.tilt * plan.lattice.step * threshold.steps)).exp()
        aliased = arb(log_aliased).exp() * scale
        dropped = arb(plan.log_dropped).exp() * (a * first + b * second) * scale
        value = (a * sum_a + b * sum_b) / plan.nodes * scale
        enclosure = value - aliased / 2 + arb(0, (aliased / 2 + dropped).upper())
        return BallSum(enclosure, aliased, dropped, abs(density * (sum_a - sum_b)) / plan.nodes * scale)

    def _coefficients(self, threshold: Threshold) -> tuple[arb, arb, arb]:
        """A, B, and the factor that turns the difference of the two sums into the payoff's slope."""
        if threshold.gap is None:
            return arb(1), arb(0), 1 / ball(self.plan.lattice.step)
        rise = ball(threshold.gap).exp()
        return 1 - rise, rise - ball(-self.plan.lattice.step).exp(), rise

    @cached_property
    def _kept(self) -> list[int]:
        return [int(k) for k in self.plan.kept]

    @cached_property
    def _log_moment(self) -> arb:
        """K(tilt)."""
        lattice, tilt = self.plan.lattice, self.plan.tilt
        thetas = sum((g.count * log_theta_ratio_ball(g.sensitivity * tilt, g.sigma2) for g in lattice.groups), arb(0))
        return ball(lattice.spread * tilt * tilt / 2) + thetas

    @cached_property
    def _centres(self) -> tuple[tuple[int, Fraction], ...]:
        """round(D tilt) and the rest, by group."""
        shifts = [g.sensitivity * self.plan.tilt for g in self.plan.lattice.groups]
        wholes = [math.floor(s + Fraction(1, 2)) for s in shifts]
        return tuple((whole, shift - whole) for whole, shift in zip(wholes, shifts, strict=True))

    @cached_property
    def _whole_shift(self) -> int:
        lattice = self.plan.lattice
        parts = zip(lattice.groups, lattice.strides, self._centres, strict=True)
        return sum(g.count * a * whole for g, a, (whole, _) in parts)

    @cached_property
    def _transform_at_tilt(self) -> tuple[arb, arb]:
        real_a, _, real_b, _ = self._transform(0)
        return real_a, real_b

    @cached_property
    def _terms(self) -> list[tuple[arb, arb, arb, arb]]:
        """Per kept node the two summands (for A and for B) as real and imaginary parts, mirror images included."""
        lattice, nodes = self.plan.lattice, self.plan.nodes
        scale = math.lcm(*(g.sigma2.denominator for g in lattice.groups))
        falls = [int(g.count * g.sigma2 * scale) for g in lattice.groups]
        turn_scale = math.lcm(*(rest.denominator for _, rest in self._centres))
        turns = [int(g.count * rest * turn_scale) for g, (_, rest) in zip(lattice.groups, self._centres, strict=True)]
        pi_squared = arb.pi() ** 2
        result = []
        for k in self._kept:
            residues = [_signed(k * a % nodes, nodes) for a in lattice.strides]
            fall = sum(f * r * r for f, r in zip(falls, residues, strict=True))
            turn = sum(t * r for t, r in zip(turns, residues, strict=True))
            sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * turn, turn_scale * nodes))
            size = (-pi_squared * ball(Fraction(2 * fall, scale * nodes * nodes))).exp()
            if 0 < 2 * k < nodes:
                size *= 2
            moment = acb(size * cosine, size * sine) * self._theta_factor(residues)
            real_a, imag_a, real_b, imag_b = self._transform(k)
            for_a, for_b = moment * acb(real_a, imag_a), moment * acb(real_b, imag_b)
            result.append((for_a.real, for_a.imag, for_b.real, for_b.imag))
        return result

    def _theta_factor(self, residues: list[int]) -> acb:
        """product of (theta(centre + i s v) / theta(centre))^count; groups for which it is 1 to the last bit are a ball."""
        lattice, nodes = self.plan.lattice, self.plan.nodes
        factor, left_out = acb(1), arb(0)
        threshold = -(self.bits + 8) * math.log(2) - math.log(len(lattice.groups))
        for i, (g, r) in enumerate(zip(lattice.groups, residues, strict=True)):
            s = float(g.sigma2)
            log_size = math.log(g.count) + s * (4 * math.pi**2 * abs(r) / nodes - TWO_PI_SQUARED)
            if s >= POISSON_FROM and log_size < threshold:  # Lemma 4, with room for the rounding of log_size
                left_out += (
                    arb(log_size + 1e-12 * abs(log_size)).exp() * 1.0002 / (1 - 2.01 * math.exp(-TWO_PI_SQUARED * s))
                )
                continue
            tau, bottom, s_ball = self._theta_constants[i]
            height = 2 * arb.pi() * s_ball * r / nodes
            top = acb(ball(self._centres[i][1]), height).modular_theta(tau)[2]
            factor *= (top / bottom) ** g.count
        error = arb(0, left_out.upper())  # of the product of the factors left out
        return factor * acb(1 + error, error)

    @cached_property
    def _theta_constants(self) -> list[tuple[acb, acb, arb]]:
        constants = []
        for g, (_, rest) in zip(self.plan.lattice.groups, self._centres, strict=True):
            tau = acb(0, 2 * arb.pi() * ball(g.sigma2))
            constants.append((tau, acb(ball(rest)).modular_theta(tau)[2], ball(g.sigma2)))
        return constants

    def _transform(self, k: int) -> tuple[arb, arb, arb, arb]:
        """The factors that A and B multiply in V e^{z x0} at node k, as real and imaginary parts (payoff.py)."""
        plan = self.plan
        h, tilt, nodes = plan.lattice.step, plan.tilt, plan.nodes
        sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * k, nodes))
        q = acb(cosine, -sine) * ball(-tilt * h).exp()
        if plan.payoff is Payoff.TAIL:
            base = 1 / (1 - q)
            first, second = base, base * q
        elif plan.payoff is Payoff.DELTA:
            base = 1 / ((1 - q) * (1 - q * ball(-h).exp()))
            first, second = base, base * q
        else:
            base = 1 / ((1 - 1 / q) * (1 - q * ball(-h).exp()))
            first, second = base / q, base
        return first.real, first.imag, second.real, second.imag


def _signed(residue: int, nodes: int) -> int:
    return residue - nodes if 2 * residue > nodes else residue
