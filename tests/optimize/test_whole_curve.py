"""Estimates of whole curves for the search: close, at the epsilons that decide; round budgets about a design."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from general_search import Wanted

from exactdp import optimize, target
from exactdp.census.releases import Release
from exactdp.guarantees.tightest_mu import tightest_mu
from exactdp.mechanisms.gaussian_formula import gaussian_logs
from exactdp.optimize.curve_estimate import is_small, profiles
from exactdp.optimize.whole_curve import SIZES, WholeCurve
from small_release import SMALL

F = Fraction
EPSILONS = [F(k, 4) for k in range(0, 40, 3)]


def _excess(wanted: Wanted, design: Release) -> float:
    return max(wanted.excess(c.mechanisms, 1 << 13) for c in design.compositions)


def _design(*budgets: str) -> Release:
    table = {f"level {i}": {"n": F(budget)} for i, budget in enumerate(budgets)}
    return Release("few", "Few cells", "made up", table, {1: (), 2: ("level 1",)})


@pytest.mark.parametrize("budgets", [("1.3", "0.04"), ("0.3", "0.9", "0.2"), ("0.01", "0.000001")])
def test_estimates_are_close(budgets: tuple[str, ...]) -> None:
    """Certified bounds of every pair, from an epsilon of 0 to far in the tail."""
    design = _design(*budgets)
    at = np.array([float(e) for e in EPSILONS]) * min(1.0, 3 * math.sqrt(float(design.rho)))
    asked = [F(e) for e in at.tolist()]
    for size, close in zip(SIZES, (5e-3, 5e-4), strict=True):
        found = profiles([c.mechanisms for c in design.compositions], (2.0, 7.0), size)
        for composition, profile in zip(design.compositions, found, strict=True):
            exact = composition.point(asked).delta
            inside = exact.log_upper() > -60
            off = (profile.log_deltas(at) - exact.log_upper())[inside]
            assert np.abs(off).max() < close


def test_what_is_not_small_is_not_estimated() -> None:
    from exactdp import census

    assert is_small(_design("1", "2"))
    assert not is_small(census.release("dhc-persons-us"))


def test_a_mu_is_decided_where_delta_is_nearest_to_its_gaussian() -> None:
    """At the tightest mu nothing is left over, and at a mu larger by 1e-4 something is."""
    for budgets in (("1.28", "0.04"), ("0.4", "0.9", "0.2")):
        design = _design(*budgets)
        found = max((tightest_mu(c) for c in design.compositions), key=lambda one: one.upper)
        below, above = (
            WholeCurve.of_target(target(mu=F(found.upper) * (1 + share)), SIZES[-1]).look(design).excess
            for share in (-F(1, 10**4), F(1, 10**4))
        )
        assert below > 0 > above
        assert above > -5e-3
        point = WholeCurve.of_target(target(mu=F(found.upper))).look(design).points[0]
        limit = gaussian_logs(found.upper, float(point.epsilon))[0]
        assert math.log(float(point.delta)) == pytest.approx(limit, abs=1e-6)


def test_a_beta_is_that_of_the_envelope_of_all_pairs() -> None:
    design = _design("0.3", "0.1", "0.05")
    alpha = F(1, 20)
    beta = F(design.account().beta_bounds(alpha).lower)
    for share, side in ((F(9999, 10000), -1), (F(10001, 10000), 1)):
        look = WholeCurve.of_target(target(alpha=alpha, beta=beta * share), SIZES[-1]).look(design)
        assert math.copysign(1, look.excess) == side


@pytest.mark.parametrize("wanted", [Wanted("delta", F(2), F(1, 10**8)), Wanted("beta", F("0.05"), F("0.8"))])
def test_no_design_some_steps_away_is_better(wanted: Wanted) -> None:
    """By the convolution of the oracle, over all designs within two steps."""
    step = F(1, 400)
    goal = optimize.Objective("variance", {"level 0": 3, "level 2": 40})
    two = Release("two", "Two cells", "made up", {"level 0": {"n": F(1)}, "level 2": {"n": F(1)}}, {1: ()})
    found = optimize.best(two, goal, target=wanted.target, requirements=[f"all: multiple of {step}"]).release
    at = [x for queries in found.table.values() for x in queries.values()]
    assert all(x % step == 0 for x in at)
    better = 0
    for moves in itertools.product(range(-2, 3), repeat=2):
        table = {level: {"n": x + n * step} for level, x, n in zip(two.table, at, moves, strict=True)}
        if min(x for own in table.values() for x in own.values()) <= 0:
            continue
        other = Release("two", "Two cells", "made up", table, {1: ()})
        if goal.value(other) < goal.value(found) * (1 - 1e-6):
            better += 1
            assert _excess(wanted, other) > -1e-5
    assert better > 8


def test_designs_of_all_pairs_are_estimated() -> None:
    """Every pair of a release, in the order of its pairs."""
    look = WholeCurve.of_target(target(3, "1e-8")).look(SMALL)
    exact = [float(SMALL.pair(*pair).point([F(3)]).delta.log_upper()[0]) for pair in SMALL.pairs]
    assert look.excess == pytest.approx(max(exact) - math.log(1e-8), abs=2e-3)
    assert int(np.argmax(look.logs[0])) in np.flatnonzero(np.array(exact) > max(exact) - 2e-3)
