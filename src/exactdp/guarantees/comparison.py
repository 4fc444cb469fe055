"""The exact guarantee beside what others would report: the Gaussian shortcut, and zCDP by the simple and by the optimal
conversion.

The Gaussian shortcut (the formula of the continuous Gaussian with mu = sqrt(2 rho)) is not a bound. Where it reports less epsilon
or less delta than the certified lower bound, it understates the loss, and `Comparison` says so, graded: an *alarm* where the
difference is in the digits that people quote, a *remark* where it is below them.

The rule: a number that is quoted with four significant digits, as agencies quote theirs (17.14, 26.34), is known to half a
unit of its fourth digit. An understatement of at least that much, counted at the certified lower bound, is an alarm: it changes
what is quoted and with it decisions. A smaller one is no larger than what quoting rounds off: it is proved, and a remark. The
rule looks at the size of the difference only, so that two numbers on either side of a rounding boundary raise no false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from exactdp.arithmetic_state import steady
from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_delta, gaussian_epsilon, gaussian_mu
from exactdp.guarantees.near_gaussian import has_gaussians_only
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_delta, zcdp_delta_simple, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr
from exactdp.numerals import DIGITS, NEAREST, about, at_least, at_most, exact, rounded
from exactdp.theory.gaussian_gap.gap import Gap, GaussianGap

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition

_DOUBT = 1e-9  # the Gaussian formula is an estimate to about 1e-12: closer than this, relative, nothing is said
QUOTED_DIGITS = 4
"""Significant digits that people quote: a difference below them is a remark."""
_MOST_DIGITS = 12
_SMALLEST = 1e-300


class Grade(StrEnum):
    """How much it matters that an estimate is below the certified value."""

    ALARM = "alarm"
    """It is lower in the digits that people quote."""
    REMARK = "remark"
    """It is proved to be lower, by less than any digit that people quote."""
    NONE = "none"
    """It is not proved to be lower."""


def grade_of(estimate: float, lower: float | Decimal) -> Grade:
    """The grade of an estimate beside the certified lower bound of what it estimates.

    >>> grade_of(24.5697, 24.6784), grade_of(24.456494, 24.456514), grade_of(24.5, 24.4)
    (<Grade.ALARM: 'alarm'>, <Grade.REMARK: 'remark'>, <Grade.NONE: 'none'>)
    """
    is_lost = estimate == 0 and abs(float(lower)) < _SMALLEST  # the formula itself is below the range of doubles
    if is_lost or not float(lower) * (1 - math.copysign(_DOUBT, lower)) > estimate:
        return Grade.NONE
    if not math.isfinite(lower) or not math.isfinite(estimate):
        return Grade.ALARM
    half_a_unit = Fraction(10) ** (rounded(lower, QUOTED_DIGITS, NEAREST).adjusted() + 1 - QUOTED_DIGITS) / 2
    return Grade.ALARM if Fraction(lower) - Fraction(estimate) >= half_a_unit else Grade.REMARK


@steady
@dataclass(frozen=True)
class Comparison:
    """One quantity four ways, at one argument. `exact` are certified bounds; zCDP's figures are safe, the shortcut is not."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    given: str
    value: Fraction
    exact: tuple[float, float]
    gaussian: float
    zcdp_simple: float
    zcdp_optimal: float
    gap: Gap | None = None
    """For Gaussian noise: bounds of the shortcut's error in delta at this epsilon (or at the shortcut's own), proved without the
    exact value and far below the accuracy of doubles."""

    @property
    def quantity(self) -> str:
        """What is compared."""
        return "epsilon" if self.given == "delta" else "delta"

    @property
    def shortcut_understates(self) -> bool:
        """Proved: the Gaussian shortcut reports less than the exact value."""
        return self.grade is not Grade.NONE

    @property
    def shortcut_overstates(self) -> bool:
        """Proved: the Gaussian shortcut reports more than the exact value."""
        return self.gaussian > self.exact[1] + _DOUBT * abs(self.exact[1])

    @property
    def grade(self) -> Grade:
        """Whether the shortcut understates the exact value, and whether that is seen in the digits that people quote."""
        return grade_of(self.gaussian, self.exact[0])

    @property
    def off(self) -> float:
        """How far the shortcut is proved to be outside of the certified bounds, at least, relative to the nearer one."""
        (low, high), found = self.exact, self.gaussian
        end = low if found < low else high if found > high else None
        if end is None or not math.isfinite(found) or not math.isfinite(end):
            return 0.0
        return math.inf if end == 0 else math.nextafter(abs((Fraction(found) - Fraction(end)) / Fraction(end)), 0.0)

    @property
    def statement(self) -> str:
        """One plain sentence about the shortcut."""
        if not math.isfinite(self.gaussian) or not math.isfinite(self.exact[1]):
            return "There is no Gaussian shortcut to compare with."
        if self.exact[1] < _SMALLEST and self.quantity == "delta":
            return "The values are below the range of doubles; compare log_delta instead."
        if self.grade is Grade.ALARM:
            return f"ALARM: the Gaussian shortcut understates {self.quantity}, by {at_least(self.off, 2)} of it."
        if self.grade is Grade.REMARK:
            return (
                f"Remark: the Gaussian shortcut understates {self.quantity}, by {at_least(self.off, 2)} of it, "
                "which is less than any digit people quote; it is no bound."
            )
        if self.shortcut_overstates:
            return f"The Gaussian shortcut overstates {self.quantity}, by {at_least(self.off, 2)} of it."
        told = "" if self.gap is None else f" At epsilon = {about(self.gap.epsilon)}, {self.gap.statement}"
        return f"The Gaussian shortcut agrees to {_DOUBT:.0e}.{told}"

    def rows(self, digits: int | None = None) -> list[tuple[str, str, str]]:
        """Method, value, what it is worth: bounds rounded outward, the estimate marked.

        Without `digits` there are so many that both certified ends can be told from the shortcut, at most 12.
        """
        shown = self._digits if digits is None else digits
        return [
            ("exact, at least", at_least(self.exact[0], shown), "certified"),
            ("exact, at most", at_most(self.exact[1], shown), "certified"),
            ("Gaussian shortcut", about(self.gaussian, shown), "not a bound"),
            ("zCDP, optimal", at_most(self.zcdp_optimal, DIGITS), "safe"),
            ("zCDP, simple", at_most(self.zcdp_simple, DIGITS), "safe"),
        ]

    @property
    def _digits(self) -> int:
        """So many that the shortcut and the exact value differ in the last ones shown."""
        if not (self.shortcut_understates or self.shortcut_overstates) or not 0 < self.off < math.inf:
            return DIGITS
        return min(max(DIGITS, 2 - math.floor(math.log10(self.off))), _MOST_DIGITS)

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(value) for _, value, _ in rows)
        head = f"{self.quantity} at {self.given} = {exact(self.value)}"
        return "\n".join(
            [head, *(f"  {name:<18}{value:>{width}}  {worth}" for name, value, worth in rows), self.statement]
        )


