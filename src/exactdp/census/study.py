"""A study: every pair of a release on the given grids, and the overall guarantee for any argument."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from exactdp.accounting.budget_cost import BudgetChange, Profile, budget_change
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.budget_costs import CellCosts, cell_costs
from exactdp.census.cell_noise import DISCRETE_GAUSSIAN
from exactdp.census.grids import ARGUMENTS, Grids
from exactdp.census.journal import Finished, Journal
from exactdp.census.overall import Overall
from exactdp.census.overall_answers import OverallAnswers
from exactdp.census.pair_results import Interval, PairResult, PairTable, joined, overall_of, parts, run, slices
from exactdp.census.releases import Release
from exactdp.census.runners import Runner
from exactdp.census.workers import make_runner
from exactdp.census.worst_pair import Candidates
from exactdp.errors import InvalidInputError
from exactdp.notebooks import repr_html
from exactdp.numbers import Number
from exactdp.numerals import counted

_LOG = logging.getLogger(__name__)


def make_study(release: Release, grids: Grids, jobs: int = 1) -> Study:
    """All pairs of a release on the grids; with none, only what answers for any argument."""
    if not any(grids.by_quantity.values()):
        return Study(release, grids, tuple(PairResult(pair, (), (), ()) for pair in release.pairs))
    with make_runner(jobs) as runner:
        return run_study(release, grids, runner)


@steady
def run_study(
    release: Release,
    grids: Grids,
    runner: Runner,
    journal: Journal | None = None,
    done: Callable[[int], None] = lambda pairs: None,
    told: Callable[[str], None] = lambda text: None,
    warned: Callable[[str], None] = lambda text: None,
) -> Study:
    """All pairs of a release on the grids; with a journal, what was finished before is not done again.

    `done` hears how many bounds each part had, `told` how many were finished before, `warned` what was not used and why.
    """
    asked = slices(release, grids) if journal is not None or not runner.is_serial else [grids]
    journals = [None if journal is None else journal.of(part) for part in asked]
    before = [Finished() if one is None else one.read() for one in journals]
    for one, finished in zip(journals, before, strict=True):
        if one is not None and finished.set_aside:
            warned(finished.remark(one.path.name))
    found = [finished.results for finished in before]
    old = sum(len(results) * part.size for part, results in zip(asked, found, strict=True))
    total = len(release.pairs) * grids.size
    if journal is not None:
        _LOG.info("%d of %d bounds are in the journals in %s.", old, total, journal.path.parent.name)
    if 0 < old < total:
        told(f"{old:,} of {total:,} bounds of pairs were finished before.")
    done(old)
    work = [
        (place, part)
        for place, (sub, results) in enumerate(zip(asked, found, strict=True))
        for part in parts(release, sub, [pair for pair in release.pairs if pair not in results], runner)
    ]
    tables = [[PairTable.of(results.values(), sub)] for sub, results in zip(asked, found, strict=True)]
    for place, new in run(release, work, runner) if work else ():
        tables[place].append(new.sound(asked[place]))
        if (kept := journals[place]) is not None:
            kept.add(new)
        done(len(new.pairs) * asked[place].size)
    return Study(release, grids, joined(release, grids, asked, tables))


@steady
@dataclass(frozen=True)
class Study(OverallAnswers):
    """All pairs of a release on grids, and the overall guarantee of the release for any argument."""

    _repr_html_ = repr_html

    release: Release
    grids: Grids
    results: Sequence[PairResult]

    def __str__(self) -> str:
        grids = [counted(len(grid), ARGUMENTS[name]) for name, grid in self.grids.by_quantity.items() if grid]
        on = f", on {', '.join(grids)}" if grids else ""
        return f"Study of {self.release.title}: {counted(len(self.results), 'pair')} of directed paths{on}"

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of allocations, by published numbers."""
        return self.results.pairs if isinstance(self.results, PairTable) else tuple(r.pair for r in self.results)

    def result(self, pair: tuple[int, int]) -> PairResult:
        """What was found for one pair."""
        return self.results[self.pairs.index(pair)]

    def largest(self, quantity: str) -> list[Interval]:
        """Bounds of the largest 'delta' or 'epsilon' over all pairs, on its grid."""
        lower, upper = self.table(quantity)
        return list(zip(lower.max(axis=0).tolist(), upper.max(axis=0).tolist(), strict=True))

    def table(self, quantity: str) -> Bounds:
        """Bounds of 'delta', 'epsilon' or 'beta' for every pair (rows) on its grid (columns)."""
        if quantity not in self.grids.by_quantity:
            raise InvalidInputError(f"A table is one of delta, epsilon, beta. Found {quantity}.")
        table = self.results if isinstance(self.results, PairTable) else PairTable.of(self.results, self.grids)
        lower, upper = table.bounds[quantity]
        return Bounds(lower.copy(), upper.copy())

    @cached_property
    def _overall(self) -> Overall:
        return overall_of(self.release)

    def worst_pair(
        self, *, delta: Number | None = None, epsilon: Number | None = None, alpha: Number | None = None
    ) -> tuple[int, int]:
        """The pair with the largest epsilon at `delta`, the largest delta at `epsilon` or the least beta at `alpha`.

        Where float64 cannot tell, balls of up to 160 digits do (which takes a while where hundreds of pairs agree to 12
        digits); of pairs that agree even then the first is returned. Balls are for discrete Gaussians only: of pairs with
        other noise that float64 cannot tell apart the first is returned, too.
        """
        candidates = Candidates.of(self.release, delta=delta, epsilon=epsilon, alpha=alpha)
        has_balls = all(noise.kind == DISCRETE_GAUSSIAN for noise in self.release.noise.values())
        return candidates.worst() if has_balls else candidates.settled()[0]

    def budget_costs(
        self,
        delta: Number | None = None,
        epsilon: Number | None = None,
        *,
        pair: tuple[int, int] | None = None,
        blur: Number | None = None,
    ) -> CellCosts:
        """What a little budget costs in each cell of the table, at one delta or one epsilon: estimates, for Gaussian noise.

        For one pair of paths, or for the worst one; `blur` as in `Composition.budget_costs`. `budget_change` is certified and for
        every kind of noise.
        """
        return cell_costs(self.release, pair, delta=delta, epsilon=epsilon, blur=blur)

    def budget_change(
        self,
        changes: Mapping[tuple[str, str], Number],
        *,
        delta: Number | None = None,
        epsilon: Number | None = None,
        pair: tuple[int, int] | None = None,
    ) -> BudgetChange:
        """Certified: what changes for the whole release, or for one pair of paths, if cells get so much more budget.

        `changes` is (level, query) -> what is added to the cell's budget in the table; several move budget between cells.
        """
        other = self.release.with_budget(changes)
        designs: tuple[Profile, Profile] = (self, other.account())
        if pair is not None:
            designs = self.release.pair(*pair), other.pair(*pair)
        return budget_change(*designs, delta=delta, epsilon=epsilon)
