"""epsilon(delta), the infimum of all real epsilon with delta(epsilon) <= delta: searched freely, both ends proved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from exactdp.accounting.privacy_profile import profile
from exactdp.brackets import Point, PointAt
from exactdp.doubles import EXP_SLACK, UNDERFLOW
from exactdp.engine.lattice.accuracy import RESORT_WIDTH, Resort
from exactdp.engine.lattice.contours import Contours
from exactdp.errors import AccuracyError
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.numbers import log_rational, rational, shown

_SEARCH_STEPS = 200
_CONVERGED = 3e-13  # a miss of the target, relative to 1 + its size, at which Newton's method stops
_NEGLIGIBLE_MISS = 0.1  # of a miss, relative to the doubt about log delta: so little needs no second look
_DEEPEST = 50.0  # a lower bound of log delta counts as at most so far below the upper one
_STEEPEST, _FLATTEST = 700.0, 1e-290  # the logarithm of the largest slope of log delta, and the smallest slope
_NARROW = 1e-10
_OUTWARD = 1e-9  # how far ends that a formula gives are moved outward: far beyond its rounding
_START_TOLERANCE = 1e-9


def epsilon_bracket(contours: Contours, delta: Fraction) -> tuple[float, float]:
    """Two doubles with lower <= epsilon(delta) <= upper, for 0 < delta < 1.

    Guarantee: delta(upper) <= delta and delta(lower) >= delta by certified evaluations, whether the doubles are read as
    binary numbers or as the decimals they print as (Theorem 5 of docs/theory/engine.md).
    """
    r, log_delta = contours.lattice.r, log_rational(delta)
    # delta(epsilon) is at most exp(-(epsilon - R/2)^2 / (2 R)) from R/2 on (Lemma 1)
    highest = (r / 2 + math.sqrt(-2 * r * min(log_delta, 0.0))) * (1 + _OUTWARD)
    lowest = moved_down(log_rational(1 - delta))  # delta(epsilon) is at least 1 - e^epsilon
    profiles = [partial(profile, contours, resort=resort) for resort in Resort]
    return EpsilonSearch(profiles, delta, gaussian_start(r, delta), highest, lowest).bracket()


class EpsilonSearch:
    """Root finding for delta(epsilon) = delta: searches freely, and proves both ends by certified evaluations.

    For delta above 1/2 the unknown is 1 - delta, so that neither side is ever a difference from 1. `start` is where to look
    first; `lowest` and `highest` are proved to enclose epsilon(delta). `profiles` are three sources of certified points, the
    later the narrower and slower: one to search with, one to bisect with, one to prove the ends with.
    """

    def __init__(
        self, profiles: Sequence[PointAt], delta: Fraction, start: float, highest: float, lowest: float
    ) -> None:
        self._quick, self._narrow, self._best = profiles
        self._start, self._outermost = start, (lowest, highest)
        self._delta = delta
        self._small = delta <= Fraction(1, 2)
        self._target = log_rational(delta if self._small else 1 - delta)
        self._error = EXP_SLACK * (1 + abs(self._target))

    def bracket(self) -> tuple[float, float]:
        """Two doubles around epsilon(delta), both ends proved."""
        outermost = self._outermost
        estimate, step = self._newton(self._start, *outermost, eager=True)
        lower, upper = estimate - step, estimate + step
        if outermost[0] < lower and upper < outermost[1] and 2 * step <= _NARROW * (1 + abs(estimate)):
            too_large, small_enough = self._proved([lower, upper], self._best)
            if too_large[0] and small_enough[1]:
                return lower, upper
        estimate, step = self._newton(estimate, *outermost, eager=False)
        below = above = step
        for _ in range(_SEARCH_STEPS):
            ends = [max(estimate - below, outermost[0]), min(estimate + above, outermost[1])]
            too_large, small_enough = self._proved(ends, self._best)
            done = (too_large[0] or ends[0] == outermost[0], small_enough[1] or ends[1] == outermost[1])
            if all(done):
                return self._narrowed(ends[0], estimate, ends[1])
            below *= 1 if done[0] else 2
            above *= 1 if done[1] else 2
        raise AccuracyError(f"No bounds of epsilon could be proved at delta = {shown(self._delta)}.")

    def _narrowed(self, lower: float, estimate: float, upper: float) -> tuple[float, float]:
        """Proved ends moved towards the estimate by bisection, where the first steps were too long (delta has plateaus)."""
        goal = _NARROW * (1 + abs(estimate))
        inner = [estimate, estimate]
        while max(inner[0] - lower, upper - inner[1]) > goal:
            middle = [(lower + inner[0]) / 2, (inner[1] + upper) / 2]
            too_large, small_enough = self._proved(middle, self._narrow)
            lower, inner[0] = (middle[0], inner[0]) if too_large[0] else (lower, middle[0])
            upper, inner[1] = (middle[1], inner[1]) if small_enough[1] else (upper, middle[1])
        return lower, upper

    def _proved(self, ends: list[float], profile: PointAt) -> tuple[list[bool], list[bool]]:
        """For each double: is delta(e) >= delta proved, and is delta(e) <= delta proved, in both readings of e?"""
        readings = [both_readings(e) for e in ends]
        point = profile([r for pair in readings for r in pair])
        bracket = point.delta if self._small else point.rest
        low, high = bracket.log_lower().reshape(-1, 2), bracket.log_upper().reshape(-1, 2)
        at_least = np.all(low >= self._target + self._error, axis=1)
        at_most = np.all(high <= self._target - self._error, axis=1)
        proved = ([bool(x) for x in at_least], [bool(x) for x in at_most])
        return proved if self._small else (proved[1], proved[0])

    def _newton(self, start: float, low: float, high: float, eager: bool) -> tuple[float, float]:
        """A good estimate of the root, and a step from it that is likely to suffice for a proof. Heuristic: width only.

        Uses the best profile only where the quick one cannot tell on which side of the root it is. If `eager`, the last move is
        trusted without a look at where it leads.
        """
        epsilon, step = min(max(start, low), high), 1.0
        for attempt in range(_SEARCH_STEPS):
            point, bottom, top = self._log_bounds(epsilon, self._quick)
            if top - bottom > RESORT_WIDTH and bottom <= self._target <= top:
                point, bottom, top = self._log_bounds(epsilon, self._best)
            if top == -math.inf:  # from the greatest loss on delta is 0, and has no logarithm to step by
                high, candidate = epsilon, (low + epsilon) / 2
                if candidate in (low, epsilon):
                    break
                epsilon = candidate
                continue
            move, step, going = newton_step(epsilon, (bottom, top), point.log_density[0], self._target, self._error)
            if not going:
                break
            move = move if self._small else -move  # 1 - delta rises with epsilon
            low, high = (epsilon, high) if move > 0 else (low, epsilon)
            candidate = float(epsilon + move)
            if not low < candidate < high or attempt % 6 == 5:
                candidate = (low + high) / 2
            elif eager and (last := self._step_after(epsilon, float(move), bottom, top)) is not None:
                return candidate, last
            if candidate in (epsilon, low, high):
                break
            epsilon = candidate
        return epsilon, min(float(step), 1.0 + abs(epsilon))

    def _step_after(self, epsilon: float, move: float, bottom: float, top: float) -> float | None:
        """A step for the proof around epsilon + move, where that is as good an estimate as looking there again would give.

        Between two values of the loss delta is a constant less a multiple of e^epsilon, so what a move of Newton's method for
        log delta misses is about slope (1 + slope) move^2. Heuristic: width only.
        """
        slope = abs((bottom + top) / 2 - self._target) / abs(move)
        gap, missed = top - bottom + 2 * self._error, slope * (1 + slope) * move * move
        if not missed <= _NEGLIGIBLE_MISS * gap:
            return None
        return min(1.5 * (gap + missed) / slope + 4 * math.ulp(epsilon), 1.0 + abs(epsilon))

    def _log_bounds(self, epsilon: float, profile: PointAt) -> tuple[Point, float, float]:
        """The point at a double, with the bounds of log delta (or of log(1 - delta) if delta is above 1/2)."""
        point = profile([Fraction(epsilon)])
        bracket = point.delta if self._small else point.rest
        return point, float(bracket.log_lower()[0]), float(bracket.log_upper()[0])


def newton_step(
    epsilon: Any, log_bounds: tuple[Any, Any], log_density: Any, target: Any, error: Any
) -> tuple[Any, Any, Any]:
    """Newton's step for log delta = target (known within `error`) from bounds of log delta; numbers, or arrays elementwise.

    The move, then a step from here that is likely to suffice for a proof, and whether to go on. Heuristic: width only.
    """
    bottom, top = log_bounds
    value = (np.maximum(bottom, top - _DEEPEST) + top) / 2
    slope = np.maximum(np.exp(np.minimum(log_density - value, _STEEPEST)), _FLATTEST)
    miss = value - target
    gap = top - bottom + np.abs(miss) + 2 * error
    going = (np.abs(miss) >= _CONVERGED * (1 + np.abs(target))) & ((bottom > target) | (target > top))
    return miss / slope, 1.5 * gap / slope + 4 * np.spacing(np.abs(epsilon)), going


def moved_down(lowest: float) -> float:
    """A lower end that a formula gives, moved down beyond its rounding."""
    return lowest - _OUTWARD * (UNDERFLOW + abs(lowest))


def both_readings(epsilon: float) -> tuple[Fraction, Fraction]:
    """A double as the binary number it is and as the decimal it prints as."""
    return Fraction(epsilon), rational(epsilon, "epsilon")


def gaussian_start(spread: float, delta: Fraction) -> float:
    """epsilon(delta) of the continuous Gaussian with mu^2 = spread. Estimate: a starting point only."""
    mu = math.sqrt(spread)
    target = log_rational(delta)
    if delta > Fraction(1, 2):
        at_zero, log_rest = gaussian_logs(mu, 0.0)
        if target >= at_zero:
            return min(0.0, log_rational(1 - delta) - log_rest)
    epsilon = spread / 2 + mu * math.sqrt(max(-2 * target, 0.0))
    for _ in range(40):
        value = gaussian_logs(mu, epsilon)[0]
        slope = math.exp(epsilon + float(log_ndtr(-epsilon / mu - mu / 2)) - value)
        step = (value - target) / max(slope, UNDERFLOW)
        epsilon = max(epsilon + max(-mu - 1, min(mu + 1, step)), 0.0)
        if abs(step) < _START_TOLERANCE * (1 + epsilon):
            break
    return epsilon
