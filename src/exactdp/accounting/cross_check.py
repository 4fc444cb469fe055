"""One question to every method that applies: the answers must overlap, and anyone can see that they do."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction

from exactdp.accounting.explanation import power_of_ten, short_text
from exactdp.accounting.privacy_profile import profile
from exactdp.arithmetic_state import steady
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.lattice import Lattice
from exactdp.engine.line.methods import LineMethods, threshold
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.errors import AccuracyError, LatticeTooFineError
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr
from exactdp.numerals import DOWN, UP, at_most


@dataclass(frozen=True)
class Opinion:
    """One method's certified answer: bounds of log delta, and the seconds it took."""

    _repr_html_ = repr_html

    method: str
    log_lower: float
    log_upper: float
    seconds: float


@steady
@dataclass(frozen=True)
class CrossCheck:
    """What every applicable method says about delta(epsilon) in one direction, infinite losses left out."""

    _repr_html_, __repr__ = repr_html, exact_repr

    epsilon: Fraction
    opinions: tuple[Opinion, ...]

    @property
    def agree(self) -> bool:
        """Whether all bounds have a point in common."""
        return not self.opinions or max(o.log_lower for o in self.opinions) <= min(o.log_upper for o in self.opinions)

    def __str__(self) -> str:
        width = max((len(o.method) for o in self.opinions), default=0)
        lines = [f"delta({short_text(self.epsilon)}) by every method that applies"]
        for o in self.opinions:
            apart = math.expm1(min(o.log_upper - o.log_lower, 700.0)) if o.log_lower > -math.inf else math.inf
            ends = f"{power_of_ten(o.log_lower, DOWN)} to {power_of_ten(o.log_upper, UP)}"
            lines.append(f"  {o.method:<{width}}  {ends}  width {at_most(apart, 2)}  {o.seconds:.3f} s")
        lines.append("  all overlap" if self.agree else "  THEY DO NOT OVERLAP: please report this")
        return "\n".join(lines)


def cross_check(total: TotalLoss, lattice: Lattice | None, epsilon: Fraction, effort: Effort) -> CrossCheck:
    """Ask every method that applies, each from scratch; `epsilon` is at least 0."""
    methods = list(LineMethods(total, effort).every(threshold(epsilon)))
    if lattice is not None:
        methods.insert(0, ("sieve on the lattice", lambda: profile(Contours(lattice), [epsilon]).delta))
    opinions = []
    for name, ask in methods:
        start = time.perf_counter()
        try:
            bracket = ask()
        except (LatticeTooFineError, AccuracyError):
            continue
        if bracket is not None:
            seconds = time.perf_counter() - start
            opinions.append(Opinion(name, float(bracket.log_lower()[0]), float(bracket.log_upper()[0]), seconds))
    return CrossCheck(epsilon, tuple(opinions))
