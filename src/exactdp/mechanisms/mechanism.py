"""A mechanism: one noisy answer, known by its privacy loss; `+` and `*` make compositions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from exactdp.errors import InvalidInputError
from exactdp.mechanisms.loss import Loss
from exactdp.numbers import shown, whole

if TYPE_CHECKING:
    from exactdp.accounting.composition import Composition

REFUSED_TO_SCALE = "Only noise of one parameter (Gaussian, Laplace, Skellam, randomized response) can be scaled."


class Mechanism(ABC):
    """One release about a data set. Frozen, hashable, and composable with `+`, `*` and `sum`.

    It answers every question that a composition answers, as the composition of itself alone: `DiscreteGaussian(1).epsilon(1e-5)`.
    A parameter of the same name comes first: `ApproximateDP(1).epsilon` is 1; there, ask `epsilon_bounds`.
    """

    @property
    def is_enclosed(self) -> bool:
        """Whether there is no loss that is known, only two between which it lies: `enclosing_loss`."""
        return False

    def enclosing_loss(self, is_above: bool) -> Loss:
        """A loss of a mechanism that tells at least as much, or at most as much; the loss itself where that is known."""
        return self.loss()

    @abstractmethod
    def loss(self) -> Loss:
        """The privacy loss of the data set against its neighbour."""

    @property
    @abstractmethod
    def rho(self) -> Fraction | float:
        """A zCDP parameter of the mechanism (infinite if it has none)."""

    def _scaled(self, by: Fraction) -> Mechanism:
        """The same mechanism with `by` times the noise variance, or a little more; refused where noise is not one number."""
        raise InvalidInputError(f"{REFUSED_TO_SCALE} Found {shown(self)}; build it with its new parameters.")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            from exactdp.accounting.composition import Composition

            if hasattr(Composition, name):
                return getattr(_alone(Composition, self), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        from exactdp.accounting.composition import Composition

        return sorted({*super().__dir__(), *(name for name in dir(Composition) if not name.startswith("_"))})

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


@lru_cache(maxsize=8)
def _alone(make: type[Composition], mechanism: Mechanism) -> Composition:
    """The composition of one mechanism, kept for the next question."""
    return make([mechanism])
