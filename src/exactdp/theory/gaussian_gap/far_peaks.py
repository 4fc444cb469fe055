"""How much the far peaks of a characteristic function can add: F = (1/pi) times the integral of phi_S(om) weight(om).

S is the sum of a composition's weighted noise and phi_S its characteristic function, positive for discrete and continuous
Gaussians alike. Away from 0 it is small except near its far peaks, frequencies at which every group's phase is close to a
multiple of 2 pi at once. They are listed by the engine's search (windows, then lattice reduction); what is not listed has a
penalty above the budget of its band and is bounded by it. docs/theory/edgeworth.md, Lemma 21.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.doubles import ACCOUNT_SLACK, SUM_SLACK, Floats, Ints
from exactdp.engine.lattice.tilts import short
from exactdp.engine.line.plan import View
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.sieve.bands import Bands, even_budgets, octaves
from exactdp.engine.sieve.fixed_point import LARGEST_NODE
from exactdp.errors import LatticeTooFineError
from exactdp.theory.gaussian_gap.central_zone import NoiseGroup

_CELLS = 10.0  # cells in one standard deviation 1/sqrt(R) of a peak
_LOOKS = 500_000  # nodes, windows or partial peaks that one listing may look at


@dataclass(frozen=True)
class FarPeaks:
    """An upper bound of F and what it is made of."""

    listed: float
    dropped: float
    beyond: float
    cells: int

    @property
    def total(self) -> float:
        """The bound."""
        return self.listed + self.dropped + self.beyond


def far_peaks(mechanisms: Mapping[Any, int], start: float, step: float, aims: Iterable[float]) -> FarPeaks:
    """F of a composition of Gaussians from frequency `start` on: up to pi / step with the weight of all translates (S lives on
    step Z), or without end for step 0.

    An aim is the size that dropped cells and the end may have each; the first one that the search can afford is used, and only
    speed and accuracy depend on them. Never more than 1 / (pi start): phi_S <= 1, and so much is the weight's integral.
    """
    trivial = FarPeaks(0.0, 0.0, 1 / (math.pi * start), 0)
    for aim in aims:
        try:
            return min(_listing(mechanisms, start, step, aim), trivial, key=lambda peaks: peaks.total)
        except LatticeTooFineError:
            continue
    return trivial


def _listing(mechanisms: Mapping[Any, int], start: float, step: float, aim: float) -> FarPeaks:
    """The peaks listed as finely as one aim asks."""
    end = math.pi / step if step else 1 / (math.pi * aim)
    if end <= start:
        return FarPeaks(0.0, 0.0, 0.0, 0)
    cells = Cells(mechanisms, start, step)
    last = math.ceil(end / cells.width) + 1
    if last > LARGEST_NODE // 2:
        raise LatticeTooFineError("the far peaks are out of reach")
    bands, view = cells.bands(last, aim), cells.view
    kept = view.search(last, bands, _LOOKS)
    kept = kept[(kept + 0.5) * cells.width > start]
    beyond = 0.0 if step else math.exp(-view.spread * end * end / 2) / (math.pi * end)
    return FarPeaks(cells.listed(kept), math.exp(bands.log_dropped), beyond, len(kept))


class Cells:
    """Frequencies in cells of one width around the nodes k * width."""

    def __init__(self, mechanisms: Mapping[Any, int], start: float, step: float) -> None:
        spread = float(sum(2 * n * m.rho for m, n in mechanisms.items()))
        period = short(2 * math.pi * _CELLS * math.sqrt(spread))
        self.view = View(TotalLoss.of(mechanisms), Fraction(0), period)
        self.width = 2 * math.pi / float(period)
        self._groups, self._start, self._step = NoiseGroup.all_of(mechanisms), start, step
        # how far the root of the penalty moves in half a cell
        self.reach = self.width / 2 * math.sqrt(spread / 2) * (1 + SUM_SLACK)

    def weight(self, omega: Floats) -> Floats:
        """1 / om^2, or with all translates by 2 pi / step: (step/2)^2 / sin^2(om step/2); falls up to pi / step."""
        half = self._step / 2
        return (half / np.sin(np.minimum(omega * half, math.pi / 2))) ** 2 if half else omega**-2.0

    def bands(self, last: int, aim: float) -> Bands:
        """Octaves of frequency, each allowed an equal share of the aim. A cell is dropped where its node's penalty exceeds the
        budget; then the root of the penalty is above root(budget) - reach everywhere in the cell. This is the guarantee."""
        edges = octaves(self._start / self.width, last)
        lows = np.maximum((np.floor(edges[:-1]) + 0.5) * self.width, self._start)
        lengths = np.diff(np.floor(edges)) * self.width
        masses = np.log(lengths * self.weight(lows) / math.pi) - self.view.spread * lows**2 / 2
        wanted = even_budgets(masses, math.log(aim / len(masses)))
        budgets = (np.sqrt(np.maximum(wanted, 0.0)) + self.reach) ** 2 * (1 + SUM_SLACK)
        log_dropped = float(np.logaddexp.reduce(masses - np.maximum(wanted, 0.0))) + self.view.slack + SUM_SLACK
        return Bands(np.array([-1.0, *edges[1:]]), budgets, self.view.slack, log_dropped)

    def listed(self, kept: Ints) -> float:
        """The sum over the kept cells of width * the largest phi_S in the cell * the largest weight / pi.

        phi_S = product of (e^{-s v^2/2} (1 + extra(v)))^count over groups / theta(0)^count, v the phase in (-pi, pi].
        """
        if not len(kept):
            return 0.0
        penalty, log_extra = np.zeros(len(kept)), np.zeros(len(kept))
        turns = (own for own in self.view.turns if own)  # a continuous Gaussian has none
        for own, g in zip(turns, self._groups, strict=True):
            v = np.abs(own[0].phases(kept))
            penalty += g.count * g.sigma2 / 2 * v * v
            most = np.minimum(v + g.weight * self.width / 2, math.pi)
            log_extra += g.count * np.log1p(_extra(g.sigma2, most))
        lows = np.maximum((kept - 0.5) * self.width, self._start)
        root = np.maximum(np.sqrt(penalty) - self.reach, 0.0)
        log_size = log_extra - root * root - self.view.spread * lows**2 / 2
        return float(np.sum(np.exp(log_size) * self.weight(lows))) * self.width / math.pi * (1 + ACCOUNT_SLACK)


def _extra(s: float, v: Floats) -> Floats:
    """The sum over u != 0 of exp(-s ((2 pi u - v)^2 - v^2) / 2), increasing on [0, pi]; from u = 5 on geometric."""
    total = np.zeros_like(v)
    for u in (1, 2, 3, 4):
        near = np.exp(-2 * math.pi * s * u * (math.pi * u - v))
        total += near * (1 + np.exp(-4 * math.pi * s * u * v))
    return total / -math.expm1(-2 * math.pi**2 * s * 7)
