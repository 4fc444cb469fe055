"""The privacy loss of a mixture of Gaussians against one of them, by its moment function: log f of docs/theory/smooth.md.

Removal (P against Q) has M(z) = G(z + 1) and the loss log f; addition (Q against P) has M(z) = G(-z) and the loss -log f; G(p) =
E_Q f^p by the trapezoidal rule (trapezoidal_rule.py).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import ball, precision
from exactdp.cache import Recent
from exactdp.doubles import FORMULA_SLACK, POWER_SLACK, UNIT, Complexes, Floats, root
from exactdp.mechanisms.gaussian_mixture_tails import delta_of_one
from exactdp.mechanisms.loss import Loss, Tilted
from exactdp.mechanisms.rule_table import RuleTable
from exactdp.mechanisms.rule_weights import WORKING_BITS, Weighed, weigh
from exactdp.mechanisms.step_labels import StepLabel
from exactdp.mechanisms.trapezoidal_rule import DIGITS, Mixture, Rule

_LONGEST_REAL = 2500  # points of a rule on the real line from which on the shifted line is used
_FIRST_LEVEL = 8.0  # kappa m up to which the first rule serves, each later one four times as far
_LARGEST_SHIFT = 1.5  # a shift a multiplies sizes by e^{a^2 / 2}
_LARGEST_DECAY = 4.0  # the same where sizes are only bounded
_LONGEST_DECAY = 20_000  # points of a rule for such a bound
_NOT_ZERO = 1e-9  # keeps a quotient finite where nothing limits the shift
_ANY = 1e200  # a frequency above all others
_ROUGH = 30.0  # -log of the error of a bound of |cf|: a hundred thousand copies of it are nothing
_HELD = 24


class MixtureLoss(Loss):
    """log f under P, or with `backward` -log f under Q."""

    bends = True

    def __init__(self, mixture: Mixture, backward: bool = False) -> None:
        self.mixture, self._backward = mixture, backward
        self.widest, self.is_labelled = float(mixture.squares[-1]), mixture.label is not None
        self._rules: Recent[tuple[Fraction, Rule], Weighed] = Recent(_HELD)
        self._float_moments: Recent[float, tuple[float, float]] = Recent(4096)
        if not mixture.squares[0]:
            with precision(WORKING_BITS):
                edge = ball(mixture.weights[0]).log()
                self.ends = (None, -edge) if backward else (edge, None)

    @cached_property
    def _reverse(self) -> MixtureLoss:
        result = MixtureLoss(self.mixture, not self._backward)
        result.__dict__["_reverse"] = self
        return result

    def reversed(self) -> Loss:
        """The other direction."""
        return self._reverse

    def rho(self, z: Fraction) -> Fraction:
        """The power of f whose mean is M(z)."""
        return -z if self._backward else z + 1

    def log_moment(self, z: Fraction) -> arb:
        """log G by the rule, its error and what the range leaves out in the radius."""
        return self.log_power(self.rho(z)) - self.log_share

    def log_power(self, rho: Fraction) -> arb:
        """log G(rho), which is not divided by the share of a label."""
        if rho in (0, 1) and self.mixture.label is None:
            return arb(0)
        return self.weighed(rho, self.mixture.rule(float(rho), 0.0)).log_total

    @cached_property
    def log_share(self) -> arb:
        """log of the probability of the label; 0 without one."""
        with precision(WORKING_BITS):
            return self.log_power(Fraction(0 if self._backward else 1))

    @cached_property
    def _least_share(self) -> float:
        return float(self.log_share.lower()) - POWER_SLACK * (1 + abs(float(self.log_share.mid())))

    def log_moment_upper(self, z: float) -> float:
        """A double above log E e^{zL}."""
        # exact but for one rounding, which the slack covers: |K'| is at most the loss
        rho = -z if self._backward else z + 1
        upper = self._float_moments.get(rho, lambda: self.mixture.log_moment(rho))[1]
        upper -= self._least_share if self.mixture.label is not None else 0.0
        return upper + 4 * UNIT * (1 + abs(z)) * self.mixture.widest**2 * (2 + abs(rho))

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance under the tilt."""
        rho = -tilt if self._backward else tilt + 1
        mean, variance = self.mixture.mean_variance(rho)
        return (-mean if self._backward else mean), variance

    def delta(self, y: arb) -> tuple[arb, arb] | None:
        """Normal tails on both sides of the output whose loss is y."""
        if self.mixture.spacing is not None or self.mixture.label is not None:
            return None
        return delta_of_one(self.mixture, y, self._backward)

    @property
    def may_be_labelled(self) -> bool:
        """Whether telling steps apart is of use: log f is unbounded under P, not -log f under Q; discrete noise has no decay."""
        return not self.is_labelled and not self._backward and self.mixture.spacing is None

    def output_at(self, loss: float) -> float:
        """Where log f is about so large. Heuristic: affects speed and accuracy only."""
        m, log_rate = self.mixture.widest, float(self.mixture.floats[0][-1])
        # f is at least that rate times e^{m x - m^2 / 2}
        reach = 40.0 + m + 2 * (abs(loss) - log_rate) / m
        return root(lambda x: float(self.mixture.losses(np.array([x])).real[0]) - loss, -reach, reach)

    def labelled(self, cut: float, width: float) -> tuple[MixtureLoss, MixtureLoss]:
        """Small steps and large steps, each with `log_share`, the probability of being one."""
        labels = (StepLabel(cut, width, is_large) for is_large in (False, True))
        small, large = (MixtureLoss(replace(self.mixture, label=label), self._backward) for label in labels)
        return small, large

    def tilted(self, tilt: Fraction) -> Tilted:
        """The rule's points with tilted weights."""
        return TiltedMixture(self, tilt, self._backward)

    def weighed(self, rho: Fraction, rule: Rule) -> Weighed:
        """The weights of a rule, computed once."""
        return self._rules.get((rho, rule), lambda: weigh(self.mixture, rho, rule))


