"""The command line: `exactdp`.

Exit codes: 0 done, 1 a certificate does not hold, 2 bad input (one sentence on standard error), 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text
from typer.core import TyperGroup

import exactdp
from exactdp import census
from exactdp.composition import Composition
from exactdp.errors import ExactDPError, InvalidInputError
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import log_rational, rational, shown, whole
from exactdp.records import Certificate, Verification, certify, verify

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # also of unknown options and commands; typer exports no name for it
_MECHANISM = re.compile(r"(?P<sigma2>[^:*]+)(:(?P<sensitivity>[^:*]+))?(\*(?P<count>[^:*]+))?")
_PAIR = re.compile(r"\s*(\d{1,6})\s*,\s*(\d{1,6})\s*")


class _Commands(TyperGroup):
    """The one place where errors become a sentence and an exit code."""

    def main(self, args: Sequence[str] | None = None, *more: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command; in stand-alone mode never a traceback for what the user can put right."""
        run = functools.partial(super().main, args, **{**extra, "standalone_mode": False})
        if not standalone_mode:
            return run(*more)
        try:
            code = run(*more)
        except ExactDPError as error:
            code = _refuse(str(error))
        except _USAGE_ERROR as error:
            code = _refuse(f"{error.format_message().rstrip('.')}. Call exactdp --help for the options.")
        except OSError as error:
            code = _refuse(f"{error.filename or 'A file'} cannot be read or written: {error.strerror}. Check the path.")
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


def _refuse(sentence: str) -> int:
    print(f"exactdp: {_one_line(sentence)}", file=sys.stderr)
    return BAD_INPUT


def _one_line(text: str) -> str:
    """One line of printable characters, whatever a file or an argument contained."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


app = typer.Typer(cls=_Commands, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

MechanismOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism", "-m", metavar="SIGMA2[:SENSITIVITY][*COUNT]", help="Discrete Gaussian noise; repeatable."
    ),
]
ReleaseOption = Annotated[str | None, typer.Option("--release", metavar="NAME", help="A release of the 2020 Census.")]
PairOption = Annotated[
    str | None, typer.Option("--pair", metavar="K,L", help="Two allocations of the release, such as 13,13.")
]
EpsilonOption = Annotated[
    str | None, typer.Option("--epsilon", metavar="NUMBER", help="Ask for delta at this epsilon.")
]
DeltaOption = Annotated[str | None, typer.Option("--delta", metavar="NUMBER", help="Ask for epsilon at this delta.")]
AlphaOption = Annotated[str | None, typer.Option("--alpha", metavar="NUMBER", help="Ask for beta at this alpha.")]
DigitsOption = Annotated[str, typer.Option("--digits", metavar="N", help="Digits to promise, 5 to 1000.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of standard output.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
CertificateArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A certificate made by exactdp certify.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Exact, certified differential-privacy accounting for integer-valued noise."""
    if version:
        print(f"exactdp {exactdp.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("certify")
def _certify(
    mechanism: MechanismOption = None,
    release: ReleaseOption = None,
    pair: PairOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    alpha: AlphaOption = None,
    digits: DigitsOption = "30",
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a certificate of delta, epsilon or beta: composition, enclosure, plan, errors, versions, hash."""
    composition = read_composition(mechanism or [], release, pair)
    promised = whole(digits, "digits", 5)
    certificate = certify(composition, epsilon=epsilon, delta=delta, alpha=alpha, digits=promised)
    if output is not None:
        certificate.save(output)
    if output is None or as_json:
        print(certificate.to_json(), end="")
    else:
        print(_summary(certificate, output))


@app.command("verify")
def _verify(file: CertificateArgument, as_json: JsonOption = False) -> None:
    """Recompute a certificate by other routes and say in one line whether it holds; exit code 1 if it does not."""
    result = verify(file)
    if as_json:
        print(json.dumps(dataclasses.asdict(result), indent=2))
    else:
        _print_verdict(result)
    if not result.holds:
        raise typer.Exit(FAILED)


@app.command("census")
def _census(
    name: Annotated[
        str, typer.Option("--release", metavar="NAME", help="A release of the 2020 Census.")
    ] = "dhc-persons-us",
    delta: Annotated[str, typer.Option("--delta", metavar="NUMBER", help="The delta of the guarantee.")] = "1e-10",
    as_json: JsonOption = False,
) -> None:
    """Account for all pairs of directed paths of a release: the overall epsilon and the pair that attains it."""
    release = census.release(name)
    exact = rational(delta, "delta")
    if not 0 < exact < 1:
        raise InvalidInputError(f"--delta must be between 0 and 1. Found {shown(delta)}.")
    steps = track(
        census.pair_epsilons(release, exact),
        "pairs of paths",
        total=len(release.pairs),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    found = list(steps)
    worst = max(found, key=lambda p: p.upper)
    rho = float(release.pair(*worst.pair).rho)
    simple = rho + 2 * math.sqrt(-rho * log_rational(exact))
    if as_json:
        overall = {"lower": max(p.lower for p in found), "upper": worst.upper, "pair": worst.pair}
        print(
            json.dumps(
                {"release": name, "delta": str(exact), "epsilon": overall, "zcdp_simple": simple, "pairs": len(found)}
            )
        )
        return
    print(f"{release.title}: {len(found)} pairs of directed paths")
    print(f"overall epsilon at delta = {delta}: {worst.upper:.10f} (certified; attained by pair {worst.pair})")
    print(f"zCDP with rho = {rho:.6g}, simple conversion: {simple:.4f}")


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
    numbers = _PAIR.fullmatch(pair)
    if numbers is None:
        raise InvalidInputError(f"--pair takes two allocations such as 13,13. Found {pair!r}.")
    return census.release(release).pair(int(numbers[1]), int(numbers[2]))


def _read_mechanism(text: str) -> tuple[DiscreteGaussian, int]:
    parts = _MECHANISM.fullmatch(text)
    if parts is None:
        raise InvalidInputError(f"--mechanism takes SIGMA2[:SENSITIVITY][*COUNT], such as 5/2:1*20. Found {text!r}.")
    sensitivity = whole(parts["sensitivity"] or 1, "sensitivity", 1)
    return DiscreteGaussian(parts["sigma2"], sensitivity), whole(parts["count"] or 1, "count", 1)


def _summary(certificate: Certificate, output: Path) -> str:
    return f"{output}: {certificate.claim} is between {certificate.lower} and {certificate.upper}"


def _print_verdict(result: Verification) -> None:
    """One line, coloured on a terminal."""
    line = Text(_one_line(result.reason))
    line.stylize("bold green" if result.holds else "bold red", 0, len("Holds" if result.holds else "Does not hold"))
    Console(soft_wrap=True, highlight=False).print(line)


def main() -> None:
    """Entry point."""
    app()
