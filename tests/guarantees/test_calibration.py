"""Calibration: at the factor returned the target holds by certified bounds, one grid step below it fails by them."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest

import command_line
import oracle
from exactdp import census
from exactdp.accounting.composition import Composition
from exactdp.census.savings import calibrate_release, is_in_range
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.calibration import (
    LARGEST_FACTOR,
    Calibration,
    MeetsAll,
    Target,
    calibrate,
    calibrate_sigma2,
    least_on_grid,
    side_of_all,
    target,
)
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from strategies import seeds

SIGMA2S = [Fraction(x) for x in ("0.3", "0.4", "1/2", "0.8", "1", "3/2", "2", "3", "5", "15/2", "10", "20", "40", "50")]


def random_composition(rng: random.Random, kinds: int) -> Composition:
    counts: dict[Mechanism, int] = {}
    for _ in range(kinds):
        counts[DiscreteGaussian(rng.choice(SIGMA2S), rng.randint(1, 3))] = rng.randint(1, 20)
    return Composition(counts)


def random_kinds(rng: random.Random) -> int:
    return rng.choices([1, 2, 3, 4, 5], [75, 19, 2, 2, 2])[0]


def with_noise(c: Composition, factor: Fraction, part: set[Mechanism] | None = None) -> Composition:
    """The same composition with more or less noise, built here."""
    counts: dict[Mechanism, int] = {}
    for m, n in c.mechanisms.items():
        new = DiscreteGaussian(m.sigma2 * factor, m.sensitivity) if part is None or m in part else m
        counts[new] = counts.get(new, 0) + n
    return Composition(counts)


def check(c: Composition, wanted: Target, grid: int, part: set[Mechanism] | None = None) -> Calibration:
    """The claim, by certified bounds of compositions that are built afresh."""
    found = calibrate(c, wanted, part, grid)
    assert found.step == Fraction(1, grid)
    assert (found.factor * grid).denominator == 1
    assert found.factor > 0
    at = with_noise(c, found.factor, part)
    assert found.composition == at
    assert _met(at, wanted) is True
    below = found.factor - found.step
    if below > 0 and all(Fraction(1, 1000) <= m.sigma2 * below for m in c.mechanisms):
        assert found.below_exists
        assert _met(with_noise(c, below, part), wanted) is False
    return found


def _met(c: Composition, wanted: Target) -> bool | None:
    """Without the methods of the target: True and False are proved."""
    kind = type(wanted).__name__
    if kind == "MeetsEpsilonDelta":
        low, high = c.delta_bounds(wanted.epsilon)
        return True if Fraction(high) <= wanted.delta else False if Fraction(low) > wanted.delta else None
    low, high = c.beta_bounds(wanted.alpha)
    return True if Fraction(low) >= wanted.beta else False if Fraction(high) < wanted.beta else None


def three_digits(x: float) -> Fraction:
    return Fraction(f"{x:.3g}")


def random_target(rng: random.Random, c: Composition, kind: str) -> Target | None:
    """A target that this composition just meets, so that the search is short from noise near it; None if there is none."""
    if kind == "epsilon":
        epsilon = three_digits(float(c.rho) + c.mu * rng.uniform(-0.5, 4))
        delta = three_digits(c.delta(epsilon))
        return target(epsilon=epsilon, delta=delta) if 0 < delta < 1 else None
    if kind == "advantage":
        advantage = three_digits(c.delta(0))
        return target(advantage=advantage) if 0 < advantage < 1 else None
    alpha = rng.choice([Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2)])
    beta = three_digits(c.beta(alpha))
    return target(alpha=alpha, beta=beta) if 0 < beta < 1 else None


@pytest.mark.parametrize("seed", seeds(4, 20))
@pytest.mark.parametrize(("kind", "cases"), [("epsilon", 30), ("advantage", 15), ("alpha", 5)])
def test_random_cases(kind: str, seed: int, cases: int) -> None:
    rng = random.Random(f"{kind}{seed}")
    done = 0
    while done < cases:
        c = random_composition(rng, random_kinds(rng) if kind != "alpha" else rng.randint(1, 2))
        if c.rho > 60:
            continue
        grid = rng.choice([20, 20, 50, 100])
        wanted = random_target(rng, with_noise(c, 1 + Fraction(rng.randint(-2, 1), grid)), kind)
        if wanted is None:
            continue
        check(c, wanted, grid)
        done += 1


def test_random_cases_with_targets_far_off() -> None:
    rng = random.Random(11)
    wanted = [
        target(epsilon=1, delta="1e-6"),
        target(epsilon="0.1", delta="1e-3"),
        target(epsilon=20, delta="1e-12"),
        target(advantage="0.05"),
        target(advantage="0.9"),
        target(alpha="0.05", beta="0.5"),
    ]
    for i in range(12):
        check(random_composition(rng, 1 + i % 2), wanted[i % 6], rng.choice([20, 50, 100]))


def test_random_cases_of_a_part() -> None:
    rng = random.Random(12)
    done = 0
    while done < 22:
        c = random_composition(rng, rng.randint(2, 3))
        if len(c.mechanisms) < 2 or c.rho > 60:
            continue
        part = set(rng.sample(list(c.mechanisms), rng.randint(1, len(c.mechanisms) - 1)))
        wanted = random_target(rng, with_noise(c, 1 + Fraction(rng.randint(-2, 1), 20), part), "epsilon")
        if wanted is None:
            continue
        found = check(c, wanted, 20, part)
        assert all(m in found.composition.mechanisms for m in set(c.mechanisms) - part)
        done += 1


def test_scaled_noise_may_meet_other_noise() -> None:
    one, two = DiscreteGaussian(1), DiscreteGaussian(2)
    wanted = target(advantage=three_digits((5 * two).delta(0)))
    found = calibrate(2 * one + 3 * two, wanted, [one], grid=1)
    assert found.factor == 2
    assert found.composition == 5 * two


@pytest.mark.parametrize(("count", "sensitivity"), [(1, 1), (3, 1), (10, 2), (40, 3)])
def test_sigma2(count: int, sensitivity: int) -> None:
    for wanted in (target(epsilon=2, delta="1e-6"), target(advantage="0.2"), target(alpha="0.05", beta="0.5")):
        found = calibrate_sigma2(count, wanted, sensitivity, grid=10)
        assert found.composition == count * DiscreteGaussian(found.factor, sensitivity)
        assert _met(found.composition, wanted) is True
        assert _met(count * DiscreteGaussian(found.factor - found.step, sensitivity), wanted) is False


def test_sigma2_by_brute_force() -> None:
    """One count, advantage 1/10: an answer that anybody can check."""
    found = calibrate_sigma2(1, target(advantage="0.1"), grid=100)
    deltas = [oracle.brute({(s, 1): 1}).delta(Fraction(0)) for s in (found.factor, found.factor - Fraction(1, 100))]
    assert deltas[0] <= Fraction(1, 10) < deltas[1]
    assert float(found.factor) == pytest.approx(1 / (2 * 3.14159265 * 0.01), abs=0.011)


@pytest.mark.parametrize("leads", [0, 1], ids=["deep", "shallow"])
def test_several_targets_need_what_the_hardest_needs(leads: int) -> None:
    """Of two targets now the one and now the other decides; the answer meets both, and one step less fails one of them."""
    deep, shallow = target(epsilon=6, delta="1e-9"), target(advantage=("0.9", "0.2")[leads])
    one = 5 * DiscreteGaussian(2)
    alone = [calibrate(one, wanted, grid=100).factor for wanted in (deep, shallow)]
    assert alone[leads] > alone[1 - leads]
    found = calibrate(one, MeetsAll((deep, shallow)), grid=100)
    assert found.factor == max(alone)
    assert all(wanted.holds(found.composition) for wanted in (deep, shallow))


def test_tiny_noise_suffices() -> None:
    assert calibrate(Composition([DiscreteGaussian(50)]), target(advantage="0.99"), grid=2).factor == Fraction(1, 2)
    assert calibrate(Composition([DiscreteGaussian(50)]), target(advantage="0.99"), grid=1).factor == 1


def test_a_target_that_cannot_be_met() -> None:
    c = DiscreteGaussian(1) + DiscreteGaussian(50)
    with pytest.raises(AccuracyError, match="No factor meets the target: the mechanisms outside of the part"):
        calibrate(c, target(epsilon=1, delta="1e-6"), [DiscreteGaussian(50)], grid=1)
    with pytest.raises(AccuracyError, match=f"^{LARGEST_FACTOR}, .* is proved not to meet the target"):
        calibrate(c, target(epsilon="1e-7", delta="1e-6"), grid=1)


@pytest.mark.parametrize(("largest", "m"), [(LARGEST_FACTOR, 1), (10**6, 999_999), (1000, 700), (1000, 1000)])
def test_the_last_step_goes_to_the_largest_value(largest: int, m: int) -> None:
    """Whatever holds up to the largest value is found: doubling must not jump past it."""
    asked = (lambda f: f >= m, lambda f: f < m, lambda f: True)
    for grid in (1, 7):
        assert least_on_grid(*asked, grid, largest=largest) == m


def test_noise_that_ends_before_the_largest_value() -> None:
    """Where the range of a noise parameter ends on the way up, its end is tried; no claim is made of what is beyond."""
    ends = lambda f: 3 <= f <= 777  # noqa: E731
    assert least_on_grid(lambda f: f >= 700 and ends(f), lambda f: f < 700, ends, 1) == 700
    with pytest.raises(AccuracyError, match=r"^777, the largest value that is tried, is proved not"):
        least_on_grid(lambda f: False, lambda f: True, ends, 1)
    with pytest.raises(AccuracyError, match="too wide to tell whether 777"):
        least_on_grid(lambda f: False, lambda f: False, ends, 1)
    with pytest.raises(AccuracyError, match="There is no such noise"):
        least_on_grid(lambda f: False, lambda f: True, lambda f: False, 1)


def test_sigma2_beyond_half_a_million() -> None:
    """Doubling goes from 524,288 past a million; the answer lies between."""
    wanted = target(epsilon="0.01", delta="1e-5")
    found = calibrate_sigma2(10, wanted, grid=1)
    assert 590_000 < found.factor < 600_000
    assert _met(found.composition, wanted) is True
    assert _met(10 * DiscreteGaussian(found.factor - 1), wanted) is False
    assert calibrate_sigma2(1, target(epsilon=1, delta="1e-5"), 10_000, grid=1).factor > 10**9


def test_a_delta_below_the_doubles() -> None:
    """Doubles cannot tell 1e-400 from 0; logarithms can, for the proof of either side."""
    wanted = target(epsilon=2, delta="1e-400")
    found = calibrate_sigma2(1, wanted, grid=1)
    at, below = found.composition, Composition([DiscreteGaussian(found.factor - 1)])
    assert at.delta_bounds(2, digits=10).upper <= Decimal("1e-400") < below.delta_bounds(2, digits=10).lower
    assert wanted.holds(at)
    assert wanted.fails(below)
    assert not wanted.holds(below)
    assert not wanted.fails(at)


def test_more_noise_is_not_always_more_private() -> None:
    """Which is why only the grid point and its neighbour are claimed."""
    one, more = Composition([DiscreteGaussian(1)]), Composition([DiscreteGaussian("1.001")])
    epsilon = "4.5"
    assert one.delta_bounds(epsilon).upper < more.delta_bounds(epsilon).lower
    wanted = target(epsilon=epsilon, delta=Fraction(float(one.delta(epsilon))))
    found = check(one, wanted, 1000)
    assert found.factor == 1
    assert not wanted.holds(with_noise(one, found.factor + found.step))


# About a second each: four searches and the proofs of mu.
@pytest.mark.parametrize(
    ("c", "mu"),
    [
        (Composition([DiscreteGaussian(1)]), "1.05"),
        (2 * DiscreteGaussian("1/2"), "2.1"),
    ],
)
def test_mu(c: Composition, mu: str) -> None:
    wanted = target(mu=mu)
    found = calibrate(c, wanted, grid=20)
    assert wanted.holds(found.composition)
    assert not wanted.fails(found.composition)
    assert wanted.fails(with_noise(c, found.factor - found.step))
    assert abs(float(found.factor) - float(c.rho) * 2 / float(mu) ** 2) < 0.3


def test_continuous_gaussians() -> None:
    found = calibrate(4 * Gaussian(1), target(epsilon=1, delta="1e-5"), grid=100)
    assert wanted_sigma2(found) == pytest.approx(4 / 0.268051**2, abs=0.011)  # mu(1, 1e-5) = 0.268051
    assert Composition([Gaussian(3, "1/2")]).scaled(2) == Composition([Gaussian(6, "1/2")])


def wanted_sigma2(found: Calibration) -> float:
    return float(next(iter(found.composition.mechanisms)).sigma2)


def test_mu_of_continuous_gaussians() -> None:
    assert calibrate(4 * Gaussian(1), target(mu=1), grid=10).factor == 4


# --- the search alone


def test_the_search_on_made_up_curves() -> None:
    """Any pattern of yes and no above and below: the answer holds and its neighbour fails."""
    rng = random.Random(9)
    for _ in range(3000):
        grid = rng.choice([1, 3, 20, 100])
        edge = Fraction(rng.randint(1, 400), rng.choice([1, 20, 100]))
        noise = {Fraction(m, grid): rng.random() < 0.5 for m in range(1, 60)} if rng.random() < 0.5 else {}

        def holds(f: Fraction, noise: dict[Fraction, bool] = noise, edge: Fraction = edge) -> bool:
            return noise.get(f, f >= edge)

        factor = least_on_grid(
            holds, lambda f, holds=holds: not holds(f), lambda f: True, grid, rng.choice([None, 1, 5 * grid])
        )
        assert (factor * grid).denominator == 1
        assert holds(factor)
        below = factor - Fraction(1, grid)
        assert below == 0 or not holds(below)


def test_the_search_gives_up_where_nothing_can_be_told() -> None:
    with pytest.raises(AccuracyError, match="coarser grid"):
        least_on_grid(lambda f: f >= 2, lambda f: f < Fraction(19, 10), lambda f: True, 100)
    assert least_on_grid(lambda f: f >= 2, lambda f: f < Fraction(19, 10), lambda f: True, 5) == 2
    with pytest.raises(AccuracyError, match="weaker"):
        least_on_grid(lambda f: False, lambda f: True, lambda f: True, 10)


# --- wrong input


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"epsilon": 1},
        {"delta": "0.1"},
        {"alpha": "0.1"},
        {"epsilon": 1, "delta": "0.1", "mu": 1},
        {"advantage": "0.1", "mu": 1},
        {"epsilon": 1, "beta": "0.1"},
    ],
)
def test_one_target_is_needed(given: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="A target is") as caught:
        target(**given)
    assert str(caught.value).endswith(f"Found {', '.join(given) or 'none of them'}.")


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": "x", "delta": "0.1"},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"alpha": 0, "beta": "0.1"},
        {"alpha": "0.1", "beta": "1.5"},
        {"advantage": -1},
        {"mu": 0},
    ],
)
def test_targets_out_of_range(given: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        target(**given)


ONE = Composition([DiscreteGaussian(1)])


@pytest.mark.parametrize("part", [[], [DiscreteGaussian(2)], [1], "x"])
def test_parts_that_are_none(part: object) -> None:
    with pytest.raises(InvalidInputError, match="part to be scaled"):
        calibrate(ONE, target(advantage="0.1"), part)


@pytest.mark.parametrize("grid", [0, -1, "x", "1/2"])
def test_grids_that_are_none(grid: object) -> None:
    with pytest.raises(InvalidInputError, match="grid"):
        calibrate(ONE, target(advantage="0.1"), grid=grid)
    with pytest.raises(InvalidInputError, match="grid"):
        calibrate_sigma2(1, target(advantage="0.1"), grid=grid)


@pytest.mark.parametrize("refused", [ApproximateDP("1/2"), Outcomes(["2/3", "1/3"], ["1/3", "2/3"])])
def test_noise_that_cannot_be_scaled(refused: Mechanism) -> None:
    with pytest.raises(InvalidInputError, match="Only noise of one parameter"):
        calibrate(2 * refused, target(epsilon=1, delta="1e-6"), grid=10)


@pytest.mark.parametrize(
    ("composition", "wanted"),
    [
        (5 * DiscreteLaplace(2), target(epsilon=1, delta="1e-6")),
        (3 * RandomizedResponse(1), target(advantage="1/4")),
        (2 * RandomizedResponse(noise="1/3", categories=5), target(alpha="1/20", beta="4/5")),
        (DiscreteLaplace(3, 2) + 2 * DiscreteGaussian(4), target(epsilon=1, delta="1e-5")),
        (2 * DiscreteLaplace(2), target(mu="1/2")),
    ],
)
def test_any_noise_of_one_parameter(composition: Composition, wanted: Target) -> None:
    """At the factor the target holds, one step below it fails, each shown again with the composition itself."""
    found = calibrate(composition, wanted, grid=20)
    assert found.composition == composition.scaled(found.factor)
    assert wanted.holds(found.composition)
    assert found.below_exists
    assert wanted.fails(composition.scaled(found.factor - found.step))


def test_pure_laplace_is_calibrated_to_its_epsilon() -> None:
    """At a delta next to nothing k queries of scale b have epsilon k / b: b must be 20 for 4 of them and epsilon 1/5."""
    found = calibrate(4 * DiscreteLaplace(2), target(epsilon="1/5", delta="1e-280"), grid=1)
    assert found.factor == 100
    assert found.composition == 4 * DiscreteLaplace(20)


@pytest.mark.parametrize(("count", "sensitivity"), [(0, 1), ("x", 1), (1, 0)])
def test_counts_that_are_none(count: object, sensitivity: int) -> None:
    with pytest.raises(InvalidInputError):
        calibrate_sigma2(count, target(advantage="0.1"), sensitivity)


def test_an_epsilon_out_of_range() -> None:
    with pytest.raises(InvalidInputError, match="epsilon"):
        calibrate(ONE, target(epsilon="1e10", delta="1e-6"), grid=10)


def test_a_grid_as_text() -> None:
    assert calibrate(ONE, target(advantage="0.1"), grid="10").step == Fraction(1, 10)


def test_the_step_below_is_out_of_range() -> None:
    """No noise of less than sigma2 = 1/1000 can be asked for; the factor is the least that can."""
    found = calibrate(Composition([DiscreteGaussian("0.001")]), target(epsilon=600, delta="0.5"), grid=10)
    assert found.factor == 1
    assert not found.below_exists
    told = command_line.run("calibrate", "-m", "0.001", "--epsilon", "600", "--delta", "0.5", "--grid", "10").stdout
    assert told.endswith(
        "Every noise variance times 1 meets the target, which is proved; "
        "times 0.9 is outside the range of allowed noise and was not tried.\n"
    )


def test_a_release_whose_step_below_is_out_of_range() -> None:
    coarse = census.Release("one", "", "", {"Nation": {"age": Fraction(1000)}}, {1: ()})
    factor, _ = calibrate_release(coarse, target(epsilon=1200, delta="0.6"), grid=10)
    assert factor == 1
    assert is_in_range(coarse, factor)
    assert not is_in_range(coarse, Fraction(9, 10))


def test_a_delta_below_the_doubles_is_met_by_no_less() -> None:
    """Between logarithms that differ by less than 1."""
    c = Composition([DiscreteGaussian(50)])
    low, high = (Fraction(x) for x in c.delta_bounds(7, digits=10))
    assert high < Fraction(1, 10**290)
    assert not target(epsilon=7, delta=low / 2).holds(c)
    assert target(epsilon=7, delta=low / 2).fails(c)
    assert target(epsilon=7, delta=high * 2).holds(c)


@pytest.mark.parametrize(
    ("sides", "whole"), [([-1, -1], -1), ([-1, 0], 0), ([0, -1], 0), ([0, 1], 1), ([-1, 1], 1), ([], -1)]
)
def test_what_is_undecided_for_one_is_not_proved_for_all(sides: list[int], whole: int) -> None:
    assert side_of_all(sides) == whole
