"""Fourier sums for losses on no lattice, or on one too fine to use: the plan of a contour.

With V(z) = e^{-z y} / (z (z + 1)), the Laplace transform of the payoff (1 - e^{y - x})_+, and om_k = 2 pi k / T, Poisson
summation gives (1/T) sum over all integers k of M(tilt + i om_k) V(tilt + i om_k) = sum over j of e^{tilt j T} E v(L - j T):
the identity of docs/theory/engine.md without a lattice (docs/theory/any-composition.md, Theorem 10). The sum is infinite; it is
made finite by *smoothing*: one more Gaussian mechanism with a tiny R = smoothing can only raise delta, by at most smoothing
times the density of L at the threshold (Theorem 11), and its factor e^{-R om^2 / 2} ends the sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

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

_SAMPLES = 192  # nodes looked at in each octave to estimate how many matter
_GOLDEN = (math.sqrt(5) - 1) / 2


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
        tables = [t.table() for t, _ in self.tilted]
        return max(sum(1 if table is None else len(table[1]) for table in tables), 1)

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
        aliasing = _Aliasing(self.view.total, where, float(self.smoothing), float(self.log_moment.mid()))
        period, enough = float(self.view.period), self.log_dropped - math.log(abs(self.lam) * (1 + self.lam))
        return np.array([aliasing.log_bound(period, y, enough) for y in thresholds])


class _Aliasing:
    """The aliases j < 0 and j > 0 of Theorem 10 by Markov's inequality, each with the best of several orders nu on its side:
    exp(K(nu) - K(tilt) - (nu - tilt) y - |nu - tilt| T) / (1 - e^{-|nu - tilt| T})."""

    def __init__(self, total: TotalLoss, where: tuple[Payoff, float], smoothing: float, log_moment: float) -> None:
        (self._payoff, self._lam), self._log_moment = where, log_moment
        self._upper = cache(lambda nu: total.log_moment_upper(nu) + max(smoothing * nu * (nu + 1) / 2, 0.0))
        variances = {max(v, UNDERFLOW) for v in (total.mean_variance(self._lam)[1], total.widest)}
        self._moves = [stretch / v for stretch in (1.0, 0.25, 4.0) for v in variances]

    def log_bound(self, period: float, y: float, enough: float = -math.inf) -> float:
        """log of the bound at threshold y; the search for better orders stops where it is below `enough`."""
        return float(np.logaddexp(self._side(-1, period, y, enough - 0.7), self._side(1, period, y, enough - 0.7)))

    def _side(self, sign: int, period: float, y: float, enough: float) -> float:
        low, high = self._payoff.tilt_range
        best = math.inf
        for move in self._moves:
            nu = float(short(min(max(self._lam + sign * move * period, low), high)))
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
        if own >= self._smoothing:  # a Gaussian mechanism of the composition itself does it
            self._smoothing = Fraction(0)
        self._log_aim = math.log(max(1e-16, 1e-3 * width)) - 0.5 * math.log(2 * math.pi * variance) - 1
        period = self._choose_period(variance)
        self._view = View(total, where.tilt, short(period))
        self._spread = self._view.spread + float(self._smoothing)

    def _choose_period(self, variance: float) -> float:
        """The period at which aliasing is as small as the aim."""
        with precision(64):
            z = self._where.tilt
            log_moment = float(self._total.log_moment(z).mid()) + float(self._smoothing * z * (z + 1) / 2)
        aliasing = _Aliasing(self._total, (self._where.payoff, self._lam), float(self._smoothing), log_moment)
        ends = [y for y in (self._where.low, self._where.high) if math.isfinite(y)]
        log_aim = self._log_aim - math.log(self._corners[0] * self._corners[1])
        period = math.sqrt(2 * max(variance, 1e-3 * self._total.widest) * -min(self._log_aim, -1.0))
        for attempt in range(80):
            excess = max(aliasing.log_bound(period, y, log_aim) for y in ends) - log_aim
            if excess <= 0:
                break
            # it falls like exp(-T^2 / (2 V)), or like exp(-tilt T) where orders outside the range would be needed
            linear = min(period + min(excess, 1e6) / self._corners[0], 1.3 * period)
            quadratic = math.sqrt(period**2 + 2 * self._total.widest * min(excess, 1e6)) * 1.005
            period = max(1.03 * period, min(quadratic, linear) if attempt < 5 else linear)
        return period

    def plan(self, effort: Effort, is_last: bool) -> LinePlan | None:
        view, period = self._view, float(self._view.period)
        last = self._last_node(period)
        if last > LARGEST_NODE:
            if is_last:
                raise AccuracyError(
                    "The loss of this composition is out of the reach of a Fourier sum at this threshold."
                )
            return None
        bands = self._bands(last, period)
        if self._expected(bands) * view.cost > effort.terms and not is_last:
            return None
        try:
            kept = view.search(last, bands, effort.looks)
        except LatticeTooFineError:
            if is_last:
                raise
            return None
        density = self._log_dropped_density(bands, period)
        return LinePlan(view, self._where.payoff, self._smoothing, kept, bands.log_dropped, density, last)

    def _last_node(self, period: float) -> int:
        """Where the Gaussian factor alone has done the work."""
        wanted = -(self._log_aim + math.log(1e-2))
        last = math.sqrt(2 * max(wanted, 1.0) / max(self._spread, UNDERFLOW)) * period / (2 * math.pi)
        return math.ceil(last) + 1 if last < LARGEST_NODE else LARGEST_NODE + 1

    def _bands(self, last: int, period: float) -> Bands:
        edges = octaves(max(1.0, max(self._corners) * period / (2 * math.pi)), last)
        masses = self._log_masses(edges, period, transform=True)
        return Bands.sharing(edges, masses, self._log_aim, self._view.slack, self._log_beyond(last, period))

    def _log_masses(self, edges: list[float], period: float, transform: bool) -> Floats:
        """log of (2/T) times the number of nodes times the largest relative size of what surrounds |cf|, for each band.

        Unlike on a lattice the Gaussian factor is part of it, which only its logarithm keeps in the range of doubles.
        """
        masses = []
        for i in range(len(edges) - 1):
            first, final = math.floor(max(edges[i], 0.0)) + 1, math.floor(edges[i + 1])
            omega = first * 2 * math.pi / period * (1 - FORMULA_SLACK)
            log_size = -self._spread * omega * omega / 2
            if transform:
                log_size += sum(math.log(min(1.0, c / omega)) for c in self._corners)
            masses.append(math.log(2 * (final - first + 1) / period) + log_size)
        return np.array(masses)

    def _log_beyond(self, last: int, period: float) -> float:
        """The same for all nodes after the last, |cf| being at most 1: the transform falls like C1 C2 / om^2, and sum 1/k^2 <
        1/last."""
        omega = 2 * math.pi * last / period * (1 - FORMULA_SLACK)
        return (
            math.log(self._corners[0] * self._corners[1] * period / (2 * math.pi**2 * last))
            - self._spread * omega * omega / 2
        )

    def _log_dropped_density(self, bands: Bands, period: float) -> float:
        """The bound for the sum without the transform: beyond the last node an integral of the Gaussian factor."""
        edges = [0.0, *bands.edges[1:].tolist()]
        masses = self._log_masses(edges, period, transform=False)
        omega = 2 * math.pi * edges[-1] / period * (1 - FORMULA_SLACK)
        beyond = -self._spread * omega * omega / 2 - math.log(math.pi * self._spread * omega)
        return log_sum_dropped(masses, bands.budgets - bands.slack, beyond)

    def _expected(self, bands: Bands) -> float:
        """How many nodes are within budget, from samples. Heuristic: affects speed and accuracy only."""
        total = 0.0
        for low, high in zip(bands.edges[:-1], bands.edges[1:], strict=True):
            first, count = math.floor(max(low, 0.0)) + 1, math.floor(high) - math.floor(max(low, 0.0))
            if count <= _SAMPLES:
                total += count
                continue
            offsets = np.floor((np.arange(_SAMPLES) * _GOLDEN % 1.0) * count).astype(np.int64)
            total += count * len(self._view.keep(first + offsets, bands)) / _SAMPLES
        return total
