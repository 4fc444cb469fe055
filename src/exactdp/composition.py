"""Compositions: the object people hold. It groups mechanisms and answers every question about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from exactdp import certified
from exactdp.engine.contours import Contours
from exactdp.engine.lattice import Group, Lattice
from exactdp.errors import InvalidInputError
from exactdp.explain import Explanation, explain
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, positive, rational, shown, whole
from exactdp.profile import epsilon_bracket, profile
from exactdp.tradeoff import TradeOffCurve, tradeoff_curve

LARGEST_COUNT = 10**15
LARGEST_RHO = 10**10
LARGEST_EPSILON = 10**9


class Bounds(NamedTuple):
    """A certified pair: lower <= exact <= upper. Floats or arrays, or decimals where digits were asked for."""

    lower: Any
    upper: Any


class Composition:
    """Several discrete Gaussian mechanisms released together.

    Takes an iterable of mechanisms or a mapping from mechanism to count. The order does not matter, equal mechanisms are
    grouped, and a million copies cost what ten cost.

    >>> c = 10 * DiscreteGaussian(1)
    >>> round(c.epsilon(1e-10), 3)
    24.678
    """

    def __init__(self, mechanisms: Iterable[DiscreteGaussian] | Mapping[DiscreteGaussian, int]) -> None:
        counts: Counter[DiscreteGaussian] = Counter()
        if isinstance(mechanisms, Mapping):
            for mechanism, count in mechanisms.items():
                counts[_mechanism(mechanism)] += whole(count, "count", 0, LARGEST_COUNT)
        elif isinstance(mechanisms, DiscreteGaussian):
            counts[mechanisms] += 1
        elif isinstance(mechanisms, Iterable):
            for mechanism in mechanisms:
                counts[_mechanism(mechanism)] += 1
        else:
            raise InvalidInputError(
                f"A composition takes mechanisms in a list or a mapping from mechanism to count. Found {shown(mechanisms)}."
            )
        kept = {m: n for m, n in counts.items() if n}
        if not kept:
            raise InvalidInputError("A composition needs at least one mechanism. Found none.")
        # sorted by value; the double in front settles nearly all comparisons without exact arithmetic
        order = sorted((float(m.sigma2), m.sigma2, m.sensitivity, m) for m in kept)
        self._counts = {m: kept[m] for *_, m in order}
        if (
            sum(n * m.sensitivity**2 / s for (s, *_, m), n in zip(order, self._counts.values(), strict=True))
            > 2 * LARGEST_RHO
        ):
            raise InvalidInputError(
                f"The total rho of a composition must be at most {LARGEST_RHO:.0e} (more protects nothing). Found more; "
                "use fewer mechanisms or more noise."
            )

    @property
    def mechanisms(self) -> Mapping[DiscreteGaussian, int]:
        """The distinct mechanisms and how often each occurs."""
        return MappingProxyType(self._counts)

    @cached_property
    def _contours(self) -> Contours:
        return Contours(Lattice(tuple(Group(m.sigma2, m.sensitivity, n) for m, n in self._counts.items())))

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter of the composition, exact."""
        return sum((n * m.rho for m, n in self._counts.items()), Fraction(0))

    @property
    def mu(self) -> float:
        """The Gaussian-DP counterpart sqrt(2 rho)."""
        return math.sqrt(2 * self.rho)

    def delta(self, epsilon: Any) -> Any:
        """The least delta at this epsilon, rounded up: a certified upper bound (scalar or array).

        Values below the double range come back as the smallest positive double; `log_delta` has their size.
        """
        return self.delta_bounds(epsilon).upper

    def delta_bounds(self, epsilon: Any, digits: int | None = None) -> Bounds:
        """Certified bounds of delta(epsilon). In float64 they are less than 1e-11 apart in relative terms; with `digits` (5 to
        1000) they are decimals less than 10^-digits apart in relative terms."""
        if digits is not None:
            return _each_decimal(
                epsilon, lambda e, d: certified.delta_decimals(self._contours, e, d), read_epsilon, digits
            )
        return each_of_list(epsilon, self._delta_floats, read_epsilon)

    def log_delta(self, epsilon: Any) -> Any:
        """Natural logarithm of the upper bound of delta(epsilon), also where delta is below the double range."""
        return each_of_list(epsilon, self._log_delta_floats, read_epsilon).upper

    def epsilon(self, delta: Any) -> Any:
        """The least epsilon at this delta, rounded up: a certified upper bound (scalar or array).

        The rule: the infimum of all real epsilon with delta(epsilon) <= delta. So delta = 0 gives inf, delta >= 1 gives -inf,
        and delta above delta(0) gives a negative epsilon.
        """
        return self.epsilon_bounds(delta).upper

    def epsilon_bounds(self, delta: Any, digits: int | None = None) -> Bounds:
        """Certified bounds of epsilon(delta); with `digits`, decimals less than 10^-digits apart in relative terms."""
        if digits is not None:
            return _each_decimal(
                delta, lambda x, d: certified.epsilon_decimals(self._contours, x, d), read_delta, digits
            )
        return each_of_list(delta, _one_by_one(self._epsilon_floats), read_delta)

    def beta(self, alpha: Any) -> Any:
        """Type II error of the best test at type I error alpha, rounded down: a certified lower bound (scalar or array)."""
        return self.beta_bounds(alpha).lower

    def beta_bounds(self, alpha: Any, digits: int | None = None) -> Bounds:
        """Certified bounds of the trade-off curve at alpha; with `digits`, decimals less than 10^-digits apart."""
        if digits is not None:
            return _each_decimal(alpha, lambda a, d: certified.beta_decimals(self._contours, a, d), read_alpha, digits)
        return each_of_list(alpha, _one_by_one(self._beta_floats), read_alpha)

    def tradeoff(self, num: int = 201) -> TradeOffCurve:
        """A curve of (alpha, beta) for plotting: convex, from (0, 1) to (1, 0), at most `num` points."""
        return tradeoff_curve(self._contours, whole(num, "num", 5))

    def explain(self, epsilon: Number) -> Explanation:
        """The plan behind delta(epsilon) and the account of its errors, as an object that prints well."""
        exact = read_epsilon(epsilon)
        if isinstance(exact, float):
            raise InvalidInputError(f"epsilon must be a finite number. Found {epsilon}.")
        return explain(self._contours, exact)

    def scaled(self, factor: Number) -> Composition:
        """The same composition with every sigma2 multiplied by `factor`."""
        by = positive(factor, "factor")
        return Composition({DiscreteGaussian(m.sigma2 * by, m.sensitivity): n for m, n in self._counts.items()})

    def _delta_floats(self, epsilons: list[Fraction | float]) -> tuple[list[float], list[float]]:
        finite = [e for e in epsilons if isinstance(e, Fraction)]
        if finite:
            bracket = profile(self._contours, finite).delta
            found = iter(zip(bracket.lower_floats(), np.minimum(bracket.upper_floats(), 1.0), strict=True))
        pairs = [
            tuple(map(float, next(found))) if isinstance(e, Fraction) else ((0.0, 0.0) if e > 0 else (1.0, 1.0))
            for e in epsilons
        ]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def _log_delta_floats(self, epsilons: list[Fraction | float]) -> tuple[list[float], list[float]]:
        finite = [e for e in epsilons if isinstance(e, Fraction)]
        logs = iter(np.minimum(profile(self._contours, finite).delta.log_upper(), 0.0)) if finite else iter(())
        result = [float(next(logs)) if isinstance(e, Fraction) else (-math.inf if e > 0 else 0.0) for e in epsilons]
        return result, result

    def _epsilon_floats(self, delta: Fraction) -> tuple[float, float]:
        if delta == 0:
            return math.inf, math.inf
        if delta >= 1:
            return -math.inf, -math.inf
        return epsilon_bracket(self._contours, delta)

    def _beta_floats(self, alpha: Fraction) -> tuple[float, float]:
        if alpha in (0, 1):
            return 1.0 - float(alpha), 1.0 - float(alpha)
        return certified.beta_floats(self._contours, alpha)

    def __add__(self, other: Composition | DiscreteGaussian) -> Composition:
        if isinstance(other, DiscreteGaussian):
            other = Composition([other])
        if not isinstance(other, Composition):
            return NotImplemented
        return Composition(Counter(self._counts) + Counter(other._counts))

    def __radd__(self, other: object) -> Composition:  # so that sum() works
        return self if other == 0 else NotImplemented

    def __mul__(self, count: int) -> Composition:
        times = whole(count, "count", 1)
        return Composition({m: n * times for m, n in self._counts.items()})

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and self._counts == other._counts

    def __hash__(self) -> int:
        return hash(tuple(self._counts.items()))

    def __reduce__(self) -> tuple[type[Composition], tuple[dict[DiscreteGaussian, int]]]:
        return Composition, (self._counts,)

    def __repr__(self) -> str:
        return f"Composition({' + '.join(f'{n} x {m}' for m, n in self._counts.items())})"


