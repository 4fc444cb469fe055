"""Steps told apart in bands, by how large they are: where one large output and many middling ones make a sampled loss.

    delta(y) = P(E) - e^y Q(E) + r + sum over counts k of the bands P(k) delta_k(y)

E: some step is called decisive, its loss being above y whatever the others do; so the first two terms are what E adds, but for a
tiny r. Given how many steps are in each band no loss is far from where its tilt expects it: Fourier sums keep all their digits.
Which counts matter is found best first, by bounds that hold for whole sets of them (docs/theory/smooth.md, section 6).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb
from scipy.special import log_ndtr

from exactdp.balls import BITS, ball, precision
from exactdp.brackets import Bracket
from exactdp.cache import Recent
from exactdp.doubles import FORMULA_SLACK, POWER_SLACK, UNDERFLOW, UNIT, Floats
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.tilts import short_double
from exactdp.engine.line.cut_steps import NearThresholds, only_sampled
from exactdp.engine.line.float64 import LineContour
from exactdp.engine.line.plan import make_line_plan
from exactdp.engine.line.protocol import OneByOne, Used
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss, log_largest_gain
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.mechanisms.cut_mixture_loss import CutMixtureLoss
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.step_labels import Band
from exactdp.numerals import at_most

# where bands are, in units of the width of a label where nothing else is said
_BITS, _WIDTH = 12, 0.05  # bits of that width, and what it is, divided by m
_APART, _WIDTHS = 0.7, 5.0  # of neighbouring cuts: logarithms of losses, and the least distance
_MANY, _LOWEST, _MOST_BANDS = 0.05, 1.0, 40  # steps above the lowest cut, where that may be, and how many cuts
_PARTS = 16  # of a width: cuts are multiples
_BEYOND, _BELOW = 12.0, 12.0  # where outputs end beyond the decisive cut, and where a cell is below the decisive bulk
_DECIDED = 32.0  # -log of what decisive steps may fall short, relative to the probability of one large step, about
_STEP, _MOST_CUTS = 2.0, 400  # by which the decisive cut is moved up, and how often

# by which moments things are bounded
_FIRST_ORDER, _NEXT, _HIGHEST, _LEAST_RANGE = 0.25, 1.12, 600.0, 64.0  # of sets of counts: a geometric series of orders
_LEAST_ORDER, _ORDERS, _MANY_ORDERS = 10.0, (0.2, 18.0), 14  # of what decisive steps fall short
_CELLS = 256  # in which outputs around the decisive cut are bounded
_LARGEST = 600.0  # exponent of a double

# when a sum over counts ends
_WORK = 1  # terms of all Fourier sums together, in units of the effort of one contour
_MOST_SETS, _MOST_SUMS = 20_000, 120
_SETTLED = 1e-11  # of the sum: doubt that is left
_TILT_BITS = 6  # so that few tilts are needed by many counts

_NOTHING = Bracket(np.zeros(1), np.zeros(1), np.full(1, math.inf))


@dataclass(frozen=True)
class Counts:
    """A set of counts of all bands: those above `open` have the counts `above` (from the highest one down), band `open` has at
    least `least`, and the others any. With `open` 0 it is a single one: band 0 has all the rest."""

    open: int
    above: tuple[int, ...]
    least: int = 0

    def divided(self) -> tuple[Counts, Counts]:
        """Those with exactly the least count of the open band, and the others."""
        return Counts(self.open - 1, (*self.above, self.least)), Counts(self.open, self.above, self.least + 1)


@dataclass(frozen=True)
class BandedSteps(OneByOne):
    """So many steps of one sampled mechanism with cuts between bands of outputs, for thresholds within a few percent."""

    every: MixtureLoss
    count: int
    cuts: tuple[float, ...]
    width: float
    ends: tuple[float, float]
    """The thresholds for which contours are made."""
    effort: Effort
    _held: Recent[tuple[int, ...], tuple[LineContour | None]] = field(
        default_factory=lambda: Recent(_MOST_SUMS), repr=False, compare=False
    )

    @cached_property
    def bands(self) -> tuple[CutMixtureLoss, ...]:
        """Steps given their band, the lowest one first, outputs cut off where hardly one of them is not decisive."""
        most = _cut_off(self.cuts[-1], self.width)
        lows: list[float | None] = [None, *self.cuts[:-1]]
        return tuple(
            CutMixtureLoss(self.every.mixture, most, Band(low, high, self.width))
            for low, high in zip(lows, self.cuts, strict=True)
        )

    @cached_property
    def orders(self) -> Floats:
        """Orders of moments by which sets of counts are bounded. Heuristic: affects accuracy and speed only."""
        most = _HIGHEST / self.ends[0]
        first = min(_FIRST_ORDER, most / _LEAST_RANGE)
        result: Floats = first * np.power(_NEXT, np.arange(math.ceil(math.log(most / first, _NEXT))))
        return result

    @cached_property
    def _powers(self) -> tuple[Floats, Floats]:
        """log of bounds of E_P w e^{nu L} for each band and order, and of their sums over all bands up to each one."""
        rows = np.array([band.log_powers_upper((self.orders + 1).tolist()) for band in self.bands])
        rows += POWER_SLACK * (1 + np.abs(rows)) + 4 * UNIT * (1 + self.orders) * self.bands[0].reach
        sums = np.logaddexp.accumulate(rows, axis=0)
        return rows, sums + POWER_SLACK * (1 + np.abs(sums))

    def log_bound(self, counts: Counts, y: float) -> tuple[float, int]:
        """log of a bound of what a set of counts adds, and which order has it (Theorem S15)."""
        rows, sums = self._powers
        left, fixed, sizes = self.count, 0.0, np.zeros(len(self.orders))
        exponents = log_largest_gain(self.orders) - self.orders * y
        for i, k in enumerate((*counts.above, counts.least)):
            if k:
                own = rows[len(self.bands) - 1 - i] * k
                exponents = exponents + own
                fixed, sizes = fixed + _log_choices(left, k), sizes + np.abs(own)
                left -= k
        rest = sums[counts.open] * left
        exponents = exponents + rest
        best = int(np.argmin(exponents))
        size = fixed + self.orders[best] * (1 + y) + abs(rest[best]) + sizes[best]
        return fixed + float(exponents[best]) + FORMULA_SLACK * (2 + size), best

    def contour(self, counts: Counts) -> LineContour | None:
        """A Fourier sum given the counts; None where there is none to be had."""
        by_band = self._by_band(counts)
        return self._held.get(by_band, lambda: (self._contour(by_band, counts),))[0]

    def _by_band(self, counts: Counts) -> tuple[int, ...]:
        return self.count - sum(counts.above), *reversed(counts.above)

    def _contour(self, by_band: tuple[int, ...], counts: Counts) -> LineContour | None:
        total = TotalLoss(tuple(Part(band, k) for band, k in zip(self.bands, by_band, strict=True) if k))
        low, high = self.ends
        order = float(self.orders[self.log_bound(counts, (low + high) / 2)[1]])
        tilt = Fraction(short_double(order, _TILT_BITS))
        try:
            return LineContour(make_line_plan(total, LineRung(Payoff.DELTA, 0, tilt, low, high), self.effort))
        except (AccuracyError, LatticeTooFineError):
            return None

    def log_weight(self, counts: Counts) -> arb:
        """log of the probability of these counts."""
        with precision(BITS):
            left, result = self.count, arb(0)
            for band, k in zip(reversed(self.bands), (*counts.above, self.count - sum(counts.above)), strict=True):
                if k:
                    result += arb(math.comb(left, k)).log() + k * band.log_share
                    left -= k
            return result

    @cached_property
    def _decisive(self) -> tuple[arb, arb]:
        """P(E) and Q(E)."""
        mixture, last = self.every.mixture, self.bands[-1]
        with precision(BITS):
            root, cut = (2 * (1 + arb(self.width) ** 2)).sqrt(), arb(self.cuts[-1])
            parts = [(ball(p), ball(s).sqrt()) for p, s in zip(mixture.weights, mixture.squares, strict=True)]
            # outputs that are cut off count as decisive, which the label of so large ones is but for this much
            short_of = float(log_ndtr(-(last.cut.cut - self.cuts[-1]) / self.width)) * (1 - POWER_SLACK) + POWER_SLACK
            rest = arb(0, 1) * arb(short_of).exp()
            mixed = sum((p * ((cut - m) / root).erfc() / 2 for p, m in parts), arb(0)) + rest * last.beyond[0]
            other = (cut / root).erfc() / 2 + rest * last.beyond[1]
            return (-((-mixed).log1p() * self.count).expm1(), -((-other).log1p() * self.count).expm1())

    def log_short_of(self, y: float) -> float:
        """log of a bound of r."""
        return _log_short_of(self.every, self.count, (self.cuts[-1], self.width), y)

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """The sum over all counts that matter."""
        found = self._sum(y)
        return found.log_scale, found.lower, found.upper, found.slope

    def _sum(self, y: arb) -> _Sum:
        """Sets of counts are divided, the one with the largest bound first, and single ones are summed."""
        at = float(y.mid())
        found = self._decided(y, max(self.log_bound(counts, at)[0] for counts in self._likely))
        waiting, looked = [(-self.log_bound(self._all, at)[0], 0, self._all)], 1
        while (
            waiting
            and looked < _MOST_SETS
            and len(found.contours) < _MOST_SUMS
            and found.cost <= _WORK * self.effort.terms
        ):
            most = _exp(-waiting[0][0] - found.log_scale)
            if most * len(waiting) <= _SETTLED * found.lower:
                break
            counts = heapq.heappop(waiting)[2]
            if not counts.open:
                found = found.plus(*self._term(counts, y, found.log_scale, most))
                continue
            left = self.count - sum(counts.above)
            for part in counts.divided() if counts.least < left else counts.divided()[:1]:
                heapq.heappush(waiting, (-self.log_bound(part, at)[0], looked, part))
                looked += 1
        doubt = [_exp(-bound - found.log_scale) for bound, _, _ in waiting]
        upper = found.upper + math.fsum(doubt) + _exp(self.log_short_of(at) - found.log_scale)
        n = (looked + 8) * UNIT + FORMULA_SLACK
        return replace(found, lower=found.lower * (1 - n), upper=upper * (1 + n) + UNDERFLOW)

    def _decided(self, y: arb, scale: float) -> _Sum:
        """What decisive steps add, but for r."""
        with precision(BITS):
            some, other = self._decisive
            growth = y.exp() * arb(-scale).exp()
            added = some * arb(-scale).exp() - growth * other
            low, high = (
                math.nextafter(float(x), end) for x, end in ((added.lower(), -math.inf), (added.upper(), math.inf))
            )
            return _Sum(scale, max(low, 0.0), max(high, 0.0), float((growth * other).mid()), ())

    @cached_property
    def _all(self) -> Counts:
        return Counts(len(self.bands) - 1, ())

    @cached_property
    def _likely(self) -> list[Counts]:
        """No step above the lowest cut, or one."""
        many = len(self.bands) - 1
        return [Counts(0, tuple(int(i == j) for i in range(many))) for j in range(many + 1)]

    def _term(
        self, counts: Counts, y: arb, scale: float, most: float
    ) -> tuple[float, float, float, tuple[LineContour, ...]]:
        """Bounds of what single counts add, and its slope, in units of e^scale; only `most` where a Fourier sum says nothing."""
        contour = self.contour(counts)
        try:
            bracket, slope = contour.evaluate([y]) if contour is not None else (_NOTHING, np.zeros(1))
        except AccuracyError:
            bracket, slope = _NOTHING, np.zeros(1)
        low, high = float(bracket.lower[0]), float(bracket.upper[0])
        used = () if contour is None else (contour,)
        if not (0 <= low <= high < math.inf and math.isfinite(bracket.log_scale[0])):
            return 0.0, most, 0.0, used
        with precision(BITS):
            weight = (self.log_weight(counts) + arb(float(bracket.log_scale[0])) - arb(scale)).exp()
            less, more = math.nextafter(float(weight.lower()), 0.0), math.nextafter(float(weight.upper()), math.inf)
        low, high = max(less, 0.0) * low * (1 - 4 * UNIT), more * high * (1 + 4 * UNIT)
        low = max(math.nextafter(low, -math.inf), 0.0)  # it may have been rounded up where doubles end
        return low, min(high, most), float(weight.mid()) * float(slope[0]), used

    def used(self, y: arb) -> Used:
        """Which bands there are, how likely decisive steps are, and what was summed."""
        contours = self._sum(y).contours
        with precision(BITS):
            some = float(self._decisive[0].upper()) * (1 + 4 * UNIT)
        rows = (
            ("bands of outputs", f"{len(self.cuts)}, cut from {self.cuts[0]:.3g} deviations of the noise on"),
            ("one step decides", f"from about {self.cuts[-1]:.3g} deviations on"),
            ("probability of a decisive step", at_most(some, 2)),
            ("counts of bands summed", f"{len(contours):,}"),
        )
        nodes = sum(len(contour.plan.kept) for contour in contours)
        return Used("sum over numbers of steps in bands", Payoff.DELTA, nodes, rows)


@dataclass(frozen=True)
class _Sum:
    """Bounds of what has been summed so far, and its slope, in units of e^log_scale, with the contours that were used."""

    log_scale: float
    lower: float
    upper: float
    slope: float
    contours: tuple[LineContour, ...]

    @property
    def cost(self) -> int:
        """Terms that were evaluated."""
        return sum(len(contour.plan.kept) * contour.plan.view.cost for contour in self.contours)

    def plus(self, low: float, high: float, slope: float, contours: tuple[LineContour, ...]) -> _Sum:
        """With one more term."""
        return _Sum(self.log_scale, self.lower + low, self.upper + high, self.slope + slope, self.contours + contours)


def banded_steps(total: TotalLoss, rung: LineRung, effort: Effort) -> BandedMethod | None:
    """Steps in bands for the thresholds of a rung, if they are of one sampled mechanism: as `cut_steps`."""
    loss = only_sampled(total, rung)
    return None if loss is None else BandedMethod(loss, total.parts[0].count, effort)


@dataclass(frozen=True)
class BandedMethod(NearThresholds[BandedSteps]):
    """Bands for the thresholds of a rung."""

    def plan(self, low: float, high: float, place: int) -> BandedSteps:
        """Cuts between bands."""
        width = short_double(_WIDTH / self.loss.mixture.widest, _BITS)
        return BandedSteps(
            self.loss, self.count, _cuts(self.loss, self.count, high, width), width, (low, high), self.effort
        )


def _log_choices(n: int, k: int) -> float:
    return math.log(math.comb(n, k))


def _exp(x: float) -> float:
    return math.exp(x) * (1 + FORMULA_SLACK) if x < _LARGEST else math.inf


def _log_short_of(every: MixtureLoss, count: int, label: tuple[float, float], y: float) -> float:
    """log of a bound of r: n e^y c e^{t y} E_Q[f^{-t} w] G(-t)^{n - 1}, w the label of decisive steps (Theorem S15)."""
    (cut, width), spread = label, 1 + label[1] ** 2
    first = cut / spread - _BELOW * width / math.sqrt(spread)
    x = np.append(np.linspace(first, cut, _CELLS), np.linspace(cut, cut + 8, _CELLS // 4)[1:])
    losses = every.mixture.losses(x).real
    masses = log_ndtr(-x)  # of all outputs above; in a cell the density is largest at its lower end, if that is above 0
    if first > 0:
        masses[:-1] = np.minimum(masses[:-1], np.log(np.diff(x)) - 0.5 * x[:-1] ** 2 - 0.5 * math.log(2 * math.pi))
    label_at = np.append(x[1:], math.inf)  # the upper end of a cell; from where outputs are cut off they all decide
    labelled = masses + np.where(label_at < _cut_off(cut, width), log_ndtr((label_at - cut) / width), 0.0)
    least, below = float(every.mixture.floats[0][0]), Band(cut, math.inf, width).log_mass_below(first)
    best = math.inf
    deviation = math.sqrt(count * every.mean_variance(-1.0)[1])
    for t in np.geomspace(min(_LEAST_ORDER / y, _ORDERS[0] / deviation), _ORDERS[1] / deviation, _MANY_ORDERS).tolist():
        inside = float(np.logaddexp.reduce(np.append(labelled - t * losses, below - t * least)))
        moment = (count - 1) * every.log_moment_upper(-1 - t) if count > 1 else 0.0
        gain = float(log_largest_gain(t))
        size = abs(inside) + abs(moment) + (1 + t) * (y + 1) + float(np.abs(x).max()) ** 2 + abs(gain)
        best = min(best, math.log(count) + (1 + t) * y + gain + inside + moment + FORMULA_SLACK * size)
    return best


def _decisive_cut(loss: MixtureLoss, count: int, y: float, width: float) -> float:
    """From where on one output decides, nearly always. Heuristic: affects accuracy and speed only."""
    logs, m = loss.mixture.floats
    at = loss.output_at(y)
    wanted = math.log(count) + float(np.logaddexp.reduce(logs + log_ndtr(m - at))) - _DECIDED
    for _ in range(_MOST_CUTS):
        if _log_short_of(loss, count, (at, width), y) <= wanted:
            break
        at += _STEP * width
    return at


def _cuts(loss: MixtureLoss, count: int, y: float, width: float) -> tuple[float, ...]:
    """Cuts between bands, from where few steps are to where one decides. Heuristic: affects accuracy and speed only."""
    at = _decisive_cut(loss, count, y, width)
    cuts = [_placed(at, width)]
    while len(cuts) < _MOST_BANDS:
        there = float(loss.mixture.losses(np.array([at])).real[0])
        at = min(loss.output_at(there * math.exp(-_APART)), at - _WIDTHS * width) if there > 0 else -math.inf
        if at < _LOWEST or count * float(np.exp(log_ndtr(-at))) > _MANY:
            break
        cuts.append(_placed(at, width))
    return tuple(reversed(cuts))


def _placed(at: float, width: float) -> float:
    """A multiple of a part of the width, which is exact, so that cuts stay apart."""
    return round(at / width * _PARTS) * (width / _PARTS)


def _cut_off(cut: float, width: float) -> float:
    """From where on all outputs are decisive."""
    return cut + _BEYOND * width
