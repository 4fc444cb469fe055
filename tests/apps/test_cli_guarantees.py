"""exactdp compare, risk, calibrate, convert, mu: what they print, JSON for programs, wrong input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from command_line import refused, run
from exactdp import census
from exactdp.guarantees.calibration import calibrate, target
from exactdp.guarantees.gaussian_dp import gdp_beta, gdp_delta, gdp_epsilon, gdp_mu
from exactdp.guarantees.risk import risk_of
from exactdp.guarantees.tightest_mu import tightest_mu
from exactdp.guarantees.zcdp import zcdp_beta
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numerals import about, at_least, at_most
from small_release import SMALL

TEN = 10 * DiscreteGaussian(1)
COMMANDS = ("compare", "risk", "calibrate", "convert", "mu")


def read(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def budget(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(census.budget_toml(SMALL))
    return str(path)


def test_help_lists_the_commands() -> None:
    text = run("--help").stdout
    assert all(f"  {name} " in text for name in COMMANDS)
    for name in COMMANDS:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert "--json" in result.stdout


def test_completion() -> None:
    # in its own process: which shell it is comes from the environment
    script = "import sys; sys.argv[0] = 'exactdp'; from exactdp.apps.cli import main; main()"
    environment = {**os.environ, "_EXACTDP_COMPLETE": "complete_bash", "COMP_WORDS": "exactdp c", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=240)
    assert {"compare", "calibrate", "convert"} <= set(done.stdout.split()), done.stderr
    assert "--show-completion" in run("--help").stdout


def test_compare() -> None:
    found = TEN.compare(delta="1e-10")
    record = read("compare", "-m", "1*10", "--delta", "1e-10")
    assert {"given", "value", "exact", "gaussian", "zcdp_simple", "zcdp_optimal"} <= record.keys()
    assert record["exact"] == list(found.exact)
    assert record["gaussian"] == found.gaussian
    assert record["value"] == "1/10000000000"
    assert record["shortcut_understates"] is True
    assert record["statement"] == found.statement
    printed = run("compare", "-m", "1*10", "--delta", "1e-10").stdout
    assert "\nepsilon at delta = 1e-10\n" in printed
    assert "ALARM" in printed
    assert "24.678" in printed
    assert about(found.gaussian) in printed
    at = read("compare", "-m", "1*4", "-m", "1*6", "--epsilon", "3")
    assert at["exact"] == list(TEN.compare(epsilon=3).exact)
    pair = read("compare", "--release", "dhc-units-us", "--pair", "1,1", "--delta", "1e-10")
    assert pair["exact"][1] == census.release("dhc-units-us").pair(1, 1).epsilon("1e-10")


def test_risk(budget: str) -> None:
    risk = TEN.risk(alpha="0.01", prior="1/3", delta="1e-6")
    record = read("risk", "-m", "1*10", "--alpha", "0.01", "--prior", "1/3", "--delta", "1e-6")
    assert record.keys() == {"alpha", "prior", "delta", "advantage", "power", "bayes_risk", "posterior", "odds"}
    for name in ("advantage", "power", "bayes_risk", "posterior", "odds"):
        assert record[name] == list(getattr(risk, name))
    assert record["prior"] == "1/3"
    printed = run("risk", "-m", "1*10").stdout
    for name in ("advantage", "power", "Bayes risk", "posterior", "odds multiplier"):
        assert name in printed
    study = SMALL.account()
    overall = risk_of(study, Fraction(1, 20), Fraction(1, 2), Fraction(1, 10**10))
    assert read("risk", "--design", budget)["advantage"] == list(overall.advantage)


def test_calibrate() -> None:
    record = read("calibrate", "-m", "1*10", "--epsilon", "4", "--delta", "1e-6", "--grid", "50")
    assert record.keys() >= {"factor", "value", "grid", "target"}
    expected = calibrate(TEN, target(epsilon=4, delta="1e-6"), grid=50).factor
    assert Fraction(record["factor"]) == expected
    assert record["value"] == float(expected)
    assert record["grid"] == "1/50"
    assert record["target"] == {"epsilon": "4", "delta": "1/1000000"}
    printed = run("calibrate", "-m", "1*10", "--epsilon", "4", "--delta", "1e-6", "--grid", "50").stdout
    assert str(float(expected)) in printed
    assert str(float(expected - Fraction(1, 50))) in printed
    assert read("calibrate", "-m", "1*10", "--alpha", "0.05", "--beta", "0.5", "--grid", "10")["target"] == {
        "alpha": "1/20",
        "beta": "1/2",
    }
    assert Fraction(read("calibrate", "-m", "1", "--mu", "1.05", "--grid", "10")["factor"]) == 1


def test_calibrate_a_design(budget: str) -> None:
    factor = Fraction(read("calibrate", "--design", budget, "--advantage", "0.5", "--grid", "20")["factor"])
    assert SMALL.scaled(factor).account().delta_bounds(0).upper <= 0.5
    assert SMALL.scaled(factor - Fraction(1, 20)).account().delta_bounds(0).lower > 0.5


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--rho", "2.556226", "--delta", "1e-10"], [17.14355, 17.90019]),
        (["--rho", "4.9622", "--delta", "1e-10"], [25.4193, 26.3406]),
        (["--rho", "0.5", "--epsilon", "5"], [2.8961e-6, 4.0065e-5]),
        (["--rho", "0.1", "--alpha", "0.1"], [zcdp_beta("0.1", "0.1")]),
        (["--mu", "1", "--delta", "1e-5"], [gdp_epsilon(1, "1e-5")]),
        (["--mu", "1", "--epsilon", "-1"], [gdp_delta(1, -1)]),
        (["--mu", "1", "--alpha", "0.05"], [gdp_beta(1, "0.05")]),
        (["--epsilon", "1", "--delta", "1e-5"], [gdp_mu(1, "1e-5")]),
    ],
)
def test_convert(arguments: list[str], expected: list[float]) -> None:
    record = read("convert", *arguments)
    assert list(record.values()) == pytest.approx(expected, rel=2e-5)
    printed = run("convert", *arguments).stdout
    assert all(name in printed for name in record)


def test_mu() -> None:
    record = read("mu", "-m", "1*10")
    found = tightest_mu(TEN)
    assert record == {"lower": found.lower, "upper": found.upper, "epsilon": found.epsilon}
    printed = run("mu", "-m", "1*10").stdout
    assert "3.1755" in printed
    assert f"mu is at least {at_least(found.lower)} " in printed
    assert f"at most {at_most(found.upper)}" in printed


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["compare", "-m", "1*10"], "exactly one of --delta, --epsilon"),
        (["compare", "-m", "1*10", "--delta", "1e-3", "--epsilon", "1"], "Found 2"),
        (["compare", "--delta", "1e-3"], "none of them"),
        (["compare", "-m", "x", "--delta", "1e-3"], "'x'"),
        (["compare", "-m", "1", "--delta", "-1"], "-1"),
        (["compare", "-m", "1", "--epsilon", "inf"], "'inf'"),
        (["compare", "--release", "dhc-units-us", "-m", "1", "--delta", "1e-3"], "dhc-units-us and 1"),
        (["compare", "dhc-units-us", "--design", "pl94-persons-us", "--delta", "1e-3"], "pl94-persons-us"),
        (["compare", "-m", "1", "--nonsense"], "--nonsense"),
        (["risk", "-m", "1", "--alpha", "0"], "0"),
        (["risk", "-m", "1", "--prior", "2"], "2"),
        (["risk", "-m", "1", "--delta", "y"], "'y'"),
        (["risk"], "none of them"),
        (["risk", "--design", "missing.toml"], "missing.toml"),
        (["risk", "--design", "nothing"], "nothing"),
        (["calibrate", "-m", "1"], "none of them"),
        (["calibrate", "-m", "1", "--epsilon", "1"], "epsilon"),
        (["calibrate", "-m", "1", "--epsilon", "1", "--delta", "0"], "0"),
        (["calibrate", "-m", "1", "--advantage", "0.1", "--grid", "0"], "0"),
        (["calibrate", "-m", "1", "--advantage", "0.1", "--grid", "1.5"], "1.5"),
        (["calibrate", "-m", "1", "--mu", "-1"], "-1"),
        (["calibrate", "--advantage", "0.1"], "none of them"),
        (["calibrate", "-m", "1", "--epsilon", "1", "--epsilon", "2", "--delta", "0.1"], "2 and 1"),
        (["calibrate", "-m", "1", "--advantage", "0.1", "-o", "new.toml"], "new.toml"),
        (["calibrate", "dhc-units-us", "--advantage", "0.1", "-o", "new.txt"], "new.txt"),
        (["calibrate", "dhc-units-us", "--advantage", "0.1", "--level", "Moon"], "Moon"),
        (
            ["calibrate", "-m", "1", "--alpha", "0.5", "--beta", "0.6", "--grid", "1"],
            "is proved not to meet the target",
        ),
        (["convert"], "neither"),
        (["convert", "--epsilon", "1"], "neither"),
        (["convert", "--rho", "1"], "exactly one of --epsilon, --delta, --alpha"),
        (["convert", "--rho", "1", "--mu", "1", "--delta", "0.1"], "exactly one of --rho, --mu"),
        (["convert", "--rho", "-1", "--delta", "0.1"], "-1"),
        (["convert", "--rho", "1", "--delta", "x"], "'x'"),
        (["convert", "--mu", "0", "--delta", "0.1"], "0"),
        (["convert", "--mu", "1", "--delta", "1"], "1"),
        (["convert", "--mu", "1", "--alpha", "7"], "7"),
        (["mu"], "none of them"),
        (["mu", "-m", "1*0"], "0"),
        (["mu", "--release", "dhc-units-us", "--pair", "1"], "'1'"),
    ],
)
def test_wrong_input(arguments: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(run(*arguments), named)


def test_calibrate_prints_the_factor_that_was_proved() -> None:
    arguments = ["calibrate", "-m", "1*10", "--advantage", "0.1", "--grid", "10000"]
    factor = read(*arguments)["value"]
    assert str(factor) in run(*arguments).stdout


def test_json_for_other_programs_has_no_infinities() -> None:
    assert "Infinity" not in run("compare", "-m", "1*10", "--delta", "0", "--json").stdout
    assert "Infinity" not in run("account", "dhc-persons-us", "--pair", "13,13", "--delta", "0", "--json").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["risk", "-m", "1", "--design", "BUDGET"],
        ["calibrate", "-m", "1", "--design", "BUDGET", "--advantage", "0.5", "--grid", "1"],
        ["convert", "--epsilon", "1", "--delta", "1e-5", "--alpha", "0.1"],
    ],
)
def test_options_that_contradict(arguments: list[str], budget: str) -> None:
    assert run(*(budget if a == "BUDGET" else a for a in arguments)).exit_code == 2


@pytest.mark.parametrize(
    "arguments", [["convert", "--epsilon", "-1", "--delta", "0.1"], ["mu", "-m", "1*400"], ["mu", "-m", "0.01"]]
)
def test_commands_end(arguments: list[str]) -> None:
    assert run(*arguments).exit_code in (0, 2)
