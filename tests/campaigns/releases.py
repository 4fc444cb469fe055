"""Faults of `exactdp release`, as often as one likes: races for one name, and ends at every step, by failure or by kill -9.

    python tests/campaigns/releases.py races 300     pairs of processes that release under one name at once
    python tests/campaigns/releases.py steps 1       failures, interrupts and kills at every call to the system
    python tests/campaigns/releases.py kills 100     whole commands, killed at a random time

Each prints one line of JSON: what it saw, how often, and `wrong`, which must be empty. Processes are forked from this one,
which has loaded everything: run it by itself, on a system that can fork.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

DESIGN = '[levels.Nation]\nsex = "1/2"\n'
COUNTS = "level,query,cell,count\nNation,sex,female,51234\nNation,sex,male,50111\n"
INPUTS = ["counts.csv", "survey.toml"]
NAMES = ["noisy.certificate.json", "noisy.csv", "noisy.noise.json"]
CALLS = ["open", "write", "fsync", "link", "unlink", "replace", "close"]
COMMAND = [sys.executable, "-c", "from exactdp.apps.cli import main; main()"]


def arguments(folder: Path) -> list[str]:
    return ["release", *(str(folder / name) for name in INPUTS), "-o", str(folder / "noisy.csv"), "--digits", "5"]


def fresh(folder: Path) -> None:
    """The inputs and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / INPUTS[0]).write_text(COUNTS)
    (folder / INPUTS[1]).write_text(DESIGN)


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in INPUTS}


def is_whole(folder: Path) -> bool:
    """Whether table, certificate and statement are there and belong together."""
    found = outputs(folder)
    if not found.keys() >= set(NAMES):
        return False
    told = json.loads(found["noisy.noise.json"])["sha256_of_the_noisy_table"]
    return bool(told == hashlib.sha256(found["noisy.csv"]).hexdigest() and json.loads(found[NAMES[0]]))


def forked(work: Callable[[], object]) -> int:
    """The number of a process that does this, prints into the void, and ends with the work's exit code."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        void = os.open(os.devnull, os.O_WRONLY)
        os.dup2(void, 1)
        os.dup2(void, 2)
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """The exit code of a process, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def release(folder: Path) -> None:
    """The command, in this process."""
    from exactdp.apps import cli

    cli.app(arguments(folder))


def load() -> None:
    """Load all that a release needs, OpenDP included, so that forked processes start at once."""
    with tempfile.TemporaryDirectory() as name, redirect_stdout(io.StringIO()), suppress(SystemExit):
        fresh(Path(name) / "first")
        release(Path(name) / "first")


def slow_looks(seconds: float) -> None:
    """Widen the window between looking whether a file is there and making it."""
    honest = os.path.lexists

    def slow(path: Path) -> bool:
        found = honest(path)
        time.sleep(seconds)
        return found

    os.path.lexists = slow  # type: ignore[assignment]


def races(folder: Path, count: int) -> dict[str, Any]:
    """Pairs of processes that release under one name at the same time: one succeeds, and its files belong together."""
    load()
    seen: Counter[str] = Counter()
    wrong = []
    for trial in range(count):
        fresh(folder)
        gate, opener = os.pipe()

        def runner(gate: int = gate, opener: int = opener, trial: int = trial) -> None:
            os.close(opener)
            slow_looks(0.01 * (trial % 3))
            os.read(gate, 1)  # until it is closed, which both see at once
            release(folder)

        children = [forked(runner), forked(runner)]
        os.close(opener)
        codes = sorted(ended(child) for child in children)
        os.close(gate)
        seen[str(codes)] += 1
        if codes != [0, 2] or not is_whole(folder) or outputs(folder).keys() != set(NAMES):
            wrong.append([trial, codes, sorted(outputs(folder))])
    return {"pairs": count, "exit codes": dict(seen), "wrong": wrong}


class Fault:
    """Something that happens before or after the n-th call to the system that concerns files."""

    def __init__(self, at: int, after: bool, happen: Callable[[], None]) -> None:
        self.left, self.after, self.happen = at, after, happen
        for name in CALLS:
            setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                self.happen()
            result = call(*given, **named)
            if self.left == 0 and self.after:
                self.happen()
            return result

        return watched


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _failed() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def _interrupted() -> None:
    raise KeyboardInterrupt


