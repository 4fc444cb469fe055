"""The cost of each cell of a design: the chain rule of the bypass, gradients against differences, certified changes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from exactdp import InvalidInputError
from exactdp.census import CellNoise, Release, bypass, release
from exactdp.census.spine import Table, by_table

TABLE: Table = {
    "US": {"a": Fraction(1, 4), "b": Fraction(1, 4)},
    "State": {"a": Fraction(1, 8), "b": Fraction(1, 8)},
    "County": {"a": Fraction(1, 4)},
    "Block": {"a": Fraction(1, 8), "c": Fraction(1, 16), "d": Fraction(1, 16)},
}
PATHS = {1: (), 2: ("State",), 3: ("State", "County"), 4: ("Block",), 5: ("State", "County", "Block")}
SPINE = Release("spine", "Spine", "", TABLE, PATHS)
DHC = release("dhc-persons-us")


@pytest.mark.parametrize("bypassed", PATHS.values())
def test_the_chain_rule_of_the_bypass_is_exact(bypassed: tuple[str, ...]) -> None:
    """A path's budgets are fractions of linear functions: slopes of them by a cell are found by interpolation, exactly.

    With one cell moved by t a path's budget is (quadratic in t) / (linear in t) whose denominator is the level's own total.
    """
    slopes = {
        level: {q: Fraction(3 * i + j, 7) for j, q in enumerate(row)} for i, (level, row) in enumerate(TABLE.items())
    }
    found = by_table(TABLE, bypassed, slopes)

    def value(level: str, query: str, t: Fraction) -> Fraction:
        """sum of slope * budget of the path, times the own total of the level that moves."""
        table = {name: dict(row) for name, row in TABLE.items()}
        table[level][query] += t
        path = bypass(table, bypassed)
        own = sum(table[level].values()) if level in path else Fraction(1)
        return own * sum(slopes[name][q] * rho for name, row in path.items() for q, rho in row.items())

    for level, row in TABLE.items():
        own = sum(row.values()) if level not in bypassed else Fraction(1)
        growth = Fraction(1) if level not in bypassed else Fraction(0)  # of own with t
        for query in row:
            f = [value(level, query, Fraction(t, 1000)) for t in (0, 1, 2)]
            first = (-3 * f[0] + 4 * f[1] - f[2]) / 2 * 1000  # exact for a quadratic
            assert found[level][query] == (first - growth * f[0] / own) / own
            assert abs(found[level][query]) <= by_table(TABLE, bypassed, slopes, sizes=True)[level][query]


@pytest.mark.parametrize(
    ("pair", "blur", "within"),
    [((13, 13), None, 3e-4), ((13, 13), "0.001", 1e-5), ((6, 20), None, 1e-5), ((6, 6), "0.01", 2e-3)],
)
def test_gradients_are_the_differences_of_certified_deltas(
    pair: tuple[int, int], blur: str | None, within: float
) -> None:
    """Where the loss has atoms the derivative ripples around the slope of a longer step; a blur averages over them."""
    epsilon, step = Fraction("24.456712345"), Fraction(1, 10**4)
    costs = DHC.account().budget_costs(epsilon=epsilon, pair=pair, blur=blur)
    assert costs.tied == (pair,)
    for cell in (("US", "detailed"), ("State", "hispanic * sex"), ("County", "detailed"), ("Block", "detailed")):
        low, high = (DHC.with_budget({cell: by}).pair(*pair).log_delta(epsilon) for by in (-step, step))
        level, query = cell
        assert costs.log_delta[level][query] == pytest.approx((high - low) / (2 * float(step)), rel=within)
        assert costs.log_delta_errors[level][query] < 1e-7


def test_unusual_noise_and_neighbours_are_differentiated_too() -> None:
    noise = {
        ("US", "b"): CellNoise(sensitivity=2, cells=3),
        ("County", "a"): CellNoise("gaussian", sensitivity=3),
    }
    design = replace(SPINE, relation="add/remove", noise=noise)
    epsilon, step = Fraction("9.1"), Fraction(1, 10**6)
    costs = design.account().budget_costs(epsilon=epsilon, pair=(2, 0))
    for cell in (("US", "a"), ("US", "b"), ("State", "a"), ("County", "a")):
        low, high = (design.with_budget({cell: by}).pair(2, 0).log_delta(epsilon) for by in (-step, step))
        assert costs.log_delta[cell[0]][cell[1]] == pytest.approx((high - low) / (2 * float(step)), rel=1e-5)


def test_on_dhc_every_cell_costs_the_same() -> None:
    """0.01 of rho costs 0.029965 of epsilon at delta = 1e-10: certified for the step, and all 80 derivatives agree with it."""
    study = DHC.account()
    costs = study.budget_costs(delta="1e-10", pair=(13, 13))
    slopes = [slope for row in costs.epsilon.values() for slope in row.values()]
    assert len(slopes) == 80
    assert max(slopes) - min(slopes) < 1e-6
    assert slopes[0] == pytest.approx(2.99779, rel=1e-5)
    for cell in (("US", "detailed"), ("Block", "detailed")):
        low, high = study.budget_change({cell: "0.01"}, delta="1e-10", pair=(13, 13)).change
        assert 0.029965 < low < high < 0.029966
        assert high - low < 1e-8


def test_the_worst_pair_and_the_whole_release() -> None:
    design, cell = replace(SPINE, relation="add/remove"), ("County", "a")
    study = design.account()
    costs = study.budget_costs(delta="1e-6")
    assert costs.pair == costs.tied[0] == study.worst_pair(delta="1e-6")
    change = study.budget_change({cell: "1e-3"}, delta="1e-6")
    assert change.before == tuple(study.epsilon_bounds("1e-6"))
    assert change.after == tuple(design.with_budget({cell: "1e-3"}).account().epsilon_bounds("1e-6"))
    assert sum(change.per("1e-3")) / 2 == pytest.approx(costs.epsilon["County"]["a"], rel=0.2)


def test_budget_can_be_moved_between_cells() -> None:
    moved = SPINE.with_budget({("US", "a"): "-1/30", ("Block", "a"): "1/30"})
    assert moved.budget == SPINE.budget
    assert moved.table["US"]["a"] == Fraction(13, 60)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({("US", "z"): 1}, "A cell is"),
        ({"US": 1}, "A cell is"),
        ({("US", "a"): -1}, "must be positive"),
        ([("US", "a")], "a mapping"),
        ({("US", "a"): "x"}, "budget"),
    ],
)
def test_bad_changes_are_refused_in_one_sentence(changes: object, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        SPINE.with_budget(changes)  # type: ignore[arg-type]
