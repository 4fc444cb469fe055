"""Families of noise that ends: tables of truncated, clamped and staircase noise, and the tables of the cell key method.

Where a table ends it tells the data sets apart, so a target must allow for the probability of that. The bound is given, or it is
so far out that this takes up a thousandth of what the target allows. Any bound is valid; what is proved is proved of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.accounting.composition import Composition
from exactdp.doubles import UNIT, root
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.best_noise.families import (
    BINOMIAL,
    EXPONENTIAL,
    FAMILIES,
    GAUSSIAN,
    LAPLACE,
    SKELLAM,
    NoiseFamily,
)
from exactdp.guarantees.calibration import MeetsAll, MeetsEpsilonDelta, MeetsTradeOff, Target
from exactdp.mechanisms.integer_noise import IntegerNoise
from exactdp.numbers import log_rational
from exactdp.numerals import DOWN, rounded

_SHARE = 1000
_STRIDE = Fraction(9, 8)  # between factors that are tried
_TRIES = 200
_PLACES = 4  # digits of these factors
_GOLDEN = Fraction(618, 1000)
_SECTIONS = 16  # about the best try
_LITTLE = 100  # infinite losses so far below what is allowed say that it is noise that is missing
_DIGITS = 6  # of the ratio of stairs: tables of few different losses, and short fractions
_MOST_STEPS = 32  # lengths of the first stair that are tried
MOST_BOUND = 100
"""The largest errors that are raced: stairs are exact powers, and a family takes seconds here, minutes at some hundreds."""
_FLATTEST, _STEEPEST = 1e-6, 600.0  # epsilons of a stair


@dataclass(frozen=True)
class Ends:
    """Where noise ends: at this bound, or beyond it there would be about this probability."""

    bound: int | None
    outside: float

    @classmethod
    def of(cls, wanted: Target, counts: int, bound: int | None) -> Ends:
        """For so many counts under a target; what a target does not allow at all is for `allowed` to refuse."""
        return cls(bound, min(float(allowed(wanted)) / (_SHARE * counts), 0.01))

    def reach(self, deviations: Callable[[float], float], sensitivity: int) -> int:
        """The bound; `deviations` says how far out lies less than e^-size."""
        if self.bound is not None:
            return self.bound
        return math.ceil(deviations(-math.log(self.outside))) + sensitivity


def allowed(wanted: Target) -> Fraction:
    """The probability of infinite losses up to which a target can hold: one above it is a proof that it does not."""
    if isinstance(wanted, MeetsEpsilonDelta):
        return wanted.delta
    if isinstance(wanted, MeetsTradeOff):  # rejecting where a loss is infinite has alpha = 0 and beta = 1 - P(infinite)
        return 1 - wanted.beta
    if isinstance(wanted, MeetsAll):
        return min(allowed(one) for one in wanted.targets)
    return Fraction(0)


def lost(composition: Composition) -> Fraction:
    """The probability of an infinite loss in a composition of tables, exactly."""
    kept = Fraction(1)
    for table, count in composition.mechanisms.items():
        if isinstance(table, IntegerNoise):
            kept *= (1 - sum(table.pmf[: table.sensitivity])) ** count
    return 1 - kept


def factor_within(bound: int, at: Callable[[Fraction], Composition], wanted: Target, start: Fraction) -> Fraction:
    """A factor at which tables with this bound meet the target: too little noise fails it, and so do the ends of too much.

    First down from the start until it is noise that is missing, then up until the ends alone are more than is allowed; what is
    between these may be narrow, so then by golden sections about the factor that missed the target by least.
    """
    tries = _Tries(at, wanted)
    for down in (True, False):
        factor = start
        for _ in range(_TRIES):
            share = tries.lost_at(factor)
            if tries.found is not None:
                return tries.found
            if (share is None and not down) or (share is not None and tries.is_beyond(share, down)):
                break
            factor = factor / _STRIDE if down else factor * _STRIDE
    found = tries.between_neighbours()
    if found is not None:
        return found
    raise AccuracyError(
        f"No amount that was tried meets the target with errors of at most {bound}: little noise fails it, more of it because "
        "its ends tell the data sets apart. A larger bound may help."
    )


class _Tries:
    """Factors that were tried, with how far off each was; `found` is one that meets the target."""

    def __init__(self, at: Callable[[Fraction], Composition], wanted: Target) -> None:
        self._at, self._wanted, self._most = at, wanted, allowed(wanted)
        self._missed: dict[Fraction, float] = {}
        self.found: Fraction | None = None

    def lost_at(self, factor: Fraction) -> Fraction | None:
        """Try a factor of a few digits: the probability of infinite losses there, None where the bound allows no such noise."""
        factor = Fraction(rounded(factor, _PLACES, DOWN))
        try:
            design = self._at(factor)
        except InvalidInputError:  # too much for the bound
            self._missed[factor] = math.inf
            return None
        share = lost(design)
        if share <= self._most and self._wanted.holds(design):
            self.found = factor
        else:
            self._missed[factor] = _missed(self._wanted, design)
        return share

    def is_beyond(self, share: Fraction, down: bool) -> bool:
        """Whether infinite losses are so rare that noise is missing, or more than the target allows."""
        return share * _LITTLE < self._most if down else share > self._most

    def between_neighbours(self) -> Fraction | None:
        """About the best try by golden sections; one that meets the target, or None. Heuristic: may miss what is narrow."""
        ascending = sorted(self._missed)
        best = min(range(len(ascending)), key=lambda i: self._missed[ascending[i]])
        low, high = ascending[max(best - 1, 0)], ascending[min(best + 1, len(ascending) - 1)]
        for _ in range(_SECTIONS):
            a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            at_a, at_b = (self._off(x) for x in (a, b))
            if self.found is not None:
                return self.found
            low, high = (low, b) if at_a < at_b else (a, high)
        return None

    def _off(self, factor: Fraction) -> float:
        factor = Fraction(rounded(factor, _PLACES, DOWN))
        if factor not in self._missed:
            self.lost_at(factor)
        return self._missed.get(factor, -math.inf)


def _missed(wanted: Target, design: Composition) -> float:
    """How far a design is from a target, a logarithm: 0 where it just holds. Heuristic: says where to look."""
    if isinstance(wanted, MeetsEpsilonDelta):
        return float(design.log_delta_bounds(wanted.epsilon)[1]) - log_rational(wanted.delta)
    if isinstance(wanted, MeetsTradeOff):
        return math.log(max(1 - design.beta_bounds(wanted.alpha).lower, UNIT)) - log_rational(1 - wanted.beta)
    return max(_missed(one, design) for one in wanted.targets) if isinstance(wanted, MeetsAll) else math.inf


class BoundedFamily(NoiseFamily):
    """A family of tables: `of_variance` ends them where next to nothing is left, `ended` where it is told."""

    def __init__(self, name: str, table: Callable[[Fraction, int, Ends], IntegerNoise], shape: str = GAUSSIAN) -> None:
        super().__init__(name, lambda variance, sensitivity: table(variance, sensitivity, _FAR), shape)
        object.__setattr__(self, "table", table)

    table: Callable[[Fraction, int, Ends], IntegerNoise]

    def ended(self, ends: Ends) -> NoiseFamily:
        """The family with this end."""
        return NoiseFamily(self.name, lambda variance, sensitivity: self.table(variance, sensitivity, ends), self.shape)


_FAR = Ends(None, 1e-18)


def _normal_reach(variance: Fraction, sensitivity: int, ends: Ends) -> int:
    return ends.reach(lambda size: math.sqrt(2 * size * variance), sensitivity)


def _truncated_gaussian(variance: Fraction, sensitivity: int, ends: Ends) -> IntegerNoise:
    return IntegerNoise.truncated_gaussian(variance, _normal_reach(variance, sensitivity, ends), sensitivity)


def _clamped_gaussian(variance: Fraction, sensitivity: int, ends: Ends) -> IntegerNoise:
    return IntegerNoise.clamped_gaussian(variance, _normal_reach(variance, sensitivity, ends), sensitivity)


def _cell_key(variance: Fraction, sensitivity: int, ends: Ends) -> IntegerNoise:
    return IntegerNoise.cell_key(_normal_reach(variance, sensitivity, ends), variance, sensitivity)


def _truncated_laplace(variance: Fraction, sensitivity: int, ends: Ends) -> IntegerNoise:
    return _geometric(variance, sensitivity, ends, clamped=False)


def _clamped_laplace(variance: Fraction, sensitivity: int, ends: Ends) -> IntegerNoise:
    return _geometric(variance, sensitivity, ends, clamped=True)


def _geometric(variance: Fraction, sensitivity: int, ends: Ends, clamped: bool) -> IntegerNoise:
    """Two-sided geometric noise of ratio q = e^-epsilon, whose variance without an end is 2q / (1 - q)^2."""
    epsilon = _flattest_stairs(variance, 1)[0]
    bound = ends.reach(lambda size: size / epsilon, sensitivity)
    return _stairs(epsilon, 1, 1, bound, sensitivity, clamped)


def _staircase(variance: Fraction, sensitivity: int, ends: Ends) -> IntegerNoise:
    """Of all first stairs the one for which an equal variance needs the least epsilon."""
    epsilon, first = _flattest_stairs(variance, sensitivity)
    bound = ends.reach(lambda size: sensitivity * size / epsilon, sensitivity)
    return _stairs(epsilon, sensitivity, first, bound, sensitivity, clamped=False)


def _stairs(epsilon: float, width: int, first: int, bound: int, sensitivity: int, clamped: bool) -> IntegerNoise:
    """Stairs whose ratio is a short fraction: the first `first` long on each side of 0, others `width`, each q times lower."""
    q = _short(math.exp(-epsilon)) if epsilon > 1 else 1 - _short(-math.expm1(-epsilon))
    side = [q ** max(0, (x + width - first) // width) for x in range(bound + 1)]
    if clamped:  # what is beyond: q^bound + q^(bound + 1) + ...
        side[bound] /= 1 - q
    total = side[0] + 2 * sum(side[1:])
    return IntegerNoise([p / total for p in [*side[:0:-1], *side]], sensitivity, first=-bound)


def _short(value: float) -> Fraction:
    return Fraction(rounded(Fraction(value), _DIGITS, DOWN))


def _flattest_stairs(variance: Fraction, width: int) -> tuple[float, int]:
    """The least epsilon of endless stairs with this variance, and how long the first stair is; in doubles."""
    found = [(_STEEPEST, 1)]
    for first in range(1, width + 1, max(1, width // _MOST_STEPS)):
        if _variance(_STEEPEST, width, first) < variance:
            found.append((_epsilon(variance, width, first), first))
    return min(found)


def _epsilon(variance: Fraction, width: int, first: int) -> float:
    return root(lambda epsilon: _variance(epsilon, width, first) - float(variance), _FLATTEST, _STEEPEST)


def _variance(epsilon: float, width: int, first: int) -> float:
    """Of stairs without an end: stair j >= 1 has `width` numbers from a = first + (j - 1) width on, on each side."""
    q, rest = math.exp(-epsilon), -math.expm1(-epsilon)
    s0, s1, s2 = q / rest, q / rest**2, q * (1 + q) / rest**3  # sums of q^j, j q^j, j^2 q^j
    start = first - width  # a = start + j width
    squares = width * (start**2 * s0 + 2 * start * width * s1 + width**2 * s2)
    squares += width * (width - 1) * (start * s0 + width * s1) + (width - 1) * width * (2 * width - 1) / 6 * s0
    return 2 * (squares + (first - 1) * first * (2 * first - 1) / 6) / (2 * first - 1 + 2 * width * s0)


TRUNCATED_GAUSSIAN = BoundedFamily("truncated Gaussian", _truncated_gaussian)
CLAMPED_GAUSSIAN = BoundedFamily("clamped Gaussian", _clamped_gaussian)
TRUNCATED_LAPLACE = BoundedFamily("truncated Laplace", _truncated_laplace, EXPONENTIAL)
CLAMPED_LAPLACE = BoundedFamily("clamped Laplace", _clamped_laplace, EXPONENTIAL)
STAIRCASE = BoundedFamily("staircase", _staircase, EXPONENTIAL)
CELL_KEY = BoundedFamily("cell key", _cell_key)
BOUNDED_FAMILIES = (
    TRUNCATED_GAUSSIAN,
    CLAMPED_GAUSSIAN,
    CELL_KEY,
    TRUNCATED_LAPLACE,
    CLAMPED_LAPLACE,
    STAIRCASE,
)
"""Tables. A cell-key table has the largest entropy for its variance and its bound, which makes it truncated Gaussian noise: the
one is known by its variance, the other by that of the noise before it was truncated. Staircase noise is truncated Laplace noise
where counts change by one."""

EVERY_FAMILY = (*FAMILIES, SKELLAM, BINOMIAL, *BOUNDED_FAMILIES, LAPLACE)
"""Those that take longer as well."""
