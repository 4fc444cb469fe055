"""What requirements cost: shadow prices, in epsilon. Estimates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from exactdp.census.budget_costs import cell_costs
from exactdp.census.releases import Release
from exactdp.doubles import Floats
from exactdp.errors import ExactDPError
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr
from exactdp.numerals import about
from exactdp.optimize.accuracy import MARGIN, least_budget
from exactdp.optimize.guarantee import Guarantee
from exactdp.optimize.problem import BudgetProblem
from exactdp.optimize.requirements import BUDGET, FIXED, Requirement
from exactdp.optimize.search import Aim

_AT_BOUND = 3e-3  # budgets are short decimals


@dataclass(frozen=True)
class Price:
    """What a requirement costs: by how much epsilon would fall, about, were it a little looser, all else being equal."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    requirement: Requirement
    looser: str
    """By how much looser: one count more of a margin, 1% more of another error, 1% less of a budget."""
    epsilon: float
    """An estimate."""

    def __str__(self) -> str:
        if not self.epsilon:
            return f"'{self.requirement.text}' costs nothing"
        return f"'{self.requirement.text}': {self.looser} would save {about(self.epsilon, 3)} of epsilon"


def requirement_prices(problem: BudgetProblem, guarantee: Guarantee, aim: Aim, design: Release) -> tuple[Price, ...]:
    """The shadow price of every requirement that sets a least budget, at a design: the slope of epsilon, less what the budget is
    worth elsewhere at the same objective."""
    priced = [one for one in problem.requirements if one.is_accuracy or one.kind in (FIXED, BUDGET)]
    if not priced:
        return ()
    slopes = _epsilon_slopes(problem, guarantee, design)
    if slopes is None:
        return ()
    unknowns = np.array([float(design.table[level][query]) for level, query in problem.cells])
    first = [int(np.flatnonzero(problem.group == g)[0]) for g in range(problem.count)]
    y = unknowns[first] / problem.ratio[first]
    by_epsilon, worth = problem.by_group(slopes), -aim.errors.slopes(y)
    free = (y > problem.low * (1 + _AT_BOUND)) & (y < problem.high * (1 - _AT_BOUND)) & (worth > 0)
    exchange = float(np.median(by_epsilon[free] / worth[free])) if free.any() and not aim.worst else 0.0
    reduced = by_epsilon - exchange * worth
    return tuple(_price(problem, one, y, reduced) for one in priced)


def _price(problem: BudgetProblem, one: Requirement, y: Floats, reduced: Floats) -> Price:
    """Over the groups that the requirement holds at a bound: below, where less budget saves; above, where more does."""
    saved = {-1: np.zeros(problem.count), 1: np.zeros(problem.count)}
    for i in (i for i, cell in enumerate(problem.cells) if cell in one.cells):
        g, ratio = int(problem.group[i]), problem.ratios[i]
        for side, limit in ((-1, problem.lower[i]), (1, problem.upper[i])):
            at = float(limit.value / ratio)
            if limit.by is one and abs(at / y[g] - 1) < _AT_BOUND and side * reduced[g] < 0:
                moved = at / 100
                if one.is_accuracy:
                    bound = one.bound + 1 if one.kind == MARGIN else one.bound * 101 / 100
                    moved = at - float(least_budget(one.kind, bound, problem.kinds[i], float(one.typical)) / ratio)
                saved[side][g] = max(saved[side][g], moved * abs(reduced[g]))
    side = max(saved, key=lambda end: float(saved[end].sum()))
    more = "1% more budget" if side > 0 else "1% less budget"
    looser = "one count more" if one.kind == MARGIN else "1% more" if one.is_accuracy else more
    return Price(one, looser, float(saved[side].sum()))


def _epsilon_slopes(problem: BudgetProblem, guarantee: Guarantee, design: Release) -> Floats | None:
    """d epsilon / d budget of each cell for the worst pair at the first target; none where noise has no such slopes."""
    look = guarantee.look(design)
    one, logs = look.points[0], look.logs[0]
    pair = design.pairs[int(np.argmax(logs))]
    try:
        found = cell_costs(design, pair, epsilon=one.epsilon, blur=0.25).epsilon
    except ExactDPError:
        return None
    return np.array([found[level][query] for level, query in problem.cells])
