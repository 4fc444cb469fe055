"""The published error bound of the Edgeworth expansion with all its parts, its corrected form, and a sharper one, in balls.

Letters are those of the paper's theorem; a = c sqrt(log m) is where its integrals are cut. What depends on c depends on
a alone, and an integrand is a polynomial in zeta^2 times exp(-zeta^2/2), so the integrals are incomplete gamma functions.
docs/theory/edgeworth.md, Theorems 18 and 19, says what the printed form leaves open and proves the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from flint import arb, arb_poly

from exactdp.arithmetic_state import steady
from exactdp.balls import ball, precision
from exactdp.errors import InvalidInputError
from exactdp.mechanisms.theta import cf_ball
from exactdp.numbers import Number, positive, shown, whole
from exactdp.theory.local_error import LARGEST_FOLD
from exactdp.theory.moments import cumulant_ball, read_sigma2, standardized_cumulant_ball, standardized_moment_ball

BITS = 128
_PIECES, _FEW_PIECES = 400, 60
_SHARES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.95)  # of pi B_m, where the sharper bound is cut
_WIDE = 10.0  # beyond so many deviations pieces may be coarse
_TRIED = 32
_LARGEST_SIGMA2 = 10**9
_NEGLIGIBLE = 1e-4
_SHORTEST = 1e-3  # a cut, of pi B_m
_GOLDEN = (math.sqrt(5) - 1) / 2


@steady
@dataclass(frozen=True)
class BoundParts:
    """The three terms of the bound at one cut a, their sum, and U^m at that cut."""

    cut: arb
    u: arb
    outside: arb
    """The approximation's own transform beyond the cut."""
    inside: arb
    """Lambda'_5 + Lambda'_6 + Lambda'_7 up to the cut."""
    middle: arb
    """The characteristic function between the cut and pi B_m."""

    @property
    def total(self) -> arb:
        """The bound of sup R_m."""
        return self.outside + self.inside + self.middle


def theta_0() -> arb:
    """The root of t^2 + 2 t sin t + 6 (cos t - 1) in (0, 2 pi), enclosed by a change of sign."""
    with precision(BITS):
        low, high = arb("3.9"), arb("4.1")
        for _ in range(BITS):
            middle = ((low + high) / 2).mid()
            value = middle**2 + 2 * middle * middle.sin() + 6 * (middle.cos() - 1)
            if value > 0:
                high = middle
            elif value < 0:
                low = middle
            else:
                break
        return low.union(high)


