"""What is asked of every pair of a release: grids of epsilons, deltas and alphas, and the standard ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import ndtr

from exactdp.elementwise import read_digits
from exactdp.errors import InvalidInputError
from exactdp.guarantees.zcdp import zcdp_epsilon_simple
from exactdp.numbers import Number, exact_repr, read_alpha, read_delta, read_epsilon, shown, whole

DELTAS = tuple(f"1e-{k}" for k in range(5, 16))
ALPHAS = ("0.001", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5")
MOST_ALPHAS = 10_000
_REACH = 7  # standard deviations to either side: 1.28e-12
STATED = tuple(f"{digit}e-{k}" for k in range(1, 22) for digit in (5, 1))
"""The profile is taken where zCDP's simple conversion states these 42 deltas, as in the published tables."""

ARGUMENTS = {"delta": "epsilon", "epsilon": "delta", "beta": "alpha"}
"""The quantities, in the order of results, and the argument of each."""


def stated_epsilons(rho: Fraction) -> list[Fraction]:
    """Where zCDP's simple conversion states those deltas, rounded to four decimals."""
    return [Fraction(round(zcdp_epsilon_simple(rho, d) * 10_000), 10_000) for d in STATED]


def spaced_alphas(count: int) -> list[Fraction]:
    """`count` alphas from 1.28e-12 to 1 - 1.28e-12, rising, as short decimals, that are evenly spaced on the normal scale.

    So both tails of a trade-off curve are covered and not only its middle, as in the published tables, whose 901 points are
    evenly spaced in the threshold of the test.

    >>> [str(float(a)) for a in spaced_alphas(5)[:4]]
    ['1.27981e-12', '0.000232629', '0.5', '0.999767371']
    """
    steps = whole(count, "The number of alphas", 2, MOST_ALPHAS) - 1
    lower = [Fraction(f"{ndtr(_REACH * (2 * k - steps) / steps):.6g}") for k in range(steps // 2 + 1)]
    return sorted({*lower, *(1 - alpha for alpha in lower)})


@dataclass(frozen=True)
class Grids:
    """What is asked of every pair: delta at these epsilons, epsilon at these deltas, beta at these alphas."""

    __repr__ = exact_repr

    epsilons: tuple[Fraction, ...] = ()
    deltas: tuple[Fraction, ...] = ()
    alphas: tuple[Fraction, ...] = ()
    digits: int | None = None
    """Decimal digits in balls; None for float64."""

    @classmethod
    def read(
        cls,
        epsilons: Iterable[Number] | None = None,
        deltas: Iterable[Number] | None = None,
        alphas: Iterable[Number] | None = None,
        digits: int | None = None,
    ) -> Grids:
        """Grids as a user gives them, checked."""
        return cls(
            tuple(_finite(e) for e in _listed(epsilons, "epsilons")),
            tuple(_inside(read_delta(d), d, "delta") for d in _listed(deltas, "deltas")),
            tuple(_inside(read_alpha(a), a, "alpha") for a in _listed(alphas, "alphas")),
            None if digits is None else read_digits(digits),
        )

    @classmethod
    def of_report(cls, headline: Number, deltas: Iterable[Number] = DELTAS) -> tuple[Grids, Fraction]:
        """What a report asks, and the delta of its headline: that one among the deltas, largest first; the standard alphas."""
        asked = cls.read(deltas=[headline]).deltas[0]
        return cls.read(deltas=sorted({*cls.read(deltas=deltas).deltas, asked}, reverse=True), alphas=ALPHAS), asked

    @property
    def by_quantity(self) -> dict[str, tuple[Fraction, ...]]:
        """The grids by the name of what is computed on them."""
        return {"delta": self.epsilons, "epsilon": self.deltas, "beta": self.alphas}

    @property
    def size(self) -> int:
        """How many numbers are asked of every pair."""
        return len(self.epsilons) + len(self.deltas) + len(self.alphas)


def _listed(values: Iterable[Number] | None, name: str) -> list[Number]:
    if isinstance(values, (str, bytes)) or not (values is None or isinstance(values, Iterable)):
        raise InvalidInputError(f"{name} takes a list of numbers. Found {shown(values)}.")
    return [] if values is None else list(values)


def _finite(value: Number) -> Fraction:
    result = read_epsilon(value)
    if isinstance(result, float):
        raise InvalidInputError(f"A grid of epsilons takes finite numbers. Found {value}.")
    return result


def _inside(result: Fraction, value: Number, name: str) -> Fraction:
    if not 0 < result < 1:
        raise InvalidInputError(f"A grid of {name}s takes numbers between 0 and 1. Found {shown(value)}.")
    return result
