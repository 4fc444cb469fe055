"""Direct enumeration: every value of the loss, in two halves.

Where the losses are few, delta is a finite sum of non-negative terms. The parts are divided into two halves, the values of each
half are listed (with probabilities under a tilt, so that nothing underflows), one half is sorted and summed from its end, and
every value of the other half asks for one tail of it: n m values for the price of n + m log m. No Fourier sum, no smoothing;
the bounds are those of docs/theory/any-composition.md, Theorem 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import ACCOUNT_SLACK, FFT_SLACK, REMAINDER_SLACK, SUM_SLACK, UNDERFLOW, UNIT, Floats, Ints
from exactdp.engine.line.protocol import OneByOne, Used
from exactdp.engine.line.suffix_sums import BLOCK, SUFFIX_UNITS, block_sum, suffix_sums
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.mechanisms.loss import Atoms, Loss

CUT = 1e-26
"""Tilted mass that each step may leave out."""

MOST_VALUES = 1_500_000
"""Values of one half."""

_LONGEST_FOLD = 300_000  # values of all copies of one mechanism
_MOST_COPIES = 200  # of a table with no common unit
_EVEN_FROM, _EVEN = 1000, 1e-6  # values whose distances are the same to so many digits are found without a search
_LONG = 1000  # terms of a convolution from which FFTs are used
_LONGEST = 2_000_000  # terms of two distributions to be convolved


@dataclass(frozen=True)
class ListedValues:
    """Some parts of a loss under a tilt: values relative to `anchor`, in doubles, with tilted probabilities.

    `value_error` bounds the error of each value, `relative` that of each probability, up to errors that add up to `absolute`;
    `missing` bounds the mass left out.
    """

    anchor: arb
    values: Floats
    weights: Floats
    value_error: float
    relative: float
    missing: float
    absolute: float = 0.0

    def ascending(self) -> ListedValues:
        """The same with values in ascending order."""
        if bool((self.values[1:] >= self.values[:-1]).all()):
            return self
        order = np.argsort(self.values)
        return replace(self, values=self.values[order], weights=self.weights[order])

    def joined(self, other: ListedValues, cut: float = CUT) -> ListedValues:
        """The sums of a value here and a value there, without those of negligible probability, about `cut` together."""
        with precision(BITS):
            anchor = self.anchor + other.anchor
        values = np.add.outer(self.values, other.values).ravel()
        weights = np.multiply.outer(self.weights, other.weights).ravel()
        keep, lost = _without_negligible(weights, cut)
        largest = float(np.max(np.abs(values)))
        return ListedValues(
            anchor,
            values[keep],
            weights[keep],
            self.value_error + other.value_error + UNIT * largest,
            self.relative + other.relative + 2 * UNIT,
            self.missing + other.missing + lost,
            (self.absolute + other.absolute) * (1 + ACCOUNT_SLACK),
        )


def _without_negligible(weights: Floats, cut: float = CUT) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], float]:
    """Which weights to keep, so that the others add up to at most about `cut`, and what those add up to."""
    keep = weights > cut / len(weights)
    return keep, float(np.sum(weights[~keep])) * (1 + SUM_SLACK)


def one_lattice(loss: Loss) -> float | None:
    """The unit of a loss on one lattice, 0 for a constant, None for other losses."""
    return loss.unit


def expected_values(total: TotalLoss, tilt: float) -> float:
    """log of the number of values of the whole loss. Heuristic: affects speed only."""
    logs = 0.0
    for part in total.parts:
        variance = part.count * part.loss.mean_variance(tilt)[1]
        unit = one_lattice(part.loss)
        if unit is None:
            table = part.loss.tilted(Fraction(1, 2)).table()
            if table is None or part.count > _MOST_COPIES:
                return math.inf
            m = len(table[1])  # multisets of so many of m
            logs += math.lgamma(part.count + m) - math.lgamma(part.count + 1) - math.lgamma(m)
        elif unit:
            size = 1 + 2 * (math.sqrt(2 * -math.log(CUT) * variance) + unit) / unit
            if size > _LONGEST_FOLD:
                return math.inf
            logs += math.log(size)
    return logs


def list_values(total: TotalLoss, tilt: Fraction, looks: int) -> list[ListedValues] | None:
    """The values of each part, all copies together; None if some part is on no lattice or has too many, or if one step of it
    would look at more than `looks` numbers."""
    result = []
    with precision(BITS):
        for part in total.parts:
            tilted = part.loss.tilted(tilt)
            if part.loss.is_constant:
                one = np.ones(1)
                result.append(ListedValues(part.count * tilted.anchor, np.zeros(1), one, 0.0, 0.0, 0.0))
                continue
            table = tilted.table() if len(tilted.units) > 1 else None
            if table is not None:
                several = _fold_table(*table, part.count, min(MOST_VALUES, looks // len(tilted.units)))
                if several is None:
                    return None
                steps, weights, relative, missing = several
                terms = steps * np.array([float(u.mid()) for u in tilted.units])
                error = (len(tilted.units) + 3) * UNIT * float(np.max(np.sum(np.abs(terms), axis=1)))
                result.append(
                    ListedValues(part.count * tilted.anchor, terms.sum(axis=1), weights, error, relative, missing)
                )
                continue
            lattice = len(tilted.units) == 1 and not tilted.spread and not tilted.by_frequency
            atoms = tilted.atoms(CUT) if lattice else None
            folded = fold(atoms, part.count) if atoms is not None else None
            if folded is None or len(folded.weights) > looks:
                return None
            unit = float(tilted.units[0].mid())
            values = folded.positions.astype(np.float64) * unit
            error = 3 * UNIT * float(np.max(np.abs(values)))
            anchor = part.count * tilted.anchor
            result.append(
                ListedValues(anchor, values, folded.weights, error, folded.relative, folded.missing, folded.absolute)
            )
    return result


def fold(atoms: Atoms, count: int) -> Atoms | None:
    """The distribution of the sum of `count` copies, by repeated squaring; only positive numbers are added."""
    result, power = None, _dense(atoms)
    while True:
        if count & 1:
            result = power if result is None else _convolved(result, power)
            if result is None:
                return None
        count >>= 1
        if not count:
            return result
        squared = _convolved(power, power)
        if squared is None:
            return None
        power = squared


def _fold_table(
    steps: Ints, weights: Floats, count: int, most: int = MOST_VALUES
) -> tuple[Ints, Floats, float, float] | None:
    """The same for a table of integer combinations: equal combinations are merged, one copy at a time; None if they are more
    than `most` before that."""
    found: Ints = np.zeros((1, steps.shape[1]), dtype=np.int64)
    own: Floats = np.ones(1)
    relative = missing = 0.0
    for _ in range(count):
        if len(own) * len(weights) > most:
            return None
        sums = (found[:, None, :] + steps[None, :, :]).reshape(-1, steps.shape[1])
        products = np.multiply.outer(own, weights).ravel()
        found, place = _distinct(sums)
        own = np.bincount(place, weights=products).astype(np.float64)
        keep, lost = _without_negligible(own)
        found, own = found[keep], own[keep]
        relative += (4 + 2 + len(weights)) * UNIT
        missing += lost + UNDERFLOW * len(products)
    return found, own, relative, missing


def _distinct(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows in ascending order, and the place of each row among them: np.unique, several times faster.

    Rows are told apart by one number each, a sum with odd multipliers modulo 2^64; that equal numbers mean equal rows is checked.
    """
    multipliers = np.random.default_rng(0).integers(1 << 62, size=rows.shape[1]) * 2 + 1
    _, first, place = np.unique(rows @ multipliers, return_index=True, return_inverse=True)
    found = rows[first]
    if not np.array_equal(found[place], rows):
        found, place = np.unique(rows, axis=0, return_inverse=True)
        return found, place.ravel()
    order = np.lexsort(found.T[::-1])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return found[order], rank[place.ravel()]


