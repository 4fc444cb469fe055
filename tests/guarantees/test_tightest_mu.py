"""The tightest mu: sound against delta itself, tight, and its tail bound wherever that is claimed."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache
from itertools import pairwise

import mpmath
import pytest
from test_guarantees import TEN, gaussian, mpf

from exactdp import census
from exactdp.accounting.composition import Composition
from exactdp.balls import ball, precision
from exactdp.engine.lattice.contours import Contours
from exactdp.errors import AccuracyWarning, InvalidInputError
from exactdp.guarantees.chords import Chords, violates
from exactdp.guarantees.near_gaussian import near_gaussian, tail_holds
from exactdp.guarantees.tightest_mu import (
    GaussianDP,
    is_gdp,
    is_near_gaussian,
    is_too_small,
    least_mu,
    tightest_mu,
)
from exactdp.mechanisms.approximate_dp import ApproximateDP
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.discrete_laplace import DiscreteLaplace
from exactdp.mechanisms.gaussian import Gaussian
from exactdp.mechanisms.mechanism import Mechanism
from exactdp.mechanisms.outcomes import Outcomes
from exactdp.mechanisms.randomized_response import RandomizedResponse
from exactdp.mechanisms.theta import log_theta_ratio

COARSE = {
    "ten": TEN,
    "half": Composition([DiscreteGaussian("1/2")]),
    "coarse": 3 * DiscreteGaussian("0.3"),
    "two": DiscreteGaussian(1) + DiscreteGaussian(2, 2),
    "mixed": DiscreteGaussian(1) + RandomizedResponse(1),
    "laplace": Composition([DiscreteLaplace(2)]),
    "response": Composition([RandomizedResponse(1)]),
}


def _violations(c: Composition, mu: float, epsilons: list[Fraction]) -> list[Fraction]:
    """Where delta is certainly above that of mu-GDP."""
    lows = c.delta_bounds(epsilons).lower
    with mpmath.workdps(40):
        return [e for e, low in zip(epsilons, lows.tolist(), strict=True) if low > 0 and mpf(low) > gaussian(mu, e)]


@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")
@pytest.mark.parametrize("name", COARSE)
def test_tightest_mu(name: str) -> None:
    c = COARSE[name]
    found = tightest_mu(c)
    assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-6)
    assert violates(c, Fraction(found.lower), Fraction(found.epsilon))
    assert not violates(c, Fraction(found.upper), Fraction(found.epsilon))
    grid = {Fraction(i, 20) for i in range(160)} | {Fraction(i, 2) for i in range(16, 121)}
    kinks = [Fraction(k, 2) for k in range(13)] + [Fraction(found.epsilon)]
    grid |= {
        max(k + s, Fraction(0)) for k in kinks for s in (Fraction(-1, 1000), Fraction(1, 1000), Fraction(1, 10**6))
    }
    assert _violations(c, found.upper, sorted(grid)) == []


def test_tightest_mu_of_ten() -> None:
    found = tightest_mu(TEN)
    assert found.lower == pytest.approx(3.175541, abs=1e-6)
    assert found.upper == pytest.approx(3.175544, abs=1e-6)
    assert TEN.mu < found.lower


@pytest.mark.parametrize("mechanisms", [{Gaussian(1): 1}, {Gaussian(3, "1/7"): 9, Gaussian("0.2"): 2}])
def test_tightest_mu_of_continuous_gaussians(mechanisms: dict[Gaussian, int]) -> None:
    c = Composition(mechanisms)
    found = tightest_mu(c)
    assert Fraction(found.lower) ** 2 < 2 * c.rho < Fraction(found.upper) ** 2
    assert found.upper <= found.lower * (1 + 1e-14)


@pytest.mark.parametrize(
    "lost",
    [ApproximateDP(1, "1e-9"), Outcomes(["1/2", "1/2", 0], ["1/2", "1/4", "1/4"]), Outcomes([1, 0], ["1/2"] * 2)],
)
def test_no_mu_where_a_loss_is_infinite(lost: Mechanism) -> None:
    with pytest.raises(InvalidInputError, match="for no mu"):
        tightest_mu(DiscreteGaussian(1) + lost)


@cache
def _mu_of(mechanism: Mechanism) -> GaussianDP:
    return tightest_mu(Composition([mechanism]))


SKEWED = [
    Outcomes(["0.9", "0.1"], ["0.5", "0.5"]),
    RandomizedResponse(1, categories=1000),
]


@pytest.mark.parametrize("mechanism", SKEWED, ids=str)
def test_tightest_mu_of_skewed_outcomes_is_sound(mechanism: Outcomes) -> None:
    c = Composition([mechanism])
    found = _mu_of(mechanism)
    assert violates(c, Fraction(found.lower), Fraction(found.epsilon))
    assert _violations(c, found.upper, [Fraction(i, 50) for i in range(150)]) == []
    # whatever the upper bound claims, nearly the lower bound is the truth: the loss is bounded, nothing happens beyond its end
    assert _violations(c, found.lower * (1 + 1e-3), [Fraction(i, 100) for i in range(200)]) == []


@pytest.mark.parametrize("mechanism", SKEWED, ids=str)
def test_tightest_mu_of_skewed_outcomes_is_tight(mechanism: Outcomes) -> None:
    found = _mu_of(mechanism)
    assert found.upper <= found.lower * (1 + 1e-6)


@pytest.mark.parametrize("c", [Composition([DiscreteGaussian("0.01")]), 400 * DiscreteGaussian(1)])
def test_tightest_mu_where_delta_is_nearly_1(c: Composition) -> None:
    found = tightest_mu(c)
    assert found.lower <= found.upper <= found.lower * (1 + 1e-6)


def test_tightest_mu_of_nothing_learnt() -> None:
    assert tightest_mu(Composition([ApproximateDP(0)])).upper < 1e-6


EVERY_KIND = [
    DiscreteGaussian("0.3"),
    DiscreteGaussian(2, 3),
    Gaussian(2),
    DiscreteLaplace(2),
    DiscreteLaplace(3, 4),
    RandomizedResponse(2),
    RandomizedResponse(1, categories=50),
    RandomizedResponse(noise="1/3", categories=4),
    ApproximateDP("1.5"),
    Outcomes(["0.9", "0.1"], ["0.5", "0.5"]),
    Outcomes(["0.5", "0.49", "0.01"], ["0.5", "0.4999", "0.0001"]),
]


@pytest.mark.parametrize("mechanism", EVERY_KIND, ids=str)
def test_moments_are_at_most_those_of_rho(mechanism: Mechanism) -> None:
    """What the tail bound of tightest_mu rests on: log E e^{zL} <= rho z (z + 1) for z >= 0, in both directions."""
    with precision(192):
        for loss in (mechanism.loss(), mechanism.loss().reversed()):
            for z in [Fraction(i, 10) for i in range(1, 60)] + [Fraction(2) ** i for i in range(3, 12)]:
                excess = loss.log_moment(z) - ball(Fraction(mechanism.rho) * z * (z + 1))
                assert excess.lower() <= 0, z


def test_the_tail_bound_holds_wherever_it_is_claimed() -> None:
    rng = random.Random(3)
    claimed = 0
    for _ in range(300):
        rho = Fraction(rng.randint(1, 3000), 10 ** rng.randint(1, 3))
        mu = Fraction(math.sqrt(2 * rho) * (1 + 10 ** rng.uniform(-4, 0.5)))
        last = Fraction(rng.randint(1, 4000), 10)
        if not tail_holds(rho, mu, last):
            continue
        claimed += 1
        R = 2 * rho
        with mpmath.workdps(40):
            for far in (1, 1.001, 1.1, 2, 10):
                e = last * Fraction(far)
                assert mpmath.exp(-((mpf(e) - mpf(R) / 2) ** 2) / (2 * mpf(R))) <= gaussian(mu, e)
    assert claimed > 50
    assert not tail_holds(Fraction(1), Fraction(1), Fraction(100))  # mu below sqrt(2 rho)


def test_mu_is_not_proved_where_it_is_violated() -> None:
    chords = Chords(TEN, 1000)
    points = [Fraction(i, 100) for i in range(120)]
    chords.ask(points)

    def proved(mu: str) -> bool:
        return all(chords.below(Fraction(mu), pair, sum(pair) / 2) for pair in pairwise(points))

    assert not proved("3.17")
    assert not proved("3.1755")
    assert proved("3.176")


@pytest.mark.parametrize("mu", ["3.18", "3.1757"])
def test_a_chord_needs_what_it_is_said_to_need(mu: str) -> None:
    """The estimate that steers the search and the proof in balls agree: proved a little above it, not a little below."""
    chords = Chords(TEN, 1000)
    pairs = list(pairwise(Fraction(i, 7) for i in range(60)))
    chords.ask(e for pair in pairs for e in pair)
    needed, z = chords.needs(pairs, math.inf)
    for pair, n, slope in zip(pairs, needed.tolist(), z.tolist(), strict=True):
        touching = Fraction(n * (slope - n / 2))
        assert chords.below(Fraction(n * (1 + 1e-9)), pair, touching)
        assert not chords.below(Fraction(n * (1 - 1e-9)), pair, touching)


def test_a_chord_is_checked_at_both_ends() -> None:
    chords = Chords(TEN, 1000)
    ends = Fraction(0), Fraction(3)
    chords.ask(ends)
    assert not any(chords.below(Fraction("3.2"), ends, at) for at in ends)


DHC = census.release("dhc-persons-us")


@pytest.mark.parametrize("pair", [(1, 1), (3, 4), (13, 13), (6, 6)], ids=str)
def test_mu_of_census_pairs_is_known_to_six_digits(pair: tuple[int, int]) -> None:
    c = DHC.pair(*pair)
    found = tightest_mu(c)
    assert found.upper <= found.lower * (1 + 1e-6)
    assert violates(c, Fraction(found.lower), Fraction(found.epsilon))
    assert Fraction(found.upper) ** 2 > 2 * c.rho  # E e^L = e^{2 rho}, so no smaller mu can hold
    assert _violations(c, found.upper, [Fraction(i, 8) for i in range(200)]) == []


@pytest.mark.parametrize("sigma2", ["1/1000", "1/100", "1/17"])
def test_mu_of_hardly_any_noise(sigma2: str) -> None:
    """The noise is 0 nearly always: the best test decides by its sign, so both errors are at most P(X >= 1) at epsilon = 0."""
    c = Composition([DiscreteGaussian(sigma2)])
    found = tightest_mu(c)
    assert found.upper <= found.lower * (1 + 1e-6)
    with mpmath.workdps(600):
        s = mpf(Fraction(sigma2))
        weights = [mpmath.exp(-mpf(k) * k / (2 * s)) for k in range(1, 20)]
        error = sum(weights) / (1 + 2 * sum(weights))
        quantile = mpmath.findroot(
            lambda x: mpmath.log(mpmath.ncdf(-x)) - mpmath.log(error), mpmath.sqrt(-2 * mpmath.log(error))
        )
        assert found.lower * (1 - 1e-9) <= 2 * quantile <= found.upper * (1 + 1e-9)


def test_a_limit_of_work_ends_with_a_wider_mu() -> None:
    c = DHC.pair(6, 6)
    exact = tightest_mu(c)
    with pytest.warns(AccuracyWarning, match="bounds of mu are proved but"):
        found = tightest_mu(c.within(max_nodes=9000))
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper <= exact.upper * 1.01
    assert found.upper > exact.upper * (1 + 1e-6)


def test_a_short_limit_of_work_ends_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every epsilon takes long where there is hardly any noise, so few are asked for; the exact mu is 448.7875."""
    asked: list[Fraction] = []
    point = Composition.point
    monkeypatch.setattr(Composition, "point", lambda self, epsilons: asked.extend(epsilons) or point(self, epsilons))
    with pytest.warns(AccuracyWarning, match="bounds of mu are proved but"):
        found = tightest_mu((100 * DiscreteGaussian("1/1000")).within(max_seconds=0.01))
    assert 440 < found.lower < 448.7875 < found.upper < 500
    assert len(asked) <= 40


@pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")
def test_mu_of_a_million_copies_of_hardly_any_noise() -> None:
    """1 - delta(0) is about e^-250000000: such a logarithm is a double like any other."""
    found = tightest_mu((10**6 * DiscreteGaussian("1/1000")).within(max_seconds=0.1))
    assert 0 < found.lower <= found.upper <= found.lower * 1.001


def test_no_mu_below_the_root_of_2_rho_is_a_lower_bound_without_any_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactdp.guarantees.tightest_mu.violates", lambda *_: False)
    for c in (TEN, COARSE["two"]):
        with pytest.warns(AccuracyWarning, match="bounds of mu are proved but"):
            lower = tightest_mu(c).lower
        assert lower == least_mu(c)
        assert c.mu * (1 - 1e-15) <= lower
        assert Fraction(lower) ** 2 < 2 * c.rho
    assert least_mu(COARSE["mixed"]) == 0  # rho is no more than an upper bound there


NEAR = [
    10 * DiscreteGaussian(1),
    3 * DiscreteGaussian("1/2"),
    2 * DiscreteGaussian(4, 3) + DiscreteGaussian(9),
    DHC.pair(6, 6),
]


@pytest.mark.parametrize("c", NEAR, ids=["ten", "half", "three", "dhc"])
def test_the_distance_from_the_gaussian_is_bounded_and_the_bound_nearly_reached(c: Composition) -> None:
    """|delta - delta_sqrt(R)| / phi(a) at many epsilons, against the bounds for intervals and for all that follow."""
    near = near_gaussian(c)
    assert near is not None
    spread = near.spread
    points = [spread / 2 + Fraction(i, 10) * Fraction(math.sqrt(spread)) for i in range(-16, 60)]
    points = [max(e, Fraction(0)) for e in points]
    bounds = c.delta_bounds(points)
    closest = math.inf
    for e, low, high in zip(points, *(b.tolist() for b in bounds), strict=True):
        with mpmath.workdps(40):
            root = mpmath.sqrt(mpf(spread))
            a = mpf(e) / root - root / 2
            smooth, density = mpmath.ncdf(-a) - mpmath.exp(mpf(e)) * mpmath.ncdf(-a - root), mpmath.npdf(a)
            apart = max(mpf(low) - smooth, smooth - mpf(high)) / density
        with precision(160):
            distances = [*near._tilts(e, e), *near._tilts_beyond(e)]
            assert all(float(d) >= apart for d in distances), e
            if apart > 1e-9:
                closest = min(closest, *(float(d) / float(apart) for d in distances))
    assert closest < 2.5


