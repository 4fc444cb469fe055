"""Compositions: the object people hold. It groups mechanisms and answers every question about them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from exactdp.accounting.cross_check import CrossCheck
from exactdp.accounting.directions import BothDirections
from exactdp.accounting.enclosures import beta_decimals, delta_decimals, epsilon_decimals
from exactdp.accounting.explanation import Explanation
from exactdp.accounting.loss_distribution import lattice_masses
from exactdp.accounting.planner import answers_for, sieve_suits
from exactdp.accounting.tradeoff_curve import MOST_POINTS, TradeOffCurve
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds, Bracket, Point
from exactdp.doubles import Floats
from exactdp.elementwise import each_decimal, each_of_list, one_by_one
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.contours import Contours
from exactdp.errors import AccuracyError, InvalidInputError, LatticeTooFineError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import (
    LARGEST_COUNT,
    LARGEST_RHO,
    Number,
    positive,
    rational,
    read_alpha,
    read_delta,
    read_epsilon,
    read_share,
    shown,
    total,
    whole,
)
from exactdp.widths import checked, log_widths, relative_widths, warn_if_wide

if TYPE_CHECKING:  # what few ask for is loaded when it is asked for
    from exactdp.accounting.budget_cost import BudgetChange, BudgetCosts
    from exactdp.guarantees.comparison import Comparison
    from exactdp.guarantees.risk import Risk

_Lists = tuple[list[float], list[float]]
_TERMS_PER_SECOND = 1_000_000
_LOOKS_PER_SECOND = 8_000_000
_LONGEST = Fraction(10**10)  # seconds: three centuries, and still a double


@steady
class Composition:
    """Several mechanisms released together, of any kinds.

    Takes an iterable of mechanisms or a mapping from mechanism to count. The order does not matter, equal mechanisms are
    grouped, and a million copies cost what ten cost. `explain` tells which method answered and what its bounds are made of.

    >>> c = 10 * DiscreteGaussian(1)
    >>> c.delta_bounds("24.6785").upper <= 1e-10 < c.delta_bounds("24.6784").lower
    True
    """

    _repr_html_ = repr_html

    def __init__(self, mechanisms: Iterable[Mechanism] | Mapping[Any, int], effort: Effort | None = None) -> None:
        self._effort = Effort() if effort is None else effort
        counts: Counter[Mechanism] = Counter()
        if isinstance(mechanisms, Mapping):
            for mechanism, count in mechanisms.items():
                counts[_mechanism(mechanism)] += whole(count, "count", 0, LARGEST_COUNT)
        elif isinstance(mechanisms, Mechanism):
            counts[mechanisms] += 1
        elif isinstance(mechanisms, Iterable) and getattr(mechanisms, "ndim", 1) != 0:
            for mechanism in mechanisms:
                counts[_mechanism(mechanism)] += 1
        else:
            raise InvalidInputError(
                f"A composition takes mechanisms in a list or a mapping from mechanism to count. Found {shown(mechanisms)}."
            )
        kept = [(m, n) for m, n in counts.items() if n]
        if not kept:
            raise InvalidInputError("A composition needs at least one mechanism. Found none.")
        self._counts = dict(sorted(kept, key=lambda item: _order(item[0])))
        if sum(n * _about_rho(m) for m, n in kept) > LARGEST_RHO:
            raise InvalidInputError(
                f"The total rho of a composition must be at most {LARGEST_RHO:.0e} (more protects nothing). Found more; "
                "use fewer mechanisms or more noise."
            )

    @property
    def mechanisms(self) -> Mapping[Mechanism, int]:
        """The distinct mechanisms and how often each occurs."""
        return MappingProxyType(self._counts)

    @property
    def discrete_gaussians(self) -> Mapping[DiscreteGaussian, int]:
        """The same for a composition of discrete Gaussians only; any other is refused."""
        result = {m: n for m, n in self._counts.items() if isinstance(m, DiscreteGaussian)}
        if len(result) < len(self._counts):
            other = next(m for m in self._counts if not isinstance(m, DiscreteGaussian))
            raise InvalidInputError(
                f"This works for compositions of DiscreteGaussian mechanisms only. Found {shown(other)}."
            )
        return MappingProxyType(result)

    def within(self, max_seconds: float | None = None, max_nodes: int | None = None) -> Composition:
        """The same composition with a limit on the work of one contour: nodes evaluated, or seconds of a typical machine.

        Where the accuracy wanted is out of reach within the limit the bounds are wider, still proved, and an AccuracyWarning says
        so. The limit is on estimated work, so results are the same on every machine; the seconds are approximate. Below the usual
        limit fewer contours answer a curve, each to a digit less.
        """
        terms, looks = self._effort.terms, self._effort.looks
        if max_nodes is not None:
            terms = whole(max_nodes, "max_nodes", 1) * len(self._counts)
            looks = 3 * terms
        if max_seconds is not None:
            seconds = float(min(positive(max_seconds, "max_seconds"), _LONGEST))
            most = max(int(_TERMS_PER_SECOND * seconds), 1), max(int(_LOOKS_PER_SECOND * seconds), 1)
            terms, looks = most if max_nodes is None else (min(terms, most[0]), min(looks, most[1]))
        limited = Composition.__new__(Composition)  # its mechanisms were checked and put in order before
        limited._counts, limited._effort = self._counts, Effort(terms, looks)
        return limited

    @property
    def effort(self) -> Effort:
        """The work limit (see `within`)."""
        return self._effort

    @cached_property
    def _answers(self) -> BothDirections:
        return answers_for(self._counts, self._effort)

    @property
    def _contours(self) -> Contours:
        return self._answers.contours()

    @cached_property
    def rho(self) -> Fraction | float:
        """A zCDP parameter of the composition, exact for Gaussian noise; infinite if a mechanism has none."""
        parts = [n * m.rho for m, n in self._counts.items()]
        has_none = any(isinstance(p, float) and math.isinf(p) for p in parts)
        return math.inf if has_none else total(Fraction(p) for p in parts)

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
            return each_decimal(epsilon, lambda e, d: delta_decimals(self._contours, e, d), read_epsilon, digits)
        return each_of_list(epsilon, self._delta_floats, read_epsilon)

    def point(self, epsilons: list[Fraction]) -> Point:
        """delta and 1 - delta at each epsilon, each certified in relative terms however small (for programs; see
        brackets.py)."""
        return self._answers.point(epsilons)

    def log_delta(self, epsilon: Any) -> Any:
        """Natural logarithm of the upper bound of delta(epsilon), also where delta is below the double range."""
        return self.log_delta_bounds(epsilon).upper

    def log_delta_bounds(self, epsilon: Any) -> Bounds:
        """Certified bounds of log delta(epsilon), also where delta is below the double range."""
        return each_of_list(epsilon, self._log_delta_floats, read_epsilon)

    def epsilon(self, delta: Any) -> Any:
        """The least epsilon at this delta, rounded up: a certified upper bound (scalar or array).

        The rule: the infimum of all real epsilon with delta(epsilon) <= delta. So delta = 0 gives inf, delta = 1 gives -inf,
        and delta above delta(0) gives a negative epsilon.
        """
        return self.epsilon_bounds(delta).upper

    def epsilon_bounds(self, delta: Any, digits: int | None = None) -> Bounds:
        """Certified bounds of epsilon(delta); with `digits`, decimals less than 10^-digits apart in relative terms."""
        if digits is not None:
            return each_decimal(delta, lambda x, d: epsilon_decimals(self._contours, x, d), read_delta, digits)
        return checked("epsilon", each_of_list(delta, one_by_one(self._epsilon_floats), read_delta))

    def beta(self, alpha: Any) -> Any:
        """Type II error of the best test at type I error alpha, rounded down: a certified lower bound (scalar or array)."""
        return self.beta_bounds(alpha).lower

    def beta_bounds(self, alpha: Any, digits: int | None = None) -> Bounds:
        """Certified bounds of the trade-off curve at alpha; with `digits`, decimals less than 10^-digits apart."""
        if digits is not None:
            return each_decimal(alpha, lambda a, d: beta_decimals(self._contours, a, d), read_alpha, digits)
        return checked("beta", each_of_list(alpha, one_by_one(self._beta_floats), read_alpha))

    def tradeoff(self, num: int = 201) -> TradeOffCurve:
        """A curve of (alpha, beta) for plotting: convex, from (0, 1) to (1, 0), at most `num` points."""
        return self._answers.curve(whole(num, "num", 5, MOST_POINTS))

    @property
    def step(self) -> Fraction | None:
        """h, where the loss is rho + S with S on the lattice h Z and the lattice is coarse enough to be used; None elsewhere."""
        try:
            return self._contours.lattice.step if sieve_suits(self._contours.lattice) else None
        except (AccuracyError, LatticeTooFineError):
            return None

    def masses(self, points: Sequence[int]) -> Bounds:
        """Certified bounds of P(h a <= S < h b), h the `step`, for neighbours a, b in an ascending list of lattice points.

        >>> (10 * DiscreteGaussian(1)).masses([0, 1]).upper
        array([0.12615667])
        """
        if self.step is None:
            raise InvalidInputError("The loss of this composition has no usable lattice, so it has no masses to list.")
        if isinstance(points, str) or not isinstance(points, Iterable) or getattr(points, "ndim", 1) == 0:
            raise InvalidInputError(f"points must be a list of whole numbers. Found {shown(points)}.")
        exact = [whole(p, "points", -LARGEST_COUNT, LARGEST_COUNT) for p in points]
        if any(a >= b for a, b in pairwise(exact)):
            raise InvalidInputError(f"points must be ascending. Found {shown(list(points))}.")
        return Bounds(*lattice_masses(self._contours, exact))

    def explain(self, epsilon: Number) -> Explanation:
        """The plan behind delta(epsilon) and the account of its errors, as an object that prints well."""
        exact = read_epsilon(epsilon)
        if isinstance(exact, float):
            raise InvalidInputError(f"epsilon must be a finite number. Found {epsilon}.")
        return self._answers.explain(exact)

    def cross_check(self, epsilon: Number) -> CrossCheck:
        """delta(epsilon), epsilon >= 0, by every method that applies, each from scratch: the bounds must overlap.

        For one's own eyes and for auditors; slower than `delta_bounds`, and no more certain in theory. Infinite losses (of
        ApproximateDP with a delta, or Outcomes that only one data set can give) are left out.
        """
        exact = read_epsilon(epsilon)
        if isinstance(exact, float) or exact < 0:
            raise InvalidInputError(f"epsilon must be a finite number of at least 0. Found {shown(epsilon)}.")
        return self._answers.cross_check(exact)

    def compare(self, delta: Number | None = None, epsilon: Number | None = None) -> Comparison:
        """Exact, Gaussian shortcut and zCDP side by side, at one delta or one epsilon; says where the shortcut errs."""
        from exactdp.guarantees.comparison import compare_at

        if (delta is None) == (epsilon is None):
            raise InvalidInputError(f"Give delta or epsilon. Found delta = {shown(delta)}, epsilon = {shown(epsilon)}.")
        if delta is not None:
            return compare_at(self, "delta", read_delta(delta))
        return compare_at(self, "epsilon", rational(epsilon, "epsilon"))

    def risk(self, alpha: Number = "0.05", prior: Number = "1/2", delta: Number = "1e-10") -> Risk:
        """Advantage, power at alpha, Bayes risk and posterior for a prior, odds multiplier at delta: certified, in words."""
        from exactdp.guarantees.risk import risk_of

        return risk_of(self, read_share(alpha, "alpha"), read_share(prior, "prior"), read_share(delta, "delta"))

    def budget_costs(
        self, delta: Number | None = None, epsilon: Number | None = None, *, blur: Number | None = None
    ) -> BudgetCosts:
        """What a little budget costs: d epsilon / d rho at fixed delta and d log delta / d rho at fixed epsilon, for one copy of
        each mechanism, at one delta or one epsilon. Estimates, for Gaussian noise of both kinds; `budget_change` is certified.

        A derivative is one of infinitely small steps, and ripples where the loss has atoms. With `blur` the loss is blurred by a
        normal one of this standard deviation (one more Gaussian mechanism), which averages over atoms as a longer step does.
        """
        from exactdp.accounting.budget_cost import costs_of

        if blur is None:
            return costs_of(self._counts, self._answers, delta, epsilon)
        more = Gaussian(1 / positive(blur, "blur") ** 2)
        return (self + more).budget_costs(delta, epsilon).without(more, 1)

    def budget_change(
        self, mechanism: Mechanism, rho: Number, *, delta: Number | None = None, epsilon: Number | None = None
    ) -> BudgetChange:
        """Certified: what changes if one copy of a mechanism gets so much more rho (less, if negative), its noise the less."""
        from exactdp.accounting.budget_cost import budget_change

        return budget_change(self, self.with_rho(mechanism, rho), delta=delta, epsilon=epsilon)

    def with_rho(self, mechanism: Mechanism, rho: Number) -> Composition:
        """The same composition with one copy of a Gaussian mechanism of either kind given so much more rho, exactly.

        >>> (3 * DiscreteGaussian(2)).with_rho(DiscreteGaussian(2), "1/4")
        Composition(1 x DiscreteGaussian(1) + 2 x DiscreteGaussian(2))
        """
        from exactdp.accounting.budget_cost import more_rho

        counts = Counter(self._counts)
        if _mechanism(mechanism) not in counts:
            raise InvalidInputError(f"The mechanism must be one of the composition's. Found {shown(mechanism)}.")
        counts[mechanism] -= 1
        counts[more_rho(mechanism, rho)] += 1
        return Composition(counts, self._effort)

    def scaled(self, factor: Number) -> Composition:
        """The same composition with every noise variance multiplied by `factor`: sigma2 of a Gaussian, the square of a discrete
        Laplace scale, the variance of an estimate by randomized response. Where a root is needed the noise is rounded up."""
        by = positive(factor, "factor")
        return Composition({m._scaled(by): n for m, n in self._counts.items()}, self._effort)

    def _delta_floats(self, epsilons: list[Fraction | float]) -> _Lists:
        return self._everywhere(
            epsilons,
            relative_widths,
            lambda bracket: (bracket.lower_floats(), np.minimum(bracket.upper_floats(), 1.0)),
            lambda e: self._answers.lost if e > 0 else (1.0, 1.0),
        )

    def _log_delta_floats(self, epsilons: list[Fraction | float]) -> _Lists:
        return self._everywhere(
            epsilons,
            log_widths,
            lambda bracket: (bracket.log_lower(), np.minimum(bracket.log_upper(), 0.0)),
            lambda e: self._answers.log_lost if e > 0 else (0.0, 0.0),
        )

    def _everywhere(
        self,
        epsilons: list[Fraction | float],
        widths: Callable[[Floats, Floats], Floats],
        ends: Callable[[Bracket], tuple[Floats, Floats]],
        at_infinity: Callable[[float], tuple[float, float]],
    ) -> _Lists:
        """The ends of the profile at each epsilon; at an infinite one those given."""
        finite = [e for e in epsilons if isinstance(e, Fraction)]
        if finite:
            bracket = self._answers.point(finite).delta
            warn_if_wide("delta", widths(bracket.log_lower(), bracket.log_upper()))
            found = iter(np.stack(ends(bracket), axis=1).tolist())
        pairs = [next(found) if isinstance(e, Fraction) else at_infinity(e) for e in epsilons]
        return [p[0] for p in pairs], [p[1] for p in pairs]

    def _epsilon_floats(self, delta: Fraction) -> tuple[float, float]:
        if delta == 0:
            return self._answers.greatest_loss
        if delta >= 1:
            return -math.inf, -math.inf
        return self._answers.epsilon_bracket(delta)

    def _beta_floats(self, alpha: Fraction) -> tuple[float, float]:
        if alpha == 1:
            return 0.0, 0.0
        low, high = self._answers.beta_bracket(alpha) if alpha else self._answers.beta_at_zero
        return low, min(high, 1.0)

    def __add__(self, other: Composition | Mechanism) -> Composition:
        if isinstance(other, Mechanism):
            other = Composition([other])
        if not isinstance(other, Composition):
            return NotImplemented
        return Composition(Counter(self._counts) + Counter(other._counts), self._effort)

    def __radd__(self, other: object) -> Composition:  # so that sum() works
        return self if other == 0 else NotImplemented

    def __mul__(self, count: int) -> Composition:
        times = whole(count, "count", 1)
        return Composition({m: n * times for m, n in self._counts.items()}, self._effort)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and self._counts == other._counts

    def __hash__(self) -> int:
        return hash(tuple(self._counts.items()))

    def __reduce__(self) -> tuple[type[Composition], tuple[dict[Mechanism, int], Effort]]:
        return Composition, (self._counts, self._effort)

    def __repr__(self) -> str:
        return f"Composition({' + '.join(f'{n} x {m}' for m, n in self._counts.items())})"


def _mechanism(value: object) -> Mechanism:
    if not isinstance(value, Mechanism):
        raise InvalidInputError(
            f"A composition is made of mechanisms such as DiscreteGaussian(2) or RandomizedResponse(1). Found {shown(value)}."
        )
    return value


def _about_rho(mechanism: Mechanism) -> float:
    """rho as a double, 0 where it is infinite: that of a discrete Gaussian without making a fraction of it."""
    if isinstance(mechanism, DiscreteGaussian):
        s = mechanism.sigma2
        return mechanism.sensitivity**2 * s.denominator / (2 * s.numerator)
    rho = mechanism.rho
    return rho.numerator / rho.denominator if isinstance(rho, Fraction) else 0.0


def _order(mechanism: Mechanism) -> tuple[Any, ...]:
    """Discrete Gaussians by value (the double in front settles nearly all comparisons), then the others by name and text."""
    if isinstance(mechanism, DiscreteGaussian):
        s = mechanism.sigma2
        return 0, "", s.numerator / s.denominator, s, mechanism.sensitivity
    return 1, type(mechanism).__name__, repr(mechanism)
