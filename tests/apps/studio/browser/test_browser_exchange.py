"""The studio in a browser: exchange rates, trades, the lock, typical counts, the frontier, pasted blocks, certificates."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from studio_page import Visit, cell, expect, export, number, saved, shows, upload, wait_for, written

import exactdp
from exactdp import census, numerals
from exactdp.census.budget_costs import STEP_BLUR, cell_costs
from exactdp.census.budget_files import parse_budget
from exactdp.census.margins import noise_of
from exactdp.census.releases import Release
from exactdp.optimize.requirements import requirement
from small_release import FINE_SURVEY, SURVEY

if TYPE_CHECKING:
    from playwright.sync_api import Page

DESIGN = parse_budget(SURVEY.encode(), "survey.toml")
FIRST, LAST = next(iter(DESIGN.table)), list(DESIGN.table)[-1]


@pytest.fixture
def survey(visit: Visit) -> Page:
    """The page with a small design, whose release follows every edit."""
    page = visit.open(automatic=True, tune=False)
    upload(page, "survey.toml", SURVEY.encode())
    shows(page, "overall-value", epsilon_of(DESIGN))
    return page


def epsilon_of(release: Release) -> float:
    """epsilon(1e-10) of a whole release from its pairs, one by one, which shared contours of a fine lattice take long for."""
    return max(composition.epsilon("1e-10") for composition in release.compositions)


def margin(release: Release, level: str) -> int:
    return max(noise_of(rho).margin for rho in release.table[level].values())


def shown_design(page: Page) -> Any:
    state = "async () => (await import('/static/state/share.js')).fromFragment(location.hash)"
    written(page)
    return page.evaluate(state)


def budgets(page: Page) -> dict[str, dict[str, Fraction]]:
    levels = shown_design(page)["design"]["levels"]
    return {level["name"]: {q["name"]: Fraction(q["rho"]) for q in level["queries"]} for level in levels}


def test_cells_show_what_budget_costs_and_buys(survey: Page) -> None:
    costs = cell_costs(DESIGN, delta="1e-10", blur=STEP_BLUR)
    survey.get_by_role("radio", name="Cost").check()
    for level, queries in DESIGN.table.items():
        for query in queries:
            expected = numerals.about(costs.epsilon[level][query] / 100, 4)
            expect(cell(survey, query, level)).to_have_value(expected)
    expect(survey.locator("#view-note")).to_contain_text("Estimates")
    survey.get_by_role("radio", name="Gain").check()
    expect(cell(survey, next(iter(DESIGN.table[FIRST])), FIRST)).to_have_value(re.compile(r"~[\d.]+%"))
    survey.get_by_role("radio", name="Margin", exact=True).check()
    for level, queries in DESIGN.table.items():
        for query, rho in queries.items():
            expect(cell(survey, query, level)).to_have_value(f"\u00b1{noise_of(rho).margin}")
    box = cell(survey, next(iter(DESIGN.table[LAST])), LAST)
    assert box.get_attribute("readonly") is not None
    survey.get_by_role("radio", name="Budget").check()
    assert box.get_attribute("readonly") is None


def test_a_trade_keeps_epsilon_and_shows_every_margin(survey: Page) -> None:
    survey.locator("#trade summary").click()
    survey.locator("#trade-take").select_option(FIRST)
    survey.locator("#trade-give").select_option(LAST)
    survey.locator("#trade-share").fill("30")
    expect(survey.locator("#trade-statement")).to_contain_text("proved for every pair")
    before = epsilon_of(DESIGN)
    told = re.search(r"times ([\d.]+)\.", survey.locator("#trade-statement").inner_text())
    assert told is not None
    moved = DESIGN.scaled(Fraction(10, 7), FIRST).scaled(told[1], LAST)
    assert before - 0.01 < epsilon_of(moved) <= before
    for level in DESIGN.table:
        row = survey.locator("#trade-margins tr").filter(has=survey.get_by_role("rowheader", name=level, exact=True))
        expect(row).to_contain_text(f"\u00b1{margin(DESIGN, level)}")
        expect(row).to_contain_text(f"\u00b1{margin(moved, level)}")
    survey.locator("#trade-use").click()
    shows(survey, "overall-value", epsilon_of(moved))
    assert budgets(survey) == moved.table


def test_a_trade_between_two_cells_keeps_epsilon(survey: Page) -> None:
    taken, given = (FIRST, list(DESIGN.table[FIRST])[-1]), (LAST, next(iter(DESIGN.table[LAST])))
    survey.locator("#trade summary").click()
    for side, (level, query) in (("take", taken), ("give", given)):
        survey.locator(f"#trade-{side}").select_option(level)
        survey.locator(f"#trade-{side}-query").select_option(query)
    survey.locator("#trade-share").fill("30")
    expect(survey.locator("#trade-statement")).to_contain_text("proved for every pair")
    told = re.search(r"times ([\d.]+)\.", survey.locator("#trade-statement").inner_text())
    assert told is not None
    rho = {place: DESIGN.table[place[0]][place[1]] for place in (taken, given)}
    moved = DESIGN.with_budget({taken: -rho[taken] * 3 / 10, given: rho[given] / Fraction(told[1]) - rho[given]})
    before = epsilon_of(DESIGN)
    assert before - 0.01 < epsilon_of(moved) <= before
    row = survey.locator("#trade-margins tr").filter(has_text=f"{given[1]}, {given[0]}")
    expect(row).to_contain_text(f"\u00b1{noise_of(moved.table[given[0]][given[1]]).margin}")
    survey.locator("#trade-use").click()
    shows(survey, "overall-value", epsilon_of(moved))
    assert budgets(survey) == moved.table


def test_a_locked_epsilon_holds_after_an_edit_and_a_reload(survey: Page) -> None:
    survey.locator("#lock").check()
    locked = numerals.at_most(epsilon_of(DESIGN), 6)
    survey.locator("#lock-by").select_option(LAST)
    survey.reload()
    expect(survey.locator("#lock")).to_be_checked()
    expect(survey.locator("#lock-by")).to_have_value(LAST)
    survey.locator("#lock-by").select_option("")
    shows(survey, "overall-value", epsilon_of(DESIGN))
    query = next(iter(DESIGN.table[FIRST]))
    cell(survey, query, FIRST).fill("0.9")
    edited = DESIGN.with_budget({(FIRST, query): Fraction("0.9") - DESIGN.table[FIRST][query]})
    notice = survey.locator(".notice[data-kind=info]")
    expect(notice).to_contain_text("Every noise variance times")
    told = re.search(r"times ([\d.]+):", notice.inner_text())
    assert told is not None
    held = edited.scaled(told[1])
    shows(survey, "overall-value", epsilon_of(held))
    assert epsilon_of(held) <= Fraction(locked) < epsilon_of(edited)
    assert budgets(survey) == held.table
    survey.locator("#undo").click()  # an undo is not held back
    shows(survey, "overall-value", epsilon_of(edited))


def test_typical_counts_say_what_is_usable(survey: Page, tmp_path: Path) -> None:
    most = margin(DESIGN, LAST)
    survey.get_by_label(f"Typical count at {LAST}", exact=True).fill(str(most))
    survey.get_by_label(f"Typical count at {FIRST}", exact=True).fill("1,000,000")
    said = survey.locator("#usefulness")
    expect(said).to_contain_text(f"{LAST}: a count of {most}, \u00b1{most} (unusable)")
    expect(said).to_contain_text(f"{FIRST}: a count of 1,000,000, \u00b1{margin(DESIGN, FIRST)} (below 0.01%)")
    survey.get_by_label(f"Typical count at {FIRST}", exact=True).fill("1,000")
    share = numerals.about(100 * (margin(DESIGN, FIRST) / 1000), 2)
    expect(said).to_contain_text(f"{FIRST}: a count of 1,000, \u00b1{margin(DESIGN, FIRST)} ({share}%)")
    survey.locator("#keep-scenario").click()
    survey.get_by_label("Name of scenario A").fill("Plan A")
    survey.keyboard.press("Tab")
    report = saved(export(survey, "Report", "HTML"), tmp_path).read_text()
    assert "Decision memo" in report
    assert "Plan A" in report
    assert f"at a count of {most}" in report


def test_the_board_shows_all_that_one_can_do_with_a_scenario(page: Page) -> None:
    """In each width, for the long numbers of a published file: what scrolls out of sight is not found."""
    page.locator("#overall-run").click()
    page.locator("#keep-scenario").click()
    expect(page.locator("[data-scenario=A] td").first).not_to_have_text("")
    wait_for(lambda: number(page, "overall-value") is not None)
    for width in (1920, 1440, 1280, 1100):
        page.set_viewport_size({"width": width, "height": 900})
        frame = page.locator("#compare-body .frame").first
        assert frame.evaluate("frame => frame.scrollWidth - frame.clientWidth") <= 0, width


def test_the_frontier_has_the_scenarios_and_the_design_scaled(survey: Page) -> None:
    survey.locator("#keep-scenario").click()
    survey.locator("#frontier summary").click()
    drawing = survey.locator("#frontier-chart svg")
    for factor in ("1/2", "1", "2"):
        scaled = DESIGN.scaled(1 / Fraction(factor))
        point = f"\u03c1 \u00d7 {numerals.whole_text(Fraction(factor))} {numerals.about(scaled.account().epsilon('1e-10'), 5)}"
        expect(drawing).to_have_attribute("aria-label", re.compile(re.escape(f"{point}, \u00b1{margin(scaled, LAST)}")))
    expect(drawing).to_have_attribute("aria-label", re.compile(re.escape("; A ~")))


def test_a_block_of_a_spreadsheet_is_pasted_in_one_step(survey: Page) -> None:
    levels = list(DESIGN.table)
    query = next(iter(DESIGN.table[FIRST]))
    paste = """(input, text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", text);
      input.focus();
      input.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }"""
    before = budgets(survey)
    cell(survey, query, FIRST).evaluate(paste, "0.25\t1/3\t7\r\n")
    expect(cell(survey, query, levels[1])).to_have_value("1/3")
    after = budgets(survey)
    assert (after[FIRST][query], after[levels[1]][query]) == (Fraction(1, 4), Fraction(1, 3))
    expect(survey.locator(".notice[data-kind=warning]")).to_contain_text("1 of the values pasted")
    survey.locator("#undo").click()
    assert budgets(survey) == before


def test_a_certificate_is_verified_when_it_is_dropped(survey: Page) -> None:
    drop = """([name, text]) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], name));
      for (const kind of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
    }"""
    made = exactdp.certify(DESIGN, delta="1e-10")
    survey.evaluate(drop, ["good.json", made.to_json()])
    verdict = survey.locator("#verify-verdict")
    expect(verdict).to_contain_text("Holds")
    expect(verdict).to_contain_text(str(made.answer))
    survey.keyboard.press("Escape")
    survey.evaluate(drop, ["bad.json", json.dumps({**json.loads(made.to_json()), "sha256": "0" * 64})])
    expect(verdict).to_contain_text("Does not hold")
    survey.keyboard.press("Escape")
    expect(survey.locator("#title")).to_have_value(DESIGN.title)  # a certificate is not opened


def test_a_design_is_optimised_for_a_requirement(visit: Visit) -> None:
    survey, fine = visit.open(automatic=True, tune=False), parse_budget(FINE_SURVEY.encode(), "fine.toml")
    upload(survey, "fine.toml", FINE_SURVEY.encode())
    shows(survey, "overall-value", epsilon_of(fine))
    survey.locator("#optimize").click()
    expect(survey.locator("#optimize-epsilon")).to_have_value(numerals.at_most(epsilon_of(fine), 5))
    hint = survey.locator("#optimize-dialog small").inner_text().removesuffix(".")
    for condition in re.split(
        ", (?:or )?", hint.partition("a colon, and ")[2]
    ):  # all that the hint names is understood
        assert requirement(fine, f"{LAST}: {condition}").cells
    survey.locator("#optimize-requirements").fill("nonsense")
    survey.locator("#optimize-dialog button[type=submit]").click()
    expect(survey.locator("#optimize-dialog .field-error")).to_contain_text("nonsense")
    survey.locator("#optimize-requirements").fill(f"{LAST}: margin <= 10")
    survey.locator("#optimize-dialog button[type=submit]").click()
    expect(survey.locator("#optimize-dialog .statement")).to_contain_text("The guarantee is proved")
    expect(survey.locator("#optimize-dialog .prices")).to_contain_text("one count more would save")
    survey.locator("#optimize-apply").click()
    found = replace(fine, table=budgets(survey))
    assert margin(found, LAST) <= 10 < margin(fine, LAST)
    shows(survey, "overall-value", epsilon_of(found))
    assert epsilon_of(found) <= Fraction(numerals.at_most(epsilon_of(fine), 5))
    expect(survey.locator("[data-scenario=A]")).to_be_visible()


def test_a_damaged_link_says_so_and_opens_nothing_else(visit: Visit) -> None:
    visit.page.goto(f"{visit.address}#d=damaged")
    expect(visit.page.locator("#start-error")).to_contain_text("damaged")
    expect(visit.page.locator("#start-dialog")).to_be_visible()
    expect(visit.page.locator("#title")).to_have_value("")
    visit.page.locator("#small-design").click()
    expect(visit.page.locator("#title")).to_have_value("My design")
    wait_for(lambda: visit.page.evaluate("() => localStorage.getItem('exactdp-studio/recent') !== null"))
    visit.page.locator("#open").click()
    visit.page.locator("[data-release=dhc-units-us]").click()
    expect(visit.page.locator("#title")).to_have_value(census.release("dhc-units-us").title)
    visit.page.locator("#open").click()
    visit.page.locator("#recent-list button").filter(has_text="My design").click()
    expect(visit.page.locator("#title")).to_have_value("My design")


def test_sixty_levels_of_twenty_queries_are_edited_and_no_digit_is_cut(visit: Visit) -> None:
    page = visit.open()
    rows = [f"L{i},q{j},0.00{1234 + i}" for i in range(60) for j in range(20)]
    upload(page, "wide.csv", ("level,query,rho\n" + "\n".join(rows)).encode())
    expect(page.locator("#origin")).to_contain_text("60 levels \u00b7 1200 budgets")
    wide = parse_budget(("level,query,rho\n" + "\n".join(rows)).encode(), "wide.csv")
    cell(page, "q3", "L40").fill("0.0071")
    edited = wide.with_budget({("L40", "q3"): Fraction("0.0071") - wide.table["L40"]["q3"]})
    wait_for(lambda: page.locator("#rho-value").get_attribute("data-value") == str(edited.rho))
    cut = """() => [...document.querySelectorAll("#budget-table tbody input")]
      .filter((input) => input !== document.activeElement && input.scrollWidth > input.clientWidth + 1).length"""
    assert page.evaluate(cut) == 0
