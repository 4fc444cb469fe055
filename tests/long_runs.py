"""Long runs from outside, for tests and campaigns of faults: start them, wait for the journal, find their processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import exactdp as package

SOURCE = Path(package.__file__).parent
_COMMAND = [sys.executable, "-c", "from exactdp.apps.cli import main; main()"]
_PATIENCE = 120.0  # seconds after which something that must happen has not


def exactdp(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command, to its end, from the source that is tested."""
    return subprocess.run([*_COMMAND, *arguments], capture_output=True, text=True, check=False, env=_with(SOURCE))


def started(*arguments: str, said: Path = Path(os.devnull)) -> subprocess.Popen[bytes]:
    """A command that goes on while the caller does other things; what it says of errors is kept in a file if one is given."""
    with said.open("wb") as file:
        return subprocess.Popen([*_COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=file, env=_with(SOURCE))


def first_journal(folder: Path, run: subprocess.Popen[bytes]) -> Path:
    """The journal of a run, as soon as something is in it."""
    for _ in _patiently():
        found = [path for path in folder.rglob("progress-*.jsonl") if path.stat().st_size]
        if found:
            return found[0]
        assert run.poll() is None, f"the run ended with {run.returncode} before anything was finished"
    raise AssertionError("nothing was finished")


def helpers_of(run: subprocess.Popen[bytes]) -> list[int]:
    """The processes that a run has started, a worker and what looks after it, as soon as they are there."""
    for _ in _patiently():
        if len(found := descendants(run.pid)) >= 2:
            return found
        assert run.poll() is None, f"the run ended with {run.returncode} before it had started others"
    raise AssertionError("no other processes were started")


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    parents = {process: parent for process in _processes() if (parent := _parent(process))}
    found, new = [], [pid]
    while new:
        new = [process for process, parent in parents.items() if parent in new]
        found += new
    return found


def all_end(processes: list[int], seconds: float = _PATIENCE) -> bool:
    """Whether they have all ended before so many seconds were over."""
    return any(not [p for p in processes if _parent(p)] for _ in _patiently(seconds))


@contextlib.contextmanager
def cluster(folder: Path, workers: Mapping[str, tuple[str, str, str]]) -> Iterator[str]:
    """A dask scheduler and its workers as processes; each worker has its own copy of the source with one text replaced."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    started = [_module("distributed.cli.dask_scheduler", "--host=127.0.0.1", f"--port={port}", "--no-dashboard")]
    try:
        for name, (file, text, other) in workers.items():
            copy = shutil.copytree(SOURCE, folder / name / "exactdp", ignore=shutil.ignore_patterns("__pycache__"))
            changed = Path(copy) / file
            assert changed.read_text().count(text) == 1
            changed.write_text(changed.read_text().replace(text, other))
            options = ("--nthreads=1", "--no-dashboard", "--no-nanny", f"--local-directory={folder / name}")
            started.append(_module("distributed.cli.dask_worker", address, *options, source=Path(copy)))
        yield address
    finally:
        for process in started:
            process.kill()
            process.wait()


def _module(name: str, *arguments: str, source: Path = SOURCE) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-m", name, *arguments], env=_with(source), stdout=quiet, stderr=quiet)


def _with(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source.parent)}


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(process: int) -> int:
    """The parent of a process; 0 for one that has ended."""
    with contextlib.suppress(OSError):
        state, parent, *_ = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return 0 if state == "Z" else int(parent)
    return 0


def _patiently(seconds: float = _PATIENCE) -> Iterator[None]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.1)
