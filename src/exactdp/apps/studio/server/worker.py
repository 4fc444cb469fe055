"""A worker process: it answers one question at a time, within limits of time and memory, and can be replaced at any moment."""

from __future__ import annotations

import contextlib
import gc
import mmap
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.server.work_errors import CrashedError, RefusedError, TooLongError, place_of
from exactdp.apps.studio.work.designs import Record
from exactdp.errors import ExactDPError

Answer = Callable[[str, Record], Record]
"""What a worker does with the name of a question and the question; a function of some module."""
_BOOT_SECONDS = 120.0
_CONTAINERS = 50_000  # more than before when garbage is looked for
_PRELOADED = ["__main__", "exactdp.apps.studio.work.dispatch", "scipy.optimize"]
_TOO_MUCH = "This needs more memory than a question may take. Ask for fewer points or a smaller design."
_CRASHED = "The process that worked on this ended unexpectedly, perhaps for lack of memory. Try again, or ask for less."


@dataclass(frozen=True)
class Reply:
    """What a worker sends back: an answer or why there is none, the seconds of work, the resident bytes of the process."""

    answer: Record
    seconds: float
    resident: int = 0
    refusal: RefusedError | None = None
    defect: str = ""
    """Where an exception came from that nobody meant to raise."""


def fresh_processes() -> Any:
    """Fresh processes: from a fork server that has the library loaded where there is one."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        return context
    return multiprocessing.get_context("spawn")


def work(connection: Connection, memory_bytes: int, answer: Answer) -> None:
    """The life of a worker: answer questions until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers itself
    _limit_memory(memory_bytes)
    _end_with_server()
    collect_seldom()
    connection.send(None)  # from now on time counts
    while True:
        try:
            name, question = connection.recv()
        except (EOFError, OSError):
            return
        start = time.perf_counter()
        found, refusal, defect = {}, None, ""
        try:
            found = answer(name, question)
        except ExactDPError as error:
            refusal = RefusedError(str(error), getattr(error, "where", None))
        except MemoryError:
            refusal = RefusedError(_TOO_MUCH)
        except RecursionError:
            refusal = RefusedError("This is nested too deeply. Make the design simpler.")
        except Exception as error:
            defect = place_of(error)
        try:
            connection.send(Reply(found, time.perf_counter() - start, _bytes(1), refusal, defect))
        except (OSError, ValueError):
            return


def collect_seldom() -> None:
    """Look for garbage in cycles seldom, and not among what is loaded: someone waits for every answer."""
    gc.freeze()
    gc.set_threshold(_CONTAINERS)


def _limit_memory(most: int) -> None:
    """At most so much more address space than now, where the system knows such limits."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        if now := _bytes(0):
            resource.setrlimit(resource.RLIMIT_AS, (now + most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _bytes(which: int) -> int:
    """The address space (0) or the resident bytes (1) of this process; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[which]) * mmap.PAGESIZE
    return 0


def _end_with_server() -> None:
    """End this process when the server has ended, even in the middle of work."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


class Worker:
    """One process and the thread that talks to it."""

    def __init__(self, context: Any, limits: WorkLimits, answer: Answer) -> None:
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, limits.memory_bytes, answer), daemon=True)
        self._process.start()
        theirs.close()
        self._ended = self._hurried = False
        try:
            if not self._connection.poll(_BOOT_SECONDS):
                raise TimeoutError
            self._connection.recv()
        except (EOFError, OSError):
            self.close()
            raise CrashedError(_CRASHED) from None

    @property
    def pid(self) -> int:
        """The process id."""
        return int(self._process.pid)

    def ask(self, name: str, question: Record, seconds: float) -> Reply:
        """Blocks until the answer is there, at most so many seconds; then the process is ended."""
        try:
            self._connection.send((name, question))
            if not self._connection.poll(seconds):
                self.end()
                raise TooLongError
            reply = self._connection.recv()
        except (EOFError, OSError, BrokenPipeError):
            self.end()
            raise TooLongError if self._hurried else CrashedError(_CRASHED) from None
        assert isinstance(reply, Reply)
        return reply

    def end(self) -> None:
        """End the process now."""
        if not self._ended:
            self._ended = True
            self._process.kill()

    def hurry(self) -> None:
        """End the process now, as if its time were over: others wait."""
        self._hurried = True
        self.end()

    @property
    def ended(self) -> bool:
        """Whether it can no longer be asked."""
        return self._ended or not self._process.is_alive()

    def close(self) -> None:
        """End the process and wait for it."""
        self.end()
        self._process.join(5)
        self._connection.close()
