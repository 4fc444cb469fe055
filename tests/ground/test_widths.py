"""How wide bounds are, at the ends of every range, and the one warning that says so."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from exactdp.brackets import Bounds
from exactdp.errors import AccuracyWarning
from exactdp.widths import WIDE, checked, epsilon_is_wide, epsilon_widths, probability_widths, warn_if_wide


@pytest.mark.parametrize(
    ("lower", "upper", "width"),
    [
        (0.5, 0.5, 0.0),
        (0.5, 0.75, 0.5),
        (1e-200, 3e-200, 2.0),
        (0.0, 0.5, math.expm1(700.0)),  # as wide as is told
    ],
)
def test_probabilities_are_measured_by_their_ratio(lower: float, upper: float, width: float) -> None:
    assert probability_widths(Bounds(lower, upper)) == pytest.approx([width])


def test_probabilities_that_are_nothing_are_left_out() -> None:
    assert probability_widths(Bounds(np.array([0.0, 0.0, 0.25]), np.array([0.0, 1e-300, 0.5]))) == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("lower", "upper", "width"),
    [
        (math.inf, math.inf, 0.0),
        (-math.inf, -math.inf, 0.0),
        (-math.inf, math.inf, math.inf),
        (1.0, math.inf, math.inf),
        (math.nan, 1.0, math.inf),
        (0.0, 0.0, 0.0),
        (-1.0, 1.0, 2 / 1.001),
        (0.0, 1e-9, 1e-6),  # an epsilon near 0 is measured as if it were 0.001
    ],
)
def test_epsilons_are_measured_by_their_size(lower: float, upper: float, width: float) -> None:
    assert epsilon_widths(Bounds(lower, upper)) == pytest.approx([width], rel=1e-5)
    assert epsilon_is_wide(lower, upper) == (width > 2 * WIDE)


def test_what_is_narrow_is_passed_on_in_silence() -> None:
    bounds = Bounds(np.array([0.5, 1.0]), np.array([0.5 * (1 + WIDE / 2), 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checked("delta", bounds) is bounds
        warn_if_wide("mu", [])
        warn_if_wide("mu", [0.0, WIDE])


@pytest.mark.parametrize(
    ("widths", "told"),
    [
        ([2 * WIDE, 0.0, WIDE], "up to 2.*e-6 apart"),
        ([math.nan, 1.0], "say little or nothing"),
        ([math.inf], "say little"),
    ],
)
def test_the_widest_is_told_once_with_a_remedy_and_the_callers_line(widths: list[float], told: str) -> None:
    with pytest.warns(AccuracyWarning, match=f"The bounds of mu are proved but {told}.*Do this") as caught:
        warn_if_wide("mu", widths, "Do this.")
    assert [warning.filename for warning in caught] == [__file__]
