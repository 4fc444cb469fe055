"""Several products under one neighbouring change: every headline, what moves together, and what does not."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module

import pytest

from exactdp import census
from exactdp.accounting.line_enclosures import enclosed_on_line
from exactdp.balls import BITS, ball, precision
from exactdp.census.certification import certify, verify
from exactdp.census.changes import CHANGES, Change
from exactdp.census.composition_design import composition_design
from exactdp.errors import InvalidInputError

DELTA = Fraction(1, 10**10)
PERSONS = ("pl94-persons", "dhc-persons", "ddhc-a", "s-dhc")
UNITS = ("pl94-units", "dhc-units", "ddhc-b")
ADDED, REPLACED, UNIT, VACANT = (
    "person added or removed",
    "person replaced",
    "occupied unit replaced",
    "occupied becomes vacant",
)
HOUSEHOLDER, MEMBER = "answers of a householder", "answers of another member"
HEADLINES = {  # rho as an exact sum, and epsilon at 1e-10 to 9 decimals, rounded down
    ("us", ADDED, PERSONS): ("1144669906901/114921000000", "37.732795415"),
    ("us", ADDED, (*PERSONS[:3], "s-dhc-household")): ("12509686210518919/1362733218000000", "35.825411291"),
    ("us", REPLACED, PERSONS): ("1144669906901/57460500000", "59.383651972"),
    ("us", REPLACED, PERSONS[:2]): ("4320124931/574605000", "31.595558286"),
    ("us", UNIT, UNITS): ("796597/31250", "70.198300537"),
    ("us", VACANT, UNITS): ("1010241618496049/76174824500000", "45.374294878"),
    ("us", HOUSEHOLDER, PERSONS + UNITS): (
        "2250844910790404750162916718603/54970572373335910570356000000",
        "97.756680496",
    ),
    ("us", MEMBER, PERSONS + UNITS): ("213156779962108566698448164843/6871321546666988821294500000", "80.395628226"),
    ("pr", ADDED, PERSONS): ("876716425829/114921000000", "31.884947881"),
    ("pr", REPLACED, PERSONS): ("876716425829/57460500000", "49.734203651"),
    ("pr", REPLACED, PERSONS[:2]): ("4320124931/574605000", "31.595558286"),
    ("pr", UNIT, UNITS): ("268887/15625", "53.852423689"),
    ("pr", VACANT, UNITS): ("331771056238325659/36328249896703125", "35.708445225"),
    ("pr", HOUSEHOLDER, PERSONS + UNITS): (
        "19554681316116458911382891646452489/687047358636175192702141788000000",
        "75.732733190",
    ),
    ("pr", MEMBER, PERSONS + UNITS): (
        "1951475063012428588263050099791903/85880919829521899087767723500000",
        "64.904091866",
    ),
}


def named(where: str, products: tuple[str, ...]) -> str:
    bypassed = {"pr": "-no-prim"}.get(where, "")
    return "+".join(f"{p}-{where}{bypassed if p.startswith('dhc') else ''}" for p in products)


@pytest.mark.parametrize(("where", "change", "products"), HEADLINES)
def test_headlines_two_ways(where: str, change: str, products: tuple[str, ...]) -> None:
    rho, epsilon = HEADLINES[where, change, products]
    found = census.joint(named(where, products), change)
    assert found.full.rho == Fraction(rho)
    low, high = found.full.epsilon_bounds("1e-10")
    assert Fraction(epsilon) <= Fraction(low) <= Fraction(high) <= Fraction(epsilon) + Fraction(1, 10**9)
    certificate = certify(composition_design(found.full), delta="1e-10")
    verdict = verify(certificate)
    assert verdict.holds, verdict.reason
    assert "recomputed: 1 by balls" in verdict.reason, "the second way is another arithmetic"


@pytest.mark.parametrize(("where", "change", "products"), HEADLINES)
def test_headlines_in_balls(where: str, change: str, products: tuple[str, ...]) -> None:
    """delta at the headline's two ends, by Fourier sums in balls on two tilts with two periods and two smoothings."""
    epsilon = Fraction(HEADLINES[where, change, products][1])
    full = census.joint(named(where, products), change).full
    for at, is_below in ((epsilon, False), (epsilon + Fraction(1, 10**9), True)):
        found = [enclosed_on_line(full, at, finest=finest, is_other=o) for finest, o in ((1e-13, False), (3e-14, True))]
        assert bool(found[0].overlaps(found[1]))
        with precision(BITS):
            assert all(bool(x <= ball(DELTA) if is_below else x >= ball(DELTA)) for x in found)
            assert all(float(x.rad()) < 1e-11 * float(x.mid()) for x in found)


