"""The path by which users know what zCDP and the continuous Gaussian imply (guarantees/zcdp, guarantees/gaussian_estimates)."""

from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_delta, gaussian_epsilon, gaussian_log_delta
from exactdp.guarantees.zcdp import (
    zcdp_beta,
    zcdp_delta,
    zcdp_delta_simple,
    zcdp_epsilon,
    zcdp_epsilon_simple,
    zcdp_log_delta,
)

__all__ = [
    "gaussian_beta",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "zcdp_beta",
    "zcdp_delta",
    "zcdp_delta_simple",
    "zcdp_epsilon",
    "zcdp_epsilon_simple",
    "zcdp_log_delta",
]