def _dense(atoms: Atoms) -> Atoms:
    """The same with consecutive positions."""
    low, high = int(atoms.positions[0]), int(atoms.positions[-1])
    weights = np.zeros(high - low + 1)
    weights[atoms.positions - low] = atoms.weights
    return Atoms(np.arange(low, high + 1), weights, atoms.relative, atoms.missing)


def _convolved(one: Atoms, two: Atoms) -> Atoms | None:
    if len(one.weights) + len(two.weights) > _LONGEST:
        return None
    weights, relative, absolute = _product(one.weights, two.weights)
    start = int(one.positions[0] + two.positions[0])
    keep, lost = _without_negligible(weights)
    where = np.flatnonzero(keep)
    low, high = int(where[0]), int(where[-1])
    return Atoms(
        np.arange(start + low, start + high + 1),
        weights[low : high + 1],
        one.relative + two.relative + relative,
        one.missing + two.missing + lost,
        (one.absolute + two.absolute) * (1 + ACCOUNT_SLACK) + absolute,
    )


def _product(one: Floats, two: Floats) -> tuple[Floats, float, float]:
    """The convolution of two weight vectors, its relative error, and a bound on the sum of its other errors.

    Short ones term by term, positive numbers only. Long ones by FFT, under the assumption of dense_fft.py: the Euclidean error
    is at most 8 log2(n) units of |one| + |two| + |product|, all weights adding up to 1.
    """
    if min(len(one), len(two)) <= _LONG:
        return np.convolve(one, two), (min(len(one), len(two)) + 2) * UNIT, 0.0
    n = len(one) + len(two) - 1
    size = 1 << math.ceil(math.log2(n))
    product = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(two, size), size)
    norms = sum(float(np.linalg.norm(v)) for v in (one, two, product))
    error = 8.1 * math.log2(size) * UNIT * norms * math.sqrt(size)
    return np.maximum(product[:n], 0.0), 0.0, (1 + FFT_SLACK) * error


