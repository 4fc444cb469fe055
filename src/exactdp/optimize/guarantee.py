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
from exactdp.guarantees.zcdp import zcdp_log_delta
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.numbers import log_rational
from exactdp.optimize.cells import Cell

_NEAR = 0.05  # of log delta: pairs as near to the worst get a constraint of their own
_MOST_PAIRS = 6
_MUS = (0.3, 1.0, 1.75, 2.5, 3.25, 4.0, 5.0, 6.0, 8.0)  # deviations at which delta of a mu is looked at
_BLUR = 0.25
_LARGEST_MU, _SMALLEST_MU = 1e3, 1e-9
_APART, _ASIDE = 0.1, 3  # of epsilons at which a beta is looked at, in units of mu, and how many to each side
NEARER = (0.025, 0.006, 0.0015)
"""Distances of such epsilons in later rounds of a search."""

Choice = tuple[MeetsEpsilonDelta, ...]
"""Of which one must be met."""


def each_target(wanted: Target) -> tuple[Target, ...]:
    """The targets that are meant, one by one."""
    return wanted.targets if isinstance(wanted, MeetsAll) else (wanted,)


def stand_ins(wanted: Target) -> tuple[Choice, ...]:
    """What the search looks at instead: (epsilon, delta) of each target, with others beside it where one of several will do."""
    found: list[Choice] = []
    for one in each_target(wanted):
        if isinstance(one, MeetsEpsilonDelta):
            found.append((one,))
        elif isinstance(one, MeetsTradeOff):
            found.append(_of_beta(one))
        elif isinstance(one, MeetsMu):
            found += [(_of_mu(float(one.mu), deviations),) for deviations in _MUS]
        else:
            raise InvalidInputError(f"A target is made by exactdp.target. Found {type(one).__name__}.")
    return tuple(found)


def _of_beta(one: MeetsTradeOff, near: float | None = None, apart: float = _APART) -> Choice:
    """Tangents to the trade-off curve through (alpha, beta): about the Gaussian's, or about one that was better than others."""
    from scipy.special import ndtri

    alpha, beta = float(one.alpha), float(one.beta)
    if one.beta >= 1 - one.alpha:
        raise InvalidInputError(
            f"beta at alpha is below 1 - alpha, where nothing is published. Found beta = {beta:g} at alpha = {alpha:g}."
        )
    quantile = -float(ndtri(alpha))
    mu = quantile - float(ndtri(beta))
    middle = mu * quantile - mu * mu / 2 if near is None else near
    epsilons = (middle + mu * apart * k for k in range(-_ASIDE, _ASIDE + 1))
    exact = [Fraction(e).limit_denominator(10**6) for e in epsilons if 0 <= e < math.log((1 - beta) / alpha)]
    if not exact:
        exact = [Fraction(0)]
    return tuple(MeetsEpsilonDelta(e, Fraction(1 - beta - alpha * math.exp(float(e)))) for e in exact)


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
    """What the search asks of a design: one (epsilon, delta) of each choice."""

    choices: tuple[Choice, ...]

    @classmethod
    def of(cls, wanted: Target) -> Guarantee:
        """The guarantee of a target."""
        return cls(stand_ins(wanted))

    def look(self, release: Release) -> Look:
        """delta of every pair at every target: certified, on rough contours where these are narrow."""
        asked = [one for choice in self.choices for one in choice]
        points = rough_points(release, [one.epsilon for one in asked])
        found = dict(zip(asked, (point.delta.log_upper() for point in points), strict=True))
        chosen = tuple(min(choice, key=lambda one: _over(one, found[one])) for choice in self.choices)
        return Look(self, release, chosen, tuple(found[one] for one in chosen))

    def is_met_by_zcdp(self, release: Release) -> bool:
        """Whether the total budget alone proves it. A design far inside is so told at once, where a look takes long: deltas as
        small as its own are small for every pair."""
        log_delta = {one: zcdp_log_delta(release.rho, one.epsilon) for choice in self.choices for one in choice}
        return all(any(log_delta[one] <= log_rational(one.delta) for one in choice) for choice in self.choices)

    def nearer(self, wanted: Target, look: Look, apart: float) -> Guarantee:
        """The same with closer choices, about those that were best for a design."""
        kept = []
        for choice, one in zip(self.choices, look.points, strict=True):
            beta = next((t for t in each_target(wanted) if isinstance(t, MeetsTradeOff) and len(choice) > 1), None)
            kept.append(choice if beta is None else _of_beta(beta, float(one.epsilon), apart))
        return Guarantee(tuple(kept))

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
    points: tuple[MeetsEpsilonDelta, ...]
    """Of each choice the one that is nearest to be met."""
    logs: tuple[Floats, ...]

    @property
    def excess(self) -> float:
        """By how much log delta of the worst pair is above the target, at the worst target; at most 0 where all are met."""
        return max(_over(one, logs) for one, logs in zip(self.points, self.logs, strict=True))

    @property
    def room(self) -> float:
        """By how much the spread (2 rho) of the worst pair may grow at the worst target, by the Gaussian's slope."""
        return min(_room(float(logs.max()), one) for one, logs in zip(self.points, self.logs, strict=True))

    def worst_slopes(self, cells: Sequence[Cell]) -> Floats:
        """The slopes of the worst pair at the target that is nearest to be missed."""
        which = int(np.argmax([_over(one, logs) for one, logs in zip(self.points, self.logs, strict=True)]))
        pair = self.release.pairs[int(np.argmax(self.logs[which]))]
        return self.guarantee.slopes(self.release, pair, self.points[which], cells, smooth=True)

    def constraints(self, cells: Sequence[Cell], smooth: bool) -> list[Constraint]:
        """The constraints of the pairs that are nearly the worst, at each target."""
        result: list[Constraint] = []
        for one, logs in zip(self.points, self.logs, strict=True):
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


def _over(one: MeetsEpsilonDelta, logs: Floats) -> float:
    return float(logs.max()) - log_rational(one.delta)


def _room(log_delta: float, one: MeetsEpsilonDelta) -> float:
    epsilon = float(one.epsilon)
    return gaussian_spread(log_rational(one.delta), epsilon) / gaussian_spread(log_delta, epsilon)


def spread_slopes(release: Release, cells: Sequence[Cell]) -> Floats:
    """d(2 rho) / d budget of each cell on a path that bypasses nothing, up to a factor."""
    found = [release.noise.get(cell) for cell in cells]
    return np.array([1.0 if noise is None else float(noise.cells * noise.sensitivity**2) for noise in found])
