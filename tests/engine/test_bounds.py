"""Each analytic bound in a case in which it is tight: weakened by 1% in the unsafe direction, or dropped, a test here fails.

`WEAKER` is the factor by which a bound may fall short before a test notices; every test shows exact > WEAKER * bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import acb, arb

import oracle
from exactdp.balls import ball, precision
from exactdp.doubles import UNIT
from exactdp.engine.lattice import float64
from exactdp.engine.lattice.ball import BallContour
from exactdp.engine.lattice.ball_terms import BallTerms, Run
from exactdp.engine.lattice.conditioning import Split, mix
from exactdp.engine.lattice.contours import Contours
from exactdp.engine.lattice.lattice import Group, Lattice
from exactdp.engine.lattice.moments import log_moments
from exactdp.engine.lattice.peaks import peak_bounds
from exactdp.engine.lattice.plan import Plan, _side, log_aliasing, make_plan, trimmed
from exactdp.engine.lattice.tilts import rung
from exactdp.engine.payoff import Payoff, Threshold, delta_threshold, tail_threshold, transform_corners
from exactdp.engine.sieve.bands import Bands, make_bands
from exactdp.engine.sieve.phases import phases
from exactdp.engine.sieve.windows import sieve
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from exactdp.mechanisms.theta import log_theta_ratio_ball, theta_left_out, untilted_penalty

WEAKER = 0.991


def _lattice(*groups: tuple[Fraction | int | str, int, int]) -> Lattice:
    return Lattice(tuple(Group(Fraction(s), d, n) for s, d, n in groups))


def _whole_plan(lattice: Lattice, payoff: Payoff, tilt: Fraction, nodes: int) -> Plan:
    """A plan that keeps every node."""
    kept = np.arange(nodes // 2 + 1, dtype=np.int64)
    return Plan(lattice, payoff, tilt, nodes, kept, -math.inf, lattice.log_theta(tilt))


class _WithoutAliases(BallContour):
    def _log_aliased(self, thresholds: list[Threshold]) -> list[float]:
        return [-math.inf] * len(thresholds)


def _all_nodes(plan: Plan, threshold: Threshold, bits: int = 300) -> arb:
    """I_N itself: the sum over all N nodes, with no error term."""
    return _WithoutAliases(plan, bits).evaluate([threshold])[0].value


def test_aliasing_identity() -> None:
    """Theorem 1: I_N is the sum over j of e^{tilt j T} P(S >= x0 + j T), every term non-negative."""
    lattice = _lattice((1, 1, 2), ("3/2", 1, 1))
    exact = oracle.brute({(Fraction(1), 1): 2, (Fraction(3, 2), 1): 1})
    tilt, nodes, t = Fraction(5, 8), 13, 4
    total = _all_nodes(_whole_plan(lattice, Payoff.TAIL, tilt, nodes), tail_threshold(t))
    with precision(300):
        expected = sum(
            (ball(tilt * j * nodes * lattice.step).exp() * ball(exact.tail(t + j * nodes)) for j in range(-90, 30)),
            arb(0),
        )
        assert abs(total - expected) < arb("1e-85")


def test_aliasing_below_is_tight_far_below_the_bulk() -> None:
    """nu = 0: the bound is sum over j of e^{-tilt j T}, and P(S >= x0 - j T) is nearly 1."""
    lattice = _lattice((1, 1, 10))
    exact = oracle.brute({(Fraction(1), 1): 10})
    tilt, nodes, t = Fraction(1, 2), 20, -30
    offsets = np.array([lattice.r * float(tilt) - t * lattice.h])
    bound = _side(lattice, Payoff.TAIL, 0.5, -nodes / lattice.r, float(nodes), lattice.log_theta(tilt)).at(offsets)
    log_scale = math.fsum(_whole_plan(lattice, Payoff.TAIL, tilt, nodes).log_scale(t))
    true = sum(math.exp(-0.5 * j * nodes) * float(exact.tail(t - j * nodes)) for j in range(1, 9))
    assert WEAKER < true / math.exp(float(bound[0]) + log_scale) <= 1


def test_aliasing_below_is_tight_at_the_other_end_of_the_complement() -> None:
    """nu = -1 for 1 - delta: e^{-(1 + tilt) T} e^{epsilon}, attained when the payoff is e^{y - x} throughout."""
    lattice = _lattice((1, 1, 10))
    tilt, nodes = Fraction(-1, 2), 16
    epsilon = Fraction(-60)
    t = delta_threshold(lattice, epsilon).steps
    offsets = np.array([lattice.r * float(tilt) - t * lattice.h])
    bound = _side(lattice, Payoff.COMPLEMENT, -0.5, -100.0, float(nodes), lattice.log_theta(tilt)).at(offsets)
    log_scale = math.fsum(_whole_plan(lattice, Payoff.COMPLEMENT, tilt, nodes).log_scale(t))
    # j = -1, -2, ...: e^{-tilt j T} E min(1, e^{y - S - j T}), and E e^{-S} = e^{R/2}
    y = float(epsilon) - lattice.r / 2
    true = sum(math.exp(0.5 * j * nodes + y - j * nodes + lattice.r / 2) for j in range(1, 9))
    ratio = true / math.exp(float(bound[0]) + log_scale)
    assert math.exp(y - t * lattice.h) * WEAKER < ratio <= 1


def test_aliasing_above_is_tight_on_a_coarse_lattice() -> None:
    """One mechanism of sigma2 = 1/20 tilted to an integer: Chernoff's bound at nu = tilt + T / R is the mass of one point."""
    lattice = _lattice((Fraction(1, 20), 1, 1))
    exact = oracle.brute({(Fraction(1, 20), 1): 1})
    tilt, nodes, t = Fraction(1), 2, 1
    period = nodes * lattice.h
    offsets = np.array([lattice.r * float(tilt) - t * lattice.h])
    bound = _side(lattice, Payoff.TAIL, 1.0, period / lattice.r, period, lattice.log_theta(tilt)).at(offsets)
    log_scale = math.fsum(_whole_plan(lattice, Payoff.TAIL, tilt, nodes).log_scale(t))
    with precision(200):
        true = sum(
            (ball(j * Fraction(nodes) * lattice.step).exp() * ball(exact.tail(t + j * nodes)) for j in (1, 2)), arb(0)
        )
        ratio = float(true / (arb(float(bound[0]) + log_scale)).exp())
    assert WEAKER < ratio <= 1


