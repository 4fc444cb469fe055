"""When is the Gaussian shortcut good enough? Certified bounds of delta(epsilon) - delta_Gaussian(epsilon), and their sign.

For a composition of discrete and continuous Gaussians let R = 2 rho, y = epsilon - R/2 and M(z) = E e^{zS} = e^{R z^2/2}
Theta(z), where Theta is a product of theta functions. The continuous Gaussian with the same rho has e^{R z^2/2}, so the
difference of the two deltas is the integral of e^{R z^2/2 - z y} (Theta(z) - 1) / (z (z + 1)) along any vertical line. It has
three parts (docs/theory/edgeworth.md, Theorem 22):

    smooth     the first terms of the theta functions near frequency 0: closed form, Gaussian deltas at complex thresholds
    lattice    S lives on h Z: the kink of the payoff against the lattice, closed form
    remainder  second-order terms and far peaks of the characteristic function, bounded in absolute value

`GaussianGap` prepares everything that does not depend on epsilon, once; each question then costs about a tenth of a millisecond.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import acb, arb
from scipy.special import wofz

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.balls import ball, precision
from exactdp.doubles import CLOSE_SLACK, FORMULA_SLACK, UNDERFLOW, UNIT, Floats
from exactdp.engine.lattice.lattice import common_step
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.numbers import LARGEST_EPSILON, Number, rational, shown, whole
from exactdp.numerals import at_most
from exactdp.theory.gaussian_gap.central_zone import Grid, NoiseGroup, Terms, Zone
from exactdp.theory.gaussian_gap.far_peaks import FarPeaks, far_peaks

_BITS = 160  # of closed forms in balls, before what the size of epsilon costs
_POINTS = 2_000  # lattice points summed one by one; beyond, Euler and Maclaurin
_LEAST_TILT = 0.3  # in units of 1 / sqrt(R)
_FINEST_AIM = 1e-22  # what the far peaks may add, at best
COARSEST_NOISE = 0.02
_IMAGES = math.pi**2 - 4  # sum over j != 0 of 1 / (j + 1/2)^2
_DEEPEST = 35.0  # standard deviations below 0 at which e^{-y^2/(2R)}, the unit of everything here, would underflow
FADDEEVA_SLACK = 1e-12
"""Relative accuracy asked of scipy's Faddeeva function, which promises 1e-13, and of what is built on it."""


@steady
@dataclass(frozen=True)
class Gap:
    """delta = delta_Gaussian (1 + g) at one epsilon, with `lower` <= g <= `upper` proved."""

    epsilon: Fraction
    log_gaussian: float
    lower: float
    upper: float

    @property
    def side(self) -> str:
        """What the Gaussian shortcut does to delta: "understates", "overstates", or "unknown" where these bounds do not tell."""
        if self.lower > 0:
            return "understates"
        return "overstates" if self.upper < 0 else "unknown"

    @property
    def size(self) -> float:
        """A bound of |delta - delta_Gaussian| relative to delta_Gaussian."""
        return max(abs(self.lower), abs(self.upper))

    @property
    def digits(self) -> int:
        """How many decimal digits of the Gaussian formula are proved: its relative error is at most 10^-digits."""
        if not self.size < 1:
            return 0
        count = math.floor(-math.log10(max(self.size, UNDERFLOW)))
        return count if self.good_to(count) else count - 1

    @property
    def statement(self) -> str:
        """One plain sentence."""
        told = "" if self.side == "unknown" else f", which {self.side} it"
        if not self.size < 1:
            return "No digit of the Gaussian formula's delta is proved."
        return f"delta is proved to be within {at_most(self.size, 2)} (relative) of the Gaussian formula's{told}."

    def good_to(self, digits: int) -> bool:
        """Whether the Gaussian formula is proved to be within 10^-digits of delta, relative to itself."""
        return self.size <= 10.0 ** -whole(digits, "digits", 0, 300)


