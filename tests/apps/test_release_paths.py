"""One table with the records of several paths: one noise in a cell, the worst pair of what was drawn, and every refusal."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

import examples
from command_line import refused, run
from exactdp import Certificate, Composition, DiscreteGaussian, DiscreteLaplace, RandomizedResponse, census
from exactdp.apps.release import noisy_table, path_noise
from exactdp.apps.release.counts import is_table_of_counts, parse_counts, read_counts
from exactdp.apps.release.noisy_table import plan_release, release_table
from exactdp.apps.release.path_noise import drawn_composition, listed, planned_noise, worst_pairs
from exactdp.census.cell_noise import CellNoise
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import ADD_REMOVE, neighbours
from exactdp.interop.opendp import Sampler, drawn_mechanism, drawn_sigma2, opendp_laplace_noise, scale_for
from exactdp.numerals import at_most
from oracle import brute

SECRET = "73311"
DESIGN = """
title = "A survey of three levels"
[levels.Nation]
age = "1/2"
[levels.Region]
age = 1
sex = "1/2"
[levels.District]
sex = 1
[bypassed]
1 = []
2 = ["District"]
"""
COUNTS = f"""level,path,query,area,cell,count
Nation,1;2,age,,0-17,{SECRET}
Nation,1;2,age,,18+,{SECRET}1
Region,1,age,North,0-17,{SECRET}2
Region,1,age,North,18+,{SECRET}3
Region,1,sex,North,female,{SECRET}4
Region,2,age,South,0-17,{SECRET}5
Region,2,age,South,18+,{SECRET}6
Region,2,sex,South,female,{SECRET}7
District,1,sex,Northeast,female,{SECRET}8
District,1,sex,Northwest,female,{SECRET}9
"""
SIGMA2 = {
    1: [2, 1, 2, 1],
    2: [2, Fraction(3, 5), Fraction(6, 5)],
}
"""By hand: on path 2 the 1 of District is spread over 1 and 1/2, which become 5/3 and 5/6."""


PAGE = Path(__file__).parents[2] / "docs" / "release-and-audit.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.toml").write_text(DESIGN)
    (tmp_path / "counts.csv").write_text(COUNTS)
    return tmp_path


@pytest.fixture
def design(folder: Path) -> census.Release:
    return census.read_budget(folder / "survey.toml")


def refusal(folder: Path, counts: str = "counts.csv", *more: str) -> str:
    """The sentence of a release that must be refused, which shows nothing of the table and leaves nothing behind."""
    before = sorted(folder.iterdir())
    result = run("release", str(folder / "survey.toml"), str(folder / counts), "-o", str(folder / "noisy.csv"), *more)
    assert SECRET not in result.output
    assert sorted(folder.iterdir()) == before
    return refused(result)


def test_a_survey_with_a_bypassed_level_is_released_and_verified(folder: Path, design: census.Release) -> None:
    pytest.importorskip("opendp")
    output = folder / "noisy.csv"
    result = run("release", str(folder / "survey.toml"), str(folder / "counts.csv"), "-o", str(output))
    assert result.exit_code == 0, result.output
    statement = json.loads((folder / "noisy.noise.json").read_text())
    said = statement["guarantee"]
    assert [path["bypassed"] for path in statement["paths"]] == [[], ["District"]]
    assert [(e["paths"], e["level"], e["query"], e["cells"]) for e in statement["noise"]] == [
        ([1, 2], "Nation", "age", 2),
        ([1], "Region", "age", 2),
        ([2], "Region", "age", 2),
        ([1], "Region", "sex", 1),
        ([2], "Region", "sex", 1),
        ([1], "District", "sex", 2),
    ]
    assert [e["sigma2_of_the_design"] for e in statement["noise"]] == ["2", "1", "3/5", "2", "6/5", "1"]
    assert [e["sigma2_drawn"] for e in statement["noise"]] == [
        str(drawn_sigma2(e["sigma2_of_the_design"])) for e in statement["noise"]
    ]
    assert said["worst_pairs"] == [[1, 2]]
    assert said["paths_not_covered"] == []
    printed = re.search(r"is at most (\S+) for the noise drawn, the worst of 3 pairs: \(1, 2\)", result.stdout)
    assert printed is not None
    assert Decimal(said["epsilon_at_most"]) <= Decimal(printed[1]) < Decimal(said["epsilon_at_most"]) + Decimal("1e-4")
    assert "certificate of the worst pair (1, 2), with the noise of the design" in result.stdout
    assert "one record replaced by any other: all 3 pairs of directed paths" in result.stdout
    certificate = Certificate.load(folder / "noisy.certificate.json")
    assert certificate.composition == design.pair(1, 2)
    assert abs(float(certificate.upper) / said["epsilon_at_most"] - 1) < 1e-10
    checked = run("verify", str(folder / "noisy.certificate.json"))
    assert checked.exit_code == 0
    assert "Holds" in checked.stdout
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert [row["path"] for row in rows[:3]] == ["1;2", "1;2", "1"]
    assert "count" not in rows[0]


def test_the_example_of_the_documentation_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opendp")
    for language in ("toml", "csv"):
        [(rest, text)] = examples.blocks(PAGE, language)
        (tmp_path / rest.split('"')[1]).write_text(text)
    [(_, shown)] = examples.blocks(PAGE, "text")
    command, *wanted = shown.splitlines()
    monkeypatch.chdir(tmp_path)
    told = examples.printed(command.removeprefix("$ "), PAGE)
    version = re.compile(r"OpenDP [\d.]+")
    assert version.sub("", told).split() == version.sub("", "\n".join(wanted)).split()
    for pair, figure in (("1,1", "18.0394"), ("2,2", "18.0933")):
        k, other = map(int, pair.split(","))
        assert at_most(census.read_budget("survey.toml").pair(k, other).epsilon_bounds("1e-10").upper) == figure
        assert figure in PAGE.read_text()


def test_the_epsilon_stated_is_the_largest_of_all_pairs(design: census.Release) -> None:
    """Against brute force over the noise worked out by hand: it holds for every pair and is tight for one that is not (1, 1)."""
    delta = Fraction(1, 10**10)
    plan = plan_release(design, parse_counts(COUNTS, design), digits=5)
    upper, lower = Fraction(plan.guarantee["epsilon_at_most"]), Fraction(plan.guarantee["epsilon_at_least"])
    losses = {
        (k, other): brute(Counter((Fraction(s), 1) for s in (*SIGMA2[k], *SIGMA2[other])))
        for k, other in ((1, 1), (1, 2), (2, 2))
    }
    assert all(loss.delta(upper) <= delta * (1 + Fraction(1, 10**6)) for loss in losses.values())
    assert [pair for pair, loss in losses.items() if loss.delta(lower - Fraction(1, 10**6)) > delta] == [(1, 2)]
    assert plan.worst.worst == ((1, 2),)
    assert 0 <= plan.worst.epsilon.upper - plan.worst.epsilon.lower < 1e-9


def test_the_decimals_of_a_statement_are_on_the_safe_side(design: census.Release) -> None:
    """JSON has the shortest decimal of a double, which may be below it."""
    for bound in (0.1, 0.3, 18.094067317703365, 1 / 3, 24.456):
        for other in (bound, math.nextafter(bound, 0), math.nextafter(bound, 100)):
            assert Decimal(json.dumps(noisy_table._outward(other, math.inf))) >= Decimal(other)
            assert Decimal(json.dumps(noisy_table._outward(other, -math.inf))) <= Decimal(other)
    found = plan_release(design, parse_counts(COUNTS, design), digits=5)
    assert Decimal(json.dumps(found.guarantee["epsilon_at_most"])) >= Decimal(found.worst.epsilon.upper)


def test_each_row_is_drawn_once_with_the_noise_of_its_path(
    design: census.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, float]] = []

    def recording(counts: Sequence[int], scale: float) -> list[int]:
        drawn.extend((count, scale) for count in counts)
        return [-count for count in counts]

    monkeypatch.setattr(noisy_table, "opendp_noise", recording)
    monkeypatch.setattr(noisy_table, "opendp_version", lambda: "0")
    table = parse_counts(COUNTS, design)
    noisy = release_table(design, table, digits=5)
    wanted = [2, 2, 1, 1, 2, "3/5", "3/5", "6/5", 1, 1]
    assert sorted(drawn) == sorted(
        (count, scale_for(sigma2)) for count, sigma2 in zip(table.counts, wanted, strict=True)
    )
    assert [int(row["noisy"]) for row in csv.DictReader(noisy.text.splitlines())] == [-count for count in table.counts]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("Region,2,age,South,0-17", "Region,2,age,North,0-17", "of line 4 again in line 7; list it once with all its"),
        (
            "Region,2,age,South",
            "Region,,age,South",
            "One cell has one noise. Found paths 1 and 2 in one cell of level R",
        ),
        ("Region,2,age,South", "Region,1 2,age,South", "One cell has one noise"),
        ("Region,2,sex,South", "Region,1,sex,South", "Found none for level Region, query sex on path 2"),
        ("Nation,1;2,age", "Nation,1,age", "Found none for level Nation, query age on path 2"),
        ("District,1", "District,2", "Found District (allocation 2 bypasses it) in line 10, column 1"),
        ("District,1", "District,1;2", "Found District (allocation 2 bypasses it) in line 10, column 1"),
        ("District,1", f"District,{SECRET}", "Found something else in line 10, column 2"),
        ("District,1", f"District,{SECRET}9", "allocations 1, 2, several such as 1;2"),
        ("District,1", "District,x", "if the column holds other things, rename it"),
        ("District,1", "District,1.0", "Found something else in line 10, column 2"),
        ("District,1", "District,0", "Found something else in line 10, column 2"),
        ("District,1", f"{SECRET},1", "Found something else in line 10, column 1"),
        ("level,path", "level,Path,path", "that of column 2 again in column 3"),
        (COUNTS[COUNTS.index("\n") :], "\n", "must have rows. Found none"),
    ],
)
def test_what_would_spend_a_node_twice_or_not_at_all_is_refused(folder: Path, old: str, new: str, named: str) -> None:
    pytest.importorskip("opendp")
    (folder / "counts.csv").write_text(COUNTS.replace(old, new))
    assert named in refusal(folder)


def test_a_column_in_capitals_is_the_column_of_paths(design: census.Release) -> None:
    """As a label it would hide that a cell is there twice."""
    table = parse_counts(COUNTS.replace("level,path", "Level, Path "), design)
    assert table.paths == parse_counts(COUNTS, design).paths
    twice = COUNTS.replace("path", "PATH").replace("Region,2,age,South", "Region,2,age,North")
    with pytest.raises(InvalidInputError, match="spend its node twice"):
        parse_counts(twice, design)


def test_an_allocation_and_a_column_of_paths_exclude_each_other(folder: Path, design: census.Release) -> None:
    pytest.importorskip("opendp")
    assert "without a column path. Found 2 and such a column" in refusal(folder, "counts.csv", "--allocation", "2")
    with pytest.raises(InvalidInputError, match="leave one of them out"):
        release_table(design, parse_counts(COUNTS, design), allocation=1)


def test_an_empty_path_is_every_path_that_has_the_level(design: census.Release) -> None:
    table = parse_counts(COUNTS.replace("1;2", "").replace("District,1", "District,"), design)
    assert table.paths == parse_counts(COUNTS, design).paths


def test_paths_that_do_not_occur_are_not_covered(design: census.Release) -> None:
    only = "\n".join(line.replace("1;2", "1") for line in COUNTS.splitlines() if not line.startswith("Region,2"))
    plan = plan_release(design, parse_counts(only, design), digits=5)
    assert plan.worst.covered == plan.worst.worst == ((1, 1),)
    assert plan.guarantee["paths_not_covered"] == [2]
    assert "Only records of path 1, which this table has: it has no rows of path 2" in plan.guarantee["covers"]
    whole = plan_release(design, parse_counts(COUNTS, design), digits=5)
    assert plan.worst.epsilon.upper < whole.worst.epsilon.lower


def test_a_table_of_another_design_is_refused(design: census.Release) -> None:
    other = census.Release("other", "", "", {"Nation": {"age": Fraction(1)}}, {1: ()})
    with pytest.raises(InvalidInputError, match="read for the design"):
        planned_noise(other, parse_counts(COUNTS, design), None)


def test_noise_that_becomes_equal_when_drawn_is_counted_twice() -> None:
    """Two parameters between two doubles are drawn as one: both still count."""
    near = Composition([DiscreteGaussian(2), DiscreteGaussian(2 + Fraction(1, 10**30))])
    assert drawn_composition(near) == Composition({DiscreteGaussian(drawn_sigma2(2)): 2})


def test_an_audit_says_what_it_is_of(folder: Path) -> None:
    pytest.importorskip("opendp")
    result = run(
        "audit", str(folder / "survey.toml"), "--draws", "1000", "--confidence", "0.999999999", "--pair", "1,2"
    )
    assert result.exit_code == 0, result.output
    assert "three levels: pair (1, 2)\n" in result.stdout
    assert "a record of path 1 replaced by one of path 2" in result.stdout


def test_a_record_that_is_added_or_removed_has_one_path(design: census.Release) -> None:
    alone = replace(design, relation=ADD_REMOVE)
    found = worst_pairs(alone, [1, 2], "1e-10")
    assert found.covered == ((1, 0), (2, 0))
    assert (found.noun, found.names) == ("path", ["2"])
    numbered = census.Release("zero", "", "", design.table, {0: (), 1: ("District",)})
    assert worst_pairs(numbered, [1], "1e-10").covered == ((1, 1),)
    assert neighbours(numbered.relation).briefly == "one record replaced by any other"
    assert found.epsilon.upper < worst_pairs(design, [1, 2], "1e-10").epsilon.lower
    one = [Composition(a.mechanisms).epsilon_bounds("1e-10") for a in design.allocations.values()]
    assert found.epsilon.upper >= max(bounds.lower for bounds in one)
    assert "one record added or removed" in plan_release(alone, parse_counts(COUNTS, alone)).guarantee["covers"]


def test_equal_pairs_are_accounted_once_and_named_alike(
    design: census.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = census.Release("twins", "", "", design.table, {1: (), 2: (), 3: ("District",)})
    done: list[int] = []
    found = worst_pairs(twins, [1, 2], "1e-10", done.append)
    assert done == [3]
    assert found.worst == ((1, 1), (1, 2), (2, 2))
    monkeypatch.setattr(path_noise, "drawn_composition", lambda composition: composition)
    assert len(worst_pairs(twins, [1, 2, 3], "1e-10").covered) == 6


def test_paths_in_words() -> None:
    assert listed([4]) == "path 4"
    assert listed([1, 2, 7]) == "paths 1, 2 and 7"
    assert listed(range(1, 44)).endswith("19, 20 and 23 more")


@pytest.mark.parametrize(
    ("encoding", "separator"), [("utf-8", ";"), ("utf-8-sig", "\t"), ("utf-16", ";"), ("utf-16", "\t")]
)
def test_counts_as_spreadsheets_save_them(folder: Path, design: census.Release, encoding: str, separator: str) -> None:
    rows = list(csv.reader(COUNTS.replace("Northeast", "Größe; a, b").replace('"', "").splitlines()))
    rows = [[*row[:4], *row[-2:]] for row in rows]
    with (folder / "sheet.csv").open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    table = read_counts(folder / "sheet.csv", design)
    assert table.paths == parse_counts(COUNTS, design).paths
    assert is_table_of_counts(folder / "sheet.csv")


def test_a_workbook_is_refused_with_what_to_do(folder: Path) -> None:
    pytest.importorskip("opendp")
    for name in ("counts.xlsx", "counts.ods", "COUNTS.XLS"):
        (folder / name).write_bytes(b"PK\x03\x04" + SECRET.encode())
        assert "save the sheet as CSV UTF-8" in refusal(folder, name)
    (folder / "renamed.csv").write_bytes(b"PK\x03\x04\xff" + SECRET.encode())
    assert "CSV UTF-8" in refusal(folder, "renamed.csv")


def test_the_design_comes_first_and_the_old_order_still_works(folder: Path) -> None:
    pytest.importorskip("opendp")
    head = "## a remark\n# bypassed 1:\n# bypassed 2: District\nlevel,query,rho\n"
    (folder / "budget.csv").write_text(head + "Nation,age,1/2\nRegion,age,1\nRegion,sex,1/2\nDistrict,sex,1\n")
    orders = [("survey.toml", "counts.csv"), ("budget.csv", "counts.csv")]
    for i, names in enumerate([*orders, *((counts, design) for design, counts in orders)]):
        output = str(folder / f"n{i}.csv")
        result = run("release", *(str(folder / name) for name in names), "-o", output, "--digits", "5")
        assert result.exit_code == 0, result.output
        assert json.loads((folder / f"n{i}.noise.json").read_text())["guarantee"]["worst_pairs"] == [[1, 2]]
    for names in (("dhc-persons-us", "counts.csv"), ("counts.csv", "dhc-persons-us")):
        inputs = [str(folder / name) if "." in name else name for name in names]
        sentence = refused(run("release", *inputs, "-o", str(folder / "no.csv")))
        assert "A path must be one of the allocations 1, 2, 3" in sentence or "A level must be one of US" in sentence
        assert SECRET not in sentence
    mixed_up = refused(
        run("release", str(folder / "counts.csv"), str(folder / "counts.csv"), "-o", str(folder / "no.csv"))
    )
    assert "DESIGN must be a budget file" in mixed_up
    assert "No such file" in refused(
        run("release", str(folder / "survey.toml"), "nowhere.csv", "-o", str(folder / "no.csv"))
    )


def test_what_opendp_draws_for_a_mechanism() -> None:
    assert drawn_mechanism(DiscreteGaussian(4, sensitivity=3)) == DiscreteGaussian(4, sensitivity=3)
    for scale in ("1/3", "2", "0.1", "12345678901234567/3"):
        drawn = drawn_mechanism(DiscreteLaplace(scale, sensitivity=2))
        assert isinstance(drawn, DiscreteLaplace)
        assert 0 <= drawn.scale / Fraction(scale) - 1 < Fraction(1, 10**15)
        assert Fraction(float(drawn.scale)) == drawn.scale
        assert drawn.sensitivity == 2
    with pytest.raises(InvalidInputError, match="Found RandomizedResponse"):
        drawn_mechanism(RandomizedResponse(1))


@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_discrete_laplace_noise_has_the_exact_distribution(scale: float) -> None:
    pytest.importorskip("opendp")
    n, mechanism = 40_000, DiscreteLaplace(Fraction(scale))
    seen = Counter(value - 7 for value in opendp_laplace_noise([7] * n, scale))
    cells = [x for x in range(-60, 61) if n * mechanism.pmf(x) > 10]
    expected = np.array([n * mechanism.pmf(x) for x in cells])
    assert np.sum((np.array([seen[x] for x in cells]) - expected) ** 2 / expected) < chi2.isf(1e-9, len(cells))


def test_a_query_with_laplace_noise_gets_it(design: census.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[float]] = {"gaussian": [], "laplace": []}

    def sampler(kind: str) -> Sampler:
        def draw(counts: Sequence[int], scale: float) -> list[int]:
            drawn[kind] += [scale] * len(counts)
            return list(counts)

        return draw

    monkeypatch.setattr(noisy_table, "opendp_noise", sampler("gaussian"))
    monkeypatch.setattr(noisy_table, "opendp_laplace_noise", sampler("laplace"))
    monkeypatch.setattr(noisy_table, "opendp_version", lambda: "0")
    mixed = replace(design, noise={("Region", "sex"): CellNoise("discrete laplace", sensitivity=2, cells=3)})
    noisy = release_table(mixed, parse_counts(COUNTS, mixed))
    assert len(drawn["gaussian"]) == 8
    assert [scale**2 for scale in sorted(drawn["laplace"])] == pytest.approx([1.2, 2])
    assert noisy.certificate is None
    said = noisy.statement["guarantee"]
    assert said["certificate_is_of"].startswith("nothing: certificates are of discrete Gaussian")
    assert "each record in as many cells" in said["covers"]
    assert "make_gaussian and make_laplace" in noisy.statement["sampler"]
    entry = next(e for e in noisy.statement["noise"] if e["paths"] == [2] and e["query"] == "sex")
    assert (entry["kind"], entry["sensitivity"], entry["cells_of_one_record"]) == ("DiscreteLaplace", 2, 3)
    assert Fraction(entry["scale_drawn"]) == Fraction(entry["scale"]) >= Fraction(entry["scale_of_the_design"])
    worst = Counter({DiscreteGaussian(drawn_sigma2(s)): 1 for s in (2, "3/5")})
    worst[DiscreteLaplace(entry["scale_drawn"], sensitivity=2)] = 3
    assert Composition(worst + worst).epsilon_bounds("1e-10") == noisy.epsilon
    assert said["worst_pairs"] == [[2, 2]]


def test_noise_that_opendp_does_not_draw_for_counts_is_refused(design: census.Release) -> None:
    smooth = replace(design, noise={("Region", "sex"): CellNoise("gaussian")})
    with pytest.raises(InvalidInputError, match=r"Found Gaussian\("):
        plan_release(smooth, parse_counts(COUNTS, smooth))
