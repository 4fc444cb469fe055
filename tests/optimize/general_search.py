"""A slow general-purpose search for the best design, and an independent check of a guarantee: neither shares code with optimize.

delta of every pair is convolved on a grid (tests/any_oracle.py). The search is Nelder and Mead's, over the logarithms of the
budgets, each design scaled to the guarantee first.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

import any_oracle
from exactdp.census.releases import Release

MEASURES = ("variance", "error", "absolute", "margin")


class Case(NamedTuple):
    release: Release
    epsilon: Fraction
    delta: Fraction
    measure: str
    worst: bool
    weights: dict[str, int]


def random_case(rng: random.Random) -> Case:
    """One to three levels of one or two queries, some paths, any guarantee from strict to loose."""
    levels = ["Nation", "State", "County"][: rng.randint(1, 3)]
    table = {
        level: {query: Fraction(rng.randint(5, 60), 100) for query in ["total", "age"][: rng.randint(1, 2)]}
        for level in levels
    }
    if len(levels) == 1 and len(table["Nation"]) == 1:
        table["Nation"]["age"] = Fraction(1, 10)
    paths: dict[int, tuple[str, ...]] = {1: ()}
    for level in levels[1:]:
        if rng.random() < 0.4:
            paths[len(paths) + 1] = (level,)
    weights = {f"{level} / {query}": round(10 ** rng.uniform(0, 3)) for level, own in table.items() for query in own}
    release = Release("random", "A random design", "made up", table, paths)
    epsilon, delta = (
        Fraction(round(10 ** rng.uniform(-0.3, 1.3), 2)).limit_denominator(100),
        Fraction(1, 10 ** rng.randint(4, 11)),
    )
    return Case(release, epsilon, delta, rng.choice(MEASURES), rng.random() < 0.15, weights)


def log_delta(release: Release, epsilon: Fraction, size: int = 1 << 15) -> float:
    """The largest of all pairs, each convolved on a grid: an estimate, off by the square of the grid's step."""
    return max(any_oracle.on_grid(c.mechanisms, epsilon, size=size) for c in release.compositions)


def objective(case: Case, budgets: np.ndarray) -> float:
    """From the definition: sums over the integers, far enough."""
    total = []
    for weight, x in zip(case.weights.values(), budgets.tolist(), strict=True):
        reach = math.ceil(12 / math.sqrt(x)) + 2
        n = np.arange(-reach, reach + 1.0)
        p = np.exp(-n * n * x / 2)
        p /= p.sum()
        variance = float(p @ n**2)
        value = {
            "variance": variance,
            "error": variance**0.5,
            "absolute": float(p @ abs(n)),
            "margin": 1.959964 * variance**0.5,
        }
        total.append(weight * value[case.measure])
    return max(total) if case.worst else sum(total)


def design(case: Case, budgets: np.ndarray) -> Release:
    """The release with these budgets, to nine digits."""
    given = iter(Fraction(f"{x:.9g}") for x in budgets.tolist())
    table = {level: {query: next(given) for query in own} for level, own in case.release.table.items()}
    return Release(case.release.name, case.release.title, case.release.source, table, case.release.bypassed)


def scaled(case: Case, budgets: np.ndarray, looks: int = 7) -> np.ndarray | None:
    """The budgets times a factor at which the guarantee holds, found by the secant method on log delta; None if none was."""
    target, best = math.log(case.delta), None
    log_factor, last = 0.0, None
    for _ in range(looks):
        at = budgets * math.exp(log_factor)
        if not 1e-9 < at.min() < at.max() < 900:
            return best
        over = log_delta(design(case, at), case.epsilon) - target
        if over <= 0:
            best = at if best is None or at.sum() > best.sum() else best
            if over > -1e-6:
                break
        slope = 10.0 if last is None or last[0] == log_factor else (over - last[1]) / (log_factor - last[0])
        last = log_factor, over
        log_factor -= (over + 2e-7) / (slope if slope > 0.5 else 10.0)
    return best


def searched(case: Case, starts: list[np.ndarray], looks: int) -> float:
    """The best objective that Nelder and Mead find from the starts."""
    best = math.inf

    def value(logs: np.ndarray) -> float:
        nonlocal best
        at = scaled(case, np.exp(logs))
        if at is None:
            return 1e300
        found = objective(case, at)
        best = min(best, found)
        return found

    for start in starts:
        minimize(value, np.log(start), method="Nelder-Mead", options={"maxfev": looks, "xatol": 1e-6, "fatol": 1e-9})
    return best


def meets_everywhere(release: Release, epsilon: Fraction, delta: Fraction) -> bool:
    """Every pair, on a grid that is fine enough for a millionth of delta."""
    return log_delta(release, epsilon, 1 << 18) <= math.log(delta) + 2e-6
