"""The published method against its printed figures, against convolution, and against the engine."""

from __future__ import annotations

import ast
import functools
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from flint import arb, fmpq

from exactdp import Composition, DiscreteGaussian, InvalidInputError, LatticeTooFineError
from exactdp.balls import precision
from exactdp.engine import published
from exactdp.engine.published.plan import ReferencePlan, estimated_cost, make_reference_plan
from exactdp.engine.published.step2_fourier import Series, cos_pi
from exactdp.engine.published.step3_trapezoid import weight
from exactdp.engine.published.theorem import delta, quadrature, tail, vertex

# Table 1 of the paper, column by column: rho_i and the number of its rows that hold it.
TABLE_1 = {
    "Block": {"11/10000": 10},
    "Block Group": {"43/1000": 10},
    "County": {"31/1000": 8, "31/250": 2},
    "PRIM": {"239/5000": 9, "239/1250": 1},
    "State": {"999/10000": 9, "999/2500": 1},
    "Tract Subset": {"217/2500": 8, "217/625": 2},
    "Tract Subset Group": {"239/5000": 9, "239/1250": 1},
    "US": {"73/10000": 9, "73/2500": 1},
}

SMALL = [
    {DiscreteGaussian(2): 1},
    {DiscreteGaussian(2): 2, DiscreteGaussian(3): 1},
    {DiscreteGaussian("1/3"): 3, DiscreteGaussian("5/4", sensitivity=2): 1},
    {DiscreteGaussian(4): 3, DiscreteGaussian(6, sensitivity=3): 1, DiscreteGaussian("1/20"): 1},
]


def pair_13() -> dict[DiscreteGaussian, int]:
    counts: Counter[DiscreteGaussian] = Counter()
    for column in TABLE_1.values():
        for rho, rows in column.items():
            counts[DiscreteGaussian(1 / Fraction(rho))] += 2 * rows
    return dict(counts)


@pytest.fixture(scope="module")
def plan_35() -> ReferencePlan:
    return make_reference_plan(pair_13(), "1e-35")


def convolution(mechanisms, reach_digits=60):
    """The law of X = sum a_i L X_i as a dictionary, by convolving truncated pmfs in 80-digit arithmetic."""
    with mpmath.workdps(80):
        losses = {m: m.sensitivity / m.sigma2 for m in mechanisms}
        scale = math.lcm(*(w.denominator for w in losses.values()))
        step = Fraction(math.gcd(*(int(w * scale) for w in losses.values())), scale)
        law = {0: mpmath.mpf(1)}
        for m, copies in mechanisms.items():
            s = mpmath.mpf(m.sigma2.numerator) / m.sigma2.denominator
            reach = int(mpmath.sqrt(2 * s * reach_digits * mpmath.log(10))) + 2
            pmf = {x: mpmath.exp(-x * x / (2 * s)) for x in range(-reach, reach + 1)}
            total = mpmath.fsum(pmf.values())
            for _ in range(copies):
                after: dict[int, mpmath.mpf] = {}
                for x, p in law.items():
                    for y, q in pmf.items():
                        place = x + int(losses[m] / step) * y
                        after[place] = after.get(place, mpmath.mpf(0)) + p * q / total
                law = after
    return law


def probability(law, low, high=math.inf):
    with mpmath.workdps(80):
        return mpmath.fsum(p for x, p in law.items() if low <= x <= high)


def to_ball(value) -> arb:
    """An mpmath number, known to 50 digits after the point, as a ball at the current precision."""
    man, exp = value.man_exp
    exact = fmpq(int(man)) * fmpq(2) ** int(exp)
    return arb(exact) + arb(0, 1e-55)


def contains(enclosure: arb, value) -> bool:
    with precision(400):
        return bool(enclosure.overlaps(to_ball(value)))


def test_published_figures():
    plan = make_reference_plan(pair_13(), "1e-25")
    assert (plan.L, plan.U, plan.N, len(plan.kept)) == (49622, 344_074, 713_130, 203)
    assert plan.rho == Fraction("4.9622")
    assert math.gcd(*plan.weights) == 1
    assert all(g.weight == plan.L * (1 / g.sigma2) / plan.rho for g in plan.groups)


def test_the_printed_node_count_belongs_to_the_coarser_tolerance(plan_35):
    assert len(plan_35.kept) == 323


