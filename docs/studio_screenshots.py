"""The pictures of the studio in the documentation: `studio(camera)` is a subject of docs/screenshots.py.

`python docs/studio_screenshots.py` takes them alone. Every picture is of a running studio with the DHC persons file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import in_browser

IMAGES = Path(__file__).parent / "images"
CELL = "hispanic * sex, County"
PATIENCE = 60_000


@contextmanager
def opened(browser: Any, address: str, size: tuple[int, int], scheme: str) -> Iterator[Any]:
    """A page of the studio whose numbers have come, those of the whole release included."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    settle(page)
    yield page
    context.close()


def settle(page: Any) -> None:
    """Wait until the whole release is accounted for and nothing moves."""
    page.wait_for_timeout(1500)
    page.locator("#overall-value[data-value]").wait_for(timeout=PATIENCE)
    page.locator("#overall-state[data-state=proved]").wait_for(timeout=PATIENCE)
    page.locator("#overall-bar").wait_for(state="hidden", timeout=PATIENCE)
    page.wait_for_timeout(300)


def shot(page: Any, name: str) -> Path:
    """One picture of what is seen."""
    path = IMAGES / f"studio-{name}.png"
    page.screenshot(path=path)
    return path


def scenarios(page: Any) -> None:
    """A quarter of the State level's budget taken away, against the published design."""
    page.locator("#keep-scenario").click()
    page.get_by_label("Multiply every rho of State by").fill("3/4")
    page.keyboard.press("Enter")
    settle(page)


def exchanging(page: Any) -> None:
    """What more epsilon buys in each cell, and a fifth of the County level's budget for Block."""
    page.get_by_label("Typical count at Block", exact=True).fill("23")
    page.get_by_role("radio", name="Gain").check()
    page.locator("#trade summary").click()
    page.locator("#trade-share").fill("20")
    page.locator("#trade-use:enabled").wait_for(timeout=PATIENCE)
    settle(page)
    page.mouse.move(0, 0)


def error(page: Any) -> None:
    """A budget that is no number."""
    page.get_by_label(CELL, exact=True).fill("1/0")
    page.locator("#cell-error").wait_for()
    page.wait_for_timeout(300)


def calibrating(page: Any) -> None:
    """The least noise for (20, 1e-10)."""
    page.locator("#calibrate").click()
    page.locator("#calibrate-epsilon").fill("20")
    page.locator("#calibrate-dialog button[type=submit]").click()
    page.locator("#calibrate-apply").wait_for(timeout=PATIENCE)


def certifying(page: Any) -> None:
    """A certificate of epsilon with 30 digits."""
    page.locator("#certify").click()
    page.locator("#certify-dialog button[type=submit]").click()
    page.locator("#certify-save").wait_for(timeout=PATIENCE)


def opening(page: Any) -> None:
    """Where a design comes from."""
    page.locator("#open").click()
    page.locator("#release-list button").first.wait_for()


SHOTS: list[tuple[str, tuple[int, int], str, Callable[[Any], None] | None]] = [
    ("light", (1440, 900), "light", None),
    ("dark", (1440, 900), "dark", None),
    ("laptop", (1280, 720), "light", None),
    ("laptop-dark", (1280, 720), "dark", None),
    ("wide", (1920, 1080), "light", None),
    ("wide-dark", (1920, 1080), "dark", None),
    ("tablet", (1024, 768), "light", None),
    ("tablet-dark", (1024, 768), "dark", None),
    ("phone", (390, 844), "light", None),
    ("phone-dark", (390, 844), "dark", None),
    ("scenarios", (1440, 1290), "light", scenarios),
    ("exchange", (1440, 980), "light", exchanging),
    ("error", (1280, 720), "light", error),
    ("calibrate", (1280, 720), "light", calibrating),
    ("certify", (1280, 720), "dark", certifying),
    ("open", (1280, 720), "light", opening),
]


def studio(camera: Any) -> list[Path]:
    """All pictures, taken with the camera's browser."""
    paths = []
    with in_browser.studio() as served:
        for name, size, scheme, act in SHOTS:
            with opened(camera.browser, served.address, size, scheme) as page:
                if act is not None:
                    act(page)
                paths.append(shot(page, name))
    return paths


def main() -> int:
    """Take the pictures of the studio alone."""
    import screenshots

    screenshots.SUBJECTS["studio"] = studio
    return screenshots.main(["studio"])


if __name__ == "__main__":
    sys.exit(main())
