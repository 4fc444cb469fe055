"""What a design must keep: accuracy of cells, bounds on budgets, cells that stay as they are or move together, round budgets.

One requirement is one line of text, `CELLS: CONDITION` (docs/optimize.md):

    County total: margin <= 20          also variance, error (standard error), absolute
    Block: relative <= 10% of 400       the standard error relative to a typical count
    US: budget >= 0.01                  also <= and =
    State; County: fixed                as in the given design
    Tract: tied                         in the proportions of the given design
    Tract: equal                        the same budget in each cell
    all: multiple of 1/1000             round budgets
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.numbers import exact_repr, positive, shown
from exactdp.optimize.accuracy import ABSOLUTE, ERROR, MARGIN, RELATIVE, VARIANCE, in_reach
from exactdp.optimize.cells import Cell, chosen_cells

BUDGET, FIXED, TIED, EQUAL, MULTIPLE = "budget", "fixed", "tied", "equal", "multiple"
_NUMBER = r"(\S+)"
_BOUND = re.compile(rf"({VARIANCE}|{ERROR}|{ABSOLUTE}|{MARGIN})\s*<=\s*{_NUMBER}")
_RELATIVE = re.compile(rf"{RELATIVE}\s*<=\s*([^\s%]+)\s*(%?)\s+of\s+{_NUMBER}")
_BUDGET = re.compile(rf"{BUDGET}\s*(<=|>=|=)\s*{_NUMBER}")
_MULTIPLE = re.compile(rf"{MULTIPLE}\s+of\s+{_NUMBER}")
_FORMS = (
    "margin <= 20, variance <= 9, error <= 3, absolute <= 3, relative <= 10% of 400, budget >= 0.01, fixed, tied, equal or "
    "multiple of 1/1000"
)


@dataclass(frozen=True)
class Requirement:
    """One thing that a design must keep."""

    __repr__ = exact_repr

    text: str
    """As it was written."""
    cells: tuple[Cell, ...]
    kind: str
    """A measure of accuracy, or budget, fixed, tied, equal, multiple."""
    bound: Fraction = Fraction(0)
    """The most of a measure, the bound of a budget, or the step of round budgets."""
    side: str = "<="
    typical: Fraction = Fraction(1)
    """The count that a relative error is relative to."""

    @property
    def is_accuracy(self) -> bool:
        """Whether it bounds the error of counts."""
        return self.kind in (VARIANCE, ERROR, ABSOLUTE, MARGIN, RELATIVE)


def requirement(release: Release, text: str) -> Requirement:
    """The requirement that a text states, for the cells of a release.

    >>> from exactdp.census import release as built_in
    >>> found = requirement(built_in("pl94-units-us"), "County: margin <= 20")
    >>> found.cells, found.kind, found.bound
    ((('County', 'detailed'),), 'margin', Fraction(20, 1))
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"A requirement is a text such as 'County total: margin <= 20'. Found {shown(text)}.")
    where, colon, condition = text.rpartition(":")
    said, what = " ".join(condition.split()), " ".join(text.split())
    if not colon or not said:
        raise InvalidInputError(
            f"A requirement reads CELLS: CONDITION, such as 'County total: margin <= 20'. Found {shown(what) or 'an empty one'}."
        )
    cells = chosen_cells(release, where)
    if found := _BOUND.fullmatch(said):
        return Requirement(what, cells, found[1], _bound(found[2], found[1], what))
    if found := _RELATIVE.fullmatch(said):
        share = _positive(found[1], "A relative error") / (100 if found[2] else 1)
        return Requirement(what, cells, RELATIVE, share, typical=_positive(found[3], "A typical count"))
    if found := _BUDGET.fullmatch(said):
        return Requirement(what, cells, BUDGET, _positive(found[2], "A budget"), found[1])
    if found := _MULTIPLE.fullmatch(said):
        return Requirement(what, cells, MULTIPLE, _positive(found[1], "The step of round budgets"))
    if said in (FIXED, TIED, EQUAL):
        return Requirement(what, cells, said)
    raise InvalidInputError(f"A condition is one of {_FORMS}. Found {shown(said)} in {shown(what)}.")


def read_requirements(release: Release, given: Iterable[str | Requirement]) -> tuple[Requirement, ...]:
    """Several of them, as texts or as they are."""
    if isinstance(given, str):
        raise InvalidInputError(f"Requirements are a list of texts. Found the text {shown(given)}; put it in a list.")
    return tuple(one if isinstance(one, Requirement) else requirement(release, one) for one in given)


def _bound(text: str, measure: str, what: str) -> Fraction:
    if measure != MARGIN:
        return _positive(text, f"The {measure} in {shown(what)}")
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(-1)
    if found < 0:
        raise InvalidInputError(f"A margin is a count from 0 on. Found {shown(text)} in {shown(what)}.")
    return in_reach(found, f"The margin in {shown(what)}", shown(text))


def _positive(text: str, name: str) -> Fraction:
    return in_reach(positive(text, name), name, shown(text))
