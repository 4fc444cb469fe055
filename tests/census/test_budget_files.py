from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactdp
from exactdp import census
from exactdp.census.budget_files import MOST_BYTES, budget_toml, parse_budget, read_budget

BY_HAND = b"""
title = "My survey"
source = "Planning office"
total_rho = "1.5"
[levels.US]
"age * sex" = "73/10000"
detailed = 0.4927
[levels.State]
sex = 1
[bypassed]
1 = []
2 = ["State"]
"""
TABLE = {"US": {"age * sex": Fraction(73, 10000), "detailed": Fraction(4927, 10000)}, "State": {"sex": Fraction(1)}}
HALVES = {"US": {"age": Fraction(1, 2)}, "State": {"age": Fraction(1, 6), "sex": Fraction(1, 3)}}


def toml(text: str) -> census.Release:
    return parse_budget(text.encode(), "design.toml")


def table_of(text: str) -> object:
    """The table of a CSV text, with the order of its levels."""
    table = parse_budget(text.encode(), "design.csv").table
    return table, list(table)


def test_toml_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "survey.v2.toml"
    path.write_bytes(BY_HAND)
    design = read_budget(path)
    assert read_budget(str(path)) == design
    assert (design.name, design.title, design.source) == ("survey.v2", "My survey", "Planning office")
    assert design.table == TABLE
    assert list(design.table) == ["US", "State"]
    assert design.bypassed == {1: (), 2: ("State",)}
    assert {allocation.rho for allocation in design.allocations.values()} == {Fraction(3, 2)}
    assert design.pair(1, 2).rho == Fraction(3, 2)


def test_defaults_and_spellings() -> None:
    design = parse_budget(b'\xef\xbb\xbf[levels." Block  Group "]\r\nsex = 1_0.0_5e-1\r\n', "Plan.TOML")
    assert (design.name, design.title, design.source) == ("Plan", "Plan", "Plan.TOML")
    assert design.table == {"Block Group": {"sex": Fraction(201, 200)}}
    assert design.bypassed == {1: ()}


@pytest.mark.parametrize("name", census.release_names())
def test_round_trip_of_the_built_in_releases(name: str) -> None:
    release = census.release(name)
    again = parse_budget(budget_toml(release).encode(), f"{name}.toml")
    assert again == release
    assert list(again.table) == list(release.table)
    assert [list(queries) for queries in again.table.values()] == [list(q) for q in release.table.values()]


NO_QUERIES = {"title", "source", "unit", "total_rho", "rho", "sigma2", "share", "level", "levels", "query", "bypassed"}
awkward = st.text("ab.*\"'\\#=[]-é漢", min_size=1, max_size=6)
names = st.one_of(awkward, awkward, awkward, st.text(st.characters(codec="utf-8"), min_size=1, max_size=8))
budgets = st.fractions(Fraction(1, 10**6), Fraction(50), max_denominator=10**9)


@given(st.dictionaries(names, st.dictionaries(names, budgets, min_size=1, max_size=3), min_size=1, max_size=4), names)
def test_what_is_written_is_read_again(table: dict[str, dict[str, Fraction]], title: str) -> None:
    release = census.Release("design", title, "", table, {3: tuple(table)[1:], 1: ()})
    try:
        text = budget_toml(release)
    except exactdp.InvalidInputError:
        assert any(
            not name.isprintable() or name != " ".join(name.split()) or name.lower() in NO_QUERIES
            for name in (title, *table, *(query for queries in table.values() for query in queries))
        )
    else:
        again = toml(text)
        assert (again.table, list(again.table), again.bypassed) == (table, list(table), release.bypassed)


def test_units() -> None:
    cells = '[levels.US]\nage = "{}"\n[levels.State]\nage = "{}"\nsex = "{}"\n'
    assert toml(cells.format("1/2", "1/6", "1/3")).table == HALVES
    assert toml('unit = "sigma2"\n' + cells.format(2, 6, "3.0")).table == HALVES
    assert toml('unit = "sigma2"\ntotal_rho = 1\n' + cells.format(2, 6, "3.0")).table == HALVES
    share = 'unit = "share"\ntotal_rho = "1.50"\n'
    tripled = {level: {query: rho * 3 / 2 for query, rho in queries.items()} for level, queries in HALVES.items()}
    assert toml(share + cells.format("1/2", "1/6", "1/3")).table == tripled
    within = cells.format("1", "1/3", "2/3") + "[level_shares]\nState = 0.5\nUS = 0.5\n"
    assert toml(share + within).table == tripled
    assert list(toml(share + within).table) == ["US", "State"]


