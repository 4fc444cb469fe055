"""All pairs of a family at once.

The members of a family are compositions with the same spread; a pair is the composition of two of them. The moment
function of a pair is the product of its members', so on a common period T every member is sieved and evaluated once for a
tilt and serves all its pairs. The ladder of tilts depends on the spread alone, so all pairs share it too.

A node within a pair's budget B is within B/2 for one of its two members (their penalties add up), so the nodes of
the members at half the budget, tested against every partner, include every node of every pair
(docs/theory/engine.md, "All pairs at once").
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactdp.engine.bracket import Bracket
from exactdp.engine.contours import Values
from exactdp.engine.float64 import BLOCK, Sums, Totals, mirror_weights, summands, whole_shift
from exactdp.engine.lattice import Group, Lattice, common_step
from exactdp.engine.moments import UNIT, log_moments
from exactdp.engine.payoff import Payoff, Threshold, transform_corners, transform_factors
from exactdp.engine.plan import TOLERANCE, Plan, choose_nodes, log_aliasing, log_expected, typical_transform
from exactdp.engine.sieve import (
    Bands,
    Ints,
    PeakBounds,
    angles,
    distinct,
    make_bands,
    peak_bounds,
    phases,
    ranges,
    sieve,
)
from exactdp.engine.tilt import Rung, rung, rung_index
from exactdp.errors import LatticeTooFineError
from exactdp.mechanisms.theta import Complexes, Floats

LARGEST_PERIOD_STEPS = 3_000_000_000
"""Nodes of the common period beyond which products of nodes and strides would leave 64 bits."""

SPACING = 3.0
"""Between rungs, in standard deviations. Wider than for one composition: planning a rung costs more than a digit is worth."""

_FARTHEST = 60.0  # in standard deviations; exp(-1800)
_NO_RUNG = -1
_CONTOURS_HELD = 8
_HEAVY = 30_000  # nodes of a member over which its pairs are sieved one by one
_MATRIX = 1 << 19


@dataclass(frozen=True)
class Family:
    """Compositions of which any two may be released together."""

    members: tuple[tuple[Group, ...], ...]
    _contours: OrderedDict[tuple[Payoff, int], FamilyContour] = field(
        default_factory=OrderedDict, repr=False, compare=False
    )

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All unordered pairs of members by position, those with themselves included."""
        n = len(self.members)
        return tuple((i, j) for i in range(n) for j in range(i, n))

    @cached_property
    def own(self) -> tuple[Lattice, ...]:
        """The members on lattices of their own."""
        return tuple(Lattice(groups) for groups in self.members)

    @cached_property
    def unit(self) -> Fraction:
        """The step of the lattice that holds all members."""
        return common_step(lattice.step for lattice in self.own)

    @cached_property
    def lattices(self) -> tuple[Lattice, ...]:
        """The members on the common lattice."""
        return tuple(Lattice(groups, self.unit) for groups in self.members)

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The step of each pair."""
        return tuple(common_step((self.own[i].step, self.own[j].step)) for i, j in self.pairs)

    @cached_property
    def step_of(self) -> tuple[tuple[Fraction, ...], Ints]:
        """The distinct steps, and for each pair which of them is its own."""
        distinct = tuple(sorted(set(self.steps)))
        place = {step: i for i, step in enumerate(distinct)}
        return distinct, np.array([place[step] for step in self.steps], dtype=np.int64)

    @cached_property
    def typical(self) -> tuple[Lattice, ...]:
        """For each distinct step the lattice of one pair that has it: it stands for all where only step and spread matter."""
        distinct, which = self.step_of
        first = [int(np.argmax(which == i)) for i in range(len(distinct))]
        return tuple(self.lattice(p) for p in first)

    @cached_property
    def can_share(self) -> bool:
        """Whether contours can be shared: one spread, smooth noise (so that the tilts fit all pairs), a common period."""
        if len({lattice.spread for lattice in self.own}) > 1 or not all(lattice.is_smooth for lattice in self.own):
            return False
        try:  # periods are from about 8 to a few hundred standard deviations long
            short, long = (_common_period(self, Fraction(n * math.sqrt(self.typical[0].r))) for n in (8, 500))
        except LatticeTooFineError:
            return False
        return short[1] < long[1]

    def groups(self, pair: int) -> tuple[Group, ...]:
        """The mechanisms of a pair."""
        counts: Counter[tuple[Fraction, int]] = Counter()
        for member in self.pairs[pair]:
            for g in self.members[member]:
                counts[g.sigma2, g.sensitivity] += g.count
        return tuple(Group(*kind, count) for kind, count in sorted(counts.items()))

    def lattice(self, pair: int) -> Lattice:
        """The lattice of a pair."""
        return Lattice(self.groups(pair))

    def contour(self, payoff: Payoff, index: int) -> FamilyContour:
        """The shared contour of one rung."""
        if (payoff, index) not in self._contours:
            while len(self._contours) >= _CONTOURS_HELD:
                self._contours.popitem(last=False)
            self._contours[payoff, index] = FamilyContour.plan(self, rung(self.typical[0], payoff, index, SPACING))
        self._contours.move_to_end((payoff, index))
        return self._contours[payoff, index]

    def evaluate(self, payoff: Payoff, pairs: Ints, thresholds: list[Threshold]) -> Values:
        """Certified values, one for each pair and threshold given; a threshold belongs to the lattice of its pair.

        Results do not depend on what is asked together. Beyond the farthest tail the bounds are 0 and 1.
        """
        which = self.step_of[1][pairs]
        rungs: dict[tuple[int, int], int] = {}
        questions: dict[int, list[int]] = {}
        for i, (step, threshold) in enumerate(zip(which.tolist(), thresholds, strict=True)):
            key = (step, threshold.steps)
            if key not in rungs:
                lattice = self.typical[step]
                x = float(threshold.steps * lattice.step)
                near = x * x < _FARTHEST**2 * lattice.r
                rungs[key] = rung_index(lattice, payoff, x, SPACING) if near else _NO_RUNG
            questions.setdefault(rungs[key], []).append(i)
        parts = np.repeat([[0.0], [0.0], [1.0], [0.0]], len(thresholds), axis=1)
        questions.pop(_NO_RUNG, None)
        for index, members in questions.items():
            contour = self.contour(payoff, index)
            for place, sums in contour.evaluate(pairs[members], [thresholds[i] for i in members]):
                with np.errstate(divide="ignore", invalid="ignore"):
                    parts[:, np.array(members)[place]] = sums.log_scale, sums.lower, sums.upper, sums.slope / sums.value
        return Values(Bracket(parts[0], parts[1], parts[2]), np.nan_to_num(parts[3], posinf=0.0))


@dataclass(frozen=True)
class _Terms:
    """The nodes of all pairs one pair after the other, and what the payoff's coefficients multiply there."""

    first: Ints
    """Where each pair's nodes begin."""
    count: Ints
    node: Ints
    for_a: Complexes
    for_b: Complexes
    totals: Floats
    """For each pair: sum of |for_a|, of |for_b|, of the error of for_a and of for_b."""


