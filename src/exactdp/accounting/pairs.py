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
from scipy.special import ndtri_exp

from exactdp.accounting.directions import BothDirections
from exactdp.accounting.planner import answers_for, sieve_suits
from exactdp.accounting.privacy_profile import point_of_values
from exactdp.accounting.separate_pairs import PairAnswers, Question
from exactdp.accounting.shared_pairs import SharedPairs
from exactdp.accounting.tradeoff_vertices import Tail, beta_at_edge, tails_at, tails_of_bracket, upper_side
from exactdp.brackets import Point, mirrored_brackets
from exactdp.cache import Recent
from exactdp.doubles import Floats, Ints
from exactdp.engine.effort import Effort
from exactdp.engine.family.contours import Family
from exactdp.engine.lattice.accuracy import RESORT_WIDTH, RESORT_WIDTH_BETA
from exactdp.engine.lattice.contours import Values
from exactdp.engine.lattice.tilts import FAMILY, delta_payoff
from exactdp.engine.payoff import Payoff, delta_threshold, tail_threshold
from exactdp.errors import LatticeTooFineError
from exactdp.numbers import log_rational

_EDGE_STEPS = 4
_CONTOURS_HELD = 12


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

    def shared_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On the contours of the family."""
        family = self.family
        which = family.step_of[1][pairs]
        combined, inverse = np.unique(which * len(epsilons) + index, return_inverse=True)
        kinds, thresholds = [], []
        for step, e in ((family.typical[i // len(epsilons)], abs(epsilons[i % len(epsilons)])) for i in combined):
            kinds.append(delta_payoff(step, e, FAMILY))
            thresholds.append(delta_threshold(step, e))
        rows = np.empty((7, len(pairs)))
        for kind in dict.fromkeys(kinds):
            mine = np.flatnonzero(np.array([k is kind for k in kinds])[inverse])
            values = family.evaluate_distinct(kind, pairs[mine], thresholds, inverse[mine])
            rows[:, mine] = point_of_values(kind, values).rows()
        point = Point.of_rows(rows)
        if all(e >= 0 for e in epsilons):
            return point
        return mirrored_brackets(point, [epsilons[i] for i in index])

    def betas(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of beta at each question's alpha, 0 < alpha < 1 (Theorem 6)."""
        lower, upper = np.empty(len(questions)), np.empty(len(questions))
        edges = self._find_edges(questions)
        wanted: list[tuple[int, int]] = []
        for question, near in zip(questions, edges, strict=True):
            if near is not None:
                total = self.family.typical_of(question.pair).spread_steps
                wanted += [(question.pair, t) for s in range(near - 1, near + 3) for t in (s, total + 1 - s)]
        known = dict(zip(wanted, self._tails_as_they_are(wanted), strict=True))
        for i, (question, near) in enumerate(zip(questions, edges, strict=True)):
            ends = (0.0, 1.0)
            if near is not None:
                lattice = self.family.typical_of(question.pair)
                ends = beta_at_edge(lattice, question.at, near, partial(self._look_up, known, question.pair))
            if not ends[1] - ends[0] <= RESORT_WIDTH_BETA * ends[1]:
                ends = self.answers(question.pair).beta_bracket(question.at)
            lower[i], upper[i] = ends
        return lower, upper

    def _look_up(self, known: dict[tuple[int, int], Tail], pair: int, steps: list[int]) -> list[Tail]:
        missing = [(pair, t) for t in steps if (pair, t) not in known]
        known.update(zip(missing, self._tails_as_they_are(missing), strict=True))
        return [known[pair, t] for t in steps]

    def tails(self, points: list[tuple[int, int]]) -> list[Tail]:
        """P(S >= h t) for each (pair, t), certified. Refused where a pair's own lattice is needed and too fine."""
        return self._tails(points, contextlib.nullcontext)

    def _tails_as_they_are(self, points: list[tuple[int, int]]) -> list[Tail]:
        """The same; where a pair's own lattice is too fine, as wide as shared contours leave them."""
        return self._tails(points, lambda: contextlib.suppress(LatticeTooFineError))

    def _tails(self, points: list[tuple[int, int]], guard: Callable[[], AbstractContextManager[None]]) -> list[Tail]:
        if not points:
            return []
        bracket = self._tail_values(points).bracket
        result = tails_of_bracket([t for _, t in points], bracket)
        for i in np.flatnonzero(bracket.is_wide(RESORT_WIDTH)):
            with guard():
                result[i] = tails_at(self.answers(points[i][0]).contours(), [points[i][1]])[0]
        return result

    def _tail_values(self, points: list[tuple[int, int]]) -> Values:
        pairs = np.array([pair for pair, _ in points], dtype=np.int64)
        return self.family.evaluate(Payoff.TAIL, pairs, [tail_threshold(upper_side(t)) for _, t in points])

    def _find_edges(self, questions: list[Question]) -> list[int | None]:
        """`tradeoff_vertices.find_edge` for all questions together. Heuristic: affects width and speed only."""
        mirror = np.array([q.at > Fraction(1, 2) for q in questions])
        logs = np.array([log_rational(1 - q.at if m else q.at) for q, m in zip(questions, mirror, strict=True)])
        which = self.family.step_of[1][[q.pair for q in questions]]
        h = np.array([lattice.h for lattice in self.family.typical])[which]
        spread = self.spread
        quantile = -ndtri_exp(logs)
        # the slope of the continuous Gaussian's tail: that of a lumpy tail says little about its neighbourhood
        per_step = np.exp(-(quantile**2) / 2 - logs) / math.sqrt(2 * math.pi * spread) * h
        t = np.maximum(np.floor(quantile * math.sqrt(spread) / h), 1.0)
        active = np.arange(len(t))
        for _ in range(_EDGE_STEPS):
            values = self._tail_values([(questions[i].pair, int(t[i])) for i in active])
            move = np.floor((values.bracket.log_upper() - logs[active]) / per_step[active])
            t[active] = np.maximum(t[active] + move, 1.0)
            active = active[np.abs(move) > 1]
            if not len(active):
                break
        return [-int(x) if m else int(x) for x, m in zip(t, mirror, strict=True)]


class PairsOnOwnLattices(Pairs):
    """A few pairs that share no contours, each on its own lattice, so that its curve has vertices to work with."""

    shares = False
    profile, table, table_of_worst = PairAnswers.profile, PairAnswers.table, PairAnswers.table_of_worst
    epsilons, betas = PairAnswers.epsilons, PairAnswers.betas

    def tails(self, points: list[tuple[int, int]]) -> list[Tail]:
        """P(S >= h t) for each (pair, t), certified."""
        return [tails_at(self.answers(pair).contours(), [t])[0] for pair, t in points]

    @cached_property
    def can_answer(self) -> bool:
        """Whether every pair has a lattice that the sieve can use."""
        return all(sieve_suits(self.family.lattice(p)) for p in range(self.count))
