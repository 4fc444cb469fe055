"""Independent answers for sampled Gaussians and other smooth losses, in 128 bits; shares no code with the package.

With f(x) = sum_i p_i exp(m_i x - m_i^2 / 2) and x normal, the moments E f^p are integrated by Gauss-Legendre on short panels of
the real line (the package: the trapezoidal rule, on shifted lines), and delta is the Bromwich integral of
M(z)^T e^{-zy} / (z (z + 1)) at a tilt found here, by refinement: the step in frequency is halved until 15 digits stay. One step
alone and two steps have formulas of their own that use no transform (`one_step`, `two_steps`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import mpmath
import numpy as np
from flint import acb, acb_mat, arb, ctx

BITS = 128
AGREES = 1e-15
_NODES = 24  # of Gauss-Legendre on one panel
_BLOCK = 20
_MOST_TERMS = 60_000


class NotConvergedError(Exception):
    """The refinement did not settle within the work allowed."""


@dataclass(frozen=True)
class Mixture:
    """Weights and means m_i >= 0 in units of the noise, as texts or floats that are read exactly."""

    weights: tuple[float, ...]
    means: tuple[float, ...]


@lru_cache(maxsize=1)
def _legendre() -> tuple[list[arb], list[arb]]:
    roots = [arb.legendre_p_root(_NODES, k, weight=True) for k in range(_NODES)]
    return [r[0] for r in roots], [r[1] for r in roots]


def _grid(mixture: Mixture, power: float, panel: float) -> tuple[list[arb], list[arb], list[arb]]:
    """Quadrature weights times the normal density, and log f, at all points that matter for |p| up to `power`."""
    largest = mixture.means[-1]
    low, high = -15.0 - max(-power, 0.0) * largest, 15.0 + max(power, 0.0) * largest
    low = max(low, -60.0)
    nodes, weights = _legendre()
    count = math.ceil((high - low) / panel)
    half = arb(panel) / 2
    scale = half / (2 * arb.pi()).sqrt()
    components = [(arb(p), arb(m), arb(m) ** 2 / 2) for p, m in zip(mixture.weights, mixture.means, strict=True)]
    points, density, losses = [], [], []
    for k in range(count):
        middle = arb(low) + (2 * k + 1) * half
        for node, weight in zip(nodes, weights, strict=True):
            x = middle + half * node
            total = sum((p * (m * x - square).exp() for p, m, square in components), arb(0))
            points.append(x)
            density.append((scale * weight * (-x * x / 2).exp()).mid())
            losses.append(total.log().mid())
    return points, density, losses


@lru_cache(maxsize=4096)
def _log_moment(mixture: Mixture, power: float) -> float:
    """log E f^power, roughly: only the choice of a tilt depends on it."""
    reach = 12.0 + abs(power) * mixture.means[-1]
    x = np.linspace(-min(reach, 60.0), reach, 4001)
    logs = [math.log(p) + m * x - m * m / 2 for p, m in zip(mixture.weights, mixture.means, strict=True)]
    exponents = power * np.logaddexp.reduce(logs) - x * x / 2
    top = float(exponents.max())
    return top + math.log(float(np.exp(exponents - top).sum() * (x[1] - x[0])) / math.sqrt(2 * math.pi))


def _tilt(mixture: Mixture, steps: int, y: float, backward: bool) -> float:
    """Near the minimum of log M - tilt y - log(tilt (1 + tilt)), by golden section on a logarithmic scale."""

    def exponent(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        power = -tilt if backward else 1 + tilt
        return steps * _log_moment(mixture, power) - tilt * y - math.log(tilt * (1 + tilt))

    low, high = math.log(1e-3), math.log(300.0)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(16):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if exponent(a) < exponent(b) else (a, high)
    return round(math.exp((low + high) / 2), 4)


def delta(
    mixture: Mixture, steps: int, thresholds: list[float], backward: bool, most_terms: int = _MOST_TERMS
) -> list[mpmath.mpf]:
    """delta of `steps` copies at each threshold, in one direction, to at least 15 digits."""
    before, ctx.prec = ctx.prec, BITS
    try:
        middle = sorted(thresholds)[len(thresholds) // 2]
        tilt = 0.93 * _tilt(mixture, steps, middle, backward)
        step, found = 0.35 / (1 + max(thresholds) - min(thresholds)) * min(tilt, 1.0), None
        for _ in range(7):
            again = _sums(mixture, steps, thresholds, backward, (tilt, step), most_terms)
            if found is not None and all(abs(a - b) <= AGREES * abs(a) for a, b in zip(again, found, strict=True)):
                return [mpmath.mpf(str(a.mid().str(40, radius=False))) for a in again]
            found, step = again, step / 2
        raise NotConvergedError(f"{mixture}, {steps} steps at {thresholds}")
    finally:
        ctx.prec = before


def _sums(
    mixture: Mixture, steps: int, thresholds: list[float], backward: bool, at: tuple[float, float], most_terms: int
) -> list[arb]:
    """(step / pi) Re sum_k M(z_k)^steps e^{-z_k y} / (z_k (z_k + 1)), z_k = tilt + i k step, k = 0 with weight 1/2."""
    tilt, step = at
    totals, largest = [arb(0)] * len(thresholds), [0.0] * len(thresholds)
    ys = [arb(y) for y in thresholds]
    for first in range(0, most_terms, _BLOCK * _BLOCK):
        for k, moment in enumerate(_moments(mixture, tilt, backward, first, step), start=first):
            z = acb(tilt, k * step)
            common = moment**steps / (z * (z + 1)) * (arb(0.5) if k == 0 else arb(1))
            done, modulus = True, float(abs(common).mid())
            for i, y in enumerate(ys):
                totals[i] += (common * (-z * y).exp()).real
                largest[i] = max(largest[i], modulus)
                done &= modulus < 1e-26 * largest[i]
            if done:
                return [t * arb(step) / arb.pi() for t in totals]
    raise NotConvergedError("too many terms")


def _moments(mixture: Mixture, tilt: float, backward: bool, first: int, step: float) -> list[acb]:
    """M(tilt + i k step) for a block of k from `first` on: each power is a product of two, all of them one matrix product."""
    power, sign = (-tilt, -1) if backward else (1 + tilt, 1)
    fastest = (first + _BLOCK * _BLOCK) * step * mixture.means[-1]
    _, density, losses = _grid(mixture, power, min(2.5, 1.2 / mixture.means[-1], 6.0 / fastest))
    tilted = [(d * (arb(power) * x).exp(), x) for d, x in zip(density, losses, strict=True)]
    cut = max(float(t.mid()) for t, _ in tilted) * 1e-34
    kept = [(t, x) for t, x in tilted if float(t.mid()) > cut]
    rows = [[(t * acb(0, sign * (first + a * _BLOCK) * step * x).exp()).mid() for t, x in kept] for a in range(_BLOCK)]
    columns = [[acb(0, sign * b * step * x).exp().mid() for b in range(_BLOCK)] for _, x in kept]
    found = acb_mat(rows) * acb_mat(columns)
    return [found[a, b] for a in range(_BLOCK) for b in range(_BLOCK)]


def one_step(mixture: Mixture, y: mpmath.mpf, backward: bool) -> mpmath.mpf:
    """delta of one step: P(x > x0) - e^y Q(x > x0) where f(x0) = e^y, and the mirror image, by normal tails."""
    with mpmath.workdps(40):
        weights, means = ([mpmath.mpf(v) for v in vs] for vs in (mixture.weights, mixture.means))

        def log_ratio(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(
                mpmath.fsum(p * mpmath.exp(m * x - m * m / 2) for p, m in zip(weights, means, strict=True))
            )

        target = -y if backward else y
        if not means[0] and target <= mpmath.log(weights[0]):
            return mpmath.mpf(0) if backward else 1 - mpmath.exp(y)
        low, high = mpmath.mpf(-200), mpmath.mpf(200)
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if log_ratio(middle) < target else (low, middle)
        at = (low + high) / 2
        # tails by erfc, relative however small
        upper = [mpmath.erfc((at - m) / mpmath.sqrt(2)) / 2 for m in (0, *means)]
        lower = [mpmath.erfc((m - at) / mpmath.sqrt(2)) / 2 for m in (0, *means)]
        if backward:
            return lower[0] - mpmath.exp(y) * mpmath.fsum(p * t for p, t in zip(weights, lower[1:], strict=True))
        return mpmath.fsum(p * t for p, t in zip(weights, upper[1:], strict=True)) - mpmath.exp(y) * upper[0]


def two_steps(mixture: Mixture, y: mpmath.mpf, backward: bool) -> mpmath.mpf:
    """delta of two steps: the mean over the first step's output of the second one's delta at what is left."""
    with mpmath.workdps(25):
        weights, means = ([mpmath.mpf(v) for v in vs] for vs in (mixture.weights, mixture.means))

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            parts = [p * mpmath.exp(m * x - m * m / 2) for p, m in zip(weights, means, strict=True)]
            ratio = mpmath.fsum(parts)
            density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) * (1 if backward else ratio)
            return density * one_step(mixture, y - (-1 if backward else 1) * mpmath.log(ratio), backward)

        step = mpmath.mpf(1) / 8  # the integrand is smooth and vanishes at both ends
        return step * mpmath.fsum(integrand(step * k) for k in range(-76, 76 + math.ceil(8 * means[-1])))
