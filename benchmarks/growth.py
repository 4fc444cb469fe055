"""What all pairs of a design cost as it grows: paths from 10 to 500, groups from 5 to 300, points from 1 to 1,000.

    make bench-growth                           prints the tables that docs/benchmarks.md shows
    python benchmarks/growth.py paths           one of: groups points paths

CPU time of one process, from nothing. The last column is the time per unit of paths + pairs x points, relative to the first row:
where it does not rise, no step is worse than linear. The smallest designs of the table of groups are coarse on purpose: a few
queries share a budget of 5, which makes sigma2 about 1, and each pair is asked by itself.
"""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from itertools import combinations, islice

import numpy as np

from any_design import cpu, fresh
from exactdp.census.releases import Release

LEVELS, QUERIES = 10, 6
PATHS = (10, 20, 50, 100, 200, 500)
GROUPS = (5, 10, 20, 50, 100, 200, 300)
POINTS = (1, 10, 100, 1000)
LONG = 30.0  # CPU seconds from which once is enough


def design(paths: int, levels: int = LEVELS, queries: int = QUERIES, seed: int = 1) -> Release:
    """A spine of levels with budgets that share no lattice, and so many different sets of bypassed levels."""
    draw = random.Random(seed)
    names = [f"L{i}" for i in range(levels)]
    share = Fraction(5, levels * queries)
    table = {name: {f"q{j}": share * Fraction(draw.randint(500, 1500), 1000) for j in range(queries)} for name in names}
    sets = (chosen for size in range(levels) for chosen in combinations(names[1:], size))
    bypassed = dict(enumerate(islice(sets, paths), start=1))
    return Release(f"{paths} paths", "", "", table, bypassed)


def measure(release: Release, points: int) -> tuple[float, float]:
    """CPU seconds for delta of all pairs at so many epsilons, and the widest bounds."""
    epsilons = np.linspace(3, 43, points).round(6).tolist()
    seconds, found = cpu(lambda: fresh(release).account(epsilons=epsilons).table("delta"))
    return seconds, float(np.max((found.upper - found.lower) / found.upper))


def table(title: str, column: str, cases: list[tuple[int, Release, int]]) -> None:
    """One row for each case."""
    print(f"\n{title}", flush=True)
    print(f"{column:>8} {'pairs':>8} {'points':>7} {'CPU s':>8} {'widest':>8} {'per unit':>9}")
    first = 0.0
    for number, release, points in cases:
        seconds, wide = measure(release, points)
        if seconds < LONG:
            seconds, wide = measure(release, points)  # the second time counts: the first allocates memory
        unit = seconds / (len(release.bypassed) + len(release.pairs) * points)
        first = first or unit
        print(
            f"{number:8} {len(release.pairs):8,} {points:7,} {seconds:8.2f} {wide:8.1e} {unit / first:9.2f}", flush=True
        )


def main() -> None:
    """The three tables, or those whose names are given: paths, groups, points."""
    shapes = {5: (5, 1), 10: (5, 2), 20: (10, 2), 50: (10, 5), 100: (10, 10), 200: (10, 20), 300: (10, 30)}
    wanted = sys.argv[1:] or ["paths", "groups", "points"]
    if "groups" in wanted:
        table("Groups (8 paths, 42 points)", "groups", [(n, design(8, *shapes[n]), 42) for n in GROUPS])
    if "points" in wanted:
        table("Points (40 paths, 10 levels x 6 queries)", "points", [(n, design(40), n) for n in POINTS])
    if "paths" in wanted:
        table("Paths (10 levels x 6 queries, 5 points)", "paths", [(n, design(n), 5) for n in PATHS])


if __name__ == "__main__":
    main()
