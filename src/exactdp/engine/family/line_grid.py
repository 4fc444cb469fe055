"""Pairs of coarse noise, many values and no lattice, on one grid: members are split and transformed once, a pair is a product.

Used where most nodes of a Fourier sum matter and the values of a pair are too many for a list (docs/theory/grid.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp.brackets import Bracket
from exactdp.cache import Recent
from exactdp.doubles import Ints
from exactdp.engine.family.line_contours import LineFamily, Place
from exactdp.engine.grid.convolution import LossGrid, Transform, product
from exactdp.engine.grid.grid_fft import GridFFT, fitting_grid
from exactdp.engine.grid.lists import Copies, listed_copies
from exactdp.engine.lattice.contours import Values
from exactdp.engine.line.methods import threshold
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.sieve.windows import distinct
from exactdp.errors import AccuracyError

AIM = 5e-9
"""The relative width at which a finer grid for all pairs is not worth its time."""

MOST_POINTS = 1 << 21
_HELD = 1 << 25  # complex numbers of the members' transforms
_LISTS_HELD = 64


@dataclass(frozen=True)
class GridFamily:
    """The pairs of a family on grids: one for each rung of each class, long enough for all of its pairs."""

    family: LineFamily
    _members: Recent[tuple[Place, int], Transform] = field(
        default_factory=lambda: Recent(_HELD, lambda t: len(t.p) + len(t.q)), init=False, repr=False, compare=False
    )
    _lists: Recent[tuple[Fraction, int], tuple[Copies, ...]] = field(
        default_factory=lambda: Recent(_LISTS_HELD), init=False, repr=False, compare=False
    )
    _grids: Recent[Place, LossGrid] = field(
        default_factory=lambda: Recent(_LISTS_HELD), init=False, repr=False, compare=False
    )

    @cached_property
    def can_list(self) -> bool:
        """Whether the losses of all mechanisms can be listed."""
        each = TotalLoss(tuple(Part(loss, 1) for loss in self.family.losses))
        return listed_copies(each, Fraction(1), 1) is not None

    def _of_member(self, member: int) -> TotalLoss:
        counts = self.family.counts[member]
        return TotalLoss(tuple(Part(self.family.losses[i], int(counts[i])) for i in np.flatnonzero(counts)))

    def _listed(self, tilt: Fraction, member: int) -> tuple[Copies, ...]:
        """The lists of one member; none for one without mechanisms."""

        def make() -> tuple[Copies, ...]:
            found = listed_copies(self._of_member(member), tilt)
            if found is None:
                raise AccuracyError("The grid does not apply: a mechanism has too many values.")
            return tuple(found)

        return self._lists.get((tilt, member), make)

    def _grid(self, place: Place) -> LossGrid:
        """The grid of a rung, for the pair of its class with the widest loss."""

        def make() -> LossGrid:
            family = self.family
            pairs = family.classes[place[0]]
            widest = int(pairs[np.argmax(family.widest[pairs])])
            rung = family.ladders[place[0]].rung(*place[1:])
            splits = sum(c.count for member in family.both[widest] for c in self._listed(rung.tilt, int(member)))
            return fitting_grid(family.total(widest), rung, splits, MOST_POINTS, AIM)

        return self._grids.get(place, make)

    def _transform(self, place: Place, member: int) -> Transform | None:
        """One member on the grid of a rung; None for one without mechanisms."""
        grid = self._grid(place)
        lists = self._listed(grid.tilt, member)
        if not lists:
            return None
        return self._members.get((place, member), lambda: product([Transform.of_list(grid, c) for c in lists]))

    def evaluate(self, place: Place, pairs: Ints, thresholds: list[Fraction], index: Ints) -> Values:
        """Certified values, one for each pair and threshold (by its index), all on one rung; 0 to 1 where there is none."""
        rung = self.family.ladders[place[0]].rung(*place[1:])
        rows = np.repeat([[0.0], [0.0], [1.0], [0.0]], len(pairs), axis=1)
        for pair in distinct(pairs).tolist():
            mine = np.flatnonzero(pairs == pair)
            try:
                both = [self._transform(place, int(member)) for member in self.family.both[pair]]
                method = GridFFT(self.family.total(pair), rung, product([t for t in both if t is not None]))
                bracket, slope = method.evaluate([threshold(thresholds[i]) for i in index[mine].tolist()])
            except AccuracyError:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                middle = (bracket.lower + bracket.upper) / 2
                rows[:, mine] = [*bracket.rows(), np.nan_to_num(slope / middle, posinf=0.0)]
        return Values(Bracket(rows[0], rows[1], rows[2]), rows[3])
