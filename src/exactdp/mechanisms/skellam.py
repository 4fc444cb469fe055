"""The Skellam mechanism: adds the difference of two Poisson numbers of the same mean to an integer count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, precision
from exactdp.doubles import POWER_SLACK, REMAINDER_SLACK, UNIT, Bools, Complexes, Floats, root
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.mechanisms.bessel_table import BesselTable, tables
from exactdp.mechanisms.loss import Loss, Tilted
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_text, positive, shown, whole

SMALLEST_VARIANCE = Fraction(1, 1000)
LARGEST_VARIANCE = Fraction(10**6)
LARGEST_SENSITIVITY = 4096
LARGEST_WEIGHT = 1000

_CLEARLY = 1e-9  # by how much a loss exceeds a threshold for certain. Heuristic: affects speed and accuracy only
_IN_BALLS = 140.0  # -log of what a moment in balls may leave out: below 2^-BITS
_IN_DOUBLES = 44.0  # -log of the tilted mass that a list of doubles may leave out
_TAIL = 17.0  # deviations from which on probabilities are below the last digit of those before
_SMOOTH_FROM = (
    400.0  # from this most likely output on, sums over outputs are integrals to the digits that searches need
)
_OUT_OF_REACH = "The moments of Skellam noise are out of reach at so large a tilt."


@steady
@dataclass(frozen=True, init=False, repr=False)
class Skellam(Mechanism):
    """Noise A - B on a count of integer sensitivity, A and B Poisson numbers of mean variance / 2 each.

    P(X = x) = e^-variance I_x(variance), a modified Bessel function. The sum of independent Skellam numbers is one again: noise
    that several parties add piece by piece, as in federated learning, is accounted for by its total variance.

    >>> Skellam(100).epsilon(1e-6) < 0.5
    True
    """

    variance: Fraction
    sensitivity: int

    def __init__(self, variance: Number, sensitivity: int = 1) -> None:
        object.__setattr__(self, "variance", positive(variance, "variance"))
        object.__setattr__(self, "sensitivity", whole(sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY))
        if not SMALLEST_VARIANCE <= self.variance <= LARGEST_VARIANCE:
            raise InvalidInputError(
                f"variance must be between {float(SMALLEST_VARIANCE)} and {float(LARGEST_VARIANCE):.0e} for Skellam noise (above "
                f"it take DiscreteGaussian). Found {shown(variance)}."
            )
        if self.sensitivity > LARGEST_WEIGHT * self.variance:
            raise InvalidInputError(
                f"sensitivity / variance must be at most {LARGEST_WEIGHT} (such noise protects nothing). "
                f"Found {self.sensitivity} / {shown(self.variance)}."
            )

    @property
    def rho(self) -> float:
        """Infinite: no zCDP parameter of Skellam noise is proved here."""
        return math.inf

    def pmf(self, x: int) -> float:
        """P(X = x)."""
        with precision(BITS):
            at = ball(self.variance)
            return float((at.bessel_i(arb(abs(x))) * (-at).exp()).mid())

    def tail(self, x: int) -> float:
        """P(X >= x), accurate in relative terms however small; 0 where it is below the doubles."""
        if x <= 0:
            return 1.0 - self.tail(1 - x)
        far = x + math.ceil(_TAIL * math.sqrt(self.variance))
        table = next((t for t in tables(self.variance, 1) if t.reach >= far), None)
        return 0.0 if table is None else math.fsum(np.exp(table.floats[0][x + table.reach :]))

    def loss(self) -> Loss:
        """log(p(x) / p(x - sensitivity)) under p; symmetric, because p is."""
        return SkellamLoss(self.variance, self.sensitivity)

    def _scaled(self, by: Fraction) -> Skellam:
        return Skellam(self.variance * by, self.sensitivity)

    def __str__(self) -> str:
        extra = "" if self.sensitivity == 1 else f", sensitivity={self.sensitivity}"
        return f"Skellam({exact_text(self.variance)!r}{extra})"


class SkellamLoss(Loss):
    """Listed under each tilt, but for outputs whose tilted probability is bounded by docs/theory/skellam.md, Theorem K2."""

    has_transform = False
    unit = None

    def __init__(self, variance: Fraction, sensitivity: int) -> None:
        self.variance, self.sensitivity = variance, sensitivity
        self._v, self._d = float(variance), float(sensitivity)
        first = self._d * math.asinh((1 + self._d / 2) / self._v)
        self.widest = max(self._d**2 / self._v, first**2 if variance < 1 else 0.0)

    @cached_property
    def _tables(self) -> list[BesselTable]:
        return tables(self.variance, self.sensitivity)

    def _reaching(self, least: float, enough: Callable[[BesselTable], bool]) -> BesselTable:
        """The first table of at least this reach that is long enough."""
        for table in self._tables:
            if table.reach >= least and enough(table):
                return table
        raise AccuracyError(_OUT_OF_REACH)

    def terms(self, z: float, digits: float) -> tuple[BesselTable, Floats, Bools, float]:
        """For z >= -1/2: log p(x) + z loss(x) in doubles, which of them to keep, log of a bound of all others; these are below
        e^-digits of the largest, each."""

        def enough(table: BesselTable) -> bool:
            logs, losses = table.floats
            return table.log_beyond(z) < float((logs + z * losses).max()) - digits

        table = self._reaching(self._likeliest(z) - self._d, enough)
        logs, losses = table.floats
        exponents = logs + z * losses
        top = float(exponents.max())
        keep: Bools = exponents > top - digits
        dropped = top - digits + math.log(max(len(exponents) - int(keep.sum()), 1))
        return table, exponents, keep, float(np.logaddexp(dropped, table.log_beyond(z))) + REMAINDER_SLACK

    def log_moment(self, z: Fraction) -> arb:
        """log of the sum over x of p(x) e^{z loss(x)}, measured from the largest term; M(z) = M(-1 - z) by symmetry."""
        if z in (0, -1):
            return arb(0)
        at = max(z, -1 - z)
        table, exponents, keep, log_left = self.terms(float(at), _IN_BALLS)
        power, top = ball(at), int(np.argmax(exponents))
        base = table.balls[top][0] + power * table.balls[top][1]
        listed = [table.balls[i] for i in np.flatnonzero(keep).tolist()]
        total = sum(((log + power * loss - base).exp() for log, loss in listed), arb(0))
        left = arb(0).union((arb(log_left) - base).exp().upper())
        return base + (total + left).log()

    def log_moment_upper(self, z: float) -> float:
        """A double above log E e^{zL}."""
        at = max(z, -1 - z)
        try:
            table, exponents, keep, log_left = self.terms(at, _IN_DOUBLES)
        except AccuracyError:
            return self._log_moment_far(at)
        logs, losses = table.floats
        top = float(exponents.max())
        total = math.fsum(np.exp(exponents[keep] - top)) + math.exp(log_left - top)
        size = 1 + float(np.max(np.abs(logs[keep]) + np.abs(at * losses[keep])))
        return top + math.log(total) + POWER_SLACK * size

    def _log_moment_far(self, z: float) -> float:
        """A bound for orders that no table serves, z > 0: with s = zD and any t > 0 (Theorem K4)

        log E e^{zL} <= s log(s / (e t)) + t (1 + 2D / V) + V (cosh(2t / V) - 1) + log 2
        """
        s, v, base = z * self._d, self._v, 1 + 2 * self._d / self._v
        t = root(lambda t: t * (base + 2 * math.sinh(min(2 * t / v, 700.0))) - s, 0.0, s)
        terms = [s * math.log(s), -s * (1 + math.log(t)), t * base, 2 * v * math.sinh(t / v) ** 2, math.log(2)]
        return math.fsum(terms) + POWER_SLACK * sum(map(abs, terms))

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Mean and variance under the tilt: from a table, or where outputs are large by the curvature at the most likely one."""
        at = max(tilt, -1 - tilt)
        sign = 1.0 if at == tilt else -1.0
        if self._v > _SMOOTH_FROM or self._likeliest(at) > _SMOOTH_FROM:
            mean, variance = self._smooth(at)
            return sign * mean, variance
        table, exponents, keep, _ = self.terms(at, _IN_DOUBLES)
        weights = np.exp(exponents[keep] - exponents.max())
        weights /= weights.sum()
        losses = table.floats[1][keep]
        mean = float(weights @ losses)
        return sign * mean, float(weights @ (losses - mean) ** 2)

    def _likeliest(self, z: float) -> float:
        """About the middle of the two counts at the most likely output under the tilt, as a distance from 0.

        With u that middle log p is about -u asinh(u / V) + ..., whose slope is -asinh(u / V), and the loss is D asinh(u / V): the
        tilted slope vanishes where asinh(u / V) = (z + 1/2) D / sqrt(V^2 + u^2).
        """
        pull = (z + 0.5) * self._d

        def slope(u: float) -> float:
            return math.asinh(u / self._v) * math.hypot(self._v, u) - pull

        return root(slope, 0.0, pull + 1.0) if pull > 0 else 0.0

    def _smooth(self, z: float) -> tuple[float, float]:
        u = self._likeliest(z)
        width = math.hypot(self._v, u)
        curvature = 1 / width + (z + 0.5) * self._d * u / width**3
        return self._d * math.asinh(u / self._v), (self._d / width) ** 2 / curvature

    def delta(self, y: arb) -> tuple[arb, arb] | None:
        """The sum of p(x) - e^y p(x - D) over the outputs whose loss exceeds y >= 0: all up to one, as losses fall with x.

        Those beyond a table have a sum between 0 and that of their probabilities (Theorem K3).
        """
        at = float(y.mid())
        try:
            table = self._reaching(self._v * math.sinh(min(at / self._d, 700.0)) - self._d, lambda t: _answers(t, at))
        except AccuracyError:
            return None
        with precision(BITS):
            factor, total, others = y.exp(), arb(0), arb(0)
            for log, loss in table.balls:
                p, q = log.exp(), (log - loss).exp()
                if bool(p <= factor * q):  # and so it is for all later ones
                    break
                total += (p - factor * q).max(arb(0))
                others += q
            return total + arb(0).union(arb(table.log_beyond(0.0)).exp().upper()), factor * others

    def tilted(self, tilt: Fraction) -> Tilted:
        """The likely outputs with tilted probabilities."""
        return _TiltedSkellam(self, tilt)


