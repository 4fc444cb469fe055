"""The most recent of what is costly to make again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """Values of at most `size` together, the least recently asked for dropped first; each counts 1 unless `weight` says more.

    The `fewest` most recent are held whatever they weigh. Affects speed only: what is made again is the same.
    """

    def __init__(self, size: int, weight: Callable[[_Value], int] | None = None, fewest: int = 1) -> None:
        self._size, self._weight, self._fewest = size, weight, fewest
        self._items = OrderedDict[_Key, _Value]()
        self._lock = threading.Lock()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The value held under `key`, made first if it is not."""
        held = self.find(key)
        return self.keep(key, make()) if held is None else held  # outside of the lock: making one may ask for others

    def find(self, key: _Key) -> _Value | None:
        """The value held under `key`, if there is one."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def keep(self, key: _Key, value: _Value) -> _Value:
        """Hold a value, and drop what is too much."""
        with self._lock:
            self._items[key] = value
            while len(self._items) > self._fewest and self._weighs() > self._size:
                self._items.popitem(last=False)
        return value

    def _weighs(self) -> int:
        """All that is held; what a value weighs may have changed since it came."""
        return len(self._items) if self._weight is None else sum(map(self._weight, self._items.values()))

    def __reduce__(self) -> tuple[type[Recent[_Key, _Value]], tuple[int, Callable[[_Value], int] | None, int]]:
        return Recent, (self._size, self._weight, self._fewest)  # what is held stays in its process
