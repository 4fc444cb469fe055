"""The sieve by lattice reduction against brute force, planted nodes and its own guarantee."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from exactdp.engine.sieve import reduction
from exactdp.engine.sieve.reduction import nodes_by_reduction
from exactdp.errors import InvalidInputError, LatticeTooFineError

MANY = 10_000_000


def exact_penalty(k: int, turns: list[Fraction], strengths: list[float]) -> float:
    distances = (float(abs(k * u - round(k * u))) for u in turns)
    return math.fsum(s * (2 * math.pi * d) ** 2 for d, s in zip(distances, strengths, strict=True))


def penalties(last: int, turns: list[Fraction], strengths: list[float]) -> np.ndarray:
    """For k = 0, ..., last, each residue in exact integers where the denominators allow, else in doubles."""
    k = np.arange(last + 1)
    total = np.zeros(last + 1)
    for u, s in zip(turns, strengths, strict=True):
        numerator, denominator = (u % 1).as_integer_ratio()
        d = k * numerator % denominator / denominator if denominator < 1 << 20 else k * float(u % 1)
        total += s * (2 * math.pi * (d - np.rint(d))) ** 2
    return total


def check_against_brute_force(
    turns: list[Fraction], strengths: list[float], first: int, last: int, budget: float
) -> int:
    found = nodes_by_reduction(turns, strengths, first, last, budget, MANY)
    total = penalties(last, turns, strengths)
    k = np.arange(last + 1)
    must = set(k[(k >= first) & (total <= budget * (1 - 1e-6))].tolist())
    may = set(k[(k >= first) & (total <= budget * (1 + 1e-6))].tolist())
    assert must <= set(found) <= may
    assert found == sorted(set(found))
    assert all(type(node) is int for node in found)
    return len(found)


def random_turns(rng: np.random.Generator, kind: int, groups: int) -> list[Fraction]:
    """0 generic, 1 commensurate, 2 nearly so, 3 duplicated up to sign and whole turns, 4 log-uniform weights."""
    generic = [Fraction(int(rng.integers(1, 1 << 60)), 1 << 60) + int(rng.integers(-2, 3)) for _ in range(groups)]
    if kind == 0:
        return generic
    q = int(rng.integers(2, 700))
    commensurate = [Fraction(int(rng.integers(0, 2 * q)), q) for _ in range(groups)]
    if kind == 1:
        return commensurate
    if kind == 2:
        return [u + Fraction(int(rng.integers(-1000, 1000)), 10**9) for u in commensurate]
    if kind == 3:
        few = generic[: max(1, groups // 3)]
        return [few[i % len(few)] * (-1) ** i + i for i in range(groups)]
    return [Fraction(float(w)) / 40 for w in np.exp(rng.uniform(math.log(1e-4), 0, groups))]


@pytest.mark.parametrize("groups", range(1, 9))
@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("always_reduce", [True, False])
def test_finds_what_brute_force_finds(
    groups: int, kind: int, always_reduce: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without the way out of listing the whole range."""
    if always_reduce:
        monkeypatch.setattr(reduction._Search, "expected_work", lambda _, with_nodes=True: 0.0)
    rng = np.random.default_rng([groups, kind])
    found = 0
    for _ in range(12):
        turns = random_turns(rng, kind, groups)
        strengths = np.exp(rng.uniform(0, math.log(1e3) / groups**0.5, groups)).tolist()
        last = int(rng.integers(1, 4000))
        first = int(rng.integers(1, last + 1)) if rng.random() < 0.5 else 1
        found += check_against_brute_force(turns, strengths, first, last, float(rng.uniform(0.2, 30)))
    assert found > 0


