"""What no noise can beat: bounds against closed forms, another program and random tables; tables against brute force."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from exactdp.accounting.composition import Composition
from exactdp.errors import InvalidInputError
from exactdp.guarantees.best_noise import optimum
from exactdp.guarantees.best_noise.closed_bounds import affinity_bound, gaussian_affinity, stick_bound
from exactdp.guarantees.best_noise.composed_delta import ComposedDelta
from exactdp.guarantees.best_noise.linear_program import Stick, solve
from exactdp.guarantees.best_noise.lower_bound import Affinity, Cost, HockeyStick, Multipliers, NoiseBound
from exactdp.guarantees.best_noise.noise_table import NoiseTable
from exactdp.guarantees.best_noise.optimum import noise_bound, optimal_noise, ratio_above
from exactdp.guarantees.best_noise.three_outcomes import ThreeOutcomes
from exactdp.guarantees.calibration import MeetsEpsilonDelta, target

RNG = random.Random(22)


def random_table(rng: random.Random, reach: int) -> list[Fraction]:
    """Probabilities of -reach .. reach, symmetric, mostly falling outward."""
    steep = rng.choice([0.1, 0.5, 1.5])
    half = [Fraction(1 + int(10**6 * math.exp(-steep * x) * rng.uniform(0.5, 1.5))) for x in range(reach + 1)]
    total = half[0] + 2 * sum(half[1:])
    return [p / total for p in [*half[:0:-1], *half]]


def hockey_stick(p: list[Fraction], ratio: Fraction, shift: int = 1) -> Fraction:
    nothing = [Fraction(0)] * shift
    return sum(
        (max(a - ratio * b, Fraction(0)) for a, b in zip([*p, *nothing], [*nothing, *p], strict=True)), Fraction(0)
    )


def mean_cost(p: list[Fraction], cost: Cost) -> Fraction:
    reach = len(p) // 2
    return sum((cost.of(x - reach) * q for x, q in enumerate(p)), Fraction(0))


def brute_delta(p: list[Fraction], copies: int, epsilon: float) -> float:
    """delta of copies of noise of sensitivity 1, by listing all outcomes."""
    own, other = np.array([*map(float, p), 0.0]), np.array([0.0, *map(float, p)])
    first, second = np.ones(1), np.ones(1)
    for _ in range(copies):
        first, second = np.multiply.outer(first, own).ravel(), np.multiply.outer(second, other).ravel()
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_pure_epsilon_is_the_geometric_law(epsilon: str) -> None:
    ratio = ratio_above(Fraction(epsilon))
    q = mpmath.exp(-mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
    for cost, exact in ((Cost.VARIANCE, 2 * q / (1 - q) ** 2), (Cost.ABSOLUTE, 2 * q / (1 - q * q))):
        bound = stick_bound(cost, 1, ratio, Fraction(1, 10**30)).value
        assert 0.999999 * exact <= float(bound) <= exact * (1 + 1e-12)


@pytest.mark.parametrize("outcomes", [3, 9, 25])
def test_delta_alone_is_the_uniform_law(outcomes: int) -> None:
    """Equal probabilities of an odd number of outcomes are the best noise where only delta counts."""
    bound = stick_bound(Cost.VARIANCE, 1, Fraction(1), Fraction(1, outcomes)).value
    exact = Fraction(outcomes**2 - 1, 12)
    assert (1 - Fraction(1, 10**6)) * exact <= bound <= exact
    absolute = stick_bound(Cost.ABSOLUTE, 1, Fraction(1), Fraction(1, outcomes)).value
    exact = Fraction(outcomes**2 - 1, 4 * outcomes)
    assert (1 - Fraction(1, 10**6)) * exact <= absolute <= exact


@pytest.mark.parametrize(
    ("epsilon", "delta", "shift"), [("1", "0.01", 1), ("1/2", "0.001", 1), ("1", "0.05", 2), ("2", "0.1", 3)]
)
@pytest.mark.parametrize("cost", list(Cost))
def test_the_bound_is_that_of_an_independent_program(epsilon: str, delta: str, shift: int, cost: Cost) -> None:
    """Written here: not symmetric, both directions, dense, another solver."""
    reach = 14 * shift
    n, ratio = 2 * reach + 1, math.exp(Fraction(epsilon))
    rows, right = [], []
    width = n + shift
    blocks = [(d, sign) for d in range(1, shift + 1) for sign in (1, -1)]
    for i, (d, sign) in enumerate(blocks):
        for y in range(n + d):
            row = np.zeros(n + len(blocks) * width)
            own, other = (y, y - d) if sign > 0 else (y - d, y)
            if 0 <= own < n:
                row[own] += 1
            if 0 <= other < n:
                row[other] -= ratio
            row[n + i * width + y] = -1
            rows.append(row)
            right.append(0.0)
        total = np.zeros(n + len(blocks) * width)
        total[n + i * width : n + (i + 1) * width] = 1
        rows.append(total)
        right.append(float(Fraction(delta)))
    costs = np.concatenate([[cost.of(x - reach) for x in range(n)], np.zeros(len(blocks) * width)])
    equal = np.concatenate([np.ones(n), np.zeros(len(blocks) * width)])[None, :]
    found = linprog(costs, A_ub=np.array(rows), b_ub=right, A_eq=equal, b_eq=[1.0], method="highs-ipm")
    sticks = [Stick(d, ratio_above(Fraction(epsilon)), Fraction(delta)) for d in range(1, shift + 1)]
    bound = solve(cost, reach, sticks).bound.value
    assert float(bound) == pytest.approx(found.fun, rel=1e-6)
    if shift == 1:
        assert float(stick_bound(cost, 1, sticks[0].ratio, Fraction(delta)).value) == pytest.approx(found.fun, rel=1e-6)


def test_the_bound_is_below_every_table_of_one_release() -> None:
    for _ in range(150):
        p = random_table(RNG, RNG.randint(1, 8))
        ratio, shift = 1 + Fraction(RNG.randint(1, 40), 10), RNG.choice([1, 1, 2])
        allowed = hockey_stick(p, ratio, shift)
        for cost in Cost:
            assert stick_bound(cost, shift, ratio, allowed).value <= mean_cost(p, cost)


def test_the_bound_touches_tables_that_are_best() -> None:
    """Not only below: at the tables of the program there is nothing between."""
    for ratio, allowed in ((Fraction(3), Fraction(1, 50)), (Fraction(3, 2), Fraction(1, 20))):
        found = solve(Cost.VARIANCE, 20, [Stick(1, ratio, allowed)])
        value = float(2 * found.half @ np.arange(21) ** 2)
        assert value * (1 - 1e-7) <= float(stick_bound(Cost.VARIANCE, 1, ratio, allowed).value) <= value * (1 + 1e-7)


def random_multipliers(rng: random.Random, low: float, high: float) -> Multipliers:
    first = rng.randint(-6, 1)
    return Multipliers(first, tuple(Fraction(rng.uniform(low, high)) for _ in range(rng.randint(1, 9))))


def test_any_multipliers_are_below_every_table() -> None:
    for _ in range(200):
        p = random_table(RNG, RNG.randint(1, 5))
        ratio, shift = 1 + Fraction(RNG.randint(0, 30), 10), RNG.choice([1, 2])
        affinity = sum(math.sqrt(p[x] * p[x - shift]) for x in range(shift, len(p)))  # the others are 0
        weight = RNG.uniform(0, 20)
        bound = NoiseBound(
            RNG.choice(list(Cost)),
            (
                HockeyStick(
                    shift, ratio, hockey_stick(p, ratio, shift), Fraction(weight), random_multipliers(RNG, 0, weight)
                ),
                Affinity(
                    shift,
                    Fraction(affinity * (1 - 1e-12)),
                    Fraction(RNG.uniform(0, 20)),
                    random_multipliers(RNG, 0.1, 4),
                ),
            ),
        )
        assert bound.value <= mean_cost(p, bound.cost)


def test_the_minimum_is_over_all_outcomes() -> None:
    """The bound, written here once more, with outcomes far beyond where multipliers change."""
    for _ in range(60):
        weight, shift, ratio = Fraction(RNG.randint(1, 9)), RNG.choice([1, 2]), Fraction(RNG.randint(10, 40), 10)
        y, s = random_multipliers(RNG, 0, float(weight)), random_multipliers(RNG, 0.1, 4)
        bound = NoiseBound(
            Cost.ABSOLUTE,
            (
                HockeyStick(shift, ratio, Fraction(1, 9), weight, y),
                Affinity(shift, Fraction(50), weight, s),  # so large that the bound is not 0
            ),
        )

        def at(steps: Multipliers, x: int) -> Fraction:
            return steps.values[max(0, min(x - steps.first, len(steps.values) - 1))]

        left = []
        for x in range(60):
            both = [
                ratio * at(y, z + shift) - at(y, z) + weight * (at(s, z) + 1 / at(s, z + shift)) / 2 for z in (x, -x)
            ]
            left.append(x - sum(both) / 2)
        assert bound.value == min(left) + 50 * weight - weight / 9 > 0


def test_the_affinity_bound_is_below_every_table() -> None:
    for _ in range(60):
        p = random_table(RNG, RNG.randint(2, 9))
        affinity = sum(math.sqrt(a * b) for a, b in pairwise(p))
        assert affinity_bound(Fraction(affinity * (1 - 1e-12))).value <= mean_cost(p, Cost.VARIANCE)


@pytest.mark.parametrize(("sigma2", "near"), [("1/2", 0.05), ("1", 8e-4), ("4", 1e-4), ("100", 1e-7)])
def test_the_affinity_bound_is_nearly_that_of_the_gaussian(sigma2: str, near: float) -> None:
    """Its own affinity by a sum of 30 digits: discrete Gaussian noise is above the bound, and by little."""
    with mpmath.workdps(30):
        s = mpmath.mpf(Fraction(sigma2).numerator) / Fraction(sigma2).denominator
        weights = {x: mpmath.exp(-x * x / (2 * s)) for x in range(-150, 151)}
        total = sum(weights.values())
        variance = sum(x * x * w for x, w in weights.items()) / total
        affinity = sum(mpmath.sqrt(weights[x] * weights[x - 1]) for x in range(-149, 151)) / total
        bound = affinity_bound(Fraction(str(affinity - mpmath.mpf(10) ** -25))).value
    assert (1 - near) * variance <= float(bound) <= variance * (1 + 1e-15)


def test_the_affinity_under_mu_is_that_of_normal_laws() -> None:
    with mpmath.workdps(30):
        exact = mpmath.exp(-mpmath.mpf(9) / 4 / 8 / 7)
        found = gaussian_affinity(Fraction(3, 2), 7)
        assert 0 <= exact - mpmath.mpf(found.numerator) / found.denominator < mpmath.mpf(10) ** -28


@pytest.mark.parametrize(
    "make",
    [
        lambda: HockeyStick(1, Fraction(2), Fraction(0), Fraction(1), Multipliers(0, (Fraction(3, 2),))),
        lambda: HockeyStick(1, Fraction(2), Fraction(0), Fraction(1), Multipliers(0, (Fraction(-1, 2),))),
        lambda: Affinity(1, Fraction(1, 2), Fraction(1), Multipliers(0, (Fraction(0),))),
        lambda: Affinity(1, Fraction(1, 2), Fraction(-1), Multipliers(0, (Fraction(1),))),
        lambda: Multipliers(0, ()),
    ],
)
def test_what_are_no_multipliers_is_refused(make: object) -> None:
    with pytest.raises(InvalidInputError, match="Found"):
        make()  # type: ignore[operator]


def brute_three(u: float, v: float, copies: int, epsilon: float) -> float:
    """delta of copies of the test of three outcomes, by listing how often each occurs."""
    total = 0.0
    for plus, minus in product(range(copies + 1), repeat=2):
        if plus + minus <= copies:
            ways = math.factorial(copies) // (
                math.factorial(plus) * math.factorial(minus) * math.factorial(copies - plus - minus)
            )
            rest = (1 - u - v) ** (copies - plus - minus) * ways
            total += max(rest * (u**plus * v**minus - math.exp(epsilon) * v**plus * u**minus), 0.0)
    return total


@pytest.mark.parametrize(
    ("copies", "epsilon", "delta"), [(1, 0.5, 0.02), (2, 1.0, 1e-4), (3, 0.5, 0.01), (8, 1.0, 1e-3)]
)
def test_every_pair_that_meets_the_target_is_allowed(copies: int, epsilon: float, delta: float) -> None:
    tests = ThreeOutcomes(target(epsilon=epsilon, delta=delta), copies)
    ratios = [Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(4)]
    allowed = [float(tests.allowed(ratio)) for ratio in ratios]
    best = [0.0] * len(ratios)
    for coverage in [1.0, 0.999, 0.5, 0.2, 0.05, 1e-3, *(RNG.random() ** 3 for _ in range(12))]:
        low, high = 0.0, coverage
        for _ in range(40):  # the largest difference that meets the target
            middle = (low + high) / 2
            meets = brute_three((coverage + middle) / 2, (coverage - middle) / 2, copies, epsilon) <= delta * (1 - 1e-9)
            low, high = (middle, high) if meets else (low, middle)
        u, v = (coverage + low) / 2, (coverage - low) / 2
        for i, ratio in enumerate(ratios):
            assert u - float(ratio) * v <= allowed[i] * (1 + 1e-9)
            best[i] = max(best[i], u - float(ratio) * v)
    assert allowed[0] <= best[0] * 1.01  # at coverage 1
    assert all(0 < value <= 1 for value in allowed)


def test_a_wrong_guess_costs_nothing_but_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is proved to fail, whatever the search in doubles says."""
    wanted = target(epsilon=1, delta="1e-3")
    right = ThreeOutcomes(wanted, 4).allowed(Fraction(11, 10))
    for factor in (0.5, 0.9, 1.5):
        guess = ThreeOutcomes._guess
        with monkeypatch.context() as patch:
            patch.setattr(ThreeOutcomes, "_guess", lambda self, c, f=factor, g=guess: f * g(self, c))
            assert ThreeOutcomes(wanted, 4).allowed(Fraction(11, 10)) >= right * (1 - Fraction(1, 100))


