"""Chromium, and a studio of its own to look at: for the tests, the benchmarks and the pictures of the documentation."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOW_TO_INSTALL = "Chromium was not found: install it (Debian: apt-get install chromium), or set CHROMIUM to its path."


class Served(NamedTuple):
    """Where a studio listens, and its process."""

    address: str
    pid: int


def chromium() -> str | None:
    """Where Chromium is, if it is installed."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    program = chromium()
    if program is None:
        sys.exit(HOW_TO_INSTALL)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        running.close()


@contextmanager
def studio() -> Iterator[Served]:
    """`exactdp studio` on a free port, ended as Ctrl-C ends it."""
    run = "from exactdp.apps.cli import main; main()"
    command = [sys.executable, "-c", run, "studio", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            found = re.search(r"http://\S+:\d+/", server.stdout.readline() if server.stdout else "")
            if found is None:
                sys.exit("The studio did not start; call exactdp studio to see why.")
            yield Served(found[0], server.pid)
        finally:
            server.send_signal(signal.SIGINT)
