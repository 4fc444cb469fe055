"""The built-in releases: their sums, their known epsilons, and the texts that say whose record moves what."""

from __future__ import annotations

import math
from fractions import Fraction
from importlib import resources
from pathlib import Path

import pytest

from exactdp import census
from exactdp.numerals import about, at_most, exact

P, H1, DHC, UNITS = Fraction(542, 339) ** 2, Fraction(3379, 12343) ** 2, Fraction("4.9622"), Fraction("7.7005")
RHO = {
    **{f"pl94-persons-{where}": P for where in ("us", "pr", "us-patterns", "pr-patterns")},
    **{f"pl94-units-{where}": H1 for where in ("us", "pr", "us-patterns", "pr-patterns")},
    **{f"dhc-persons-{where}": DHC for where in ("us", "pr", "pr-no-prim")},
    **{f"dhc-units-{where}": UNITS for where in ("us", "pr", "pr-no-prim")},
    "ddhc-a-us": 5 * Fraction("0.008") + 2 * Fraction("2.134") + 4 * Fraction("0.159"),
    "ddhc-a-pr": 4 * Fraction("0.008") + Fraction("2.134") + 3 * Fraction("0.159"),
    "ddhc-b-us": 2 * (5 * Fraction("0.006915") + 2 * Fraction("1.9208") + 4 * Fraction("0.142869")),
    "ddhc-b-pr": 2 * (4 * Fraction("0.006915") + Fraction("1.9208") + 3 * Fraction("0.142869")),
    "s-dhc-us": Fraction("1.257281"),
    "s-dhc-pr": Fraction("1.226649"),
    "s-dhc-formal-us": Fraction(481167223, 431200000),
    "s-dhc-formal-pr": Fraction(25806262707, 23716000000),
    "s-dhc-household-us": Fraction(5651961239, 11858000000),
    "s-dhc-household-pr": Fraction(552322119, 1185800000),
    "dhc-2022-08": Fraction("3.65"),
}
FINGERPRINTS = {
    "dhc-persons-us": "a01261fecc8b45ae",
    "dhc-persons-pr": "2f078ed3fd5d4003",
    "dhc-units-us": "bb081de7443aa81b",
    "dhc-units-pr": "87cfe6538b92915b",
    "pl94-persons-us": "00f969cb5d92bf5f",
    "pl94-persons-pr": "82860099f950becd",
    "dhc-2022-08": "c3a804f99648f736",
}


def test_every_release_has_its_exact_rho() -> None:
    assert {name: census.release(name).rho for name in census.release_names()} == RHO


def test_releases_of_earlier_versions_are_the_same_designs() -> None:
    assert {name: census.release(name).fingerprint[:16] for name in FINGERPRINTS} == FINGERPRINTS


def test_every_release_is_a_file_that_says_whose_record_it_is_and_where_it_is_from() -> None:
    files = {file.name for file in resources.files("exactdp.census").joinpath("products").iterdir()}
    assert files == {f"{name}.json" for name in census.release_names()}
    for release in map(census.release, census.release_names()):
        assert release.unit_of_privacy.split(",")[0] in ("person", "housing unit", "household")
        assert "_Production_Code at " in release.source or release.name == "dhc-2022-08"
        is_bound = "patterns" in release.name or release.name.startswith(("s-dhc-us", "s-dhc-pr", "s-dhc-household"))
        assert ("upper bound" in release.source) == is_bound


EPSILON = {  # at delta = 1e-10, rounded up
    "pl94-persons-us": 16.465156,
    "pl94-units-us": 2.3632032,
    "dhc-units-us": 32.071985,
    "ddhc-a-us": 24.401906,
    "ddhc-b-us": 35.118415,
    "s-dhc-us": 10.943850,
    "s-dhc-formal-us": 10.230211,
    "s-dhc-household-us": 6.3783744,
    "ddhc-a-pr": 16.790470,
    "ddhc-b-pr": 23.828409,
    "s-dhc-pr": 10.792055,
    "dhc-persons-pr-no-prim": 24.456494,
}


@pytest.mark.parametrize("name", EPSILON)
def test_epsilon_of_a_path_two_ways(name: str) -> None:
    """On the lattice in float64 and in balls; and delta of that epsilon on the line."""
    release = census.release(name)
    pair = release.pair(*release.pairs[0])
    found = pair.epsilon_bounds("1e-10")
    assert float(at_most(found.upper, 8)) == EPSILON[name]
    certified = pair.epsilon_bounds("1e-10", digits=12)
    assert certified.lower <= found.upper
    assert found.lower <= certified.upper
    assert certified.upper - certified.lower < 1e-10
    line = next(o for o in pair.cross_check(found.upper).opinions if o.method == "smoothed Fourier sum")
    assert abs(line.log_upper - math.log(1e-10)) < 1e-9
    assert line.log_upper - line.log_lower < 1e-9


@pytest.mark.parametrize(
    ("name", "epsilon", "witness"),
    [
        ("pl94-persons-us-patterns", 16.467752, (1, 16)),
        ("pl94-persons-pr-patterns", 16.465265, (8, 8)),
        ("pl94-units-us-patterns", 2.3635460, (16, 16)),
        ("pl94-units-pr-patterns", 2.3634177, (8, 8)),
    ],
)
def test_epsilon_over_every_set_that_could_be_bypassed(name: str, epsilon: float, witness: tuple[int, int]) -> None:
    """All pairs together on shared contours, and by itself the pair that attains it."""
    release = census.release(name)
    assert float(at_most(release.account().epsilon("1e-10"), 8)) == epsilon
    found = release.pair(*witness).epsilon_bounds("1e-10")
    assert {float(at_most(end, 8)) for end in found} == {epsilon}


def test_the_table_of_the_documentation() -> None:
    """Record, neighbours, paths, rho and epsilon of every release, as docs/designs.md prints them."""
    page = (Path(__file__).parents[2] / "docs" / "designs.md").read_text()
    rows = {
        row[0].strip("`"): row[2:]
        for row in (line.strip("| ").split(" | ") for line in page.splitlines())
        if len(row) == 7
    }
    del rows["release"], rows["---"]
    assert set(rows) == set(census.release_names())
    for name, (record, relation, paths, rho, epsilon) in rows.items():
        release = census.release(name)
        told = exact(release.rho) if "/" not in exact(release.rho) else about(release.rho)
        found = at_most(release.account().epsilon("1e-10"), 8)
        assert (record, relation, int(paths)) == (
            release.unit_of_privacy.split(",")[0],
            release.relation,
            len(release.bypassed),
        )
        assert (rho, epsilon) == (told, found), name
