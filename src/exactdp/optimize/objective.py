"""What is to be small: an error summed over cells with weights, or the largest of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from exactdp.census.cell_noise import USUAL
from exactdp.census.releases import Release
from exactdp.doubles import Floats
from exactdp.errors import InvalidInputError
from exactdp.numbers import Number, exact_repr, positive, rational, shown
from exactdp.optimize.accuracy import (
    ABSOLUTE,
    ERROR,
    MARGIN,
    MEASURES,
    RELATIVE,
    TYPICAL_POWER,
    VARIANCE,
    errors,
    in_reach,
)
from exactdp.optimize.cells import chosen_cells

_LARGEST_WEIGHT = Fraction(10**100)  # beyond it, and below its inverse, sums of errors leave the range of doubles

_SAID = {
    VARIANCE: "variance",
    ERROR: "standard error",
    ABSOLUTE: "absolute error",
    MARGIN: "95% margin",
    RELATIVE: "relative error",
}

_EMPTY: Mapping[str, Number] = MappingProxyType({})


@dataclass(frozen=True)
class Objective:
    """A measure of error, summed over cells with weights; or, with `worst`, the largest of the weighted errors.

    `measure` is variance, error (standard error), absolute, margin or relative (standard error divided by a typical count).
    `weights` maps cells, named as in requirements, to numbers, such as how many counts there are of them; without any every cell
    counts once, and with some a cell that is not named does not count. `typical` maps cells to typical counts, for relative.

    >>> Objective("variance", {"US": 1, "State": 50, "County": 3000})
    Objective(measure='variance', weights={'US': 1, 'State': 50, 'County': 3000}, worst=False, typical={})
    """

    __repr__ = exact_repr

    measure: str = VARIANCE
    weights: Mapping[str, Number] = field(default_factory=dict)
    worst: bool = False
    typical: Mapping[str, Number] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise InvalidInputError(f"A measure of error is one of {', '.join(MEASURES)}. Found {shown(self.measure)}.")
        if self.measure == RELATIVE and not self.typical:
            raise InvalidInputError(
                "The relative error needs typical counts, such as 400 for County. Found none; give them."
            )
        if self.typical and self.measure != RELATIVE:
            raise InvalidInputError(
                f"Typical counts go with the relative error. Found them for the measure {self.measure}; leave them out."
            )

    def cell_weights(self, release: Release) -> Floats:
        """The weight of each cell, in the order of `Release.cells`; for the relative error divided by its typical count."""
        cells = release.cells
        given = dict.fromkeys(cells, Fraction(1) if not self.weights else Fraction(0))
        for text, weight in self.weights.items():
            for cell in chosen_cells(release, text):
                given[cell] = rational(weight, "A weight")
                if given[cell] < 0:
                    raise InvalidInputError(f"A weight must not be negative. Found {shown(weight)} for {shown(text)}.")
                if given[cell] and not 1 / _LARGEST_WEIGHT <= given[cell] <= _LARGEST_WEIGHT:
                    raise InvalidInputError(
                        f"A weight must be 0 or between 1e-100 and 1e100. Found {shown(weight)} for {shown(text)}; "
                        "only the ratios of weights matter."
                    )
        counts: dict[tuple[str, str], Fraction] = {}
        for text, count in self.typical.items():
            typical = in_reach(positive(count, "A typical count"), "A typical count", shown(count), TYPICAL_POWER)
            counts.update(dict.fromkeys(chosen_cells(release, text), typical))
        if self.measure == RELATIVE:
            missing = [cell for cell in cells if given[cell] and cell not in counts]
            if missing:
                raise InvalidInputError(
                    f"The relative error needs a typical count of each cell. Found none for {' '.join(missing[0])}."
                )
        if not any(given.values()):
            raise InvalidInputError("An objective needs a cell with a weight above 0. Found none.")
        return np.array([float(given[cell] / counts.get(cell, Fraction(1))) for cell in cells])

    def value(self, release: Release) -> float:
        """The objective of a design, for the noise on a path that bypasses nothing."""
        cells = release.cells
        budgets = np.array([float(release.table[level][query]) for level, query in cells])
        kinds = [release.noise.get(cell, USUAL) for cell in cells]
        found = errors(self.measure, budgets, kinds)[0] * self.cell_weights(release)
        return float(found.max() if self.worst else found.sum())

    def __str__(self) -> str:
        """What is made small: `of CELLS` where they count equally, `weighted` where they do not.

        >>> str(Objective("margin", {"County": 1}, worst=True)), str(Objective("variance", {"US": 1, "State": 50}))
        ('largest 95% margin of County', 'weighted sum of the variances')
        """
        weights = {rational(weight, "A weight") for weight in self.weights.values()}
        weighted = "weighted " if len(weights) > 1 else ""
        of = f" of {shown('; '.join(self.weights))}" if len(weights) == 1 else ""
        kind = f"largest {weighted}" if self.worst else f"{weighted}sum of the "
        return f"{kind}{_SAID[self.measure]}{'' if self.worst else 's'}{of}"


def number_of_counts(release: Release, cells: Mapping[str, Number]) -> dict[str, Number]:
    """How many counts each cell of the table stands for: the areas of its level times what its query asks in each; 1 where not
    said.

    >>> from exactdp.census import release
    >>> number_of_counts(release("pl94-units-us"), {"County": 3143})["County / detailed"]
    Fraction(3143, 1)
    """
    queries = {query for of_level in release.table.values() for query in of_level}
    given = {" ".join(name.split()): positive(number, "A number of cells") for name, number in cells.items()}
    for name in given:
        if (name in release.table) == (name in queries):
            either = "a level or a query of the design, and not of both" if name in queries else "a level or a query"
            raise InvalidInputError(f"A number of cells is that of {either}. Found {shown(name)}.")
    one = Fraction(1)
    return {f"{level} / {query}": given.get(level, one) * given.get(query, one) for level, query in release.cells}
