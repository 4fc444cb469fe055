"""The optimiser on the DHC persons file with ten requirements, as a ratio to one exact epsilon of an edited design.

`python benchmarks/optimize.py` prints CPU seconds of one process: the whole optimisation, with its proof, bound and prices, and
the overall epsilon of all 946 pairs of an edited table in the same run. CPU time, because other processes may share the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from exactdp import optimize, target
from exactdp.census import release
from exactdp.census.pair_results import make_overall

REQUIREMENTS = [
    "State detailed: margin <= 8",
    "County hispanic * sex: margin <= 12",
    "County detailed: error <= 8",
    "Tract Subset sex * relgq_4_groups: margin <= 20",
    "Block Group detailed: variance <= 400",
    "Block detailed: margin <= 40",
    "Block hispanic * sex: relative <= 50% of 40",
    "US: equal",
    "PRIM: tied",
    "US detailed: budget >= 0.005",
]
_Found = TypeVar("_Found")


def timed(run: Callable[[], _Found]) -> tuple[float, _Found]:
    """CPU seconds, and what was found."""
    start = time.process_time()
    found = run()
    return time.process_time() - start, found


def main() -> None:
    """Print the table."""
    dhc = release("dhc-persons-us")
    edited = dhc.with_budget({("US", "detailed"): Fraction("0.00123")})
    timed(lambda: make_overall(edited).epsilon(Fraction(1, 10**10)))  # loads what is loaded once
    peer, _ = timed(lambda: make_overall(edited).epsilon(Fraction(1, 10**10)))
    own, found = timed(lambda: optimize.best(dhc, target=target("24.46", "1e-10"), requirements=REQUIREMENTS))
    print(f"one epsilon of all pairs of an edited design   {peer:7.2f} s of CPU")
    print(f"the best design with ten requirements          {own:7.2f} s of CPU, {own / peer:.0f} times as much")
    print(found)


if __name__ == "__main__":
    main()
