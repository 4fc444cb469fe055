"""Errors of one count: against sums of the definition, and the bounds that the theory takes of them."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from exactdp.census.cell_noise import USUAL, CellNoise
from exactdp.census.margins import noise_of
from exactdp.errors import InvalidInputError
from exactdp.optimize.accuracy import MEASURES, errors, least_budget, measured, shortened
from exactdp.optimize.dual_bound import below

F = Fraction
BUDGETS = ["1/5000", "1/61", "1/59", "1/10", "1/2", "1", "3", "7"]
KINDS = [USUAL, CellNoise("gaussian"), CellNoise("discrete laplace")]


def _exact(measure: str, x: Fraction) -> float:
    """Of discrete Gaussian noise, with 40 digits."""
    with mpmath.workdps(40):
        reach = math.ceil(14 / math.sqrt(x)) + 3
        weights = [mpmath.exp(-mpmath.mpf(n * n * x.numerator) / (2 * x.denominator)) for n in range(reach)]
        total = weights[0] + 2 * sum(weights[1:])
        variance = 2 * sum(w * n * n for n, w in enumerate(weights)) / total
        absolute = 2 * sum(w * n for n, w in enumerate(weights)) / total
        return float(
            {"variance": variance, "absolute": absolute, "margin": 1.959964 * mpmath.sqrt(variance)}.get(
                measure, mpmath.sqrt(variance)
            )
        )


@pytest.mark.parametrize("measure", MEASURES)
def test_errors_are_those_of_the_noise(measure: str) -> None:
    x = [F(b) for b in BUDGETS]
    found = errors(measure, np.array([float(b) for b in x]), [USUAL] * len(x))[0]
    assert found.tolist() == pytest.approx([_exact(measure, b) for b in x], rel=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_errors_fall_in_the_budget(measure: str, kind: CellNoise) -> None:
    x = np.geomspace(1e-4, 20, 200)
    values, slopes = errors(measure, x, [kind] * len(x))
    assert (np.diff(values) < 0).all()
    assert (slopes < 0).all()
    step = 1e-5
    ends = [errors(measure, x * (1 + side * step), [kind] * len(x))[0] for side in (-1, 1)]
    assert ((ends[1] - ends[0]) / (2 * step * x)).tolist() == pytest.approx(slopes.tolist(), rel=1e-5)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    ("measure", "bound"), [("margin", "20"), ("margin", "0"), ("variance", "0.3"), ("error", "7"), ("absolute", "2")]
)
def test_least_budgets_keep_their_bound(measure: str, bound: str, kind: CellNoise) -> None:
    if bound == "0" and kind.kind == "gaussian":
        pytest.skip("continuous noise has no margin of 0")
    found = least_budget(measure, F(bound), kind)
    assert measured(measure, found, kind) <= float(F(bound))
    assert measured(measure, found * F(999, 1000), kind) > float(F(bound)) or measure == "margin"
    if measure == "margin":
        assert noise_of(found * F(999999, 1000000), kind).margin > int(F(bound))


def test_no_noise_is_that_good() -> None:
    with pytest.raises(InvalidInputError, match="No noise that is allowed has a variance of at most 1e-300"):
        least_budget("variance", F(1, 10**300))


@pytest.mark.parametrize("measure", ["variance", "error", "absolute", "margin"])
def test_the_bounds_of_errors_are_below_them_and_close(measure: str) -> None:
    for floor in ("1/2", "1", "4"):
        x = np.geomspace(1e-4, float(1 / F(floor)), 60)
        kinds = (USUAL,) * len(x)
        values, slopes = below(measure, x, kinds, np.full(len(x), float(1 / F(floor))))
        exact = errors(measure, x, kinds)[0]
        assert (values <= exact * (1 + 1e-12)).all()
        assert (values >= exact * (0.97 if floor == "1/2" else 0.999)).all() or measure == "absolute"
        assert values[0] == pytest.approx(exact[0], rel=3e-3)
        assert (np.diff(slopes) > 0).all(), "convex"
        chords = np.diff(values) / np.diff(x)
        assert (slopes[:-1] <= chords + 1e-12 * abs(chords)).all()
        assert (chords <= slopes[1:] + 1e-12 * abs(chords)).all()


def test_short_numbers_are_on_their_side() -> None:
    assert shortened(F(2, 3), 4) == F(6667, 10000)
    assert shortened(F(2, 3), 4, up=False) == F(6666, 10000)
    assert shortened(F(1, 4), 4) == F(1, 4)
    tight = F(10**40 + 1, 10**40)
    assert shortened(tight, 3) == F(101, 100)
    assert shortened(F(10**40 - 1, 10**40), 3, up=False) == F(999, 1000)
