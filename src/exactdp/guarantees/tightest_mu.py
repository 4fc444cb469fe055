"""Gaussian DP: the tightest mu that a composition satisfies, with proof.

mu-GDP means delta(epsilon) <= delta_mu(epsilon) for every real epsilon, delta_mu being that of the continuous Gaussian; by
symmetry epsilon >= 0 suffices. At one epsilon a violation is a fact; that there is none anywhere is proved interval by
interval: in x = e^epsilon both sides are convex, so between two points delta is below its chord and delta_mu above each of its
tangents. Each interval so needs a mu of its own, which the slope of its chord gives; the interval that needs the largest is
halved until that is close to a mu that is violated. Gaussian noise that is close to the continuous one needs no chords
(near_gaussian.py), and beyond the last interval that or a tail bound decides (docs/theory/conversions.md, section 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, pairwise
from typing import TYPE_CHECKING

import numpy as np

from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.doubles import Floats
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.chords import Chords, Interval, violates
from exactdp.guarantees.near_gaussian import has_gaussians_only, near_gaussian, tail_holds
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.notebooks import repr_html
from exactdp.widths import warn_if_wide

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition

_FARTHEST = 600
_RELATIVE = Fraction(9, 10**7)  # accuracy of mu that is aimed at
_COARSE = 32  # intervals to begin with, and _TERMS_PER_INTERVAL of the effort for each
_FEWEST = 3
_TERMS_PER_INTERVAL = 3000
_TERMS_PER_POINT = 300  # of the effort: by default 4000 epsilons are looked at
_TERMS_IN_BALLS = 1500  # the same where float64 cannot tell 1 - delta: 800 of them
_HARDLY_ANY = Fraction(1, 20)  # a sigma2 below it is hardly any noise: 1 - delta is below what float64 can tell
_SHORTEST = 1e-12
_LOOKED_AT = 3  # intervals of each round in which a violation is looked for
_COVERED_UP_TO = 2  # rounds in which intervals are tried without chords
_MOST_PIECES = 32
_ROUNDINGS = (Fraction(0), *(Fraction(4**i, 10**13) for i in range(8)))  # by which mu may be raised
_FOR_ROUNDING = Fraction(2, 10**9)  # of mu: more than all of them
_MORE = 4  # times as many epsilons where one mu is asked for: it is tried a few times at most
_HALVED = 1.25  # times as many pieces as would do, at least, where intervals are halved: 1.4 times and more were seen
_DEEPEST = 30  # halvings of an interval that no tangent covers
_OUT_OF_REACH = "No mu could be proved for this composition. Raise the work limit with within(max_seconds=...)."

_NO_TAIL = (
    "No mu is proved for Skellam noise, whose losses have no end and of which no zCDP parameter is known. Use delta_bounds or "
    "beta_bounds instead."
)


@steady
@dataclass(frozen=True)
class GaussianDP:
    """Bounds of the tightest mu: at `lower` mu-GDP is proved not to hold, at `upper` that it does."""

    _repr_html_ = repr_html

    lower: float
    upper: float
    epsilon: float
    """Where the lower bound was found; if that is sqrt(2 rho), which no one epsilon shows, where the largest mu seemed needed."""

    def __str__(self) -> str:
        bounds = str(Bounds(self.lower, self.upper))
        return f"mu-GDP, tightest mu {bounds}: proved to hold at the upper end and not to hold at the lower one"


@steady
def tightest_mu(composition: Composition) -> GaussianDP:
    """Bounds of the least mu for which it is mu-GDP, less than 1e-6 apart in relative terms.

    Where that takes more than the work limit allows (`Composition.within`) they are wider, still proved, and an AccuracyWarning
    says so.
    """
    rho = composition.rho
    if composition.delta_bounds(math.inf).upper > 0:
        raise InvalidInputError(
            "A composition whose loss can be infinite satisfies mu-GDP for no mu. Use delta_bounds instead."
        )
    if all(isinstance(m, Gaussian) for m in composition.mechanisms):  # exactly sqrt(2 rho)
        return GaussianDP(composition.mu * (1 - 2.0**-50), composition.mu * (1 + 2.0**-50), 0.0)
    if rho == 0:
        return GaussianDP(0.0, math.ulp(0.0), 0.0)
    found = _MuSearch(composition).bounds()
    warn_if_wide("mu", [found.upper / found.lower - 1 if found.lower else math.inf])
    return found


def is_near_gaussian(composition: Composition, mu: Fraction) -> bool:
    """Proved: mu-GDP, by the theorem near the Gaussian alone. In no time, and it says no where that theorem does not reach."""
    return has_gaussians_only(composition) and _MuSearch(composition).is_covered(mu)


def is_gdp(composition: Composition, mu: Fraction) -> bool:
    """Proved: mu-GDP. By the same chords as `tightest_mu`, as fine as this mu needs them; not proved says nothing."""
    return _MuSearch(composition, mu * (1 - _FOR_ROUNDING)).proves(mu)


def is_too_small(composition: Composition, mu: Fraction) -> bool:
    """Proved: no mu-GDP, because the Renyi divergence of order 2, which is 2 rho, is mu^2 at most under mu-GDP."""
    return has_gaussians_only(composition) and bool(mu * mu < 2 * composition.rho)


def least_mu(composition: Composition) -> float:
    """The largest double below sqrt(2 rho) that is proved to be too small; 0 where nothing is known."""
    found = composition.mu if has_gaussians_only(composition) else 0.0
    while found and not is_too_small(composition, Fraction(found)):
        found = math.nextafter(found, 0.0)
    return found


def _terms_per_point(composition: Composition) -> int:
    """What one epsilon costs. Heuristic: affects speed and width only."""
    noise = [m.sigma2 for m in composition.mechanisms if isinstance(m, DiscreteGaussian)]
    return _TERMS_IN_BALLS if noise and min(noise) < _HARDLY_ANY else _TERMS_PER_POINT


class _MuSearch:
    """Upper bounds from chords and tails, lower bounds from violations, until they meet or the work limit is reached."""

    def __init__(self, composition: Composition, aim: Fraction | None = None) -> None:
        self._composition = composition
        self._aim = aim
        self._rho = Fraction(composition.rho) if math.isfinite(composition.rho) else None
        terms = composition.effort.terms
        self._coarse = min(max(terms // _TERMS_PER_INTERVAL, _FEWEST), _COARSE)
        self._chords = Chords(composition, max(terms // _terms_per_point(composition), 4 * self._coarse))
        if aim is not None:
            self._chords.most *= _MORE
        self._near = near_gaussian(composition)
        end = float(composition.epsilon_bounds(0).upper)
        self._end = Fraction(end) if math.isfinite(end) else None
        self._best = (0.0, 0.0)  # the largest mu that seems to be violated, and where

    def bounds(self) -> GaussianDP:
        """The two bounds."""
        first = self._end
        if first is None and self._rho is not None:
            first = self._rho + 2 * Fraction(self._composition.mu)
        if first is None:
            raise AccuracyError(_NO_TAIL)
        self._look_at([first * i / self._coarse for i in range(self._coarse)])
        for exponent in range(14):
            relative = _RELATIVE * 4**exponent
            last = self._last(self._goal(relative))
            if last is not None:
                upper = self._proved(last, relative)
                lower, where = self._violated()
                return GaussianDP(lower, math.nextafter(float(upper), math.inf), where)
        raise AccuracyError(_OUT_OF_REACH)

    def proves(self, mu: Fraction) -> bool:
        """Whether mu is proved, by intervals that need no more than the aim; one epsilon that needs more ends it."""
        first = self._end if self._end is not None else None if self._rho is None else self._rho
        last = None if first is None else self._last(mu)
        if first is None or last is None:
            return False
        self._look_at([first * i / self._coarse for i in range(self._coarse)])
        try:
            return self._proved(last, Fraction(0)) <= mu
        except AccuracyError:
            return False

    def is_covered(self, mu: Fraction) -> bool:
        """Whether the theorem near the Gaussian proves this mu at every epsilon."""
        last = self._last(mu)
        return last is not None and all(self._covered(mu, *pair) for pair in _divided((Fraction(0), last), _COARSE))

    def _goal(self, relative: Fraction) -> Fraction:
        """The mu that is to be proved: a little above one that is violated, and where losses are unbounded above sqrt(2 rho)."""
        if self._aim is not None:
            return self._aim
        base = self._best[0]
        if self._end is None and self._rho is not None:
            base = max(base, self._composition.mu)
        return Fraction(base) * (1 + relative)

    def _last(self, mu: Fraction) -> Fraction | None:
        """From where on delta_mu is proved to be above; None if that is too far away."""
        if self._end is not None or self._rho is None:
            return self._end
        away = Fraction(self._composition.mu) / 4
        while away < _FARTHEST * (1 + self._rho):
            last = self._rho + away
            if self._covered(mu, last, None) or tail_holds(self._rho, mu, last):
                return last
            away = Fraction(float(away * 5 / 4))
        return None

    def _covered(self, mu: Fraction, low: Fraction, high: Fraction | None) -> bool:
        return self._near is not None and self._near.covers(mu, low, high)

    def _look_at(self, epsilons: list[Fraction]) -> None:
        """Ask for the profile there, and remember where the largest mu would be needed."""
        self._chords.ask(epsilons)
        self._best = max([self._best, *((self._chords.mu_at(e), float(e)) for e in epsilons)])

    def _proved(self, last: Fraction, relative: Fraction) -> Fraction:
        """A mu proved up to `last`: intervals are divided, those that need the largest first, while the work limit allows it."""
        waiting, settled = self._intervals(last), []
        for attempt in count():
            if attempt < _COVERED_UP_TO:  # shorter intervals would gain nothing
                goal = self._goal(relative)
                waiting = [pair for pair in waiting if not self._covered(goal, *pair)]
            if not waiting:
                break
            self._chords.ask(e for pair in waiting for e in pair)
            needed, z = self._chords.needs(waiting, float(self._goal(relative)))
            self._look_at(self._touching(waiting, needed, z))
            goal = self._goal(relative)
            if self._aim is not None and (self._best[0] > goal or (attempt == 0 and self._is_far(waiting, needed))):
                raise AccuracyError(_OUT_OF_REACH)
            room = self._chords.most - len(self._chords.known)
            divided: list[Interval] = []
            for i in np.argsort(-needed).tolist():
                pieces = _pieces(waiting[i], float(needed[i]), float(goal))
                if needed[i] > goal and pieces <= room and _is_long(*waiting[i]):
                    room -= pieces - 1
                    divided += _divided(waiting[i], pieces)
                else:
                    settled.append((float(needed[i]), float(z[i]), waiting[i]))
            waiting = divided
        least = max((n for n, _, _ in settled), default=0.0)
        if not math.isfinite(least) or (self._aim is not None and least > self._aim):
            raise AccuracyError(_OUT_OF_REACH)
        return self._checked(max(self._goal(relative), Fraction(least)), settled)

    def _is_far(self, intervals: list[Interval], needed: Floats) -> bool:
        """Whether pieces as short as the aim needs them would be more than the work limit allows: by the end of each interval
        that leaves more room. Heuristic: affects speed, and whether there is a proof, only."""
        if len(intervals) > self._coarse:  # between the values of the loss: as short as they need be
            return False
        aim, pieces = float(self._goal(Fraction(0))), 0.0
        for pair, own in zip(intervals, needed.tolist(), strict=True):
            room = aim - min(map(self._chords.mu_at, pair))
            if own > aim and room > 0:
                pieces += _in_gaussian_lengths(float(pair[1] - pair[0]), aim, room)
        return _HALVED * pieces > self._chords.most

    def _touching(self, intervals: list[Interval], needed: Floats, z: Floats) -> list[Fraction]:
        """Where the intervals that need the largest mu touch delta_mu: there violations are looked for."""
        result = []
        for i in np.argsort(-needed)[:_LOOKED_AT].tolist():
            low, high = intervals[i]
            result.append(_parallel(float(needed[i]), float(z[i]), low, high))
        return result

    def _checked(self, mu: Fraction, settled: list[tuple[float, float, Interval]]) -> Fraction:
        """The same mu, or one larger by a few roundings, at which every chord is proved to be below.

        Where a chord falls from nearly 1 to nearly 0 no tangent with a double's slope is above it: it is divided.
        """
        waiting = [(z, pair, 0) for _, z, pair in reversed(settled)]
        while waiting:
            z, (low, high), depth = waiting.pop()
            for step in _ROUNDINGS:
                raised = mu * (1 + step)
                if self._chords.below(raised, (low, high), _parallel(float(raised), z, low, high)):
                    mu = raised
                    break
            else:
                if depth == _DEEPEST:
                    raise AccuracyError(_OUT_OF_REACH)
                halves = _divided((low, high), 2)
                self._chords.ask([halves[0][1]])
                waiting += [
                    (float(z), pair, depth + 1)
                    for z, pair in zip(self._chords.needs(halves, math.inf)[1], halves, strict=True)
                ]
        return mu

    def _intervals(self, last: Fraction) -> list[Interval]:
        """To begin with: between the values of the loss where they are few, so that every chord is exact."""
        step = self._composition.step
        if step is not None and last <= step * (self._chords.most * 7 // 8) and self._rho is not None:
            first = math.floor(-self._rho / step) + 1
            points = [self._rho + step * t for t in range(first, math.ceil((last - self._rho) / step))]
        else:
            points = [last * i / self._coarse for i in range(1, self._coarse)]
        return list(pairwise(sorted({Fraction(0), *points, last})))

    def _violated(self) -> tuple[float, float]:
        """A mu that is proved to be violated, as large as was found and no less than what is too small anyway, and where."""
        (mu, where), back = self._best, 1e-12
        while mu > 1e-300 and not violates(self._composition, Fraction(mu), Fraction(where)):
            mu, back = mu * (1 - min(back, 0.5)), 4 * back
        return max(mu if mu > 1e-300 else 0.0, least_mu(self._composition)), where


def _pieces(pair: Interval, needed: float, goal: float) -> int:
    """Into how many pieces to divide an interval: that of a Gaussian needs about length^2 / (8 mu) more than its points.

    Heuristic: affects speed only.
    """
    length = float(pair[1] - pair[0])
    room = goal - (needed - length**2 / (8 * needed)) if needed > 0 else 0.0
    return (
        min(max(math.ceil(_in_gaussian_lengths(length, needed, room)), 2), _MOST_PIECES) if 0 < room < math.inf else 2
    )


def _in_gaussian_lengths(length: float, mu: float, room: float) -> float:
    """The length in units of that of a chord which needs so much more than its points."""
    return length / math.sqrt(8 * mu * room)


def _divided(pair: Interval, pieces: int) -> list[Interval]:
    low, high = pair
    return list(pairwise(low + (high - low) * i / pieces for i in range(pieces + 1)))


def _is_long(low: Fraction, high: Fraction) -> bool:
    return float(high - low) > _SHORTEST * float(1 + high)


def _parallel(mu: float, z: float, low: Fraction, high: Fraction) -> Fraction:
    """The epsilon of an interval at which the slope of delta_mu is closest to -alpha = -Phi(-z)."""
    at = mu * (z - mu / 2)
    return min(max(Fraction(at), low), high) if math.isfinite(at) else high
