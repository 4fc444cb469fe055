"""The exact guarantee of one pair of directed paths, beside zCDP and the Gaussian formula; every number from the library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from exactdp.accounting.composition import Composition
from exactdp.apps.studio.schema import answers
from exactdp.apps.studio.work.designs import UNNUMBERED, Record, chosen_pair, file_stem, read_grids
from exactdp.census.margins import noise_of
from exactdp.census.releases import Allocation
from exactdp.census.tables import finite, plain
from exactdp.guarantees import comparison
from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_mu
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_epsilon
from exactdp.numerals import whole_text

QUICK_NODES = 4_000
LONG_PAIR = 100_000
"""Budgets times different budgets: on two cores a pair takes milliseconds up to about this, and seconds beyond."""
_SPREAD = 1e-4  # alphas from which on the curve of zCDP has points evenly in log odds
_DEEP = 12  # decades below 1 from which on it has one in each: a logarithmic axis shows as many
_NOT_IN_FIRST_HALF: Record = {"alphas": [], "tradeoff": None, "noise": False}
_NOT_IN_SECOND_HALF: Record = {"deltas": [], "epsilons": [], "delta_curve": None, "risk": False}


def is_long_pair(question: Record) -> bool:
    """Whether a pair takes long."""
    budgets = [str(query["rho"]) for level in question["design"]["levels"] for query in level["queries"]]
    return len(budgets) * len(set(budgets)) > LONG_PAIR


def halves(question: Record) -> tuple[Record, Record]:
    """Two questions for two workers, about as long; what they answer together is in `joined`."""
    return {**question, **_NOT_IN_FIRST_HALF}, {**question, **_NOT_IN_SECOND_HALF}


def joined(first: Record, second: Record) -> Record:
    """The answer to a question from those to its halves."""
    remarks = list(dict.fromkeys([*first["remarks"], *second["remarks"]]))
    return {**first, **{name: second[name] for name in ("beta", "tradeoff", "noise")}, "remarks": remarks}


def pair(question: Record) -> answers.PairAnswer:
    """The exact guarantee of one pair of directed paths, beside zCDP and the Gaussian formula; the noise of its queries."""
    release, numbers = chosen_pair(question["design"], question["pair"])
    composition = quick(release.pair(*numbers))
    grids = read_grids(question["epsilons"], question["deltas"], question["alphas"])
    curve, tradeoff, headline = question["delta_curve"], question["tradeoff"], (*grids.deltas, Fraction("1e-10"))[0]
    paths = [noise(release.allocations[number]) for number in dict.fromkeys(numbers)] if question["noise"] else None
    return {
        "pair": list(numbers if question["pair"] is None else question["pair"]),
        "rho": str(composition.rho),
        "mu": composition.mu,
        "mechanisms": sum(composition.mechanisms.values()),
        "file_name": file_stem(release.name),
        "epsilon": [{"delta": whole_text(at), **_compared(composition, "delta", at)} for at in grids.deltas],
        "delta": [{"epsilon": whole_text(at), **_compared(composition, "epsilon", at)} for at in grids.epsilons],
        "beta": beta_rows(composition, Fraction(composition.rho), grids.alphas, question["zcdp_beta"]),
        "delta_curve": delta_curve(composition, curve) if curve else None,
        "tradeoff": tradeoff_curve(composition, tradeoff["num"]) if tradeoff else None,
        "noise": paths,
        "risk": finite(plain(composition.risk(delta=headline))) if question["risk"] else None,
        **answers.UNTIMED,
    }


def quick(composition: Composition) -> Composition:
    """The same composition for someone who waits: fewer contours, and where the lattice would need many nodes another method.

    The bounds stay proved; a remark says so where they are wider than usual.
    """
    return composition.within(max_nodes=QUICK_NODES)


def _compared(composition: Composition, given: str, at: Fraction) -> answers.ComparedValue:
    """One value four ways, without the proof of the Gaussian formula's own error, which takes longer than the answer."""
    lower, upper = composition.epsilon_bounds(at) if given == "delta" else composition.delta_bounds(at)
    others = other_accounts(Fraction(composition.rho), given, at)
    found = comparison.Comparison(
        given, at, (lower, upper), others["gaussian"], others["zcdp_simple"], others["zcdp_optimal"]
    )
    graded: answers.Graded = {"shortcut_understates": found.shortcut_understates, "grade": found.grade.value}
    return {"lower": lower, "upper": upper, **others, **graded, "statement": found.statement}


def other_accounts(rho: Fraction, given: str, at: Fraction) -> answers.OtherAccounts:
    """What zCDP and the Gaussian formula say about epsilon at a given delta, or about delta at a given epsilon."""
    found = comparison.other_accounts(rho, given, at)
    return {"zcdp_optimal": found["zcdp_optimal"], "zcdp_simple": found["zcdp_simple"], "gaussian": found["gaussian"]}


