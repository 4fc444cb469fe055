"""The published method, kept as a second route that shares no code with the engine.

Steps 1 to 4 of the paper, in its own letters: cut the sum at U, write the tail as a Fourier integral, replace the integral by
N nodes, keep the nodes that survive Algorithm 1. The tolerance Delta is absolute, so small deltas need a Delta below
delta * exp(-epsilon). Every error here is bounded by what docs/theory/reference.md proves, in balls throughout.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from flint import arb, fmpq

from exactdp.balls import ball, precision
from exactdp.errors import AccuracyError, InvalidInputError, LatticeTooFineError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, log_rational, positive, rational, whole

MOST_VISITS = 5_000_000
_GUARD_BITS = 64
_MOST_BITS = 1 << 14


@dataclass(frozen=True)
class ReferenceGroup:
    """Equal mechanisms: noise parameter, integer weight a_i L, how many copies, and Algorithm 1's half width.

    Node k is near a peak of the group when a_i L k is within `half_width` of a multiple of N.
    """

    sigma2: Fraction
    weight: int
    copies: int
    half_width: int


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
        """The working precision: enough for rounding to stay far below the tolerance."""
        return _bits(self.tolerance, self.N, self.groups)


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


def make_reference_plan(mechanisms: Mapping[DiscreteGaussian, int], tolerance: Number) -> ReferencePlan:
    """Propositions choice_U and choice_N and Algorithm 1 for a mapping from mechanism to count.

    Guarantee: U and N are rounded with certainty, and no node is discarded unless the proof allows it.

    >>> plan = make_reference_plan({DiscreteGaussian(4): 3, DiscreteGaussian(6): 1}, "1e-20")
    >>> plan.weights, plan.U, plan.N, len(plan.kept)
    ((2, 3), 113, 229, 217)
    """
    small, groups, rho, L = _read(mechanisms, tolerance)
    U, N, dL = _choose(_variance_proxy(groups), small)
    bits = _bits(small, N, groups)
    with precision(bits):
        threshold = ball(small / (8 * U))
        groups = [replace(g, half_width=_half_width(g, N, threshold, bits)) for g in groups]
    half = _sieve(groups, N)
    kept = sorted({k or N for k in half} | {N - k for k in half})
    return ReferencePlan(small, tuple(groups), rho, L, U, N, dL / float(L), tuple(kept))


def quadrature(plan: ReferencePlan, threshold: Number) -> TailEstimate:
    """P(sum a_i X_i > threshold) with its account of errors; a_i is a mechanism's loss per unit of noise over rho."""
    return _upper_tail(plan, math.floor(rational(threshold, "threshold") * plan.L) + 1)


def tail(plan: ReferencePlan, threshold: Number) -> arb:
    """An enclosure of P(sum a_i X_i > threshold), every error included."""
    return quadrature(plan, threshold).enclosure


def delta(plan: ReferencePlan, epsilon: Number) -> arb:
    """An enclosure of delta(epsilon), by the paper's difference of two tails.

    P(sum a_i X_i > epsilon / rho - 1) - e^epsilon P(sum a_i X_i > epsilon / rho + 1): the error is at most
    tolerance * (1 + e^epsilon), an absolute figure.
    """
    eps = rational(epsilon, "epsilon")
    near, far = tail(plan, eps / plan.rho - 1), tail(plan, eps / plan.rho + 1)
    with precision(plan.bits + max(0, math.ceil(eps * 3 / 2))):
        return near - ball(eps).exp() * far


def vertex(plan: ReferencePlan, threshold: Number) -> tuple[arb, arb]:
    """Enclosures of (alpha, beta) for the likelihood-ratio test that rejects above rho * threshold (the paper's c = 0).

    alpha = P(sum a_i X_i > threshold + 1), beta = P(sum a_i X_i <= threshold - 1), the latter by symmetry.
    """
    zeta = rational(threshold, "threshold")
    beta = _upper_tail(plan, math.ceil((1 - zeta) * plan.L))
    return tail(plan, zeta + 1), beta.enclosure


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
) -> tuple[Fraction, list[ReferenceGroup], Fraction, Fraction]:
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
    groups = [ReferenceGroup(m.sigma2, int(w / step), counts[m], 0) for m, w in zip(present, losses, strict=True)]
    return small, groups, rho, rho / step


