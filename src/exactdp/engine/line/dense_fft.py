"""The dense method: every part's loss rounded outward to a grid, tilted, and convolved by FFT.

It works for nearly every composition and is the least accurate method: G parts on a grid of step g leave bounds about 2 G g (1
+ tilt) apart, where smoothing with as many nodes leaves a thousandth of that. It shares no Fourier sum, no sieve and no
smoothing with the others, so it serves as a second opinion (docs/theory/any-composition.md, Theorem 16).

Assumption: an FFT or inverse FFT of n points by NumPy changes a vector by at most 8 log2(n) units of rounding of its Euclidean
norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from scipy.special import ndtr

from exactdp.balls import BITS, ball, precision
from exactdp.doubles import CLOSE_SLACK, FFT_SLACK, FORMULA_SLACK, POWER_SLACK, UNDERFLOW, UNIT, Complexes, Floats
from exactdp.engine.line.protocol import OneByOne
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from exactdp.mechanisms.loss import Tilted

POINTS = 1 << 17
_MOST_GROWTH = 700.0  # the logarithm of what rounding to the grid may do to a weight: beyond it is no double
_LONGEST = 1 << 20  # points of one part's own lattice
_OFF_GRID = 1e-9  # of a step: how far from its point a loss on the grid may have been rounded
_SHORTEST = 1e-12  # a grid as long as this for a loss that is nearly constant
_CUT = 1e-19  # tilted mass left out of one part: far below the rounding of its FFT
_DEVIATIONS = 9.0  # from the mean to where a normal tail, 1e-19, is negligible


@dataclass(frozen=True)
class _Listed:
    """Losses of one part with tilted weights, to be taken `copies` times; the Euclidean error and the mass left out, of one
    copy."""

    losses: Floats
    weights: Floats
    copies: int
    wrong: float
    missing: float


@dataclass(frozen=True)
class _Rounded:
    """One part on the grid from point `start` on, as transforms: rounded up and rounded down.

    `wrong` bounds the Euclidean error of each transform divided by sqrt(points), `missing` the mass left out.
    """

    up: Complexes
    down: Complexes
    start: int
    wrong: float
    missing: float


class DenseFFT(OneByOne):
    """A total loss on a grid under one tilt, ready for any number of thresholds."""

    def __init__(self, total: TotalLoss, payoff: Payoff, tilt: Fraction, points: int = POINTS) -> None:
        self._payoff, self._tilt, self._lam, self.points = payoff, tilt, float(tilt), points
        with precision(BITS):
            self._log_moment = total.log_moment(tilt)
            views = [(part, part.loss.tilted(tilt)) for part in total.parts]
        mean, variance = total.mean_variance(self._lam)
        self.step = max(2.4 * _DEVIATIONS * math.sqrt(variance), _SHORTEST) / points
        self._first = math.floor(mean / self.step) - points // 2
        up = down = np.ones(points // 2 + 1, dtype=np.complex128)
        start, wrong, missing = 0, 0.0, 0.0
        for part, view in views:
            rounded = self._gaussian(part, view) if view.spread else self._on_grid(_listed(part, view, tilt))
            up, down = up * rounded.up, down * rounded.down
            start += rounded.start
            wrong += rounded.wrong + 4 * UNIT
            missing += rounded.missing
        shift = (start - self._first) % points
        self._up, self._down = (np.roll(np.fft.irfft(v, points), shift) for v in (up, down))
        log_growth = abs(self._lam) * self.step * (len(views) + 1)
        if log_growth > _MOST_GROWTH:
            raise AccuracyError("The dense method does not apply: the grid is too coarse for so large a tilt.")
        growth = math.exp(log_growth)
        self._wrong = growth * (wrong + 8 * math.log2(points) * UNIT)
        slip = (2 * len(views) + 2) * self.step
        ends = self._first * self.step + slip, (self._first + points) * self.step - slip
        self._missing = growth * missing + growth * _mass_outside(total, tilt, *ends)

    def _on_grid(self, atoms: _Listed) -> _Rounded:
        """Losses rounded to grid points in both directions, their weights multiplied by e^{tilt (rounded - loss)}, all copies."""
        # covers the rounding of the losses
        slack = max(_OFF_GRID, 8 * UNIT * float(np.max(np.abs(atoms.losses))) / self.step)
        lower, upper = np.floor(atoms.losses / self.step - slack), np.ceil(atoms.losses / self.step + slack)
        start = int(lower.min())
        transforms = []
        for grid in (upper, lower):
            moved = np.exp(self._lam * (grid * self.step - atoms.losses))
            place = (grid.astype(np.int64) - start) % self.points
            vector = np.bincount(place, atoms.weights * moved, minlength=self.points)
            transforms.append(np.fft.rfft(vector) ** atoms.copies)
        wrong = atoms.copies * (atoms.wrong + 8 * math.log2(self.points) * UNIT + POWER_SLACK)
        return _Rounded(transforms[0], transforms[1], atoms.copies * start, wrong, atoms.copies * atoms.missing)

    def _gaussian(self, part: Part, view: Tilted) -> _Rounded:
        """A continuous Gaussian: the mass of each cell at its upper or lower end, times e^{tilt (end - loss)}, safely."""
        deviation = math.sqrt(part.count * view.spread)
        with precision(BITS):
            mean = float((part.count * view.anchor).mid())
        start = math.floor((mean - _DEVIATIONS * deviation) / self.step) - 1
        cells = math.ceil(2 * _DEVIATIONS * deviation / self.step) + 3
        edges = ((start + np.arange(cells + 1)) * self.step - mean) / deviation
        mass = np.abs(np.diff(ndtr(-np.abs(edges))))
        mass[np.diff(np.sign(edges)) != 0] = np.diff(ndtr(edges))[np.diff(np.sign(edges)) != 0]
        up, down = np.zeros(self.points), np.zeros(self.points)
        up[1 : cells + 1], down[:cells] = mass, mass
        most = math.exp(abs(self._lam) * self.step * (1 + _OFF_GRID))
        scales = (most, 1 / most) if self._payoff is Payoff.DELTA else (1 / most, most)
        wrong = 8 * math.log2(self.points) * UNIT + CLOSE_SLACK
        return _Rounded(
            np.fft.rfft(up) * scales[0], np.fft.rfft(down) * scales[1], start, wrong, 2.1 * float(ndtr(-_DEVIATIONS))
        )

    def one(self, y: arb) -> tuple[float, float, float, float]:
        """The gains on the grid, with weights rounded up and rounded down (Theorem 16)."""
        with precision(BITS):
            log_scale = float((self._log_moment - ball(self._tilt) * y).mid())
            middle = float(y.mid())
        u = (self._first + np.arange(self.points)) * self.step - middle
        above = u > 0
        gain = np.zeros(self.points)
        if self._payoff is Payoff.DELTA:
            gain[above] = np.exp(-self._lam * u[above]) * -np.expm1(-u[above])
            high_row, low_row = self._up, self._down
        else:
            gain = np.exp(np.where(above, -(1 + self._lam) * u, -self._lam * u))
            high_row, low_row = self._down, self._up
        slope = float(self._up[above] @ np.exp(-(1 + self._lam) * u[above]))
        place = 8 * UNIT * (abs(self._first) * self.step + abs(middle) + self.points * self.step)  # error of u
        # the weights add up to little more than 1, and a gain changes by at most (1 + tilt) times the error of u
        wrong = (1 + FFT_SLACK) * self._wrong * float(np.linalg.norm(gain)) + 3 * place * (1 + abs(self._lam))
        wrong += (self.points * UNIT + CLOSE_SLACK) * float(np.abs(high_row) @ gain)
        high = float(high_row @ gain) + wrong + self._missing
        low = float(low_row @ gain) - wrong - self._missing
        slack = POWER_SLACK + 4 * UNIT * abs(log_scale)
        if not slack <= 1:  # beyond it the rounding of the logarithm is more than a factor 1 + slack
            raise AccuracyError("The dense method does not apply: a double does not hold so large a logarithm.")
        return log_scale, max(low, 0.0) * (1 - slack), high * (1 + slack), max(slope, 0.0)


def _mass_outside(total: TotalLoss, tilt: Fraction, low: float, high: float) -> float:
    """Tilted mass outside [low, high], where sums would wrap around, by Markov's inequality on both sides."""
    with precision(BITS):
        here = float(total.log_moment(tilt).mid())
    lam, found = float(tilt), 0.0
    deviation = math.sqrt(max(total.mean_variance(lam)[1], UNDERFLOW))
    for sign, end in ((-1, low), (1, high)):
        best = 0.0
        for stretch in (0.25, 0.5, 1.0, 2.0):
            d = sign * stretch * _DEVIATIONS / deviation
            upper = total.log_moment_upper(lam + d)
            best = min(best, upper - here - d * end + FORMULA_SLACK * (abs(upper) + abs(here) + abs(d * end)))
        found += math.exp(best)
    return found


