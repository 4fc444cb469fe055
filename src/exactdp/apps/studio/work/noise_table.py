"""The noise along a directed path: parameter, standard error and 95% margin of every query."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from exactdp.apps.studio.work.designs import UNNUMBERED, Record
from exactdp.census.margins import margin95
from exactdp.census.releases import Allocation
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian


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
    return {
        "rho": str(rho),
        "sigma2": str(mechanism.sigma2),
        "variance": mechanism.variance,
        "standard_error": math.sqrt(mechanism.variance),
        "margin95": margin95(mechanism),
    }
