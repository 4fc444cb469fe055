"""The terms of a Fourier sum in balls: the moment function and the payoff's transform at the kept nodes.

At the first of neighbouring nodes phases and exponents are exact rationals until the last moment: node k of group g has the
residue r = k a mod N, so log |M / M(tilt)| is -pi^2 times a rational and the phase is pi times a rational. From there to the next
nodes the residues grow evenly, so that phases and exponentials are those of the first times powers that all neighbours share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from flint import acb, arb, fmpq

from exactdp.balls import ball
from exactdp.doubles import FORMULA_SLACK, UNDERFLOW
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.payoff import Payoff
from exactdp.mechanisms.theta import LATER_TERMS, POISSON_FROM, TWO_PI_SQUARED

_FIRST_ORDER = 1.0001  # |e^x - 1| <= 1.0001 |x| for |x| <= 1e-4
_LONGEST = (
    64  # nodes that start from one: real powers lose a bit for each doubling of them, of which there are 64 to spare
)


class Run(NamedTuple):
    """Neighbouring nodes over which no residue passes N / 2: the first, how many, and the first one's residues by group."""

    first: int
    length: int
    residues: list[int]


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
class BallTerms:
    """What depends on the nodes of a plan alone, at `bits` of precision, which the caller has set."""

    plan: Plan
    bits: int

    @cached_property
    def kept(self) -> list[int]:
        """The kept nodes."""
        return [int(k) for k in self.plan.kept]

    def terms(self) -> list[tuple[acb, acb]]:
        """Per kept node the two summands (for A and for B), mirror images included."""
        return [summands for run in self._runs() for summands in self._terms_of(run)]

    def _runs(self) -> Iterator[Run]:
        kept, nodes, strides = self.kept, self.plan.nodes, self.plan.lattice.strides
        place = 0
        while place < len(kept):
            first, count = kept[place], 1
            residues = [_signed(first * a % nodes, nodes) for a in strides]
            room = min(
                (nodes - 2 * r if a > 0 else nodes + 2 * r) // (2 * abs(a)) if a else _LONGEST
                for r, a in zip(residues, self._moves, strict=True)
            )
            most = min(room + 1, _LONGEST, len(kept) - place)
            while count < most and kept[place + count] == first + count:
                count += 1
            yield Run(first, count, residues)
            place += count

    def _terms_of(self, run: Run) -> Iterator[tuple[acb, acb]]:
        nodes, (exponent, turn_scale), (falls, turns) = self.plan.nodes, self._scales, self._rates
        fall, drift, turn = 0, 0, 0
        for f, t, r, a in zip(falls, turns, run.residues, self._moves, strict=True):
            fall, drift, turn = fall + f * r * r, drift + 2 * f * r * a, turn + t * r
        sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * turn, turn_scale * nodes))
        start, first_q = acb(cosine, sine), self.turn(run.first) * self._shrink
        size, step = (exponent * fall).exp(), (exponent * drift).exp() if run.length > 1 else arb(1)
        thetas, (bends, phases, qs) = self._theta_factors(run), self._powers
        for j, theta in enumerate(thetas):
            own = size * bends[j]
            if 0 < 2 * (run.first + j) < nodes:
                own *= 2
            first, second = self._transform(first_q * qs[j])
            moment = start * phases[j] * theta * own
            yield moment * first, moment * second
            size *= step

    @cached_property
    def _moves(self) -> list[int]:
        """By group what its residue grows by from one node to the next."""
        return [_signed(a % self.plan.nodes, self.plan.nodes) for a in self.plan.lattice.strides]

    @cached_property
    def _rates(self) -> tuple[list[int], list[int]]:
        """By group what the square of its residue adds to the exponent, and its residue to the phase, in units of `_scales`."""
        scale, turn_scale = self._denominators
        groups = self.plan.lattice.groups
        falls = [int(g.count * g.sigma2 * scale) for g in groups]
        return falls, [int(g.count * rest * turn_scale) for g, (_, rest) in zip(groups, self.centres, strict=True)]

    @cached_property
    def _denominators(self) -> tuple[int, int]:
        scale = math.lcm(*(g.sigma2.denominator for g in self.plan.lattice.groups))
        return scale, math.lcm(*(rest.denominator for _, rest in self.centres))

    @cached_property
    def _scales(self) -> tuple[arb, int]:
        scale, turn_scale = self._denominators
        return -2 * arb.pi() ** 2 / (scale * self.plan.nodes * self.plan.nodes), turn_scale

    @cached_property
    def _powers(self) -> tuple[list[arb], list[acb], list[acb]]:
        """For the j-th node of a run: the part of the exponential that grows with j^2, the phase's power, and that of q."""
        longest = min(_LONGEST, len(self.kept))
        (exponent, turn_scale), (falls, turns) = self._scales, self._rates
        bend = sum(f * a * a for f, a in zip(falls, self._moves, strict=True))
        turn = sum(t * a for t, a in zip(turns, self._moves, strict=True))
        sine, cosine = arb.sin_cos_pi_fmpq(fmpq(2 * turn, turn_scale * self.plan.nodes))
        bends = [(exponent * (bend * j * j)).exp() for j in range(longest)]
        return bends, powers(acb(cosine, sine), longest), powers(self.turn(1), longest)

    def _theta_factors(self, run: Run) -> Iterator[acb]:
        """product of (theta(centre + i s v) / theta(centre))^count; groups for which it is 1 to the last bit are a ball."""
        left_out = UNDERFLOW * len(run.residues)  # in units of what is negligible; exp may underflow
        ratios: list[tuple[int, Iterator[acb]]] = []
        for i, (r, (offset, per_residue)) in enumerate(zip(run.residues, self._log_theta_sizes, strict=True)):
            last = r + (run.length - 1) * self._moves[i]
            log_size = offset + per_residue * max(abs(r), abs(last))  # the largest of the run
            if log_size < 0:
                left_out += math.exp(log_size)
            else:
                ratios.append((self.plan.lattice.groups[i].count, self._theta_ratios(i, r, run.length)))
        error = arb(0, left_out * (1 + FORMULA_SLACK) * _FIRST_ORDER * self._negligible)
        around_one = acb(1 + error, error)
        for _ in range(run.length):
            factor = around_one
            for power, ratio in ratios:
                factor *= next(ratio) ** power
            yield factor

    def _theta_ratios(self, i: int, r: int, count: int) -> Iterator[acb]:
        """theta(centre + i s v) / theta(centre) of a group from residue r on.

        By Poisson's series 1 + 2 sum of p^{n^2} cos(2 pi n (centre + i s v)), up to what Lemma 3 says is negligible; for s below
        1/4 as Jacobi's function.
        """
        constants, move = self._theta_constants[i], self._moves[i]
        if not constants.terms:
            for j in range(count):
                height = constants.height * (r + j * move)
                yield acb(self._rests[i], height).modular_theta(constants.tau)[2] / constants.bottom
            return
        grown, (step, back) = (constants.growth * r).exp(), self._theta_steps[i]
        shrunk = 1 / grown
        for _ in range(count):
            real, imag, up, down = constants.first + constants.later, constants.later, grown, shrunk
            for n, (cosine, sine) in enumerate(constants.terms):
                if n:
                    up, down = up * grown, down * shrunk
                real, imag = real + cosine * (up + down), imag - sine * (up - down)
            yield acb(real, imag)
            grown, shrunk = grown * step, shrunk * back

    @cached_property
    def _theta_steps(self) -> list[tuple[arb, arb]]:
        """By group what e^(2 pi times the height) and its inverse are multiplied by from one node to the next."""
        steps = [(c.growth * move).exp() for c, move in zip(self._theta_constants, self._moves, strict=True)]
        return [(step, 1 / step) for step in steps]

    def turn(self, steps: int) -> acb:
        """exp(-2 pi i steps / N)."""
        nodes = self.plan.nodes
        sine, cosine = arb.sin_cos_pi_fmpq(fmpq(-2 * (steps % nodes), nodes))
        return acb(cosine, sine)

    @cached_property
    def centres(self) -> tuple[tuple[int, Fraction], ...]:
        """round(D tilt) and the rest, by group."""
        shifts = [g.sensitivity * self.plan.tilt for g in self.plan.lattice.groups]
        wholes = [math.floor(s + Fraction(1, 2)) for s in shifts]
        return tuple((whole, shift - whole) for whole, shift in zip(wholes, shifts, strict=True))

    @cached_property
    def transform_at_tilt(self) -> tuple[arb, arb]:
        """The factors that A and B multiply in V at the tilt."""
        first, second = self._transform(acb(self._shrink))
        return first.real, second.real

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
        return [ball(rest) for _, rest in self.centres]

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
    def shrink_one(self) -> arb:
        """e^{-h}."""
        return ball(-self.plan.lattice.step).exp()

    def _transform(self, q: acb) -> tuple[acb, acb]:
        """The factors that A and B multiply in V e^{z x0} where e^{-z h} is q (payoff.py)."""
        plan = self.plan
        if plan.payoff is Payoff.COMPLEMENT:
            base = 1 / ((1 - 1 / q) * (1 - q * self.shrink_one))
            return base / q, base
        base = 1 / (1 - q if plan.payoff is Payoff.TAIL else (1 - q) * (1 - q * self.shrink_one))
        return base, base * q


def powers(base: acb, count: int) -> list[acb]:
    """base^0, ..., base^(count - 1), each by halving the exponent, so that the boxes around them grow with its logarithm only."""
    result = [acb(1), base]
    for j in range(2, count):
        result.append(result[j // 2] * result[j - j // 2])
    return result[:count]


def _signed(residue: int, nodes: int) -> int:
    return residue - nodes if 2 * residue > nodes else residue
