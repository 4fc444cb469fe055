"""The lower convex envelope of the trade-off curves of all pairs, between proved bounds (docs/theory/engine.md, Theorem 9).

A line below all curves is below the envelope, and a chord between two vertices is above it; the search makes them meet. First it
does so for a few pairs that are likely to be the worst. Their chord is above the envelope of all pairs as well; whether
their line is below it all pairs are asked, for all alphas together. Only where it is not, all pairs are searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri_exp

from exactdp.accounting.pairs import Pairs
from exactdp.accounting.separate_pairs import Question
from exactdp.accounting.tradeoff_vertices import Tail
from exactdp.brackets import Point
from exactdp.doubles import CHAIN_SLACK, TINY, exp_above, exp_below
from exactdp.engine.lattice.accuracy import ACCURACY
from exactdp.numbers import log_rational

_SEARCH_STEPS = 100
_TRIALS = 4  # with the pair added that turned out to be worse than the likely ones


class Extremes(NamedTuple):
    """The worst of all pairs at one epsilon."""

    delta: tuple[float, float]
    """Bounds of the largest delta."""
    log_delta: tuple[float, float]
    rest: tuple[float, float, float]
    """The smallest 1 - delta: log_scale, lower and upper, as in a Bracket."""
    least_rest: float
    """The lower bound of the smallest 1 - delta as a double."""
    log_density: float
    by_delta: int
    """The pair that looks worst by its delta."""
    by_rest: int
    """The pair that looks worst by its 1 - delta."""

    @classmethod
    def of(cls, point: Point) -> Extremes:
        """The worst of what is known of every pair."""
        delta, rest = point.delta, point.rest
        tops, bottoms = delta.log_upper(), rest.log_lower()
        by_delta, by_rest = int(np.argmax(tops)), int(np.argmin(bottoms))
        scale = float(rest.log_scale[by_rest])
        with np.errstate(over="ignore"):  # far above the least: of no consequence
            moved = np.exp(rest.log_scale - scale)
            low = float(np.multiply(rest.lower, moved, out=np.zeros_like(moved), where=rest.lower > 0).min())
            high = float((rest.upper * moved).min())
        return cls(
            (float(delta.lower_floats().max()), float(min(delta.upper_floats().max(), 1.0))),
            (float(delta.log_lower().max()), min(float(tops[by_delta]), 0.0)),
            (scale, low * (1 - CHAIN_SLACK), high * (1 + CHAIN_SLACK)),
            float(rest.lower_floats().min()),
            float(point.log_density[by_delta]),
            by_delta,
            by_rest,
        )


ExtremesAt = Callable[[Sequence[Fraction]], list[Extremes]]
"""The worst of all pairs at each of some epsilons."""


def envelope_bounds(
    extremes: ExtremesAt, likely: Sequence[int], pairs: Pairs, alphas: Sequence[Fraction]
) -> list[tuple[float, float]]:
    """Bounds of the envelope at each alpha, 0 < alpha < 1; an answer does not depend on the other alphas.

    `likely` are pairs that are likely to be the worst ones. Heuristic: affects speed only.
    """
    searches = [_Envelope(pairs, alpha) for alpha in alphas]
    suspects = [sorted(likely)] * len(alphas)
    going = list(range(len(alphas)))
    if pairs.shares and going:
        going = _left_by_lowest_curves(searches, pairs, suspects[0], extremes)
    for _ in range(_TRIALS):
        trials = {i: _Envelope(pairs, alphas[i]) for i in going}
        for some in {tuple(suspects[i]): None for i in going}:
            same = [trials[i] for i in going if tuple(suspects[i]) == some]
            _search(same, pairs, partial(_extremes_of, pairs, some))
        found = extremes([abs(trial.best) for trial in trials.values()])
        going = []
        for (i, trial), worst in zip(trials.items(), found, strict=True):
            searches[i].learn(worst, trial.best, trial.upper)
            new = {worst.by_delta, worst.by_rest} - set(suspects[i])
            if new and not searches[i].is_found:  # with nothing new, all pairs would be searched as these were
                suspects[i] = sorted({*suspects[i], *new})
                going.append(i)
        if not going:
            break
    _search([searches[i] for i in going], pairs, extremes)
    return [(max(search.lower, 0.0), min(search.upper, 1.0)) for search in searches]


def _search(searches: Sequence[_Envelope], pairs: Pairs, extremes: ExtremesAt) -> None:
    """Until the bounds of each search meet, or nothing new is found; what they want to know is asked together."""
    walks = {search: search.walk() for search in searches}
    wanted = {search: epsilon for search, walk in walks.items() if (epsilon := next(walk, None)) is not None}
    while wanted:
        found = extremes([abs(epsilon) for epsilon in wanted.values()])
        looked = zip(wanted.items(), found, strict=True)
        touched = [search.vertices(worst, epsilon) for (search, epsilon), worst in looked]
        ends = [end for vertices in touched for vertex in vertices for end in _ends(pairs, *vertex)]
        tails = iter(pairs.tails(ends) if ends else ())
        answers, wanted = zip(wanted, found, touched, strict=True), {}
        for search, worst, vertices in answers:
            placed = [(vertex, next(tails), next(tails)) for vertex in vertices]
            with suppress(StopIteration):
                wanted[search] = walks[search].send((worst, placed))


def _left_by_lowest_curves(
    searches: Sequence[_Envelope], pairs: Pairs, likely: Sequence[int], extremes: ExtremesAt
) -> list[int]:
    """Bounds where the envelope is one pair's own curve, all there is to find in these places; the places that are left.

    The least of some pairs' curves is above the envelope, and the line of that curve's edge is below it as far as all pairs say.
    If that pair is the one that says least, the line is the edge, so that both are the same but for rounding.
    """
    starts = [Fraction(search.start) for search in searches]
    guesses = _extremes_of(pairs, likely, [abs(start) for start in starts])
    lowest = [search.touched(*at) for search, at in zip(searches, zip(guesses, starts, strict=True), strict=True)]
    found = pairs.betas_on_edges([Question(p, search.alpha) for p, search in zip(lowest, searches, strict=True)])
    lattices = [pairs.family.typical_of(pair) for pair in lowest]
    slopes = [lattice.step * e - lattice.half_spread for lattice, e in zip(lattices, found.edge.tolist(), strict=True)]
    narrow = found.upper - found.lower <= pairs.resort_width_beta * found.upper
    left = []
    for i, worst in enumerate(extremes([abs(slope) for slope in slopes])):
        searches[i].learn(worst, slopes[i], float(found.upper[i]))
        is_edge = narrow[i] and lowest[i] == searches[i].touched(worst, slopes[i])
        if not searches[i].is_found and not is_edge:
            left.append(i)
    return left


def _extremes_of(pairs: Pairs, some: Sequence[int], epsilons: Sequence[Fraction]) -> list[Extremes]:
    """The worst of some pairs only."""
    rows = np.array(pairs.table(some, epsilons).rows()).reshape(7, len(some), len(epsilons))
    found = [Extremes.of(Point.of_rows(rows[:, :, i])) for i in range(len(epsilons))]
    return [worst._replace(by_delta=some[worst.by_delta], by_rest=some[worst.by_rest]) for worst in found]


@dataclass(frozen=True)
class _Vertex:
    """A point on or above the envelope: u stands for alpha, or for 1 - alpha where alpha is above 1/2."""

    u: float
    beta: float
    pair: int
    step: int


_Place = tuple[int, int]
"""A vertex of a pair's curve: the pair, and the lattice point at which its best test rejects."""