@pytest.mark.parametrize(("where", "change", "products"), [key for key in HEADLINES if key[1] in (ADDED, HOUSEHOLDER)])
def test_all_paths_are_no_better_than_the_full_one(where: str, change: str, products: tuple[str, ...]) -> None:
    found = census.joint(named(where, products), change)
    bounds = found.epsilon_bounds("1e-10")
    assert bounds.upper >= found.full.epsilon_bounds("1e-10").lower
    assert bounds.upper <= found.zcdp_epsilon("1e-10") <= found.zcdp_epsilon("1e-10", is_simple=True)


def test_the_engine_of_all_pairs_is_the_worst_of_the_compositions() -> None:
    found = census.joint("pl94-persons-pr-patterns+dhc-units-pr", HOUSEHOLDER)
    assert found.count == 8
    found = census.joint("pl94-persons-pr-patterns+dhc-persons-pr-no-prim", REPLACED)
    assert found.count == 36
    each = [found.composition(i).epsilon_bounds("1e-6") for i in range(found.count)]
    low, high = found.epsilon_bounds("1e-6")
    assert low <= max(e.upper for e in each)
    assert high >= max(e.lower for e in each)
    assert high - low < 1e-8
    worst = found.worst("1e-6")
    reached = [i for i, e in enumerate(each) if e.upper >= low]
    assert {tuple(found.paths(i).values()) for i in reached} & {tuple(paths.values()) for paths in worst}


def test_the_worst_of_many_is_the_worst_of_the_compositions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where combinations are very many, only their maximum is searched: here 36 of them, as if they were."""
    names = "pl94-persons-pr-patterns+dhc-persons-pr-no-prim"
    usual = census.joint(names, REPLACED)
    each = [usual.composition(i) for i in range(usual.count)]
    monkeypatch.setattr(import_module("exactdp.census.joint"), "_MANY", 10)
    many = census.joint(names, REPLACED)
    for delta in ("1e-10", "0.7"):
        low, high = many.epsilon_bounds(delta)
        own = [c.epsilon_bounds(delta) for c in each]
        assert max(e.lower for e in own) <= high
        assert low <= max(e.upper for e in own)
        assert high - low < 1e-8
    low, high = many.beta_bounds("0.05")
    other = usual.beta_bounds("0.05")
    assert max(low, other.lower) <= min(high, other.upper)
    assert high - low <= 1e-7 * high
    assert low <= min(c.beta_bounds("0.05").upper for c in each)
    assert {tuple(paths.values()) for paths in many.worst("1e-10")} & {
        tuple(paths.values()) for paths in usual.worst("1e-10")
    }


def test_every_pattern_with_every_path() -> None:
    """As many compositions as pairs of patterns times pairs of paths; the page has their epsilon."""
    found = census.joint("pl94-persons-us-patterns+dhc-persons-us+ddhc-a-us+s-dhc-us", REPLACED)
    assert found.count == (16 * 17 // 2) * (43 * 44 // 2)
    assert found.composition(found.count - 1).rho == found.rho, "every path has the same budget"


def test_units_stay_in_their_block() -> None:
    found = census.joint("pl94-units-us-patterns+dhc-units-us", VACANT)
    assert [p["pl94-units-us-patterns"] for p in map(found.paths, range(found.count))] == [(k, k) for k in range(1, 17)]
    moving = census.joint("pl94-persons-us-patterns", REPLACED)
    assert moving.count == 16 * 17 // 2


def test_worst_cases_that_cannot_coincide_are_not_added() -> None:
    """An occupied unit that stays occupied leaves H1 alone; one that becomes vacant leaves its household's second half."""
    with_h1, without = (census.joint(named("us", u), UNIT) for u in (UNITS, UNITS[1:]))
    assert with_h1.full == without.full
    apart = sum(
        (
            Fraction(census.joint(named("us", (u,)), c).full.rho)
            for u, c in zip(UNITS, (VACANT, UNIT, UNIT), strict=True)
        ),
        Fraction(0),
    )
    assert apart == Fraction("121718074625703/4760926531250")
    for change in (UNIT, VACANT):
        assert census.joint(named("us", UNITS), change).full.rho < apart


