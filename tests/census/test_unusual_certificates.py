"""Certificates of designs with other neighbours or noise, of borrowed names, and records that nobody could go through."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from exactdp import DesignCertificate, InvalidInputError
from exactdp.census import certify_design, release
from exactdp.census.cell_noise import CellNoise
from exactdp.census.certification import read_certificate, verify
from exactdp.census.design_certificate import before
from exactdp.census.releases import Release

HALF = Fraction(1, 2)
ONE = Release("one", "One", "", {"a": {"x": Fraction(2)}}, {1: ()})


def rehashed(certificate: DesignCertificate) -> DesignCertificate:
    return replace(certificate, sha256=certificate.digest())


@pytest.fixture(scope="module")
def of_epsilon() -> DesignCertificate:
    return certify_design(
        Release("two", "Two", "", {"a": {"x": HALF}, "b": {"x": HALF}}, {1: (), 2: ("b",)}), delta="1e-5"
    )


@pytest.mark.parametrize("relation", ["replace", "add/remove"])
def test_other_neighbours_and_noise_are_in_the_record_and_proved(relation: str) -> None:
    """Forged in either of them, nothing holds: the fingerprint covers both, and with a new one the claim is another's."""
    noise = {("a", "x"): CellNoise(sensitivity=2), ("b", "x"): CellNoise("discrete laplace", cells=2)}
    design = Release("other", "Other", "", {"a": {"x": HALF}, "b": {"x": HALF}}, {1: (), 2: ("b",)}, relation, noise)
    certificate = certify_design(design, delta="1e-6", digits=6)
    assert read_certificate(certificate.to_json()) == certificate
    assert verify(certificate).holds
    answers = [design.pair(*pair).epsilon_bounds("1e-6") for pair in design.pairs]
    assert max(low for low, _ in answers) <= float(certificate.answer)
    assert float(before(certificate.answer, 6)) < max(high for _, high in answers)
    less = replace(design, noise={("b", "x"): CellNoise("discrete laplace", cells=2)})
    assert not verify(rehashed(replace(certificate, release=less))).holds
    assert not verify(rehashed(replace(certificate, release=less, fingerprint=less.fingerprint))).holds


@pytest.mark.parametrize("delta", ["1e-12", "1e-20", "1e-300"])
def test_at_the_greatest_loss_delta_is_zero_and_verifies(delta: str) -> None:
    noise = {("a", "x"): CellNoise("discrete laplace")}
    design = Release("lap", "", "", {"a": {"x": Fraction(1)}}, {1: ()}, "add/remove", noise)
    assert verify(certify_design(design, delta=delta)).holds


def test_a_record_that_would_take_for_ever_is_refused(of_epsilon: DesignCertificate) -> None:
    record = json.loads(of_epsilon.to_json())
    record["design"]["levels"][0]["queries"] = [{"query": str(i), "rho": f"{i + 1}/99999"} for i in range(900)]
    record["design"]["bypassed"] = [{"number": i, "levels": []} for i in range(1, 60)]
    with pytest.raises(InvalidInputError, match="500,000 budgets"):
        read_certificate(json.dumps(record))


def test_huge_numbers_of_a_forged_budget_are_refused(of_epsilon: DesignCertificate) -> None:
    record = json.loads(of_epsilon.to_json())
    record["design"]["levels"][0]["queries"][0]["rho"] = "1" + "0" * 400 + "/3"
    with pytest.raises(InvalidInputError):
        read_certificate(json.dumps(record))


def test_a_borrowed_name_is_told() -> None:
    """The verdict names the fingerprint, and says so if the name is that of a published release."""
    spoof = replace(ONE, name="dhc-persons-us")
    assert "is not the built-in release of this name" in verify(certify_design(spoof, delta="1e-3")).reason
    own = certify_design(release("dhc-units-us"), delta="1e-10")
    assert own.fingerprint[:12] in verify(own).reason
    assert "built-in" not in verify(own).reason
