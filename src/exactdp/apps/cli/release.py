"""exactdp release, exactdp audit: a table with a design's noise, and whether the noise is what it should be."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from exactdp.apps.cli import shell, streams
from exactdp.apps.cli.designs import PairOption, read_pair, read_release
from exactdp.apps.cli.tables import show_table
from exactdp.apps.figures.style import figure_class
from exactdp.apps.release.audit import Audit, audit
from exactdp.apps.release.counts import read_counts
from exactdp.apps.release.noisy_table import NoisyTable, chosen_allocation, plan_release
from exactdp.apps.release.publication import Publication, check_outputs
from exactdp.census.releases import Release
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.files import check_target
from exactdp.interop.opendp import opendp_version
from exactdp.numbers import one_line, whole

BudgetArgument = Annotated[str, typer.Argument(metavar="DESIGN", help="A budget file or a built-in release.")]


@shell.app.command("release")
def _release(
    counts: Annotated[
        Path, typer.Argument(metavar="COUNTS", help="A CSV table with the columns level, query, count and any others.")
    ],
    budget: BudgetArgument,
    output: Annotated[Path, shell.output(metavar="FILE", help="The table with noise, a new .csv file.")],
    allocation: Annotated[
        str | None, typer.Option("--allocation", metavar="K", help="An allocation; the full path unless told.")
    ] = None,
    delta: Annotated[str, shell.number("--delta", help="State epsilon at this delta.")] = "1e-10",
    digits: Annotated[str, shell.digits(help=f"Digits of the certificate, {shell.DIGITS_RANGE}.")] = "30",
    shared: Annotated[
        bool, typer.Option("--shared", help="Let others read the files as the umask permits; else only you can.")
    ] = False,
    as_json: shell.JsonOption = False,
) -> None:
    """Add a design's discrete Gaussian noise to a table of counts, drawn by OpenDP, with a certificate beside it."""
    opendp_version()
    design = _read_budget(budget, counts)
    number = None if allocation is None else whole(allocation, "--allocation", 1)
    check_outputs(output, counts, budget)
    table = read_counts(counts, chosen_allocation(design, number))
    plan = plan_release(design, table, number, delta, read_digits(digits, "--digits"))
    publication = Publication(output, counts, budget, shared=shared)
    try:
        with publication:
            noisy = plan.draw()
            noisy.publish(publication)
    except (OSError, KeyboardInterrupt) as error:
        if not publication.is_published:
            raise
        # the disk decides: whoever is told of a failure draws again
        streams.say(f"After the table was there: {one_line(str(error)) or 'interrupted'}.")
    with streams.telling(f"{one_line(str(output))} is there, complete, with what belongs to it."):
        _tell_release(noisy, publication.published, as_json)


def _read_budget(budget: str, counts: Path) -> Release:
    """The design. Who mixes up the arguments gives a table of counts for it, so that no error may show what is in it."""
    if counts.suffix.lower() == ".toml":
        raise InvalidInputError(f"COUNTS must be a CSV table and comes before BUDGET. Found {counts}; swap the two.")
    with suppress(InvalidInputError):
        return read_release(budget)
    if Path(budget).suffix.lower() != ".csv":
        return read_release(budget)
    raise InvalidInputError(f"BUDGET must be a budget file and comes after COUNTS. Found {budget}, which is none.")


def _tell_release(noisy: NoisyTable, paths: Sequence[Path], as_json: bool) -> None:
    if as_json:
        shell.print_json({"files": [str(path) for path in paths], **noisy.statement})
        return
    said = noisy.statement["guarantee"]
    cells = sum(entry["cells"] for entry in noisy.statement["noise"])
    print(f"{paths[0]}: {cells} cells with noise drawn by {noisy.statement['sampler']}")
    print(f"epsilon at delta = {float(Fraction(said['delta'])):g} is at most {noisy.epsilon.upper} for the noise drawn")
    for path in paths[1:]:
        is_claim = path.name.endswith(".certificate.json")
        print(f"{path}: " + (f"certificate of {said['certificate_is_of']}" if is_claim else "what was drawn"))
    print(f"This covers: {said['covers']}")


@shell.app.command("audit")
def _audit(
    budget: BudgetArgument,
    draws: Annotated[
        str, typer.Option("--draws", metavar="N", help="Releases to draw, half of each of two neighbouring tables.")
    ] = "200000",
    confidence: Annotated[str, shell.number("--confidence", help="Joint confidence of all bands.")] = "0.999",
    pair: PairOption = None,
    output: Annotated[Path | None, shell.output(metavar="FILE", help="Draw a figure here, a PNG.")] = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Test OpenDP's noise against the exact trade-off curve of a design; exit code 1 if they do not agree."""
    version = opendp_version()
    design = read_release(budget)
    if output is not None:  # what would stop the figure is found before the draws, not after them
        figure_class()
        check_target(output)
    numbers = read_pair(pair) if pair else (design.full_path, design.full_path)
    composition, releases = design.pair(*numbers), whole(draws, "--draws", 100)
    total = releases // 2 * 2 * sum(composition.discrete_gaussians.values())
    with shell.progress("numbers drawn", total) as done:
        found = audit(composition, releases, confidence, on_progress=done)
    if output is not None:
        found.save_figure(output)
    if as_json:
        head = {"release": design.name, "pair": list(numbers), "sampler": f"OpenDP {version}"}
        shell.print_json({**head, **_record(found)})
    else:
        _show(f"{design.title}: pair ({numbers[0]}, {numbers[1]}), OpenDP {version}", found)
    if not found.is_consistent:
        raise typer.Exit(shell.FAILED)


def _record(found: Audit) -> dict[str, object]:
    points = [{**dataclasses.asdict(point), "consistent": point.is_consistent} for point in found.points]
    head = {"draws": found.draws, "confidence": str(found.confidence), "consistent": found.is_consistent}
    return {**head, "points": points}


def _show(title: str, found: Audit) -> None:
    columns = ["threshold", "alpha seen", "band", "exact", "beta seen", "band", "exact", "in band"]
    rows = [
        [
            f"{p.threshold:.4f}",
            *(f"{p.alpha:.6f}", _interval(*p.alpha_band), f"{p.exact_alpha.upper:.6f}"),
            *(f"{p.beta:.6f}", _interval(*p.beta_band), f"{p.exact_beta.upper:.6f}"),
            "yes" if p.is_consistent else "NO",
        ]
        for p in found.points
    ]
    show_table(title, columns, rows)
    verdict = "Every exact point lies in its band" if found.is_consistent else "The noise is not what it should be"
    print(f"{verdict}: {found.draws:,} releases, joint confidence {float(found.confidence):g}.")


def _interval(low: float, high: float) -> str:
    return f"{low:.6f} to {high:.6f}"
