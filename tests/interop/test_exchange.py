"""Objects as JSON and as pickles, results as data frames, files and HTML: what comes back is what was there."""

from __future__ import annotations

import csv
import json
import math
import pickle
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactdp
from exactdp import (
    ApproximateDP,
    Bounds,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    InvalidInputError,
    Outcomes,
    RandomizedResponse,
    TradeOffCurve,
)
from exactdp.accounting.certificates.certificate import certify
from exactdp.accounting.certificates.verify import Check, Verification
from exactdp.accounting.cross_check import CrossCheck, Opinion
from exactdp.accounting.explanation import Explanation
from exactdp.census.releases import Release
from exactdp.census.savings import Saving
from exactdp.census.study import Grids, make_study
from exactdp.errors import MissingExtraError
from exactdp.guarantees.comparison import Comparison
from exactdp.guarantees.risk import risk_of
from exactdp.interop import frames
from exactdp.interop.json_objects import from_json, to_json
from exactdp.mechanisms.mechanism import Mechanism
from strategies import compositions

HUGE = Fraction(10**3000 + 7, 10**2999 + 3)
EVIL = "<script>alert('\"&')</script>\u2028</td> é漢字"
TEN = 10 * DiscreteGaussian(1)
MIXED = (
    3 * DiscreteGaussian("10/3", sensitivity=2)
    + DiscreteGaussian(sigma=math.pi)
    + Gaussian(sigma=1e-3, sensitivity="1/1000")
    + DiscreteLaplace("7/3", sensitivity=3)
    + RandomizedResponse("1/10")
    + RandomizedResponse(noise="1/2", categories=10**18)
    + ApproximateDP(0, "1e-300")
    + Outcomes(["1/3", "2/3", 0], ["2/3", "1/3", 0])
)
DESIGN = Release(
    EVIL, EVIL, "", {"Ünited": {EVIL: Fraction(1, 3), "b": Fraction(2)}, "1": {"a": HUGE / 100}}, {1: (), 7: ("1",)}
)
LEVELS = ("US", "State", "County", "Tract")
SPINE = Release(
    "spine",
    "Spine",
    "",
    {level: {"a": Fraction(1, 2)} for level in LEVELS},
    {n: tuple(level for i, level in enumerate(LEVELS[1:]) if n >> i & 1) for n in range(8)},
)
STUDY = SPINE.account(epsilons=["1/3"], deltas=["1e-5", "1e-10"], alphas=[0.1])
SMALL = Release(
    "small", "Small", "", {"US": {"a": Fraction(1)}, "State": {"b": Fraction(1, 2)}}, {1: (), 2: ("State",)}
)
IN_BALLS = make_study(SMALL, Grids.read([1], ["1e-5"], [], 20))
EMPTY = np.empty((0, 3))


def decimals(*values: str) -> Any:
    result = np.empty(len(values), dtype=object)
    result[:] = [Decimal(value) for value in values]
    return result


