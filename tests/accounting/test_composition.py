"""The public object: its laws, its inputs, its corners."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import exactdp
from exactdp import Composition, DiscreteGaussian
from exactdp.brackets import Bracket
from exactdp.engine.lattice.accuracy import ACCURACY
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.float64 import Contour
from exactdp.engine.lattice.lattice import Group, Lattice
from exactdp.engine.lattice.plan import make_plan
from exactdp.engine.lattice.tilts import rung
from exactdp.engine.payoff import Payoff, delta_threshold
from strategies import compositions, epsilons, rationals

LAWS = settings(max_examples=60)


@LAWS
@given(compositions(), epsilons)
def test_order_grouping_and_splitting_do_not_matter(composition: Composition, epsilon: Fraction) -> None:
    flat = [m for m, n in composition.mechanisms.items() for _ in range(n)]
    backwards = Composition(flat[::-1])
    assert backwards == composition
    assert backwards.delta_bounds(epsilon) == composition.delta_bounds(epsilon)
    if len(flat) > 1:
        assert Composition(flat[:1]) + Composition(flat[1:]) == composition
        assert flat[0] + Composition(flat[1:]) == composition


@LAWS
@given(compositions(), st.lists(epsilons, min_size=3, max_size=6, unique=True))
def test_delta_is_decreasing_and_convex(composition: Composition, points: list[Fraction]) -> None:
    points = sorted(points)
    lower, upper = composition.delta_bounds(points)
    assert np.all((lower >= 0) & (lower <= upper) & (upper <= 1))
    assert np.all(lower[1:] <= upper[:-1])
    rates = [math.exp(p) for p in points]  # convex as a function of e^epsilon
    for i in range(1, len(points) - 1):
        share = (rates[i] - rates[i - 1]) / (rates[i + 1] - rates[i - 1])
        assert lower[i] <= ((1 - share) * upper[i - 1] + share * upper[i + 1]) * (1 + 1e-9) + 1e-300


@LAWS
@given(compositions(), epsilons)
def test_epsilon_of_delta_brackets_epsilon(composition: Composition, epsilon: Fraction) -> None:
    low, high = composition.delta_bounds(epsilon)
    assume(low > 1e-290 and high < 1)
    assert composition.epsilon_bounds(Fraction(high)).lower <= epsilon
    assert composition.epsilon_bounds(Fraction(low)).upper >= epsilon


@LAWS
@given(compositions(), epsilons)
def test_bounds_are_narrow(composition: Composition, epsilon: Fraction) -> None:
    low, high = composition.delta_bounds(epsilon)
    assume(low > 1e-290)
    assert high - low < ACCURACY * high


@LAWS
@given(compositions(), st.lists(rationals(Fraction(0), Fraction(1), 50), min_size=3, max_size=5, unique=True))
def test_beta_is_convex_and_below_the_diagonal(composition: Composition, alphas: list[Fraction]) -> None:
    alphas = sorted(alphas)
    lower, upper = composition.beta_bounds(alphas)
    diagonal = np.array([float(1 - a) for a in alphas])
    assert np.all((lower >= 0) & (lower <= upper) & (lower <= diagonal))
    for i in range(1, len(alphas) - 1):
        share = float((alphas[i] - alphas[i - 1]) / (alphas[i + 1] - alphas[i - 1]))
        assert lower[i] <= ((1 - share) * upper[i - 1] + share * upper[i + 1]) * (1 + 1e-12)


@LAWS
@given(compositions(), rationals(Fraction(1, 50), Fraction(49, 50), 50))
def test_beta_is_symmetric(composition: Composition, alpha: Fraction) -> None:
    """The noise is symmetric, so the curve is its own inverse: f(f(alpha)) brackets alpha."""
    low, high = composition.beta_bounds(alpha)
    assume(low > 0 and high < 1)
    assert Fraction(composition.beta_bounds(Fraction(high)).lower) <= alpha
    assert Fraction(composition.beta_bounds(Fraction(low)).upper) >= alpha


@LAWS
@given(compositions(), epsilons, rationals(Fraction(1, 100), Fraction(99, 100), 100))
def test_every_epsilon_gives_a_line_below_the_tradeoff_curve(
    composition: Composition, epsilon: Fraction, alpha: Fraction
) -> None:
    line = 1 - composition.delta(epsilon) - math.exp(epsilon) * float(alpha)
    assert line <= composition.beta_bounds(alpha).upper * (1 + 1e-12) + 1e-15


@given(rationals(Fraction(1, 5), Fraction(50)), st.integers(1, 3), st.integers(-3, 12), st.integers(0, 9))
@LAWS
def test_one_mechanism_has_a_closed_form(sigma2: Fraction, sensitivity: int, x: int, tenth: int) -> None:
    """delta = P(X >= t) - e^epsilon P(X >= t + D), with t the first count whose loss exceeds epsilon."""
    mechanism = DiscreteGaussian(sigma2, sensitivity)
    weight, half = sensitivity / sigma2, Fraction(sensitivity**2) / sigma2 / 2
    epsilon = half + weight * (x - Fraction(tenth, 10))
    t = math.floor((epsilon - half) / weight) + 1
    closed = mechanism.tail(t) - math.exp(epsilon) * mechanism.tail(t + sensitivity)
    low, high = Composition([mechanism]).delta_bounds(epsilon)
    size = mechanism.tail(t) * 1e-12
    assert low - size <= closed <= high + size


@LAWS
@given(compositions())
def test_scaling(composition: Composition) -> None:
    assert composition.scaled(1) == composition
    assert composition.scaled(2).scaled("1/2") == composition
    assert composition.scaled(4).rho == composition.rho / 4
    assert composition.scaled(2).delta(1) <= composition.delta(1) * (1 + 1e-11)


@LAWS
@given(compositions(), rationals(Fraction(-1), Fraction(6), 8), st.integers(0, 2), st.floats(-60, -25))
def test_tilt_and_period_do_not_matter(composition: Composition, z: Fraction, index: int, log_aim: float) -> None:
    """The same value on any rung and with any N: all brackets overlap."""
    lattice = composition._contours.lattice
    epsilon = composition.rho + z * Fraction(round(composition.mu * 8), 8)
    threshold = delta_threshold(lattice, epsilon)
    low, high = composition.delta_bounds(epsilon)
    where = rung(lattice, Payoff.DELTA, index)
    for plan in (make_plan(lattice, where), make_plan(lattice, where, log_aim)):
        sums = Contour(plan).evaluate([threshold])
        bracket = Bracket(sums.log_scale, sums.lower, sums.upper)
        assert bracket.lower_floats()[0] <= high
        assert low <= bracket.upper_floats()[0]


def test_multiplicity_is_free_and_exact() -> None:
    million = 10**6 * DiscreteGaussian(1)
    low, high = million.epsilon_bounds("1e-10")
    assert high - low < 1e-13 * high
    nodes = million.explain(high).kept
    assert nodes <= 2 * (10 * DiscreteGaussian(1)).explain(25).kept
    assert million.rho == 500_000


def test_scalars_arrays_and_number_types() -> None:
    c = 10 * DiscreteGaussian(1)
    grid = np.array([[0.5, 1.0], [2.0, 5.25]])
    together = c.delta(grid)
    assert together.shape == (2, 2)
    for index in np.ndindex(2, 2):
        assert together[index] == c.delta(grid[index])
    assert isinstance(c.delta(1), float)
    assert (
        c.delta("21/4")
        == c.delta(5.25)
        == c.delta(Decimal("5.25"))
        == c.delta(Fraction(21, 4))
        == c.delta(np.array(5.25))
    )
    assert c.delta([]).shape == (0,)
    assert c.epsilon(["1e-10", 1e-5]).shape == (2,)
    assert c.beta((0.1, "1/2")).shape == (2,)


def test_corners() -> None:
    c = 10 * DiscreteGaussian(1)
    assert c.epsilon(0) == math.inf
    assert c.epsilon(1) == -math.inf
    assert c.delta(math.inf) == 0.0
    assert c.delta(-math.inf) == 1.0
    assert c.beta(0) == 1.0
    assert c.beta(1) == 0.0
    at_zero = c.delta_bounds(0)
    assert c.epsilon_bounds(Fraction(at_zero.lower)).upper >= 0
    assert c.epsilon(Fraction(at_zero.upper) + Fraction(1, 10**9)) < 0
    low, high = c.delta_bounds(-3)
    assert 1 - math.exp(-3) < low <= high < 1


def test_below_the_double_range() -> None:
    c = 10 * DiscreteGaussian(1)
    assert c.delta(1000) == 5e-324  # an upper bound, never 0
    assert c.delta_bounds(1000).lower == 0.0
    assert c.log_delta(1000) == pytest.approx(-21542 * math.log(10) + math.log(0.353160266), rel=1e-9)
    assert c.log_delta([-math.inf, math.inf]).tolist() == [0.0, -math.inf]
    assert c.epsilon("1e-21543") == pytest.approx(1000.8028, abs=1e-4)


@pytest.mark.parametrize("num", [5, 6, 50, 1001])
def test_tradeoff_curve_is_convex_from_corner_to_corner(num: int) -> None:
    for c in (
        10 * DiscreteGaussian(1),
        exactdp.census.release("dhc-persons-us").pair(13, 13),
        1 * DiscreteGaussian("1/10"),
    ):
        curve = c.tradeoff(num)
        assert len(curve.alpha) == len(curve.beta) <= num
        assert (curve.alpha[0], curve.beta[0], curve.alpha[-1], curve.beta[-1]) == (0, 1, 1, 0)
        exact = [(Fraction(a), Fraction(b)) for a, b in zip(curve.alpha, curve.beta, strict=True)]
        slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairwise(exact)]
        assert all(a < b <= 0 for a, b in pairwise(slopes))


def test_points_of_a_tradeoff_curve_stand_where_it_bends_on_logarithmic_axes() -> None:
    """Lines below the curve through 65 points (each chord made longer until it meets the next but one) miss it by less than a
    line is wide: 12 decades are some 200 pixels high, so that 0.02 decades are a third of one. Even points miss it by 0.1."""
    c = exactdp.census.release("dhc-persons-us").pair(13, 13)
    curve = c.tradeoff(65)
    points = [(a, b) for a, b in zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True) if a > 1e-12 and b > 1e-12]
    assert len(points) >= 55
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairwise(points)]
    for i in range(1, len(points) - 2, 6):
        (x1, y1), (x2, y2) = points[i], points[i + 1]
        meet = x1 + (y2 - y1 - slopes[i + 1] * (x2 - x1)) / (slopes[i - 1] - slopes[i + 1])
        drawn = y1 + slopes[i - 1] * (meet - x1)
        low, high = c.beta_bounds(Fraction(meet))
        assert drawn <= high
        # as far as to the curve beside it, if that is nearer: along its slope
        beside = (low - drawn) / -slopes[i] / meet
        assert min(math.log10(low / drawn), math.log10(1 + beside)) < 0.02


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda c: c.delta("abc"), "epsilon must be a finite number"),
        (lambda c: c.delta(math.nan), "epsilon must be a finite number"),
        (lambda c: c.epsilon(-1), "delta must be between 0 and 1. Found -1"),
        (lambda c: c.beta(1.5), "alpha must be between 0 and 1. Found 1.5"),
        (lambda c: c.scaled(0), "factor must be positive. Found 0"),
        (lambda c: c.tradeoff(2), "num must be a whole number of at least 5. Found 2"),
        (lambda c: c.delta_bounds(1, digits=3), "digits must be a whole number of at least 5. Found 3"),
        (lambda c: c.delta_bounds(1, digits=2000), "digits must be at most 1000. Found 2000"),
        (lambda c: Composition([]), "A composition needs at least one mechanism"),
        (
            lambda c: Composition([3]),
            "A composition is made of mechanisms such as DiscreteGaussian(2) or RandomizedResponse(1). Found 3",
        ),
        (lambda c: Composition({DiscreteGaussian(1): -1}), "count must be a whole number of at least 0. Found -1"),
    ],
)
def test_bad_input_is_named(call: object, text: str) -> None:
    with pytest.raises(exactdp.ExactDPError) as caught:
        call(10 * DiscreteGaussian(1))  # type: ignore[operator]
    assert text in str(caught.value)


def test_too_fine_a_lattice_says_so_quickly() -> None:
    with pytest.raises(exactdp.LatticeTooFineError) as caught:
        Contours(Lattice((Group(Fraction(1), 1, 1), Group(Fraction(10**40 + 1, 10**40), 1, 1)))).contour(
            Payoff.DELTA, 0
        )
    text = str(caught.value)
    assert "step 1e-40" in text
    assert "2 groups" in text
    assert "round the noise" in text
    assert text.count(". ") == 0


def test_objects_survive_pickling_and_print_well() -> None:
    c = 2 * DiscreteGaussian("10/3") + DiscreteGaussian(5, 2)
    c.delta(1)
    again = pickle.loads(pickle.dumps(c))
    assert again == c
    assert hash(again) == hash(c)
    assert again.delta(1) == c.delta(1)
    assert repr(c) == "Composition(2 x DiscreteGaussian(10/3) + 1 x DiscreteGaussian(5, sensitivity=2))"


def test_rho_and_mu() -> None:
    c = 2 * DiscreteGaussian("10/3") + DiscreteGaussian(5, 2)
    assert c.rho == Fraction(3, 10) + Fraction(2, 5)
    assert c.mu == math.sqrt(1.4)


def test_explain_accounts_for_the_width() -> None:
    account = exactdp.census.release("dhc-persons-us").pair(13, 13).explain("26.34")
    assert account.groups == 12
    assert account.mechanisms == 160
    assert account.step == Fraction(1, 10_000)
    assert account.kept < 30 < account.nodes
    assert 0 <= account.aliased < 1e-13
    assert 0 < account.dropped < 1e-13
    assert 0 < account.rounding < 1e-12
    assert account.relative_width <= 2.1 * (account.aliased + account.dropped + account.rounding) + 1e-12
    text = str(account)
    for word in ("lattice step h", "tilt", "nodes kept", "aliasing", "dropped nodes", "rounding", "float64"):
        assert word in text


def test_clumpy_compositions_at_the_far_ends() -> None:
    """What a fresh pair of eyes found: no overflow where f is tiny everywhere, no endless sums, narrow brackets."""
    c = Composition([DiscreteGaussian("1/8", 2), DiscreteGaussian(100)])
    assert c.delta_bounds(-1400).upper == 1.0
    assert c.delta_bounds(10**9).lower == 0.0
    low, high = c.epsilon_bounds(1 - Fraction(1, 10**500))
    assert high - low < 1e-9
    low, high = c.beta_bounds(1 - Fraction(1, 10**80))
    assert high - low < ACCURACY * high


def test_arguments_with_thousands_of_digits() -> None:
    """Logarithms of long fractions keep their accuracy, so that the bounds keep theirs."""
    alpha = Fraction(10**1000 // 31 * 10, 10**1000)
    ten = 10 * DiscreteGaussian(1)
    low, high = ten.beta_bounds(alpha)
    exact = ten.beta_bounds(alpha, digits=20)
    assert Decimal(low) <= exact.lower
    assert exact.upper <= Decimal(high)


def test_extreme_input_is_refused_or_answered() -> None:
    for call in (
        lambda: DiscreteGaussian(1, 2**20),
        lambda: Composition({DiscreteGaussian(1): 10**400}),
        lambda: (10 * DiscreteGaussian(1)).delta("1e400"),
        lambda: (10 * DiscreteGaussian(1)).delta([[1, 2], [3]]),
        lambda: Composition(5),  # type: ignore[arg-type]
    ):
        with pytest.raises(exactdp.ExactDPError):
            call()
    nearly = Composition([DiscreteGaussian(Fraction(10**400 + 1, 10**400)), DiscreteGaussian(1)]).delta_bounds(1)
    twice = (2 * DiscreteGaussian(1)).delta_bounds(1)
    assert nearly.lower <= twice.upper
    assert twice.lower <= nearly.upper < nearly.lower * (1 + 1e-11)
    assert sum([DiscreteGaussian(1), DiscreteGaussian(1)]) == 2 * DiscreteGaussian(1)
    curve = (2 * DiscreteGaussian("1/1000")).tradeoff(7)  # next to no privacy, and the curve says so
    assert np.interp(0.5, curve.alpha, curve.beta) < 1e-200


@pytest.mark.filterwarnings("ignore::exactdp.AccuracyWarning")  # known from above only
def test_beyond_the_deepest_tail() -> None:
    """Past exp(-1e12) only the sub-Gaussian bound is given: above the value, and of its order in logarithm."""
    c = 10 * DiscreteGaussian(1)
    epsilon = 5 + 10**7
    exact = c.delta_bounds(epsilon, digits=10)
    log_exact = (exact.upper.logb() + 1) * Decimal(10).ln()  # at least log(upper)
    assert Decimal(c.log_delta(epsilon)) >= log_exact - 3
    assert c.log_delta(epsilon) < -(10.0**14) / 20 * (1 - 1e-11)
