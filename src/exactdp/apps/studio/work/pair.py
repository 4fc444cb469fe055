"""What the workers do: plain data in, plain data out, every number from the library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from exactdp.accounting.certificates.certificate import certify
from exactdp.accounting.composition import Composition
from exactdp.apps.studio.work import designs
from exactdp.apps.studio.work.designs import Record
from exactdp.apps.studio.work.noise_table import noise
from exactdp.census.releases import Release
from exactdp.census.savings import calibrate_release
from exactdp.census.study import Grids, account_pairs
from exactdp.census.tables import as_csv, decimal_text, plain
from exactdp.errors import InvalidInputError
from exactdp.guarantees.calibration import Target, calibrate, target
from exactdp.guarantees.comparison import Comparison
from exactdp.guarantees.gaussian_estimates import gaussian_beta, gaussian_delta, gaussian_epsilon
from exactdp.guarantees.zcdp import zcdp_beta, zcdp_delta, zcdp_delta_simple, zcdp_epsilon, zcdp_epsilon_simple
from exactdp.numbers import positive, shown

QUICK_NODES = 4_000
_SPREAD = 1e-4  # alphas at which the curves of zCDP and of the Gaussian formula begin, evenly in log odds


def parse(question: Record) -> Record:
    """A budget file as a design."""
    return designs.parsed(question["file_name"], question["text"])


def check(question: Record) -> Record:
    """A design with its numbers as exact fractions and its scale applied."""
    return designs.described(designs.release_of(question["design"]))


def export(question: Record) -> Record:
    """A design as budget files."""
    return designs.exported(question["design"])


def pair(question: Record) -> Record:
    """Everything about one pair of directed paths."""
    release, numbers = designs.chosen_pair(question["design"], question["pair"])
    composition = quick(release.pair(*numbers))
    grids = Grids.read(question["epsilons"], question["deltas"], question["alphas"])
    curve, tradeoff = question["delta_curve"], question["tradeoff"]
    return {
        "pair": _shown_pair(question["pair"], numbers),
        "rho": str(composition.rho),
        "mu": composition.mu,
        "mechanisms": sum(composition.mechanisms.values()),
        "epsilon": [compared(_at_delta(composition, delta)) for delta in grids.deltas],
        "delta": [compared(_at_epsilon(composition, epsilon)) for epsilon in grids.epsilons],
        "beta": beta_rows(composition, Fraction(composition.rho), grids.alphas, question["zcdp_beta"]),
        "delta_curve": curve and delta_curve(composition, curve),
        "tradeoff": tradeoff and tradeoff_curve(composition, tradeoff),
        "noise": [noise(release.allocations[number]) for number in dict.fromkeys(numbers)]
        if question["noise"]
        else None,
        "risk": _risk(composition, grids) if question["risk"] else None,
    }


def quick(composition: Composition) -> Composition:
    """The same composition for someone who waits: where the lattice would need many nodes, another method takes over.

    The bounds stay proved; a remark says so where they are wider than usual.
    """
    return composition.within(max_nodes=QUICK_NODES)


def _risk(composition: Composition, grids: Grids) -> Any:
    return _finite(plain(composition.risk(delta=grids.deltas[0] if grids.deltas else "1e-10")))


def _finite(value: Any) -> Any:
    """JSON has no infinity: such numbers become texts."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _shown_pair(asked: Sequence[Any] | None, numbers: Sequence[int]) -> list[Any]:
    return list(numbers if asked is None else asked)


def _at_delta(composition: Composition, delta: Fraction) -> Comparison:
    """`compare` without the proof of the Gaussian formula's own error, which takes longer than the answer."""
    rho, bounds = Fraction(composition.rho), composition.epsilon_bounds(delta)
    estimate = gaussian_epsilon(composition.mu, delta)
    others = zcdp_epsilon_simple(rho, delta), zcdp_epsilon(rho, delta)
    return Comparison("delta", delta, (bounds.lower, bounds.upper), estimate, *others)


def _at_epsilon(composition: Composition, epsilon: Fraction) -> Comparison:
    rho, bounds = Fraction(composition.rho), composition.delta_bounds(epsilon)
    estimate = gaussian_delta(composition.mu, epsilon)
    others = zcdp_delta_simple(rho, epsilon), zcdp_delta(rho, epsilon)
    return Comparison("epsilon", epsilon, (bounds.lower, bounds.upper), estimate, *others)


def compared(found: Comparison) -> Record:
    """One value four ways."""
    return {
        found.given: decimal_text(found.value),
        "lower": found.exact[0],
        "upper": found.exact[1],
        "zcdp_optimal": found.zcdp_optimal,
        "zcdp_simple": found.zcdp_simple,
        "gaussian": found.gaussian,
        "shortcut_understates": found.shortcut_understates,
        "statement": found.statement,
    }


