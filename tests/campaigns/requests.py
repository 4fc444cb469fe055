"""Malformed requests to a running studio: a sentence each, and never a defect."""

from __future__ import annotations

import studio_malformed
from campaigns.tally import Tally
from exactdp.apps.studio.limits import WorkLimits
from studio_server import Studio


def malformed(seed: int) -> Tally:
    """Two hundred and fifty requests to one server."""
    studio = Studio(WorkLimits(long_seconds=20), studio_malformed.answered)
    try:
        statuses, wrong = studio_malformed.campaign(studio, 250, seed)
    finally:
        studio.close()
    return Tally(statuses.total(), [f"seed {seed}: {text}" for text in wrong])