FAULTS = {"kill": _killed, "failure": _failed, "interrupt": _interrupted}


def steps(folder: Path, stride: int = 1) -> dict[str, Any]:
    """Every fault before and after every call of a release to the system (every so many of them, with a stride)."""
    load()
    seen: Counter[str] = Counter()
    wrong = []
    for kind in FAULTS:
        for after in (False, True):
            at, is_over = 0, False
            while not is_over:
                at += stride
                fresh(folder)
                drawn, happened = folder.parent / "drawn", folder.parent / "happened"
                for mark in (drawn, happened):
                    mark.unlink(missing_ok=True)
                code = ended(forked(lambda k=kind, n=at, a=after: _faulty(folder, k, n, a)))
                is_over = not happened.exists()
                state = _state(folder, kind, code, drawn.exists())
                seen[f"{kind}: {state.split(':')[0]}"] += 1
                if state.startswith("wrong"):
                    wrong.append([kind, "after" if after else "before", at, code, state, sorted(outputs(folder))])
    return {"faults": sum(seen.values()), "seen": dict(seen), "wrong": wrong}


def _faulty(folder: Path, kind: str, at: int, after: bool) -> None:
    """A release with a fault, which leaves marks beside its folder: when it has drawn, and when the fault happened."""
    from exactdp.apps.release import noisy_table

    make = os.open  # as it is, not as it is watched

    def mark(name: str) -> None:
        os.fstat(make(folder.parent / name, os.O_CREAT | os.O_WRONLY))

    honest = noisy_table.opendp_noise

    def drawing(counts: Sequence[int], scale: float) -> list[int]:
        mark("drawn")
        return honest(counts, scale)

    noisy_table.opendp_noise = drawing

    def happen() -> None:
        mark("happened")
        FAULTS[kind]()

    Fault(at, after, happen)
    release(folder)


def _state(folder: Path, kind: str, code: int, is_drawn: bool) -> str:
    """What a fault left behind, by what the next run makes of it; starts with "wrong" where a promise is broken."""
    left = outputs(folder)
    says_done = code == 0
    if "noisy.csv" in left and not is_whole(folder):
        return "wrong: a table without what belongs to it"
    if says_done != ("noisy.csv" in left) and kind != "kill":
        return f"wrong: exit code {code}"
    if kind != "kill" and not says_done and left:
        return "wrong: something is left"
    again = ended(forked(lambda: release(folder)))
    is_clean = all(name.startswith(".noisy.unfinished.") for name in left)  # killed while it made its claim
    if is_clean and is_drawn and kind == "kill":
        return "wrong: drawn, and nothing says so"
    if is_clean and again == 0:
        return "nothing left, the next run releases"
    if again != 2:
        return f"wrong: the next run ends with {again}"
    if outputs(folder) != left:
        return "wrong: the next run changes what is there"
    return "released, the next run refuses" if "noisy.csv" in left else "unfinished, the next run refuses"


def kills(folder: Path, count: int, seed: int = 1) -> dict[str, Any]:
    """Whole commands killed at a random time: the next run releases if nothing was there, and refuses otherwise."""
    chance = random.Random(seed)
    fresh(folder)
    start = time.monotonic()
    subprocess.run([*COMMAND, *arguments(folder)], check=True, capture_output=True)
    longest = time.monotonic() - start
    load()
    seen: Counter[str] = Counter()
    wrong = []
    for trial in range(count):
        fresh(folder)
        running = subprocess.Popen([*COMMAND, *arguments(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            running.wait(longest * chance.uniform(0.5, 1.05))
        running.kill()
        state = _state(folder, "kill", running.wait(), is_drawn=False)
        seen[state.split(":")[0]] += 1
        if state.startswith("wrong"):
            wrong.append([trial, state, sorted(outputs(folder))])
    return {"kills": count, "seen": dict(seen), "wrong": wrong}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as _name:
        _found = {"races": races, "steps": steps, "kills": kills}[sys.argv[1]](Path(_name) / "trial", int(sys.argv[2]))
    print(json.dumps(_found))
    sys.exit(1 if _found["wrong"] else 0)
