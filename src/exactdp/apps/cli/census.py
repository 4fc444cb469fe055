"""exactdp census: the whole accounting of a release, with files, figures and a report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from exactdp.apps.cli import shell
from exactdp.census.grids import ALPHAS, DELTAS, Grids, stated_epsilons
from exactdp.census.journal import Journal
from exactdp.census.pair_results import Interval
from exactdp.census.study import Study, run_study
from exactdp.census.summary import EpsilonRow, Summary, summarize
from exactdp.census.tables import plain, write_study
from exactdp.census.workers import make_runner
from exactdp.elementwise import read_digits
from exactdp.errors import MissingExtraError, WorkersError
from exactdp.files import write_text
from exactdp.numbers import exact_text
from exactdp.numerals import whole_text


@shell.app.command("census")
def _census(
    name: Annotated[
        str, typer.Option("--release", metavar="NAME", help="A release of the 2020 Census, or a budget file.")
    ] = "dhc-persons-us",
    delta: Annotated[list[str] | None, shell.number("--delta", help="Instead of 1e-5 to 1e-15; repeatable.")] = None,
    output: Annotated[Path, shell.output(metavar="FOLDER", help="Where tables, figures and progress go.")] = Path(
        "census-results"
    ),
    jobs: shell.JobsOption = "1",
    dask: shell.DaskOption = None,
    certified: Annotated[bool, typer.Option("--certified", help="Every pair in balls instead of float64.")] = False,
    digits: Annotated[str, shell.digits(help="With --certified: digits to promise.")] = "20",
    proxy: Annotated[
        bool, typer.Option("--proxy", help="Only compare the full path with itself with the overall guarantee.")
    ] = False,
    level_delta: Annotated[
        str, shell.number("--level-delta", help="The delta at which each level is looked at on its own.")
    ] = "1e-10",
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Whether to draw the figures.")] = True,
    as_json: shell.JsonOption = False,
) -> None:
    """Account for all pairs of directed paths of a release: tables, figures, report. A stopped run goes on where it was."""
    from exactdp.apps.report import build

    release = shell.read_design(name)
    asked = read_digits(digits, "--digits") if certified else None
    grids = Grids.read([] if proxy else stated_epsilons(release.rho), delta or DELTAS, [] if proxy else ALPHAS, asked)
    at_level = Grids.read(deltas=[level_delta]).deltas[0]
    folder = output / release.name
    with _resumable(folder), make_runner(shell.read_jobs(jobs), dask, in_small_parts=True) as runner:
        journal = Journal.open(folder, release, grids)
        with shell.progress("pairs of paths", len(release.pairs)) as done:
            study = run_study(release, grids, runner, journal, done, shell.tell, shell.warn)
        if proxy:
            _show_proxy(study, as_json)
            return
        summary = summarize(study, runner, at_level, lambda text: shell.tell(f"{text} ..."))
    files = write_study(study, summary, folder)
    remark = ""
    if figures:
        try:
            from exactdp.apps.figures.release import save_figures

            shell.tell("figures ...")
            files += save_figures(study, folder)
        except MissingExtraError as error:
            remark = f"No figures: {error}"
    shell.tell("report ...")
    files.append(folder / "report.html")
    write_text(files[-1], build(study, summary, charts=figures and not remark))
    if as_json:
        head = {"release": name, "rho": exact_text(release.rho), "pairs": len(study.pairs)}
        shell.print_json({**head, **plain(summary), "files": [str(f) for f in files]})
        return
    _show(study, summary)
    print(f"{len(files)} files in {folder}: {', '.join(f.name for f in files)}")
    if remark:
        print(remark)


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


def _show(study: Study, summary: Summary) -> None:
    release = study.release
    print(f"{release.title}: {len(study.pairs)} pairs of directed paths, rho = {exact_text(release.rho)}")
    print(f"{study.grids.digits} digits in balls" if study.grids.digits else "float64 with certified bounds")
    print()
    columns = ["delta", "epsilon", "zCDP simple", "zCDP optimal", "Gaussian", "worst pair", "saved", "saved (optimal)"]
    shell.show_table(
        "Overall guarantee: certified upper bound of epsilon", columns, [_epsilon_row(r) for r in summary.epsilons]
    )
    rows = [
        [whole_text(r.alpha), f"{float(r.beta[0]):.10f}", f"{1 - float(r.beta[0]):.10f}", f"{1 - r.zcdp_beta:.6f}"]
        for r in summary.powers
    ]
    shell.show_table("Best test: which of two records was there", ["alpha", "beta", "power", "power by zCDP"], rows)
    rows = [
        [r.level, f"{float(r.rho):.6g}", shell.percent(r.saved_simple.saved), shell.percent(r.saved_optimal.saved)]
        for r in summary.levels
    ]
    title = f"Noise variance that each level on its own could save at delta = {whole_text(summary.levels[0].delta)}"
    shell.show_table(title, ["level", "rho", "against zCDP simple", "against zCDP optimal"], rows)
    worst = max(_understated(r.proxy, r.epsilon) for r in summary.epsilons)
    print(f"The full path with itself understates the overall epsilon by at most {worst:.1e} (relative).")


def _understated(proxy: Interval, overall: Interval) -> float:
    """How much larger the overall epsilon can be than that of one pair, relative to the latter's size."""
    low, high = map(float, proxy)
    if low <= 0 <= high:
        return math.inf
    return math.nextafter((float(overall[1]) - low) / min(abs(low), abs(high)), math.inf)


def _epsilon_row(row: EpsilonRow) -> list[str]:
    pair = str(row.worst_pair) if row.tied == 1 else f"{row.tied} tied"
    return [
        whole_text(row.delta),
        f"{float(row.epsilon[1]):.10f}",
        f"{row.zcdp_simple:.4f}",
        f"{row.zcdp_optimal:.4f}",
        f"{row.gaussian:.8f}",
        pair,
        shell.percent(row.saved_simple.saved),
        shell.percent(row.saved_optimal.saved),
    ]


def _show_proxy(study: Study, as_json: bool) -> None:
    """The advice for tuning: the full path with itself stands for all pairs, and by how much it is off."""
    base = study.release.full_path
    own = study.result((base, base)).epsilon
    rows = [
        (delta, pair, overall, _understated(pair, overall))
        for delta, pair, overall in zip(study.grids.deltas, own, study.largest("epsilon"), strict=True)
    ]
    if as_json:
        names = ("delta", "proxy", "overall", "relative_difference_at_most")
        shell.print_json([dict(zip(names, map(plain, row), strict=True)) for row in rows])
        return
    columns = ["delta", f"epsilon of ({base}, {base})", "overall epsilon", "relative difference at most"]
    shown_rows = [
        [whole_text(d), f"{float(p[1]):.12f}", f"{float(o[1]):.12f}", f"{diff:.2e}"] for d, p, o, diff in rows
    ]
    shell.show_table(f"{study.release.title}: the proxy and the overall guarantee", columns, shown_rows)
    print("Tune with the proxy (milliseconds), then account for all pairs once (exactdp account).")
