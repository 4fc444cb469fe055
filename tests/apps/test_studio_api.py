"""The studio's server: its numbers are the library's, its limits hold, and trouble in one request is no trouble in another."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import exactdp
import studio_troubles
from exactdp import census, conversions
from exactdp.accounting.composition import Composition
from exactdp.apps.cli import app
from exactdp.apps.studio import limits
from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.schema import requests as wire
from exactdp.apps.studio.server import serve as server
from exactdp.apps.studio.server.app import make_app
from exactdp.apps.studio.server.scheduler import Desk, Memory, as_json
from exactdp.apps.studio.server.security import addresses
from exactdp.apps.studio.server.serve import bind, is_loopback, make_server
from exactdp.apps.studio.work.overall import SCREENED
from exactdp.census.budget_files import parse_budget
from exactdp.census.savings import calibrate_release
from exactdp.census.screening import ScreenedOverall
from exactdp.census.study import Contest, overall_of
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

SMALL = {
    "name": "small",
    "title": "A small survey",
    "levels": [
        {"name": "Nation", "queries": [{"name": "age * sex", "rho": "1/2"}, {"name": "sex", "rho": "0.25"}]},
        {"name": "Region", "queries": [{"name": "age * sex", "rho": 0.5}]},
    ],
    "paths": [{"number": 1, "bypassed": []}, {"number": 2, "bypassed": ["Region"]}],
}
TEXT = b"""
title = "A small survey"
[levels.Nation]
"age * sex" = "1/2"
sex = 0.25
[levels.Region]
"age * sex" = 0.5
[bypassed]
1 = []
2 = ["Region"]
"""


def named(name: str) -> dict[str, Any]:
    return {**SMALL, "name": name}


class Studio:
    """A server in a thread, on a port of its own."""

    def __init__(self, limits: WorkLimits, answer: Any = studio_troubles.answer) -> None:
        self.socket = bind("127.0.0.1", 0)
        self.port = self.socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.desk = Desk(limits, answer)
        up = threading.Event()
        self.server = make_server(parse_budget(TEXT, "small.toml"), self.socket, desk=self.desk, ready=up.set)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self._thread.start()
        assert up.wait(60)
        self.client = httpx.Client(base_url=f"http://{self.host}/api/v1", timeout=240)

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self.client.post(path, json=body, **more)

    def close(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self._thread.join(20)
        self.socket.close()
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def studio() -> Iterator[Studio]:
    one = Studio(WorkLimits(short_seconds=20))
    yield one
    one.close()


@pytest.fixture(scope="module")
def hasty() -> Iterator[Studio]:
    """A server of little patience and little room."""
    one = Studio(
        WorkLimits(
            short_workers=1,
            long_workers=1,
            short_waiting=1,
            long_waiting=1,
            short_seconds=0.5,
            long_seconds=1.5,
            grace_seconds=0.1,
            body_seconds=1.0,
            memory_bytes=1 << 30,
            resident_bytes=1 << 31,
        )
    )
    yield one
    one.close()


def refused(response: httpx.Response, status: int = 422) -> str:
    """The one sentence of a refusal."""
    assert response.status_code == status, response.text
    sentence = response.json()["error"]
    assert re.search(r"[.)]$", sentence), sentence
    assert "Traceback" not in sentence
    assert "\n" not in sentence
    return str(sentence)


def until(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


# --- the numbers are the library's


def test_a_pair_has_the_numbers_of_the_library(studio: Studio) -> None:
    design = studio.client.get("/releases/dhc-persons-us").json()["design"]
    asked = {"pair": [6, 12], "deltas": ["1e-10", "1e-5"], "epsilons": ["26.34"], "alphas": ["0.05"], "risk": True}
    found = studio.post("/pair", {"design": design, **asked, "zcdp_beta": True}).json()
    pair = census.release("dhc-persons-us").pair(6, 12)
    assert found["rho"] == str(pair.rho) == "24811/5000"
    assert found["mechanisms"] == sum(pair.mechanisms.values())
    for row in found["epsilon"]:
        assert (row["lower"], row["upper"]) == tuple(pair.epsilon_bounds(row["delta"]))
        assert row["zcdp_optimal"] == conversions.zcdp_epsilon(pair.rho, row["delta"])
        assert pair.compare(delta=row["delta"]).statement.startswith(row["statement"])
        assert row["shortcut_understates"] == pair.compare(delta=row["delta"]).shortcut_understates
    row = found["delta"][0]
    assert (row["lower"], row["upper"]) == tuple(pair.delta_bounds("26.34"))
    row = found["beta"][0]
    assert (row["lower"], row["upper"]) == tuple(pair.beta_bounds("0.05"))
    assert row["zcdp"] == conversions.zcdp_beta(pair.rho, "0.05")
    assert 0 <= Fraction(row["power"]) - (1 - Fraction(row["lower"])) < Fraction(1, 10**15)
    curve = found["delta_curve"]
    assert len(curve["epsilon"]) == 41
    assert curve["upper"] == pair.delta(curve["epsilon"]).tolist()
    assert curve["gaussian"] == conversions.gaussian_delta(pair.mu, curve["epsilon"]).tolist()
    assert curve["upper"][-1] < 1e-15 < curve["upper"][-4]
    shape = pair.tradeoff(65)
    assert found["tradeoff"]["alpha"] == shape.alpha.tolist()
    assert found["tradeoff"]["beta"] == shape.beta.tolist()
    assert found["risk"]["advantage"] == list(pair.risk().advantage)
    assert [entry["path"] for entry in found["noise"]] == [6, 12]


def test_the_same_pair_in_one_piece_and_in_halves(studio: Studio) -> None:
    body = {"design": named("halves"), "epsilons": [1], "risk": True}
    halves = studio.post("/pair", body).json()
    assert studio.desk.short.free == 2
    whole = json.loads(asyncio.run_coroutine_threadsafe(_whole(studio, body), _loop(studio)).result(30))
    for name in ("seconds", "remarks"):
        del halves[name], whole[name]
    assert halves == whole


async def _whole(studio: Studio, body: dict[str, Any]) -> bytes:
    question = wire.plain(wire.PairQuestion(**body))
    studio.desk.memory = Memory(1 << 20)
    return await studio.desk.short_answer("pair", question)


def _loop(studio: Studio) -> asyncio.AbstractEventLoop:
    return studio.server.servers[0].get_loop()  # type: ignore[no-any-return]


def test_paths_by_their_bypassed_levels(studio: Studio) -> None:
    by_number = studio.post("/pair", {"design": SMALL, "pair": [1, 2]}).json()
    by_levels = studio.post("/pair", {"design": SMALL, "pair": [[], ["Region"]]}).json()
    assert by_levels["pair"] == [[], ["Region"]]
    assert by_levels["epsilon"] == by_number["epsilon"]
    assert [entry["path"] for entry in by_levels["noise"]] == [None, None]
    assert by_levels["noise"][1]["levels"] == by_number["noise"][1]["levels"]
    assert [level["level"] for level in by_levels["noise"][1]["levels"]] == ["Nation"]


def test_the_noise_of_a_query(studio: Studio) -> None:
    noise = studio.post("/pair", {"design": SMALL}).json()["noise"]
    row = noise[0]["levels"][0]["queries"][1]
    mechanism = DiscreteGaussian(4)
    assert (row["rho"], row["sigma2"]) == ("1/4", "4")
    assert row["variance"] == mechanism.variance
    assert row["standard_error"] == mechanism.variance**0.5
    margin = row["margin95"]
    assert 2 * mechanism.tail(margin + 1) <= 0.05 < 2 * mechanism.tail(margin)


def test_scale_multiplies_every_variance(studio: Studio) -> None:
    scaled = studio.post("/pair", {"design": {**SMALL, "scale": "3/2"}}).json()
    pair = parse_budget(TEXT, "small.toml").proxy.scaled("3/2")
    assert scaled["epsilon"][0]["upper"] == pair.epsilon("1e-10")
    assert Fraction(scaled["rho"]) == pair.rho
    checked = studio.post("/check", {"design": {**SMALL, "scale": "3/2"}}).json()["design"]
    assert checked["scale"] == "1"
    assert checked["levels"][0]["queries"][0]["rho"] == "1/3"


def events(studio: Studio, body: Any) -> list[dict[str, Any]]:
    with studio.client.stream("POST", "/overall", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("application/x-ndjson")
        return [json.loads(line) for line in response.iter_lines()]


def test_overall_has_the_numbers_of_the_library(studio: Studio) -> None:
    body = {"design": SMALL, "deltas": ["1e-6"], "epsilons": ["3"], "alphas": ["0.05"]}
    told = events(studio, body)
    assert told[0]["event"] == "start"
    assert told[0]["pairs"] == 3
    parts = [event for event in told if event["event"] == "part"]
    assert [event["done"] for event in parts] == list(range(1, told[0]["steps"] + 1))
    result = told[-1]["result"]
    study = parse_budget(TEXT, "small.toml").account()
    row = result["epsilon"][0]
    assert (row["lower"], row["upper"]) == tuple(study.epsilon_bounds("1e-6"))
    assert round(row["upper"], 8) == 8.30699111
    assert row["proxy"]["upper"] == study.release.proxy.epsilon("1e-6")
    assert result["delta"][0]["upper"] == study.delta("3")
    assert result["beta"][0]["lower"] == study.beta("0.05")
    assert tuple(result["worst_pair"][0]["pair"]) == Contest.of(study.release, delta="1e-6").settled()[0]
    assert result["delta_curve"]["upper"] == study.delta(result["delta_curve"]["epsilon"]).tolist()
    assert result["tradeoff"]["beta"] == study.tradeoff(33).beta.tolist()
    again = events(studio, body)  # from memory
    assert [event["event"] for event in again] == ["done"]
    assert again[-1] == told[-1]


def test_overall_where_pairs_share_nothing(studio: Studio) -> None:
    design = json.loads(json.dumps(SMALL))
    design["levels"] = [
        {"name": name, "queries": [{"name": f"q{i}", "rho": f"{0.05 + 0.0301 * i + 0.013 * k:.4f}"} for i in range(4)]}
        for k, name in enumerate("ABCD")
    ]
    design["paths"] = [{"number": i + 1, "bypassed": list(b)} for i, b in enumerate(["", "B", "C", "D", "BC"])]
    release = parse_budget(studio.post("/export", {"design": design}).json()["toml"].encode(), "odd.toml")
    assert isinstance(overall_of(release), ScreenedOverall)
    told = events(studio, {"design": design, "deltas": ["1e-6"], "epsilons": ["3"], "alphas": ["0.05"]})
    result = told[-1]["result"]
    pairs = {pair: release.pair(*pair).within(max_nodes=4000) for pair in release.pairs}
    bounds = {pair: own.epsilon_bounds("1e-6") for pair, own in pairs.items()}
    row = result["epsilon"][0]
    assert row["lower"] <= max(b.upper for b in bounds.values())
    assert max(b.lower for b in bounds.values()) <= row["upper"] <= row["lower"] * (1 + 1e-4)
    worst = result["worst_pair"][0]
    assert bounds[tuple(worst["pair"])].upper >= max(b.lower for b in bounds.values()) or worst["tied"] > 1
    row = result["delta"][0]
    assert row["lower"] <= max(own.delta(3) for own in pairs.values()) <= row["upper"] * (1 + 1e-9)
    assert result["beta"][0]["lower"] <= release.proxy.within(max_nodes=4000).beta_bounds("0.05").upper
    curve = result["delta_curve"]
    deltas = [own.delta_bounds(curve["epsilon"][1:8:3]) for own in pairs.values()]
    assert (np.array(curve["lower"][1:8:3]) <= np.max([d.upper for d in deltas], axis=0)).all()
    assert (np.array(curve["upper"][1:8:3]) >= np.max([d.lower for d in deltas], axis=0)).all()
    assert result["remarks"] == [SCREENED]


def test_overall_refuses_in_a_line(studio: Studio) -> None:
    told = events(studio, {"design": {**SMALL, "paths": [{"number": 1, "bypassed": ["Nation"]}]}})
    assert [event["event"] for event in told] == ["error"]
    assert "top level cannot be bypassed" in told[0]["error"]


def test_conversions(studio: Studio) -> None:
    found = studio.post(
        "/convert", {"rho": "5/4", "deltas": ["1e-6"], "epsilons": [3], "alphas": ["0.05"], "tradeoff": 9}
    ).json()
    assert found["epsilon"][0]["zcdp_simple"] == conversions.zcdp_epsilon_simple("5/4", "1e-6")
    assert found["delta"][0]["zcdp_optimal"] == conversions.zcdp_delta("5/4", 3)
    assert found["beta"][0]["zcdp"] == conversions.zcdp_beta("5/4", "0.05")
    assert len(found["tradeoff"]["alpha"]) == 9
    assert found["tradeoff"]["zcdp"][0] == 1.0
    assert found["tradeoff"]["zcdp"][-1] == 0.0


@pytest.mark.parametrize("over", ["pair", "overall"])
def test_calibration(studio: Studio, over: str) -> None:
    body = {"design": SMALL, "over": over, "epsilon": "5", "delta": "1e-6", "grid": 100}
    found = studio.post("/calibrate", body).json()
    release, wanted = parse_budget(TEXT, "small.toml"), exactdp.target(epsilon=5, delta="1e-6")
    if over == "overall":
        factor, scaled = calibrate_release(release, wanted, None, 100)
    else:
        factor = exactdp.calibrate(release.proxy, wanted, grid=100).factor
        scaled = release.scaled(factor)
    assert Fraction(found["factor"]) == factor
    assert Fraction(found["rho"]) == scaled.rho
    assert "Both are proved." in found["statement"]
    again = studio.post("/pair", {"design": found["design"], "epsilons": [5]}).json()
    assert again["delta"][0]["upper"] <= 1e-6


def test_a_certificate_verifies(studio: Studio) -> None:
    response = studio.post("/certify", {"design": SMALL, "pair": [1, 2], "delta": "1e-6", "digits": 25})
    assert response.headers["content-disposition"] == 'attachment; filename="small-certificate.json"'
    certificate = exactdp.Certificate.from_json(response.text)
    assert certificate.composition == parse_budget(TEXT, "small.toml").pair(1, 2)
    assert certificate.digits == 25
    assert exactdp.verify(certificate).holds


def test_tables(studio: Studio) -> None:
    rows = studio.post("/table", {"design": SMALL, "what": "pairs", "deltas": ["1e-6"]}).text.splitlines()
    study = parse_budget(TEXT, "small.toml").account(deltas=["1e-6"])
    assert rows[0] == "k,l,quantity,argument,at,lower,upper"
    assert [float(row.split(",")[-1]) for row in rows[1:]] == study.table("epsilon").upper[:, 0].tolist()
    noise = studio.post("/table", {"design": SMALL, "what": "noise", "pair": [1, 2]}).text
    assert noise.count("\n") == 1 + 3 + 2
    curve = studio.post("/table", {"design": SMALL, "what": "curve", "epsilons": [1]})
    assert curve.headers["content-type"].startswith("text/csv")
    assert f"delta,epsilon,1.0,{study.release.proxy.delta_bounds(1).lower!r}," in curve.text


def test_a_report_is_html_with_the_headline(studio: Studio) -> None:
    response = studio.post("/report", {"design": named('a <b>"report"</b>'), "delta": "1e-6", "deltas": []})
    assert response.status_code == 200, response.text
    assert response.headers["content-disposition"] == 'attachment; filename="a-b-report-b-report.html"'
    assert response.text.lower().startswith("<!doctype html>")
    assert "8.30" in response.text
    assert '<b>"report"</b>' not in response.text


# --- designs and files


def test_built_in_releases_as_designs(studio: Studio) -> None:
    listed = studio.client.get("/releases").json()["releases"]
    assert [entry["name"] for entry in listed] == list(census.release_names())
    for entry in listed:
        release = census.release(entry["name"])
        found = studio.client.get(f"/releases/{entry['name']}").json()
        assert Fraction(found["rho"]) == release.rho
        assert found["full_path"] == release.full_path
        assert entry["pairs"] == len(release.pairs)
        table = {lv["name"]: {q["name"]: Fraction(q["rho"]) for q in lv["queries"]} for lv in found["design"]["levels"]}
        assert table == release.table
        assert {p["number"]: tuple(p["bypassed"]) for p in found["design"]["paths"]} == dict(release.bypassed)
    assert "A release is one of" in refused(studio.client.get("/releases/nothing"), 404)


@pytest.mark.parametrize("name", ["dhc-persons-us", "pl94-persons-us"])
def test_export_and_parse_are_inverse(studio: Studio, name: str) -> None:
    design = studio.client.get(f"/releases/{name}").json()["design"]
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
    assert start["limits"]["paths"] == limits.PATHS
    assert studio.client.get("/health").json() == {"status": "ok", "version": exactdp.__version__}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x.toml", "", "at least one level"),
        ("x.toml", "\x00\x01", "not valid TOML"),
        ("x.csv", "\x00", "header"),
        ("x.csv", "level,sex\nUS,1/0\n", "zero denominator"),
        ("x.csv", "level,sex\nUS,1e400\n", "between 1e-18 and 1000"),
        ("x.csv", "level,sex\nUS,1e999999999\n", "decimal exponent"),
        ("x.csv", "level,sex\nUS,nan\n", "must be a number"),
        ("x.csv", "level,sex\nUS,\u0663\n", "must be a number"),
        ("x.csv", "level,\u202esex\nUS,1\n", "printable"),
        ("x.toml", "a" * 1000, "not valid TOML"),
        ("x.toml", "x = " + "[" * 5000 + "]" * 5000, "lists within lists"),
        ("x.exe", "level,sex\nUS,1\n", ".toml or .csv"),
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


# --- bad requests


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


# --- who may ask, how much, and how


def raw(studio: Studio, method: str, path: str, headers: dict[str, str], body: Any = None) -> tuple[int, Any, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/", "/static/x.js", "/api/v1/start", "/api/v1/openapi.json", "/nowhere"])
def test_other_hosts_and_origins_are_refused(studio: Studio, path: str) -> None:
    for host in ("evil.example", f"evil.example:{studio.port}", "127.0.0.1", f"127.0.0.1:{studio.port}.evil.example"):
        assert raw(studio, "GET", path, {"Host": host})[0] == 403
    assert raw(studio, "GET", path, {})[0] in (400, 403)
    for origin in (
        "http://evil.example",
        "null",
        f"https://{studio.host}",
        "http://127.0.0.1",
        f"http://localhost:{studio.port}",
    ):
        status, headers, body = raw(studio, "GET", path, {"Host": studio.host, "Origin": origin})
        assert status == 403
        assert b"own page" in body
        assert "access-control-allow-origin" not in headers


def test_the_own_page_may_ask(studio: Studio) -> None:
    for host in (studio.host, f"localhost:{studio.port}", f"LOCALHOST:{studio.port}", f"[::1]:{studio.port}"):
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert raw(studio, "GET", "/api/v1/health", headers)[0] == 200
    elsewhere = {"Host": studio.host, "Sec-Fetch-Site": "cross-site"}
    assert raw(studio, "GET", "/api/v1/health", elsewhere)[0] == 403
    assert addresses(["localhost"], 80) == {"localhost:80", "localhost"}


def test_only_json_and_only_known_methods(studio: Studio) -> None:
    body = json.dumps({"design": SMALL}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"):
        refused(studio.client.post("/check", content=body, headers={"content-type": kind}), 415)
    refused(studio.client.post("/check", content=body), 415)
    gzip = {"content-type": "application/json", "content-encoding": "gzip"}
    refused(studio.client.post("/check", content=body, headers=gzip), 415)
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        refused(studio.client.request(method, "/check"), 405)
    refused(studio.client.get("/check"), 405)
    refused(studio.client.get("/nothing"), 404)


def test_every_answer_has_the_headers(studio: Studio) -> None:
    origin = f"http://{studio.host}"
    for response in (
        studio.client.get(f"{origin}/"),
        studio.client.get("/start"),
        studio.client.get("/nothing"),
        studio.client.get("/start", headers={"origin": "null"}),
        studio.post("/pair", {}),
        studio.client.get("/docs"),
        studio.client.get(f"{origin}/static/nothing.js"),
    ):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "style-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in response.headers
        assert "server" not in response.headers


def test_the_page_for_people_has_everything_and_no_scripts(studio: Studio) -> None:
    page = studio.client.get("/docs").text
    for path in studio.client.get("/openapi.json").json()["paths"]:
        assert path.replace("{", "").replace("}", "") in page.replace("{", "").replace("}", "")
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    assert studio.client.get("/docs.css").headers["content-type"].startswith("text/css")


def test_files_of_the_machine_are_out_of_reach(studio: Studio) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/..%2f..%2fetc/passwd",
    ):
        assert raw(studio, "GET", path, {"Host": studio.host})[0] in (400, 404)


def test_bodies_that_are_too_large(studio: Studio) -> None:
    headers = {"content-type": "application/json"}
    large = b" " * (limits.BODY_BYTES + 1)
    assert "1,500,000 bytes" in refused(studio.client.post("/check", content=large, headers=headers), 413)

    def chunks() -> Iterator[bytes]:
        for _ in range(limits.BODY_BYTES // 10_000 + 2):
            yield b" " * 10_000

    with suppress(httpx.WriteError):  # the server may hang up before the end, which will do as well
        assert "1,500,000 bytes" in refused(studio.client.post("/check", content=chunks(), headers=headers), 413)
    for length in ("-1", "x", "9" * 30):
        status = raw(
            studio,
            "POST",
            "/api/v1/check",
            {"Host": studio.host, "Content-Type": "application/json", "Content-Length": length},
        )
        assert status[0] in (400, 413)


def test_a_body_that_does_not_come(hasty: Studio) -> None:
    head = f"POST /api/v1/check HTTP/1.1\r\nHost: {hasty.host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=10) as slow:
        slow.sendall(head.encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


# --- workers


def pid_of(studio: Studio, name: str = "pid") -> int:
    return int(studio.post("/check", {"design": {**named(name), "source": str(time.perf_counter())}}).json()["pid"])


def test_work_beyond_its_time_is_ended_and_the_next_question_answered(hasty: Studio) -> None:
    before = pid_of(hasty)
    start = time.perf_counter()
    sentence = refused(hasty.post("/pair", {"design": named("sleep")}), 503)
    assert "longer than 1.5 seconds" in sentence
    assert time.perf_counter() - start < 8
    assert until(lambda: not _alive(before))
    assert hasty.post("/pair", {"design": SMALL}).status_code == 200


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_question_that_is_not_short_goes_on_in_the_long_lane(hasty: Studio) -> None:
    found = hasty.post("/pair", {"design": named("nap")})
    assert found.status_code == 200
    assert found.json()["seconds"] > 0.9 > 0.5


def test_a_crash_is_one_sentence_and_the_next_question_is_answered(hasty: Studio) -> None:
    for _ in range(3):
        assert "ended unexpectedly" in refused(hasty.post("/check", {"design": named("crash")}), 503)
    assert hasty.post("/check", {"design": SMALL}).status_code == 200


def test_a_worker_that_is_killed(hasty: Studio) -> None:
    pid = pid_of(hasty)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not _alive(pid))
    assert hasty.post("/check", {"design": SMALL}).status_code == 200
    assert pid_of(hasty) != pid


def test_memory_has_a_limit(hasty: Studio) -> None:
    assert "more memory" in refused(hasty.post("/check", {"design": named("hunger")}))
    assert hasty.post("/check", {"design": SMALL}).status_code == 200


def test_a_defect_is_a_sentence_without_what_a_user_typed(hasty: Studio, caplog: pytest.LogCaptureFixture) -> None:
    assert "a defect of exactdp" in refused(hasty.post("/check", {"design": named("defect")}), 500)
    assert "KeyError in answer" in caplog.text
    assert "what a user typed" not in caplog.text


def test_a_worker_that_has_grown_is_replaced() -> None:
    async def run() -> tuple[int, int, int]:
        desk = Desk(WorkLimits(short_workers=1, long_workers=1, resident_bytes=1), studio_troubles.answer)
        try:
            pids = [
                json.loads(await desk.short_answer("check", {"design": {"name": n}, "n": i}))["pid"]
                for i, n in enumerate(["pid", "grow", "pid"])
            ]
        finally:
            await desk.close()
        return pids[0], pids[1], pids[2]

    assert len(set(asyncio.run(run()))) == 3


def test_a_full_queue_says_so(hasty: Studio) -> None:
    answers: list[httpx.Response] = []

    def ask(i: int) -> None:
        with httpx.Client(base_url=f"http://{hasty.host}/api/v1", timeout=60) as client:
            answers.append(
                client.post("/certify", json={"design": {**named("sleep"), "source": str(i)}, "delta": "1e-6"})
            )

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    full = [answer for answer in answers if answer.status_code == 429]
    assert len(full) == 4
    assert "Too many" in refused(full[0], 429)
    assert full[0].headers["retry-after"]
    assert {answer.status_code for answer in answers} == {429, 503}


def test_a_runaway_beside_quick_questions(studio: Studio) -> None:
    def ask() -> None:
        with (
            pytest.raises(httpx.ReadTimeout),
            httpx.Client(base_url=f"http://{studio.host}/api/v1", timeout=4) as client,
        ):
            client.post("/calibrate", json={"design": named("sleep"), "epsilon": 5, "delta": "1e-6"})

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert until(lambda: studio.desk.long.free == 0)
    times = []
    for i in range(20):
        start = time.perf_counter()
        response = studio.post("/pair", {"design": {**SMALL, "scale": f"{100 + i}/100"}})
        times.append(time.perf_counter() - start)
        assert response.status_code == 200
    assert studio.desk.long.free == 0  # they are still running away
    assert sorted(times)[10] < 1.0
    for thread in threads:
        thread.join()
    assert until(lambda: studio.desk.long.free == 2)  # and end when their clients leave


def test_work_ends_when_the_client_leaves(studio: Studio) -> None:
    for path, lane in (("/calibrate", studio.desk.long), ("/check", studio.desk.short)):
        gone = threading.Thread(target=_leave, args=(studio, path))
        gone.start()
        assert until(lambda lane=lane: lane.free < 2)  # type: ignore[misc]
        time.sleep(0.3)
        working = lane.busy_pids
        assert len(working) == 1
        assert _alive(working[0])
        gone.join()
        assert until(lambda working=working: not _alive(working[0]))  # type: ignore[misc]
        assert until(lambda lane=lane: lane.free == 2)  # type: ignore[misc]
        assert lane.waiting == 0


def _leave(studio: Studio, path: str) -> None:
    question = {"epsilon": 5, "delta": "1e-6"} if path == "/calibrate" else {}
    with httpx.Client(base_url=f"http://{studio.host}/api/v1", timeout=1.5) as client, pytest.raises(httpx.ReadTimeout):
        client.post(path, json={"design": named("sleep"), **question})


def test_an_overall_accounting_ends_when_the_client_leaves(studio: Studio) -> None:
    body = json.dumps({"design": census_design(studio), "deltas": ["1e-7"]}).encode()
    head = f"POST /api/v1/overall HTTP/1.1\r\nHost: {studio.host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", studio.port), timeout=30) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        told = b""
        while b'"event":"part"' not in told:
            told += client.recv(65536)
    left = time.perf_counter()
    assert until(lambda: studio.desk.long.free == 2 and studio.desk.long.waiting == 0)
    assert time.perf_counter() - left < 1
    assert b'"event":"done"' not in told
    assert events(studio, {"design": named("afterwards"), "tradeoff": None})[-1]["event"] == "done"


def census_design(studio: Studio) -> Any:
    return studio.client.get("/releases/dhc-persons-us").json()["design"]


def test_leaving_while_waiting(hasty: Studio) -> None:
    def ask(seconds: float) -> None:
        with (
            pytest.raises(httpx.ReadTimeout),
            httpx.Client(base_url=f"http://{hasty.host}/api/v1", timeout=seconds) as client,
        ):
            client.post("/certify", json={"design": named("sleep"), "delta": "1e-6"})

    first = threading.Thread(target=ask, args=(1.2,))
    first.start()
    assert until(lambda: hasty.desk.long.free == 0)
    ask(0.3)
    assert until(lambda: hasty.desk.long.waiting == 0)
    first.join()
    assert until(lambda: hasty.desk.long.free == 1)
    assert hasty.post("/certify", {"design": SMALL, "delta": "1e-6"}).status_code == 200


def test_short_work_that_is_no_longer_wanted_keeps_its_worker(studio: Studio) -> None:
    for i in range(3):
        studio.post("/pair", {"design": {**SMALL, "scale": f"{190 + i}/100"}})
    before = set(studio.desk.short.pids)
    assert len(before) == 2
    for i in range(5):
        with pytest.raises(httpx.ReadTimeout):
            studio.client.post("/pair", json={"design": {**SMALL, "scale": f"{200 + i}/100"}}, timeout=0.005)
    assert until(lambda: studio.desk.short.free == 2)
    assert set(studio.desk.short.pids) == before


def test_memory_forgets_the_oldest() -> None:
    memory = Memory(40)
    for name in "abcde":
        memory.put(name, b"x" * 10)
        memory.get("a")
    assert memory.get("a") == b"x" * 10
    assert memory.get("b") is None
    memory.put("large", b"x" * 11)
    assert memory.get("large") is None
    with pytest.raises(ValueError, match="Out of range"):
        as_json(float("nan"))


# --- the command


def test_the_command_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("# title: Mine\nlevel,sex\nUS,1/3\n")
    run = "from exactdp.apps.cli import main; main()"
    command = [sys.executable, "-c", run, "studio", "mine.csv", "--port", "0", "--no-browser", "--verbose"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address, line
        with httpx.Client(base_url=address[0] + "api/v1") as client:
            start = client.get("/start").json()
            assert start["design"]["title"] == "Mine"
            assert client.post("/pair", json={"design": start["design"]}).status_code == 200
        workers = _children(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err
    assert "POST /pair 200" in err
    assert "Mine" not in err
    assert until(lambda: not any(map(_alive, workers)))


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(entry.parent.name), *_children(int(entry.parent.name))]
    return found


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--port", "70000"], "--port must be at most 65535"),
        (["--port", "TAKEN"], "Choose another"),
        (["nothing"], "BUDGET is a .toml or .csv file"),
        (["missing.csv"], "cannot be read"),
        (["--host", "no such host", "--allow-remote"], "cannot listen"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    studio: Studio, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as end:
        app(["studio", "--no-browser", *(str(studio.port) if a == "TAKEN" else a for a in arguments)])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err.splitlines()[-1]


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.1", "::", "example.org")))


def test_a_missing_extra_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'exactdp\[studio\]'"):
        server.serve(parse_budget(TEXT, "small.toml"))
    with pytest.raises(InvalidInputError, match="cannot listen"):
        bind("127.0.0.1", 99_999)


# --- whatever is asked

NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
BUDGETS = st.one_of(
    st.builds(lambda a, b: f"{a}/{b}", st.integers(1, 20), st.sampled_from([20, 21, 50, 100, 1000])),
    st.integers(1, 100).map(lambda k: f"{k / 100:g}"),
    st.sampled_from([1, 0.1, "1/3", "1e-2", "1e-5"]),
)


@st.composite
def drawn_designs(draw: Any) -> dict[str, Any]:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    levels = [
        {"name": name, "queries": [{"name": f"q{i}", "rho": draw(BUDGETS)} for i in range(draw(st.integers(1, 4)))]}
        for name in names
    ]
    bypassed = draw(st.lists(st.lists(st.sampled_from(names[1:] or ["-"]), unique=True, max_size=3), max_size=4))
    paths = [{"number": i + 1, "bypassed": levels if len(names) > 1 else []} for i, levels in enumerate(bypassed)]
    return {"name": "drawn", "levels": levels, "paths": paths, "scale": draw(st.sampled_from(["1", "3/2", 0.5, 10]))}


@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
@given(design=drawn_designs(), delta=st.integers(-30, -1), alpha=st.sampled_from(["1e-9", "0.05", "1/2", "0.999"]))
def test_any_design_is_answered_or_refused_in_a_sentence(studio: Studio, design: Any, delta: int, alpha: str) -> None:
    asked = {"design": design, "deltas": [f"1e{delta}"], "epsilons": ["1", "40"], "alphas": [alpha]}
    response = studio.post("/pair", asked)
    if response.status_code != 200:
        refused(response)
        return
    found = response.json()
    for quantity in ("epsilon", "delta", "beta"):
        assert all(row["lower"] <= row["upper"] for row in found[quantity])
    curve = found["delta_curve"]
    for low, high, simple in zip(curve["lower"], curve["upper"], curve["zcdp_simple"], strict=True):
        assert low <= high
        assert low <= simple
    exported = studio.post("/export", {"design": design}).json()
    assert studio.post("/parse", {"file_name": "x.toml", "text": exported["toml"]}).json()["rho"] == found["rho"]


@pytest.mark.parametrize("rho", ["1e-18", "1e-9", "1000", "999.999", "1/7919", "0.1234567890123456789", "0.3333"])
def test_extreme_budgets(studio: Studio, rho: str) -> None:
    design = {"levels": [{"name": "US", "queries": [{"name": "q", "rho": rho}]}]}
    found = studio.post("/pair", {"design": design, "epsilons": [1]})
    assert found.status_code == 200, found.text
    pair = Composition({DiscreteGaussian(1 / Fraction(rho)): 2})
    row = found.json()["delta"][0]
    assert row["lower"] <= pair.delta_bounds(1).upper
    assert pair.delta_bounds(1).lower <= row["upper"]


# --- the description of the API, against the API


def operations() -> list[Any]:
    description = make_app(parse_budget(TEXT, "small.toml")).openapi()
    return [found.ok() for found in schemathesis.openapi.from_dict(description).get_all_operations()]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.label)
def test_whatever_is_asked_is_answered_as_described(studio: Studio, operation: Any, mode: GenerationMode) -> None:
    checks = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)

    @settings(
        max_examples=12,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answered_as_described(case: Any) -> None:
        response = case.call(base_url=f"http://{studio.host}", timeout=60)
        case.validate_response(response, checks=checks)

    with suppress(Unsatisfiable):  # requests without parameters have nothing that could be wrong
        answered_as_described()
