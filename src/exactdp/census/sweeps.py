"""Budget sweeps: many designs, all pairs of each, on the same workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from exactdp.census.pair_results import make_overall
from exactdp.census.releases import Release
from exactdp.census.runners import Runner
from exactdp.numbers import exact_repr


@dataclass(frozen=True)
class SweptDesign:
    """A release with every noise parameter multiplied by a factor."""

    __repr__ = exact_repr

    release: Release
    factor: Fraction


@dataclass(frozen=True)
class SweepRow:
    """The overall guarantee of one design at one delta, and the proxy's."""

    __repr__ = exact_repr

    design: SweptDesign
    rho: Fraction
    delta: Fraction
    epsilon: tuple[float, float]
    proxy: tuple[float, float]


def sweep(designs: Iterable[SweptDesign], deltas: Iterable[Fraction], runner: Runner) -> Iterator[list[SweepRow]]:
    """The rows of each design, as they are ready; the result of a design does not depend on the others."""
    return runner.map(partial(_rows, tuple(deltas)), list(designs))


def _rows(deltas: tuple[Fraction, ...], design: SweptDesign) -> list[SweepRow]:
    scaled = design.release.scaled(design.factor)
    overall, proxy = make_overall(scaled), scaled.proxy
    return [SweepRow(design, scaled.rho, d, overall.epsilon(d), proxy.epsilon_bounds(d)) for d in deltas]
