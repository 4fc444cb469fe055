"""exactdp certify, exactdp verify: claims about one composition."""

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
from exactdp.accounting.certificates.certificate import certify
from exactdp.accounting.certificates.verify import Verification, verify
from exactdp.accounting.composition import Composition
from exactdp.apps.cli import shell
from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.files import check_target
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import one_line, whole

_MECHANISM = re.compile(r"(?P<sigma2>[^:*]+)(:(?P<sensitivity>[^:*]+))?(\*(?P<count>[^:*]+))?")

CertificateArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A certificate made by exactdp certify.")]


@shell.app.command("certify")
def _certify(
    mechanism: shell.MechanismOption = None,
    release: shell.ReleaseOption = None,
    pair: shell.PairOption = None,
    epsilon: shell.EpsilonOption = None,
    delta: shell.DeltaOption = None,
    alpha: shell.AlphaOption = None,
    digits: Annotated[str, shell.digits(help=f"Digits to promise, {shell.DIGITS_RANGE}.")] = "30",
    output: shell.OutputOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Write a certificate of delta, epsilon or beta: composition, enclosure, plan, errors, versions, hash."""
    composition = read_composition(mechanism or [], release, pair)
    promised = read_digits(digits)
    if output is not None:
        check_target(output)
    certificate = certify(composition, epsilon=epsilon, delta=delta, alpha=alpha, digits=promised)
    if output is not None:
        certificate.save(output)
    if output is None or as_json:
        print(certificate.to_json(), end="")
    else:
        print(f"{output}: {certificate.claim} is between {certificate.lower} and {certificate.upper}")


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
