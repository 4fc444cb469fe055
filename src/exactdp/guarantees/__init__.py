"""Conversions between kinds of guarantees, each with its proof on its safe side (docs/theory/conversions.md).

    Renyi DP               rdp_epsilon, rdp_epsilon_simple, rdp_delta, rdp_delta_simple
    Gaussian DP            gdp_delta, gdp_epsilon, gdp_beta, gdp_mu: certified, unlike the estimates gaussian_* of conversions.py
    (epsilon, delta)       fdp_beta: the trade-off curve of a family of pairs;  fdp_delta: back again

Every Renyi order is valid, so the least over the orders given is; balls round the result up. Numbers are read as exact rationals.
"""

from exactdp.guarantees.epsilon_delta import fdp_beta, fdp_delta
from exactdp.guarantees.gaussian_dp import gdp_beta, gdp_delta, gdp_epsilon, gdp_mu
from exactdp.guarantees.renyi import rdp_delta, rdp_delta_simple, rdp_epsilon, rdp_epsilon_simple

__all__ = [
    "fdp_beta",
    "fdp_delta",
    "gdp_beta",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_mu",
    "rdp_delta",
    "rdp_delta_simple",
    "rdp_epsilon",
    "rdp_epsilon_simple",
]
