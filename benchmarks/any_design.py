"""Any design beside the published one: the same question of all 946 pairs, in CPU time, as ratios within one run.

    make bench-designs          prints the tables that docs/benchmarks.md shows
    python benchmarks/any_design.py [ROUNDS]

"From nothing" means that nothing is held from an earlier question. The peer is Google's dp_accounting (discrete-Gaussian PLD) for
ONE pair and one epsilon.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

import exactdp
from exactdp.brackets import Bounds
from exactdp.census.pair_results import overall_of
from exactdp.census.releases import Release

GRID = np.linspace(5, 46, 42)
DELTA = "1e-10"
SEED = 20201
ROUNDS = 5


def one_cell_edited(release: Release, level: str = "State") -> Release:
    """The first cell of a level times 0.987."""
    query = next(iter(release.table[level]))
    table = {name: dict(queries) for name, queries in release.table.items()}
    table[level][query] *= Fraction(987, 1000)
    return replace(release, name=f"{release.name}, one cell of {level} edited", table=table)


def all_cells_edited(release: Release, seed: int = SEED) -> Release:
    """Every cell times a random decimal of three digits, from 0.5 to 1.5."""
    draw = random.Random(seed)
    table = {
        level: {query: rho * Fraction(draw.randint(500, 1500), 1000) for query, rho in queries.items()}
        for level, queries in release.table.items()
    }
    return replace(release, name=f"{release.name}, all cells edited ({seed})", table=table)


def fresh(release: Release) -> Release:
    """The same release with nothing held."""
    overall_of.cache_clear()
    return replace(release)


def all_pairs(release: Release) -> Bounds:
    """delta of all pairs at 42 epsilons, from nothing."""
    return fresh(release).account(epsilons=GRID).table("delta")


def overall_epsilon(release: Release) -> Bounds:
    """The overall epsilon at one delta, from nothing."""
    return fresh(release).account().epsilon_bounds(DELTA)


def cpu(function: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, and what it returned."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def width(bounds: Bounds) -> float:
    """The widest bounds, relative to the upper ones."""
    return float(np.max((np.asarray(bounds.upper) - np.asarray(bounds.lower)) / np.abs(bounds.upper)))


def main() -> None:
    """All works in turn, several rounds, medians."""
    from run import peer_epsilon

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    release = exactdp.census.release("dhc-persons-us")
    designs = {
        "published": release,
        "one cell of State edited": one_cell_edited(release),
        "one cell of Block edited": one_cell_edited(release, "Block"),
        "every cell times a random decimal": all_cells_edited(release),
    }
    works: dict[str, Callable[[], Any]] = {}
    for name, design in designs.items():
        works[f"946 x 42, {name}"] = lambda design=design: all_pairs(design)  # type: ignore[misc]
        works[f"overall epsilon, {name}"] = lambda design=design: overall_epsilon(design)  # type: ignore[misc]
    works["dp_accounting, ONE pair, one epsilon"] = lambda: peer_epsilon(release.pair(13, 13), True)
    for work in works.values():
        work()  # warm up
    times: dict[str, list[float]] = {name: [] for name in works}
    widths = {}
    for _ in range(rounds):
        for name, work in works.items():
            seconds, result = cpu(work)
            times[name].append(seconds)
            if isinstance(result, Bounds):
                widths[name] = width(result)
    base = statistics.median(times["946 x 42, published"])
    print(f"{'CPU seconds, medians of ' + str(rounds) + ' rounds':52} {'s':>6} {'ratio':>7}  widest")
    for name, found in times.items():
        middle = statistics.median(found)
        wide = f"{widths[name]:.1e}" if name in widths else ""
        print(f"{name:52} {middle:6.2f} {middle / base:7.2f}  {wide}")
    print("ratio: to 946 x 42 of the published design in the same run")


if __name__ == "__main__":
    main()
