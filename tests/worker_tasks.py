"""Tasks that end or change their process, in a module of their own: a worker that is given one has little to load.

The process that made the task is left as it is: there the task waits until another process has come to it.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from exactdp import version

_PATIENCE = 60.0  # seconds until another process has to have come


class _ElsewhereTask:
    """Leaves a mark in every other process, and waits for it in this one."""

    def __init__(self, mark: Path) -> None:
        self.mark, self.home = mark, os.getpid()

    def came_elsewhere(self) -> bool:
        """Whether this is another process."""
        if os.getpid() != self.home:
            return True
        end = time.monotonic() + _PATIENCE
        while not self.mark.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return False


class DiesOnce(_ElsewhereTask):
    """A task that kills its process the first time that any other process comes to item 3 or a later one."""

    def __call__(self, item: int) -> int:
        if self.came_elsewhere() and item >= 3 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item


class DiesAlways(_ElsewhereTask):
    """A task that no other process survives."""

    def __call__(self, item: int) -> int:
        if self.came_elsewhere():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item


class ChangesItsCode(_ElsewhereTask):
    """A task after which its process says that it computes with other code, as one that joined later might."""

    def __call__(self, item: int) -> int:
        if self.came_elsewhere():
            version.__version__ = "0.2.0.dev0+srcdoctored"
            self.mark.touch()
        return item


class FailsElsewhere(_ElsewhereTask):
    """A task that fails in any other process."""

    def __call__(self, item: int) -> int:
        if self.came_elsewhere():
            self.mark.touch()
            raise ZeroDivisionError
        return item