def beta_rows(source: Any, rho: Fraction, alphas: Sequence[Fraction], with_zcdp: bool = True) -> list[Record]:
    """beta at each alpha, of a pair or of a study, beside zCDP (where wanted) and the Gaussian formula."""
    bounds = [source.beta_bounds(alpha) for alpha in alphas]
    zcdp = zcdp_beta(rho, list(alphas)).tolist() if with_zcdp and alphas else [None] * len(alphas)
    return [
        {
            "alpha": decimal_text(alpha),
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


def convert(question: Record) -> Record:
    """What zCDP and the Gaussian formula say at one rho."""
    rho = positive(question["rho"], "rho")
    mu = gaussian_mu(rho)
    grids = Grids.read(question["epsilons"], question["deltas"], question["alphas"])
    curve = alphas_for(question["tradeoff"] or 0)
    betas = dict(zip([*grids.alphas, *curve], _zcdp_betas(rho, [*grids.alphas, *curve]), strict=True))
    return {
        "rho": str(rho),
        "epsilon": [
            {
                "delta": decimal_text(delta),
                "zcdp_optimal": zcdp_epsilon(rho, delta),
                "zcdp_simple": zcdp_epsilon_simple(rho, delta),
                "gaussian": gaussian_epsilon(mu, delta),
            }
            for delta in grids.deltas
        ],
        "delta": [
            {
                "epsilon": decimal_text(epsilon),
                **{name: column[0] for name, column in other_deltas(rho, [epsilon]).items()},
            }
            for epsilon in grids.epsilons
        ],
        "beta": [
            {"alpha": decimal_text(alpha), "zcdp": betas[alpha], "gaussian": gaussian_beta(mu, alpha)}
            for alpha in grids.alphas
        ],
        "tradeoff": {"alpha": [float(a) for a in curve], "zcdp": [betas[a] for a in curve]} if curve else None,
    }


def _zcdp_betas(rho: Fraction, alphas: list[Fraction]) -> list[float]:
    return [float(beta) for beta in zcdp_beta(rho, alphas)] if alphas else []


def gaussian_mu(rho: Fraction) -> float:
    """mu of the Gaussian formula at this rho."""
    return math.sqrt(2 * rho)


def delta_curve(composition: Composition, asked: Mapping[str, Any]) -> Record:
    """delta on a grid of epsilons, beside zCDP and the Gaussian formula."""
    rho = Fraction(composition.rho)
    epsilons = curve_epsilons(rho, asked)
    bounds = composition.delta_bounds(epsilons)
    return {
        "epsilon": [float(e) for e in epsilons],
        "lower": bounds.lower.tolist(),
        "upper": bounds.upper.tolist(),
        **other_deltas(rho, epsilons),
    }


def other_deltas(rho: Fraction, epsilons: Sequence[Fraction]) -> Record:
    """What zCDP and the Gaussian formula say about delta on a grid."""
    return {
        "zcdp_optimal": zcdp_delta(rho, epsilons).tolist(),
        "zcdp_simple": zcdp_delta_simple(rho, epsilons).tolist(),
        "gaussian": gaussian_delta(gaussian_mu(rho), epsilons).tolist(),
    }


def curve_epsilons(rho: Fraction, asked: Mapping[str, Any]) -> list[Fraction]:
    """The grid that was asked for: given epsilons, or evenly from 0 to where zCDP states the least delta."""
    if asked["epsilons"] is not None:
        return list(Grids.read(epsilons=asked["epsilons"]).epsilons)
    least = Grids.read(deltas=[asked["least"]]).deltas[0]
    step = zcdp_epsilon(rho, least) / (asked["num"] - 1)
    places = max(0, 3 - math.floor(math.log10(step))) if step > 0 else 3
    return list(dict.fromkeys(Fraction(round(i * step * 10**places), 10**places) for i in range(asked["num"])))


def tradeoff_curve(composition: Composition, asked: Mapping[str, Any]) -> Record:
    """The trade-off curve from below, beside that of the Gaussian formula."""
    curve = composition.tradeoff(asked["num"])
    alphas = alphas_for(asked["num"])
    return {
        "alpha": curve.alpha.tolist(),
        "beta": curve.beta.tolist(),
        "gaussian": {
            "alpha": [float(a) for a in alphas],
            "beta": gaussian_beta(composition.mu, alphas).tolist(),
        },
    }


def alphas_for(num: int) -> list[Fraction]:
    """0, 1 and alphas between them, even in log odds."""
    if num < 3:
        return []
    far = math.log(1 / _SPREAD)
    odds = [far * (2 * i / (num - 3) - 1) if num > 3 else 0.0 for i in range(num - 2)]
    inner = [Fraction(f"{1 / (1 + math.exp(-x)):.4g}") for x in odds]
    return [Fraction(0), *dict.fromkeys(inner), Fraction(1)]


def calibrated(question: Record) -> Record:
    """The least factor on the grid that meets a target, over one pair or over all."""
    names = ("epsilon", "delta", "alpha", "beta", "advantage")
    wanted = target(**{name: question[name] for name in names})
    release, grid = designs.release_of(question["design"]), question["grid"]
    if question["over"] == "overall":
        if question["pair"] is not None:
            raise InvalidInputError('Give a pair, or "over": "overall" for all pairs. Found both; leave one out.')
        factor, scaled = calibrate_release(release, wanted, question["level"], grid)
    else:
        factor, scaled = _calibrated_pair(question, release, wanted, grid)
    less = factor - Fraction(1, grid)
    what = f"Every noise variance of {question['level']}" if question["level"] else "Every noise variance"
    return {
        "factor": decimal_text(factor),
        "step": decimal_text(Fraction(1, grid)),
        **designs.described(scaled),
        "statement": f"{what} times {decimal_text(factor)} meets the target; times {decimal_text(less)} it does not. "
        "Both are proved.",
    }


def _calibrated_pair(question: Record, release: Release, wanted: Target, grid: int) -> tuple[Fraction, Release]:
    if question["level"] is not None:
        raise InvalidInputError(
            f'One level is calibrated over all pairs; ask with "over": "overall". Found the level {shown(question["level"])}.'
        )
    own, numbers = designs.chosen_pair(question["design"], question["pair"])
    factor = calibrate(quick(own.pair(*numbers)), wanted, grid=grid).factor
    return factor, release.scaled(factor)


def certificate(question: Record) -> Record:
    """The text of a certificate, as `exactdp certify` writes it."""
    release, numbers = designs.chosen_pair(question["design"], question["pair"])
    asked = {name: question[name] for name in ("epsilon", "delta", "alpha")}
    found = certify(release.pair(*numbers), **asked, digits=question["digits"])
    return {"text": found.to_json(), "file_name": f"{designs.file_stem(release.name)}-certificate.json"}


def table(question: Record) -> Record:
    """A table of a design as CSV."""
    release, numbers = designs.chosen_pair(question["design"], question["pair"])
    stem = designs.file_stem(release.name)
    if question["what"] == "pairs":
        return {"text": _pairs_csv(question), "file_name": f"{stem}-pairs.csv"}
    if question["what"] == "noise":
        rows = [
            (number, level["level"], *row.values())
            for number in dict.fromkeys(numbers)
            for level in noise(release.allocations[number])["levels"]
            for row in level["queries"]
        ]
        header = ("path", "level", "query", "rho", "sigma2", "variance", "standard_error", "margin95")
        return {"text": as_csv(header, rows), "file_name": f"{stem}-noise.csv"}
    return {"text": _curve_csv(release.pair(*numbers), question), "file_name": f"{stem}-curves.csv"}


def _pairs_csv(question: Record) -> str:
    release = designs.release_of(question["design"])
    grids = Grids.read(question["epsilons"], question["deltas"], question["alphas"])
    rows = []
    for result in account_pairs(release, list(release.pairs), grids):
        for quantity, given in (("delta", "epsilon"), ("epsilon", "delta"), ("beta", "alpha")):
            for at, bounds in zip(grids.by_quantity[quantity], getattr(result, quantity), strict=True):
                rows.append((*result.pair, quantity, given, at, *bounds))
    return as_csv(("k", "l", "quantity", "argument", "at", "lower", "upper"), rows)


def _curve_csv(composition: Composition, question: Record) -> str:
    found = delta_curve(composition, {"epsilons": question["epsilons"] or None, "num": 101, "least": "1e-20"})
    rows: list[tuple[object, ...]] = [
        ("delta", "epsilon", *row)
        for row in zip(*(found[k] for k in ("epsilon", "lower", "upper", "zcdp_optimal", "gaussian")), strict=True)
    ]
    curve = composition.tradeoff(201)
    mu = composition.mu
    gaussian = gaussian_beta(mu, curve.alpha.tolist()).tolist()
    rows += [
        ("beta", "alpha", alpha, beta, None, None, estimate)
        for alpha, beta, estimate in zip(curve.alpha.tolist(), curve.beta.tolist(), gaussian, strict=True)
    ]
    return as_csv(("quantity", "argument", "at", "lower", "upper", "zcdp_optimal", "gaussian_estimate"), rows)
