"""All pairs of the DHC persons release in balls: 42 epsilons, 20 digits each, on two cores.

make bench-certified          prints the figures that docs/benchmarks.md shows
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal

import numpy as np

import exactdp

GRID = np.linspace(5, 46, 42)
DIGITS = 20


def one(pair: tuple[int, int]) -> tuple[tuple[int, int], float, float]:
    """CPU seconds for a pair, and the largest relative width among its 42 enclosures."""
    start = time.process_time()
    composition = exactdp.census.release("dhc-persons-us").pair(*pair)
    low, high = composition.delta_bounds(GRID, digits=DIGITS)
    width = max((b - a) / b for a, b in zip(low, high, strict=True))
    return pair, time.process_time() - start, float(width)


def main() -> None:
    pairs = exactdp.census.release("dhc-persons-us").pairs
    start = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:  # the slowest first, so that the two cores end together
        results = list(pool.map(one, sorted(pairs, key=lambda p: 6 not in p), chunksize=8))
    wall = time.perf_counter() - start
    widest = max(width for _, _, width in results)
    slowest = sorted(results, key=lambda r: -r[1])[:3]
    print(f"{len(results)} pairs x {len(GRID)} epsilons at {DIGITS} digits on two cores: {wall:.0f} s")
    print(f"widest enclosure {Decimal(widest):.1e}; CPU {sum(s for _, s, _ in results):.0f} s")
    print("slowest pairs: " + ", ".join(f"{pair} {seconds:.1f} s" for pair, seconds, _ in slowest))


if __name__ == "__main__":
    main()
