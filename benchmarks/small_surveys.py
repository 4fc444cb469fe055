"""The overall epsilon of small survey designs, from nothing: pairs asked together beside the same pairs asked one by one.

    python benchmarks/small_surveys.py [DESIGNS [ONE_BY_ONE]]
    python benchmarks/small_surveys.py --compositions [HOW_MANY]

Three levels of 2 to 4 queries, sigma2 from 0.5 to 20 (log-uniform), budgets of 2 to 4 decimals, 3 or 4 paths. CPU time; of the
first designs (3 unless told) the pairs are also asked one by one, and both answers have to overlap.

With --compositions single compositions of the same kind, each from nothing: one path of such a survey, or two of them for
neighbours that differ in a record. delta of so many (100 unless told) at the epsilon of the Gaussian approximation, and epsilon
at delta = 1e-10 of as many others.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections import Counter
from fractions import Fraction

from any_design import DELTA, cpu
from exactdp import Composition
from exactdp.accounting.epsilon_search import gaussian_start
from exactdp.accounting.separate_pairs import SeparatePairs
from exactdp.census.overall import SeparateOverall
from exactdp.census.pair_results import make_overall
from exactdp.census.releases import Release

LONG = 1.0  # CPU seconds from which a composition is named
LEVELS = ("Nation", "State", "Block")


def survey(seed: int) -> Release:
    """A random small survey."""
    draw = random.Random(seed)
    queries, digits = draw.randint(2, 4), draw.randint(2, 4)
    table = {
        level: {f"q{j}": Fraction(str(round(1 / (0.5 * 40 ** draw.random()), digits))) for j in range(queries)}
        for level in LEVELS
    }
    paths: dict[int, tuple[str, ...]] = {1: (), 2: ("State",), 3: ("Block",)}
    if draw.random() < 0.5:
        paths[4] = ("State", "Block")
    return Release(f"survey {seed}", "", "", table, paths)


def composition(seed: int) -> Composition:
    """A random composition of the same kind: of a path of a survey, or of two."""
    release, draw = survey(seed), random.Random(-1 - seed)
    paths = [draw.choice(sorted(release.allocations)) for _ in range(draw.randint(1, 2))]
    return Composition(sum((Counter(release.allocations[path].mechanisms) for path in paths), Counter()))


def compositions(count: int) -> None:
    """delta and epsilon of so many compositions, each from nothing."""
    print(f"{'CPU seconds, ' + str(count) + ' compositions':32} {'median':>6} {'second':>7} {'longest':>7}   widest")
    delta = Fraction(DELTA)
    rows: list[list[tuple[float, tuple[float, float]]]] = [[], []]
    for seed in range(count):
        one = composition(seed)
        e = round(gaussian_start(2 * float(one.rho), delta), 3)
        rows[0].append(cpu(lambda one=one, e=e: one.delta_bounds(e)))  # type: ignore[misc]
        other = composition(count + seed)  # what was asked of a composition is held
        rows[1].append(cpu(lambda one=other: one.epsilon_bounds(delta)))  # type: ignore[misc]
        longest = max(row[-1][0] for row in rows)
        if longest > LONG:
            times = f"{rows[0][-1][0]:.2f}", f"{rows[1][-1][0]:.2f}"
            print(f"    delta of {seed}: {times[0]} s, epsilon of {count + seed}: {times[1]} s", flush=True)
    report("delta", rows[0])
    report("epsilon at 1e-10", rows[1])


def one_by_one(release: Release) -> SeparateOverall:
    """The same pairs with nothing shared."""
    return SeparateOverall(SeparatePairs(tuple(release.pair(*pair).mechanisms for pair in release.pairs)))


def report(title: str, found: list[tuple[float, tuple[float, float]]]) -> None:
    """One line: times and the widest bounds."""
    times = sorted(seconds for seconds, _ in found)
    wide = max((high - low) / high for _, (low, high) in found)
    print(f"{title:32} {statistics.median(times):6.2f} {times[-2]:7.2f} {times[-1]:7.2f}   {wide:.1e}", flush=True)


def main() -> None:
    """Both ways, and whether they agree; or single compositions."""
    if sys.argv[1:2] == ["--compositions"]:
        compositions(int(sys.argv[2]) if len(sys.argv) > 2 else 100)
        return
    designs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    few = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    delta = Fraction(DELTA)
    print(f"{'CPU seconds, overall epsilon':32} {'median':>6} {'second':>7} {'longest':>7}   widest")
    together = [cpu(lambda seed=seed: make_overall(survey(seed)).epsilon(delta)) for seed in range(designs)]  # type: ignore[misc]
    report(f"{designs} designs, pairs together", together)
    if few:
        alone = [cpu(lambda seed=seed: one_by_one(survey(seed)).epsilon(delta)) for seed in range(few)]  # type: ignore[misc]
        report(f"the first {few}, pairs together", together[:few])
        report(f"the first {few}, one by one", alone)
        for (_, (a, b)), (_, (c, d)) in zip(together, alone, strict=False):
            assert a <= d, "the two ways disagree"
            assert c <= b, "the two ways disagree"


if __name__ == "__main__":
    main()
