"""exactdp calibrate: the least noise that meets one or several targets, and the design that has it."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from exactdp.accounting.composition import Composition
from exactdp.apps.cli import shell
from exactdp.apps.cli.designs import (
    Design,
    DesignArgument,
    MechanismOption,
    OldDesignOption,
    PairOption,
    read_design,
)
from exactdp.apps.cli.mechanism_option import read_mechanisms
from exactdp.apps.cli.tables import say
from exactdp.census.budget_csv import budget_csv
from exactdp.census.budget_files import budget_toml
from exactdp.census.releases import Release
from exactdp.census.savings import calibrate_release, is_in_range
from exactdp.census.tables import calibration_text
from exactdp.errors import InvalidInputError
from exactdp.files import check_target, write_text
from exactdp.guarantees.calibration import MeetsAll, Target, calibrate, target
from exactdp.interop.json_objects import to_json
from exactdp.numbers import exact_text, whole
from exactdp.numerals import exact

Numbers = list[str] | None
_several = "repeatable; all targets are met at once."
EpsilonsOption = Annotated[Numbers, shell.number("--epsilon", help=f"With --delta, in the same order; {_several}")]
DeltasOption = Annotated[Numbers, shell.number("--delta", help="With --epsilon, in the same order; repeatable.")]
AlphasOption = Annotated[Numbers, shell.number("--alpha", help="With --beta, in the same order; repeatable.")]
BetasOption = Annotated[Numbers, shell.number("--beta", help="The least type II error at alpha; repeatable.")]
AdvantageOption = Annotated[str | None, shell.number("--advantage", help="The largest advantage.")]
MuOption = Annotated[str | None, shell.number("--mu", help="Gaussian DP with this mu.")]
GridOption = Annotated[str, typer.Option("--grid", metavar="N", help="Factors are multiples of 1/N.")]
PartOption = Annotated[
    list[str] | None,
    typer.Option("--part", metavar="SIGMA2[:SENSITIVITY]", help="With -m: scale only these mechanisms; repeatable."),
]
LevelOption = Annotated[
    str | None, typer.Option("--level", metavar="NAME", help="Scale only this level of the design.")
]


@shell.app.command("calibrate")
def _calibrate(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    pair: PairOption = None,
    epsilon: EpsilonsOption = None,
    delta: DeltasOption = None,
    alpha: AlphasOption = None,
    beta: BetasOption = None,
    advantage: AdvantageOption = None,
    mu: MuOption = None,
    part: PartOption = None,
    level: LevelOption = None,
    grid: GridOption = "10000",
    output: Annotated[
        Path | None, shell.output(metavar="FILE", help="Write the calibrated design: .toml, .csv, or .json for -m.")
    ] = None,
    as_json: shell.JsonOption = False,
) -> None:
    """The least factor on all noise variances that meets the targets; one grid step less is proved too little or out of range."""
    source = read_design(design, mechanism, pair, old)
    wanted = read_targets(epsilon or [], delta or [], alpha or [], beta or [], advantage, mu)
    steps = whole(grid, "--grid", 1)
    ending = _check_output(source, output, design or old)
    shell.tell("The least noise is looked for ...")
    calibrated: Release | Composition
    if source.is_whole:
        if part:
            raise InvalidInputError(
                f"--part is about noise given with -m; of a design scale a --level. Found {part[0]}."
            )
        budget = source.whole("calibrate")
        factor, scaled = calibrate_release(budget, wanted, level, steps)
        where = "all noise variances" if level is None else f"the noise variances of {level}"
        calibrated = dataclasses.replace(scaled, title=f"{budget.title}, {where} times {exact(factor)}")
        below = is_in_range(budget, factor - Fraction(1, steps), level)
    else:
        if level is not None:
            raise InvalidInputError(f"--level is about all pairs of a design. Found {level} for one composition.")
        chosen = None if not part else list(read_mechanisms(part).mechanisms)
        found = calibrate(source.one("calibrate"), wanted, chosen, steps)
        factor, below, calibrated = found.factor, found.below_exists, found.composition
    if output is not None:
        write_text(output, _written(calibrated, ending))
    targets = [dataclasses.asdict(one) for one in _each(wanted)]
    if as_json:
        result = {"factor": exact_text(factor), "value": float(factor), "grid": f"1/{steps}", "below_exists": below}
        shell.print_json({**result, "target": targets[0], "targets": targets, "accounted_for": source.record()})
        return
    source.show()
    what = "Every noise variance" if level is None and not part else "The noise variance of that part"
    say(f"Wanted: {'; '.join(map(_named, _each(wanted)))}.")
    say(calibration_text(what, factor, Fraction(1, steps), below))
    if output is not None:
        say(f"{output}: the calibrated design")


def read_targets(
    epsilons: list[str], deltas: list[str], alphas: list[str], betas: list[str], advantage: str | None, mu: str | None
) -> Target:
    """All targets that are given, as one."""
    for (one, ones), (other, others) in (
        (("--epsilon", epsilons), ("--delta", deltas)),
        (("--alpha", alphas), ("--beta", betas)),
    ):
        if len(ones) != len(others):
            raise InvalidInputError(
                f"Each {one} needs its {other}, in the same order. Found {len(ones)} and {len(others)} of them."
            )
    found = [target(epsilon=e, delta=d) for e, d in zip(epsilons, deltas, strict=True)]
    found += [target(alpha=a, beta=b) for a, b in zip(alphas, betas, strict=True)]
    found += [] if advantage is None else [target(advantage=advantage)]
    found += [] if mu is None else [target(mu=mu)]
    return found[0] if len(found) == 1 else MeetsAll(tuple(found)) if found else target()


def _named(wanted: Any) -> str:
    return ", ".join(f"{f.name} = {exact(getattr(wanted, f.name))}" for f in dataclasses.fields(wanted))


def _each(wanted: Target) -> tuple[Any, ...]:
    return wanted.targets if isinstance(wanted, MeetsAll) else (wanted,)


def _check_output(source: Design, output: Path | None, given: str | None) -> str:
    """The ending of the file, refused before the work where it cannot be written after it, or is the design itself."""
    if output is None:
        return ""
    if given is not None and output.exists() and Path(given).exists() and output.samefile(given):
        raise InvalidInputError(f"The calibrated design must be another file than the design. Found {output} for both.")
    ending = shell.check_ending(output, *((".toml", ".csv", ".json") if source.is_whole else (".json",)))
    check_target(output)
    return ending


def _written(calibrated: Release | Composition, ending: str) -> str:
    if ending == ".json" or isinstance(calibrated, Composition):
        return to_json(calibrated)
    return budget_toml(calibrated) if ending == ".toml" else budget_csv(calibrated)
