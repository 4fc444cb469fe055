"""What a composition needs of whoever answers for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from exactdp.accounting.cross_check import CrossCheck
from exactdp.accounting.explanation import Explanation
from exactdp.accounting.tradeoff_curve import TradeOffCurve
from exactdp.brackets import Point
from exactdp.engine.lattice.contours import Contours


class Answers(ABC):
    """Certified answers about one composition."""

    @abstractmethod
    def point(self, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
        """delta and 1 - delta at each epsilon, of either sign."""

    @abstractmethod
    def epsilon_bracket(self, delta: Fraction) -> tuple[float, float]:
        """Bounds of epsilon(delta), 0 < delta < 1."""

    @abstractmethod
    def beta_bracket(self, alpha: Fraction) -> tuple[float, float]:
        """Bounds of beta(alpha), 0 < alpha < 1."""

    @abstractmethod
    def curve(self, num: int) -> TradeOffCurve:
        """At most `num` points on or below the trade-off curve, convex."""

    @abstractmethod
    def explain(self, epsilon: Fraction) -> Explanation:
        """The account of delta(epsilon)."""

    @property
    @abstractmethod
    def lost(self) -> tuple[float, float]:
        """Bounds of the probability of an infinite loss, in the worse direction: delta at epsilon = infinity."""

    @property
    @abstractmethod
    def log_lost(self) -> float:
        """The logarithm of its upper bound, also below the double range."""

    @property
    @abstractmethod
    def greatest_loss(self) -> tuple[float, float]:
        """Bounds of the greatest loss in either direction: epsilon at delta = 0."""

    @property
    @abstractmethod
    def beta_at_zero(self) -> tuple[float, float]:
        """Bounds of beta(0)."""

    @abstractmethod
    def cross_check(self, epsilon: Fraction) -> CrossCheck:
        """delta(epsilon) by every method that applies, epsilon at least 0."""

    @abstractmethod
    def contours(self) -> Contours:
        """The contours on the loss's own lattice, for enclosures of any number of digits."""