class TiltedMixture(Tilted):
    """The loss under a tilt: the rules' points with weights proportional to phi f^rho."""

    by_frequency = True

    def __init__(self, loss: MixtureLoss, tilt: Fraction, backward: bool) -> None:
        self._loss, self._backward = loss, backward
        self._rho = loss.rho(tilt)
        mixture, rho = loss.mixture, float(self._rho)
        mean = mixture.mean_variance(rho)[0]
        self._centre = Fraction(mean)
        with precision(WORKING_BITS):
            self.anchor = ball(-self._centre if backward else self._centre)
        self._m = mixture.widest
        self._tables: dict[int, RuleTable] = {}
        self.terms = 1 + len(mixture.points(rho, mixture.rule(rho, 0.0)).x) // 128

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        """By the rule that serves each frequency."""
        logs, relative = np.empty(len(omega), dtype=np.complex128), np.empty(len(omega))
        with np.errstate(divide="ignore"):
            levels = np.ceil(np.log(omega * (self._m / _FIRST_LEVEL)) / math.log(4.0))
        levels = np.minimum(np.maximum(levels, 0.0), self._last_level).astype(np.int64)
        for level in np.unique(levels).tolist():
            here = np.flatnonzero(levels == level)
            logs[here], relative[here] = self._table(level).evaluate(omega[here])
        return (logs.conj() if self._backward else logs), relative

    def values(self) -> tuple[Floats, Floats, float, float, float] | None:
        """For discrete noise its outputs, which are the rule's points."""
        if self._loss.mixture.spacing is None:
            return None
        found = self._table(0)
        values: Floats = -found.values if self._backward else found.values
        return values, found.weights, 2 * UNIT * float(np.max(np.abs(values))), 4 * UNIT, found.doubt

    @cached_property
    def _last_level(self) -> int:
        """The level that serves all higher frequencies: from it on the shifted line, or for discrete noise the first."""
        if self._loss.mixture.spacing is not None:
            return 0
        for level in range(1, 60):
            if self._points(self._real_rule(level)) > _LONGEST_REAL:
                return level
        return 60

    def _points(self, rule: Rule) -> float:
        reach = abs(float(self._rho)) * self._m + 25.0
        return min(reach, 60.0) / rule.step

    def _real_rule(self, level: int) -> Rule:
        kappa = _FIRST_LEVEL * 4.0**level / self._m * (1 + FORMULA_SLACK)
        return self._loss.mixture.rule(float(self._rho), kappa)

    def _table(self, level: int) -> RuleTable:
        if level not in self._tables:
            rho = float(self._rho)
            if level and level == self._last_level:
                most = _LARGEST_SHIFT * math.sqrt(self._narrower)
                shift = _dyadic(
                    min(most, 0.45 * math.pi / self._m, 2 / (_NOT_ZERO + self._m * math.sqrt(max(-rho, 0.0))))
                )
                rule = self._loss.mixture.rule(rho, _ANY, shift)
            else:
                rule = self._real_rule(level)
            weighed = self._loss.weighed(self._rho, rule)
            self._tables[level] = RuleTable(weighed, self._loss.log_power(self._rho), rule, self._centre)
        return self._tables[level]

    def log_decay(self, omega: float) -> float:
        """For a shift a, the sum of the moduli of the terms falls with the frequency, as arg f >= 0 there (Theorem S5)."""
        mixture, rho = self._loss.mixture, float(self._rho)
        if mixture.spacing is not None:
            return 0.0
        log_moment = self._log_moment
        largest = min(3.0, 0.6 * math.pi / self._m, _LARGEST_DECAY * math.sqrt(self._narrower))
        best = 0.0
        for shift in {_dyadic(min(omega * slope, largest)) for slope in self._slopes}:
            if not shift > 1e-4:
                continue
            rule = mixture.rule(
                rho, omega / 2, shift, _ROUGH if mixture.label is None else DIGITS
            )  # what crosses the real line grows with half of the frequency
            if rule.step * _LONGEST_DECAY < abs(rho) * self._m + 25.0:
                continue
            points = mixture.points(rho, rule)
            falling = points.log_sizes - omega * points.losses.imag
            top = float(falling.max())
            found = top + math.log(math.fsum(np.exp(falling - top)))
            found = float(np.logaddexp(found, points.log_left_out)) - log_moment
            found = float(np.logaddexp(found, rule.log_error))
            size = (
                abs(log_moment) + (1 + abs(rho)) * (1 + float(np.abs(points.losses).max())) + float(points.x[-1]) ** 2
            )
            best = min(best, found + POWER_SLACK * (1 + size))
        return best

    @cached_property
    def _log_moment(self) -> float:
        """A lower bound of log G(rho), but for a few units."""
        rule = self._loss.mixture.rule(float(self._rho), 0.0)
        with precision(WORKING_BITS):
            return float(self._loss.weighed(self._rho, rule).log_total.lower())

    @cached_property
    def _slopes(self) -> list[float]:
        """Shifts to try, for each unit of frequency: around the tilted median and mean of the derivative of log f.

        Heuristic: affects speed only.
        """
        mixture, rho = self._loss.mixture, float(self._rho)
        points = mixture.points(rho, mixture.rule(rho, 0.0))
        weights = np.exp(points.log_sizes - points.log_sizes.max())
        weights /= weights.sum()
        slopes = np.gradient(points.losses.real, points.x)
        middle = float(slopes[np.searchsorted(np.cumsum(weights), 0.5)])
        return [slope * self._narrower for slope in (middle, 2 * middle, float(weights @ slopes))]

    @property
    def _narrower(self) -> float:
        """By how much a label shortens shifts: e^{a^2 / 2} becomes e^{a^2 / (2 s)}. Heuristic: affects speed only."""
        label = self._loss.mixture.label
        return 1.0 if label is None else label.width**2 / (1 + label.width**2)


def _dyadic(value: float) -> float:
    """A number of eight bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 256), exponent - 8)
