"""Side by side with Google's dp_accounting (its discrete-Gaussian PLD), same process, same work, warm imports.

    make bench          prints the table that docs/benchmarks.md shows

Speed is a ratio to the peer in the same run; machines are noisy and absolute times are not claims.
"""

from __future__ import annotations

import math
import statistics
import time
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

import exactdp
import import_time
from exactdp.census.pair_results import overall_of

DELTA = "1e-10"
GRID = np.linspace(5, 46, 42)


def timed(function: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Median CPU seconds and the last result: both sides work in one thread, and a busy machine counts less."""
    seconds, result = [], None
    for _ in range(repeat):
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), result


def correct_digits(value: float, exact: Decimal) -> float:
    error = abs(Decimal(value) - exact) / abs(exact)
    return 17.0 if error == 0 else min(17.0, float(-error.log10()))


def fresh(pair: exactdp.Composition) -> exactdp.Composition:
    """The same composition with nothing cached."""
    return exactdp.Composition(dict(pair.mechanisms))


def peer_pld(pair: exactdp.Composition, connect_dots: bool) -> Any:
    total = None
    for mechanism, count in pair.discrete_gaussians.items():
        one = pld.from_discrete_gaussian_mechanism(math.sqrt(mechanism.sigma2), use_connect_dots=connect_dots)
        one = one.self_compose(count)
        total = one if total is None else total.compose(one)
    return total


def peer_epsilon(pair: exactdp.Composition, connect_dots: bool) -> float:
    return float(peer_pld(pair, connect_dots).get_epsilon_for_delta(float(DELTA)))


def peer_deltas(pair: exactdp.Composition, connect_dots: bool) -> Any:
    return peer_pld(pair, connect_dots).get_delta_for_epsilon(GRID)


def compare_epsilon(name: str, pair: exactdp.Composition) -> None:
    exact = fresh(pair).epsilon_bounds(DELTA, digits=20).lower
    ours, value = timed(lambda: fresh(pair).epsilon(DELTA), 101)
    print(f"\n{name}: epsilon at delta = {DELTA} from nothing; exactly {exact:.18f}")
    print(f"  exactdp               {ours * 1e3:9.2f} ms   {value:.14f}   {correct_digits(value, exact):4.1f} digits")
    for connect_dots in (True, False):
        theirs, peer = timed(partial(peer_epsilon, pair, connect_dots), 3)
        label = "connect dots" if connect_dots else "pessimistic "
        print(
            f"  dp_accounting, {label} {theirs * 1e3:7.0f} ms   {peer:.14f}   {correct_digits(peer, exact):4.1f} digits   "
            f"{theirs / ours:6.0f} times slower"
        )


def compare_curve(name: str, pair: exactdp.Composition) -> None:
    ours, bounds = timed(lambda: fresh(pair).delta_bounds(GRID), 9)
    exact = [fresh(pair).delta_bounds(e, digits=20).lower for e in (GRID[0], GRID[20], GRID[-1])]
    digits = [correct_digits(bounds.upper[i], x) for i, x in zip((0, 20, -1), exact, strict=True)]
    print(f"\n{name}: delta at {len(GRID)} epsilons from {GRID[0]:g} to {GRID[-1]:g}, from nothing")
    print(f"  exactdp               {ours * 1e3:9.2f} ms   digits at both ends and the middle: {_list(digits)}")
    for connect_dots in (True, False):
        theirs, peer = timed(partial(peer_deltas, pair, connect_dots), 3)
        digits = [correct_digits(float(peer[i]), x) for i, x in zip((0, 20, -1), exact, strict=True)]
        label = "connect dots" if connect_dots else "pessimistic "
        print(f"  dp_accounting, {label} {theirs * 1e3:7.0f} ms   {_list(digits)}   {theirs / ours:6.0f} times slower")


def compare_all_pairs(release: exactdp.census.Release) -> None:
    """All pairs of a release against one pair of the peer, on the same 42 epsilons; ours on one core, planning included."""

    def everything() -> Any:
        overall_of.cache_clear()
        return release.account(epsilons=GRID).table("delta")

    ours, bounds = timed(everything, 5)
    width = float(((bounds.upper - bounds.lower) / bounds.upper).max())
    pair = release.pair(13, 13)
    print(f"\nAll {len(release.pairs)} pairs x {len(GRID)} epsilons in float64 with bounds, from nothing, one process")
    print(f"  exactdp               {ours * 1e3:9.0f} ms   widest bounds {width:.1e}")
    for connect_dots in (True, False):
        label = "connect dots" if connect_dots else "pessimistic "
        for what, function in (("42 epsilons", peer_deltas), ("one epsilon", peer_epsilon)):
            theirs, _ = timed(partial(function, pair, connect_dots), 3)
            print(
                f"  dp_accounting, {label} {theirs * 1e3:7.0f} ms   for ONE pair, {what}: {theirs / ours:.1f} times as long"
            )


def _list(digits: list[float]) -> str:
    return ", ".join(f"{d:.1f}" for d in digits)


def compare_arithmetics(name: str, pair: exactdp.Composition, digits: int = 30) -> None:
    floats, _ = timed(lambda: fresh(pair).delta_bounds(GRID), 9)
    balls, _ = timed(lambda: fresh(pair).delta_bounds(GRID, digits=digits), 3)
    print(f"\n{name}: {len(GRID)} points, float64 {floats * 1e3:.1f} ms, {digits} digits in balls {balls * 1e3:.1f} ms")
    print(f"  ratio {balls / floats:.1f}")


def memory(name: str, pair: exactdp.Composition) -> None:
    tracemalloc.start()
    composition = fresh(pair)
    composition.delta_bounds(GRID)
    composition.beta_bounds([0.01, 0.5])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    account = composition.explain("26.34")
    print(
        f"{name}: {account.kept:,} of {account.nodes:,} nodes kept at epsilon = 26.34, peak memory {peak / 2**20:.1f} MB"
    )


def main() -> None:
    release = exactdp.census.release("dhc-persons-us")
    pair, hardest = release.pair(13, 13), release.pair(6, 6)
    fresh(pair).epsilon(DELTA)  # warm up
    compare_epsilon("DHC pair (13,13)", pair)
    compare_curve("DHC pair (13,13)", pair)
    compare_epsilon("DHC pair (6,6), the hardest", hardest)
    compare_curve("DHC pair (6,6), the hardest", hardest)
    compare_all_pairs(release)
    compare_arithmetics("DHC pair (13,13)", pair)
    print()
    for k, other in ((13, 13), (6, 12), (24, 24), (33, 33), (6, 6)):
        memory(f"DHC pair ({k},{other})", release.pair(k, other))
    import_time.main()


if __name__ == "__main__":
    main()
