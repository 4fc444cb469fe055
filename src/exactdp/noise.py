"""Noise for a design: OpenDP's exact discrete Gaussian on a table of counts, and a statement of what was drawn.

No sampler is written here. OpenDP takes the root of sigma2 as a double and draws N_Z(0, scale^2), scale being exactly that
double, in rational arithmetic with randomness of the operating system. A double seldom is the root of a given sigma2, so the
noise drawn differs from the design's in the sixteenth digit, and the guarantee is stated for the noise drawn: where noise is
discrete, a little more of it is not always a little more private.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

from exactdp.census.releases import Allocation, Release
from exactdp.composition import Bounds, Composition
from exactdp.errors import InvalidInputError, LatticeTooFineError, MissingExtraError
from exactdp.files import write_text
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, positive, rational, shown
from exactdp.records import Certificate, certify

LARGEST_COUNT = 1 << 62
_OLDEST = (0, 14, 2)  # before it OpenDP's samplers were biased by a faulty division (opendp/opendp issue 2638)
_CHUNK = 1 << 18  # numbers that one call of OpenDP gets
_WHOLE = re.compile(r"\+?[0-9]{1,19}")
_COLUMNS = ("level", "query", "count")

Sampler = Callable[[Sequence[int], float], list[int]]
"""Counts and a scale to the counts with noise, independent for each of them."""


def scale_for(sigma2: Number) -> float:
    """The smallest double whose square, taken exactly, is at least `sigma2`.

    >>> scale_for(4), Fraction(scale_for(2)) ** 2 > 2, Fraction(math.nextafter(scale_for(2), 0)) ** 2 < 2
    (2.0, True, True)
    """
    wanted = positive(sigma2, "sigma2")
    scale = math.sqrt(wanted)
    while Fraction(scale) ** 2 < wanted:
        scale = math.nextafter(scale, math.inf)
    while Fraction(below := math.nextafter(scale, 0.0)) ** 2 >= wanted:
        scale = below
    return scale


def drawn_sigma2(sigma2: Number) -> Fraction:
    """The exact noise parameter of what `add_noise` draws: at least `sigma2`, by less than one part in 10^15."""
    return Fraction(scale_for(sigma2)) ** 2


def opendp_version() -> str:
    """The version of OpenDP, refused where it is missing or older than the repair of its samplers."""
    try:
        version = metadata.version("opendp")
    except metadata.PackageNotFoundError:
        raise MissingExtraError("Noise from OpenDP", "opendp") from None
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise MissingExtraError(
            f"Noise from OpenDP {oldest} or newer (found {version}, whose noise is biased)", "opendp"
        )
    return version


def opendp_noise(counts: Sequence[int], scale: float) -> list[int]:
    """The counts plus OpenDP's independent draws of N_Z(0, scale^2), the double `scale` taken as the exact number it is.

    A sum beyond 64 bits is moved to the nearest 64-bit integer, which is post-processing.
    """
    opendp_version()
    try:
        from opendp import domains, measurements, metrics, mod
    except ImportError:
        raise MissingExtraError("Noise from OpenDP", "opendp") from None
    mod.enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    mechanism = measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale=scale)
    result: list[int] = []
    for start in range(0, len(counts), _CHUNK):
        result += map(int, mechanism(list(counts[start : start + _CHUNK])))
    return result


def add_noise(counts: Sequence[int], sigma2: Number) -> list[int]:
    """Each count plus discrete Gaussian noise of its own, drawn by OpenDP.

    Guarantee (OpenDP's, whose sampler this is): the noises are independent draws of N_Z(0, s), s = drawn_sigma2(sigma2). For
    counts of sensitivity 1 account for DiscreteGaussian(s), not for DiscreteGaussian(sigma2): s is larger by at most one part in
    10^15, and that is not always more private. There is no seed.
    """
    whole = [_count(value) for value in counts]
    return opendp_noise(whole, scale_for(sigma2))


def _count(value: object) -> int:
    number = rational(value, "A count")
    if number.denominator != 1 or abs(number) > LARGEST_COUNT:
        raise InvalidInputError(f"A count must be a whole number of at most 2^62 in size. Found {shown(value)}.")
    return number.numerator


@dataclass(frozen=True)
class CountTable:
    """A table of counts as it was read: the header, the rows as texts, and what each row counts."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    places: tuple[tuple[str, str], ...]
    """The level and the query of each row."""
    counts: tuple[int, ...]


def read_counts(path: str | os.PathLike[str], allocation: Allocation) -> CountTable:
    """The table of a CSV file with the columns level, query, count and any further ones, which tell the cells of a query apart.

    Guarantee: each row names a level and a query of the allocation, each of these has a row, no cell is there twice, and every
    count is a whole number from 0 on; anything else is refused in one sentence.
    """
    content = Path(path).read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(f"Counts must be encoded in UTF-8. Found other bytes in line {line}.") from None
    return parse_counts(text, allocation)


def parse_counts(text: str, allocation: Allocation) -> CountTable:
    """`read_counts` for a text that is already in memory."""
    lines = _lines(text)
    header = tuple(next(lines, (0, [""]))[1])
    _check_header(header)
    level, query, count = (header.index(name) for name in _COLUMNS)
    rows, places, counts, known = [], [], [], set()
    for number, row in lines:
        if len(row) != len(header):
            raise InvalidInputError(
                f"Line {number} must have {len(header)} columns, as the header has. Found {len(row)}; "
                "put a text with a comma in quotation marks."
            )
        place = " ".join(row[level].split()), " ".join(row[query].split())
        _check_place(place, allocation, number)
        cell = (*place, *(row[i].strip() for i in range(len(row)) if i not in (level, query, count)))
        if cell in known:
            raise InvalidInputError(
                f"Each cell must be there once. Found {shown(', '.join(cell))} again in line {number}; "
                "remove it, or add a column that tells the cells apart."
            )
        known.add(cell)
        rows.append(tuple(row))
        places.append(place)
        counts.append(_written_count(row[count], number))
    _check_complete(set(places), allocation)
    return CountTable(header, tuple(rows), tuple(places), tuple(counts))


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InvalidInputError(f"Line {reader.line_num} is not valid CSV: {error}.") from None


def _check_header(header: tuple[str, ...]) -> None:
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
        raise InvalidInputError(
            f"The header must have the columns level, query and count. Found {shown(','.join(header)) or 'nothing'}; "
            f"{missing[0]} is missing."
        )
    for name, times in Counter(header).items():
        if times > 1 or not name.strip():
            raise InvalidInputError(f"The columns must have different names. Found {shown(name) or 'an empty one'}.")
    if "noisy" in header:
        raise InvalidInputError(
            "A column cannot be called noisy, which is written by this command. Found one; rename it."
        )


def _check_place(place: tuple[str, str], allocation: Allocation, number: int) -> None:
    level, query = place
    if level not in allocation.table:
        skipped = f" (allocation {allocation.number} bypasses it)" if level in allocation.bypassed else ""
        raise InvalidInputError(
            f"A level must be one of {_listed(allocation.table)}. Found {shown(level) or 'nothing'}{skipped} in line {number}."
        )
    if query not in allocation.table[level]:
        raise InvalidInputError(
            f"A query of level {shown(level)} must be one of {_listed(allocation.table[level])}. "
            f"Found {shown(query) or 'nothing'} in line {number}."
        )


def _check_complete(places: set[tuple[str, str]], allocation: Allocation) -> None:
    for level, queries in allocation.table.items():
        for query in queries:
            if (level, query) not in places:
                raise InvalidInputError(
                    "Each query of the design must have rows, cells that count nothing included. "
                    f"Found none for level {shown(level)}, query {shown(query)}."
                )


def _written_count(text: str, number: int) -> int:
    if not _WHOLE.fullmatch(text.strip()) or int(text) > LARGEST_COUNT:
        raise InvalidInputError(
            f"A count must be a whole number from 0 to 2^62. Found {shown(text) or 'nothing'} in line {number}."
        )
    return int(text)


def _listed(names: Mapping[str, object]) -> str:
    texts = [shown(name) for name in names]
    return ", ".join(texts if len(texts) <= 20 else [*texts[:19], "..."])


@dataclass(frozen=True)
class NoisyTable:
    """A table with noise, ready to be written: its CSV text, what was drawn, and the guarantee."""

    text: str
    statement: Mapping[str, Any]
    certificate: Certificate | None
    epsilon: Bounds
    """Certified bounds of epsilon for the noise that was drawn."""

    def save(self, output: str | os.PathLike[str]) -> list[Path]:
        """Write the table, its certificate and its statement; returns their paths, the table's first.

        Guarantee: no file that is there is altered. All are written or none, the table last.
        """
        paths = output_paths(output)
        contents = {paths[2]: json.dumps(self.statement, indent=1, ensure_ascii=False) + "\n"}
        if self.certificate is not None:
            contents[paths[1]] = self.certificate.to_json()
        contents[paths[0]] = self.text
        check_outputs(output)
        begun: list[Path] = []
        try:
            for path, text in contents.items():
                begun.append(path)
                write_text(path, text)
        except BaseException:
            for path in begun:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            raise
        return [path for path in paths if path in contents]


def output_paths(output: str | os.PathLike[str]) -> tuple[Path, Path, Path]:
    """The table, its certificate and its statement: noisy.csv, noisy.certificate.json, noisy.noise.json."""
    table = Path(output)
    if table.suffix.lower() != ".csv":
        raise InvalidInputError(f"The table with noise must be a .csv file. Found {shown(table.name) or 'a folder'}.")
    return table, table.with_suffix(".certificate.json"), table.with_suffix(".noise.json")


def check_outputs(output: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Refuse outputs that are there already, above all the inputs themselves, also through links."""
    for path in output_paths(output):
        for source in inputs:
            if path.exists() and Path(source).exists() and path.samefile(source):
                raise InvalidInputError(
                    f"The output must be another file than the input. Found {shown(path)} for both."
                )
        if os.path.lexists(path):
            raise InvalidInputError(
                f"The output must not be there yet: a second draw of the same counts would spend the budget again. "
                f"Found {shown(path)}; move it away, or name another."
            )


def release_table(
    design: Release, table: CountTable, allocation: int | None = None, delta: Number = "1e-10", digits: int = 30
) -> NoisyTable:
    """The table with the noise of an allocation of the design (the full path unless told), drawn once.

    The column `count` is replaced by `noisy`, which is the only column to depend on the counts. Order, rows and all other columns
    stay.

    Guarantee: the noise is that of `add_noise`, independent in each row. If each record counts in at most one cell of every
    query at every level, the release of the noisy column is (epsilon.upper, delta)-differentially private when a record that
    stays within the allocation's paths is replaced; the certificate says so to `digits` digits, for the noise drawn if that has a
    lattice, otherwise for the design's own noise (the statement tells which).
    """
    chosen = chosen_allocation(design, allocation)
    asked = design.pair(chosen.number, chosen.number)
    drawn = Composition({DiscreteGaussian(drawn_sigma2(m.sigma2)): n for m, n in asked.discrete_gaussians.items()})
    certificate = _certificate((drawn, asked), delta, digits)
    epsilon = drawn.epsilon_bounds(delta)
    text = _as_csv(table, _draw(table, chosen))
    guarantee = {
        "delta": str(rational(delta, "delta")),
        "epsilon_at_least": epsilon.lower,
        "epsilon_at_most": epsilon.upper,
        "certificate_is_of": _whose(certificate, drawn),
        "covers": _covers(design, chosen),
    }
    statement = {
        "format": "exactdp noise",
        "version": 1,
        "design": {"name": design.name, "title": design.title, "fingerprint": design.fingerprint},
        "allocation": chosen.number,
        "bypassed": list(chosen.bypassed),
        "sampler": f"OpenDP {opendp_version()}, make_gaussian on vectors of 64-bit integers",
        "sha256_of_the_noisy_table": hashlib.sha256(text.encode()).hexdigest(),
        "noise": _noise_of(table, chosen),
        "guarantee": guarantee,
    }
    return NoisyTable(text, statement, certificate, epsilon)


def chosen_allocation(design: Release, number: int | None) -> Allocation:
    """The allocation of that number, the full path if there is none given."""
    wanted = design.full_path if number is None else number
    if wanted not in design.allocations:
        design.pair(wanted, wanted)  # its error says which allocations there are
    return design.allocations[wanted]


def _certificate(compositions: Sequence[Composition], delta: Number, digits: int) -> Certificate | None:
    """A certificate of the first composition whose lattice is not too fine."""
    for composition in compositions:
        with suppress(LatticeTooFineError):
            return certify(composition, delta=delta, digits=digits)
    return None


def _whose(certificate: Certificate | None, drawn: Composition) -> str:
    if certificate is None:
        return "nothing: no certificate could be made, as the noise has no common lattice"
    if certificate.composition == drawn:
        return "the noise drawn"
    return "the noise of the design, from which the noise drawn differs by less than one part in 10^15 in sigma2"


def _draw(table: CountTable, allocation: Allocation) -> list[int]:
    """One draw for each row, in the order of the rows; equal noise is drawn in one call."""
    of_scale: dict[float, list[int]] = {}
    for row, (level, query) in enumerate(table.places):
        of_scale.setdefault(scale_for(1 / allocation.table[level][query]), []).append(row)
    result = [0] * len(table.counts)
    for scale, rows in of_scale.items():
        for row, value in zip(rows, opendp_noise([table.counts[row] for row in rows], scale), strict=True):
            result[row] = value
    return result


def _as_csv(table: CountTable, noisy: Sequence[int]) -> str:
    count = table.header.index("count")
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*table.header[:count], *table.header[count + 1 :], "noisy"])
    for row, value in zip(table.rows, noisy, strict=True):
        writer.writerow([*row[:count], *row[count + 1 :], value])
    return buffer.getvalue()


def _noise_of(table: CountTable, allocation: Allocation) -> list[dict[str, object]]:
    cells = Counter(table.places)
    return [
        {
            "level": level,
            "query": query,
            "cells": cells[level, query],
            "sigma2_of_the_design": str(1 / rho),
            "sigma2_drawn": str(drawn_sigma2(1 / rho)),
            "scale": scale_for(1 / rho),
        }
        for level, queries in allocation.table.items()
        for query, rho in queries.items()
    ]


def _covers(design: Release, allocation: Allocation) -> str:
    text = (
        "One draw of this table, one record replaced by another, each record in at most one cell of every query at every level. "
        "The number of cells does not matter; which cells are listed is not protected."
    )
    if len(design.allocations) == 1:
        return text
    return (
        f"{text} Only records that stay on paths of allocation {allocation.number}: a record that may move to a path of "
        f"another of the {len(design.allocations)} allocations is covered by the worst of their pairs (exactdp account)."
    )
