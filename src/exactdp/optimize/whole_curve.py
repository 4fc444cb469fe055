"""A guarantee about the whole curve, as a search of a small design sees it: a mu at all epsilons, a beta at the best one for
all pairs.

Heuristic, like the search: on estimates (curve_estimate.py), which take a hundredth of the time of certified bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from exactdp.census.releases import Release
from exactdp.doubles import Floats
from exactdp.guarantees.calibration import MeetsEpsilonDelta, MeetsMu, MeetsTradeOff, Target
from exactdp.mechanisms.gaussian_formula import gaussian_log_deltas, gaussian_logs
from exactdp.numbers import log_rational
from exactdp.optimize.cells import Cell
from exactdp.optimize.curve_estimate import EstimatedProfile, is_small, profiles, spread_of
from exactdp.optimize.guarantee import Guarantee, Look, each_target, gaussian_spread, spread_slopes

SIZES = (1 << 13, 1 << 16)
"""Points of the grids of a search, and of its last steps."""
_DEVIATIONS = (2.0, 7.0)  # to which losses are tilted where a mu is asked for
_LAST = 11.0  # deviation up to which a mu is looked at
_PLACES, _FINER = 640, 24  # epsilons that are looked at, and then about each that may decide
_NEAR = 0.1  # of log delta: peaks and pairs as near to the worst are constraints
_MOST = 4  # of them
_LARGEST_MU = 40.0
_STEP, _SMOOTH_STEP = 1e-4, 0.04  # of a budget: over which slopes are taken


def sees(release: Release, wanted: Target) -> bool:
    """Whether whole curves of a design can be estimated in little time."""
    return is_small(release) and all(_gaussian_mu(one) < _LARGEST_MU for one in each_target(wanted))


def decides(wanted: Target) -> bool:
    """Whether the epsilon that decides is not given: that of a mu or a beta."""
    return any(isinstance(one, MeetsMu | MeetsTradeOff) for one in each_target(wanted))


def _gaussian_mu(one: Target) -> float:
    """The mu of the Gaussian that just meets a target."""
    if isinstance(one, MeetsMu):
        return float(one.mu)
    if isinstance(one, MeetsTradeOff):
        return _quantile(one) - float(ndtri(float(one.beta)))
    assert isinstance(one, MeetsEpsilonDelta)
    return math.sqrt(gaussian_spread(log_rational(one.delta), float(one.epsilon)))


def _quantile(one: MeetsTradeOff) -> float:
    return -float(ndtri(float(one.alpha)))


def _deviations(one: Target) -> tuple[float, ...]:
    """Where the curve decides, in deviations above its mean."""
    if isinstance(one, MeetsMu):
        return _DEVIATIONS
    mu = _gaussian_mu(one)
    if isinstance(one, MeetsTradeOff):
        return (max(_quantile(one) - mu, 0.0),)
    assert isinstance(one, MeetsEpsilonDelta)
    return (max(float(one.epsilon) / mu - mu / 2, 0.0),)


@dataclass(frozen=True)
class WholeCurve(Guarantee):
    """Targets whose epsilons are found anew for every design."""

    wanted: tuple[Target, ...] = ()
    size: int = SIZES[0]

    @classmethod
    def of_target(cls, wanted: Target, size: int = SIZES[0]) -> WholeCurve:
        """The guarantee of a target."""
        return cls((), wanted=each_target(wanted), size=size)

    def look(self, release: Release) -> Look:
        """Estimates at the epsilons that decide: those where delta is nearest to a mu's, or a beta's best one."""
        compositions = list(release.compositions)
        place = {composition: i for i, composition in enumerate(compositions)}
        index = np.array([place[release.pair(*pair)] for pair in release.pairs])
        found: list[tuple[float, float, float, int]] = []
        for one in self.wanted:
            curves = profiles([c.mechanisms for c in compositions], _deviations(one), self.size)
            for epsilon, limit, log_deltas in _deciding(one, curves):
                found += [(d - limit, limit, epsilon, k) for k, d in enumerate(log_deltas.tolist())]
        found.sort(reverse=True)
        points, logs = [], []
        for over, limit, epsilon, k in [one for one in found[:_MOST] if one[0] > found[0][0] - _NEAR]:
            points.append(MeetsEpsilonDelta(Fraction(epsilon), Fraction(math.exp(limit))))
            logs.append(np.where(index == k, limit + over, -np.inf))
        return Look(self, release, tuple(points), tuple(logs))

    def slopes(
        self, release: Release, pair: tuple[int, int], one: MeetsEpsilonDelta, cells: Sequence[Cell], smooth: bool
    ) -> Floats:
        """d log delta / d budget of each cell for one pair at one epsilon, by differences: longer ones where `smooth`."""
        size = _SMOOTH_STEP if smooth else _STEP
        epsilon = float(one.epsilon)
        found = []
        for level, query in cells:
            budget = release.table[level][query]
            ends = [
                release.with_budget({(level, query): budget * Fraction(1 + side * size)}).pair(*pair).mechanisms
                for side in (-1, 1)
            ]
            spread = spread_of(ends[1])
            deviations = max((epsilon - spread / 2) / math.sqrt(spread), 0.0)
            low, high = (float(p.log_deltas(np.array([epsilon]))[0]) for p in profiles(ends, [deviations], self.size))
            found.append((high - low) / (2 * size * float(budget)))
        result = np.array(found)
        return result if (result > 0).all() else spread_slopes(release, cells)


def _deciding(one: Target, curves: Sequence[EstimatedProfile]) -> Iterator[tuple[float, float, Floats]]:
    """Epsilons that decide, each with the largest log delta that is allowed there and the log delta of every curve."""
    if isinstance(one, MeetsTradeOff):
        epsilons, limits = _of_beta(one, curves)
    elif isinstance(one, MeetsMu):
        mu = float(one.mu)
        epsilons = _peaks(mu, curves)
        limits = [gaussian_logs(mu, e)[0] for e in epsilons.tolist()]
    else:
        assert isinstance(one, MeetsEpsilonDelta)
        epsilons, limits = np.array([float(one.epsilon)]), [log_rational(one.delta)]
    deltas = np.array([curve.log_deltas(epsilons) for curve in curves])
    yield from zip(epsilons.tolist(), limits, deltas.T, strict=True)


def _peaks(mu: float, curves: Sequence[EstimatedProfile]) -> Floats:
    """Where delta of a curve is nearest to the Gaussian's, or farthest above it: the peaks of all curves, the highest first."""
    epsilons = np.linspace(0.0, mu * mu / 2 + _LAST * mu, _PLACES)
    apart = float(epsilons[1])
    over = np.max([curve.log_deltas(epsilons) for curve in curves], axis=0) - gaussian_log_deltas(mu, epsilons)
    inner = np.concatenate([[-np.inf], over, [-np.inf]])
    tops = np.flatnonzero((over >= inner[:-2]) & (over >= inner[2:]) & (over > over.max() - 2 * _NEAR))
    found = []
    for i in tops[np.argsort(-over[tops])][:_MOST].tolist():
        near = np.maximum(epsilons[i] + apart * np.linspace(-1, 1, _FINER), 0.0)
        height = np.max([curve.log_deltas(near) for curve in curves], axis=0) - gaussian_log_deltas(mu, near)
        found.append((float(height.max()), float(near[int(np.argmax(height))])))
    highest = max(found)[0]
    return np.array([epsilon for height, epsilon in sorted(found, reverse=True) if height > highest - _NEAR])


def _of_beta(one: MeetsTradeOff, curves: Sequence[EstimatedProfile]) -> tuple[Floats, list[float]]:
    """The epsilon at which all curves together are nearest to a line through (alpha, beta): the envelope's tangent."""
    alpha, beta = float(one.alpha), float(one.beta)
    last = math.log((1 - beta) / alpha)
    low, high = 0.0, last
    for places in (_PLACES, _FINER, _FINER):
        epsilons = np.linspace(low, high, places + 1)[:-1]
        limits = np.log(1 - beta - alpha * np.exp(epsilons))
        over = np.max([curve.log_deltas(epsilons) for curve in curves], axis=0) - limits
        best, apart = int(np.argmin(over)), float(epsilons[1] - epsilons[0])
        low, high = max(float(epsilons[best]) - apart, 0.0), min(float(epsilons[best]) + apart, last)
    return epsilons[best : best + 1], [float(limits[best])]