@dataclass(frozen=True)
class FamilyContour:
    """One tilt and one period for all pairs: which nodes each pair keeps, and the bounds on what it drops."""

    family: Family
    plans: tuple[Plan, ...]
    """For each distinct step a plan without nodes: tilt, N, and the bound on dropped nodes that holds for all its pairs."""
    nodes: int
    """N on the common lattice; node k is the same frequency 2 pi k / T for every pair."""
    pair_of: Ints
    kept: Ints
    """Node kept[i] belongs to pair pair_of[i]; sorted by pair, then by node."""

    @classmethod
    def plan(cls, family: Family, where: Rung) -> FamilyContour:
        """Plan the contour of a rung for all pairs."""
        lam, typical = float(where.tilt), family.typical
        log_aims = [log_expected(lattice, where) + math.log(TOLERANCE) for lattice in typical]
        theta = min((lattice.log_theta(where.tilt) for lattice in family.lattices), key=lambda t: t[0] - Fraction(t[1]))
        lowest = (2 * theta[0], 2 * theta[1])  # Theta(tilt) of a pair is at least this
        wanted = max(choose_nodes(x, where, aim, lowest) * x.step for x, aim in zip(typical, log_aims, strict=True))
        period, nodes = _common_period(family, wanted)
        bounds = [peak_bounds(lattice, lam) for lattice in family.lattices]
        relative = min(
            aim - math.log(typical_transform(where.payoff, lam, x.h)) for x, aim in zip(typical, log_aims, strict=True)
        )
        corners = transform_corners(where.payoff, lam, float(family.unit))
        slack = 2 * max(b.slack for b in bounds)
        bands = make_bands(nodes, float(period), corners, slack, relative)
        plans = []
        for lattice in typical:
            own = int(period / lattice.step)
            log_dropped = bands.log_dropped_on(
                own, float(period), transform_corners(where.payoff, lam, lattice.h)
            ) + math.log(2)  # twice: over budget, and trimmed
            plans.append(Plan(lattice, where.payoff, where.tilt, own, np.empty(0, np.int64), log_dropped, lowest))
        return cls(family, tuple(plans), nodes, *_nodes_of_pairs(family, bounds, period, nodes, bands))._trimmed()

    @cached_property
    def _log_moments(self) -> tuple[Floats, Floats, Floats]:
        """log(M(tilt + i omega) / M(tilt)) of each pair at each of its nodes: real part, imaginary part, error."""
        total = np.zeros((3, len(self.kept)))
        first, second = np.array(self.family.pairs, dtype=np.int64)[self.pair_of].T
        for member, lattice in enumerate(self.family.lattices):
            places = np.flatnonzero((first == member) | (second == member))
            times = np.where(first[places] == second[places], 2.0, 1.0)  # a member with itself counts twice
            nodes = distinct(self.kept[places])
            where = np.searchsorted(nodes, self.kept[places])
            for row, part in zip(total, log_moments(lattice, self.plans[0].lam, nodes, self.nodes), strict=True):
                row[places] += times * part[where]
        real, imag, error = total
        return real, imag, error + 2 * UNIT * (np.abs(real) + np.abs(imag))  # the sum of the two is rounded too

    def _by_step(self) -> Iterator[tuple[Plan, NDArray[np.bool_]]]:
        which = self.family.step_of[1][self.pair_of]
        for i, plan in enumerate(self.plans):
            yield plan, which == i

    def _trimmed(self) -> FamilyContour:
        """The same contour without nodes whose actual size is negligible: together at most what was dropped before."""
        real, _, error = self._log_moments
        counts = np.bincount(self.pair_of, minlength=len(self.family.pairs))
        keep = np.empty(len(self.kept), dtype=bool)
        for plan, mine in self._by_step():
            turns = angles(self.kept[mine], plan.nodes)
            relative = _transform_sizes(plan, turns) / _transform_sizes(plan, np.zeros(1))
            log_weight = (real + error)[mine] + np.log(relative) + (math.log(2 / plan.nodes) + 1e-9)
            cutoff = plan.log_dropped - math.log(2) - np.log(counts[self.pair_of[mine]])
            keep[mine] = (log_weight > cutoff) | (self.kept[mine] == 0)
        result = FamilyContour(self.family, self.plans, self.nodes, self.pair_of[keep], self.kept[keep])
        result.__dict__["_log_moments"] = tuple(part[keep] for part in self._log_moments)  # not to be computed again
        return result

    @cached_property
    def _terms(self) -> _Terms:
        real, imag, error = self._log_moments
        for_a, for_b = np.empty(len(self.kept), np.complex128), np.empty(len(self.kept), np.complex128)
        rows = np.empty((4, len(self.kept)))
        for plan, mine in self._by_step():
            node = self.kept[mine]
            turns = angles(node, plan.nodes)
            weights = mirror_weights(node, plan.nodes)
            found = summands(
                plan.payoff, plan.lam, plan.lattice.h, turns, weights, (real[mine], imag[mine], error[mine])
            )
            for_a[mine], for_b[mine] = found.for_a, found.for_b
            rows[:, mine] = np.abs(found.for_a), np.abs(found.for_b), found.error_a, found.error_b
        count = np.bincount(self.pair_of, minlength=len(self.family.pairs))
        first = np.concatenate(([0], np.cumsum(count)[:-1]))
        return _Terms(first, count, self.kept, for_a, for_b, _segment_sums(rows, count))

    @cached_property
    def _shifts(self) -> list[int]:
        """For each pair the whole part of the linear phase, in steps of the common lattice."""
        own = [whole_shift(lattice, self.plans[0].lam) for lattice in self.family.lattices]
        return [own[i] + own[j] for i, j in self.family.pairs]

    @cached_property
    def _thetas(self) -> tuple[Floats, Floats]:
        """For each pair Theta(tilt) and a bound on its error, the rounding of its sum with other doubles included."""
        own = [lattice.log_theta(self.plans[0].tilt) for lattice in self.family.lattices]
        values = np.array([float(own[i][0] + own[j][0]) for i, j in self.family.pairs])
        errors = np.array([own[i][1] + own[j][1] for i, j in self.family.pairs])
        return values, (errors + 4 * UNIT * np.abs(values)) * (1 + 1e-9)

    def evaluate(self, pairs: Ints, thresholds: list[Threshold]) -> Iterator[tuple[Ints, Sums]]:
        """The places of the questions on each distinct step, and the certified sums there."""
        which = self.family.step_of[1][pairs]
        for step in np.unique(which):
            places = np.flatnonzero(which == step)
            yield places, self._evaluate_step(self.plans[step], pairs[places], [thresholds[i] for i in places])

    def _evaluate_step(self, plan: Plan, pairs: Ints, thresholds: list[Threshold]) -> Sums:
        facts: dict[int, tuple[float, float, float]] = {}
        for t in thresholds:
            if t.steps not in facts:
                facts[t.steps] = (*plan.log_scale(t.steps), plan.offset(t.steps))
        high, low, offsets = np.array([facts[t.steps] for t in thresholds]).T
        theta, theta_error = self._thetas
        # the plan's log_scale holds the lowest Theta of all pairs; replace it by the pair's own
        low = low + (theta[pairs] - float(plan.theta_at_tilt[0]))
        error = theta_error[pairs] + 4 * UNIT * abs(float(plan.theta_at_tilt[0]))
        ratio = int(plan.lattice.step / self.family.unit)
        shifts = np.array(
            [(t.steps * ratio - self._shifts[p]) % self.nodes for t, p in zip(thresholds, pairs.tolist(), strict=True)]
        )
        sum_a, sum_b = self._sums(pairs, shifts)
        size_a, size_b, error_a, error_b = self._terms.totals[:, pairs]
        count = self._terms.count[pairs].astype(float)
        totals = Totals(sum_a, sum_b, size_a, size_b, error_a, error_b, count)
        coefficients = np.array([t.a for t in thresholds]), np.array([t.b for t in thresholds])
        aliased = log_aliasing(plan.lattice, plan.payoff, plan.lam, float(plan.period), offsets, plan.theta_at_tilt)
        return totals.settle(plan, coefficients, (high, low), error, plan.log_dropped, aliased)

    def _sums(self, pairs: Ints, shifts: Ints) -> tuple[Floats, Floats]:
        """Re sum_k terms_k exp(-2 pi i k shift / N) over each pair's nodes, for both kinds of terms."""
        terms = self._terms
        sum_a, sum_b = np.empty(len(pairs)), np.empty(len(pairs))
        ends = np.cumsum(terms.count[pairs])
        start = 0
        while start < len(pairs):
            base = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, base + _MATRIX, side="right")))
            mine, chosen = slice(start, stop), pairs[start:stop]
            count = terms.count[chosen]
            place = ranges(terms.first[chosen], terms.first[chosen] + count - 1)
            residue = terms.node[place] * np.repeat(shifts[mine], count) % self.nodes
            residue -= self.nodes * (2 * residue > self.nodes)
            turn = residue * (2 * math.pi / self.nodes)
            cosine, sine = np.cos(turn), np.sin(turn)
            products = np.stack([cosine * t.real[place] + sine * t.imag[place] for t in (terms.for_a, terms.for_b)])
            sum_a[mine], sum_b[mine] = _segment_sums(products, count)
            start = stop
        return sum_a, sum_b


