"""The Fourier sum on the line in balls: against brute force, against the lattice in balls, and each term of its account."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from flint import arb

from any_oracle import listed
from exactdp import Composition, DiscreteGaussian
from exactdp.accounting.line_enclosures import enclosed_on_line
from exactdp.balls import BITS, precision
from exactdp.engine.effort import Effort
from exactdp.engine.lattice.lattice import Group
from exactdp.engine.line import plan as line
from exactdp.engine.line.ball import LineBalls
from exactdp.engine.line.plan import make_line_plan
from exactdp.engine.line.tilts import Ladder
from exactdp.engine.line.total_loss import TotalLoss
from exactdp.engine.payoff import Payoff

COARSE = Composition({DiscreteGaussian("0.3"): 3, DiscreteGaussian("7/3", 2): 1})
SMOOTH = Composition({DiscreteGaussian(28): 3, DiscreteGaussian(17, 2): 1})


def holds(found: arb, truth: mpmath.mpf) -> bool:
    with precision(400):
        return bool(found.contains(arb(mpmath.nstr(truth, 60, strip_zeros=False))))


def width(found: arb) -> float:
    with precision(BITS):
        return float((found.rad() / found.mid()).mid())


@pytest.mark.parametrize("composition", [COARSE, SMOOTH], ids=["coarse", "smooth"])
@pytest.mark.parametrize("is_other", [False, True])
def test_brute_force_is_inside(composition: Composition, is_other: bool) -> None:
    truth = listed(dict(composition.mechanisms))
    for e in map(Fraction, ("0", "1/10", "4", "-3/2")):
        with mpmath.workdps(60):
            assert holds(enclosed_on_line(composition, e, finest=1e-2, is_other=is_other), truth.delta(e))


def test_as_many_digits_as_a_claim_has() -> None:
    """Of a composition whose lattice is too fine for balls, on two tilts; and of one that has both ways."""
    fine = Composition({DiscreteGaussian(Fraction(4099 * k, 104 + k)): 9 for k in range(1, 40)})
    one, two = (enclosed_on_line(fine, Fraction(5), is_other=other) for other in (False, True))
    assert bool(one.overlaps(two))
    assert max(map(width, (one, two))) < 1e-14
    low, high = fine.delta_bounds(5)
    with precision(BITS):
        assert bool(one >= arb(low))
        assert bool(one <= arb(high))
    low, high = SMOOTH.delta_bounds(4, digits=20)
    with precision(BITS):
        exact = arb(str(low)).union(arb(str(high)))
    assert bool(enclosed_on_line(SMOOTH, Fraction(4), finest=1e-5).overlaps(exact))


def sum_of(composition: Composition, e: Fraction, finest: float) -> LineBalls:
    total = TotalLoss.of(composition.mechanisms)
    plan = make_line_plan(total, Ladder(total).rung_of(float(e)), Effort(), finest)
    return LineBalls(Group.of_each(composition.discrete_gaussians), plan, BITS)


def excess(composition: Composition, e: Fraction, finest: float) -> tuple[arb, mpmath.mpf]:
    """The enclosure on a coarse plan, and the exact value of its payoff."""
    found = sum_of(composition, e, finest)
    delta = listed(dict(composition.mechanisms)).delta(e)
    return found.evaluate(e), delta if found.plan.payoff is Payoff.DELTA else 1 - delta


@pytest.mark.parametrize(("composition", "e"), [(SMOOTH, Fraction(4)), (COARSE, Fraction(1, 10))])
def test_what_smoothing_does_is_inside(composition: Composition, e: Fraction) -> None:
    """Delta and, in the second case, 1 - delta."""
    with mpmath.workdps(60):
        found, truth = excess(composition, e, 1e-3)
        assert holds(found, truth)
    assert 1e-5 < width(found) < 1e-2


@pytest.mark.parametrize("deviations", [3.0, 5.0])
def test_what_a_short_period_does_is_inside(monkeypatch: pytest.MonkeyPatch, deviations: float) -> None:
    monkeypatch.setattr(line._Planner, "_choose_period", lambda self, variance: deviations * math.sqrt(variance))
    with mpmath.workdps(60):
        assert holds(*excess(SMOOTH, Fraction(4), 1e-5))


def test_what_is_dropped_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    original = line.Falloff.bands
    monkeypatch.setattr(
        line.Falloff, "bands", lambda self, last, aim, slack: original(self, last, aim + math.log(1e10), slack)
    )
    with mpmath.workdps(60):
        found, truth = excess(SMOOTH, Fraction(4), 1e-5)
        assert holds(found, truth)
