"""The cost of budget: derivatives against differences of brute force, and certified changes."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from exactdp import (
    AccuracyError,
    Bounds,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    InvalidInputError,
    budget_change,
)
from exactdp.accounting.budget_cost import BudgetChange, BudgetCosts
from exactdp.engine.listed_slopes import listed_slopes
from exactdp.mechanisms.tilted_squares import tilted_squares, untilted_variance

STEP = mpmath.mpf("1e-12")
DIGITS = 60


def delta_of(noise: list[tuple[mpmath.mpf, int]], epsilon: mpmath.mpf) -> mpmath.mpf:
    """sum over all outcomes of (P - e^epsilon Q)_+, from the definition; every copy has a noise parameter of its own."""
    tables = []
    for s, d in noise:
        reach = int(mpmath.sqrt(2 * s * (400 if len(noise) == 1 else 60))) + d + 2
        mass = {x: mpmath.exp(-mpmath.mpf(x * x) / (2 * s)) for x in range(-reach, reach + d + 1)}
        total = mpmath.fsum(mass.values())
        tables.append([(mass[x] / total, mass[x + d] / total) for x in range(-reach, reach + 1)])
    growth, result = mpmath.exp(epsilon), mpmath.mpf(0)
    for cells in itertools.product(*tables):
        p, q = mpmath.fprod(c[0] for c in cells), mpmath.fprod(c[1] for c in cells)
        if p > growth * q:
            result += p - growth * q
    return result


def differences(noise: list[tuple[str, int]], epsilon: str) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """d delta / d rho of each copy and d delta / d epsilon by central differences with 60 digits."""
    with mpmath.workdps(DIGITS):
        start, at = [(mpmath.mpf(s), d) for s, d in noise], mpmath.mpf(epsilon)

        def moved(i: int, step: mpmath.mpf) -> mpmath.mpf:
            s, d = start[i]
            rho = mpmath.mpf(d * d) / (2 * s) + step
            return delta_of([*start[:i], (d * d / (2 * rho), d), *start[i + 1 :]], at)

        by_rho = [(moved(i, STEP) - moved(i, -STEP)) / (2 * STEP) for i in range(len(noise))]
        return by_rho, (delta_of(start, at + STEP) - delta_of(start, at - STEP)) / (2 * STEP)


CASES = [
    ([("0.3", 1)], "5.1"),  # one coarse mechanism, between two atoms
    ([("0.3", 1)], "-0.4"),
    ([("0.15", 2)], "20.1"),
    ([("1", 1), ("1", 1)], "3.2"),
    ([("1", 1), ("1", 1)], "1.0000000001"),  # next to an atom, above it
    ([("1", 1), ("1", 1)], "0.9999999999"),  # and below
    ([("0.5", 2), ("0.8", 1)], "9.3"),
    ([("0.7", 1), ("0.4", 1)], "-1.7"),
    ([("0.30001", 1), ("0.70003", 2)], "4.4"),  # no usable lattice: all values listed
    ([("1", 1)], "23"),  # delta about 1e-110
]


@pytest.mark.parametrize(("noise", "epsilon"), CASES)
def test_derivatives_are_the_differences_of_brute_force(noise: list[tuple[str, int]], epsilon: str) -> None:
    composition = Composition([DiscreteGaussian(s, d) for s, d in noise])
    costs = composition.budget_costs(epsilon=epsilon)
    by_rho, by_epsilon = differences(noise, epsilon)
    delta = mpmath.exp(costs.log_delta)
    assert costs.log_delta_per_epsilon == pytest.approx(float(by_epsilon / delta), rel=1e-9)
    place = {m: i for i, m in enumerate(costs.mechanisms)}
    for (s, d), slope in zip(noise, by_rho, strict=True):
        i = place[DiscreteGaussian(s, d)]
        assert costs.log_delta_per_rho[i] == pytest.approx(float(slope / delta), rel=1e-8, abs=1e-12)
        assert costs.delta_per_rho[i] == pytest.approx(float(slope), rel=1e-8, abs=1e-13)
        assert costs.epsilon_per_rho[i] == pytest.approx(float(-slope / by_epsilon), rel=1e-8)
        assert costs.epsilon_errors[i] < 1e-7 * abs(costs.epsilon_per_rho[i])


LONG = 3 * DiscreteGaussian("3.1234567891") + 30 * DiscreteGaussian("7.12345678912", sensitivity=3)
ROUND = 30 * DiscreteGaussian(5) + 20 * DiscreteGaussian(8, sensitivity=2)
MIXED = 5 * DiscreteGaussian("2.1") + Gaussian("1.7", sensitivity=2)


@pytest.mark.parametrize(
    ("composition", "epsilon"),
    [(LONG, "31"), (ROUND, "60.003"), (ROUND, "0.0617"), (MIXED, "4"), (MIXED, "-0.3"), (4 * Gaussian(1), "0.2")],
)
def test_derivatives_are_the_differences_of_certified_deltas(composition: Composition, epsilon: str) -> None:
    """On the lattice, on the line, with continuous noise: fourth-order differences of what is proved."""
    step = Fraction(1, 50_000)
    costs = composition.budget_costs(epsilon=epsilon)
    for mechanism, slope in zip(costs.mechanisms, costs.log_delta_per_rho, strict=True):
        logs = {j: sum(composition.with_rho(mechanism, j * step).log_delta_bounds(epsilon)) / 2 for j in (-2, -1, 1, 2)}
        found = (logs[-2] - 8 * logs[-1] + 8 * logs[1] - logs[2]) / (12 * float(step))
        assert slope == pytest.approx(found, rel=2e-6)


def test_at_fixed_delta_it_is_the_slope_of_epsilon() -> None:
    costs = LONG.budget_costs(delta="1e-12")
    assert LONG.epsilon_bounds("1e-12").lower <= costs.epsilon <= LONG.epsilon_bounds("1e-12").upper
    for mechanism, slope in zip(costs.mechanisms, costs.epsilon_per_rho, strict=True):
        ends = [LONG.with_rho(mechanism, by).epsilon("1e-12") for by in ("-1e-4", "1e-4")]
        assert slope == pytest.approx((ends[1] - ends[0]) / 2e-4, rel=1e-5)


def test_continuous_noise_has_the_derivative_of_the_gaussian_formula() -> None:
    """d delta / d rho is the density of a normal loss of mean rho and variance 2 rho, whatever mechanism takes it."""
    costs = (Gaussian(2) + 3 * Gaussian("0.8")).budget_costs(epsilon="1.3")
    rho = 1 / 4 + 3 / 1.6
    density = math.exp(-((1.3 - rho) ** 2) / (4 * rho)) / math.sqrt(4 * math.pi * rho)
    assert costs.delta_per_rho == pytest.approx([density, density], rel=1e-10)


def test_on_an_atom_the_value_is_half_way_and_the_error_reaches_both_sides() -> None:
    composition = 4 * DiscreteGaussian(1)
    costs = composition.budget_costs(epsilon=4)  # an atom: the loss is 2 plus a whole number
    (slope,), (error,) = costs.log_delta_per_rho, costs.log_delta_errors
    at = composition.log_delta(4)
    sides = [(composition.with_rho(DiscreteGaussian(1), by).log_delta(4) - at) / by for by in (-1e-5, 1e-5)]
    assert sides[1] - sides[0] > 0.1  # a kink
    assert slope == pytest.approx(sum(sides) / 2, rel=1e-4)
    assert (sides[1] - sides[0]) / 2 * 0.999 <= error < sides[1] - sides[0]


def test_more_budget_can_lower_delta_where_noise_is_coarse() -> None:
    """So nothing here may assume that delta rises with rho."""
    composition, mechanism = 10 * DiscreteGaussian(1), DiscreteGaussian(1)
    assert composition.budget_costs(epsilon="24.2").log_delta_per_rho[0] < -0.48
    assert composition.budget_change(mechanism, "1e-4", epsilon="24.2").change.upper < 0


@pytest.mark.parametrize("s", ["0.1", "0.2499", "0.25", "0.6", "3"])
def test_sums_of_squares_are_those_of_the_definition(s: str) -> None:
    sensitivity, tilt = 3, 0.6875
    with mpmath.workdps(40):
        noise, centre, phase = mpmath.mpf(s), sensitivity * mpmath.mpf(tilt), mpmath.mpf("2.7")
        xs = range(-60, 64)
        weights = [mpmath.exp(-((x - centre) ** 2) / (2 * noise)) for x in xs]
        plain = [mpmath.exp(-mpmath.mpf(x * x) / (2 * noise)) for x in xs]
        variance = mpmath.fsum(w * x * x for w, x in zip(plain, xs, strict=True)) / mpmath.fsum(plain)

        def mean(shift: int) -> mpmath.mpc:  # phases are measured from round(D tilt) = 2
            terms = (
                w * ((x + shift) ** 2 - variance) * mpmath.expj(phase * (x - 2))
                for w, x in zip(weights, xs, strict=True)
            )
            return mpmath.fsum(terms) / mpmath.fsum(weights)

        wanted = [complex(mean(0)), complex(mean(sensitivity))]
    found = tilted_squares(float(s), sensitivity, tilt, np.array([2.7]))
    factor = np.exp(found.exponent[0])
    assert untilted_variance(float(s)) == pytest.approx(float(variance), rel=1e-13)
    for value, exact in zip((found.square, found.shifted), wanted, strict=True):
        assert complex(value[0] * factor) == pytest.approx(exact, rel=1e-11, abs=1e-13)


def test_a_list_and_the_lattice_agree() -> None:
    """Also where delta is near 1 (the loss is about 48) and tilts are negative."""
    composition = 3 * DiscreteGaussian("0.5") + 10 * DiscreteGaussian(2, sensitivity=3)
    for epsilon, tilt in (("6.1", "-1/2"), ("0.35", "-1/2"), ("44.1", "-1/8"), ("90.1", "1/2")):
        costs = composition.budget_costs(epsilon=epsilon)
        listed = listed_slopes(composition.discrete_gaussians, Fraction(tilt), Fraction(epsilon))
        assert listed is not None
        assert listed.by_rho / listed.by_epsilon == pytest.approx(costs.epsilon_per_rho, rel=1e-8)
        assert max(listed.rho_errors / abs(listed.by_rho)) < 1e-8


def test_the_change_is_proved_from_bounds_of_both_designs() -> None:
    mechanism = DiscreteGaussian(5)
    change = ROUND.budget_change(mechanism, "0.01", delta="1e-10")
    low, high = change.change
    with mpmath.workdps(40):
        ends = [x.epsilon_bounds("1e-10", digits=25) for x in (ROUND, ROUND.with_rho(mechanism, "0.01"))]
    exact = ends[1].lower - ends[0].upper
    assert Decimal(low) <= exact <= Decimal(high)
    assert high - low < 1e-7 * high
    assert low / 0.01 == pytest.approx(ROUND.budget_costs(delta="1e-10").epsilon_per_rho[0], rel=0.05)


def test_changes_are_rounded_outward() -> None:
    """With ends that a double cannot subtract exactly the bounds of the difference are below and above it."""
    change = BudgetChange("delta", Fraction(1, 10), (0.1, 0.1), (1e17 / 3, 1e17 / 3))
    exact = Fraction(1e17 / 3) - Fraction(0.1)
    assert Fraction(change.change.lower) < exact < Fraction(change.change.upper)
    for by in (Fraction(1, 3), Fraction(-1, 3)):
        low, high = change.per(by)
        assert Fraction(low) < exact / by < Fraction(high)
        assert (high - low) < 1e-14 * abs(high)


@pytest.mark.parametrize("by", [3, 7, 11, 13, -3, -7, -11, -13])
def test_mean_slopes_are_rounded_outward(by: int) -> None:
    change = BudgetChange("delta", Fraction(1, 10), (0.0, 0.0), (1.0, 2.0))
    ends = sorted(Fraction(end) / by for end in change.change)
    low, high = change.per(by)
    assert Fraction(low) < ends[0] < ends[1] < Fraction(high)


def test_the_change_takes_the_far_ends() -> None:
    change = BudgetChange("epsilon", Fraction(1), (0.25, 0.5), (1.0, 2.0))
    assert change.change.lower == pytest.approx(0.5)
    assert change.change.lower < 0.5
    assert change.change.upper == pytest.approx(1.75)
    assert change.change.upper > 1.75
    assert change.quantity == "delta"


def test_every_kind_of_noise_has_a_certified_change() -> None:
    before, after = 3 * DiscreteLaplace(2), 2 * DiscreteLaplace(2) + DiscreteLaplace("1.9")
    change = budget_change(before, after, delta="1e-3").change
    assert 0 < change.lower <= change.upper < 0.1


def test_what_is_lost_in_rounding_is_not_guessed() -> None:
    """Noise that is 0 but for one draw in 10^108, asked between two losses: the slope by epsilon is far below the rounding."""
    composition = Composition([DiscreteGaussian("0.002", sensitivity=2)])
    with pytest.raises(AccuracyError, match="ask budget_change"):
        composition.budget_costs(epsilon="3000.5")


def test_an_estimate_is_not_a_bound() -> None:
    costs = ROUND.budget_costs(delta="1e-10")
    assert not isinstance(costs, Bounds)
    assert not hasattr(costs, "lower")
    assert "~" in str(costs)
    assert "Estimates" in str(costs)
    assert isinstance(costs, BudgetCosts)


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    fresh = Composition(ROUND.mechanisms).budget_costs(epsilon=7)
    ROUND.budget_costs(epsilon=9)
    ROUND.epsilon("1e-30")
    assert ROUND.budget_costs(epsilon=7) == fresh


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: ROUND.budget_costs(), "Give delta or epsilon"),
        (lambda: ROUND.budget_costs(delta=0), "above 0 and below 1"),
        (lambda: ROUND.budget_costs(epsilon="inf"), "epsilon"),
        (lambda: (3 * DiscreteLaplace(2)).budget_costs(epsilon=1), "ask budget_change"),
        (lambda: ROUND.budget_change(DiscreteGaussian(77), 1, delta="1e-9"), "one of the composition's"),
        (lambda: ROUND.budget_change(DiscreteGaussian(5), -1, delta="1e-9"), "keep some rho"),
        (lambda: (3 * DiscreteLaplace(2)).with_rho(DiscreteLaplace(2), 1), "two compositions"),
        (lambda: ROUND.budget_change(DiscreteGaussian(5), 1, delta="1e-9").per(0), "other than 0"),
        (lambda: budget_change(ROUND, ROUND, delta=1), "above 0 and below 1"),
    ],
)
def test_bad_questions_are_refused_in_one_sentence(ask, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInputError, match=says):
        ask()
