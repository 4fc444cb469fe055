"""What a mechanism tells the engine: its privacy loss.

For two neighbouring data sets with output distributions P and Q the loss is L = log(P/Q) of an output drawn from P. A `Loss`
states its moment function E e^{zL}, the probability that L is infinite, its ends, and how it looks under an exponential tilt;
everything else (delta, epsilon, beta, any composition) is the engine's work.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision, upper_double
from exactdp.doubles import FORMULA_SLACK, PHASE_ERROR, POWER_SLACK, UNDERFLOW, UNIT, Complexes, Floats, Ints
from exactdp.errors import AccuracyError
from exactdp.mechanisms.theta import log_cf_of_atoms

_SURE_BITS = 64  # correct ones of a ball that is rounded to a double, or is all that is known of an answer
_NEAR = 1e-9  # relative; closer values are compared as balls
_PAIRED = 24  # atoms among which pairs for the sieve are looked for


@dataclass(frozen=True)
class Peak:
    """Where the tilted characteristic function is large: |cf| <= exp(slack - strength v^2), v the phase of `step` times unit
    number `unit`, reduced to [-pi, pi]. This inequality is the guarantee of the sieve."""

    unit: int
    strength: float
    slack: float
    step: int = 1
    noise: float = 0.0
    """If not 0, sigma2 of a discrete Gaussian, for which |cf| <= exp(slack) phi(v) as well, phi that of the noise itself."""


@dataclass(frozen=True)
class Atoms:
    """A tilted lattice loss as values anchor + unit * position with probabilities.

    `weights` are within `relative` of the exact tilted probabilities, up to errors that add up to at most `absolute`; the
    values left out have at most the mass `missing`.
    """

    positions: Ints
    weights: Floats
    relative: float
    missing: float
    absolute: float = 0.0


class Tilted(ABC):
    """A finite loss under the distribution tilted by e^{tilt L}: E e^{i om L} = e^{i om anchor - spread om^2 / 2} e^{log_cf(v,
    om)} with v_j = om * units[j] mod 2 pi."""

    anchor: arb
    units: tuple[arb, ...] = ()
    spread: float = 0.0
    """Variance of a continuous Gaussian part."""
    peak: Peak | None = None
    by_frequency: bool = False
    """Whether `log_cf` looks at the frequency itself: the loss has values that are no combinations of units."""
    terms: int = 1
    """What one frequency costs, in evaluations of a theta function. Heuristic: affects speed and accuracy only."""

    @abstractmethod
    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        """The logarithm at phases v (one row for each unit) and a bound on the relative error of its exponential.

        The bound includes an error of 3 units of rounding of v plus PHASE_ERROR in each phase, and of 4 units of the frequency
        omega >= 0 where that is used.
        """

    def log_decay(self, omega: float) -> float:
        """log of a bound of |e^{log_cf}| at every frequency from omega on; never above 0."""
        return 0.0

    def atoms(self, cut: float) -> Atoms | None:
        """The tilted probabilities, but for a mass of about `cut` that may be left out where they do not end; None if the loss is
        not on one lattice."""
        return None

    def table(self) -> tuple[Ints, Floats] | None:
        """All values as integer combinations of the units, relative to the anchor, with their tilted probabilities (within 4
        units of rounding); None if there is no such list."""
        return None

    def values(self) -> tuple[Floats, Floats, float, float, float] | None:
        """All values relative to the anchor with their tilted probabilities, a bound of the error of each value, of the relative
        error of each probability, and of the mass left out; None if there is no such list."""
        found = self.table()
        if found is None:
            return None
        terms = found[0] * np.array([float(u.mid()) for u in self.units])
        error = (len(self.units) + 3) * UNIT * float(np.max(np.sum(np.abs(terms), axis=1)))
        radii = np.array([upper_double(u.rad()) for u in self.units])
        error += 2 * float(np.max(np.abs(found[0]) @ radii))  # twice, for the rounding of these sums
        return terms.sum(axis=1), found[1], error, 4 * UNIT, len(found[1]) * UNDERFLOW


class Loss(ABC):
    """The privacy loss of one mechanism, given that it is finite, and the probability that it is not."""

    lost: Fraction = Fraction(0)
    """P(L = infinity), exact."""
    ends: tuple[arb | None, arb | None] = (None, None)
    """The least and the greatest finite value; None where there is none."""
    greatest: Fraction | None = None
    """The greatest finite value where it is known to be a rational number."""
    is_constant: bool = False
    """Whether the finite loss takes one value only."""
    widest: float
    """An upper estimate of the variance under any tilt. Heuristic: affects speed only."""
    has_transform: bool = True
    """Whether `tilted` knows the characteristic function; if not, values are listed only."""
    bends: bool = False
    """Whether the variance changes by orders of magnitude with the tilt. Heuristic: affects speed and accuracy only."""
    is_labelled: bool = False
    """Whether these are the large or the small steps of a mechanism only. Heuristic: affects speed and accuracy only."""
    quadratic: float | None = None
    """R if log E e^{zL} is at most R z (z + 1) / 2 for all z and, for searches, nearly equal to it; None otherwise."""

    @abstractmethod
    def log_moment(self, z: Fraction) -> arb:
        """log E e^{zL} for real z, given that L is finite, as a ball at the current precision."""

    @abstractmethod
    def log_moment_upper(self, z: float) -> float:
        """A double above log E e^{zL}."""

    @abstractmethod
    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of L under the tilt. Heuristic: affects speed only."""

    @cached_property
    def unit(self) -> float | None:
        """The step of the lattice of a loss on one, 0 for a constant, None for other losses."""
        tilted = self.tilted(Fraction(1, 2))
        if tilted.spread or tilted.by_frequency or len(tilted.units) > 1:
            return None
        return abs(float(tilted.units[0].mid())) if tilted.units else 0.0

    @property
    def step(self) -> Fraction | None:
        """The same where it is known to be a rational number."""
        return None

    @property
    def per_tilt(self) -> Fraction | None:
        """By how much one more unit of tilt moves the distribution, where it does nothing else to it; None for other losses."""
        return None

    @abstractmethod
    def tilted(self, tilt: Fraction) -> Tilted:
        """The loss under a tilt, a dyadic number of few bits."""

    def delta(self, y: arb) -> tuple[arb, arb] | None:
        """delta(y) of this loss alone and the slope -d delta / dy, as balls, where there is a formula for them."""
        return None

    def reversed(self) -> Loss:
        """The loss with the two data sets exchanged: the same object where the loss is symmetric."""
        return self


