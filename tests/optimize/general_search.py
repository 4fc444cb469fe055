"""A slow general-purpose search for the best design, and an independent check of a guarantee: neither shares code with optimize.

The loss of every pair is convolved on a grid, here, from the definition of the noise; delta, the trade-off curve and mu are
read off. The search is Nelder and Mead's, over the logarithms of the budgets that may move, each design scaled to the guarantee
first; round budgets are tried one by one around the design that is to be beaten.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr

from exactdp import target
from exactdp.census.releases import Release
from exactdp.guarantees.calibration import Target

_FARTHEST = 12.0  # deviations up to which delta of a mu is looked at, from an epsilon of 0 on
_TILTS = ((2.0, 4.5), (7.0, _FARTHEST))  # of a mu: deviations to which losses are tilted, and up to which they are used
_MOST_LISTED = 3_000_000
_LISTED_FROM = 1 << 16  # sizes of grids instead of which values are listed, where they are few: a check, not a search


@dataclass(frozen=True)
class Wanted:
    """One target as the search sees it: kind is delta (at x = epsilon), beta (at x = alpha) or mu (x alone)."""

    kind: str
    x: Fraction
    y: Fraction = Fraction(0)

    @property
    def target(self) -> Target:
        """As the library reads it."""
        if self.kind == "delta":
            return target(self.x, self.y)
        return target(mu=self.x) if self.kind == "mu" else target(alpha=self.x, beta=self.y)

    def excess(self, mechanisms: Mapping[Any, int], size: int) -> float:
        """By how much the target is missed, about in units of log delta; at most 0 where it is met."""
        spread = sum(n * float(m.sensitivity) ** 2 / float(m.sigma2) for m, n in mechanisms.items())
        x, y = float(self.x), float(self.y)
        if self.kind == "delta":
            tilt = max(x / spread - 0.5, 0.0)
            listed = _listed(mechanisms, tilt) if size > _LISTED_FROM else None
            return _log_delta(*(listed or _losses(mechanisms, tilt, size)), x) - math.log(y)
        if self.kind == "mu":
            return _most_over_gaussian(x, mechanisms, size)
        return self.envelope_excess([mechanisms], size)

    def envelope_excess(self, compositions: Sequence[Mapping[Any, int]], size: int) -> float:
        """The same for a beta: of the lower convex envelope of all trade-off curves, with tangents 1 - delta - alpha e^epsilon in
        which delta is the largest of all pairs."""
        x, y = float(self.x), float(self.y)
        curves = []
        for mechanisms in compositions:
            _, offsets, masses, log_scale = _losses(mechanisms, 0.0, size)
            order = np.argsort(offsets)
            losses, p = offsets[order], masses[order] * math.exp(log_scale)
            sums = [np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (p, p * np.exp(-losses))]
            curves.append((losses, *sums))
        low, high = -1.0, math.log((1 - y) / x)
        best = -math.inf
        for _ in range(3):
            epsilons = np.linspace(low, high, 800)
            tangents = np.full(800, math.inf)
            for losses, power, level in curves:
                at = np.searchsorted(losses, epsilons, side="right")
                tangents = np.minimum(tangents, 1 - power[at] + np.exp(epsilons) * (level[at] - x))
            best, i, apart = float(tangents.max()), int(np.argmax(tangents)), (high - low) / 799
            low, high = float(epsilons[i]) - apart, float(epsilons[i]) + apart
        return 10 * (y - best) / (1 - x - y)


def _losses(mechanisms: Mapping[Any, int], tilt: float, size: int) -> tuple[float, np.ndarray, np.ndarray, float]:
    """The tilt, values of the loss on a grid, their tilted probabilities, and log E e^(tilt L): splitting keeps every mean."""
    parts = _parts(mechanisms, tilt)
    h = 30 * math.sqrt(sum(n * float(p @ away**2) for n, away, p, _, _ in parts)) / size
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for n, away, p, _, _ in parts:
        floor = np.floor(away / h)
        share, index = away / h - floor, floor.astype(np.int64)
        line = np.bincount(index % size, p * (1 - share), size) + np.bincount((index + 1) % size, p * share, size)
        product *= np.fft.rfft(line) ** n
    place = np.arange(size)
    offsets = np.where(place < size // 2, place, place - size) * h + sum(n * mean for n, _, _, mean, _ in parts)
    return tilt, offsets, np.maximum(np.fft.irfft(product, size), 0.0), sum(n * log for n, _, _, _, log in parts)


def _parts(mechanisms: Mapping[Any, int], tilt: float) -> list[tuple[int, np.ndarray, np.ndarray, float, float]]:
    """Of each noise: copies, losses less their tilted mean, their tilted probabilities, that mean, and log E e^(tilt L)."""
    parts = []
    for m, n in mechanisms.items():
        s, d = float(m.sigma2), int(m.sensitivity)
        reach = math.ceil(13.5 * math.sqrt(s)) + 14
        x = np.arange(-reach, reach + 1.0)
        shift = round(d * tilt)
        weights = np.exp(-((x + shift - d * tilt) ** 2) / (2 * s))
        log = d * d / s * tilt * (tilt + 1) / 2 + math.log(weights.sum() / np.exp(-x * x / (2 * s)).sum())
        losses, p = (d * (x + shift) + d * d / 2) / s, weights / weights.sum()
        mean = float(p @ losses)
        parts.append((n, losses - mean, p, mean, log))
    return parts


def _listed(mechanisms: Mapping[Any, int], tilt: float) -> tuple[float, np.ndarray, np.ndarray, float] | None:
    """The same without a grid, every value of the loss by itself, where they are not too many."""
    parts = _parts(mechanisms, tilt)
    offsets, masses = np.zeros(1), np.ones(1)
    for n, away, p, _, _ in parts:
        p = np.where(p > 1e-19, p, 0.0)
        own, start = p, away[0]
        for _ in range(n - 1):
            own, start = np.convolve(own, p), start + away[0]
        kept = np.flatnonzero(own > 1e-17)
        if len(masses) * len(kept) > _MOST_LISTED:
            return None
        losses = start + kept * (away[1] - away[0])
        offsets = (offsets[:, None] + losses[None, :]).ravel()
        masses = (masses[:, None] * own[kept][None, :]).ravel()
    return (
        tilt,
        offsets + sum(n * mean for n, _, _, mean, _ in parts),
        masses,
        sum(n * log for n, _, _, _, log in parts),
    )


def _log_delta(tilt: float, offsets: np.ndarray, masses: np.ndarray, log_scale: float, epsilon: float) -> float:
    above = offsets - epsilon
    counted = (above > 0) & (tilt * above < 300)  # what is left out is e^-300 at most, and slow in doubles
    above, masses = above[counted], masses[counted]
    total = float(masses @ (np.exp(-tilt * above) * -np.expm1(-above)))
    return math.log(max(total, 1e-300)) + log_scale - tilt * epsilon


def _most_over_gaussian(mu: float, mechanisms: Mapping[Any, int], size: int) -> float:
    """The largest of log delta less the Gaussian's, at every eighth point of the grid from an epsilon of 0 on."""
    worst, first = -1.0, 0.0
    for deviations, last in _TILTS:
        tilt, offsets, masses, log_scale = _losses(mechanisms, deviations / mu, size)
        order = np.argsort(offsets)
        losses, p = offsets[order], masses[order]
        middle, end = mu * mu / 2 + deviations * mu, mu * mu / 2 + last * mu
        used = np.abs(losses - middle) < 10 * mu
        losses, p = losses[used], p[used]
        sums = []
        for power in (tilt, tilt + 1):
            from_here = np.cumsum((p * np.exp(-power * (losses - middle)))[::-1])[::-1]
            sums.append(np.exp(power * (losses - middle)) * from_here)
        at = np.flatnonzero((losses >= first) & (losses < end))[::8]
        if not len(at):  # a total that is far too small or far too large
            return 1.0 if not len(losses) or losses[0] > middle else -1.0
        found = np.log(np.maximum(sums[0] - sums[1], 1e-300))[at] + log_scale - tilt * losses[at]
        worst, first = max(worst, float((found - _gaussian_log_delta(mu, losses[at])).max())), end
    return worst