@steady
class GaussianGap:
    """The gap between the exact delta and the Gaussian formula, for one composition of discrete and continuous Gaussians.

    >>> from exactdp import DiscreteGaussian
    >>> GaussianGap(10 * DiscreteGaussian(1)).at(25).side
    'overstates'
    >>> GaussianGap(100 * DiscreteGaussian(400)).at(2).digits
    4
    """

    def __init__(self, composition: Composition) -> None:
        if not isinstance(composition, Composition):
            raise InvalidInputError(
                f"The gap takes a composition, such as 10 * DiscreteGaussian(1). Found {shown(composition)}."
            )
        for m in composition.mechanisms:
            if not isinstance(m, DiscreteGaussian | Gaussian):
                raise InvalidInputError(
                    f"The gap to the Gaussian formula is known for discrete and continuous Gaussians only. Found {shown(m)}; "
                    "use compare(), which takes any composition."
                )
        self.composition = composition
        self.spread = 2 * Fraction(composition.rho)
        """R = 2 rho."""
        self._r = float(self.spread)

    @cached_property
    def _groups(self) -> list[NoiseGroup]:
        return NoiseGroup.all_of(self.composition.mechanisms)

    @cached_property
    def step(self) -> Fraction:
        """h, the lattice step of S; 0 where a continuous Gaussian takes part, or the lattice is too fine to matter."""
        mechanisms = self.composition.mechanisms
        if len(self._groups) < len(mechanisms):
            return Fraction(0)
        step = common_step(m.sensitivity / m.sigma2 for m in mechanisms if isinstance(m, DiscreteGaussian))
        return step if step > Fraction(1, 10**12) * self.spread else Fraction(0)

    @cached_property
    def _cut(self) -> float:
        """om_c: the central zone is |om| <= om_c, half-way to the first peak of the largest weight (any other is valid)."""
        return math.pi / max(g.weight for g in self._groups)

    @cached_property
    def _smooth(self) -> list[tuple[int, float]]:
        """Sensitivities and the sums of count 2 q / theta(0) of the groups whose first theta term peaks well inside the zone."""
        return smooth_sizes(self._groups, self._r, self._cut) if self._groups else []

    @cached_property
    def is_hopeless(self) -> bool:
        """Noise so coarse that nothing but the trivial bounds is offered."""
        return any(g.sigma2 < COARSEST_NOISE for g in self._groups)

    @cached_property
    def _grid(self) -> Grid:
        matter = max((g.sensitivity for g in self._groups if g.first > 1e-250), default=0)
        zone = Zone.of(self._r, self._cut, matter)
        return Grid(zone, Terms.of(self._groups, {d for d, _ in self._smooth}, zone))

    @cached_property
    def far(self) -> FarPeaks:
        """The bound for the far peaks of the characteristic function."""
        if not self._groups:
            return FarPeaks(0.0, 0.0, 0.0, 0)
        scale = float(self.step) ** 2 / 12 + sum(size for _, size in self._smooth)
        finest = max(_FINEST_AIM, 1e-3 * scale / math.sqrt(self._r))
        aims = itertools.takewhile(lambda aim: aim < 1, (finest * 1e4**k for k in itertools.count()))
        return far_peaks(self.composition.mechanisms, self._cut, float(self.step), aims)

    def at(self, epsilon: Number) -> Gap:
        """The bounds at one epsilon, in float64 (assumptions: libm good to 4 units, scipy's Faddeeva function to 1e-12)."""
        exact, y = self._read(epsilon)
        if -float(y) > _DEEPEST * math.sqrt(self._r):
            return self.at_in_balls(epsilon)
        low = float(y)
        deltas = [shifted_delta(self._r, low, d) for d in (0, *(d for d, _ in self._smooth))]
        if not is_known(deltas[0]):
            return self.at_in_balls(epsilon)
        estimate, remainder = self._parts(y, deltas)
        # the logarithm not from `base`, whose own error is in the bounds but would be missing there
        log_gaussian = gaussian_logs(math.sqrt(self._r), float(exact))[0]
        return self._gap(exact, log_gaussian, *map(float, quotients(estimate, remainder, deltas[0])))

    def at_in_balls(self, epsilon: Number) -> Gap:
        """The same with the closed forms in balls: slower, and no assumption about special functions."""
        exact, y = self._read(epsilon)
        away = abs(float(y)) / math.sqrt(self._r) + self._r + 1 / self._r
        with precision(_BITS + 8 * math.ceil(math.log2(2 + away))):
            unit = (ball(y) ** 2 / (2 * ball(self.spread))).exp()
            deltas = [(shifted_ball(self.spread, exact, d) * unit, 0.0) for d in (0, *(d for d, _ in self._smooth))]
            base = deltas[0][0]
            if not base > 0:  # a million deviations away, where nothing but the trivial bounds is offered
                return Gap(exact, gaussian_logs(math.sqrt(self._r), float(exact))[0], -1.0, math.inf)
            estimate, remainder = self._parts(y, deltas)
            low, high = (estimate - remainder) / base, (estimate + remainder) / base
            log_base = float((base.log() - unit.log()).mid())
            return self._gap(exact, log_base, float(arb(low).lower()), float(arb(high).upper()))

    def _read(self, epsilon: Number) -> tuple[Fraction, Fraction]:
        exact = rational(epsilon, "epsilon")
        if abs(exact) > LARGEST_EPSILON:
            raise InvalidInputError(f"epsilon must be at most {LARGEST_EPSILON:.0e} in size. Found {shown(epsilon)}.")
        return exact, exact - self.spread / 2

    def _gap(self, epsilon: Fraction, log_gaussian: float, lower: float, upper: float) -> Gap:
        """Bounds that are never worse than what is certain: 0 <= delta <= 1."""
        most = math.expm1(-log_gaussian) * (1 + FORMULA_SLACK) + FORMULA_SLACK if log_gaussian > -700 else math.inf
        if self.is_hopeless or not lower <= upper:
            lower, upper = -1.0, most
        room = 8 * UNIT * max(abs(lower), abs(upper)) + UNDERFLOW
        return Gap(epsilon, log_gaussian, max(lower - room, -1.0), min(upper + room, most))

    def _parts(self, y: Fraction, deltas: list[tuple[Any, float]]) -> tuple[Any, Any]:
        """An estimate of delta - delta_Gaussian and a bound of what it leaves out, in units of e^{-y^2/(2R)}.

        `deltas` are the Gaussian deltas at complex thresholds in the same unit, with their errors, the plain one first.
        """
        if not self._groups:
            return 0.0, 0.0
        low, h = float(y), float(self.step)
        lam, scale = tilt_and_scale(self._r, low)
        images = _IMAGES * h * h / (4 * math.pi**2)
        grid = self._grid
        rest = float(grid.second(lam, images)) + self.far.total
        base, base_error = deltas[0]
        smooth, error = smooth_part([size for _, size in self._smooth], deltas)
        if not h:
            return smooth, error + scale * (rest + float(grid.tail_far)) * (1 + FORMULA_SLACK)
        rest += float(grid.tail) * (2 / (lam * (1 + lam)) + 3 * images)
        if self._points(low, h) <= _POINTS:
            total, error = self._lattice_sum(y, lam)
            return scale * total - base, base_error + scale * (rest + error) * (1 + FORMULA_SLACK)
        part = y / self.step
        part -= math.floor(part)
        density = float(self._first_density(np.zeros(1), low)[0]) / math.sqrt(2 * math.pi * self._r)
        kink = -float(part * part - part + Fraction(1, 6)) * h * h / 2
        rest += float(grid.kink(lam, h)) + FORMULA_SLACK * h * h * (1 + abs(density))
        return smooth + kink * density, error + scale * rest * (1 + FORMULA_SLACK)

    def _points(self, low: float, h: float) -> float:
        """Lattice points from the threshold to where the density has fallen by e^-50."""
        return (math.sqrt(max(low, 0.0) ** 2 + 100 * self._r) - low) / h

    def _first_density(self, above: Floats, y: float) -> Floats:
        """The first-order density over the Gaussian's at y + above = x: 1 + sum size (e^{2 pi^2 D^2/R} cos(2 pi D x/R) - 1)."""
        result = np.ones_like(above)
        for d, size in self._smooth:
            growth = math.exp(2 * math.pi**2 * d * d / self._r)
            result += size * (growth * np.cos(2 * math.pi * d * (y + above) / self._r) - 1)
        return result

    def _lattice_sum(self, y: Fraction, lam: float) -> tuple[float, float]:
        """The first-order delta summed over the lattice points above y, in units of e^{R lam^2/2 - lam y}; and its error."""
        h, low = float(self.step), float(y)
        part = y / self.step
        first = float((math.floor(part) + 1 - part) * self.step)
        above: Floats = first + h * np.arange(math.ceil(self._points(low, h)) + 2, dtype=np.float64)
        # -(y + a)^2 / (2R) - (R lam^2 / 2 - lam y) = -(y - R lam + a)^2 / (2R) - lam a
        shifted = (low - self._r * lam) + above
        weights = np.exp(-shifted * shifted / (2 * self._r) - lam * above) * (h / math.sqrt(2 * math.pi * self._r))
        payoff = -np.expm1(-above)
        terms = weights * payoff * self._first_density(above, low)
        growth = 1 + self._growth
        rounding = CLOSE_SLACK * float(np.sum(weights * payoff)) * growth * (1 + self._r * lam * lam + abs(lam * low))
        left_out = float(weights[-1]) * growth / -math.expm1(-h * (low + float(above[-1])) / self._r)
        return math.fsum(terms), rounding + left_out

    @cached_property
    def _growth(self) -> float:
        """A bound of |first-order density - 1|."""
        return sum(size * (math.exp(2 * math.pi**2 * d * d / self._r) + 1) for d, size in self._smooth)