class FiniteLoss(Loss):
    """A loss with finitely many values: integer combinations `offset + sum_j units[j] * rows[a][j]`.

    `probabilities` are those under P of the finite values, in balls; they and `lost` add up to 1. One unit makes a lattice;
    a table of unrelated values has a unit for each value but one. `greatest` is the greatest value, if that is rational.
    """

    def __init__(
        self,
        offset: arb,
        units: Sequence[arb],
        rows: Sequence[Sequence[int]],
        probabilities: Sequence[arb],
        lost: Fraction | int = 0,
        greatest: Fraction | None = None,
    ) -> None:
        self._units, self._rows = tuple(units), [tuple(r) for r in rows]
        with precision(BITS):
            values = [
                offset + sum((u * n for u, n in zip(self._units, row, strict=True)), arb(0)) for row in self._rows
            ]
        self._set(values, probabilities, lost, greatest)

    def _set(
        self, values: list[arb], probabilities: Sequence[arb], lost: Fraction | int, greatest: Fraction | None
    ) -> None:
        self.lost, self.greatest, self.is_constant = Fraction(lost), greatest, len(values) == 1
        self._values = values
        with precision(BITS):
            finite = sum(probabilities, arb(0))  # not 1 - lost, which would cancel
            self._given = [p / finite for p in probabilities]  # given that the loss is finite
            self.ends = reduce(arb.min, self._values), reduce(arb.max, self._values)
        self._floats = np.array([float(v.mid()) for v in self._values])
        self._radius = max(upper_double(v.rad()) for v in self._values)
        self._logs = np.array([float(p.log().mid()) for p in self._given])
        spread = float(self._floats.max() - self._floats.min())
        self.widest = max(spread * spread / 4, UNDERFLOW)  # Popoviciu

    @property
    def listed(self) -> list[tuple[arb, arb]]:
        """The finite values with their probabilities, given that the loss is finite."""
        return list(zip(self._values, self._given, strict=True))

    def log_moment(self, z: Fraction) -> arb:
        """log E e^{zL}, measured from the largest term."""
        at = ball(z)
        top = max(range(len(self._values)), key=lambda a: float(z) * self._floats[a] + self._logs[a])
        base = self._values[top]
        total = sum((p * (at * (x - base)).exp() for p, x in zip(self._given, self._values, strict=True)), arb(0))
        return at * base + total.log()

    def log_moment_upper(self, z: float) -> float:
        """A double above log E e^{zL}."""
        exponents = z * self._floats + self._logs
        size = float(np.max(np.abs(z * self._floats) + np.abs(self._logs)))
        top = float(exponents.max())
        return top + math.log(math.fsum(np.exp(exponents - top))) + POWER_SLACK * (1 + size)

    def _tilted_probabilities(self, tilt: float) -> Floats:
        exponents = tilt * self._floats + self._logs
        weights = np.exp(exponents - exponents.max())
        result: Floats = weights / weights.sum()
        return result

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance under the tilt."""
        p = self._tilted_probabilities(tilt)
        mean = float(p @ self._floats)
        return mean, float(p @ (self._floats - mean) ** 2)

    def tilted(self, tilt: Fraction) -> Tilted:
        """The atoms with tilted probabilities."""
        return _TiltedFinite(self, tilt)

    def weights(self, tilt: Fraction) -> Floats:
        """Tilted probabilities as doubles, within 4 units of rounding of the exact ones."""
        with precision(BITS):
            at = ball(tilt)
            base = self._values[int(np.argmax(float(tilt) * self._floats + self._logs))]
            sizes = [p * (at * (x - base)).exp() for p, x in zip(self._given, self._values, strict=True)]
            total = sum(sizes, arb(0))
            shares = [s / total for s in sizes]
        if min(s.rel_accuracy_bits() for s in shares) < _SURE_BITS:
            raise AccuracyError("The probabilities of a loss are known to too few digits at this tilt.")
        return np.array([float(s.mid()) for s in shares])


class ListedLoss(FiniteLoss):
    """A loss with very many values, on no lattice: they are listed, and nothing else is known of them."""

    has_transform = False
    unit = None

    def __init__(self, values: list[arb], probabilities: Sequence[arb], lost: Fraction | int = 0) -> None:
        self._set(values, probabilities, lost, None)

    @cached_property
    def _sums(self) -> tuple[Ints, list[arb], list[arb]]:
        """The order of the values, and of the k greatest the probabilities under P and under Q."""
        order = np.argsort(self._floats)
        above, other = [arb(0)], [arb(0)]
        with precision(BITS):
            for a in order[::-1]:
                above.append(above[-1] + self._given[a])
                other.append(other[-1] + self._given[a] * (-self._values[a]).exp())
        return order, above, other

    def delta(self, y: arb) -> tuple[arb, arb] | None:
        """The sum of p - e^y q over the values above y; None where it, or 1 less it, would have too few digits."""
        order, above, other = self._sums
        at, count = float(y.mid()), len(order)
        with precision(BITS):
            near = _NEAR * (1 + abs(at)) + upper_double(y.rad()) + self._radius
            low, high = np.searchsorted(self._floats[order], [at - near, at + near])
            growth = y.exp()
            found = above[count - high] - growth * other[count - high]
            for a in order[low:high]:
                found += self._given[a] * arb.max(-(y - self._values[a]).expm1(), arb(0))
            few = found.rel_accuracy_bits() < _SURE_BITS or (1 - found).rel_accuracy_bits() < _SURE_BITS // 2
            return (found, growth * other[count - low]) if bool(found > 0) and not few else None

    def tilted(self, tilt: Fraction) -> Tilted:
        """The values with tilted probabilities."""
        return _TiltedListed(self, tilt)


class _TiltedListed(Tilted):
    """Values measured from the one with the largest tilted probability."""

    def __init__(self, loss: ListedLoss, tilt: Fraction) -> None:
        self._weights = loss.weights(tilt)
        self.anchor = loss._values[int(np.argmax(self._weights))]
        with precision(BITS):
            gaps = [x - self.anchor for x in loss._values]
        self._losses = np.array([float(x.mid()) for x in gaps])
        self._radius = max(upper_double(x.rad()) for x in gaps)

    def values(self) -> tuple[Floats, Floats, float, float, float]:
        """The list."""
        error = 2 * UNIT * float(np.max(np.abs(self._losses))) + 2 * self._radius  # twice, for the rounding of this sum
        return self._losses, self._weights, error, 4 * UNIT, len(self._weights) * UNDERFLOW

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        raise AccuracyError("The Fourier sum does not apply: a mechanism has too many values.")


class _TiltedFinite(Tilted):
    """Atoms measured from the one with the largest tilted probability."""

    def __init__(self, loss: FiniteLoss, tilt: Fraction) -> None:
        self.units = loss._units
        self._weights = loss.weights(tilt)
        at = int(np.argmax(self._weights))
        self.anchor = loss._values[at]
        self._steps = np.array(loss._rows, dtype=np.int64) - np.array(loss._rows[at], dtype=np.int64)
        self.peak = self._find_peak()

    def table(self) -> tuple[Ints, Floats]:
        """The atoms."""
        return self._steps, self._weights

    def _find_peak(self) -> Peak | None:
        """For the pairs of atoms that differ by `step` of one unit and by nothing else: |cf|^2 <= 1 - 4 P sin^2(v/2), P the sum
        of the products of their probabilities, hence -log|cf| >= 2 P v^2 / pi^2 (docs/theory/engine.md, Lemma 5 (b))."""
        mass: dict[tuple[int, int], float] = {}
        heavy = np.argsort(-self._weights)[:_PAIRED]
        for i, one in enumerate(heavy):
            for two in heavy[:i]:
                gap = self._steps[one] - self._steps[two]
                where = np.flatnonzero(gap)
                if len(where) == 1:
                    key = int(where[0]), abs(int(gap[where[0]]))
                    mass[key] = mass.get(key, 0.0) + float(self._weights[one] * self._weights[two])
        if not mass:
            return None
        (unit, step), total = max(mass.items(), key=lambda item: item[1])
        strength = 2 * total / math.pi**2 * (1 - FORMULA_SLACK)
        return Peak(unit, strength, 0.0, step) if strength > 1e-280 else None

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        return log_cf_of_atoms(self._steps, self._weights, v, PHASE_ERROR)

    def atoms(self, cut: float) -> Atoms | None:
        if len(self.units) != 1:
            return None
        order = np.argsort(self._steps[:, 0])
        missing = len(order) * UNDERFLOW  # weights below the range of doubles
        return Atoms(self._steps[order, 0], np.maximum(self._weights[order], 0.0), 4 * UNIT, missing)