def test_u_and_n_are_the_smallest_allowed(plan_35):
    with mpmath.workdps(60):
        logarithm = -mpmath.log(mpmath.mpf("1e-35") / 8)
        spread = mpmath.mpf(plan_35.variance_proxy.numerator) / plan_35.variance_proxy.denominator
        bound, dL = mpmath.sqrt(2 * spread * logarithm), mpmath.sqrt(spread / (2 * logarithm))
        assert plan_35.U - 1 <= bound < plan_35.U
        assert plan_35.N - 1 < 2 * (plan_35.U + 1) + dL * mpmath.log(2 * dL) <= plan_35.N
        assert plan_35.d == pytest.approx(float(dL / plan_35.L.numerator), rel=1e-14)


@pytest.mark.parametrize("tolerance", ["1e-6", "1e-30"])
@pytest.mark.parametrize("mechanisms", SMALL)
def test_tails_against_convolution(mechanisms, tolerance):
    plan, law = make_reference_plan(mechanisms, tolerance), convolution(mechanisms)
    places = {0, 1, -1, 5, -7, plan.U - 1, plan.U, plan.U + 1, plan.U + 2, plan.N, 3 * plan.N}
    for place in places | {-p for p in places}:
        for t in (Fraction(place), place + Fraction(1, 3)):  # on a lattice point, where ">" is strict, and off it
            found = quadrature(plan, t / plan.L)
            assert contains(found.enclosure, probability(law, math.floor(t) + 1)), (place, t)
            assert found.within_tolerance
            assert float(found.enclosure.rad()) <= float(plan.tolerance)


def test_the_event_is_strict():
    mechanisms = SMALL[1]
    plan, law = make_reference_plan(mechanisms, "1e-30"), convolution(mechanisms)
    here, before = tail(plan, Fraction(3) / plan.L), tail(plan, Fraction(5, 2) / plan.L)
    with precision(300):
        assert contains(before - here, law[3])
    assert float(law[3]) > 0.01  # the printed ceiling would be wrong by this much


