"""Labels of steps: an output x is called large with probability w(x) = Phi((x - cut) / width), and small otherwise.

Who forgets the labels has the mechanism back, so a composition is the mixture of what it is given how many steps are large
(docs/theory/smooth.md, Theorem S8). Phi is entire, so moments of labelled steps are as smooth as those of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from flint import acb, arb
from scipy.special import log_ndtr

from exactdp.doubles import ACCOUNT_SLACK, Floats

_FAR = 1000.0  # widths from which on two large logarithms would cancel


@dataclass(frozen=True)
class StepLabel:
    """One of the two labels; `cut` and `width`, in units of the noise, are the exact doubles that they are."""

    cut: float
    width: float
    is_large: bool

    def logs(self, x: Floats) -> Floats:
        """log w(x), or log(1 - w(x)) for small steps."""
        away = (x - self.cut) / self.width
        result: Floats = log_ndtr(away if self.is_large else -away)
        return result

    def ball(self, at: arb | acb) -> arb | acb:
        """The same probability as a ball, on or off the real line."""
        away = (at - arb(self.cut)) / (arb(self.width) * arb(2).sqrt())
        return (-away if self.is_large else away).erfc() / 2

    def log_growth(self, y: Floats) -> Floats:
        """log of a bound of |w(u + iy)| / w(u): e^{y^2 / (2 width^2)} (Lemma S9)."""
        return y * y / (2 * self.width**2)

    def rate(self, x: float) -> float:
        """A bound from below of |d log w / dx| on the side of the cut on which w falls, 0 on the other one (Lemma S9)."""
        return max(self.cut - x if self.is_large else x - self.cut, 0.0) / self.width**2

    def falls_at(self, x: float) -> bool:
        """Whether x is on the side of the cut on which w falls."""
        return x < self.cut if self.is_large else x > self.cut

    def reach(self, deviations: float) -> float:
        """So many deviations of a normal density times the bound of w beyond the cut. Heuristic: affects speed only."""
        return deviations * self.width / math.sqrt(1 + self.width**2)


@dataclass(frozen=True)
class Band:
    """The label of outputs between two cuts: w(x) = Phi((x - lower) / width) - Phi((x - upper) / width). Without a lower cut
    the first term is 1. Cuts and width, in units of the noise, are exact doubles; cuts are four widths apart or more."""

    lower: float | None
    upper: float
    width: float

    def logs(self, x: Floats) -> Floats:
        """log w(x), from the side on which w is small."""
        above = (x - self.upper) / self.width
        if self.lower is None:
            result: Floats = log_ndtr(-above)
            return result
        below = (x - self.lower) / self.width
        falls = below + above > 0
        larger = log_ndtr(np.where(falls, -above, below))
        between: Floats = larger + np.log1p(-np.exp(log_ndtr(np.where(falls, -below, above)) - larger))
        return between

    def ball(self, at: arb) -> arb:
        """w(x) as a ball."""
        scale = arb(self.width) * arb(2).sqrt()
        above = (at - arb(self.upper)) / scale
        if self.lower is None:
            return above.erfc() / 2
        below = (at - arb(self.lower)) / scale
        if bool((below + above).mid() > 0):
            return (above.erfc() - below.erfc()) / 2
        return ((-below).erfc() - (-above).erfc()) / 2

    def log_most(self, low: Floats, high: Floats) -> Floats:
        """log of a bound of w between two outputs."""
        result: Floats = log_ndtr((self.upper - low) / self.width)
        return result if self.lower is None else np.minimum(result, log_ndtr((high - self.lower) / self.width))

    def rates(self, x: Floats) -> Floats:
        """Bounds from above of the derivative of log w from x on, where it falls (Lemma S14)."""
        falls: Floats = (self.upper - x) / self.width**2
        rises = np.zeros_like(x) if self.lower is None else self._hazard((self.lower - x) / self.width)
        result: Floats = np.minimum(falls, rises)
        return result

    def _hazard(self, t: Floats) -> Floats:
        """A bound of phi(t) / Phi(-t), for each width; it is below t + 1/t."""
        near = np.minimum(t, _FAR)
        slope = np.exp(-0.5 * near * near - 0.5 * math.log(2 * math.pi) - log_ndtr(-near)) * (1 + ACCOUNT_SLACK)
        result: Floats = np.where(t > _FAR, t + 1 / _FAR, slope)
        return result / self.width

    def log_growth(self, y: Floats) -> Floats:
        """log of a bound of |w(u + iy)| / w(u) (Lemma S14)."""
        return y * y / (2 * self.width**2)

    def first(self, deviations: float) -> float:
        """So many deviations of a normal density times w below which hardly anything is left; -inf without a lower cut."""
        if self.lower is None:
            return -math.inf
        spread = 1 + self.width**2
        return self.lower / spread - deviations * self.width / math.sqrt(spread)

    def log_mass_below(self, x: float) -> float:
        """log of a bound of E w 1{output < x} for a standard normal output: below the lower cut w is at most a normal density's
        exponential (Lemma S14)."""
        if self.lower is None or x > self.lower:
            return 0.0
        spread = 1 + self.width**2
        away = (x - self.lower / spread) * math.sqrt(spread) / self.width
        return float(log_ndtr(away)) - self.lower**2 / (2 * spread)
