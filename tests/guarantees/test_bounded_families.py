"""Noise that ends, in a race: tables against sums over outcomes, their ends against what is lost, refusals with a reason."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

import command_line
from exactdp import Composition, IntegerNoise, race, target
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.guarantees.best_noise.bounded_families import (
    BOUNDED_FAMILIES,
    CELL_KEY,
    CLAMPED_GAUSSIAN,
    CLAMPED_LAPLACE,
    STAIRCASE,
    TRUNCATED_GAUSSIAN,
    TRUNCATED_LAPLACE,
    BoundedFamily,
    Ends,
    allowed,
    factor_within,
    lost,
)
from exactdp.guarantees.best_noise.race import counts_template
from exactdp.guarantees.calibration import MeetsAll

SIX = Ends(6, 1e-9)


def delta(noise: IntegerNoise, epsilon: Fraction) -> mpmath.mpf:
    """By its definition; the tables here are symmetric, so that one direction serves."""
    with mpmath.workdps(40):
        p = [mpmath.mpf(x.numerator) / x.denominator for x in noise.pmf]
        zeros = [mpmath.mpf(0)] * noise.sensitivity
        growth = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        return mpmath.fsum(max(a - growth * b, 0) for a, b in zip([*p, *zeros], [*zeros, *p], strict=True))


@pytest.mark.parametrize("family", BOUNDED_FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (2, 3)])
def test_tables_with_a_bound_meet_the_target_and_less_noise_does_not(
    family: BoundedFamily, sensitivity: int, epsilon: int
) -> None:
    wanted = target(epsilon=epsilon, delta="0.01")
    found = race(counts_template(1, sensitivity), wanted, families=[family], optimum=False, bound=6)
    (runner,) = found.runners
    (noise,) = runner.composition.mechanisms
    assert runner.family == family.name
    assert noise.sensitivity == sensitivity
    assert runner.error.largest == 6
    assert delta(noise, Fraction(epsilon)) <= 0.01
    assert runner.below_exists
    assert 0 < runner.step <= runner.factor / 99
    less = family.ended(SIX).of_variance(runner.factor - runner.step, sensitivity)
    assert delta(less, Fraction(epsilon)) > 0.01


def test_what_the_names_stand_for() -> None:
    """Each law at a variance of 2 with errors of at most 6, from its definition."""
    made = {f.name: f.ended(SIX).of_variance(Fraction(2), 1) for f in BOUNDED_FAMILIES}
    assert made["truncated Gaussian"] == IntegerNoise.truncated_gaussian(2, 6)
    assert made["clamped Gaussian"] == IntegerNoise.clamped_gaussian(2, 6)
    assert made["cell key"] == IntegerNoise.cell_key(6, 2)
    assert float(made["cell key"].variance) == pytest.approx(2, rel=1e-10)
    q = (3 - math.sqrt(5)) / 2  # 2q / (1 - q)^2 = 2
    for name, end in (("truncated Laplace", q**6), ("clamped Laplace", q**6 / (1 - q)), ("staircase", q**6)):
        weights = [*(q**x for x in range(6)), end]
        total = weights[0] + 2 * sum(weights[1:])
        half = [float(p) for p in made[name].pmf[6:]]
        assert half == pytest.approx([w / total for w in weights], rel=2e-5)
        assert made[name].pmf == made[name].pmf[::-1]


def test_stairs_as_long_as_the_sensitivity() -> None:
    """The first stair is the one for which the variance needs the least epsilon, by sums over far more outcomes."""
    variance, width = Fraction(5), 4
    noise = STAIRCASE.ended(Ends(None, 1e-12)).of_variance(variance, width)
    assert float(noise.variance) == pytest.approx(5, rel=1e-4)
    middle = noise.pmf[-noise.first :]
    first = sum(p == middle[0] for p in middle[: width + 1])
    ratio = middle[first] / middle[0]
    assert {middle[i + width] / middle[i] for i in range(first, len(middle) - width)} == {ratio}

    def variance_of(q: float, length: int) -> float:
        weights = [q ** max(0, (x + width - length) // width) for x in range(600)]
        return 2 * sum(x * x * w for x, w in enumerate(weights)) / (2 * sum(weights) - 1)

    for length in range(1, width + 1):  # at this ratio all others have at least the variance
        assert variance_of(float(ratio), length) >= 5 * (1 - 1e-4)
    assert variance_of(float(ratio), first) == pytest.approx(5, rel=1e-4)


def test_staircase_noise_wins_where_counts_change_by_more_than_one() -> None:
    wanted = target(epsilon=4, delta="1e-6")
    found = race(counts_template(1, 3), wanted, families=[TRUNCATED_LAPLACE, STAIRCASE], optimum=False)
    stairs, laplace = found.runners
    assert (stairs.family, laplace.family) == ("staircase", "truncated Laplace")
    assert stairs.error.variance[1] < Fraction(6, 10) * laplace.error.variance[0]
    for runner in found.runners:
        (noise,) = runner.composition.mechanisms
        assert delta(noise, Fraction(4)) <= mpmath.mpf("1e-6")


def test_ends_and_what_they_lose() -> None:
    for family, copies in itertools.product((CLAMPED_LAPLACE, TRUNCATED_GAUSSIAN), (1, 3)):
        noise = family.ended(SIX).of_variance(Fraction(3), 2)
        assert lost(Composition({noise: copies})) == 1 - (1 - noise.loss().lost) ** copies
    assert allowed(target(epsilon=1, delta="1e-6")) == Fraction(1, 10**6)
    assert allowed(target(alpha="0.1", beta="0.7")) == Fraction(3, 10)
    assert allowed(target(mu=1)) == 0
    assert allowed(MeetsAll((target(mu=1), target(epsilon=1, delta="1e-6")))) == 0
    far = race(counts_template(1), target(epsilon=2, delta="1e-6"), families=[CLAMPED_LAPLACE], optimum=False)
    assert 0 < lost(far.runners[0].composition) < Fraction(1, 10**8)


def test_ends_that_tell_too_much_are_refused_with_a_reason() -> None:
    wanted = target(epsilon=1, delta="1e-6")
    found = race(counts_template(1), wanted, families=[CELL_KEY, TRUNCATED_LAPLACE], optimum=False, bound=15)
    assert [one.family for one in found.runners] == ["truncated Laplace"]
    assert [name for name, _ in found.refused] == ["cell key"]
    assert "with errors of at most 15" in found.refused[0][1]
    under_mu = race(counts_template(1), target(mu=1), families=[CELL_KEY, CLAMPED_GAUSSIAN], optimum=False)
    assert under_mu.runners == ()
    assert all("no table meets a mu" in why for _, why in under_mu.refused)
    with pytest.raises(AccuracyError, match="errors of at most 2"):
        factor_within(2, lambda f: Composition([IntegerNoise.cell_key(2, f)]), wanted, Fraction(1))


def test_the_command_takes_a_bound() -> None:
    told = command_line.run("race", "-k", "1", "--epsilon", "1", "--delta", "0.05", "--bound", "4", "--no-optimum")
    assert told.exit_code == 0
    for family in BOUNDED_FAMILIES:
        assert family.name in told.stdout
    for text, why in (("0", "a whole number"), ("101", "at most 100"), ("1e30", "at most 100")):
        wrong = command_line.run("race", "-k", "1", "--epsilon", "1", "--delta", "0.01", "--bound", text)
        assert wrong.exit_code == 2
        assert f"--bound must be {why}" in wrong.stderr
    with pytest.raises(InvalidInputError, match="bound must be at most 100"):
        race(counts_template(1), target(epsilon=1, delta="0.01"), optimum=False, bound=101)


def test_a_narrow_window_between_too_little_noise_and_its_ends() -> None:
    """Between factors 9/8 apart: 7.7 and 8.66 fail, 7.8 to 8.1 meet the target."""
    ended, wanted = CLAMPED_LAPLACE.ended(Ends(8, 1e-9)), target(epsilon=1, delta="0.02")

    def at(factor: Fraction) -> Composition:
        return Composition([ended.of_variance(factor, 2)])

    found = factor_within(8, at, wanted, Fraction("7.7"))
    (noise,) = at(found).mechanisms
    assert delta(noise, Fraction(1)) <= 0.02
    for missed in (Fraction("7.7"), Fraction("8.66")):
        assert delta(ended.of_variance(missed, 2), Fraction(1)) > 0.02
    assert factor_within(8, at, MeetsAll((target(epsilon=3, delta="0.5"), wanted)), Fraction("7.7")) == found