def test_allowed_is_nearly_attained() -> None:
    tests = ThreeOutcomes(target(epsilon=1, delta="1e-3"), 4)
    for ratio in (1.05, 1.3):
        best = 0.0
        for coverage in np.linspace(0.02, 1, 120):
            low, high = 0.0, float(coverage)
            for _ in range(25):
                middle = (low + high) / 2
                misses = brute_three((coverage + middle) / 2, (coverage - middle) / 2, 4, 1.0) > 1e-3
                low, high = (low, middle) if misses else (middle, high)
            best = max(best, ((1 + ratio) * low - (ratio - 1) * coverage) / 2)
        assert best * 0.999 <= float(tests.allowed(Fraction(ratio))) <= best * 1.02


@pytest.mark.parametrize("copies", [2, 3])
def test_the_bound_of_several_releases_is_below_every_table(copies: int) -> None:
    """At random, and geometric ones, which are nearly the best."""
    tables = [random_table(RNG, RNG.randint(1, 3)) for _ in range(2)]
    weights = [Fraction(math.exp(-abs(x) / 2)) for x in range(-5, 6)]
    tables.append([w / sum(weights) for w in weights])
    for p in tables:
        epsilon = Fraction(RNG.choice(["1/2", "1", "3/2"]))
        delta = brute_delta(p, copies, float(epsilon)) * (1 + 1e-9)
        cost = RNG.choice(list(Cost))
        bound = noise_bound(copies, MeetsEpsilonDelta(epsilon, Fraction(delta)), 1, cost).value
        assert 0 < bound <= mean_cost(p, cost)


