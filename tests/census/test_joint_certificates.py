"""Certificates of several products under one change: what they claim, and forged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from exactdp import census
from exactdp.census.certification import certify, load_certificate, verify
from exactdp.census.changes import Half
from exactdp.census.joint_certificate import JointCertificate
from exactdp.errors import InvalidInputError
from exactdp.interop.schemas import json_schema

REPLACED = "person replaced"


@cache
def made() -> JointCertificate:
    return certify(census.joint("pl94-persons-pr-patterns+dhc-persons-pr-no-prim", REPLACED), delta="1e-6", digits=8)


def rehashed(record: JointCertificate) -> JointCertificate:
    return replace(record, sha256=record.digest())


def test_it_holds_and_every_composition_agrees(tmp_path: Path) -> None:
    record = made()
    assert record.combinations == 36
    each = [record.joint.composition(i) for i in range(record.combinations)]
    assert all(c.delta_bounds(record.epsilon).upper <= 1e-6 for c in each)
    assert each[record.witness].delta_bounds(Fraction(record.too_small)).lower > 1e-6
    record.save(tmp_path / "joint.json")
    again = load_certificate(tmp_path / "joint.json")
    assert isinstance(again, JointCertificate)
    assert again.to_json() == record.to_json()
    jsonschema.validate(record.content() | {"sha256": record.sha256}, json_schema("joint-certificate"))
    found = verify(again)
    assert found.holds, found.reason
    assert "36 in float64 on other contours" in found.reason
    assert "designs as built in; moves as this version derives" in found.reason


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (lambda r: replace(r, answer=r.too_small), "above"),
        (lambda r: replace(r, answer=2 * r.answer - r.too_small), "too small"),
        (lambda r: replace(r, witness=36), "no combination"),
        (lambda r: replace(r, combinations=35), "not 35"),
        (lambda r: replace(r, delta=r.delta / 2), "above"),
    ],
)
def test_forged_records_do_not_hold(forge: Callable[[JointCertificate], JointCertificate], told: str) -> None:
    forged = forge(made())
    assert "SHA-256" in verify(forged).reason
    found = verify(rehashed(forged))
    assert not found.holds
    assert told in found.reason


def test_other_moves_are_named() -> None:
    """A record that says that less moves is another claim: it is checked as it stands, and the verdict says so."""
    record = made()
    first = record.joint.parts[0]
    less = replace(first, follow=replace(first.follow, halves=(Half(frozenset({"total"})), Half())))
    joint = replace(record.joint, parts=(less, *record.joint.parts[1:]))
    found = verify(rehashed(replace(record, joint=joint, combinations=joint.count, witness=0)))
    assert not found.holds, "the witness costs less than it did"
    form = next(check for check in found.checks if check.name == "form")
    assert "moves other than this version derives" in form.note


def test_one_combination_is_certified_in_balls() -> None:
    record = certify(census.joint("ddhc-a-pr+s-dhc-pr", "person added or removed"), delta="1e-10")
    assert record.answer == Decimal("21.04763442")
    assert "1 one by one, in balls" in verify(record).reason


@pytest.mark.parametrize("question", [{"epsilon": 3}, {"alpha": "0.1"}, {}, {"delta": "1e-6", "epsilon": 1}])
def test_other_questions_are_refused(question: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="give delta"):
        certify(made().joint, **question)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c | {"products": []}, "products"),
        (lambda c: c | {"products": c["products"] * 2}, "twice"),
        (lambda c: c | {"witness": "0"}, "whole number"),
        (lambda c: c | {"digits": 1}, "digits"),
        (lambda c: c | {"change": {}}, "lacks a field"),
    ],
)
def test_malformed_records_are_refused(change: Callable[[dict], dict], told: str) -> None:
    record = made()
    with pytest.raises(InvalidInputError, match=told):
        JointCertificate.from_json(json.dumps(change(record.content() | {"sha256": record.sha256})))


PERSONS = ("pl94-persons", "dhc-persons", "ddhc-a", "s-dhc")
UNITS = ("pl94-units", "dhc-units", "ddhc-b")
ANY_PATH = {  # epsilon at 1e-10 over all combinations of paths, rounded up, with every pattern of P.L. 94-171
    ("us", "person added or removed"): "37.73280",
    ("us", "person replaced"): "59.38409",
    ("us", "occupied unit replaced"): "70.19831",
    ("us", "occupied becomes vacant"): "45.37431",
    ("us", "answers of another member"): "80.44230",
    ("us", "answers of a householder"): "97.80068",
    ("pr", "person added or removed"): "31.88495",
    ("pr", "person replaced"): "49.73422",
    ("pr", "occupied unit replaced"): "53.85243",
    ("pr", "occupied becomes vacant"): "35.70846",
    ("pr", "answers of another member"): "65.11500",
    ("pr", "answers of a householder"): "75.93282",
}


@pytest.mark.soak
@pytest.mark.parametrize(("where", "change"), ANY_PATH)
def test_any_path_of_every_headline_is_certified(where: str, change: str) -> None:
    products = PERSONS if "person" in change else UNITS if "occupied" in change else PERSONS + UNITS
    ends = {"pl94": "-patterns", "dhc": "-no-prim" if where == "pr" else ""}
    joint = census.joint([f"{p}-{where}{ends.get(p.partition('-')[0], '')}" for p in products], change)
    record = certify(joint, delta="1e-10")
    assert abs(Fraction(record.answer) - Fraction(ANY_PATH[where, change])) <= Fraction(1, 10**4)
    found = verify(record)
    assert found.holds, found.reason
