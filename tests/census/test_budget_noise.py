"""Budget files that say who the neighbours are, which noise a query has and whether the full path is taken."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactdp
from exactdp.census.budget_csv import budget_csv
from exactdp.census.budget_files import budget_toml, parse_budget
from exactdp.census.cell_noise import KINDS, CellNoise
from exactdp.census.releases import RELATIONS, Release
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace

SURVEY = """
title = "Survey"
relation = "add/remove"
[levels.Nation]
age = { rho = "1/3", sensitivity = 2, cells = 3, noise = "discrete laplace" }
sex = 0.25
income = { sigma = "3/2", noise = "Gaussian" }
[levels.Region]
age = { scale = "5/2" }
sex = { sigma2 = 4, cells = 2 }
[bypassed]
1 = []
2 = ["Region"]
"""
AS_CSV = """# title: Survey
# relation: add/remove
# bypassed 1:
# bypassed 2: Region
level;query;rho;sigma;scale;sigma2;sensitivity;cells;noise
Nation;age;1/3;;;;2;3;discrete laplace
Nation;sex;0.25;;;;;;
Nation;income;;3/2;;;;;gaussian
Region;age;;;5/2;;;;
Region;sex;;;;4;;2;
"""
US = "[levels.US]\n"


def toml(text: str) -> Release:
    return parse_budget(text.encode(), "design.toml")


def csv(text: str) -> Release:
    return parse_budget(text.encode(), "design.csv")


def test_a_design_in_both_formats() -> None:
    design = toml(SURVEY)
    assert design.relation == "add/remove"
    assert design.table == {
        "Nation": {"age": Fraction(1, 3), "sex": Fraction(1, 4), "income": Fraction(4, 9)},
        "Region": {"age": Fraction(4, 25), "sex": Fraction(1, 4)},
    }
    assert design.noise == {
        ("Nation", "age"): CellNoise("discrete laplace", 2, 3),
        ("Nation", "income"): CellNoise("gaussian"),
        ("Region", "age"): CellNoise("discrete laplace"),
        ("Region", "sex"): CellNoise(cells=2),
    }
    assert design.allocations[1].mechanism("Region", "age") == DiscreteLaplace("5/2")  # the scale that was written
    again = csv(AS_CSV)
    assert again.fingerprint == design.fingerprint
    assert again.noise == design.noise


def test_shares_have_tables_too() -> None:
    design = toml('unit = "share"\ntotal_rho = 3\n' + US + 'a = { share = "1/3", cells = 2 }\nb = "2/3"')
    assert design.table == {"US": {"a": Fraction(1), "b": Fraction(2)}}
    assert design.noise == {("US", "a"): CellNoise(cells=2)}
    assert csv("# total_rho: 3\nlevel,query,share,cells\nUS,a,1/3,2\nUS,b,2/3,\n").noise == design.noise


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (US + "a = { rho = 1, sensitvity = 2 }", "Found sensitvity in level US, query a"),
        (US + "a = { sensitivity = 2 }", "must have one of rho, sigma2, sigma, scale, share. Found none of them"),
        (US + "a = { rho = 1, sigma2 = 1 }", "Found rho and sigma2 in level US, query a"),
        (US + "a = { share = 1 }", 'Found share with unit = "rho"'),
        ('unit = "share"\ntotal_rho = 1\n' + US + "a = { rho = 1 }", 'Found rho with unit = "share"'),
        (US + "a = { rho = 1, sensitivity = 0 }", "at least 1. Found 0 in level US, query a."),
        (US + "a = { rho = 1, sensitivity = 1.5 }", "sensitivity must be a whole number such as 2. Found 1.5"),
        (US + "a = { rho = 1, cells = true }", "cells must be a whole number such as 2. Found True"),
        (US + "a = { rho = 1, cells = 1000001 }", "cells must be at most 1000000. Found 1000001 in level US, query a."),
        (
            US + 'a = { rho = 1, noise = "laplace" }',
            "one of discrete gaussian, gaussian, discrete laplace. Found laplace",
        ),
        (
            US + 'a = { scale = 1, noise = "gaussian" }',
            "scale is of Laplace noise. Found the noise gaussian in level US",
        ),
        (US + 'a = { sigma2 = 1, noise = "discrete laplace" }', "give scale or rho"),
        (US + "a = { scale = 1e10 }", "scale must be between 0.0317 and 1e+09"),
        (US + "a = { rho = 1, sensitivity = 2000 }", "Found 2000 / 1 in level US, query a."),
        ('relation = "swap"\n' + US + "a = 1", "relation must be one of replace, add/remove. Found swap."),
        (US + 'a = 1\nrelation = "add/remove"', "relation must stand above the first level. Found it in level US"),
        ("full_path = 3\n" + US + "a = 1", "full_path must be true, or false where no record takes"),
        ("full_path = false\n" + US + "a = 1", "Found no other path; remove full_path."),
        (
            "full_path = false\n" + US + "a = 1\n[levels.State]\na = 1\n[bypassed]\n1 = []\n2 = ['State']",
            "Found that path among the bypassed sets",
        ),
    ],
)
def test_slips_are_named(text: str, sentence: str) -> None:
    with pytest.raises(exactdp.InvalidInputError) as refused:
        toml(text)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("level,query,rho,rho\nUS,a,1,1", "Found level,query,rho,rho."),
        ("level,query,cells\nUS,a,1", "The header must be level,query and then one of"),
        ("level,query,rho,size\nUS,a,1,1", "Found level,query,rho,size."),
        ("level,query,rho,sigma2\nUS,a,1,1", "Found rho and sigma2 in level US, query a"),
        ("level,query,rho,cells\nUS,a,,2", "Found none of them in level US, query a"),
        (
            "level;query;rho\nUS;a;0,5",
            "rho must be written with a decimal point. Found 0,5 in level US, query a; write 0.5.",
        ),
        ("level;a\nUS;,5", "write .5."),
        ("# relation: x\nlevel,a\nUS,1", "relation must be one of"),
        ("# full_path: maybe\nlevel,a\nUS,1", "full_path must be true"),
    ],
)
def test_slips_in_csv_are_named(text: str, sentence: str) -> None:
    with pytest.raises(exactdp.InvalidInputError) as refused:
        csv(text)
    assert sentence in str(refused.value)


def test_the_full_path_is_there_unless_the_file_says_otherwise() -> None:
    levels = US + "a = 1\n[levels.State]\na = 1\n[levels.County]\na = 1\n[bypassed]\n"
    assert toml(levels + "1 = ['State']\n2 = ['County']").bypassed == {1: ("State",), 2: ("County",), 3: ()}
    assert toml(levels + "2 = ['State']\n4 = ['County']").bypassed == {2: ("State",), 4: ("County",), 1: ()}
    assert toml(levels + "7 = ['State']\n9 = []").bypassed == {7: ("State",), 9: ()}
    assert toml(levels).bypassed == {1: ()}
    without = toml("full_path = false\n" + levels + "1 = ['State']")
    assert without.bypassed == {1: ("State",)}
    assert (
        csv("# full_path: false\n# bypassed 1: State\nlevel,a\nUS,1\nState,1\nCounty,1\n").bypassed == without.bypassed
    )
    assert csv("# bypassed 2: State\nlevel,a\nUS,1\nState,1\n").bypassed == {2: ("State",), 1: ()}
    assert csv("# full_path: True\nlevel,a\nUS,1\n").bypassed == {1: ()}
    assert "full_path = false" in budget_toml(without)
    assert "# full_path: false" in budget_csv(without)


def test_queries_may_be_called_like_the_new_words() -> None:
    """Files of earlier versions go on working."""
    design = toml(US + "noise = 1\nscale = '1/2'\nrelation = 3\ncells = 1\nsensitivity = 1\nsigma = 2")
    assert list(design.table["US"]) == ["noise", "scale", "relation", "cells", "sensitivity", "sigma"]
    assert csv("level,noise,cells\nUS,1,2\n").table == {"US": {"noise": 1, "cells": 2}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_every_separator_and_encoding_of_spreadsheets(between: str, encoding: str) -> None:
    text = "# title: Größe\r\nlevel,sex,age\r\nUS,1/3,\r\nState,0.5,2e-1\r\n".replace(",", between)
    design = parse_budget(text.encode(encoding), "design.csv")
    assert design.title == "Größe"
    assert design.table == {"US": {"sex": Fraction(1, 3)}, "State": {"sex": Fraction(1, 2), "age": Fraction(1, 5)}}


NOISES = st.builds(CellNoise, st.sampled_from(KINDS), st.integers(1, 5), st.integers(1, 4))
BUDGETS = st.fractions(min_value=Fraction(1, 1000), max_value=5, max_denominator=1000)


@settings(deadline=None)
@given(
    st.sampled_from(RELATIONS),
    st.dictionaries(st.sampled_from(["a", "b * c", "d;e"]), st.tuples(BUDGETS, st.none() | NOISES), min_size=1),
    st.dictionaries(st.integers(1, 9), st.sampled_from([(), ("State",), ("County",), ("State", "County")]), min_size=1),
)
def test_what_is_written_reads_back(
    relation: str, queries: dict[str, tuple[Fraction, CellNoise | None]], paths: dict[int, tuple[str, ...]]
) -> None:
    levels = ("US", "State", "County")
    table = {level: {query: rho for query, (rho, _) in queries.items()} for level in levels}
    noise = {(level, query): n for level in levels for query, (_, n) in queries.items() if n is not None}
    design = Release("design", "Design", "", table, paths, relation, noise)
    for again in (toml(budget_toml(design)), csv(budget_csv(design)), exactdp.from_json(exactdp.to_json(design))):
        assert (again.table, again.bypassed, again.relation, again.noise) == (table, paths, relation, design.noise)
        assert list(again.bypassed) == list(paths)
        assert again.fingerprint == design.fingerprint
