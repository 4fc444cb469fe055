"""The trapezoidal rule for E f(x)^p, x normal and f a mixture of exponentials: its step, its range and its error, all proved.

Under Q an output, in units of the noise, is x ~ N(0, 1); under P its density is f(x) times as large, with

    f(x) = sum_i p_i exp(m_i x - m_i^2 / 2),      m_i >= 0,      p_i > 0 with sum 1,      m the largest m_i.

With a power p = rho + i kappa, kappa >= 0, the moments of the privacy loss are G(p) = E_Q f(x)^p. On the line Im x = y the
integrand is at most phi(x) f(x)^rho times

    e^{y^2 / 2},      cos(m y / 2)^rho  if rho < 0,      e^{kappa m |y|}  if y < 0          (|y| < pi / m)

so that the rule with step h on the line Im x = a is off by at most G(rho) times 2 B / (e^{2 pi c / h} - 1), B the product of the
first two at a + c and of the third at a - c (docs/theory/smooth.md, Theorem S4). Where the noise is discrete the sum over its
own lattice is G itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp.doubles import CLOSE_SLACK, POWER_SLACK, SUM_SLACK, UNDERFLOW, Complexes, Floats, Ints
from exactdp.errors import AccuracyError
from exactdp.mechanisms.step_labels import StepLabel

DIGITS = 58.0
"""-log of the error of a rule, relative to the moment at kappa = 0: below the rounding of a hundred thousand factors."""

MOST_POINTS = 200_000
"""RulePoints of a rule before the range is given up."""

_REACH = 11.0  # deviations beyond the means of all tilted components: e^{-11^2 / 2} is below e^{-DIGITS}
_STEEP = 2.0  # the least rate at which the integrand must fall beyond the last point
_INSIDE = 0.97  # of the strip in which f has no zero
_STRIPS = np.geomspace(1e-4, 1.0, 97)  # half-widths tried, relative to the largest
_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class Rule:
    """The points x = step * j + i shift; `log_error` bounds log of the error relative to G(rho), but for what the range leaves
    out."""

    step: float
    shift: float
    log_error: float


@dataclass(frozen=True)
class RulePoints:
    """The points j * step + i shift of a rule: j, real parts, logarithms of the moduli of the terms, log f, and a bound of the
    logarithm of the sum of all terms left out."""

    index: Ints
    x: Floats
    log_sizes: Floats
    losses: Complexes
    log_left_out: float


@dataclass(frozen=True)
class Mixture:
    """The weights p_i and squares m_i^2 of a mixture, ascending and distinct; `spacing2` is the square of the lattice's step in
    units of the noise where the noise is discrete. With a `label` outputs count with the probability w(x) of that label, and
    G(p) is E_Q w f^p (docs/theory/smooth.md, section 4)."""

    weights: tuple[Fraction, ...]
    squares: tuple[Fraction, ...]
    spacing2: Fraction | None = None
    label: StepLabel | None = None

    @cached_property
    def floats(self) -> tuple[Floats, Floats]:
        """log p_i and m_i."""
        return np.log(np.array([float(p) for p in self.weights])), np.sqrt(np.array([float(s) for s in self.squares]))

    @cached_property
    def widest(self) -> float:
        """m."""
        return math.sqrt(float(self.squares[-1]))

    @cached_property
    def spacing(self) -> float | None:
        """The step of the lattice as a double, not exactly."""
        return None if self.spacing2 is None else math.sqrt(float(self.spacing2))

    def losses(self, x: Floats | Complexes) -> Floats | Complexes:
        """log f(x), on the principal branch, within 16 units of rounding of 1 + m |x| + m^2, or of itself."""
        logs, m = self.floats
        exponents = np.multiply.outer(m, x) - (0.5 * m * m)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            change = np.exp(logs) @ np.expm1(exponents)
            near = np.abs(change) < 0.5  # elsewhere 1 + change would cancel: f may be far below a unit of rounding
        result: Floats | Complexes
        if near.all():
            result = np.log1p(change)
            return result
        exponents += logs[:, None]
        top = exponents.real.max(axis=0)
        result = top + np.log(np.exp(exponents - top).sum(axis=0))
        result[near] = np.log1p(change[near])
        return result

    def slope(self, x: float) -> float:
        """The derivative of log f, which rises with x (a mean of the m_i)."""
        logs, m = self.floats
        exponents = m * x + logs - 0.5 * m * m
        weights = np.exp(exponents - exponents.max())
        return float(weights @ m / weights.sum())

    def rule(self, rho: float, kappa: float, shift: float = 0.0, digits: float | None = None) -> Rule:
        """The longest step whose error is e^{-digits} (by default DIGITS), over a list of strips; for every kappa up to this.

        The choice of strip affects speed only; the error is that of the strip chosen.
        """
        if self.spacing is not None:
            return Rule(self.spacing, 0.0, -math.inf)
        m = self.widest
        c = (_INSIDE * math.pi / m - shift) * _STRIPS
        log_most = self._log_growth(rho, c + shift) + kappa * m * np.maximum(c - shift, 0.0)
        steps = 2 * math.pi * c / (log_most + (DIGITS if digits is None else digits))
        best = int(np.argmax(steps))
        step = _rounded_down(float(steps[best]))
        log_error = math.log(2) + float(log_most[best]) - 2 * math.pi * float(c[best]) / step
        return Rule(step, shift, log_error + CLOSE_SLACK * (1 + float(log_most[best])))

    def _log_growth(self, rho: float, y: Floats) -> Floats:
        """log of the factor of the header at y >= 0."""
        grown = y * y / 2
        if self.label is not None:
            grown = grown + self.label.log_growth(y)
        if rho < 0:
            grown = grown + rho * np.log(np.cos(self.widest * y / 2))
        result: Floats = grown
        return result

    def points(self, rho: float, rule: Rule) -> RulePoints:
        """The points of a rule within a range beyond which terms fall at least geometrically.

        log g = rho log f - x^2 / 2 has the derivative rho slope - x, and slope rises from 0 to m. So to the right of X >
        max(rho, 0) m it falls at the rate X - max(rho, 0) m or more, and to the left of X < 0 at |X| - max(-rho, 0) slope(X).
        """
        left, right = self._range(rho)
        step = rule.step
        first, last = math.floor(left / step), math.ceil(right / step)
        if not last - first < MOST_POINTS:
            raise AccuracyError("The moments of a sampled mechanism are out of reach at so large a tilt.")
        index = np.arange(first, last + 1)
        x: Floats = index.astype(np.float64) * step
        losses = self.losses(np.add(x, 1j * rule.shift, dtype=np.complex128) if rule.shift else x)
        # |phi(x + i a)| = phi(x) e^{a^2 / 2}, and |w(x + i a)| is at most w(x) e^{a^2 / (2 s^2)}
        log_sizes = rho * losses.real - 0.5 * x * x + 0.5 * rule.shift**2 + math.log(step) - self._log_mass
        ends = (self.losses(x[[0, -1]]) if rule.shift else losses[[0, -1]]).real
        real = rho * ends - 0.5 * x[[0, -1]] ** 2 + math.log(step) - self._log_mass
        if self.label is not None:
            log_sizes += self.label.logs(x) + self.label.log_growth(np.array([rule.shift]))
            # at the end towards which w falls it is at most what it is there, at the other one at most 1
            end = 0 if self.label.is_large else -1
            real[end] += self.label.logs(x[[end]])[0] if self.label.falls_at(float(x[end])) else 0.0
        log_factor = float(self._log_growth(rho, np.array([rule.shift]))[0])
        rates = self._fall_left(rho, float(x[0])), self._fall_right(rho, float(x[-1]))
        if min(rates) <= 0:
            raise AccuracyError("The moments of a sampled mechanism are out of reach at so large a tilt.")
        beyond = [float(e) - math.log(-math.expm1(-r * step)) for e, r in zip(real, rates, strict=True)]
        left_out = float(np.logaddexp(beyond[0], beyond[1])) + log_factor + SUM_SLACK
        return RulePoints(index, x, log_sizes, losses.astype(np.complex128), left_out)

    def _fall_left(self, rho: float, x: float) -> float:
        """A rate at which terms fall to the left of x, and at least which they fall beyond."""
        more = self.label.rate(x) if self.label is not None and self.label.is_large else 0.0
        return -x - max(-rho, 0.0) * self.slope(x) + more

    def _fall_right(self, rho: float, x: float) -> float:
        """The same to the right."""
        more = self.label.rate(x) if self.label is not None and not self.label.is_large else 0.0
        return x - max(rho, 0.0) * self.widest + more

    def _range(self, rho: float) -> tuple[float, float]:
        """Ends beyond which terms are negligible. Heuristic: affects speed only, as what is left out is bounded."""
        centre, label = max(rho, 0.0) * self.widest, self.label
        left, right = -_REACH, centre + _REACH
        if label is not None and label.is_large:
            right = max(right, label.cut + _REACH)
            if rho >= 0:
                return max(left, label.cut / (1 + label.width**2) - label.reach(_REACH)), right
        elif label is not None:
            peak = (centre * label.width**2 + label.cut) / (1 + label.width**2)
            right = min(right, max(peak, label.cut) + label.reach(_REACH))
        for _ in range(60):
            fall = self._fall_left(rho, left)
            if fall >= _STEEP and left**2 / 2 - max(-rho, 0.0) * self.slope(left) * -left > _REACH**2 / 2:
                break
            left *= 1.15
        return left, right

    @cached_property
    def _log_mass(self) -> float:
        """log of the normalisation: sqrt(2 pi), or spacing times the sum over the lattice, which differs from it by theta."""
        if self.spacing is None:
            return _LOG_ROOT_TAU
        reach = math.ceil(12.0 / self.spacing) + 1
        x = np.arange(-reach, reach + 1) * self.spacing
        return math.log(self.spacing * math.fsum(np.exp(-0.5 * x * x)))

    def log_moment(self, rho: float) -> tuple[float, float]:
        """An estimate of log G(rho), and an upper bound of it."""
        convex = self.log_moment_convex(rho)
        try:
            rule = self.rule(rho, 0.0)
            points = self.points(rho, rule)
        except AccuracyError:
            return convex, convex
        top = float(points.log_sizes.max())
        inside = top + math.log(math.fsum(np.exp(points.log_sizes - top)))
        size = abs(top) + abs(rho) * (1 + float(np.abs(points.losses).max(initial=0.0))) + float(points.x[-1]) ** 2
        # G <= G_h + error G + left out
        upper = float(np.logaddexp(inside, points.log_left_out)) - math.log1p(-math.exp(rule.log_error))
        return inside, min(upper + POWER_SLACK * (1 + size), convex)

    def log_moment_convex(self, rho: float) -> float:
        """log G(rho) <= 0 in [0, 1]; elsewhere t^rho is convex: f^rho <= sum_i p_i exp(rho (m_i x - m_i^2 / 2)); and f >= p_0
        where m_0 = 0."""
        if 0 <= rho <= 1:
            return 0.0
        logs, m = self.floats
        exponents = logs + m * m * (rho * (rho - 1) / 2)
        top = float(exponents.max())
        found = top + math.log(math.fsum(np.exp(exponents - top)))
        if rho < 0 and not self.squares[0]:
            found = min(found, rho * float(logs[0]))
        return found + POWER_SLACK * (1 + abs(found) + float(np.abs(exponents).max())) + UNDERFLOW

    def mean_variance(self, rho: float) -> tuple[float, float]:
        """Mean and variance of log f under the distribution proportional to g. Heuristic: affects speed only."""
        points = self.points(rho, self.rule(rho, 0.0))
        weights = np.exp(points.log_sizes - points.log_sizes.max())
        weights /= weights.sum()
        values = points.losses.real
        mean = float(weights @ values)
        return mean, float(weights @ (values - mean) ** 2)


def _rounded_down(step: float) -> float:
    """A dyadic number of ten bits, so that its multiples are exact doubles."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 1024), exponent - 10)
