"""The privacy loss of a sampled step whose output is below a cut: log f(x) under P, given x < cut, and given a label as well.

Whatever the tilt, such a loss does not reach beyond log f(cut), so that a tilt which suits a question is not drawn to outputs far
beyond it (docs/theory/smooth.md, sections 5 and 6).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from itertools import groupby

import numpy as np
from flint import acb, arb

from exactdp.balls import around_zero, ball, precision
from exactdp.cache import Recent
from exactdp.doubles import POWER_SLACK, SUM_SLACK, UNIT, Complexes, Floats
from exactdp.errors import AccuracyError
from exactdp.mechanisms.even_frequencies import even_means
from exactdp.mechanisms.gauss_panels import (
    DIGITS,
    INSIDE,
    LOG_ROOT_TAU,
    MORE_DIGITS,
    CutMixture,
    Panels,
    RelativeError,
)
from exactdp.mechanisms.loss import Loss, Tilted
from exactdp.mechanisms.rule_table import RuleTable
from exactdp.mechanisms.rule_weights import WORKING_BITS, Weighed, log_ratio
from exactdp.mechanisms.step_labels import Band
from exactdp.mechanisms.trapezoidal_rule import Mixture

_FIRST_LEVEL = 8.0  # kappa times the reach of the loss up to which the first panels serve, each later ones twice as far
_SHIFTS = np.geomspace(0.01, 1.0, 11)  # shifts of the contour, relative to the largest
_LARGEST_SHIFT = 3.0
_CELLS, _RISING = 2048, 256  # in which the shifted line and the way to it are cut for bounds
_ALONE = 8_000_000  # sines that may be computed one by one


class CutMixtureLoss(Loss):
    """log f under P, given that the output is below the cut, and that it has the label of a band."""

    bends = True
    is_labelled = True

    def __init__(self, mixture: Mixture, cut: float, band: Band | None = None) -> None:
        self.cut = CutMixture(mixture, cut, band)
        with precision(WORKING_BITS):
            edge = ball(mixture.weights[0]).log()
        self.ends = (edge, None)
        self.reach = float(mixture.losses(np.array([cut])).real[0]) - float(edge.mid())
        self.widest = self.reach**2 / 4
        self._panels: Recent[int, Panels] = Recent(64)
        self._weighed: Recent[Fraction, Weighed] = Recent(8)
        self._tilted: Recent[Fraction, TiltedCut] = Recent(8)
        self._uppers: Recent[float, float] = Recent(4096)

    @cached_property
    def beyond(self) -> tuple[arb, arb]:
        """The probabilities of outputs from the cut on, under P and under Q."""
        mixture = self.cut.mixture
        with precision(WORKING_BITS):
            half, at = arb(2).sqrt(), arb(self.cut.cut)
            parts = zip(mixture.weights, mixture.squares, strict=True)
            mixed = sum((ball(p) * ((at - ball(s).sqrt()) / half).erfc() / 2 for p, s in parts), arb(0))
            return mixed, (at / half).erfc() / 2

    @cached_property
    def at_cut(self) -> arb:
        """The loss at the cut, which all losses beyond exceed."""
        with precision(WORKING_BITS):
            parts = zip(self.cut.mixture.weights, self.cut.mixture.squares, strict=True)
            return log_ratio([(ball(p), ball(s).sqrt(), ball(s) / 2) for p, s in parts], arb(self.cut.cut))

    @cached_property
    def log_share(self) -> arb:
        """log of the probability under P of an output below the cut, with the label."""
        if self.cut.band is not None:
            return self.power(Fraction(1)).log_total
        with precision(WORKING_BITS):
            return (-self.beyond[0]).log1p()

    def power(self, rho: Fraction) -> Weighed:
        """Points and terms for the moment of a real power."""
        return self._weighed.get(rho, lambda: self._weigh(rho))

    def _weigh(self, rho: Fraction) -> Weighed:
        return self.cut.weigh(rho, self.cut.panels(float(rho), 0.0, MORE_DIGITS), MORE_DIGITS)

    def log_moment(self, z: Fraction) -> arb:
        """log E e^{zL} by panels, their error in the radius."""
        with precision(WORKING_BITS):
            return self.power(z + 1).log_total - self.log_share

    def log_moment_upper(self, z: float) -> float:
        """A double above log E e^{zL}."""
        return self._uppers.get(z, lambda: self._log_moment_upper(z))

    def _log_moment_upper(self, z: float) -> float:
        rho = z + 1
        if rho == 1:
            return 0.0
        less = float(self.log_share.lower())
        less -= UNIT * (1 + abs(less))
        size = abs(z) * (1 + self.reach)
        if rho <= 1:  # E_Q f^rho is at most 1 in [0, 1], and f at least p_0
            found = 0.0 if rho >= 0 else rho * float(self.cut.mixture.floats[0][0])
            return found - less + POWER_SLACK * (1 + size)
        return self.cut.log_power_upper(rho, self._panels_for(rho)) - less + POWER_SLACK * (1 + size)

    def _panels_for(self, rho: float) -> Panels:
        """Those of a power of two serve smaller powers as well."""
        level = math.ceil(math.log2(max(rho, 1.0)))
        return self._panels.get(level, lambda: self.cut.panels(2.0**level, 0.0))

    def log_powers_upper(self, rhos: list[float]) -> list[float]:
        """Doubles above log E_Q f^rho w 1{x < cut} for ascending rho >= 1: moments that are not divided by the share."""
        shared = groupby(rhos, key=lambda rho: math.ceil(math.log2(max(rho, 1.0))))
        groups = [list(group) for _, group in shared]
        return [x for group in groups for x in self.cut.log_power_uppers(group, self._panels_for(group[0]))]

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance under the tilt."""
        rho = tilt + 1
        x, log_weights = self.cut.points(self._panels_for(rho))
        logs = self.cut.log_sizes(x, rho) + log_weights
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        values = self.cut.mixture.losses(x).real
        mean = float(weights @ values)
        return mean, float(weights @ (values - mean) ** 2)

    def tilted(self, tilt: Fraction) -> TiltedCut:
        """The points of panels with tilted weights."""
        return self._tilted.get(tilt, lambda: TiltedCut(self, tilt))


