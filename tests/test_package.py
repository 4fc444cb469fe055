"""The package as others meet it: `python -m exactdp`, the logger, missing extras, metadata, promised dependencies."""

from __future__ import annotations

import logging
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import exactdp
import minimums
from exactdp import DiscreteGaussian, census
from exactdp.census.grids import Grids
from exactdp.census.journal import Journal
from exactdp.census.runners import Serial
from exactdp.census.study import run_study
from exactdp.errors import ExactDPError, MissingExtraError

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SURVEY = '[levels.US]\nsex = "1/2"\n[levels.State]\nsex = "1/4"\n[bypassed]\n1 = []\n2 = ["State"]\n'


def python_m(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactdp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_line_as_a_module() -> None:
    told = python_m("--version")
    assert (told.returncode, told.stdout, told.stderr) == (0, f"exactdp {exactdp.__version__}\n", "")
    assert python_m("convert", "--rho", "-1", "--delta", "1e-6").returncode == 2


def test_worker_processes_do_not_start_the_command_again(tmp_path: Path) -> None:
    """Also the one command that needs what joblib has from 1.4 on, so that `make minimums` tries it."""
    budget = tmp_path / "survey.toml"
    budget.write_text(SURVEY)
    told = python_m("sweep", str(budget), "--scale", "1,2", "--delta", "1e-6", "--jobs", "2")
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("\nsurvey ") == 2


def test_a_missing_extra_is_an_import_error() -> None:
    error = MissingExtraError("Figures", "plots")
    assert isinstance(error, ExactDPError)
    assert isinstance(error, ImportError)
    assert str(error) == "Figures needs an optional dependency. Install it with: pip install 'exactdp[plots]'."
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.extra) == (MissingExtraError, str(error), "plots")
    assert exactdp.MissingExtraError is MissingExtraError


def test_every_extra_that_is_named_can_be_installed() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r'MissingExtraError\([^)]*?"([a-z]+)"\)', source)) | set(
        re.findall(r"exactdp\[([a-z]+)\]", source)
    )
    assert {"interop", "opendp", "parquet", "plots", "cluster", "studio"} <= named
    assert named <= PROJECT["optional-dependencies"].keys()


def test_nobody_hears_the_logger_unless_listening() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("exactdp").handlers)
    told = python_m("certify", "-m", "1*10", "--epsilon", "30", "--digits", "12")
    assert told.stderr == ""
    told = python_m("-v", "certify", "-m", "1*10", "--epsilon", "30", "--digits", "12")
    assert told.returncode == 0
    assert (
        "exactdp.accounting.certificates.certificate: 12 digits of delta are proved by 1 Fourier sums." in told.stderr
    )


def test_what_the_logger_tells(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG, logger="exactdp")
    DiscreteGaussian("7/5").__mul__(3).delta(2)
    assert caplog.messages == ["1 groups of mechanisms are answered for by the sieve on the lattice of the loss."]
    caplog.clear()
    (tmp_path / "survey.toml").write_text(SURVEY)
    release = census.read_budget(tmp_path / "survey.toml")
    grids = Grids.read([1])
    for _ in range(2):
        run_study(release, grids, Serial(), Journal.open(tmp_path, release, grids))
    found = [text for text in caplog.messages if "journal" in text]
    assert [text.split(" in the")[0] for text in found] == ["0 of 3 bounds are", "3 of 3 bounds are"]


def test_what_holds_counts_does_not_log() -> None:
    for path in [*(ROOT / "src/exactdp/apps/release").glob("*.py"), ROOT / "src/exactdp/interop/opendp.py"]:
        assert "logging" not in path.read_text(), f"{path.name} holds confidential counts"


def test_every_requirement_has_a_lower_bound_that_can_be_tried() -> None:
    assert minimums.pins()["joblib"] == "1.4"
    tried = {"plots", "cluster", "interop", "opendp", "pandas", "polars", "parquet", "studio"}
    assert minimums.TESTS.keys() == tried == PROJECT["optional-dependencies"].keys() - {"test", "docs", "bench"}
    assert {"matplotlib", "fastapi", "pyarrow"} <= minimums.pins(*tried).keys()
    for path in (*minimums.CORE, *(path for paths in minimums.TESTS.values() for path in paths)):
        assert (ROOT / "tests" / path).exists()
