"""All values of a loss of discrete Gaussians in two lists: what shares a lattice, point by point, and everything else.

Sums of multiples of one step have few values, whatever the number of mechanisms; only positive numbers are added to find their
probabilities. And one pair of lists serves all thresholds: under the tilts -1/2, 1/2, 3/2, ... a discrete Gaussian is the same
but for its place (docs/theory/any-composition.md, Theorem 13, "A lattice and a list").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.cache import Recent
from exactdp.doubles import ACCOUNT_SLACK, SUM_SLACK, UNIT, Floats
from exactdp.engine.line.common_lattice import MOST_LISTED, LatticeDivision, divided, most_nodes_matter
from exactdp.engine.line.enumeration import Enumeration, ListedValues, fold
from exactdp.engine.line.lattice_bins import LatticeBins, ListCells, even_step, heaviest
from exactdp.engine.line.light_values import (
    MOST_POINTS,
    LightValues,
    heavy_and_light,
    joined_but_for,
    points_within,
    split_error,
)
from exactdp.engine.line.suffix_sums import MOST_STEP
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from exactdp.mechanisms.loss import Atoms

TILT = Fraction(-1, 2)
"""Under it a loss that is the same in both directions is symmetric about 0; the other tilts are this one and whole numbers."""

FURTHEST = 50.0
"""The variance of the loss up to which tilts that are 1 apart stand close enough: 1 moves the mean by the variance."""

NODES = 1e7
"""Nodes of a Fourier sum that smooths by 1e-11, about."""

LONG_LIST = 100_000
"""Values of a list from which they may be counted by cells of the lattice, and from which more of them are left out."""

_CUT = 1e-20  # tilted mass that one mechanism, or one step on the lattice, may leave out
_CUT_LIST = 1e-15  # the same for the whole list of the others
_CUT_LONG_LIST = 4e-13  # and for one of more values than LONG_LIST
_CUT_LATTICE = 1e-15  # and for the ends of the lattice at last
_MOST = 4  # times the expected number of values: a list that is longer is given up
_UNDER_HELD = 3
_FEW_LISTED = 8000.0  # values up to which nothing is split, nor where they are fewer than steps in a deviation
_SPLIT_ERROR = 2e-14  # what it may cost at tilts like those of delta = e^-75 to split light values once
_FAR, _MOST_LIGHT = 150.0, 1e-5
_DEVIATIONS = 20.0  # on which light values lie
_LONGEST_STEP = MOST_STEP / 8  # of a lattice on which light values are split, so that this serves most tilts


@dataclass(frozen=True)
class HalfTilts:
    """The tilts -1/2, 1/2, 3/2, ..., each for the thresholds nearest to its mean: 0, V, 2 V, ..., V the variance of the loss."""

    apart: float

    def rung_of(self, y: float) -> LineRung:
        """The tilt for a threshold from 0 on."""
        k = math.floor(y / self.apart + 0.5)
        payoff = Payoff.DELTA if k else Payoff.COMPLEMENT
        return LineRung(payoff, k, TILT + k, max((k - 0.5) * self.apart, 0.0), (k + 0.5) * self.apart)


@dataclass(frozen=True)
class LatticeLists:
    """The values of a loss under the tilt -1/2: those of the parts on a lattice, and those of the rest."""

    total: TotalLoss
    rest: ListedValues
    lattice: ListedValues
    light: LightValues | None = None
    """Values of the rest of little probability, where these are split between points of the lattice."""
    each: tuple[ListedValues, ...] = ()
    """The values of each part of the rest, where some are split."""
    _under: Recent[int, Enumeration | LatticeBins] = field(
        default_factory=lambda: Recent(_UNDER_HELD), init=False, repr=False, compare=False
    )

    @classmethod
    def plan(cls, total: TotalLoss, division: LatticeDivision, looks: int) -> LatticeLists | None:
        """The lists of a loss; None where they are more than may be looked at."""
        if division.points + division.listed > looks:
            return None
        on = [(p, s) for p, s in zip(total.parts, division.strides, strict=True) if s]
        off = [p for p, s in zip(total.parts, division.strides, strict=True) if not s]
        lattice = lattice_values(on, division.step)
        each = values_of_each(off) if lattice is not None else None
        if lattice is None or each is None:
            return None
        most, step = int(_MOST * division.listed) + 1000, even_step(lattice)
        if _splitting_pays(off, division.listed, step):
            tilt, mass = _splitting(total, lattice)
            both = heavy_and_light(each, step, tilt, mass, most)
            if both is not None:
                return cls(total, both[0], lattice, both[1], tuple(each))
        cut = _CUT_LIST if division.listed < LONG_LIST else _CUT_LONG_LIST
        rest = listed_values(each, most, cut)
        return None if rest is None else cls(total, rest, lattice)

    @property
    def tilts(self) -> HalfTilts:
        """The tilts that these lists serve."""
        return HalfTilts(float(self.total.per_tilt or 0))

    def under(self, rung: LineRung) -> Enumeration | LatticeBins:
        """The lists under one of the tilts: moved by the variance of the loss for each 1 of it, and otherwise the same."""

        def make() -> Enumeration | LatticeBins:
            with precision(BITS):
                moved = ball(rung.index * (self.total.per_tilt or 0))
                if self.light is not None and even_step(self.lattice) * float(rung.tilt + 1) <= MOST_STEP:
                    rest = replace(self.rest, anchor=self.rest.anchor + moved)
                    return LatticeBins(self.total, rung, rest, self.lattice, self._cells)
                rest = replace(self._whole, anchor=self._whole.anchor + moved)
            both = sorted((rest, self.lattice), key=lambda v: len(v.values))
            return Enumeration(self.total, rung.payoff, rung.tilt, *both)

        return self._under.get(rung.index, make)

    @cached_property
    def _cells(self) -> ListCells:
        return ListCells.of(self.rest, even_step(self.lattice), self.light)

    @cached_property
    def _whole(self) -> ListedValues:
        """The rest with nothing split."""
        found = listed_values(list(self.each), MOST_LISTED, _CUT_LONG_LIST) if self.light is not None else self.rest
        if found is None:
            raise AccuracyError(
                "The lists do not apply: the threshold is too far from the mean for values that are split."
            )
        return found


def _splitting_pays(parts: list[Part], listed: float, step: float) -> bool:
    """Whether points of the lattice are few beside so many values. Heuristic: affects speed only."""
    deviation = math.sqrt(math.fsum(p.count * p.loss.mean_variance(-0.5)[1] for p in parts))
    points = deviation / step
    return step <= _LONGEST_STEP and listed > max(_FEW_LISTED, points) and _DEVIATIONS * points <= MOST_POINTS


def _splitting(total: TotalLoss, lattice: ListedValues) -> tuple[float, float]:
    """At which tilt light values are best split, and how much tilted mass may be, each value two or three times. Heuristic:
    affects speed and accuracy only."""
    step = even_step(lattice)
    far = min(math.sqrt(_FAR / float(total.per_tilt or 1)), MOST_STEP / step)
    tilt = max(round(far - 1) - 0.5, 0.0)
    return tilt, min(_SPLIT_ERROR / split_error(step, far, tilt, heaviest(lattice)), _MOST_LIGHT)


def lists_suit(total: TotalLoss, nodes: float = NODES) -> LatticeDivision | None:
    """How large such lists are expected to be, where they are quicker than a Fourier sum of so many nodes; None elsewhere.

    Heuristic: affects speed and accuracy only.
    """
    if not most_nodes_matter(total, min(nodes, NODES)):  # the quickest to tell
        return None
    apart = total.per_tilt
    return divided(total) if apart is not None and apart <= FURTHEST else None


def _atoms(part: Part) -> tuple[arb, Atoms] | None:
    """Where position 0 of all copies of a part is, and their probabilities."""
    tilted = part.loss.tilted(TILT)
    found = tilted.atoms(_CUT)
    atoms = _evenly_cut(found) if found is not None else None
    folded = fold(atoms, part.count) if atoms is not None else None
    if atoms is None or folded is None:
        return None
    middle = part.count * int(atoms.positions[0] + atoms.positions[-1])
    if is_even(atoms) and not folded.absolute and int(folded.positions[0] + folded.positions[-1]) == middle:
        folded = replace(folded, weights=mirrored(folded.weights.copy()))
    return (part.count * tilted.anchor, folded)


def _evenly_cut(atoms: Atoms) -> Atoms:
    """The same without the value at an end that alone has no counterpart, if it is negligible."""
    if is_even(atoms):
        return atoms
    for some, other in ((slice(1, None), 0), (slice(None, -1), -1)):
        lost = float(atoms.weights[other]) * (1 + SUM_SLACK)
        rest = replace(
            atoms, positions=atoms.positions[some], weights=atoms.weights[some], missing=atoms.missing + lost
        )
        if lost <= _CUT and is_even(rest):
            return rest
    return atoms


def is_even(atoms: Atoms) -> bool:
    """Whether positions are one apart and probabilities the same from either end."""
    n = len(atoms.positions)
    return bool(n and atoms.positions[-1] - atoms.positions[0] == n - 1 and is_symmetric(atoms.weights))


def is_symmetric(weights: Floats) -> bool:
    """Whether these are the same from either end, to the last digit."""
    return bool(np.array_equal(weights, weights[::-1]))


def mirrored(weights: Floats) -> Floats:
    """The second half as the first one is. What rounds differently is the same number: both are sums of the same products."""
    half = len(weights) // 2
    weights[len(weights) - half :] = weights[:half][::-1]
    return weights


def lattice_values(parts: list[tuple[Part, int]], step: Fraction) -> ListedValues | None:
    """The sum of parts on one lattice, each with the steps of its unit: products of positive numbers, added point by point."""
    with precision(BITS):
        found = [(_atoms(part), stride) for part, stride in parts]
    anchor, start = arb(0), 0
    weights, relative, missing, absolute = np.ones(1), 0.0, 0.0, 0.0
    # many values of little noise first, while there are few points
    for one, stride in sorted(found, key=lambda f: 0 if f[0] is None else -len(f[0][1].weights)):
        if one is None:
            return None
        base, atoms = one
        with precision(BITS):
            anchor += base
        weights = _spread(weights, atoms.weights, stride)
        low, high, lost = _ends(weights, _CUT)
        weights = weights[low:high]
        start += int(atoms.positions[0]) * stride + low
        relative += atoms.relative + (len(atoms.weights) + 2) * UNIT
        missing += atoms.missing + lost
        absolute = (absolute + atoms.absolute) * (1 + ACCOUNT_SLACK)
    low, high, lost = _ends(weights, _CUT_LATTICE)
    values = np.arange(start + low, start + high, dtype=np.float64) * float(step)
    error = 3 * UNIT * float(np.max(np.abs(values)))
    return ListedValues(anchor, values, weights[low:high], error, relative, missing + lost, absolute)


def _spread(weights: Floats, atoms: Floats, stride: int) -> Floats:
    """The distribution on the lattice and one more part, whose values are `stride` steps apart; where both are symmetric one
    half of it is added up."""
    size = len(weights) + (len(atoms) - 1) * stride
    half = is_symmetric(weights) and is_symmetric(atoms)
    end = (size + 1) // 2 if half else size
    result, product = np.zeros(size), np.empty(min(len(weights), end))
    for i, weight in enumerate(atoms.tolist()):
        some = weights[: max(end - i * stride, 0)]
        np.multiply(some, weight, out=product[: len(some)])
        result[i * stride : i * stride + len(some)] += product[: len(some)]
    return mirrored(result) if half else result


def _ends(weights: Floats, cut: float) -> tuple[int, int, float]:
    """The points between both of whose ends all is but a mass of at most about `cut` on either side, and what is beyond."""
    low, high = points_within(weights, cut), len(weights) - points_within(weights[::-1], cut)
    if low >= high:
        return 0, len(weights), 0.0
    lost = float(np.sum(weights[:low])) + float(np.sum(weights[high:]))
    return low, high, lost * (1 + SUM_SLACK)


def values_of_each(parts: list[Part]) -> list[ListedValues] | None:
    """The values of each of some parts; None if there are too many."""
    lists = []
    with precision(BITS):
        for part in parts:
            one = _atoms(part)
            if one is None:
                return None
            anchor, atoms = one
            values = atoms.positions.astype(np.float64) * float(part.loss.step or 0)
            error = 3 * UNIT * float(np.max(np.abs(values)))
            rounding = atoms.relative, atoms.missing, atoms.absolute
            lists.append(ListedValues(anchor, values, atoms.weights, error, *rounding))
    return lists


def listed_values(lists: list[ListedValues], most: int, cut: float) -> ListedValues | None:
    """All sums of a value of each list but for a mass of about `cut`; None if they are more than `most`."""
    found = ListedValues(arb(0), np.zeros(1), np.ones(1), 0.0, 0.0, 0.0)
    for one_list in sorted(lists, key=lambda v: len(v.values)):
        joined = joined_but_for(found, one_list, cut / len(lists), most)
        if joined is None:
            return None
        found = joined
    return found
