"""exactdp census: the whole accounting of a release, with files, figures and a report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from exactdp.apps.cli import shell
from exactdp.apps.cli.designs import DEFAULT, Design, DesignArgument, MechanismOption, OldDesignOption, read_design
from exactdp.apps.cli.tables import say, show_table
from exactdp.census.grids import ALPHAS, DELTAS, MOST_ALPHAS, Grids, spaced_alphas, stated_epsilons
from exactdp.census.journal import Journal
from exactdp.census.pair_results import Interval
from exactdp.census.releases import Release
from exactdp.census.study import Study, run_study
from exactdp.census.summary import EpsilonRow, Summary, summarize
from exactdp.census.tables import plain, write_study
from exactdp.census.workers import make_runner
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError, MissingExtraError, WorkersError
from exactdp.files import write_text
from exactdp.guarantees.neighbours import REPLACE, neighbours
from exactdp.numbers import exact_text, whole
from exactdp.numerals import DOWN, about, at_least, at_most, counted, exact, percent

_AlphaOption = Annotated[
    list[str] | None, shell.number("--alpha", help="Instead of 0.001 to 0.5 in the trade-off tables; repeatable.")
]
_AlphasOption = Annotated[
    str | None,
    typer.Option(
        "--alphas", metavar="N", help="Trade-off tables at N alphas that cover both tails, such as 901; takes long."
    ),
]
_BaseOption = Annotated[
    str | None, typer.Option("--base", metavar="K", help="The path of Figures 3 to 5, instead of the full one.")
]


@shell.app.command("census")
def _census(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    delta: Annotated[list[str] | None, shell.number("--delta", help="Instead of 1e-5 to 1e-15; repeatable.")] = None,
    alpha: _AlphaOption = None,
    alphas: _AlphasOption = None,
    output: Annotated[Path, shell.output(metavar="FOLDER", help="Where tables, figures and progress go.")] = Path(
        "census-results"
    ),
    jobs: shell.JobsOption = "1",
    dask: shell.DaskOption = None,
    certified: Annotated[bool, typer.Option("--certified", help="Every pair in balls instead of float64.")] = False,
    digits: Annotated[
        str | None, shell.digits(help="Significant digits to show (6); with --certified also to promise (20).")
    ] = None,
    proxy: Annotated[
        bool, typer.Option("--proxy", help="Only compare the full path with itself with the overall guarantee.")
    ] = False,
    level_delta: Annotated[
        str, shell.number("--level-delta", help="The delta at which each level is looked at on its own.")
    ] = "1e-10",
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Whether to draw the figures.")] = True,
    base: _BaseOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Account for all pairs of directed paths of a release: tables, figures, report. A stopped run goes on where it was."""
    source = read_design(design, mechanism, None, old, DEFAULT)
    release = source.whole("census")
    asked = read_digits(digits or "20", "--digits") if certified else None
    shown = 6 if digits is None else asked or shell.read_shown(digits)
    at = _alphas(alpha, alphas, proxy)
    grids = Grids.read([] if proxy else stated_epsilons(release.rho), delta or DELTAS, at, asked)
    path = _base(release, base, figures and not proxy)
    at_level = Grids.read(deltas=[level_delta]).deltas[0]
    folder = output / release.name
    with _resumable(folder), make_runner(shell.read_jobs(jobs), dask, in_small_parts=True) as runner:
        journal = Journal.open(folder, release, grids)
        with shell.progress("pairs of paths", len(release.pairs)) as done:
            study = run_study(release, grids, runner, journal, done, shell.tell, shell.warn)
        if proxy:
            _show_proxy(source, study, shown, as_json)
            return
        summary = summarize(study, runner, at_level, lambda text: shell.tell(f"{text} ..."))
    files, remark = _write(study, summary, folder, figures, path)
    if as_json:
        head = {"release": release.name, "rho": exact_text(release.rho), "pairs": len(study.pairs)}
        shell.print_json({**head, **plain(summary), "files": [str(f) for f in files]})
        return
    source.show()
    _show(study, summary, shown)
    say(f"{counted(len(files), 'file')} in {folder}: {', '.join(f.name for f in files)}")
    if remark:
        say(remark)


def _alphas(given: list[str] | None, count: str | None, proxy: bool) -> list[Fraction]:
    """The alphas of the trade-off tables: those given, so many that cover both tails, both together, or the usual ones."""
    if proxy and (given or count is not None):
        raise InvalidInputError("--proxy makes no trade-off tables. Leave out --alpha and --alphas, or --proxy.")
    asked = list(dict.fromkeys(Grids.read(alphas=given or []).alphas))
    if count is not None:
        return sorted({*asked, *spaced_alphas(whole(count, "--alphas", 2, MOST_ALPHAS))})
    return asked or list(Grids.read(alphas=[] if proxy else ALPHAS).alphas)


def _base(release: Release, text: str | None, draws: bool) -> int | None:
    """The path that the figures are about, if one is asked for."""
    if text is None:
        return None
    if not draws:
        raise InvalidInputError("--base is the path of the figures, and this run draws none. Leave out --base.")
    from exactdp.apps.figures.release import chosen_base

    return chosen_base(release, whole(text, "--base", 0))


