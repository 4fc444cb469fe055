"""Objects as JSON and as pickles: what comes back is what was there, and anything else is refused."""

from __future__ import annotations

import json
import math
import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_of_each import MIXED, OBJECTS, SMALL, STUDY, TEN

import exactdp
from exactdp import Bounds, Composition, DiscreteGaussian, InvalidInputError, TradeOffCurve
from exactdp.accounting.cross_check import CrossCheck, Opinion
from exactdp.accounting.explanation import Explanation
from exactdp.census.pair_results import PairTable
from exactdp.census.savings import Saving
from exactdp.guarantees.comparison import Comparison
from exactdp.interop.json_objects import from_json, to_json
from strategies import compositions


def same(a: Any, b: Any) -> bool:
    """Equality by type and value, of doubles by bits (but for nan), of arrays by shape and elements; a table of pairs is read
    as a tuple of them."""
    a, b = (tuple(x) if isinstance(x, PairTable) else x for x in (a, b))
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
    # the first is inside a study, the second is a few names, the others have records of their own (`exactdp race --json`)
    others = {exactdp.OptimalNoise, exactdp.Race}
    assert results - covered == {exactdp.census.PairResult, exactdp.census.Joint, *others}
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


@settings(max_examples=60)
@given(st.one_of(any_float, any_decimal), st.lists(any_float), st.integers(1, 3))
def test_any_bounds_come_back(number: float | Decimal, values: list[float], width: int) -> None:
    grid = np.array(values * width, dtype=float).reshape(width, len(values))
    for bounds in (Bounds(number, number), Bounds(grid, grid.T)):
        assert same(from_json(to_json(bounds)), bounds)


@settings(max_examples=60)
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


@settings(max_examples=30)
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
