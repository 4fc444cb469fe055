"""The guarantee that a design must meet, as a search sees it: log delta of the worst pairs at stated epsilons, and its slopes.

Every target becomes one or several (epsilon, delta): a beta at an alpha holds where delta(epsilon) <= 1 - beta - alpha
e^epsilon at
some epsilon, and mu where delta is below the Gaussian's at all of them. The search is free; that the last design meets the
targets themselves is proved by `design_side`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.census.budget_costs import cell_costs
from exactdp.census.pair_results import rough_points
from exactdp.census.releases import Release
from exactdp.doubles import Floats, root
from exactdp.errors import ExactDPError, InvalidInputError
from exactdp.guarantees.calibration import MeetsAll, MeetsEpsilonDelta, MeetsMu, MeetsTradeOff, Target
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.numbers import log_rational
from exactdp.optimize.cells import Cell

_NEAR = 0.05  # of log delta: pairs as near to the worst get a constraint of their own
_MOST_PAIRS = 6
_MUS = (1.0, 2.5, 4.0, 6.0)  # deviations at which delta of a mu is looked at
_BLUR = 0.25
_LARGEST_MU, _SMALLEST_MU = 1e3, 1e-9


def each_target(wanted: Target) -> tuple[Target, ...]:
    """The targets that are meant, one by one."""
    return wanted.targets if isinstance(wanted, MeetsAll) else (wanted,)


def stand_ins(wanted: Target) -> tuple[MeetsEpsilonDelta, ...]:
    """What the search looks at instead: (epsilon, delta) of each target."""
    found: list[MeetsEpsilonDelta] = []
    for one in each_target(wanted):
        if isinstance(one, MeetsEpsilonDelta):
            found.append(one)
        elif isinstance(one, MeetsTradeOff):
            found.append(_of_beta(one))
        elif isinstance(one, MeetsMu):
            found += [_of_mu(float(one.mu), deviations) for deviations in _MUS]
        else:
            raise InvalidInputError(f"A target is made by exactdp.target. Found {type(one).__name__}.")
    return tuple(found)


def _of_beta(one: MeetsTradeOff) -> MeetsEpsilonDelta:
    """The tangent to the Gaussian curve through (alpha, beta)."""
    from scipy.special import ndtri

    if one.beta >= 1 - one.alpha:
        raise InvalidInputError(
            f"beta at alpha is below 1 - alpha, where nothing is published. Found beta = {float(one.beta):g} at alpha = "
            f"{float(one.alpha):g}."
        )
    quantile = -float(ndtri(float(one.alpha)))
    mu = quantile - float(ndtri(float(one.beta)))
    epsilon = Fraction(mu * quantile - mu * mu / 2).limit_denominator(10**6)
    delta = Fraction(1 - float(one.beta) - float(one.alpha) * math.exp(float(epsilon)))
    return MeetsEpsilonDelta(epsilon, delta)


def _of_mu(mu: float, deviations: float) -> MeetsEpsilonDelta:
    epsilon = Fraction(mu * mu / 2 + deviations * mu).limit_denominator(10**6)
    return MeetsEpsilonDelta(epsilon, Fraction(math.exp(gaussian_logs(mu, float(epsilon))[0])))


def gaussian_spread(log_delta: float, epsilon: float) -> float:
    """mu^2 of the continuous Gaussian with this log delta at epsilon."""
    low, high = _SMALLEST_MU, 1.0
    while gaussian_logs(high, epsilon)[0] < log_delta and high < _LARGEST_MU:
        high *= 2
    if gaussian_logs(high, epsilon)[0] <= log_delta:
        return high * high
    while gaussian_logs(low, epsilon)[0] > log_delta:
        low /= 10
    return root(lambda mu: gaussian_logs(mu, epsilon)[0] - log_delta, low, high) ** 2


@dataclass(frozen=True)
class Constraint:
    """Of one pair and one (epsilon, delta): slopes by the cells' budgets, and how much larger its spread may become."""

    slopes: Floats
    room: float
    """The spread that is allowed, divided by that of the design at hand."""