@pytest.mark.parametrize("c", NEAR[:3], ids=["ten", "half", "three"])
def test_what_is_covered_without_chords_is_not_violated(c: Composition) -> None:
    near = near_gaussian(c)
    assert near is not None
    root, rho = math.sqrt(near.spread), near.spread / 2
    covered = 0
    for factor in (1.001, 1.03, 1.5):
        mu = Fraction(root * factor)
        for i in range(20):
            low = Fraction(i * root / 2)
            if near.covers(mu, low, low + Fraction(root / 8)):
                covered += 1
                assert _violations(c, float(mu), [low + j * Fraction(root / 8) / 3 for j in range(4)]) == []
            if near.covers(mu, low, None):
                covered += 1
                assert _violations(c, float(mu), [low + j * Fraction(root / 3) for j in range(12)]) == []
    assert covered > 20
    assert not near.covers(Fraction(root * 0.999), rho + 40, None)
    assert near_gaussian(c + RandomizedResponse(1)) is None


@pytest.mark.parametrize("c", NEAR, ids=["ten", "half", "three", "dhc"])
def test_what_tilts_off_the_integers_cost(c: Composition) -> None:
    """Between two integers the moments of discrete noise are as far from those of a Gaussian as is allowed for."""
    near = near_gaussian(c)
    assert near is not None
    ratio = sum(n * log_theta_ratio(m.sensitivity / 2, float(m.sigma2)) for m, n in c.discrete_gaussians.items())
    assert -math.expm1(ratio) <= float(near.off_integers) * (1 + 1e-9)
    assert float(near.off_integers) <= -math.expm1(ratio) * 1.05 + 1e-30


