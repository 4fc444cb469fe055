"""Short budgets: unknowns as decimals of a few digits, or as multiples of a step, on the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from exactdp.doubles import Floats
from exactdp.errors import InvalidInputError
from exactdp.numbers import shown
from exactdp.optimize.accuracy import shortened
from exactdp.optimize.cells import cell_name
from exactdp.optimize.problem import BudgetProblem


def group_steps(problem: BudgetProblem) -> tuple[Fraction, ...]:
    """Of what each unknown must be a multiple; 0 where of nothing."""
    steps = [Fraction(0)] * problem.count
    for i, (step, g) in enumerate(zip(problem.steps, problem.group.tolist(), strict=True)):
        if step:
            if problem.ratios[i] != 1:
                raise InvalidInputError(
                    f"A budget that is tied in proportion cannot be a multiple of a step. Found both for "
                    f"{cell_name(problem.cells[i])}; "
                    "say equal instead of tied."
                )
            steps[g] = _common_multiple(steps[g], step) if steps[g] else step
    for g, step in enumerate(steps):
        low, high = (end[g] for end in problem.bounds)
        if step and math.ceil(low / step) * step > high:
            raise InvalidInputError(
                f"The requirements contradict each other: no multiple of {shown(step)} lies between {float(low):g} and "
                f"{float(high):g}. Choose another step."
            )
    return tuple(steps)


def _common_multiple(one: Fraction, two: Fraction) -> Fraction:
    bottom = math.lcm(one.denominator, two.denominator)
    return Fraction(math.lcm(int(one * bottom), int(two * bottom)), bottom)


def rounded_down(
    problem: BudgetProblem, unknowns: Floats, digits: int, steps: tuple[Fraction, ...]
) -> tuple[Fraction, ...]:
    """The unknowns rounded down to so many digits, or to their steps; up where a requirement would be missed."""
    low, high = problem.bounds
    result = []
    for y, a, b, step in zip(unknowns.tolist(), low, high, steps, strict=True):
        if step:
            found = max(math.floor(Fraction(y) / step), math.ceil(a / step)) * step
            result.append(found or step)
        elif a == b:
            result.append(a)
        else:
            found = shortened(Fraction(y), digits, up=False)
            result.append(min(found if found >= a else shortened(a, digits), b))
    return tuple(result)


def raised_steps(
    unknowns: tuple[Fraction, ...],
    steps: tuple[Fraction, ...],
    high: tuple[Fraction, ...],
    gains: Floats,
    costs: Floats,
    room: float,
) -> tuple[Fraction, ...]:
    """The unknowns with a step more where that gains most for what it costs, as long as the room lasts; each once."""
    result, left = list(unknowns), room
    for g in np.argsort(-gains / costs).tolist():
        cost = float(steps[g]) * float(costs[g])
        if steps[g] and cost <= left and result[g] + steps[g] <= high[g]:
            result[g], left = result[g] + steps[g], left - cost
    return tuple(result)
