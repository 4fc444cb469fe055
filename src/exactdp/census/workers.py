"""Who does the work: this process, several cores (joblib) or a cluster (dask.distributed); the same numbers bit for bit.

Every result comes with the versions of the code that computed it, and is used only if they are those of this process.
Workers end when this process has ended, however it did.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

from exactdp.arithmetic_state import steady_state
from exactdp.errors import ExactDPError, InvalidInputError, MissingExtraError, WorkersError
from exactdp.numbers import one_line, shown, whole
from exactdp.version import __version__, computed_with, other_versions

_LOG = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_ATTEMPTS = 5  # how often tasks lost with a killed worker are handed out again
_MOST_JOBS = 4096
_OPEN_FILES = 256  # of a cluster on this machine
_NO_INTERRUPT = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # Ctrl-C reaches all; this process ends them
)
_PATIENCE = 60.0  # seconds in which a cluster without workers may get some
_VERSION = "__import__('exactdp').__version__"  # what every exactdp can be asked, so that old ones are told by name
_REMEDY = "Install the same versions on all workers and start them again."


@dataclass(frozen=True)
class _Stamped(Generic[_Result]):
    """A result, who computed it, and with what."""

    result: _Result
    worker: str
    code: dict[str, str]

    @classmethod
    def of(cls, function: Callable[[_Item], _Result], item: _Item) -> _Stamped[_Result]:
        """What a worker sends back."""
        return cls(_steadily(function, item), _own_name(), computed_with())

    def opened(self) -> _Result:
        """The result, if the worker computes with what this process computes with."""
        if others := other_versions(self.code):
            raise WorkersError(f"The worker {self.worker} computes with {others}. {_REMEDY}")
        return self.result


def _steadily(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    """What the function makes of the item, whatever has been set in this process."""
    with steady_state():
        return function(item)


def _own_name() -> str:
    """The address of a worker of a cluster, the number of any other process."""
    distributed: Any = sys.modules.get("distributed")
    if distributed is not None:
        with contextlib.suppress(ValueError):
            return str(distributed.get_worker().address)
    return f"process {os.getpid()}"


class Runner(ABC):
    """Applies a function to items, in any order, and yields the results as they are ready."""

    is_serial = False
    in_small_parts = False
    """Whether even a serial run is cut into parts, because finished parts are kept on disk."""

    @abstractmethod
    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
        """The results for all items, in the order in which they are ready."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Serial(Runner):
    """In this process, one after the other."""

    is_serial = True

    def __init__(self, in_small_parts: bool = False) -> None:
        self.in_small_parts = in_small_parts

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
        """One after the other."""
        return map(partial(_steadily, function), items)


