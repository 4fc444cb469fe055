"""Bounds that are wide: the next method is asked, the narrowest ends win, and what stays wide says so, whatever was asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from any_oracle import listed
from exactdp import census
from exactdp.accounting import planner
from exactdp.accounting.composition import Composition
from exactdp.accounting.directions import BothDirections
from exactdp.brackets import Bracket
from exactdp.census.overall import Overall, SeparateOverall
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.accuracy import ACCURACY
from exactdp.engine.lattice.contours import Contours
from exactdp.errors import AccuracyWarning
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.widths import WIDE

CLUMPS = 2 * DiscreteGaussian("199/1000", 7) + DiscreteGaussian("20/3")


def test_where_the_sieve_is_wide_a_list_of_values_is_asked() -> None:
    bounds = CLUMPS.delta_bounds(640)
    assert 0 < bounds.lower <= bounds.upper <= bounds.lower * (1 + 1e-10)
    exact = listed(CLUMPS.mechanisms).delta(Fraction(640))
    assert bounds.lower <= exact <= bounds.upper


def test_one_of_many_pairs_is_answered_by_a_list_or_on_the_line_where_the_sieve_would_keep_most_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Coarse noise: a list where the values are few, no lattice where it is fine; fine noise as ever."""
    coarse = 2 * DiscreteGaussian("3/4") + 2 * DiscreteGaussian("7/9")
    assert isinstance(planner.answers_for(coarse.mechanisms, Effort()), planner.OnLattice)
    quick = planner.quick_answers_for(coarse.mechanisms, Effort())
    assert not isinstance(quick, planner.OnLattice)
    found = quick.point([Fraction(5)]).delta
    exact = listed(coarse.mechanisms).delta(Fraction(5))
    assert found.lower_floats()[0] <= exact <= found.upper_floats()[0] <= found.lower_floats()[0] * (1 + 1e-10)
    dhc = census.release("dhc-persons-us").pair(13, 13)
    assert isinstance(planner.quick_answers_for(dhc.mechanisms, Effort()), planner.OnLattice)
    monkeypatch.setattr(planner, "SIEVED_STEPS", 100)
    assert not isinstance(planner.quick_answers_for(dhc.mechanisms, Effort()), planner.OnLattice)