def _gaussian_delta(mu: mpmath.mpf, e: mpmath.mpf) -> mpmath.mpf:
    a = e / mu - mu / 2
    return mpmath.ncdf(-a) - mpmath.exp(e) * mpmath.ncdf(-a - mu)


@pytest.mark.parametrize("c", NEAR[:3], ids=["ten", "half", "three"])
def test_the_excess_is_that_of_the_gaussian_at_rho_and_no_less(c: Composition) -> None:
    near = near_gaussian(c)
    assert near is not None
    low, high = c.delta_bounds(near.spread / 2)
    with mpmath.workdps(40):
        smooth = _gaussian_delta(mpmath.sqrt(mpf(near.spread)), mpf(near.spread) / 2)
        least, most = (2 * mpmath.pi * (smooth - mpf(delta)) for delta in (high, low))
    assert least <= float(near.excess) * (1 + 1e-12)
    assert float(near.excess) <= most * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("c", NEAR, ids=["ten", "half", "three", "dhc"])
def test_the_room_is_what_a_larger_mu_has_over_the_gaussian_and_no_more(c: Composition) -> None:
    near = near_gaussian(c)
    assert near is not None
    root = math.sqrt(near.spread)
    for factor, share in ((1 + 1e-4, 0.995), (1.05, 0.3), (1.5, 0.001)):
        mu = Fraction(root * factor)
        for e in (near.spread / 2 + Fraction(i, 4) * Fraction(root) for i in range(-2, 12)):
            with precision(160):
                room = float(near._room(mu, max(e, Fraction(0))))
            with mpmath.workdps(60):
                at, base = mpf(max(e, Fraction(0))), mpmath.sqrt(mpf(near.spread))
                over = (_gaussian_delta(mpf(mu), at) - _gaussian_delta(base, at)) / mpmath.npdf(at / base - base / 2)
            assert share * over <= room <= over * (1 + 1e-12)


