"""Noise given by tables, beside dp_accounting on the same work: epsilon for a delta, and how wide the bounds are.

    python benchmarks/any_noise.py

CPU time of one process, from nothing. dp_accounting composes the two probability tables as a privacy loss distribution, once with
losses rounded up and once down (interval 1e-4): its two answers are the bounds that it can give. The delta asked for is a little
above the probability of an infinite loss, which no epsilon gets below.
"""

from __future__ import annotations

import math
import random
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeVar

from dp_accounting.pld import privacy_loss_distribution

from exactdp import IntegerNoise, Skellam

_T = TypeVar("_T")


def timed(work: Callable[[], _T]) -> tuple[float, _T]:
    """CPU seconds and the result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def table(size: int) -> IntegerNoise:
    """A table of no law: a bell with random dents."""
    draw = random.Random(1)
    half = size // 2
    weights = [
        round(1e6 * math.exp(-x * x / (0.15 * half * half))) + draw.randint(1, 1000) for x in range(-half, half + 1)
    ]
    return IntegerNoise([Fraction(w, sum(weights)) for w in weights])


def probabilities(noise: IntegerNoise | Skellam) -> list[float]:
    """The table; for Skellam noise what is within 38 deviations, where the doubles end."""
    if isinstance(noise, IntegerNoise):
        return [float(p) for p in noise.pmf]
    reach = math.ceil(38 * math.sqrt(noise.variance))
    return [p for p in map(noise.pmf, range(-reach, reach + 1)) if p]


def peer(noise: IntegerNoise | Skellam, copies: int, delta: float) -> tuple[float, float]:
    """epsilon by dp_accounting, losses rounded down and up."""
    p = {i: math.log(x) for i, x in enumerate(probabilities(noise)) if x}
    q = {i + noise.sensitivity: x for i, x in p.items()}
    ends = []
    for up in (False, True):
        one = privacy_loss_distribution.from_two_probability_mass_functions(p, q, pessimistic_estimate=up)
        ends.append(one.self_compose(copies).get_epsilon_for_delta(delta))
    return ends[0], ends[1]


def main() -> None:
    """One row for each case."""
    warnings.simplefilter("ignore")
    cases = (
        ("10 x 41-value table", table(41), 10),
        ("1,000 x 11-value cell key", IntegerNoise.cell_key(5, 2), 1000),
        ("20 x 3,001-value truncated Gaussian", IntegerNoise.truncated_gaussian(40_000, 1500), 20),
        ("50 x binomial(200)", IntegerNoise.binomial(200), 50),
        ("50 x Skellam(50)", Skellam(50), 50),
    )
    print(f"{'':36} {'delta':>9} {'epsilon at most':>16} {'width':>8} {'CPU s':>7}   dp_accounting: width, CPU s")
    for name, noise, copies in cases:
        lost = 0.0 if isinstance(noise, Skellam) else 1 - (1 - float(noise.pmf[-1])) ** copies
        delta = max(1e-6, 1.5 * lost)
        seconds, bounds = timed(partial((copies * noise).epsilon_bounds, delta))
        width = (bounds.upper - bounds.lower) / bounds.upper
        other, (low, high) = timed(partial(peer, noise, copies, delta))
        print(
            f"{name:36} {delta:9.2e} {bounds.upper:16.10f} {width:8.1e} {seconds:7.2f}   {(high - low) / high:8.1e} {other:7.2f}",
            flush=True,
        )
        one, answer = timed(partial((copies * noise).delta_bounds, round(0.9 * bounds.upper, 4)))
        width = (answer.upper - answer.lower) / answer.upper
        print(f"{'  delta at 0.9 of it':36} {'':9} {answer.upper:16.10f} {width:8.1e} {one:7.2f}")


if __name__ == "__main__":
    main()
