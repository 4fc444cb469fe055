"""Several processes on one machine, this one among them; those that are killed change nothing."""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from functools import partial
from typing import Any, Generic, TypeVar

from exactdp.census import runners
from exactdp.census.runners import MOST_AT_ONCE, Runner, Stamped, each_of, steadily
from exactdp.errors import WorkersError
from exactdp.threads import ONE_THREAD

_LOG = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_ALONE = 2.0  # CPU seconds of work before other processes are started: more than it takes one to load what it needs
_WORTH = 1.5  # CPU seconds that what is left would take, by what was done, for which they are started at once
_LOOKS = 20  # at what this process has done, in that time
_IDLE = 300  # seconds after which a process without work ends


class Cores(Runner):
    """This process and, where the work takes long, others on this machine (loky, by joblib).

    Most work is done before another process has loaded what it needs, which takes it more than a second of CPU time.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], is_long: bool = False
    ) -> Iterator[_Result]:
        """As they are ready; other processes are started at once where the work `is_long`, else when it turns out to be."""
        crew = _Crew(function, items, self._jobs)
        threading.Thread(target=crew.hire_after, args=(0.0 if is_long else _ALONE,), daemon=True).start()
        try:
            while crew.is_busy:
                place = crew.next_here()
                if place is None:
                    yield from crew.finished(wait=True)
                else:
                    yield crew.done_here(place)
                    yield from crew.finished()
        finally:
            crew.dismiss()


class _Crew(Generic[_Item, _Result]):
    """The items of one call of `map`, and the processes that work at them beside this one.

    What was lost with a killed process is handed out to other ones only: it may be what killed it.
    """

    def __init__(self, function: Callable[[_Item], _Result], items: Sequence[_Item], jobs: int) -> None:
        self._function, self._items, self._jobs = function, items, jobs
        self._lock = threading.RLock()
        self._todo, self._lost = deque(range(len(items))), deque[int]()
        self._away: dict[Any, list[int]] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._executor: Any = None
        self._broken: list[Any] = []
        self._stopped = False
        self._own, self._spent = 0, 0.0
        """Items done in this process, and the CPU seconds that they took."""

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do or to wait for."""
        with self._lock:
            return bool(self._todo or self._lost or self._away)

    def next_here(self) -> int | None:
        """The place of the next item for this process."""
        with self._lock:
            return self._todo.popleft() if self._todo and not self._stopped else None

    def done_here(self, place: int) -> _Result:
        """The result of an item by this process, which then knows about how long the others would take."""
        start = time.process_time()
        result = steadily(self._function, self._items[place])
        self._own, self._spent = self._own + 1, self._spent + time.process_time() - start
        if self._spent / self._own * len(self._todo) > _WORTH:
            self._hire_first()
        return result

    def hire_after(self, seconds: float) -> None:
        """Start processes when this one has worked for so many CPU seconds."""
        until = time.process_time() + seconds
        while not self._stopped and time.process_time() < until:
            time.sleep(seconds / _LOOKS)
        self._hire_first()

    def _hire_first(self) -> None:
        with self._lock:
            if self._executor is None:
                self.hire()

    def hire(self) -> None:
        """Start processes, if there is something left for them."""
        from joblib.externals.loky import get_reusable_executor

        options: dict[str, Any] = {"initializer": _end_with, "initargs": (os.getpid(),), "timeout": _IDLE}
        with self._lock:
            if self._stopped or not (self._todo or self._lost):
                return
            self._executor = get_reusable_executor(self._jobs - 1, env=ONE_THREAD, **options)
            for _ in range(self._jobs - 1):
                self._hand_out()

    def _hand_out(self) -> None:
        """Give some process the next items: one by one towards the end, several where there are many."""
        with self._lock:
            source = self._lost or self._todo
            if not source or self._stopped or self._executor is None:
                return
            count = min(MOST_AT_ONCE, 1 + len(source) // (4 * self._jobs))
            places = [source.popleft() for _ in range(count)]
            given = [self._items[place] for place in places]
            try:
                future = self._executor.submit(Stamped.of, partial(each_of, self._function), given)
            except BrokenExecutor:  # those that were lost with it will say so
                self._lost.extend(places)
                return
            self._away[future] = places
        future.add_done_callback(self._back)

    def _back(self, future: Any) -> None:
        """In another thread, as soon as a task is done: its process gets the next one."""
        if future.exception() is None:
            self._hand_out()
        self._done.put(future)

    def finished(self, wait: bool = False) -> Iterator[_Result]:
        """The results of tasks that are done; with `wait` of at least one, if there are any."""
        if wait and not self._away and self._lost:
            self._start_again()
        while self._away:
            try:
                future = self._done.get(block=wait)
            except queue.Empty:
                return
            wait = False
            places = self._away.pop(future)
            try:
                stamped = future.result()
            except BrokenExecutor:
                self._lost.extend(places)
                if not self._away:
                    self._start_again()
                continue
            try:
                results = stamped.opened()
            except WorkersError:
                self._wait_for_the_others()
                raise
            yield from results

    def _start_again(self) -> None:
        """After processes were lost, with all that they had been given."""
        self._broken.append(self._executor)
        _LOG.info("Worker processes were lost; %d of %d tasks are handed out again.", len(self._lost), len(self._items))
        if len(self._broken) >= runners.ATTEMPTS:
            raise WorkersError(
                f"Worker processes ended before their time in each of {runners.ATTEMPTS} attempts, perhaps for lack of memory. "
                "Ask for fewer processes with --jobs."
            )
        self.hire()

    def _wait_for_the_others(self) -> None:
        """Hand nothing out any more: ending tasks would end processes in disorder."""
        with self._lock:
            self._stopped = True
        for future in list(self._away):
            future.exception()
        self._away.clear()

    def dismiss(self) -> None:
        """Hand nothing out any more; processes that are at work are ended."""
        with self._lock:
            self._stopped = True
        if self._away and self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)


def _end_with(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end this process when its parent has ended, even in the middle of work."""

    def watch() -> None:
        if sys.platform == "win32":
            multiprocessing.parent_process().join()  # type: ignore[union-attr]
        else:
            while os.getppid() == parent:  # an orphan is given to another
                time.sleep(0.5)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()
