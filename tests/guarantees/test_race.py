"""A race: every runner meets the target and a little less noise does not, errors are those of sums, ranks are in order."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest

import command_line
from exactdp import (
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    Outcomes,
    Skellam,
    race,
    target,
)
from exactdp.errors import InvalidInputError
from exactdp.guarantees.best_noise.bounded_families import EVERY_FAMILY, TRUNCATED_GAUSSIAN
from exactdp.guarantees.best_noise.families import BINOMIAL, FAMILIES, SKELLAM
from exactdp.guarantees.best_noise.noise_error import noise_error
from exactdp.guarantees.best_noise.race import BEST_TABLE, RANKS, DecimalScale, Race, counts_template
from exactdp.guarantees.calibration import Target
from exactdp.numbers import root_up

MAKERS = {
    "discrete Gaussian": lambda variance, d: DiscreteGaussian(variance, d),
    "Gaussian": lambda variance, d: Gaussian(variance, d),
    "discrete Laplace": lambda variance, d: DiscreteLaplace(root_up(variance / 2), d),
}


def check(found: Race, counts: dict[tuple[int, int], int], wanted: Target) -> None:
    """What a race claims, with compositions that are built here."""
    for runner in found.runners:
        if runner.family == BEST_TABLE:
            assert wanted.holds(runner.composition)
            continue
        assert runner.step is not None
        made = MAKERS[runner.family]
        enough = Composition({made(runner.factor * v, d): n for (v, d), n in counts.items()})
        assert runner.composition == enough
        assert wanted.holds(enough)
        assert runner.below_exists
        less = runner.factor - runner.step
        assert wanted.fails(Composition({made(less * v, d): n for (v, d), n in counts.items()}))
        assert 0 < runner.step <= runner.factor / 100
    ranks = [runner.rank(found.by) for runner in found.runners]
    assert ranks == sorted(ranks)


DISCRETE = FAMILIES[0]


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [
        ({(1, 1): 1}, target(epsilon=1, delta="1e-6")),
        ({(1, 1): 20}, target(epsilon=2, delta="1e-8")),
        ({(1, 3): 4}, target(alpha="0.05", beta="0.5")),
        ({(1, 1): 3, (4, 2): 2}, target(epsilon=3, delta="1e-6")),
        ({(1, 1): 5}, target(advantage="0.1")),
    ],
)
def test_every_runner_meets_the_target_and_less_does_not(counts: dict[tuple[int, int], int], wanted: Target) -> None:
    template = Composition({DiscreteGaussian(v, d): n for (v, d), n in counts.items()})
    found = race(template, wanted, by="absolute" if len(counts) > 1 else "variance", optimum=False)
    assert {runner.family for runner in found.runners} == set(MAKERS) == {family.name for family in FAMILIES}
    assert found.optimum is None
    assert found.statement == ""
    check(found, counts, wanted)


def test_the_optimum_runs_too() -> None:
    wanted = target(epsilon=1, delta="0.001")
    found = race(counts_template(1), wanted)
    assert found.runners[0].family == BEST_TABLE
    check(found, {(1, 1): 1}, wanted)
    assert found.optimum is not None
    for runner in found.runners:
        excess = found.excess(runner)
        if runner.family in ("Gaussian", "Laplace"):
            assert excess is None  # the bound is about noise of whole numbers
        else:
            assert excess == runner.error.variance[1] / found.optimum.least - 1
    assert found.excess(found.runners[0]) < Fraction(1, 10**4)


def test_mu_is_decided_with_fewer_digits_where_bounds_are_wide() -> None:
    found = race(counts_template(10), target(mu="1/2"), families=FAMILIES[:2])
    check(found, {(1, 1): 10}, target(mu="1/2"))
    assert found.optimum is not None
    gaussian = next(one for one in found.runners if one.family == "discrete Gaussian")
    assert found.excess(gaussian) < Fraction(1, 100)
    assert float(found.optimum.least) == pytest.approx(40, rel=1e-5)


def exact_errors(weights: dict[int, mpmath.mpf]) -> tuple[mpmath.mpf, mpmath.mpf, int]:
    total = mpmath.fsum(weights.values())
    variance = mpmath.fsum(x * x * w for x, w in weights.items()) / total
    absolute = mpmath.fsum(abs(x) * w for x, w in weights.items()) / total
    margin, inside = 0, weights[0] / total
    while inside < mpmath.mpf("0.95"):
        margin += 1
        inside += 2 * weights[margin] / total
    return variance, absolute, margin


@pytest.mark.parametrize(
    "noise",
    [
        DiscreteGaussian("1/10"),
        DiscreteGaussian(1),
        DiscreteGaussian("37/3"),
        DiscreteGaussian(10001),
        DiscreteLaplace("1/3"),
        DiscreteLaplace(5),
    ],
)
def test_errors_of_noise_are_those_of_sums(noise: DiscreteGaussian | DiscreteLaplace) -> None:
    with mpmath.workdps(30):
        if isinstance(noise, DiscreteGaussian):
            s = mpmath.mpf(noise.sigma2.numerator) / noise.sigma2.denominator
            reach = int(13 * mpmath.sqrt(s)) + 5
            weights = {x: mpmath.exp(-x * x / (2 * s)) for x in range(-reach, reach + 1)}
        else:
            b = mpmath.mpf(noise.scale.numerator) / noise.scale.denominator
            weights = {x: mpmath.exp(-abs(x) / b) for x in range(-int(80 * b) - 40, int(80 * b) + 41)}
        variance, absolute, margin = exact_errors(weights)
    found = noise_error(noise)
    for (low, high), exact in ((found.variance, variance), (found.absolute, absolute)):
        with mpmath.workdps(40):
            ends = [mpmath.mpf(end.numerator) / end.denominator for end in (low, high)]
            assert ends[0] <= exact * (1 + mpmath.mpf(10) ** -20)
            assert exact * (1 - mpmath.mpf(10) ** -20) <= ends[1]
            assert ends[1] - ends[0] <= exact * 1e-4
    assert found.margin in (margin, margin + (noise == DiscreteGaussian(10001)))
    assert found.largest == math.inf


def test_errors_of_other_noise() -> None:
    found = noise_error(Gaussian(4))
    assert found.variance == (4, 4)
    assert float(found.absolute[1]) == pytest.approx(2 * math.sqrt(2 / math.pi), rel=1e-14)
    assert float(found.margin) == pytest.approx(2 * 1.959964, rel=1e-9)
    assert noise_error(DiscreteGaussian(10**12)).margin == 1959965
    found = noise_error(Laplace(3))
    assert (found.variance, found.absolute) == ((18, 18), (3, 3))
    assert 3 * math.log(20) <= float(found.margin) < 3 * math.log(20) * (1 + 1e-12)
    with pytest.raises(InvalidInputError, match="Found Outcomes"):
        noise_error(Outcomes([1], [1]))


def test_errors_of_tables_and_of_skellam_noise() -> None:
    table = noise_error(IntegerNoise(["1/20", "1/5", "1/2", "1/5", "1/20"]))  # about its mean, which is 2
    assert table.variance == (Fraction(4, 5), Fraction(4, 5))
    assert table.absolute == (Fraction(3, 5), Fraction(3, 5))
    assert (table.margin, table.largest) == (2, 2)
    found = noise_error(Skellam(9))
    with mpmath.workdps(30):
        p = [mpmath.exp(-9) * mpmath.besseli(n, 9) for n in range(120)]
        absolute = 2 * mpmath.fsum(n * x for n, x in enumerate(p))
        low, high = (mpmath.mpf(x.numerator) / x.denominator for x in found.absolute)
        assert low <= absolute * (1 + mpmath.mpf(10) ** -28)
        assert absolute * (1 - mpmath.mpf(10) ** -28) <= high <= low * (1 + mpmath.mpf(10) ** -25)
        m = int(found.margin)
        assert 2 * mpmath.fsum(p[m + 1 :]) <= 0.05 < 2 * mpmath.fsum(p[m:])
    assert found.variance == (9, 9)


def test_families_of_tables_race_and_one_that_is_refused_stops_nobody() -> None:
    families = (DISCRETE, SKELLAM, BINOMIAL)
    wanted = target(epsilon=2, delta="1e-5")
    found = race(counts_template(1), wanted, families=families, optimum=False)
    assert sorted(one.family for one in found.runners) == ["Skellam", "binomial", "discrete Gaussian"]
    for one in found.runners:
        assert wanted.holds(one.composition)
    assert found.refused == ()
    tiny = race(counts_template(1), target(epsilon="0.001", delta="1e-5"), families=(DISCRETE, BINOMIAL), optimum=False)
    assert [one.family for one in tiny.runners] == ["discrete Gaussian"]
    ((name, why),) = tiny.refused
    assert name == "binomial"
    assert why
    under_mu = race(counts_template(2), target(mu=1), families=(DISCRETE, TRUNCATED_GAUSSIAN), optimum=False)
    assert [name for name, _ in under_mu.refused] == ["truncated Gaussian"]
    assert set(FAMILIES) < set(EVERY_FAMILY)


def test_decimals_in_their_order() -> None:
    for digits in (2, 4):
        scale = DecimalScale(digits)
        for value in ("1", "0.0123", "9.99", "99999", "1e-9"):
            place = scale.place(Fraction(value))
            assert scale.value(place) <= Fraction(value) < scale.value(place + 1)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: race(DiscreteLaplace(1), target(mu=1)), "Found DiscreteLaplace"),
        (lambda: race(Gaussian(1, "1/2"), target(mu=1)), "Found Gaussian"),
        (lambda: race(DiscreteGaussian(1), target(mu=1), by="speed"), "Found speed"),
    ],
)
def test_what_cannot_race(call: object, found: str) -> None:
    with pytest.raises(InvalidInputError, match=found):
        call()  # type: ignore[operator]


def test_the_command(tmp_path: Path) -> None:
    told = command_line.run(
        "race", "--count", "1", "--epsilon", "1", "--delta", "1e-3", "-o", str(tmp_path / "best.csv")
    )
    assert told.exit_code == 0
    lines = told.stdout.splitlines()
    assert lines[0] == "1 count of sensitivity 1: epsilon = 1, delta = 0.001"
    assert [line.split("  ")[0] for line in lines[3:5]] == [BEST_TABLE, "discrete Laplace"]
    assert {line.split("  ")[0] for line in lines[5:7]} == {"Gaussian", "discrete Gaussian"}
    assert max(map(len, lines[2:7])) <= 80
    table = [line.split(",") for line in (tmp_path / "best.csv").read_text().splitlines()]
    assert table[0] == ["value", "probability"]
    assert sum(Fraction(p) for _, p in table[1:]) == 1
    found = json.loads(command_line.run("race", "-k", "1", "--epsilon", "1", "--delta", "1e-3", "--json").stdout)
    assert next(one["noise"] for one in found["runners"]) == BEST_TABLE
    variance = sum(int(x) ** 2 * Fraction(p) for x, p in table[1:])
    assert Fraction(found["least_possible"]["at_least"]) <= variance <= Fraction(found["runners"][0]["variance"][1])


def test_a_design_races_at_the_guarantee_that_it_has() -> None:
    told = command_line.run("race", "-m", "5/2*3", "-m", "4:2*5", "--delta", "1e-6", "--no-optimum")
    assert told.exit_code == 0
    assert "discrete Gaussian" in told.stdout
    assert "No symmetric noise" not in told.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--epsilon", "1", "--delta", "1e-6"],
            "Give --count, or a design or --mechanism, to say what is released. Found none of them.",
        ),
        (["-k", "3", "-m", "1", "--mu", "1"], "Give --count, or a design or --mechanism. Found both."),
        (
            ["-k", "3"],
            "A target is epsilon and delta, or alpha and beta, or an advantage, or a mu. Found none of them.",
        ),
        (["-k", "0", "--mu", "1"], "--count must be a whole number"),
        (
            ["-k", "1", "--mu", "1", "--by", "speed"],
            "Noises are ranked by variance, absolute, margin, largest. Found speed.",
        ),
        (["-k", "1", "--mu", "1", "-o", "x.txt"], "The name of this file must end in .json or .csv"),
        (["-k", "1", "--mu", "1", "--no-optimum", "-o", "x.csv"], "A table is looked for under an epsilon and a delta"),
    ],
)
def test_bad_input_is_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = command_line.run("race", *arguments)
    assert told.exit_code == 2
    assert sentence in told.stderr
    assert len(told.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_ranks_are_what_runners_have() -> None:
    found = race(counts_template(1), target(epsilon=1, delta="0.01"), families=FAMILIES[:1], optimum=False)
    assert [float(found.runners[0].rank(by)) for by in RANKS] == [
        pytest.approx(float(found.runners[0].error.variance[1])),
        pytest.approx(float(found.runners[0].error.absolute[1])),
        float(found.runners[0].error.margin),
        math.inf,
    ]
