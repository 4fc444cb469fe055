"""Gaussian DP of a whole release: the worst of its pairs, and noise calibrated to it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from exactdp.census.cell_noise import CellNoise
from exactdp.census.design_mu import design_mu
from exactdp.census.releases import Release
from exactdp.census.savings import calibrate_release, level_pair
from exactdp.errors import AccuracyError
from exactdp.guarantees.calibration import MeetsAll, calibrate, target
from exactdp.guarantees.tightest_mu import tightest_mu
from exactdp.mechanisms.discrete_gaussian import DiscreteGaussian
from small_release import COARSE, SMALL

pytestmark = pytest.mark.filterwarnings("ignore::exactdp.errors.AccuracyWarning")  # wide is no less true


def test_the_worst_of_all_pairs() -> None:
    """Also where the proxy, which is looked at first, is not the worst."""
    found = design_mu(COARSE)
    each = [tightest_mu(pair) for pair in COARSE.compositions]
    assert found.lower == max(one.lower for one in each)
    assert max(one.lower for one in each) <= found.upper <= max(one.upper for one in each)
    assert found.upper >= max(one.lower for one in each)


def test_several_targets_are_met_at_once() -> None:
    ten = 10 * DiscreteGaussian(1)
    targets = (target(epsilon=5, delta="1e-6"), target(mu="0.9"), target(alpha="0.05", beta="0.8"))
    together = calibrate(ten, MeetsAll(targets), grid=50)
    alone = [calibrate(ten, one, grid=50).factor for one in targets]
    assert together.factor == max(alone)
    assert len(set(alone)) > 1


def test_a_design_calibrated_to_a_mu_over_all_pairs() -> None:
    factor, calibrated = calibrate_release(SMALL, target(mu=1), grid=4)
    assert design_mu(calibrated).upper <= 1
    assert design_mu(SMALL.scaled(factor - Fraction(1, 4))).lower >= 1


def test_no_factor_helps_where_the_rest_alone_is_too_much() -> None:
    """The sentence says what it costs."""
    with pytest.raises(AccuracyError, match=r"the other levels alone already cost an epsilon of at least \d"):
        calibrate_release(SMALL, target(epsilon="0.5", delta="1e-6"), level="Block")
    three = 3 * DiscreteGaussian(1) + DiscreteGaussian(2)
    with pytest.raises(AccuracyError, match=r"alone already cost a mu of at least 1\.7"):
        calibrate(three, target(mu="0.5"), DiscreteGaussian(2))


def test_a_path_that_no_record_takes_proves_nothing() -> None:
    """Of a design without the full path, a level that is bypassed everywhere costs nothing by itself."""
    noise = {("B", "b"): CellNoise(sensitivity=50)}
    table = {"A": {"a": Fraction(1)}, "B": {"b": Fraction(1, 10)}}
    design = Release("nofull", "", "", table, {1: ("B",)}, "add/remove", noise)
    factor, _ = calibrate_release(design, target(epsilon=6, delta="1e-6"), level="A", grid=10)
    assert design.scaled(factor, "A").account().delta_bounds(6).upper <= 1e-6
    assert level_pair(design, "A") == design.pair(1, 0)
