"""One object of every kind that can be written or shown, and of every corner of it."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import exactdp
from exactdp import (
    ApproximateDP,
    Bounds,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GaussianMixture,
    IntegerNoise,
    Laplace,
    Outcomes,
    PoissonSampled,
    RandomizedResponse,
    Skellam,
    budget_change,
)
from exactdp.accounting.certificates.certificate import certify
from exactdp.accounting.certificates.verify import Check, Verification
from exactdp.accounting.cross_check import Opinion
from exactdp.census import certify_design
from exactdp.census.cell_noise import CellNoise
from exactdp.census.grids import Grids
from exactdp.census.releases import Release
from exactdp.census.savings import Saving
from exactdp.census.study import make_study
from exactdp.guarantees.risk import risk_of

HUGE = Fraction(10**3000 + 7, 10**2999 + 3)
EVIL = "<script>alert('\"&')</script>\u2028</td> é漢字"
TEN = 10 * DiscreteGaussian(1)
MIXED = (
    3 * DiscreteGaussian("10/3", sensitivity=2)
    + DiscreteGaussian(sigma=math.pi)
    + Gaussian(sigma=1e-3, sensitivity="1/1000")
    + DiscreteLaplace("7/3", sensitivity=3)
    + RandomizedResponse("1/10")
    + RandomizedResponse(noise="1/2", categories=10**18)
    + ApproximateDP(0, "1e-300")
    + Outcomes(["1/3", "2/3", 0], ["2/3", "1/3", 0])
    + IntegerNoise({-3: "1/3", -2: "1/6", 4: "1/2"})
)
DESIGN = Release(
    EVIL, EVIL, "", {"Ünited": {EVIL: Fraction(1, 3), "b": Fraction(2)}, "1": {"a": HUGE / 100}}, {1: (), 7: ("1",)}
)
LEVELS = ("US", "State", "County", "Tract")
SPINE = Release(
    "spine",
    "Spine",
    "",
    {level: {"a": Fraction(1, 2)} for level in LEVELS},
    {n: tuple(level for i, level in enumerate(LEVELS[1:]) if n >> i & 1) for n in range(8)},
)
STUDY = SPINE.account(epsilons=["1/3"], deltas=["1e-5", "1e-10"], alphas=[0.1])
SMALL = Release(
    "small", "Small", "", {"US": {"a": Fraction(1)}, "State": {"b": Fraction(1, 2)}}, {1: (), 2: ("State",)}
)
UNUSUAL = replace(SMALL, relation="add/remove", noise={("State", "b"): CellNoise("discrete laplace", 2, 3)})
IN_BALLS = make_study(SMALL, Grids.read([1], ["1e-5"], [], 20))
EMPTY = np.empty((0, 3))


def decimals(*values: str) -> Any:
    result = np.empty(len(values), dtype=object)
    result[:] = [Decimal(value) for value in values]
    return result


OBJECTS: dict[str, Any] = {
    "Laplace": Laplace("1/3", sensitivity="5/2"),
    "Skellam": Skellam("5/2", sensitivity=3),
    "sampled": PoissonSampled(Gaussian(sigma=1.1), "0.01"),
    "sampled records": PoissonSampled(Gaussian(4), "1/7", records=3),
    "mixture of Gaussians": GaussianMixture("10/3", [0, 1, "5/2"], ["1/2", "1/3", "1/6"]),
    **{f"{type(m).__name__}-{i}": m for i, m in enumerate(MIXED.mechanisms)},
    "huge": DiscreteGaussian(HUGE),
    "composition": MIXED,
    "many": 10**15 * DiscreteGaussian(10**9),
    "effort": TEN.within(max_nodes=10**12 + 1),
    "floats": Bounds(-0.0, math.inf),
    "calibration": exactdp.Calibration(Fraction(3, 2), Fraction(1, 100), TEN),
    "mu": exactdp.GaussianDP(3.1755346, 3.1755664, 1.5125),
    "subnormal": Bounds(5e-324, sys.float_info.max),
    "nan": Bounds(math.nan, -math.inf),
    "decimals": Bounds(Decimal("-1.50E-400"), Decimal("Infinity")),
    "arrays": Bounds(np.array([[0.1, -0.0], [math.inf, 5e-324]]), np.array([[0.1, 0.0], [math.inf, math.nan]])),
    "empty": Bounds(EMPTY, EMPTY.copy()),
    "scalar array": Bounds(np.array(0.1), np.array(0.3)),
    "transposed": Bounds(np.arange(6.0).reshape(2, 3).T, np.arange(6.0).reshape(3, 2)),
    "decimal arrays": Bounds(decimals("0.10", "-0E-5"), decimals("1E+5", "NaN")),
    "no decimals": Bounds(np.empty(0, dtype=object), np.empty(0, dtype=object)),
    "digits": TEN.epsilon_bounds([0, "1e-5"], digits=30),
    "explanation": TEN.explain("1/3"),
    "other explanation": MIXED.explain(1),
    "curve": TEN.tradeoff(9),
    "cross_check": TEN.cross_check(3),
    "opinion": Opinion(EVIL, -math.inf, -0.0, 1e-9),
    "comparison": TEN.compare(delta=Fraction(1, 10**10)),
    "infinite comparison": MIXED.compare(epsilon=Fraction(1)),
    "costs": TEN.budget_costs(delta="1e-10"),
    "change": budget_change(TEN, 9 * DiscreteGaussian(1), epsilon="1/3"),
    "cell costs": SPINE.account().budget_costs(delta="1e-5"),
    "risk": risk_of(TEN, Fraction(1, 20), Fraction(1, 2), Fraction(1, 10**6)),
    "saving": Saving(Fraction(5), Fraction(1, 10**400), Fraction(1, 3)),
    "design": DESIGN,
    "release": exactdp.census.release("dhc-persons-us"),
    "unusual design": UNUSUAL,
    "unusual allocation": UNUSUAL.allocations[1],
    "unusual study": UNUSUAL.account(epsilons=[1]),
    "cell noise": CellNoise("gaussian", 3, 2),
    "allocation": exactdp.census.release("dhc-persons-us").allocations[2],
    "study": STUDY,
    "study in balls": IN_BALLS,
    "certificate": certify(TEN, epsilon=3, digits=12),
    "design certificate": certify_design(SMALL, delta="1e-5"),
    "verification": Verification(False, EVIL, (Check("a", None, "", 0.5), Check("b", True, EVIL, 0.0))),
}
