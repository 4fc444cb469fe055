"""The studio in a browser: files, links and the history: nothing is lost, nothing bad is taken."""

from __future__ import annotations

import base64
import json
import random
import re
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from studio_page import (
    DHC,
    Visit,
    cell,
    download,
    expect,
    export,
    number,
    saved,
    shows,
    upload,
    wait_for,
    with_budget,
    written,
)

import exactdp
from exactdp import census
from small_release import SURVEY

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def test_good_files_are_opened(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "survey.toml"
    path.write_text(SURVEY)
    survey = census.read_budget(path)
    upload(page, "survey.toml", SURVEY.encode())
    expect(page.locator("#title")).to_have_value("A small survey")
    shows(page, "epsilon-value", survey.proxy.epsilon("1e-10"))
    wide = b"# unit: sigma2\nlevel,sex,age\nUS,10,20\nState,,30\n"
    (tmp_path / "wide.csv").write_bytes(wide)
    upload(page, "wide.csv", wide)
    shows(page, "epsilon-value", census.read_budget(tmp_path / "wide.csv").proxy.epsilon("1e-10"))
    expect(cell(page, "sex", "State")).to_have_value("")
    cell(page, "sex", "State").fill("1/10")  # a query that was not asked there
    filled = with_budget(census.read_budget(tmp_path / "wide.csv"), "State", "sex", "1/10")
    shows(page, "epsilon-value", filled.proxy.epsilon("1e-10"))
    upload(page, "survey.json", census.budget_json(survey).encode())
    expect(page.locator("#title")).to_have_value("A small survey")
    shows(page, "epsilon-value", survey.proxy.epsilon("1e-10"))


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
    expect(page.locator("#title")).to_have_value("A small survey")
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
    legends = {
        "profile": ["pair shown", "zCDP optimal", "zCDP simple", "Gaussian, no bound"],
        "tradeoff": ["pair shown", "zCDP", "Gaussian, no bound"],
        "noise": ["95% margin of error of a count"],
    }
    for chart, name in (("Privacy profile", "profile"), ("Trade-off", "tradeoff"), ("Noise by level", "noise")):
        path = saved(download(page, page.get_by_label(f"Save {chart} as SVG").click), tmp_path)
        assert path.name == f"dhc-persons-us-{name}.svg"
        drawing = ET.parse(path).getroot()
        assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) > 5
        assert "var(" not in path.read_text()
        words = [node.text for node in drawing.iter("{http://www.w3.org/2000/svg}text")]
        assert words[1 : 1 + len(legends[name])] == legends[name]  # below the title
        picture = saved(download(page, page.get_by_label(f"Save {chart} as PNG").click), tmp_path).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 5_000


def test_design_files_are_saved_and_opened(page: Page, tmp_path: Path) -> None:
    cell(page, "detailed", "State").fill("0.3")
    page.keyboard.press("Alt+a")
    path = saved(download(page, lambda: page.keyboard.press("Control+s")), tmp_path)
    assert path.name == "dhc-persons-us.json"
    record = json.loads(path.read_text())
    assert record["kept"][0]["design"]["levels"][1]["queries"][-1] == {"name": "detailed", "rho": "0.3"}
    page.locator("#open").click()
    page.locator("#small-design").click()
    expect(page.locator("#title")).to_have_value("My design")
    upload(page, path.name, path.read_bytes())
    shows(page, "epsilon-value", with_budget(DHC, "State", "detailed", "0.3").proxy.epsilon("1e-10"))
    expect(page.locator("[data-scenario=A]")).to_be_visible()


def test_the_report_and_the_table_of_pairs_are_exported(page: Page, tmp_path: Path) -> None:
    page.locator("#open").click()
    page.locator("#small-design").click()
    expect(page.locator("#title")).to_have_value("My design")
    pairs = saved(export(page, "All pairs", "CSV"), tmp_path).read_text().splitlines()
    assert len(pairs) >= 4  # a header and three pairs
    html = saved(export(page, "Report", "HTML"), tmp_path).read_text()
    assert "<html" in html
    assert "My design" in html


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


