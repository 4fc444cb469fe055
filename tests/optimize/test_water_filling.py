"""Errors levelled: the least budgets at which none is above a height, on which bounds of largest errors stand."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from random_designs import random_case

from exactdp.optimize.accuracy import errors
from exactdp.optimize.objective import Objective
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import read_requirements
from exactdp.optimize.water_filling import SummedErrors

_AWAY = 1e-11  # of an unknown: what dual_bound.py allows


def _largest(summed: SummedErrors, unknowns: np.ndarray) -> np.ndarray:
    """Of each unknown the largest weighted error of its cells."""
    problem = summed.problem
    found = errors(summed.measure, problem.budgets(unknowns), problem.kinds)[0] * summed.weights
    return np.array([found[problem.group == g].max() for g in range(problem.count)])


@pytest.mark.parametrize("seed", range(40))
def test_levelled_errors_are_just_below_the_height(seed: int) -> None:
    case = random_case(random.Random(seed))
    problem = BudgetProblem.of(case.release, read_requirements(case.release, case.requirements))
    goal = Objective(case.measure, case.weights, typical=case.typical)
    summed = SummedErrors(problem, goal.measure, goal.cell_weights(case.release))
    for log_height in np.linspace(*(math.log(summed.worst(end) + 1e-290) for end in (problem.high, problem.low)), 23):
        height = math.exp(log_height)
        found = summed.level(height)
        assert ((found >= problem.low * (1 - 1e-14)) & (found <= problem.high * (1 + 1e-14))).all()
        fits = found < problem.high * (1 - _AWAY)
        assert (_largest(summed, found)[fits] <= height * (1 + 1e-9)).all()
        free = found > problem.low * (1 + _AWAY)
        assert (_largest(summed, found * (1 - _AWAY))[free] > height).all()
