"""The studio's page as the browser tests use it: visits, numbers in tiles, cells, downloads, uploads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from exactdp import census
from exactdp.census.releases import Release
from in_browser import HOW_TO_INSTALL, chromium

if chromium() is None:
    pytest.skip(HOW_TO_INSTALL, allow_module_level=True)
for needed in ("fastapi", "uvicorn", "playwright.sync_api"):
    pytest.importorskip(needed, reason=f"{needed} is missing: pip install 'exactdp[test]' enables the studio's tests.")

from playwright.sync_api import expect  # noqa: E402  (there only where the tests can run)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Download, Locator, Page

PATIENCE = 90.0  # a busy machine may be slow; a test that fails is the only one that waits so long
expect.set_options(timeout=PATIENCE * 1000)
DHC = census.release("dhc-persons-us")


class Visit:
    """One browser context in which errors of the page and requests to other hosts are failures."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        size = options.pop("viewport", {"width": 1440, "height": 900})
        self.address = address
        self.context: BrowserContext = browser.new_context(viewport=size, accept_downloads=True, **options)
        self.problems: list[str] = []
        self.page = self.tab()

    def tab(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda said: self._heard(said.type, said.text))
        page.on("request", lambda asked: self._asked(asked.url))
        return page

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "Failed to load resource" not in text:  # a refusal, which the page explains
            self.problems.append(text)

    def _asked(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.problems.append(f"asked {url}")

    def open(self, fragment: str = "", *, automatic: bool = False, tune: bool = True) -> Page:
        """Open the page; without `automatic` the whole release is accounted for on request only, with `tune` the pair is seen."""
        choices = {"automatic": "yes" if automatic else "no", "tune": "open" if tune else "closed"}
        for name, choice in choices.items():
            self.page.add_init_script(f"try {{ localStorage.setItem('exactdp-studio/{name}', '{choice}') }} catch {{}}")
        self.page.goto(self.address + fragment, timeout=120_000)  # a browser that has just been started takes its time
        wait_for(lambda: number(self.page, "delta-value") is not None)
        return self.page


def wait_for(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "the page did not get there"
        time.sleep(0.03)


def written(page: Page) -> str:
    """The fragment of the page's address, once the design as it is stands there."""
    expect(page.locator("body")).to_have_attribute("data-address", "written")
    fragment: str = page.evaluate("() => location.hash")
    return fragment


def number(page: Page, tile: str) -> float | None:
    """The safe end of a certified number that a tile shows."""
    text = page.locator(f"#{tile}").get_attribute("data-value")
    return None if text is None else float(text)


def shows(page: Page, tile: str, expected: float) -> None:
    """Wait until a tile shows this number, to 11 digits: it is a bound by other contours than those of `expected`.

    One reading decides: where edits follow each other, a second may find the answer to an edit that was taken back.
    """
    close = pytest.approx(expected, rel=1e-11, abs=0)
    readings: list[float | None] = []

    def is_right() -> bool:
        readings.append(number(page, tile))
        return readings[-1] == close

    try:
        wait_for(is_right)
    except AssertionError:
        said = page.locator("#notices, #working:visible, #stale:visible, #cell-error").all_inner_texts()
        pytest.fail(f"{tile} shows {readings[-1]}, not {expected}; the page says {said}")


def cell(page: Page, query: str, level: str) -> Locator:
    return page.get_by_label(f"{query}, {level}", exact=True)


def with_budget(release: Release, level: str, query: str, rho: Fraction | str) -> Release:
    table = {name: dict(queries) for name, queries in release.table.items()}
    table[level][query] = Fraction(rho)
    return replace(release, table=table)


def download(page: Page, act: Callable[[], None]) -> Download:
    with page.expect_download() as found:
        act()
    return found.value


def export(page: Page, entry: str, note: str) -> Download:
    page.locator("#export").click()
    item = page.locator("#export-menu button").filter(has_text=entry).filter(has_text=note)
    return download(page, item.click)


def saved(found: Download, folder: Path) -> Path:
    path = folder / found.suggested_filename
    found.save_as(path)
    return path


def upload(page: Page, name: str, content: bytes) -> None:
    page.locator("#open").click()
    page.locator("#file").set_input_files({"name": name, "mimeType": "application/octet-stream", "buffer": content})
