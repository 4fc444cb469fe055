"""How fast the studio follows, measured in the browser from the input event to the painted numbers and curves.

python benchmarks/studio_latency.py [EDITS] [--edited]     prints the figures that docs/studio.md shows

Edits are of single cells of the DHC persons file, pair (13, 13), each to a value that was not asked before; the whole release
is all 946 pairs: its epsilon, which is painted first, and everything, curves included. Each time every budget is scaled by
another factor; with --edited also with one level scaled alone and with single cells edited, which leaves the pairs without a
common lattice. Needs Chromium and exactdp[test].

On a busy machine these times say little; below them stands what the studio's processes worked for each edit and each account of
the whole release, in CPU milliseconds of server and workers (where the system tells it), and what the browser and the program
that edits in it worked for each edit.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
from collections.abc import Callable, Iterable
from functools import partial
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


def overalls(page: Page, changes: Iterable[Callable[[], None]]) -> tuple[list[float], list[float]]:
    """Milliseconds from the request for the whole release to its painted epsilon, and to everything, after each change."""
    both = ("overall epsilon to paint", "overall to paint")
    for name in both:
        page.evaluate("(name) => performance.clearMeasures(name)", name)
    count = 0
    for change in changes:
        change()
        page.wait_for_timeout(500)
        page.locator("#overall-run").click()
        count += 1
        wait_for(page, both[1], count)
        page.locator("#undo").click()
        page.wait_for_timeout(500)
    return wait_for(page, both[0], count), wait_for(page, both[1], count)


def scaled(page: Page, factor: str) -> None:
    """Every budget scaled."""
    page.locator("#scale-by").fill(factor)
    page.locator("#scale-apply").click()


def one_level(page: Page, level: str, factor: str) -> None:
    """One level scaled alone."""
    page.get_by_label(f"Multiply every rho of {level} by").fill(factor)
    page.keyboard.press("Enter")


def one_cell(page: Page, number: int, rho: str) -> None:
    """One budget edited."""
    page.locator("#budget-table tbody input").nth(number).fill(rho)
    page.keyboard.press("Enter")


def worked(pid: int) -> float:
    """CPU milliseconds of a process and of all that it has started, ended ones included; 0 where the system does not tell."""
    parents, spent = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            after_name = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number], spent[number] = int(after_name[1]), sum(map(int, after_name[11:15]))
    ours = {pid}
    while more := {number for number, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(spent.get(number, 0) for number in ours) * 1000 / os.sysconf("SC_CLK_TCK")


def row(name: str, values: list[float]) -> str:
    """A line of the table: median, 95% and largest."""
    ordered = sorted(values)
    at95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return f"{name:40} {len(values):5} {statistics.median(values):9.0f} {at95:9.0f} {ordered[-1]:9.0f}"


def main() -> None:
    """Print the table."""
    numbers = [int(text) for text in sys.argv[1:] if text.isdecimal()]
    count = numbers[0] if numbers else EDITS
    with in_browser.studio() as served, in_browser.browser() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script("localStorage.setItem('exactdp-studio/automatic', 'no')")
        page.goto(served.address)
        wait_for(page, "edit to paint", 2)
        sets: dict[str, list[Callable[[], None]]] = {
            "all scaled": [partial(scaled, page, f"{99 - i}/100") for i in range(OVERALLS)]
        }
        if "--edited" in sys.argv:
            levels = ("State", "County", "Block Group", "Block")
            sets["one level scaled"] = [partial(one_level, page, level, "9/10") for level in levels]
            sets["one cell edited"] = [
                partial(one_cell, page, 11 * i + 3, f"{1007 + i}/100000") for i in range(OVERALLS)
            ]
        whole, work = {}, {}
        for name, changes in sets.items():
            before = worked(served.pid)
            whole[name] = overalls(page, changes)
            work[f"all pairs, {name}"] = (worked(served.pid) - before) / len(changes)
        before, all_before = worked(served.pid), worked(os.getpid())
        painted, answered = edits(page, count + WARM_UP)
        work["edit of (13, 13)"] = (worked(served.pid) - before) / (count + WARM_UP)
        in_all = (worked(os.getpid()) - all_before) / (count + WARM_UP)
    print(f"{'milliseconds':40} {'runs':>5} {'median':>9} {'95%':>9} {'largest':>9}")
    print(row("edit of (13, 13) to paint", painted))
    print(row("  of which waiting for the server", answered))
    for name, (epsilon, everything) in whole.items():
        print(row(f"all pairs, {name}: epsilon", epsilon))
        print(row("  all curves and the worst pair", everything))
    print("CPU milliseconds of server and workers: " + ", ".join(f"{name} {cpu:.0f}" for name, cpu in work.items()))
    print(f"and of the browser and what edits in it: edit of (13, 13) {in_all - work['edit of (13, 13)']:.0f}")


if __name__ == "__main__":
    main()
