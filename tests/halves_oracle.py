"""Exact answers for many copies of tables: every value of two halves of a composition, in integers of hundreds of bits.

Shares no code with the package. A table is a list of pairs (probability under P, probability under Q), rational or mpmath
numbers. The values of one half are sorted and summed from the end, each value of the other half asks for one tail: n m values for
the price of n + m. All numbers are rounded to the nearest multiple of 2^-BITS, so that delta is wrong by at most `ERROR`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import mpmath

BITS = 560
ERROR = mpmath.ldexp(1, -480)
"""Far more than a million roundings of 2^-BITS, times e^20."""

Pair = tuple[Fraction, Fraction] | tuple[mpmath.mpf, mpmath.mpf]
Weighted = dict[int, tuple[int, int]]
"""Loss -> probabilities under P and Q, all in units of 2^-BITS."""


def _number(value: Fraction | mpmath.mpf | int) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else mpmath.mpf(value)


def _fixed(value: mpmath.mpf) -> int:
    return int(mpmath.nint(mpmath.ldexp(value, BITS)))


def _joined(one: Weighted, two: Weighted) -> Weighted:
    result: Weighted = {}
    for x, (p, q) in one.items():
        for y, (p2, q2) in two.items():
            old = result.get(x + y, (0, 0))
            result[x + y] = old[0] + (p * p2 >> BITS), old[1] + (q * q2 >> BITS)
    return result


@dataclass(frozen=True)
class Halves:
    """A composition of tables: the finite losses of two halves, and the probability that no loss is infinite under P."""

    first: Weighted
    second: Weighted
    finite: Fraction | mpmath.mpf

    @cached_property
    def _sorted(self) -> tuple[list[int], list[int], list[int]]:
        losses = sorted(self.second)
        masses = [self.second[x] for x in reversed(losses)]
        p = [0, *accumulate(m[0] for m in masses)][::-1]
        q = [0, *accumulate(m[1] for m in masses)][::-1]
        return losses, p, q

    def delta(self, epsilon: Fraction) -> mpmath.mpf:
        """sup of P(S) - e^epsilon Q(S) over sets of finite losses."""
        losses, p, q = self._sorted
        at = epsilon * (1 << BITS)
        threshold = at.numerator // at.denominator
        over_p = over_q = 0
        for x, (p1, q1) in self.first.items():
            i = bisect_right(losses, threshold - x)
            over_p += p1 * p[i]
            over_q += q1 * q[i]
        with mpmath.workprec(BITS + 80):
            return mpmath.ldexp(over_p - mpmath.exp(_number(epsilon)) * over_q, -2 * BITS)

    def finite_delta(self, epsilon: Fraction) -> mpmath.mpf:
        """delta given that the loss is finite."""
        with mpmath.workprec(BITS + 80):
            return self.delta(epsilon) / _number(self.finite)


def halves(tables: Sequence[tuple[Sequence[Pair], int]]) -> Halves:
    """The composition of so many copies of each table."""
    sides: list[Weighted] = [{0: (1 << BITS, 1 << BITS)}] * 2
    finite = Fraction(1)
    with mpmath.workprec(BITS + 80):
        for pairs, count in tables:
            one: Weighted = {}
            for p, q in pairs:
                if p and q:
                    x = _fixed(mpmath.log(_number(p) / _number(q)))
                    old = one.get(x, (0, 0))
                    one[x] = old[0] + _fixed(_number(p)), old[1] + _fixed(_number(q))
            kept = sum(p for p, q in pairs if q)
            finite = finite * kept**count
            for _ in range(count):
                smaller = 0 if len(sides[0]) <= len(sides[1]) else 1
                sides[smaller] = _joined(sides[smaller], one)
    return Halves(sides[0], sides[1], finite)
