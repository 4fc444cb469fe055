"""All pairs of a design, cut into parts that workers do side by side and that can be shown as they come."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from exactdp.apps.studio.schema.answers import OverallDelta, OverallEpsilon, WorstPair
from exactdp.apps.studio.work.designs import Record, full_path, read_grids, release_of
from exactdp.apps.studio.work.pair import beta_rows, curve_epsilons, other_accounts
from exactdp.brackets import Bounds
from exactdp.census.grids import Grids
from exactdp.census.pair_results import overall_of
from exactdp.census.releases import Release
from exactdp.census.study import Study
from exactdp.census.tables import decimal_text
from exactdp.census.worst_pair import Contest
from exactdp.errors import AccuracyWarning

_EPSILONS_IN_A_PART = 4
_MOST_SUSPECTS = 200
SCREENED = (
    "The pairs of this design share no period. Over all pairs epsilon and delta are bounded by exact answers of a few suspects; "
    "beta and the curves are bounded by a theorem about all pairs, a little wider."
)


def plan(question: Record) -> Record:
    """The stages of the work and their parts, the most wanted first and small ones last, and what is known beforehand."""
    release = release_of(question["design"])
    grids = read_grids(question["epsilons"], question["deltas"], question["alphas"])
    count = len(release.bypassed)
    known = {"pairs": count * (count + 1) // 2, "rho": str(release.rho), "full_path": full_path(release)}
    screened = overall_of(release).is_screened
    parts = _parts(release, question, grids, screened)
    return {"parts": parts, "known": known, "remarks": [SCREENED] if screened else []}


def _parts(release: Release, question: Record, grids: Grids, screened: bool) -> list[Record]:
    curve = question["delta_curve"]
    epsilons = curve_epsilons(release.rho, curve) if curve else []
    together = question["worst_pair"] and screened  # the search for epsilon is most of that for the worst pair
    parts: list[Record] = [
        {"quantity": "epsilon", "at": [decimal_text(d)], "worst_pair": together} for d in grids.deltas
    ]
    if question["worst_pair"] and not screened:
        parts += [{"quantity": "worst_pair", "at": [decimal_text(delta)]} for delta in grids.deltas]
    parts += [{"quantity": "delta", "at": chunk} for chunk in _chunks(grids.epsilons)]
    parts += [{"quantity": "beta", "at": [decimal_text(alpha)]} for alpha in grids.alphas]
    if question["tradeoff"]:
        parts.append({"quantity": "tradeoff", "at": [str(question["tradeoff"]["num"])]})
    parts += [{"quantity": "delta_curve", "at": chunk} for chunk in _chunks(epsilons)]
    return parts


def _chunks(values: Sequence[Fraction]) -> list[list[str]]:
    starts = range(0, len(values), _EPSILONS_IN_A_PART)
    return [[decimal_text(value) for value in values[i : i + _EPSILONS_IN_A_PART]] for i in starts]


def part(question: Record) -> Record:
    """One part of the work."""
    release = release_of(question["design"])
    with warnings.catch_warnings():
        if overall_of(release).is_screened:
            warnings.simplefilter("ignore", AccuracyWarning)  # SCREENED says so
        return _rows(release, question)


def _rows(release: Release, question: Record) -> Record:
    at = [Fraction(text) for text in question["at"]]
    study, rho = release.account(), release.rho
    quantity = question["quantity"]
    if quantity == "tradeoff":
        curve = study.tradeoff(int(at[0]))
        points = zip(curve.alpha.tolist(), curve.beta.tolist(), strict=True)
        return {"rows": [{"alpha": alpha, "beta": beta} for alpha, beta in points]}
    if quantity == "beta":
        return {"rows": beta_rows(study, rho, at)}
    if quantity == "worst_pair":
        return {"rows": [_worst_pair(release, delta, in_balls=True) for delta in at]}
    if quantity == "epsilon":
        rows = [_epsilon_row(study, rho, delta) for delta in at]
        if not question["worst_pair"]:
            return {"rows": rows}
        return {"rows": rows, "also": {"worst_pair": [_worst_pair(release, delta, in_balls=False) for delta in at]}}
    bounds = _largest_delta(study, at, quantity)
    deltas: list[OverallDelta] = [
        {
            "epsilon": float(epsilon) if quantity == "delta_curve" else decimal_text(epsilon),
            "lower": float(lower),
            "upper": float(upper),
            **other_accounts(rho, "epsilon", epsilon),
        }
        for epsilon, lower, upper in zip(at, bounds.lower, bounds.upper, strict=True)
    ]
    return {"rows": deltas}


def _worst_pair(release: Release, delta: Fraction, in_balls: bool) -> WorstPair:
    """The worst pair, or the first of those that are not worth telling apart, with their number."""
    suspects = overall_of(release).suspects("epsilon", delta)
    if not in_balls and len(suspects) > _MOST_SUSPECTS:
        pair, tied = release.pairs[suspects[0]], len(suspects)
    else:
        pair, tied = Contest.of(release, delta=delta).settled(in_balls)
    return {"delta": decimal_text(delta), "pair": list(pair), "tied": tied}


def _largest_delta(study: Study, epsilons: list[Fraction], quantity: str) -> Bounds:
    """Bounds of the overall delta; for a curve where pairs share nothing, those of the screen, which are wider."""
    overall = overall_of(study.release)
    if quantity != "delta_curve" or not overall.is_screened:
        return study.delta_bounds(epsilons)
    delta = overall.worst(epsilons).delta
    return Bounds(delta.lower_floats(), np.minimum(delta.upper_floats(), 1.0))


def _epsilon_row(study: Study, rho: Fraction, delta: Fraction) -> OverallEpsilon:
    lower, upper = study.epsilon_bounds(delta)
    proxy = study.release.proxy.epsilon_bounds(delta)
    return {
        "delta": decimal_text(delta),
        "lower": lower,
        "upper": upper,
        **other_accounts(rho, "delta", delta),
        "proxy": {"lower": proxy.lower, "upper": proxy.upper},
    }


def assembled(known: Mapping[str, Any], rows: Mapping[str, Sequence[Record]], remarks: Iterable[str]) -> Record:
    """The rows of all quantities put together."""
    return {
        **known,
        **{name: list(rows.get(name, [])) for name in ("epsilon", "worst_pair", "delta", "beta")},
        **{name: _columns(rows[name]) if rows.get(name) else None for name in ("delta_curve", "tradeoff")},
        "remarks": list(dict.fromkeys(remarks)),
    }


def _columns(rows: Sequence[Record]) -> Record:
    return {name: [row[name] for row in rows] for name in rows[0]}
