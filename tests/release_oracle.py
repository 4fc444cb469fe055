"""Independent answers for small releases of any kind, from the definitions alone: shares no code with the package.

A pair is a list of mechanisms, each ("gaussian" or "laplace", parameter, sensitivity, count). Every value of the loss is listed
with its probability under both data sets as integers in fixed point; a pair's values are the sums of those of two halves, of
which one is sorted and added up from above. All that is left out or rounded adds up to less than 2^-130 of delta, and of beta.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import mpmath
import numpy as np

BITS = 480  # e^epsilon up to e^150 times what is rounded off stays far below the error
LOSS_BITS = 200
_UNIT = 1 << BITS
_FLOOR = 1 << BITS - 150  # values of a probability below 2^-150 under both data sets are left out
DIGITS = 150
ERROR = mpmath.ldexp(1, -130)

Mechanism = tuple[str, Fraction, int, int]
Atoms = dict[int, tuple[int, int]]
"""Loss in units of 2^-LOSS_BITS -> probabilities under both data sets in units of 2^-BITS."""


class TooManyValuesError(Exception):
    """The release is not small."""


def number(value: Fraction | int) -> mpmath.mpf:
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def _fixed(value: mpmath.mpf, bits: int) -> int:
    return int(mpmath.nint(mpmath.ldexp(value, bits)))


@lru_cache(maxsize=4096)
def _one(kind: str, parameter: Fraction, sensitivity: int) -> tuple[tuple[int, int, int], ...]:
    """Noise on a count that is 0 or `sensitivity`: for each output the loss log(P/Q) and both probabilities."""
    with mpmath.workdps(DIGITS):
        if kind == "gaussian":
            weigh, reach = (lambda x: mpmath.exp(-(x * x) / (2 * number(parameter)))), 3
            while weigh(reach) > mpmath.ldexp(1, -160):
                reach += 1
        else:
            weigh, reach = (lambda x: mpmath.exp(-abs(x) / number(parameter))), sensitivity + 2
        if kind == "gaussian":
            total = mpmath.fsum(weigh(x) for x in range(-reach, reach + 1))
            masses = {x: weigh(x) / total for x in range(-reach - sensitivity, reach + sensitivity + 1)}
            outputs = [(masses[x], masses[x - sensitivity]) for x in range(-reach, reach + 1)]
            outputs += [(weigh(x) / total, masses[x - sensitivity]) for x in range(reach + 1, reach + sensitivity + 1)]
        else:  # outputs below 0 and above the sensitivity have one loss each
            q = mpmath.exp(-1 / number(parameter))
            zero = (1 - q) / (1 + q)
            end = 1 / (1 + q)
            outputs = [(end, end * q**sensitivity), (end * q**sensitivity, end)]
            outputs += [(zero * q**x, zero * q ** (sensitivity - x)) for x in range(1, sensitivity)]
        found: Atoms = {}
        for p, q in outputs:
            _add(found, _fixed(mpmath.log(p) - mpmath.log(q), LOSS_BITS), _fixed(p, BITS), _fixed(q, BITS))
        return tuple((loss, p, q) for loss, (p, q) in found.items() if p or q)


def _add(atoms: Atoms, loss: int, p: int, q: int) -> None:
    old = atoms.get(loss, (0, 0))
    atoms[loss] = old[0] + p, old[1] + q


def _joined(one: Atoms, two: Atoms, most: int) -> Atoms:
    if len(one) * len(two) > 8 * most:
        raise TooManyValuesError
    result: Atoms = {}
    for x, (p, q) in one.items():
        for y, (p2, q2) in two.items():
            a, b = p * p2 >> BITS, q * q2 >> BITS
            if a > _FLOOR or b > _FLOOR:
                # rounding leaves equal losses a few units apart: they may as well be one
                _add(result, (x + y + 512 >> 10) << 10, a, b)
    if len(result) > most:
        raise TooManyValuesError
    return result


@dataclass(frozen=True)
class Listed:
    """The loss of one pair as the sum of two independent halves."""

    few: list[tuple[int, int, int]]
    losses: list[int]
    p_above: list[int]
    q_above: list[int]

    def tails(self, epsilon: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
        """P(L > epsilon) and Q(L > epsilon)."""
        at = (epsilon.numerator << LOSS_BITS) // epsilon.denominator
        p_sum = q_sum = 0
        for loss, p, q in self.few:
            i = bisect_right(self.losses, at - loss)
            p_sum += p * self.p_above[i]
            q_sum += q * self.q_above[i]
        return mpmath.ldexp(p_sum, -2 * BITS), mpmath.ldexp(q_sum, -2 * BITS)

    def delta(self, epsilon: Fraction) -> mpmath.mpf:
        """The largest P(S) - e^epsilon Q(S)."""
        with mpmath.workdps(DIGITS):
            p, q = self.tails(epsilon)
            return p - mpmath.exp(number(epsilon)) * q


@lru_cache(maxsize=4096)
def listed(pair: tuple[Mechanism, ...], most: int = 2000) -> Listed:
    """All values of a pair's loss; TooManyValuesError if one half has more than `most`."""
    halves: list[Atoms] = [{0: (_UNIT, _UNIT)}, {0: (_UNIT, _UNIT)}]
    for kind, parameter, sensitivity, count in sorted(pair, key=lambda m: -m[1]):
        one = {loss: (p, q) for loss, p, q in _one(kind, parameter, sensitivity)}
        copies = one
        for _ in range(count - 1):
            copies = _joined(copies, one, most)
        i = 0 if len(halves[0]) <= len(halves[1]) else 1
        halves[i] = _joined(halves[i], copies, most)
    few, many = sorted(halves, key=len)
    order = sorted(many)
    above = [
        [0, *accumulate(many[x][side] for x in reversed(order))][::-1] for side in (0, 1)
    ]  # of the i-th value and all larger ones
    return Listed([(x, p, q) for x, (p, q) in few.items()], order, *above)


