"""Gaussian DP: the tightest mu that a composition satisfies, with proof.

mu-GDP means delta(epsilon) <= delta_mu(epsilon) for every real epsilon, delta_mu being that of the continuous Gaussian; by
symmetry epsilon >= 0 suffices. At one epsilon a violation is a fact; that there is none anywhere is proved interval by
interval: in x = e^epsilon both sides are convex, so between two points delta is below its chord and delta_mu above each of its
tangents (docs/theory/conversions.md, section on Gaussian DP). Beyond the last interval a tail bound decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb

from exactdp.balls import ball, precision
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.gaussian_dp import bisect, gaussian_ball
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.notebooks import repr_html
from exactdp.steady import steady

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition

_BITS = 160  # beyond those that the exponents of mu cancel
_MOST_INTERVALS = 12_000
_SHORTEST = Fraction(1, 10**7)
_FARTHEST = 600
_RELATIVE = Fraction(1, 10**5)  # accuracy of mu that is aimed at
_COARSE = 128


@steady
@dataclass(frozen=True)
class GaussianDP:
    """Bounds of the tightest mu: at `lower` some epsilon violates mu-GDP, at `upper` mu-GDP is proved."""

    _repr_html_ = repr_html

    lower: float
    upper: float
    epsilon: float
    """Where the lower bound was found."""


def violates(composition: Composition, mu: Fraction, epsilon: Fraction) -> bool:
    """Proved: delta(epsilon) > delta_mu(epsilon)."""
    point = composition.point([epsilon])
    with precision(_BITS + int(mu**2)):
        delta = gaussian_ball(mu, epsilon)[0]
        low, high = float(point.delta.log_lower()[0]), float(point.rest.log_upper()[0])
        return (low > -math.inf and bool(delta < arb(low).exp())) or bool(1 - delta > arb(high).exp())


class Proof:
    """That a composition is mu-GDP, or not proved."""

    def __init__(self, composition: Composition, mu: Fraction, known: dict[Fraction, tuple[float, float]]) -> None:
        self._composition, self._mu, self._known = composition, mu, known

    def holds(self, last: Fraction) -> bool:
        """delta <= delta_mu on [0, last], by subdivision: all intervals of one generation together."""
        intervals = [(last * i / _COARSE, last * (i + 1) / _COARSE) for i in range(_COARSE)]
        total = 0
        while intervals:
            total += len(intervals)
            if total > _MOST_INTERVALS or intervals[0][1] - intervals[0][0] < _SHORTEST * last:
                return False
            self._ask({e for pair in intervals for e in pair})
            failed = [pair for pair in intervals if not self._below(*pair)]
            halves = [((low, (low + high) / 2), ((low + high) / 2, high)) for low, high in failed]
            intervals = [half for pair in halves for half in pair]
        return True

    def _ask(self, epsilons: set[Fraction]) -> None:
        """Bounds of log delta from above and of log(1 - delta) from below, so that nothing underflows or rounds to 1."""
        new = sorted(epsilons - self._known.keys())
        if new:
            point = self._composition.point(new)
            ends = zip(point.delta.log_upper().tolist(), point.rest.log_lower().tolist(), strict=True)
            self._known.update(zip(new, ends, strict=True))

    def _below(self, low: Fraction, high: Fraction) -> bool:
        """The chord of delta lies below the tangent of delta_mu at the middle: at both ends, by delta or by 1 - delta."""
        middle = (low + high) / 2
        with precision(_BITS + int(self._mu**2)):
            value, slope = gaussian_ball(self._mu, middle)
            x = ball(middle).exp()
            for e in (low, high):
                tangent = value - slope * (ball(e).exp() - x)
                log_delta, log_rest = self._known[e]
                if not (bool(arb(log_delta).exp() <= tangent) or bool(1 - tangent <= arb(log_rest).exp())):
                    return False
        return True


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


@steady
def tightest_mu(composition: Composition) -> GaussianDP:
    """Bounds of the least mu for which it is mu-GDP: about 1e-5 apart for coarse noise, 1e-3 for nearly Gaussian losses."""
    rho = composition.rho
    if composition.delta_bounds(math.inf).upper > 0:
        raise InvalidInputError(
            "A composition whose loss can be infinite satisfies mu-GDP for no mu. Use delta_bounds instead."
        )
    if all(isinstance(m, Gaussian) for m in composition.mechanisms):  # exactly sqrt(2 rho)
        mu = math.sqrt(2 * rho)
        return GaussianDP(mu * (1 - 2.0**-50), mu * (1 + 2.0**-50), 0.0)
    if rho == 0:
        return GaussianDP(0.0, math.ulp(0.0), 0.0)
    lower, where = _largest_violation(composition)
    end = float(composition.epsilon_bounds(0).upper)
    base = lower if math.isfinite(end) else max(lower, math.sqrt(2 * float(rho)))
    known: dict[Fraction, tuple[float, float]] = {}
    for exponent in range(10):
        mu = Fraction(base) * (1 + _RELATIVE * 4**exponent)
        if _is_gdp(composition, Fraction(rho), mu, end, known):
            return GaussianDP(lower, math.nextafter(float(mu), math.inf), where)
    raise AccuracyError("No mu could be proved for this composition; its curve is too far from that of a Gaussian.")


def _is_gdp(
    composition: Composition, rho: Fraction, mu: Fraction, end: float, known: dict[Fraction, tuple[float, float]]
) -> bool:
    """The proof up to where the tail bound decides, or up to the greatest loss, from which on delta is 0."""
    if math.isfinite(end):
        return Proof(composition, mu, known).holds(Fraction(end))
    last = Fraction(max(1, math.ceil(rho + 4)))
    while not tail_holds(rho, mu, last):
        last *= 2
        if last > _FARTHEST * (1 + rho):
            return False
    return Proof(composition, mu, known).holds(last)


def _largest_violation(composition: Composition) -> tuple[float, float]:
    """The largest mu that some epsilon rules out: mu(epsilon), the solution of delta_mu(epsilon) = delta(epsilon), from lower
    bounds."""
    rho, spread = float(composition.rho), math.sqrt(2 * float(composition.rho))
    steps = (0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    candidates = [spread * u for u in steps] + [max(rho + spread * (u - 2), 0.0) for u in steps]
    best = max((_mu_at(composition, e), e) for e in candidates)
    step = spread / 4
    for _ in range(18):
        near = [(_mu_at(composition, e), e) for e in (best[1] - step, best[1] + step) if e >= 0]
        best = max([best, *near])
        step /= 1.7
    mu, back = best[0], 1e-9
    while mu > 1e-300 and not violates(composition, Fraction(mu), Fraction(best[1])):
        mu, back = mu * (1 - min(back, 0.5)), 4 * back
    return (mu, best[1]) if mu > 1e-300 else (0.0, best[1])


def _mu_at(composition: Composition, epsilon: float) -> float:
    """mu with delta_mu(epsilon) = delta(epsilon), by bisection on logarithms; 0 where delta is too near 1 to tell. Heuristic:
    proved afterwards."""
    point = composition.point([Fraction(epsilon)])
    log_delta, log_rest = float(point.delta.log_upper()[0]), float(point.rest.log_lower()[0])
    if not (log_delta > -1e6 and log_rest > -1e6):
        return 0.0
    if log_delta < -0.7:
        return bisect(lambda mu: gaussian_logs(mu, epsilon)[0] - log_delta, 1e-9, 1e6)
    return bisect(lambda mu: log_rest - gaussian_logs(mu, epsilon)[1], 1e-9, 1e6)
