"""Any noise of finitely many integers, given by its table: cell keys, binomial, truncated and clamped noise."""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path

from exactdp.arithmetic_state import steady
from exactdp.csv_text import decoded, refuse_spreadsheet, separator
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.integer_tables import (
    binomial_weights,
    cell_key_weights,
    gaussian_weights,
    laplace_weights,
    staircase_weights,
)
from exactdp.mechanisms.loss import Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import MOST_OUTCOMES, distribution, loss_of
from exactdp.numbers import Number, exact_text, positive, rational, shown, whole

LARGEST_SENSITIVITY = 4096
_LARGEST_VALUE = 10**9
_MOST_TRIALS = 4096
_SHOWN = 12  # probabilities of a table that are written out


@steady
@dataclass(frozen=True, init=False, repr=False)
class IntegerNoise(Mechanism):
    """Noise X on an integer count: `pmf` lists P(X = first), P(X = first + 1), ..., which add up to exactly 1.

    Also a mapping {value: probability}. `sensitivity` is the most that neighbours change the count. Above 1 that is the worst
    difference for noise whose probabilities are log-concave; for other tables it is proved exactly that no smaller difference is
    worse, or the table is refused. A table ends, so the loss is infinite with the probability of its ends.

    >>> from math import log
    >>> IntegerNoise({-1: "1/4", 0: "1/2", 1: "1/4"}).epsilon_bounds("3/8").upper - log(1.5) < 1e-12
    True
    >>> IntegerNoise.binomial(4).pmf[2]
    Fraction(3, 8)
    """

    pmf: tuple[Fraction, ...]
    first: int
    sensitivity: int

    def __init__(
        self, pmf: Iterable[Number] | Mapping[int, Number], sensitivity: int = 1, *, first: int | None = None
    ) -> None:
        if isinstance(pmf, Mapping):
            listed, start = _of_mapping(pmf, first)
        else:
            listed, start = distribution(pmf, "pmf"), 0 if first is None else _value(first, "first")
        self._set(listed, start, whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY))

    def _set(self, pmf: tuple[Fraction, ...], first: int, sensitivity: int) -> None:
        places = [i for i, p in enumerate(pmf) if p]
        pmf, first = pmf[places[0] : places[-1] + 1], first + places[0]
        if not any(a and b for a, b in zip(pmf, pmf[sensitivity:], strict=False)):
            raise InvalidInputError(
                f"Noise must hide a difference of the sensitivity, {sensitivity}: two values of the table must be so far apart. "
                f"Found values from {first} to {first + len(pmf) - 1}."
            )
        object.__setattr__(self, "pmf", pmf)
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "sensitivity", sensitivity)
        if sensitivity > 1 and not _is_log_concave(pmf):
            worse = next((d for d in range(1, sensitivity) if not _hides(pmf, d, sensitivity)), None)
            if worse is not None:
                raise InvalidInputError(
                    f"The sensitivity must be the worst difference, but with this table a difference of {worse} is worse "
                    f"at some epsilon than one of {sensitivity}. Account for each difference with Outcomes."
                )

    @classmethod
    def _of_weights(cls, weights: list[int], first: int, sensitivity: int) -> IntegerNoise:
        found = object.__new__(cls)
        total = sum(weights)
        found._set(
            tuple(Fraction(w, total) for w in weights), first, whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY)
        )
        return found

    @classmethod
    def binomial(cls, trials: int, probability: Number = "1/2", sensitivity: int = 1) -> IntegerNoise:
        """The number of successes among so many trials; exact."""
        p = rational(probability, "probability")
        if not 0 < p < 1:
            raise InvalidInputError(f"probability must be between 0 and 1, both excluded. Found {shown(probability)}.")
        return cls._of_weights(binomial_weights(whole(trials, "trials", 1, _MOST_TRIALS), p), 0, sensitivity)

    @classmethod
    def truncated_gaussian(cls, sigma2: Number, bound: int, sensitivity: int = 1) -> IntegerNoise:
        """Discrete Gaussian noise given that it is within the bound; as a table of 128 bits, from which it must be drawn."""
        reach = _bound(bound)
        return cls._of_weights(gaussian_weights(positive(sigma2, "sigma2"), reach, False), -reach, sensitivity)

    @classmethod
    def clamped_gaussian(cls, sigma2: Number, bound: int, sensitivity: int = 1) -> IntegerNoise:
        """Discrete Gaussian noise, what is beyond the bound moved to it; a table of 128 bits, from which it must be drawn."""
        reach = _bound(bound)
        return cls._of_weights(gaussian_weights(positive(sigma2, "sigma2"), reach, True), -reach, sensitivity)

    @classmethod
    def truncated_laplace(cls, scale: Number, bound: int, sensitivity: int = 1) -> IntegerNoise:
        """Two-sided geometric noise given that it is within the bound; as a table of 128 bits, from which it must be drawn."""
        reach = _bound(bound)
        return cls._of_weights(laplace_weights(positive(scale, "scale"), reach, False), -reach, sensitivity)

    @classmethod
    def clamped_laplace(cls, scale: Number, bound: int, sensitivity: int = 1) -> IntegerNoise:
        """Two-sided geometric noise, what is beyond the bound moved to it; a table of 128 bits, from which it must be drawn."""
        reach = _bound(bound)
        return cls._of_weights(laplace_weights(positive(scale, "scale"), reach, True), -reach, sensitivity)

    @classmethod
    def staircase(cls, epsilon: Number, bound: int, sensitivity: int = 1, step: int = 1) -> IntegerNoise:
        """Staircase noise within the bound: stairs as long as the sensitivity, each e^-epsilon times lower, the first one `step`.

        As a table of 128 bits, from which it must be drawn.
        """
        reach, width = _bound(bound), whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY)
        first = whole(step, "step", 1, width)
        return cls._of_weights(staircase_weights(positive(epsilon, "epsilon"), width, first, reach), -reach, width)

    @classmethod
    def cell_key(cls, bound: int, variance: Number, sensitivity: int = 1) -> IntegerNoise:
        """The perturbation table of the cell key method for counts far from 0: the largest entropy for a bound and a variance.

        The variance is met to about 12 digits; the table has 128 bits, and noise must be drawn from it.
        """
        reach = _bound(bound)
        return cls._of_weights(cell_key_weights(reach, positive(variance, "variance")), -reach, sensitivity)

    @classmethod
    def from_csv(cls, path: str | Path, sensitivity: int = 1) -> IntegerNoise:
        """A table with the columns `noise` and `probability`; commas, semicolons or tabs."""
        what = str(path)
        refuse_spreadsheet(what, "A table of noise")
        text = decoded(Path(path).read_bytes(), what)
        reader = csv.DictReader(io.StringIO(text), delimiter=separator(text.partition("\n")[0]))
        if not {"noise", "probability"} <= {(name or "").strip().lower() for name in reader.fieldnames or ()}:
            raise InvalidInputError(
                f"{what}: a table of noise has the columns noise and probability. Found {shown(reader.fieldnames)}."
            )
        found: dict[int, Number] = {}
        for row in reader:
            cells = {(name or "").strip().lower(): value for name, value in row.items()}
            value = _value(cells["noise"], f"{what}: noise")
            if value in found:
                raise InvalidInputError(f"{what}: each noise must have one row. Found {value} twice.")
            found[value] = (cells["probability"] or "").strip()
        return cls(found, sensitivity)

    @property
    def mean(self) -> Fraction:
        """E X."""
        return sum((p * (self.first + i) for i, p in enumerate(self.pmf)), Fraction(0))

    @property
    def variance(self) -> Fraction:
        """The variance of X."""
        return sum((p * (self.first + i) ** 2 for i, p in enumerate(self.pmf)), Fraction(0)) - self.mean**2

    @property
    def rho(self) -> float:
        """Infinite: the ends of a table tell the data sets apart."""
        return math.inf

    def loss(self) -> Loss:
        """log(P(X = x) / P(X = x - sensitivity)) under X; its `reversed` has the neighbours exchanged."""
        return loss_of(*_shifted(self.pmf, self.sensitivity))

    def __str__(self) -> str:
        listed = [repr(exact_text(p)) for p in self.pmf[:_SHOWN]]
        more = [f"... {len(self.pmf):,} in all"] if len(self.pmf) > _SHOWN else []
        extra = ("" if not self.first else f", first={self.first}") + (
            "" if self.sensitivity == 1 else f", sensitivity={self.sensitivity}"
        )
        return f"IntegerNoise([{', '.join([*listed, *more])}]{extra})"


