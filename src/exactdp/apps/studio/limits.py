"""How much one request may ask for, and how long the work may take."""

from __future__ import annotations

from dataclasses import dataclass

BODY_BYTES = 1_500_000
FILE_CHARACTERS = 1_000_000
LEVELS = 50
QUERIES = 200
CELLS = 2_000
PATHS = 100
NUMBER_CHARACTERS = 400
NAME_CHARACTERS = 200
TITLE_CHARACTERS = 1_000
POINTS = 20
"""Deltas, epsilons or alphas in one question."""
REPORT_POINTS = 11
CURVE_POINTS = 401
OVERALL_CURVE_POINTS = 101
ZCDP_POINTS = 41
DIGITS = 200
GRID = 100_000

OFFERED = {
    "body_bytes": BODY_BYTES,
    "file_characters": FILE_CHARACTERS,
    "levels": LEVELS,
    "queries": QUERIES,
    "cells": CELLS,
    "paths": PATHS,
    "number_characters": NUMBER_CHARACTERS,
    "points": POINTS,
    "curve_points": CURVE_POINTS,
    "overall_curve_points": OVERALL_CURVE_POINTS,
    "zcdp_points": ZCDP_POINTS,
    "digits": DIGITS,
    "grid": GRID,
}
"""The limits as the page is told them."""


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
    grace_seconds: float = 0.5
    """What is no longer wanted is ended after so long; a short question mostly ends before, and its worker stays warm."""
    long_seconds: float = 60.0
    report_seconds: float = 180.0
    queue_seconds: float = 120.0
    body_seconds: float = 20.0
    memory_bytes: int = 2 << 30
    """Address space that a worker may take beyond what it has when it starts."""
    resident_bytes: int = 256 << 20
    """A worker that has grown beyond this is replaced after its answer."""
    cache_bytes: int = 32 << 20