def test_the_bound_of_several_releases_is_worth_something() -> None:
    """Two releases under a small delta: about half an epsilon each, and geometric noise is nearly the best."""
    bound = noise_bound(2, target(epsilon=1, delta="1e-6")).value
    geometric = 1 / (2 * math.sinh(0.25) ** 2)
    assert 0.95 * geometric < float(bound) <= geometric


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_derivatives_are_those_of_brute_force(copies: int) -> None:
    composed = ComposedDelta(copies, 0.8)
    half = np.exp(-(np.arange(6.0) ** 1.3) * 0.53)
    half /= half[0] + 2 * half[1:].sum()
    delta, slopes = composed.at(half)

    def at(values: np.ndarray) -> float:
        return brute_delta([Fraction(float(v)) for v in [*values[:0:-1], *values]], copies, 0.8)

    assert delta == pytest.approx(at(half), rel=1e-3)
    for i in range(6):
        step = np.zeros(6)
        step[i] = 1e-6 * half[i]
        assert slopes[i] == pytest.approx((at(half + step) - at(half - step)) / (2 * step[i]), rel=0.02, abs=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "shift"),
    [("1", "1e-6", 1), ("0.1", "1e-4", 1), ("0", "0.1", 1), ("3", "0.01", 2), ("1", "1e-10", 1)],
)
def test_the_table_of_one_release_is_as_good_as_the_bound(epsilon: str, delta: str, shift: int) -> None:
    for cost in Cost:
        found = optimal_noise(1, target(epsilon=epsilon, delta=delta), shift, cost)
        assert found.table is not None
        p = [found.table.pmf.get(x, Fraction(0)) for x in range(-found.table.largest, found.table.largest + 1)]
        assert sum(p) == 1
        below = Fraction(str(mpmath.exp(mpmath.mpf(epsilon)))) * (1 - Fraction(1, 10**12))
        assert all(hockey_stick(p, below, d) <= Fraction(delta) * (1 + Fraction(1, 10**4)) for d in range(1, shift + 1))
        above = Fraction(str(mpmath.exp(mpmath.mpf(epsilon)))) * (1 + Fraction(1, 10**12))
        assert all(hockey_stick(p, above, d) <= Fraction(delta) for d in range(1, shift + 1))
        assert found.value == mean_cost(p, cost)
        assert found.least <= found.value <= found.least * (1 + Fraction(1, 10**4))
        assert found.excess(found.value) == found.value / found.least - 1


