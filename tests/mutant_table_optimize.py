"""The mutants of the bounds that stand beside an optimised design."""

from __future__ import annotations

_LEAST = ["tests/optimize/test_least_delta.py", "tests/optimize/test_noise_box.py"]
_BEST = ["tests/optimize/test_best_design.py", "-m", "not soak", "-k", "grid or least or three_level"]

TESTS = {
    "apps/figures/frontier.py": ["tests/apps/test_cli_optimize.py", "-k", "frontier_says"],
    "guarantees/chords.py": ["tests/guarantees/test_tightest_mu.py"],
    "optimize/least_delta.py": _LEAST,
    "optimize/dual_bound.py": ["tests/optimize/test_accuracy.py", "tests/optimize/test_dual_bound.py"],
    "optimize/water_filling.py": ["tests/optimize/test_water_filling.py"],
    "optimize/least_budgets.py": ["tests/optimize/test_requirements.py", "-k", "least_budgets"],
    "apps/report/decision.py": ["tests/apps/test_report_memo.py", "-k", "another_promise"],
    "optimize/accuracy.py": ["tests/optimize/test_accuracy.py"],
    "optimize/best_design.py": ["tests/optimize/test_dual_bound.py"],
    "optimize/missed_target.py": _LEAST,
    "optimize/noise_box.py": ["tests/optimize/test_noise_box.py"],
    "optimize/objective_bound.py": ["tests/optimize/test_objective_bound.py", "-m", "not soak"],
}

MUTANTS = [
    (
        "the epsilon of least budgets rounded up",
        "optimize/least_budgets.py",
        "{at_least(epsilon, 4)} at delta",
        "{at_least(epsilon * 1.002, 4)} at delta",
    ),
    (
        "an option with another promise recommended",
        "apps/report/decision.py",
        "if other.relation != first.relation:",
        "if other.relation == first.relation == '':",
    ),
    (
        "a bound of some designs drawn as one of all",
        "apps/figures/frontier.py",
        'if coarsest else ""',
        'if False else ""',
    ),
    (
        "errors levelled a billionth too high",
        "optimize/water_filling.py",
        "return np.exp(high)\n",
        "return np.exp(high + 1e-9)\n",
    ),
    (
        "a chord checked at one end",
        "guarantees/chords.py",
        "            for e in pair:\n                tangent",
        "            for e in pair[:1]:\n                tangent",
    ),
    (
        "a mu that is not proved taken for proved",
        "guarantees/tightest_mu.py",
        "        except AccuracyError:\n            return False",
        "        except AccuracyError:\n            return True",
    ),
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
        "optimize/missed_target.py",
        "smooth = gaussian_delta_ball(ball(low).sqrt().lower(), e)",
        "smooth = gaussian_delta_ball(ball(high).sqrt().lower(), e)",
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
        "shifted = tails[1:, times * sensitivity :] * (1 + SUM_SLACK)",
        "shifted = tails[:-1, times * sensitivity :] * 0.5",
    ),
    (
        "copies alone shifted by more than they are",
        "optimize/least_delta.py",
        "shifted = tails[1:, times * sensitivity :] * (1 + SUM_SLACK)",
        "shifted = tails[1:, times * sensitivity + times - 1 :] * (1 + SUM_SLACK)",
    ),
    (
        "the excess of a trade-off curve left out",
        "optimize/missed_target.py",
        "(((mu - quantile) / root).erfc() / 2 + added).upper()",
        "(((mu - quantile) / root).erfc() / 2).upper()",
    ),
    (
        "the total of a mu a little too small",
        "optimize/missed_target.py",
        "return low > one.mu**2",
        "return low > one.mu**2 * Fraction(99, 100)",
    ),
    (
        "the centre of a box left out",
        "optimize/noise_box.py",
        "found = math.expm1(float(self._overlap.sum())) * width",
        "found = 0.98 * math.expm1(float(self._overlap.sum())) * width",
    ),
    (
        "finer cells of a box at their most",
        "optimize/noise_box.py",
        "own = np.append(np.cumsum(ranges[::-1, 0])[::-1], 0.0)",
        "own = np.append(np.cumsum(ranges[::-1, 1])[::-1], 0.0)",
    ),
    (
        "the peak of a coarse cell not seen",
        "optimize/noise_box.py",
        "least = np.where(crossed, 0.0,",
        "least = np.where(crossed, 1.0,",
    ),
    (
        "one side of the frequencies only",
        "optimize/noise_box.py",
        "parts = 2 * np.exp(",
        "parts = 1.7 * np.exp(",
    ),
    (
        "what is beyond a box's cells left out",
        "optimize/noise_box.py",
        "found = max(found, centre + shoulder + 2 * math.pi * min(near_axis, off_axis))",
        "found = max(found, centre + shoulder)",
    ),
    (
        "a box narrowed more than the design found allows",
        "optimize/objective_bound.py",
        "room = (self.value + found.price * box.limit)",
        "room = (0.8 * self.value + found.price * box.limit)",
    ),
    (
        "a limit of a box that is too close",
        "optimize/objective_bound.py",
        "return float(start) * (1 + _SLACK)",
        "return float(smooth) * 0.8",
    ),
    (
        "the boxes that are left forgotten",
        "optimize/objective_bound.py",
        "return min([self.value, *(bound for bound, _, _ in boxes)])",
        "return self.value",
    ),
    (
        "the variance taken for sigma2",
        "optimize/dual_bound.py",
        "values, slopes = (1 - lost) / x, -(1 - lost) / x**2",
        "values, slopes = 1 / x, -1 / x**2",
    ),
    (
        "the mean absolute error without its correction",
        "optimize/dual_bound.py",
        "values = c * (x**-0.5 - discrete * (x**0.5 / 12 + x**1.5 / 69))",
        "values = c * (x**-0.5 - discrete * (x**0.5 / 14))",
    ),
    (
        "the dual without its limit",
        "optimize/dual_bound.py",
        "total = float(least.sum()) - price * limit",
        "total = float(least.sum()) - 0.98 * price * limit",
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
