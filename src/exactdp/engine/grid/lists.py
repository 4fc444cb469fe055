"""Which values are put on the grid: the parts of a loss under a tilt as few lists, since every list costs one splitting.

All copies of a mechanism on a lattice are one list; a table is combined with itself while that is short; short lists are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactdp.balls import BITS, precision
from exactdp.doubles import UNIT
from exactdp.engine.line.enumeration import ListedValues, fold
from exactdp.engine.line.total_loss import Part, TotalLoss

LONGEST = 600_000
"""Values of one list: more take longer than the FFT that they save."""

LEFT_OUT = 1e-18
"""Tilted mass that each step may leave out: far below the rounding of an FFT."""


@dataclass(frozen=True)
class Copies:
    """A list of values under a tilt, to be taken `count` times."""

    values: ListedValues
    count: int


def listed_copies(total: TotalLoss, tilt: Fraction, longest: int = LONGEST) -> list[Copies] | None:
    """Every part of a loss as lists of at most about `longest` values; None if some part cannot be listed."""
    singles: list[ListedValues] = []
    many: list[Copies] = []
    for part in total.parts:
        found = _of_part(part, tilt, longest)
        if found is None:
            return None
        for copies in found:
            if copies.count == 1:
                singles.append(copies.values)
            else:
                many.append(copies)
    return [*(Copies(values, 1) for values in joined(singles, longest)), *many]


def joined(lists: list[ListedValues], longest: int = LONGEST) -> list[ListedValues]:
    """The same in fewer lists: each is joined to the longest one that stays within the limit."""
    found: list[ListedValues] = []
    for values in sorted(lists, key=lambda v: -len(v.values)):
        sizes = [len(other.values) * len(values.values) for other in found]
        fitting = [i for i, size in enumerate(sizes) if size <= longest]
        if fitting:
            best = max(fitting, key=lambda i: sizes[i])
            found[best] = found[best].joined(values, LEFT_OUT)
        else:
            found.append(values)
    return found


def _of_part(part: Part, tilt: Fraction, longest: int) -> list[Copies] | None:
    with precision(BITS):
        tilted = part.loss.tilted(tilt)
        if tilted.spread:
            return None
        if not tilted.units and part.loss.is_constant:
            one = np.ones(1)
            return [Copies(ListedValues(part.count * tilted.anchor, np.zeros(1), one, 0.0, 0.0, 0.0), 1)]
        atoms = tilted.atoms(LEFT_OUT) if len(tilted.units) == 1 else None
        if atoms is not None:
            folded = fold(atoms, part.count)
            atoms, count = (atoms, part.count) if folded is None or len(folded.weights) > longest else (folded, 1)
            losses = atoms.positions.astype(np.float64) * float(tilted.units[0].mid())
            error = 3 * UNIT * float(np.max(np.abs(losses)))
            anchor = tilted.anchor * (part.count // count)
            rounding = atoms.relative, atoms.missing, atoms.absolute
            return [Copies(ListedValues(anchor, losses, atoms.weights, error, *rounding), count)]
        listed = tilted.values()
        if listed is None:
            return None
        single = ListedValues(tilted.anchor, *listed)
    return _multiplied(single, part.count, longest)


def _multiplied(single: ListedValues, count: int, longest: int) -> list[Copies]:
    """Some copies of a table as one list, taken as often as they fit, and the rest of the copies."""
    together, power = 1, single
    while together < count and len(power.values) * len(single.values) <= longest:
        together, power = together + 1, power.joined(single, LEFT_OUT)
    often, rest = divmod(count, together)
    found = [Copies(power, often)]
    if rest:
        found += _multiplied(single, rest, longest)
    return found
