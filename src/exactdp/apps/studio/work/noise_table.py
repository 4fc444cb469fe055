"""The noise along a directed path: parameter, standard error and 95% margin of every query."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from exactdp.apps.studio.work.designs import UNNUMBERED, Record
from exactdp.census.releases import Allocation
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

_OUTSIDE = 0.05
_DEVIATIONS = 1.959964
_FINE_NOISE = Fraction(
    10**6
)  # from this sigma2 on the margin is the continuous Gaussian's, with the half count of a continuity correction


def noise(allocation: Allocation) -> Record:
    """The noise of every query along one path."""
    return {
        "path": allocation.number if allocation.number < UNNUMBERED else None,
        "bypassed": list(allocation.bypassed),
        "rho": str(allocation.rho),
        "levels": [
            {
                "level": level,
                "rho": str(sum(queries.values(), Fraction(0))),
                "queries": [{"query": query, **noise_at(rho)} for query, rho in queries.items()],
            }
            for level, queries in allocation.table.items()
        ],
    }


@lru_cache(maxsize=4096)
def noise_at(rho: Fraction) -> Record:
    """The noise of one query with this budget.

    margin95: the least whole number that the noise exceeds in size with a probability of at most 5%.
    """
    mechanism = DiscreteGaussian(1 / rho)
    variance = mechanism.variance
    error = math.sqrt(variance)
    return {
        "rho": str(rho),
        "sigma2": str(mechanism.sigma2),
        "variance": variance,
        "standard_error": error,
        "margin95": _margin(mechanism, error),
    }


def _margin(mechanism: DiscreteGaussian, error: float) -> int:
    margin = max(math.ceil(_DEVIATIONS * error - 0.5), 0)
    if mechanism.sigma2 >= _FINE_NOISE:  # one count more or less is far below the digits shown
        return margin
    sizes = np.arange(1, margin + 10, dtype=np.float64)
    inside = mechanism.pmf(0) * (1 + 2 * np.cumsum(np.exp(-sizes * sizes / (2 * float(mechanism.sigma2)))))
    inside = np.concatenate(([mechanism.pmf(0)], inside))
    return int(np.searchsorted(inside, 1 - _OUTSIDE))
