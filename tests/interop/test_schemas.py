"""The JSON Schemas: what the library writes satisfies them, what they refuse its readers refuse, and the other way round
wherever a member is missing, unknown or of another type."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_of_each import OBJECTS, SMALL, TEN
from typer.testing import CliRunner

import exactdp
import examples
from exactdp.accounting.certificates.certificate import Certificate, certify
from exactdp.apps import cli
from exactdp.census import certify_design
from exactdp.census.budget_files import budget_toml, parse_budget
from exactdp.census.design_certificate import DesignCertificate
from exactdp.errors import InvalidInputError
from exactdp.interop.schemas import SCHEMAS, json_schema

jsonschema = pytest.importorskip("jsonschema", reason="the extra test has it: pip install 'exactdp[test]'")
jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="pip install 'exactdp[test]'")

ROOT = Path(__file__).parent.parent.parent
VALIDATORS = {name: jsonschema.Draft202012Validator(json_schema(name)) for name in SCHEMAS}
COMPILED = {name: jsonschema_rs.Draft202012Validator(json_schema(name)) for name in SCHEMAS}
"""What tells where it fails, for what must satisfy; and what tells whether, for thousands that are out of form."""
CERTIFICATES = [
    certify(TEN, digits=12, **asked) for asked in ({"epsilon": "1/3"}, {"delta": "1e-5"}, {"alpha": "0.05"})
]
OF_DESIGNS = [certify_design(SMALL, **asked) for asked in ({"epsilon": "1/3"}, {"delta": "1e-5"})]
KINDS: dict[type, str] = {Certificate: "certificate", DesignCertificate: "design-certificate"}
DESIGNS = [
    """
    unit = "Share"
    total_rho = 2
    levels = { US = { a = 0.5, b = "1/2" }, State = { a = 1 } }
    level_shares = { US = 0.25, State = "3/4" }
    """,
    """
    title = "T"
    source = ""
    unit = " sigma2 "
    levels = { US = { "a b" = 1e3 }, State = { a = "+.5" } }
    bypassed = { 1 = [], 002 = ["State"] }
    """,
]


def satisfies(name: str, record: Any) -> bool:
    return bool(COMPILED[name].is_valid(record))


def accepted(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except InvalidInputError:
        return False
    return True


def read_design(text: str) -> object:
    return parse_budget(text.encode(), "design.toml")


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_schemas_and_published(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(name))
    printed = CliRunner().invoke(cli.app, ["schema", name]).stdout
    assert json.loads(printed) == json_schema(name)
    published = ROOT / "docs" / "schemas" / f"{name}-{SCHEMAS[name][1]}.json"
    assert published.read_text() == printed, "what is published has changed: make schemas"


def test_other_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError,
        match=r"one of certificate, design-certificate, joint-certificate, design, object. Found nothing",
    ):
        json_schema("nothing")
    assert CliRunner().invoke(cli.app, ["schema", "x"]).exit_code == 2
    target = tmp_path / "schema.json"
    assert CliRunner().invoke(cli.app, ["schema", "design", "-o", str(target)]).exit_code == 0
    assert json.loads(target.read_text()) == json_schema("design")


@pytest.mark.parametrize("name", OBJECTS)
def test_every_object_satisfies_its_schema(name: str) -> None:
    text = exactdp.to_json(OBJECTS[name])
    kind = KINDS.get(type(OBJECTS[name]), "object")
    VALIDATORS[kind].validate(json.loads(text))
    assert not any(satisfies(other, json.loads(text)) for other in SCHEMAS if other not in (kind, "design"))


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=lambda c: c.given)
def test_every_certificate_satisfies_its_schema(certificate: Certificate) -> None:
    VALIDATORS["certificate"].validate(json.loads(certificate.to_json()))


@pytest.mark.parametrize("text", DESIGNS)
def test_every_way_to_write_a_design_satisfies_its_schema(text: str) -> None:
    read_design(text)
    VALIDATORS["design"].validate(tomllib.loads(text))


def test_every_design_that_is_written_or_shown_satisfies_its_schema() -> None:
    for name in exactdp.census.release_names():
        release = exactdp.census.release(name)
        VALIDATORS["design"].validate(tomllib.loads(budget_toml(release)))
        VALIDATORS["design"].validate(json.loads(exactdp.census.budget_json(release)))
    for file in resources.files("exactdp.census").joinpath("products").iterdir():
        VALIDATORS["design"].validate(json.loads(file.read_text()))
    for kind, read in (("toml", tomllib.loads), ("json", json.loads)):
        pages = (ROOT / "docs").glob("*.md")
        shown = [
            text
            for page in pages
            for rest, text in examples.blocks(page, kind)
            if "title=" in rest and "request" not in rest
        ]
        assert shown
        for text in shown:
            VALIDATORS["design"].validate(read(text))


def places(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of every object and the first element of every list, by its path."""
    members = record.items() if isinstance(record, dict) else enumerate(record[:2]) if isinstance(record, list) else ()
    for key, value in members:
        yield (*path, key)
        yield from places(value, (*path, key))


