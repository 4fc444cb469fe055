"""Independent answers for a few steps of a sampled Gaussian with whatever noise, without a transform, a tilt or a grid of losses;
shares no code with the package.

As recursion_oracle.py, delta_k(v) = E_P delta_{k-1}(v - log f(x)) by integrals over outputs, but log delta_{k-1} is interpolated
in the logarithm of the distance to the least loss, and panels of outputs become short towards the output that decides alone. To
11 digits with little noise, too, where the other oracle has three.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev, legendre
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

Floats = NDArray[np.float64]
_DEGREE, _NODES = 10, 12
_PANEL = 0.4  # of outputs, in units of the noise
_LOWEST = -10.0  # output


def few_steps(sigma: float, rate: float, steps: int, y: float) -> float:
    """delta at y of so many steps, removal; `sigma` and `rate` are read as the doubles that they are."""
    m, least = 1 / sigma, math.log1p(-rate)
    delta: Callable[[Floats], Floats] = lambda v: _one_step(m, rate, v)  # noqa: E731
    for k in range(1, steps - 1):
        tabled = _tabled(delta, k, m, rate, y - (steps - k) * least)
        delta = lambda v, tabled=tabled, k=k: _one_more(tabled, (k + 1) * least, m, rate, v)  # type: ignore[misc] # noqa: E731
    if steps > 1:
        tabled = _tabled(delta, steps - 1, m, rate, y - least)
        return float(np.exp(_one_more(tabled, steps * least, m, rate, np.array([y]))[0]))
    return float(np.exp(delta(np.array([y]))[0]))


def _output(m: float, rate: float, v: Floats) -> Floats:
    """Where log f = v."""
    found: Floats = (np.log((np.expm1(v) + rate) / rate) + m * m / 2) / m
    return found


def _one_step(m: float, rate: float, v: Floats) -> Floats:
    """log of rate (Phi(m - x) - g Phi(-x)): by Mills's ratio where x is positive."""
    x = _output(m, rate, v)
    far = np.maximum(x, 0.0)
    ratio = math.sqrt(math.pi / 2) * (erfcx((far - m) / math.sqrt(2)) - erfcx(far / math.sqrt(2)))
    by_ratio = np.log(ratio) - (far - m) ** 2 / 2 - math.log(2 * math.pi) / 2
    near = np.minimum(x, 0.0)
    return np.where(x > 0, by_ratio, np.log(ndtr(m - near) - np.exp(m * near - m * m / 2) * ndtr(-near))) + math.log(
        rate
    )


def _tabled(
    delta: Callable[[Floats], Floats], k: int, m: float, rate: float, high: float
) -> Callable[[Floats], Floats]:
    """log delta_k from the least loss to `high`, by polynomials in the logarithm of the distance to the least loss."""
    least = k * math.log1p(-rate)
    low = math.log(rate) + m * _LOWEST - m * m / 2
    edges = [low]
    while edges[-1] <= math.log(high - least):
        edges.append(edges[-1] + min(0.2 * min(m, 1.0), 0.4 * math.exp(-edges[-1])))
    ends = np.array(edges)
    nodes = np.cos((np.arange(_DEGREE + 1) + 0.5) * math.pi / (_DEGREE + 1))
    at = (ends[:-1] + ends[1:])[:, None] / 2 + np.diff(ends)[:, None] / 2 * nodes
    values = delta(least + np.exp(at.ravel())).reshape(at.shape)
    coefficients = chebyshev.chebfit(nodes, values.T, _DEGREE)

    def evaluate(above: Floats) -> Floats:
        """At so much above the least loss."""
        logs = np.log(np.maximum(above, 1e-300))
        place = np.clip(np.searchsorted(ends, logs) - 1, 0, len(ends) - 2)
        t = (2 * logs - ends[place] - ends[place + 1]) / (ends[place + 1] - ends[place])
        with np.errstate(over="ignore", invalid="ignore"):
            inside = chebyshev.chebval(t, coefficients[:, place], tensor=False)
        return np.where(logs > low, inside, np.log(-np.expm1(np.minimum(least + above, -1e-300))))

    return evaluate


def _one_more(tabled: Callable[[Floats], Floats], least: float, m: float, rate: float, v: Floats) -> Floats:
    """log of E_P delta_k(v - log f(x)), least the least loss of k + 1 steps: by outputs up to the one that decides alone, in
    panels that become short towards it, and beyond it, where delta_k is 1 - e^{v - log f}."""
    nodes, weights = legendre.leggauss(_NODES)
    found = []
    for at in v.tolist():
        above = at - least
        decides = float(_output(m, rate, np.array([math.log1p(-rate) + above]))[0])
        short = 2.0 ** -np.arange(0, max(12, math.ceil(-math.log2(rate) + 16)))
        many = math.ceil(max(decides - 1 - _LOWEST, 0.0) / _PANEL) + 1
        before = np.linspace(min(_LOWEST, decides - 2.0), decides - 1.0, many)
        after = decides + np.arange(0.0, max(9.0 - decides, 7.0), _PANEL)
        edges = np.concatenate([before[:-1], decides - short, after])
        half = np.diff(edges)[:, None] / 2
        x = ((edges[:-1] + edges[1:])[:, None] / 2 + half * nodes).ravel()
        losses = np.log1p(rate * np.expm1(m * x - m * m / 2))
        # log f(decides) - log f, without a cancellation close to the output that decides and far from it
        base = math.exp(m * decides - m * m / 2) * rate
        close = -np.log1p(base / (1 - rate + base) * np.expm1(np.maximum(m * (x - decides), -1.0)))
        left = np.where(m * (x - decides) > -1.0, close, math.log1p(-rate) + above - losses)
        terms = np.log((half * weights).ravel()) - x * x / 2 - math.log(2 * math.pi) / 2 + losses
        inside = x < decides
        terms[inside] += tabled(left[inside])
        terms[~inside] += np.log(-np.expm1(at - losses[~inside]))
        top = terms.max()
        found.append(top + math.log(math.fsum(np.exp(terms - top))))
    return np.array(found)
