"""How much one request may ask for, and how long the work may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

NAME_CHARACTERS = 200
TITLE_CHARACTERS = 1_000
REPORT_POINTS = 11


class RequestLimits(NamedTuple):
    """How much one request may ask for, as the page is told it. `points`: deltas, epsilons or alphas in one question.

    `exponent`: with it a number has at most 3,400 digits when written out; Python writes up to 4,300.
    """

    body_bytes: int = 1_500_000
    file_characters: int = 1_000_000
    levels: int = 60
    queries: int = 200
    cells: int = 2_000
    paths: int = 100
    number_characters: int = 400
    exponent: int = 3_000
    points: int = 20
    curve_points: int = 401
    overall_curve_points: int = 101
    zcdp_points: int = 41
    digits: int = 200
    grid: int = 100_000


AT_MOST = RequestLimits()


@dataclass(frozen=True)
class WorkLimits:
    """Processes, waiting requests, seconds and bytes of the work behind the API."""

    short_workers: int = 2
    long_workers: int = 2
    report_workers: int = 1
    short_waiting: int = 128
    long_waiting: int = 64
    report_waiting: int = 8
    short_seconds: float = 3.0
    """A short question that takes longer is moved to the long lane."""
    crowded_seconds: float = 1.0
    """The same while others wait for a worker of the short lane."""
    grace_seconds: float = 0.5
    """What is no longer wanted is ended after so long; short questions and epsilon of a release mostly end before, and their
    workers stay warm."""
    long_seconds: float = 60.0
    report_seconds: float = 180.0
    queue_seconds: float = 120.0
    head_seconds: float = 15.0
    """A connection on which the head of a request has not arrived after so long is closed."""
    body_seconds: float = 20.0
    connections: int = 256
    memory_bytes: int = 2 << 30
    """Address space that a worker may take beyond what it has when it starts."""
    resident_bytes: int = 512 << 20
    """A worker that has grown beyond this is replaced after its answer; all pairs of an edited design take about 200 MB."""
    cache_bytes: int = 32 << 20
