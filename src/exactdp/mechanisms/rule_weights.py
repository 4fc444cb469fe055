"""The terms of the trapezoidal rule for a mixture of Gaussians, in balls (trapezoidal_rule.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import acb, arb

from exactdp.balls import around_zero, ball, precision
from exactdp.doubles import POWER_SLACK, SUM_SLACK, Bools
from exactdp.errors import AccuracyError
from exactdp.mechanisms.trapezoidal_rule import DIGITS, Mixture, Rule, RulePoints

WORKING_BITS = 160
"""Working precision of the weights of a rule."""

_MOST_BALLS = 6000  # points whose weights are computed in balls


@dataclass(frozen=True)
class Weighed:
    """A rule's terms phi(x) f(x)^rho at kappa = 0, divided by G(rho) or by their total: log f in two parts and weights.

    `log_total` is log of the total of the terms on the real line (a ball that holds log G(rho)), or 0 on a shifted one.
    """

    losses: list[arb] | list[acb]
    terms: list[arb] | list[acb]
    log_total: arb
    log_left_out: float
    """log of a bound of what is left out, relative to G(rho)."""


def weigh(mixture: Mixture, rho: Fraction, rule: Rule) -> Weighed:
    """The terms of a rule in balls, without those that are negligible."""
    points = mixture.points(float(rho), rule)
    log_moment = mixture.log_moment(float(rho))[0]
    keep, log_left_out = _negligible(points, log_moment, float(rho))
    if int(keep.sum()) > _MOST_BALLS:
        raise AccuracyError("The moments of a sampled mechanism are out of reach at so large a tilt.")
    with precision(WORKING_BITS):
        components = [
            (ball(p), ball(s).sqrt(), ball(s) / 2) for p, s in zip(mixture.weights, mixture.squares, strict=True)
        ]
        step = arb(rule.step) if mixture.spacing2 is None else ball(mixture.spacing2).sqrt()
        power, factor = ball(rho), _factor(mixture, step)
        losses, terms = [], []
        for j in points.index[keep].tolist():
            x = j * step
            at = acb(x, arb(rule.shift)) if rule.shift else x
            loss = log_ratio(components, at)
            losses.append(loss)
            term = (power * loss - at * at / 2).exp() * factor
            terms.append(term if mixture.label is None else term * mixture.label.ball(at))
        if rule.shift:
            return Weighed(losses, terms, arb(0), log_left_out)
        total = sum(terms, arb(0))
        doubt = math.exp(log_left_out) + math.exp(rule.log_error)
        return Weighed(losses, terms, (total * (1 + around_zero(arb(2 * doubt)))).log(), log_left_out)


def log_ratio(components: list[tuple[arb, arb, arb]], at: arb | acb) -> arb | acb:
    """log f, without cancellation wherever f is: around 1, and far below the working precision."""
    if isinstance(at, arb):
        change = sum((p * (m * at - half).expm1() for p, m, half in components if m != 0), arb(0))
        if bool(abs(change) < 0.5):
            return change.log1p()
    return sum((p * (m * at - half).exp() for p, m, half in components), type(at)(0)).log()


def _factor(mixture: Mixture, step: arb) -> arb:
    """The step times the density's constant; for discrete noise 1 over the sum over its lattice."""
    if mixture.spacing2 is None:
        return step / (2 * arb.pi()).sqrt()
    # sum_k e^{-k^2 spacing^2 / 2} is Jacobi's theta_3(0) with tau = i spacing^2 / (2 pi)
    tau = acb(0, ball(mixture.spacing2) / (2 * arb.pi()))
    return 1 / acb(0).modular_theta(tau)[2].real


def _negligible(points: RulePoints, log_moment: float, rho: float) -> tuple[Bools, float]:
    """Which terms are kept, and log of a bound of all others, relative to G(rho)."""
    cut = log_moment - DIGITS - math.log(len(points.x))
    keep: Bools = points.log_sizes > cut
    size = abs(log_moment) + (1 + abs(rho)) * (1 + float(np.abs(points.losses).max())) + float(np.max(points.x**2))
    dropped = points.log_sizes[~keep]
    inside = float(np.logaddexp.reduce(dropped)) if len(dropped) else -math.inf
    total = float(np.logaddexp(inside, points.log_left_out)) - log_moment
    return keep, total + POWER_SLACK * size + SUM_SLACK
