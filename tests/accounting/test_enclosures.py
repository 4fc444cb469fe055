"""Balls against float64, against brute force and against themselves on another contour."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import flint
import joblib
import pytest

import exactdp
import oracle
from exactdp import Composition, DiscreteGaussian, reference
from exactdp.accounting import enclosures
from exactdp.balls import ball, precision
from exactdp.engine.lattice.accuracy import ACCURACY
from exactdp.engine.lattice.contours import Contours
from strategies import Key, composition_of, random_small

RELEASE = exactdp.census.release("dhc-persons-us")


def _random_composition(rng: random.Random) -> Composition:
    """Sizes 1 to 200, sigma2 from 1/10 to 10^4: one to four distinct values that are fractions base / a of one base."""
    size = rng.choice([1, 2, 3, 5, 8, 20, 60, 200])
    distinct = rng.randint(1, min(size, 4))
    keys: set[Key] = set()
    base = Fraction(round(10 ** rng.uniform(-0.5, 4), 1)).limit_denominator(10)
    while len(keys) < distinct:
        s = base / rng.choice([1, 2, 3, 5, 7, 8, 11, 13, 20, 30, 60])
        keys.add((max(s, Fraction(1, 10)), rng.choice([1, 1, 2])))
    ordered = sorted(keys)
    counts: dict[Key, int] = {}
    for i in range(size):
        key = ordered[i] if i < distinct else rng.choice(ordered)
        counts[key] = counts.get(key, 0) + 1
    return composition_of(counts)


def _epsilons(rng: random.Random, composition: Composition) -> list[Fraction]:
    """Near the bulk, in the tail and deep in it."""
    mu = composition.mu
    return [
        composition.rho + Fraction(round(mu * z * 1000), 1000)
        for z in (rng.uniform(-3, 1), rng.uniform(1, 8), rng.uniform(8, 30))
    ]


def _tie(composition: Composition, epsilons: Iterable[Fraction], digits: int = 15) -> int:
    """The enclosures overlap, and separately are narrow; returns how many were compared."""
    compared = 0
    for epsilon in epsilons:
        low, high = composition.delta_bounds(epsilon)
        exact_low, exact_high = composition.delta_bounds(epsilon, digits=digits)
        assert exact_high - exact_low < exact_high * Decimal(10) ** -digits
        assert Decimal(low) <= exact_high
        assert exact_low <= Decimal(high)
        if low > 1e-290:
            assert high - low < ACCURACY * high, (composition, epsilon)
        compared += 1
    return compared


def _tie_random(seeds: Iterable[int]) -> tuple[int, int]:
    """Compositions compared, and those left out because their lattice is too fine for the sieve."""
    done = left_out = 0
    for seed in seeds:
        rng = random.Random(seed)
        composition = _random_composition(rng)
        try:
            _tie(composition, _epsilons(rng, composition))
        except exactdp.LatticeTooFineError:
            left_out += 1
        else:
            done += 1
    return done, left_out


def test_float64_and_balls_tie() -> None:
    done, left_out = _tie_random(range(150))
    assert done > 140, left_out


def test_float64_and_balls_tie_on_census_pairs() -> None:
    for pair in RELEASE.pairs[::50]:
        _tie(RELEASE.pair(*pair), [Fraction(1, 5), Fraction("26.34"), Fraction(70)])


@pytest.mark.soak
def test_float64_and_balls_tie_on_a_hundred_thousand_compositions() -> None:
    parts = joblib.Parallel(n_jobs=-1)(
        joblib.delayed(_tie_random)(range(start, start + 250)) for start in range(1000, 101_000, 250)
    )
    done, left_out = (sum(column) for column in zip(*parts, strict=True))
    print(f"\n{done} random compositions tied, {left_out} left out as too fine")
    assert done + left_out == 100_000
    assert left_out < 1000


@pytest.mark.soak
def test_float64_and_balls_tie_on_all_census_pairs() -> None:
    compared = sum(
        _tie(RELEASE.pair(*pair), [Fraction(1, 5), Fraction("26.34"), Fraction(70)]) for pair in RELEASE.pairs
    )
    print(f"\n{compared} values of {len(RELEASE.pairs)} pairs tied")


def test_epsilon_between_losses_that_are_far_apart() -> None:
    """delta is flat there to hundreds of digits: no slope leads to the loss at which it falls."""
    composition = 2 * DiscreteGaussian("0.001") + DiscreteGaussian("0.01")
    low, high = composition.epsilon_bounds("1e-300")
    assert low < 2150 <= high  # 1,500 + 500 + 150: where delta falls
    assert high - low < 1e-11
    for digits in (5, 25):
        exact_low, exact_high = composition.epsilon_bounds("1e-300", digits=digits)
        assert exact_low < 2150 <= exact_high < exact_low + Decimal(2150) * Decimal(10) ** -digits
    assert composition.delta_bounds("2149.999").lower > 1e-300 > composition.delta_bounds(2150).upper


def test_an_enclosure_too_wide_for_its_promise_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where terms cancel, the working digits are not the result's: here two fewer. The promise is kept all the same."""
    exact = enclosures._delta_ball

    def cancelled(contours: Contours, epsilon: Fraction, working: int) -> flint.arb:
        value = exact(contours, epsilon, working)
        with precision(1000):
            return value + value * flint.arb(0, flint.arb(10) ** (2 - working))

    monkeypatch.setattr(enclosures, "_delta_ball", cancelled)
    for digits in (5, 17, 50):
        low, high = (10 * DiscreteGaussian(3)).delta_bounds(2, digits=digits)
        assert high - low < high * Decimal(10) ** -digits


