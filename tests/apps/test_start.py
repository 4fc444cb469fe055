"""The start of a command: what it does not need is not loaded, and is there for whoever asks for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from scipy._lib import _array_api

from exactdp.apps import cli
from exactdp.apps.cli import unused_parts

_CENSUS = """
import os
import sys
sys.argv = ["exactdp", "census", "--help"]
try:
    from exactdp.apps.cli import main
    main()
except SystemExit:
    pass
loaded = set(sys.modules)
print("array libraries", "Array API" in str(sys.modules["scipy.special"].log_ndtr.__doc__))
print(os.environ["OPENBLAS_NUM_THREADS"])
import numpy as np
np.testing.assert_equal(np.arange(2), [0, 1])
print(sorted({"numpy.f2py.crackfortran", "unittest", "exactdp.apps.cli.optimize"} & loaded), np.f2py.get_include()[-3:])
"""


def started(**environment: str) -> list[str]:
    """What the script above tells, line by line, in this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    called = [sys.executable, "-c", _CENSUS]
    told = subprocess.run(called, capture_output=True, text=True, check=True, env={**kept, **environment})
    return told.stdout.splitlines()


def test_a_command_loads_what_it_needs_and_the_rest_is_there_when_it_is_used() -> None:
    told = started()
    assert any("Account for all pairs" in line for line in told)
    assert told[-1] == "[] src"
    assert told[-3] == "array libraries False"


def test_a_library_that_is_loaded_in_other_ways_is_loaded_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("scipy._lib._array_api.xp_capabilities")
    unused_parts._load_undescribed()
    monkeypatch.undo()
    unused_parts._load_undescribed()
    assert _array_api.xp_capabilities.__module__ == "scipy._lib._array_api"


@pytest.mark.parametrize("asked", [{}, {"OPENBLAS_NUM_THREADS": "3"}])
def test_a_command_multiplies_matrices_in_one_thread_unless_more_are_asked_for(asked: dict[str, str]) -> None:
    assert started(**asked)[-2] == asked.get("OPENBLAS_NUM_THREADS", "1")


def test_commands_that_are_loaded_alone_are_registered_by_the_file_of_their_name() -> None:
    homes = {command.name: command.callback.__module__ for command in cli.app.registered_commands if command.callback}
    assert {homes[name] for name in cli._OF_THEIR_OWN} == {f"exactdp.apps.cli.{name}" for name in cli._OF_THEIR_OWN}