def _answers(table: BesselTable, y: float) -> bool:
    """Whether the outputs beyond a table are negligible next to those whose loss exceeds y."""
    logs, losses = table.floats
    above = np.flatnonzero(losses > y * (1 + _CLEARLY) + _CLEARLY)
    return len(above) > 1 and table.log_beyond(0.0) < float(logs[above[-2]]) - _IN_BALLS


class _TiltedSkellam(Tilted):
    """Outputs measured from the most likely one under the tilt."""

    def __init__(self, loss: SkellamLoss, tilt: Fraction) -> None:
        at = max(tilt, -1 - tilt)
        table, exponents, keep, log_left = loss.terms(float(at), _IN_DOUBLES)
        top = int(np.argmax(exponents))
        listed = [table.balls[i] for i in np.flatnonzero(keep).tolist()]
        with precision(BITS):
            power = ball(at)
            base = table.balls[top][0] + power * table.balls[top][1]
            sizes = np.array([float((log + power * x - base).mid()) for log, x in listed])
            middle = table.balls[top][1]
            values = np.array([float((x - middle).mid()) for _, x in listed])
            self.anchor = middle if at == tilt else -middle
        self._values: Floats = values if at == tilt else -values
        weights = np.exp(sizes)
        total = math.fsum(weights)
        missing = math.exp(log_left - float(exponents[top])) / total * (1 + REMAINDER_SLACK)
        self._weights: Floats = weights / total
        self._relative = UNIT * (16 + 2 * float(-sizes.min())) + missing
        self._missing = missing

    def values(self) -> tuple[Floats, Floats, float, float, float]:
        """The list."""
        return (
            self._values,
            self._weights,
            2 * UNIT * float(np.max(np.abs(self._values))),
            self._relative,
            self._missing,
        )

    def log_cf(self, v: Floats, omega: Floats) -> tuple[Complexes, Floats]:
        raise AccuracyError("The Fourier sum does not apply: Skellam noise has too many values.")
