"""Conditioning on the number of large steps, for a sampled mechanism: rarely large losses, mostly next to nothing.

    delta(y) = sum over k of P(k of n steps are large) delta_k(y),      delta_k given that k are:

sums of non-negative terms (docs/theory/smooth.md, Theorem S8). No single tilt suits a loss that bends: at the one whose mean is y
most of the mass can be far away on both sides, and the Fourier sum cancels. Given k, it is near y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.balls import BITS, precision
from exactdp.doubles import FORMULA_SLACK, POWER_SLACK, UNDERFLOW, UNIT, Floats
from exactdp.engine.lattice.tilts import short_double
from exactdp.engine.line.plan import FINEST
from exactdp.engine.line.protocol import AnyThreshold, OneByOne, Used
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss, log_largest_gain
from exactdp.engine.payoff import Payoff
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss

_BITS = 12  # of cuts and widths of labels
_WIDTH = 0.07  # of a label, divided by m: losses then change by so much, relatively
_SHARES = (0.04, 0.15, 0.3, 0.5, 0.7, 0.85)  # of the threshold, at which steps are called large
_NARROW = 1.5  # ends of a rung in which one cut is good for all thresholds
_MOST_LARGE = 64  # numbers of large steps that are told apart
_SETTLED = 1e-12  # doubt of all terms that wait, relative to the sum, at which they are left at their cheap bounds
_NEEDED = 1e-11  # of the sum: what smoothing may cost a term
_HOPELESS = 1e-6  # doubt of a term that was asked for, relative to the sum, at which other methods are to answer
_LOWEST_ORDER, _NEXT, _FINER = 0.25, 1.5, 1.2
_DEEPEST = 80.0  # -log of what small steps alone are bounded by at best
_SPARED = 6.0  # factors of e in cancellation that are as bad as the term without large steps
_MOST_TERMS = 12  # numbers of large steps that may matter
WORTH = math.log(30.0)
"""How much less cancellation must be expected for steps to be labelled at once, as a logarithm."""


@dataclass(frozen=True)
class Labelled:
    """A composition whose steps of one kind are labelled: what is left, small and large steps, and how many steps."""

    others: tuple[Part, ...]
    small: MixtureLoss
    large: MixtureLoss
    count: int
    orders: tuple[float, ...]
    """Orders of moments at which terms are bounded: the first of them for all, the others for small steps alone."""
    shared: int

    def given(self, k: int) -> TotalLoss:
        """The loss given that k steps are large."""
        parts = ((self.large, k), (self.small, self.count - k))
        return TotalLoss((*self.others, *(Part(loss, n) for loss, n in parts if n)))

    @cached_property
    def log_weights(self) -> list[arb]:
        """log of the probabilities that k steps are large, k = 0, 1, ...; the last one of all that are not told apart."""
        with precision(BITS):
            some, none = self.large.log_share, self.small.log_share
            logs = [
                (arb(math.comb(self.count, k))).log() + k * some + (self.count - k) * none
                for k in range(min(self.count, _MOST_LARGE) + 1)
            ]
            if self.count > _MOST_LARGE:  # at least k + 1 are large: the union over all choices of so many
                logs.append(arb(math.comb(self.count, len(logs))).log() + len(logs) * some)
            return logs

    def log_uppers(self, y: float) -> Floats:
        """log of upper bounds of all terms, by Theorem S6 for the best of several orders."""
        logs = np.array([float(x.upper()) for x in self.log_weights])
        logs += POWER_SLACK * (1 + np.abs(logs))
        many = min(self.count, _MOST_LARGE) + 1
        k = np.arange(many)[:, None]
        orders, (small, large, rest) = np.array(self.orders), self._moments
        constants = log_largest_gain(orders)
        exponents = k * large + (self.count - k) * small + rest + constants - orders * y
        sizes = k * np.abs(large) + self.count * np.abs(small) + np.abs(rest) + np.abs(constants) + orders * abs(y)
        exponents += FORMULA_SLACK * (1 + sizes)
        best = np.minimum(exponents[:, : self.shared].min(axis=1), 0.0)
        best[0] = min(best[0], float(exponents[0].min()))
        logs[:many] += best
        return logs

    @cached_property
    def _moments(self) -> tuple[Floats, Floats, Floats]:
        """Bounds of the log-moments of small steps, of large ones (where they are used) and of all others."""
        rest = TotalLoss(self.others)
        return (
            np.array([self.small.log_moment_upper(nu) for nu in self.orders]),
            np.array([self.large.log_moment_upper(nu) if i < self.shared else 0.0 for i, nu in enumerate(self.orders)]),
            np.array([rest.log_moment_upper(nu) if self.others else 0.0 for nu in self.orders]),
        )


def label_steps(total: TotalLoss, rung: LineRung, worth: float = WORTH) -> Labelled | None:
    """Labels with the least cancellation to be expected at the thresholds of a rung; None if that is not e^worth less than
    without labels, or if too many numbers of large steps would matter.

    Heuristic: affects accuracy and speed only.
    """
    if rung.payoff is not Payoff.DELTA or not 0 < rung.high <= _NARROW * rung.low:
        return None
    sampled = [part for part in total.parts if isinstance(part.loss, MixtureLoss) and part.loss.may_be_labelled]
    if len(sampled) != 1:
        return None
    part = sampled[0]
    assert isinstance(part.loss, MixtureLoss)
    others = tuple(other for other in total.parts if other is not part)
    y = (rung.low + rung.high) / 2
    m = part.loss.mixture.widest
    width = short_double(_WIDTH / m, _BITS)
    orders, shared = _orders(part.loss, y)
    found = []
    for share in _SHARES:
        small, large = part.loss.labelled(short_double(part.loss.output_at(share * y), _BITS), width)
        labelled = Labelled(others, small, large, part.count, orders, shared)
        uppers = labelled.log_uppers(y)
        # a composition without large steps decays slowly: what it costs to sum it is worth some cancellation
        negligible = uppers[0] < uppers[1:].max() + math.log(_SETTLED) - _SPARED
        found.append((float(np.logaddexp.reduce(uppers)) - (_SPARED if negligible else 0.0), labelled))
    log_best, best = min(found, key=lambda pair: pair[0])
    plain = min(total.log_moment_upper(nu) - nu * y + float(log_largest_gain(nu)) for nu in orders[:shared])
    uppers = best.log_uppers(y)
    many = int(np.sum(uppers > uppers.max() + math.log(_SETTLED)))
    return best if plain - log_best > worth and many <= _MOST_TERMS else None


def _orders(loss: MixtureLoss, y: float) -> tuple[tuple[float, ...], int]:
    """Orders up to the local slope at y, and how many of them large steps have a use for. Heuristic: affects accuracy only."""
    m = loss.mixture.widest
    log_rate = float(loss.mixture.floats[0][-1])
    most = 1.5 * max(abs(loss.output_at(y)) / m, -2 * log_rate / m**2, 1.0)
    shared = [_LOWEST_ORDER]
    while shared[-1] < most:
        shared.append(shared[-1] * _NEXT)
    orders = list(shared)
    while orders[-1] < _DEEPEST / y:
        orders.append(orders[-1] * _FINER)
    return tuple(orders), len(shared)


@dataclass(frozen=True)
class LargeSteps(OneByOne):
    """A labelled composition and certified answers given how many steps are large."""

    labelled: Labelled
    answers: Callable[[int, float], AnyThreshold]
    """Given so many large steps, with a relative width that smoothing may cost."""

    def used(self, y: arb) -> Used:
        """Where steps are called large, and the account of the number of them that matters most."""
        label = self.labelled.large.mixture.label
        assert label is not None
        likely = int(np.argmax(self.labelled.log_uppers(float(y.mid()))[: min(self.labelled.count, _MOST_LARGE) + 1]))
        there = self.answers(likely, FINEST).used(y)
        rows = (
            ("steps are called large", f"from about {label.cut:.3g} deviations of the noise on"),
            ("most important number of large steps", f"{likely:,} of {self.labelled.count:,}"),
            ("given that number by", there.method),
            *there.rows,
        )
        return Used(f"sum over numbers of large steps, each by {there.method}", Payoff.DELTA, there.terms, rows)

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """Terms whose cheap bounds are negligible are left at them; the others are asked for, the most important first.

        Where one of these stays wide and other methods tell steps apart as well, those are left at their cheap bounds, too.
        """
        logs = self.labelled.log_uppers(float(y.mid()))
        scale = float(logs.max())
        upper, lower = np.exp(logs - scale) * (1 + POWER_SLACK * (1 + np.abs(logs - scale))), np.zeros(len(logs))
        slope = np.zeros(len(logs))
        many = min(self.labelled.count, _MOST_LARGE) + 1
        waiting = np.ones(many, dtype=bool)
        while waiting.any():
            doubt = np.where(waiting, upper[:many], 0.0)
            if doubt.sum() <= _SETTLED * lower.sum():
                break
            k = int(np.argmax(doubt))
            waiting[k] = False
            point = self.answers(k, _finest(_NEEDED * float(lower.sum()) / float(upper[k]))).points([y])
            with precision(BITS):
                weight = self.labelled.log_weights[k] + arb(float(point.delta.log_scale[0])) - arb(scale)
                low, high = (float(x) for x in (weight.exp().lower(), weight.exp().upper()))
            lower[k] = max(math.nextafter(low, 0.0) * float(point.delta.lower[0]) * (1 - 4 * UNIT), 0.0)
            upper[k] = min(math.nextafter(high, math.inf) * float(point.delta.upper[0]) * (1 + 4 * UNIT), upper[k])
            slope[k] = math.exp(
                min(float(self.labelled.log_weights[k].mid()) + float(point.log_density[0]) - scale, 700.0)
            )
            if upper[k] - lower[k] > _HOPELESS * upper.sum() and not self.labelled.others:
                break
        n = (len(logs) + 4) * UNIT
        high = float(upper.sum()) * (1 + n) + UNDERFLOW
        return scale, float(lower.sum()) * (1 - n), high, float(slope.sum())


def _finest(wanted: float) -> float:
    """A power of ten, so that few plans are made. Heuristic: affects speed and accuracy only."""
    return float(10.0 ** min(max(math.floor(math.log10(max(wanted, FINEST))), -11), -2)) if wanted > FINEST else FINEST