OBJECTS: dict[str, Any] = {
    **{f"{type(m).__name__}-{i}": m for i, m in enumerate(MIXED.mechanisms)},
    "huge": DiscreteGaussian(HUGE),
    "composition": MIXED,
    "many": 10**15 * DiscreteGaussian(10**9),
    "effort": TEN.within(max_nodes=10**12 + 1),
    "floats": Bounds(-0.0, math.inf),
    "calibration": exactdp.Calibration(Fraction(3, 2), Fraction(1, 100), TEN),
    "mu": exactdp.GaussianDP(3.1755346, 3.1755664, 1.5125),
    "subnormal": Bounds(5e-324, sys.float_info.max),
    "nan": Bounds(math.nan, -math.inf),
    "decimals": Bounds(Decimal("-1.50E-400"), Decimal("Infinity")),
    "arrays": Bounds(np.array([[0.1, -0.0], [math.inf, 5e-324]]), np.array([[0.1, 0.0], [math.inf, math.nan]])),
    "empty": Bounds(EMPTY, EMPTY.copy()),
    "scalar array": Bounds(np.array(0.1), np.array(0.3)),
    "transposed": Bounds(np.arange(6.0).reshape(2, 3).T, np.arange(6.0).reshape(3, 2)),
    "decimal arrays": Bounds(decimals("0.10", "-0E-5"), decimals("1E+5", "NaN")),
    "no decimals": Bounds(np.empty(0, dtype=object), np.empty(0, dtype=object)),
    "digits": TEN.epsilon_bounds([0, "1e-5"], digits=30),
    "explanation": TEN.explain("1/3"),
    "other explanation": MIXED.explain(1),
    "curve": TEN.tradeoff(9),
    "cross_check": TEN.cross_check(3),
    "opinion": Opinion(EVIL, -math.inf, -0.0, 1e-9),
    "comparison": TEN.compare(delta=Fraction(1, 10**10)),
    "infinite comparison": MIXED.compare(epsilon=Fraction(1)),
    "risk": risk_of(TEN, Fraction(1, 20), Fraction(1, 2), Fraction(1, 10**6)),
    "saving": Saving(Fraction(5), Fraction(1, 10**400), Fraction(1, 3)),
    "design": DESIGN,
    "release": exactdp.census.release("dhc-persons-us"),
    "allocation": exactdp.census.release("dhc-persons-us").allocations[2],
    "study": STUDY,
    "study in balls": IN_BALLS,
    "certificate": certify(TEN, epsilon=3, digits=12),
    "verification": Verification(False, EVIL, (Check("a", None, "", 0.5), Check("b", True, EVIL, 0.0))),
}


def same(a: Any, b: Any) -> bool:
    """Equality by type and value, of doubles by bits (but for nan), of arrays by shape and elements."""
    if type(a) is not type(b):
        return isinstance(a, Mapping) and isinstance(b, Mapping) and same(tuple(a.items()), tuple(b.items()))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and bool(a.dtype == b.dtype) and same(a.ravel().tolist(), b.ravel().tolist())
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Mapping):
        return same(tuple(a.items()), tuple(b.items()))
    if isinstance(a, Composition):
        return same(a._effort, b._effort) and same(a.mechanisms, b.mechanisms)
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(a == b)


@pytest.mark.parametrize("name", OBJECTS)
def test_json_gives_back_the_same_object_and_the_same_text(name: str) -> None:
    text = to_json(OBJECTS[name])
    back = from_json(text)
    assert same(back, OBJECTS[name])
    assert to_json(back) == text == to_json(pickle.loads(pickle.dumps(OBJECTS[name])))
    assert text.isascii()
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))


@pytest.mark.parametrize("name", OBJECTS)
def test_pickles_give_back_the_same_object(name: str) -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert same(pickle.loads(pickle.dumps(OBJECTS[name], protocol)), OBJECTS[name])


def test_used_objects_can_be_pickled_too() -> None:
    used = 3 * DiscreteGaussian(2)
    used.delta(1)
    STUDY.epsilon("1e-6")
    assert pickle.loads(pickle.dumps(used)) == used
    assert pickle.loads(pickle.dumps(STUDY)) == STUDY


def test_every_public_class_has_a_round_trip() -> None:
    covered = {type(x) for x in OBJECTS.values()}
    public = [getattr(m, name) for m in (exactdp, exactdp.census) for name in m.__all__]
    results = {c for c in public if isinstance(c, type) and not issubclass(c, Exception)}
    assert results - covered == {exactdp.census.PairResult}  # inside a study
    assert same(from_json(to_json(STUDY.results[3])), STUDY.results[3])


def test_what_is_read_answers_as_before() -> None:
    assert from_json(to_json(TEN)).epsilon(1e-10) == TEN.epsilon(1e-10)
    assert exactdp.verify(from_json(to_json(OBJECTS["certificate"]))).holds
    assert from_json(to_json(SMALL)).account(epsilons=[1]) == SMALL.account(epsilons=[1])


