"""What every method on the line offers: certified values at thresholds, and the account of how it came by them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from flint import arb

from exactdp.brackets import Bracket, Point
from exactdp.doubles import Floats
from exactdp.engine.payoff import Payoff


@dataclass(frozen=True)
class Used:
    """How one threshold was answered: the method in a few words, what was summed, how many terms, and rows of names and texts."""

    method: str
    payoff: Payoff
    terms: int
    rows: tuple[tuple[str, str], ...]
    arithmetic: str = "float64"


class Method(Protocol):
    """A total loss under one tilt, ready for any number of thresholds."""

    def evaluate(self, thresholds: list[arb]) -> tuple[Bracket, Floats]:
        """delta or 1 - delta at each threshold (a ball), as the payoff says, and an estimate of the slope in the same units."""

    def used(self, y: arb) -> Used:
        """The account of one threshold."""


class AnyThreshold(Protocol):
    """A total loss at any threshold, by whatever method suits it."""

    def points(self, thresholds: list[arb]) -> Point:
        """Certified values at thresholds of either sign."""

    def used(self, y: arb) -> Used:
        """The account of one threshold from 0 on."""


class OneByOne(ABC):
    """A method that takes its thresholds one at a time."""

    @abstractmethod
    def one(self, y: arb) -> tuple[float, float, float, float]:
        """log_scale, lower and upper bound, and slope."""

    def evaluate(self, thresholds: list[arb]) -> tuple[Bracket, Floats]:
        """As `Method` says."""
        columns = np.array([self.one(y) for y in thresholds]).reshape(-1, 4).T
        return Bracket(columns[0], columns[1], columns[2]), columns[3]
