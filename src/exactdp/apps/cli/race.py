"""exactdp race: every family of noise at an equal guarantee, the best table that was found, and what no noise can beat."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from exactdp.accounting.composition import Composition
from exactdp.apps.cli import shell
from exactdp.apps.cli.calibrate import AdvantageOption, MuOption
from exactdp.apps.cli.designs import DesignArgument, MechanismOption, PairOption, read_design
from exactdp.apps.cli.tables import say, show_table
from exactdp.errors import InvalidInputError
from exactdp.files import check_target, write_text
from exactdp.guarantees.best_noise.bounded_families import BOUNDED_FAMILIES, EVERY_FAMILY, MOST_BOUND
from exactdp.guarantees.best_noise.families import FAMILIES
from exactdp.guarantees.best_noise.race import RANKS, Contestant, Race, counts_template, race
from exactdp.guarantees.calibration import MeetsEpsilonDelta, Target, target
from exactdp.interop.json_objects import to_json
from exactdp.numbers import exact_text, read_share, whole
from exactdp.numerals import UP, at_most, counted, exact, percent

_COLUMNS = ["noise", "variance", "mean |error|", "95% margin", "largest", "above the best"]
_DIGITS = 5
_NO_TABLE = (
    "A table is looked for under an epsilon and a delta, and was not found or not asked for. Write the winner as .json."
)
CountOption = Annotated[
    str | None, typer.Option("--count", "-k", metavar="N", help="How many counts; instead of a design.")
]
SensitivityOption = Annotated[str, typer.Option("--sensitivity", metavar="N", help="By how much each may change.")]
AllOption = Annotated[
    bool, typer.Option("--all", help="Also Skellam, binomial, bounded (see --bound) and real Laplace noise; slower.")
]
BoundOption = Annotated[
    str | None,
    typer.Option(
        "--bound",
        metavar="N",
        help="Also noise of at most N <= 100: truncated, clamped, cell-key and staircase tables.",
    ),
]
ByOption = Annotated[str, typer.Option("--by", metavar="RANK", help=f"What decides: {', '.join(RANKS)}.")]


@shell.app.command("race")
def _race(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    pair: PairOption = None,
    count: CountOption = None,
    sensitivity: SensitivityOption = "1",
    epsilon: shell.EpsilonOption = None,
    delta: shell.DeltaOption = None,
    alpha: shell.AlphaOption = None,
    beta: Annotated[str | None, shell.number("--beta", help="The least type II error at alpha.")] = None,
    advantage: AdvantageOption = None,
    mu: MuOption = None,
    by: ByOption = "variance",
    every: AllOption = False,
    bound: BoundOption = None,
    no_optimum: Annotated[
        bool, typer.Option("--no-optimum", help="The families only; no table is looked for.")
    ] = False,
    output: Annotated[
        Path | None, shell.output(metavar="FILE", help="Write the winner (.json), or the best table found (.csv).")
    ] = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Which noise is best: families calibrated to one target, ranked by their error, beside what no noise can beat.

    For --count counts, or for the counts of a design or -m, whose variances stay in proportion; with --delta alone these get the
    guarantee that they have.
    """
    template, title = _template(design, mechanism, pair, count, sensitivity)
    wanted = _wanted(template, count, (epsilon, delta, alpha, beta, advantage, mu))
    if output is not None:
        if shell.check_ending(output, ".json", ".csv") == ".csv" and (
            no_optimum or not isinstance(wanted, MeetsEpsilonDelta)
        ):
            raise InvalidInputError(_NO_TABLE)
        check_target(output)
    shell.tell("Every family is calibrated ...")
    most = None if bound is None else whole(bound, "--bound", 1, MOST_BOUND)
    families = EVERY_FAMILY if every else FAMILIES if most is None else (*FAMILIES, *BOUNDED_FAMILIES)
    found = race(template, wanted, by=by, families=families, optimum=not no_optimum, bound=most)
    if output is not None:
        write_text(output, _written(found, output))
    if as_json:
        shell.print_json(_record(found, title))
        return
    say(f"{title}: {_named(wanted)}", "")
    show_table("", _COLUMNS, [_row(found, one) for one in found.runners])
    if found.statement:
        say(found.statement)
    say("Every noise is proved to meet the target; with one step less of it (see --json) a family is proved not to.")
    for runner in found.runners:
        if not runner.below_exists:
            say(f"Less {runner.family} noise is out of range and was not tried.")
    for name, why in found.refused:
        say(f"Without {name}: {why}")
    if output is not None:
        say(f"{output}: {'the best table found' if output.suffix == '.csv' else found.runners[0].family}")


