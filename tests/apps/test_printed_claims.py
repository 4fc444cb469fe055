"""What is printed is true: commands about random designs, every claim that they print proved anew by another arithmetic."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from pathlib import Path

import pytest

import printed_claims
import strategies
from command_line import run
from exactdp import Composition, census, from_json, to_json
from exactdp.census.releases import Release


def printed(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


NOISE = [Fraction(text) for text in ("1/4", "1/2", "1", "2", "5/2", "4", "5", "10", "20", "40")]
"""With a common lattice of few points, on which balls are fast."""


def random_composition(rng: random.Random) -> tuple[list[str], Composition]:
    """As options of a command, and as it is."""
    chosen = rng.sample([(s, d) for s in NOISE for d in (1, 2)], rng.randint(1, 3))
    counts = {key: rng.randint(1, 9) for key in chosen}
    return [part for (s, d), n in counts.items() for part in ("-m", f"{s}:{d}*{n}")], strategies.composition_of(counts)


def random_release(rng: random.Random) -> Release:
    table = {
        level: {query: 1 / rng.choice(NOISE) for query in ("age", "sex")[: rng.randint(1, 2)]}
        for level in ("Nation", "Region", "District")
    }
    bypassed = {1: (), 2: ("District",), 3: ("Region",)} if rng.random() < 0.7 else {1: ()}
    return Release("random", "A random survey", "made up", table, bypassed)


def question(rng: random.Random) -> tuple[str, str]:
    kind = rng.choice(["delta", "epsilon", "alpha"])
    value = {
        "delta": f"{rng.randint(1, 9)}e-{rng.randint(1, 40)}",
        "epsilon": f"{rng.uniform(-1, 25):.3f}",
        "alpha": f"{rng.uniform(0.001, 0.9):.4f}",
    }
    return kind, value[kind]


@pytest.mark.parametrize("seed", strategies.seeds(8, 200))
def test_account_and_risk_of_random_noise(seed: int) -> None:
    rng = random.Random(seed)
    options, composition = random_composition(rng)
    kind, value = question(rng)
    text = printed("account", *options, f"--{kind}", value, "--digits", str(rng.randint(2, 15)))
    assert printed_claims.check_account(text, [composition], Fraction(composition.rho)) >= 2
    delta = f"1e-{rng.randint(3, 20)}"
    text = printed("risk", *options, "--alpha", "0.05", "--delta", delta, "--digits", str(rng.randint(2, 12)))
    assert printed_claims.check_risk(text, [composition], "0.05", delta) == 5


@pytest.mark.parametrize("seed", strategies.seeds(4, 100))
def test_account_of_random_designs(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    release = random_release(rng)
    path = tmp_path / "random.toml"
    path.write_text(census.budget_toml(release))
    kind, value = question(rng)
    text = printed("account", str(path), f"--{kind}", value, "--digits", str(rng.randint(2, 12)))
    pairs = [release.pair(*pair) for pair in release.pairs]
    assert printed_claims.check_account(text, pairs, max(Fraction(pair.rho) for pair in pairs)) >= 2


@pytest.mark.parametrize("seed", strategies.seeds(4, 40))
def test_what_calibrate_says_and_writes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    options, composition = random_composition(rng)
    epsilon, delta, alpha = str(rng.randint(1, 6)), f"1e-{rng.randint(3, 9)}", "0.05"
    targets = ["--epsilon", epsilon, "--delta", delta, "--alpha", alpha, "--beta", "0.2"]
    path = tmp_path / "calibrated.json"
    text = printed("calibrate", *options, *targets, "--grid", "20", "-o", str(path))
    found = re.search(r"times (\S+) meets the target; times (\S+) it does not\.", text)
    assert found is not None, text

    def meets(one: Composition) -> bool:
        return (
            one.delta_bounds(epsilon, digits=15)[1] <= Fraction(delta) and one.beta_bounds(alpha, digits=15)[0] >= 0.2
        )

    assert meets(composition.scaled(found[1]))
    assert not meets(composition.scaled(found[2]))
    assert from_json(path.read_text()) == composition.scaled(found[1])
    assert from_json(to_json(composition)) == composition


@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")  # wide is no less true
@pytest.mark.parametrize("seed", strategies.seeds(3, 30))
def test_mu_and_conversions(seed: int) -> None:
    rng = random.Random(seed)
    options, composition = random_composition(rng)
    found = re.search(
        r"mu is at least (\S+) .*at most (\S+)", printed("mu", *options, "--digits", str(rng.randint(2, 9)))
    )
    assert found is not None
    assert Fraction(found[1]) ** 2 <= 2 * composition.rho * Fraction(11, 10) ** 4
    largest = printed("convert", "--mu", found[2], "--epsilon", "1", "--digits", "10")
    (row,) = printed_claims.tables(largest)[0]
    assert composition.delta_bounds(1, digits=20)[1] <= printed_claims.number(row["value"]), "mu-GDP at epsilon = 1"


def test_a_claim_that_is_false_is_found() -> None:
    options, composition = ["-m", "1*10"], Composition({strategies.exactdp.DiscreteGaussian(1): 10})
    text = printed("account", *options, "--delta", "1e-10")
    assert "24.6784" in text
    with pytest.raises(AssertionError):
        printed_claims.check_account(text.replace("24.6785", "24.6784"), [composition], Fraction(5))
    with pytest.raises(AssertionError):
        printed_claims.check_account(text.replace("24.6784 ", "24.6785 "), [composition], Fraction(5))
    with pytest.raises(AssertionError):
        printed_claims.check_account(text.replace("~", ""), [composition], Fraction(5))
