"""What budget costs and what it buys: exchange rates of cells, trades between levels at constant epsilon, a frontier."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from exactdp.apps.studio.schema import exchange_answers as answers
from exactdp.apps.studio.schema.answers import UNTIMED
from exactdp.apps.studio.work.designs import Record, about, described, read_grids, release_of
from exactdp.apps.studio.work.pair import quick
from exactdp.census.budget_costs import STEP_BLUR, cell_costs
from exactdp.census.margins import noise_of
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import target
from exactdp.numbers import positive, read_share, shown
from exactdp.numerals import NEAREST, UP, as_fraction, at_most, percent, rounded, whole_text

STEP = Fraction(1, 100)
"""Costs are of so much budget, gains of so much epsilon."""
_LOOKS = 6
_FEW_PATHS = 5  # and at most 15 pairs


def exchange(question: Record) -> answers.ExchangeAnswer:
    """What more budget costs at each cell, in epsilon of the worst pair, and what it buys: less noise. Estimates, not bounds."""
    release = release_of(question["design"])
    with about("delta"):
        delta = read_grids(deltas=[question["delta"]]).deltas[0]
    costs = cell_costs(release, delta=delta, blur=STEP_BLUR)
    cells = [
        _cell(level, query, rho, costs.epsilon[level][query], costs.epsilon_errors[level][query])
        for level, queries in release.table.items()
        for query, rho in queries.items()
    ]
    return {
        "delta": whole_text(delta),
        "pair": list(costs.pair),
        "tied": len(costs.tied),
        "cells": cells,
        **UNTIMED,
    }


def _cell(level: str, query: str, rho: Fraction, slope: float, error: float) -> answers.CellExchange:
    """One cell: epsilon for STEP more budget, and the share of the standard error that STEP more epsilon saves there."""
    own, gain = noise_of(rho), 0.0
    if slope > 0:
        more = noise_of(rho + Fraction(float(STEP) / slope).limit_denominator(10**12))
        gain = 1 - more.standard_error / own.standard_error if own.standard_error else 0.0
    return {
        "level": level,
        "query": query,
        "cost": slope * float(STEP),
        "cost_error": error * float(STEP),
        "standard_error": own.standard_error,
        "margin95": own.margin,
        "gain": gain,
    }


def hold(question: Record) -> answers.HeldAnswer:
    """The noise of one level, or of all, scaled so that the whole release has at most a given epsilon, which is proved."""
    release, level = release_of(question["design"]), question["level"]
    if level is not None:
        _check_level(release, level)
    with about("delta"):
        delta = read_grids(deltas=[question["delta"]]).deltas[0]
    with about("epsilon"):
        most = positive(question["epsilon"], "epsilon")
    factor, found, (lower, upper) = _held(release, None if level is None else TradePart(level), most, delta, 1.0)
    what = f"The noise variance of {level}" if level else "Every noise variance"
    statement = (
        f"{what} times {whole_text(factor)}: the epsilon of the whole release is at most {at_most(upper)}, within "
        f"{at_most(most)}; proved for every pair."
    )
    return {
        "factor": whole_text(factor),
        "epsilon": {"lower": lower, "upper": upper},
        "statement": statement,
        **described(found),
        **UNTIMED,
    }


def trade(question: Record) -> answers.TradeAnswer:
    """A share of a level's or cell's budget moved to another so that the epsilon of the whole release stays, which is proved."""
    release = release_of(question["design"])
    take, give = (TradePart.read(release, question, name) for name in ("take", "give"))
    if set(take.cells(release)) & set(give.cells(release)):
        raise InvalidInputError(
            f"Budget must go from one level or cell to another. Found {shown(str(take))} and {shown(str(give))}."
        )
    with about("delta"):
        delta = read_grids(deltas=[question["delta"]]).deltas[0]
    with about("share"):
        share = read_share(question["share"], "share")
    with about("epsilon"):
        asked = question["epsilon"]
        most = Fraction(_epsilon(release, delta)[1]) if asked is None else positive(asked, "epsilon")
    taken, given = (sum(part.cells(release).values(), Fraction(0)) for part in (take, give))
    guess = float(given / (given + share * taken))  # as if budget cost the same everywhere
    factor, moved, (lower, upper) = _held(take.scaled(release, 1 / (1 - share)), give, most, delta, guess)
    statement = (
        f"{percent(share, NEAREST, 0)} of the budget of {take} taken away; the noise variance of {give} times "
        f"{whole_text(factor)}. The epsilon of the whole release is at most {at_most(upper)}, within {at_most(most)}: proved "
        "for every pair."
    )
    levels: list[answers.TradedLevel] = [
        {"level": level, "before": margin_at(release, level), "after": margin_at(moved, level)}
        for level in release.table
    ]
    cells: list[answers.TradedCell] = [
        {"level": level, "query": query, "before": noise_of(before).margin, "after": noise_of(after).margin}
        for level, query in ((part.level, part.query) for part in (take, give))
        if query is not None
        for before, after in [(release.table[level][query], moved.table[level][query])]
    ]
    return {
        "factor": whole_text(factor),
        "epsilon": {"lower": lower, "upper": upper},
        "held": float(most),
        "levels": levels,
        "cells": cells,
        "statement": statement,
        **described(moved),
        **UNTIMED,
    }


class TradePart(NamedTuple):
    """What gives or takes in a trade: a level, or one query there."""

    level: str
    query: str | None = None

    @classmethod
    def read(cls, release: Release, question: Record, name: str) -> TradePart:
        """The part of this name in a question, refused where the release has none such."""
        level, query = question[name], question[f"{name}_query"]
        _check_level(release, level)
        if query is not None and query not in release.table[level]:
            known = ", ".join(release.table[level])
            raise InvalidInputError(f"A query of {level} must be one of {known}. Found {shown(query)}.")
        return cls(level, query)

    def __str__(self) -> str:
        return self.level if self.query is None else f"{self.query} at {self.level}"

    def cells(self, release: Release) -> dict[tuple[str, str], Fraction]:
        """The budgets of its cells."""
        queries = release.table[self.level]
        return {(self.level, query): rho for query, rho in queries.items() if self.query in (None, query)}

    def scaled(self, release: Release, factor: Fraction) -> Release:
        """The release with the noise variances of these cells multiplied."""
        return release.with_budget({cell: rho / factor - rho for cell, rho in self.cells(release).items()})


def _check_level(release: Release, level: str) -> None:
    if level not in release.table:
        raise InvalidInputError(f"A level must be one of {', '.join(release.table)}. Found {shown(level)}.")


def _held(
    release: Release, part: TradePart | None, most: Fraction, delta: Fraction, guess: float
) -> tuple[Fraction, Release, tuple[float, float]]:
    """A factor on the noise variances of a part, or of all, with which epsilon at `delta` is at most `most`, and nearly so.

    The search is a heuristic; what it ends with is certified.
    """

    def at(factor: Fraction) -> tuple[Release, tuple[float, float]]:
        scaled = release.scaled(factor) if part is None else part.scaled(release, factor)
        return scaled, _epsilon(scaled, delta)

    one = _short(guess)
    _, bounds = at(one)
    other = _short(float(one) * (1.02 if bounds[1] > most else 0.98))
    known = {one: bounds[1], other: at(other)[1][1]}
    for _ in range(_LOOKS):
        (f0, e0), (f1, e1) = sorted(known.items(), key=lambda item: abs(item[1] - most))[:2]
        slope = (e1 - e0) / math.log(f1 / f0) if e1 != e0 else -1.0
        step = max(-1.0, min(1.0, (float(most) - e0) / slope)) if slope < 0 else (1.0 if e0 > most else -1.0)
        factor = _short(float(f0) * math.exp(step))
        if factor in known:
            break
        known[factor] = at(factor)[1][1]
    meeting = [factor for factor, epsilon in known.items() if epsilon <= most]
    if not meeting:
        where = "everywhere" if part is None else f"of {part}" if part.query else f"at {part}"
        raise InvalidInputError(
            f"More noise {where} does not bring the epsilon of the whole release down to {at_most(most)}. Let other levels "
            "give way, or allow more."
        )
    factor = min(meeting)
    return factor, *at(factor)


def _epsilon(release: Release, delta: Fraction) -> tuple[float, float]:
    """Certified bounds of the epsilon of a whole release: the largest of all pairs. A few are asked one by one, which takes less
    time where a factor has left them without a coarse lattice."""
    if len(release.bypassed) > _FEW_PATHS:
        lower, upper = release.account().epsilon_bounds(delta)
        return float(lower), float(upper)
    bounds = [quick(composition).epsilon_bounds(delta) for composition in release.compositions]
    return max(float(found.lower) for found in bounds), max(float(found.upper) for found in bounds)


def _short(factor: float) -> Fraction:
    """To four digits, upwards: more noise."""
    return as_fraction(rounded(factor, 4, UP))


def optimized(question: Record) -> answers.OptimizedAnswer:
    """The design with the least error that is proved to meet the requirements within an epsilon of the whole release."""
    from exactdp import optimize

    release = release_of(question["design"])
    with about("delta"):
        delta = read_grids(deltas=[question["delta"]]).deltas[0]
    with about("epsilon"):
        most = positive(question["epsilon"], "epsilon")
    found = optimize.best(
        release,
        optimize.Objective(question["minimize"]),
        target=target(epsilon=most, delta=delta),
        requirements=question["requirements"],
    )
    lower, upper = found.release.account().epsilon_bounds(delta)
    levels: list[answers.TradedLevel] = [
        {"level": level, "before": margin_at(release, level), "after": margin_at(found.release, level)}
        for level in release.table
    ]
    return {
        "epsilon": {"lower": lower, "upper": upper},
        "levels": levels,
        "statement": found.statement,
        "prices": [str(price) for price in found.prices],
        **described(replace(found.release, title=release.title)),
        **UNTIMED,
    }


def margin_at(release: Release, level: str) -> int:
    """The largest 95% margin of a count at a level of the full path."""
    return max(noise_of(rho).margin for rho in release.table[level].values())


def frontier(question: Record) -> answers.FrontierAnswer:
    """The same design with every budget multiplied by each factor: certified epsilon against the margins of its levels."""
    release = release_of(question["design"])
    with about("delta"):
        delta = read_grids(deltas=[question["delta"]]).deltas[0]
    rows: list[answers.FrontierRow] = []
    for given in question["factors"]:
        with about("factors"):
            factor = positive(given, "factor")
            scaled = release.scaled(1 / factor)
        lower, upper = scaled.account().epsilon_bounds(delta)
        if not math.isfinite(upper):
            continue
        margins = {level: margin_at(scaled, level) for level in scaled.table}
        rows.append({"factor": whole_text(factor), "epsilon": {"lower": lower, "upper": upper}, "margins": margins})
    return {"delta": whole_text(delta), "rows": rows, **UNTIMED}
