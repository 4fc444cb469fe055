"""Certificates of whole designs: true ones verify, false ones do not, and brute force agrees about every pair."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import exactdp
import oracle
from exactdp import Composition, DesignCertificate, InvalidInputError
from exactdp.accounting.certificates.routes import EngineRoute, lattice_of
from exactdp.census import certify_design, design_proof, design_verification, release
from exactdp.census.certification import certify, load_certificate, read_certificate, verify
from exactdp.census.design_certificate import FORMAT, DesignContour, DesignEvidence, before, rounded_up
from exactdp.census.design_proof import side_in_balls, sides
from exactdp.census.design_verification import decided, verify_design
from exactdp.census.releases import Release
from exactdp.errors import AccuracyError, LatticeTooFineError

Table = dict[str, dict[str, Fraction]]
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
TWO = Release("two", "Two", "", {"a": {"x": HALF}, "b": {"x": HALF, "y": HALF}}, {1: (), 2: ("b",)})
ROOMS: Table = {"a": {"x": QUARTER, "y": QUARTER}, "b": {"x": HALF}, "c": {"z": Fraction(1)}}
SIX = Release("six", "Six", "", ROOMS, {1: (), 2: ("b",), 7: ("b", "c")})
EQUAL = Release("equal", "Equal", "", {"a": {"x": HALF}, "b": {"x": HALF}}, {1: (), 2: (), 3: ()})
ONE = Release("one", "One", "", {"a": {"x": Fraction(2)}}, {1: ()})
DESIGNS = (TWO, SIX, EQUAL, ONE)
QUESTIONS: list[dict[str, Any]] = [
    {"delta": "1e-6"},
    {"delta": "1/100", "digits": 2},
    {"delta": "0.8"},
    {"delta": "1e-9", "digits": 25},
    {"epsilon": 0},
    {"epsilon": 4, "digits": 5},
    {"epsilon": "-1/3"},
    {"epsilon": 3, "digits": 30},
    {"epsilon": 25},
]


def doubles() -> Release:
    """A design whose budgets are doubles, so that the losses have no lattice to speak of."""
    rng = random.Random(1)
    table = {f"level {i}": {name: Fraction(rng.random()) for name in "xy"} for i in range(2)}
    return Release("doubles", "Doubles", "", table, {1: (), 2: ("level 1",)})


def brute(design: Release, pair: tuple[int, int]) -> oracle.Brute:
    counts = design.pair(*pair).discrete_gaussians
    return oracle.brute({(m.sigma2, m.sensitivity): n for m, n in counts.items()})


def rehashed(certificate: DesignCertificate) -> DesignCertificate:
    return replace(certificate, sha256=certificate.digest())


@pytest.fixture(scope="module")
def of_epsilon() -> DesignCertificate:
    return certify_design(SIX, delta="1e-5")


@pytest.fixture(scope="module")
def of_delta() -> DesignCertificate:
    return certify_design(SIX, epsilon=4)


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_brute_force_agrees_about_every_pair_and_the_witness(design: Release, question: dict[str, Any]) -> None:
    certificate = certify_design(design, **question)
    for pair in design.pairs:
        assert brute(design, pair).delta(certificate.epsilon) <= certificate.delta
    epsilon, delta = certificate.refuted
    assert brute(design, certificate.witness).delta(epsilon) > delta
    assert (epsilon, delta) != (certificate.epsilon, certificate.delta)
    found = verify(certificate)
    assert found.holds, found.reason
    assert [(c.name, c.passed) for c in found.checks] == [(n, True) for n in ("hash", "form", "witness", "every pair")]
    assert "\n" not in found.reason


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: d.name)
def test_the_answer_is_the_overall_one_rounded_up(design: Release) -> None:
    study = design.account()
    low, high = study.epsilon_bounds("1e-6")
    for digits in (2, 6, 9):
        answer = certify_design(design, delta="1e-6", digits=digits).answer
        assert rounded_up(Fraction(low), digits) <= answer <= rounded_up(Fraction(high), digits)
        assert len(answer.as_tuple().digits) <= digits
    low, high = study.delta_bounds(2)
    answer = certify_design(design, epsilon=2, digits=9).answer
    assert rounded_up(Fraction(low), 9) <= answer <= rounded_up(Fraction(high), 9)


def test_the_number_before_an_answer_is_the_next_of_so_many_digits() -> None:
    assert before(Decimal("24.45651446"), 10) == Decimal("24.45651445")
    assert before(Decimal(10), 10) == Decimal("9.999999999")
    assert before(Decimal("-1.000"), 4) == Decimal("-1.001")
    assert before(Decimal(1), 2) == Decimal("0.99")
    assert rounded_up(Fraction(-2, 3), 3) == Decimal("-0.666")
    assert rounded_up(Fraction(999999, 1000), 3) == Decimal("1.00E+3")


def test_sides_are_never_on_the_unsafe_side() -> None:
    """Float64 tells what balls of 60 digits tell, or nothing; next to the value itself, nothing."""
    pair = SIX.pair(1, 2)
    for epsilon in (Fraction(-1), Fraction(0), Fraction(3), Fraction(20)):
        low, high = map(Fraction, pair.delta_bounds(epsilon, digits=60))
        point = design_proof.overall_of(SIX).pairs.answers(1).point([epsilon])
        for factor in (Fraction(1, 10**9), Fraction(-1, 10**9)):
            assert sides(point, low * (1 + factor))[0] == (-1 if factor > 0 else 1)
            assert side_in_balls(pair, epsilon, low * (1 + factor), 6) == (-1 if factor > 0 else 1)
        for delta in (low * (1 - Fraction(1, 10**17)), high * (1 + Fraction(1, 10**17))):
            assert sides(point, delta)[0] == 0
            assert side_in_balls(pair, epsilon, delta, 6) == (-1 if delta > high else 1)
        assert sides(point, Fraction(1))[0] == -1


def test_numbers_that_agree_to_all_digits_are_not_decided() -> None:
    low = Fraction(TWO.pair(1, 1).delta_bounds(3, digits=400).lower)
    with pytest.raises(AccuracyError, match="more digits than were tried"):
        side_in_balls(TWO.pair(1, 1), Fraction(3), low, 6)


def test_the_witness_of_a_tie_is_the_first_pair() -> None:
    certificate = certify_design(EQUAL, delta="1e-6")
    assert (certificate.witness, certificate.pairs, certificate.evidence.compositions) == ((1, 1), 6, 1)


@pytest.mark.parametrize("last", [{"epsilon": 1}, {"epsilon": 4}])
def test_the_last_pair_counts(last: dict[str, Any]) -> None:
    """The worst pair is the last: a claim that holds for all others fails."""
    certificate = certify_design(TWO, **last)
    assert certificate.witness == TWO.pairs[-1]
    others = max(brute(TWO, pair).delta(certificate.epsilon) for pair in TWO.pairs[:-1])
    answer = rounded_up(others, 10)
    forged = rehashed(replace(certificate, answer=answer, witness=_worst_but_last(certificate.epsilon)))
    found = verify(forged)
    assert not found.holds
    assert "pair 2,2 has a delta above" in found.reason


def _worst_but_last(epsilon: Fraction) -> tuple[int, int]:
    return max(TWO.pairs[:-1], key=lambda pair: brute(TWO, pair).delta(epsilon))


def _graft(certificate: DesignCertificate, **changes: Any) -> DesignCertificate:
    """Another design under the same claim; `fingerprint` and counts are as the forger likes."""
    return rehashed(replace(certificate, release=replace(certificate.release, **changes)))


MORE = {**ROOMS, "c": {"z": Fraction(11, 10)}}
FORGERIES: dict[str, tuple[Callable[[DesignCertificate], DesignCertificate], str]] = {
    "one unit less": (lambda c: replace(c, answer=c.too_small), "has a delta above"),
    "two units less": (lambda c: replace(c, answer=before(c.too_small, c.digits)), "has a delta above"),
    "one unit more": (lambda c: replace(c, answer=c.answer + (c.answer - c.too_small)), "does not prove"),
    "another witness": (lambda c: replace(c, witness=(7, 7)), "pair 7,7 does not prove"),
    "no pair": (lambda c: replace(c, witness=(2, 1)), "is no pair"),
    "no path": (lambda c: replace(c, witness=(5, 5)), "is no pair"),
    "more digits": (lambda c: replace(c, digits=c.digits + 1), "does not prove"),
    "fewer digits": (lambda c: replace(c, digits=c.digits - 1), "digits"),
    "other budget": (lambda c: _graft(c, table=MORE), "fingerprint"),
    "other budget and fingerprint": (
        lambda c: replace(_graft(c, table=MORE), fingerprint=replace(SIX, table=MORE).fingerprint),
        "has a delta above",
    ),
    "a path left out": (lambda c: _graft(c, bypassed={1: (), 2: ("b",)}), "fingerprint"),
    "a path left out, fingerprint made anew": (
        lambda c: replace(
            _graft(c, bypassed={1: (), 2: ("b",)}),
            fingerprint=replace(SIX, bypassed={1: (), 2: ("b",)}).fingerprint,
        ),
        "the design has 3 pairs",
    ),
    "fewer pairs": (lambda c: replace(c, pairs=5), "the design has 6 pairs, not 5"),
    "fewer compositions": (
        lambda c: replace(c, evidence=DesignEvidence(5, c.evidence.methods, ())),
        "6 different compositions",
    ),
    "nothing proved": (lambda c: replace(c, evidence=DesignEvidence(6, {}, ())), "not what the record counts"),
    "not a number": (lambda c: replace(c, answer=Decimal("NaN")), "digits"),
    "infinite": (lambda c: replace(c, answer=Decimal("Infinity")), "digits"),
    "zero": (lambda c: replace(c, answer=Decimal(0)), "digits"),
}


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("given", ["delta", "epsilon"])
def test_forged_records_do_not_hold(
    name: str, given: str, of_epsilon: DesignCertificate, of_delta: DesignCertificate
) -> None:
    forge, reason = FORGERIES[name]
    forged = forge(of_epsilon if given == "delta" else of_delta)
    assert "altered" in verify(replace(forged, sha256="0" * 64)).reason
    found = verify(rehashed(forged))
    assert not found.holds
    assert reason in found.reason
    assert "\n" not in found.reason


def test_the_question_cannot_be_changed(of_epsilon: DesignCertificate, of_delta: DesignCertificate) -> None:
    for factor, reason in (("0.999999", "has a delta above"), ("1.000001", "does not prove")):
        forged = rehashed(replace(of_epsilon, value=of_epsilon.value * Fraction(factor)))
        assert reason in verify(forged).reason
    for move, reason in (("-0.000001", "has a delta above"), ("0.000001", "does not prove")):
        assert reason in verify(rehashed(replace(of_delta, value=of_delta.value + Fraction(move)))).reason
    assert not verify(rehashed(replace(of_delta, given="delta"))).holds
    assert not verify(rehashed(replace(of_epsilon, value=Fraction(3, 2)))).holds


def test_the_record_is_small_and_survives_the_round_trip(of_delta: DesignCertificate, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate = certify(SIX, epsilon=4, path=path)
    assert certificate == of_delta
    assert DesignCertificate.load(path) == load_certificate(path) == certificate
    record = json.loads(path.read_text())
    assert record["format"] == FORMAT
    assert record["design"]["fingerprint"] == SIX.fingerprint
    assert record["claim"]["epsilon"] == "4"
    assert Decimal(record["claim"]["too_small"]) < Decimal(record["claim"]["delta"])
    assert verify(path).holds
    assert str(certificate).startswith("six: at epsilon = 4 each of its 6 pairs has delta at most ")
    assert isinstance(hash(certificate), int)


def _set(*path: Any) -> tuple[Any, ...]:
    """The way to a member of a record, and what is put there."""
    return path


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("version", 2), "version 1"),
        (_set("version", "1"), "not an exactdp certificate|not an exactdp design certificate"),
        (_set("digits", 51), "at most 50"),
        (_set("digits", 1), "at least 2"),
        (_set("digits", True), "whole number"),
        (_set("claim", "delta", "NaN"), "decimal"),
        (_set("claim", "delta", "0"), "differ from 0"),
        (_set("claim", "delta", "2"), "between 1E-100000 and 1"),
        (_set("claim", "delta", "-0.05"), "between 1E-100000 and 1"),
        (_set("claim", "delta", "0.058330588740"), "digits|canonical"),
        (_set("claim", "delta", "0.0583305887412345"), "must have 10 digits"),
        (_set("claim", "too_small", "0.01"), "canonical"),
        (_set("claim", "epsilon", "5"), "canonical"),
        (_set("claim", "epsilon", "4.0"), "canonical"),
        (_set("question", "given", "alpha"), "delta or epsilon"),
        (_set("question", "quantity", "epsilon"), "canonical"),
        (_set("question", "value", "1" + "0" * 30), "at most 1,000,000,000"),
        (_set("pairs", 0), "at least 1"),
        (_set("witness", [1]), "pair of paths"),
        (_set("witness", ["1", "2"]), "whole number"),
        (_set("design", "levels", []), "Found none"),
        (_set("design", "levels", 0, "queries", []), "at least one query"),
        (_set("design", "levels", 0, "queries", 0, "rho", "0"), "positive"),
        (_set("design", "levels", 0, "queries", 0, "rho", "-1/4"), "positive"),
        (_set("design", "levels", 0, "queries", 0, "rho", "0.25"), "fraction"),
        (_set("design", "levels", 0, "queries", 0, "rho", "2/8"), "canonical"),
        (_set("design", "levels", 0, "queries", 0, "rho", "1/1" + "0" * 3000), "denominator"),
        (_set("design", "levels", 0, "queries", 0, "rho", "1" + "0" * 300), "sum to at most"),
        (_set("design", "levels", 1, "level", "a"), "below the top|canonical"),
        (_set("design", "levels", 1, "level", ["a"]), "text"),
        (_set("design", "bypassed", 1, "levels", ["a"]), "below the top"),
        (_set("design", "bypassed", 1, "levels", ["q"]), "below the top"),
        (_set("design", "bypassed", 1, "levels", "b"), "in a list"),
        (_set("design", "bypassed", 1, "number", 1), "canonical"),
        (_set("design", "bypassed", 1, "number", 10**9 - 1), "at most"),
        (_set("design", "name", None), "text"),
        (_set("design", "title", "x" * 10_001), "10,000 characters"),
        (_set("design", "fingerprint", "F" * 64), "SHA-256"),
        (_set("evidence", "methods", 0, "method", "magic"), "A method is one of"),
        (_set("evidence", "contours", None), "wrong type"),
        (_set("evidence", "contours", [{"tilt": "1", "nodes": "1"}] * 1001), "at most 1,000 contours"),
        (_set("libraries", {}), "lacks a field"),
        (_set("note", "x"), "canonical"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_hostile_files_are_refused(
    change: tuple[Any, ...], reason: str, of_delta: DesignCertificate, tmp_path: Path
) -> None:
    record = inner = json.loads(of_delta.to_json())
    for key in change[:-2]:
        inner = inner[key]
    inner[change[-2]] = change[-1]
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(record))
    with pytest.raises(InvalidInputError, match=reason) as refused:
        verify(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"format": "exactdp design certificate"}', '{"format": 1, "version": 1}'):
        with pytest.raises(InvalidInputError):
            read_certificate(text)
    path = tmp_path / "large"
    path.write_bytes(b" " * 10_000_001)
    with pytest.raises(InvalidInputError, match="at most 10,000,000 bytes"):
        verify(path)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({}, "none of them"),
        ({"delta": "1e-6", "epsilon": 1}, "delta and epsilon"),
        ({"alpha": "0.05"}, "--pair"),
        ({"delta": 0}, "strictly between"),
        ({"delta": 1}, "strictly between"),
        ({"epsilon": 10**10}, "at most 1,000,000,000"),
        ({"epsilon": 10**6}, "too small to be written down"),
        ({"delta": "1e-6", "digits": 1}, "at least 2"),
        ({"delta": "1e-6", "digits": 51}, "at most 50"),
        ({"delta": "1e-6", "digits": 2.5}, "whole number"),
    ],
    ids=str,
)
def test_bad_questions_are_refused(question: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        exactdp.certify(SIX, **question)


def test_designs_that_cannot_be_written_down_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="about a Release"):
        certify_design(SIX.pair(1, 1), delta="1e-6")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="10,000 characters"):
        certify_design(replace(SIX, title="x" * 10_001), delta="1e-6")
    with pytest.raises(InvalidInputError, match="below the top"):
        certify_design(replace(SIX, bypassed={1: ("a",)}), delta="1e-6")


def test_the_recomputation_takes_other_contours(of_delta: DesignCertificate, monkeypatch: pytest.MonkeyPatch) -> None:
    named = of_delta.evidence.contours
    assert named
    made: list[EngineRoute] = []
    real = EngineRoute.delta

    def spy(route: EngineRoute, epsilon: Fraction) -> Any:
        made.append(route)
        return real(route, epsilon)

    monkeypatch.setattr(EngineRoute, "delta", spy)
    assert verify(of_delta).holds
    used = [e for route in made for e in route.made.values()]
    assert len({route.lattice.groups for route in made}) == 6
    assert {e.tilt for e in used}.isdisjoint(c.tilt for c in named)
    assert {e.nodes for e in used}.isdisjoint(c.nodes for c in named)
    natural = EngineRoute(lattice_of(SIX.pair(1, 1)), 10)
    natural.delta(of_delta.epsilon)
    assert {e.tilt for e in used}.isdisjoint(e.tilt for e in natural.made.values())


def test_without_a_lattice_float64_proves_and_another_method_verifies() -> None:
    design = doubles()
    for question in ({"delta": "1e-6"}, {"epsilon": -1}):
        certificate = certify_design(design, **question)
        assert set(certificate.evidence.methods) <= {"float64", "float64 on shared contours"}
        found = verify(certificate)
        assert found.holds, found.reason
        assert "3 different compositions recomputed" in found.reason
        assert "float64 (" in found.reason
        assert "balls" not in found.reason
        assert not verify(rehashed(replace(certificate, answer=certificate.too_small))).holds
    larger = 2 * certificate.answer - certificate.too_small
    assert not verify(rehashed(replace(certificate, answer=larger))).holds
    with pytest.raises(AccuracyError, match=r"20 digits of this design could not be proved.*Ask for fewer digits"):
        certify_design(design, delta="1e-6", digits=20)


def test_as_many_digits_as_can_be_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without balls float64 does with fewer digits than usual, and what cannot be decided does not hold."""

    def no_balls(*_: object, **__: object) -> int:
        raise LatticeTooFineError("no balls today")

    monkeypatch.setattr(design_proof, "USUAL_DIGITS", 16)
    monkeypatch.setattr(design_proof, "side_in_balls", no_balls)
    certificate = certify_design(SIX, delta="1e-6")
    assert 8 <= certificate.digits < 16
    monkeypatch.undo()
    assert verify(certificate).holds
    monkeypatch.setattr(design_verification, "side_in_balls", no_balls)
    monkeypatch.setattr(design_verification, "_on_the_line", lambda *_: iter(()))
    monkeypatch.setattr(design_verification, "_side_on_line", lambda *_: 0)
    found = verify(certificate)
    assert not found.holds
    assert "no balls today" in found.reason


