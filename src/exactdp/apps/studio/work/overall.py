"""All pairs of a design, cut into parts that workers do side by side and that can be shown as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypedDict

from exactdp.apps.studio.schema import answers
from exactdp.apps.studio.schema.answers import OverallRows, Quantity
from exactdp.apps.studio.work.designs import Record, all_pairs, read_grids, release_of
from exactdp.apps.studio.work.pair import beta_rows, curve_epsilons, other_accounts
from exactdp.census.grids import Grids
from exactdp.census.overall import Overall
from exactdp.census.overall_answers import OverallAnswers
from exactdp.census.pair_results import quick_overall_of, shares_lattice
from exactdp.census.releases import Release
from exactdp.census.worst_pair import Candidates
from exactdp.numerals import whole_text

_EPSILONS_IN_A_PART = 12
_LAST_FIRST = ("delta_curve", "beta")  # quantities whose last arguments are planned first


class PlannedPart(TypedDict):
    """One part of the work: a quantity at some arguments."""

    quantity: Quantity
    at: list[str]


class OverallPlan(TypedDict):
    """The parts of the work, and what is known beforehand."""

    parts: list[PlannedPart]
    known: answers.AllPairs
    remarks: list[str]


def plan(question: Record) -> OverallPlan:
    """The parts of the work and what is known beforehand.

    The most wanted come first, and neighbours share contours: one worker begins at the front, the others at the back.
    """
    release = release_of(question["design"])
    grids = read_grids(question["epsilons"], question["deltas"], question["alphas"])
    return {"parts": _parts(release, question, grids), "known": all_pairs(release), "remarks": []}


def _parts(release: Release, question: Record, grids: Grids) -> list[PlannedPart]:
    curve = question["delta_curve"]
    epsilons = curve_epsilons(release.rho, curve) if curve else []
    parts: list[PlannedPart] = [{"quantity": "epsilon", "at": [whole_text(d)]} for d in grids.deltas]
    if question["worst_pair"]:
        parts += [{"quantity": "worst_pair", "at": [whole_text(delta)]} for delta in grids.deltas]
    parts += [{"quantity": "delta", "at": chunk} for chunk in _chunks(grids.epsilons)]
    parts += [{"quantity": "delta_curve", "at": chunk} for chunk in reversed(_chunks(epsilons))]
    if question["tradeoff"]:
        parts.append({"quantity": "tradeoff", "at": [str(question["tradeoff"]["num"])]})
    parts += [{"quantity": "beta", "at": [whole_text(alpha)]} for alpha in reversed(grids.alphas)]
    return parts


def _chunks(values: Sequence[Fraction]) -> list[list[str]]:
    starts = range(0, len(values), _EPSILONS_IN_A_PART)
    return [[whole_text(value) for value in values[i : i + _EPSILONS_IN_A_PART]] for i in starts]


def part(question: Record) -> dict[str, dict[Quantity, OverallRows]]:
    """One part of the work."""
    release = release_of(question["design"])
    return {"rows": _rows(release, question)}


def _rows(release: Release, question: Record) -> dict[Quantity, OverallRows]:
    at = [Fraction(text) for text in question["at"]]
    all_of_them = _Quickly(release)
    quantity = question["quantity"]
    if quantity == "tradeoff":
        curve = quick_overall_of(release).drawn_curve(int(at[0]))
        return {"tradeoff": list(map(_point, curve.alpha.tolist(), curve.beta.tolist()))}
    if quantity == "beta":
        return {"beta": beta_rows(all_of_them, release.rho, at)}
    if quantity == "worst_pair":
        return {"worst_pair": [_worst_pair(release, delta) for delta in at]}
    if quantity == "epsilon":
        return {"epsilon": [_epsilon_row(all_of_them, delta) for delta in at]}
    return {quantity: _delta_rows(all_of_them, at, quantity)}


@dataclass(frozen=True)
class _Quickly(OverallAnswers):
    """The guarantee of a release for someone who waits for it."""

    release: Release

    @property
    def _overall(self) -> Overall:
        return quick_overall_of(self.release)


def _point(alpha: float, beta: float) -> answers.TradeOffPoint:
    return {"alpha": alpha, "beta": beta}


def _delta_rows(release: _Quickly, at: list[Fraction], quantity: Quantity) -> list[answers.OverallDelta]:
    is_drawn, rho = quantity == "delta_curve", release.release.rho
    drawn = quick_overall_of(release.release).drawn_deltas
    bounds = drawn(at) if is_drawn else list(zip(*release.delta_bounds(at), strict=True))
    return [
        {
            "epsilon": float(epsilon) if is_drawn else whole_text(epsilon),
            "lower": float(lower),
            "upper": float(upper),
            **other_accounts(rho, "epsilon", epsilon),
        }
        for epsilon, (lower, upper) in zip(at, bounds, strict=True)
    ]


def _worst_pair(release: Release, delta: Fraction) -> answers.WorstPair:
    """The worst pair, or the first of those that are not worth telling apart, with their number.

    Balls tell them apart where all pairs share a lattice; without one they would take seconds for each.
    """
    suspects = quick_overall_of(release).suspects(delta)
    least = max(low for low, _ in suspects.values())
    left = {release.pairs[i]: ends for i, ends in suspects.items() if ends[1] >= least}
    pair, tied = Candidates(release, "epsilon", delta, left).settled(len(left) > 1 and shares_lattice(release))
    return {"delta": whole_text(delta), "pair": list(pair), "tied": tied}


def _epsilon_row(release: _Quickly, delta: Fraction) -> answers.OverallEpsilon:
    lower, upper = release.epsilon_bounds(delta)
    proxy, rho = release.release.proxy.epsilon_bounds(delta), release.release.rho
    return {
        "delta": whole_text(delta),
        "lower": lower,
        "upper": upper,
        **other_accounts(rho, "delta", delta),
        "proxy": {"lower": proxy.lower, "upper": proxy.upper},
    }


class Assembly:
    """The events of an overall accounting, from its plan and from what its parts find."""

    def __init__(self, planned: Record) -> None:
        self._known: answers.AllPairs = planned["known"]
        self.parts: list[PlannedPart] = planned["parts"]
        self._remarks, self._done = list(planned["remarks"]), 0
        self._rows: dict[str, dict[int, list[Any]]] = {}

    def start(self) -> answers.OverallStart:
        """How much there is to do."""
        return {"event": "start", "steps": len(self.parts), **self._known}

    def add(self, number: int, found: Record) -> Iterator[answers.OverallPart]:
        """What the part of this number has found."""
        self._done += 1
        self._remarks += found["remarks"]
        for quantity, rows in found["rows"].items():
            self._rows.setdefault(quantity, {})[number] = rows
            yield {"event": "part", "done": self._done, "steps": len(self.parts), "quantity": quantity, "rows": rows}

    def done(self, seconds: float) -> answers.OverallDone:
        """The rows of all quantities put together, in the order in which they were asked for."""
        rows = {
            name: [row for i in sorted(found, reverse=name in _LAST_FIRST) for row in found[i]]
            for name, found in self._rows.items()
        }
        curve, tradeoff = rows.get("delta_curve"), rows.get("tradeoff")
        return {
            "event": "done",
            "result": {
                **self._known,
                "epsilon": rows.get("epsilon", []),
                "worst_pair": rows.get("worst_pair", []),
                "delta": rows.get("delta", []),
                "beta": rows.get("beta", []),
                "delta_curve": _columns(curve) if curve else None,
                "tradeoff": _columns(tradeoff) if tradeoff else None,
                "remarks": list(dict.fromkeys(self._remarks)),
            },
            "seconds": round(seconds, 6),
        }


def _columns(rows: Sequence[Record]) -> Any:
    return {name: [row[name] for row in rows] for name in rows[0]}
