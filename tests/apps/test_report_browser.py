"""The report in Chromium: quiet, closed, within the window, on paper, and its certificates can be saved."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_pages import DESIGN, studied
from typer.testing import CliRunner

import in_browser
from exactdp.apps import cli, report


@pytest.fixture(scope="module")
def page() -> str:
    return report.build(*studied(DESIGN, "survey.toml", ["1e-6", "1e-10"], ["0.05", "0.5"]))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    if in_browser.chromium() is None:
        pytest.skip(in_browser.HOW_TO_INSTALL)
    with in_browser.browser() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1280, 390])
def test_in_chromium_it_is_quiet_and_fits(browser: Any, page: str, tmp_path: Path, width: int, scheme: str) -> None:
    file = tmp_path / "r.html"
    file.write_text(page, encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(file.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert tab.locator("svg.chart").count() == 4
    context.close()


def test_in_chromium_a_certificate_can_be_saved_and_verified(browser: Any, page: str, tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    file.write_text(page, encoding="utf-8")
    context = browser.new_context(accept_downloads=True, offline=True)
    tab = context.new_page()
    tab.goto(file.as_uri())
    with tab.expect_download() as started:
        tab.locator("a.download").first.click()
    target = tmp_path / started.value.suggested_filename
    started.value.save_as(target)
    assert CliRunner().invoke(cli.app, ["verify", str(target)]).stdout.startswith("Holds")
    assert target.name == "survey-certificate.json"
    tab.keyboard.press("Tab")
    context.close()


def test_in_chromium_it_prints_on_a4(browser: Any, page: str, tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    file.write_text(page, encoding="utf-8")
    context = browser.new_context(color_scheme="dark")
    tab = context.new_page()
    tab.goto(file.as_uri())
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not tab.locator(".skip").is_visible()
    sheets = tab.pdf(prefer_css_page_size=True)
    assert re.search(rb"/MediaBox \[0 0 59[45][.\d]* 84[12][.\d]*\]", sheets)
    if (reader := shutil.which("pdftotext")) is not None:
        read = subprocess.run(
            [reader, "-layout", "-", "-"], input=sheets, capture_output=True, check=True
        ).stdout.decode()
        pages = read.rstrip("\f").split("\f")
        for number, page_text in enumerate(pages, start=1):
            assert f"{number} of {len(pages)}" in page_text
            assert len(page_text.split()) > 40, "a page with hardly more than its foot"
    context.close()
