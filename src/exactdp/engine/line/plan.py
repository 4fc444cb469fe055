"""Fourier sums for losses on no lattice, or on one too fine to use: the plan of a contour.

With V(z) = e^{-z y} / (z (z + 1)), the Laplace transform of the payoff (1 - e^{y - x})_+, and om_k = 2 pi k / T, Poisson
summation gives (1/T) sum over all integers k of M(tilt + i om_k) V(tilt + i om_k) = sum over j of e^{tilt j T} E v(L - j T):
the identity of docs/theory/engine.md without a lattice (docs/theory/any-composition.md, Theorem 10). The sum is infinite; it is
made finite by *smoothing*: one more Gaussian mechanism with a tiny R = smoothing can only raise delta, by at most smoothing
times the density of L at the threshold (Theorem 11), and its factor e^{-R om^2 / 2} ends the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import CLOSE_SLACK, FORMULA_SLACK, PHASE_ERROR, POWER_SLACK, SUM_SLACK, UNDERFLOW, Floats, Ints
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.tilts import short
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.engine.sieve.bands import Bands, log_sum_dropped, octaves
from exactdp.engine.sieve.fixed_point import LARGEST_NODE, Turn
from exactdp.engine.sieve.windows import Comb, search
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.mechanisms.loss import Tilted

FINEST = 2e-12
"""The relative width that smoothing may cost at best; coarser where nodes would be too many."""

COARSEST = 1e-1
_WIDER = 10.0  # from one attempt to the next

SAMPLES = 192  # nodes looked at in each octave to estimate how many matter
_LOWEST = 1e-12  # of the largest frequency: how far down the end of a decay is looked for
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class View:
    """A total loss under one tilt, with its phases per node for the period T."""

    total: TotalLoss
    tilt: Fraction
    period: Fraction

    @cached_property
    def tilted(self) -> tuple[tuple[Tilted, int], ...]:
        """Each part under the tilt, with its count."""
        with precision(BITS):
            return tuple((p.loss.tilted(self.tilt), p.count) for p in self.total.parts)

    @cached_property
    def turns(self) -> tuple[tuple[Turn, ...], ...]:
        """Turns per node of every unit of every part."""
        with precision(BITS):
            return tuple(tuple(Turn.of(u / ball(self.period)) for u in t.units) for t, _ in self.tilted)

    @cached_property
    def anchor(self) -> arb:
        """The loss that phases are measured from."""
        with precision(BITS):
            return sum((count * t.anchor for t, count in self.tilted), arb(0))

    @cached_property
    def spread(self) -> float:
        """Variance of the continuous Gaussian part."""
        return sum(count * t.spread for t, count in self.tilted)

    @cached_property
    def slack(self) -> float:
        """The sum of the peaks' slacks."""
        return sum(count * t.peak.slack for t, count in self.tilted if t.peak is not None)

    @cached_property
    def combs(self) -> list[Comb]:
        """The peaks of each part that has some, longest spacing first."""
        result = []
        for t, count in self.tilted:
            if t.peak is None:
                continue
            with precision(BITS):
                turn = t.units[t.peak.unit] * t.peak.step / ball(self.period)
            spacing, strength = 1 / abs(float(turn.mid())), count * t.peak.strength
            result.append(Comb(spacing, strength * (2 * math.pi / spacing) ** 2, Turn.of(turn).fraction, strength))
        return sorted(result, key=lambda c: -c.spacing)

    @cached_property
    def cost(self) -> int:
        """Terms to be evaluated at one node: one for a theta function, one for each atom of a table."""
        tables = [(t, t.table()) for t, _ in self.tilted]
        return max(sum(t.terms if table is None else len(table[1]) for t, table in tables), 1)

    def log_decay(self, omega: float) -> float:
        """log of a bound of |cf| at every frequency from omega on, but for the Gaussian part's own decay."""
        return sum(count * t.log_decay(omega) for t, count in self.tilted)

    def search(self, last: int, bands: Bands, looks: int) -> Ints:
        """The nodes up to `last` within budget, by the sieve (sieve/windows.py)."""
        return search(self.combs, last, bands, lambda k: self.keep(k, bands), looks)

    @cached_property
    def _by_strength(self) -> list[tuple[float, Turn]]:
        return [(c.strength, Turn.nearest(c.turn)) for c in sorted(self.combs, key=lambda c: -c.strength)]

    def keep(self, k: Ints, bands: Bands) -> Ints:
        """The nodes among k whose penalty is within budget, and node 0."""
        budget, penalty = bands.at(k), np.zeros(len(k))
        for strength, turn in self._by_strength:
            v = np.maximum(np.abs(turn.phases(k)) - 2 * PHASE_ERROR, 0.0)
            penalty += strength * (v * v) * (1 - SUM_SLACK)
            alive = (penalty <= budget) | (k == 0)
            if not alive.all():
                k, budget, penalty = k[alive], budget[alive], penalty[alive]
        return k


