"""The central zone of the moment function: upper sums of what the first theta terms leave out near frequency 0.

docs/theory/edgeworth.md, Theorem 22. Everything here is an upper bound of an integral over 0 <= om <= om_c, or over what lies
beyond it for the Gaussian alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactdp.mechanisms.theta import Floats

_CELLS = 160
_ZETA3, _ZETA4 = 1.2020569031595945, 1.0823232337111382


@dataclass(frozen=True)
class Group:
    """`count` discrete Gaussians with the same noise parameter and sensitivity, as doubles."""

    sigma2: float
    sensitivity: int
    count: int

    @cached_property
    def first(self) -> float:
        """count 2 q / theta(0), q = exp(-2 pi^2 sigma2)."""
        s = self.sigma2
        theta = 1 + 2 * math.fsum(math.exp(-2 * math.pi**2 * s * u * u) for u in range(1, 40))
        return 2 * self.count * math.exp(-2 * math.pi**2 * s) / theta

    def terms(self, omega: Floats) -> tuple[Floats, Floats, Floats]:
        """count t(om), t = 2 sum_u q^{u^2} (cosh(2 pi u D om) + 1): the term u = 1; all of them; all, with (pi u D)^2 in each."""
        first = total = curved = np.zeros_like(omega)
        for u in range(1, 60):
            exponent = -2 * math.pi**2 * self.sigma2 * u * u
            angle = 2 * math.pi * u * self.sensitivity * omega
            # 2 cosh(a) e^b = e^(a+b) + e^(b-a), and 2 e^b
            term = self.count * (np.exp(angle + exponent) + np.exp(exponent - angle) + 2 * math.exp(exponent))
            first = term if u == 1 else first
            total = total + term
            curved = curved + term * (math.pi * u * self.sensitivity) ** 2
            if float(term[-1]) < 1e-320 or u * self.sigma2 > 60:
                break
        return first, total * (1 + 1e-9), curved * (1 + 1e-9)


@dataclass(frozen=True)
class Grid:
    """Upper sums over the central zone, in cells from `low` to `high`; every array is already times e^{-R low^2/2} width / pi."""

    low: Floats
    high: Floats
    plain: Floats
    second_order: Floats
    curved: Floats
    cut: float
    tail: float
    """(1/pi) integral over om > om_c of e^{-R om^2/2} (1 + |first-order terms|)."""

    @staticmethod
    def of(groups: list[Group], smooth: set[int], r: float, cut: float) -> Grid:
        """Increasing factors are taken at the upper end of each cell, decreasing ones at the lower end. This is the guarantee."""
        matter = [g.sensitivity for g in groups if g.first > 1e-250]
        middle = min(cut, (8 + 8 * math.pi * max(matter, default=0) / math.sqrt(r)) / math.sqrt(r))
        edges = np.concatenate([np.linspace(0.0, middle, _CELLS + 1), np.linspace(middle, cut, _CELLS // 2)[1:]])
        low, high = edges[:-1], edges[1:]
        all_terms, all_curved, linear, linear_curved, first_order, log_all = (np.zeros(len(low)) for _ in range(6))
        for g in groups:
            first, total, curved = g.terms(high)
            all_terms, all_curved = all_terms + total, all_curved + curved
            log_all = log_all + g.count * np.log1p(total / g.count)
            if g.sensitivity in smooth:
                share = first * (math.pi * g.sensitivity) ** 2
                linear, linear_curved = linear + (total - first), linear_curved + (curved - share)
                first_order = first_order + first
            else:
                linear, linear_curved = linear + total, linear_curved + curved
        # the products' terms of second order and more are at most t^2/2 times the product; one factor t keeps its weight
        log_gauss = -r * low * low / 2 + np.log(np.maximum(high - low, 1e-300) / math.pi) + 1e-6
        gauss, bend = np.exp(log_gauss), all_terms / 2 * np.exp(np.minimum(log_all + log_gauss, 600.0))
        rate = math.sqrt(r / 2)
        tail = 1e-300 + math.sqrt(math.pi / (2 * r)) * math.erfc(cut * rate) / math.pi
        for g in groups:
            if g.sensitivity in smooth:
                d = g.sensitivity
                exponent = 2 * math.pi**2 * (d * d / r - g.sigma2)
                shifted = math.erfc((cut - 2 * math.pi * d / r) * rate)
                tail += 4 * g.count * math.sqrt(math.pi / (2 * r)) * math.exp(exponent) * shifted / math.pi
        second, curved = linear * gauss + bend * all_terms, linear_curved * gauss + bend * all_curved
        return Grid(low, high, (1 + first_order) * gauss, second, curved, cut, tail * (1 + 1e-9))

    @property
    def tail_far(self) -> float:
        """The tail with its weight 1/om^2."""
        return self.tail / self.cut**2

    def second(self, lam: float, images: float) -> float:
        """What the second order adds: weight 1/|z (z+1)| or the terms' own zeros at 0 and -1, the smaller; and images."""
        weight = 1 / np.sqrt((lam * lam + self.low**2) * ((lam + 1) ** 2 + self.low**2))
        return float(np.sum(np.minimum(self.second_order * weight, self.curved))) + images * float(
            np.sum(self.second_order)
        )

    def kink(self, lam: float, h: float) -> float:
        """What Euler and Maclaurin's first term leaves out: |V(z + iJ) + 1/J^2| summed over J = j 2 pi / h."""
        omega, near = 2 * math.pi / h, 2 * math.pi / h - self.cut
        m0, m1, m2 = self._moments
        product, total = lam * (lam + 1) * m0 + (2 * lam + 1) * m1 + m2, (2 * lam + 1) * m0 + 2 * m1
        return 2 * (product * _ZETA4 / (omega * near) ** 2 + total * _ZETA3 / (omega * near**2)) * (1 + 1e-9)

    @cached_property
    def _moments(self) -> tuple[float, float, float]:
        return tuple(float(np.sum(self.plain * self.high**k)) for k in (0, 1, 2))  # type: ignore[return-value]
