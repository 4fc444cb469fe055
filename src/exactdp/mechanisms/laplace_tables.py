"""Two tables between which real Laplace noise lies: outputs told apart less than they are, and more than they are.

Between the two centres the loss of real Laplace noise has a density. Cut there into cells, its outcomes are merged, one value for
each cell (post-processing), or split between the ends of their cell (forgetting the side undoes it). What is proved of the one is
a lower bound, of the other an upper bound of privacy loss, also on a sample and in any composition (docs/theory/smooth.md, S13).
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from exactdp.balls import BITS, ball, precision
from exactdp.mechanisms.loss import ListedLoss

CELLS = 8192
"""Any number is valid: bounds are apart by about the inverse of its square."""


def split(epsilon: Fraction, cells: int = CELLS) -> ListedLoss:
    """Cells split: discrete Laplace noise of the same epsilon whose sensitivity is the number of cells."""
    with precision(BITS):
        c = ball(epsilon / cells)
        q = (-c).exp()
        inner = -(-c).expm1() / (1 + q)
        values = [c * (cells - 2 * j) for j in range(cells + 1)]
        powers = [(-c * j).exp() for j in range(cells + 1)]
        return ListedLoss(values, [1 / (1 + q), *(inner * p for p in powers[1:-1]), powers[-1] / (1 + q)])


def merged(epsilon: Fraction, cells: int = CELLS) -> ListedLoss:
    """Cells merged: with c = epsilon / cells, cell j has the loss (cells + 1 - 2j) c and the mass e^{-(j-1) c} (1 - e^-c) / 2."""
    with precision(BITS):
        c = ball(epsilon / cells)
        share = -(-c).expm1() / 2
        values = [c * cells, *(c * (cells + 1 - 2 * j) for j in range(1, cells + 1)), -c * cells]
        masses = [share * (-c * (j - 1)).exp() for j in range(1, cells + 1)]
        return ListedLoss(values, [arb(1) / 2, *masses, (-ball(epsilon)).exp() / 2])