class TiltedCut(Tilted):
    """The loss under a tilt above -1: points of panels with weights proportional to phi f^rho."""

    by_frequency = True

    def __init__(self, loss: CutMixtureLoss, tilt: Fraction) -> None:
        self._loss, self._rho = loss, tilt + 1
        self._centre = Fraction(loss.mean_variance(float(tilt))[0])
        with precision(WORKING_BITS):
            self.anchor = ball(self._centre)
        self._tables: dict[int, RuleTable] = {}
        # doubles need fewer panels than the moment has
        self.terms = 1 + int(len(loss.power(self._rho).terms) * DIGITS / MORE_DIGITS) // 128

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        """By panels that serve the highest frequency: they are few, and their balls cost more than sums over them."""
        highest = float(omega.max(initial=0.0)) * self._loss.reach / _FIRST_LEVEL
        return self._table(max(math.ceil(math.log2(max(highest, 1.0))), 0)).evaluate(omega, _ALONE)

    def _table(self, level: int) -> RuleTable:
        if level not in self._tables:
            kappa = _FIRST_LEVEL * 2.0**level / self._loss.reach * (1 + SUM_SLACK)
            found, log_moment, log_error = self._rule(kappa, DIGITS)
            error = float(np.logaddexp(log_error, math.log(log_moment.rad())))
            self._tables[level] = RuleTable(found, log_moment, RelativeError(error + SUM_SLACK), self._centre)
        return self._tables[level]

    def _rule(self, kappa: float, digits: float) -> tuple[Weighed, arb, float]:
        """Points and terms for frequencies up to kappa, log of the moment, and log of the rule's error relative to it."""
        cut, log_moment = self._loss.cut, self._loss.power(self._rho).log_total
        panels = cut.panels(float(self._rho), kappa, digits)
        with precision(WORKING_BITS):
            log_error = panels.log_error - float(log_moment.lower()) + SUM_SLACK
        return cut.weigh(self._rho, panels, digits), log_moment, log_error

    def even_cf(self, step: arb, count: int, most: int) -> list[acb]:
        """E e^{i k step (L - anchor)} for k below `count`, in balls, which hold the error of the rule and what it leaves out; by
        at most so many terms."""
        with precision(WORKING_BITS):
            highest = float((count * step).upper()) * (1 + SUM_SLACK)
            found, log_moment, log_error = self._rule(highest, MORE_DIGITS)
            if count * len(found.terms) > most:
                raise AccuracyError("The Fourier sum of a sampled mechanism is too long for balls.")
            scale = (-log_moment).exp()
            values, weights = [x - self.anchor for x in found.losses], [term * scale for term in found.terms]
            error = around_zero(2 * (arb(found.log_left_out).exp() + arb(log_error).exp()))
            means = even_means(values, weights, step, count)
            return [mean + acb(error, error) for mean in means]

    def log_decay(self, omega: float) -> float:
        """The contour shifted by i a, and the way from the cut to it: both integrands fall with the frequency (Theorem S12)."""
        best = 0.0
        for logs, angles, size in self._lines:
            falling = logs - omega * angles
            top = float(falling.max())
            found = top + math.log(float(np.exp(falling - top).sum()) * (1 + SUM_SLACK))
            best = min(best, found + POWER_SLACK * (1 + size))
        return best

    @cached_property
    def _lines(self) -> list[tuple[Floats, Floats, float]]:
        """For each shift a: log of bounds of the integrand times the lengths of cells, relative to the moment, the least arg f in
        each cell, and the size of these logarithms.

        |f| and arg f rise along a shifted line; on the way to it from the cut |f| falls and arg f rises.
        """
        cut, rho = self._loss.cut, float(self._rho)
        first, m, band = cut.first, cut.mixture.widest, cut.band
        u = np.linspace(first, cut.cut, _CELLS + 1)
        with precision(WORKING_BITS):
            log_moment = float(self._loss.power(self._rho).log_total.lower())
        nearest = np.where(u[:-1] > 0, u[:-1], np.minimum(u[1:], 0.0))
        flat = np.log(np.diff(u)) - nearest**2 / 2
        flat = flat if band is None else flat + band.log_most(u[:-1], u[1:])
        below = cut.log_below(first, rho)
        size = abs(log_moment) + rho * (1 + self._loss.reach) + cut.cut**2
        result, grown = [], 0.0
        for shift in (min(_LARGEST_SHIFT, INSIDE / m) * _SHIFTS).tolist():
            y = shift * (np.arange(_RISING + 1) / _RISING) ** 2
            (line, turned), (way, turning) = cut.off_line(u, shift), cut.off_line(cut.cut, y)
            along = rho * line[1:] + flat
            up = rho * way[:-1] - cut.cut**2 / 2 + (y[1:] ** 2 - shift**2) / 2 + np.log(np.diff(y))
            if band is not None:  # |w| grows off the real line (Lemma S14)
                grown = float(band.log_growth(np.array([shift]))[0])
                up = up + band.log_most(u[-1:], u[-1:]) + band.log_growth(y[1:]) - grown
            logs = (
                np.concatenate([along, up, [below + LOG_ROOT_TAU]]) + shift**2 / 2 - LOG_ROOT_TAU - log_moment + grown
            )
            angles = np.concatenate([turned[:-1], turning[:-1], [0.0]])
            result.append((logs, np.maximum(angles * (1 - SUM_SLACK), 0.0), size + grown))
        return result
