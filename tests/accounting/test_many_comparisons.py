"""Random noise of every kind against independent oracles: delta and 1 - delta in both directions, epsilon and beta.

Tables, Skellam noise, sampled tables and mixtures of these are compared with all their values in 160 decimal digits
(halves_oracle.py), at deltas down to 1e-100 and below; sampled Gaussians and mixtures of Gaussians with an integral in 38 digits
(sampled_oracle.py). The soak tests count what they compare: 20,000 and more in all.
"""

from __future__ import annotations

import math
import random
import warnings
from fractions import Fraction

import mpmath
import pytest

import sampled_oracle
from any_cases import holds
from exactdp import Composition, Gaussian, GaussianMixture, IntegerNoise, Outcomes, PoissonSampled, Skellam
from exactdp.mechanisms.mechanism import Mechanism
from halves_oracle import ERROR, Halves, Pair, halves

LEAST = mpmath.mpf(10) ** -105
"""The smallest delta that is compared."""

Found = tuple[int, list[str]]
"""How many bounds were compared, and which do not hold."""


def _number(value: Fraction | int) -> mpmath.mpf:
    return mpmath.mpf(Fraction(value).numerator) / Fraction(value).denominator


def _shares(rng: random.Random, size: int) -> list[Fraction]:
    weights = [Fraction(rng.randint(1, 10 ** rng.choice([1, 3, 5]))) for _ in range(size)]
    return [w / sum(weights) for w in weights]


def _outcomes(rng: random.Random) -> tuple[Mechanism, list[Pair]]:
    size = rng.randint(2, 9)
    p, q = _shares(rng, size), _shares(rng, size)
    if rng.random() < 0.3:  # infinite losses in both directions
        p, q = [*p, Fraction(0)], [Fraction(0), *q]
    return Outcomes(p, q), list(zip(p, q, strict=True))


def _sampled(rng: random.Random) -> tuple[Mechanism, list[Pair]]:
    base, pairs = _outcomes(rng)
    rate = Fraction(rng.randint(1, 99), 100)
    return PoissonSampled(base, rate), [((1 - rate) * q + rate * p, q) for p, q in pairs]  # type: ignore[misc]


def _table(rng: random.Random) -> tuple[Mechanism, list[Pair]]:
    kind = rng.randrange(4)
    if kind == 0:
        noise = IntegerNoise.binomial(rng.randint(3, 20), Fraction(rng.randint(1, 9), 10), rng.randint(1, 2))
    elif kind == 1:
        noise = IntegerNoise.cell_key(rng.randint(2, 6), Fraction(rng.randint(4, 15), 8))
    elif kind == 2:
        noise = IntegerNoise.truncated_gaussian(Fraction(rng.randint(2, 30), 4), rng.randint(4, 9))
    else:
        noise = IntegerNoise(_shares(rng, rng.randint(3, 12)))
    none = [Fraction(0)] * noise.sensitivity
    return noise, list(zip([*noise.pmf, *none], [*none, *noise.pmf], strict=True))


def _skellam(rng: random.Random) -> tuple[Mechanism, list[Pair]]:
    noise = Skellam(Fraction(rng.randint(1, 40), 8), rng.randint(1, 3))
    with mpmath.workdps(180):
        v, D, reach = _number(noise.variance), noise.sensitivity, 110
        p = [mpmath.exp(-v) * mpmath.besseli(n, v) for n in range(reach + D + 1)]
        return noise, [(p[abs(x)], p[abs(x - D)]) for x in range(-reach, D + reach + 1)]


KINDS = (_outcomes, _sampled, _table, _skellam)


