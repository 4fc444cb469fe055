"""Other neighbours and other noise: what a release says is what the plain compositions say, pair by pair."""

from __future__ import annotations

import hashlib
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import exactdp
from exactdp import Composition, DiscreteGaussian, DiscreteLaplace, Gaussian, InvalidInputError, census
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.pairs import Pairs, PairsOnOwnLattices
from exactdp.census.cell_noise import CellNoise
from exactdp.census.grids import Grids
from exactdp.census.journal import Journal
from exactdp.census.overall import SeparateOverall
from exactdp.census.pair_results import make_overall, overall_of, slices
from exactdp.census.releases import Allocation, Release
from exactdp.census.savings import calibrate_release, level_pair
from exactdp.census.study import run_study
from exactdp.census.sweeps import SweptDesign, sweep
from exactdp.census.workers import make_runner
from exactdp.guarantees.calibration import target
from small_release import COARSE

USUAL = Release(
    "survey",
    "Survey",
    "",
    {
        "Nation": {"age": Fraction(1, 2), "sex": Fraction(1, 4)},
        "Region": {"age": Fraction(1, 2)},
        "District": {"age": Fraction(1, 3)},
    },
    {1: (), 2: ("District",), 5: ("Region", "District")},
)
LAPLACE = {(level, query): CellNoise("discrete laplace") for level, own in USUAL.table.items() for query in own}
DESIGNS = {
    "add/remove": replace(USUAL, relation="add/remove"),
    "one path": replace(USUAL, relation="add/remove", bypassed={1: ()}),
    "sensitivity": replace(USUAL, noise={("Nation", "age"): CellNoise(sensitivity=3, cells=2)}),
    "one Laplace": replace(USUAL, noise={("Nation", "sex"): CellNoise("discrete laplace", 2, 3)}),
    "all Laplace": replace(USUAL, relation="add/remove", noise=LAPLACE),
    "continuous": replace(USUAL, noise={("District", "age"): CellNoise("gaussian", 2)}),
}
TOLERANCE = 1e-9

each_design = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)


def compositions(design: Release) -> list[Composition]:
    return [design.pair(*pair) for pair in design.pairs]


def test_what_is_usual_stays_as_it_was() -> None:
    """Fingerprints and texts as earlier versions gave them."""
    dhc = census.release("dhc-persons-us")
    assert dhc.is_usual
    assert dhc.fingerprint[:16] == "a01261fecc8b45ae"
    assert hashlib.sha256(exactdp.to_json(USUAL).encode()).hexdigest()[:16] == "17517a030aa9db21"
    assert dhc.rho == dhc.budget == Fraction(24811, 5000)
    assert dhc == replace(dhc, relation="replace", noise={("US", "detailed"): CellNoise()})
    assert dhc.pairs[:2] == ((1, 1), (1, 2))
    assert dhc.proxy_pair == (13, 13)


@each_design
def test_unusual_designs_are_values(design: Release) -> None:
    again = pickle.loads(pickle.dumps(design))
    assert again == design
    assert (again.relation, again.noise) == (design.relation, design.noise)
    assert hash(again) == hash(design)
    assert design != USUAL
    assert design.fingerprint != USUAL.fingerprint
    assert len({d.fingerprint for d in DESIGNS.values()}) == len(DESIGNS)
    assert replace(design, title="other").noise == design.noise
    assert exactdp.from_json(exactdp.to_json(design)) == design
    path = design.allocations[design.full_path]
    assert pickle.loads(pickle.dumps(path)).mechanisms == path.mechanisms
    assert exactdp.from_json(exactdp.to_json(path)) == path


