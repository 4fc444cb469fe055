"""epsilon(delta), the inverse of the privacy profile: searched freely, both ends proved."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr

from exactdp.accounting.privacy_profile import profile
from exactdp.brackets import Point
from exactdp.engine.lattice.contours import RESORT_TO_BALLS, Contours
from exactdp.errors import AccuracyError
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.numbers import log_rational, rational, shown

_SLACK = 2.0**-48

_SEARCH_STEPS = 200
_CONVERGED = 3e-13
_NARROW = 1e-10


def epsilon_bracket(contours: Contours, delta: Fraction) -> tuple[float, float]:
    """Two doubles with lower <= epsilon(delta) <= upper, for 0 < delta < 1.

    Guarantee: delta(upper) <= delta and delta(lower) >= delta by certified evaluations, whether the doubles are read as
    binary numbers or as the decimals they print as (Theorem 5 of docs/theory/engine.md).
    """
    r, log_delta = contours.lattice.r, log_rational(delta)
    # delta(epsilon) is at most exp(-(epsilon - R/2)^2 / (2 R)) from R/2 on (Lemma 1)
    highest = (r / 2 + math.sqrt(-2 * r * min(log_delta, 0.0))) * (1 + 1e-9)
    lowest = log_rational(1 - delta)  # delta(epsilon) is at least 1 - e^epsilon
    lowest -= 1e-9 * (1e-300 + abs(lowest))
    return EpsilonSearch(partial(profile, contours), delta, gaussian_start(r, delta), highest, lowest).bracket()


class Profile(Protocol):
    """A source of certified points. Without `resort` wide bounds are returned as they are; `balls` allows the slowest resort."""

    def __call__(self, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
        """delta and 1 - delta at each epsilon."""


class EpsilonSearch:
    """Root finding for delta(epsilon) = delta: searches freely, and proves both ends by certified evaluations.

    For delta above 1/2 the unknown is 1 - delta, so that neither side is ever a difference from 1. `start` is where to look
    first; `lowest` and `highest` are proved to enclose epsilon(delta).
    """

    def __init__(self, profile: Profile, delta: Fraction, start: float, highest: float, lowest: float) -> None:
        self._profile, self._start, self._outermost = profile, start, (lowest, highest)
        self._delta = delta
        self._small = delta <= Fraction(1, 2)
        self._target = log_rational(delta if self._small else 1 - delta)
        self._target_error = _SLACK * (1 + abs(self._target))

    def bracket(self) -> tuple[float, float]:
        """Two doubles around epsilon(delta), both ends proved."""
        outermost = self._outermost
        estimate, step = self._newton(self._start, *outermost)
        below = above = step
        for _ in range(_SEARCH_STEPS):
            ends = [max(estimate - below, outermost[0]), min(estimate + above, outermost[1])]
            too_large, small_enough = self._proved(ends)
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
            too_large, small_enough = self._proved(middle, balls=False)
            lower, inner[0] = (middle[0], inner[0]) if too_large[0] else (lower, middle[0])
            upper, inner[1] = (middle[1], inner[1]) if small_enough[1] else (upper, middle[1])
        return lower, upper

    def _proved(self, ends: list[float], balls: bool = True) -> tuple[list[bool], list[bool]]:
        """For each double: is delta(e) >= delta proved, and is delta(e) <= delta proved, in both readings of e?"""
        readings = [both_readings(e) for e in ends]
        point = self._profile([r for pair in readings for r in pair], balls=balls)
        bracket = point.delta if self._small else point.rest
        low, high = bracket.log_lower().reshape(-1, 2), bracket.log_upper().reshape(-1, 2)
        at_least = np.all(low >= self._target + self._target_error, axis=1)
        at_most = np.all(high <= self._target - self._target_error, axis=1)
        proved = ([bool(x) for x in at_least], [bool(x) for x in at_most])
        return proved if self._small else (proved[1], proved[0])

    def _newton(self, start: float, low: float, high: float) -> tuple[float, float]:
        """A good estimate of the root, and a step from it that is likely to suffice for a proof. Heuristic: width only.

        Searches in float64, and through balls only where float64 cannot tell on which side of the root it is.
        """
        epsilon, step = min(max(start, low), high), 1.0
        for attempt in range(_SEARCH_STEPS):
            point, bottom, top = self._log_bounds(epsilon, resort=False)
            if top - bottom > RESORT_TO_BALLS and bottom <= self._target <= top:
                point, bottom, top = self._log_bounds(epsilon, resort=True)
            value = (max(bottom, top - 50) + top) / 2
            slope = math.exp(min(float(point.log_density[0]) - value, 700.0))
            miss = (value - self._target) if self._small else (self._target - value)
            step = 1.5 * (top - bottom + abs(miss) + 2 * self._target_error) / max(slope, 1e-290) + 4 * math.ulp(
                epsilon
            )
            if bottom <= self._target <= top or abs(miss) < _CONVERGED * (1 + abs(self._target)):
                break
            low, high = (epsilon, high) if miss > 0 else (low, epsilon)
            candidate = epsilon + miss / slope if slope > 0 else low
            if not low < candidate < high or attempt % 6 == 5:
                candidate = (low + high) / 2
            if candidate in (epsilon, low, high):
                break
            epsilon = candidate
        return epsilon, min(step, 1.0 + abs(epsilon))

    def _log_bounds(self, epsilon: float, resort: bool) -> tuple[Point, float, float]:
        """The point at a double, with the bounds of log delta (or of log(1 - delta) if delta is above 1/2)."""
        point = self._profile([Fraction(epsilon)], resort)
        bracket = point.delta if self._small else point.rest
        return point, float(bracket.log_lower()[0]), float(bracket.log_upper()[0])


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
        step = (value - target) / max(slope, 1e-300)
        epsilon = max(epsilon + max(-mu - 1, min(mu + 1, step)), 0.0)
        if abs(step) < 1e-9 * (1 + epsilon):
            break
    return epsilon
