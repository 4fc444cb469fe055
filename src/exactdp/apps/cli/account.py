"""exactdp account, exactdp sweep: users' own designs, and built-in ones."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from exactdp.apps.cli import shell
from exactdp.brackets import Bounds
from exactdp.census.grids import ARGUMENTS, Grids
from exactdp.census.study import Study
from exactdp.census.sweeps import SweepRow, SweptDesign, sweep
from exactdp.census.tables import as_csv, plain
from exactdp.census.workers import make_runner
from exactdp.census.worst_pair import Candidates
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.files import check_target, write_text
from exactdp.guarantees.comparison import other_accounts
from exactdp.numbers import exact_text, positive

Numbers = list[str] | None
DeltasOption = Annotated[Numbers, shell.number("--delta", help="Ask for epsilon; repeatable.")]
EpsilonsOption = Annotated[Numbers, shell.number("--epsilon", help="Ask for delta; repeatable.")]
AlphasOption = Annotated[Numbers, shell.number("--alpha", help="Ask for beta; repeatable.")]


@shell.app.command("account")
def _account(
    budget: shell.BudgetArgument,
    delta: DeltasOption = None,
    epsilon: EpsilonsOption = None,
    alpha: AlphasOption = None,
    pair: shell.PairOption = None,
    digits: Annotated[str | None, shell.digits(help="With --pair: digits to promise, in balls.")] = None,
    as_json: shell.JsonOption = False,
) -> None:
    """The guarantee of a design over all pairs of directed paths, beside zCDP and the Gaussian formula."""
    release = shell.read_design(budget)
    argument, values = shell.one_of(delta=delta, epsilon=epsilon, alpha=alpha)
    quantity = next(name for name, of in ARGUMENTS.items() if of == argument)
    if digits is not None and pair is None:
        raise InvalidInputError(f"--digits is for one pair; give --pair as well. Found {digits}.")
    source: Any = release.pair(*shell.read_pair(pair)) if pair else release.account()
    rows = []
    with shell.progress(argument, len(values)) as done:
        for value in values:
            ask = getattr(source, f"{quantity}_bounds")
            bounds = ask(value) if digits is None else ask(value, digits=read_digits(digits, "--digits"))
            rows.append(_row(source, argument, value, bounds, pair))
            done(1)
    if as_json:
        head = {"release": release.name, "title": release.title, "rho": exact_text(release.rho), "quantity": quantity}
        shell.print_json({**head, "rows": plain(rows)})
        return
    title = f"{release.title}: " + (f"pair {pair}" if pair else f"{len(release.pairs)} pairs of directed paths")
    columns = [argument, f"{quantity} at least", f"{quantity} at most", "worst pair", "zCDP", "Gaussian formula"]
    shell.show_table(title, columns, [[str(x) for x in row.values()] for row in rows])


def _row(source: Any, argument: str, value: str, bounds: Bounds, pair: str | None) -> dict[str, object]:
    rho = source.release.rho if isinstance(source, Study) else source.rho
    others = other_accounts(rho, argument, value)
    return {
        argument: value,
        "lower": bounds.lower,
        "upper": bounds.upper,
        "worst_pair": _worst(source, argument, value) if isinstance(source, Study) else f"({pair})",
        "zcdp": others["zcdp_optimal"],
        "gaussian": others["gaussian"],
    }


def _worst(study: Study, argument: str, value: str) -> str:
    """The worst pair, or how many cannot be told apart in float64."""
    try:
        candidates = Candidates.of(study.release, **{argument: value})
    except InvalidInputError:  # an end of the range, at which all pairs agree
        return "all"
    pair, tied = candidates.settled()
    return str(pair) if tied == 1 else f"{tied} tied"


@shell.app.command("sweep")
def _sweep(
    budgets: Annotated[
        list[str], typer.Argument(metavar="BUDGET...", help="Budget files (.toml, .csv) or names of built-in releases.")
    ],
    delta: DeltasOption = None,
    scale: Annotated[
        str, typer.Option("--scale", metavar="F,F,...", help="Factors on the noise variances, such as 0.8,0.9,1.")
    ] = "1",
    jobs: shell.JobsOption = "1",
    dask: shell.DaskOption = None,
    output: shell.OutputOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Many designs, all pairs of each: the overall epsilon and the proxy's, one row for each design and delta."""
    designs = [SweptDesign(shell.read_design(b), f) for b in budgets for f in _factors(scale)]
    deltas = Grids.read(deltas=delta or ["1e-10"]).deltas
    if output is not None:
        check_target(output)
    found: dict[SweptDesign, list[SweepRow]] = {}
    with make_runner(shell.read_jobs(jobs), dask) as runner, shell.progress("designs", len(designs)) as done:
        for rows in sweep(designs, deltas, runner):
            found[rows[0].design] = rows
            done(1)
    ordered = [row for design in designs for row in found[design]]
    _write_sweep(ordered, output, as_json)


def _write_sweep(rows: list[SweepRow], output: Path | None, as_json: bool) -> None:
    names = ["design", "factor", "rho", "delta", "epsilon_lower", "epsilon_upper", "proxy_lower", "proxy_upper"]
    table = [(r.design.release.name, r.design.factor, r.rho, r.delta, *r.epsilon, *r.proxy) for r in rows]
    if output is not None:
        write_text(output, as_csv(names, table))
    if as_json:
        shell.print_json([dict(zip(names, map(plain, row), strict=True)) for row in table])
    elif output is None:
        short = [
            [str(plain(x)) if not isinstance(x, float) else f"{x:.10f}" for x in (*row[:4], row[5], row[7])]
            for row in table
        ]
        shell.show_table(f"{len(rows)} designs", ["design", "factor", "rho", "delta", "epsilon", "proxy"], short)
    else:
        print(f"{output}: {len(rows)} rows")


def _factors(text: str) -> list[Fraction]:
    return [positive(part.strip(), "--scale") for part in text.split(",")]
