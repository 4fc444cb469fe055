"""The exact guarantee beside others: the alarm is raised where the Gaussian shortcut understates, and only there."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import pytest
from test_guarantees import TEN, gaussian

import oracle
from exactdp import census
from exactdp.accounting.composition import Composition
from exactdp.guarantees.comparison import Comparison, Grade, grade_of
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
    assert text.splitlines()[0] == "epsilon at delta = 1e-10"
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
        assert (found.grade is Grade.ALARM) == found.statement.startswith("ALARM")
    assert statements == {
        "ALARM: the Gaussian shortcut understates delta",
        "The Gaussian shortcut overstates delta",
    }
    assert 3 * RandomizedResponse(1) == Composition({RandomizedResponse(1): 3})
    assert (3 * RandomizedResponse(1)).compare(delta="1e-6").shortcut_overstates


@pytest.mark.parametrize(
    ("estimate", "lower", "wanted"),
    [
        (24.5697, 24.6784, Grade.ALARM),
        (24.455, 24.46, Grade.ALARM),  # half a unit of the fourth digit
        (24.4551, 24.46, Grade.REMARK),
        (24.4999999, 24.5000001, Grade.REMARK),  # quoted as 24.49 or 24.50: on either side of a boundary, not apart
        (9.9995, 10.0, Grade.REMARK),
        (9.995, 10.0, Grade.ALARM),
        (1e-10 * (1 - 1e-8), 1e-10, Grade.REMARK),
        (9.99e-11, 1e-10, Grade.ALARM),
        (1.0, 1.0 + 1e-10, Grade.NONE),
        (2.0, 1.0, Grade.NONE),
        (-2.0, -1.0, Grade.ALARM),
        (-1.0 - 1e-6, -1.0, Grade.REMARK),
        (-math.inf, 1.0, Grade.ALARM),
        (1.0, -math.inf, Grade.NONE),
        (math.inf, math.inf, Grade.NONE),
        (-1e-3, 0.0, Grade.ALARM),
    ],
)
def test_an_alarm_is_a_difference_in_the_digits_people_quote(estimate: float, lower: float, wanted: Grade) -> None:
    assert grade_of(estimate, lower) is wanted
    found = Comparison("delta", Fraction(1, 10), (lower, lower), estimate, 30.0, 30.0)
    assert found.shortcut_understates == (wanted is not Grade.NONE)
    if math.isfinite(estimate) and math.isfinite(lower):
        assert found.statement.startswith("ALARM") == (wanted is Grade.ALARM)
        assert found.statement.startswith("Remark") == (wanted is Grade.REMARK)


def test_noise_of_the_census_gets_a_remark_at_most() -> None:
    release = census.release("dhc-persons-us")
    for pair in ((6, 6), (13, 13)):
        for delta in ("1e-6", "1e-10"):
            assert release.pair(*pair).compare(delta=delta).grade is not Grade.ALARM
    assert release.pair(6, 6).compare(delta="1e-10").statement.startswith("Remark: ")


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
