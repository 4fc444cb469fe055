"""Calibration: the least noise that meets a target, on a stated grid, on the safe side.

The search is free; the answer is proved: at the factor returned the target holds by certified bounds, and one grid step below
it fails by certified bounds, or is noise outside the range that is allowed and was not tried. That still smaller factors
fail as well is not claimed: delta of a discrete Gaussian is not monotone in sigma2. So a refusal claims no
more than what was proved either: that the largest factor fails, or that no factor at all can help because the rest of the
composition fails on its own, which more mechanisms never mend (docs/theory/conversions.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.doubles import EXP_SLACK
from exactdp.engine.effort import Effort
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.tightest_mu import GaussianDP, is_gdp, is_near_gaussian, is_too_small, tightest_mu
from exactdp.mechanisms.discrete_gaussian import LARGEST_SIGMA2, DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import REFUSED_TO_SCALE, Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import Number, exact_repr, log_rational, positive, read_epsilon, read_share, shown, whole
from exactdp.numerals import at_least, at_most, exact, whole_text

GRID = 10_000
LARGEST_FACTOR = 1_000_000
_SMALLEST_DOUBLES = Fraction(1, 10**290)
"""Below it a delta is compared by its logarithm: doubles end at 5e-324 and have few digits before."""


class Target(ABC):
    """What a design must meet: that it holds and that it fails are both proofs; neither may be possible where bounds are wide."""

    @abstractmethod
    def side(self, curve: Any) -> int:
        """-1 where the curve is proved to meet the target, 1 where it is proved not to, 0 where its bounds do not tell."""

    @abstractmethod
    def cost(self, curve: Any) -> str:
        """What a curve costs in terms of the target, proved, in a few words."""

    def holds(self, curve: Any) -> bool:
        """Proved: the curve meets the target."""
        return self.side(curve) < 0

    def fails(self, curve: Any) -> bool:
        """Proved: the curve does not meet the target."""
        return self.side(curve) > 0


def side_of_all(sides: Iterable[int]) -> int:
    """The side of a target that must hold for each of some curves, from theirs: one that fails decides, and ends the asking."""
    found = -1
    for side in sides:
        if side > 0:
            return 1
        found = max(found, side)
    return found


@dataclass(frozen=True)
class MeetsEpsilonDelta(Target):
    """delta(epsilon) <= delta."""

    __repr__ = exact_repr

    epsilon: Fraction
    delta: Fraction

    def side(self, curve: Any) -> int:
        """By the bounds of delta."""
        if self.delta < _SMALLEST_DOUBLES:
            low, high = curve.log_delta_bounds(self.epsilon)
            return -1 if high <= self._log_delta - self._log_error else int(low > self._log_delta + self._log_error)
        low, high = curve.delta_bounds(self.epsilon)
        return -1 if high <= self.delta else int(low > self.delta)

    def cost(self, curve: Any) -> str:
        """By the lower bound of epsilon at this delta; of delta where epsilon is 0, which is the advantage."""
        if self.epsilon == 0:
            return f"an advantage of at least {at_least(curve.delta_bounds(0)[0])}"
        return f"an epsilon of at least {at_least(curve.epsilon_bounds(self.delta)[0])} at delta = {exact(self.delta)}"

    @property
    def _log_delta(self) -> float:
        return log_rational(self.delta)

    @property
    def _log_error(self) -> float:
        return EXP_SLACK * (1 + abs(self._log_delta))


@dataclass(frozen=True)
class MeetsTradeOff(Target):
    """beta(alpha) >= beta."""

    __repr__ = exact_repr

    alpha: Fraction
    beta: Fraction

    def side(self, curve: Any) -> int:
        """By the bounds of beta."""
        low, high = curve.beta_bounds(self.alpha)
        return -1 if low >= self.beta else int(high < self.beta)

    def cost(self, curve: Any) -> str:
        """By the same."""
        return f"a beta of at most {at_most(curve.beta_bounds(self.alpha)[1])} at alpha = {exact(self.alpha)}"


@dataclass(frozen=True)
class MeetsMu(Target):
    """mu-GDP."""

    __repr__ = exact_repr

    mu: Fraction

    def side(self, curve: Any) -> int:
        """By the proof of `tightest_mu`, or by one epsilon that violates it; for continuous Gaussians mu^2 = 2 rho exactly."""
        decided = self.at_once(curve)
        if decided is not None:
            return -1 if decided else 1
        found = _tightest(curve)
        return -1 if found.upper <= self.mu else int(found.lower >= self.mu)

    def holds(self, curve: Any) -> bool:
        """The same, without the tightest mu: in less time where there is some room."""
        if all(isinstance(m, Gaussian) for m in curve.mechanisms):
            return bool(2 * curve.rho <= self.mu**2)
        return not is_too_small(curve, self.mu) and is_gdp(curve, self.mu)

    def cost(self, curve: Any) -> str:
        """By the lower bound of the tightest mu."""
        return f"a mu of at least {at_least(_tightest(curve).lower)}"

    def at_once(self, curve: Any) -> bool | None:
        """Whether it holds, where no search is needed to prove that it does or does not."""
        if all(isinstance(m, Gaussian) for m in curve.mechanisms):
            return bool(2 * curve.rho <= self.mu**2)
        if is_too_small(curve, self.mu):
            return False
        return True if is_near_gaussian(curve, self.mu) else None


@dataclass(frozen=True)
class MeetsAll(Target):
    """Several targets at once."""

    targets: tuple[Target, ...]

    def __post_init__(self) -> None:
        if not self.targets:
            raise InvalidInputError("Several targets must be at least one. Found none of them.")

    def side(self, curve: Any) -> int:
        """It holds where each of them does, and fails where one of them does."""
        return side_of_all(wanted.side(curve) for wanted in self.targets)

    def cost(self, curve: Any) -> str:
        """What the first target that fails asks of the curve."""
        return next((wanted.cost(curve) for wanted in self.targets if wanted.fails(curve)), "")


def _tightest(composition: Composition) -> GaussianDP:
    return _tightest_within(composition, composition.effort)


@lru_cache(maxsize=4)
def _tightest_within(composition: Composition, _: Effort) -> GaussianDP:
    """Remembered for each work limit: compositions are equal whatever theirs is."""
    return tightest_mu(composition)


@steady
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
        return epsilon_delta_target(epsilon, delta)
    if given == ["alpha", "beta"]:
        return MeetsTradeOff(read_share(alpha, "alpha"), read_share(beta, "beta"))
    if given == ["advantage"]:
        return MeetsEpsilonDelta(Fraction(0), read_share(advantage, "advantage"))
    if given == ["mu"]:
        return MeetsMu(positive(mu, "mu"))
    raise InvalidInputError(
        f"A target is epsilon and delta, or alpha and beta, or an advantage, or a mu. Found {', '.join(given) or 'none of them'}."
    )


def epsilon_delta_target(epsilon: Number | None, delta: Number | None) -> MeetsEpsilonDelta:
    """delta(epsilon) <= delta as a user gives it: a finite epsilon, and a delta strictly between 0 and 1."""
    finite = read_epsilon(epsilon)
    if isinstance(finite, float):
        raise InvalidInputError(f"epsilon must be a finite number. Found {shown(epsilon)}.")
    return MeetsEpsilonDelta(finite, read_share(delta, "delta"))


@steady
@dataclass(frozen=True)
class Calibration:
    """The least factor on the grid: there the target holds, one step below it fails, both proved.

    Where `below_exists` is False, one step below is outside the range of a noise parameter: it was not tried, and nothing is
    claimed about it.
    """

    _repr_html_ = repr_html

    factor: Fraction
    step: Fraction
    composition: Composition
    below_exists: bool = True

    def __str__(self) -> str:
        return f"{least_text('', self.factor, self.step, self.below_exists)}\n  {self.composition}"


def least_text(what: str, factor: Fraction, step: Fraction, below_exists: bool) -> str:
    """What is proved of a factor on the grid, in a sentence; `what` is multiplied by it.

    >>> least_text("Every sigma2", Fraction(7, 5), Fraction(1, 10), True)
    'Every sigma2 times 1.4 meets the target; times 1.3 it does not. Both are proved.'
    """
    times = f"{what} times " if what else ""
    holds, less = f"{times}{whole_text(factor)} meets the target", whole_text(factor - step)
    then = f"times {less}" if what else less
    if below_exists:
        return f"{holds}; {then} {'it ' if what else ''}does not. Both are proved."
    return f"{holds}, which is proved; {then} is outside the range of allowed noise and was not tried."


@steady
def calibrate(
    composition: Composition, wanted: Target, part: Mechanism | Collection[Mechanism] | None = None, grid: int = GRID
) -> Calibration:
    """The least factor m / grid on the variance of all noise, or of the mechanisms in `part`, that meets the target.

    Any noise of one parameter is scaled, as `Composition.scaled` does.
    """
    steps = whole(grid, "grid", 1)
    chosen = set(composition.mechanisms if part is None else [part] if isinstance(part, Mechanism) else part)
    missing = chosen - set(composition.mechanisms)
    if missing or not chosen:
        found = shown(next(iter(missing))) if missing else "an empty part"
        raise InvalidInputError(f"The part to be scaled must consist of mechanisms of the composition. Found {found}.")
    for mechanism in chosen:
        if type(mechanism)._scaled is Mechanism._scaled:
            raise InvalidInputError(f"{REFUSED_TO_SCALE} Found {shown(mechanism)}; choose a part without it.")
    scaled = Composition({m: n for m, n in composition.mechanisms.items() if m in chosen})
    kept = {m: n for m, n in composition.mechanisms.items() if m not in chosen}
    if kept:
        refuse_if_rest_fails(wanted, Composition(kept, composition.effort), "the mechanisms outside of the part")

    def at(factor: Fraction) -> Composition:
        return Composition(Counter(kept) + Counter(scaled.scaled(factor).mechanisms), composition.effort)

    return _calibration(at, wanted, steps, LARGEST_FACTOR)


def refuse_if_rest_fails(wanted: Target, rest: Any, what: str) -> None:
    """Refuse a target that what is not scaled already fails on its own, which more mechanisms never mend; say what it costs."""
    if wanted.fails(rest):
        raise AccuracyError(
            f"No factor meets the target: {what} alone already cost {wanted.cost(rest)}. Scale them too, or ask for a weaker "
            "guarantee."
        )


def _calibration(at: Callable[[Fraction], Composition], wanted: Target, steps: int, largest: int) -> Calibration:
    holds, fails, exists = questions(at, wanted.side)
    factor, step = least_on_grid(holds, fails, exists, steps, largest=largest), Fraction(1, steps)
    return Calibration(factor, step, at(factor), exists(factor - step))


_Design = TypeVar("_Design")
_Asked = Callable[[Fraction], bool]


def questions(at: Callable[[Fraction], _Design], side: Callable[[_Design], int]) -> tuple[_Asked, _Asked, _Asked]:
    """Whether a factor is proved to suffice, whether not to, and whether there is such noise: `at` refuses what is out of range.

    Each factor is asked once. Noise that there is not does not suffice, for the search; that it fails is not proved by this.
    """
    known: dict[Fraction, int] = {}

    def exists(factor: Fraction) -> bool:
        try:
            at(factor)
        except InvalidInputError:
            return False
        return True

    def asked(factor: Fraction) -> int:
        if factor not in known:
            try:
                design = at(factor)
            except InvalidInputError:
                known[factor] = 1
            else:
                known[factor] = side(design)
        return known[factor]

    return lambda factor: asked(factor) < 0, lambda factor: asked(factor) > 0, exists


@steady
def calibrate_sigma2(count: int, wanted: Target, sensitivity: int = 1, grid: int = 1000) -> Calibration:
    """The least sigma2 = m / grid for which `count` discrete Gaussians meet the target; `factor` is that sigma2."""
    copies, steps = whole(count, "count", 1), whole(grid, "grid", 1)
    DiscreteGaussian(10**6, sensitivity)  # refuses a wrong sensitivity

    def at(sigma2: Fraction) -> Composition:
        return Composition({DiscreteGaussian(sigma2, sensitivity): copies})

    return _calibration(at, wanted, steps, int(LARGEST_SIGMA2))


def least_on_grid(
    holds: _Asked, fails: _Asked, exists: _Asked, grid: int, guess: int | None = None, largest: int = LARGEST_FACTOR
) -> Fraction:
    """m / grid at which `holds`, while one step below `fails` or is none; searched from `guess`, or from 1, up to `largest`."""
    high = _from_above(holds, fails, exists, grid, grid if guess is None else guess, largest * grid)
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


def _from_above(holds: _Asked, fails: _Asked, exists: _Asked, grid: int, guess: int, largest: int) -> int:
    """The first m of a rising sequence at which m / grid `holds`; the last one tried is the largest that there is."""
    m, move = min(guess, largest), 1
    while not holds(Fraction(m, grid)):
        before, m, move = m, min(m + move, largest), 2 * move
        if exists(Fraction(before, grid)) and not exists(
            Fraction(m, grid)
        ):  # past the end of the range: go to that end
            m = largest = bisect_left(range(m), True, lo=before + 1, key=lambda k: not exists(Fraction(k, grid))) - 1
        if m == before:
            raise AccuracyError(_why_not(fails, exists, Fraction(m, grid)))
    return m


def _why_not(fails: _Asked, exists: _Asked, last: Fraction) -> str:
    """What is proved where the largest value does not hold."""
    if not exists(last):
        return (
            f"There is no such noise up to {last}, the largest value that is tried. Use a smaller sensitivity or count."
        )
    if fails(last):
        return f"{last}, the largest value that is tried, is proved not to meet the target. Ask for a weaker guarantee."
    return f"The bounds are too wide to tell whether {last}, the largest value that is tried, meets the target."
