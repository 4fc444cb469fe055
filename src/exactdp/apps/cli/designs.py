"""The one grammar of what a command accounts for: DESIGN, or -m.

DESIGN is a built-in release, a budget file (TOML, CSV, JSON), or the JSON of a release or a composition as `to_json` writes it;
`-m` names noise. `--pair K,L` picks two paths of a release. Earlier spellings (`--release`, `--design`) mean the same.
Whatever it is, a command repeats it, so that a sigma that was typed for a sigma2 is noticed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from exactdp import census
from exactdp.accounting.certificates.record import record_text
from exactdp.accounting.composition import Composition
from exactdp.apps.cli import mechanism_option
from exactdp.apps.cli.mechanism_option import read_mechanisms, read_object
from exactdp.apps.cli.tables import show_facts
from exactdp.census.budget_files import read_budget
from exactdp.census.budget_json import is_json_design
from exactdp.census.composition_design import composition_design
from exactdp.census.joint import Joint
from exactdp.census.releases import Release
from exactdp.census.study import Study
from exactdp.errors import InvalidInputError
from exactdp.guarantees.neighbours import neighbours
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import shown
from exactdp.numerals import about, counted, exact

DEFAULT = "dhc-persons-us"
_HELP = "A built-in release, several joined by + (with --change), a budget file (.toml, .csv, .json) or a JSON object of exactdp."
DesignArgument = Annotated[str | None, typer.Argument(metavar="[DESIGN]", help=_HELP, show_default=False)]
OldDesignOption = Annotated[
    str | None, typer.Option("--design", "--release", metavar="DESIGN", help="The same as DESIGN.", hidden=True)
]
PairOption = Annotated[
    str | None, typer.Option("--pair", metavar="K,L", help="Only these two paths of the design, such as 13,13.")
]
ChangeOption = Annotated[
    str | None,
    typer.Option("--change", metavar="NAME", help="Of products joined by +: what differs, such as 'person replaced'."),
]
FullOption = Annotated[
    bool, typer.Option("--full", help="Of products joined by +: their full paths only, one composition.")
]
MechanismOption = Annotated[
    list[str] | None,
    typer.Option("--mechanism", "-m", metavar=mechanism_option.METAVAR, help=mechanism_option.HELP),
]
_PAIR = re.compile(r"\s*(\d{1,6})\s*,\s*(\d{1,6})\s*")
_KINDS: dict[type[Mechanism], str] = {
    DiscreteGaussian: "discrete Gaussian",
    Gaussian: "continuous Gaussian",
    DiscreteLaplace: "discrete Laplace",
}
_MOST_NAMED = 6  # kinds of noise that are listed one by one


@dataclass(frozen=True)
class Design:
    """What a command accounts for: a release over all its pairs, one pair of it, or a composition."""

    name: str
    title: str
    release: Release | None = None
    pair: tuple[int, int] | None = None
    given: Composition | None = None
    """What `-m` or a JSON file says."""
    joint: Joint | None = None
    """Several products under one change; `given` is the composition of their full paths where only these are meant."""

    @cached_property
    def composition(self) -> Composition | None:
        """The one composition that is meant; none where it is all pairs of a release."""
        if self.release is not None and self.pair is not None:
            return self.release.pair(*self.pair)
        return self.given

    @cached_property
    def curve(self) -> Composition | Study | Joint:
        """What answers for delta, epsilon and beta."""
        if self.composition is not None:
            return self.composition
        if self.joint is not None:
            return self.joint
        return self.whole("This").account()

    @property
    def rho(self) -> Fraction | float:
        """zCDP's rho."""
        if self.joint is not None and self.composition is None:
            return self.joint.rho
        return self.composition.rho if self.composition is not None else self.whole("This").rho

    def whole(self, command: str) -> Release:
        """The release, for commands about releases; a composition becomes one of a single level."""
        if self.pair is not None:
            raise InvalidInputError(f"{command} is about all pairs of a design. Found --pair; leave it out.")
        if self.release is not None:
            return self.release
        if self.joint is not None and self.given is None:
            raise InvalidInputError(
                f"{command} is about one release, or about the full paths of several (--full). Found {shown(self.name)}."
            )
        assert self.given is not None  # a design is one of the two
        return composition_design(self.given, "composition" if self.joint is None else "full-paths")

    def one(self, command: str) -> Composition:
        """The composition, for commands about one; of a release with several pairs the user must say which."""
        if self.composition is not None:
            return self.composition
        release = self.whole(command)
        if len(release.pairs) > 1:
            such = ",".join(map(str, release.proxy_pair))
            raise InvalidInputError(f"{command} takes one pair of this design, such as --pair {such}. Found none.")
        return release.pair(*release.pairs[0])

    def of_pair(self, pair: tuple[int, int]) -> Design:
        """One pair of this release."""
        assert self.release is not None
        return Design(self.name, f"{self.release.title}: pair ({pair[0]}, {pair[1]})", self.release, pair)

    @property
    def is_whole(self) -> bool:
        """Whether all pairs of a release, or all paths of several, are meant."""
        return self.composition is None

    @property
    def is_in_balls(self) -> bool:
        """Whether it is one composition of discrete Gaussians, which can be enclosed to any number of digits."""
        made = self.composition.mechanisms if self.composition is not None else {}
        return bool(made) and all(isinstance(mechanism, DiscreteGaussian) for mechanism in made)

    def facts(self) -> list[tuple[str, str]]:
        """What is accounted for: the noise, who the neighbours are, the budget."""
        rho = self.rho
        budget = f"rho = {exact(rho)} (zCDP)" if isinstance(rho, Fraction) else "no rho (zCDP) is known"
        if self.joint is not None:
            words = self.joint.words()
            if self.given is not None:
                words[-1] = "bound", f"the full paths only, one of {self.joint.count:,}"
            return [*words, ("budget", budget)]
        if self.release is None:
            composition = self.composition
            assert composition is not None
            changed = "as the sensitivities say: each answer may change by that much"
            return [("noise", _noise(composition.mechanisms)), ("neighbours", changed), ("budget", budget)]
        who = [("record", self.release.unit_of_privacy)] if self.release.unit_of_privacy else []
        changed = neighbours(self.release.relation).briefly
        if self.pair is not None:
            paths = f"a record of path {self.pair[0]} replaced by one of path {self.pair[1]}"
            if not self.pair[1]:
                paths = f"a record of path {self.pair[0]} is added or removed"
            composition = self.release.pair(*self.pair)
            return [("noise", _noise(composition.mechanisms)), ("neighbours", paths), *who, ("budget", budget)]
        pairs = len(self.release.pairs)
        how = f"{changed}: {'all ' if pairs > 1 else ''}{neighbours(self.release.relation).counted(pairs)}"
        return [("noise", _noise_of_paths(self.release)), ("neighbours", how), *who, ("budget", budget)]

    def show(self) -> None:
        """Repeat on standard output what is accounted for."""
        show_facts(self.title, self.facts())

    def record(self) -> dict[str, str]:
        """The same for JSON."""
        return {"design": self.name, "title": self.title, **dict(self.facts())}


