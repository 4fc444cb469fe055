"""The gap between the exact delta and the Gaussian formula: proved bounds against certified values, in random compositions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb

import exactdp
import oracle
from exactdp import Composition, DiscreteGaussian, DiscreteLaplace, Gaussian, InvalidInputError, theory
from exactdp.balls import precision
from exactdp.theory.gaussian_gap.central_zone import Grid, NoiseGroup, Terms, Zone
from exactdp.theory.gaussian_gap.far_peaks import Cells, far_peaks
from exactdp.theory.gaussian_gap.gap import GaussianGap, shifted_ball, shifted_delta
from gap_oracle import some_composition, truth
from strategies import seeds

TEN = 10 * DiscreteGaussian(1)


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_the_bounds_hold_in_random_compositions(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):  # make theory does a thousand
        c = some_composition(rng)
        gap, root = GaussianGap(c), c.mu
        for z in (rng.uniform(-1, 3), rng.uniform(0, 8)):
            epsilon = max(
                Fraction(root * root / 2 + z * root).limit_denominator(rng.choice([1, 4, 10**6])), Fraction(0)
            )
            if epsilon > (root / 2 + 30) * root:
                continue
            low, high = truth(c, epsilon)
            for found in (gap.at(epsilon), gap.at_in_balls(epsilon)):
                assert -1 <= found.lower <= found.upper
                assert low <= found.upper, (c, epsilon)
                assert found.lower <= high, (c, epsilon)


def test_most_dhc_pairs_are_within_a_factor_100() -> None:
    release = exactdp.census.release("dhc-persons-us")
    rng = random.Random(8)
    ratios, sides, pairs = [], 0, rng.sample(sorted(release.pairs), 60)
    for pair in pairs:
        c = release.pair(*pair)
        gap = GaussianGap(c)
        for epsilon in (Fraction("24.00003"), Fraction("20.123")):
            low, high = truth(c, epsilon)
            found = gap.at(epsilon)
            assert low <= found.upper
            assert found.lower <= high
            sides += found.side != "unknown"
            if min(abs(low), abs(high)) > 5 * (high - low):  # the true gap is known
                assert found.side in ("unknown", "understates" if low > 0 else "overstates")
                ratios.append(found.size / min(abs(low), abs(high)))
    assert len(ratios) > 90
    assert sum(r <= 100 for r in ratios) >= 0.95 * len(ratios)
    assert sum(r <= 3 for r in ratios) >= 0.8 * len(ratios)
    assert sides > 90


def test_far_below_the_accuracy_of_doubles() -> None:
    """At digits beyond float64 the bounds still contain the certified value, and tell the side."""
    c = exactdp.census.release("dhc-persons-us").pair(17, 31)
    found = GaussianGap(c).at(24)
    low = c.delta_bounds(24, digits=30).lower
    with mpmath.workdps(60):
        e, mu = mpmath.mpf(24), mpmath.sqrt(2 * mpmath.mpf(c.rho.numerator) / c.rho.denominator)
        gaussian = mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)
        exact = mpmath.mpf(str(low)) / gaussian - 1
        assert found.lower <= exact <= found.upper
        assert abs(exact) < 1e-12
    assert found.side == "overstates"
    assert found.digits == 12
    assert found.good_to(12)
    assert not found.good_to(13)


@pytest.mark.parametrize(("sigma2", "count"), [("1/4", 1), ("1", 10), ("5/2", 2), ("1/2", 40)])
def test_coarse_noise_against_brute_force(sigma2: str, count: int) -> None:
    c = count * DiscreteGaussian(sigma2)
    brute, gap = oracle.brute({(Fraction(sigma2), 1): count}), GaussianGap(c)
    for k in range(12):
        epsilon = Fraction(k, 2) * round(c.mu)
        exact = brute.delta(epsilon)
        if exact < 1e-25:
            continue
        with mpmath.workdps(40):
            mu = mpmath.sqrt(2 * mpmath.mpf(c.rho.numerator) / c.rho.denominator)
            e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            gaussian = mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)
            g = exact / gaussian - 1
            found = gap.at(epsilon)
            assert found.lower <= g + mpmath.mpf(oracle.ERROR) / gaussian
            assert found.upper >= g - mpmath.mpf(oracle.ERROR) / gaussian
            if sigma2 in ("1", "5/2"):
                assert found.side == ("understates" if g > 0 else "overstates")
                assert found.upper - found.lower < 1e-3 * abs(g) + 1e-9


def test_the_far_peaks_contain_the_integral() -> None:
    """F by brute force: the characteristic function on a fine grid, with the weight of the translates."""
    c = 2 * DiscreteGaussian("2/3") + 3 * DiscreteGaussian("3/4")
    gap = GaussianGap(c)
    h, start = float(gap.step), gap._cut
    weights = [(float(m.sigma2), float(m.sensitivity / m.sigma2), n) for m, n in c.discrete_gaussians.items()]

    def phi(omega: float) -> float:
        result = 1.0
        for s, w, n in weights:
            top = sum(math.exp(-s * (w * omega - 2 * math.pi * u) ** 2 / 2) for u in range(-5, 60))
            result *= (top / sum(math.exp(-2 * math.pi**2 * s * u * u) for u in range(-5, 6))) ** n
        return result

    steps = 4000
    grid = [start + (math.pi / h - start) * (i + 0.5) / steps for i in range(steps)]
    brute = sum(phi(o) * (h / 2 / math.sin(h * o / 2)) ** 2 for o in grid) * (math.pi / h - start) / steps / math.pi
    assert brute < gap.far.total < 1.5 * brute
    coarse = far_peaks(c.mechanisms, start, h, [1e-3])
    assert coarse.cells < gap.far.cells
    assert brute < coarse.total


def test_float64_agrees_with_balls() -> None:
    for r, y in ((10.0, 3.0), (0.3, -0.4), (40.0, 60.0), (10.0, -12.0)):
        for shift in (0, 1, 2):
            value, error = shifted_delta(r, y, shift)
            with precision(300):
                exact = (
                    shifted_ball(Fraction(r), Fraction(y) + Fraction(r) / 2, shift) * (arb(y) ** 2 / (2 * arb(r))).exp()
                )
                assert abs(arb(value) - exact) <= error
                assert error < 1e-8 * max(abs(float(exact.mid())), abs(value)) + 1e-300


def test_ends_of_the_range() -> None:
    assert GaussianGap(Composition([Gaussian(3)])).at(1).size < 1e-11  # nothing but the Gaussian: no gap
    gap = GaussianGap(TEN)
    for epsilon in (-5, 0, "1e-30", 400):
        found = gap.at(epsilon)
        low, high = truth(TEN, Fraction(epsilon))
        assert found.lower <= high
        assert low <= found.upper
    far = GaussianGap(4000 * DiscreteGaussian(1)).at(0)  # y is -2000, 32 deviations below
    assert -1 <= far.lower <= far.upper <= 1e-9
    coarse = GaussianGap(3 * DiscreteGaussian("1/100")).at(5)
    assert coarse.side == "unknown"
    assert coarse.digits == 0
    with pytest.raises(InvalidInputError, match="discrete and continuous Gaussians only"):
        GaussianGap(TEN + DiscreteLaplace(1))
    with pytest.raises(InvalidInputError, match="epsilon"):
        gap.at("x")


@pytest.mark.parametrize(("sigma2", "count", "epsilon", "exact"), [
    (10**11, 10**6, 12590, -1.3209e-5),
    (10**12, 10**6, 100, -8.33e-10),
    (10**13, 10**6, "1.259", -1.32e-13),
    (10**18, 1, "0.001", 4.17e-8),
])  # fmt: skip
def test_where_the_gaussian_formula_cancels(sigma2: int, count: int, epsilon: object, exact: float) -> None:
    """Tiny R and a far tail: the two terms of the formula agree to more digits than doubles have. Exact by Euler-Maclaurin."""
    found = GaussianGap(count * DiscreteGaussian(sigma2)).at(epsilon)
    assert found.lower <= exact + 5e-3 * abs(exact)
    assert exact - 5e-3 * abs(exact) <= found.upper


@pytest.mark.parametrize(
    ("sigma2", "epsilon"), [(10**13, "0"), (193141751994748544, "8.167813303794306e-10"), (10**9, "1e-5")]
)
def test_the_gaussian_delta_itself_is_right_where_it_cancels(sigma2: int, epsilon: str) -> None:
    found = GaussianGap(2 * DiscreteGaussian(sigma2)).at(epsilon)
    with mpmath.workdps(80):
        mu, e = mpmath.sqrt(mpmath.mpf(2) / sigma2), mpmath.mpf(epsilon)
        exact = mpmath.log(mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2))
        assert abs(found.log_gaussian - exact) < 1e-13


def test_questions_out_of_range() -> None:
    for c, epsilon in (
        (Composition([DiscreteGaussian(10**12)]), 10**9),
        (Composition([DiscreteGaussian(10**15)]), 100),
        (Composition([DiscreteGaussian(10**18)]), 1),
        (Composition([DiscreteGaussian(1)]), -(10**9)),
    ):
        found = GaussianGap(c).at(epsilon)
        assert -1 <= found.lower <= found.upper
    for epsilon in ("1e20", 10**400, 1e300):
        with pytest.raises(InvalidInputError, match="in size"):
            GaussianGap(TEN).at(epsilon)
    coarse = GaussianGap(100 * DiscreteGaussian("0.001"))
    found = coarse.at(coarse.spread)
    assert found.digits == 0
    assert not found.good_to(1)
    assert found.statement == "No digit of the Gaussian formula's delta is proved."
    with pytest.raises(InvalidInputError, match="digits"):
        found.good_to(-400)
    for wrong in (None, [DiscreteGaussian(1)], DiscreteGaussian(1)):
        with pytest.raises(InvalidInputError, match="takes a composition"):
            GaussianGap(wrong)  # type: ignore[arg-type]
    edge = theory.Gap(Fraction(1), -1.0, 0.0, 1.0000000000000002e-5)
    assert edge.digits == 4
    assert not edge.good_to(5)


def test_comparison_carries_the_gap() -> None:
    c = exactdp.census.release("dhc-persons-us").pair(31, 43)
    found = c.compare(epsilon=24)
    assert isinstance(found.gap, theory.Gap)
    assert found.gap.side == "understates"
    assert "proved to be within 3.1e-10 (relative) of the Gaussian formula's, which understates it" in found.statement
    assert exactdp.from_json(exactdp.to_json(found)) == found
    assert (TEN + DiscreteLaplace(1)).compare(epsilon=1).gap is None
    at_delta = c.compare(delta="1e-10").gap
    assert at_delta is not None
    assert float(at_delta.epsilon) == pytest.approx(c.epsilon("1e-10"), rel=1e-9)


class _Zone:
    """The central zone by brute force: the moment function from the theta series, integrals on a fine grid."""

    def __init__(self, sigma2: float, count: int) -> None:
        self.s, self.c, self.r = sigma2, count, count / sigma2
        self.gap = GaussianGap(count * DiscreteGaussian(Fraction(sigma2).limit_denominator(100)))
        self.cut = math.pi * sigma2

    def theta(self, z: np.ndarray) -> np.ndarray:
        q = math.exp(-2 * math.pi**2 * self.s)
        top = 1 + 2 * sum(q ** (u * u) * np.cos(2 * math.pi * u * z) for u in range(1, 6))
        return top / (1 + 2 * sum(q ** (u * u) for u in range(1, 6)))

    def first(self, z: np.ndarray) -> np.ndarray:
        q = math.exp(-2 * math.pi**2 * self.s)
        bottom = 1 + 2 * sum(q ** (u * u) for u in range(1, 6))
        return self.c * 2 * q / bottom * (np.cos(2 * math.pi * z) - 1)

    def integral(self, low: float, high: float, integrand: Callable[[np.ndarray], np.ndarray]) -> float:
        omega = low + (high - low) * (np.arange(20_000) + 0.5) / 20_000
        return float(np.sum(integrand(omega))) * (high - low) / 20_000 / math.pi


@pytest.mark.parametrize("lam", [0.05, 0.7, 3.0])
@pytest.mark.parametrize(("sigma2", "count"), [(0.25, 8), (0.5, 12), (1.0, 5)])
def test_parts_of_the_remainder_contain_their_integrals(sigma2: float, count: int, lam: float) -> None:
    zone = _Zone(sigma2, count)
    grid, h = zone.gap._grid, 1 / sigma2
    assert zone.gap._smooth  # the first theta terms are taken out

    def gauss(o: np.ndarray) -> np.ndarray:
        return np.exp(-zone.r * o * o / 2)

    def second(o: np.ndarray) -> np.ndarray:
        z = lam + 1j * o
        return gauss(o) * np.abs(zone.theta(z) ** count - 1 - zone.first(z)) / np.abs(z * (z + 1))

    def kink(o: np.ndarray) -> np.ndarray:
        z, total = lam + 1j * o, np.zeros_like(o)
        for j in (*range(-200, 0), *range(1, 201)):
            big = 2 * math.pi * j / h
            total += np.abs(1 / ((z + 1j * big) * (z + 1 + 1j * big)) + 1 / big**2)
        return gauss(o) * np.abs(1 + zone.first(z)) * total

    brute = zone.integral(0, zone.cut, second)
    assert brute <= grid.second(lam, 0.0) <= 60 * brute + 1e-12
    assert grid.second(lam, 0.1) > grid.second(lam, 0.0)
    tail = zone.integral(zone.cut, 3 * zone.cut, lambda o: gauss(o) * (1 + np.abs(zone.first(lam + 1j * o))))
    assert tail <= grid.tail <= 10 * tail + 1e-290
    if 2 * math.pi / h > 1.5 * zone.cut:
        found = zone.integral(0, zone.cut, kink)
        assert found <= grid.kink(lam, h) <= 60 * found


def test_the_weight_of_the_images() -> None:
    """sum over j != 0 of 1/(om + 2 pi j/h)^2 is at most (pi^2 - 4) h^2 / (4 pi^2) for |om| <= pi/h, and equal at the end."""
    h = 0.7
    for omega in np.linspace(-math.pi / h, math.pi / h, 41):
        total = sum(1 / (omega + 2 * math.pi * j / h) ** 2 for j in range(-4000, 4001) if j)
        assert total <= (math.pi**2 - 4) * h * h / (4 * math.pi**2)
    assert total == pytest.approx((math.pi**2 - 4) * h * h / (4 * math.pi**2), rel=1e-3)


@pytest.mark.parametrize("c", [2 * DiscreteGaussian("2/3") + 3 * DiscreteGaussian("3/4"), 4 * DiscreteGaussian(2)])
def test_each_listed_cell_holds_the_largest_value_in_it(c: Composition) -> None:
    """One cell at a time: its bound is at least width / pi times the characteristic function times the weight anywhere in it.

    With one kind of noise the bound is attained at the edge of the cell, to 2 in 1,000.
    """
    start, h = 0.6, 1 / 12 if len(c.mechanisms) > 1 else 0.0
    cells = Cells(c.mechanisms, start, h)
    ratios = []
    for k in range(math.ceil(start / cells.width) + 1, math.floor(13 / cells.width), 3):
        omega = np.linspace((k - 0.5) * cells.width, (k + 0.5) * cells.width, 41)
        phi, u = np.ones_like(omega), np.arange(-5, 80)[:, None]
        for g in NoiseGroup.all_of(c.mechanisms):
            phi *= np.exp(-g.sigma2 * (g.weight * omega - 2 * math.pi * u) ** 2 / 2).sum(axis=0) ** g.count
        weight = (h / 2 / np.sin(omega * h / 2)) ** 2 if h else omega**-2.0
        found, largest = cells.listed(np.array([k])), float(np.max(phi) * weight[0]) * cells.width / math.pi
        assert found >= float(np.max(phi * weight)) * cells.width / math.pi
        ratios.append(found / largest)
    assert min(ratios) < 1.002 or len(c.mechanisms) > 1


def test_what_is_dropped_is_what_the_bands_allow() -> None:
    """Lemma 21 for each band: length times weight at its beginning times e^-L, L from the budget; none is left out."""
    cells = Cells((4 * DiscreteGaussian(2)).mechanisms, 0.6, 0.0)
    bands = cells.bands(20_000, 1e-6)
    lows = [max((math.floor(e) + 0.5) * cells.width, 0.6) for e in [0.0, *bands.edges[1:-1]]]
    lengths = np.diff([0, *(math.floor(e) for e in bands.edges[1:])]) * cells.width
    kept = np.exp(-((np.sqrt(bands.budgets) - cells.reach) ** 2))
    stated = float(np.sum(lengths * np.array(lows) ** -2.0 * kept)) / math.pi
    assert stated * (1 - 1e-6) <= math.exp(bands.log_dropped) <= stated * 1.001


def _log_gauss(d: float, height: float, o: Any) -> Any:
    return -20 * o * o + 2 * mpmath.pi * d * o + height


def test_terms_of_a_zone_are_those_of_the_theorem() -> None:
    """t, its sum with (pi u D)^2, the tail, the Gaussian's share of a cell: each from above, and to 1 in 100,000."""
    g, zone = NoiseGroup(0.35, 2, 3), Zone.of(40.0, 0.55, 2)
    q = math.exp(-2 * math.pi**2 * g.sigma2)
    terms = [6 * q ** (u * u) * (np.cosh(2 * math.pi * u * 2 * zone.high) + 1) for u in range(1, 12)]
    first, total, curved = g.terms(zone.high)
    for found, exact in (
        (first, terms[0]),
        (total, sum(terms)),
        (curved, sum((2 * math.pi * u) ** 2 * t for u, t in enumerate(terms, start=1))),
    ):
        assert (exact * (1 - 1e-12) <= found).all()
        assert (found <= exact * (1 + 1e-5)).all()
    with mpmath.workdps(20):
        for d, height in ((0.0, 0.0), (2.0, -2 * math.pi**2 * g.sigma2)):
            log_beyond = partial(_log_gauss, d, height)
            exact = float(mpmath.quad(lambda o, f=log_beyond: mpmath.exp(f(o)), [zone.cut, 1, 3]) / mpmath.pi)
            assert zone.tail(d, height) == pytest.approx(exact, rel=1e-9)
    share = np.exp(-20 * zone.low**2) * (zone.high - zone.low) / math.pi
    assert (share <= np.exp(zone.log_gauss)).all()
    some = share > 0  # the last cells may be empty
    assert (np.exp(zone.log_gauss) <= share * (1 + 1e-5))[some].all()
    smooth, rough = (Terms.of([g], which, zone) for which in ({2}, set()))
    assert smooth.linear + smooth.first == pytest.approx(rough.linear)
    assert smooth.tail >= 4 * g.count * zone.tail(2.0, math.log(q)) * (1 - 1e-12)
    assert smooth.log_product == pytest.approx(3 * np.log1p(sum(terms) / 3), rel=1e-6)
    grid = Grid(zone, smooth)
    gauss, t = np.exp(zone.log_gauss), smooth.total
    for lam in (0.5, 3.0):
        weight = 1 / np.sqrt((lam * lam + zone.low**2) * ((lam + 1) ** 2 + zone.low**2))
        second = (smooth.linear + t * t / 2 * np.exp(smooth.log_product)) * gauss
        curved_second = (smooth.linear_curved + t / 2 * smooth.curved * np.exp(smooth.log_product)) * gauss
        stated = float(np.sum(np.minimum(second * weight, curved_second)))
        assert float(grid.second(lam, 0.0)) == pytest.approx(stated, rel=1e-9)
        assert float(grid.second(lam, 0.3)) == pytest.approx(stated + 0.3 * float(np.sum(second)), rel=1e-9)
    beyond = (zone.tail(0.0, 0.0) + float(smooth.tail)) * (1 - 1e-12)
    assert beyond <= float(grid.tail) <= beyond * (1 + 1e-6)
    assert float(grid.tail_far) == pytest.approx(float(grid.tail) / zone.cut**2)


