"""Nodes by size: what float64 adds to balls is enclosed, narrow, and never a number that may have underflowed."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb

import exactdp
from exactdp.accounting.certificates.routes import EngineRoute
from exactdp.balls import ball, precision
from exactdp.doubles import UNIT
from exactdp.engine.lattice import graded
from exactdp.engine.lattice.ball import BallContour
from exactdp.engine.lattice.ball_terms import BallTerms
from exactdp.engine.lattice.graded import GradedContour
from exactdp.engine.lattice.lattice import Group, Lattice
from exactdp.engine.lattice.plan import Plan, log_expected, make_plan
from exactdp.engine.lattice.tilts import rung, rung_index, shared_rung, wide_rung
from exactdp.engine.payoff import Payoff, Threshold, delta_threshold, tail_threshold

NOISE = {Fraction(2, 3): 2, Fraction(8, 3): 18, Fraction(137): 18}
"""Like the hardest pair of the DHC persons release: of a thousand nodes a few hundred are large."""

LATTICE = Lattice(tuple(Group(s, 1, n) for s, n in NOISE.items()))
CASES = [(payoff, index) for payoff in Payoff for index in (0, 2)]


def _plan(payoff: Payoff, index: int, digits: int = 23) -> Plan:
    where = wide_rung(LATTICE, payoff, index)
    return make_plan(LATTICE, where, log_expected(LATTICE, where) - digits * math.log(10))


def _threshold(payoff: Payoff, index: int) -> Threshold:
    where = wide_rung(LATTICE, payoff, index)
    x = Fraction((where.x_low + where.x_high) / 2)
    return (
        tail_threshold(round(x / LATTICE.step))
        if payoff is Payoff.TAIL
        else delta_threshold(LATTICE, x + LATTICE.half_spread)
    )


def _exact_sums(plan: Plan, threshold: Threshold, bits: int = 300) -> tuple[arb, arb]:
    """The sums over the kept nodes divided by N, node by node in balls."""
    contour = BallContour(plan, bits)
    with precision(bits):
        totals = [arb(0), arb(0)]
        for k, terms in zip(contour._kept, contour._terms, strict=True):
            turn = 2 * arb.pi() * (k * (threshold.steps - contour._whole_shift) % plan.nodes) / plan.nodes
            for i, term in enumerate(terms):
                totals[i] += (term * acb(turn.cos(), -turn.sin())).real / plan.nodes
        return totals[0], totals[1]


@pytest.mark.parametrize(("payoff", "index"), CASES)
def test_the_enclosure_agrees_with_balls_alone_and_is_narrow(payoff: Payoff, index: int) -> None:
    plan, threshold = _plan(payoff, index), _threshold(payoff, index)
    contour = GradedContour(plan, 140)
    assert 300 < np.count_nonzero(contour._is_small) < len(plan.kept) - 100
    mixed = contour.evaluate([threshold])[0]
    alone = BallContour(plan, 300).evaluate([threshold])[0]
    with precision(300):
        assert mixed.value.overlaps(alone.value)
        assert mixed.value.rad() <= 1.001 * (alone.value.rad() + alone.dropped)
        assert mixed.value.rad() < mixed.value.mid() * arb("1e-21")


def test_float64_is_enclosed_and_its_radius_is_needed() -> None:
    """Theorem C1a: the exact sums over the small nodes are within the radius, and not where float64 found them."""
    missed = 0
    for payoff, index in CASES:
        contour = GradedContour(_plan(payoff, index), 140)
        small, threshold = contour._small, _threshold(payoff, index)
        assert small is not None
        totals = small.totals([threshold])
        for kind, exact in zip("ab", _exact_sums(small.plan, threshold), strict=True):
            enclosure = graded._enclosure(totals, 0, kind)
            with precision(300):
                assert enclosure.contains(exact)
                missed += not abs(exact - enclosure.mid()) < enclosure.rad() / 10**6
            # F5 and F6: the errors of the terms, and those of their sum
            terms, nodes = small._terms, len(small.plan.kept)
            size, error = (terms.for_a, terms.error_a) if kind == "a" else (terms.for_b, terms.error_b)
            summing = (min(nodes, 512) + nodes / 512 + 32) * UNIT
            assert float(enclosure.rad()) >= math.fsum(error) + math.fsum(np.abs(size)) * summing
    assert missed > 6


def test_what_float64_may_add_is_what_was_dropped() -> None:
    for payoff, index in CASES:
        contour = GradedContour(_plan(payoff, index), 140)
        small, (first, _) = contour._small, contour._large._of_nodes.transform_at_tilt
        assert small is not None
        totals = small.totals([_threshold(payoff, index)])
        assert float(totals.radius_a) <= 1.001 * math.exp(contour.plan.log_dropped) * float(first)


def _whole_plan(lattice: Lattice, tilt: Fraction, nodes: int, log_dropped: float) -> Plan:
    kept = np.arange(nodes // 2 + 1, dtype=np.int64)
    return Plan(lattice, Payoff.DELTA, tilt, nodes, kept, log_dropped, lattice.log_theta(tilt))


def test_no_term_that_underflows_is_left_to_float64() -> None:
    """Sizes from 1 to e^{-1900}: those that a double holds badly or not at all stay in balls."""
    plan = _whole_plan(Lattice((Group(Fraction(400), 1, 1),)), Fraction(1, 2), 600, -300.0)
    contour = GradedContour(plan, 3000)
    assert np.count_nonzero(contour._is_small) > 20
    exact = BallContour(plan, 3000)
    with precision(3000):
        sizes = [float((abs(a) / plan.nodes).log()) for a, _ in exact._terms]
    assert min(np.array(sizes)[contour._is_small]) > math.log(0.999e-250)
    assert min(sizes) < -1500


def test_nothing_is_left_to_float64_where_a_step_on_the_way_could_underflow() -> None:
    fine = Lattice((Group(Fraction(4), 1, 1),), Fraction(1, 10**27))
    coarse = Lattice((Group(Fraction(1, 100), 1, 1),))
    for lattice in (fine, coarse):
        plan = _whole_plan(lattice, Fraction(1, 2) if lattice is fine else Fraction(1), 400, 50.0)
        assert not GradedContour(plan, 200)._is_small.any()
    usual = _whole_plan(Lattice((Group(Fraction(4), 1, 1),)), Fraction(1, 2), 400, 50.0)
    assert GradedContour(usual, 200)._is_small.all()


def test_rows_of_neighbours_and_lonely_nodes() -> None:
    """The table of terms against a sum node by node: one row, several, gaps shorter and longer than a row."""
    plan, threshold = _plan(Payoff.DELTA, 2), _threshold(Payoff.DELTA, 2)
    for kept in ([0], [7], list(range(40)), [0, 1, 3, 50, 51, 52, 53, 54, 4000], list(range(0, 3000, 77))):
        part = replace(plan, kept=np.array(kept, dtype=np.int64))
        contour = BallContour(part, 140)
        expected = _exact_sums(part, threshold)
        with precision(140):
            found = contour._sums(threshold.steps - contour._whole_shift)
        for got, exact in zip(found, expected, strict=True):
            with precision(300):
                assert (got / plan.nodes).contains(exact)
                assert got.rad() < arb(2) ** -100 * contour._of_nodes.transform_at_tilt[0]


@pytest.mark.parametrize("payoff", list(Payoff))
def test_a_node_among_its_neighbours_is_what_it_is_alone(payoff: Payoff) -> None:
    """From one node to the next by powers, against phases and exponents that are exact for the node itself; residues that pass
    N / 2 on the way, theta factors that matter at the end of a run only, and rows longer than a run."""
    tilt = Fraction(-3, 10) if payoff is Payoff.COMPLEMENT else Fraction(3, 10)
    several = Lattice(tuple(Group(Fraction(s), d, n) for s, d, n in (("1/5", 1, 2), ("2/3", 1, 18), ("5/2", 3, 1))))
    for lattice, nodes in ((several, 97), (several, 5040), (Lattice((Group(Fraction(12), 1, 1),)), 97)):
        kept = np.unique(np.concatenate([np.arange(min(nodes // 2 + 1, 150)), [nodes // 3, nodes // 2]]))
        plan = Plan(lattice, payoff, tilt, nodes, kept.astype(np.int64), -20.0, lattice.log_theta(tilt))
        with precision(200):
            together = BallTerms(plan, 200).terms()
        for k, found in zip(kept.tolist(), together, strict=True):
            with precision(300):
                (alone,) = BallTerms(replace(plan, kept=np.array([k])), 300).terms()
                for mine, exact in zip(found, alone, strict=True):
                    assert mine.contains(exact), (nodes, k)
                    assert mine.rad() < arb(2) ** -150 * (1 + abs(exact)), (nodes, k)


def test_answers_against_balls_alone_on_another_contour() -> None:
    """The route of certificates knows no float64; 30 digits of it lie inside 20 digits of the mixed sum."""
    composition = exactdp.Composition({exactdp.DiscreteGaussian(s): n for s, n in NOISE.items()})
    route = EngineRoute(LATTICE, 30)
    epsilons = [Fraction(1, 7), Fraction(12), Fraction(31)]
    together = composition.delta_bounds(epsilons, digits=20)
    for i, epsilon in enumerate(epsilons):
        low, high = together.lower[i], together.upper[i]
        assert (high - low) < high / 10**20
        with precision(200):
            exact = route.delta(epsilon)
            assert ball(Fraction(low)) <= exact <= ball(Fraction(high))


def test_answers_do_not_depend_on_what_is_asked_before_or_together() -> None:
    noise = {exactdp.DiscreteGaussian(s): n for s, n in NOISE.items()}
    epsilons = [30, 5, 12, 13]
    together = exactdp.Composition(noise).delta_bounds(epsilons, digits=20)
    for i, epsilon in enumerate(epsilons):
        alone = exactdp.Composition(noise).delta_bounds(epsilon, digits=20)
        assert (alone.lower, alone.upper) == (together.lower[i], together.upper[i])


def test_rungs_that_share_a_contour_lie_inside_its_interval() -> None:
    assert [shared_rung(i) for i in range(8)] == [0, 2, 2, 2, 5, 5, 5, 8]
    for payoff in Payoff:
        for index in range(1 + rung_index(LATTICE, payoff, -LATTICE.r / 2 if payoff is Payoff.COMPLEMENT else 40.0)):
            own, wide = rung(LATTICE, payoff, index), wide_rung(LATTICE, payoff, shared_rung(index))
            assert wide.x_low <= own.x_low <= own.x_high <= wide.x_high


@pytest.mark.parametrize("bits", [60, 150, 400])
def test_theta_by_its_series_is_jacobis_function(bits: int) -> None:
    """At every residue, the largest included; for s below 1/4 there is no series."""
    lattice = Lattice(tuple(Group(Fraction(s), 1, 1) for s in ("1/5", "1/4", "2/3", "8/3", "137")))
    plan = make_plan(lattice, wide_rung(lattice, Payoff.DELTA, 2), -20.0)
    terms = BallTerms(plan, bits)
    for i, (group, (_, rest)) in enumerate(zip(lattice.groups, terms.centres, strict=True)):
        with precision(bits):
            assert bool(terms._theta_constants[i].terms) == (group.sigma2 >= Fraction(1, 4))
        for r in (0, 1, -1, plan.nodes // 3, plan.nodes // 2, -(plan.nodes // 2)):
            with precision(bits):
                found = next(terms._theta_ratios(i, r, 1))
            with precision(4 * bits + 4000):
                period = 2 * arb.pi() * ball(group.sigma2)
                top = acb(ball(rest), period * r / plan.nodes).modular_theta(acb(0, period))[2]
                exact = top / acb(ball(rest)).modular_theta(acb(0, period))[2]
                assert found.contains(exact), (group, r)
                radius = found.real.rad() + found.imag.rad()
                assert radius <= 1e5 * (arb(2) ** -bits) * (1 + abs(exact)), (group, r)
