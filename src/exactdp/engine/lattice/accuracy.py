"""How narrow answers are, and what is tried until they are: the widths, the limits and the order.

Where the values of the loss are few and its lattice is fine the list of them comes first (accounting/planner.py). Elsewhere, for
delta, 1 - delta and tails, in this order, each step only where the bounds found before are further apart than RESORT_WIDTH:

    float64         the Fourier sum of the whole composition
    conditioning    a sum over the noise of one coarse mechanism, where the loss comes in clumps (conditioning.py)
    balls           the Fourier sum in balls, RESORT_DIGITS digits, if it has at most RESORT_WORK nodes times groups

Others go on from there, each in its own file; what is wide is asked again, and the narrowest ends are kept:

    beta            its tails in balls, where it is wider than RESORT_WIDTH_BETA (accounting/enclosures.py)
    epsilon         its ends in balls, where it is wide (widths.py; accounting/enclosures.py)
    a pair          contours of its own, where those that pairs share leave it wider than these two (accounting/pairs.py)
    all of them     the methods on the line as well, where they are still wide (widths.py; accounting/planner.py): wider than
                    ACCURACY where the values of the loss are few, so that a list of them costs next to nothing
    on the line     the next method that applies, where one leaves it wide (engine/line/methods.py)

What is wide in the end is returned with a warning: proved all the same.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from enum import Enum, auto
from typing import TypeVar

import numpy as np

from exactdp.brackets import Bracket, Point, overwrite
from exactdp.engine.lattice.lattice import Lattice
from exactdp.errors import AccuracyError, LatticeTooFineError

ACCURACY = 1e-11
"""The relative width that bounds of delta and beta in doubles keep to, where these steps suffice."""

RESORT_WIDTH = 8e-12
RESORT_WIDTH_BETA = 0.95 * ACCURACY
RESORT_DIGITS = 14
RESORT_ATTEMPTS = 3
RESORT_WORK = 400_000

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_Found = TypeVar("_Found", Bracket, Point)


class Resort(Enum):
    """The last step that may be tried, from the fastest to the most accurate."""

    NONE = auto()
    CONDITIONING = auto()
    BALLS = auto()


def refine(
    found: _Found, resort: Resort, conditioned: Callable[[int], _Found | None], in_balls: Callable[[int], _Found]
) -> None:
    """Replace what float64 left too wide, place by place, by the next steps up to `resort`."""
    if resort is Resort.NONE:
        return
    wide = np.flatnonzero(found.is_wide(RESORT_WIDTH)).tolist()
    if wide:
        _LOG.debug("float64 left %d answers too wide; finer methods are asked.", len(wide))
    for place in wide:
        better = conditioned(place)
        if resort is Resort.BALLS and (better is None or better.is_wide(RESORT_WIDTH)[0]):
            better = in_balls(place)
        if better is not None:
            overwrite(found, [place], better)


def if_affordable(lattice: Lattice, in_balls: Callable[[int], _T]) -> _T | None:
    """What balls give within the limit on nodes they are called with; None where that is not enough."""
    try:
        return in_balls(RESORT_WORK // len(lattice.groups))
    except (AccuracyError, LatticeTooFineError):
        return None


def beta_is_wide(lower: float, upper: float, width: float) -> bool:
    """Whether bounds of beta are further apart than `width`, relative to beta, unless it is below the normal doubles."""
    return not (upper - lower <= width * upper or upper < sys.float_info.min)
