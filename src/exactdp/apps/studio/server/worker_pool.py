"""Worker processes: each answers one question at a time, within limits of time and memory, and can be replaced at any moment.

A lane is a fixed number of workers and a bounded queue before them. What takes too long, or is no longer wanted, is ended by
ending its process; a new one takes its place. Nothing else in the server is touched by that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import mmap
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.schema.answers import Place
from exactdp.apps.studio.work.designs import Record
from exactdp.errors import ExactDPError

Answer = Callable[[str, Record], Record]
"""What a worker does with the name of a question and the question; a function of some module."""
_BOOT_SECONDS = 120.0
_PRELOADED = ["__main__", "exactdp.apps.studio.work.dispatch"]
_LOG = logging.getLogger("exactdp.studio")
DEFECT = "The studio failed at this, which is a defect of exactdp. Please report what you asked for."
_BUSY = "Too many questions are waiting. Try again in a few seconds."
_TOO_MUCH = "This needs more memory than a question may take. Ask for fewer points or a smaller design."
_CRASHED = "The process that worked on this ended unexpectedly, perhaps for lack of memory. Try again, or ask for less."


class WorkError(Exception):
    """Work that gave no answer; the text is one sentence for the user."""

    status = 503
    where: Place | None = None


class RefusedError(WorkError):
    """The library refused the input; where it can be told, at this place."""

    status = 422

    def __init__(self, sentence: str, where: Place | None = None) -> None:
        super().__init__(sentence)
        self.where = where


class DefectError(WorkError):
    """An exception that nobody meant to raise."""

    status = 500


class TooLongError(WorkError):
    """The time limit was reached."""


class CrashedError(WorkError):
    """The process ended without an answer."""


class FullError(WorkError):
    """Too many requests are waiting."""

    status = 429


@dataclass(frozen=True)
class Reply:
    """What a worker sends back: an answer or why there is none, the seconds of work, the resident bytes of the process."""

    answer: Record
    seconds: float
    resident: int = 0
    refusal: RefusedError | None = None
    defect: str = ""
    """Where an exception came from that nobody meant to raise."""


def place_of(error: Exception) -> str:
    """What kind of exception came from where, without its text, which may hold what a user typed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_qualname}, line {trace.tb_lineno}" if trace is not None else "-"
    return f"{type(error).__name__} in {where}"


def _context() -> Any:
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


class Lane:
    """Workers for one kind of questions, and the queue before them. For one event loop.

    `grace`: seconds that work may go on which nobody wants any more. `crowded`: seconds that work may take while others wait.
    """

    def __init__(
        self,
        workers: int,
        waiting: int,
        limits: WorkLimits,
        answer: Answer,
        *,
        grace: float = 0.0,
        crowded: float = math.inf,
    ) -> None:
        self._answer = answer
        self._limits = limits
        self._context = _context()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="studio")
        self._size, self._most_waiting = workers, waiting
        self._idle: list[Worker] = []
        self._busy: dict[Worker, float] = {}
        self._queue: deque[asyncio.Future[None]] = deque()
        self._free = workers
        self._grace, self._crowded, self._closed = grace, crowded, False
        self._alarm: asyncio.TimerHandle | None = None
        self._loose_ends: set[asyncio.Future[None]] = set()

    async def start(self, first: tuple[str, Record]) -> None:
        """Start the workers and let each answer a first question, so that the next is answered at once."""
        await asyncio.gather(*(self.ask(*first, 120.0) for _ in range(self._size)))

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [worker.pid for worker in (*self._idle, *self._busy)]

    @property
    def busy_pids(self) -> list[int]:
        """The process ids of those at work."""
        return [worker.pid for worker in self._busy]

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""
        return self._free

    @property
    def waiting(self) -> int:
        """How many wait for a worker."""
        return len(self._queue)

    async def ask(self, name: str, question: Record, seconds: float) -> Reply:
        """The reply to a question. When the caller is cancelled, so is the work, but for what ends by itself very soon."""
        await self._enter()
        try:
            worker = await self._take()
        except BaseException:
            self._leave()
            raise
        self._busy[worker] = asyncio.get_running_loop().time()
        self._hurry()
        call = asyncio.get_running_loop().run_in_executor(self._threads, worker.ask, name, question, seconds)
        try:
            reply = await asyncio.shield(call)
        except asyncio.CancelledError:
            self._later(self._abandon(worker, call))
            raise
        except BaseException:
            self._put_back(worker)
            raise
        if reply.resident > self._limits.resident_bytes:
            worker.end()
        self._put_back(worker)
        if reply.defect:
            _LOG.error("a defect: %s", reply.defect)
            raise DefectError(DEFECT)
        if reply.refusal:
            raise reply.refusal
        return reply

    async def _abandon(self, worker: Worker, call: asyncio.Future[Reply]) -> None:
        """Nobody waits for this any more: a warm worker is worth a moment, a long computation is not."""
        done, _ = await asyncio.wait([call], timeout=self._grace)
        if not done:
            worker.end()
            await asyncio.wait([call])
        call.exception()  # nobody wants to hear of it
        self._put_back(worker)

    async def _enter(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        if len(self._queue) >= self._most_waiting:
            raise FullError(_BUSY)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        self._hurry()
        try:
            await asyncio.wait_for(turn, self._limits.queue_seconds)
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # the turn came at the same moment
                self._leave()
            else:
                with contextlib.suppress(ValueError):
                    self._queue.remove(turn)
            if isinstance(error, TimeoutError):
                raise FullError(_BUSY) from None
            raise

    def _hurry(self) -> None:
        """While others wait, end what takes longer than it may then, and look again when the next one would."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if not self._queue or self._closed or self._crowded == math.inf:
            return
        loop = asyncio.get_running_loop()
        late = loop.time() - self._crowded
        for worker, start in self._busy.items():
            if start <= late:
                worker.hurry()
        if later := [start for start in self._busy.values() if start > late]:
            self._alarm = loop.call_at(min(later) + self._crowded, self._hurry)

    def _leave(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if not worker.ended:
                return worker
            await asyncio.to_thread(worker.close)
        starting = asyncio.ensure_future(asyncio.to_thread(Worker, self._context, self._limits, self._answer))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._later(self._keep(starting))
            raise

    async def _keep(self, starting: asyncio.Future[Worker]) -> None:
        """A worker that was started for someone who has left is there for the next."""
        await asyncio.wait([starting])
        if starting.exception() is None:
            if len(self._idle) + len(self._busy) < self._size and not self._closed:
                self._idle.append(starting.result())
            else:
                await asyncio.to_thread(starting.result().close)

    def _put_back(self, worker: Worker) -> None:
        self._busy.pop(worker, None)
        if worker.ended:
            self._later(asyncio.to_thread(worker.close))
        else:
            self._idle.append(worker)
        self._leave()

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._loose_ends.add(task)
        task.add_done_callback(self._loose_ends.discard)

    async def close(self) -> None:
        """End all workers."""
        self._closed = True
        self._hurry()
        for worker in (*self._idle, *self._busy):
            worker.end()
        for worker in self._idle:
            await asyncio.to_thread(worker.close)
        self._idle.clear()
        await asyncio.gather(*self._loose_ends, return_exceptions=True)
        self._threads.shutdown(wait=False)
