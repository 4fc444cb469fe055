"""How far noise moves a count: variance, mean absolute error, 95% margin and the largest error that there is, as bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch

from flint import arb

from exactdp.balls import BITS, ball, fraction, precision
from exactdp.errors import InvalidInputError
from exactdp.guarantees.best_noise.lower_bound import Cost
from exactdp.guarantees.best_noise.noise_table import NoiseTable
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.integer_noise import IntegerNoise
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.skellam import Skellam
from exactdp.numbers import exact_repr, root_up, shown

OUTSIDE = Fraction(1, 20)
_CLEARLY = 1 - 1e-9  # tails are doubles, good to a few units
_QUANTILE = Fraction(1959964, 10**6)  # a little above the normal quantile 1.95996398...
_FINE = 10**4  # from this sigma2 on sums over all outcomes are replaced by integrals with a bound of the difference
_VERY_FINE = 10**8
_FAR = 14  # standard deviations: the terms beyond are below e^-98 of the largest


@dataclass(frozen=True)
class NoiseError:
    """Bounds of variance and mean absolute error; a margin that 95% of errors do not exceed; the largest error."""

    __repr__ = exact_repr

    variance: tuple[Fraction, Fraction]
    absolute: tuple[Fraction, Fraction]
    margin: Fraction
    largest: Fraction | float

    def __add__(self, other: NoiseError) -> NoiseError:
        """Of two errors: the sums, for means, and the larger ones, for what is not exceeded."""
        variance, absolute = (
            (a[0] + b[0], a[1] + b[1]) for a, b in ((self.variance, other.variance), (self.absolute, other.absolute))
        )
        return NoiseError(variance, absolute, max(self.margin, other.margin), max(self.largest, other.largest))

    def times(self, factor: Fraction) -> NoiseError:
        """The means multiplied."""
        variance, absolute = ((factor * a, factor * b) for a, b in (self.variance, self.absolute))
        return NoiseError(variance, absolute, self.margin, self.largest)


@singledispatch
def noise_error(noise: Mechanism) -> NoiseError:
    """The error of one release."""
    raise InvalidInputError(f"The error of noise that is added to a number was asked for. Found {shown(noise)}.")


@noise_error.register
def _gaussian(noise: Gaussian) -> NoiseError:
    with precision(BITS):
        deviation = ball(noise.sigma2).sqrt()
        absolute = _ends(deviation * (2 / arb.pi()).sqrt())
        margin = fraction((deviation * ball(_QUANTILE)).upper())
    return NoiseError((noise.sigma2, noise.sigma2), absolute, margin, math.inf)


@noise_error.register
def _laplace(noise: Laplace) -> NoiseError:
    """Variance 2 scale^2, mean absolute value scale, and P(|X| > scale log 20) = 1/20."""
    with precision(BITS):
        margin = fraction((ball(noise.scale) * ball(1 / OUTSIDE).log()).upper())
    variance = 2 * noise.scale**2
    return NoiseError((variance, variance), (noise.scale, noise.scale), margin, math.inf)


@noise_error.register
def _discrete_laplace(noise: DiscreteLaplace) -> NoiseError:
    """Variance 1 / (2 sinh(1 / (2 scale))^2), mean absolute value 1 / sinh(1 / scale)."""
    with precision(BITS):
        rate = ball(1 / noise.scale)
        variance = _ends(1 / (2 * (rate / 2).sinh() ** 2))
        absolute = _ends(1 / rate.sinh())
    return NoiseError(variance, absolute, Fraction(_margin(noise)), math.inf)


@noise_error.register
def _discrete_gaussian(noise: DiscreteGaussian) -> NoiseError:
    with precision(BITS):
        means = _fine_gaussian(noise.sigma2) if noise.sigma2 > _FINE else _summed_gaussian(noise.sigma2)
        (low, high), absolute = (_ends(mean) for mean in means)
    return NoiseError((low, min(high, noise.sigma2)), absolute, Fraction(_margin(noise)), math.inf)


@noise_error.register
def _skellam(noise: Skellam) -> NoiseError:
    """Variance V, mean absolute value V e^-V (I_0(V) + I_1(V))."""
    with precision(BITS):
        v = ball(noise.variance)
        absolute = _ends(v * (-v).exp() * (v.bessel_i(arb(0)) + v.bessel_i(arb(1))))
    return NoiseError((noise.variance, noise.variance), absolute, Fraction(_margin(noise)), math.inf)


@noise_error.register
def _integer_noise(noise: IntegerNoise) -> NoiseError:
    """Of the count less the mean of the noise; all of it exact."""
    away = sorted((abs(noise.first + i - noise.mean), p) for i, p in enumerate(noise.pmf))
    absolute, inside, margin = Fraction(0), Fraction(0), away[-1][0]
    for size, p in away:
        absolute += size * p
        inside += p
        margin = min(margin, size) if inside >= 1 - OUTSIDE else margin
    return NoiseError((noise.variance, noise.variance), (absolute, absolute), margin, away[-1][0])


def table_error(table: NoiseTable) -> NoiseError:
    """The error of a table, all of it exact."""
    variance, absolute = table.mean(Cost.VARIANCE), table.mean(Cost.ABSOLUTE)
    return NoiseError(
        (variance, variance), (absolute, absolute), Fraction(table.margin(OUTSIDE)), Fraction(table.largest)
    )


def _summed_gaussian(sigma2: Fraction) -> tuple[arb, arb]:
    """E X^2 and E |X| from the sums over all x, those beyond the reach enclosed.

    From x to x + 1, beyond the reach R, x^2 e^{-x^2 / (2s)} falls by e^{-(R+1) / s} ((R+2) / (R+1))^2 < 1 at least: what is left
    is at most the first term over one less that factor.
    """
    s = ball(sigma2)
    reach = math.ceil(_FAR * math.sqrt(sigma2)) + 3
    weights = [(-ball(x * x / (2 * sigma2))).exp() for x in range(reach + 2)]
    first = (reach + 1) ** 2 * weights[reach + 1]
    fall = (-(reach + 1) / s).exp() * (ball(Fraction(reach + 2, reach + 1))) ** 2
    rest = arb(0).union((first / (1 - fall)).upper())
    total = weights[0] + 2 * sum(weights[1:-1], arb(0)) + 2 * rest
    squares = 2 * sum((x * x * w for x, w in enumerate(weights[:-1])), arb(0)) + 2 * rest
    sizes = 2 * sum((x * w for x, w in enumerate(weights[:-1])), arb(0)) + 2 * rest
    return squares / total, sizes / total


def _fine_gaussian(sigma2: Fraction) -> tuple[arb, arb]:
    """The same for large sigma2 = s: the variance is s but for less than e^-s of it, by Poisson's formula; and
    2 sum over x >= 1 of x e^{-x^2 / (2s)} is 2 s but for less than 1/2, by the Euler-Maclaurin formula."""
    s = ball(sigma2)
    tiny = (-s).exp()
    near_one = (1 - tiny).union(1 + tiny)
    deviation = (2 * arb.pi() * s).sqrt()
    return s * near_one, (2 * s + ball(Fraction(-1, 2)).union(ball(Fraction(1, 2)))) / deviation * near_one


def _margin(noise: DiscreteGaussian | DiscreteLaplace | Skellam) -> int:
    """The least whole number that the noise exceeds in size with a probability of at most 5%; by one more where doubles cannot
    tell, and where the noise is so fine that the quantile of the continuous one is taken."""
    if isinstance(noise, DiscreteGaussian) and noise.sigma2 > _VERY_FINE:
        return math.ceil(_QUANTILE * root_up(noise.sigma2)) + 1

    def enough(m: int) -> bool:
        return 2 * noise.tail(m + 1) <= float(OUTSIDE) * _CLEARLY

    low, high = -1, 0
    while not enough(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _ends(value: arb) -> tuple[Fraction, Fraction]:
    return fraction(value.lower()), fraction(value.upper())