@pytest.mark.parametrize("pair", [(1, 1), (2, 7), (7, 7)])
def test_a_pair_that_cannot_be_recomputed_does_not_hold(
    pair: tuple[int, int], of_epsilon: DesignCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pair != of_epsilon.witness

    def no_balls_for_it(composition: Composition, *rest: Any) -> int:
        if composition == SIX.pair(*pair):
            raise LatticeTooFineError("no balls today")
        return side_in_balls(composition, *rest)

    monkeypatch.setattr(design_verification, "side_in_balls", no_balls_for_it)
    assert verify(of_epsilon).holds  # by a method on the line
    monkeypatch.setattr(design_verification, "_on_the_line", lambda *_: iter(()))
    monkeypatch.setattr(design_verification, "_side_on_line", lambda *_: 0)
    found = verify(of_epsilon)
    assert not found.holds
    assert f"pair {pair[0]},{pair[1]} could not be recomputed: no balls today" in found.reason


def test_a_listed_contour_can_only_be_avoided() -> None:
    """Whoever lists many contours makes verification harder, not easier."""
    pair, epsilon, delta = SIX.pair(1, 1), Fraction(4), Fraction(1, 10)
    route = EngineRoute(lattice_of(pair), 6, ())
    route.delta(epsilon)
    (used,) = route.made.values()
    again = EngineRoute(lattice_of(pair), 6, (DesignContour(used.tilt, used.nodes),))
    again.delta(epsilon)
    assert next(iter(again.made.values())).tilt != used.tilt
    assert decided(pair, (1, 1), epsilon, delta, ())[1] == -1


def test_processes_share_the_work_and_progress_is_told(
    of_epsilon: DesignCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    assert verify_design(of_epsilon, done=told.append).holds
    assert sum(told) == 6
    found = verify(of_epsilon, jobs=2)
    assert found.reason == verify(of_epsilon).reason
    forged = rehashed(replace(of_epsilon, answer=of_epsilon.too_small))
    monkeypatch.setattr(design_verification, "_PART", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "has a delta above" in verify(forged, jobs=2).reason


def test_an_interruption_passes_through(of_epsilon: DesignCertificate) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify_design(of_epsilon, done=interrupted)


@pytest.mark.parametrize("name", ["dhc-units-us", "pl94-persons-us"])
def test_published_releases_of_one_path(name: str) -> None:
    certificate = exactdp.certify(release(name), delta="1e-10")
    low, high = release(name).proxy.epsilon_bounds("1e-10", digits=20)
    assert certificate.too_small < low < high <= certificate.answer
    found = verify(certificate)
    assert found.holds, found.reason
    assert "its only pair" in found.reason


@pytest.mark.soak
def test_all_pairs_of_a_published_release(tmp_path: Path) -> None:
    """All 946 pairs of DHC; half a minute."""
    design = release("dhc-persons-us")
    path = tmp_path / "dhc.json"
    certificate = exactdp.certify(design, delta="1e-10", path=path)
    assert certificate.answer == Decimal("24.45651446")
    assert path.stat().st_size < 100_000
    worst = design.account().worst_pair(delta="1e-10")
    assert certificate.witness == worst
    low, high = design.pair(*worst).epsilon_bounds("1e-10", digits=20)
    assert certificate.too_small < low < high <= certificate.answer
    found = verify(path)
    assert found.holds, found.reason
    assert "840 different compositions recomputed: 840 by balls on other contours" in found.reason
    forged = rehashed(replace(certificate, answer=certificate.too_small))
    assert "pair 6,6 has a delta above 1e-10" in verify(forged).reason


def test_a_composition_has_the_certificate_that_it_had() -> None:
    ten = Composition({exactdp.DiscreteGaussian(1): 10})
    certificate = exactdp.certify(ten, epsilon=3)
    assert isinstance(certificate, exactdp.Certificate)
    assert certificate.digits == 30
    assert read_certificate(certificate.to_json()) == certificate
    assert exactdp.verify(certificate).holds
