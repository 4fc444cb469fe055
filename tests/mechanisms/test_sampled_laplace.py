"""Real Laplace noise and tables on a sample: bounds against integrals over the two densities, in mpmath.

Fewer cells than usual, which changes how narrow bounds are and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise

import mpmath
import pytest
from flint import arb

from exactdp import (
    ApproximateDP,
    Composition,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    Outcomes,
    PoissonSampled,
    from_json,
    to_json,
)
from exactdp.accounting.between_tables import BetweenTables
from exactdp.balls import BITS, ball, precision
from exactdp.engine.effort import Effort
from exactdp.engine.line.methods import threshold
from exactdp.errors import AccuracyError, InvalidInputError
from exactdp.mechanisms.laplace_tables import merged, split
from exactdp.mechanisms.loss import FiniteLoss, ListedLoss
from exactdp.mechanisms.mechanism import Mechanism

pytestmark = pytest.mark.filterwarnings("ignore:The bounds of:exactdp.errors.AccuracyWarning")


@pytest.fixture(autouse=True)
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, table in (("split", split), ("merged", merged)):
        monkeypatch.setattr(f"exactdp.mechanisms.poisson_sampled.{name}", partial(table, cells=400))


class Densities:
    """One release in units of the scale: centres 0 and e; the output has the one at e with probability `rate`, or never."""

    def __init__(self, e: str, rate: str) -> None:
        self.e, self.rate = mpmath.mpf(e), mpmath.mpf(rate)

    def ratio(self, x: mpmath.mpf) -> mpmath.mpf:
        """Density with the record over that without it."""
        return 1 - self.rate + self.rate * mpmath.exp(abs(x) - abs(x - self.e))

    def mean(self, gain: Callable[[mpmath.mpf], mpmath.mpf], kinks: list[mpmath.mpf]) -> mpmath.mpf:
        """The integral of a function of the ratio over the density without the record, e^{-|x|} / 2."""
        ends = mpmath.mpf(1) / 2, mpmath.exp(-self.e) / 2
        total = ends[0] * gain(self.ratio(mpmath.mpf(-1))) + ends[1] * gain(self.ratio(self.e + 1))
        inside = sorted(self.place(t) for t in kinks)
        points = [mpmath.mpf(0), *(x for x in inside if 0 < x < self.e), self.e]
        return total + mpmath.quad(lambda x: gain(self.ratio(x)) * mpmath.exp(-x) / 2, points)

    def place(self, ratio: mpmath.mpf) -> mpmath.mpf:
        """The output between the centres with this ratio."""
        share = (ratio - 1 + self.rate) / self.rate
        return (mpmath.log(share) + self.e) / 2 if share > 0 else mpmath.mpf(-1)

    def delta(self, growth: mpmath.mpf, backward: bool) -> mpmath.mpf:
        """The integral of (P - growth Q)_+ over the outputs; backward that of (Q - growth P)_+."""
        gain = (lambda f: max(1 - growth * f, 0)) if backward else (lambda f: max(f - growth, 0))
        cut = min(max(self.place(1 / growth if backward else growth), mpmath.mpf(0)), self.e)
        start, end = (mpmath.mpf(0), cut) if backward else (cut, self.e)
        # a + b e^{2x - e} times e^-x / 2, from start to end
        a, b = (1 - growth * (1 - self.rate), -growth * self.rate) if backward else (1 - self.rate - growth, self.rate)
        inside = a * (mpmath.exp(-start) - mpmath.exp(-end)) + b * (
            mpmath.exp(end - self.e) - mpmath.exp(start - self.e)
        )
        return (gain(self.ratio(mpmath.mpf(-1))) + mpmath.exp(-self.e) * gain(self.ratio(self.e + 1)) + inside) / 2


def test_the_closed_form_is_the_integral() -> None:
    law = Densities("2", "0.3")
    for growth, gain in (
        (mpmath.mpf("1.2"), lambda f: max(f - 1.2, 0)),
        (mpmath.mpf("1.1"), lambda f: max(1 - 1.1 * f, 0)),
    ):
        backward = growth < 1.15
        kink = 1 / growth if backward else growth
        assert mpmath.almosteq(law.delta(growth, backward), law.mean(gain, [kink]), 1e-12)


CASES = [("1", "0.1", "0.05"), ("1", "0.1", "0.12"), ("3", "0.5", "1.1"), ("0.2", "0.9", "0.1"), ("500", "0.5", "1")]


@pytest.mark.parametrize(("e", "rate", "epsilon"), CASES)
def test_one_release_on_a_sample_against_its_integral(e: str, rate: str, epsilon: str) -> None:
    with mpmath.workdps(30):
        law, growth = Densities(e, rate), mpmath.exp(mpmath.mpf(epsilon))
        exact = max(law.delta(growth, backward) for backward in (False, True))
    noise = PoissonSampled(Laplace(2, Fraction(e) * 2), rate)
    low, high = noise.delta_bounds(epsilon)
    assert low * (1 - 1e-14) <= exact <= high * (1 + 1e-14)
    assert 0 < high - low < 1e-4 * high
    rest = BetweenTables({noise: 1}, Effort()).point([Fraction(epsilon)]).rest
    assert float(rest.lower_floats()[0]) * (1 - 1e-14) <= 1 - exact <= float(rest.upper_floats()[0]) * (1 + 1e-14)
    assert from_json(to_json(noise)) == noise


@pytest.mark.parametrize(("e", "rate", "epsilon"), [("1", "0.3", "0.4"), ("2", "0.1", "0.15")])
def test_two_releases_on_a_sample_against_an_integral(e: str, rate: str, epsilon: str) -> None:
    with mpmath.workdps(15):
        law, growth = Densities(e, rate), mpmath.exp(mpmath.mpf(epsilon))
        least, most = law.ratio(mpmath.mpf(-1)), law.ratio(law.e + 1)
        # (f g - t)_+ = f (g - t / f)_+ and (1 - t f g)_+ with f, g the two ratios; the inner delta has corners at the ends of g
        forward = law.mean(lambda f: f * law.delta(growth / f, False), [growth / least, growth / most])
        backward = law.mean(lambda f: law.delta(growth * f, True), [1 / (growth * least), 1 / (growth * most)])
    low, high = (PoissonSampled(Laplace(1, e), rate) * 2).delta_bounds(epsilon)
    exact = max(forward, backward)
    assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
    assert high - low < 1e-4 * high
    found = (PoissonSampled(Laplace(1, e), rate) * 2).epsilon_bounds(float(exact))
    assert found.lower <= float(epsilon) * (1 + 1e-12)
    assert float(epsilon) * (1 - 1e-12) <= found.upper < float(epsilon) * (1 + 1e-3)


def test_the_trade_off_of_one_release_on_a_sample() -> None:
    """Rejecting the outputs beyond a point between the centres is the best test: its alpha and its beta are integrals."""
    with mpmath.workdps(30):
        law, cut = Densities("1", "0.5"), mpmath.mpf("0.75")
        alpha = mpmath.exp(-cut) / 2
        beta = (1 - law.rate) * (1 - alpha) + law.rate * mpmath.exp(cut - law.e) / 2
        low, high = PoissonSampled(Laplace(1), "0.5").beta_bounds(mpmath.nstr(alpha, 25))
        assert low * (1 - 1e-12) <= beta <= high * (1 + 1e-12)
    assert high - low < 1e-5


@pytest.mark.parametrize("cells", [1, 2, 5])
def test_the_tables_are_those_of_the_densities(cells: int) -> None:
    """Merged cells have the masses of integrals; split ones have all moments of order -1 of each cell, and are discrete noise."""
    e = Fraction(3, 2)
    with mpmath.workdps(30):
        edges = [mpmath.mpf(3) / 2 * j / cells for j in range(cells + 1)]
        p = [mpmath.exp(-a) / 2 - mpmath.exp(-b) / 2 for a, b in pairwise(edges)]
        expected = {round(float(mpmath.log(x / y)), 12): float(x) for x, y in zip(p, p[::-1], strict=True)}
    found = [(float(v.mid()), float(m.mid())) for v, m in merged(e, cells).listed]
    assert found[0] == pytest.approx((1.5, 0.5))
    assert found[-1] == pytest.approx((-1.5, float(mpmath.exp(-1.5)) / 2))
    assert {round(v, 12): m for v, m in found[1:-1]} == pytest.approx(expected)
    for table in (merged(e, cells), split(e, cells)):
        assert sum(float(m.mid()) for _, m in table.listed) == pytest.approx(1, rel=1e-14)
        assert sum(float((m * (-v).exp()).mid()) for v, m in table.listed) == pytest.approx(1, rel=1e-14)
    discrete = sorted((float(v.mid()), float(m.mid())) for v, m in DiscreteLaplace(cells / e, cells).loss().listed)
    assert sorted((float(v.mid()), float(m.mid())) for v, m in split(e, cells).listed) == [
        pytest.approx(one, rel=1e-12, abs=1e-15) for one in discrete
    ]


def test_more_cells_are_closer_from_both_sides() -> None:
    """delta of one release without sampling is 1 - e^{(y - e) / 2}: merged below it, split above it, four times closer."""
    exact = 1 - mpmath.exp(mpmath.mpf(-1) / 4)
    gaps = []
    for cells in (3, 6, 12):
        above, below = (
            sum(max(float(m.mid()) * (1 - float(mpmath.exp(0.5 - float(v.mid())))), 0) for v, m in table.listed)
            for table in (split(Fraction(1), cells), merged(Fraction(1), cells))
        )
        assert below <= exact <= above
        gaps.append(above - below)
    assert gaps[2] < gaps[0] / 8


def test_symmetric_tables_on_a_sample_are_outcomes() -> None:
    table = IntegerNoise.cell_key(3, "1.5")
    pmf = list(table.pmf)
    same = PoissonSampled(Outcomes([0, *pmf], [*pmf, 0]), "0.2")
    for copies, epsilon in ((1, "0.1"), (3, "0.3")):
        found, expected = ((copies * m).delta_bounds(epsilon) for m in (PoissonSampled(table, "0.2"), same))
        assert tuple(found) == pytest.approx(tuple(expected), rel=1e-9)
    with pytest.raises(InvalidInputError, match="A table on a sample must be symmetric"):
        PoissonSampled(IntegerNoise.binomial(6, "1/3"), "0.2")


def test_many_values_on_a_sample_are_listed() -> None:
    """Discrete Laplace noise of a large sensitivity dominates real noise, on a sample too."""
    fine, real = (PoissonSampled(noise, "0.1") for noise in (DiscreteLaplace(300, 300), Laplace(1)))
    low, high = (3 * fine).delta_bounds("0.2"), (3 * real).delta_bounds("0.2")
    assert high.lower <= low.upper
    assert low.upper == pytest.approx(high.upper, rel=1e-3)


def test_an_explanation_names_the_tables() -> None:
    told = PoissonSampled(Laplace(1), "0.5").explain("0.3")
    assert ("between", "two tables for real noise on a sample; the lower bound is the other one's") in told.rows
    assert told.log_lower < told.log_upper < told.log_lower + 1e-4


def test_what_is_not_known_is_refused_in_a_sentence() -> None:
    noise = PoissonSampled(Laplace(1), "0.1")
    for ask in (noise.loss, lambda: Composition([noise]).cross_check(1)):
        with pytest.raises(AccuracyError, match="between two tables"):
            ask()


ALMOST_ALL = (1 - Fraction(1, 10**40), 1 - Fraction(1, 10**90))


@pytest.mark.parametrize(
    "noise",
    [
        Laplace(1, 200),
        DiscreteLaplace(1, 200),
        ApproximateDP(900, "0.001"),
        IntegerNoise.truncated_gaussian(1, 15),
        Outcomes([1 - Fraction(1, 10**100), Fraction(1, 10**100)], [Fraction(1, 10**100), 1 - Fraction(1, 10**100)]),
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_nearly_all_records_and_large_losses(noise: Mechanism) -> None:
    """At these rates delta is that of the noise itself, but for 1e-40."""
    alone = noise.delta_bounds(1)
    for rate in ALMOST_ALL:
        low, high = PoissonSampled(noise, rate).delta_bounds(1)
        assert low * (1 - 1e-12) <= alone.upper
        assert alone.lower <= high * (1 + 1e-12)
        assert high - low < 1e-10 * high
    values = [float(v.mid()) for v, _ in PoissonSampled(DiscreteLaplace(1, 200), ALMOST_ALL[1]).loss().listed]
    assert min(values) == pytest.approx(float(mpmath.log(mpmath.exp(-200) + mpmath.mpf(10) ** -90)), rel=1e-14)


@pytest.mark.parametrize(
    "noise",
    [
        Laplace(1, 100),
        Gaussian(4, "0.3"),
        DiscreteGaussian(3, 2),
        DiscreteLaplace(2),
        ApproximateDP(1, "0.01"),
        IntegerNoise.cell_key(3, "1.5"),
        Outcomes(["0.5", "0.3", "0.2", 0], ["0.1", "0.2", "0.6", "0.1"]),
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_a_sample_of_all_records_is_none(noise: Mechanism) -> None:
    sampled = PoissonSampled(noise, 1)
    assert not sampled.is_enclosed
    assert type(sampled.loss()) is type(noise.loss())
    for found, expected in (
        (sampled.delta_bounds("0.7"), noise.delta_bounds("0.7")),
        (sampled.epsilon_bounds("0.12"), noise.epsilon_bounds("0.12")),
    ):
        assert tuple(found) == pytest.approx(tuple(expected), rel=1e-9)


def test_several_records_that_are_all_in_the_sample() -> None:
    found, expected = PoissonSampled(Gaussian(4), 1, records=3).delta_bounds(1), Gaussian(4, 3).delta_bounds(1)
    assert tuple(found) == tuple(expected)


def test_listed_values_are_as_uncertain_as_their_balls() -> None:
    wide, exact = arb(1, 1e-6), arb(0)
    listed = ListedLoss([exact, wide], [arb(1) / 2, arb(1) / 2])
    finite = FiniteLoss(exact, [wide], [(0,), (1,)], [arb(1) / 2, arb(1) / 2])
    for loss in (listed, finite):
        found = loss.tilted(Fraction(0)).values()
        assert found is not None
        assert 1e-6 <= found[2] <= 1e-5
    with pytest.raises(AccuracyError, match="too few digits"):
        listed.tilted(Fraction(1))


def test_one_list_alone_is_a_sum_over_its_values() -> None:
    """Also where the question is one of the values, and where the sum has too few digits to be used."""
    masses, values = [Fraction(2, 10), Fraction(3, 10), Fraction(5, 10)], [Fraction(-1), Fraction(1, 4), Fraction(2)]
    with precision(BITS):
        loss = ListedLoss([ball(v) for v in values], [ball(p) for p in masses])
    for y in ("0", "0.1", "0.25", "1", "-1.5"):
        with mpmath.workdps(30):
            gains = (
                mpmath.mpf(float(p)) * max(0, 1 - mpmath.exp(mpmath.mpf(y) - float(v)))
                for v, p in zip(values, masses, strict=True)
            )
            expected = mpmath.fsum(gains)
        found = loss.delta(threshold(Fraction(y)))
        assert found is not None
        assert float(found[0].mid()) == pytest.approx(float(expected), rel=1e-14)
    assert loss.delta(arb(2)) is None


@pytest.mark.soak
def test_the_usual_number_of_cells_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """How narrow bounds are with as many cells as users get: the other tests have fewer, to be quick."""
    monkeypatch.setattr("exactdp.mechanisms.poisson_sampled.split", split)
    monkeypatch.setattr("exactdp.mechanisms.poisson_sampled.merged", merged)
    for e, rate, epsilon in (("1", "0.3", "0.4"), ("2", "0.1", "0.15")):
        low, high = (PoissonSampled(Laplace(1, e), rate) * 2).delta_bounds(epsilon)
        assert 0 < high - low < 1e-5 * high
    low, high = PoissonSampled(Laplace(1), "0.5").beta_bounds("0.2")
    assert high - low < 1e-6
