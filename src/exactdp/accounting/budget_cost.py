"""What budget costs: derivatives of epsilon and delta by rho (estimates), and certified changes from one design to another.

rho of a mechanism is zCDP's, D^2 / (2 sigma2). d epsilon / d rho is taken at fixed delta, d delta / d rho at fixed epsilon, for
one copy of each mechanism; rho that is spread evenly over all copies costs the same per unit (docs/theory/derivatives.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from exactdp.accounting.directions import BothDirections
from exactdp.accounting.planner import OnLattice
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.plan import TOLERANCE, Plan, log_expected, make_plan
from exactdp.engine.line.methods import threshold
from exactdp.engine.line.plan import make_line_plan
from exactdp.engine.line.tilts import Ladder
from exactdp.engine.listed_slopes import listed_slopes
from exactdp.engine.payoff import delta_threshold
from exactdp.engine.slopes import Differentiable, Slopes, lattice_slopes, line_slopes, slower_fall
from exactdp.errors import AccuracyError, InvalidInputError, LatticeTooFineError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_repr, rational, read_delta, shown
from exactdp.numerals import about, at_least, at_most, exact

_FINE_ENOUGH = 1e4  # a slower fall of the slopes' transforms by this much leaves ten digits
_COARSE_STEPS = 10_000  # lattice steps in a standard deviation from which a list is tried before the lattice
_LEAST_LOG, _LARGEST_LOG = -745.0, 700.0


@steady
@dataclass(frozen=True)
class BudgetCosts:
    """Estimates of what budget costs at one point of the privacy profile, for one copy of each mechanism. Not bounds.

    `epsilon_per_rho` is d epsilon / d rho at fixed delta; `log_delta_per_rho` is d log delta / d rho at fixed epsilon (a small
    delta is known by its logarithm; `delta_per_rho` is in units of delta itself). `epsilon_errors` and `log_delta_errors` say how
    far off each may be, as far as can be told: rounding, what is left out, and where an atom of the loss lies on epsilon the
    distance to the derivatives of both sides. A derivative says nothing of steps that carry atoms across epsilon, which count
    where noise is coarse: there ask with a `blur`, or `budget_change` for the step itself.
    """

    _repr_html_ = repr_html
    __repr__ = exact_repr

    given: str
    value: Fraction
    epsilon: float
    log_delta: float
    log_delta_per_epsilon: float
    mechanisms: tuple[Mechanism, ...]
    counts: tuple[int, ...]
    epsilon_per_rho: tuple[float, ...]
    epsilon_errors: tuple[float, ...]
    log_delta_per_rho: tuple[float, ...]
    log_delta_errors: tuple[float, ...]

    @property
    def delta_per_rho(self) -> tuple[float, ...]:
        """d delta / d rho at fixed epsilon."""
        delta = math.exp(max(self.log_delta, _LEAST_LOG))
        return tuple(delta * slope for slope in self.log_delta_per_rho)

    def without(self, mechanism: Mechanism, count: int) -> BudgetCosts:
        """The same costs with so many copies of a mechanism not listed."""
        counts = [n - count if m == mechanism else n for m, n in zip(self.mechanisms, self.counts, strict=True)]
        kept = [i for i, n in enumerate(counts) if n]
        listed = ("mechanisms", "epsilon_per_rho", "epsilon_errors", "log_delta_per_rho", "log_delta_errors")
        columns: dict[str, Any] = {name: tuple(getattr(self, name)[i] for i in kept) for name in listed}
        return replace(self, counts=tuple(counts[i] for i in kept), **columns)

    def __str__(self) -> str:
        rows = zip(self.mechanisms, self.counts, self.epsilon_per_rho, self.log_delta_per_rho, strict=True)
        lines = [
            f"  {n} x {m}: {about(slope)} of epsilon, {about(log_slope)} of log delta"
            for m, n, slope, log_slope in rows
        ]
        return "\n".join([f"Estimates per unit of rho at {self.given} = {exact(self.value)}", *lines])


class Profile(Protocol):
    """Whatever has certified bounds of epsilon and delta: a composition, or the study of a release."""

    def epsilon_bounds(self, delta: Any) -> Bounds:
        """Certified bounds of epsilon(delta)."""

    def delta_bounds(self, epsilon: Any) -> Bounds:
        """Certified bounds of delta(epsilon)."""


@steady
@dataclass(frozen=True)
class BudgetChange:
    """Certified: by how much epsilon at one delta, or delta at one epsilon, changes from one design to another."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    given: str
    value: Fraction
    before: tuple[float, float]
    after: tuple[float, float]

    @property
    def quantity(self) -> str:
        """What changes."""
        return "epsilon" if self.given == "delta" else "delta"

    @property
    def change(self) -> Bounds:
        """Certified bounds of the change: the least and the most that the two pairs of bounds allow, rounded outward."""
        return Bounds(
            math.nextafter(self.after[0] - self.before[1], -math.inf),
            math.nextafter(self.after[1] - self.before[0], math.inf),
        )

    def per(self, budget: Number) -> Bounds:
        """Certified bounds of the mean slope, the change divided by the budget that was added (negative: taken away)."""
        by = rational(budget, "budget")
        if by == 0:
            raise InvalidInputError("A mean slope needs a budget other than 0. Found 0.")
        ends = sorted(Fraction(end) / by for end in self.change)
        return Bounds(math.nextafter(float(ends[0]), -math.inf), math.nextafter(float(ends[1]), math.inf))

    def __str__(self) -> str:
        low, high = self.change
        at = f"{self.quantity} at {self.given} = {exact(self.value)}"
        ends = f"from at most {at_most(self.before[1])} to at most {at_most(self.after[1])}"
        return f"{at} changes by at least {at_least(low)}, at most {at_most(high)} ({ends})"


