"""Independent answers for compositions of any mechanisms, from their definitions alone.

Shares no code with the package; mechanisms are read by the name of their kind and their parameters. Three answers:

    listed(...)       every value of the loss with its probability under both data sets, in fixed point: exact but for `error`
    sampled(...)      Monte Carlo under an exponential tilt: an estimate with its standard error, for any size
    on_grid(...)      convolution of tilted probabilities on a fine grid in float64: an estimate of several digits, for any size
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import Any

import mpmath
import numpy as np
from flint import fmpz_poly

BITS = 520
UNIT = 1 << BITS
FLOOR_BITS = 380
FLOOR = 1 << (BITS - FLOOR_BITS)
"""Values with less probability than 2^-FLOOR_BITS under both data sets are left out."""

LOSS_BITS = 300
MOST_ATOMS = 300_000
DIGITS = 170

Atoms = dict[int, tuple[int, int]]
"""Loss in units of 2^-LOSS_BITS -> probabilities under both data sets in units of 2^-BITS."""


class TooManyAtomsError(Exception):
    """The composition has more values than are listed here."""


def number(value: Fraction | int) -> mpmath.mpf:
    """A rational at the current precision."""
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def _kind(mechanism: Any) -> str:
    return type(mechanism).__name__


def _ratio(mechanism: Any) -> Fraction:
    """sensitivity^2 / sigma2 of a continuous Gaussian."""
    return Fraction(mechanism.sensitivity) ** 2 / mechanism.sigma2


def _pairs(mechanism: Any) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Both output distributions of a mechanism with finitely many losses, outcome by outcome or in classes of equal loss."""
    kind = _kind(mechanism)
    if kind == "DiscreteLaplace":
        D, a = mechanism.sensitivity, 1 / number(mechanism.scale)
        q = mpmath.exp(-a)
        masses = [(1 - q) / (1 + q) * q ** abs(x) for x in range(-D, D + 1)]  # P(X = x)
        tail = 1 / (1 + q)  # P(X <= 0) = P(X >= 0)
        inner = [(masses[x + D], masses[x]) for x in range(1, D)]  # outputs 1 .. D - 1, from 0 and from D
        return [(tail, tail * q**D), *inner, (tail * q**D, tail)]
    if kind == "RandomizedResponse":
        k = mechanism.categories
        if mechanism.noise is None:
            odds = mpmath.exp(number(mechanism.epsilon))
            truth, other = odds / (odds + k - 1), 1 / (odds + k - 1)
        else:
            other = number(mechanism.noise) / k
            truth = 1 - number(mechanism.noise) + other
        return [(truth, other), (other, truth), ((k - 2) * other, (k - 2) * other)][: 2 + (k > 2)]
    if kind == "ApproximateDP":
        delta, growth = number(mechanism.delta), mpmath.exp(number(mechanism.epsilon))
        high, low = (1 - delta) * growth / (1 + growth), (1 - delta) / (1 + growth)
        zero = mpmath.mpf(0)
        return [(delta, zero), (high, low), (low, high), (zero, delta)]
    if kind == "Outcomes":
        return [(number(p), number(q)) for p, q in zip(mechanism.p, mechanism.q, strict=True)]
    raise TypeError(kind)


def _fixed(value: mpmath.mpf, bits: int) -> int:
    return int(mpmath.nint(mpmath.ldexp(value, bits)))


@lru_cache(maxsize=512)
def _gaussian_side(sigma2: Fraction) -> list[int]:
    """P(X = 0), P(X = 1), ... in fixed point, down to far below the floor."""
    with mpmath.workprec(BITS + 60):
        reach = math.isqrt(math.ceil(2 * sigma2 * (FLOOR_BITS + 20) * 0.6931472)) + 3
        half = [mpmath.exp(-(x * x) / (2 * number(sigma2))) for x in range(reach + 1)]
        total = half[0] + 2 * mpmath.fsum(half[1:])
        fixed = [_fixed(v / total, BITS) for v in half]
        return [v for v in fixed if v]  # zeros are at the end only


