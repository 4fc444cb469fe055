"""The Laplace mechanism: adds a real number with density e^{-|x| / scale} / (2 scale)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision
from exactdp.doubles import CLOSE_SLACK, FORMULA_SLACK, PHASE_ERROR, POWER_SLACK, UNDERFLOW, Complexes, Floats
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import Loss, Peak, Tilted
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.theta import log_one_plus
from exactdp.numbers import Number, exact_text, positive, root_up, shown

SMALLEST_EPSILON = Fraction(1, 10**9)
LARGEST_EPSILON = Fraction(500)


@steady
@dataclass(frozen=True, init=False, repr=False)
class Laplace(Mechanism):
    """Real Laplace noise of a scale on a number of real sensitivity. Pure epsilon-DP with epsilon = sensitivity / scale.

    For noise on counts see DiscreteLaplace.

    >>> Laplace(2).epsilon
    Fraction(1, 2)
    """

    scale: Fraction
    sensitivity: Fraction

    def __init__(self, scale: Number, sensitivity: Number = 1) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise InvalidInputError(
                f"epsilon = sensitivity / scale must be between {float(SMALLEST_EPSILON):.0e} and {LARGEST_EPSILON} (above it "
                f"the noise protects nothing). Found {shown(sensitivity)} / {shown(scale)}."
            )

    @property
    def epsilon(self) -> Fraction:
        """The pure-DP parameter sensitivity / scale, the greatest loss."""
        return self.sensitivity / self.scale

    @property
    def rho(self) -> Fraction:
        """epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return self.epsilon**2 / 2

    def loss(self) -> Loss:
        """epsilon with probability 1/2, -epsilon with probability e^-epsilon / 2, and a density between; symmetric."""
        return _LaplaceLoss(self.epsilon)

    def _scaled(self, by: Fraction) -> Laplace:
        """The scale times the root of `by`, rounded up to 15 digits where it is no fraction: the noise is never less."""
        return Laplace(root_up(self.scale**2 * by), self.sensitivity)

    def __str__(self) -> str:
        extra = "" if self.sensitivity == 1 else f", sensitivity={exact_text(self.sensitivity)!r}"
        return f"Laplace({exact_text(self.scale)!r}{extra})"


class _LaplaceLoss(Loss):
    """With e = epsilon: atoms 1/2 at e and e^-e / 2 at -e, and the density e^{(x - e) / 2} / 4 on (-e, e)."""

    def __init__(self, epsilon: Fraction) -> None:
        self.epsilon, self._e = epsilon, float(epsilon)
        self.greatest = epsilon
        self.widest = self._e**2  # Popoviciu
        with precision(BITS):
            self.ends = -ball(epsilon), ball(epsilon)

    def log_moment(self, z: Fraction) -> arb:
        """M(z) = (e^{ze} + e^{-(z+1)e} + e^{-e/2} sinh((z + 1/2) e) / (z + 1/2)) / 2."""
        return sum(self.shares(z), arb(0)).log()

    def shares(self, z: Fraction) -> tuple[arb, arb, arb]:
        """The three terms of M(z)."""
        e, at = ball(self.epsilon), z + Fraction(1, 2)
        spread = (ball(at) * e).sinh() / ball(at) if at else e
        return (ball(z) * e).exp() / 2, (-ball(z + 1) * e).exp() / 2, (-e / 2).exp() * spread / 2

    def log_moment_upper(self, z: float) -> float:
        """A double above log M(z), a sum of positive terms: sinh(ae) / a = e^{ae} (1 - e^{-2ae}) / (2a), at most e e^{ae}."""
        e, a = self._e, abs(z + 0.5)
        width = -math.expm1(-2 * a * e) / (2 * a) if a * e > 1e-8 else e  # of sinh(ae) e^{-ae} / a, at most e
        exponents = [z * e, -(z + 1) * e, -e / 2 + a * e + math.log(width)]
        top = max(exponents)
        size = 1 + max(abs(x) for x in exponents) + abs(z) * e
        return top + math.log(math.fsum(math.exp(x - top) for x in exponents) / 2) + POWER_SLACK * size

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """By a fine sum over the density and the two atoms."""
        e = self._e
        values = np.concatenate([[e, -e], (np.arange(200) + 0.5) / 100 * e - e])
        logs = np.concatenate([[math.log(0.5), -e - math.log(2)], (values[2:] - e) / 2 + math.log(e / 400)])
        exponents = logs + tilt * values
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        mean = float(weights @ values)
        return mean, float(weights @ (values - mean) ** 2)

    def delta(self, y: arb) -> tuple[arb, arb] | None:
        """1 - e^{(y - e) / 2} from -e to e, with its slope."""
        with precision(BITS):
            half = (y - ball(self.epsilon)) / 2
            return (-half.expm1(), half.exp() / 2) if bool(half < 0) and bool(y > -ball(self.epsilon)) else None

    def tilted(self, tilt: Fraction) -> Tilted:
        """Two atoms and a density, all with closed forms."""
        return _TiltedLaplace(self, tilt)