def test_a_reload_that_began_before_the_address_was_written_keeps_the_steps(page: Page) -> None:
    """A reload goes to the address of its beginning; what was written while it was under way is kept beside that, too."""
    cell(page, "detailed", "Block").fill("0.01")
    shows(page, "epsilon-value", with_budget(DHC, "Block", "detailed", "0.01").proxy.epsilon("1e-10"))
    written(page)
    page.evaluate("""window.addEventListener("pagehide", () => {
      const [key, kept] = ["exactdp-studio/steps", JSON.parse(sessionStorage.getItem("exactdp-studio/steps"))];
      sessionStorage.setItem(key, JSON.stringify({ ...kept, fragment: "#d=later", before: location.hash }));
    })""")
    page.reload()
    shows(page, "epsilon-value", with_budget(DHC, "Block", "detailed", "0.01").proxy.epsilon("1e-10"))
    page.locator("#undo").click()
    shows(page, "epsilon-value", DHC.proxy.epsilon("1e-10"))


def test_a_link_opens_the_same_design_elsewhere(page: Page, browser: Browser, address: str) -> None:
    cell(page, "detailed", "Block").fill("0.01")
    page.locator("#keep-scenario").click()
    cell(page, "detailed", "Block").fill("0.02")
    second = with_budget(DHC, "Block", "detailed", "0.02").proxy.epsilon("1e-10")
    shows(page, "epsilon-value", second)
    fragment = written(page)
    assert fragment.startswith("#d=")
    assert len(fragment) < 6_000
    other = Visit(browser, address)
    elsewhere = other.open(fragment)
    shows(elsewhere, "epsilon-value", second)
    expect(elsewhere.locator("[data-scenario=A]")).to_be_visible()
    other.page.goto("about:blank")
    other.page.goto(address + "#d=damaged")
    expect(other.page.locator("#start-error")).to_contain_text("damaged")
    other.context.close()
    assert other.problems == ["asked about:blank"] or other.problems == []


def test_a_link_of_the_first_version_opens_with_its_scenario(visit: Visit) -> None:
    """As the studio wrote it when it had one scenario, A, and no counts, locks and units of privacy."""
    levels = [{"name": "Nation", "queries": [{"name": "total", "rho": "1/2"}]}]
    design = {
        "name": "old",
        "title": "Of old",
        "source": "",
        "levels": levels,
        "paths": [{"number": 1, "bypassed": []}],
    }
    other = json.loads(json.dumps(design).replace("1/2", "1/4"))
    ask = {"delta": "1e-6", "epsilon": "3", "alpha": "0.05"}
    record = {"version": 1, "design": design, "pair": [[], []], "ask": ask, "a": {"design": other, "pair": [[], []]}}
    squeezed = zlib.compressobj(wbits=-15)
    packed = squeezed.compress(json.dumps(record).encode()) + squeezed.flush()
    page = visit.open("#d=" + base64.urlsafe_b64encode(packed).decode().rstrip("="))
    shows(page, "epsilon-value", (2 * exactdp.DiscreteGaussian(2)).epsilon("1e-6"))
    expect(page.locator("[data-scenario=A]")).to_be_visible()
    expect(page.locator("#title")).to_have_value("Of old")
    expect(page.locator("#lock")).not_to_be_checked()


def test_the_link_is_copied(visit: Visit) -> None:
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.open()
    cell(page, "detailed", "State").fill("0.3")
    page.locator("#share").click()
    expect(page.locator(".notice[data-kind=info]")).to_contain_text("copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == page.url
    assert "#d=" in page.url


def test_back_leads_to_the_design_before(page: Page) -> None:
    before = DHC.proxy.epsilon("1e-10")
    written(page)
    page.locator("#open").click()
    page.locator("[data-release=dhc-units-us]").click()
    units = census.release("dhc-units-us").proxy.epsilon("1e-10")
    shows(page, "epsilon-value", units)
    wait_for(lambda: page.evaluate("() => history.length") > 2)
    written(page)
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