def _powers(masses: list[int], count: int) -> list[int]:
    """The distribution of a sum of `count` copies on consecutive integers, by repeated squaring, cut to BITS each time."""
    result, power = None, fmpz_poly(masses)
    while True:
        if count & 1:
            result = power if result is None else _cut(result * power)
        count >>= 1
        if not count:
            return [int(c) for c in result.coeffs()]
        power = _cut(power * power)


def _cut(product: fmpz_poly) -> fmpz_poly:
    """Back to units of 2^-BITS, without the ends that are 0 by now (both alike: the distribution is symmetric)."""
    shifted = [int(c) >> BITS for c in product.coeffs()]
    empty = next(i for i, c in enumerate(shifted) if c)
    return fmpz_poly(shifted[empty : len(shifted) - empty])


def _gaussians(mechanism: Any, count: int) -> Atoms:
    """`count` discrete Gaussians: outputs that add up to t have P(t) on one data set and P(t + count D) on the other."""
    s, D = mechanism.sigma2, mechanism.sensitivity
    side = _gaussian_side(s)
    if (2 * len(side)) * count > MOST_ATOMS:
        raise TooManyAtomsError
    masses = _powers(side[:0:-1] + side, count)
    reach, shift = len(masses) // 2, count * D
    result: Atoms = {}
    with mpmath.workprec(BITS + 60):
        # log(P/Q) at t: t^2 - (t + D)^2 summed over the copies and turned round is count D^2 / (2 s) + D t / s
        unit, base = number(D / s), number(Fraction(count * D * D) / (2 * s))
        for t in range(-reach - shift, reach + 1):
            p, q = (masses[x + reach] if -reach <= x <= reach else 0 for x in (t, t + shift))
            if p > FLOOR or q > FLOOR:
                result[_fixed(base + unit * t, LOSS_BITS)] = (p, q)
    return result


def _finite(mechanism: Any, count: int) -> Atoms:
    """`count` copies of a mechanism with finitely many losses, merged by how often each loss occurred."""
    with mpmath.workprec(BITS + 60):
        one: Atoms = {}
        for p, q in _pairs(mechanism):
            if p and q:
                _add(one, _fixed(mpmath.log(p / q), LOSS_BITS), _fixed(p, BITS), _fixed(q, BITS))
    kinds = list(one.items())
    counted = {(0,) * len(kinds): (UNIT, UNIT)}
    for _ in range(count):
        longer: dict[tuple[int, ...], tuple[int, int]] = {}
        for key, (p, q) in counted.items():
            for i, (_, (p1, q1)) in enumerate(kinds):
                new = (*key[:i], key[i] + 1, *key[i + 1 :])
                old = longer.get(new, (0, 0))
                longer[new] = old[0] + (p * p1 >> BITS), old[1] + (q * q1 >> BITS)
        counted = longer
        if len(counted) > MOST_ATOMS:
            raise TooManyAtomsError
    result: Atoms = {}
    for key, (p, q) in counted.items():
        _add(result, sum(n * loss for n, (loss, _) in zip(key, kinds, strict=True)), p, q)
    return result


def _add(atoms: Atoms, loss: int, p: int, q: int) -> None:
    """Merge one value into a distribution; losses that differ by rounding only stay two values, which changes nothing."""
    old = atoms.get(loss, (0, 0))
    atoms[loss] = old[0] + p, old[1] + q


def _joined(one: Atoms, two: Atoms) -> Atoms:
    if len(one) * len(two) > 40 * MOST_ATOMS:
        raise TooManyAtomsError
    result: Atoms = {}
    for x, (p, q) in one.items():
        for y, (p2, q2) in two.items():
            a, b = p * p2 >> BITS, q * q2 >> BITS
            if a > FLOOR or b > FLOOR:
                old = result.get(x + y, (0, 0))
                result[x + y] = old[0] + a, old[1] + b
    if len(result) > MOST_ATOMS:
        raise TooManyAtomsError
    return result


