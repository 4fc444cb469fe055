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
from exactdp.apps.cli.designs import (
    Design,
    DesignArgument,
    MechanismOption,
    PairOption,
    described,
    read_design,
    read_release,
)
from exactdp.apps.cli.tables import say, show_table
from exactdp.apps.figures.style import figure_class
from exactdp.apps.release.audit import Audit, audit
from exactdp.apps.release.counts import is_table_of_counts, read_counts
from exactdp.apps.release.noisy_table import NoisyTable, PlannedRelease, plan_release
from exactdp.apps.release.path_noise import WorstPairs
from exactdp.apps.release.publication import Publication, check_outputs
from exactdp.census.built_in import release_names
from exactdp.census.releases import Release
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.files import check_target
from exactdp.interop.opendp import opendp_version
from exactdp.numbers import one_line, whole
from exactdp.numerals import DOWN, UP, at_most, counted, exact, with_places

_MOST_LINES = 40  # of a table on the screen


@shell.app.command("release")
def _release(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="DESIGN COUNTS",
            help="The design, and a CSV table with the columns level, query, count, path (optional) and any others.",
        ),
    ],
    output: Annotated[Path, shell.output(metavar="FILE", help="The table with noise, a new .csv file.")],
    mechanism: MechanismOption = None,
    allocation: Annotated[
        str | None,
        typer.Option(
            "--allocation", metavar="K", help="The path of a table without a column path; the full one unless told."
        ),
    ] = None,
    delta: Annotated[str, shell.number("--delta", help="State epsilon at this delta.")] = "1e-10",
    digits: Annotated[str, shell.digits(help=f"Digits of the certificate, {shell.DIGITS_RANGE}.")] = "30",
    shared: Annotated[
        bool, typer.Option("--shared", help="Let others read the files as the umask permits; else only you can.")
    ] = False,
    as_json: shell.JsonOption = False,
) -> None:
    """Add a design's noise to a table of counts, each cell once, drawn by OpenDP, with a certificate beside it."""
    opendp_version()
    design, counts = _in_order(inputs, mechanism)
    accounted = _read_design(design) if design else read_design(None, mechanism).whole("release")
    number = None if allocation is None else whole(allocation, "--allocation", 1)
    files = [counts, *([design] if design else [])]
    check_outputs(output, *files)
    table = read_counts(counts, accounted, number)
    with shell.progress("pairs of paths", len(accounted.pairs)) as done:
        plan = plan_release(accounted, table, number, delta, read_digits(digits, "--digits"), done)
    publication = Publication(output, *files, shared=shared)
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
        _tell_release(plan, noisy, publication.published, as_json)


def _in_order(inputs: list[str], mechanism: list[str] | None) -> tuple[str, str]:
    """The design, empty with -m, and the counts, which were given the other way round before 0.2 and still may be."""
    wanted = "COUNTS alone with -m" if mechanism else "DESIGN and COUNTS"
    if len(inputs) != (1 if mechanism else 2):
        found = counted(len(inputs), "argument")
        raise InvalidInputError(f"release takes {wanted}, in this order. Found {found}; call exactdp release --help.")
    if mechanism:
        return "", inputs[0]
    first, second = inputs
    if _is_design_by_name(first) != _is_design_by_name(second):
        return (first, second) if _is_design_by_name(first) else (second, first)
    if is_table_of_counts(first) and not is_table_of_counts(second):
        return second, first
    return first, second


def _is_design_by_name(text: str) -> bool:
    return text in release_names() or Path(text).suffix.lower() in (".toml", ".json")


def _read_design(text: str) -> Release:
    """The design. Who mixes up the arguments gives a table of counts for it, so that no error may show what is in it."""
    with suppress(InvalidInputError):
        return read_release(text)
    if _is_design_by_name(text) or not Path(text).suffix:
        return read_release(text)
    raise InvalidInputError(
        f"DESIGN must be a budget file or the name of a built-in release, and COUNTS a table of counts. Found {text} for DESIGN."
    )


