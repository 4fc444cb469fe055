"""Malformed requests to a running studio: a sentence each, and never a defect. In a process of its own, as a studio is."""

from __future__ import annotations

import subprocess
import sys

import studio_malformed
from campaigns.tally import Tally

_COUNT = 250


def malformed(seed: int) -> Tally:
    """So many requests to one server."""
    command = [sys.executable, studio_malformed.__file__, str(_COUNT), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return Tally(_COUNT)
    return Tally(_COUNT, [f"seed {seed}: {line}" for line in (done.stdout or done.stderr[-2000:]).splitlines()])
