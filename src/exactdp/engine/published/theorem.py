"""Theorem "method", the four steps together: tails as sums over the kept nodes, with every error; delta and vertices.

The tolerance Delta is absolute, so small deltas need a Delta below delta * exp(-epsilon). Every error here is bounded by what
docs/theory/reference.md proves, in balls throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import ball, precision
from exactdp.engine.published.plan import ReferencePlan
from exactdp.engine.published.step1_tail_bound import tail_bound
from exactdp.engine.published.step2_fourier import characteristic
from exactdp.engine.published.step3_trapezoid import weight
from exactdp.numbers import Number, rational


@steady
@dataclass(frozen=True)
class TailEstimate:
    """One tail probability: the bare sum over the kept nodes, the bounds of its errors, and the enclosure they prove.

    `error` bounds the distance from any point of `quadrature` to the exact value, rounding included; the paper promises
    that it is at most the tolerance, and `within_tolerance` says whether that is so.
    """

    quadrature: arb
    truncation: arb
    aliasing: arb
    discarded: arb
    enclosure: arb
    error: arb
    within_tolerance: bool


@steady
def quadrature(plan: ReferencePlan, threshold: Number) -> TailEstimate:
    """P(sum a_i X_i > threshold) with its account of errors; a_i is a mechanism's loss per unit of noise over rho."""
    return _upper_tail(plan, math.floor(rational(threshold, "threshold") * plan.L) + 1)


@steady
def tail(plan: ReferencePlan, threshold: Number) -> arb:
    """An enclosure of P(sum a_i X_i > threshold), every error included."""
    return quadrature(plan, threshold).enclosure


@steady
def delta(plan: ReferencePlan, epsilon: Number) -> arb:
    """An enclosure of delta(epsilon), by the paper's difference of two tails (Proposition "eps_delta_curve").

    P(sum a_i X_i > epsilon / rho - 1) - e^epsilon P(sum a_i X_i > epsilon / rho + 1): the error is at most
    tolerance * (1 + e^epsilon), an absolute figure.
    """
    eps = rational(epsilon, "epsilon")
    near, far = tail(plan, eps / plan.rho - 1), tail(plan, eps / plan.rho + 1)
    with precision(plan.bits + max(0, math.ceil(eps * 3 / 2))):
        return near - ball(eps).exp() * far


@steady
def vertex(plan: ReferencePlan, threshold: Number) -> tuple[arb, arb]:
    """Enclosures of (alpha, beta) for the likelihood-ratio test that rejects above rho * threshold (Proposition "f_dp_curve", the
    paper's c = 0).

    alpha = P(sum a_i X_i > threshold + 1), beta = P(sum a_i X_i <= threshold - 1), the latter by symmetry.
    """
    zeta = rational(threshold, "threshold")
    beta = _upper_tail(plan, math.ceil((1 - zeta) * plan.L))
    return tail(plan, zeta + 1), beta.enclosure


@lru_cache(maxsize=8)
def _characteristic(plan: ReferencePlan) -> tuple[tuple[int, arb], ...]:
    """(k, char(zeta_k)) for the kept k <= N/2."""
    half = [k % plan.N for k in plan.kept if 2 * k <= plan.N or k == plan.N]
    return characteristic(((g.sigma2, g.weight, g.copies) for g in plan.groups), half, plan.N, plan.bits)


def _upper_tail(plan: ReferencePlan, first: int) -> TailEstimate:
    """P(X >= first) for X = sum a_i L X_i: the theorem's sum, with the errors that docs/theory/reference.md numbers."""
    U, N, proxy = plan.U, plan.N, plan.variance_proxy
    A = min(max(first, -U), U + 1)  # outside [-U, U + 1] the printed sum is not the tail
    nodes = _characteristic(plan) if A <= U else ()
    with precision(plan.bits):
        total = arb(0)
        for k, value in nodes:
            total += (1 if k == 0 or 2 * k == N else 2) * weight(k, A, U, N) * value
        bare = total / N
        cut = tail_bound(U + 1, proxy) if first < A else 0
        truncation = tail_bound(max(first, U + 1), proxy) + cut  # statement 2
        aliasing = tail_bound(N - U, proxy) + tail_bound(N + A, proxy) if A <= U else arb(0)  # statement 3
        discarded = ball(Fraction((U - A + 1) * (N - len(plan.kept)), N) * plan.tolerance / (8 * U))  # statement 4
        error = truncation.max(aliasing) + discarded + 2 * bare.rad()  # statement 5
        enclosure = (bare - aliasing - discarded).union(bare + truncation + discarded)
        within = bool(error <= ball(plan.tolerance))
        return TailEstimate(bare, truncation, aliasing, discarded, enclosure, error, within)
