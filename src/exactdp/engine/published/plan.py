"""What the published method decides before it evaluates anything: L, U (Step 1), N (Step 3) and the kept nodes (Step 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.balls import ball, precision
from exactdp.engine.published.step1_tail_bound import choose_truncation
from exactdp.engine.published.step3_trapezoid import choose_nodes
from exactdp.engine.published.step4_sieve import half_width, kept_nodes
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, log_rational, positive, whole

_GUARD_BITS = 64  # of the working precision, for the products and sums of characteristic functions


@steady
@dataclass(frozen=True)
class ReferenceGroup:
    """Equal mechanisms: noise parameter, integer weight a_i L, how many copies, and Algorithm 1's half width.

    Node k is near a peak of the group when a_i L k is within `half_width` of a multiple of N.
    """

    sigma2: Fraction
    weight: int
    copies: int
    half_width: int


@steady
@dataclass(frozen=True)
class ReferencePlan:
    """What the method decides before it evaluates anything, in the paper's letters.

    `L` makes the weights a_i L coprime integers, where a_i = w_i / rho; `U` cuts X = sum a_i L X_i; `N` is the number of nodes
    2 pi k / N with k in 1..N; `d` sets the strip of analyticity (shown, not used again); `kept` is the set C.
    """

    tolerance: Fraction
    groups: tuple[ReferenceGroup, ...]
    rho: Fraction
    L: Fraction
    U: int
    N: int
    d: float
    kept: tuple[int, ...]

    @property
    def weights(self) -> tuple[int, ...]:
        """The integers a_i L, one per group, largest noise first."""
        return tuple(g.weight for g in self.groups)

    @property
    def variance_proxy(self) -> Fraction:
        """L^2 sum a_i^2 sigma_i^2: X is sub-Gaussian with this parameter."""
        return _variance_proxy(self.groups)

    @property
    def bits(self) -> int:
        """The working precision: rounding stays far below Delta in a sum of up to N products of characteristic functions."""
        size = self.tolerance.denominator.bit_length() - self.tolerance.numerator.bit_length() + 1
        return size + 2 * self.N.bit_length() + sum(g.copies for g in self.groups).bit_length() + _GUARD_BITS


@steady
def make_reference_plan(mechanisms: Mapping[DiscreteGaussian, int], tolerance: Number) -> ReferencePlan:
    """Propositions choice_U and choice_N and Algorithm 1 for a mapping from mechanism to count.

    Guarantee: U and N are rounded with certainty, and no node is discarded unless the proof allows it.

    >>> plan = make_reference_plan({DiscreteGaussian(4): 3, DiscreteGaussian(6): 1}, "1e-20")
    >>> plan.weights, plan.U, plan.N, len(plan.kept)
    ((2, 3), 113, 229, 217)
    """
    small, groups, rho, L = _read(mechanisms, tolerance)
    U = choose_truncation(_variance_proxy(groups), small)
    N, dL = choose_nodes(_variance_proxy(groups), small, U)
    plan = ReferencePlan(small, groups, rho, L, U, N, dL / float(L), ())
    with precision(plan.bits):
        threshold = ball(small / (8 * U))
        reaches = [half_width(g.sigma2, g.copies, N, threshold, plan.bits) for g in groups]
    groups = tuple(replace(g, half_width=reach) for g, reach in zip(groups, reaches, strict=True))
    return replace(plan, groups=groups, kept=kept_nodes(zip(plan.weights, reaches, strict=True), N))


@steady
def estimated_cost(mechanisms: Mapping[DiscreteGaussian, int], tolerance: Number) -> float:
    """About how many ball operations and sieve visits a plan and its first evaluation take (10^6: about two seconds).

    Heuristic: takes the groups' far peaks for independent. It helps decide whether to start, and bounds nothing.
    """
    small, groups, _, _ = _read(mechanisms, tolerance)
    proxy = math.exp(min(log_rational(_variance_proxy(groups)), 600))
    size = -log_rational(small / 8)
    U, dL = math.sqrt(2 * proxy * size), math.sqrt(proxy / (2 * size))
    N = 2 * U + 2 + dL * max(0.0, math.log(2 * dL))
    angles = [min(math.pi, math.sqrt(2 * (size + math.log(U + 1)) / float(g.copies * g.sigma2))) for g in groups]
    central = min(a / (math.pi * min(g.weight, 10**300)) for a, g in zip(angles, groups, strict=True))
    kept = N * min(1.0, central + math.prod(a / math.pi for a in angles))
    terms = sum(math.sqrt(2 * float(g.sigma2) * (size + 45)) for g in groups)
    return kept / 2 * terms + min(N, groups[0].weight) / 2


def _read(
    mechanisms: Mapping[DiscreteGaussian, int], tolerance: Number
) -> tuple[Fraction, tuple[ReferenceGroup, ...], Fraction, Fraction]:
    """Delta, the groups by falling sigma2 (half width not yet known), rho and L."""
    small = positive(tolerance, "tolerance")
    if small >= 1:
        raise InvalidInputError(f"tolerance must be below 1. Found {tolerance}.")
    counts = {m: whole(n, "count", 0) for m, n in mechanisms.items()}
    present = sorted((m for m, n in counts.items() if n), key=lambda m: (-m.sigma2, m.sensitivity))
    if not present:
        raise InvalidInputError("A plan needs at least one mechanism. Found none.")
    losses = [m.sensitivity / m.sigma2 for m in present]
    common = math.lcm(*(w.denominator for w in losses))
    step = Fraction(math.gcd(*(int(w * common) for w in losses)), common)
    rho = sum((counts[m] * m.rho for m in present), Fraction(0))
    groups = (ReferenceGroup(m.sigma2, int(w / step), counts[m], 0) for m, w in zip(present, losses, strict=True))
    return small, tuple(groups), rho, rho / step


def _variance_proxy(groups: Sequence[ReferenceGroup]) -> Fraction:
    return sum((g.copies * g.weight**2 * g.sigma2 for g in groups), Fraction(0))