def test_mechanisms_follow_from_budget_and_noise() -> None:
    path = Allocation(
        1,
        (),
        {"a": {"x": Fraction(1, 9), "y": Fraction(1, 2), "z": Fraction(1, 2), "w": Fraction(1, 2)}},
        {
            ("a", "x"): CellNoise("discrete laplace", 2, 3),
            ("a", "y"): CellNoise("gaussian", 5),
            ("a", "z"): CellNoise(cells=4),
        },
    )
    assert path.mechanisms == {DiscreteLaplace(3, 2): 3, Gaussian(2, 5): 1, DiscreteGaussian(2): 5}
    assert path.mechanism("a", "x") == DiscreteLaplace(3, 2)
    assert path.mechanism("a", "w") == DiscreteGaussian(2)
    with pytest.raises(InvalidInputError, match="no query q in level a"):
        path.mechanism("a", "q")


def test_a_laplace_scale_is_never_less_than_the_budget_says() -> None:
    for rho in (Fraction(1, 2), Fraction(1, 3), Fraction(4, 9), Fraction(10**6, 7)):
        noise = CellNoise("discrete laplace").mechanism(rho)
        assert isinstance(noise, DiscreteLaplace)
        assert 1 / rho <= noise.scale**2 <= (1 + Fraction(3, 10**14)) / rho
    assert CellNoise("discrete laplace").mechanism(Fraction(4, 9)) == DiscreteLaplace("3/2")


def test_neighbours() -> None:
    alone = DESIGNS["add/remove"]
    assert alone.pairs == ((1, 0), (2, 0), (5, 0))
    assert alone.proxy_pair == (1, 0)
    assert alone.pair(2, 0) == Composition(USUAL.allocations[2].mechanisms)
    assert 2 * alone.proxy == USUAL.proxy
    with pytest.raises(InvalidInputError, match=r"ask for the pair \(1, 0\)\. Found \(1, 2\)\."):
        alone.pair(1, 2)
    with pytest.raises(InvalidInputError, match="Found 0"):
        USUAL.pair(1, 0)
    with pytest.raises(InvalidInputError, match=r"one of replace, add/remove\. Found zero-out"):
        replace(USUAL, relation="zero-out")
    with pytest.raises(InvalidInputError, match="renumber it"):
        replace(USUAL, relation="add/remove", bypassed={0: ()})
    with pytest.raises(InvalidInputError, match="Found sex in level Region"):
        replace(USUAL, noise={("Region", "sex"): CellNoise(cells=2)})


@pytest.mark.parametrize(
    "wrong", [{"kind": "laplace"}, {"sensitivity": 0}, {"cells": 0}, {"cells": "x"}, {"sensitivity": 1.5}]
)
def test_noise_that_there_is_not(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=r"noise|sensitivity|cells"):
        CellNoise(**wrong)


@each_design
def test_rho_is_that_of_the_worst_pair(design: Release) -> None:
    assert design.rho == max(c.rho for c in compositions(design))
    assert design.budget == Fraction(19, 12)


@each_design
def test_every_answer_is_that_of_the_compositions(design: Release) -> None:
    study, alone = design.account(), compositions(design)
    for epsilon in (Fraction(1, 2), Fraction(2), Fraction(-1), Fraction(8)):
        found = study.delta_bounds(epsilon)
        lows, highs = zip(*(c.delta_bounds(epsilon) for c in alone), strict=True)
        assert max(lows) * (1 - TOLERANCE) <= found.lower <= found.upper <= max(highs) * (1 + TOLERANCE)
        assert found.upper >= max(lows)
        assert found.lower <= max(highs)
        log = study.log_delta_bounds(epsilon)
        assert log.lower <= max(c.log_delta_bounds(epsilon).upper for c in alone)
        assert log.upper >= max(c.log_delta_bounds(epsilon).lower for c in alone)
    for delta in ("1e-6", "0.1", "0.9"):
        found = study.epsilon_bounds(delta)
        lows, highs = zip(*(c.epsilon_bounds(delta) for c in alone), strict=True)
        assert found.upper >= max(lows)
        assert found.lower <= max(highs)
        assert found.upper - found.lower <= TOLERANCE * (1 + abs(found.upper))
    assert study.epsilon_bounds(0).upper == max(c.epsilon_bounds(0).upper for c in alone)
    assert study.delta(math.inf) == 0


