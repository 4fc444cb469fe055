"""An audit of a sampler: many releases of two neighbouring tables, the best test between them, and the exact curve.

Table A counts 0 everywhere, table B counts the sensitivity. Of a release y the log-likelihood ratio of B against A is
L = sum w y - R / 2, w = sensitivity / sigma2, R the sum of sensitivity^2 / sigma2: with the noise X it is sum w X - R / 2 under A
and sum w X + R / 2 under B. The test says B where L > c; its errors are alpha = P_A(L > c) and beta = P_B(L <= c).

The exact errors come from the certified profile. delta(epsilon) is convex in x = e^epsilon with slope -P_A(L > epsilon), so the
slopes of chords on either side enclose alpha, and beta = 1 - delta - x alpha. The chords keep clear of the threshold by a small
step, so that the bounds also hold for c within that step: neither ties nor rounding of L matter.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from exactdp.accounting.composition import Composition
from exactdp.apps.figures.style import ERRORS, EXACT, INK, LEGEND, ZCDP, dress, new_figure, titled, write_figure
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.doubles import Floats
from exactdp.errors import InvalidInputError
from exactdp.interop.opendp import Sampler, drawn_mechanism, opendp_laplace_noise, opendp_noise, scale_for
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.numbers import Number, rational, shown, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST_WORK = 10**10
_BATCH = 1 << 18  # draws of noise at once
_GRID = tuple(j / 4 for j in range(-4, 5))
_OFFSET = 0.0123  # of mu: away from the symmetric places, where losses may lie
_STEP = 1e-5  # of mu: half the width of what is skipped
_ROUNDING = 1e-9  # relative; far above the rounding of the few operations it covers


@steady
@dataclass(frozen=True)
class AuditPoint:
    """One test: its threshold, the errors that were seen with their bands, and the exact ones."""

    threshold: float
    alpha: float
    alpha_band: Bounds
    exact_alpha: Bounds
    beta: float
    beta_band: Bounds
    exact_beta: Bounds

    @property
    def is_consistent(self) -> bool:
        """Whether both exact errors lie in their bands."""
        return _meet(self.alpha_band, self.exact_alpha) and _meet(self.beta_band, self.exact_beta)


@steady
@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    composition: Composition
    draws: int
    confidence: Fraction
    points: tuple[AuditPoint, ...]

    @property
    def is_consistent(self) -> bool:
        """Whether every exact point lies in its band."""
        return all(point.is_consistent for point in self.points)

    def save_figure(self, path: str | os.PathLike[str]) -> None:
        """Write a PNG of the exact curve and of the errors that were seen, with their bands."""
        write_figure(path, _figure(self))


@steady
def audit(
    composition: Composition,
    draws: int = 200_000,
    confidence: Number = "0.999",
    sampler: Sampler | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Audit:
    """Draw releases, half of them of each of two neighbouring tables, and compare the best test's errors with the exact ones.

    `sampler` takes counts and a scale (the root of sigma2) and returns the counts with noise; OpenDP's unless told.
    `on_progress` is told how many numbers were drawn since.

    Guarantee: if the sampler is exact, every exact point lies in its band with a probability of at least `confidence`, for all
    bands together (Clopper and Pearson's bands, Bonferroni's correction). Nothing follows the other way round: a sampler that
    passes may be wrong by less than the bands are wide, or where these tests do not look.
    """
    count = whole(draws, "draws", 100)
    for mechanism in composition.mechanisms:
        if not isinstance(mechanism, DiscreteGaussian | DiscreteLaplace) or (
            sampler is not None and not isinstance(mechanism, DiscreteGaussian)
        ):
            kinds = "discrete Gaussian" if sampler else "discrete Gaussian and discrete Laplace"
            raise InvalidInputError(f"An audit draws {kinds} noise. Found {shown(mechanism)}; leave it out.")
    if count * sum(composition.mechanisms.values()) > LARGEST_WORK:
        raise InvalidInputError(f"An audit draws at most {LARGEST_WORK:.0e} numbers. Found more; lower draws.")
    level = rational(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidInputError(f"confidence must be strictly between 0 and 1. Found {shown(confidence)}.")
    half = count // 2
    losses = [_losses(composition, half, is_b, sampler, on_progress) for is_b in (False, True)]
    spread, mu = float(2 * composition.rho), composition.mu
    thresholds = [j * (spread / 2 + mu) + _OFFSET * mu for j in _GRID]
    tail = float((1 - level) / (4 * len(thresholds)))  # two ends of two bands for each threshold
    points = []
    for c, exact in zip(thresholds, exact_errors(composition, thresholds), strict=True):
        alarms, misses = int(np.sum(losses[0] > c)), int(np.sum(losses[1] <= c))
        seen = (alarms / half, _band(alarms, half, tail)), (misses / half, _band(misses, half, tail))
        points.append(AuditPoint(c, *seen[0], exact[0], *seen[1], exact[1]))
    return Audit(composition, 2 * half, level, tuple(points))


def exact_errors(composition: Composition, thresholds: list[float]) -> list[tuple[Bounds, Bounds]]:
    """Certified bounds of alpha = P_A(L > c) and beta = P_B(L <= c), also for thresholds within 1e-5 mu of c.

    Negative thresholds by symmetry, under which alpha and beta change places: only small tails are taken from the profile.
    """
    step = _STEP * composition.mu
    sizes = [abs(c) for c in thresholds]
    at = [Fraction(c + k * step) for c in sizes for k in (-2, -1, 1, 2)]
    bounds = composition.delta_bounds(at)
    lows, highs = (np.asarray(end, dtype=float).reshape(-1, 4) for end in bounds)
    result = []
    for c, size, low, high in zip(thresholds, sizes, lows, highs, strict=True):
        errors = _errors(size, step, low, high)
        result.append(errors if c >= 0 else (errors[1], errors[0]))
    return result


def _errors(c: float, step: float, low: Floats, high: Floats) -> tuple[Bounds, Bounds]:
    """alpha and beta from bounds of delta at c - 2 step, c - step, c + step and c + 2 step; c >= 0."""
    right, left = math.exp(2 * step) - math.exp(step), math.exp(-step) - math.exp(-2 * step)
    least = max(float(low[2] - high[3]) / right, 0.0) * (1 - _ROUNDING)  # of e^c alpha
    most = float(high[0] - low[1]) / left * (1 + _ROUNDING)
    alpha = Bounds(least * math.exp(-c) * (1 - _ROUNDING), most * math.exp(-c) * (1 + _ROUNDING) + 1e-300)
    power = float(low[2]) + least * math.exp(-step), float(high[1]) + most * math.exp(step)
    beta = Bounds(max(1 - power[1] - _ROUNDING, 0.0), min(1 - power[0] + _ROUNDING, 1.0))
    return Bounds(alpha.lower, min(alpha.upper, 1.0)), beta


def _losses(
    composition: Composition,
    releases: int,
    is_b: bool,
    sampler: Sampler | None,
    on_progress: Callable[[int], None] | None,
) -> Floats:
    """L of each release of table A or B."""
    result = np.zeros(releases)
    for mechanism, count in composition.mechanisms.items():
        assert isinstance(mechanism, DiscreteGaussian | DiscreteLaplace)  # others were refused
        value = mechanism.sensitivity if is_b else 0
        draw = sampler or (opendp_noise if isinstance(mechanism, DiscreteGaussian) else opendp_laplace_noise)
        drawn = drawn_mechanism(mechanism)
        scale = float(drawn.scale) if isinstance(drawn, DiscreteLaplace) else scale_for(mechanism.sigma2)
        at_once = max(_BATCH // count, 1)
        for start in range(0, releases, at_once):
            rows = min(at_once, releases - start)
            noisy = np.array(draw([value] * (rows * count), scale), dtype=np.float64)
            result[start : start + rows] += _loss(mechanism, noisy).reshape(rows, count).sum(axis=1)
            if on_progress is not None:
                on_progress(rows * count)
    return result


def _loss(mechanism: DiscreteGaussian | DiscreteLaplace, noisy: Floats) -> Floats:
    """The log-likelihood ratio of each noisy count: of the sensitivity as the true one, against 0."""
    step = mechanism.sensitivity
    if isinstance(mechanism, DiscreteLaplace):
        return (np.abs(noisy) - np.abs(noisy - step)) / float(mechanism.scale)
    return float(step / mechanism.sigma2) * noisy - float(mechanism.rho)


def _band(hits: int, trials: int, tail: float) -> Bounds:
    """Clopper and Pearson's band: either end is missed with a probability of at most `tail`."""
    low = float(betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return Bounds(low, high)


def _meet(band: Bounds, exact: Bounds) -> bool:
    return bool(band.lower <= exact.upper and exact.lower <= band.upper)


def _figure(found: Audit) -> Figure:
    figure = new_figure(8.6, 4.3)
    left, right = figure.subplots(1, 2)
    curve = found.composition.tradeoff(401)
    for axes in (left, right):
        axes.plot(curve.alpha, curve.beta, color=EXACT, lw=1.6, label="Exact curve")
        _draw_points(axes, found)
        axes.set(xlabel=ERRORS[0], ylabel=ERRORS[1])
        dress(axes)
    left.set(xlim=(0, 1), ylim=(0, 1))
    least = 0.3 / found.draws
    right.set(xscale="log", yscale="log", xlim=(least, 1.2), ylim=(least, 1.2))
    right.minorticks_off()
    left.legend(loc="upper right", **LEGEND)
    verdict = "consistent with the exact curve" if found.is_consistent else "NOT consistent with the exact curve"
    joint = f"bands of joint confidence {float(found.confidence):g}"
    return titled(figure, f"{found.draws:,} releases, {joint}: {verdict}")


def _draw_points(axes: Axes, found: Audit) -> None:
    """What was seen, with its bands; points whose band misses the exact errors in another colour."""
    for is_fine, colour, label in ((True, INK, "Seen, with bands"), (False, ZCDP, "Band misses the exact point")):
        points = [p for p in found.points if p.is_consistent == is_fine]
        if not points:
            continue
        x, y = [p.alpha for p in points], [p.beta for p in points]
        bars: dict[str, Any] = {
            "xerr": [[p.alpha - p.alpha_band.lower for p in points], [p.alpha_band.upper - p.alpha for p in points]],
            "yerr": [[p.beta - p.beta_band.lower for p in points], [p.beta_band.upper - p.beta for p in points]],
        }
        axes.errorbar(x, y, fmt="o", ms=3, lw=1, capsize=2, color=colour, label=label, **bars)
