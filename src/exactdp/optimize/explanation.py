"""Why epsilon is what it is: what each cell costs and buys, what is due to the total and what to the shape, and the worst pair.

Costs and gains are estimates for a step of budget (derivatives, docs/theory/derivatives.md); epsilon itself is certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from exactdp.arithmetic_state import steady
from exactdp.census.budget_costs import STEP_BLUR, cell_costs
from exactdp.census.cell_noise import DISCRETE_LAPLACE, USUAL
from exactdp.census.margins import CountNoise, noise_of
from exactdp.census.releases import NO_RECORD, Release
from exactdp.census.spine import Table
from exactdp.census.worst_pair import Candidates
from exactdp.errors import InvalidInputError
from exactdp.guarantees.gaussian_estimates import gaussian_epsilon
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_repr, positive, read_share, shown
from exactdp.numerals import about, at_least, at_most, counted, exact

STEP = Fraction(1, 100)
_LARGEST_STEP = 10


@dataclass(frozen=True)
class CellExplanation:
    """One cell: what a step of budget costs and what it buys."""

    __repr__ = exact_repr

    level: str
    query: str
    budget: Fraction
    cost: float
    """epsilon for the step: an estimate."""
    now: CountNoise
    then: CountNoise
    """The noise with the step."""

    @property
    def gain(self) -> float:
        """By what share the standard error falls."""
        return 1 - self.then.standard_error / self.now.standard_error if self.now.standard_error else 0.0

    @property
    def gain_per_epsilon(self) -> float:
        """The share of the standard error that a unit of epsilon buys here, for such a step."""
        return self.gain / self.cost if self.cost > 0 else math.inf


@steady
@dataclass(frozen=True)
class DesignExplanation:
    """Why a design has the epsilon that it has."""

    _repr_html_ = repr_html
    __repr__ = exact_repr

    release: Release
    delta: Fraction
    epsilon: tuple[float, float]
    """Certified bounds, over all pairs."""
    pair: tuple[int, int]
    tied: tuple[tuple[int, int], ...]
    """All that cannot be told from the worst in float64."""
    total: float
    """epsilon of the continuous Gaussian with the total rho of this pair, which is all that the total says: an estimate."""
    full: tuple[float, float]
    """Certified bounds of epsilon of the full path with itself, for comparison."""
    step: Fraction
    cells: tuple[CellExplanation, ...]

    @property
    def shape(self) -> float:
        """What of epsilon is due to the shape of the noise, beyond the total: an estimate, mostly small, of either sign."""
        return self.epsilon[1] - self.total

    @property
    def bargains(self) -> tuple[CellExplanation, ...]:
        """The cells, those in which a little budget buys most first."""
        return tuple(sorted(self.cells, key=lambda cell: -cell.gain_per_epsilon))

    def paths(self) -> list[str]:
        """The paths of the worst pair, drawn: bypassed levels in brackets, and who has their budget."""
        return [path_drawing(self.release, number) for number in dict.fromkeys(self.pair) if number != NO_RECORD]

    @property
    def statement(self) -> str:
        """Where epsilon comes from, and why the worst pair is the worst."""
        return (
            f"epsilon is at most {at_most(self.epsilon[1])} at delta = {exact(self.delta)}: {about(self.total)} is what a "
            f"continuous Gaussian of the same total would have, {about(self.shape, 3)} is due to the shape. {self._worst}"
        )

    @property
    def _worst(self) -> str:
        if len(self.release.pairs) == 1:
            return "There is one path only."
        who = f"the pair {self.pair[0]}, {self.pair[1]}" if self.pair[1] != NO_RECORD else f"path {self.pair[0]}"
        tied = (
            "" if len(self.tied) == 1 else f" (with {counted(len(self.tied) - 1, 'other')} that cannot be told from it)"
        )
        if self.pair == self.release.proxy_pair:
            return f"The worst is {who}{tied}, which bypasses nothing."
        return f"The worst is {who}{tied}; the full path alone has at least {at_least(self.full[0])}.{self._reason}"

    @property
    def _reason(self) -> str:
        """What sets the pair apart from the others: its total, or the coarsest of its noise. Said of usual noise only."""
        if self.release.noise or len(self.tied) == len(self.release.pairs):
            return ""
        paths = {number: _most(path.table) for number, path in self.release.allocations.items()}
        own = max((paths[number] for number in self.pair if number != NO_RECORD), default=Fraction(0))
        full = paths[self.release.full_path]
        if own == full:
            return ""
        return (
            " All pairs have the same total, so that only the shape tells them apart: the coarsest noise of the worst one has a "
            f"sigma2 of {about(1 / own)}, that of the full path {about(1 / full)}."
        )

    def __str__(self) -> str:
        return "\n".join([self.statement, *self.paths()])


def _most(table: Table) -> Fraction:
    """The largest budget of a cell."""
    return max(budget for queries in table.values() for budget in queries.values())


def path_drawing(release: Release, number: int) -> str:
    """One path from top to bottom with the budget of each level: US 0.1 > [State] > County 0.2.

    >>> from exactdp.census import release as built_in
    >>> path_drawing(built_in("dhc-persons-us"), 6)[:50]
    'path 6: US 0.0949 > State 4.8673 (own 1.2987) > [C'
    """
    path = release.allocations[number]
    parts = []
    for level in release.table:
        if level in path.table:
            own = sum(release.table[level].values(), Fraction(0))
            now = sum(path.table[level].values(), Fraction(0))
            parts.append(f"{level} {exact(now)}" + (f" (own {exact(own)})" if own != now else ""))
        else:
            parts.append(f"[{level}]")
    return f"path {number}: {' > '.join(parts)}"


def _read_step(step: Number) -> Fraction:
    found = positive(step, "step")
    if found > _LARGEST_STEP:
        raise InvalidInputError(
            f"step is a little budget, at most {_LARGEST_STEP}. Found {shown(step)}; leave it out for {exact(STEP)}."
        )
    return found


@steady
def explain(release: Release, *, delta: Number, step: Number = STEP) -> DesignExplanation:
    """Why the epsilon of a design at `delta` is what it is; `step` is the budget whose cost and gain are told for each cell.

    >>> from exactdp.census import release
    >>> found = explain(release("dhc-persons-us"), delta="1e-10")
    >>> block = next(c for c in found.cells if (c.level, c.query) == ("Block", "detailed"))
    >>> f"{block.now.standard_error:.2f} {block.then.standard_error:.2f} {block.cost:.2f}"
    '30.15 9.49 0.03'
    """
    share, by = read_share(delta, "delta"), _read_step(step)
    others = [cell for cell, kind in release.noise.items() if kind.kind == DISCRETE_LAPLACE]
    if others:
        raise InvalidInputError(
            f"What a cell costs is told for Gaussian noise, discrete or not. Found discrete Laplace noise in "
            f"{' '.join(others[0])}; compare designs with exactdp sweep."
        )
    candidates = Candidates.of(release, delta=share)
    tied = tuple(sorted(candidates.bounds))
    ends = candidates.bounds[tied[0]]
    bounds = float(ends[0]), float(max(high for _, high in candidates.bounds.values()))
    costs = cell_costs(release, tied[0], delta=share, blur=STEP_BLUR).epsilon
    full = release.proxy.epsilon_bounds(share)
    cells = []
    for level, queries in release.table.items():
        for query, rho in queries.items():
            kind = release.noise.get((level, query), USUAL)
            cost = costs[level][query] * float(by)
            cells.append(CellExplanation(level, query, rho, cost, noise_of(rho, kind), noise_of(rho + by, kind)))
    pair = release.pair(*tied[0])
    if not math.isfinite(bounds[1]):
        raise InvalidInputError(f"epsilon is infinite at delta = {exact(share)}. Ask at a larger delta.")
    total = float(gaussian_epsilon(math.sqrt(2 * float(pair.rho)), share))
    return DesignExplanation(
        release, share, bounds, tied[0], tied, total, (float(full.lower), float(full.upper)), by, tuple(cells)
    )
