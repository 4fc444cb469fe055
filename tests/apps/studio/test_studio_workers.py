"""The studio's workers: limits hold, and trouble in one request is no trouble in another."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from typing import Any

import httpx
import pytest

import studio_troubles
from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.schema.answers import as_json
from exactdp.apps.studio.server.scheduler import Scheduler
from studio_server import SMALL, Studio, alive, events, named, refused, until

pytestmark = pytest.mark.posix  # they ask after processes as Unix does


def pid_of(studio: Studio, name: str = "pid") -> int:
    return int(studio.post("/check", {"design": {**named(name), "source": str(time.perf_counter())}}).json()["pid"])


def test_work_beyond_its_time_is_ended_and_the_next_question_answered(hasty: Studio) -> None:
    before = pid_of(hasty)
    sentence = refused(hasty.post("/pair", {"design": named("sleep")}), 503)
    assert "longer than 1.5 seconds" in sentence
    assert until(lambda: not alive(before))
    assert hasty.post("/pair", {"design": SMALL}).status_code == 200


def test_a_question_that_is_not_short_goes_on_in_the_long_lane(hasty: Studio) -> None:
    found = hasty.post("/pair", {"design": named("nap")})
    assert found.status_code == 200
    assert found.json()["seconds"] > 0.9 > 0.5


def test_a_crash_is_one_sentence_and_the_next_question_is_answered(hasty: Studio) -> None:
    for _ in range(3):
        assert "ended unexpectedly" in refused(hasty.post("/check", {"design": named("crash")}), 503)
    assert hasty.post("/check", {"design": SMALL}).status_code == 200


def test_a_worker_that_is_killed(hasty: Studio) -> None:
    pid = pid_of(hasty)
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not alive(pid))
    assert hasty.post("/check", {"design": SMALL}).status_code == 200
    assert pid_of(hasty) != pid


@pytest.mark.linux
def test_memory_has_a_limit(hasty: Studio) -> None:
    assert "more memory" in refused(hasty.post("/check", {"design": named("hunger")}))
    assert hasty.post("/check", {"design": SMALL}).status_code == 200


def test_a_defect_is_a_sentence_without_what_a_user_typed(hasty: Studio, caplog: pytest.LogCaptureFixture) -> None:
    assert "a defect of exactdp" in refused(hasty.post("/check", {"design": named("defect")}), 500)
    assert "KeyError in answer" in caplog.text
    assert "what a user typed" not in caplog.text


@pytest.mark.linux
def test_a_worker_that_has_grown_is_replaced() -> None:
    async def run() -> tuple[int, int, int]:
        scheduler = Scheduler(WorkLimits(short_workers=1, long_workers=1, resident_bytes=1), studio_troubles.answer)
        try:
            pids = [
                json.loads(await scheduler.short_answer("check", {"design": {"name": n}, "n": i}))["pid"]
                for i, n in enumerate(["pid", "grow", "pid"])
            ]
        finally:
            await scheduler.close()
        return pids[0], pids[1], pids[2]

    assert len(set(asyncio.run(run()))) == 3


def test_a_full_queue_says_so(hasty: Studio) -> None:
    answers: list[httpx.Response] = []

    def ask(i: int) -> None:
        with httpx.Client(base_url=f"http://{hasty.host}/api/v1", timeout=60) as client:
            answers.append(
                client.post("/certify", json={"design": {**named("sleep"), "source": str(i)}, "delta": "1e-6"})
            )

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    full = [answer for answer in answers if answer.status_code == 429]
    assert len(full) == 4
    assert "Too many" in refused(full[0], 429)
    assert full[0].headers["retry-after"]
    assert {answer.status_code for answer in answers} == {429, 503}


def test_a_runaway_beside_quick_questions(studio: Studio) -> None:
    asked = {"design": named("sleep"), "epsilon": 5, "delta": "1e-6"}
    with asking(studio, "/calibrate", asked), asking(studio, "/calibrate", asked):
        assert until(lambda: studio.scheduler.long.free == 0)
        for i in range(20):
            assert studio.post("/pair", {"design": {**SMALL, "scale": f"{100 + i}/100"}}).status_code == 200
        assert studio.scheduler.long.free == 0  # they are still running away
    assert until(lambda: studio.scheduler.long.free == 2)  # and end when their clients leave


def test_work_ends_when_the_client_leaves(studio: Studio) -> None:
    target = {"epsilon": 5, "delta": "1e-6"}
    for path, more, lane in (("/calibrate", target, studio.scheduler.long), ("/check", {}, studio.scheduler.short)):
        with asking(studio, path, {"design": named("sleep"), **more}):
            assert until(lambda lane=lane: len(lane.busy_pids) == 1)  # type: ignore[misc]
            working = lane.busy_pids
            assert alive(working[0])
        assert until(lambda working=working: not alive(working[0]))  # type: ignore[misc]
        assert until(lambda lane=lane: lane.free == 2)  # type: ignore[misc]
        assert lane.waiting == 0


def test_an_overall_accounting_ends_when_the_client_leaves(studio: Studio) -> None:
    design = named("stuck after the first part")
    with asking(
        studio, "/overall", {"design": design, "deltas": [studio_troubles.FIRST_DELTA, "1e-6", "1e-7"]}
    ) as client:
        told = b""
        while b'"event":"part"' not in told:
            told += client.recv(65536)
        assert until(lambda: len(studio.scheduler.long.busy_pids) == 2)
        working = studio.scheduler.long.busy_pids
        assert all(map(alive, working))
    assert until(lambda: not any(map(alive, working)))  # ended in the middle; a worker that has answered stays
    assert until(lambda: studio.scheduler.long.free == 2 and studio.scheduler.long.waiting == 0)
    assert b'"event":"done"' not in told
    assert events(studio, {"design": named("afterwards"), "tradeoff": None})[-1]["event"] == "done"


def asking(studio: Studio, path: str, body: Any) -> socket.socket:
    """The connection of a client that has asked, and leaves when it is closed."""
    content = json.dumps(body).encode()
    head = f"POST /api/v1{path} HTTP/1.1\r\nHost: {studio.host}\r\nContent-Type: application/json\r\n"
    client = socket.create_connection(("127.0.0.1", studio.port), timeout=60)
    client.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return client


def test_leaving_while_waiting(hasty: Studio) -> None:
    long, asked = hasty.scheduler.long, {"design": named("sleep"), "delta": "1e-6"}
    with asking(hasty, "/certify", asked):
        assert until(lambda: long.free == 0)
        with asking(hasty, "/certify", asked):
            assert until(lambda: long.waiting == 1)
        assert until(lambda: long.waiting == 0)
    assert until(lambda: long.free == 1)
    assert hasty.post("/certify", {"design": SMALL, "delta": "1e-6"}).status_code == 200


def test_short_work_that_is_no_longer_wanted_keeps_its_worker(studio: Studio) -> None:
    for i in range(3):
        studio.post("/pair", {"design": {**SMALL, "scale": f"{190 + i}/100"}})
    before = set(studio.scheduler.short.pids)
    assert len(before) == 2
    for i in range(5):
        with pytest.raises(httpx.ReadTimeout):
            studio.client.post("/pair", json={"design": {**SMALL, "scale": f"{200 + i}/100"}}, timeout=0.005)
    assert until(lambda: studio.scheduler.short.free == 2)
    assert set(studio.scheduler.short.pids) == before


def test_memory_forgets_the_oldest_and_takes_nothing_large() -> None:
    scheduler = Scheduler(WorkLimits(cache_bytes=40))
    for name in "abcde":
        assert scheduler._kept(name, {"x": 1000}) == b'{"x":1000}'
        scheduler.memory.find("a")
    assert scheduler.memory.find("a") == b'{"x":1000}'
    assert scheduler.memory.find("b") is None
    assert scheduler._kept("large", {"x": 10000}) == b'{"x":10000}'
    assert scheduler.memory.find("large") is None
    with pytest.raises(ValueError, match="Out of range"):
        as_json(float("nan"))
