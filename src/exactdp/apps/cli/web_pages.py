"""exactdp report, exactdp studio: a release as one HTML file, and as a web page in which it is edited."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from exactdp.apps.cli import shell
from exactdp.census.grids import Grids
from exactdp.census.study import run_study
from exactdp.census.summary import summarize
from exactdp.census.workers import make_runner
from exactdp.errors import InvalidInputError
from exactdp.files import write_text
from exactdp.numbers import whole

SUFFIXES = (".html", ".htm")


@shell.app.command("report")
def _report(
    budget: shell.OptionalBudgetArgument = "dhc-persons-us",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    delta: Annotated[str, shell.number("--delta", help="The delta of the headline.")] = "1e-10",
    digits: Annotated[str, typer.Option("--digits", metavar="N", help="Digits of the certificates, 5 to 1000.")] = "10",
    date: Annotated[
        str | None, typer.Option("--date", metavar="TEXT", help="A date for the masthead; none is shown otherwise.")
    ] = None,
    jobs: shell.JobsOption = "1",
    dask: shell.DaskOption = None,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Whether to draw the charts.")] = True,
) -> None:
    """Write a report on a release: guarantee, noise, savings, proof and certificates in one HTML file."""
    from exactdp.apps.report import build
    from exactdp.apps.report.charts import need_matplotlib

    _check_target(output)
    if figures:
        need_matplotlib()
    release = shell.read_design(budget)
    promised = whole(digits, "--digits", 5, 1000)
    grids, asked = Grids.of_report(delta)
    with make_runner(shell.read_jobs(jobs), dask) as runner:
        with shell.progress("pairs of paths", len(release.pairs)) as done:
            study = run_study(release, grids, runner, done=done)
        summary = summarize(study, runner, asked, lambda text: shell.tell(f"{text} ..."))
    shell.tell("report ...")
    write_text(output, build(study, summary, delta=asked, digits=promised, date=date, charts=figures))
    epsilon = float(study.epsilon(asked))
    print(f"{output}: {release.title}, epsilon = {epsilon:.10g} at delta = {delta} over {_count(len(release.pairs))}")


def _count(pairs: int) -> str:
    return "one pair of directed paths" if pairs == 1 else f"{pairs} pairs of directed paths"


def _check_target(output: Path) -> None:
    """Refuse before the work what could not be written after it."""
    if output.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"A report is an HTML file; its name must end in .html. Found {output}.")
    if not output.parent.is_dir():
        raise InvalidInputError(f"The folder of {output} does not exist. Create it, or choose another.")
    if output.is_dir():
        raise InvalidInputError(f"{output} is a folder. Name a file in it, such as {output / 'report.html'}.")


@shell.app.command("studio")
def _studio(
    budget: shell.OptionalBudgetArgument = "dhc-persons-us",
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[str, typer.Option("--port", metavar="N", help="The port; 0 takes a free one.")] = "8765",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Permit a --host that other machines can reach.")
    ] = False,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME", help="With --allow-remote: a name by which browsers reach it; repeatable."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every request, without what it asks.")] = False,
) -> None:
    """Open the studio: edit a design in the browser, see its exact guarantee at once. Ctrl-C ends it."""
    from exactdp.apps.studio.server.serve import is_loopback, serve

    release = shell.read_design(budget)
    number = whole(port, "--port", 0, 65535)
    if not is_loopback(host):
        if not allow_remote:
            raise InvalidInputError(
                f"Other machines could use the studio at this host, and it asks nobody for a password. Found {host}; "
                "leave --host out, or add --allow-remote."
            )
        print(f"Warning: whoever reaches {host} can use this studio; it asks nobody for a password.", file=sys.stderr)
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s")
    serve(release, host, number, other_names=name or (), browser=browser, told=_tell)


def _tell(address: str) -> None:
    print(f"The studio is open at {address} (Ctrl-C ends it).", flush=True)
