"""Searches for epsilon and for beta: few looks at the profile, and nothing is returned that was only trusted."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from exactdp import census
from exactdp.accounting import epsilon_search
from exactdp.accounting.composition import Composition
from exactdp.accounting.directions import BothDirections
from exactdp.accounting.epsilon_search import EpsilonSearch
from exactdp.accounting.tradeoff_dual import beta_from_profile
from exactdp.brackets import Bracket, Point, PointAt
from exactdp.engine.effort import Effort
from exactdp.engine.lattice import contours
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.line import methods
from exactdp.engine.payoff import Payoff, factors_at_tilt, transform_factors
from exactdp.errors import LatticeTooFineError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian_formula import gaussian_logs

MU = 2.0
KINKS = 10 * DiscreteGaussian(1)  # its profile bends at every whole number


def _counted(ask: PointAt, asked: list[int]) -> PointAt:
    def counted(epsilons: list[Fraction]) -> Point:
        asked.append(len(epsilons))
        return ask(epsilons)

    return counted


def _gaussian_profile(epsilons: list[Fraction]) -> Point:
    """The profile of a continuous Gaussian with bounds 2e-14 apart, and its density."""
    logs = np.array([gaussian_logs(MU, float(e)) for e in epsilons])
    step = 1e-6
    density = [-math.expm1(gaussian_logs(MU, float(e) + step)[0] - gaussian_logs(MU, float(e))[0]) for e in epsilons]
    one = np.ones(len(epsilons))
    brackets = [Bracket(column, one * (1 - 1e-14), one * (1 + 1e-14)) for column in logs.T]
    return Point(brackets[0], brackets[1], np.log(np.array(density) / step) + logs[:, 0])


def test_epsilon_takes_one_look_and_one_proof_where_the_gaussian_formula_is_close() -> None:
    pair = census.release("dhc-persons-us").pair(13, 13)
    asked: list[int] = []
    answers = Composition(pair.mechanisms)._answers.contours()
    profile = _counted(lambda epsilons: epsilon_search.profile(answers, epsilons), asked)
    start = epsilon_search.gaussian_start(answers.lattice.r, Fraction("1e-10"))
    lower, upper = EpsilonSearch((profile,) * 3, Fraction("1e-10"), start, 100.0, -1.0).bracket()
    assert asked == [1, 4]  # the start; both ends in both readings
    exact = pair.epsilon_bounds("1e-10", digits=18)
    assert Decimal(lower) <= exact.lower <= exact.upper <= Decimal(upper)
    assert upper - lower <= 2e-12


@pytest.mark.parametrize("delta", ["1e-10", "0.01", "0.9"])
@pytest.mark.parametrize("composition", [KINKS, 3 * DiscreteGaussian(7) + DiscreteGaussian("5/2")])
def test_a_move_that_was_trusted_too_soon_is_not_returned(
    composition: Composition, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every first move is trusted to the last digits: the proof fails, and the search goes on as if nothing had been said."""
    usual = Composition(composition.mechanisms).epsilon_bounds(delta)
    monkeypatch.setattr(EpsilonSearch, "_step_after", lambda *_: 1e-13)
    lower, upper = Composition(composition.mechanisms).epsilon_bounds(delta)
    exact = composition.epsilon_bounds(delta, digits=18)
    assert Decimal(lower) <= exact.lower <= exact.upper <= Decimal(upper)
    assert upper - lower <= max(2 * (usual.upper - usual.lower), 1e-12)


@pytest.mark.parametrize("alpha", ["1e-9", "0.05", "0.5", "0.95"])
def test_beta_takes_few_looks_where_the_profile_is_smooth(alpha: str) -> None:
    asked: list[int] = []
    a = Fraction(alpha)
    lower, upper = beta_from_profile(_counted(_gaussian_profile, asked), a, 0.5, 1.0)
    assert len(asked) <= 40
    assert upper - lower <= 1e-10 * upper
    assert 0 < lower < 1 - a


def test_beta_by_the_profile_is_where_the_vertices_have_it() -> None:
    by_profile, asked = BothDirections(KINKS.mechanisms, Effort()), list[int]()
    for alpha in (Fraction(1, 20), Fraction(1, 1000), Fraction(9, 10)):
        asked.clear()
        lower, upper = beta_from_profile(_counted(by_profile._worst, asked), alpha, 3.0, 3.0)
        exact = KINKS.beta_bounds(alpha, digits=15)
        assert Decimal(lower) <= exact.upper
        assert exact.lower <= Decimal(upper)
        assert upper - lower <= 1e-10 * upper
        assert len(asked) <= 90  # at a bend a search can only halve


def test_a_contour_that_is_refused_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lattice = (DiscreteGaussian("1/3") + 5 * DiscreteGaussian("1001/7"))._answers.contours().lattice
    plans: list[Callable[[], object]] = []
    made = contours.make_plan
    monkeypatch.setattr(contours, "make_plan", lambda *asked: (plans.append(lambda: None), made(*asked))[1])
    monkeypatch.setattr(contours, "_FEWEST_TERMS", 1)
    own = Contours(lattice, Effort(1, 10**6))
    said = []
    for _ in range(2):
        with pytest.raises(LatticeTooFineError) as refused:
            own.contour(Payoff.DELTA, 1)
        said.append(str(refused.value))
    assert len(plans) == 1
    assert said[0] == said[1]


def test_a_method_that_does_not_apply_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    expected = methods.expected_values
    monkeypatch.setattr(methods, "expected_values", lambda total, tilt: (asked.append(tilt), expected(total, tilt))[1])
    many = {DiscreteGaussian(sigma=math.sqrt(3 + i / 7)): 1 for i in range(12)}
    composition = Composition(many)
    first, second = (composition.delta_bounds(3) for _ in range(2))
    assert first == second
    assert len(asked) == 1


@pytest.mark.parametrize("payoff", list(Payoff))
@pytest.mark.parametrize("h", [1e-6, 0.01, 1.7, 40.0])
def test_the_factors_at_the_tilt_are_those_at_angle_0(payoff: Payoff, h: float) -> None:
    tilt = -0.3 if payoff is Payoff.COMPLEMENT else 0.7
    at_0 = [float(f[0].real) for f in transform_factors(payoff, tilt, h, np.zeros(1))]
    np.testing.assert_allclose(factors_at_tilt(payoff, tilt, h), at_0, rtol=1e-13)