@pytest.mark.parametrize("seed", range(6))
def test_finds_what_brute_force_finds_in_long_ranges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = 2 + seed
    turns = random_turns(rng, 4 * (seed % 2), groups)
    last = 400_000
    balanced = 12 / (4 * math.pi**2) * (last / 100) ** (2 / groups)
    strengths = (balanced * np.exp(rng.uniform(-1, 1, groups))).tolist()
    assert check_against_brute_force(turns, strengths, last // 32, last, 12.0) > 10


def test_small_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    turns = random_turns(rng, 0, 4)
    whole = nodes_by_reduction(turns, [3.0, 5.0, 9.0, 2.0], 10, 20_000, 20.0, MANY)
    monkeypatch.setattr(reduction, "_CHUNK", 7)
    assert nodes_by_reduction(turns, [3.0, 5.0, 9.0, 2.0], 10, 20_000, 20.0, MANY) == whole
    assert len(whole) > 100


def planted(seed: int, groups: int, node: int, by_chance: float) -> tuple[list[Fraction], list[float], float]:
    """Turns for which `node` is within budget by a relative 1e-10 only, with about `by_chance` others expected."""
    rng = np.random.default_rng([seed, groups])
    volume = math.pi ** (groups / 2) / math.gamma(groups / 2 + 1)
    strength = 10 / (4 * math.pi**2) * (node * volume / by_chance) ** (2 / groups)
    strengths = (strength * np.exp(rng.uniform(-0.1, 0.1, groups))).tolist()
    direction = rng.normal(size=groups)
    direction *= math.sqrt(10 / float(direction @ direction))
    offsets = [Fraction(float(x) / (2 * math.pi * math.sqrt(s))) for x, s in zip(direction, strengths, strict=True)]
    whole = [int(rng.integers(node // 10**4, node // 2)) for _ in range(groups)]
    turns = [(p + d) / node for p, d in zip(whole, offsets, strict=True)]
    return turns, strengths, exact_penalty(node, turns, strengths) * (1 + 1e-10)


@pytest.mark.parametrize("groups", [2, 3, 4, 6, 8, 12, 20, 33])
@pytest.mark.parametrize("node", [10**15 + 37, 2**53 + 1, 2**62 - 1])
def test_planted_nodes_are_found_in_huge_ranges(groups: int, node: int) -> None:
    for seed in range(2):
        turns, strengths, budget = planted(seed, groups, node, 10.0 if groups < 30 else 0.001)
        for first, last in ((node // 32, node), (node, node), (node // 5, min(4 * node, 2**62))):
            found = nodes_by_reduction(turns, strengths, first, last, budget, MANY)
            assert node in found
            assert all(exact_penalty(k, turns, strengths) <= budget * (1 + 1e-9) for k in found)


def test_planted_nodes_of_wide_designs_are_found() -> None:
    """Weights as in the engine: most of 33 groups stay outside the lattice and only filter."""
    rng = np.random.default_rng(3)
    node = 10**14 + 7
    weights = np.exp(rng.uniform(math.log(1e-4), 0, 33))
    turns = [Fraction(round(node * w / 40) + 0.01 * float(rng.uniform(-1, 1))) / node for w in weights]
    strengths = (rng.integers(2, 13, 33) / weights / 2).tolist()
    budget = exact_penalty(node, turns, strengths) + 1e-9
    assert node in nodes_by_reduction(turns, strengths, node // 16, 2 * node, budget, MANY)
    turns.append(Fraction(2 * node + 1, 2 * node))  # half a turn at the node: it is rejected
    assert node not in nodes_by_reduction(turns, [*strengths, 100.0], node // 16, 2 * node, budget, MANY)


def test_commensurate_strong_groups_make_the_lattice_take_more_groups() -> None:
    rng = np.random.default_rng(8)
    strong = [Fraction(int(j), 1009) for j in rng.integers(1, 504, 6)]
    weak = random_turns(rng, 0, 10)
    node = 1009 * 991_100_117
    weak = [Fraction(round(node * u)) / node + Fraction(1, 300 * node) for u in weak]
    strengths = [1e4] * 6 + [300.0] * 10
    found = nodes_by_reduction(strong + weak, strengths, node // 4, 2 * node, 6.0, MANY)
    assert node in found
    assert len(found) < 20


@pytest.mark.parametrize("groups", [1, 2, 3, 5, 8, 12])
def test_a_radius_smaller_by_one_percent_loses_nodes(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted node is the last of its range and on the edge of its budget: its vector is on the sphere itself."""
    node = 10**15 + 37
    turns, strengths, budget = planted(1, groups, node, 20.0)
    assert node in nodes_by_reduction(turns, strengths, node // 32, node, budget, MANY)
    search = reduction._search
    monkeypatch.setattr(reduction, "_search", lambda triangle, steps, limit: search(triangle, steps, 0.99 * limit))
    assert node not in nodes_by_reduction(turns, strengths, node // 32, node, budget, MANY)


def test_the_triangle_keeps_the_volume_of_the_lattice() -> None:
    turns, strengths, budget = planted(2, 6, 10**12 + 39, 10.0)
    groups = reduction._merged(turns, strengths)
    search = reduction._chosen(groups, 10**12 + 39, budget)
    assert search.provable
    assert np.all(np.diag(search.triangle) > 0)
    product = math.prod(np.diag(search.triangle))
    root, dimension = math.sqrt(budget), len(search.steps)
    volume = root / math.sqrt(dimension - 1) / (10**12 + 39) * math.prod(2 * math.pi * math.sqrt(s) for s in strengths)
    assert product == pytest.approx(volume, rel=1e-5)


def test_the_allowance_limits_the_search() -> None:
    turns, strengths = [Fraction(1, 7), Fraction(3, 1000)], [2.0, 3.0]
    count = len(nodes_by_reduction(turns, strengths, 1, 20_000, 5.0, MANY))
    with pytest.raises(LatticeTooFineError, match="more than 100 partial vectors or nodes"):
        nodes_by_reduction(turns, strengths, 1, 20_000, 5.0, 100)
    with pytest.raises(LatticeTooFineError):
        nodes_by_reduction(turns, strengths, 1, 20_000, 5.0, count - 1)
    with pytest.raises(LatticeTooFineError):
        nodes_by_reduction(turns, strengths, 1, 2**62, 5.0, 10**7)
    with pytest.raises(LatticeTooFineError):
        nodes_by_reduction([Fraction(0)], [1.0], 1, 1000, 5.0, 999)


def test_the_window_around_zero_is_not_listed() -> None:
    """A window of 10^9 nodes below `first` costs nothing."""
    turns, strengths = [Fraction(1, 10**13), Fraction(1, 10**13 + 61)], [1e6, 1e6]
    assert nodes_by_reduction(turns, strengths, 10**11, 10**12, 30.0, 1000) == []


def test_trivial_cases() -> None:
    third = Fraction(1, 3)
    assert nodes_by_reduction([third], [1.0], 1, 100, 0.0, 100) == []
    assert nodes_by_reduction([third], [1.0], 1, 100, -1.0, 100) == []
    assert nodes_by_reduction([third], [1.0], 5, 4, 1.0, 100) == []
    assert nodes_by_reduction([Fraction(0), Fraction(-4)], [1.0, 2.0], 3, 6, 1.0, 100) == [3, 4, 5, 6]
    assert nodes_by_reduction([third, -third], [1.0, 1.0], 1, 10, 1e-12, 100) == [3, 6, 9]
    assert nodes_by_reduction([Fraction(1, 2)], [1.0], 1, 5, 1e9, 100) == [1, 2, 3, 4, 5]
    assert nodes_by_reduction([Fraction(1, 2**61)], [1e30], 2**61 - 3, 2**62, 1e-9, 100) == [2**61, 2**62]
    assert nodes_by_reduction([third], [1.0], 1, 100, -math.inf, 100) == []
    for budget in (math.inf, math.nan):
        with pytest.raises(InvalidInputError):
            nodes_by_reduction([third], [1.0], 1, 5, budget, 100)
    for first, last, strength in ((0, 5, 1.0), (1, 2**62 + 1, 1.0), (1, 5, 0.0), (1, 5, math.nan)):
        with pytest.raises(InvalidInputError):
            nodes_by_reduction([third], [strength], first, last, 1.0, 100)


def test_the_expected_number_is_about_right_for_random_turns() -> None:
    turns = random_turns(np.random.default_rng(4), 0, 5)
    strengths = [50.0, 60.0, 70.0, 80.0, 90.0]
    found = len(nodes_by_reduction(turns, strengths, 10**5, 10**7, 10.0, MANY))
    shares = reduction._log_shares(reduction._merged(turns, strengths), 10**7, 10.0)
    assert found == pytest.approx((10**7 - 10**5 + 1) * math.exp(min(shares)), rel=0.1)
