"""Any composition of any mechanisms, in both directions, by whatever method suits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp.accounting.answers import Answers
from exactdp.accounting.cross_check import CrossCheck, cross_check
from exactdp.accounting.direction import Direction, estimate
from exactdp.accounting.explanation import Explanation, explain_used
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.accounting.tradeoff_dual import beta_from_profile, curve_from_profile
from exactdp.balls import BITS, ends_of, precision
from exactdp.brackets import Bracket, Point, mirrored
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.line.methods import threshold
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.errors import AccuracyError
from exactdp.numbers import log_rational

_SLACK = 2.0**-48


@dataclass(frozen=True)
class Anyhow(Answers):
    """The worse of the two directions: delta is the larger, 1 - delta the smaller, epsilon the larger."""

    total: TotalLoss
    effort: Effort
    lattice: Lattice | None = None
    """The lattice of the loss, if all mechanisms are discrete Gaussians; too fine for float64's sieve, but not for balls."""

    @cached_property
    def _directions(self) -> tuple[Direction, ...]:
        forward = Direction(self.total, self.effort)
        return (forward,) if self.total.is_symmetric else (forward, Direction(self.total.reversed(), self.effort))

    @property
    def lost(self) -> tuple[float, float]:
        """The larger of the two directions'."""
        ends = [ends_of(d.total.lost) for d in self._directions]
        return max(max(low, 0.0) for low, _ in ends), max(high for _, high in ends)

    @property
    def log_lost(self) -> float:
        """Through balls, so that nothing underflows."""
        with precision(BITS):
            logs = [ends_of(d.total.lost.log())[1] for d in self._directions if d.total.lost != 0]
        return max(logs, default=-math.inf)

    @property
    def greatest_loss(self) -> tuple[float, float]:
        """Infinite where a loss can be."""
        if any(d.total.lost != 0 for d in self._directions):
            return math.inf, math.inf
        ends = [d.greatest_loss() for d in self._directions]
        return max(low for low, _ in ends), max(high for _, high in ends)

    @property
    def beta_at_zero(self) -> tuple[float, float]:
        """1 less the probability of an infinite loss."""
        ends = [ends_of(d.total.kept) for d in self._directions]
        return max(min(low for low, _ in ends), 0.0), min(high for _, high in ends)

    def contours(self) -> Contours:
        """Refused unless all mechanisms are discrete Gaussians on a lattice that is not too fine."""
        if self.lattice is None:
            raise AccuracyError(
                "Enclosures with digits need a composition of discrete Gaussians only. Ask without digits; those bounds are "
                "proved as well."
            )
        return Contours(self.lattice)

    def point(self, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
        """The worse of the two directions at each epsilon."""
        sizes = [abs(e) for e in epsilons]
        worst = self._directions[0].point(sizes)
        for other in self._directions[1:]:
            worst = _worse(worst, other.point(sizes))
        return mirrored(worst, epsilons)

    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """The larger of the two directions'."""
        ends = [d.epsilon(delta) for d in self._directions]
        return max(low for low, _ in ends), max(high for _, high in ends)

    def beta_bracket(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of beta(alpha) from the profile."""
        small = min(alpha, 1 - alpha)
        start = estimate(self.total, log_rational(small))
        scale = math.sqrt(self.total.widest)
        return beta_from_profile(self.point, alpha, start if alpha == small else -start, scale, self.beta_at_zero)

    def curve(self, num: int) -> TradeOffCurve:
        """Lower bounds of the curve from a range of slopes."""
        mean, _ = self.total.mean_variance(0.0)
        reach = min(abs(mean) + 7.1 * math.sqrt(self.total.widest), 700.0)
        return curve_from_profile(self.point, reach, num, self.beta_at_zero[0])

    def cross_check(self, epsilon: Fraction) -> CrossCheck:
        """Every method, in the direction with the larger delta."""
        return cross_check(self._worse_direction(epsilon).total, self.lattice, epsilon, self.effort)

    def _worse_direction(self, epsilon: Fraction) -> Direction:
        return max(self._directions, key=lambda d: float(d.point([epsilon]).delta.log_upper()[0]))

    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of the direction with the larger delta."""
        size = abs(epsilon)
        used = self._worse_direction(size).answering.used(threshold(size))
        if len(self._directions) > 1:
            note = ("directions", "2, the loss is not symmetric; the larger delta counts")
            used = replace(used, rows=(*used.rows, note))
        bracket = self.point([epsilon]).delta
        counts = sum(p.count for p in self.total.parts), len(self.total.parts)
        return explain_used(used, epsilon, counts, (float(bracket.log_lower()[0]), float(bracket.log_upper()[0])))


def _worse(one: Point, two: Point) -> Point:
    """Elementwise: the larger delta, the smaller 1 - delta."""
    which = one.delta.log_upper() >= two.delta.log_upper()
    delta = _extreme(one.delta, two.delta, largest=True)
    rest = _extreme(one.rest, two.rest, largest=False)
    return Point(delta, rest, np.where(which, one.log_density, two.log_density))


def _extreme(one: Bracket, two: Bracket, largest: bool) -> Bracket:
    """The elementwise maximum or minimum of two brackets, on the scale of the one that decides it."""
    first = (one.log_upper() >= two.log_upper()) == largest
    scale = np.where(first, one.log_scale, two.log_scale)
    pick = np.maximum if largest else np.minimum
    lows, highs = [], []
    for b in (one, two):
        slack = _SLACK * (1 + np.abs(b.log_scale) + np.abs(scale))
        with np.errstate(over="ignore"):
            factor = np.exp(b.log_scale - scale)
            lows.append(np.minimum(b.lower * factor * (1 - slack), 1e300))
            # what underflows is not known to be 0
            highs.append(
                np.where(b.upper == 0, 0.0, np.maximum(np.minimum(b.upper * factor, 1e300), 1e-320) * (1 + slack))
            )
    return Bracket(scale, pick(*lows), pick(*highs))
