"""The privacy profile delta(epsilon), certified (its inverse is in epsilon_search.py).

    delta(epsilon) = sum over losses above epsilon of P(loss) (1 - exp(epsilon - loss))

For negative epsilon, delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon) (symmetry of the noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from exactdp.brackets import Bracket, Point, mirrored_brackets, overwrite
from exactdp.doubles import UNDERFLOW
from exactdp.engine.lattice.accuracy import RESORT_WIDTH, Resort, refine
from exactdp.engine.lattice.conditioning import decisive, log_weights, mix, support
from exactdp.engine.lattice.contours import Contours, Values
from exactdp.engine.payoff import Payoff, delta_threshold


def profile(contours: Contours, epsilons: list[Fraction], resort: Resort = Resort.BALLS) -> Point:
    """Certified delta and 1 - delta at each epsilon: in float64, and where that is too wide by the next steps up to `resort`."""
    point = _summed(contours, epsilons)
    refine(
        point,
        resort,
        lambda i: _conditioned(contours, epsilons[i], bool(point.delta.upper_floats()[i] < 0.5)),
        lambda i: _summed(contours, [epsilons[i]], balls=True),
    )
    return point


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
    point = profile(rest, inner, Resort.NONE)
    part = point.delta if small else point.rest
    again = decisive(split, xs, part.log_lower(), part.log_upper(), RESORT_WIDTH)
    if again:
        overwrite(point, again, profile(rest, [inner[i] for i in again]))
        part = point.delta if small else point.rest
    mixed = mix(split, xs, part.log_lower(), part.log_upper(), rising=small)
    if not math.isfinite(mixed[2]):
        return None
    direct = Bracket(*(np.array([value]) for value in mixed))
    delta, other = (direct, direct.one_minus()) if small else (direct.one_minus(), direct)
    density = np.logaddexp.reduce(log_weights(split, xs) + point.log_density)
    return Point(delta, other, np.array([float(density)]))


def _summed(contours: Contours, epsilons: list[Fraction], balls: bool = False) -> Point:
    """The profile by Fourier sums over the whole composition."""
    sizes = [e if e.numerator >= 0 else -e for e in epsilons]  # quicker than abs of most

    def evaluate(kind: Payoff, places: list[int]) -> Values:
        return contours.evaluate(kind, [delta_threshold(contours.lattice, sizes[i]) for i in places], balls)

    return point_of_sums(epsilons, list(map(contours.payoff_at, sizes)), evaluate)


def point_of_sums(
    epsilons: list[Fraction], kinds: list[Payoff], evaluate: Callable[[Payoff, list[int]], Values]
) -> Point:
    """The profile from Fourier sums at |epsilon|: `evaluate` gives delta or 1 - delta, as `kinds` says, at given places."""
    by_payoff: dict[Payoff, list[int]] = {}
    for i, kind in enumerate(kinds):
        by_payoff.setdefault(kind, []).append(i)
    found = [(members, point_of_values(kind, evaluate(kind, members))) for kind, members in by_payoff.items()]
    if len(found) == 1:
        return mirrored_brackets(found[0][1], epsilons)
    point = Point.of_rows(np.empty((7, len(epsilons))))
    for members, part in found:
        overwrite(point, members, part)
    return mirrored_brackets(point, epsilons)


def point_of_values(kind: Payoff, values: Values) -> Point:
    """delta and 1 - delta from the one that was summed."""
    direct, other = values.bracket, values.bracket.one_minus()
    density = np.log(np.abs(values.log_slope) * direct.upper + UNDERFLOW) + direct.log_scale
    return Point(direct, other, density) if kind is Payoff.DELTA else Point(other, direct, density)
