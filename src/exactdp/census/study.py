"""A study: every pair of a release on the given grids, and the overall guarantee for any argument."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from exactdp.accounting.tradeoff_curve import MOST_POINTS, TradeOffCurve
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.cell_noise import DISCRETE_GAUSSIAN
from exactdp.census.grids import ARGUMENTS, Grids
from exactdp.census.journal import Finished, Journal
from exactdp.census.overall import Overall
from exactdp.census.pair_results import Interval, PairResult, overall_of, run, sound
from exactdp.census.releases import Release
from exactdp.census.workers import Runner, make_runner
from exactdp.census.worst_pair import Candidates
from exactdp.elementwise import each
from exactdp.errors import InvalidInputError
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, read_alpha, read_delta, read_epsilon, whole
from exactdp.numerals import counted
from exactdp.widths import checked, log_widths, warn_if_wide

_LOG = logging.getLogger(__name__)
_REMEDY = "Ask the pair that matters by itself, release.pair(i, j), for narrower ones."


def make_study(release: Release, grids: Grids, jobs: int = 1) -> Study:
    """All pairs of a release on the grids; with none, only what answers for any argument."""
    if not any(grids.by_quantity.values()):
        return Study(release, grids, tuple(PairResult(pair, (), (), ()) for pair in release.pairs))
    with make_runner(jobs) as runner:
        return run_study(release, grids, runner)


def run_study(
    release: Release,
    grids: Grids,
    runner: Runner,
    journal: Journal | None = None,
    done: Callable[[int], None] = lambda pairs: None,
    told: Callable[[str], None] = lambda text: None,
    warned: Callable[[str], None] = lambda text: None,
) -> Study:
    """All pairs of a release on the grids; with a journal, those finished before are not done again.

    `done` hears how many pairs each part had, `told` how many were finished before, `warned` what was not used and why.
    """
    before = Finished() if journal is None else journal.read()
    if journal is not None and before.set_aside:
        warned(before.remark(journal.path.name))
    found = before.results
    left = [pair for pair in release.pairs if pair not in found]
    if journal is not None:
        _LOG.info("%d of %d pairs are in the journal %s.", len(found), len(release.pairs), journal.path.name)
    if found and left:
        told(f"{len(found)} of {len(release.pairs)} pairs were finished before.")
    done(len(found))
    for part in run(release, grids, runner, left) if left else ():
        new = [sound(result, grids) for result in part]
        if journal is not None:
            journal.add(new)
        found.update((result.pair, result) for result in new)
        done(len(part))
    return Study(release, grids, tuple(found[pair] for pair in release.pairs))


@steady
@dataclass(frozen=True)
class Study:
    """All pairs of a release on grids, and the overall guarantee of the release for any argument."""

    _repr_html_ = repr_html

    release: Release
    grids: Grids
    results: tuple[PairResult, ...]

    def __str__(self) -> str:
        grids = [counted(len(grid), ARGUMENTS[name]) for name, grid in self.grids.by_quantity.items() if grid]
        on = f", on {', '.join(grids)}" if grids else ""
        return f"Study of {self.release.title}: {counted(len(self.results), 'pair')} of directed paths{on}"

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of allocations, by published numbers."""
        return tuple(r.pair for r in self.results)

    def result(self, pair: tuple[int, int]) -> PairResult:
        """What was found for one pair."""
        return self.results[self.pairs.index(pair)]

    def largest(self, quantity: str) -> list[Interval]:
        """Bounds of the largest 'delta' or 'epsilon' over all pairs, on its grid."""
        columns = zip(*(getattr(r, quantity) for r in self.results), strict=True)
        return [(max(low for low, _ in column), max(high for _, high in column)) for column in columns]

    def table(self, quantity: str) -> Bounds:
        """Bounds of 'delta', 'epsilon' or 'beta' for every pair (rows) on its grid (columns)."""
        if quantity not in self.grids.by_quantity:
            raise InvalidInputError(f"A table is one of delta, epsilon, beta. Found {quantity}.")
        kind = float if self.grids.digits is None else object
        shape = (len(self.results), len(self.grids.by_quantity[quantity]))
        ends = [[[i[end] for i in getattr(r, quantity)] for r in self.results] for end in (0, 1)]
        return Bounds(*(np.array(e, dtype=kind).reshape(shape) for e in ends))

    @cached_property
    def _overall(self) -> Overall:
        return overall_of(self.release)

    def delta(self, epsilon: Any) -> Any:
        """The least delta that the whole release satisfies at this epsilon, rounded up (scalar or array)."""
        return self.delta_bounds(epsilon).upper

    def delta_bounds(self, epsilon: Any) -> Bounds:
        """Certified bounds of the largest delta(epsilon) over all pairs."""

        def one(e: Fraction | float) -> tuple[float, float]:
            if isinstance(e, float):
                return (0.0, 0.0) if e > 0 else (1.0, 1.0)
            return self._overall.delta(e)

        return checked("delta", each(epsilon, one, read_epsilon), _REMEDY)

    def log_delta(self, epsilon: Any) -> Any:
        """Natural logarithm of the upper bound of delta(epsilon), also below the double range."""
        return self.log_delta_bounds(epsilon).upper

    def log_delta_bounds(self, epsilon: Any) -> Bounds:
        """Certified bounds of the logarithm of the largest delta(epsilon), also below the double range."""

        def one(e: Fraction | float) -> tuple[float, float]:
            if isinstance(e, float):
                return (-math.inf, -math.inf) if e > 0 else (0.0, 0.0)
            return self._overall.log_delta(e)

        found = each(epsilon, one, read_epsilon)
        warn_if_wide("delta", log_widths(*(np.atleast_1d(end) for end in found)).ravel(), _REMEDY)
        return found

    def epsilon(self, delta: Any) -> Any:
        """The least epsilon that the whole release satisfies at this delta, rounded up (scalar or array)."""
        return self.epsilon_bounds(delta).upper

    def epsilon_bounds(self, delta: Any) -> Bounds:
        """Certified bounds of the largest epsilon(delta) over all pairs."""

        def one(d: Fraction) -> tuple[float, float]:
            if d == 0 or d >= 1:
                return self._overall.greatest_loss if d == 0 else (-math.inf, -math.inf)
            return self._overall.epsilon(d)

        return checked("epsilon", each(delta, one, read_delta), _REMEDY)

    def beta(self, alpha: Any) -> Any:
        """The overall trade-off curve, the lower convex envelope of all pairs', rounded down (scalar or array)."""
        return self.beta_bounds(alpha).lower

    def beta_bounds(self, alpha: Any) -> Bounds:
        """Certified bounds of the overall trade-off curve at alpha."""

        def one(a: Fraction) -> tuple[float, float]:
            return (1.0 - float(a),) * 2 if a in (0, 1) else self._overall.beta(a)

        return checked("beta", each(alpha, one, read_alpha), _REMEDY)

    def tradeoff(self, num: int = 201) -> TradeOffCurve:
        """Points for plotting on or below the overall curve, convex, from (0, 1) to (1, 0), at most `num`: a TradeOffCurve."""
        return self._overall.curve(whole(num, "num", 5, MOST_POINTS), _REMEDY)

    def worst_pair(
        self, *, delta: Number | None = None, epsilon: Number | None = None, alpha: Number | None = None
    ) -> tuple[int, int]:
        """The pair with the largest epsilon at `delta`, the largest delta at `epsilon` or the least beta at `alpha`.

        Where float64 cannot tell, balls of up to 80 digits do (which takes a while where hundreds of pairs agree to 12
        digits); of pairs that are equal even then the first is returned. Balls are for discrete Gaussians only: of pairs with
        other noise that float64 cannot tell apart the first is returned, too.
        """
        candidates = Candidates.of(self.release, delta=delta, epsilon=epsilon, alpha=alpha)
        has_balls = all(noise.kind == DISCRETE_GAUSSIAN for noise in self.release.noise.values())
        return candidates.worst() if has_balls else candidates.settled()[0]