def _shifted(pmf: tuple[Fraction, ...], by: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    zeros = (Fraction(0),) * by
    return (*pmf, *zeros), (*zeros, *pmf)


def _is_log_concave(pmf: tuple[Fraction, ...]) -> bool:
    """p(x)^2 >= p(x - 1) p(x + 1), without gaps: then likelihood ratios are monotone and a larger difference is always worse
    (docs/theory/grid.md, Lemma G5)."""
    if not all(pmf):
        return False
    return all(b / a >= d / c for (a, b), (c, d) in pairwise(pairwise(pmf)))


def _hides(pmf: tuple[Fraction, ...], small: int, large: int) -> bool:
    """Whether delta of the smaller difference is at most that of the larger one at every epsilon, in both directions; exactly."""
    for turned in (False, True):
        one, two = (_ExactDelta(*_shifted(pmf, d)[:: -1 if turned else 1]) for d in (small, large))
        # both are convex and piecewise linear in t = e^epsilon between these; beyond the last they are constant
        if any(one(t) > two(t) for t in {*one.ratios, *two.ratios, Fraction(0)}):
            return False
    return True


class _ExactDelta:
    """The sum of p - t q over the outcomes with p > t q, as a function of t, from sums over outcomes in the order of p / q."""

    def __init__(self, p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> None:
        ordered = sorted((a / b, a, b) for a, b in zip(p, q, strict=True) if b)
        self.ratios = [r for r, _, _ in ordered]
        whole_p, whole_q = sum(p, Fraction(0)), sum(q, Fraction(0))
        self._p = [whole_p - a for a in accumulate((a for _, a, _ in ordered), initial=Fraction(0))]
        self._q = [whole_q - b for b in accumulate((b for _, _, b in ordered), initial=Fraction(0))]

    def __call__(self, t: Fraction) -> Fraction:
        first = bisect_right(self.ratios, t)
        return self._p[first] - t * self._q[first]


def _of_mapping(pmf: Mapping[int, Number], first: int | None) -> tuple[tuple[Fraction, ...], int]:
    if first is not None:
        raise InvalidInputError(
            f"first belongs to a list of probabilities; a mapping names its values. Found {shown(first)}."
        )
    values = [_value(x, "a value of the noise") for x in pmf]
    if not values or max(values) - min(values) >= MOST_OUTCOMES:
        span = f"{min(values)} to {max(values)}" if values else "none"
        raise InvalidInputError(f"The values of a table must span at most {MOST_OUTCOMES:,} integers. Found {span}.")
    start = min(values)
    listed: list[Number] = [0] * (max(values) - start + 1)
    for x, p in zip(values, pmf.values(), strict=True):
        listed[x - start] = p
    return distribution(listed, "pmf"), start


def _value(value: object, name: str) -> int:
    """An integer of either sign."""
    found = rational(value, name)
    if found.denominator != 1 or abs(found) > _LARGEST_VALUE:
        raise InvalidInputError(
            f"{name} must be a whole number of at most {_LARGEST_VALUE:,} in size. Found {shown(value)}."
        )
    return int(found)


def _bound(bound: int) -> int:
    return whole(bound, "bound", 1, (MOST_OUTCOMES - 1) // 2)
