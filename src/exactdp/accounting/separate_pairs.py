"""Questions about many pairs, each answered by itself: any mechanisms, nothing shared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from exactdp.accounting.directions import BothDirections
from exactdp.accounting.planner import answers_for
from exactdp.brackets import Point, overwrite
from exactdp.cache import Recent
from exactdp.doubles import Floats
from exactdp.engine.effort import Effort
from exactdp.mechanisms.mechanism import Mechanism

HELD = 64
"""Pairs whose answers are kept for the next question: beyond, each question computes all of them again."""


class Question(NamedTuple):
    """One question to one pair: its number, and epsilon, delta or alpha."""

    pair: int
    at: Fraction


class PairAnswers(ABC):
    """Pairs by their numbers, ready to be asked: delta, epsilon and beta, each between certified bounds."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many pairs there are."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """The variance of a pair's loss, about. Heuristic: affects width and speed only."""

    @abstractmethod
    def answers(self, pair: int) -> BothDirections:
        """What answers for one pair alone."""

    def profile(self, questions: list[Question]) -> Point:
        """Certified delta and 1 - delta at each question's epsilon."""
        point = Point.of_rows(np.empty((7, len(questions))))
        self.one_by_one(point, questions, range(len(questions)))
        return point

    def table(self, pairs: Sequence[int], epsilons: Sequence[Fraction]) -> Point:
        """Certified delta and 1 - delta of each pair at each epsilon, one pair after the other."""
        return self.profile([Question(pair, e) for pair in pairs for e in epsilons])

    def table_of_worst(self, epsilons: Sequence[Fraction], resorts: bool = True) -> Point:
        """`table` of all pairs; those that are proved not to be the worst at an epsilon may be wider there, and all of them
        where nothing slower is to be asked (no `resorts`)."""
        return self.table(range(self.count), epsilons)

    def one_by_one(
        self, point: Point, questions: list[Question] | Mapping[int, Question], places: Iterable[int]
    ) -> None:
        """Answer some of the questions by their own pairs, each of those that are the same composition once."""
        same: dict[Hashable, list[int]] = {}
        for i in places:
            same.setdefault(self.composition_of(questions[i].pair), []).append(i)
        for members in same.values():
            epsilons = {e: n for n, e in enumerate(dict.fromkeys(questions[i].at for i in members))}
            found = self.answers(questions[members[0]].pair).point(list(epsilons))
            asked = [epsilons[questions[i].at] for i in members]
            overwrite(point, members, Point.of_rows(np.array(found.rows())[:, asked]))

    def composition_of(self, pair: int) -> Hashable:
        """What is equal for pairs that are the same composition, where that is known; here the pair itself."""
        return pair

    def epsilons(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of epsilon at each question's delta, 0 < delta < 1."""
        return _ends([self.answers(q.pair).epsilon_bracket(q.at) for q in questions])

    def screen(self, epsilons: Sequence[Fraction]) -> Iterator[Point] | None:
        """Certified delta and 1 - delta of every pair, one epsilon after the other, wider than `table` but quicker, if any."""
        return None

    def epsilons_of_few(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """`epsilons` of a few pairs."""
        return self.epsilons(questions)

    def betas(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of beta at each question's alpha, 0 < alpha < 1."""
        return _ends([self.answers(q.pair).beta_bracket(q.at) for q in questions])


def _ends(brackets: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    lower, upper = np.array(brackets, dtype=np.float64).reshape(-1, 2).T
    return lower, upper


@dataclass(frozen=True)
class SeparatePairs(PairAnswers):
    """Pairs of any mechanisms; those with the same mechanisms are computed once while they are held."""

    mechanisms: tuple[Mapping[Mechanism, int], ...]
    _held: Recent[frozenset[tuple[Mechanism, int]], BothDirections] = field(
        default_factory=lambda: Recent(HELD), repr=False, compare=False
    )

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self.mechanisms)

    @cached_property
    def spread(self) -> float:
        """2 rho of the pair with the largest: the variance of its loss were it Gaussian."""
        return max(sum(2 * n * float(m.rho) for m, n in pair.items()) for pair in self.mechanisms)

    def answers(self, pair: int) -> BothDirections:
        """What answers for one pair alone; some are held."""
        counts = self.mechanisms[pair]
        return self._held.get(frozenset(counts.items()), lambda: answers_for(counts, Effort()))
