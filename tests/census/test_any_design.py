"""Designs of all kinds, small enough for brute force: every number of a release against a list of all values of all losses.

What the list says shares no code with the package (release_oracle.py): budgets become noise, levels are bypassed and losses are
composed there once more, from their definitions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest

from exactdp.accounting import shared_pairs
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.pairs import Pairs
from exactdp.accounting.separate_pairs import Question, SeparatePairs
from exactdp.census import pair_results
from exactdp.census.cell_noise import CellNoise
from exactdp.census.grids import Grids
from exactdp.census.overall import Overall
from exactdp.census.pair_results import PairResult, account_pairs, make_overall, overall_of, stated_side
from exactdp.census.releases import Release
from exactdp.engine.family.line_contours import ROUGH
from release_oracle import ERROR, Listed, Mechanism, TooManyValuesError, beta, listed, number

NARROW = 1e-8
QUICK = (0, 1, 3, 2, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17)
SOAKED = 300
LEVELS = ("Nation", "State", "County", "Block")


def seeds(quick: tuple[int, ...]) -> list[object]:
    """Those that judge every change, and all the others for a soak."""
    return [pytest.param(seed, marks=() if seed in quick else pytest.mark.soak) for seed in range(SOAKED)]


@dataclass(frozen=True)
class Case:
    """A release, what is asked of it, and the list of each pair's losses."""

    release: Release
    truth: tuple[Listed, ...]
    grids: Grids


def _root_up(value: Fraction) -> Fraction:
    """The root where it is a fraction, otherwise the next number of 15 digits above it."""
    p, q = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if p * p == value.numerator and q * q == value.denominator:
        return Fraction(p, q)
    scale = Fraction(1)
    while value * scale**2 < 10**28:
        scale *= 10
    while value * scale**2 >= 10**30:
        scale /= 10
    whole = math.isqrt(math.floor(value * scale**2))
    return (whole + 1) / scale


def _path(release: Release, bypassed: tuple[str, ...]) -> list[Mechanism]:
    """A path's mechanisms: the budget of a bypassed level goes to the one above, in proportion."""
    budgets: dict[str, Fraction] = {}
    above = ""
    for level, queries in release.table.items():
        own = sum(queries.values())
        if level in bypassed:
            budgets[above] += own
        else:
            above, budgets[level] = level, own
    found = []
    for level, total in budgets.items():
        queries = release.table[level]
        for query, share in queries.items():
            rho = share * total / sum(queries.values())
            noise = release.noise.get((level, query), CellNoise())
            laplace = noise.kind == "discrete laplace"
            parameter = _root_up(1 / rho) if laplace else 1 / rho
            found.append(("laplace" if laplace else "gaussian", parameter, noise.sensitivity, noise.cells))
    return found


def _pair(release: Release, pair: tuple[int, int]) -> tuple[Mechanism, ...]:
    """The mechanisms that tell neighbours apart, equal ones counted."""
    counts: dict[tuple[str, Fraction, int], int] = {}
    for number_of_path in pair if release.relation == "replace" else pair[:1]:
        for kind, parameter, sensitivity, count in _path(release, release.bypassed[number_of_path]):
            key = kind, parameter, sensitivity
            counts[key] = counts.get(key, 0) + count
    return tuple(sorted((*key, count) for key, count in counts.items()))


def _draw(rng: random.Random) -> Release:
    """A table of two to four levels with budgets that have nothing in common, and noise of any kind."""
    levels = LEVELS[: rng.choice([2, 2, 3, 3, 4])]
    relation = rng.choice(["replace", "replace", "add/remove"])
    centre = math.exp(rng.uniform(math.log(0.05), math.log(50)))
    table: dict[str, dict[str, Fraction]] = {}
    noise: dict[tuple[str, str], CellNoise] = {}
    for level in levels:
        for query in ("age", "sex")[: rng.choice([1, 1, 2])]:
            sigma2 = min(max(centre * math.exp(rng.uniform(-1, 1)), 0.05), 50.0)
            denominator = rng.choice([7, 97, 1009, 99991])
            rho = Fraction(max(round(denominator / sigma2), 1), denominator)
            table.setdefault(level, {})[query] = rho
            kind = rng.random()
            if kind < 0.15:
                noise[level, query] = CellNoise("discrete laplace", rng.choice([1, 1, 2]), rng.choice([1, 1, 2]))
            elif kind < 0.4:
                noise[level, query] = CellNoise(sensitivity=rng.choice([1, 2, 3]), cells=rng.choice([1, 1, 2]))
    sets = [tuple(level for i, level in enumerate(levels[1:]) if bits >> i & 1) for bits in range(1 << len(levels) - 1)]
    paths = rng.sample(sets, rng.randint(2, min(6, len(sets))))
    return Release("drawn", "Drawn", "", table, {i + 1: p for i, p in enumerate(paths)}, relation, noise)


