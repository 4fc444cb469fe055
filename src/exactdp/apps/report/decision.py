"""What a committee decides on: the options, what each costs and leaves, and which one the stated objective picks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from exactdp.census.cell_noise import USUAL
from exactdp.census.margins import noise_of
from exactdp.census.pair_results import quick_overall_of
from exactdp.census.releases import Release
from exactdp.census.summary import EpsilonRow
from exactdp.census.typical_counts import SOURCE, typical_counts
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import neighbours
from exactdp.guarantees.zcdp import zcdp_epsilon
from exactdp.numbers import Number, rational, shown, whole
from exactdp.numerals import counted

if TYPE_CHECKING:
    from exactdp.optimize.best_design import BestDesign

MOST_OPTIONS = 6
_MOST_NAMED = 6
FIRST = "A, this design"
_LESS_NOISE = "Every noise variance smaller by one factor, so that zCDP\u2019s statement about A still holds."
LARGEST_COUNT = 10**12


@dataclass(frozen=True)
class Option:
    """One design: its certified epsilon at the headline's delta, zCDP's, and its margins on the full path."""

    name: str
    release: Release
    epsilon: float
    """Certified upper bound."""
    zcdp: float
    """By the optimal conversion; a bound."""
    what: str = ""
    """What the option is, in a sentence."""

    @property
    def file_stem(self) -> str:
        """How files about it are called: as the design of the report, with the option's name where it is another one."""
        return self.release.name if self.name == FIRST else f"{self.release.name}-{self.name}"

    @property
    def margins(self) -> dict[str, int]:
        """The largest 95% margin of a count at each level."""
        return {level: max(m for _, m in cell_margins(self.release, level)) for level in self.release.table}


@dataclass(frozen=True)
class Decision:
    """The options at one delta and the objective. `within`: the epsilon that may be spent; `level`: whose margin counts then."""

    delta: Fraction
    options: tuple[Option, ...]
    within: Fraction | None
    level: str
    typical: Mapping[str, int]
    """A typical count at a level, where one was given or there is a source for it."""
    source: str = ""
    """Where the counts come from that were not given."""

    def differs(self, option: Option) -> str:
        """Why an option cannot be compared with the first: it promises something else, or publishes less; empty if it can."""
        first, other = self.options[0].release, option.release
        if other.relation != first.relation:
            ways = neighbours(other.relation).briefly, neighbours(first.relation).briefly
            return f"Not compared: its guarantee is about {ways[0]}, that of A about {ways[1]}."
        units = other.unit_of_privacy, first.unit_of_privacy
        if all(units) and units[0] != units[1]:
            return f"Not compared: its guarantee protects a {units[0]}, that of A a {units[1]}."
        missing = set(first.cells) - set(other.cells)
        if missing:
            return f"Not compared: it does not publish {counted(len(missing), 'noisy answer')} that A does."
        return ""

    @property
    def compared(self) -> tuple[Option, ...]:
        """The options among which one is recommended: those that promise the same about the same answers."""
        return tuple(option for option in self.options if not self.differs(option))

    @property
    def chosen(self) -> Option | None:
        """By the objective: the least epsilon; or, within an epsilon, the least margin at the level, then the least epsilon."""
        if self.within is None:
            return min(self.compared, key=lambda option: option.epsilon)
        meeting = [option for option in self.compared if option.epsilon <= self.within]
        return min(meeting, key=lambda option: (option.margins[self.level], option.epsilon), default=None)

    @property
    def judged(self) -> tuple[Option, ...]:
        """The options whose cells are judged, and which are certified: the first and the one that is recommended."""
        chosen = self.chosen
        return self.options[:1] if chosen in (None, self.options[0]) else (self.options[0], chosen)

    def unusable(self, option: Option) -> list[tuple[str, str, int, int]]:
        """Cells of an option whose 95% margin is at least the typical count: level, query, margin, count."""
        found = []
        for level, count in self.typical.items():
            cells = cell_margins(option.release, level)
            found += [(level, query, margin, count) for query, margin in cells if margin >= count]
        return found


def cell_margins(release: Release, level: str) -> list[tuple[str, int]]:
    """The 95% margin of every query of a level on the full path."""
    queries = release.table[level].items()
    return [(query, noise_of(rho, release.noise.get((level, query), USUAL)).margin) for query, rho in queries]


class MemoQuestion(NamedTuple):
    """What a memo is asked beside the design: other designs by their names (also found by `optimize.best`), the largest epsilon,
    typical counts (None: those of the 2020 Census where the design is one of its own)."""

    against: Mapping[str, Release | BestDesign] | None = None
    within: Number | None = None
    typical: Mapping[str, Number] | None = None

    def with_option(self, name: str, found: Release | BestDesign) -> MemoQuestion:
        """The same with one more option."""
        return self._replace(against={**(self.against or {}), name: found})

    def checked(self, release: Release) -> tuple[dict[str, Release | BestDesign], Fraction | None, dict[str, int]]:
        """The same as numbers, refused where a memo could not be made of it."""
        others, limit = dict(self.against or {}), self.within
        if len(others) > MOST_OPTIONS:
            raise InvalidInputError(
                f"A memo takes at most {MOST_OPTIONS} other designs. Found {len(others)}; leave some out."
            )
        typical = typical_counts(release) if self.typical is None else _typical(release, self.typical)
        return others, None if limit is None else rational(limit, "within"), typical


def decide(release: Release, row: EpsilonRow, asked: MemoQuestion) -> Decision:
    """The options of a report: the design, the same with less noise where zCDP's statement allows it, and those given."""
    given, limit, typical = asked.checked(release)
    first = Option(FIRST, release, float(row.epsilon[1]), row.zcdp_optimal, "The design of this report.")
    options = [first]
    saving = row.saved_optimal
    if saving.saved > 0:
        less = release.scaled(saving.factor)  # proved to meet what zCDP states of A
        stated = math.nextafter(float(saving.epsilon), math.inf)
        options.append(Option("A with less noise", less, stated, zcdp_epsilon(less.rho, row.delta), _LESS_NOISE))
    options += [_option(name, other, row.delta) for name, other in given.items()]
    lowest = list(release.table)[-1]
    source = SOURCE if asked.typical is None and typical else ""
    return Decision(row.delta, tuple(options), limit, lowest, typical, source)


def _option(name: str, given: Release | BestDesign, delta: Fraction) -> Option:
    release = given if isinstance(given, Release) else given.release
    epsilon = quick_overall_of(release).epsilon(delta)[1]
    return Option(name, release, epsilon, zcdp_epsilon(release.rho, delta), _what(given))


def _what(given: Release | BestDesign) -> str:
    if isinstance(given, Release):
        return f"{given.title.removesuffix('.')}."
    kept = [f"\u201c{one.text}\u201d" for one in given.requirements]
    keeps = f", keeping {', '.join(kept[:_MOST_NAMED])}" if kept else ""
    more = f" and {len(kept) - _MOST_NAMED} more" if len(kept) > _MOST_NAMED else ""
    return f"The design with the least {given.objectives[0]} that was found{keeps}{more}. {given.statement}"


def _typical(release: Release, given: Mapping[str, Number]) -> dict[str, int]:
    for level in given:
        if level not in release.table:
            raise InvalidInputError(
                f"A typical count is for a level of the design: {', '.join(release.table)}. Found {shown(level)}."
            )
    return {level: whole(given[level], f"the typical count of {level}", 1, LARGEST_COUNT) for level in given}
