"""Noise for a design: OpenDP's exact discrete Gaussian on a table of counts, and a statement of what was drawn.

OpenDP draws N_Z(0, scale^2) for a double `scale`, and a double seldom is the root of a given sigma2. So the noise drawn differs
from the design's in the sixteenth digit, and the guarantee is stated for the noise drawn: where noise is discrete, a little more
of it is not always a little more private.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactdp.accounting.certificates.certificate import Certificate, certify
from exactdp.accounting.composition import Composition
from exactdp.apps.release.counts import CountTable
from exactdp.apps.release.publication import Publication
from exactdp.arithmetic_state import steady
from exactdp.brackets import Bounds
from exactdp.census.releases import Allocation, Release
from exactdp.census.tables import as_csv
from exactdp.errors import LatticeTooFineError
from exactdp.interop.opendp import drawn_sigma2, opendp_noise, opendp_version, scale_for
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.numbers import Number, exact_text, rational


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
    allocation: Allocation
    guarantee: Mapping[str, Any]
    certificate: Certificate | None
    epsilon: Bounds

    def draw(self) -> NoisyTable:
        """The table with noise. Each call draws anew, and each draw that anybody sees spends the budget."""
        text = _as_csv(self.table, _draw(self.table, self.allocation))
        statement = {
            "format": "exactdp noise",
            "version": 1,
            "design": {
                "name": self.design.name,
                "title": self.design.title,
                "fingerprint": self.design.fingerprint,
            },
            "allocation": self.allocation.number,
            "bypassed": list(self.allocation.bypassed),
            "sampler": f"OpenDP {opendp_version()}, make_gaussian on vectors of 64-bit integers",
            "sha256_of_the_noisy_table": hashlib.sha256(text.encode()).hexdigest(),
            "noise": _noise_of(self.table, self.allocation),
            "guarantee": self.guarantee,
        }
        return NoisyTable(text, statement, self.certificate, self.epsilon)


@steady
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
    return plan_release(design, table, allocation, delta, digits).draw()


@steady
def plan_release(
    design: Release, table: CountTable, allocation: int | None = None, delta: Number = "1e-10", digits: int = 30
) -> PlannedRelease:
    """What `release_table` does before it draws: all that takes long, or that may fail."""
    chosen = chosen_allocation(design, allocation)
    asked = design.pair(chosen.number, chosen.number)
    drawn = Composition({DiscreteGaussian(drawn_sigma2(m.sigma2)): n for m, n in asked.discrete_gaussians.items()})
    certificate = _certificate((drawn, asked), delta, digits)
    epsilon = drawn.epsilon_bounds(delta)
    guarantee = {
        "delta": exact_text(rational(delta, "delta")),
        "epsilon_at_least": epsilon.lower,
        "epsilon_at_most": epsilon.upper,
        "certificate_is_of": _whose(certificate, drawn),
        "covers": _covers(design, chosen),
    }
    return PlannedRelease(design, table, chosen, guarantee, certificate, epsilon)


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
    rows = ([*row[:count], *row[count + 1 :], value] for row, value in zip(table.rows, noisy, strict=True))
    return as_csv([*table.header[:count], *table.header[count + 1 :], "noisy"], rows)


def _noise_of(table: CountTable, allocation: Allocation) -> list[dict[str, object]]:
    cells = Counter(table.places)
    return [
        {
            "level": level,
            "query": query,
            "cells": cells[level, query],
            "sigma2_of_the_design": exact_text(1 / rho),
            "sigma2_drawn": exact_text(drawn_sigma2(1 / rho)),
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
