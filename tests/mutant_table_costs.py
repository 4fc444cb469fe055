"""The mutants of what budget costs."""

from __future__ import annotations

TESTS = {
    "accounting/budget_cost.py": ["tests/accounting/test_budget_cost.py", "-k", "change or outward"],
}

MUTANTS = [
    (
        "a change taken between the near ends",
        "accounting/budget_cost.py",
        "math.nextafter(self.after[0] - self.before[1], -math.inf)",
        "math.nextafter(self.after[0] - self.before[0], -math.inf)",
    ),
    (
        "the most of a change taken between the near ends",
        "accounting/budget_cost.py",
        "math.nextafter(self.after[1] - self.before[0], math.inf)",
        "math.nextafter(self.after[1] - self.before[1], math.inf)",
    ),
    (
        "the least change rounded to the nearest",
        "accounting/budget_cost.py",
        "math.nextafter(self.after[0] - self.before[1], -math.inf)",
        "self.after[0] - self.before[1]",
    ),
    (
        "the most of a change rounded to the nearest",
        "accounting/budget_cost.py",
        "math.nextafter(self.after[1] - self.before[0], math.inf)",
        "self.after[1] - self.before[0]",
    ),
    (
        "a mean slope with its ends exchanged",
        "accounting/budget_cost.py",
        "ends = sorted(Fraction(end) / by for end in self.change)",
        "ends = [Fraction(end) / by for end in self.change]",
    ),
    (
        "a mean slope rounded to the nearest",
        "accounting/budget_cost.py",
        "return Bounds(math.nextafter(float(ends[0]), -math.inf), math.nextafter(float(ends[1]), math.inf))",
        "return Bounds(float(ends[0]), float(ends[1]))",
    ),
    (
        "more rho than was said",
        "accounting/budget_cost.py",
        "mechanism._scaled(mechanism.rho / total)",
        "mechanism._scaled(mechanism.rho / total * Fraction(101, 100))",
    ),
]
