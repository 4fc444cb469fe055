"""Two more routes to an answer, for certificates: the engine on a contour of one's choice, and the published method.

A route encloses delta(epsilon) and tails; `beta` makes the trade-off curve of the tails of any route.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import NamedTuple, Protocol

from flint import arb

from exactdp.accounting.composition import Composition
from exactdp.accounting.enclosures import beta_from_tails, delta_from_sums, tails_from_sums
from exactdp.balls import SPARE, ball, bits_of, correct_digits, decimals, fraction, precision, raised
from exactdp.cache import Recent
from exactdp.engine.lattice.ball import BallContour, BallSum
from exactdp.engine.lattice.contours import BALL_NODE_LIMIT, Contours
from exactdp.engine.lattice.lattice import Group, Lattice
from exactdp.engine.lattice.plan import log_expected, make_plan
from exactdp.engine.lattice.tilts import Rung, rung, rung_index, short
from exactdp.engine.payoff import Payoff, Threshold
from exactdp.engine.published import theorem
from exactdp.engine.published.plan import ReferencePlan
from exactdp.errors import AccuracyError, InvalidInputError, LatticeTooFineError
from exactdp.strict_json import LARGEST_EXPONENT

QUANTITY = {"epsilon": "delta", "delta": "epsilon", "alpha": "beta"}
"""What is asked, by what is given."""

_SMALLEST_STEP = Fraction(1, 10**100)
_HELD = 32  # contours of one route


@dataclass(frozen=True)
class Evaluation:
    """One Fourier sum: what was summed from which lattice point on, its plan, and its errors relative to its value.

    `aliased` and `dropped` are rounded up to four digits; rounding is inside the enclosure and governed by `bits`.
    """

    payoff: str
    start: int
    tilt: Fraction
    nodes: int
    kept: int
    aim_digits: int
    bits: int
    aliased: Decimal
    dropped: Decimal


class NamedContour(Protocol):
    """What tells one contour from another: its tilt and its number of nodes."""

    @property
    def tilt(self) -> Fraction:
        """The tilt."""

    @property
    def nodes(self) -> int:
        """N."""


class Route(Protocol):
    """A way to enclose delta(epsilon) and P(S >= h t), each aimed at `digits` correct digits of it or of its complement."""

    digits: int

    def delta(self, epsilon: Fraction) -> arb:
        """An enclosure of delta(epsilon)."""

    def tails(self, steps: list[int]) -> list[arb]:
        """Enclosures of P(S >= h t)."""


class PublishedRoute:
    """The published method; its accuracy is decided by its plan, whose lattice of X = S / h is the engine's."""

    def __init__(self, plan: ReferencePlan, digits: int) -> None:
        self._plan, self.digits = plan, digits

    def delta(self, epsilon: Fraction) -> arb:
        """delta(epsilon) within the tolerance times 1 + e^epsilon."""
        return theorem.delta(self._plan, epsilon)

    def tails(self, steps: list[int]) -> list[arb]:
        """P(S >= h t) for each t within the tolerance."""
        return [theorem.tail(self._plan, (t - 1) / self._plan.L) for t in steps]


@dataclass
class EngineRoute:
    """The engine in balls, on its natural rungs, or on others with other N than those to be checked."""

    lattice: Lattice
    digits: int
    checked: Sequence[NamedContour] | None = None
    made: dict[tuple[Payoff, Threshold], Evaluation] = field(default_factory=dict)
    _contours: Recent[tuple[Rung, int], BallContour] = field(default_factory=lambda: Recent(_HELD))

    def delta(self, epsilon: Fraction) -> arb:
        """delta(epsilon); it or its complement has at least `digits` correct digits."""
        return delta_from_sums(self.lattice, epsilon, self._enclose, self.digits)

    def tails(self, steps: list[int]) -> list[arb]:
        """P(S >= h t) with at least `digits` correct digits of the smaller of it and its complement."""
        return tails_from_sums(steps, self._enclose, self.digits)

    def _enclose(self, payoff: Payoff, threshold: Threshold) -> arb:
        where, digits = self._rung(payoff, threshold), self.digits
        taken = {e.nodes for e in self.checked or ()}

        def attempt(level: int) -> tuple[arb | None, int]:
            contour = self._contour(where, level)
            found = contour.evaluate([threshold])[0]
            correct = correct_digits(found.value)
            if correct > digits and contour.plan.nodes not in taken:
                self.made[payoff, threshold] = _evaluation(contour, threshold, level, found)
                return found.value, 0
            return None, max(SPARE, digits + 2 - correct)

        return raised(attempt, digits, digits + SPARE)

    def _rung(self, payoff: Payoff, threshold: Threshold) -> Rung:
        index = rung_index(self.lattice, payoff, float(threshold.steps * self.lattice.step))
        natural = rung(self.lattice, payoff, index)
        if self.checked is None:
            return natural
        taken = {natural.tilt} | {e.tilt for e in self.checked}
        near = [rung(self.lattice, payoff, index + i) for i in (1, -1, 2, -2) if index + i >= 0]
        between = [replace(natural, tilt=short(float(natural.tilt) * (1 - 0.5**i))) for i in range(2, 16)]
        others = [where for where in near + between if where.tilt not in taken]
        if not others:
            raise AccuracyError("no tilt is left that the certificate does not name")
        return others[0]

    def _contour(self, where: Rung, level: int) -> BallContour:
        def build() -> BallContour:
            plan = make_plan(self.lattice, where, log_expected(self.lattice, where) - level * math.log(10))
            if len(plan.kept) > BALL_NODE_LIMIT:
                raise AccuracyError(f"{len(plan.kept):,} nodes would have to be evaluated. Ask for fewer digits.")
            return BallContour(plan, bits_of(level) + len(plan.kept).bit_length())

        return self._contours.get((where, level), build)


