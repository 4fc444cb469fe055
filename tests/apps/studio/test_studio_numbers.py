"""The studio's numbers are the library's: pairs, all pairs, conversions, calibrations, files to be saved."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import exactdp
from exactdp import census, conversions
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.pairs import Pairs
from exactdp.apps.studio.schema.requests import PairQuestion
from exactdp.apps.studio.work.pair import quick
from exactdp.cache import Recent
from exactdp.census.budget_files import parse_budget
from exactdp.census.pair_results import overall_of
from exactdp.census.savings import calibrate_release
from exactdp.census.worst_pair import Candidates
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numerals import DOWN, for_file
from studio_server import SMALL, TEXT, Studio, events, named

DOCS = Path(__file__).parents[3] / "docs" / "studio-api.md"
Overall = Callable[[Any], list[dict[str, Any]]]


def test_a_pair_has_the_numbers_of_the_library(studio: Studio) -> None:
    design = studio.client.get("/releases/dhc-persons-us").json()["design"]
    asked = {"pair": [6, 12], "deltas": ["1e-10", "1e-5"], "epsilons": ["26.34"], "alphas": ["0.05"], "risk": True}
    found = studio.post("/pair", {"design": design, **asked, "zcdp_beta": True}).json()
    narrow = census.release("dhc-persons-us").pair(6, 12)
    pair = quick(narrow)  # fewer contours, each to a digit less
    assert found["rho"] == str(pair.rho) == "24811/5000"
    assert found["file_name"] == "dhc-persons-us"
    assert found["mechanisms"] == sum(pair.mechanisms.values())
    for row in found["epsilon"]:
        assert (row["lower"], row["upper"]) == tuple(pair.epsilon_bounds(row["delta"]))
        assert max(row["lower"], narrow.epsilon_bounds(row["delta"]).lower) <= min(
            row["upper"], narrow.epsilon(row["delta"])
        )
        assert row["upper"] - row["lower"] < 1e-11
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
    assert studio.scheduler.short.free == 2
    whole = json.loads(asyncio.run_coroutine_threadsafe(_whole(studio, body), _loop(studio)).result(30))
    for name in ("seconds", "remarks"):
        del halves[name], whole[name]
    assert halves == whole


async def _whole(studio: Studio, body: dict[str, Any]) -> bytes:
    question = PairQuestion(**body).model_dump()
    studio.scheduler.memory = Recent(1 << 20, len)
    return await studio.scheduler.short_answer("pair", question)


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
    assert scaled["epsilon"][0]["upper"] == quick(pair).epsilon("1e-10")
    assert Fraction(scaled["rho"]) == pair.rho
    checked = studio.post("/check", {"design": {**SMALL, "scale": "3/2"}}).json()["design"]
    assert checked["scale"] == "1"
    assert checked["levels"][0]["queries"][0]["rho"] == "1/3"


@pytest.fixture(scope="session")
def line_schema(studio: Studio) -> dict[str, Any]:
    """What the API's description says of one line of `/overall`."""
    described = studio.client.get("/openapi.json").json()
    answer = described["paths"]["/api/v1/overall"]["post"]["responses"]["200"]["content"]["application/x-ndjson"]
    return {**answer["itemSchema"], "components": described["components"]}


@pytest.fixture
def overall(studio: Studio, line_schema: dict[str, Any]) -> Overall:
    """The lines of `/overall` to a question, each as described."""

    def asked(body: Any) -> list[dict[str, Any]]:
        told = events(studio, body)
        for event in told:
            Draft202012Validator(line_schema).validate(event)
        return told

    return asked


def test_the_documentation_lists_the_events(line_schema: dict[str, Any]) -> None:
    rows = ["| event | members | what it is |", "| --- | --- | --- |"]
    for one in line_schema["oneOf"]:
        schema = line_schema["components"]["schemas"][one["$ref"].rpartition("/")[2]]
        members = ", ".join(f"`{name}`" for name in schema["properties"] if name != "event")
        rows.append(f"| `{schema['properties']['event']['const']}` | {members} | {schema['description']} |")
    assert "\n\n" + "\n".join(rows) + "\n\n" in DOCS.read_text()


@pytest.mark.parametrize("change", [{"event": "other"}, {"steps": "9"}, {"more": 1}])
def test_another_line_is_not_as_described(line_schema: dict[str, Any], change: dict[str, Any]) -> None:
    start = {"event": "start", "steps": 9, "pairs": 946, "rho": "24811/5000", "full_path": 13}
    assert Draft202012Validator(line_schema).is_valid(start)
    assert not Draft202012Validator(line_schema).is_valid({**start, **change})


