"""Malformed requests: each is answered or refused in one sentence, never with the status 500."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from exactdp.apps.studio.server.responses import Events
from exactdp.apps.studio.server.work_errors import DEFECT
from studio_malformed import campaign, malformed
from studio_server import SMALL, Studio, refused


def test_malformed_requests_are_refused_in_a_sentence(studio: Studio) -> None:
    statuses, wrong = campaign(studio, 50)
    assert wrong == []
    assert statuses[422] > 20
    assert [*malformed(20, 3)] == [*malformed(20, 3)] != [*malformed(20, 4)]


@pytest.mark.parametrize("number", ["1e-5000", "1e5000", "1E-99999", "1e1000000000", "1e-5_000", "1e-3001"])
def test_numbers_too_long_to_be_written_are_refused(studio: Studio, number: str) -> None:
    design = {"levels": [{"name": "US", "queries": [{"name": "q", "rho": number}]}]}
    for path, body in (
        ("/pair", {"design": SMALL, "deltas": [number]}),
        ("/pair", {"design": SMALL, "epsilons": [number]}),
        ("/pair", {"design": SMALL, "delta_curve": {"least": number}}),
        ("/pair", {"design": {**SMALL, "scale": number}}),
        ("/check", {"design": design}),
        ("/convert", {"rho": number}),
        ("/certify", {"design": SMALL, "delta": number}),
        ("/calibrate", {"design": SMALL, "epsilon": 1, "delta": number}),
        ("/overall", {"design": SMALL, "alphas": [number]}),
        ("/report", {"design": SMALL, "delta": number}),
    ):
        assert "an exponent of at most 3,000 in size" in refused(studio.post(path, body))


def test_the_largest_numbers_taken_are_no_defect(studio: Studio) -> None:
    for number in ("1e-3000", "1e3000", "0." + "7" * 390 + "e-3000"):
        for path, body in (
            ("/pair", {"design": SMALL, "deltas": [number], "tradeoff": None}),
            ("/pair", {"design": SMALL, "epsilons": [number], "tradeoff": None}),
            ("/convert", {"rho": "1", "alphas": [number]}),
            ("/table", {"design": SMALL, "what": "pairs", "deltas": [number]}),
        ):
            assert studio.post(path, body).status_code in (200, 422)


def test_a_defect_in_a_stream_is_its_last_event() -> None:
    async def events() -> Any:
        yield {"event": "start"}
        raise KeyError("what a user typed")

    async def run() -> bytes:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            await asyncio.Event().wait()

        await Events(events())({"type": "http"}, receive, send)
        assert sent[-1]["more_body"] is False
        return b"".join(message.get("body", b"") for message in sent)

    told = asyncio.run(run())
    assert DEFECT.encode() in told
    assert b"typed" not in told