@pytest.mark.parametrize(
    "text",
    [
        "level,age,sex\nUS,1/2,\nState,1/6,1/3\n",
        "level,query,rho\nUS,age,0.5\nState,age,1/6\nState,sex,1/3",
        "Level, Query, Sigma2\nUS, age, 2\nState, age, 6\n,,\nState, sex, 3\n",
        "# unit: sigma2\n# total_rho: 1\nlevel,age,sex\nUS,2,\nState,6,3\n",
        "# unit: share\r\n# total_rho: 1\r\n\r\nlevel;age;sex\r\nUS;1/2;\r\nState;1/6;1/3\r\n",
        "\ufeff## a remark\n#\nlevel,age,sex\n## another, remark\nUS,1/2,\n\nState,1/6,1/3",
        '"# unit: sigma2",,,\nlevel,"age",sex,\nUS,"2",,\n,,,\nState,6,3,\n',
        "level;age;sex\rUS;1/2;\rState;1/6;1/3",
        "# unit: sigma2\nlevel,query,sigma2\nUS,age,2\nState,sex,3\nState,age,6\n",
    ],
)
def test_csv_spellings(text: str) -> None:
    assert table_of(text) == (HALVES, ["US", "State"])


def test_csv_settings() -> None:
    text = (
        "# title: My survey, part 2: persons\n# source: Office\n# bypassed 7: Block  Group; State\n# bypassed 1:\n"
        'level;"age, or ""years""";sex\nUS;1;2\nState;1;2\nBlock Group;;1e-2\n'
    )
    design = parse_budget(text.encode(), "a.csv")
    assert (design.title, design.source) == ("My survey, part 2: persons", "Office")
    assert design.bypassed == {7: ("Block Group", "State"), 1: ()}
    assert design.table["US"] == {'age, or "years"': 1, "sex": 2}
    assert design.table["Block Group"] == {"sex": Fraction(1, 100)}
    assert design.allocations[7].rho == Fraction(601, 100)


