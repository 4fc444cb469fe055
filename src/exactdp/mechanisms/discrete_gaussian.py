"""The discrete Gaussian mechanism: adds X with P(X = x) proportional to exp(-x^2 / (2 sigma2)) to an integer count."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import ball
from exactdp.doubles import FORMULA_SLACK, PHASE_ERROR, POWER_SLACK, REMAINDER_SLACK, UNIT, Complexes, Floats
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import Atoms, Loss, Peak, Tilted
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.theta import (
    POISSON_FROM,
    TWO_PI_SQUARED,
    direct_reach,
    log_cf_correction,
    log_cf_direct,
    log_theta_ratio,
    log_theta_ratio_ball,
    peak_parabola,
    poisson_terms,
    theta_left_out,
    tilted_mean_variance,
    wide_parabola,
)
from exactdp.numbers import Number, exact_double, positive, shown, whole

LARGEST_SENSITIVITY = 1 << 28
SMALLEST_SIGMA2 = Fraction(1, 1000)
LARGEST_SIGMA2 = Fraction(10**18)
LARGEST_WEIGHT = 1000
_TAIL_BLOCK = 1 << 16  # terms of a tail summed at once
_NEGLIGIBLE_COPY = 1e-19  # the theta factor of one copy this close to 1 is left out, and charged once for each copy
_MOST_ATOMS = 4_000_000  # values listed


@steady
@dataclass(frozen=True, init=False, repr=False)
class DiscreteGaussian(Mechanism):
    """Integer noise N_Z(0, sigma2) on a count of integer sensitivity.

    `sigma2` is the noise parameter (close to the variance when it is above 1): an int, Fraction, Decimal, a text such as
    "11/10000", or a float, read as the decimal it prints as. `sigma`, its root, may be given instead; a float `sigma` is a
    measured or computed number and means exactly that double: `DiscreteGaussian(sigma=math.pi)`.

    >>> DiscreteGaussian("10/3").variance
    3.3333333333333335
    >>> 3 * DiscreteGaussian(2) + DiscreteGaussian(5, sensitivity=2)
    Composition(3 x DiscreteGaussian(2) + 1 x DiscreteGaussian(5, sensitivity=2))
    """

    sigma2: Fraction
    sensitivity: int

    def __init__(self, sigma2: Number | None = None, sensitivity: int = 1, *, sigma: Number | None = None) -> None:
        object.__setattr__(self, "sigma2", noise_parameter(sigma2, sigma))
        object.__setattr__(self, "sensitivity", whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY))
        if not SMALLEST_SIGMA2 <= self.sigma2 <= LARGEST_SIGMA2:
            raise InvalidInputError(
                f"sigma2 must be between {float(SMALLEST_SIGMA2)} (below it the noise is 0 but for one draw in 10^217) "
                f"and {float(LARGEST_SIGMA2):.0e}. Found {shown(self.sigma2)}."
            )
        if self.sensitivity > LARGEST_WEIGHT * self.sigma2:
            raise InvalidInputError(
                f"sensitivity / sigma2 must be at most {LARGEST_WEIGHT} (such noise protects nothing). "
                f"Found {self.sensitivity} / {shown(self.sigma2)}."
            )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Of integers, which is quicker than that of a fraction; designs look for theirs many times."""
        return hash((self.sigma2.numerator, self.sigma2.denominator, self.sensitivity))

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter sensitivity^2 / (2 sigma2)."""
        return Fraction(self.sensitivity**2 * self.sigma2.denominator, 2 * self.sigma2.numerator)

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

    def loss(self) -> Loss:
        """D^2 / (2 s) + (D / s) X."""
        return _DiscreteGaussianLoss(self.sigma2, self.sensitivity)

    def _scaled(self, by: Fraction) -> DiscreteGaussian:
        return DiscreteGaussian(self.sigma2 * by, self.sensitivity)

    def __str__(self) -> str:
        extra = "" if self.sensitivity == 1 else f", sensitivity={self.sensitivity}"
        return f"DiscreteGaussian({self.sigma2}{extra})"


def noise_parameter(sigma2: Number | None, sigma: Number | None) -> Fraction:
    """sigma2 from whichever of the two is given; a float sigma means exactly that double."""
    if (sigma2 is None) == (sigma is None):
        raise InvalidInputError(f"Give either sigma2 or sigma. Found sigma2 = {shown(sigma2)}, sigma = {shown(sigma)}.")
    return positive(sigma2, "sigma2") if sigma is None else exact_double(sigma, "sigma") ** 2


class _DiscreteGaussianLoss(Loss):
    """The loss of a discrete Gaussian: D^2 / (2 s) + w X with w = D / s."""

    def __init__(self, sigma2: Fraction, sensitivity: int) -> None:
        self.sigma2, self.sensitivity = sigma2, sensitivity
        top, bottom = sigma2.numerator, sigma2.denominator
        self._s, self._w, self._r = top / bottom, sensitivity * bottom / top, sensitivity**2 * bottom / top
        self.widest = self._w * self._w * (self._s if self._s >= 0.5 else self._s + 0.25)
        self.quadratic = self._r if self._s >= 1 else None

    @cached_property
    def weight(self) -> Fraction:
        """w = D / s."""
        return self.sensitivity / self.sigma2

    @property
    def unit(self) -> float:
        """w, as a double."""
        return self._w

    @property
    def step(self) -> Fraction:
        """w."""
        return self.weight

    @property
    def per_tilt(self) -> Fraction:
        """D w: the centre D tilt of the tilted noise moves by D whole numbers."""
        return self.sensitivity * self.weight

    def log_moment(self, z: Fraction) -> arb:
        square = self.sensitivity * self.weight * z * (z + 1) / 2
        return ball(square) + log_theta_ratio_ball(self.sensitivity * z, self.sigma2)

    def log_moment_upper(self, z: float) -> float:
        ratio = 0.0 if self._s >= 0.5 else log_theta_ratio(self.sensitivity * z, self._s)  # never positive
        size = self._r * abs(z) * (abs(z) + 1) / 2
        upper = min(ratio + FORMULA_SLACK * (1 + abs(ratio)), 0.0)
        return self._r * z * (z + 1) / 2 + upper + POWER_SLACK * (1 + size)

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        mean, variance = tilted_mean_variance(self.sensitivity * tilt, self._s)
        return self._r / 2 + self._w * mean, self._w * self._w * variance

    def tilted(self, tilt: Fraction) -> Tilted:
        return _TiltedDiscreteGaussian(self, tilt)


class _TiltedDiscreteGaussian(Tilted):
    """Under the tilt X has probabilities proportional to exp(-(x - D tilt)^2 / (2 s)); phases are measured from round(D tilt)."""

    def __init__(self, loss: _DiscreteGaussianLoss, tilt: Fraction) -> None:
        self._s = loss._s
        centre = loss.sensitivity * tilt
        whole_centre = math.floor(centre + Fraction(1, 2))
        self._rest = float(centre - whole_centre)
        self.anchor = ball(loss.weight * (Fraction(loss.sensitivity, 2) + whole_centre))
        self.units = (ball(loss.weight),)
        strength, slack = peak_parabola(self._s, float(centre))
        self.peak = Peak(0, strength, slack, noise=self._s if strength == wide_parabola(self._s) else 0.0)

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        phase = v[0]
        if self._s < POISSON_FROM:
            logs, relative = log_cf_direct(self._s, self._rest, phase)
            return logs, relative + 2 * PHASE_ERROR
        size = np.abs(phase)
        fall, turn = 0.5 * self._s * phase * phase, self._rest * phase
        left_out = theta_left_out(self._s, 1.0, float(size.max(initial=0.0)))
        error = 12 * UNIT * (fall + np.abs(turn)) + PHASE_ERROR * (self._s * size + 2)
        logs = np.empty(phase.shape, dtype=np.complex128)
        if left_out < _NEGLIGIBLE_COPY:
            logs.real, logs.imag = -fall, turn
            return logs, error + left_out
        correction, relative = log_cf_correction(self._s, self._rest, phase)
        logs.real, logs.imag = correction.real - fall, correction.imag + turn
        return logs, error + relative + 4 * UNIT * np.abs(correction)

    def atoms(self, cut: float) -> Atoms | None:
        """Within `reach` of the centre; beyond it the mass is at most 2 e^{-d^2/(2s)} / theta's largest term, d the distance."""
        reach = math.ceil(0.5 + math.sqrt(2 * self._s * max(-math.log(cut), 1.0))) + 1
        if 2 * reach + 1 > _MOST_ATOMS:
            return None
        x = np.arange(-reach, reach + 1, dtype=np.int64)
        exponents = -(x.astype(np.float64) * (x - 2 * self._rest)) / (2 * self._s)
        weights = np.exp(exponents)
        total = float(np.sum(weights))
        # terms beyond the reach, relative to the one at the centre, fall faster than a geometric series
        first = (reach + 1) * (reach + 1 - 2 * abs(self._rest)) / (2 * self._s)
        ratio = math.exp(-(2 * reach + 3 - 2 * abs(self._rest)) / (2 * self._s))
        missing = 2 * math.exp(-first) / (1 - ratio) * (1 + REMAINDER_SLACK)
        relative = UNIT * (8 + 6 * float(-exponents.min()) + 2 * math.log2(len(x) + 2)) + missing
        return Atoms(x, weights / total, relative, missing)


def _lambert(r: int, rate: float) -> float:
    """sum over n >= 1 of (-1)^{n+1} n^{r-1} exp(-rate n) / (1 - exp(-2 rate n))."""
    terms, n = [], 1
    while True:
        term = n ** (r - 1) * math.exp(-rate * n) / -math.expm1(-2 * rate * n)
        terms.append(term if n % 2 else -term)
        if n * rate > r + 1 and term <= 1e-20 * abs(terms[0]):
            return math.fsum(terms)
        n += 1
