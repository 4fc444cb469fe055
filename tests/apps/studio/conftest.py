"""Servers and a browser for the tests of the studio. What needs Playwright is imported where the tests can run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import in_browser
from exactdp.apps.studio.limits import WorkLimits
from studio_server import Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from studio_page import Visit


@pytest.fixture(scope="session")
def studio() -> Iterator[Studio]:
    one = Studio(WorkLimits(short_seconds=60, long_seconds=300, report_seconds=300))
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


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """A studio of its own on a free port, which keeps nothing of what it was asked."""
    with in_browser.studio() as served:
        yield served.address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with in_browser.browser() as running:
        yield running


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    from studio_page import Visit

    visiting = Visit(browser, address)
    yield visiting
    visiting.context.close()
    assert visiting.problems == []


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit.open()
