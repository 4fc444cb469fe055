"""The Fourier sum of delta differentiated under the sum: d delta / d rho of every mechanism, and d delta / d epsilon.

With L the total loss, X the noise of one discrete Gaussian mechanism of sensitivity D and V its variance,

    d delta / d rho     = E [e^{epsilon - L} ((X + D)^2 - V) - (X^2 - V); L > epsilon] / D^2       (rho = D^2 / (2 sigma2))
    -d delta / d epsilon = E [e^{epsilon - L}; L > epsilon]

(docs/theory/derivatives.md, Theorem 1): sums over the same nodes as delta's with other transforms, which fall like 1 / omega
instead of 1 / omega^2. They have no pole at 0 and none at -1, so that every contour of delta or 1 - delta serves.

Estimates: the errors stated are what is left out and rounded, by its size; they are not proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import UNIT, Complexes, Floats
from exactdp.engine.lattice.float64 import mirror_weights, whole_shift
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.line.plan import LinePlan
from exactdp.engine.payoff import Threshold, transform_corners
from exactdp.engine.sieve.fixed_point import Turn
from exactdp.engine.sieve.phases import angles, phases
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.tilted_squares import TiltedSquares, tilted_squares

Differentiable = DiscreteGaussian | Gaussian

_NODES_AT_ONCE = 1 << 13
_SMALLEST = 1e-300  # a characteristic function below this counts as this, so that its logarithm is a number
_ROUNDINGS = 64  # units that one term loses beyond those of its exponent


@dataclass(frozen=True)
class Slopes:
    """Estimates at one epsilon, in units of exp(log_scale): by rho of one copy of each mechanism, and by epsilon.

    Where an atom of the loss lies on epsilon the two sides have different derivatives: the value is half-way between them, and
    the error reaches both.
    """

    log_scale: float
    by_rho: Floats
    rho_errors: Floats
    by_epsilon: float
    """-d delta / d epsilon, positive."""
    epsilon_error: float
    below: float
    """P(L <= epsilon), which is what the slope at -epsilon is made of."""


@dataclass(frozen=True)
class _Node:
    """What a block of nodes contributes: the weights with the moment function's others, and the transforms of both indicators."""

    first: Complexes
    """The transform of 1{L > epsilon}."""
    second: Complexes
    """The transform of e^{epsilon - L} 1{L > epsilon}."""
    on_atom: Complexes | None = None
    """The transform of 1{L = epsilon}, where the loss can be exactly that."""


@dataclass
class _Totals:
    """Sums over nodes of terms, and of their sizes times their relative errors."""

    groups: int

    def __post_init__(self) -> None:
        self.by_rho, self.rho_rounding = np.zeros(self.groups), np.zeros(self.groups)
        self.first_on_atom, self.second_on_atom = np.zeros(self.groups), np.zeros(self.groups)
        self.largest = np.zeros(self.groups)
        self.by_epsilon = self.epsilon_rounding = self.atom = self.above = 0.0

    def add(
        self,
        squares: Sequence[tuple[TiltedSquares, int, float] | None],
        common: Complexes,
        node: _Node,
    ) -> None:
        """One block: `common` is everything but the discrete Gaussians' factors, weights and phases included."""
        logs = [None if q is None else _log(q[0].plain) for q in squares]
        parts = [
            q[1] * (q[0].exponent + log)
            for q, log in zip(squares, logs, strict=True)
            if q is not None and log is not None
        ]
        exponent = sum(parts, start=np.zeros(len(common), dtype=np.complex128))
        rounding = UNIT * (_ROUNDINGS + sum((np.abs(part) for part in parts), start=np.zeros(len(common))))
        moments = common * np.exp(exponent)
        slope = moments * node.second
        self.by_epsilon += float(np.sum(slope.real))
        self.epsilon_rounding += float(np.sum(np.abs(slope) * rounding))
        self.above += float(np.sum((moments * node.first).real))
        if node.on_atom is not None:
            self.atom += float(np.sum((moments * node.on_atom).real))
        for i, (q, log) in enumerate(zip(squares, logs, strict=True)):
            if q is None or log is None:  # a continuous Gaussian: (z + 1)^2 / (z + 1) - z^2 / z = 1
                transform, others = node.first, moments
                terms = others * np.ones_like(transform)
            else:
                sums, _, square = q
                others = common * np.exp(exponent - log)
                transform = (sums.shifted * node.second - sums.square * node.first) / square
                terms = others * transform
                if node.on_atom is not None:
                    self._on_atom(i, sums, square, others * node.on_atom)
            self.by_rho[i] += float(np.sum(terms.real))
            self.rho_rounding[i] += float(np.sum(np.abs(terms) * rounding))
            self.largest[i] = max(self.largest[i], float(np.max(np.abs(transform), initial=0.0)))

    def _on_atom(self, i: int, sums: TiltedSquares, square: float, others: Complexes) -> None:
        """E [2 X / D + 1; L = epsilon] and E [(2 X / D + 1)^2; L = epsilon]: dL / d rho is 2 X / D + 1."""
        middle = 2 * (sums.square + sums.shifted) + (4 * sums.variance - square) * sums.plain
        self.first_on_atom[i] += float(np.sum((others * (sums.shifted - sums.square)).real)) / square
        self.second_on_atom[i] += float(np.sum((others * middle).real)) / square

    def settle(self, lam: float, log_scale: float, left_out: Floats, left_out_epsilon: float) -> Slopes:
        """The values half-way between the two sides of an atom, and their errors.

        Under a negative tilt the sum of the first transform is that of 1{L > epsilon} - 1.
        """
        whole = math.exp(min(-log_scale, 700.0)) if lam > 0 else 0.0
        kinks = np.sqrt(np.maximum(self.second_on_atom * self.atom, 0.0))
        return Slopes(
            log_scale,
            self.by_rho + self.first_on_atom / 2,
            self.rho_rounding + left_out + kinks / 2,
            self.by_epsilon + self.atom / 2,
            self.epsilon_rounding + left_out_epsilon + abs(self.atom) / 2,
            whole - self.above - self.atom / 2,
        )


