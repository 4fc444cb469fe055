"""Which mechanisms of a composition share a lattice that is coarse enough to be written down, point by point.

Budgets are decimals, so most losses are multiples of 1/1000 or so, and sums of them have few values however many they are. What
is not on that lattice, such as a budget that was passed on from a level to the next, is listed. Heuristic: affects speed only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from exactdp.doubles import UNDERFLOW
from exactdp.engine.line.total_loss import TotalLoss

MOST_POINTS = 2_000_000
"""Points of the lattice."""

MOST_LISTED = 7_000_000
"""Values of all that is not on it."""

_MOST_PARTS = 48  # beyond, losses are smooth, and other methods are quick
_MOST_WORK = 2.5e9  # about two seconds
_LATTICE_REACH = 9.0  # deviations of what is on the lattice
_LIST_REACH = (58.0, 3.0)  # square of the reach of a list, in deviations: for no dimension, and for each
_LEAST_DEVIATION = 0.35  # noise that is nearly constant has some values all the same
_PEAK_REACH = 8.4  # deviations of a phase from a peak within which a node is above e^-35
_MANY_NODES = 1e5
_ADDING, _POINT = 0.7, 200.0  # about nanoseconds: a product added, all else for a point
_LISTING, _ASKING = 300.0, 1500.0  # a value listed and counted, and a value asked where there are fewer than points


def most_nodes_matter(total: TotalLoss, nodes: float) -> bool:
    """Whether a Fourier sum of so many nodes would keep very many: noise so coarse that few phases are far from a peak."""
    few = few_nodes(nodes)
    return log_share_that_matters(total, few) > few


def few_nodes(nodes: float) -> float:
    """log of the share of so many nodes that a Fourier sum does not mind. Heuristic: affects speed only."""
    return math.log(_MANY_NODES / nodes)


def log_share_that_matters(total: TotalLoss, few: float = -math.inf) -> float:
    """log of about the share of the nodes of a Fourier sum that are not negligible; of a share below `few` only that it is.

    Heuristic: affects speed only.
    """
    known = ((part, part.loss.step) for part in total.parts)
    deviations = (
        math.sqrt(part.count * part.loss.mean_variance(-0.5)[1]) / float(step)
        for part, step in known
        if step is not None
    )
    return log_share(deviations, few)


def log_share(deviations: Iterable[float], few: float = -math.inf) -> float:
    """The same from the deviation of each part in its own steps. Heuristic: affects speed only."""
    logs = 0.0
    for deviation in deviations:
        logs += min(0.0, math.log(_PEAK_REACH / max(math.pi * deviation, UNDERFLOW)))
        if logs <= few:
            break
    return logs


@dataclass(frozen=True)
class LatticeDivision:
    """The step of a lattice, and how many steps the unit of each part has, 0 for parts that are listed."""

    step: Fraction
    strides: tuple[int, ...]
    points: float
    listed: float
    work: float


def divided(total: TotalLoss) -> LatticeDivision | None:
    """The best division of the parts; None where all are too many, or where a loss has no rational unit."""
    units = [part.loss.step for part in total.parts]
    known = [u for u in units if u is not None]
    if not known or len(known) < len(units) or len(units) > _MOST_PARTS:
        return None
    scale = math.lcm(*(u.denominator for u in known))
    whole = [int(u * scale) for u in known]
    sizes = _Sizes(total, whole)
    steps = {math.gcd(*pair) for pair in combinations(whole, 2)} | {math.gcd(*whole), *whole}
    found = [(sizes.work(step), step) for step in sorted(steps)]
    (work, points, listed), step = min(found)
    if points > MOST_POINTS or listed > MOST_LISTED or work > _MOST_WORK:
        return None
    strides = tuple(0 if n % step else n // step for n in whole)
    return LatticeDivision(Fraction(step, scale), strides, points, listed, work)


class _Sizes:
    """How many points and values there are, and about how long they take in nanoseconds."""

    def __init__(self, total: TotalLoss, units: list[int]) -> None:
        self._units = units
        steps = [math.sqrt(p.count * p.loss.mean_variance(-0.5)[1]) / abs(float(p.loss.step or 1)) for p in total.parts]
        self._steps = [max(s, _LEAST_DEVIATION) for s in steps]

    def work(self, step: int) -> tuple[float, float, float]:
        """Nanoseconds, points and values for a lattice of this step."""
        if max((n for n in self._units if n % step == 0), default=0) > MOST_POINTS * step:
            return math.inf, math.inf, math.inf
        on = [(n / step, s) for n, s in zip(self._units, self._steps, strict=True) if n % step == 0]
        off = [s for n, s in zip(self._units, self._steps, strict=True) if n % step]
        points = 2 * _LATTICE_REACH * math.sqrt(math.fsum((n * s) ** 2 for n, s in on)) + 1
        d = len(off)
        reach = math.sqrt(_LIST_REACH[0] + _LIST_REACH[1] * d)
        ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
        listed = math.exp(min(ball + math.fsum(math.log(reach * s) for s in off), 700.0))
        adding = points * math.fsum(2 * _LATTICE_REACH * s for _, s in on) * _ADDING
        return adding + _POINT * points + _LISTING * listed + _ASKING * min(listed, points / 2), points, listed