class Cores(Runner):
    """Processes on this machine, by joblib; the tasks of a killed process are handed out again."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
        """As they are ready."""
        import joblib
        from joblib.externals.loky.process_executor import BrokenProcessPool

        left = dict(enumerate(items))
        refused: list[WorkersError] = []  # then nothing new is handed out; ending tasks would end the pool in disorder
        for _ in range(_ATTEMPTS):
            try:
                with joblib.Parallel(self._jobs, _backend(), return_as="generator_unordered", batch_size=1) as parallel:
                    tasks = (i for i in list(left) if not refused)
                    for i, stamped in parallel(joblib.delayed(_numbered)(function, i, left[i]) for i in tasks):
                        try:
                            result = stamped.opened()
                        except WorkersError as error:
                            refused.append(error)
                            continue
                        del left[i]
                        yield result
                if refused:
                    raise refused[0]
                return
            except BrokenProcessPool:
                _LOG.info("Worker processes were lost; %d of %d tasks are handed out again.", len(left), len(items))
        raise WorkersError(
            f"Worker processes ended before their time in each of {_ATTEMPTS} attempts, perhaps for lack of memory. "
            "Ask for fewer processes with --jobs."
        )


def _backend() -> Any:
    """That of joblib, with processes that end when this one has ended."""
    from joblib.parallel import LokyBackend  # type: ignore[attr-defined, unused-ignore]

    class EndingBackend(LokyBackend):  # type: ignore[misc]
        def configure(self, *given: Any, **options: Any) -> int:
            return int(super().configure(*given, **options, initializer=_end_with, initargs=(os.getpid(),)))

    return EndingBackend()


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, even in the middle of work."""

    def watch() -> None:
        if sys.platform == "win32":
            multiprocessing.parent_process().join()  # type: ignore[union-attr]
        else:
            while os.getppid() == parent:  # an orphan is given to another
                time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Cluster(Runner):
    """A dask.distributed cluster: the address of its scheduler, or 'local' for one on this machine."""

    def __init__(self, address: str, jobs: int | None = None) -> None:
        try:
            from dask import distributed
        except ImportError:
            raise MissingExtraError("--dask", "cluster") from None
        self._distributed: Any = distributed
        self._address, self._local = address, None
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said in the error
        try:
            if address == "local":
                _check_open_files()
                self._local = distributed.LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",  # any port, or two runs at once would want the same one
                    silence_logs=50,
                    preload=_NO_INTERRUPT,
                )
            self._client = distributed.Client(self._local or address, timeout="10s")
        except (OSError, ValueError, TimeoutError, RuntimeError) as error:
            self.close()
            if address == "local":
                raise InvalidInputError(
                    f"No dask cluster could be started here ({one_line(str(error)).rstrip('.')}). "
                    "Raise the limits of memory and open files (ulimit -v, ulimit -n), or ask for --jobs instead."
                ) from None
            raise InvalidInputError(
                f"No dask scheduler could be reached at {address} ({one_line(str(error))}). "
                "Give an address such as tcp://host:8786, or local."
            ) from None

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
        """As they are ready; dask hands out the tasks of a lost worker again."""
        futures: list[Any] = []
        try:
            self._compare()
            # a task, not scattered data: what is lost with a worker is made again
            shared = self._client.submit(_given, function, pure=False, retries=_ATTEMPTS)
            futures += [self._client.submit(_Stamped.of, shared, item, pure=False, retries=_ATTEMPTS) for item in items]
            for future in self._ready(futures):
                yield self._result(future).opened()
                future.release()
        except (OSError, self._distributed.CancelledError):
            raise WorkersError(
                f"The dask scheduler ({self._address}) was lost. Start it and its workers again."
            ) from None
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(futures)

    def _compare(self) -> None:
        """Refuse to work with workers that have another exactdp; those that join later are told by their first result."""
        self._wait_for_workers()
        for worker, told in self._client.run(eval, _VERSION, on_error="return").items():
            if told != __version__:
                found = type(told).__name__ if isinstance(told, BaseException) else f"exactdp {shown(told)}"
                raise WorkersError(f"The worker {worker} computes with {found} (here exactdp {__version__}). {_REMEDY}")

    def _wait_for_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise WorkersError(
                f"The dask scheduler ({self._address}) has no worker after {_PATIENCE:.0f} seconds. Start one with: dask worker."
            ) from None

    def _ready(self, futures: list[Any]) -> Iterator[Any]:
        """The futures as they are done; refuses to wait for a cluster that has lost all workers."""
        left = set(futures)
        while left:
            try:
                for future in self._distributed.as_completed(list(left), timeout=_PATIENCE):
                    left.discard(future)
                    yield future
            except TimeoutError:
                self._wait_for_workers()

    def _result(self, future: Any) -> _Stamped[Any]:
        """What a task gave, made again where it was lost with its worker; or why there is nothing."""
        try:
            return future.result()  # type: ignore[no-any-return]
        except self._distributed.KilledWorker:
            raise WorkersError(
                "Workers of the cluster ended again and again at the same task, perhaps for lack of memory. "
                "Give them more, or start fewer on a machine."
            ) from None
        except Exception as error:
            if future.status == "error" and not isinstance(error, ExactDPError):
                self._compare()  # one that joined later may be unable to read the task
            raise

    def close(self) -> None:
        """Leave the cluster; a local one is taken down."""
        for part in (getattr(self, "_client", None), self._local):
            if part is not None:
                with contextlib.suppress(Exception):
                    part.close()


def _check_open_files() -> None:
    """Refuse what dask would go on trying without end."""
    if sys.platform != "win32":
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

        limit = getrlimit(RLIMIT_NOFILE)[0]
        if limit != RLIM_INFINITY and limit < _OPEN_FILES:
            raise OSError(f"it needs {_OPEN_FILES} open files, and {limit} are allowed")


def make_runner(jobs: int = 1, dask: str | None = None, in_small_parts: bool = False) -> Runner:
    """The runner that the options describe."""
    count = whole(jobs, "jobs", 1, _MOST_JOBS)
    if dask is not None:
        return Cluster(dask, count if count > 1 else None)
    return Serial(in_small_parts) if count == 1 else Cores(count)


def _numbered(function: Callable[[_Item], _Result], number: int, item: _Item) -> tuple[int, _Stamped[_Result]]:
    return number, _Stamped.of(function, item)


def _given(function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    return function
