"""Certificates: true ones verify, false ones do not, hostile files are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import exactdp
from exactdp import Composition, DiscreteGaussian, InvalidInputError
from exactdp.accounting.certificates import record, routes
from exactdp.accounting.certificates import verify as verification
from exactdp.accounting.certificates.certificate import Certificate, certify
from exactdp.accounting.certificates.verify import verify

TEN = 10 * DiscreteGaussian(1)
MIXED = Composition({DiscreteGaussian("5/2"): 3, DiscreteGaussian(4, 2): 1})
QUESTIONS: list[tuple[Composition, dict[str, Any]]] = [
    (TEN, {"epsilon": 3}),
    (TEN, {"epsilon": 30, "digits": 60}),
    (TEN, {"epsilon": -2}),
    (TEN, {"epsilon": 0, "digits": 5}),
    (TEN, {"delta": "1e-10"}),
    (TEN, {"delta": "0.9"}),
    (TEN, {"alpha": "0.999"}),
    (MIXED, {"epsilon": "7/2", "digits": 12}),
    (MIXED, {"delta": "1e-6"}),
    (MIXED, {"alpha": "1e-4"}),
    (Composition([DiscreteGaussian("0.1")]), {"epsilon": 1}),
    (Composition([DiscreteGaussian(100)]), {"alpha": "1/3"}),
]


OF_OLD = """{"format": "exactdp certificate", "version": 1, "composition": [{"sigma2": "2", "sensitivity": "1", "count": "2"}],
"question": {"quantity": "delta", "given": "epsilon", "value": "1"}, "digits": 6,
"enclosure": {"lower": "0.11961160546792024", "upper": "0.11961160546792028"},
"plan": [{"payoff": "delta", "start": "2", "tilt": "3/2", "nodes": "69", "kept": "35", "aim_digits": "18", "bits": "130",
"aliased": "2.803E-22", "dropped": "6.609E-21"}],
"libraries": {"exactdp": "0.1.0", "python": "3.11.7", "python-flint": "0.9.0", "flint": "3.6.0", "numpy": "2.4.6",
"scipy": "1.17.1"}, "sha256": "d7b2f3605de72f952ee4dcd85887c983cc1ec2105011d4c08462a598ee3ed0ca"}"""
"""As version 0.1.0 wrote it."""


@pytest.fixture(scope="module")
def delta() -> Certificate:
    return certify(TEN, epsilon=3)


@pytest.fixture(scope="module")
def epsilon() -> Certificate:
    return certify(TEN, delta="1e-10")


@pytest.fixture(scope="module")
def beta() -> Certificate:
    return certify(MIXED, alpha="1/20")


def rehashed(certificate: Certificate) -> Certificate:
    return replace(certificate, sha256=certificate.digest())


def nudged(value: Decimal, place: int) -> Decimal:
    """The value with 1 added to its digit number `place`."""
    sign, numerals, exponent = value.as_tuple()
    whole = int("".join(map(str, numerals))) + 10 ** (len(numerals) - place)
    return Decimal((sign, tuple(map(int, str(whole))), exponent))


@pytest.mark.parametrize(("composition", "question"), QUESTIONS)
def test_true_certificates_verify_and_survive_the_round_trip(
    composition: Composition, question: dict[str, Any], tmp_path: Path
) -> None:
    certificate = certify(composition, **question)
    path = tmp_path / "certificate.json"
    certificate.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["certificate.json"]
    assert Certificate.load(path) == certificate
    result = verify(path)
    assert result.holds, result.reason
    assert "\n" not in result.reason
    assert {c.name: c.passed for c in result.checks} == dict.fromkeys(
        ("hash", "form", "another tilt", "plan", "published method"), True
    )


def test_the_enclosure_is_the_public_answer_and_keeps_its_digits() -> None:
    for composition, question in QUESTIONS:
        digits = question.get("digits", 30)
        certificate = certify(composition, **question)
        (given,) = set(question) - {"digits"}
        ask = {"epsilon": "delta_bounds", "delta": "epsilon_bounds", "alpha": "beta_bounds"}[given]
        low, high = getattr(composition, ask)(question[given], digits=digits)
        assert certificate.lower <= high
        assert low <= certificate.upper
        width = Fraction(certificate.upper) - Fraction(certificate.lower)
        assert width < Fraction(1, 10**digits) * abs(Fraction(certificate.lower))


def test_the_recomputation_shares_neither_tilt_nor_nodes_nor_precision(beta: Certificate) -> None:
    route = routes.EngineRoute(routes.lattice_of(MIXED), beta.digits + 20, beta.plan)
    routes.compare(route, route.lattice, "alpha", beta.value, beta.ends)
    made = route.made.values()
    assert {e.tilt for e in made}.isdisjoint(e.tilt for e in beta.plan)
    assert {e.nodes for e in made}.isdisjoint(e.nodes for e in beta.plan)
    assert min(e.bits for e in made) > max(e.bits for e in beta.plan)


ALTERATIONS: dict[str, tuple[Callable[[Certificate], Certificate], str]] = {
    "composition": (lambda c: replace(c, composition=c.composition + DiscreteGaussian(50)), "is above the upper end"),
    "less noise": (lambda c: replace(c, composition=c.composition.scaled("0.9999")), "is above the upper end"),
    "more noise": (lambda c: replace(c, composition=c.composition.scaled("1.0001")), "is below the lower end"),
    "upper cut": (lambda c: replace(c, upper=c.lower), "is above the upper end"),
    "lower cut": (lambda c: replace(c, lower=c.upper), "is below the lower end"),
    "swapped": (lambda c: replace(c, lower=c.upper, upper=c.lower), "lower end of the enclosure is above"),
    "first digit": (lambda c: replace(c, lower=nudged(c.lower, 1), upper=nudged(c.upper, 1)), "is below the lower end"),
    "digit 25": (lambda c: replace(c, lower=nudged(c.lower, 25), upper=nudged(c.upper, 25)), "is below the lower end"),
    "digit 30": (lambda c: replace(c, lower=nudged(c.lower, 30), upper=nudged(c.upper, 30)), "is below the lower end"),
    "too wide": (lambda c: replace(c, upper=nudged(c.upper, 29)), "too wide"),
    "digits": (lambda c: replace(c, digits=32), "of sum 1 is"),
    "tilt": (lambda c: _with_sum(c, tilt=c.plan[0].tilt * 2), "tilt of sum 1 is"),
    "nodes": (lambda c: _with_sum(c, nodes=c.plan[0].nodes + 1), "nodes of sum 1 is"),
    "kept": (lambda c: _with_sum(c, kept=c.plan[0].kept - 1), "kept of sum 1 is"),
    "bits": (lambda c: _with_sum(c, bits=c.plan[0].bits + 1), "bits of sum 1 is"),
    "start": (lambda c: _with_sum(c, start=c.plan[0].start + 1), "start of sum 1 is"),
    "aliased": (lambda c: _with_sum(c, aliased=c.plan[0].aliased / 2), "aliased of sum 1 is"),
    "dropped": (lambda c: _with_sum(c, dropped=nudged(c.plan[0].dropped, 4)), "dropped of sum 1 is"),
    "no plan": (lambda c: replace(c, plan=()), "has 0 sums"),
}


def _with_sum(certificate: Certificate, **changes: Any) -> Certificate:
    return replace(certificate, plan=(replace(certificate.plan[0], **changes), *certificate.plan[1:]))


@pytest.mark.parametrize("kind", ["delta", "epsilon", "beta"])
@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_certificates_fail_with_the_reason(kind: str, name: str, request: pytest.FixtureRequest) -> None:
    certificate: Certificate = request.getfixturevalue(kind)
    alter, reason = ALTERATIONS[name]
    if kind == "epsilon" and name == "digits":
        reason = ""  # its enclosure is wider: too wide, or the plan differs
    if kind == "beta":  # less privacy is a smaller beta
        opposite = {"composition": "below the lower", "less noise": "below the lower", "more noise": "above the upper"}
        reason = opposite.get(name, reason)
    altered = alter(certificate)
    plain = verify(altered)
    assert not plain.holds
    assert "SHA-256" in plain.reason
    forged = verify(rehashed(altered))
    assert not forged
    assert reason in forged.reason
    assert "\n" not in forged.reason


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("delta", Fraction(3) + Fraction(1, 10**25), "delta is below the lower end"),
        ("delta", Fraction(-3), "delta is above the upper end"),
        ("epsilon", Fraction(1, 10**9), "epsilon is below the lower end"),
        ("beta", Fraction(1, 21), "beta is above the upper end"),
    ],
)
def test_altered_questions_fail(kind: str, value: Fraction, reason: str, request: pytest.FixtureRequest) -> None:
    altered = replace(request.getfixturevalue(kind), value=value)
    assert "SHA-256" in verify(altered).reason
    assert reason in verify(rehashed(altered)).reason


def test_the_other_kind_of_question_fails(delta: Certificate) -> None:
    other = replace(delta, given="alpha", value=Fraction(1, 3))
    assert not verify(other)
    assert "beta is" in verify(rehashed(other)).reason


def test_a_wider_enclosure_within_the_promise_is_still_true(delta: Certificate) -> None:
    """Documented: what stays true verifies, once the hash is right."""
    wider = replace(delta, upper=nudged(delta.upper, 33))
    assert not verify(wider)
    assert verify(rehashed(wider))


def test_each_route_alone_catches_a_false_claim(delta: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = rehashed(replace(delta, lower=nudged(delta.lower, 28), upper=nudged(delta.upper, 28)))
    for name in ("another tilt", "published method"):
        with monkeypatch.context() as patch:
            patch.setattr(verification, "_CHECKS", {name: verification._CHECKS[name]})
            result = verify(forged)
            assert not result.holds
            assert "below the lower end" in result.reason


def test_the_published_method_is_left_out_where_it_would_cost_too_much() -> None:
    result = verify(certify(TEN, epsilon=1000))
    assert result.holds
    assert result.checks[-1].passed is None
    assert "was not run" in result.reason


def test_a_census_pair() -> None:
    pair = exactdp.census.release("dhc-persons-us").pair(13, 13)
    result = verify(certify(pair, epsilon="26.34"))
    assert result.holds, result.reason
    assert result.checks[-1].passed


def test_what_cannot_be_recomputed_does_not_hold(delta: Certificate) -> None:
    fine = Composition({DiscreteGaussian(Fraction(10**90 + 7, 10**90)): 1, DiscreteGaussian(2): 4})
    result = verify(rehashed(replace(delta, composition=fine)))
    assert not result.holds
    assert "could not be recomputed" in result.reason


def edited(certificate: Certificate, *path: str | int, value: object) -> str:
    record = json.loads(certificate.to_json())
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(record)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "something else"),
        (("version",), 2),
        (("version",), True),
        (("version",), "1"),
        (("extra",), "field"),
        (("composition",), []),
        (("composition",), {}),
        (("composition",), [{"sigma2": "1", "sensitivity": "1", "count": "1"}] * 1001),
        (("composition", 0, "sigma2"), "0"),
        (("composition", 0, "sigma2"), "2/2"),
        (("composition", 0, "sigma2"), "1/0"),
        (("composition", 0, "sigma2"), 1),
        (("composition", 0, "sigma2"), "9" * 5000),
        (("composition", 0, "count"), "1e9"),
        (("composition", 0, "count"), "-1"),
        (("composition", 0, "count"), "9" * 30),
        (("question", "given"), "gamma"),
        (("question", "quantity"), "beta"),
        (("question", "value"), "\x1b[31m3\n"),
        (("digits",), 4),
        (("digits",), 1001),
        (("digits",), 12.5),
        (("digits",), True),
        (("enclosure", "lower"), "NaN"),
        (("enclosure", "lower"), "1E-999999"),
        (("enclosure", "lower"), "0.5E0"),
        (("enclosure",), None),
        (("plan", 0, "nodes"), 10),
        (("plan",), 7),
        (("plan", 0), "sum"),
        (("libraries", "exactdp"), "x" * 100),
        (("sha256",), "abc"),
    ],
)
def test_malformed_records_are_refused_in_one_sentence(
    delta: Certificate, path: tuple[str | int, ...], value: object
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Certificate.from_json(edited(delta, *path, value=value))
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        "[" * 100_000,
        '{"version": 1, "version": 1}',
        '{"a": NaN}',
        "1" * 5000,
        '{"a": 1.5}',
        "\0",
    ],
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        Certificate.from_json(text)


def test_certificates_of_the_first_version_verify() -> None:
    assert verify(Certificate.from_json(OF_OLD)).holds
    now = certify(2 * DiscreteGaussian(2), epsilon=1, digits=6)
    assert now.libraries["exactdp"] == exactdp.__version__ != "0.1.0"
    assert replace(now, libraries={}, sha256="") == replace(Certificate.from_json(OF_OLD), libraries={}, sha256="")


def test_files_that_are_too_large_or_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(b" " * (record.LARGEST_FILE + 1))
    with pytest.raises(InvalidInputError, match="at most"):
        verify(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match=r"large\.json"):
        verify(path)


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"epsilon": 1, "delta": "0.1"},
        {"delta": 0},
        {"delta": 1},
        {"alpha": 0},
        {"alpha": "3/2"},
        {"epsilon": "1e10"},
        {"epsilon": float("inf")},
        {"delta": "1e-5000"},
        {"epsilon": 100_000},
        {"epsilon": 1, "digits": 4},
        {"epsilon": 1, "digits": 1001},
    ],
)
def test_questions_that_have_no_certificate(question: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        certify(TEN, **question)
    assert len(str(caught.value)) < 300


def test_a_failed_save_leaves_what_was_there(
    delta: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "certificate.json"
    path.write_text("before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        delta.save(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_certify_writes_the_file(tmp_path: Path) -> None:
    target = tmp_path / "claim.json"
    certificate = certify(10 * DiscreteGaussian(1), epsilon=30, digits=12, path=target)
    assert Certificate.load(target) == certificate
    assert verify(target).holds