@each_design
def test_the_overall_curve_is_the_envelope(design: Release) -> None:
    """Against slopes on a grid: each gives a line below the envelope, and the best of them is next to it."""
    study, alone = design.account(), compositions(design)
    slopes = [Fraction(i, 5) for i in range(-40, 41)]
    rest = np.min([1 - c.delta_bounds(slopes).upper for c in alone], axis=0)
    for alpha in (0.02, 0.3, 0.8):
        found = study.beta_bounds(alpha)
        line = max(rest - np.exp([float(e) for e in slopes]) * alpha)
        assert line - 1e-12 <= found.upper
        assert found.upper <= min(c.beta_bounds(alpha).upper for c in alone) + 1e-12
        assert line <= found.lower + 1e-9
        assert found.lower <= line + 0.01  # the slopes are on a coarse grid
        assert found.upper - found.lower <= 1e-8
    curve = study.tradeoff(5)
    assert all(b <= study.beta_bounds(a).upper + 1e-12 for a, b in zip(curve.alpha, curve.beta, strict=True))


@each_design
def test_tables_and_worst_pairs(design: Release) -> None:
    study = design.account(epsilons=[1], deltas=["1e-5"], alphas=["0.1"])
    for i, composition in enumerate(compositions(design)):
        assert study.table("epsilon").upper[i, 0] >= composition.epsilon_bounds("1e-5").lower
        assert study.table("epsilon").lower[i, 0] <= composition.epsilon_bounds("1e-5").upper
        assert study.table("delta").upper[i, 0] >= composition.delta_bounds(1).lower
        assert study.table("beta").lower[i, 0] <= composition.beta_bounds("0.1").upper
    for asked, values in (
        ({"delta": "1e-5"}, [c.epsilon("1e-5") for c in compositions(design)]),
        ({"epsilon": 1}, [c.delta(1) for c in compositions(design)]),
        ({"alpha": "0.1"}, [-c.beta("0.1") for c in compositions(design)]),
    ):
        worst = values[design.pairs.index(study.worst_pair(**asked))]
        assert worst >= max(values) - TOLERANCE


def test_digits_where_all_noise_is_discrete_gaussian() -> None:
    for name in ("add/remove", "sensitivity"):
        design = DESIGNS[name]
        study = design.account(deltas=["1e-6"], digits=20)
        expected = [c.epsilon_bounds("1e-6", digits=20) for c in compositions(design)]
        assert [r.epsilon[0] for r in study.results] == [tuple(e) for e in expected]
    with pytest.raises(exactdp.AccuracyError, match="discrete Gaussians only"):
        DESIGNS["one Laplace"].account(deltas=["1e-6"], digits=20)


def test_who_answers() -> None:
    assert isinstance(make_overall(USUAL).pairs, Pairs)
    assert isinstance(make_overall(COARSE).pairs, PairsOnOwnLattices)
    assert isinstance(make_overall(DESIGNS["add/remove"]).pairs, LinePairs)
    for name in (
        "one Laplace",
        "all Laplace",
        "one path",
    ):  # few pairs of other noise are asked one by one; a single pair
        assert isinstance(make_overall(DESIGNS[name]), SeparateOverall), name


def test_many_paths_of_different_spread_share() -> None:
    """Sensitivities take the common spread away; the pairs still share contours, in classes of about the same spread."""
    levels = ("US", "State", "County", "Tract", "Block")
    design = Release(
        "spine",
        "",
        "",
        {level: {"a": Fraction(1, 20 + i), "b": Fraction(1, 50)} for i, level in enumerate(levels)},
        {n + 1: tuple(x for i, x in enumerate(levels[1:]) if n >> i & 1) for n in range(11)},
        noise={("US", "b"): CellNoise(sensitivity=2), ("Tract", "a"): CellNoise(cells=2)},
    )
    pairs = overall_of(design).pairs
    assert isinstance(pairs, LinePairs)
    assert len(pairs.family.classes) > 1
    study, alone = design.account(), compositions(design)[::7]
    low, high = study.epsilon_bounds("1e-6")
    assert high >= max(c.epsilon_bounds("1e-6").lower for c in alone)
    assert high - low <= 1e-9
    low, high = study.delta_bounds(2)
    assert high >= max(c.delta_bounds(2).lower for c in alone)
    assert high <= low * (1 + 1e-9)