class _TiltedLaplace(Tilted):
    """At z = tilt + i om, with v = om e: weights of the atoms times e^{iv} and e^{-iv}, and the density's share."""

    by_frequency = True

    def __init__(self, loss: _LaplaceLoss, tilt: Fraction) -> None:
        self.anchor, self._e, self._slope = arb(0), float(loss.epsilon), float(tilt + Fraction(1, 2))
        with precision(BITS):
            self.units = (ball(loss.epsilon),)
            terms = loss.shares(tilt)
            total = sum(terms, arb(0))
            self._up, self._down, self._between = (float((t / total).mid()) for t in terms)
            # e^{-e/2} e^{+-(tilt + 1/2) e} / 4, relative to the total: the density's ends
            ends = [(terms[0] if sign > 0 else terms[1]) / (2 * total) for sign in (1, -1)]
            self._high, self._low = (float(x.mid()) for x in ends)
        strength = 2 * self._up * self._down / math.pi**2 * (1 - FORMULA_SLACK)
        self.peak = Peak(0, strength, 0.0, 2) if strength > 1e-280 else None

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        """sinh((a + i om) e) / (a + i om) by its ends where om is large, around its value at 0 where om e is small (S7)."""
        turn = v[0]
        cosine, sine = np.cos(turn), np.sin(turn)
        half = np.sin(0.5 * turn)
        change = np.empty(len(omega), dtype=np.complex128)
        change.real = -2 * (self._up + self._down) * half * half
        change.imag = (self._up - self._down) * sine
        reach = np.abs(omega) * self._e
        density = np.empty(len(omega), dtype=np.complex128)
        far = (reach > _NEAR) | (abs(self._slope) * self._e > _NEAR)
        z = self._slope + 1j * omega
        waves = cosine + 1j * sine
        with np.errstate(all="ignore"):
            density[far] = ((self._high * waves - self._low * waves.conj()) / z)[far] - self._between
        if not far.all():
            density[~far] = self._near(omega[~far])
        sizes = (self._up + self._down) * np.minimum(2 * reach, 3.0) + np.where(
            far, 2 * self._between + self._ends(omega), 2 * reach
        )
        return log_one_plus(change + density, sizes, _PHASES * PHASE_ERROR)

    def _ends(self, omega: Floats) -> Floats:
        result: Floats = (self._high + self._low) / np.maximum(np.abs(self._slope), np.abs(omega)).clip(UNDERFLOW)
        return result

    def _near(self, omega: Floats) -> Complexes:
        """The density's share less its value at 0, by Gauss-Legendre with 24 points: its exponent is at most 2 _NEAR."""
        nodes, weights = np.polynomial.legendre.leggauss(24)
        x = nodes * self._e
        tilted = weights * np.exp(self._slope * x)
        tilted *= self._between / tilted.sum()
        angle = np.multiply.outer(omega, x)
        half = np.sin(0.5 * angle)
        result: Complexes = -2 * ((half * half) @ tilted) + 1j * (np.sin(angle) @ tilted)
        return result

    def log_decay(self, omega: float) -> float:
        """The atoms, and the density's share by its ends: |sinh((a + i om) e)| / |a + i om| <= cosh(ae) / om."""
        bound = (self._up + self._down + (self._high + self._low) / max(omega, UNDERFLOW)) * (1 + CLOSE_SLACK)
        return min(math.log(bound), 0.0)


_NEAR = 0.5
_PHASES = 5.0  # 2 for the atoms, 3 for the ends of the density, which are at most 2.6 of all mass where they are used