def test_products_alone_are_the_releases() -> None:
    for name, change in (("pl94-persons-us", REPLACED), ("ddhc-a-us", ADDED), ("dhc-units-us", UNIT)):
        assert census.joint(name, change).full == census.release(name).proxy
    assert census.joint("pl94-units-us", VACANT).rho == census.release("pl94-units-us").rho
    twice = census.joint("ddhc-b-pr", UNIT)
    assert twice.rho == 2 * census.release("ddhc-b-pr").rho


def test_rho_is_that_of_the_worst_paths() -> None:
    """Where some queries do not move, paths differ in what moves: the largest is taken."""
    found = census.joint("pl94-persons-us-patterns+dhc-persons-us", HOUSEHOLDER)
    assert found.rho == max(Fraction(found.composition(i).rho) for i in range(found.count))
    assert found.rho > found.full.rho


def test_beta_and_delta() -> None:
    found = census.joint("pl94-units-us+dhc-units-us+ddhc-b-us", VACANT)
    assert found.beta("0.05") <= found.full.beta_bounds("0.05").upper
    assert found.delta("45.3743") >= found.full.delta_bounds("45.3743").lower
    words = dict(found.words())
    assert "vacant" in words["change"]
    assert words["dhc-units-us"] == "one cell of the queries about households, two of tenvacgq"
    assert "upper bound" in words["bound"]
    assert str(found).endswith("occupied becomes vacant, 1 combination of paths")


@pytest.mark.parametrize("change", CHANGES.values(), ids=lambda change: change.name)
def test_vectors_name_queries_that_there_are(change: Change) -> None:
    for product, follow in change.follows.items():
        queries = {query for table in census.release(f"{product}-us").table.values() for query in table}
        for half in follow.halves:
            assert half.still <= queries
            assert set(half.vector or ()) <= queries
        assert follow.said


@pytest.mark.parametrize(
    ("products", "change", "told"),
    [
        ("pl94-persons-us", "a person moves", "A change is one of"),
        ("pl94-persons-us", 3, "A change is one of"),
        ("pl94-persons-us+nothing", REPLACED, "A release is one of"),
        ([], REPLACED, "at least one product"),
        ("pl94-persons-us+dhc-persons-pr", REPLACED, "account for them apart"),
        ("pl94-persons-us+pl94-persons-us-patterns", REPLACED, "counted once"),
        ("s-dhc-us+s-dhc-household-us", ADDED, "counted once"),
        ("pl94-persons-us+dhc-units-us", REPLACED, "Found dhc-units"),
        ("s-dhc-household-us", REPLACED, "Found s-dhc-household"),
        ("s-dhc-us", UNIT, "several persons"),
        ("pl94-units-us", UNIT, "costs nothing"),
        ("dhc-2022-08", ADDED, "end in -us or -pr"),
    ],
)
def test_what_cannot_be_said_is_refused(products: str, change: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=told) as error:
        census.joint(products, change)
    assert str(error.value).count("Found") <= 1
