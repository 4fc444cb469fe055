"""The privacy profile: delta(epsilon) and its inverse epsilon(delta), certified.

    delta(epsilon) = sum over losses above epsilon of P(loss) (1 - exp(epsilon - loss))

For negative epsilon, delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon) (symmetry of the noise).
epsilon(delta) is the infimum of all real epsilon with delta(epsilon) <= delta, so it is negative when delta > delta(0).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from exactdp.brackets import Bracket, Point, mirrored
from exactdp.doubles import Bools
from exactdp.engine.lattice.conditioning import decisive, log_weights, mix, support
from exactdp.engine.lattice.contours import RESORT_TO_BALLS, Contours, Values
from exactdp.engine.lattice.tilts import delta_payoff
from exactdp.engine.payoff import Payoff, delta_threshold


def profile(contours: Contours, epsilons: list[Fraction], resort: bool = True, balls: bool = True) -> Point:
    """Certified delta and 1 - delta at each epsilon.

    Float64; where that is too wide and `resort` is set, by conditioning on a coarse mechanism, and then, with `balls`, in balls.
    """
    point = _summed(contours, epsilons, resort=False)
    if not resort:
        return point
    for i in np.flatnonzero(is_wide(point)):
        better = _conditioned(contours, epsilons[i], bool(point.delta.upper_floats()[i] < 0.5))
        if balls and (better is None or is_wide(better)[0]):
            better = _summed(contours, [epsilons[i]], resort=True)
        if better is not None:
            replace(point, [int(i)], better)
    return point


def is_wide(point: Point) -> Bools:
    """Where the bounds of delta or of 1 - delta are too wide to be returned without another try."""
    result: Bools = point.delta.is_wide(RESORT_TO_BALLS) | point.rest.is_wide(RESORT_TO_BALLS)
    return result


def _conditioned(contours: Contours, epsilon: Fraction, small: bool) -> Point | None:
    """delta(epsilon) as a mixture over one coarse mechanism; 1 - delta instead unless delta is `small` (Theorem 7)."""
    if contours.clumps is None:
        return None
    split, rest = contours.clumps
    xs = support(split, float(epsilon - contours.lattice.spread / 2), upper_tail=small)
    if not xs:
        return None
    base, weight = epsilon - split.half, split.one.weight
    inner = [base - weight * x for x in xs]
    point = profile(rest, inner, resort=False)
    part = point.delta if small else point.rest
    again = decisive(split, xs, part.log_lower(), part.log_upper(), RESORT_TO_BALLS)
    if again:
        replace(point, again, profile(rest, [inner[i] for i in again]))
        part = point.delta if small else point.rest
    mixed = mix(split, xs, part.log_lower(), part.log_upper(), rising=small)
    if not math.isfinite(mixed[2]):
        return None
    direct = Bracket(*(np.array([value]) for value in mixed))
    delta, other = (direct, direct.one_minus()) if small else (direct.one_minus(), direct)
    density = np.logaddexp.reduce(log_weights(split, xs) + point.log_density)
    return Point(delta, other, np.array([float(density)]))


def replace(point: Point, places: list[int], better: Point) -> None:
    """Put the values of `better` into the given places of `point`."""
    for new, old in zip(better.rows(), point.rows(), strict=True):
        old[places] = new


def _summed(contours: Contours, epsilons: list[Fraction], resort: bool) -> Point:
    """The profile by Fourier sums over the whole composition."""
    lattice = contours.lattice

    def evaluate(kind: Payoff, places: list[int]) -> Values:
        return contours.evaluate(kind, [delta_threshold(lattice, abs(epsilons[i])) for i in places], resort)

    return point_of_sums(epsilons, [delta_payoff(lattice, abs(e)) for e in epsilons], evaluate)


def point_of_sums(
    epsilons: list[Fraction], kinds: list[Payoff], evaluate: Callable[[Payoff, list[int]], Values]
) -> Point:
    """The profile from Fourier sums at |epsilon|: `evaluate` gives delta or 1 - delta, as `kinds` says, at given places."""
    by_payoff: dict[Payoff, list[int]] = {}
    for i, kind in enumerate(kinds):
        by_payoff.setdefault(kind, []).append(i)
    parts = np.empty((7, len(epsilons)))
    for kind, members in by_payoff.items():
        values = evaluate(kind, members)
        direct, other = values.bracket, values.bracket.one_minus()
        delta, rest = (direct, other) if kind is Payoff.DELTA else (other, direct)
        density = np.log(np.abs(values.log_slope) * direct.upper + 1e-300) + direct.log_scale
        for row, part in enumerate((*delta.rows(), *rest.rows(), density)):
            parts[row, members] = part
    return mirrored(Point.of_rows(parts), epsilons)
