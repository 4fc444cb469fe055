"""The sieve by lattice reduction: the nodes within budget of a range, without walking the windows of any group.

A node k and its nearest multiples p_g to k u_g are one vector of the lattice of all (k, p), with squared length

    (kappa k)^2 + sum_g strength_g (2 pi)^2 (k u_g - p_g)^2 <= budget + (kappa last)^2   if k <= last is within budget,

so the short vectors of that lattice are the nodes sought. The basis is rounded to integers, reduced (LLL), and all vectors
within the radius are enumerated (Fincke and Pohst) coordinate by coordinate from the last. The first vector of the reduced
basis is as a rule k = 1, p = 0, so that the last step lists the window of nodes of one peak.

Why none is missed:

1. Rounding the basis. Coordinate g of the integer lattice, in units of 2^-scale, is k round(D_g u_g) - p_g D_g with
   D_g <= 2^scale 2 pi sqrt(strength_g). It differs from D_g (k u_g - p_g) by at most k / 2, so a node within budget has a
   vector of length at most `limit` = sqrt(budget + (kappa last)^2) + sqrt(G) last / 2^(scale + 1), kappa being itself an
   integer in these units. The relative rounding of strengths and of 2 pi is covered by a budget larger by 1e-12.
2. Reduction. The transformation is checked to have determinant 1 or -1, so no vector of the lattice is lost. The triangle
   R (the length of sum_j c_j b_j is |R c|) is computed in ball arithmetic from the exact reduced integers and rounded
   to doubles: each entry is off by at most 2^-52 |R_ij| + 2^-60 R_ii.
3. Enumeration. A vector within `limit` has |c_i| <= C_i, where C_i = (limit + sum_(j>i) |R_ij| C_j) / R_ii from the last
   coordinate up (plus what the accuracy of R costs). The c_j are exact doubles, so a coordinate sum_j R_ij c_j of n terms
   computed in doubles, in any order, is off by at most e_i = sum_j ((n + 3) 2^-52 |R_ij| + 2^-60 R_ii) C_j in all; the vector
   of computed coordinates is no longer than limit + |e|. That is the radius used, widened by 1e-9 for the rounding of the n
   squares and differences. If |e| > limit / 1000, or a C_i is above 2^50, the search is refused.
4. Groups left out of the lattice only remove nonnegative terms. The node itself is recovered from the coefficients in
   integers modulo 2^64, which is exact for k <= last < 2^63.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from flint import arb, fmpz_mat

from exactdp.balls import precision
from exactdp.doubles import FORMULA_SLACK, PHASE_ERROR, SUM_SLACK, Floats, Ints
from exactdp.engine.sieve.fixed_point import LARGEST_NODE, Turn
from exactdp.errors import InvalidInputError, LatticeTooFineError

Group = tuple[Fraction, float]

_SPARE_BITS = 24  # the basis is rounded to 2^-24 of the radius at the largest node
_SPARE = 1e-6  # of a coefficient: more than what is lost where steps are not exact
_LARGEST_COEFFICIENT = 2.0**50
_CHUNK = 1 << 16  # partial vectors held at once
_FEW_EXPECTED = 1e-3  # enough groups in the lattice when so few nodes are expected by chance
_CERTAIN_EXCESS = 30.0  # the search is refused unseen when its expected work is this multiple of the allowance
_LITTLE_WORK = 20_000.0  # partial vectors; below this no other choice of groups is tried


def nodes_by_reduction(
    turns: Sequence[Fraction], strengths: Sequence[float], first: int, last: int, budget: float, allowance: int
) -> list[int]:
    """All k in [first, last] with sum_g strength_g (2 pi dist(k turn_g, Z))^2 <= budget, ascending.

    Guarantee: none is missed. A node over budget by a relative 1e-11 or less may be among them.
    """
    if first < 1 or last > LARGEST_NODE:
        raise InvalidInputError(f"first must be at least 1 and last at most 2^62, got {first} and {last}")
    if budget <= 0 or first > last:
        return []
    if not math.isfinite(budget):
        raise InvalidInputError(f"the budget must be finite, got {budget}")
    groups = _merged(turns, strengths)
    batches = _batches(groups, first, last, budget * (1 + FORMULA_SLACK), allowance)
    kept = [_within(k[(k >= first) & (k <= last)], groups, budget) for k in batches]
    ordered = np.sort(np.concatenate([np.zeros(1, dtype=np.int64), *kept]))  # node 0 is before all others
    nodes: list[int] = ordered[1:][ordered[1:] != ordered[:-1]].tolist()
    return nodes


def _batches(groups: list[Group], first: int, last: int, budget: float, allowance: int) -> Iterator[Ints]:
    """Nodes that include all within budget: those of the lattice, or the whole range where that is less work."""
    count = last - first + 1
    search = _chosen(groups, last, budget) if groups else None
    if search and (count > allowance or search.expected_work() < count):
        return search.nodes(first, last, allowance)
    if count > allowance:
        raise _too_many(allowance)
    starts = range(first, last + 1, _CHUNK)
    return (np.arange(start, min(start + _CHUNK, last + 1), dtype=np.int64) for start in starts)


def _too_many(allowance: int) -> LatticeTooFineError:
    return LatticeTooFineError(f"more than {allowance:,} partial vectors or nodes would have to be examined")


def _merged(turns: Sequence[Fraction], strengths: Sequence[float]) -> list[Group]:
    """Turns folded into (0, 1/2], equal ones merged, turns of 0 left out."""
    merged: dict[Fraction, float] = {}
    for turn, strength in zip(turns, strengths, strict=True):
        if not 0 < strength < math.inf:
            raise InvalidInputError(f"strengths must be positive and finite, got {strength}")
        folded = min(turn % 1, -turn % 1)
        if folded:
            merged[folded] = merged.get(folded, 0.0) + strength
    return list(merged.items())


def _log_ball_volume(dimension: int) -> float:
    return dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)


def _log_shares(groups: list[Group], last: int, budget: float) -> list[float]:
    """log of the share of random nodes within budget, for the first 1, 2, ... groups in order of effect.

    Heuristic: affects speed only. The share is the volume of the ellipsoid sum strength (2 pi v)^2 <= budget.
    """
    axes = (math.log(budget / s) / 2 - math.log(2 * math.pi) for _, s in _by_effect(groups, last))
    return [min(0.0, total + _log_ball_volume(i + 1)) for i, total in enumerate(accumulate(axes))]


def _by_effect(groups: list[Group], last: int) -> list[Group]:
    """Groups by the largest penalty that they give up to `last`, strongest first. Heuristic: affects speed only."""
    return sorted(groups, key=lambda g: -g[1] * min(1.0, 2 * float(g[0]) * last) ** 2)


def _chosen(groups: list[Group], last: int, budget: float) -> _Search:
    """The reduced lattice of the groups that seem to make the search cheapest. Heuristic: affects speed only.

    Groups enter by effect until hardly a node is expected by chance; where the reduced basis promises much work all the
    same, twice as many are tried, and so on.
    """
    ordered = _by_effect(groups, last)
    shares = [math.log(last) + share for share in _log_shares(groups, last, budget)]
    enough = math.log(_FEW_EXPECTED)
    size = next((i for i, s in enumerate(shares) if s <= enough), int(np.argmin(shares))) + 1
    best = _reduced(ordered[:size], last, budget)
    while best.expected_work() > _LITTLE_WORK and size < len(ordered):
        size = min(2 * size, len(ordered))
        best = min(best, _reduced(ordered[:size], last, budget), key=_Search.expected_work)
    return best


def _reduced(groups: list[Group], last: int, budget: float) -> _Search:
    """The reduced basis of the lattice of (k, p) and the radius that holds every node within budget (steps 1 and 2)."""
    root = math.sqrt(budget)
    scale = max(last.bit_length() + _SPARE_BITS - math.frexp(root)[1], 1)
    lengths = [int(math.ldexp(2 * math.pi * math.sqrt(s), scale)) for _, s in groups]
    columns = [(u, d) for (u, _), d in zip(groups, lengths, strict=True) if d > 0]
    damping = max(1, round(math.ldexp(root / math.sqrt(len(groups)), scale) / last))
    size = len(columns) + 1
    basis = fmpz_mat(size, size)
    basis[0, 0] = damping
    for g, (u, d) in enumerate(columns, start=1):
        basis[0, g] = round(d * u)
        basis[g, g] = -d
    reduced, transformation = basis.lll(transform=True)
    if abs(int(transformation.det())) != 1 or transformation * basis != reduced:
        raise ArithmeticError("the lattice reduction returned another lattice")
    limit = math.hypot(root, math.ldexp(float(damping * last), -scale))
    limit += math.ldexp(math.sqrt(size) * last, -scale - 1)
    steps = tuple(int(transformation[j, 0]) for j in range(size))
    return _search(_triangle(reduced, scale), steps, limit)


def _triangle(basis: fmpz_mat, scale: int) -> Floats:
    """R with |sum_j c_j b_j| = |R c|, upper triangular, in units of 2^scale, to the accuracy of step 2."""
    size = basis.nrows()
    gram = basis * basis.transpose()
    bits = max(int(gram[i, i]).bit_length() for i in range(size))
    result = np.zeros((size, size))
    with precision(2 * bits + 8 * size + 128):
        rows: list[list[arb]] = []
        for i in range(size):
            tail = [arb(gram[i, j]) for j in range(i, size)]
            for row in rows:
                factor = row[i]
                tail = [x - factor * y for x, y in zip(tail, row[i:], strict=True)]
            pivot = tail[0].sqrt()
            exact = [pivot, *(x / pivot for x in tail[1:])]
            if not all(x.rad() < pivot * arb(2) ** -60 for x in exact):
                raise ArithmeticError("the ball arithmetic of the lattice reduction lost its accuracy")
            rows.append([arb(0)] * i + exact)
            result[i, i:] = [math.ldexp(float(x.mid()), -scale) for x in exact]
    return result


def _search(triangle: Floats, steps: tuple[int, ...], limit: float) -> _Search:
    """The bounds of step 3."""
    size = len(triangle)
    diagonal, above = np.diag(triangle), np.abs(np.triu(triangle, 1))
    largest, errors, slack = np.zeros(size), np.zeros(size), np.zeros(size)
    for i in reversed(range(size)):
        reach = ((limit + above[i] @ largest) / diagonal[i] + 2.0**-60 * float(largest.sum())) * (1 + SUM_SLACK)
        largest[i] = math.floor(reach)
        terms = above[i] @ largest + diagonal[i] * largest[i]
        errors[i] = (size + 3) * 2.0**-52 * terms + 2.0**-60 * diagonal[i] * float(np.sum(largest[i:]))
        slack[i] = 2.0**-48 * reach + FORMULA_SLACK
    error = float(np.linalg.norm(errors))
    radius = (limit + error) * (1 + SUM_SLACK)
    provable = error <= limit / 1000 and float(largest.max()) <= _LARGEST_COEFFICIENT
    return _Search(triangle, steps, radius, largest, slack, provable)


class _Pending(NamedTuple):
    """Partial vectors: the coefficients above `level` are set; the first `done` extensions were made before."""

    level: int
    partial: Floats
    room: Floats
    done: int


@dataclass(frozen=True, slots=True)
class _Search:
    """All c with |R c| <= radius and |c_i| <= largest_i, up to sign; c stands for the node |sum_j c_j step_j|."""

    triangle: Floats
    steps: tuple[int, ...]
    radius: float
    largest: Floats
    slack: Floats  # covers the rounding of the ends of an interval of c_i
    provable: bool

    def expected_work(self, with_nodes: bool = True) -> float:
        """Partial vectors, and nodes: half the volume of a ball in each projected lattice, or in its widest section.

        Heuristic: affects speed, and when the search is refused, but never which nodes are found.
        """
        ratios = np.log(self.radius / np.diag(self.triangle))
        volumes = np.array([_log_ball_volume(m + 1) for m in range(len(ratios))])
        total = 0.0
        for start in range(0 if with_nodes else 1, len(ratios)):
            sections = np.cumsum(np.sort(ratios[start:])[::-1]) + volumes[: len(ratios) - start]
            total += math.exp(min(float(sections.max()), 700.0)) / 2
        return total

    def nodes(self, first: int, last: int, allowance: int) -> Iterator[Ints]:
        """Batches of nodes that include all in [first, last]; depth first, at most _CHUNK vectors extended at a time."""
        if not self.provable:
            raise LatticeTooFineError("the lattice of the nodes is too fine for its search to be proved in doubles")
        if self.expected_work(with_nodes=False) > _CERTAIN_EXCESS * allowance:
            raise _too_many(allowance)
        size, work = len(self.steps), 0
        pending = [_Pending(size - 1, np.zeros((1, size)), np.full(1, self.radius**2), 0)]
        while pending:
            level, partial, room, done = pending.pop()
            shift, low, high = self._interval(level, partial, room)
            rows = partial
            if level == 0:
                rows, low, high = self._clipped(partial, low, high, first, last)
            counts = np.maximum(high - low + 1, 0)
            if work - done + float(counts.sum(dtype=np.float64)) > allowance:
                raise _too_many(allowance)
            ends = np.cumsum(counts)
            total = int(ends[-1])
            index = np.arange(done, min(done + _CHUNK, total))
            work += len(index)
            if done + _CHUNK < total:
                pending.append(_Pending(level, partial, room, done + _CHUNK))
            owner = np.searchsorted(ends, index, side="right")
            c = low[owner] + index - (ends - counts)[owner]
            if level == 0:
                yield self._node(rows, owner, c)
                continue
            left = room[owner] - (shift[owner] + self.triangle[level, level] * c) ** 2
            keep = left >= 0
            longer = partial[owner[keep]]
            longer[:, level] = c[keep]
            if len(longer):
                pending.append(_Pending(level - 1, longer, left[keep], 0))

    def _interval(self, level: int, partial: Floats, room: Floats) -> tuple[Floats, Ints, Ints]:
        """The part of coordinate `level` that is fixed, and the smallest and largest coefficient for it."""
        shift: Floats = partial[:, level + 1 :] @ self.triangle[level, level + 1 :]
        pivot, top, slack = self.triangle[level, level], self.largest[level], self.slack[level]
        reach = np.sqrt(room)
        low = np.ceil(np.maximum((-reach - shift) / pivot - slack, -top))
        high = np.floor(np.minimum((reach - shift) / pivot + slack, top))
        low[~partial.any(axis=1)] = 0.0  # c and -c are the same node
        return shift, low.astype(np.int64), high.astype(np.int64)

    def _clipped(self, partial: Floats, low: Ints, high: Ints, first: int, last: int) -> tuple[Floats, Ints, Ints]:
        """The intervals of c_0 cut down to first <= |k| <= last, so that the window around k = 0 is not listed."""
        if self.steps[0] == 0:
            return partial, low, high
        lows, highs = [], []
        steps = np.array([float(s) for s in self.steps])
        base = partial @ steps
        spare = 2.0**-48 * len(steps) * (np.abs(partial) @ np.abs(steps) + last) / abs(steps[0]) + _SPARE
        for start, stop in ((first, last), (-last, -first)):
            ends = (start - base) / steps[0], (stop - base) / steps[0]
            below, above = np.minimum(*ends) - spare, np.maximum(*ends) + spare
            lows.append(np.maximum(np.ceil(np.clip(below, -(2.0**62), 2.0**62)).astype(np.int64), low))
            highs.append(np.minimum(np.floor(np.clip(above, -(2.0**62), 2.0**62)).astype(np.int64), high))
        return np.tile(partial, (2, 1)), np.concatenate(lows), np.concatenate(highs)

    def _node(self, partial: Floats, owner: Ints, c: Ints) -> Ints:
        """|sum_j c_j step_j|, modulo 2^64."""
        steps = np.array([s % (1 << 64) for s in self.steps], dtype=np.uint64)
        base = (partial[:, 1:].astype(np.int64).astype(np.uint64) * steps[1:]).sum(axis=1, dtype=np.uint64)
        result: Ints = np.abs((base[owner] + c.astype(np.uint64) * steps[0]).astype(np.int64))
        return result


def _within(k: Ints, groups: list[Group], budget: float) -> Ints:
    """The nodes among k within budget; phases are rounded down by more than their error."""
    penalty = np.zeros(len(k))
    for turn, strength in sorted(groups, key=lambda g: -g[1]):
        angle = np.maximum(np.abs(Turn.nearest(turn).phases(k)) - 2 * PHASE_ERROR, 0.0)
        penalty += strength * angle * angle
        keep = penalty * (1 - FORMULA_SLACK) <= budget
        k, penalty = k[keep], penalty[keep]
    return k
