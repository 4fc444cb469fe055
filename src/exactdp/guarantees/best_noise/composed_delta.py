"""delta of k copies of a symmetric table and its derivatives by the probabilities, in doubles: for searches only.

delta_k is the largest P^k(test) - e^epsilon Q^k(test); its derivative by one probability is k times what the best test of k
copies gives where one of them has that outcome, with Z the loss of the k - 1 others:
d delta_k / d p(x) = k [P(Z > epsilon - L(x)) - e^epsilon Q(Z > epsilon - L(x + D))]. Nothing here is a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from exactdp.doubles import Floats

_POINTS = 1 << 13  # of the grid on which losses are added up
_FLOOR = 1e-15  # what an FFT of weights of one leaves of zero
_REACH = 10.0  # standard deviations
_STEEPEST = 2000.0  # tilt
_MOST_LISTED = 60_000  # sums of losses that are listed rather than put on a grid
_ON_A_LATTICE = 2  # sums of n losses are so many times n at most, where they have a lattice, nearly
_EQUAL = 1e-11  # losses that are closer than this are one
_CENTRAL = 4.0  # standard deviations up to which tails are taken from the law as it is


@dataclass(frozen=True)
class ComposedDelta:
    """delta of `copies` of symmetric noise against itself shifted, at epsilon."""

    copies: int
    epsilon: float
    shift: int = 1

    def at(self, half: Floats) -> tuple[float, Floats]:
        """delta and its derivatives by p(0), ..., p(reach), each of which stands for two; half is positive and sums to one."""
        reach, shift, others = len(half) - 1, self.shift, self.copies - 1
        p = np.concatenate([half[:0:-1], half])
        own, other = p[shift:], p[:-shift]
        loss, lost = np.log(own) - np.log(other), float(p[:shift].sum())
        listed = _listed(own, other, loss, others)
        accepted, against = self._accepted(own, loss, others) if listed is None else listed.above(self.epsilon - loss)
        accepted = accepted + 1 - (1 - lost) ** others
        ratio = math.exp(self.epsilon)
        delta = lost + float(own @ accepted - ratio * (other @ against))
        slopes = np.zeros(2 * reach + 1)
        slopes[:shift] += 1
        slopes[shift:] += accepted
        slopes[:-shift] -= ratio * against
        folded = slopes[reach:].copy()
        folded[1:] += slopes[reach - 1 :: -1]
        return delta, self.copies * folded

    def _accepted(self, own: Floats, loss: Floats, others: int) -> tuple[Floats, Floats]:
        """P and Q of Z > epsilon - loss, from the law tilted to epsilon, or from the plain one where that is not rare."""
        tilted = _Tails(own, loss, others, self._tilt(own, loss))
        plain = _Tails(own, loss, others, 0.0)
        at = self.epsilon - loss
        rare = at > min(plain.mean + _CENTRAL * plain.deviation, self.epsilon)
        mirrored = plain.first[0] - plain.above(plain.first, -at)  # Q(Z > z) = P(Z < -z), because p is symmetric
        return (
            np.where(rare, tilted.above(tilted.first, at), plain.above(plain.first, at)),
            np.where(rare, tilted.above(tilted.second, at), mirrored),
        )

    def _tilt(self, own: Floats, loss: Floats) -> float:
        low, high = 0.0, _STEEPEST
        for _ in range(40):
            middle = (low + high) / 2
            weights = own * np.exp(middle * (loss - loss.max()))
            below = self.copies * float(weights @ loss) < self.epsilon * float(weights.sum())
            low, high = (middle, high) if below else (low, middle)
        return low


class _ListedSums:
    """P(Z > z) and Q(Z > z) of a sum whose values are listed."""

    def __init__(self, values: Floats, first: Floats, second: Floats) -> None:
        self._values, self._first, self._second = values, _summed(first), _summed(second)

    def above(self, z: Floats) -> tuple[Floats, Floats]:
        """Both tails beyond each z; what is on it counts or not, which makes no difference to delta."""
        at = np.searchsorted(self._values, z)
        return self._first[at], self._second[at]


def _listed(own: Floats, other: Floats, loss: Floats, copies: int) -> _ListedSums | None:
    """The sum of so many losses by listing its values, equal ones as one; None where there are too many."""
    values: Floats = np.zeros(1)
    first: Floats = np.ones(1)
    second: Floats = np.ones(1)
    many = len(loss) ** copies > _MOST_LISTED
    for done in range(copies):
        if len(values) * len(loss) > _MOST_LISTED or (
            many and done > 1 and len(values) > _ON_A_LATTICE * done * len(loss)
        ):
            return None
        sums = np.add.outer(values, loss).ravel()
        places, which = np.unique(np.round(sums / _EQUAL), return_inverse=True)
        values = places * _EQUAL
        first, second = (
            np.bincount(which, np.multiply.outer(a, b).ravel()).astype(np.float64)
            for a, b in ((first, own), (second, other))
        )
    return _ListedSums(values, first, second)


class _Tails:
    """P(Z > z) and Q(Z > z) of a sum of finite losses, each split between two points of a grid, under a tilt."""

    def __init__(self, own: Floats, loss: Floats, copies: int, tilt: float) -> None:
        top = float(loss.max())
        weights = own * np.exp(tilt * (loss - top))
        total = float(weights.sum())
        weights /= total
        mean = float(weights @ loss)
        spread = float(weights @ (loss - mean) ** 2)
        width = top - float(loss.min())
        self.mean, self.deviation = copies * mean, math.sqrt(copies * spread)
        half = min(_REACH * self.deviation + 3 * width, copies * width) + 1e-6
        self.step = 2 * half / (_POINTS - 4)
        place = (loss - mean) / self.step
        low = np.floor(place).astype(np.int64)
        grid = np.zeros(_POINTS)
        np.add.at(grid, low % _POINTS, weights * (low + 1 - place))
        np.add.at(grid, (low + 1) % _POINTS, weights * (place - low))
        folded = np.roll(np.fft.irfft(np.fft.rfft(grid) ** copies, _POINTS), _POINTS // 2)
        self.points = self.step * (np.arange(_POINTS) - _POINTS // 2) + self.mean
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(folded > _FLOOR, folded, 0.0))
        logs += copies * (math.log(total) + tilt * top) - tilt * self.points
        self.first, self.second = (_summed(np.exp(np.minimum(x, 50.0))) for x in (logs, logs - self.points))

    def above(self, tails: Floats, z: Floats) -> Floats:
        """The tail beyond z, interpolated."""
        place = np.clip((z - self.points[0]) / self.step + 0.5, 0.0, _POINTS - 1e-9)
        low = np.floor(place).astype(np.int64)
        result: Floats = tails[low] * (low + 1 - place) + tails[low + 1] * (place - low)
        return result


def _summed(masses: Floats) -> Floats:
    return np.append(np.cumsum(masses[::-1])[::-1], 0.0)
