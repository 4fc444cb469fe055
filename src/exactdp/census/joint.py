"""Several products under one neighbouring change: which coordinates move together, over all paths that can occur together.

Losses of independent noise add up, so a change that moves coordinates of several products is told by the composition of all of
them; adaptivity between products costs nothing, because noise and shifts do not depend on earlier answers (Theorem A1 of
docs/theory/adaptive.md). What coincides is a choice of a path, or of two, in each product; which choices occur together is not
published, so all are taken: an upper bound. docs/whole-census.md has the derivations.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.separate_pairs import SeparatePairs
from exactdp.arithmetic_state import steady
from exactdp.brackets import Point
from exactdp.census.built_in import release
from exactdp.census.changes import CHANGES, Change, Follow, change_named
from exactdp.census.overall import Overall, SeparateOverall
from exactdp.census.overall_answers import OverallAnswers
from exactdp.census.releases import Release
from exactdp.census.worst_of_many import ManyPairs, WorstOfMany
from exactdp.engine.family.line_contours import LineFamily
from exactdp.errors import InvalidInputError
from exactdp.guarantees.zcdp import zcdp_epsilon, zcdp_epsilon_simple
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, read_delta, shown
from exactdp.numerals import counted

_NAME = re.compile(r"(?P<product>.+)-(?P<where>us|pr)(?:-[a-z-]+)?")
_PLACES = {"us": "United States", "pr": "Puerto Rico"}
MOST = 1_000_000
"""Combinations of paths."""
FEW = 12
"""Combinations that are asked one by one."""
_MANY = 5_000  # combinations of which only the worst is asked for, never each by itself
POST_PROCESSING = (
    "Post-processing, without further loss: microdata files, the Demographic Profile, noisy measurement files, fitting one "
    "product to another, suppression and thresholds on noisy counts, model-based figures."
)
ADAPTIVE = (
    "Later products that look at earlier ones (DHC at P.L. 94-171, DDHC-B at DDHC-A, the second stage of DDHC-A at its first) "
    "cost nothing more: noise and shifts are fixed beforehand (Theorem A1)."
)


class Paths(NamedTuple):
    """The paths that one product's records follow, and the noise that hides them there."""

    numbers: tuple[int, ...]
    halves: tuple[Mapping[Mechanism, int], ...]
    """Of each record that leaves or enters, along its path."""

    @property
    def mechanisms(self) -> Counter[Mechanism]:
        """All of it."""
        return sum(map(Counter, self.halves), Counter[Mechanism]())


@dataclass(frozen=True)
class FollowedProduct:
    """One product under a change: every choice of paths that its records have."""

    release: Release
    follow: Follow

    @cached_property
    def choices(self) -> tuple[Paths, ...]:
        """All paths, or all pairs of paths, that the change can take; one of none where nothing moves."""
        numbers, halves = sorted(self.release.allocations), self.follow.halves
        if not halves:
            return (Paths((), ()),)
        each = [{n: half.mechanisms(self.release.allocations[n]) for n in numbers} for half in halves]
        if len(halves) == 1:
            return tuple(Paths((n,), (each[0][n],)) for n in numbers)
        pairs: Iterable[tuple[int, int]] = itertools.product(numbers, numbers)
        if self.follow.is_in_place:
            pairs = ((n, n) for n in numbers)
        elif halves[0] == halves[1]:
            pairs = itertools.combinations_with_replacement(numbers, 2)
        return tuple(Paths((k, other), (each[0][k], each[1][other])) for k, other in pairs)

    @property
    def full(self) -> Paths:
        """The full path, or the full path with itself."""
        numbers = (self.release.full_path,) * len(self.follow.halves)
        return next(choice for choice in self.choices if choice.numbers == numbers)

    @property
    def rho(self) -> Fraction:
        """zCDP's rho: the largest of all choices."""
        return max(_rho(choice.mechanisms) for choice in self.choices)


