"""Budget sweeps: many designs, all pairs of each, on the same workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from exactdp.census.releases import Release
from exactdp.census.study import make_overall
from exactdp.census.workers import Runner


@dataclass(frozen=True)
class Design:
    """A release with every noise parameter multiplied by a factor."""

    release: Release
    factor: Fraction


@dataclass(frozen=True)
class SweepRow:
    """The overall guarantee of one design at one delta, and the proxy's."""

    design: Design
    rho: Fraction
    delta: Fraction
    epsilon: tuple[float, float]
    proxy: tuple[float, float]


@dataclass(frozen=True)
class _Task:
    deltas: tuple[Fraction, ...]

    def __call__(self, design: Design) -> list[SweepRow]:
        scaled = design.release.scaled(design.factor)
        overall, proxy = make_overall(scaled), scaled.proxy
        return [
            SweepRow(design, scaled.rho, delta, overall.epsilon(delta), proxy.epsilon_bounds(delta))
            for delta in self.deltas
        ]


def sweep(designs: Iterable[Design], deltas: Iterable[Fraction], runner: Runner) -> Iterator[list[SweepRow]]:
    """The rows of each design, as they are ready; the result of a design does not depend on the others."""
    return runner.map(_Task(tuple(deltas)), list(designs))
