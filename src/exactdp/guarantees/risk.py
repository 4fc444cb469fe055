"""Risk in words people use, each derived from the exact curve and certified.

An attacker must decide which of two neighbouring data sets was used. All of these are properties of the trade-off curve
beta(alpha) or of delta(epsilon); the mechanisms may be of any kind.

    advantage    how far true and false positive rate of any test lie apart: max of 1 - alpha - beta(alpha) = delta(0)
    power        the chance that the best test with false-positive rate alpha says so where it is so: 1 - beta(alpha)
    Bayes risk   the least chance of a wrong decision for an attacker with prior p: p (1 - delta(log((1 - p)/p)))
    posterior    the probability that it is so after the best test at alpha says so, for a prior p
    odds         no event is more than this factor likelier under one data set than the other, up to delta: e^epsilon(delta)

What "so" is depends on who the neighbours are: `neighbours.py` has the words.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

from exactdp.arithmetic_state import steady
from exactdp.doubles import LINE_SLACK, UNIT
from exactdp.guarantees.neighbours import neighbours, relation_of
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr, log_rational
from exactdp.numerals import DIGITS, at_least, at_most, exact


class Curve(Protocol):
    """What risk is computed from: a composition, or the overall study of a release."""

    def delta_bounds(self, epsilon: Any) -> Any:
        """Certified bounds of delta."""

    def epsilon_bounds(self, delta: Any) -> Any:
        """Certified bounds of epsilon."""

    def beta_bounds(self, alpha: Any) -> Any:
        """Certified bounds of beta."""


Interval = tuple[float, float]


@steady
@dataclass(frozen=True)
class Risk:
    """Certified bounds of each figure; the upper end is the safe one, for the Bayes risk the lower end."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    alpha: Fraction
    prior: Fraction
    delta: Fraction
    advantage: Interval
    power: Interval
    bayes_risk: Interval
    posterior: Interval
    odds: Interval
    relation: str | None = field(default=None, init=False, compare=False, repr=False)
    """Who the neighbours are; None where only a composition is known. Words depend on it, numbers do not: it is in no file."""

    def about(self, relation: str | None) -> Risk:
        """The same risk in the words of a relation."""
        told = replace(self)
        object.__setattr__(told, "relation", relation)
        return told

    def rows(self) -> list[tuple[str, float, str]]:
        """Name, safe end, and what it means in one sentence."""
        a, p, d, guess = (exact(x) for x in (self.alpha, self.prior, self.delta, min(self.prior, 1 - self.prior)))
        words = neighbours(self.relation)
        return [
            ("advantage", self.advantage[1], "No test has true and false positive rates further apart than this."),
            ("power", self.power[1], f"No test with a false-positive rate of {a} {words.found} more often than this."),
            (
                "Bayes risk",
                self.bayes_risk[0],
                f"With prior {p}, every attacker errs at least this often (by guessing: {guess}).",
            ),
            ("posterior", self.posterior[1], f"After the best test at {a} says yes, prior {p} becomes at most this."),
            (
                "odds multiplier",
                self.odds[1],
                f"No event is more than this factor likelier {words.likelier}, plus {d}.",
            ),
        ]

    def written(self, digits: int = DIGITS) -> list[tuple[str, str, str]]:
        """The same with the numbers as texts: rounded up, but the Bayes risk down."""
        return [
            (name, (at_least if name == "Bayes risk" else at_most)(value, digits), meaning)
            for name, value, meaning in self.rows()
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<16}{value:>12}  {meaning}" for name, value, meaning in self.written())


def risk_of(curve: Curve, alpha: Fraction, prior: Fraction, delta: Fraction) -> Risk:
    """All figures for a false-positive rate, a prior probability and a delta, each between 0 and 1."""
    advantage = _interval(curve.delta_bounds(0))
    beta = _interval(curve.beta_bounds(alpha))
    power = _down(1 - beta[1]), min(_up(1 - beta[0]), 1.0)
    epsilon = _interval(curve.epsilon_bounds(delta))
    odds = tuple(math.inf if e > 709 else math.exp(e) for e in epsilon)
    found = Risk(
        alpha,
        prior,
        delta,
        advantage,
        power,
        bayes_risk(curve.delta_bounds, prior),
        (_posterior(power[0], alpha, prior, _down), _posterior(power[1], alpha, prior, _up)),
        (min(_down(odds[0]), sys.float_info.max), _up(odds[1])),
    )
    return found.about(relation_of(curve))


def bayes_risk(delta_bounds: Callable[[Fraction], Any], prior: Fraction) -> Interval:
    """min over alpha of (1 - p) alpha + p beta(alpha) = p (1 - delta(log((1 - p)/p))); 1 - delta rises with epsilon.

    The curve is symmetric, so p and 1 - p give the same; the smaller one loses no digits.
    """
    prior = min(prior, 1 - prior)
    odds = log_rational((1 - prior) / prior)
    slack = LINE_SLACK * (1 + abs(odds))
    low, high = (_interval(delta_bounds(Fraction(odds + sign * slack))) for sign in (-1, 1))
    p = float(prior)
    return _down(p * (1 - low[1])), min(_up(p * (1 - high[0])), p)


def _posterior(power: float, alpha: Fraction, prior: Fraction, rounded: Callable[[float], float]) -> float:
    """Bayes' rule after a positive test, in exact fractions."""
    yes = prior * Fraction(power)
    return min(max(rounded(float(yes / (yes + (1 - prior) * alpha))), 0.0), 1.0) if yes else 0.0


def _interval(bounds: Any) -> Interval:
    return float(bounds[0]), float(bounds[1])


def _down(x: float) -> float:
    return max(x * (1 - LINE_SLACK) - UNIT, 0.0)


def _up(x: float) -> float:
    return x * (1 + LINE_SLACK) + UNIT
