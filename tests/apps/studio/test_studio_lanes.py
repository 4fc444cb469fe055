"""Which lane a question goes to: long ones are recognised before any work, and what was misjudged makes room for who waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import studio_troubles
from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.schema.requests import EditableDesign, OverallQuestion, PairQuestion
from exactdp.apps.studio.server.scheduler import Scheduler
from exactdp.apps.studio.server.worker import Reply
from exactdp.apps.studio.work.designs import LONG_FILE, design_of
from exactdp.apps.studio.work.dispatch import QUESTIONS
from exactdp.apps.studio.work.overall import PlannedPart
from exactdp.apps.studio.work.pair import LONG_PAIR
from exactdp.census import release, release_names
from studio_server import SMALL, named

PID: Any = {"design": {"name": "pid"}}
FOR_EVER: Any = {"design": {"name": "sleep"}}


def run(work: Callable[[Scheduler], Coroutine[Any, Any, None]], **limits: Any) -> None:
    """Some work with a scheduler of one worker in each lane, without limits of time."""

    async def with_scheduler() -> None:
        own = {"short_workers": 1, "long_workers": 1, "short_seconds": 1e6, "long_seconds": 1e6, **limits}
        scheduler = Scheduler(WorkLimits(**own), studio_troubles.answer)
        try:
            await work(scheduler)
        finally:
            await scheduler.close()

    asyncio.run(with_scheduler())


async def some_lane_is_busy(scheduler: Scheduler) -> None:
    while not (scheduler.short.busy_pids or scheduler.long.busy_pids):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("step", ["plan", "calibrate", "certify", "table"])
def test_short_questions_do_not_wait_for_long_ones(step: str) -> None:
    async def work(scheduler: Scheduler) -> None:
        if step == "plan":
            question = OverallQuestion(design=EditableDesign(**named("sleep"))).model_dump()
            long = asyncio.ensure_future(anext(scheduler.overall(question)))
        else:
            long = asyncio.ensure_future(scheduler.answer(step, FOR_EVER))
        await some_lane_is_busy(scheduler)
        assert scheduler.short.free == 1
        assert scheduler.long.free == 0
        assert json.loads(await scheduler.answer("check", PID))["pid"]
        long.cancel()
        await asyncio.wait([long])

    run(work)


def test_one_worker_takes_parts_from_the_front_and_the_other_from_the_back(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    async def answer(_: Scheduler, __: str, question: Any) -> Reply:
        taken.append(question["at"][0])
        await asyncio.sleep(0.3 if question["at"] == ["b"] else 0.02)
        return Reply({"at": question["at"]}, 0.0)

    async def work(scheduler: Scheduler) -> None:
        parts: list[PlannedPart] = [{"quantity": "delta", "at": [letter]} for letter in "abcde"]
        found = [i async for i, _ in scheduler._parts({}, parts)]
        assert sorted(found) == list(range(5))
        assert found[0] == 0  # it was worked on by itself
        assert found[-1] == 1  # it took as long as all the others, which the second worker did
        assert taken == ["a", "b", "e", "d", "c"]

    monkeypatch.setattr(Scheduler, "_in_long_lane", answer)
    run(work, long_workers=2)


def is_long(name: str, question: Any) -> bool:
    return QUESTIONS[name].length(question) == "long"


def test_pairs_and_files_are_long_by_their_size() -> None:
    for built_in in map(release, release_names()):
        assert not built_in.is_usual or not is_long("pair", pair(design_of(built_in)))
    assert not is_long("pair", pair(SMALL))
    equal, different = wide(1), wide(100)
    assert not is_long("pair", pair(equal))
    assert LONG_PAIR < 2_000 * 100
    assert is_long("pair", pair(different))
    assert not is_long("check", {"design": different})
    assert is_long("parse", {"file_name": "a.csv", "text": "x" * (LONG_FILE + 1)})
    assert not is_long("parse", {"file_name": "a.csv", "text": "x" * LONG_FILE})


def pair(design: Any) -> dict[str, Any]:
    return PairQuestion(design=EditableDesign(**design)).model_dump()


def wide(different: int) -> dict[str, Any]:
    """A design of 2,000 budgets, so many of them different."""
    rho = [f"{1 + i % different}/10000" for i in range(2_000)]
    levels = [
        {"name": f"L{i}", "queries": [{"name": f"q{j}", "rho": rho[40 * i + j]} for j in range(40)]} for i in range(50)
    ]
    return {"name": "wide", "levels": levels}


def test_a_misjudged_question_makes_room_for_who_waits() -> None:
    async def work(scheduler: Scheduler) -> None:
        long = asyncio.ensure_future(scheduler.answer("check", FOR_EVER))
        await some_lane_is_busy(scheduler)
        assert scheduler.short.free == 0
        for i in range(3):  # nobody else could ever end it: there is no other limit of time
            assert json.loads(await scheduler.answer("check", {**PID, "n": i}))["pid"]
        while not scheduler.long.busy_pids:  # its new worker starts
            await asyncio.sleep(0.01)
        assert not long.done()
        long.cancel()
        await asyncio.wait([long])

    run(work, crowded_seconds=0.0)


def test_nobody_is_hurried_while_nobody_waits() -> None:
    async def work(scheduler: Scheduler) -> None:
        one = asyncio.ensure_future(scheduler.answer("check", {"design": {"name": "nap"}, "quick": True}))
        await some_lane_is_busy(scheduler)
        at_work = scheduler.short.busy_pids
        await asyncio.wait([one])
        assert scheduler.short.pids == at_work
        assert not scheduler.long.pids

    run(work, crowded_seconds=0.0)
