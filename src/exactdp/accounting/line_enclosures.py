"""delta of a composition without a usable lattice, enclosed in balls: the smoothed Fourier sum of engine/line/ball.py.

About fifteen digits, since smoothing is the finest that a plan in doubles can make; as many as a claim of a design has, and by
another arithmetic than float64.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from flint import arb

from exactdp.accounting.composition import Composition
from exactdp.balls import BITS, precision
from exactdp.brackets import mirrored_ball
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.lattice import Group
from exactdp.engine.line.ball import LineBalls
from exactdp.engine.line.plan import make_line_plan
from exactdp.engine.line.tilts import Ladder
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError

FINEST = 1e-16
"""What smoothing may cost, relative to delta, where the effort allows it."""

_MOST = 5_000  # theta functions: each takes 40 microseconds and more
_COARSER = 1_000.0  # times the smoothing where there are more
_EFFORT = Effort(terms=100_000)


def enclosed_on_line(
    composition: Composition, epsilon: Fraction, *, finest: float = FINEST, is_other: bool = False
) -> arb:
    """An enclosure of delta(epsilon) of discrete Gaussians, at BITS of precision.

    With `is_other` on another tilt, with another period and smoothing, than float64 takes for this epsilon. AccuracyError or
    LatticeTooFineError where no plan is affordable.

    >>> from exactdp import DiscreteGaussian
    >>> fine = Composition({DiscreteGaussian(Fraction(4099 * k, 104 + k)): 9 for k in range(1, 40)})
    >>> enclosed_on_line(fine, Fraction(5)).str(12, radius=False)
    '1.21986052806e-6'
    """
    total, size = TotalLoss.of(composition.mechanisms), abs(epsilon)
    ladder = Ladder(total)
    payoff, index = ladder.place_of(float(size))
    where = ladder.rung(payoff, index + 1 if is_other else index)
    groups = Group.of_each(composition.discrete_gaussians)
    for width in (finest, finest * _COARSER):
        plan = make_line_plan(total, replace(where, low=float(size), high=float(size)), _EFFORT, width)
        if len(plan.kept) * len(groups) <= _MOST:
            break
    else:
        raise AccuracyError(f"{len(plan.kept):,} nodes would have to be evaluated in balls")
    found = LineBalls(groups, plan, BITS).evaluate(size)
    with precision(BITS):
        return mirrored_ball(1 - found if payoff is Payoff.COMPLEMENT else found, epsilon)