def smooth_sizes(groups: Sequence[NoiseGroup], r: float, cut: float) -> list[tuple[int, float]]:
    """Sensitivities and the sums of count 2 q / theta(0), of the groups whose first theta term peaks well inside the zone."""
    found: dict[int, float] = {}
    for g in groups:
        if 2 * math.pi * g.sensitivity / r <= cut / 2 and g.first > UNDERFLOW:
            found[g.sensitivity] = found.get(g.sensitivity, 0.0) + g.first
    return sorted(found.items())


def tilt_and_scale(r: float, y: float) -> tuple[float, float]:
    """The tilt lam > 0 and e^{R lam^2/2 - lam y} in units of e^{-y^2/(2R)}. Any lam > 0 is valid."""
    lam = max(y / r, _LEAST_TILT / math.sqrt(r))
    exponent = r * (lam - y / r) ** 2 / 2
    return lam, math.exp(exponent) if exponent < 700 else math.inf


def smooth_part(sizes: Sequence[Any], deltas: list[tuple[Any, float]]) -> tuple[Any, Any]:
    """The sum of size (Delta(D) - Delta(0)) and a bound of its rounding; a size may be an array, one entry a composition."""
    base, base_error = deltas[0]
    smooth, error = base * 0, 0.0
    for size, (value, own) in zip(sizes, deltas[1:], strict=True):
        smooth = smooth + size * (value - base)
        error = error + size * (own + base_error + FORMULA_SLACK * (abs(float(value)) + float(base)))
    return smooth, error