def test_a_table_for_several_releases_is_proved() -> None:
    wanted = target(epsilon=2, delta="0.01")
    found = optimal_noise(3, wanted)
    assert found.table is not None
    p = [found.table.half[abs(x)] for x in range(-found.table.largest, found.table.largest + 1)]
    assert 0.98 * 0.01 < brute_delta(p, 3, 2.0) <= 0.01 * (1 + 1e-6)
    assert wanted.holds(Composition({found.table.mechanism(): 3}))
    assert found.least <= found.value


@pytest.mark.soak
def test_ten_releases_have_better_noise_than_every_family() -> None:
    found = optimal_noise(10, target(epsilon=1, delta="1e-6"))
    assert found.table is not None
    assert 96 < float(found.least) < float(found.value) < 160  # discrete Gaussian: 178.5
    assert Composition({found.table.mechanism(): 10}).delta_bounds(1).upper <= 1e-6


def test_tables_round_to_fractions_that_add_up() -> None:
    table = NoiseTable.rounded(np.array([0.5, 0.2, 0.05, 1e-30]), 1e-4)
    assert table.largest == 2
    assert sum(table.pmf.values()) == 1
    assert table.margin(Fraction(1, 20)) == 2
    assert table.margin(Fraction(1, 10)) == 1
    assert table.mechanism(2).p == (*(table.half[abs(x)] for x in range(-2, 3)), 0, 0)


