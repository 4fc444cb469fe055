"""Labels of steps: an output x is called large with probability w(x) = Phi((x - cut) / width), and small otherwise.

Who forgets the labels has the mechanism back, so a composition is the mixture of what it is given how many steps are large
(docs/theory/smooth.md, Theorem S8). Phi is entire, so moments of labelled steps are as smooth as those of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flint import acb, arb
from scipy.special import log_ndtr

from exactdp.doubles import Floats


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
