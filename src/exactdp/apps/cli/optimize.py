"""exactdp optimize: from accuracy targets to the best design, its frontier and its certificate."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from exactdp.apps.cli import shell
from exactdp.apps.cli.calibrate import (
    AdvantageOption,
    AlphasOption,
    BetasOption,
    DeltasOption,
    EpsilonsOption,
    MuOption,
    read_targets,
)
from exactdp.apps.cli.designs import DesignArgument, MechanismOption, OldDesignOption, read_design
from exactdp.apps.cli.tables import say, show_cells, show_table
from exactdp.census.budget_csv import budget_csv
from exactdp.census.budget_files import budget_toml
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.files import check_target, write_text
from exactdp.interop.json_objects import to_json
from exactdp.numbers import exact_text, whole
from exactdp.numerals import UP, about, at_least, at_most, counted, exact, percent
from exactdp.optimize.best_design import BestDesign, best
from exactdp.optimize.cell_changes import CellChange
from exactdp.optimize.frontier import Frontier, frontier
from exactdp.optimize.guarantee import each_target
from exactdp.optimize.least_design import LeastDesign, least
from exactdp.optimize.objective_bound import ObjectiveBound
from exactdp.optimize.request_files import Request, pairs_of_texts, read_request

MinimizeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--minimize", metavar="TEXT", help="[worst] MEASURE [of CELLS]; repeat it for priorities, the first first."
    ),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(
        "--require", metavar="TEXT", help="CELLS: CONDITION, such as 'County total: margin <= 20'; repeatable."
    ),
]
CellsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cells", metavar="NAME=N", help="How many areas a level has, or counts a query in each; repeatable."
    ),
]
WeightOption = Annotated[
    list[str] | None, typer.Option("--weight", metavar="CELLS=N", help="How much these cells count; repeatable.")
]
TypicalOption = Annotated[
    list[str] | None, typer.Option("--typical", metavar="CELLS=N", help="A typical count, for relative; repeatable.")
]
RequestOption = Annotated[
    Path | None, typer.Option("--request", metavar="FILE", help="A TOML file that says all of these.")
]
AtMostOption = Annotated[
    str | None, shell.number("--at-most", help="With --delta alone: the most that the objective may be.")
]
FrontierOption = Annotated[
    str | None, typer.Option("--frontier", metavar="E,E,...", help="The best at each of these epsilons, with --delta.")
]
FigureOption = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Draw the frontier: .png, .pdf or .svg.")
]
CertificateOption = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="Certify the design found, in this file.")
]
OutputOption = Annotated[Path | None, shell.output(metavar="FILE", help="Write the design: .toml, .csv or .json.")]
_ENDINGS = (".toml", ".csv", ".json")
_FIGURES = (".png", ".pdf", ".svg")


@shell.app.command("optimize")
def _optimize(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    epsilon: EpsilonsOption = None,
    delta: DeltasOption = None,
    alpha: AlphasOption = None,
    beta: BetasOption = None,
    advantage: AdvantageOption = None,
    mu: MuOption = None,
    minimize: MinimizeOption = None,
    require: RequireOption = None,
    cells: CellsOption = None,
    weight: WeightOption = None,
    typical: TypicalOption = None,
    request: RequestOption = None,
    within: AtMostOption = None,
    frontier_at: FrontierOption = None,
    figure: FigureOption = None,
    certificate: CertificateOption = None,
    digits: Annotated[str, shell.digits(help="Significant digits of the budgets.")] = "6",
    output: OutputOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """The best accuracy at a guarantee; with --delta alone the least epsilon for given accuracy; with --frontier all of it."""
    source = read_design(design, mechanism, None, old)
    release = source.whole("optimize")
    asked = _merged(request, minimize, require, (weight, typical, cells)).weighted(release)
    ending = _checked_files(output, certificate, figure)
    others = {"--alpha": alpha, "--beta": beta, "--advantage": advantage, "--mu": mu}
    if frontier_at is not None:
        ignored = {"--epsilon": epsilon, **others, "--at-most": within, "--certificate": certificate, "-o": output}
        _refuse_ignored("A frontier has its epsilons from --frontier and writes no design", ignored)
    epsilons = epsilon or ([] if asked.epsilon is None or frontier_at is not None else [str(asked.epsilon)])
    deltas = delta or ([] if asked.delta is None else [str(asked.delta)])
    places = whole(digits, "--digits", 2, 12)
    shell.tell("The best design is looked for ...")
    if frontier_at is not None:
        _frontier(source, release, asked, frontier_at, deltas, places, figure, as_json)
        return
    _refuse_ignored("--figure draws a frontier, which --frontier asks for", {"--figure": figure})
    found: BestDesign | LeastDesign
    if len(deltas) == 1 and not any((epsilons, *others.values())):
        found = _least(release, asked, deltas[0], within, places)
    else:
        _refuse_ignored("--at-most goes with --delta alone, for the least epsilon", {"--at-most": within})
        wanted = read_targets(epsilons, deltas, alpha or [], beta or [], advantage, mu)
        if not epsilons:
            _refuse_ignored("A certificate is of --epsilon and --delta", {"--certificate": certificate})
        found = best(release, asked.objectives(), target=wanted, requirements=asked.require, digits=places)
    if output is not None:
        write_text(output, _written(found.release, ending))
    if certificate is not None:
        found.certificate().save(certificate)
    if as_json:
        shell.print_json({**_record(found), "accounted_for": source.record()})
        return
    source.show()
    _show(found)
    say(*(f"{file}: {what}" for file, what in ((output, "the design"), (certificate, "its certificate")) if file))


def _checked_files(output: Path | None, certificate: Path | None, figure: Path | None) -> str:
    """The ending of the design's file, after a look at all that are to be written: before the search, which takes a while."""
    if figure is not None:
        shell.check_ending(figure, *_FIGURES)
    for file in (output, certificate, figure):
        if file is not None:
            check_target(file)
    return "" if output is None else shell.check_ending(output, *_ENDINGS)


