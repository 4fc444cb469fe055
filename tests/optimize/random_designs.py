"""Random problems for the optimiser: every kind of objective, target and requirement, on designs that can be searched slowly."""

from __future__ import annotations

import random
from fractions import Fraction
from math import erfc, exp, sqrt

from general_search import Case, Wanted, error_of

from exactdp.census.releases import Release

_MEASURES = ("variance", "error", "absolute", "margin", "relative")
_RANGE = 1e-10, 900.0


def random_case(rng: random.Random) -> Case:
    """One to three levels of one or two queries, some paths, any guarantee from strict to loose, often a requirement."""
    release = _release(rng)
    cells = [f"{level} / {query}" for level, own in release.table.items() for query in own]
    weights = {cell: round(10 ** rng.uniform(0, 3)) for cell in cells}
    measure = rng.choice(_MEASURES)
    typical = {cell: round(10 ** rng.uniform(1, 3)) for cell in cells} if measure == "relative" else {}
    wanted = _wanted(rng)
    kind = rng.choice(("", "", "equal", "tied", "fixed", "budget", "margin", "error", "multiple"))
    plain = Case(
        release,
        wanted,
        measure,
        rng.random() < 0.15,
        weights,
        typical,
        (),
        tuple(range(len(cells))),
        (1.0,) * len(cells),
        (_RANGE[0],) * len(cells),
        (_RANGE[1],) * len(cells),
    )
    return _required(rng, plain, cells, kind, _about(wanted) / (2 * len(cells)))


def _release(rng: random.Random) -> Release:
    levels = ["Nation", "State", "County"][: rng.randint(1, 3)]
    table = {
        level: {query: Fraction(rng.randint(5, 60), 100) for query in ["total", "age"][: rng.randint(1, 2)]}
        for level in levels
    }
    if len(levels) == 1 and len(table["Nation"]) == 1:
        table["Nation"]["age"] = Fraction(1, 10)
    paths: dict[int, tuple[str, ...]] = {1: ()}
    for level in levels[1:]:
        if rng.random() < 0.3:
            paths[len(paths) + 1] = (level,)
    return Release("random", "A random design", "made up", table, paths)


def _wanted(rng: random.Random) -> tuple[Wanted, ...]:
    kind = rng.choice(("delta",) * 5 + ("several", "beta", "mu"))
    epsilon, delta = (
        Fraction(round(10 ** rng.uniform(-0.3, 1.3), 2)).limit_denominator(100),
        Fraction(1, 10 ** rng.randint(4, 11)),
    )
    if kind == "mu":
        return (Wanted("mu", Fraction(round(10 ** rng.uniform(-0.7, 0.3), 2)).limit_denominator(100)),)
    if kind == "beta":
        alpha = Fraction(rng.choice(("0.01", "0.05", "0.1")))
        return (Wanted("beta", alpha, (1 - alpha) * Fraction(rng.randint(60, 97), 100)),)
    first = Wanted("delta", epsilon, delta)
    return (first,) if kind == "delta" else (first, Wanted("delta", epsilon * 2 / 3, delta * 300))


def _about(wanted: tuple[Wanted, ...]) -> float:
    """About the total R that the first target allows: by the tail of the Gaussian alone."""
    one = wanted[0]
    if one.kind == "mu":
        return float(one.x) ** 2
    if one.kind == "beta":
        return (float((1 - one.x - one.y) / (1 - one.x)) * 1.5) ** 2
    low, high = 1e-3, 100.0
    for _ in range(60):
        mu = sqrt(low * high)
        tail = erfc((float(one.x) / mu - mu / 2) / sqrt(2)) / 2
        low, high = (mu, high) if tail * (1 - exp(-1)) < float(one.y) else (low, mu)
    return low * low


def _required(rng: random.Random, plain: Case, cells: list[str], kind: str, share: float) -> Case:
    """The same with one requirement, where it fits; `share` is an equal share of the budget."""
    given = [x for own in plain.release.table.values() for x in own.values()]
    low, high, i = list(plain.low), list(plain.high), rng.randrange(len(cells))
    text, groups, ratios, step = "", plain.groups, plain.ratios, Fraction(0)
    if kind in ("equal", "tied") and len(cells) > 2:
        j = (i + 1) % len(cells)
        i, j = min(i, j), max(i, j)
        text = f"{cells[i]}; {cells[j]}: {kind}"
        groups = tuple((i if c == j else c) - ((i if c == j else c) > j) for c in range(len(cells)))
        ratios = tuple(float(given[j] / given[i]) if c == j and kind == "tied" else 1.0 for c in range(len(cells)))
        low, high = low[:-1], high[:-1]
    elif kind == "fixed" and len(cells) > 2 and float(given[i]) < share:
        text, low[i], high[i] = f"{cells[i]}: fixed", float(given[i]), float(given[i])
    elif kind == "budget":
        bound = Fraction(f"{share * rng.uniform(0.3, 1.2):.3g}")
        side = rng.choice(("<=", ">="))
        text = f"{cells[i]}: budget {side} {bound}"
        low[i], high[i] = (low[i], float(bound)) if side == "<=" else (float(bound), high[i])
    elif kind in ("margin", "error"):
        bound = Fraction(round(2 * error_of(kind, share * rng.uniform(0.5, 1.2))) + 1, 2 if kind == "error" else 1)
        text, low[i] = f"{cells[i]}: {kind} <= {bound}", _least(kind, float(bound))
    elif kind == "multiple" and len(cells) <= 4 and not plain.worst:
        step = 1 / Fraction(max(round(rng.uniform(5, 60) / share), 1))
        text, low = f"all: multiple of {step}", [float(step)] * len(cells)
    if not text:
        return plain
    return Case(
        plain.release,
        plain.wanted,
        plain.measure,
        plain.worst,
        plain.weights,
        plain.typical,
        (text,),
        groups,
        ratios,
        tuple(low),
        tuple(high),
        step,
    )


def _least(kind: str, bound: float) -> float:
    """The least budget that keeps a margin (the whole number within which 95% lie) or a standard error."""
    low, high = 1e-7, 50.0
    for _ in range(80):
        x = sqrt(low * high)
        low, high = (low, x) if _holds(kind, bound, x) else (x, high)
    return high


def _holds(kind: str, bound: float, x: float) -> bool:
    if kind == "error":
        return error_of(kind, x) <= bound
    weights = [exp(-n * n * x / 2) for n in range(int(14 / sqrt(x)) + 3)]
    total = weights[0] + 2 * sum(weights[1:])
    return weights[0] + 2 * sum(weights[1 : int(bound) + 1]) >= 0.95 * total
