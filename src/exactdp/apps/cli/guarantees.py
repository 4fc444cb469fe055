"""exactdp compare, risk, mu, convert: what a guarantee means, and what others would state."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from exactdp import guarantees
from exactdp.apps.cli import shell
from exactdp.apps.cli.designs import (
    ChangeOption,
    DesignArgument,
    FullOption,
    MechanismOption,
    OldDesignOption,
    PairOption,
    read_design,
)
from exactdp.apps.cli.tables import say, show_table
from exactdp.census.design_mu import design_mu
from exactdp.errors import InvalidInputError
from exactdp.guarantees.comparison import compare_curve
from exactdp.guarantees.risk import risk_of
from exactdp.guarantees.tightest_mu import tightest_mu
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_delta, zcdp_delta_simple, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.numbers import rational, read_delta, read_share
from exactdp.numerals import about, at_least, at_most

PriorOption = Annotated[str, shell.number("--prior", help="The attacker's prior probability.")]


@shell.app.command("compare")
def _compare(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    pair: PairOption = None,
    change: ChangeOption = None,
    full: FullOption = False,
    delta: shell.DeltaOption = None,
    epsilon: shell.EpsilonOption = None,
    digits: shell.ShownOption = "6",
    as_json: shell.JsonOption = False,
) -> None:
    """Exact, Gaussian shortcut and zCDP side by side; raises the alarm where the shortcut understates the loss."""
    given, value = shell.one_of(delta=delta, epsilon=epsilon)
    source = read_design(design, mechanism, pair, old, change=change, full=full)
    shown = shell.read_shown(digits)
    at = read_delta(value) if given == "delta" else rational(value, "epsilon")
    found = compare_curve(source.curve, source.rho, given, at)
    if as_json:
        said = {"shortcut_understates": found.shortcut_understates, "statement": found.statement}
        shell.print_json({**dataclasses.asdict(found), **said, "accounted_for": source.record()})
        return
    source.show()
    show_table(f"{found.quantity} at {given} = {value}", ["method", "value", "worth"], found.rows(shown), prose="worth")
    say(found.statement)


@shell.app.command("risk")
def _risk(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    pair: PairOption = None,
    change: ChangeOption = None,
    full: FullOption = False,
    alpha: Annotated[str, shell.number("--alpha", help="False-positive rate of the test.")] = "0.05",
    prior: PriorOption = "1/2",
    delta: Annotated[str, shell.number("--delta", help="For the odds multiplier.")] = "1e-10",
    digits: shell.ShownOption = "6",
    as_json: shell.JsonOption = False,
) -> None:
    """Advantage, power, Bayes risk, posterior and odds, each certified from the exact curve."""
    source = read_design(design, mechanism, pair, old, change=change, full=full)
    shown = shell.read_shown(digits)
    shares = [read_share(v, n) for v, n in ((alpha, "alpha"), (prior, "prior"), (delta, "delta"))]
    found = risk_of(source.curve, *shares)
    if as_json:
        shell.print_json({f.name: getattr(found, f.name) for f in dataclasses.fields(found) if f.init})
        return
    source.show()
    rows = [
        (name, f"{'at least' if name == 'Bayes risk' else 'at most'} {value}", meaning)
        for name, value, meaning in found.written(shown)
    ]
    show_table("Risk", ["figure", "proved", "meaning"], rows, prose="meaning")


@shell.app.command("mu")
def _mu(
    design: DesignArgument = None,
    mechanism: MechanismOption = None,
    old: OldDesignOption = None,
    pair: PairOption = None,
    digits: shell.ShownOption = "6",
    as_json: shell.JsonOption = False,
) -> None:
    """The tightest mu for which a design, all pairs of it, satisfies Gaussian DP, between proven bounds."""
    source, shown = read_design(design, mechanism, pair, old), shell.read_shown(digits)
    if source.composition is None:
        whole = source.whole("mu")
        with shell.progress("pairs", len(whole.pairs)) as done:
            found = design_mu(whole, done)
    else:
        found = tightest_mu(source.composition)
    if as_json:
        shell.print_json(dataclasses.asdict(found))
        return
    source.show()
    violated = f"smaller ones are violated, as at epsilon {about(found.epsilon)}"
    say(f"mu is at least {at_least(found.lower, shown)} ({violated}) and at most {at_most(found.upper, shown)}")


@shell.app.command("convert")
def _convert(
    rho: Annotated[str | None, shell.number("--rho", help="From zCDP with this rho.")] = None,
    mu: Annotated[str | None, shell.number("--mu", help="From Gaussian DP with this mu.")] = None,
    epsilon: shell.EpsilonOption = None,
    delta: shell.DeltaOption = None,
    alpha: shell.AlphaOption = None,
    digits: shell.ShownOption = "7",
    as_json: shell.JsonOption = False,
) -> None:
    """zCDP or Gaussian DP to delta at an epsilon, epsilon at a delta, beta at an alpha; (epsilon, delta) to mu."""
    shown = shell.read_shown(digits)
    if rho is None and mu is None:
        if epsilon is None or delta is None or alpha is not None:
            raise InvalidInputError(
                "Give --rho or --mu with one of --epsilon, --delta, --alpha; or --epsilon and --delta. Found neither."
            )
        rows = {"mu (largest that suffices)": guarantees.gdp_mu(epsilon, delta)}
        title = f"From epsilon = {epsilon} and delta = {delta}"
    else:
        source, value = shell.one_of(rho=rho, mu=mu)
        asked, at = shell.one_of(epsilon=epsilon, delta=delta, alpha=alpha)
        rows = _conversion(source, value, asked, at)
        title = f"From {source} = {value}, at {asked} = {at}"
    if as_json:
        shell.print_json(rows)
        return
    table = [
        (name, at_least(v, shown) if "beta" in name or "mu" in name else at_most(v, shown)) for name, v in rows.items()
    ]
    show_table(title, ["guarantee", "value"], table)


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