def test_overall_has_the_numbers_of_the_library(overall: Overall) -> None:
    body = {"design": SMALL, "deltas": ["1e-6"], "epsilons": ["3"], "alphas": ["0.05"]}
    told = overall(body)
    assert told[0]["event"] == "start"
    assert told[0]["pairs"] == 3
    parts = [event for event in told if event["event"] == "part"]
    assert [event["done"] for event in parts] == list(range(1, told[0]["steps"] + 1))
    result = told[-1]["result"]
    study = parse_budget(TEXT, "small.toml").account()
    assert isinstance(overall_of(study.release).pairs, Pairs)
    row = result["epsilon"][0]
    assert (row["lower"], row["upper"]) == tuple(study.epsilon_bounds("1e-6"))
    assert round(row["upper"], 8) == 8.30699111
    assert row["proxy"]["upper"] == study.release.proxy.epsilon("1e-6")
    assert result["delta"][0]["upper"] == study.delta("3")
    assert result["beta"][0]["lower"] == study.beta("0.05")
    assert tuple(result["worst_pair"][0]["pair"]) == Candidates.of(study.release, delta="1e-6").settled()[0]
    assert result["delta_curve"]["upper"] == study.delta(result["delta_curve"]["epsilon"]).tolist()
    assert result["tradeoff"]["beta"] == overall_of(study.release).drawn_curve(33).beta.tolist()
    again = overall(body)  # from memory
    assert [event["event"] for event in again] == ["done"]
    assert again[-1] == told[-1]


def test_overall_where_pairs_share_no_lattice(studio: Studio, overall: Overall) -> None:
    design = json.loads(json.dumps(SMALL))
    primes = {"A": (13, 17, 19), "B": (7, 11, 5), "C": (3, 23, 29), "D": (31, 37, 2)}
    design["levels"] = [
        {"name": name, "queries": [{"name": f"q{p}", "rho": f"1/{p}"} for p in own]} for name, own in primes.items()
    ]
    design["paths"] = [{"number": i + 1, "bypassed": list(b)} for i, b in enumerate(["", "B", "C", "D", "BC"])]
    release = parse_budget(studio.post("/export", {"design": design}).json()["toml"].encode(), "odd.toml")
    assert isinstance(overall_of(release).pairs, LinePairs)
    told = overall({"design": design, "deltas": ["1e-6"], "epsilons": ["3"], "alphas": ["0.05"]})
    result = told[-1]["result"]
    pairs = {pair: release.pair(*pair).within(max_nodes=4000) for pair in release.pairs}
    bounds = {pair: own.epsilon_bounds("1e-6") for pair, own in pairs.items()}
    row = result["epsilon"][0]
    assert row["lower"] <= max(b.upper for b in bounds.values())
    assert max(b.lower for b in bounds.values()) <= row["upper"] <= row["lower"] * (1 + 1e-10)
    worst = result["worst_pair"][0]
    assert bounds[tuple(worst["pair"])].upper >= max(b.lower for b in bounds.values()) or worst["tied"] > 1
    row = result["delta"][0]
    assert row["lower"] <= max(own.delta(3) for own in pairs.values()) <= row["upper"] * (1 + 1e-9)
    assert result["beta"][0]["lower"] <= release.proxy.within(max_nodes=4000).beta_bounds("0.05").upper
    curve = result["delta_curve"]
    deltas = [own.delta_bounds(curve["epsilon"][1:8:3]) for own in pairs.values()]
    assert (np.array(curve["lower"][1:8:3]) <= np.max([d.upper for d in deltas], axis=0)).all()
    assert (np.array(curve["upper"][1:8:3]) >= np.max([d.lower for d in deltas], axis=0)).all()
    assert result["remarks"] == []


def test_overall_refuses_in_a_line(overall: Overall) -> None:
    told = overall({"design": {**SMALL, "paths": [{"number": 1, "bypassed": ["Nation"]}]}})
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


def test_a_certificate_of_the_whole_design_verifies(studio: Studio) -> None:
    response = studio.post("/certify", {"design": SMALL, "over": "overall", "delta": "1e-6"})
    assert response.headers["content-disposition"] == 'attachment; filename="small-certificate.json"'
    certificate = exactdp.DesignCertificate.from_json(response.text)
    design = parse_budget(TEXT, "small.toml")
    assert certificate.fingerprint == design.fingerprint
    assert certificate.answer == exactdp.certify(design, delta="1e-6").answer
    assert certificate.digits == 10
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
    assert f"delta,epsilon,1.0,{for_file(study.release.proxy.delta_bounds(1).lower, DOWN)}," in curve.text


def test_a_report_is_html_with_the_headline(studio: Studio) -> None:
    kept = [{"name": "A", "design": SMALL}]
    body = {"design": named('a <b>"report"</b>'), "delta": "1e-6", "deltas": [], "against": kept}
    response = studio.post("/report", body)
    assert response.status_code == 200, response.text
    assert response.headers["content-disposition"] == 'attachment; filename="a-b-report-b-report.html"'
    assert response.text.lower().startswith("<!doctype html>")
    assert "8.30" in response.text
    assert "A, this design" in response.text
    assert "Scenario A" in response.text  # not another "A"
    assert '<b>"report"</b>' not in response.text
