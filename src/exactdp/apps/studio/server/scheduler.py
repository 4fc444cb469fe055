"""Takes a question, looks whether it was answered before, and hands it to a lane of workers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.schema.answers import OverallEvent, as_json
from exactdp.apps.studio.server.lane import Lane
from exactdp.apps.studio.server.work_errors import TooLongError
from exactdp.apps.studio.server.worker import Answer, Reply
from exactdp.apps.studio.work.designs import Record
from exactdp.apps.studio.work.dispatch import QUESTIONS, answered
from exactdp.apps.studio.work.overall import Assembly, PlannedPart
from exactdp.apps.studio.work.pair import halves, joined
from exactdp.cache import Recent


class Scheduler:
    """Three lanes: short questions never wait behind long ones, and neither wait behind reports.

    What is long is decided before any work, by the kind of a question (work/dispatch.py). One that turns out to be long although
    it was planned as a short one leaves the short lane after `short_seconds`, or after `crowded_seconds` as soon as someone waits
    for its worker.
    """

    def __init__(self, limits: WorkLimits | None = None, answer: Answer = answered) -> None:
        self.limits = own = limits or WorkLimits()
        ending = {"grace": own.grace_seconds, "crowded": own.crowded_seconds}
        self.short = Lane(own.short_workers, own.short_waiting, own, answer, **ending)
        self.long = Lane(own.long_workers, own.long_waiting, own, answer, grace=own.grace_seconds)
        self.reports = Lane(own.report_workers, own.report_waiting, own, answer)
        self.memory: Recent[str, bytes] = Recent(own.cache_bytes, len, fewest=0)

    async def start(self, first: tuple[str, Record]) -> None:
        """Start the workers of both lanes and warm them up; one for reports is started with the first report."""
        await asyncio.gather(self.short.start(first), self.long.start(first))

    async def close(self) -> None:
        """End all workers."""
        await asyncio.gather(self.short.close(), self.long.close(), self.reports.close())

    async def answer(self, name: str, question: Record) -> bytes:
        """The JSON of an answer, from the lane for such questions; two workers share a pair where both are free."""
        length = QUESTIONS[name].length(question)
        if length == "long":
            work = self._in_long_lane(name, question)
        elif length == "report":
            work = _limited(self.reports, name, question, self.limits.report_seconds)
        elif name == "pair" and self.short.free >= 2:
            work = self._in_halves(question)
        else:
            return await self.short_answer(name, question)
        return await self._remembered(name, question, work)

    async def short_answer(self, name: str, question: Record) -> bytes:
        """The JSON of an answer that should take milliseconds; one that does not goes on in the long lane."""
        return await self._remembered(name, question, self._short_then_long(name, question))

    async def _in_halves(self, question: Record) -> Reply:
        both = (self._short_then_long("pair", half) for half in halves(question))
        replies: list[Any] = await asyncio.gather(*both, return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        one, other = replies
        return Reply(joined(one.answer, other.answer), max(one.seconds, other.seconds))

    async def _remembered(self, name: str, question: Record, work: Any) -> bytes:
        key = key_of(name, question)
        if held := self.memory.find(key):
            work.close()
            return held
        reply: Reply = await work
        return self._kept(key, {**reply.answer, "seconds": round(reply.seconds, 6)})

    def _kept(self, key: str, answer: Mapping[str, Any]) -> bytes:
        """The JSON of an answer, kept unless it would drive out too many others."""
        text = as_json(answer)
        return text if len(text) > self.limits.cache_bytes // 4 else self.memory.keep(key, text)

    async def _short_then_long(self, name: str, question: Record) -> Reply:
        try:
            return await self.short.ask(name, question, self.limits.short_seconds)
        except TooLongError:
            return await self._in_long_lane(name, question)

    async def _in_long_lane(self, name: str, question: Record) -> Reply:
        return await _limited(self.long, name, question, self.limits.long_seconds)

    async def overall(self, question: Record) -> AsyncGenerator[OverallEvent, None]:
        """The events of an overall accounting: start, parts as they come, done."""
        key = key_of("overall", question)
        if held := self.memory.find(key):
            yield json.loads(held)
            return
        loop = asyncio.get_running_loop()
        start = loop.time()
        assembly = Assembly((await self._in_long_lane("overall_plan", question)).answer)
        yield assembly.start()
        async with aclosing(self._parts(question["design"], assembly.parts)) as answers:
            async for i, answer in answers:
                for part in assembly.add(i, answer):
                    yield part
        done = assembly.done(loop.time() - start)
        self._kept(key, done)
        yield done

    async def _parts(self, design: Record, parts: list[PlannedPart]) -> AsyncGenerator[tuple[int, Record], None]:
        """The answers of parts as they come, as many at a time as there are workers; the first, which is waited for, by itself.

        The first worker goes from the front on, the others from the back, so that a worker mostly has what the next part needs.
        """
        todo = deque(enumerate(parts))
        running: dict[asyncio.Task[Reply], tuple[int, bool]] = {}

        def hand_out(most: int = self.limits.long_workers) -> None:
            while todo and len(running) < most:
                is_first = not any(in_front for _, in_front in running.values())
                i, one = todo.popleft() if is_first else todo.pop()
                asked = self._in_long_lane("overall_part", {"design": design, **one})
                running[asyncio.ensure_future(asked)] = i, is_first

        try:
            hand_out(1)
            while running:
                ready, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                found = [(running.pop(task)[0], task.result().answer) for task in ready]
                hand_out()
                for answer in found:
                    yield answer
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.gather(*running, return_exceptions=True)


async def _limited(lane: Lane, name: str, question: Record, seconds: float) -> Reply:
    """The reply of a lane, or one sentence about its limit of time."""
    try:
        return await lane.ask(name, question, seconds)
    except TooLongError:
        raise TooLongError(
            f"This took longer than {seconds:g} seconds, the limit of the studio. Ask for less, or use the commands of exactdp."
        ) from None


def key_of(name: str, question: Record) -> str:
    """The same for equal questions only."""
    return hashlib.sha256(as_json([name, question])).hexdigest()
