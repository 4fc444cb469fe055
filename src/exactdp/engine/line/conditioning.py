"""Conditioning on the coarse parts: their values are listed, the rest is answered by any other method.

    delta(y) = sum over the values l of the coarse parts of P(l) delta_rest(y - l),      likewise 1 - delta:

sums of non-negative terms, so what the rest knows in relative terms, the whole knows too (docs/theory/any-composition.md,
Theorem 14). Used where the loss comes in clumps and no single tilt is good.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, precision
from exactdp.doubles import FEW_SLACK, FORMULA_SLACK, POWER_SLACK, REMAINDER_SLACK, SUM_SLACK, UNDERFLOW, UNIT, Floats
from exactdp.engine.line.enumeration import fold, one_lattice
from exactdp.engine.line.protocol import AnyThreshold, OneByOne, Used
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.payoff import Payoff

CLUMPY = 2.5
"""From this many standard deviations of the rest on, one unit of a part makes clumps."""

MOST_TERMS = 4000
_CUT = 1e-40  # tilted probability below which a coarse value is left out, and charged
_LARGEST_EXPONENT = 700.0  # of e in the doubles
_SETTLED = 2e-13  # doubt of all waiting terms, relative to the sum, at which they are left at their cheap bounds
_AT_ONCE = 1e-6  # terms asked for together: those whose doubt is at least this part of the largest


@dataclass(frozen=True)
class Coarse:
    """The values of the coarse parts under a tilt: losses as balls, tilted probabilities, their error, the mass left out."""

    losses: list[arb]
    weights: Floats
    relative: float
    missing: float


def split_coarse(total: TotalLoss, tilt: float) -> tuple[TotalLoss, TotalLoss] | None:
    """The parts whose unit exceeds the spread of all finer parts, and the finer parts; None if there is nothing to gain.

    Heuristic: affects accuracy only.
    """
    sized: list[tuple[float, float, Part]] = []
    for part in total.parts:
        unit = one_lattice(part.loss)
        variance = part.count * part.loss.mean_variance(tilt)[1]
        sized.append((0.0 if unit is None else unit, variance, part))
    sized.sort(key=lambda s: -s[0])
    finer = [sum(v for _, v, _ in sized[i + 1 :]) for i in range(len(sized))]
    cut = 0
    for i, (unit, _, _) in enumerate(sized[:-1]):
        if unit > CLUMPY * math.sqrt(finer[i]):
            cut = i + 1
    if not cut:
        return None
    return TotalLoss(tuple(p for _, _, p in sized[:cut])), TotalLoss(tuple(p for _, _, p in sized[cut:]))


def list_coarse(total: TotalLoss, tilt: Fraction) -> Coarse | None:
    """All values of a few coarse parts; None if they are too many."""
    with precision(BITS):
        losses, weights = [arb(0)], np.ones(1)
        relative = missing = 0.0
        for part in total.parts:
            tilted = part.loss.tilted(tilt)
            atoms = tilted.atoms(_CUT)
            folded = fold(atoms, part.count) if atoms is not None else None
            if folded is None or len(folded.weights) * len(losses) > 20 * MOST_TERMS:
                return None
            base = part.count * tilted.anchor
            own = [base + tilted.units[0] * int(n) for n in folded.positions]
            joint = np.multiply.outer(weights, folded.weights)
            keep = joint > _CUT
            missing += folded.missing + float(np.sum(joint[~keep])) * (1 + SUM_SLACK)
            rows, columns = np.nonzero(keep)
            if len(rows) > MOST_TERMS:
                return None
            losses = [losses[i] + own[j] for i, j in zip(rows.tolist(), columns.tolist(), strict=True)]
            weights = joint[keep]
            relative += folded.relative + 2 * UNIT
            if folded.absolute:
                return None
        return Coarse(losses, weights, relative, missing)


@dataclass(frozen=True)
class Conditioning(OneByOne):
    """Coarse values, the rest of the loss, and certified answers about the rest."""

    total: TotalLoss
    rest: TotalLoss
    payoff: Payoff
    tilt: Fraction
    coarse: Coarse
    answers: AnyThreshold

    def used(self, y: arb) -> Used:
        """How many coarse values were listed, and the account of the rest at the nearest of them."""
        listed, kinds = len(self.coarse.losses), len(self.total.parts) - len(self.rest.parts)
        near = min(self.coarse.losses, key=lambda loss: abs(float((y - loss).mid())))
        with precision(BITS):
            there = self.answers.used(abs(y - near))
        rows = (
            ("coarse values listed", f"{listed:,}, of {kinds} kinds of mechanism"),
            ("the rest by", there.method),
            *there.rows,
        )
        name = f"sum over coarse mechanisms, the rest by {there.method}"
        return Used(name, self.payoff, listed + there.terms, rows)

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """Terms whose cheap bounds are narrow enough are left at them; the others are asked for, the most important first.

        In units of exp(log_scale) no term exceeds its weight (Markov at the tilt itself): that is its bound where a factor is
        beyond the doubles, and a lower bound without the factor beyond e^700 is a lower bound still.
        """
        lam, coarse = float(self.tilt), self.coarse
        with precision(BITS):
            inner = [y - loss for loss in coarse.losses]
            log_rest = float(self.rest.log_moment(self.tilt).mid())
            log_scale = float((self.total.log_moment(self.tilt) - lam * y).mid())
        t = np.array([float(x.mid()) for x in inner])
        # in units of exp(log_scale): w e^{tilt t - K_rest(tilt)} times the rest's answer
        base = np.log(coarse.weights) + lam * t - log_rest
        slack = coarse.relative + 8 * UNIT * (np.abs(lam * t) + abs(log_rest) + abs(log_scale) + 60) + POWER_SLACK
        log_low, log_high = (base + end for end in self._cheap(t))
        lower, upper = np.exp(log_low), np.exp(np.minimum(log_high, np.log(coarse.weights)))
        slope, waiting = np.zeros(len(t)), np.ones(len(t), dtype=bool)
        while waiting.any():
            doubt = np.where(waiting, upper - lower, 0.0)
            if doubt.sum() <= _SETTLED * lower.sum():
                break
            chosen = np.flatnonzero(waiting & (doubt >= _AT_ONCE * doubt.max()))
            point = self.answers.points([inner[i] for i in chosen])
            part = point.delta if self.payoff is Payoff.DELTA else point.rest
            more = 8 * UNIT * np.abs(part.log_scale)
            exponent = base[chosen] + part.log_scale
            factor = np.exp(np.minimum(exponent, _LARGEST_EXPONENT))
            lower[chosen] = factor * part.lower * (1 - more)
            upper[chosen] = np.where(
                exponent <= _LARGEST_EXPONENT, factor * part.upper * (1 + more), coarse.weights[chosen]
            )
            slope[chosen] = np.exp(np.minimum(base[chosen] + point.log_density, _LARGEST_EXPONENT))
            waiting[chosen] = False
        n = (len(t) + 4) * UNIT
        low = float(np.sum(lower * (1 - slack))) * (1 - n)
        high = float(np.sum(upper * (1 + slack))) * (1 + n) + coarse.missing * (1 + REMAINDER_SLACK) + UNDERFLOW
        return log_scale, max(low, 0.0), high, float(slope.sum())

    def _cheap(self, t: Floats) -> tuple[Floats, Floats]:
        """Logarithmic bounds of the rest's answer that cost nothing: delta <= e^{K(nu) - nu t}, nu >= 0, and the same for 1 -
        delta with nu in [-1, 0] (Markov)."""
        orders, uppers = self._markov
        tilts = orders[:, None] * t[None, :]
        exponents = uppers[:, None] - tilts + FORMULA_SLACK * (1 + np.abs(tilts))
        delta = np.minimum(np.min(exponents[orders >= 0], axis=0), 0.0)
        rest = np.minimum(np.min(exponents[orders <= 0], axis=0), 0.0)
        own, other = (delta, rest) if self.payoff is Payoff.DELTA else (rest, delta)
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1(other)) - FEW_SLACK, own

    @cached_property
    def _markov(self) -> tuple[Floats, Floats]:
        """Orders nu and upper bounds of the rest's K(nu)."""
        unit = 1 / math.sqrt(self.rest.widest)
        positive = [unit * 1.4**i for i in range(-4, 16)]
        negative = [-x for x in positive if x < 1]
        orders = [*negative, *(x - 1 for x in positive if x < 1), -1.0, 0.0, *positive]
        return np.array(orders), np.array([self.rest.log_moment_upper(nu) for nu in orders])
