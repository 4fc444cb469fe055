"""Theorem 4: bounds of objectives, against continuous Gaussian noise, where the best objective is known exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from exactdp import census, optimize, target
from exactdp.census.releases import Release
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.optimize.best_design import is_proved
from exactdp.optimize.dual_bound import dual_point, spread_row
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import read_requirements
from exactdp.optimize.water_filling import SummedErrors

F = Fraction
WEIGHTS = {"A": 1, "B": 9, "C": 400}
NOISE = {(level, "n"): census.CellNoise("gaussian") for level in WEIGHTS}


def _design(relation: str = "replace") -> Release:
    return Release("g", "Gaussian", "made up", {level: {"n": F(1, 20)} for level in WEIGHTS}, {1: ()}, relation, NOISE)


def _spread(epsilon: float, delta: float) -> float:
    """mu^2 of the Gaussian that just meets it, by bisection of its formula."""
    low, high = 1e-6, 100.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_logs(math.sqrt(middle), epsilon)[0] < math.log(delta) else (low, middle)
    return low


@pytest.mark.parametrize(("relation", "times"), [("replace", 2), ("add/remove", 1)])
def test_the_bound_is_the_best_for_continuous_noise(relation: str, times: int) -> None:
    """The best sum of w / x with times * sum x = R is times * (sum of sqrt w)^2 / R, the best worst one times * (sum w) / R."""
    spread = _spread(2, 1e-8)
    for goal, exact in [
        (optimize.Objective("variance", WEIGHTS), times * 24**2 / spread),
        (optimize.Objective("variance", WEIGHTS, worst=True), times * 410 / spread),
    ]:
        found = optimize.best(_design(relation), goal, target=target(2, "1e-8"), digits=9)
        assert found.value == pytest.approx(exact, rel=1e-6)
        assert found.value >= exact * (1 - 1e-9)
        assert found.bound is not None
        assert found.bound.value <= exact * (1 + 1e-9)
        assert found.bound.value == pytest.approx(exact, rel=1e-6)
        assert found.bound.coarsest is None


def test_the_least_epsilon_is_bounded_from_below() -> None:
    goal = optimize.Objective("variance", WEIGHTS)
    cap = 2 * 24**2 / _spread(2, 1e-8)
    found = optimize.least(_design(), delta="1e-8", objective=goal, at_most=cap, digits=9)
    assert found.epsilon[1] == pytest.approx(2, abs=1e-5)
    assert found.bound is not None
    assert found.bound <= 2 + 1e-9
    assert found.bound == pytest.approx(2, rel=1e-3)


def test_what_misses_the_target_is_not_proved() -> None:
    found = optimize.best(_design(), target=target(2, "1e-8"))
    assert is_proved(target(2, "1e-8"), found.release)
    assert not is_proved(target(2, "1e-8"), found.release.scaled(F(99, 100)))
    assert not is_proved(target("1.98", "1e-8"), found.release)


@pytest.mark.parametrize("limit", [0.05, 0.3, 2.0])
def test_the_dual_is_the_best_sum_within_a_limit(limit: float) -> None:
    """The least sum of w / x with 2 sum x <= limit is 2 (sum of sqrt w)^2 / limit; no dual point is above it."""
    goal, design = optimize.Objective("variance", WEIGHTS), _design()
    problem = BudgetProblem.of(design, read_requirements(design, []))
    summed = SummedErrors(problem, goal.measure, goal.cell_weights(design))
    low, high = np.full(problem.count, 1e-6), np.full(problem.count, limit)
    found = dual_point(summed, spread_row(problem), limit, low, high)
    exact = 2 * 24**2 / limit
    assert exact * (1 - 1e-6) <= found.value <= exact * (1 + 1e-12)
