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
from exactdp.apps.cli.designs import (
    DEFAULT,
    ChangeOption,
    Design,
    DesignArgument,
    MechanismOption,
    OldDesignOption,
    is_joint,
    read_design,
)
from exactdp.apps.cli.joint import account_jointly, show_jointly
from exactdp.apps.cli.streams import narrate
from exactdp.apps.cli.tables import say, show_table
from exactdp.census.grids import ALPHAS, DELTAS, MOST_ALPHAS, Grids, spaced_alphas, stated_epsilons
from exactdp.census.journal import Journal
from exactdp.census.proxy import ProxyRow, beta_rows, epsilon_rows, understated
from exactdp.census.releases import Release
from exactdp.census.study import Study, run_study
from exactdp.census.summary import BesideZcdp, EpsilonRow, Summary, summarize
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


_JOINT_DELTAS, _JOINT_ALPHAS = ("1e-5", "1e-10", "1e-15"), ("0.001", "0.05")


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
    change: ChangeOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Account for all pairs of directed paths of a release: tables, figures, report. A stopped run goes on where it was."""
    if change is not None or is_joint(design or old or DEFAULT):
        others = mechanism, design and old, alphas, certified, proxy, base, dask, jobs != "1"
        _census_together(design or old or DEFAULT, change, any(others), (delta, alpha), output, digits, as_json)
        return
    source = read_design(design, mechanism, None, old, DEFAULT)
    release = source.whole("census")
    asked = read_digits(digits or "20", "--digits") if certified else None
    shown = 6 if digits is None else asked or shell.read_shown(digits)
    at = _alphas(alpha, alphas)
    grids = Grids.read(deltas=delta or DELTAS, digits=asked)
    if not proxy:  # which asks the pairs for epsilon only
        grids = Grids.read(stated_epsilons(release.rho), grids.deltas, at, asked)
    path = _base(release, base, figures and not proxy)
    at_level = Grids.read(deltas=[level_delta]).deltas[0]
    folder = output / release.name
    with _resumable(folder), make_runner(shell.read_jobs(jobs), dask, in_small_parts=True) as runner:
        journal = Journal.open(folder, release, grids)
        with shell.progress("bounds of pairs", len(release.pairs) * grids.size, in_lines=True) as done:
            study = run_study(release, grids, runner, journal, done, narrate, shell.warn)
        if proxy:
            _show_proxy(source, study, at, shown, as_json)
            return
        summary = summarize(study, runner, at_level, lambda text: narrate(f"{text} ..."))
    files, remark = _write(study, summary, folder, figures, path)
    if as_json:
        head = {"release": release.name, "rho": exact_text(release.rho), "pairs": len(study.pairs)}
        shell.print_json({**head, **plain(summary), "files": [str(f) for f in files]})
        return
    source.show()
    _show(study, summary, shown)
    _show_files(files, folder, remark)


def _show_files(files: list[Path], folder: Path, remark: str) -> None:
    say(f"{counted(len(files), 'file')} in {folder}: {', '.join(f.name for f in files)}")
    if remark:
        say(remark)


def _census_together(
    products: str,
    change: str | None,
    has_others: bool,
    grid: tuple[list[str] | None, list[str] | None],
    output: Path,
    digits: str | None,
    as_json: bool,
) -> None:
    """The same command for several products, under one change or under each that they are followed through."""
    if has_others:
        raise InvalidInputError(
            "Products together take --change, --delta, --alpha, --digits, -o and --json. Found another option, which is about "
            "one release; leave it out."
        )
    asked = Grids.read(deltas=grid[0] or _JOINT_DELTAS, alphas=grid[1] or _JOINT_ALPHAS)
    shown = 6 if digits is None else shell.read_shown(digits)
    show_jointly(account_jointly(products, change, asked.deltas, asked.alphas, output / products), shown, as_json)


def _alphas(given: list[str] | None, count: str | None) -> list[Fraction]:
    """The alphas of the trade-off tables: those given, so many that cover both tails, both together, or the usual ones."""
    asked = list(dict.fromkeys(Grids.read(alphas=given or []).alphas))
    if count is not None:
        return sorted({*asked, *spaced_alphas(whole(count, "--alphas", 2, MOST_ALPHAS))})
    return asked or list(Grids.read(alphas=ALPHAS).alphas)


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

            narrate("figures ...")
            files += save_figures(study, folder, base)
        except MissingExtraError as error:
            remark = f"No figures: {error}"
    narrate("report ...")
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
    columns = ["delta", "epsilon at most", "zCDP simple", "zCDP optimal", "Gaussian", "worst pair"]
    show_table("Overall guarantee", columns, [_epsilon_row(row, digits) for row in summary.epsilons])
    beside = ["saved, simple", "saved, optimal", "unused, simple", "unused, optimal"]
    rows = [[exact(row.delta), *_beside_zcdp(row)] for row in summary.epsilons]
    show_table("Noise variance saved and epsilon unused, against zCDP", ["delta", *beside], rows)
    rows = [[row.level, exact(row.rho), *_beside_zcdp(row)] for row in summary.levels]
    at = exact(summary.levels[0].delta)
    show_table(f"The same for each level on its own at delta = {at}", ["level", "rho", *beside], rows)
    say(
        "Saved: by so much every noise variance could be smaller if the promise were what zCDP states, by the simple or by the "
        "optimal conversion, at that delta. Unused: by so much the exact epsilon is smaller than the stated one."
    )
    print()
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
    worst = max((understated(row.proxy, row.epsilon) for row in summary.epsilons), default=math.inf)
    if len(study.pairs) > 1 and math.isfinite(worst):
        own = _proxy(study.release)
        say(f"The overall epsilon exceeds that of {own} by at most {at_most(worst, 2)} of the latter.")


def _proxy(release: Release) -> str:
    return "the full path with itself" if release.relation == REPLACE else "the full path alone"


def _epsilon_row(row: EpsilonRow, digits: int) -> list[str]:
    few = min(digits, shell.MOST_SHOWN)
    return [
        exact(row.delta),
        at_most(row.epsilon[1], digits),
        at_most(row.zcdp_simple, few),
        at_most(row.zcdp_optimal, few),
        about(row.gaussian, few),
        str(row.worst_pair) if row.tied == 1 else f"{row.tied} tied",
    ]


def _beside_zcdp(row: BesideZcdp) -> list[str]:
    """Savings and unused budget, each against both conversions, rounded down."""
    shares = (row.saved_simple.saved, row.saved_optimal.saved, row.unused_simple, row.unused_optimal)
    return ["-" if share is None else percent(share, DOWN) for share in shares]


def _show_proxy(source: Design, study: Study, alphas: list[Fraction], digits: int, as_json: bool) -> None:
    """One pair in place of all: how far it is off for this design, in epsilon and on the trade-off curve."""
    epsilons, betas = epsilon_rows(study), beta_rows(study, alphas)
    if as_json:
        shell.print_json(plain({"epsilon": epsilons, "beta": betas}))
        return
    source.show()
    base = study.release.proxy_pair
    columns = ["delta", f"epsilon of {base} at most", "overall epsilon at most", f"relative to {base} at most"]
    cells = [[exact(r.at), *(at_most(b[1], digits) for b in (r.proxy, r.overall)), _off(r)] for r in epsilons]
    show_table("The proxy and the overall guarantee: epsilon", columns, cells)
    columns = ["alpha", f"beta of {base} at least", "overall beta at least", f"relative to {base} at most"]
    cells = [[exact(r.at), *(at_least(b[0], digits) for b in (r.proxy, r.overall)), _off(r)] for r in betas]
    show_table("The proxy and the overall guarantee: trade-off curve", columns, cells)
    more, less = (_largest(rows) for rows in (epsilons, betas))
    known = all(math.isfinite(row.difference) for row in (*epsilons, *betas))
    where = "these arguments" if known else "those of these arguments at which a share is known"
    say(
        f"For this design and {where} the overall epsilon exceeds that of {_proxy(study.release)} by at most {more} of "
        f"the latter, and the overall beta falls short of its beta by at most {less} of that. This says nothing about other "
        "designs: with coarse noise a proxy can be off by a percent and more. Account for all pairs before a number is "
        "published (exactdp account)."
    )


def _off(row: ProxyRow) -> str:
    return at_most(row.difference, 3) if math.isfinite(row.difference) else "none: it may be 0"


def _largest(rows: list[ProxyRow]) -> str:
    """The largest difference among those that are relative to something that is not 0."""
    known = [row.difference for row in rows if math.isfinite(row.difference)]
    return at_most(max(known), 2) if known else "an unknown share"
