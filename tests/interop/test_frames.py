"""Results as data frames, files and HTML: every number reads back, every text is only a text."""

from __future__ import annotations

import csv
import math
import sys
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from one_of_each import DESIGN, EVIL, HUGE, IN_BALLS, OBJECTS, STUDY

from exactdp import InvalidInputError
from exactdp.accounting.cross_check import CrossCheck
from exactdp.accounting.explanation import Explanation
from exactdp.census.grids import ARGUMENTS, Grids
from exactdp.census.study import make_study
from exactdp.errors import MissingExtraError
from exactdp.guarantees.comparison import Comparison
from exactdp.interop import frames
from exactdp.interop.result_tables import table_of
from exactdp.mechanisms.mechanism import Mechanism

LIBRARIES = ["pandas", "polars"]
ROWS = [
    {"text": EVIL, "whole": 1, "real": 0.1, "exact": Fraction(1, 10), "mixed": 1, "big": 10**30, "yes": True, "gap": 1},
    {"text": "", "whole": -(2**63), "real": math.inf, "exact": Fraction(2), "mixed": "a", "big": 1, "yes": False},
]


def columns(frame: Any) -> dict[str, list[Any]]:
    return {name: frame[name].to_list() for name in frame.columns}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param)
    return request.param


def test_frames_of_rows(library: Any) -> None:
    frame = frames.to_frame(ROWS, library)
    found = columns(frame)
    assert found.pop("gap")[0] == 1
    assert found == {
        "text": [EVIL, ""],
        "whole": [1, -(2**63)],
        "real": [0.1, math.inf],
        "exact": [0.1, 2.0],
        "mixed": ["1", "a"],
        "big": [str(10**30), "1"],
        "yes": [True, False],
    }
    assert columns(frames.to_frame({"one": ROWS[1], "two": ROWS[1]}, library))["name"] == ["one", "two"]
    assert columns(frames.to_frame({"a": 1, "b": Fraction(1, 10**400)}, library)) == {
        "a": [1],
        "b": [str(Fraction(1, 10**400))],
    }


def test_frames_of_a_study(library: Any) -> None:
    frame = frames.to_frame(STUDY, library)
    found = columns(frame)
    assert list(found) == ["pair", "quantity", "argument", "lower", "upper"]
    assert frame.shape == (len(STUDY.results) * 4, 5)
    first = STUDY.results[0]
    assert found["pair"][:4] == [f"{first.pair[0]},{first.pair[1]}"] * 4
    assert found["quantity"][:4] == ["delta", "epsilon", "epsilon", "beta"]
    assert found["argument"][:4] == [1 / 3, 1e-5, 1e-10, 0.1]
    assert found["upper"][:4] == [first.delta[0][1], first.epsilon[0][1], first.epsilon[1][1], first.beta[0][1]]
    exact = columns(frames.to_frame(IN_BALLS, library))
    assert exact["lower"][0] == str(IN_BALLS.results[0].delta[0][0])


@pytest.mark.parametrize("name", [n for n, x in OBJECTS.items() if hasattr(x, "_repr_html_")])
def test_every_result_has_a_frame(name: str, library: Any) -> None:
    table = table_of(OBJECTS[name])
    frame = frames.to_frame(OBJECTS[name], library)
    assert frame.shape == (len(table.rows), len(table.columns))


def test_frames_of_several_results(library: Any) -> None:
    two = [OBJECTS["comparison"], OBJECTS["infinite comparison"]]
    found = columns(frames.to_frame(two, library))
    assert found["quantity"] == ["epsilon", "delta"]
    assert found["lower"] == [c.exact[0] for c in two]
    assert found["shortcut_understates"] == [c.shortcut_understates for c in two]
    risks = columns(frames.to_frame({"ours": OBJECTS["risk"], EVIL: OBJECTS["risk"]}, library))
    assert risks["name"] == ["ours"] * 5 + [EVIL] * 5
    assert risks["upper"][0] == OBJECTS["risk"].advantage[1]
    assert list(columns(frames.to_frame([], library))) == []


