"""Who does the work: this process, several cores (joblib) or a cluster (dask.distributed); the same numbers bit for bit."""

from __future__ import annotations

import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.numbers import whole

_LOG = logging.getLogger(__name__)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_ATTEMPTS = 5  # how often tasks lost with a killed worker are handed out again
_MOST_JOBS = 4096


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
        return map(function, items)


class Cores(Runner):
    """Processes on this machine, by joblib; the tasks of a killed process are handed out again."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
        """As they are ready."""
        import joblib
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left = dict(enumerate(items))
        for attempt in range(_ATTEMPTS):
            try:
                with joblib.Parallel(n_jobs=self._jobs, return_as="generator_unordered", batch_size=1) as parallel:
                    numbered = (joblib.delayed(_numbered)(function, i, item) for i, item in list(left.items()))
                    for i, result in parallel(numbered):
                        del left[i]
                        yield result
                return
            except TerminatedWorkerError:
                if attempt == _ATTEMPTS - 1:
                    raise
                _LOG.info("A worker process was lost; %d of %d tasks are handed out again.", len(left), len(items))


class Cluster(Runner):
    """A dask.distributed cluster: the address of its scheduler, or 'local' for one on this machine."""

    def __init__(self, address: str, jobs: int | None = None) -> None:
        try:
            from dask import distributed
        except ImportError:
            raise MissingExtraError("--dask", "cluster") from None
        self._distributed: Any = distributed
        self._local = None
        try:
            if address == "local":
                self._local = distributed.LocalCluster(
                    n_workers=jobs, threads_per_worker=1, dashboard_address=None, silence_logs=50
                )
            self._client = distributed.Client(self._local or address, timeout="10s")
        except (OSError, ValueError, TimeoutError) as error:
            self.close()
            raise InvalidInputError(
                f"No dask scheduler could be reached at {address}. Give an address such as tcp://host:8786, or local. ({error})"
            ) from None

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
        """As they are ready; dask hands out the tasks of a lost worker again."""
        shared = self._client.scatter(function, broadcast=True)
        futures = [self._client.submit(_call, shared, item, pure=False, retries=_ATTEMPTS) for item in items]
        try:
            for future in self._distributed.as_completed(futures):
                yield future.result()
                future.release()
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(futures)

    def close(self) -> None:
        """Leave the cluster; a local one is taken down."""
        for part in (getattr(self, "_client", None), self._local):
            if part is not None:
                with contextlib.suppress(Exception):
                    part.close()


def make_runner(jobs: int = 1, dask: str | None = None, in_small_parts: bool = False) -> Runner:
    """The runner that the options describe."""
    count = whole(jobs, "jobs", 1, _MOST_JOBS)
    if dask is not None:
        return Cluster(dask, count if count > 1 else None)
    return Serial(in_small_parts) if count == 1 else Cores(count)


def _numbered(function: Callable[[_Item], _Result], number: int, item: _Item) -> tuple[int, _Result]:
    return number, function(item)


def _call(function: Callable[[_Item], _Result], item: _Item) -> _Result:
    return function(item)
