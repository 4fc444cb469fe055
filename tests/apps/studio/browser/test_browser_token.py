"""A studio that asks for its token, in a browser: the printed address lets one in, from wherever it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from studio_page import Visit, number, wait_for

from exactdp.apps.studio.limits import WorkLimits
from studio_server import Studio

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def remote() -> Iterator[Studio]:
    one = Studio(WorkLimits(short_seconds=20), token=TOKEN)
    yield one
    one.close()


def test_the_printed_address_lets_a_browser_in_for_good(browser: Browser, remote: Studio) -> None:
    own = f"http://{remote.host}/"
    visit = Visit(browser, own)
    page = visit.page
    refusal = page.goto(own)
    assert refusal is not None
    assert refusal.status == 401
    assert "asks for its token" in page.locator("body").inner_text()
    page.goto(f"data:text/html,<a href='{own}?token={TOKEN}'>a link in a letter</a>")  # a page of another site
    page.click("a")
    wait_for(lambda: number(page, "delta-value") is not None)  # modules, styles and questions all get through
    assert TOKEN not in page.url
    assert TOKEN not in page.evaluate("() => document.cookie")
    assert [cookie["httpOnly"] and cookie["sameSite"] for cookie in visit.context.cookies()] == ["Strict"]
    page.reload()
    wait_for(lambda: number(page, "delta-value") is not None)
    visit.context.close()
    assert visit.problems == []
