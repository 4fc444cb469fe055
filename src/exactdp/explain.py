"""The account of one answer: what was planned, what was evaluated, and what each error term is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from exactdp.engine.contours import Contours
from exactdp.engine.payoff import Payoff, delta_threshold
from exactdp.engine.tilt import delta_payoff
from exactdp.profile import profile


@dataclass(frozen=True)
class Explanation:
    """How delta(epsilon) was computed. The error terms are relative to the sum that was evaluated."""

    epsilon: Fraction
    mechanisms: int
    groups: int
    step: Fraction
    spread: Fraction
    quantity: str
    tilt: Fraction
    nodes: int
    kept: int
    aliased: float
    dropped: float
    rounding: float
    log_lower: float
    log_upper: float
    arithmetic: str

    @property
    def relative_width(self) -> float:
        """upper / lower - 1."""
        return math.expm1(min(self.log_upper - self.log_lower, 700.0))

    def __str__(self) -> str:
        rows = [
            ("mechanisms", f"{self.mechanisms} in {self.groups} groups"),
            ("lattice step h", f"{_short(self.step)} = {float(self.step):.6g}"),
            ("R = 2 rho", f"{_short(self.spread)} = {float(self.spread):.10g}"),
            ("summed", self.quantity),
            ("tilt", f"{float(self.tilt):.8g}"),
            ("period N", f"{self.nodes:,} nodes"),
            ("nodes kept", f"{self.kept:,} of {self.nodes // 2 + 1:,} (one of each conjugate pair)"),
            ("aliasing", f"{self.aliased:.1e}"),
            ("dropped nodes", f"{self.dropped:.1e}"),
            ("rounding", f"{self.rounding:.1e}"),
            ("arithmetic", self.arithmetic),
            ("delta at least", _power(self.log_lower)),
            ("delta at most", _power(self.log_upper)),
            ("relative width", f"{self.relative_width:.1e}"),
        ]
        width = max(len(name) for name, _ in rows)
        lines = [f"delta({_short(self.epsilon)})"] + [f"  {name:<{width}}  {text}" for name, text in rows]
        return "\n".join(lines)


def explain(contours: Contours, epsilon: Fraction) -> Explanation:
    """The account of delta(epsilon)."""
    lattice = contours.lattice
    size = abs(epsilon)
    payoff = delta_payoff(lattice, size)
    threshold = delta_threshold(lattice, size)
    contour = contours.contour(payoff, contours.rung_of(payoff, threshold))
    sums = contour.evaluate([threshold])
    value = float(sums.value[0])
    found = profile(contours, [epsilon]).delta
    plan = contour.plan
    arithmetic = "float64"
    if contours.resorts(sums)[0]:
        clumps = contours.clumps
        means = "balls" if clumps is None else f"a sum over the noise of sigma2 = {clumps[0].one.sigma2}, or balls"
        arithmetic = f"float64; its bounds (the errors above) were too wide, so then by {means}"
    mirrored = "" if epsilon >= 0 else " at -epsilon"
    return Explanation(
        epsilon=epsilon,
        mechanisms=sum(g.count for g in lattice.groups),
        groups=len(lattice.groups),
        step=lattice.step,
        spread=lattice.spread,
        quantity=("delta" if payoff is Payoff.DELTA else "1 - delta") + mirrored,
        tilt=plan.tilt,
        nodes=plan.nodes,
        kept=len(plan.kept),
        aliased=float(sums.aliased[0]) / value,
        dropped=float(sums.dropped[0]) / value,
        rounding=float(sums.rounding[0]) / value,
        log_lower=float(found.log_lower()[0]),
        log_upper=float(found.log_upper()[0]),
        arithmetic=arithmetic,
    )


def _short(value: Fraction) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{float(value):.17g} (exactly a fraction of {len(text)} characters)"


def _power(log: float) -> str:
    """exp(log) with its decimal exponent, also below the double range."""
    if not math.isfinite(log):
        return "0"
    exponent = math.floor(log / math.log(10))
    mantissa = math.exp(log - exponent * math.log(10))
    return f"{mantissa:.14f}e{exponent:+d}"