@dataclass(frozen=True)
class Guarantee:
    """What the search asks of a design."""

    points: tuple[MeetsEpsilonDelta, ...]

    @classmethod
    def of(cls, wanted: Target) -> Guarantee:
        """The guarantee of a target."""
        return cls(stand_ins(wanted))

    def look(self, release: Release) -> Look:
        """delta of every pair at every target: certified, on rough contours where these are narrow."""
        found = rough_points(release, [one.epsilon for one in self.points])
        return Look(self, release, tuple(point.delta.log_upper() for point in found))

    def slopes(
        self, release: Release, pair: tuple[int, int], one: MeetsEpsilonDelta, cells: Sequence[Cell], smooth: bool
    ) -> Floats:
        """d log delta / d budget of each cell for one pair at one target; `smooth` blurs the ripple of coarse noise."""
        try:
            table = cell_costs(release, pair, epsilon=one.epsilon, blur=_BLUR if smooth else None).log_delta
            found = np.array([table[level][query] for level, query in cells])
        except ExactDPError:
            found = np.array([-1.0])
        if (found > 0).all():
            return found
        return spread_slopes(release, cells)


@dataclass(frozen=True)
class Look:
    """What is known of one design: upper bounds of log delta of every pair, at every target."""

    guarantee: Guarantee
    release: Release
    logs: tuple[Floats, ...]

    @property
    def excess(self) -> float:
        """By how much log delta of the worst pair is above the target, at the worst target; at most 0 where all are met."""
        return max(
            float(logs.max()) - log_rational(one.delta)
            for one, logs in zip(self.guarantee.points, self.logs, strict=True)
        )

    @property
    def room(self) -> float:
        """By how much the spread (2 rho) of the worst pair may grow at the worst target, by the Gaussian's slope."""
        return min(_room(float(logs.max()), one) for one, logs in zip(self.guarantee.points, self.logs, strict=True))

    def worst_slopes(self, cells: Sequence[Cell]) -> Floats:
        """The slopes of the worst pair at the target that is nearest to be missed."""
        near = [
            float(logs.max()) - log_rational(one.delta)
            for one, logs in zip(self.guarantee.points, self.logs, strict=True)
        ]
        which = int(np.argmax(near))
        pair = self.release.pairs[int(np.argmax(self.logs[which]))]
        return self.guarantee.slopes(self.release, pair, self.guarantee.points[which], cells, smooth=True)

    def constraints(self, cells: Sequence[Cell], smooth: bool) -> list[Constraint]:
        """The constraints of the pairs that are nearly the worst, at each target."""
        result: list[Constraint] = []
        for one, logs in zip(self.guarantee.points, self.logs, strict=True):
            order = np.argsort(-logs)
            near = [i for i in order.tolist() if logs[i] > logs[order[0]] - _NEAR][: _MOST_PAIRS * 2]
            seen: list[Floats] = []
            for i in near:
                slopes = self.guarantee.slopes(self.release, self.release.pairs[i], one, cells, smooth)
                if any(np.allclose(slopes, other, rtol=1e-4) for other in seen):
                    continue
                seen.append(slopes)
                result.append(Constraint(slopes, _room(float(logs[i]), one)))
                if len(seen) == _MOST_PAIRS:
                    break
        return result


def _room(log_delta: float, one: MeetsEpsilonDelta) -> float:
    epsilon = float(one.epsilon)
    return gaussian_spread(log_rational(one.delta), epsilon) / gaussian_spread(log_delta, epsilon)


def spread_slopes(release: Release, cells: Sequence[Cell]) -> Floats:
    """d(2 rho) / d budget of each cell on a path that bypasses nothing, up to a factor."""
    found = [release.noise.get(cell) for cell in cells]
    return np.array([1.0 if noise is None else float(noise.cells * noise.sensitivity**2) for noise in found])
