"""exactdp compare, calibrate, risk, convert: what a guarantee means, beside others, and the noise that it needs."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Annotated, Any

import typer

from exactdp import guarantees
from exactdp.apps.cli import shell
from exactdp.apps.cli.certificates import read_composition
from exactdp.census.savings import calibrate_release, is_in_range
from exactdp.census.tables import calibration_text
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import calibrate, target
from exactdp.guarantees.risk import risk_of
from exactdp.guarantees.tightest_mu import tightest_mu
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_delta, zcdp_delta_simple, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.numbers import exact_text, rational, read_share, whole

BetaOption = Annotated[str | None, shell.number("--beta", help="The least type II error at alpha.")]
AdvantageOption = Annotated[str | None, shell.number("--advantage", help="The largest advantage.")]
MuOption = Annotated[str | None, shell.number("--mu", help="Gaussian DP with this mu.")]
PriorOption = Annotated[str, shell.number("--prior", help="The attacker's prior probability.")]
GridOption = Annotated[str, typer.Option("--grid", metavar="N", help="Factors are multiples of 1/N.")]
PartOption = Annotated[
    list[str] | None,
    typer.Option("--part", metavar="SIGMA2[:SENSITIVITY]", help="Scale only these mechanisms; repeatable."),
]
LevelOption = Annotated[
    str | None, typer.Option("--level", metavar="NAME", help="With --design: scale only this level.")
]
DesignOption = Annotated[
    str | None, typer.Option("--design", metavar="BUDGET", help="A budget file or a built-in release: over all pairs.")
]


def _one_source(mechanism: list[str] | None, release: str | None, pair: str | None, design: str | None) -> None:
    """A design or a composition, not both."""
    other = mechanism[0] if mechanism else release or pair
    if design and other:
        raise InvalidInputError(
            f"Give --design, or --mechanism, or --release with --pair, not several. Found {design} and {other}."
        )


@shell.app.command("compare")
def _compare(
    mechanism: shell.MechanismOption = None,
    release: shell.ReleaseOption = None,
    pair: shell.PairOption = None,
    delta: shell.DeltaOption = None,
    epsilon: shell.EpsilonOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """Exact, Gaussian shortcut and zCDP side by side; raises the alarm where the shortcut understates the loss."""
    shell.one_of(delta=delta, epsilon=epsilon)
    composition = read_composition(mechanism or [], release, pair)
    found = composition.compare(delta=delta, epsilon=epsilon)
    if as_json:
        said = {"shortcut_understates": found.shortcut_understates, "statement": found.statement}
        shell.print_json({**dataclasses.asdict(found), **said})
        return
    title = f"{found.quantity} at {found.given} = {delta or epsilon}"
    shell.show_table(title, ["method", "value", "worth"], found.rows())
    print(found.statement)


@shell.app.command("risk")
def _risk(
    mechanism: shell.MechanismOption = None,
    release: shell.ReleaseOption = None,
    pair: shell.PairOption = None,
    design: DesignOption = None,
    alpha: Annotated[str, shell.number("--alpha", help="False-positive rate of the test.")] = "0.05",
    prior: PriorOption = "1/2",
    delta: Annotated[str, shell.number("--delta", help="For the odds multiplier.")] = "1e-10",
    as_json: shell.JsonOption = False,
) -> None:
    """Advantage, power, Bayes risk, posterior and odds, each certified from the exact curve."""
    _one_source(mechanism, release, pair, design)
    shares = [read_share(v, n) for v, n in ((alpha, "alpha"), (prior, "prior"), (delta, "delta"))]
    curve: Any = shell.read_design(design).account() if design else read_composition(mechanism or [], release, pair)
    found = risk_of(curve, *shares)
    if as_json:
        shell.print_json(dataclasses.asdict(found))
        return
    shell.show_table("Risk", ["figure", "safe end", "meaning"], [(n, f"{v:.10g}", m) for n, v, m in found.rows()])


@shell.app.command("calibrate")
def _calibrate(
    mechanism: shell.MechanismOption = None,
    release: shell.ReleaseOption = None,
    pair: shell.PairOption = None,
    design: DesignOption = None,
    epsilon: shell.EpsilonOption = None,
    delta: shell.DeltaOption = None,
    alpha: shell.AlphaOption = None,
    beta: BetaOption = None,
    advantage: AdvantageOption = None,
    mu: MuOption = None,
    part: PartOption = None,
    level: LevelOption = None,
    grid: GridOption = "10000",
    as_json: shell.JsonOption = False,
) -> None:
    """The least factor on all noise variances that meets a target; one grid step less is proved too little or out of range."""
    _one_source(mechanism, release, pair, design)
    wanted = target(epsilon=epsilon, delta=delta, alpha=alpha, beta=beta, advantage=advantage, mu=mu)
    steps = whole(grid, "--grid", 1)
    if design is None:
        composition = read_composition(mechanism or [], release, pair)
        chosen = None if not part else list(read_composition(part, None, None).mechanisms)
        found = calibrate(composition, wanted, chosen, steps)
        factor, below = found.factor, found.below_exists
    elif mu is not None:
        raise InvalidInputError(
            "A target mu is for one composition; give --release and --pair, or --mechanism. Found --design."
        )
    else:
        budget = shell.read_design(design)
        factor = calibrate_release(budget, wanted, level, steps)[0]
        below = is_in_range(budget, factor - Fraction(1, steps), level)
    asked = dataclasses.asdict(wanted)  # type: ignore[call-overload]
    result = {
        "factor": exact_text(factor),
        "value": float(factor),
        "grid": f"1/{steps}",
        "target": asked,
        "below_exists": below,
    }
    if as_json:
        shell.print_json(result)
        return
    print(calibration_text("Every noise variance", factor, Fraction(1, steps), below))


@shell.app.command("convert")
def _convert(
    rho: Annotated[str | None, shell.number("--rho", help="From zCDP with this rho.")] = None,
    mu: Annotated[str | None, shell.number("--mu", help="From Gaussian DP with this mu.")] = None,
    epsilon: shell.EpsilonOption = None,
    delta: shell.DeltaOption = None,
    alpha: shell.AlphaOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """zCDP or Gaussian DP to delta at an epsilon, epsilon at a delta, beta at an alpha; (epsilon, delta) to mu."""
    if rho is None and mu is None:
        if epsilon is None or delta is None or alpha is not None:
            raise InvalidInputError(
                "Give --rho or --mu with one of --epsilon, --delta, --alpha; or --epsilon and --delta. Found neither."
            )
        rows = {"mu (largest that suffices)": guarantees.gdp_mu(epsilon, delta)}
    else:
        source, value = shell.one_of(rho=rho, mu=mu)
        asked, at = shell.one_of(epsilon=epsilon, delta=delta, alpha=alpha)
        rows = _conversion(source, value, asked, at)
    if as_json:
        shell.print_json(rows)
        return
    shell.show_table("Conversion", ["guarantee", "value"], [(name, f"{v:.12g}") for name, v in rows.items()])


def _conversion(source: str, value: str, asked: str, at: str) -> dict[str, float]:
    rational(at, asked)
    table: dict[tuple[str, str], dict[str, Any]] = {
        ("rho", "delta"): {"epsilon, optimal": zcdp_epsilon, "epsilon, simple": zcdp_epsilon_simple},
        ("rho", "epsilon"): {"delta, optimal": zcdp_delta, "delta, simple": zcdp_delta_simple},
        ("rho", "alpha"): {"beta at least": zcdp_beta},
        ("mu", "delta"): {"epsilon": guarantees.gdp_epsilon},
        ("mu", "epsilon"): {"delta": guarantees.gdp_delta},
        ("mu", "alpha"): {"beta at least": guarantees.gdp_beta},
    }
    return {name: float(function(value, at)) for name, function in table[source, asked].items()}


@shell.app.command("mu")
def _mu(
    mechanism: shell.MechanismOption = None,
    release: shell.ReleaseOption = None,
    pair: shell.PairOption = None,
    as_json: shell.JsonOption = False,
) -> None:
    """The tightest mu for which a composition satisfies Gaussian DP, between proven bounds."""
    found = tightest_mu(read_composition(mechanism or [], release, pair))
    if as_json:
        shell.print_json(dataclasses.asdict(found))
        return
    violated = f"violated below, at epsilon = {found.epsilon:.6g}"
    # all digits of the doubles: fewer would have to be rounded outward
    print(f"mu is at least {found.lower!r} ({violated}) and at most {found.upper!r}")
