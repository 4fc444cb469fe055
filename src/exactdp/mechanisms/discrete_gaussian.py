"""The discrete Gaussian mechanism: adds X with P(X = x) proportional to exp(-x^2 / (2 sigma2)) to an integer count."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from exactdp.errors import InvalidInputError
from exactdp.mechanisms.theta import (
    POISSON_FROM,
    TWO_PI_SQUARED,
    direct_reach,
    log_cf_correction,
    log_cf_direct,
    log_theta_ratio,
    poisson_terms,
)
from exactdp.numbers import Number, positive, shown, whole

if TYPE_CHECKING:
    from exactdp.composition import Composition

LARGEST_SENSITIVITY = 1 << 28
SMALLEST_SIGMA2 = Fraction(1, 1000)
LARGEST_SIGMA2 = Fraction(10**18)
LARGEST_WEIGHT = 1000
_TAIL_BLOCK = 1 << 16


@dataclass(frozen=True, init=False)
class DiscreteGaussian:
    """Integer noise N_Z(0, sigma2) on a count of integer sensitivity.

    `sigma2` is the noise parameter (close to the variance when it is above 1): an int, Fraction, Decimal, a text such as
    "11/10000", or a float, read as the decimal it prints as.

    >>> DiscreteGaussian("10/3").variance
    3.3333333333333335
    >>> 3 * DiscreteGaussian(2) + DiscreteGaussian(5, sensitivity=2)
    Composition(3 x DiscreteGaussian(2) + 1 x DiscreteGaussian(5, sensitivity=2))
    """

    sigma2: Fraction
    sensitivity: int

    def __init__(self, sigma2: Number, sensitivity: int = 1) -> None:
        object.__setattr__(self, "sigma2", positive(sigma2, "sigma2"))
        object.__setattr__(self, "sensitivity", whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY))
        if not SMALLEST_SIGMA2 <= self.sigma2 <= LARGEST_SIGMA2:
            raise InvalidInputError(
                f"sigma2 must be between {float(SMALLEST_SIGMA2)} (below it the noise is 0 but for one draw in 10^217) "
                f"and {float(LARGEST_SIGMA2):.0e}. Found {shown(sigma2)}."
            )
        if self.sensitivity > LARGEST_WEIGHT * self.sigma2:
            raise InvalidInputError(
                f"sensitivity / sigma2 must be at most {LARGEST_WEIGHT} (such noise protects nothing). "
                f"Found {self.sensitivity} / {shown(self.sigma2)}."
            )

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter sensitivity^2 / (2 sigma2)."""
        return self.sensitivity**2 / (2 * self.sigma2)

    def log_pmf(self, x: int) -> float:
        """log P(X = x)."""
        return -float(Fraction(x) ** 2 / (2 * self.sigma2)) - self._log_normaliser()

    def pmf(self, x: int) -> float:
        """P(X = x)."""
        return math.exp(self.log_pmf(x))

    def tail(self, x: int) -> float:
        """P(X >= x), accurate in relative terms however small."""
        if x <= 0:
            return 1.0 - self.tail(1 - x)
        s = float(self.sigma2)
        # exp(-(d^2 + 2 d x) / (2 s)) for d = 0, 1, ...: the ratios to the first term
        total, start = 0.0, 0
        while True:
            d = np.arange(start, start + _TAIL_BLOCK, dtype=np.float64)
            total += math.fsum(np.exp(-d * (d + 2.0 * x) / (2 * s)))
            if d[-1] * (d[-1] + 2.0 * x) / (2 * s) > 50:
                return self.pmf(x) * total
            start += _TAIL_BLOCK

    def cf(self, omega: float) -> float:
        """The characteristic function E exp(i omega X), real because X is symmetric; period 2 pi."""
        return math.exp(self.log_moment(1j * omega).real)  # positive: theta has no real zeros (Jacobi's triple product)

    def log_moment(self, z: complex) -> complex:
        """log E exp(z X) at a complex argument (imaginary part up to a multiple of 2 pi).

        With u = Re z and v = Im z reduced to (-pi, pi]: log M(u) plus the log characteristic function at v of the
        distribution tilted by u, whose centre is sigma2 * u.
        """
        z = complex(z)
        s = float(self.sigma2)
        v = z.imag - 2 * math.pi * round(z.imag / (2 * math.pi))
        centre = s * z.real
        whole_centre = math.floor(centre + 0.5)
        rest = centre - whole_centre
        angle = np.array([v])
        if s >= POISSON_FROM:
            tilted = complex(log_cf_correction(s, rest, angle)[0][0]) + complex(-s * v * v / 2, rest * v)
        else:
            tilted = complex(log_cf_direct(s, rest, angle)[0][0])
        real_part = s * z.real * z.real / 2 + log_theta_ratio(centre, s)
        result = real_part + tilted + 1j * whole_centre * v
        return complex(result.real, cmath.phase(cmath.exp(1j * result.imag)))

    @property
    def variance(self) -> float:
        """The variance of X: below sigma2, by very little once sigma2 is above 1."""
        return self.cumulant(2)

    def cumulant(self, order: int) -> float:
        """The cumulant kappa_order of X (0 for odd orders), by the Lambert series of log theta.

        From sigma2 = 1/4 on: sigma2 [order = 2] + 2 (2 pi sigma2)^r (-1)^{r/2} sum_n (-1)^{n+1} n^{r-1} p^n / (1 - p^{2n}) with
        p = exp(-2 pi^2 sigma2); below: 2 sum_n (-1)^{n+1} n^{r-1} q^n / (1 - q^{2n}) with q = exp(-1 / (2 sigma2)).
        """
        r = whole(order, "order", 1)
        if r % 2:
            return 0.0
        s = float(self.sigma2)
        if s < POISSON_FROM:
            return 2 * _lambert(r, 1 / (2 * s))
        sign = -1.0 if (r // 2) % 2 else 1.0
        return (s if r == 2 else 0.0) + 2 * (2 * math.pi * s) ** r * sign * _lambert(r, TWO_PI_SQUARED * s)

    def log_mgf_bound(self, t: float) -> float:
        """sigma2 t^2 / 2, an upper bound of log E exp(t X) for every real t (X is sub-Gaussian with its own parameter)."""
        return float(self.sigma2) * t * t / 2

    def log_tail_bound(self, x: int) -> float:
        """-x^2 / (2 sigma2), an upper bound of log P(X >= x) for x >= 0 (Chernoff)."""
        return -float(Fraction(x) ** 2 / (2 * self.sigma2)) if x > 0 else 0.0

    def _log_normaliser(self) -> float:
        """log of the sum over x of exp(-x^2 / (2 sigma2))."""
        s = float(self.sigma2)
        if s < POISSON_FROM:
            return math.log(math.fsum(math.exp(-d * d / (2 * s)) for d in range(-direct_reach(s), direct_reach(s) + 1)))
        terms = math.fsum(2 * math.exp(-TWO_PI_SQUARED * s * n * n) for n in range(1, poisson_terms(s, 0.0) + 1))
        return math.log(2 * math.pi * s) / 2 + math.log1p(terms)

    def __add__(self, other: DiscreteGaussian | Composition) -> Composition:
        from exactdp.composition import Composition

        return Composition([self]) + other

    def __radd__(self, other: object) -> Composition:  # so that sum() works
        from exactdp.composition import Composition

        return Composition([self]) if other == 0 else NotImplemented

    def __mul__(self, count: int) -> Composition:
        from exactdp.composition import Composition

        return Composition({self: count})

    __rmul__ = __mul__

    def __str__(self) -> str:
        extra = "" if self.sensitivity == 1 else f", sensitivity={self.sensitivity}"
        return f"DiscreteGaussian({self.sigma2}{extra})"

    __repr__ = __str__


def _lambert(r: int, rate: float) -> float:
    """sum over n >= 1 of (-1)^{n+1} n^{r-1} exp(-rate n) / (1 - exp(-2 rate n))."""
    terms, n = [], 1
    while True:
        term = n ** (r - 1) * math.exp(-rate * n) / -math.expm1(-2 * rate * n)
        terms.append(term if n % 2 else -term)
        if n * rate > r + 1 and term <= 1e-20 * abs(terms[0]):
            return math.fsum(terms)
        n += 1
