"""Independent answers for few steps of a sampled Gaussian, without a transform, a tilt or a cut; shares no code with the package.

One step has delta_1(v) = q (Phi(m - x) - g Phi(-x)) with g = (e^v - 1 + q) / q = e^{m x - m^2 / 2}, in 40 digits, and each
further one is an integral over its output: delta_k(v) = E_P delta_{k-1}(v - log f(x)). All terms are positive, so doubles keep
their digits at deltas of 1e-100; log delta_{k-1} is interpolated by Chebyshev polynomials on short intervals. To about 11 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
from numpy.polynomial import chebyshev, legendre
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_DEGREE, _NODES = 10, 10
_PANEL = 0.25  # of outputs, in units of the noise


def few_steps(sigma: float, rate: float, steps: int, y: float) -> float:
    """delta at y of so many steps, removal; `sigma` and `rate` are read as the doubles that they are."""
    m, least = 1 / sigma, math.log1p(-rate)
    delta = _one_step(m, rate)
    if steps == 1:
        return float(np.exp(delta(np.array([y]))[0]))
    x, log_weights, losses = _outputs(m, rate, y)
    for k in range(1, steps):
        tabled = _interpolated(delta, k * least, y - (steps - k) * least, rate * m)
        delta = _with_one_more(tabled, k * least, x, log_weights, losses)
    return float(np.exp(delta(np.array([y]))[0]))


def _one_step(m: float, rate: float) -> Callable[[Floats], Floats]:
    """log delta_1 above log(1 - q)."""

    def log_delta(v: float) -> float:
        with mpmath.workdps(40):
            g = (mpmath.expm1(v) + rate) / mpmath.mpf(rate)
            x = (mpmath.log(g) + mpmath.mpf(m) ** 2 / 2) / m
            return float(mpmath.log(rate * (mpmath.ncdf(m - x) - g * mpmath.ncdf(-x))))

    return lambda v: np.array([log_delta(float(at)) for at in v])


def _outputs(m: float, rate: float, y: float) -> tuple[Floats, Floats, Floats]:
    """Points for integrals over outputs, log of phi f times their weights, and log f."""
    last = (math.log(1 + y / rate) + m * m / 2) / m + 5
    # delta changes over losses of about q m: panels are as short as that where the loss is steep
    edges = [-9.0]
    while edges[-1] < last:
        slope = m * rate * math.exp(m * edges[-1] - m * m / 2)
        steep = slope < 3 * m * y  # beyond, one output is more than enough
        edges.append(edges[-1] + (min(_PANEL, max(rate * m, 0.02 * y) / slope) if steep else _PANEL))
    ends = np.array(edges)
    nodes, weights = legendre.leggauss(_NODES)
    half = np.diff(ends)[:, None] / 2
    x = ((ends[:-1] + ends[1:])[:, None] / 2 + half * nodes).ravel()
    losses = np.log1p(rate * np.expm1(m * x - m * m / 2))
    logs = np.log(half * weights).ravel() - x * x / 2 - math.log(2 * math.pi) / 2 + losses
    return x, logs, losses


def _interpolated(
    delta: Callable[[Floats], Floats], low: float, high: float, scale: float
) -> Callable[[Floats], Floats]:
    """log delta between low and high by polynomials on intervals of about `scale`, which grow with the distance from 0."""
    edges = [low]
    while edges[-1] < high:
        edges.append(edges[-1] + max(scale, 0.12 * edges[-1]) * (0.25 if len(edges) < 4 else 1.0))
    ends = np.array(edges)
    nodes = np.cos((np.arange(_DEGREE + 1) + 0.5) * math.pi / (_DEGREE + 1))
    at = (ends[:-1] + ends[1:])[:, None] / 2 + np.diff(ends)[:, None] / 2 * nodes
    values = delta(at.ravel()).reshape(at.shape)
    coefficients = chebyshev.chebfit(nodes, values.T, _DEGREE)

    def evaluate(v: Floats) -> Floats:
        place = np.clip(np.searchsorted(ends, v) - 1, 0, len(ends) - 2)
        t = (2 * v - ends[place] - ends[place + 1]) / (ends[place + 1] - ends[place])
        result: Floats = chebyshev.chebval(t, coefficients[:, place], tensor=False)
        return result

    return evaluate


def _with_one_more(
    tabled: Callable[[Floats], Floats], least: float, x: Floats, log_weights: Floats, losses: Floats
) -> Callable[[Floats], Floats]:
    """log of E_P delta(v - log f(x)); delta(v) = 1 - e^v where v is at most the least loss."""

    def evaluate(v: Floats) -> Floats:
        found = []
        for at in v.tolist():
            left = at - losses
            inside = left > least
            terms = log_weights.copy()
            terms[inside] += tabled(left[inside])
            terms[~inside] += np.log(-np.expm1(left[~inside]))
            top = terms.max()
            found.append(top + math.log(math.fsum(np.exp(terms - top))))
        return np.array(found)

    return evaluate
