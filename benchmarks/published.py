"""The published tables against certified values: tails and trade-off curves.

make results                                    prints the tables that docs/results.md shows
python benchmarks/published.py FOLDER           the same for every entry of a clone of the authors' repository, as counts
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import exactdp
from exactdp.census import Release

DATA = Path(__file__).parent.parent / "docs" / "data"
TAILS, POINTS, FACTS = (DATA / f"published_{name}.csv" for name in ("tails", "tradeoff", "facts"))
ON_TABLES = Path("results") / "epsilon_delta_curve" / "eps_delta_results"
OF_POINTS = Path("results") / "trade_off_curve" / "trade_off_results"


def rows_of(table: Path) -> list[dict[str, str]]:
    """A quoted table without the lines that say where it is from."""
    with table.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def relative(off: float) -> str:
    return f"{off:+.1e}" if abs(off) < 0.01 else f"{off:+.1%}" if abs(off) < 2 else f"factor {1 + off:.1f}"


def tails(release: Release, quoted: list[dict[str, str]]) -> Iterator[str]:
    """The lines of the first table: delta."""
    yield "| pair | zCDP delta | published | certified | published / certified - 1 |"
    yield "| --- | --- | --- | --- | --- |"
    for row in quoted:
        k, other = int(row["k"]), int(row["l"])
        low, high = release.pair(k, other).delta_bounds(row["epsilon"], digits=16)
        published = float(row["published"])
        off = relative(published / float(high) - 1)
        yield f"| ({k},{other}) | {row['delta_zcdp']} | {published:.12e} | {float(low):.12e} | {off} |"


@dataclass(frozen=True)
class Point:
    """A published (alpha, beta) at zeta beside the certified bounds of beta at that alpha.

    `atom` is P(X = (zeta - 1) L), the mass under the alternative that sits on the threshold itself; 0 where there is none or
    float64 does not know it.
    """

    pair: tuple[int, int]
    zeta: Fraction
    alpha: Fraction
    beta: Fraction
    lower: float
    upper: float
    atom: float

    @property
    def off(self) -> float:
        """Published beta minus the certified one."""
        return float(self.beta - (Fraction(self.lower) + Fraction(self.upper)) / 2)

    @property
    def ratio(self) -> float:
        """Published beta over the certified one, minus 1."""
        return self.off / ((self.lower + self.upper) / 2)

    @property
    def side(self) -> str:
        """Where the published point lies; above the curve it promises more privacy than there is."""
        return "above" if self.beta > Fraction(self.upper) else "below" if self.beta < Fraction(self.lower) else "on it"

    @property
    def counted(self) -> str:
        """In how many of the two errors the atom is counted. The curve has it in one: both lift beta by it, neither lowers it."""
        atoms = round(self.off / self.atom) if self.atom else None
        return "" if atoms is None else {1: "both", 0: "one", -1: "neither"}[atoms]


def relative_to_curve(at: Point) -> str:
    return "" if at.side == "on it" else "negative" if at.beta < 0 else relative(at.ratio)


def point(release: Release, row: dict[str, str]) -> Point:
    k, other = int(row["k"]), int(row["l"])
    composition, zeta = release.pair(k, other), Fraction(row["zeta"])
    alpha = Fraction(row["alpha"])
    lower, upper = composition.beta_bounds(alpha)
    atom = atom_at(composition, Fraction(release.rho), lattice_of(release, k, other), zeta)
    return Point((k, other), zeta, alpha, Fraction(row["beta"]), float(lower), float(upper), atom)


def atom_at(composition: exactdp.Composition, rho: Fraction, lattice: Fraction, zeta: Fraction) -> float:
    """P(X = (zeta - 1) L), from the atom under the hypothesis, e^(-rho zeta) times as large, where that is the larger."""
    place = (zeta - 1 if zeta > 0 else zeta + 1) * lattice
    if place.denominator != 1:
        return 0.0
    masses = composition.masses([int(place), int(place) + 1])
    low, high = float(masses.lower[0]), float(masses.upper[0])
    return high * math.exp(min(0.0, float(rho * zeta))) if high <= 1.01 * low else 0.0


def lattice_of(release: Release, k: int, other: int) -> Fraction:
    """The paper's L of a pair: the a_i L are coprime integers."""
    step = release.pair(k, other).step
    assert step is not None
    return Fraction(release.rho) / step


def tradeoff(release: Release) -> Iterator[str]:
    """The lines of the second table: beta at a published alpha."""
    yield "| pair | zeta | alpha | published beta | certified | published - certified | relative | the curve | atom counted in |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows_of(POINTS):
        at = point(release, row)
        cells = [
            f"({at.pair[0]},{at.pair[1]})",
            f"{at.zeta}",
            f"{float(at.alpha):.6e}",
            f"{float(at.beta):.10e}",
            f"{at.lower:.10e}",
            "" if at.side == "on it" else f"{at.off:+.1e}",
            relative_to_curve(at),
            at.side,
            at.counted,
        ]
        yield f"| {' | '.join(cells)} |"


