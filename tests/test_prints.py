"""What objects print is a claim: every number in their texts is read back and proved with 30 digits."""

from __future__ import annotations

import math
import random
import re
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from exactdp import (
    Bounds,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    calibrate,
    certify,
    target,
    tightest_mu,
    verify,
)
from exactdp.accounting.explanation import power_of_ten
from exactdp.census.runners import Serial
from exactdp.census.summary import summarize
from exactdp.guarantees.risk import risk_of
from exactdp.numerals import DOWN, UP
from small_release import SMALL

NUMBER = r"-?\d[\d.]*(?:[eE]-?\d+)?"
RNG = random.Random(16)


def compositions(count: int) -> list[Composition]:
    """Small ones, with coarse and fine noise."""
    return [
        Composition(
            [DiscreteGaussian(Fraction(RNG.randint(1, 40), RNG.choice([1, 2, 5])))] * RNG.randint(1, 6)
            + [DiscreteGaussian(RNG.randint(1, 5))]
        )
        for _ in range(count)
    ]


def claims(text: str) -> list[tuple[str, Decimal]]:
    """Every number that the text says is a bound: ("at least" or "at most", number)."""
    found = [(side, Decimal(number)) for side, number in re.findall(rf"(at least|at most)\s+({NUMBER})", text)]
    assert found, text
    return found


def hold(text: str, ends: Bounds | tuple[Decimal, Decimal]) -> None:
    """Prove that all claims in a text hold for the number within these ends, and that they are not empty."""
    low, high = (Fraction(end) for end in ends)
    for side, number in claims(text):
        assert Fraction(number) <= low if side == "at least" else Fraction(number) >= high, (side, number, text)
        assert abs(Fraction(number) - low) <= abs(low) / 1000 + Fraction(1, 10**300)


@pytest.mark.parametrize("c", compositions(12), ids=str)
def test_printed_bounds_hold(c: Composition) -> None:
    epsilon, delta = Fraction(RNG.randint(0, 800), 100), Fraction(1, 10 ** RNG.randint(1, 12))
    exact_delta, exact_epsilon = c.delta_bounds(epsilon, digits=30), c.epsilon_bounds(delta, digits=30)
    hold(str(c.delta_bounds(epsilon)), exact_delta)
    hold(str(c.epsilon_bounds(delta)), exact_epsilon)
    hold(str(exact_delta), exact_delta)
    hold(str(c.explain(epsilon)), exact_delta)
    hold(str(certify(c, epsilon=epsilon, digits=12)), c.delta_bounds(epsilon, digits=40))
    for ends, given in ((exact_epsilon, {"delta": delta}), (exact_delta, {"epsilon": epsilon})):
        compared = c.compare(**given)
        hold(str(compared), ends)
        rows = {name: value for name, value, _ in compared.rows()}
        assert rows["Gaussian shortcut"].startswith("~")
        for name, value in (("zCDP, optimal", compared.zcdp_optimal), ("zCDP, simple", compared.zcdp_simple)):
            assert Decimal(rows[name]) >= Decimal(value)
            assert Fraction(Decimal(rows[name])) >= Fraction(ends[1])
    for line in str(c.tradeoff(20)).splitlines()[1:]:
        alpha, beta = map(Decimal, re.findall(NUMBER, line))
        assert Fraction(beta) <= Fraction(c.beta_bounds(Fraction(alpha), digits=30).upper), line


@pytest.mark.parametrize("c", compositions(6), ids=str)
def test_printed_risk_holds(c: Composition) -> None:
    delta = Fraction(1, 10**8)
    risk = c.risk(delta=delta)
    shown = {name: Fraction(Decimal(value)) for name, value, _ in risk.written()}
    assert shown["advantage"] >= Fraction(c.delta_bounds(0, digits=30).lower)
    beta = c.beta_bounds(Fraction(1, 20), digits=30)
    power = 1 - Fraction(beta.upper)
    assert shown["power"] >= power
    assert shown["Bayes risk"] <= (1 - Fraction(c.delta_bounds(0, digits=30).lower)) / 2
    assert shown["posterior"] >= power / (power + Fraction(1, 20))
    odds = c.epsilon_bounds(delta, digits=30).lower.exp()
    assert shown["odds multiplier"] * (1 + Fraction(1, 10**25)) >= Fraction(odds)
    assert shown["odds multiplier"] <= Fraction(odds) * (1 + Fraction(1, 10**5))
    assert all(value in str(risk) for _, value, _ in risk.written())


def test_ends_below_the_doubles_are_rounded_outward() -> None:
    for _ in range(300):
        log = -(10 ** RNG.uniform(-3, 6))
        low, high = (Decimal(power_of_ten(log, way)) for way in (DOWN, UP))
        if -log < 1e5:  # the logarithm has 28 digits
            assert low.ln() < Decimal(log) < high.ln()
        assert low < high <= low * (1 + Decimal("1.1e-14"))
    assert power_of_ten(-math.inf, UP) == "0"


def test_others_print_well() -> None:
    ten = 10 * DiscreteGaussian(1)
    checked = verify(certify(ten, epsilon=30, digits=12))
    assert str(checked).splitlines()[0] == checked.reason
    assert str(checked).count("passed") == 5
    assert str(calibrate(ten, target(epsilon=5, delta="1e-6"))).startswith("9.5926 meets the target; 9.5925 does not.")
    mu = tightest_mu(ten)
    (_, low), (_, high) = claims(str(mu))
    assert Fraction(low) <= Fraction(mu.lower) <= Fraction(mu.upper) <= Fraction(high)
    assert str((2 * DiscreteLaplace(1)).cross_check(1)).splitlines()[-1].strip() == "all overlap"
    many = str(ten.delta_bounds([Fraction(i, 10) for i in range(30)])).splitlines()
    assert len(many) == 21
    assert many[-1] == "... 30 in all"


def test_a_study_and_its_summary_print_what_holds() -> None:
    study = SMALL.account(deltas=["1e-5"], alphas=["0.05"])
    assert str(study) == "Study of A small survey: 10 pairs of directed paths, on 1 delta, 1 alpha"
    summary = summarize(study, Serial(), Fraction(1, 10**5))
    lines = str(summary).splitlines()
    hold(lines[0], study.epsilon_bounds("1e-5"))
    assert "~" in lines[0]
    hold(lines[1], study.beta_bounds("0.05"))
    for row, line in zip(summary.levels, lines[2:], strict=True):
        share = Fraction(Decimal(re.findall(rf"({NUMBER})%", line)[0])) / 100
        assert share == row.saved_simple.saved
        epsilon = Fraction(Decimal(re.findall(rf"\(({NUMBER}), 1e-5\)", line)[0]))
        assert epsilon >= row.saved_simple.epsilon
    assert risk_of(study, Fraction(1, 20), Fraction(1, 2), Fraction(1, 10**5)).relation == "replace"


@pytest.mark.parametrize("epsilon", [0, "5.25", 40, 1000, -3])
def test_an_explanation_prints_its_ends_outward(epsilon: object) -> None:
    """Against the exact powers of its logarithms, to the last digit shown."""
    found = (10 * DiscreteGaussian(1)).explain(epsilon)  # type: ignore[arg-type]
    told = dict(found.items())
    with mpmath.workdps(60):
        assert mpmath.mpf(told["delta at most"]) >= mpmath.exp(mpmath.mpf(found.log_upper))
        assert mpmath.mpf(told["delta at least"]) <= mpmath.exp(mpmath.mpf(found.log_lower))