def read_design(
    design: str | None,
    mechanisms: list[str] | None = None,
    pair: str | None = None,
    old: str | None = None,
    default: str | None = None,
    change: str | None = None,
    full: bool = False,
) -> Design:
    """What the arguments of a command name; `old` is DESIGN in the spelling of earlier versions."""
    named = [text for text in (design, old) if text is not None]
    if len(named) == 1 and not mechanisms and (change is not None or full or is_joint(named[0])):
        return _joint(named[0], change, full, pair)
    if change is not None or full:
        raise InvalidInputError("--change and --full are about products joined by +. Found them with something else.")
    if len(named) > 1 or (named and mechanisms):
        found = f"{named[0]} and {[*named[1:], *(mechanisms or ())][0]}"
        raise InvalidInputError(f"Give one DESIGN, or --mechanism, to say what was released. Found {found}.")
    if mechanisms:
        if pair is not None:
            raise InvalidInputError(
                f"--pair is about the paths of a DESIGN. Found it with --mechanism {mechanisms[0]}."
            )
        composition = read_mechanisms(mechanisms)
        return Design("composition", _title(composition), given=composition)
    if not named and default is None:
        found = f"--pair {pair} alone" if pair else "none of them"
        raise InvalidInputError(
            f"Give a DESIGN (a built-in release, a budget file, JSON) or --mechanism to say what was released. Found {found}."
        )
    return _of(_loaded(named[0] if named else str(default)), pair)


def is_joint(text: str) -> bool:
    """Whether a text names several products."""
    return "+" in text and all(name.strip() in census.release_names() for name in text.split("+"))


def _joint(text: str, change: str | None, full: bool, pair: str | None) -> Design:
    """Several products under one change."""
    if change is None:
        names = ", ".join(census.change_names())
        raise InvalidInputError(f"Products together need --change, one of: {names}. Found none for {shown(text)}.")
    if pair is not None:
        raise InvalidInputError(f"Products together have --full for their full paths. Found --pair {shown(pair)}.")
    found = census.joint(text, change)
    title = f"Products of the 2020 Census together, change: {found.change.name}"
    return Design(found.name, title, given=found.full if full else None, joint=found)