def _choose(proxy: Fraction, small: Fraction) -> tuple[int, int, float]:
    """U, N and dL for V = L^2 sum a_i^2 sigma_i^2: U > sqrt(-2 V log(Delta/8)), N >= 2 (U + 1) + dL log(2 dL)."""
    bits = 128
    while bits <= _MOST_BITS:
        with precision(bits):
            logarithm = -ball(small / 8).log()
            U = (2 * ball(proxy) * logarithm).sqrt().floor().unique_fmpz()
            dL = (ball(proxy) / (2 * logarithm)).sqrt()
            extra = (dL * (2 * dL).log()).ceil().unique_fmpz()
            if U is not None and extra is not None:
                cut = int(U) + 1
                return cut, 2 * (cut + 1) + int(extra), float(dL)
        bits *= 2
    raise AccuracyError(f"U and N are undecided at {_MOST_BITS} bits. Change the tolerance slightly.")


def _variance_proxy(groups: Sequence[ReferenceGroup]) -> Fraction:
    return sum((g.copies * g.weight**2 * g.sigma2 for g in groups), Fraction(0))


def _bits(small: Fraction, nodes: int, groups: Sequence[ReferenceGroup]) -> int:
    """Working precision for absolute errors far below Delta in a sum of up to N products of characteristic functions."""
    size = small.denominator.bit_length() - small.numerator.bit_length() + 1
    return size + 2 * nodes.bit_length() + sum(g.copies for g in groups).bit_length() + _GUARD_BITS


