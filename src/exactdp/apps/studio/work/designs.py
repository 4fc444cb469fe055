"""Designs as the page edits them, and as releases: every number exact, every slip named with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from exactdp.apps.studio.limits import AT_MOST
from exactdp.apps.studio.schema.answers import (
    UNTIMED,
    AllPairs,
    BudgetFiles,
    CheckedDesign,
    DesignAnswer,
    OpenedDesign,
)
from exactdp.census.budget_csv import budget_csv
from exactdp.census.budget_design import Draft, checked, single_spaced
from exactdp.census.budget_files import budget_toml, parse_budget
from exactdp.census.grids import Grids
from exactdp.census.releases import Release
from exactdp.census.typical_counts import SOURCE, typical_counts
from exactdp.errors import InvalidInputError
from exactdp.numbers import positive, shown

Record = dict[str, Any]
UNNUMBERED = 999_998
"""From this number on paths were given by their bypassed levels only."""
LONG_FILE = 200_000
"""Characters of a budget file; one of so many takes a third of a second."""
LARGEST_SCALE = Fraction(10**6)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@contextmanager
def about(field: str) -> Iterator[None]:
    """What is refused in here is about this field of the question, unless it is known to be about another place."""
    try:
        yield
    except InvalidInputError as error:
        error.where = error.where or {"field": field}
        raise


def read_grids(epsilons: Sequence[Any] = (), deltas: Sequence[Any] = (), alphas: Sequence[Any] = ()) -> Grids:
    """The grids of a question, checked."""
    with about("epsilon"):
        found = Grids.read(epsilons)
    with about("delta"):
        found = Grids.read(found.epsilons, deltas)
    with about("alpha"):
        return Grids.read(found.epsilons, found.deltas, alphas)


def design_of(release: Release) -> Record:
    """A release as an editable design; refused where the page could not show what the design says."""
    if not release.is_usual:
        raise InvalidInputError(
            "The studio edits designs in which one record is replaced and every query has discrete Gaussian noise on single "
            f"counts. Found others in {shown(release.name)}; use the commands of exactdp for it."
        )
    return {
        "name": release.name,
        "title": release.title,
        "source": release.source,
        "unit_of_privacy": release.unit_of_privacy,
        "levels": [
            {"name": level, "queries": [{"name": query, "rho": str(rho)} for query, rho in queries.items()]}
            for level, queries in release.table.items()
        ],
        "paths": [{"number": number, "bypassed": list(levels)} for number, levels in release.bypassed.items()],
        "scale": "1",
    }


def release_of(design: Mapping[str, Any], paths: Sequence[Mapping[str, Any]] | None = None) -> Release:
    """The release that a design describes, its scale applied; `paths` stand in for the design's own."""
    chosen = design["paths"] if paths is None else paths
    levels = [
        (level["name"], [(query["name"], _as_written(query["rho"])) for query in level["queries"]])
        for level in design["levels"]
    ]
    settings = {key: design[key] for key in ("title", "source", "unit_of_privacy") if design[key]}
    settings["full_path"] = not chosen or any(not path["bypassed"] for path in chosen)  # the page lists every path
    draft = Draft(settings, levels, [(str(path["number"]), path["bypassed"]) for path in chosen])
    try:
        release = checked(draft, _printable(design["name"]), "")
    except InvalidInputError as error:
        names = [name for level, queries in levels for name in (level, *(query for query, _ in queries))]
        as_written = {single_spaced(name): name for name in names}
        error.where = error.where and {kind: as_written[name] for kind, name in error.where.items()}
        raise
    with about("scale"):
        return _scaled(release, draft, design["scale"])


def _scaled(release: Release, draft: Draft, given: object) -> Release:
    scale = positive(given, "scale")
    if not 1 / LARGEST_SCALE <= scale <= LARGEST_SCALE:
        raise InvalidInputError(
            f"scale must be between {float(1 / LARGEST_SCALE):g} and {float(LARGEST_SCALE):g}. Found {shown(given)}."
        )
    if scale == 1:
        return release
    exact = [
        (level, [(query, str(rho / scale)) for query, rho in queries.items()])
        for level, queries in release.table.items()
    ]
    try:
        return checked(replace(draft, levels=exact), release.name, "")
    except InvalidInputError as error:
        raise InvalidInputError(f"With the scale {shown(scale)}: {error}") from None


