"""The numbers and the figure of docs/which-noise.md: python docs/noise_figure.py (needs exactdp[plots]; some minutes).

It writes docs/data/which-noise.csv and docs/data/noise-families.csv as it goes; what is there already is not computed again.
Variances are exact fractions or upper bounds of six digits, bounds of all noise are rounded down to six digits.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

from exactdp.apps.figures.noise import NoiseCell, figure_best_noise, figure_families
from exactdp.apps.figures.style import write_figure
from exactdp.guarantees.best_noise.bounded_families import EVERY_FAMILY
from exactdp.guarantees.best_noise.families import FAMILIES
from exactdp.guarantees.best_noise.race import counts_template, race
from exactdp.guarantees.calibration import target
from exactdp.numerals import at_least, at_most

DOCS = Path(__file__).parent
TABLE = DOCS / "data" / "which-noise.csv"
RACE_TABLE = DOCS / "data" / "noise-families.csv"
RACE_FIGURE = DOCS / "images" / "noise-families.svg"
FIGURE = DOCS / "images" / "which-noise.svg"
MAPS = {
    "mu": ((1, 2, 4, 8, 16, 32), ("1/4", "1/2", "1", "2")),
    "epsilon": ((1, 2, 4, 8), ("1/2", "1", "2", "4")),
}
"""The counts and the targets of each map."""
DELTA = "1e-6"
RACES = {
    "1 count, epsilon = 1": (1, 1, "1"),
    "1 count of sensitivity 3, epsilon = 4": (1, 3, "4"),
    "10 counts, epsilon = 1": (10, 1, "1"),
}
"""Races of every family at that delta: counts, sensitivity, epsilon."""
COLUMNS = ["kind", "count", "target", "gaussian", "best", "least", "winner"]


def cell(kind: str, count: int, value: str) -> list[str]:
    """One row: discrete Gaussian noise, the best known noise of whole numbers, what no such noise is below."""
    wanted = target(epsilon=value, delta=DELTA) if kind == "epsilon" else target(mu=value)
    families = [family for family in FAMILIES if family.name not in ("Gaussian", "Laplace")]
    found = race(counts_template(count), wanted, families=families)
    assert found.optimum is not None
    gaussian = next(one for one in found.runners if one.family == "discrete Gaussian")
    winner = found.runners[0]
    return [
        kind,
        str(count),
        value,
        at_most(gaussian.error.variance[1]),
        at_most(winner.error.variance[1]),
        at_least(found.optimum.least),
        winner.family,
    ]


def rows() -> list[list[str]]:
    """All of them, those that are missing computed and appended to the file."""
    if not TABLE.exists():
        TABLE.write_text(",".join(COLUMNS) + "\n")
    done = list(csv.reader(TABLE.open()))[1:]
    known = {tuple(row[:3]) for row in done}
    for kind, (counts, values) in MAPS.items():
        for count in counts:
            for value in values:
                if (kind, str(count), value) not in known:
                    done.append(cell(kind, count, value))
                    with TABLE.open("a") as file:
                        file.write(",".join(done[-1]) + "\n")
    return done


def cells(kind: str, table: list[list[str]]) -> list[NoiseCell]:
    """The cells of one map."""
    return [
        NoiseCell(int(count), value, Fraction(gaussian), Fraction(best), Fraction(least))
        for found, count, value, gaussian, best, least, _ in table
        if found == kind
    ]


def races() -> list[tuple[str, str, Fraction]]:
    """The variance of every family in every race, those races that are missing run and appended to the file."""
    if not RACE_TABLE.exists():
        RACE_TABLE.write_text("race,noise,variance\n")
    done = list(csv.reader(RACE_TABLE.open()))[1:]
    known = {row[0] for row in done}
    for name, (count, sensitivity, epsilon) in RACES.items():
        if name not in known:
            wanted = target(epsilon=epsilon, delta=DELTA)
            found = race(counts_template(count, sensitivity), wanted, families=EVERY_FAMILY, optimum=False)
            new = [[name, one.family, at_most(one.error.variance[1])] for one in found.runners]
            done += new
            with RACE_TABLE.open("a") as file:
                csv.writer(file, lineterminator="\n").writerows(new)
    return [(title, family, Fraction(variance)) for title, family, variance in done]


def main() -> None:
    """Write the tables and the figures."""
    write_figure(RACE_FIGURE, figure_families(races(), DELTA))
    table = rows()
    write_figure(FIGURE, figure_best_noise(cells("epsilon", table), cells("mu", table), DELTA))


if __name__ == "__main__":
    main()
