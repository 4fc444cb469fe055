"""Every inequality that the published theorem on the Edgeworth expansion rests on, checked in balls on a grid of frequencies.

A check in balls is a proof at the points of the grid; between them it is evidence. `failures` is empty for everything that the
published proof covers (cuts a <= pi B_m). docs/theory/edgeworth.md lists what the printed statement leaves open.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from exactdp.balls import precision
from exactdp.mechanisms.theta import cf_ball
from exactdp.theory.edgeworth_bound import BITS, EdgeworthBound, theta_0
from exactdp.theory.local_error import LocalErrors

_POINTS = 24
_SHARP_PIECES = 150


@dataclass(frozen=True)
class CheckedInequality:
    """One inequality, and the smallest quotient of its right by its left side that was seen (from 1 on it holds)."""

    name: str
    margin: float
    holds: bool


def check_claims(bound: EdgeworthBound, cut: arb, errors: LocalErrors) -> list[CheckedInequality]:
    """The inequalities of the theorem and of its proof at one cut a; those about the zone beyond it where a < pi B_m."""
    with precision(BITS):
        end = arb.pi() * bound.spread
        inner = [cut * i / _POINTS for i in range(1, _POINTS + 1)]
        outer = [cut + (end - cut) * i / _POINTS for i in range(_POINTS + 1)] if cut < end else []
        u = bound.u(cut)
        fifth, sixth, seventh = bound.lambdas(cut)
        x = bound.lambda_4 / (24 * bound.m)
        one = [(z, cf_ball(z / bound.spread, bound.sigma2)) for z in inner]
        squares = bound.u_m()
        middle = bound.printed(cut).middle
        return [
            _checked("lambda_4 is positive", [(arb(0), bound.lambda_4)]),
            _checked("|U_j,m| <= U^m(c) up to the cut", [(abs(f - 1), u) for _, f in one]),
            _checked("sum of |U_j,m|^2 <= U_m", [(bound.m * (f - 1) ** 2, squares(z * z)) for z, f in one]),
            _checked(
                "|f_S - e^{-z^2/2}(1 + lambda_4 z^4/24m)| <= e^{-z^2/2}(L5 + L6 + L7)",
                [
                    (
                        abs(f**bound.m - (-z * z / 2).exp() * (1 + x * z**4)),
                        (-z * z / 2).exp() * (fifth(z * z) + sixth(z * z) + seventh(z * z)),
                    )
                    for z, f in one
                ],
            ),
            _checked(
                "|f_S| <= third term between the cut and pi B_m",
                [(cf_ball(z / bound.spread, bound.sigma2) ** bound.m, middle) for z in outer],
            ),
            _checked("cos x <= 1 - x^2/2 + b|x|^3", _cosine_pairs()),
            _checked("sup R_m <= printed bound", [(errors.edgeworth, bound.printed(cut).total)]),
            _checked("sup R_m <= corrected bound", [(errors.edgeworth, bound.corrected(cut).total)]),
            _checked("sup R_m <= sharper bound", [(errors.edgeworth, bound.sharp(pieces=_SHARP_PIECES))]),
        ]


def _cosine_pairs() -> list[tuple[arb, arb]]:
    """Shevtsova's lemma at theta_0, where a(theta_0) = 1/2; tight at 0 and at theta_0; 2 is added to compare quotients."""
    t = theta_0()
    b = (t.cos() - 1 + t * t / 2) / t**3
    points = [arb(i) / 8 for i in range(1, 121) if abs(i / 8 - 3.995895679) > 0.05]
    return [(z.cos() + 2, 3 - z * z / 2 + b * z**3) for z in points]


def _checked(name: str, pairs: list[tuple[arb, arb]]) -> CheckedInequality:
    """left <= right for every pair."""
    holds = all(bool(left <= right) for left, right in pairs)
    quotients = [float((right / left).lower()) if bool(left > 0) else float("inf") for left, right in pairs]
    return CheckedInequality(name, min(quotients, default=float("inf")), holds)
