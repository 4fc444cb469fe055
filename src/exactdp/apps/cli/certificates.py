"""exactdp certify, exactdp verify: claims that anyone can check again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from exactdp.accounting.certificates.certificate import certify
from exactdp.accounting.certificates.verify import Verification, verify
from exactdp.apps.cli import shell
from exactdp.apps.cli.designs import (
    DesignArgument,
    DesignOption,
    MechanismOption,
    PairOption,
    ReleaseOption,
    read_design,
)
from exactdp.apps.cli.tables import say
from exactdp.elementwise import read_digits
from exactdp.files import check_target
from exactdp.numbers import one_line

CertificateArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A certificate made by exactdp certify.")]


@shell.app.command("certify")
def _certify(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    release: ReleaseOption = None,
    design_option: DesignOption = None,
    pair: PairOption = None,
    epsilon: shell.EpsilonOption = None,
    delta: shell.DeltaOption = None,
    alpha: shell.AlphaOption = None,
    digits: Annotated[str, shell.digits(help=f"Digits to promise, {shell.DIGITS_RANGE}.")] = "30",
    output: shell.OutputOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Write a certificate of delta, epsilon or beta: composition, enclosure, plan, errors, versions, hash."""
    source = read_design(design, mechanism, pair, release, design_option)
    composition = source.one("certify")
    promised = read_digits(digits)
    if output is not None:
        shell.check_ending(output, ".json")
        check_target(output)
    certificate = certify(composition, epsilon=epsilon, delta=delta, alpha=alpha, digits=promised)
    if output is not None:
        certificate.save(output)
    if output is None or as_json:
        print(certificate.to_json(), end="")
    else:
        source.show()
        say(f"{output}: {certificate.claim} is between {certificate.lower} and {certificate.upper}")


@shell.app.command("verify")
def _verify(file: CertificateArgument, as_json: shell.JsonOption = False) -> None:
    """Recompute a certificate by other routes and say in one line whether it holds; exit code 1 if it does not."""
    result = verify(file)
    if as_json:
        shell.print_json(dataclasses.asdict(result), indent=2)
    else:
        _print_verdict(result)
    if not result.holds:
        raise typer.Exit(shell.FAILED)


def _print_verdict(result: Verification) -> None:
    """One line, coloured on a terminal."""
    line = Text(one_line(result.reason))
    line.stylize("bold green" if result.holds else "bold red", 0, len("Holds" if result.holds else "Does not hold"))
    Console(soft_wrap=True, highlight=False).print(line)
