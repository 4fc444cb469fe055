"""Mutants of which noise is best: bounds that no noise beats, weakened, and proofs of tables left out."""

from __future__ import annotations

_BOUNDS = ["tests/guarantees/test_best_noise.py", "-m", "not soak"]
_RACE = ["tests/guarantees/test_race.py"]
_BOUNDED = "guarantees/best_noise/bounded_families.py"
TESTS = {
    **{
        f"guarantees/best_noise/{name}.py": _BOUNDS
        for name in ("lower_bound", "closed_bounds", "linear_program", "three_outcomes", "optimum", "noise_table")
    },
    "guarantees/best_noise/race.py": _RACE,
    "guarantees/best_noise/noise_error.py": _RACE,
    _BOUNDED: ["tests/guarantees/test_bounded_families.py"],
}
_BOUND = "guarantees/best_noise/lower_bound.py"
_THREE = "guarantees/best_noise/three_outcomes.py"
_OPTIMUM = "guarantees/best_noise/optimum.py"
_ERROR = "guarantees/best_noise/noise_error.py"
MUTANTS = [
    ("bounded noise: one value lost at an end", _BOUNDED, "sum(table.pmf[: table.sensitivity])", "sum(table.pmf[:1])"),
    ("bounded noise: a beta allows for more", _BOUNDED, "return 1 - wanted.beta", "return 2 - 2 * wanted.beta"),
    ("bounded noise: what is clamped is forgotten", _BOUNDED, "side[bound] /= 1 - q", "side[bound] /= 1"),
    ("bounded noise: no look about the best try", _BOUNDED, "range(_SECTIONS)", "range(0)"),
    ("bounded noise: a factor that misses the target", _BOUNDED, "and self._wanted.holds(design)", ""),
    ("bounded noise: any first stair", _BOUNDED, "return min(found)", "return found[-1]"),
    ("bounded noise: one of several targets", _BOUNDED, "min(allowed(one)", "max(allowed(one)"),
    ("error of Skellam noise: half of one function", _ERROR, "+ v.bessel_i(arb(1)))", "+ v.bessel_i(arb(1)) / 2)"),
    (
        "error of a table: a margin for 90%",
        _ERROR,
        "if inside >= 1 - OUTSIDE else",
        "if inside >= 1 - 3 * OUTSIDE else",
    ),
    (
        "a family that is refused stops the race",
        "guarantees/best_noise/race.py",
        "except (AccuracyError, InvalidInputError) as error:",
        "except InvalidInputError as error:",
    ),
    (
        "noise bound: what is allowed is not paid for",
        _BOUND,
        "return -self.weight * self.allowed",
        "return -self.weight * self.allowed * Fraction(9, 10)",
    ),
    ("noise bound: a test above its weight", _BOUND, "0 <= y <= self.weight for y", "0 <= y for y"),
    ("noise bound: a negative test", _BOUND, "0 <= y <= self.weight for y", "y <= self.weight for y"),
    (
        "noise bound: a test is not shifted",
        _BOUND,
        "self.ratio * self.test.at(x + self.shift)",
        "self.ratio * self.test.at(x + self.shift + 1)",
    ),
    (
        "noise bound: no tangent of the affinity",
        _BOUND,
        "(self.slopes.at(x) + 1 / self.slopes.at(x + self.shift)) * HALF",
        "(self.slopes.at(x) + 1 / self.slopes.at(x + self.shift)) * Fraction(2, 5)",
    ),
    (
        "noise bound: an affinity is worth more",
        _BOUND,
        "self.weight * self.least",
        "self.weight * self.least * Fraction(101, 100)",
    ),
    (
        "noise bound: not the least of all outcomes",
        _BOUND,
        "least = min(self._left(x) for",
        "least = max(self._left(x) for",
    ),
    ("noise bound: far outcomes are not looked at", _BOUND, "range(last + 1)", "range(max(last - 5, 1))"),
    (
        "affinity under mu-GDP: of fewer releases",
        "guarantees/best_noise/closed_bounds.py",
        "ball(-(mu**2) / (8 * copies))",
        "ball(-(mu**2) / (9 * copies))",
    ),
    (
        "three outcomes: not proved to fail",
        _THREE,
        "return any(point.fails(released)",
        "return any(True or point.fails(released)",
    ),
    (
        "three outcomes: nothing found is taken for something",
        _THREE,
        "                return difference\n        return coverage",
        "                return difference\n        return coverage / 2",
    ),
    (
        "three outcomes: the slope of the wrong end",
        _THREE,
        "slope = self.refused(low) / low",
        "slope = self.refused(high) / high",
    ),
    ("three outcomes: the top of the wrong end", _THREE, "top = self.refused(high)", "top = self.refused(low or high)"),
    ("three outcomes: the least cell", _THREE, "return min(max(-cells[0][0]", "return min(max(-cells[-1][0]"),
    (
        "three outcomes: more copies than there are",
        _THREE,
        "self._copies = min(copies, MOST_COPIES)",
        "self._copies = min(copies + 1, MOST_COPIES)",
    ),
    (
        "a table of one release is not proved",
        _OPTIMUM,
        "if all(wanted.holds(Composition([table.mechanism(d)])) for d in shifts)",
        "if shifts",
    ),
    (
        "a table of several releases above its delta",
        _OPTIMUM,
        "if upper <= wanted.delta:",
        "if upper <= 3 * wanted.delta:",
    ),
    (
        "only the largest shift of a table",
        _OPTIMUM,
        "[Stick(d, ratio, allowed) for d in shifts]",
        "[Stick(shift, ratio, allowed)]",
    ),
    ("a margin from one tail", _ERROR, "2 * noise.tail(m + 1)", "noise.tail(m + 1)"),
    (
        "the rest of a sum of squares is left out",
        _ERROR,
        "deviation * near_one",
        "deviation * near_one * ball(Fraction(10001, 10000))",
    ),
    (
        "a race that does not look one step below",
        "guarantees/best_noise/race.py",
        "factor, below = scale.value(int(place)), scale.value(int(place) - 1)",
        "factor, below = scale.value(int(place) + 1), scale.value(int(place))",
    ),
]