def test_both_sides_of_the_aliasing_bound_are_added() -> None:
    lattice = _lattice((1, 1, 10))
    theta = lattice.log_theta(Fraction(1, 2))
    offsets = np.array([0.0])
    sides = [_side(lattice, Payoff.TAIL, 0.5, s * 3.0, 30.0, theta).at(offsets)[0] for s in (-1, 1)]
    both = log_aliasing(lattice, Payoff.TAIL, 0.5, 30.0, offsets, theta)[0]
    assert both >= np.logaddexp(*sides) - 1e-12


def test_dropped_nodes_bound_is_tight_at_half_the_period() -> None:
    """Two nodes, tail payoff: node 1 sits at phase pi, where the parabola and the transform's bound both touch."""
    lattice = _lattice((1, 1, 1))
    tilt = 2 * math.asinh(0.9999 / 256)
    bounds = peak_bounds(lattice, tilt)
    corners = transform_corners(Payoff.TAIL, tilt, lattice.h)
    penalty = bounds.strengths[0] * math.pi**2
    trial = make_bands(2, 2.0, corners, bounds.slack, 0.0)
    aim = -(penalty - trial.budgets[-1]) + 1e-6
    bands = make_bands(2, 2.0, corners, bounds.slack, aim)
    kept = sieve(lattice.strides, bounds.strengths, 2, bands)
    assert kept.tolist() == [0]  # node 1 is just over budget
    with precision(100):
        alternating = sum((arb(-1) ** x * (-((arb(x) - tilt) ** 2) / 2).exp() for x in range(-15, 16)), arb(0))
        total = sum(((-((arb(x) - tilt) ** 2) / 2).exp() for x in range(-15, 16)), arb(0))
        true = float(abs(alternating / total)) * math.tanh(tilt / 2) / 2
    assert WEAKER < true / math.exp(bands.log_dropped) <= 1