def _gaussian_log_delta(mu: float, epsilon: np.ndarray) -> np.ndarray:
    first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return first + np.log1p(-np.exp(second - first))


@dataclass(frozen=True)
class Case:
    """A random problem, as texts for the optimiser and as numbers for the search."""

    release: Release
    wanted: tuple[Wanted, ...]
    measure: str
    worst: bool
    weights: dict[str, int]
    typical: dict[str, int]
    requirements: tuple[str, ...]
    groups: tuple[int, ...]
    """Of each cell: cells of one group have one unknown."""
    ratios: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    step: Fraction = Fraction(0)

    @property
    def targets(self) -> list[Target]:
        """As the library reads them."""
        return [one.target for one in self.wanted]

    def budgets(self, unknowns: np.ndarray) -> np.ndarray:
        """Of all cells."""
        return np.array(self.ratios) * unknowns[list(self.groups)]

    def unknowns(self, release: Release) -> np.ndarray:
        """Of a design."""
        cells = [float(x) for queries in release.table.values() for x in queries.values()]
        return np.array(
            [cells[self.groups.index(g)] / self.ratios[self.groups.index(g)] for g in sorted(set(self.groups))]
        )

    def design(self, unknowns: np.ndarray) -> Release:
        """The release with these unknowns, to nine digits."""
        given = iter(Fraction(f"{x:.9g}") for x in self.budgets(unknowns).tolist())
        table = {level: {query: next(given) for query in own} for level, own in self.release.table.items()}
        return Release(self.release.name, self.release.title, self.release.source, table, self.release.bypassed)

    def objective(self, unknowns: np.ndarray) -> float:
        """From the definition: sums over the integers, far enough."""
        total = []
        for cell, x in zip(self.weights, self.budgets(unknowns).tolist(), strict=True):
            total.append(self.weights[cell] * error_of(self.measure, x) / self.typical.get(cell, 1))
        return max(total) if self.worst else sum(total)

    def excess(self, release: Release, size: int = 1 << 14) -> float:
        """Over all pairs and targets: at most 0 where all are met."""
        all_pairs = [c.mechanisms for c in release.compositions]
        return max(
            one.envelope_excess(all_pairs, size)
            if one.kind == "beta"
            else max(one.excess(pair, size) for pair in all_pairs)
            for one in self.wanted
        )