def _refuse_ignored(why: str, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value is not None and value != []:
            raise InvalidInputError(f"{why}. Found {option} for something else; leave it out.")


def _merged(
    file: Path | None,
    minimize: list[str] | None,
    require: list[str] | None,
    numbers: tuple[list[str] | None, ...],
) -> Request:
    """What the file says, with what the options say beside or instead of it."""
    start = Request() if file is None else read_request(file)
    weight, typical, cells = numbers
    return Request(
        tuple(minimize or start.minimize),
        (*start.require, *(require or [])),
        {**start.weights, **pairs_of_texts(weight or [], "--weight")},
        {**start.typical, **pairs_of_texts(typical or [], "--typical")},
        start.epsilon,
        start.delta,
        {**start.cells, **pairs_of_texts(cells or [], "--cells")},
    )


def _least(release: Release, asked: Request, delta: str, within: str | None, digits: int) -> LeastDesign:
    if within is None and any((asked.minimize, asked.weights, asked.typical)):
        raise InvalidInputError(
            "The least epsilon keeps requirements and minimizes nothing else. Found an objective; say how large it may be with "
            "--at-most, give an epsilon, or leave it out."
        )
    if not asked.require and within is None:
        raise InvalidInputError(
            "The least epsilon is that of given accuracy. Found none; add --require, such as 'all: margin <= 20', or --at-most, "
            "or give an epsilon."
        )
    if len(asked.minimize) > 1:
        raise InvalidInputError(f"--at-most bounds one objective. Found {len(asked.minimize)} of them; give one.")
    given = asked.objectives()[0] if within is not None else None
    return least(release, delta=delta, requirements=asked.require, objective=given, at_most=within, digits=digits)


def _written(release: Release, ending: str) -> str:
    return to_json(release) if ending == ".json" else budget_toml(release) if ending == ".toml" else budget_csv(release)


def _show(found: BestDesign | LeastDesign) -> None:
    title = "Before and after: budget, standard error and 95% margin of one count"
    cells = [(change.level, change.query, _figures(change)) for change in found.before_after]
    show_cells(title, ["budget", "then", "error", "then", "margin", "then"], cells)
    if isinstance(found, BestDesign):
        rows = zip(found.objectives, found.values_before, found.values, strict=True)
        show_table("Objective", ["objective", "before", "after"], [[str(o), about(b), about(a)] for o, b, a in rows])
    say(found.statement)
    for price in found.prices:
        say(f"  {price}")


def _figures(change: CellChange) -> tuple[str, ...]:
    budgets = exact(change.budget_before), exact(change.budget_after)
    errors = about(change.before.standard_error, 4), about(change.after.standard_error, 4)
    return *budgets, *errors, str(change.before.margin), str(change.after.margin)


def _record(found: BestDesign | LeastDesign) -> dict[str, Any]:
    cells = [
        {
            "level": c.level,
            "query": c.query,
            "budget_before": exact_text(c.budget_before),
            "budget": exact_text(c.budget_after),
            "standard_error_before": c.before.standard_error,
            "standard_error": c.after.standard_error,
            "margin_before": c.before.margin,
            "margin": c.after.margin,
        }
        for c in found.before_after
    ]
    prices = [
        {"requirement": p.requirement.text, "looser": p.looser, "epsilon_estimate": p.epsilon} for p in found.prices
    ]
    common = {"cells": cells, "prices": prices, "gap": found.gap, "statement": found.statement}
    if isinstance(found, LeastDesign):
        ends = {"epsilon_lower": found.epsilon[0], "epsilon_upper": found.epsilon[1], "no_design_below": found.bound}
        among = None if found.bound is None else exact_text(found.coarsest)
        return {"delta": exact_text(found.delta), **ends, "among_sigma2_from": among, **common}
    targets: tuple[Any, ...] = each_target(found.target)
    return {
        "targets": [dataclasses.asdict(one) for one in targets],
        "objectives": [str(one) for one in found.objectives],
        "before": list(found.values_before),
        "after": list(found.values),
        **_bound_record(found.bound),
        **common,
    }


def _bound_record(bound: ObjectiveBound | None) -> dict[str, Any]:
    """What is proved of all designs, or of those without noise of a smaller sigma2 only."""
    among = None if bound is None or bound.coarsest is None else exact_text(bound.coarsest)
    return {"no_design_below": None if bound is None else bound.value, "among_sigma2_from": among}


def _frontier(
    source: Any,
    release: Release,
    asked: Request,
    text: str,
    deltas: list[str],
    digits: int,
    figure: Path | None,
    as_json: bool,
) -> None:
    if len(deltas) != 1:
        raise InvalidInputError(f"A frontier is drawn at one --delta. Found {len(deltas)} of them.")
    found = frontier(
        release,
        asked.objectives(),
        delta=deltas[0],
        epsilons=text.split(","),
        requirements=asked.require,
        digits=digits,
    )
    if figure is not None:
        from exactdp.apps.figures.frontier import save_frontier

        save_frontier(found, figure)
    if as_json:
        shell.print_json(_frontier_records(found))
        return
    source.show()
    _show_frontier(found)
    if figure is not None:
        say(f"{figure}: the frontier")


def _frontier_records(found: Frontier) -> list[dict[str, Any]]:
    """One for each epsilon; one that no design was found for says why."""
    records: list[dict[str, Any]] = []
    refusals = iter(found.refusals)
    for epsilon, one in zip(found.epsilons, found.designs, strict=True):
        record: dict[str, Any] = {"epsilon": exact_text(epsilon), "objective": None if one is None else one.value}
        record |= _bound_record(None if one is None else one.bound)
        records.append({**record, "gap": one and one.gap, "refusal": next(refusals) if one is None else None})
    return records


def _show_frontier(found: Frontier) -> None:
    rows = [
        [exact(e), about(one.value), "none proved" if one.bound is None else at_least(one.bound.value), _gap(one)]
        for e, one in found.points
    ]
    what = f"The best objective at delta = {exact(found.delta)}: the least {found.points[0][1].objectives[0]}"
    show_table(what, ["epsilon", "objective", "none below", "gap"], rows)
    for epsilon, one in found.points:
        if one.bound is not None and one.bound.coarsest is not None:
            say(f"At epsilon = {exact(epsilon)}: {one.bound}.")
    for refusal in found.refusals:
        say(refusal)
    say(f"The given design has {about(found.given[1])} at an epsilon of at most {at_most(found.given[0])}.")
    say(f"{counted(len(found.points), 'design')} proved to meet its epsilon over all pairs.")


def _gap(one: BestDesign) -> str:
    return "" if one.gap is None else f"at most {percent(one.gap, UP, 3)}"
