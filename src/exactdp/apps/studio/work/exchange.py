"""What budget costs and what it buys: exchange rates of cells, trades between levels at constant epsilon, a frontier."""

from __future__ import annotations

import math
from fractions import Fraction

from exactdp.apps.studio.schema import exchange_answers as answers
from exactdp.apps.studio.schema.answers import UNTIMED
from exactdp.apps.studio.work.designs import Record, about, described, read_grids, release_of
from exactdp.census.budget_costs import cell_costs
from exactdp.census.margins import noise_of
from exactdp.census.releases import Release
from exactdp.census.savings import calibrate_release
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import target
from exactdp.numbers import positive, read_share, shown
from exactdp.numerals import NEAREST, at_most, percent, whole_text

STEP = Fraction(1, 100)
"""Costs are of so much budget, gains of so much epsilon."""
_GRID = 1000


def exchange(question: Record) -> answers.ExchangeAnswer:
    """What more budget costs at each cell, in epsilon of the worst pair, and what it buys: less noise. Estimates, not bounds."""
    release = release_of(question["design"])
    with about("delta"):
        delta = read_grids(deltas=[question["delta"]]).deltas[0]
    costs = cell_costs(release, delta=delta)
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


def trade(question: Record) -> answers.TradeAnswer:
    """A share of one level's budget moved to another level so that the epsilon of the whole release stays, which is proved."""
    release = release_of(question["design"])
    take, give = question["take"], question["give"]
    for name, field in ((take, "take"), (give, "give")):
        if name not in release.table:
            raise InvalidInputError(
                f"A level must be one of {', '.join(release.table)}. Found {shown(name)} as {field}."
            )
    if take == give:
        raise InvalidInputError(f"Budget must go from one level to another. Found {shown(take)} as both.")
    with about("delta"):
        delta = read_grids(deltas=[question["delta"]]).deltas[0]
    with about("share"):
        share = read_share(question["share"], "share")
    with about("epsilon"):
        held = question["epsilon"]
        most = Fraction(release.account().epsilon(delta)) if held is None else positive(held, "epsilon")
        factor, moved = calibrate_release(
            release.scaled(1 / (1 - share), take), target(epsilon=most, delta=delta), give, _GRID
        )
    lower, upper = moved.account().epsilon_bounds(delta)
    statement = (
        f"{percent(share, NEAREST)} of the budget of {take} taken away; the noise variance of {give} times {whole_text(factor)}. "
        f"The epsilon of the whole release is at most {at_most(upper)}, within {at_most(most)}: proved for every pair."
    )
    levels: list[answers.TradedLevel] = [
        {"level": level, "before": before, "after": margin_at(moved, level)}
        for level, before in ((level, margin_at(release, level)) for level in release.table)
    ]
    return {
        "factor": whole_text(factor),
        "epsilon": {"lower": lower, "upper": upper},
        "held": float(most),
        "levels": levels,
        "statement": statement,
        **described(moved),
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