def beta_rows(
    source: Any, rho: Fraction, alphas: Sequence[Fraction], with_zcdp: bool = True
) -> list[answers.BetaAtAlpha]:
    """beta at each alpha, of a pair or of a study, beside zCDP (where wanted) and the Gaussian formula."""
    bounds = [source.beta_bounds(alpha) for alpha in alphas]
    zcdp = zcdp_beta(rho, list(alphas)).tolist() if with_zcdp and alphas else [None] * len(alphas)
    return [
        {
            "alpha": whole_text(alpha),
            "lower": found.lower,
            "upper": found.upper,
            "power": power(found.lower),
            "zcdp": implied,
            "gaussian": gaussian_beta(gaussian_mu(rho), alpha),
        }
        for alpha, found, implied in zip(alphas, bounds, zcdp, strict=True)
    ]


def power(beta: float) -> float:
    """1 - beta, rounded up."""
    result = 1 - beta
    return result if Fraction(result) >= 1 - Fraction(beta) else math.nextafter(result, 2.0)


def delta_curve(composition: Composition, asked: Mapping[str, Any]) -> answers.DeltaCurve:
    """delta on a grid of epsilons, beside zCDP and the Gaussian formula."""
    rho = Fraction(composition.rho)
    epsilons = curve_epsilons(rho, asked)
    bounds = composition.delta_bounds(epsilons)
    others = comparison.other_accounts(rho, "epsilon", epsilons)
    return {
        "epsilon": [float(e) for e in epsilons],
        "lower": bounds.lower.tolist(),
        "upper": bounds.upper.tolist(),
        "zcdp_optimal": others["zcdp_optimal"].tolist(),
        "zcdp_simple": others["zcdp_simple"].tolist(),
        "gaussian": others["gaussian"].tolist(),
    }


def curve_epsilons(rho: Fraction, asked: Mapping[str, Any]) -> list[Fraction]:
    """The grid that was asked for: given epsilons, or evenly from 0 to where zCDP states the least delta."""
    if asked["epsilons"] is not None:
        return list(read_grids(asked["epsilons"]).epsilons)
    least = read_grids(deltas=[asked["least"]]).deltas[0]
    step = zcdp_epsilon(rho, least) / (asked["num"] - 1)
    places = max(0, 3 - math.floor(math.log10(step))) if step > 0 else 3
    return list(dict.fromkeys(Fraction(round(i * step * 10**places), 10**places) for i in range(asked["num"])))


def tradeoff_curve(composition: Composition, num: int) -> answers.TradeOff:
    """The trade-off curve from below, beside that of the Gaussian formula."""
    curve = composition.tradeoff(num)
    alphas = curve.alpha.tolist()
    return {
        "alpha": alphas,
        "beta": curve.beta.tolist(),
        "gaussian": {"alpha": alphas, "beta": gaussian_beta(composition.mu, alphas).tolist()},
    }


def alphas_for(num: int) -> list[Fraction]:
    """0, 1 and alphas between them: even in log odds and, where there are enough, in the decades beyond."""
    if num < 3:
        return []
    far = math.log(1 / _SPREAD)
    deep = [Fraction(1, 10**i) for i in range(_DEEP, round(-math.log10(_SPREAD)), -1)]
    deep = deep if num >= 4 * len(deep) else []
    num -= 2 * len(deep)
    odds = [far * (2 * i / (num - 3) - 1) if num > 3 else 0.0 for i in range(num - 2)]
    inner = [Fraction(f"{1 / (1 + math.exp(-x)):.4g}") for x in odds]
    return [Fraction(0), *deep, *dict.fromkeys(inner), *(1 - alpha for alpha in reversed(deep)), Fraction(1)]


def noise(allocation: Allocation) -> answers.NoiseOfPath:
    """The noise of every query along one path."""
    return {
        "path": allocation.number if allocation.number < UNNUMBERED else None,
        "bypassed": list(allocation.bypassed),
        "rho": str(allocation.rho),
        "levels": [
            {
                "level": level,
                "rho": str(sum(queries.values(), Fraction(0))),
                "queries": [{"query": query, **noise_at(rho)} for query, rho in queries.items()],
            }
            for level, queries in allocation.table.items()
        ],
    }


def noise_at(rho: Fraction) -> answers.NoiseAtBudget:
    """The noise of one query with this budget."""
    sigma2, variance, error, margin = noise_of(rho)
    return {"rho": str(rho), "sigma2": str(sigma2), "variance": variance, "standard_error": error, "margin95": margin}
