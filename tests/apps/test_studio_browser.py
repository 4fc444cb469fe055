"""The studio in a real browser: what is shown is what the library says, and nothing is lost."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import exactdp
from exactdp import census
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.census.releases import Release

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip(
        "No Chromium was found: the studio's page is not tested. Install it (Debian: apt-get install chromium).",
        allow_module_level=True,
    )
for needed in ("fastapi", "uvicorn", "playwright.sync_api"):
    pytest.importorskip(needed, reason=f"{needed} is missing: pip install 'exactdp[test]' enables the studio's tests.")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Download, Locator, Page

sync_api = importlib.import_module("playwright.sync_api")
expect = sync_api.expect
STATIC = Path(exactdp.__file__).parent / "apps" / "studio" / "static"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 20.0
expect.set_options(timeout=PATIENCE * 1000)
DHC = census.release("dhc-persons-us")
SURVEY = """
title = "My survey"
[levels.Nation]
"age * sex" = "1/2"
sex = 0.25
[levels.Region]
"age * sex" = 0.5
[bypassed]
1 = []
2 = ["Region"]
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A studio of its own on a free port."""
    command = [
        sys.executable,
        "-c",
        "from exactdp.apps.cli import main; main()",
        "studio",
        "--port",
        "0",
        "--no-browser",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+:\d+/", server.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


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

    def open(self, fragment: str = "", *, automatic: bool = False) -> Page:
        """Open the page; without `automatic` the whole release is accounted for on request only."""
        choice = "yes" if automatic else "no"
        self.page.add_init_script(f"try {{ localStorage.setItem('exactdp-studio/automatic', '{choice}') }} catch {{}}")
        self.page.goto(self.address + fragment)
        wait_for(lambda: number(self.page, "delta-value") is not None)
        return self.page


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    visiting = Visit(browser, address)
    yield visiting
    visiting.context.close()
    assert visiting.problems == []


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit.open()


def wait_for(condition: Callable[[], object], patience: float = PATIENCE) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "the page did not get there"
        time.sleep(0.03)


def number(page: Page, tile: str) -> float | None:
    """The safe end of a certified number that a tile shows."""
    text = page.locator(f"#{tile}").get_attribute("data-value")
    return None if text is None else float(text)


def shows(page: Page, tile: str, expected: float) -> None:
    """Wait until a tile shows exactly this double."""
    with contextlib.suppress(AssertionError):
        wait_for(lambda: number(page, tile) == expected)
    assert number(page, tile) == expected


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


def test_shows_what_the_library_says(page: Page) -> None:
    proxy = DHC.proxy
    shows(page, "epsilon-value", proxy.epsilon("1e-10"))
    shows(page, "delta-value", proxy.delta("26.34"))
    shows(page, "power-value", 1 - proxy.beta("0.05"))
    expect(page.locator("#epsilon-value")).to_have_text("24.4564939544")
    assert page.locator("#rho-value").get_attribute("data-value") == "24811/5000"
    assert page.title() == "2020 Census DHC File, persons, United States · exactdp studio"
    expect(page.locator("#noise-chart svg")).to_have_attribute("aria-label", re.compile("US 11 \u2013 23"))


def test_an_edit_is_followed_by_the_librarys_numbers(page: Page) -> None:
    cell(page, "hispanic * sex", "County").fill("1/17")
    edited = with_budget(DHC, "County", "hispanic * sex", "1/17")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    shows(page, "delta-value", edited.proxy.delta("26.34"))
    shows(page, "power-value", 1 - edited.proxy.beta("0.05"))
    page.locator("#ask-delta").fill("1e-6")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-6"))
    measures = "() => performance.getEntriesByName('edit to paint').map((m) => m.duration)"
    wait_for(lambda: len(page.evaluate(measures)) >= 3)


def test_the_table_is_edited_by_keyboard_alone(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.locator(".skip").first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # to the budget table
    expect(page.locator("#budget")).to_be_focused()
    assert page.evaluate("() => location.hash") != "#budget"  # the address belongs to the design
    while page.evaluate("() => document.activeElement.dataset.query") is None:
        page.keyboard.press("Tab")
    first = cell(page, "age_18_64_116 * relgq_4_groups", "US")
    expect(first).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    target = cell(page, "age_18_64_116 * sex", "State")
    expect(target).to_be_focused()
    expect(target).to_have_value("999/10000")  # exact while it is edited
    page.keyboard.type("0.2")
    edited = with_budget(DHC, "State", "age_18_64_116 * sex", "0.2")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    page.keyboard.press("Enter")
    expect(cell(page, "age_38_groups * sex", "State")).to_be_focused()
    expect(target).to_have_value("0.2")
    page.keyboard.type("0.3")
    page.keyboard.press("Escape")
    expect(cell(page, "age_38_groups * sex", "State")).to_have_value("999/10000")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    page.keyboard.press("Tab")
    expect(cell(page, "age_38_groups * sex", "County")).to_be_focused()


def test_undo_and_redo(page: Page) -> None:
    expect(page.locator("#undo")).to_be_disabled()
    before, box = DHC.proxy.epsilon("1e-10"), cell(page, "detailed", "Block")
    box.fill("0.01")
    after = with_budget(DHC, "Block", "detailed", "0.01").proxy.epsilon("1e-10")
    shows(page, "epsilon-value", after)
    page.keyboard.press("Control+z")
    shows(page, "epsilon-value", before)
    expect(box).to_have_value("11/10000")
    expect(page.locator("#undo")).to_be_disabled()
    page.keyboard.press("Control+Shift+z")
    shows(page, "epsilon-value", after)
    page.locator("#undo").click()
    shows(page, "epsilon-value", before)


def test_a_bad_value_is_explained_beside_its_cell(page: Page) -> None:
    box, before = cell(page, "detailed", "PRIM"), number(page, "epsilon-value")
    sentence = page.locator("td #cell-error")
    for text in ("abc", "-1", "1/0", "1e400", "0", "5000", "<b>1</b>"):
        box.fill(text)
        expect(sentence).to_be_visible()
        assert re.search(r"[a-z].*[.]$", sentence.inner_text(), flags=re.DOTALL)
        assert box.get_attribute("aria-invalid") == "true"
        assert box.get_attribute("aria-describedby") == "cell-error"
        expect(page.locator("#stale")).to_be_visible()  # the last good numbers stay, marked
        assert number(page, "epsilon-value") == before
        box.fill("239/5000")
        expect(sentence).to_have_count(0)
        expect(page.locator("#stale")).to_be_hidden()


def test_a_bad_question_is_explained(page: Page) -> None:
    page.locator("#ask-delta").fill("2")
    expect(page.locator(".notice[data-kind=error]")).to_contain_text("delta")
    expect(page.locator("#stale")).to_be_visible()
    page.locator("#ask-delta").fill("1e-9")
    shows(page, "epsilon-value", DHC.proxy.epsilon("1e-9"))
    expect(page.locator(".notice")).to_have_count(0)


def test_whole_levels_are_scaled_and_bypassed(page: Page) -> None:
    factor = page.get_by_label("Multiply every rho of State by")
    factor.fill("9/10")
    factor.press("Enter")
    release = DHC.scaled("10/9", "State")
    shows(page, "epsilon-value", release.proxy.epsilon("1e-10"))
    factor.fill("none")
    factor.press("Enter")
    expect(page.locator(".notice[data-kind=error]")).to_contain_text("positive number")
    page.locator("#scale-by").fill("0.8")
    page.locator("#scale-apply").click()
    release = release.scaled("10/8")
    shows(page, "epsilon-value", release.proxy.epsilon("1e-10"))
    page.get_by_label("PRIM is used by the first path").uncheck()
    shows(page, "epsilon-value", release.pair(37, 13).epsilon("1e-10"))
    expect(page.locator("#path-1")).to_have_value("37")
    page.locator("#path-2").select_option("6")
    shows(page, "epsilon-value", release.pair(37, 6).epsilon("1e-10"))
    page.locator("#full-pair").click()
    shows(page, "epsilon-value", release.proxy.epsilon("1e-10"))
    slider = page.locator("#scale")
    slider.focus()
    page.keyboard.press("ArrowRight")
    shows(page, "epsilon-value", release.scaled(1 / Fraction("1.01")).proxy.epsilon("1e-10"))


def test_a_path_that_the_release_lacks_can_be_added(page: Page) -> None:
    page.get_by_label("County is used by the second path").uncheck()
    custom = replace(DHC, bypassed={**DHC.bypassed, 44: ("County",)})
    shows(page, "epsilon-value", custom.pair(13, 44).epsilon("1e-10"))
    page.locator("#add-path").click()
    expect(page.locator("#path-2")).to_have_value("44")
    expect(page.locator("#origin")).to_contain_text("44 paths · 990 pairs")


def test_good_files_are_opened(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "survey.toml"
    path.write_text(SURVEY)
    survey = census.read_budget(path)
    upload(page, "survey.toml", SURVEY.encode())
    expect(page.locator("#title")).to_have_value("My survey")
    shows(page, "epsilon-value", survey.proxy.epsilon("1e-10"))
    wide = b"# unit: sigma2\nlevel,sex,age\nUS,10,20\nState,,30\n"
    (tmp_path / "wide.csv").write_bytes(wide)
    upload(page, "wide.csv", wide)
    shows(page, "epsilon-value", census.read_budget(tmp_path / "wide.csv").proxy.epsilon("1e-10"))
    expect(cell(page, "sex", "State")).to_have_value("")
    cell(page, "sex", "State").fill("1/10")  # a query that was not asked there
    filled = with_budget(census.read_budget(tmp_path / "wide.csv"), "State", "sex", "1/10")
    shows(page, "epsilon-value", filled.proxy.epsilon("1e-10"))


BAD_FILES = [
    ("bad.toml", b"[levels.US\n"),
    ("bad.toml", b"\x00\xff\xfe garbage \x00"),
    ("bad.toml", b"[levels.US]\nsex = -1\n"),
    ("bad.csv", b""),
    ("bad.csv", b"level,sex\nUS,1/0\n"),
    ("bad.json", b"{"),
    ("bad.json", b'{"format": "exactdp studio design", "version": 1}'),
    ("bad.txt", b"level,sex\nUS,1\n"),
    ("long.csv", b"x" * 1_000_001),
]


def test_bad_files_are_refused_in_a_sentence_and_change_nothing(page: Page) -> None:
    before, sentence = number(page, "epsilon-value"), page.locator("#start-error")
    for name, content in BAD_FILES:
        upload(page, name, content)
        expect(sentence).not_to_be_empty()
        assert re.search(r"[a-z].*[.]$", sentence.inner_text(), flags=re.DOTALL), name
        assert "undefined" not in sentence.inner_text()
        page.keyboard.press("Escape")
        expect(page.locator("#title")).to_have_value(DHC.title)
        assert number(page, "epsilon-value") == before


def test_a_file_can_be_dropped(page: Page) -> None:
    page.evaluate(
        """(text) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([text], "survey.toml"));
          for (const kind of ["dragenter", "dragover", "drop"])
            document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
        }""",
        SURVEY,
    )
    expect(page.locator("#title")).to_have_value("My survey")
    expect(page.locator("#drop")).to_be_hidden()


def test_exported_budgets_are_read_back_by_the_library(page: Page, tmp_path: Path) -> None:
    cell(page, "hispanic * sex", "County").fill("1/17")
    edited = with_budget(DHC, "County", "hispanic * sex", "1/17")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    for note in ("TOML", "CSV"):
        found = census.read_budget(saved(export(page, "Budget file", note), tmp_path))
        assert found.table == edited.table
        assert dict(found.bypassed) == dict(edited.bypassed)


def test_curves_and_charts_are_exported(page: Page, tmp_path: Path) -> None:
    rows = saved(export(page, "Curves of this pair", "CSV"), tmp_path).read_text().splitlines()
    assert len(rows) > 20
    noise = saved(export(page, "Noise of this pair", "CSV"), tmp_path).read_text()
    assert "County" in noise
    for chart in ("Privacy profile", "Trade-off", "Noise by level"):
        path = saved(download(page, page.get_by_label(f"Save {chart} as SVG").click), tmp_path)
        drawing = ET.parse(path).getroot()
        assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) > 5
        assert "var(" not in path.read_text()
        picture = saved(download(page, page.get_by_label(f"Save {chart} as PNG").click), tmp_path).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 5_000


def test_a_reload_keeps_the_design_and_its_history(page: Page) -> None:
    cell(page, "detailed", "Block").fill("0.01")
    page.locator("#ask-delta").fill("1e-8")
    edited = with_budget(DHC, "Block", "detailed", "0.01")
    page.reload()  # at once, before the address was written
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-8"))
    expect(page.locator("#ask-delta")).to_have_value("1e-8")
    page.locator("#undo").click()
    page.locator("#undo").click()
    shows(page, "epsilon-value", DHC.proxy.epsilon("1e-10"))


def test_a_link_opens_the_same_design_elsewhere(page: Page, browser: Browser, address: str) -> None:
    cell(page, "detailed", "Block").fill("0.01")
    page.locator("#keep-a").click()
    cell(page, "detailed", "Block").fill("0.02")
    first, second = (with_budget(DHC, "Block", "detailed", rho).proxy.epsilon("1e-10") for rho in ("0.01", "0.02"))
    shows(page, "epsilon-value", second)
    page.wait_for_timeout(400)
    fragment = page.evaluate("() => location.hash")
    assert fragment.startswith("#d=")
    assert len(fragment) < 6_000
    other = Visit(browser, address)
    elsewhere = other.open(fragment)
    shows(elsewhere, "epsilon-value", second)
    expect(elsewhere.locator("#compare-body")).to_contain_text(str(first)[:8])
    other.page.goto("about:blank")
    other.page.goto(address + "#d=damaged")
    expect(other.page.locator(".notice[data-kind=error]")).to_contain_text("damaged")
    other.context.close()
    assert other.problems == ["asked about:blank"] or other.problems == []


def test_back_leads_to_the_design_before(page: Page) -> None:
    before = DHC.proxy.epsilon("1e-10")
    page.wait_for_timeout(500)
    page.locator("#open").click()
    page.locator("[data-release=dhc-units-us]").click()
    units = census.release("dhc-units-us").proxy.epsilon("1e-10")
    shows(page, "epsilon-value", units)
    wait_for(lambda: page.evaluate("() => history.length") > 2)
    page.wait_for_timeout(500)
    page.go_back()
    shows(page, "epsilon-value", before)
    page.go_forward()
    shows(page, "epsilon-value", units)


def test_a_design_too_long_for_a_link_is_kept_in_the_browser(page: Page, tmp_path: Path) -> None:
    draw = random.Random(1)
    rows = [f"level{i // 50},query{i % 50},0.00{draw.randrange(10**14, 10**15)}" for i in range(1900)]
    upload(page, "long.csv", ("level,query,rho\n" + "\n".join(rows)).encode())
    expect(page.locator(".notice[data-kind=warning]")).to_contain_text("too long for a link")
    assert page.evaluate("() => location.hash").startswith("#s=")
    page.evaluate("() => sessionStorage.clear()")
    page.reload()
    expect(page.locator("#origin")).to_contain_text("38 levels · 1900 budgets")
    path = saved(export(page, "Design file", "JSON"), tmp_path)
    upload(page, "again.json", path.read_bytes())
    expect(page.locator("#origin")).to_contain_text("38 levels · 1900 budgets")


def test_scenarios_are_compared_swapped_and_dropped(page: Page) -> None:
    page.locator("#keep-a").click()
    box = cell(page, "detailed", "State")
    box.fill("0.3")
    a, b = DHC.proxy, with_budget(DHC, "State", "detailed", "0.3").proxy
    shows(page, "epsilon-value", b.epsilon("1e-10"))
    row = page.locator("#compare-body tr").filter(has_text="ε at δ")
    expect(row).to_contain_text(str(a.epsilon("1e-10"))[:8])
    expect(row).to_contain_text(str(b.epsilon("1e-10"))[:8])
    change = (b.epsilon("1e-10") / a.epsilon("1e-10") - 1) * 100
    expect(row).to_contain_text(f"+{change:.2f}%")
    expect(page.locator("#profile-chart .line.kept").last).to_be_visible()
    expect(page.locator("#compare-body tr").filter(has_text="State")).to_contain_text("1.2987")
    page.locator("#swap").click()
    shows(page, "epsilon-value", a.epsilon("1e-10"))
    expect(row).to_contain_text(f"\u2212{(1 - a.epsilon('1e-10') / b.epsilon('1e-10')) * 100:.2f}%")
    page.locator("#copy-a").click()
    shows(page, "epsilon-value", b.epsilon("1e-10"))
    page.locator("#drop-a").click()
    expect(page.locator("#compare-body")).to_contain_text("Keep the present design as A")


def test_calibration_is_the_librarys(page: Page) -> None:
    page.locator("#calibrate").click()
    page.locator("#calibrate-epsilon").fill("nonsense")
    page.locator("#calibrate-dialog button[type=submit]").click()
    expect(page.locator("#calibrate-dialog .field-error")).to_contain_text("epsilon")
    page.locator("#calibrate-epsilon").fill("20")
    page.locator("#calibrate-delta").fill("1e-9")
    page.locator("#calibrate-dialog button[type=submit]").click()
    expected = exactdp.calibrate(DHC.proxy, exactdp.target(epsilon=20, delta="1e-9"), grid=1000)
    expect(page.locator("#calibrate-dialog .statement")).to_contain_text(f"times {float(expected.factor):g} meets")
    page.locator("#calibrate-apply").click()
    shows(page, "epsilon-value", expected.composition.epsilon("1e-10"))
    page.locator("#ask-delta").fill("1e-9")
    shows(page, "epsilon-value", expected.composition.epsilon("1e-9"))
    assert expected.composition.epsilon("1e-9") <= 20
    expect(page.locator("#compare-body tr").filter(has_text="ε at δ")).to_contain_text(
        str(DHC.proxy.epsilon("1e-9"))[:8]
    )


def test_a_certificate_is_saved_and_verifies(page: Page, tmp_path: Path) -> None:
    cell(page, "detailed", "State").fill("0.3")
    edited = with_budget(DHC, "State", "detailed", "0.3")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    page.locator("#certify").click()
    page.get_by_label("δ at ε = 26.34").check()
    page.locator("#certify-digits").fill("25")
    page.locator("#certify-dialog button[type=submit]").click()
    expect(page.locator("#certify-lower")).to_be_visible()
    path = saved(download(page, page.locator("#certify-save").click), tmp_path)
    certificate = Certificate.load(path)
    assert certificate.composition == edited.proxy
    assert certificate.given == "epsilon"
    assert certificate.value == Fraction("26.34")
    assert exactdp.verify(certificate).holds
    assert page.locator("#certify-upper").inner_text() == str(certificate.upper)


def test_the_whole_release_with_progress_and_cancel(page: Page) -> None:
    page.locator("#overall-run").click()
    expect(page.locator("#overall-bar")).to_be_visible()
    page.locator("#overall-cancel").click()
    expect(page.locator("#overall-bar")).to_be_hidden()
    assert number(page, "overall-value") is None
    page.evaluate(
        """() => {
          window.seen = [];
          new MutationObserver(() => window.seen.push(document.getElementById("overall-bar").value))
            .observe(document.getElementById("overall-bar"), { attributes: true });
        }"""
    )
    page.keyboard.press("Control+Enter")
    study = DHC.account(deltas=["1e-10"])
    shows(page, "overall-value", study.epsilon("1e-10"))
    seen = page.evaluate("() => window.seen.filter((share) => share > 0)")
    assert len(seen) >= 2
    assert seen == sorted(seen)
    expect(page.locator("#overall-notes")).to_contain_text("(6, 6)")
    expect(page.locator("#profile-chart [data-series=whole]")).to_be_visible()
    cell(page, "detailed", "State").fill("0.3")
    expect(page.locator(".tile.overall")).to_have_class(re.compile("is-stale"))


def test_the_whole_release_follows_by_itself_when_idle(visit: Visit, tmp_path: Path) -> None:
    page = visit.open(automatic=True)
    (tmp_path / "survey.toml").write_text(SURVEY)
    upload(page, "survey.toml", SURVEY.encode())
    study = census.read_budget(tmp_path / "survey.toml").account(deltas=["1e-10"])
    shows(page, "overall-value", study.epsilon("1e-10"))
    expect(page.locator("#overall-label")).to_have_text("ε over all 3 pairs")


def test_levels_and_queries_are_added_renamed_and_removed(page: Page) -> None:
    page.locator("#open").click()
    page.locator("#small-design").click()
    expect(page.locator("#title")).to_have_value("My design")
    page.locator("#add-level").click()
    page.locator("#name-input").fill("Region")
    page.keyboard.press("Enter")
    expect(page.locator("#name-dialog .field-error")).to_contain_text("must differ")
    page.locator("#name-input").fill("County")
    page.keyboard.press("Enter")
    quarter = Fraction(1, 4)
    table = {level: {"total": quarter, "age * sex": quarter} for level in ("Nation", "Region", "County")}
    small = Release("my-design", "My design", "", table, {1: (), 2: ("Region",)})
    shows(page, "epsilon-value", small.proxy.epsilon("1e-10"))
    page.locator("#add-query").click()
    page.locator("#name-input").fill("<img src=x onerror=alert(1)>")
    page.keyboard.press("Enter")
    expect(cell(page, "<img src=x onerror=alert(1)>", "County")).to_have_value("0.25")
    page.get_by_role("button", name="<img src=x", exact=False).click()
    page.get_by_role("button", name="Remove the query").click()
    shows(page, "epsilon-value", small.proxy.epsilon("1e-10"))
    page.locator("#path-1").select_option("2")
    shows(page, "epsilon-value", small.pair(2, 1).epsilon("1e-10"))
    page.get_by_role("button", name="Region", exact=True).click()
    page.locator("#name-input").fill("District")
    page.keyboard.press("Enter")
    expect(page.locator("#path-1 option").nth(1)).to_have_text("2: without District")
    shows(page, "epsilon-value", small.pair(2, 1).epsilon("1e-10"))
    page.get_by_role("button", name="District", exact=True).click()
    page.get_by_role("button", name="Remove the level").click()
    two = replace(small, table={level: table[level] for level in ("Nation", "County")}, bypassed={1: ()})
    shows(page, "epsilon-value", two.proxy.epsilon("1e-10"))
    expect(page.locator("#origin")).to_contain_text("2 levels · 4 budgets · 1 path")


def test_a_server_that_is_gone_and_comes_back(page: Page) -> None:
    page.route("**/api/v1/pair", lambda route: route.abort())
    cell(page, "detailed", "State").fill("0.3")
    expect(page.locator(".notice[data-kind=error]")).to_contain_text("does not answer")
    page.unroute("**/api/v1/pair")
    shows(page, "epsilon-value", with_budget(DHC, "State", "detailed", "0.3").proxy.epsilon("1e-10"))
    expect(page.locator(".notice")).to_have_count(0)


def test_edits_faster_than_answers_end_with_the_last_one(page: Page) -> None:
    box = cell(page, "detailed", "State")
    for thousandths in range(100, 160):
        box.fill(f"0.{thousandths}")
    shows(page, "epsilon-value", with_budget(DHC, "State", "detailed", "0.159").proxy.epsilon("1e-10"))
    expect(page.locator("#working")).to_be_hidden()


def _is_dark(page: Page) -> bool:
    background = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    return max(map(int, re.findall(r"\d+", background)[:3])) < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_in_light_and_dark(browser: Browser, address: str, scheme: str) -> None:
    visiting = Visit(browser, address, color_scheme=scheme)
    page = visiting.open()
    page.locator("#keep-a").click()
    expect(page.locator("#compare-body table")).to_have_count(2)
    cut = """() => [...document.querySelectorAll(".tile-number, .tile-label, .table-scroll")]
      .filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.textContent)"""
    for width, height in ((1440, 900), (1280, 720), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert width < 1280 or page.evaluate(cut) == []
    assert _is_dark(page) == (scheme == "dark")
    page.locator("#theme").click()
    page.reload()
    assert _is_dark(page) == (scheme == "light")
    visiting.context.close()
    assert visiting.problems == []


def test_everything_has_a_name_and_a_place(page: Page) -> None:
    for landmark in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(landmark)).to_have_count(1)
    nameless = """() => [...document.querySelectorAll("button, input, select, progress, [role=slider], dialog")]
      .filter((node) => !(node.getAttribute("aria-label") || node.getAttribute("aria-labelledby") || node.labels?.length
        || node.textContent.trim() || node.title))
      .map((node) => node.outerHTML)"""
    assert page.evaluate(nameless) == []
    twice = """() => [...document.querySelectorAll("[id]")].map((node) => node.id)
      .filter((id, i, ids) => ids.indexOf(id) !== i)"""
    assert page.evaluate(twice) == []
    assert page.evaluate("() => [...document.querySelectorAll('table th')].every((th) => th.scope)")
    assert page.locator("h1").count() == 1
    expect(page.locator("#announcer")).to_contain_text("Epsilon 24.4565 at delta 1e-10")
    cell(page, "detailed", "State").fill("0.3")
    expect(page.locator("#announcer")).to_contain_text("Epsilon 25")  # said once the numbers rest


def test_charts_are_read_by_keyboard_and_as_tables(page: Page) -> None:
    chart = page.get_by_role("slider", name="Privacy profile: delta by epsilon")
    chart.focus()
    page.keyboard.press("End")
    text = chart.get_attribute("aria-valuetext")
    assert text is not None
    found = re.match(r"ε ([\d.]+): exact (\S+);", text)
    assert found is not None
    page.keyboard.press("Home")
    assert (chart.get_attribute("aria-valuetext") or "").startswith("ε 0: exact")
    page.get_by_label("Privacy profile: delta by epsilon, as a table").first.click()
    table = page.locator("#profile-chart .numbers table")
    expect(table.locator("thead th").first).to_have_text("ε")
    assert table.locator("tbody tr").count() > 20
    page.locator("#profile-chart [data-series=simple]").click()
    expect(page.locator("#profile-chart .line.simple")).to_have_count(1)  # left in the legend only


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_enough_contrast(theme: int) -> None:
    tokens = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}, #\w{6})\)", (STATIC / "tokens.css").read_text()))
    colour = {name: both.split(", ")[theme] for name, both in tokens.items()}
    for text in ("text", "muted", "accent"):
        for surface in ("page", "surface", "sunken", "accent-soft"):
            assert _contrast(colour[text], colour[surface]) >= 4.5, (text, surface)
    for name in ("bad", "warn"):
        for surface in ("surface", f"{name}-soft"):
            assert _contrast(colour[name], colour[surface]) >= 4.5, (name, surface)
    assert _contrast(colour["on-accent"], colour["accent"]) >= 4.5
    for line in ("exact", "optimal", "simple", "gaussian", "whole", "kept", "line-strong"):
        assert _contrast(colour[line], colour["surface"]) >= 3, line


def test_numbers_are_rounded_to_the_safe_side_and_exact_where_they_are_edited(page: Page) -> None:
    draw = random.Random(2)
    cases = []
    for _ in range(300):
        low = draw.uniform(0, 1) * 10 ** draw.uniform(-20, 6)
        cases.append((low, low * (1 + 10 ** draw.uniform(-15, -2))))
    texts = page.evaluate(
        """async (cases) => {
          const { roundedUp, roundedDown } = await import("/static/format.js");
          return cases.map(([low, high]) => [roundedDown(low, high), roundedUp(low, high)]);
        }""",
        cases,
    )
    for (low, high), (down, up) in zip(cases, texts, strict=True):
        assert Fraction(down) <= Fraction(low)
        assert Fraction(high) <= Fraction(up)
        assert Fraction(up) - Fraction(high) <= 100 * (Fraction(high) - Fraction(low)) + Fraction(high) / 10**11
    pairs = [
        (f"{draw.randrange(1, 10**9)}/{draw.randrange(1, 10**9)}", f"{draw.uniform(0, 9):.6f}") for _ in range(200)
    ]
    pairs += [("0.0073", "1e-3"), (".5", "2."), ("1e3", "1/3"), ("73/10000", "10000/73")]
    found = page.evaluate(
        """async (pairs) => {
          const { product } = await import("/static/rational.js");
          return pairs.map(([a, b]) => product(a, b));
        }""",
        pairs,
    )
    assert [Fraction(text) for text in found] == [Fraction(a) * Fraction(b) for a, b in pairs]


def test_the_page_holds_no_script_or_style_of_its_own_and_no_address() -> None:
    html = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:", html)
    for path in STATIC.iterdir():
        addresses = set(re.findall(r"https?://[^\s\"'`<>]+", path.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, path.name
        assert "innerHTML" not in path.read_text()


def test_design_files_are_saved_and_opened(page: Page, tmp_path: Path) -> None:
    cell(page, "detailed", "State").fill("0.3")
    page.keyboard.press("Alt+a")
    path = saved(download(page, lambda: page.keyboard.press("Control+s")), tmp_path)
    record = json.loads(path.read_text())
    assert record["a"]["design"]["levels"][1]["queries"][-1] == {"name": "detailed", "rho": "0.3"}
    page.locator("#open").click()
    page.locator("#small-design").click()
    expect(page.locator("#title")).to_have_value("My design")
    upload(page, path.name, path.read_bytes())
    shows(page, "epsilon-value", with_budget(DHC, "State", "detailed", "0.3").proxy.epsilon("1e-10"))
    expect(page.locator("#drop-a")).to_be_enabled()


def test_the_report_and_the_table_of_pairs_are_exported(page: Page, tmp_path: Path) -> None:
    page.locator("#open").click()
    page.locator("#small-design").click()
    expect(page.locator("#title")).to_have_value("My design")
    pairs = saved(export(page, "All pairs", "CSV"), tmp_path).read_text().splitlines()
    assert len(pairs) >= 4  # a header and three pairs
    html = saved(export(page, "Report", "HTML"), tmp_path).read_text()
    assert "<html" in html
    assert "My design" in html


def test_the_link_is_copied(visit: Visit) -> None:
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.open()
    cell(page, "detailed", "State").fill("0.3")
    page.locator("#share").click()
    expect(page.locator(".notice[data-kind=info]")).to_contain_text("copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == page.url
    assert "#d=" in page.url