_OTHERS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "delta": {"zcdp_optimal": zcdp_epsilon, "zcdp_simple": zcdp_epsilon_simple, "gaussian": gaussian_epsilon},
    "epsilon": {"zcdp_optimal": zcdp_delta, "zcdp_simple": zcdp_delta_simple, "gaussian": gaussian_delta},
    "alpha": {"zcdp_optimal": zcdp_beta, "gaussian": gaussian_beta},
}


def other_accounts(rho: Fraction | float, given: str, at: Any) -> dict[str, Any]:
    """What zCDP and the Gaussian shortcut say at this rho: epsilon at a delta, delta at an epsilon or beta at an alpha (scalar or
    array), by name: `zcdp_optimal`, `zcdp_simple` (not for beta) and `gaussian`. Where there is no rho they say nothing: epsilon
    is infinite, delta 1, beta 0."""
    if rho == math.inf:
        return dict.fromkeys(_OTHERS[given], {"delta": math.inf, "epsilon": 1.0, "alpha": 0.0}[given])
    return {name: f(gaussian_mu(rho) if name == "gaussian" else rho, at) for name, f in _OTHERS[given].items()}


def compare_at(composition: Composition, given: str, value: Fraction) -> Comparison:
    """epsilon at one delta, or delta at one epsilon."""
    return compare_curve(composition, composition.rho, given, value)


def compare_curve(curve: Any, rho: Fraction | float, given: str, value: Fraction) -> Comparison:
    """The same for whatever has certified bounds, such as all pairs of a release; a composition comes with the gap as well."""
    bounds = curve.epsilon_bounds(value) if given == "delta" else curve.delta_bounds(value)
    others = other_accounts(rho, given, value)
    gap = _gap(curve, value if given == "epsilon" else others["gaussian"]) if hasattr(curve, "mechanisms") else None
    return Comparison(given, value, (float(bounds.lower), float(bounds.upper)), **others, gap=gap)


def _gap(composition: Composition, epsilon: Fraction | float) -> Gap | None:
    """The certified gap, for Gaussian noise of both kinds and a finite epsilon."""
    if not has_gaussians_only(composition) or not math.isfinite(epsilon):
        return None
    return GaussianGap(composition).at(Fraction(epsilon))
