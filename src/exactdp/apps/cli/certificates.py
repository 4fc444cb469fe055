"""exactdp certify, exactdp verify: claims about a whole design or about one composition."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from exactdp import census
from exactdp.accounting.certificates.verify import Verification
from exactdp.accounting.composition import Composition
from exactdp.apps.cli import shell
from exactdp.census.certification import certify, load_certificate, verify
from exactdp.census.design_certificate import DIGITS as DESIGN_DIGITS
from exactdp.census.design_certificate import DesignCertificate
from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError
from exactdp.files import check_target
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import one_line, whole

_MECHANISM = re.compile(r"(?P<sigma2>[^:*]+)(:(?P<sensitivity>[^:*]+))?(\*(?P<count>[^:*]+))?")

_DESIGN = "A budget file (.toml, .csv) or a built-in release, certified as a whole unless --pair is given."
DESIGN_RANGE = f"{DESIGN_DIGITS[0]} to {DESIGN_DIGITS[1]}"
CertificateArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A certificate made by exactdp certify.")]


@shell.app.command("certify")
def _certify(
    design: Annotated[str | None, typer.Argument(metavar="[DESIGN]", help=_DESIGN)] = None,
    mechanism: shell.MechanismOption = None,
    release: shell.ReleaseOption = None,
    pair: shell.PairOption = None,
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
    For a composition (--mechanism, or a design with --pair): an enclosure of delta, epsilon or beta.
    """
    subject = _subject(design, mechanism or [], release, pair)
    promised = None if digits is None else whole(digits, "--digits", 1)
    if output is not None:
        check_target(output)
    certificate = certify(subject, epsilon=epsilon, delta=delta, alpha=alpha, digits=promised)
    if output is not None:
        certificate.save(output)
    if output is None or as_json:
        print(certificate.to_json(), end="")
    elif isinstance(certificate, DesignCertificate):
        print(f"{output}: {certificate}")
    else:
        print(f"{output}: {certificate.claim} is between {certificate.lower} and {certificate.upper}")


@shell.app.command("verify")
def _verify(file: CertificateArgument, jobs: shell.JobsOption = "1", as_json: shell.JsonOption = False) -> None:
    """Recompute a certificate by other routes and say in one line whether it holds; exit code 1 if it does not."""
    certificate = load_certificate(file)
    total = certificate.evidence.compositions if isinstance(certificate, DesignCertificate) else 1
    with shell.progress("Compositions", total) as done:
        result = verify(certificate, jobs=shell.read_jobs(jobs), done=done)
    if as_json:
        shell.print_json(dataclasses.asdict(result), indent=2)
    else:
        _print_verdict(result)
    if not result.holds:
        raise typer.Exit(shell.FAILED)


def _subject(design: str | None, mechanisms: list[str], release: str | None, pair: str | None) -> Composition | Release:
    """What is certified: a whole design, unless a pair of it or mechanisms are asked for."""
    if design is None:
        return read_composition(mechanisms, release, pair)
    if mechanisms or release:
        raise InvalidInputError(
            f"Give a design or {'--mechanism' if mechanisms else '--release'}, not both. Found {design}."
        )
    found = shell.read_design(design)
    return found if pair is None else found.pair(*shell.read_pair(pair))


def read_composition(mechanisms: list[str], release: str | None, pair: str | None) -> Composition:
    """The composition that the options describe: mechanisms, or a pair of allocations of a release."""
    if mechanisms and (release or pair):
        raise InvalidInputError(
            f"Give --mechanism or --release with --pair, not both. Found {mechanisms[0]} and {release or pair}."
        )
    if mechanisms:
        counts: Counter[DiscreteGaussian] = Counter()
        for text in mechanisms:
            noise, count = _read_mechanism(text)
            counts[noise] += count
        return Composition(counts)
    if release is None or pair is None:
        found = f"--release {release}" if release else f"--pair {pair}" if pair else "none of them"
        raise InvalidInputError(f"Give --mechanism, or --release and --pair, to say what was released. Found {found}.")
    return census.release(release).pair(*shell.read_pair(pair))


def _read_mechanism(text: str) -> tuple[DiscreteGaussian, int]:
    parts = _MECHANISM.fullmatch(text)
    if parts is None:
        raise InvalidInputError(f"--mechanism takes SIGMA2[:SENSITIVITY][*COUNT], such as 5/2:1*20. Found {text!r}.")
    sensitivity = whole(parts["sensitivity"] or 1, "sensitivity", 1)
    return DiscreteGaussian(parts["sigma2"], sensitivity), whole(parts["count"] or 1, "count", 1)


def _print_verdict(result: Verification) -> None:
    """One line, coloured on a terminal."""
    line = Text(one_line(result.reason))
    line.stylize("bold green" if result.holds else "bold red", 0, len("Holds" if result.holds else "Does not hold"))
    Console(soft_wrap=True, highlight=False).print(line)
