"""Questions about many pairs of a family at once: delta, epsilon and beta, each pair between certified bounds.

The shared contours of `engine.family` answer nearly everything. What they leave too wide, and families that cannot share
(coarse noise, no common period), are answered pair by pair on contours of their own.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from exactdp.accounting.batched_vertices import EdgeBetas, betas_on_edges
from exactdp.accounting.directions import BothDirections
from exactdp.accounting.planner import answers_for, sieve_suits
from exactdp.accounting.privacy_profile import point_of_values
from exactdp.accounting.separate_pairs import PairAnswers, Question
from exactdp.accounting.shared_pairs import SharedPairs, arrays_of, region_of_rung
from exactdp.accounting.tradeoff_vertices import Tail, beta_at_edge, tail_rows, tails_at
from exactdp.brackets import Point, mirrored_brackets
from exactdp.cache import Recent
from exactdp.doubles import UNDERFLOW, Floats, Ints
from exactdp.engine.effort import Effort
from exactdp.engine.family.contours import TOGETHER, Family
from exactdp.engine.lattice.accuracy import RESORT_WIDTH, RESORT_WIDTH_BETA
from exactdp.engine.lattice.tilts import FAMILY, complement_below, delta_payoff, rung_index
from exactdp.engine.payoff import Payoff, Thresholds, delta_threshold, delta_thresholds, tail_thresholds
from exactdp.errors import LatticeTooFineError

_CONTOURS_HELD = 12
_FEW_STEPS = 1000  # of a lattice in a standard deviation: contours of so few nodes take no time


@dataclass(frozen=True)
class Pairs(SharedPairs):
    """All pairs of a family, ready to be asked."""

    family: Family
    resort_width: ClassVar[float] = RESORT_WIDTH
    resort_width_beta: ClassVar[float] = RESORT_WIDTH_BETA
    _held: Recent[int, BothDirections] = field(
        default_factory=lambda: Recent(_CONTOURS_HELD), repr=False, compare=False
    )

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self.family.pairs)

    @property
    def spread(self) -> float:
        """The variance of the loss of the first pair, usually of all."""
        return self.family.typical[0].r

    def answers(self, pair: int) -> BothDirections:
        """What answers for one pair alone; a few pairs' are held."""
        return self._held.get(pair, lambda: answers_for(self.family.mechanisms(pair), Effort()))

    def spreads(self, pairs: list[int]) -> list[float]:
        """The same for all pairs that share."""
        return [self.spread] * len(pairs)

    def region(self, epsilon: Fraction) -> tuple[str, int]:
        """By the lattice of the first pair."""
        lattice = self.family.typical[0]
        payoff, x = (
            delta_payoff(lattice, epsilon, FAMILY),
            float(delta_threshold(lattice, epsilon).steps * lattice.step),
        )
        return region_of_rung(payoff, rung_index(lattice, payoff, x, FAMILY), TOGETHER)

    def shared_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On the contours of the family."""
        return self._at(pairs, epsilons, index)

    def rough_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """By the largest terms of pairs that have many."""
        return self._at(pairs, epsilons, index, roughly=True)

    def _at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints, roughly: bool = False) -> Point:
        family = self.family
        which = family.step_of[1][pairs]
        combined, inverse = np.unique(which * len(epsilons) + index, return_inverse=True)
        sizes = [e if e.numerator >= 0 else -e for e in epsilons]
        doubles = np.array([e.numerator / e.denominator for e in sizes])
        parts, below = [], []
        for step in np.unique(combined // len(sizes)).tolist():  # combined is in this order
            lattice, own = family.typical[step], combined[combined // len(sizes) == step] % len(sizes)
            parts.append(delta_thresholds(lattice, [sizes[i] for i in own.tolist()]))
            below.append(doubles[own] < complement_below(lattice, FAMILY))
        thresholds, by_rest = Thresholds.joined(parts), np.concatenate(below)[inverse]
        rows = np.empty((7, len(pairs)))
        for kind, asked in ((Payoff.DELTA, ~by_rest), (Payoff.COMPLEMENT, by_rest)):
            if len(mine := np.flatnonzero(asked)):
                values = family.evaluate(kind, pairs[mine], thresholds, inverse[mine], roughly)
                rows[:, mine] = point_of_values(kind, values).rows()
        point = Point.of_rows(rows)
        if all(e.numerator >= 0 for e in epsilons):
            return point
        return mirrored_brackets(point, [epsilons[i] for i in index])

    def betas(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of beta at each question's alpha, 0 < alpha < 1 (Theorem 6)."""
        lower, upper, edges = self.betas_on_edges(questions)
        for i in np.flatnonzero(~(upper - lower <= RESORT_WIDTH_BETA * upper)).tolist():
            pair, alpha = questions[i]
            tails_at = partial(self._tails_of, pair)
            ends = beta_at_edge(self.family.typical_of(pair), alpha, int(edges[i]), tails_at)
            if not ends[1] - ends[0] <= RESORT_WIDTH_BETA * ends[1]:
                ends = self.answers(pair).beta_bracket(alpha)
            lower[i], upper[i] = ends
        return lower, upper

    def betas_on_edges(self, questions: list[Question]) -> EdgeBetas:
        """The same as all pairs together find them, 0 and 1 where they do not, and the edge of each pair's polygon."""
        pairs, alphas, index = arrays_of(questions)

        def rows_at(places: Ints, steps: Ints) -> Floats:
            return self._tails(pairs[places], steps, lambda: contextlib.suppress(LatticeTooFineError))

        def estimates(places: Ints, steps: Ints) -> Floats:
            logs = self.family.estimate_logs(Payoff.TAIL, pairs[places], *_tail_thresholds(steps))
            rest = np.log(np.maximum(-np.expm1(np.minimum(logs, 0.0)), UNDERFLOW))
            return np.tile(np.where(steps > 0, logs, rest), (2, 1))

        heavy = np.flatnonzero(self.family.is_heavy(Payoff.TAIL, pairs)), estimates
        return betas_on_edges(rows_at, self.family.typical, self.family.step_of[1][pairs], alphas, index, heavy)

    def _tails_of(self, pair: int, steps: list[int]) -> list[Tail]:
        """Tails of one pair; where its own lattice is too fine, as wide as shared contours leave them."""
        guard = lambda: contextlib.suppress(LatticeTooFineError)  # noqa: E731
        return [Tail(*ends) for ends in self._tails(np.full(len(steps), pair), np.array(steps), guard).T.tolist()]

    def tails(self, points: list[tuple[int, int]]) -> list[Tail]:
        """P(S >= h t) for each (pair, t), certified. Refused where a pair's own lattice is needed and too fine."""
        pairs, steps = np.array(points, dtype=np.int64).reshape(-1, 2).T
        return [Tail(*ends) for ends in self._tails(pairs, steps, contextlib.nullcontext).T.tolist()]

    def _tails(self, pairs: Ints, steps: Ints, guard: Callable[[], AbstractContextManager[None]]) -> Floats:
        """Tails of pairs at lattice points, one row for each field of a `Tail`."""
        bracket = self.family.evaluate(Payoff.TAIL, pairs, *_tail_thresholds(steps)).bracket
        result = tail_rows(steps > 0, bracket)
        for i in np.flatnonzero(bracket.is_wide(RESORT_WIDTH)).tolist():
            with guard():
                result[:, i] = tails_at(self.answers(int(pairs[i])).contours(), [int(steps[i])])[0]
        return result


