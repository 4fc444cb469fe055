"""What importing exactdp costs, against the libraries that it stands on, each in a fresh process.

    python benchmarks/import_time.py          part of make bench

The three are alternated, so that a machine that slows down slows down all; the empty interpreter's time is taken off.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 21
BASE = "import numpy, scipy.special, flint"
ASKED = {
    "import exactdp": "import exactdp",
    "first use of exactdp.Composition": "import exactdp; exactdp.Composition",
}
LIMIT = 1.3


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def measure(runs: int = RUNS) -> dict[str, float]:
    """The median cost of each piece of code beyond that of an empty interpreter."""
    codes = ["pass", BASE, *ASKED.values()]
    for code in codes:  # compiled files and the disk's cache
        seconds(code)
    taken: dict[str, list[float]] = {code: [] for code in codes}
    for _ in range(runs):
        for code in codes:
            taken[code].append(seconds(code))
    medians = {code: statistics.median(times) for code, times in taken.items()}
    return {code: median - medians["pass"] for code, median in medians.items()}


def main() -> None:
    found = measure()
    print(
        f"\nImport, median of {RUNS} fresh processes; NumPy, scipy.special and flint together {found[BASE] * 1e3:.0f} ms"
    )
    for name, code in ASKED.items():
        ratio = found[code] / found[BASE]
        print(f"  {name:34}{found[code] * 1e3:7.0f} ms   {ratio:.2f} times that (aim: at most {LIMIT})")


if __name__ == "__main__":
    main()