def beta(pairs: list[Listed], alpha: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Bounds, next to each other, of the envelope of the pairs' trade-off curves: the largest of 1 - delta(e) - e^e alpha.

    That is concave in x = e^e with the slope Q(L > e) - alpha of the pair with the largest delta, so the top lies where the slope
    changes its sign, and is below both tangents there. Doubles say where to look.
    """
    with mpmath.workdps(DIGITS):
        a = number(alpha)

        def look(e: Fraction) -> tuple[mpmath.mpf, mpmath.mpf]:
            x = mpmath.exp(number(e))
            tails = [one.tails(e) for one in pairs]
            return min((1 - p + x * q - x * a, q - a) for p, q in tails)

        centre, step = Fraction(_about_top(pairs, float(alpha))), Fraction(1, 10**11)
        low, high = centre - step, centre + step
        while look(low)[1] < 0:
            low, step = low - step, 8 * step
        while look(high)[1] > 0:
            high, step = high + step, 8 * step
        while True:
            (left, rise), (right, fall) = look(low), look(high)
            gap = mpmath.exp(number(high)) - mpmath.exp(number(low))
            least, most = max(left, right), min(left + rise * gap, right - fall * gap)
            if most - least <= 1e-15 * least + ERROR or high - low < Fraction(1, 1 << 120):
                return least, most
            middle = (low + high) / 2
            low, high = (middle, high) if look(middle)[1] >= 0 else (low, middle)


def _about_top(pairs: list[Listed], alpha: float) -> float:
    """Where the slope changes its sign, in doubles."""
    rows = []
    for one in pairs:
        losses, p, q = np.array([(x / 2**LOSS_BITS, p / _UNIT, q / _UNIT) for x, p, q in one.few]).T
        above = [np.array([x / _UNIT for x in xs]) for xs in (one.p_above, one.q_above)]
        rows.append((losses, p, q, np.array([x / 2**LOSS_BITS for x in one.losses]), above))
    low, high = -700.0, 700.0
    for _ in range(60):
        e = (low + high) / 2
        found = []
        for losses, p, q, order, (p_above, q_above) in rows:
            i = np.searchsorted(order, e - losses, side="right")
            q_tail = float(q @ q_above[i])
            found.append((math.exp(e) * q_tail - float(p @ p_above[i]), q_tail - alpha))
        low, high = (e, high) if min(found)[1] >= 0 else (low, e)
    return low
