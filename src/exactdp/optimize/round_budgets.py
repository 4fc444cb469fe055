"""Round budgets: the best multiples of given steps about a design, one after another in the order of their objectives.

Heuristic: which multiples are tried. What is taken has been proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from exactdp.census.releases import Release
from exactdp.optimize.search import Search

_REACH = 2  # steps up and down
_MOST_MOVES = 5**4
_ROUNDS, _PROOFS = 6, 8
_ROUGHLY, _CLOSELY = 1e-3, 1e-5  # of log delta: what estimates may be off by

Unknowns = tuple[Fraction, ...]


def best_multiples(
    searches: tuple[Search, Search],
    start: Unknowns,
    steps: Unknowns,
    proved: Callable[[Release], bool],
) -> Unknowns:
    """The best unknowns some steps from those given that are proved, and again from there; the given ones if none are better.

    `searches` estimate roughly and closely.
    """
    at = start
    for _ in range(_ROUNDS):
        following = _better(searches, at, steps, proved)
        if following is None:
            break
        at = following
    return at


def _better(
    searches: tuple[Search, Search], at: Unknowns, steps: Unknowns, proved: Callable[[Release], bool]
) -> Unknowns | None:
    rough, close = searches
    proofs = 0
    for other in _by_objective(rough, at, steps):
        if rough.excess(other) > _ROUGHLY or close.excess(other) > _CLOSELY:
            continue
        if proved(rough.problem.design(other)):
            return other
        proofs += 1
        if proofs == _PROOFS:
            break
    return None


def _by_objective(search: Search, at: Unknowns, steps: Unknowns) -> Iterator[Unknowns]:
    """Unknowns some steps away with smaller objectives, the smallest first."""
    low, high = search.problem.bounds
    value = search.value(at)
    found = []
    for move in _moves([g for g, step in enumerate(steps) if step], len(steps)):
        other = tuple(y + n * step for y, n, step in zip(at, move, steps, strict=True))
        if all(a <= y <= b and y > 0 for y, a, b in zip(other, low, high, strict=True)):
            reached = search.value(other)
            if reached < value * (1 - 1e-9):
                found.append((reached, other))
    return (other for _, other in sorted(found))


def _moves(stepped: list[int], count: int) -> Iterator[tuple[int, ...]]:
    """All moves of some steps where they are few; else those of two unknowns at a time."""
    numbers = range(-_REACH, _REACH + 1)
    at_once = len(stepped) if len(numbers) ** len(stepped) <= _MOST_MOVES else 2
    for chosen in itertools.combinations(stepped, min(at_once, len(stepped))):
        for steps in itertools.product(numbers, repeat=len(chosen)):
            move = np.zeros(count, dtype=int)
            move[list(chosen)] = steps
            if move.any():
                yield tuple(move.tolist())
