"""Good tables for several copies: delta of k copies is not convex in the table, so this is a search.

Sequential convex steps (SLSQP) over the falls log p(x - 1) - log p(x), from several starts. The table that comes out is judged by
the engine; whether a better one exists is what `NoiseBound` is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from exactdp.doubles import Floats
from exactdp.guarantees.best_noise.composed_delta import ComposedDelta
from exactdp.guarantees.best_noise.lower_bound import Cost

MOST_REACH = 400
"""The widest table that is looked for has outcomes up to this size."""

_MOST_KNOTS = 48  # falls that are searched over; those between are interpolated
_STEEPEST = 8.0  # a fall by more says as much as an end of the table
_ROUNDS = 150
_FEW = 6  # copies for which more starts are tried
_SLIVER = 1e-9  # the least part of a last probability
_SOFT = 0.1  # where delta is far below the target its logarithm is not followed


class TableSearch:
    """Symmetric tables of least cost whose `composed` delta is at most `delta`, in doubles, of the width of a start."""

    def __init__(self, cost: Cost, composed: ComposedDelta, delta: float, start: Floats) -> None:
        self._composed, self._delta = composed, delta
        self.start = start
        reach = len(start) - 1
        sizes = np.arange(reach + 1)
        self._costs = np.array([cost.of(int(x)) for x in sizes], dtype=np.float64)
        self._twice = np.where(sizes > 0, 2.0, 1.0)
        self._knots = _interpolation(reach)
        self._last: tuple[bytes, float, Floats] = (b"", 0.0, np.zeros(0))

    def improved(self) -> Floats:
        """p(0), ..., p(reach) of a table that should be better than the start, and about meets the target."""
        from scipy.optimize import minimize

        falls = np.clip(-np.diff(np.log(self.start)), 0.0, _STEEPEST)
        start = np.clip(np.linalg.lstsq(self._knots, falls, rcond=None)[0], 0.0, _STEEPEST)
        found: Any = minimize(
            lambda knots: self._cost(knots)[0],
            start,
            jac=lambda knots: self._cost(knots)[1],
            bounds=[(0.0, _STEEPEST)] * len(start),
            constraints=[{"type": "ineq", "fun": lambda k: self._room(k)[0], "jac": lambda k: self._room(k)[1]}],
            method="SLSQP",
            options={"maxiter": _ROUNDS, "ftol": 1e-8},
        )
        return self._half(found.x)

    def restored(self, half: Floats, delta: float) -> Floats | None:
        """The table with all its falls made smaller, or larger, by one factor, so that it has this delta; None if none has."""
        logs = np.log(np.maximum(half, 1e-280))

        def at(power: float) -> Floats:
            weights = np.exp(power * (logs - logs[0]))
            result: Floats = weights / float(self._twice @ weights)
            return result

        low = high = 1.2
        while self._composed.at(at(low))[0] > delta:
            low, high = 0.97 * low, low
            if low < 0.4:
                return None
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if self._composed.at(at(middle))[0] <= delta else (low, middle)
        return at(low)

    def cost(self, half: Floats) -> float:
        """The mean cost of a table."""
        return float(self._twice * half @ self._costs)

    def _half(self, knots: Floats) -> Floats:
        return falling(self._knots @ knots)

    def _by_knots(self, by_logs: Floats) -> Floats:
        """Derivatives by the logarithms of the table turned into those by the knots."""
        result: Floats = -np.cumsum(by_logs[::-1])[::-1][1:] @ self._knots
        return result

    def _cost(self, knots: Floats) -> tuple[float, Floats]:
        half = self._half(knots)
        mean = self.cost(half)
        return math.log(mean), self._by_knots(self._twice * half * (self._costs - mean) / mean)

    def _room(self, knots: Floats) -> tuple[float, Floats]:
        """How much less delta is than it may be, about on a logarithmic scale."""
        key = knots.tobytes()
        if self._last[0] != key:
            half = self._half(knots)
            delta, slopes = self._composed.at(half)
            by_logs = half * (slopes - self._twice * float(slopes @ half))
            size = max(delta, 0.0) + _SOFT * self._delta
            room = math.log((1 + _SOFT) * self._delta / size)
            self._last = key, room, -self._by_knots(by_logs) / size
        return self._last[1], self._last[2]


def starts(composed: ComposedDelta, delta: float, variance: float) -> Iterator[Floats]:
    """Tables from which to search, p(0), ..., p(reach): Gaussian noise of this variance, which about meets the target, and
    geometric noise that falls by epsilon / k, or a little more, trimmed as much as delta allows."""
    far = math.log(100 * composed.copies / delta)
    fall = composed.epsilon / composed.copies
    geometric = 2 / max(fall, 1e-9) ** 2
    if variance < 4 * geometric:
        for wider in (1.0, 1.5) if composed.copies < _FEW else (1.5,):
            reach = math.ceil(wider * math.sqrt(2 * far * variance)) + 2
            if reach <= MOST_REACH:
                yield falling(np.minimum((2 * np.arange(1, reach + 1) - 1) / (2 * variance), _STEEPEST))
    if geometric < 4 * variance:
        for faster in (1.0, 1.15):
            found = _trimmed(composed, delta, fall * faster, far)
            if found is not None:
                yield found


def _trimmed(composed: ComposedDelta, delta: float, fall: float, far: float) -> Floats | None:
    """Geometric noise with the nearest ends that delta allows, the last probability in part; None if no ends do."""

    def at(end: float) -> Floats:
        falls = np.full(math.ceil(end), fall)
        falls[-1] -= math.log(max(end - (len(falls) - 1), _SLIVER))
        return falling(falls)

    low, high = 1.0, 2.0
    while composed.at(at(high))[0] > delta:
        low, high = high, 1.5 * high
        if high > min(MOST_REACH, 3 * far / fall):
            return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if composed.at(at(middle))[0] > delta else (low, middle)
    return at(high)


def falling(falls: Floats) -> Floats:
    """p(0), ..., p(reach) of the symmetric table with these falls of log p."""
    weights = np.exp(-np.concatenate([[0.0], np.cumsum(falls)]))
    result: Floats = weights / (2 * float(weights.sum()) - 1)
    return result


def _interpolation(reach: int) -> Floats:
    """The matrix that takes knots to falls: one knot for each where there are few, else linear between knots."""
    if reach <= _MOST_KNOTS:
        return np.eye(reach)
    places = np.linspace(0.0, reach - 1.0, _MOST_KNOTS)
    unit = np.eye(_MOST_KNOTS)
    return np.array([np.interp(np.arange(reach), places, row) for row in unit]).T
