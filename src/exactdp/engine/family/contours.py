"""All pairs of a family at once.

The members of a family are compositions with the same spread; a pair is the composition of two of them. The moment
function of a pair is the product of its members', so on a common period T every member is sieved and evaluated once for a
tilt and serves all its pairs. The ladder of tilts depends on the spread alone, so all pairs share it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from exactdp.brackets import Bracket
from exactdp.cache import Recent
from exactdp.doubles import SUM_SLACK, UNDERFLOW, UNIT, Bools, Floats, Ints
from exactdp.engine.family.members import Members
from exactdp.engine.family.nodes import Skeleton
from exactdp.engine.family.pair_terms import PairTerms, segment_sums
from exactdp.engine.lattice.contours import Values
from exactdp.engine.lattice.float64 import PHASE_UNITS, Sums, Totals, mirror_weights, summands, whole_shift
from exactdp.engine.lattice.moments import log_moments
from exactdp.engine.lattice.plan import Plan, log_aliasing, log_term_size
from exactdp.engine.lattice.tilts import FAMILY, Rung, last_complement_rung, rung
from exactdp.engine.payoff import Payoff, Thresholds
from exactdp.engine.sieve.phases import angles, angles_at
from exactdp.errors import LatticeTooFineError

_FARTHEST = 60.0  # standard deviations; the values there, exp(-1800), are left to the pairs' own contours
_NO_RUNG = -1
_CONTOURS_HELD = 8
_SKELETONS_HELD = 3
_HEAVY = 2000  # nodes of a pair

TOGETHER = 2
"""Rungs that share a skeleton."""


@dataclass(frozen=True)
class Family(Members):
    """The members with the contours of all their pairs, built when first needed."""

    _contours: Recent[tuple[Payoff, int], FamilyContour | None] = field(
        default_factory=lambda: Recent(_CONTOURS_HELD), repr=False, compare=False
    )
    _skeletons: Recent[tuple[Payoff, int], Skeleton | None] = field(
        default_factory=lambda: Recent(_SKELETONS_HELD), repr=False, compare=False
    )

    def contour(self, payoff: Payoff, index: int) -> FamilyContour | None:
        """The shared contour of one rung; None where too many nodes would have to be held."""

        def build() -> FamilyContour | None:
            skeleton = self._skeleton(payoff, index)
            return None if skeleton is None else FamilyContour.plan(self, self._rung(payoff, index), skeleton)

        return self._contours.get((payoff, index), build)

    def _rung(self, payoff: Payoff, index: int) -> Rung:
        return rung(self.typical[0], payoff, index, FAMILY)

    def _skeleton(self, payoff: Payoff, index: int) -> Skeleton | None:
        """The skeleton of a rung. The lowest rung has a long period of its own, the others go together by twos."""
        share = payoff is not Payoff.COMPLEMENT and index > 0
        first, count = (index - (index - 1) % TOGETHER, TOGETHER) if share else (index, 1)

        def build() -> Skeleton | None:
            try:
                return Skeleton.build(self, [self._rung(payoff, i) for i in range(first, first + count)])
            except LatticeTooFineError:  # the pairs are then asked one by one, and say themselves what is wrong
                return None

        return self._skeletons.get((payoff, first), build)

    def evaluate(
        self, payoff: Payoff, pairs: Ints, thresholds: Thresholds, index: Ints, roughly: bool = False
    ) -> Values:
        """Certified values, one for each pair and its threshold, which is on the lattice of the pair: `index` says which of the
        thresholds each one has.

        Results do not depend on what is asked together. Where no contour can be shared the bounds are 0 and 1. `roughly`: with
        wider bounds, in less time, where pairs have many nodes.
        """
        parts = np.repeat([[0.0], [0.0], [1.0], [0.0]], len(pairs), axis=1)
        for contour, mine in self._shared(payoff, pairs, thresholds, index):
            for place, sums in contour.evaluate(pairs[mine], thresholds, index[mine], roughly):
                with np.errstate(divide="ignore", invalid="ignore"):
                    parts[:, mine[place]] = sums.log_scale, sums.lower, sums.upper, sums.slope / sums.value
        return Values(Bracket(parts[0], parts[1], parts[2]), np.nan_to_num(parts[3], posinf=0.0))

    def estimate_logs(self, payoff: Payoff, pairs: Ints, thresholds: Thresholds, index: Ints) -> Floats:
        """Logarithms of the same values by their largest terms: no bounds, for searches; 0 where no contour can be shared."""
        logs = np.zeros(len(pairs))
        for contour, mine in self._shared(payoff, pairs, thresholds, index):
            for place, sums in contour.evaluate(pairs[mine], thresholds, index[mine], roughly=True):
                logs[mine[place]] = sums.log_scale + np.log(np.maximum(sums.value, UNDERFLOW))
        return logs

    def is_heavy(self, payoff: Payoff, pairs: Ints) -> Bools:
        """Which pairs have so many nodes that a look at the largest of them is worth its while. Heuristic: affects speed only."""
        contour = self.contour(payoff, 0)
        if contour is None:
            return np.zeros(len(pairs), dtype=bool)
        result: Bools = np.bincount(contour.pair_of, minlength=len(self.pairs))[pairs] > _HEAVY
        return result

    def _shared(
        self, payoff: Payoff, pairs: Ints, thresholds: Thresholds, index: Ints
    ) -> Iterator[tuple[FamilyContour, Ints]]:
        """The contours that serve questions, each with the places of its own; questions that none serves are left out."""
        which = self.step_of[1][pairs]
        steps = thresholds.steps.astype(np.float64)[index]
        rung_of = np.full(len(pairs), _NO_RUNG, dtype=np.int64)
        for step in np.unique(which).tolist():
            lattice, mine = self.typical[step], which == step
            x = steps[mine] * lattice.h
            near = x * x < _FARTHEST**2 * lattice.r
            rung_of[mine] = np.where(near, self._rungs(payoff, step, x), _NO_RUNG)
        for number in np.unique(rung_of[rung_of != _NO_RUNG]).tolist():
            contour = self.contour(payoff, number)
            if contour is not None:
                yield contour, np.flatnonzero(rung_of == number)

    def _rungs(self, payoff: Payoff, step: int, x: Floats) -> Ints:
        """The rungs that serve thresholds x on one of the distinct steps. Heuristic: affects accuracy only."""
        edges, last = self._edges[payoff is Payoff.COMPLEMENT, step]
        result: Ints = np.minimum(np.searchsorted(edges, -x if payoff is Payoff.COMPLEMENT else x, side="right"), last)
        return result

    @cached_property
    def _edges(self) -> dict[tuple[bool, int], tuple[Floats, int]]:
        """For each distinct step the boundaries above each rung, and the last rung, for 1 - delta and for the other payoffs."""
        found = {}
        for step, lattice in enumerate(self.typical):
            edges: list[float] = []
            edge = 0.0
            while edge < _FARTHEST * math.sqrt(lattice.r):
                edge = rung(lattice, Payoff.TAIL, len(edges), FAMILY).x_high
                edges.append(edge)
            last = last_complement_rung(lattice, FAMILY)
            found[False, step], found[True, step] = (np.array(edges), len(edges)), (np.array(edges), last)
        return found


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

    logs: tuple[Floats, Floats, Floats]
    """log(M(tilt + i omega) / M(tilt)) of each pair at each of its nodes: real part, imaginary part, error."""

    @classmethod
    def plan(cls, family: Family, where: Rung, skeleton: Skeleton) -> FamilyContour:
        """The contour of a rung, on its skeleton without the nodes whose actual size is negligible: together at most what was
        dropped before."""
        plans, pair_of, kept = skeleton.plans(where), skeleton.pair_of, skeleton.kept
        logs = _log_moments_of_pairs(family, float(where.tilt), skeleton)
        counts = np.bincount(pair_of, minlength=len(family.pairs))
        keep = np.empty(len(kept), dtype=bool)
        for plan, mine in _by_step(family, plans, pair_of):
            log_weight = (logs[0] + logs[2])[mine] + log_term_size(plan, angles(kept[mine], plan.nodes))
            cutoff = plan.log_dropped - math.log(2) - np.log(counts[pair_of[mine]])
            keep[mine] = (log_weight > cutoff) | (kept[mine] == 0)
        real, imag, error = (part[keep] for part in logs)
        return cls(family, plans, skeleton.nodes, pair_of[keep], kept[keep], (real, imag, error))

    @cached_property
    def _terms(self) -> PairTerms:
        """The terms of all pairs, each with the phase of its pair's whole shift."""
        real, imag, error = self.logs
        kinds = 1 if self.plans[0].payoff is Payoff.TAIL else 2  # tails have b = 0
        parts, rows = np.empty((2 * kinds, len(self.kept))), np.zeros((4, len(self.kept)))
        for plan, mine in _by_step(self.family, self.plans, self.pair_of):
            node = self.kept[mine]
            turns = angles(node, plan.nodes)
            weights = mirror_weights(node, plan.nodes)
            found = summands(
                plan.payoff, plan.lam, plan.lattice.h, turns, weights, (real[mine], imag[mine], error[mine])
            )
            own = angles_at(node, self._shifts[self.pair_of[mine]], self.nodes)
            phase = np.cos(own) + 1j * np.sin(own)
            terms = np.stack([found.for_a, found.for_b][:kinds]) * phase
            sizes = np.abs(terms)
            parts[:kinds, mine], parts[kinds:, mine] = terms.real, terms.imag
            rows[:kinds, mine] = sizes
            errors = np.stack([found.error_a, found.error_b][:kinds])
            rows[2 : 2 + kinds, mine] = errors + sizes * (PHASE_UNITS * UNIT)  # F6 once more
        count = np.bincount(self.pair_of, minlength=len(self.family.pairs))
        return PairTerms(self.nodes, count, self.kept, parts, segment_sums(rows, count))

    @cached_property
    def _shifts(self) -> Ints:
        """For each pair the whole part of the linear phase, in steps of the common lattice, modulo N."""
        own = [whole_shift(lattice, self.plans[0].lam) for lattice in self.family.lattices]
        return np.array([(own[i] + own[j]) % self.nodes for i, j in self.family.pairs], dtype=np.int64)

    @cached_property
    def _thetas(self) -> tuple[Floats, Floats]:
        """For each pair Theta(tilt) and a bound on its error, the rounding of its sum with other doubles included."""
        own = np.array([lattice.log_theta(self.plans[0].tilt) for lattice in self.family.lattices], dtype=np.float64)
        first, second = own[np.array(self.family.pairs)].transpose(1, 2, 0)
        sizes = np.abs(first[0]) + np.abs(second[0])
        return first[0] + second[0], (first[1] + second[1] + 4 * UNIT * sizes) * (1 + SUM_SLACK)

    def evaluate(
        self, pairs: Ints, thresholds: Thresholds, index: Ints, roughly: bool = False
    ) -> Iterator[tuple[Ints, Sums]]:
        """The places of the questions on each distinct step, and the certified sums there.

        `roughly`: by the largest terms of pairs that have many, with wider bounds.
        """
        which = self.family.step_of[1][pairs]
        terms = self._terms.largest if roughly else self._terms
        for step in np.unique(which):
            places = np.flatnonzero(which == step)
            asked, own = np.unique(index[places], return_inverse=True)
            yield places, self._evaluate_step(self.plans[step], terms, pairs[places], thresholds[asked], own)

    def _evaluate_step(self, plan: Plan, terms: PairTerms, pairs: Ints, thresholds: Thresholds, index: Ints) -> Sums:
        """Questions on one step: pairs, and which of the thresholds each one has."""
        points, place = np.unique(thresholds.steps, return_inverse=True)  # few: pairs have nearly the same epsilon
        where = place[index]
        high, low, offsets = np.array([(*plan.log_scale(t), plan.offset(t)) for t in points.tolist()]).T[:, where]
        theta, theta_error = self._thetas
        # the plan's log_scale holds the lowest Theta of all pairs; replace it by the pair's own
        low = low + (theta[pairs] - float(plan.theta_at_tilt[0]))
        error = theta_error[pairs] + 4 * UNIT * abs(float(plan.theta_at_tilt[0]))
        ratio = int(plan.lattice.step / self.family.unit)
        shifts = np.array([t * ratio % self.nodes for t in points.tolist()], dtype=np.int64)[where]
        sum_a, sum_b = terms.sums(pairs, shifts)
        size_a, size_b, error_a, error_b = terms.totals[:, pairs]
        count = terms.count[pairs].astype(float)
        totals = Totals(sum_a, sum_b, size_a, size_b, error_a, error_b, count)
        coefficients = thresholds.a[index], thresholds.b[index]
        aliased = log_aliasing(plan.lattice, plan.payoff, plan.lam, float(plan.period), offsets, plan.theta_at_tilt)
        return totals.settle(plan, coefficients, (high, low), error, plan.log_dropped, aliased)


def _log_moments_of_pairs(family: Family, lam: float, skeleton: Skeleton) -> tuple[Floats, Floats, Floats]:
    """log(M(tilt + i omega) / M(tilt)) of each pair at each of its nodes, from its members': real part, imaginary part, error."""
    total = np.zeros((3, len(skeleton.kept)))
    for lattice, of_member in zip(family.lattices, skeleton.of_members, strict=True):
        found = np.array(log_moments(lattice, lam, of_member.nodes, skeleton.nodes))[:, of_member.column]
        total[:, of_member.places] += of_member.times * found
    real, imag, error = total
    return real, imag, error + 2 * UNIT * (np.abs(real) + np.abs(imag))  # the sum of the two is rounded too


def _by_step(family: Family, plans: tuple[Plan, ...], pair_of: Ints) -> Iterator[tuple[Plan, Bools]]:
    """Each distinct step's plan, and which nodes belong to pairs on that step."""
    which = family.step_of[1][pair_of]
    for i, plan in enumerate(plans):
        yield plan, which == i