@steady
def budget_change(
    before: Profile, after: Profile, *, delta: Number | None = None, epsilon: Number | None = None
) -> BudgetChange:
    """The certified change of epsilon at `delta`, or of delta at `epsilon`, between two designs of any kinds of noise.

    Takes compositions or studies (`release.account()`).

    >>> change = budget_change(10 * DiscreteGaussian(5), 10 * DiscreteGaussian("4.9"), delta="1e-10").change
    >>> 0.134686 < change.lower < change.upper < 0.134687
    True
    """
    given, value = _question(delta, epsilon)
    asked = [_ends(x.epsilon_bounds(value) if given == "delta" else x.delta_bounds(value)) for x in (before, after)]
    return BudgetChange(given, value, asked[0], asked[1])


def _ends(bounds: Bounds) -> tuple[float, float]:
    if not all(math.isfinite(end) for end in bounds):
        raise InvalidInputError(
            "A change needs a finite epsilon before and after. Found an infinite one; ask at another delta."
        )
    return float(bounds.lower), float(bounds.upper)


def _question(delta: Number | None, epsilon: Number | None) -> tuple[str, Fraction]:
    if (delta is None) == (epsilon is None):
        raise InvalidInputError(f"Give delta or epsilon. Found delta = {shown(delta)}, epsilon = {shown(epsilon)}.")
    if epsilon is not None:
        return "epsilon", rational(epsilon, "epsilon")
    value = read_delta(delta)
    if not 0 < value < 1:
        raise InvalidInputError(f"delta must be above 0 and below 1 here. Found {shown(delta)}.")
    return "delta", value


