"""The mutants of the bounds that stand beside an optimised design."""

from __future__ import annotations

_LEAST = ["tests/optimize/test_least_delta.py"]
_BEST = ["tests/optimize/test_best_design.py", "-m", "not soak", "-k", "grid or least or three_level"]

TESTS = {
    "optimize/least_delta.py": _LEAST,
    "optimize/dual_bound.py": ["tests/optimize/test_accuracy.py", "tests/optimize/test_dual_bound.py"],
    "optimize/accuracy.py": ["tests/optimize/test_accuracy.py"],
    "optimize/best_design.py": ["tests/optimize/test_dual_bound.py"],
}

MUTANTS = [
    (
        "far peaks of a total taken for fewer",
        "optimize/least_delta.py",
        "near_axis = d / s * (even / 12 +",
        "near_axis = d / s * (even / 13 +",
    ),
    (
        "the far peaks off the axis halved",
        "optimize/least_delta.py",
        "off_axis = reach / 2 *",
        "off_axis = reach / 4 *",
    ),
    (
        "the centre of the peaks left out",
        "optimize/least_delta.py",
        "found = found.max(centre + off_integers + shoulder + far)",
        "found = found.max(off_integers + shoulder + far)",
    ),
    (
        "tilts that are no integers for free",
        "optimize/least_delta.py",
        "arb(0) if tilt.denominator == 1 else 4 * most",
        "arb(0) if tilt.denominator != 0 else 4 * most",
    ),
    (
        "the largest kind of cell replaced by the least",
        "optimize/least_delta.py",
        "found = found.max(centre",
        "found = (found if found > 0 else arb(10**9)).min(centre",
    ),
    (
        "the total of an interval taken at its upper end",
        "optimize/least_delta.py",
        "root = ball(low).sqrt().lower()",
        "root = ball(high).sqrt().lower()",
    ),
    (
        "more than all for one cell",
        "optimize/least_delta.py",
        "least = max(self.sigma2, Fraction(self.copies * self.sensitivity**2) / spread)",
        "least = max(self.sigma2, 2 * Fraction(self.copies * self.sensitivity**2) / spread)",
    ),
    (
        "noise alone compared at one end of the interval",
        "optimize/least_delta.py",
        "shifted = tails[1:, sensitivity:] * (1 + SUM_SLACK)",
        "shifted = tails[:-1, sensitivity:] * 0.5",
    ),
    (
        "the variance taken for sigma2",
        "optimize/dual_bound.py",
        "values[i], slopes[i] = (1 - lost) / x, -(1 - lost) / x**2",
        "values[i], slopes[i] = 1 / x, -1 / x**2",
    ),
    (
        "the mean absolute error without its correction",
        "optimize/dual_bound.py",
        "values[i] = c * (x**-0.5 - x**0.5 / 12 - x**1.5 / 69)",
        "values[i] = c * (x**-0.5 - x**0.5 / 14)",
    ),
    (
        "the dual without its limit",
        "optimize/dual_bound.py",
        "float(least.sum()) - price * limit",
        "float(least.sum()) - 0.98 * price * limit",
    ),
    (
        "the least height above what the total allows",
        "optimize/dual_bound.py",
        "> limit * (1 + _SLACK)\n        low, high = (middle, high)",
        "> 0.98 * limit\n        low, high = (middle, high)",
    ),
    (
        "the full path counted once",
        "optimize/dual_bound.py",
        "times = 2.0 if problem.release.relation == REPLACE else 1.0",
        "times = 2.2 if problem.release.relation == REPLACE else 1.1",
    ),
    (
        "a requirement kept by a little less budget",
        "optimize/accuracy.py",
        "return (math.ceil(value / unit) if up else math.floor(value / unit)) * unit",
        "return math.floor(value / unit) * unit",
    ),
    (
        "a design that was not proved",
        "optimize/best_design.py",
        "            if found < 0:\n                continue",
        "            if found < 9:\n                continue",
    ),
]
