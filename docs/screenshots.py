"""The pictures of the documentation, taken in Chromium: `python docs/screenshots.py [report ...]`.

Each subject is a function that gets a Camera and takes its shots into docs/images. To add one, write such a function and put
it into SUBJECTS. Chromium is taken from the environment variable CHROMIUM, or from the usual places.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from studio_screenshots import studio

import in_browser

IMAGES = Path(__file__).parent / "images"
SIZES = {"desktop": (1440, 900), "laptop": (1280, 720), "phone": (390, 844)}


@dataclass(frozen=True)
class Camera:
    """A browser that takes pictures of pages."""

    browser: Any

    def shoot(
        self, address: str, name: str, *, size: str = "desktop", scheme: str = "light", at: str | None = None
    ) -> Path:
        """One picture of what is seen at a size, in light or dark, scrolled to an element if told."""
        width, height = SIZES[size]
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            device_scale_factor=1,
            reduced_motion="reduce",
        )
        page = context.new_page()
        page.goto(address)
        if at is not None:
            page.locator(at).first.evaluate("e => e.scrollIntoView({block: 'start'})")
        path = IMAGES / f"{name}.png"
        page.screenshot(path=path)
        context.close()
        return path


def report(camera: Camera) -> list[Path]:
    """The report on the DHC persons file, as `exactdp report` writes it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        subprocess.run(
            [sys.executable, "-c", "from exactdp.apps.cli import main; main()", "report", "-o", file], check=True
        )
        address = file.as_uri()
        return [
            camera.shoot(address, "report-light"),
            camera.shoot(address, "report-dark", scheme="dark"),
            camera.shoot(address, "report-guarantee", at="#guarantee"),
            camera.shoot(address, "report-noise-dark", size="laptop", scheme="dark", at="#noise"),
            camera.shoot(address, "report-certificates", size="laptop", at="#certificates"),
            camera.shoot(address, "report-phone", size="phone"),
        ]


SUBJECTS: dict[str, Callable[[Camera], list[Path]]] = {"report": report, "studio": studio}


def main(names: list[str]) -> int:
    """Take the pictures of the subjects named, or of all."""
    unknown = [name for name in names if name not in SUBJECTS]
    if unknown:
        print(f"No subject is called {unknown[0]}. Subjects are {', '.join(SUBJECTS)}.", file=sys.stderr)
        return 2
    IMAGES.mkdir(exist_ok=True)
    with in_browser.browser() as browser:
        for name in names or SUBJECTS:
            for path in SUBJECTS[name](Camera(browser)):
                print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
