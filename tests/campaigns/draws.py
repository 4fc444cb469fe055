"""Faults of `exactdp release` (releases.py), each campaign in a process of its own, because it forks."""

from __future__ import annotations

import json
import subprocess
import sys

from campaigns import releases
from campaigns.tally import Tally


def _by_itself(kind: str, count: int, seed: int) -> Tally:
    done = subprocess.run([sys.executable, releases.__file__, kind, str(count)], capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        return Tally(1, [f"seed {seed}: {kind} ended with {done.returncode}: {done.stderr[-500:]}"])
    found = json.loads(done.stdout)
    trials = next(value.values() for value in found.values() if isinstance(value, dict))
    return Tally(sum(trials), [f"seed {seed}: {kind}: {wrong}" for wrong in found["wrong"]])


def races(seed: int) -> Tally:
    """Fifty pairs of processes."""
    return _by_itself("races", 50, seed)


def steps(seed: int) -> Tally:
    """Every second call to the system."""
    return _by_itself("steps", 2, seed)


def kills(seed: int) -> Tally:
    """Twelve whole commands."""
    return _by_itself("kills", 12, seed)
