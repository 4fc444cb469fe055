"""Nodes by size: the few large ones in balls, the many small ones in float64 with its proved rounding error.

A node needs digits in proportion to its size: one that makes 1e-10 of the sum needs ten digits fewer. What float64 does to the
small nodes is a radius around their sum, and any choice of them is valid (docs/theory/certification.md, Theorem C1a).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import precision
from exactdp.doubles import ACCOUNT_SLACK, Bools
from exactdp.engine.lattice.ball import BallContour, BallSum
from exactdp.engine.lattice.float64 import Contour, Totals
from exactdp.engine.lattice.plan import Plan
from exactdp.engine.payoff import Threshold, transform_at_tilt

_FEWEST = 128  # nodes: below this two arithmetics cost more than they save

SMALLEST = 1e-250
"""Terms below this stay in balls, and all do where the transform at the tilt or the step is so large that a double on the way
to such a term could underflow."""

_LARGEST_TRANSFORM = 1e50
_LARGEST_DRIFT = 50.0


@dataclass(frozen=True)
class GradedContour:
    """A plan whose large nodes are evaluated at `bits` of precision and whose small ones in float64."""

    plan: Plan
    bits: int

    def evaluate(self, thresholds: list[Threshold]) -> list[BallSum]:
        """Enclosures at each threshold."""
        if self._small is None:
            return self._large.evaluate(thresholds)
        totals = self._small.totals(thresholds)
        with precision(self.bits):
            beside = [(_enclosure(totals, i, "a"), _enclosure(totals, i, "b")) for i in range(len(thresholds))]
        return self._large.evaluate(thresholds, beside)

    @cached_property
    def _is_small(self) -> Bools:
        """Which nodes are left to float64: those of the least error, as long as all of it is within what is dropped anyway.

        Heuristic: affects speed and accuracy only; but each must be free of underflow.
        """
        plan, count = self.plan, len(self.plan.kept)
        at_tilt = float(transform_at_tilt(plan.payoff, plan.lam, plan.lattice.h, np.ones(1), np.zeros(1))[0])
        if count < _FEWEST or at_tilt > _LARGEST_TRANSFORM or abs(plan.lam) * plan.lattice.h > _LARGEST_DRIFT:
            return np.zeros(count, dtype=bool)
        sizes, errors = Contour(plan).sizes_and_errors()
        order = np.argsort(errors, kind="stable")
        order = order[sizes[order] >= SMALLEST]
        within = np.cumsum(errors[order]) <= math.exp(plan.log_dropped) * at_tilt
        small = np.zeros(count, dtype=bool)
        small[order[within]] = True
        return small

    @cached_property
    def _large(self) -> BallContour:
        return BallContour(replace(self.plan, kept=self.plan.kept[~self._is_small]), self.bits)

    @cached_property
    def _small(self) -> Contour | None:
        kept = self.plan.kept[self._is_small]
        return Contour(replace(self.plan, kept=kept)) if len(kept) else None


def _enclosure(totals: Totals, i: int, kind: str) -> arb:
    """The exact sum of the small nodes' terms: what float64 found, and the bound on what it did to it."""
    found, radius = (totals.sum_a, totals.radius_a) if kind == "a" else (totals.sum_b, totals.radius_b)
    return arb(float(found[i]), float(radius) * (1 + ACCOUNT_SLACK))
