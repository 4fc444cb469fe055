"""Evaluating a plan in ball arithmetic (Arb): the same nodes, rigorous enclosures, any precision.

Phases and exponents are exact rationals until the last moment: node k of group g has the residue r = k a mod N, so
log |M / M(tilt)| is -pi^2 times a rational and the phase is pi times a rational.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from flint import acb, acb_mat, arb, fmpq

from exactdp.balls import ball, precision
from exactdp.doubles import FORMULA_SLACK, UNDERFLOW
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.payoff import Payoff, Threshold
from exactdp.mechanisms.theta import LATER_TERMS, POISSON_FROM, TWO_PI_SQUARED, log_theta_ratio_ball

_FIRST_ORDER = 1.0001  # |e^x - 1| <= 1.0001 |x| for |x| <= 1e-4
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


class _ThetaConstants(NamedTuple):
    """What the theta function of a group at all its residues has in common."""

    tau: acb
    bottom: arb
    """theta(centre)."""
    height: arb
    """The imaginary part of the argument for each unit of the residue."""
    growth: arb
    """2 pi of that: what the exponent of the first term grows by."""
    first: arb
    """1 / theta(centre)."""
    later: arb
    """What the terms that are left out can add to either part."""
    terms: tuple[tuple[arb, arb], ...]
    """p^{n^2} cos(2 pi n centre) and p^{n^2} sin(2 pi n centre), divided by theta(centre); none where the series is not used."""


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
        plan, (first, second) = self.plan, self._transform_at_tilt
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

        Powers within a row come by halving the exponent, so that the boxes around them grow with its logarithm only; the phase
        of each row's first node is exact.
        """
        rows = self._rows
        powers = [acb(1), self._turn(shift)]
        for j in range(2, rows.width):
            powers.append(powers[j // 2] * powers[j - j // 2])
        column = acb_mat(rows.width, 1, powers[: rows.width])
        turns = acb_mat(1, len(rows.starts), [self._turn(k * shift) for k in rows.starts])
        return (turns * (rows.for_a * column))[0, 0].real, (turns * (rows.for_b * column))[0, 0].real

    def _turn(self, steps: int) -> acb:
        """exp(-2 pi i steps / N)."""
        nodes = self.plan.nodes
        sine, cosine = arb.sin_cos_pi_fmpq(fmpq(-2 * (steps % nodes), nodes))
        return acb(cosine, sine)

    def _coefficients(self, threshold: Threshold) -> tuple[arb, arb, arb]:
        """A, B, and the factor that turns the difference of the two sums into the payoff's slope."""
        if threshold.gap is None:
            return arb(1), arb(0), 1 / ball(self.plan.lattice.step)
        rise = ball(threshold.gap).exp()
        return 1 - rise, rise - self._shrink_one, rise

    @cached_property
    def _kept(self) -> list[int]:
        return [int(k) for k in self.plan.kept]

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
        first, second = self._transform(0)
        return first.real, second.real

    @cached_property
    def _terms(self) -> list[tuple[acb, acb]]:
        """Per kept node the two summands (for A and for B), mirror images included."""
        lattice, nodes = self.plan.lattice, self.plan.nodes
        scale = math.lcm(*(g.sigma2.denominator for g in lattice.groups))
        falls = [int(g.count * g.sigma2 * scale) for g in lattice.groups]
        turn_scale = math.lcm(*(rest.denominator for _, rest in self._centres))
        turns = [int(g.count * rest * turn_scale) for g, (_, rest) in zip(lattice.groups, self._centres, strict=True)]
        exponent = -2 * arb.pi() ** 2 / (scale * nodes * nodes)
        result = []
        for k in self._kept:
            residues = [_signed(k * a % nodes, nodes) for a in lattice.strides]
            fall = sum(f * r * r for f, r in zip(falls, residues, strict=True))
            turn = sum(t * r for t, r in zip(turns, residues, strict=True))
            sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * turn, turn_scale * nodes))
            size = (exponent * fall).exp()
            if 0 < 2 * k < nodes:
                size *= 2
            moment = acb(size * cosine, size * sine) * self._theta_factor(residues)
            first, second = self._transform(k)
            result.append((moment * first, moment * second))
        return result

    def _theta_factor(self, residues: list[int]) -> acb:
        """product of (theta(centre + i s v) / theta(centre))^count; groups for which it is 1 to the last bit are a ball."""
        factor = acb(1)
        left_out = UNDERFLOW * len(residues)  # in units of what is negligible; exp may underflow
        for i, (r, (offset, per_residue)) in enumerate(zip(residues, self._log_theta_sizes, strict=True)):
            log_size = offset + per_residue * abs(r)
            if log_size < 0:
                left_out += math.exp(log_size)
                continue
            factor *= self._theta_ratio(i, r) ** self.plan.lattice.groups[i].count
        error = arb(0, left_out * (1 + FORMULA_SLACK) * _FIRST_ORDER * self._negligible)
        return factor * acb(1 + error, error)

    def _theta_ratio(self, i: int, r: int) -> acb:
        """theta(centre + i s v) / theta(centre) of a group at residue r.

        By Poisson's series 1 + 2 sum of p^{n^2} cos(2 pi n (centre + i s v)), up to what Lemma 3 says is negligible; for s below
        1/4 as Jacobi's function.
        """
        constants = self._theta_constants[i]
        if not constants.terms:
            return acb(self._rests[i], constants.height * r).modular_theta(constants.tau)[2] / constants.bottom
        grown = (constants.growth * r).exp()
        shrunk = 1 / grown
        real, imag, up, down = constants.first + constants.later, constants.later, grown, shrunk
        for n, (cosine, sine) in enumerate(constants.terms):
            if n:
                up, down = up * grown, down * shrunk
            real, imag = real + cosine * (up + down), imag - sine * (up - down)
        return acb(real, imag)

    @cached_property
    def _log_negligible(self) -> float:
        return -(self.bits + 8) * math.log(2) - math.log(len(self.plan.lattice.groups))

    @cached_property
    def _negligible(self) -> arb:
        return arb(self._log_negligible).exp()

    @cached_property
    def _log_theta_sizes(self) -> list[tuple[float, float]]:
        """Lemma 4's bound of a whole theta factor as exp(offset + per_residue |residue|) in units of what is negligible.

        For s below 1/4 there is none.
        """
        sizes = []
        for g in self.plan.lattice.groups:
            s = float(g.sigma2)
            room = -math.log1p(-2.01 * math.exp(-TWO_PI_SQUARED * s)) if s >= POISSON_FROM else math.inf
            offset = math.log(LATER_TERMS * g.count) - TWO_PI_SQUARED * s + room
            slack = FORMULA_SLACK * (1 + 2 * TWO_PI_SQUARED * s - self._log_negligible)
            sizes.append((offset - self._log_negligible + slack, 4 * math.pi**2 * s / self.plan.nodes))
        return sizes

    @cached_property
    def _rests(self) -> list[arb]:
        return [ball(rest) for _, rest in self._centres]

    @cached_property
    def _theta_constants(self) -> list[_ThetaConstants]:
        """By group what does not depend on the node."""
        constants = []
        for g, rest in zip(self.plan.lattice.groups, self._rests, strict=True):
            period = 2 * arb.pi() * ball(g.sigma2)
            tau, decay = acb(0, period), TWO_PI_SQUARED * float(g.sigma2)
            bottom, height = acb(rest).modular_theta(tau)[2].real, period / self.plan.nodes
            count = 0  # of terms: the one after the last, 2.1 e^(-2 pi^2 s n (n - 1)) at most, is negligible
            while g.sigma2 >= POISSON_FROM and not decay * (count + 1) * count > 1 - self._log_negligible:
                count += 1
            terms = []
            for n in range(1, count + 1):
                power, angle = (-arb.pi() * period * n * n).exp() / bottom, 2 * n * rest
                terms.append((power * angle.cos_pi(), power * angle.sin_pi()))
            growth, later = 2 * arb.pi() * height, arb(0, self._negligible)
            constants.append(_ThetaConstants(tau, bottom, height, growth, 1 / bottom, later, tuple(terms)))
        return constants

    @cached_property
    def _shrink(self) -> arb:
        """|q| = e^{-tilt h}."""
        return ball(-self.plan.tilt * self.plan.lattice.step).exp()

    @cached_property
    def _shrink_one(self) -> arb:
        """e^{-h}."""
        return ball(-self.plan.lattice.step).exp()

    def _transform(self, k: int) -> tuple[acb, acb]:
        """The factors that A and B multiply in V e^{z x0} at node k (payoff.py)."""
        plan = self.plan
        q = self._turn(k) * self._shrink
        if plan.payoff is Payoff.COMPLEMENT:
            base = 1 / ((1 - 1 / q) * (1 - q * self._shrink_one))
            return base / q, base
        base = 1 / (1 - q if plan.payoff is Payoff.TAIL else (1 - q) * (1 - q * self._shrink_one))
        return base, base * q


def _signed(residue: int, nodes: int) -> int:
    return residue - nodes if 2 * residue > nodes else residue


def _row_starts(kept: list[int], width: int) -> list[int]:
    """The first nodes of rows of `width` neighbours that cover all nodes."""
    starts: list[int] = []
    for k in kept:
        if not starts or k >= starts[-1] + width:
            starts.append(k)
    return starts
