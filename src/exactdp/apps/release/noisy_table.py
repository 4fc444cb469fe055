"""Noise for a design: OpenDP's exact discrete Gaussian on a table of counts, and a statement of what was drawn.

OpenDP draws N_Z(0, scale^2) for a double `scale`, and a double seldom is the root of a given sigma2. So the noise drawn differs
from the design's in the sixteenth digit, and the guarantee is stated for the noise drawn: where noise is discrete, a little more
of it is not always a little more private.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from exactdp.accounting.certificates.certificate import Certificate, certify
from exactdp.accounting.composition import Composition
from exactdp.apps.release.counts import CountTable, column
from exactdp.apps.release.path_noise import (
    DrawnNoise,
    WorstPairs,
    drawn_composition,
    listed,
    planned_noise,
    row_paths,
    worst_pairs,
)
from exactdp.apps.release.publication import Publication
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.releases import Noise, Release
from exactdp.census.tables import as_csv
from exactdp.errors import InvalidInputError, LatticeTooFineError
from exactdp.guarantees.neighbours import REPLACE, neighbours
from exactdp.interop.opendp import opendp_laplace_noise, opendp_noise, opendp_version, scale_for
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.numbers import Number, exact_text, rational, shown


@steady
@dataclass(frozen=True)
class NoisyTable:
    """A table with noise, ready to be written: its CSV text, what was drawn, and the guarantee."""

    text: str
    statement: Mapping[str, Any]
    certificate: Certificate | None
    epsilon: Bounds
    """Certified bounds of epsilon for the noise that was drawn."""

    def save(self, output: str | os.PathLike[str], shared: bool = False) -> list[Path]:
        """Write the table, its certificate and its statement; returns their paths, the table's first.

        `shared` files have the permissions of the umask; others are for their owner's eyes only.
        Guarantee: no file that is there is altered. All are written or none, the table last; of several processes one succeeds.
        """
        with Publication(output, shared=shared) as publication:
            self.publish(publication)
        return publication.published

    def publish(self, publication: Publication) -> None:
        """The same under a name that was claimed before the draw."""
        statement = json.dumps(self.statement, indent=1, ensure_ascii=False) + "\n"
        publication.publish(self.text, statement, None if self.certificate is None else self.certificate.to_json())


@steady
@dataclass(frozen=True)
class PlannedRelease:
    """All about a release but the noise: what will be drawn for which table, the guarantee and its certificate."""

    design: Release
    table: CountTable
    rows: Sequence[tuple[int, ...]]
    """The paths of each row."""
    noise: tuple[DrawnNoise, ...]
    worst: WorstPairs
    guarantee: Mapping[str, Any]
    certificate: Certificate | None

    @property
    def paths(self) -> list[int]:
        """The paths that the table has."""
        return _occurring(self.noise)

    def draw(self) -> NoisyTable:
        """The table with noise. Each call draws anew, and each draw that anybody sees spends the budget."""
        text = _as_csv(self.table, _draw(self.table, self.rows, self.noise))
        paths = [self.design.allocations[number] for number in self.paths]
        statement = {
            "format": "exactdp noise",
            "version": 1,
            "design": {
                "name": self.design.name,
                "title": self.design.title,
                "fingerprint": self.design.fingerprint,
            },
            **({"allocation": paths[0].number, "bypassed": list(paths[0].bypassed)} if len(paths) == 1 else {}),
            "paths": [{"path": path.number, "bypassed": list(path.bypassed)} for path in paths],
            "sampler": f"OpenDP {opendp_version()}, {_samplers(self.noise)} on vectors of 64-bit integers",
            "sha256_of_the_noisy_table": hashlib.sha256(text.encode()).hexdigest(),
            "noise": [_entry(one, self.design.noise) for one in self.noise],
            "guarantee": self.guarantee,
        }
        return NoisyTable(text, statement, self.certificate, self.worst.epsilon)


@steady
def release_table(
    design: Release, table: CountTable, allocation: int | None = None, delta: Number = "1e-10", digits: int = 30
) -> NoisyTable:
    """The table with the design's noise, drawn once; each row has the noise of its paths.

    A table without a column `path` has the noise of one allocation, the full path unless told. The column `count` is replaced by
    `noisy`, which is the only column to depend on the counts. Order, rows and all other columns stay.

    Guarantee: the noise is that of `add_noise`, independent in each row. If each record counts in at most one cell of every
    query at every level, in rows of its path, the release of the noisy column is (epsilon.upper, delta)-differentially private
    when a record of a path that occurs is replaced by one of another such path; the certificate says so of the worst pair of
    them to `digits` digits, for the noise drawn if that has a lattice, otherwise for the design's own noise (the statement tells
    which).
    """
    return plan_release(design, table, allocation, delta, digits).draw()


@steady
def plan_release(
    design: Release,
    table: CountTable,
    allocation: int | None = None,
    delta: Number = "1e-10",
    digits: int = 30,
    on_progress: Callable[[int], None] | None = None,
) -> PlannedRelease:
    """What `release_table` does before it draws: all that takes long, or that may fail.

    `on_progress` is told how many pairs of paths were accounted for since.
    """
    if not 0 < rational(delta, "delta") < 1:
        raise InvalidInputError(f"delta must be strictly between 0 and 1. Found {shown(delta)}.")
    noise = planned_noise(design, table, allocation)
    occurring = _occurring(noise)
    found = worst_pairs(design, occurring, delta, on_progress)
    asked = design.pair(*found.worst[0])
    drawn = drawn_composition(asked)
    certificate = _certificate((drawn, asked), delta, digits)
    guarantee = {
        "delta": exact_text(rational(delta, "delta")),
        "epsilon_at_least": _outward(found.epsilon.lower, -math.inf),
        "epsilon_at_most": _outward(found.epsilon.upper, math.inf),
        "neighbours": neighbours(design.relation).briefly,
        "pairs": len(found.covered),
        "worst_pairs": [list(pair) for pair in found.worst],
        "paths_not_covered": [number for number in sorted(design.allocations) if number not in occurring],
        "certificate_is_of": _whose(certificate, drawn, found),
        "covers": _covers(design, table, noise),
    }
    return PlannedRelease(design, table, row_paths(design, table, allocation), noise, found, guarantee, certificate)


def _occurring(noise: Sequence[DrawnNoise]) -> list[int]:
    return sorted({number for one in noise for number in one.paths})


def _outward(bound: float, towards: float) -> float:
    """A double whose shortest decimal, which is what JSON has, is on the safe side of the bound."""
    written = Decimal(repr(float(bound)))
    is_safe = written >= Decimal(bound) if towards > 0 else written <= Decimal(bound)
    return bound if is_safe else math.nextafter(bound, towards)


def _certificate(compositions: Sequence[Composition], delta: Number, digits: int) -> Certificate | None:
    """A certificate of the first composition of Gaussian noise whose lattice is not too fine."""
    for composition in compositions:
        if _is_gaussian(composition):
            with suppress(LatticeTooFineError):
                return certify(composition, delta=delta, digits=digits)
    return None


def _is_gaussian(composition: Composition) -> bool:
    return all(isinstance(mechanism, DiscreteGaussian) for mechanism in composition.mechanisms)


def _whose(certificate: Certificate | None, drawn: Composition, found: WorstPairs) -> str:
    if certificate is None:
        if not _is_gaussian(drawn):
            return "nothing: certificates are of discrete Gaussian noise only"
        return "nothing: no certificate could be made, as the noise has no common lattice"
    pair = "" if len(found.covered) == 1 else f"the worst {found.noun} {found.names[0]}, with "
    if certificate.composition == drawn:
        return f"{pair}the noise drawn"
    return f"{pair}the noise of the design, from which the noise drawn differs by less than one part in 10^15 in sigma2"


def _draw(table: CountTable, rows: Sequence[tuple[int, ...]], noise: Sequence[DrawnNoise]) -> list[int]:
    """One draw for each row, in the order of the rows; equal noise is drawn in one call."""
    noise_of = {(one.paths, (one.level, one.query)): _sampled(one.drawn) for one in noise}
    alike: dict[tuple[str, float], list[int]] = {}
    for row, key in enumerate(zip(rows, table.places, strict=True)):
        alike.setdefault(noise_of[key], []).append(row)
    result = [0] * len(table.counts)
    for (kind, scale), places in alike.items():
        sampler = opendp_noise if kind == _GAUSSIAN else opendp_laplace_noise
        for row, value in zip(places, sampler([table.counts[row] for row in places], scale), strict=True):
            result[row] = value
    return result


_GAUSSIAN, _LAPLACE = "make_gaussian", "make_laplace"


def _sampled(drawn: DiscreteGaussian | DiscreteLaplace) -> tuple[str, float]:
    """OpenDP's name of the noise, and its scale: the double whose noise this is, exactly."""
    if isinstance(drawn, DiscreteGaussian):
        return _GAUSSIAN, scale_for(drawn.sigma2)
    return _LAPLACE, float(drawn.scale)