@pytest.mark.parametrize("many_steps", [planner.MANY_STEPS, 10**9], ids=["list first", "sieve first"])
def test_what_is_wider_than_promised_is_asked_of_a_list_where_values_are_few(
    many_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sieve alone leaves 4e-7, which is not wide enough for a warning, but wider than the docstring says."""
    monkeypatch.setattr(planner, "MANY_STEPS", many_steps)
    c = Composition(CLUMPS.mechanisms)
    bounds = c.delta_bounds(500)
    assert 0 < bounds.lower <= bounds.upper <= bounds.lower * (1 + ACCURACY)
    assert bounds.lower <= listed(c.mechanisms).delta(Fraction(500)) <= bounds.upper


def test_a_short_list_comes_before_a_long_contour(monkeypatch: pytest.MonkeyPatch) -> None:
    c = Composition(CLUMPS.mechanisms)
    monkeypatch.setattr(Contours, "contour", lambda *_: pytest.fail("a contour was built"))
    assert np.ptp(c.epsilon_bounds("1e-100")) <= 1e-11 * 705
    told = c.explain(500)
    assert told.method == "direct enumeration"
    assert told.relative_width <= ACCURACY
    c.point([Fraction(225), Fraction(227), Fraction(235)])  # delta about 0.8: 1 - delta has a digit less


def test_what_no_double_can_hold_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """delta = e^-19434: the list leaves 1e-10, and a contour would take a second; it is built where that is called wide."""
    c = 2 * DiscreteGaussian("1250000/91933") + 2 * DiscreteGaussian("78125/4414")
    epsilon = Fraction("100.65")
    monkeypatch.setattr(Contours, "contour", lambda *_: pytest.fail("a contour was built"))
    found = c.point([epsilon]).delta
    assert ACCURACY < found.width()[0] < 1e-9
    monkeypatch.setattr(planner, "WIDE", ACCURACY)
    with pytest.raises(pytest.fail.Exception, match="a contour was built"):
        c.point([epsilon])


def test_1_minus_delta_of_hardly_any_noise_is_known_in_relative_terms() -> None:
    """1 - delta(0) = 2 P(X >= 1), about 2 e^-500: far below what a Fourier sum of numbers near 1 can tell."""
    rest = Composition([DiscreteGaussian("1/1000")]).point([Fraction(0)]).rest
    assert rest.log_upper()[0] - rest.log_lower()[0] < 1e-10
    with mpmath.workdps(40):
        exact = float(mpmath.log(2) - 500)
    assert rest.log_lower()[0] <= exact + 1e-9
    assert rest.log_upper()[0] >= exact - 1e-9


COARSE = {
    "laplace": 3 * DiscreteLaplace("1/100"),
    "clumps": CLUMPS,
    "mixed": 2 * DiscreteLaplace("1/40") + DiscreteLaplace("1/60", sensitivity=2),
}


@pytest.mark.parametrize("alpha", ["1e-100", "1e-30", "0.3", "0.97"])
@pytest.mark.parametrize("name", COARSE)
def test_beta_of_coarse_compositions_is_narrow_however_small(name: str, alpha: str) -> None:
    c = COARSE[name]
    bounds = BothDirections.beta_bracket(c._answers, Fraction(alpha))  # by the profile alone
    assert 0 <= bounds[0] <= bounds[1] <= 1
    assert bounds[1] - bounds[0] <= 1e-9 * bounds[1]
    exact = listed(c.mechanisms).beta(Fraction(alpha))
    assert bounds[1] < 1e-90 or bounds[0] <= exact <= bounds[1]  # the oracle has 100 digits behind the point


LOSING = [ApproximateDP(1, "0.1"), Outcomes(["1/2", "1/2", 0], ["1/2", "1/4", "1/4"]), ApproximateDP("1/2", "1/3")]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("mechanism", LOSING, ids=str)
def test_beta_is_0_exactly_from_where_mass_is_lost(mechanism: ApproximateDP | Outcomes, count: int) -> None:
    c = Composition({mechanism: count})
    ends = c._answers._directions
    first = min(1 - d.total.lost_exactly for d in ends)
    assert c.beta_bounds(first) == (0.0, 0.0)
    assert c.beta_bounds((1 + first) / 2) == (0.0, 0.0)
    before = c.beta_bounds(first - Fraction(1, 1000))
    assert 0 < before.lower <= before.upper <= before.lower * (1 + 1e-9)
    assert before.upper <= 0.001 * (1 + 1e-12)  # below the line from one end of the curve to the other


MANY = Composition({DiscreteGaussian(sigma=1 + 0.0123 * i): 3 + i for i in range(12)})
TINY = MANY.within(max_nodes=2)
QUESTIONS: dict[str, Callable[[], object]] = {
    "delta": lambda: TINY.delta_bounds(20),
    "deltas": lambda: TINY.delta([20, 21]),
    "log delta": lambda: TINY.log_delta(20),
    "log delta below the doubles": lambda: TINY.log_delta_bounds(400),
    "curve": lambda: TINY.tradeoff(21),
    "epsilon": lambda: TINY.epsilon_bounds("1e-10"),
    "epsilons": lambda: TINY.epsilon(["1e-10", "1e-9"]),
    "beta": lambda: TINY.beta_bounds("0.01"),
    "betas": lambda: TINY.beta(["0.01", "0.02"]),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_wide_answers_of_every_kind_warn_once_and_where_they_were_asked(name: str) -> None:
    with pytest.warns(AccuracyWarning, match="are proved but") as caught:
        QUESTIONS[name]()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_ordinary_answers_do_not_warn() -> None:
    c = census.release("dhc-persons-us").pair(6, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        c.delta_bounds([0, 10, 40])
        c.epsilon_bounds(["1e-10", "0.9"])
        c.beta_bounds(["0.01", "0.99"])
        c.log_delta_bounds([0, 400, 10**5])
        c.tradeoff()
        (3 * DiscreteLaplace(2)).tradeoff()
        Composition([DiscreteLaplace(2)]).epsilon_bounds([0, 1e-5, 1])


@pytest.mark.parametrize(("what", "at"), [("delta", 1), ("epsilon", "1e-6"), ("beta", "0.05")])
def test_overall_answers_warn_as_well(what: str, at: object, monkeypatch: pytest.MonkeyPatch) -> None:
    study = census.release("dhc-units-us").account()
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        getattr(study, f"{what}_bounds")(at)
    for engine in (Overall, SeparateOverall):
        monkeypatch.setattr(engine, f"{what}s", lambda self, asked: [(0.1, 0.2)] * len(asked))
    with pytest.warns(AccuracyWarning, match=f"bounds of {what} are proved but"):
        getattr(study, f"{what}_bounds")([at, at])


def test_two_brackets_together_hold_what_both_hold() -> None:
    rng = np.random.default_rng(4)
    exact = np.exp(rng.uniform(-300, 300, 400))
    pair = []
    for _ in range(2):
        scale = np.log(exact) + rng.uniform(-3, 3, 400)
        lower, upper = (1 - 10 ** rng.uniform(-14, 0, 400)), (1 + 10 ** rng.uniform(-14, 1, 400))
        mantissa = np.exp(np.log(exact) - scale)
        pair.append(Bracket(scale, mantissa * lower * (1 - 1e-12), mantissa * upper * (1 + 1e-12)))
    joined = pair[0].within(pair[1])
    assert (joined.log_lower() <= np.log(exact) + 1e-12).all()
    assert (joined.log_upper() >= np.log(exact) - 1e-12).all()
    least = np.minimum(*(b.log_upper() for b in pair)) - np.maximum(*(b.log_lower() for b in pair))
    assert (joined.log_upper() - joined.log_lower() <= np.maximum(least, 0) + 1e-11).all()
    nothing = Bracket(np.zeros(1), np.zeros(1), np.ones(1))
    known = Bracket(np.array([-2000.0]), np.ones(1), np.full(1, 1.5))
    assert [float(x[0]) for x in nothing.within(known).rows()] == [-2000.0, 1.0, 1.5]
    assert (known.within(nothing).width() == 0.5).all()
    assert WIDE == 1e-6
