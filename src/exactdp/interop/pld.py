"""Compositions as pessimistic privacy loss distributions of dp_accounting, for riskcal and others (docs/interop.md)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.doubles import Floats
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.numbers import exact_double, positive, shown

try:
    from dp_accounting.pld.pld_pmf import DensePLDPmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
except ImportError:
    raise MissingExtraError("The export of privacy loss distributions", "interop") from None

LARGEST_GRID = 4_000_000
"""Grid points above 0 that `to_pld` evaluates at most."""

_ROOM = 1e-10  # added to every probability for the rounding of dp_accounting
_BLOCK = 20_000


@steady
def to_pld(composition: Composition, interval: float = 1e-4, tail_mass: float = 1e-20) -> Any:
    """A composition as a pessimistic dp_accounting PrivacyLossDistribution, for libraries that take one.

    The losses are multiples of `interval`. Guarantee: its delta is at least the exact one at every epsilon, also after composing
    it with other pessimistic ones (docs/interop.md, Theorem 4), up to the rounding of dp_accounting itself. It is larger by at
    most P(loss within the same interval) (e^interval - 1) / 4 plus `tail_mass`, which goes to the infinite loss, plus 1e-9 of
    itself. One certified delta is computed for each multiple of the interval, 30 to 200 microseconds each.

    >>> from exactdp import DiscreteGaussian
    >>> pld = to_pld(3 * DiscreteGaussian(2), interval=0.01)
    >>> bool(0 <= pld.get_delta_for_epsilon(1.5) / (3 * DiscreteGaussian(2)).delta(1.5) - 1 < 1e-4)
    True
    """
    step, tail = exact_double(interval, "interval"), positive(tail_mass, "tail_mass")
    lost = Fraction(composition.delta(math.inf))
    if lost + tail >= 1:
        raise InvalidInputError(
            f"tail_mass must leave something: infinite losses have {float(lost)}. Found {shown(tail_mass)}."
        )
    last = max(math.ceil(Fraction(max(composition.epsilon(lost + tail), 0.0)) / step), 1)
    if last > LARGEST_GRID:
        raise InvalidInputError(
            f"The losses need {last:,} intervals of {float(interval)}, more than {LARGEST_GRID:,}. Take a larger interval."
        )
    deltas = np.concatenate(
        [composition.delta([k * step for k in range(a, min(a + _BLOCK, last + 1))]) for a in range(0, last + 1, _BLOCK)]
    )
    vertices = _convex(deltas, float(step))
    above, at_0 = _masses(deltas[vertices], vertices * float(step))
    upper = np.zeros(last)
    upper[vertices[1:] - 1] = above
    lower = (upper * np.exp(-float(step) * np.arange(1, last + 1)))[::-1]
    probabilities = np.concatenate([lower, [at_0], upper]) * (1 + _ROOM)
    return PrivacyLossDistribution(DensePLDPmf(float(step), -last, probabilities, float(deltas[-1]), True))


def _convex(deltas: Floats, step: float) -> Any:
    """Indices of grid points, first and last included, on whose chords in e^epsilon delta is convex. Heuristic: any are valid."""
    values = deltas.tolist()
    kept = [0]
    for k in range(1, len(values)):
        while len(kept) > 1:
            i, j = kept[-2], kept[-1]
            before = (values[j] - values[i]) / -math.expm1((i - j) * step)
            after = (values[k] - values[j]) / math.expm1(min((k - j) * step, 700.0))
            if before < after:
                break
            kept.pop()
        kept.append(k)
    return np.array(kept)


def _masses(deltas: Floats, epsilons: Floats) -> tuple[Floats, float]:
    """Probabilities at the epsilons above 0, and at 0, of the symmetric loss whose delta joins the points by chords; rounded up.

    The chords' slopes times e^epsilon, at their right and left ends; the mass is the change of slope.
    """
    gaps = np.diff(epsilons)
    with np.errstate(over="ignore"):
        leaving, arriving = np.diff(deltas) / np.expm1(gaps), np.diff(deltas) / -np.expm1(-gaps)
    error = 2.0**-52 * (4 + gaps)
    right, right_error = np.append(leaving[1:], 0.0), np.append((error * np.abs(leaving))[1:], 0.0)
    above = np.maximum(right - arriving, 0.0) + right_error + error * np.abs(arriving)
    at_0 = 1 - float(deltas[0]) + 2 * float(leaving[0] + error[0] * abs(leaving[0]))
    return above, max(at_0, 0.0) + 2.0**-50