def test_the_distance_on_an_interval_is_that_of_its_worse_end() -> None:
    near = near_gaussian(TEN)
    assert near is not None
    low, high = Fraction(3), Fraction(9)
    with precision(160):
        whole, *ends = ([float(d) for d in near._tilts(*pair)] for pair in ((low, high), (low, low), (high, high)))
    for i in (1, 2):  # the tilts that do not depend on the interval
        assert whole[i] >= max(end[i] for end in ends) * (1 - 1e-12)


def test_what_is_decided_without_a_search() -> None:
    for composition in (10 * DiscreteGaussian(10), 6 * DiscreteGaussian(7)):
        root, found = math.sqrt(2 * composition.rho), tightest_mu(composition)
        assert is_too_small(composition, Fraction(root * (1 - 1e-12)))
        assert found.upper >= root * (1 - 1e-12)
        assert not is_too_small(composition, Fraction(found.upper))
        assert is_near_gaussian(composition, Fraction(root * 1.01))
        assert found.lower <= root * 1.01
        assert not is_near_gaussian(composition, Fraction(found.lower))
    coarse = 2 * DiscreteGaussian("1/5")
    assert not is_near_gaussian(coarse, Fraction(tightest_mu(coarse).lower))
    assert not is_too_small(DiscreteLaplace(1) * 1, Fraction(1, 10**6))


@pytest.mark.parametrize("name", COARSE)
def test_one_mu_is_proved_just_above_the_tightest_and_nowhere_below(name: str) -> None:
    found = tightest_mu(COARSE[name])
    assert is_gdp(COARSE[name], Fraction(found.upper) * (1 + Fraction(1, 10**5)))
    for share in (Fraction(0), Fraction(1, 10**7), Fraction(1, 10**3), Fraction(1, 4)):
        assert not is_gdp(COARSE[name], Fraction(found.lower) * (1 - share))


def test_one_mu_is_proved_where_the_tightest_is_wide() -> None:
    """Chords as fine as this mu needs them: with a room of 1e-3 few are enough, however small the work limit."""
    coarse = COARSE["two"].within(max_nodes=3 * 10**4)
    tight = tightest_mu(COARSE["two"])
    assert is_gdp(coarse, Fraction(tight.upper) * (1 + Fraction(1, 10**3)))
    assert not is_gdp(coarse, Fraction(tight.lower))


def test_a_proof_that_needs_too_many_epsilons_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.51 is 1.7e-5 above the root of 2 rho, up to an epsilon of 200: tens of thousands of chords, none of them on a contour."""
    c = 2 * DiscreteGaussian("1250000/91933") + 2 * DiscreteGaussian("78125/4414")
    asked: list[Fraction] = []
    point = Composition.point
    monkeypatch.setattr(Composition, "point", lambda self, epsilons: asked.extend(epsilons) or point(self, epsilons))
    monkeypatch.setattr(Contours, "contour", lambda *_: pytest.fail("a contour was built"))
    assert not is_gdp(c, Fraction("0.51"))
    assert len(asked) < 100
    assert max(asked) > 200
    assert is_gdp(c, Fraction("0.5101"))
