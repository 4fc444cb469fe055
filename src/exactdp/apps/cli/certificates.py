"""exactdp certify, exactdp verify: claims about a whole design or about one composition, which anyone can check again."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from exactdp.accounting.certificates.certificate import Certificate
from exactdp.accounting.certificates.verify import Verification
from exactdp.apps.cli import shell, tables
from exactdp.apps.cli.designs import (
    ChangeOption,
    DesignArgument,
    FullOption,
    MechanismOption,
    OldDesignOption,
    PairOption,
    read_design,
)
from exactdp.apps.cli.tables import say
from exactdp.census.certification import certify, load_certificate, verify
from exactdp.census.design_certificate import DIGITS as DESIGN_DIGITS
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.joint_certificate import JointCertificate
from exactdp.files import check_target
from exactdp.numbers import one_line, whole

DESIGN_RANGE = f"{DESIGN_DIGITS[0]} to {DESIGN_DIGITS[1]}"
CertificateArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A certificate made by exactdp certify.")]


@shell.app.command("certify")
def _certify(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    pair: PairOption = None,
    change: ChangeOption = None,
    full: FullOption = False,
    epsilon: shell.EpsilonOption = None,
    delta: shell.DeltaOption = None,
    alpha: shell.AlphaOption = None,
    digits: Annotated[
        str | None, shell.digits(help=f"Digits to promise, {shell.DIGITS_RANGE}; of a design {DESIGN_RANGE}.")
    ] = None,
    output: shell.OutputOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Write a certificate of a whole design, or of one composition: the claim, what proves it, versions, hash.

    For a design: at epsilon every pair's delta is at most delta, and one pair proves that a smaller number will not do.
    For a composition of discrete Gaussians (--mechanism, or a design with --pair): an enclosure of delta, epsilon or beta.
    """
    source = read_design(design, mechanism, pair, old, change=change, full=full)
    promised = None if digits is None else whole(digits, "--digits", 1)
    if output is not None:
        shell.check_ending(output, ".json")
        check_target(output)
    certificate: Certificate | DesignCertificate | JointCertificate
    if source.joint is not None and source.given is None:
        certificate = certify(source.joint, epsilon=epsilon, delta=delta, alpha=alpha, digits=promised)
    elif source.composition is not None and source.is_in_balls and source.joint is None:
        certificate = certify(source.composition, epsilon=epsilon, delta=delta, alpha=alpha, digits=promised)
    else:
        certificate = certify(source.whole("certify"), epsilon=epsilon, delta=delta, alpha=alpha, digits=promised)
    if output is not None:
        certificate.save(output)
    if output is None or as_json:
        print(certificate.to_json(), end="")
    else:
        source.show()
        say(f"{output}: {_told(certificate)}")


def _told(certificate: Certificate | DesignCertificate | JointCertificate) -> str:
    if isinstance(certificate, DesignCertificate | JointCertificate):
        return str(certificate)
    return f"{certificate.claim} is between {certificate.lower} and {certificate.upper}"


@shell.app.command("verify")
def _verify(file: CertificateArgument, jobs: shell.JobsOption = "1", as_json: shell.JsonOption = False) -> None:
    """Recompute a certificate by other routes and say in one line whether it holds; exit code 1 if it does not."""
    certificate = load_certificate(file)
    total = 1
    if isinstance(certificate, DesignCertificate):
        total = certificate.evidence.compositions
    elif isinstance(certificate, JointCertificate):
        total = certificate.combinations
    with shell.progress("compositions", total) as done:
        result = verify(certificate, jobs=shell.read_jobs(jobs), done=done)
    if as_json:
        shell.print_json(dataclasses.asdict(result), indent=2)
    else:
        _print_verdict(result)
    if not result.holds:
        raise typer.Exit(shell.FAILED)


def _print_verdict(result: Verification) -> None:
    """One line, coloured and broken between words on a terminal."""
    for number, part in enumerate(tables.wrapped(one_line(result.reason), tables.width())):
        line = Text(part)
        if number == 0:
            word = "Holds" if result.holds else "Does not hold"
            line.stylize("bold green" if result.holds else "bold red", 0, len(word))
        Console(highlight=False).print(line, soft_wrap=True)
