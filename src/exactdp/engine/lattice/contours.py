"""All contours of one composition: built when first needed, shared by every later question, in both arithmetics."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from flint import arb
from numpy.typing import NDArray

from exactdp.brackets import Bracket, bracket_of_balls
from exactdp.doubles import Floats
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.ball import BallContour, BallSum
from exactdp.engine.lattice.conditioning import Split, split_off_coarsest
from exactdp.engine.lattice.float64 import Contour, Sums
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.lattice.plan import Plan, log_expected, make_plan, too_fine
from exactdp.engine.lattice.tilts import rung, rung_index
from exactdp.engine.payoff import Payoff, Threshold
from exactdp.engine.sieve.phases import LARGEST_NODES
from exactdp.errors import AccuracyError, LatticeTooFineError

ACCURACY = 1e-11
"""The relative width that float64 bounds of delta and beta keep to; where float64 alone cannot, balls take over."""

RESORT_TO_BALLS = 8e-12
"""The relative width of float64 bounds at which they do."""

RESORT_DIGITS = 14
RESORT_ATTEMPTS = 3

RESORT_WORK = 400_000
"""Nodes times groups beyond which the wider float64 bounds are returned instead."""

BALL_NODE_LIMIT = 3_000_000
"""Nodes beyond which an enclosure is refused with the advice to ask for fewer digits."""

_DEEPEST = (
    1e12  # beyond exp(-1e12) a double cannot hold the logarithm to four decimals: only the sub-Gaussian bound is given
)
_DEEPEST_SPLIT = 2
_FEWEST_TERMS = 10_000
_KEPT_NODES = 300_000
_LEVEL_STEP = 4  # digits by which the aim of a ball contour is rounded up, so that contours can be shared
_ATTEMPTS = 12

_T = TypeVar("_T", Contour, BallContour)


@dataclass(frozen=True)
class Values:
    """Certified values, and an estimate of |d log(value) / dx| at each that steers searches and enters no bound."""

    bracket: Bracket
    log_slope: Floats


class _Recent:
    """The most recently used contours, as many as hold a bounded number of nodes together."""

    def __init__(self) -> None:
        self._items: OrderedDict[Hashable, Contour | BallContour] = OrderedDict()

    def get(self, key: Hashable, build: Callable[[], _T]) -> _T:
        if key in self._items:
            self._items.move_to_end(key)
            return self._items[key]  # type: ignore[return-value]
        built = build()
        self._items[key] = built
        while len(self._items) > 8 and sum(len(c.plan.kept) for c in self._items.values()) > _KEPT_NODES:
            self._items.popitem(last=False)
        return built


@dataclass(frozen=True)
class Contours:
    """The ladder of a composition. Results do not depend on what was asked before, nor on what is asked together."""

    lattice: Lattice
    effort: Effort = field(default_factory=Effort)
    depth: int = 0
    """How many mechanisms were split off before (see `clumps`)."""
    _recent: _Recent = field(default_factory=_Recent, repr=False, compare=False)

    def __post_init__(self) -> None:
        estimate = math.sqrt(self.lattice.r) / self.lattice.h if self.lattice.h > 0 else math.inf
        if estimate > LARGEST_NODES:
            raise too_fine(self.lattice, estimate, f"the limit is {LARGEST_NODES:.3g}")

    @cached_property
    def clumps(self) -> tuple[Split, Contours] | None:
        """The coarsest mechanism and the contours of the rest, where the loss comes in clumps."""
        split = split_off_coarsest(self.lattice) if self.depth < _DEEPEST_SPLIT else None
        return None if split is None else (split, Contours(split.rest, self.effort, self.depth + 1))

    def contour(self, payoff: Payoff, index: int) -> Contour:
        """The float64 contour of one rung."""
        return self._recent.get(
            (payoff, index),
            lambda: self._within_effort(
                make_plan(self.lattice, rung(self.lattice, payoff, index), None, self.effort.looks)
            ),
        )

    def _within_effort(self, plan: Plan) -> Contour:
        if len(plan.kept) * len(self.lattice.groups) > max(self.effort.terms, _FEWEST_TERMS):
            raise too_fine(
                self.lattice, plan.nodes, f"{len(plan.kept):,} of them matter, more than the work limit allows"
            )
        return Contour(plan)

    def rung_of(self, payoff: Payoff, threshold: Threshold) -> int:
        """The rung nearest to the threshold's saddle point."""
        return rung_index(self.lattice, payoff, float(threshold.steps * self.lattice.step))

    def evaluate(self, payoff: Payoff, thresholds: list[Threshold], resort: bool = True) -> Values:
        """Certified values at all thresholds, each on its own rung, in float64 or, where that is too wide, through balls.

        Without `resort` the float64 bounds are returned as they are: valid, but maybe wide.
        """
        by_rung: dict[int, list[int]] = {}
        parts = np.empty((4, len(thresholds)))
        for i, threshold in enumerate(thresholds):
            x = float(threshold.steps * self.lattice.step)
            if x > 0 and x * x / (2 * self.lattice.r) > _DEEPEST:  # Lemma 1: the payoff is at most P(S >= x)
                parts[:, i] = -x * x / (2 * self.lattice.r) * (1 - 1e-12), 0.0, 1.0, x / self.lattice.r
                continue
            by_rung.setdefault(self.rung_of(payoff, threshold), []).append(i)
        for index, members in by_rung.items():
            sums = self.contour(payoff, index).evaluate([thresholds[i] for i in members])
            with np.errstate(divide="ignore", invalid="ignore"):
                parts[:, members] = sums.log_scale, sums.lower, sums.upper, sums.slope / sums.value
            lost = ~(np.isfinite(sums.upper) & (sums.upper > 0))
            for i in np.array(members)[self.resorts(sums) if resort else lost]:
                better = self._resort(payoff, thresholds[i])
                if better is not None:
                    parts[:, i] = better
        if not (np.isfinite(parts[:3]).all() and (parts[2] > 0).all()):
            raise AccuracyError(
                "This question is out of the reach of float64; ask for it with digits=15, which uses balls."
            )
        return Values(Bracket(parts[0], parts[1], parts[2]), np.nan_to_num(parts[3], posinf=0.0))

    def resorts(self, sums: Sums) -> NDArray[np.bool_]:
        """Which float64 results are too wide to be returned without trying balls."""
        narrow = (sums.upper > 0) & (sums.upper - sums.lower <= RESORT_TO_BALLS * sums.upper)
        result: NDArray[np.bool_] = ~narrow
        return result

    def _resort(self, payoff: Payoff, threshold: Threshold) -> tuple[float, float, float, float] | None:
        """One value through balls, if that is affordable."""
        try:
            limit = RESORT_WORK // len(self.lattice.groups)
            value = self.enclose(payoff, [threshold], RESORT_DIGITS, limit, RESORT_ATTEMPTS)[0]
        except (AccuracyError, LatticeTooFineError):
            return None
        log_scale, lower, upper = bracket_of_balls(value.value)
        return log_scale, lower, upper, float((value.slope / value.value).mid())

    def enclose(
        self,
        payoff: Payoff,
        thresholds: list[Threshold],
        digits: int,
        node_limit: int = BALL_NODE_LIMIT,
        attempts: int = _ATTEMPTS,
    ) -> list[BallSum]:
        """Enclosures at all thresholds with at least `digits` correct digits each."""
        wanted = [(self.rung_of(payoff, t), self._loss(payoff, t)) for t in thresholds]
        results: list[BallSum | None] = [None] * len(thresholds)
        for _ in range(attempts + 1):
            by_aim: dict[tuple[int, int], list[int]] = {}
            for i, (index, loss) in enumerate(wanted):
                if results[i] is None:
                    level = digits + 2 + _LEVEL_STEP * math.ceil(loss / _LEVEL_STEP)
                    by_aim.setdefault((index, level), []).append(i)
            if not by_aim:
                return [r for r in results if r is not None]
            for (index, level), members in by_aim.items():
                contour = self._ball_contour(payoff, index, level, node_limit)
                for i, found in zip(members, contour.evaluate([thresholds[i] for i in members]), strict=True):
                    if _has_digits(found.value, digits):
                        results[i] = found
                    else:  # as much again as is missing
                        wanted[i] = (index, wanted[i][1] + max(_LEVEL_STEP, digits - _digits_of(found.value)))
        raise AccuracyError(f"{digits} digits were not reached in {attempts} attempts. Ask for fewer digits.")

    def _ball_contour(self, payoff: Payoff, index: int, level: int, node_limit: int) -> BallContour:
        def build() -> BallContour:
            where = rung(self.lattice, payoff, index)
            plan = make_plan(self.lattice, where, log_expected(self.lattice, where) - level * math.log(10))
            return BallContour(plan, math.ceil(level * math.log2(10)) + 40 + len(plan.kept).bit_length())

        contour = self._recent.get((payoff, index, level), build)
        if len(contour.plan.kept) > node_limit:
            raise AccuracyError(
                f"{len(contour.plan.kept):,} nodes would have to be evaluated at {contour.bits} bits, more than the "
                f"{node_limit:,} allowed. Ask for fewer digits."
            )
        return contour

    def _loss(self, payoff: Payoff, threshold: Threshold) -> float:
        """Decimal digits by which the answer is smaller than the rung expects. Heuristic: affects speed only."""
        index = self.rung_of(payoff, threshold)
        sums: Sums = self.contour(payoff, index).evaluate([threshold])
        found = max(float(sums.value[0]), 1e-17 * float(sums.upper[0]), 5e-324)
        return max(
            0.0, (log_expected(self.lattice, rung(self.lattice, payoff, index)) - math.log(found)) / math.log(10)
        )


def _digits_of(value: arb) -> int:
    """Correct decimal digits of a ball (0 if it contains 0)."""
    return max(0, math.floor(int(value.rel_accuracy_bits()) / math.log2(10)))


def _has_digits(value: arb, digits: int) -> bool:
    return bool(value > 0) and int(value.rel_accuracy_bits()) > digits * math.log2(10) + 2
