"""Bounds that are wider than a user would expect: one limit, one warning, for every kind of answer."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable

import numpy as np

from exactdp.brackets import Bounds
from exactdp.doubles import Floats
from exactdp.errors import AccuracyWarning
from exactdp.numerals import at_most

WIDE = 1e-6
"""From this width on, relative to the answer, the next method that applies is asked as well; what is wide in the end comes with
a plain statement that it is."""

REMEDY = "Raise it with within(max_nodes=...) or within(max_seconds=...), or see explain()."
CURVE = "points of the trade-off curve"
_SMALLEST = -650.0  # the logarithm of the smallest probability whose width is looked at: less is nothing to a user
_ROUNDING = 1e-13  # relative to a logarithm: more than the slack of its two ends
_NEAR_ZERO = 1e-3  # an epsilon below this is measured as if it were this


def relative_widths(log_lower: Floats, log_upper: Floats, smallest: float = _SMALLEST) -> Floats:
    """upper / lower - 1 of probabilities that are not negligible: above e^smallest."""
    known = log_upper > smallest
    result: Floats = np.expm1(np.minimum(log_upper[known] - log_lower[known], 700.0))
    return result


def log_widths(log_lower: Floats, log_upper: Floats) -> Floats:
    """The same where the logarithms are the answer: no probability is too small, and what their rounding does is no width."""
    rounding = _ROUNDING * np.where(np.isfinite(log_upper), np.abs(log_upper), 0.0)
    return relative_widths(log_lower, log_upper - rounding, -math.inf)


def probability_widths(bounds: Bounds) -> Floats:
    """The same from doubles."""
    lower, upper = (np.atleast_1d(np.asarray(end, dtype=float)).ravel() for end in bounds)
    with np.errstate(divide="ignore"):
        return relative_widths(np.log(lower), np.log(upper))


def epsilon_widths(bounds: Bounds) -> Floats | list[float]:
    """How far bounds of epsilon are apart, relative to its size; 0 where both are infinite."""
    if isinstance(bounds.lower, float):
        return [epsilon_width(bounds.lower, bounds.upper)]
    lower, upper = (np.atleast_1d(np.asarray(end, dtype=float)).ravel() for end in bounds)
    with np.errstate(invalid="ignore"):
        apart = (upper - lower) / (np.maximum(np.abs(lower), np.abs(upper)) + _NEAR_ZERO)
    result: Floats = np.where(lower == upper, 0.0, np.where(np.isnan(apart), np.inf, apart))
    return result


def epsilon_width(lower: float, upper: float) -> float:
    """The same for one epsilon, in a fraction of the time."""
    if lower == upper:
        return 0.0
    apart = (upper - lower) / (max(abs(lower), abs(upper)) + _NEAR_ZERO)
    return math.inf if math.isnan(apart) else apart


def epsilon_is_wide(lower: float, upper: float) -> bool:
    """Whether bounds of one epsilon are further apart than WIDE."""
    return not epsilon_width(lower, upper) <= WIDE


def warn_if_wide(what: str, widths: Iterable[float], remedy: str = REMEDY) -> None:
    """One plain statement where an answer has bounds further apart than WIDE, relative to its size; NaN counts as wide."""
    wide = [width for width in widths if not width <= WIDE]
    if wide:
        worst = max(wide, key=lambda width: math.inf if math.isnan(width) else width)
        apart = f"up to {at_most(worst, 2)} apart in relative terms" if worst < 1e300 else "say little or nothing"
        warnings.warn(
            f"The bounds of {what} are proved but {apart}: more accuracy was out of reach within the work limit. {remedy}",
            AccuracyWarning,
            stacklevel=_caller(),
        )


def _caller() -> int:
    """How far up the stack the first frame outside this package is, for the line that a warning names."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "exactdp":
        level, frame = level + 1, frame.f_back
    return level


def checked(what: str, bounds: Bounds, remedy: str = REMEDY) -> Bounds:
    """The same bounds of delta, epsilon or beta, after a warning where they are wide."""
    warn_if_wide(what, epsilon_widths(bounds) if what == "epsilon" else probability_widths(bounds), remedy)
    return bounds