@dataclass(frozen=True)
class LinePlan:
    """A contour on the line: everything that is decided before anything is evaluated. Any tilt in the payoff's range, any
    period, any smoothing and any kept nodes are valid; only accuracy and speed depend on them."""

    view: View
    payoff: Payoff
    smoothing: Fraction
    kept: Ints
    log_dropped: float
    """log of a bound of (1/T) sum |M V| / (M(tilt) V(tilt)) over all other nodes."""
    log_dropped_density: float
    """log of a bound of (1/T) sum |M| / M(tilt) over all other nodes."""
    last: int
    """The last node looked at; beyond it the Gaussian factor has done the work."""

    @cached_property
    def lam(self) -> float:
        """The tilt as a double, exactly."""
        return float(self.view.tilt)

    @cached_property
    def spread(self) -> float:
        """The decay e^{-spread om^2 / 2}."""
        return self.view.spread + float(self.smoothing)

    @property
    def expected_width(self) -> float:
        """What smoothing costs relative to the answer, about. Heuristic: affects speed and accuracy only."""
        return float(self.smoothing) * abs(self.lam) * (1 + self.lam)

    @cached_property
    def anchor(self) -> arb:
        """The loss that phases are measured from, with the smoothing's."""
        with precision(BITS):
            return self.view.anchor + ball(self.smoothing * (self.view.tilt + Fraction(1, 2)))

    @cached_property
    def log_moment(self) -> arb:
        """log M(tilt), smoothing included."""
        with precision(BITS):
            z = self.view.tilt
            return self.view.total.log_moment(z) + ball(self.smoothing * z * (z + 1) / 2)

    def log_aliasing(self, thresholds: list[float]) -> Floats:
        """log of a bound of the aliased terms at each threshold, in units of exp(log_moment - tilt y) (Theorem 2)."""
        where = self.payoff, self.lam
        with precision(BITS):
            log_moment = float(self.log_moment.lower())
        aliasing = Aliasing(self.view.total, where, float(self.smoothing), log_moment)
        period, enough = float(self.view.period), self.log_dropped - math.log(abs(self.lam) * (1 + self.lam))
        return np.array([aliasing.log_bound(period, y, enough) for y in thresholds])