def _loaded(text: str) -> Release | Composition:
    if text in census.release_names():
        return census.release(text)
    if text.lstrip().startswith("{"):
        return read_mechanisms([text])
    if not Path(text).suffix:
        raise InvalidInputError(
            f"DESIGN is a .toml, .csv or .json file, or one of {', '.join(census.release_names())}. Found {shown(text)}."
        )
    if Path(text).suffix.lower() != ".json" or is_json_design(record_text(text)):
        return read_budget(text)
    found = read_object(Path(text))
    if isinstance(found, Mechanism):
        return Composition([found])
    if isinstance(found, (Release, Composition)):
        return found
    raise InvalidInputError(
        f"A JSON design is a Release or a Composition. Found a {type(found).__name__} in {shown(text)}."
    )


def _of(found: Release | Composition, pair: str | None) -> Design:
    if isinstance(found, Release):
        whole = Design(found.name, found.title, release=found)
        return whole if pair is None else whole.of_pair(read_pair(pair))
    if pair is not None:
        raise InvalidInputError(f"--pair is about the paths of a release. Found a composition and --pair {pair}.")
    return Design("composition", _title(found), given=found)


def read_release(text: str) -> Release:
    """A release by name, or from a budget or JSON file."""
    found = _loaded(text)
    return found if isinstance(found, Release) else Design(text, text, given=found).whole("This command")


def read_pair(text: str) -> tuple[int, int]:
    """Two numbers of allocations."""
    numbers = _PAIR.fullmatch(text)
    if numbers is None:
        raise InvalidInputError(f"--pair takes two allocations such as 13,13. Found {text!r}.")
    return int(numbers[1]), int(numbers[2])


def _title(composition: Composition) -> str:
    return f"Composition of {counted(sum(composition.mechanisms.values()), 'mechanism')}"


def described(mechanism: Mechanism) -> str:
    """A mechanism in words: the parameter, for Gaussian noise as variance and as standard deviation, and the sensitivity."""
    if isinstance(mechanism, (DiscreteGaussian, Gaussian)):
        parameter = f"sigma2 = {exact(mechanism.sigma2)} ({_sigma(mechanism.sigma2)})"
    elif isinstance(mechanism, DiscreteLaplace):
        parameter = f"scale = {exact(mechanism.scale)}"
    else:
        return shown(mechanism)
    return f"{_KINDS[type(mechanism)]}, {parameter}, sensitivity {exact(Fraction(mechanism.sensitivity))}"


def _sigma(sigma2: Fraction) -> str:
    roots = math.isqrt(sigma2.numerator), math.isqrt(sigma2.denominator)
    root = Fraction(*roots)
    if root * root == sigma2 and "/" not in exact(root):
        return f"sigma = {exact(root)}"
    return f"sigma {about(math.sqrt(sigma2))}"


def _noise(mechanisms: Mapping[Mechanism, int]) -> str:
    if len(mechanisms) <= _MOST_NAMED:
        return "; ".join(f"{count} x {described(mechanism)}" for mechanism, count in mechanisms.items())
    return f"{counted(sum(mechanisms.values()), 'mechanism')}: {_range(mechanisms)}"


def _noise_of_paths(release: Release) -> str:
    paths = list(release.allocations.values())
    everything: dict[Mechanism, int] = {mechanism: 1 for path in paths for mechanism in path.mechanisms}
    queries = sorted({sum(path.mechanisms.values()) for path in paths})
    each = str(queries[0]) if len(queries) == 1 else f"{queries[0]} to {queries[-1]}"
    return f"{counted(len(paths), 'path')} of {each} noisy answers; {_range(everything)}"


def _range(mechanisms: Mapping[Mechanism, int]) -> str:
    """The kinds of noise, each from its least parameter to its largest."""
    parts = []
    for kind, name in _KINDS.items():
        found: list[Any] = [m for m in mechanisms if isinstance(m, kind)]
        if not found:
            continue
        if kind is DiscreteLaplace:
            ends = sorted({m.scale for m in found})
            told = f"scale = {_ends(ends)}"
        else:
            ends = sorted({m.sigma2 for m in found})
            sigmas = [_sigma(end).removeprefix("sigma ").removeprefix("= ") for end in (ends[0], ends[-1])]
            told = f"sigma2 = {_ends(ends)} (sigma {' to '.join(dict.fromkeys(sigmas))})"
        sensitivities = sorted({m.sensitivity for m in found})
        parts.append(f"{name}, {told}, sensitivity {_ends(list(map(Fraction, sensitivities)))}")
    rest = [m for m in mechanisms if not isinstance(m, tuple(_KINDS))]
    return "; ".join([*parts, *(shown(m) for m in rest)])


def _ends(values: list[Fraction]) -> str:
    told = [text if "/" not in (text := exact(value)) else about(value) for value in (values[0], values[-1])]
    return " to ".join(dict.fromkeys(told))
