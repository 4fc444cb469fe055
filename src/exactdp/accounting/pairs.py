"""Questions about many pairs of a family at once: delta, epsilon and beta, each pair between certified bounds.

The shared contours of `engine.family` answer nearly everything. What they leave too wide, and families that cannot share
(coarse noise, no common period), are answered pair by pair on contours of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.directions import BothDirections
from exactdp.accounting.epsilon_search import both_readings, gaussian_start, newton_step
from exactdp.accounting.planner import answers_for, sieve_suits
from exactdp.accounting.privacy_profile import point_of_sums
from exactdp.accounting.separate_pairs import PairAnswers, Question
from exactdp.accounting.tradeoff_vertices import Tail, beta_at_edge, tails_at, tails_of_bracket, upper_side
from exactdp.brackets import Bracket, Point
from exactdp.cache import Recent
from exactdp.doubles import EXP_SLACK, Bools, Floats
from exactdp.engine.effort import Effort
from exactdp.engine.family.contours import Family
from exactdp.engine.lattice.accuracy import RESORT_WIDTH, RESORT_WIDTH_BETA
from exactdp.engine.lattice.contours import Values
from exactdp.engine.lattice.tilts import delta_payoff
from exactdp.engine.payoff import Payoff, Threshold, delta_threshold, tail_threshold
from exactdp.numbers import log_rational

_NEWTON_STEPS = 4
_CONTOURS_HELD = 4
_NARROW = 1e-11  # ends further than this from the estimate, relative to it, are left to the search for one pair


@dataclass(frozen=True)
class Pairs(PairAnswers):
    """All pairs of a family, ready to be asked."""

    family: Family
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

    @cached_property
    def _shares(self) -> bool:
        """Whether the family's shared contours can be used; with one member there is nothing to share."""
        return len(self.family.members) > 1 and self.family.can_share

    @cached_property
    def on_lattices(self) -> bool:
        """Whether every pair has a lattice that the sieve can use, so that its curve has vertices to work with."""
        return self._shares or all(sieve_suits(self.family.lattice(p)) for p in range(len(self.family.pairs)))

    def profile(self, questions: list[Question]) -> Point:
        """Certified delta and 1 - delta at each question's epsilon."""
        epsilons = [q.at for q in questions]
        if not self._shares:
            return super().profile(questions)
        family = self.family
        which = family.step_of[1][[q.pair for q in questions]]
        known: dict[tuple[int, int, int], tuple[Payoff, Threshold]] = {}
        asked = []
        for step, e in zip(which.tolist(), epsilons, strict=True):
            key = (step, e.numerator, e.denominator)
            if key not in known:
                lattice = family.typical[step]
                known[key] = delta_payoff(lattice, abs(e)), delta_threshold(lattice, abs(e))
            asked.append(known[key])

        def evaluate(kind: Payoff, places: list[int]) -> Values:
            pairs = np.array([questions[i].pair for i in places], dtype=np.int64)
            return family.evaluate(kind, pairs, [asked[i][1] for i in places])

        point = point_of_sums(epsilons, [kind for kind, _ in asked], evaluate)
        self.one_by_one(point, questions, np.flatnonzero(point.is_wide(RESORT_WIDTH)).tolist())
        return point

    def epsilons(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of epsilon at each question's delta, 0 < delta < 1 (Theorem 5)."""
        lower, upper = np.full(len(questions), np.nan), np.full(len(questions), np.nan)
        if self._shares:
            places = [i for i, q in enumerate(questions) if q.at <= Fraction(1, 2)]
            lower[places], upper[places] = self._search_epsilons([questions[i] for i in places])
        for i in np.flatnonzero(np.isnan(lower)):
            question = questions[i]
            lower[i], upper[i] = self.answers(question.pair).epsilon_bracket(question.at)
        return lower, upper

    def _search_epsilons(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Newton's method for all questions together, then a proof of both ends; nan where that did not suffice."""
        pairs = [q.pair for q in questions]
        spread = self.spread
        logs = {q.at: log_rational(q.at) for q in questions}
        starts = {delta: gaussian_start(spread, delta) for delta in logs}
        target = np.array([logs[q.at] for q in questions])
        error = EXP_SLACK * (1 + np.abs(target))
        longest = 1 + math.sqrt(spread)
        e = np.array([starts[q.at] for q in questions])
        step = np.full(len(e), math.inf)
        active = np.arange(len(e))  # a question stops by itself, so that its result does not depend on the others
        for _ in range(_NEWTON_STEPS):
            x = e[active]
            point = self.profile([Question(pairs[i], Fraction(y)) for i, y in zip(active, x.tolist(), strict=True)])
            bottom, top = point.delta.log_lower(), point.delta.log_upper()
            move, step[active], going = newton_step(x, (bottom, top), point.log_density, target[active], error[active])
            active = active[going]
            if not len(active):
                break
            e[active] += np.clip(move, -longest, longest)[going]
        step[active] = math.inf  # moved since its last evaluation
        step = np.minimum(step, 1.0)
        ends = np.stack([e - step, e + step], axis=1)
        asked = [
            Question(p, r) for p, both in zip(pairs, ends.tolist(), strict=True) for x in both for r in both_readings(x)
        ]
        proved = both_ends_hold(self.profile(asked).delta, target, error) & (step < _NARROW * (1 + np.abs(e)))
        return np.where(proved, ends[:, 0], np.nan), np.where(proved, ends[:, 1], np.nan)

    def betas(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of beta at each question's alpha, 0 < alpha < 1 (Theorem 6)."""
        lower, upper = np.empty(len(questions)), np.empty(len(questions))
        edges = self._find_edges(questions) if self._shares else [None] * len(questions)
        wanted: list[tuple[int, int]] = []
        for question, near in zip(questions, edges, strict=True):
            if near is not None:
                total = self.family.typical_of(question.pair).spread_steps
                wanted += [(question.pair, t) for s in range(near - 1, near + 3) for t in (s, total + 1 - s)]
        known = dict(zip(wanted, self.tails(wanted), strict=True))
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
        known.update(zip(missing, self.tails(missing), strict=True))
        return [known[pair, t] for t in steps]

    def tails(self, points: list[tuple[int, int]]) -> list[Tail]:
        """P(S >= h t) for each (pair, t), certified."""
        if not points:
            return []
        if not self._shares:
            return [tails_at(self.answers(pair).contours(), [t])[0] for pair, t in points]
        bracket = self._tail_values(points).bracket
        result = tails_of_bracket([t for _, t in points], bracket)
        for i in np.flatnonzero(bracket.is_wide(RESORT_WIDTH)):
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
        for _ in range(_NEWTON_STEPS):
            values = self._tail_values([(questions[i].pair, int(t[i])) for i in active])
            move = np.floor((values.bracket.log_upper() - logs[active]) / per_step[active])
            t[active] = np.maximum(t[active] + move, 1.0)
            active = active[np.abs(move) > 1]
            if not len(active):
                break
        return [-int(x) if m else int(x) for x, m in zip(t, mirror, strict=True)]


def both_ends_hold(delta: Bracket, target: Floats, error: Floats) -> Bools:
    """For each question, from delta at both readings of the lower end and then of the upper end: are both ends proved?

    The lower end needs delta at least the target, the upper end delta at most the target (logarithms, Theorem 5).
    """
    too_large = np.all(delta.log_lower().reshape(-1, 2, 2)[:, 0] >= (target + error)[:, None], axis=1)
    small_enough = np.all(delta.log_upper().reshape(-1, 2, 2)[:, 1] <= (target - error)[:, None], axis=1)
    result: Bools = too_large & small_enough
    return result
