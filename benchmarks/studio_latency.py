"""How fast the studio follows, measured in the browser from the input event to the painted numbers and curves.

python benchmarks/studio_latency.py [EDITS] [--edited]     prints the figures that docs/studio.md shows

Edits are of single cells of the DHC persons file, pair (13, 13), each to a value that was not asked before; the whole release
is all 946 pairs, each time with every budget scaled by another factor. With --edited also once with the State level scaled
alone, which takes much longer. Needs Chromium and exactdp[test].
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import in_browser

if TYPE_CHECKING:
    from playwright.sync_api import Page

EDITS = 100
OVERALLS = 5
WARM_UP = 5
MEASURES = "(name) => performance.getEntriesByName(name).map((measure) => measure.duration)"
THERE = """([name, count, seconds]) => new Promise((done) => {
  const look = () => performance.getEntriesByName(name).length >= count && done(true);
  new PerformanceObserver(look).observe({ type: "measure" });
  setTimeout(() => done(false), 1000 * seconds);
  look();
})"""
PATIENCE = 60  # seconds
ANSWERS = """() => performance.getEntriesByType("resource").filter((entry) => entry.name.endsWith("/api/v1/pair"))
  .map((entry) => entry.responseEnd - entry.requestStart)"""


def wait_for(page: Page, name: str, count: int) -> list[float]:
    """The durations of a measure, once there are so many. The page tells: to ask it again and again would slow it down."""
    if not page.evaluate(THERE, [name, count, PATIENCE]):
        sys.exit(f"The page did not come to measure {count} times: {name}.")
    found: list[float] = page.evaluate(MEASURES, name)
    return found


def edits(page: Page, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from input to paint of edits one after the other, and those the requests took."""
    page.evaluate("() => { performance.clearMeasures(); performance.clearResourceTimings() }")
    page.evaluate("() => performance.setResourceTimingBufferSize(100000)")
    cells = page.locator("#budget-table tbody input")
    for i in range(count):
        cells.nth(i * 7 % 80).fill(f"{1000 + i}/100000")
        wait_for(page, "edit to paint", i + 1)
        page.wait_for_timeout(30)
    return wait_for(page, "edit to paint", count)[WARM_UP:], page.evaluate(ANSWERS)[WARM_UP:]


def overalls(page: Page, count: int) -> list[float]:
    """Milliseconds from the request for the whole release to its painted numbers, each time scaled by another factor."""
    for i in range(count):
        page.locator("#scale-by").fill(f"{99 - i}/100")
        page.locator("#scale-apply").click()
        page.wait_for_timeout(500)
        page.locator("#overall-run").click()
        wait_for(page, "overall to paint", i + 1)
        page.locator("#undo").click()
        page.wait_for_timeout(500)
    return wait_for(page, "overall to paint", count)


def edited(page: Page) -> str:
    """Seconds for the whole release once one level is scaled alone, which makes the lattice finer; or the refusal."""
    page.evaluate("() => performance.clearMeasures('overall to paint')")
    page.get_by_label("Multiply every rho of State by").fill("9/10")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    page.locator("#overall-run").click()
    for _ in range(3000):
        found = page.evaluate(MEASURES, "overall to paint")
        refusal = page.locator(".notice[data-kind=error] p")
        if found or refusal.count():
            page.locator("#undo").click()
            page.wait_for_timeout(500)
            return f"{found[0] / 1000:.1f} s" if found else refusal.first.inner_text()
        page.wait_for_timeout(100)
    return "no answer in five minutes"


def row(name: str, values: list[float]) -> str:
    """A line of the table: median, 95% and largest."""
    ordered = sorted(values)
    at95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"{name:34} {len(values):5} {statistics.median(values):9.0f} {at95:9.0f} {ordered[-1]:9.0f}"


def main() -> None:
    """Print the table."""
    numbers = [int(text) for text in sys.argv[1:] if text.isdecimal()]
    count = numbers[0] if numbers else EDITS
    with in_browser.studio() as served, in_browser.browser() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script("localStorage.setItem('exactdp-studio/automatic', 'no')")
        page.goto(served.address)
        wait_for(page, "edit to paint", 2)
        whole = overalls(page, OVERALLS)
        one_level = edited(page) if "--edited" in sys.argv else None
        painted, answered = edits(page, count + WARM_UP)
    print(f"{'milliseconds':34} {'runs':>5} {'median':>9} {'95%':>9} {'largest':>9}")
    print(row("edit of (13, 13) to paint", painted))
    print(row("  of which waiting for the server", answered))
    print(row("whole release (946 pairs) to paint", whole))
    if one_level is not None:
        print(f"whole release with one level scaled: {one_level}")


if __name__ == "__main__":
    main()
