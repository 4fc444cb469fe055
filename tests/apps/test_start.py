"""The start of a command: what it does not need is not loaded, and is there for whoever asks for it."""

from __future__ import annotations

import subprocess
import sys

from exactdp.apps import cli

_CENSUS = """
import sys
sys.argv = ["exactdp", "census", "--help"]
try:
    from exactdp.apps.cli import main
    main()
except SystemExit:
    pass
loaded = set(sys.modules)
import numpy as np
np.testing.assert_equal(np.arange(2), [0, 1])
print(sorted({"numpy.f2py.crackfortran", "unittest", "exactdp.apps.cli.optimize"} & loaded), np.f2py.get_include()[-3:])
"""


def test_a_command_loads_what_it_needs_and_the_rest_is_there_when_it_is_used() -> None:
    told = subprocess.run([sys.executable, "-c", _CENSUS], capture_output=True, text=True, check=True)
    assert "Account for all pairs" in told.stdout
    assert told.stdout.splitlines()[-1] == "[] src"


def test_commands_that_are_loaded_alone_are_registered_by_the_file_of_their_name() -> None:
    homes = {command.name: command.callback.__module__ for command in cli.app.registered_commands if command.callback}
    assert {homes[name] for name in cli._OF_THEIR_OWN} == {f"exactdp.apps.cli.{name}" for name in cli._OF_THEIR_OWN}