class MomentBounds(Protocol):
    """What bounds aliases: upper bounds of log-moments, and estimates of the variance that affect accuracy only."""

    @property
    def widest(self) -> float:
        """An upper estimate of the variance under any tilt."""

    @property
    def bends(self) -> bool:
        """Whether the variance changes by orders of magnitude with the tilt."""

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance under a tilt."""

    def log_moment_upper(self, z: float) -> float:
        """A double above log E e^{zL}."""


class Aliasing:
    """The aliases j < 0 and j > 0 of Theorem 10 by Markov's inequality, each with the best of several orders nu on its side:
    exp(K(nu) - K(tilt) - (nu - tilt) y - |nu - tilt| T) / (1 - e^{-|nu - tilt| T})."""

    def __init__(self, total: MomentBounds, where: tuple[Payoff, float], smoothing: float, log_moment: float) -> None:
        self._total = total
        (self._payoff, self._lam), self._log_moment = where, log_moment
        self._upper = cache(lambda nu: total.log_moment_upper(nu) + max(smoothing * nu * (nu + 1) / 2, 0.0))
        variances = {max(v, UNDERFLOW) for v in (total.mean_variance(self._lam)[1], total.widest)}
        self._moves = [stretch / v for stretch in (1.0, 0.25, 4.0) for v in variances]
        self._fixed: dict[int, list[float]] | None = self._orders() if total.bends else None

    def _orders(self) -> dict[int, list[float]]:
        """Orders on either side that do not depend on the period, for a loss whose variance says little about its tails."""
        lam, (low, high) = self._lam, self._payoff.tilt_range
        room = lam - low, min(high - lam, 20 * abs(lam))
        return {
            -1: [float(short(lam - room[0] * share)) for share in (0.02, 0.06, 0.15, 0.3, 0.5, 0.75, 1.0)],
            1: [float(short(lam + room[1] * 0.6**i)) for i in range(19 if high == math.inf else 9)],
        }

    def log_bound(self, period: float, y: float, enough: float = -math.inf) -> float:
        """log of the bound at threshold y; the search for better orders stops where it is below `enough`."""
        return float(np.logaddexp(self._side(-1, period, y, enough - 0.7), self._side(1, period, y, enough - 0.7)))

    def _side(self, sign: int, period: float, y: float, enough: float) -> float:
        low, high = self._payoff.tilt_range
        best = math.inf
        moved = (self._lam + sign * move * period for move in self._moves)
        orders = (float(short(min(max(nu, low), high))) for nu in moved) if self._fixed is None else self._fixed[sign]
        for nu in orders:
            d = nu - self._lam
            if d * sign <= 0:
                continue
            upper = self._upper(nu)
            size = abs(upper) + abs(self._log_moment) + abs(d * y) + abs(d) * period
            exponent = upper - self._log_moment - d * y - abs(d) * period
            best = min(best, exponent + POWER_SLACK * size + CLOSE_SLACK - math.log(-math.expm1(-abs(d) * period)))
            if best <= enough:
                break
        return best

    def period(self, ends: list[float], log_aim: float, variance: float, digits: float) -> float:
        """The period at which the bound is at most exp(log_aim) at both ends of an interval of thresholds.

        Heuristic: affects accuracy and speed only.
        """
        total, corner = self._total, abs(self._lam)
        finite = [y for y in ends if math.isfinite(y)]
        period = math.sqrt(2 * max(variance, 1e-3 * total.widest) * digits)
        for attempt in range(80):
            excess = max(self.log_bound(period, y, log_aim) for y in finite) - log_aim
            if excess <= 0:
                break
            # it falls like exp(-T^2 / (2 V)), or like exp(-tilt T) where orders outside the range would be needed
            linear = min(period + min(excess, 1e6) / corner, 1.3 * period)
            quadratic = math.sqrt(period**2 + 2 * total.widest * min(excess, 1e6)) * 1.005
            period = max(1.03 * period, min(quadratic, linear) if attempt < 5 else linear)
        return period


def _wanted(log_aim: float) -> float:
    """-log of what is left of |cf| beyond the last node. Heuristic: affects speed only."""
    return max(-(log_aim + math.log(1e-2)), 1.0)


@dataclass(frozen=True)
class Falloff:
    """What surrounds |cf| in a Fourier sum on the line, relative to its value at the tilt: the transform, at most the product of
    min(1, C / om) over its corners C, and the Gaussian factor e^{-spread om^2 / 2}."""

    corners: tuple[float, float]
    spread: float
    period: float
    log_decay: Callable[[float], float] = lambda omega: 0.0
    """log of a bound of |cf| from a frequency on, where that is proved to fall."""

    def last_node(self, log_aim: float, most: float = math.inf) -> float:
        """Where the Gaussian factor, or the decay of |cf|, has done the work, at the frequency `most` if not before.

        Heuristic: affects speed only.
        """
        wanted = _wanted(log_aim)
        most = min(most, math.sqrt(2 * wanted / max(self.spread, UNDERFLOW)))
        return self._ends_at(wanted, most) * self.period / (2 * math.pi)

    def _ends_at(self, wanted: float, most: float) -> float:
        if self.log_decay(most) > -0.1 * wanted:
            return most

        def falls(omega: float) -> bool:
            return self.spread * omega * omega / 2 - self.log_decay(omega) >= wanted

        high = most
        low = high / 8
        while low > _LOWEST * most and falls(low):
            low, high = low / 8, low
        while high > 1.12 * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if falls(middle) else (middle, high)
        return high

    def bands(self, last: int, log_aim: float, slack: float) -> Bands:
        """Budgets that keep the dropped sum at about exp(log_aim)."""
        edges = octaves(max(1.0, max(self.corners) * self.period / (2 * math.pi)), last)
        return Bands.sharing(edges, self.log_masses(edges, transform=True), log_aim, slack, self.log_beyond(last))

    def log_masses(self, edges: list[float], transform: bool) -> Floats:
        """log of (2/T) times the number of nodes times the largest relative size of what surrounds |cf|, for each band.

        Unlike on a lattice the Gaussian factor is part of it, which only its logarithm keeps in the range of doubles.
        """
        masses = []
        for low, high in pairwise(edges):
            first, final = math.floor(max(low, 0.0)) + 1, math.floor(high)
            omega = first * 2 * math.pi / self.period * (1 - FORMULA_SLACK)
            log_size = -self.spread * omega * omega / 2
            if transform:
                log_size += sum(math.log(min(1.0, c / omega)) for c in self.corners)
            masses.append(math.log(2 * (final - first + 1) / self.period) + log_size)
        return np.array(masses)

    def log_beyond(self, last: int) -> float:
        """The same for all nodes after the last, |cf| being at most 1: the transform falls like C1 C2 / om^2, and sum 1/k^2 <
        1/last."""
        omega = 2 * math.pi * last / self.period * (1 - FORMULA_SLACK)
        return (
            math.log(self.corners[0] * self.corners[1] * self.period / (2 * math.pi**2 * last))
            - self.spread * omega * omega / 2
            + self.log_decay(omega)
        )

    def log_dropped_density(self, bands: Bands) -> float:
        """The bound for the sum without the transform: beyond the last node an integral of the Gaussian factor; none without."""
        if not self.spread:
            return math.inf
        edges = [0.0, *bands.edges[1:].tolist()]
        masses = self.log_masses(edges, transform=False)
        omega = 2 * math.pi * edges[-1] / self.period * (1 - FORMULA_SLACK)
        beyond = -self.spread * omega * omega / 2 - math.log(math.pi * self.spread * omega)
        return log_sum_dropped(masses, bands.budgets - bands.slack, beyond)


def make_line_plan(total: TotalLoss, where: LineRung, effort: Effort, finest: float = FINEST) -> LinePlan:
    """The finest contour for a rung that the effort allows."""
    lam = float(where.tilt)
    variance = max(total.mean_variance(lam)[1], 1e-30 * total.widest, UNDERFLOW)
    width = finest
    while True:
        plan = _Planner(total, where, variance, width).plan(effort, is_last=width >= COARSEST)
        if plan is not None:
            return plan
        width *= _WIDER


class _Planner:
    """One attempt at a plan: a smoothing that costs about `width`, and everything else a hundred times finer."""

    def __init__(self, total: TotalLoss, where: LineRung, variance: float, width: float) -> None:
        self._total, self._where = total, where
        self._lam = float(where.tilt)
        self._corners = (abs(self._lam), 1 + self._lam)
        self._smoothing = short(min(width / (self._corners[0] * self._corners[1]), 1.0))
        own = View(total, where.tilt, Fraction(1)).spread
        self._most = math.inf
        self._log_aim = math.log(1e-3 * width) - 0.5 * math.log(2 * math.pi * variance) - 1
        if own >= self._smoothing or self._ends_itself():  # a Gaussian mechanism of the composition itself does it
            self._smoothing = Fraction(0)
        period = self._choose_period(variance)
        self._view = View(total, where.tilt, short(period))
        spread = self._view.spread + float(self._smoothing)
        self._falloff = Falloff(self._corners, spread, float(self._view.period), self._view.log_decay)

    def _ends_itself(self) -> bool:
        """Whether |cf| has fallen where smoothing would have ended the sum. Heuristic: affects speed and accuracy only."""
        wanted = _wanted(self._log_aim)
        last = math.sqrt(2 * wanted / float(self._smoothing))
        if not View(self._total, self._where.tilt, Fraction(1)).log_decay(last) <= -wanted:
            return False
        self._most = last
        return True

    def _choose_period(self, variance: float) -> float:
        """The period at which aliasing is as small as the aim."""
        with precision(64):
            z = self._where.tilt
            log_moment = float(self._total.log_moment(z).mid()) + float(self._smoothing * z * (z + 1) / 2)
        aliasing = Aliasing(self._total, (self._where.payoff, self._lam), float(self._smoothing), log_moment)
        log_aim = self._log_aim - math.log(self._corners[0] * self._corners[1])
        return aliasing.period([self._where.low, self._where.high], log_aim, variance, -min(self._log_aim, -1.0))

    def plan(self, effort: Effort, is_last: bool) -> LinePlan | None:
        view, where = self._view, self._falloff.last_node(self._log_aim, self._most)
        if where >= LARGEST_NODE:
            if is_last:
                raise AccuracyError(
                    "The loss of this composition is out of the reach of a Fourier sum at this threshold."
                )
            return None
        last = math.ceil(where) + 1
        bands = self._falloff.bands(last, self._log_aim, view.slack)
        if self._expected(bands) * view.cost > effort.terms and not is_last:
            return None
        try:
            kept = view.search(last, bands, effort.looks)
        except LatticeTooFineError:
            if is_last:
                raise
            return None
        density = self._falloff.log_dropped_density(bands)
        return LinePlan(view, self._where.payoff, self._smoothing, kept, bands.log_dropped, density, last)

    def _expected(self, bands: Bands) -> float:
        """How many nodes are within budget, from samples. Heuristic: affects speed and accuracy only."""
        ends = np.floor(np.maximum(bands.edges, 0.0))
        first, counts = ends[:-1] + 1, np.diff(ends)
        many = counts > SAMPLES
        offsets = np.floor(np.multiply.outer(counts[many], np.arange(SAMPLES) * GOLDEN % 1.0)).astype(np.int64)
        nodes = (first[many].astype(np.int64)[:, None] + offsets).ravel()  # of all octaves at once
        kept = np.histogram(self._view.keep(nodes, bands), np.append(first[many], np.inf))[0] if many.any() else 0
        return float(counts[~many].sum() + (counts[many] * kept).sum() / SAMPLES)