def _samplers(noise: Sequence[DrawnNoise]) -> str:
    return " and ".join(sorted({_sampled(one.drawn)[0] for one in noise}))


def _as_csv(table: CountTable, noisy: Sequence[int]) -> str:
    count = column(table.header, "count")
    rows = ([*row[:count], *row[count + 1 :], value] for row, value in zip(table.rows, noisy, strict=True))
    return as_csv([*table.header[:count], *table.header[count + 1 :], "noisy"], rows)


def _entry(one: DrawnNoise, said: Noise) -> dict[str, object]:
    name = "sigma2" if isinstance(one.drawn, DiscreteGaussian) else "scale"
    own = said.get((one.level, one.query))
    return {
        "paths": list(one.paths),
        "level": one.level,
        "query": one.query,
        "cells": one.cells,
        "kind": type(one.drawn).__name__,
        **({} if own is None else {"sensitivity": own.sensitivity, "cells_of_one_record": own.cells}),
        f"{name}_of_the_design": exact_text(_parameter(one.designed)),
        f"{name}_drawn": exact_text(_parameter(one.drawn)),
        "scale": _sampled(one.drawn)[1],
    }


def _parameter(mechanism: Mechanism) -> Any:
    return mechanism.scale if isinstance(mechanism, DiscreteLaplace) else mechanism.sigma2


