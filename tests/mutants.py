"""Mutation check: weaken or drop one bound at a time in a copy of the package, and see that some test fails.

    make mutants
    python tests/mutants.py census/ pairs     only those in files whose names contain one of these
    python tests/mutants.py -j 4              four at a time; by default as many as there are cores

A mutant that survives is an error. The tests run are those that own the bounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from mutant_table import MUTANTS, OTHERS, TESTS

ROOT = Path(__file__).parent.parent


def survives(_: str, file: str, old: str, new: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src")
        target = Path(folder) / "src" / "exactdp" / file
        target.write_text(target.read_text().replace(old, new))
        environment = {
            **os.environ,
            "PYTHONPATH": f"{folder}/src{os.pathsep}{ROOT / 'tests'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
        }
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *TESTS.get(file, OTHERS),
        ]
        code = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode
        if code in (4, 5):  # pytest's own: no such file, no test
            raise RuntimeError(f"No test was run for {file}: {' '.join(TESTS.get(file, OTHERS))}. Update TESTS.")
        return code == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Weaken one bound at a time and see that some test fails.")
    parser.add_argument("parts", nargs="*", default=[""], help="only files whose names contain one of these")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    asked = parser.parse_args()
    chosen = [m for m in MUTANTS if any(part in m[1] for part in asked.parts)]
    for name, file, old, _ in chosen:
        if (ROOT / "src" / "exactdp" / file).read_text().count(old) != 1:
            sys.exit(f"The mutant '{name}' does not apply: {file} has changed. Update tests/mutant_table.py.")
    alive = []
    with ThreadPoolExecutor(max(asked.jobs, 1)) as pool:
        running = {pool.submit(survives, *mutant): mutant[0] for mutant in chosen}
        for done in as_completed(running):
            print(f"{'SURVIVES' if done.result() else 'killed  '}  {running[done]}", flush=True)
            alive += [running[done]] * done.result()
    print(f"{len(chosen) - len(alive)} of {len(chosen)} mutants killed")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
