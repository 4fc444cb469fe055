"""Two servers for all tests of the studio: one of the usual patience, one of little."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from exactdp.apps.studio.limits import WorkLimits
from studio_server import Studio


@pytest.fixture(scope="session")
def studio() -> Iterator[Studio]:
    one = Studio(WorkLimits(short_seconds=20))
    yield one
    one.close()


@pytest.fixture(scope="session")
def hasty() -> Iterator[Studio]:
    """A server of little patience and little room."""
    one = Studio(
        WorkLimits(
            short_workers=1,
            long_workers=1,
            short_waiting=1,
            long_waiting=1,
            short_seconds=0.5,
            long_seconds=1.5,
            grace_seconds=0.1,
            body_seconds=1.0,
            memory_bytes=1 << 30,
            resident_bytes=1 << 31,
        )
    )
    yield one
    one.close()
