"""Designs and budget files as the studio takes them, and bad requests: every refusal is one sentence with its place."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import exactdp
from exactdp import census
from exactdp.apps.studio.limits import AT_MOST
from exactdp.census.budget_files import parse_budget
from studio_server import SMALL, Studio, refused


def test_built_in_releases_as_designs(studio: Studio) -> None:
    listed = studio.client.get("/releases").json()["releases"]
    assert [entry["name"] for entry in listed] == [
        name for name in census.release_names() if census.release(name).is_usual
    ]
    for entry in listed:
        release = census.release(entry["name"])
        found = studio.client.get(f"/releases/{entry['name']}").json()
        assert Fraction(found["rho"]) == release.rho
        assert found["full_path"] == release.full_path
        assert entry["pairs"] == len(release.pairs)
        table = {lv["name"]: {q["name"]: Fraction(q["rho"]) for q in lv["queries"]} for lv in found["design"]["levels"]}
        assert table == release.table
        assert {p["number"]: tuple(p["bypassed"]) for p in found["design"]["paths"]} == dict(release.bypassed)
        assert found["typical"] == {} or "census.gov" in found["typical_source"]
    people = studio.client.get("/releases/dhc-persons-us").json()["typical"]
    assert people == {"US": "331449281", "State": "6499006", "County": "105456", "Block": "41"}
    assert "A release is one of" in refused(studio.client.get("/releases/nothing"), 404)


@pytest.mark.parametrize("name", ["dhc-persons-us", "pl94-persons-us"])
def test_export_and_parse_are_inverse(studio: Studio, name: str) -> None:
    design = studio.client.get(f"/releases/{name}").json()["design"]
    assert design["unit_of_privacy"] == census.release(name).unit_of_privacy == "person"
    files = studio.post("/export", {"design": design}).json()
    for kind in ("toml", "csv"):
        again = studio.post("/parse", {"file_name": f"{files['file_name']}.{kind}", "text": files[kind]}).json()
        assert again["design"] == design
        assert parse_budget(files[kind].encode(), f"x.{kind}").fingerprint == census.release(name).fingerprint


def test_names_that_csv_cannot_hold(studio: Studio) -> None:
    odd = json.loads(json.dumps(SMALL).replace("Region", "Region; east"))
    files = studio.post("/export", {"design": odd}).json()
    assert files["csv"] is None
    assert "semicolon" in files["remark"]
    assert "Region; east" in files["toml"]


def test_the_start(studio: Studio) -> None:
    start = studio.client.get("/start").json()
    assert start["design"]["title"] == "A small survey"
    assert start["version"] == exactdp.__version__
    assert start["limits"]["paths"] == AT_MOST.paths
    assert studio.client.get("/health").json() == {"status": "ok", "version": exactdp.__version__}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x.toml", "", "at least one level"),
        ("x.toml", "\x00\x01", "encoded in UTF-8"),
        ("x.csv", "\x00", "encoded in UTF-8"),
        ("x.xlsx", "PK", "save the sheet as CSV UTF-8"),
        ("x.toml", 'relation = "add/remove"\n[levels.US]\na = 1', "The studio edits designs in which one record is replaced"),
        ("x.toml", "[levels.US]\na = { rho = 1, cells = 2 }", "use the commands of exactdp for it"),
        ("x.csv", "level,sex\nUS,1/0\n", "zero denominator"),
        ("x.csv", "level,sex\nUS,1e400\n", "between 1e-18 and 1000"),
        ("x.csv", "level,sex\nUS,1e999999999\n", "decimal exponent"),
        ("x.csv", "level,sex\nUS,nan\n", "must be a number"),
        ("x.csv", "level,sex\nUS,\u0663\n", "must be a number"),
        ("x.csv", "level,\u202esex\nUS,1\n", "printable"),
        ("x.toml", "a" * 1000, "not valid TOML"),
        ("x.toml", "x = " + "[" * 5000 + "]" * 5000, "lists within lists"),
        ("x.exe", "level,sex\nUS,1\n", ".toml, .csv or .json"),
        ("../../etc/x.csv", "level,sex\nUS,-1\n", "must be positive"),
        ("x.csv", "level," + ",".join(f"q{i}" for i in range(300)) + "\nUS" + ",0.01" * 300 + "\n", "at most 200 queries"),
        ("x.csv", "".join(f"# bypassed {i}: A\n" for i in range(1, 150)) + "level,s\nUS,1\nA,1\n", "100 directed"),
    ],
)  # fmt: skip
def test_bad_files(studio: Studio, name: str, text: str, sentence: str) -> None:
    assert sentence in refused(studio.post("/parse", {"file_name": name, "text": text}))


def test_half_a_character(studio: Studio) -> None:
    body = b'{"file_name": "x.csv", "text": "level,sex\\nUS,1 \\ud800"}'
    refused(studio.client.post("/parse", content=body, headers={"content-type": "application/json"}))


def test_an_upload_leaves_no_trace(studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = studio.post("/parse", {"file_name": str(tmp_path / "mine.csv"), "text": "level,sex\nUS,1\n"}).json()
    assert found["design"]["name"] == "mine"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("rho", "sentence"),
    [
        ("1/0", "zero denominator"),
        ("1e400", "between"),
        ("NaN", "must be a number"),
        ("-1/3", "positive"),
        ("0", "positive"),
        ("1e-19", "between"),
        ("\uff11", "must be a number"),
        ("9" * 401, "at most 400 characters"),
        ("0x10", "must be a number"),
        (None, "must be a number"),
        (True, "must be a number"),
        ([1], "must be a number"),
        ({"a": 1}, "must be a number"),
    ],
)
def test_a_bad_budget_is_named_with_its_place(studio: Studio, rho: Any, sentence: str) -> None:
    design = json.loads(json.dumps(SMALL))
    design["levels"][0]["queries"][1]["rho"] = rho
    response = studio.post("/pair", {"design": design})
    assert sentence in refused(response)
    where = response.json()["where"]
    assert (where["level"], where["query"]) == ("Nation", "sex")


@pytest.mark.parametrize(
    ("change", "sentence", "field"),
    [
        ({"deltas": ["0"]}, "between 0 and 1", "delta"),
        ({"deltas": ["x"]}, "must be a finite number", "delta"),
        ({"alphas": ["2"]}, "between 0 and 1", "alpha"),
        ({"epsilons": ["1e10"]}, "epsilon must be between", "epsilon"),
        ({"deltas": ["1e-3"] * 21}, "at most 20 items", "deltas"),
        ({"delta_curve": {"num": 402}}, "less than or equal to 401", "delta_curve.num"),
        ({"delta_curve": {"least": "0"}}, "between 0 and 1", "delta"),
        ({"tradeoff": {"num": 4}}, "greater than or equal to 5", "tradeoff.num"),
        ({"pair": [1]}, "at least 2 items", "pair"),
        ({"pair": [1, "2"]}, "must be the number of a path", "pair.1"),
        ({"nonsense": 1}, "not known here", "nonsense"),
        ({"design": {**SMALL, "scale": "0"}}, "scale must be positive", "scale"),
        ({"design": {**SMALL, "scale": "1e7"}}, "scale must be between", None),
        ({"design": {**SMALL, "scale": "1/1000000"}}, "With the scale", "scale"),
        ({"pair": [1, 3]}, "A path is one of 1, 2", None),
        ({"pair": [1, ["Nowhere"]]}, "bypassed level must be one of", None),
        ({"design": {**SMALL, "levels": []}}, "at least 1 item", "design.levels"),
        ({"design": {**SMALL, "name": "a\x00b"}}, "printable", None),
        ({"design": {"levels": SMALL["levels"], "paths": [{"number": 1}, {"number": 1}]}}, "number of its own", None),
    ],
)
def test_bad_questions(studio: Studio, change: dict[str, Any], sentence: str, field: str | None) -> None:
    response = studio.post("/pair", {"design": SMALL, "pair": None, **change})
    if "paths" in change.get("design", {}) and change["design"]["paths"][-1] == {"number": 1}:
        response = studio.post("/check", {"design": change["design"]})
    assert sentence in refused(response)
    if field:
        assert response.json()["where"]["field"] == field


def test_a_design_of_too_many_budgets(studio: Studio) -> None:
    level = [{"name": f"q{i}", "rho": "1e-4"} for i in range(200)]
    design = {"levels": [{"name": f"L{i}", "queries": level} for i in range(11)]}
    assert "at most 2000 budgets" in refused(studio.post("/check", {"design": design}))


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "5"},
        {"epsilon": "5", "delta": "1e-6", "mu": 1},
        {"epsilon": "5", "delta": "1e-6", "level": "Nation"},
        {"epsilon": "5", "delta": "1e-6", "over": "overall", "pair": [1, 1]},
        {"epsilon": "5", "delta": "1e-6", "over": "overall", "level": "Nowhere"},
        {"epsilon": "5", "delta": "1e-6", "grid": 0},
        {"epsilon": "1e-9", "delta": "1e-300", "grid": 1},
    ],
)
def test_bad_calibrations(studio: Studio, change: dict[str, Any]) -> None:
    refused(studio.post("/calibrate", {"design": SMALL, **change}))


def test_bad_certificates(studio: Studio) -> None:
    assert "one question" in refused(studio.post("/certify", {"design": SMALL}))
    assert "one question" in refused(studio.post("/certify", {"design": SMALL, "delta": "1e-6", "epsilon": 1}))
    assert "200" in refused(studio.post("/certify", {"design": SMALL, "delta": "1e-6", "digits": 201}))
    overall = {"design": SMALL, "over": "overall"}
    assert "one question" in refused(studio.post("/certify", overall))
    assert "leave one out" in refused(studio.post("/certify", {**overall, "delta": "1e-6", "pair": [1, 2]}))
    assert "delta and epsilon" in refused(studio.post("/certify", {**overall, "alpha": "0.1"}))
    assert "50" in refused(studio.post("/certify", {**overall, "delta": "1e-6", "digits": 51}))
    assert "at least 5" in refused(studio.post("/certify", {"design": SMALL, "delta": "1e-6", "digits": 4}))


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"", 422, "missing"),
        (b"{", 400, "not JSON"),
        (b"[]", 422, "The body"),
        (b"\xff\xfe", 400, "UTF-8"),
        (b"\x00", 400, "not JSON"),
        (b'{"design": NaN}', 400, "NaN"),
        (b'{"design": 1e400}', 400, "1e400"),
        (b'{"design": 12345678901234567890}', 400, "quotation marks"),
        (b'{"design": 1, "design": 2}', 400, "twice"),
        (b"[" * 100_000, 400, "not JSON"),
        (b'{"a":' * 100_000, 400, "not JSON"),
        (b'{"design": ' + b"[" * 900 + b"]" * 900 + b"}", 422, "design"),
    ],
)
def test_bad_bodies(studio: Studio, body: bytes, status: int, sentence: str) -> None:
    response = studio.client.post("/pair", content=body, headers={"content-type": "application/json"})
    assert sentence in refused(response, status)


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/parse", {"file_name": "x.csv", "text": "level,sex\nUS,-1\n"}, {"level": "US", "query": "sex"}),
        ("/check", {"design": {"levels": [{"name": "The  US", "queries": [{"name": "a  b", "rho": 0}]}]}},
         {"level": "The  US", "query": "a  b"}),
        ("/convert", {"rho": "1e11", "deltas": ["0.1"]}, {"field": "rho"}),
        ("/convert", {"rho": "1e400", "alphas": ["0.1"]}, {"field": "rho"}),
        ("/convert", {"rho": 1, "epsilons": ["x"]}, {"field": "epsilon"}),
        ("/convert", {"rho": 1, "deltas": [""]}, {"field": "delta"}),
        ("/calibrate", {"design": SMALL, "epsilon": "5", "delta": "2"}, {"field": "delta"}),
        ("/calibrate", {"design": SMALL, "alpha": "0", "beta": "2"}, {"field": "alpha"}),
        ("/calibrate", {"design": SMALL, "epsilon": "x"}, None),
        ("/certify", {"design": SMALL, "delta": "0"}, {"field": "delta"}),
        ("/table", {"design": SMALL, "what": "pairs", "alphas": ["7"]}, {"field": "alpha"}),
    ],
)  # fmt: skip
def test_a_refusal_names_its_place(studio: Studio, path: str, body: Any, where: Any) -> None:
    response = studio.post(path, body)
    refused(response)
    assert response.json().get("where") == where


def test_the_page_lists_every_path_itself(studio: Studio) -> None:
    """No full path is added to a design that has none, and its file says so."""
    design = {**SMALL, "paths": [{"number": 4, "bypassed": ["Region"]}]}
    assert studio.post("/check", {"design": design}).json()["design"]["paths"] == design["paths"]
    text = studio.post("/export", {"design": design}).json()["toml"]
    assert "full_path = false" in text
    again = studio.post("/parse", {"file_name": "again.toml", "text": text}).json()
    assert again["design"]["paths"] == design["paths"]
