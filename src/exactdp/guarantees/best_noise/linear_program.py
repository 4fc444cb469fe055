"""The table of least cost under inequalities that are linear in it, and the multipliers that prove how good any table can be.

The solver's word counts for nothing here: its multipliers become a `NoiseBound`, which is exact whatever they are, and its table
is rounded to fractions and judged by the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.doubles import Floats
from exactdp.errors import AccuracyError
from exactdp.guarantees.best_noise.lower_bound import (
    Affinity,
    Cost,
    HockeyStick,
    Inequality,
    Multipliers,
    NoiseBound,
    multipliers,
)

_NOTHING = 1e-15  # a weight below it is none: the bound is the simpler, and as good


@dataclass(frozen=True)
class Stick:
    """sum over x of (p(x) - ratio p(x - shift))_+ is at most `allowed`."""

    shift: int
    ratio: Fraction
    allowed: Fraction


@dataclass(frozen=True)
class Tangent:
    """The linear form of an affinity of at least `least`, with slopes s(x)."""

    shift: int
    least: Fraction
    slopes: Multipliers


@dataclass(frozen=True)
class Solved:
    """A table p(0), ..., p(reach) of symmetric noise, as the solver gives it, and the bound that its multipliers prove."""

    half: Floats
    bound: NoiseBound


def solve(
    cost: Cost, reach: int, sticks: Sequence[Stick], tangents: Sequence[Tangent] = (), sizes: Floats | None = None
) -> Solved:
    """Minimise the mean cost among symmetric tables on -reach .. reach.

    Unknowns are p(x) / sizes(x), and rows are divided by sizes(x), so that the solver's tolerances are relative to them.
    """
    from scipy.optimize import linprog  # takes as long to import as the rest of this package
    from scipy.sparse import coo_array, hstack, vstack

    scale = np.ones(reach + 1) if sizes is None else sizes
    x = np.arange(reach + 1)
    twice = np.where(x > 0, 2.0, 1.0)
    costs = np.array([cost.of(int(i)) for i in x], dtype=np.float64)
    blocks, slacks, totals, allowed = [], [], [], []
    for stick in sticks:
        block, size = _rows(stick, scale, reach)
        blocks.append(block)
        slacks.append(-float(stick.allowed) / size)
        totals.append(np.ones(len(size)))
        allowed.append(1.0)
    forms = np.array([_form(one, reach) * scale for one in tangents]).reshape(len(tangents), reach + 1)
    width = sum(len(s) for s in slacks)
    diagonal = np.concatenate([*slacks, np.zeros(0)])
    slack = coo_array((diagonal, (np.arange(width), np.arange(width))), shape=(width, width))
    upper = hstack([vstack([*blocks, coo_array((0, reach + 1))]), slack])
    sums = np.zeros((len(sticks), width))
    start = 0
    for i, total in enumerate(totals):
        sums[i, start : start + len(total)] = total
        start += len(total)
    rows = vstack(
        [
            upper,
            hstack([coo_array((len(sticks), reach + 1)), coo_array(sums)]),
            hstack([coo_array(-forms), coo_array((len(tangents), width))]),
        ]
    )
    right = np.concatenate([np.zeros(width), allowed, [-float(one.least) for one in tangents]])
    found: Any = linprog(
        np.concatenate([twice * costs * scale, np.zeros(width)]),
        A_ub=rows.tocsr(),
        b_ub=right,
        A_eq=hstack([coo_array((twice * scale)[None, :]), coo_array((1, width))]).tocsr(),
        b_eq=[1.0],
        method="highs",
    )
    if found.x is None:
        raise AccuracyError(
            f"No table on -{reach} .. {reach} meets the target, or the solver found none. Allow a wider table."
        )
    prices = -found.ineqlin.marginals
    bound = _bound(cost, reach, sticks, tangents, scale, prices, width)
    return Solved(np.maximum(found.x[: reach + 1], 0.0) * scale, bound)


def _rows(stick: Stick, scale: Floats, reach: int) -> tuple[Any, Floats]:
    """One row for each x from -reach to reach + shift: (p(x) - ratio p(x - shift)) / size, and the sizes."""
    from scipy.sparse import coo_array

    x = np.arange(-reach, reach + stick.shift + 1)
    row = np.arange(len(x))
    size = scale[np.minimum(np.abs(x), reach)]
    own, other = np.abs(x) <= reach, np.abs(x - stick.shift) <= reach
    places = np.concatenate([np.abs(x)[own], np.abs(x - stick.shift)[other]])
    values = np.concatenate([np.ones(own.sum()), np.full(other.sum(), -float(stick.ratio))])
    at = np.concatenate([row[own], row[other]])
    return coo_array((values * scale[places] / size[at], (at, places)), shape=(len(x), reach + 1)), size


def _form(tangent: Tangent, reach: int) -> Floats:
    """The coefficients of p(0), ..., p(reach): (s(x) + 1 / s(x + shift)) / 2, with those of -x."""
    x = range(-reach, reach + 1)
    full = np.array([float(tangent.slopes.at(i) + 1 / tangent.slopes.at(i + tangent.shift)) / 2 for i in x])
    return np.concatenate([full[reach : reach + 1], full[reach + 1 :] + full[:reach][::-1]])


def _bound(
    cost: Cost,
    reach: int,
    sticks: Sequence[Stick],
    tangents: Sequence[Tangent],
    scale: Floats,
    prices: Floats,
    width: int,
) -> NoiseBound:
    """The multipliers of the rows, moved into their ranges, as exact numbers."""
    inequalities: list[Inequality] = []
    start = 0
    for i, stick in enumerate(sticks):
        x = np.arange(-reach, reach + stick.shift + 1)
        test = prices[start : start + len(x)] / scale[np.minimum(np.abs(x), reach)]
        start += len(x)
        weight = max(float(test.max()), float(prices[width + i]) / float(stick.allowed) if stick.allowed else 0.0)
        if weight > _NOTHING:
            steps = multipliers(-reach, test.tolist(), 0.0, weight)
            inequalities.append(HockeyStick(stick.shift, stick.ratio, stick.allowed, Fraction(weight), steps))
    for tangent, price in zip(tangents, prices[width + len(sticks) :], strict=True):
        if price > _NOTHING:
            inequalities.append(Affinity(tangent.shift, tangent.least, Fraction(float(price)), tangent.slopes))
    return NoiseBound(cost, tuple(inequalities))
