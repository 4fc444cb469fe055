"""Overall guarantees where pairs cannot share contours: screened bounds against every pair asked exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from exactdp import AccuracyWarning, Composition
from exactdp.accounting.pairs import Pairs
from exactdp.balls import ball, precision
from exactdp.census.screening import Screen, ScreenedOverall
from exactdp.engine.family.contours import Family
from exactdp.engine.lattice.lattice import Group
from exactdp.theory.gaussian_gap.central_zone import Grid, NoiseGroup, Terms, Zone
from exactdp.theory.gaussian_gap.gap import shifted_delta


def family(kind: str) -> Family:
    """Four members with fractions that share no lattice; with different totals where `kind` says so."""
    primes = (1009, 1013, 1019, 1021)
    members = []
    for i, p in enumerate(primes):
        weights = [
            Fraction(300 - 20 * i, p),
            Fraction(251, p + 2),
            *[Fraction(197 + i, 997)] * 4,
            *[Fraction(113, p + 4)] * 6,
        ]
        if kind == "same":  # the same total for all
            weights.append(Fraction(5, 2) - sum(weights))
        else:
            weights.append(Fraction(2 + i, 30))
        members.append(tuple(Group(1 / w, 1, weights.count(w)) for w in sorted(set(weights))))
    return Family(tuple(members))


@pytest.fixture(scope="module", params=["same", pytest.param("different", marks=pytest.mark.soak)])
def both(request: pytest.FixtureRequest) -> tuple[Pairs, ScreenedOverall]:
    pairs = Pairs(family(request.param))
    assert not pairs.family.can_share
    return pairs, ScreenedOverall(pairs)


def compositions(pairs: Pairs) -> list[Composition]:
    return [Composition(pairs.family.mechanisms(p)) for p in range(len(pairs.family.pairs))]


def test_the_screen_holds_for_every_pair(both: tuple[Pairs, ScreenedOverall]) -> None:
    pairs, overall = both
    for epsilon in (Fraction(0), Fraction(5), Fraction(21, 2), Fraction(20), Fraction(-3)):
        point = overall.point(epsilon)
        for p, c in enumerate(compositions(pairs)):
            exact = c.point([epsilon])
            assert point.delta.log_lower()[p] <= exact.delta.log_upper()[0]
            assert exact.delta.log_lower()[0] <= point.delta.log_upper()[p]
            assert point.rest.lower_floats()[p] <= exact.rest.upper_floats()[0]
            assert exact.rest.lower_floats()[0] <= point.rest.upper_floats()[p]
    # and is narrow
    assert (
        float(np.max(overall.point(Fraction(20)).delta.log_upper() - overall.point(Fraction(20)).delta.log_lower()))
        < 0.02
    )


def test_overall_epsilon_delta_beta(both: tuple[Pairs, ScreenedOverall]) -> None:
    pairs, overall = both
    all_of = compositions(pairs)
    for delta in ("1e-10",):
        low, high = overall.epsilon(Fraction(delta))
        each = [c.epsilon_bounds(delta) for c in all_of]
        assert low <= max(b.upper for b in each)
        assert max(b.lower for b in each) <= high
        assert high - low < 1e-5 * (1 + abs(high))
    for epsilon in (Fraction(3),):
        low, high = overall.delta(epsilon)
        each = [c.delta_bounds(epsilon) for c in all_of]
        assert low <= max(b.upper for b in each)
        assert max(b.lower for b in each) <= high
        assert high <= low * (1 + 1e-4)
        assert overall.log_delta(epsilon)[1] >= math.log(max(b.lower for b in each))
        assert overall.log_delta(epsilon)[0] <= math.log(max(b.upper for b in each))
    low, high = overall.beta(Fraction(1, 20))
    assert low <= all_of[0].beta_bounds("0.05").upper
    assert high >= max(1 - max(c.delta(e) for c in all_of) - math.exp(e) / 20 for e in (0.5, 1, 1.5, 2, 2.5))
    assert high - low < 1e-3
    with pytest.warns(AccuracyWarning, match="points of the trade-off curve"):  # as wide as the screen
        curve = overall.curve(21)
    assert curve.beta[0] == 1
    assert (np.diff(curve.beta) <= 0).all()


@pytest.mark.parametrize("log_wanted", [-741, -760])
def test_overall_delta_around_the_end_of_doubles(log_wanted: int) -> None:
    """Where delta is subnormal, and beyond, both ends are outward of what single pairs prove; logarithms keep their digits."""
    pairs = Pairs(Family(family("same").members[:2]))
    overall = ScreenedOverall(pairs)
    epsilon = Fraction(round(compositions(pairs)[0].epsilon(Fraction(2) ** round(log_wanted / math.log(2)))))
    each = [c.log_delta_bounds(epsilon) for c in compositions(pairs)]
    least, most = max(b.lower for b in each), max(b.upper for b in each)
    low, high = overall.delta(epsilon)
    with precision(128):
        assert ball(Fraction(low)) <= arb(most).exp()
        assert ball(Fraction(high)) >= arb(least).exp()
    logs = overall.log_delta(epsilon)
    assert logs[0] <= most
    assert logs[1] >= least
    assert logs[1] - logs[0] < 1e-4


def test_the_screen_at_the_largest_epsilons() -> None:
    """So deep that the Gaussian's logarithm and the bound's differ by more than any double's exponent."""
    overall = ScreenedOverall(Pairs(Family(family("same").members[:2])))
    logs = [overall._screen.point(Fraction(10**k)).delta.log_upper().max() for k in (7, 8, 9)]
    assert -math.inf < logs[2] < logs[1] < logs[0] < -1e10