def _template(
    design: str | None, mechanism: list[str] | None, pair: str | None, count: str | None, sensitivity: str
) -> tuple[Composition, str]:
    if count is not None:
        if design is not None or mechanism or pair is not None:
            raise InvalidInputError("Give --count, or a design or --mechanism. Found both.")
        number, most = whole(count, "--count", 1), whole(sensitivity, "--sensitivity", 1)
        return counts_template(number, most), f"{counted(number, 'count')} of sensitivity {most}"
    if design is None and not mechanism:
        raise InvalidInputError(
            "Give --count, or a design or --mechanism, to say what is released. Found none of them."
        )
    source = read_design(design, mechanism, pair)
    return source.one("race"), source.title


def _wanted(template: Composition, count: str | None, given: tuple[str | None, ...]) -> Target:
    """The target that is given; a delta alone, of a design, asks for the epsilon that it has."""
    epsilon, delta, alpha, beta, advantage, mu = given
    if delta is not None and count is None and not any((epsilon, alpha, beta, advantage, mu)):
        share = read_share(delta, "delta")
        return MeetsEpsilonDelta(Fraction(template.epsilon(share)), share)
    return target(epsilon, delta, alpha, beta, advantage, mu)


def _row(found: Race, runner: Contestant) -> list[str]:
    error, excess = runner.error, found.excess(runner)
    return [
        runner.family,
        at_most(error.variance[1], _DIGITS),
        at_most(error.absolute[1], _DIGITS),
        at_most(error.margin, _DIGITS),
        at_most(error.largest, _DIGITS) if error.largest != math.inf else "none",
        "-" if excess is None or excess == math.inf else percent(excess, UP),
    ]


def _named(wanted: Target) -> str:
    fields = dataclasses.fields(wanted)  # type: ignore[arg-type]
    return ", ".join(f"{f.name} = {exact(getattr(wanted, f.name))}" for f in fields)


def _record(found: Race, title: str) -> dict[str, Any]:
    best = found.optimum
    return {
        "title": title,
        "target": dataclasses.asdict(found.wanted),  # type: ignore[call-overload]
        "ranked_by": found.by,
        "runners": [_runner(found, one) for one in found.runners],
        "refused": dict(found.refused),
        "least_possible": None if best is None else {"cost": best.cost.value, "at_least": _down(best.least)},
    }


def _runner(found: Race, one: Contestant) -> dict[str, Any]:
    error, excess = one.error, found.excess(one)
    return {
        "noise": one.family,
        "factor": one.factor,
        "step": one.step,
        "below_is_proved_to_fail": one.step is not None and one.below_exists,
        "variance": [_down(error.variance[0]), _up(error.variance[1])],
        "mean_absolute_error": [_down(error.absolute[0]), _up(error.absolute[1])],
        "margin95": _up(error.margin),
        "largest_error": float(error.largest),
        "above_the_best_possible_at_most": None if excess is None or excess == math.inf else _up(Fraction(excess)),
        "composition": str(one.composition) if one.step is not None else None,
    }


def _up(value: Fraction) -> float:
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _down(value: Fraction) -> float:
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def _written(found: Race, output: Path) -> str:
    if output.suffix.lower() != ".csv":
        return to_json(found.runners[0].composition)
    if found.optimum is None or found.optimum.table is None:
        raise InvalidInputError(_NO_TABLE)
    rows = [f"{x},{exact_text(p)}" for x, p in sorted(found.optimum.table.pmf.items())]
    return "\n".join(["value,probability", *rows, ""])
