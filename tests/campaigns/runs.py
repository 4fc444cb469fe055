"""Census runs ended from outside at random moments: workers end with them, and the run that goes on has the same bytes."""

from __future__ import annotations

import random
import signal
import tempfile
import time
from functools import cache
from pathlib import Path

from campaigns.tally import Tally
from long_runs import all_end, descendants, exactdp, started

_TABLES = ["dhc-persons-us/pairs.csv", "dhc-persons-us/overall.csv"]
_SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


def _arguments(folder: Path, jobs: int) -> list[str]:
    return ["census", "--no-figures", "--delta", "1e-10", "-o", str(folder), "--jobs", str(jobs)]


@cache
def _undisturbed() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        done = exactdp(*_arguments(Path(name), 1))
        assert done.returncode == 0, done.stderr
        return {table: (Path(name) / table).read_bytes() for table in _TABLES}


def ended(seed: int) -> Tally:
    """Four ends of one run on two processes, then the run to its end."""
    tally, rng = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        for _ in range(4):
            run = started(*_arguments(Path(name), 2))
            time.sleep(rng.uniform(0.5, 12))
            workers = descendants(run.pid)
            end = rng.choice(_SIGNALS)
            run.send_signal(end)
            run.wait()
            tally.check(all_end(workers, 30), f"seed {seed}: workers live on after {end.name}")
        done = exactdp(*_arguments(Path(name), 2))
        tally.check(done.returncode == 0, f"seed {seed}: the run did not go on: {done.stderr}")
        if done.returncode == 0:
            same = all((Path(name) / table).read_bytes() == content for table, content in _undisturbed().items())
            tally.check(same, f"seed {seed}: tables differ after the run went on")
    return tally