def all_tails(release: Release, folder: Path) -> dict[str, str]:
    """Counts over every published delta of every pair, in float64 with bounds."""
    tables = {
        (k, other): rows_of(folder / ON_TABLES / f"eps_delta_curve_path_{k}_to_{other}.csv")
        for k, other in release.pairs
    }
    epsilons = [row["epsilon"] for row in tables[release.pairs[0]]]
    bounds = release.account(epsilons=epsilons).table("delta")
    large = small = negative = second = 0
    most: dict[str, tuple[float, tuple[int, int]]] = {}
    for i, pair in enumerate(release.pairs):
        for j, row in enumerate(tables[pair]):
            published = Fraction(row["delta_fdp"])
            large += published > Fraction(float(bounds.upper[i, j]))
            small += published < Fraction(float(bounds.lower[i, j]))
            negative += published < 0
            second += Fraction(row["delta_fdp_second_term"]) < 0
            off = float(published / Fraction(float(bounds.upper[i, j])) - 1)
            most[row["delta_zcdp"]] = max(most.get(row["delta_zcdp"], (off, pair)), (off, pair))
    total = len(epsilons) * len(release.pairs)
    facts = {"deltas": total, "deltas proved too large": large, "deltas proved too small": small}
    facts |= {"deltas not told apart from ours": total - large - small, "negative deltas": negative}
    facts |= {"negative second terms of delta": second}
    return {name: f"{n}" for name, n in facts.items()} | {
        f"largest error at a stated delta of {stated}": f"{relative(most[stated][0])} for ({k},{other})"
        for stated, (_, (k, other)) in most.items()
        if stated in ("1e-13", "1e-18", "1e-20", "1e-21")
    }


def all_points(release: Release, folder: Path) -> dict[str, str]:
    """Counts over every published point that has an atom on its threshold, and over the sign of all."""
    total = negative = 0
    on_atoms: list[Point] = []
    for k, other in release.pairs:
        table = rows_of(folder / OF_POINTS / f"trade_off_curve_path_{k}_to_{other}.csv")
        total += len(table)
        negative += sum(Fraction(row["trade_off_beta"]) < 0 for row in table)
        end, L = Fraction(table[-1]["zeta"]), lattice_of(release, k, other)
        for i, row in enumerate(table):
            zeta = end * Fraction(2 * i - len(table) + 1, len(table) - 1)
            alpha, beta = row["trade_off_alpha"], row["trade_off_beta"]
            if (
                (zeta * L).denominator == 1
                and Fraction(beta) > Fraction("1e-20")
                and Fraction(alpha) > Fraction("1e-20")
            ):
                quoted = {"k": f"{k}", "l": f"{other}", "zeta": f"{zeta}", "alpha": alpha, "beta": beta}
                on_atoms.append(point(release, quoted))
    at_zero = [at.side for at in on_atoms if at.zeta == 0]
    above, below = max(on_atoms, key=lambda at: at.off), min(on_atoms, key=lambda at: at.off)
    high, low = max(on_atoms, key=lambda at: at.ratio), min(on_atoms, key=lambda at: at.ratio)
    return {
        "points": f"{total}",
        "negative betas": f"{negative}",
        "points on an atom with both errors above 1e-20": f"{len(on_atoms)}",
        "of these above the curve": f"{sum(at.side == 'above' for at in on_atoms)}",
        "of these below the curve": f"{sum(at.side == 'below' for at in on_atoms)}",
        "pairs above the curve at zeta = 0": f"{at_zero.count('above')}",
        "pairs below the curve at zeta = 0": f"{at_zero.count('below')}",
        "farthest above": f"{above.off:+.1e} for {_place(above)}",
        "farthest below": f"{below.off:+.1e} for {_place(below)}",
        "farthest above in proportion": f"{high.ratio:+.1e} for {_place(high)}",
        "farthest below in proportion": f"{low.ratio:+.1e} for {_place(low)}",
    }


def _place(at: Point) -> str:
    return f"({at.pair[0]},{at.pair[1]}) at zeta = {at.zeta}"


def check_facts(release: Release, folder: Path) -> int:
    """Prints the facts of all files beside the quoted ones; how many differ."""
    quoted = {row["fact"]: row["value"] for row in rows_of(FACTS)}
    found = all_tails(release, folder) | all_points(release, folder)
    lines = csv.writer(sys.stdout, lineterminator="\n")
    for fact, value in found.items():
        lines.writerow([fact, value] if quoted.get(fact) == value else [fact, value, f"quoted: {quoted.get(fact)}"])
    return sum(quoted.get(fact) != value for fact, value in found.items())


def main() -> None:
    release = exactdp.census.release("dhc-persons-us")
    if len(sys.argv) > 1:
        sys.exit(1 if check_facts(release, Path(sys.argv[1])) else 0)
    print("\n".join([*tails(release, rows_of(TAILS)), "", *tradeoff(release)]))


if __name__ == "__main__":
    main()