@cache
def case_of(seed: int) -> Case:
    """The first release drawn from the seed whose losses can be listed, with Gaussian noise on every path."""
    rng = random.Random(seed)
    while True:
        release = _draw(rng)
        try:
            truth = tuple(listed(_pair(release, pair)) for pair in release.pairs)
        except TooManyValuesError:
            continue
        largest = max(
            sum(float(n * d * d / (s if kind == "gaussian" else s * s)) for kind, s, d, n in _pair(release, pair))
            for pair in release.pairs
        )
        mean, deviation = largest / 2, math.sqrt(largest)
        if mean + 9 * deviation > 150:
            continue
        epsilons = [Fraction(0), *(Fraction(round(mean + z * deviation, 3)) for z in (-2.0, 1.3, rng.uniform(2, 6)))]
        deltas = (Fraction(1, 10 ** rng.randint(3, 15)), Fraction(rng.randint(1, 9), 10))
        alphas = (Fraction(rng.randint(1, 99), 100), Fraction(1, 10 ** rng.randint(3, 12)))
        return Case(release, truth, Grids(tuple(epsilons), deltas, alphas))


def _inside(low: float, high: float, exact: tuple[mpmath.mpf, mpmath.mpf]) -> bool:
    return bool(mpmath.mpf(low) <= exact[1] + 4 * ERROR and exact[0] - 4 * ERROR <= mpmath.mpf(high))


def _check_delta(bounds: tuple[float, float], truth: tuple[Listed, ...], epsilon: Fraction) -> None:
    with mpmath.workdps(60):
        exact = max(one.delta(epsilon) for one in truth)
        assert _inside(*bounds, (exact, exact)), (epsilon, bounds, exact)
        assert bounds[1] - bounds[0] <= NARROW * exact + 4 * ERROR, (epsilon, bounds, exact)


def _check_epsilon(bounds: tuple[float, float], truth: tuple[Listed, ...], delta: Fraction) -> None:
    with mpmath.workdps(60):
        low, high = (max(one.delta(Fraction(end)) for one in truth) for end in bounds)
        assert low >= number(delta) - 4 * ERROR, (delta, bounds, low)
        assert high <= number(delta) + 4 * ERROR, (delta, bounds, high)
        assert bounds[1] - bounds[0] <= NARROW * (1 + abs(bounds[1])), (delta, bounds)


def _check_beta(bounds: tuple[float, float], truth: tuple[Listed, ...], alpha: Fraction) -> None:
    with mpmath.workdps(60):
        exact = beta(list(truth), alpha)
        assert exact[1] - exact[0] <= 1e-15 * exact[0] + 4 * ERROR
        assert _inside(*bounds, exact), (alpha, bounds, exact)
        assert bounds[1] - bounds[0] <= NARROW * exact[1] + 4 * ERROR, (alpha, bounds, exact)


def _some(case: Case, seed: int, most: int) -> list[int]:
    """A few pairs of a release."""
    return sorted(random.Random(seed).sample(range(len(case.truth)), min(len(case.truth), most)))


def _families(release: Release) -> LinePairs | None:
    """All pairs on the line, however few they are; None where one of them has a loss with an end."""
    family = pair_results._line_family(release)
    return LinePairs(family) if family.can_share else None


def _check_shared(pairs: LinePairs, case: Case, narrow: float) -> float:
    """Every pair at every epsilon and its mirror image on shared contours: what share of the bounds is narrow."""
    asked = [(p, e) for p in range(len(case.truth)) for size in case.grids.epsilons for e in {size, -size}]
    point = pairs.shared([Question(p, e) for p, e in asked])
    bounds = list(zip(point.delta.lower_floats().tolist(), point.delta.upper_floats().tolist(), strict=True))
    count = 0
    with mpmath.workdps(60):
        for (p, e), (low, high) in zip(asked, bounds, strict=True):
            exact = case.truth[p].delta(e)
            assert _inside(low, high, (exact, exact)), (p, e, low, high, exact)
            count += high - low <= narrow * exact
    return count / len(asked)