def test_what_the_optimum_says() -> None:
    found = optimal_noise(10, target(mu=1))
    assert found.value == math.inf
    assert str(found) == (
        "No symmetric noise has less variance than 9.99993. No table was found, and no table of finitely many values meets a mu."
    )
    with pytest.raises(InvalidInputError, match="Found alpha = 1/20"):
        optimal_noise(1, target(alpha="0.05", beta="0.5"))
    with pytest.raises(InvalidInputError, match="Found deviation"):
        optimal_noise(1, target(epsilon=1, delta="1e-6"), cost="deviation")


def test_what_is_found_is_proved_or_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program and a search that end with too little noise: (1/4, 1/2, 1/4) has delta = 1/4 at epsilon = 1."""
    too_little, wanted = np.array([0.5, 0.25]), MeetsEpsilonDelta(Fraction(1), Fraction(1, 5))
    monkeypatch.setattr(optimum, "solve", lambda *_, **__: SimpleNamespace(half=too_little))
    assert optimum._by_program(wanted, 1, Cost.VARIANCE) is None
    search: Any = SimpleNamespace(restored=lambda *_: too_little)
    assert optimum._proved(search, too_little, 1, wanted, 0.2) is None
    assert optimum._proved(search, too_little, 1, MeetsEpsilonDelta(Fraction(1), Fraction(26, 100)), 0.26) is not None