_Placed = tuple[_Place, Tail, Tail]
"""The same with its alpha and its beta."""


def _ends(pairs: Pairs, pair: int, step: int) -> tuple[_Place, _Place]:
    """The tails that are alpha and beta of a vertex."""
    return (pair, step), (pair, pairs.family.typical_of(pair).spread_steps + 1 - step)


class _Envelope:
    """The search for the slope at which lower and upper bound meet."""

    def __init__(self, pairs: Pairs, alpha: Fraction) -> None:
        self._pairs = pairs
        self.alpha = alpha
        self._small = alpha <= Fraction(1, 2)
        self._u = float(alpha if self._small else 1 - alpha)
        self._log_u = log_rational(alpha if self._small else 1 - alpha)
        self._log_alpha = log_rational(alpha)
        # the last resort in both directions: the corners of the unit square
        self._left = _Vertex(0.0 if self._small else 1.0, 1.0, -1, 0)
        self._right = _Vertex(1.0 if self._small else 0.0, 0.0, -1, 0)
        self.lower, self._cap = 0.0, 1.0
        lattice = pairs.family.typical[0]
        quantile = -float(ndtri_exp(self._log_u)) * (1 if self._small else -1)
        self.start = quantile * math.sqrt(lattice.r) - lattice.r / 2  # were the curve the continuous Gaussian's
        self.best = Fraction(self.start)
        """The logarithm of the slope of the highest line."""

    @property
    def upper(self) -> float:
        """The least that is known to be above the envelope at alpha."""
        return min(self._chord(), self._cap)

    def learn(self, found: Extremes, epsilon: Fraction, above: float) -> None:
        """A line below the envelope, and something that is known to be above it."""
        self._raise(found, epsilon)
        self._cap = min(self._cap, above)

    def _raise(self, found: Extremes, epsilon: Fraction) -> bool:
        line = self._line(found, epsilon)
        if line <= self.lower:
            return False
        self.lower, self.best = line, epsilon
        return True

    @property
    def is_found(self) -> bool:
        """Whether the bounds meet."""
        return self.upper - self.lower <= ACCURACY / 4 * self.upper

    def walk(self) -> Generator[Fraction, tuple[Extremes, list[_Placed]], None]:
        """The epsilons at which to look, one after the other, until the bounds meet or nothing new is found; the worst of the
        pairs at the size of each is sent back, and the vertices that it leads to."""
        if self.is_found:
            return
        lattice, start = self._pairs.family.typical[0], self.start
        deviation = math.sqrt(lattice.r)
        reach = max(4 * lattice.h, 1e-6 * deviation)
        epsilon = Fraction(start)
        for _ in range(_SEARCH_STEPS):
            found, placed = yield epsilon
            higher = self._raise(found, epsilon)
            for vertex in placed:
                self._take(*vertex)
            if self.is_found:
                break
            if self._left.pair < 0 or self._right.pair < 0:  # one side is still a corner: go there, further each time
                epsilon = Fraction(start + reach if self._left.pair < 0 else start - reach)
                reach = min(8 * reach, 50 * deviation + lattice.r)
            elif placed or higher:
                epsilon = self._between()
            else:
                break

    def vertices(self, found: Extremes, epsilon: Fraction) -> list[_Place]:
        """The vertices that the line of slope e^epsilon touches, without those that are known."""
        worst = self.touched(found, epsilon)
        lattice = self._pairs.family.typical_of(worst)
        at = (epsilon + lattice.half_spread) / lattice.step
        step = math.ceil(at)
        known = {(v.pair, v.step) for v in (self._left, self._right)}
        return [(worst, t) for t in ((step, step + 1) if at == step else (step,)) if (worst, t) not in known]

    def touched(self, found: Extremes, epsilon: Fraction) -> int:
        """The pair whose curve the line of slope e^epsilon touches."""
        return found.by_rest if epsilon >= 0 or self._small else found.by_delta

    def _take(self, place: _Place, alpha: Tail, beta: Tail) -> None:
        """Put a vertex on its side of alpha, in place of the one there."""
        # upwards and to the right, both of which stay above the envelope
        log = alpha.high if self._small else alpha.rest_low
        u = (exp_above if self._small else exp_below)(log, CHAIN_SLACK)
        vertex = _Vertex(u, exp_above(beta.high, CHAIN_SLACK), *place)
        on_right = u >= self._u if self._small else u <= self._u
        self._left, self._right = (self._left, vertex) if on_right else (vertex, self._right)

    def _line(self, found: Extremes, epsilon: Fraction) -> float:
        """min over pairs of 1 - delta(epsilon), less e^epsilon alpha: below the envelope (weak duality).

        `found` is taken at |epsilon|; for negative epsilon, 1 - delta(epsilon) = e^epsilon (1 - delta(-epsilon)).
        """
        e = float(epsilon)
        slack = CHAIN_SLACK * (1 + abs(e))
        if epsilon >= 0:
            slack += CHAIN_SLACK * abs(self._log_alpha)
            rest = found.least_rest
            return rest - math.exp(min(e + self._log_alpha, 700.0)) * (1 + slack) - slack * rest - TINY
        # 1 - alpha - delta as a difference of two numbers that are known in relative terms
        if self._small:
            first, second = found.least_rest, self._u
        else:
            first, second = self._u, found.delta[1]
        return math.exp(e) * ((first - second) - slack * (first + second)) - TINY

    def _between(self) -> Fraction:
        """The logarithm of the slope of the chord between the two vertices, exact where it is an edge of one pair's curve."""
        left, right = self._left, self._right
        if left.pair == right.pair and left.step == right.step + 1:
            lattice = self._pairs.family.typical_of(left.pair)
            return lattice.step * right.step - lattice.half_spread
        gap = abs(right.u - left.u)
        return Fraction(math.log(max(left.beta - right.beta, 5e-324)) - math.log(max(gap, 5e-324)))

    def _chord(self) -> float:
        """The chord between the two vertices at alpha."""
        left, right = self._left, self._right
        gap = abs(right.u - left.u)
        if gap == 0:
            return max(left.beta, right.beta)
        share = min(max(abs(right.u - self._u) / gap, 0.0), 1.0)
        rise = max(left.beta - right.beta, 0.0)
        # u itself is rounded, which moves the chord by its slope times that
        return (right.beta + rise * share) * (1 + CHAIN_SLACK) + rise / gap * (self._u * CHAIN_SLACK + TINY) + TINY