def _common_period(family: Family, wanted: Fraction) -> tuple[Fraction, int]:
    """The least period from `wanted` on that is a multiple of every pair's step, and its number of common steps."""
    inverse = common_step(1 / step for step in family.step_of[0])
    multiple = 1 / inverse  # the least common multiple of the steps
    period = math.ceil(wanted / multiple) * multiple
    nodes = period / family.unit
    if period > 2 * wanted or nodes > LARGEST_PERIOD_STEPS:
        raise LatticeTooFineError(
            f"The pairs have no common period of less than {LARGEST_PERIOD_STEPS:.0e} steps of {float(family.unit):.3g}."
        )
    return period, int(nodes)


def _transform_sizes(plan: Plan, turns: Floats) -> Floats:
    """The larger of the two factors' sizes; both fall alike, since |q| is the same everywhere on the contour."""
    first, second = transform_factors(plan.payoff, plan.lam, plan.lattice.h, turns)
    result: Floats = np.maximum(np.abs(first), np.abs(second))
    return result


def _segment_sums(rows: Floats, count: Ints) -> Floats:
    """Sums over consecutive segments of each row, first in blocks, then over blocks; each depends on its segment alone."""
    first = np.concatenate(([0], np.cumsum(count)[:-1]))
    blocks = -(-count // BLOCK)
    starts = np.repeat(first, blocks) + BLOCK * ranges(np.zeros_like(blocks), blocks - 1)
    inner = np.add.reduceat(rows, starts, axis=1)
    result: Floats = np.add.reduceat(inner, np.concatenate(([0], np.cumsum(blocks)[:-1])), axis=1)
    return result


def _nodes_of_pairs(
    family: Family, bounds: list[PeakBounds], period: Fraction, nodes: int, bands: Bands
) -> tuple[Ints, Ints]:
    """Every node that is within budget for some pair, with its pair, sorted.

    Guarantee: none is missed. A pair's penalty is the sum of its members', so at a node within budget one of the two is at most
    half the budget. A member's penalty has the period of its own lattice, and budgets never increase, so its nodes at
    half the budget are translates of those in its own first period. Where a member has too many of them, its pairs are sieved
    one by one.
    """
    strides, strengths = _distinct_strides(family, bounds)
    numbers = _pair_numbers(family)
    last = np.array([int(period / step) // 2 for step in family.steps])
    found = []
    for member, (lattice, bound) in enumerate(zip(family.own, bounds, strict=True)):
        own_nodes = int(period / lattice.step)
        own = sieve(lattice.strides, tuple(2 * s for s in bound.strengths), own_nodes, bands)
        found.append(numbers[member, member] * (nodes + 1) + own)
        others = np.array([j for j in range(len(bounds)) if j != member], dtype=np.int64)
        if len(own) * (nodes // own_nodes) > _HEAVY:
            for other in others:
                number = int(numbers[member, other])
                found.append(number * (nodes + 1) + _sieve_pair(family, bounds, number, period, bands))
        elif len(others):
            k = _translates(own, own_nodes, nodes)
            squares = phases(k, strides, nodes) ** 2
            penalty = np.einsum("ps,sk->pk", strengths[member] + strengths[others], squares)  # in a fixed order
            within = (penalty * (1 - 1e-9) <= bands.at(k)) & (k <= last[numbers[member, others], None])
            partner, place = np.nonzero(within)
            found.append(numbers[member, others[partner]] * (nodes + 1) + k[place])
    key = distinct(np.concatenate(found))
    return key // (nodes + 1), key % (nodes + 1)


def _sieve_pair(family: Family, bounds: list[PeakBounds], pair: int, period: Fraction, bands: Bands) -> Ints:
    """The nodes of one pair by a sieve of its own."""
    step, (i, j) = family.steps[pair], family.pairs[pair]
    ratio = int(step / family.unit)
    strides = tuple(a // ratio for m in (i, j) for a in family.lattices[m].strides)
    return sieve(strides, bounds[i].strengths + bounds[j].strengths, int(period / step), bands)


def _translates(own: Ints, own_nodes: int, nodes: int) -> Ints:
    """All k in [0, nodes / 2] that are congruent to plus or minus a node of the first period."""
    shifts = own_nodes * np.arange(nodes // own_nodes // 2 + 1, dtype=np.int64)[:, None]
    k = distinct(np.concatenate([(shifts + own).ravel(), (shifts - own).ravel()]))
    result: Ints = k[(k >= 0) & (2 * k <= nodes)]
    return result


def _distinct_strides(family: Family, bounds: list[PeakBounds]) -> tuple[tuple[int, ...], Floats]:
    """The strides that occur in the family, and the strength with which each member has each of them."""
    strides = sorted({a for lattice in family.lattices for a in lattice.strides})
    place = {a: i for i, a in enumerate(strides)}
    strengths = np.zeros((len(bounds), len(strides)))
    for row, lattice, bound in zip(strengths, family.lattices, bounds, strict=True):
        for a, strength in zip(lattice.strides, bound.strengths, strict=True):
            row[place[a]] += strength
    return tuple(strides), strengths


def _pair_numbers(family: Family) -> Ints:
    """The number of the pair of members i and j, in either order."""
    n = len(family.members)
    numbers = np.empty((n, n), dtype=np.int64)
    for number, (i, j) in enumerate(family.pairs):
        numbers[i, j] = numbers[j, i] = number
    return numbers
