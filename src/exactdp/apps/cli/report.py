"""exactdp report: one HTML file about a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exactdp import census
from exactdp.apps.cli import shell
from exactdp.apps.cli.designs import (
    DEFAULT,
    ChangeOption,
    DesignArgument,
    MechanismOption,
    OldDesignOption,
    is_joint,
    read_design,
)
from exactdp.apps.cli.tables import say
from exactdp.census.changes import CHANGES
from exactdp.census.grids import Grids
from exactdp.census.joint import Joint, products_of
from exactdp.census.releases import Release
from exactdp.census.study import Study
from exactdp.census.summary import summarize
from exactdp.census.workers import make_runner
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.files import check_target, write_text
from exactdp.guarantees.calibration import target
from exactdp.guarantees.neighbours import neighbours
from exactdp.numbers import Number, read_share, shown
from exactdp.numerals import at_most
from exactdp.optimize.best_design import BestDesign, best
from exactdp.optimize.request_files import Request, read_request

SUFFIXES = (".html", ".htm")
_SHORT = 4  # digits of budgets: with more, certificates take long


RequestOption = Annotated[
    Path | None,
    typer.Option(
        "--request",
        metavar="FILE",
        help="A request of exactdp optimize: what it finds is an option too, within --within, or the file's epsilon, or the "
        "design's.",
    ),
]
TypicalOption = Annotated[
    list[str] | None,
    typer.Option(
        "--typical",
        metavar="LEVEL=COUNT",
        help="A typical count, to judge margins by; repeatable. Without it, people by area in the 2020 Census's own designs.",
    ),
]


@shell.app.command("report")
def _report(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    change: ChangeOption = None,
    output: Annotated[Path, shell.output(metavar="FILE", help="The HTML file to write.")] = Path("report.html"),
    delta: Annotated[str, shell.number("--delta", help="The delta of the headline.")] = "1e-10",
    digits: Annotated[str, shell.digits(help=f"Digits of the certificates, {shell.DIGITS_RANGE}.")] = "10",
    date: Annotated[
        str | None, typer.Option("--date", metavar="TEXT", help="A date for the masthead; none is shown otherwise.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="DESIGN", help="Another design as an option of the memo; repeatable."),
    ] = None,
    within: Annotated[
        str | None,
        shell.number("--within", help="The epsilon that may be spent: the memo then recommends by margin."),
    ] = None,
    request: RequestOption = None,
    typical: TypicalOption = None,
    jobs: shell.JobsOption = "1",
    dask: shell.DaskOption = None,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Whether to draw the charts.")] = True,
) -> None:
    """Write a report on a release: guarantee, noise, savings, proof and certificates in one HTML file."""
    from exactdp.apps.report import build, study_for_report
    from exactdp.apps.report.charts import need_matplotlib
    from exactdp.apps.report.decision import MemoQuestion

    _check_target(output)
    if figures:
        need_matplotlib()
    if design is not None and (change is not None or is_joint(design)) and not mechanism:
        _report_jointly(design, change, output, figures)
        return
    if change is not None:
        raise InvalidInputError("--change is about products joined by +. Found it with something else.")
    source = read_design(design, mechanism, None, old, DEFAULT)
    release = source.whole("report")
    promised = read_digits(digits, "--digits")
    grids, asked = Grids.of_report(delta)
    wanted = None if request is None else _wanted(request, asked)
    memo = MemoQuestion(_others(against or []), within, dict(map(_count, typical)) if typical else None)
    memo.checked(release)
    with make_runner(shell.read_jobs(jobs), dask) as runner:
        with shell.progress("bounds of pairs", len(release.pairs) * len(grids.deltas)) as done:
            study = study_for_report(release, grids, runner, done)
        summary = summarize(study, runner, asked, lambda text: shell.tell(f"{text} ..."))
    if wanted is not None:
        shell.tell("The best design is looked for ...")
        memo = memo.with_option("Optimised", _optimised(study, wanted, asked, within))
    shell.tell("report ...")
    write_text(output, build(study, summary, delta=asked, digits=promised, date=date, charts=figures, **memo._asdict()))
    source.show()
    pairs = neighbours(release.relation).counted(len(release.pairs))
    say(f"{output}: epsilon is at most {at_most(study.epsilon(asked))} at delta = {delta}, over {pairs}")


def _others(designs: list[str]) -> dict[str, Release]:
    """The options beside the first, by letters from B on."""
    found = [read_design(text).whole("report") for text in designs]
    return {f"{chr(ord('B') + i)}, {release.name}": release for i, release in enumerate(found)}


def _wanted(file: Path, delta: Number) -> Request:
    """What the optimised option is asked, at the delta of the report."""
    found = read_request(file)
    if found.delta is not None and read_share(found.delta, "delta") != read_share(delta, "delta"):
        raise InvalidInputError(
            f"The options of a report are compared at its delta. Found delta = {shown(found.delta)} in {shown(file.name)}; "
            "leave it out there, or say --delta."
        )
    return found


def _optimised(study: Study, wanted: Request, delta: Number, within: str | None) -> BestDesign:
    """The best design within the epsilon that may be spent, or else at that of the design, rounded up."""
    epsilon: Number = within or wanted.epsilon or at_most(study.epsilon(delta))
    return best(
        study.release,
        wanted.weighted(study.release).objectives(),
        target=target(epsilon, delta),
        requirements=wanted.require,
        digits=_SHORT,
    )


def _count(text: str) -> tuple[str, str]:
    level, equals, count = text.rpartition("=")
    if not equals or not level.strip():
        raise InvalidInputError(f"A typical count is given as LEVEL=COUNT, such as Block=23. Found {shown(text)}.")
    return level.strip(), count.strip()


def _every_change(products: str) -> tuple[list[Joint], list[str]]:
    """Every change with the products that it is followed through, and sentences about those that it is not."""
    names = [name.strip() for name in products.split("+")]
    stems = dict(zip(names, products_of(products), strict=True))
    joints: list[Joint] = []
    left_out: list[str] = []
    for name, change in CHANGES.items():
        kept = [n for n in names if stems[n] in change.follows]
        if any(change.follows[stems[n]].halves for n in kept):
            joints.append(census.joint(kept, name))
            left = [n for n in names if n not in kept]
            left_out += [f"{name}: {', '.join(left)}; {change.left_out}"] if left else []
    return joints, left_out


def _report_jointly(products: str, change: str | None, output: Path, figures: bool) -> None:
    """The report on several products: of one change, or of every change with the products that it is followed through."""
    from exactdp.apps.report.joint_report import build_joint

    joints, left_out = ([census.joint(products, change)], []) if change is not None else _every_change(products)
    if not joints:
        raise InvalidInputError(f"No change is followed through any of these products. Found {shown(products)}.")
    shell.tell("report ...")
    write_text(output, build_joint(joints, left_out, figures))
    for joint in joints:
        say(f"{output}: {joint.change.name}: epsilon is at most {at_most(joint.epsilon('1e-10'))} at delta = 1e-10")


def _check_target(output: Path) -> None:
    """Refuse before the work what could not be written after it."""
    if output.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(f"A report is an HTML file; its name must end in .html. Found {output}.")
    if not output.parent.is_dir():
        raise InvalidInputError(f"The folder of {output} does not exist. Create it, or choose another.")
    if output.is_dir():
        raise InvalidInputError(f"{output} is a folder. Name a file in it, such as {output / 'report.html'}.")
    check_target(output)
