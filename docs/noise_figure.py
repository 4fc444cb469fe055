"""The numbers and the figure of docs/which-noise.md: python docs/noise_figure.py (needs exactdp[plots]; some minutes).

It writes docs/data/which-noise.csv as it goes; a row that is there already is not computed again. Variances are exact fractions
or upper bounds of six digits, bounds of all noise are rounded down to six digits.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

from exactdp.apps.figures.noise import NoiseCell, figure_best_noise
from exactdp.apps.figures.style import write_figure
from exactdp.guarantees.best_noise.families import FAMILIES
from exactdp.guarantees.best_noise.race import counts_template, race
from exactdp.guarantees.calibration import target
from exactdp.numerals import at_least, at_most

DOCS = Path(__file__).parent
TABLE = DOCS / "data" / "which-noise.csv"
FIGURE = DOCS / "images" / "which-noise.svg"
MAPS = {
    "mu": ((1, 2, 4, 8, 16, 32), ("1/4", "1/2", "1", "2")),
    "epsilon": ((1, 2, 4, 8, 16), ("1/2", "1", "2", "4")),
}
"""The counts and the targets of each map."""
DELTA = "1e-6"
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


def main() -> None:
    """Write the table and the figure."""
    table = rows()
    write_figure(FIGURE, figure_best_noise(cells("epsilon", table), cells("mu", table), DELTA))


if __name__ == "__main__":
    main()
