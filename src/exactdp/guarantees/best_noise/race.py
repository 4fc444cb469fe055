"""A race of noises: every family calibrated to one target, and ranked by the error that it makes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from exactdp.accounting.composition import Composition
from exactdp.arithmetic_state import steady
from exactdp.errors import AccuracyError, AccuracyWarning, InvalidInputError
from exactdp.guarantees.best_noise.bounded_families import (
    MOST_BOUND,
    BoundedFamily,
    Ends,
    allowed,
    factor_within,
)
from exactdp.guarantees.best_noise.families import FAMILIES, GAUSSIAN, NoiseFamily
from exactdp.guarantees.best_noise.lower_bound import Cost
from exactdp.guarantees.best_noise.noise_error import NoiseError, noise_error, table_error
from exactdp.guarantees.best_noise.optimum import OptimalNoise, optimal_noise
from exactdp.guarantees.calibration import MeetsAll, MeetsTradeOff, Target, least_on_grid, questions
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.laplace import Laplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.notebooks import repr_html
from exactdp.numbers import exact_repr, shown, whole
from exactdp.numerals import DOWN, rounded

_DIGITS = (4, 3, 2)  # significant ones of a factor; fewer where bounds are too wide to tell neighbours apart
_DECADES = (-15, 21)
BEST_TABLE = "best table found"
CONTINUOUS = (Gaussian, Laplace)
_START = NoiseFamily("Gaussian", Gaussian)  # the quickest to calibrate; all others are looked for from there on
RANKS = ("variance", "absolute", "margin", "largest")
"""What noises are ranked by: variance, mean absolute error, 95% margin, largest error."""


@dataclass(frozen=True)
class Contestant:
    """A family at the least noise that is proved to meet the target; `error` is the mean over all counts.

    `factor` is what the variances of the template are multiplied with, of a few significant digits; one `step` less is proved to
    fail the target, unless `below_exists` is False: then that noise is out of range and was not tried. A table that was found has
    no step: what is proved of it is how far from the best possible it is at most.
    """

    __repr__ = exact_repr

    family: str
    factor: Fraction
    step: Fraction | None
    composition: Composition
    error: NoiseError
    below_exists: bool = True

    def rank(self, by: str) -> Fraction | float:
        """The upper bound of what it is ranked by."""
        values: dict[str, Fraction | float] = {
            "variance": self.error.variance[1],
            "absolute": self.error.absolute[1],
            "margin": self.error.margin,
            "largest": self.error.largest,
        }
        return values[by]


@steady
@dataclass(frozen=True)
class Race:
    """Families at an equal guarantee, the best first; `refused` says why others are not among them.

    `optimum` is there for counts of one kind: the best table found, which is among the runners, and a bound of all noise.
    """

    _repr_html_ = repr_html
    __repr__ = exact_repr

    wanted: Target
    template: Composition
    by: str
    runners: tuple[Contestant, ...]
    refused: tuple[tuple[str, str], ...]
    optimum: OptimalNoise | None

    def excess(self, runner: Contestant) -> Fraction | float | None:
        """By how much of the best possible a runner is worse than that, at most: in mean absolute error where that ranks, else in
        variance. None where nothing is proved of it: the bound is about noise of whole numbers."""
        if self.optimum is None or any(isinstance(m, CONTINUOUS) for m in runner.composition.mechanisms):
            return None
        return self.optimum.excess(runner.rank(self.optimum.cost.value))

    @property
    def statement(self) -> str:
        """What is proved of all noise, in a sentence or two; empty where nothing is."""
        return "" if self.optimum is None else str(self.optimum)


@steady
def race(
    template: Composition | Mechanism,
    wanted: Target,
    *,
    by: str = "variance",
    families: Iterable[NoiseFamily] = FAMILIES,
    optimum: bool = True,
    bound: int | None = None,
) -> Race:
    """Replace the noise of a composition by that of each family, as much as the target takes, and rank them.

    The template says how many counts there are, how sensitive each is, and how their variances are to each other: k counts of
    sensitivity 1 are `k * DiscreteGaussian(1)`. One factor on all variances is calibrated for each family: it is proved to meet
    the target, and a little less is proved not to. `bound` is the largest error of noise that ends (`BOUNDED_FAMILIES`), up
    to 100; without it such noise ends where the target hardly notices.
    """
    if by not in RANKS:
        raise InvalidInputError(f"Noises are ranked by {', '.join(RANKS)}. Found {shown(by)}.")
    composition = template if isinstance(template, Composition) else Composition([template])
    counts = _counts(composition)
    ends = Ends.of(wanted, sum(counts.values()), None if bound is None else whole(bound, "bound", 1, MOST_BOUND))
    runners, refused = [], []
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", AccuracyWarning
        )  # a target is proved to hold or to fail, however wide bounds are
        first = _run(_START, counts, wanted, composition, Fraction(1)).factor
        starts = {GAUSSIAN: first}
        for family in families:
            start = starts.get(family.shape, first)
            try:
                if isinstance(family, BoundedFamily):
                    runners.append(_run_bounded(family, ends, counts, wanted, composition, start))
                else:
                    runners.append(_run(family, counts, wanted, composition, start))
                starts[family.shape] = runners[-1].factor
            except (AccuracyError, InvalidInputError) as error:  # the others race all the same
                refused.append((family.name, str(error)))
        best = _optimum(counts, wanted, by) if optimum else None
    if best is not None and best.table is not None:
        runners.append(_found(best, counts))
    runners.sort(key=lambda one: one.rank(by))
    return Race(wanted, composition, by, tuple(runners), tuple(refused), best)


def _optimum(counts: dict[tuple[Fraction, int], int], wanted: Target, by: str) -> OptimalNoise | None:
    """The best noise of counts of one kind, under a target for which it is looked for."""
    if len(counts) > 1 or isinstance(wanted, (MeetsTradeOff, MeetsAll)):
        return None
    (((_, sensitivity), count),) = counts.items()
    return optimal_noise(count, wanted, sensitivity, Cost.ABSOLUTE if by == "absolute" else Cost.VARIANCE)


def _found(best: OptimalNoise, counts: dict[tuple[Fraction, int], int]) -> Contestant:
    ((variance, _),) = counts
    assert best.table is not None
    error = table_error(best.table)
    composition = Composition({best.table.mechanism(best.sensitivity): best.count})
    return Contestant(BEST_TABLE, error.variance[1] / variance, None, composition, error)


def counts_template(count: int, sensitivity: int = 1) -> Composition:
    """The template of so many counts of one sensitivity."""
    return Composition({DiscreteGaussian(1, sensitivity): whole(count, "count", 1)})


def _counts(template: Composition) -> dict[tuple[Fraction, int], int]:
    """How many counts there are of each variance and sensitivity."""
    result: dict[tuple[Fraction, int], int] = {}
    for noise, count in template.mechanisms.items():
        if not isinstance(noise, (DiscreteGaussian, Gaussian)) or noise.sensitivity != int(noise.sensitivity):
            raise InvalidInputError(
                "A race is about counts whose noise is given as Gaussian, of a whole sensitivity: other noise takes its place. "
                f"Found {shown(noise)}."
            )
        key = noise.sigma2, int(noise.sensitivity)
        result[key] = result.get(key, 0) + count
    return result


def _run(
    family: NoiseFamily, counts: dict[tuple[Fraction, int], int], wanted: Target, template: Composition, start: Fraction
) -> Contestant:
    """A family at its least noise, looked for from a factor on."""
    for digits in _DIGITS:
        try:
            place, step, at, exists = _least(family, counts, wanted, template, start, digits)
            break
        except AccuracyError:
            if digits == _DIGITS[-1]:
                raise
    composition, total = at(place), sum(counts.values())
    each = [noise_error(m).times(Fraction(n, total)) for m, n in composition.mechanisms.items()]
    error = each[0]
    for more in each[1:]:
        error += more
    return Contestant(family.name, place, step, composition, error, exists)


def _run_bounded(
    family: BoundedFamily,
    ends: Ends,
    counts: dict[tuple[Fraction, int], int],
    wanted: Target,
    template: Composition,
    start: Fraction,
) -> Contestant:
    """A family of tables: infinite losses at their ends may be more than the target allows."""
    if not allowed(wanted):
        raise AccuracyError("A table ends, and its ends tell the data sets apart: no table meets a mu.")
    ended = family.ended(ends)
    if ends.bound is not None:
        start = factor_within(ends.bound, _designs(ended, counts, template), wanted, start)
    return _run(ended, counts, wanted, template, start)


def _designs(
    family: NoiseFamily, counts: dict[tuple[Fraction, int], int], template: Composition
) -> Callable[[Fraction], Composition]:
    """What a factor on the variances makes of the counts."""

    def at(factor: Fraction) -> Composition:
        noises = {family.of_variance(factor * variance, d): n for (variance, d), n in counts.items()}
        return Composition(noises, template.effort)

    return at


def _least(
    family: NoiseFamily,
    counts: dict[tuple[Fraction, int], int],
    wanted: Target,
    template: Composition,
    start: Fraction,
    digits: int,
) -> tuple[Fraction, Fraction, Callable[[Fraction], Composition], bool]:
    """The least factor of so many digits, the step to the one below it, what a factor makes, whether that one exists."""
    scale, at = DecimalScale(digits), _designs(family, counts, template)
    holds, fails, exists = questions(lambda place: at(scale.value(int(place))), wanted.side)
    place = least_on_grid(holds, fails, exists, 1, scale.place(start), scale.last)
    factor, below = scale.value(int(place)), scale.value(int(place) - 1)
    return factor, factor - below, at, exists(place - 1)


@dataclass(frozen=True)
class DecimalScale:
    """The decimals of so many significant digits in their order, counted from 1 on.

    >>> scale = DecimalScale(2)
    >>> [float(scale.value(scale.place(Fraction(99, 10)) + i)) for i in (-1, 0, 1, 2)]
    [9.8, 9.9, 10.0, 11.0]
    """

    digits: int

    @property
    def last(self) -> int:
        """The place of the largest."""
        return self._per_decade * (_DECADES[1] - _DECADES[0])

    def value(self, place: int) -> Fraction:
        """The decimal at a place."""
        decade, rest = divmod(place - 1, self._per_decade)
        return (self._least + rest) * Fraction(10) ** (decade + _DECADES[0] + 1 - self.digits)

    def place(self, value: Fraction) -> int:
        """The place of the largest decimal up to a value."""
        power = rounded(value, self.digits, DOWN).adjusted()
        rest = int(value / Fraction(10) ** (power + 1 - self.digits)) - self._least
        return (power - _DECADES[0]) * self._per_decade + rest + 1

    @property
    def _least(self) -> int:
        return int(10 ** (self.digits - 1))

    @property
    def _per_decade(self) -> int:
        return 9 * self._least
