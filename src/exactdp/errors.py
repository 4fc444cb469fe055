"""The exceptions of exactdp.

ExactDPError
├── InvalidInputError (also a ValueError)   a value was wrong; the text names it and the remedy
├── LatticeTooFineError                     the sum's lattice is too fine for the sieve
├── AccuracyError                           a bound exists but not at the accuracy that was asked for
├── WorkersError                            worker processes were lost, or compute with other code
└── MissingExtraError (also an ImportError) an optional dependency is not installed
"""

from __future__ import annotations

import logging

logging.getLogger("exactdp").addHandler(logging.NullHandler())  # silent until a program listens


class ExactDPError(Exception):
    """The root of every exception that exactdp raises on purpose."""


class InvalidInputError(ExactDPError, ValueError):
    """A value given by the caller is outside what the function accepts."""

    where: dict[str, str] | None = None
    """The place of the value, where it has one: its level and query in a budget file."""


class LatticeTooFineError(ExactDPError):
    """The losses have no common step coarse enough for the sieve to enumerate its nodes."""


class AccuracyWarning(UserWarning):
    """The bounds are proved but wider than a user would expect; the text says how wide and what to do."""


class AccuracyError(ExactDPError):
    """The accuracy asked for was not reached within the limits of the method."""


class WorkersError(ExactDPError):
    """Worker processes were lost, or are not to be trusted with this because they compute with other code."""


class MissingExtraError(ExactDPError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency. Install it with: pip install 'exactdp[{extra}]'.")
        self.feature, self.extra = feature, extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.feature, self.extra)  # what makes it again: workers send errors home