def test_a_certificate_that_was_edited_is_read_but_does_not_hold() -> None:
    assert not exactdp.verify(from_json(edited("certificate", setting("digits", 11)))).holds


def test_equal_compositions_have_one_text() -> None:
    parts = list(MIXED.mechanisms.items())
    assert to_json(Composition(dict(reversed(parts)))) == to_json(MIXED)


any_float = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
any_decimal = st.decimals(allow_nan=False, places=None).filter(lambda d: d.is_infinite() or abs(d.adjusted()) < 10**5)
any_fraction = st.fractions() | st.builds(
    lambda n, d: Fraction(n, d), st.integers(-(10**600), 10**600), st.integers(1, 10**600)
)


@settings(max_examples=60, deadline=None)
@given(st.one_of(any_float, any_decimal), st.lists(any_float), st.integers(1, 3))
def test_any_bounds_come_back(number: float | Decimal, values: list[float], width: int) -> None:
    grid = np.array(values * width, dtype=float).reshape(width, len(values))
    for bounds in (Bounds(number, number), Bounds(grid, grid.T)):
        assert same(from_json(to_json(bounds)), bounds)


@settings(max_examples=60, deadline=None)
@given(any_fraction, any_float, st.text(), st.integers(-(10**60), 10**60))
def test_any_result_comes_back(exact: Fraction, number: float, text: str, count: int) -> None:
    opinion = Opinion(text, number, -number, number)
    explanation = Explanation(exact, count, 1, text, text, count, number, number, text, ((text, text),), exact)
    for x in (
        explanation,
        CrossCheck(exact, (opinion, opinion)),
        Comparison("delta", exact, (number, 0.0), *[number] * 3),
    ):
        assert same(from_json(to_json(x)), x)


@settings(max_examples=30, deadline=None)
@given(compositions(), st.integers(1, 10**20))
def test_any_composition_comes_back(composition: Composition, work: int) -> None:
    limited = composition.within(max_nodes=work)
    assert same(from_json(to_json(limited)), limited)


def edited(name: str, edit: Callable[[Any], Any]) -> str:
    record = json.loads(to_json(OBJECTS[name]))
    changed = edit(record)
    return json.dumps(record if changed is None else changed)


def setting(*path: Any) -> Callable[[Any], None]:
    """An edit that puts the last element at the place that the others name."""

    def edit(record: Any) -> None:
        for step in path[:-2]:
            record = record[step]
        record[path[-2]] = path[-1]

    return edit


def without(*path: Any) -> Callable[[Any], None]:
    def edit(record: Any) -> None:
        for step in path[:-1]:
            record = record[step]
        del record[path[-1]]

    return edit


