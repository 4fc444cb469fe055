"""The most recent of what is costly to make again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """At most `size` values, the least recently asked for dropped first. Affects speed only: what is made again is the same."""

    def __init__(self, size: int) -> None:
        self._size, self._items = size, OrderedDict[_Key, _Value]()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        """The value held under `key`, made first if it is not."""
        if key not in self._items:
            value = make()
            while len(self._items) >= self._size:
                self._items.popitem(last=False)
            self._items[key] = value
        self._items.move_to_end(key)
        return self._items[key]
