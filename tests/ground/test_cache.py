"""The one cache: what it holds, what it drops, several threads, pickles."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator

import pytest

from exactdp.cache import Recent


def test_the_least_recently_asked_for_goes_first() -> None:
    made: list[int] = []
    held: Recent[int, int] = Recent(2)

    def ask(key: int) -> int:
        return held.get(key, lambda: made.append(key) or key)  # type: ignore[func-returns-value]

    assert [ask(k) for k in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert made == [1, 2, 3, 2]


def test_heavy_values_push_others_out_but_for_the_fewest() -> None:
    held: Recent[int, int] = Recent(10, weight=lambda value: value, fewest=2)
    for value in (8, 9, 1):
        held.get(value, lambda value=value: value)  # type: ignore[misc]
    assert held.get(9, lambda: -1) == 9
    assert held.get(8, lambda: -1) == -1


@pytest.fixture
def impatient() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("impatient")
def test_threads_share_one() -> None:
    held: Recent[int, int] = Recent(3)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for i in range(2000):
                key = (seed * 7 + i * 3) % 11
                if held.get(key, lambda key=key: key) != key:  # type: ignore[misc]
                    wrong.append(key)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_pickle_holds_nothing() -> None:
    held: Recent[int, int] = Recent(2)
    held.get(1, lambda: 1)
    assert pickle.loads(pickle.dumps(held)).get(1, lambda: 5) == 5
