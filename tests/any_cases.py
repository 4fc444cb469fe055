"""Compositions of any mechanisms, small enough to list all values of their loss, and what it means to enclose one."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache

import mpmath

from any_oracle import Listed, expected_atoms, listed
from exactdp import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Outcomes,
    RandomizedResponse,
)
from exactdp.brackets import Bracket
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.mechanisms.mechanism import Mechanism

Counts = dict[Mechanism, int]

NARROW = 1e-9


def _random_mechanism(rng: random.Random) -> Mechanism:
    kind = rng.choice(
        ["irrational", "irrational", "decimal", "coarse", "laplace", "response", "box", "outcomes", "normal"]
    )
    D = rng.choice([1, 1, 2, 3])
    if kind == "irrational":
        return DiscreteGaussian(sigma=rng.uniform(0.5, 5), sensitivity=D)
    if kind == "decimal":
        return DiscreteGaussian(f"{rng.uniform(0.4, 20):.3g}", D)
    if kind == "coarse":
        return DiscreteGaussian(sigma=rng.uniform(0.25, 0.6), sensitivity=1)
    if kind == "laplace":
        return DiscreteLaplace(Fraction(rng.randint(5, 60), rng.randint(3, 12)), D)
    if kind == "response":
        if rng.random() < 0.5:
            return RandomizedResponse(f"{rng.uniform(0.1, 2):.2f}", rng.choice([2, 3, 10]))
        return RandomizedResponse(noise=Fraction(rng.randint(1, 9), 10), categories=rng.choice([2, 5]))
    if kind == "box":
        return ApproximateDP(f"{rng.uniform(0.1, 1.5):.2f}", rng.choice([0, Fraction(1, 10**6), Fraction(1, 100)]))
    if kind == "outcomes":
        sizes = [[rng.randint(1, 9) for _ in range(2)] for _ in range(2)]
        p, q = ([Fraction(x, sum(xs)) for x in xs] for xs in sizes)
        if rng.random() < 0.4:  # outcomes that only one data set can give
            lost = Fraction(1, rng.choice([20, 10**4, 10**9]))
            p, q = [*(x * (1 - lost) for x in p), lost, Fraction(0)], [*(x * (1 - lost) for x in q), Fraction(0), lost]
        return Outcomes(p, q)
    return Gaussian(Fraction(rng.uniform(0.5, 30)), Fraction(rng.randint(1, 3)))


def _random_counts(seed: int) -> Counts:
    """One to five mechanisms with few enough values to list them all."""
    rng = random.Random(seed)
    while True:
        counts: Counts = {}
        for _ in range(rng.randint(1, 4)):
            m = _random_mechanism(rng)
            counts[m] = counts.get(m, 0) + rng.choice([1, 1, 2, 3])
        smooth = any(isinstance(m, Gaussian) for m in counts)
        if expected_atoms(counts) <= (150 if smooth else 15_000):
            return counts


NAMED: dict[str, Counts] = {
    "one coarse noise": {DiscreteGaussian("1/20"): 1},
    "coarse noise of two kinds": {DiscreteGaussian("1/5"): 4, DiscreteGaussian(sigma=0.37): 2},
    "fine noise": {DiscreteGaussian(sigma=41.7): 5},
    "fine and coarse": {DiscreteGaussian(sigma=6.1, sensitivity=2): 3, DiscreteGaussian("0.11"): 1},
    "bounded": {RandomizedResponse(1): 3, DiscreteLaplace("7/3", 5): 2},
    "bounded, one value": {ApproximateDP(0): 3},
    "lost mass": {ApproximateDP("0.3", "1e-6"): 4, DiscreteGaussian(sigma=1.7): 2},
    "lost mass only": {ApproximateDP(0, "1/7"): 2},
    "asymmetric": {Outcomes(["1/2", "1/2"], ["1/7", "6/7"]): 5},
    "asymmetric and lost": {Outcomes([0.6, 0.3, 0.1, 0], [0.2, 0.5, 0, 0.3]): 3, DiscreteGaussian(3): 2},
    "lost on one side": {Outcomes(["1/2", "1/2"], ["1", "0"]): 2, RandomizedResponse("1/2"): 2},
    "continuous": {Gaussian(2): 3},
    "continuous and coarse": {Gaussian(9): 1, DiscreteGaussian("0.3"): 2},
    "continuous, small": {Gaussian(10**4): 1, RandomizedResponse(1): 3},
    "continuous, asymmetric and lost": {Gaussian(4): 1, Outcomes([0.6, 0.3, 0.1], [0.2, 0.8, 0]): 2},
}

SEVERAL_UNITS: dict[str, Counts] = {
    "three unrelated losses": {Outcomes(["1/2", "1/5", "3/10"], ["1/10", "3/10", "3/5"]): 5},
    "two tables": {
        Outcomes(["5/19", "3/19", "6/19", "5/19"], ["1/9", "1/2", "1/3", "1/18"]): 2,
        Outcomes(["1/2", "5/18", "2/9"], ["2/13", "8/13", "3/13"]): 2,
    },
    "a table and noise": {
        Outcomes(["7/25", "7/25", "8/25", "3/25"], ["1/2", "1/6", "1/12", "1/4"]): 2,
        DiscreteGaussian(sigma=4.01, sensitivity=2): 2,
    },
}
"""Tables whose losses are on no lattice, though there are few of them."""

SEEDS = range(24)


@cache
def case_of(case: str | int) -> tuple[Counts, Listed]:
    counts = {**NAMED, **SEVERAL_UNITS}[case] if isinstance(case, str) else _random_counts(case)
    return counts, listed(counts)


CASES: list[str | int] = [*NAMED, *SEEDS]
FEW_CORNERS = ("bounded, one value", "lost mass only", "lost on one side", "asymmetric and lost")


def epsilons_of(counts: Counts, truth: Listed) -> list[Fraction]:
    """Both signs, 0, two atoms, next to the greatest loss and beyond it."""
    at = [truth.losses[int(len(truth.losses) * share)] for share in (0.5, 0.7)]
    atoms = [Fraction(x, 1 << 300) for x in at]
    end = max(Fraction(truth.losses[-1], 1 << 300), Fraction(-truth.losses[0], 1 << 300))
    found = [Fraction(0), Fraction(1, 3), Fraction(-7, 5), Fraction(3), *atoms]
    found = [e for e in found if truth.worst(e) > mpmath.mpf(10) ** -80]
    if not any(isinstance(m, (DiscreteGaussian, Gaussian)) for m in counts):
        found += [end * Fraction(99, 100), end + 1]
    return found


def inside(lower: float, upper: float, exact: mpmath.mpf, error: mpmath.mpf) -> bool:
    return bool(mpmath.mpf(lower) - error <= exact <= mpmath.mpf(upper) + error)


def holds(bracket: Bracket, exact: mpmath.mpf, error: mpmath.mpf, i: int = 0) -> bool:
    with mpmath.workdps(50):
        scale = mpmath.exp(mpmath.mpf(float(bracket.log_scale[i])))
        low, high = (scale * mpmath.mpf(float(x[i])) for x in (bracket.lower, bracket.upper))
        slack = scale * mpmath.mpf(float(bracket.upper[i])) * mpmath.mpf(10) ** -40
        return bool(low - error - slack <= exact <= high + error + slack)


def total_of(counts: Counts) -> TotalLoss:
    return TotalLoss(tuple(Part(m.loss(), n) for m, n in counts.items()))