US = "[levels.US]\n"
TWO = US + "a = 1\n[levels.State]\na = 1\n"
SHARE = 'unit = "share"\ntotal_rho = 1\n'
BAD_TOML = [
    ("", "must have at least one level. Found none"),
    ("[levels]", "must have at least one level. Found none"),
    (US, "must have at least one query. Found none in level US"),
    ("levels = 3", "levels must be a table, such as [levels]. Found 3."),
    ("[levels]\nUS = 3", "Found 3 for US."),
    (US + "a = 1/3", "not valid TOML at line 2, column 6"),
    ("[levels.Block Group]\na = 1", "not valid TOML at line 1, column 15"),
    (US + "a = 1\na = 2", "not valid TOML at "),
    (US + "a = 1\n[levels.US]\nb = 2", "Cannot declare ('levels', 'US') twice"),
    ('title = "', "not valid TOML at end of document"),
    (US + "a = " + "9" * 5000, "number of thousands of digits"),
    ("a = " + "[" * 100_000, "lists within lists"),
    ("a." * 100_000 + "a = 1", "at most 50 dots. Found more in line 1"),
    (
        "units = 1\n" + US + "a = 1",
        "one of format, version, title, source, unit_of_privacy, relation, unit, total_rho, zcdp_rho, full_path, levels, "
        "level_shares, bypassed. Found units.",
    ),
    (US + "a = 1\n[levels.' US']\na = 1", "Level names must differ. Found US twice."),
    (US + "a = 1\n'a ' = 1", "Query names must differ. Found a twice in level US."),
    ("[levels.'']\na = 1", "The name of a level must not be empty."),
    (US + "'\\u0007' = 1\n\"\\u0007\" = 1", r"printable text of at most 200 characters. Found '\x07'."),
    (f"[levels.{'x' * 201}]\na = 1", "The name of a level must be a printable text of at most 200 characters."),
    ("title = 3\n" + US + "a = 1", "title must be a printable text of at most 1000 characters. Found 3."),
    (US + "a = 1\ntotal_rho = 1", "A query cannot be called total_rho"),
    ("[levels.St.Louis]\na = 1", "Found a in level St, query Louis; put a name with a dot in quotation marks."),
    (US + "a = 'x'", "rho must be a number such as 0.0073, 73/10000 or 1e-3. Found x in level US, query a."),
    (US + "a = ''", "Found nothing in level US, query a."),
    (US + "a = true", "Found True in level US, query a."),
    (US + "a = [1]", "Found [1] in level US, query a."),
    (US + "a = 2020-01-01", "Found 2020-01-01 in level US, query a."),
    (US + "a = nan", "Found nan in level US, query a."),
    (US + "a = -inf", "Found -inf in level US, query a."),
    (US + "a = '0,5'", "decimal point. Found 0,5 in level US, query a; write 0.5."),
    (US + "a = '1e5_'", "Found 1e5_ in level US, query a."),
    (US + "a = '\u0663'", "Found \u0663 in level US, query a."),
    (US + "a = '1/0'", "rho must not have a zero denominator. Found 1/0 in level US, query a."),
    (US + "a = 0", "rho must be positive. Found 0 in level US, query a."),
    (US + "a = '-1/7'", "rho must be positive. Found -1/7 in level US, query a."),
    (US + "a = 1e999999999", "decimal exponent of at most 100000 in size. Found 1e999999999 in level US, query a."),
    (US + f"a = '{'1' * 5000}'", "at most 4000 characters. Found 5000 of them in level US, query a."),
    (US + "a = 1000.1", "rho must be between 1e-18 and 1000. Found 1000.1 in level US, query a."),
    (US + "a = 0.9e-18", "rho must be between 1e-18 and 1000. Found 0.9e-18 in level US, query a."),
    ("unit = 'sigma2'\n" + US + "a = '0.0009'", "sigma2 must be between 0.001 and 1e+18. Found 0.0009 in level US"),
    ("unit = 'sigma2'\n" + US + "a = '2e18'", "sigma2 must be between 0.001 and 1e+18. Found 2e18 in level US"),
    (US + "a = 600\nb = 401", "must sum to at most 1000, in rho. Found 1001."),
    ("unit = 'epsilon'\n" + US + "a = 1", "unit must be one of rho, sigma2, share. Found epsilon."),
    ("total_rho = 5\n" + US + "a = '1/3'", "must equal the sum of the budgets, 1/3 (~0.333333). Found 5"),
    ("total_rho = 1001\n" + US + "a = 1", "total_rho must be between 1e-18 and 1000. Found 1001."),
    ("unit = 'share'\n" + US + "a = 1", "Found no total_rho; add it."),
    (
        SHARE + US + "a = 0.3\nb = 0.6",
        "The shares must sum to exactly 1. Found 9/10 (~0.9), which is 0.1 too little",
    ),
    (SHARE + US + "a = 1.1", "share must be between 1e-21 and 1. Found 1.1 in level US, query a."),
    (SHARE + US + "a = 1e-99999", "share must be between 1e-21 and 1. Found 1e-99999 in level US, query a."),
    (
        SHARE + US + "a = '1e-20'\nb = 0." + "9" * 20,
        "share times total_rho must be between 1e-18 and 1000. Found 1/1000",
    ),
    ("level_shares = 3\n" + SHARE + TWO, "level_shares must be a table, such as [level_shares]. Found 3."),
    (TWO + "[level_shares]\nUS = 1", 'level_shares go with unit = "share". Found the unit rho'),
    (SHARE + TWO + "[level_shares]\nUS = 1", "Found no share of State"),
    (SHARE + TWO + "[level_shares]\nUS = 1\nCounty = 1", "must be one of US, State. Found County."),
    (
        SHARE + TWO + "[level_shares]\nUS = 1\nState = 0.5",
        "The level shares must sum to exactly 1. Found 3/2 (~1.5)",
    ),
    (SHARE + US + "a = 0.5\n[level_shares]\nUS = 1", "The shares within level US must sum to exactly 1. Found 1/2"),
    ("bypassed = 1\n" + TWO, "bypassed must be a table, such as [bypassed]. Found 1."),
    (TWO + "[bypassed]\n1 = 'State'", "Found State for 1."),
    (TWO + "[bypassed]\n1 = [2]", "Found [2] for 1."),
    (TWO + "[bypassed]\n1 = ['County']", "A bypassed level must be one of US, State. Found County in set 1."),
    (TWO + "[bypassed]\n1 = ['US']", "The top level cannot be bypassed, for no level above could take its budget."),
    (TWO + "[bypassed]\n1 = ['State', 'State']", "Found State twice in the bypassed set 1."),
    (TWO + "[bypassed]\n1 = []\n01 = []", "must have a number of its own. Found 1 twice."),
    (TWO + "[bypassed]\n0 = []", "whole number from 1 to 999999. Found 0."),
    (TWO + "[bypassed]\n-1 = []", "whole number from 1 to 999999. Found -1."),
    (TWO + "[bypassed]\n'1.5' = []", "whole number from 1 to 999999. Found 1.5."),
    (TWO + "[bypassed]\n1234567 = []", "whole number from 1 to 999999. Found 1234567."),
    (TWO + "[bypassed]\n" + "".join(f"{n} = []\n" for n in range(1, 1002)), "at most 1000 sets of bypassed levels"),
    (US + "".join(f"a{n} = 1e-3\n" for n in range(10_001)), "at most 10000 budgets. Found 10001."),
    (US + "".join(f"a{n} = '1/{10**300 + n}'\n" for n in range(9)), "rho must be between 1e-18"),
    (
        US + "".join(f"a{n} = '{10**300}/{10**301 + 2 * n + 1}'\n" for n in range(9)),
        "common denominator of at most 1,900 digits",
    ),
]
BAD_CSV = [
    ("", "must be a header such as level,sex,age or level,query,rho. Found nothing."),
    ("state,sex\nUS,1", "Found another line 1."),
    ("level\nUS", "The header must name at least one query after level."),
    ("level,sex", "must have at least one level. Found none"),
    ("level,sex\nUS,", "must have at least one query. Found none in level US"),
    ("level,sex\nUS,1\nUS,2", "Level names must differ. Found US twice."),
    ("level,sex,sex\nUS,1,", "Query names must differ. Found sex twice in the header."),
    ("level,query,rho\nUS,sex,1\nUS,sex,1", "Query names must differ. Found sex twice in level US."),
    ("level,sigma2\nUS,1", "A query cannot be called sigma2"),
    (
        "level,query,budget\nUS,sex,1",
        "one of rho, sigma2, share; further columns may be sigma, scale, sensitivity, cells, noise. "
        "Found level,query,budget.",
    ),
    ("# unit: rho\nlevel,query,sigma2\nUS,sex,1", "Found rho and sigma2."),
    ("level,query,rho\nUS,sex,", "Found nothing in level US, query sex."),
    ("level,sex\nUS,zero", "Found zero in level US, query sex."),
    ("level,sex\nUS,nan", "Found nan in level US, query sex."),
    ("level,sex\nUS,-1", "rho must be positive. Found -1 in level US, query sex."),
    ("level,sex\n,1", "The name of a level must not be empty."),
    ("level,,sex\nUS,1,1", "The name of a query must not be empty."),
    ("# title: x\nlevel,sex,age\nUS,1,1\nState,1", "Line 4 must have 3 columns, as the header has. Found 2"),
    ("level,sex\nUS,1,5", "Line 2 must have 2 columns, as the header has. Found 3"),
    ('level,sex\nUS,"1', "Line 2 is not valid CSV: unexpected end of data"),
    ('level,sex\nUS,"1"1', "Line 2 is not valid CSV"),
    (f"level,sex\nUS,{'1' * 200_000}", "Line 2 is not valid CSV: field larger than field limit"),
    ("# units: sigma2\nlevel,sex\nUS,1", "Found something else in line 1; start a remark with ##."),
    ("# unit = sigma2\nlevel,sex\nUS,1", "Found something else in line 1"),
    ("# unit: rho\n# unit: rho\nlevel,sex\nUS,1", "A setting must be given once. Found unit again in line 2."),
    ("level,sex\n# unit: sigma2\nUS,1", "Settings must stand above the header. Found one in line 2"),
    ("# unit:\nlevel,sex\nUS,1", "unit must be one of rho, sigma2, share. Found nothing."),
    ("# total_rho:\nlevel,sex\nUS,1", "total_rho must be a number such as 0.0073, 73/10000 or 1e-3. Found nothing."),
    ("# bypassed: US\nlevel,sex\nUS,1", "bypassed and a number, then a colon. Found something else in line 1"),
    ("# bypassed x: State\nlevel,sex\nUS,1", "whole number from 1 to 999999. Found x."),
    ("# bypassed 1: US\nlevel,sex\nUS,1", "The top level cannot be bypassed"),
    ("level,sex\nU\x00S,1", "Found other bytes in line 2; save it as UTF-8"),
]


