"""The oldest dependencies that pyproject.toml promises, and a part of the tests that runs with them.

    make minimums                                   a new environment with them, and the tests in it
    make minimums EXTRAS="plots studio"             with these extras', and the tests of these
    python tests/minimums.py pins [EXTRA ...]       numpy==1.26 and so on, for pip
    python tests/minimums.py test [EXTRA ...]       the tests, in an environment that has exactly these

A lower bound is the oldest version that was tried, so that it is true; whether something older would do as well is not claimed.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from functools import partialmethod
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CORE = (
    *("ground", "mechanisms", "accounting/test_composition.py", "accounting/test_certificates.py"),
    *("apps/test_cli.py", "apps/test_cli_designs.py", "apps/test_cli_guarantees.py", "test_package.py"),
)
TESTS = {
    "plots": ("apps/test_plots.py",),
    "cluster": ("census/test_runs.py",),
    "interop": ("interop/test_interop.py",),
    "opendp": ("apps/test_noise.py",),
    **dict.fromkeys(("pandas", "polars", "parquet"), ("interop/test_frames.py",)),
    "studio": ("apps/studio/test_studio_serve.py", "apps/studio/test_studio_designs.py"),
}
"""What shows that an extra works, in the folder of the tests."""

_LOWER_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[a-z,]+\])?>=([0-9]+(?:\.[0-9]+)*)")


def pins(*extras: str) -> dict[str, str]:
    """The lowest version that is promised of each dependency of the core and of these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(need for extra in extras for need in project["optional-dependencies"][extra])]
    found = {}
    for requirement in asked:
        bound = _LOWER_BOUND.fullmatch(requirement)
        if bound is None:
            raise SystemExit(
                f"A requirement must be a name with a lower bound, such as numpy>=1.26. Found {requirement}."
            )
        found[bound[1]] = bound[2]
    return found


def run_tests(*extras: str) -> int:
    """Run the tests of these extras or, without any, of the core; pytest's exit code."""
    import pytest
    from typer.testing import CliRunner

    for name, version in pins(*extras).items():
        installed = re.sub(r"(\.0)+$", "", metadata.version(name))
        if installed != re.sub(r"(\.0)+$", "", version):
            raise SystemExit(f"{name} must be {version} here. Found {installed}; use make minimums.")
    if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters:
        _separate_errors(CliRunner)
    chosen = dict.fromkeys(path for extra in extras for path in TESTS[extra]) or CORE
    # what old libraries say of newer ones below them is not ours to mend
    options = [
        "-q",
        "-rs",
        "-m",
        "not soak",
        "-W",
        "ignore::DeprecationWarning",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
    ]
    if "cluster" not in extras:
        options += ["-k", "not nowhere"]  # the address of a cluster that is not there
    return int(pytest.main([*options, *(str(ROOT / "tests" / path) for path in chosen)]))


def _separate_errors(runner: Any) -> None:
    """Let click's test runner before 8.2 keep standard error apart, all of it, as later ones do."""
    from click import testing

    runner.__init__ = partialmethod(runner.__init__, mix_stderr=False)
    wrapper: Any = testing._NamedTextIOWrapper
    wrapper.__init__ = partialmethod(wrapper.__init__, write_through=True)


if __name__ == "__main__":
    verb, *given = sys.argv[1:] or ["pins"]
    if verb == "test":
        sys.exit(run_tests(*given))
    print(*(f"{name}=={version}" for name, version in pins(*given).items()))