@steady
@dataclass(frozen=True)
class Joint(OverallAnswers):
    """Several products under one neighbouring change, over all paths that can occur together: an upper bound.

    >>> persons = joint("ddhc-a-pr+s-dhc-pr", "person added or removed")
    >>> persons.rho
    Fraction(3869649, 1000000)
    """

    _repr_html_ = repr_html

    change: Change
    parts: tuple[FollowedProduct, ...] = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.change.name}, {counted(self.count, 'combination of paths', 'combinations of paths')}"
        )

    @property
    def name(self) -> str:
        """The products, as `joint` takes them."""
        return "+".join(part.release.name for part in self.parts)

    @cached_property
    def moved(self) -> tuple[FollowedProduct, ...]:
        """The products that the change moves."""
        return tuple(part for part in self.parts if part.follow.halves)

    @property
    def count(self) -> int:
        """How many combinations of paths there are."""
        return math.prod(len(part.choices) for part in self.moved)

    @cached_property
    def rho(self) -> Fraction:
        """zCDP's rho: the largest of all combinations, which is the sum of the products' largest."""
        return sum((part.rho for part in self.moved), Fraction(0))

    @cached_property
    def full(self) -> Composition:
        """The composition of the full paths, on which nothing is bypassed."""
        return Composition(_together(part.full for part in self.moved))

    def paths(self, number: int) -> dict[str, tuple[int, ...]]:
        """The paths of one combination, by product."""
        return {part.release.name: choice.numbers for part, choice in self._choices(number)}

    def composition(self, number: int) -> Composition:
        """The composition of one combination."""
        return Composition(_together(choice for _, choice in self._choices(number)))

    def worst(self, delta: Number) -> list[dict[str, tuple[int, ...]]]:
        """The combinations of paths that may have the largest epsilon at this delta: one where that is proved, or a tie."""
        at = Fraction(self.epsilon(read_delta(delta)))
        pairs = self._overall.pairs
        screened = pairs.screen([at])
        point = self._overall.point(at) if screened is None else next(screened)
        upper, lower = point.delta.log_upper(), point.delta.log_lower()
        return [self.paths(int(i)) for i in np.flatnonzero(upper >= lower.max())]

    def table(self, epsilon: Fraction) -> Point:
        """delta(epsilon) and 1 - delta(epsilon) of every combination, as the account of all of them has it."""
        return self._overall.point(epsilon)

    def zcdp_epsilon(self, delta: Number, *, is_simple: bool = False) -> float:
        """What zCDP's rho alone says: by the optimal conversion, or by the simple one, rounded up."""
        return float((zcdp_epsilon_simple if is_simple else zcdp_epsilon)(self.rho, delta))

    def words(self) -> list[tuple[str, str]]:
        """What is accounted for: the change, what moves in each product, what is published exactly, and what is assumed."""
        where = _PLACES[_parsed(self.parts[0].release.name)[1]]
        moves = [(part.release.name, part.follow.said) for part in self.parts]
        over = "for paths on which nothing is bypassed"
        if self.count > 1:
            over = f"over {self.count:,} combinations of paths; which of them occur together is not published"
        return [
            ("change", self.change.words),
            ("place", f"{where} alone: no record is in both the United States and Puerto Rico"),
            *moves,
            ("invariants", self.change.invariants),
            ("bound", f"an upper bound {over}"),
        ]

    @cached_property
    def _ordered(self) -> tuple[FollowedProduct, ...]:
        """The products that move, the one with the most choices first."""
        return tuple(sorted(self.moved, key=lambda part: -len(part.choices)))

    def _choices(self, number: int) -> list[tuple[FollowedProduct, Paths]]:
        """The choice of each product in one combination; combinations are counted with the last product's choice running."""
        places = np.unravel_index(number, [len(part.choices) for part in self._ordered])
        chosen = {part.release.name: part.choices[int(i)] for part, i in zip(self._ordered, places, strict=True)}
        return [(part, chosen[part.release.name]) for part in self.moved]

    @cached_property
    def _overall(self) -> Overall:
        """The engine: the choices of one product and those of all others together are the members of a family on the line."""
        if self.count > FEW:
            family = self.family()
            if family.can_share:
                return Overall(LinePairs(family)) if self.count <= _MANY else WorstOfMany(ManyPairs(family))
        every = tuple(self.composition(number).mechanisms for number in range(self.count))
        return SeparateOverall(SeparatePairs(every))

    def family(self) -> LineFamily:
        """All combinations as the pairs of a family on the line, in their order."""
        first, *rest = self._ordered
        left: list[tuple[Paths, ...]] = [(choice,) for choice in first.choices]
        right = list(itertools.product(*(part.choices for part in rest))) if rest else []
        pairs: Iterable[tuple[int, ...]] = ((i,) for i in range(len(left)))
        if rest:
            pairs = itertools.product(range(len(left)), range(len(left), len(left) + len(right)))
        members = [[half for choice in chosen for half in choice.halves] for chosen in (*left, *right)]
        places = {id(half): (i, half) for i, half in enumerate({id(h): h for m in members for h in m}.values())}
        made_of = tuple(tuple(places[id(half)][0] for half in member) for member in members)
        bases = tuple(half for _, half in places.values())
        return LineFamily(tuple(map(_together, (*left, *right))), tuple(pairs), bases, made_of)


