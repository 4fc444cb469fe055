"""A mechanism with finitely many outcomes, given by its output distributions on the two data sets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from exactdp.arithmetic_state import steady
from exactdp.balls import BITS, ball, fraction, precision
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import FiniteLoss, Loss
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_text, rational, shown

MOST_OUTCOMES = 1024


@steady
@dataclass(frozen=True, init=False, repr=False)
class Outcomes(Mechanism):
    """Outcome i has probability p[i] on one data set and q[i] on its neighbour; each list adds up to exactly 1.

    A float is read as the decimal it prints as; write thirds as "1/3".

    >>> Outcomes(["2/3", "1/3"], ["1/3", "2/3"])
    Outcomes(['2/3', '1/3'], ['1/3', '2/3'])
    >>> Outcomes([0.5, 0.5, 0], [0, 0.5, 0.5]).rho
    inf
    """

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    def __init__(self, p: Iterable[Number], q: Iterable[Number]) -> None:
        object.__setattr__(self, "p", _distribution(p, "p"))
        object.__setattr__(self, "q", _distribution(q, "q"))
        if len(self.p) != len(self.q):
            raise InvalidInputError(
                f"p and q must list the same outcomes. Found {len(self.p)} and {len(self.q)} of them."
            )
        if not any(a and b for a, b in zip(self.p, self.q, strict=True)):
            raise InvalidInputError(
                "p and q must share an outcome of positive probability (otherwise the mechanism tells the data sets apart). "
                f"Found p = {_listed(self.p)} and q = {_listed(self.q)}."
            )

    @property
    def rho(self) -> Fraction | float:
        """Half the square of the greatest |log(p / q)|, rounded up; infinite if an outcome is possible on one side only."""
        pairs = [(a, b) for a, b in zip(self.p, self.q, strict=True) if a or b]
        if not all(a and b for a, b in pairs):
            return math.inf
        greatest = max(max(a / b, b / a) for a, b in pairs)
        with precision(BITS):
            return fraction(_log(greatest).upper()) ** 2 / 2

    def loss(self) -> Loss:
        """log(p / q) under p; its `reversed` is log(q / p) under q."""
        return _OutcomesLoss(self.p, self.q)

    def __str__(self) -> str:
        return f"Outcomes({_listed(self.p)}, {_listed(self.q)})"


class _OutcomesLoss(FiniteLoss):
    """The loss of p against q: outcomes of equal ratio are one value, outcomes with q = 0 an infinite one."""

    def __init__(self, p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> None:
        self._p, self._q = p, q
        mass: dict[Fraction, Fraction] = {}
        lost = Fraction(0)
        for a, b in zip(p, q, strict=True):
            if b == 0:
                lost += a
            elif a:
                mass[a / b] = mass.get(a / b, Fraction(0)) + a
        ratios = sorted(mass)
        steps, rows = _grid(ratios)
        with precision(BITS):
            super().__init__(_log(ratios[0]), [_log(s) for s in steps], rows, [ball(mass[r]) for r in ratios], lost)

    def reversed(self) -> Loss:
        return _OutcomesLoss(self._q, self._p)


def _grid(ratios: list[Fraction]) -> tuple[list[Fraction], list[tuple[int, ...]]]:
    """Steps s and rows n with ratios[a] = ratios[0] * product of s[j]^n[a][j], from increasing ratios.

    One step if all ratios to the first are powers of one rational, else one for each ratio but the first; none for a constant.
    """
    rest = [r / ratios[0] for r in ratios[1:]]
    if not rest:
        return [], [()]
    step: Fraction | None = rest[0]
    for ratio in rest[1:]:
        step = None if step is None else _common_root(step, ratio)
    if step is None:
        return rest, [tuple(int(a == j) for j in range(1, len(ratios))) for a in range(len(ratios))]
    return [step], [(0,), *((_exponent(ratio, step),) for ratio in rest)]


def _common_root(a: Fraction, b: Fraction) -> Fraction | None:
    """The greatest rational of which a and b, both above 1, are powers; None if there is none.

    Euclid's algorithm on exponents. If a = g^m and b = g^n, then a / b^k with k next to m / n is g^r with |r| <= n / 2, of less
    height than b; a remainder that is not less shows that there is no g. Heights are whole numbers, so this ends.
    """
    a, b = max(a, b), min(a, b)
    while True:
        rest = a / b ** _exponent(a, b)
        rest = max(rest, 1 / rest)
        if rest == 1:
            return b
        if rest.numerator >= b.numerator:
            return None
        a, b = b, rest


def _exponent(power: Fraction, step: Fraction) -> int:
    """The n for which step^n = power, if there is one: the numerators have that same exponent."""
    return round(math.log(power.numerator) / math.log(step.numerator))


def _log(ratio: Fraction) -> arb:
    """log of a positive rational at the current precision, in relative terms also next to 1."""
    return ball(ratio - 1).log1p() if Fraction(1, 2) < ratio < 2 else ball(ratio).log()


def _distribution(values: Iterable[Number], name: str) -> tuple[Fraction, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise InvalidInputError(f"{name} must be a list of probabilities. Found {shown(values)}.")
    listed = list(values)
    if not 1 <= len(listed) <= MOST_OUTCOMES:
        raise InvalidInputError(f"{name} must have from 1 to {MOST_OUTCOMES} outcomes. Found {len(listed)} of them.")
    result = tuple(rational(value, f"{name}[{i}]") for i, value in enumerate(listed))
    for i, value in enumerate(result):
        if value < 0:
            raise InvalidInputError(f"{name}[{i}] must not be negative. Found {shown(value)}.")
    if sum(result) != 1:
        raise InvalidInputError(
            f"{name} must add up to exactly 1 (write thirds as '1/3'). Found the sum {shown(sum(result))}."
        )
    return result


def _listed(values: tuple[Fraction, ...]) -> str:
    return f"[{', '.join(repr(exact_text(v)) for v in values)}]"
