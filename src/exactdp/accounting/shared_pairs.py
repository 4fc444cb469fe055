"""Questions about many pairs whose contours are shared: what all of them have in common, on a lattice or on the line."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from exactdp.accounting.epsilon_search import gaussian_start, newton_step
from exactdp.accounting.separate_pairs import PairAnswers, Question
from exactdp.brackets import Bracket, Point, overwrite
from exactdp.doubles import EXP_SLACK, Bools, Floats, Ints
from exactdp.engine.payoff import Payoff
from exactdp.numbers import log_rational
from exactdp.widths import WIDE

_NEWTON_STEPS = 5
USELESS = 0.1
"""Bounds on shared contours further apart than this, relative to the upper one, say that the pair is not on them."""

_GRIDDED = 1e-7  # shared contours that leave more are given up for a grid, where that is the best there is
FEW = 12
"""Pairs that are asked one by one where shared contours are wide, and not on a grid: that is narrower and may take longer."""

FEW_SUSPECTS = 6
"""Pairs that may be the worst which are asked on contours of their own."""

_UNKNOWN = (0.0, 0.0, 1.0, 0.0, 0.0, 1.0, -np.inf)
_NARROW = 1e-11  # ends further than this from the estimate, relative to it, are left to the search for one pair


class SharedPairs(PairAnswers):
    """Pairs that are asked together on shared contours; what these leave too wide is answered pair by pair."""

    shares: ClassVar[bool] = True
    """Whether contours are shared at all."""
    resort_width: ClassVar[float]
    """Bounds of delta further apart than this, relative to delta, are left to the pair's own contours."""
    resort_width_beta: ClassVar[float]
    """The same for beta, relative to beta."""

    @abstractmethod
    def spreads(self, pairs: list[int]) -> list[float]:
        """About the variance of each pair's loss. Heuristic: affects width and speed only."""

    @abstractmethod
    def region(self, epsilon: Fraction) -> tuple[str, int]:
        """What is planned together for an epsilon from 0 on: payoff, and number of a few neighbouring tilts. Heuristic: affects
        speed only."""

    @abstractmethod
    def shared_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """Certified delta and 1 - delta of pairs, each at the epsilon of its index, as narrow as shared contours make them."""

    def rough_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point | None:
        """The same with wider bounds in less time, which tell most pairs that are not the worst, if there is such a way."""
        return None

    def finer_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point | None:
        """The same by a finer method than sharing that is quicker than the pairs' own ones, if there is such a one."""
        return None

    def answers_at_once(self, pairs: Ints) -> Bools:
        """Which pairs answer by themselves in so little time that nothing else is tried where shared contours are wide."""
        return np.zeros(len(pairs), dtype=bool)

    def need_no_contours(self, pairs: Ints) -> Bools:
        """Which of them do, where shared contours would be wide. Heuristic: affects speed and accuracy only."""
        return np.zeros(len(pairs), dtype=bool)

    def grid_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> tuple[Bools, Point] | None:
        """The same on a grid, and for which questions that is the best there is, if there is such a method."""
        return None

    def shared(self, questions: list[Question]) -> Point:
        """The same at each question's epsilon."""
        return self.shared_at(*arrays_of(questions))

    def profile(self, questions: list[Question]) -> Point:
        """Certified delta and 1 - delta at each question's epsilon."""
        return self._answered(*arrays_of(questions))

    def _profile_at(self, pairs: Ints, epsilons: Floats) -> Point:
        """The same of each pair at an epsilon that is exactly a double."""
        different, index = np.unique(epsilons, return_inverse=True)
        exact = [Fraction(x) for x in different.tolist()]
        return self._answered(pairs, exact, index)

    def table(self, pairs: Sequence[int], epsilons: Sequence[Fraction]) -> Point:
        """Certified delta and 1 - delta of each pair at each epsilon, one pair after the other."""
        return self._answered(*_every(pairs, epsilons))

    def _answered(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """On shared contours first, but for pairs that do not need them: each by itself, whatever others are asked."""
        sharing = np.flatnonzero(~self.need_no_contours(pairs))
        if len(sharing) == len(pairs):
            point = self.shared_at(pairs, epsilons, index)
        else:
            point = unknown(len(pairs))
            if len(sharing):
                overwrite(point, sharing.tolist(), self.shared_at(pairs[sharing], epsilons, index[sharing]))
        return self._resorted(pairs, epsilons, index, point)

    def table_of_worst(self, epsilons: Sequence[Fraction], resorts: bool = True) -> Point:
        """`table` of all pairs; those that are proved not to be the worst at an epsilon may be wider there, and all of them
        as wide as shared contours leave them without `resorts`."""
        asked = _every(range(self.count), epsilons)
        point = self.rough_at(*asked)
        if point is None:
            point = self.shared_at(*asked)
        else:
            self._look_again(point, asked, np.flatnonzero(point.is_wide(self.resort_width) & self._may_be_worst(point)))
        return self._resorted(*asked, point, self._may_be_worst) if resorts else point

    def _look_again(self, point: Point, asked: tuple[Ints, Sequence[Fraction], Ints], some: Ints) -> None:
        """Put the bounds on shared contours in place of some of the rough ones."""
        if len(some):
            pairs, epsilons, index = asked
            overwrite(point, some.tolist(), self.shared_at(pairs[some], epsilons, index[some]))

    def _may_be_worst(self, point: Point) -> Bools:
        return may_be_worst(point, self.count, self.resort_width)

    def shared_table(self, pairs: Sequence[int], epsilons: Sequence[Fraction]) -> Point:
        """`table` as narrow as shared contours make it."""
        return self.shared_at(*_every(pairs, epsilons))

    def shared_table_of_few(self, pairs: Sequence[int], epsilons: Sequence[Fraction]) -> Point:
        """`table` of a few pairs as narrow as shared contours make it."""
        return self.few_at(*_every(pairs, epsilons))

    def few_at(self, pairs: Ints, epsilons: Sequence[Fraction], index: Ints) -> Point:
        """`shared_at` of a few pairs."""
        return self.shared_at(pairs, epsilons, index)

    def _resorted(
        self,
        pairs: Ints,
        epsilons: Sequence[Fraction],
        index: Ints,
        point: Point,
        matters: Callable[[Point], Bools] = lambda point: np.ones(len(point.log_density), dtype=bool),
    ) -> Point:
        """What shared contours leave too wide, where that matters, by lists, on a grid or on finer ones, and where these do on
        those of the pair itself."""
        is_wide = point.is_wide(self.resort_width)
        wide = np.flatnonzero(is_wide & matters(point)) if is_wide.any() else np.empty(0, dtype=np.int64)
        at_once = self.answers_at_once(pairs[wide])
        alone, wide = wide[at_once], wide[~at_once]
        lost = wide[point.is_wide(_GRIDDED)[wide]] if self.count > FEW else wide[:0]
        if len(lost) and (found := self.grid_at(pairs[lost], epsilons, index[lost])) is not None:
            settled = found[0] & ~found[1].is_wide(WIDE)
            overwrite(point, lost[settled].tolist(), Point.of_rows(np.array(found[1].rows())[:, settled]))
            wide = np.setdiff1d(wide, lost[settled])
        if len(wide) and (finer := self.finer_at(pairs[wide], epsilons, index[wide])) is not None:
            narrow = ~finer.is_wide(self.resort_width)
            overwrite(point, wide[narrow].tolist(), Point.of_rows(np.array(finer.rows())[:, narrow]))
            wide = wide[~narrow]
        questions = {i: Question(int(pairs[i]), epsilons[index[i]]) for i in np.concatenate([alone, wide]).tolist()}
        self.one_by_one(point, questions, questions)
        return point

    def epsilons(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Certified bounds of epsilon at each question's delta, 0 < delta < 1 (Theorem 5)."""
        lower, upper = np.full(len(questions), np.nan), np.full(len(questions), np.nan)
        places = [i for i, q in enumerate(questions) if 2 * q.at.numerator <= q.at.denominator]
        if places:
            lower[places], upper[places] = self._search_epsilons([questions[i] for i in places])
        for i in np.flatnonzero(np.isnan(lower)):
            lower[i], upper[i] = self.epsilon(questions[i].pair, questions[i].at)
        return lower, upper

    def epsilon(self, pair: int, delta: Fraction) -> tuple[float, float]:
        """Certified bounds of one pair's epsilon by itself."""
        return self.answers(pair).epsilon_bracket(delta)

    def _search_epsilons(self, questions: list[Question]) -> tuple[Floats, Floats]:
        """Newton's method for all questions together, then a proof of both ends; nan where that did not suffice."""
        numbers, deltas, index = arrays_of(questions)
        spreads = np.array(self.spreads(numbers.tolist()))
        target = np.array([log_rational(delta) for delta in deltas])[index]
        each = list(zip(spreads.tolist(), index.tolist(), strict=True))
        starts = {(spread, i): gaussian_start(spread, deltas[i]) for spread, i in dict.fromkeys(each)}
        error = EXP_SLACK * (1 + np.abs(target))
        longest = 1 + np.sqrt(spreads)
        e = np.array([starts[one] for one in each])
        step = np.full(len(e), np.inf)
        active = np.arange(len(e))  # a question stops by itself, so that its result does not depend on the others
        for _ in range(_NEWTON_STEPS):
            x = e[active]
            point = self._profile_at(numbers[active], x)
            bottom, top = point.delta.log_lower(), point.delta.log_upper()
            move, step[active], going = newton_step(x, (bottom, top), point.log_density, target[active], error[active])
            active = active[going]
            if not len(active):
                break
            e[active] += np.clip(move[going], -longest[active], longest[active])
        step[active] = np.inf  # moved since its last evaluation
        step = np.minimum(step, 1.0)
        ends = np.stack([e - step, e + step], axis=1)
        # one double inside of the ends delta proves it for them and for the decimals that they print as
        within = np.nextafter(ends, ends[:, ::-1])
        delta = self._profile_at(np.repeat(numbers, 2), within.ravel()).delta
        proved = both_ends_hold(delta, target, error) & (step < _NARROW * (1 + np.abs(e)))
        return np.where(proved, ends[:, 0], np.nan), np.where(proved, ends[:, 1], np.nan)


def unknown(count: int) -> Point:
    """So many points of which nothing is known but that delta is a probability."""
    return Point.of_rows(np.repeat(np.array([_UNKNOWN]).T, count, axis=1))


def region_of_rung(payoff: Payoff, index: int, together: int) -> tuple[str, int]:
    """The rungs that share a skeleton: the lowest, and all of 1 - delta, are by themselves."""
    return payoff.value, index if payoff is Payoff.COMPLEMENT or not index else 1 + (index - 1) // together


def both_ends_hold(delta: Bracket, target: Floats, error: Floats) -> Bools:
    """For each question, from delta one double inside of the lower end and of the upper end: are both ends proved?

    The lower end needs delta at least the target, the upper end delta at most the target (logarithms, Theorem 5). delta falls
    with epsilon, so that the ends have it as well, whether they are read as binary numbers or as the decimals they print as.
    """
    too_large = delta.log_lower().reshape(-1, 2)[:, 0] >= target + error
    small_enough = delta.log_upper().reshape(-1, 2)[:, 1] <= target - error
    result: Bools = too_large & small_enough
    return result


def may_be_worst(point: Point, count: int, width: float = 0.0) -> Bools:
    """Where, in a table of `count` pairs, a pair may have the largest delta or the smallest 1 - delta at its epsilon.

    Of the two, one that is known to within `width`, relative to it, has no such pairs: there is nothing more to find.
    """
    result = np.zeros((count, len(point.log_density) // count), dtype=bool)
    for bottoms, tops in (
        (point.delta.log_lower(), point.delta.log_upper()),
        (-point.rest.log_upper(), -point.rest.log_lower()),
    ):
        tops, known = tops.reshape(count, -1), bottoms.reshape(count, -1).max(axis=0)
        with np.errstate(invalid="ignore"):  # nothing is known at all
            open_still = ~(tops.max(axis=0) - known <= width)
        result |= (tops >= known) & open_still
    return result.ravel()


def _every(pairs: Sequence[int], epsilons: Sequence[Fraction]) -> tuple[Ints, Sequence[Fraction], Ints]:
    """Each pair at each epsilon, one pair after the other."""
    each = np.repeat(np.array(pairs, dtype=np.int64), len(epsilons))
    return each, epsilons, np.tile(np.arange(len(epsilons)), len(pairs))


def arrays_of(questions: list[Question]) -> tuple[Ints, list[Fraction], Ints]:
    """The pairs of questions, the arguments without repetition, and which of them each question has."""
    pairs = np.array([q.pair for q in questions], dtype=np.int64)
    # by identity, which is quicker than by value: the same number twice does no harm
    _, first, index = np.unique(np.array([id(q.at) for q in questions]), return_index=True, return_inverse=True)
    return pairs, [questions[i].at for i in first.tolist()], index
