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
