"""The studio in a browser: what is shown follows every edit and is what the library says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from studio_page import DHC, Visit, cell, download, expect, number, saved, shows, upload, wait_for, with_budget

import exactdp
from exactdp import census, numerals
from exactdp.accounting.certificates.certificate import Certificate
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.releases import Release
from exactdp.census.savings import calibrate_release
from small_release import SURVEY

if TYPE_CHECKING:
    from playwright.sync_api import Page


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


def test_scenarios_are_compared_as_releases_renamed_opened_and_removed(page: Page) -> None:
    page.locator("#overall-run").click()
    expect(page.locator("#overall-bar")).to_be_hidden()
    page.locator("#keep-scenario").click()
    cell(page, "detailed", "State").fill("0.3")
    edited = with_budget(DHC, "State", "detailed", "0.3")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    now, kept = page.locator("[data-scenario='']"), page.locator("[data-scenario=A]")
    expect(now).to_contain_text("being worked out")  # nothing of the design before
    page.locator("#overall-run").click()
    before, after = DHC.account().epsilon("1e-10"), edited.account().epsilon("1e-10")
    expect(kept).to_contain_text(numerals.at_most(before, 8))
    expect(now).to_contain_text(numerals.at_most(after, 8))
    expect(now).to_contain_text(f"+{(after / before - 1) * 100:.2f}%")
    expect(page.locator("#profile-chart .line.kept").last).to_be_visible()
    margins = page.locator("#compare-body tr").filter(has=page.get_by_role("rowheader", name="State", exact=True))
    expect(margins).to_contain_text("\u00b16")
    name = page.get_by_label("Name of scenario A")
    name.fill("Published")
    name.press("Tab")
    expect(page.locator("#profile-chart .legend")).to_contain_text("scenario Published")
    page.get_by_label("Open: Published").click()
    shows(page, "epsilon-value", DHC.proxy.epsilon("1e-10"))
    page.get_by_label("Remove: Published").click()
    expect(page.locator("#compare-body")).to_contain_text("Keep this design")


def test_calibration_is_the_librarys(page: Page) -> None:
    page.locator("#calibrate").click()
    page.locator("#calibrate-epsilon").fill("nonsense")
    page.locator("#calibrate-dialog button[type=submit]").click()
    expect(page.locator("#calibrate-dialog .field-error")).to_contain_text("epsilon")
    page.locator("#calibrate-epsilon").fill("20")
    page.locator("#calibrate-delta").fill("1e-9")
    page.locator("#calibrate-dialog button[type=submit]").click()
    expected, scaled = calibrate_release(DHC, exactdp.target(epsilon=20, delta="1e-9"), None, 1000)
    expect(page.locator("#calibrate-dialog .statement")).to_contain_text(f"times {float(expected):g} meets")
    expect(page.locator("#calibrate-dialog .outcome")).to_contain_text("Proved for the whole release.")
    expect(page.locator("#calibrate-dialog .outcome")).to_contain_text(f"becomes {numerals.at_most(scaled.rho, 7)}.")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator("#calibrate-dialog").evaluate("dialog => dialog.scrollWidth - dialog.clientWidth") <= 0
    page.set_viewport_size({"width": 1440, "height": 900})
    page.locator("#calibrate-apply").click()
    shows(page, "epsilon-value", scaled.proxy.epsilon("1e-10"))
    page.locator("#ask-delta").fill("1e-9")
    page.locator("#overall-run").click()
    shows(page, "overall-value", scaled.account().epsilon("1e-9"))
    assert scaled.account().epsilon("1e-9") <= 20
    expect(page.locator("[data-scenario=A]")).to_be_visible()


def test_a_pair_alone_is_calibrated_if_one_asks_for_it(page: Page) -> None:
    page.locator("#calibrate").click()
    page.locator("#calibrate-epsilon").fill("20")
    page.get_by_label("for the pair behind Tune only").check()
    page.locator("#calibrate-dialog button[type=submit]").click()
    expect(page.locator("#calibrate-dialog .outcome")).to_contain_text("not for the release")
    expected = exactdp.calibrate(DHC.proxy, exactdp.target(epsilon=20, delta="1e-10"), grid=1000)
    expect(page.locator("#calibrate-dialog .statement")).to_contain_text(f"times {float(expected.factor):g} meets")


def test_a_certificate_is_saved_and_verifies(page: Page, tmp_path: Path) -> None:
    cell(page, "detailed", "State").fill("0.3")
    edited = with_budget(DHC, "State", "detailed", "0.3")
    shows(page, "epsilon-value", edited.proxy.epsilon("1e-10"))
    page.locator("#certify").click()
    page.get_by_label("the pair shown").check()
    expect(page.locator("#certify-digits")).to_have_value("30")
    page.get_by_role("radio", name="δ at ε = 26.34").check()
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


def test_the_whole_design_is_certified_by_default(page: Page, tmp_path: Path) -> None:
    page.locator("#certify").click()
    expect(page.get_by_label("β at")).to_be_disabled()
    page.locator("#certify-dialog button[type=submit]").click()
    expect(page.locator("#certify-answer")).to_have_text("24.45651446", timeout=60_000)
    told = page.locator("#certify-dialog .statement").inner_text()
    assert told == "Certified: at ε = 24.45651446 each of its 946 pairs has a δ of at most 1e-10, to 10 digits."
    path = saved(download(page, page.locator("#certify-save").click), tmp_path)
    certificate = DesignCertificate.load(path)
    assert certificate.release == DHC
    assert certificate.fingerprint == page.locator("#certify-fingerprint").inner_text()
    assert certificate.evidence.compositions == 840
    assert exactdp.verify(replace(certificate, sha256="0" * 64)).holds is False
    told = page.locator("#certify-witness").inner_text()
    assert told == f"ε = {certificate.too_small}, as pair 6, 6 proves"
    page.get_by_label("the pair shown").check()
    expect(page.get_by_label("β at")).to_be_enabled()


def test_a_certificate_of_the_whole_design_can_be_cancelled(page: Page) -> None:
    page.route("**/certify", lambda route: None)  # never answered, so that there is time to cancel it
    page.locator("#certify").click()
    page.locator("#certify-dialog button[type=submit]").click()
    page.locator("#certify-dialog button").filter(has_text="Cancel").click()
    expect(page.locator("#certify-dialog progress")).to_be_hidden()
    expect(page.locator("#certify-dialog .field-error")).to_be_empty()
    expect(page.locator("#certify-save")).to_have_count(0)


def test_the_whole_release_with_progress_and_cancel(page: Page) -> None:
    page.locator("#ask-delta").fill("1e-8")  # which no other test asks for
    shows(page, "epsilon-value", DHC.proxy.epsilon("1e-8"))
    page.route("**/overall", lambda route: None)  # never answered, so that there is time to cancel it
    page.locator("#overall-run").click()
    expect(page.locator("#overall-bar")).to_be_visible()
    page.locator("#overall-cancel").click()
    expect(page.locator("#overall-bar")).to_be_hidden()
    assert number(page, "overall-value") is None
    page.unroute("**/overall")
    page.evaluate(
        """() => {
          window.seen = [];
          new MutationObserver(() => window.seen.push(document.getElementById("overall-bar").value))
            .observe(document.getElementById("overall-bar"), { attributes: true });
        }"""
    )
    page.keyboard.press("Control+Enter")
    shows(page, "overall-value", DHC.account().epsilon("1e-8"))
    expect(page.locator("#overall-worst")).to_have_text("6 and 6")
    expect(page.locator("#overall-worst-note")).to_contain_text("bypasses County")
    expect(page.locator("#profile-chart [data-series=exact]")).to_be_visible()
    seen = page.evaluate("() => window.seen.filter((share) => share > 0)")
    assert len(seen) >= 2
    assert seen == sorted(seen)
    cell(page, "detailed", "State").fill("0.3")
    expect(page.locator("#results")).to_have_class(re.compile("release-stale"))
    expect(page.locator("#overall-state")).to_have_text("Of the design before the last change")


def test_epsilon_of_the_whole_release_comes_first(page: Page) -> None:
    """Once it is there, nothing of the design before stands beside it."""
    page.locator("#overall-run").click()
    expect(page.locator("#overall-power-note")).to_contain_text("misses")
    expect(page.locator("#overall-bar")).to_be_hidden()
    cell(page, "detailed", "State").fill("0.3")
    tile = page.locator("#results")
    expect(tile).to_have_class(re.compile("release-stale"))
    row = {"delta": "1e-10", "lower": 23.4, "upper": 23.5, "zcdp_optimal": 24.5, "zcdp_simple": 25, "gaussian": 23.4}
    part = {"event": "part", "done": 1, "steps": 9, "quantity": "epsilon", "rows": [row]}
    told = [{"event": "start", "steps": 9, "pairs": 946, "rho": "5", "full_path": 13}, part]  # and no more
    page.route("**/overall", lambda route: route.fulfill(body="\n".join(map(json.dumps, told))))
    page.locator("#overall-run").click()
    shows(page, "overall-value", 23.5)
    expect(tile).not_to_have_class(re.compile("release-stale"))
    expect(page.locator("#sentence")).to_contain_text("zCDP would say 24.5.")
    expect(page.locator("#overall-worst-note")).to_be_empty()
    expect(page.locator("#overall-power")).to_have_text("\u2026")


def test_the_whole_release_follows_by_itself_when_idle(visit: Visit, tmp_path: Path) -> None:
    page = visit.open(automatic=True)
    (tmp_path / "survey.toml").write_text(SURVEY)
    upload(page, "survey.toml", SURVEY.encode())
    study = census.read_budget(tmp_path / "survey.toml").account(deltas=["1e-10"])
    shows(page, "overall-value", study.epsilon("1e-10"))
    expect(page.locator("#overall-state")).to_have_text("Proved for all 3 pairs")


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