@pytest.mark.parametrize("epsilon", [-2, 0, Fraction(1, 2), 1, 3, 7])
@pytest.mark.parametrize("mechanisms", SMALL)
def test_delta_and_vertices_against_convolution(mechanisms, epsilon):
    plan, law = make_reference_plan(mechanisms, "1e-30"), convolution(mechanisms)
    centre, one = Fraction(epsilon) * plan.L / plan.rho, plan.L  # the loss epsilon, and rho, in lattice steps
    with mpmath.workdps(80):
        growth = mpmath.exp(mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        strict = [probability(law, math.floor(centre + shift) + 1) for shift in (-one, one)]
        with_atom = [probability(law, math.ceil(centre + shift)) for shift in (-one, one)]
        assert contains(delta(plan, epsilon), strict[0] - growth * strict[1])
        # the ceiling of the printed theorem adds an atom to both tails, and in delta the two cancel
        assert abs(strict[0] - growth * strict[1] - with_atom[0] + growth * with_atom[1]) < 1e-50 * growth
        alpha, beta = vertex(plan, Fraction(epsilon) / plan.rho)
        assert contains(alpha, strict[1])
        assert contains(beta, 1 - strict[0])


@pytest.mark.parametrize("sigma2", ["1/20", "1/10", "1/4"])
def test_the_truncation_bound_is_nearly_attained(sigma2):
    # All nodes are kept, so the error is P(X > U) less the aliases, and Chernoff is sharp for small sigma2.
    mechanisms = {DiscreteGaussian(sigma2): 1}
    plan, law = make_reference_plan(mechanisms, "1e-3"), convolution(mechanisms)
    assert len(plan.kept) == plan.N
    found = quadrature(plan, 0)
    with precision(300):
        share = float((to_ball(probability(law, 1)) - found.quadrature.mid()) / found.truncation)
    sharp = {"1/20": 0.999, "1/10": 0.98, "1/4": 0.7}[sigma2]
    assert sharp < share <= 1
    assert found.discarded == 0


@pytest.mark.parametrize("first", [-2, -50])
def test_the_truncation_bound_below_is_nearly_attained(first):
    mechanisms = {DiscreteGaussian("1/20"): 1}
    plan, law = make_reference_plan(mechanisms, "1e-3"), convolution(mechanisms)
    assert plan.U == 1
    found = quadrature(plan, (first - 1) / plan.L)
    with precision(300):
        share = float((to_ball(probability(law, first)) - found.quadrature.mid()) / found.truncation)
    assert 0.999 < share <= 1


def test_the_aliasing_bound_is_nearly_attained():
    mechanisms = {DiscreteGaussian("1/10"): 1}
    plan, law = make_reference_plan(mechanisms, "1/2"), convolution(mechanisms)
    found = quadrature(plan, (-plan.U - 1) / plan.L)
    with precision(300):
        share = float((found.quadrature.mid() - to_ball(probability(law, -plan.U, plan.U))) / found.aliasing)
    assert 0.95 < share <= 1.01  # the radius of the sum is a hundredth of the aliases here


def test_the_exact_aliasing_identity():
    mechanisms = SMALL[1]
    plan, law = make_reference_plan(mechanisms, "1e-6"), convolution(mechanisms)
    everything = ReferencePlan(**{**vars(plan), "kept": tuple(range(1, plan.N + 1))})
    for first in (-plan.U, 0, 3, plan.U):
        with mpmath.workdps(80):
            aliased = mpmath.fsum(p for x, p in law.items() if (x - first) % plan.N <= plan.U - first)
        found = quadrature(everything, Fraction(first - 1) / plan.L)
        with precision(300):
            assert abs(float(found.quadrature.mid() - to_ball(aliased))) < 1e-20


@pytest.mark.parametrize("mechanisms", SMALL[1:])
@pytest.mark.parametrize("tolerance", ["1e-3", "1e-6", "1e-30"])
def test_sieve_node_by_node(mechanisms, tolerance):
    plan = make_reference_plan(mechanisms, tolerance)
    with mpmath.workdps(80):
        least = mpmath.mpf(plan.tolerance.numerator) / plan.tolerance.denominator / (8 * plan.U)

        @functools.cache
        def size(group, residue):
            s = mpmath.mpf(group.sigma2.numerator) / group.sigma2.denominator
            z = mpmath.pi * 2 * residue / plan.N
            reach = int(mpmath.sqrt(2 * s * 160)) + 2
            terms = [(mpmath.exp(-x * x / (2 * s)), x) for x in range(-reach, reach + 1)]
            f = mpmath.fsum(e * mpmath.cos(x * z) for e, x in terms) / mpmath.fsum(e for e, _ in terms)
            return f**group.copies

        def near_a_peak(group, k):
            residue = group.weight * k % plan.N
            return size(group, min(residue, plan.N - residue)) >= least

        expected = [k for k in range(1, plan.N + 1) if all(near_a_peak(g, k) for g in plan.groups)]
    assert list(plan.kept) == expected


def test_sieve_discards_and_says_how_much():
    mechanisms = {DiscreteGaussian(30): 4, DiscreteGaussian(50): 2, DiscreteGaussian(70): 2}
    plan = make_reference_plan(mechanisms, "1e-9")
    assert len(plan.kept) < plan.N / 3
    everything = ReferencePlan(**{**vars(plan), "kept": tuple(range(1, plan.N + 1))})
    for t in (-3, 0, 1, 2):
        some, full = quadrature(plan, t), quadrature(everything, t)
        with precision(200):
            assert abs(some.quadrature - full.quadrature) <= some.discarded
        assert float(some.discarded) <= float(plan.tolerance) * 3 / 8


def test_the_discarded_bound_is_nearly_attained_by_its_largest_term():
    # One group, at a tolerance for which the first discarded node lies just below the threshold.
    plan = make_reference_plan({DiscreteGaussian(324): 1}, "1e-10")
    found = quadrature(plan, 0)
    first_out = plan.groups[0].half_width + 1
    largest = math.exp(-162 * (2 * math.pi * first_out / plan.N) ** 2)  # Poisson: the next term is below 1e-1000
    needed = plan.U * (1 - len(plan.kept) / plan.N) * largest
    assert 0.99 < needed / float(found.discarded) <= 1


def test_a_node_just_above_the_threshold_is_kept():
    plan = make_reference_plan({DiscreteGaussian(319): 1}, "1e-10")
    last_in = plan.groups[0].half_width
    value = math.exp(-319 / 2 * (2 * math.pi * last_in / plan.N) ** 2)
    assert 1 < value / (1e-10 / (8 * plan.U)) < 1.005


@pytest.mark.parametrize("sigma2", ["1/20", "2", "75/2"])
@pytest.mark.parametrize("numerator", [0, 1, 20, 50])
def test_the_direct_sum_encloses_what_it_leaves_out(sigma2, numerator):
    s = Fraction(sigma2)
    with mpmath.workdps(80), precision(300):
        z, noise = 2 * mpmath.pi * numerator / 101, mpmath.mpf(s.numerator) / s.denominator
        terms = [mpmath.exp(-x * x / (2 * noise)) for x in range(150)]
        exact = (2 * mpmath.fsum(e * mpmath.cos(x * z) for x, e in enumerate(terms)) - 1) / (2 * mpmath.fsum(terms) - 1)
        coarse, fine = Series(s, 8)(numerator, 101), Series(s, 250)(numerator, 101)
        assert coarse.overlaps(to_ball(exact))
        assert fine.overlaps(to_ball(exact))
        assert float(fine.rad()) < 1e-70


def test_closed_form_of_the_weight():
    nodes = 101
    with precision(200):
        for first, last in ((-5, 9), (0, 0), (4, 30), (7, 6)):
            for k in (0, 1, 17, 50):
                direct = sum((cos_pi(2 * t * k, nodes) for t in range(first, last + 1)), arb(0))
                closed = weight(k, first, last, nodes)
                assert closed.overlaps(direct)
                assert float(closed.rad()) < 1e-50


@pytest.mark.parametrize(
    ("mechanisms", "epsilon"),
    [(SMALL[1], "0.75"), (SMALL[2], 3), (SMALL[3], 5), ({DiscreteGaussian(10): 12, DiscreteGaussian(15): 8}, "2.5")],
)
def test_agrees_with_the_engine(mechanisms, epsilon):
    assert_agreement(make_reference_plan(mechanisms, "1e-35"), mechanisms, epsilon)


@pytest.mark.parametrize("epsilon", ["10", "24.4564939544", "26.34"])
def test_agrees_with_the_engine_on_the_census_pair(plan_35, epsilon):
    assert_agreement(plan_35, pair_13(), epsilon)


@pytest.mark.soak
def test_agrees_with_the_engine_far_out():
    # delta(100) is 3e-201 and is multiplied by e^-100 in the tails: Delta = 1e-275 leaves 30 digits.
    plan = make_reference_plan(pair_13(), "1e-275")
    found = delta(plan, 100)
    assert found.str(29, radius=False) == "2.9533972006355563713500988224e-201"
    assert_agreement(plan, pair_13(), "100")


def assert_agreement(plan, mechanisms, epsilon):
    found = delta(plan, epsilon)
    lower, upper = Composition(mechanisms).delta_bounds(epsilon, digits=25)
    with precision(1200):
        engine = arb(str(lower)).union(arb(str(upper)))
        promised = arb(fmpq(plan.tolerance.numerator, plan.tolerance.denominator)) * (1 + arb(str(epsilon)).exp())
        assert found.overlaps(engine)
        assert found.rad() <= promised
        assert abs(found - engine) <= 2 * promised + engine * arb("1e-24")


def test_cost_grows_with_the_lattice():
    cheap, fine = (
        estimated_cost(pair_13(), "1e-25"),
        estimated_cost({DiscreteGaussian("0.3141592653589"): 2} | SMALL[1], "1e-25"),
    )
    assert 1e4 < cheap < 1e7 < fine


def test_too_fine_a_lattice_is_refused():
    with pytest.raises(LatticeTooFineError, match="visits"):
        make_reference_plan({DiscreteGaussian("10.3141592653589"): 2} | SMALL[1], "1e-25")
    with pytest.raises(LatticeTooFineError, match="terms"):
        make_reference_plan({DiscreteGaussian(10**17): 2}, "1e-25")


@pytest.mark.parametrize("tolerance", [0, -1, 1, 2])
def test_tolerance_must_be_between_zero_and_one(tolerance):
    with pytest.raises(InvalidInputError, match="tolerance"):
        make_reference_plan(SMALL[0], tolerance)


def test_needs_a_mechanism():
    with pytest.raises(InvalidInputError, match="at least one mechanism"):
        make_reference_plan({}, "1e-10")


def test_shares_no_code_with_the_engine():
    files = list(Path(published.__path__[0]).glob("*.py"))
    assert {f"step{i}" for i in (1, 2, 3, 4)} <= {file.name[:5] for file in files}
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    assert not any(name.name.startswith("exactdp") for n in nodes if isinstance(n, ast.Import) for name in n.names)
    imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name and name.startswith("exactdp")}
    assert {name for name in ours if not name.startswith("exactdp.engine.published.")} <= {
        "exactdp.errors",
        "exactdp.numbers",
        "exactdp.arithmetic_state",
        "exactdp.mechanisms.discrete_gaussian",
        "exactdp.balls",
    }
