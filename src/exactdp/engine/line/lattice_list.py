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
from exactdp.doubles import ACCOUNT_SLACK, SUM_SLACK, UNIT, Floats, Ints
from exactdp.engine.line.common_lattice import LatticeDivision, divided, most_nodes_matter
from exactdp.engine.line.enumeration import Enumeration, ListedValues, fold
from exactdp.engine.line.lattice_bins import LatticeBins, ListCells, even_step
from exactdp.engine.line.suffix_sums import MOST_STEP
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.windows import ranges
from exactdp.mechanisms.loss import Atoms

TILT = Fraction(-1, 2)
"""Under it a loss that is the same in both directions is symmetric about 0; the other tilts are this one and whole numbers."""

FURTHEST = 50.0
"""The variance of the loss up to which tilts that are 1 apart stand close enough: 1 moves the mean by the variance."""

NODES = 1e7
"""Nodes of a Fourier sum that smooths by 1e-11, about."""

LONG_LIST = 100_000
"""Values of a list from which they may be counted by cells of the lattice, and from which more of them are left out."""

_CUT = 1e-22  # tilted mass that one mechanism, or one step on the lattice, may leave out
_CUT_LIST = 1e-15  # the same for the whole list of the others
_CUT_LONG_LIST = 4e-13  # and for one of more values than LONG_LIST
_CUT_LATTICE = 1e-15  # and for the ends of the lattice at last
_MOST = 4  # times the expected number of values: a list that is longer is given up
_HALVINGS = 40
_UNDER_HELD = 3
_FULL = 1.0  # values for each cell from which that pays


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
        cut = _CUT_LIST if division.listed < LONG_LIST else _CUT_LONG_LIST
        rest = listed_values(off, int(_MOST * division.listed) + 1000, cut) if lattice is not None else None
        return cls(total, rest, lattice) if lattice is not None and rest is not None else None

    @property
    def tilts(self) -> HalfTilts:
        """The tilts that these lists serve."""
        return HalfTilts(float(_apart(self.total) or 0))

    def under(self, rung: LineRung) -> Enumeration | LatticeBins:
        """The lists under one of the tilts: moved by the variance of the loss for each 1 of it, and otherwise the same."""

        def make() -> Enumeration | LatticeBins:
            with precision(BITS):
                anchor = self.rest.anchor + ball(rung.index * (_apart(self.total) or 0))
            rest = replace(self.rest, anchor=anchor)
            if self._is_long and self._step * float(rung.tilt + 1) <= MOST_STEP:
                return LatticeBins(self.total, rung, rest, self.lattice, self._cells)
            both = sorted((rest, self.lattice), key=lambda v: len(v.values))
            return Enumeration(self.total, rung.payoff, rung.tilt, *both)

        return self._under.get(rung.index, make)

    @property
    def _step(self) -> float:
        return even_step(self.lattice)

    @property
    def _is_long(self) -> bool:
        """Whether it pays to count the list by cells of the lattice. Heuristic: affects speed only."""
        n = len(self.rest.values)
        return n > LONG_LIST and n > _FULL * float(np.ptp(self.rest.values)) / self._step

    @cached_property
    def _cells(self) -> ListCells:
        return ListCells.of(self.rest, self._step)


def _apart(total: TotalLoss) -> Fraction | None:
    """By how much one more unit of tilt moves the whole loss; None where it does more than that."""
    each = [(p.count, p.loss.per_tilt) for p in total.parts]
    found = [n * v for n, v in each if v is not None]
    return sum(found, Fraction(0)) if found and len(found) == len(each) else None


def lists_suit(total: TotalLoss, nodes: float = NODES) -> LatticeDivision | None:
    """How large such lists are expected to be, where they are quicker than a Fourier sum of so many nodes; None elsewhere.

    Heuristic: affects speed and accuracy only.
    """
    apart = _apart(total)
    suits = apart is not None and apart <= FURTHEST and most_nodes_matter(total, min(nodes, NODES))
    return divided(total) if suits else None


def _atoms(part: Part) -> tuple[arb, Atoms] | None:
    """Where position 0 of all copies of a part is, and their probabilities."""
    tilted = part.loss.tilted(TILT)
    atoms = tilted.atoms(_CUT)
    folded = fold(atoms, part.count) if atoms is not None else None
    return None if folded is None else (part.count * tilted.anchor, folded)


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
    """The distribution on the lattice and one more part, whose values are `stride` steps apart."""
    n = len(weights)
    result, product = np.zeros(n + (len(atoms) - 1) * stride), np.empty(n)
    for i, weight in enumerate(atoms.tolist()):
        np.multiply(weights, weight, out=product)
        result[i * stride : i * stride + n] += product
    return result


def _ends(weights: Floats, cut: float) -> tuple[int, int, float]:
    """The points between both of whose ends all is but a mass of at most about `cut` on either side, and what is beyond."""
    low = int(np.searchsorted(np.cumsum(weights), cut, side="right"))
    high = len(weights) - int(np.searchsorted(np.cumsum(weights[::-1]), cut, side="right"))
    if low >= high:
        return 0, len(weights), 0.0
    lost = float(np.sum(weights[:low])) + float(np.sum(weights[high:]))
    return low, high, lost * (1 + SUM_SLACK)


def listed_values(parts: list[Part], most: int, cut: float) -> ListedValues | None:
    """All values of some parts but for a mass of about `cut`; None if they are more than `most`."""
    found = ListedValues(arb(0), np.zeros(1), np.ones(1), 0.0, 0.0, 0.0)
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
    for one_list in sorted(lists, key=lambda v: len(v.values)):
        joined = joined_but_for(found, one_list, cut / len(lists), most)
        if joined is None:
            return None
        found = joined
    return found


def joined_but_for(one: ListedValues, two: ListedValues, cut: float, most: int) -> ListedValues | None:
    """The sums of a value here and a value there, of which those of the least probability, at most `cut` together, are left out
    without being looked at; None if more than `most` are left."""
    places = [np.argsort(-v.weights) for v in (one, two)]
    a, b = (v.weights[place] for v, place in zip((one, two), places, strict=True))
    tails = np.append(np.cumsum(b[::-1])[::-1], 0.0) * (1 + SUM_SLACK)

    def beyond(log_least: float) -> tuple[Ints, float]:
        """How many of `b` are kept for each of `a` where products are at least so large, and the mass of the others."""
        count = len(b) - np.searchsorted(b[::-1], math.exp(log_least) / a, side="left")
        return count, float(np.sum(a * tails[count])) * (1 + SUM_SLACK)

    low, high = math.log(cut) - 60.0, 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle)[1] <= cut else (low, middle)
    count, lost = beyond(low)
    if int(count.sum()) > most:
        return None
    i = np.repeat(places[0], count)
    j = places[1][ranges(np.zeros(len(count), dtype=np.int64), count - 1)]
    values, weights = one.values[i] + two.values[j], one.weights[i] * two.weights[j]
    with precision(BITS):
        anchor = one.anchor + two.anchor
    return ListedValues(
        anchor,
        values,
        weights,
        one.value_error + two.value_error + UNIT * float(np.max(np.abs(values))),
        one.relative + two.relative + 2 * UNIT,
        one.missing + two.missing + lost,
        (one.absolute + two.absolute) * (1 + ACCOUNT_SLACK),
    )