@steady
class EdgeworthBound:
    """The theorem's bound for m equal noises N_Z(0, sigma2)."""

    def __init__(self, sigma2: Number, m: int) -> None:
        self.sigma2, self.m = read_sigma2(sigma2), whole(m, "m", 1, LARGEST_FOLD)
        if self.sigma2 > _LARGEST_SIGMA2:
            raise InvalidInputError(
                f"sigma2 must be at most {_LARGEST_SIGMA2:.0e} for the theorem's bound. Found {shown(sigma2)}."
            )

    @cached_property
    def _moments(self) -> dict[int, arb]:
        with precision(BITS):
            return {r: standardized_moment_ball(self.sigma2, r) for r in (3, 4, 6, 8, 10, 12)}

    @cached_property
    def spread(self) -> arb:
        """B_m = sqrt(m kappa_2)."""
        with precision(BITS):
            return (self.m * cumulant_ball(self.sigma2, 2)).sqrt()

    @cached_property
    def lambda_4(self) -> arb:
        """kappa_4 / kappa_2^2."""
        with precision(BITS):
            return standardized_cumulant_ball(self.sigma2, 4)

    def u(self, cut: arb) -> arb:
        """U^m: a^2/(2m) + K_4 a^4/(24 m^2) + K_6 a^6/(720 m^3)."""
        k, x = self._moments, cut * cut / self.m
        return x / 2 + k[4] / 24 * x**2 + k[6] / 720 * x**3

    def u_m(self) -> arb_poly:
        """U_m as a polynomial in zeta^2."""
        k, m = self._moments, self.m
        return arb_poly(
            [
                0,
                0,
                k[4] / (4 * m),
                k[6] / (24 * m**2),
                k[8] / (320 * m**3),
                k[10] / (8640 * m**4),
                k[12] / (518400 * m**5),
            ]
        )

    def lambdas(self, cut: arb) -> tuple[arb_poly, arb_poly, arb_poly]:
        """Lambda'_5, Lambda'_6 and Lambda'_7 as polynomials in zeta^2."""
        k, m = self._moments, self.m
        factor = 1 / (1 - self.u(cut)) ** 2
        fifth = arb_poly(
            [
                0,
                0,
                (factor + 1) / (8 * m),
                k[6] / (720 * m**2) + factor * k[6] / (48 * m**2),
                factor * k[8] / (640 * m**3),
                factor * k[10] / (17280 * m**4),
                factor * k[12] / (1036800 * m**5),
            ]
        )
        inner = arb_poly([0, 0, k[4] / (24 * m), k[6] / (720 * m**2)]) + self.u_m() * (factor / 2)
        return fifth, inner * inner * arb(0.5), inner * inner * inner * (inner(cut * cut).exp() / 6)

    @cached_property
    def largest_cut(self) -> float:
        """The admissible cuts are those below this: U^m(a) < 1."""
        low, high = 0.0, math.sqrt(2 * self.m)
        with precision(BITS):
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if self.u(arb(middle)) < 1 else (low, middle)
        return low

    def _admissible(self, cut: arb) -> arb:
        if not isinstance(cut, arb) or not cut >= 0:
            raise InvalidInputError(f"A cut is a ball of at least 0, such as cut_of(c). Found {shown(cut)}.")
        u = self.u(cut)
        if not u < 1:
            raise InvalidInputError(
                f"U^m must be below 1. Found {float(u.mid()):.6g}; choose a smaller c (a below {self.largest_cut:.6g})."
            )
        return u

    def cut_of(self, c: Number) -> arb:
        """a = c sqrt(log m)."""
        with precision(BITS):
            return ball(positive(c, "c")) * arb(self.m).log().sqrt()

    def printed(self, cut: arb) -> BoundParts:
        """The theorem as printed. Not proved where a > pi B_m, and false there in places."""
        with precision(BITS):
            u = self._admissible(cut)
            inside = sum((p for p in self.lambdas(cut)), arb_poly([0]))
            front = 1 / (arb.pi() * self.spread)
            return BoundParts(cut, u, front * self._outside(cut), front * _integral(inside, cut), self._middle(cut))

    def corrected(self, cut: arb) -> BoundParts:
        """Both integrals cut at min(a, pi B_m); where that is pi B_m there is no third term. A theorem for every admissible a."""
        with precision(BITS):
            u = self._admissible(cut)
            end = arb.pi() * self.spread
            inside = sum((p for p in self.lambdas(cut)), arb_poly([0]))
            front = 1 / (arb.pi() * self.spread)
            at = cut.min(end)
            middle = arb(0) if cut >= end else self._middle(cut)
            return BoundParts(cut, u, front * self._outside(at), front * _integral(inside, at), middle)

    def _outside(self, cut: arb) -> arb:
        """The integral of exp(-zeta^2/2) (1 + lambda_4 zeta^4 / (24 m)) from the cut on."""
        return _upper_moment(0, cut) + self.lambda_4 / (24 * self.m) * _upper_moment(2, cut)

    def _middle(self, cut: arb) -> arb:
        t = theta_0()
        slope = (t.cos() - 1 + t * t / 2) / (2 * t**3)
        return (-cut * cut / 2 + slope * 8 * self._moments[3] * cut**3 / arb(self.m).sqrt()).exp()

    def best(self, printed: bool = False) -> BoundParts:
        """The bound at the best admissible cut found. Any admissible cut is valid; the search affects only how good it is."""
        evaluate = self.printed if printed else self.corrected

        def size(a: float) -> float:
            return _size(evaluate(arb(a)).total)

        grid = [self.largest_cut * (i + 0.5) / _TRIED for i in range(_TRIED)]
        values = [size(a) for a in grid]
        i = min(range(_TRIED), key=values.__getitem__)
        low, high = grid[max(i - 1, 0)], grid[min(i + 1, _TRIED - 1)]
        for _ in range(12):
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            low, high = (low, right) if size(left) < size(right) else (left, high)
        return evaluate(arb(min([low, grid[i]], key=size)))

    def sharp(self, cut: arb | None = None, pieces: int = _PIECES) -> arb:
        """A bound of the true order m^{-5/2}: with x = lambda_4 zeta^4/(24 m) and G what follows in the cumulant series,

        |f_S - e^{-zeta^2/2} (1 + x)| <= e^{-zeta^2/2} (x^2/2 + e^G - 1) e^x,      G(zeta) = m g(zeta / B_m),

        g(v) = sum over j >= 3 of |kappa_2j| v^2j / (2j)!. Beyond the cut both terms are bounded by themselves. Upper sums
        over pieces, increasing factors taken at the upper end. Any cut in (0, pi B_m) is valid; without one, the best of a few.
        """
        with precision(BITS):
            end = arb.pi() * self.spread
            cut = self._sharpest_cut if cut is None else cut
            if not isinstance(cut, arb) or not bool(cut > end * _SHORTEST) or not bool(cut < end):
                raise InvalidInputError(
                    f"The cut must be a ball between pi B_m / 1000 and pi B_m = {float(end.mid()):.6g}. Found {shown(cut)}."
                )
            step, fine = (end - cut) / pieces, cut.min(arb(_WIDE))
            edges = [fine * i / pieces for i in range(pieces + 1)]
            if fine < cut:
                edges += [fine + (cut - fine) * i / _FEW_PIECES for i in range(1, _FEW_PIECES + 1)]
            near = sum(((high - low) * self._near(low, high) for low, high in pairwise(edges)), arb(0))
            far = sum(
                (step * cf_ball((cut + step * i) / self.spread, self.sigma2) ** self.m for i in range(pieces)), arb(0)
            )
            return (near + far + self._outside(cut)) / end

    @cached_property
    def _sharpest_cut(self) -> arb:
        cuts = [arb.pi() * self.spread * share for share in _SHARES]
        return min(cuts, key=lambda cut: _size(self.sharp(cut, _FEW_PIECES)))

    def _near(self, low: arb, high: arb) -> arb:
        """The bound of the integrand on one piece."""
        x = self.lambda_4 / (24 * self.m) * high**4
        rest = self.m * self._rest.upper(high / self.spread)
        return (-low * low / 2 + x).exp() * (x * x / 2 + rest.expm1())

    @cached_property
    def _rest(self) -> _RestOfSeries:
        with precision(BITS):
            return _RestOfSeries(self.sigma2)


