"""Work that gave no answer, and what is told of it: one sentence for the user, the place of a defect for the log.

WorkError
├── RefusedError    the library refused the input
├── DefectError     an exception that nobody meant to raise
├── TooLongError    the time limit was reached
├── CrashedError    the process ended without an answer
└── FullError       too many requests are waiting
"""

from __future__ import annotations

from exactdp.apps.studio.schema.answers import Place

DEFECT = "The studio failed at this, which is a defect of exactdp. Please report what you asked for."


class WorkError(Exception):
    """Work that gave no answer; the text is one sentence for the user."""

    status = 503
    where: Place | None = None


class RefusedError(WorkError):
    """The library refused the input; where it can be told, at this place."""

    status = 422

    def __init__(self, sentence: str, where: Place | None = None) -> None:
        super().__init__(sentence)
        self.where = where


class DefectError(WorkError):
    """An exception that nobody meant to raise."""

    status = 500


class TooLongError(WorkError):
    """The time limit was reached."""


class CrashedError(WorkError):
    """The process ended without an answer."""


class FullError(WorkError):
    """Too many requests are waiting."""

    status = 429


def place_of(error: Exception) -> str:
    """What kind of exception came from where, without its text, which may hold what a user typed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_qualname}, line {trace.tb_lineno}" if trace is not None else "-"
    return f"{type(error).__name__} in {where}"
