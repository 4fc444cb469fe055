"""Enclosures of any number of digits: delta, epsilon and beta as pairs of decimals, rounded outward.

Same plans as float64, evaluated in ball arithmetic; the working digits are raised until the promise holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from flint import arb

from exactdp.accounting.epsilon_search import epsilon_bracket
from exactdp.accounting.tradeoff_vertices import (
    beta_bracket,
    find_edge,
    polygon_bounds,
    surrounding_vertices,
    upper_side,
)
from exactdp.balls import ATTEMPTS, SPARE, ball, bits_of, decimals, ends_of, fraction, precision, raised
from exactdp.brackets import both, mirrored_ball
from exactdp.engine.lattice.accuracy import RESORT_DIGITS, RESORT_WIDTH_BETA, beta_is_wide, if_affordable
from exactdp.engine.lattice.contours import BALL_NODE_LIMIT, Contours
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.lattice.tilts import delta_payoff
from exactdp.engine.payoff import Payoff, Threshold, delta_threshold, tail_threshold
from exactdp.numbers import log_rational
from exactdp.widths import epsilon_is_wide


def delta_decimals(contours: Contours, epsilon: Fraction | float, digits: int) -> tuple[Decimal, Decimal]:
    """delta(epsilon) between two decimals less than 10^-digits apart in relative terms."""
    if isinstance(epsilon, float):  # an infinity
        exact = Decimal(0 if epsilon > 0 else 1)
        return exact, exact
    return decimals(_raised(lambda working: _delta_ball(contours, epsilon, working), digits), digits)


def _delta_ball(contours: Contours, epsilon: Fraction, digits: int, node_limit: int = BALL_NODE_LIMIT) -> arb:
    return delta_from_sums(
        contours.lattice, epsilon, lambda payoff, at: contours.enclose(payoff, at, digits, node_limit).value, digits
    )


def delta_from_sums(
    lattice: Lattice, epsilon: Fraction, enclose: Callable[[Payoff, Threshold], arb], digits: int
) -> arb:
    """delta(epsilon), where `enclose` gives the smaller of it and 1 - delta at |epsilon| with at least `digits` digits."""
    payoff, threshold = delta_payoff(lattice, abs(epsilon)), delta_threshold(lattice, abs(epsilon))
    direct = enclose(payoff, threshold)
    with precision(bits_of(digits)):
        return mirrored_ball(direct if payoff is Payoff.DELTA else 1 - direct, epsilon)


def epsilon_floats(contours: Contours, delta: Fraction) -> tuple[float, float]:
    """epsilon(delta) between two doubles for 0 < delta < 1: float64, and balls where float64 alone would be too wide.

    It is where delta hardly depends on epsilon: then many epsilons have the same delta to within the rounding of doubles.
    """
    found = epsilon_bracket(contours, delta)
    if not epsilon_is_wide(*found):
        return found
    proved = if_affordable(
        contours.lattice, lambda limit: _epsilon_near(contours, delta, found, RESORT_DIGITS, node_limit=limit)
    )
    if proved is None:
        return found
    return both(found, (math.nextafter(float(proved[0]), -math.inf), math.nextafter(float(proved[1]), math.inf)))


def epsilon_decimals(contours: Contours, delta: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """epsilon(delta) between two decimals less than 10^-digits apart in relative terms.

    Guarantee: delta(upper) <= delta <= delta(lower) by enclosures at exactly these decimals.
    """
    if delta == 0 or delta >= 1:
        exact = Decimal("Infinity" if delta == 0 else "-Infinity")
        return exact, exact
    return _epsilon_near(contours, delta, epsilon_bracket(contours, delta), digits)


def _epsilon_near(
    contours: Contours, delta: Fraction, around: tuple[float, float], digits: int, node_limit: int = BALL_NODE_LIMIT
) -> tuple[Decimal, Decimal]:
    """`epsilon_decimals`, found from two doubles around it."""
    low, high = map(Fraction, around)
    estimate = (low + high) / 2
    context = Context(prec=digits + SPARE)
    working = digits + 2 * SPARE
    if estimate:  # near epsilon = 0 the digits of delta that matter start later
        working += max(0, -math.floor(log_rational(abs(estimate)) / math.log(10)))
    enough = Fraction(1, 10 ** (digits + 3))
    for _ in range(ATTEMPTS):
        step = _newton_step(contours, delta, estimate, working, node_limit)
        if step is None:
            estimate = _halved(contours, delta, (low, high), enough, working, node_limit)
            break
        estimate += step
        if abs(step) <= abs(estimate) * enough:
            break
    steps = itertools.cycle(abs(estimate) * Fraction(k, 10 ** (digits + 1)) for k in (1, 2, 4))

    def attempt(working: int) -> tuple[tuple[Decimal, Decimal] | None, int]:
        step = next(steps)
        lower = _to_decimal(estimate - step, context, ROUND_FLOOR)
        upper = _to_decimal(estimate + step, context, ROUND_CEILING)
        below = _delta_ball(contours, Fraction(lower), working, node_limit)
        above = _delta_ball(contours, Fraction(upper), working, node_limit)
        with precision(bits_of(working)):
            proved = below >= ball(delta) and above <= ball(delta)
        return (lower, upper) if proved else None, SPARE

    return raised(attempt, digits, working)


def _newton_step(
    contours: Contours, delta: Fraction, epsilon: Fraction, digits: int, node_limit: int
) -> Fraction | None:
    """One step of Newton's method on delta(epsilon) = delta; None where delta is too flat for it.

    Heuristic: the ends are proved afterwards.
    """
    size = abs(epsilon)
    payoff = delta_payoff(contours.lattice, size)
    found = contours.enclose(payoff, delta_threshold(contours.lattice, size), digits, node_limit)
    with precision(bits_of(digits)):
        value = found.value if payoff is Payoff.DELTA else 1 - found.value
        slope = found.slope if epsilon >= 0 else ball(epsilon).exp() * (1 - value - found.slope)
        step = (mirrored_ball(value, epsilon) - ball(delta)) / slope
        return fraction(step.mid()) if step.is_finite() else None


def _halved(
    contours: Contours, delta: Fraction, ends: tuple[Fraction, Fraction], enough: Fraction, digits: int, node_limit: int
) -> Fraction:
    """epsilon(delta) by halving: between two losses far apart delta hardly changes. Heuristic: ends are proved afterwards."""
    low, high = ends
    while high - low > enough * max(abs(low), abs(high)):
        middle = (low + high) / 2
        value = _delta_ball(contours, middle, digits, node_limit)
        with precision(bits_of(digits)):
            exact = ball(delta)
            if not (value > exact or value < exact):
                return middle
            low, high = (middle, high) if value > exact else (low, middle)
    return (low + high) / 2


def beta_floats(contours: Contours, alpha: Fraction) -> tuple[float, float]:
    """beta(alpha) between two doubles for 0 < alpha < 1: float64, and balls where float64 alone would be too wide."""
    found = beta_bracket(contours, alpha)
    if not beta_is_wide(*found, RESORT_WIDTH_BETA):
        return found
    value = if_affordable(
        contours.lattice,
        lambda limit: _raised(lambda working: _beta_ball(contours, alpha, working, limit), RESORT_DIGITS),
    )
    return found if value is None else both(found, ends_of(value))


def beta_decimals(contours: Contours, alpha: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """beta(alpha) between two decimals less than 10^-digits apart in relative terms."""
    if alpha in (0, 1):
        return Decimal(int(1 - alpha)), Decimal(int(1 - alpha))
    return decimals(_raised(lambda working: _beta_ball(contours, alpha, working), digits), digits)


def _beta_ball(contours: Contours, alpha: Fraction, digits: int, node_limit: int = BALL_NODE_LIMIT) -> arb:
    def tails(steps: list[int]) -> list[arb]:
        return tails_from_sums(steps, lambda payoff, at: contours.enclose(payoff, at, digits, node_limit).value, digits)

    return beta_from_tails(contours, alpha, tails, digits)


def beta_from_tails(
    contours: Contours, alpha: Fraction, tails_at: Callable[[list[int]], list[arb]], digits: int
) -> arb:
    """beta(alpha) from the lines through the vertices around alpha (Theorem 6), with tails from any source.

    The contours only say where to look first.
    """
    lattice, near = contours.lattice, find_edge(contours, alpha)
    with precision(bits_of(digits)):
        exact = ball(alpha)
        tails = surrounding_vertices(near, tails_at, lambda tail: tail >= exact, lambda tail: tail <= exact)
        betas = dict(zip(tails, tails_at([lattice.spread_steps + 1 - t for t in tails]), strict=True))

        def line(vertex: int, edge: int) -> tuple[arb, arb]:
            slope = ball(lattice.step * edge - lattice.spread / 2).exp()
            value = betas[vertex] + slope * (tails[vertex] - exact)
            return value.lower(), value.upper()

        lower, upper = polygon_bounds(list(tails), line)
        return lower.union(upper)


def tails_from_sums(steps: list[int], enclose: Callable[[Payoff, Threshold], arb], digits: int) -> list[arb]:
    """P(S >= h t), at t <= 0 as 1 minus the mirrored tail; `enclose` gives the tails at positive lattice points."""
    found = [enclose(Payoff.TAIL, tail_threshold(upper_side(t))) for t in steps]
    with precision(bits_of(digits)):
        return [value if t > 0 else 1 - value for t, value in zip(steps, found, strict=True)]


def _raised(compute: Callable[[int], arb], digits: int) -> arb:
    """`compute` with more and more working digits until its enclosure has `digits` digits and one to spare."""

    def attempt(working: int) -> tuple[arb | None, int]:
        value = compute(working)
        bits = value.rel_accuracy_bits() if value > 0 else 0
        enough = bits > (digits + 1) * math.log2(10)
        return value if enough else None, max(SPARE, math.ceil(digits + 1 - bits / math.log2(10)))

    return raised(attempt, digits, digits + 1)


def _to_decimal(value: Fraction, context: Context, rounding: str) -> Decimal:
    context = context.copy()
    context.rounding = rounding
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))
