"""axe-core finds nothing on the page and in its dialogs, in light and dark, at every size and at 200% zoom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from studio_page import Visit, expect, shows, upload

from exactdp.census.budget_files import parse_budget
from small_release import SURVEY

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright",
    reason="axe-playwright-python is missing: pip install 'exactdp[test]' enables the tests of accessibility.",
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
DESIGN = parse_budget(SURVEY.encode(), "survey.toml")
DIALOGS = ["open", "calibrate", "optimize", "certify", "help", "add-level"]


def violations(page: Page) -> list[tuple[str, Any]]:
    found = axe.Axe().run(page, options={"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]})
    return [(broken["id"], [node["target"] for node in broken["nodes"]]) for broken in found.response["violations"]]


def everything_open(visit: Visit) -> Page:
    page = visit.open(automatic=True)
    upload(page, "survey.toml", SURVEY.encode())
    shows(page, "overall-value", DESIGN.account().epsilon("1e-10"))
    page.locator("#keep-scenario").click()
    expect(page.locator("#compare-body table")).to_have_count(2)
    for part in ("trade", "frontier"):
        page.locator(f"#{part} summary").click()
    return page


@pytest.mark.parametrize(
    ("width", "height", "scheme"),
    [
        (1440, 900, "light"),
        (390, 844, "dark"),
        pytest.param(1920, 1080, "light", marks=pytest.mark.soak),
        pytest.param(1280, 720, "dark", marks=pytest.mark.soak),
        pytest.param(1024, 768, "light", marks=pytest.mark.soak),
        pytest.param(720, 450, "light", marks=pytest.mark.soak, id="1440 at 200%"),
    ],
)
def test_the_page_is_accessible(browser: Browser, address: str, width: int, height: int, scheme: str) -> None:
    visit = Visit(browser, address, viewport={"width": width, "height": height}, color_scheme=scheme)
    page = everything_open(visit)
    assert violations(page) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    visit.context.close()
    assert visit.problems == []


@pytest.mark.parametrize("size", [(1280, 720), pytest.param((390, 844), marks=pytest.mark.soak)])
def test_the_dialogs_are_accessible(browser: Browser, address: str, size: tuple[int, int]) -> None:
    visit = Visit(browser, address, viewport={"width": size[0], "height": size[1]})
    page = visit.open()
    for name in DIALOGS:
        page.locator(f"#{name}").click()
        expect(page.locator("dialog[open]")).to_have_count(1)
        assert violations(page) == [], name
        page.keyboard.press("Escape")
    visit.context.close()
    assert visit.problems == []
