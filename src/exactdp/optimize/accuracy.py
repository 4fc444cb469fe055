"""How wrong one count is: the measures of its error as functions of its budget, and the least budget that keeps one small.

A count with the budget x has noise of sigma2 = 1 / x. The functions here are those of the noise itself, discrete where it is
discrete: for coarse noise the variance is well below sigma2. They are convex and fall in x; that they fall is Lemma 1 of
docs/theory/optimization.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from exactdp.census.cell_noise import DISCRETE_GAUSSIAN, DISCRETE_LAPLACE, USUAL, CellNoise
from exactdp.census.margins import noise_of
from exactdp.doubles import Floats
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import LARGEST_SIGMA2, LARGEST_WEIGHT, SMALLEST_SIGMA2

VARIANCE, ERROR, ABSOLUTE, MARGIN, RELATIVE = "variance", "error", "absolute", "margin", "relative"
MEASURES = (VARIANCE, ERROR, ABSOLUTE, MARGIN, RELATIVE)
"""Variance, standard error, mean absolute error, 95% margin, standard error relative to a typical count."""

QUANTILE = 1.959964
"""Standard errors in a 95% margin of Gaussian noise; of Laplace noise it is log 20 scales."""

_COARSE = (
    60.0  # sigma2 up to which sums over the integers are taken; beyond, what is left out is below 1e-16 of the whole
)
_TERMS = np.arange(1.0, 80.0)
_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_DIGITS = 9  # significant digits of a budget that a requirement asks for
TYPICAL_POWER = 100
"""Typical counts, by which weights are divided, are between this power of 10 and its inverse."""
_POWER = 300  # of 10: larger errors and smaller ones leave the range of doubles


def in_reach(value: Fraction, name: str, found: str, power: int = _POWER) -> Fraction:
    """A number that errors can be compared with in doubles, or 0; others are refused as they were written."""
    if value and not Fraction(1, 10**power) <= abs(value) <= 10**power:
        raise InvalidInputError(f"{name} must be between 1e-{power} and 1e{power}. Found {found}.")
    return value


def errors(measure: str, budgets: Floats, kinds: Sequence[CellNoise]) -> tuple[Floats, Floats]:
    """The measure of each cell with its budget, and its derivative by the budget.

    The 95% margin is 1.96 standard errors (log 20 scales of Laplace noise), before it is rounded to a whole count.

    >>> value, slope = errors("variance", np.array([0.1, 100.0]), [USUAL, USUAL])
    >>> f"{value[0]:.4f} {slope[0]:.4f} {value[1]:.1e}"
    '10.0000 -100.0000 3.9e-22'
    """
    values, slopes = np.empty_like(budgets), np.empty_like(budgets)
    groups = np.array([kind.kind for kind in kinds])
    for name in set(groups.tolist()):
        at = groups == name
        values[at], slopes[at] = _of_kind(measure, budgets[at], name)
    return values, slopes


def _of_kind(measure: str, x: Floats, kind: str) -> tuple[Floats, Floats]:
    if measure == ABSOLUTE:
        return _absolute(x, kind)
    if measure == MARGIN and kind == DISCRETE_LAPLACE:
        return math.log(20) * x**-0.5, -math.log(20) / 2 * x**-1.5
    variance, slope = _variance(x, kind)
    if measure == VARIANCE:
        return variance, slope
    times = QUANTILE if measure == MARGIN else 1.0
    error = np.sqrt(variance)
    return times * error, times * slope / (2 * error)


def _variance(x: Floats, kind: str) -> tuple[Floats, Floats]:
    value, slope = 1 / x, -1 / x**2
    if kind == DISCRETE_LAPLACE:  # of scale b = 1 / sqrt(x): 1 / (2 sinh^2(1 / (2 b)))
        u = np.minimum(np.sqrt(x) / 2, 300.0)
        sinh = np.sinh(u)
        return 0.5 / sinh**2, -np.cosh(u) / sinh**3 * 0.125 / u
    if kind == DISCRETE_GAUSSIAN and (coarse := x > 1 / _COARSE).any():
        _, second, _, fourth = _moments(x[coarse])
        value[coarse], slope[coarse] = second, -(fourth - second**2) / 2
    return value, slope


def _absolute(x: Floats, kind: str) -> tuple[Floats, Floats]:
    if kind == DISCRETE_LAPLACE:  # 2 q / (1 - q^2) with q = e^(-1 / b)
        u = np.minimum(np.sqrt(x), 300.0)
        return 1 / np.sinh(u), -np.cosh(u) / np.sinh(u) ** 2 / (2 * u)
    s = 1 / x
    if kind != DISCRETE_GAUSSIAN:
        return _ROOT_TWO_OVER_PI * s**0.5, -_ROOT_TWO_OVER_PI / 2 * s**1.5
    # Euler and Maclaurin: the sum of n e^(-n^2 / (2 s)) over n > 0 is s - 1/12 - 1/(240 s) - 1/(2016 s^2) - ...
    value = _ROOT_TWO_OVER_PI * (s**0.5 - s**-0.5 / 12 - s**-1.5 / 240 - s**-2.5 / 2016)
    slope = -(s**2) * _ROOT_TWO_OVER_PI * (s**-0.5 / 2 + s**-1.5 / 24 + s**-2.5 / 160 + 5 * s**-3.5 / 4032)
    if (coarse := x > 1 / _COARSE).any():
        first, second, third, _ = _moments(x[coarse])
        value[coarse], slope[coarse] = first, -(third - first * second) / 2
    return value, slope


def _moments(x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """E|X|, E X^2, E|X|^3 and E X^4 of discrete Gaussian noise with sigma2 = 1 / x, by their sums."""
    weights = np.exp(-0.5 * np.outer(x, _TERMS**2))
    total = 1 + 2 * weights.sum(axis=1)
    first, second, third, fourth = (2 * (weights @ _TERMS**k) / total for k in (1, 2, 3, 4))
    return first, second, third, fourth


def measured(measure: str, budget: Fraction, kind: CellNoise = USUAL, typical: float = 1.0) -> float:
    """The measure of one count; the margin as a whole number, as it is promised."""
    if measure == MARGIN:
        return noise_of(budget, kind).margin
    if measure == VARIANCE:
        return noise_of(budget, kind).variance
    if measure == ABSOLUTE:
        return float(errors(ABSOLUTE, np.array([float(budget)]), [kind])[0][0])
    return noise_of(budget, kind).standard_error / (typical if measure == RELATIVE else 1.0)


def largest_budget(kind: CellNoise) -> Fraction:
    """The most that a cell of this noise can have."""
    if kind.kind == DISCRETE_LAPLACE:
        return Fraction(900)
    return min(1 / SMALLEST_SIGMA2, Fraction(LARGEST_WEIGHT, kind.sensitivity))


SMALLEST_BUDGET = 1 / LARGEST_SIGMA2


def least_budget(measure: str, bound: Fraction, kind: CellNoise = USUAL, typical: float = 1.0) -> Fraction:
    """The least budget of nine digits for which the measure of one count is at most `bound`; what there is none for is refused.

    Guarantee: `measured` at the result is at most `bound`.

    >>> least_budget("margin", Fraction(20)), least_budget("variance", Fraction(10))
    (Fraction(228348307, 25000000000), Fraction(1, 10))
    """
    limit = float(bound)

    def holds(budget: Fraction) -> bool:
        return measured(measure, budget, kind, typical) <= limit

    low, high = 1e-12, float(largest_budget(kind))
    if not holds(Fraction(high)):
        what = f"{measure} error" if measure in (ABSOLUTE, RELATIVE) else measure
        raise InvalidInputError(
            f"No noise that is allowed has {'an' if what[0] in 'ae' else 'a'} {what} of at most {limit:g}. Ask for less accuracy."
        )
    if holds(Fraction(low)):
        return Fraction(1, 10**12)
    while high > low * (1 + 1e-11):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(Fraction(middle)) else (middle, high)
    return next(
        x for x in (shortened(Fraction(low * (1 - 1e-10)), _DIGITS), shortened(Fraction(high), _DIGITS)) if holds(x)
    )


def shortened(value: Fraction, digits: int, up: bool = True) -> Fraction:
    """A positive number as a decimal of so many significant digits, rounded up unless told; exactly.

    >>> shortened(Fraction(2, 3), 4), shortened(Fraction(2, 3), 4, up=False)
    (Fraction(6667, 10000), Fraction(3333, 5000))
    """
    exponent = len(str(value.numerator)) - len(str(value.denominator))
    if value < Fraction(10) ** exponent:
        exponent -= 1
    unit = Fraction(10) ** (exponent + 1 - digits)
    return (math.ceil(value / unit) if up else math.floor(value / unit)) * unit