@dataclass(frozen=True)
class Listed:
    """The finite losses of a composition without its continuous Gaussians, whose R add up to `spread`."""

    atoms: Atoms
    finite: tuple[Fraction, Fraction]
    """Probabilities that no loss is infinite, under P and under Q."""
    spread: Fraction

    @cached_property
    def losses(self) -> list[int]:
        return sorted(self.atoms)

    @cached_property
    def _above(self) -> tuple[list[int], list[int]]:
        """Probabilities of the losses from the i-th on, under P and under Q; one more entry, 0."""
        masses = [self.atoms[x] for x in reversed(self.losses)]
        p = [0, *accumulate(m[0] for m in masses)]
        q = [0, *accumulate(m[1] for m in masses)]
        return p[::-1], q[::-1]

    def error(self, epsilon: Fraction) -> mpmath.mpf:
        """A bound of the absolute error of delta and of 1 - delta."""
        return mpmath.ldexp((1 + mpmath.exp(abs(number(epsilon)))) * 64 * MOST_ATOMS, -FLOOR_BITS)

    def delta(self, epsilon: Fraction, backward: bool = False) -> mpmath.mpf:
        """One direction: sup over sets of P(S) - e^epsilon Q(S), or with P and Q exchanged."""
        with mpmath.workdps(DIGITS):
            growth = mpmath.exp(number(epsilon))
            lost = number(1 - self.finite[1 if backward else 0])
            if self.spread:
                return lost + self._with_gaussian(epsilon, growth, backward)
            at = Fraction(epsilon) * (1 << LOSS_BITS)
            p, q = self._above
            if not backward:
                i = bisect_right(self.losses, math.floor(at))
                return lost + mpmath.ldexp(mpmath.mpf(p[i]) - growth * q[i], -BITS)
            i = bisect_right(self.losses, math.ceil(-at) - 1)
            return lost + mpmath.ldexp(mpmath.mpf(q[0] - q[i]) - growth * (p[0] - p[i]), -BITS)

    def _with_gaussian(self, epsilon: Fraction, growth: mpmath.mpf, backward: bool) -> mpmath.mpf:
        """The sum over values of P Phi(...) - e^epsilon Q Phi(...)."""
        mu = mpmath.sqrt(number(self.spread))
        total = mpmath.mpf(0)
        with mpmath.workdps(60):
            for loss, (p, q) in self.atoms.items():
                x = mpmath.ldexp(loss, -LOSS_BITS)
                first, second, y = (q, p, number(epsilon) + x) if backward else (p, q, number(epsilon) - x)
                total += first * mpmath.ncdf(mu / 2 - y / mu) - growth * second * mpmath.ncdf(-mu / 2 - y / mu)
        return mpmath.ldexp(total, -BITS)

    def worst(self, epsilon: Fraction) -> mpmath.mpf:
        """The larger of the two directions."""
        return max(self.delta(epsilon), self.delta(epsilon, backward=True))

    def rest(self, epsilon: Fraction) -> mpmath.mpf:
        """1 - delta."""
        with mpmath.workdps(DIGITS):
            return 1 - self.worst(epsilon)

    def beta(self, alpha: Fraction) -> mpmath.mpf:
        """The symmetrised trade-off curve: the maximum over x = e^epsilon of 1 - delta - x alpha, concave in x.

        It is piecewise linear between the losses and their negatives (max of two such: also where both directions are equal).
        """
        with mpmath.workdps(DIGITS):
            if self.spread:
                return self._beta_smooth(alpha)
            places = sorted({*self.losses, *(-x for x in self.losses)})
            low, high = 0, len(places) - 1
            while high - low > 2:
                left, right = low + (high - low) // 3, high - (high - low) // 3
                if self._line(places[left], alpha) < self._line(places[right], alpha):
                    low = left
                else:
                    high = right
            near = places[max(low - 2, 0) : high + 3]
            best = max(mpmath.mpf(0), *(self._line(x, alpha) for x in near))
            for one, two in pairwise(near):
                best = max(best, self._between(one, two, alpha))
            return best

    def _line(self, place: int, alpha: Fraction, backward: bool | None = None) -> mpmath.mpf:
        epsilon = Fraction(place, 1 << LOSS_BITS)
        delta = self.worst(epsilon) if backward is None else self.delta(epsilon, backward)
        return 1 - delta - mpmath.exp(number(epsilon)) * number(alpha)

    def _between(self, one: int, two: int, alpha: Fraction) -> mpmath.mpf:
        """The value where the two directions' lines cross between two neighbouring places, 0 if they do not."""
        gap = [self._line(x, alpha, False) - self._line(x, alpha, True) for x in (one, two)]
        if gap[0] * gap[1] >= 0:
            return mpmath.mpf(0)
        share = gap[0] / (gap[0] - gap[1])
        first, second = (self._line(x, alpha, False) for x in (one, two))
        return first + share * (second - first)

    def _beta_smooth(self, alpha: Fraction) -> mpmath.mpf:
        low, high = -20 << LOSS_BITS, 20 << LOSS_BITS
        while high - low > 1 << (LOSS_BITS - 30):  # the top is flat: half as many digits suffice
            left, right = low + (high - low) // 3, high - (high - low) // 3
            if self._line(left, alpha) < self._line(right, alpha):
                low = left
            else:
                high = right
        return max(self._line(low, alpha), mpmath.mpf(0))


