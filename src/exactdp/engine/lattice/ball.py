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

from exactdp.balls import ball, precision
from exactdp.doubles import FORMULA_SLACK
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.payoff import Payoff, Threshold
from exactdp.mechanisms.theta import LATER_TERMS, POISSON_FROM, TWO_PI_SQUARED, log_theta_ratio_ball

_FIRST_ORDER = 1.0001  # |e^x - 1| <= 1.0001 |x| for |x| <= 1e-4


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
            size = (-pi_squared * arb(fmpq(2 * fall, scale * nodes * nodes))).exp()
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
        factor, log_left_out = acb(1), -math.inf
        for i, (g, r) in enumerate(zip(lattice.groups, residues, strict=True)):
            offset, per_residue = self._log_theta_sizes[i]
            log_size = offset + per_residue * abs(r)
            if log_size < self._negligible:
                high, low = max(log_left_out, log_size), min(log_left_out, log_size)
                log_left_out = high + math.log1p(math.exp(low - high))
                continue
            tau, bottom, s_ball = self._theta_constants[i]
            height = 2 * arb.pi() * s_ball * r / nodes
            top = acb(ball(self._centres[i][1]), height).modular_theta(tau)[2]
            factor *= (top / bottom) ** g.count
        if log_left_out == -math.inf:
            return factor
        error = arb(0, arb(log_left_out + FORMULA_SLACK * abs(log_left_out)).exp() * _FIRST_ORDER)
        return factor * acb(1 + error, error)

    @cached_property
    def _negligible(self) -> float:
        return -(self.bits + 8) * math.log(2) - math.log(len(self.plan.lattice.groups))

    @cached_property
    def _log_theta_sizes(self) -> list[tuple[float, float]]:
        """Lemma 4's bound of a whole theta factor as exp(offset + per_residue |residue|); for s below 1/4 there is none."""
        sizes = []
        for g in self.plan.lattice.groups:
            s = float(g.sigma2)
            room = -math.log1p(-2.01 * math.exp(-TWO_PI_SQUARED * s)) if s >= POISSON_FROM else math.inf
            offset = math.log(LATER_TERMS * g.count) - TWO_PI_SQUARED * s + room
            sizes.append((offset, 4 * math.pi**2 * s / self.plan.nodes))
        return sizes

    @cached_property
    def _theta_constants(self) -> list[tuple[acb, acb, arb]]:
        constants = []
        for g, (_, rest) in zip(self.plan.lattice.groups, self._centres, strict=True):
            tau = acb(0, 2 * arb.pi() * ball(g.sigma2))
            constants.append((tau, acb(ball(rest)).modular_theta(tau)[2], ball(g.sigma2)))
        return constants

    @cached_property
    def _shrink(self) -> arb:
        """|q| = e^{-tilt h}."""
        return ball(-self.plan.tilt * self.plan.lattice.step).exp()

    @cached_property
    def _shrink_one(self) -> arb:
        """e^{-h}."""
        return ball(-self.plan.lattice.step).exp()

    def _transform(self, k: int) -> tuple[arb, arb, arb, arb]:
        """The factors that A and B multiply in V e^{z x0} at node k, as real and imaginary parts (payoff.py)."""
        plan = self.plan
        sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * k, plan.nodes))
        q = acb(cosine, -sine) * self._shrink
        if plan.payoff is Payoff.COMPLEMENT:
            base = 1 / ((1 - 1 / q) * (1 - q * self._shrink_one))
            first, second = base / q, base
        else:
            base = 1 / (1 - q if plan.payoff is Payoff.TAIL else (1 - q) * (1 - q * self._shrink_one))
            first, second = base, base * q
        return first.real, first.imag, second.real, second.imag


def _signed(residue: int, nodes: int) -> int:
    return residue - nodes if 2 * residue > nodes else residue