def _together(choices: Iterable[Paths]) -> Counter[Mechanism]:
    """The noise of several products."""
    return sum((choice.mechanisms for choice in choices), Counter[Mechanism]())


def _rho(mechanisms: Mapping[Mechanism, int]) -> Fraction:
    return sum((Fraction(m.rho) * count for m, count in mechanisms.items()), Fraction(0))


def _parsed(name: str) -> tuple[str, str]:
    """The product that a release is, and where; refused where it is none of those that changes are followed through."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise InvalidInputError(
            f"Products of the 2020 Census end in -us or -pr, such as dhc-persons-us. Found {shown(name)}."
        )
    return found["product"], found["where"]


@steady
def joint(products: str | Iterable[str], change: str | Change) -> Joint:
    """Several products of the 2020 Census under one neighbouring change.

    `products` are names of releases, joined by + or in a list, all of the United States or all of Puerto Rico; `change` is one of
    `change_names()`. A product that the change is not followed through is refused, never taken as free.

    >>> joint("pl94-persons-us+dhc-persons-us", "person replaced").rho
    Fraction(4320124931, 574605000)
    """
    names = [name.strip() for name in (products.split("+") if isinstance(products, str) else products)]
    what = change_named(change)
    parsed = [(release(name), *_parsed(name)) for name in names]
    if not parsed:
        raise InvalidInputError("A joint account needs at least one product. Found none.")
    if len({where for _, _, where in parsed}) > 1:
        raise InvalidInputError(
            f"No record is both in the United States and in Puerto Rico: account for them apart. Found {shown(', '.join(names))}."
        )
    published = Counter("s-dhc" if product.startswith("s-dhc") else product for _, product, _ in parsed)
    twice = [product for product, count in published.items() if count > 1]
    if twice:
        raise InvalidInputError(f"Each product is counted once. Found {twice[0]} {published[twice[0]]} times.")
    found = Joint(what, tuple(FollowedProduct(of, what.follow(product)) for of, product, _ in parsed))
    if not found.moved:
        raise InvalidInputError(
            f"The change {shown(what.name)} moves nothing in {shown(found.name)}, so it costs nothing. Add one that it moves."
        )
    if found.count > MOST:
        raise InvalidInputError(
            f"At most {MOST:,} combinations of paths are accounted for. Found {found.count:,}; take releases with fewer paths."
        )
    return found


def products_of(products: str) -> list[str]:
    """The products that names joined by + are, without where."""
    return [_parsed(name.strip())[0] for name in products.split("+")]


@steady
def change_names() -> tuple[str, ...]:
    """The changes that `joint` takes."""
    return tuple(CHANGES)
