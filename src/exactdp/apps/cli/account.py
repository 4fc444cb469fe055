"""exactdp account, exactdp sweep: the guarantee of a design, and of many."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from exactdp.apps.cli import shell
from exactdp.apps.cli.designs import (
    ChangeOption,
    Design,
    DesignArgument,
    FullOption,
    MechanismOption,
    PairOption,
    read_design,
)
from exactdp.apps.cli.tables import say, show_table
from exactdp.brackets import Bounds
from exactdp.census.grids import ARGUMENTS, Grids
from exactdp.census.joint import Joint
from exactdp.census.sweeps import SweepRow, SweptDesign, sweep
from exactdp.census.tables import numeric_csv, plain
from exactdp.census.workers import make_runner
from exactdp.census.worst_pair import Candidates
from exactdp.errors import InvalidInputError
from exactdp.files import check_target, write_text
from exactdp.guarantees.comparison import other_accounts
from exactdp.numbers import exact_text, positive, read_delta
from exactdp.numerals import about, at_least, at_most, counted, exact

Numbers = list[str] | None
DeltasOption = Annotated[Numbers, shell.number("--delta", help="Ask for epsilon; repeatable.")]
EpsilonsOption = Annotated[Numbers, shell.number("--epsilon", help="Ask for delta; repeatable.")]
AlphasOption = Annotated[Numbers, shell.number("--alpha", help="Ask for beta; repeatable.")]
_IN_FLOAT64 = 12  # digits that ordinary bounds promise; for more of them one composition is asked in balls
_MOST_DIGITS = 1000


@shell.app.command("account")
def _account(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    delta: DeltasOption = None,
    epsilon: EpsilonsOption = None,
    alpha: AlphasOption = None,
    pair: PairOption = None,
    change: ChangeOption = None,
    full: FullOption = False,
    digits: Annotated[
        str, shell.digits(help="Significant digits to show; above 12, for one pair or -m, they are promised in balls.")
    ] = "6",
    as_json: shell.JsonOption = False,
) -> None:
    """The exact guarantee of a design over all its pairs, beside zCDP and the Gaussian formula."""
    source = read_design(design, mechanism, pair, change=change, full=full)
    argument, values = shell.one_of(delta=delta, epsilon=epsilon, alpha=alpha)
    quantity = next(name for name, of in ARGUMENTS.items() if of == argument)
    shown = shell.read_shown(digits, _MOST_DIGITS)
    if source.is_whole and shown > shell.MOST_SHOWN:
        raise InvalidInputError(
            f"All pairs together are known to about {_IN_FLOAT64} digits; give --pair for more. Found --digits {digits}."
        )
    rows = []
    with shell.progress(argument, len(values)) as done:
        for value in values:
            ask = getattr(source.curve, f"{quantity}_bounds")
            in_balls = not source.is_whole and shown > _IN_FLOAT64
            rows.append(_row(source, argument, value, ask(value, digits=shown) if in_balls else ask(value)))
            done(1)
    if as_json:
        head = {"release": source.name, "title": source.title, "rho": _exact(source.rho), "quantity": quantity}
        shell.print_json({**head, "accounted_for": source.record(), "rows": plain(rows)})
        return
    source.show()
    columns = [argument, f"{quantity} at least", f"{quantity} at most", "worst pair", "zCDP", "Gaussian formula"]
    cells = [_cells(row, argument, shown) for row in rows]
    kept = [i for i, name in enumerate(columns) if name != "worst pair" or source.is_whole]
    show_table("", [columns[i] for i in kept], [[row[i] for i in kept] for row in cells])
    say("Bounds are proved and rounded outward to the digits shown; ~ marks an estimate, which is no bound.")


def _row(source: Design, argument: str, value: str, bounds: Bounds) -> dict[str, Any]:
    others = other_accounts(source.rho, argument, value)
    return {
        argument: value,
        "lower": bounds.lower,
        "upper": bounds.upper,
        "worst_pair": _worst(source, argument, value),
        "zcdp": others["zcdp_optimal"],
        "gaussian": others["gaussian"],
    }


def _cells(row: dict[str, Any], argument: str, digits: int) -> list[str]:
    zcdp = at_least if argument == "alpha" else at_most  # beta is safe from below
    few = min(digits, shell.MOST_SHOWN)
    return [
        str(row[argument]),
        at_least(row["lower"], digits),
        at_most(row["upper"], digits),
        str(row["worst_pair"]),
        zcdp(row["zcdp"], few),
        about(row["gaussian"], few),
    ]


def _worst(source: Design, argument: str, value: str) -> str | None:
    """The worst pair, or how many cannot be told apart in float64; nothing where there is one composition only."""
    if not source.is_whole:
        return None if source.pair is None else str(source.pair)
    if source.joint is not None:
        return _worst_paths(source.joint, value) if argument == "delta" else "-"
    try:
        candidates = Candidates.of(source.whole("account"), **{argument: value})
    except InvalidInputError:  # an end of the range, at which all pairs agree
        return "all"
    pair, tied = candidates.settled()
    return str(pair) if tied == 1 else f"{tied} tied"


def _worst_paths(joint: Joint, delta: str) -> str:
    """The paths of the worst combination, in those products that have several; or how many cannot be told apart."""
    if not 0 < read_delta(delta) < 1:
        return "all"
    worst = joint.worst(delta)
    if len(worst) > 1:
        return f"{len(worst):,} tied"
    several = [part.release.name for part in joint.moved if len(part.choices) > 1]
    return " ".join(",".join(map(str, worst[0][name])) for name in several) or "one"


def _exact(rho: Fraction | float) -> str:
    return exact_text(rho) if isinstance(rho, Fraction) else str(rho)


@shell.app.command("sweep")
def _sweep(
    designs: Annotated[
        list[str] | None,
        typer.Argument(metavar="DESIGN...", help="Built-in releases, budget files (.toml, .csv) or JSON files."),
    ] = None,
    mechanism: MechanismOption = None,
    delta: DeltasOption = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="F,F,...", help="Factors on the noise variances, such as 0.8,0.9,1.")
    ] = "1",
    jobs: shell.JobsOption = "1",
    dask: shell.DaskOption = None,
    digits: shell.ShownOption = "6",
    output: Annotated[
        Path | None, shell.output(metavar="FILE", help="Write a .csv or .json file instead of a table.")
    ] = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Many designs, all pairs of each: the overall epsilon and the proxy's, one row for each design and delta."""
    sources = [read_design(text) for text in designs or ()]
    if mechanism or not sources:
        sources.append(read_design(None, mechanism))
    factors, shown = _factors(scale), shell.read_shown(digits)
    swept = [SweptDesign(source.whole("sweep"), factor) for source in sources for factor in factors]
    deltas = Grids.read(deltas=delta or ["1e-10"]).deltas
    ending = "" if output is None else shell.check_ending(output, ".csv", ".json")
    if output is not None:
        check_target(output)
    found: dict[SweptDesign, list[SweepRow]] = {}
    with make_runner(shell.read_jobs(jobs), dask) as runner, shell.progress("designs", len(swept)) as done:
        for rows in sweep(swept, deltas, runner):
            found[rows[0].design] = rows
            done(1)
    ordered = [row for one in swept for row in found[one]]
    if output is not None:
        text = (
            numeric_csv(_SWEPT, _swept(ordered)) if ending == ".csv" else f"{shell.as_json(_sweep_records(ordered))}\n"
        )
        write_text(output, text)
    if as_json:
        shell.print_json(_sweep_records(ordered))
        return
    for source in sources:
        source.show()
    if output is not None:
        say(f"{output}: {counted(len(ordered), 'row')}")
    else:
        _show_sweep(ordered, shown)


