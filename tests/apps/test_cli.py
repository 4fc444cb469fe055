"""The command line: exit codes, one sentence for what is wrong, and the same answers as the library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import exactdp
from command_line import refused, run
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.apps import cli

TEN = ["certify", "--mechanism", "1*10"]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "certificate.json"
    result = run(*TEN, "--epsilon", "3", "-o", str(path))
    assert result.exit_code == 0
    assert "10 x discrete Gaussian, sigma2 = 1 (sigma = 1), sensitivity 1" in result.stdout
    return path


def test_certify_and_verify(certificate: Path) -> None:
    result = run("verify", str(certificate))
    assert result.exit_code == 0
    assert result.stdout.startswith("Holds: delta at epsilon = 3, 30 digits")
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_certify_and_verify_a_whole_design(tmp_path: Path) -> None:
    path = tmp_path / "design.json"
    result = run("certify", "dhc-units-us", "--delta", "1e-10", "-o", str(path))
    assert result.exit_code == 0
    assert "at epsilon = 32.07198497 its only pair has delta at most 1e-10" in result.stdout
    assert "pair 1,1 proves that epsilon = 32.07198496 is too small" in result.stdout
    found = run("verify", str(path))
    assert (found.exit_code, found.stdout[:25]) == (0, "Holds: dhc-units-us: at e")
    path.write_text(path.read_text().replace("32.07198497", "32.07198498").replace("32.07198496", "32.07198497"))
    found = run("verify", str(path), "--jobs", "1")
    assert found.exit_code == 1
    assert "altered" in found.stdout
    printed = run("certify", "dhc-units-us", "--epsilon", "20", "--digits", "4").stdout
    assert json.loads(printed)["claim"]["delta"] == "0.0004537"
    of_a_pair = run("certify", "dhc-units-us", "--pair", "1,1", "--alpha", "0.05").stdout
    assert Certificate.from_json(of_a_pair).digits == 30


def test_verify_for_other_programs(certificate: Path) -> None:
    result = run("verify", "--json", str(certificate))
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert record["holds"] is True
    assert [c["name"] for c in record["checks"]] == ["hash", "form", "another tilt", "plan", "published method"]


def test_an_altered_certificate_exits_with_1_and_the_reason(certificate: Path) -> None:
    certificate.write_text(certificate.read_text().replace('"value": "3"', '"value": "4"'))
    result = run("verify", str(certificate))
    assert result.exit_code == 1
    assert result.stdout.startswith("Does not hold: delta at epsilon = 4: the SHA-256")
    assert result.stdout.count("\n") == 1
    assert json.loads(run("verify", str(certificate), "--json").stdout)["holds"] is False


def test_without_a_file_the_certificate_goes_to_standard_output() -> None:
    result = run("certify", "-m", "5/2*3", "-m", "4:2", "--delta", "1e-6", "--digits", "12")
    found = Certificate.from_json(result.stdout)
    assert found.composition == 3 * exactdp.DiscreteGaussian("5/2") + exactdp.DiscreteGaussian(4, 2)
    assert (found.given, found.digits) == ("delta", 12)


def test_json_with_a_file_gives_both(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    result = run(*TEN, "--alpha", "1/3", "--json", "--output", str(path))
    assert result.stdout == path.read_text()


def test_a_census_pair() -> None:
    result = run("certify", "--release", "dhc-persons-us", "--pair", "13,13", "--epsilon", "26.34")
    assert Certificate.from_json(result.stdout).composition == exactdp.census.release("dhc-persons-us").pair(13, 13)


def test_version_and_help() -> None:
    assert run("--version").stdout == f"exactdp {exactdp.__version__}\n"
    assert "certify" in run().stdout
    assert run().exit_code == 0
    assert "SIGMA2[:SENSITIVITY][*COUNT]" in run("certify", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["verify", "missing.json"], "missing.json"),
        (["verify", "."], "directory"),
        (["verify", __file__], "test_cli.py"),
        (["verify"], "FILE"),
        (["nonsense"], "nonsense"),
        (["certify", "--nonsense"], "--nonsense"),
        (["certify", "--epsilon", "3"], "--mechanism"),
        ([*TEN], "epsilon, delta or alpha"),
        ([*TEN, "--epsilon", "3", "--delta", "0.1"], "epsilon and delta"),
        ([*TEN, "--epsilon", "three"], "three"),
        ([*TEN, "--epsilon", "inf"], "inf"),
        ([*TEN, "--delta", "2"], "2"),
        ([*TEN, "--epsilon", "3", "--digits", "many"], "many"),
        ([*TEN, "--epsilon", "3", "--digits", "4"], "4"),
        ([*TEN, "--epsilon", "3", "--digits", "1001"], "1001"),
        ([*TEN, "--epsilon", "3", "-o", "missing/c.json"], "missing/c.json"),
        ([*TEN, "--epsilon", "3", "--release", "dhc-persons-us"], "dhc-persons-us"),
        (["certify", "dhc-units-us", "--alpha", "0.05"], "--pair"),
        (["certify", "dhc-units-us", "--epsilon", "3", "--delta", "0.1"], "one question"),
        (["certify", "dhc-units-us", "-m", "1", "--epsilon", "3"], "dhc-units-us and 1"),
        (["certify", "dhc-units-us", "--delta", "1e-9", "--digits", "51"], "51"),
        (["certify", "nothing", "--delta", "1e-9"], "nothing"),
        (["certify", "-m", "x", "--epsilon", "3"], "x"),
        (["certify", "-m", "1:2:3", "--epsilon", "3"], "1:2:3"),
        (["certify", "-m", "1*0", "--epsilon", "3"], "0"),
        (["certify", "-m", "-1", "--epsilon", "3"], "-1"),
        (["certify", "-m", "1\n\x1b[31m", "--epsilon", "3"], "sigma2"),
        (["certify", "--release", "dhc-persons-us", "--pair", "13", "--epsilon", "3"], "13"),
        (["certify", "--release", "dhc-persons-us", "--pair", "1,99", "--epsilon", "3"], "99"),
        (["certify", "--release", "dhc", "--pair", "1,1", "--epsilon", "3"], "dhc-persons-us"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(run(*arguments), named)


def test_an_interruption_exits_with_130(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.certificates, "verify", interrupted)
    result = run("verify", str(certificate))
    assert result.exit_code == 130
    assert result.output == ""


def test_as_a_process(certificate: Path) -> None:
    command = [sys.executable, "-c", "from exactdp.apps.cli import main; main()", "verify"]
    done = subprocess.run([*command, str(certificate)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Holds: ")
    missing = subprocess.run([*command, "missing.json"], capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr.count("\n") == 1
