"""The worst pair: the candidates that float64 cannot tell apart, and balls where that is worth while."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self, TypeVar

from exactdp.accounting.composition import Composition
from exactdp.census.grids import Grids
from exactdp.census.pair_results import PairResult, account_pairs, overall_of
from exactdp.census.releases import Release
from exactdp.errors import AccuracyError, InvalidInputError, LatticeTooFineError
from exactdp.numbers import Number, exact_repr

_TIE_DIGITS = (25, 100, 160)
"""Paths 8 and 13 of the DHC file differ in the 96th digit, and their pairs with each other in the 122nd."""
_Candidate = TypeVar("_Candidate", tuple[int, int], Composition)
_TELL_APART = 32  # different compositions that a summary tells apart by balls; beyond, it reports the tie


@dataclass(frozen=True)
class Candidates:
    """The pairs that may be the worst for one question: float64 cannot tell them apart. With bounds (larger is worse)."""

    __repr__ = exact_repr

    release: Release
    quantity: str
    at: Fraction
    bounds: dict[tuple[int, int], tuple[Any, Any]]

    @classmethod
    def of(
        cls,
        release: Release,
        *,
        delta: Number | None = None,
        epsilon: Number | None = None,
        alpha: Number | None = None,
    ) -> Self:
        """The pairs whose certified bounds in float64 reach the worst of the lower ends."""
        given = sum(x is not None for x in (epsilon, delta, alpha))
        if given != 1:
            raise InvalidInputError(f"worst_pair takes one of delta, epsilon and alpha. Found {given} of them.")
        one = [None if x is None else [x] for x in (epsilon, delta, alpha)]
        grids = Grids.read(one[0], one[1], one[2])
        quantity = next(name for name, grid in grids.by_quantity.items() if grid)
        if quantity == "epsilon":
            suspects = overall_of(release).suspects(grids.deltas[0])
            bounds = {release.pairs[i]: ends for i, ends in suspects.items()}
            return cls(release, quantity, grids.deltas[0], _undecided(bounds))
        return cls.among(release, grids, account_pairs(release, list(release.pairs), grids), quantity, 0)

    @classmethod
    def among(cls, release: Release, grids: Grids, results: Iterable[PairResult], quantity: str, place: int) -> Self:
        """The same from results that are there already: one quantity at one place of its grid."""
        bounds = {r.pair: _larger_is_worse(quantity, getattr(r, quantity)[place]) for r in results}
        return cls(release, quantity, grids.by_quantity[quantity][place], _undecided(bounds))

    @property
    def compositions(self) -> int:
        """How many different compositions are left."""
        return self._compositions_of(self.bounds)

    def _compositions_of(self, pairs: Iterable[tuple[int, int]]) -> int:
        return len({_composition(self.release, pair) for pair in pairs})

    def settled(self, in_balls: bool = True) -> tuple[tuple[int, int], int]:
        """The worst pair and 1; or, where more compositions tie than are worth telling apart, or some of them in all digits that
        are tried, one pair and their number."""
        left = self.bounds
        if self.compositions <= (_TELL_APART if in_balls else 1):
            with suppress(AccuracyError, LatticeTooFineError):  # no balls for this lattice
                left = self._told_apart()
        return min(left), 1 if self._compositions_of(left) == 1 else len(left)

    def worst(self) -> tuple[int, int]:
        """The worst pair, by balls where need be; of equal ones, and of those that agree in all digits tried, the first."""
        return min(self._told_apart())

    def _told_apart(self) -> dict[tuple[int, int], tuple[Any, Any]]:
        """The pairs that may be the worst by balls of more and more digits, until one is left, or equal ones."""
        bounds, worst_of = self.bounds, self._largest_epsilons if self.quantity == "epsilon" else self._worst_bounds
        different: list[Composition] = []
        for digits in _TIE_DIGITS:
            if self._compositions_of(bounds) == 1:
                break
            compositions = {pair: _composition(self.release, pair) for pair in bounds}
            left = worst_of(different or list(dict.fromkeys(compositions.values())), digits)  # equal ones once
            bounds = {pair: ends for pair, ends in bounds.items() if compositions[pair] in left}
            different = left
        return bounds

    def _worst_bounds(self, compositions: list[Composition], digits: int) -> list[Composition]:
        """The compositions whose bounds of so many digits reach the worst of the lower ends."""
        ask = f"{self.quantity}_bounds"
        return list(
            _undecided({c: _larger_is_worse(self.quantity, getattr(c, ask)(self.at, digits)) for c in compositions})
        )

    def _largest_epsilons(self, compositions: list[Composition], digits: int) -> list[Composition]:
        """The compositions whose epsilon may be the largest, from that of one of them and the deltas of the others at its ends,
        which take a fraction of the time.

        delta falls with epsilon: a composition whose delta is below the given one at the lower end has no larger epsilon, and
        one whose delta is above it at the upper end has a larger one.
        """
        while True:
            first, *others = compositions
            low, high = map(Fraction, first.epsilon_bounds(self.at, digits))
            at_low = {c: c.delta_bounds(low, digits) for c in others}
            left = [c for c, delta in at_low.items() if delta[1] >= self.at]
            larger = [c for c in left if c.delta_bounds(high, digits)[0] > self.at]
            if not larger:
                return [first, *left]
            largest = max(larger, key=lambda c: at_low[c][0])
            compositions = [largest, *(c for c in left if c is not largest)]


@lru_cache(maxsize=_TELL_APART)
def _composition(release: Release, pair: tuple[int, int]) -> Composition:
    """The composition of a pair with its contours, kept for the next question about it."""
    return release.pair(*pair)


def _larger_is_worse(quantity: str, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    return (-bounds[1], -bounds[0]) if quantity == "beta" else (bounds[0], bounds[1])


def _undecided(bounds: dict[_Candidate, tuple[Any, Any]]) -> dict[_Candidate, tuple[Any, Any]]:
    best = max(low for low, _ in bounds.values())
    return {candidate: ends for candidate, ends in bounds.items() if ends[1] >= best}
