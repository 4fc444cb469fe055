"""The continuous Gaussian mechanism: adds N(0, sigma2) to a real number."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision
from exactdp.doubles import FEW_SLACK, UNDERFLOW, Complexes, Floats
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import Loss, Tilted
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_double, exact_text, positive, shown

SMALLEST_RATIO = Fraction(1, 10**18)
LARGEST_RATIO = Fraction(10**6)


@steady
@dataclass(frozen=True, init=False, repr=False)
class Gaussian(Mechanism):
    """Real noise N(0, sigma2) on a value of real sensitivity.

    Give the variance `sigma2` (a float is read as the decimal it prints as) or the standard deviation `sigma` (a float is that
    very double: `sigma2` is its exact square).

    >>> Gaussian(4, sensitivity="1/2").rho
    Fraction(1, 32)
    >>> Gaussian(sigma="1/2") == Gaussian("0.25")
    True
    """

    sigma2: Fraction
    sensitivity: Fraction

    def __init__(self, sigma2: Number | None = None, sensitivity: Number = 1, *, sigma: Number | None = None) -> None:
        if (sigma2 is None) == (sigma is None):
            raise InvalidInputError(
                f"Give exactly one of sigma2 (the variance) and sigma (its root). "
                f"Found sigma2={shown(sigma2)} and sigma={shown(sigma)}."
            )
        variance = positive(sigma2, "sigma2") if sigma is None else exact_double(sigma, "sigma") ** 2
        object.__setattr__(self, "sigma2", variance)
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        if not SMALLEST_RATIO <= self._ratio <= LARGEST_RATIO:
            given = f"sigma2 {shown(sigma2)}" if sigma is None else f"sigma {shown(sigma)}"
            raise InvalidInputError(
                f"sensitivity^2 / sigma2 must be between {float(SMALLEST_RATIO):.0e} and {float(LARGEST_RATIO):.0e} "
                f"(above it the noise protects nothing). "
                f"Found sensitivity {shown(sensitivity)} with {given}."
            )

    @property
    def _ratio(self) -> Fraction:
        return self.sensitivity**2 / self.sigma2

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter sensitivity^2 / (2 sigma2)."""
        return self._ratio / 2

    def loss(self) -> Loss:
        """N(R / 2, R) with R = sensitivity^2 / sigma2, in either direction."""
        return _GaussianLoss(self._ratio)

    def _scaled(self, by: Fraction) -> Gaussian:
        return Gaussian(self.sigma2 * by, self.sensitivity)

    def __str__(self) -> str:
        extra = "" if self.sensitivity == 1 else f", sensitivity={exact_text(self.sensitivity)!r}"
        return f"Gaussian({exact_text(self.sigma2)!r}{extra})"


class _GaussianLoss(Loss):
    """A normal loss of mean R / 2 and variance R: log E e^{zL} = R z (z + 1) / 2."""

    def __init__(self, ratio: Fraction) -> None:
        self._ratio = ratio
        self.widest = self._float = float(ratio)

    def log_moment(self, z: Fraction) -> arb:
        return ball(self._ratio * z * (z + 1) / 2)

    def log_moment_upper(self, z: float) -> float:
        # five roundings, all relative: a product of R, z and z + 1
        value = self._float * z * (z + 1) / 2
        return value + FEW_SLACK * abs(value) + UNDERFLOW

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        return self._float * (0.5 + tilt), self._float

    def tilted(self, tilt: Fraction) -> Tilted:
        return _TiltedGaussian(self._ratio, tilt)


class _TiltedGaussian(Tilted):
    """A normal loss tilted by t is normal again, of mean R / 2 + R t and the same variance R."""

    def __init__(self, ratio: Fraction, tilt: Fraction) -> None:
        with precision(BITS):
            self.anchor = ball(ratio * (Fraction(1, 2) + tilt))
        self.spread = float(ratio)

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        return np.zeros(len(omega), dtype=np.complex128), np.zeros(len(omega))
