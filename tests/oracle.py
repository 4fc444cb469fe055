"""Brute force: the distribution of the loss by convolution of integer polynomials in fixed point.

Independent of the package: it shares no code with it. Probabilities are integers in units of 2^-BITS; the pmf is mpmath's, the
convolution is exact integer multiplication (flint's fmpz_poly) rounded down to units after each product, and what the rounding of
inputs and products can do is bounded by ERROR: masses sum to at most 1, so units off add up, one or two for each product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import mpmath
from flint import fmpz, fmpz_poly

BITS = 460
UNIT = 1 << BITS
ERROR = Fraction(1, 1 << (BITS - 60))
"""Bound of the absolute error of every probability and of every sum of them."""

Key = tuple[Fraction, int]


@lru_cache(maxsize=4096)
def _pmf(sigma2: Fraction) -> tuple[int, tuple[int, ...]]:
    """Reach m and the fixed-point probabilities of -m..m; the mass beyond is below 2^-BITS."""
    reach = math.isqrt(math.ceil(2 * sigma2 * BITS * 0.6931472)) + 2
    with mpmath.workprec(BITS + 40):
        s2 = 2 * mpmath.mpf(sigma2.numerator) / sigma2.denominator
        half = [mpmath.exp(-mpmath.mpf(x * x) / s2) for x in range(reach + 1)]
        total = half[0] + 2 * mpmath.fsum(half[1:])
        side = [int(mpmath.nint(v / total * UNIT)) for v in half]
    return reach, tuple(side[:0:-1] + side)


@dataclass(frozen=True)
class Brute:
    """The distribution of S on the lattice step * Z, from -offset on, and the totals."""

    step: Fraction
    spread: Fraction
    offset: int
    masses: tuple[int, ...]
    tails: tuple[int, ...]

    def tail(self, t: int) -> Fraction:
        """P(S >= step * t)."""
        index = t + self.offset
        if index <= 0:
            return Fraction(1)
        return Fraction(self.tails[index], UNIT) if index < len(self.tails) else Fraction(0)

    def delta(self, epsilon: Fraction) -> Fraction:
        """sum over losses above epsilon of P (1 - exp(epsilon - loss)), by Horner's rule in fixed point."""
        y = epsilon - self.spread / 2
        t = math.floor(y / self.step) + 1
        with mpmath.workprec(BITS + 40):
            q = int(mpmath.nint(mpmath.exp(-_mpf(self.step)) * UNIT))
            first = int(mpmath.nint(mpmath.exp(_mpf(y - t * self.step)) * UNIT))
        weighted = 0
        for mass in reversed(self.masses[max(t + self.offset, 0) :]):
            weighted = mass + (weighted * q >> BITS)
        if t + self.offset < 0:  # the sum starts below the support
            with mpmath.workprec(BITS + 40):
                down = int(mpmath.nint(mpmath.exp(_mpf(y + self.offset * self.step)) * UNIT))
            return self.tail(t) - Fraction(weighted * down >> BITS, UNIT)
        return self.tail(t) - Fraction(weighted * first >> BITS, UNIT)

    def beta(self, alpha: Fraction) -> Fraction:
        """The polygon through (P(S >= h t), P(S >= R + h - h t)) at alpha."""
        low, high = -self.offset, len(self.masses) - self.offset
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.tail(middle) >= alpha else (low, middle)
        steps = int(self.spread / self.step)
        top, bottom = self.tail(low), self.tail(high)
        beta_top, beta_bottom = self.tail(steps + 1 - low), self.tail(steps + 1 - high)
        share = (alpha - bottom) / (top - bottom) if top > bottom else Fraction(0)
        return beta_bottom + share * (beta_top - beta_bottom)


def _mpf(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def lattice_size(mechanisms: Mapping[Key, int]) -> int:
    """How many lattice points the brute force would hold."""
    weights = {key: Fraction(key[1]) / key[0] for key in mechanisms}
    step = _gcd(list(weights.values()))
    return sum(
        n * int(weights[key] / step) * (2 * math.isqrt(math.ceil(640 * key[0])) + 6) for key, n in mechanisms.items()
    )


def _gcd(values: list[Fraction]) -> Fraction:
    return Fraction(math.gcd(*(v.numerator for v in values)), math.lcm(*(v.denominator for v in values)))


def _in_units(product: fmpz_poly, factors: int) -> list[fmpz]:
    """The coefficients in units of 2^-BITS, where there are so many such units too many in them."""
    return [c >> BITS * factors for c in product.coeffs()]


def brute(mechanisms: Mapping[Key, int]) -> Brute:
    """Convolve (sigma2, sensitivity) -> count."""
    weights = {key: Fraction(key[1]) / key[0] for key in mechanisms}
    step = _gcd(list(weights.values()))
    spread = sum((n * key[1] * weights[key] for key, n in mechanisms.items()), Fraction(0))
    product, offset = fmpz_poly([UNIT]), 0
    for key, n in mechanisms.items():
        stride = int(weights[key] / step)
        reach, side = _pmf(key[0])
        power = _in_units(fmpz_poly(list(side)) ** n, n - 1)
        spaced = [fmpz(0)] * (stride * (len(power) - 1) + 1)
        spaced[::stride] = power
        product = fmpz_poly(_in_units(product * fmpz_poly(spaced), 1))
        offset += n * stride * reach
    masses = tuple(map(int, product.coeffs()))
    tails, running = [], 0
    for mass in reversed(masses):
        running += mass
        tails.append(running)
    return Brute(step, spread, offset, masses, tuple(reversed(tails)))