def _evaluation(contour: BallContour, threshold: Threshold, level: int, found: BallSum) -> Evaluation:
    plan = contour.plan
    with precision(64):
        errors = [_four_digits(e / found.value) for e in (found.aliased, found.dropped)]
    kept = len(plan.kept)
    return Evaluation(
        plan.payoff.value, threshold.steps, plan.tilt, plan.nodes, kept, level, contour.bits, errors[0], errors[1]
    )


def _four_digits(value: arb) -> Decimal:
    """Rounded up, and up to 1E-100000 where it is below that."""
    if value < arb(10) ** -LARGEST_EXPONENT:
        return Decimal(f"1E-{LARGEST_EXPONENT}")
    exact = fraction(value.upper())
    return Context(prec=4, rounding=ROUND_CEILING).divide(Decimal(exact.numerator), Decimal(exact.denominator))


def beta(route: Route, lattice: Lattice, alpha: Fraction) -> arb:
    """beta(alpha) from the lines through the vertices around alpha (Theorem 6 of docs/theory/engine.md)."""
    return beta_from_tails(Contours(lattice), alpha, route.tails, route.digits)


class Position(NamedTuple):
    """Where a route proves the exact answer to be, and to how many digits it knows what it compared.

    `side` is 0 between the ends of a claim, -1 below them, 1 above them, None where the route cannot tell.
    """

    side: int | None
    digits: int


def compare(route: Route, lattice: Lattice, given: str, value: Fraction, ends: tuple[Decimal, Decimal]) -> Position:
    """A claim against what a route finds with its working digits."""
    lower, upper = map(Fraction, ends)
    if given == "delta":  # delta falls with epsilon: the claim is delta(upper) <= delta <= delta(lower)
        least, most = route.delta(upper), route.delta(lower)
        with precision(bits_of(route.digits)):
            exact = ball(value)
            inside, below, above = least <= exact and most >= exact, most < exact, least > exact
    else:
        least = most = route.delta(value) if given == "epsilon" else beta(route, lattice, value)
        with precision(bits_of(route.digits)):
            bottom, top = ball(lower), ball(upper)
            inside, below, above = least >= bottom and most <= top, most < bottom, least > top
    side = 0 if inside else -1 if below else 1 if above else None
    return Position(side, min(correct_digits(least), correct_digits(most)))


def prove(
    composition: Composition, given: str, value: Fraction, digits: int, ends: tuple[Decimal, Decimal] | None = None
) -> tuple[Decimal, Decimal, tuple[Evaluation, ...]]:
    """The enclosure of an answer and the sums that prove it. For epsilon the ends are searched for unless given."""
    lattice = lattice_of(composition)
    if given == "delta" and ends is None:
        ends = composition.epsilon_bounds(value, digits=digits)

    def attempt(working: int) -> tuple[tuple[Decimal, Decimal, tuple[Evaluation, ...]] | None, int]:
        route, more = EngineRoute(lattice, working), max(SPARE, digits // 2)
        if ends is not None:
            proved = compare(route, lattice, given, value, ends).side == 0
            return (*ends, tuple(route.made.values())) if proved else None, more
        found = route.delta(value) if given == "epsilon" else beta(route, lattice, value)
        proved = correct_digits(found) > digits
        return (*_written(found, digits), tuple(route.made.values())) if proved else None, more

    return raised(attempt, digits, digits + SPARE)


def _written(value: arb, digits: int) -> tuple[Decimal, Decimal]:
    with precision(64):
        if value < arb(10) ** -LARGEST_EXPONENT:
            raise InvalidInputError(
                f"The answer is below 1E-{LARGEST_EXPONENT}, too small to be written down. Ask nearer to the bulk."
            )
    return decimals(value, digits)


def lattice_of(composition: Composition) -> Lattice:
    """The lattice of a composition's loss, refused where its step is too small for any sum on it to be planned."""
    lattice = Lattice(Group.of_each(composition.discrete_gaussians))
    if lattice.step < _SMALLEST_STEP:
        raise LatticeTooFineError(
            "The losses of this composition have no common step above 1e-100. Round the noise to fewer digits."
        )
    return lattice