def halves(parts: list[ListedValues], looks: int) -> tuple[ListedValues, ListedValues] | None:
    """The parts joined into two halves of similar size; None if a half would have too many values."""
    groups = [ListedValues(arb(0), np.zeros(1), np.ones(1), 0.0, 0.0, 0.0)] * 2
    for part in sorted(parts, key=lambda p: -len(p.values)):
        smaller = 0 if len(groups[0].values) <= len(groups[1].values) else 1
        if len(groups[smaller].values) * len(part.values) > min(4 * MOST_VALUES, looks):
            return None
        groups[smaller] = groups[smaller].joined(part)
        if len(groups[smaller].values) > MOST_VALUES:
            return None
    first, second = sorted(groups, key=lambda g: -len(g.values))
    return first, second


class Enumeration(OneByOne):
    """A total loss listed under one tilt, ready for any number of thresholds."""

    def __init__(
        self, total: TotalLoss, payoff: Payoff, tilt: Fraction, asking: ListedValues, sorted_half: ListedValues
    ) -> None:
        self._payoff, self._tilt, self._lam = payoff, tilt, float(tilt)
        self._asking = asking.ascending()
        sorted_half = sorted_half.ascending()
        self._values, self._weights = sorted_half.values, sorted_half.weights
        with precision(BITS):
            self._anchor = asking.anchor + sorted_half.anchor
            self._log_moment = total.log_moment(tilt)
        self._value_error = asking.value_error + sorted_half.value_error
        self._relative = asking.relative + sorted_half.relative
        self._missing = asking.missing + sorted_half.missing
        self._absolute = (asking.absolute + sorted_half.absolute) * (1 + ACCOUNT_SLACK)
        self.sizes = len(asking.values), len(sorted_half.values)

    @cached_property
    def _above(self) -> Floats:
        """Sums over j >= i of w_j e^{-tilt (x_j - x_i)}, tilt > 0."""
        return suffix_sums(self._values, self._weights, self._lam)

    @cached_property
    def _above_discounted(self) -> Floats:
        """Sums over j >= i of w_j e^{-(tilt + 1) (x_j - x_i)}."""
        return suffix_sums(self._values, self._weights, self._lam + 1)

    @cached_property
    def _above_gains(self) -> Floats:
        """D_i = sums over j >= i of w_j e^{-tilt (x_j - x_i)} (1 - e^{-(x_j - x_i)}), from non-negative terms only.

        1 - e^{-(x_j - x_i)} is a telescoping sum over the gaps g between neighbours, which turns D into a sum like the others:
        D_i = sum over m >= i of c_m e^{-(tilt + 1) (x_m - x_i)} with c_m = (1 - e^{-g}) e^{-tilt g} S_{m+1}, g = x_{m+1} - x_m.
        """
        gaps = np.diff(self._values)
        c = np.append(-np.expm1(-gaps) * np.exp(-self._lam * gaps) * self._above[1:], 0.0)
        return suffix_sums(self._values, c, self._lam + 1)

    @cached_property
    def _below(self) -> Floats:
        """Sums over j <= i of w_j e^{tilt (x_i - x_j)}, tilt < 0."""
        return suffix_sums(-self._values[::-1], self._weights[::-1], -self._lam)[::-1]

    def used(self, y: arb) -> Used:
        """How many values were listed; the same for every threshold."""
        return used_lists(self._payoff, self.sizes)

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """The sum over the asking half of the tails of the sorted half (Theorem 13)."""
        with precision(BITS):
            away = self._anchor - y
            exact = self._log_moment - ball(self._tilt) * y
            log_scale = float(exact.mid())
            slip = float((exact - arb(log_scale)).mid())
            # e^{-tilt (x - y)} is computed from x - y, of which the anchor is a part
            shift = float(away.mid())
        # with u = x - y: the asking half contributes a, the sorted half b, u = shift + a + b
        starts = -(shift + self._asking.values)
        error = self._value_error + 4 * UNIT * (abs(shift) + float(np.max(np.abs(self._asking.values))))
        n = len(self._values)
        m = len(self._asking.values)
        steps = min(n, BLOCK) + n / BLOCK + min(m, BLOCK) + SUFFIX_UNITS
        relative = self._relative + (steps + abs(self._lam) * 4) * UNIT + (abs(self._lam) + 1) * 2 * error
        first = self._first_above(starts)
        tails = _ListTails(self._values, first, starts)
        weights = self._asking.weights
        discounted = tails.of(self._above_discounted, self._lam + 1)
        slope = block_sum(weights * discounted)
        if self._payoff is Payoff.DELTA:
            wide = self._with_doubtful(first, starts - 4 * error)
            over = block_sum(weights * _ListTails(self._values, wide, starts).of(self._above, self._lam))
            value = block_sum(weights * tails.gains(self._above_gains, self._above_discounted, self._lam))
            wrong = over * 2 * error + value * math.expm1(min(2 * relative, 700.0))
            largest = 1 / (1 + self._lam)  # of e^{-tilt u} (1 - e^{-u})
        else:
            value = block_sum(weights * (discounted + self._lower(first, starts)))
            wrong = value * math.expm1(min(relative + 2 * error, 700.0))
            largest = 1.0
        wrong += self._absolute * largest
        missing = self._missing * largest
        factor = math.exp(slip)
        wrong, value = wrong * (1 + REMAINDER_SLACK) * factor, value * factor
        upper = (value + wrong + missing * (1 + REMAINDER_SLACK)) * (1 + 8 * UNIT) + UNDERFLOW
        return log_scale, max(value - wrong, 0.0) * (1 - 4 * UNIT), upper, slope * factor

    @cached_property
    def _even_step(self) -> float:
        """The distance of neighbours where it is the same for all but for rounding; 0 otherwise."""
        if len(self._values) < _EVEN_FROM:
            return 0.0
        gaps = np.diff(self._values)
        return float(gaps.mean()) if bool((np.abs(gaps - gaps.mean()) < _EVEN * gaps.mean()).all()) else 0.0

    def _first_above(self, starts: Floats) -> Ints:
        """The place of the first value above each start."""
        if self._even_step:
            n = len(self._values)
            place = np.clip(np.floor((starts - self._values[0]) / self._even_step), -1, n - 1).astype(np.int64)
            found: Ints = place + 1
            below = self._values[place] <= starts
            above = self._values[np.minimum(found, n - 1)] > starts
            if bool(((below | (found == 0)) & (above | (found == n))).all()):
                return found
        return np.searchsorted(self._values, starts, side="right")

    def _with_doubtful(self, first: Ints, starts: Floats) -> Ints:
        """The same for starts that are lower by a rounding error."""
        if self._even_step:
            before = np.maximum(first - 1, 0)
            found: Ints = np.where((first > 0) & (self._values[before] > starts), before, first)
            if bool(((found == 0) | (self._values[np.maximum(found - 1, 0)] <= starts)).all()):
                return found
        return np.searchsorted(self._values, starts, side="right")

    def _lower(self, first: Ints, starts: Floats) -> Floats:
        """Sums over sorted values at or below each start t of w e^{tilt (t - x)}, tilt < 0."""
        at = np.maximum(first - 1, 0)
        gap = np.maximum(starts - self._values[at], 0.0)
        return np.where(first > 0, np.exp(self._lam * gap) * self._below[at], 0.0)


