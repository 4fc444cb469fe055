"""The paper's speed-ups: what it cites, and what its method and this library's engine take on this machine, in one run.

make speedups          measures, and puts the table into docs/benchmarks.md
python benchmarks/speedups.py --print          only prints it

Hours that are cited are of other code on another machine; a ratio is given only between two times of this run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import exactdp
from exactdp import reference
from exactdp.balls import precision
from exactdp.census.pair_results import overall_of
from exactdp.engine.published import theorem
from exactdp.engine.published.plan import ReferencePlan
from exactdp.engine.published.step2_fourier import characteristic
from exactdp.engine.published.step3_trapezoid import weight

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- make speedups: from here -->", "<!-- make speedups: to here -->"
TOLERANCE = "1e-35"  # of the paper's epsilon-delta curves
SAMPLE = 1000
"""How many of the N/2 nodes are evaluated to say what all of them would take."""


def cpu(function: Callable[[], Any], repeats: int) -> float:
    """CPU seconds of this process, the best of some runs."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        taken.append(time.process_time() - start)
    return min(taken)


def published_epsilons(release: exactdp.census.Release) -> list[str]:
    """The 42 epsilons of the published tables: zCDP's simple conversion of 5e-1, 1e-1, 5e-2, ..., 1e-21."""
    deltas = [f"{digit}e-{power}" for power in range(1, 22) for digit in (5, 1)]
    return [f"{exactdp.conversions.zcdp_epsilon_simple(release.rho, delta)!r}" for delta in deltas]


def with_sieve(pair: exactdp.Composition, epsilons: list[str]) -> None:
    """The published method from nothing: plan, Algorithm 1, the characteristic function at the kept nodes once, 42 sums."""
    theorem._characteristic.cache_clear()
    plan = reference.make_reference_plan(pair.discrete_gaussians, TOLERANCE)
    for epsilon in epsilons:
        reference.delta(plan, epsilon)


def without_sieve(plan: ReferencePlan, points: int) -> float:
    """CPU seconds that all nodes k <= N/2 would take: a sample of them, spread evenly, times their number over the sample's.

    Each node needs the characteristic function once and a weight for both tails of each epsilon, as with the sieve.
    """
    half = plan.N // 2 + 1
    nodes = [half * i // SAMPLE for i in range(SAMPLE)]
    laws = [(group.sigma2, group.weight, group.copies) for group in plan.groups]

    def sample() -> None:
        with precision(plan.bits):
            for k, value in characteristic(laws, nodes, plan.N, plan.bits):
                for first in range(-points, points):
                    _ = weight(k, first, plan.U, plan.N) * value

    return cpu(sample, 2) * half / SAMPLE


def all_pairs(release: exactdp.census.Release, epsilons: list[str]) -> None:
    overall_of.cache_clear()
    release.account(epsilons=epsilons).table("delta")


def measured() -> tuple[dict[str, float], ReferencePlan]:
    release = exactdp.census.release("dhc-persons-us")
    pair, epsilons = release.pair(13, 13), published_epsilons(release)
    values = np.array([float(e) for e in epsilons])
    exactdp.Composition(dict(pair.mechanisms)).delta_bounds(values)  # warm up
    plan = reference.make_reference_plan(pair.discrete_gaussians, TOLERANCE)
    return {
        "all nodes": without_sieve(plan, len(epsilons)),
        "kept nodes": cpu(lambda: with_sieve(pair, epsilons), 5),
        "engine": cpu(lambda: exactdp.Composition(dict(pair.mechanisms)).delta_bounds(values), 25),
        "all pairs": cpu(lambda: all_pairs(release, epsilons), 3),
    }, plan


def seconds(value: float) -> str:
    return f"{value * 1e3:.2g} ms" if value < 0.1 else f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def table() -> str:
    """The table of the page, in Markdown: cited times without a ratio, times of this run with one."""
    times, plan = measured()

    def here(what: str, key: str, how: str = "measured") -> list[str]:
        return [what, seconds(times[key]), how, f"{times[key] / times['engine']:,.0f}"]

    rows = [
        ["what, at 42 epsilons", "CPU time", "how it is known", "times the engine for one pair"],
        ["---"] * 4,
        ["method of 2024, one allocation", "1,000 h", "cited, c5.metal", ""],
        ["the paper's method, one pair", "0.5 h", "cited, c5.metal", ""],
        ["the same, (13,13), in the authors' log", "0.37 h", "cited, machine not said", ""],
        ["the paper's method, 946 pairs", "473 h", "946 times 0.5 h", ""],
        here(
            f"published method, no sieve, (13,13), {plan.N:,} nodes", "all nodes", f"extrapolated from {SAMPLE:,} nodes"
        ),
        here(f"published method, sieve, (13,13), {len(plan.kept)} nodes", "kept nodes"),
        here("the engine, (13,13)", "engine"),
        here("the engine, all 946 pairs", "all pairs"),
    ]
    gain, each = times["all nodes"] / times["kept nodes"], times["all pairs"] / 946
    told = (
        f"In this run the sieve made the published method {gain:,.0f} times faster, "
        f"and a pair among all pairs took the engine {seconds(each)}."
    )
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", told])


def main() -> None:
    found = table()
    print(found)
    if "--print" not in sys.argv[1:]:
        before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, end, after = rest.partition(END)
        if not end:
            sys.exit(f"{PAGE.name} has no place for the table: {BEGIN} and {END} are missing.")
        PAGE.write_text(f"{before}{begin}\n\n{found}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