def _listed(part: Part, view: Tilted, tilt: Fraction) -> _Listed:
    """All copies on the part's own lattice by an FFT where that is not too long, one copy otherwise."""
    with precision(BITS):
        one, every = float(view.anchor.mid()), float((part.count * view.anchor).mid())
    if view.by_frequency:
        raise AccuracyError("The dense method does not apply: a mechanism's loss has a density.")
    if part.loss.is_constant:
        return _Listed(np.array([every]), np.ones(1), 1, 0.0, 0.0)
    atoms = view.atoms(_CUT)
    if atoms is None:
        found = view.table()
        if found is None:
            raise AccuracyError("The dense method does not apply: a mechanism has too many values.")
        units = np.array([float(u.mid()) for u in view.units])
        return _Listed(one + found[0] @ units, found[1], part.count, 8 * UNIT, 0.0)
    unit = float(view.units[0].mid())
    low, high = int(atoms.positions[0]), int(atoms.positions[-1])
    mean, variance = part.loss.mean_variance(float(tilt))
    reach = min(
        part.count * (high - low), math.ceil(2.6 * _DEVIATIONS * math.sqrt(part.count * variance) / abs(unit)) + 64
    )
    size = 1 << math.ceil(math.log2(reach + high - low + 2))
    if size > _LONGEST:
        return _Listed(
            one + atoms.positions.astype(np.float64) * unit, atoms.weights, part.count, atoms.relative, atoms.missing
        )
    vector = np.bincount((atoms.positions - low) % size, atoms.weights, minlength=size)
    folded = np.fft.irfft(np.fft.rfft(vector) ** part.count, size)
    first = part.count * low
    missing = part.count * atoms.missing
    if size <= part.count * (high - low):  # it wraps around: take the positions around the mean
        first = math.floor((part.count * mean - every) / unit) - size // 2
        edges = sorted((every + first * unit, every + (first + size) * unit))
        missing += _mass_outside(TotalLoss((part,)), tilt, *edges)
    positions = first + (part.count * low - first + np.arange(size)) % size
    wrong = part.count * (atoms.relative + 8 * math.log2(size) * UNIT) + 8 * math.log2(size) * UNIT
    return _Listed(every + positions.astype(np.float64) * unit, folded, 1, wrong, missing)
