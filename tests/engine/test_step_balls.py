"""Steps cut off, below by a Fourier sum in balls (docs/theory/smooth.md, section 5): against integrals that use neither a
transform nor a cut, against the sum in doubles, and cases that were wide."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from flint import arb

from exactdp import Gaussian, PoissonSampled
from exactdp.brackets import Bracket
from exactdp.engine.effort import Effort
from exactdp.engine.line import plan as line
from exactdp.engine.line.cut_steps import CutMethod, CutSteps
from exactdp.engine.line.float64 import LineContour
from exactdp.engine.line.methods import threshold
from exactdp.engine.line.plan import LinePlan, make_line_plan
from exactdp.engine.line.step_balls import StepBalls
from exactdp.engine.line.tilts import LineRung
from exactdp.engine.line.total_loss import Part, TotalLoss
from exactdp.engine.payoff import Payoff
from exactdp.errors import AccuracyError
from exactdp.mechanisms.cut_mixture_loss import CutMixtureLoss
from exactdp.mechanisms.gaussian_mixture_loss import MixtureLoss
from exactdp.mechanisms.trapezoidal_rule import Mixture
from steps_oracle import few_steps

ORACLE = 3e-11  # relative error of the integrals
MANY = 1 << 24


def _method(sigma: float, rate: float, count: int, effort: Effort | None = None) -> CutMethod:
    (part,) = TotalLoss.of({PoissonSampled(Gaussian(sigma=Fraction(sigma)), Fraction(rate)): count}).parts
    assert isinstance(part.loss, MixtureLoss)
    return CutMethod(part.loss, part.count, effort or Effort())


def _ends(bracket: Bracket) -> tuple[float, float]:
    scale = math.exp(float(bracket.log_scale[0]))
    return float(bracket.lower[0]) * scale, float(bracket.upper[0]) * scale


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "y", "in_balls"),
    [
        (4.0, 2.0**-10, 10, 2.0**-5, True),
        (4.0, 2.0**-13, 12, 2.0**-8, True),
        (3.0, 2.0**-10, 8, 2.0**-4, False),
        (1.5, 2.0**-9, 8, 2.0**-3, False),
        (1.0, 2.0**-6, 8, 1.0, False),
    ],
)
def test_steps_cut_off_against_integrals(sigma: float, rate: float, count: int, y: float, in_balls: bool) -> None:
    """With and without balls, which are used where doubles lose too many digits."""
    found = _method(sigma, rate, count)
    lower, upper = _ends(found.evaluate([threshold(Fraction(y))])[0])
    exact = few_steps(sigma, rate, count, y)
    assert lower * (1 - ORACLE) <= exact <= upper * (1 + ORACLE)
    assert upper - lower < 2e-11 * upper
    assert isinstance(found._near(y).contour, StepBalls) is in_balls


def _plan(count: int, tilt: int, y: float, finest: float) -> tuple[CutMixtureLoss, LinePlan]:
    """Noise 2 at rate 1/256, cut off at 9."""
    mixture = Mixture((Fraction(255, 256), Fraction(1, 256)), (Fraction(0), Fraction(1, 4)))
    loss = CutMixtureLoss(mixture, 9.0)
    rung = LineRung(Payoff.DELTA, 0, Fraction(tilt), y, y)
    return loss, make_line_plan(TotalLoss((Part(loss, count),)), rung, Effort(), finest)


@pytest.mark.parametrize(("finest", "is_smoothed"), [(2e-12, False), (1e-4, True)])
def test_balls_and_doubles_agree_on_a_plan(monkeypatch: pytest.MonkeyPatch, finest: float, is_smoothed: bool) -> None:
    """With and without smoothing; the slope is that of the value."""
    if is_smoothed:
        monkeypatch.setattr(line._Planner, "_ends_itself", lambda self: False)
    count, y = 30, 0.0625
    loss, plan = _plan(count, 60, y, finest)
    assert bool(plan.smoothing) is is_smoothed
    balls, doubles = StepBalls(loss, count, plan, MANY), LineContour(plan)
    (one, slope), (other, estimate) = (way.evaluate([arb(y)]) for way in (balls, doubles))
    (low, high), (least, most) = _ends(one), _ends(other)
    assert max(low, least) <= min(high, most)
    assert high - low <= most - least
    assert (low, high) == pytest.approx((least, most), rel=1e-8, abs=0)
    assert slope[0] * math.exp(one.log_scale[0]) == pytest.approx(
        estimate[0] * math.exp(other.log_scale[0]), rel=1e-6, abs=0
    )
    assert balls.used(arb(y)).terms == len(plan.kept)


def test_too_many_terms_are_left_to_others() -> None:
    loss, plan = _plan(30, 20, 0.25, 2e-12)
    with pytest.raises(AccuracyError, match="too long for balls"):
        StepBalls(loss, 30, plan, 1000).evaluate([arb(0.25)])
    hurried = _method(4.0, 2.0**-10, 10, Effort(terms=20_000))
    assert isinstance(hurried._near(2.0**-5).contour, LineContour)
    lower, upper = _ends(hurried.evaluate([threshold(Fraction(1, 32))])[0])
    assert lower <= 1.12216239995e-47 <= upper


def test_a_plan_is_as_fine_as_the_digits_that_are_lost_ask_for() -> None:
    """A sum whose terms cancel to eleven digits: with the usual plan alone its doubt would be what that drops."""
    found, y = _method(2.0, 0.0001, 10_000), 0.059
    steps = found._near(y)
    loss = steps.loss
    rung = LineRung(Payoff.DELTA, 0, steps.contour.plan.view.tilt, y, y)
    usual = make_line_plan(TotalLoss((Part(loss, 10_000),)), rung, Effort())
    coarse: CutSteps = replace(steps, contour=StepBalls(loss, 10_000, usual, MANY))
    assert steps.doubt(arb(y)) < 1e-11
    assert coarse.doubt(arb(y)) > 1e-9


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "epsilon", "low", "high"),
    [
        ("1", "0.0001", 10_000, "0.08", 9.72290123655841e-11, 9.722901247841926e-11),
        ("1", "0.001", 10_000, "0.853", 1.0074240123027133e-10, 1.007424013311058e-10),
        ("1", "0.0001", 100_000, "0.235", 1.0644651065541792e-10, 1.0644651090908134e-10),
        ("4", "0.0001", 100_000, "0.169", 2.37479410093894e-100, 2.37479411057722e-100),
        ("2", "0.0001", 100_000, "0.186", 7.302902594332762e-31, 7.302902934314508e-31),
        ("2", "0.0001", 10_000, "0.059", 2.0002479047328442e-30, 2.000258676268069e-30),
    ],
)
def test_cases_that_were_wide(sigma: str, rate: str, count: int, epsilon: str, low: float, high: float) -> None:
    """Asked of a composition; the bounds before were those of sums in doubles, of cut steps or in bands."""
    found = PoissonSampled(Gaussian(sigma=sigma), rate) * count
    lower, upper = (float(x) for x in found.delta_bounds(epsilon))
    assert low <= lower <= upper <= high
    assert upper - lower < 1e-11 * upper
    assert found.explain(epsilon).method == "steps cut off, below by Fourier sum in balls"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("sigma", "rate", "count", "y"),
    [
        (4.0, 2.0**-10, 16, 2.0**-5),
        (4.0, 2.0**-10, 24, 2.0**-5),
        (3.0, 2.0**-10, 24, 2.0**-4),
        (2.0, 2.0**-8, 12, 2.0**-2),
        (1.0, 2.0**-8, 16, 2.0**-2),
    ],
)
def test_more_steps_cut_off_against_integrals(sigma: float, rate: float, count: int, y: float) -> None:
    lower, upper = _ends(_method(sigma, rate, count).evaluate([threshold(Fraction(y))])[0])
    exact = few_steps(sigma, rate, count, y)
    assert lower * (1 - ORACLE) <= exact <= upper * (1 + ORACLE)
    assert upper - lower < 2e-11 * upper


def test_a_sum_that_cancels_to_nothing_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, plan = _plan(30, 20, 0.25, 2e-12)
    monkeypatch.setattr(StepBalls, "sums", lambda self, y: (arb(-1), arb(0, 1e-30), arb(0)))
    with pytest.raises(AccuracyError, match="cancels beyond"):
        StepBalls(loss, 30, plan, MANY).evaluate([arb(0.25)])
