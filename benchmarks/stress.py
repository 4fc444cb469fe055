"""The stress family: random compositions of any kinds, sizes and depths, and how narrow and how fast their answers are.

    .venv/bin/python benchmarks/stress.py [first] [count] [--check] [--no-sieve]

Member number n is made from the seed n: 1 to 400 mechanisms, 1 to 60 distinct, sigma2 from 0.05 to 1e5, rational, decimal or
irrational, half of the members with other kinds of mechanism among them, and an epsilon of any depth. With --check every answer
is compared with an independent one (tests/any_oracle.py); with --no-sieve the loss's own lattice is not used even where there
is one.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import exactdp
from exactdp.accounting.directions import BothDirections
from exactdp.engine.effort import Effort
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.mechanisms.mechanism import Mechanism

NARROW, FAST = 1e-6, 1.0
"""What every member should meet: relative width and seconds."""

SIGMAS = 6.0
GRID_TOLERANCE = 1e-4
MOST_CHECKED_ATOMS = 60_000
QUANTILES = (0.5, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class Result:
    """One member's answer and what it took."""

    number: int
    mechanisms: Mapping[Mechanism, int]
    epsilon: Fraction
    log_lower: float
    log_upper: float
    seconds: float
    method: str

    @property
    def width(self) -> float:
        """upper / lower - 1."""
        return math.expm1(min(self.log_upper - self.log_lower, 700.0)) if self.log_upper > -math.inf else 0.0

    @property
    def is_good(self) -> bool:
        """Whether it is narrow and fast."""
        return self.width < NARROW and self.seconds < FAST


def total_of(mechanisms: Mapping[Mechanism, int]) -> TotalLoss:
    """The loss of the whole composition."""
    return TotalLoss(tuple(Part(m.loss(), n) for m, n in mechanisms.items()))


def member(rng: random.Random) -> Counter[Mechanism]:
    """A random composition."""
    groups = rng.randint(1, 60)
    size = rng.randint(groups, 400)
    counts = [1] * groups
    for _ in range(size - groups):
        counts[rng.randrange(groups)] += 1
    style = rng.choice(["rational", "decimal", "irrational", "mixed"])
    other_kinds = rng.random() < 0.5
    result: Counter[Mechanism] = Counter()
    for count in counts:
        own = rng.choice(["rational", "decimal", "irrational"]) if style == "mixed" else style
        result[_mechanism(rng, own, other_kinds)] += count
    return result


def _mechanism(rng: random.Random, style: str, other_kinds: bool) -> Mechanism:
    sigma2 = math.exp(rng.uniform(math.log(0.05), math.log(1e5)))
    sensitivity = rng.randint(1, 10)
    kind = rng.random() if other_kinds else 1.0
    if kind < 0.08:
        return exactdp.Gaussian(Fraction(sigma2), sensitivity)
    if kind < 0.16:
        scale = Fraction(max(math.sqrt(sigma2), sensitivity / 50)).limit_denominator(1000)
        return exactdp.DiscreteLaplace(scale, sensitivity)
    if kind < 0.24:
        epsilon = Fraction(rng.uniform(0.05, 2)).limit_denominator(100)
        return exactdp.RandomizedResponse(epsilon, rng.choice([2, 2, 3, 10]))
    if kind < 0.28:
        epsilon = Fraction(rng.uniform(0.05, 1)).limit_denominator(100)
        return exactdp.ApproximateDP(epsilon, rng.choice([Fraction(0), Fraction(1, 10**9)]))
    if kind < 0.32:
        return _outcomes(rng)
    if style == "rational":
        exact = Fraction(sigma2).limit_denominator(50) if sigma2 > 0.1 else Fraction(1, round(1 / sigma2))
        return exactdp.DiscreteGaussian(exact, sensitivity)
    if style == "decimal":
        return exactdp.DiscreteGaussian(f"{sigma2:.3g}", sensitivity)
    return exactdp.DiscreteGaussian(sigma=math.sqrt(sigma2), sensitivity=sensitivity)


def _outcomes(rng: random.Random) -> Mechanism:
    """Two to five outcomes with unrelated probabilities; one in four has outcomes that only one data set can give."""
    n = rng.randint(2, 5)
    lists = [[rng.randint(1, 12) for _ in range(n)] for _ in range(2)]
    p, q = ([Fraction(x, sum(xs)) for x in xs] for xs in lists)
    if rng.random() < 0.25:
        lost = Fraction(1, 10 ** rng.randint(3, 12))
        p, q = [*(x * (1 - lost) for x in p), lost, Fraction(0)], [*(x * (1 - lost) for x in q), Fraction(0), lost]
    return exactdp.Outcomes(p, q)