@pytest.mark.parametrize("seed", seeds(QUICK))
def test_delta_and_epsilon_hold_what_brute_force_finds(seed: int) -> None:
    """By families on the line, however few the pairs are; and for some pairs by what the release itself is asked."""
    case = case_of(seed)
    release, grids = case.release, replace(case.grids, alphas=())
    overall, pairs = make_overall(release), _families(release)
    if pairs is not None:
        # so few mechanisms need more nodes than fine contours may have
        share = _check_shared(LinePairs(replace(pairs.family, widths=ROUGH[1])), case, 1e-3)
        assert share > 0.5 or seed not in QUICK
        overall = Overall(pairs)
    for bounds, e in zip(overall.deltas(grids.epsilons), grids.epsilons, strict=True):
        _check_delta(bounds, case.truth, e)
    for bounds, d in zip(overall.epsilons(grids.deltas), grids.deltas, strict=True):
        _check_epsilon(bounds, case.truth, d)
    chosen = _some(case, seed, 4)
    for p, result in zip(chosen, account_pairs(release, [release.pairs[p] for p in chosen], grids), strict=True):
        for bounds, e in zip(result.delta, grids.epsilons, strict=True):
            _check_delta(bounds, (case.truth[p],), e)
        for bounds, d in zip(result.epsilon, grids.deltas, strict=True):
            _check_epsilon(bounds, (case.truth[p],), d)


@pytest.mark.parametrize("seed", seeds(QUICK[:3]))
def test_beta_holds_what_brute_force_finds(seed: int) -> None:
    case = case_of(seed)
    alphas, pairs = case.grids.alphas, _families(case.release)
    overall = make_overall(case.release) if pairs is None else Overall(pairs)
    for bounds, a in zip(overall.betas(alphas), alphas, strict=True):
        _check_beta(bounds, case.truth, a)
    chosen = _some(case, seed, 2)
    asked = [case.release.pairs[p] for p in chosen]
    for p, result in zip(chosen, account_pairs(case.release, asked, Grids(alphas=alphas[:1])), strict=True):
        _check_beta(result.beta[0], (case.truth[p],), alphas[0])


FINE = (1e-9, 2e5), (1e-8, 5e5)


@cache
def many_cells(seed: int) -> Case:
    """Two levels, each with a query of several cells: few values of the loss, and few nodes of its Fourier sum that matter."""
    rng = random.Random(seed)
    while True:
        sizes = [math.exp(rng.uniform(math.log(1.5), math.log(8))) for _ in range(2)]
        table = {level: {"age": Fraction(round(9973 / s), 9973)} for level, s in zip(LEVELS[:2], sizes, strict=True)}
        noise = {
            (level, "age"): CellNoise(sensitivity=rng.choice([1, 1, 2]), cells=rng.randint(3, 6)) for level in table
        }
        release = Release("cells", "Cells", "", table, {1: (), 2: ("State",)}, "replace", noise)
        try:
            truth = tuple(listed(_pair(release, pair), 40_000) for pair in release.pairs)
        except TooManyValuesError:
            continue
        spread = max(sum(float(n * d * d / s) for _, s, d, n in _pair(release, pair)) for pair in release.pairs)
        if spread > 100:
            continue
        epsilons = [Fraction(round(spread / 2 + z * math.sqrt(spread), 3)) for z in (-1, 0.3, rng.uniform(2, 5))]
        alphas = Fraction(rng.randint(1, 99), 100), Fraction(1, 10 ** rng.randint(3, 9))
        return Case(release, truth, Grids(tuple(epsilons), (Fraction(1, 10 ** rng.randint(3, 9)),), alphas))


@pytest.mark.parametrize("seed", seeds((5,)))
def test_fine_contours_alone_hold_what_brute_force_finds(seed: int) -> None:
    """Delta and beta of every pair from the family's contours, without anything that is asked one by one."""
    case = many_cells(seed)
    family = replace(pair_results._line_family(case.release), widths=FINE)
    pairs, everyone = LinePairs(family), range(len(case.truth))
    assert _check_shared(pairs, case, 1e-7) > 0.5
    found = []
    for p in everyone:
        for a in case.grids.alphas:
            low, high = pairs._beta_alone_on_shared(Question(p, a))
            exact = beta([case.truth[p]], a)
            assert _inside(low, high, exact), (p, a, low, high, exact)
            found.append(high - low <= 1e-4 * float(exact[1]))
    assert any(found)


