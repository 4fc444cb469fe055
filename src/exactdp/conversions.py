"""What other definitions of privacy imply: zCDP and the continuous Gaussian, as epsilon, delta and trade-off curves.

The `zcdp_*` functions take the parameter rho of zero-concentrated differential privacy and return bounds on the safe side
(epsilon and delta rounded up, beta rounded down), proved by ball arithmetic. `zcdp_beta_estimate` and the `gaussian_*` functions
are estimates: accurate, not certified. Formulas and proofs: docs/theory/conversions.md.

rho and mu are single numbers (0, or at least 1e-100); epsilon, delta and alpha are numbers or arrays, all read exactly.
Corners as in `Composition`: delta = 0 gives epsilon = inf, delta = 1 gives -inf, delta above delta(0) gives a negative
epsilon, epsilon = inf gives delta = 0 and -inf gives 1, and beta is 1 - alpha at alpha = 0 and 1. rho = 0 means that nothing
is learnt: epsilon(0) = 0 and beta = 1 - alpha.
"""

from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_delta, gaussian_epsilon, gaussian_log_delta
from exactdp.guarantees.zcdp import (
    zcdp_beta,
    zcdp_beta_estimate,
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
    "zcdp_beta_estimate",
    "zcdp_delta",
    "zcdp_delta_simple",
    "zcdp_epsilon",
    "zcdp_epsilon_simple",
    "zcdp_log_delta",
]
