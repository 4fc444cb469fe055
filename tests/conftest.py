"""What a system cannot do is skipped here, by marker, with a reason; and which random examples hypothesis draws.

A change is judged by the same examples every time; `make soak` draws fresh ones.
"""

from __future__ import annotations

import os
import signal
import sys

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None)
settings.load_profile("same")

# a job in the background of a shell ignores interrupts, and so would every process that a test starts and interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # and one that outlives its terminal ignores that it has gone
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# commands start twice as fast where Python may keep what it compiled
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

CANNOT = {
    "posix": os.name != "posix" and "this system has no signals, links or processes as Unix has",
    "linux": sys.platform != "linux" and "the memory of a process is known and limited on Linux only",
}

collect_ignore_glob = ["conftest.py", "*/conftest.py"]  # they have no doctests, and two modules of one name


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, reason in CANNOT.items():
        if reason and item.get_closest_marker(marker):
            pytest.skip(reason)


@pytest.hookimpl(optionalhook=True)  # tests of the oldest dependencies run without pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a process of their own, or for a browser."""
    return (os.cpu_count() or 1) + 1
