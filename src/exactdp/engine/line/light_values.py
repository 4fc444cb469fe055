"""Long lists: values of noticeable probability one by one, all others split between the points of a lattice.

Most values of a long list have next to no probability together. Where a value lies between two points of a lattice, its
probability is divided between them so that two exponential moments stay: what that changes is of second order in the step, times
the little probability that it concerns (docs/theory/any-composition.md, Theorem 13, "Light values").
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from flint import arb

from exactdp.balls import BITS, precision
from exactdp.doubles import ACCOUNT_SLACK, REMAINDER_SLACK, SUM_SLACK, UNIT, Floats, Ints
from exactdp.engine.line.enumeration import ListedValues
from exactdp.engine.line.suffix_sums import BLOCK

MOST_POINTS = 4_000_000
"""Points of a lattice on which light values are split."""

_HALVINGS = 24  # which finds the least product to six digits
_NEGLIGIBLE = 1e-19  # tilted mass that one value of a mechanism, or one end of the lattice, may leave out
_SPLIT_UNITS = 64  # units of rounding of a share and of products


@dataclass(frozen=True)
class Join:
    """The sums of a value here and a value there, both in descending order of probability: with each value of the second list,
    so many of the first are kept, and the probability of all other sums is `lost`."""

    one: ListedValues
    two: ListedValues
    kept: Ints
    lost: float

    @classmethod
    def but_for(cls, one: ListedValues, two: ListedValues, cut: float) -> Join:
        """Without the sums of the least probability, at most `cut` together, which are not looked at."""
        one, two = _descending(one), _descending(two)
        a, b = np.ascontiguousarray(one.weights[::-1]), two.weights
        tails = np.append(0.0, np.cumsum(a)) * (1 + SUM_SLACK)

        def beyond(log_least: float) -> tuple[Ints, float]:
            """How many of the first are left out with each of the second where products are at least so large, and their mass."""
            with np.errstate(
                divide="ignore", over="ignore"
            ):  # a value that has no probability is left out with all of them
                out = np.searchsorted(a, math.exp(log_least) / b, side="left")
            return out, float(np.sum(b * tails[out])) * (1 + SUM_SLACK)

        low, high = math.log(cut) - 60.0, 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if beyond(middle)[1] <= cut else (low, middle)
        out, lost = beyond(low)
        return cls(one, two, len(a) - out, lost)

    @property
    def count(self) -> int:
        """How many sums are kept."""
        return int(self.kept.sum())

    def values(self) -> ListedValues:
        """Those that are kept."""
        one, two = self.one, self.two
        ends = np.cumsum(self.kept)
        values, weights = np.empty(self.count), np.empty(self.count)
        for value, weight, n, end in zip(two.values, two.weights, self.kept.tolist(), ends.tolist(), strict=True):
            np.add(one.values[:n], value, out=values[end - n : end])
            np.multiply(one.weights[:n], weight, out=weights[end - n : end])
        with precision(BITS):
            anchor = one.anchor + two.anchor
        return ListedValues(
            anchor,
            values,
            weights,
            one.value_error + two.value_error + UNIT * _largest(values),
            one.relative + two.relative + 2 * UNIT,
            one.missing + two.missing,
            (one.absolute + two.absolute) * (1 + ACCOUNT_SLACK),
        )


def _descending(listed: ListedValues) -> ListedValues:
    order = np.argsort(-listed.weights)
    return replace(listed, values=listed.values[order], weights=listed.weights[order])


def _largest(values: Floats) -> float:
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


def joined_but_for(one: ListedValues, two: ListedValues, cut: float, most: int) -> ListedValues | None:
    """The sums of a value here and a value there, of which those of the least probability, at most `cut` together, are left out
    without being looked at; None if more than `most` are left."""
    join = Join.but_for(one, two, cut)
    found = join.values() if join.count <= most else None
    return None if found is None else replace(found, missing=found.missing + join.lost)


def cells_of(values: Floats, step: float) -> tuple[Ints, Floats]:
    """The cell of a lattice in which each value lies, and how far it is into it."""
    cell = values / step
    np.floor(cell, out=cell)
    inside = cell * step  # each step in place: new memory takes longer than the arithmetic
    np.subtract(values, inside, out=inside)
    np.clip(inside, 0.0, step, out=inside)
    return cell.astype(np.int64), inside


def shares(inside: Floats, step: float, tilt: float) -> tuple[Floats, Floats]:
    """What a value gets on either end of its cell, so that E e^{-s x} stays for s = tilt and tilt + 1."""
    upper = np.expm1(-inside) / math.expm1(-step)
    return (1 - upper) * np.exp(-tilt * inside), upper * np.exp(tilt * (step - inside))


def split_error(step: float, tilt: float, split_tilt: float, most: float) -> float:
    """What it costs at most under a tilt to split a value between neighbouring points, in units of its tilted probability, if no
    value of the rest has a probability above `most`: a second difference of the payoff, and a quarter of the step if its kink is
    between them."""
    away = abs(tilt - split_tilt)
    growth = math.exp((away + abs(tilt) + abs(split_tilt) + 3) * step)
    return (away * max(away + 1, 2) * step**2 / 8 + most * step / 4) * growth * (1 + REMAINDER_SLACK)


@dataclass(frozen=True)
class LightValues:
    """The probabilities of points low, low + 1, ... of a lattice, from the anchor of a list on; between neighbours they were
    divided so that E e^{-s x} stays for s = tilt and tilt + 1."""

    tilt: float = 0.0
    low: int = 0
    weights: Floats = field(default_factory=lambda: np.zeros(1))
    split: float = 0.0
    """The mass that was split between neighbours, counted each time."""

    def joined(self, join: Join, step: float) -> tuple[LightValues, float, float]:
        """These with each value of the second list, and the sums that the join does not keep; with the mass that is left out,
        and a bound of all that rounding does to the others."""
        cell, inside = cells_of(join.one.values, step)
        shift, beyond = cells_of(join.two.values, step)
        lower, upper = (join.one.weights * share for share in shares(inside, step, self.tilt))
        parts = np.stack(shares(beyond, step, self.tilt)).T.tolist()
        low = min(self.low, int(cell.min()))
        size = max(self.low + len(self.weights), int(cell.max()) + 2) - low
        cell -= low
        first = int(shift.min())
        found, product = np.zeros(size + int(shift.max()) - first + 1), np.empty(size)
        asked = np.zeros(size)
        asked[self.low - low : self.low - low + len(self.weights)] = self.weights
        mass, missing, end = float(self.weights.sum()), 0.0, len(cell)
        for i, weight in enumerate(join.two.weights.tolist()):
            begin = int(join.kept[i])
            some = slice(begin, end)
            if begin < end:  # with a rarer value of the second list more of the first are left out
                np.add.at(asked, cell[some], lower[some])
                np.add.at(asked[1:], cell[some], upper[some])
                mass, end = mass + float(join.one.weights[some].sum()), begin
            if weight * mass <= _NEGLIGIBLE:
                missing += weight * mass
                continue
            for place, part in enumerate(parts[i], start=int(shift[i]) - first):
                np.multiply(asked, weight * part, out=product)
                found[place : place + size] += product
        low, found, lost = _trimmed(low + first, found)
        kept = float(found.sum())
        rounding = (kept + missing + lost) * (len(cell) + 4 * len(shift) + _SPLIT_UNITS) * UNIT
        split = self.split + (join.lost + kept + lost) * (1 + REMAINDER_SLACK)
        return LightValues(self.tilt, low, found, split), (missing + lost) * (1 + SUM_SLACK), rounding


def _trimmed(low: int, weights: Floats) -> tuple[int, Floats, float]:
    """Points without the ends that are negligible, and what these add up to."""
    begin, end = points_within(weights, _NEGLIGIBLE), len(weights) - points_within(weights[::-1], _NEGLIGIBLE)
    if begin >= end:
        return low, np.zeros(1), float(weights.sum())
    lost = float(weights[:begin].sum()) + float(weights[end:].sum())
    return low + begin, weights[begin:end], lost


def points_within(weights: Floats, mass: float) -> int:
    """How many of the first points add up to at most about `mass`: whole blocks, which takes less time, then single ones."""
    blocks = weights[: len(weights) // BLOCK * BLOCK].reshape(-1, BLOCK).sum(axis=1)
    within = int(np.searchsorted(np.cumsum(blocks), mass, side="right"))
    rest = mass - float(blocks[:within].sum())
    begin = within * BLOCK
    return begin + int(np.searchsorted(np.cumsum(weights[begin : begin + BLOCK]), rest, side="right"))


def heavy_and_light(
    lists: list[ListedValues], step: float, tilt: float, cut: float, most: int
) -> tuple[ListedValues, LightValues] | None:
    """All sums of one value of each list: those of the most probability in a list, and the others, about `cut` together, on the
    points of a lattice; None if there are more than `most`. Any tilt from 0 to MOST_STEP / step is valid."""
    heavy, light = ListedValues(arb(0), np.zeros(1), np.ones(1), 0.0, 0.0, 0.0), LightValues(tilt)
    for one in sorted(lists, key=lambda v: len(v.values)):
        join = Join.but_for(heavy, one, cut / len(lists))
        if join.count > most:
            return None
        light, missing, rounding = light.joined(join, step)
        if len(light.weights) > MOST_POINTS:
            return None
        heavy = join.values()
        # a value that is split has lost a few units of its size
        reach = _largest(join.one.values) + _largest(join.two.values) + step * (abs(light.low) + len(light.weights))
        heavy = replace(
            heavy,
            value_error=heavy.value_error + 4 * UNIT * reach,
            missing=heavy.missing + missing,
            absolute=heavy.absolute + rounding,
        )
    return heavy, light