DAMAGED: list[tuple[str, Callable[[Any], Any], str]] = [
    ("huge", setting("format", "exactdp objects"), "exactdp objects"),
    ("huge", setting("version", 2), "Found 2"),
    ("huge", setting("version", True), "True"),
    ("huge", setting("version", "1"), "'1'"),
    ("huge", setting("kind", "eval"), "eval"),
    ("huge", setting("kind", ["Gaussian"]), "Gaussian"),
    ("huge", setting("kind", "Mechanism"), "Mechanism"),
    ("huge", setting("extra", 1), "extra"),
    ("huge", without("version"), "version"),
    ("huge", lambda record: [record], "JSON object"),
    ("huge", setting("value", []), "DiscreteGaussian"),
    ("huge", setting("value", "sigma", "2"), "sigma"),
    ("huge", without("value", "sensitivity"), "sensitivity"),
    ("huge", setting("value", "sigma2", "2/4"), "1/2"),
    ("huge", setting("value", "sigma2", "1/0"), "1/0"),
    ("huge", setting("value", "sigma2", " 1"), "' 1'"),
    ("huge", setting("value", "sigma2", "0.5"), "0.5"),
    ("huge", setting("value", "sigma2", "\uff11"), "sigma2"),
    ("huge", setting("value", "sigma2", 2), "sigma2"),
    ("huge", setting("value", "sigma2", None), "sigma2"),
    ("huge", setting("value", "sigma2", "9" * 5000), "sigma2"),
    ("huge", setting("value", "sigma2", "-1"), "sigma2"),
    ("huge", setting("value", "sensitivity", "1.0"), "sensitivity"),
    ("huge", setting("value", "sensitivity", "01"), "01"),
    ("huge", setting("value", "sensitivity", 1), "sensitivity"),
    ("huge", setting("value", "sensitivity", "0"), "sensitivity"),
    ("composition", setting("value", "mechanisms", []), "at least one mechanism"),
    ("composition", setting("value", "mechanisms", 0, 1, "0"), "count"),
    ("composition", setting("value", "mechanisms", 0, 1, "-3"), "count"),
    ("composition", setting("value", "mechanisms", 0, 0, "kind", "Saving"), "Saving"),
    ("composition", setting("value", "mechanisms", 0, 0, "DiscreteGaussian(1)"), "kind"),
    ("composition", setting("value", "mechanisms", 0, []), r"mechanisms\[0\]"),
    ("composition", setting("value", "mechanisms", {}), "mechanisms"),
    ("composition", lambda r: r["value"]["mechanisms"].append(r["value"]["mechanisms"][0]), "twice"),
    ("composition", setting("value", "effort", "value", "terms", "0"), "terms"),
    ("composition", setting("value", "effort", None), "effort"),
    ("floats", setting("value", "lower", "infinity"), "infinity"),
    ("floats", setting("value", "lower", "1e5"), "1e5"),
    ("floats", setting("value", "lower", "1.0E5"), "1.0E\\+5"),
    ("floats", setting("value", "lower", "sNaN"), "sNaN"),
    ("floats", setting("value", "lower", True), "lower"),
    ("floats", setting("value", "lower", None), "lower"),
    ("floats", setting("value", "lower", 10**24 + 1), "lower"),
    ("arrays", setting("value", "lower", "shape", [3, 2]), "fill the shape"),
    ("arrays", setting("value", "lower", "shape", [-2, -2]), "shape"),
    ("arrays", setting("value", "lower", "shape", [2.0, 2.0]), "shape"),
    ("arrays", setting("value", "lower", "shape", 4), "shape"),
    ("arrays", setting("value", "lower", "array", "object"), "object"),
    ("arrays", setting("value", "lower", "values", 1, "0.1"), r"lower\[1\]"),
    ("arrays", setting("value", "lower", "values", 1, [0.1]), r"lower\[1\]"),
    ("arrays", without("value", "lower", "shape"), "shape"),
    ("empty", setting("value", "lower", "shape", [0] * 40), "shape"),
    ("curve", setting("value", "alpha", 0.5), "alpha"),
    ("curve", setting("value", "alpha", {"array": "float", "shape": [1], "values": [0.5]}), "same length"),
    ("curve", setting("value", "alpha", {"array": "Decimal", "shape": [1], "values": ["0.5"]}), "Decimal"),
    ("comparison", setting("value", "given", "alpha"), "alpha"),
    ("comparison", setting("value", "exact", [1.0]), "exact"),
    ("comparison", setting("value", "gaussian", "one"), "gaussian"),
    ("explanation", setting("value", "method", 3), "method"),
    ("explanation", setting("value", "rows", [["a"]]), r"rows\[0\]"),
    ("design", setting("value", "table", 0, 1, 0, 1, "-1"), "positive"),
    ("design", setting("value", "table", 0, 1, 0, 1, "0"), "positive"),
    ("design", setting("value", "table", 0, 1, []), "at least one query"),
    ("design", setting("value", "table", []), "levels"),
    ("design", setting("value", "bypassed", 1, 1, ["Moon"]), "Moon"),
    ("design", setting("value", "bypassed", 1, 0, "1"), "twice"),
    ("allocation", setting("value", "table", 0, 1, 0, 1, "-1"), "positive"),
    ("verification", setting("value", "holds", 1), "holds"),
    ("study", setting("value", "results", 0, "value", "pair", ["1", "99"]), "99"),
    ("study", setting("value", "results", 0, "value", "delta", []), "delta"),
    ("study", setting("value", "grids", "value", "deltas", ["2", "3"]), "delta"),
    ("certificate", setting("version", 9), "9"),
    ("certificate", setting("extra", "1"), "canonical"),
]


