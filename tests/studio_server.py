"""A studio in a thread, for its tests, and what they ask it."""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

import studio_troubles
from exactdp.apps.studio.limits import WorkLimits
from exactdp.apps.studio.server.scheduler import Scheduler
from exactdp.apps.studio.server.serve import bind, make_server
from exactdp.census.budget_files import parse_budget
from small_release import SURVEY

SMALL = {
    "name": "small",
    "title": "A small survey",
    "levels": [
        {"name": "Nation", "queries": [{"name": "age * sex", "rho": "1/2"}, {"name": "sex", "rho": "0.25"}]},
        {"name": "Region", "queries": [{"name": "age * sex", "rho": 0.5}]},
    ],
    "paths": [{"number": 1, "bypassed": []}, {"number": 2, "bypassed": ["Region"]}],
}
TEXT = SURVEY.encode()


def named(name: str) -> dict[str, Any]:
    return {**SMALL, "name": name}


class Studio:
    """A server in a thread, on a port of its own."""

    def __init__(self, limits: WorkLimits, answer: Any = studio_troubles.answer, token: str = "") -> None:
        self.socket = bind("127.0.0.1", 0)
        self.port = self.socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.scheduler = Scheduler(limits, answer)
        up = threading.Event()
        start = parse_budget(TEXT, "small.toml")
        self.server = make_server(start, self.socket, token=token, scheduler=self.scheduler, ready=up.set)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self._thread.start()
        assert up.wait(60)
        self.client = httpx.Client(base_url=f"http://{self.host}/api/v1", timeout=240)

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self.client.post(path, json=body, **more)

    def close(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self._thread.join(20)
        self.socket.close()
        assert not self._thread.is_alive()


def refused(response: httpx.Response, status: int = 422) -> str:
    """The one sentence of a refusal."""
    assert response.status_code == status, response.text
    sentence = response.json()["error"]
    assert re.search(r"[.)]$", sentence), sentence
    assert "Traceback" not in sentence
    assert "\n" not in sentence
    return str(sentence)


def until(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def events(studio: Studio, body: Any) -> list[dict[str, Any]]:
    with studio.client.stream("POST", "/overall", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("application/x-ndjson")
        return [json.loads(line) for line in response.iter_lines()]


def raw(studio: Studio, method: str, path: str, headers: dict[str, str], body: Any = None) -> tuple[int, Any, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
