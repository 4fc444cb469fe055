"""The central zone of the moment function: upper sums of what the first theta terms leave out near frequency 0.

docs/theory/edgeworth.md, Theorem 22. Everything here is an upper bound of an integral over 0 <= om <= om_c, or over what lies
beyond it for the Gaussian alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from exactdp.doubles import ACCOUNT_SLACK, SUM_SLACK, UNDERFLOW, Floats
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian

_CELLS = 160
_ZETA3, _ZETA4 = 1.2020569031595945, 1.0823232337111382


@dataclass(frozen=True)
class NoiseGroup:
    """`count` discrete Gaussians with the same noise parameter and sensitivity, as doubles."""

    sigma2: float
    sensitivity: int
    count: int

    @staticmethod
    def all_of(mechanisms: Mapping[Any, int]) -> list[NoiseGroup]:
        """The discrete Gaussians among some mechanisms, in their order."""
        return [
            NoiseGroup(float(m.sigma2), m.sensitivity, n)
            for m, n in mechanisms.items()
            if isinstance(m, DiscreteGaussian)
        ]

    @property
    def weight(self) -> float:
        """Loss per unit of noise, D / s."""
        return self.sensitivity / self.sigma2

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
        return first, total * (1 + SUM_SLACK), curved * (1 + SUM_SLACK)


@dataclass(frozen=True)
class Zone:
    """Cells from `low` to `high` that cover 0 <= om <= cut, for a composition with this R."""

    r: float
    cut: float
    low: Floats
    high: Floats

    @staticmethod
    def of(r: float, cut: float, sensitivity: int) -> Zone:
        """Fine where the terms of this sensitivity (0: none matter) have their weight, coarse beyond."""
        middle = min(cut, (8 + 8 * math.pi * sensitivity / math.sqrt(r)) / math.sqrt(r))
        edges = np.concatenate([np.linspace(0.0, middle, _CELLS + 1), np.linspace(middle, cut, _CELLS // 2)[1:]])
        return Zone(r, cut, edges[:-1], edges[1:])

    @cached_property
    def log_gauss(self) -> Floats:
        """log of e^{-R low^2/2} width / pi."""
        return -self.r * self.low**2 / 2 + np.log(np.maximum(self.high - self.low, UNDERFLOW) / math.pi) + ACCOUNT_SLACK

    def tail(self, d: float, log_height: float) -> float:
        """(1/pi) times the integral over om > cut of e^{-R om^2/2 + 2 pi d om + log_height}."""
        exponent = log_height + 2 * math.pi**2 * d * d / self.r
        shifted = math.erfc((self.cut - 2 * math.pi * d / self.r) * math.sqrt(self.r / 2))
        return math.exp(exponent) * math.sqrt(math.pi / (2 * self.r)) * shifted / math.pi


@dataclass(frozen=True)
class Terms:
    """What groups bring to a zone, taken at the upper end of each cell. Terms of several groups add up, also row by row."""

    total: Floats
    curved: Floats
    """t over z (z + 1), by the terms' own zeros."""
    linear: Floats
    """The part of t that is not taken out in closed form."""
    linear_curved: Floats
    first: Floats
    """The part that is."""
    log_product: Floats
    tail: Floats
    """Of the first part, beyond the zone."""

    @staticmethod
    def of(groups: Sequence[NoiseGroup], smooth: Collection[int], zone: Zone) -> Terms:
        """The terms of some groups; the first theta terms of the sensitivities in `smooth` are taken out."""
        zero = np.zeros(len(zone.low))
        result = Terms(zero, zero, zero, zero, zero, zero, np.zeros(()))
        for g in groups:
            first, total, curved = g.terms(zone.high)
            log_product = g.count * np.log1p(total / g.count)
            tail = np.zeros(())
            if g.sensitivity in smooth:
                share = first * (math.pi * g.sensitivity) ** 2
                log_height = -2 * math.pi**2 * g.sigma2
                linear, linear_curved = total - first, curved - share
                tail += 4 * g.count * zone.tail(g.sensitivity, log_height)
            else:
                first, linear, linear_curved = np.zeros_like(total), total, curved
            result += Terms(total, curved, linear, linear_curved, first, log_product, tail)
        return result

    def __add__(self, other: Terms) -> Terms:
        return Terms(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


class Grid:
    """Upper sums over the central zone."""

    def __init__(self, zone: Zone, terms: Terms) -> None:
        """Increasing factors are taken at the upper end of each cell, decreasing ones at the lower end. This is the guarantee."""
        self._low, self._high, self.cut = zone.low, zone.high, zone.cut
        # the products' terms of second order and more are at most t^2/2 times the product; one factor t keeps its weight
        gauss = np.exp(zone.log_gauss)
        bend = terms.total / 2 * np.exp(np.minimum(terms.log_product + zone.log_gauss, 600.0))
        self._plain = (1 + terms.first) * gauss
        self._second = terms.linear * gauss + bend * terms.total
        self._curved = terms.linear_curved * gauss + bend * terms.curved
        self.tail = (UNDERFLOW + zone.tail(0.0, 0.0) + terms.tail) * (1 + SUM_SLACK)
        """(1/pi) integral over om > om_c of e^{-R om^2/2} (1 + |first-order terms|)."""

    @property
    def tail_far(self) -> Any:
        """The tail with its weight 1/om^2."""
        return self.tail / self.cut**2

    def second(self, lam: float, images: float) -> Any:
        """What the second order adds: weight 1/|z (z+1)| or the terms' own zeros at 0 and -1, the smaller; and images."""
        weight = 1 / np.sqrt((lam * lam + self._low**2) * ((lam + 1) ** 2 + self._low**2))
        own = np.sum(np.minimum(self._second * weight, self._curved), axis=-1)
        return own + images * np.sum(self._second, axis=-1)

    def kink(self, lam: float, h: float) -> Any:
        """What Euler and Maclaurin's first term leaves out: |V(z + iJ) + 1/J^2| summed over J = j 2 pi / h."""
        omega, near = 2 * math.pi / h, 2 * math.pi / h - self.cut
        m0, m1, m2 = self._moments
        product, total = lam * (lam + 1) * m0 + (2 * lam + 1) * m1 + m2, (2 * lam + 1) * m0 + 2 * m1
        return 2 * (product * _ZETA4 / (omega * near) ** 2 + total * _ZETA3 / (omega * near**2)) * (1 + SUM_SLACK)

    @cached_property
    def _moments(self) -> list[Any]:
        return [np.sum(self._plain * self._high**k, axis=-1) for k in (0, 1, 2)]