@pytest.mark.parametrize(("name", "edit", "says"), DAMAGED)
def test_damaged_records_are_refused_in_one_line(name: str, edit: Callable[[Any], Any], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as refusal:
        from_json(edited(name, edit))
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 600


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "3",
        "{",
        "\ufeff{}",
        to_json(TEN)[:-5],
        to_json(TEN) + "{}",
        to_json(TEN).replace('"version": 1', '"version": 1, "version": 1'),
        to_json(OBJECTS["subnormal"]).replace("5e-324", "NaN"),
        to_json(OBJECTS["subnormal"]).replace("5e-324", "-Infinity"),
        to_json(OBJECTS["subnormal"]).replace("5e-324", "1e400"),
        to_json(OBJECTS["subnormal"]).replace("5e-324", "1" * 6000),
        to_json(OBJECTS["subnormal"]).replace("5e-324", "0x1p3"),
        to_json(OBJECTS["subnormal"]).replace("5e-324", "[" * 900 + "]" * 900),
        "[" * 100_000,
        b"{}",
        None,
    ],
    ids=lambda text: repr(text)[:20],
)
def test_other_texts_are_refused(text: Any) -> None:
    with pytest.raises(InvalidInputError):
        from_json(text)


def test_any_shortened_text_is_refused() -> None:
    text = to_json(OBJECTS["comparison"]).rstrip()
    for end in range(0, len(text), 3):
        with pytest.raises(InvalidInputError):
            from_json(text[:end])


def test_doubles_as_other_programs_spell_them() -> None:
    text = to_json(Bounds(1.0, 1e21))
    assert same(from_json(text.replace("1.0", "1").replace("1e+21", "1" + "0" * 21)), Bounds(1.0, 1e21))


class Homemade(DiscreteGaussian):
    """A mechanism that the format does not know."""


@pytest.mark.parametrize(
    "value",
    [
        3,
        [TEN],
        Homemade(2),
        Composition([Homemade(2)]),
        Bounds("1", "2"),
        Bounds(True, 1.0),
        Bounds(10**400, 1.0),
        Bounds(np.array([1]), np.array([2])),
        Bounds(np.array(["a"], dtype=object), 1.0),
        Bounds(Decimal("sNaN"), 1.0),
        Bounds(Decimal("1E+999999"), 1.0),
        TradeOffCurve([0.0], [1.0]),  # type: ignore[arg-type]
        Saving(Fraction(1), Fraction(1, 10**4500), Fraction(1)),
        Saving(Fraction(1), 0.1, Fraction(1)),  # type: ignore[arg-type]
        DiscreteGaussian(Fraction(10**4000 + 1, 10**4000)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_written_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        to_json(value)
    assert "\n" not in str(refusal.value)


# data frames and files

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
    table = frames.table_of(OBJECTS[name])
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
    assert (first["text"], first["exact"], first["third"], first["huge"], first["yes"]) == (
        EVIL,
        "0.1",
        "1/3",
        "",
        "True",
    )
    assert (second["text"], float(second["real"]), second["huge"], second["gap"]) == ("", math.inf, "1" + "0" * 400, "")
    frames.write_table(STUDY, path)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(STUDY.results) * 4
    assert rows[0]["argument"] == "1/3"
    assert float(rows[0]["lower"]) == STUDY.results[0].delta[0][0]
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


# HTML


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
