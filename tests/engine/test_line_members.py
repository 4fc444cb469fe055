"""Members of a family on the line that are sums of fewer compositions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from exactdp import DiscreteGaussian, DiscreteLaplace
from exactdp.engine.family.line_contours import LineFamily

EPSILON = Fraction(3)
BASES = (
    {DiscreteGaussian("31/9"): 2},
    {DiscreteGaussian("29/13"): 1, DiscreteGaussian("12/5", 2): 1},
    {DiscreteGaussian("0.3"): 1, DiscreteGaussian("7/3"): 1, DiscreteLaplace("7/3", 2): 1},
)


def test_members_that_are_sums_of_fewer_compositions_have_the_same_bounds() -> None:
    """Bases are a way of adding up: penalties, terms and bounds are those of the members listed one by one."""
    made_of = ((0, 0), (0, 1), (2,), (1, 2, 2))
    members = tuple(
        {m: sum(BASES[i].get(m, 0) for i in of) for m in dict.fromkeys(m for i in of for m in BASES[i])}
        for of in made_of
    )
    pairs = ((0, 1), (2, 3), (3, 3), (2,))
    plain, summed = LineFamily(members, pairs), LineFamily(members, pairs, BASES, made_of)
    rows, used = np.array([0, 3, 4]), np.arange(len(plain.mechanisms))
    each = np.random.default_rng(1).random((len(used), 7))
    assert np.allclose(summed.sums(rows, used, each), plain.counts[rows] @ each, rtol=1e-14, atol=0)
    assert plain.terms(rows) == 5
    assert summed.terms(rows) == 2 + 3 + 3 + 3, "a sum by bases has the terms of all of them, and adds them up"
    index = np.zeros(len(pairs), dtype=np.int64)
    for place, which in plain.places(np.arange(len(pairs)), [EPSILON], index):
        one, two = (f.evaluate(place, which, [EPSILON], index[which]).bracket for f in (plain, summed))
        assert (one.log_lower() <= two.log_upper()).all()
        assert (two.log_lower() <= one.log_upper()).all()
        assert np.allclose(one.width(), two.width(), rtol=0.1)
