"""What a study says in the numbers that people ask for: epsilon, conversions, worst pairs, power, savings, the proxy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from exactdp.census.grids import ALPHAS
from exactdp.census.pair_results import Interval
from exactdp.census.releases import Release
from exactdp.census.runners import Runner
from exactdp.census.savings import Saving, level_pair, level_saving, overall_saving
from exactdp.census.study import Study
from exactdp.census.worst_pair import Candidates
from exactdp.guarantees.calibration import GRID
from exactdp.guarantees.comparison import other_accounts
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.numbers import exact_repr, rational
from exactdp.numerals import about, at_least, at_most, exact

_MOST_QUOTED = 12  # rows of a table that people read


class BesideZcdp:
    """What a row that has epsilon and the savings says of the budget that zCDP states: how much of it is not used."""

    epsilon: Interval
    saved_simple: Saving
    saved_optimal: Saving

    @property
    def unused_simple(self) -> Fraction | None:
        """The share of the stated epsilon that is not used, at least: 1 - exact / stated, by the simple conversion.

        None where one of them is not positive, so that there is no share.
        """
        return _unused(self.epsilon, self.saved_simple.epsilon)

    @property
    def unused_optimal(self) -> Fraction | None:
        """The same by the optimal conversion."""
        return _unused(self.epsilon, self.saved_optimal.epsilon)


def _unused(exact: Interval, stated: Fraction) -> Fraction | None:
    """1 - exact / stated, rounded down to a multiple of 1 / GRID: a share of what is stated that is proved not to be used.

    What zCDP states is never less than the exact value, so the share is at least 0.
    """
    used = Fraction(exact[1])
    if used <= 0 or stated <= 0:
        return None
    return Fraction(max(math.floor((1 - used / stated) * GRID), 0), GRID)


@dataclass(frozen=True)
class EpsilonRow(BesideZcdp):
    """epsilon at one delta: certified overall bounds, the usual conversions, the worst pair, the savings."""

    __repr__ = exact_repr

    delta: Fraction
    epsilon: Interval
    zcdp_simple: float
    zcdp_optimal: float
    gaussian: float
    worst_pair: tuple[int, int]
    tied: int
    """Pairs that float64 could not tell apart and that were not worth telling apart; 1 where the worst pair is certain."""
    proxy: Interval
    """epsilon of the full path with itself."""
    saved_simple: Saving
    saved_optimal: Saving

    def __str__(self) -> str:
        return (
            f"epsilon at delta = {exact(self.delta)}: at most {at_most(self.epsilon[1])}, worst pair {self.worst_pair}; "
            f"zCDP {at_most(self.zcdp_optimal)} (optimal) or {at_most(self.zcdp_simple)} (simple), "
            f"Gaussian formula {about(self.gaussian)} (an estimate)"
        )


@dataclass(frozen=True)
class PowerRow:
    """The best test at level alpha: certified bounds of its type II error, and what zCDP would allow."""

    __repr__ = exact_repr

    alpha: Fraction
    beta: Interval
    zcdp_beta: float

    def __str__(self) -> str:
        misses = f"at least {at_least(self.beta[0])}"
        return f"beta at alpha = {exact(self.alpha)}: {misses}; zCDP {at_least(self.zcdp_beta)}"


@dataclass(frozen=True)
class LevelRow(BesideZcdp):
    """One geographic level of the full path on its own."""

    __repr__ = exact_repr

    level: str
    rho: Fraction
    delta: Fraction
    saved_simple: Saving
    saved_optimal: Saving
    epsilon: Interval

    def __str__(self) -> str:
        return f"{self.level} on its own, rho = {exact(self.rho)}: {self.saved_simple}"


@dataclass(frozen=True)
class Summary:
    """The tables of a study."""

    __repr__ = exact_repr

    epsilons: tuple[EpsilonRow, ...]
    powers: tuple[PowerRow, ...]
    levels: tuple[LevelRow, ...]

    @property
    def quoted_powers(self) -> tuple[PowerRow, ...]:
        """The powers that a table shows: all, or of very many those nearest to the usual alphas."""
        if len(self.powers) <= _MOST_QUOTED:
            return self.powers
        nearest = {min(self.powers, key=lambda row: abs(row.alpha - Fraction(usual))) for usual in ALPHAS}
        return tuple(row for row in self.powers if row in nearest)

    def __str__(self) -> str:
        return "\n".join(str(row) for row in (*self.epsilons, *self.quoted_powers, *self.levels))


def summarize(
    study: Study, runner: Runner, level_delta: Fraction, told: Callable[[str], None] = lambda text: None
) -> Summary:
    """The summary of a study with a grid of deltas and one of alphas; `told` hears what is being done."""
    release, grids = study.release, study.grids
    told("noise that could be saved")
    savings = dict(runner.map(partial(_savings, release), grids.deltas))
    told("worst pairs")
    overall, proxy = study.largest("epsilon"), study.result(release.proxy_pair)
    rows = []
    for i, delta in enumerate(grids.deltas):
        worst, tied = Candidates.among(release, grids, study.results, "epsilon", i).settled()
        others = other_accounts(release.rho, "delta", delta)
        stated = (others["zcdp_simple"], others["zcdp_optimal"], others["gaussian"])
        rows.append(EpsilonRow(delta, overall[i], *stated, worst, tied, proxy.epsilon[i], *savings[delta]))
    told("trade-off curve")
    alphas = list(grids.alphas)
    betas = zip(*(end.tolist() for end in study.beta_bounds(alphas)), strict=True)
    zcdp = zcdp_beta(release.rho, alphas).tolist()
    powers = [PowerRow(*row) for row in zip(alphas, betas, zcdp, strict=True)]
    told("geographic levels")
    levels = [_level_row(release, level, level_delta) for level in release.table]
    return Summary(tuple(rows), tuple(powers), tuple(levels))


def _level_row(release: Release, level: str, delta: Fraction) -> LevelRow:
    part = level_pair(release, level)
    rho = Fraction(part.rho)
    simple, optimal = (level_saving(release, level, at, delta) for at in _targets(rho, delta))
    low, high = part.epsilon_bounds(delta)
    return LevelRow(level, rho, delta, simple, optimal, (low, high))


def _savings(release: Release, delta: Fraction) -> tuple[Fraction, list[Saving]]:
    return delta, [overall_saving(release, target, delta) for target in _targets(release.rho, delta)]


def _targets(rho: Fraction, delta: Fraction) -> list[Fraction]:
    """What zCDP states, by the simple and by the optimal conversion."""
    return [rational(epsilon(rho, delta), "epsilon") for epsilon in (zcdp_epsilon_simple, zcdp_epsilon)]