def is_known(gaussian: tuple[float, float]) -> bool:
    """Whether the Gaussian delta is much larger than its error: its two terms may cancel."""
    return gaussian[0] > 1e3 * gaussian[1]


def quotients(estimate: Any, remainder: Any, gaussian: tuple[float, float]) -> tuple[Any, Any]:
    """Bounds of (estimate -/+ remainder) / delta_Gaussian, the latter with its error; numbers or arrays."""
    base, error = gaussian
    low, high = estimate - remainder, estimate + remainder
    return low / (base + np.copysign(error, low)), high / (base - np.copysign(error, high))


def shifted_delta(r: float, y: float, shift: int) -> tuple[float, float]:
    """Re of the Gaussian delta at the complex threshold y + 2 pi i A, in units of e^{-y^2/(2R)}, and a bound of its error.

    With a = (y + 2 pi i A) / sqrt(2R), b = a + sqrt(R/2) and Faddeeva's w it is e^{2 pi^2 A^2/R} Re(e^{-2 pi i A y/R} (w(ia) -
    w(ib))) / 2.
    """
    a = complex(y, 2 * math.pi * shift) / math.sqrt(2 * r)
    first, second = complex(wofz(1j * a)), complex(wofz(1j * (a + math.sqrt(r / 2))))
    growth = math.exp(2 * math.pi**2 * shift * shift / r) / 2
    turn = 2 * math.pi * shift * y / r
    value = growth * (cmath.exp(-1j * turn) * (first - second)).real
    return value, FADDEEVA_SLACK * growth * (abs(first) + abs(second)) * (1 + abs(turn) + y * y / r)


def shifted_ball(spread: Fraction, epsilon: Fraction, shift: int = 0) -> arb:
    """The Gaussian delta at the complex threshold y + 2 pi i A, as a ball: with r = sqrt(2R), the real part of

    (erfc((y + 2 pi i A) / r) - e^epsilon erfc((y + R + 2 pi i A) / r)) / 2.
    """
    root = (2 * ball(spread)).sqrt()
    turn = 2 * arb.pi() * shift
    below, above = (acb(ball(epsilon + sign * spread / 2), turn) / root for sign in (-1, 1))
    return ((below.erfc() - ball(epsilon).exp() * above.erfc()) / 2).real
