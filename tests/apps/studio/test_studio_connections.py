"""Connections that hold the server up: none stays open without a request, and there are only so many."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from exactdp.apps.studio.limits import WorkLimits
from studio_server import Studio, until

MANY = 2000
"""So many bytes one after the other are never taken by a server that has limits; one without takes them all."""


@pytest.fixture(scope="module")
def impatient() -> Iterator[Studio]:
    one = Studio(WorkLimits(short_workers=1, long_workers=1, head_seconds=0.3, body_seconds=0.3, connections=6))
    yield one
    one.close()


def connected(studio: Studio) -> socket.socket:
    return socket.create_connection(("127.0.0.1", studio.port), timeout=60)


def is_cut_off(slow: socket.socket) -> bool:
    """Whether the server hangs up on someone who sends a byte now and then."""
    try:
        for _ in range(MANY):
            slow.sendall(b"x")
            time.sleep(0.01)
    except OSError:
        return True
    return False


def ended(quiet: socket.socket) -> bool:
    """Whether the server hangs up on someone who sends nothing."""
    try:
        return quiet.recv(1) == b""
    except ConnectionError:
        return True


def test_who_never_asks(impatient: Studio) -> None:
    with connected(impatient) as quiet:
        assert ended(quiet)


@pytest.mark.parametrize(
    "begun",
    [b"G", b"GET / HTTP/1.1\r\nX: ", b"POST /api/v1/check HTTP/1.1\r\nHost: {host}\r\nX: "],
    ids=["a method", "a header", "a long head"],
)
def test_a_head_that_never_ends(impatient: Studio, begun: bytes) -> None:
    with connected(impatient) as slow:
        slow.sendall(begun.replace(b"{host}", impatient.host.encode()))
        assert is_cut_off(slow)


def test_a_second_head_that_never_ends(impatient: Studio) -> None:
    with connected(impatient) as slow:
        slow.sendall(f"GET /api/v1/health HTTP/1.1\r\nHost: {impatient.host}\r\n\r\n".encode())
        assert slow.recv(10_000).startswith(b"HTTP/1.1 200")
        slow.sendall(b"GET / HTTP/1.1\r\nX: ")
        assert is_cut_off(slow)


def test_a_body_that_nobody_reads(impatient: Studio) -> None:
    with connected(impatient) as slow:
        slow.sendall(
            f"GET /api/v1/health HTTP/1.1\r\nHost: {impatient.host}\r\nContent-Length: 999999\r\n\r\n".encode()
        )
        assert slow.recv(10_000).startswith(b"HTTP/1.1 200")
        assert is_cut_off(slow)


def test_there_are_only_so_many_and_who_asks_comes_first() -> None:
    patient = Studio(WorkLimits(short_workers=1, long_workers=1, head_seconds=1e6, connections=3))
    idle = [connected(patient) for _ in range(8)]
    try:
        assert until(lambda: len(patient.server.server_state.connections) == 3)
        assert all(map(ended, idle[:5]))  # the oldest that asked nothing
        for _ in range(2):
            assert patient.client.get("/health").status_code == 200
        idle[-1].sendall(f"GET /api/v1/health HTTP/1.1\r\nHost: {patient.host}\r\n\r\n".encode())
        assert idle[-1].recv(10_000).startswith(b"HTTP/1.1 200")
    finally:
        for one in idle:
            one.close()
        patient.close()