class _Series:
    """The characteristic function of N_Z(0, sigma2) by its direct sum over x, at the current precision.

    The terms beyond `reach` add up to at most e_{reach+1} / (1 - ratio): from there on they fall at least by that ratio.
    """

    def __init__(self, sigma2: Fraction, bits: int) -> None:
        self.reach = math.isqrt(math.ceil(2 * sigma2 * bits * Fraction(7, 10))) + 1  # 7/10 > log 2
        if self.reach > MOST_VISITS:
            raise LatticeTooFineError(f"The direct sum for sigma2 = {sigma2} needs {self.reach} terms. Use the engine.")
        double = 2 * sigma2
        self.terms = [arb(1)] + [2 * (-ball(x * x / double)).exp() for x in range(1, self.reach + 1)]
        ratio = (-ball((2 * self.reach + 3) / double)).exp()
        self.remainder = arb(0, 1) * 2 * (-ball((self.reach + 1) ** 2 / double)).exp() / (1 - ratio)
        self.mass = sum(self.terms, arb(0)) + self.remainder

    def __call__(self, numerator: int, nodes: int) -> arb:
        """f(2 pi numerator / N). cos(x v) comes from halves of x, so that balls widen like x^2 and not like 3^x."""
        cosines = [arb(1), _cos(2 * numerator, nodes)]
        for x in range(2, self.reach + 1):
            product = cosines[x // 2] * cosines[x - x // 2]
            cosines.append(product + product - cosines[x % 2])
        total = self.remainder
        for term, cosine in zip(self.terms, cosines, strict=True):
            total += term * cosine
        return total / self.mass


def _cos(numerator: int, nodes: int) -> arb:
    """cos(pi numerator / N), reduced in integers."""
    return arb.cos_pi_fmpq(fmpq(numerator % (2 * nodes), nodes))


def _sin(numerator: int, nodes: int) -> arb:
    """sin(pi numerator / N), reduced in integers."""
    return arb.sin_pi_fmpq(fmpq(numerator % (2 * nodes), nodes))


def _half_width(group: ReferenceGroup, nodes: int, threshold: arb, bits: int) -> int:
    """The largest m <= N/2 for which f(2 pi m / N)^r is not certainly below the threshold.

    f falls on (0, pi), so bisection over the integers is the paper's search for zeta^(i), and an undecided node is kept.
    """
    series = _Series(group.sigma2, bits)
    low, high = 0, nodes // 2 + 1
    while high - low > 1:
        middle = (low + high) // 2
        if series(middle, nodes) ** group.copies < threshold:
            high = middle
        else:
            low = middle
    return low


def _sieve(groups: Sequence[ReferenceGroup], nodes: int) -> list[int]:
    """The nodes k in 0..N/2 within a half width of a peak of every group (N - k is kept with k: every f is even)."""
    windows = [(0, nodes // 2)]
    visits = 0
    for g in groups:
        if 2 * g.half_width + 1 >= nodes:
            continue  # every node is within N/2 of a multiple of N
        narrowed: list[tuple[int, int]] = []
        for low, high in windows:
            visits += min(g.weight * (high - low) // nodes, high - low) + 1
            if visits > MOST_VISITS:
                raise LatticeTooFineError(
                    f"Algorithm 1 needs over {MOST_VISITS} visits at N = {nodes}. Use the engine."
                )
            narrowed += _narrow(low, high, g, nodes)
        windows = narrowed
    return [k for low, high in windows for k in range(low, high + 1)]


def _narrow(low: int, high: int, group: ReferenceGroup, nodes: int) -> list[tuple[int, int]]:
    """The parts of the window low..high near a peak: node by node, or peak by peak where there are fewer peaks."""
    reach, weight = group.half_width, group.weight
    first, last = -((reach - weight * low) // nodes), (weight * high + reach) // nodes
    if high - low < last - first:
        return [(k, k) for k in range(low, high + 1) if (weight * k + reach) % nodes <= 2 * reach]
    ends = ((-((reach - j * nodes) // weight), (j * nodes + reach) // weight) for j in range(first, last + 1))
    clipped = ((max(low, a), min(high, b)) for a, b in ends)
    return [(a, b) for a, b in clipped if a <= b]


@lru_cache(maxsize=8)
def _characteristic(plan: ReferencePlan) -> tuple[tuple[int, arb], ...]:
    """(k, char(zeta_k)) for the kept k <= N/2: the product over the groups of f(a_i L zeta_k) ** copies."""
    half = [k % plan.N for k in plan.kept if 2 * k <= plan.N or k == plan.N]
    values = [arb(1)] * len(half)
    with precision(plan.bits):
        for g in plan.groups:
            series = _Series(g.sigma2, plan.bits)
            values = [v * series(g.weight * k, plan.N) ** g.copies for k, v in zip(half, values, strict=True)]
    return tuple(zip(half, values, strict=True))


def _weight(k: int, first: int, last: int, nodes: int) -> arb:
    """The sum of cos(zeta t) over first <= t <= last at zeta = 2 pi k / N, by the theorem's closed form."""
    if k == 0:
        return arb(last - first + 1)
    a, b = 2 * first * k, 2 * last * k
    cotangent = _cos(k, nodes) / _sin(k, nodes)
    return (_cos(a, nodes) + _cos(b, nodes) + cotangent * (_sin(b, nodes) - _sin(a, nodes))) / 2


def _upper_tail(plan: ReferencePlan, first: int) -> TailEstimate:
    """P(X >= first) for X = sum a_i L X_i: the theorem's sum, with the errors that docs/theory/reference.md numbers."""
    U, N = plan.U, plan.N
    A = min(max(first, -U), U + 1)  # outside [-U, U + 1] the printed sum is not the tail
    characteristic = _characteristic(plan)
    with precision(plan.bits):
        proxy = 2 * ball(plan.variance_proxy)

        def beyond(x: int) -> arb:  # statement 1: P(X >= x) for x >= 0
            return (-ball(x * x) / proxy).exp()

        total = arb(0)
        for k, value in characteristic if A <= U else ():
            total += (1 if k == 0 or 2 * k == N else 2) * _weight(k, A, U, N) * value
        bare = total / N
        truncation = beyond(max(first, U + 1)) + (beyond(U + 1) if first < A else 0)  # statement 2
        aliasing = beyond(N - U) + beyond(N + A) if A <= U else arb(0)  # statement 3
        discarded = ball(Fraction((U - A + 1) * (N - len(plan.kept)), N) * plan.tolerance / (8 * U))  # statement 4
        error = truncation.max(aliasing) + discarded + 2 * bare.rad()  # statement 5
        enclosure = (bare - aliasing - discarded).union(bare + truncation + discarded)
        within = bool(error <= ball(plan.tolerance))
        return TailEstimate(bare, truncation, aliasing, discarded, enclosure, error, within)
