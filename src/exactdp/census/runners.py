"""Whoever does the work: functions applied to items, each result with the versions of the code that computed it."""

from __future__ import annotations

import contextlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

from exactdp.arithmetic_state import steady_state
from exactdp.errors import WorkersError
from exactdp.version import computed_with, other_versions

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

ATTEMPTS = 5
"""How often tasks lost with a killed worker are handed out again."""

MOST_AT_ONCE = 8
"""Items of one task."""

REMEDY = "Install the same versions on all workers and start them again."


@dataclass(frozen=True)
class Stamped(Generic[_Result]):
    """A result, who computed it, and with what."""

    result: _Result
    worker: str
    code: dict[str, str]

    @classmethod
    def of(cls, function: Callable[[_Item], _Result], item: _Item) -> Stamped[_Result]:
        """What a worker sends back."""
        return cls(steadily(function, item), _own_name(), computed_with())

    def opened(self) -> _Result:
        """The result, if the worker computes with what this process computes with."""
        if others := other_versions(self.code):
            raise WorkersError(f"The worker {self.worker} computes with {others}. {REMEDY}")
        return self.result


def steadily(function: Callable[[_Item], _Result], item: _Item) -> _Result:
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
    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], is_long: bool = False
    ) -> Iterator[_Result]:
        """The results for all items, in the order in which they are ready; `is_long` where many seconds are expected."""

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

    def map(
        self, function: Callable[[_Item], _Result], items: Sequence[_Item], is_long: bool = False
    ) -> Iterator[_Result]:
        """One after the other."""
        return map(partial(steadily, function), items)


def each_of(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """What the function makes of each item: a task of several."""
    return [function(item) for item in items]