def _as_written(rho: object) -> object:
    """A JSON number with a fraction as the decimal that it prints as."""
    return str(rho) if isinstance(rho, float) else rho


def _printable(name: str) -> str:
    result = single_spaced(name) or "design"
    if not result.isprintable():
        raise InvalidInputError(f"The name of a design must be printable. Found {shown(ascii(name))}.")
    return result


def chosen_pair(design: Mapping[str, Any], pair: Sequence[Any] | None) -> tuple[Release, tuple[int, int]]:
    """A release with the two paths that were asked for, and their numbers; without a choice, the full path twice."""
    paths: Sequence[Mapping[str, Any]] = design["paths"] or [{"number": 1, "bypassed": []}]
    if pair is None:
        fewest = min(paths, key=lambda p: (len(p["bypassed"]), p["number"]))
        only = int(fewest["number"])
        return release_of(design, [fewest]), (only, only)
    known = {path["number"]: path for path in paths}
    wanted: list[Mapping[str, Any]] = []
    for i, reference in enumerate(pair):
        if isinstance(reference, list):
            wanted.append({"number": UNNUMBERED + i, "bypassed": reference})
        elif reference in known:
            wanted.append(known[reference])
        else:
            raise InvalidInputError(
                f"A path is one of {', '.join(map(str, sorted(known)))}, or a list of bypassed levels. Found {reference}."
            )
    distinct = {path["number"]: path for path in wanted}
    first, second = (int(path["number"]) for path in wanted)
    return release_of(design, list(distinct.values())), (first, second)


def described(release: Release) -> DesignAnswer:
    """A design with what follows from it."""
    _few(release)
    return {"design": design_of(release), **all_pairs(release)}


def opened(release: Release) -> OpenedDesign:
    """A design to be opened, with typical counts where there is a source for them."""
    typical = {level: str(count) for level, count in typical_counts(release).items()}
    return {**described(release), "typical": typical, "typical_source": SOURCE if typical else ""}


def all_pairs(release: Release) -> AllPairs:
    """What is known of all pairs without any allocation; the full path bypasses nothing, or the fewest levels."""
    count, full = len(release.bypassed), min(release.bypassed, key=lambda n: (len(release.bypassed[n]), n))
    return {"pairs": count * (count + 1) // 2, "rho": str(release.rho), "full_path": full}


def _few(release: Release) -> None:
    cells = sum(map(len, release.table.values()))
    for what, found, most in (
        ("levels", len(release.table), AT_MOST.levels),
        ("queries in a level", max(map(len, release.table.values())), AT_MOST.queries),
        ("budgets", cells, AT_MOST.cells),
        ("directed paths", len(release.bypassed), AT_MOST.paths),
    ):
        if found > most:
            raise InvalidInputError(
                f"The studio takes at most {most} {what}. Found {found}; use the commands of exactdp for a larger design."
            )


def parse(question: Record) -> CheckedDesign:
    """The design in the text of a TOML or CSV budget file."""
    try:
        content = question["text"].encode()
    except UnicodeEncodeError:
        raise InvalidInputError(
            "A budget file must be a text in UTF-8. Found half of a character; save it again."
        ) from None
    return {**described(parse_budget(content, question["file_name"])), **UNTIMED}


def is_long_file(question: Record) -> bool:
    """Whether to read a budget file takes long."""
    return len(question["text"]) > LONG_FILE


def check(question: Record) -> CheckedDesign:
    """A design with its numbers as exact fractions and its scale applied, or what is wrong with it."""
    return {**described(release_of(question["design"])), **UNTIMED}


def export(question: Record) -> BudgetFiles:
    """The texts of TOML and CSV budget files that read back as the same design."""
    release = release_of(question["design"])
    csv: str | None
    try:
        csv, remark = budget_csv(release), ""
    except InvalidInputError as error:
        csv, remark = None, str(error)
    stem = file_stem(release.name)
    return {"toml": budget_toml(release), "csv": csv, "remark": remark, "file_name": stem, **UNTIMED}


def file_stem(name: str) -> str:
    """A name that is safe in a file name."""
    return _UNSAFE.sub("-", name).strip("-.")[:80] or "design"
