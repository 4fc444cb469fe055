"""Lemma 5's parabolas: how fast each group's characteristic function falls away from its peaks."""

from __future__ import annotations

from dataclasses import dataclass

from exactdp.engine.lattice.lattice import Lattice
from exactdp.mechanisms.theta import peak_parabola


@dataclass(frozen=True, slots=True)
class PeakBounds:
    """Per group: |cf(v)|^count <= exp(slack_g - strength_g v^2) on |v| <= pi; `slack` is the sum over groups."""

    strengths: tuple[float, ...]
    slack: float


def peak_bounds(lattice: Lattice, tilt: float) -> PeakBounds:
    """Lemma 5's parabolas for every group."""
    strengths, slack = [], 0.0
    for g, s in zip(lattice.groups, lattice.sigma2.tolist(), strict=True):
        strength, own = peak_parabola(s, g.sensitivity * tilt, 40.0 / g.count)
        strengths.append(g.count * strength)
        slack += g.count * own
    return PeakBounds(tuple(strengths), slack)
