"""Products together on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from exactdp import census
from exactdp.apps import cli
from exactdp.apps.cli import tables

UNITS = "pl94-units-us+dhc-units-us+ddhc-b-us"
VACANT = "occupied becomes vacant"


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli.app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def test_account_says_what_moves_and_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "width", lambda: 80)
    code, out, _ = run("account", UNITS, "--change", VACANT, "--delta", "1e-10", "--digits", "8")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "45.374294" in out
    assert "45.374295" in out
    assert "two of tenvacgq" in out


def test_census_takes_every_change_that_the_products_are_followed_through(tmp_path: Path) -> None:
    code, out, _ = run(
        "census", "--release", UNITS, "--delta", "1e-10", "--alpha", "0.05", "-o", str(tmp_path), "--json"
    )
    assert code == 0
    found = json.loads(out)["joint"]
    assert [one["change"] for one in found] == list(census.change_names())[2:], "persons are not followed through units"
    assert found[0]["rho"] == "796597/31250"
    rows = (tmp_path / UNITS / "joint.csv").read_text().splitlines()
    assert len(rows) == 1 + 4 * 2


def test_full_paths_are_certified(tmp_path: Path) -> None:
    file = tmp_path / "full.json"
    code, *_ = run("certify", UNITS, "--change", VACANT, "--full", "--delta", "1e-10", "-o", str(file))
    assert code == 0
    code, out, _ = run("verify", str(file))
    assert (code, out.startswith("Holds")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["account", UNITS, "--delta", "1e-10"], "need --change"),
        (["account", UNITS, "--change", "moves", "--delta", "1e-10"], "A change is one of"),
        (["account", UNITS, "--change", VACANT, "--pair", "1,1", "--delta", "1e-10"], "--full"),
        (["account", "-m", "gaussian:1", "--change", VACANT, "--delta", "1e-10"], "products joined by +"),
        (["account", "pl94-units-us+nothing", "--delta", "1e-10"], "DESIGN"),
        (["census", UNITS, "--proxy"], "leave it out"),
        (["census", "s-dhc-household-us+dhc-units-us"], "No change is followed"),
        (["mu", UNITS], "need --change"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], told: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert len(err.strip().splitlines()) == 1
