"""A mechanism: one noisy answer, known by its privacy loss; `+` and `*` make compositions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING

from exactdp.mechanisms.loss import Loss
from exactdp.numbers import whole

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition


class Mechanism(ABC):
    """One release about a data set. Frozen, hashable, and composable with `+`, `*` and `sum`."""

    @abstractmethod
    def loss(self) -> Loss:
        """The privacy loss of the data set against its neighbour."""

    @property
    @abstractmethod
    def rho(self) -> Fraction | float:
        """A zCDP parameter of the mechanism (infinite if it has none)."""

    def __add__(self, other: Mechanism | Composition) -> Composition:
        from exactdp.accounting.composition import Composition

        return Composition([self]) + other

    def __radd__(self, other: object) -> Composition:  # so that sum() works
        from exactdp.accounting.composition import Composition

        return Composition([self]) if other == 0 else NotImplemented

    def __mul__(self, count: int) -> Composition:
        from exactdp.accounting.composition import Composition

        return Composition({self: whole(count, "count", 1)})

    __rmul__ = __mul__

    def __repr__(self) -> str:  # a text of one's own serves for both
        return object.__repr__(self) if type(self).__str__ is object.__str__ else str(self)
