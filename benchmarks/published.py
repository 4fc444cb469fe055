"""The published tail values against certified ones.

make results          prints the table that docs/results.md shows
"""

from __future__ import annotations

import csv
from pathlib import Path

import exactdp

TABLE = Path(__file__).parent.parent / "docs" / "data" / "published_tails.csv"


def main() -> None:
    release = exactdp.census.release("dhc-persons-us")
    with TABLE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    print("| pair | zCDP delta | published | certified | published / certified - 1 |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        k, other = int(row["k"]), int(row["l"])
        low, high = release.pair(k, other).delta_bounds(row["epsilon"], digits=16)
        published = float(row["published"])
        off = published / float(high) - 1
        shown = f"{off:+.1e}" if abs(off) < 0.01 else f"{off:+.1%}" if abs(off) < 2 else f"factor {1 + off:.1f}"
        print(f"| ({k},{other}) | {row['delta_zcdp']} | {published:.12e} | {float(low):.12e} | {shown} |")


if __name__ == "__main__":
    main()
