"""The full path with itself as a proxy for all pairs: how far it is from the overall guarantee, by certified bounds.

The paper (arXiv:2606.29835, Section 5.3) advises to tune with this one pair. Whether that is good advice depends on the design,
so both differences are bounded for the design at hand, at each delta and alpha that is asked for, and no further.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.census.pair_results import Interval
from exactdp.census.study import Study
from exactdp.numbers import exact_repr


@dataclass(frozen=True)
class ProxyRow:
    """A quantity of the proxy and of the whole release at one argument, and how much worse the release can be."""

    __repr__ = exact_repr

    at: Fraction
    proxy: Interval
    overall: Interval
    difference: float
    """An upper bound of |overall - proxy|, relative to the size of the proxy's value; infinite where that may be 0."""


def understated(proxy: Interval, overall: Interval) -> float:
    """How much larger the overall epsilon can be than that of the proxy, relative to the latter's size, rounded up."""
    return _relative(Fraction(overall[1]) - Fraction(proxy[0]), proxy)


def epsilon_rows(study: Study) -> list[ProxyRow]:
    """epsilon of the proxy and of all pairs at every delta of the study."""
    own, overall = study.result(study.release.proxy_pair).epsilon, study.largest("epsilon")
    return [
        ProxyRow(delta, pair, all_pairs, understated(pair, all_pairs))
        for delta, pair, all_pairs in zip(study.grids.deltas, own, overall, strict=True)
    ]


def beta_rows(study: Study, alphas: Iterable[Fraction]) -> list[ProxyRow]:
    """beta of the proxy and of the convex envelope over all pairs at every alpha: the proxy's is the larger one."""
    rows = []
    for alpha in alphas:
        own, overall = (tuple(source.beta_bounds(alpha)) for source in (study.release.proxy, study))
        rows.append(ProxyRow(alpha, own, overall, _relative(Fraction(own[1]) - Fraction(overall[0]), own)))
    return rows


def _relative(difference: Fraction, size: Interval) -> float:
    """difference / |size| for the smallest size within the bounds, rounded up."""
    low, high = map(Fraction, size)
    if low <= 0 <= high:
        return math.inf
    return math.nextafter(float(difference / min(abs(low), abs(high))), math.inf)