def test_the_kink_is_that_of_the_theorem() -> None:
    """sum over J of (|z||z+1| + J (|z| + |z+1|)) / (J^2 (J - om_c)^2), with |z| <= lam + om, on the upper ends of the cells."""
    g, zone, lam, h = NoiseGroup(0.5, 1, 12), Zone.of(24.0, 1.5, 1), 3.0, 0.02
    terms = Terms.of([g], {1}, zone)
    plain = (1 + terms.first) * np.exp(zone.log_gauss)
    a, b = lam + zone.high, lam + 1 + zone.high
    total = 0.0
    for j in range(1, 4000):
        big, near = 2 * math.pi * j / h, j * (2 * math.pi / h - zone.cut)
        total += 2 * float(np.sum(plain * (a * b / (big * near) ** 2 + (a + b) / (big * near**2))))
    assert total <= float(Grid(zone, terms).kink(lam, h)) <= total * 1.0001


def test_the_kink_is_not_much_larger_than_its_integral() -> None:
    """A fine lattice and a large tilt: the bound is tight to a factor below 2."""
    zone, lam, h = _Zone(0.5, 12), 3.0, 0.02

    def kink(o: np.ndarray) -> np.ndarray:
        z, total = lam + 1j * o, np.zeros_like(o)
        for j in (*range(-60, 0), *range(1, 61)):
            big = 2 * math.pi * j / h
            total += np.abs(1 / ((z + 1j * big) * (z + 1 + 1j * big)) + 1 / big**2)
        return np.exp(-zone.r * o * o / 2) * total

    found = zone.integral(0, zone.cut, kink)
    assert found <= zone.gap._grid.kink(lam, h) <= 1.9 * found
