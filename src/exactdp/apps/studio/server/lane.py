"""A lane: a fixed number of workers and a bounded queue before them.

What takes too long, or is no longer wanted, is ended by ending its process; a new one takes its place. Nothing else in the server
is touched by that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.server.work_errors import DEFECT, DefectError, FullError
from exactdp.apps.studio.server.worker import Answer, Reply, Worker, fresh_processes
from exactdp.apps.studio.work.designs import Record

_LOG = logging.getLogger("exactdp.studio")
_BUSY = "Too many questions are waiting. Try again in a few seconds."


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
        grace: float = 0.0,
        crowded: float = math.inf,
    ) -> None:
        self._answer = answer
        self._limits = limits
        self._context = fresh_processes()
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
