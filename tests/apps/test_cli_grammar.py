"""One grammar: what is accounted for is the first argument of every command, in every spelling, and every command repeats it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from command_line import refused, run
from exactdp import Composition, DiscreteGaussian, DiscreteLaplace, census, to_json
from exactdp.apps.cli.mechanism_option import read_mechanisms
from exactdp.census.composition_design import composition_design
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.gaussian import Gaussian
from small_release import SMALL

MIXED = 4 * DiscreteGaussian("5/2") + 3 * DiscreteLaplace(2)
NOISE = ["-m", "5/2*4", "-m", "laplace(2)*3"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(census.budget_toml(SMALL))
    (tmp_path / "mixed.json").write_text(to_json(MIXED))
    (tmp_path / "release.json").write_text(to_json(SMALL))
    return tmp_path


ACCOUNTING = {
    "account": ["--delta", "1e-6"],
    "compare": ["--delta", "1e-6"],
    "risk": [],
    "mu": [],
    "calibrate": ["--epsilon", "9", "--delta", "1e-3", "--grid", "1"],
    "certify": ["--delta", "1e-6", "-o", "claim.json"],
    "sweep": ["--delta", "1e-6"],
    "census": ["--proxy", "--delta", "1e-6"],
    "report": ["--no-figures", "-o", "report.html"],
}


@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")
@pytest.mark.parametrize("command", ACCOUNTING)
def test_every_command_takes_noise_and_repeats_it(command: str, folder: Path) -> None:
    result = run(command, *NOISE, *ACCOUNTING[command])
    assert result.exit_code == 0, result.output
    assert "4 x discrete Gaussian, sigma2 = 2.5 (sigma ~1.58114), sensitivity 1" in result.stdout
    assert "3 x discrete Laplace, scale = 2, sensitivity 1" in result.stdout
    again = run(command, "mixed.json", *ACCOUNTING[command])
    assert again.stdout == result.stdout


@pytest.mark.parametrize("command", ["account", "sweep", "certify"])
def test_designs_in_all_spellings_say_the_same(command: str, folder: Path) -> None:
    printed = run(command, "small.toml", *ACCOUNTING[command]).stdout
    assert "10 pairs of directed paths" in printed
    assert run(command, "release.json", *ACCOUNTING[command]).stdout == printed


def test_old_spellings_go_on_working(folder: Path) -> None:
    pairs = [
        (["compare", "small.toml", "--pair", "1,2"], ["compare", "--release", "small.toml", "--pair", "1,2"]),
        (["risk", "small.toml"], ["risk", "--design", "small.toml"]),
        (["census", "small.toml", "--proxy"], ["census", "--release", "small.toml", "--proxy"]),
    ]
    for new, old in pairs:
        asked = [] if new[0] == "risk" else ["--delta", "1e-6"]
        assert run(*new, *asked).stdout == run(*old, *asked).stdout


def test_a_sigma_typed_for_a_sigma2_is_seen(folder: Path) -> None:
    assert "sigma2 = 2.5 (sigma ~1.58114)" in run("account", "-m", "2.5*50", "--delta", "1e-6").stdout
    assert "sigma2 = 6.25 (sigma = 2.5)" in run("account", "-m", "sigma=2.5*50", "--delta", "1e-6").stdout
    assert "one record replaced by any other" in run("account", "small.toml", "--delta", "1e-6").stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5/2", {DiscreteGaussian("5/2"): 1}),
        ("5/2:3*20", {DiscreteGaussian("5/2", 3): 20}),
        ("sigma2=5/2:3*20", {DiscreteGaussian("5/2", 3): 20}),
        ("sigma=2.5*50", {DiscreteGaussian("25/4"): 50}),
        ("laplace(2)*3", {DiscreteLaplace(2): 3}),
        ("Discrete Laplace(scale=2, sensitivity=3)", {DiscreteLaplace(2, 3): 1}),
        ("gaussian(sigma=3, sensitivity=1/2)*2", {Gaussian(9, "1/2"): 2}),
        ("discrete_gaussian(4)", {DiscreteGaussian(4): 1}),
        (to_json(MIXED), dict(MIXED.mechanisms)),
        (to_json(DiscreteGaussian(4)), {DiscreteGaussian(4): 1}),
    ],
)
def test_noise_in_words(text: str, expected: dict[object, int]) -> None:
    assert read_mechanisms([text]) == Composition(expected)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["account", "-m", "laplac(2)", "--delta", "1e-3"], "laplac"),
        (["account", "-m", "laplace(2, spread=3)", "--delta", "1e-3"], "spread=3"),
        (["account", "-m", "laplace(2, scale=3, scale=4)", "--delta", "1e-3"], "twice"),
        (["account", "-m", "laplace(0)", "--delta", "1e-3"], "0"),
        (["account", "-m", "nothing.json", "--delta", "1e-3"], "nothing.json"),
        (["account", "-m", "release.json", "--delta", "1e-3"], "give it as DESIGN"),
        (["account", "small.toml", "-m", "1", "--delta", "1e-3"], "small.toml and 1"),
        (["account", "small.toml", "--digits", "1", "--delta", "1e-3"], "1"),
        (["account", "small.toml", "--digits", "30", "--delta", "1e-3"], "--pair"),
        (["account", "mixed.json", "--pair", "1,1", "--delta", "1e-3"], "--pair"),
        (["account", "table.xlsx", "--delta", "1e-3"], "CSV"),
        (["sweep", "small.toml", "--pair", "1,1"], "--pair"),
        (["sweep", "small.toml", "-o", "sweep.xlsx"], "sweep.xlsx"),
        (["certify", "small.toml", "--delta", "1e-3", "-o", "claim.txt"], "claim.txt"),
        (["schema", "design", "-o", "design.yaml"], "design.yaml"),
        (["census", "-m", "approximate_dp(1)"], "ApproximateDP"),
        (["report", "small.toml", "-m", "1"], "small.toml and 1"),
        (["calibrate", "small.toml", "--part", "1", "--advantage", "0.5"], "--level"),
        (["calibrate", "-m", "1", "--level", "Nation", "--advantage", "0.5"], "Nation"),
    ],
)
def test_wrong_words_get_one_sentence(arguments: list[str], named: str, folder: Path) -> None:
    (folder / "table.xlsx").write_bytes(b"PK\x03\x04")
    refused(run(*arguments), named)


def test_a_calibrated_design_is_written_and_meets_its_targets(folder: Path) -> None:
    """All pairs, several targets, in the three forms there are."""
    asked = ["--epsilon", "6", "--delta", "1e-6", "--alpha", "0.05", "--beta", "0.3", "--grid", "10"]
    factors = set()
    for name in ("new.toml", "new.csv", "new.json"):
        record = json.loads(run("calibrate", "small.toml", *asked, "-o", name, "--json").stdout)
        factors.add(record["factor"])
        row = json.loads(run("account", name, "--epsilon", "6", "--json").stdout)["rows"][0]
        assert row["upper"] <= 1e-6
        row = json.loads(run("account", name, "--alpha", "0.05", "--json").stdout)["rows"][0]
        assert row["lower"] >= 0.3
    assert len(factors) == 1
    (factor,) = factors
    study = SMALL.scaled(Fraction(factor) - Fraction(1, 10)).account()
    assert study.delta_bounds(6).lower > 1e-6 or study.beta_bounds("0.05").upper < 0.3


def test_a_composition_as_a_design() -> None:
    mixed = MIXED + Gaussian(8, sensitivity=2)
    design = composition_design(mixed)
    assert design.proxy == MIXED + Gaussian(2)
    low, high = mixed.epsilon_bounds("1e-6")
    found = design.account().epsilon_bounds("1e-6")
    assert found.lower <= high
    assert low <= found.upper
    with pytest.raises(InvalidInputError, match="ApproximateDP"):
        composition_design(
            Composition([*MIXED.mechanisms, read_mechanisms(["approximate_dp(1)"]).mechanisms.__iter__().__next__()])
        )
