"""All contours of one composition: built when first needed, shared by every later question, in both arithmetics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from exactdp.balls import ATTEMPTS, correct_digits, raised
from exactdp.brackets import Bracket, bracket_of_balls
from exactdp.cache import Recent
from exactdp.doubles import FORMULA_SLACK, Bools, Floats
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.accuracy import RESORT_ATTEMPTS, RESORT_DIGITS, RESORT_WIDTH, if_affordable
from exactdp.engine.lattice.ball import BallSum
from exactdp.engine.lattice.conditioning import Split, split_off_coarsest
from exactdp.engine.lattice.float64 import Contour, Sums
from exactdp.engine.lattice.graded import GradedContour
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.lattice.plan import Plan, log_expected, make_plan, too_fine
from exactdp.engine.lattice.tilts import (
    ALONE,
    FAMILY,
    Positions,
    Rung,
    delta_payoff,
    rung,
    rung_index,
    shared_rung,
    wide_rung,
)
from exactdp.engine.payoff import Payoff, Threshold
from exactdp.engine.sieve.phases import LARGEST_NODES
from exactdp.errors import AccuracyError, LatticeTooFineError

BALL_NODE_LIMIT = 3_000_000
"""Nodes beyond which an enclosure is refused with the advice to ask for fewer digits."""

_DEEPEST = 1e12  # beyond exp(-1e12) a double cannot hold the logarithm to four decimals: there Lemma 1 alone answers
_DEEPEST_SPLIT = 2
_FEWEST_TERMS = 10_000
_KEPT_NODES = 300_000
_REFUSALS_HELD = 64
_LEVEL_STEP = 4  # digits by which the aim of a ball contour is rounded up, so that contours can be shared


@dataclass(frozen=True)
class Values:
    """Certified values, and an estimate of |d log(value) / dx| at each that steers searches and enters no bound."""

    bracket: Bracket
    log_slope: Floats


def _nodes(contour: Contour | GradedContour) -> int:
    return len(contour.plan.kept)


def _held() -> Recent[Any, Any]:
    """The contours used last: eight, and more as long as they have few nodes together."""
    return Recent(_KEPT_NODES, _nodes, fewest=8)


@dataclass(frozen=True)
class Contours:
    """The ladder of a composition. Results do not depend on what was asked before, nor on what is asked together."""

    lattice: Lattice
    effort: Effort = field(default_factory=Effort)
    depth: int = 0
    """How many mechanisms were split off before (see `clumps`)."""
    _recent: Recent[tuple[Payoff, int], Contour] = field(default_factory=_held, repr=False, compare=False)
    _refused: Recent[tuple[Payoff, int], str] = field(
        default_factory=lambda: Recent(_REFUSALS_HELD), repr=False, compare=False
    )
    _recent_balls: Recent[tuple[Payoff, int, int], GradedContour] = field(
        default_factory=_held, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        estimate = math.sqrt(self.lattice.r) / self.lattice.h if self.lattice.h > 0 else math.inf
        if estimate > LARGEST_NODES:
            raise too_fine(self.lattice, estimate, f"the limit is {LARGEST_NODES:.3g}")

    @cached_property
    def clumps(self) -> tuple[Split, Contours] | None:
        """The coarsest mechanism and the contours of the rest, where the loss comes in clumps."""
        split = split_off_coarsest(self.lattice) if self.depth < _DEEPEST_SPLIT else None
        return None if split is None else (split, Contours(split.rest, self.effort, self.depth + 1))

    @property
    def _positions(self) -> Positions:
        return FAMILY if self.effort.is_hurried else ALONE

    def contour(self, payoff: Payoff, index: int) -> Contour:
        """The float64 contour of one rung; what is refused once is refused again, without another look."""

        def build() -> Contour:
            return self._within_effort(make_plan(self.lattice, self.rung(payoff, index), None, self.effort.looks))

        if refused := self._refused.find((payoff, index)):
            raise LatticeTooFineError(refused)
        try:
            return self._recent.get((payoff, index), build)
        except LatticeTooFineError as error:
            self._refused.keep((payoff, index), str(error))
            raise

    def _within_effort(self, plan: Plan) -> Contour:
        if len(plan.kept) * len(self.lattice.groups) > max(self.effort.terms, _FEWEST_TERMS):
            raise too_fine(
                self.lattice, plan.nodes, f"{len(plan.kept):,} of them matter, more than the work limit allows"
            )
        return Contour(plan)

    def payoff_at(self, epsilon: Fraction) -> Payoff:
        """Whether delta or 1 - delta is summed at epsilon >= 0."""
        return delta_payoff(self.lattice, epsilon, self._positions)

    def rung(self, payoff: Payoff, index: int) -> Rung:
        """Rung `index` of the payoff's ladder."""
        return rung(self.lattice, payoff, index, self._positions)

    def rung_of(self, payoff: Payoff, threshold: Threshold) -> int:
        """The rung nearest to the threshold's saddle point."""
        return rung_index(self.lattice, payoff, self._place(threshold), self._positions)

    def _place(self, threshold: Threshold) -> float:
        """x0 = h t as a double."""
        step = self.lattice.step
        return threshold.steps * step.numerator / step.denominator

    def evaluate(
        self, payoff: Payoff, thresholds: list[Threshold], balls: bool = False, neighbours: bool = False
    ) -> Values:
        """Certified values at all thresholds, each on its own rung: in float64, and with `balls` where that is too wide in balls.

        What float64 cannot hold at all is tried in balls in any case. `neighbours`: see `Contour.evaluate`.
        """
        by_rung: dict[int, list[int]] = {}
        parts = np.empty((4, len(thresholds)))
        for i, threshold in enumerate(thresholds):
            x = self._place(threshold)
            if x > 0 and x * x / (2 * self.lattice.r) > _DEEPEST:  # Lemma 1: the payoff is at most P(S >= x)
                parts[:, i] = -x * x / (2 * self.lattice.r) * (1 - FORMULA_SLACK), 0.0, 1.0, x / self.lattice.r
                continue
            by_rung.setdefault(rung_index(self.lattice, payoff, x, self._positions), []).append(i)
        for index, members in by_rung.items():
            sums = self.contour(payoff, index).evaluate([thresholds[i] for i in members], neighbours)
            with np.errstate(divide="ignore", invalid="ignore"):
                rows = sums.log_scale, sums.lower, sums.upper, sums.slope / sums.value
            places = members if len(members) < len(thresholds) else slice(None)
            for part, row in zip(parts, rows, strict=True):
                part[places] = row
            wanting = is_wide(sums) if balls else ~(np.isfinite(sums.upper) & (sums.upper > 0))
            for i in np.array(members)[wanting] if wanting.any() else ():
                better = if_affordable(self.lattice, partial(self._in_balls, payoff, thresholds[i]))
                if better is not None:
                    parts[:, i] = better
        if not (np.isfinite(parts[:3]).all() and (parts[2] > 0).all()):
            raise AccuracyError(
                "This question is out of the reach of float64; ask for it with digits=15, which uses balls."
            )
        return Values(Bracket(parts[0], parts[1], parts[2]), np.where(np.isfinite(parts[3]), parts[3], 0.0))

    def _in_balls(self, payoff: Payoff, threshold: Threshold, node_limit: int) -> tuple[float, float, float, float]:
        kept = len(self.contour(payoff, self.rung_of(payoff, threshold)).plan.kept)
        if kept > node_limit:  # more digits need more nodes still: no need to look for them
            raise AccuracyError(f"{kept:,} nodes are more than the {node_limit:,} allowed.")
        found = self.enclose(
            payoff, threshold, RESORT_DIGITS, node_limit, RESORT_ATTEMPTS, self._loss(payoff, threshold)
        )
        return *bracket_of_balls(found.value), float((found.slope / found.value).mid())

    def enclose(
        self,
        payoff: Payoff,
        threshold: Threshold,
        digits: int,
        node_limit: int = BALL_NODE_LIMIT,
        attempts: int = ATTEMPTS,
        loss: float = 0.0,
    ) -> BallSum:
        """An enclosure with at least `digits` correct digits; `loss` digits more than the rung expects are tried first."""
        index = shared_rung(rung_index(self.lattice, payoff, self._place(threshold)))

        def attempt(loss: float) -> tuple[BallSum | None, int]:
            level = digits + 2 + _LEVEL_STEP * math.ceil(loss / _LEVEL_STEP)
            found = self._ball_contour(payoff, index, level, node_limit).evaluate([threshold])[0]
            if found.value > 0 and int(found.value.rel_accuracy_bits()) > digits * math.log2(10) + 2:
                return found, 0
            correct = correct_digits(found.value)
            missing = digits - correct if correct else math.ceil(self._loss(payoff, threshold) - loss)
            return None, max(_LEVEL_STEP, missing)

        return raised(attempt, digits, loss, attempts)

    def _ball_contour(self, payoff: Payoff, index: int, level: int, node_limit: int) -> GradedContour:
        def build() -> GradedContour:
            where = wide_rung(self.lattice, payoff, index)
            plan = make_plan(self.lattice, where, log_expected(self.lattice, where) - level * math.log(10))
            return GradedContour(plan, math.ceil(level * math.log2(10)) + 40 + len(plan.kept).bit_length())

        contour = self._recent_balls.get((payoff, index, level), build)
        if len(contour.plan.kept) > node_limit:
            raise AccuracyError(
                f"{len(contour.plan.kept):,} nodes would have to be evaluated at {contour.bits} bits, more than the "
                f"{node_limit:,} allowed. Ask for fewer digits."
            )
        return contour

    def _loss(self, payoff: Payoff, threshold: Threshold) -> float:
        """Decimal digits by which the answer is smaller than its rung in float64 expects. Heuristic: affects speed only."""
        index = self.rung_of(payoff, threshold)
        sums: Sums = self.contour(payoff, index).evaluate([threshold])
        found = max(float(sums.value[0]), 1e-17 * float(sums.upper[0]), 5e-324)
        expected = log_expected(self.lattice, self.rung(payoff, index))
        return max(0.0, (expected - math.log(found)) / math.log(10))


def is_wide(sums: Sums) -> Bools:
    """Which float64 sums are too wide to be returned without another try (accuracy.py)."""
    return Bracket(sums.log_scale, sums.lower, sums.upper).is_wide(RESORT_WIDTH)