def _size(value: arb) -> float:
    """A double for comparing candidates; infinite for what is not a number."""
    middle = float(value.mid())
    return middle if math.isfinite(middle) else math.inf


class _RestOfSeries:
    """g(v) = sum over j >= 3 of |kappa_2j| v^{2j} / (2j)! for 0 <= v <= pi, from above.

    |kappa_2j| is at most the Lambert series with all signs positive, so g(v) is at most the sum over k of
    (cosh(x) - 1 - x^2/2 - x^4/24) / (k sinh(y)), with x = k v, y = k / (2 sigma2), or x = 2 pi k sigma2 v, y = 2 pi^2 sigma2 k.
    """

    def __init__(self, sigma2: Fraction) -> None:
        s = ball(sigma2)
        self._forms = [(2 * arb.pi() * s, 2 * arb.pi() ** 2 * s), (arb(1), 1 / (2 * s))]

    def upper(self, v: arb) -> arb:
        """The smaller of the two forms (each converges where x < y for k = 1)."""
        return min((self._sum(step * v, rate) for step, rate in self._forms), key=_size)

    def _sum(self, x: arb, rate: arb) -> arb:
        ratio = (x - rate).exp()
        if not ratio < 0.97:  # too slow, or divergent
            return arb("inf")
        total, k = arb(0), 1
        while True:
            angle = x * k
            # cosh(a) - 1 - a^2/2 - a^4/24 = sum_{j>=3} a^2j/(2j)!: as a series where a is small
            term = _cosh_rest(angle) / (k * (rate * k).sinh())
            total += term
            k += 1
            # what follows: cosh <= e^x, 1/sinh(y) <= 2 e^{-y} / (1 - e^{-2 rate})
            left = 2 * ratio**k / (1 - ratio) / (1 - (-2 * rate).exp()) / k
            if left < total * _NEGLIGIBLE:
                return total + left


def _cosh_rest(a: arb) -> arb:
    if a > 1:
        return a.cosh() - 1 - a * a / 2 - a**4 / 24
    square, term, total = a * a, a**6 / 720, arb(0)
    for j in range(3, 30):
        total += term
        term *= square / ((2 * j + 1) * (2 * j + 2))
    return total + 2 * term


def _integral(poly: arb_poly, cut: arb) -> arb:
    """The integral from 0 to the cut of poly(zeta^2) exp(-zeta^2/2)."""
    return sum((c * _lower_moment(j, cut) for j, c in enumerate(poly.coeffs()) if c != 0), arb(0))


def _lower_moment(j: int, cut: arb) -> arb:
    """The integral of zeta^{2j} exp(-zeta^2/2) from 0 to the cut: 2^{j-1/2} times the lower incomplete gamma function."""
    order = arb(j) + arb(0.5)
    return arb(2) ** (order - 1) * (cut * cut / 2).gamma_lower(order)


def _upper_moment(j: int, cut: arb) -> arb:
    """The integral of zeta^{2j} exp(-zeta^2/2) from the cut on: 2^{j-1/2} Gamma(j + 1/2, cut^2/2)."""
    order = arb(j) + arb(0.5)
    return arb(2) ** (order - 1) * (cut * cut / 2).gamma_upper(order)
