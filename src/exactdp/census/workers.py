"""Who does the work: this process, several cores (joblib) or a cluster (dask.distributed); the same numbers bit for bit.

Every result comes with the versions of the code that computed it, and is used only if they are those of this process.
Workers end when this process has ended, however it did.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from exactdp.census.cores import Cores
from exactdp.census.runners import ATTEMPTS, MOST_AT_ONCE, REMEDY, Runner, Serial, Stamped, each_of
from exactdp.errors import ExactDPError, InvalidInputError, MissingExtraError, WorkersError
from exactdp.numbers import one_line, shown, whole
from exactdp.version import __version__

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_MOST_JOBS = 4096
_OPEN_FILES = 256  # of a cluster on this machine
_NO_INTERRUPT = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # Ctrl-C reaches all; this process ends them
)
_KEEPING_MEMORY = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}
"""Workers by default give every freed array back to the system, and touch new pages for the next one: as long as the work."""
_PATIENCE = 60.0  # seconds in which a cluster without workers may get some
_VERSION = "__import__('exactdp').__version__"  # what every exactdp can be asked, so that old ones are told by name


class Cluster(Runner):
    """A dask.distributed cluster: the address of its scheduler, or 'local' for one on this machine."""

    def __init__(self, address: str, jobs: int | None = None) -> None:
        try:
            from dask import config, distributed
        except ImportError:
            raise MissingExtraError("--dask", "cluster") from None
        self._distributed: Any = distributed
        self._address, self._local = address, None
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is said in the error
        try:
            if address == "local":
                _check_open_files()
                with config.set(_KEEPING_MEMORY):
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

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], is_long: bool = False
    ) -> Iterator[_Result]:
        """As they are ready; dask hands out the tasks of a lost worker again."""
        futures: list[Any] = []
        try:
            self._compare()
            # a task, not scattered data: what is lost with a worker is made again
            options = {"pure": False, "retries": ATTEMPTS}
            shared = self._client.submit(_given, partial(each_of, function), **options)
            size = min(MOST_AT_ONCE, 1 + len(items) // (4 * len(self._client.nthreads())))
            batches = [items[i : i + size] for i in range(0, len(items), size)]
            futures += [self._client.submit(Stamped.of, shared, batch, **options) for batch in batches]
            for future in self._ready(futures):
                yield from self._result(future).opened()
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
                raise WorkersError(f"The worker {worker} computes with {found} (here exactdp {__version__}). {REMEDY}")

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

    def _result(self, future: Any) -> Stamped[Any]:
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
    if count == 1:
        return Serial(in_small_parts)
    return Cores(count)


def _given(function: Callable[[_Item], _Result]) -> Callable[[_Item], _Result]:
    return function
