"""exactdp census, account, sweep: what they print and write, wrong input, interruption and resumption."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from command_line import refused, run
from exactdp import census
from exactdp.census import study as studies
from exactdp.census.grids import ALPHAS, Grids
from exactdp.numerals import at_least
from small_release import SMALL

TWO_DELTAS = ("--delta", "1e-5", "--delta", "1e-10")
COMMAND = [sys.executable, "-c", "from exactdp.apps.cli import main; main()"]


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(census.budget_toml(SMALL))
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("census")
    path = folder / "small.toml"
    path.write_text(census.budget_toml(SMALL))
    result = run("census", "--release", str(path), "-o", str(folder), "--no-figures", *TWO_DELTAS)
    assert result.exit_code == 0, result.output
    (folder / "printed.txt").write_text(result.stdout)
    return folder


def test_account_over_all_pairs(budget: Path) -> None:
    result = run("account", str(budget), "--delta", "1e-9", "--delta", "1e-3", "--json")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    study = SMALL.account()
    assert [row["delta"] for row in record["rows"]] == ["1e-9", "1e-3"]
    assert (record["rows"][0]["lower"], record["rows"][0]["upper"]) == tuple(study.epsilon_bounds("1e-9"))
    assert record["rows"][0]["worst_pair"] == str(study.worst_pair(delta="1e-9"))
    assert record["rows"][0]["upper"] < record["rows"][0]["zcdp"]
    assert json.loads(run("account", str(budget), "--epsilon", "3", "--json").stdout)["rows"][0][
        "upper"
    ] == study.delta(3)
    assert json.loads(run("account", str(budget), "--alpha", "0.05", "--json").stdout)["rows"][0][
        "lower"
    ] == study.beta("0.05")
    table = run("account", str(budget), "--alpha", "0.05").stdout
    assert "10 pairs of directed paths" in table
    assert at_least(study.beta("0.05")) in table


def test_account_of_a_pair_in_balls(budget: Path) -> None:
    result = run("account", str(budget), "--epsilon", "3", "--pair", "2,7", "--digits", "30", "--json")
    low, high = SMALL.pair(2, 7).delta_bounds(3, digits=30)
    row = json.loads(result.stdout)["rows"][0]
    assert (row["lower"], row["upper"]) == (str(low), str(high))


def test_built_in_releases_by_name() -> None:
    result = run("account", "dhc-units-us", "--delta", "1e-10")
    assert result.exit_code == 0
    assert "(1, 1)" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["account", "nothing", "--delta", "1e-3"], "nothing"),
        (["account", "missing.toml", "--delta", "1e-3"], "missing.toml"),
        (["account", "BUDGET"], "exactly one of --delta, --epsilon, --alpha"),
        (["account", "BUDGET", "--delta", "1e-3", "--alpha", "0.1"], "exactly one"),
        (["account", "BUDGET", "--delta", "-1"], "-1"),
        (["account", "BUDGET", "--alpha", "1.5"], "1.5"),
        (["account", "BUDGET", "--epsilon", "x"], "'x'"),
        (["account", "BUDGET", "--epsilon", "1", "--pair", "1,99"], "99"),
        (["account", "BUDGET", "--epsilon", "1", "--digits", "30"], "--pair"),
        (["census", "--release", "acs"], "acs"),
        (["census", "--delta", "2"], "2"),
        (["census", "--jobs", "0"], "0"),
        (["census", "--certified", "--digits", "2"], "2"),
        (["sweep", "BUDGET", "--scale", "1,-2"], "-2"),
        (["sweep", "BUDGET", "--delta", "0"], "0"),
        (["sweep", "BUDGET", "--dask", "nowhere"], "nowhere"),
    ],
)
def test_wrong_input(
    arguments: list[str], named: str, budget: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(run(*(str(budget) if a == "BUDGET" else a for a in arguments)), named)


def test_census_prints_and_writes(written: Path) -> None:
    printed = (written / "printed.txt").read_text()
    assert "10 pairs of directed paths" in printed
    for text in ("zCDP optimal", "Gaussian", "worst pair", "Nation", "power", "full path with itself"):
        assert text in printed
    folder = written / "small"
    study = SMALL.account(deltas=["1e-10"])
    with (folder / "pairs.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if (r["quantity"], r["at"]) == ("epsilon", "1e-10")]
    assert [(int(r["k"]), int(r["l"])) for r in rows] == list(SMALL.pairs)
    assert [float(r["upper"]) for r in rows] == study.table("epsilon").upper[:, 0].tolist()
    with (folder / "overall.csv").open() as file:
        overall = {(r["quantity"], r["at"]): r for r in csv.DictReader(file)}
    assert float(overall["epsilon", "1e-10"]["upper"]) == max(float(r["upper"]) for r in rows)
    assert float(overall["beta", "0.05"]["lower"]) == SMALL.account().beta("0.05")
    with (folder / "tradeoff.csv").open() as file:
        curve = [(float(r["alpha"]), float(r["beta_lower"])) for r in csv.DictReader(file)]
    assert (curve[0], curve[-1]) == ((0, 1), (1, 0))
    assert all(beta <= SMALL.account().beta_bounds(alpha).upper for alpha, beta in curve[20:-1:40])
    record = json.loads((folder / "study.json").read_text())
    assert len(record["pairs"]) == 10
    assert len(record["grids"]["epsilon"]) == 42
    assert record["summary"]["epsilons"][0]["delta"] == "1e-5"


def test_a_second_run_repeats_nothing(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a finished pair was done again")

    before = (written / "small" / "pairs.csv").read_bytes()
    monkeypatch.setattr(studies, "run", never)
    result = run(
        "census", "--release", str(written / "small.toml"), "-o", str(written), "--no-figures", *TWO_DELTAS, "--json"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["pairs"] == 10
    assert (written / "small" / "pairs.csv").read_bytes() == before


def test_proxy(budget: Path, tmp_path: Path) -> None:
    result = run("census", "--release", str(budget), "--proxy", "--delta", "1e-6", "-o", str(tmp_path), "--json")
    record = json.loads(result.stdout)
    (row,) = record["epsilon"]
    low, high = SMALL.pair(1, 1).epsilon_bounds("1e-6")
    assert row["proxy"][0] <= high
    assert low <= row["proxy"][1]
    assert row["overall"][1] >= row["proxy"][0]
    assert row["difference"] == pytest.approx(row["overall"][1] / row["proxy"][0] - 1)
    assert [Fraction(found["at"]) for found in record["beta"]] == list(Grids.read(alphas=ALPHAS).alphas)
    assert all(found["proxy"][1] >= found["overall"][0] for found in record["beta"])
    shown = run("census", "--release", str(budget), "--proxy", "-o", str(tmp_path)).stdout
    assert "This says nothing about other designs" in " ".join(shown.split())


def test_sweep(budget: Path, tmp_path: Path) -> None:
    out = tmp_path / "sweep.csv"
    result = run("sweep", str(budget), "dhc-units-us", "--scale", "0.5, 1", "--delta", "1e-6", "-o", str(out), "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [(r["design"], r["factor"]) for r in rows] == [
        ("small", "0.5"),
        ("small", "1"),
        ("dhc-units-us", "0.5"),
        ("dhc-units-us", "1"),
    ]
    with out.open() as file:
        assert [float(r["epsilon_upper"]) for r in csv.DictReader(file)] == [r["epsilon_upper"] for r in rows]
    assert "small" in run("sweep", str(budget)).stdout


@pytest.mark.posix
def test_interrupted_and_resumed(budget: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle of a run in balls: exit code 130, finished pairs kept, the next run does only the others."""
    folder = tmp_path / "out"
    arguments = [
        "census",
        "--release",
        str(budget),
        "--certified",
        "--digits",
        "8",
        "--delta",
        "1e-6",
        "--no-figures",
        "-o",
        str(folder),
    ]

    def listen() -> None:  # a shell in the background ignores Ctrl-C for all its children
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, *arguments], **pipes, preexec_fn=listen) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(folder.rglob("progress-*.jsonl")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=240)
    assert process.returncode == 130
    (journal,) = folder.rglob("progress-*.jsonl")
    done = journal.read_text().count('"pair"')
    assert 1 <= done < 10
    subprocess.run([*COMMAND, *arguments], check=True, capture_output=True, env={**os.environ, "COLUMNS": "200"})
    assert journal.read_text().count('"pair"') == 10
    assert (folder / "small" / "pairs.csv").exists()
