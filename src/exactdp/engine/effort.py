"""What one question may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """What one contour may cost: terms evaluated (nodes times groups), and nodes, windows or partial peaks looked at.

    The defaults are about a second each.
    """

    terms: int = 1_200_000
    looks: int = 8_000_000

    @property
    def is_hurried(self) -> bool:
        """Whether less than usual may be evaluated: then the contours on a lattice stand farther apart, as those of a family do.
        About half as many answer a curve, each to a digit less. Heuristic: affects speed and accuracy only."""
        return self.terms < Effort.terms
