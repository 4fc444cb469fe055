"""A problem: the cells that may move, alone or together, and between which bounds, with the requirement that says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.releases import Release
from exactdp.doubles import Floats, Ints
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.discrete_gaussian import SMALLEST_SIGMA2
from exactdp.numerals import about, exact
from exactdp.optimize.accuracy import SMALLEST_BUDGET, largest_budget, least_budget
from exactdp.optimize.cells import Cell, cell_name
from exactdp.optimize.requirements import BUDGET, EQUAL, FIXED, MULTIPLE, TIED, Requirement


@dataclass(frozen=True)
class Limit:
    """A bound of a cell's budget, and the requirement that sets it; none where it is the range of noise."""

    value: Fraction
    by: Requirement | None = None

    @property
    def said(self) -> str:
        """Who says so."""
        return "the range of allowed noise" if self.by is None else f"'{self.by.text}'"


@dataclass(frozen=True)
class BudgetProblem:
    """The cells of a release, in groups that move together: a cell's budget is its ratio times its group's unknown."""

    release: Release
    requirements: tuple[Requirement, ...]
    cells: tuple[Cell, ...]
    kinds: tuple[CellNoise, ...]
    group: Ints
    ratios: tuple[Fraction, ...]
    lower: tuple[Limit, ...]
    upper: tuple[Limit, ...]
    steps: tuple[Fraction, ...]
    """Of what a cell's budget must be a multiple; 0 where of nothing."""

    @classmethod
    def of(cls, release: Release, requirements: tuple[Requirement, ...]) -> BudgetProblem:
        """What the requirements say about the budgets; contradictions are refused."""
        cells = release.cells
        kinds = tuple(release.noise.get(cell, USUAL) for cell in cells)
        lower = {cell: Limit(SMALLEST_BUDGET) for cell in cells}
        upper = {cell: Limit(largest_budget(kind)) for cell, kind in zip(cells, kinds, strict=True)}
        steps = dict.fromkeys(cells, Fraction(0))
        kind_of = dict(zip(cells, kinds, strict=True))
        for one in requirements:
            for cell in one.cells:
                low, high = _limits(one, release.table[cell[0]][cell[1]], kind_of[cell])
                if low is not None and low > lower[cell].value:
                    lower[cell] = Limit(low, one)
                if high is not None and high < upper[cell].value:
                    upper[cell] = Limit(high, one)
                if one.kind == MULTIPLE:
                    steps[cell] = one.bound
        group, ratios = _groups(release, requirements, cells)
        result = cls(
            release,
            requirements,
            cells,
            kinds,
            np.array(group),
            tuple(ratios),
            tuple(lower[c] for c in cells),
            tuple(upper[c] for c in cells),
            tuple(steps[c] for c in cells),
        )
        result._refuse_contradictions()
        return result

    def _refuse_contradictions(self) -> None:
        for g in range(self.count):
            (low, i), (high, j) = self._extremes(g)
            if low > high:
                one, two = self.lower[i], self.upper[j]
                needs = f"{one.said} needs a budget of at least {exact(one.value)} in {cell_name(self.cells[i])}"
                tied = "" if i == j else ", with which it is tied"
                raise InvalidInputError(
                    f"The requirements contradict each other: {needs}, and {two.said} allows at most {exact(two.value)} in "
                    f"{cell_name(self.cells[j])}{tied}. Loosen one of them."
                )

    def _extremes(self, g: int) -> tuple[tuple[Fraction, int], tuple[Fraction, int]]:
        """The bounds of a group's unknown, each with the cell that sets it."""
        members = np.flatnonzero(self.group == g).tolist()
        return (
            max((self.lower[i].value / self.ratios[i], i) for i in members),
            min((self.upper[i].value / self.ratios[i], i) for i in members),
        )

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.group.max()) + 1

    @cached_property
    def bounds(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """The least and the most of each group's unknown."""
        found = [self._extremes(g) for g in range(self.count)]
        return tuple(low for (low, _), _ in found), tuple(high for _, (high, _) in found)

    @cached_property
    def low(self) -> Floats:
        """The least of each unknown."""
        return np.array([float(x) for x in self.bounds[0]])

    @cached_property
    def high(self) -> Floats:
        """The most of each unknown."""
        return np.array([float(x) for x in self.bounds[1]])

    @cached_property
    def ratio(self) -> Floats:
        """The ratios as doubles."""
        return np.array([float(x) for x in self.ratios])

    @cached_property
    def is_fixed(self) -> bool:
        """Whether nothing may move."""
        return self.bounds[0] == self.bounds[1]

    def budgets(self, unknowns: Floats) -> Floats:
        """The budgets of all cells."""
        return self.ratio * unknowns[self.group]

    def by_group(self, of_cells: Floats) -> Floats:
        """Slopes by the cells' budgets turned into slopes by the unknowns."""
        found: Floats = np.bincount(self.group, self.ratio * of_cells, self.count).astype(np.float64)
        return found

    def design(self, unknowns: tuple[Fraction, ...]) -> Release:
        """The release with these unknowns."""
        table: dict[str, dict[str, Fraction]] = {level: {} for level in self.release.table}
        for (level, query), ratio, g in zip(self.cells, self.ratios, self.group.tolist(), strict=True):
            table[level][query] = ratio * unknowns[g]
        found = replace(self.release, table=table)
        _refuse_too_little_noise(found)
        return found

    def unknowns(self, design: Release) -> tuple[Fraction, ...]:
        """The unknowns of a design."""
        first = {g: i for i, g in reversed(list(enumerate(self.group.tolist())))}
        cells = [self.cells[first[g]] for g in range(self.count)]
        ratios = [self.ratios[first[g]] for g in range(self.count)]
        return tuple(design.table[level][query] / r for (level, query), r in zip(cells, ratios, strict=True))

    def start(self) -> Floats:
        """The unknowns of the given design, within the bounds."""
        found: Floats = np.clip(np.array([float(x) for x in self.unknowns(self.release)]), self.low, self.high)
        return found


def _refuse_too_little_noise(design: Release) -> None:
    """Refuse budgets that come to more than a cell can have where a path bypasses levels, which gives it theirs as well."""
    if design.budget <= 1 / SMALLEST_SIGMA2 and not design.noise:
        return
    for number, path in design.allocations.items():
        for level, queries in path.table.items():
            for query, budget in queries.items():
                most = largest_budget(path.noise.get((level, query), USUAL))
                if budget > most:
                    raise InvalidInputError(
                        f"The guarantee or the requirements leave less noise than there is: on path {number}, {level} {query} "
                        f"would have a budget of {about(budget)}, and at most {exact(most)} can be used. Ask for a smaller "
                        "epsilon, or bound budgets, such as 'all: budget <= 10'."
                    )


def _limits(one: Requirement, now: Fraction, kind: CellNoise) -> tuple[Fraction | None, Fraction | None]:
    """What a requirement says about the budget of one cell: at least, at most."""
    if one.is_accuracy:
        return least_budget(one.kind, one.bound, kind, float(one.typical)), None
    if one.kind == FIXED:
        return now, now
    if one.kind == BUDGET:
        return (None if one.side == "<=" else one.bound), (None if one.side == ">=" else one.bound)
    return None, None


def _groups(
    release: Release, requirements: tuple[Requirement, ...], cells: tuple[Cell, ...]
) -> tuple[list[int], list[Fraction]]:
    """The group of each cell and its ratio: ties of ties are ties."""
    leader: dict[Cell, Cell] = {cell: cell for cell in cells}
    ratio: dict[Cell, Fraction] = dict.fromkeys(cells, Fraction(1))
    for one in requirements:
        if one.kind not in (TIED, EQUAL):
            continue
        first = one.cells[0]
        for cell in one.cells[1:]:
            # budget of cell = wanted * budget of first
            wanted = Fraction(1)
            if one.kind == TIED:
                wanted = release.table[cell[0]][cell[1]] / release.table[first[0]][first[1]]
            if leader[cell] == leader[first]:
                if ratio[cell] != wanted * ratio[first]:
                    raise InvalidInputError(
                        f"The requirements contradict each other: '{one.text}' ties {cell_name(cell)} to "
                        f"{cell_name(first)}, which "
                        "others tie differently. Leave one of them out."
                    )
                continue
            factor, old = wanted * ratio[first] / ratio[cell], leader[cell]
            for other in cells:
                if leader[other] == old:
                    leader[other], ratio[other] = leader[first], ratio[other] * factor
    numbers: dict[Cell, int] = {}
    group = [numbers.setdefault(leader[cell], len(numbers)) for cell in cells]
    return group, [ratio[cell] for cell in cells]
