"""The continuous Gaussian mechanism: delta in relative terms, without cancellation. Estimates: accurate, not certified."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

from exactdp.doubles import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def gaussian_logs(mu: float, e: float) -> tuple[float, float]:
    """log delta and log(1 - delta) of the continuous Gaussian at epsilon = e.

    With a = e/mu - mu/2, b = a + mu and Mills' ratio m = (1 - Phi)/phi: delta = phi(a) (m(a) - m(b)), and for small mu the
    difference is the integral of -m'(x) = 1 - x m(x) from a to b.
    """
    if e < 0:  # 1 - delta(e) = e^e (1 - delta(-e))
        log_rest = e + gaussian_logs(mu, -e)[1]
        return (math.log(-math.expm1(log_rest)) if log_rest else -math.inf), log_rest
    if not mu or e / mu > 1e100:
        return -math.inf, 0.0
    a, b = e / mu - mu / 2, e / mu + mu / 2
    log_density = -a * a / 2 - math.log(2 * math.pi) / 2
    if mu >= 0.5 and a < 0:
        log_rest = float(np.logaddexp(log_ndtr(a), log_density + math.log(_mills(b))))
        return math.log1p(-math.exp(log_rest)), log_rest
    fall = _mills(a) - _mills(b) if mu >= 0.5 else mu / 2 * (_WEIGHTS @ _mills_slope(a + mu / 2 * (1 + _NODES)))
    log_delta = log_density + math.log(fall)
    return log_delta, math.log1p(-math.exp(log_delta))


def gaussian_log_deltas(mu: float, epsilons: Floats) -> Floats:
    """log delta at many epsilons from 0 on, for searches: as a difference, which loses digits where mu is small."""
    first, second = log_ndtr(mu / 2 - epsilons / mu), epsilons + log_ndtr(-mu / 2 - epsilons / mu)
    result: Floats = first + np.log1p(-np.exp(second - first))
    return result


def _mills(x: Any) -> Any:
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _mills_slope(x: Floats) -> Floats:
    """1 - x m(x), by its asymptotic series where that would cancel."""
    inverse, series = np.maximum(x, 25.0) ** -2, np.ones_like(x)
    for k in range(19, 1, -2):
        series = 1 - k * inverse * series
    result: Floats = np.where(x < 25, 1 - x * _mills(x), inverse * series)
    return result
