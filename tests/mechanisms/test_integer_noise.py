"""Noise given by a table: its named constructors against their definitions, its loss against brute force."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import mpmath
import pytest

from exactdp import Composition, DiscreteGaussian, IntegerNoise, Outcomes, from_json, to_json
from exactdp.apps.cli.mechanism_option import read_mechanisms
from exactdp.errors import InvalidInputError
from halves_oracle import halves


def _exact(noise: IntegerNoise, copies: int, epsilon: Fraction, by: int | None = None) -> mpmath.mpf:
    """The larger delta of the two directions, by every outcome of all copies."""
    shift = noise.sensitivity if by is None else by
    p = [*noise.pmf, *[Fraction(0)] * shift]
    q = [*[Fraction(0)] * shift, *noise.pmf]
    with mpmath.workdps(60):
        growth = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        found = []
        for one, two in ((p, q), (q, p)):
            total = mpmath.mpf(0)
            for outcome in product(range(len(p)), repeat=copies):
                a, b = (math.prod((law[i] for i in outcome), start=Fraction(1)) for law in (one, two))
                gain = mpmath.mpf(a.numerator) / a.denominator - growth * b.numerator / b.denominator
                total += max(gain, 0)
            found.append(total)
        return max(found)


CASES: dict[str, Callable[[], IntegerNoise]] = {
    "a table": lambda: IntegerNoise(["0.1", "0.2", "0.4", "0.3"]),
    "a table with a gap": lambda: IntegerNoise({-2: "1/3", 0: "1/6", 1: "1/2"}),
    "binomial": lambda: IntegerNoise.binomial(6, "1/3"),
    "binomial, group of 2": lambda: IntegerNoise.binomial(7, sensitivity=2),
    "truncated Gaussian": lambda: IntegerNoise.truncated_gaussian("5/2", 4),
    "clamped Gaussian, group of 3": lambda: IntegerNoise.clamped_gaussian(3, 4, 3),
    "truncated Laplace": lambda: IntegerNoise.truncated_laplace("7/4", 5),
    "clamped Laplace": lambda: IntegerNoise.clamped_laplace(2, 3, 2),
    "staircase": lambda: IntegerNoise.staircase(1, 7, 3, 2),
    "cell key": lambda: IntegerNoise.cell_key(3, "1.5"),
}


@pytest.mark.parametrize("case", CASES)
def test_tables_against_every_outcome(case: str) -> None:
    noise = CASES[case]()
    for copies, epsilon in ((1, Fraction("0.2")), (1, Fraction(1)), (2, Fraction("0.71"))):
        exact = _exact(noise, copies, epsilon)
        low, high = (copies * noise).delta_bounds(epsilon)
        assert low * (1 - 1e-15) <= exact <= high * (1 + 1e-15)
        assert high - low <= 1e-9 * high
    assert from_json(to_json(noise)) == noise
    assert sum(noise.pmf) == 1
    assert noise.rho == math.inf


def _shape(noise: IntegerNoise, weight: Callable[[int], mpmath.mpf]) -> None:
    """Probabilities proportional to weights, within 2^-100 of each."""
    with mpmath.workdps(80):
        weights = [weight(noise.first + i) for i in range(len(noise.pmf))]
        total = mpmath.fsum(weights)
        for p, w in zip(noise.pmf, weights, strict=True):
            assert abs(mpmath.mpf(p.numerator) / p.denominator / (w / total) - 1) < mpmath.mpf(2) ** -100


def test_named_tables_against_their_definitions() -> None:
    def gaussian(x: int) -> mpmath.mpf:
        return mpmath.exp(-mpmath.mpf(x * x) / 14)

    def laplace(x: int) -> mpmath.mpf:
        return mpmath.exp(-mpmath.mpf(abs(x)) / 3)

    _shape(IntegerNoise.truncated_gaussian(7, 9), gaussian)
    _shape(
        IntegerNoise.clamped_gaussian(7, 9), lambda x: gaussian(x) if abs(x) < 9 else mpmath.nsum(gaussian, [9, 200])
    )
    _shape(IntegerNoise.truncated_laplace(3, 8), laplace)
    _shape(IntegerNoise.clamped_laplace(3, 8), lambda x: laplace(x) if abs(x) < 8 else mpmath.nsum(laplace, [8, 900]))
    _shape(IntegerNoise.binomial(9, "1/5"), lambda x: mpmath.binomial(9, x) * mpmath.mpf(4) ** (9 - x))
    # sensitivity 4, first stair of 3 on each side: |x| <= 2, then 3 .. 6, then 7 .. 10
    stairs = IntegerNoise.staircase("1/2", 10, 4, 3)
    _shape(stairs, lambda x: mpmath.exp(-mpmath.mpf((abs(x) + 1) // 4) / 2))
    key = IntegerNoise.cell_key(5, "2.25")
    assert float(key.variance) == pytest.approx(2.25, rel=1e-11)
    assert key.mean == 0
    ratios = [math.log(float(a / b)) for a, b in zip(key.pmf[5:], key.pmf[6:], strict=False)]
    assert [r / ratios[0] for r in ratios] == pytest.approx(
        [1, 3, 5, 7, 9], rel=1e-12
    )  # c (2x + 1): the largest entropy


def test_what_is_lost_at_the_ends() -> None:
    """With epsilon above every finite loss delta is the probability of an end, or of one among several copies; exactly."""
    noise = IntegerNoise.truncated_laplace(2, 6)
    end = noise.pmf[0]
    for copies in (1, 3):
        exact = float(1 - (1 - end) ** copies)
        low, high = (copies * noise).delta_bounds(100)
        assert low <= exact * (1 + 1e-15)
        assert exact <= high * (1 + 1e-15)
        assert high - low < 1e-12 * high
    assert (3 * noise).epsilon(float(end) / 2) == math.inf


def test_thousands_of_values_against_the_discrete_gaussian() -> None:
    """Truncated so far out that nothing is lost that could be seen."""
    noise, law = IntegerNoise.truncated_gaussian(2_500, 650), DiscreteGaussian(2_500)
    assert len(noise.pmf) == 1301
    for copies, epsilon in ((1, "0.03"), (7, "0.1")):
        low, high = (copies * noise).delta_bounds(epsilon)
        exact = (copies * law).delta_bounds(epsilon)
        assert low <= exact.upper * (1 + 1e-12)
        assert exact.lower * (1 - 1e-12) <= high
        assert high - low < 1e-6 * high
    assert (7 * noise).explain("0.1").method == "losses split on a grid"


def test_a_larger_table_against_halves() -> None:
    rng = random.Random(4)
    weights = [rng.randint(1, 10**6) for _ in range(30)]
    noise = IntegerNoise([Fraction(w, sum(weights)) for w in weights])
    pairs = list(zip([*noise.pmf, Fraction(0)], [Fraction(0), *noise.pmf], strict=True))
    forward, backward = halves([(pairs, 2)]), halves([([(q, p) for p, q in pairs], 2)])
    for epsilon in (Fraction("0.3"), Fraction(2)):
        with mpmath.workdps(60):
            exact = max(
                h.delta(epsilon) + 1 - mpmath.mpf(h.finite.numerator) / h.finite.denominator
                for h in (forward, backward)
            )
        low, high = (2 * noise).delta_bounds(epsilon)
        assert low * (1 - 1e-15) <= exact <= high * (1 + 1e-15)
        assert high - low < 1e-8 * high


def test_groups() -> None:
    """Log-concave noise hides a small difference better than a large one; a table for which that is not so is refused."""
    five = IntegerNoise.truncated_gaussian(6, 9, 5)
    for by in range(1, 5):
        assert _exact(five, 1, Fraction("0.8"), by) <= _exact(five, 1, Fraction("0.8"))
    even = {x: Fraction(1, 5) for x in (-4, -2, 0, 2, 4)}  # tells an odd difference at once
    with pytest.raises(InvalidInputError, match="Noise must hide a difference of the sensitivity, 1"):
        IntegerNoise(even)
    with pytest.raises(InvalidInputError, match="a difference of 1 is worse at some epsilon than one of 2"):
        IntegerNoise(even, 2)
    stairs = IntegerNoise.staircase("0.7", 12, 3, 1)  # not log-concave, and yet the largest difference is the worst
    assert stairs.sensitivity == 3


def test_the_worst_difference_of_random_tables() -> None:
    """What a table of sensitivity 2 or 3 is taken for, against all sets of outcomes."""
    rng = random.Random(22)
    seen = set()
    for _ in range(60):
        weights = [rng.randint(1, 5) for _ in range(rng.randint(4, 6))]
        pmf = [Fraction(w, sum(weights)) for w in weights]
        sensitivity = rng.choice([2, 3])
        worst = all(_hidden(pmf, d, sensitivity) for d in range(1, sensitivity))
        seen.add(worst)
        if worst:
            IntegerNoise(pmf, sensitivity)
        else:
            with pytest.raises(InvalidInputError, match="must be the worst difference"):
                IntegerNoise(pmf, sensitivity)
    assert seen == {True, False}


def _hidden(pmf: list[Fraction], small: int, large: int) -> bool:
    def at(by: int, t: Fraction, turned: bool) -> Fraction:
        zeros = [Fraction(0)] * by
        p, q = ([*zeros, *pmf], [*pmf, *zeros]) if turned else ([*pmf, *zeros], [*zeros, *pmf])
        return sum((max(a - t * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))

    corners = {a / b for a in pmf for b in pmf}
    return all(at(small, t, turned) <= at(large, t, turned) for t in corners for turned in (False, True))


def test_other_ways_to_give_a_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("noise;probability\n-1;0,25\n".replace(",", ".") + "0;1/2\n1;0.25\n")
    noise = IntegerNoise({-1: "1/4", 0: "1/2", 1: "1/4"})
    assert IntegerNoise.from_csv(path) == noise == IntegerNoise(["1/4", "1/2", "1/4", 0], first=-1)
    assert (noise.mean, noise.variance) == (0, Fraction(1, 2))
    assert read_mechanisms([f"table({path})*3", "cell_key(5, 2)*2", "binomial(8, probability=1/3)"]) == Composition(
        {noise: 3, IntegerNoise.cell_key(5, 2): 2, IntegerNoise.binomial(8, "1/3"): 1}
    )
    assert "IntegerNoise(['1/4', '1/2', '1/4'], first=-1)" in str(noise)
    assert "1,301 in all" in str(IntegerNoise.truncated_gaussian(2_500, 650))


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: IntegerNoise([0.5, 0.4]), "pmf must add up to exactly 1"),
        (lambda: IntegerNoise([1]), "Noise must hide a difference of the sensitivity, 1: .* Found values from 0 to 0"),
        (lambda: IntegerNoise({0: "1/2", 10**5: "1/2"}), "span at most 10,000 integers. Found 0 to 100000"),
        (lambda: IntegerNoise({}), "span at most 10,000 integers. Found none"),
        (lambda: IntegerNoise({0.5: 1}), "a value of the noise must be a whole number .* Found 0.5"),  # type: ignore[dict-item]
        (lambda: IntegerNoise({0: 1}, first=3), "a mapping names its values. Found 3"),
        (lambda: IntegerNoise([0.5, 0.5], 0), "sensitivity must be"),
        (lambda: IntegerNoise.binomial(5, 1), "probability must be between 0 and 1, both excluded. Found 1"),
        (lambda: IntegerNoise.cell_key(5, 11), "below that of equal probabilities, 10. Found 11"),
        (lambda: IntegerNoise.truncated_gaussian("1/100", 4999), "least probability .* give a smaller bound"),
        (lambda: IntegerNoise.truncated_gaussian(1, 5000), "bound must be"),
        (lambda: read_mechanisms(["table(no-such-file.csv)"]), "cannot be read: No such file"),
    ],
)
def test_bad_tables_are_named(build: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        build()


def test_csv_files_that_are_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("value,p\n0,1\n")
    with pytest.raises(InvalidInputError, match="has the columns noise and probability"):
        IntegerNoise.from_csv(path)
    path.write_text("noise,probability\n0,1/2\n0,1/2\n")
    with pytest.raises(InvalidInputError, match="Found 0 twice"):
        IntegerNoise.from_csv(path)


def test_outcomes_may_be_thousands() -> None:
    size = 300
    weights = [3 + (i * i) % 101 for i in range(size)]
    p = [Fraction(w, sum(weights)) for w in weights]
    found = Outcomes(p, p[::-1])
    exact = sum(max(float(a - b * Fraction(math.exp(0.5))), 0.0) for a, b in zip(p, p[::-1], strict=True))
    assert found.delta(0.5) == pytest.approx(exact, rel=1e-9)
