"""What `exactdp census` costs beside the account that it is about: the 946 pairs of the DHC file x 42 epsilons.

    make bench-census                                   prints the table that docs/benchmarks.md shows
    python benchmarks/census_command.py --cores         what a second core gains, by joblib and by dask: a study, large
                                                        designs, a sweep of 100 edited designs
    python benchmarks/census_command.py --cores 20      the same with a sweep of 20

CPU time, user and system, of whole processes: start-up and imports count for the command, compiling its source does not (Python
keeps what it compiled, unless an environment forbids it). The account is the one of `benchmarks/run.py`, from nothing in a warm
process. They are alternated, and every run has a new folder; medians are compared.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from joblib.externals.loky import get_reusable_executor

import exactdp
from exactdp.census.grids import ALPHAS, DELTAS, Grids, stated_epsilons
from exactdp.census.pair_results import overall_of
from exactdp.census.releases import Release
from exactdp.census.runners import Runner
from exactdp.census.study import run_study
from exactdp.census.sweeps import SweptDesign, sweep
from exactdp.census.workers import make_runner
from exactdp.threads import ONE_THREAD
from growth import design

RUNS = 3
SWEPT = 100
LARGE = ((200, 100), (200, 400), (500, 42))
"""Paths and epsilons of large designs."""
GRID = np.linspace(5, 46, 42)
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
COMMANDS = {
    ("census", "--no-figures"): ("tables and report", 8),
    ("census",): ("tables, figures and report", 16),
}
"""Each command with what it makes, and how many times the account's time it may take."""


def account() -> float:
    """CPU seconds of all pairs on the grid, with nothing planned before."""
    release = exactdp.census.release("dhc-persons-us")
    overall_of.cache_clear()
    start = time.process_time()
    release.account(epsilons=GRID)
    return time.process_time() - start


def command(arguments: Sequence[str]) -> float:
    """CPU seconds of a command as a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        called = [sys.executable, "-m", "exactdp", *arguments, "-o", folder]
        subprocess.run(called, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def study(release: Release, runner: Runner) -> None:
    """What `exactdp census` asks of all pairs, from nothing."""
    overall_of.cache_clear()
    run_study(replace(release), Grids.read(stated_epsilons(release.rho), DELTAS, ALPHAS), runner)


def account_large(release: Release, points: Grids, runner: Runner) -> None:
    """delta of all pairs, from nothing."""
    overall_of.cache_clear()
    run_study(replace(release), points, runner)


def edited(count: int) -> list[SweptDesign]:
    """The DHC file with one cell after another multiplied by a random three-digit decimal."""
    release, draw = exactdp.census.release("dhc-persons-us"), random.Random(0)
    cells = [(level, query) for level, queries in release.table.items() for query in queries]
    return [SweptDesign(_edited(release, *draw.choice(cells), draw), Fraction(1)) for _ in range(count)]


def _edited(release: Release, level: str, query: str, draw: random.Random) -> Release:
    factor = Fraction(draw.randrange(500, 2000), 1000)
    table = {**release.table, level: {**release.table[level], query: release.table[level][query] * factor}}
    return replace(release, table=table)


def taken(work: Callable[[Runner], object], jobs: int, dask: str | None = None) -> tuple[float, float]:
    """Elapsed and CPU seconds with so many processes; their start and their end are part of it."""
    before, start = os.times(), time.perf_counter()
    with make_runner(jobs, dask) as runner:
        work(runner)
    elapsed = time.perf_counter() - start
    get_reusable_executor().shutdown(wait=True)  # what processes used is known when they have ended
    return elapsed, sum(os.times()[:4]) - sum(before[:4])


def hardly_anything(item: int) -> int:
    """A task that has a worker load what every task needs; there is one for each worker."""
    time.sleep(1.0)
    return item


def start_costs() -> dict[str | None, float]:
    """CPU seconds for starting what `--jobs 2` and `--dask local --jobs 2` start, by the address of the cluster."""

    def work(runner: Runner) -> None:
        list(runner.map(hardly_anything, range(4), is_long=True))

    return {address: min(taken(work, 2, address)[1] for _ in range(RUNS)) for address in (None, "local")}


def on_cores(what: str, work: Callable[[Runner], object], starts: dict[str | None, float]) -> None:
    """One process, this one and another of joblib's, and a dask cluster of two workers with one thread each."""
    one, cpu = taken(work, 1)
    print(f"  {what}: {one:.1f} s on one core, CPU {cpu:.1f} s", flush=True)
    for name, address in (("joblib", None), ("dask", "local")):
        two, both = taken(work, 2, address)
        gain = (
            f"{one / two:.2f} times as fast; without the start {(both - starts[address]) / cpu:.2f} times the CPU time"
        )
        print(f"    two processes, {name}: {two:.1f} s, CPU {both:.1f} s: {gain}", flush=True)


def cores(designs: int) -> None:
    starts = start_costs()
    print("\nOne process and two, from nothing")
    print(
        f"  CPU seconds to start: one more process {starts[None]:.1f}, a local dask cluster of two {starts['local']:.1f}"
    )
    dhc = exactdp.census.release("dhc-persons-us")
    on_cores(f"all pairs of {dhc.name}, what `exactdp census` asks", partial(study, dhc), starts)
    for paths, epsilons in LARGE:
        large, points = design(paths), Grids.read(np.linspace(3, 43, epsilons).round(6).tolist())
        what = f"delta of all {len(large.pairs):,} pairs of {large.name} at {epsilons} epsilons"
        on_cores(what, partial(account_large, large, points), starts)
    swept = edited(designs)

    def work(runner: Runner) -> object:
        return list(sweep(swept, [Fraction(1, 10**10)], runner))

    on_cores(f"a sweep of {designs} edited designs", work, starts)


def main() -> None:
    if "--cores" in sys.argv[1:]:
        if not ONE_THREAD.keys() <= os.environ.keys():  # as in a command
            os.execve(sys.executable, [sys.executable, *sys.argv], {**ONE_THREAD, **os.environ})
        cores(int(sys.argv[2]) if len(sys.argv) > 2 else SWEPT)
        return
    account()  # warm up
    command(["census", "--no-figures"])
    accounts: list[float] = []
    commands: dict[tuple[str, ...], list[float]] = {arguments: [] for arguments in COMMANDS}
    for _ in range(RUNS):
        accounts.append(account())
        for arguments, seconds in commands.items():
            seconds.append(command(arguments))
    own = statistics.median(accounts)
    print(f"\nThe account, 946 pairs x {len(GRID)} epsilons: {own:.2f} CPU seconds (median of {RUNS})")
    for arguments, seconds in commands.items():
        made, most = COMMANDS[arguments]
        taken = statistics.median(seconds)
        line = f"exactdp {' '.join(arguments)}: {taken:.2f} CPU seconds for {made}"
        print(f"  {line}, {taken / own:.1f} times the account (aim: at most {most})")


if __name__ == "__main__":
    main()