@pytest.fixture
def on_the_line(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However few the pairs, they are asked together, and a grid is one of their methods."""
    for module in (shared_pairs, pair_results):
        monkeypatch.setattr(module, "FEW", 0)
    overall_of.cache_clear()
    yield
    overall_of.cache_clear()


@pytest.mark.usefixtures("on_the_line")
@pytest.mark.parametrize("seed", seeds(QUICK[:4]))
def test_a_stated_guarantee_is_judged_as_brute_force_judges_it(seed: int) -> None:
    """Deltas a little off the exact one by little: by 1e-4 rough contours tell, by 1e-7 they leave it to the engine."""
    case = case_of(seed)
    e = case.grids.epsilons[2]
    with mpmath.workdps(60):
        exact = max(one.delta(e) for one in case.truth)
        if exact < 2.0**-80:
            return
        for away in (-0.3, -1e-4, -1e-7, 1e-7, 1e-4, 0.3):
            delta = Fraction(int(mpmath.ldexp(exact * (1 + mpmath.mpf(away)), 250)), 1 << 250)
            assert stated_side(case.release, e, delta) == (-1 if away > 0 else 1), away


def _unrelated(relation: str = "replace") -> Release:
    """Three levels, four paths, no common lattice; one query with Laplace noise, one with several cells."""
    primes = iter((97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151))
    table = {
        level: {query: Fraction(5 + i, next(primes)) for i, query in enumerate(("age", "sex", "race", "tenure"))}
        for level in LEVELS[:3]
    }
    noise = {("Nation", "sex"): CellNoise("discrete laplace"), ("State", "age"): CellNoise(sensitivity=2, cells=3)}
    paths = {1: (), 2: ("State",), 3: ("County",), 7: ("State", "County")}
    return Release("unrelated", "Unrelated", "", table, paths, relation, noise)


GRIDS = Grids((Fraction(0), Fraction(7, 2), Fraction(-3, 4), Fraction(9)), (Fraction(1, 10**6), Fraction(1, 3)))


def _engine_of_its_own(release: Release, pairs: list[tuple[int, int]], grids: Grids) -> list[PairResult]:
    overall_of.cache_clear()
    return account_pairs(release, pairs, grids)


@pytest.mark.usefixtures("on_the_line")
@pytest.mark.parametrize("relation", ["replace", "add/remove"])
def test_a_pair_s_numbers_do_not_depend_on_what_is_asked_with_it_or_before(relation: str) -> None:
    """Bit for bit: all pairs at once, in two parts in the other order, one alone, each time with an engine of its own."""
    release = _unrelated(relation)
    pairs = list(release.pairs)
    whole = _engine_of_its_own(release, pairs, GRIDS)
    assert isinstance(overall_of(release).pairs, LinePairs)
    half = len(pairs) // 2
    later = _engine_of_its_own(release, pairs[half:], GRIDS)
    assert [*account_pairs(release, pairs[:half], GRIDS), *later] == whole
    last = _engine_of_its_own(release, pairs[-1:], replace(GRIDS, epsilons=GRIDS.epsilons[::-1]))[0]
    assert (last.delta[::-1], last.epsilon) == (whole[-1].delta, whole[-1].epsilon)


@pytest.mark.usefixtures("on_the_line")
def test_a_pair_s_beta_does_not_depend_on_what_is_asked_with_it() -> None:
    release, grids = _unrelated("add/remove"), Grids(alphas=(Fraction(1, 50),))
    whole = _engine_of_its_own(release, [(1, 0), (7, 0)], grids)
    assert _engine_of_its_own(release, [(7, 0)], grids) == whole[1:]


@pytest.mark.usefixtures("on_the_line")
def test_overall_numbers_do_not_depend_on_what_is_asked_with_them_or_before() -> None:
    release = _unrelated("add/remove")
    together, alone = make_overall(release), make_overall(release)
    assert isinstance(together.pairs, LinePairs)
    deltas, epsilons = together.deltas(GRIDS.epsilons), together.epsilons(GRIDS.deltas)
    assert [alone.epsilon(d) for d in reversed(GRIDS.deltas)] == epsilons[::-1]
    assert [alone.delta(e) for e in GRIDS.epsilons] == deltas
    assert make_overall(release).delta(GRIDS.epsilons[1]) == deltas[1]
    assert together.deltas([*GRIDS.epsilons, Fraction(1)])[:-1] == deltas


@pytest.mark.usefixtures("on_the_line")
def test_pairs_without_a_lattice_are_asked_together() -> None:
    """With the same result as one by one."""
    release = _unrelated()
    assert len(release.pairs) <= 12
    engine = make_overall(release).pairs
    assert isinstance(engine, LinePairs)
    together = engine.table(range(3), GRIDS.epsilons)
    alone = SeparatePairs(tuple(release.pair(*pair).mechanisms for pair in release.pairs[:3])).table(
        range(3), GRIDS.epsilons
    )
    assert np.all(together.delta.log_lower() <= alone.delta.log_upper())
    assert np.all(alone.delta.log_lower() <= together.delta.log_upper())


@pytest.mark.soak
def test_beta_of_a_pair_whose_own_lattice_is_too_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared contours on the lattice (as of many pairs) are wide there, and the pair's own are refused: the dual answers."""
    case = case_of(18)
    monkeypatch.setattr(pair_results, "_is_fine", lambda family: False)
    assert isinstance(make_overall(case.release).pairs, Pairs)
    result = account_pairs(case.release, [(1, 2)], Grids(alphas=case.grids.alphas[:1]))[0]
    _check_beta(result.beta[0], (case.truth[case.release.pairs.index((1, 2))],), case.grids.alphas[0])
