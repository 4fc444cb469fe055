"""Public calls of the library with edge values: a valid answer or a documented refusal."""

from __future__ import annotations

import edge_calls
from campaigns.tally import Tally


def edges(seed: int) -> Tally:
    """Three hundred calls."""
    seen, faults = edge_calls.campaign(300, seed)
    return Tally(seen.total() + len(faults), [f"seed {seed}: {fault}" for fault in faults])