def _composition(rng: random.Random) -> tuple[Composition, Halves]:
    """One or two kinds of noise in several copies, of at most some thousand values in each half."""
    counts: dict[Mechanism, int] = {}
    tables: list[tuple[list[Pair], int]] = []
    room = 2500.0
    for make in rng.choices(KINDS, weights=(3, 3, 3, 1), k=rng.choice([1, 1, 2])):
        mechanism, pairs = make(rng)
        if mechanism in counts or (tables and make is _skellam):
            continue
        copies = rng.randint(1, 8) if len(pairs) < 100 else 2
        size = len(pairs)
        while copies > 1 and math.comb(-(-copies // 2) + size - 1, size - 1) > room:
            copies -= 1
        room = max(room / math.comb(-(-copies // 2) + size - 1, size - 1), 2.0)
        counts[mechanism] = copies
        tables.append((pairs, copies))
    return Composition(counts), halves(tables)


def _turned(truth: Halves) -> Halves:
    """The two data sets exchanged: losses and probabilities change places, and what was lost is another number."""
    first, second = ({-x: (q, p) for x, (p, q) in side.items()} for side in (truth.first, truth.second))
    return Halves(first, second, truth.finite)


def _greatest(truth: Halves) -> mpmath.mpf:
    return mpmath.ldexp(max(truth.first) + max(truth.second), -560)


def compare_tables(seed: int, asked: int) -> Found:
    """delta and 1 - delta in each direction, then epsilon and beta of the worse one, at random arguments."""
    rng = random.Random(seed)
    composition, forward = _composition(rng)
    both = composition._answers._directions
    truths = [forward, _turned(forward)][: len(both)]
    compared, outside = 0, []
    worst: list[tuple[Fraction, mpmath.mpf]] = []
    top = min(float(_greatest(t)) for t in truths)
    epsilons = (
        [Fraction(round(top * rng.random() ** rng.choice([1, 2]) * 0.999, 9)) for _ in range(asked)] if top > 0 else []
    )
    deltas: dict[Fraction, list[mpmath.mpf]] = {}
    for direction, truth in zip(both, truths, strict=True):
        with mpmath.workprec(640):
            # the finite mass under the direction's own first data set
            kept = mpmath.ldexp(
                sum(p for p, _ in truth.first.values()) * sum(p for p, _ in truth.second.values()), -1120
            )
            exact = {e: truth.delta(e) + (1 - kept if kept < 1 - mpmath.mpf(10) ** -150 else 0) for e in epsilons}
        chosen = [e for e in epsilons if exact[e] > LEAST]
        if not chosen:
            continue
        point = direction.point(chosen)
        for i, e in enumerate(chosen):
            error = ERROR * mpmath.exp(_number(e))
            with mpmath.workprec(640):
                rest = 1 - exact[e]
            for bracket, value, name in ((point.delta, exact[e], "delta"), (point.rest, rest, "1 - delta")):
                compared += 1
                if not holds(bracket, value, error, i):
                    outside.append(f"seed {seed}: {composition}, {name} at {e}")
            deltas.setdefault(e, []).append(exact[e])
    worst = [(e, max(found)) for e, found in deltas.items() if len(found) == len(both)]
    more, wrong = _compare_epsilon(composition, worst, rng)
    return compared + more, outside + [f"seed {seed}: {composition}, {text}" for text in wrong]


def _compare_epsilon(composition: Composition, worst: list[tuple[Fraction, mpmath.mpf]], rng: random.Random) -> Found:
    """epsilon at a delta a little above and below that of an epsilon, and what that epsilon says of beta."""
    compared, wrong = 0, []
    for e, exact in rng.sample(worst, min(len(worst), 3)):
        for factor in (mpmath.mpf("0.999999"), mpmath.mpf("1.000001")):
            delta = Fraction(str(mpmath.nstr(exact * factor, 30)))
            if not 0 < delta < 1:
                continue
            bounds = composition.epsilon_bounds(delta)
            compared += 1
            # delta(e) is above a smaller delta, so epsilon(delta) is above e; and the other way round
            if (bounds.upper < e) if factor < 1 else (bounds.lower > e):
                wrong.append(f"epsilon at {float(delta):.17g}: {bounds}, beyond {float(e)}")
        alpha = Fraction(rng.randint(1, 99), 100)
        beta = composition.beta_bounds(alpha)
        least = max(
            0,
            1 - exact - mpmath.exp(_number(e)) * _number(alpha),
            mpmath.exp(-_number(e)) * (1 - exact - _number(alpha)),
        )
        compared += 1
        if beta.upper < least - mpmath.mpf(10) ** -40 or not beta.lower <= beta.upper:
            wrong.append(f"beta at {alpha}: {beta}, below {least}")
    return compared, wrong


def compare_smooth(seed: int, asked: int) -> Found:
    """Sampled Gaussians and mixtures of three: delta in each direction at epsilons from the bulk to far out."""
    rng = random.Random(seed)
    m, q = Fraction(rng.randint(2, 16), 8), Fraction(rng.randint(4, 64), 256)
    if rng.random() < 0.7:
        weights, means, mechanism = (1 - q, q), (Fraction(0), m), PoissonSampled(Gaussian(1 / m**2), q)
    else:
        weights, means = (Fraction(1, 2), Fraction(1, 2) - q, q), (Fraction(0), m / 2, m)
        mechanism = GaussianMixture(1, means, weights)  # type: ignore[assignment]
    steps = rng.choice([100, 400, 1500])
    growth = math.expm1(float(m) ** 2) * float(q) ** 2 if len(means) == 2 else float(m) ** 2 / 4
    spread, drift = math.sqrt(steps * growth), steps * growth / 2
    epsilons = sorted({Fraction(round((drift + spread * (0.5 + 2.5 * i / asked)) * 1024), 1024) for i in range(asked)})
    mixture = sampled_oracle.Mixture(tuple(map(float, weights)), tuple(map(float, means)))
    compared, outside = 0, []
    for backward, direction in enumerate((mechanism * steps)._answers._directions):
        try:
            exact = sampled_oracle.delta(mixture, steps, [float(e) for e in epsilons], bool(backward), 2400)
        except sampled_oracle.NotConvergedError:  # too many terms: not compared
            continue
        found = direction.point(epsilons).delta
        for i, (e, value) in enumerate(zip(epsilons, exact, strict=True)):
            compared += 1
            if not holds(found, value, value * mpmath.mpf(10) ** -14, i):
                outside.append(f"seed {seed}: {steps} x {mechanism}, {'backward' if backward else 'forward'} at {e}")
    return compared, outside


def _all(compare: object, seeds: range, asked: int) -> int:
    """All of them, none outside; how many."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [compare(seed, asked) for seed in seeds]  # type: ignore[operator]
    assert [text for _, outside in found for text in outside] == []
    return sum(compared for compared, _ in found)


def test_some_tables() -> None:
    assert _all(compare_tables, range(4), 4) > 20


def test_some_smooth_losses() -> None:
    assert _all(compare_smooth, range(1), 4) == 4


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(16))
def test_many_tables(batch: int) -> None:
    compared = _all(compare_tables, range(1000 + 10 * batch, 1010 + 10 * batch), 40)
    print(f"{compared} comparisons")
    assert compared > 1000


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(12))
def test_many_smooth_losses(batch: int) -> None:
    compared = _all(compare_smooth, range(1000 + 8 * batch, 1008 + 8 * batch), 80)
    print(f"{compared} comparisons")
    assert compared > 100