def _tail_thresholds(steps: Ints) -> tuple[Thresholds, Ints]:
    """The distinct thresholds at the upper sides of lattice points, and which of them each one has."""
    sides, index = np.unique(np.where(steps > 0, steps, 1 - steps), return_inverse=True)
    return tail_thresholds(sides), index


class PairsOnOwnLattices(Pairs):
    """A few pairs that share no contours, each on its own lattice, so that its curve has vertices to work with."""

    shares = False
    profile, table, table_of_worst = PairAnswers.profile, PairAnswers.table, PairAnswers.table_of_worst
    epsilons, betas = PairAnswers.epsilons, PairAnswers.betas

    def tails(self, points: list[tuple[int, int]]) -> list[Tail]:
        """P(S >= h t) for each (pair, t), certified."""
        return [tails_at(self.answers(pair).contours(), [t])[0] for pair, t in points]

    @cached_property
    def are_coarse(self) -> bool:
        """Whether these lattices are so coarse that nothing is quicker. Heuristic: affects speed and accuracy only."""
        lattices = [self.family.lattice(p) for p in range(self.count)]
        return all(math.sqrt(lattice.r) <= _FEW_STEPS * lattice.h for lattice in lattices) and self.can_answer

    @cached_property
    def can_answer(self) -> bool:
        """Whether every pair has a lattice that the sieve can use."""
        return all(sieve_suits(self.family.lattice(p)) for p in range(self.count))
