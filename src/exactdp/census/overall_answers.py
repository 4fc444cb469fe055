"""What whoever has an overall guarantee answers for any argument: a study of a release, or several products together."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.accounting.tradeoff_curve import MOST_POINTS, TradeOffCurve
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.overall import Overall
from exactdp.elementwise import each_of_list
from exactdp.numbers import read_alpha, read_delta, read_epsilon, whole
from exactdp.widths import checked, log_widths, warn_if_wide

_REMEDY = "Ask the pair that matters by itself, release.pair(i, j), for narrower ones."


@steady
class OverallAnswers(ABC):
    """delta, epsilon and beta of all pairs together, each between certified bounds."""

    @property
    @abstractmethod
    def _overall(self) -> Overall:
        """The engine behind it."""

    def delta(self, epsilon: Any) -> Any:
        """The least delta that the whole release satisfies at this epsilon, rounded up (scalar or array)."""
        return self.delta_bounds(epsilon).upper

    def delta_bounds(self, epsilon: Any) -> Bounds:
        """Certified bounds of the largest delta(epsilon) over all pairs."""

        return checked("delta", _together(epsilon, read_epsilon, self._overall.deltas, _delta_at_infinity), _REMEDY)

    def log_delta(self, epsilon: Any) -> Any:
        """Natural logarithm of the upper bound of delta(epsilon), also below the double range."""
        return self.log_delta_bounds(epsilon).upper

    def log_delta_bounds(self, epsilon: Any) -> Bounds:
        """Certified bounds of the logarithm of the largest delta(epsilon), also below the double range."""

        found = _together(epsilon, read_epsilon, self._overall.log_deltas, _log_delta_at_infinity)
        warn_if_wide("delta", log_widths(*(np.atleast_1d(end) for end in found)).ravel(), _REMEDY)
        return found

    def epsilon(self, delta: Any) -> Any:
        """The least epsilon that the whole release satisfies at this delta, rounded up (scalar or array)."""
        return self.epsilon_bounds(delta).upper

    def epsilon_bounds(self, delta: Any) -> Bounds:
        """Certified bounds of the largest epsilon(delta) over all pairs."""

        def end(d: Fraction) -> tuple[float, float] | None:
            if d == 0:
                return self._overall.greatest_loss
            return None if d < 1 else (-math.inf, -math.inf)

        return checked("epsilon", _together(delta, read_delta, self._overall.epsilons, end), _REMEDY)

    def beta(self, alpha: Any) -> Any:
        """The overall trade-off curve, the lower convex envelope of all pairs', rounded down (scalar or array)."""
        return self.beta_bounds(alpha).lower

    def beta_bounds(self, alpha: Any) -> Bounds:
        """Certified bounds of the overall trade-off curve at alpha."""

        def end(a: Fraction) -> tuple[float, float] | None:
            return (1.0 - float(a),) * 2 if a in (0, 1) else None

        return checked("beta", _together(alpha, read_alpha, self._overall.betas, end), _REMEDY)

    def tradeoff(self, num: int = 201) -> TradeOffCurve:
        """Points for plotting on or below the overall curve, convex, from (0, 1) to (1, 0), at most `num`: a TradeOffCurve."""
        return self._overall.curve(whole(num, "num", 5, MOST_POINTS), _REMEDY)


def _together(
    value: Any,
    read: Callable[[object], Any],
    ask: Callable[[list[Fraction]], list[tuple[float, float]]],
    end: Callable[[Any], tuple[float, float] | None],
) -> Bounds:
    """What `ask` says of all elements of an array-like together, in its shape; those for which `end` knows the answer apart."""

    def over_list(values: list[Any]) -> tuple[list[float], list[float]]:
        ends = [end(x) for x in values]
        asked = iter(ask([x for x, known in zip(values, ends, strict=True) if known is None]))
        found = [next(asked) if known is None else known for known in ends]
        return [low for low, _ in found], [high for _, high in found]

    return each_of_list(value, over_list, read)


def _delta_at_infinity(epsilon: Fraction | float) -> tuple[float, float] | None:
    """delta at an infinite epsilon, which is a float."""
    return ((0.0, 0.0) if epsilon > 0 else (1.0, 1.0)) if isinstance(epsilon, float) else None


def _log_delta_at_infinity(epsilon: Fraction | float) -> tuple[float, float] | None:
    return ((-math.inf, -math.inf) if epsilon > 0 else (0.0, 0.0)) if isinstance(epsilon, float) else None
