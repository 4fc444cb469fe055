"""The account of one answer: which method gave it, what was evaluated, and what each error term is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from exactdp.accounting.privacy_profile import profile
from exactdp.arithmetic_state import steady
from exactdp.engine.lattice.contours import Contours, is_wide
from exactdp.engine.line.protocol import Used
from exactdp.engine.payoff import Payoff, delta_threshold
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr, exact_text
from exactdp.numerals import DOWN, UP, about, at_most, counted
from exactdp.widths import WIDE

_SHOWN = 15  # digits of an end


@steady
@dataclass(frozen=True)
class Explanation:
    """How delta(epsilon) was computed. Error terms are relative to the sum that was evaluated; `kept` counts its terms."""

    _repr_html_, __repr__ = repr_html, exact_repr

    epsilon: Fraction
    mechanisms: int
    groups: int
    method: str
    quantity: str
    kept: int
    log_lower: float
    log_upper: float
    arithmetic: str
    rows: tuple[tuple[str, str], ...]
    """What the method has to say about itself: names and texts."""
    step: Fraction | None = None
    nodes: int = 0
    aliased: float = 0.0
    dropped: float = 0.0
    rounding: float = 0.0

    @property
    def relative_width(self) -> float:
        """upper / lower - 1."""
        return math.expm1(min(self.log_upper - self.log_lower, 700.0)) if self.log_upper > -math.inf else 0.0

    @property
    def statement(self) -> str:
        """One plain sentence: what the bounds are worth."""
        if self.relative_width <= WIDE:
            return "The bounds are proved and narrow."
        return (
            f"The bounds are proved but wide (relative width {at_most(self.relative_width, 2)}): more accuracy was out of reach "
            "within the work limit; raise it with within(max_nodes=...) or within(max_seconds=...)."
        )

    def items(self) -> list[tuple[str, str]]:
        """Names and texts of everything there is to say."""
        return [
            ("mechanisms", f"{self.mechanisms:,} in {counted(self.groups, 'group')}"),
            ("method", self.method),
            ("summed", self.quantity),
            *self.rows,
            ("arithmetic", self.arithmetic),
            ("delta at least", power_of_ten(self.log_lower, DOWN)),
            ("delta at most", power_of_ten(self.log_upper, UP)),
            ("relative width", at_most(self.relative_width, 2)),
            ("in short", self.statement),
        ]

    def __str__(self) -> str:
        rows = self.items()
        width = max(len(name) for name, _ in rows)
        lines = [f"delta({short_text(self.epsilon)})"] + [f"  {name:<{width}}  {text}" for name, text in rows]
        return "\n".join(lines)


def explain_on_lattice(contours: Contours, epsilon: Fraction) -> Explanation:
    """The account of delta(epsilon) by the sieve on the loss's own lattice."""
    lattice = contours.lattice
    size = abs(epsilon)
    payoff = contours.payoff_at(size)
    threshold = delta_threshold(lattice, size)
    contour = contours.contour(payoff, contours.rung_of(payoff, threshold))
    sums = contour.evaluate([threshold])
    value = float(sums.value[0])
    found = profile(contours, [epsilon]).delta
    plan = contour.plan
    arithmetic = "float64"
    if is_wide(sums)[0]:
        clumps = contours.clumps
        means = "balls" if clumps is None else f"a sum over the noise of sigma2 = {clumps[0].one.sigma2}, or balls"
        arithmetic = f"float64; its bounds (the errors above) were too wide, so then by {means}"
    aliased, dropped, rounding = (float(part[0]) / value for part in (sums.aliased, sums.dropped, sums.rounding))
    rows = (
        ("lattice step h", _with_decimal(lattice.step)),
        ("R = 2 rho", _with_decimal(lattice.spread)),
        ("tilt", about(plan.tilt)),
        ("period N", f"{plan.nodes:,} nodes"),
        ("nodes kept", f"{len(plan.kept):,} of {plan.nodes // 2 + 1:,} (one of each conjugate pair)"),
        ("aliasing", at_most(aliased, 2)),
        ("dropped nodes", at_most(dropped, 2)),
        ("rounding", at_most(rounding, 2)),
    )
    return Explanation(
        epsilon=epsilon,
        mechanisms=sum(g.count for g in lattice.groups),
        groups=len(lattice.groups),
        method="sieve on the lattice of the loss",
        quantity=quantity(payoff, epsilon),
        kept=len(plan.kept),
        log_lower=float(found.log_lower()[0]),
        log_upper=float(found.log_upper()[0]),
        arithmetic=arithmetic,
        rows=rows,
        step=lattice.step,
        nodes=plan.nodes,
        aliased=aliased,
        dropped=dropped,
        rounding=rounding,
    )


def explain_used(
    used: Used, epsilon: Fraction, counts: tuple[int, int], log_bounds: tuple[float, float]
) -> Explanation:
    """The account of delta(epsilon) by any other method; `counts` are mechanisms and groups."""
    return Explanation(
        epsilon=epsilon,
        mechanisms=counts[0],
        groups=counts[1],
        method=used.method,
        quantity=quantity(used.payoff, epsilon),
        kept=used.terms,
        log_lower=log_bounds[0],
        log_upper=log_bounds[1],
        arithmetic=used.arithmetic,
        rows=used.rows,
    )


def quantity(payoff: Payoff, epsilon: Fraction) -> str:
    """What was summed, in words."""
    return ("delta" if payoff is Payoff.DELTA else "1 - delta") + ("" if epsilon >= 0 else " at -epsilon")


def short_text(value: Fraction) -> str:
    """An exact number in one line: as it is if that is short, else as a decimal."""
    text = exact_text(value)
    return text if len(text) <= 40 else f"{float(value):.17g} (exactly a fraction of {len(text)} characters)"


def _with_decimal(value: Fraction) -> str:
    text = short_text(value)
    return f"{text}, which is {about(value)}" if "/" in text else text


def power_of_ten(log: float, rounding: str) -> str:
    """exp(log) with its decimal exponent, rounded UP or DOWN to 15 digits, also below the double range.

    >>> power_of_ten(-1e6, UP), power_of_ten(-1e6, DOWN)
    ('3.29683147808856e-434295', '3.29683147808855e-434295')
    """
    if not math.isfinite(log):
        return "0"
    context = Context(prec=_SHOWN + 30, Emin=MIN_EMIN, Emax=MAX_EMAX)
    value = Decimal(log).exp(context)  # correctly rounded: half a unit of a digit that is not shown
    outward = context.next_plus(value) if rounding == UP else context.next_minus(value)
    end = Context(prec=_SHOWN, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX).plus(outward)
    return f"{end:.{_SHOWN - 1}e}".replace("e+", "e")