def altered(record: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    result = copy.deepcopy(record)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return result


def remove(inner: Any, key: Any) -> None:
    del inner[key]


def add(inner: Any, key: Any) -> None:
    if isinstance(inner, dict):
        inner["unheard of"] = "1"


def set_to(value: Any) -> Callable[[Any, Any], None]:
    return lambda inner, key: inner.__setitem__(key, value)


OTHER_TYPES = (7, -1.5, True, None, [], {}, "x", ["1", 2], "1\n", "01", "")


LARGE = ("release", "study")
LATER = ("relation", "noise")
"""Members that earlier texts do not have."""


def check_refusals(kind: str, record: Any, paths: Iterable[tuple[Any, ...]], read: Callable[[str], Any]) -> None:
    """No member can be left out (but for later ones) or added, and what the schema refuses the reader refuses."""
    for path in paths:
        for change in (add,) if path[-1] in LATER else (remove, add):
            changed = altered(record, path, change)
            if changed != record and isinstance(path[-1], str):
                assert not satisfies(kind, changed), path
                assert not accepted(read, json.dumps(changed)), path
        for changed in (altered(record, path, set_to(value)) for value in OTHER_TYPES):
            if not satisfies(kind, changed):
                assert not accepted(read, json.dumps(changed)), (path, changed)


@pytest.mark.parametrize("certificate", CERTIFICATES, ids=lambda c: c.given)
def test_certificates_out_of_form_are_refused_by_both(certificate: Certificate) -> None:
    record = json.loads(certificate.to_json())
    check_refusals("certificate", record, places(record), Certificate.from_json)
    for path in places(record):
        for value in (7, -1.5, True, None, {}):
            changed = altered(record, path, set_to(value))
            assert changed == record or path == ("digits",) or not satisfies("certificate", changed), (path, value)


@pytest.mark.parametrize("certificate", OF_DESIGNS, ids=lambda c: c.given)
def test_design_certificates_out_of_form_are_refused_by_both(certificate: DesignCertificate) -> None:
    record = json.loads(certificate.to_json())
    VALIDATORS["design-certificate"].validate(record)
    check_refusals("design-certificate", record, places(record), DesignCertificate.from_json)
    numbers = {"digits", "pairs", "compositions", "number", 0, 1}
    for path in places(record):
        for value in (7, -1.5, True, None, {}):
            changed = altered(record, path, set_to(value))
            refused = not satisfies("design-certificate", changed)
            assert changed == record or path[-1] in numbers or refused, (path, value)


@pytest.mark.parametrize("name", [name for name in OBJECTS if "certificate" not in name and name not in LARGE])
def test_objects_out_of_form_are_refused_by_both(name: str) -> None:
    record = json.loads(exactdp.to_json(OBJECTS[name]))
    check_refusals("object", record, list(places(record))[:60], exactdp.from_json)


TOML_NUMBERS = st.sampled_from(['"1/3"', "0.5", "7", '" 1e-3 "', '"-1"', '"x"', "0", "-2", "true", "[]", '""', '"1/"'])
NAMES = st.sampled_from(["a", '"b c"', '" "', "rho", "unit", '"x.y"'])


@given(
    st.sampled_from(
        ["", 'unit = "rho"\n', 'unit = "SIGMA2"\n', 'unit = "eps"\n', "unit = 3\n", 'title = ["x"]\n', "other = 1\n"]
    ),
    st.lists(st.tuples(NAMES, TOML_NUMBERS), max_size=2, unique_by=lambda pair: pair[0]),
    st.sampled_from(["", '1 = ["State"]', '0 = ["State"]', "x = []", "1 = 3", '1 = ["State", "State"]', "1 = [1]"]),
)
def test_a_design_that_is_read_satisfies_the_schema(settings: str, cells: list[tuple[str, str]], bypassed: str) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in cells)
    text = f"{settings}[levels.US]\n{lines}[levels.State]\nsex = 1\n[bypassed]\n{bypassed}\n"
    if accepted(read_design, text):
        VALIDATORS["design"].validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "levels = 3\n",
        "[levels]\n",
        "[levels.US]\n",
        "[levels.US]\na = true\n",
        '[levels.US]\na = "1/3/5"\n',
        '[levels.US]\na = "-1"\n',
        "[levels.US]\na = -1\n",
        "[levels.US]\nrho = 1\n",
        "[levels.US]\na.b = 1\n",
        'unit = "eps"\n[levels.US]\na = 1\n',
        'unit = "share"\n[levels.US]\na = 1\n',
        "title = 1\n[levels.US]\na = 1\n",
        "unknown = 1\n[levels.US]\na = 1\n",
        "[levels.US]\na = 1\n[bypassed]\nx = []\n",
        '[levels.US]\na = 1\n[bypassed]\n1 = "US"\n',
        "[levels.US]\na = 1\n[level_shares]\nUS = 1\n",
    ],
)
def test_designs_out_of_form_are_refused_by_both(text: str) -> None:
    assert not accepted(read_design, text)
    assert not satisfies("design", tomllib.loads(text))


def test_json_designs_out_of_form_are_refused_by_both() -> None:
    record = json.loads(exactdp.census.budget_json(exactdp.census.release("s-dhc-household-pr")))
    for path in list(places(record))[:30]:
        for changed in (altered(record, path, set_to(value)) for value in OTHER_TYPES):
            if not satisfies("design", changed):
                assert not accepted(lambda text: parse_budget(text.encode(), "design.json"), json.dumps(changed)), path
    assert not satisfies("design", {**record, "version": 2})
    assert not satisfies("design", {**record, "unheard of": 1})