def _mechanism(value: object) -> DiscreteGaussian:
    if not isinstance(value, DiscreteGaussian):
        raise InvalidInputError(f"A composition is made of DiscreteGaussian mechanisms. Found {shown(value)}.")
    return value


def read_epsilon(value: object) -> Fraction | float:
    """epsilon as given by a user: a number within limits, or an infinity."""
    if (isinstance(value, Decimal) and value.is_infinite()) or (
        isinstance(value, (float, np.floating)) and math.isinf(value)
    ):
        return float(value)
    result = rational(value, "epsilon")
    if abs(result) > LARGEST_EPSILON:
        raise InvalidInputError(
            f"epsilon must be between -{LARGEST_EPSILON:.0e} and {LARGEST_EPSILON:.0e}, or infinite. Found {shown(value)}."
        )
    return result


def read_delta(value: object) -> Fraction:
    """delta as given by a user: a number from 0 on."""
    result = rational(value, "delta")
    if result < 0:
        raise InvalidInputError(f"delta must be at least 0. Found {shown(value)}.")
    return result


def read_alpha(value: object) -> Fraction:
    """alpha as given by a user: a number from 0 to 1."""
    result = rational(value, "alpha")
    if not 0 <= result <= 1:
        raise InvalidInputError(f"alpha must be between 0 and 1. Found {shown(value)}.")
    return result


