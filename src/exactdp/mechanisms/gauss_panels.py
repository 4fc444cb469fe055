"""Moments of outputs below a cut: E_Q f(x)^p 1{x < cut} by the rule of Gauss and Legendre on panels, with its error.

A panel [c - s, c + s] with G points is off by at most 8 s M / (R^{2G-1} (R - 1)), M a bound of the integrand on the ellipse
around it whose half-axes are s (R + 1/R) / 2 and s (R - 1/R) / 2, for any R > 1 (docs/theory/smooth.md, Theorem S11). Outputs may
count with the probability of a label (section 6 there).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
from flint import arb
from scipy.special import log_ndtr

from exactdp.balls import around_zero, ball, precision
from exactdp.doubles import POWER_SLACK, SUM_SLACK, UNDERFLOW, Floats
from exactdp.errors import AccuracyError
from exactdp.mechanisms.rule_weights import WORKING_BITS, Weighed, log_ratio
from exactdp.mechanisms.step_labels import Band
from exactdp.mechanisms.trapezoidal_rule import Mixture

DIGITS, MORE_DIGITS = 46.0, 70.0
"""-log of the error that panels aim at, relative to the moment: for sums in doubles, and for moments and sums in balls."""

POINTS = 20
"""Points of one panel."""

FIRST = -12.0
"""Outputs below this are left out: e^{-12^2 / 2} is below e^{-MORE_DIGITS}."""

INSIDE = 0.499 * math.pi
"""The largest m times the imaginary part of an output: up to pi / 2 the real part of f is positive."""

LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)

_BEGIN = 24  # panels to begin with
_HALVINGS = 12
_MOST_POINTS = 12_000
_RADII = np.array([1.7, 2.2, 3.0, 4.0, 6.0, 9.0, 14.0])  # R that are tried
_PIECES = 6  # of the interval in which the integrand is bounded


@dataclass(frozen=True)
class Panels:
    """Ends of panels, exact doubles, and log of the error of the rule on all of them together."""

    edges: Floats
    log_error: float


@dataclass(frozen=True)
class RelativeError:
    """log of the error of a rule on the real line, relative to the moment."""

    log_error: float
    shift: float = 0.0


@dataclass(frozen=True)
class _Ellipses:
    """For every radius, panel and end of a piece: log f, its slope, the rest of log phi f^rho w; for every piece a bound of that
    rest's slope, and its length; for every radius and panel a bound of arg f for each unit of kappa, and log of all factors that
    do not depend on the power."""

    losses: Floats
    slopes: Floats
    flat: Floats
    rates: Floats
    lengths: Floats
    turn: Floats
    fixed: Floats

    def log_errors(self, rho: float, kappa: float) -> Floats:
        """log of bounds of the error on each panel.

        On [u, v] log phi f^rho w rises at most at the rate rho (log f)'(v) - u + (log w)'(u). Off the real line |f| is at most
        what it is on it, and its argument at most Im x min(m, f' / p_0).
        """
        sizes = rho * self.losses[..., :-1] + self.flat[..., :-1]
        rise = np.maximum(rho * self.slopes[..., 1:] + self.rates, 0.0) * self.lengths
        top = (sizes + rise).max(axis=-1)
        logs = top + kappa * self.turn + self.fixed
        logs += POWER_SLACK * (1 + np.abs(top) + 2 * np.abs(self.flat).max(axis=-1) + kappa * self.turn)
        result: Floats = logs.min(axis=0)
        return result


@dataclass(frozen=True)
class CutMixture:
    """A mixture that has a component without a shift, and the output, an exact double, from which on outputs are cut off. With a
    `band` outputs count with the probability of that label."""

    mixture: Mixture
    cut: float
    band: Band | None = None

    @cached_property
    def first(self) -> float:
        """Where panels begin. Any place is valid: what is below is bounded."""
        first = FIRST if self.band is None else max(FIRST, self.band.first(-FIRST))
        return min(first, self.cut - 1.0)

    @cached_property
    def least(self) -> float:
        """p_0, the weight of the component without a shift, rounded down: f is never less."""
        return float(self.mixture.weights[0]) * (1 - 4 * SUM_SLACK)

    def slopes(self, x: Floats) -> Floats:
        """The derivative of log f."""
        logs, m = self.mixture.floats
        exponents = np.multiply.outer(m, x) + (logs - 0.5 * m * m)[:, None]
        weights = np.exp(exponents - exponents.max(axis=0))
        result: Floats = (m @ weights) / weights.sum(axis=0)
        return result

    def log_sizes(self, x: Floats, rho: float) -> Floats:
        """log phi f^rho w, but for the constant of phi."""
        sizes: Floats = rho * self.mixture.losses(x).real - 0.5 * x * x
        return sizes if self.band is None else sizes + self.band.logs(x)

    def off_line(self, u: Floats | float, y: Floats | float) -> tuple[Floats, Floats]:
        """log |f| and arg f at u + iy, within a few units of rounding of 1 and of itself, for 0 <= m y <= INSIDE."""
        logs, m = self.mixture.floats
        parts = [
            (np.exp(log + mi * u - mi * mi / 2), mi * y) for log, mi in zip(logs.tolist(), m.tolist(), strict=True)
        ]
        real, imag = sum(size * np.cos(turn) for size, turn in parts), sum(size * np.sin(turn) for size, turn in parts)
        return np.log(np.hypot(real, imag)), np.arctan2(imag, real)

    def panels(self, rho: float, kappa: float, digits: float = DIGITS) -> Panels:
        """Panels for the powers rho + i kappa', |kappa'| at most kappa, halved until the error is about e^{-digits}.

        Any panels are valid; only accuracy and speed depend on them.
        """
        aim = self.estimate(rho) - digits - math.log(_BEGIN)
        edges = np.linspace(self.first, self._last(rho, aim), _BEGIN + 1)
        for _ in range(_HALVINGS):
            errors = self.log_errors(edges, rho, kappa)
            coarse = errors > aim
            if not coarse.any():
                break
            edges = np.sort(np.concatenate([edges, (edges[:-1] + edges[1:])[coarse] / 2]))
            if len(edges) * POINTS > _MOST_POINTS:
                raise AccuracyError("The moments of a sampled mechanism are out of reach at so large a tilt.")
        return Panels(edges, float(np.logaddexp.reduce(self.log_errors(edges, rho, kappa))))

    def _last(self, rho: float, aim: float) -> float:
        """Where panels end: at the cut, or where the label leaves hardly anything. Any place is valid."""
        if self.band is None:
            return self.cut
        ends = np.linspace(min(max(self.band.upper, self.first + 1.0), self.cut), self.cut, 64)
        return next((end for end in ends.tolist() if self.log_above(end, rho) <= aim), self.cut)

    def log_above(self, last: float, rho: float) -> float:
        """log of a bound of what outputs from `last` to the cut add: w is largest at `last`, above the band, f^rho at the cut."""
        if self.band is None or last >= self.cut:
            return -math.inf
        power, mass = rho * float(self.mixture.losses(np.array([self.cut])).real[0]), float(log_ndtr(-last))
        label = float(self.band.log_most(np.array([last]), np.array([self.cut]))[0])
        return power + mass + label + POWER_SLACK * (1 + abs(power) + abs(mass) + abs(label))

    def log_outside(self, panels: Panels, rho: float) -> float:
        """log of a bound of what all outputs below the cut add that panels do not cover."""
        return float(
            np.logaddexp(self.log_below(panels.edges[0].item(), rho), self.log_above(panels.edges[-1].item(), rho))
        )

    def estimate(self, rho: float) -> float:
        """log of the moment, about. Heuristic: affects speed and accuracy only."""
        x = np.linspace(self.first, self.cut, 1025)
        sizes = self.log_sizes(x, rho)
        top = float(sizes.max())
        return top + math.log(float(np.exp(sizes - top).sum()) * (x[1] - x[0])) - LOG_ROOT_TAU

    def log_errors(self, edges: Floats, rho: float, kappa: float) -> Floats:
        """log of bounds of the error of the rule on each panel, rho >= 0 and |kappa'| at most kappa (Theorem S11)."""
        return self._ellipses(edges).log_errors(rho, kappa)

    def _ellipses(self, edges: Floats) -> _Ellipses:
        """What is known of the integrand around panels, for all powers."""
        radii = _RADII[:, None]
        middle, half = (edges[:-1] + edges[1:]) / 2, (edges[1:] - edges[:-1]) / 2
        along, across = half * (radii + 1 / radii) / 2, half * (radii - 1 / radii) / 2
        u = (middle - along)[..., None] + (2 * along)[..., None] * (np.arange(_PIECES + 1) / _PIECES)
        losses, slopes = (
            found.reshape(u.shape) for found in (self.mixture.losses(u.ravel()).real, self.slopes(u.ravel()))
        )
        grown = across**2 / 2
        flat, rates = -0.5 * u * u, -u[..., :-1]
        if self.band is not None:
            flat, rates = flat + self.band.logs(u), rates + self.band.rates(u[..., :-1])
            grown = grown + self.band.log_growth(across)
        # f' / p_0, or at most 1e9 times (log f)', which is above 320 times that (Theorem S11)
        with np.errstate(over="ignore"):
            turn = np.minimum(np.exp(losses[..., -1]) / self.least, 1e9)
        turn = across * np.minimum(turn * slopes[..., -1], self.mixture.widest)
        inside = self.mixture.widest * across < INSIDE
        fixed = grown + np.log(8 * half / (radii - 1)) - (2 * POINTS - 1) * np.log(radii) - LOG_ROOT_TAU
        return _Ellipses(losses, slopes, flat, rates, np.diff(u, axis=-1), turn, np.where(inside, fixed, np.inf))

    def log_below(self, first: float, rho: float) -> float:
        """log of a bound of what outputs below `first` add: f^rho there is at most what it is at its end."""
        power, mass = rho * float(self.mixture.losses(np.array([first])).real[0]), float(log_ndtr(first))
        if self.band is not None:
            mass = min(mass, self.band.log_mass_below(first))
        return power + mass + POWER_SLACK * (1 + abs(power) + abs(mass) + first * first)

    def points(self, panels: Panels) -> tuple[Floats, Floats]:
        """All points in doubles, and log of their weights."""
        nodes, weights = _rule()
        middle, half = (panels.edges[:-1] + panels.edges[1:]) / 2, np.diff(panels.edges) / 2
        x: Floats = (middle[:, None] + half[:, None] * nodes).ravel()
        return x, np.log(np.multiply.outer(half, weights)).ravel() - LOG_ROOT_TAU

    def log_power_upper(self, rho: float, panels: Panels) -> float:
        """A double above log of the moment of the power rho >= 0, by panels for rho or more."""
        return self.log_power_uppers([rho], panels)[0]

    def log_power_uppers(self, rhos: list[float], panels: Panels) -> list[float]:
        """The same for several powers."""
        x, log_weights = self.points(panels)
        losses, flat = self.mixture.losses(x).real, self.log_sizes(x, 0.0) + log_weights
        around, result = self._ellipses(panels.edges), []
        for rho in rhos:
            sizes = rho * losses + flat
            errors = around.log_errors(rho, 0.0)
            rest = float(np.logaddexp(np.logaddexp.reduce(errors), self.log_outside(panels, rho)))
            top = float(sizes.max())
            found = float(np.logaddexp(top + math.log(math.fsum(np.exp(sizes - top))), rest))
            # points are off by a few units of themselves, which moves log f^rho by as much times its slope
            moved = rho * self.mixture.widest * abs(self.cut) + self.cut**2
            if self.band is not None:  # and log w by as much times its own
                moved += self.cut**2 / self.band.width**2
            result.append(found + POWER_SLACK * (1 + abs(top) + moved))
        return result

    def weigh(self, rho: Fraction, panels: Panels, digits: float = DIGITS) -> Weighed:
        """The points of panels with their terms in balls, without those that are negligible."""
        x, log_weights = self.points(panels)
        sizes = self.log_sizes(x, float(rho)) + log_weights
        top = float(sizes.max())
        keep = sizes > top + math.log(float(np.exp(sizes - top).sum())) - digits - math.log(len(x))
        dropped = float(np.logaddexp.reduce(sizes[~keep])) if not keep.all() else -math.inf
        dropped += POWER_SLACK * (1 + abs(top)) + SUM_SLACK
        log_left = float(np.logaddexp(dropped, self.log_outside(panels, float(rho))))
        kept = keep.reshape(-1, POINTS)
        with precision(WORKING_BITS):
            parts = zip(self.mixture.weights, self.mixture.squares, strict=True)
            components = [(ball(p), ball(s).sqrt(), ball(s) / 2) for p, s in parts]
            power, root_tau = ball(rho), (2 * arb.pi()).sqrt()
            losses, terms = [], []
            for k in np.flatnonzero(kept.any(axis=1)).tolist():
                low, high = arb(float(panels.edges[k])), arb(float(panels.edges[k + 1]))
                middle, half = (low + high) / 2, (high - low) / 2
                for j in np.flatnonzero(kept[k]).tolist():
                    node, weight = _balls()[j]
                    at = middle + half * node
                    loss = log_ratio(components, at)
                    losses.append(loss)
                    term = (power * loss - at * at / 2).exp() * (half * weight / root_tau)
                    terms.append(term if self.band is None else term * self.band.ball(at))
            total = sum(terms, arb(0))
            log_known = float(total.log().lower()) - POWER_SLACK * (1 + abs(top))
            doubt = math.exp(panels.log_error - log_known) + math.exp(log_left - log_known) + UNDERFLOW
            if not doubt < SUM_SLACK:
                raise AccuracyError("The moments of a sampled mechanism are out of reach at so large a tilt.")
            log_total = (total * (1 + around_zero(arb(2 * doubt)))).log()
        return Weighed(losses, terms, log_total, log_left - log_known)


@cache
def _balls() -> list[tuple[arb, arb]]:
    with precision(WORKING_BITS):
        return [arb.legendre_p_root(POINTS, k, weight=True) for k in reversed(range(POINTS))]


@cache
def _rule() -> tuple[Floats, Floats]:
    """Points of the rule on [-1, 1], ascending, and their weights."""
    return np.array([float(x.mid()) for x, _ in _balls()]), np.array([float(w.mid()) for _, w in _balls()])
