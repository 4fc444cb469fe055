"""Chords of a profile: upper bounds of delta at some epsilons, the mu that the chords between them need, and the proof that they
lie below the Gaussian's profile (docs/theory/conversions.md, theorem "tightest mu")."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from flint import arb
from scipy.special import ndtri_exp

from exactdp.balls import ball, precision
from exactdp.doubles import Floats
from exactdp.guarantees.gaussian_dp import bisect
from exactdp.mechanisms.gaussian_formula import gaussian_logs

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition

_BITS = 160
_HALF = math.log(0.5)

Interval = tuple[Fraction, Fraction]


def _tangent(mu: Fraction, at: Fraction, epsilon: Fraction) -> tuple[arb, arb]:
    """The tangent of delta_mu at one epsilon, as a function of e^epsilon, at another; and 1 minus it, without cancellation.

    With a = at/mu - mu/2 and b = a + mu it is Phi(-a) - x Phi(-b).
    """
    m, e = ball(mu), ball(at)
    root = arb(2).sqrt()
    a = (e / m - m / 2) / root
    fall = ball(epsilon).exp() * ((e / m + m / 2) / root).erfc()
    return (a.erfc() - fall) / 2, ((-a).erfc() + fall) / 2


def violates(composition: Composition, mu: Fraction, epsilon: Fraction) -> bool:
    """Proved: delta(epsilon) > delta_mu(epsilon)."""
    point = composition.point([epsilon])
    low, high = float(point.delta.log_lower()[0]), float(point.rest.log_upper()[0])
    with precision(_BITS):
        delta, rest = _tangent(mu, epsilon, epsilon)
        return (low > -math.inf and bool(delta < arb(low).exp())) or bool(rest > arb(high).exp())


@dataclass
class Chords:
    """Upper bounds of a profile at some epsilons, and what the chords between them need."""

    composition: Composition
    most: int
    """How many epsilons may be asked for."""
    known: dict[Fraction, tuple[float, float]] = field(default_factory=dict)
    """log delta from above and log(1 - delta) from below, so that nothing underflows or rounds to 1."""

    def ask(self, epsilons: Iterable[Fraction]) -> None:
        """Look at those that are not known."""
        new = sorted(set(epsilons) - self.known.keys())
        if new:
            point = self.composition.point(new)
            ends = zip(point.delta.log_upper().tolist(), point.rest.log_lower().tolist(), strict=True)
            self.known.update(zip(new, ends, strict=True))

    def mu_at(self, epsilon: Fraction) -> float:
        """The mu that one point needs; estimate."""
        return _mu_at(float(epsilon), *self.known[epsilon])

    def needs(self, intervals: list[Interval], goal: float) -> tuple[Floats, Floats]:
        """The least mu whose delta_mu is above each chord, and z = Phi^-1(1 - alpha), -alpha its slope.

        The chord meets x = 0 at 1 - beta; then mu = z - Phi^-1(beta), which touches it at mu (z - mu/2). Where that is above the
        goal and outside of the interval, what counts is the end next to it. Estimates: proved afterwards.
        """
        e0, e1 = (np.array([float(pair[i]) for pair in intervals]) for i in (0, 1))
        (d0, r0), (d1, r1) = (np.array([self.known[pair[i]] for pair in intervals]).reshape(-1, 2).T for i in (0, 1))
        with np.errstate(all="ignore"):
            fall = np.where(d0 < _HALF, d0 + np.log1p(-np.exp(d1 - d0)), r1 + np.log1p(-np.exp(r0 - r1)))
            log_alpha = fall - e1 - np.log1p(-np.exp(e0 - e1))
            log_away = np.logaddexp(d0, e0 + log_alpha)
            log_beta = r0 + np.log1p(-np.exp(e0 + log_alpha - r0))
            z = -ndtri_exp(log_alpha)
            mu = z + np.where(log_away < _HALF, ndtri_exp(log_away), -ndtri_exp(log_beta))
            mu = np.where(d0 == -np.inf, 0.0, np.where(np.isnan(mu), np.inf, mu))
            at = mu * (z - mu / 2)
        for i in np.flatnonzero(mu > goal).tolist():
            if not np.isfinite(at[i]):  # no fall is visible: delta_mu must be as large at the right end
                mu[i], z[i] = _mu_at(float(e1[i]), float(d0[i]), float(r0[i])) or math.inf, math.inf
            elif not e0[i] <= at[i] <= e1[i]:
                mu[i] = self.mu_at(intervals[i][0 if at[i] < e0[i] else 1])
        return mu, z

    def below(self, mu: Fraction, pair: Interval, at: Fraction) -> bool:
        """Proved: the chord lies below the tangent of delta_mu at `at`: at both ends, by delta or by 1 - delta.

        This inequality is the guarantee; any `at` is valid.
        """
        with precision(_BITS):
            if self.known[pair[0]][0] == -math.inf:  # delta is 0 from there on
                return True
            for e in pair:
                tangent, rest = _tangent(mu, at, e)
                log_delta, log_rest = self.known[e]
                if not (bool(arb(log_delta).exp() <= tangent) or bool(rest <= arb(log_rest).exp())):
                    return False
        return True


@lru_cache(maxsize=4096)
def _mu_at(epsilon: float, log_delta: float, log_rest: float) -> float:
    """mu with delta_mu(epsilon) = delta(epsilon), by bisection on logarithms; 0 where delta is too near 1 to tell. Heuristic:
    proved afterwards."""
    if not (log_delta > -1e12 and log_rest > -1e12):
        return 0.0
    if log_delta < -0.7:
        return bisect(lambda mu: gaussian_logs(mu, epsilon)[0] - log_delta, 1e-9, 1e6)
    return bisect(lambda mu: log_rest - gaussian_logs(mu, epsilon)[1], 1e-9, 1e6)