def test_csv_reads_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "Täble.CSV"
    frames.write_table([{**ROWS[0], "third": Fraction(1, 3)}, {**ROWS[1], "huge": Fraction(10**400)}], path)
    with path.open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["text"], first["exact"], first["huge"], first["yes"]) == (EVIL, "0.1", "", "True")
    assert (float(first["third"]), first["third_exact"]) == (1 / 3, "1/3")
    assert (second["text"], float(second["real"]), second["huge"], second["gap"]) == ("", math.inf, "1" + "0" * 400, "")
    frames.write_table(STUDY, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(STUDY.results) * 4
    assert (float(rows[0]["argument"]), rows[0]["argument_exact"]) == (1 / 3, "1/3")
    bounds = (b for result in STUDY.results for name in ARGUMENTS for b in getattr(result, name))
    for row, (lower, upper) in zip(rows, bounds, strict=True):
        assert (float(row["lower"]), float(row["upper"])) == (lower, upper)
        assert Decimal(row["lower"]) <= Decimal(lower)
        assert Decimal(row["upper"]) >= Decimal(upper)
    assert [p.name for p in tmp_path.iterdir()] == ["Täble.CSV"]


@pytest.mark.parametrize("engine", ["pyarrow", "polars"])
def test_parquet_reads_back(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(engine)
    reader = pytest.importorskip("polars")
    if engine == "polars":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    frames.write_table(OBJECTS["curve"], tmp_path / "curve.parquet")
    found = reader.read_parquet(tmp_path / "curve.parquet")
    assert found["beta"].to_list() == OBJECTS["curve"].beta.tolist()
    frames.write_table(ROWS, tmp_path / "rows.parquet")
    assert columns(reader.read_parquet(tmp_path / "rows.parquet")) == columns(frames.to_frame(ROWS, "polars"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["curve.parquet", "rows.parquet"]


def test_missing_libraries_name_their_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in LIBRARIES:
        with pytest.raises(MissingExtraError, match=rf"pip install 'exactdp\[{name}\]'"):
            frames.to_frame(ROWS, name)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match=r"^Parquet needs .*pip install 'exactdp\[parquet\]'"):
        frames.write_table(ROWS, tmp_path / "a.parquet")
    frames.write_table(ROWS, tmp_path / "a.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["a.xlsx", "a", ".csv", "csv"])
def test_other_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"\.csv or \.parquet"):
        frames.write_table(ROWS, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        3,
        "text",
        [1, 2],
        {1: 2},
        [{"a": []}],
        [{"a": 1j}],
        {"a": {"name": 1}},
        [{"a": Fraction(10**5000)}],
        [{"a": "\ud800"}],
    ],
    ids=range(9),
)
def test_what_is_no_table_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        frames.write_table(value, tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


def test_another_library_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="pandas, polars"):
        frames.to_frame(ROWS, "dask")  # type: ignore[arg-type]


class Cells(HTMLParser):
    """The tags of a text and the texts of its cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert attrs in ([], [("scope", "col")])
        self.tags.append(tag)
        self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


HOSTILE = {
    "opinion": OBJECTS["opinion"],
    "cross_check": CrossCheck(Fraction(1), (OBJECTS["opinion"],)),
    "no opinion": CrossCheck(Fraction(1), ()),
    "explanation": Explanation(HUGE, 1, 1, EVIL, EVIL, 1, 0.0, 0.0, EVIL, ((EVIL, EVIL),)),
    "comparison": Comparison(EVIL, HUGE, (0.0, 1.0), 0.5, 1.0, math.nan),
    "hostile study": make_study(DESIGN, Grids.read()),
}


@pytest.mark.parametrize("name", [n for n, x in (OBJECTS | HOSTILE).items() if hasattr(x, "_repr_html_")])
def test_html_is_a_plain_table_whatever_the_texts(name: str) -> None:
    value = (OBJECTS | HOSTILE)[name]
    text = frames.as_html(value)
    assert set(Cells(text).tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert "<script" not in text
    assert text.count("<tr>") <= frames.MOST_ROWS + 1


def test_html_shows_texts_as_they_are() -> None:
    text = frames.html_table(EVIL, [EVIL, "b"], [[EVIL, 0.1], [None, Fraction(1, 3)]])
    shown = Cells(text)
    assert [c.strip() for c in shown.cells if c.strip()] == [EVIL, EVIL, "b", EVIL, "0.1", "1/3"]
    assert shown.tags.count("td") == 4


def test_html_of_many_rows_says_so() -> None:
    assert f"the first {frames.MOST_ROWS} of {len(STUDY.results) * 4:,} rows" in STUDY._repr_html_()


def test_every_result_class_has_html() -> None:
    for value in OBJECTS.values():
        if isinstance(value, Mechanism):
            assert not hasattr(value, "_repr_html_")
        else:
            assert value._repr_html_() == frames.as_html(value)