def sentence_of(content: bytes, file_name: str) -> str:
    started = time.perf_counter()
    with pytest.raises(exactdp.InvalidInputError) as caught:
        parse_budget(content, file_name)
    assert time.perf_counter() - started < 5
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert len(text) < 400
    return text


@pytest.mark.parametrize(("text", "sentence"), BAD_TOML)
def test_bad_toml_gets_one_clear_sentence(text: str, sentence: str) -> None:
    assert sentence in sentence_of(text.encode(), "design.toml")


@pytest.mark.parametrize(("text", "sentence"), BAD_CSV)
def test_bad_csv_gets_one_clear_sentence(text: str, sentence: str) -> None:
    assert sentence in sentence_of(text.encode(), "design.csv")


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_budget(tmp_path / "none.toml")
    assert "must end in .toml, .csv or .json. Found a.txt" in sentence_of(BY_HAND, "a.txt")
    assert "must end in .toml, .csv or .json. Found toml" in sentence_of(BY_HAND, "toml")
    assert f"at most {MOST_BYTES} bytes. Found more in a.csv" in sentence_of(b"#" * (MOST_BYTES + 1), "a.csv")
    for name in ("a.toml", "a.csv"):
        said = sentence_of(b"# x\n\xff", name)
        assert f"The budget file {name} must be encoded in UTF-8. Found other bytes in line 2; save it as UTF-8" in said
    assert "Found a workbook (.xlsx); save the sheet as CSV UTF-8" in sentence_of(b"PK", "a.xlsx")