def costs_of(
    mechanisms: Mapping[Mechanism, int], answers: BothDirections, delta: Number | None, epsilon: Number | None
) -> BudgetCosts:
    """The costs of a composition of Gaussian noise of both kinds, from its answers."""
    given, value = _question(delta, epsilon)
    own = _differentiable(mechanisms)
    if given == "delta":
        low, high = answers.epsilon_bracket(value)
        at = Fraction((low + high) / 2)
    else:
        at = value
    bracket = answers.point([at]).delta
    log_delta = float(bracket.log_lower()[0] + bracket.log_upper()[0]) / 2
    slopes = _slopes(own, answers, abs(at))
    # delta(-e) = 1 - e^-e + e^-e delta(e): at -e both slopes are e^-e times those of delta(e) by rho, and P(L <= e)
    by_epsilon = slopes.by_epsilon if at >= 0 else slopes.below
    log_unit = slopes.log_scale + min(float(at), 0.0) - log_delta
    if not (by_epsilon > 0 and np.isfinite(slopes.by_rho).all() and log_unit < _LARGEST_LOG):
        raise AccuracyError(
            "The derivatives are lost in rounding here; ask budget_change for a step, which is certified."
        )
    unit = math.exp(log_unit)
    per_rho = slopes.by_rho / by_epsilon
    errors = (slopes.rho_errors + np.abs(per_rho) * slopes.epsilon_error) / by_epsilon
    columns = per_rho, errors, slopes.by_rho * unit, slopes.rho_errors * unit
    return BudgetCosts(
        given,
        value,
        float(at),
        log_delta,
        -by_epsilon * unit,
        tuple(own),
        tuple(own.values()),
        *(tuple(column.tolist()) for column in columns),
    )


def _differentiable(mechanisms: Mapping[Mechanism, int]) -> dict[Differentiable, int]:
    own = {m: n for m, n in mechanisms.items() if isinstance(m, (DiscreteGaussian, Gaussian))}
    if len(own) < len(mechanisms):
        other = next(m for m in mechanisms if m not in own)
        raise InvalidInputError(
            f"Derivatives by rho are for DiscreteGaussian and Gaussian mechanisms. Found {shown(other)}; "
            "ask budget_change for the certified change between two compositions."
        )
    return own


def _slopes(mechanisms: Mapping[Differentiable, int], answers: BothDirections, epsilon: Fraction) -> Slopes:
    """By the lattice of the loss where it has a usable one, by a list of its values where they are few, else on the line."""
    lattice = answers.lattice
    y = threshold(epsilon)
    is_coarse = lattice is not None and math.sqrt(lattice.r) <= _COARSE_STEPS * lattice.h
    gaussians = {m: n for m, n in mechanisms.items() if isinstance(m, DiscreteGaussian)}
    where = Ladder(answers.total).rung_of(float(epsilon))
    if not is_coarse and len(gaussians) == len(mechanisms):
        found = listed_slopes(gaussians, where.tilt, epsilon)
        if found is not None:
            return found
    if isinstance(answers, OnLattice):
        try:
            contours = answers.contours()
            at = delta_threshold(answers.lattice, epsilon)
            return lattice_slopes(_plan(contours, epsilon), at)
        except (LatticeTooFineError, AccuracyError):
            pass
    return line_slopes(make_line_plan(answers.total, where, answers.effort), list(mechanisms), y)


def _plan(contours: Contours, epsilon: Fraction) -> Plan:
    """The plan of delta at this epsilon, with a finer sieve where the transforms of the slopes fall much more slowly."""
    lattice = contours.lattice
    payoff = contours.payoff_at(epsilon)
    index = contours.rung_of(payoff, delta_threshold(lattice, epsilon))
    plan = contours.contour(payoff, index).plan
    slower = slower_fall(plan)
    if slower <= _FINE_ENOUGH:
        return plan
    where = contours.rung(payoff, index)
    log_aim = log_expected(lattice, where) + math.log(TOLERANCE * _FINE_ENOUGH / slower)
    return make_plan(lattice, where, log_aim, contours.effort.looks)


def more_rho(mechanism: Mechanism, rho: Number) -> Mechanism:
    """A Gaussian mechanism of either kind with so much more rho, and so much less noise."""
    if not isinstance(mechanism, (DiscreteGaussian, Gaussian)):
        raise InvalidInputError(
            f"Only of DiscreteGaussian and Gaussian mechanisms does rho say all about the noise. Found {shown(mechanism)}; give "
            "budget_change two compositions instead."
        )
    total = mechanism.rho + rational(rho, "rho")
    if total <= 0:
        raise InvalidInputError(
            f"A mechanism must keep some rho: this one has {exact(mechanism.rho)}. Found {shown(rho)} to add."
        )
    return mechanism._scaled(mechanism.rho / total)