def _log(values: Complexes) -> Complexes:
    modulus = np.abs(values)
    return np.log(np.where(modulus < _SMALLEST, _SMALLEST, values))


def lattice_slopes(plan: Plan, threshold: Threshold) -> Slopes:
    """On the lattice of the loss, whose groups the slopes follow, at a threshold of delta."""
    lattice, lam, h = plan.lattice, plan.lam, plan.lattice.h
    shift = threshold.steps - whole_shift(lattice, lam)
    gap = threshold.gap or Fraction(0)  # of delta it is never 0 nor None
    is_on_atom = gap == -lattice.step
    totals = _Totals(len(lattice.groups))
    for start in range(0, len(plan.kept), _NODES_AT_ONCE):
        kept = plan.kept[start : start + _NODES_AT_ONCE]
        z: Complexes = np.add(lam * h, 1j * angles(kept, plan.nodes), dtype=np.complex128)
        turn = phases(kept, (shift,), plan.nodes)[0]
        v = phases(kept, lattice.strides, plan.nodes)
        squares = [
            (tilted_squares(float(g.sigma2), g.sensitivity, lam, v[i]), g.count, float(g.sensitivity) ** 2)
            for i, g in enumerate(lattice.groups)
        ]
        first: Complexes = np.divide(-1.0, np.expm1(-z), dtype=np.complex128)
        second: Complexes = np.divide(-math.exp(float(gap)), np.expm1(-z - h), dtype=np.complex128)
        node = _Node(first, second, np.exp(z) if is_on_atom else None)
        totals.add(squares, mirror_weights(kept, plan.nodes) * np.exp(-1j * turn), node)
    high, low = plan.log_scale(threshold.steps)
    aliased = float(np.exp(np.minimum(plan.log_aliasing([threshold.steps]), 0.0))[0])
    dropped = math.exp(plan.log_dropped) * slower_fall(plan)
    widths = np.array([2 * float(g.sigma2) / g.sensitivity**2 + (1 + abs(lam)) ** 2 for g in lattice.groups])
    left_out = dropped * totals.largest + aliased * widths
    return totals.settle(lam, high + low, left_out, dropped * totals.largest.max() + aliased)


def slower_fall(plan: Plan) -> float:
    """How much larger, next to their values at the tilt, the transforms of the slopes can be at a node than that of delta."""
    return max(1.0, math.pi / (plan.lattice.h * max(transform_corners(plan.payoff, plan.lam, plan.lattice.h))))


def line_slopes(plan: LinePlan, mechanisms: Sequence[Differentiable], y: arb) -> Slopes:
    """On the line, at the threshold y; `mechanisms` are those of the plan's parts, in their order."""
    view, lam, period = plan.view, plan.lam, float(plan.view.period)
    with precision(BITS):
        turn = Turn.of((plan.anchor - y) / ball(view.period))
        log_scale = float((plan.log_moment - ball(view.tilt) * y).mid())
    smoothing = float(plan.smoothing)
    totals, smoother = _Totals(len(mechanisms)), _Totals(len(mechanisms))
    for start in range(0, len(plan.kept), _NODES_AT_ONCE):
        kept = plan.kept[start : start + _NODES_AT_ONCE]
        omega = kept.astype(np.float64) * (2 * math.pi / period)
        z: Complexes = np.add(lam, 1j * omega, dtype=np.complex128)
        squares = [
            (
                tilted_squares(float(m.sigma2), m.sensitivity, lam, turns[0].phases(kept)),
                part.count,
                float(m.sensitivity) ** 2,
            )
            if isinstance(m, DiscreteGaussian)
            else None
            for m, part, turns in zip(mechanisms, view.total.parts, view.turns, strict=True)
        ]
        weights = np.where(kept == 0, 1.0, 2.0) / period
        fall = -0.5 * plan.spread * omega * omega
        common: Complexes = np.multiply(weights, np.exp(fall + 1j * turn.phases(kept)), dtype=np.complex128)
        node = _Node(np.divide(1.0, z, dtype=np.complex128), np.divide(1.0, 1 + z, dtype=np.complex128))
        totals.add(squares, common, node)
        if smoothing:
            smoother.add(squares, np.multiply(common, np.exp(smoothing * z * (1 + z) / 2), dtype=np.complex128), node)
    # Cauchy and Schwarz: sum |M| / |omega| is at most the root of sum |M V| times sum |M|
    dropped = math.exp((plan.log_dropped + plan.log_dropped_density) / 2) / math.sqrt(abs(lam) * (1 + lam))
    aliased = float(np.exp(np.minimum(plan.log_aliasing([float(y.mid())]), 0.0))[0])
    widths = np.array([2 * float(m.sigma2 / m.sensitivity**2) + (1 + abs(lam)) ** 2 for m in mechanisms])
    left_out = dropped * totals.largest * (1 + abs(lam)) + aliased * widths
    left_epsilon = dropped + aliased
    if smoothing:  # twice the smoothing moves the sum by about as much as the first did
        left_out = left_out + 2 * np.abs(smoother.by_rho - totals.by_rho)
        left_epsilon += 2 * abs(smoother.by_epsilon - totals.by_epsilon)
    return totals.settle(lam, log_scale, left_out, left_epsilon)