@pytest.mark.parametrize("digits", [5, 17, 50, 110])
def test_digits_against_brute_force(digits: int) -> None:
    rng = random.Random(digits)
    for _ in range(12):
        mechanisms = random_small(rng)
        if oracle.lattice_size(mechanisms) > 6000:
            continue
        brute = oracle.brute(mechanisms)
        composition = composition_of(mechanisms)
        for epsilon in (brute.spread / 2, Fraction(1, 3), -Fraction(2)):
            value = brute.delta(epsilon)
            low, high = composition.delta_bounds(epsilon, digits=digits)
            assert Fraction(low) <= value + oracle.ERROR
            assert value - oracle.ERROR <= Fraction(high)
            assert high - low < high * Decimal(10) ** -digits
        low, high = composition.beta_bounds("0.05", digits=digits)
        value = brute.beta(Fraction(1, 20))
        assert Fraction(low) <= value + oracle.ERROR
        assert value - oracle.ERROR <= Fraction(high)
        assert high - low <= high * Decimal(10) ** -digits


@pytest.mark.parametrize("digits", [5, 30, 100])
@pytest.mark.parametrize("delta", ["1e-10", "1e-300", "0.3", "0.9", "0.999999"])
def test_epsilon_with_digits(delta: str, digits: int) -> None:
    for composition in (10 * DiscreteGaussian(1), RELEASE.pair(13, 13)):
        low, high = composition.epsilon_bounds(delta, digits=digits)
        assert abs(high - low) < abs(high) * Decimal(10) ** -digits
        assert composition.delta_bounds(high, digits=digits + 5).upper <= Decimal(delta)
        assert composition.delta_bounds(low, digits=digits + 5).lower >= Decimal(delta)
        floats = composition.epsilon_bounds(delta)
        assert Decimal(floats.lower) <= high
        assert low <= Decimal(floats.upper)


def test_corners_with_digits() -> None:
    c = 10 * DiscreteGaussian(1)
    assert c.epsilon_bounds(0, digits=9).lower == Decimal("Infinity")
    assert c.epsilon_bounds(1, digits=9).lower == Decimal("-Infinity")
    assert c.beta_bounds(1, digits=9) == (0, 0)
    assert c.beta_bounds(0, digits=9) == (1, 1)
    assert c.delta_bounds(math.inf, digits=9) == (0, 0)
    array = c.delta_bounds([[1, 2]], digits=9)
    assert array.lower.shape == (1, 2)
    assert array.lower[0, 1] == c.delta_bounds(2, digits=9).lower


def test_thousand_digits() -> None:
    low, high = (3 * DiscreteGaussian(1)).delta_bounds("5/2", digits=1000)
    assert high - low < high * Decimal(10) ** -1000
    short = (3 * DiscreteGaussian(1)).delta_bounds("5/2", digits=60)
    assert short.lower <= low <= high <= short.upper


def test_deep_tail_of_the_proxy_pair() -> None:
    """Two contours and the paper's method agree on these digits (docs/theory/reference.md)."""
    low, high = RELEASE.pair(13, 13).delta_bounds(100, digits=40)
    assert str(low).startswith("2.953397200635556371350098822358883956789")
    assert str(high).startswith("2.953397200635556371350098822358883956789")


def test_precision_never_leaks() -> None:
    before = flint.ctx.prec
    expected = (2 * DiscreteGaussian(3)).delta_bounds(1, digits=25)
    results: list[object] = []

    def work(digits: int) -> None:
        results.append((digits, (2 * DiscreteGaussian(3)).delta_bounds(1, digits=digits)))

    threads = [threading.Thread(target=work, args=(d,)) for d in (25, 200, 25, 60, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert flint.ctx.prec == before
    assert [r for d, r in results if d == 25] == [expected] * 3  # type: ignore[misc]
    with pytest.raises(exactdp.ExactDPError):
        (DiscreteGaussian(sigma=3.3) + DiscreteGaussian(1)).delta_bounds(1, digits=20)
    assert flint.ctx.prec == before


def _agrees_with_the_published_method(pair: tuple[int, int], tolerance: str = "1e-25") -> None:
    """delta(5) and delta(10) by the paper's algorithm, at its own absolute tolerance, against the engine's 30 digits."""
    composition = RELEASE.pair(*pair)
    plan = reference.make_reference_plan(composition.mechanisms, tolerance)
    for epsilon in (5, 10):
        enclosure = reference.delta(plan, epsilon)
        low, high = composition.delta_bounds(epsilon, digits=30)
        allowed = Fraction(tolerance) * Fraction(math.exp(epsilon) + 2)
        assert abs(Fraction(float(enclosure.mid())) - Fraction(low)) < allowed + Fraction(low) / 10**15
        with precision(200):
            assert enclosure.overlaps(ball(Fraction(low)).union(ball(Fraction(high))))
            assert Fraction(float(enclosure.rad())) <= allowed


def _cheapest_pairs(count: int) -> list[tuple[int, int]]:
    costs = {pair: reference.estimated_cost(RELEASE.pair(*pair).mechanisms, "1e-25") for pair in RELEASE.pairs}
    return sorted(RELEASE.pairs, key=lambda pair: costs[pair])[:count]


def test_published_method_agrees_on_a_few_pairs() -> None:
    for pair in ((13, 13), (2, 38), (8, 17)):
        _agrees_with_the_published_method(pair)


@pytest.mark.soak
def test_published_method_agrees_on_many_pairs() -> None:
    pairs = _cheapest_pairs(60)
    for pair in pairs:
        _agrees_with_the_published_method(pair)
    print(f"\nthe published method agrees on {len(pairs)} pairs")