def test_geometric_mean_of_far_peaks(both: tuple[Pairs, ScreenedOverall]) -> None:
    """Lemma 23: a pair's far peaks are at most the geometric mean of its members' with themselves."""
    pairs, _ = both
    screen = Screen(pairs.family)
    for p, (i, j) in list(enumerate(pairs.family.pairs))[::4]:
        weights = [(float(g.sigma2), float(g.weight), g.count) for g in pairs.family.groups(p)]
        grid = np.linspace(screen._cut, 40 * screen._cut, 8_001)
        middle = (grid[1:] + grid[:-1]) / 2
        phi = np.ones_like(middle)
        for s, w, n in weights:
            u = np.arange(-2, 60)[:, None]
            top = np.exp(-s * (w * middle - 2 * math.pi * u) ** 2 / 2).sum(axis=0)
            phi *= (top / np.exp(-2 * math.pi**2 * s * np.arange(-20, 21) ** 2).sum()) ** n
        brute = float(np.sum(phi / middle**2)) * (grid[1] - grid[0]) / math.pi
        assert brute <= math.sqrt(screen._far[i] * screen._far[j])


def test_tiny_budgets() -> None:
    """The Gaussian formula cancels here; the bounds must still be in order and contain the truth."""
    a, b = 70249434384845, 70249434847671
    pairs = Pairs(Family(((Group(Fraction(a), 1, 1),), (Group(Fraction(b), 1, 1),))))
    epsilon = Fraction(174986, 873437769457)
    low, high = ScreenedOverall(pairs).delta(epsilon)
    each = [c.delta_bounds(epsilon) for c in compositions(pairs)]
    assert low <= high
    assert low <= max(x.upper for x in each)
    assert max(x.lower for x in each) <= high


def test_delta_next_to_one() -> None:
    groups = (
        (Group(Fraction(945, 229), 1, 4),),
        (Group(Fraction(1437, 2500), 1, 40), Group(Fraction(23053, 5000), 1, 2)),
    )
    low, high = ScreenedOverall(Pairs(Family(groups))).epsilon(Fraction("0.999999999"))
    assert low <= -2.3286704166 <= high + 1e-9
    assert high - low < 1e-6


def test_suspects(both: tuple[Pairs, ScreenedOverall]) -> None:
    """The worst pair is among them, and they are not all."""
    pairs, overall = both
    all_of = compositions(pairs)
    for quantity, at in (("delta", Fraction(12)), ("epsilon", Fraction(1, 10**8))):
        found = overall.suspects(quantity, at)
        each = [float(getattr(c, f"{quantity}_bounds")(at).upper) for c in all_of]
        assert int(np.argmax(each)) in found
    assert len(overall.suspects("epsilon", Fraction(1, 10**8))) < len(all_of)
    assert list(overall.suspects("beta", Fraction(1, 20))) == list(range(len(all_of)))


def test_the_remainder_is_that_of_the_theorem(both: tuple[Pairs, ScreenedOverall]) -> None:
    """One row of the screen written down again: smooth part, second order, far peaks, tail, in units of e^{-y^2/(2R)}."""
    pairs, _ = both
    screen = Screen(pairs.family)
    epsilon = Fraction(12)
    point = screen.point(epsilon)
    for p, (i, j) in enumerate(pairs.family.pairs):
        spread = pairs.family.own[i].spread + pairs.family.own[j].spread
        r, y = float(spread), float(epsilon - spread / 2)
        groups = NoiseGroup.all_of(pairs.family.mechanisms(p))
        zone = Zone.of(r, screen._cut, 1)
        lam = y / r
        grid = Grid(zone, Terms.of(groups, {1}, zone))
        far = math.sqrt(screen._far[i] * screen._far[j])
        gaussian = shifted_delta(r, y, 0)[0]
        remainder = (float(grid.second(lam, 0.0)) + far + float(grid.tail) / screen._cut**2) / gaussian
        width = (point.delta.upper[p] - point.delta.lower[p]) / 2
        assert remainder <= width <= 1.001 * remainder + 1e-10
