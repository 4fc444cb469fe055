"""Step 2, the Fourier integral: P(A <= X <= U) is the integral of F(zeta) = (1/2pi) [sum of cos(zeta t)] E exp(i zeta X).

This file has the second factor, the product of the characteristic functions f_i(a_i L zeta), at the nodes zeta = 2 pi k / N.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from flint import arb, fmpq

from exactdp.balls import ball, precision
from exactdp.errors import LatticeTooFineError

MOST_VISITS = 5_000_000
"""Terms of a direct sum, or visits of Algorithm 1, beyond which the engine is the better choice."""


def characteristic(
    laws: Iterable[tuple[Fraction, int, int]], at: list[int], nodes: int, bits: int
) -> tuple[tuple[int, arb], ...]:
    """(k, E exp(i zeta_k X)) of Proposition "fourier" for the k in `at`: the product of f(a_i L zeta_k) ** copies over the laws
    (sigma2, a_i L, copies)."""
    values = [arb(1)] * len(at)
    with precision(bits):
        for sigma2, weight, copies in laws:
            series = Series(sigma2, bits)
            values = [v * series(weight * k, nodes) ** copies for k, v in zip(at, values, strict=True)]
    return tuple(zip(at, values, strict=True))


class Series:
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
        cosines = [arb(1), cos_pi(2 * numerator, nodes)]
        for x in range(2, self.reach + 1):
            product = cosines[x // 2] * cosines[x - x // 2]
            cosines.append(product + product - cosines[x % 2])
        total = self.remainder
        for term, cosine in zip(self.terms, cosines, strict=True):
            total += term * cosine
        return total / self.mass


def cos_pi(numerator: int, nodes: int) -> arb:
    """cos(pi numerator / N), reduced in integers."""
    return arb.cos_pi_fmpq(fmpq(numerator % (2 * nodes), nodes))


def sin_pi(numerator: int, nodes: int) -> arb:
    """sin(pi numerator / N), reduced in integers."""
    return arb.sin_pi_fmpq(fmpq(numerator % (2 * nodes), nodes))
