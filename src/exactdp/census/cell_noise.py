"""The noise of a query's cells: its kind, what one record can change in a cell, and how many cells one record touches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import LARGEST_SENSITIVITY, DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import root_up, shown, whole

DISCRETE_GAUSSIAN, GAUSSIAN, DISCRETE_LAPLACE = "discrete gaussian", "gaussian", "discrete laplace"
KINDS = (DISCRETE_GAUSSIAN, GAUSSIAN, DISCRETE_LAPLACE)
MOST_CELLS_TOUCHED = 1_000_000


@steady
@dataclass(frozen=True)
class CellNoise:
    """How the cells of one query are answered; the amount of noise follows from the budget rho that the table holds.

    A Gaussian of either kind has sigma2 = 1 / rho. A discrete Laplace has the scale b with b^2 = 1 / rho: exactly where that is a
    fraction, otherwise rounded up to 15 significant digits, so that the noise is never less.

    >>> CellNoise("discrete laplace", sensitivity=2).mechanism(Fraction(1, 9))
    DiscreteLaplace('3', sensitivity=2)
    """

    _repr_html_ = repr_html

    kind: str = DISCRETE_GAUSSIAN
    sensitivity: int = 1
    """The most that one record can change in a cell."""
    cells: int = 1
    """How many cells of the query one record touches: so many mechanisms."""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise InvalidInputError(
                f"The noise of a query must be one of {', '.join(KINDS)}. Found {shown(self.kind)}."
            )
        object.__setattr__(self, "sensitivity", whole(self.sensitivity, "sensitivity", 1, LARGEST_SENSITIVITY))
        object.__setattr__(self, "cells", whole(self.cells, "cells", 1, MOST_CELLS_TOUCHED))

    def mechanism(self, rho: Fraction) -> Mechanism:
        """The mechanism of one cell with this budget; refused where there is no such noise."""
        if self.kind == DISCRETE_LAPLACE:
            return DiscreteLaplace(root_up(1 / rho), self.sensitivity)
        return (DiscreteGaussian if self.kind == DISCRETE_GAUSSIAN else Gaussian)(1 / rho, self.sensitivity)


USUAL = CellNoise()
"""What a query has where nothing else is said: discrete Gaussian noise on one cell that one record changes by 1."""