def test_what_cannot_be_read_again_is_not_written() -> None:
    table = {"US": {"a": Fraction(1)}}
    for name, wrong in (("a  b", "white space"), ("a\x7f", "Illegal character"), ("rho", "cannot be called rho")):
        with pytest.raises(exactdp.InvalidInputError, match=wrong):
            budget_toml(census.Release("x", "x", "x", {"US": {name: Fraction(1)}}, {1: ()}))
    with pytest.raises(exactdp.InvalidInputError, match=r"at most 1000, in rho\. Found 1001"):
        budget_toml(census.Release("x", "x", "x", {"US": {"a": Fraction(1001)}}, {1: ()}))
    with pytest.raises(exactdp.InvalidInputError, match="common denominator"):
        budget_toml(census.Release("x", "x", "x", {"US": {"a": Fraction(1, 10**5000)}}, {1: ()}))
    assert toml(budget_toml(census.Release("x", "", "", table, {1: ()}))).table == table


def test_every_path_of_a_design_has_mechanisms() -> None:
    """The largest total and the smallest budgets: whatever is bypassed, the noise stays within the limits."""
    design = toml(
        "[levels.A]\na = 1e-18\nb = '499999999999999999e-15'\n[levels.B]\na = 500\n[bypassed]\n1=[]\n2 = ['B']\n"
    )
    assert [sum(a.mechanisms.values()) for a in design.allocations.values()] == [3, 2]
    assert design.pair(2, 2).rho < 1000


HEADS = [b"", BY_HAND, US.encode(), b"level,sex\nUS,1\n", b"level,query,share\n", b"# unit: share\n# total_rho: 1\n"]
noise = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text("aU#:;,.=[]{}\"'\\/10-+e_ \n\r\t", max_size=80).map(str.encode),
    st.lists(
        st.sampled_from(
            [
                "[levels.US]",
                "a = 1",
                "[bypassed]",
                "2 = ['US']",
                "[level_shares]",
                "US = 1",
                "US,1",
                "US,a,1/2",
                '"',
                "##",
                "#",
            ]
        ),
        max_size=6,
    ).map(lambda lines: "\n".join(lines).encode()),
)


@given(st.sampled_from(HEADS), noise, st.sampled_from(["design.toml", "design.csv"]))
def test_noise_gives_a_release_or_a_sentence(head: bytes, tail: bytes, file_name: str) -> None:
    try:
        design = parse_budget(head + tail, file_name)
    except exactdp.InvalidInputError as error:
        sentence = str(error)
        if "\n" in sentence or not sentence.endswith("."):
            pytest.fail(sentence)
    else:
        assert all(allocation.rho > 0 for allocation in design.allocations.values())
        assert parse_budget(budget_toml(design).encode(), "design.toml").table == design.table