@pytest.mark.parametrize("name", ["add/remove", "one Laplace"])
def test_a_journal_of_an_unusual_design(tmp_path: Path, name: str) -> None:
    design, grids = DESIGNS[name], Grids.read([1], ["1e-6"], ["0.1"])
    journal = Journal.open(tmp_path, design, grids)
    with make_runner(1) as runner:
        first = run_study(design, grids, runner, journal)
        for one in slices(design, grids):
            assert journal.of(one).read().results.keys() == set(design.pairs)
        assert run_study(design, grids, runner, journal) == first
    assert Journal.open(tmp_path, USUAL, grids).question != journal.question
    first_of = slices(design, grids)[0]
    line = journal.of(first_of).path.read_text()
    assert not Journal(journal.of(first_of).path, replace(design, name="x"), first_of).read().set_aside
    assert f'"pair": {list(design.pairs[-1])}' in line


@each_design
def test_scaled_designs(design: Release) -> None:
    twice = design.scaled(4)
    assert (twice.relation, twice.noise) == (design.relation, design.noise)
    for pair in design.pairs:
        ratio = 4 * Fraction(twice.pair(*pair).rho) / Fraction(design.pair(*pair).rho)
        assert abs(ratio - 1) <= Fraction(1, 10**13)  # Laplace scales are rounded up, before and after
    with pytest.raises(InvalidInputError):
        design.scaled("1e-9")


def test_noise_is_checked_on_every_path() -> None:
    """The bypassed levels' budget makes sigma2 smaller: a sensitivity may be allowed on one path and not on another."""
    design = replace(USUAL, noise={("Nation", "age"): CellNoise(sensitivity=1500)})
    with pytest.raises(InvalidInputError, match="in level Nation, query age"):
        design.check_noise()
    replace(design, bypassed={1: ()}).check_noise()
    with pytest.raises(
        InvalidInputError, match=r"rho of a composition must be at most|rho of a design must be at most"
    ):
        replace(USUAL, noise={("Nation", "age"): CellNoise(sensitivity=500, cells=10**6)}).check_noise()


@each_design
def test_one_level_alone(design: Release) -> None:
    path, times = design.allocations[design.full_path], 2 if design.relation == "replace" else 1
    for level, queries in design.table.items():
        cells = {query: design.noise.get((level, query), CellNoise()).cells for query in queries}
        alone = sum(times * cells[query] * path.mechanism(level, query) for query in queries)
        assert level_pair(design, level) == alone


@pytest.mark.parametrize("name", ["one path", "all Laplace"])
def test_savings_sweeps_and_calibration(name: str) -> None:
    design = DESIGNS[name]
    with make_runner(1) as runner:
        rows = [row for part in sweep([SweptDesign(design, Fraction(2))], [Fraction(1, 10**5)], runner) for row in part]
    assert rows[0].rho == design.scaled(2).rho
    assert rows[0].epsilon[1] >= max(c.epsilon_bounds("1e-5").lower for c in compositions(design.scaled(2)))
    wanted = target(epsilon=2, delta="1e-5")
    factor, scaled = calibrate_release(design, wanted, grid=10)
    assert all(c.delta(2) <= 1e-5 for c in compositions(scaled))
    assert any(c.delta_bounds(2).lower > 1e-5 for c in compositions(design.scaled(factor - Fraction(1, 10))))
    saving = census.level_saving(design, "Region", 1, "1e-5")
    assert level_pair(design, "Region").scaled(saving.factor).delta(1) <= 1e-5