def _tell_release(plan: PlannedRelease, noisy: NoisyTable, paths: Sequence[Path], as_json: bool) -> None:
    if as_json:
        shell.print_json({"files": [str(path) for path in paths], **noisy.statement})
        return
    Design(plan.design.name, plan.design.title, plan.design).show()
    said = noisy.statement["guarantee"]
    cells = sum(one.cells for one in plan.noise)
    say(f"{paths[0]}: {counted(cells, 'cell')} with noise drawn by {noisy.statement['sampler']}")
    say(
        f"epsilon at delta = {exact(Fraction(said['delta']))} is at most {at_most(noisy.epsilon.upper)} for the noise drawn"
        f"{_worst(plan.worst)}"
    )
    for path in paths[1:]:
        is_claim = path.name.endswith(".certificate.json")
        say(f"{path}: " + (f"certificate of {said['certificate_is_of']}" if is_claim else "what was drawn"))
    if not any(path.name.endswith(".certificate.json") for path in paths):
        say(f"The certificate is of {said['certificate_is_of']}.")
    print()
    _show_noise(plan)
    say(f"This covers: {said['covers']}")


def _worst(found: WorstPairs) -> str:
    """Which of the pairs is the worst, in words; nothing where there is one only."""
    if len(found.covered) == 1:
        return ""
    names = found.names
    told = names[0] if len(names) == 1 else f"{', '.join(names[:3])}{', ...' if len(names) > 3 else ''} alike"
    return f", the worst of {counted(len(found.covered), found.noun)}: {told}"


def _show_noise(plan: PlannedRelease) -> None:
    """What was drawn, query by query, unless that would fill screens."""
    if len(plan.noise) > _MOST_LINES:
        say("The noise of every query stands in the file that says what was drawn.", "")
        return
    columns = ["level and query", "path", "cells", "noise of the design"]
    rows = [
        [f"{one.level}, {one.query}", " ".join(map(str, one.paths)), f"{one.cells:,}", described(one.designed)]
        for one in plan.noise
    ]
    show_table("", columns, rows, prose="noise of the design")


@shell.app.command("audit")
def _audit(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
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
    source = read_design(design, mechanism, pair)
    if output is not None:  # what would stop the figure is found before the draws, not after them
        figure_class()
        shell.check_ending(output, ".png", ".svg", ".pdf")
        check_target(output)
    if source.is_whole:
        source = source.of_pair(source.whole("audit").proxy_pair)
    composition, releases = source.one("audit"), whole(draws, "--draws", 100)
    total = releases // 2 * 2 * sum(composition.mechanisms.values())
    with shell.progress("numbers drawn", total) as done:
        found = audit(composition, releases, confidence, on_progress=done)
    if output is not None:
        found.save_figure(output)
    if as_json:
        head = {"release": source.name, "pair": list(source.pair or ()), "sampler": f"OpenDP {version}"}
        shell.print_json({**head, **_record(found)})
    else:
        source.show()
        _show(f"Noise drawn by OpenDP {version}", found)
    if not found.is_consistent:
        raise typer.Exit(shell.FAILED)


def _record(found: Audit) -> dict[str, object]:
    points = [{**dataclasses.asdict(point), "consistent": point.is_consistent} for point in found.points]
    head = {"draws": found.draws, "confidence": str(found.confidence), "consistent": found.is_consistent}
    return {**head, "points": points}


def _show(title: str, found: Audit) -> None:
    columns = [
        "threshold",
        "alpha seen",
        "its band",
        "alpha exactly",
        "beta seen",
        "its band",
        "beta exactly",
        "in band",
    ]
    rows = [
        [
            f"{p.threshold:.4f}",
            *(f"{p.alpha:.6f}", _interval(*p.alpha_band), _interval(*p.exact_alpha)),
            *(f"{p.beta:.6f}", _interval(*p.beta_band), _interval(*p.exact_beta)),
            "yes" if p.is_consistent else "NO",
        ]
        for p in found.points
    ]
    show_table(title, columns, rows)
    verdict = "Every exact point lies in its band" if found.is_consistent else "The noise is not what it should be"
    say(f"{verdict}: {counted(found.draws, 'release')}, joint confidence {exact(found.confidence)}.")


def _interval(low: float, high: float) -> str:
    return f"{with_places(low, 6, DOWN)} to {with_places(high, 6, UP)}"
