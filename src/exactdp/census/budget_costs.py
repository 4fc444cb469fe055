"""What budget costs in a design: derivatives of epsilon and delta by every cell of the table, for one pair of paths.

The budget of a cell is the table's, 1 / sigma2 of its noise on a path that bypasses nothing. Along each of the pair's paths it
moves other budgets as well, by the bypass rule; the chain rule is exact (`by_table` in census/spine.py).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.census.cell_noise import USUAL
from exactdp.census.releases import Allocation, Release
from exactdp.census.spine import by_table
from exactdp.census.worst_pair import Candidates
from exactdp.guarantees.neighbours import REPLACE
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_repr
from exactdp.numerals import about, exact

CellSlopes = Mapping[str, Mapping[str, float]]
"""Level -> query -> slope by the budget of that cell."""

STEP_BLUR = Fraction(1, 20)
"""A `blur` for what a step of budget costs: epsilon of coarse noise ripples as budget grows, and a slope in a ripple
is not what the step costs. It raises epsilon by next to nothing."""

_LEAST_LOG = -745.0


@steady
@dataclass(frozen=True)
class CellCosts:
    """Estimates of what the budget of each cell of a table costs, for one pair of directed paths. Not bounds.

    `epsilon` is level -> query -> d epsilon / d budget at fixed delta, `log_delta` the same for d log delta at fixed epsilon, and
    `epsilon_errors`, `log_delta_errors` say how far off each may be (see `BudgetCosts`). Budgets are the table's: 1 / sigma2.
    `pair` is the one asked for or the worst; `tied` lists all that cannot be told from the worst in float64. Where these are
    several the design's own derivative in a direction is the largest of theirs.
    """

    _repr_html_ = repr_html
    __repr__ = exact_repr

    given: str
    value: Fraction
    pair: tuple[int, int]
    tied: tuple[tuple[int, int], ...]
    at: tuple[float, float]
    """epsilon and log delta at which the derivatives are taken."""
    epsilon: CellSlopes
    epsilon_errors: CellSlopes
    log_delta: CellSlopes
    log_delta_errors: CellSlopes

    @property
    def delta(self) -> CellSlopes:
        """d delta / d budget at fixed epsilon."""
        size = math.exp(max(self.at[1], _LEAST_LOG))
        return {level: {q: size * slope for q, slope in queries.items()} for level, queries in self.log_delta.items()}

    def __str__(self) -> str:
        lines = [
            f"  {level}, {query}: {about(slope)} of epsilon, {about(self.log_delta[level][query])} of log delta"
            for level, queries in self.epsilon.items()
            for query, slope in queries.items()
        ]
        at = f"{self.given} = {exact(self.value)}, paths {self.pair[0]} and {self.pair[1]}"
        return "\n".join([f"Estimates per unit of a cell's budget at {at}", *lines])


def cell_costs(
    release: Release,
    pair: tuple[int, int] | None = None,
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    blur: Number | None = None,
) -> CellCosts:
    """The costs of all cells for one pair, or for the worst pair of the release at this delta or epsilon."""
    tied: tuple[tuple[int, int], ...] = () if pair is None else (pair,)
    if pair is None:
        tied = tuple(sorted(Candidates.of(release, delta=delta, epsilon=epsilon).bounds))
        pair = tied[0]
    costs = release.pair(*pair).budget_costs(delta, epsilon, blur=blur)
    numbers = pair if release.relation == REPLACE else pair[:1]
    paths = [(_rates(release.allocations[k]), release.allocations[k].bypassed, n) for k, n in Counter(numbers).items()]

    def of(column: tuple[float, ...], sizes: bool = False) -> CellSlopes:
        slopes = {m: Fraction(slope) for m, slope in zip(costs.mechanisms, column, strict=True)}
        total = {level: dict.fromkeys(queries, Fraction(0)) for level, queries in release.table.items()}
        for rates, bypassed, times in paths:
            own = {level: {q: rate * slopes[m] for q, (rate, m) in row.items()} for level, row in rates.items()}
            for level, row in by_table(release.table, bypassed, own, sizes).items():
                for query, slope in row.items():
                    total[level][query] += times * slope
        return {level: {query: float(slope) for query, slope in row.items()} for level, row in total.items()}

    return CellCosts(
        costs.given,
        costs.value,
        pair,
        tied,
        (costs.epsilon, costs.log_delta),
        of(costs.epsilon_per_rho),
        of(costs.epsilon_errors, sizes=True),
        of(costs.log_delta_per_rho),
        of(costs.log_delta_errors, sizes=True),
    )


def _rates(path: Allocation) -> dict[str, dict[str, tuple[Fraction, Mechanism]]]:
    """d rho / d budget of all that a record touches in each query of a path, D^2 / 2 for each cell, and its mechanism."""
    result: dict[str, dict[str, tuple[Fraction, Mechanism]]] = {}
    for level, queries in path.table.items():
        result[level] = {}
        for query in queries:
            noise = path.noise.get((level, query), USUAL)
            rate = Fraction(noise.cells * noise.sensitivity**2, 2)
            result[level][query] = rate, path.mechanism(level, query)
    return result