_Floats = tuple[list[float], list[float]]


def each(value: Any, function: Callable[[Any], tuple[float, float]], read: Callable[[object], Any]) -> Bounds:
    """`function` of a scalar or of every element of an array-like, in its shape, one after the other."""
    return each_of_list(value, _one_by_one(function), read)


def _one_by_one(function: Callable[[Fraction], tuple[float, float]]) -> Callable[[list[Any]], _Floats]:
    def over_list(values: list[Any]) -> _Floats:
        pairs = [function(v) for v in values]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    return over_list


def _array(value: Any) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Any input as an array of objects; a scalar has no dimensions."""
    if isinstance(value, (str, Fraction, Decimal)):
        return np.array(value, dtype=object)
    try:
        return np.asarray(value, dtype=object)
    except ValueError:
        raise InvalidInputError(f"An array must be rectangular. Found {shown(value)}.") from None


def each_of_list(value: Any, function: Callable[[list[Any]], _Floats], read: Callable[[object], Any]) -> Bounds:
    """`function` of a scalar or of every element of an array-like, in its shape."""
    array = _array(value)
    lower, upper = function([read(v) for v in array.ravel()]) if array.size else ([], [])
    if array.ndim == 0:
        return Bounds(lower[0], upper[0])
    return Bounds(np.array(lower, dtype=float).reshape(array.shape), np.array(upper, dtype=float).reshape(array.shape))


def _each_decimal(
    value: Any, function: Callable[[Any, int], tuple[Decimal, Decimal]], read: Callable[[object], Any], digits: object
) -> Bounds:
    """The same with decimals; arrays have dtype object."""
    count = whole(digits, "digits", 5, 1000)
    array = _array(value)
    pairs = [function(read(v), count) for v in array.ravel()]
    if array.ndim == 0:
        return Bounds(*pairs[0])
    lower, upper = np.empty(array.shape, dtype=object), np.empty(array.shape, dtype=object)
    lower.ravel()[:], upper.ravel()[:] = [p[0] for p in pairs], [p[1] for p in pairs]
    return Bounds(lower, upper)
