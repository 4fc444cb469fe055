"""The distribution of the privacy loss itself: probabilities of lattice points, and a smoothed density for any composition.

On a lattice, P(h a <= S < h b) is a difference of two certified tails. Without one, delta determines the distribution: with
phi(k) = E (k - e^{-L})_+ = k delta(-log k), second differences of phi are expectations of tents. For a tent of half-width d
around the loss x (in e^{-L}; its integral over the loss is exactly d) this reads

    E tent = delta(x + d) / (e^d - 1) - delta(x) coth(d/2) + delta(x - d) / (1 - e^{-d}).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from exactdp.accounting.tradeoff_vertices import tails_of_bracket, upper_side
from exactdp.doubles import FEW_SLACK, Floats, exp_above, exp_below
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.payoff import Payoff, tail_threshold


def lattice_masses(contours: Contours, points: list[int]) -> tuple[Floats, Floats]:
    """Certified bounds of P(h a <= S < h b) for neighbours a, b in an ascending list of lattice points."""
    thresholds = [tail_threshold(upper_side(point)) for point in points]
    tails = tails_of_bracket(points, contours.evaluate(Payoff.TAIL, thresholds, neighbours=True).bracket)
    low, high = np.array([exp_below(t.low) for t in tails]), np.array([exp_above(t.high) for t in tails])
    # a difference is rounded once
    return np.maximum(np.nextafter(low[:-1] - high[1:], -1.0), 0.0), np.nextafter(high[:-1] - low[1:], 2.0)


def smoothed_density(
    delta: Callable[[list[Fraction]], tuple[Floats, Floats]], losses: list[Fraction], width: Fraction
) -> tuple[Floats, Floats]:
    """Bounds of E tent / d at each loss: the density of the loss, averaged over a tent of half-width d = `width`.

    `delta` takes a list of epsilons and returns bounds. Losses of either sign are allowed.
    """
    d = float(width)
    low, high = delta([x + sign * width for sign in (1, 0, -1) for x in losses])
    right, middle, left = 1 / math.expm1(d), 1 / math.tanh(d / 2), -1 / math.expm1(-d)
    (low1, low2, low3), (high1, high2, high3) = np.split(np.asarray(low), 3), np.split(np.asarray(high), 3)
    lower = (right * low1 - middle * high2 + left * low3) / d
    upper = (right * high1 - middle * low2 + left * high3) / d
    slack = FEW_SLACK * (right + middle + left) / d  # three products and two sums
    return np.maximum(lower - slack, 0.0), upper + slack
