"""Any composition: which method answers, decided here and nowhere else.

A threshold is answered by the first of these that applies and that the effort allows, and where that leaves bounds wide by the
next ones as well, the narrowest ends winning (docs/which-method.md):

    closed form      one mechanism alone that has one; a long list of losses alone is a sum
    enumeration      all values of the loss listed, where they are few
    conditioning     coarse parts listed, the rest by another method, where the loss comes in clumps
    Fourier sum      without a lattice, where the effort allows a fine smoothing
    steps cut off    what one large output adds in closed form, the rest by a Fourier sum, if need be in balls: sampled mechanisms
    large steps      conditioning on the number of large steps, where a sampled loss is rarely large and mostly next to nothing
    grid             losses split between the points of a grid, where they can be listed
    Fourier sum      smoothed as finely as the effort allows, if that is not very fine
    steps in bands   conditioning on how many steps are how large, for a sampled mechanism; with much noise before large steps
    Markov           the bound by one moment, where even the coarsest Fourier sum is out of reach

All give certified bounds. (The sieve on the loss's own lattice, for rational discrete Gaussians, is engine/lattice.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.brackets import Bracket, Point, bracket_of_balls, mirrored, overwrite
from exactdp.cache import Recent
from exactdp.doubles import FORMULA_SLACK, UNDERFLOW, Floats
from exactdp.engine.effort import Effort
from exactdp.engine.grid.grid_fft import FEWEST_POINTS, GridFFT
from exactdp.engine.line.banded_steps import BandedMethod, banded_steps
from exactdp.engine.line.conditioning import Conditioning, list_coarse, split_coarse
from exactdp.engine.line.cut_steps import CutMethod, cut_steps, has_much_noise, rarely_sampled
from exactdp.engine.line.dense_fft import DenseFFT
from exactdp.engine.line.enumeration import Enumeration, expected_values, halves, list_values
from exactdp.engine.line.float64 import LineContour
from exactdp.engine.line.large_steps import WORTH, LargeSteps, label_steps
from exactdp.engine.line.lattice_bins import LatticeBins
from exactdp.engine.line.lattice_list import HalfTilts, LatticeLists, lists_suit
from exactdp.engine.line.plan import FINEST, make_line_plan
from exactdp.engine.line.protocol import Method, Used
from exactdp.engine.line.tilts import Ladder, LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.numerals import about
from exactdp.widths import WIDE

FEW_VALUES = math.log(1e6)
"""log of the number of values of the loss up to which listing them all takes no time worth counting."""

ENUMERATED_UP_TO = math.log(4e11)
"""log of the number of values up to which direct enumeration is tried first."""

FINE_SUM = 1e-9
"""What smoothing may cost, relative to the answer, for a Fourier sum to be asked before the grid."""

_METHODS = 12  # those of _method
_CUT, _FOURIER, _FINER = 2, 8, 10
_SMOOTHED = 2  # from here on values are smoothed or split
_MANY_STEPS = 100
_ENOUGH = 1e-7, FINE_SUM  # widths that are not worth many seconds, for few steps and for many
_HELD = 6 * _METHODS  # methods of rungs
_COARSER = 100.0  # of what smoothing may cost: a part of a larger answer that is narrower is not asked for again
_MORE = 8  # times the effort of one contour, as a last resort
_SMALL_LOSS, _VERY_MUCH = 1.0, 0.15  # and the square of shift over noise, where one label is not enough
_DEEPEST = 3  # conditionings within one another


@dataclass(frozen=True)
class LineMethods:
    """One direction of a composition: certified values at any thresholds, each by the method that suits it.

    Results do not depend on what was asked before, nor on what is asked together.
    """

    total: TotalLoss
    effort: Effort = field(default_factory=Effort)
    depth: int = 0
    finest: float = FINEST
    """The relative width that smoothing may cost at best, where an answer is part of a larger one."""
    _held: Recent[tuple[Payoff, int, int, int], tuple[Method | None]] = field(
        default_factory=lambda: Recent(_HELD), repr=False, compare=False
    )

    @cached_property
    def _lists(self) -> LatticeLists | None:
        """All values in two lists that serve every threshold, if there are such and plain ones are long."""
        division = lists_suit(self.total)
        if division is None or expected_values(self.total, 0.0) <= FEW_VALUES:
            return None
        return LatticeLists.plan(self.total, division, self.effort.looks)

    @cached_property
    def _ladder(self) -> Ladder | HalfTilts:
        return Ladder(self.total) if self._lists is None else self._lists.tilts

    @cached_property
    def _reverse(self) -> LineMethods:
        if self.total.is_symmetric:
            return self
        return LineMethods(self.total.reversed(), self.effort, self.depth, self.finest)

    @cached_property
    def _wide(self) -> float:
        """From this width on the next method is asked: less for steps that can be labelled, more for part of a larger answer.
        Heuristic: affects speed and accuracy only."""
        return FINE_SUM if self.total.is_long and not self.depth else max(WIDE, _COARSER * self.finest)

    @cached_property
    def _log_ratio(self) -> arb:
        """log E e^{-L}: 0 unless some loss can be infinite in one of the two directions."""
        return self.total.log_moment(Fraction(-1))

    def points(self, thresholds: list[arb], enough: Floats | None = None) -> Point:
        """Certified values at thresholds (balls of at least 140 correct fractional bits) of either sign.

        Where log delta is proved to be below `enough`, bounds may stay as wide as they then are.
        """
        parts, from_0 = np.empty((7, len(thresholds))), np.array([bool(y.mid() >= 0) for y in thresholds], dtype=bool)
        floors = np.full(len(thresholds), -math.inf) if enough is None else enough
        for side, ask in ((from_0, self._upper), (~from_0, self._lower)):
            places = np.flatnonzero(side)
            if len(places):
                parts[:, places] = ask([thresholds[i] for i in places], floors[places])
        return Point.of_rows(parts)

    def _upper(self, thresholds: list[arb], enough: Floats) -> Floats:
        """Rows of a Point at thresholds from 0 on."""
        parts = np.empty((7, len(thresholds)))
        by_rung: dict[LineRung, list[int]] = {}
        for i, y in enumerate(thresholds):
            end = self.total.ends[1]
            if end is not None and bool(y >= end):
                parts[:, i] = 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -math.inf
                continue
            if self.total.constant is not None:
                parts[:, i] = _constant(y, self.total.constant)
                continue
            formula = self.total.delta(y)
            if formula is not None:
                parts[:, i] = _by_formula(*formula)
                continue
            by_rung.setdefault(self._ladder.rung_of(float(y.mid())), []).append(i)
        for rung, members in by_rung.items():
            direct, slope, _ = self._evaluate(rung, [thresholds[i] for i in members], enough[members])
            other = direct.one_minus()
            delta, rest = (direct, other) if rung.payoff is Payoff.DELTA else (other, direct)
            with np.errstate(divide="ignore"):
                log_density = np.log(np.maximum(slope, 0.0)) + direct.log_scale
            for row, part in enumerate((*delta.rows(), *rest.rows(), log_density)):
                parts[row, members] = part
        return parts

    def _lower(self, thresholds: list[arb], _: Floats) -> Floats:
        """Rows of a Point at negative thresholds: 1 - delta(y) = e^{y + log E e^{-L}} (1 - delta_reversed(-y))."""
        with precision(BITS):
            found = self._reverse._upper([-y for y in thresholds], np.full(len(thresholds), -math.inf))
            e = np.array([float((y + self._log_ratio).mid()) for y in thresholds])
        delta, rest = mirrored(Point.of_rows(found), e)
        other, unsure = rest.one_minus(), e >= -FORMULA_SLACK  # elsewhere e is certainly negative
        delta.lower[unsure], delta.upper[unsure] = other.lower_floats()[unsure], other.upper_floats()[unsure]
        below = rest.upper_floats() - np.exp(np.minimum(e, 0.0)) * np.exp(found[6])
        return np.stack([*delta.rows(), *rest.rows(), np.log(np.maximum(below, UNDERFLOW))])

    def _evaluate(
        self, rung: LineRung, thresholds: list[arb], enough: Floats | float = -math.inf
    ) -> tuple[Bracket, Floats, list[Method | None]]:
        """By the first method that applies; where its bounds are wide also by the next one, and the narrowest ends win. With the
        slopes, and for each threshold the method of the narrowest bounds, None where that is Markov's inequality. Where log delta
        is below `enough`, wide bounds will do.

        A list of all values is wide only where an atom far heavier than delta lies on the threshold to all digits; a sum that
        smooths such an atom cannot do better and is not asked.
        """
        found: tuple[Bracket, Floats] | None = None
        wide, asked = list(range(len(thresholds))), set[int]()
        answering: list[Method | None] = [None] * len(thresholds)
        has_list = False

        def too_wide(bracket: Bracket, width: float) -> list[int]:
            matters = bracket.log_upper() >= enough if rung.payoff is Payoff.DELTA else True
            return np.flatnonzero(bracket.is_wide(width) & matters).tolist()

        for place in range(_METHODS):
            if place >= _SMOOTHED and has_list and found is not None:
                break
            if place == _FINER and found is not None:
                wide = too_wide(found[0], _ENOUGH[self.total.steps >= _MANY_STEPS])
                if not wide:
                    break
            try:
                method = self._method(rung, place)
                has_list = has_list or (place == 0 and method is not None)
                if method is None or id(method) in asked:
                    continue
                asked.add(id(method))
                bracket, slope = method.evaluate([thresholds[i] for i in wide])
            except (AccuracyError, LatticeTooFineError):
                continue
            bracket = _sane(bracket)
            if found is None:
                found, answering = (bracket, slope), [method] * len(thresholds)
            else:
                own = Bracket(*(row[wide] for row in found[0].rows()))
                stays = own.width() <= bracket.width()
                found[1][wide] = np.where(stays, found[1][wide], slope)
                overwrite(found[0], wide, own.within(bracket))
                for i in np.array(wide)[~stays].tolist():
                    answering[i] = method
            wide = too_wide(found[0], self._wide)
            if not wide:
                return *found, answering
        # still a valid answer: Markov's inequality
        markov, steep = self._markov(rung, [float(y.mid()) for y in thresholds])
        return (markov, steep, answering) if found is None else (found[0].within(markov), found[1], answering)

    def _markov(self, rung: LineRung, thresholds: list[float]) -> tuple[Bracket, Floats]:
        """delta <= e^{K(nu) - nu y} for nu >= 0, 1 - delta the same for nu in [-1, 0], at the rung's tilt and at 0."""
        nu = float(rung.tilt)
        logs = self.total.log_moment_upper(nu) - nu * np.array(thresholds)
        logs = np.minimum(logs + FORMULA_SLACK * (1 + np.abs(nu * np.array(thresholds))), 0.0)
        return Bracket(logs, np.zeros_like(logs), np.ones_like(logs)), np.full_like(logs, abs(nu))

    def _method(self, rung: LineRung, place: int) -> Method | None:
        """One of the methods for the thresholds of a rung, None where it does not apply; the most recent ones are held."""
        makers: list[Callable[[LineRung], Method | None]] = [
            self.enumeration,
            self.conditioning,
            self._cut_at_once,
            self._fine_sum,
            self._quickly_cut,
            self._bands_at_once,
            self._labelled,
            self.grid,
            self.fourier_sum,
            self._cut_after_all,
            self._finer_sum,
            self._bands_after_all,
        ]
        return self._held.get((rung.payoff, rung.index, rung.part, place), lambda: (makers[place](rung),))[0]

    def enumeration(self, rung: LineRung) -> Enumeration | LatticeBins | None:
        """All values listed, if they are few enough."""
        if self._lists is not None:
            return self._lists.under(rung)
        if expected_values(self.total, float(rung.tilt)) > ENUMERATED_UP_TO:
            return None
        parts = list_values(self.total, rung.tilt, self.effort.looks)
        both = halves(parts, self.effort.looks) if parts is not None else None
        return None if both is None else Enumeration(self.total, rung.payoff, rung.tilt, *both)

    def conditioning(self, rung: LineRung) -> Conditioning | None:
        """The coarse parts listed, if there are such and their values are few enough."""
        found = split_coarse(self.total, float(rung.tilt)) if self.depth < _DEEPEST else None
        listed = list_coarse(found[0], rung.tilt) if found is not None else None
        if found is None or listed is None:
            return None
        less = Effort(max(self.effort.terms // 8, 1), max(self.effort.looks // 8, 1))
        rest = LineMethods(found[1], less, self.depth + 1)
        return Conditioning(self.total, found[1], rung.payoff, rung.tilt, listed, rest)

    def cut_steps(self, rung: LineRung) -> CutMethod | None:
        """Steps cut off where one alone decides, if all are of one sampled mechanism."""
        return cut_steps(self.total, rung, self.effort)

    def _cut_at_once(self, rung: LineRung) -> CutMethod | None:
        """The same where records are so rarely sampled that a Fourier sum for all outputs will not do."""
        return self.cut_steps(rung) if rarely_sampled(self.total) else None

    def _quickly_cut(self, rung: LineRung) -> CutMethod | None:
        """The same where there is so much noise that its Fourier sum is short."""
        return self.cut_steps(rung) if self._method(rung, _CUT) is None and has_much_noise(self.total) else None

    def _bands_at_once(self, rung: LineRung) -> BandedMethod | None:
        """Steps in bands where there is so much noise that a label does not keep a tilt away from the largest outputs."""
        return self.banded_steps(rung) if self._bands_first(rung) else None

    def _labelled(self, rung: LineRung) -> LargeSteps | None:
        """Large steps told apart where that is enough: fewer sums than bands need."""
        return None if self._bands_first(rung) else self.large_steps(rung)

    def _cut_after_all(self, rung: LineRung) -> CutMethod | None:
        """Steps cut off where nothing else is narrow, with whatever noise."""
        return None if has_much_noise(self.total) else self.cut_steps(rung)

    def _finer_sum(self, rung: LineRung) -> LineContour | None:
        """The sum with more effort, where sampled steps decay slowly."""
        found = self._method(rung, _FOURIER) if self.total.is_long and not self.depth else None
        if not isinstance(found, LineContour) or found.plan.expected_width <= FINE_SUM:
            return None
        more = Effort(_MORE * self.effort.terms, _MORE * self.effort.looks)
        return LineContour(make_line_plan(self.total, rung, more, self.finest))

    def _bands_after_all(self, rung: LineRung) -> BandedMethod | None:
        """Steps in bands where nothing else is narrow."""
        return None if self._bands_first(rung) else self.banded_steps(rung)

    def _bands_first(self, rung: LineRung) -> bool:
        """Whether losses up to the threshold are nearly exponential in outputs. Heuristic: affects speed and accuracy only."""
        return rung.high <= _SMALL_LOSS and has_much_noise(self.total, _VERY_MUCH)

    def large_steps(self, rung: LineRung, worth: float = WORTH) -> LargeSteps | None:
        """The sum over the number of large steps, if that is expected to cancel less."""
        found = label_steps(self.total, rung, worth)
        if found is None:
            return None
        held: dict[tuple[int, float], LineMethods] = {}

        def given(k: int, finest: float) -> LineMethods:
            if (k, finest) not in held:
                held[k, finest] = LineMethods(found.given(k), self.effort, self.depth + 1, finest)
            return held[k, finest]

        return LargeSteps(found, given)

    def banded_steps(self, rung: LineRung) -> BandedMethod | None:
        """The sum over how many steps are how large, if all are of one sampled mechanism."""
        return banded_steps(self.total, rung, self.effort)

    def fourier_sum(self, rung: LineRung) -> LineContour | None:
        """The smoothed Fourier sum, as fine as the effort allows."""
        if not all(part.loss.has_transform for part in self.total.parts):
            return None
        return LineContour(make_line_plan(self.total, rung, self.effort, self.finest))

    def _fine_sum(self, rung: LineRung) -> Method | None:
        """The same if the effort allows a fine one. Heuristic: affects speed and accuracy only."""
        found = self._method(rung, _FOURIER)
        fine = isinstance(found, LineContour) and found.plan.expected_width <= FINE_SUM
        return found if fine else None

    def grid(self, rung: LineRung) -> GridFFT | None:
        """Losses split between the points of a grid, if all can be listed."""
        most = 1 << (self.effort.terms.bit_length() - 1)
        return GridFFT.plan(self.total, rung, most) if most >= FEWEST_POINTS else None

    def every(self, y: arb) -> Iterator[tuple[str, Callable[[], Bracket | None]]]:
        """The name of every method, and delta at a threshold from 0 on by it from scratch; None where it does not apply."""
        constant = self.total.constant
        if constant is not None:
            yield "the loss is one number", lambda: Bracket(*(np.array([x]) for x in _constant(y, constant)[:3]))
            return
        formula = self.total.delta(y)
        if formula is not None:
            yield "closed form", lambda: Bracket(*(np.array([x]) for x in _by_formula(*formula)[:3]))
        rung = self._ladder.rung_of(float(y.mid()))

        def asked(method: Method | DenseFFT | None) -> Bracket | None:
            if method is None:
                return None
            bracket = method.evaluate([y])[0]
            return bracket if rung.payoff is Payoff.DELTA else bracket.one_minus()

        yield "direct enumeration", lambda: asked(self.enumeration(rung))
        yield "coarse parts listed", lambda: asked(self.conditioning(rung))
        yield "steps cut off", lambda: asked(self.cut_steps(rung))
        yield "sum over numbers of large steps", lambda: asked(self.large_steps(rung, -math.inf))
        yield "sum over numbers of steps in bands", lambda: asked(self.banded_steps(rung))
        yield "smoothed Fourier sum", lambda: asked(self.fourier_sum(rung))
        yield "losses split on a grid", lambda: asked(self.grid(rung))
        yield "dense FFT", lambda: asked(DenseFFT(self.total, rung.payoff, rung.tilt))

    def used(self, y: arb) -> Used:
        """The account of one threshold from 0 on."""
        end = self.total.ends[1]
        if end is not None and bool(y >= end):
            return Used("no finite loss exceeds epsilon", Payoff.DELTA, 0, ())
        if self.total.constant is not None:
            return Used("the loss is one number", Payoff.DELTA, 1, ())
        if self.total.delta(y) is not None:
            return Used("closed form", Payoff.DELTA, 1, ())
        rung = self._ladder.rung_of(float(y.mid()))
        (method,) = self._evaluate(rung, [y])[2]
        found = Used("Markov's inequality", rung.payoff, 1, ()) if method is None else method.used(y)
        return replace(found, rows=(("tilt", about(rung.tilt)), *found.rows))


def _sane(bracket: Bracket) -> Bracket:
    """Bounds that are not numbers or contradict each other, replaced by what is certain of a probability: nothing."""
    fine = (bracket.lower <= bracket.upper) & np.isfinite(bracket.log_scale) & np.isfinite(bracket.upper)
    return Bracket(
        np.where(fine, bracket.log_scale, 0.0), np.where(fine, bracket.lower, 0.0), np.where(fine, bracket.upper, 1.0)
    )


def _constant(y: arb, loss: arb) -> tuple[float, ...]:
    """The rows of a Point where the loss is one number: delta = (1 - e^gap)_+, gap = y - loss, possibly of unknown sign."""
    with precision(BITS):
        gap = y - loss
        delta, rest = (-gap.expm1()).max(arb(0)), gap.exp().min(arb(1))
        ends = [float(x) for b in (delta, rest) for x in (b.lower(), b.upper())]
    low, high = math.nextafter(ends[0], -math.inf), math.nextafter(ends[1], math.inf)
    return (
        *(0.0, max(low, 0.0), high),
        *(0.0, max(math.nextafter(ends[2], 0.0), 0.0), min(math.nextafter(ends[3], 2.0), 1.0)),
        math.log(max(ends[3], 5e-324)) if ends[1] > 0 else -math.inf,
    )


def _by_formula(delta: arb, slope: arb) -> tuple[float, ...]:
    """The rows of a Point where delta is a formula in balls."""
    with precision(BITS):
        brackets = [bracket_of_balls(x) for x in (delta, 1 - delta)]
        return *brackets[0], *brackets[1], float(slope.mid().log().mid())


def threshold(epsilon: Fraction) -> arb:
    """An exact threshold as a ball."""
    with precision(BITS):
        return ball(epsilon)
