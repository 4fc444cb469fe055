"""The continuous Gaussian's delta, epsilon and beta at a given mu. Estimates: accurate, not certified, unlike gaussian_dp."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from scipy.special import ndtr, ndtri_exp

from exactdp.arithmetic_state import steady
from exactdp.doubles import root
from exactdp.elementwise import each_rounded
from exactdp.guarantees.zcdp import least_epsilon
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.numbers import Number, log_rational, read_alpha, read_epsilon, zero_or_between


def gaussian_mu(rho: Fraction | float) -> float:
    """mu of the continuous Gaussian with this rho: sqrt(2 rho)."""
    return math.sqrt(2 * rho)


@steady
def gaussian_delta(mu: Number, epsilon: Any) -> Any:
    """delta of the continuous Gaussian mechanism of sensitivity / sigma = mu. Estimate: accurate to about 1e-12, not certified.

    Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2), computed without cancellation (Balle & Wang 2018).

    >>> f"{gaussian_delta(1, 5):.6e}"
    '5.793722e-07'
    """
    m = _mu(mu)
    return each_rounded(epsilon, read_epsilon, lambda es: [math.exp(gaussian_logs(m, float(e))[0]) for e in es])


@steady
def gaussian_log_delta(mu: Number, epsilon: Any) -> Any:
    """The natural logarithm of `gaussian_delta`, also where that is below the double range. Estimate: not certified."""
    m = _mu(mu)
    return each_rounded(epsilon, read_epsilon, lambda es: [gaussian_logs(m, float(e))[0] for e in es])


@steady
def gaussian_epsilon(mu: Number, delta: Any) -> Any:
    """epsilon of the continuous Gaussian mechanism: the inverse of `gaussian_delta`. Estimate: not certified.

    >>> round(gaussian_epsilon(10**0.5, 1e-10), 3)
    24.57
    """

    m = _mu(mu)

    def at(d: Fraction) -> float:
        log_rest = log_rational(1 - d)
        if not m:
            return log_rest
        side = 1 if 2 * d > 1 else 0  # solve for 1 - delta when that is the smaller one
        target = log_rest if side else log_rational(d)
        low, high = log_rest * (1 + 1e-9), m * m / 2 + m * math.sqrt(-2 * log_rational(d))  # log(1 - delta); Chernoff
        return root(lambda e: gaussian_logs(m, e)[side] - target, low, high)

    return least_epsilon(m, delta, at)


@steady
def gaussian_beta(mu: Number, alpha: Any) -> Any:
    """The trade-off curve Phi(Phi^{-1}(1 - alpha) - mu) of mu-GDP (Dong, Roth & Su 2022). Estimate: not certified.

    >>> round(gaussian_beta(1, 0.05), 6)
    0.740489
    """
    m = _mu(mu)

    def at(a: Fraction) -> float:
        if a in (0, 1) or not m:
            return float(1 - a)
        quantile = ndtri_exp(log_rational(1 - a)) if 2 * a > 1 else -ndtri_exp(log_rational(a))
        return min(float(ndtr(quantile - m)), float(1 - a))

    return each_rounded(alpha, read_alpha, lambda alphas: [at(a) for a in alphas])


def _mu(value: object) -> float:
    return float(zero_or_between(value, "mu", Fraction(1, 10**100), Fraction(10**6)))