_SWEPT = ["design", "factor", "rho", "delta", "epsilon_lower", "epsilon_upper", "proxy_lower", "proxy_upper"]


def _swept(rows: Sequence[SweepRow]) -> list[tuple[Any, ...]]:
    return [(r.design.release.name, r.design.factor, r.rho, r.delta, *r.epsilon, *r.proxy) for r in rows]


def _sweep_records(rows: Sequence[SweepRow]) -> list[dict[str, Any]]:
    return [dict(zip(_SWEPT, map(plain, row), strict=True)) for row in _swept(rows)]


def _show_sweep(rows: Sequence[SweepRow], digits: int) -> None:
    columns = ["design", "factor", "rho", "delta", "epsilon at least", "epsilon at most", "proxy at most"]
    cells = [
        [
            row.design.release.name,
            *(exact(value) for value in (row.design.factor, row.rho, row.delta)),
            *(at_least(row.epsilon[0], digits), at_most(row.epsilon[1], digits), at_most(row.proxy[1], digits)),
        ]
        for row in rows
    ]
    show_table("", columns, cells)
    say("factor multiplies every noise variance; the proxy is the full path alone. Bounds are rounded outward.")


def _factors(text: str) -> list[Fraction]:
    return [positive(part.strip(), "--scale") for part in text.split(",")]
