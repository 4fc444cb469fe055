"""Tasks that end or change their process, in a module of their own: a worker that is given one has little to load."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from exactdp import version


class DiesOnce:
    """A task that kills its process the first time that any process comes to item 3."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, item: int) -> int:
        if item == 3 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item


class DiesAlways:
    """A task that no process survives."""

    def __call__(self, item: int) -> int:
        if item == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return item


class ChangesItsCode:
    """A task after which its process says that it computes with other code, as one that joined later might."""

    def __call__(self, item: int) -> int:
        version.__version__ = "0.2.0.dev0+srcdoctored"
        return item