def question(number: int) -> tuple[Counter[Mechanism], Fraction]:
    """Member `number` and its epsilon: the mean loss under a tilt of 0 to 7 standard deviations."""
    rng = random.Random(number)
    mechanisms = member(rng)
    total = total_of(mechanisms)
    mean, _ = total.mean_variance(rng.uniform(0, 7) / math.sqrt(total.widest))
    return mechanisms, Fraction(round(max(mean, 0.0), 6))


def answer(number: int, sieve: bool) -> Result:
    """One member from nothing: made, planned and evaluated."""
    mechanisms, epsilon = question(number)
    start = time.perf_counter()
    if sieve:
        composition = exactdp.Composition(mechanisms)
        composition.delta_bounds(epsilon)
        seconds = time.perf_counter() - start
        account = composition.explain(epsilon)
    else:
        anyhow = BothDirections(mechanisms, Effort())
        anyhow.point([epsilon])
        seconds = time.perf_counter() - start
        account = anyhow.explain(epsilon)
    return Result(number, mechanisms, epsilon, account.log_lower, account.log_upper, seconds, account.method)


def oracle() -> Any:
    """tests/any_oracle.py, which shares no code with the package."""
    path = Path(__file__).parent.parent / "tests" / "any_oracle.py"
    spec = importlib.util.spec_from_file_location("any_oracle", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["any_oracle"] = module
    spec.loader.exec_module(module)
    return module


def check(result: Result, independent: Any) -> tuple[str, str | None]:
    """By which independent answer a result was checked, and what is wrong with it, if anything."""
    try:
        exact = _listed(result, independent)
    except independent.TooManyAtomsError:
        return "Monte Carlo and grid", _estimated(result, independent)
    low, high = (_exp(x) for x in (result.log_lower, result.log_upper))
    wrong = not low - exact[1] <= exact[0] <= high + exact[1]
    return "brute force", f"exact {exact[0]}, bounds {low} and {high}" if wrong else None


def _listed(result: Result, independent: Any) -> tuple[Any, Any]:
    """The exact delta and the oracle's own error."""
    independent.MOST_ATOMS = MOST_CHECKED_ATOMS
    found = independent.listed(result.mechanisms)
    if found.spread and len(found.atoms) > MOST_CHECKED_ATOMS // 20:
        raise independent.TooManyAtomsError
    exact, error = found.worst(result.epsilon), found.error(result.epsilon)
    if exact < 1e12 * error:  # deeper than the oracle
        raise independent.TooManyAtomsError
    return exact, error


def _exp(log: float) -> Any:
    """e^log at any size, with more digits than doubles have."""
    import mpmath

    with mpmath.workdps(40):
        return mpmath.exp(mpmath.mpf(log))


def _estimated(result: Result, independent: Any) -> str | None:
    """Monte Carlo with six standard errors, and the grid estimate with its tolerance."""
    directions = (False, True) if any(isinstance(m, exactdp.Outcomes) for m in result.mechanisms) else (False,)
    found = [independent.sampled(result.mechanisms, result.epsilon, d, size=50_000) for d in directions]
    # in units of each direction's scale; the worse direction has the larger upper end
    ends = [
        tuple(log + math.log(max(value + side * SIGMAS * error, 1e-300)) for side in (-1, 1))
        for log, value, error in found
    ]
    low, high = max(e[0] for e in ends), max(e[1] for e in ends)
    grid = max(independent.on_grid(result.mechanisms, result.epsilon, d) for d in directions)
    if not (result.log_lower <= high and result.log_upper >= low):
        return f"Monte Carlo: log delta from {low} to {high}, bounds {result.log_lower} and {result.log_upper}"
    if not result.log_lower - GRID_TOLERANCE <= grid <= result.log_upper + GRID_TOLERANCE:
        return f"grid: log delta about {grid}, bounds {result.log_lower} and {result.log_upper}"
    return None


def table(results: list[Result]) -> None:
    """Widths and times, by method and overall."""
    names = "   ".join(f"{'max' if q == 1 else f'{q:.0%}':>8}" for q in QUANTILES)
    print(f"\n{'method':<52} {'members':>7}   {'':<6} {names}")
    methods = sorted({r.method for r in results})
    for name in [*methods, "all"]:
        own = [r for r in results if name in (r.method, "all")]
        for what, values in (("width", [r.width for r in own]), ("s", [r.seconds for r in own])):
            cells = "   ".join(f"{x:8.1e}" if what == "width" else f"{x:8.3f}" for x in np.quantile(values, QUANTILES))
            print(
                f"{name[:52] if what == 'width' else '':<52} {len(own) if what == 'width' else '':>7}   {what:<6} {cells}"
            )
    good = sum(r.is_good for r in results)
    print(f"narrower than {NARROW:.0e} in under {FAST:g} s: {good} of {len(results)} = {good / len(results):.2%}")


def show(result: Result) -> None:
    """A member that misses the aim."""
    print(
        f"  member {result.number}: {len(result.mechanisms)} groups, {sum(result.mechanisms.values())} mechanisms, "
        f"epsilon {float(result.epsilon):.6f}, log delta {result.log_upper:.3f}, width {result.width:.1e}, "
        f"{result.seconds:.2f} s, {result.method}"
    )


def family(first: int, count: int, checked: bool, sieve: bool) -> None:
    """The members from `first` on."""
    independent = oracle() if checked else None
    results, ways, wrong = [], Counter[str](), []
    print(f"stress family, members {first} to {first + count - 1}; those that miss the aim:")
    for number in range(first, first + count):
        result = answer(number, sieve)
        results.append(result)
        if not result.is_good:
            show(result)
        if independent is not None:
            way, problem = check(result, independent)
            ways[way] += 1
            if problem is not None:
                wrong.append(number)
                print(f"  WRONG: member {number}, epsilon {result.epsilon}: {problem}")
    table(results)
    if independent is not None:
        print(f"checked: {', '.join(f'{n} by {way}' for way, n in ways.items())}; {len(wrong)} wrong {wrong or ''}")


def dhc_like(rng: random.Random) -> exactdp.Composition:
    """DHC pair (13,13) with every sigma2 multiplied by a random double."""
    pair = exactdp.census.release("dhc-persons-us").pair(13, 13)
    return exactdp.Composition(
        {
            exactdp.DiscreteGaussian(Fraction(float(m.sigma2) * rng.uniform(0.5, 2)), m.sensitivity): n
            for m, n in pair.discrete_gaussians.items()
        }
    )


def designs(count: int = 100) -> None:
    """DHC-like designs on no usable lattice: delta at one epsilon, and epsilon at one delta, each from nothing."""
    rng = random.Random(94171)
    rows = []
    for _ in range(count):
        design, at = dhc_like(rng), Fraction(round(rng.uniform(5, 40), 3))
        start = time.perf_counter()
        bounds = exactdp.Composition(dict(design.mechanisms)).delta_bounds(at)
        middle = time.perf_counter()
        ends = exactdp.Composition(dict(design.mechanisms)).epsilon_bounds("1e-10")
        last = time.perf_counter()
        rows.append(
            (bounds.upper / bounds.lower - 1, middle - start, (ends.upper - ends.lower) / ends.upper, last - middle)
        )
    columns = np.array(rows).T
    print(f"\n{count} DHC-like designs, from nothing")
    for name, width, seconds in (("delta", columns[0], columns[1]), ("epsilon(1e-10)", columns[2], columns[3])):
        print(
            f"  {name:<15} median {np.median(seconds) * 1e3:6.1f} ms, slowest {seconds.max() * 1e3:6.1f} ms, "
            f"widest {width.max():.1e} relative"
        )


def redistricting() -> None:
    """The P.L. 94-171 values, each from nothing."""
    print("\nP.L. 94-171 persons, pair (1, 1), from nothing")
    for name, epsilons in (("pl94-persons-us", ("5", "17.14", "40")), ("pl94-persons-pr", ("17.14", "26.34"))):
        pair = exactdp.census.release(name).pair(1, 1)
        for epsilon in epsilons:
            start = time.perf_counter()
            bounds = exactdp.Composition(dict(pair.mechanisms)).delta_bounds(epsilon)
            seconds = time.perf_counter() - start
            width = bounds.upper / bounds.lower - 1
            print(f"  {name}  delta({epsilon:>5}) = {bounds.upper:.15e}  width {width:.1e}  {seconds * 1e3:7.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("count", type=int, nargs="?", default=300)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-sieve", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", exactdp.AccuracyWarning)
    exactdp.DiscreteGaussian(2).loss()
    (2 * exactdp.DiscreteGaussian(2)).delta(1)  # warm up
    redistricting()
    designs()
    family(given.first, given.count, given.check, not given.no_sieve)


if __name__ == "__main__":
    main()
