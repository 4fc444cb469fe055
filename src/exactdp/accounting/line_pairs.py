"""Pairs of any design at once, whatever its lattice: the shared contours on the line answer, and each pair by itself where they
are wide."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.batched_dual import betas_from_profiles
from exactdp.accounting.directions import BothDirections
from exactdp.accounting.planner import (
    grid_suits,
    lists_answer,
    nearly_all_nodes_matter,
    only_lists_answer,
    quick_answers_for,
)
from exactdp.accounting.privacy_profile import point_of_values
from exactdp.accounting.separate_pairs import HELD, Question
from exactdp.accounting.shared_pairs import FEW, FEW_SUSPECTS, USELESS, SharedPairs, region_of_rung, unknown
from exactdp.accounting.tradeoff_dual import beta_from_profile
from exactdp.brackets import Bracket, Point, both, mirrored_brackets, overwrite
from exactdp.cache import Recent
from exactdp.doubles import Bools, Floats, Ints
from exactdp.engine.effort import Effort
from exactdp.engine.family.line_contours import ALONE, FINE, ROUGH, LineFamily, Place, Width, Widths
from exactdp.engine.family.line_grid import GridFamily
from exactdp.engine.lattice.contours import Values
from exactdp.engine.sieve.windows import distinct
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import log_rational

_RESORT_WIDTH = 1e-10
_RESORT_WIDTH_BETA = 1e-9  # beta is a difference of larger numbers
_SUITED_HELD = 1 << 16
_Evaluate = Callable[[Place, Ints, list[Fraction], Ints], Values]


@dataclass(frozen=True)
class LinePairs(SharedPairs):
    """All pairs of a family on the line, ready to be asked."""

    family: LineFamily
    resort_width: ClassVar[float] = _RESORT_WIDTH
    resort_width_beta: ClassVar[float] = _RESORT_WIDTH_BETA
    _held: Recent[Hashable, BothDirections] = field(default_factory=lambda: Recent(HELD), repr=False, compare=False)
    _same: Recent[int, Hashable] = field(default_factory=lambda: Recent(_SUITED_HELD), repr=False, compare=False)
    _suited: Recent[int, tuple[bool]] = field(default_factory=lambda: Recent(_SUITED_HELD), repr=False, compare=False)
    _only_lists: Recent[int, tuple[bool]] = field(
        default_factory=lambda: Recent(_SUITED_HELD), repr=False, compare=False
    )
    _listed: Recent[int, tuple[bool]] = field(default_factory=lambda: Recent(_SUITED_HELD), repr=False, compare=False)

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self.family.pairs)

    @cached_property
    def _spreads(self) -> Floats:
        """2 rho of each pair: the variance of its loss were it Gaussian."""
        return self.family.of_pairs(np.array([2 * float(m.rho) for m in self.family.mechanisms]))

    @cached_property
    def spread(self) -> float:
        """The largest variance of a pair's loss, about."""
        return float(self._spreads.max())

    def spreads(self, pairs: list[int]) -> list[float]:
        """That of each pair."""
        found: list[float] = self._spreads[pairs].tolist()
        return found

    def mechanisms(self, pair: int) -> Mapping[Mechanism, int]:
        """The mechanisms of one pair."""
        return self.family.composition(pair)

    def composition_of(self, pair: int) -> Hashable:
        """Its mechanisms: levels that two paths bypass together may be those that two others bypass."""
        return self._same.get(pair, lambda: frozenset(self.mechanisms(pair).items()))

    def answers(self, pair: int) -> BothDirections:
        """What answers for one pair alone; some are held."""
        key = self.composition_of(pair)
        return self._held.get(key, lambda: quick_answers_for(self.mechanisms(pair), Effort()))

    def region(self, epsilon: Fraction) -> tuple[str, int]:
        """By the ladder of the first class."""
        return region_of_rung(*self.family.ladders[0].place_of(float(epsilon)), self.family.together)

    def shared_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On the contours of the family."""
        return self._at(pairs, epsilons, index, None)

    def finer_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On contours with less smoothing for each pair by itself."""
        return self._at(pairs, epsilons, index, FINE)

    def grid_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> tuple[Bools, Point]:
        """Of pairs that have too many values for a list and too many nodes for a sum: losses split on a grid."""
        suited = np.isin(pairs, [p for p in distinct(pairs).tolist() if self._on_grid(p)])
        rows = np.array(unknown(len(pairs)).rows())
        rows[:, suited] = self._by(self._grid.evaluate, pairs[suited], epsilons, index[suited]).rows()
        return suited, Point.of_rows(rows)

    def _on_grid(self, pair: int) -> bool:
        return self._grid.can_list and self._suited.get(pair, lambda: (grid_suits(self.mechanisms(pair)),))[0]

    def answers_at_once(self, pairs: Ints) -> Bools:
        """Those whose values are few, or on a lattice but for a list; what nothing but lists answers is known to be one."""
        return np.isin(pairs, [p for p in distinct(pairs).tolist() if self._lists_answer(p)])

    def _lists_answer(self, pair: int) -> bool:
        if self._only_lists.find(pair) == (True,):
            return True
        return self._listed.get(pair, lambda: (lists_answer(self.mechanisms(pair)),))[0]

    def need_no_contours(self, pairs: Ints) -> Bools:
        """Which of them nothing but lists would answer; only those of which that is true of both members are looked at."""
        coarse = np.flatnonzero(self._coarse_members[self.family.both[pairs]].all(axis=1))
        some = distinct(pairs[coarse]).tolist()
        found = [p for p in some if self._only_lists.get(p, lambda p=p: (only_lists_answer(self.mechanisms(p)),))[0]]  # type: ignore[misc]
        return np.isin(pairs, found)

    @cached_property
    def _coarse_members(self) -> Bools:
        """Of which members nearly all nodes matter; also of the one without any mechanism."""
        return np.array([nearly_all_nodes_matter(member) for member in (*self.family.members, {})])

    @cached_property
    def _grid(self) -> GridFamily:
        return GridFamily(self.family)

    def rough_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point | None:
        """On rough contours, where pairs are many."""
        evaluate = partial(self.family.evaluate, rough=ROUGH[-1])
        return self._by(evaluate, pairs, epsilons, index) if self.count > FEW else None

    def _look_again(self, point: Point, asked: tuple[Ints, Sequence[Fraction], Ints], some: Ints) -> None:
        """Pairs that are few at their epsilon on contours of their own, light ones of many on those that they share."""
        pairs, epsilons, index = asked
        for part, look in (
            (some[~_are_many(index[some])], self.few_at),
            (some[_are_many(index[some])], partial(self._by, self._among_light)),
        ):
            if len(part):
                rough = Point.of_rows(np.array(point.rows())[:, part])
                overwrite(point, part.tolist(), rough.within(look(pairs[part], epsilons, index[part])))

    def _among_light(self, place: Place, pairs: Ints, thresholds: list[Fraction], index: Ints) -> Values:
        """Light pairs on contours that they share; the others by themselves where they are few, else on those of all pairs."""
        light = self.family.light(place, ROUGH[-1])
        mine = np.isin(pairs, light)
        many = ~mine
        many[many] = _are_many(index[many])
        rows = np.empty((4, len(pairs)))
        for part, how in ((mine, {"among": light}), (many, {}), (~mine & ~many, {"alone": ALONE})):
            if part.any():
                found = self.family.evaluate(place, pairs[part], thresholds, index[part], **how)
                rows[:, part] = [*found.bracket.rows(), found.log_slope]
        return Values(Bracket(rows[0], rows[1], rows[2]), rows[3])

    def screen(self, epsilons: Sequence[Fraction], widths: Widths = ROUGH[-1]) -> Iterator[Point]:
        """On rough contours, in a fraction of the time."""
        everyone, evaluate = np.arange(self.count), partial(self.family.evaluate, rough=widths)
        for epsilon in epsilons:
            yield self._by(evaluate, everyone, [epsilon], np.zeros_like(everyone))

    def epsilons_of_few(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """On contours of each pair by itself: for a few pairs these take less time than those that all share."""
        return self._alone.epsilons(questions)

    def few_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On contours of each pair by itself."""
        return self._alone.shared_at(pairs, epsilons, index)

    @cached_property
    def _alone(self) -> _PairsAlone:
        return _PairsAlone(self.family, self._held)

    def _at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints, alone: Width | None) -> Point:
        return self._by(partial(self.family.evaluate, alone=alone), pairs, epsilons, index)

    def _by(self, evaluate: _Evaluate, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On the rungs of the family, by a method that takes questions of one rung."""
        sizes = [abs(e) for e in epsilons]
        rows = np.empty((7, len(pairs)))
        for place, members in self.family.places(pairs, sizes, index):
            values = evaluate(place, pairs[members], sizes, index[members])
            rows[:, members] = point_of_values(place[1], values).rows()
        point = Point.of_rows(rows)
        if all(e >= 0 for e in epsilons):
            return point
        return mirrored_brackets(point, [epsilons[i] for i in index])

    def betas(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of beta at each question's alpha, 0 < alpha < 1 (Theorem 15)."""
        pairs = [q.pair for q in questions]
        spreads = np.array(self.spreads(pairs))
        quantiles = -ndtri_exp(np.array([log_rational(q.at) for q in questions]))
        starts = quantiles * np.sqrt(spreads) - spreads / 2

        def points_at(which: Ints, epsilons: list[Fraction]) -> Point:
            return self.shared([Question(pairs[i], e) for i, e in zip(which.tolist(), epsilons, strict=True)])

        lower, upper = betas_from_profiles(points_at, [q.at for q in questions], starts, np.sqrt(spreads))
        for ask in (self._beta_alone_on_shared, lambda q: self.answers(q.pair).beta_bracket(q.at)):
            for i in np.flatnonzero(~(upper - lower <= self.resort_width_beta * upper)).tolist():
                lower[i], upper[i] = both((lower[i], upper[i]), ask(questions[i]))
        return lower, upper

    def _beta_alone_on_shared(self, question: Question) -> tuple[float, float]:
        """One pair's beta by the dual's own search, which also copes with curves that have corners, on the shared contours."""
        pair, alpha = question
        spread = float(self._spreads[pair])
        start = -float(ndtri_exp(log_rational(alpha))) * math.sqrt(spread) - spread / 2

        def point_at(epsilons: list[Fraction]) -> Point:
            return self.shared([Question(pair, e) for e in epsilons])

        if point_at([Fraction(abs(start))]).is_wide(USELESS)[0]:
            return 0.0, 1.0
        return beta_from_profile(point_at, alpha, start, math.sqrt(spread), enough=self.resort_width_beta)


class _PairsAlone(LinePairs):
    """The same pairs, each on contours of its own."""

    def shared_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On contours of each pair by itself."""
        return self._at(pairs, epsilons, index, ALONE)


def _are_many(index: Ints) -> Bools:
    """Which questions have an epsilon that more than a few have."""
    result: Bools = np.bincount(index, minlength=1)[index] > FEW_SUSPECTS
    return result
