"""Calibration: the least noise that meets a target, on a stated grid, on the safe side.

The search is free; the answer is proved: at the factor returned the target holds by certified bounds, and one grid step below
it fails by certified bounds. That still smaller factors fail as well is not claimed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from exactdp.accounting.composition import Composition
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.tightest_mu import GaussianDP, tightest_mu
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, positive, read_epsilon, read_share, shown, whole

GRID = 10_000
LARGEST_FACTOR = 1_000_000


class Target(ABC):
    """What a design must meet: `holds` and `fails` are both proofs; neither may be possible where bounds are wide."""

    @abstractmethod
    def holds(self, curve: Any) -> bool:
        """Proved: the curve meets the target."""

    @abstractmethod
    def fails(self, curve: Any) -> bool:
        """Proved: the curve does not meet the target."""


@dataclass(frozen=True)
class MeetsEpsilonDelta(Target):
    """delta(epsilon) <= delta."""

    epsilon: Fraction
    delta: Fraction

    def holds(self, curve: Any) -> bool:
        """By the upper bound of delta."""
        return bool(curve.delta_bounds(self.epsilon)[1] <= self.delta)

    def fails(self, curve: Any) -> bool:
        """By the lower bound of delta."""
        return bool(curve.delta_bounds(self.epsilon)[0] > self.delta)


@dataclass(frozen=True)
class MeetsTradeOff(Target):
    """beta(alpha) >= beta."""

    alpha: Fraction
    beta: Fraction

    def holds(self, curve: Any) -> bool:
        """By the lower bound of beta."""
        return bool(curve.beta_bounds(self.alpha)[0] >= self.beta)

    def fails(self, curve: Any) -> bool:
        """By the upper bound of beta."""
        return bool(curve.beta_bounds(self.alpha)[1] < self.beta)


@dataclass(frozen=True)
class MeetsMu(Target):
    """mu-GDP."""

    mu: Fraction

    def holds(self, curve: Any) -> bool:
        """By the proof of `tightest_mu`; for continuous Gaussians mu^2 = 2 rho exactly."""
        if all(isinstance(m, Gaussian) for m in curve.mechanisms):
            return bool(2 * curve.rho <= self.mu**2)
        return bool(_tightest(curve).upper <= self.mu)

    def fails(self, curve: Any) -> bool:
        """By one epsilon that violates it."""
        if all(isinstance(m, Gaussian) for m in curve.mechanisms):
            return bool(2 * curve.rho > self.mu**2)
        return bool(_tightest(curve).lower >= self.mu)


@lru_cache(maxsize=4)
def _tightest(composition: Composition) -> GaussianDP:
    return tightest_mu(composition)


def target(
    epsilon: Number | None = None,
    delta: Number | None = None,
    alpha: Number | None = None,
    beta: Number | None = None,
    advantage: Number | None = None,
    mu: Number | None = None,
) -> Target:
    """The one target that is given: epsilon and delta, alpha and beta, an advantage, or a mu."""
    named = {"epsilon": epsilon, "delta": delta, "alpha": alpha, "beta": beta, "advantage": advantage, "mu": mu}
    given = [name for name, value in named.items() if value is not None]
    if given == ["epsilon", "delta"]:
        return MeetsEpsilonDelta(_finite(read_epsilon(epsilon), epsilon), read_share(delta, "delta"))
    if given == ["alpha", "beta"]:
        return MeetsTradeOff(read_share(alpha, "alpha"), read_share(beta, "beta"))
    if given == ["advantage"]:
        return MeetsEpsilonDelta(Fraction(0), read_share(advantage, "advantage"))
    if given == ["mu"]:
        return MeetsMu(positive(mu, "mu"))
    raise InvalidInputError(
        f"A target is epsilon and delta, or alpha and beta, or an advantage, or a mu. Found {', '.join(given) or 'none of them'}."
    )


def _finite(value: Fraction | float, shown_as: object) -> Fraction:
    if isinstance(value, float):
        raise InvalidInputError(f"epsilon must be a finite number. Found {shown(shown_as)}.")
    return value


@dataclass(frozen=True)
class Calibration:
    """The least factor on the grid: there the target holds, one step below it fails, both proved.

    Where one step below is outside the range of a noise parameter, that noise is not allowed at all.
    """

    _repr_html_ = repr_html

    factor: Fraction
    step: Fraction
    composition: Composition


def calibrate(
    composition: Composition, wanted: Target, part: Mechanism | Collection[Mechanism] | None = None, grid: int = GRID
) -> Calibration:
    """The least factor m / grid on the sigma2 of all Gaussian noise, or of the mechanisms in `part`, that meets the target."""
    steps = whole(grid, "grid", 1)
    chosen = set(composition.mechanisms if part is None else [part] if isinstance(part, Mechanism) else part)
    missing = chosen - set(composition.mechanisms)
    if missing or not chosen:
        found = shown(next(iter(missing))) if missing else "an empty part"
        raise InvalidInputError(f"The part to be scaled must consist of mechanisms of the composition. Found {found}.")
    for mechanism in chosen:
        if not isinstance(mechanism, DiscreteGaussian | Gaussian):
            raise InvalidInputError(
                f"Only Gaussian noise can be scaled. Found {shown(mechanism)}; choose a part without it."
            )
    scaled = Composition({m: n for m, n in composition.mechanisms.items() if m in chosen})
    kept = {m: n for m, n in composition.mechanisms.items() if m not in chosen}

    def at(factor: Fraction) -> Composition:
        return Composition(Counter(kept) + Counter(scaled.scaled(factor).mechanisms), composition.effort)

    factor = least_on_grid(*questions(at, wanted.holds, wanted.fails), steps)
    return Calibration(factor, Fraction(1, steps), at(factor))


_Design = TypeVar("_Design")


def questions(
    at: Callable[[Fraction], _Design], holds: Callable[[_Design], bool], fails: Callable[[_Design], bool]
) -> tuple[Callable[[Fraction], bool], Callable[[Fraction], bool]]:
    """Whether a factor is proved to suffice, and whether not to; noise outside its range (`at` refuses it) is too little."""

    def asked(proof: Callable[[_Design], bool], otherwise: bool) -> Callable[[Fraction], bool]:
        def answer(factor: Fraction) -> bool:
            try:
                design = at(factor)
            except InvalidInputError:
                return otherwise
            return proof(design)

        return answer

    return asked(holds, False), asked(fails, True)


def calibrate_sigma2(count: int, wanted: Target, sensitivity: int = 1, grid: int = 1000) -> Calibration:
    """The least sigma2 = m / grid for which `count` discrete Gaussians meet the target; `factor` is that sigma2."""
    copies, steps = whole(count, "count", 1), whole(grid, "grid", 1)
    DiscreteGaussian(10**6, sensitivity)  # refuses a wrong sensitivity

    def at(sigma2: Fraction) -> Composition:
        return Composition({DiscreteGaussian(sigma2, sensitivity): copies})

    sigma2 = least_on_grid(*questions(at, wanted.holds, wanted.fails), steps)
    return Calibration(sigma2, Fraction(1, steps), at(sigma2))


def least_on_grid(
    holds: Callable[[Fraction], bool], fails: Callable[[Fraction], bool], grid: int, guess: int | None = None
) -> Fraction:
    """m / grid at which `holds`, while one step below `fails`; searched from `guess`, or from 1."""
    high, move = grid if guess is None else guess, 1
    while not holds(Fraction(high, grid)):
        high, move = high + move, 2 * move
        if high > LARGEST_FACTOR * grid:
            raise AccuracyError(f"No value up to {LARGEST_FACTOR} meets the target. Ask for a weaker guarantee.")
    low, move = high - 1, 1
    while low > 0 and not fails(Fraction(low, grid)):
        if holds(Fraction(low, grid)):
            high = low
        low, move = max(0, low - move), 2 * move
    while high - low > 1:
        middle = (low + high) // 2
        if holds(Fraction(middle, grid)):
            high = middle
        elif fails(Fraction(middle, grid)):
            low = middle
        else:
            raise AccuracyError(
                f"The bounds are too wide to tell whether {middle}/{grid} suffices. Choose a coarser grid."
            )
    return Fraction(high, grid)