@pytest.mark.parametrize("payoff", list(Payoff))
def test_dropped_nodes_are_within_the_bound(payoff: Payoff) -> None:
    """The sum over all dropped nodes of |M V|, computed node by node, against Theorem 3."""
    lattice = _lattice(("5/3", 1, 2), ("7/2", 1, 3), (4, 1, 1))
    for index in (0, 1) if payoff is not Payoff.COMPLEMENT else (0,):
        where = rung(lattice, payoff, index)
        for log_aim in (-3.0, -8.0, -20.0):
            plan = make_plan(lattice, where, log_aim)
            half = np.arange(plan.nodes // 2 + 1, dtype=np.int64)
            out = np.setdiff1d(half, plan.kept)
            real, _, _ = log_moments(lattice, plan.lam, out, plan.nodes) if len(out) else (np.zeros(0),) * 3
            turns = phases(out, (1,), plan.nodes)[0]
            sizes = np.abs(float64.transform_factors(payoff, plan.lam, lattice.h, turns)[0])
            at_tilt = abs(float64.transform_factors(payoff, plan.lam, lattice.h, np.zeros(1))[0][0])
            true = float(np.sum(2 / plan.nodes * np.exp(real) * sizes / at_tilt))
            assert true <= math.exp(plan.log_dropped) * (1 + 1e-9)


def test_trimming_accounts_for_what_it_drops() -> None:
    """A trimmed node's actual size is added to the bound: take a plan with almost nothing dropped, allow 1e-3, and compare."""
    lattice = _lattice((3, 1, 2), ("7/2", 1, 3))
    plan = replace(_whole_plan(lattice, Payoff.TAIL, Fraction(1, 2), 2000), log_dropped=math.log(1e-3))
    smaller = trimmed(plan)
    out = np.setdiff1d(plan.kept, smaller.kept)
    assert len(out) > 500
    real, _, _ = log_moments(lattice, plan.lam, out, plan.nodes)
    sizes = np.abs(float64.transform_factors(Payoff.TAIL, plan.lam, lattice.h, phases(out, (1,), plan.nodes)[0])[0])
    at_tilt = abs(float64.transform_factors(Payoff.TAIL, plan.lam, lattice.h, np.zeros(1))[0][0])
    true = float(np.sum(2 / plan.nodes * np.exp(real) * sizes / at_tilt))
    assert WEAKER < true / (math.exp(smaller.log_dropped) - 1e-3) <= 1 + 1e-6


@pytest.mark.parametrize(("s", "v"), [(3.0, 2.0), (10.0, 1.0), (1.0, 2.2)])
def test_theta_left_out_is_tight_at_a_quarter(s: float, v: float) -> None:
    """Centre 1/4: |theta(c + i s v) / theta(c) - 1| is p e^{2 pi s v} to the leading order, which is the bound (Lemma 4)."""
    bound = float(theta_left_out(np.array([s]), np.array([1.0]), np.array([v]))[0])
    with precision(300):
        tau = acb(0, 2 * arb.pi() * arb(s))
        ratio = acb(arb(0.25), arb(s) * arb(v)).modular_theta(tau)[2] / acb(0.25).modular_theta(tau)[2]
        true = float(abs(ratio.log()))
    assert WEAKER < true / bound <= 1


def test_theta_factor_of_balls_covers_what_it_leaves_out() -> None:
    """At the centre 1/4 the ball left around 1 is used up to more than 99%."""
    lattice = _lattice((12, 1, 1))
    plan = _whole_plan(lattice, Payoff.TAIL, Fraction(1, 4), 40)
    residue = 10
    with precision(150):
        factor = next(BallTerms(plan, 150)._theta_factors(Run(residue, 1, [residue])))
        assert factor.real.mid() == 1  # left out
    with precision(600):
        tau = acb(0, 2 * arb.pi() * 12)
        height = 2 * arb.pi() * 12 * residue / 40
        true = acb(arb(0.25), height).modular_theta(tau)[2] / acb(0.25).modular_theta(tau)[2] - 1
        assert factor.real.contains(true.real + 1)
        assert factor.imag.contains(true.imag)
        assert WEAKER < float(abs(true.imag) / factor.imag.rad()) <= 1


def test_what_float64_leaves_out_of_theta_is_charged() -> None:
    """At node 0 nothing is rounded, so the error is exactly the charge for the theta factor that was skipped."""
    lattice = _lattice((Fraction(11, 5), 1, 1))
    _, _, error = log_moments(lattice, 0.25, np.zeros(1, dtype=np.int64), 40)
    charge = theta_left_out(np.array([2.2]), np.ones(1), np.zeros(1))
    assert 0 < charge[0] <= error[0]


def test_the_first_parabola_has_its_slack() -> None:
    """Lemma 5(a) needs log(theta(0) / theta(D tilt)), against Arb."""
    for s, tilt in ((Fraction(2, 5), Fraction(1, 2)), (Fraction(3, 5), Fraction(1, 4))):
        lattice = _lattice((s, 1, 50))
        bounds = peak_bounds(lattice, float(tilt))
        if bounds.slack:
            with precision(100):
                assert arb(bounds.slack) >= -50 * log_theta_ratio_ball(tilt, s)
    assert peak_bounds(_lattice((Fraction(3, 5), 1, 50)), 0.25).slack > 0


def test_the_parabola_touches_at_pi() -> None:
    """Lemma 5(a): |cf(pi)| is 2 e^{-s pi^2 / 2} to the leading order, which is exp(-strength pi^2)."""
    for s in (0.4, 0.7, 1.0, 3.0, 20.0):
        lattice = _lattice((Fraction(s).limit_denominator(1000), 1, 1))
        bounds = peak_bounds(lattice, 2.0**-40)
        with precision(200):
            value = sum((arb(-1) ** x * (-(arb(x) ** 2) / (2 * arb(s))).exp() for x in range(-90, 91)), arb(0))
            total = sum(((-(arb(x) ** 2) / (2 * arb(s))).exp() for x in range(-90, 91)), arb(0))
            true = float(abs(value / total).log())
        assert true <= bounds.slack - bounds.strengths[0] * math.pi**2 + 1e-9
        if s >= 0.7:
            assert true > (bounds.slack - bounds.strengths[0] * math.pi**2) * (1 + 1e-3)


def test_the_parabolas_hold_everywhere() -> None:
    """Lemma 5 on a grid of noise, tilt and phase, for both parabolas."""
    for s in ("1/10", "1/5", "3/10", "2/5", "1/2", "4/5", "1", "5/2"):
        lattice = _lattice((Fraction(s), 1, 1))
        for tilt in (0.0, 0.25, 0.37, 0.5, 0.9):
            bounds = peak_bounds(lattice, tilt)
            nodes = 64
            k = np.arange(0, nodes // 2 + 1, dtype=np.int64)
            real, _, error = log_moments(lattice, tilt, k, nodes)
            v = phases(k, (1,), nodes)[0]
            assert np.all(real - error <= bounds.slack - bounds.strengths[0] * v * v + 1e-13)


@pytest.mark.parametrize("s", [0.4, 0.55, 1.0, 4.5, 20.0])
def test_the_untilted_penalty_holds_and_is_tight(s: float) -> None:
    """Lemma 5(c) against the sum that defines phi, up to v = pi, where log(1 + x) <= x loses 0.31 of x."""
    sizes = np.append(np.linspace(0, math.pi, 25), math.pi - np.array([0.01, 0.03, 0.1]) / s)
    with mpmath.workdps(110):
        weights = [mpmath.exp(-mpmath.mpf(x * x) / (2 * mpmath.mpf(s))) for x in range(1, 40 + math.ceil(18 * s**0.5))]
        total = 1 + 2 * mpmath.fsum(weights)
        for v, penalty in zip(sizes.tolist(), untilted_penalty(np.array(s), sizes).tolist(), strict=True):
            terms = [w * mpmath.cos((x + 1) * mpmath.mpf(v)) for x, w in enumerate(weights)]
            exact = float(-mpmath.log((1 + 2 * mpmath.fsum(terms)) / total))
            near = math.exp(-2 * math.pi * s * (math.pi - v))
            assert exact - 1e-3 - 0.31 * near <= penalty <= exact * (1 + 1e-15) + 1e-15, v


def test_sieve_finds_every_node_within_budget() -> None:
    """Windows against looking at every node, for many shapes of strides."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        strides = tuple(int(a) for a in rng.integers(1, 4000, size=rng.integers(1, 6)))
        strengths = tuple(float(x) for x in 10 ** rng.uniform(0, 3, size=len(strides)))
        nodes = int(rng.integers(3000, 60_000))
        corner = 10 ** rng.uniform(0, 2)
        bands = make_bands(nodes, 20.0, (corner, corner + 3), 0.0, float(rng.uniform(-40, -5)))
        found = set(sieve(strides, strengths, nodes, bands).tolist())
        k = np.arange(0, nodes // 2 + 1, dtype=np.int64)
        v = phases(k, strides, nodes)
        within = np.array(strengths) @ (v * v) <= bands.at(k)
        assert set(k[within].tolist()) <= found


def test_budget_of_an_edge_belongs_to_the_band_below() -> None:
    bands = Bands(np.array([-1.0, 10.0, 20.0]), np.array([5.0, 3.0]), 0.0, 0.0)
    assert bands.at(np.array([0, 10, 11, 20])).tolist() == [5.0, 5.0, 3.0, 3.0]


def test_float64_moments_are_within_their_error_bound() -> None:
    """log_moments against balls: noise of every kind, small and large counts."""
    for s, count in [
        ("1/20", 1),
        ("1/10", 1000),
        ("6/25", 3),
        ("1/4", 3),
        ("13/50", 500),
        ("2/5", 7),
        ("1", 10**6),
        ("9", 4),
    ]:
        lattice = _lattice((Fraction(s), 1, count))
        for tilt in (Fraction(1, 8), Fraction(1, 2), Fraction(29, 16)):
            nodes = 200
            kept = np.array([0, 1, 2, 3, 7, 20, 50, 99, 100], dtype=np.int64)
            plan = replace(_whole_plan(lattice, Payoff.TAIL, tilt, nodes), kept=kept)
            real, imag, error = log_moments(lattice, plan.lam, kept, nodes)
            contour = BallContour(plan, 400)
            with precision(400):
                for i, (k, parts) in enumerate(zip(contour._kept, contour._terms, strict=True)):
                    weight = 2 if 0 < 2 * k < nodes else 1
                    nodewise = contour._of_nodes
                    first = nodewise._transform(nodewise.turn(k) * nodewise._shrink)
                    exact = parts[0] / first[0] / weight
                    if float(abs(exact).upper()) < 1e-100:  # an exact zero of the characteristic function
                        assert math.exp(real[i]) < 1e-12
                        continue
                    got = acb(float(real[i]), float(imag[i])).exp()
                    assert float(abs(got / exact - 1)) <= math.expm1(min(error[i], 600.0)) + 1e-300, (s, count, tilt, k)


def test_rounding_is_needed_and_follows_its_model() -> None:
    """Without its rounding term the bracket would miss, and the term is at least what section "float64" of engine.md derives."""
    missed = 0
    for denominator in range(3, 40):
        lattice = _lattice((Fraction(100, denominator), 1, 5))
        where = rung(lattice, Payoff.DELTA, 1)
        plan = make_plan(lattice, where, -90.0)  # aliasing and dropped nodes far below the rounding
        contour = float64.Contour(plan)
        epsilon = lattice.spread / 2 + Fraction(where.x_low + where.x_high) / 2
        threshold = delta_threshold(lattice, epsilon)
        sums = contour.evaluate([threshold])
        exact = Contours(lattice).enclose(Payoff.DELTA, threshold, 30).value
        with precision(200):
            mantissa = exact / arb(float(sums.log_scale[0])).exp()
            missed += not float(abs(mantissa - float(sums.value[0]))) <= float(sums.dropped[0] + sums.aliased[0])
            assert arb(float(sums.lower[0])) <= mantissa <= arb(float(sums.upper[0]))
        real, _, error = log_moments(lattice, plan.lam, plan.kept, plan.nodes)
        v = phases(plan.kept, lattice.strides, plan.nodes)[0]
        exponent = 11 * 2.5 * 100 / denominator * v * v  # F2: 11 units of the real exponent
        assert np.all(error >= exponent * UNIT * 0.999)
        term = (np.expm1(error) + (float64.TERM_UNITS + 4 * plan.lam * lattice.h) * UNIT) * np.exp(real)
        weights = np.where(plan.kept == 0, 1.0, 2.0) / plan.nodes
        first, second = (
            np.abs(f) for f in float64.transform_factors(Payoff.DELTA, plan.lam, lattice.h, v / lattice.strides[0])
        )
        size = weights * (threshold.a * first + threshold.b * second)
        nodes = len(plan.kept)
        model = np.sum(size * term) + np.sum(size * np.exp(real)) * (nodes + float64.PHASE_UNITS) * UNIT
        model += float(sums.value[0]) * float64.VALUE_UNITS * UNIT
        assert float(sums.rounding[0]) >= model * 0.9999
    assert missed > 25


def test_constants_of_the_rounding_model() -> None:
    """The constants of F5 to F7, added up again from the unit costs: 8 units for a libm call (4 ulp), 3 for an angle."""
    libm, angle = 8, 3
    one_minus_q = 2 * (angle + libm) + 1 + (1 + libm) + 2  # the larger part: 2 e^{-d} sin^2(x/2)
    one_minus_q = math.hypot(one_minus_q, angle * math.pi / 2 + 2 * libm + 1)
    transform = 2 * one_minus_q + 2 * libm
    q_factor = libm * math.sqrt(2) + libm + 3
    moment = 1 + libm + libm * math.sqrt(2) + 4
    assert transform + q_factor + moment + 3 < float64.TERM_UNITS
    assert math.sqrt(2) * (angle * math.pi + libm) + 3 < float64.PHASE_UNITS
    assert (libm + 1) + (2 * libm + 4) + libm + 6 < float64.VALUE_UNITS


def test_mixture_charges_for_the_terms_it_leaves_out() -> None:
    """f = 1 everywhere, so the sum is 1; sigma2 = 1/20 makes the sub-Gaussian tail tight on either side."""
    split = Split(Group(Fraction(1, 20), 1, 1), _lattice((400, 1, 1)))
    for xs, rising in (([-3, -2, -1, 0], True), ([0, 1, 2, 3], False)):
        ones = np.zeros(len(xs))
        scale, lower, upper = mix(split, xs, ones, ones, rising)
        kept = math.fsum(math.exp(DiscreteGaussian("1/20").log_pmf(x)) for x in xs)
        left_out = 1 - kept
        assert lower * math.exp(scale) <= kept <= 1 <= upper * math.exp(scale)
        assert WEAKER < left_out / (upper * math.exp(scale) - kept) <= 1


def test_mixture_uses_monotony_on_the_other_side() -> None:
    """Below the first x a rising f is at most its value there: with f = c constant the charge is c P(X < a), nearly attained."""
    split = Split(Group(Fraction(1, 20), 1, 1), _lattice((400, 1, 1)))
    for xs, rising in (([0, 1, 2, 3], True), ([-3, -2, -1, 0], False)):
        logs = np.full(len(xs), math.log(0.25))
        scale, lower, upper = mix(split, xs, logs, logs, rising)
        kept = 0.25 * math.fsum(math.exp(DiscreteGaussian("1/20").log_pmf(x)) for x in xs)
        assert lower * math.exp(scale) <= kept <= 0.25 <= upper * math.exp(scale)
        assert WEAKER < (0.25 - kept) / (upper * math.exp(scale) - kept) <= 1


def _float_ends(plan: Plan, t: int) -> tuple[arb, arb]:
    sums = float64.Contour(plan).evaluate([tail_threshold(t)])
    scale = arb(float(sums.log_scale[0])).exp()
    return arb(float(sums.lower[0])) * scale, arb(float(sums.upper[0])) * scale


def _ball_ends(plan: Plan, t: int) -> tuple[arb, arb]:
    value = BallContour(plan, 200).evaluate([tail_threshold(t)])[0].value
    return value.lower(), value.upper()


@pytest.mark.parametrize("ends", [_float_ends, _ball_ends])
def test_both_arithmetics_subtract_the_aliasing(ends: Callable[[Plan, int], tuple[arb, arb]]) -> None:
    """One node, sigma2 = 1/20, tilt 1: the sum exceeds P(X >= 1) by both aliases, and the lower end is just below it."""
    lattice = _lattice((Fraction(1, 20), 1, 1))
    exact = oracle.brute({(Fraction(1, 20), 1): 1}).tail(1)
    plan = _whole_plan(lattice, Payoff.TAIL, Fraction(1), 1)
    with precision(200):
        low, high = ends(plan, 1)
        value = ball(exact)
        assert low <= value <= high
        aliased = high - value
        assert float(aliased / value) > 1e-5
        assert float((value - low) / aliased) < 1 - WEAKER


@pytest.mark.parametrize("ends", [_float_ends, _ball_ends])
def test_both_arithmetics_allow_for_the_dropped_nodes(ends: Callable[[Plan, int], tuple[arb, arb]]) -> None:
    """The node N/2 left out, and nothing else: the value is off by exactly its size, up for one threshold, down for the next."""
    lattice = _lattice((Fraction(1, 4), 1, 1))
    exact = oracle.brute({(Fraction(1, 4), 1): 1})
    whole = _whole_plan(lattice, Payoff.TAIL, Fraction(3, 4), 64)
    real, _, _ = log_moments(lattice, whole.lam, whole.kept[-1:], 64)
    drift = whole.lam * lattice.h
    log_size = float(real[0]) + math.log(math.tanh(drift / 2) / 64)
    plan = replace(whole, kept=whole.kept[:-1], log_dropped=log_size)
    used = []
    with precision(200):
        for t in (1, 2):
            low, high = ends(plan, t)
            value = ball(exact.tail(t))
            assert low <= value <= high
            used.append(float(min(value - low, high - value) / (high - low)))
    assert min(used) < (1 - WEAKER) / 2
