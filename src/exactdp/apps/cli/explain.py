"""exactdp explain: why the epsilon of a design is what it is, and where a little budget buys most."""

from __future__ import annotations

from typing import Annotated

import typer

from exactdp.apps.cli import shell
from exactdp.apps.cli.designs import DesignArgument, MechanismOption, OldDesignOption, read_design
from exactdp.apps.cli.tables import say, show_cells
from exactdp.numbers import exact_text
from exactdp.numerals import NEAREST, about, exact, percent
from exactdp.optimize.explanation import CellExplanation, DesignExplanation, explain

_ALIKE = 1.02  # what budget buys in the best and in the worst cell: less is no reason to prefer one


@shell.app.command("explain")
def _explain(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    delta: Annotated[str, shell.number("--delta", help="The delta at which epsilon is explained.")] = "1e-10",
    step: Annotated[
        str, shell.number("--step", help="The budget whose cost and gain are told for each cell.")
    ] = "0.01",
    by_gain: Annotated[
        bool, typer.Option("--by-gain", help="Sort by what a little budget buys, the most first.")
    ] = False,
    as_json: shell.JsonOption = False,
) -> None:
    """Why epsilon is what it is: what each cell costs and buys, total and shape, the worst pair and its paths."""
    source = read_design(design, mechanism, None, old)
    shell.tell("The design is being explained ...")
    found = explain(source.whole("explain"), delta=delta, step=step)
    if as_json:
        shell.print_json({**_record(found), "accounted_for": source.record()})
        return
    source.show()
    columns = ["budget", "epsilon", "error", "then", "margin", "then", "less by"]
    cells = [(cell.level, cell.query, _figures(cell)) for cell in (found.bargains if by_gain else found.cells)]
    show_cells(f"What {exact(found.step)} more budget costs and buys in each cell (estimates)", columns, cells)
    say(found.statement)
    for path in found.paths():
        say(f"  {path}")
    best, least = found.bargains[0], found.bargains[-1]
    if best.gain_per_epsilon <= least.gain_per_epsilon * _ALIKE:
        say("A little budget buys about the same in every cell.")
        return
    say(
        f"A little budget buys most in {best.level} {best.query}: its standard error falls by {percent(best.gain, NEAREST, 1)}."
    )


def _figures(cell: CellExplanation) -> tuple[str, ...]:
    return (
        exact(cell.budget),
        about(cell.cost, 5),
        about(cell.now.standard_error, 4),
        about(cell.then.standard_error, 4),
        str(cell.now.margin),
        str(cell.then.margin),
        percent(cell.gain, NEAREST, 1),
    )


def _record(found: DesignExplanation) -> dict[str, object]:
    return {
        "delta": exact_text(found.delta),
        "epsilon_lower": found.epsilon[0],
        "epsilon_upper": found.epsilon[1],
        "total_estimate": found.total,
        "shape_estimate": found.shape,
        "pair": list(found.pair),
        "tied": len(found.tied),
        "paths": found.paths(),
        "step": exact_text(found.step),
        "cells": [
            {
                "level": c.level,
                "query": c.query,
                "budget": exact_text(c.budget),
                "epsilon_estimate": c.cost,
                "standard_error": c.now.standard_error,
                "standard_error_then": c.then.standard_error,
                "margin": c.now.margin,
                "margin_then": c.then.margin,
            }
            for c in found.cells
        ],
    }
