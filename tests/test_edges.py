"""Edge values: a documented refusal or a valid answer, in the examples that once had neither, and in random calls."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb

import edge_calls
import exactdp
import oracle
from exactdp import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    InvalidInputError,
    Outcomes,
    RandomizedResponse,
    balls,
    census,
    conversions,
    guarantees,
)
from exactdp.apps.studio.schema.requests import Conversion, OverallQuestion, PairQuestion
from exactdp.apps.studio.work.dispatch import answered
from exactdp.census.grids import Grids
from exactdp.census.journal import Journal
from exactdp.census.savings import overall_saving
from exactdp.interop import names
from exactdp.numbers import exact_text, rational, shown
from exactdp.numerals import whole_text
from exactdp.theory_plots import figure_convolution
from small_release import SMALL
from strategies import seeds

TEN = 10 * DiscreteGaussian(1)


@pytest.mark.parametrize("seed", seeds(2, 8))
def test_random_calls_are_answered_or_refused(seed: int) -> None:
    """A small campaign; `python tests/edge_calls.py 20000` is a large one."""
    seen, faults = edge_calls.campaign(200, seed)
    assert not faults
    assert min(seen["answered"], seen["refused"]) > 25


ABOVE_1: list[Callable[[Any], Any]] = [
    TEN.epsilon,
    TEN.epsilon_bounds,
    lambda d: TEN.epsilon_bounds(d, digits=10),
    DiscreteGaussian(1).epsilon,
    (2 * DiscreteLaplace(1)).epsilon,
    lambda d: TEN.compare(delta=d),
    lambda d: TEN.risk(delta=d),
    lambda d: exactdp.target(epsilon=1, delta=d),
    lambda d: exactdp.certify(TEN, delta=d),
    lambda d: conversions.zcdp_epsilon(1, d),
    lambda d: conversions.zcdp_epsilon_simple(1, d),
    lambda d: conversions.gaussian_epsilon(1, d),
    lambda d: guarantees.gdp_epsilon(1, d),
    lambda d: guarantees.gdp_mu(1, d),
    lambda d: guarantees.rdp_epsilon({2: 1}, d),
    lambda d: guarantees.rdp_epsilon_simple({2: 1}, d),
    lambda d: guarantees.fdp_beta([(1, d)], "0.1"),
    lambda d: names.get_advantage_from_adp(1, d),
    lambda d: names.get_beta_from_adp(1, d, "0.1"),
    lambda d: Grids.read(deltas=[d]),
    lambda d: SMALL.account().epsilon(d),
    lambda d: SMALL.account().worst_pair(delta=d),
    lambda d: exactdp.census.overall_saving(SMALL, 1, d),
    lambda d: exactdp.census.level_saving(SMALL, "State", 1, d),
    lambda d: ApproximateDP(1, d),
]


@pytest.mark.parametrize("delta", [1e10, "1e10", 2, 1 + Fraction(1, 10**30), -1e-10, np.float64(1.5)])
@pytest.mark.parametrize("ask", ABOVE_1)
def test_a_delta_outside_of_0_and_1_is_refused(ask: Callable[[Any], Any], delta: Any) -> None:
    """1e10 for 1e-10: the lost minus sign."""
    with pytest.raises(InvalidInputError, match=r"(delta|deltas) .*Found"):
        ask(delta)


@pytest.mark.parametrize("alpha", [1e10, 2, -0.5])
def test_an_alpha_outside_of_0_and_1_is_refused(alpha: float) -> None:
    asked = [TEN.beta, SMALL.account().beta, lambda a: conversions.zcdp_beta(1, a), lambda a: guarantees.gdp_beta(1, a)]
    for ask in [*asked, lambda a: guarantees.fdp_beta([(1, 0)], a), lambda a: exactdp.certify(TEN, alpha=a)]:
        with pytest.raises(InvalidInputError, match="alpha"):
            ask(alpha)


@pytest.mark.parametrize("delta", [5e-324, "1e-330", "1e-5000"])
def test_epsilon_at_a_tiny_delta_next_to_the_greatest_loss(delta: Any) -> None:
    for c in (100 * DiscreteLaplace("23/3", sensitivity=5), 7 * exactdp.RandomizedResponse(1), 3 * ApproximateDP(2)):
        low, high = c.epsilon_bounds(delta)
        greatest = c.epsilon_bounds(0)
        assert 0 < low <= high <= greatest.upper
        assert high - low < 1e-8 * high


@pytest.mark.filterwarnings("ignore::exactdp.AccuracyWarning")  # the logarithm is known from above only
def test_delta_at_an_epsilon_just_below_0() -> None:
    """delta(epsilon) >= 1 - e^epsilon, which is positive however near to 0."""
    for c in (Composition([ApproximateDP(0)]), 3 * ApproximateDP(0), 2 * exactdp.RandomizedResponse(1)):
        for epsilon in ("-1e-5000", -5e-324):
            assert c.delta_bounds(epsilon).upper > 0
            assert c.log_delta(epsilon) > -math.inf


def test_a_mechanism_answers_as_a_composition_of_one() -> None:
    one, alone = DiscreteGaussian(2), Composition([DiscreteGaussian(2)])
    assert one.epsilon("1e-5") == alone.epsilon("1e-5")
    assert one.delta_bounds([1, 2]).upper.tolist() == alone.delta_bounds([1, 2]).upper.tolist()
    assert one.beta(0.1) == alone.beta(0.1)
    assert one.mu == alone.mu
    assert str(one.compare(delta=1e-5)) == str(alone.compare(delta=1e-5))
    assert "epsilon_bounds" in dir(one)
    assert pickle.loads(pickle.dumps(one)) == one
    # a parameter of the same name is that parameter
    assert ApproximateDP(1, "1/10").epsilon == 1
    assert ApproximateDP(1, "1/10").delta_bounds(1) == (1 * ApproximateDP(1, "1/10")).delta_bounds(1)
    for name in ("_contours", "no_such_name", "__array__"):
        with pytest.raises(AttributeError, match=name):
            getattr(one, name)


def test_numbers_too_long_for_python_to_print() -> None:
    tiny = Fraction(1, 10**5000)
    assert exact_text(tiny) == "1/1" + 5000 * "0"
    assert exact_text(-(10**5000)) == "-1" + 5000 * "0"
    assert whole_text(tiny) == "1e-5000"
    assert rational(whole_text(tiny), "x") == tiny
    assert whole_text(Fraction(10**400)) == "1" + 400 * "0"
    assert len(shown(10**5000)) == len(shown(tiny)) == 60
    assert "4,300 digits" in shown([tiny])
    assert str(TEN.cross_check(tiny))
    assert str(TEN.explain(tiny))
    assert str(TEN.compare(delta=tiny))
    assert str(TEN.risk(delta=tiny))
    grids = Grids.read(deltas=[tiny])
    assert Journal(Path(), SMALL, grids).question
    asked = [exactdp.target(epsilon=1, delta=tiny), TEN.explain(tiny), TEN.cross_check(tiny)]
    for result in (TEN.compare(delta=tiny), TEN.risk(delta=tiny), grids, overall_saving(SMALL, 100, tiny), *asked):
        assert f"Fraction('{exact_text(tiny)}')" in repr(result)
    assert repr(Grids.read(deltas=["1/7"])) == "Grids(epsilons=(), deltas=(Fraction(1, 7),), alphas=(), digits=None)"
    assert census.Release("x", "x", "x", {"US": {"a": tiny}}, {1: ()}).fingerprint
    assert Composition([ApproximateDP(1, tiny), DiscreteLaplace(1)]).delta(2) >= 0


@pytest.mark.parametrize("asked", ["deltas", "epsilons", "alphas"])
def test_the_studio_answers_at_numbers_too_long_to_print(asked: str) -> None:
    """In the worker that would otherwise end in an internal error."""
    levels = [{"name": name, "queries": [{"name": "q", "rho": "1/2"}]} for name in ("Nation", "Block")]
    about = {"design": {"name": "two levels", "levels": levels}, asked: ["1e-2900"]}
    if asked != "alphas":
        assert "1e-2900" in str(
            answered("convert", Conversion.model_validate({"rho": 1, asked: ["1e-2900"]}).model_dump())
        )
    assert "1e-2900" in str(answered("pair", PairQuestion.model_validate(about).model_dump()))
    assert "1e-2900" in str(answered("overall_plan", OverallQuestion.model_validate(about).model_dump()))


def test_limits_of_any_size() -> None:
    assert TEN.within(max_seconds=10**5000).delta(5) == TEN.delta(5)
    assert TEN.within(max_nodes=10**5000).delta(5) == TEN.delta(5)


@pytest.mark.parametrize("points", [1.5, 3, "12", None, np.array(1.5), Fraction(1, 2)])
def test_masses_need_a_list(points: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"points must be a list|points must be"):
        TEN.masses(points)


@pytest.mark.parametrize("p", [np.array(1.5), 1.5, None, "1", [[0.5], [1, 2]]])
def test_outcomes_need_lists(p: Any) -> None:
    with pytest.raises(InvalidInputError):
        Outcomes(p, [1])


def test_masses_hold_what_balls_say() -> None:
    """Tails become doubles outward, and so do their differences."""
    c = 2 * DiscreteGaussian("1/2")
    points = [0, 1, 2, 3, 5, 9, 20, 30]
    low, high = c.masses(points)
    exact = [_tail(c, p) for p in points]
    for k, (a, b) in enumerate(pairwise(exact)):
        assert Fraction(low[k]) <= a - b <= Fraction(high[k])


def _tail(c: Composition, point: int) -> Fraction:
    """P(S >= h t) by brute force."""
    brute = oracle.brute({(m.sigma2, m.sensitivity): n for m, n in c.discrete_gaussians.items()})
    return brute.tail(point)


def test_fdp_delta_takes_arrays() -> None:
    curve = TEN.tradeoff(21)
    one = [guarantees.fdp_delta(curve, e) for e in (0, 1, "5/2")]
    assert guarantees.fdp_delta(curve, [0, 1, "5/2"]).tolist() == one
    assert guarantees.fdp_delta(curve, np.array([[0.0], [1.0]])).shape == (2, 1)
    assert guarantees.fdp_delta(curve, math.inf) == 0.0
    assert guarantees.fdp_delta(curve, -math.inf) == 1.0


@pytest.mark.parametrize(
    ("alpha", "beta"), [([], []), ([0.1, 1], [0.5, 0]), ([0, 1], [math.nan, 0]), ([0, 1], [1, 0, 0]), ([0], [2])]
)
def test_fdp_delta_refuses_what_is_no_curve(alpha: list[float], beta: list[float]) -> None:
    curve = exactdp.TradeOffCurve(np.array(alpha), np.array(beta))
    for thing in (curve, [alpha, beta], None):
        for epsilon in (0, [0, 1], math.inf):
            with pytest.raises(InvalidInputError, match="must be a TradeOffCurve"):
                guarantees.fdp_delta(thing, epsilon)


def test_a_release_is_not_scaled_out_of_range() -> None:
    for factor in ("1e-5000", Fraction(1, 10**5000), 10**5000, "1e-30"):
        with pytest.raises(InvalidInputError, match="sigma2 must be between"):
            SMALL.scaled(factor)


@pytest.mark.filterwarnings("ignore::exactdp.AccuracyWarning")
def test_logarithms_that_two_doubles_do_not_hold() -> None:
    """Neither a warning of NumPy nor an overflow, and the cross-check leaves out what does not apply."""
    far = 2 * DiscreteGaussian(10**17)
    assert far.delta(10**9) == 5e-324
    low, high = far.log_delta_bounds(10**9)
    assert low <= -2.5e34 <= high < -2.4e34  # the tail of the normal distribution at (epsilon / mu)^2 / 2
    found = (4 * Gaussian(2) + RandomizedResponse("1/2")).cross_check(10**9)
    assert found.agree
    assert "dense FFT" not in [o.method for o in found.opinions]


def test_families_that_are_none_are_refused() -> None:
    for pairs in ([1], [(1, 2, 3)], [None]):
        with pytest.raises(InvalidInputError, match="Pairs of epsilon and delta"):
            guarantees.fdp_beta(pairs, 0.1)
    for divergences in ([1], 3, None):
        with pytest.raises(InvalidInputError, match="by their orders"):
            guarantees.rdp_epsilon(divergences, 0.1)


@pytest.mark.parametrize("delta", [0, 5e-324, "1/2", 1])
def test_an_advantage_is_a_probability(delta: Any) -> None:
    for epsilon in (-math.inf, -(10**9), -1, 0, 1, 10**9, math.inf):
        found = names.get_advantage_from_adp(epsilon, delta)
        size = math.exp(min(epsilon, 700))
        assert max(0, (size - 1 + 2 * Fraction(delta)) / (size + 1)) <= found + 1e-15 <= 1 + 1e-15
    assert names.get_advantage_from_adp(math.inf, delta) == 1
    for epsilon in (10**5000, -(10**25)):
        with pytest.raises(InvalidInputError, match="epsilon must be between"):
            names.get_advantage_from_adp(epsilon, delta)


def test_what_is_not_known_is_bounded_by_infinity() -> None:
    assert balls.upper_double(arb("nan")) == math.inf
    assert balls.upper_double(arb("-inf")) == -math.inf


CONSTANT = [3 * ApproximateDP(0, "1/100"), 1 * ApproximateDP(0), 2 * Outcomes([1, 0], ["1/2", "1/2"])]


@pytest.mark.parametrize("c", CONSTANT)
def test_a_loss_of_one_value(c: Composition) -> None:
    for epsilon in (0, "1/3", 1, 5):
        check = c.cross_check(epsilon)
        assert check.agree
        assert str(check)
        assert str(c.explain(epsilon))


@pytest.mark.parametrize("c", [*CONSTANT[:1], CONSTANT[2], 2 * ApproximateDP(1, "1/10")])
def test_figures_of_infinite_losses(c: Composition) -> None:
    assert c.rho == math.inf
    assert figure_convolution(c).axes


@pytest.mark.parametrize("sigma2", ["1e-400", "1e5000", Decimal("1e-310")])
def test_a_scale_out_of_range(sigma2: Any) -> None:
    with pytest.raises(InvalidInputError, match="sigma2 must be between"):
        exactdp.noise.scale_for(sigma2)
