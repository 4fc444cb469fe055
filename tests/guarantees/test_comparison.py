"""The exact guarantee beside others: the alarm is raised where the Gaussian shortcut understates, and only there."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import pytest
from test_guarantees import TEN, gaussian

import oracle
from exactdp.accounting.composition import Composition
from exactdp.guarantees.zcdp import zcdp_epsilon
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.randomized_response import RandomizedResponse


def test_the_alarm() -> None:
    found = TEN.compare(delta="1e-10")
    assert found.quantity == "epsilon"
    assert found.exact[0] <= found.exact[1] == pytest.approx(24.678, abs=5e-4)
    assert found.gaussian == pytest.approx(24.570, abs=5e-4)
    assert found.shortcut_understates
    assert not found.shortcut_overstates
    assert found.statement.startswith("ALARM: the Gaussian shortcut understates epsilon")
    assert found.exact[1] < found.zcdp_optimal < found.zcdp_simple
    assert found.zcdp_optimal == zcdp_epsilon(5, "1e-10")
    assert [row[0] for row in found.rows()][2] == "Gaussian shortcut"
    text = str(found)
    assert text.splitlines()[0] == "epsilon at delta = 1/10000000000"
    assert text.splitlines()[-1] == found.statement
    assert len(text.splitlines()) == 7


def test_the_shortcut_may_overstate() -> None:
    statements = set()
    for t in range(40):
        found = TEN.compare(epsilon=Fraction(t, 4))
        exact = oracle.brute({(Fraction(1), 1): 10}).delta(Fraction(t, 4))
        assert found.exact[0] <= exact + oracle.ERROR
        assert found.exact[1] >= exact - oracle.ERROR
        shortcut = gaussian(TEN.mu, Fraction(t, 4))
        assert found.shortcut_understates == (shortcut < float(exact))
        assert found.shortcut_overstates == (shortcut > float(exact))
        statements.add(found.statement.split(",")[0])
    assert statements == {
        "ALARM: the Gaussian shortcut understates delta",
        "The Gaussian shortcut overstates delta",
    }
    assert 3 * RandomizedResponse(1) == Composition({RandomizedResponse(1): 3})
    assert (3 * RandomizedResponse(1)).compare(delta="1e-6").shortcut_overstates


def test_the_shortcut_is_right_for_continuous_gaussians() -> None:
    rng = random.Random(7)
    for _ in range(25):
        c = Composition({Gaussian(Fraction(10) ** rng.randint(-3, 6) * rng.randint(1, 9)): rng.choice([1, 5, 1000])})
        epsilon = float(c.rho) + c.mu * rng.uniform(-3, 30)
        for found in (
            c.compare(epsilon=epsilon),
            c.compare(delta=rng.choice(["1e-200", "1e-6", "0.1", "0.5", "0.99"])),
        ):
            assert not found.shortcut_understates, found
            assert not found.shortcut_overstates, found
            assert found.statement.startswith(("The Gaussian shortcut agrees to 1e-09.", "The values are below"))
    at_zero = mpmath.nstr(gaussian(1, 0), 11)  # epsilon is about 0: nothing is relative to it
    assert not Composition([Gaussian(1)]).compare(delta=at_zero).shortcut_understates


def test_comparison_where_zcdp_knows_nothing() -> None:
    c = DiscreteGaussian(1) + ApproximateDP(1, "1e-6")
    found = c.compare(delta="1e-3")
    assert found.exact[1] == c.epsilon("1e-3") < math.inf
    assert found.gaussian == found.zcdp_simple == found.zcdp_optimal == math.inf
    assert not found.shortcut_understates
    at = c.compare(epsilon=1)
    assert at.gaussian == at.zcdp_simple == at.zcdp_optimal == 1.0
    assert c.compare(delta="1e-7").exact == (math.inf, math.inf)
    assert isinstance(str(found), str)


def test_comparison_at_the_ends() -> None:
    assert TEN.compare(delta=0).exact == (math.inf, math.inf)
    assert TEN.compare(delta=1).exact == (-math.inf, -math.inf)
    assert TEN.compare(epsilon=-3).exact[1] < 1
    assert isinstance(str(TEN.compare(delta=0)), str)
