"""P(X_1 + ... + X_m = n) for discrete Gaussians against its Edgeworth approximation: exact local errors, in balls.

The probabilities come from the engine's identity with tilt 0 and a payoff of one lattice point,

    P(S = n) = (1/N) sum_{k mod N} f(2 pi k / N)^m cos(2 pi k n / N)  -  (aliases n + jN, j != 0),

f the characteristic function of one noise, by Arb's theta function. Aliases are below
2 exp(-(N - |n|)^2 / (2 m sigma2)); the nodes left out are below the last one kept, since f falls on (0, pi).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from exactdp.arithmetic_state import steady
from exactdp.balls import around_zero, ball, precision, raised
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.mechanisms.theta import cf_ball
from exactdp.numbers import Number, shown, whole
from exactdp.theory.moments import cumulant_ball, read_sigma2, standardized_cumulant_ball

LARGEST_FOLD = 1_000_000
_LARGEST_SIGMA2 = 300
_BITS, _DOUBLINGS = 96, 7
_MOST_WORK = 50_000_000


@steady
@dataclass(frozen=True)
class LocalErrors:
    """The largest error over all lattice points, of the Edgeworth approximation and of the normal density alone, as balls."""

    sigma2: Fraction
    m: int
    edgeworth: arb
    edgeworth_at: int
    normal: arb
    normal_at: int


def edgeworth_ball(sigma2: Fraction, m: int, points: list[int]) -> tuple[list[arb], list[arb]]:
    """The approximations of P(S = n) at integer points n, with the lambda_4 term and without it, at the current precision.

    With y = n / B_m, B_m = sqrt(m kappa_2): e^{-y^2/2} / (sqrt(2 pi) B_m) times 1 + lambda_4 (3 - 6 y^2 + y^4) / (24 m), or 1.
    """
    variance = m * cumulant_ball(sigma2, 2)
    front = 1 / (2 * arb.pi() * variance).sqrt()
    term = standardized_cumulant_ball(sigma2, 4) / (24 * m)
    plain, better = [], []
    for n in points:
        square = n * n / variance
        plain.append(front * (-square / 2).exp())
        better.append(plain[-1] * (1 + term * (3 - 6 * square + square * square)))
    return better, plain


def masses_ball(sigma2: Fraction, m: int, last: int) -> list[arb]:
    """P(X_1 + ... + X_m = n) for n = 0 ... last, each within about 2^-precision of its exact value."""
    bits = int(ctx.prec)
    spread = m * float(sigma2)
    far = math.ceil(math.sqrt(2 * spread * bits * math.log(2))) + 1
    nodes = last + far
    powers, dropped = _powers(sigma2, m, nodes, bits)
    if len(powers) * (last + 1) > _MOST_WORK:
        raise AccuracyError(
            f"{len(powers) * (last + 1):,} terms would have to be summed, more than {_MOST_WORK:,}. Use a smaller m or sigma2."
        )
    turn = 2 * arb.pi() / nodes
    cosines = [(turn * j).cos() for j in range(nodes // 2 + 1)]
    alias = 2 * (-(ball(Fraction(far * far)) / (2 * m * ball(sigma2)))).exp()
    slack = around_zero(alias + dropped)
    result = []
    for n in range(last + 1):
        total = powers[0] / 2
        for k in range(1, len(powers)):
            j = k * n % nodes
            total += powers[k] * cosines[min(j, nodes - j)]
        result.append(2 * total / nodes + slack)
    return result


def _powers(sigma2: Fraction, m: int, nodes: int, bits: int) -> tuple[list[arb], arb]:
    """f(2 pi k / N)^m for the nodes that matter in 0 <= k <= N/2 (N/2 at half its weight), and a bound of the rest over N."""
    turn = 2 * arb.pi() / nodes
    powers: list[arb] = []
    tiny = arb(2) ** -(bits + nodes.bit_length())
    for k in range(nodes // 2 + 1):
        power = cf_ball(turn * k, sigma2) ** m
        if power < tiny:
            return powers, tiny
        powers.append(power / 2 if 2 * k == nodes else power)
    return powers, arb(0)


@steady
def local_errors(sigma2: Number, m: int, digits: int = 6) -> LocalErrors:
    """sup over n of |P(S = n) - approximation| with at least `digits` correct digits, both approximations.

    Guarantee: the suprema are over all integers; beyond the last point looked at both terms are below what was found.
    """
    s, fold = read_sigma2(sigma2), whole(m, "m", 1, LARGEST_FOLD)
    wanted = whole(digits, "digits", 1, 100) * math.log2(10)
    if s > _LARGEST_SIGMA2:
        raise InvalidInputError(
            f"sigma2 must be at most {_LARGEST_SIGMA2} (the errors beyond are below 1e-2500). Found {shown(sigma2)}."
        )

    def attempt(bits: int) -> tuple[LocalErrors | None, int]:
        with precision(bits):
            last = math.ceil(math.sqrt(2 * fold * float(s) * bits * math.log(2))) + 4
            exact = masses_ball(s, fold, last)
            better, plain = edgeworth_ball(s, fold, list(range(last + 1)))
            found = [_largest([p - a for p, a in zip(exact, which, strict=True)]) for which in (better, plain)]
            # beyond `last`: P <= e^{-n^2/(2 m s)} <= 2^-bits, and the approximations fall from there on (y^2 > 100)
            beyond = arb(2) ** -bits + 2 * abs(better[-1]) + 2 * plain[-1]
            proved = all(value > beyond and int(value.rel_accuracy_bits()) > wanted for value, _ in found)
        return LocalErrors(s, fold, *found[0], *found[1]) if proved else None, bits

    failure = f"{digits} digits were not reached at {_BITS << _DOUBLINGS} bits. Use a smaller sigma2."
    return raised(attempt, digits, _BITS, _DOUBLINGS + 1, failure)


def _largest(values: list[arb]) -> tuple[arb, int]:
    """An enclosure of the largest absolute value, and where it is."""
    sizes = [abs(v) for v in values]
    at = max(range(len(sizes)), key=lambda i: sizes[i].mid())
    top = sizes[at]
    for size in sizes:
        top = top.max(size)
    return top, at
