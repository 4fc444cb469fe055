"""Answers about a composition some of whose mechanisms are known between two tables: one that tells less, one that tells more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp.accounting.cross_check import CrossCheck
from exactdp.accounting.directions import BothDirections
from exactdp.accounting.explanation import Explanation
from exactdp.brackets import Bracket, Point
from exactdp.doubles import EXP_SLACK
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.errors import AccuracyError


@dataclass(frozen=True)
class _OneSide(BothDirections):
    """Every enclosed mechanism replaced by its table on one side."""

    is_above: bool = True

    @cached_property
    def total(self) -> TotalLoss:
        return TotalLoss(tuple(Part(m.enclosing_loss(self.is_above), n) for m, n in self.mechanisms.items()))


@dataclass(frozen=True)
class BetweenTables(BothDirections):
    """Upper bounds from the tables that tell more, lower bounds from those that tell less (docs/theory/smooth.md, S13)."""

    @cached_property
    def _below(self) -> BothDirections:
        return _OneSide(self.mechanisms, self.effort, is_above=False)

    @cached_property
    def _above(self) -> BothDirections:
        return _OneSide(self.mechanisms, self.effort, is_above=True)

    @cached_property
    def total(self) -> TotalLoss:
        """That of the tables that tell more; where searches start."""
        return self._above.total

    def point(self, epsilons: list[Fraction]) -> Point:
        """delta and 1 - delta at each epsilon, of either sign."""
        return self._worst(epsilons)

    def _worst(self, epsilons: list[Fraction]) -> Point:
        less, more = self._below.point(epsilons), self._above.point(epsilons)
        return Point(_joined(less.delta, more.delta), _joined(more.rest, less.rest), more.log_density)

    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of epsilon(delta), 0 < delta < 1."""
        return self._below.epsilon_bracket(delta)[0], self._above.epsilon_bracket(delta)[1]

    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of the table that tells more, which has the upper bound; the bounds are those of both."""
        found = super().explain(epsilon)
        note = ("between", "two tables for real noise on a sample; the lower bound is the other one's")
        return replace(found, rows=(*found.rows, note))

    def cross_check(self, epsilon: Fraction) -> CrossCheck:
        """Refused: methods agree on each of the tables, not on what is between them."""
        raise AccuracyError(
            "Sampled real Laplace noise is known between two tables, on which methods are not compared. Ask for delta_bounds."
        )


def _joined(low: Bracket, high: Bracket) -> Bracket:
    """From the lower end of the one to the upper end of the other, on the scale of the latter."""
    slack = EXP_SLACK * (2 + np.abs(low.log_scale) + np.abs(high.log_scale))
    with np.errstate(over="ignore", invalid="ignore"):
        least = low.lower * np.exp(low.log_scale - high.log_scale) * (1 - slack)
    usable = np.isfinite(least) & (low.lower > 0)
    return Bracket(high.log_scale, np.where(usable, np.minimum(least, high.upper), 0.0), high.upper)
