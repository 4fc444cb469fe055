"""The studio in a browser: keyboard, screen reader, light and dark, numbers as they are written."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from studio_page import DHC, Visit, cell, expect, number, shows, wait_for, with_budget, written

from exactdp import numerals
from exactdp.conversions import zcdp_epsilon

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


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
    expect(page.locator("#working")).to_be_hidden()
    written(page)  # the page is at rest: what it shows is not the number before "0.3" was typed
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    page.keyboard.press("Tab")
    expect(cell(page, "age_38_groups * sex", "County")).to_be_focused()


def test_keys_do_what_the_help_says(page: Page) -> None:
    rows = page.evaluate(
        "async () => (await import('/static/state/shortcuts.js')).SHORTCUTS.filter(({ keys }) => keys)"
    )
    page.keyboard.press("?")
    listed = page.locator("#help-dialog .shortcuts")
    assert listed.locator("dt").all_inner_texts() == [row["keys"] for row in rows]
    assert listed.locator("dd").all_inner_texts() == [row["does"] for row in rows]
    for row in rows:
        if row["where"].startswith("page"):
            assert {key.replace(" ", "") for key in row["keys"].split(", ")} <= set(row["acts"])
    page.keyboard.press("Control+o")  # not while a dialog is open
    expect(page.locator("#start-dialog")).to_be_hidden()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+o")
    expect(page.locator("#start-dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#redo")).to_have_attribute("title", "Redo (Ctrl+Shift+Z)")
    expect(page.locator("#redo")).to_have_attribute("aria-keyshortcuts", "Control+Shift+Z")
    page.locator("#ask-delta").press("?")  # typed where one writes
    expect(page.locator("#help-dialog")).to_be_hidden()
    expect(page.locator("#ask-delta")).to_have_value(re.compile(r"[?]"))
    page.keyboard.press("Control+z")
    expect(page.locator("#ask-delta")).to_have_value("1e-10")
    page.keyboard.press("Control+y")
    expect(page.locator("#ask-delta")).to_have_value(re.compile(r"[?]"))


def test_the_export_menu_is_used_by_keyboard(page: Page) -> None:
    page.locator("#export").press("Enter")
    entries = page.locator("#export-menu button")
    expect(entries.first).to_be_focused()
    for key, entry in (("ArrowDown", 1), ("End", -1), ("ArrowDown", 0), ("ArrowUp", -1), ("Home", 0)):
        page.keyboard.press(key)
        expect(entries.nth(entry)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#export")).to_be_focused()
    expect(page.locator("#export-menu")).to_be_hidden()


def test_charts_are_read_by_keyboard_and_as_tables(page: Page) -> None:
    chart = page.get_by_role("slider", name="Privacy profile: delta by epsilon")
    chart.focus()
    page.keyboard.press("End")
    text = chart.get_attribute("aria-valuetext")
    assert text is not None
    found = re.match(r"ε ([\d.]+): pair shown (\S+);", text)
    assert found is not None
    page.keyboard.press("Home")
    assert (chart.get_attribute("aria-valuetext") or "").startswith("ε 0: pair shown")
    page.get_by_label("Privacy profile: delta by epsilon, as a table").first.click()
    table = page.locator("#profile-chart .numbers table")
    expect(table.locator("thead th").first).to_have_text("ε")
    assert table.locator("tbody tr").count() > 20
    page.locator("#profile-chart [data-series=simple]").click()
    expect(page.locator("#profile-chart .line.simple")).to_have_count(1)  # left in the legend only


DRAWN = """() => [...document.querySelectorAll(".plot svg")].map((drawing) => drawing.outerHTML)"""
ALONG = """() => [...document.querySelectorAll("#profile-chart .lines .marker.simple")]
  .map((node) => node.getAttribute("d").match(/(?<=M)[0-9.]+/g).join())"""


def test_what_stays_in_a_chart_is_what_would_be_drawn_afresh(page: Page) -> None:
    def at_rest() -> None:
        written(page)
        expect(page.locator("#power-notes")).not_to_contain_text("…")  # zCDP's curve has come, too

    before, markers = page.evaluate(DRAWN), page.evaluate(ALONG)
    cell(page, "detailed", "State").fill("0.3")  # other ticks, other curves
    expect(page.locator("#rho-notes")).not_to_contain_text("49622")
    assert page.evaluate(ALONG) == markers  # they do not jump along the axis
    for level in ("County", "Block Group"):
        page.get_by_label(f"{level} is used by the first path").click()  # fewer rows of noise
    page.locator("#profile-chart [data-series=simple]").click()
    page.locator("#profile-chart [data-series=simple]").click()
    at_rest()
    drawn = page.evaluate(DRAWN)
    assert len(drawn) == len(before) == 4
    assert all(one != other for one, other in zip(drawn[:3], before[:3], strict=True))
    page.reload()
    wait_for(lambda: number(page, "delta-value") is not None)
    at_rest()
    assert page.evaluate(DRAWN) == drawn


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
    expect(page.locator("#announcer")).to_contain_text("epsilon at most 24.4565 at delta 1e-10")
    cell(page, "detailed", "State").fill("0.3")
    expect(page.locator("#announcer")).to_contain_text("epsilon at most 25")  # said once the numbers rest


def test_the_release_comes_first_and_the_pair_is_behind_tune(visit: Visit) -> None:
    page = visit.open(automatic=True, tune=False)
    whole = DHC.account()
    shows(page, "overall-value", whole.epsilon("1e-10"))
    said = f"Whole release: ε at most {numerals.at_most(whole.epsilon('1e-10'), 5)} at δ ="
    zcdp = f"; zCDP would say {numerals.at_most(zcdp_epsilon(DHC.rho, '1e-10'), 4)}."
    assert (said, zcdp) == ("Whole release: ε at most 24.457 at δ =", "; zCDP would say 25.42.")
    expect(page.locator("#sentence")).to_contain_text(said)
    expect(page.locator("#sentence")).to_contain_text(zcdp)
    expect(page.locator("#announcer")).to_have_text(
        "Whole release: epsilon at most 24.457 at delta 1e-10; zCDP would say 25.42."
    )
    expect(page.locator("#overall-state")).to_have_text("Proved for all 946 pairs")
    expect(page.locator("#overall-rho")).to_have_text("4.9622")
    wait_for(lambda: number(page, "overall-power") is not None)
    assert 1 - whole.beta_bounds("0.05").upper <= (number(page, "overall-power") or 0) < 1 - whole.beta("0.05") + 1e-9
    expect(page.locator("#epsilon-value")).to_be_hidden()
    expect(page.locator("#path-1")).to_be_hidden()
    page.get_by_role("button", name="Look at this pair").click()
    expect(page.locator("#path-1")).to_have_value("6")
    shows(page, "epsilon-value", DHC.pair(6, 6).within(max_nodes=4000).epsilon("1e-10"))
    expect(page.locator("#overall-state")).to_have_text("Proved for all 946 pairs")  # the release is the same
    cell(page, "detailed", "State").fill("0.3")
    expect(page.locator("#overall-state")).to_have_text("Of the design before the last change")
    shows(page, "overall-value", with_budget(DHC, "State", "detailed", "0.3").account().epsilon("1e-10"))


CLIPPED = """() => [...document.querySelectorAll("#budget-table input[type=text]")]
  .filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.value)"""
SMALL = """() => [...document.querySelectorAll("button, input, select, summary, [role=slider]")]
  .filter((node) => node.checkVisibility() && !node.disabled)
  .map((node) => [node.closest("label") ?? node, node.outerHTML])
  .filter(([target]) => Math.min(target.getBoundingClientRect().width, target.getBoundingClientRect().height) < 24)
  .map(([, text]) => text)"""


def _is_dark(page: Page) -> bool:
    background = page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")
    return max(map(int, re.findall(r"\d+", background)[:3])) < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_window_in_light_and_dark(browser: Browser, address: str, scheme: str) -> None:
    visiting = Visit(browser, address, color_scheme=scheme)
    page = visiting.open()
    page.locator("#keep-scenario").click()
    expect(page.locator("#compare-body table")).to_have_count(2)
    cut = """() => [...document.querySelectorAll(".sentence, .fact-number, .tile-number, .tile-label, .table-scroll")]
      .filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.textContent)"""
    for width, height in ((1440, 900), (1280, 720), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert width < 1280 or page.evaluate(cut) == []
        assert page.evaluate(CLIPPED) == []
        assert page.evaluate(SMALL) == []
    assert _is_dark(page) == (scheme == "dark")
    page.locator("#theme").click()
    page.reload()
    assert _is_dark(page) == (scheme == "light")
    visiting.context.close()
    assert visiting.problems == []


def test_numbers_are_rounded_to_the_safe_side_and_exact_where_they_are_edited(page: Page) -> None:
    draw = random.Random(2)
    cases = []
    for _ in range(300):
        low = draw.uniform(0, 1) * 10 ** draw.uniform(-20, 6)
        cases.append((low, low * (1 + 10 ** draw.uniform(-15, -2))))
    texts = page.evaluate(
        """async (cases) => {
          const { roundedUp, roundedDown } = await import("/static/state/format.js");
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
          const { product } = await import("/static/state/rational.js");
          return pairs.map(([a, b]) => product(a, b));
        }""",
        pairs,
    )
    assert [Fraction(text) for text in found] == [Fraction(a) * Fraction(b) for a, b in pairs]