def error_of(measure: str, x: float) -> float:
    """Of one count with the budget x, by its definition."""
    reach = math.ceil(12 / math.sqrt(x)) + 2
    n = np.arange(-reach, reach + 1.0)
    p = np.exp(-n * n * x / 2)
    p /= p.sum()
    if measure == "absolute":
        return float(p @ abs(n))
    variance = float(p @ n**2)
    return variance if measure == "variance" else 1.959964 * variance**0.5 if measure == "margin" else variance**0.5


def meets_everywhere(case: Case, release: Release) -> bool:
    """Every pair, on a grid that is fine enough for a millionth of delta."""
    return case.excess(release, 1 << 18) <= 2e-6


def scaled(case: Case, unknowns: np.ndarray, looks: int = 8) -> np.ndarray | None:
    """The unknowns times a factor, within their bounds, at which the guarantee holds: the secant method; None if none was."""
    best, log_factor, last = None, 0.0, None
    for _ in range(looks):
        at = np.clip(unknowns * math.exp(log_factor), case.low, case.high)
        over = case.excess(case.design(at))
        if over <= 0:
            best = at if best is None or at.sum() > best.sum() else best
            if over > -1e-5 or (at >= case.high).all():
                break
        slope = 10.0 if last is None or last[0] == log_factor else (over - last[1]) / (log_factor - last[0])
        last = log_factor, over
        log_factor -= float(np.clip((over + 5e-7) / (slope if slope > 0.5 else 10.0), -3, 3))
    return best


def searched(case: Case, found: np.ndarray, looks: int) -> float:
    """The best objective of the search: from the design that was found, and from equal unknowns; round budgets one by one."""
    if case.step:
        return _round(case, found)
    best = math.inf

    def value(logs: np.ndarray) -> float:
        nonlocal best
        at = scaled(case, np.clip(np.exp(logs), case.low, case.high))
        if at is None:
            return 1e300
        best = min(best, case.objective(at))
        return case.objective(at)

    for start in (found, np.clip(np.full(len(found), float(found.mean())), case.low, case.high)):
        minimize(value, np.log(start), method="Nelder-Mead", options={"maxfev": looks, "xatol": 1e-6, "fatol": 1e-9})
    return best


def _round(case: Case, found: np.ndarray, reach: int = 2) -> float:
    """Every design within some steps of the one that was found."""
    best, step = math.inf, float(case.step)
    for moves in itertools.product(range(-reach, reach + 1), repeat=len(found)):
        at = found + step * np.array(moves)
        if (at < np.array(case.low) * (1 - 1e-12)).any() or (at <= step / 2).any():
            continue
        if case.objective(at) < best and case.excess(case.design(at)) <= 0:
            best = case.objective(at)
    return best
