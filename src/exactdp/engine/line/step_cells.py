"""One step of a sampled Gaussian on a grid of losses: what outputs between neighbouring points have, bounded on both sides.

With f = dP/dQ a point k of the grid is the output where f = p_0 e^{k step}, p_0 = 1 - rate. A cell has three numbers: P, the
integral under Q of f less f at its first point, and that of f at its second point less f (docs/theory/smooth.md, Lemma S16).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import CLOSE_SLACK, POWER_SLACK, UNIT, Floats
from exactdp.mechanisms.trapezoidal_rule import Mixture

RULE = 8
"""Points of the rule of Gauss and Legendre for a cell."""

SHORT = 0.1
"""The length of a cell times 1 + |x| + m up to which the rule is used."""

FAR = 36.0
"""Outputs up to which the rule is used: the normal density is a double there, far from the smallest."""

_CHUNK = 1 << 15


@dataclass(frozen=True)
class StepCells:
    """Lower and upper bounds of the three numbers of each cell, in rows, and the step of the grid."""

    low: Floats
    high: Floats
    step: arb


@dataclass(frozen=True)
class SampledStep:
    """P against Q of one step: Gaussian noise on a record that is sampled or not."""

    mixture: Mixture

    @cached_property
    def floor(self) -> arb:
        """The least loss, log p_0."""
        with precision(BITS):
            return ball(self.mixture.weights[0]).log()

    def output(self, step: arb, k: int) -> arb:
        """The output of point k > 0: p_1 e^{m x - m^2 / 2} = p_0 (e^{k step} - 1)."""
        none, some = (ball(p) for p in self.mixture.weights)
        square = ball(self.mixture.squares[1])
        return ((none / some * (k * step).expm1()).log() + square / 2) / square.sqrt()

    def tail(self, step: arb, k: int, sign: int = 1) -> tuple[arb, arb]:
        """P of losses above point k, and Q of the same times f there, which is p_0 e^{k step}; with sign -1 of losses below."""
        none, some = (ball(p) for p in self.mixture.weights)
        if not k:
            return (arb(1), none) if sign > 0 else (arb(0), arb(0))
        at, half, m = sign * self.output(step, k), arb(2).sqrt(), sign * ball(self.mixture.squares[1]).sqrt()
        single = none * (at / half).erfc() / 2
        return single + some * ((at - m) / half).erfc() / 2, single * (k * step).exp()

    def cells(self, step: arb, points: int) -> StepCells:
        """By the rule where outputs are close to each other, by differences of tails where they are not."""
        found, error = np.zeros((3, points)), np.full(points, math.inf)
        for start in range(1, points, _CHUNK):
            here = slice(start, min(start + _CHUNK, points))
            found[:, here], error[here] = self._by_rule(
                float(step.mid()), np.arange(here.start, here.stop, dtype=np.float64)
            )
        long = np.flatnonzero(~np.isfinite(error)).tolist()
        error[long] = 0.0
        low, high = found * (1 - error), found * (1 + error)
        for k in long:
            exact = self._by_tails(step, k)
            low[:, k], high[:, k] = [down(x) for x in exact], [up(x) for x in exact]
        return StepCells(low, high, step)

    def _by_rule(self, h: float, k: Floats) -> tuple[Floats, Floats]:
        """The numbers of the cells that begin at points k > 0, and bounds of their relative errors, inf where the rule is not
        used.

        Lengths and f at the points are found without outputs, so that what outputs are wrong by moves a cell and does not
        change its length.
        """
        none, some = (float(p) for p in self.mixture.weights)
        m, grown = self.mixture.widest, np.expm1(k * h)
        logs = np.log(none / some * grown)
        x = (logs + m * m / 2) / m
        unsure = 16 * UNIT * (2 + k * h + np.abs(logs) + m * m) / m
        length = (np.log1p(math.expm1(h) * (1 + 1 / grown)) / m)[:, None]
        near = np.abs(x) + length[:, 0]
        short = (length[:, 0] * (1 + near + m) <= SHORT) & (near <= FAR)
        nodes, weights = np.polynomial.legendre.leggauss(RULE)
        away = length * ((1 + nodes) / 2)
        at = x[:, None] + away
        density = np.exp(-at * at / 2) * (weights * (length / (2 * math.sqrt(2 * math.pi))))
        first, second = none * grown[:, None], none * np.expm1((k + 1) * h)[:, None]
        with np.errstate(over="ignore"):
            found = np.stack(
                [
                    (density * (none + first * np.exp(m * away))).sum(axis=1),
                    (density * first * np.expm1(m * away)).sum(axis=1),
                    (density * second * -np.expm1(-m * (length * ((1 - nodes) / 2)))).sum(axis=1),
                ]
            )
        error = CLOSE_SLACK * (1 + k * h) + POWER_SLACK * (1 + near * near + m * (near + m)) + 2 * (near + m) * unsure
        return np.where(short, found, 0.0), np.where(short, error, math.inf)

    def _by_tails(self, step: arb, k: int) -> tuple[arb, arb, arb]:
        """Differences of tails on the side where they are small."""
        sign = -1 if bool(self.output(step, k + 1) < 0) else 1
        (mass, low), (beyond, high) = self.tail(step, k, sign), self.tail(step, k + 1, sign)
        inside, grown = sign * (mass - beyond), step.exp()
        return inside, inside - sign * (low - high / grown), sign * (low * grown - high) - inside


def up(x: arb) -> float:
    """A double at least as large as a ball that is not negative, and not negative itself."""
    return max(math.nextafter(float(x.upper()), math.inf), 0.0)


def down(x: arb) -> float:
    """One that is not larger."""
    return max(math.nextafter(float(x.lower()), -math.inf), 0.0)
