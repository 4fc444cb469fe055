"""The exact guarantee beside what others would report: the Gaussian shortcut, and zCDP by the simple and by the optimal
conversion.

A soundness alarm: the Gaussian shortcut (the formula of the continuous Gaussian with mu = sqrt(2 rho)) is not a bound. Where it
reports less epsilon or less delta than the certified lower bound, it understates the loss, and `Comparison` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from exactdp.arithmetic_state import steady
from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_delta, gaussian_epsilon, gaussian_mu
from exactdp.guarantees.near_gaussian import has_gaussians_only
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_delta, zcdp_delta_simple, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr, shown
from exactdp.theory.gaussian_gap.gap import Gap, GaussianGap

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition

_DOUBT = 1e-9  # the Gaussian formula is an estimate to about 1e-12: closer than this, relative, nothing is said


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
        return self.gaussian < self.exact[0] - _DOUBT * abs(self.exact[0])

    @property
    def shortcut_overstates(self) -> bool:
        """Proved: the Gaussian shortcut reports more than the exact value."""
        return self.gaussian > self.exact[1] + _DOUBT * abs(self.exact[1])

    @property
    def statement(self) -> str:
        """One plain sentence about the shortcut."""
        if not math.isfinite(self.gaussian) or not math.isfinite(self.exact[1]):
            return "There is no Gaussian shortcut to compare with."
        if self.exact[1] < 1e-300:
            return "The values are below the range of doubles; compare log_delta instead."
        off = abs(self.gaussian - self.exact[1]) / abs(self.exact[1]) if self.exact[1] else math.inf
        if self.shortcut_understates:
            return f"ALARM: the Gaussian shortcut understates {self.quantity}, by {off:.2g} of it."
        if self.shortcut_overstates:
            return f"The Gaussian shortcut overstates {self.quantity}, by {off:.2g} of it."
        told = "" if self.gap is None else f" At epsilon = {float(self.gap.epsilon):.6g}, {self.gap.statement}"
        return f"The Gaussian shortcut agrees to {_DOUBT:.0e}.{told}"

    def rows(self) -> list[tuple[str, str, str]]:
        """Method, value, what it is worth."""
        return [
            ("exact, at least", f"{self.exact[0]:.12g}", "certified"),
            ("exact, at most", f"{self.exact[1]:.12g}", "certified"),
            ("Gaussian shortcut", f"{self.gaussian:.12g}", "not a bound"),
            ("zCDP, optimal", f"{self.zcdp_optimal:.12g}", "safe"),
            ("zCDP, simple", f"{self.zcdp_simple:.12g}", "safe"),
        ]

    def __str__(self) -> str:
        head = f"{self.quantity} at {self.given} = {shown(self.value)}"
        return "\n".join(
            [head, *(f"  {name:<18}{value:>20}  {worth}" for name, value, worth in self.rows()), self.statement]
        )


_OTHERS: dict[str, dict[str, Callable[[Any, Any], Any]]] = {
    "delta": {"zcdp_optimal": zcdp_epsilon, "zcdp_simple": zcdp_epsilon_simple, "gaussian": gaussian_epsilon},
    "epsilon": {"zcdp_optimal": zcdp_delta, "zcdp_simple": zcdp_delta_simple, "gaussian": gaussian_delta},
    "alpha": {"zcdp_optimal": zcdp_beta, "gaussian": gaussian_beta},
}


def other_accounts(rho: Fraction | float, given: str, at: Any) -> dict[str, Any]:
    """What zCDP and the Gaussian shortcut say at this rho: epsilon at a delta, delta at an epsilon or beta at an alpha (scalar or
    array), by name: `zcdp_optimal`, `zcdp_simple` (not for beta) and `gaussian`."""
    return {name: f(gaussian_mu(rho) if name == "gaussian" else rho, at) for name, f in _OTHERS[given].items()}


def compare_at(composition: Composition, given: str, value: Fraction) -> Comparison:
    """epsilon at one delta, or delta at one epsilon."""
    return compare_curve(composition, composition.rho, given, value)


def compare_curve(curve: Any, rho: Fraction | float, given: str, value: Fraction) -> Comparison:
    """The same for whatever has certified bounds, such as all pairs of a release; a composition comes with the gap as well."""
    bounds = curve.epsilon_bounds(value) if given == "delta" else curve.delta_bounds(value)
    unknown = dict.fromkeys(_OTHERS[given], math.inf if given == "delta" else 1.0)
    others = unknown if rho == math.inf else other_accounts(rho, given, value)
    gap = _gap(curve, value if given == "epsilon" else others["gaussian"]) if hasattr(curve, "mechanisms") else None
    return Comparison(given, value, (float(bounds.lower), float(bounds.upper)), **others, gap=gap)


def _gap(composition: Composition, epsilon: Fraction | float) -> Gap | None:
    """The certified gap, for Gaussian noise of both kinds and a finite epsilon."""
    if not has_gaussians_only(composition) or not math.isfinite(epsilon):
        return None
    return GaussianGap(composition).at(Fraction(epsilon))
