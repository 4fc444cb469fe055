from __future__ import annotations

import hashlib
from collections import Counter
from fractions import Fraction

import pytest

import exactdp
from exactdp import census

RELEASE = census.release("dhc-persons-us")


def test_totals_are_exact() -> None:
    expected = {
        "dhc-persons-us": Fraction(24811, 5000),
        "dhc-persons-pr": Fraction(24811, 5000),
        "dhc-units-us": Fraction(15401, 2000),
        "dhc-units-pr": Fraction(15401, 2000),
        "pl94-persons-us": Fraction(293764, 114921),
        "pl94-persons-pr": Fraction(293764, 114921),
        "dhc-2022-08": 2 * Fraction("3.65"),  # a query's budget is 1 / sigma2, twice its rho
    }
    totals = {name: census.release(name).allocations for name in expected}
    assert {name: {a.rho for a in allocations.values()} for name, allocations in totals.items()} == {
        name: {rho} for name, rho in expected.items()
    }


def test_the_43_allocations_equal_the_published_ones() -> None:
    """A checksum over the sorted budgets of every level of every allocation, computed once from the published files."""
    assert sorted(RELEASE.allocations) == list(range(1, 44))
    lines = []
    for number, allocation in sorted(RELEASE.allocations.items()):
        for level in RELEASE.table:
            budgets = sorted(allocation.table.get(level, {}).values())
            lines.append(f"{number} {level}: {' '.join(map(str, budgets))}")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert digest == "208fbf9dcb5a220dbf6cb8cd8052e05a203be7e632a11c8d2a7e9e29df85fe61"


def test_the_rule_on_a_small_table() -> None:
    table = {"A": {"x": Fraction(1), "y": Fraction(3)}, "B": {"x": Fraction(2)}, "C": {"x": Fraction(5)}}
    assert census.bypass(table, ["B", "C"]) == {"A": {"x": Fraction(11, 4), "y": Fraction(33, 4)}}
    assert census.bypass(table, ["C"]) == {"A": table["A"], "B": {"x": Fraction(7)}}
    with pytest.raises(exactdp.InvalidInputError, match="top level cannot be bypassed"):
        census.bypass(table, ["A"])
    with pytest.raises(exactdp.InvalidInputError, match=r"must be one of A, B, C\. Found D"):
        census.bypass(table, ["D"])


def test_pairs() -> None:
    assert len(RELEASE.pairs) == 946
    pair = RELEASE.pair(6, 12)
    assert pair == RELEASE.pair(12, 6)
    assert pair.rho == Fraction(24811, 5000)
    both = Counter(RELEASE.allocations[6].mechanisms) + Counter(RELEASE.allocations[12].mechanisms)
    assert dict(pair.mechanisms) == dict(both)
    with pytest.raises(exactdp.InvalidInputError, match=r"allocations 1 to 43\. Found 44"):
        RELEASE.pair(1, 44)
    with pytest.raises(exactdp.InvalidInputError, match="only the allocation 1"):
        census.release("dhc-units-us").pair(1, 2)
    with pytest.raises(exactdp.InvalidInputError, match="A release is one of dhc-persons-us"):
        census.release("acs")


CERTIFIED = [
    ((13, 13), "delta", "26.34", "1.78554179223672773161714435381e-12"),
    ((13, 13), "delta", "100", "2.9533972006355563713500988e-201"),
    ((6, 6), "delta", "26.34", "1.785539037823489755739362340539e-12"),
    ((6, 12), "delta", "100", "2.953243879338800e-201"),
    ((24, 24), "delta", "26.34", "1.785541802803984e-12"),
    ((2, 38), "delta", "26.34", "1.785541802734335824370140e-12"),
    ((2, 35), "delta", "1.1245", "0.8063069616911986105379200"),
    ((2, 3), "beta", "0.0204", "0.1346350884711263743315416"),
    ((24, 24), "beta", "0.3486", "0.002879481932741846125366319"),
]


@pytest.mark.parametrize(("pair", "kind", "x", "value"), CERTIFIED)
def test_known_values_of_pairs(pair: tuple[int, int], kind: str, x: str, value: str) -> None:
    composition = RELEASE.pair(*pair)
    low, high = composition.delta_bounds(x) if kind == "delta" else composition.beta_bounds(x)
    assert high - low < 1e-11 * high
    digits = len(value.split("e")[0].replace(".", "").lstrip("0"))
    last_digit = Fraction(value) * Fraction(1, 10 ** (digits - 1))
    assert Fraction(low) <= Fraction(value) + last_digit
    assert Fraction(value) - last_digit <= Fraction(high)


def test_headline() -> None:
    """zCDP reports (26.34, 1e-10); exactly, epsilon(1e-10) of the full path with itself is 24.456..."""
    low, high = RELEASE.pair(13, 13).epsilon_bounds("1e-10")
    assert low <= 24.4564939544 + 5e-11
    assert high >= 24.4564939544 - 5e-11
    assert high - low < 1e-11
