"""Many points of trade-off curves at once: the largest value of a concave function from bounds at four points."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np

from exactdp import Gaussian
from exactdp.accounting.batched_dual import _top_of_chords
from exactdp.accounting.line_pairs import LinePairs
from exactdp.accounting.separate_pairs import Question
from exactdp.engine.family.line_contours import LineFamily


def chords(x: list[float], f: list[float]) -> float:
    """The top of the largest concave function through four points, by its definition, in fractions."""
    x1, x2, x3, x4 = (Fraction(v) for v in x)
    f1, f2, f3, f4 = (Fraction(v) for v in f)
    first, middle, last = (f2 - f1) / (x2 - x1), (f3 - f2) / (x3 - x2), (f4 - f3) / (x4 - x3)
    tops = [f1, f2, f3, f4, f2 - middle * (x2 - x1), f3 + middle * (x4 - x3)]
    if first != last:
        at = (f3 - f2 + first * x2 - last * x3) / (first - last)
        if x2 < at < x3:
            tops.append(f2 + first * (at - x2))
    return float(max(tops))


def test_the_top_of_chords_is_above_every_concave_function() -> None:
    """Against the largest concave function with these values: never below its top, and hardly above it."""
    rng = random.Random(11)
    rows, tops = [], []
    while len(rows) < 3000:
        e = sorted(rng.uniform(-1, 1) for _ in range(4))
        x = [math.exp(v) for v in e]
        slopes = sorted((rng.uniform(-3, 3) for _ in range(3)), reverse=True)
        if rng.random() < 0.2:
            slopes[1] = rng.choice([slopes[0], slopes[2], min(max(0.0, slopes[2]), slopes[0])])
        f = [1.0]
        for i, slope in enumerate(slopes):
            f.append(f[-1] + slope * (x[i + 1] - x[i]))
        if min(b - a for a, b in pairwise(e)) < 0.05 or slopes[0] < 0 or slopes[2] > 0:
            continue
        rows.append((e, f))
        tops.append(chords(x, f))
    epsilons, values = (np.array([row[i] for row in rows]) for i in (0, 1))
    rising = (values[:, 1] >= values[:, 0]) & (values[:, 2] >= values[:, 3])
    found = _top_of_chords(epsilons, values, values)
    scale = 1 + np.abs(values).max(axis=1)
    assert np.all(found[rising] >= np.array(tops)[rising] - 1e-15 * scale[rising])
    assert np.all(
        found[rising] <= np.array(tops)[rising] + 1e-11 * scale[rising] / np.diff(epsilons).min(axis=1)[rising]
    )
    assert np.all(np.isinf(found[~rising]))
    width = 1e-3 * np.random.default_rng(1).random((2, *values.shape)) ** 4
    found = _top_of_chords(epsilons, values - width[0], values + width[1])  # the values are known within bounds only
    assert np.isfinite(found).sum() > 1000
    assert np.all(found >= np.array(tops) - 1e-13 * scale)
    middle = values[:, 2] - values[:, 1]
    assert np.sum(rising & (middle < 0)) > 100  # the top may lie between the first two points
    assert np.sum(rising & (middle > 0)) > 100


def test_chords_from_bounds_hold_every_function_between_them() -> None:
    rng = np.random.default_rng(2)
    n = 400
    epsilons = np.sort(rng.uniform(-1, 1, (n, 4)), axis=1)
    at = rng.uniform(0.5, 2.0, n)
    bend = rng.uniform(0.2, 3.0, n)
    x = np.exp(epsilons)
    values = 2 - bend[:, None] * (x - at[:, None]) ** 2
    for width in (0.0, 1e-6, 1e-2):
        below, above = (width * rng.uniform(0, 1, (n, 4)) for _ in range(2))
        found = _top_of_chords(epsilons, values - below, values + above)
        proved = np.isfinite(found)
        assert proved.sum() > 40
        assert np.all(found[proved] >= 2.0)
        assert np.all((x[:, 0] <= at)[proved] & (at <= x[:, 3])[proved])


class SharedOnly(LinePairs):
    """Where the dual of all pairs together is wide, nobody else is asked."""

    resort_width_beta = math.inf


def test_betas_of_gaussian_pairs_together() -> None:
    """Against Phi(Phi^-1(1 - alpha) - mu): inside, and narrow."""
    pairs = SharedOnly(LineFamily(({Gaussian(2): 3}, {Gaussian(3): 1}), ((0, 0), (0, 1), (1, 1), (1,))))
    alphas = [Fraction(1, 10**9), Fraction(1, 50), Fraction(1, 2), Fraction(97, 100)]
    questions = [Question(p, a) for p in range(4) for a in alphas]
    for (p, a), low, high in zip(questions, *(ends.tolist() for ends in pairs.betas(questions)), strict=True):
        with mpmath.workdps(40):
            mu = mpmath.sqrt([3, mpmath.mpf(11) / 6, mpmath.mpf(2) / 3, mpmath.mpf(1) / 3][p])
            quantile = -mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(a.numerator) / a.denominator - 1)
            exact = mpmath.ncdf(quantile - mu)
        assert low <= exact <= high, (p, a, low, high)
        assert high - low <= 1e-9 * exact
