"""Pairs on a grid that they share: members transformed once, each pair against all values of its loss."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from any_oracle import listed
from exactdp import DiscreteGaussian, DiscreteLaplace, Gaussian
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.planner import grid_suits
from exactdp.engine.family import line_grid
from exactdp.engine.family.line_contours import LineFamily
from exactdp.engine.family.line_grid import GridFamily

MEMBERS = (
    {DiscreteGaussian("2.71"): 1},
    {DiscreteGaussian("1.94", 2): 1, DiscreteLaplace("7/3", 2): 1},
    {DiscreteGaussian("0.31"): 2},
)
PAIRS = ((0, 0), (0, 1), (1, 2), (2, 2), (1,))
EPSILONS = [Fraction("0.3"), Fraction("2.17"), Fraction("6.4"), Fraction("-1.2")]


def _asked() -> tuple[np.ndarray, np.ndarray]:
    pairs = np.repeat(np.arange(len(PAIRS)), len(EPSILONS))
    return pairs, np.tile(np.arange(len(EPSILONS)), len(PAIRS))


def test_pairs_on_a_grid_hold_the_exact_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactdp.accounting.line_pairs.grid_suits", lambda _: True)
    monkeypatch.setattr(line_grid, "AIM", 1e-6)
    line = LinePairs(LineFamily(MEMBERS, PAIRS))
    pairs, index = _asked()
    suited, point = line.grid_at(pairs, EPSILONS, index)
    assert suited.all()
    for i, (pair, at) in enumerate(zip(pairs.tolist(), index.tolist(), strict=True)):
        truth, e = listed(line.mechanisms(pair)), EPSILONS[at]
        with mpmath.workdps(60):
            exact = truth.worst(e)
            for bracket, value in ((point.delta, exact), (point.rest, 1 - exact)):
                low, high = float(bracket.log_lower()[i]), float(bracket.log_upper()[i])
                assert low <= mpmath.log(value + truth.error(e))
                assert mpmath.log(value - truth.error(e)) <= high
                assert high - low < 1e-4


def test_only_pairs_that_suit_are_put_on_a_grid() -> None:
    line = LinePairs(LineFamily(MEMBERS, PAIRS))
    pairs, index = _asked()
    suited, point = line.grid_at(pairs, EPSILONS, index)
    assert not suited.any()  # a list of all values is quicker
    assert point.delta.lower.tolist() == [0.0] * len(pairs)
    assert point.delta.upper.tolist() == [1.0] * len(pairs)
    coarse = {DiscreteGaussian(Fraction(1000 + 77 * i * i, 991)): 1 + i % 2 for i in range(11)}
    assert grid_suits(coarse)
    assert not grid_suits({DiscreteGaussian(2): 10, DiscreteGaussian(3): 7})
    assert not GridFamily(LineFamily(({Gaussian(1): 1},), ((0, 0),))).can_list


def test_members_are_transformed_once() -> None:
    family = GridFamily(LineFamily(MEMBERS, PAIRS))
    place = next(iter(family.family.places(np.array([1]), [Fraction(2)], np.array([0]))))[0]
    assert family._transform(place, 0) is family._transform(place, 0)
    assert family._transform(place, len(MEMBERS)) is None  # the member without mechanisms