def _covers(design: Release, table: CountTable, noise: Sequence[DrawnNoise]) -> str:
    occurring = _occurring(noise)
    others = [number for number in sorted(design.allocations) if number not in occurring]
    which = "" if len(occurring) == 1 else f", whichever of {listed(occurring)} each is on"
    own, rows = ("", "") if table.paths is None else (", in rows of its own path only", ", and under which paths,")
    text = (
        f"One draw of this table, {neighbours(design.relation).briefly}{which}; {_contribution(design)}{own}. "
        f"The number of cells does not matter; which cells are listed{rows} is not protected."
    )
    if not others:
        return text
    if table.paths is None and design.relation != REPLACE:
        return f"{text} Only records on paths of allocation {occurring[0]}: those of the others are not covered."
    if table.paths is None:
        return (
            f"{text} Only records that stay on paths of allocation {occurring[0]}: a record that may move to a path of "
            f"another of the {len(design.allocations)} allocations is covered by the worst of their pairs (exactdp account)."
        )
    return (
        f"{text} Only records of {listed(occurring)}, which this table has: it has no rows of {listed(others)} of the design, "
        "and a record that comes from there or goes there is not covered."
    )


def _contribution(design: Release) -> str:
    """What the accounting takes a record to change."""
    if not design.noise:
        return "each record in at most one cell of every query at every level"
    return "each record in as many cells of every query at every level, and by as much, as the design says"