def listed(mechanisms: Mapping[Any, int]) -> Listed:
    """All values of the loss of a composition; TooManyAtomsError if they are more than MOST_ATOMS."""
    if expected_atoms(mechanisms) > 2 * MOST_ATOMS:
        raise TooManyAtomsError
    spread = Fraction(0)
    parts = []
    finite = [Fraction(1), Fraction(1)]
    for mechanism, count in mechanisms.items():
        kind = _kind(mechanism)
        if kind == "Gaussian":
            spread += count * _ratio(mechanism)
            continue
        parts.append(_gaussians(mechanism, count) if kind == "DiscreteGaussian" else _finite(mechanism, count))
        lost = _lost(mechanism)
        finite = [f * (1 - x) ** count for f, x in zip(finite, lost, strict=True)]
    atoms: Atoms = {0: (UNIT, UNIT)}
    for part in sorted(parts, key=len):
        atoms = _joined(part, atoms)
    return Listed(atoms, (finite[0], finite[1]), spread)


def expected_atoms(mechanisms: Mapping[Any, int]) -> float:
    """About how many values there are to list, at most."""
    total = 1.0
    for mechanism, count in mechanisms.items():
        kind = _kind(mechanism)
        if kind == "DiscreteGaussian":
            total *= 2 * math.sqrt(2 * float(mechanism.sigma2) * count * FLOOR_BITS * 0.6931472) + 4
        elif kind != "Gaussian":
            with mpmath.workdps(30):
                kinds = {mpmath.nstr(p / q, 25) for p, q in _pairs(mechanism) if p and q}
            total *= min(math.comb(count + len(kinds) - 1, count), 1e12)
    return total


def _lost(mechanism: Any) -> tuple[Fraction, Fraction]:
    """Probabilities of an infinite loss under P and under Q."""
    if _kind(mechanism) == "ApproximateDP":
        return mechanism.delta, mechanism.delta
    if _kind(mechanism) == "Outcomes":
        pairs = list(zip(mechanism.p, mechanism.q, strict=True))
        return sum((p for p, q in pairs if not q), Fraction(0)), sum((q for p, q in pairs if not p), Fraction(0))
    return Fraction(0), Fraction(0)


