"""How far the profile of Gaussian noise, discrete or not, is from that of one continuous Gaussian with the same rho, at most.

The characteristic function of a discrete Gaussian is nowhere below that of the continuous one, so one number, the difference of
the two deltas at epsilon = rho, bounds it at every epsilon (docs/theory/conversions.md, theorem "near the Gaussian").
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb

from exactdp.balls import ball, precision
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition

_BITS = 160


@dataclass(frozen=True)
class NearGaussian:
    """Bounds of |delta - delta_mu| at mu^2 = `spread` for a composition of Gaussians, in units of the normal density."""

    spread: Fraction
    """R = 2 rho."""
    excess: arb
    """At least 2 pi (delta_mu - delta) at epsilon = rho: the integral of the difference of the characteristic functions over 1 +
    omega^2."""
    off_integers: arb
    """At least Q - 1: what tilts that are no integers cost."""

    def covers(self, mu: Fraction, low: Fraction, high: Fraction | None) -> bool:
        """Proved: delta <= delta_mu on [low, high], 0 <= low; from `low` on if `high` is None. Never for mu^2 below R."""
        if mu * mu <= self.spread:
            return False
        with precision(_BITS):
            room = self._room(mu, low)
            tilts = self._tilts_beyond(low) if high is None else self._tilts(low, high)
            return any(bool(distance <= room) for distance in tilts)

    def _room(self, mu: Fraction, low: Fraction) -> arb:
        """At most (delta_mu - delta_sqrt(R)) / phi(a) from `low` on: the integral over m of e^{(a^2 - a_m^2)/2}, in which
        a^2 - a_m^2 = e^2 (1/R - 1/m^2) + (R - m^2)/4, from some m on only."""
        r, m, e = ball(self.spread), ball(mu), ball(low)
        root = r.sqrt()
        best = arb(0)
        for share in (0, Fraction(1, 2), Fraction(3, 4)):
            start = root + (m - root) * ball(Fraction(share))
            exponent = (e * e * (1 / r - 1 / (start * start)) + (r - m * m) / 4) / 2
            best = best.max((m - start) * exponent.exp())
        return best.lower()

    def _distance(self, tilt: arb, whole: bool, miss: arb) -> arb:
        """At least |delta - delta_sqrt(R)| / phi(a) where the tilt misses the saddle point by at most `miss`."""
        r = ball(self.spread)
        size, other = abs(tilt), abs(tilt + 1)
        cost = 1 / (size.min(arb(1)) * other.min(arb(1)))
        total = self.excess * cost
        if not whole:
            q = self.off_integers
            total = (1 + q) * self.excess * cost + q * (2 * arb.pi() / r).sqrt() / (size * other)
        return ((r * miss * miss / 2).exp() * total / (2 * arb.pi()).sqrt()).upper()

    def _tilts(self, low: Fraction, high: Fraction) -> Iterator[arb]:
        """The distance on an interval by several tilts, of which any is valid."""
        saddles = [float((e - self.spread / 2) / self.spread) for e in (low, high)]
        middle, away = sum(saddles) / 2, 1 / math.sqrt(self.spread)
        for tilt in (middle, away, -min(away, 0.5), float(max(round(middle), 1))):
            if not tilt:
                continue
            ends = [abs(arb(tilt) - (ball(e) - ball(self.spread) / 2) / ball(self.spread)) for e in (low, high)]
            yield self._distance(arb(tilt), tilt == round(tilt), ends[0].max(ends[1]))

    def _tilts_beyond(self, low: Fraction) -> Iterator[arb]:
        """The same from `low` on: at the saddle point itself, where the distance falls, or at the integer next to it."""
        saddle = (low - self.spread / 2) / self.spread
        if saddle > 0:
            yield self._distance(ball(saddle), False, arb(0))
        if 2 * saddle >= 1:
            yield self._distance(arb(1), True, arb("0.5"))


def has_gaussians_only(composition: Composition) -> bool:
    """Whether all noise is Gaussian, discrete or continuous."""
    return all(isinstance(m, DiscreteGaussian | Gaussian) for m in composition.mechanisms)


def near_gaussian(composition: Composition) -> NearGaussian | None:
    """The bounds for a composition of Gaussians; None for any other."""
    if not has_gaussians_only(composition):
        return None
    rho = Fraction(composition.rho)
    low = float(composition.point([rho]).delta.log_lower()[0])
    with precision(_BITS):
        r = ball(2 * rho)
        smooth = (1 - (r / 2).exp() * (r / 2).sqrt().erfc()) / 2
        excess = (2 * arb.pi() * (smooth - (arb(low).exp() if low > -math.inf else arb(0)))).max(arb(0)).upper()
        logs = arb(0)
        for mechanism, count in composition.mechanisms.items():
            if isinstance(mechanism, DiscreteGaussian):
                q = (-2 * arb.pi() ** 2 * ball(mechanism.sigma2)).exp()
                logs += count * (4 * q / (1 - q**3)).min(arb(2)).log1p()
        return NearGaussian(2 * rho, excess, logs.expm1().upper())


def tail_holds(rho: Fraction, mu: Fraction, last: Fraction) -> bool:
    """delta <= delta_mu from `last` on, for a composition whose moments are at most those of a Gaussian with R = 2 rho < mu^2.

    With a = epsilon/mu - mu/2: delta <= exp(-(epsilon - R/2)^2 / (2R)) by Markov, and delta_mu is at least
    phi(a) (a mu - 1) / ((a^2 + 1)(a + mu)). The logarithm of their ratio rises where epsilon (1/R - 1/mu^2) (epsilon - mu^2/2)
    is at least 3 (docs/theory/conversions.md).
    """
    with precision(_BITS):
        r, m, e = ball(2 * rho), ball(mu), ball(last)
        a = e / m - m / 2
        gap = 1 / r - 1 / (m * m)
        if not (bool(gap > 0) and bool(a * m > 2) and bool(e * gap * a * m >= 3)):
            return False
        fraction_part = (a * m - 1) / ((a * a + 1) * (a + m)) / (2 * arb.pi()).sqrt()
        return bool(e * e / 2 * gap + (r - m * m) / 8 + fraction_part.log() > 0)