class _ListTails:
    """Sums over the values of a sorted list that are above each start t, the first of them at a known place."""

    def __init__(self, values: Floats, first: Ints, starts: Floats) -> None:
        self._any = first < len(values)
        self._at = np.minimum(first, len(values) - 1)
        self._gap = np.maximum(values[self._at] - starts, 0.0)

    def of(self, sums: Floats, s: float) -> Floats:
        """Sums of w e^{-s (x - t)} from those of w e^{-s (x - x_i)}."""
        return np.where(self._any, np.exp(-s * self._gap) * sums[self._at], 0.0)

    def gains(self, sums: Floats, discounted: Floats, tilt: float) -> Floats:
        """Sums of w e^{-tilt u} (1 - e^{-u}), u = x - t: with d the distance to the first value, 1 - e^{-u} is (1 - e^{-(u - d)})
        + e^{-(u - d)} (1 - e^{-d})."""
        found = sums[self._at] - np.expm1(-self._gap) * discounted[self._at]
        return np.where(self._any, np.exp(-tilt * self._gap) * found, 0.0)


def used_lists(payoff: Payoff, sizes: tuple[int, int]) -> Used:
    """The account of two lists."""
    rows = (("values listed", f"{sizes[0]:,} x {sizes[1]:,} in two halves"),)
    return Used("direct enumeration", payoff, sum(sizes), rows)
