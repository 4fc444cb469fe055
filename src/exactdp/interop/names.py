"""Conversions under the names that users of riskcal and AutoDP know, with their order of arguments. All are on the safe side.

beta and Bayes risk are lower bounds, advantage, epsilon and delta upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import ball, precision, upper_double
from exactdp.guarantees.epsilon_delta import fdp_beta
from exactdp.guarantees.gaussian_dp import gdp_beta, gdp_delta
from exactdp.guarantees.renyi import rdp_delta, rdp_epsilon
from exactdp.guarantees.risk import bayes_risk
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_delta
from exactdp.numbers import Number, read_delta, read_epsilon, read_share


@steady
def get_beta_from_gdp(mu: Number, alpha: Number) -> float:
    """The type II error at alpha under mu-GDP."""
    return gdp_beta(mu, alpha)


@steady
def get_advantage_from_gdp(mu: Number) -> float:
    """The advantage under mu-GDP: delta at epsilon = 0."""
    return gdp_delta(mu, 0)


@steady
def get_bayes_risk_from_gdp(mu: Number, prior: Number) -> float:
    """The least error of an attacker with this prior under mu-GDP: p (1 - delta(log((1 - p)/p)))."""
    return bayes_risk(lambda epsilon: (0, gdp_delta(mu, epsilon)), read_share(prior, "prior"))[0]


@steady
def get_beta_from_adp(epsilon: Number, delta: Number, alpha: Number) -> float:
    """The type II error at alpha under (epsilon, delta)-DP."""
    return fdp_beta([(epsilon, delta)], alpha)


@steady
def get_advantage_from_adp(epsilon: Number, delta: Number) -> float:
    """The advantage under (epsilon, delta)-DP: (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), from 0 to 1."""
    e, d = read_epsilon(epsilon), read_delta(delta)
    if e == math.inf:
        return 1.0
    with precision(192):
        x = arb(e) if isinstance(e, float) else ball(e)
        value = (x.expm1() + 2 * ball(d)) / (x.exp() + 1)
        return min(max(upper_double(value), 0.0), 1.0)


@steady
def get_beta_from_zcdp(rho: Number, alpha: Number) -> float:
    """The type II error at alpha under rho-zCDP."""
    return float(zcdp_beta(rho, alpha))


@steady
def get_advantage_from_zcdp(rho: Number) -> float:
    """The advantage that the moments of rho-zCDP allow: delta at epsilon = 0."""
    return float(zcdp_delta(rho, 0))


@steady
def rdp_to_approxdp(divergences: Mapping[Number, Number], delta: Number) -> float:
    """epsilon at delta from Renyi divergences by order."""
    return rdp_epsilon(divergences, delta)


@steady
def rdp_to_delta(divergences: Mapping[Number, Number], epsilon: Number) -> float:
    """delta at epsilon from Renyi divergences by order."""
    return rdp_delta(divergences, epsilon)


@steady
def puredp_to_fdp(epsilon: Number, alpha: Number) -> float:
    """The type II error at alpha under pure epsilon-DP."""
    return fdp_beta([(epsilon, 0)], alpha)
