"""The best noise: a table that is proved to meet a target, and a bound that no symmetric noise of whole numbers beats.

One release under (epsilon, delta): a linear program, whose table is as good as its bound but for a few millionths. Several
releases: the best of what a search found, and a bound; how far apart they are is told, not hidden. mu-GDP: a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, fraction, precision
from exactdp.doubles import Floats
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.best_noise.closed_bounds import affinity_bound, gaussian_affinity, stick_bound
from exactdp.guarantees.best_noise.composed_delta import ComposedDelta
from exactdp.guarantees.best_noise.linear_program import Stick, solve
from exactdp.guarantees.best_noise.lower_bound import Cost, NoiseBound
from exactdp.guarantees.best_noise.noise_table import NoiseTable
from exactdp.guarantees.best_noise.table_search import MOST_REACH, TableSearch, starts
from exactdp.guarantees.best_noise.three_outcomes import ThreeOutcomes, implied_points
from exactdp.guarantees.calibration import MeetsEpsilonDelta, MeetsMu, MeetsTradeOff, Target
from exactdp.guarantees.gaussian_dp import gdp_mu
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr, shown, whole
from exactdp.numerals import UP, at_least, at_most, percent

_MOST_SHIFTS = 8  # sensitivities up to which one release is asked for every shift
_NEAR = 1 - 1e-6  # ratios and deltas that a solver works with, so that its tolerances do not break the target
_MARGINS = (1 - 1e-6, 1 - 1e-4, 1 - 1e-2, 0.5)
_THRESHOLDS = 14  # epsilons of one release at which several are looked at
_SPREAD = 4.0  # standard deviations up to which
_MU_POINTS = 33
_NEARLY = Fraction(99, 100)  # of the variance of continuous Gaussian noise: a bound above it is not looked for further


@steady
@dataclass(frozen=True)
class OptimalNoise:
    """The best noise that was found for some counts, proved to meet the target, and the bound of all noise that does.

    `table` is None where no table was looked for, as under a mu, which no table of finitely many values meets: its ends tell data
    sets apart. The bound holds all the same.
    """

    _repr_html_ = repr_html
    __repr__ = exact_repr

    count: int
    sensitivity: int
    wanted: Target
    cost: Cost
    table: NoiseTable | None
    bound: NoiseBound

    @property
    def value(self) -> Fraction | float:
        """The mean cost of the noise found, exactly; infinite where none was."""
        return math.inf if self.table is None else self.table.mean(self.cost)

    @property
    def least(self) -> Fraction:
        """What no symmetric noise of whole numbers that meets the target is below, proved."""
        return self.bound.value

    def excess(self, value: Fraction | float) -> Fraction | float:
        """By how much of the best possible something is worse than that, at most; infinite where there is no bound."""
        if self.least == 0 or value == math.inf:
            return math.inf
        return Fraction(value) / self.least - 1

    def __str__(self) -> str:
        least = f"No symmetric noise has less {_NAMES[self.cost]} than {at_least(self.least)}."
        if self.table is None:
            why = ", and no table of finitely many values meets a mu" if isinstance(self.wanted, MeetsMu) else ""
            return f"{least} No table was found{why}."
        apart = self.excess(self.value)
        near = "" if apart == math.inf else f", within {percent(Fraction(apart), UP)} of the best possible"
        return f"{least} The table that was found has {at_most(self.value)}{near}."


_NAMES = {Cost.VARIANCE: "variance", Cost.ABSOLUTE: "mean absolute error"}


@steady
def optimal_noise(count: int, wanted: Target, sensitivity: int = 1, cost: Cost | str = Cost.VARIANCE) -> OptimalNoise:
    """The noise of least variance (or mean absolute error) for `count` counts under a target, and the bound of all such noise."""
    copies, shift = whole(count, "count", 1), whole(sensitivity, "sensitivity", 1)
    if cost not in tuple(Cost):
        raise InvalidInputError(f"The cost of noise is its variance or its absolute value. Found {shown(cost)}.")
    kind = Cost(cost)
    if isinstance(wanted, MeetsTradeOff):
        raise InvalidInputError(
            "The best noise is looked for under epsilon and delta, or a mu: an alpha with a beta is met in as many ways as there "
            f"are epsilons. Found alpha = {shown(wanted.alpha)}; ask for delta at an epsilon."
        )
    table = _found(copies, wanted, shift, kind)
    return OptimalNoise(copies, shift, wanted, kind, table, noise_bound(copies, wanted, shift, kind))


def noise_bound(copies: int, wanted: Target, shift: int = 1, cost: Cost = Cost.VARIANCE) -> NoiseBound:
    """The best bound that is known of the mean cost of all symmetric noise that meets the target; 0 where none is."""
    bounds = _bounds(copies, wanted, shift, cost)
    return max(bounds, key=lambda one: one.value, default=NoiseBound(cost, ()))


def _bounds(copies: int, wanted: Target, shift: int, cost: Cost) -> Iterator[NoiseBound]:
    """Bounds of which each is proved: the largest is the best."""
    if copies == 1:
        for point in implied_points(wanted):
            yield stick_bound(cost, shift, ratio_above(point.epsilon), point.delta)
    if isinstance(wanted, MeetsMu) and shift == 1 and cost is Cost.VARIANCE:
        near = affinity_bound(gaussian_affinity(wanted.mu, copies))
        yield near
        if copies > 1 and near.value * wanted.mu**2 > _NEARLY * copies:
            return
    reach = _reach(copies, wanted, shift)
    alone = copies == shift == 1 and isinstance(wanted, MeetsEpsilonDelta)  # what there is to say is said
    if reach <= 2 * MOST_REACH * shift and not alone:
        with suppress(AccuracyError):  # a solver may fail; the other bounds are as true as before
            yield solve(cost, reach, list(_sticks(copies, wanted, shift))).bound


def _sticks(copies: int, wanted: Target, shift: int) -> Iterator[Stick]:
    """What one release must meet: the target itself, for every shift, or what the test of three outcomes leaves of it."""
    if copies == 1:
        shifts = range(1, shift + 1) if shift <= _MOST_SHIFTS else [shift]
        points = implied_points(wanted, _MU_POINTS)
        yield from (Stick(d, ratio_above(p.epsilon), p.delta) for p in points for d in shifts)
        return
    tests = ThreeOutcomes(wanted, copies)
    farthest = _SPREAD * shift / _deviation(copies, wanted, shift)
    epsilons = {farthest * i / (_THRESHOLDS - 1) for i in range(_THRESHOLDS)}
    for point in implied_points(wanted):
        epsilons |= {float(point.epsilon) / n for n in range(max(copies - 3, 1), copies + 1)}
    for epsilon in sorted(epsilons):
        ratio = ratio_above(Fraction(epsilon))
        yield Stick(shift, ratio, tests.allowed(ratio))


def _deviation(copies: int, wanted: Target, shift: int) -> float:
    """About the standard deviation of Gaussian noise that meets the target."""
    return shift * math.sqrt(copies) / _mu(wanted)


def _mu(wanted: Target) -> float:
    if isinstance(wanted, MeetsMu):
        return float(wanted.mu)
    return min(gdp_mu(p.epsilon, p.delta) for p in implied_points(wanted))


def _reach(copies: int, wanted: Target, shift: int) -> int:
    """Outcomes beyond it do not matter to good noise. Heuristic: affects the quality of what is found only."""
    gaussian = 7 * _deviation(copies, wanted, shift)
    if copies == 1 and isinstance(wanted, MeetsEpsilonDelta):
        narrow = math.log(1 / wanted.delta) / max(float(wanted.epsilon), 1e-9) + 3
        gaussian = min(gaussian, shift * narrow, shift * (1 / float(wanted.delta) + 2))
    return math.ceil(gaussian) + 2 * shift


def _found(copies: int, wanted: Target, shift: int, cost: Cost) -> NoiseTable | None:
    """The best table that is found and proved, if any is looked for."""
    tables: Iterator[NoiseTable | None] = iter(())
    if isinstance(wanted, MeetsEpsilonDelta) and copies == 1:
        tables = iter([_by_program(wanted, shift, cost)])
    elif isinstance(wanted, MeetsEpsilonDelta) and shift == 1:
        tables = _by_search(copies, wanted, cost)
    return min((one for one in tables if one), key=lambda table: table.mean(cost), default=None)


def _by_program(wanted: MeetsEpsilonDelta, shift: int, cost: Cost) -> NoiseTable | None:
    """One release: the table of a linear program, with a little more noise until the engine proves it for every shift."""
    reach = _reach(1, wanted, shift)
    if reach > MOST_REACH or shift > _MOST_SHIFTS:
        return None
    delta, shifts = float(wanted.delta), range(1, shift + 1)
    sizes = np.maximum(np.exp(-float(wanted.epsilon) / shift * np.arange(reach + 1)), delta)
    for margin in _MARGINS:
        ratio, allowed = ratio_above(wanted.epsilon) * Fraction(_NEAR), wanted.delta * Fraction(margin)
        try:
            half = solve(cost, reach, [Stick(d, ratio, allowed) for d in shifts], sizes=sizes / sizes.sum()).half
        except AccuracyError:
            continue
        table = NoiseTable.rounded(half, delta)
        if all(wanted.holds(Composition([table.mechanism(d)])) for d in shifts):
            return table
    return None


def _by_search(copies: int, wanted: MeetsEpsilonDelta, cost: Cost) -> Iterator[NoiseTable | None]:
    """Several releases: from each start the table that the search ends with, and the start itself."""
    delta = float(wanted.delta)
    composed = ComposedDelta(copies, float(wanted.epsilon))
    for start in starts(composed, delta, copies / _mu(wanted) ** 2):
        search = TableSearch(cost, composed, delta, start)
        for half in (start, search.improved()):
            yield _proved(search, half, copies, wanted, delta)


def _proved(
    search: TableSearch, half: Floats, copies: int, wanted: MeetsEpsilonDelta, delta: float
) -> NoiseTable | None:
    """The table with a little more or less noise, so that the engine proves the target, nearly exhausted."""
    aim, best = delta, None
    for _ in range(4):
        restored = search.restored(half, aim)
        if restored is None:
            return best
        table = NoiseTable.rounded(restored, delta)
        upper = Composition({table.mechanism(): copies}).delta_bounds(wanted.epsilon).upper
        if upper <= wanted.delta:
            best = table
            if upper > 0.9999 * delta:
                return best
        aim *= min(delta / max(upper, 1e-300), 1.5) * (1 - 1e-6)
    return best


def ratio_above(epsilon: Fraction) -> Fraction:
    """A little more than e^epsilon: what meets (epsilon, delta) meets it with this ratio too."""
    with precision(BITS):
        return fraction(ball(epsilon).exp().upper())