def _write(study: Study, summary: Summary, folder: Path, figures: bool, base: int | None) -> tuple[list[Path], str]:
    """Tables, figures and report in the folder, and why there are no figures, should there be none."""
    from exactdp.apps.report import build

    files, remark = write_study(study, summary, folder), ""
    if figures:
        try:
            from exactdp.apps.figures.release import save_figures

            shell.tell("figures ...")
            files += save_figures(study, folder, base)
        except MissingExtraError as error:
            remark = f"No figures: {error}"
    shell.tell("report ...")
    files.append(folder / "report.html")
    write_text(files[-1], build(study, summary, charts=figures and not remark))
    return files, remark


@contextmanager
def _resumable(folder: Path) -> Iterator[None]:
    """Whoever stops a run, or loses its workers, is told where it goes on."""
    kept = f"Finished pairs are kept in {folder}; the same command goes on from there."
    try:
        yield
    except KeyboardInterrupt:
        shell.tell(f"Stopped. {kept}")
        raise
    except WorkersError as error:
        raise WorkersError(f"{error} {kept}") from None


def _show(study: Study, summary: Summary, digits: int) -> None:
    arithmetic = f"{study.grids.digits} digits in balls" if study.grids.digits else "float64 with certified bounds"
    say(f"Computed in {arithmetic}. Bounds are rounded outward; ~ marks an estimate, which is no bound.")
    print()
    columns = [
        "delta",
        "epsilon at most",
        "zCDP simple",
        "zCDP optimal",
        "Gaussian",
        "worst pair",
        "saved",
        "saved (optimal)",
    ]
    show_table("Overall guarantee", columns, [_epsilon_row(row, digits) for row in summary.epsilons])
    rows = [
        [
            exact(row.alpha),
            at_least(row.beta[0], digits),
            at_most(1 - Fraction(row.beta[0]), digits),
            at_most(1 - Fraction(row.zcdp_beta), digits),
        ]
        for row in summary.quoted_powers
    ]
    truth = neighbours(study.release.relation).truth
    show_table(f"Best test of {truth}", ["alpha", "beta at least", "power at most", "power by zCDP"], rows)
    if len(rows) < len(summary.powers):
        all_alphas = counted(len(summary.powers), "alpha")
        say(f"Shown are {len(rows)} of {all_alphas}; all are in overall.csv, pair by pair in pairs.csv.")
    rows = [
        [row.level, exact(row.rho), percent(row.saved_simple.saved, DOWN), percent(row.saved_optimal.saved, DOWN)]
        for row in summary.levels
    ]
    at = exact(summary.levels[0].delta)
    show_table(
        f"Noise variance that each level on its own could save at delta = {at}",
        ["level", "rho", "against zCDP simple", "against zCDP optimal"],
        rows,
    )
    say(
        "Saved: by so much every noise variance could be smaller if the promise were what zCDP states, by the simple or by the "
        "optimal conversion, at that delta."
    )
    worst = max(_understated(row.proxy, row.epsilon) for row in summary.epsilons)
    say(f"{_proxy(study.release).capitalize()} understates the overall epsilon by at most {at_most(worst, 2)} of it.")


def _proxy(release: Release) -> str:
    return "the full path with itself" if release.relation == REPLACE else "the full path alone"


def _understated(proxy: Interval, overall: Interval) -> float:
    """How much larger the overall epsilon can be than that of one pair, relative to the latter's size, rounded up."""
    low, high = map(Fraction, proxy)
    if low <= 0 <= high:
        return math.inf
    return math.nextafter(float((Fraction(overall[1]) - low) / min(abs(low), abs(high))), math.inf)


def _epsilon_row(row: EpsilonRow, digits: int) -> list[str]:
    few = min(digits, shell.MOST_SHOWN)
    return [
        exact(row.delta),
        at_most(row.epsilon[1], digits),
        at_most(row.zcdp_simple, few),
        at_most(row.zcdp_optimal, few),
        about(row.gaussian, few),
        str(row.worst_pair) if row.tied == 1 else f"{row.tied} tied",
        percent(row.saved_simple.saved, DOWN),
        percent(row.saved_optimal.saved, DOWN),
    ]


def _show_proxy(source: Design, study: Study, digits: int, as_json: bool) -> None:
    """The advice for tuning: the full path stands for all pairs, and by how much it is off."""
    base = study.release.proxy_pair
    own = study.result(base).epsilon
    rows = [
        (delta, pair, overall, _understated(pair, overall))
        for delta, pair, overall in zip(study.grids.deltas, own, study.largest("epsilon"), strict=True)
    ]
    if as_json:
        names = ("delta", "proxy", "overall", "relative_difference_at_most")
        shell.print_json([dict(zip(names, map(plain, row), strict=True)) for row in rows])
        return
    source.show()
    columns = ["delta", f"epsilon of {base} at most", "overall epsilon at most", "relative difference at most"]
    cells = [[exact(d), at_most(p[1], digits), at_most(o[1], digits), at_most(diff, 3)] for d, p, o, diff in rows]
    show_table("The proxy and the overall guarantee", columns, cells)
    say("Tune with the proxy (milliseconds), then account for all pairs once (exactdp account).")
