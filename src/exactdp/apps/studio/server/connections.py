"""Connections: how many there may be, and how long a request may take to arrive.

uvicorn closes a connection on which nothing comes after an answer. Nothing in it ends one on which nothing comes at all, or a
header byte now and then, or the body of a request that does not have one; this does.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from exactdp.apps.studio.limits import WorkLimits

_INCOMPLETE = (h11.IDLE, h11.SEND_BODY)
"""What the other side does before its request is complete: the head is still to come, or the body."""


def guarded(limits: WorkLimits) -> type[H11Protocol]:
    """uvicorn's protocol with these limits."""

    class Guarded(H11Protocol):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._deadline: asyncio.TimerHandle | None = None
            self._awaited: Any = None
            self._opened = self.loop.time()

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait_for_request()
            # those that were told to go are still in the list until the loop comes round
            staying = [c for c in self.connections if isinstance(c, Guarded) and not c.transport.is_closing()]
            if len(staying) > limits.connections:
                self._make_room(staying)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait_for_request()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait_for_request(self) -> None:
            """One deadline for the head, one for the body; what arrives in between does not move them."""
            state = self.conn.their_state
            if state not in _INCOMPLETE:
                self._stop_waiting()
            elif state is not self._awaited:
                self._stop_waiting()
                # a body has its sentence at `body_seconds` (security.py); later, whoever still sends is cut off
                seconds = limits.head_seconds + (limits.body_seconds if state is h11.SEND_BODY else 0)
                self._awaited, self._deadline = state, self.loop.call_later(seconds, self.transport.abort)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            self._awaited = self._deadline = None

        def _make_room(self, staying: list[Guarded]) -> None:
            """There are too many: the oldest that has asked nothing yet goes, this one if all others have."""
            idle = [c for c in staying if c.conn.their_state in _INCOMPLETE]
            min(idle, key=lambda c: c._opened, default=self).transport.abort()

    return Guarded