class _Tilted:
    """`count` copies of one mechanism under a tilt, in float64: finite losses only."""

    def __init__(self, mechanism: Any, count: int, backward: bool) -> None:
        self.mechanism, self.count, self.backward, self.kind = mechanism, count, backward, _kind(mechanism)
        if self.kind == "DiscreteGaussian":
            self._s, self._D = float(mechanism.sigma2), mechanism.sensitivity
        elif self.kind == "Gaussian":
            self._R = float(_ratio(mechanism))
        else:
            with mpmath.workdps(40):
                pairs = [(q, p) if backward else (p, q) for p, q in _pairs(mechanism)]
                kept = [(p, q) for p, q in pairs if p and q]
                self._losses = np.array([float(mpmath.log(p / q)) for p, q in kept])
                self._logs = np.array([float(mpmath.log(p)) for p, _ in kept])

    @property
    def greatest(self) -> float:
        """The greatest finite loss of all copies."""
        return math.inf if "Gaussian" in self.kind else self.count * float(self._losses.max())

    def _noise(self, tilt: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Integers x, tilted probabilities, and log E e^{tilt L}: weights e^{-x^2/(2s) + tilt (D x + D^2 / 2) / s}."""
        centre = self._D * tilt
        reach = math.ceil(13.5 * math.sqrt(self._s)) + 14
        x = np.arange(round(centre) - reach, round(centre) + reach + 1).astype(np.float64)
        weights = np.exp(-((x - centre) ** 2) / (2 * self._s))
        plain = np.arange(-reach, reach + 1).astype(np.float64)
        normal = np.exp(-(plain**2) / (2 * self._s)).sum()
        square = self._D**2 / self._s * tilt * (tilt + 1) / 2
        return x, weights / weights.sum(), square + math.log(weights.sum() / normal)

    def moment_mean_variance(self, tilt: float) -> tuple[float, float, float]:
        """log E e^{tilt L} with the finite part's own total probability, and mean and variance under the tilt."""
        if self.kind == "Gaussian":
            one = self._R * tilt * (tilt + 1) / 2, self._R * (0.5 + tilt), self._R
        elif self.kind == "DiscreteGaussian":
            x, p, log = self._noise(tilt)
            mean = float(p @ x)
            w = self._D / self._s
            one = log, w * (self._D / 2 + mean), w * w * float(p @ (x - mean) ** 2)
        else:
            e = tilt * self._losses + self._logs
            top = e.max()
            p = np.exp(e - top)
            log, p = top + math.log(p.sum()), p / p.sum()
            mean = float(p @ self._losses)
            one = log, mean, float(p @ (self._losses - mean) ** 2)
        return self.count * one[0], self.count * one[1], self.count * one[2]

    def distribution(self, tilt: float) -> tuple[np.ndarray, np.ndarray]:
        """Losses and tilted probabilities of all discrete Gaussians of the group together, by one FFT."""
        x, p, _ = self._noise(tilt)
        spread = math.sqrt(self.count * float(p @ (x - p @ x) ** 2))
        needed = max(30 * spread + 60, len(x))
        n = 1 << math.ceil(math.log2(needed))
        centre = int(x[len(x) // 2])
        wrapped = np.zeros(n)
        np.add.at(wrapped, (x.astype(np.int64) - centre) % n, p)
        masses = np.maximum(np.fft.irfft(np.fft.rfft(wrapped) ** self.count, n), 0.0)
        mean = self.count * float(p @ (x - centre))
        start = round(mean) - n // 2
        offsets = start + np.arange(n)
        masses = masses[offsets % n]
        masses[masses < 1e-17 * masses.max()] = 0.0
        keep = np.flatnonzero(masses)
        sums = self.count * centre + offsets[keep[0] : keep[-1] + 1]
        masses = masses[keep[0] : keep[-1] + 1]
        return self._D / self._s * (self.count * self._D / 2 + sums), masses / masses.sum()

    def draws(self, tilt: float, size: int, rng: np.random.Generator) -> np.ndarray:
        """Tilted losses."""
        if self.kind == "Gaussian":
            R = self._R * self.count
            return rng.normal(R * (0.5 + tilt), math.sqrt(R), size)
        if self.kind == "DiscreteGaussian":
            losses, masses = self.distribution(tilt)
            at = np.searchsorted(np.cumsum(masses), rng.random(size) * (1 - 1e-16), side="right")
            return losses[np.minimum(at, len(losses) - 1)]
        e = tilt * self._losses + self._logs
        p = np.exp(e - e.max())
        return rng.multinomial(self.count, p / p.sum(), size) @ self._losses

    def on_grid(self, tilt: float, start: float, h: float, n: int) -> np.ndarray | None:
        """The Fourier transform of the tilted probabilities split between neighbouring points of start + h Z, modulo n h."""
        if self.kind == "Gaussian":
            omega = 2 * math.pi * np.fft.rfftfreq(n, h)
            R = self._R * self.count
            return np.exp(-0.5 * R * omega**2 - 1j * omega * (R * (0.5 + tilt) - start))
        if self.kind == "DiscreteGaussian":
            losses, masses, power = *self.distribution(tilt), 1
        else:
            e = tilt * self._losses + self._logs
            p = np.exp(e - e.max())
            losses, masses, power = self._losses, p / p.sum(), self.count
        place = (losses - start / power) / h
        floor = np.floor(place)
        share, index = place - floor, floor.astype(np.int64)
        line = np.bincount(index % n, masses * (1 - share), n) + np.bincount((index + 1) % n, masses * share, n)
        return np.fft.rfft(line) ** power


def _tilt_for(parts: list[_Tilted], epsilon: float) -> float | None:
    """The tilt in [0, ...) at which the mean loss is epsilon; None where no finite loss is above epsilon."""
    if all(p.greatest < math.inf for p in parts) and sum(p.greatest for p in parts) <= epsilon:
        return None
    low, high = 0.0, 1.0
    while high < 1e4 and sum(p.moment_mean_variance(high)[1] for p in parts) < epsilon:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(p.moment_mean_variance(middle)[1] for p in parts) < epsilon else (low, middle)
    return low


def _parts(mechanisms: Mapping[Any, int], backward: bool) -> tuple[list[_Tilted], float]:
    lost = [(_lost(m)[1 if backward else 0], n) for m, n in mechanisms.items()]
    log_finite = sum(n * math.log1p(-float(x)) for x, n in lost if x)
    return [_Tilted(m, n, backward) for m, n in mechanisms.items()], -math.expm1(log_finite)


def sampled(
    mechanisms: Mapping[Any, int], epsilon: Fraction, backward: bool = False, size: int = 100_000, seed: int = 1
) -> tuple[float, float, float]:
    """log of a scale, and an estimate of delta and its standard error in units of it, by importance sampling."""
    parts, lost = _parts(mechanisms, backward)
    y = float(epsilon)
    tilt = _tilt_for(parts, y)
    if tilt is None:
        return 0.0, lost, 0.0
    rng = np.random.default_rng(seed)
    losses = sum(p.draws(tilt, size, rng) for p in parts)
    log_scale = sum(p.moment_mean_variance(tilt)[0] for p in parts) - tilt * y
    above = np.maximum(losses - y, 0.0)
    values = np.exp(-tilt * above) * -np.expm1(-above)
    estimate, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(size)
    return log_scale, estimate + lost * math.exp(min(-log_scale, 700.0)), error


def on_grid(mechanisms: Mapping[Any, int], epsilon: Fraction, backward: bool = False, size: int = 1 << 18) -> float:
    """log delta by convolution on a grid: splitting keeps every mean, so the error is of second order in the grid's step."""
    parts, lost = _parts(mechanisms, backward)
    y = float(epsilon)
    tilt = _tilt_for(parts, y)
    if tilt is None:
        return math.log(lost) if lost else -math.inf
    found = [p.moment_mean_variance(tilt) for p in parts]
    deviation = math.sqrt(sum(f[2] for f in found))
    h = 30 * deviation / size
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for part, (_, mean, _) in zip(parts, found, strict=True):
        product *= part.on_grid(tilt, mean, h, size)
    masses = np.fft.irfft(product, size)
    place = np.arange(size)
    offsets = np.where(place < size // 2, place, place - size) * h + sum(f[1] for f in found) - y
    above = np.maximum(offsets, 0.0)
    log_scale = sum(f[0] for f in found) - tilt * y
    total = float(np.sum(masses * np.exp(-tilt * above) * -np.expm1(-above)))
    return float(np.logaddexp(math.log(max(total, 1e-300)) + log_scale, math.log(lost) if lost else -math.inf))
